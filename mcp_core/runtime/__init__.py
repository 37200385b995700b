"""The parts of clients and servers that wait: `async def` that awaits what a driver hands in.

A client is a subclass of `AbstractClient`. A server is a `Service` for each connection, with a
`Runtime`. Both give a driver each `Job` that needs a task. Nothing here imports trio or asyncio.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

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
from mcp_core.messages._pending import PendingRequest as PendingRequest
from mcp_core.messages._pending import deliver as deliver

from ._auth_check import AUTH_CHECK_TIMEOUT as AUTH_CHECK_TIMEOUT
from ._auth_check import run_auth_check as run_auth_check
from ._client import AbstractClient as AbstractClient
from ._client_callbacks import CallbackJob as CallbackJob
from ._job import Job as Job
from ._listen import Changes as Changes
from ._listen import Subscription as Subscription
from ._runtime import EventLike as EventLike
from ._runtime import Runtime as Runtime
from ._service import RequestJob as RequestJob
from ._service import Service as Service

if TYPE_CHECKING:
    from ._asgi_app import AsgiApplication as AsgiApplication
    from ._asgi_request import AsgiRequest as AsgiRequest
    from ._asgi_request import AsgiRuntime as AsgiRuntime
    from ._http_requests import AuthFlowRunner as AuthFlowRunner
    from ._http_requests import HttpClientRuntime as HttpClientRuntime
    from ._http_requests import HttpRequestJob as HttpRequestJob
    from ._http_requests import HttpRequestRunner as HttpRequestRunner
    from ._http_requests import PooledConnection as PooledConnection

__all__ = [
    "AUTH_CHECK_TIMEOUT",
    "NETWORK_INITIALIZE_TIMEOUT",
    "AbstractClient",
    "AsgiApplication",
    "AsgiRequest",
    "AsgiRuntime",
    "AuthFlowRunner",
    "CallOptions",
    "CallSteps",
    "CallWait",
    "CallbackJob",
    "CallbackOptions",
    "Changes",
    "ClientConfigOptions",
    "ConnectionStatus",
    "EventLike",
    "HttpClientRuntime",
    "HttpRequestJob",
    "HttpRequestRunner",
    "Job",
    "PendingCall",
    "PendingRequest",
    "PooledConnection",
    "ProcessTree",
    "RequestJob",
    "Runtime",
    "Service",
    "Subscription",
    "answer_form",
    "child_environment",
    "client_config",
    "deliver",
    "run_auth_check",
]

# Imported on first use: a server or client on a pipe starts sooner without `mcp_core.http`.
_NEED_HTTP = {
    "AsgiApplication",
    "AsgiRequest",
    "AsgiRuntime",
    "AuthFlowRunner",
    "HttpClientRuntime",
    "HttpRequestJob",
    "HttpRequestRunner",
    "PooledConnection",
}


def __getattr__(name: str) -> Any:
    if name in _NEED_HTTP:
        from mcp_core.runtime import _asgi_app, _asgi_request, _http_requests

        for module in (_asgi_app, _asgi_request, _http_requests):
            if name in module.__all__:
                return getattr(module, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
