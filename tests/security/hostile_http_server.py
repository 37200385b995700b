"""An HTTP/1.1 server that floods its client, in a thread of its own, for clients of any runtime.

It performs the handshake of a stateful revision. Where it sends its messages, and what it does with
the responses of the client, is decided by the test.
"""

from __future__ import annotations

import asyncio
import base64
import hashlib
import json
import socket as socketlib
import threading
from typing import TYPE_CHECKING, Any, Final, Literal, Self

from tests.harness.jsonrpc import A, D

if TYPE_CHECKING:
    from collections.abc import Iterable
    from types import TracebackType

__all__ = ["HostileHttpServer", "elicitations", "pings", "roots_requests"]

_CHUNK: Final = 16_000
_EVENTS: Final = (
    b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n"
)
_ACCEPTED: Final = b"HTTP/1.1 202 Accepted\r\ncontent-length: 0\r\n\r\n"
_NO: Final = b"HTTP/1.1 405 No\r\ncontent-length: 0\r\n\r\n"

_SERVER: Final = {"serverInfo": {"name": "hostile", "version": "1"}}
_WEBSOCKET_GUID: Final = b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11"

Where = Literal["post", "get", "sse", "ws"]


def _request(id: int | str, method: str, params: Any = None) -> bytes:
    message = {"jsonrpc": "2.0", "id": id, "method": method}
    if params is not None:
        message["params"] = params
    return json.dumps(message, separators=(",", ":")).encode()


def pings(count: int, *, padding: int = 0) -> list[bytes]:
    """Return pings. With `padding`, their ids, which each response repeats, have that length."""
    if padding:
        return [_request(f"{id:0{padding}}", "ping") for id in range(count)]
    return [_request(id, "ping") for id in range(count)]


def roots_requests(count: int) -> list[bytes]:
    return [_request(id, "roots/list") for id in range(count)]


def elicitations(count: int) -> list[bytes]:
    form = {"type": "object", "properties": {"x": {"type": "string"}}}
    params = {"message": "?", "requestedSchema": form}
    return [_request(id, "elicitation/create", params) for id in range(count)]


class HostileHttpServer:
    """The server. Use it as a context manager, and connect to `url`.

    Args:
        messages: what it sends when a tool is called.
        where: on the response to that call, on the standalone stream, on the stream of HTTP+SSE, or
            on a WebSocket, of which it reads nothing.
        accepts: whether it accepts the responses of the client and then answers the call; if not,
            it lets all of these hang.
        page: what each page of `tools/list` has beside its cursor.
        last_page: the number of pages. By default, there is always a further page.

    Attributes:
        most: the largest number of connections at a time.
        responses: the ids of the responses that have arrived.
        pages: the number of pages that were sent.
    """

    def __init__(
        self,
        messages: Iterable[bytes] = (),
        *,
        where: Where = "post",
        accepts: bool = True,
        page: dict[str, Any] | None = None,
        last_page: int | None = None,
    ) -> None:
        self.most = 0
        self.responses: list[Any] = []
        self.pages = 0
        self.url = ""
        self._messages = list(messages)
        self._where = where
        self._accepts = accepts
        self._page = json.dumps(page)[:-1]
        self._last_page = last_page
        self._open = 0
        self._stream: asyncio.StreamWriter | None = None
        self._started = threading.Event()
        self._thread = threading.Thread(target=lambda: asyncio.run(self._serve()))

    def __enter__(self) -> Self:
        self._thread.start()
        self._started.wait()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        exc: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._loop.call_soon_threadsafe(self._end.set)
        self._thread.join()

    async def _serve(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._end = asyncio.Event()
        tasks: set[asyncio.Task[None]] = set()

        async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            task = asyncio.current_task()
            assert task is not None
            tasks.add(task)
            self._open += 1
            self.most = max(self.most, self._open)
            try:
                while True:
                    await self._answer(reader, writer)
            except (asyncio.IncompleteReadError, OSError, asyncio.CancelledError):
                pass
            finally:
                self._open -= 1
                tasks.discard(task)
                writer.transport.abort()

        async with await asyncio.start_server(serve, "127.0.0.1", 0, backlog=1000) as server:
            scheme = "ws" if self._where == "ws" else "http"
            self.url = f"{scheme}://127.0.0.1:{server.sockets[0].getsockname()[1]}/mcp"
            self._started.set()
            await self._end.wait()
            for task in tasks:
                task.cancel()
            if tasks:
                await asyncio.wait(tasks)

    async def _answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = await reader.readuntil(b"\r\n\r\n")
        if self._where == "ws":
            await self._flood_websocket(writer, head)
            return
        head = head.lower()
        length = head.partition(b"content-length:")[2].partition(b"\r\n")[0]
        message = json.loads(await reader.readexactly(int(length)) if length else b"{}")
        method = message.get("method", "")
        is_sse = self._where == "sse"
        if head.startswith(b"get") and self._where != "post":
            writer.write(_EVENTS)
            self._stream = writer
            if is_sse:
                writer.write(_chunk(b"event: endpoint\ndata: /post\n\n"))
        elif head.startswith((b"get", b"delete", b"post /mcp" if is_sse else b"delete")):
            writer.write(_NO)
        elif method == "initialize":
            version = A if is_sse else message["params"]["protocolVersion"]
            opened: Any = {"protocolVersion": version, "capabilities": {"tools": {}}, **_SERVER}
            await self._send_result(writer, message, opened)
        elif method == "tools/call":
            await self._flood(writer, message)
        elif method == "tools/list":
            self.pages += 1
            cursor = "" if self.pages == self._last_page else f', "nextCursor": "{self.pages}"'
            result = f"{self._page}{cursor}}}"
            await self._send_result(writer, message, result)
        elif "method" in message:
            writer.write(_ACCEPTED)
        else:
            self.responses.append(message["id"])
            if not self._accepts:
                await self._end.wait()
            writer.write(_ACCEPTED)
        await writer.drain()

    async def _send_result(
        self, writer: asyncio.StreamWriter, request: Any, result: dict[str, Any] | str
    ) -> None:
        text = result if isinstance(result, str) else json.dumps(result)
        body = f'{{"jsonrpc": "2.0", "id": {request["id"]}, "result": {text}}}'.encode()
        if self._where == "sse":
            writer.write(_ACCEPTED)
            assert self._stream is not None
            self._stream.write(_chunk(b"data: %b\n\n" % body))
            return
        writer.write(
            b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: %d\r\n\r\n%b"
            % (len(body), body)
        )

    async def _flood(self, writer: asyncio.StreamWriter, call: Any) -> None:
        stream = writer
        if self._where == "post":
            writer.write(_EVENTS)
        else:
            assert self._stream is not None
            stream = self._stream
        block = b""
        for message in self._messages:
            block += b"data: %b\n\n" % message
            if len(block) > _CHUNK:
                stream.write(_chunk(block))
                block = b""
                await stream.drain()
        if block:
            stream.write(_chunk(block))
        if not self._accepts and self._where != "post":
            return
        done: dict[str, Any] = {"content": [{"type": "text", "text": "done"}]}
        if self._where == "post":
            body = json.dumps({"jsonrpc": "2.0", "id": call["id"], "result": done}).encode()
            writer.write(_chunk(b"data: %b\n\n" % body) + _chunk(b""))
        else:
            await self._send_result(writer, call, done)

    async def _flood_websocket(self, writer: asyncio.StreamWriter, head: bytes) -> None:
        socket: socketlib.socket = writer.get_extra_info("socket")
        socket.setsockopt(socketlib.SOL_SOCKET, socketlib.SO_RCVBUF, 4096)
        key = head.partition(b"sec-websocket-key: ")[2].partition(b"\r\n")[0]
        proof = base64.b64encode(hashlib.sha1(key + _WEBSOCKET_GUID).digest())
        writer.write(
            b"HTTP/1.1 101 Switching Protocols\r\nupgrade: websocket\r\nconnection: upgrade\r\n"
            b"sec-websocket-protocol: mcp\r\nsec-websocket-accept: %b\r\n\r\n" % proof
        )
        opened: Any = {"protocolVersion": D, "capabilities": {"tools": {}}, **_SERVER}
        body = json.dumps({"jsonrpc": "2.0", "id": 1, "result": opened}).encode()
        for message in [body, *self._messages]:
            writer.write(b"\x81\x7e%b%b" % (len(message).to_bytes(2, "big"), message))
            await writer.drain()
        await self._end.wait()


def _chunk(data: bytes) -> bytes:
    return b"%x\r\n%b\r\n" % (len(data), data)
