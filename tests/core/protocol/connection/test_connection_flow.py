"""One connection: progress, cancellation, limits and batches."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import pytest
from msgspec import Raw

from mcp_core import (
    Connection,
    ConnectionClosed,
    Limits,
    LocalProtocolError,
    NotificationReceived,
    ProgressReceived,
    RemoteProtocolError,
    RequestCancelled,
    RequestReceived,
    ResultReceived,
)
from mcp_core import types as t
from tests.core.protocol.connection.connection_setup import CLIENT, EMPTY, ERROR, SERVER
from tests.harness.jsonrpc import (
    VERSIONS,
    B,
    D,
    E,
    Message,
    assert_error,
    assert_rejected,
    call,
    cancelled,
    client_config,
    encoded,
    error,
    initialize,
    notification,
    only_event,
    ping,
    request,
    result,
    server_config,
    single,
    stateless_request,
    type_names,
)
from tests.harness.wire.connection import (
    ConnectionHarness,
    client,
    opened,
    server,
)

# -- Progress --------------------------------------------------------------------------------------


@pytest.mark.requirement("PROG-1", "PROG-3", "PROG-4", "PROG-5", "PROG-11")
@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("token", [0, 7, "", "seven"])
def test_send_progress_requires_token_and_increase(version: str, token: Any) -> None:
    """Values that don't increase are dropped silently, so handlers needn't check."""
    harness = server(version)
    harness.receive(call(1, version, progressToken=token), call(2, version))
    sent = [
        harness.conn.send_progress(1, *values)
        for values in ((0.5,), (0.5,), (0.25, 1), (1.5, 2, "soon"), (1.5,))
    ]
    assert sent == [True, False, False, True, False]
    first, second = harness.take_sent()
    assert first == notification(
        "notifications/progress", {"progressToken": token, "progress": 0.5}
    )
    assert second["params"].pop("message", None) == (None if version == VERSIONS[0] else "soon")
    assert second["params"] == {"progressToken": token, "progress": 1.5, "total": 2}
    assert not harness.conn.send_progress(2, 1)  # no token
    assert not harness.conn.send_progress(3, 1)
    harness.conn.send_result(1, EMPTY)
    assert not harness.conn.send_progress(1, 9)
    assert len(harness.take_sent()) == 1


@pytest.mark.requirement("CXL-7")
def test_send_progress_after_cancellation_sends_nothing() -> None:
    harness = server()
    harness.receive(call(1, progressToken=1), cancelled(1))
    assert not harness.conn.send_progress(1, 1)
    assert harness.take_sent() == []


@pytest.mark.requirement("PROG-2", "PROG-13", "META-14")
@pytest.mark.parametrize("version", VERSIONS)
def test_progress_received_requires_request_and_increase(version: str) -> None:
    """Old, unknown and unrequested progress is dropped, never reported as an error."""
    harness = client(version)
    id = harness.conn.send_request("tools/list", token="t", progress=True)
    quiet = harness.conn.send_request("tools/list")
    assert [
        message.get("params", {}).get("_meta", {}).get("progressToken")
        for message in harness.take_sent()
    ] == [
        id,
        None,
    ]

    def progress_message(token: Any, progress: Any) -> Message:
        return notification(
            "notifications/progress",
            {"progressToken": token, "progress": progress, "total": 9, "message": "m"},
        )

    event = only_event(harness.receive(progress_message(id, 1)), ProgressReceived)
    assert event == ProgressReceived(id, 1, 9, "m", "t")
    assert (
        harness.receive(
            progress_message(id, 1),
            progress_message(id, 0.5),
            progress_message(f"0{id}", 2),
            progress_message(99, 2),
            progress_message(quiet, 2),
        )
        == []
    )
    assert (
        only_event(harness.receive(progress_message(id, 1.25)), ProgressReceived).progress == 1.25
    )
    harness.receive(result(id, {"tools": []}))
    assert harness.receive(progress_message(id, 2)) == []


# -- Cancellation ----------------------------------------------------------------------------------


@pytest.mark.requirement("CXL-1", "CXL-2", "CXL-3", "CXL-9", "CXL-13")
@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("reason", [None, "enough"])
def test_send_cancel_ignores_late_response(version: str, reason: str | None) -> None:
    """Late messages are a legal race: no event, no rejection, and one notification only."""
    harness = client(version)
    id = harness.conn.send_request("tools/list", progress=True)
    harness.take_sent()
    harness.conn.send_cancel(id, reason)
    assert harness.take_sent() == [cancelled(id, reason)]
    harness.conn.send_cancel(id)  # the second one has no effect
    harness.conn.send_cancel(99)
    assert harness.take_sent() == []
    late = [
        notification("notifications/progress", {"progressToken": id, "progress": 1}),
        result(id, {"tools": []}),
        error(id),
    ]
    assert harness.receive(*late) == []
    assert harness.take_sent() == []


@pytest.mark.requirement("CXL-4", "LIFE-16")
@pytest.mark.parametrize("version", VERSIONS)
def test_send_cancel_of_opening_request_does_nothing(version: str) -> None:
    harness = ConnectionHarness(Connection(CLIENT, client_config(version)))
    harness.conn.open(0.0)
    sent = single(harness.take_sent())
    harness.conn.send_cancel(sent["id"])
    assert harness.take_sent() == []
    assert harness.receive(error(sent["id"])) != []  # the response is still processed


@pytest.mark.requirement("CXL-6", "CXL-8", "CXL-10")
@pytest.mark.parametrize("version", VERSIONS)
def test_request_cancelled_keeps_id_until_handler_returns(version: str) -> None:
    """An id used again too early could get the old handler's result."""
    harness = server(version)
    harness.receive(call(1, version))
    assert harness.receive(cancelled("01")) == []
    assert harness.receive(cancelled("1", "enough")) == [RequestCancelled(1, "enough")]
    assert harness.receive(cancelled(1)) == []
    assert harness.conn.in_flight == 1
    assert_error(harness.error_response_to(call(1, version)), -32600, 1, "still in use")
    assert not harness.conn.send_result(1, EMPTY)
    assert harness.conn.in_flight == 0
    assert harness.take_sent() == []
    assert harness.receive(cancelled(1)) == []
    only_event(harness.receive(call(1, version)), RequestReceived)
    harness.receive(cancelled(1))
    assert not harness.conn.send_error(1, ERROR)
    assert harness.take_sent() == []


@pytest.mark.requirement("CXL-6")
def test_waiting_request_cancelled_never_becomes_event() -> None:
    harness = server(in_flight=1)
    assert type_names(harness.receive(call(1), call(2), call("2"), cancelled(2))) == [
        "RequestReceived"
    ]
    harness.conn.send_result(1, EMPTY)
    assert only_event(harness.events(), RequestReceived).id == "2"


@pytest.mark.requirement("CXL-18")
@pytest.mark.parametrize("id", [1, "1"])
def test_related_requests_end_with_their_request(id: Any) -> None:
    """A nested request can't be answered any more; `1` and `"1"` are different requests."""
    other = str(id) if isinstance(id, int) else int(id)
    harness = server()
    harness.receive(call(id), call(other))
    sent = harness.conn.send_request("roots/list", related=id, token="mine")
    kept = harness.conn.send_request("roots/list", related=other, token="other")
    free = harness.conn.send_request("roots/list", token="free")
    harness.take_sent()
    assert harness.receive(cancelled(id)) == [RequestCancelled(id)]
    assert harness.take_sent() == [cancelled(sent, "the request it was made for is over")]
    assert harness.receive(result(sent, {"roots": []})) == []
    harness.conn.send_result(other, EMPTY)  # sent before the response to the nested request
    assert [message.get("method") for message in harness.take_sent()] == [
        "notifications/cancelled",
        None,
    ]
    assert harness.receive(result(kept, {"roots": []})) == []
    assert only_event(harness.receive(result(free, {"roots": []})), ResultReceived).token == "free"


# -- Limits and waiting ----------------------------------------------------------------------------


def test_requests_over_in_flight_wait_while_others_pass() -> None:
    harness = server(in_flight=2, waiting=2)
    events = harness.receive(call(1), call(2), call(3), ping(), cancelled(2), call(4))
    assert type_names(events) == ["RequestReceived", "RequestReceived", "RequestCancelled"]
    assert harness.take_sent() == [result("ping")]
    assert harness.conn.in_flight == 2
    assert harness.paused()
    harness.conn.send_result(2, EMPTY)
    assert only_event(harness.events(), RequestReceived).id == 3
    assert not harness.paused()


@pytest.mark.requirement("DEC-12")
def test_full_waiting_queue_pauses_until_timeout() -> None:
    """Reading stops for 5 s at most; then calls get an error that invites another try."""
    harness = server(in_flight=1, waiting=1, pause=5.0)
    harness.now = 10.0
    assert type_names(harness.receive(call(1), call(2), call(3), ping())) == ["RequestReceived"]
    assert harness.paused()
    assert harness.conn.next_deadline() == 15.0
    assert harness.advance_time(4.9) == []
    assert harness.paused()
    # Until the queue has room, requests are rejected; other messages are processed.
    assert_rejected(harness.advance_time(0.2), "too many requests")
    assert not harness.paused()
    refused, pong = harness.take_sent()
    assert_error(refused, -32000, 3, "ask again later")
    assert pong == result("ping")
    assert harness.conn.next_deadline() is None
    harness.conn.send_result(1, EMPTY)
    assert only_event(harness.events(), RequestReceived).id == 2
    assert harness.receive(call(4), call(5)) == []
    assert harness.paused()  # and the timeout begins again
    assert harness.conn.next_deadline() == pytest.approx(20.1)


@pytest.mark.requirement("ERR-9")
def test_busy_rejection_has_code_of_newest_revision() -> None:
    harness = server(E, in_flight=1, waiting=0)
    harness.receive(call(1, E))
    assert_error(harness.error_response_to(call(2, E)), 429, 2, "ask again later")
    assert not harness.paused()  # a server without a queue does not pause


def test_full_waiting_queue_does_not_pause_while_awaiting_response() -> None:
    """The response may be behind the requests in the input."""
    harness = server(in_flight=1, waiting=1)
    harness.receive(call(1))
    sent = harness.conn.send_request("roots/list", related=1, token="t")
    harness.take_sent()
    events = harness.receive(call(2), call(3), result(sent, {"roots": []}))
    assert type_names(events) == ["MessageRejected", "ResultReceived"]
    assert_error(single(harness.take_sent()), -32000, 3)


def test_full_waiting_queue_never_pauses_client() -> None:
    """Two sides that both stop reading would deadlock."""
    harness = opened(
        CLIENT, D, client_config(D, limits=Limits(in_flight=1, waiting=1, queued=1000))
    )
    events = harness.receive(*(request(i, "roots/list") for i in range(4)), ping())
    assert type_names(events) == ["RequestReceived", "MessageRejected", "MessageRejected"]
    assert not harness.paused()
    assert [message["id"] for message in harness.take_sent()] == [2, 3, "ping"]


def test_unread_responses_pause_server() -> None:
    harness = server(queued=100)
    assert harness.receive(*(ping(i) for i in range(20))) == []
    assert harness.paused()
    assert 100 < harness.conn.queued() < 200
    seen = 0
    while sent := harness.take_sent():
        seen += len(sent)
        harness.events()
    assert seen == 20
    assert not harness.paused()


def test_next_deadline_is_probe_timeout() -> None:
    harness = ConnectionHarness(Connection(CLIENT, client_config()))
    assert harness.conn.next_deadline() is None
    harness.conn.open(10.0)
    assert harness.conn.next_deadline() == 25.0
    harness.conn.close()
    assert harness.conn.next_deadline() is None


@pytest.mark.parametrize("more", [0, 1])
def test_message_size_limit_is_inclusive(more: int) -> None:
    """Both entries count alike: the line's CRLF is free, and one byte more is a parse error."""
    limit = len(encoded(ping(1)))
    message = encoded(ping(1)).replace(b"1}", b"1}", 1) + b" " * more
    harness = ConnectionHarness(Connection(SERVER, server_config(limits=Limits(message=limit))))
    calls: list[Callable[[], None]] = [
        lambda: harness.conn.receive_message(message, 0.0),
        lambda: harness.conn.receive_data(message + b"\r\n", 0.0),
    ]
    for receive in calls:
        receive()
        if more:
            assert_rejected(harness.events(), f"longer than {limit} bytes")
            assert_error(single(harness.take_sent()), -32700, 1)
        else:
            assert harness.events() == []
            assert harness.take_sent() == [result(1)]


# -- Messages one by one ---------------------------------------------------------------------------


def test_receive_message_takes_whole_messages() -> None:
    harness = server()
    harness.conn.receive_message(encoded(call(1)) + b"\n", 0.0)
    harness.conn.receive_message(b" \n", 0.0)
    harness.conn.receive_message(b"", 0.0)
    harness.conn.receive_message(encoded(cancelled(1)), 0.0)
    assert type_names(harness.events()) == ["RequestReceived", "RequestCancelled"]
    harness.conn.close()
    harness.events()
    harness.conn.receive_message(encoded(ping()), 0.0)
    assert harness.events() == []
    assert harness.take_sent() == []


# -- Batches ---------------------------------------------------------------------------------------


@pytest.mark.requirement("RPC-20", "RPC-21", "RPC-23", "RPC-24")
def test_batch_messages_are_processed_in_order() -> None:
    """A batch may mix calls, responses and notifications, even a cancellation of its own call."""
    harness = server(B)
    sent = harness.conn.send_request("roots/list", token="t")
    harness.take_sent()
    events = harness.receive(
        [
            ping(1),
            call(2),
            notification("odd"),
            result(sent, {"roots": []}),
            cancelled(2),
            ping("3"),
        ]
    )
    assert type_names(events) == ["RequestReceived", "ResultReceived", "RequestCancelled"]
    assert harness.take_sent() == [result(1), result("3")]


@pytest.mark.requirement("RPC-24")
def test_batch_of_notifications_has_no_response() -> None:
    harness = server(B)
    assert (
        harness.receive(
            [notification("odd"), notification("notifications/odd"), notification("initialize")]
        )
        == []
    )
    assert harness.take_sent() == []


@pytest.mark.requirement("RPC-20", "RPC-23")
def test_batch_at_client_is_processed() -> None:
    harness = client(B)
    first, second = harness.conn.send_request("tools/list"), harness.conn.send_request("ping")
    harness.take_sent()
    events = harness.receive([result(second), error(first), ping()])
    assert type_names(events) == ["ResultReceived", "ErrorReceived"]
    assert harness.take_sent() == [result("ping")]


@pytest.mark.requirement("RPC-22", "RPC-24")
@pytest.mark.parametrize(
    ("batch", "answers", "words"),
    [
        ([], [(-32600, None)], "between 1 and 3"),
        ([ping(i) for i in range(4)], [(-32600, None)], "this one has 4"),
        (b"[1,", [(-32700, None)], "not JSON"),
        ([initialize(B, 7)], [(-32600, 7)], "never part of a batch"),
        ([1, {}], [(-32600, None), (-32600, None)], ""),
        ([[ping()]], [(-32600, None)], "JSON object"),
        ([request(5, "odd")], [(-32601, 5)], "odd"),
    ],
)
def test_batch_invalid_rejected(batch: Any, answers: list[tuple[int, Any]], words: str) -> None:
    harness = server(B, batch=3)
    events = harness.receive(batch)
    assert type_names(events) == ["MessageRejected"] * len(answers)
    sent = harness.take_sent()
    for message, (code, id) in zip(sent, answers, strict=True):
        assert_error(message, code, id, words)
    assert harness.response_to([ping()]) == result("ping")


@pytest.mark.requirement("RPC-25")
@pytest.mark.parametrize("version", [version for version in VERSIONS if version != B])
@pytest.mark.parametrize("batch", [[], [ping()]])
def test_batch_in_other_revisions_rejected(version: str, batch: Any) -> None:
    harness = server(version)
    # Before the revision is known, the error has a null id as the earlier ones require.
    assert_error(
        harness.error_response_to(batch), -32600, ... if version == D else None, "not an array"
    )


def test_client_closes_when_server_reads_no_responses() -> None:
    """A client can't pause a server that it depends on: it closes instead of queuing more."""
    harness = ConnectionHarness(Connection(CLIENT, client_config(D, limits=Limits(queued=1000))))
    harness.conn.open(0.0)
    harness.take_sent()
    harness.receive(
        {
            "jsonrpc": "2.0",
            "id": 1,
            "result": {
                "protocolVersion": D,
                "capabilities": {},
                "serverInfo": {"name": "s", "version": "1"},
            },
        }
    )
    call = harness.conn.send_request("ping", token="mine")
    assert call
    events = harness.receive(*(ping(i) for i in range(100)))
    (end,) = [event for event in events if isinstance(event, ConnectionClosed)]
    assert end.lost == ["mine"]
    assert isinstance(end.error, RemoteProtocolError)
    assert harness.conn.queued() < 2000


@pytest.mark.parametrize(("size", "survives"), [(1_900, True), (4_000, False)])
def test_client_queues_a_few_large_responses(size: int, survives: bool) -> None:
    """Such as the image of a model: it is queued as a whole before anything of it is written."""
    limits = Limits(queued=1000, message=7_000)
    config = client_config(D, limits=limits)
    harness = opened(CLIENT, D, config)
    harness.receive(request(1, "roots/list"), request(2, "roots/list"), request(3, "roots/list"))
    for id in 1, 2, 3:
        harness.conn.send_result(id, {"roots": [{"uri": "file:///" + "x" * size}]})
    harness.receive(ping())
    closed = harness.conn.state.name == "CLOSED"
    assert closed is not survives


@pytest.mark.parametrize("number", [math.nan, math.inf, -math.inf])
def test_send_progress_infinite_or_nan_raises(number: float) -> None:
    harness = server(D)
    harness.receive(stateless_request(1, "tools/call", {"name": "t"}, progressToken=5))
    with pytest.raises(LocalProtocolError, match="finite"):
        harness.conn.send_progress(1, number)
    with pytest.raises(LocalProtocolError, match="finite"):
        harness.conn.send_progress(1, 1, number)
    assert harness.conn.send_progress(1, 1, 2)


@pytest.mark.parametrize(
    "raw",
    [b'{"a":\n}', b'{"a":"b\nc"}', b'{"a":}', b'{"a":1', b'{"a":1}}', b"[1]", b'{"a":"\xff"}', b""],
)
def test_raw_result_malformed_leaves_request_and_nested_requests(raw: bytes) -> None:
    harness = server()
    harness.receive(request(1, "tools/call", {"name": "t"}))
    nested = harness.conn.send_request("ping", related=1)
    harness.take_sent()
    with pytest.raises(ValueError, match="not a JSON object"):
        harness.conn.send_result(1, Raw(raw))
    assert harness.take_sent() == []
    assert harness.conn.has_incoming(1)
    assert harness.conn.has_outgoing(nested)
    assert harness.conn.send_error(1, t.ErrorData(code=1, message="m"))
    cancelled, sent = harness.take_sent()
    assert cancelled["params"]["requestId"] == nested
    assert sent["error"] == {"code": 1, "message": "m"}


def test_nested_raw_with_newline_never_breaks_framing() -> None:
    """A `Raw` inside a value is not checked, but it can neither add a line nor change the state."""
    harness = opened(SERVER, D)
    harness.receive(request(1, "tools/call", {"name": "t"}))
    nested = harness.conn.send_request("ping", related=1)
    harness.take_sent()
    with pytest.raises(ValueError, match="not JSON"):
        harness.conn.send_result(1, {"a": Raw(b'"b\nc"')})
    with pytest.raises(ValueError, match="not JSON"):
        harness.conn.send_request("ping", {"a": Raw(b'"b\nc"')})
    assert harness.take_sent() == []
    assert harness.conn.has_outgoing(nested)
    assert harness.conn.stats().calls == 1
    assert harness.conn.send_result(1, {"a": Raw(b"[\n1]")})
    assert harness.conn.data_to_send().count(b"\n") == 2


@pytest.mark.parametrize("member", ["_meta", "resultType"])
def test_raw_result_with_member_of_the_connection_raises(member: str) -> None:
    harness = server()
    harness.receive(stateless_request(1, "tools/call", {"name": "t"}))
    with pytest.raises(ValueError, match=f"has no {member}: the connection writes"):
        harness.conn.send_result(1, Raw(b'{"%b":1}' % member.encode()))
    assert harness.conn.has_incoming(1)


@pytest.mark.requirement("LIFE-9")
def test_log_message_before_initialize_result_accepted() -> None:
    harness = ConnectionHarness(Connection(CLIENT, client_config(D)))
    harness.conn.open(0.0)
    (event,) = harness.receive(
        notification("notifications/message", {"level": "info", "data": "starting"})
    )
    assert isinstance(event, NotificationReceived)
    assert event.peer is None
    assert harness.receive(notification("notifications/tools/list_changed")) == []
