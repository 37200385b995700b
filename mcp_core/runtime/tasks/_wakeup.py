"""An event that can be set any number of times, made of one-shot events."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ._runtime import TaskRuntime

__all__ = ["Wakeup"]


class Wakeup:
    """An event that can be set again after each wait. One task may wait at a time."""

    def __init__(self, runtime: TaskRuntime) -> None:
        self._runtime = runtime
        self._event = runtime.new_event()

    def set(self) -> None:
        """Wake the waiting task, or the next one that waits."""
        self._event.set()

    async def wait(self, seconds: float | None = None) -> None:
        """Wait for a call of `set`, also one since the last wait, for `seconds` at most."""
        await self._runtime.wait(self._event, seconds)
        self._event = self._runtime.new_event()
