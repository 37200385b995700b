"""HTTP+SSE of 2024-11-05: how a server of that kind is found out, and the conversation with it."""

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
from tests.core.helpers import A, C, D, E, error, notification, only, result
from tests.core.http.client_net import (
    EVENTS,
    JSON,
    Net,
    asks,
    discovered,
    event,
    header,
    initialized_by,
    kinds,
    said,
)

SSE = "http://server.example/base/sse"


def asked_for_stream(*versions: str, status: int = 405, **config: Any) -> tuple[Net, Any, Any]:
    """A client whose handshake was refused, the call that was, and the GET that follows."""
    net = Net(*(versions or (A, D)), url=SSE, **config)
    net.open()
    first = net.call()
    if said(first)["method"] == "server/discover":
        net.answer(first, "no", status, "text/plain")
        first = net.call()
    assert said(first)["method"] == "initialize"
    net.answer(first, "Method Not Allowed", status, "text/plain")
    return net, first, net.call()


def opened(endpoint: str = "/messages?session=1", **config: Any) -> tuple[Net, Any]:
    net, first, get = asked_for_stream(**config)
    net.starts(get)
    net.gives(get, event(endpoint, event="endpoint"))
    again = net.call()
    assert again.body == first.body
    net.answer(again, "Accepted", 202, "text/plain")
    net.gives(get, event(result(1, initialized_by(A)), event="message"))
    net.answer(net.call())
    assert isinstance(net.event(), PeerReady)
    return net, get


@pytest.mark.requirement("PROBE-6", "PROBE-7", "SSE-3", "SSE-6")
@pytest.mark.parametrize("versions", [(A,), (A, D), (A, C, D, E)])
@pytest.mark.parametrize("status", [400, 404, 405])
def test_the_way_of_the_first_revision(versions: tuple[str, ...], status: int) -> None:
    net, first, get = asked_for_stream(*versions, status=status)
    assert (get.head.method, get.head.target, get.long) == (b"GET", b"/base/sse", True)
    assert header(get, "accept") == "text/event-stream"
    net.starts(get)
    assert net.asked() == []
    net.gives(get, event("/messages?session=1", event="endpoint"))
    again = net.call()
    assert (again.head.method, again.head.target, again.body) == (b"POST", b"/messages?session=1", first.body)
    assert header(again, "content-type") == JSON
    net.answer(again, "Accepted", 202, "text/plain")
    assert net.events() == []
    id = said(first)["id"]
    net.gives(get, event(result(id, initialized_by(A)), event="message"))
    ready = net.event()
    assert isinstance(ready, PeerReady)
    assert ready.peer.dialect.version == A
    told = net.call()
    assert said(told)["method"] == "notifications/initialized"
    assert told.head.target == b"/messages?session=1"
    net.answer(told)
    id, call = asks(net, headers={"X-A": "1"})
    assert (header(call, "x-a"), call.brief, call.idempotent) == ("1", True, False)
    assert header(call, "mcp-protocol-version") is None
    net.gives(get, event(notification("notifications/tools/list_changed")), event("x", event="other"))
    net.gives(get, event(result(id, {"content": []})))
    assert kinds(net.events()) == ["NotificationReceived", "ResultReceived"]
    net.answer(call)
    net.conn.close()
    assert net.asked() == []
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
def test_where_to_post(endpoint: str, target: bytes | None) -> None:
    net, _, get = asked_for_stream()
    net.starts(get)
    net.gives(get, event(endpoint, event="endpoint"))
    if target is not None:
        assert net.call().head.target == target
    else:
        assert net.asked() == []
        assert net.dropped == [get.key]
        assert isinstance(net.event(), ConnectionClosed)


def test_what_comes_first_is_waited_for() -> None:
    """That is `initialized` for everything, and the level for requests."""
    net, first, get = asked_for_stream()
    net.starts(get)
    net.gives(get, event("/m", event="endpoint"))
    net.answer(net.call())
    net.gives(get, event(result(said(first)["id"], initialized_by(A))))
    told = net.call()
    level = net.conn.send_request("logging/setLevel", t.SetLevelParams(level="info"))
    id = net.conn.send_request("tools/list")
    assert net.asked() == []
    net.answer(told)
    setting = net.call()
    net.answer(setting)
    assert (said(setting)["id"], net.asked()) == (level, [])
    net.gives(get, event(result(level, {})))
    assert said(net.call())["id"] == id


def test_where_to_post_is_said_once() -> None:
    net, get = opened()
    net.gives(get, event("http://other.example/", event="endpoint"))
    _, call = asks(net)
    assert call.head.target == b"/messages?session=1"


def test_an_endpoint_that_is_no_text() -> None:
    net, _, get = asked_for_stream()
    net.starts(get)
    net.gives(get, b"event: endpoint\ndata: \xff\n\n")
    assert isinstance(net.event(), ConnectionClosed)


@pytest.mark.parametrize(
    "problem", ["405", "404", "200 html", "refused", "ends", "silent", "encoded", "too much", "message"]
)
def test_if_nothing_comes_of_it_the_first_refusal_counts(problem: str) -> None:
    net, _, get = asked_for_stream(limits=Limits(message=1000))
    if problem in ("405", "404"):
        net.answer(get, "", int(problem), "text/plain")
    elif problem == "200 html":
        net.answer(get, "<h1>", 200, "text/html")
    elif problem == "refused":
        net.ends(get, "connection refused")
    elif problem == "encoded":
        net.starts(get, 200, EVENTS, content_encoding="gzip")
    else:
        net.starts(get)
        if problem == "ends":
            net.ends(get)
        elif problem == "too much":
            net.gives(get, b"data: " + b"x" * 1001)
        else:
            if problem == "message":
                net.gives(get, event(notification("notifications/message", {"level": "info", "data": 1})))
            assert net.http.next_deadline() == 10.0
            net.at(10.0)
    closed = net.events()[-1]
    assert isinstance(closed, ConnectionClosed)
    assert isinstance(closed.error, ConnectFailed)
    assert str(closed.error).startswith("HTTP status 405")
    assert net.asked() == []
    assert net.http.idle


def test_who_wants_a_token_for_the_stream_says_so() -> None:
    net, _, get = asked_for_stream()
    net.answer(get, "", 401, "text/plain", www_authenticate="Bearer")
    assert isinstance(net.event().error, AuthRequired)


@pytest.mark.parametrize("error_text", [None, "the connection was reset"])
def test_the_end_of_the_stream_is_the_end(error_text: str | None) -> None:
    net, get = opened()
    asks(net)
    net.ends(get, error_text)
    closed = net.event()
    assert isinstance(closed, ConnectionClosed)
    assert (closed.lost, type(closed.error)) == (["T"], ConnectionLost)
    assert (error_text or "the server has ended it") in str(closed.error)
    assert net.asked() == []


def test_an_event_over_the_limit_is_the_end() -> None:
    net, get = opened(limits=Limits(message=1000))
    net.gives(get, b"data: " + b"x" * 1001)
    assert isinstance(net.event().error, RemoteProtocolError)
    assert net.conn.state is State.CLOSED


@pytest.mark.parametrize("status", [404, 503])
def test_a_call_that_is_refused(status: int) -> None:
    net, _ = opened()
    _, call = asks(net)
    net.answer(call, "no", status, "text/plain")
    failed = net.event()
    assert isinstance(failed, ErrorReceived)
    assert f"HTTP status {status}" in str(failed.error)


def test_a_call_that_does_not_arrive() -> None:
    net, _ = opened()
    _, call = asks(net)
    net.ends(call, "connection refused")
    assert isinstance(net.event().error, ConnectionLost)
    net.conn.send_notification("notifications/roots/list_changed")
    net.ends(net.call(), "connection refused")
    assert isinstance(net.event(), MessageRejected)


def test_what_a_post_is_answered_with_is_of_no_interest() -> None:
    net, get = opened()
    id, call = asks(net)
    net.answer(call, result(id, {"content": []}), content_encoding="gzip")
    assert net.events() == []
    _, other = asks(net)
    net.answer(other, result(3, {"content": []}))
    assert net.events() == []
    net.gives(get, event(result(id, {"content": []})))
    assert isinstance(net.event(), ResultReceived)


def test_a_cancelled_call_is_told() -> None:
    net, _ = opened()
    id, call = asks(net)
    net.answer(call)
    net.conn.send_cancel(id)
    told = net.call()
    assert said(told)["method"] == "notifications/cancelled"
    assert told.head.target == b"/messages?session=1"


# -- Which era, by what is answered to the first questions --------------------------------------------------------------------

MODERN = [-32020, -32021, -32022]


@pytest.mark.requirement("PROBE-5", "PROBE-9", "PROBE-10")
@pytest.mark.parametrize(
    ("status", "body", "goes_on"),
    [
        (200, result(1, discovered()), "open"),
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
        (404, error(1, -32601), "failed"),
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
def test_what_an_answer_to_the_probe_says_of_the_era(status: int, body: Any, goes_on: str) -> None:
    net = Net()
    net.open()
    probe = net.call()
    assert (said(probe)["method"], header(probe, "mcp-protocol-version")) == ("server/discover", E)
    if status == 0:
        net.ends(probe, "connection refused")
    else:
        net.answer(probe, body, status, "text/plain" if isinstance(body, str) else JSON)
    calls, events = net.asked(), net.events()
    if goes_on in ("initialize", "server/discover"):
        assert said(only(calls))["method"] == goes_on
        assert events == []
    else:
        assert calls == []
        found = only(events)
        assert isinstance(found, PeerReady if goes_on == "open" else ConnectionClosed)


@pytest.mark.requirement("PROBE-6")
@pytest.mark.parametrize(
    ("status", "body", "stream"),
    [
        (400, "", True),
        (400, error(None, -32000), True),
        (404, "<h1>", True),
        (405, "", True),
        *((400, error(1, code), False) for code in MODERN),
        (401, "", False),
        (403, "", False),
        (406, "", False),
        (415, "", False),
        (500, "", False),
        (200, error(1, -32602), False),
        (0, "", False),
    ],
)
def test_when_the_stream_is_asked_for(status: int, body: Any, stream: bool) -> None:
    net = Net(D)
    net.open()
    call = net.call()
    if status == 0:
        net.ends(call, "connection refused")
    else:
        net.answer(call, body, status, "text/plain" if isinstance(body, str) else JSON)
    calls = net.asked()
    assert [each.head.method for each in calls] == ([b"GET"] if stream else [])
    if stream:
        net.answer(calls[0], "", 405, "text/plain")
    closed = net.event()
    assert isinstance(closed, ConnectionClosed)
    if status == 400 and body:
        assert f"({body['error']['code']})" in str(closed.error)


def test_a_server_that_says_its_versions_in_its_refusal_is_modern() -> None:
    net = Net()
    net.open()
    net.at(5.0)
    _, initialize = net.asked()
    net.answer(initialize, error(2, -32022, "version", data={"supported": [E]}), 400)
    again = net.call()
    assert said(again)["method"] == "server/discover"
    net.answer(again, result(said(again)["id"], discovered()))
    assert net.event().peer.dialect.version == E


def test_a_late_answer_to_the_probe_while_the_stream_is_waited_for() -> None:
    net = Net(url=SSE, initialize_timeout=3.0)
    net.open()
    probe = net.call()
    net.at(5.0)
    net.answer(net.call(), "", 405, "text/plain")
    get = net.call()
    net.answer(probe, result(said(probe)["id"], discovered()))
    assert net.events() == []
    net.at(8.0)
    assert net.event().peer.dialect.version == E
    id, call = asks(net)
    assert (call.head.target, net.dropped) == (b"/base/sse", [get.key])
    net.answer(call, result(id, {"content": [], "resultType": "complete"}))
    assert isinstance(net.event(), ResultReceived)
    assert net.http.idle


def test_repr() -> None:
    net, _, _ = asked_for_stream()
    assert repr(net.http._transport) == "<LegacySse no endpoint yet>"
    net, _ = opened()
    assert repr(net.http._transport) == "<LegacySse http://server.example/messages>"
    assert net.http.queued() == 0
