"""Run a request's handler with middleware around it, and turn its outcome into the response.

1. The first declared middleware is the outermost. Arguments are read, and handlers looked up,
   inside of all of them: a client that a middleware rejects learns nothing about what exists.
2. A server without middleware doesn't come here for a plain `def`, which needs no task.
3. A handler that asks its client for input runs again with the response, and the middleware sees
   each run. In 2026-07-28 a run ends by raising `NeedInput`. It isn't an `Exception`, so a
   middleware that catches exceptions doesn't stop it.
4. A tool that the client's model uses while a handler samples is a part of that handler, not a
   request: there is no middleware around it. The tool's own limits hold.
5. An exception that isn't meant for the peer is logged under a reference, and the peer gets only
   the reference. If a handler asked for input in the result (2026-07-28) and hasn't received it,
   that wins over all that it returned or raised.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, Final, TypeVar

from mcp_core._errors import Fault, McpError, ToolError, single
from mcp_core.protocol.jsonrpc._unencodable import whole_text
from mcp_core.protocol.messages._rejection import rate_limited
from mcp_core.registry._context import collector_of
from mcp_core.registry._errors import ResourceNotFound, UrlElicitationRequired
from mcp_core.registry._visibility import ADMITTED
from mcp_core.registry.entries._invocation import Invocation, MountedCall
from mcp_core.registry.entries._tools import failed_internally
from mcp_core.registry.functions._content import check_result
from mcp_core.types import (
    CallToolResult,
    ErrorData,
    InputRequiredResult,
    ReadResourceResult,
    Result,
)

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence

    from mcp_core.protocol.messages._events import RequestReceived
    from mcp_core.registry._context import Context
    from mcp_core.registry._input_requests import InputCollector, RequestHost, TaskInput
    from mcp_core.registry._sampling_tools import SampledConversation, ToolSampling, ToolUse
    from mcp_core.registry._server import Middleware, Server

    from ._runtime import Runtime

__all__ = [
    "MAX_BLOCKING",
    "HandlerCall",
    "count_call",
    "internal_error",
    "outcome_of",
    "outcome_of_error",
    "read_resource",
    "report_blocking",
    "run_middleware",
    "run_sampling",
    "run_task_input",
    "unsent_outcome",
]

T = TypeVar("T")

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

    `given` is what was looked up before, None to look it up inside of the middleware. If it is an
    `Invocation` whose function has no context parameter, `context` may be None. `before_handler` is
    awaited inside the middleware, before the function is called. An `Invocation` that wasn't given
    is counted when it is found. With `again` the call was made before: it isn't counted, and what
    it names is found although it may be hidden now. `invocation` is None until it is found.
    """

    __slots__ = (
        "_again",
        "_before_handler",
        "_collector",
        "_given",
        "_is_counted",
        "context",
        "invocation",
        "runtime",
    )

    def __init__(
        self,
        collector: InputCollector,
        context: Context | None,
        runtime: Runtime,
        given: Invocation | MountedCall | None,
        before_handler: Callable[[Invocation], Awaitable[object]] | None = None,
        *,
        again: bool = False,
    ) -> None:
        self._collector = collector
        self._again = again
        self._before_handler = before_handler
        self._given = given
        self.runtime = runtime
        self.context = context
        self.invocation = given if isinstance(given, Invocation) else None
        self._is_counted = again or self.invocation is not None

    async def run(
        self, prepare: Callable[[], Any] | None = None, context: Context | None = None
    ) -> Any:
        """Return the result to send, or raise what the handler raised. May be awaited again.

        For a handler of a mounted server, `prepare` looks up its call, and `context` is its own.
        """
        if prepare is not None:
            found = prepare()
        else:
            context = self.context
            found = self._given or self._look_up()
        if isinstance(found, MountedCall):
            context = found.enter(context)
            handle = partial(self.run, found.prepare, context)
            result = await run_middleware(handle, context, found.middlewares)
            check_result(result)
            return result
        if not isinstance(found, Invocation):
            return found
        self.invocation = found
        if not self._is_counted:
            error = count_call(found, self._collector.host)
            if error is not None:
                raise error
            self._is_counted = True  # it may run again, for the same request
        if self._before_handler is not None:
            await self._before_handler(found)
        server = self._collector.host.server
        return await _run_invocation(found, context, server, self.runtime)

    def _look_up(self) -> Any:
        collector = self._collector
        host = collector.host
        return host.server.answer(collector.request, ADMITTED if self._again else host)


def count_call(invocation: Invocation, host: RequestHost) -> McpError | None:
    """Count the call `invocation` for the client of `host`.

    Return None, or the error if the client has made too many.
    """
    limits = invocation.limits
    if limits is None or limits.buckets is None:
        return None
    # The time now, not of the connection's last input: a middleware may have waited since.
    wait = limits.buckets.get(host.rate_key).take(host.runtime.shared_clock())
    if not wait:
        return None
    dialect = invocation.dialect
    rejection = rate_limited(wait, dialect)
    return McpError(dialect.codes[rejection.fault], rejection.message, rejection.data)


async def _run_invocation(
    invocation: Invocation,
    context: Context | None,
    server: Server,
    runtime: Runtime,
    *,
    is_limited: bool = False,
) -> Any:
    """Return the result of an invocation, or raise what the function raised.

    `is_limited` is True inside of its own time limit.
    """
    limits = invocation.limits
    if limits is not None and limits.timeout is not None and not is_limited:
        from ._time_limit import run_in_time  # on first use: few tools have a limit

        run = partial(_run_invocation, invocation, context, server, runtime, is_limited=True)
        return await run_in_time(run, limits.timeout, invocation, context, server, runtime)
    value: Any
    if invocation.thread:
        (value,) = await runtime.in_thread(partial(_call_in_thread, invocation, context))
    else:
        started = runtime.monotonic()
        value = invocation.call(context)
        if not invocation.is_async and (seconds := runtime.monotonic() - started) > MAX_BLOCKING:
            report_blocking(server, runtime, invocation, seconds)
    # Also of a plain `def`, such as the wrapper of an author's decorator around an `async def`. A
    # wrapper that is async itself may return one more.
    while hasattr(value, "__await__"):
        value = await value
    return invocation.result(value)


def _call_in_thread(invocation: Invocation, context: Context | None) -> tuple[Any]:
    try:
        return (invocation.call(context),)  # trio takes no coroutine from a thread as it is
    except StopIteration as exc:
        # The exception may have to pass a future, and futures refuse this one.
        raise RuntimeError("the handler raised StopIteration") from exc


def run_middleware(
    handle: Callable[[], Awaitable[Any]], context: Context, middlewares: Sequence[Middleware]
) -> Awaitable[Any]:
    """Return an awaitable of the result of `handle`, with all of `middlewares` around it."""

    def proceed(index: int) -> Awaitable[Any]:
        if index == len(middlewares):
            return handle()
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


async def read_resource(context: Context, uri: str, runtime: Runtime) -> ReadResourceResult:
    """Read a resource of the server of `context`.

    Raises:
        Exception: as documented by `Context.read_resource`.
    """
    server = context.server
    invocation = server.prepare_read(context, uri)
    try:
        result = await _run_invocation(invocation, context, server, runtime)
    except ResourceNotFound as exc:
        code = context.peer.dialect.codes[Fault.RESOURCE_NOT_FOUND]
        raise McpError(code, whole_text(str(exc)), {"uri": uri}) from None
    if not isinstance(result, ReadResourceResult):
        raise TypeError(
            f"{invocation.function.label} returned {type(result).__name__}: read by a handler, it"
            " has to await what it asks its client, as `context.elicit` does"
        )
    return result


async def run_task_input(task_input: TaskInput[T]) -> T:
    """Request input of a task's client, unless it has responded before."""
    if task_input.requests:
        with task_input.paused():
            responses = await task_input.task.request_input(task_input.requests)
        task_input.receive(responses)
    return task_input.result()


async def _run_tool(use: ToolUse, sampling: ToolSampling, runtime: Runtime) -> None:
    context = sampling.context
    try:
        call = use.prepare()
        if isinstance(call, Invocation):
            error = count_call(call, collector_of(context).host)
            if error is not None:
                raise error
            call = await _run_invocation(call, context, context.server, runtime)
        use.done(call)
    except Exception as exc:  # noqa: BLE001 - a tool ends its own use only; the loop decides
        reference = use.failed(exc, runtime.reference)
        if reference is not None:
            runtime.report(sampling.request, reference, exc)


def outcome_of(
    runtime: Runtime, collector: InputCollector, invocation: Invocation | None, result: Any
) -> Any:
    """Return what to send after a handler returned `result`.

    `invocation` is the call that was made, or None for a method without calls.
    """
    returned = result if isinstance(result, InputRequiredResult) else None
    if returned is None and not collector.unanswered:
        return result
    try:
        return collector.required(returned)
    except Exception as exc:  # noqa: BLE001 - rule 5
        return _outcome_of_fault(runtime, collector.request, invocation, exc)


def outcome_of_error(
    runtime: Runtime, collector: InputCollector, invocation: Invocation | None, exc: BaseException
) -> Any:
    """Return what to send after a handler or a middleware raised `exc`.

    `invocation` is as for `outcome_of`.
    """
    if collector.unanswered:
        return outcome_of(runtime, collector, invocation, None)
    error = single(exc)
    if error is collector.no_response_error:
        # The client closed the connection while it was asked. That isn't the handler's fault, so
        # nothing is logged.
        code = collector.request.peer.dialect.codes[Fault.INTERNAL]
        return ErrorData(code, "the connection closed while the client was asked for input")
    if not isinstance(error, UrlElicitationRequired):
        return _outcome_of_fault(runtime, collector.request, invocation, exc)
    try:
        response = collector.url_elicitation_response(error)
        return outcome_of(runtime, collector, invocation, response)
    except Exception as worse:  # noqa: BLE001 - rule 5
        return _outcome_of_fault(runtime, collector.request, invocation, worse)


def _outcome_of_fault(
    runtime: Runtime, request: RequestReceived, invocation: Invocation | None, exc: BaseException
) -> Any:
    """Log an exception, and return what the peer gets for it."""
    reference = runtime.reference()
    try:
        error = single(exc)
        if invocation is not None:
            outcome = invocation.exception_response(exc, reference)
        elif isinstance(error, McpError):
            outcome = ErrorData(error.code, whole_text(error.message), error.data)
        else:
            outcome = _error_with_reference(request, reference)
    except Exception as worse:  # noqa: BLE001 - rule 5; the exception's own `__str__` may raise
        return internal_error(runtime, request, worse)
    if not isinstance(error, (McpError, ToolError, ResourceNotFound)):
        from mcp_core._other_names import note_field_name

        note_field_name(error)
        runtime.report(request, reference, exc)
    return outcome


def internal_error(runtime: Runtime, request: RequestReceived, exc: BaseException) -> ErrorData:
    """Log an exception, and return an error that shows the peer nothing but its reference."""
    reference = runtime.reference()
    runtime.report(request, reference, exc)
    return _error_with_reference(request, reference)


def unsent_outcome(
    runtime: Runtime, request: RequestReceived, outcome: Any, exc: Exception
) -> CallToolResult | ErrorData:
    """Log why `outcome` could not be encoded, and return what to send in its place.

    A tool has a result for that, which its model can read. An error keeps its code and text.
    """
    reference = runtime.reference()
    runtime.report(request, reference, exc)
    if isinstance(outcome, ErrorData) and type(outcome.code) is int:
        return ErrorData(outcome.code, whole_text(str(outcome.message)))
    if isinstance(outcome, Result) and request.method.name == "tools/call":
        return failed_internally(reference)
    return _error_with_reference(request, reference)


def _error_with_reference(request: RequestReceived, reference: str) -> ErrorData:
    code = request.peer.dialect.codes[Fault.INTERNAL]
    return ErrorData(code, f"Internal error (reference {reference})")
