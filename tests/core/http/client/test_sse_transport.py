"""HTTP+SSE of 2024-11-05: how a server of that kind is detected, and the conversation with it."""

from __future__ import annotations

from typing import Any

import pytest

from mcp_core import (
    AuthRequired,
    ConnectFailed,
    ConnectionClosed,
    ConnectionLost,
    ErrorReceived,
    Limits,
    MessageRejected,
    PeerReady,
    RemoteProtocolError,
    ResultReceived,
    State,
)
from mcp_core import types as t
from tests.core.http.client_net import (
    EVENTS,
    JSON,
    Net,
    discover_result,
    event,
    header,
    initialize_result,
    posted_message,
    send_call,
    type_names,
)
from tests.harness.jsonrpc import (
    A,
    C,
    D,
    E,
    Message,
    error,
    notification,
    result,
    single,
)

SSE = "http://server.example/base/sse"


def rejected_handshake(*versions: str, status: int = 405, **config: Any) -> tuple[Net, Any, Any]:
    """Return a client whose handshake was rejected, that call, and the GET that follows it."""
    net = Net(*(versions or (A, D)), url=SSE, **config)
    net.open()
    first = net.call()
    if posted_message(first)["method"] == "server/discover":
        net.answer(first, "no", status, "text/plain")
        first = net.call()
    assert posted_message(first)["method"] == "initialize"
    net.answer(first, "Method Not Allowed", status, "text/plain")
    return net, first, net.call()


def open_legacy(endpoint: str = "/messages?session=1", **config: Any) -> tuple[Net, Any]:
    net, first, get = rejected_handshake(**config)
    net.start_response(get)
    net.send_body(get, event(endpoint, event="endpoint"))
    again = net.call()
    assert again.body == first.body
    net.answer(again, "Accepted", 202, "text/plain")
    net.send_body(get, event(result(1, initialize_result(A)), event="message"))
    net.answer(net.call())
    assert isinstance(net.event(), PeerReady)
    return net, get


@pytest.mark.requirement("PROBE-6", "PROBE-7", "SSE-3", "SSE-6")
@pytest.mark.parametrize("versions", [(A,), (A, D), (A, C, D, E)])
@pytest.mark.parametrize("status", [400, 404, 405])
def test_http_sse_handshake_precedes_messages(versions: tuple[str, ...], status: int) -> None:
    """A rejected `initialize` is sent again to the endpoint, whichever revision it offered."""
    net, first, get = rejected_handshake(*versions, status=status)
    assert (get.head.method, get.head.target, get.long_lived) == (b"GET", b"/base/sse", True)
    assert header(get, "accept") == "text/event-stream"
    net.start_response(get)
    assert net.new_calls() == []
    net.send_body(get, event("/messages?session=1", event="endpoint"))
    again = net.call()
    assert (again.head.method, again.head.target, again.body) == (
        b"POST",
        b"/messages?session=1",
        first.body,
    )
    assert header(again, "content-type") == JSON
    net.answer(again, "Accepted", 202, "text/plain")
    assert net.events() == []
    id = posted_message(first)["id"]
    net.send_body(get, event(result(id, initialize_result(A)), event="message"))
    ready = net.event()
    assert isinstance(ready, PeerReady)
    assert ready.peer.dialect.version == A
    posted = net.call()
    assert posted_message(posted)["method"] == "notifications/initialized"
    assert posted.head.target == b"/messages?session=1"
    net.answer(posted)
    id, call = send_call(net, headers={"X-A": "1"})
    assert (header(call, "x-a"), call.brief, call.idempotent) == ("1", False, False)
    assert header(call, "mcp-protocol-version") is None
    net.send_body(
        get, event(notification("notifications/tools/list_changed")), event("x", event="other")
    )
    net.send_body(get, event(result(id, {"content": []})))
    assert type_names(net.events()) == ["NotificationReceived", "ResultReceived"]
    net.answer(call)
    net.conn.close()
    assert net.new_calls() == []
    assert net.dropped == [get.key]
    assert net.http.idle


@pytest.mark.requirement("SSE-5")
@pytest.mark.parametrize(
    ("endpoint", "target"),
    [
        ("/m", b"/m"),
        ("m", b"/base/m"),
        ("?id=1", b"/base/sse?id=1"),
        ("http://server.example/m", b"/m"),
        ("http://SERVER.example:80/m", b"/m"),
        ("//server.example/m", b"/m"),
        ("https://server.example/m", None),
        ("http://server.example:8080/m", None),
        ("http://other.example/m", None),
        ("//other.example/m", None),
        ("http://server.example@other.example/m", None),
        ("ftp://server.example/m", None),
        ("javascript:x", None),
        ("http://server.example:x/", None),
    ],
)
def test_http_sse_endpoint_must_be_of_same_origin(endpoint: str, target: bytes | None) -> None:
    net, _, get = rejected_handshake()
    net.start_response(get)
    net.send_body(get, event(endpoint, event="endpoint"))
    if target is not None:
        assert net.call().head.target == target
    else:
        assert net.new_calls() == []
        assert net.dropped == [get.key]
        assert isinstance(net.event(), ConnectionClosed)


def test_http_sse_holds_messages_behind_initialized_and_set_level() -> None:
    """All messages wait for `initialized`, and requests for `logging/setLevel`."""
    net, first, get = rejected_handshake()
    net.start_response(get)
    net.send_body(get, event("/m", event="endpoint"))
    net.answer(net.call())
    net.send_body(get, event(result(posted_message(first)["id"], initialize_result(A))))
    posted = net.call()
    level = net.conn.send_request("logging/setLevel", t.SetLevelParams(level="info"))
    id = net.conn.send_request("tools/list")
    assert net.new_calls() == []
    net.answer(posted)
    setting = net.call()
    net.answer(setting)
    assert (posted_message(setting)["id"], net.new_calls()) == (level, [])
    net.send_body(get, event(result(level, {})))
    assert posted_message(net.call())["id"] == id


def test_http_sse_second_endpoint_event_is_ignored() -> None:
    net, get = open_legacy()
    net.send_body(get, event("http://other.example/", event="endpoint"))
    _, call = send_call(net)
    assert call.head.target == b"/messages?session=1"


def test_http_sse_endpoint_too_long_closes_connection() -> None:
    net, _, get = rejected_handshake()
    net.start_response(get)
    net.send_body(get, event("/" + "x" * 8192, event="endpoint"))
    closed = net.event()
    assert isinstance(closed, ConnectionClosed)
    assert net.new_calls() == []


def test_http_sse_endpoint_not_utf8_closes_connection() -> None:
    net, _, get = rejected_handshake()
    net.start_response(get)
    net.send_body(get, b"event: endpoint\ndata: \xff\n\n")
    assert isinstance(net.event(), ConnectionClosed)


@pytest.mark.parametrize(
    "problem",
    ["405", "404", "200 html", "refused", "ends", "silent", "encoded", "too much", "message"],
)
def test_http_sse_unsupported_reports_first_rejection(problem: str) -> None:
    """The fallback's own failure would mislead: the user sees the POST's status."""
    net, _, get = rejected_handshake(limits=Limits(message=1000))
    if problem in ("405", "404"):
        net.answer(get, "", int(problem), "text/plain")
    elif problem == "200 html":
        net.answer(get, "<h1>", 200, "text/html")
    elif problem == "refused":
        net.end_response(get, "connection refused")
    elif problem == "encoded":
        net.start_response(get, 200, EVENTS, content_encoding="gzip")
    else:
        net.start_response(get)
        if problem == "ends":
            net.end_response(get)
        elif problem == "too much":
            net.send_body(get, b"data: " + b"x" * 1001)
        else:
            if problem == "message":
                net.send_body(
                    get, event(notification("notifications/message", {"level": "info", "data": 1}))
                )
            assert net.http.next_deadline() == 10.0
            net.at(10.0)
    closed = net.events()[-1]
    assert isinstance(closed, ConnectionClosed)
    assert isinstance(closed.error, ConnectFailed)
    assert str(closed.error).startswith("HTTP status 405")
    assert net.new_calls() == []
    assert net.http.idle


def test_http_sse_stream_unauthorized_raises_auth_required() -> None:
    net, _, get = rejected_handshake()
    net.answer(get, "", 401, "text/plain", www_authenticate="Bearer")
    assert isinstance(net.event().error, AuthRequired)


@pytest.mark.parametrize("error_text", [None, "the connection was reset"])
def test_http_sse_stream_ended_closes_connection(error_text: str | None) -> None:
    net, get = open_legacy()
    send_call(net)
    net.end_response(get, error_text)
    closed = net.event()
    assert isinstance(closed, ConnectionClosed)
    assert (closed.lost, type(closed.error)) == (["T"], ConnectionLost)
    assert (error_text or "the server has ended it") in str(closed.error)
    assert net.new_calls() == []


def test_http_sse_event_over_limit_closes_connection() -> None:
    net, get = open_legacy(limits=Limits(message=1000))
    net.send_body(get, b"data: " + b"x" * 1001)
    assert isinstance(net.event().error, RemoteProtocolError)
    assert net.conn.state is State.CLOSED


@pytest.mark.parametrize("status", [404, 503])
def test_http_sse_post_rejected_fails_call(status: int) -> None:
    net, _ = open_legacy()
    _, call = send_call(net)
    net.answer(call, "no", status, "text/plain")
    failed = net.event()
    assert isinstance(failed, ErrorReceived)
    assert f"HTTP status {status}" in str(failed.error)


def test_http_sse_post_connection_broken_fails_call() -> None:
    net, _ = open_legacy()
    _, call = send_call(net)
    net.end_response(call, "connection refused")
    assert isinstance(net.event().error, ConnectionLost)
    net.conn.send_notification("notifications/roots/list_changed")
    net.end_response(net.call(), "connection refused")
    assert isinstance(net.event(), MessageRejected)


def test_http_sse_post_body_is_ignored() -> None:
    net, get = open_legacy()
    id, call = send_call(net)
    net.answer(call, result(id, {"content": []}), content_encoding="gzip")
    assert net.events() == []
    _, other = send_call(net)
    net.answer(other, result(3, {"content": []}))
    assert net.events() == []
    net.send_body(get, event(result(id, {"content": []})))
    assert isinstance(net.event(), ResultReceived)


@pytest.mark.parametrize("started", [False, True])
def test_http_sse_unfinished_post_ends_soon_after_its_request(started: bool) -> None:
    """A server that never ends its responses would otherwise cost a connection for each call."""
    net, get = open_legacy()
    id, call = send_call(net)
    if started:
        net.start_response(call, 202, "text/plain")
    net.at(5.0)
    net.at(10.0)
    assert call.key not in net.dropped
    net.send_body(get, event(result(id, {"content": []})))
    assert isinstance(net.event(), ResultReceived)
    net.at(15.0)
    assert net.dropped == [call.key]
    assert net.http.next_deadline() is None


def test_http_sse_cancelled_request_ends_its_unfinished_post() -> None:
    net, _ = open_legacy()
    id, call = send_call(net)
    net.conn.send_cancel(id)
    net.answer(net.call())
    net.at(5.0)
    assert net.dropped == [call.key]


@pytest.mark.requirement("CXL-2", "CXL-3")
def test_http_sse_cancel_of_unsent_request_sends_nothing() -> None:
    net, _ = open_legacy()
    net.delays_calls = True
    id, call = send_call(net)
    net.conn.send_cancel(id)
    assert net.new_calls() == []
    assert net.dropped == [call.key]
    assert net.http.next_deadline() is None


def test_http_sse_cancel_sends_notification() -> None:
    net, _ = open_legacy()
    id, call = send_call(net)
    net.answer(call)
    net.conn.send_cancel(id)
    posted = net.call()
    assert posted_message(posted)["method"] == "notifications/cancelled"
    assert posted.head.target == b"/messages?session=1"


# -- Which kind of server, by its first responses --------------------------------------------------

MODERN = [-32020, -32021, -32022]


@pytest.mark.requirement("PROBE-5", "PROBE-9", "PROBE-10")
@pytest.mark.parametrize(
    ("status", "body", "goes_on"),
    [
        (200, result(1, discover_result()), "open"),
        (200, error(1, -32601), "initialize"),
        (200, error(1, -32602), "initialize"),
        (200, "<h1>", "initialize"),
        (202, None, "initialize"),
        (400, "", "initialize"),
        (400, "Bad Request: no session", "initialize"),
        (400, error(None, -32000, "Server not initialized"), "initialize"),
        (400, error(1, -32022, "version", data={"supported": [D]}), "initialize"),
        (400, error(1, -32022, "version", data={"supported": [E]}), "server/discover"),
        (400, error(1, -32020), "failed"),
        (400, error(None, -32021), "failed"),
        (404, "", "initialize"),
        (404, error(1, -32601), "initialize"),
        (404, error(None, -32601), "initialize"),
        (404, error(1, -32020), "failed"),
        (405, "", "initialize"),
        (406, "", "initialize"),
        (307, "", "initialize"),
        (401, "", "failed"),
        (403, "", "failed"),
        (429, "", "failed"),
        (500, "", "failed"),
        (503, error(None, -32000), "failed"),
        (0, "", "failed"),
    ],
)  # fmt: skip
def test_version_probe_response_decides_how_to_open(status: int, body: Any, goes_on: str) -> None:
    """No revision is known yet: old servers answer the probe in all these ways."""
    net = Net()
    net.open()
    probe = net.call()
    assert (posted_message(probe)["method"], header(probe, "mcp-protocol-version")) == (
        "server/discover",
        E,
    )
    if status == 0:
        net.end_response(probe, "connection refused")
    else:
        net.answer(probe, body, status, "text/plain" if isinstance(body, str) else JSON)
    calls, events = net.new_calls(), net.events()
    if goes_on in ("initialize", "server/discover"):
        assert posted_message(single(calls))["method"] == goes_on
        assert events == []
    else:
        assert calls == []
        found = single(events)
        assert isinstance(found, PeerReady if goes_on == "open" else ConnectionClosed)


def test_probe_and_handshake_rejected_by_404_has_error_of_probe() -> None:
    """A gateway that maps -32601 to 404, before a server that knows neither method."""
    net = Net()
    net.open()
    net.answer(net.call(), error(1, -32601, "Method not found: server/discover"), 404)
    net.answer(net.call(), error(2, -32601, "Method not found: initialize"), 404)
    closed = net.event()
    assert isinstance(closed, ConnectionClosed)
    assert str(closed.error) == (
        "the server refused server/discover: Method not found: server/discover (-32601)"
    )
    assert net.new_calls() == []
    assert net.http.idle


@pytest.mark.requirement("PROBE-6")
@pytest.mark.parametrize(
    ("status", "body", "stream"),
    [
        (400, "", True),
        (400, error(None, -32000), True),
        (404, "<h1>", True),
        (405, "", True),
        *((400, error(1, code), False) for code in MODERN),
        (404, error(1, -32601), False),
        (400, error(1, -32601), True),
        (401, "", False),
        (403, "", False),
        (406, "", False),
        (415, "", False),
        (500, "", False),
        (200, error(1, -32602), False),
        (0, "", False),
    ],
)
def test_http_sse_is_tried_only_after_rejected_handshake(
    status: int, body: Any, stream: bool
) -> None:
    """A modern error code, a login or a crash shows a server that needs no other transport."""
    net = Net(D)
    net.open()
    call = net.call()
    if status == 0:
        net.end_response(call, "connection refused")
    else:
        net.answer(call, body, status, "text/plain" if isinstance(body, str) else JSON)
    calls = net.new_calls()
    assert [each.head.method for each in calls] == ([b"GET"] if stream else [])
    if stream:
        net.answer(calls[0], "", 405, "text/plain")
    closed = net.event()
    assert isinstance(closed, ConnectionClosed)
    if status == 400 and body:
        assert f"({body['error']['code']})" in str(closed.error)


@pytest.mark.parametrize(
    "refusal",
    [
        error(2, -32022, "version", data={"supported": [E]}),
        error(2, -32020, "the header MCP-Protocol-Version is missing"),
        error(None, -32020, "the header MCP-Protocol-Version is missing"),
    ],
)
def test_handshake_rejected_by_stateless_server_repeats_probe(refusal: Message) -> None:
    net = Net()
    net.open()
    net.at(15.0)
    _, initialize = net.new_calls()
    net.answer(initialize, refusal, 400)
    again = net.call()
    assert posted_message(again)["method"] == "server/discover"
    net.answer(again, result(posted_message(again)["id"], discover_result()))
    assert net.event().peer.dialect.version == E


def test_http_sse_is_left_for_late_probe_response() -> None:
    """The probe's answer comes after 15 s, while the client already tries HTTP+SSE."""
    net = Net(url=SSE, initialize_timeout=3.0)
    net.open()
    probe = net.call()
    net.at(15.0)
    net.answer(net.call(), "", 405, "text/plain")
    get = net.call()
    net.answer(probe, result(posted_message(probe)["id"], discover_result()))
    assert net.events() == []
    net.at(18.0)
    assert net.event().peer.dialect.version == E
    id, call = send_call(net)
    assert (call.head.target, net.dropped) == (b"/base/sse", [get.key])
    net.answer(call, result(id, {"content": [], "resultType": "complete"}))
    assert isinstance(net.event(), ResultReceived)
    assert net.http.idle


def test_http_sse_transport_repr_shows_endpoint() -> None:
    net, _, _ = rejected_handshake()
    assert repr(net.http._state.transport) == "<HttpSseTransport no endpoint yet>"
    net, _ = open_legacy()
    assert repr(net.http._state.transport) == "<HttpSseTransport http://server.example/messages>"
    assert net.http.queued() == 0
