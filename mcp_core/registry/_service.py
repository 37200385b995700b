"""A server's side of one conversation, without a runtime: which request is answered at once, what has to be run, and what
becomes of it.

Rules of this file:

1. A runtime adds three things only: it runs a `Job` in a task of its own, it makes a `Context`, and it writes the log. So
   servers on trio, asyncio or plain threads differ in nothing that a peer can see.
2. Every request is ended exactly once, also a cancelled one, or its place among those in flight would never be free.
3. Whatever a handler raises ends its call and nothing else. What was not raised for the peer is told to the log under a
   reference, and the peer learns only that.

It refuses to know how a handler is cancelled: `Job.stop` is the runtime's.
"""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Any

from mcp_core._errors import Fault, McpError, ToolError
from mcp_core._events import RequestCancelled, RequestReceived
from mcp_core.types import ErrorData

from ._errors import ResourceNotFound
from ._invocation import Invocation, single

if TYPE_CHECKING:
    from collections.abc import Callable

    from mcp_core._connection import Connection
    from mcp_core._events import Event
    from mcp_core.types import RequestId

    from ._context import Context
    from ._server import Server

__all__ = ["Job", "Service"]


class Job:
    """One handler that needs a task of its own, or a thread if `thread` is set.

    Set `stop` to what cancels that task. In the task call `start` once, await what it gives if `thread` is not set, say what
    came of it with `done` or `failed`, and in any case `dropped` last: it counts only if nothing else was said.
    """

    __slots__ = ("_invocation", "_over", "_service", "request", "stop", "thread")

    def __init__(self, service: Service, request: RequestReceived, invocation: Invocation) -> None:
        self._service = service
        self._invocation = invocation
        self.request = request
        self.thread = invocation.thread
        self._over = False
        self.stop: Callable[[], object] = _nothing

    def __repr__(self) -> str:
        return f"<Job {self.request.method.name} id={self.request.id!r}>"

    def start(self) -> Any:
        """Call the function: gives an awaitable or, for a thread, the value."""
        invocation = self._invocation
        context = self._service.context(self.request, self.thread) if invocation.wants_context else None
        return invocation.call(context)

    def done(self, value: Any) -> None:
        """The handler gave `value`: answer with it."""
        try:
            outcome = self._invocation.result(value)
        except Exception as exc:  # noqa: BLE001 - a value that cannot be sent is a fault of the handler's
            self.failed(exc)
        else:
            self._finish(outcome)

    def failed(self, exc: BaseException) -> None:
        """The handler raised `exc`: answer with what the peer may know of it."""
        self._finish(self._service.failure(self.request, self._invocation, exc))

    def dropped(self) -> None:
        """The handler was cancelled. The peer hears nothing if that was its own wish, else that the work was stopped."""
        if not self._over:
            code = self.request.peer.dialect.codes[Fault.INTERNAL]
            self._finish(ErrorData(code, "the request was cancelled"))

    def _finish(self, outcome: Any) -> None:
        self._over = True
        self._service.finish(self.request, outcome)


class Service:
    """Answers the events of `conn` as `server` declares it.

    Args:
        report: writes a fault to the log: the request, its reference, the exception.
        context: makes the `Context` of a request; the second argument tells whether it is for a worker thread. Without it
            functions that want one fail.
        reference: makes a name for a fault, best one that does not repeat; they are numbered by default.
    """

    def __init__(
        self,
        server: Server,
        conn: Connection,
        *,
        report: Callable[[RequestReceived, str, BaseException], None],
        context: Callable[[RequestReceived, bool], Context] | None = None,
        reference: Callable[[], str] | None = None,
    ) -> None:
        self._server = server
        self._conn = conn
        self.context = context or _no_context
        self._reference = reference or map(str, itertools.count(1)).__next__
        self._report = report
        self._jobs: dict[RequestId, Job] = {}

    def __repr__(self) -> str:
        return f"<Service of {self._server!r}, {len(self._jobs)} jobs>"

    @property
    def idle(self) -> bool:
        """Whether no job is under way."""
        return not self._jobs

    def take(self, event: Event) -> Job | None:
        """Act on one event, without waiting. Gives the job to run, if there is one.

        A plain `def` without `thread=True` is run here and now.
        """
        if isinstance(event, RequestReceived):
            return self._take_request(event)
        if isinstance(event, RequestCancelled):
            job = self._jobs.get(event.id)
            if job is not None:
                job.stop()
        return None

    def _take_request(self, request: RequestReceived) -> Job | None:
        try:
            plan = self._server.answer(request)
        except McpError as exc:
            self.finish(request, ErrorData(exc.code, exc.message, exc.data))
            return None
        except Exception as exc:  # noqa: BLE001 - rule 3; a fault in the author's own declarations ends up here
            self.finish(request, self._internal(request, exc))
            return None
        if not isinstance(plan, Invocation):
            self.finish(request, plan)
            return None
        if plan.is_async or plan.thread:
            job = self._jobs[request.id] = Job(self, request, plan)
            return job
        try:
            context = self.context(request, False) if plan.wants_context else None
            outcome = plan.result(plan.call(context))
        except BaseException as exc:  # noqa: BLE001 - rule 3
            outcome = self.failure(request, plan, exc)
        self.finish(request, outcome)
        return None

    def finish(self, request: RequestReceived, outcome: Any) -> None:
        """Answer `request`, as its last act."""
        self._jobs.pop(request.id, None)
        send = self._conn.send_error if isinstance(outcome, ErrorData) else self._conn.send_result
        try:
            send(request.id, outcome)
        except Exception as exc:  # noqa: BLE001 - it cannot be said, and an author's objects may fail in any way
            self._conn.send_error(request.id, self._internal(request, exc))

    def failure(self, request: RequestReceived, invocation: Invocation, exc: BaseException) -> Any:
        """What the peer gets for an exception of a handler; the log gets the rest."""
        reference = self._reference()
        try:
            outcome = invocation.failure(exc, reference)
        except Exception as worse:  # noqa: BLE001 - rule 3; its own `__str__` may fail
            return self._internal(request, worse)
        if not isinstance(single(exc), (McpError, ToolError, ResourceNotFound)):
            self._report(request, reference, exc)
        return outcome

    def _internal(self, request: RequestReceived, exc: BaseException) -> ErrorData:
        reference = self._reference()
        self._report(request, reference, exc)
        return ErrorData(
            request.peer.dialect.codes[Fault.INTERNAL], f"Internal error (reference {reference})"
        )


def _no_context(request: RequestReceived, thread: bool) -> Context:
    raise TypeError("this runtime has no Context for functions")


def _nothing() -> None:
    """What stops a job that nobody runs."""
