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
from tests.core.connection.connection_setup import CLIENT, EMPTY, ERROR, SERVER
from tests.core.helpers import (
    VERSIONS,
    B,
    D,
    E,
    Message,
    Talk,
    assert_error,
    assert_rejected,
    call,
    cancelled,
    client,
    client_config,
    encoded,
    error,
    initialize,
    notification,
    only_event,
    opened,
    ping,
    request,
    result,
    server,
    server_config,
    single,
    stateless_request,
    type_names,
)

# -- Progress --------------------------------------------------------------------------------------


@pytest.mark.requirement("PROG-1", "PROG-3", "PROG-4", "PROG-5", "PROG-11")
@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("token", [0, 7, "", "seven"])
def test_send_progress_requires_token_and_increase(version: str, token: Any) -> None:
    talk = server(version)
    talk.receive(call(1, version, progressToken=token), call(2, version))
    told = [
        talk.conn.send_progress(1, *values)
        for values in ((0.5,), (0.5,), (0.25, 1), (1.5, 2, "soon"), (1.5,))
    ]
    assert told == [True, False, False, True, False]
    first, second = talk.take_sent()
    assert first == notification(
        "notifications/progress", {"progressToken": token, "progress": 0.5}
    )
    assert second["params"].pop("message", None) == (None if version == VERSIONS[0] else "soon")
    assert second["params"] == {"progressToken": token, "progress": 1.5, "total": 2}
    assert not talk.conn.send_progress(2, 1)  # no token
    assert not talk.conn.send_progress(3, 1)
    talk.conn.send_result(1, EMPTY)
    assert not talk.conn.send_progress(1, 9)
    assert len(talk.take_sent()) == 1


@pytest.mark.requirement("CXL-7")
def test_send_progress_after_cancellation_sends_nothing() -> None:
    talk = server()
    talk.receive(call(1, progressToken=1), cancelled(1))
    assert not talk.conn.send_progress(1, 1)
    assert talk.take_sent() == []


@pytest.mark.requirement("PROG-2", "PROG-13", "META-14")
@pytest.mark.parametrize("version", VERSIONS)
def test_progress_received_requires_request_and_increase(version: str) -> None:
    talk = client(version)
    id = talk.conn.send_request("tools/list", token="t", progress=True)
    quiet = talk.conn.send_request("tools/list")
    assert [
        message.get("params", {}).get("_meta", {}).get("progressToken")
        for message in talk.take_sent()
    ] == [
        id,
        None,
    ]

    def told(token: Any, progress: Any) -> Message:
        return notification(
            "notifications/progress",
            {"progressToken": token, "progress": progress, "total": 9, "message": "m"},
        )

    event = only_event(talk.receive(told(id, 1)), ProgressReceived)
    assert event == ProgressReceived(id, 1, 9, "m", "t")
    assert (
        talk.receive(told(id, 1), told(id, 0.5), told(str(id), 2), told(99, 2), told(quiet, 2))
        == []
    )
    assert only_event(talk.receive(told(id, 1.25)), ProgressReceived).progress == 1.25
    talk.receive(result(id, {"tools": []}))
    assert talk.receive(told(id, 2)) == []


# -- Cancellation ----------------------------------------------------------------------------------


@pytest.mark.requirement("CXL-1", "CXL-2", "CXL-3", "CXL-9", "CXL-13")
@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("reason", [None, "enough"])
def test_send_cancel_ignores_late_response(version: str, reason: str | None) -> None:
    talk = client(version)
    id = talk.conn.send_request("tools/list", progress=True)
    talk.take_sent()
    talk.conn.send_cancel(id, reason)
    assert talk.take_sent() == [cancelled(id, reason)]
    talk.conn.send_cancel(id)  # the second one has no effect
    talk.conn.send_cancel(99)
    assert talk.take_sent() == []
    late = [
        notification("notifications/progress", {"progressToken": id, "progress": 1}),
        result(id, {"tools": []}),
        error(id),
    ]
    assert talk.receive(*late) == []
    assert talk.take_sent() == []


@pytest.mark.requirement("CXL-4", "LIFE-16")
@pytest.mark.parametrize("version", VERSIONS)
def test_send_cancel_of_opening_request_does_nothing(version: str) -> None:
    talk = Talk(Connection(CLIENT, client_config(version)))
    talk.conn.open(0.0)
    asked = single(talk.take_sent())
    talk.conn.send_cancel(asked["id"])
    assert talk.take_sent() == []
    assert talk.receive(error(asked["id"])) != []  # the response is still processed


@pytest.mark.requirement("CXL-6", "CXL-8", "CXL-10")
@pytest.mark.parametrize("version", VERSIONS)
def test_request_cancelled_keeps_id_until_handler_returns(version: str) -> None:
    talk = server(version)
    talk.receive(call(1, version))
    assert talk.receive(cancelled("1")) == []
    assert talk.receive(cancelled(1, "enough")) == [RequestCancelled(1, "enough")]
    assert talk.receive(cancelled(1)) == []
    assert talk.conn.in_flight == 1
    assert_error(talk.error_response_to(call(1, version)), -32600, 1, "still in use")
    assert not talk.conn.send_result(1, EMPTY)
    assert talk.conn.in_flight == 0
    assert talk.take_sent() == []
    assert talk.receive(cancelled(1)) == []
    only_event(talk.receive(call(1, version)), RequestReceived)
    talk.receive(cancelled(1))
    assert not talk.conn.send_error(1, ERROR)
    assert talk.take_sent() == []


@pytest.mark.requirement("CXL-6")
def test_waiting_request_cancelled_never_becomes_event() -> None:
    talk = server(in_flight=1)
    assert type_names(talk.receive(call(1), call(2), call("2"), cancelled(2))) == [
        "RequestReceived"
    ]
    talk.conn.send_result(1, EMPTY)
    assert only_event(talk.events(), RequestReceived).id == "2"


@pytest.mark.requirement("CXL-18")
@pytest.mark.parametrize("id", [1, "1"])
def test_related_requests_end_with_their_request(id: Any) -> None:
    other = str(id) if isinstance(id, int) else int(id)
    talk = server()
    talk.receive(call(id), call(other))
    asked = talk.conn.send_request("roots/list", related=id, token="mine")
    kept = talk.conn.send_request("roots/list", related=other, token="other")
    free = talk.conn.send_request("roots/list", token="free")
    talk.take_sent()
    assert talk.receive(cancelled(id)) == [RequestCancelled(id)]
    assert talk.take_sent() == [cancelled(asked, "the request it was made for is over")]
    assert talk.receive(result(asked, {"roots": []})) == []
    talk.conn.send_result(other, EMPTY)  # sent before the response to the nested request
    assert [message.get("method") for message in talk.take_sent()] == [
        "notifications/cancelled",
        None,
    ]
    assert talk.receive(result(kept, {"roots": []})) == []
    assert only_event(talk.receive(result(free, {"roots": []})), ResultReceived).token == "free"


# -- Limits and waiting ----------------------------------------------------------------------------


def test_requests_over_in_flight_wait_while_others_pass() -> None:
    talk = server(in_flight=2, waiting=2)
    events = talk.receive(call(1), call(2), call(3), ping(), cancelled(2), call(4))
    assert type_names(events) == ["RequestReceived", "RequestReceived", "RequestCancelled"]
    assert talk.take_sent() == [result("ping")]
    assert talk.conn.in_flight == 2
    assert talk.paused()
    talk.conn.send_result(2, EMPTY)
    assert only_event(talk.events(), RequestReceived).id == 3
    assert not talk.paused()


@pytest.mark.requirement("DEC-12")
def test_full_waiting_queue_pauses_until_timeout() -> None:
    talk = server(in_flight=1, waiting=1, pause=5.0)
    talk.now = 10.0
    assert type_names(talk.receive(call(1), call(2), call(3), ping())) == ["RequestReceived"]
    assert talk.paused()
    assert talk.conn.next_deadline() == 15.0
    assert talk.advance_time(4.9) == []
    assert talk.paused()
    # Until the queue has room, requests are rejected; other messages are processed.
    assert_rejected(talk.advance_time(0.2), "too many requests")
    assert not talk.paused()
    refused, pong = talk.take_sent()
    assert_error(refused, -32000, 3, "ask again later")
    assert pong == result("ping")
    assert talk.conn.next_deadline() is None
    talk.conn.send_result(1, EMPTY)
    assert only_event(talk.events(), RequestReceived).id == 2
    assert talk.receive(call(4), call(5)) == []
    assert talk.paused()  # and the timeout begins again
    assert talk.conn.next_deadline() == pytest.approx(20.1)


@pytest.mark.requirement("ERR-9")
def test_busy_rejection_code_of_newest_revision() -> None:
    talk = server(E, in_flight=1, waiting=0)
    talk.receive(call(1, E))
    assert_error(talk.error_response_to(call(2, E)), 429, 2, "ask again later")
    assert not talk.paused()  # a server without a queue does not pause


def test_full_waiting_queue_does_not_pause_while_awaiting_response() -> None:
    """The response may be behind the requests in the input."""
    talk = server(in_flight=1, waiting=1)
    talk.receive(call(1))
    asked = talk.conn.send_request("roots/list", related=1, token="t")
    talk.take_sent()
    events = talk.receive(call(2), call(3), result(asked, {"roots": []}))
    assert type_names(events) == ["MessageRejected", "ResultReceived"]
    assert_error(single(talk.take_sent()), -32000, 3)


def test_full_waiting_queue_never_pauses_client() -> None:
    """Two sides that both stop reading would deadlock."""
    talk = opened(CLIENT, D, client_config(D, limits=Limits(in_flight=1, waiting=1, queued=1000)))
    events = talk.receive(*(request(i, "roots/list") for i in range(4)), ping())
    assert type_names(events) == ["RequestReceived", "MessageRejected", "MessageRejected"]
    assert not talk.paused()
    assert [message["id"] for message in talk.take_sent()] == [2, 3, "ping"]


def test_unread_responses_pause_server() -> None:
    talk = server(queued=100)
    assert talk.receive(*(ping(i) for i in range(20))) == []
    assert talk.paused()
    assert 100 < talk.conn.queued() < 200
    seen = 0
    while said := talk.take_sent():
        seen += len(said)
        talk.events()
    assert seen == 20
    assert not talk.paused()


def test_next_deadline_is_probe_timeout() -> None:
    talk = Talk(Connection(CLIENT, client_config()))
    assert talk.conn.next_deadline() is None
    talk.conn.open(10.0)
    assert talk.conn.next_deadline() == 15.0
    talk.conn.close()
    assert talk.conn.next_deadline() is None


@pytest.mark.parametrize("more", [0, 1])
def test_message_size_limit_is_inclusive(more: int) -> None:
    limit = len(encoded(ping(1)))
    message = encoded(ping(1)).replace(b"1}", b"1}", 1) + b" " * more
    talk = Talk(Connection(SERVER, server_config(limits=Limits(message=limit))))
    ways: list[Callable[[], None]] = [
        lambda: talk.conn.receive_message(message, 0.0),
        lambda: talk.conn.receive_data(message + b"\r\n", 0.0),
    ]
    for receive in ways:
        receive()
        if more:
            assert_rejected(talk.events(), f"longer than {limit} bytes")
            assert_error(single(talk.take_sent()), -32700, None)
        else:
            assert talk.events() == []
            assert talk.take_sent() == [result(1)]


# -- Messages one by one ---------------------------------------------------------------------------


def test_receive_message_takes_whole_messages() -> None:
    talk = server()
    talk.conn.receive_message(encoded(call(1)) + b"\n", 0.0)
    talk.conn.receive_message(b" \n", 0.0)
    talk.conn.receive_message(b"", 0.0)
    talk.conn.receive_message(encoded(cancelled(1)), 0.0)
    assert type_names(talk.events()) == ["RequestReceived", "RequestCancelled"]
    talk.conn.close()
    talk.events()
    talk.conn.receive_message(encoded(ping()), 0.0)
    assert talk.events() == []
    assert talk.take_sent() == []


# -- Batches ---------------------------------------------------------------------------------------


@pytest.mark.requirement("RPC-20", "RPC-21", "RPC-23", "RPC-24")
def test_batch_messages_are_processed_in_order() -> None:
    talk = server(B)
    asked = talk.conn.send_request("roots/list", token="t")
    talk.take_sent()
    events = talk.receive(
        [
            ping(1),
            call(2),
            notification("odd"),
            result(asked, {"roots": []}),
            cancelled(2),
            ping("3"),
        ]
    )
    assert type_names(events) == ["RequestReceived", "ResultReceived", "RequestCancelled"]
    assert talk.take_sent() == [result(1), result("3")]


@pytest.mark.requirement("RPC-24")
def test_batch_of_notifications_has_no_response() -> None:
    talk = server(B)
    assert (
        talk.receive(
            [notification("odd"), notification("notifications/odd"), notification("initialize")]
        )
        == []
    )
    assert talk.take_sent() == []


@pytest.mark.requirement("RPC-20", "RPC-23")
def test_batch_at_client_is_processed() -> None:
    talk = client(B)
    first, second = talk.conn.send_request("tools/list"), talk.conn.send_request("ping")
    talk.take_sent()
    events = talk.receive([result(second), error(first), ping()])
    assert type_names(events) == ["ResultReceived", "ErrorReceived"]
    assert talk.take_sent() == [result("ping")]


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
    talk = server(B, batch=3)
    events = talk.receive(batch)
    assert type_names(events) == ["MessageRejected"] * len(answers)
    said = talk.take_sent()
    for message, (code, id) in zip(said, answers, strict=True):
        assert_error(message, code, id, words)
    assert talk.response_to([ping()]) == result("ping")


@pytest.mark.requirement("RPC-25")
@pytest.mark.parametrize("version", [version for version in VERSIONS if version != B])
@pytest.mark.parametrize("batch", [[], [ping()]])
def test_batch_in_other_revisions_rejected(version: str, batch: Any) -> None:
    talk = server(version)
    # Before the revision is known, the error has a null id as the earlier ones require.
    assert_error(
        talk.error_response_to(batch), -32600, ... if version == D else None, "not an array"
    )


def test_client_closes_when_server_reads_no_responses() -> None:
    talk = Talk(Connection(CLIENT, client_config(D, limits=Limits(queued=1000))))
    talk.conn.open(0.0)
    talk.take_sent()
    talk.receive(
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
    call = talk.conn.send_request("ping", token="mine")
    assert call
    events = talk.receive(*(ping(i) for i in range(100)))
    (end,) = [event for event in events if isinstance(event, ConnectionClosed)]
    assert end.lost == ["mine"]
    assert isinstance(end.error, RemoteProtocolError)
    assert talk.conn.queued() < 2000


@pytest.mark.parametrize("number", [math.nan, math.inf, -math.inf])
def test_send_progress_infinite_or_nan_raises(number: float) -> None:
    talk = server(D)
    talk.receive(stateless_request(1, "tools/call", {"name": "t"}, progressToken=5))
    with pytest.raises(LocalProtocolError, match="finite"):
        talk.conn.send_progress(1, number)
    with pytest.raises(LocalProtocolError, match="finite"):
        talk.conn.send_progress(1, 1, number)
    assert talk.conn.send_progress(1, 1, 2)


def test_raw_result_not_json_leaves_request_open() -> None:
    talk = server()
    talk.receive(stateless_request(1, "tools/call", {"name": "t"}))
    with pytest.raises(ValueError, match="not JSON"):
        talk.conn.send_result(1, Raw(b'{"a":\n}'))
    assert talk.take_sent() == []
    assert talk.conn.send_error(1, t.ErrorData(code=1, message="m"))
    (said,) = talk.take_sent()
    assert said["error"] == {"code": 1, "message": "m"}


@pytest.mark.requirement("LIFE-9")
def test_log_message_before_initialize_result_accepted() -> None:
    talk = Talk(Connection(CLIENT, client_config(D)))
    talk.conn.open(0.0)
    (event,) = talk.receive(
        notification("notifications/message", {"level": "info", "data": "starting"})
    )
    assert isinstance(event, NotificationReceived)
    assert event.peer is None
    assert talk.receive(notification("notifications/tools/list_changed")) == []
