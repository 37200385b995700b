"""ASGI over HTTP: the path of an application from its scope, and the meaning of messages."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import json

from mcp_core.http import AsgiHttpExchange, PlainResponse
from mcp_core.http.server._asgi import metadata_messages, split_scope
from tests.harness.wire.router import (
    GET,
    HOST,
    POST,
    E,
    RouterHarness,
    meta,
    request,
)
from tests.levels import fewer_examples


def scope(**more: Any) -> dict[str, Any]:
    return {"type": "http", "method": "POST", "path": "/mcp", "headers": [], **more}


# -- Where it is -----------------------------------------------------------------------------------

# root_path, path, raw_path, query; the path inside, the target as the client sees it
SCOPES: list[tuple[str | None, str, bytes | None, bytes | None, bytes, bytes]] = [
    (None, "/mcp", None, None, b"/mcp", b"/mcp"),
    ("", "/mcp", b"/mcp", b"", b"/mcp", b"/mcp"),
    ("", "/mcp", b"/mcp", b"a=b&c", b"/mcp", b"/mcp?a=b&c"),
    ("", "/", b"/", b"", b"/", b"/"),
    # Mounted: what is in front is in both, as ASGI wants it.
    ("/tools", "/tools/", b"/tools/", b"", b"(mount point)", b"/tools/"),
    ("/tools", "/tools", b"/tools", b"", b"(mount point)", b"/tools"),
    ("/tools", "/tools/mcp", b"/tools/mcp", b"x", b"/mcp", b"/tools/mcp?x"),
    ("/a/b", "/a/b/mcp", None, b"", b"/mcp", b"/a/b/mcp"),
    ("/tools/", "/tools/mcp", b"/tools/mcp", b"", b"/mcp", b"/tools/mcp"),
    # Behind a proxy that takes it away, with a server that does not put it back.
    ("/tools", "/mcp", b"/mcp", b"", b"/mcp", b"/tools/mcp"),
    ("/tools", "/toolshed", b"/toolshed", b"", b"/toolshed", b"/tools/toolshed"),
    ("/ü b", "/mcp", b"/mcp", b"", b"/mcp", b"/%C3%BC%20b/mcp"),
    # A quoted path is compared unquoted; the target stays as it was received.
    ("/ü", "/ü/mcp", b"/%c3%bc/mcp", b"", b"/mcp", b"/%c3%bc/mcp"),
    ("", "/mcp", b"/m%63p", b"", b"/mcp", b"/m%63p"),
    ("", "/ü", None, b"", "/ü".encode(), b"/%C3%BC"),
    # No path: servers pass such targets on. None of them is the mount point.
    ("", "(mount point)", b"(mount%20point)", b"", b"(nowhere)", b"(mount%20point)"),
    ("/tools", "(mount point)", b"(mount%20point)", b"", b"(nowhere)", b"/tools(mount%20point)"),
    ("/tools", "/(mount point)", None, b"", b"/(mount point)", b"/tools/%28mount%20point%29"),
    ("/tools", "/tools(mount point)", b"/x", b"", b"/tools(mount point)", b"/tools/x"),
    ("", "(nowhere)", None, b"", b"(nowhere)", b"%28nowhere%29"),
    ("", "mcp", b"mcp", b"", b"(nowhere)", b"mcp"),
    ("", "", b"", b"a", b"(nowhere)", b"?a"),
    ("/tools", "", b"", b"", b"(nowhere)", b"/tools"),
    ("", "*", b"*", b"", b"(nowhere)", b"*"),
    ("", "http://a/mcp", b"http://a/mcp", b"", b"(nowhere)", b"http://a/mcp"),
]


@pytest.mark.parametrize(("root", "path", "raw", "query", "inside", "target"), SCOPES)
def test_scope_path_is_relative_to_the_mount(
    root: str | None,
    path: str,
    raw: bytes | None,
    query: bytes | None,
    inside: bytes,
    target: bytes,
) -> None:
    members = {"root_path": root, "raw_path": raw, "query_string": query}
    given = scope(path=path, **{key: value for key, value in members.items() if value is not None})
    head, found = split_scope(given)
    assert (found, head.target, head.method) == (inside, target, b"POST")


# root_path, app_root_path as Starlette sets it, path; the path inside, the target as the client
# sees it
MOUNTS: list[tuple[str, str, str, bytes, bytes]] = [
    ("", "", "/", b"(mount point)", b"/"),
    ("", "", "/mcp", b"/mcp", b"/mcp"),
    ("/tools", "", "/tools/", b"(mount point)", b"/tools/"),
    ("/api/tools", "/api", "/api/tools/mcp", b"/mcp", b"/api/tools/mcp"),
    ("/api/tools", "/api", "/api/tools", b"(mount point)", b"/api/tools"),
    # A proxy has removed "/api".
    ("/api/tools", "/api", "/tools/mcp", b"/mcp", b"/api/tools/mcp"),
    ("/api/tools", "/api", "/tools/", b"(mount point)", b"/api/tools/"),
    ("/api/tools", "/api/", "/tools/", b"(mount point)", b"/api/tools/"),
    ("/api/tools", "/api", "/toolshed", b"/toolshed", b"/api/tools/toolshed"),
    ("/api", "/api", "/mcp", b"/mcp", b"/api/mcp"),
    ("/api", "/else", "/mcp", b"/mcp", b"/api/mcp"),
]


@pytest.mark.parametrize(("root", "outer", "path", "inside", "target"), MOUNTS)
def test_scope_path_in_starlette_is_relative_to_the_mount(
    root: str, outer: str, path: str, inside: bytes, target: bytes
) -> None:
    head, found = split_scope(scope(path=path, root_path=root, app_root_path=outer))
    assert (found, head.target) == (inside, target)


def test_scope_headers_are_passed_on() -> None:
    pairs = ((b"host", b"a"), (b"x", b"1"), (b"x", b"2"))
    head, _ = split_scope(scope(headers=iter(pairs)))
    assert head.headers == list(pairs)


# -- Messages --------------------------------------------------------------------------------------


class IdleToken:
    def wake(self) -> None:
        """Do nothing: no task waits here."""


def begin(
    harness: RouterHarness, method: str, headers: list[tuple[bytes, bytes]], **more: Any
) -> AsgiHttpExchange:
    return AsgiHttpExchange(
        harness.router,
        scope(method=method, headers=headers, **more),
        harness.now,
        token=IdleToken(),
    )


def body(data: bytes, *, more: bool = False) -> dict[str, Any]:
    return {"type": "http.request", "body": data, "more_body": more}


def calling(tool: str) -> tuple[list[tuple[bytes, bytes]], bytes]:
    headers = [
        *POST,
        (b"mcp-protocol-version", E.encode()),
        (b"mcp-method", b"tools/call"),
        (b"mcp-name", tool.encode()),
    ]
    params = {"name": tool, "arguments": {"text": "hi"} if tool == "echo" else {}, "_meta": meta()}
    return headers, json.encode(request(1, "tools/call", params))


def settle(harness: RouterHarness) -> None:
    harness.router.pump(harness._take)


def test_whole_response_is_two_messages() -> None:
    harness = RouterHarness()
    headers, data = calling("echo")
    exchange = begin(harness, "POST", headers)
    assert (exchange.over, exchange.messages_to_send(0.0)) == (False, [])
    exchange.receive(body(data), harness.now)
    settle(harness)
    start, end = exchange.messages_to_send(0.0)
    assert exchange.over
    assert (start["type"], start["status"]) == ("http.response.start", 200)
    assert (b"content-length", b"%d" % len(end["body"])) in start["headers"]
    assert (end["type"], end["more_body"]) == ("http.response.body", False)
    assert json.decode(end["body"])["result"]["content"][0]["text"] == "hi"
    assert exchange.messages_to_send(0.0) == []


@fewer_examples(5)
@given(cuts=st.lists(st.integers(min_value=0, max_value=400), max_size=6))
def test_request_body_may_be_cut_anywhere(cuts: list[int]) -> None:
    headers, data = calling("echo")
    outputs = []
    for places in ([], sorted(cuts)):
        harness = RouterHarness()
        exchange = begin(harness, "POST", headers)
        begun = 0
        for place in places:
            exchange.receive(body(data[begun:place], more=True), harness.now)
            assert exchange.messages_to_send(0.0) == []
            begun = place
        exchange.receive(body(data[begun:]), harness.now)
        settle(harness)
        outputs.append(exchange.messages_to_send(0.0))
    assert outputs[0] == outputs[1]


def test_optional_message_keys_may_be_missing() -> None:
    harness = RouterHarness()
    headers, data = calling("echo")
    exchange = begin(harness, "POST", headers)
    exchange.receive(
        {"type": "http.request", "body": bytearray(data), "more_body": True}, harness.now
    )
    exchange.receive({"type": "http.request"}, harness.now)
    settle(harness)
    assert len(exchange.messages_to_send(0.0)) == 2
    exchange.receive({"type": "http.request"}, harness.now)  # sent twice, as by some servers
    exchange.receive({"type": "http.something.else"}, harness.now)
    settle(harness)
    assert exchange.messages_to_send(0.0) == []


def test_stream_head_comes_with_a_body() -> None:
    """ASGI sends a head only with the first body: an empty one opens the stream at once."""
    harness = RouterHarness()
    client = harness.session("2025-06-18")
    exchange = begin(harness, "GET", [*GET, *client.headers])
    exchange.receive(body(b""), harness.now)
    settle(harness)
    assert exchange.messages_to_send(0.0) == [
        {
            "type": "http.response.start",
            "status": 200,
            "headers": [
                (b"content-type", b"text/event-stream"),
                (b"cache-control", b"no-cache, no-transform"),
                (b"x-accel-buffering", b"no"),
            ],
        },
        {"type": "http.response.body", "body": b"", "more_body": True},
    ]
    assert repr(exchange).startswith("<AsgiHttpExchange open, <Exchange STREAM")
    exchange.receive({"type": "http.disconnect"}, harness.now)
    assert (exchange.over, exchange.gone) == (True, True)
    assert repr(exchange).startswith("<AsgiHttpExchange gone, <Exchange DISCONNECTED")


def test_output_of_one_moment_is_one_message() -> None:
    """Two changes make one ASGI message, and the last one comes with `more_body=False`."""
    harness = RouterHarness()
    client = harness.session("2025-06-18")
    exchange = begin(harness, "GET", [*GET, *client.headers])
    exchange.receive(body(b""), harness.now)
    harness.server.changed(tools=True, resources=True)
    settle(harness)
    _, message = exchange.messages_to_send(0.0)
    assert message["body"].count(b"list_changed") == 2
    assert message["more_body"]
    harness.server.changed(tools=True)
    settle(harness)
    begin(harness, "DELETE", [HOST, *client.headers])
    settle(harness)
    [message] = exchange.messages_to_send(0.0)
    assert message["body"].count(b"list_changed") == 1
    assert not message["more_body"]
    assert repr(exchange).startswith("<AsgiHttpExchange over, <Exchange")


@pytest.mark.parametrize(
    ("version", "closes"), [("1.0", True), ("1.1", True), ("2", False), (None, True)]
)
def test_connection_close_is_sent_in_http_1_only(version: str | None, closes: bool) -> None:
    harness = RouterHarness()
    more = {} if version is None else {"http_version": version}
    exchange = begin(harness, "POST", [*POST, (b"content-length", b"9" * 9)], **more)
    start, _ = exchange.messages_to_send(0.0)
    assert start["status"] == 413
    assert ((b"connection", b"close") in start["headers"]) is closes


def test_unknown_path_gets_404_and_a_route_is_served() -> None:
    harness = RouterHarness(routes={"/healthz": lambda head: PlainResponse(200, head.target)})
    lost = begin(harness, "GET", [HOST], path="/mc")
    assert lost.messages_to_send(0.0)[0]["status"] == 404
    found = begin(harness, "GET", [HOST], path="/tools/healthz", root_path="/tools")
    start, end = found.messages_to_send(0.0)
    assert (start["status"], end["body"]) == (200, b"/tools/healthz")
    head = begin(harness, "HEAD", [HOST], path="/healthz")
    start, end = head.messages_to_send(0.0)
    assert (b"content-length", b"8") in start["headers"]
    assert end == {"type": "http.response.body", "body": b"", "more_body": False}


def test_disconnect_before_the_response_sends_nothing() -> None:
    harness = RouterHarness()
    headers, data = calling("slow")
    exchange = begin(harness, "POST", headers)
    exchange.receive(body(data), harness.now)
    settle(harness)
    exchange.disconnected(harness.now)
    settle(harness)
    harness.jobs.popitem()[1].close()
    assert exchange.messages_to_send(0.0) == []
    assert harness.router.idle


def test_scope_of_another_type_raises() -> None:
    with pytest.raises(ValueError, match="knows no 'telephone'"):
        begin(RouterHarness(), "GET", [HOST], type="telephone")


def test_http_request_is_never_paused() -> None:
    assert not begin(RouterHarness(), "GET", [HOST]).paused


# -- Hostile header values -------------------------------------------------------------------------


@pytest.mark.parametrize(
    "value", [b"1-\x1b[31m", b"\x07-1", b"a\x00b-0", b"\x7f", b"\xff\x9b-2", b"1\r\nx: y"]
)
@pytest.mark.parametrize(
    "name",
    [
        b"last-event-id",
        b"mcp-session-id",
        b"mcp-protocol-version",
        b"mcp-method",
        b"mcp-name",
        b"host",
        b"origin",
        b"accept",
        b"content-type",
        b"content-length",
        b"content-encoding",
    ],
)
def test_error_texts_have_no_control_characters_of_a_header(name: bytes, value: bytes) -> None:
    """ASGI servers pass on more characters than our own: terminals and logs show error texts."""
    harness = RouterHarness()
    client = harness.session()
    headers, data = calling("echo")
    for method, usual in (
        ("POST", headers),
        ("POST", [*POST, *client.headers]),
        ("GET", [*GET, *client.headers]),
        ("DELETE", [HOST, *client.headers]),
    ):
        hostile = [*[pair for pair in usual if pair[0] != name], (name, value)]
        asked = begin(harness, method, hostile)
        if not asked.over:
            asked.receive(body(data), 0.0)
        settle(harness)
        said = asked.messages_to_send(0.0)
        texts = [pair[1].decode() for pair in said[0]["headers"]]
        bodies = [message["body"] for message in said[1:] if message["body"].startswith(b"{")]
        texts += [json.decode(each).get("error", {}).get("message", "") for each in bodies]
        assert all(text.isprintable() for text in texts), texts
        asked.disconnected(0.0)


# -- Metadata --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("method", "status", "length", "body"),
    [
        ("GET", 200, b"2", b"{}"),
        ("HEAD", 200, b"2", b""),
        ("OPTIONS", 204, None, b""),
    ],
)
def test_metadata_is_served_in_two_messages(
    method: str, status: int, length: bytes | None, body: bytes
) -> None:
    start, rest = metadata_messages(b"{}", scope(method=method))
    headers = dict(start["headers"])
    assert (start["type"], start["status"]) == ("http.response.start", status)
    assert headers.get(b"content-length") == length
    assert headers.get(b"content-type") == (None if status == 204 else b"application/json")
    assert rest == {"type": "http.response.body", "body": body, "more_body": False}


def test_metadata_is_for_http_only() -> None:
    assert metadata_messages(b"{}", {"type": "websocket"}) == [{"type": "websocket.close"}]
    with pytest.raises(ValueError, match="metadata is served for no 'lifespan'"):
        metadata_messages(b"{}", {"type": "lifespan"})
