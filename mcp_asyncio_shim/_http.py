"""A server at a URL, from the client's end: over HTTP/1.1 as h11 spells it, or over a WebSocket as wsproto does.

Rules: a request is written as a whole, while its response is read. A connection whose response did not come to its end, or that has
said more than that, is never used again; when one is opened, used again or given up is the core's to say (`HttpRequestRunner`). To its link a
WebSocket looks like a connection, bytes in and bytes out; what is said on it is the core's as well. No proxy is looked for.
"""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import Any, Final

import h11
from wsproto import frame_protocol

from mcp_core import ConnectFailed, Connection, ConnectionLost, http
from mcp_core.runtime import HttpRequestRunner

from ._link import LAST_WRITE, READ_SIZE, Carrier, Link, Streams, apart

_CONNECT: Final = 10.0


async def way_to(url: str, headers: Any, tls: Any) -> Callable[..., Carrier]:
    """What makes the link of a client to the server at `url`."""
    if url.lower().startswith("ws"):
        upgrade = http.Upgrade(url, headers, secrets.token_bytes(16))
        streams = await _dial(upgrade.url, tls, upgrade)
        return lambda conn, take: _SocketLink(streams, _Framed(conn), take)
    options = http.HttpClientOptions(headers=headers, entropy=secrets.token_bytes)
    return partial(_HttpLink, http.Url.parse(url), tls, options)


async def _dial(url: http.Url, tls: Any, upgrade: http.Upgrade | None = None) -> Streams:
    """A connection to the server at `url`; with `upgrade` it is a WebSocket."""
    tls = (tls or True) if url.scheme == "https" else None
    try:
        async with asyncio.timeout(_CONNECT):
            streams = await asyncio.open_connection(url.host, url.port, ssl=tls)
            if upgrade is not None:
                await _switch(upgrade, *streams)
            return streams
    except (OSError, EOFError, asyncio.LimitOverrunError, h11.RemoteProtocolError) as exc:
        raise ConnectFailed(f"cannot connect to {url.authority.decode()}: {str(exc) or 'no answer'}") from exc


async def _switch(upgrade: http.Upgrade, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    head, wire = upgrade.head, h11.Connection(h11.CLIENT)
    request = h11.Request(method=head.method, target=head.target, headers=head.headers)
    try:
        writer.writelines(wire.send(event) or b"" for event in (request, h11.EndOfMessage()))
        wire.receive_data(await reader.readuntil(b"\r\n\r\n"))
        answer: Any = wire.next_event()
        refused = upgrade.refused(http.Head(answer.status_code, list(answer.headers)))
        if refused is not None:
            raise ConnectFailed(str(refused)) from refused
    except BaseException:
        writer.transport.abort()
        raise


class _Line:
    """One connection of HTTP/1.1."""

    heard, protocol, room = False, "HTTP/1.1", 1

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader, self._writer = reader, writer
        self._wire = h11.Connection(h11.CLIENT, max_incomplete_event_size=READ_SIZE)
        self._coming = asyncio.create_task(self._next())

    async def run(self, head: http.RequestHead, body: bytes, take: Callable[..., None]) -> bool:
        wire, length = self._wire, [(b"content-length", b"%d" % len(body))] if body else []
        request = h11.Request(method=head.method, target=head.target, headers=[*head.headers, *length])
        parts = [wire.send(event) for event in (request, h11.Data(data=body), h11.EndOfMessage())]
        self.heard = False
        self._writer.writelines(part for part in parts if part)
        try:
            while not isinstance(event := wire.next_event(), h11.EndOfMessage):
                if event is h11.NEED_DATA:
                    data = await self._coming or b""
                    self._coming = asyncio.create_task(self._next())
                    self.heard = self.heard or bool(data)
                    wire.receive_data(data)
                elif isinstance(event, h11.Response):
                    take([http.Head(event.status_code, list(event.headers))])
                elif isinstance(event, h11.Data):
                    take([http.Body(bytes(event.data))])
            take([http.End()])
        except h11.RemoteProtocolError as exc:
            raise ConnectionLost(f"the server's answer is no HTTP/1.1, or breaks off: {exc}") from None
        rest = self._writer.transport.get_write_buffer_size() or wire.trailing_data[0]
        again = wire.our_state is wire.their_state is h11.DONE and not rest and not self.closed_by_server()
        if again:
            wire.start_next_cycle()
        return again

    async def _next(self) -> Any:
        """What comes next, if anything does; it may come, or break, while nobody asks."""
        with suppress(OSError):
            return await self._reader.read(READ_SIZE)

    def closed_by_server(self) -> bool:
        return self._coming.done()

    def close(self) -> None:
        self._coming.cancel()
        self._writer.transport.abort()

    async def aclose(self) -> None:
        self.close()
        await asyncio.wait({self._coming})


class _HttpLink(Carrier):
    """Carries `conn` over HTTP; `take` gets each event and must not wait."""

    def __init__(self, url: http.Url, tls: Any, options: Any, conn: Connection, take: Any) -> None:
        self._origin, client = (url, tls), http.HttpClient(conn, url.text, options)
        self._carriage: HttpRequestRunner[_Line] = HttpRequestRunner(client, self, apart(take))
        super().__init__(self._carriage, self._carriage.run)

    new_event = asyncio.Event

    async def dial(self) -> _Line:
        return _Line(*await _dial(*self._origin))

    def discard(self, lines: list[_Line]) -> None:
        list(map(_Line.close, lines))

    async def aclose(self) -> None:
        """Say good-bye, for which there is a second; then close every connection. Any number of times."""
        carriage = self._carriage
        carriage.http.conn.close()
        self.pump()
        try:
            await self.until(lambda: carriage.idle, LAST_WRITE)
        finally:
            carriage.stop()
            await self.until(lambda: carriage.idle)
            await asyncio.gather(*map(_Line.aclose, carriage.pool.clear()))
            self._timer.cancel()


class _Framed(http.WebSocket):
    """A WebSocket in bytes, to be used as a connection."""

    def __init__(self, conn: Connection) -> None:
        self._clock, self._wrote = asyncio.get_running_loop().time, False
        super().__init__(conn, self._clock())
        self.close, self._frames = conn.close, http.Spelling(self, frame_protocol, client=True)
        self._pieces = self._frames.pieces((), self._clock)

    def receive_data(self, data: bytes, now: float) -> None:
        (partial(self._frames.read, data) if data else self.lost)(now)

    def queued(self) -> bool:
        # When something was written the machine wants to be asked once more.
        return self._wrote or (self.has_to_say and not self.over)

    def data_to_send(self) -> Any:
        if (piece := next(self._pieces, None)) is None:
            actions = self.messages_to_send(self._clock())
            self._wrote, self._pieces = bool(actions), self._frames.pieces(actions, self._clock)
            piece = next(self._pieces, memoryview(b""))
        return piece


class _SocketLink(Link):
    """Carries a WebSocket, which is its `conn`, on `streams`."""

    async def aclose(self, patience: float = LAST_WRITE) -> None:
        """End the conversation; the server has `patience` seconds to close the WebSocket as well."""
        self.conn.close()
        self.pump()
        await self.until(lambda: self.conn.over, patience)
        await super().aclose(patience)
