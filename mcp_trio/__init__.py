"""Model Context Protocol servers and clients on trio.

Declare tools, resources and prompts on a `Server`, and `run` it over stdio; `connect` yields a
`Client`. The protocol is the pure state machine in `mcp_core`; its types are in `mcp_core.types`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from mcp_core import (
    AuthRequired,
    CallTimeout,
    Change,
    ConnectFailed,
    ConnectionLost,
    FormSchema,
    InvalidToolResult,
    Limits,
    LocalProtocolError,
    McpError,
    McpTrioError,
    PeerError,
    Rate,
    RemoteProtocolError,
    TaskCancelled,
    ToolError,
    UnencodableValue,
    __version__,
)
from mcp_core.drivers import names_on_first_use
from mcp_core.types import CallToolResult, InputRequiredResult

from . import _logging as _logging
from . import types

if TYPE_CHECKING:
    from mcp_core.adapters import Recording, RedisStore, SqliteTaskStore
    from mcp_core.auth import (
        ApiKeys,
        AuthorizationFailed,
        ClientProfile,
        JwtVerifier,
        OAuthResourceServer,
        Secret,
    )
    from mcp_core.drivers import CallOptions, answer_form
    from mcp_core.http import PlainResponse
    from mcp_core.registry import (
        AcceptedElicitation,
        Audio,
        CacheHint,
        Caller,
        CancelledElicitation,
        Context,
        CurrentTask,
        DeclarationError,
        DeclinedElicitation,
        DirectoryOptions,
        ElicitationResult,
        File,
        Form,
        Image,
        InvalidUrlElicitation,
        Middleware,
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
        UrlElicitation,
        UrlElicitationRequired,
    )
    from mcp_core.runtime import (
        Changes,
        ClientTask,
        InvalidTaskReference,
        MaskErrors,
        Outcome,
        RateLimit,
        TaskState,
        Timing,
        TypedToolResult,
        UnexpectedResult,
    )
    from mcp_core.runtime.sharing import MemoryStore, RemoteChange
    from mcp_core.runtime.tasks import MemoryTaskStore
    from mcp_core.sharing import read_state_keys
    from mcp_core.tasks import TaskLimits

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
    from .auth._authorization import LoginConfig
    from .auth._keyring import KeyringStorage
    from .auth._storage import FileStorage, MemoryStorage, TokenStorage
    from .host._host import Host
    from .http_server._asgi import AsgiApp, asgi
    from .http_server._serve import HttpAddress, run_http, serve_http
    from .streams._child import Grace
    from .streams._memory import memory_pair

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
    "Caller",
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
    "DirectoryOptions",
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
    "InvalidTaskReference",
    "InvalidToolResult",
    "InvalidUrlElicitation",
    "JwtVerifier",
    "KeyringStorage",
    "Limits",
    "LocalProtocolError",
    "LoginConfig",
    "MaskErrors",
    "McpError",
    "McpTrioError",
    "MemoryStorage",
    "MemoryStore",
    "MemoryTaskStore",
    "Middleware",
    "OAuthResourceServer",
    "Outcome",
    "PeerError",
    "PlainResponse",
    "Proceed",
    "PromptOptions",
    "Rate",
    "RateLimit",
    "Recording",
    "RedisStore",
    "RemoteChange",
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
    "Timing",
    "TokenStorage",
    "ToolError",
    "ToolOptions",
    "TypedToolResult",
    "UnencodableValue",
    "UnexpectedResult",
    "UrlElicitation",
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
    "read_state_keys",
    "run",
    "run_http",
    "serve_http",
    "serve_listeners",
    "serve_stdio",
    "serve_stream",
    "types",
]

# Server, client, HTTP, hosts and stores load when used: a program pays for its half only.
_MODULES = {
    "mcp_core.adapters": ("Recording", "RedisStore", "SqliteTaskStore"),
    "mcp_core.auth": (
        "ApiKeys",
        "AuthorizationFailed",
        "ClientProfile",
        "JwtVerifier",
        "OAuthResourceServer",
        "Secret",
    ),
    "mcp_core.http": ("PlainResponse",),
    "mcp_core.registry": (
        "AcceptedElicitation",
        "Audio",
        "CacheHint",
        "Caller",
        "CancelledElicitation",
        "Context",
        "CurrentTask",
        "DeclarationError",
        "DeclinedElicitation",
        "DirectoryOptions",
        "ElicitationResult",
        "File",
        "Form",
        "Image",
        "InvalidUrlElicitation",
        "Middleware",
        "UrlElicitation",
        "Proceed",
        "PromptOptions",
        "ResourceNotFound",
        "ResourceOptions",
        "RootsContext",
        "SampledConversation",
        "Server",
        "TaskOptions",
        "Tasks",
        "ToolOptions",
        "UrlElicitationRequired",
    ),
    "mcp_core.drivers": ("CallOptions", "answer_form"),
    "mcp_core.runtime": (
        "Changes",
        "ClientTask",
        "InvalidTaskReference",
        "MaskErrors",
        "Outcome",
        "RateLimit",
        "TaskState",
        "Timing",
        "TypedToolResult",
        "UnexpectedResult",
    ),
    "mcp_core.runtime.sharing": ("MemoryStore", "RemoteChange"),
    "mcp_core.runtime.tasks": ("MemoryTaskStore",),
    "mcp_core.sharing": ("read_state_keys",),
    "mcp_core.tasks": ("TaskLimits",),
    "._client": ("Client",),
    "._connect": (
        "ClientOptions",
        "connect",
        "connect_http",
        "connect_stdio",
        "connect_stream",
        "connect_websocket",
    ),
    "._server": ("run", "serve_listeners", "serve_stdio", "serve_stream"),
    ".auth._authorization": ("LoginConfig",),
    ".auth._keyring": ("KeyringStorage",),
    ".auth._storage": ("FileStorage", "MemoryStorage", "TokenStorage"),
    ".host._host": ("Host",),
    ".http_server._asgi": ("AsgiApp", "asgi"),
    ".http_server._serve": ("HttpAddress", "run_http", "serve_http"),
    ".streams._child": ("Grace",),
    ".streams._memory": ("memory_pair",),
}

__getattr__ = names_on_first_use(__name__, _MODULES)


def __dir__() -> list[str]:
    return __all__
