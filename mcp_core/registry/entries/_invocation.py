"""One call of a declared function, which answers one request.

1. The runtime awaits, cancels and logs. An `Invocation` only calls the function, and turns its
   return value or exception into the response.
2. An exception that wasn't raised for the peer isn't shown to it. The peer gets a reference,
   under which the runtime logs the exception.
3. An exception ends its own call only, `SystemExit` and `RecursionError` included.
"""

from __future__ import annotations

import abc
from collections.abc import Awaitable, Mapping
from typing import TYPE_CHECKING, Any, Protocol

from msgspec import Raw, Struct
from msgspec.structs import replace

from mcp_core._errors import Fault, McpError, ToolError, single
from mcp_core._on_first_use import type_on_first_use
from mcp_core.protocol.jsonrpc._unencodable import whole_text
from mcp_core.protocol.revisions._dialects import Dialect
from mcp_core.registry.functions._function import Function, Injected
from mcp_core.registry.tasks._options import TaskOptions
from mcp_core.types import ErrorData, Result

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from ._call_limits import CallLimits
else:
    CallLimits = type_on_first_use("mcp_core.registry.entries._call_limits", "CallLimits")

__all__ = ["Invocation", "MountLike", "MountedCall"]


class MountLike(Protocol):
    """The part of a `Mount` that an invocation needs."""

    def enter(self, context: Any, /) -> Any:
        """Return the context of the mounted server's handlers, for one of the outer server."""


class Invocation(abc.ABC):
    """One call to make.

    Call `call`, then `result` with the value, or `exception_response` with the exception.

    Attributes:
        arguments: the function's keyword arguments, without the context.
        dialect: the peer's revision.
        function: the declared function.
        mounts: the mounts through which the function's server was reached, the outermost first.
        task: the options of the task as which the call runs, None for an ordinary call.
        limits: how long it may take and how many there may be, None for no limits.
        thread: True if the function blocks and must run in a worker thread.
        is_async: True if `call` returns an awaitable.
        wants_context: True if the function has a parameter for the context.
    """

    task: TaskOptions | None = None
    limits: CallLimits | None = None

    __slots__ = (
        "arguments",
        "dialect",
        "function",
        "is_async",
        "mounts",
        "thread",
        "wants_context",
    )

    def __init__(
        self, function: Function, thread: bool, arguments: dict[str, Any], dialect: Dialect
    ) -> None:
        self.function = function
        self.thread = thread
        self.arguments = arguments
        self.dialect = dialect
        self.mounts: tuple[MountLike, ...] = ()
        self.is_async = function.is_async
        self.wants_context = function.context != ""

    def __repr__(self) -> str:
        return f"<{type(self).__name__} of {self.function.label}>"

    def call(self, context: Injected | None = None) -> Any:
        """Call the function. Return its value, or an awaitable if `is_async`.

        `context` is passed to the parameter that is annotated with it, if the function has one. The
        caller awaits the awaitable.

        Raises:
            BaseException: the function's exception.
        """
        if not self.function.context:
            return self.function.call(**self.arguments)
        for mount in self.mounts:
            context = mount.enter(context)
        # In a thread, middleware of the same request may use the context meanwhile.
        if self.is_async or self.thread or context is None:
            return self.function.call(**self.arguments, **{self.function.context: context})
        context.in_plain_def = True
        try:
            return self.function.call(**self.arguments, **{self.function.context: context})
        finally:
            context.in_plain_def = False  # the middleware around it may await

    def defer(self, awaitable: Awaitable[Any]) -> None:
        """Make `awaitable`, which a plain function has returned, what the next `call` returns."""
        self.function = replace(self.function, call=lambda: awaitable, context="")
        self.arguments = {}
        self.is_async = True

    @abc.abstractmethod
    def result(self, value: Any) -> Result | Raw | Struct | Mapping[str, Any]:
        """Return the response for `value`, which the function has returned.

        Raises:
            Exception: the value hasn't the declared type, or cannot be sent. Pass the exception
                to `exception_response`.
        """

    def exception_response(self, exc: BaseException, reference: str) -> Result | ErrorData:
        """Return the response for `exc`, the exception of the function.

        The peer gets `reference`, the runtime's name for the exception in its log, in place of the
        text; the text of a `McpError` or `ToolError` it gets itself. A group that holds a single
        exception counts as that exception.
        """
        exc = single(exc)
        if isinstance(exc, McpError):
            return ErrorData(exc.code, whole_text(exc.message), exc.data)
        return self._exception_response(exc, reference)

    def _exception_response(self, exc: BaseException, reference: str) -> Result | ErrorData:
        # The text of a ToolError is meant for the peer, also outside of a tool.
        text = str(exc) if isinstance(exc, ToolError) else f"Internal error (reference {reference})"
        return ErrorData(self.dialect.codes[Fault.INTERNAL], whole_text(text))


class MountedCall:
    """A call of what a mounted server with middleware declares: its middleware runs first.

    Args:
        mount: how the server is mounted.
        middlewares: the server's.
        prepare: returns what `Server.answer` of the mounted server would, inside its middleware.
        task: the options of the task as which the call runs, None for an ordinary call.

    `mounts` has the mounts through which the outer server of `mount` was reached, the outermost
    first.
    """

    __slots__ = ("_mount", "middlewares", "mounts", "prepare", "task")

    def __init__(
        self,
        mount: MountLike,
        middlewares: Sequence[Any],
        prepare: Callable[[], Any],
        task: TaskOptions | None = None,
    ) -> None:
        self._mount = mount
        self.middlewares = middlewares
        self.prepare = prepare
        self.task = task
        self.mounts: tuple[MountLike, ...] = ()

    def __repr__(self) -> str:
        return f"<MountedCall through {self._mount!r}>"

    def enter(self, context: Any) -> Any:
        """Return the context for the middlewares and the handler, for one of the outermost."""
        for mount in (*self.mounts, self._mount):
            context = mount.enter(context)
        return context

    def prepare_alone(self) -> Any:
        """Return the `Invocation` or response as if there were no middleware."""
        found = self.prepare()
        if isinstance(found, MountedCall):
            found = found.prepare_alone()
        if isinstance(found, Invocation):
            found.mounts = (*self.mounts, self._mount, *found.mounts)
        return found
