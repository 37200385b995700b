"""Run a test in asyncio: `run` in virtual time, `run_with_processes` in real time.

Both check that no task and no descriptor is left.
"""

from __future__ import annotations

import asyncio
import os
from typing import TYPE_CHECKING, Any, TypeVar

from tests.harness.world import virtual_time
from tests.harness.world.waiting import patience

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine


T = TypeVar("T")


def run(main: Coroutine[Any, Any, T]) -> T:
    """Run `main` in virtual time and return what it gives; no task and no descriptor may remain."""
    return _run(virtual_time.run, main)


def run_with_processes(main: Coroutine[Any, Any, T]) -> T:
    """Do the same in real time, for tests that start processes."""
    return _run(asyncio.run, main)


def _run(run: Callable[[Coroutine[Any, Any, T]], T], main: Coroutine[Any, Any, T]) -> T:
    before = descriptors()
    result = run(_alone(main))
    assert descriptors() == before
    return result


async def _alone(main: Coroutine[Any, Any, T]) -> T:
    async with asyncio.timeout(patience()):
        result = await main
    assert asyncio.all_tasks() == {asyncio.current_task()}
    return result


async def until(ready: Callable[[], object]) -> None:
    """Wait until `ready` returns True, where no event tells."""
    while not ready():  # noqa: ASYNC110
        await asyncio.sleep(0.001)


def descriptors() -> int:
    """Return the number of open descriptors of this process."""
    return len(os.listdir("/dev/fd"))  # noqa: PTH208 - the names are all there is
