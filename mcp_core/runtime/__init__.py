"""The parts of clients and servers that wait: `async def` that awaits what a driver hands in.

A client is a subclass of `AbstractClient`. A server is a `Service` for each connection, with a
`Runtime`. Both give a driver each `Job` that needs a task. Nothing here imports trio or asyncio.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from mcp_core._on_first_use import names_on_first_use as names_on_first_use

if TYPE_CHECKING:
    from mcp_core._keywords import check_keywords as check_keywords
    from mcp_core._keywords import check_keywords_of as check_keywords_of
    from mcp_core._keywords import shows_keywords as shows_keywords
    from mcp_core._launch_secrets import launch_secrets as launch_secrets
    from mcp_core._secret_patterns import is_secret_field as is_secret_field
    from mcp_core._text import ByteEscaper as ByteEscaper
    from mcp_core._text import shorten_text as shorten_text
    from mcp_core.client._calls import CallOptions as CallOptions
    from mcp_core.client._calls import CallSteps as CallSteps
    from mcp_core.client._calls import CallWait as CallWait
    from mcp_core.client._calls import PendingCall as PendingCall
    from mcp_core.client._handshake_cache import HandshakeCache as HandshakeCache
    from mcp_core.client._handshake_cache import server_key as server_key
    from mcp_core.client._options import NETWORK_INITIALIZE_TIMEOUT as NETWORK_INITIALIZE_TIMEOUT
    from mcp_core.client._options import CallbackOptions as CallbackOptions
    from mcp_core.client._options import ClientConfigOptions as ClientConfigOptions
    from mcp_core.client._options import answer_form as answer_form
    from mcp_core.client._options import client_config as client_config
    from mcp_core.client._status import ConnectionStatus as ConnectionStatus
    from mcp_core.processes._child_environment import child_environment as child_environment
    from mcp_core.processes._process_tree import ProcessTree as ProcessTree
    from mcp_core.processes._reload import ReloadRelay as ReloadRelay
    from mcp_core.processes._windows_command import UnsafeArgument as UnsafeArgument
    from mcp_core.processes._windows_command import windows_command as windows_command
    from mcp_core.protocol.messages._pending import PendingRequest as PendingRequest
    from mcp_core.protocol.messages._pending import deliver as deliver

    from ._asgi_app import AsgiApplication as AsgiApplication
    from ._asgi_request import AsgiRequest as AsgiRequest
    from ._asgi_request import AsgiRuntime as AsgiRuntime
    from ._client import AbstractClient as AbstractClient
    from ._client_callbacks import CallbackJob as CallbackJob
    from ._client_context import ClientContext as ClientContext
    from ._client_context import client_context as client_context
    from ._http_requests import AuthFlowRunner as AuthFlowRunner
    from ._http_requests import HttpClientRuntime as HttpClientRuntime
    from ._http_requests import HttpRequestJob as HttpRequestJob
    from ._http_requests import HttpRequestRunner as HttpRequestRunner
    from ._http_requests import OnActions as OnActions
    from ._http_requests import PooledConnection as PooledConnection
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
    "TaskReference",
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
    "names_on_first_use",
    "run_auth_check",
    "server_key",
    "shorten_text",
    "shows_keywords",
    "windows_command",
]

# A server starts sooner without what only a client needs, and both without HTTP and host changes.
_MODULES = {
    "mcp_core._keywords": ("check_keywords", "check_keywords_of", "shows_keywords"),
    "mcp_core._launch_secrets": ("launch_secrets",),
    "mcp_core._secret_patterns": ("is_secret_field",),
    "mcp_core._text": ("ByteEscaper", "shorten_text"),
    "mcp_core.client._calls": ("CallOptions", "CallSteps", "CallWait", "PendingCall"),
    "mcp_core.processes._child_environment": ("child_environment",),
    "mcp_core.client._handshake_cache": ("HandshakeCache", "server_key"),
    "mcp_core.client._options": (
        "CallbackOptions",
        "ClientConfigOptions",
        "NETWORK_INITIALIZE_TIMEOUT",
        "answer_form",
        "client_config",
    ),
    "mcp_core.processes._process_tree": ("ProcessTree",),
    "mcp_core.processes._reload": ("ReloadRelay",),
    "mcp_core.client._status": ("ConnectionStatus",),
    "mcp_core.processes._windows_command": ("UnsafeArgument", "windows_command"),
    "mcp_core.protocol.messages._pending": ("PendingRequest", "deliver"),
    "._asgi_app": ("AsgiApplication",),
    "._asgi_request": ("AsgiRequest", "AsgiRuntime"),
    "._client": ("AbstractClient",),
    "._client_callbacks": ("CallbackJob",),
    "._client_context": ("ClientContext", "client_context"),
    "._http_requests": (
        "AuthFlowRunner",
        "HttpClientRuntime",
        "HttpRequestJob",
        "HttpRequestRunner",
        "OnActions",
        "PooledConnection",
    ),
    "._job": ("AUTH_CHECK_TIMEOUT", "Job", "run_auth_check"),
    "._listen": ("Changes", "Subscription"),
    "._log_records": ("LogEscaper",),
    "._runtime": ("EventLike", "LAST_GRACE", "READ_SIZE", "Runtime", "SHUTDOWN_GRACE"),
    "._service": ("RequestJob", "ServedServer", "Service"),
    "._typed_results": ("TypedToolResult", "UnexpectedResult"),
    ".client_tasks._task": ("ClientTask", "InvalidTaskReference", "TaskReference", "TaskState"),
}

__getattr__ = names_on_first_use(__name__, _MODULES)


def __dir__() -> list[str]:
    return __all__
