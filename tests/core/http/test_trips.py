"""What becomes of one request of Streamable HTTP: whatever the response is, the call has an end; and a stream that breaks is taken up
again where that may be, so that each message is heard once and in order."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcp_core import (
    AuthRequired,
    ConnectionLost,
    ErrorReceived,
    Fault,
    InputRequested,
    Limits,
    MessageRejected,
    NotificationReceived,
    PeerError,
    ProgressReceived,
    RemoteProtocolError,
    RequestReceived,
    ResultReceived,
)
from mcp_core import types as t
from tests.core.helpers import B, C, D, E, Message, error, notification, request, result
from tests.core.http.client_net import (
    EVENTS,
    JSON,
    Net,
    asks,
    event,
    header,
    initialized_by,
    kinds,
    opened,
    said,
)

CONTENT: Message = {"content": [], "resultType": "complete"}
ERAS = [B, C, D, E]


def progress(id: int, so_far: float) -> Message:
    return notification("notifications/progress", {"progressToken": id, "progress": so_far})


def failure(net: Net) -> Any:
    found = net.event()
    assert isinstance(found, ErrorReceived)
    return found.error


# -- Answers -------------------------------------------------------------------------------------------------------------


@pytest.mark.requirement("HTTP-12")
@pytest.mark.parametrize("version", ERAS)
@pytest.mark.parametrize("how", [JSON, EVENTS])
@pytest.mark.parametrize("answer", ["result", "error"])
def test_an_answer(version: str, how: str, answer: str) -> None:
    net = opened(version)
    id, call = asks(net)
    message = result(id, CONTENT) if answer == "result" else error(id, -7, "no")
    if how == JSON:
        net.answer(call, message)
    else:
        net.streams(call, message)
    found = net.event()
    if answer == "result":
        assert isinstance(found, ResultReceived)
    else:
        assert isinstance(found, ErrorReceived)
        assert isinstance(found.error, PeerError)
    assert (found.id, found.token) == (id, "T")
    assert net.http.idle


@pytest.mark.requirement("HTTP-12")
@pytest.mark.parametrize("version", ERAS)
@pytest.mark.parametrize("status", [400, 404, 500, 503])
@pytest.mark.parametrize("its_id", ["ours", "null", "none", "server-error"])
def test_an_error_in_the_body_says_more_than_the_status(version: str, status: int, its_id: str) -> None:
    net = opened(version, session=None)
    id, call = asks(net)
    body = error(id, -32021, "no") | (
        {} if its_id == "ours" else {"id": None if its_id == "null" else its_id}
    )
    if its_id == "none":
        del body["id"]
    net.answer(call, body, status)
    found = failure(net)
    assert isinstance(found, PeerError)
    assert (found.code, found.message) == (-32021, "no")
    assert net.http.idle


@pytest.mark.parametrize(
    ("status", "type", "body", "headers", "expected", "text"),
    [
        (400, "text/plain", "Missing id", {}, RemoteProtocolError, "tools/call: HTTP status 400 Bad Request (Missing id)"),
        (400, JSON, '{"jsonrpc":"2.0","method":"x"}', {}, RemoteProtocolError, "HTTP status 400"),
        (400, JSON, '{"jsonrpc":"2.0","id":77,"result":{}}', {}, RemoteProtocolError, "HTTP status 400"),
        (401, JSON, '{"error":"invalid_token"}', {"www_authenticate": "Bearer"}, AuthRequired, "HTTP status 401"),
        (401, JSON, '{"jsonrpc":"2.0","id":2,"error":{"code":-1,"message":"m"}}', {}, AuthRequired, "HTTP status 401"),
        (403, "text/plain", "", {"www_authenticate": "Bearer"}, AuthRequired, "HTTP status 403"),
        (403, "text/plain", "bad origin", {}, RemoteProtocolError, "not under this name (bad origin)"),
        (404, "text/html", "<h1>", {}, RemoteProtocolError, "is this the URL of an MCP server?"),
        (405, "text/plain", "", {"allow": "GET"}, RemoteProtocolError, "405 Method Not Allowed"),
        (406, "text/plain", "", {}, RemoteProtocolError, "406 Not Acceptable"),
        (415, "text/plain", "", {}, RemoteProtocolError, "415 Unsupported Media Type"),
        (429, "text/plain", "", {"retry_after": "3"}, RemoteProtocolError, "try again after 3 s"),
        (502, "text/html", "<h1>", {}, RemoteProtocolError, "502 Bad Gateway"),
        (503, "text/plain", "", {"retry_after": "3"}, RemoteProtocolError, "try again after 3 s"),
        (301, "text/plain", "", {"location": "http://b/"}, RemoteProtocolError, "connect to http://b/"),
        (200, "text/html", "<h1>", {}, RemoteProtocolError, "of type 'text/html' instead of JSON"),
        (200, None, "{}", {}, RemoteProtocolError, "of no type instead of JSON"),
        (200, JSON, "", {}, RemoteProtocolError, "gives no answer"),
        (202, None, "", {}, RemoteProtocolError, "(status 202) and gives no answer"),
        (204, None, "", {}, RemoteProtocolError, "(status 204) and gives no answer"),
        (200, JSON, "<h1>", {}, RemoteProtocolError, "tools/call: the answer is none: "),
        (200, JSON, "{}", {}, RemoteProtocolError, "tools/call: the answer is none: "),
        (200, JSON, '{"jsonrpc":"2.0","id":"2","result":{}}', {}, RemoteProtocolError, "that to another request"),
        (200, JSON, '{"jsonrpc":"2.0","id":9,"result":{}}', {}, RemoteProtocolError, "that to another request"),
        (200, JSON, '{"jsonrpc":"2.0","id":2,"method":"ping"}', {}, RemoteProtocolError, "another message than its answer"),
        (200, JSON, '{"jsonrpc":"2.0","id":2,"result":3}', {}, RemoteProtocolError, "no result of its kind"),
        (200, JSON, "[]", {}, RemoteProtocolError, ""),
        (200, JSON, "{}", {"content_encoding": "gzip"}, RemoteProtocolError, "encoded (gzip)"),
        (200, EVENTS, "data: x", {"content_encoding": "br"}, RemoteProtocolError, "encoded (br)"),
        (200, JSON, "x" * 5000, {}, RemoteProtocolError, "longer than 4096 bytes"),
        (200, EVENTS, "data: " + "x" * 5000 + "\n\n", {}, RemoteProtocolError, "than 4096 bytes"),
        (200, EVENTS, "data: {}\n\n", {}, RemoteProtocolError, "ended without the answer"),
        (200, EVENTS, "", {}, RemoteProtocolError, "ended without the answer"),
        (200, EVENTS, 'data: {"jsonrpc":"2.0","id":2,"resu', {}, RemoteProtocolError, "ended without the answer"),
    ],
)  # fmt: skip
@pytest.mark.parametrize("version", ERAS)
def test_what_is_no_answer_ends_the_call(
    version: str, status: int, type: str | None, body: str, headers: Any, expected: type, text: str
) -> None:
    net = opened(version, session=None, limits=Limits(message=4096))
    id, call = asks(net)
    assert id == 2
    net.answer(call, body.encode(), status, type, **headers)
    *before, failed = net.events()
    assert set(kinds(before)) <= {"MessageRejected"}
    assert isinstance(failed, ErrorReceived)
    assert isinstance(failed.error, expected)
    assert text in str(failed.error)
    assert net.asked() == []
    assert net.http.idle
    # It is the only one that it ends.
    id, call = asks(net)
    net.answer(call, result(id, CONTENT))
    assert isinstance(net.event(), ResultReceived)


@pytest.mark.parametrize("version", ERAS)
@pytest.mark.parametrize("when", ["before", "json", "sse", "refusal"])
def test_a_connection_that_breaks(version: str, when: str) -> None:
    net = opened(version)
    _, call = asks(net)
    if when == "refusal":
        net.starts(call, 500, "text/plain")
    elif when != "before":
        net.starts(call, 200, JSON if when == "json" else EVENTS)
        net.gives(call, b'{"jsonrpc"' if when == "json" else event(progress(2, 1)))
    net.ends(call, "the connection was reset")
    found = failure(net)
    assert isinstance(found, ConnectionLost)
    assert "tools/call: " in str(found)
    assert "the connection was reset" in str(found)
    assert net.asked() == []
    assert net.http.idle


@pytest.mark.parametrize("status", [429, 502, 503, 504])
def test_what_may_go_well_another_time(status: int) -> None:
    net = opened(E)
    _, call = asks(net)
    net.answer(call, "", status, "text/plain")
    found = failure(net)
    assert found.fault is Fault.BUSY
    assert found.data["status"] == status


@pytest.mark.requirement("SHL-1")
def test_a_batch_in_the_revision_that_has_them() -> None:
    net = opened(B)
    id, call = asks(net)
    net.answer(call, [notification("notifications/tools/list_changed"), result(id, CONTENT)])
    assert kinds(net.events()) == ["NotificationReceived", "ResultReceived"]
    # What we send is single all the same.
    assert isinstance(said(call), dict)


def test_a_batch_without_the_answer() -> None:
    net = opened(B)
    _, call = asks(net)
    net.answer(call, [notification("notifications/tools/list_changed")])
    told, failed = net.events()
    assert isinstance(told, NotificationReceived)
    assert "no answer to it in the response" in str(failed.error)


def test_an_answer_may_ask_for_input() -> None:
    net = opened(E)
    id, call = asks(net)
    net.answer(call, result(id, {"resultType": "input_required", "requestState": "s"}))
    assert isinstance(net.event(), InputRequested)
    assert net.http.idle


@pytest.mark.parametrize("status", [400, 500])
def test_a_notification_that_is_refused_is_reported(status: int) -> None:
    net = opened(D)
    net.conn.send_notification("notifications/roots/list_changed")
    net.answer(net.call(), "no", status, "text/plain")
    rejected = net.event()
    assert isinstance(rejected, MessageRejected)
    assert str(rejected.error).startswith(f"notifications/roots/list_changed: HTTP status {status}")


def test_a_notification_that_is_lost_is_reported() -> None:
    net = opened(D)
    net.conn.send_notification("notifications/roots/list_changed")
    net.ends(net.call(), "connection refused")
    assert str(net.event().error) == "notifications/roots/list_changed: connection refused"


def test_a_notification_whose_response_does_not_come_is_reported() -> None:
    net = opened(D)
    net.conn.send_notification("notifications/roots/list_changed")
    call = net.call()
    net.at(29.9)
    assert net.dropped == net.events() == []
    net.at(30.0)
    assert str(net.event().error) == "notifications/roots/list_changed: no response within 30 s"
    assert net.dropped == [call.key]
    assert net.http.idle


def test_a_notification_may_be_answered_by_anything_good() -> None:
    net = opened(D)
    net.conn.send_notification("notifications/roots/list_changed")
    net.answer(net.call(), "ok", 200, "text/plain")
    net.conn.send_notification("notifications/roots/list_changed")
    net.streams(net.call(), notification("notifications/tools/list_changed"))
    assert kinds(net.events()) == ["NotificationReceived"]
    assert net.http.idle


# -- Streams --------------------------------------------------------------------------------------------------------------


@pytest.mark.requirement("HTTP-11", "SHM-16")
def test_what_is_on_a_stream() -> None:
    net = opened(E)
    id, call = asks(net, progress=True)
    net.starts(call)
    net.gives(
        call,
        b": a comment\n\n",
        event(),
        event("other", event="note"),
        event(progress(id, 1)),
        event(progress(id, 2), event="message"),
        event(notification("notifications/message", {"level": "info", "data": "x"})),
    )
    first, second, log = net.events()
    assert isinstance(first, ProgressReceived)
    assert isinstance(second, ProgressReceived)
    assert isinstance(log, NotificationReceived)
    assert log.related == id
    net.gives(call, event(result(id, CONTENT)))
    assert isinstance(net.event(), ResultReceived)
    net.ends(call)
    assert net.http.idle


def test_a_request_on_a_stream_is_answered_by_a_post() -> None:
    net = opened(D)
    id, call = asks(net)
    net.starts(call)
    net.gives(call, event(request("q", "roots/list")))
    asked = net.event()
    assert isinstance(asked, RequestReceived)
    assert asked.related == id
    net.conn.send_result("q", t.ListRootsResult(roots=[]))
    answer = net.call()
    assert (said(answer)["id"], answer.brief, answer.idempotent) == ("q", True, True)
    assert header(answer, "mcp-session-id") == "one"
    assert header(answer, "mcp-protocol-version") == D
    net.answer(answer)
    net.gives(call, event(result(id, CONTENT)))
    assert isinstance(net.event(), ResultReceived)


def test_a_stream_that_does_not_end_is_ended() -> None:
    net = opened(E)
    id, call = asks(net)
    net.starts(call)
    net.gives(call, event(result(id, CONTENT)))
    assert net.http.next_deadline() == 5.0
    net.at(3.0)
    net.gives(call, b": still here\n\n")
    net.at(4.9)
    assert net.dropped == []
    net.at(5.0)
    assert net.dropped == [call.key]
    assert net.http.idle


def test_an_answer_on_the_stream_of_another_request_counts() -> None:
    net = opened(D)
    one, first = asks(net)
    two, second = asks(net)
    net.starts(first)
    net.gives(first, event(id="a"), event(result(two, CONTENT)))
    assert net.event().id == two
    net.starts(second)
    net.ends(second, "reset")
    assert net.events() == []
    net.gives(first, event(result(one, CONTENT)))
    assert net.event().id == one


@pytest.mark.requirement("SHM-12", "SHM-13")
def test_no_stream_of_the_stateless_era_is_taken_up_again() -> None:
    net = opened(E)
    _, call = asks(net)
    net.starts(call)
    net.gives(call, event(progress(2, 1), id="7"))
    net.ends(call)
    assert isinstance(failure(net), RemoteProtocolError)
    _, call = asks(net)
    net.starts(call)
    net.gives(call, event(progress(2, 1), id="7"))
    net.ends(call, "reset")
    assert isinstance(failure(net), ConnectionLost)
    assert net.asked() == []
    assert net.http.next_deadline() is None


def test_a_listen_stream_that_ends_without_a_word_is_lost() -> None:
    net = opened(E)
    params = t.ListenParams(notifications=t.SubscriptionFilter(tools_list_changed=True))
    _, call = asks(net, "subscriptions/listen", params)
    net.starts(call)
    net.ends(call)
    assert isinstance(failure(net), ConnectionLost)


@pytest.mark.requirement("SHL-8", "SHL-18")
@pytest.mark.parametrize("version", [B, C, D])
@pytest.mark.parametrize(("retry", "delay"), [(500, 0.5), (None, 1.0), (60_000, 30.0)])
@pytest.mark.parametrize("broken", [None, "reset"])
def test_a_stream_is_taken_up_again(
    version: str, retry: int | None, delay: float, broken: str | None
) -> None:
    net = opened(version)
    id, call = asks(net, progress=True)
    net.now = 100.0
    net.starts(call)
    if retry is not None:
        net.gives(call, b"retry: %d\n\n" % retry)
    net.gives(call, event(id="s-0"), event(progress(id, 1), id="s-1"), b"id: s-2\nda")
    net.ends(call, broken)
    assert kinds(net.events()) == ["ProgressReceived"]
    assert net.asked() == []
    assert net.http.next_deadline() == 100.0 + delay
    net.at(100.0 + delay - 0.01)
    assert net.asked() == []
    net.at(100.0 + delay)
    get = net.call()
    assert (get.head.method, get.body, get.long, get.idempotent) == (b"GET", b"", True, True)
    assert header(get, "last-event-id") == "s-1"
    assert header(get, "accept") == "text/event-stream"
    assert header(get, "mcp-session-id") == "one"
    assert header(get, "mcp-protocol-version") == (None if version == B else version)
    net.starts(get)
    net.gives(get, event(id="s-1"), event(progress(id, 2), id="s-2"), event(result(id, CONTENT), id="s-3"))
    net.ends(get)
    assert kinds(net.events()) == ["ProgressReceived", "ResultReceived"]
    assert net.http.idle


def test_messages_of_a_resumed_stream_belong_to_the_call() -> None:
    net = opened(D)
    id, call = asks(net)
    net.starts(call)
    net.gives(call, event(id="a"))
    net.ends(call)
    net.at(1.0)
    get = net.call()
    net.starts(get)
    net.gives(get, event(request("q", "roots/list")))
    assert net.event().related == id
    net.gives(get, event(result(id, CONTENT)))
    assert isinstance(net.event(), ResultReceived)
    net.at(6.0)
    assert net.dropped == [get.key]  # it did not end by itself
    assert net.http.idle


@pytest.mark.parametrize("version", [B, C, D])
def test_before_any_id_nothing_is_tried(version: str) -> None:
    net = opened(version)
    _, call = asks(net)
    net.starts(call)
    net.gives(call, b"id: s-0\ndata:\n")  # the blank line is missing
    net.ends(call, "reset")
    assert isinstance(failure(net), ConnectionLost)
    assert net.asked() == []


def resuming(net: Net) -> tuple[int, Any]:
    """A call whose stream has broken, and the GET that takes it up again."""
    id, call = asks(net, progress=True)
    net.starts(call)
    net.gives(call, event(id="a"))
    net.ends(call)
    deadline = net.http.next_deadline()
    assert deadline is not None
    net.at(deadline)
    return id, net.call()


def fails(net: Net, get: Any, how: str) -> None:
    if how == "refused":
        net.ends(get, "connection refused")
    elif how == "silent":
        net.starts(get)
        net.gives(get, b": hello\n\n")
        net.ends(get)
    else:
        net.answer(get, "", int(how), "text/plain")


@pytest.mark.parametrize("how", ["refused", "silent", "500", "503", "429"])
def test_there_is_an_end_to_trying(how: str) -> None:
    net = opened(D)
    _, get = resuming(net)
    times = [net.now]
    for _ in range(4):
        fails(net, get, how)
        deadline = net.http.next_deadline()
        assert deadline is not None
        net.at(deadline)
        times.append(deadline)
        get = net.call()
        assert header(get, "last-event-id") == "a"
    assert times == [1, 3, 7, 15, 31]
    fails(net, get, how)
    found = failure(net)
    assert isinstance(found, ConnectionLost)
    assert "given up after 5 attempts" in str(found)
    assert net.http.idle


def test_progress_begins_the_count_anew() -> None:
    net = opened(D)
    id, get = resuming(net)
    for attempt in range(20):
        net.starts(get)
        net.gives(get, event(id=f"b-{attempt}"))
        net.ends(get)
        net.at(net.now + 1.0)
        get = net.call()
        assert header(get, "last-event-id") == f"b-{attempt}"
    net.starts(get)
    net.gives(get, event(result(id, CONTENT)))
    assert isinstance(net.event(), ResultReceived)


@pytest.mark.parametrize(
    ("status", "type", "headers", "expected", "text"),
    [
        (400, "text/plain", {}, ConnectionLost, "HTTP status 400"),
        (405, "text/plain", {}, ConnectionLost, "HTTP status 405"),
        (401, "text/plain", {}, AuthRequired, "HTTP status 401"),
        (200, "text/html", {}, RemoteProtocolError, "'text/html'"),
        (204, None, {}, RemoteProtocolError, "of no type"),
        (200, EVENTS, {"content_encoding": "gzip"}, RemoteProtocolError, "encoded"),
    ],
)
def test_what_is_no_use_is_not_tried_again(
    status: int, type: str | None, headers: Any, expected: type, text: str
) -> None:
    net = opened(D)
    _, get = resuming(net)
    net.starts(get, status, type, **headers)
    net.gives(get, b"x")
    net.ends(get)
    found = failure(net)
    assert isinstance(found, expected)
    assert text in str(found)
    assert net.http.idle


def test_an_event_over_the_limit_on_a_resumed_stream() -> None:
    net = opened(D, limits=Limits(message=1000))
    _, get = resuming(net)
    net.starts(get)
    net.gives(get, b"data: " + b"x" * 1001 + b"\n\n")
    assert isinstance(failure(net), RemoteProtocolError)
    assert net.dropped == [get.key]


def test_a_resumed_call_is_cancelled_by_a_message() -> None:
    net = opened(D)
    id, get = resuming(net)
    fails(net, get, "refused")
    net.conn.send_cancel(id)
    told = net.call()
    assert said(told)["params"]["requestId"] == id
    net.answer(told)
    assert net.http.next_deadline() is None
    assert net.http.idle


def test_the_answer_came_another_way_while_it_was_resumed() -> None:
    net = opened(D)
    id, get = resuming(net)
    other, call = asks(net)
    net.starts(call)
    net.gives(call, event(result(id, CONTENT)), event(result(other, CONTENT)))
    assert len(net.events()) == 2
    net.ends(get, "reset")
    assert net.http._transport._reading.keys() == {other}  # type: ignore[attr-defined]


def test_a_lost_session_ends_a_resumed_call() -> None:
    net = opened(D)
    _, get = resuming(net)
    net.answer(get, "", 404)
    assert "lost the session" in str(failure(net))
    assert said(net.call())["method"] == "initialize"


# -- Cut anywhere ------------------------------------------------------------------------------------------------------------


def wire(id: int, count: int) -> list[bytes]:
    """A stream with a first event, `count` of progress, and the answer."""
    return [
        event(id="s-0", retry=0),
        *(event(progress(id, number), id=f"s-{number}") for number in range(1, count + 1)),
        event(result(id, CONTENT), id=f"s-{count + 1}"),
    ]


def run(count: int, cuts: list[int], chunk: int = 1 << 20) -> list[Any]:
    """What the client hears if the n-th response breaks after `cuts[n]` bytes."""
    net = opened(D)
    id, call = asks(net, progress=True)
    events = wire(id, count)
    rest = list(cuts)
    while True:
        after = header(call, "last-event-id")
        seen = 0 if after is None else int(after.partition("-")[2]) + 1
        data = b"".join(events[seen:])
        cut = rest.pop(0) if rest else None
        net.starts(call)
        data = data[:cut]
        net.gives(call, *(data[place : place + chunk] for place in range(0, len(data), chunk)))
        net.ends(call, None if cut is None else "reset")
        calls = net.asked()
        if not calls:
            if net.http.next_deadline() is None:
                break
            net.at(net.now + 30.0)
            calls = net.asked()
        (call,) = calls
    assert net.http.idle
    return [
        each.progress if isinstance(each, ProgressReceived) else type(each).__name__ for each in net.events()
    ]


@pytest.mark.parametrize(("chunk", "step"), [(1 << 20, 1), (1, 17), (7, 5)])
def test_a_stream_cut_at_every_byte(chunk: int, step: int) -> None:
    events = wire(2, 5)
    primed, total = len(events[0]), sum(map(len, events))
    for cut in range(0, total + 1, step):
        heard = run(5, [cut], chunk)
        assert heard == (["ErrorReceived"] if cut < primed else [1, 2, 3, 4, 5, "ResultReceived"]), cut


def test_a_resumed_stream_cut_again() -> None:
    events = wire(2, 4)
    primed, total = len(events[0]), sum(map(len, events))
    for first in range(primed, total, 29):
        for second in range(0, total - first, 13):
            assert run(4, [first, second]) == [1, 2, 3, 4, "ResultReceived"], (first, second)


@given(st.lists(st.integers(0, 900), max_size=5), st.integers(1, 200))
def test_a_stream_cut_anywhere_and_often(cuts: list[int], chunk: int) -> None:
    heard = run(6, [150, *cuts], chunk)
    assert heard == [1, 2, 3, 4, 5, 6, "ResultReceived"] or (
        heard[-1] == "ErrorReceived" and heard[:-1] == list(range(1, len(heard)))
    )


@pytest.mark.parametrize("how", [JSON, EVENTS])
@given(data=st.data())
def test_the_same_bytes_the_same_events(how: str, data: st.DataObject) -> None:
    net = opened(D)
    id, call = asks(net, progress=True)
    answer = event(result(id, CONTENT), id="9")
    body = answer[len(b"id: 9\ndata: ") :].strip() if how == JSON else b"".join(wire(id, 3)) + b": end"
    places = sorted(data.draw(st.sets(st.integers(0, len(body)))))
    net.starts(call, 200, how)
    net.gives(call, *(body[a:b] for a, b in zip([0, *places], [*places, len(body)], strict=True)))
    net.ends(call)
    wanted = ["ResultReceived"] if how == JSON else ["ProgressReceived"] * 3 + ["ResultReceived"]
    assert kinds(net.events()) == wanted


# -- The stream of the session ---------------------------------------------------------------------------------------------------


def own_stream() -> tuple[Net, Any]:
    net = Net(D)
    net.open()
    net.answer(net.call(), result(1, initialized_by(D)), mcp_session_id="one")
    net.answer(net.call())
    net.events()
    return net, net.call()


@pytest.mark.requirement("SHL-10", "SHL-14")
def test_the_stream_of_the_session() -> None:
    net, get = own_stream()
    net.starts(get)
    net.gives(get, event(id="g-0"), event(notification("notifications/tools/list_changed"), id="g-1"))
    told = net.event()
    assert isinstance(told, NotificationReceived)
    assert told.related is None
    net.gives(get, event(request("q", "roots/list"), id="g-2"))
    assert net.event().related is None
    net.ends(get)
    assert net.http.next_deadline() == 1.0
    net.at(1.0)
    again = net.call()
    assert header(again, "last-event-id") == "g-2"
    net.starts(again)
    net.gives(again, event(notification("notifications/tools/list_changed"), id="g-3"))
    assert isinstance(net.event(), NotificationReceived)


@pytest.mark.parametrize("status", [405, 400, 404, 406])
def test_a_server_without_such_a_stream(status: int) -> None:
    net = Net(D)
    net.open()
    net.answer(net.call(), result(1, initialized_by(D)))
    net.answer(net.call())
    net.events()
    net.answer(net.call(), "", status, "text/plain")
    assert net.events() == []
    assert net.http.idle


def test_a_stream_that_nobody_has_asked_for_yet_is_not_asked_for_at_the_end() -> None:
    net, get = own_stream()
    net.ends(get, "reset")
    net.http.handle_timeout(1.0)
    net.conn.close()
    assert [call.head.method for call in net.asked()] == [b"DELETE"]
    assert net.dropped == []


@pytest.mark.parametrize("id", [None, "g-1"])
def test_a_stream_that_comes_back_without_its_past_has_missed_something(id: str | None) -> None:
    net, get = own_stream()
    net.starts(get)
    net.gives(get, event(notification("notifications/tools/list_changed"), id=id))
    assert isinstance(net.event(), NotificationReceived)
    net.ends(get, "reset")
    net.at(1.0)
    again = net.call()
    assert header(again, "last-event-id") == id
    net.starts(again)
    assert kinds(net.events()) == ([] if id else ["ChangesMissed"])


@pytest.mark.parametrize("status", [400, 405])
def test_a_past_that_the_server_has_forgotten_is_not_asked_for_again(status: int) -> None:
    net, get = own_stream()
    net.starts(get)
    net.gives(get, event(id="g-1"))
    net.ends(get)
    net.at(1.0)
    again = net.call()
    assert header(again, "last-event-id") == "g-1"
    net.answer(again, "no such event", status, "text/plain")
    net.at(3.0)
    third = net.call()
    assert header(third, "last-event-id") is None
    if status == 405:
        net.answer(third, "", status)
        assert net.http.idle
    else:
        net.starts(third)
        assert kinds(net.events()) == ["ChangesMissed"]


def test_a_stream_of_the_session_that_was_of_use_is_not_given_up() -> None:
    """The server may be away for an hour, and nobody asks it anything: that it has lost the session is heard on this stream."""
    net, get = own_stream()
    net.starts(get)
    net.at(60.0)
    net.ends(get, "reset")
    while net.now < 3600.0:
        deadline = net.http.next_deadline()
        assert deadline is not None
        assert deadline - net.now <= 30.0
        net.at(deadline)
        net.ends(net.call(), "connection refused")
    assert net.events() == []
    net.at(net.now + 30.0)
    net.answer(net.call(), "", 404)
    assert said(net.call())["method"] == "initialize"


@pytest.mark.parametrize("how", ["refused", "silent", "500"])
def test_the_stream_of_the_session_is_given_up(how: str) -> None:
    net, get = own_stream()
    for _ in range(5):
        fails(net, get, how)
        deadline = net.http.next_deadline()
        assert deadline is not None
        net.at(deadline)
        get = net.call()
    fails(net, get, how)
    *missed, rejected = net.events()
    assert set(kinds(missed)) <= {"ChangesMissed"}
    assert isinstance(rejected, MessageRejected)
    assert "the stream of the session: given up after 5 attempts" in str(rejected.error)
    assert net.http.idle
    # The conversation goes on.
    id, call = asks(net)
    net.answer(call, result(id, CONTENT))
    assert isinstance(net.event(), ResultReceived)


def test_a_stream_of_the_session_that_is_none() -> None:
    net, get = own_stream()
    net.answer(get, "<h1>", 200, "text/html")
    assert "the stream of the session: the answer is of type 'text/html'" in str(net.event().error)
    assert net.http.idle


def test_repr() -> None:
    net = opened(D)
    _, get = resuming(net)
    assert repr(net.http._trips[get.key]) == "<Stream of tools/call, <Comeback after 'a', 1 failures>>"
    _, call = asks(net)
    assert repr(net.http._trips[call.key]) == "<Post tools/call, no response>"
    net, get = own_stream()
    assert repr(net.http._trips[get.key]) == "<Stream of the session, <Comeback after '', 0 failures>>"
