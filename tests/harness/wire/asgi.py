"""An ASGI server for tests: it calls an application on trio or asyncio, through anyio.

`serve_app` runs the lifespan. `Host.begin` starts a request, `Host.ask` also waits for the end of
its response. The messages of the application are kept as they came, and parsed as a client would
parse them.

`SCENARIOS` are request sequences whose results must be the same bytes on both runtimes. Each checks
what matters and returns its calls.
"""

from __future__ import annotations

import json
import re
from collections import deque
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any, Final

import anyio
import anyio.lowlevel

from mcp_core import Limits
from mcp_core.auth import ApiKeys, Grant, JwtVerifier, OAuthResourceServer
from mcp_core.registry import Context, Server
from tests.core.auth.minting import ISSUER, JWKS, token
from tests.harness.wire.router import (
    GET,
    HOST,
    POST,
    D,
    E,
    initialize,
    meta,
    request,
)
from tests.harness.world.waiting import patience

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping

    from anyio.abc import TaskGroup

    App = Callable[[Any, Any, Any], Awaitable[None]]
    Make = Callable[..., App]

STREAM: Final = b"text/event-stream"
ACCEPT: Final = {"type": "websocket.accept", "subprotocol": "mcp", "headers": []}


class Call:
    """One call of the application: the messages that it receives and sends."""

    def __init__(self, scope: Mapping[str, Any]) -> None:
        self.scope = scope
        self.sent: list[dict[str, Any]] = []
        self.over = False
        self.failure: BaseException | None = None
        self.accepting = anyio.Event()  # unset while the server accepts no messages
        self.accepting.set()
        self.send_error: BaseException | None = None
        self._incoming: deque[dict[str, Any] | BaseException] = deque()
        self._moved = anyio.Event()
        self.task = anyio.CancelScope()

    def __repr__(self) -> str:
        return f"<OutgoingRequest {self.sent}>"

    # -- The server's side -------------------------------------------------------------------------

    async def run(self, app: App) -> None:
        try:
            with self.task:
                await app(self.scope, self._receive, self._send)
        except BaseException as exc:
            self.failure = exc
            if not isinstance(exc, Exception):
                raise
        finally:
            self.over = True
            self._move()

    async def _receive(self) -> dict[str, Any]:
        while not self._incoming:
            await self._moved.wait()
        message = self._incoming.popleft()
        if isinstance(message, BaseException):
            raise message
        return message

    async def _send(self, message: dict[str, Any]) -> None:
        await self.accepting.wait()
        if self.send_error is not None:
            raise self.send_error
        self.sent.append(message)
        self._move()

    def _move(self) -> None:
        self._moved.set()
        self._moved = anyio.Event()

    # -- The test's side ---------------------------------------------------------------------------

    def deliver(self, *messages: dict[str, Any] | BaseException) -> None:
        self._incoming.extend(messages)
        self._move()

    def body(self, data: bytes, *, more: bool = False) -> None:
        self.deliver({"type": "http.request", "body": data, "more_body": more})

    def disconnect(self) -> None:
        self.deliver({"type": "http.disconnect"})

    async def until(self, ready: Callable[[], object]) -> None:
        with anyio.fail_after(patience()):
            while not ready():
                await self._moved.wait()

    async def wait_for_change(self) -> None:
        """Wait, without a timeout, until the application sends something or has returned."""
        if not self.over:
            await self._moved.wait()

    @property
    def complete_messages(self) -> int:
        """The number of MCP messages that have arrived as a whole."""
        if self.complete or (self.sent and self.headers.get(b"content-type") == STREAM):
            return len(self.messages)
        return 0

    async def end(self) -> Call:
        """Wait until the application has returned, and raise its exception."""
        await self.until(lambda: self.over)
        if self.failure is not None:
            raise self.failure
        return self

    async def wait_for_messages(self, number: int = 1) -> list[Any]:
        """Wait for at least `number` MCP messages and return all."""
        await self.until(lambda: self.over or len(self.messages) >= number)
        return self.messages

    # -- The response ------------------------------------------------------------------------------

    @property
    def status(self) -> int:
        status = self.sent[0]["status"]
        assert isinstance(status, int)
        return status

    @property
    def headers(self) -> dict[bytes, bytes]:
        return dict(self.sent[0]["headers"])

    @property
    def raw(self) -> bytes:
        return b"".join(message["body"] for message in self.sent[1:])

    @property
    def complete(self) -> bool:
        return bool(self.sent) and not self.sent[-1].get("more_body", True)

    @property
    def events(self) -> list[dict[str, str]]:
        """The events of a stream, as dicts of their fields."""
        blocks = self.raw.decode().split("\n\n")
        return [
            dict(field.split(": ", 1) for field in block.splitlines() if not field.startswith(":"))
            for block in blocks
            if block
        ]

    @property
    def messages(self) -> list[Any]:
        if not self.sent or self.sent[0]["type"] != "http.response.start":
            return []
        if self.headers.get(b"content-type") == STREAM:
            kinds = (None, "message")
            return [
                json.loads(event["data"])
                for event in self.events
                if event.get("data") and event.get("event") in kinds
            ]
        return [json.loads(self.raw)] if self.raw else []

    @property
    def answer(self) -> Any:
        return self.messages[-1]


class Host:
    """A server of `app`."""

    def __init__(self, app: App, group: TaskGroup, root: str = "") -> None:
        self.app = app
        self.group = group
        self.root = root
        self.calls: list[Call] = []

    def call(self, **scope: Any) -> Call:
        call = Call(scope)
        self.group.start_soon(call.run, self.app)
        return call

    def begin(
        self,
        method: str,
        headers: Iterable[tuple[bytes, bytes]],
        body: bytes | None = b"",
        *,
        path: str = "/mcp",
        query: bytes = b"",
        **more: Any,
    ) -> Call:
        """Start a request. With `body=None` the test sends the body itself."""
        full = self.root + path
        scope = {
            "type": "http",
            "asgi": {"version": "3.0", "spec_version": "2.5"},
            "http_version": "1.1",
            "method": method,
            "scheme": "http",
            "path": full,
            "raw_path": full.encode(),
            "query_string": query,
            "root_path": self.root,
            "headers": list(headers),
            **more,
        }
        call = self.call(**scope)
        self.calls.append(call)
        if body is not None:
            call.body(body)
        return call

    async def request(self, *args: Any, **options: Any) -> Call:
        """Send a request and wait for the end of its response."""
        return await self.begin(*args, **options).end()

    def post(self, message: Any, *more: tuple[bytes, bytes], **options: Any) -> Call:
        return self.begin("POST", [*POST, *more], json.dumps(message).encode(), **options)

    def call_tool(self, id: int, tool: str, **options: Any) -> Call:
        """Send a `tools/call` of 2026-07-28."""
        arguments = options.pop("arguments", {})
        params = {"name": tool, "arguments": arguments, "_meta": meta(progressToken=id)}
        headers = [
            (b"mcp-protocol-version", E.encode()),
            (b"mcp-method", b"tools/call"),
            (b"mcp-name", tool.encode()),
        ]
        return self.post(request(id, "tools/call", params), *headers, **options)

    def websocket(self, *headers: tuple[bytes, bytes], **more: Any) -> Call:
        """Start a WebSocket handshake."""
        scope = {"path": "/mcp", "subprotocols": ["mcp"], "headers": [HOST, *headers], **more}
        call = self.call(type="websocket", **scope)
        call.deliver({"type": "websocket.connect"})
        return call

    async def session(self, **capabilities: Any) -> Session:
        """Open a session of 2025-11-25."""
        opened = await self.post(initialize(D, **capabilities)).end()
        assert opened.status == 200, opened
        session = Session(self, opened.headers[b"mcp-session-id"])
        accepted = await session.post(
            {"jsonrpc": "2.0", "method": "notifications/initialized"}
        ).end()
        assert accepted.status == 202, accepted
        return session


class Session:
    """A session as its client sees it."""

    def __init__(self, host: Host, id: bytes) -> None:
        self.host = host
        self.headers = [(b"mcp-session-id", id), (b"mcp-protocol-version", D.encode())]

    def post(self, message: Any) -> Call:
        return self.host.post(message, *self.headers)

    def calling(self, id: int, tool: str, **arguments: Any) -> Call:
        params = {"name": tool, "arguments": arguments, "_meta": {"progressToken": id}}
        return self.post(request(id, "tools/call", params))

    def get(self, *more: tuple[bytes, bytes]) -> Call:
        return self.host.begin("GET", [*GET, *self.headers, *more])

    async def delete(self) -> Call:
        return await self.host.request("DELETE", [HOST, *self.headers])


@asynccontextmanager
async def serve_app(app: App, *, lifespan: bool = True, root: str = "") -> AsyncIterator[Host]:
    """Serve `app`. With `lifespan`, check its startup and its shutdown."""
    with anyio.fail_after(patience()):
        async with anyio.create_task_group() as group:
            host = Host(app, group, root)
            living = host.call(type="lifespan", state={}) if lifespan else None
            if living is not None:
                living.deliver({"type": "lifespan.startup"})
                await living.until(lambda: living.sent or living.over)
                assert living.sent == [{"type": "lifespan.startup.complete"}], (
                    living.failure or living.sent
                )
            yield host
            if living is not None:
                living.deliver({"type": "lifespan.shutdown"})
                await living.end()
                assert living.sent[1:] == [{"type": "lifespan.shutdown.complete"}]


class Neutral:
    """A server for any runtime, whose handlers wait for the test. `seen` records what they did."""

    def __init__(self, **options: Any) -> None:
        self.server = Server("neutral", limits=Limits(message=100_000), **options)
        self.log: list[str] = []
        self.started, self.go = anyio.Event(), anyio.Event()

        @self.server.tool
        def echo(text: str = "") -> str:
            """Give the text back."""
            return text

        @self.server.tool
        async def wait() -> str:
            """Wait for the test."""
            self.started.set()
            try:
                await self.go.wait()
            except BaseException:
                self.log.append("cancelled")
                raise
            self.log.append("went on")
            return "went on"

        @self.server.tool
        async def count(to: int, context: Context) -> str:
            """Count, and report each step."""
            for step in range(1, to + 1):
                await context.progress(step, to)
            return "counted"

        @self.server.tool
        async def flood(number: int, context: Context) -> str:
            """Report progress many times, 1 KiB each."""
            self.started.set()
            for step in range(number):
                await context.progress(step, message="x" * 1000)
                self.log.append("reported")
            return "done"

        @self.server.tool
        async def ask(context: Context) -> str:
            """Ask the client for its roots."""
            return ", ".join(str(root.uri) for root in await context.roots())

        @self.server.tool
        async def leave(context: Context) -> str:
            """Close the response stream, and wait for the test."""
            left = context.close_stream(0.5)
            self.started.set()
            await self.go.wait()
            return f"left: {left}"

        @self.server.tool
        def large(size: int) -> str:
            """Return a long text."""
            return "x" * size

        @self.server.tool
        def value(context: Context) -> str:
            """Return the value of the lifespan."""
            return str(context.lifespan)

        @self.server.tool
        def origin(context: Context) -> str:
            """Return who called, by address and headers."""
            return f"{context.client_address} {sorted(context.headers.items())}"

    async def until(self, ready: Callable[[], object]) -> None:
        with anyio.fail_after(patience()):
            while not ready():  # noqa: ASYNC110
                await anyio.sleep(0.001)


class Lived:
    """A lifespan that records its steps, and can be made to fail."""

    def __init__(self) -> None:
        self.seen: list[str] = []
        self.fails: dict[str, BaseException] = {}

    @asynccontextmanager
    async def __call__(self, server: Server) -> AsyncIterator[str]:
        self.seen.append("in")
        await anyio.lowlevel.checkpoint()
        if "in" in self.fails:
            raise self.fails["in"]
        try:
            yield "alive"
        finally:
            self.seen.append("out")
            if "out" in self.fails:
                raise self.fails["out"]


def text_frame(message: Any) -> dict[str, Any]:
    """Return what the server reports for a text message on a WebSocket."""
    return {"type": "websocket.receive", "text": json.dumps(message)}


def frames_of(call: Call, start: int = 0) -> list[Any]:
    """Return what the application has sent on a WebSocket, with the texts decoded.

    Args:
        call: the call that opened it.
        start: how many frames to leave out.
    """
    return [json.loads(each["text"]) if "text" in each else each for each in call.sent[start:]]


def text_of(call: Call) -> str:
    text = call.answer["result"]["content"][0]["text"]
    assert isinstance(text, str)
    return text


def progress_of(call: Call) -> list[int]:
    return [each["params"]["progress"] for each in call.messages if "method" in each]


def transcript(calls: Iterable[Call]) -> list[tuple[Any, ...]]:
    """Return what a client reads, without session ids.

    The split of a body into messages is left out, because it depends on timing.
    """

    def anonymous(data: bytes) -> bytes:
        return re.sub(rb"[0-9a-f]{32}", b"?", data)

    return [
        (
            call.status,
            [(name, anonymous(value)) for name, value in call.sent[0]["headers"]],
            anonymous(call.raw),
            call.complete,
        )
        for call in calls
        if call.sent
    ]


# -- Scenarios, the same on both runtimes ----------------------------------------------------------


async def plain_response(make: Make) -> list[Call]:
    async with serve_app(make(Neutral().server)) as host:
        call = await host.call_tool(1, "echo", arguments={"text": "hi"}).end()
        assert [message["type"] for message in call.sent] == [
            "http.response.start",
            "http.response.body",
        ]
        assert call.headers[b"content-type"] == b"application/json"
        assert call.headers[b"content-length"] == b"%d" % len(call.raw)
        assert text_of(call) == "hi"
        slashed = host.call_tool(2, "echo", path="/mcp/", arguments={"text": "hi"})
        assert text_of(await slashed.end()) == "hi"
    return host.calls


async def only_its_path(make: Make) -> list[Call]:
    """Alone it serves no other path: scanners and health checks ask for "/"."""
    async with serve_app(make(Neutral().server, path="/some/mcp")) as host:
        for path in ("/", "", "/mcp", "/some", "/some/mcp/x", "/some/mcpx", "/(mount point)"):
            assert (await host.call_tool(1, "echo", path=path).end()).status == 404
        for path in ("/some/mcp", "/some/mcp/"):
            assert (await host.call_tool(1, "echo", path=path).end()).status == 200
    async with serve_app(make(Neutral().server, path="/")) as other:
        assert (await other.call_tool(1, "echo", path="/").end()).status == 200
        assert (await other.call_tool(1, "echo", path="/mcp").end()).status == 404
    return host.calls


async def streamed_response(make: Make) -> list[Call]:
    async with serve_app(make(Neutral().server)) as host:
        call = await host.call_tool(1, "count", arguments={"to": 3}).end()
        assert call.headers[b"content-type"] == STREAM
        assert progress_of(call) == [1, 2, 3]
        assert text_of(call) == "counted"
        assert call.complete
    return host.calls


async def delayed_response(make: Make) -> list[Call]:
    neutral = Neutral()
    async with serve_app(make(neutral.server)) as host:
        call = host.call_tool(1, "wait")
        await neutral.started.wait()
        assert call.sent == []
        neutral.go.set()
        await call.end()
        assert text_of(call) == "went on"
    return host.calls


async def json_mode(make: Make) -> list[Call]:
    async with serve_app(make(Neutral().server, reply="json")) as host:
        call = await host.call_tool(1, "count", arguments={"to": 3}).end()
        assert text_of(call) == "counted"
        assert len(call.sent) == 2
    return host.calls


async def one_accepted_type(make: Make) -> list[Call]:
    async with serve_app(make(Neutral().server)) as host:
        for accept, kind in ((b"application/json", b"application/json"), (STREAM, STREAM)):
            headers = [*POST[:2], (b"accept", accept)]
            headers += [(b"mcp-protocol-version", E.encode()), (b"mcp-method", b"tools/call")]
            params = {"name": "count", "arguments": {"to": 2}, "_meta": meta(progressToken=1)}
            body = json.dumps(request(1, "tools/call", params)).encode()
            call = await host.request("POST", [*headers, (b"mcp-name", b"count")], body)
            assert call.headers[b"content-type"] == kind
            assert progress_of(call) == ([1, 2] if kind == STREAM else [])
            assert text_of(call) == "counted"
        refused = await host.request("POST", [*POST[:2], (b"accept", b"text/html")], b"{}")
        assert refused.status == 406
    return host.calls


async def sse_mode(make: Make) -> list[Call]:
    async with serve_app(make(Neutral().server, reply="sse")) as host:
        call = await host.call_tool(1, "echo", arguments={"text": "hi"}).end()
        assert call.headers[b"content-type"] == STREAM
        assert text_of(call) == "hi"
    return host.calls


async def session_with_changes(make: Make) -> list[Call]:
    neutral = Neutral()
    async with serve_app(make(neutral.server)) as host:
        session = await host.session()
        assert text_of(await session.calling(1, "echo", text="hi").end()) == "hi"
        stream = session.get()
        await stream.until(lambda: len(stream.sent) > 1)
        # The head is sent before the first message, so that the client knows that the stream is
        # open.
        assert stream.sent[1]["more_body"]
        neutral.server.changed(tools=True)
        [notification] = await stream.wait_for_messages()
        assert notification["method"] == "notifications/tools/list_changed"
        assert (await session.delete()).status == 204
        await stream.end()
        assert stream.complete
        assert (await session.calling(2, "echo").end()).status == 404
    return host.calls


async def session_with_input_request(make: Make) -> list[Call]:
    async with serve_app(make(Neutral().server)) as host:
        session = await host.session(roots={})
        call = session.calling(1, "ask")
        [input_request] = await call.wait_for_messages()
        roots = {"roots": [{"uri": "file:///a"}]}
        response = await session.post(
            {"jsonrpc": "2.0", "id": input_request["id"], "result": roots}
        ).end()
        assert response.status == 202
        await call.end()
        assert text_of(call) == "file:///a"
    return host.calls


async def released_client(make: Make) -> list[Call]:
    neutral = Neutral()
    async with serve_app(make(neutral.server)) as host:
        session = await host.session()
        call = session.calling(1, "leave")
        await call.end()
        assert call.complete
        assert call.messages == []
        last = call.events[0]["id"].encode()
        neutral.go.set()
        again = session.get((b"last-event-id", last))
        await again.end()
        assert text_of(again) == "left: True"
    return host.calls


async def without_sessions(make: Make) -> list[Call]:
    async with serve_app(make(Neutral().server, sessions=False)) as host:
        opened = await host.post(initialize(D)).end()
        assert b"mcp-session-id" not in opened.headers
        called = await host.post(
            request(1, "tools/call", {"name": "echo", "arguments": {"text": "hi"}})
        ).end()
        assert text_of(called) == "hi"
        assert (await host.request("GET", GET)).status == 405
    return host.calls


async def http_sse_revision(make: Make) -> list[Call]:
    """HTTP+SSE: the endpoint event names the path under which the application is mounted."""
    async with serve_app(make(Neutral().server), root="/tools") as host:
        stream = host.begin("GET", GET, path="/")
        await stream.until(lambda: len(stream.sent) > 1 and stream.raw)
        where = stream.events[0]
        assert where["event"] == "endpoint"
        path, _, query = where["data"].partition("?")
        assert path == "/tools/"
        post = {"path": "/", "query": query.encode()}
        assert (await host.post(initialize("2024-11-05"), **post).end()).status == 202
        [opened] = await stream.wait_for_messages()
        assert opened["result"]["protocolVersion"] == "2024-11-05"
        stream.disconnect()
        await stream.end()
        assert (await host.post(request(1, "ping"), **post).end()).status == 404
    return host.calls


async def http_sse_at_its_own_path(make: Make) -> list[Call]:
    """With `sse_path`, the endpoint event names that path below the mount point."""
    async with serve_app(make(Neutral().server, sse_path="/sse"), root="/tools") as host:
        stream = host.begin("GET", GET, path="/sse")
        await stream.until(lambda: len(stream.sent) > 1 and stream.raw)
        path, _, query = stream.events[0]["data"].partition("?")
        assert path == "/tools/sse"
        post = {"path": "/sse", "query": query.encode()}
        assert (await host.post(initialize("2024-11-05"), **post).end()).status == 202
        [opened] = await stream.wait_for_messages()
        assert opened["result"]["protocolVersion"] == "2024-11-05"
        stream.disconnect()
        await stream.end()
    return host.calls


async def rejected_requests(make: Make) -> list[Call]:
    async with serve_app(
        make(Neutral().server, hosts=["mcp.example.com"], origins=["https://a.example"])
    ) as host:
        rejected: list[tuple[list[tuple[bytes, bytes]], str, int]] = [
            ([(b"host", b"evil.example")], "/mcp", 421),
            ([HOST, (b"origin", b"https://evil.example")], "/mcp", 403),
            ([(b"host", b"mcp.example.com")], "/mcp", 415),
            ([HOST], "/mcp/more", 404),
            ([HOST], "/mcpx", 404),
            ([*POST, (b"content-length", b"200000")], "/mcp", 413),
        ]
        for headers, path, status in rejected:
            call = await host.request("POST", headers, None, path=path)
            assert (call.status, call.complete) == (status, True)
        assert host.calls[-1].headers[b"connection"] == b"close"
        assert (await host.request("PUT", [HOST])).status == 405
        head = await host.request("HEAD", [HOST])
        assert (head.status, head.raw) == (405, b"")
        preflight = [
            HOST,
            (b"origin", b"https://a.example"),
            (b"access-control-request-method", b"POST"),
        ]
        assert (await host.request("OPTIONS", preflight)).headers[
            b"access-control-allow-origin"
        ] == b"https://a.example"
        assert (
            text_of(await host.call_tool(1, "echo", arguments={"text": "still here"}).end())
            == "still here"
        )
    return host.calls


async def body_in_chunks(make: Make) -> list[Call]:
    async with serve_app(make(Neutral().server)) as host:
        whole = host.call_tool(1, "echo", arguments={"text": "hi"})
        body = json.dumps(
            request(
                1,
                "tools/call",
                {"name": "echo", "arguments": {"text": "hi"}, "_meta": meta(progressToken=1)},
            )
        ).encode()
        pieces = host.begin("POST", whole.scope["headers"], None)
        for place in range(len(body)):
            pieces.body(body[place : place + 1], more=True)
        pieces.deliver({"type": "http.request"})
        await whole.end()
        await pieces.end()
        assert pieces.sent == whole.sent
    return host.calls


async def endless_body(make: Make) -> list[Call]:
    async with serve_app(make(Neutral().server)) as host:
        call = host.begin("POST", POST, None)
        for _ in range(4):
            call.body(b"x" * 30_000, more=True)
        assert (await call.end()).status == 413
        gone = host.begin("POST", POST, None)
        gone.body(b"{", more=True)
        gone.disconnect()
        await gone.end()
        assert gone.sent == []
    return host.calls


async def disconnect_without_session(make: Make) -> list[Call]:
    """Without a session, a disconnect cancels the request."""
    neutral = Neutral()
    async with serve_app(make(neutral.server)) as host:
        call = host.call_tool(1, "wait")
        await neutral.started.wait()
        call.disconnect()
        await call.end()
        assert call.sent == []
        await neutral.until(lambda: neutral.log == ["cancelled"])
        assert (
            text_of(await host.call_tool(1, "echo", arguments={"text": "still here"}).end())
            == "still here"
        )
    return host.calls


async def reconnect_in_session(make: Make) -> list[Call]:
    """In a session the handler continues, and its output is retained for a reconnection."""
    neutral = Neutral()
    async with serve_app(make(neutral.server, reply="sse")) as host:
        session = await host.session()
        call = session.calling(1, "flood", number=1)
        await call.wait_for_messages()
        last = call.events[0]["id"].encode()
        call.disconnect()
        await call.end()
        again = await session.get((b"last-event-id", last)).end()
        assert text_of(again) == "done"
        lost = session.calling(2, "wait")
        await neutral.started.wait()
        lost.disconnect()
        await lost.end()
        neutral.go.set()
        await neutral.until(lambda: neutral.log == ["reported", "went on"])
    return [*host.calls[:2], again]  # the output of the others depends on timing


async def server_without_capacity(make: Make) -> list[Call]:
    """Progress waits while the server accepts no messages."""
    neutral = Neutral()
    async with serve_app(make(neutral.server)) as host:
        call = host.call_tool(1, "flood", arguments={"number": 1000})
        call.accepting = anyio.Event()
        await neutral.started.wait()
        reported = -1
        while reported != len(neutral.log):
            reported = len(neutral.log)
            for _ in range(50):
                await anyio.lowlevel.checkpoint()
        assert 50 < reported < 300
        # Other requests are served meanwhile.
        assert text_of(await host.call_tool(2, "echo", arguments={"text": "hi"}).end()) == "hi"
        call.accepting.set()
        await call.end()
        assert progress_of(call) == list(range(1000))
        assert text_of(call) == "done"
    return host.calls[1:]


async def disconnect_during_a_blocked_send(make: Make) -> list[Call]:
    """A server may report the disconnect by `receive` alone, while `send` goes on to wait."""
    neutral = Neutral()
    async with serve_app(make(neutral.server)) as host:
        streaming = host.call_tool(1, "flood", arguments={"number": 1000})
        complete = host.call_tool(2, "large", arguments={"size": 100_000})
        for call in (streaming, complete):
            call.accepting = anyio.Event()
        await neutral.started.wait()
        for call in (streaming, complete):
            call.disconnect()
            await call.end()
            assert call.sent == []
        whole = await host.call_tool(3, "large", arguments={"size": 100_000}).end()
        assert len(text_of(whole)) == 100_000
    return host.calls


RESOURCE: Final = "https://mcp.example.com/mcp"


def _authorized_call(host: Host, token: str, **options: Any) -> Call:
    headers = [
        (b"mcp-protocol-version", E.encode()),
        (b"mcp-method", b"tools/call"),
        (b"mcp-name", b"echo"),
    ]
    message = request(
        1, "tools/call", {"name": "echo", "arguments": {"text": "hi"}, "_meta": meta()}
    )
    return host.post(message, *headers, (b"authorization", b"Bearer " + token.encode()), **options)


async def authorization(make: Make) -> list[Call]:
    grants = {"ann": Grant("ann", scopes=frozenset({"use"})), "bob": Grant("bob")}
    resource_server = OAuthResourceServer(
        RESOURCE, ["https://as.example.com"], grants.get, tool_scopes={"echo": ["use"]}
    )
    async with serve_app(make(Neutral().server, auth=resource_server)) as host:
        assert text_of(await _authorized_call(host, "ann").end()) == "hi"
        assert (await _authorized_call(host, "bob").end()).status == 403
        assert (await _authorized_call(host, "eve").end()).status == 401
        assert (await host.call_tool(1, "echo").end()).status == 401
        listening = await host.request("GET", GET)
        assert b"resource_metadata=" in listening.headers[b"www-authenticate"]
        metadata = await host.request(
            "GET", [HOST], path="/.well-known/oauth-protected-resource/mcp"
        )
        assert json.loads(metadata.raw)["resource"] == RESOURCE
    return host.calls


async def tokens_without_audience(make: Make) -> list[Call]:
    """Access tokens of Amazon Cognito, which have no `aud`: `client_ids` decides."""
    verifier = JwtVerifier(ISSUER, RESOURCE, jwks=JWKS, client_ids=["app"])
    claims = {"without": "aud", "token_use": "access", "iat": 0, "exp": 4_000_000_000}
    resource_server = OAuthResourceServer(RESOURCE, [ISSUER], verifier)
    async with serve_app(make(Neutral().server, auth=resource_server)) as host:
        listed = token("EdDSA", **claims)
        assert text_of(await _authorized_call(host, listed).end()) == "hi"
        for changes in ({"client_id": "other"}, {"token_use": "id"}, {"without": "", "aud": "app"}):
            refused = token("EdDSA", **(claims | changes))
            assert (await _authorized_call(host, refused).end()).status == 401
    return host.calls


async def slow_authorization(make: Make) -> list[Call]:
    started, go = anyio.Event(), anyio.Event()

    async def verify(token: str) -> Grant | None:
        started.set()
        await go.wait()
        if token == "fault":
            raise LookupError
        return Grant("ann") if token == "ann" else None

    resource_server = OAuthResourceServer(RESOURCE, ["https://as.example.com"], verify)
    async with serve_app(make(Neutral().server, auth=resource_server)) as host:
        first = _authorized_call(host, "ann")
        await started.wait()
        others = _authorized_call(host, "eve"), _authorized_call(host, "fault")
        assert not first.sent
        go.set()
        assert text_of(await first.end()) == "hi"
        assert [(await each.end()).status for each in others] == [401, 500]
    return host.calls


async def api_keys(make: Make) -> list[Call]:
    """A key authorizes, and nothing leads a client to an authorization server."""
    keys = ApiKeys(
        {"ann": "ann-0123456789abcdef", "bob": "bob-0123456789abcdef"},
        granted_scopes={"ann": ["use"]},
        tool_scopes={"echo": ["use"]},
    )
    app = make(Neutral().server, auth=keys)
    async with serve_app(app) as host:
        assert text_of(await _authorized_call(host, "ann-0123456789abcdef").end()) == "hi"
        assert (await _authorized_call(host, "bob-0123456789abcdef").end()).status == 403
        refused = await _authorized_call(host, "eve-0123456789abcdef").end()
        assert refused.status == 401
        assert refused.headers[b"www-authenticate"].startswith(b'Bearer error="invalid_token"')
        missing = await host.call_tool(1, "echo").end()
        assert (missing.status, missing.headers[b"www-authenticate"]) == (401, b"Bearer")
        path = "/.well-known/oauth-protected-resource/mcp"
        assert (await host.request("GET", [HOST], path=path)).status == 404
    return host.calls


async def what_handlers_see_of_a_request(make: Make) -> list[Call]:
    """The headers of a POST and of an upgrade, with odd bytes, and the client behind the proxy."""
    app = make(Neutral().server, trusted_proxies=["192.0.2.1"])
    client = {"client": ("192.0.2.1", 1234)}
    fields = [(b"cookie", b"s3cret"), (b"x-forwarded-for", b"203.0.113.9"), (b"x-odd", b"\xff\x80")]
    expected = ("x-forwarded-for", "203.0.113.9"), ("x-odd", "\xff\x80")
    params = {"name": "origin", "arguments": {}, "_meta": meta()}
    named = [(b"mcp-protocol-version", E.encode()), (b"mcp-method", b"tools/call")]
    async with serve_app(app) as host:
        assert text_of(await host.call_tool(1, "origin", **client).end()).startswith("192.0.2.1 [")
        named.append((b"mcp-name", b"origin"))
        call = host.post(request(2, "tools/call", params), *fields, *named, **client)
        text = text_of(await call.end())
        assert text.startswith("203.0.113.9 [('accept', ")
        assert text.endswith(f"{str(expected)[1:-1]}]")
        socket = host.websocket(*fields, **client)
        socket.deliver(text_frame(request(3, "tools/call", params)))
        await socket.until(lambda: len(frames_of(socket)) == 2)
        _, answer = frames_of(socket)
        handshake = (
            ("connection", "upgrade"),
            ("host", "127.0.0.1:8000"),
            ("upgrade", "websocket"),
        )
        seen = sorted((*handshake, *expected))
        assert answer["result"]["content"][0]["text"] == f"203.0.113.9 {seen}"
        socket.deliver({"type": "websocket.disconnect", "code": 1000})
        await socket.end()
    return host.calls


SCENARIOS: Final[dict[str, Callable[[Make], Awaitable[list[Call]]]]] = {
    scenario.__name__: scenario
    for scenario in (
        plain_response,
        only_its_path,
        streamed_response,
        delayed_response,
        json_mode,
        one_accepted_type,
        sse_mode,
        session_with_changes,
        session_with_input_request,
        released_client,
        without_sessions,
        http_sse_revision,
        http_sse_at_its_own_path,
        rejected_requests,
        body_in_chunks,
        endless_body,
        disconnect_without_session,
        reconnect_in_session,
        server_without_capacity,
        disconnect_during_a_blocked_send,
        authorization,
        tokens_without_audience,
        slow_authorization,
        api_keys,
        what_handlers_see_of_a_request,
    )
}
