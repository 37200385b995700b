"""An event loop of asyncio whose clock jumps, as `trio.testing.MockClock(autojump_threshold=0)`.

Its clock stands still while anything can run, and jumps to the next timer when all tasks wait. So a
test takes no time, and a busy machine makes no timer fire early.

1. While a job of `run_in_executor` or `asyncio.to_thread` is under way, the clock stands still. A
   test with a thread of its own says so by `clock_stopped`, one whose job waits for the loop by
   `thread_waiting`. The threads of `mcp_asyncio_shim` that read and write descriptors count while
   they have something to read or to write.
2. Bytes that are on their way take real time: while the loop watches an internet socket or a pipe,
   its clock goes as others do, but only while there is nothing to do; so it does while a thread of
   `mcp_asyncio_shim` waits for input. `socket.socketpair` and memory need none.
3. There are no child processes: their exits are seen in real time only.
"""

from __future__ import annotations

import asyncio
import os
import select
import selectors
import socket
import stat
import time
from contextlib import contextmanager
from functools import wraps
from typing import TYPE_CHECKING, Any, TypeVar, TypeVarTuple

from mcp_asyncio_shim._threads import ReadThread, WriteThread

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Iterator
    from concurrent.futures import Executor

__all__ = [
    "VirtualTimeLoop",
    "advance_clock",
    "clock_stopped",
    "run",
    "thread_waiting",
    "wait_all_tasks_blocked",
]

T = TypeVar("T")
Ts = TypeVarTuple("Ts")


class _Selector(selectors.DefaultSelector):
    """Adds to `now` what it would have to wait."""

    def __init__(self) -> None:
        super().__init__()
        self.now = 0.0
        self.stops = 0  # jobs in threads, and blocks of `clock_stopped`
        self.idle: list[asyncio.Future[None]] = []  # done when nothing can run
        self._real: set[int] = set()  # rule 2
        self.threads: list[ReadThread | WriteThread] = []  # those that the loop has started

    def register(self, fileobj: Any, events: int, data: Any = None) -> selectors.SelectorKey:
        key = super().register(fileobj, events, data)
        if not _is_local(key.fd):
            self._real.add(key.fd)
        return key

    def unregister(self, fileobj: Any) -> selectors.SelectorKey:
        key = super().unregister(fileobj)
        self._real.discard(key.fd)
        return key

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        found = super().select(0)
        if found or (timeout is not None and timeout <= 0):
            return found
        if self.idle:
            for waiting in self.idle:
                if not waiting.done():
                    waiting.set_result(None)
            self.idle.clear()
            return found
        if timeout is None or self.stops or any(map(_is_at_work, self.threads)):
            return super().select()
        if self._real or any(map(_waits_for_input, self.threads)):
            began = time.monotonic()
            found = super().select(timeout)
            self.now += min(time.monotonic() - began, timeout) if found else timeout
        else:
            self.now += timeout
        return found


def _is_at_work(thread: ReadThread | WriteThread) -> bool:
    """True if the thread will call the loop without any more input."""
    if isinstance(thread, WriteThread):
        return not thread._lost and (thread._size > 0 or thread.is_closing())
    if not _waits_for_input(thread):
        return False
    poll = select.poll()
    poll.register(thread._fd, select.POLLIN)
    # The thread clears the event once it has read.
    return not thread._may_read.is_set() or bool(poll.poll(0))


def _waits_for_input(thread: ReadThread | WriteThread) -> bool:
    return isinstance(thread, ReadThread) and thread.is_reading()


def _watch(kind: type[Any]) -> None:
    """Let the selector of the loop know each thread of this kind."""
    begin = kind.__init__

    @wraps(begin)
    def begin_and_tell(self: Any, fd: int, protocol: Any, loop: Any) -> None:
        begin(self, fd, protocol, loop)
        if isinstance(loop, VirtualTimeLoop):
            loop._virtual.threads.append(self)

    kind.__init__ = begin_and_tell


for _kind in ReadThread, WriteThread:
    _watch(_kind)


def _is_local(fd: int) -> bool:
    """True if what is sent to the descriptor can be read at once, so that nothing is on its way."""
    if not stat.S_ISSOCK(os.fstat(fd).st_mode):
        return False
    with socket.socket(fileno=os.dup(fd)) as same:
        return same.family == getattr(socket, "AF_UNIX", None)


class VirtualTimeLoop(asyncio.SelectorEventLoop):
    """An event loop whose clock begins at 0 and jumps."""

    def __init__(self) -> None:
        self._virtual = _Selector()
        super().__init__(self._virtual)

    def time(self) -> float:
        return self._virtual.now

    def run_in_executor(
        self, executor: Executor | None, func: Callable[[*Ts], T], *args: *Ts
    ) -> asyncio.Future[T]:
        future = super().run_in_executor(executor, func, *args)
        self._virtual.stops += 1
        future.add_done_callback(self._go_on)
        return future

    def _go_on(self, _: object) -> None:
        self._virtual.stops -= 1

    async def shutdown_default_executor(self, *args: Any) -> None:
        with clock_stopped():
            await super().shutdown_default_executor(*args)

    async def _make_subprocess_transport(self, *args: Any, **options: Any) -> Any:
        raise NotImplementedError("a child process takes real time: use `asyncio.run`")


@contextmanager
def clock_stopped() -> Iterator[None]:
    """Stop the clock of the running loop, for what happens in threads that it does not know."""
    selector = _running()
    selector.stops += 1
    try:
        yield
    finally:
        selector.stops -= 1


@contextmanager
def thread_waiting() -> Iterator[None]:
    """Let the clock go on although a job is in a thread: it waits for the task that calls this."""
    selector = _running()
    selector.stops -= 1
    try:
        yield
    finally:
        selector.stops += 1


async def wait_all_tasks_blocked() -> None:
    """Wait until all other tasks of the running loop wait, as `trio.testing` has it."""
    waiting = asyncio.get_running_loop().create_future()
    _running().idle.append(waiting)
    await waiting


def advance_clock(seconds: float) -> None:
    """Move the clock of the running loop, as if the caller had computed for so long."""
    _running().now += seconds


def _running() -> _Selector:
    loop = asyncio.get_running_loop()
    assert isinstance(loop, VirtualTimeLoop)
    return loop._virtual


def run(main: Coroutine[Any, Any, T]) -> T:
    """Run `main` as `asyncio.run` does, in virtual time."""
    with asyncio.Runner(loop_factory=VirtualTimeLoop) as runner:
        return runner.run(main)
