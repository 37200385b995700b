"""Trio's mock clock doesn't jump while a worker thread is at work.

Trio jumps when all tasks wait, and a task that waits for a thread counts as one of them. So a test
would see a timeout whenever the machine lets a thread wait for a moment.

1. While `trio.to_thread.run_sync` waits, the clock stands still, as in
   `tests.harness.world.virtual_time`. A thread that was abandoned doesn't count.
2. A thread that waits for a task lets the clock go on: `trio.from_thread.run` says so by itself,
   what waits otherwise needs `thread_waiting`.

A clock that does not jump at once, with another `autojump_threshold` than 0, is left alone.
"""

from __future__ import annotations

import math
from contextlib import contextmanager
from functools import wraps
from typing import TYPE_CHECKING, Any, Final

import trio
import trio.testing

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["install", "thread_waiting"]

# How many threads the current run waits for.
_threads: Final[trio.lowlevel.RunVar[int]] = trio.lowlevel.RunVar("threads at work", 0)
_stopped: Final[trio.lowlevel.RunVar[bool]] = trio.lowlevel.RunVar("the clock is stopped", False)
_begin: Final = trio.to_thread.run_sync
_call: Final = trio.from_thread.run


def install() -> None:
    """Replace the functions of trio, for all runs."""
    to_thread: Any = trio.to_thread
    from_thread: Any = trio.from_thread
    to_thread.run_sync = _run_sync
    from_thread.run = _run


@wraps(_begin)
async def _run_sync(*args: Any, **options: Any) -> Any:
    with _counted(1):
        return await _begin(*args, **options)


@wraps(_call)
def _run(function: Any, *args: Any, **options: Any) -> Any:
    @wraps(function)
    async def waited_for(*args: Any) -> Any:
        with thread_waiting():
            return await function(*args)

    return _call(waited_for, *args, **options)


@contextmanager
def thread_waiting() -> Iterator[None]:
    """Let the clock go on although a thread is at work: it waits for the task that calls this."""
    with _counted(-1):
        yield


@contextmanager
def _counted(change: int) -> Iterator[None]:
    _add(change)
    try:
        yield
    finally:
        _add(-change)


def _add(change: int) -> None:
    count = _threads.get() + change
    _threads.set(count)
    clock = trio.lowlevel.current_clock()
    if not isinstance(clock, trio.testing.MockClock):
        return
    if count > 0 and clock.autojump_threshold == 0:
        clock.autojump_threshold = math.inf
        _stopped.set(True)
    elif count <= 0 and _stopped.get():
        clock.autojump_threshold = 0
        _stopped.set(False)
