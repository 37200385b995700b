"""The lifespans of a server and of those that are mounted in it, entered together."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any

from mcp_core.registry._lifespans import LifespanValues
from mcp_core.registry._server import Server

__all__ = ["open_lifespans"]


@asynccontextmanager
async def open_lifespans(server: Server) -> AsyncIterator[Any]:
    """Enter the lifespan of `server`, then those of the servers that are mounted in it.

    A driver enters this around all connections of a served server, and passes the value to each
    `Service` as `lifespan`. A server that is mounted twice has one lifespan. They are left in the
    reverse order.

    *Error handling*: exceptions of a lifespan propagate unchanged, after those entered before it
    were left.
    """
    async with AsyncExitStack() as stack:
        values = {server: await stack.enter_async_context(server.lifespan())}
        # One at a time: a lifespan may itself mount servers.
        while other := next((s for s in server.mounted_servers() if s not in values), None):
            values[other] = await stack.enter_async_context(other.lifespan())
        with server.lifespans_entered():
            yield LifespanValues(values) if len(values) > 1 else values[server]
