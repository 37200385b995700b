"""The server side of one connection, without a runtime: it runs handlers and sends their responses.

1. Every request is finished exactly once, a cancelled one too: otherwise its place among the
   requests in flight would never be free again.
2. An exception of a handler ends that request and nothing else. Unless it was raised for the peer,
   the log gets it under a reference, and the peer gets the reference only.
3. Input that a handler has asked for in the result (2026-07-28), and not received, wins over
   everything else that the handler returned or raised.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from contextlib import AbstractAsyncContextManager, nullcontext, suppress
from functools import partial
from hashlib import sha256
from inspect import isawaitable
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Protocol

from mcp_core._errors import (
    ConnectionLost,
    Fault,
    LocalProtocolError,
    McpError,
    single,
)
from mcp_core._on_first_use import type_on_first_use
from mcp_core.protocol.connection._connection import Connection
from mcp_core.protocol.connection._state import State
from mcp_core.protocol.input_requests._capabilities import can_answer
from mcp_core.protocol.input_requests._request_state import InvalidRequestState
from mcp_core.protocol.jsonrpc._unencodable import whole_text
from mcp_core.protocol.messages._events import (
    ConnectionClosed,
    Event,
    NotificationReceived,
    Peer,
    RequestCancelled,
    RequestReceived,
)
from mcp_core.protocol.messages._pending import deliver
from mcp_core.protocol.revisions._declared_uris import NAMES_URI
from mcp_core.protocol.subscriptions._server import LISTEN, Change
from mcp_core.registry._context import Context
from mcp_core.registry._input_requests import InputCollector
from mcp_core.registry._roots import RootsContext
from mcp_core.registry._server import Server
from mcp_core.registry.entries._invocation import Invocation, MountedCall
from mcp_core.registry.functions._content import check_result
from mcp_core.tasks._record import quota_key
from mcp_core.types import (
    ElicitationCompleteParams,
    ErrorData,
    InputRequiredResult,
    RequestId,
    SubscriptionFilter,
)

from ._job import Job
from ._middleware import (
    MAX_BLOCKING,
    HandlerCall,
    count_call,
    internal_error,
    outcome_of,
    outcome_of_error,
    report_blocking,
    run_middleware,
    unsent_outcome,
)
from ._runtime import LAST_GRACE, Runtime, Sources

if TYPE_CHECKING:
    from mcp_core.sharing import SessionStore

    from .tasks import TaskRuntime
else:
    TaskRuntime = type_on_first_use("mcp_core.runtime.tasks", "TaskRuntime")
    SessionStore = type_on_first_use("mcp_core.sharing", "SessionStore")

__all__ = [
    "ConversationJob",
    "RequestJob",
    "RootsJob",
    "ServedServer",
    "Service",
    "name_of_request",
    "open_bus",
]

_ROOTS_CHANGED: Final = "notifications/roots/list_changed"
_ELICITATION_COMPLETE: Final = "notifications/elicitation/complete"
# How many URL elicitations one connection remembers. The client isn't notified of an older one,
# and has to call again without a notification.
_MAX_ELICITATIONS: Final = 1_000
_CALL_TOOL: Final = "tools/call"
_TASKS: Final = "tasks/"  # the prefix of the methods about tasks
_MAX_URI: Final = 200  # characters in the log
_MAX_NAMES: Final = 20  # in one line of the log
_OWNER_SIZE: Final = 16  # bytes, as many as a session id has


class ConversationJob(Job):
    """A job that serves a client's request, and is cancelled with it.

    `input_collector` collects what the handler asks of the client.
    """

    __slots__ = ("input_collector",)

    input_collector: InputCollector


class DenialLike(Protocol):
    """The reason why a request is denied, such as an `mcp_core.http.ErrorResponse`."""

    @property
    def message(self) -> str:
        """The cause, and how to fix it."""

    @property
    def fault(self) -> Fault:
        """The fault that decides the error code."""


class ConversationLike(Protocol):
    """The part of `mcp_core.http.Conversation` that a `Service` needs."""

    @property
    def client(self) -> str:
        """The client whose quotas it counts against, "" for none."""

    def authorize_calls(
        self, request: RequestReceived, tools: Collection[str], /
    ) -> DenialLike | None:
        """Return None if the token of `request` covers calls of `tools`, or why it doesn't."""

    def may_call(self, request: RequestReceived, tool: str, /) -> bool:
        """Return True if the token of `request`, if it has one, covers a call of `tool`."""


class TaskServiceLike(Protocol):
    """The part of `mcp_core.runtime.tasks.TaskService` that a `Service` needs."""

    def request_job(self, service: Service, collector: InputCollector, /) -> ConversationJob | None:
        """Return the job for a request about tasks, None if it has its response already."""

    def call_job(
        self, service: Service, collector: InputCollector, given: Invocation | MountedCall | None, /
    ) -> ConversationJob | None:
        """Return the job for a call that may become a task, None if it is one already."""

    def remove_owner(self, owner: str, /) -> None:
        """Remove the tasks of an owner that doesn't exist any more."""


class TaskNotifierLike(Protocol):
    """The part of `mcp_core.runtime.tasks.TaskNotifier` that a `Service` needs."""

    def close(self) -> None:
        """Send nothing more."""


class RequestJob(ConversationJob):
    """The handler of one request, for a task of its own. `failed` never raises.

    Args:
        service: where the request arrived, None if its response was sent.
        input_collector: collects what the handler asks of its client.
        given: the call to make, or None to look it up inside of the middleware. An `Invocation`
            has been counted.
        returned: what a plain `def` has returned already, if that needs nested requests.
    """

    __slots__ = (
        "_call",
        "_finished",
        "_middlewares",
        "_returned",
        "_service",
        "request",
    )

    def __init__(
        self,
        service: Service | None,
        input_collector: InputCollector,
        given: Invocation | MountedCall | None,
        returned: InputRequiredResult | None = None,
    ) -> None:
        super().__init__()
        self._service = service
        self._middlewares = input_collector.host.server.middlewares
        self.input_collector = input_collector
        self._returned = returned
        self.request = input_collector.request
        self._call = self._new_call(given)
        self._finished = service is None

    def __repr__(self) -> str:
        return f"<RequestJob {self.request.method.name} id={self.request.id!r}>"

    async def run(self) -> Any:
        """Return the handler's result, or raise what it raised."""
        middlewares = self._middlewares
        while True:
            result: Any = self._returned
            if result is None:
                if middlewares:
                    context = self._call.context
                    assert context is not None
                    result = await run_middleware(self._call.run, context, middlewares)
                    check_result(result)
                else:
                    result = await self._call.run()
            if not self.input_collector.needs_nested_requests(result):
                return result
            await self.input_collector.ask_returned(result)
            self._returned = None
            self._call = self._new_call(None, again=True)

    def _new_call(
        self, given: Invocation | MountedCall | None, *, again: bool = False
    ) -> HandlerCall:
        """Return the call to make, perhaps `again`."""
        service = self._service
        assert service is not None
        wants_context = not isinstance(given, Invocation) or given.wants_context
        context = Context(self.input_collector) if wants_context else None
        return HandlerCall(self.input_collector, context, service.runtime, given, again=again)

    def done(self, result: Any) -> None:
        """Send the handler's result."""
        self._finish(self._outcome_of(result))

    def failed(self, exc: BaseException) -> None:
        """Send what the peer may know of an exception."""
        self._finish(self._outcome_of_error(exc))

    def _outcome_of(self, result: Any) -> Any:
        call = self._call
        return outcome_of(call.runtime, self.input_collector, call.invocation, result)

    def _outcome_of_error(self, exc: BaseException) -> Any:
        call = self._call
        return outcome_of_error(call.runtime, self.input_collector, call.invocation, exc)

    def dropped(self) -> None:
        if self._finished:
            return
        assert self._service is not None
        # The connection doesn't send this to a peer that has itself cancelled the request.
        if self._service.conn.state is State.CLOSING:
            fault = Fault.BUSY
            reason = "the server is being shut down"
        else:
            fault = Fault.INTERNAL
            reason = "the request was cancelled"
        self._finish(ErrorData(self.request.peer.dialect.codes[fault], reason))

    def _finish(self, outcome: Any) -> None:
        assert self._service is not None
        self._finished = True
        self._service.finish(self.request, outcome)


class RootsJob(Job):
    """The hooks on changed roots of one client, for a task of its own. `failed` never raises.

    Args:
        service: where the notification arrived.
        peer: the client.
    """

    __slots__ = ("_peer", "_service", "changed")

    def __init__(self, service: Service, peer: Peer) -> None:
        super().__init__()
        self._service = service
        self._peer = peer
        self.changed = True  # since the hooks were last called

    def __repr__(self) -> str:
        return f"<RootsJob of {self._service!r}>"

    async def run(self) -> None:
        """Call the hooks, and again as long as the roots change meanwhile."""
        service = self._service
        while self.changed:
            self.changed = False
            for server, hook in service.server.all_roots_hooks():
                try:
                    outcome = hook(RootsContext(service, self._peer, server))
                    if isawaitable(outcome):
                        await outcome
                except Exception as exc:  # noqa: BLE001 - it ends this hook only
                    self.failed(exc)
        # Not in `dropped`, which may run later: a notification in between has to start a new job.
        service.roots_job_ended(self)

    def done(self, result: Any) -> None:
        """Do nothing: a notification has no response."""

    def failed(self, exc: BaseException) -> None:
        """Log an exception of a hook, unless the client is gone."""
        if not isinstance(single(exc), ConnectionLost):
            self._service.runtime.report_hook("a hook on changed roots", exc)

    def dropped(self) -> None:
        self._service.roots_job_ended(self)


class Service:
    """Responds to the requests that arrive on `conn`, as `server` declares.

    Pass each event to `handle_event`. The service detaches from the server when it gets
    `ConnectionClosed`; call `close` only if the connection is dropped without that event.

    Args:
        server: the declarations.
        conn: the connection.
        runtime: what the driver adds.
        lifespan: the value of `open_lifespans`.
        principal: the authenticated user, "" without one. Signed data that a client is given
            is valid for this user only.
        conversation: what an HTTP server knows of the client, None on other transports.
        tasks: the server's tasks, None if it runs no tools as tasks.

    Attributes:
        session_state: a dict for this connection's handlers.
        mounted_states: the same for each mounted server that has handled a request.
    """

    def __init__(
        self,
        server: Server,
        conn: Connection,
        runtime: Runtime,
        lifespan: Any = None,
        *,
        principal: str = "",
        conversation: ConversationLike | None = None,
        tasks: TaskServiceLike | None = None,
    ) -> None:
        self.server = server
        self.conn = conn
        self.runtime = runtime
        self.lifespan = lifespan
        self.principal = principal
        self._conversation = conversation
        self.session_state: dict[str, Any] = {}
        self.mounted_states: dict[Server, dict[str, Any]] = {}
        self.tasks = tasks
        self.task_notifier: TaskNotifierLike | None = None  # created on first use
        # The `tasks/result` requests that wait, and the id of the task of each.
        self.waiting_results: dict[RequestId, str] = {}
        self._session_owner = ""  # owns this session's tasks, if no user does
        self._jobs: dict[RequestId, ConversationJob] = {}
        self._roots_job: RootsJob | None = None
        self._unsent: dict[Change, None] = {}
        self._all_resources_changed = False
        self._elicitations: dict[str, None] = {}  # ids, oldest first
        self._attached = True
        server.attach(self)

    def __repr__(self) -> str:
        return f"<Service of {self.server!r}, {len(self._jobs)} jobs>"

    @property
    def idle(self) -> bool:
        """True if no job is running."""
        return not self._jobs and self._roots_job is None

    def changed(self, changes: Iterable[Change], *, all_resources: bool = False) -> None:
        """Send `changes` to the client soon, if it has subscribed. Any thread may call this.

        With `all_resources`, the contents of each resource may have changed.
        """
        for change in changes:
            self._unsent[change] = None
        if all_resources:
            self._all_resources_changed = True
        self.runtime.call_soon(self._send_changes)

    def _send_changes(self) -> None:
        # Other threads may add changes meanwhile, so each step here has to be atomic.
        while self._unsent:
            change, _ = self._unsent.popitem()
            self.conn.send_change(change, None, self._hides)
        if self._all_resources_changed:
            self._all_resources_changed = False
            self.conn.send_changes_of_all_resources(self._hides)
        self.runtime.pump()

    def _hides(self, uri: str, request: RequestReceived) -> bool:
        """Return True if the resource `uri` is hidden from the sender of `request`."""
        try:
            return self.server.hides_uri(uri, request, self)
        except (Exception, SystemExit) as exc:  # noqa: BLE001 - of an argument's validator
            self.runtime.report_hook(f"looking up the resource {uri[:_MAX_URI]!r}", exc)
            return True

    def remember_elicitation(self, elicitation_id: str) -> None:
        """Remember that the client was sent the URL elicitation `elicitation_id`."""
        self._elicitations[elicitation_id] = None
        if len(self._elicitations) > _MAX_ELICITATIONS:
            del self._elicitations[next(iter(self._elicitations))]

    def elicitation_completed(self, elicitation_id: str) -> None:
        """Tell the client soon that its user has completed `elicitation_id`, a URL elicitation.

        Do nothing if it was sent to another client. Any thread may call this.
        """
        if self._elicitations.pop(elicitation_id, self) is None:
            self.runtime.call_soon(partial(self._send_elicitation_complete, elicitation_id))

    def _send_elicitation_complete(self, elicitation_id: str) -> None:
        params = ElicitationCompleteParams(elicitation_id=elicitation_id)
        with suppress(LocalProtocolError):  # the connection is closed
            self.conn.send_notification(_ELICITATION_COMPLETE, params)
        self.runtime.pump()

    @property
    def closed(self) -> bool:
        """True after `close`."""
        return not self._attached

    def close(self) -> None:
        """Detach from the server: its changes aren't sent any more. Idempotent."""
        if self._attached:
            self._attached = False
            self.server.detach(self)
            if self.task_notifier is not None:
                self.task_notifier.close()
            if self._session_owner and self.tasks is not None:
                self.tasks.remove_owner(self._session_owner)

    def task_owner(self, request: RequestReceived) -> str:
        """Return the owner of the tasks of `request`: see `Tasks.owner`."""
        grant = request.grant
        if grant is not None:
            user = f"{self.principal}\0{grant.client_id}"
            owner = sha256(user.encode()).hexdigest()
        elif (
            self.runtime.single_peer
            or self.runtime.one_request
            or not request.peer.dialect.stateful
        ):
            owner = ""
        else:
            if not self._session_owner:
                self._session_owner = self.runtime.entropy(_OWNER_SIZE).hex()
            owner = self._session_owner
        choose = self.server.tasks.owner
        return owner if choose is None else choose(request, owner)

    @property
    def rate_key(self) -> str:
        """The name under which this client's calls of a tool count, "" if nothing tells it apart.

        See `ToolOptions.rate`.
        """
        if self._conversation is not None:
            return self._conversation.client
        return f"principal {self.principal}" if self.principal else ""

    @property
    def task_quota_key(self) -> str:
        """The key under which the tasks of this connection count: see `quota_key`."""
        conversation = self._conversation
        if self.runtime.single_peer:
            return quota_key(self.principal, None)
        return quota_key(self.principal, "" if conversation is None else conversation.client)

    def authorize_calls(
        self, request: RequestReceived, tools: Collection[str]
    ) -> DenialLike | None:
        """Return None if the token of `request` covers calls of `tools`, or why it doesn't.

        If `request` then gets an error, its HTTP response says which scopes are needed.
        """
        conversation = self._conversation
        return None if conversation is None else conversation.authorize_calls(request, tools)

    def may_call(self, request: RequestReceived, tool: str) -> bool:
        """Return True if the token of `request`, if it has one, covers a call of `tool`."""
        conversation = self._conversation
        return conversation is None or conversation.may_call(request, tool)

    def stop(self) -> None:
        """Cancel all jobs. Each of them is still finished, by `dropped` or otherwise."""
        for job in list(self._jobs.values()):
            job.stop()
        if self._roots_job is not None:
            self._roots_job.stop()

    def warn_of_running(self) -> None:
        """Log one warning that names the jobs that still run, if any. They were cancelled before.

        A driver calls this `LAST_GRACE` seconds after the conversation has ended.
        """
        names = [name_of_request(job.input_collector.request) for job in self._jobs.values()]
        if self._roots_job is not None:
            names.append("a hook on changed roots")
        if names:
            self.runtime.warn(f"the conversation has ended, and {ignored_cancellation(names)}")

    def handle_event(self, event: Event) -> Job | None:
        """Process `event`, without waiting. Return the job to run in a task, if there is one.

        The driver starts the job. A plain `def` without `thread=True` runs here and now.
        """
        if isinstance(event, RequestReceived):
            if event.method.name in NAMES_URI:
                try:
                    event = self.server.as_declared(event, self)
                except (Exception, SystemExit) as exc:  # noqa: BLE001 - rule 2; of a validator
                    self.finish(event, self._unanswered(event, exc))
                    return None
            return self._handle_request(event)
        if isinstance(event, RequestCancelled):
            job = self._jobs.get(event.id)
            if job is not None:
                job.stop()
                job.input_collector.request_ended()
        elif isinstance(event, NotificationReceived):
            return self._handle_notification(event)
        else:
            deliver(event)
            if isinstance(event, ConnectionClosed):
                self.close()
                if self._roots_job is not None:
                    self._roots_job.stop()
        return None

    def _handle_notification(self, event: NotificationReceived) -> RootsJob | None:
        if event.method.name != _ROOTS_CHANGED or event.peer is None:
            return None
        if not can_answer("roots", event.peer) or not self.server.all_roots_hooks():
            return None
        if self._roots_job is not None:
            self._roots_job.changed = True
            return None
        self._roots_job = RootsJob(self, event.peer)
        return self._roots_job

    def roots_job_ended(self, job: RootsJob) -> None:
        """Forget `job`, so that the next notification starts another one."""
        if self._roots_job is job:
            self._roots_job = None

    def _handle_request(self, request: RequestReceived) -> Job | None:
        collector = InputCollector(self, request)
        if (
            request.method.input_ok
            and request.params.request_state is not None
            and not self._is_state_valid(collector)
        ):
            return None
        tasks = self.tasks
        name = request.method.name
        if name == LISTEN or (tasks is not None and name.startswith(_TASKS)):
            return self._handle_without_declaration(collector)
        if self.server.middlewares:
            if tasks is not None and self.server.may_be_task(request):
                return self._start_job(tasks.call_job(self, collector, None))
            return self._new_job(collector, None)
        started = self.runtime.monotonic()  # validators of arguments are the author's code, too
        try:
            invocation = self.server.answer(request, self)
        except (Exception, SystemExit) as exc:  # noqa: BLE001 - rule 2; of a validator, too
            # But Ctrl-C ends the program, as it does in the driver's own code.
            self.finish(request, self._unanswered(request, exc))
            return None
        if not isinstance(invocation, Invocation):
            return self._handle_outcome(collector, invocation)
        if invocation.limits is not None or (invocation.task is not None and tasks is not None):
            return self._start_call(collector, invocation)
        if invocation.is_async or invocation.thread:
            return self._new_job(collector, invocation)
        try:
            context = Context(collector) if invocation.wants_context else None
            outcome: Any = invocation.call(context)
            if hasattr(outcome, "__await__"):
                invocation.defer(outcome)
                return self._new_job(collector, invocation)
            outcome = invocation.result(outcome)
        except BaseException as exc:  # noqa: BLE001 - rule 2
            outcome = outcome_of_error(self.runtime, collector, invocation, exc)
        else:
            if isinstance(outcome, InputRequiredResult):
                if collector.needs_nested_requests(outcome):
                    return self._new_job(collector, invocation, outcome)
                outcome = outcome_of(self.runtime, collector, invocation, outcome)
        self.finish(request, outcome)
        seconds = self.runtime.monotonic() - started
        if seconds > MAX_BLOCKING:
            report_blocking(self.server, self.runtime, invocation, seconds)
        return None

    def _handle_without_declaration(self, collector: InputCollector) -> Job | None:
        """Handle a subscription that names tasks, which `TaskService` looks up, or another request
        about tasks.
        """
        if self.tasks is not None:
            return self._start_job(self.tasks.request_job(self, collector))
        request = collector.request
        self.accept_listen(request, request.params.notifications)
        return None

    def _handle_outcome(self, collector: InputCollector, answer: Any) -> Job | None:
        """Send a response. But for a `MountedCall` return the job, whose middleware comes first."""
        if not isinstance(answer, MountedCall):
            self.finish(collector.request, answer)
            return None
        if answer.task is not None and self.tasks is not None:
            return self._start_job(self.tasks.call_job(self, collector, answer))
        return self._new_job(collector, answer)

    def _unanswered(self, request: RequestReceived, exc: BaseException) -> ErrorData:
        """Return the error for a request that calls no function, or whose arguments are invalid."""
        if isinstance(exc, McpError):
            return ErrorData(exc.code, whole_text(exc.message), exc.data)
        return internal_error(self.runtime, request, exc)

    def _is_state_valid(self, collector: InputCollector) -> bool:
        """Verify the `requestState` of a request. If it is invalid, answer and return False."""
        request = collector.request
        try:
            collector.verify_request_state()
        except InvalidRequestState as exc:
            self.runtime.warn(f"{request.method.name}: {exc}")
            code = request.peer.dialect.codes[exc.fault]
            self.finish(request, ErrorData(code, InvalidRequestState.PUBLIC_MESSAGE))
            return False
        return True

    def _new_job(
        self,
        collector: InputCollector,
        given: Invocation | MountedCall | None,
        returned: InputRequiredResult | None = None,
    ) -> RequestJob:
        job = RequestJob(self, collector, given, returned)
        self._jobs[collector.request.id] = job
        return job

    def _start_call(self, collector: InputCollector, invocation: Invocation) -> Job | None:
        """Return the job of a call with limits, or that may become a task.

        If its client has called the tool too often, answer and return None.
        """
        error = count_call(invocation, self)
        if error is not None:
            self.finish(collector.request, self._unanswered(collector.request, error))
            return None
        if invocation.task is not None and self.tasks is not None:
            return self._start_job(self.tasks.call_job(self, collector, invocation))
        return self._new_job(collector, invocation)

    def _start_job(self, job: ConversationJob | None) -> ConversationJob | None:
        """Remember a job, so that it is cancelled with its request. None if it has ended."""
        if job is not None:
            self._jobs[job.input_collector.request.id] = job
        return job

    def accept_listen(self, request: RequestReceived, honoured: SubscriptionFilter) -> bool:
        """Accept `request`, a listen request, with `honoured`. Return False if it has ended.

        Whether the client may see a resource is asked when that changes.
        """
        self._jobs.pop(request.id, None)
        return self.conn.send_acknowledgement(request, honoured)

    def finish(self, request: RequestReceived, outcome: Any) -> None:
        """Send `outcome`, a result or an `ErrorData`, as the response of `request`.

        This is the last thing that happens to the request.
        """
        job = self._jobs.pop(request.id, None)
        if job is not None:
            job.input_collector.request_ended()
        send = self.conn.send_error if isinstance(outcome, ErrorData) else self.conn.send_result
        try:
            send(request.id, outcome)
        except Exception as exc:  # noqa: BLE001 - encoding an author's object may raise anything
            outcome = unsent_outcome(self.runtime, request, outcome, exc)
            send = self.conn.send_error if isinstance(outcome, ErrorData) else self.conn.send_result
            send(request.id, outcome)


def name_of_request(request: RequestReceived) -> str:
    """Return how a log names the handler of `request`."""
    if request.method.name == _CALL_TOOL:
        return f"tool {request.params.name!r}"
    return request.method.name


def ignored_cancellation(names: Iterable[str]) -> str:
    """Return a log line about handlers that still run `LAST_GRACE` after their cancellation."""
    found = list(dict.fromkeys(names))
    if len(found) > _MAX_NAMES:
        found[_MAX_NAMES:] = [f"{len(found) - _MAX_NAMES} more"]
    return (
        f"{', '.join(found)} ignored the cancellation for {LAST_GRACE:g} s: a handler must not"
        " shield or swallow it for so long"
    )


def open_bus(
    server: Server, store: SessionStore | None, runtime: TaskRuntime, lifespan: Any
) -> AbstractAsyncContextManager[object]:
    """Return the context in which the changes of `server` are shared by means of `store`, if any.

    A driver enters it inside of the lifespan, whose value is `lifespan`. `runtime` is the one of
    the server's tasks.
    """
    if store is None:
        return nullcontext()
    from .sharing import WorkerBus  # on first use: most servers share nothing

    return WorkerBus(server, store, runtime, lifespan).opened()


class ServedServer(NamedTuple):
    """A server whose lifespan has begun. A driver makes one, for all connections."""

    # The declarations.
    server: Server
    # The value of its lifespan.
    lifespan: Any = None
    # Its tasks, None if the driver runs none.
    tasks: TaskServiceLike | None = None
    # What all its runtimes use, None for their own.
    sources: Sources | None = None

    def service(
        self,
        conn: Connection,
        runtime: Runtime,
        *,
        principal: str = "",
        conversation: ConversationLike | None = None,
    ) -> Service:
        """Return the service for the connection `conn`, which has the runtime `runtime`.

        `principal` is its authenticated user, "" without one. `conversation` is what an HTTP server
        knows of the client, None on other transports.
        """
        if self.sources is not None and self.sources is not runtime.sources:
            runtime.sources = self.sources
        return Service(
            self.server,
            conn,
            runtime,
            self.lifespan,
            principal=principal,
            conversation=conversation,
            tasks=self.tasks,
        )
