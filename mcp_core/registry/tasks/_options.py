"""Tools that run as tasks: their options, and whether one request runs as a task.

1. In 2025-11-25 the client asks for a task, by `params.task`. In 2026-07-28 it declares the
   extension on each request, and the server decides. Earlier revisions have no tasks.
2. A tool without support answers a request for a task with an error, if this server has tasks at
   all. If it has none, it ignores the request for a task.

Sources: basic/utilities/tasks, Tool-Level Negotiation (2025-11-25); the extension
`io.modelcontextprotocol/tasks`, Capability Negotiation.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias

from msgspec import Struct

from mcp_core._errors import Fault, McpError
from mcp_core.protocol.revisions._capabilities import capability_object, is_declared
from mcp_core.protocol.revisions._methods import TASKS
from mcp_core.registry._errors import DeclarationError

if TYPE_CHECKING:
    from mcp_core.protocol.messages._events import RequestReceived
    from mcp_core.registry.functions._function import Function

__all__ = ["TaskOptions", "TaskSupport", "check_task", "read_task_options"]

TaskSupport: TypeAlias = Literal["forbidden", "optional", "required"]
_SUPPORTED: Final = ("optional", "required")


class TaskOptions(Struct, frozen=True, kw_only=True):
    """How a tool runs as a task.

    Args:
        support: "optional" if a client without tasks may call the tool as well, "required" if not.
        detach: seconds after which the call becomes a task, unless its handler has ended by then.
            0, the default, makes a task at once. None leaves it to `Context.detach`. In 2025-11-25
            a client that asks for a task gets one at once in any case.
        ttl: seconds to keep the task and its result; the default of the server's `TaskLimits` if
            None. A client of 2025-11-25 may ask for another time.
        rerun: True to run the handler again, on another worker or after a restart, if its worker
            was lost, from its beginning and at least once more. It then finds the responses that
            it has got so far. The store keeps the arguments for that. Without it the task fails.
        meanwhile: a text for the model to read while the task runs (2025-11-25).

    Raises:
        ValueError: `support` is neither of the two, `detach` is negative, or `ttl` isn't positive.
    """

    support: Literal["optional", "required"] = "optional"
    detach: float | None = 0.0
    ttl: float | None = None
    rerun: bool = False
    meanwhile: str | None = None

    def __post_init__(self) -> None:
        if self.support not in _SUPPORTED:
            raise ValueError(f"support is 'optional' or 'required', not {self.support!r}")
        if self.detach is not None and not self.detach >= 0:
            raise ValueError(f"detach is a number of seconds from 0 on, or None: {self.detach!r}")
        if self.ttl is not None and not self.ttl > 0:
            raise ValueError(f"ttl is a number of seconds above 0, or None: {self.ttl!r}")


def read_task_options(
    declared: TaskSupport | TaskOptions | None, function: Function, thread: bool
) -> TaskOptions | None:
    """Return a tool's options, None if it never runs as a task.

    Raises:
        DeclarationError: the option has another value, or the function cannot outlive its request.
    """
    if declared is None or declared == "forbidden":
        return None
    if isinstance(declared, TaskOptions):
        options = declared
    elif declared in _SUPPORTED:
        options = TaskOptions(support=declared)
    else:
        raise DeclarationError(
            f"{function.label}: task is 'forbidden', 'optional', 'required' or a TaskOptions, "
            f"not {declared!r}"
        )
    if not function.is_async and not thread:
        raise DeclarationError(
            f"{function.label} is a plain def, which has ended when it returns: to run it as a "
            "task, declare it with thread=True, or as an `async def`"
        )
    return options


def check_task(
    options: TaskOptions | None, request: RequestReceived, *, served: bool
) -> TaskOptions | None:
    """Return the options with which a call of a tool runs as a task, None for an ordinary call.

    Args:
        options: the tool's, None if it never runs as a task.
        request: the call.
        served: True if this server has tools that run as tasks.

    Raises:
        McpError: the tool runs only as a task and the client cannot have one, or the other way
            round (-32601 in 2025-11-25, -32021 in 2026-07-28).
    """
    dialect = request.peer.dialect
    wanted = dialect.tasks == "requested" and getattr(request.params, "task", None) is not None
    if options is None:
        if wanted and served:
            raise _error(request, Fault.METHOD_NOT_FOUND, "does not run as a task")
        return None
    if dialect.tasks == "extension":
        if is_declared(request.peer.capabilities, TASKS):
            return options
        if options.support == "required":
            missing = {"requiredCapabilities": capability_object(TASKS)}
            text = f"runs as a task, and the client did not declare the extension {TASKS[1]}"
            raise _error(request, Fault.MISSING_CAPABILITY, text, missing)
        return None
    if wanted:
        return options
    if options.support == "required":
        text = (
            "runs as a task only: the call needs `task` in its params"
            if dialect.tasks == "requested"
            else f"runs as a task, which revision {dialect.version} does not have"
        )
        raise _error(request, Fault.METHOD_NOT_FOUND, text)
    return None


def _error(request: RequestReceived, fault: Fault, text: str, data: Any = None) -> McpError:
    code = request.peer.dialect.codes[fault]
    message = f"the tool {request.params.name} {text}"
    return McpError(code, message) if data is None else McpError(code, message, data)
