"""Keys of changed tasks, on their way to their reader."""

from __future__ import annotations

import asyncio
from functools import partial
from typing import TYPE_CHECKING, Any

import pytest

from mcp_core.runtime.tasks._watch import TaskWatch
from mcp_core.tasks import TaskKey
from tests.core.tasks.runtimes import StoreRuntime, run_trio

if TYPE_CHECKING:
    from collections.abc import Callable


def test_watch_keeps_a_thousand_keys_and_then_one_gap() -> None:
    async def main(runtime: StoreRuntime) -> None:
        watch = TaskWatch(runtime)
        keys = [TaskKey("ada", str(number)) for number in range(1_000)]
        for key in keys:
            watch.add(key)
        assert [await anext(watch) for _ in keys] == keys
        for key in [*keys, TaskKey("ada", "more")]:
            watch.add(key)
        assert await anext(watch) is None
        watch.add(keys[0])
        assert await anext(watch) == keys[0]

    run_trio(main)


class IdleRuntime:
    """A runtime in which nothing happens. It knows how long is waited: None for no limit."""

    def __init__(self, *waits: float | None) -> None:
        self.waits = list(waits)
        self.add: Callable[[], None]

    def new_event(self) -> Any:
        return self

    def set(self) -> None:
        """Do nothing: this is its own event."""

    async def wait(self, event: object, seconds: float | None) -> bool:
        assert seconds == self.waits.pop(0)
        if not self.waits and seconds is None:
            self.add()
        return seconds is None


@pytest.mark.parametrize("polls", [False, True])
def test_watch_polls_at_its_interval_or_never(polls: bool) -> None:
    """A memory store's watch must not wake a process in which nothing happens."""
    key = TaskKey("ada", "1")
    runtime: Any = IdleRuntime(*([0.5] * 3 if polls else [None]))

    def poll() -> None:
        if not runtime.waits:
            watch.add(key)

    watch = TaskWatch(runtime, poll, 0.5) if polls else TaskWatch(runtime)
    runtime.add = partial(watch.add, key)
    assert asyncio.run(watch.__anext__()) == key
    assert not runtime.waits
