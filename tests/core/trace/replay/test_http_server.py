"""The server of a trace over HTTP: sessions, statuses, streams and gates."""

from __future__ import annotations

import json
from typing import Any

import pytest
from msgspec.structs import replace

from mcp_core.http import Body, End, Head, HostOriginPolicy, RequestHead
from mcp_core.trace import (
    HttpHead,
    RecordedTrace,
    ReplayExchange,
    ReplayHttpServer,
    ReplayServer,
    TraceHeader,
    load_trace,
)
from mcp_core.trace.replay import _http_server
from tests.core.trace.judge.conversations import META, C, S, ask, error, notify, result
from tests.core.trace.replay.traces import AT, CALL, HANDSHAKE, call, lines_of, recorded, text

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
    kinds = [type(each) for each in actions]
    assert kinds.count(Head) == 1
    assert kinds.count(End) == exchange.is_over
    assert all(each.data for each in actions if isinstance(each, Body))
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


CHANGED = notify("notifications/tools/list_changed")


def events(exchange: ReplayExchange) -> list[Any]:
    body = b"".join(each.data for each in exchange.actions_to_send() if isinstance(each, Body))
    return [json.loads(each.removeprefix(b"data: ")) for each in body.split(b"\n\n") if each]


def test_endpoint_has_one_path_with_or_without_a_slash() -> None:
    server = opened(recorded(CALL))
    for target, status in (b"/mcp/", None), (b"/mcp?a=/b", None), (b"/mcp/x", 404), (b"/", 404):
        exchange = server.begin(RequestHead(b"POST", target, [HOST]))
        assert exchange.wants_body is (status is None)
        assert not exchange.has_actions if status is None else response(exchange)[0] == status
    foreign = [HOST, (b"origin", b"http://127.0.0.1")]
    assert server.begin(RequestHead(b"POST", b"/mcp", foreign)).wants_body


def test_refusals_name_what_is_served() -> None:
    server = opened(recorded(CALL))
    _, headers, body = response(begin(server, "PUT"))
    assert (headers[b"allow"], headers[b"content-length"], body) == (b"POST", b"0", b"")
    status, headers, body = response(post(server, call(1), mcp_session_id="x"))
    assert (status, headers[b"content-type"]) == (404, b"application/json")
    assert json.loads(body) == error(None, -32001, "Session not found")
    assert int(headers[b"content-length"]) == len(body)


def test_second_stream_ends_the_first_and_the_end_of_the_session_both() -> None:
    """The driver has to send their ends: it learns of them by `take_ready`."""
    server = opened(recorded([*HANDSHAKE, *CALL]))
    post(server, ask(1, "initialize"))
    first = begin(server, "GET", mcp_session_id="s1")
    status, headers, _ = response(first)
    assert (status, headers[b"content-type"], headers[b"cache-control"]) == (
        *(200, b"text/event-stream"),
        b"no-store",
    )
    server.take_ready()
    second = begin(server, "GET", mcp_session_id="s1")
    assert set(server.take_ready()) == {first, second}
    assert (first.is_over, second.is_over) == (True, False)
    second.actions_to_send()
    late = begin(server, mcp_session_id="s1")
    end = begin(server, "DELETE", mcp_session_id="s1")
    assert set(server.take_ready()) == {second, end}
    assert second.is_over
    server.receive_body(late, json.dumps(call(2)).encode(), 0.0)
    assert response(late)[0] == 404


def test_change_waits_while_no_stream_is_open() -> None:
    """The stream that is gone gets none, and so does a client without a session."""
    said = [*HANDSHAKE, *CALL, S(CHANGED), C(call(2, "b")), S(text(2, "B")), S(CHANGED)]
    server = opened(recorded(said))
    post(server, ask(1, "initialize"))
    stream = begin(server, "GET", mcp_session_id="s1")
    stream.actions_to_send()
    post(server, call(2, x="a"), mcp_session_id="s1")
    assert stream in server.take_ready()
    assert events(stream) == [CHANGED]
    server.disconnected(stream)
    post(server, call(3, "b"), mcp_session_id="s1")
    assert not stream.has_actions
    assert events(begin(server, "GET", mcp_session_id="s1")) == [CHANGED]
    shared = opened(recorded([*CALL, S(CHANGED)]))
    assert response(post(shared, call(2, x="a")))[0] == 200


def test_sessions_and_waiting_messages_are_limited(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_http_server, "_MAX_SESSIONS", 2)
    monkeypatch.setattr(_http_server, "_MAX_WAITING", 1)
    server = opened(recorded([*HANDSHAKE, *CALL, S({**CHANGED, "method": "a"}), S(CHANGED)]))
    for _ in range(3):
        post(server, ask(1, "initialize"))
    assert [begin(server, mcp_session_id=id).wants_body for id in ("s1", "s2", "s3")] == [
        *(False, True, True)
    ]
    post(server, call(2, x="a"), mcp_session_id="s3")
    assert events(begin(server, "GET", mcp_session_id="s3")) == [CHANGED]


def test_batch_is_answered_on_one_stream() -> None:
    server = opened(recorded([*CALL, C(call(2, "b")), S(text(2, "B"))]))
    exchange = post(server, [call(8, x="a"), notify("x"), call(9, "b")])
    assert exchange in server.take_ready()
    assert exchange.is_over
    assert events(exchange) == [text(8, "A"), text(9, "B")]


def test_messages_come_at_their_pace() -> None:
    trace = recorded([*CALL])
    server = ReplayHttpServer(
        ReplayServer(trace, pace=2.0), policy=HostOriginPolicy("127.0.0.1"), new_id=lambda: "s1"
    )
    assert server.next_deadline == float("inf")
    exchange = begin(server)
    server.receive_body(exchange, json.dumps(call(1, x="a")).encode(), 10.0)
    assert (server.take_ready(), server.next_deadline) == ([], 12.0)
    server.advance(12.0)
    assert server.take_ready() == [exchange]
    assert server.take_ready() == []
    assert response(exchange)[0] == 200


def http_trace(has_id: bool) -> RecordedTrace:
    lines = []
    for number, (_, line) in enumerate(lines_of(HANDSHAKE), 2):
        head = HttpHead(method="POST", target="/mcp")
        if line.sender == "server":
            headers = (("mcp-session-id", "x"),) if has_id else ()
            head = HttpHead(status=203, headers=headers)
        lines.append((number, replace(line, http=head, exchange=number // 2)))
    return load_trace(TraceHeader(format_version=1, at=AT, transport="http"), lines)


@pytest.mark.parametrize("has_id", [True, False])
def test_session_has_an_id_if_the_recorded_one_had(has_id: bool) -> None:
    """Its status is the recorded one, too."""
    server = opened(http_trace(has_id))
    status, headers, _ = response(post(server, ask(1, "initialize")))
    assert (status, headers.get(b"mcp-session-id")) == (203, b"s1" if has_id else None)


@pytest.mark.parametrize(
    ("code", "status"), [(-32601, 404), (-32022, 400), (-32603, 200), ("x", 200), ([], 200)]
)
def test_status_of_an_error_without_handshake_is_that_of_its_code(code: Any, status: int) -> None:
    said = [C(ask(1, "x", _meta=MODERN)), S(error(1, code))]
    assert response(post(opened(recorded(said)), ask(1, "x")))[0] == status
    legacy = opened(recorded([*HANDSHAKE, C(ask(1, "x")), S(error(1, code))]))
    assert response(post(legacy, ask(1, "x")))[0] == 400
    post(legacy, ask(1, "initialize"))
    assert response(post(legacy, ask(1, "x"), mcp_session_id="s1"))[0] == 200


def test_notification_gets_its_status_when_its_body_has_come() -> None:
    server = opened(recorded(CALL))
    exchange = begin(server)
    assert server.take_ready() == []
    server.receive_body(exchange, json.dumps(notify("x")).encode(), 0.0)
    assert server.take_ready() == [exchange]


def test_session_begins_with_the_first_handshake_alone() -> None:
    server = opened(recorded([*HANDSHAKE, *CALL]))
    assert b"mcp-session-id" not in response(post(server, call(2, x="a")))[1]
    post(server, ask(1, "initialize"))
    again = response(post(server, ask(1, "initialize"), mcp_session_id="s1"))
    assert (again[0], again[1].get(b"mcp-session-id")) == (200, None)


def test_stream_stays_while_other_requests_go_away() -> None:
    server = opened(recorded([*HANDSHAKE, *CALL, S(CHANGED)]))
    post(server, ask(1, "initialize"))
    stream = begin(server, "GET", mcp_session_id="s1")
    stream.actions_to_send()
    server.disconnected(begin(server, mcp_session_id="s1"))
    post(server, call(2, x="a"), mcp_session_id="s1")
    assert events(stream) == [CHANGED]


def test_stream_of_a_batch_ends_with_its_last_response() -> None:
    """Other messages than responses don't count."""
    log = notify("notifications/message", level="info", data="x")
    server = opened(
        recorded([C(call(1)), S(log), S(text(1, "A")), C(call(2, "b")), S(text(2, "B"))])
    )
    exchange = post(server, [call(8), call(9, "b")])
    assert events(exchange) == [log, text(8, "A"), text(9, "B")]
    assert exchange.is_over


def test_answer_to_a_handshake_is_dropped_with_its_exchange() -> None:
    """The answer waits for its recorded time, and its client has left by then."""
    player = ReplayServer(recorded([*HANDSHAKE, *CALL]), pace=1.0)
    server = ReplayHttpServer(player, policy=HostOriginPolicy("127.0.0.1"), new_id=lambda: "s1")
    left, stayed = post(server, ask(1, "initialize")), post(server, ask(2, "initialize"))
    server.disconnected(left)
    server.advance(100.0)
    assert left.actions_to_send() == []
    assert json.loads(response(stayed)[2])["id"] == 2
