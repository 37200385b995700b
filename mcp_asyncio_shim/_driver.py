"""Drive a machine of the core on asyncio: one timer for its deadlines, and a task for each job.

1. Call `pump` after every call into the machine. It never waits.
2. An exception of a job never leaves its task, and a job gets `dropped` even if its task is
   cancelled before its first step.
"""

from __future__ import annotations

import asyncio
import contextvars
from typing import TYPE_CHECKING, ParamSpec, Protocol, Self, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable

    from mcp_core.runtime import Job

__all__ = [
    "ConnectionDriver",
    "JobTasks",
    "TimeLimit",
    "TimedMachine",
    "in_new_context",
    "move_on_after",
    "run_job",
]

P = ParamSpec("P")
T = TypeVar("T")


class TimedMachine(Protocol):
    """A machine with deadlines, such as a `Connection` or a `Router`."""

    def next_deadline(self) -> float | None: ...
    def handle_timeout(self, now: float) -> object: ...


class ConnectionDriver:
    """The timer and the job tasks of one machine.

    Args:
        machine: has the deadlines for which the timer is set.
        process_events: called by `pump` to process the machine's events. It must not wait.

    `tasks` are the tasks of the jobs that are running, each with a function that cancels it once.
    """

    def __init__(self, machine: TimedMachine, process_events: Callable[[], object]) -> None:
        self.loop = asyncio.get_running_loop()
        self.clock = self.loop.time
        self.tasks: dict[asyncio.Task[None], Callable[[], None]] = {}
        self._machine = machine
        self._process_events = process_events
        self._pumped = asyncio.Event()
        self._timer: asyncio.Handle = self.loop.call_soon(self._on_deadline)

    def pump(self) -> None:
        """Process the machine's events, wake the tasks in `wait_until`, and set the timer."""
        self._process_events()
        # Events are one-shot: each pump sets the current one and installs the next.
        self._pumped.set()
        self._pumped = asyncio.Event()
        self._timer.cancel()
        deadline = self._machine.next_deadline()
        if deadline is not None:
            self._timer = self.loop.call_at(deadline, self._on_deadline)

    def _on_deadline(self) -> None:
        self._machine.handle_timeout(self.loop.time())
        self.pump()

    def stop_timer(self) -> None:
        """Stop the timer. Call it last: the next `pump` starts the timer again."""
        self._timer.cancel()

    async def wait_until(
        self, condition: Callable[[], object], timeout: float | None = None
    ) -> None:
        """Wait until `condition()` is true, or for `timeout` seconds at most.

        The condition is tested after each `pump`, so only an event or a call that is followed by
        `pump` may change it.
        """
        with move_on_after(timeout):
            while not condition():
                await self._pumped.wait()

    def start_job(self, job: Job, pump: Callable[[], None] | None = None) -> None:
        """Run `job` in a task, and call `pump` (by default our own) when it is over."""

        def on_end(task: asyncio.Task[None]) -> None:
            self.tasks.pop(task)
            job.dropped()
            if pump is None:
                self.pump()
            else:
                pump()

        task = self.loop.create_task(run_job(job))
        self.tasks[task] = job.stop = _canceller(task)
        # A callback, not a `finally` in the task: a task that is cancelled before its first step
        # never runs at all.
        task.add_done_callback(on_end)


async def run_job(job: Job) -> None:
    """Run a job in this task, and report its outcome. The caller reports its end, by `dropped`."""
    try:
        job.done(await job.run())
    except BaseException as exc:
        task = asyncio.current_task()
        assert task is not None
        # A `CancelledError` that was raised without a cancellation is a failure like any other.
        if isinstance(exc, asyncio.CancelledError) and task.cancelling():
            raise
        job.failed(exc)


class JobTasks:
    """Tasks that end together, including the tasks of jobs."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._tasks: dict[asyncio.Task[None], Callable[[], None]] = {}

    def start_job(self, job: Job) -> None:
        """Run `job` in a task."""
        task = self._loop.create_task(run_job(job))
        cancel = self.keep(task)
        job.stop = task.cancel if job.stops_again else cancel
        # A callback, as in `ConnectionDriver.start_job`.
        task.add_done_callback(lambda _: job.dropped())

    def keep(self, task: asyncio.Task[None]) -> Callable[[], None]:
        """Add `task` to those that `aclose` cancels. Return what cancels it earlier."""
        self._tasks[task] = cancel = _canceller(task)
        task.add_done_callback(self._tasks.pop)
        return cancel

    async def aclose(self) -> None:
        """Cancel each task once, also those that the cancelled ones start, and wait for all."""
        while self._tasks:
            for cancel in list(self._tasks.values()):
                cancel()
            await asyncio.wait(list(self._tasks))


def _canceller(task: asyncio.Task[None]) -> Callable[[], None]:
    """Return what cancels `task`, once: a second cancellation would interrupt `finally` blocks."""
    called = False

    def cancel() -> None:
        nonlocal called
        if not called:
            called = True
            task.cancel()

    return cancel


class TimeLimit:
    """A block that ends at `deadline`, by the loop's clock, without an exception.

    `asyncio.timeout` up to Python 3.11.2 takes its own end for a cancellation in a task that was
    cancelled before, and such a task is what waits for the end of handlers and processes. With
    None as `deadline` the block may take any time.
    """

    __slots__ = ("_cancellations", "_deadline", "_has_ended", "_loop", "_task", "_timer", "expired")

    def __init__(self, deadline: float | None) -> None:
        self.expired = False
        self._has_ended = False
        self._deadline = deadline
        self._loop = asyncio.get_running_loop()
        self._timer: asyncio.Handle | None = None

    def __enter__(self) -> Self:
        task = asyncio.current_task()
        assert task is not None
        self._task = task
        self._cancellations = task.cancelling()
        self.reschedule(self._deadline)
        return self

    def __exit__(self, kind: type[BaseException] | None, *rest: object) -> bool:
        self.reschedule(None)
        self._has_ended = True
        if not self.expired:
            return False
        return self._task.uncancel() <= self._cancellations and kind is asyncio.CancelledError

    def reschedule(self, deadline: float | None) -> None:
        """Set another deadline. No effect once the limit has expired, or the block has ended."""
        if self._timer is not None:
            self._timer.cancel()
        if deadline is not None and not self.expired and not self._has_ended:
            self._timer = self._loop.call_at(deadline, self._expire)

    def _expire(self) -> None:
        self.expired = True
        self._task.cancel()


def move_on_after(seconds: float | None) -> TimeLimit:
    """Return a limit that counts from now. With None the block may take any time."""
    loop = asyncio.get_running_loop()
    return TimeLimit(None if seconds is None else loop.time() + seconds)


def in_new_context(function: Callable[P, T]) -> Callable[P, T]:
    """Return a function that calls `function` in a copy of the present context.

    Handlers start inside `pump`, which any task may call. They must not see the context variables
    of that task.
    """
    context = contextvars.copy_context()

    def call(*args: P.args, **kwargs: P.kwargs) -> T:
        return context.copy().run(function, *args, **kwargs)

    return call
