"""Keys of changed tasks, on their way to their reader."""

from __future__ import annotations

from mcp_core.runtime.tasks._watch import TaskWatch
from mcp_core.tasks import TaskKey
from tests.core.tasks.runtimes import StoreRuntime, run_trio


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
