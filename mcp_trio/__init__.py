"""Model Context Protocol servers and clients on trio.

`Server` declares what is offered, `run` serves it over stdio; `connect` gives a `Client`. The protocol itself is the pure
state machine in `mcp_core`, its shapes are in `mcp_core.types`.
"""

from __future__ import annotations

from mcp_core import (
    AuthRequired,
    CallTimeout,
    Change,
    Changes,
    ConnectFailed,
    ConnectionLost,
    FormSchema,
    LocalProtocolError,
    McpError,
    McpTrioError,
    PeerError,
    RemoteProtocolError,
    ToolError,
    __version__,
    answer_form,
)
from mcp_core.registry import (
    Accepted,
    Audio,
    Cache,
    Context,
    File,
    Form,
    Image,
    Refused,
    ResourceNotFound,
    Server,
    UrlElicitationRequired,
)

from ._child import Grace
from ._client import Client
from ._connect import ClientOptions, connect, connect_stdio, connect_stream
from ._memory import memory_pair
from ._server import run, serve_listeners, serve_stdio, serve_stream

__all__ = [
    "Accepted",
    "Audio",
    "AuthRequired",
    "Cache",
    "CallTimeout",
    "Change",
    "Changes",
    "Client",
    "ClientOptions",
    "ConnectFailed",
    "ConnectionLost",
    "Context",
    "File",
    "Form",
    "FormSchema",
    "Grace",
    "Image",
    "LocalProtocolError",
    "McpError",
    "McpTrioError",
    "PeerError",
    "Refused",
    "RemoteProtocolError",
    "ResourceNotFound",
    "Server",
    "ToolError",
    "UrlElicitationRequired",
    "__version__",
    "answer_form",
    "connect",
    "connect_stdio",
    "connect_stream",
    "memory_pair",
    "run",
    "serve_listeners",
    "serve_stdio",
    "serve_stream",
]
