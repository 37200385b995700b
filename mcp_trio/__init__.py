"""Model Context Protocol servers and clients on trio.

Declare tools, resources and prompts on a `Server`, and `run` it over stdio; `connect` yields a
`Client`. The protocol is the pure state machine in `mcp_core`; its types are in `mcp_core.types`.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from mcp_core import (
    AuthRequired,
    CallTimeout,
    Change,
    ConnectFailed,
    ConnectionLost,
    FormSchema,
    Limits,
    LocalProtocolError,
    McpError,
    McpTrioError,
    PeerError,
    RemoteProtocolError,
    TaskCancelled,
    ToolError,
    __version__,
)
from mcp_core.registry import (
    AcceptedElicitation,
    Audio,
    CacheHint,
    CancelledElicitation,
    Context,
    CurrentTask,
    DeclarationError,
    DeclinedElicitation,
    ElicitationResult,
    File,
    Form,
    Image,
    InvalidPageVisit,
    Middleware,
    PageVisit,
    Proceed,
    PromptOptions,
    ResourceNotFound,
    ResourceOptions,
    RootsContext,
    SampledConversation,
    Server,
    TaskOptions,
    Tasks,
    ToolOptions,
    UrlElicitationRequired,
)
from mcp_core.runtime import (
    CallOptions,
    Changes,
    ClientTask,
    InvalidTaskReference,
    TaskState,
    TypedToolResult,
    UnexpectedResult,
    answer_form,
)
from mcp_core.tasks import TaskLimits
from mcp_core.types import CallToolResult, InputRequiredResult
from mcp_trio.streams._child import Grace
from mcp_trio.streams._memory import memory_pair

from . import _logging as _logging
from . import types
from ._client import Client
from ._connect import (
    ClientOptions,
    connect,
    connect_http,
    connect_stdio,
    connect_stream,
    connect_websocket,
)
from ._server import run, serve_listeners, serve_stdio, serve_stream

if TYPE_CHECKING:
    from mcp_core.adapters import Recording, SqliteTaskStore
    from mcp_core.auth import (
        ApiKeys,
        AuthorizationFailed,
        ClientProfile,
        JwtVerifier,
        OAuthResourceServer,
        Secret,
    )
    from mcp_core.http import PlainResponse
    from mcp_core.runtime.tasks import MemoryTaskStore
    from mcp_trio.auth._authorization import LoginConfig
    from mcp_trio.auth._keyring import KeyringStorage
    from mcp_trio.auth._storage import FileStorage, MemoryStorage, TokenStorage
    from mcp_trio.host._host import Host
    from mcp_trio.http_server._asgi import AsgiApp, asgi
    from mcp_trio.http_server._serve import HttpAddress, run_http, serve_http

__all__ = [
    "AcceptedElicitation",
    "ApiKeys",
    "AsgiApp",
    "Audio",
    "AuthRequired",
    "AuthorizationFailed",
    "CacheHint",
    "CallOptions",
    "CallTimeout",
    "CallToolResult",
    "CancelledElicitation",
    "Change",
    "Changes",
    "Client",
    "ClientOptions",
    "ClientProfile",
    "ClientTask",
    "ConnectFailed",
    "ConnectionLost",
    "Context",
    "CurrentTask",
    "DeclarationError",
    "DeclinedElicitation",
    "ElicitationResult",
    "File",
    "FileStorage",
    "Form",
    "FormSchema",
    "Grace",
    "Host",
    "HttpAddress",
    "Image",
    "InputRequiredResult",
    "InvalidPageVisit",
    "InvalidTaskReference",
    "JwtVerifier",
    "KeyringStorage",
    "Limits",
    "LocalProtocolError",
    "LoginConfig",
    "McpError",
    "McpTrioError",
    "MemoryStorage",
    "MemoryTaskStore",
    "Middleware",
    "OAuthResourceServer",
    "PageVisit",
    "PeerError",
    "PlainResponse",
    "Proceed",
    "PromptOptions",
    "Recording",
    "RemoteProtocolError",
    "ResourceNotFound",
    "ResourceOptions",
    "RootsContext",
    "SampledConversation",
    "Secret",
    "Server",
    "SqliteTaskStore",
    "TaskCancelled",
    "TaskLimits",
    "TaskOptions",
    "TaskState",
    "Tasks",
    "TokenStorage",
    "ToolError",
    "ToolOptions",
    "TypedToolResult",
    "UnexpectedResult",
    "UrlElicitationRequired",
    "__version__",
    "answer_form",
    "asgi",
    "connect",
    "connect_http",
    "connect_stdio",
    "connect_stream",
    "connect_websocket",
    "memory_pair",
    "run",
    "run_http",
    "serve_http",
    "serve_listeners",
    "serve_stdio",
    "serve_stream",
    "types",
]

# HTTP, authorization, hosts and stores are imported on first use: a stdio server starts faster.
_ON_FIRST_USE = {
    "ApiKeys": "mcp_core.auth",
    "AsgiApp": ".http_server._asgi",
    "AuthorizationFailed": "mcp_core.auth",
    "ClientProfile": "mcp_core.auth",
    "FileStorage": ".auth._storage",
    "Host": ".host._host",
    "HttpAddress": ".http_server._serve",
    "JwtVerifier": "mcp_core.auth",
    "KeyringStorage": ".auth._keyring",
    "LoginConfig": ".auth._authorization",
    "MemoryStorage": ".auth._storage",
    "MemoryTaskStore": "mcp_core.runtime.tasks",
    "OAuthResourceServer": "mcp_core.auth",
    "PlainResponse": "mcp_core.http",
    "Recording": "mcp_core.adapters",
    "Secret": "mcp_core.auth",
    "SqliteTaskStore": "mcp_core.adapters",
    "TokenStorage": ".auth._storage",
    "asgi": ".http_server._asgi",
    "run_http": ".http_server._serve",
    "serve_http": ".http_server._serve",
}


def __getattr__(name: str) -> Any:
    module = _ON_FIRST_USE.get(name)
    if module is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(module, __name__), name)


def __dir__() -> list[str]:
    return __all__
