"""Model Context Protocol servers and clients on asyncio, on the core that mcp_trio uses.

This driver reads, feeds the core, acts on its events and writes. It decides nothing about the
protocol. It has what is needed to embed a server (stdio, streams, ASGI) or a client (stdio,
memory, HTTP/1.1, WebSocket); listening sockets belong to `mcp_trio`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from mcp_core.drivers import names_on_first_use

if TYPE_CHECKING:
    from mcp_core.adapters import Recording, RedisStore, SqliteTaskStore
    from mcp_core.runtime import MaskErrors, RateLimit, Timing
    from mcp_core.runtime.sharing import MemoryStore
    from mcp_core.runtime.tasks import MemoryTaskStore
    from mcp_core.sharing import read_state_keys

    from ._asgi import AsgiApp, asgi
    from ._client import Client
    from ._connect import connect
    from ._host import Host
    from ._server import run, serve_stdio, serve_streams

__all__ = [
    "AsgiApp",
    "Client",
    "Host",
    "MaskErrors",
    "MemoryStore",
    "MemoryTaskStore",
    "RateLimit",
    "Recording",
    "RedisStore",
    "SqliteTaskStore",
    "Timing",
    "asgi",
    "connect",
    "read_state_keys",
    "run",
    "serve_stdio",
    "serve_streams",
]

# Imported on first use, so that a program loads its half only.
_MODULES = {
    "mcp_core.adapters": ("Recording", "RedisStore", "SqliteTaskStore"),
    "mcp_core.runtime": ("MaskErrors", "RateLimit", "Timing"),
    "mcp_core.runtime.sharing": ("MemoryStore",),
    "mcp_core.runtime.tasks": ("MemoryTaskStore",),
    "mcp_core.sharing": ("read_state_keys",),
    "._asgi": ("AsgiApp", "asgi"),
    "._client": ("Client",),
    "._connect": ("connect",),
    "._host": ("Host",),
    "._server": ("run", "serve_stdio", "serve_streams"),
}

__getattr__ = names_on_first_use(__name__, _MODULES)


def __dir__() -> list[str]:
    return __all__
