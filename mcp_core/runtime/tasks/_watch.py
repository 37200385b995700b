"""The changed keys that a `TaskStore.watch` has yet to yield."""

from __future__ import annotations

from collections import OrderedDict
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Callable

    from mcp_core.tasks import TaskKey

    from ._runtime import TaskRuntime

__all__ = ["TaskWatch"]

# A reader that is this far behind reads everything again, which costs no more than reading so many
# keys one by one.
_MAX_KEYS: Final = 1_000


class TaskWatch:
    """An iterator of changed keys, each once until it is read. Only one task may read it.

    Args:
        runtime: waits for the next key.
        poll: called while nothing changes, every `interval` seconds; it may call `add`.
        interval: None never to call `poll`.
    """

    def __init__(
        self,
        runtime: TaskRuntime,
        poll: Callable[[], object] = lambda: None,
        interval: float | None = None,
    ) -> None:
        self._runtime = runtime
        self._poll = poll
        self._interval = interval
        self._keys: OrderedDict[TaskKey | None, None] = OrderedDict()
        self._changed = runtime.new_event()

    def add(self, key: TaskKey | None) -> None:
        """Add a key that has changed. None is a gap: every record may have changed."""
        if None in self._keys:
            return  # its reader reads every record afterwards
        if key is None or len(self._keys) >= _MAX_KEYS:
            self._keys.clear()
            key = None
        self._keys[key] = None
        self._changed.set()

    def __aiter__(self) -> TaskWatch:
        return self

    async def __anext__(self) -> TaskKey | None:
        while not self._keys:
            self._changed = self._runtime.new_event()
            if not await self._runtime.wait(self._changed, self._interval):
                self._poll()
        return self._keys.popitem(last=False)[0]
