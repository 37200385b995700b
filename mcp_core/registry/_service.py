"""A server's side of one conversation, without a runtime: which request is answered at once, what has to be run, and what
becomes of it.

Rules of this file:

1. A runtime runs a `Job` in a task of its own, and adds what `Runtime` says. So servers on trio, asyncio or plain threads
   differ in nothing that a peer can see.
2. Every request is ended exactly once, also a cancelled one, or its place among those in flight would never be free.
3. Whatever a handler raises ends its call and nothing else. What was not raised for the peer is told to the log under a
   reference, and the peer learns only that.
4. What a request asked of its client, and was not answered, wins over whatever else came of its handler.

It refuses to know how a handler is cancelled: `Job.stop` is the runtime's.
"""

from __future__ import annotations

from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from mcp_core._calls import deliver
from mcp_core._errors import Fault, LocalProtocolError, McpError, ToolError, single
from mcp_core._events import ConnectionClosed, RequestCancelled, RequestReceived
from mcp_core._seal import BadState
from mcp_core._state import State
from mcp_core.types import ElicitationCompleteParams, ErrorData, InputRequiredResult

from ._asking import Asking
from ._context import Context
from ._errors import ResourceNotFound, UrlElicitationRequired
from ._invocation import Invocation
from ._middleware import Proceeding, surrounded

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterable

    from mcp_core._connection import Connection
    from mcp_core._events import Event
    from mcp_core._subscriptions import Change
    from mcp_core.types import RequestId

    from ._runtime import Runtime
    from ._server import Server

__all__ = ["Job", "Service"]

_VISITED: Final = "notifications/elicitation/complete"
# Of one conversation. Who is asked to visit more is not told of the oldest that he may go on, and asks again by himself.
_MOST_PAGES: Final = 1_000


class Job:
    """One request that needs a task of its own.

    Set `stop` to what cancels that task. In the task await the job, once; say what came of it with `done` or `failed`; and in any
    case `dropped` last: it counts only if nothing else was said.
    """

    __slots__ = ("_answering", "_over", "_returned", "_service", "asking", "request", "stop")

    def __init__(
        self,
        service: Service,
        asking: Asking,
        plan: Invocation | None,
        returned: InputRequiredResult | None = None,
    ) -> None:
        self._service = service
        self.asking = asking
        self._returned = returned
        self.request = asking.request
        self._answering = self._run(plan)
        self._over = False
        self.stop: Callable[[], object] = _nothing

    def __repr__(self) -> str:
        return f"<Job {self.request.method.name} id={self.request.id!r}>"

    def __await__(self) -> Generator[Any, Any, Any]:
        """Gives the answer, or raises what the handler raised."""
        middlewares = self._service.server.middlewares
        while True:
            outcome: Any = self._returned
            if outcome is None:
                answering = self._answering
                awaited = surrounded(answering, middlewares) if middlewares else answering
                outcome = yield from awaited.__await__()
            if not self.asking.needs_round(outcome):
                return outcome
            yield from self.asking.by_hand(outcome).__await__()
            self._returned = None
            self._answering = self._run(None)

    def _run(self, plan: Invocation | None) -> Proceeding:
        service, asking = self._service, self.asking
        context = Context(asking) if plan is None or plan.wants_context else None
        return Proceeding(service.server, self.request, context, service.runtime, plan)

    def done(self, answer: Any) -> None:
        """The handler's answer is here: send it."""
        self._finish(self._service.settled(self.asking, self._answering.plan, answer))

    def failed(self, exc: BaseException) -> None:
        """The handler raised `exc`: answer with what the peer may know of it."""
        self._finish(self._service.failed(self.asking, self._answering.plan, exc))

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
    """Answers the events of `conn` as `server` declares it. To be closed at the end of the conversation, unless it has taken
    `ConnectionClosed`.

    `lifespan` is the value of the server's lifespan. `principal` is who asks, as authenticated, empty where nobody is: what a
    client is given to keep is good for that one only.
    """

    def __init__(
        self, server: Server, conn: Connection, runtime: Runtime, lifespan: Any = None, *, principal: str = ""
    ) -> None:
        self.server = server
        self.conn = conn
        self.runtime = runtime
        self.lifespan = lifespan
        self.principal = principal
        self._jobs: dict[RequestId, Job] = {}
        self._unsaid: dict[Change, None] = {}
        self._pages: dict[str, None] = {}  # that the client was asked to visit, oldest first
        server.attach(self)

    def __repr__(self) -> str:
        return f"<Service of {self.server!r}, {len(self._jobs)} jobs>"

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

    def remember_page(self, elicitation_id: str) -> None:
        """The client was asked to visit a page, and may be told when that is done."""
        self._pages[elicitation_id] = None
        if len(self._pages) > _MOST_PAGES:
            del self._pages[next(iter(self._pages))]

    def page_visited(self, elicitation_id: str) -> None:
        """The user is done with a page. From any thread; the client is told soon, if it was this one that was asked."""
        if self._pages.pop(elicitation_id, self) is None:
            self.runtime.soon(partial(self._say_visited, elicitation_id))

    def _say_visited(self, elicitation_id: str) -> None:
        with suppress(LocalProtocolError):  # the conversation is over
            self.conn.send_notification(_VISITED, ElicitationCompleteParams(elicitation_id=elicitation_id))
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
                job.asking.over()
        else:
            deliver(event)
            if isinstance(event, ConnectionClosed):
                self.close()
        return None

    def _take_request(self, request: RequestReceived) -> Job | None:
        asking = Asking(self, request)
        if request.method.input_ok and request.params.request_state is not None:
            try:
                asking.verify()
            except BadState as exc:
                self.runtime.report(request, self.runtime.reference(), exc.with_traceback(None))
                self.finish(request, ErrorData(request.peer.dialect.codes[exc.fault], BadState.TOLD))
                return None
        if self.server.middlewares:
            return self._job(asking, None)
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
            return self._job(asking, plan)
        try:
            outcome: Any = plan.result(plan.call(Context(asking) if plan.wants_context else None))
        except BaseException as exc:  # noqa: BLE001 - rule 3
            outcome = self.failed(asking, plan, exc)
        else:
            if isinstance(outcome, InputRequiredResult):
                if asking.needs_round(outcome):
                    return self._job(asking, plan, outcome)
                outcome = self.settled(asking, plan, outcome)
        self.finish(request, outcome)
        return None

    def _job(
        self, asking: Asking, plan: Invocation | None, returned: InputRequiredResult | None = None
    ) -> Job:
        job = self._jobs[asking.request.id] = Job(self, asking, plan, returned)
        return job

    def settled(self, asking: Asking, plan: Invocation | None, outcome: Any) -> Any:
        """What is answered if a handler gave `outcome`, or was to be answered by it."""
        returned = outcome if isinstance(outcome, InputRequiredResult) else None
        if returned is None and not asking.unanswered:
            return outcome
        try:
            return asking.required(returned)
        except Exception as exc:  # noqa: BLE001 - rule 3
            return self.failure(asking.request, plan, exc)

    def failed(self, asking: Asking, plan: Invocation | None, exc: BaseException) -> Any:
        """What is answered if a handler or a middleware raised `exc`."""
        if asking.unanswered:
            return self.settled(asking, plan, None)
        wanted = single(exc)
        if wanted is asking.gone:
            # No fault of the handler's, and nothing for the log.
            code = asking.request.peer.dialect.codes[Fault.INTERNAL]
            return ErrorData(code, "the client hung up while it was asked")
        if not isinstance(wanted, UrlElicitationRequired):
            return self.failure(asking.request, plan, exc)
        try:
            return self.settled(asking, plan, asking.page_required(wanted))
        except Exception as worse:  # noqa: BLE001 - rule 3
            return self.failure(asking.request, plan, worse)

    def finish(self, request: RequestReceived, outcome: Any) -> None:
        """Answer `request`, as its last act."""
        job = self._jobs.pop(request.id, None)
        if job is not None:
            job.asking.over()
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
