"""The async parts of clients and servers, which await only what a driver passes in.

A client is a subclass of `AbstractClient`. A server is a `Service` for each connection, with a
`Runtime`. Both give a driver each `Job` that needs a task. Nothing here imports trio or asyncio.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from mcp_core._on_first_use import names_on_first_use

if TYPE_CHECKING:
    from ._asgi_app import AsgiApplication as AsgiApplication
    from ._asgi_request import AsgiRequest as AsgiRequest
    from ._asgi_request import AsgiRuntime as AsgiRuntime
    from ._client import AbstractClient as AbstractClient
    from ._client_callbacks import CallbackJob as CallbackJob
    from ._client_context import ClientContext as ClientContext
    from ._client_context import client_context as client_context
    from ._client_context import made_by_connect as made_by_connect
    from ._common_middlewares import MaskErrors as MaskErrors
    from ._common_middlewares import Outcome as Outcome
    from ._common_middlewares import RateLimit as RateLimit
    from ._common_middlewares import Timing as Timing
    from ._http_requests import AuthFlowRunner as AuthFlowRunner
    from ._http_requests import HttpClientRuntime as HttpClientRuntime
    from ._http_requests import HttpRequestJob as HttpRequestJob
    from ._http_requests import HttpRequestRunner as HttpRequestRunner
    from ._http_requests import OnActions as OnActions
    from ._http_requests import PooledConnection as PooledConnection
    from ._job import AUTH_CHECK_TIMEOUT as AUTH_CHECK_TIMEOUT
    from ._job import Job as Job
    from ._job import run_auth_check as run_auth_check
    from ._lifespans import open_lifespans as open_lifespans
    from ._listen import Changes as Changes
    from ._listen import Subscription as Subscription
    from ._log_records import LogEscaper as LogEscaper
    from ._other_loop import note_other_loop as note_other_loop
    from ._runtime import LAST_GRACE as LAST_GRACE
    from ._runtime import READ_SIZE as READ_SIZE
    from ._runtime import SHUTDOWN_GRACE as SHUTDOWN_GRACE
    from ._runtime import Clock as Clock
    from ._runtime import EventLike as EventLike
    from ._runtime import Reschedule as Reschedule
    from ._runtime import Runtime as Runtime
    from ._runtime import Sources as Sources
    from ._service import RequestJob as RequestJob
    from ._service import ServedServer as ServedServer
    from ._service import Service as Service
    from ._service import open_bus as open_bus
    from ._typed_results import TypedToolResult as TypedToolResult
    from ._typed_results import UnexpectedResult as UnexpectedResult
    from .client_tasks._task import ClientTask as ClientTask
    from .client_tasks._task import InvalidTaskReference as InvalidTaskReference
    from .client_tasks._task import TaskReference as TaskReference
    from .client_tasks._task import TaskState as TaskState

__all__ = [
    "AUTH_CHECK_TIMEOUT",
    "LAST_GRACE",
    "READ_SIZE",
    "SHUTDOWN_GRACE",
    "AbstractClient",
    "AsgiApplication",
    "AsgiRequest",
    "AsgiRuntime",
    "AuthFlowRunner",
    "CallbackJob",
    "Changes",
    "ClientContext",
    "ClientTask",
    "Clock",
    "EventLike",
    "HttpClientRuntime",
    "HttpRequestJob",
    "HttpRequestRunner",
    "InvalidTaskReference",
    "Job",
    "LogEscaper",
    "MaskErrors",
    "OnActions",
    "Outcome",
    "PooledConnection",
    "RateLimit",
    "RequestJob",
    "Reschedule",
    "Runtime",
    "ServedServer",
    "Service",
    "Sources",
    "Subscription",
    "TaskReference",
    "TaskState",
    "Timing",
    "TypedToolResult",
    "UnexpectedResult",
    "client_context",
    "made_by_connect",
    "note_other_loop",
    "open_bus",
    "open_lifespans",
    "run_auth_check",
]

# Imported on first use: a server then starts without the client's modules, and both start without
# the HTTP ones.
_MODULES = {
    "._asgi_app": ("AsgiApplication",),
    "._asgi_request": ("AsgiRequest", "AsgiRuntime"),
    "._client": ("AbstractClient",),
    "._client_callbacks": ("CallbackJob",),
    "._client_context": ("ClientContext", "client_context", "made_by_connect"),
    "._common_middlewares": ("MaskErrors", "Outcome", "RateLimit", "Timing"),
    "._http_requests": (
        "AuthFlowRunner",
        "HttpClientRuntime",
        "HttpRequestJob",
        "HttpRequestRunner",
        "OnActions",
        "PooledConnection",
    ),
    "._job": ("AUTH_CHECK_TIMEOUT", "Job", "run_auth_check"),
    "._lifespans": ("open_lifespans",),
    "._listen": ("Changes", "Subscription"),
    "._log_records": ("LogEscaper",),
    "._other_loop": ("note_other_loop",),
    "._runtime": (
        "Clock",
        "EventLike",
        "LAST_GRACE",
        "READ_SIZE",
        "Reschedule",
        "Runtime",
        "SHUTDOWN_GRACE",
        "Sources",
    ),
    "._service": ("RequestJob", "ServedServer", "Service", "open_bus"),
    "._typed_results": ("TypedToolResult", "UnexpectedResult"),
    ".client_tasks._task": ("ClientTask", "InvalidTaskReference", "TaskReference", "TaskState"),
}

__getattr__ = names_on_first_use(__name__, _MODULES)


def __dir__() -> list[str]:
    return __all__
