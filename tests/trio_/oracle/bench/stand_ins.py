"""Servers in memory, whose every byte a test decides, and loads that are connected to them."""

from __future__ import annotations

import json
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, cast
from unittest.mock import patch

import trio
from trio.testing import memory_stream_pair

from mcp_core import ConnectFailed
from mcp_trio._nursery import open_quiet_nursery
from mcp_trio.http_client._connector import Connector
from mcp_trio.oracle.bench._requests import PreparedCall
from mcp_trio.oracle.bench.engine._load import Address, open_load
from mcp_trio.oracle.bench.engine._stdio_load import StdioLoad
from tests.harness.jsonrpc import D, E

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable, Mapping

    from mcp_trio.oracle.bench.engine._http_load import HttpLoad

# A host elsewhere, so that no turn looks through the processes of this machine.
URL = "http://bench.test:1/mcp"
PING = PreparedCall("ping", None, "ping")
ECHO = PreparedCall("tools/call", {"name": "echo", "arguments": {"text": "x"}}, "tools/call echo")
INFO = {"name": "stand-in", "version": "1"}
RESULTS: dict[str, Any] = {
    "initialize": {"capabilities": {"tools": {}}, "serverInfo": INFO},
    "server/discover": {
        "supportedVersions": [E],
        "capabilities": {"tools": {}},
        "resultType": "complete",
        "_meta": {"io.modelcontextprotocol/serverInfo": INFO},
    },
    "tools/list": {"tools": []},
}


def result(message: dict[str, Any], value: Any = None) -> dict[str, Any]:
    """Return the response that an ordinary server gives to a request."""
    if value is None:
        value = dict(RESULTS.get(message["method"], {"content": []}))
        if message["method"] == "initialize":
            value["protocolVersion"] = message["params"]["protocolVersion"]
    return {"jsonrpc": "2.0", "id": message["id"], "result": value}


def is_handshake(message: dict[str, Any]) -> bool:
    """Return True for messages that come before the calls of a turn, and for notifications."""
    return message.get("method") in RESULTS or "id" not in message


class AnswerReader:
    """Work of one caller that reads the answers: `seen` has them all."""

    reads_answers = True

    def __init__(self) -> None:
        self.seen: list[Any] = []

    def worker(self, number: int, seed: int) -> AnswerReader:
        """Return itself."""
        return self

    def next_call(self, answer: Mapping[str, Any] | None) -> PreparedCall:
        """Return a call that says how many came before it."""
        self.seen.append(answer)
        return PreparedCall("ping", {"after": len(self.seen)}, "ping", think=0.5)


# -- HTTP ----------------------------------------------------------------------------------------


@dataclass
class HttpRequest:
    """A request that a stand-in has received, and the stream to write the response to."""

    stream: trio.abc.Stream
    method: str
    path: str
    headers: dict[str, str]
    message: dict[str, Any]

    async def write(self, data: bytes) -> None:
        """Write bytes."""
        await self.stream.send_all(data)

    async def respond(self, message: Any = None, *, status: int = 200, more: str = "") -> None:
        """Send a JSON response."""
        body = json.dumps(message).encode() if message is not None else b""
        head = f"HTTP/1.1 {status} X\r\nContent-Type: application/json\r\n{more}"
        await self.write(f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body)

    async def begin_stream(self) -> None:
        """Send the head of an event stream."""
        head = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked"
        await self.write(f"{head}\r\n\r\n".encode())

    async def event(self, message: Any) -> None:
        """Send an event in a chunk."""
        data = f"event: message\r\ndata: {json.dumps(message)}\r\n\r\n".encode()
        await self.write(b"%x\r\n%b\r\n" % (len(data), data))

    async def end_stream(self) -> None:
        """Send the last chunk."""
        await self.write(b"0\r\n\r\n")


@dataclass
class HttpStandIn:
    """A server over HTTP in memory.

    `handle` gets each call; the handshake has ordinary responses unless it `handles_all`.
    """

    nursery: trio.Nursery
    handle: Callable[[HttpRequest], Awaitable[None]]
    handles_all: bool = False
    session: str = ""
    is_refusing: bool = False
    connect_time: float = 0.0
    requests: list[HttpRequest] = field(default_factory=list)
    connections: int = 0
    open_connections: int = 0

    async def connect_stream(self) -> trio.abc.Stream:
        """Return a connection to it."""
        await trio.sleep(self.connect_time)
        if self.is_refusing:
            raise ConnectFailed("connection refused") from ConnectionRefusedError()
        ours, theirs = memory_stream_pair()
        self.connections += 1
        self.open_connections += 1
        self.nursery.start_soon(self._serve, theirs)
        return ours

    async def _serve(self, stream: trio.abc.Stream) -> None:
        received = bytearray()
        async with stream:
            with suppress(trio.BrokenResourceError, trio.ClosedResourceError):
                await self._serve_requests(stream, received)
        self.open_connections -= 1

    async def _serve_requests(self, stream: trio.abc.Stream, received: bytearray) -> None:
        while True:
            while (end := received.find(b"\r\n\r\n")) < 0:
                if not (data := await stream.receive_some()):
                    return
                received += data
            first, *lines = received[:end].decode().split("\r\n")
            pairs = [line.split(": ", 1) for line in lines]
            headers = {name.lower(): value for name, value in pairs}
            size = end + 4 + int(headers.get("content-length", 0))
            while len(received) < size:
                received += await stream.receive_some()
            body = bytes(received[end + 4 : size])
            del received[:size]
            method, path, _ = first.split(" ")
            message = json.loads(body) if body else {}
            request = HttpRequest(stream, method, path, headers, message)
            self.requests.append(request)
            await self._respond(request)

    async def _respond(self, request: HttpRequest) -> None:
        if self.handles_all or not is_handshake(request.message):
            await self.handle(request)
        elif "id" in request.message:
            session = f"Mcp-Session-Id: {self.session}\r\n" if self.session else ""
            await request.respond(result(request.message), more=session)
        else:
            await request.respond(status=202)


@asynccontextmanager
async def http_load(
    handle: Callable[[HttpRequest], Awaitable[None]],
    *,
    era: str | None = E,
    timeout: float = 5.0,
    address: Address | None = None,
    **options: Any,
) -> AsyncIterator[tuple[HttpLoad, HttpStandIn]]:
    """Open a load on a stand-in."""
    async with open_quiet_nursery() as nursery:
        stand_in = HttpStandIn(nursery, handle, **options)
        with patch.object(Connector, "connect_stream", lambda _: stand_in.connect_stream()):
            async with open_load(address or Address(URL), era=era, timeout=timeout) as load:
                yield load, stand_in  # type: ignore[misc]


# -- Pipes ---------------------------------------------------------------------------------------


@dataclass
class StdioStandIn:
    """A server over pipes in memory. `handle` gets each call, in a task of its own."""

    nursery: trio.Nursery
    stream: Any
    handle: Callable[[StdioStandIn, dict[str, Any]], Awaitable[None]]
    received: list[dict[str, Any]] = field(default_factory=list)
    lock: trio.Lock = field(default_factory=trio.Lock)

    async def send(self, *messages: Any) -> None:
        """Send messages as lines; bytes as they are."""
        for each in messages:
            data = each if isinstance(each, bytes) else json.dumps(each).encode() + b"\n"
            async with self.lock:
                await self.stream.send_all(data)

    async def run(self) -> None:
        """Read lines until the end."""
        rest = b""
        while data := await self.stream.receive_some():
            *lines, rest = (rest + bytes(data)).split(b"\n")
            for message in map(json.loads, lines):
                self.received.append(message)
                if not is_handshake(message):
                    self.nursery.start_soon(self.handle, self, message)
                elif "id" in message:
                    await self.send(result(message))


@asynccontextmanager
async def stdio_load(
    handle: Callable[[StdioStandIn, dict[str, Any]], Awaitable[None]],
    *,
    era: str | None = D,
    timeout: float = 5.0,
) -> AsyncIterator[tuple[StdioLoad, StdioStandIn]]:
    """Open a load on a stand-in."""
    async with open_quiet_nursery() as nursery:
        ours, theirs = memory_stream_pair()
        stand_in = StdioStandIn(nursery, theirs, handle)
        nursery.start_soon(stand_in.run)
        load = StdioLoad(cast("Any", ours), timeout, nursery)
        await load.open(era)
        yield load, stand_in
