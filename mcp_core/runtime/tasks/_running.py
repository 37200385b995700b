"""A handler that runs as a task, and the two jobs of a call that may become one.

1. A call that may become a task runs from its start where tasks run, since a running task of trio
   cannot be moved to another nursery. In the conversation a `TaskCallJob` waits for it, so that the
   conversation counts and cancels the call like any other.
2. Detaching is the one step from a call to a task: the record is stored, then the request is
   answered with it. From then on the handler's questions, its progress and its outcome go to the
   record, and nothing of the conversation is kept.
"""

from __future__ import annotations

from functools import partial
from math import isfinite
from typing import TYPE_CHECKING, Any, Final

from msgspec import UNSET, Raw
from msgspec.structs import replace

from mcp_core._errors import LocalProtocolError, McpError, ToolError, single
from mcp_core.protocol.jsonrpc._body import estimate_memory
from mcp_core.protocol.jsonrpc._codec import InvalidPayload, check_object, encode
from mcp_core.protocol.jsonrpc._unencodable import encode_exactly
from mcp_core.protocol.messages._events import Peer, RequestReceived
from mcp_core.protocol.revisions._dialects import DIALECTS
from mcp_core.protocol.revisions._methods import Role
from mcp_core.registry._context import Context
from mcp_core.registry._errors import UrlElicitationRequired
from mcp_core.registry._input_requests import InputCollector
from mcp_core.registry.entries._invocation import Invocation
from mcp_core.runtime._middleware import HandlerCall, unsent_outcome
from mcp_core.runtime._service import ConversationJob, RequestJob
from mcp_core.tasks._record import TaskCall, TaskRecord, new_task_id
from mcp_core.tasks._states import (
    Cancel,
    Complete,
    Fail,
    ReceiveResponse,
    RequestInput,
    SetMessage,
)
from mcp_core.tasks._store import TaskStoreError
from mcp_core.tasks._views import create_task_result
from mcp_core.types import CallToolResult, ErrorData, InputRequiredResult, Result, TextContent

from ._channel import TaskChannel
from ._notifier import notifier_of
from ._records import STORE
from ._wakeup import Wakeup

if TYPE_CHECKING:
    from collections.abc import Mapping

    from mcp_core.registry._server import Server
    from mcp_core.registry.entries._invocation import MountedCall
    from mcp_core.runtime._runtime import EventLike
    from mcp_core.runtime._service import Service
    from mcp_core.tasks._record import TaskKey
    from mcp_core.tasks._states import TaskAction
    from mcp_core.types import InputRequest, LoggingLevel

    from ._runtime import TaskRuntime
    from ._service import TaskService

__all__ = ["RunningTask", "TaskCallJob", "TaskHost", "TaskJob"]

_CALL_TOOL: Final = "tools/call"
# The response to an input request whose handler doesn't wait for it any more.
_WITHDRAWN: Final = Raw(encode({"error": {"code": -32603, "message": "The request is withdrawn"}}))


class TaskHost:
    """The `RequestHost` of a handler that runs as a task: it has no conversation."""

    def __init__(
        self,
        server: Server,
        runtime: TaskRuntime,
        lifespan: Any,
        principal: str,
        rate_key: str,
        mounted_states: dict[Server, dict[str, Any]],
    ) -> None:
        self.server = server
        self.runtime = runtime
        self.lifespan = lifespan
        self.principal = principal
        self.rate_key = rate_key
        self.session_state: dict[str, Any] = {}
        self.mounted_states = mounted_states

    def __repr__(self) -> str:
        return f"<TaskHost of {self.server!r}>"

    @property
    def conn(self) -> Any:
        raise LocalProtocolError("a task has no connection")

    def remember_elicitation(self, elicitation_id: str) -> None:
        """Do nothing: the connection over which the page is shown remembers it."""


class RunningTask:
    """A task whose handler runs in this process: the `CurrentTask` of its context.

    Args:
        service: the server's tasks.
        job: runs the handler.
        record: the record, as it was created.

    `runs_again` is True if another worker may run the handler again. `revision` and `tool` are from
    the request that created the task. `channel` sends messages to its client while the handler
    runs; None if the client gets none.
    """

    def __init__(self, service: TaskService, job: TaskJob, record: TaskRecord) -> None:
        self.channel: TaskChannel | None = None
        self.key: TaskKey = record.key
        self.cancelled = False
        self.runs_again = record.call is not None
        self.revision = record.revision
        self.tool = record.tool
        self._job = job
        self._service = service
        self._records = service.records
        self._pending_message: str | None = None
        self._next_message_at = 0.0  # monotonic time from which a message is stored at once
        self._storing_later = False
        if service.records.store.durable:  # another process can cancel it, or take it over
            service.records.observe(self.key, self.on_record)

    def __repr__(self) -> str:
        return f"<RunningTask of {self._job!r}>"

    @property
    def id(self) -> str:
        return self.key.id

    def stop(self) -> None:
        """Cancel the handler: what it returns is dropped."""
        if not self.cancelled:
            self.cancelled = True
            # It may have ended while the caller waited for the store.
            if self._service.running(self.key) is self:
                self._service.job_stopped(self._job)
        self._job.stop()

    def on_record(self, record: TaskRecord | None) -> None:
        """Cancel the handler if the task has ended, or another worker runs it now."""
        if record is None or record.ended or record.worker != self._service.worker:
            self.stop()

    async def cancel(self, text: str) -> tuple[TaskRecord, TaskRecord] | None:
        """Cancel the handler, and then the task. Return the record before and after it, if any.

        Raises:
            TaskStoreError: the store failed. It is tried again, until the server shuts down.
        """
        self.stop()
        apply = partial(self._records.apply, self.key, Cancel(text))
        try:
            return await apply()
        except BaseException as exc:
            # The store failed, or the client went away before it answered. The handler has stopped
            # already: without an end in the record, the task would be "working" for ever.
            if isinstance(exc, TaskStoreError) or not isinstance(exc, Exception):
                self._service.store_soon(apply)
            raise

    async def message(self, text: str) -> None:
        self._pending_message = text
        if not self._storing_later:
            if self._seconds_to_wait > 0:
                self._store_message_soon()
            else:
                await self._store_message()
        await self._service.runtime.checkpoint()

    @property
    def _seconds_to_wait(self) -> float:
        """The seconds until another message may be stored, not positive if it may be now."""
        return self._next_message_at - self._service.runtime.monotonic()

    def _store_message_soon(self) -> None:
        if not self._storing_later:
            self._storing_later = True
            self._service.runtime.start_soon(self._store_message_later)

    async def _store_message_later(self) -> None:
        runtime = self._service.runtime
        seconds = self._seconds_to_wait
        if seconds > 0:
            await runtime.wait(runtime.new_event(), seconds)
        self._storing_later = False
        await self._store_message()

    async def _store_message(self) -> None:
        text = self._pending_message
        if text is None:
            return
        self._pending_message = None
        interval = self._records.limits.message_interval
        self._next_message_at = self._service.runtime.monotonic() + interval
        try:
            await self._apply(SetMessage(text))
        except TaskStoreError as exc:  # the work is worth more than a message about it
            self._records.reports.failed(STORE, exc)

    async def progress(self, progress: float, total: float | None, message: str | None) -> None:
        """Set the status message from the progress that a handler has reported.

        In 2025-11-25 the client also gets a progress notification.
        """
        await self.message(self._send_progress(progress, total, message))

    def progress_nowait(self, progress: float, total: float | None, message: str | None) -> None:
        """Report progress as `progress` does, and store the status message soon."""
        runtime = self._service.runtime
        if runtime.in_worker_thread:
            runtime.from_thread(partial(self.progress, progress, total, message))
        else:
            self._pending_message = self._send_progress(progress, total, message)
            self._store_message_soon()

    def _send_progress(self, progress: float, total: float | None, message: str | None) -> str:
        """Send a progress notification, if the client gets any. Return the status message."""
        if not isfinite(progress) or not isfinite(total or 0.0):
            raise LocalProtocolError("progress and total are finite numbers")
        if self.channel is not None and not self.cancelled:
            self.channel.send_progress(progress, total, message)
        if message is not None:
            return message
        return f"{progress:g}" if total is None else f"{progress:g} of {total:g}"

    async def log(self, level: LoggingLevel, data: Any, logger: str | None) -> None:
        """Send a log message in 2025-11-25. The extension has no log messages for tasks."""
        self._send_log(level, data, logger)
        await self._service.runtime.checkpoint()

    def log_nowait(self, level: LoggingLevel, data: Any, logger: str | None) -> None:
        """Send a log message as `log` does."""
        runtime = self._service.runtime
        if runtime.in_worker_thread:
            runtime.from_thread(partial(self.log, level, data, logger))
        else:
            self._send_log(level, data, logger)

    def _send_log(self, level: LoggingLevel, data: Any, logger: str | None) -> None:
        if self.channel is not None and not self.cancelled:
            self.channel.send_log(level, data, logger)

    async def request_input(self, requests: Mapping[str, InputRequest]) -> dict[str, Raw]:
        """Show input requests to the client, and return their responses, all of them.

        If the task has ended, the handler is cancelled.

        Raises:
            LocalProtocolError: there are too many input requests.
            ToolError: the store of tasks failed.
        """
        records = self._records
        runtime = self._service.runtime
        actions = [RequestInput(key, request) for key, request in requests.items()]
        changed = Wakeup(runtime)
        try:
            with records.watched(self.key, changed.set):
                found = await self._apply(*actions)
                record = None if found is None else found[1]
                while record is not None and not record.ended:
                    if requests.keys() <= record.responses.keys():
                        return {key: record.responses[key] for key in requests}
                    await changed.wait()
                    # Cancelled, the store may be closed already.
                    record = None if self.cancelled else await records.get(self.key)
        except BaseException as exc:
            # Cancelled, for example by a timeout of the handler's own.
            withdrawn = [ReceiveResponse(key, _WITHDRAWN) for key in requests]
            self._service.store_soon(partial(self._apply, *withdrawn))
            if not isinstance(exc, TaskStoreError):
                raise
            records.reports.failed(STORE, exc)
            raise ToolError("the question cannot be stored now") from None
        # Cancelled by its client, or over its time to live: so is the handler, in this wait.
        self.stop()
        await runtime.wait(runtime.new_event())
        raise AssertionError("a cancelled handler waits for ever")  # pragma: no cover

    async def finish(self, outcome: Any, request: RequestReceived) -> None:
        """Store the handler's outcome, unless the task has ended before.

        A store that fails is tried again, until the server shuts down.
        """
        self._pending_message = None  # it describes an earlier state
        self.stop_observing()
        action = _final_action(outcome, request, self._service.runtime)
        await self._service.store(partial(self._apply, action))

    def stop_observing(self) -> None:
        """Stop observing the record: the task's end no longer stops the handler. Idempotent."""
        self._records.stop_observing(self.key, self.on_record)

    async def _apply(self, *actions: TaskAction) -> tuple[TaskRecord, TaskRecord] | None:
        """Change the record, unless the task has ended or another worker has taken it over."""
        if self.cancelled:
            return None  # and at shutdown the store may be closed
        return await self._records.apply(self.key, *actions, worker=self._service.worker)


def _final_action(outcome: Any, request: RequestReceived, runtime: TaskRuntime) -> Complete | Fail:
    """Return the end of a task whose handler has this outcome."""
    dialect = request.peer.dialect
    try:
        if isinstance(outcome, Raw):  # from a middleware, which may have encoded anything
            encoded = bytes(outcome)
            check_object(encoded)
        elif isinstance(outcome, Result | ErrorData):
            encoded = dialect.encode(outcome)
        else:
            encoded = encode_exactly(outcome)
    except Exception as exc:  # noqa: BLE001 - encoding an author's object may raise anything
        outcome = unsent_outcome(runtime, request, outcome, exc)
        encoded = dialect.encode(outcome)
    if isinstance(outcome, ErrorData):
        return Fail(outcome)
    if isinstance(outcome, CallToolResult) and outcome.is_error:
        text = next((b.text for b in outcome.content if isinstance(b, TextContent)), None)
        return Complete(Raw(encoded), is_error=True, message=text)
    return Complete(Raw(encoded))


class TaskJob(RequestJob):
    """The handler of a call that may become a task. It runs where tasks run.

    Args:
        service: where the request arrived, None if its response was sent.
        tasks: the server's tasks.
        input_collector: collects what the handler asks of its client.
        given: the call to make, or None to look it up inside of the middleware.

    `answered` is set when the request has its response: the result of the call, or the task. It is
    None if the call is a task from the beginning. `is_running` is True while `run` hasn't ended.
    """

    __slots__ = ("_detaching", "_over", "_tasks", "answered", "is_running", "options", "task")

    def __init__(
        self,
        service: Service | None,
        tasks: TaskService,
        input_collector: InputCollector,
        given: Invocation | MountedCall | None = None,
    ) -> None:
        self._tasks = tasks
        self.answered: EventLike | None = None
        # A mounted server's middleware runs before the call can become a task.
        self.options = given.task if isinstance(given, Invocation) else None
        self.task: RunningTask | None = None
        self._detaching: EventLike | None = None
        self._over = False
        self.is_running = False
        super().__init__(service, input_collector, given)

    @classmethod
    def for_lost(cls, tasks: TaskService, record: TaskRecord) -> TaskJob | None:
        """Return the job that runs the handler of a task again, from its beginning.

        Return None if the server has no such tool any more, or its input has changed.
        """
        call = record.call
        dialect = DIALECTS.get(record.revision)
        if call is None or dialect is None:
            return None
        method = dialect.receives[Role.SERVER][_CALL_TOOL]
        try:
            params = replace(method.read_params(call.params), input_responses=None)
        except InvalidPayload:
            return None
        params = replace(params, request_state=None)
        peer = Peer(dialect, call.capabilities, call.client)
        request = RequestReceived(record.id, method, params, peer, call.params)
        if not tasks.server.may_be_task(request):
            return None
        # Without a user, the record doesn't know who the client is.
        rate_key = f"principal {call.principal}" if call.principal else ""
        host = TaskHost(tasks.server, tasks.runtime, tasks.lifespan, call.principal, rate_key, {})
        collector = InputCollector(host, request)
        collector.round_trips.responses.update(record.responses)
        job = cls(None, tasks, collector)
        job.task = RunningTask(tasks, job, record)
        tasks.hold(record)
        tasks.add(job.task)
        job.attach(host)
        return job

    def _new_call(
        self, given: Invocation | MountedCall | None, *, again: bool = False
    ) -> HandlerCall:
        wants_context = not isinstance(given, Invocation) or given.wants_context
        context = Context(self.input_collector) if wants_context else None
        if context is not None:
            context.bind_task_job(self)
        return HandlerCall(
            self.input_collector,
            context,
            self._tasks.runtime,
            given,
            before_handler=self._before_handler,
            again=again or self._service is None,  # it was lost
        )

    @property
    def detaches_at_once(self) -> bool:
        """True if the call is a task before its handler runs."""
        options = self.options
        return options is not None and (
            options.detach == 0 or self.request.peer.dialect.tasks == "requested"
        )

    async def _before_handler(self, invocation: Invocation) -> None:
        """Become a task at once, or after some time, as the tool and the revision want it."""
        options = self.options = invocation.task
        if options is None or self.task is not None:
            return
        if self.detaches_at_once:
            await self.detach()
        elif options.detach is not None:
            self._tasks.runtime.start_soon(partial(self._detach_after, options.detach))

    async def _detach_after(self, seconds: float) -> None:
        assert self.answered is not None
        if not await self._tasks.runtime.wait(self.answered, seconds):
            try:
                await self.detach()
            except McpError as exc:
                self._tasks.runtime.warn(f"{self.request.params.name} stays a call: {exc}")

    async def detach(self) -> bool:
        """Make the call a task and answer its request. Return False if it stays a call.

        Raises:
            McpError: there are too many tasks, or the server is shutting down.
        """
        if self.task is not None:
            return True
        if self.options is None or self._finished:
            return False
        runtime = self._tasks.runtime
        if self._detaching is not None:  # by another task of the handler
            await runtime.wait(self._detaching)
            return self.task is not None
        detaching = self._detaching = runtime.new_event()
        try:
            record = self._new_record()
            await self._tasks.create(record, self.request.peer)
            if self._is_answered():  # the client has cancelled the request meanwhile
                self._tasks.discard_record(record)
                return False
            self._become_task(record)
        finally:
            detaching.set()
            self._detaching = None
        return True

    def _is_answered(self) -> bool:
        return self._finished

    def _new_record(self) -> TaskRecord:
        tasks = self._tasks
        request = self.request
        options = self.options
        service = self._service
        assert options is not None
        assert service is not None
        # The extension ignores `task`.
        wish = request.params.task if request.peer.dialect.tasks == "requested" else None
        limits = tasks.records.limits
        ttl = limits.ttl if options.ttl is None else min(options.ttl, limits.max_ttl)
        if wish is not None and wish.ttl is not UNSET:
            ttl = limits.kept_for(wish.ttl)
        now = tasks.runtime.wall_time()
        record = TaskRecord(
            id=new_task_id(tasks.runtime.entropy),
            owner=service.task_owner(request),
            created=now,
            updated=now,
            ttl=ttl,
            tool=request.params.name,
            revision=request.peer.dialect.version,
            quota_key=service.task_quota_key,
            size=estimate_memory(bytes(request.raw)),
        )
        return tasks.with_worker(record, self._call_to_run_again(service))

    def _call_to_run_again(self, service: Service) -> TaskCall | None:
        assert self.options is not None
        if not self.options.rerun:
            return None
        peer = self.request.peer
        return TaskCall(
            params=Raw(bytes(self.request.raw)),
            capabilities=peer.capabilities,  # type: ignore[arg-type] # a client's
            client=peer.info,
            principal=service.principal,
        )

    def _become_task(self, record: TaskRecord) -> None:
        """Answer the request with the task, and drop the references to the conversation."""
        service = self._service
        assert service is not None
        assert self.options is not None
        tasks = self._tasks
        task = self.task = RunningTask(tasks, self, record)
        tasks.add(task)
        lifespan, principal = service.lifespan, service.principal
        key, states = service.rate_key, service.mounted_states
        self.attach(TaskHost(tasks.server, tasks.runtime, lifespan, principal, key, states))
        dialect = self.request.peer.dialect
        limits = tasks.records.limits
        if dialect.tasks == "requested":
            task.channel = TaskChannel(service, self.request.id, record.id)
            notifier_of(service, tasks.records).follow(record)
        result = create_task_result(record, dialect, record.created, limits, self.options.meanwhile)
        self._finished = True
        self._service = None
        service.finish(self.request, result)
        if self.answered is not None:  # otherwise the conversation pumps when it goes on
            service.runtime.pump()
            self.answered.set()

    def attach(self, host: TaskHost) -> None:
        """Let what the handler asks and reports go to the task."""
        collector = self.input_collector
        collector.host = host
        collector.task = self.task

    async def run(self) -> Any:
        """Return the handler's result, or raise what it raised.

        If the call has become a task, store the outcome instead.
        """
        self.is_running = True
        try:
            return await self._run()
        finally:
            self.is_running = False
            self._over = True

    async def _run(self) -> Any:
        while True:
            try:
                result = await super().run()
            except Exception as exc:
                if self.task is None:
                    raise
                returned = await self._ask_for_page(exc)
                if returned:
                    continue
                outcome = self._outcome_of_error(exc)
            else:
                if self.task is None:
                    return result
                outcome = self._outcome_of(result)
            await self.task.finish(outcome, self.request)
            return None

    async def _ask_for_page(self, exc: Exception) -> bool:
        """Show the page of a `UrlElicitationRequired` in the task. Return True to run again."""
        error = single(exc)
        if not isinstance(error, UrlElicitationRequired):
            return False
        try:
            response = self.input_collector.url_elicitation_response(error)
        except Exception:  # noqa: BLE001 - `outcome_of_error` meets it too, and makes the response
            return False
        if not isinstance(response, InputRequiredResult):
            return False
        await self.input_collector.ask_returned(response)
        self._call = self._new_call(None, again=True)
        return True

    def done(self, result: Any) -> None:
        """Send the handler's result, unless the request has its response."""
        if self.task is None and not self._finished:
            super().done(result)

    def failed(self, exc: BaseException) -> None:
        """Send what the peer may know of an exception, or store it."""
        if self.task is None:
            if not self._finished:
                super().failed(exc)
            return
        outcome = self._outcome_of_error(exc)
        self._tasks.runtime.start_soon(partial(self.task.finish, outcome, self.request))

    def dropped(self) -> None:
        if not self.is_running:
            self._tasks.job_ended(self)
        if self.task is None:
            super().dropped()
            self._answered()  # after `done` and `failed` too
            if self._over:  # otherwise its conversation has ended, and the handler soon will
                self.release()
        else:
            self._tasks.discard(self.task)
            self.release()

    def release(self) -> None:
        """Drop the references to the request once the job is over. Idempotent.

        The job is part of reference cycles, which the garbage collector may leave for hundreds of
        calls. Arguments may be long.
        """
        self.request = replace(self.request, params=None, raw=b"")
        self._call = None  # type: ignore[assignment] # the job is over
        self.input_collector = None  # type: ignore[assignment]

    def _answered(self) -> None:
        service, self._service = self._service, None
        if service is not None:
            service.runtime.pump()
        if self.answered is not None:
            self.answered.set()


class TaskCallJob(ConversationJob):
    """The place of a call in its conversation, while a `TaskJob` runs its handler elsewhere."""

    __slots__ = ("_answered", "_inner", "_tasks")

    def __init__(self, inner: TaskJob, tasks: TaskService) -> None:
        super().__init__()
        self._inner = inner
        self._answered = inner.answered = tasks.runtime.new_event()
        self._tasks = tasks
        self.input_collector = inner.input_collector

    def __repr__(self) -> str:
        return f"<TaskCallJob of {self._inner!r}>"

    async def run(self) -> None:
        """Start the handler, and wait until the request has its response."""
        self._tasks.runtime.start_job(self._inner)
        await self._tasks.runtime.wait(self._answered)

    def done(self, result: Any) -> None:
        """Do nothing: the inner job has sent the response."""

    def failed(self, exc: BaseException) -> None:
        """Send an error: the handler could not be started."""
        self._inner.failed(exc)

    def dropped(self) -> None:
        if self._inner.task is None:
            if self._inner.is_running:
                self._tasks.job_stopped(self._inner)
            self._inner.stop()
            self._inner.dropped()
