"""Model Context Protocol servers and clients on asyncio, on the core that mcp_trio uses.

This driver reads, feeds the core, acts on its events and writes. It decides nothing about the
protocol. It has what is needed to embed a server (stdio, streams, ASGI) or a client (stdio,
memory, HTTP/1.1, WebSocket); listening sockets belong to `mcp_trio`.
"""

from __future__ import annotations

from ._asgi import AsgiApp, asgi
from ._client import Client
from ._connect import connect
from ._server import run, serve_stdio, serve_streams

__all__ = ["AsgiApp", "Client", "asgi", "connect", "run", "serve_stdio", "serve_streams"]
