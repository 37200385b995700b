"""An HTTP server that a test plays, request by request, on memory streams or sockets, on either
driver.

`PlayedHttpServer` passes each request to `play`, in a task of its connection. By default it is an
MCP server that performs the handshake of `version`, and answers methods from `is_callback_for`.
"""

from __future__ import annotations

import json
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any, Final

import h11
import pytest
import trio

import mcp_asyncio_shim
from mcp_core import ConnectFailed
from mcp_trio import connect_http
from mcp_trio.http_client._h11_connection import H11ClientConnection
from tests.harness import either
from tests.harness.jsonrpc import D, E

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
    from contextlib import AbstractAsyncContextManager

    from mcp_core.http import RequestHead
    from mcp_trio.http_client._h2_connection import H2ClientConnection
    from tests.harness.jsonrpc import Message

URL: Final = "http://played.test/mcp"
JSON: Final = (("content-type", "application/json"),)
EVENTS: Final = (("content-type", "text/event-stream"),)
INFO: Final = {"name": "played", "version": "1"}


def long_head(size: int) -> bytes:
    """Return a response's head of so many bytes."""
    start = b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\nX: "
    return start + b"y" * (size - len(start) - 4) + b"\r\n\r\n"


class Request:
    """A complete request, with methods to answer it."""

    def __init__(self, connection: Connection, head: h11.Request, body: bytes) -> None:
        self.connection = connection
        self.method = head.method.decode()
        self.target = head.target.decode()
        self.headers = {name.decode(): value.decode() for name, value in head.headers}
        self.message: Message = json.loads(body) if body else {}

    def __repr__(self) -> str:
        return f"<IncomingRequest {self.method} {self.rpc_method}>"

    @property
    def rpc_method(self) -> str:
        method = self.message.get("method", "")
        assert isinstance(method, str)
        return method

    async def answer(
        self, status: int = 200, body: bytes = b"", headers: Iterable[tuple[str, str]] = JSON
    ) -> None:
        every = [*headers, ("content-length", str(len(body)))]
        await self.connection.send(
            h11.Response(status_code=status, headers=every), h11.Data(data=body), h11.EndOfMessage()
        )

    async def result(self, result: Any, headers: Iterable[tuple[str, str]] = ()) -> None:
        answer = {"jsonrpc": "2.0", "id": self.message["id"], "result": result}
        await self.answer(200, json.dumps(answer).encode(), [*JSON, *headers])

    async def begin_stream(self) -> None:
        await self.connection.send(h11.Response(status_code=200, headers=list(EVENTS)))

    async def event(self, message: Any, id: str | None = None) -> None:
        id_field = f"id: {id}\n" if id is not None else ""
        await self.connection.send(
            h11.Data(data=f"{id_field}data: {json.dumps(message)}\n\n".encode())
        )

    async def end(self) -> None:
        await self.connection.send(h11.EndOfMessage())


class Connection:
    """The server's end of one connection."""

    def __init__(self, server: PlayedHttpServer, stream: trio.abc.Stream) -> None:
        self.server = server
        self.stream = stream
        self.requests = 0
        self.http = h11.Connection(h11.SERVER)

    async def send(self, *events: Any) -> None:
        await self.stream.send_all(b"".join(self.http.send(event) or b"" for event in events))

    async def serve(self) -> None:
        """Play one request after the other, until either side closes."""
        try:
            while True:
                request = await self._request()
                if request is None:
                    return
                self.requests += 1
                self.server.requests.append(request)
                await self.server.play(request)
                if self.http.states != {h11.CLIENT: h11.DONE, h11.SERVER: h11.DONE}:
                    return
                self.http.start_next_cycle()
        except (trio.BrokenResourceError, trio.ClosedResourceError, OSError, h11.ProtocolError):
            pass
        finally:
            await either.aclose_forcefully(self.stream)
            self.server.closed += 1

    async def _request(self) -> Request | None:
        head: h11.Request | None = None
        body = bytearray()
        while True:
            event = self.http.next_event()
            if event is h11.NEED_DATA:
                self.http.receive_data(bytes(await self.stream.receive_some()))
            elif isinstance(event, h11.Request):
                head = event
            elif isinstance(event, h11.Data):
                body += event.data
            elif isinstance(event, h11.EndOfMessage):
                assert head is not None
                return Request(self, head, bytes(body))
            else:
                return None


class PlayedHttpServer:
    """A server that the test plays.

    `requests` has the received requests, in order; `opened` and `closed` count connections;
    `clients` are the client's ends of those in memory. While `gone` is set no client can connect.
    `speaks` is the protocol, by default HTTP/1.1. `is_callback_for` are results by method, or
    functions of the request. A legacy server has a session if `session` is not empty.
    """

    def __init__(self, version: str = D, *, session: str = "", **answers: Any) -> None:
        self.version = version
        self.session = session
        self.answers: dict[str, Any] = {
            name.replace("_", "/"): answer for name, answer in answers.items()
        }
        self.requests: list[Request] = []
        self.opened = self.closed = 0
        self.gone = False
        self.speaks: Any = Connection
        self.clients: list[Any] = []
        self.before_connecting: Callable[[], Awaitable[object]] = either.checkpoint
        self.nursery: Any

    async def open(self) -> Any:
        """Open a connection in memory, and return the client's end."""
        await self.before_connecting()
        if self.gone:
            raise ConnectFailed("cannot connect to played.test:80: connection refused")
        ours, theirs = either.memory_pair()
        self.clients.append(ours)
        self.nursery.start_soon(self.serve, theirs)
        await either.checkpoint()
        return ours

    async def serve(self, stream: trio.abc.Stream) -> None:
        self.opened += 1
        await self.speaks(self, stream).serve()

    @property
    def live(self) -> int:
        """Return how many connections in memory the client has not closed."""
        return sum(not either.is_closed(stream) for stream in self.clients)

    def request_names(self) -> list[str]:
        """Return the received requests, as MCP methods, or HTTP methods if there is no message."""
        return [request.rpc_method or request.method for request in self.requests]

    async def play(self, request: Request) -> None:
        answer = self.answers.get(request.rpc_method or request.method)
        if callable(answer):
            await answer(request)
        elif answer is not None:
            await request.result(answer)
        elif request.method != "POST":
            await request.answer(405 if request.method == "GET" else 200)
        elif request.rpc_method == "server/discover" and self.version == E:
            offers: Message = {"tools": {}, "logging": {}}
            found = {
                "supportedVersions": [E],
                "capabilities": offers,
                "ttlMs": 0,
                "cacheScope": "private",
            }
            await request.result({**found, "resultType": "complete"})
        elif request.rpc_method == "initialize" and self.version != E:
            opened = {
                "protocolVersion": self.version,
                "capabilities": {"tools": {}},
                "serverInfo": INFO,
            }
            await request.result(opened, [("mcp-session-id", self.session)] if self.session else [])
        elif "id" not in request.message or "method" not in request.message:
            await request.answer(202)
        else:
            await request.answer(400)


class MemoryConnector:
    """A fake `Connector`: each connection is a memory pair with `server` at the end."""

    server: PlayedHttpServer
    nursery: trio.Nursery

    def __init__(self, scheme: str, host: str, port: int, **options: Any) -> None:
        self.origin = scheme, host, port

    def absolute_head(self, head: RequestHead) -> RequestHead:
        return head

    async def connect(self) -> H11ClientConnection | H2ClientConnection:
        ours = await self.server.open()
        if self.server.speaks is Connection:
            return H11ClientConnection(ours)
        from mcp_trio.http_client._h2_connection import H2ClientConnection

        client = H2ClientConnection(ours, "http")
        await client.open(self.nursery)
        return client


def connect_to(server: PlayedHttpServer, **options: Any) -> AbstractAsyncContextManager[Any]:
    """Connect to the server of `playing`."""
    options.setdefault("versions", [server.version])
    connect = connect_http if either.on_trio() else mcp_asyncio_shim.connect
    client: AbstractAsyncContextManager[Any] = connect(URL, **options)
    return client


@asynccontextmanager
async def playing(server: PlayedHttpServer, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[None]:
    """Play `server` to the clients of this block. At its end every connection must be closed."""

    class ServerConnector(MemoryConnector):
        pass

    async def open_streams(url: Any, tls: Any) -> Any:
        stream = await server.open()
        return stream.reader, stream.writer

    ServerConnector.server = server
    monkeypatch.setattr("mcp_trio.http_client._connector.Connector", ServerConnector)
    monkeypatch.setattr("mcp_asyncio_shim._http_transport.open_http_streams", open_streams)
    async with either.open_quiet_nursery() as nursery:
        server.nursery = nursery
        yield
        await either.wait_all_tasks_blocked()
        assert server.live == 0


@asynccontextmanager
async def connected(
    server: PlayedHttpServer, monkeypatch: pytest.MonkeyPatch, **options: Any
) -> AsyncIterator[Any]:
    """A client of `server` in memory."""
    async with playing(server, monkeypatch), connect_to(server, **options) as client:
        yield client
