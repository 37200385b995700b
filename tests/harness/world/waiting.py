"""How long a test waits for what must happen, and waits that need no time.

`PATIENCE` is less than the time that a test may take (`timeout` in pyproject.toml), so that a test
which waits in vain says what it has waited for.
"""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING, Final, TypeVarTuple

import trio
import trio.testing

from tests.harness.world.virtual_time import VirtualTimeLoop

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

__all__ = ["PATIENCE", "cancel_once_blocked", "patience", "until", "wait_until"]

PATIENCE: Final = 20.0  # seconds
_PATIENCE_OF_JUMPING_CLOCK: Final = 24 * 3600.0  # longer than any timeout under test

Ts = TypeVarTuple("Ts")


def patience() -> float:
    """Return `PATIENCE` or, if the running loop's clock jumps, a day of it."""
    if trio.lowlevel.in_trio_run():
        jumps = isinstance(trio.lowlevel.current_clock(), trio.testing.MockClock)
    else:
        jumps = isinstance(asyncio.get_running_loop(), VirtualTimeLoop)
    return _PATIENCE_OF_JUMPING_CLOCK if jumps else PATIENCE


async def until(ready: Callable[[], object]) -> None:
    """Wait until `ready` returns True, where no event tells."""
    with trio.fail_after(patience()):
        while not ready():  # noqa: ASYNC110
            await trio.sleep(0.001)


def wait_until(ready: Callable[[], object]) -> None:
    """Do the same outside trio, for what a thread does."""
    end = time.monotonic() + PATIENCE
    while not ready():
        assert time.monotonic() < end
        time.sleep(0.001)


async def cancel_once_blocked(function: Callable[[*Ts], Awaitable[object]], *args: *Ts) -> None:
    """Call the function, and cancel it once every task waits. It must not return before."""
    async with trio.open_nursery() as nursery:
        with trio.CancelScope() as scope:

            async def cancel() -> None:
                await trio.testing.wait_all_tasks_blocked()
                scope.cancel()

            nursery.start_soon(cancel)
            await function(*args)
    assert scope.cancelled_caught
