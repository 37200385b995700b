"""Requests at an endpoint: checks, the status of the response, and JSON or a stream."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any

import pytest
from msgspec import Meta, json

from mcp_core import Limits, McpError, ToolError
from mcp_core.http import HostOriginPolicy, HttpLimits, PlainResponse, RequestHead
from mcp_core.registry import Context, Server
from tests.harness.wire.router import (
    GET,
    HOST,
    POST,
    D,
    E,
    Reply,
    RouterHarness,
    initialize,
    meta,
    request,
)

VERSION = (b"mcp-protocol-version", E.encode())
LIST = request(1, "tools/list", {"_meta": meta()})


def modern(method: str, params: dict[str, Any] | None = None, **more: Any) -> dict[str, Any]:
    return request(1, method, {**(params or {}), "_meta": meta(**more)})


# -- By the head alone -----------------------------------------------------------------------------

JSON = (b"content-type", b"application/json")
BOTH = (b"accept", b"application/json, text/event-stream")
HEADS = [
    # verb, headers, status, what the text says
    (b"POST", [], 421, "the name in Host is not allowed"),
    (b"POST", [(b"host", b"evil.example"), JSON, BOTH], 421, "the name in Host is not allowed"),
    (b"GET", [(b"host", b"evil.example")], 421, "the name in Host is not allowed"),
    (b"DELETE", [(b"host", b"evil.example")], 421, "the name in Host is not allowed"),
    (
        b"POST",
        [HOST, (b"origin", b"http://evil.example"), JSON, BOTH],
        403,
        "the Origin is not allowed",
    ),
    (b"GET", [HOST, (b"origin", b"null")], 403, "the Origin is not allowed"),
    (b"DELETE", [HOST, (b"origin", b"http://127.0.0.1:9")], 403, "the Origin is not allowed"),
    (b"OPTIONS", [HOST, (b"origin", b"http://evil.example")], 403, "the Origin is not allowed"),
    (b"PUT", [HOST], 405, "GET, POST, DELETE"),
    (b"PATCH", [HOST, (b"origin", b"http://evil.example")], 403, "the Origin is not allowed"),
    (b"POST", [HOST, HOST, JSON, BOTH], 400, "host stands twice"),
    (b"POST", [HOST, JSON, JSON, BOTH], 400, "content-type stands twice"),
    (
        b"GET",
        [*GET, (b"last-event-id", b"1-1"), (b"last-event-id", b"2-1")],
        400,
        "last-event-id stands twice",
    ),
    (b"POST", [HOST, JSON, BOTH, (b"content-length", b"100001")], 413, "longer than 100000 bytes"),
    (b"POST", [HOST, JSON, BOTH, (b"content-length", b"9" * 19)], 413, "longer than 100000 bytes"),
    (b"POST", [HOST, JSON, BOTH, (b"content-length", b"-1")], 400, "not a number"),
    (b"POST", [HOST, BOTH], 415, "application/json"),
    (b"POST", [HOST, (b"content-type", b"text/plain"), BOTH], 415, "application/json"),
    (b"POST", [HOST, JSON, BOTH, (b"content-encoding", b"gzip")], 415, "content-encoding"),
    (b"POST", [HOST, JSON, (b"accept", b"text/html")], 406, "application/json or text/event-st"),
    (
        b"POST",
        [HOST, JSON, (b"accept", b"application/json"), (b"mcp-method", b"subscriptions/listen")],
        406,
        "text/event-stream",
    ),
    (b"GET", [HOST, (b"accept", b"application/json")], 406, "text/event-stream"),
    (b"GET", [*GET, VERSION], 405, "does not use that HTTP method"),
    (b"DELETE", [HOST, VERSION], 405, "does not use that HTTP method"),
    (b"DELETE", [HOST], 405, "does not use that HTTP method"),
    (b"GET", [*GET, (b"mcp-protocol-version", D.encode())], 405, "no stream without a session"),
    (b"GET", [*GET, (b"mcp-session-id", b"0")], 404, "unknown session"),
    (b"POST", [*POST, (b"mcp-session-id", b"0")], 404, "unknown session"),
    (b"DELETE", [HOST, (b"mcp-session-id", b"0")], 404, "unknown session"),
]


@pytest.mark.parametrize(("verb", "headers", "status", "says"), HEADS)
@pytest.mark.requirement("HTTP-1", "HTTP-2", "HTTP-7", "SHM-14", "SHL-11", "SHL-24")
def test_head_with_a_fault_is_rejected(
    verb: bytes, headers: list[tuple[bytes, bytes]], status: int, says: str
) -> None:
    harness = RouterHarness()
    reply = harness.send(verb, headers, b"{}")
    assert reply.status == status
    assert says in reply.message["error"]["message"]
    assert reply.message.get("id") is None
    assert ("id" in reply.message) == (VERSION not in headers)
    assert reply.ended
    assert not reply.exchange.reading
    assert reply.exchange.close_after == (b"content-length" in dict(headers))
    if status == 405:
        assert b"allow" in reply.headers
    assert not harness.seen


@pytest.mark.parametrize("verb", [b"HEAD", b"TRACE", b"CONNECT", b"post"])
def test_unknown_verb_gets_405(verb: bytes) -> None:
    reply = RouterHarness().send(verb, [HOST])
    assert (reply.status, reply.headers[b"allow"]) == (405, b"GET, POST, DELETE, OPTIONS")
    assert (reply.body == b"") == (verb == b"HEAD")
    assert int(reply.headers[b"content-length"]) > 0


@pytest.mark.requirement("DEC-11")
def test_accept_any_range_allows_both_types() -> None:
    for accept in (
        b"*/*",
        b"application/*, text/*",
        b"application/json;q=0.5, text/event-stream;q=0.1",
    ):
        reply = RouterHarness().send(
            b"POST",
            [HOST, JSON, (b"accept", accept), VERSION, (b"mcp-method", b"tools/list")],
            json.encode(LIST),
        )
        assert reply.status == 200


ONLY_JSON = (b"accept", b"application/json")
ONLY_EVENTS = (b"accept", b"text/event-stream")
IS_STREAM = {ONLY_JSON: False, ONLY_EVENTS: True}


@pytest.mark.requirement("DEC-11")
@pytest.mark.parametrize("accept", IS_STREAM)
@pytest.mark.parametrize("version", ["2025-03-26", D, E])
def test_client_that_accepts_one_type_gets_that(version: str, accept: tuple[bytes, bytes]) -> None:
    """Its results come in it, with progress before them or without, and errors as JSON."""
    harness = RouterHarness()
    headers = [HOST, JSON, accept]
    if version == E:
        base = meta()
        headers.append(VERSION)
    else:
        base = {}
        begun = harness.send(b"POST", headers, json.encode(initialize(version)))
        assert (begun.status, begun.is_stream) == (200, IS_STREAM[accept])
        assert begun.message["result"]["protocolVersion"] == version
        headers.append((b"mcp-session-id", begun.headers[b"mcp-session-id"]))
        note = {"jsonrpc": "2.0", "method": "notifications/initialized"}
        assert harness.send(b"POST", headers, json.encode(note)).status == 202
    for tool, arguments in (("echo", {"text": "x"}), ("count", {"to": 2}), ("slow", {})):
        params = {"name": tool, "arguments": arguments, "_meta": {**base, "progressToken": 1}}
        named = [(b"mcp-method", b"tools/call"), (b"mcp-name", tool.encode())]
        body = json.encode(request(1, "tools/call", params))
        reply = harness.send(b"POST", [*headers, *(named if version == E else [])], body)
        harness.wait(40)
        harness.step(3)
        assert (reply.status, reply.is_stream, reply.ended) == (200, IS_STREAM[accept], True)
        assert reply.messages[-1]["result"]["content"][0]["text"]
        progress = 2 if tool == "count" and accept is ONLY_EVENTS else 0
        assert len(reply.messages) == progress + 1
    refused = harness.send(b"POST", headers, b"{")
    assert (refused.status, refused.is_stream) == (400, False)


@pytest.mark.requirement("DEC-11")
@pytest.mark.parametrize(
    "accept", [b"application/json", b"application/json, text/event-stream;q=0"]
)
def test_subscription_of_a_client_without_event_streams_gets_406(accept: bytes) -> None:
    """There is no other way to listen."""
    listen = modern("subscriptions/listen", {"notifications": {"toolsListChanged": True}})
    for reply in ("auto", "sse", "json"):
        harness = RouterHarness(reply=reply)
        method = (b"mcp-method", b"subscriptions/listen")
        headers = [HOST, JSON, (b"accept", accept), VERSION, method]
        refused = harness.send(b"POST", headers, json.encode(listen))
        assert (refused.status, refused.is_stream) == (406, False)
        assert "text/event-stream" in refused.message["error"]["message"]


@pytest.mark.parametrize(
    ("reply", "accept", "status", "is_stream"),
    [
        ("json", b"application/json", 200, False),
        ("json", b"text/event-stream", 406, False),
        ("sse", b"application/json", 200, False),
        ("sse", b"text/event-stream", 200, True),
        ("sse", b"text/html", 406, False),
    ],
)
def test_accepted_type_meets_the_option_reply(
    reply: str, accept: bytes, status: int, is_stream: bool
) -> None:
    """`reply="json"` promises that nothing is streamed; the other types can all be sent."""
    harness = RouterHarness(reply=reply)
    headers = [HOST, JSON, (b"accept", accept), VERSION, (b"mcp-method", b"tools/list")]
    found = harness.send(b"POST", headers, json.encode(LIST))
    assert (found.status, found.is_stream) == (status, is_stream)


def test_origin_of_the_server_itself_is_allowed() -> None:
    harness = RouterHarness()
    reply = harness.modern(LIST)
    assert reply.status == 200
    same = harness.post(
        LIST, (b"origin", b"http://127.0.0.1:8000"), VERSION, (b"mcp-method", b"tools/list")
    )
    assert same.status == 200
    assert b"access-control-allow-origin" not in same.headers


def test_origin_that_is_listed_gets_cors_headers() -> None:
    """A browser needs the preflight, the exposed session header, and `Vary` on streams."""
    page = (b"origin", b"https://app.example")
    harness = RouterHarness(policy=HostOriginPolicy("127.0.0.1", origins=["https://app.example"]))
    wants = (b"access-control-request-headers", b"mcp-session-id, content-type")
    before = harness.send(
        b"OPTIONS", [HOST, page, (b"access-control-request-method", b"POST"), wants]
    )
    assert before.status == 204
    assert before.headers[b"access-control-allow-origin"] == b"https://app.example"
    assert before.headers[b"access-control-allow-headers"] == wants[1]
    assert b"POST" in before.headers[b"access-control-allow-methods"]
    reply = harness.post(LIST, page, VERSION, (b"mcp-method", b"tools/list"))
    assert reply.status == 200
    assert reply.headers[b"access-control-allow-origin"] == b"https://app.example"
    assert b"mcp-session-id" in reply.headers[b"access-control-expose-headers"]
    stream = harness.get(page)
    assert (stream.is_stream, stream.headers[b"vary"]) == (True, b"origin")
    refused = harness.send(b"PUT", [HOST, page])
    assert refused.headers[b"access-control-allow-origin"] == b"https://app.example"


def test_options_without_origin_lists_the_verbs() -> None:
    reply = RouterHarness().send(b"OPTIONS", [HOST])
    assert (reply.status, reply.headers) == (204, {b"allow": b"GET, POST, DELETE, OPTIONS"})


# -- Bodies ----------------------------------------------------------------------------------------


@pytest.mark.requirement("HTTP-8", "SHM-10")
def test_result_at_once_is_json() -> None:
    reply = RouterHarness().call(7, text="hello")
    assert reply.status == 200
    assert reply.headers[b"content-type"] == b"application/json"
    assert int(reply.headers[b"content-length"]) == len(reply.body)
    assert reply.message["id"] == 7
    assert reply.message["result"]["content"] == [{"type": "text", "text": "hello"}]
    assert reply.ended


def test_result_after_a_while_is_json() -> None:
    harness = RouterHarness()
    reply = harness.call(1, "slow", steps=2)
    assert reply.status == 0
    harness.step(3)
    assert (reply.status, reply.headers[b"content-type"]) == (200, b"application/json")


@pytest.mark.requirement("HTTP-8", "HTTP-10", "SHM-8", "SHM-10", "SHM-13", "SHM-15", "PROG-9")
def test_message_before_the_result_begins_a_stream() -> None:
    harness = RouterHarness()
    params = {"name": "count", "arguments": {"to": 2}, "_meta": meta(progressToken="p")}
    reply = harness.modern(request(1, "tools/call", params), "count")
    harness.step(1)
    assert reply.is_stream
    assert reply.headers[b"x-accel-buffering"] == b"no"
    assert [m["params"]["progress"] for m in reply.messages] == [1]
    harness.step(5)
    assert [m.get("method", "answer") for m in reply.messages] == ["notifications/progress"] * 2 + [
        "answer"
    ]
    assert all(id == "" for _, _, id, _ in reply.events)
    assert reply.ended


@pytest.mark.requirement("SHM-15", "SHM-16")
def test_silence_begins_a_stream_with_a_comment() -> None:
    harness = RouterHarness()
    reply = harness.call(1, "slow", steps=2)
    harness.wait(14.9)
    assert reply.status == 0
    harness.wait(0.1)
    assert (reply.is_stream, reply.body) == (True, b":\n\n")
    harness.wait(15)
    assert reply.body == b":\n\n" * 2
    harness.step(3)
    assert reply.message["id"] == 1
    assert reply.ended
    assert harness.router.next_deadline() is None


def test_reply_json_never_streams() -> None:
    harness = RouterHarness(reply="json")
    params = {"name": "count", "arguments": {"to": 3}, "_meta": meta(progressToken="p")}
    reply = harness.modern(request(1, "tools/call", params), "count")
    harness.wait(40)
    harness.step(5)
    assert reply.headers[b"content-type"] == b"application/json"
    assert reply.message["result"]["content"][0]["text"] == "counted"
    listening = harness.modern(
        modern("subscriptions/listen", {"notifications": {"toolsListChanged": True}})
    )
    assert listening.is_stream  # there is no other way to listen


def test_reply_sse_always_streams_but_for_error_statuses() -> None:
    harness = RouterHarness(reply="sse")
    assert harness.call(1).is_stream
    assert harness.modern(modern("nope")).status == 404


STATUSES = [
    # what is wrong, message, headers beside the version, status, code
    ("unknown method", modern("nope"), [(b"mcp-method", b"nope")], 404, -32601),
    ("a method of others", modern("initialize"), [(b"mcp-method", b"initialize")], 404, -32601),
    ("a method of others", modern("ping"), [(b"mcp-method", b"ping")], 404, -32601),
    ("params", modern("tools/call", {"name": 5}), [(b"mcp-method", b"tools/call")], 400, -32602),
    ("no _meta", request(1, "tools/list", {}), [(b"mcp-method", b"tools/list")], 400, -32602),
    ("no method header", modern("tools/list"), [], 400, -32020),
    ("other method", modern("tools/list"), [(b"mcp-method", b"tools/call")], 400, -32020),
    ("other case", modern("tools/list"), [(b"mcp-method", b"Tools/List")], 400, -32020),
    (
        "doubled",
        modern("tools/list"),
        [(b"mcp-method", b"tools/list"), (b"mcp-method", b"tools/list")],
        400,
        -32020,
    ),
    (
        "no name header",
        modern("tools/call", {"name": "echo"}),
        [(b"mcp-method", b"tools/call")],
        400,
        -32020,
    ),
    (
        "unknown resource",
        modern("resources/read", {"uri": "memo://b"}),
        [(b"mcp-method", b"resources/read"), (b"mcp-name", b"memo://b")],
        400,
        -32602,
    ),
    ("not JSON", b"{", [], 400, -32700),
    ("nothing", b"", [], 400, -32700),
    ("white space", b" \r\n\t", [], 400, -32700),
    ("not an object", b"[]", [], 400, -32600),
    ("no method", b'{"jsonrpc":"2.0","id":1}', [], 400, -32600),
]


@pytest.mark.parametrize(("what", "message", "headers", "status", "code"), STATUSES)
@pytest.mark.requirement("SHM-3", "SHM-5", "SHM-6", "SHM-7", "HDR-3", "HDR-4", "HDR-17")
def test_error_response_has_the_status_of_its_code(
    what: str, message: Any, headers: list[tuple[bytes, bytes]], status: int, code: int
) -> None:
    reply = RouterHarness().post(message, VERSION, *headers)
    assert (reply.status, reply.message["error"]["code"]) == (status, code)
    # A bad body has no id in it that could be repeated, and this revision does not say null then.
    assert reply.message.get("id") == (
        1 if isinstance(message, dict) or b'"id"' in message else None
    )


@pytest.mark.requirement("TX-22", "SHM-7")
@pytest.mark.parametrize("method", ["tasks/result", "tasks/list", "resources/subscribe"])
def test_removed_method_is_not_found_with_any_name_header(method: str) -> None:
    """In 2025-11-25 `tasks/result` has a task id, which no header of this revision repeats."""
    server = Server("tasks")
    server.resource("memo://a")(lambda: "a")

    @server.tool(task="optional")
    async def work() -> None:
        """Work."""

    harness = RouterHarness(server)
    message = modern(method, {"taskId": "t", "uri": "memo://a"})
    for more in ([], [(b"mcp-name", b"other")]):
        reply = harness.post(message, VERSION, (b"mcp-method", method.encode()), *more)
        assert (reply.status, reply.message["error"]["code"]) == (404, -32601)


@pytest.mark.parametrize("version", [D, E])
def test_body_with_too_many_values_gets_an_error_response(version: str) -> None:
    harness = RouterHarness(Server("small", limits=Limits(decoded=50_000)))
    params = {"name": "echo", "arguments": {"a": [[]] * 800}, "_meta": meta()}
    message = request("r", "tools/call", params)
    if version == E:
        reply = harness.modern(message, "echo")
    else:
        reply = harness.session().post(message)
    error = reply.message["error"]
    assert (reply.status, reply.message["id"], error["code"]) == (400, "r", -32700)
    assert "too many values: decoded, they take about 9" in error["message"]
    assert "more than 50000" in error["message"]


@pytest.mark.requirement("SHM-3", "SHM-4", "ERR-6")
def test_headers_are_checked_before_revision_and_method() -> None:
    harness = RouterHarness()
    other = {**meta(), "io.modelcontextprotocol/protocolVersion": "v999.0.0"}
    message = request(1, "nope", {"_meta": other})
    method = (b"mcp-method", b"nope")
    assert harness.post(message, VERSION, method).message["error"]["code"] == -32020
    reply = harness.post(message, (b"mcp-protocol-version", b"v999.0.0"), method)
    assert (reply.status, reply.message["error"]["code"]) == (400, -32022)
    assert reply.message["error"]["data"]["requested"] == "v999.0.0"
    assert E in reply.message["error"]["data"]["supported"]
    assert harness.post(message, method).message["error"]["code"] == -32020


@pytest.mark.requirement("PROBE-11", "SHM-17", "HTTP-4")
def test_revision_is_read_from_the_header_or_else_the_body() -> None:
    harness = RouterHarness()
    assert harness.post(LIST, (b"mcp-method", b"tools/list")).message["error"]["code"] == -32020
    assert harness.post(initialize()).headers[b"mcp-session-id"]
    nowhere = harness.post(request(1, "tools/list"))
    assert (nowhere.status, "send initialize first" in nowhere.message["error"]["message"]) == (
        400,
        True,
    )
    assert nowhere.message["id"] is None


def test_revision_that_is_not_served_is_rejected() -> None:
    old = Server("old", versions=[D])
    reply = RouterHarness(old).modern(LIST)
    assert (reply.status, "served are 2025-11-25" in reply.message["error"]["message"]) == (
        400,
        True,
    )
    new = Server("new", versions=[E])
    assert RouterHarness(new).post(initialize()).message["error"]["code"] == -32602
    assert (
        RouterHarness(new).post(initialize(), (b"mcp-protocol-version", D.encode())).status == 400
    )


@pytest.mark.requirement("HTTP-9", "SHM-18")
def test_notification_gets_202_without_a_body() -> None:
    harness = RouterHarness()
    note = {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 1}}
    for headers in ([VERSION], [VERSION, (b"mcp-method", b"notifications/cancelled")]):
        reply = harness.post(note, *headers)
        assert (reply.status, reply.body, reply.ended) == (202, b"", True)
    bad = harness.post(
        {"jsonrpc": "2.0", "method": "notifications/progress", "params": {}}, VERSION
    )
    assert bad.status == 400


def test_body_over_the_limit_gets_413_at_once() -> None:
    harness = RouterHarness()
    exchange = harness.router.begin(RequestHead(b"POST", b"/mcp", [*POST, VERSION]), 0.0)
    harness.router.receive_data(exchange, b" " * 100_000, 0.0)
    assert exchange.reading
    reply = harness.replies[exchange] = Reply(exchange)
    harness.router.receive_data(exchange, b" ", 0.0)
    harness.router.receive_data(exchange, b"ignored", 0.0)
    harness.pump()
    assert (reply.status, exchange.reading, exchange.close_after, exchange.over) == (
        413,
        False,
        True,
        True,
    )


@pytest.mark.parametrize("size", [99_999, 100_000])
def test_body_at_the_limit_is_read(size: int) -> None:
    harness = RouterHarness()
    empty = len(
        json.encode(
            request(1, "tools/call", {"name": "echo", "arguments": {"text": ""}, "_meta": meta()})
        )
    )
    reply = harness.call(1, text="x" * (size - empty))
    assert reply.status == 200


def test_body_in_pieces_is_one_body() -> None:
    harness = RouterHarness()
    body = json.encode(LIST)
    headers = [*POST, VERSION, (b"mcp-method", b"tools/list")]
    whole = harness.modern(LIST).body
    for size in (1, 7, len(body)):
        exchange = harness.router.begin(RequestHead(b"POST", b"/mcp", headers), 0.0)
        reply = harness.replies[exchange] = Reply(exchange)
        for start in range(0, len(body), size):
            harness.router.receive_data(exchange, body[start : start + size], 0.0)
        harness.router.receive_data(exchange, b"", 0.0)
        harness.pump()
        assert reply.body == whole


@pytest.mark.requirement("SHM-11", "CXL-14")
def test_disconnect_cancels_the_request() -> None:
    harness = RouterHarness()
    reply = harness.call(1, "slow", steps=100)
    harness.step()
    harness.close_after(reply)
    harness.step(2)
    assert not harness.jobs
    assert harness.endpoint.idle
    assert not harness.router.ready()
    assert type(harness.seen[-1][1]).__name__ == "ConnectionClosed"


def test_disconnect_within_the_body_sends_nothing() -> None:
    harness = RouterHarness()
    exchange = harness.router.begin(RequestHead(b"POST", b"/mcp", [*POST, VERSION]), 0.0)
    harness.router.receive_data(exchange, b'{"jsonrpc"', 0.0)
    harness.router.disconnected(exchange, 0.0)
    harness.router.disconnected(exchange, 0.0)
    harness.router.receive_data(exchange, b"", 0.0)
    harness.pump()
    assert (harness.seen, harness.router.actions_to_send(exchange)) == ([], [])


def test_disconnect_after_the_response_is_harmless() -> None:
    harness = RouterHarness()
    reply = harness.call(1)
    harness.close_after(reply)
    ((conversation, event),) = harness.seen  # it has ended with its response, and without an event
    assert (type(event).__name__, conversation.retired) == ("RequestReceived", True)
    assert (harness.endpoint.one_shots, list(harness.server._listeners)) == ({}, [])


def test_concurrent_requests_may_have_the_same_id() -> None:
    harness = RouterHarness()
    replies = [harness.call(1, "slow", text=str(number)) for number in range(20)]
    harness.step(3)
    assert [reply.message["result"]["content"][0]["text"] for reply in replies] == [
        str(n) for n in range(20)
    ]


@pytest.mark.requirement("SHM-9")
def test_input_required_result_is_json() -> None:
    harness = RouterHarness()
    able = {**meta(), "io.modelcontextprotocol/clientCapabilities": {"elicitation": {}}}
    params = {"name": "ask", "arguments": {}, "_meta": able}
    reply = harness.modern(request(1, "tools/call", params), "ask")
    harness.step(3)
    assert reply.headers[b"content-type"] == b"application/json"
    assert reply.message["result"]["resultType"] == "input_required"


def test_slow_reader_delays_the_handler_and_a_stalled_one_loses_the_stream() -> None:
    harness = RouterHarness(limits=HttpLimits(queued=1000))
    params = {"name": "count", "arguments": {"to": 100}, "_meta": meta(progressToken="p")}
    reply = harness.modern(request(1, "tools/call", params), "count")
    exchange = reply.exchange
    harness.unread = True
    harness.step(60)
    assert exchange.queued <= 1200
    harness.unread = False
    harness.router.endpoints[0].ready[exchange] = None
    harness.pump()
    assert reply.ended
    assert reply.messages == []
    harness.step(3)
    assert not harness.jobs  # the client is gone


def test_listen_stream_ends_with_its_subscription() -> None:
    """Each notification carries the request's id, and the shutdown sends the missing result."""
    harness = RouterHarness()
    requests = modern("subscriptions/listen", {"notifications": {"toolsListChanged": True}})
    reply = harness.modern(requests)
    harness.server.changed(tools=True)
    harness.pump()
    methods = [message["method"] for message in reply.messages]
    assert methods == [
        "notifications/subscriptions/acknowledged",
        "notifications/tools/list_changed",
    ]
    assert all(
        m["params"]["_meta"]["io.modelcontextprotocol/subscriptionId"] == 1 for m in reply.messages
    )
    harness.router.shutdown()
    harness.pump()
    assert reply.messages[-1]["result"]["resultType"] == "complete"
    assert reply.ended


def test_changes_not_read_are_sent_once() -> None:
    """A client that reads slowly gets 1000 updates of a resource as fewer than 150."""
    harness = RouterHarness()
    requests = modern(
        "subscriptions/listen", {"notifications": {"resourceSubscriptions": ["memo://a"]}}
    )
    reply = harness.modern(requests)
    harness.unread = True
    for _ in range(1000):
        harness.server.changed(resource="memo://a")
        harness.pump()
    assert reply.exchange.queued < 32_000
    harness.unread = False
    harness.read(reply.exchange)
    harness.pump()
    before = len(reply.messages)
    harness.server.changed(resource="memo://a")
    harness.pump()
    assert before < 150
    assert len(reply.messages) > before - 1


@pytest.mark.requirement("SUB-15")
def test_listen_stream_is_kept_alive() -> None:
    harness = RouterHarness()
    reply = harness.modern(
        modern("subscriptions/listen", {"notifications": {"toolsListChanged": True}})
    )
    assert reply.headers[b"x-accel-buffering"] == b"no"
    before = reply.body
    harness.wait(46)
    assert reply.body == before + b":\n\n" * 3


# What is wrong with a request, the first thing first: mended one after the other, the next one is
# the answer.
FAULTS = [
    ("origin", 403, None),
    ("verb", 405, None),
    ("accept", 406, None),
    ("json", 400, -32700),
    ("shape", 400, -32600),
    ("meta", 400, -32602),
    ("mirror", 400, -32020),
    ("version", 400, -32022),
    ("method", 404, -32601),
    ("param header", 400, -32020),
    ("params", 400, -32602),
    ("capability", 400, -32021),
    ("", 200, None),
]


@pytest.mark.parametrize(
    ("mended", "status", "code"), [(n, *rest) for n, (_, *rest) in enumerate(FAULTS)]
)
@pytest.mark.requirement("SHM-19", "HDR-11")
def test_checks_run_in_the_order_of_the_specification(
    mended: int, status: int, code: int | None
) -> None:
    """Each request has all faults from one check on: only the first one of them is reported."""
    server = Server("s")

    @server.tool
    async def where(
        region: Annotated[str, Meta(extra_json_schema={"x-mcp-header": "Region"})], context: Context
    ) -> str:
        """Asks, if it can."""
        raise ToolError(region) if "capability" not in wrong else McpError(-32021, "no sampling")

    wrong = {fault for fault, *_ in FAULTS[mended:]}
    version = "v999" if "version" in wrong else E
    params: dict[str, Any] = {
        "name": "where",
        "arguments": {"region": "north"},
        "_meta": {**meta(), "io.modelcontextprotocol/protocolVersion": version},
    }
    if "params" in wrong and "param header" not in wrong:  # what cannot be read cannot be compared
        params["inputResponses"] = 5
    if "meta" in wrong:
        del params["_meta"]
    method = "nope" if "method" in wrong else "tools/call"
    body = json.encode(request(1, method, params))
    if "shape" in wrong:
        body = b"[]"
    if "json" in wrong:
        body = b"{"
    headers = [HOST, JSON, (b"mcp-protocol-version", version.encode()), (b"mcp-name", b"where")]
    headers.append((b"accept", b"text/html" if "accept" in wrong else b"*/*"))
    headers.append((b"mcp-method", b"tools/list" if "mirror" in wrong else method.encode()))
    headers.append((b"mcp-param-region", b"south" if "param header" in wrong else b"north"))
    if "origin" in wrong:
        headers.append((b"origin", b"http://evil.example"))
    harness = RouterHarness(server)
    reply = harness.send(b"PUT" if "verb" in wrong else b"POST", headers, body)
    harness.step(2)
    assert reply.status == status, reply
    if code is not None:
        assert reply.message["error"]["code"] == code


# -- The whole -------------------------------------------------------------------------------------


def test_shutdown_rejects_new_requests() -> None:
    """A ping in a session is still answered, so its client sees that the server lives."""
    harness = RouterHarness()
    client = harness.session()
    running = harness.call(1, "slow", steps=2)
    harness.router.shutdown()
    harness.pump()
    for refused in (harness.call(2), harness.post(initialize()), harness.get()):
        assert refused.status == 503
        assert b"retry-after" in refused.headers
    busy = client.call(3)
    assert (busy.status, busy.message["error"]["code"]) == (503, -32000)
    assert client.post(request(4, "ping")).message["result"] == {}
    harness.step(4)
    assert running.message["result"]
    harness.router.close()
    harness.pump()
    assert harness.router.idle
    assert not harness.endpoint.sessions
    assert all(not service.server._listeners for service in harness.services)


def test_plain_route_is_served_and_unknown_path_gets_404() -> None:
    """Health checks and the like: queries are ignored, HEAD has no body, errors propagate."""

    def failing(head: RequestHead) -> PlainResponse:
        raise RuntimeError("broken")

    routes: dict[str, Callable[[RequestHead], PlainResponse]] = {
        "/healthz": lambda head: PlainResponse(
            200, b"ok", headers=[(b"cache-control", b"no-store")]
        ),
        "/empty": lambda head: PlainResponse(204),
        "/broken": failing,
    }
    harness = RouterHarness(routes=routes)
    reply = harness.send(b"GET", [HOST], target=b"/healthz?deep=1")
    assert (reply.status, reply.body, reply.headers[b"cache-control"]) == (200, b"ok", b"no-store")
    assert harness.send(b"HEAD", [HOST], target=b"/healthz").body == b""
    assert harness.send(b"GET", [HOST], target=b"/empty").headers == {}
    missing = harness.send(b"POST", POST, b"{}", target=b"/other")
    assert (missing.status, missing.body) == (404, b"There is nothing at this path.\n")
    assert harness.send(b"OPTIONS", [HOST], target=b"/mcp/").status == 204
    with pytest.raises(RuntimeError, match="broken"):
        harness.send(b"GET", [HOST], target=b"/broken")
    assert repr(harness.router) == "<Router of 1 endpoints and 3 plain routes>"


@pytest.mark.requirement("DEC-2")
def test_handler_error_has_the_status_of_its_code() -> None:
    """Only -32602 means a bad request; the handler's other errors are results of HTTP 200."""
    server = Server("s")

    @server.resource("memo://{name}")
    def memo(name: str) -> str:
        """A memo."""
        raise McpError({"a": -32602, "b": -32603, "c": 7}[name], "no")

    harness = RouterHarness(server)
    statuses = []
    for name in "abc":
        headers = [
            VERSION,
            (b"mcp-method", b"resources/read"),
            (b"mcp-name", b"memo://" + name.encode()),
        ]
        statuses.append(
            harness.post(modern("resources/read", {"uri": f"memo://{name}"}), *headers).status
        )
    assert statuses == [400, 200, 200]


def test_calls_of_one_principal_share_a_rate_limit() -> None:
    """Stateless requests have no session to count in: the principal has the bucket, if known."""
    from mcp_core import Rate

    server = Server("s", limits=Limits(tool_calls=Rate(per_second=1, burst=2)))

    @server.tool
    def echo(text: str = "") -> str:
        """At once."""
        return text

    harness = RouterHarness(server)
    body = request(1, "tools/call", {"name": "echo", "_meta": meta()})
    headers = [VERSION, (b"mcp-method", b"tools/call"), (b"mcp-name", b"echo")]
    assert [harness.post(body, *headers, principal="a").status for _ in range(3)] == [200, 200, 429]
    assert harness.post(body, *headers, principal="b").status == 200
    assert [harness.post(body, *headers).status for _ in range(4)] == [200] * 4


def test_reprs_name_the_state() -> None:
    harness = RouterHarness()
    reply = harness.call(1, "slow")
    assert repr(harness.endpoint) == "<Endpoint with 0 sessions, 1 exchanges under way>"
    assert (
        repr(reply.exchange) == "<Exchange UNDECIDED of <EventStream , 0 messages, 1 pending> at 0>"
    )
    assert repr(harness.seen[0][0]).startswith("<Conversation over <Connection server")
    assert repr(harness.endpoint.log) == "<EventLog of 0 streams, 0 bytes>"


# -- Between a head and its body -------------------------------------------------------------------


@pytest.mark.requirement("SHL-24")
@pytest.mark.parametrize(
    "what", ["deleted", "idle", "closed", "wound down, in a session", "wound down", "closed, alone"]
)
def test_change_between_head_and_body_is_noticed(what: str) -> None:
    """The head passed all checks, and yet the body finds no session or a server in shutdown."""
    harness = RouterHarness(limits=HttpLimits(idle=60))
    client = harness.session()
    in_session = not (what == "wound down" or what.endswith("alone"))
    headers = client.headers if in_session else [VERSION, (b"mcp-method", b"tools/list")]
    exchange = harness.router.begin(RequestHead(b"POST", b"/mcp", [*POST, *headers]), 0.0)
    reply = harness.replies[exchange] = Reply(exchange)
    assert exchange.reading
    if what == "deleted":
        assert client.delete().status == 204
    elif what == "idle":
        harness.wait(61)
    elif what.startswith("closed"):
        harness.router.close()
    else:
        harness.router.shutdown()
    harness.router.receive_data(
        exchange, json.encode(request(1, "ping") if in_session else LIST), harness.now
    )
    harness.router.receive_data(exchange, b"", harness.now)
    harness.pump()
    if what == "wound down, in a session":
        assert (reply.status, reply.message["result"]) == (200, {})
    else:
        assert reply.status == (404 if in_session else 503)
    assert reply.ended
    assert not harness.jobs


def test_release_needs_a_stream() -> None:
    harness = RouterHarness(reply="json")
    client = harness.session()
    client.call(1, "slow", steps=2)
    (session,) = harness.endpoint.sessions.values()
    assert not session.release(1, None)
    harness.step(3)


def test_buckets_of_the_oldest_principals_are_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    """Memory has a bound: the least recent principal gets its full burst again, `a` doesn't."""
    from mcp_core import Rate, _limits

    monkeypatch.setattr(_limits, "_MOST_BUCKETS", 2)
    server = Server("s", limits=Limits(tool_calls=Rate(per_second=0.001, burst=1)))

    @server.tool
    def echo() -> str:
        """At once."""
        return "x"

    harness = RouterHarness(server)
    body = request(1, "tools/call", {"name": "echo", "_meta": meta()})
    headers = [VERSION, (b"mcp-method", b"tools/call"), (b"mcp-name", b"echo")]
    statuses = [
        harness.post(body, *headers, principal=who).status for who in ("a", "b", "a", "c", "a", "b")
    ]
    assert statuses == [200, 200, 429, 200, 429, 200]


def test_cancellation_in_a_rejected_batch_does_nothing() -> None:
    harness = RouterHarness()
    client = harness.session("2025-03-26")
    call = request(1, "tools/call", {"name": "slow", "arguments": {"text": "x"}})
    note = {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 1}}
    first = client.post(call)
    refused = client.post([call, note])  # the id is in use, so nothing of it counts
    assert refused.status == 400
    harness.step(3)
    assert first.message["result"]["content"][0]["text"] == "x"


def test_one_shot_requests_are_limited_and_end() -> None:
    harness = RouterHarness(limits=HttpLimits(sessions=1))
    running = harness.call(1, "slow", steps=9)
    refused = harness.call(2)
    assert (refused.status, refused.headers[b"retry-after"]) == (503, b"5")
    harness.router.close()
    harness.pump()
    assert (running.status, running.ended) == (503, True)
    harness.step()
    assert not harness.jobs


@pytest.mark.requirement("SHL-29")
@pytest.mark.parametrize("verb", [b"GET", b"POST", b"DELETE"])
@pytest.mark.parametrize("versions", [(D,), (D, E)])
def test_unknown_version_header_gets_400_for_every_verb(
    verb: bytes, versions: tuple[str, ...]
) -> None:
    harness = RouterHarness(Server("s", versions=versions))
    client = harness.session()
    for headers in ([client.headers[0]], []):
        for version in (b"1999-01-01", b"", b"x" * 1000, b"2025-11-25 "):
            more = [*GET, *headers] if verb == b"GET" else [*POST, *headers]
            reply = harness.send(
                verb, [*more, (b"mcp-protocol-version", version)], json.encode(request(1, "ping"))
            )
            assert reply.status == 400
    assert client.post(request(1, "ping")).status == 200


@pytest.mark.parametrize("reply", ["auto", "json"])
def test_last_event_id_that_was_never_sent_is_rejected(reply: str) -> None:
    """All are unknown alike, also those that a lenient reader would take for a known one."""
    harness = RouterHarness(reply=reply)
    client = harness.session()
    running = client.call(1, "slow", steps=2)
    unknown = client.get(b"77-0")
    for id in (
        b"2-0",
        b"0-\xed\xa0\x80",
        b"\xed\xa0\x80-0",
        "0-\u0661".encode(),
        "0-\ufffd".encode(),
    ):
        refused = client.get(id)
        assert (refused.status, refused.body) == (400, unknown.body)
    harness.step(4)
    assert (running.headers[b"content-type"], running.message["id"]) == (b"application/json", 1)


@pytest.mark.requirement("SHM-14")
def test_session_id_of_a_stateless_request_is_ignored() -> None:
    harness = RouterHarness()
    call = request(1, "tools/call", {"name": "echo", "arguments": {"text": "x"}, "_meta": meta()})
    headers = [
        (b"mcp-protocol-version", E.encode()),
        (b"mcp-method", b"tools/call"),
        (b"mcp-name", b"echo"),
    ]
    for id in (b"unknown", harness.session().id):
        reply = harness.post(call, *headers, (b"mcp-session-id", id))
        assert (reply.status, reply.message["result"]["content"][0]["text"]) == (200, "x")
        assert b"mcp-session-id" not in reply.headers


@pytest.mark.requirement("HDR-4")
@pytest.mark.parametrize("name", ["ECHO", "Echo", "echo.", "=?base64?RUNITw==?="])
def test_mirrored_name_in_another_spelling_is_a_mismatch(name: str) -> None:
    harness = RouterHarness()
    call = request(1, "tools/call", {"name": "echo", "arguments": {"text": "x"}, "_meta": meta()})
    reply = harness.modern(call, name)
    assert (reply.status, reply.message["error"]["code"]) == (400, -32020)
    assert harness.modern(call, "=?base64?ZWNobw==?=").status == 200


# What stands in params, and whether two readers of the body can disagree about a mirrored value.
META = b'"_meta":' + json.encode(meta())
AMBIGUOUS: list[tuple[str, str, bytes, bool]] = [
    ("tools/call", "echo", b'"name":"echo"', False),
    ("tools/call", "echo", b'"name":"echo","uri":"memo://a"', False),
    ("tools/call", "echo", b'"uri":"memo://b","name" : "echo" ', False),
    ("tools/call", "echo", b'"name":"echo","arguments":{"text":"\\u0022 name","name":1}', False),
    ("tools/call", "echo", b'"name":"other","name":"echo"', True),
    ("tools/call", "echo", b'"name":"echo","name":"other"', True),
    ("tools/call", "echo", b'"name":"echo","name":"echo"', True),
    ("tools/call", "echo", b'"n\\u0061me":"other","name":"echo"', True),
    ("tools/call", "echo", b'"name":"","x":0,"name":"echo"', True),
    ("tools/call", "echo", b'"name":"echo","arguments":{},"arguments":{"text":"x"}', True),
    ("tools/call", "echo", b'"name":"echo",' + META, True),
    ("resources/read", "memo://a", b'"uri":"memo://a","name":"echo"', False),
    ("resources/read", "memo://a", b'"uri":"memo://b","uri":"memo://a"', True),
    ("resources/read", "memo://a", b'"ur\\u0069":"memo://b","uri":"memo://a"', True),
    ("tools/list", "", b'"name":"a","name":"b"', True),
]


@pytest.mark.parametrize(("method", "name", "params", "ambiguous"), AMBIGUOUS)
@pytest.mark.requirement("HDR-18")
def test_duplicate_member_of_mirrored_params_is_rejected(
    method: str, name: str, params: bytes, ambiguous: bool
) -> None:
    """A proxy that lets a call pass by its header or its body must have seen what we act on."""
    body = b'{"jsonrpc":"2.0","id":1,"method":"%b","params":{%b,%b}}' % (
        method.encode(),
        params,
        META,
    )
    for each in (body, body.replace(b",", b" ,\n\t").replace(b":{", b" : { ")):
        reply = RouterHarness().post(
            each, VERSION, (b"mcp-method", method.encode()), (b"mcp-name", name.encode())
        )
        if not ambiguous:
            assert reply.status == 200
            continue
        assert (reply.status, reply.message["error"]["code"]) == (400, -32600)
        assert "twice" in reply.message["error"]["message"]


@pytest.mark.requirement("HDR-18")
def test_duplicate_version_in_meta_is_rejected() -> None:
    versions = b'"io.modelcontextprotocol/protocolVersion":"2025-11-25",'
    body = b'{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{%b}}'
    twice = body % META.replace(b'{"io', b"{" + versions + b'"io', 1)
    headers = [VERSION, (b"mcp-method", b"tools/list")]
    reply = RouterHarness().post(twice, *headers)
    assert (reply.status, reply.message["error"]["code"]) == (400, -32600)
    assert RouterHarness().post(body % META, *headers).status == 200


# -- Bodies without a message ----------------------------------------------------------------------


@pytest.mark.parametrize("body", [b"", b" \n"])
def test_empty_post_of_a_session_or_without_one_gets_an_error(body: bytes) -> None:
    """A client whose body was lost must not take the response for an accepted message."""
    harness = RouterHarness()
    replies = [
        harness.post(body, VERSION, (b"mcp-method", b"tools/list")),
        harness.post(body),
        harness.session().post(body),
        RouterHarness(sessions=False).post(body),
        RouterHarness(Server("new", versions=[E])).post(body),
    ]
    for reply in replies:
        assert (reply.status, reply.message["error"]["code"]) == (400, -32700)
        assert "empty" in reply.message["error"]["message"]


def test_empty_post_to_an_sse_session_gets_an_error() -> None:
    harness = RouterHarness()
    stream = harness.get()
    (event,) = stream.events
    assert harness.post(b"", target=event[1]).status == 400
    assert len(stream.events) == 1


def test_busy_response_has_the_code_of_its_revision() -> None:
    """-32000 is not free in 2026-07-28, where our code is positive."""
    harness = RouterHarness(limits=HttpLimits(sessions=0))
    assert harness.post(initialize()).message["error"]["code"] == -32000
    assert harness.call(1).message["error"]["code"] == 429
