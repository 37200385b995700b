"""What stands around every handler: functions that see a request before it is answered, and the answer before it is sent.

Rules of this file:

1. There is one shape, whatever is asked for: `await proceed()` in the middle gives the answer, or raises what the handler
   raised. A middleware may raise instead of proceeding, give another answer, or proceed again.
2. The first one declared is the outermost. Arguments are read and handlers looked up inside of all of them, so that whoever
   is turned away learns nothing about what there is.
3. Without any, nothing here is run, and a plain `def` needs no task.
4. Who asks the client is run again with the answer, and a middleware sees each run. Where the question is the answer to the
   request, a run ends by `NeedInput`, which is no `Exception`: the question is put, whatever a middleware makes of that.

It has no `async def` of its own: it puts together what middleware and runtime give it to await.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from functools import partial
from typing import TYPE_CHECKING, Any, TypeAlias

from ._context import Context
from ._invocation import Invocation

if TYPE_CHECKING:
    from collections.abc import Generator, Sequence

    from mcp_core._events import RequestReceived

    from ._runtime import Runtime
    from ._server import Server

__all__ = ["Middleware", "Proceed", "Proceeding", "surrounded"]

# Given to a middleware: awaited, a call of it gives the result that the peer will get.
Proceed: TypeAlias = Callable[[], Awaitable[Any]]
Middleware: TypeAlias = Callable[[Context[Any], Proceed], Awaitable[Any]]


class Proceeding:
    """Awaited, it answers one request: gives the result, or raises what the handler raised.

    `plan` is the call that it comes to, None as long as that was not looked up; only if it is given from the start, and the
    function wants none, there may be no `context`.
    """

    __slots__ = ("_request", "_runtime", "_server", "context", "plan")

    def __init__(
        self,
        server: Server,
        request: RequestReceived,
        context: Context | None,
        runtime: Runtime,
        plan: Invocation | None,
    ) -> None:
        self._server = server
        self._request = request
        self._runtime = runtime
        self.context = context
        self.plan = plan

    def __await__(self) -> Generator[Any, Any, Any]:
        plan = self.plan
        if plan is None:
            found = self._server.answer(self._request)
            if not isinstance(found, Invocation):
                return found
            plan = self.plan = found
        value: Any
        if plan.thread:
            value = yield from self._runtime.in_thread(partial(_called, plan, self.context)).__await__()
        elif plan.is_async:
            value = yield from plan.call(self.context).__await__()
        else:
            value = plan.call(self.context)
        return plan.result(value)


def _called(plan: Invocation, context: Context | None) -> Any:
    """In a worker thread. What comes out of it may have to go through a future, which refuses this one exception."""
    try:
        return plan.call(context)
    except StopIteration as exc:
        raise RuntimeError("the handler raised StopIteration") from exc


def surrounded(answering: Proceeding, middlewares: Sequence[Middleware]) -> Awaitable[Any]:
    """What to await for the answer, with all of `middlewares` around it."""

    context = answering.context
    assert context is not None

    def proceed(inner: int) -> Awaitable[Any]:
        if inner == len(middlewares):
            return answering
        return middlewares[inner](context, lambda: proceed(inner + 1))

    return proceed(0)
