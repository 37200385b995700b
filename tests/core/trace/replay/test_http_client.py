"""The client of a trace over HTTP: headers, responses and streams."""

from __future__ import annotations

import json
from typing import Any

import pytest

from mcp_core.http import Body, End, Head, Url
from mcp_core.trace import ReplayHttpClient, ReplayRequest
from tests.core.trace.judge.conversations import META, ask, notify, result
from tests.core.trace.replay.traces import call, text

URL = Url.parse("http://127.0.0.1:8000/mcp")
JSON = (b"content-type", b"application/json")
SSE = (b"content-type", b"text/event-stream")


def post(client: ReplayHttpClient, message: Any) -> ReplayRequest:
    return client.post(json.dumps(message).encode())


def answer(request: ReplayRequest, message: Any, *headers: tuple[bytes, bytes]) -> list[Any]:
    body = json.dumps(message).encode()
    found = request.receive([Head(200, [JSON, *headers]), Body(body), End()])
    return [json.loads(each) for each in found]


def test_session_and_version_are_those_of_the_server() -> None:
    client = ReplayHttpClient(URL, {"X-Key": "k"})
    first = post(client, ask(1, "initialize"))
    assert dict(first.head.headers)[b"x-key"] == b"k"
    opened = result(1, protocolVersion="2025-06-18")
    assert answer(first, opened, (b"mcp-session-id", b"s1")) == [opened]
    headers = dict(post(client, call(2)).head.headers)
    assert headers[b"mcp-session-id"] == b"s1"
    assert headers[b"mcp-protocol-version"] == b"2025-06-18"
    stream, end = client.open_stream(), client.end_session()
    assert stream is not None
    assert end is not None
    assert (stream.head.method, end.head.method) == (b"GET", b"DELETE")


def test_modern_request_has_mirrored_headers() -> None:
    client = ReplayHttpClient(URL)
    schema = {"type": "object", "properties": {"to": {"type": "string", "x-mcp-header": "To"}}}
    tools = post(client, ask(1, "tools/list"))
    answer(tools, result(1, tools=[{"name": "echo", "inputSchema": schema}]))
    message = call(2, to="Lima")
    message["params"]["_meta"] = {META + "protocolVersion": "2026-07-28"}
    headers = dict(post(client, message).head.headers)
    assert headers[b"mcp-method"] == b"tools/call"
    assert headers[b"mcp-name"] == b"echo"
    assert headers[b"mcp-param-to"] == b"Lima"
    assert headers[b"mcp-protocol-version"] == b"2026-07-28"
    assert client.open_stream() is None


def test_tool_with_invalid_header_has_none_and_others_keep_theirs() -> None:
    """Such a tool cannot be called in this revision, but the trace may be older."""
    client = ReplayHttpClient(URL)

    def tool(name: Any, header: Any) -> Any:
        members = {"to": {"type": "string", "x-mcp-header": header}}
        return {"name": name, "inputSchema": {"type": "object", "properties": members}}

    def param_headers(name: str) -> dict[bytes, bytes]:
        message = call(2, to="Lima")
        message["params"] |= {
            "name": name,
            "_meta": {META + "protocolVersion": "2026-07-28"},
        }
        headers = dict(post(client, message).head.headers)
        assert headers[b"mcp-name"] == name.encode()
        return {each: value for each, value in headers.items() if each.startswith(b"mcp-param-")}

    tools = [
        tool("bad", "not a token"),
        tool("number", 5),
        tool("good", "To"),
        tool(["no", "name"], "To"),
        {"name": "none", "inputSchema": "no schema"},
        "no tool",
        tool("last", "At"),
    ]
    listed = result(1, tools=tools)
    assert answer(post(client, ask(1, "tools/list")), listed) == [listed]
    assert [param_headers(name) for name in ("bad", "number", "none")] == [{}, {}, {}]
    assert param_headers("good") == {b"mcp-param-to": b"Lima"}
    assert param_headers("last") == {b"mcp-param-at": b"Lima"}


@pytest.mark.parametrize(
    ("message", "status", "is_named"),
    [
        (ask(1, "initialize"), 404, True),
        (ask(1, "initialize"), 405, True),
        (ask(1, "initialize"), 400, True),
        (ask(1, "initialize"), 503, False),
        (call(1), 404, False),
    ],
)
def test_rejected_handshake_names_the_transports(message: Any, status: int, is_named: bool) -> None:
    request = post(ReplayHttpClient(URL), message)
    assert request.receive([Head(status, []), End()]) == []
    assert request.failure.startswith(f"HTTP status {status}")
    cure = "give its URL for Streamable HTTP, or its command after --"
    assert request.failure.endswith(cure) is is_named


def test_events_are_messages() -> None:
    request = post(ReplayHttpClient(URL), call(1))
    log = notify("notifications/message")
    data = b"".join(b"data: %b\n\n" % json.dumps(each).encode() for each in (log, text(1, "A")))
    found = request.receive([Head(200, [SSE]), Body(data[:30]), Body(data[30:]), End()])
    assert [json.loads(each) for each in found] == [log, text(1, "A")]
    assert request.unanswered == []
    assert request.resumed() is None


def test_stream_without_response_is_resumed_by_its_last_event() -> None:
    request = post(ReplayHttpClient(URL), call(1))
    request.receive([Head(200, [SSE]), Body(b"id: e7\nretry: 50\ndata:\n\n"), End()])
    again = request.resumed()
    assert again is not None
    assert dict(again.head.headers)[b"last-event-id"] == b"e7"
    assert (again.retry, again.unanswered) == (0.05, [1])


def test_stream_without_event_id_is_not_resumed() -> None:
    request = post(ReplayHttpClient(URL), call(1))
    request.receive([Head(200, [SSE]), Body(b"data: x\n\n"), End()])
    assert request.resumed() is None


@pytest.mark.parametrize(
    ("status", "body", "failure"),
    [
        (502, b"<html>", "HTTP status 502"),
        (401, b"", "HTTP status 401"),
        (200, b"<html>", "the response is not a message of MCP"),
        (200, b"[" * 100_000, "the response is not a message of MCP"),
    ],
)
def test_response_without_message_is_a_failure(status: int, body: bytes, failure: str) -> None:
    request = post(ReplayHttpClient(URL), call(1))
    assert request.receive([Head(status, []), Body(body), End()]) == []
    assert (request.failure, request.unanswered) == (failure, [1])


def test_notification_waits_for_its_status_only() -> None:
    client = ReplayHttpClient(URL)
    assert post(client, notify("x")).is_notice
    assert not post(client, call(1)).is_notice


def test_error_without_id_is_the_response_to_the_only_request() -> None:
    request = post(ReplayHttpClient(URL), call(7))
    body = json.dumps({"jsonrpc": "2.0", "id": None, "error": {"code": -32000, "message": "no"}})
    (found,) = request.receive([Head(400, [JSON]), Body(body.encode()), End()])
    assert json.loads(found)["id"] == 7
    assert request.unanswered == []
