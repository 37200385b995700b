"""The client of a trace over HTTP: headers, responses and streams."""

from __future__ import annotations

import json
from typing import Any

import pytest

from mcp_core._version import __version__
from mcp_core.http import Body, End, Head, Url
from mcp_core.trace import ReplayHttpClient, ReplayRequest
from mcp_core.trace.replay import _http_client
from tests.core.trace.judge.conversations import META, ask, error, notify, result
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


def test_each_request_has_the_headers_of_its_method() -> None:
    """Without a session and a revision, only those that any server needs."""
    client = ReplayHttpClient(URL, {"X-Key": "é"})
    common = {
        b"host": b"127.0.0.1:8000",
        b"user-agent": f"mcp-trio/{__version__}".encode(),
        b"accept-encoding": b"identity",
        b"x-key": b"\xe9",
    }
    posted = {
        **common,
        b"accept": b"application/json, text/event-stream",
        b"content-type": b"application/json",
    }
    first = post(client, ask(1, "initialize"))
    assert (first.head.method, first.head.target, dict(first.head.headers)) == (
        *(b"POST", b"/mcp"),
        posted,
    )
    assert (client.open_stream(), client.end_session()) == (None, None)
    batch = post(client, [call(1), call(2)])
    assert dict(batch.head.headers) == posted
    assert json.loads(batch.body) == [call(1), call(2)]
    opened = result(1, protocolVersion="2025-06-18")
    answer(first, opened, (b"mcp-session-id", b"s1"))
    session = {b"mcp-session-id": b"s1", b"mcp-protocol-version": b"2025-06-18"}
    for message in call(2), [call(2), call(3)], [call(4)]:
        assert dict(post(client, message).head.headers) == {**posted, **session}
    stream, end = client.open_stream(), client.end_session()
    assert stream is not None
    assert end is not None
    assert dict(stream.head.headers) == {**common, **session, b"accept": b"text/event-stream"}
    assert dict(end.head.headers) == {**common, **session}
    assert (stream.head.target, end.head.target, stream.body, end.body) == (b"/mcp",) * 2 + (
        b"",
    ) * 2
    resumed = dict(client.resume("e1").head.headers)
    assert resumed == dict(stream.head.headers) | {b"last-event-id": b"e1"}


@pytest.mark.parametrize("version", ["1.0", 5, None, ["2025-06-18"]])
def test_unknown_revision_is_not_sent(version: Any) -> None:
    client = ReplayHttpClient(URL)
    answer(post(client, ask(1, "initialize")), result(1, protocolVersion=version))
    assert b"mcp-protocol-version" not in dict(post(client, call(2)).head.headers)


@pytest.mark.parametrize(
    ("status", "is_taken"), [(199, False), (200, True), (299, True), (300, False)]
)
def test_session_is_that_of_an_accepted_request(status: int, is_taken: bool) -> None:
    client = ReplayHttpClient(URL)
    request = post(client, ask(1, "initialize"))
    request.receive([Head(status, [(b"mcp-session-id", b"s1")])])
    assert client.session_id == (b"s1" if is_taken else None)
    assert request.failure == ("" if is_taken else f"HTTP status {status}")
    post(client, call(2)).receive([Head(200, [])])
    assert client.session_id == (b"s1" if is_taken else None)


def test_only_so_many_tools_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_http_client, "_MAX_TOOLS", 1)
    client = ReplayHttpClient(URL)
    schema = {"type": "object", "properties": {"to": {"type": "string", "x-mcp-header": "To"}}}
    tools = [{"name": name, "inputSchema": schema} for name in ("first", "second")]
    answer(post(client, ask(1, "tools/list")), result(1, tools=tools))
    for name, expected in ("first", b"Lima"), ("second", None):
        message = call(2, name, to="Lima")
        message["params"]["_meta"] = {META + "protocolVersion": "2026-07-28"}
        assert dict(post(client, message).head.headers).get(b"mcp-param-to") == expected
        message["method"] = "x"
        assert b"mcp-param-to" not in dict(post(client, message).head.headers)


@pytest.mark.parametrize(
    ("message", "name", "ids", "is_notice"),
    [
        (call(7), "tools/call", [7], False),
        (notify("x"), "x", [], True),
        (result(7), "a response", [], True),
        (ask([], "x"), "x", [], True),
        ([call(7), notify("y"), 5], "tools/call, y", [7], False),
        (notify("x" * 81), "x" * 80, [], True),
        (17, "", [], True),
    ],
)
def test_request_knows_its_messages(message: Any, name: str, ids: Any, is_notice: bool) -> None:
    request = post(ReplayHttpClient(URL), message)
    assert (request.name, request.unanswered, request.is_notice) == (name, ids, is_notice)
    stream = ReplayHttpClient(URL).resume("e")
    assert (stream.name, stream.unanswered, stream.is_notice) == ("", [], False)


EVENT = Body(b"id: e7\nretry: 50\ndata:\n\n")


def test_stream_is_resumed_ten_times() -> None:
    """A server may end each stream without the response."""
    request: ReplayRequest | None = post(ReplayHttpClient(URL), call(1))
    for count in range(11):
        assert request is not None
        assert (request.head.method, request.retry) == ((b"GET", 0.05) if count else (b"POST", 1.0))
        request.receive([Head(200, [SSE]), EVENT, End()])
        request = request.resumed()
    assert request is None


@pytest.mark.parametrize(
    ("message", "actions", "is_resumed"),
    [
        (None, [Head(200, [SSE]), EVENT], True),
        (None, [Head(200, [SSE])], False),
        (None, [Head(200, [JSON]), EVENT], False),
        (notify("x"), [Head(200, [SSE]), EVENT], False),
        (call(1), [Head(200, [SSE]), EVENT], True),
        (call(1), [Head(200, [JSON])], False),
    ],
)
def test_stream_is_resumed_if_something_may_come(
    message: Any, actions: Any, is_resumed: bool
) -> None:
    client = ReplayHttpClient(URL)
    request = client.resume("e1") if message is None else post(client, message)
    request.receive([*actions, End()])
    assert (request.resumed() is not None) is is_resumed


def test_event_of_another_kind_and_request_of_the_server_answer_nothing() -> None:
    request = post(ReplayHttpClient(URL), call(1))
    back = ask(1, "ping")
    data = b"event: x\ndata: {}\n\ndata: " + json.dumps(back).encode() + b"\n\n"
    found = request.receive([Head(200, [SSE]), Body(data), End()])
    assert [json.loads(each) for each in found] == [back]
    assert request.unanswered == [1]
    assert answer(post(ReplayHttpClient(URL), call(1)), [back, text(1, "A")]) == [
        [back, text(1, "A")]
    ]
    request = post(ReplayHttpClient(URL), call(1))
    answer(request, [back, text(1, "A")])
    assert request.unanswered == []


def test_error_without_id_is_for_no_request_among_several() -> None:
    request = post(ReplayHttpClient(URL), [call(1), call(2)])
    failed = error(None, -32600)
    assert answer(request, failed) == [failed]
    assert sorted(request.unanswered, key=str) == [1, 2]
    request = post(ReplayHttpClient(URL), [call(1), call(2)])
    assert answer(request, [text(1, "A"), text(2, "B")]) == [[text(1, "A"), text(2, "B")]]
    assert request.unanswered == []


def test_response_above_the_limit_is_a_failure(monkeypatch: pytest.MonkeyPatch) -> None:
    body = json.dumps(text(1, "A")).encode()
    for limit, failure in (len(body), ""), (len(body) - 1, "the response is not a message of MCP"):
        monkeypatch.setattr(_http_client, "_MAX_BODY", limit)
        request = post(ReplayHttpClient(URL), call(1))
        found = request.receive([Head(200, [JSON]), Body(body[:9]), Body(body[9:]), End()])
        assert (len(found), request.failure) == (0 if failure else 1, failure)
    monkeypatch.setattr(_http_client, "_MAX_BODY", 20)
    request = post(ReplayHttpClient(URL), call(1))
    assert request.receive([Head(200, [SSE]), Body(b"data: " + body + b"\n\n"), End()]) == []
    assert request.failure
    empty = post(ReplayHttpClient(URL), notify("x"))
    assert empty.receive([Head(202, []), Body(b" \n"), End()]) == []
    assert empty.failure == ""
