"""The server of a trace over HTTP: sessions, statuses, streams and gates."""

from __future__ import annotations

import json
from typing import Any

import pytest

from mcp_core.http import Body, Head, HostOriginPolicy, RequestHead
from mcp_core.trace import RecordedTrace, ReplayExchange, ReplayHttpServer, ReplayServer
from tests.core.trace.judge.conversations import META, C, S, ask, error, notify, result
from tests.core.trace.replay.traces import CALL, HANDSHAKE, call, recorded, text

HOST = (b"host", b"127.0.0.1")
MODERN = {META + "protocolVersion": "2026-07-28"}


def opened(trace: RecordedTrace) -> ReplayHttpServer:
    ids = iter(["s1", "s2", "s3"])
    return ReplayHttpServer(
        ReplayServer(trace), policy=HostOriginPolicy("127.0.0.1"), new_id=lambda: next(ids)
    )


def begin(server: ReplayHttpServer, method: str = "POST", **headers: str) -> ReplayExchange:
    pairs = [HOST, *((key.replace("_", "-").encode(), v.encode()) for key, v in headers.items())]
    return server.begin(RequestHead(method.encode(), b"/mcp", pairs))


def post(server: ReplayHttpServer, message: Any, **headers: str) -> ReplayExchange:
    exchange = begin(server, **headers)
    if exchange.wants_body:
        server.receive_body(exchange, json.dumps(message).encode(), 0.0)
    return exchange


def response(exchange: ReplayExchange) -> tuple[int, dict[bytes, bytes], bytes]:
    """Return the status, the headers and the body so far."""
    actions = exchange.actions_to_send()
    head = actions[0]
    assert isinstance(head, Head)
    body = b"".join(each.data for each in actions if isinstance(each, Body))
    return head.status, dict(head.headers), body


def test_session_begins_with_handshake_and_ends_with_delete() -> None:
    server = opened(recorded([*HANDSHAKE, *CALL]))
    status, headers, _ = response(post(server, ask(1, "initialize")))
    assert (status, headers[b"mcp-session-id"]) == (200, b"s1")
    assert response(post(server, notify("x"), mcp_session_id="s1"))[0] == 202
    exchange = post(server, call(2, x="a"), mcp_session_id="s1")
    assert json.loads(response(exchange)[2]) == text(2, "A")
    assert exchange.is_over
    assert response(begin(server, "DELETE", mcp_session_id="s1"))[0] == 200
    assert response(post(server, call(3, x="a"), mcp_session_id="s1"))[0] == 404


def test_response_after_notification_is_a_stream() -> None:
    log = notify("notifications/message", level="info", data="x")
    server = opened(recorded([C(call(1)), S(log), S(text(1, "A"))]))
    status, headers, body = response(post(server, call(9)))
    assert (status, headers[b"content-type"]) == (200, b"text/event-stream")
    events = [json.loads(each.removeprefix(b"data: ")) for each in body.split(b"\n\n") if each]
    assert events == [log, text(9, "A")]


def test_request_of_server_is_answered_by_another_post() -> None:
    """The call's stream stays open until the client has posted its response separately."""
    said = [
        *HANDSHAKE,
        C(call(1)),
        S(ask(5, "elicitation/create")),
        C(result(5, action="decline")),
        S(text(1, "A")),
    ]
    server = opened(recorded(said))
    post(server, ask(1, "initialize"))
    exchange = post(server, call(2), mcp_session_id="s1")
    assert b"elicitation/create" in response(exchange)[2]
    assert not exchange.is_over
    assert response(post(server, result(5, action="decline"), mcp_session_id="s1"))[0] == 202
    assert exchange in server.take_ready()
    assert exchange.is_over


def test_change_waits_for_the_stream_of_the_session() -> None:
    changed = notify("notifications/tools/list_changed")
    server = opened(recorded([*HANDSHAKE, *CALL, S(changed)]))
    post(server, ask(1, "initialize"))
    post(server, call(2, x="a"), mcp_session_id="s1")
    stream = begin(server, "GET", mcp_session_id="s1")
    assert b"list_changed" in response(stream)[2]
    another = begin(server, "GET", mcp_session_id="s1")
    assert (stream.is_over, another.is_over) == (True, False)
    server.disconnected(another)


@pytest.mark.parametrize(
    ("method", "headers", "status"),
    [
        ("GET", {}, 405),
        ("DELETE", {}, 405),
        ("PUT", {}, 405),
        ("POST", {"mcp_session_id": "unknown"}, 404),
        ("POST", {"origin": "http://evil.example"}, 403),
        ("GET", {"sec-fetch-site": "cross-site"}, 403),
        ("GET", {"sec-fetch-site": "same-site"}, 403),
        ("GET", {"sec-fetch-site": "none"}, 405),
    ],
)
def test_other_requests_get_a_status(method: str, headers: dict[str, str], status: int) -> None:
    exchange = begin(opened(recorded(CALL)), method, **headers)
    assert (response(exchange)[0], exchange.wants_body) == (status, False)


def test_client_of_another_transport_gets_the_cause() -> None:
    server = opened(recorded(CALL))
    status, _, body = response(begin(server, "GET"))
    assert (status, b"speaks Streamable HTTP, and not HTTP+SSE" in body) == (405, True)
    assert server._server.notes == []
    response(begin(server, "GET", upgrade="websocket"))
    assert server._server.notes == ["a client asked for a WebSocket; use the http:// URL"]


def test_other_host_and_path_get_a_status() -> None:
    server = opened(recorded(CALL))
    for head, status in (
        (RequestHead(b"POST", b"/mcp", [(b"host", b"evil.example")]), 403),
        (RequestHead(b"POST", b"/mcp", []), 403),
        (RequestHead(b"POST", b"/other", [HOST]), 404),
    ):
        assert response(server.begin(head))[0] == status


def test_errors_have_the_status_of_their_era() -> None:
    modern = opened(recorded([C(ask(1, "x", _meta=MODERN)), S(error(1, -32601, "no"))]))
    assert response(post(modern, ask(1, "x")))[0] == 404
    legacy = opened(recorded([*HANDSHAKE, *CALL]))
    assert response(post(legacy, ask(1, "server/discover")))[0] == 400


def test_client_that_goes_away_gets_nothing_more() -> None:
    said = [C(call(1)), S(ask(5, "roots/list")), C(result(5)), S(text(1, "A"))]
    server = opened(recorded(said))
    exchange = post(server, call(2))
    server.disconnected(exchange)
    post(server, result(5))
    assert exchange not in server.take_ready()


def test_body_without_message_gets_an_error() -> None:
    server = opened(recorded(CALL))
    exchange = begin(server)
    server.receive_body(exchange, b"{", 0.0)
    status, _, body = response(exchange)
    assert (status, json.loads(body)["error"]["code"]) == (400, -32700)
