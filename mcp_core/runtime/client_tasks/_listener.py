"""The subscription of a client to the tasks that it follows (2026-07-28).

1. There is one `subscriptions/listen` request for all of them. Its filter cannot be changed, so a
   larger one replaces it when tasks join, at most once a second. The smaller one is closed when
   the server has accepted the larger one.
2. It only makes polling slower. A server that doesn't accept it isn't asked again.

Source: the extension `io.modelcontextprotocol/tasks`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final
from weakref import WeakSet

from mcp_core.protocol.subscriptions._server import Change

if TYPE_CHECKING:
    from collections.abc import Callable

    from mcp_core.protocol.subscriptions._client import ClientSubscription
    from mcp_core.runtime._listen import SubscriptionClient

    from ._task import ClientTask

__all__ = ["TaskListener"]

# Seconds. If many tasks are started in a row, most of them join in one replacement.
_REPLACE_INTERVAL: Final = 1.0


class TaskListener:
    """Subscribes to the states of tasks.

    Args:
        subscriptions: returns the client's subscriptions.
        clock: returns the time now, monotonic, in seconds.
    """

    def __init__(
        self, subscriptions: Callable[[], SubscriptionClient], clock: Callable[[], float]
    ) -> None:
        self._subscriptions = subscriptions
        self._clock = clock
        self._tasks: WeakSet[ClientTask] = WeakSet()
        self._current: ClientSubscription | None = None
        self._previous: ClientSubscription | None = None
        self._opened_at = 0.0
        self._refused = False

    def __repr__(self) -> str:
        return f"<TaskListener, {len(self._tasks)} tasks>"

    def add(self, task: ClientTask) -> None:
        """Subscribe to a task, now or in a later call, unless the server doesn't accept that."""
        self._tasks.add(task)
        current = self._current
        if current is not None and current.settled:
            self._close_previous()
            if current.over or not any(change.task for change in current.honoured):
                self._refused = True
                self._close_current()
        now = self._clock()
        wanted = current is None or not current.covers(Change(task=task.id))
        # A subscription that is being opened is waited for: its outcome says whether to go on.
        ready = current is None or (current.settled and now >= self._opened_at + _REPLACE_INTERVAL)
        if wanted and ready and not self._refused:
            self._previous = self._current
            self._opened_at = now
            changes = tuple(Change(task=each.id) for each in self._tasks)
            self._current = self._subscriptions().open(changes)

    def discard(self, task: ClientTask) -> None:
        """Forget a task that has ended, or isn't followed any more."""
        self._tasks.discard(task)
        if not self._tasks:
            self._close_previous()
            self._close_current()

    def covers(self, task: ClientTask) -> bool:
        """Return True if the server sends each state of a task."""
        change = Change(task=task.id)
        return any(
            each is not None
            and each.settled
            and not each.over
            and each.id is not None  # None while a lost subscription is opened again
            and change in each.honoured
            for each in (self._current, self._previous)
        )

    def _close_previous(self) -> None:
        if self._previous is not None:
            self._subscriptions().send_close(self._previous)
            self._previous = None

    def _close_current(self) -> None:
        if self._current is not None:
            self._subscriptions().send_close(self._current)
            self._current = None
