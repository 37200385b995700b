"""A TCP proxy between a client and a server that a test can cut, as a network does."""

from __future__ import annotations

from contextlib import asynccontextmanager
from functools import partial
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import trio

if TYPE_CHECKING:
    from collections.abc import AsyncIterator


class TcpProxy:
    """A proxy at `url`. `cut` closes the current connections; later ones work."""

    def __init__(self, url: str, port: int) -> None:
        where = urlsplit(url)
        assert where.hostname is not None
        assert where.port is not None
        self._server = where.hostname, where.port
        self._open: set[trio.CancelScope] = set()
        self._arrived = b""
        self._more = trio.Event()
        self.url = where._replace(netloc=f"{where.hostname}:{port}").geturl()

    def cut(self) -> None:
        for scope in self._open:
            scope.cancel()

    async def until(self, wanted: bytes) -> None:
        """Wait until the server has sent these bytes and they were forwarded."""
        while wanted not in self._arrived:
            self._more = trio.Event()
            await self._more.wait()

    async def carry(self, client: trio.SocketStream) -> None:
        """Serve one connection."""
        with trio.CancelScope() as scope:
            self._open.add(scope)
            async with (
                await trio.open_tcp_stream(*self._server) as server,
                trio.open_nursery() as nursery,
            ):
                nursery.start_soon(self._copy, client, server)
                await self._copy(server, client, answers=True)
                nursery.cancel_scope.cancel()
        self._open.discard(scope)

    async def _copy(
        self, source: trio.SocketStream, target: trio.SocketStream, answers: bool = False
    ) -> None:
        try:
            async for data in source:
                await target.send_all(data)
                if answers:
                    self._arrived += data
                    self._more.set()
            await target.send_eof()
        except trio.BrokenResourceError:
            pass  # the other side was cut


@asynccontextmanager
async def line_to(url: str) -> AsyncIterator[TcpProxy]:
    """Yield a proxy to the server at `url`."""
    [listener] = await trio.open_tcp_listeners(0, host="127.0.0.1")
    line = TcpProxy(url, listener.socket.getsockname()[1])
    async with trio.open_nursery() as nursery:
        nursery.start_soon(partial(trio.serve_listeners, line.carry, [listener]))
        yield line
        nursery.cancel_scope.cancel()
