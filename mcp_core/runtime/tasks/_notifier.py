"""Notifications of one connection about the states of tasks.

1. In 2025-11-25 the session that created a task is notified of its states, until the task or the
   session ends. In 2026-07-28 a client is notified of the tasks that it listens to.
2. A state is sent as the whole state. Of several that wait, only the last one is sent.
3. The connection's service is referenced weakly: a task may outlive its connection by hours.

Sources: basic/utilities/tasks, Task Status Notification (2025-11-25); the extension
`io.modelcontextprotocol/tasks`, Notifications.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING
from weakref import ref

from mcp_core.protocol.revisions._dialects import DIALECTS
from mcp_core.tasks._views import task_status_params

if TYPE_CHECKING:
    from mcp_core.runtime._service import Service
    from mcp_core.tasks._record import TaskKey, TaskRecord

    from ._records import RecordObserver, TaskRecords

__all__ = ["TaskNotifier", "notifier_of"]


def notifier_of(service: Service, records: TaskRecords) -> TaskNotifier:
    """Return a connection's notifier."""
    notifier = service.task_notifier
    if notifier is None:
        notifier = service.task_notifier = TaskNotifier(service, records)
    assert isinstance(notifier, TaskNotifier)
    return notifier


@dataclass(slots=True)
class _Followed:
    """A task whose states are sent: the last one that the client has, and its serial number."""

    observer: RecordObserver
    serial: int
    seen: tuple[object, ...]


class TaskNotifier:
    """Sends the states of tasks on the connection of `service`. Close it with the connection.

    Args:
        service: the connection's server side.
        records: the tasks.
    """

    def __init__(self, service: Service, records: TaskRecords) -> None:
        self._service = ref(service)
        self._records = records
        self._followed: dict[TaskKey, _Followed] = {}
        self._unsent: dict[TaskKey, TaskRecord] = {}

    def __repr__(self) -> str:
        return f"<TaskNotifier of {len(self._followed)} tasks, {len(self._unsent)} unsent>"

    def follow(self, record: TaskRecord) -> None:
        """Send each later state of a task. The client already has the present state."""
        self._observe(record.key, record.serial, _visible(record))

    def listen(self, keys: list[TaskKey]) -> None:
        """Send the present states of tasks that the client listens to, and each later state.

        The present state is sent too, since the client missed all changes before it listened.
        """
        service = self._service()
        assert service is not None
        for key in list(self._followed):  # the listen requests of some have ended
            if not service.conn.is_subscribed_to_task(key.id):
                self._discard(key)
        for key in keys:
            self._observe(key, 0, ())
            self._records.changed(key)

    def close(self) -> None:
        """Send nothing more. Idempotent."""
        for key in list(self._followed):
            self._discard(key)

    def _observe(self, key: TaskKey, serial: int, seen: tuple[object, ...]) -> None:
        if key in self._followed:
            observer = self._followed[key].observer
        else:
            observer = partial(self._on_record, key)
            self._records.observe(key, observer)
        self._followed[key] = _Followed(observer, serial, seen)

    def _discard(self, key: TaskKey) -> None:
        self._records.stop_observing(key, self._followed.pop(key).observer)
        self._unsent.pop(key, None)

    def _on_record(self, key: TaskKey, record: TaskRecord | None) -> None:
        service = self._service()
        if record is None or service is None:
            self._discard(key)
            return
        unsent = self._unsent.get(key)
        if unsent is not None and unsent.serial >= record.serial:
            return
        self._unsent[key] = record
        # Not now: no state of a task that ends at once may arrive before its `CreateTaskResult`.
        service.runtime.call_soon(self._send)

    def _send(self) -> None:
        service = self._service()
        if service is None:
            return
        now = service.runtime.wall_time()
        sent = False
        unsent, self._unsent = self._unsent, {}
        for key, record in unsent.items():
            followed = self._followed[key]
            if record.serial <= followed.serial:
                continue  # read before a change, and published after it
            seen, followed.seen = followed.seen, _visible(record)
            followed.serial = record.serial
            if followed.seen == seen:
                continue  # only the lease has changed
            # A client finds the tasks of its own revision only.
            dialect = DIALECTS[record.revision]
            params = task_status_params(record, dialect, now, self._records.limits)
            subscribed = service.conn.send_task_status(params)
            sent = sent or subscribed
            if record.ended or not subscribed:
                self._discard(key)
        if sent:
            service.runtime.pump()


def _visible(record: TaskRecord) -> tuple[object, ...]:
    """Return what a client sees of a record, or what changes with it."""
    return record.updated, record.status, record.message, tuple(record.open_requests)
