"""An HTTP server that is honest until the request that it attacks.

The bytes of an attack are literal: no HTTP library repairs them.
"""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from typing import Any, Final

import trio

from mcp_trio._nursery import open_quiet_nursery

from ._attack import MAX_BYTES, MAX_SECONDS

__all__ = [
    "EVENTS",
    "AttackedRequest",
    "HostileServer",
    "Play",
    "chunk",
    "hosting",
    "text_frame",
]

_GUID: Final = b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11"
_META: Final = "io.modelcontextprotocol/"
_TOOL: Final = {"name": "attack", "inputSchema": {"type": "object"}}
_CHANGES: Final = {"listChanged": True}
_CAPABILITIES: Final = {"tools": _CHANGES, "prompts": _CHANGES, "resources": _CHANGES}
_SERVER_INFO: Final = {"name": "hostile", "version": "1"}
_MAX_HEAD: Final = 65_536
_LINE_BREAK: Final = b"\r\n"
EVENTS: Final = (
    b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"
)


class _Exhausted(Exception):
    """The attack has sent all that it may."""


class HostileServer:
    """A running hostile server.

    Attributes:
        url: where it listens, such as `http://127.0.0.1:40123/mcp`.
        requests: the method of each message, or of the HTTP request if it has none, in order.
        heads: the head of each HTTP request, in order.
        connections: the number of connections so far.
        open_connections: the number of connections now.
        most_connections: the largest number of connections at a time.
        attacks: the number of requests that were attacked.
        bytes_sent: the number of bytes sent by attacks.
    """

    def __init__(self, url: str) -> None:
        self.url = url
        self.requests: list[str] = []
        self.heads: list[bytes] = []
        self.connections = 0
        self.open_connections = 0
        self.most_connections = 0
        self.attacks = 0
        self.bytes_sent = 0

    def __repr__(self) -> str:
        return f"<HostileServer {self.url}, {len(self.requests)} requests>"

    def __str__(self) -> str:
        return self.url


class AttackedRequest:
    """A request, and the connection on which an attack responds to it.

    Attributes:
        server: the server.
        head: the head of the HTTP request; empty if nothing was read.
        message: the message; empty for a body that isn't a message.
        other_url: another server of the same kind, at another port.
    """

    def __init__(
        self, stream: trio.SocketStream, server: HostileServer, head: bytes, message: dict[str, Any]
    ) -> None:
        self.stream = stream
        self.server = server
        self.head = head
        self.message = message
        self.other_url = ""

    async def send(self, *data: bytes) -> None:
        """Send bytes."""
        for each in data:
            if self.server.bytes_sent > MAX_BYTES:
                raise _Exhausted
            self.server.bytes_sent += len(each)
            await self.stream.send_all(each)

    async def send_slowly(self, data: bytes, pause: float = 0.02) -> None:
        """Send one byte at a time."""
        for place in range(len(data)):
            await self.send(data[place : place + 1])
            await trio.sleep(pause)

    async def repeat(self, data: bytes) -> None:
        """Send the same bytes until the client leaves or the bound is reached."""
        block = data * (16_384 // len(data) + 1)
        while True:
            await self.send(block)

    def result(self, **more: Any) -> bytes:
        """Return the honest response to the message."""
        return self.response_to(self.message.get("id"), **more)

    def response_to(self, id: Any, **more: Any) -> bytes:
        """Return the result of a tool call with an id."""
        result = {"resultType": "complete", "content": [{"type": "text", "text": "done"}], **more}
        return _dump({"jsonrpc": "2.0", "id": id, "result": result})

    async def respond(self, body: bytes, *headers: bytes, status: bytes = b"200 OK") -> None:
        """Send an honest response with a JSON body."""
        await self.send(_response(body, *headers, status=status))

    async def respond_honestly(self, *headers: bytes) -> None:
        """Send the response of an honest server, with further headers."""
        method = self.head.partition(b" ")[0].decode("latin-1")
        await self.send(_honest(method, self.message, headers))


# An attack. It returns True to leave the connection open for the next request.
Play = Callable[[AttackedRequest], Awaitable[bool | None]]


def chunk(data: bytes) -> bytes:
    """Return a chunk of a body."""
    return b"%x\r\n%b\r\n" % (len(data), data)


def _dump(message: Any) -> bytes:
    return json.dumps(message, separators=(",", ":")).encode()


def _response(body: bytes, *headers: bytes, status: bytes = b"200 OK") -> bytes:
    kind = b"Content-Type: application/json" if body else b""
    length = b"Content-Length: %d" % len(body)
    lines = [b"HTTP/1.1 " + status, *filter(None, (kind, length)), *headers, b"", body]
    return _LINE_BREAK.join(lines)


@asynccontextmanager
async def hosting(play: Play, on: str, scheme: str) -> AsyncGenerator[HostileServer]:
    """Run a server that plays an attack on requests of one method, and yield it."""
    listeners = await trio.open_tcp_listeners(0, host="127.0.0.1")
    others = await trio.open_tcp_listeners(0, host="127.0.0.1")
    server = HostileServer(f"{scheme}://127.0.0.1:{_port(listeners[0])}/mcp")
    other_url = f"http://127.0.0.1:{_port(others[0])}/mcp"

    async def serve(stream: trio.SocketStream) -> None:
        server.connections += 1
        server.open_connections += 1
        server.most_connections = max(server.most_connections, server.open_connections)
        try:
            with suppress(OSError, trio.BrokenResourceError, trio.ClosedResourceError, _Exhausted):
                await _Connection(stream, server, play, on, other_url).run()
        finally:
            server.open_connections -= 1
            await trio.aclose_forcefully(stream)

    async with open_quiet_nursery() as nursery:
        nursery.start_soon(trio.serve_listeners, serve, [*listeners, *others])
        yield server


def _port(listener: trio.SocketListener) -> int:
    port = listener.socket.getsockname()[1]
    assert isinstance(port, int)
    return port


class _Connection:
    """One connection of a client."""

    def __init__(
        self,
        stream: trio.SocketStream,
        server: HostileServer,
        play: Play,
        on: str,
        other_url: str,
    ) -> None:
        self._stream = stream
        self._server = server
        self._play = play
        self._on = on
        self._other_url = other_url
        self._buffer = bytearray()

    async def run(self) -> None:
        if self._on == "connect":
            await self._attack(b"", {})
            return
        while (head := await self._read_head()) is not None:
            self._server.heads.append(head)
            if b"\r\nupgrade: websocket" in head.lower():
                await self._serve_websocket(head)
                return
            method = head.partition(b" ")[0].decode("latin-1")
            body = await self._read(_length(head))
            message = _load(body)
            name = str(message.get("method", method if not message else "response"))
            self._server.requests.append(name)
            if self._on in (name, method, "*"):
                if not await self._attack(head, message):
                    return
            else:
                await self._stream.send_all(_honest(method, message, ()))

    async def _attack(self, head: bytes, message: dict[str, Any]) -> bool:
        request = AttackedRequest(self._stream, self._server, head, message)
        request.other_url = self._other_url
        self._server.attacks += 1
        with trio.move_on_after(MAX_SECONDS):
            return bool(await self._play(request))
        return False

    async def _read_head(self) -> bytes | None:
        while b"\r\n\r\n" not in self._buffer:
            if len(self._buffer) > _MAX_HEAD or not await self._fill():
                return None
        head, _, rest = bytes(self._buffer).partition(b"\r\n\r\n")
        self._buffer[:] = rest
        return head

    async def _read(self, size: int) -> bytes:
        while len(self._buffer) < size:
            if not await self._fill():
                raise trio.BrokenResourceError
        data = bytes(self._buffer[:size])
        del self._buffer[:size]
        return data

    async def _fill(self) -> bool:
        data = await self._stream.receive_some(65_536)
        self._buffer += data
        return bool(data)

    # -- WebSocket ---------------------------------------------------------------------------------

    async def _serve_websocket(self, head: bytes) -> None:
        lines = [line.partition(b":") for line in head.split(_LINE_BREAK)]
        key = next(value for name, _, value in lines if name.lower() == b"sec-websocket-key")
        proof = base64.b64encode(hashlib.sha1(key.strip() + _GUID, usedforsecurity=False).digest())
        accept = b"none" if self._on == "upgrade" else proof
        await self._stream.send_all(
            b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
            b"Sec-WebSocket-Protocol: mcp\r\nSec-WebSocket-Accept: %b\r\n\r\n" % accept
        )
        if self._on == "upgrade":
            await self._attack(head, {})
            return
        while True:
            message = _load(await self._read_frame())
            name = str(message.get("method", "response"))
            self._server.requests.append(name)
            if name == self._on:
                await self._attack(head, message)
                return
            if "id" in message and "method" in message:
                await self._stream.send_all(text_frame(_honest_body(message)))

    async def _read_frame(self) -> bytes:
        first = await self._read(2)
        size = first[1] & 0x7F
        if size >= 126:
            size = int.from_bytes(await self._read(2 if size == 126 else 8), "big")
        if size > MAX_BYTES:
            raise trio.BrokenResourceError
        mask = await self._read(4)
        data = await self._read(size)
        return bytes(byte ^ mask[place % 4] for place, byte in enumerate(data))


def text_frame(data: bytes) -> bytes:
    """Return a text frame of a server (RFC 6455 5.2)."""
    size = len(data)
    if size < 126:
        return b"\x81" + bytes([size]) + data
    return b"\x81\x7e" + size.to_bytes(2, "big") + data


def _length(head: bytes) -> int:
    for line in head.split(_LINE_BREAK):
        name, _, value = line.partition(b":")
        if name.strip().lower() == b"content-length" and value.strip().isdigit():
            return min(int(value), MAX_BYTES)
    return 0


def _load(body: bytes) -> dict[str, Any]:
    try:
        found = json.loads(body)
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}


# -- What an honest server responds ----------------------------------------------------------------


def _honest(method: str, message: dict[str, Any], headers: tuple[bytes, ...]) -> bytes:
    if method != "POST":
        return _response(b"", b"Allow: POST", *headers, status=b"405 Method Not Allowed")
    if "method" not in message or "id" not in message:
        return _response(b"", *headers, status=b"202 Accepted")
    return _response(_honest_body(message), *headers)


def _honest_body(message: dict[str, Any]) -> bytes:
    response: dict[str, Any] = {"jsonrpc": "2.0", "id": message["id"]}
    params = message.get("params")
    found = _honest_result(str(message["method"]), params if isinstance(params, dict) else {})
    if found is None:
        return _dump({**response, "error": {"code": -32601, "message": "Method not found"}})
    return _dump({**response, "result": found})


def _honest_result(method: str, params: dict[str, Any]) -> dict[str, Any] | None:
    hints = {"ttlMs": 0, "cacheScope": "private"}
    meta = params.get("_meta")
    is_modern = isinstance(meta, dict) and _META + "protocolVersion" in meta
    typed: dict[str, Any] = {"resultType": "complete", **hints} if is_modern else {}
    match method:
        case "initialize":
            return {
                "protocolVersion": params.get("protocolVersion"),
                "capabilities": _CAPABILITIES,
                "serverInfo": _SERVER_INFO,
            }
        case "server/discover" if is_modern:
            assert isinstance(meta, dict)
            versions = [meta[_META + "protocolVersion"]]
            return {"supportedVersions": versions, "capabilities": _CAPABILITIES, **typed}
        case "ping":
            return {}
        case "tools/list":
            return {"tools": [_TOOL], **typed}
        case "tools/call":
            content = [{"type": "text", "text": "done"}]
            return {"content": content, **({"resultType": "complete"} if is_modern else {})}
        case "prompts/list":
            return {"prompts": [], **typed}
        case "resources/list":
            return {"resources": [], **typed}
        case _:
            return None
