"""Following tasks of the server, as steps of calls: polling, answering, and taking the result.

1. The client polls at the interval that the server asks for. A notification about a task only ends
   the wait early: it may never come, come twice, or come before the task is known.
2. A request of the task for input is answered once in the life of the task.
3. In 2025-11-25 `tasks/result` is where the task's requests for input arrive, so it is sent when
   the status is "input_required", and at the end. It takes as long as the task does.

Sources: basic/utilities/tasks (2025-11-25); the extension `io.modelcontextprotocol/tasks`.
"""

from __future__ import annotations

from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from msgspec import UNSET, Raw

from mcp_core import types as t
from mcp_core._errors import (
    CallTimeout,
    LocalProtocolError,
    PeerError,
    RemoteProtocolError,
    TaskCancelled,
)
from mcp_core.client._calls import CallWait, UntimedRequest
from mcp_core.input_requests._kinds import check_input_request, check_response
from mcp_core.jsonrpc._codec import InvalidPayload, encode, reader
from mcp_core.messages._pending import PendingRequest
from mcp_core.runtime._client_callbacks import CallbackJob, InputWait

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from mcp_core.client._calls import CallSteps, PendingCall
    from mcp_core.connection._connection import Connection
    from mcp_core.messages._events import ProgressReceived
    from mcp_core.runtime._client_callbacks import ClientCallbacks
    from mcp_core.runtime._job import Job
    from mcp_core.schema._output_schemas import OutputSchemas

    from ._task import ClientTask

__all__ = ["PollWait", "TaskPoller"]

_CANCELLED: Final = -32603  # as `tasks/result` of a cancelled task is answered
_read_result: Final[Callable[[Raw | bytes], t.CallToolResult]] = reader(t.CallToolResult)


class TaskPoller:
    """Follows the tasks that the server runs for this client.

    Args:
        conn: the connection to the server.
        callbacks: respond to requests for input.
        start_job: runs a job in a task of the client.
        clock: returns the time now, monotonic, in seconds.
        sleep: waits for a number of seconds.
        outputs: the output schemas of the tools, for results.
    """

    def __init__(
        self,
        conn: Connection,
        callbacks: ClientCallbacks,
        start_job: Callable[[Job], object],
        clock: Callable[[], float],
        sleep: Callable[[float], Awaitable[object]],
        outputs: OutputSchemas,
    ) -> None:
        self._conn = conn
        self._callbacks = callbacks
        self._start_job = start_job
        self._clock = clock
        self._sleep = sleep
        self._outputs = outputs
        self._waits: dict[str, list[PollWait]] = {}

    def __repr__(self) -> str:
        return f"<TaskPoller, {len(self._waits)} tasks>"

    def notify(self, params: t.TaskStatusParams) -> None:
        """End the waits for a task that has changed, as a notification says (rule 1)."""
        for wait in list(self._waits.get(params.task_id, ())):
            wait.end()

    def follow(self, task: ClientTask) -> CallSteps[t.CallToolResult]:
        """Follow a task to its end, and return its result. Abandoning this does not cancel it.

        Raises:
            PeerError: the call failed, or the server has no such task any more.
            CallTimeout: the task is over its time to live.
            RemoteProtocolError: what the server sent about the task is invalid, or the result does
                not fit the tool's output schema.
        """
        while task.final is None:
            yield from self.advance(task)
            if task.ended and task.final is None:
                task.final = yield from self._take_result(task)
        return task.final

    def follow_own(self, task: ClientTask) -> CallSteps[t.CallToolResult]:
        """Follow a task as `follow` does; cancel it if the call fails here or is abandoned."""
        try:
            return (yield from self.follow(task))
        except PeerError:
            raise  # the server has ended it, or does not know it
        except BaseException:  # `GeneratorExit`, if the caller gave up
            if not task.ended:
                self._cancel_soon(task)
            raise

    def refresh(self, task: ClientTask) -> CallSteps[None]:
        """Request the state of a task once."""
        result: t.GetTaskResult = yield "tasks/get", t.GetTaskParams(task_id=task.id)
        if result.task_id != task.id:
            raise RemoteProtocolError("tasks/get: the server has sent the state of another task")
        task.update(result)
        if task.ended or task.status == "input_required":
            task.outcome = result

    def cancel(self, task: ClientTask) -> CallSteps[None]:
        """Cancel a task, unless it has ended."""
        if task.ended:
            return
        try:
            task.update((yield "tasks/cancel", t.CancelTaskParams(task_id=task.id)))
        except PeerError:
            # It may have ended by now, which 2025-11-25 answers with an error.
            yield from self.refresh(task)
            if not task.ended:
                raise

    def advance(self, task: ClientTask) -> CallSteps[None]:
        """Wait until the server was asked once more, and answer what the task asks for."""
        if task.ended:
            return
        if task.status == "input_required" and self._conn.peer is not None:
            if self._conn.peer.dialect.tasks == "requested":
                yield from self._take_early(task)
                return
            if task.outcome is None:  # the state came with a notification, or from the creation
                yield from self.refresh(task)
            yield from self._answer(task)
        if task.ttl is not None and self._clock() > task.began + task.ttl:
            raise CallTimeout(f"the task is over its time to live of {task.ttl:g} s")
        yield PollWait(self, task)
        yield from self.refresh(task)

    def add_wait(self, wait: PollWait, task_id: str) -> CallbackJob:
        """Begin to sleep for a wait, and let `notify` end it."""
        self._waits.setdefault(task_id, []).append(wait)
        job = CallbackJob(partial(self._sleep, wait.seconds), lambda result, error: wait.end())
        self._start_job(job)
        return job

    def remove_wait(self, wait: PollWait, task_id: str) -> None:
        """Forget a wait that has ended."""
        waits = self._waits[task_id]
        waits.remove(wait)
        if not waits:
            del self._waits[task_id]

    def _answer(self, task: ClientTask) -> CallSteps[None]:
        """Answer the requests for input of a task of the extension, as far as they are new.

        Raises:
            RemoteProtocolError: a key was used before for another request, we did not declare a
                capability, or there are too many requests.
            McpError: a callback refuses to sample or to list the roots, for which there is no
                other response.
        """
        requests = (task.outcome.input_requests if task.outcome is not None else None) or {}
        task.outcome = None
        config = self._conn.config
        if len(requests) > config.limits.in_flight:
            raise RemoteProtocolError(f"the task asks {len(requests)} questions at once")
        new = {}
        for key, request in requests.items():
            digest = encode(request)
            if task.answered.setdefault(key, digest) != digest:
                raise RemoteProtocolError("the task uses a key of an earlier request for input")
            if digest is task.answered[key]:
                check_input_request(request, config.capabilities)
                new[key] = request
        if not new:
            return
        responses = yield InputWait(
            self._start_job,
            {key: partial(self._callbacks.respond_in_retry, each) for key, each in new.items()},
        )
        assert self._conn.peer is not None
        dialect = self._conn.peer.dialect
        encoded = {
            key: Raw(dialect.encode(check_response(request, responses[key])))
            for key, request in new.items()
        }
        yield "tasks/update", t.UpdateTaskParams(task_id=task.id, input_responses=encoded)

    def _take_result(self, task: ClientTask) -> CallSteps[t.CallToolResult]:
        """Return the result of a task: that of `tasks/get`, or of `tasks/result`."""
        assert self._conn.peer is not None
        if task.status == "cancelled":
            raise _cancelled(task)
        if self._conn.peer.dialect.tasks == "requested":
            raw: Any = yield from self._request_result(task)
        else:
            if task.outcome is None:
                yield from self.refresh(task)
            outcome = task.outcome
            assert outcome is not None
            if outcome.error is not None:
                error = outcome.error
                raise PeerError(error.code, error.message, error.data)
            raw = outcome.result
        if raw is UNSET:
            raise RemoteProtocolError(f"the task is {task.status}, and has no result")
        try:
            result = _read_result(raw)
        except InvalidPayload as exc:
            raise RemoteProtocolError(f"the result of the task is invalid: {exc}") from None
        self._outputs.check(task.tool, result)
        return result

    def _take_early(self, task: ClientTask) -> CallSteps[None]:
        """Take the result of a task of 2025-11-25 that has not ended (rule 3)."""
        try:
            result = yield from self._take_result(task)
        except PeerError:
            if not task.ended:
                raise
            return  # who follows the task asks for the result again, and gets the error
        task.final = result
        # The status is not asked for again: it follows from the result.
        task.status, task.message = "failed" if result.is_error else "completed", None

    def _request_result(self, task: ClientTask) -> CallSteps[Any]:
        """Request the result of a task of 2025-11-25, and wait for it."""
        params = t.GetTaskPayloadParams(task_id=task.id)
        try:
            return (yield UntimedRequest(("tasks/result", params)))
        except PeerError as exc:
            # It is the error of the call, or the task was cancelled meanwhile.
            with suppress(PeerError):
                yield from self.refresh(task)
            if task.status == "cancelled":
                raise _cancelled(task) from exc
            raise

    def _cancel_soon(self, task: ClientTask) -> None:
        params = t.CancelTaskParams(task_id=task.id)
        try:
            self._conn.send_request("tasks/cancel", params, token=_Ignored())
        except LocalProtocolError:
            return  # the connection is closed, or the server cannot cancel


def _cancelled(task: ClientTask) -> TaskCancelled:
    return TaskCancelled(_CANCELLED, task.message or "the task was cancelled")


class PollWait(CallWait):
    """The wait before the next `tasks/get`, which a notification ends early."""

    pauses_timeout = True
    name = "tasks/get"

    def __init__(self, poller: TaskPoller, task: ClientTask) -> None:
        self.seconds = task.interval
        self._task_id = task.id
        self._poller = poller
        self._call: PendingCall[Any] | None = None
        self._job: CallbackJob

    def __repr__(self) -> str:
        return f"<PollWait of {self.seconds:g} s>"

    def begin(self, call: PendingCall[Any]) -> None:
        self._call = call
        self._job = self._poller.add_wait(self, self._task_id)

    def stop(self) -> None:
        self._call = None
        self._poller.remove_wait(self, self._task_id)
        self._job.abandon()

    def end(self) -> None:
        """End the wait. Do nothing if it has ended."""
        if self._call is not None:
            self._call.end(None, None)


class _Ignored(PendingRequest):
    """A request whose response no task waits for."""

    def end(self, result: Any, error: BaseException | None) -> None:
        """Do nothing: a task that cannot be cancelled ends by itself."""

    def on_progress(self, event: ProgressReceived) -> None:
        raise AssertionError("the request has no progress token")  # pragma: no cover
