"""The callbacks of a client for a server that asks for input, and the responses with their results.

Until 2025-11-25 the server asks by requests of its own. In 2026-07-28 its questions are in the
result of a call, which the client then sends again with the responses (`ClientRoundTrips`).

1. Each callback runs in a task of its own, as a `CallbackJob`. A slow user delays only what waits
   for that one response.
2. A callback may refuse with an `McpError`. A server's request gets that error. In the result of a
   call, refusing a form is a response; for the other kinds the call ends with the error
   (client/sampling: no retry).
3. Any other exception is the client's fault. The server's request gets an internal error, and the
   log gets the exception; a call raises it. A `BaseException` ends the task.

Sources: client/elicitation, client/sampling and client/roots of all revisions; basic/patterns/mrtr
of 2026-07-28.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from msgspec import Struct
from msgspec.structs import replace

from mcp_core import types as t
from mcp_core._errors import ConnectionLost, Fault, McpError, RemoteProtocolError, single
from mcp_core.client._calls import CallWait
from mcp_core.client._options import roots_result
from mcp_core.protocol.input_requests._kinds import (
    check_input_request,
    check_response,
    form_schema,
    input_request_of,
    response_to_error,
)
from mcp_core.protocol.jsonrpc._unencodable import whole_text

from ._job import Job

if TYPE_CHECKING:
    from mcp_core.client._calls import CallSteps, PendingCall
    from mcp_core.client._options import CallbackOptions
    from mcp_core.client._status import ConnectionStatus
    from mcp_core.protocol.connection._connection import Connection
    from mcp_core.protocol.messages._events import RequestReceived
    from mcp_core.types import RequestId

    from .client_tasks._hosted import HostedTasks

__all__ = ["CallbackJob", "ClientCallbacks", "InputWait", "RootsWait", "ServerInitiatedRequests"]

# The code that client/sampling gives for a request that the user rejects. JSON-RPC reserves others.
_REJECTED: Final = -1
_TOO_LARGE: Final = "too many large requests at once; ask again later"
_ROOTS_LIST: Final = "roots/list"
_INTERNAL: Final = -32603  # JSON-RPC's own, in every revision


class CallbackCancelled(McpError):
    """The task of a `CallbackJob` was cancelled from outside, such as by the end of its program."""


class CallbackJob(Job):
    """A client's callback, or another wait, in a task of its own.

    The first outcome is passed to `on_end(result, error)`. `failed` raises a `BaseException` that
    isn't an `Exception`, such as `KeyboardInterrupt`.

    Args:
        start: called in the task; its awaitable gives the result.
        on_end: gets the result and None, or None and the error.
    """

    __slots__ = ("_on_end", "_start")

    def __init__(
        self,
        start: Callable[[], Awaitable[Any]],
        on_end: Callable[[Any, BaseException | None], object],
    ) -> None:
        super().__init__()
        self._start = start
        self._on_end: Callable[[Any, BaseException | None], object] | None = on_end

    def __repr__(self) -> str:
        return f"<CallbackJob, {'over' if self._on_end is None else 'under way'}>"

    async def run(self) -> Any:
        return await self._start()

    def done(self, result: Any) -> None:
        self._end(result, None)

    def failed(self, exc: BaseException) -> None:
        if not isinstance(exc, Exception):
            raise exc  # such as KeyboardInterrupt: it is meant for more than this task
        self._end(None, single(exc))

    def dropped(self) -> None:
        self._end(None, CallbackCancelled(_INTERNAL, "the callback was cancelled"))

    def abandon(self) -> None:
        """Cancel the task, and report no outcome. Do nothing if there was one."""
        if self._on_end is not None:
            self._on_end = None
            self.stop()

    def _end(self, result: Any, error: BaseException | None) -> None:
        on_end = self._on_end
        self._on_end = None
        if on_end is not None:
            on_end(result, error)


class _EndOfConnection(CallWait):
    """A wait that ends with the connection, as all calls do. `register` makes it one of them."""

    def __init__(self, register: Callable[[PendingCall[Any]], None]) -> None:
        self._register = register

    def begin(self, call: PendingCall[Any]) -> None:
        self._register(call)

    def stop(self) -> None:
        """Do nothing: the call unregisters itself."""


def wait_for_end(
    status: ConnectionStatus, register: Callable[[PendingCall[Any]], None]
) -> CallSteps[ConnectionLost]:
    """Wait until the connection with this `status` ends, and return why. Nothing is sent."""
    lost = ConnectionLost("the connection is closed")
    try:
        status.require_alive()
        yield _EndOfConnection(register)
    except ConnectionLost as exc:
        lost = exc
    return lost


class ClientCallbacks:
    """The callbacks that respond to a server's requests for input."""

    __slots__ = ("_on_roots", "_with_params")

    def __init__(self, options: CallbackOptions) -> None:
        self._on_roots = options.get("on_roots")
        self._with_params: dict[type, Callable[[Any], Any] | None] = {
            t.ElicitRequest: options.get("on_elicit"),
            t.CreateMessageRequest: options.get("on_sample"),
        }

    def __repr__(self) -> str:
        kinds = [
            kind.__name__ for kind, callback in self._with_params.items() if callback is not None
        ]
        if self._on_roots is not None:
            kinds.append(t.ListRootsRequest.__name__)
        return f"<ClientCallbacks for {', '.join(kinds) or 'nothing'}>"

    async def respond(self, request: t.InputRequest) -> t.Result:
        """Call the callback for a server's request, and return its response.

        Raises:
            McpError: the callback refuses.
            LocalProtocolError: the callback returned something that isn't a response to `request`.
            Exception: the callback raised it.
        """
        answer = self._call(request)
        if isinstance(answer, Awaitable):
            answer = await answer
        return check_response(request, _to_result(request, answer))

    async def respond_in_retry(self, request: t.InputRequest) -> t.Result:
        """Respond to a request in a call's result. Here a refused form is a response."""
        try:
            return await self.respond(request)
        except Exception as exc:
            rejection = single(exc)
            if isinstance(rejection, McpError):
                return response_to_error(request, rejection)
            raise

    def _call(self, request: t.InputRequest) -> Any:
        """Call the callback. What it returns may be an awaitable."""
        if isinstance(request, t.ListRootsRequest):
            return self._on_roots() if callable(self._on_roots) else self._on_roots
        callback = self._with_params[type(request)]
        assert callback is not None, "a request for an undeclared capability is rejected earlier"
        return callback(request.params)


async def _call_back(
    method: str, callback: Callable[[dict[str, Any]], Any], params: dict[str, Any]
) -> Struct | Mapping[str, Any]:
    """Call the callback for a request of an extension, and return its result.

    Raises:
        TypeError: what it returned isn't the result of a request.
        Exception: the callback raised it.
    """
    answer = callback(params)
    if isinstance(answer, Awaitable):
        answer = await answer
    if answer is None:
        return t.EmptyResult()
    if not isinstance(answer, Struct | Mapping):
        kind = type(answer).__name__
        raise TypeError(f"on_request for {method} returns a dict, a Struct or None, not {kind}")
    return answer


def _to_result(request: t.InputRequest, answer: Any) -> Any:
    """Convert a callback's return value to the result for `request`."""
    if isinstance(request, t.ElicitRequest):
        if answer is None:
            return t.ElicitResult(action="cancel")
        if isinstance(answer, Mapping):
            return t.ElicitResult(action="accept", content={**_defaults(request), **answer})
    elif isinstance(request, t.CreateMessageRequest):
        if answer is None:
            raise McpError(_REJECTED, "the user rejected the request")
    else:
        return roots_result(answer)
    return answer


def _defaults(request: t.ElicitRequest) -> dict[str, t.ElicitValue]:
    if request.params.mode == "url":
        return {}
    fields = form_schema(request).properties
    return {name: field.default for name, field in fields.items() if field.default is not None}


class ServerInitiatedRequests:
    """The requests that a stateful server has sent to the client, and their callbacks.

    Args:
        conn: the connection on which they arrive.
        callbacks: what responds to them.
        start_job: runs a `CallbackJob` in a task.
        pause_timeouts: called with 1 when the server begins to wait for a response, and with -1
            when it has one.
        report: logs an error that ends no call.
        tasks: runs requests as tasks, if the server asks for that (2025-11-25).
        on_request: by method, the callbacks for requests of extensions.

    Attributes:
        roots_answered: True if the server has requested the roots, and has the response.
    """

    __slots__ = (
        "_callbacks",
        "_conn",
        "_jobs",
        "_on_request",
        "_pause_timeouts",
        "_report",
        "_roots_waits",
        "_size",
        "_start_job",
        "_tasks",
        "roots_answered",
    )

    def __init__(
        self,
        conn: Connection,
        callbacks: ClientCallbacks,
        start_job: Callable[[CallbackJob], object],
        pause_timeouts: Callable[[int], object],
        report: Callable[[str, BaseException], object],
        tasks: HostedTasks,
        on_request: Mapping[str, Callable[[dict[str, Any]], Any]],
    ) -> None:
        self._conn = conn
        self._on_request = on_request
        self._tasks = tasks
        self._callbacks = callbacks
        self._start_job = start_job
        self._pause_timeouts = pause_timeouts
        self._report = report
        self._jobs: dict[RequestId, CallbackJob] = {}
        self._size = 0  # bytes of the requests whose callbacks run
        self.roots_answered = False
        self._roots_waits: list[PendingCall[Any]] = []

    def __repr__(self) -> str:
        return f"<ServerInitiatedRequests: {len(self._jobs)} on {self._conn!r}>"

    def handle_request(self, event: RequestReceived) -> None:
        """Start the callback for a request.

        Reject a request that no capability covers. Reject one, too, if it and the running ones have
        more bytes together than one message may have: a user is slow, and the server may send many.
        """
        if self._tasks.handle_request(event):
            return
        size = len(event.raw)
        if self._jobs and self._size + size > self._conn.config.limits.message:
            code = event.peer.dialect.codes[Fault.BUSY]
            self._conn.send_error(event.id, t.ErrorData(code, _TOO_LARGE))
            return
        callback = self._on_request.get(event.method.name)
        if callback is not None:
            self._start(event, partial(_call_back, event.method.name, callback, event.params))
            return
        request = input_request_of(event.method.name, event.params)
        try:
            check_input_request(request, self._conn.config.capabilities)
        except RemoteProtocolError as exc:
            code = event.peer.dialect.codes[exc.fault]
            self._conn.send_error(event.id, t.ErrorData(code, str(exc)))
            return
        if self._tasks.wants_task(event):
            self._start_task(event, request)
            return
        self._start(event, partial(self._callbacks.respond, request))

    def _start(self, event: RequestReceived, start: Callable[[], Awaitable[Any]]) -> None:
        """Run a callback, whose result is the response to a request."""
        job = CallbackJob(start, partial(self._respond, event))
        self._jobs[event.id] = job
        self._size += len(event.raw)
        self._pause_timeouts(1)
        self._start_job(job)

    def wait_for_roots(self, register: Callable[[PendingCall[Any]], object]) -> RootsWait:
        """Return a wait until the server has requested the roots, and has the response.

        `register` gets the call that waits.
        """
        return RootsWait(self._roots_waits, register)

    def _start_task(self, event: RequestReceived, request: t.InputRequest) -> None:
        """Start the callback for a request that runs as a task."""
        task_id = ""

        def on_end(result: Any, error: BaseException | None) -> None:
            self._size -= len(event.raw)
            self._pause_timeouts(-1)
            self._tasks.finish(task_id, result, self._error_of(event, error))

        job = CallbackJob(partial(self._callbacks.respond, request), on_end)
        record = self._tasks.start(event, job)
        if record is not None:
            task_id = record.id
            self._size += len(event.raw)
            self._pause_timeouts(1)
            self._start_job(job)

    def cancel(self, id: RequestId) -> None:
        """Cancel the callback: the server has cancelled its request."""
        if id in self._jobs:
            self._jobs[id].stop()
        else:
            self._tasks.cancel_request(id)

    def _respond(
        self, event: RequestReceived, result: t.Result, error: BaseException | None
    ) -> None:
        """Send the response, or the error that stands for it."""
        del self._jobs[event.id]
        self._size -= len(event.raw)
        self._pause_timeouts(-1)
        self._send_response(event, result, error)
        if event.method.name == _ROOTS_LIST:
            self.roots_answered = True
            for call in list(self._roots_waits):
                call.end(None, None)

    def _send_response(
        self, event: RequestReceived, result: t.Result, error: BaseException | None
    ) -> None:
        found = self._error_of(event, error)
        try:
            if found is None:
                self._conn.send_result(event.id, _related(event, result))
            else:
                self._conn.send_error(event.id, found)
        except Exception as exc:  # noqa: BLE001 - encoding a user's object may raise anything
            self._conn.send_error(event.id, self._internal_error(event, exc))

    def _error_of(self, event: RequestReceived, error: BaseException | None) -> t.ErrorData | None:
        """Return the JSON-RPC error for a callback's exception, None without an exception."""
        if error is None:
            return None
        if isinstance(error, McpError):
            return t.ErrorData(error.code, whole_text(error.message), error.data)
        return self._internal_error(event, error)

    def _internal_error(self, event: RequestReceived, error: BaseException) -> t.ErrorData:
        self._report(f"{event.method.name} could not be answered", error)
        return t.ErrorData(event.peer.dialect.codes[Fault.INTERNAL], "Internal error")


def _related(event: RequestReceived, result: t.Result) -> t.Result:
    """Add the id of the server's task that needs the result, if any (2025-11-25, TSK-17)."""
    if not isinstance(event.params, t.RequestParams):
        return result  # of an extension
    task = event.params.meta.related_task if event.params.meta is not None else None
    if task is None or event.peer.dialect.tasks != "requested":
        return result
    return replace(
        result, meta={**(result.meta or {}), t.META_RELATED_TASK: {"taskId": task.task_id}}
    )


class RootsWait(CallWait):
    """A call's wait until the server has requested the roots.

    Args:
        waits: the calls that wait for it.
        register: gets the call, so that the end of the connection ends it.
    """

    name = "the server's roots/list"

    def __init__(
        self, waits: list[PendingCall[Any]], register: Callable[[PendingCall[Any]], object]
    ) -> None:
        self._waits = waits
        self._register = register
        self._call: PendingCall[Any]

    def begin(self, call: PendingCall[Any]) -> None:
        self._call = call
        self._register(call)
        self._waits.append(call)

    def stop(self) -> None:
        self._waits.remove(self._call)


class InputWait(CallWait):
    """A call's wait for the client's own input, before the call is sent again.

    All of `work` runs side by side, and its results are passed on under the same keys. The first
    failure ends the call and cancels the rest.
    """

    pauses_timeout = True

    def __init__(
        self,
        start_job: Callable[[CallbackJob], object],
        work: Mapping[str, Callable[[], Awaitable[Any]]],
    ) -> None:
        self._start_job = start_job
        self._work = work
        self._results: dict[str, Any] = {}
        self._jobs: list[CallbackJob] = []

    def __repr__(self) -> str:
        return f"<InputWait, {len(self._results)} of {len(self._work)} results>"

    def begin(self, call: PendingCall[Any]) -> None:
        for key, start in self._work.items():
            self._jobs.append(CallbackJob(start, partial(self._on_end, call, key)))
        for job in self._jobs:
            self._start_job(job)

    def stop(self) -> None:
        for job in self._jobs:
            job.abandon()

    def _on_end(
        self, call: PendingCall[Any], key: str, result: Any, error: BaseException | None
    ) -> None:
        self._results[key] = result
        if error is not None:
            call.end(None, error)
        elif len(self._results) == len(self._work):
            call.end(self._results, None)
