"""A `Wire` on a real socket of asyncio, whose reader and writer the test can pause and break."""

from __future__ import annotations

import asyncio
import socket
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

from mcp_asyncio_shim import serve_streams
from tests.harness.asyncio_memory import AsyncioEnd
from tests.harness.jsonrpc import D
from tests.harness.wire.lines import Wire

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from mcp_core.registry import Server

__all__ = ["SocketWire", "served_on_a_socket"]


class SocketWire(Wire):
    """The other end of `reader` and `writer`. `serving` ends with the server."""

    serving: asyncio.Task[None]

    def __init__(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, version: str = D
    ) -> None:
        end: Any = AsyncioEnd(reader, writer)
        super().__init__(end, version)
        self.writer = writer


@asynccontextmanager
async def served_on_a_socket(
    server: Server, version: str = D, *, grace: float = 5.0
) -> AsyncIterator[SocketWire]:
    """Yield a wire to `server`, on an open connection.

    At the end the client closes the connection, and the server has to end too.
    """
    ours, theirs = socket.socketpair()
    serving = asyncio.create_task(
        serve_streams(server, *await asyncio.open_connection(sock=theirs), grace=grace)
    )
    wire = SocketWire(*await asyncio.open_connection(sock=ours), version)
    wire.serving = serving
    try:
        await wire.shake_hands()
        yield wire
    finally:
        wire.writer.close()
        await serving
        await asyncio.gather(wire.writer.wait_closed(), return_exceptions=True)
