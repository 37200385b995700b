"""A real server over HTTP on memory streams: its listener, and a client for one connection."""

from __future__ import annotations

import json
from contextlib import asynccontextmanager
from functools import partial
from typing import TYPE_CHECKING, Any, Final

import trio

from mcp_core.http import HostOriginPolicy, HttpOptions
from mcp_trio import memory_pair
from mcp_trio.http_server._serve import serve_http_listeners
from tests.harness.jsonrpc import (
    INITIALIZED,
    D,
    E,
    Message,
    encoded,
    initialize,
    request,
    stateless_request,
)
from tests.harness.wire.http1_client import Answer, HttpWire

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Mapping

    from mcp_core.registry import Server

__all__ = ["HttpSession", "MemoryListener", "events_in", "served_over_http"]

_USUAL: Final = (
    b"host: localhost",
    b"accept: application/json, text/event-stream",
    b"content-type: application/json",
)


class MemoryListener(trio.abc.Listener[trio.abc.HalfCloseableStream]):
    """A listener in memory. `connect` returns the client's end of a new connection."""

    def __init__(self) -> None:
        channel = trio.open_memory_channel[trio.abc.HalfCloseableStream](1_000)
        self._connecting, self._accepted = channel
        self.closed = False

    def connect(self) -> trio.abc.HalfCloseableStream:
        ours, theirs = memory_pair()
        self._connecting.send_nowait(theirs)
        return ours

    async def accept(self) -> trio.abc.HalfCloseableStream:
        return await self._accepted.receive()

    async def aclose(self) -> None:
        self.closed = True
        self._accepted.close()
        await trio.lowlevel.checkpoint()


class HttpSession(HttpWire):
    """A client in revision `version` on one connection, with the `session` that it was given."""

    def __init__(self, stream: trio.abc.Stream, version: str = D, session: bytes = b"") -> None:
        super().__init__(stream)
        self.version = version
        self.session = session

    def posting(self, message: Message, *headers: bytes) -> bytes:
        """Return the bytes of a POST of `message`."""
        body = encoded(message)
        lines = [*_USUAL, *self._about(message), *headers, b"content-length: %d" % len(body)]
        return b"\r\n".join([b"POST /mcp HTTP/1.1", *lines, b"", body])

    def getting(self, *headers: bytes, method: bytes = b"GET") -> bytes:
        """Return the bytes of a request without a body."""
        lines = [b"host: localhost", b"accept: text/event-stream", *self._about({}), *headers]
        return b"\r\n".join([method + b" /mcp HTTP/1.1", *lines, b"", b""])

    def _about(self, message: Message) -> list[bytes]:
        if message.get("method") == "initialize":
            return []
        lines = [b"mcp-protocol-version: " + self.version.encode()]
        if self.session:
            lines.append(b"mcp-session-id: " + self.session)
        if self.version == E and message:
            lines.append(b"mcp-method: " + message["method"].encode())
            if "name" in message.get("params", {}):
                lines.append(b"mcp-name: " + message["params"]["name"].encode())
        return lines

    async def post(self, message: Message) -> Answer:
        return await self.ask(self.posting(message))

    async def shake_hands(self) -> None:
        """Start a session, in revisions that have them."""
        if self.version == E:
            return
        answer = await self.post(initialize(self.version))
        assert answer.status == 200, answer
        self.session = answer.headers[b"mcp-session-id"]
        assert (await self.post(INITIALIZED)).status == 202

    def calling(
        self, id: Any, name: str, arguments: Mapping[str, Any] | None = None, **meta: Any
    ) -> Message:
        """Return a tool call."""
        params = {"name": name, "arguments": arguments or {}}
        if self.version == E:
            return stateless_request(id, "tools/call", params, **meta)
        return request(id, "tools/call", {**params, "_meta": meta} if meta else params)

    async def call(self, id: Any, name: str, arguments: Mapping[str, Any] | None = None) -> Message:
        """Call a tool that sends nothing before its result."""
        answer = await self.post(self.calling(id, name, arguments))
        assert answer.headers[b"content-type"] == b"application/json", answer
        message: Message = json.loads(answer.body)
        return message

    def again(self, listener: MemoryListener) -> HttpSession:
        """Return the same client on another connection."""
        return HttpSession(listener.connect(), self.version, self.session)


def events_in(body: bytes) -> list[Message]:
    """Return the messages of an event stream."""
    lines = [line[6:] for line in body.split(b"\n") if line.startswith(b"data: ")]
    return [json.loads(line) for line in lines if line]


@asynccontextmanager
async def served_over_http(server: Server, **options: Any) -> AsyncIterator[MemoryListener]:
    """Serve at `/mcp`, cancelled at the end.

    `options` are an endpoint's or `serve_http`'s.
    """
    listener = MemoryListener()
    names = ("reply", "sessions", "limits", "subprotocols")
    of_endpoint = {name: options.pop(name) for name in names if name in options}
    serve = partial(
        serve_http_listeners,
        [listener],  # type: ignore[list-item]
        {"/mcp": server},
        HttpOptions(host_origin_policy=HostOriginPolicy("127.0.0.1"), **of_endpoint),
        **{"routes": {}, **options},
    )
    async with trio.open_nursery() as nursery:
        nursery.start_soon(serve)
        yield listener
        nursery.cancel_scope.cancel()
