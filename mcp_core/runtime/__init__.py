"""The parts of clients and servers that wait: `async def` that awaits what a driver hands in.

A client is a subclass of `AbstractClient`. A server is a `Service` for each connection, with a
`Runtime`. Both give a driver each `Job` that needs a task. Nothing here imports trio or asyncio.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from mcp_core._errors import show_public_path
from mcp_core._keywords import check_keywords as check_keywords
from mcp_core._keywords import check_keywords_of as check_keywords_of
from mcp_core._keywords import shows_keywords as shows_keywords
from mcp_core._text import ByteEscaper as ByteEscaper
from mcp_core._text import shorten_text as shorten_text
from mcp_core.client._calls import CallOptions as CallOptions
from mcp_core.client._calls import CallSteps as CallSteps
from mcp_core.client._calls import CallWait as CallWait
from mcp_core.client._calls import PendingCall as PendingCall
from mcp_core.client._child_environment import child_environment as child_environment
from mcp_core.client._options import NETWORK_INITIALIZE_TIMEOUT as NETWORK_INITIALIZE_TIMEOUT
from mcp_core.client._options import CallbackOptions as CallbackOptions
from mcp_core.client._options import ClientConfigOptions as ClientConfigOptions
from mcp_core.client._options import answer_form as answer_form
from mcp_core.client._options import client_config as client_config
from mcp_core.client._process_tree import ProcessTree as ProcessTree
from mcp_core.client._status import ConnectionStatus as ConnectionStatus
from mcp_core.client._windows_command import UnsafeArgument as UnsafeArgument
from mcp_core.client._windows_command import windows_command as windows_command
from mcp_core.messages._pending import PendingRequest as PendingRequest
from mcp_core.messages._pending import deliver as deliver

from ._client import AbstractClient as AbstractClient
from ._client_callbacks import CallbackJob as CallbackJob
from ._client_context import ClientContext as ClientContext
from ._client_context import client_context as client_context
from ._job import AUTH_CHECK_TIMEOUT as AUTH_CHECK_TIMEOUT
from ._job import Job as Job
from ._job import run_auth_check as run_auth_check
from ._listen import Changes as Changes
from ._listen import Subscription as Subscription
from ._log_records import LogEscaper as LogEscaper
from ._runtime import LAST_GRACE as LAST_GRACE
from ._runtime import READ_SIZE as READ_SIZE
from ._runtime import SHUTDOWN_GRACE as SHUTDOWN_GRACE
from ._runtime import EventLike as EventLike
from ._runtime import Runtime as Runtime
from ._service import RequestJob as RequestJob
from ._service import ServedServer as ServedServer
from ._service import Service as Service
from ._typed_results import TypedToolResult as TypedToolResult
from ._typed_results import UnexpectedResult as UnexpectedResult
from .client_tasks._task import ClientTask as ClientTask
from .client_tasks._task import InvalidTaskReference as InvalidTaskReference
from .client_tasks._task import TaskReference as TaskReference
from .client_tasks._task import TaskState as TaskState

if TYPE_CHECKING:
    from mcp_core._launch_secrets import launch_secrets as launch_secrets
    from mcp_core._secret_patterns import is_secret_field as is_secret_field
    from mcp_core.client._handshake_cache import HandshakeCache as HandshakeCache
    from mcp_core.client._handshake_cache import server_key as server_key
    from mcp_core.client._reload import ReloadRelay as ReloadRelay

    from ._asgi_app import AsgiApplication as AsgiApplication
    from ._asgi_request import AsgiRequest as AsgiRequest
    from ._asgi_request import AsgiRuntime as AsgiRuntime
    from ._http_requests import AuthFlowRunner as AuthFlowRunner
    from ._http_requests import HttpClientRuntime as HttpClientRuntime
    from ._http_requests import HttpRequestJob as HttpRequestJob
    from ._http_requests import HttpRequestRunner as HttpRequestRunner
    from ._http_requests import OnActions as OnActions
    from ._http_requests import PooledConnection as PooledConnection

__all__ = [
    "AUTH_CHECK_TIMEOUT",
    "LAST_GRACE",
    "NETWORK_INITIALIZE_TIMEOUT",
    "READ_SIZE",
    "SHUTDOWN_GRACE",
    "AbstractClient",
    "AsgiApplication",
    "AsgiRequest",
    "AsgiRuntime",
    "AuthFlowRunner",
    "ByteEscaper",
    "CallOptions",
    "CallSteps",
    "CallWait",
    "CallbackJob",
    "CallbackOptions",
    "Changes",
    "ClientConfigOptions",
    "ClientContext",
    "ClientTask",
    "ConnectionStatus",
    "EventLike",
    "HandshakeCache",
    "HttpClientRuntime",
    "HttpRequestJob",
    "HttpRequestRunner",
    "InvalidTaskReference",
    "Job",
    "LogEscaper",
    "OnActions",
    "PendingCall",
    "PendingRequest",
    "PooledConnection",
    "ProcessTree",
    "ReloadRelay",
    "RequestJob",
    "Runtime",
    "ServedServer",
    "Service",
    "Subscription",
    "TaskState",
    "TypedToolResult",
    "UnexpectedResult",
    "UnsafeArgument",
    "answer_form",
    "check_keywords",
    "check_keywords_of",
    "child_environment",
    "client_config",
    "client_context",
    "deliver",
    "is_secret_field",
    "launch_secrets",
    "run_auth_check",
    "server_key",
    "shorten_text",
    "shows_keywords",
    "windows_command",
]

show_public_path(__name__, globals())

# Imported on first use: a server or client on a pipe starts sooner without `mcp_core.http`.
_NEED_HTTP = {
    "AsgiApplication",
    "AsgiRequest",
    "AsgiRuntime",
    "AuthFlowRunner",
    "HttpClientRuntime",
    "HttpRequestJob",
    "HttpRequestRunner",
    "OnActions",
    "PooledConnection",
}


def __getattr__(name: str) -> Any:
    if name in _NEED_HTTP:
        from mcp_core.runtime import _asgi_app, _asgi_request, _http_requests

        for module in (_asgi_app, _asgi_request, _http_requests):
            if name in module.__all__:
                return getattr(module, name)
    # Their patterns take as long to compile as a tenth of our modules to load.
    if name == "launch_secrets":
        from mcp_core._launch_secrets import launch_secrets

        return launch_secrets
    if name == "is_secret_field":
        from mcp_core._secret_patterns import is_secret_field

        return is_secret_field
    # For the command only.
    if name == "ReloadRelay":
        from mcp_core.client._reload import ReloadRelay

        return ReloadRelay
    if name in ("HandshakeCache", "server_key"):
        from mcp_core.client import _handshake_cache

        return getattr(_handshake_cache, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
