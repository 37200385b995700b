"""A server's side of one conversation, without a runtime: which request is answered at once, what has to be run, and what
becomes of it.

Rules of this file:

1. A runtime runs a `Job` in a task of its own, and adds what `Runtime` says. So servers on trio, asyncio or plain threads
   differ in nothing that a peer can see.
2. Every request is ended exactly once, also a cancelled one, or its place among those in flight would never be free.
3. Whatever a handler raises ends its call and nothing else. What was not raised for the peer is told to the log under a
   reference, and the peer learns only that.

It refuses to know how a handler is cancelled: `Job.stop` is the runtime's.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from mcp_core._errors import Fault, McpError, ToolError
from mcp_core._events import RequestCancelled, RequestReceived
from mcp_core._state import State
from mcp_core.types import ErrorData

from ._context import Context
from ._errors import ResourceNotFound
from ._invocation import Invocation, single
from ._middleware import Proceeding, surrounded

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable

    from mcp_core._connection import Connection
    from mcp_core._events import Event
    from mcp_core._subscriptions import Change
    from mcp_core.types import RequestId

    from ._runtime import Runtime
    from ._server import Server

__all__ = ["Job", "Service"]


class Job:
    """One request that needs a task of its own.

    Set `stop` to what cancels that task. In the task await what `start` gives, once; say what came of it with `done` or
    `failed`; and in any case `dropped` last: it counts only if nothing else was said.
    """

    __slots__ = ("_answering", "_over", "_service", "request", "stop")

    def __init__(self, service: Service, request: RequestReceived, plan: Invocation | None) -> None:
        self._service = service
        context = service.context(request) if plan is None or plan.wants_context else None
        self._answering = Proceeding(service.server, request, context, service.runtime, plan)
        self.request = request
        self._over = False
        self.stop: Callable[[], object] = _nothing

    def __repr__(self) -> str:
        return f"<Job {self.request.method.name} id={self.request.id!r}>"

    def start(self) -> Awaitable[Any]:
        """What to await: it gives the answer, or raises what the handler raised."""
        middlewares = self._service.server.middlewares
        return surrounded(self._answering, middlewares) if middlewares else self._answering

    def done(self, answer: Any) -> None:
        """The handler's answer is here: send it."""
        self._finish(answer)

    def failed(self, exc: BaseException) -> None:
        """The handler raised `exc`: answer with what the peer may know of it."""
        self._finish(self._service.failure(self.request, self._answering.plan, exc))

    def dropped(self) -> None:
        """The handler was cancelled. The peer hears nothing if that was its own wish, else that the work was stopped."""
        if not self._over:
            fault, why = Fault.INTERNAL, "the request was cancelled"
            if self._service.conn.state is State.CLOSING:
                fault, why = Fault.BUSY, "the server is being shut down"
            self._finish(ErrorData(self.request.peer.dialect.codes[fault], why))

    def _finish(self, outcome: Any) -> None:
        self._over = True
        self._service.finish(self.request, outcome)


class Service:
    """Answers the events of `conn` as `server` declares it.

    `lifespan` is the value of the server's lifespan. To be closed at the end of the conversation.
    """

    def __init__(self, server: Server, conn: Connection, runtime: Runtime, lifespan: Any = None) -> None:
        self.server = server
        self.conn = conn
        self.runtime = runtime
        self.lifespan = lifespan
        self._jobs: dict[RequestId, Job] = {}
        self._unsaid: dict[Change, None] = {}
        server.attach(self)

    def __repr__(self) -> str:
        return f"<Service of {self.server!r}, {len(self._jobs)} jobs>"

    def context(self, request: RequestReceived) -> Context:
        """What the function that answers `request` may know and say."""
        return Context(request, self.server, self.conn, self.runtime, self.lifespan)

    @property
    def idle(self) -> bool:
        """Whether no job is under way."""
        return not self._jobs

    def changed(self, told: Iterable[Change]) -> None:
        """Something has changed. From any thread; the client is told soon, if it wants to hear of it."""
        for change in told:
            self._unsaid[change] = None
        self.runtime.soon(self._say_changes)

    def _say_changes(self) -> None:
        # Others may add to it meanwhile: each step is one that no thread can come in between.
        while self._unsaid:
            change, _ = self._unsaid.popitem()
            self.conn.send_change(change)
        self.runtime.pump()

    def close(self) -> None:
        """The conversation is over: the server has nothing to tell it any more."""
        self.server.detach(self)

    def stop(self) -> None:
        """Stop all jobs. Each of them still says that it was `dropped`, or what else came of it."""
        for job in list(self._jobs.values()):
            job.stop()

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
        if self.server.middlewares:
            return self._job(request, None)
        try:
            plan = self.server.answer(request)
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
            return self._job(request, plan)
        try:
            context = self.context(request) if plan.wants_context else None
            outcome = plan.result(plan.call(context))
        except BaseException as exc:  # noqa: BLE001 - rule 3
            outcome = self.failure(request, plan, exc)
        self.finish(request, outcome)
        return None

    def _job(self, request: RequestReceived, plan: Invocation | None) -> Job:
        job = self._jobs[request.id] = Job(self, request, plan)
        return job

    def finish(self, request: RequestReceived, outcome: Any) -> None:
        """Answer `request`, as its last act."""
        self._jobs.pop(request.id, None)
        send = self.conn.send_error if isinstance(outcome, ErrorData) else self.conn.send_result
        try:
            send(request.id, outcome)
        except Exception as exc:  # noqa: BLE001 - it cannot be said, and an author's objects may fail in any way
            self.conn.send_error(request.id, self._internal(request, exc))

    def failure(self, request: RequestReceived, plan: Invocation | None, exc: BaseException) -> Any:
        """What the peer gets for an exception of a handler or a middleware; the log gets the rest. `plan` is the call that was
        made, None if none was."""
        reference = self.runtime.reference()
        try:
            told = single(exc)
            if plan is not None:
                outcome = plan.failure(exc, reference)
            elif isinstance(told, McpError):
                outcome = ErrorData(told.code, told.message, told.data)
            else:
                outcome = _hidden(request, reference)
        except Exception as worse:  # noqa: BLE001 - rule 3; its own `__str__` may fail
            return self._internal(request, worse)
        if not isinstance(told, (McpError, ToolError, ResourceNotFound)):
            self.runtime.report(request, reference, exc)
        return outcome

    def _internal(self, request: RequestReceived, exc: BaseException) -> ErrorData:
        reference = self.runtime.reference()
        self.runtime.report(request, reference, exc)
        return _hidden(request, reference)


def _hidden(request: RequestReceived, reference: str) -> ErrorData:
    return ErrorData(request.peer.dialect.codes[Fault.INTERNAL], f"Internal error (reference {reference})")


def _nothing() -> None:
    """What stops a job that nobody runs."""
