"""A client of raw messages, on any transport and in both runtimes, for the play of `scenes.py`.

`WIRES` has the ways to reach the lab. Each is a context manager that yields a `WireClient`.
"""

from __future__ import annotations

import itertools
import json
import sys
from contextlib import aclosing, asynccontextmanager
from typing import TYPE_CHECKING, Any, Final

import anyio
import httpx2
import trio
from trio_websocket import open_websocket_url

from mcp_trio import asgi, memory_pair, serve_http, serve_stream
from tests.harness.wire.asgi import Call, Host, serve_app
from tests.harness.world.waiting import PATIENCE, patience

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable
    from contextlib import AbstractAsyncContextManager

    from anyio.abc import TaskGroup

    from mcp_core.registry import Server

    Message = dict[str, Any]
    Wire = Callable[[str, Server], AbstractAsyncContextManager["WireClient"]]

__all__ = [
    "ASYNCIO_WIRES",
    "CAPABILITIES",
    "PROCESS_WIRES",
    "WIRES",
    "D",
    "E",
    "LineClient",
    "RpcError",
    "WireClient",
    "lines_of",
]

D: Final = "2025-11-25"
E: Final = "2026-07-28"
TASKS: Final = "io.modelcontextprotocol/tasks"
META: Final = "io.modelcontextprotocol/"
CAPABILITIES: Final[dict[str, Any]] = {
    "elicitation": {"form": {}, "url": {}},
    "sampling": {"tools": {}},
    "roots": {},
}
INFO: Final = {"name": "wire", "version": "1"}
ACCEPT: Final = "application/json, text/event-stream"


class RpcError(Exception):
    """An error response."""

    def __init__(self, error: Message) -> None:
        super().__init__(f"{error['code']}: {error['message']}")
        self.code = error["code"]
        self.data = error.get("data")


class WireClient:
    """A client that sends each message as it is told, and answers nested requests by `answer`.

    Attributes:
        notifications: those that arrived.
        answer: returns the result of a request of the server.
        single_peer: True if the transport has one client only.
    """

    single_peer = True

    def __init__(self, version: str, group: TaskGroup) -> None:
        self.version = version
        self.group = group
        self.notifications: list[Message] = []
        self.asked: list[Message] = []
        self.answer: Callable[[Message], Message] = lambda request: {"action": "cancel"}
        self._ids = itertools.count(1)
        self._waiting: dict[int, anyio.Event] = {}
        self._responses: dict[int, Message] = {}
        self._arrived = anyio.Event()

    # -- For the play ------------------------------------------------------------------------------

    async def request(self, method: str, params: Message | None = None) -> Any:
        """Send a request and return its result, or raise `RpcError`."""
        message = self.message(method, params)
        with anyio.fail_after(patience()):
            response = await self.respond(message)
        if "error" in response:
            raise RpcError(response["error"])
        return response["result"]

    async def call(self, tool: str, /, **arguments: Any) -> Any:
        """Call a tool without a task, and return the first text of its result."""
        result = await self.request("tools/call", {"name": tool, "arguments": arguments})
        return result["content"][0]["text"]

    async def go(self) -> None:
        """Let one handler of the lab go on."""
        await self.request("tools/call", {"name": "go"})

    async def create(self, tool: str, /, *, task: Message | None = None, **arguments: Any) -> str:
        """Call a tool as a task, and return its id."""
        state = await self.create_task(tool, task=task, **arguments)
        return str(state["taskId"])

    async def create_task(
        self, tool: str, /, *, task: Message | None = None, **arguments: Any
    ) -> Message:
        params: Message = {"name": tool, "arguments": arguments, "_meta": {"progressToken": tool}}
        if self.version == D:
            params["task"] = task or {}
        result: Message = await self.request("tools/call", params)
        if self.version == E:
            assert result["resultType"] == "task"
            return result
        assert set(result) == {"task"}
        state: Message = result["task"]
        return state

    async def state(self, task_id: str) -> Message:
        found: Message = await self.request("tasks/get", {"taskId": task_id})
        return found

    async def until(self, task_id: str, *statuses: str) -> Message:
        """Poll until the task has one of the statuses."""
        with anyio.fail_after(patience()):
            while True:
                state = await self.state(task_id)
                if state["status"] in statuses:
                    return state
                await anyio.sleep(0.002)

    async def outcome(self, task_id: str) -> Message:
        """Answer the questions of a task, and return its result. Raise its error."""
        if self.version == D:
            found: Message = await self.request("tasks/result", {"taskId": task_id})
            return found
        while True:
            state = await self.until(task_id, "input_required", "completed", "failed", "cancelled")
            if state["status"] == "input_required":
                answers = {}
                for key, request in state["inputRequests"].items():
                    self.asked.append(request)
                    answers[key] = self.answer(request)
                update = {"taskId": task_id, "inputResponses": answers}
                await self.request("tasks/update", update)
            elif "error" in state:
                raise RpcError(state["error"])
            else:
                return state["result"] if "result" in state else {"status": state["status"]}

    async def text(self, task_id: str) -> str:
        return str((await self.outcome(task_id))["content"][0]["text"])

    async def until_journal(self, text: str) -> None:
        """Wait until the journal of the lab has a text."""
        with anyio.fail_after(patience()):
            while True:
                if text in await self.call("journal"):
                    return
                await anyio.sleep(0.002)

    def listen(self, *task_ids: str) -> None:
        """Listen to tasks, until the client ends (2026-07-28)."""
        message = self.message("subscriptions/listen", {"notifications": {"taskIds": task_ids}})
        self.group.start_soon(self.respond, message)

    async def until_notified(self, found: Callable[[Message], object]) -> Message:
        """Wait for a notification, and return it."""
        with anyio.fail_after(patience()):
            while True:
                for message in self.notifications:
                    if found(message):
                        return message
                await self._arrived.wait()

    # -- For subclasses ----------------------------------------------------------------------------

    def message(self, method: str, params: Message | None = None) -> Message:
        params = dict(params or {})
        if self.version == E:
            params["_meta"] = params.get("_meta", {}) | {
                f"{META}protocolVersion": E,
                f"{META}clientCapabilities": CAPABILITIES | {"extensions": {TASKS: {}}},
            }
        return {"jsonrpc": "2.0", "id": next(self._ids), "method": method, "params": params}

    async def open(self) -> None:
        if self.version == D:
            opened = await self.request(
                "initialize",
                {"protocolVersion": D, "capabilities": CAPABILITIES, "clientInfo": INFO},
            )
            assert opened["protocolVersion"] == D
            await self.send({"jsonrpc": "2.0", "method": "notifications/initialized"})

    async def respond(self, message: Message) -> Message:
        """Send a request and return its response."""
        self._waiting[message["id"]] = arrived = anyio.Event()
        await self.send(message)
        await arrived.wait()
        return self._responses.pop(message["id"])

    async def receive(self, message: Message) -> None:
        """Process a message of the server."""
        if "method" not in message:
            self._responses[message["id"]] = message
            self._waiting.pop(message["id"]).set()
        elif "id" in message:
            self.asked.append(message)
            answer = {"jsonrpc": "2.0", "id": message["id"], "result": self.answer(message)}
            await self.send(answer)
        else:
            self.notifications.append(message)
            self._arrived.set()
            self._arrived = anyio.Event()

    async def send(self, message: Message) -> None:
        raise NotImplementedError


class LineClient(WireClient):
    """A client on a stream of messages, in both directions."""

    def __init__(
        self,
        version: str,
        group: TaskGroup,
        write: Callable[[str], Awaitable[object]],
        messages: AsyncIterator[Any],
    ) -> None:
        super().__init__(version, group)
        self._write = write
        self._messages = messages

    async def send(self, message: Message) -> None:
        await self._write(json.dumps(message))

    async def read(self) -> None:
        async for message in self._messages:
            await self.receive(json.loads(message))


class HttpClient(WireClient):
    """A client over Streamable HTTP."""

    single_peer = False
    session = ""
    opened = False

    def __init__(self, version: str, group: TaskGroup) -> None:
        super().__init__(version, group)
        self.more_headers: dict[str, str] = {}

    async def open(self) -> None:
        await super().open()
        self.opened = True
        if self.session:
            self.group.start_soon(self.get)

    def headers(self, message: Message) -> dict[str, str]:
        headers = {"accept": ACCEPT, "content-type": "application/json", **self.more_headers}
        if self.session:
            headers["mcp-session-id"] = self.session
        if self.opened and self.version == D:
            headers["mcp-protocol-version"] = D
        if self.version == E:
            params = message["params"]
            headers |= {"mcp-protocol-version": E, "mcp-method": message["method"]}
            name = params.get("taskId", params.get("name"))
            if name is not None:
                headers["mcp-name"] = name
        return headers

    async def send(self, message: Message) -> None:
        if "id" in message and "method" in message:
            self.group.start_soon(self.post, message)
        else:
            await self.post(message)

    async def post(self, message: Message) -> None:
        """Send a message, and receive the response's messages."""
        raise NotImplementedError

    async def get(self) -> None:
        """Receive the messages of the session that belong to no request."""
        raise NotImplementedError


class SocketHttpClient(HttpClient):
    """A client over real sockets."""

    def __init__(self, version: str, group: TaskGroup, http: httpx2.AsyncClient, url: str) -> None:
        super().__init__(version, group)
        self._http = http
        self._url = url

    async def post(self, message: Message) -> None:
        headers = self.headers(message)
        async with self._http.stream("POST", self._url, json=message, headers=headers) as response:
            self.session = response.headers.get("mcp-session-id", self.session)
            await self._read(response)

    async def get(self) -> None:
        headers = self.headers({}) | {"accept": "text/event-stream"}
        async with self._http.stream("GET", self._url, headers=headers) as response:
            await self._read(response)

    async def _read(self, response: Any) -> None:
        if response.headers.get("content-type") != "text/event-stream":
            if body := await response.aread():
                await self.receive(json.loads(body))
            return
        async with aclosing(response.aiter_lines()) as lines:
            async for line in lines:
                if line.startswith("data: ") and line[6:].strip():
                    await self.receive(json.loads(line[6:]))


class AsgiClient(HttpClient):
    """A client of an ASGI application in this process."""

    def __init__(self, version: str, group: TaskGroup, host: Host) -> None:
        super().__init__(version, group)
        self._host = host
        self.address = ""  # of this client, "" if the server does not know it

    def begin(self, method: str, message: Message) -> Call:
        """Start an HTTP request, and return it as the application sees it."""
        body = json.dumps(message).encode() if message else b""
        headers = {"host": "127.0.0.1:8000"} | self.headers(message)
        if method == "GET":
            headers["accept"] = "text/event-stream"
        raw = [(name.encode(), value.encode()) for name, value in headers.items()]
        more: Any = {"client": (self.address, 49_152)} if self.address else {}
        return self._host.begin(method, raw, body, **more)

    async def post(self, message: Message) -> None:
        await self._follow(self.begin("POST", message))

    async def get(self) -> None:
        await self._follow(self.begin("GET", {}))

    def disconnect(self) -> None:
        """Disconnect the standalone stream of the session."""
        for call in self._host.calls:
            if call.scope["method"] == "GET":
                call.disconnect()

    async def delete(self) -> None:
        """End the session."""
        await self.begin("DELETE", {}).end()

    async def _follow(self, call: Call) -> None:
        seen = 0
        try:
            while True:
                if call.sent:
                    session = call.headers.get(b"mcp-session-id")
                    self.session = session.decode() if session else self.session
                fresh = call.messages[seen : call.complete_messages]
                for message in fresh:
                    await self.receive(message)
                seen += len(fresh)
                if not fresh and call.over:
                    return
                if not fresh:
                    await call.wait_for_change()
        finally:
            call.disconnect()


# -- Ways to the lab -------------------------------------------------------------------------------


@asynccontextmanager
async def _opened(client: WireClient) -> AsyncIterator[WireClient]:
    if isinstance(client, LineClient):
        client.group.start_soon(client.read)
    await client.open()
    yield client
    client.group.cancel_scope.cancel()


@asynccontextmanager
async def memory(version: str, server: Server) -> AsyncIterator[WireClient]:
    ours, theirs = memory_pair()
    async with anyio.create_task_group() as group:
        group.start_soon(serve_stream, server, theirs)

        async def write(text: str) -> None:
            await ours.send_all(text.encode() + b"\n")

        client = LineClient(version, group, write, lines_of(ours.receive_some))
        async with _opened(client):
            yield client


async def lines_of(receive: Callable[[], Awaitable[bytes | bytearray]]) -> AsyncIterator[bytes]:
    buffer = b""
    while data := await receive():
        *lines, buffer = (buffer + data).split(b"\n")
        for line in lines:
            yield line


def process(driver: str) -> Wire:
    @asynccontextmanager
    async def open_process(version: str, server: Server) -> AsyncIterator[WireClient]:
        command = [sys.executable, "-m", "tests.task_play.lab", driver]
        async with anyio.create_task_group() as group:
            async with await anyio.open_process(command, stderr=None) as child:
                assert child.stdin is not None
                assert child.stdout is not None
                stdin, stdout = child.stdin, child.stdout

                async def write(text: str) -> None:
                    await stdin.send(text.encode() + b"\n")

                async def read() -> bytes:
                    try:
                        return await stdout.receive()
                    except (anyio.EndOfStream, anyio.ClosedResourceError):
                        return b""

                client = LineClient(version, group, write, lines_of(read))
                group.start_soon(client.read)
                await client.open()
                yield client
                await stdin.aclose()
                with anyio.fail_after(patience()):
                    assert await child.wait() == 0
            group.cancel_scope.cancel()

    return open_process


def http(*, http2: bool) -> Wire:
    @asynccontextmanager
    async def open_http(version: str, server: Server) -> AsyncIterator[WireClient]:
        async with trio.open_nursery() as nursery:
            address = await nursery.start(serve_http, server)
            connection = httpx2.AsyncClient(
                http1=not http2,
                http2=http2,
                timeout=PATIENCE,
                verify=False,  # it reads no files
            )
            async with (
                connection,
                anyio.create_task_group() as group,
                _opened(SocketHttpClient(version, group, connection, address.url)) as client,
            ):
                yield client
            nursery.cancel_scope.cancel()

    return open_http


@asynccontextmanager
async def websocket(version: str, server: Server) -> AsyncIterator[WireClient]:
    async with trio.open_nursery() as nursery:
        address = await nursery.start(serve_http, server)
        url = address.url.replace("http:", "ws:")
        async with (
            open_websocket_url(url, subprotocols=["mcp"]) as socket,
            anyio.create_task_group() as group,
        ):

            async def frames() -> AsyncIterator[str]:
                while True:
                    yield str(await socket.get_message())

            async with _opened(LineClient(version, group, socket.send_message, frames())) as client:
                yield client
        nursery.cancel_scope.cancel()


def application(make: Callable[[Server], Any]) -> Wire:
    @asynccontextmanager
    async def open_application(version: str, server: Server) -> AsyncIterator[WireClient]:
        async with (
            serve_app(make(server)) as host,
            anyio.create_task_group() as group,
            _opened(AsgiClient(version, group, host)) as client,
        ):
            yield client

    return open_application


def application_socket(make: Callable[[Server], Any]) -> Wire:
    @asynccontextmanager
    async def open_socket(version: str, server: Server) -> AsyncIterator[WireClient]:
        async with serve_app(make(server)) as host, anyio.create_task_group() as group:
            call = host.websocket()
            await call.until(lambda: call.sent)

            async def write(text: str) -> None:
                call.deliver({"type": "websocket.receive", "text": text})

            async def frames() -> AsyncIterator[str]:
                seen = 1  # the acceptance
                while not call.over:
                    fresh = call.sent[seen:]
                    seen += len(fresh)
                    for message in fresh:
                        yield message["text"]
                    if not fresh:
                        await call.wait_for_change()

            async with _opened(LineClient(version, group, write, frames())) as client:
                yield client
            call.deliver({"type": "websocket.disconnect", "code": 1000})
            await call.end()

    return open_socket


def _shim(server: Server) -> Any:
    import mcp_asyncio_shim

    return mcp_asyncio_shim.asgi(server)


# On trio, in this process.
WIRES: Final[dict[str, Wire]] = {
    "memory": memory,
    "HTTP/1.1": http(http2=False),
    "HTTP/2": http(http2=True),
    "WebSocket": websocket,
    "ASGI": application(asgi),
    "WebSocket over ASGI": application_socket(asgi),
}
# On asyncio, in this process.
ASYNCIO_WIRES: Final[dict[str, Wire]] = {
    "ASGI": application(_shim),
    "WebSocket over ASGI": application_socket(_shim),
}
# The lab in a process of its own.
PROCESS_WIRES: Final[dict[str, Wire]] = {"trio": process("trio"), "asyncio": process("asyncio")}
