"""MCP servers and clients on asyncio: the core and the `Server` that mcp_trio runs, in few lines and without trio.

It decides nothing: it reads, feeds the core, acts on its events and writes. So it proves that the core is neutral. It has what one needs
to embed a server or a client: stdio, memory, ASGI, and for clients HTTP/1.1 and WebSockets. What a process needs that is a server
by itself belongs to `mcp_trio`. If it ever needs a rule of the protocol, the core lacks something.
"""

from __future__ import annotations

from ._asgi import AsgiApp, asgi
from ._client import Client, connect
from ._server import run, serve_stdio, serve_streams

__all__ = ["AsgiApp", "Client", "asgi", "connect", "run", "serve_stdio", "serve_streams"]
