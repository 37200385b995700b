"""Tasks that a client runs for its server: requests for sampling and elicitation (2025-11-25).

1. The tasks live in memory and end with the connection, since only the server at its other end asks
   for them. Nothing here waits, and no store is needed.
2. A request without `task` is answered like any other. So is a request for a task if the client
   declared no tasks.

Source: basic/utilities/tasks (2025-11-25).
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Final

from msgspec import Raw

from mcp_core import types as t
from mcp_core._errors import Fault, LocalProtocolError
from mcp_core.protocol.jsonrpc._codec import encode
from mcp_core.tasks._record import TaskLimits, TaskRecord, new_task_id
from mcp_core.tasks._states import Cancel, Complete, Fail, TaskExpired, transition
from mcp_core.tasks._views import (
    cancel_task_result,
    create_task_result,
    get_task_result,
    listed_task,
    task_outcome,
    task_status_params,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from mcp_core.protocol.connection._connection import Connection
    from mcp_core.protocol.messages._events import RequestReceived
    from mcp_core.runtime._client_callbacks import CallbackJob
    from mcp_core.tasks._states import TaskAction

__all__ = ["HostedTasks"]

# Tasks of one connection: more than a user or a model can answer. Their results are kept for ten
# minutes if the server doesn't say, and for an hour at most: it has to fetch them on this
# connection.
_LIMITS: Final = TaskLimits(per_principal=64, total=64, ttl=600.0, max_ttl=3600.0)
_STATUS: Final = "notifications/tasks/status"


class HostedTasks:
    """The tasks of one connection.

    Args:
        conn: the connection to the server.
        wall_time: returns the seconds since 1970.
        entropy: returns random bytes.
    """

    def __init__(
        self,
        conn: Connection,
        wall_time: Callable[[], float],
        entropy: Callable[[int], bytes],
    ) -> None:
        self._conn = conn
        self._wall_time = wall_time
        self._entropy = entropy
        self._records: dict[str, TaskRecord] = {}
        self._jobs: dict[str, CallbackJob] = {}
        self._waiting: dict[str, list[RequestReceived]] = {}  # `tasks/result` by task
        self._methods: dict[str, Callable[[RequestReceived, TaskRecord], None]] = {
            "tasks/get": self._get,
            "tasks/result": self._result,
            "tasks/cancel": self._cancel,
        }

    def __repr__(self) -> str:
        return f"<HostedTasks, {len(self._jobs)} of {len(self._records)} under way>"

    def wants_task(self, event: RequestReceived) -> bool:
        """Return True if `event` is a request that runs as a task."""
        method = event.method
        return (
            bool(method.task_needs)
            and getattr(event.params, "task", None) is not None
            and self._conn.config.declares(method.task_needs)
        )

    def start(self, event: RequestReceived, job: CallbackJob) -> TaskRecord | None:
        """Answer `event` with a new task, which `job` runs. Return None if there are too many."""
        self._forget_expired()
        if len(self._records) >= _LIMITS.total:
            text = f"the client has {_LIMITS.total} tasks already, which is the limit"
            self._error(event, Fault.BUSY, text)
            return None
        now = self._wall_time()
        record = TaskRecord(
            id=new_task_id(self._entropy),
            created=now,
            updated=now,
            ttl=_LIMITS.kept_for(event.params.task.ttl),
            tool=event.method.name,
            revision=event.peer.dialect.version,
        )
        self._records[record.id] = record
        self._jobs[record.id] = job
        self._conn.send_result(
            event.id, create_task_result(record, event.peer.dialect, now, _LIMITS)
        )
        return record

    def finish(self, task_id: str, result: t.Result | None, error: t.ErrorData | None) -> None:
        """Store the response from the task `task_id`, and answer the requests that wait for it."""
        self._jobs.pop(task_id, None)
        if error is not None:
            action: TaskAction = Fail(error)
        else:
            assert result is not None
            action = Complete(Raw(encode(result)))
        self._apply(task_id, action)

    def handle_request(self, event: RequestReceived) -> bool:
        """Answer `event` if it is about tasks. Return False if it isn't."""
        name = event.method.name
        if name == "tasks/list":
            self._list(event)
            return True
        answer = self._methods.get(name)
        if answer is None:
            return False
        self._forget_expired()
        record = self._records.get(event.params.task_id)
        if record is None:
            self._error(event, Fault.INVALID_PARAMS, "there is no such task")
        else:
            answer(event, record)
        return True

    def cancel_request(self, event_id: t.RequestId) -> None:
        """Forget a `tasks/result` request that the server has cancelled. The task goes on."""
        for waiting in self._waiting.values():
            for event in waiting:
                if event.id == event_id:
                    waiting.remove(event)
                    # It still needs a response, which is dropped.
                    self._error(event, Fault.INTERNAL, "the request was cancelled")
                    return

    def _get(self, event: RequestReceived, record: TaskRecord) -> None:
        now = self._wall_time()
        self._conn.send_result(event.id, get_task_result(record, event.peer.dialect, now, _LIMITS))

    def _result(self, event: RequestReceived, record: TaskRecord) -> None:
        waiting = self._waiting.setdefault(record.id, [])
        if not record.ended and len(waiting) >= _LIMITS.waiting:
            text = f"{_LIMITS.waiting} requests for this result wait already"
            self._error(event, Fault.BUSY, text)
            return
        waiting.append(event)
        self._answer_waiting(record)

    def _cancel(self, event: RequestReceived, record: TaskRecord) -> None:
        if record.ended:
            text = f"the task has ended: it is {record.status}"
            self._error(event, Fault.INVALID_PARAMS, text)
            return
        cancelled = self._apply(record.id, Cancel("The task was cancelled by request."))
        job = self._jobs.pop(record.id, None)
        if job is not None:
            job.stop()
        now = self._wall_time()
        self._conn.send_result(
            event.id, cancel_task_result(cancelled or record, event.peer.dialect, now, _LIMITS)
        )

    def _list(self, event: RequestReceived) -> None:
        self._forget_expired()
        if event.params.cursor is not None:  # all of them fit on the first page
            self._error(event, Fault.INVALID_PARAMS, "Unknown cursor")
            return
        view = partial(
            listed_task, dialect=event.peer.dialect, now=self._wall_time(), limits=_LIMITS
        )
        listed = [view(record) for record in self._records.values()]
        self._conn.send_result(event.id, t.ListTasksResult(tasks=listed))

    def _apply(self, task_id: str, action: TaskAction) -> TaskRecord | None:
        record = self._records.get(task_id)
        if record is None:
            return None
        now = self._wall_time()
        try:
            changed = transition(record, action, now, _LIMITS)
        except TaskExpired:
            self._forget_expired()
            return None
        if changed is not record:
            self._records[task_id] = changed
            self._answer_waiting(changed)
            peer = self._conn.peer
            if peer is not None:
                params = task_status_params(changed, peer.dialect, now, _LIMITS)
                try:
                    self._conn.send_notification(_STATUS, params)
                except LocalProtocolError:
                    pass  # the connection is closed
        return changed

    def _answer_waiting(self, record: TaskRecord) -> None:
        if not record.ended:
            return
        outcome = task_outcome(record)
        send = self._conn.send_error if isinstance(outcome, t.ErrorData) else self._conn.send_result
        for event in self._waiting.pop(record.id, ()):
            send(event.id, outcome)  # type: ignore[arg-type] # the one that fits was chosen

    def _forget_expired(self) -> None:
        now = self._wall_time()
        for record in list(self._records.values()):
            if now < record.expires:
                continue
            del self._records[record.id]
            job = self._jobs.pop(record.id, None)
            if job is not None:
                job.stop()
            for event in self._waiting.pop(record.id, ()):
                self._error(event, Fault.INVALID_PARAMS, "there is no such task any more")

    def _error(self, event: RequestReceived, fault: Fault, text: str) -> None:
        self._conn.send_error(event.id, t.ErrorData(event.peer.dialect.codes[fault], text))
