"""What a request asks the runtime to run: one call of one function, and what becomes of its outcome.

Rules of this file:

1. The runtime calls, awaits, cancels and logs; an `Invocation` does none of it. It knows only how to start
   and how to turn an outcome into an answer.
2. An exception that was not raised for the peer tells the peer nothing but a reference, under which the
   runtime's log has the rest. Whatever a handler raises ends that call and no more, `SystemExit` and
   `RecursionError` included.

How outcomes look for tools, resources and prompts is in their files.
"""

from __future__ import annotations

import abc
import inspect
from typing import TYPE_CHECKING, Any

from mcp_core._errors import Fault, McpError, ToolError, single
from mcp_core.types import ErrorData, Result

if TYPE_CHECKING:
    from collections.abc import Mapping

    from msgspec import Raw, Struct

    from mcp_core._dialects import Dialect

    from ._context import Context
    from ._function import Function

__all__ = ["Invocation", "refuse_coroutine"]


class Invocation(abc.ABC):
    """One call to make: `call`, then `result` with what came out, or `failure` with what was raised.

    `is_async`: `call` gives an awaitable. `thread`: the function blocks and belongs into a worker thread.
    `wants_context`: `call` needs a `Context`.
    """

    __slots__ = ("arguments", "dialect", "function", "is_async", "thread", "wants_context")

    def __init__(self, function: Function, thread: bool, arguments: dict[str, Any], dialect: Dialect) -> None:
        self.function = function
        self.thread = thread
        self.arguments = arguments
        self.dialect = dialect
        self.is_async = function.is_async
        self.wants_context = function.context != ""

    def __repr__(self) -> str:
        return f"<{type(self).__name__} of {self.function.label}>"

    def call(self, context: Context | None = None) -> Any:
        """Call the function: gives its value, or an awaitable if `is_async`; raises whatever it raises."""
        if self.function.context:
            return self.function.call(**self.arguments, **{self.function.context: context})
        return self.function.call(**self.arguments)

    @abc.abstractmethod
    def result(self, value: Any) -> Result | Raw | Struct | Mapping[str, Any]:
        """The answer for a return value.

        Raises:
            Exception: the value is not what was declared, or cannot be sent. Give the exception to `failure`.
        """

    def failure(self, exc: BaseException, reference: str) -> Result | ErrorData:
        """The answer for an exception.

        `reference` is the runtime's name for it, told to the peer in place of its text. A group with a single
        exception in it counts as that exception.
        """
        exc = single(exc)
        if isinstance(exc, McpError):
            return ErrorData(exc.code, exc.message, exc.data)
        return self._failure(exc, reference)

    def _failure(self, exc: BaseException, reference: str) -> Result | ErrorData:
        # ToolError was written to be read; elsewhere than in a tool it is an error all the same.
        text = str(exc) if isinstance(exc, ToolError) else f"Internal error (reference {reference})"
        return ErrorData(self.dialect.codes[Fault.INTERNAL], text)


def refuse_coroutine(value: Any, label: str) -> None:
    """Raise `TypeError` for a coroutine that a plain function returned: nobody is going to await it."""
    if inspect.iscoroutine(value):
        value.close()
        raise TypeError(
            f"{label} is no `async def`, but gave a coroutine; a decorator may hide the `async def`"
        )
