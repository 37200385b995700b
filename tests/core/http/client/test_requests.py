"""Requests of Streamable HTTP: each call ends, and broken streams are resumed.

A resumed stream delivers each message once and in order.
"""

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
    InputProblem,
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
from tests.core.http.client_net import (
    EVENTS,
    JSON,
    Net,
    event,
    header,
    initialize_result,
    open_client,
    posted_message,
    send_call,
    type_names,
)
from tests.harness.jsonrpc import (
    B,
    C,
    D,
    E,
    Message,
    encoded,
    error,
    notification,
    request,
    result,
)
from tests.levels import fewer_examples, long

CONTENT: Message = {"content": [], "resultType": "complete"}
ERAS = [B, C, D, E]


def progress(id: int, so_far: float) -> Message:
    return notification("notifications/progress", {"progressToken": id, "progress": so_far})


def call_error(net: Net) -> Any:
    found = net.event()
    assert isinstance(found, ErrorReceived)
    return found.error


# -- Responses -------------------------------------------------------------------------------------


@pytest.mark.requirement("HTTP-12")
@pytest.mark.parametrize("version", ERAS)
@pytest.mark.parametrize("how", [JSON, EVENTS])
@pytest.mark.parametrize("answer", ["result", "error"])
def test_post_response_is_received_as_json_or_event(version: str, how: str, answer: str) -> None:
    """The caller can't tell the two forms apart, in any of the HTTP revisions."""
    net = open_client(version)
    id, call = send_call(net)
    message = result(id, CONTENT) if answer == "result" else error(id, -7, "no")
    if how == JSON:
        net.answer(call, message)
    else:
        net.stream_response(call, message)
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
def test_post_error_body_is_preferred_to_status(version: str, status: int, its_id: str) -> None:
    net = open_client(version, session=None)
    id, call = send_call(net)
    body = error(id, -32021, "no") | (
        {} if its_id == "ours" else {"id": None if its_id == "null" else its_id}
    )
    if its_id == "none":
        del body["id"]
    net.answer(call, body, status)
    found = call_error(net)
    assert isinstance(found, PeerError)
    assert (found.code, found.message) == (-32021, "no")
    assert net.http.idle
    assert not net.http._state.transport.reading  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("status", "type", "body", "headers", "expected", "text"),
    [
        (400, "text/plain", "Missing id", {}, RemoteProtocolError,
            "tools/call: HTTP status 400 Bad Request (Missing id)"),
        (400, JSON, '{"jsonrpc":"2.0","method":"x"}', {}, RemoteProtocolError, "HTTP status 400"),
        (400, JSON, '{"jsonrpc":"2.0","id":77,"result":{}}', {}, RemoteProtocolError,
            "HTTP status 400"),
        (401, JSON, '{"error":"invalid_token"}', {"www_authenticate": "Bearer"}, AuthRequired,
            "HTTP status 401"),
        (401, JSON, '{"jsonrpc":"2.0","id":2,"error":{"code":-1,"message":"m"}}', {}, AuthRequired,
            "HTTP status 401"),
        (403, "text/plain", "", {"www_authenticate": "Bearer"}, AuthRequired, "HTTP status 403"),
        (403, "text/plain", "bad origin", {}, RemoteProtocolError,
            "this host name or origin (bad origin)"),
        (404, "text/html", "<h1>", {}, RemoteProtocolError, "is this the URL of an MCP server?"),
        (405, "text/plain", "", {"allow": "GET"}, RemoteProtocolError, "405 Method Not Allowed"),
        (406, "text/plain", "", {}, RemoteProtocolError, "406 Not Acceptable"),
        (415, "text/plain", "", {}, RemoteProtocolError, "415 Unsupported Media Type"),
        (429, "text/plain", "", {"retry_after": "3"}, RemoteProtocolError, "try again after 3 s"),
        (502, "text/html", "<h1>", {}, RemoteProtocolError, "502 Bad Gateway"),
        (503, "text/plain", "", {"retry_after": "3"}, RemoteProtocolError, "try again after 3 s"),
        (301, "text/plain", "", {"location": "http://b/"}, RemoteProtocolError, "connect to http://b/"),
        (200, "text/html", "<h1>", {}, RemoteProtocolError, "of type 'text/html' instead of JSON"),
        (200, None, "{}", {}, RemoteProtocolError, "has no content type; JSON or an event stream"),
        (200, JSON, "", {}, RemoteProtocolError, "sent no response to it"),
        (202, None, "", {}, RemoteProtocolError, "(status 202) but sent no response"),
        (204, None, "", {}, RemoteProtocolError, "(status 204) but sent no response"),
        (200, JSON, "<h1>", {}, RemoteProtocolError, "tools/call: the response is invalid: "),
        (200, JSON, "{}", {}, RemoteProtocolError, "tools/call: the response is invalid: "),
        (200, JSON, '{"jsonrpc":"2.0","id":"02","result":{}}', {}, RemoteProtocolError,
            "for another request"),
        (200, JSON, '{"jsonrpc":"2.0","id":9,"result":{}}', {}, RemoteProtocolError,
            "for another request"),
        (200, JSON, '{"jsonrpc":"2.0","id":2,"method":"ping"}', {}, RemoteProtocolError,
            "another message than the response"),
        (200, JSON, '{"jsonrpc":"2.0","id":2,"result":3}', {}, RemoteProtocolError,
            "the result of tools/call is invalid"),
        (200, JSON, "[]", {}, RemoteProtocolError, ""),
        (200, JSON, "{}", {"content_encoding": "gzip"}, RemoteProtocolError, "encoded (gzip)"),
        (200, EVENTS, "data: x", {"content_encoding": "br"}, RemoteProtocolError, "encoded (br)"),
        (200, JSON, "x" * 5000, {}, RemoteProtocolError, "longer than 4096 bytes"),
        (200, EVENTS, "data: " + "x" * 5000 + "\n\n", {}, RemoteProtocolError, "than 4096 bytes"),
        (200, EVENTS, "data: {}\n\n", {}, RemoteProtocolError, "missing required field `jsonrpc`"),
        (200, EVENTS, "", {}, RemoteProtocolError, "ended without the response"),
        (200, EVENTS, 'data: {"jsonrpc":"2.0","id":2,"resu', {}, RemoteProtocolError,
            "ended without the response"),
    ],
)  # fmt: skip
@pytest.mark.parametrize("version", ERAS)
def test_post_unusable_response_fails_only_that_call(
    version: str, status: int, type: str | None, body: str, headers: Any, expected: type, text: str
) -> None:
    """A page, a proxy's error or another id: the call ends with a reason, the connection stays."""
    net = open_client(version, session=None, limits=Limits(message=4096))
    id, call = send_call(net)
    assert id == 2
    net.answer(call, body.encode(), status, type, **headers)
    *before, failed = net.events()
    assert set(type_names(before)) <= {"MessageRejected"}
    assert isinstance(failed, ErrorReceived)
    assert isinstance(failed.error, expected)
    assert text in str(failed.error)
    assert net.new_calls() == []
    assert net.http.idle
    # Other calls are not affected.
    id, call = send_call(net)
    net.answer(call, result(id, CONTENT))
    assert isinstance(net.event(), ResultReceived)


@pytest.mark.parametrize("version", ERAS)
@pytest.mark.parametrize("id_text", ['"2"', "2.0"])
@pytest.mark.parametrize("type", [JSON, EVENTS])
def test_post_response_with_its_id_in_another_form_is_the_response(
    version: str, id_text: str, type: str
) -> None:
    net = open_client(version)
    id, call = send_call(net)
    assert id == 2
    data = encoded(result(id, CONTENT)).replace(b'"id":2', b'"id":' + id_text.encode())
    net.answer(call, data if type == JSON else b"data: " + data + b"\n\n", 200, type)
    problem, found = net.events()
    assert isinstance(problem, InputProblem)
    assert isinstance(found, ResultReceived)
    assert found.id == id
    assert net.http.idle


@pytest.mark.parametrize("version", ERAS)
@pytest.mark.parametrize("when", ["before", "json", "sse", "refusal"])
def test_post_connection_broken_fails_call(version: str, when: str) -> None:
    net = open_client(version)
    _, call = send_call(net)
    if when == "refusal":
        net.start_response(call, 500, "text/plain")
    elif when != "before":
        net.start_response(call, 200, JSON if when == "json" else EVENTS)
        net.send_body(call, b'{"jsonrpc"' if when == "json" else event(progress(2, 1)))
    net.end_response(call, "the connection was reset")
    found = call_error(net)
    assert isinstance(found, ConnectionLost)
    assert "tools/call: " in str(found)
    assert "the connection was reset" in str(found)
    assert net.new_calls() == []
    assert net.http.idle


@pytest.mark.parametrize("status", [429, 502, 503, 504])
def test_post_busy_status_is_marked_busy(status: int) -> None:
    net = open_client(E)
    _, call = send_call(net)
    net.answer(call, "", status, "text/plain")
    found = call_error(net)
    assert found.fault is Fault.BUSY
    assert found.data["status"] == status


@pytest.mark.requirement("SHL-1")
def test_post_batch_response_is_received() -> None:
    net = open_client(B)
    id, call = send_call(net)
    net.answer(call, [notification("notifications/tools/list_changed"), result(id, CONTENT)])
    assert type_names(net.events()) == ["NotificationReceived", "ResultReceived"]
    # Our own messages are never sent as a batch.
    assert isinstance(posted_message(call), dict)


def test_post_batch_without_response_fails_call() -> None:
    net = open_client(B)
    _, call = send_call(net)
    net.answer(call, [notification("notifications/tools/list_changed")])
    received, failed = net.events()
    assert isinstance(received, NotificationReceived)
    assert "does not contain the response" in str(failed.error)


def test_post_input_required_is_received() -> None:
    net = open_client(E)
    id, call = send_call(net)
    net.answer(call, result(id, {"resultType": "input_required", "requestState": "s"}))
    assert isinstance(net.event(), InputRequested)
    assert net.http.idle


@pytest.mark.parametrize("status", [400, 500])
def test_notification_rejected_is_reported(status: int) -> None:
    net = open_client(D)
    net.conn.send_notification("notifications/roots/list_changed")
    net.answer(net.call(), "no", status, "text/plain")
    rejected = net.event()
    assert isinstance(rejected, MessageRejected)
    assert str(rejected.error).startswith(f"notifications/roots/list_changed: HTTP status {status}")


def test_notification_connection_broken_is_reported() -> None:
    net = open_client(D)
    net.conn.send_notification("notifications/roots/list_changed")
    net.end_response(net.call(), "connection refused")
    assert str(net.event().error) == "notifications/roots/list_changed: connection refused"


def test_notification_without_response_times_out() -> None:
    net = open_client(D)
    net.conn.send_notification("notifications/roots/list_changed")
    call = net.call()
    net.at(29.9)
    assert net.dropped == net.events() == []
    net.at(30.0)
    assert str(net.event().error) == "notifications/roots/list_changed: no response within 30 s"
    assert net.dropped == [call.key]
    assert net.http.idle


def test_notification_any_good_response_is_accepted() -> None:
    net = open_client(D)
    net.conn.send_notification("notifications/roots/list_changed")
    net.answer(net.call(), "ok", 200, "text/plain")
    net.conn.send_notification("notifications/roots/list_changed")
    net.stream_response(net.call(), notification("notifications/tools/list_changed"))
    assert type_names(net.events()) == ["NotificationReceived"]
    assert net.http.idle


# -- Event streams ---------------------------------------------------------------------------------


@pytest.mark.requirement("HTTP-11", "SHM-16")
def test_event_stream_messages_are_received_in_order() -> None:
    """Comments, empty events and unknown event types are skipped without a rejected message."""
    net = open_client(E)
    id, call = send_call(net, progress=True)
    net.start_response(call)
    net.send_body(
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
    net.send_body(call, event(result(id, CONTENT)))
    assert isinstance(net.event(), ResultReceived)
    net.end_response(call)
    assert net.http.idle


def test_server_request_on_stream_is_answered_by_post() -> None:
    """The response to the server's request is short and may be repeated if its connection fails."""
    net = open_client(D)
    id, call = send_call(net)
    net.start_response(call)
    net.send_body(call, event(request("q", "roots/list")))
    requests = net.event()
    assert isinstance(requests, RequestReceived)
    assert requests.related == id
    net.conn.send_result("q", t.ListRootsResult(roots=[]))
    answer = net.call()
    assert (posted_message(answer)["id"], answer.brief, answer.idempotent) == ("q", True, True)
    assert header(answer, "mcp-session-id") == "one"
    assert header(answer, "mcp-protocol-version") == D
    net.answer(answer)
    net.send_body(call, event(result(id, CONTENT)))
    assert isinstance(net.event(), ResultReceived)


def test_event_stream_not_ended_is_dropped_after_linger() -> None:
    net = open_client(E)
    id, call = send_call(net)
    net.start_response(call)
    net.send_body(call, event(result(id, CONTENT)))
    assert net.http.next_deadline() == 5.0
    net.at(3.0)
    net.send_body(call, b": still here\n\n")
    net.at(4.9)
    assert net.dropped == []
    net.at(5.0)
    assert net.dropped == [call.key]
    assert net.http.idle


def test_post_answered_on_other_stream_ends_soon() -> None:
    """A server that never responds to a POST itself would cost a connection for each call."""
    net = open_client(D, stream=True)
    id, call = send_call(net)
    net.http.response_data(3, event(result(id, CONTENT)), 0.0)
    assert isinstance(net.event(), ResultReceived)
    assert net.http.next_deadline() == 5.0
    net.at(5.0)
    assert net.dropped == [call.key]


@pytest.mark.parametrize("method", ["notification", "response"])
def test_post_without_request_ignores_body_of_good_response(method: str) -> None:
    """Many are posted at a time, and the body of each might be as large as a message."""
    net = open_client(D, stream=True)
    if method == "notification":
        net.conn.send_notification("notifications/roots/list_changed")
    else:
        net.http.response_data(3, event(request("q", "ping")), 0.0)
    call = net.call()
    net.start_response(call, 200, JSON)
    net.send_body(call, b"x" * 1_000)
    response = net.http._state.operations[call.key].response
    assert response is not None
    assert response.body == b""
    net.end_response(call)
    assert net.events() == []


def test_response_on_stream_of_other_request_is_received() -> None:
    net = open_client(D)
    one, first = send_call(net)
    two, second = send_call(net)
    net.start_response(first)
    net.send_body(first, event(id="a"), event(result(two, CONTENT)))
    assert net.event().id == two
    net.start_response(second)
    net.end_response(second, "reset")
    assert net.events() == []
    net.send_body(first, event(result(one, CONTENT)))
    assert net.event().id == one


@pytest.mark.requirement("SHM-12", "SHM-13")
def test_stateless_stream_is_not_resumed() -> None:
    net = open_client(E)
    _, call = send_call(net)
    net.start_response(call)
    net.send_body(call, event(progress(2, 1), id="7"))
    net.end_response(call)
    assert isinstance(call_error(net), RemoteProtocolError)
    _, call = send_call(net)
    net.start_response(call)
    net.send_body(call, event(progress(2, 1), id="7"))
    net.end_response(call, "reset")
    assert isinstance(call_error(net), ConnectionLost)
    assert net.new_calls() == []
    assert net.http.next_deadline() is None


def test_listen_stream_ended_is_connection_lost() -> None:
    net = open_client(E)
    params = t.ListenParams(notifications=t.SubscriptionFilter(tools_list_changed=True))
    _, call = send_call(net, "subscriptions/listen", params)
    net.start_response(call)
    net.end_response(call)
    assert isinstance(call_error(net), ConnectionLost)


@pytest.mark.requirement("SHL-8", "SHL-18")
@pytest.mark.parametrize("version", [B, C, D])
@pytest.mark.parametrize(("retry", "delay"), [(500, 0.5), (None, 1.0), (60_000, 30.0)])
@pytest.mark.parametrize("broken", [None, "reset"])
def test_stream_with_event_id_is_resumed_after_delay(
    version: str, retry: int | None, delay: float, broken: str | None
) -> None:
    """The torn event's id doesn't count, as its data is lost; the delay has a bound of 30 s."""
    net = open_client(version)
    id, call = send_call(net, progress=True)
    net.now = 100.0
    net.start_response(call)
    if retry is not None:
        net.send_body(call, b"retry: %d\n\n" % retry)
    net.send_body(call, event(id="s-0"), event(progress(id, 1), id="s-1"), b"id: s-2\nda")
    net.end_response(call, broken)
    assert type_names(net.events()) == ["ProgressReceived"]
    assert net.new_calls() == []
    assert net.http.next_deadline() == 100.0 + delay
    net.at(100.0 + delay - 0.01)
    assert net.new_calls() == []
    net.at(100.0 + delay)
    get = net.call()
    assert (get.head.method, get.body, get.long_lived, get.idempotent) == (b"GET", b"", True, True)
    assert header(get, "last-event-id") == "s-1"
    assert header(get, "accept") == "text/event-stream"
    assert header(get, "mcp-session-id") == "one"
    assert header(get, "mcp-protocol-version") == (None if version == B else version)
    net.start_response(get)
    net.send_body(
        get, event(id="s-1"), event(progress(id, 2), id="s-2"), event(result(id, CONTENT), id="s-3")
    )
    net.end_response(get)
    assert type_names(net.events()) == ["ProgressReceived", "ResultReceived"]
    assert net.http.idle


def test_resumed_stream_messages_relate_to_call() -> None:
    """A request on the resumed stream belongs to the call; 5 s after the result it is dropped."""
    net = open_client(D)
    id, call = send_call(net)
    net.start_response(call)
    net.send_body(call, event(id="a"))
    net.end_response(call)
    net.at(1.0)
    get = net.call()
    net.start_response(get)
    net.send_body(get, event(request("q", "roots/list")))
    assert net.event().related == id
    net.send_body(get, event(result(id, CONTENT)))
    assert isinstance(net.event(), ResultReceived)
    net.at(6.0)
    assert net.dropped == [get.key]  # the server did not end it
    assert net.http.idle


@pytest.mark.parametrize("version", [B, C, D])
def test_stream_without_event_id_is_not_resumed(version: str) -> None:
    net = open_client(version)
    _, call = send_call(net)
    net.start_response(call)
    net.send_body(call, b"id: s-0\ndata:\n")  # the blank line is missing
    net.end_response(call, "reset")
    assert isinstance(call_error(net), ConnectionLost)
    assert net.new_calls() == []


def broken_stream(net: Net) -> tuple[int, Any]:
    """Return a call whose stream has broken, and the GET that resumes it."""
    id, call = send_call(net, progress=True)
    net.start_response(call)
    net.send_body(call, event(id="a"))
    net.end_response(call)
    deadline = net.http.next_deadline()
    assert deadline is not None
    net.at(deadline)
    return id, net.call()


def fail_response(net: Net, get: Any, how: str) -> None:
    if how == "refused":
        net.end_response(get, "connection refused")
    elif how == "silent":
        net.start_response(get)
        net.send_body(get, b": hello\n\n")
        net.end_response(get)
    else:
        net.answer(get, "", int(how), "text/plain")


@pytest.mark.parametrize("how", ["refused", "silent", "500", "503", "429"])
def test_resume_after_max_attempts_fails_call(how: str) -> None:
    """The delay doubles up to 16 s, and after 31 s without an event the call fails."""
    net = open_client(D)
    _, get = broken_stream(net)
    times = [net.now]
    for _ in range(4):
        fail_response(net, get, how)
        deadline = net.http.next_deadline()
        assert deadline is not None
        net.at(deadline)
        times.append(deadline)
        get = net.call()
        assert header(get, "last-event-id") == "a"
    assert times == [1, 3, 7, 15, 31]
    fail_response(net, get, how)
    found = call_error(net)
    assert isinstance(found, ConnectionLost)
    assert "no success after 5 attempts" in str(found)
    assert net.http.idle


def test_resume_with_events_resets_attempts() -> None:
    net = open_client(D)
    id, get = broken_stream(net)
    for attempt in range(20):
        net.start_response(get)
        net.send_body(get, event(id=f"b-{attempt}"))
        net.end_response(get)
        net.at(net.now + 1.0)
        get = net.call()
        assert header(get, "last-event-id") == f"b-{attempt}"
    net.start_response(get)
    net.send_body(get, event(result(id, CONTENT)))
    assert isinstance(net.event(), ResultReceived)


@pytest.mark.parametrize(
    ("status", "type", "headers", "expected", "text"),
    [
        (400, "text/plain", {}, ConnectionLost, "HTTP status 400"),
        (405, "text/plain", {}, ConnectionLost, "HTTP status 405"),
        (401, "text/plain", {}, AuthRequired, "HTTP status 401"),
        (200, "text/html", {}, RemoteProtocolError, "'text/html'"),
        (204, None, {}, RemoteProtocolError, "has no content type"),
        (200, EVENTS, {"content_encoding": "gzip"}, RemoteProtocolError, "encoded"),
    ],
)
def test_resume_with_final_status_is_not_retried(
    status: int, type: str | None, headers: Any, expected: type, text: str
) -> None:
    net = open_client(D)
    _, get = broken_stream(net)
    net.start_response(get, status, type, **headers)
    net.send_body(get, b"x")
    net.end_response(get)
    found = call_error(net)
    assert isinstance(found, expected)
    assert text in str(found)
    assert net.http.idle


def test_resumed_stream_event_over_limit_fails_call() -> None:
    net = open_client(D, limits=Limits(message=1000))
    _, get = broken_stream(net)
    net.start_response(get)
    net.send_body(get, b"data: " + b"x" * 1001 + b"\n\n")
    assert isinstance(call_error(net), RemoteProtocolError)
    assert net.dropped == [get.key]


@pytest.mark.parametrize("version", [D, E])
@pytest.mark.parametrize("streams", [True, False], ids=["stream", "json"])
def test_response_with_too_many_values_fails_call(version: str, streams: bool) -> None:
    """A small text may decode to much memory: only its call fails, and the option is named."""
    net = open_client(version, limits=Limits(decoded=50_000))
    other, second = send_call(net)
    id, call = send_call(net)
    many = result(id, {**CONTENT, "structuredContent": {"a": [[]] * 800}})
    if streams:
        net.stream_response(call, many)
    else:
        net.answer(call, many)
    rejected, failed = net.events()
    assert isinstance(rejected, MessageRejected)
    assert isinstance(failed, ErrorReceived)
    assert (failed.id, type(failed.error)) == (id, RemoteProtocolError)
    assert "too many values: decoded, they take about 9" in str(failed.error)
    assert str(failed.error).endswith(" (the option limits=Limits(decoded=...) allows more)")
    net.answer(second, result(other, CONTENT))
    assert net.event().id == other
    assert net.http.idle


def test_cancel_of_resumed_call_sends_notification() -> None:
    net = open_client(D)
    id, get = broken_stream(net)
    fail_response(net, get, "refused")
    net.conn.send_cancel(id)
    posted = net.call()
    assert posted_message(posted)["params"]["requestId"] == id
    net.answer(posted)
    assert net.http.next_deadline() is None
    assert net.http.idle


def test_resume_stops_when_result_came_on_other_stream() -> None:
    net = open_client(D)
    id, get = broken_stream(net)
    other, call = send_call(net)
    net.start_response(call)
    net.send_body(call, event(result(id, CONTENT)), event(result(other, CONTENT)))
    assert len(net.events()) == 2
    net.end_response(get, "reset")
    assert net.http._state.transport.reading.keys() == {other}  # type: ignore[attr-defined]


def test_session_lost_fails_resumed_call() -> None:
    net = open_client(D)
    _, get = broken_stream(net)
    net.answer(get, "", 404)
    assert "lost the session" in str(call_error(net))
    assert posted_message(net.call())["method"] == "initialize"


# -- Streams cut anywhere --------------------------------------------------------------------------


def wire(id: int, count: int) -> list[bytes]:
    """Encode a stream: a priming event, `count` of progress, and the result."""
    return [
        event(id="s-0", retry=0),
        *(event(progress(id, number), id=f"s-{number}") for number in range(1, count + 1)),
        event(result(id, CONTENT), id=f"s-{count + 1}"),
    ]


def events_after_cuts(count: int, cuts: list[int], chunk: int = 1 << 20) -> list[Any]:
    """Return the client's events if the n-th response breaks after `cuts[n]` bytes."""
    net = open_client(D)
    id, call = send_call(net, progress=True)
    events = wire(id, count)
    rest = list(cuts)
    while True:
        after = header(call, "last-event-id")
        seen = 0 if after is None else int(after.partition("-")[2]) + 1
        data = b"".join(events[seen:])
        cut = rest.pop(0) if rest else None
        net.start_response(call)
        data = data[:cut]
        net.send_body(call, *(data[place : place + chunk] for place in range(0, len(data), chunk)))
        net.end_response(call, None if cut is None else "reset")
        calls = net.new_calls()
        if not calls:
            if net.http.next_deadline() is None:
                break
            net.at(net.now + 30.0)
            calls = net.new_calls()
        (call,) = calls
    assert net.http.idle
    return [
        each.progress if isinstance(each, ProgressReceived) else type(each).__name__
        for each in net.events()
    ]


@pytest.mark.parametrize(("chunk", "step"), [long(1 << 20, 1), (1 << 20, 23), (1, 67), (7, 29)])
def test_stream_cut_at_each_byte_is_resumed_without_loss(chunk: int, step: int) -> None:
    events = wire(2, 5)
    primed, total = len(events[0]), sum(map(len, events))
    for cut in range(0, total + 1, step):
        received = events_after_cuts(5, [cut], chunk)
        assert received == (
            ["ErrorReceived"] if cut < primed else [1, 2, 3, 4, 5, "ResultReceived"]
        ), cut


def test_resumed_stream_cut_again_is_resumed_without_loss() -> None:
    events = wire(2, 4)
    primed, total = len(events[0]), sum(map(len, events))
    for first in range(primed, total, 61):
        for second in range(0, total - first, 29):
            assert events_after_cuts(4, [first, second]) == [1, 2, 3, 4, "ResultReceived"], (
                first,
                second,
            )


@fewer_examples(2)
@given(st.lists(st.integers(0, 900), max_size=5), st.integers(1, 200))
def test_stream_cut_repeatedly_delivers_in_order(cuts: list[int], chunk: int) -> None:
    received = events_after_cuts(6, [150, *cuts], chunk)
    assert received == [1, 2, 3, 4, 5, 6, "ResultReceived"] or (
        received[-1] == "ErrorReceived" and received[:-1] == list(range(1, len(received)))
    )


@pytest.mark.parametrize("how", [JSON, EVENTS])
@given(data=st.data())
def test_response_split_anywhere_gives_same_events(how: str, data: st.DataObject) -> None:
    net = open_client(D)
    id, call = send_call(net, progress=True)
    answer = event(result(id, CONTENT), id="9")
    body = (
        answer[len(b"id: 9\ndata: ") :].strip() if how == JSON else b"".join(wire(id, 3)) + b": end"
    )
    places = sorted(data.draw(st.sets(st.integers(0, len(body)))))
    net.start_response(call, 200, how)
    net.send_body(
        call, *(body[a:b] for a, b in zip([0, *places], [*places, len(body)], strict=True))
    )
    net.end_response(call)
    wanted = ["ResultReceived"] if how == JSON else ["ProgressReceived"] * 3 + ["ResultReceived"]
    assert type_names(net.events()) == wanted


# -- The standalone stream -------------------------------------------------------------------------


def standalone_stream() -> tuple[Net, Any]:
    net = Net(D)
    net.open()
    net.answer(net.call(), result(1, initialize_result(D)), mcp_session_id="one")
    net.answer(net.call())
    net.events()
    return net, net.call()


@pytest.mark.requirement("SHL-10", "SHL-14")
def test_standalone_stream_is_resumed_with_last_event_id() -> None:
    """Any event with an id counts, requests too, and resuming reports no missed changes."""
    net, get = standalone_stream()
    net.start_response(get)
    net.send_body(
        get, event(id="g-0"), event(notification("notifications/tools/list_changed"), id="g-1")
    )
    received = net.event()
    assert isinstance(received, NotificationReceived)
    assert received.related is None
    net.send_body(get, event(request("q", "roots/list"), id="g-2"))
    assert net.event().related is None
    net.end_response(get)
    assert net.http.next_deadline() == 1.0
    net.at(1.0)
    again = net.call()
    assert header(again, "last-event-id") == "g-2"
    net.start_response(again)
    net.send_body(again, event(notification("notifications/tools/list_changed"), id="g-3"))
    assert isinstance(net.event(), NotificationReceived)


@pytest.mark.parametrize("status", [405, 400, 404, 406])
def test_standalone_stream_unsupported_is_not_retried(status: int) -> None:
    net = Net(D)
    net.open()
    net.answer(net.call(), result(1, initialize_result(D)))
    net.answer(net.call())
    net.events()
    net.answer(net.call(), "", status, "text/plain")
    assert net.events() == []
    assert net.http.idle


def test_standalone_stream_404_before_it_was_open_is_unsupported() -> None:
    """Some servers have no route for GET. The session was not lost: it has just been created."""
    net = Net(D)
    net.open()
    net.answer(net.call(), result(1, initialize_result(D)), mcp_session_id="one")
    net.answer(net.call())
    net.answer(net.call(), "Cannot GET /mcp", 404, "text/html")
    assert net.new_calls() == []
    assert type_names(net.events()) == ["PeerReady"]
    id, call = send_call(net)
    assert header(call, "mcp-session-id") == "one"
    net.answer(call, result(id, CONTENT))
    assert isinstance(net.event(), ResultReceived)


def test_standalone_stream_reconnect_is_withdrawn_at_close() -> None:
    net, get = standalone_stream()
    net.end_response(get, "reset")
    net.http.handle_timeout(1.0)
    net.conn.close()
    assert [call.head.method for call in net.new_calls()] == [b"DELETE"]
    assert net.dropped == []


@pytest.mark.parametrize("id", [None, "g-1"])
def test_standalone_stream_without_event_id_reports_missed_changes(id: str | None) -> None:
    net, get = standalone_stream()
    net.start_response(get)
    net.send_body(get, event(notification("notifications/tools/list_changed"), id=id))
    assert isinstance(net.event(), NotificationReceived)
    net.end_response(get, "reset")
    net.at(1.0)
    again = net.call()
    assert header(again, "last-event-id") == id
    net.start_response(again)
    assert type_names(net.events()) == ([] if id else ["ChangesMissed"])


@pytest.mark.parametrize("status", [400, 405])
def test_standalone_stream_unknown_event_id_is_dropped(status: int) -> None:
    """The server has forgotten the id: a fresh stream is open, and the user hears of the gap."""
    net, get = standalone_stream()
    net.start_response(get)
    net.send_body(get, event(id="g-1"))
    net.end_response(get)
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
        net.start_response(third)
        assert type_names(net.events()) == ["ChangesMissed"]


def test_standalone_stream_useful_once_reconnects_forever() -> None:
    """After an hour without calls, only this stream shows that the session is lost."""
    net, get = standalone_stream()
    net.start_response(get)
    net.at(60.0)
    net.end_response(get, "reset")
    while net.now < 3600.0:
        deadline = net.http.next_deadline()
        assert deadline is not None
        assert deadline - net.now <= 30.0
        net.at(deadline)
        net.end_response(net.call(), "connection refused")
    assert net.events() == []
    net.at(net.now + 30.0)
    net.answer(net.call(), "", 404)
    assert posted_message(net.call())["method"] == "initialize"


@pytest.mark.parametrize("how", ["refused", "silent", "500"])
def test_standalone_stream_never_useful_stops_after_max_attempts(how: str) -> None:
    """Calls don't depend on it: they go on, and one rejected message reports the failure."""
    net, get = standalone_stream()
    for _ in range(5):
        fail_response(net, get, how)
        deadline = net.http.next_deadline()
        assert deadline is not None
        net.at(deadline)
        get = net.call()
    fail_response(net, get, how)
    *missed, rejected = net.events()
    assert set(type_names(missed)) <= {"ChangesMissed"}
    assert isinstance(rejected, MessageRejected)
    assert "the standalone stream: no success after 5 attempts" in str(rejected.error)
    assert net.http.idle
    # The connection stays open.
    id, call = send_call(net)
    net.answer(call, result(id, CONTENT))
    assert isinstance(net.event(), ResultReceived)


def test_standalone_stream_wrong_content_type_is_reported() -> None:
    net, get = standalone_stream()
    net.answer(get, "<h1>", 200, "text/html")
    assert "the standalone stream: the response is of type 'text/html'" in str(net.event().error)
    assert net.http.idle


def test_operation_repr_shows_method_and_response() -> None:
    net = open_client(D)
    _, get = broken_stream(net)
    assert (
        repr(net.http._state.operations[get.key])
        == "<EventStreamGet of tools/call, <Reconnection after 'a', 1 failures>>"
    )
    _, call = send_call(net)
    assert repr(net.http._state.operations[call.key]) == "<StreamablePost tools/call, no response>"
    net, get = standalone_stream()
    assert (
        repr(net.http._state.operations[get.key])
        == "<EventStreamGet of the session, <Reconnection after '', 0 failures>>"
    )
