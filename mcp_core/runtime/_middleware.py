"""Run the handler of a request with middleware around it, and the tools of its sampling without.

1. The first declared middleware is the outermost. Arguments are read, and handlers looked up,
   inside of all of them: a client that a middleware rejects learns nothing about what exists.
2. A server without middleware does not come here for a plain `def`, which needs no task.
3. A handler that asks its client for input runs again with the response, and the middleware sees
   each run. In 2026-07-28 a run ends by raising `NeedInput`. It is no `Exception`, so a middleware
   that catches exceptions does not stop it.
4. A tool that the client's model uses while a handler samples is a part of that handler, not a
   request: there is no middleware around it.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, Final

from mcp_core.registry.entries._invocation import Invocation

if TYPE_CHECKING:
    from collections.abc import Awaitable, Sequence

    from mcp_core.messages._events import RequestReceived
    from mcp_core.registry._context import Context
    from mcp_core.registry._sampling_tools import SampledConversation, ToolSampling, ToolUse
    from mcp_core.registry._server import Middleware, Server

    from ._runtime import Runtime

__all__ = ["MAX_BLOCKING", "HandlerCall", "report_blocking", "run_middleware", "run_sampling"]

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
        return await _run_invocation(invocation, self.context, self._server, self._runtime)


async def _run_invocation(
    invocation: Invocation, context: Context | None, server: Server, runtime: Runtime
) -> Any:
    """Return the result of an invocation, or raise what the function raised."""
    value: Any
    if invocation.thread:
        value = await runtime.in_thread(partial(_call_in_thread, invocation, context))
    else:
        started = runtime.monotonic()
        value = invocation.call(context)
        if invocation.is_async:
            value = await value
        elif (seconds := runtime.monotonic() - started) > MAX_BLOCKING:
            report_blocking(server, runtime, invocation, seconds)
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


async def run_sampling(sampling: ToolSampling, runtime: Runtime) -> SampledConversation:
    """Ask the client's model, and run the tools that it uses, until its message uses none.

    Raises:
        Exception: as documented by `Context.sample_with_tools`.
    """
    while True:
        for use in sampling.receive(await sampling.ask()):
            await _run_tool(use, sampling, runtime)
        if sampling.conversation is not None:
            return sampling.conversation


async def _run_tool(use: ToolUse, sampling: ToolSampling, runtime: Runtime) -> None:
    context = sampling.context
    try:
        call = use.prepare()
        if isinstance(call, Invocation):
            call = await _run_invocation(call, context, context.server, runtime)
        use.done(call)
    except Exception as exc:  # noqa: BLE001 - a tool ends its own use only; the loop decides
        reference = use.failed(exc, runtime.reference)
        if reference is not None:
            runtime.report(sampling.request, reference, exc)
