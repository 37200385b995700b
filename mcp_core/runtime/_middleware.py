"""Run the handler of a request, with the server's middleware around it.

1. The first declared middleware is the outermost. Arguments are read, and handlers looked up,
   inside of all of them: a client that a middleware rejects learns nothing about what exists.
2. A server without middleware does not come here for a plain `def`, which needs no task.
3. A handler that asks its client for input runs again with the response, and the middleware sees
   each run. In 2026-07-28 a run ends by raising `NeedInput`. It is no `Exception`, so a middleware
   that catches exceptions does not stop it.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, Final

from mcp_core.registry.entries._invocation import Invocation

if TYPE_CHECKING:
    from collections.abc import Awaitable, Sequence

    from mcp_core.messages._events import RequestReceived
    from mcp_core.registry._context import Context
    from mcp_core.registry._server import Middleware, Server

    from ._runtime import Runtime

__all__ = ["MAX_BLOCKING", "HandlerCall", "report_blocking", "run_middleware"]

# Seconds that a plain `def` may take in the event loop. Meanwhile all other clients wait, and 50 ms
# is a delay that people notice.
MAX_BLOCKING: Final = 0.05


def report_blocking(
    server: Server, runtime: Runtime, invocation: Invocation, seconds: float
) -> None:
    """Log, once for each function, that a plain `def` has blocked the event loop for `seconds`."""
    if server.is_first_report(invocation.function.label):
        runtime.warn(
            f"{invocation.function.label} blocked all clients for {seconds:.2f} s; declare it "
            "with thread=True, or as an `async def` that awaits what takes long"
        )


class HandlerCall:
    """The call of the handler of one request.

    `invocation` is None until it is looked up. If it is given from the start, and the function has
    no context parameter, `context` may be None.
    """

    __slots__ = ("_request", "_runtime", "_server", "context", "invocation")

    def __init__(
        self,
        server: Server,
        request: RequestReceived,
        context: Context | None,
        runtime: Runtime,
        invocation: Invocation | None,
    ) -> None:
        self._server = server
        self._request = request
        self._runtime = runtime
        self.context = context
        self.invocation = invocation

    async def run(self) -> Any:
        """Return the result to send, or raise what the handler raised. May be awaited again."""
        invocation = self.invocation
        if invocation is None:
            found = self._server.answer(self._request)
            if not isinstance(found, Invocation):
                return found
            invocation = self.invocation = found
        value: Any
        if invocation.thread:
            value = await self._runtime.in_thread(
                partial(_call_in_thread, invocation, self.context)
            )
        else:
            started = self._runtime.monotonic()
            value = invocation.call(self.context)
            if invocation.is_async:
                value = await value
            elif (seconds := self._runtime.monotonic() - started) > MAX_BLOCKING:
                report_blocking(self._server, self._runtime, invocation, seconds)
        return invocation.result(value)


def _call_in_thread(invocation: Invocation, context: Context | None) -> Any:
    try:
        return invocation.call(context)
    except StopIteration as exc:
        # The exception may have to pass a future, and futures refuse this one.
        raise RuntimeError("the handler raised StopIteration") from exc


def run_middleware(call: HandlerCall, middlewares: Sequence[Middleware]) -> Awaitable[Any]:
    """Return an awaitable of the result of `call`, with all of `middlewares` around it."""
    context = call.context
    assert context is not None

    def proceed(index: int) -> Awaitable[Any]:
        if index == len(middlewares):
            return call.run()
        return middlewares[index](context, lambda: proceed(index + 1))

    return proceed(0)
