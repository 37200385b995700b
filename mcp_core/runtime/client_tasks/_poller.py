"""Following tasks of the server, as steps of calls: polling, answering, and taking the result.

1. The client polls at the interval that the server asks for, or slowly if it is subscribed to the
   task (`_listener.py`). A notification about a task only ends the wait early: it may never come,
   come twice, or come before the task is known.
2. One call at a time takes the next step of a task, however many wait for it. So each request of
   the task for input is answered once, and a call that is given up leaves the step to another one.
3. A request about a task may be repeated. If it was lost, or failed for a temporary reason, it is
   sent again, a few times in a row. The task itself goes on at the server.
4. In 2025-11-25 `tasks/result` is where the task's requests for input arrive, so it is sent when
   the status is "input_required", and at the end. It takes as long as the task does.

Sources: basic/utilities/tasks (2025-11-25); the extension `io.modelcontextprotocol/tasks`.
"""

from __future__ import annotations

from contextlib import suppress
from functools import partial
from hashlib import sha256
from typing import TYPE_CHECKING, Any, Final
from weakref import WeakValueDictionary

import msgspec
from msgspec import UNSET, Raw

from mcp_core import types as t
from mcp_core._errors import (
    CallTimeout,
    ConnectionLost,
    Fault,
    LocalProtocolError,
    PeerError,
    RemoteProtocolError,
    TaskCancelled,
)
from mcp_core.client._calls import CallWait, UntimedRequest
from mcp_core.protocol.input_requests._kinds import check_input_request, check_response
from mcp_core.protocol.jsonrpc._codec import InvalidPayload, reader
from mcp_core.protocol.messages._pending import IgnoredRequest
from mcp_core.protocol.messages._responses import read_leniently
from mcp_core.runtime._callback_queue import CallbackQueue
from mcp_core.runtime._client_callbacks import CallbackJob, InputWait
from mcp_core.tasks._record import FINAL_STATUSES

from ._listener import TaskListener
from ._task import ClientTask

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Coroutine, Mapping

    from mcp_core.client._calls import CallOptions, CallSteps, PendingCall
    from mcp_core.client._status import ConnectionStatus
    from mcp_core.protocol.connection._connection import Connection
    from mcp_core.protocol.messages._events import ProgressReceived, TaskCreated
    from mcp_core.protocol.revisions._dialects import Dialect
    from mcp_core.protocol.schema._output_schemas import OutputSchemas
    from mcp_core.runtime._client_callbacks import ClientCallbacks
    from mcp_core.runtime._job import Job
    from mcp_core.runtime._listen import SubscriptionClient

    from ._task import TaskReference

__all__ = ["PollWait", "TaskPoller", "TaskProgress"]

_CANCELLED: Final = -32603  # the code of a `tasks/result` error for a cancelled task
# Requests about a task that may fail in a row. With the delays below, a server has half a minute or
# more to restart.
_MAX_FAILURES: Final = 5
_MAX_RETRY_DELAY: Final = 30.0  # seconds, unless the server asks for a longer interval
# Input requests in a task's life. No user answers so many; their digests take 64 KiB.
_MAX_REQUESTS: Final = 1_000
# A task that hasn't ended after two polls is worth a subscription.
_POLLS_BEFORE_LISTENING: Final = 2
# Seconds between polls of a task whose states the server sends. A notification may be lost.
_LISTENING_INTERVAL: Final = 30.0

# The options of a call that also apply to the requests about its task.
_KEPT: Final = ("timeout", "problems", "check_output")
_read_result: Final[Callable[[Raw | bytes], t.CallToolResult]] = reader(t.CallToolResult)
# Sorted, because a server that keeps a form in a hash table may write it in another order.
_canonical: Final = msgspec.json.Encoder(order="sorted").encode


class TaskPoller:
    """Follows the tasks that the server runs for this client.

    Args:
        conn: the connection to the server.
        status: its status.
        callbacks: respond to requests for input.
        start_job: runs a job in one of the client's tasks.
        register: lets a call end with the connection.
        clock: returns the time now, monotonic, in seconds.
        sleep: waits for a number of seconds.
        outputs: the tools' output schemas, for results.
        subscriptions: returns the client's subscriptions.
        call: runs the steps of a call.
        log_error: logs an error that ends no call.
        report: logs what is wrong with a result, and adds it to what the caller gets. It is called
            with the call's options, too.
    """

    def __init__(
        self,
        conn: Connection,
        status: ConnectionStatus,
        callbacks: ClientCallbacks,
        start_job: Callable[[Job], object],
        register: Callable[[PendingCall[Any]], object],
        clock: Callable[[], float],
        sleep: Callable[[float], Awaitable[object]],
        outputs: OutputSchemas,
        subscriptions: Callable[[], SubscriptionClient],
        call: Callable[[CallSteps[Any], CallOptions], Coroutine[Any, Any, Any]],
        log_error: Callable[[str, BaseException], object],
        report: Callable[[str, CallOptions], object],
    ) -> None:
        self._conn = conn
        self._status = status
        self._callbacks = callbacks
        self._start_job = start_job
        self._register = register
        self._clock = clock
        self._sleep = sleep
        self._outputs = outputs
        self._listener = TaskListener(subscriptions, clock)
        self._call = call
        self._log_error = log_error
        self._report = report
        # By id: the tasks that a caller keeps or follows.
        self._tasks: WeakValueDictionary[str, ClientTask] = WeakValueDictionary()

    def __repr__(self) -> str:
        return f"<TaskPoller, {len(self._tasks)} tasks>"

    def add(self, task: ClientTask) -> None:
        """Let notifications about a task reach it, and `find` return it."""
        self._tasks[task.id] = task

    def find(self, reference: TaskReference, timeout: float | None) -> ClientTask:
        """Return the `ClientTask` for a reference: the one that a caller still has, or a new one.

        `timeout` is in seconds, for each response about a new one.
        """
        found = self._tasks.get(reference.id)
        if found is not None:
            return found
        state = t.Task(
            task_id=reference.id,
            status="working",
            created_at=reference.created,
            last_updated_at=reference.created,
            ttl=reference.ttl,
        )
        return self._new_task(state, reference.tool, None, {"timeout": timeout})

    def start(self, created: TaskCreated, tool: str, options: CallOptions) -> ClientTask:
        """Return the task that a call of `tool` has become. Its progress is still reported."""
        task = self._created_task(created, tool, options)
        progress = options.get("progress")
        if progress is None:
            created.redirect_progress(None)
        else:
            log_error = partial(self._log_error, "progress failed")
            created.redirect_progress(TaskProgress(progress, self._start_job, log_error))
            task.end_progress = partial(created.redirect_progress, None)
        return task

    def ended_task(self, result: t.CallToolResult, tool: str) -> ClientTask:
        """Return a task that has ended, for a call that was answered with its result at once."""
        state = t.Task(task_id="", status="completed", created_at="", last_updated_at="")
        task = self._new_task(state, tool)
        task.final = result
        return task

    def follow_created(
        self, created: TaskCreated, tool: str, options: CallOptions
    ) -> CallSteps[t.CallToolResult]:
        """Follow the task that a call of `tool` has become, as `follow_own` does."""
        task = self._created_task(created, tool, options)
        task.end_progress = partial(created.redirect_progress, None)
        return (yield from self.follow_own(task))

    def _created_task(self, created: TaskCreated, tool: str, options: CallOptions) -> ClientTask:
        meanwhile = (created.meta or {}).get(t.META_IMMEDIATE_RESPONSE)
        kept: Any = {name: options.get(name) for name in _KEPT if name in options}
        task = self._new_task(
            created.task, tool, meanwhile if isinstance(meanwhile, str) else None, kept
        )
        self.add(task)
        return task

    def _new_task(
        self,
        state: t.Task,
        tool: str,
        meanwhile: str | None = None,
        options: CallOptions | None = None,
    ) -> ClientTask:
        version = self._dialect.version
        return ClientTask(self, self._call, state, tool, version, self._clock(), meanwhile, options)

    def notify(self, params: t.TaskStatusParams) -> None:
        """End the wait for a task that has changed, as a notification says (rule 1)."""
        task = self._tasks.get(params.task_id)
        if task is not None and not task.knows(params):
            task.wake()

    def follow(self, task: ClientTask) -> CallSteps[t.CallToolResult]:
        """Follow a task to its end, and return its result. Abandoning this doesn't cancel it.

        Raises:
            TaskCancelled: the task was cancelled.
            PeerError: the call failed, or the server has no such task any more.
            CallTimeout: the task is over its time to live.
            RemoteProtocolError: what the server sent about the task is invalid.
            InvalidToolResult: the result doesn't fit the tool's output schema.
        """
        while not task.settled:
            yield from self.advance(task)
        if task.final is not None:
            return task.final
        if task.error is not None:
            raise PeerError(task.error.code, task.error.message, task.error.data)
        raise TaskCancelled(_CANCELLED, task.message or "the task was cancelled")

    def follow_own(self, task: ClientTask) -> CallSteps[t.CallToolResult]:
        """Follow a task as `follow` does; cancel it if the call fails here or is abandoned."""
        try:
            return (yield from self.follow(task))
        except BaseException as exc:  # `GeneratorExit`, if the caller gave up
            unknown = isinstance(exc, PeerError) and exc.code == self._code(Fault.INVALID_PARAMS)
            if not (task.ended or unknown):
                self._cancel_soon(task)
            raise
        finally:
            task.end_progress()
            self._listener.discard(task)

    def advance(self, task: ClientTask) -> CallSteps[None]:
        """Take the next step of a task: wait and poll, respond to it, or take its result.

        If another call takes it, wait until that has ended or was given up (rule 2).
        """
        if task.settled:
            return
        if task.waiting is not None:
            yield StepWait(task.waiting, self._register)
            return
        waiting: list[PendingCall[Any]] = []
        task.waiting = waiting
        try:
            yield from self._repeatable_step(task)
        finally:
            task.waiting = None
            if task.ended:
                self._listener.discard(task)
            for call in waiting.copy():
                call.end(None, None)

    def refresh(self, task: ClientTask) -> CallSteps[None]:
        """Request the state of a task once."""
        result: t.GetTaskResult = yield "tasks/get", t.GetTaskParams(task_id=task.id)
        if result.task_id != task.id:
            raise RemoteProtocolError("tasks/get: the server has sent the state of another task")
        task.polls += 1
        task.update(result)
        if task.ended:
            task.wake()

    def cancel(self, task: ClientTask) -> CallSteps[None]:
        """Cancel a task, unless it has ended."""
        if task.ended:
            return
        try:
            result: t.CancelTaskResult = yield "tasks/cancel", t.CancelTaskParams(task_id=task.id)
        except PeerError:
            # It may have ended by now, which 2025-11-25 answers with an error.
            yield from self.refresh(task)
            if task.status not in FINAL_STATUSES:
                raise
            return
        if result.task_id not in (None, task.id):
            raise RemoteProtocolError("tasks/cancel: the server has sent the state of another task")
        task.update(result)
        task.wake()

    # -- Steps -----------------------------------------------------------------------------------

    def _repeatable_step(self, task: ClientTask) -> CallSteps[None]:
        """Take a step. After a temporary failure, wait, so that the caller repeats the step."""
        self._status.require_alive()
        try:
            yield from self._step(task)
            task.failures = 0
        except (ConnectionLost, PeerError, RemoteProtocolError) as exc:
            task.failures += 1
            if task.failures > _MAX_FAILURES or not self._may_pass(exc):
                raise
            delay = task.interval * (2.0**task.failures - 1)
            yield self._pause(task, min(delay, max(task.interval, _MAX_RETRY_DELAY)))

    def _step(self, task: ClientTask) -> CallSteps[None]:
        if self._dialect.tasks == "requested" and (task.ended or task.status == "input_required"):
            yield from self._request_result(task)
        elif task.ended:
            yield from self._take_outcome(task)
        elif task.status == "input_required" and task.latest is None:
            yield from self.refresh(task)  # the requests for input aren't known yet
        else:
            if task.latest is not None:
                yield from self._answer(task, task.latest.input_requests or {})
            yield self._pause(task, self._poll_interval(task))
            if not task.ended:  # as a refresh by another call may have found
                yield from self.refresh(task)

    def _poll_interval(self, task: ClientTask) -> float:
        """Return the seconds until the next poll. Subscribe to the states of a longer task."""
        if self._dialect.tasks != "extension" or task.polls < _POLLS_BEFORE_LISTENING:
            return task.interval
        self._listener.add(task)
        if self._listener.covers(task):
            return max(task.interval, _LISTENING_INTERVAL)
        return task.interval

    def _pause(self, task: ClientTask, seconds: float) -> PollWait:
        """Return the wait before the next request.

        Raises:
            CallTimeout: the task is over its time to live.
        """
        left = task.seconds_left(self._clock())
        if left is None:
            return PollWait(self, task, seconds)
        if left <= 0:
            raise CallTimeout(f"the task is over its time to live of {task.ttl:g} s")
        return PollWait(self, task, min(seconds, left))

    def _answer(self, task: ClientTask, requests: Mapping[str, t.InputRequest]) -> CallSteps[None]:
        """Respond to the new input requests of a task (extension).

        Raises:
            RemoteProtocolError: a key was used before for another request, we did not declare a
                capability, or there are too many requests.
            McpError: a callback refuses to sample or to list the roots, for which there is no
                other response.
        """
        config = self._conn.config
        if len(requests) > config.limits.in_flight:
            raise RemoteProtocolError(f"the task asks {len(requests)} questions at once")
        new: dict[str, t.InputRequest] = {}
        digests: dict[bytes, bytes] = {}
        for key, request in requests.items():
            digest = sha256(_canonical(request)).digest()
            name = sha256(key.encode()).digest()
            known = task.answered.get(name)
            if known is None:
                check_input_request(request, config.capabilities)
                new[key] = request
                digests[name] = digest
            elif known != digest:
                raise RemoteProtocolError("the task uses a key of an earlier request for input")
        if len(task.answered) + len(new) > _MAX_REQUESTS:
            raise RemoteProtocolError(f"the task asks more than {_MAX_REQUESTS} questions")
        if new:
            responses = yield InputWait(
                self._start_job,
                {key: partial(self._callbacks.respond_in_retry, each) for key, each in new.items()},
            )
            for key, request in new.items():
                response = check_response(request, responses[key])
                task.responses[key] = Raw(self._dialect.encode(response))
            task.answered |= digests
        if task.responses:  # including an earlier step's, if the server hasn't confirmed them
            params = t.UpdateTaskParams(task_id=task.id, input_responses=task.responses)
            yield "tasks/update", params
            task.responses = {}

    def _take_outcome(self, task: ClientTask) -> CallSteps[None]:
        """Take the result or the error of an ended task (extension)."""
        if task.latest is None:  # the end wasn't learned from `tasks/get`
            yield from self.refresh(task)
        latest = task.latest
        if latest is None:
            raise RemoteProtocolError(f"the task was {task.status}, and is not any more")
        if task.status == "failed":
            if latest.error is None:
                raise RemoteProtocolError("the task is failed, and has no error")
            task.error = latest.error
        elif latest.result is UNSET:
            raise RemoteProtocolError("the task is completed, and has no result")
        else:
            task.final = self._decode(task, latest.result)

    def _request_result(self, task: ClientTask) -> CallSteps[None]:
        """Request the result of a task of 2025-11-25, and wait for it."""
        params = t.GetTaskPayloadParams(task_id=task.id)
        left = task.seconds_left(self._clock())
        try:
            raw: Raw = yield (
                ("tasks/result", params)
                if task.ended
                else UntimedRequest("tasks/result", params, left if left is None else max(left, 0))
            )
        except PeerError as exc:
            # Either the call failed, or the task was cancelled, or this request itself failed.
            with suppress(PeerError):
                yield from self.refresh(task)
            if task.status not in ("failed", "cancelled"):
                raise
            task.end_with(t.ErrorData(exc.code, exc.message, exc.data))
        else:
            task.end_with(self._decode(task, raw))

    # -- Details ---------------------------------------------------------------------------------

    def _decode(self, task: ClientTask, raw: Raw) -> t.CallToolResult:
        try:
            result = _read_result(raw)
        except InvalidPayload as exc:
            try:
                result, problems = read_leniently(t.CallToolResult, raw, keeps_unknown=True)
            except InvalidPayload:
                raise RemoteProtocolError(f"the result of the task is invalid: {exc}") from None
            for problem in problems.values():
                self._report(f"the result of tool {task.tool!r}: {problem}", task.options)
        self._outputs.check(task.tool, result, task.options)
        return result

    @property
    def _dialect(self) -> Dialect:
        assert self._conn.peer is not None
        return self._conn.peer.dialect

    def _code(self, fault: Fault) -> int:
        return self._dialect.codes[fault]

    def _may_pass(self, error: Exception) -> bool:
        """Return True if a request that failed with `error` may be repeated (rule 3)."""
        if isinstance(error, ConnectionLost):
            with suppress(ConnectionLost):
                self._status.require_alive()
                return True  # only the HTTP request was lost
            return False
        if isinstance(error, PeerError):
            return error.code in (self._code(Fault.INTERNAL), self._code(Fault.BUSY))
        return isinstance(error, RemoteProtocolError) and error.fault is Fault.BUSY

    def _cancel_soon(self, task: ClientTask) -> None:
        params = t.CancelTaskParams(task_id=task.id)
        with suppress(LocalProtocolError):  # the connection is closed, or the server cannot cancel
            self._conn.send_request("tasks/cancel", params, token=IgnoredRequest())


class PollWait(CallWait):
    """The wait before the next request about a task, which a notification ends early."""

    pauses_timeout = True
    name = "tasks/get"

    def __init__(self, poller: TaskPoller, task: ClientTask, seconds: float) -> None:
        self.seconds = seconds
        self._task = task
        self._poller = poller
        self._call: PendingCall[Any] | None = None
        self._job: CallbackJob

    def __repr__(self) -> str:
        return f"<PollWait of {self.seconds:g} s>"

    def begin(self, call: PendingCall[Any]) -> None:
        poller = self._poller
        poller._register(call)
        self._call = call
        self._task.wake = self.end
        self._job = CallbackJob(
            partial(poller._sleep, self.seconds), lambda result, error: self.end()
        )
        poller._start_job(self._job)

    def stop(self) -> None:
        self._call = None
        self._task.wake = _nothing
        self._job.abandon()

    def end(self) -> None:
        """End the wait. Do nothing if it has ended."""
        if self._call is not None:
            self._call.end(None, None)


class StepWait(CallWait):
    """The wait of a call while another one takes the next step of the task."""

    pauses_timeout = True
    name = "tasks/get"

    def __init__(
        self, waiting: list[PendingCall[Any]], register: Callable[[PendingCall[Any]], object]
    ) -> None:
        self._waiting = waiting
        self._register = register
        self._call: PendingCall[Any]

    def begin(self, call: PendingCall[Any]) -> None:
        self._call = call
        self._register(call)
        self._waiting.append(call)

    def stop(self) -> None:
        self._waiting.remove(self._call)


def _nothing() -> None:
    """Wake no call: none waits for the task."""


class TaskProgress(IgnoredRequest):
    """The `progress` callback of a started task, whose call is over (2025-11-25, PROG-6).

    Args:
        callback: the callback.
        start_job: runs a job in one of the client's tasks.
        on_error: gets what the callback raises.
    """

    def __init__(
        self,
        callback: Callable[[float, float | None, str | None], object],
        start_job: Callable[[Job], object],
        on_error: Callable[[BaseException], object],
    ) -> None:
        super().__init__()
        self._callbacks = CallbackQueue(callback, start_job, on_error)
        self._report = on_error

    def on_progress(self, event: ProgressReceived) -> None:
        try:
            self._callbacks.call(event.progress, event.total, event.message)
        except Exception as exc:  # noqa: BLE001 - no call of the user's is there to raise it
            self._report(exc)
