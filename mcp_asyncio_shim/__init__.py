"""Model Context Protocol servers and clients on asyncio, on the core that mcp_trio uses.

This driver reads, feeds the core, acts on its events and writes. It decides nothing about the
protocol. It has what is needed to embed a server (stdio, streams, ASGI) or a client (stdio,
memory, HTTP/1.1, WebSocket); listening sockets belong to `mcp_trio`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ._asgi import AsgiApp, asgi
from ._client import Client
from ._connect import connect
from ._server import run, serve_stdio, serve_streams

if TYPE_CHECKING:
    from mcp_core.adapters import Recording, SqliteTaskStore
    from mcp_core.runtime.tasks import MemoryTaskStore

    from ._host import Host

__all__ = [
    "AsgiApp",
    "Client",
    "Host",
    "MemoryTaskStore",
    "Recording",
    "SqliteTaskStore",
    "asgi",
    "connect",
    "run",
    "serve_stdio",
    "serve_streams",
]


def __getattr__(name: str) -> Any:
    # Hosts, stores and recorders are imported on first use: a server starts faster without them.
    if name == "Host":
        from ._host import Host

        return Host
    if name in ("Recording", "SqliteTaskStore"):
        from mcp_core import adapters

        return getattr(adapters, name)
    if name == "MemoryTaskStore":
        from mcp_core.runtime.tasks import MemoryTaskStore

        return MemoryTaskStore
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return __all__
