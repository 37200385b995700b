"""The parts of the driver on asyncio: job tasks, the timer, and the runtimes."""

from __future__ import annotations

import asyncio
import contextvars
import gc
import threading
import weakref
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest

from mcp_asyncio_shim._driver import (
    ConnectionDriver,
    JobTasks,
    TimeLimit,
    in_new_context,
    move_on_after,
)
from mcp_asyncio_shim._runtime import LoopRuntime, _ThreadCall
from mcp_asyncio_shim._tasks import AsyncioTaskRuntime, open_server
from mcp_core.registry import Server
from mcp_core.runtime import Job
from mcp_core.runtime.tasks import TaskService
from tests.harness.world.virtual_time import run
from tests.harness.world.waiting import PATIENCE

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

word: contextvars.ContextVar[str] = contextvars.ContextVar("word", default="nothing")


class Noted(Job):
    """A job that runs a function, and notes how it ended."""

    def __init__(self, function: Callable[[], Awaitable[Any]]) -> None:
        super().__init__()
        self._function = function
        self.ends: list[Any] = []

    async def run(self) -> Any:
        return await self._function()

    def done(self, result: Any) -> None:
        self.ends.append(("done", result))

    def failed(self, exc: BaseException) -> None:
        self.ends.append(("failed", type(exc)))

    def dropped(self) -> None:
        self.ends.append("dropped")


async def answer() -> int:
    return 42


async def fail() -> None:
    raise SystemExit


async def cancel_nothing() -> None:
    raise asyncio.CancelledError


async def wait() -> None:
    await asyncio.sleep(100)


class Tidy:
    """A function that waits, then cleans up for a second."""

    clean = False

    async def __call__(self) -> None:
        try:
            await asyncio.sleep(100)
        finally:
            await asyncio.sleep(1)
            self.clean = True


class Machine:
    """A machine with one deadline."""

    deadline: float | None = None

    def __init__(self) -> None:
        self.handled: list[float] = []

    def next_deadline(self) -> float | None:
        return self.deadline

    def handle_timeout(self, now: float) -> None:
        self.handled.append(now)
        self.deadline = None


# -- Jobs ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("function", "end"),
    [
        (answer, ("done", 42)),
        (fail, ("failed", SystemExit)),
        (cancel_nothing, ("failed", asyncio.CancelledError)),
    ],
)
def test_job_ends_with_its_outcome_in_either_kind_of_task(function: Any, end: Any) -> None:
    """`SystemExit` and a stray `CancelledError` are outcomes as well, and don't break the loop."""

    async def main() -> None:
        tasks, driver = JobTasks(), ConnectionDriver(Machine(), lambda: None)
        jobs = [Noted(function) for _ in range(3)]
        pumped: list[bool] = []
        tasks.start_job(jobs[0])
        driver.start_job(jobs[1])
        driver.start_job(jobs[2], lambda: pumped.append(True))
        assert len(driver.tasks) == 2
        await asyncio.sleep(1)
        assert [job.ends for job in jobs] == [[end, "dropped"]] * 3
        assert pumped == [True]
        assert not driver.tasks
        driver.stop_timer()

    run(main())


@pytest.mark.parametrize("seconds", [0, 1])
def test_job_stopped_is_dropped(seconds: float) -> None:
    """Also before its first step."""

    async def main() -> None:
        tasks, driver = JobTasks(), ConnectionDriver(Machine(), lambda: None)
        jobs = [Noted(wait), Noted(wait)]
        tasks.start_job(jobs[0])
        driver.start_job(jobs[1])
        if seconds:
            await asyncio.sleep(seconds)
        for job in jobs:
            job.stop()
        await driver.wait_until(lambda: not driver.tasks)
        assert [job.ends for job in jobs] == [["dropped"]] * 2
        driver.stop_timer()

    run(main())


def test_jobs_stopped_again_may_clean_up() -> None:
    """A repeated `stop` must not cancel a task again that is in its `finally`."""

    async def main() -> None:
        tasks, driver = JobTasks(), ConnectionDriver(Machine(), lambda: None)
        tidy = [Tidy(), Tidy()]
        jobs = [Noted(each) for each in tidy]
        tasks.start_job(jobs[0])
        driver.start_job(jobs[1])
        await asyncio.sleep(1)
        for _ in range(3):
            for job in jobs:
                job.stop()
            await asyncio.sleep(0.1)
        await tasks.aclose()
        await driver.wait_until(lambda: not driver.tasks)
        assert [each.clean for each in tidy] == [True, True]
        driver.stop_timer()

    run(main())


def test_job_tasks_end_with_those_that_they_start() -> None:
    """`aclose` also ends a job that another job starts from its `finally`."""

    async def main() -> None:
        tasks = JobTasks()
        last = Noted(wait)

        async def start_another() -> None:
            try:
                await wait()
            finally:
                tasks.start_job(last)

        tasks.start_job(Noted(start_another))
        await asyncio.sleep(1)
        await tasks.aclose()
        assert last.ends == ["dropped"]
        assert asyncio.all_tasks() == {asyncio.current_task()}
        assert asyncio.get_running_loop().time() == 1

    run(main())


# -- The timer and what waits ----------------------------------------------------------------------


def test_driver_handles_deadlines_and_wakes_what_waits() -> None:
    """An earlier deadline replaces a later one, and `wait_until` has a timeout of its own."""

    async def main() -> None:
        processed: list[bool] = []
        machine = Machine()
        driver = ConnectionDriver(machine, lambda: processed.append(True))
        machine.deadline = 3
        await asyncio.sleep(0)
        assert machine.handled == [0]  # it looks once at the start
        machine.deadline = 3
        driver.pump()
        machine.deadline = 2
        driver.pump()
        await driver.wait_until(lambda: len(machine.handled) == 2)
        assert driver.clock() == 2
        assert len(processed) == 4
        await driver.wait_until(lambda: False, 5)
        assert driver.clock() == 7
        await driver.wait_until(lambda: True, 5)
        assert driver.clock() == 7
        machine.deadline = 8
        driver.pump()
        driver.stop_timer()
        await asyncio.sleep(2)
        assert machine.handled == [0, 2]

    run(main())


def test_function_in_new_context_sees_neither_later_values_nor_those_of_calls() -> None:
    def swap(text: str) -> str:
        before = word.get()
        word.set(text)
        return before

    word.set("at first")
    in_context = in_new_context(swap)
    word.set("later")
    assert [in_context("one"), in_context(text="two")] == ["at first"] * 2
    assert word.get() == "later"


# -- Runtimes --------------------------------------------------------------------------------------


def test_runtime_knows_its_loop_and_threads() -> None:
    """A `call_soon` on a closed loop is ignored: a thread may be slower than the loop."""

    async def main() -> LoopRuntime:
        loop = asyncio.get_running_loop()
        runtime = LoopRuntime(loop)
        assert not runtime.in_worker_thread
        assert await runtime.in_thread(lambda: runtime.in_worker_thread)
        seen: list[Any] = []

        async def in_loop() -> str:
            return threading.current_thread().name

        def in_thread() -> None:
            runtime.call_soon(lambda: seen.append(asyncio.get_running_loop()))
            seen.append(runtime.from_thread(in_loop))

        await runtime.in_thread(in_thread)
        assert seen == [loop, threading.current_thread().name]
        assert len(runtime.entropy(16)) == 16
        assert runtime.wall_time() > 1_700_000_000
        return runtime

    runtime = run(main())
    runtime.call_soon(lambda: None)  # the loop is closed: nothing happens


def test_runtime_without_threads_frees_its_place_for_each_call() -> None:
    """At its end a loop starts no threads any more. A handler must not wait for ever then."""

    async def main() -> None:
        loop = asyncio.get_running_loop()
        await loop.shutdown_default_executor()
        runtime = LoopRuntime(loop)
        for _ in range(100):
            with pytest.raises(RuntimeError, match="shutdown has been called"):
                await runtime.in_thread(lambda: None)

    run(main())


def test_call_that_is_cancelled_before_it_has_a_thread_is_not_made() -> None:
    """The executor keeps it in its queue, without what it refers to."""
    entered, go_on = threading.Event(), threading.Event()
    made: list[bool] = []

    def block() -> None:
        entered.set()
        go_on.wait(PATIENCE)

    async def main() -> None:
        loop = asyncio.get_running_loop()
        loop.set_default_executor(ThreadPoolExecutor(1))
        runtime = LoopRuntime(loop)
        blocking = asyncio.create_task(runtime.in_thread(block))
        waiting = asyncio.create_task(runtime.in_thread(lambda: made.append(True)))
        await asyncio.sleep(0)
        assert entered.wait(PATIENCE)
        waiting.cancel()
        await asyncio.wait({waiting})
        assert waiting.cancelled()
        go_on.set()
        await blocking
        await runtime.in_thread(lambda: None)  # behind it in the queue

    run(main())
    assert made == []


def test_exception_of_a_thread_is_freed_with_its_call() -> None:
    """Without the garbage collector: it may refer to large arguments."""

    def fail() -> None:
        raise KeyError("ours")

    call = _ThreadCall(fail)
    call.run()
    freed = weakref.ref(call)
    gc.disable()
    try:
        with suppress(KeyError):
            call.result()
        del call
        assert freed() is None
    finally:
        gc.enable()


def test_runtime_logs_failures_with_the_cure_for_code_that_awaits_trio(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """The cure is a note below the traceback; a text of the runtime has neither."""
    request: Any = SimpleNamespace(method=SimpleNamespace(name="tools/call"))
    text = "must be called from async context"  # trio says so outside its loop

    async def main() -> None:
        runtime = LoopRuntime(asyncio.get_running_loop())
        runtime.report(request, "ab12", RuntimeError(text))
        runtime.report_hook("on_change", RuntimeError(text))
        runtime.report(request, "cd34", RuntimeError("broken"))
        runtime.warn("a handler still runs")

    run(main())
    messages = [each.getMessage() for each in caplog.records]
    assert messages == [
        "tools/call failed (reference ab12)",
        "on_change failed",
        "tools/call failed (reference cd34)",
        "a handler still runs",
    ]
    tracebacks = [each.exc_text for each in caplog.records]
    assert ["mcp-trio run FILE" in (each or "") for each in tracebacks] == [
        True,
        True,
        False,
        False,
    ]
    assert [each is not None for each in tracebacks] == [True, True, True, False]


def test_task_runtime_waits_for_an_event_or_a_time() -> None:
    async def main() -> None:
        runtime = AsyncioTaskRuntime()
        event = asyncio.Event()
        assert not await runtime.wait(event, 5)
        assert asyncio.get_running_loop().time() == 5
        asyncio.get_running_loop().call_later(3, event.set)
        assert await runtime.wait(event)
        assert asyncio.get_running_loop().time() == 8
        await runtime.aclose()

    run(main())


def test_task_runtime_logs_what_fails_in_the_background(caplog: pytest.LogCaptureFixture) -> None:
    """Each task starts with the context of the runtime's creation, not the caller's."""

    async def main() -> None:
        word.set("of the server")
        runtime = AsyncioTaskRuntime()
        seen: list[str] = []

        async def look() -> None:
            seen.append(word.get())
            word.set("of a task")
            raise KeyError("mine")

        word.set("of a handler")
        for _ in range(2):
            runtime.start_soon(look)
        await asyncio.sleep(1)
        assert seen == ["of the server"] * 2
        await runtime.aclose()

    run(main())
    assert [each.message for each in caplog.records] == [
        "a background task of the tasks failed"
    ] * 2


def test_task_runtime_keeps_threads_for_its_store() -> None:
    async def main() -> None:
        runtime = AsyncioTaskRuntime()
        name = await runtime.in_store_thread(lambda: threading.current_thread().name)
        assert name.startswith("mcp-tasks")
        await runtime.aclose()

    run(main())


def test_task_runtime_ends_with_its_server() -> None:
    async def main() -> None:
        async with open_server(Server("s")) as served:
            assert isinstance(served.tasks, TaskService)
            served.tasks.runtime.start_soon(asyncio.Event().wait)
            await asyncio.sleep(1)
        assert asyncio.all_tasks() == {asyncio.current_task()}

    run(main())


def test_task_runtime_has_two_threads_for_its_store() -> None:
    """A call that hangs and was given up does not hold up the next one; a third would wait."""
    go_on = threading.Event()

    def name() -> str:
        return threading.current_thread().name

    def hang() -> str:
        go_on.wait(PATIENCE)
        return name()

    async def main() -> None:
        runtime = AsyncioTaskRuntime()
        hanging = [runtime.in_store_thread(hang)]
        names = {await runtime.in_store_thread(name)}
        hanging.append(runtime.in_store_thread(hang))
        waiting = [runtime.in_store_thread(name) for _ in range(3)]
        go_on.set()
        names |= set(await asyncio.gather(*hanging, *waiting))
        assert len(names) == 2
        await runtime.aclose()

    run(main())


def test_task_runtime_leaves_a_thread_of_its_store_that_hangs() -> None:
    """Nothing waits for it at the end, and it ends after its last job."""
    entered, go_on = threading.Event(), threading.Event()
    threads: list[threading.Thread] = []

    def hang() -> None:
        threads.append(threading.current_thread())
        entered.set()
        go_on.wait(PATIENCE)

    async def main() -> None:
        runtime = AsyncioTaskRuntime()
        hanging = runtime.in_store_thread(hang)
        await asyncio.to_thread(entered.wait, PATIENCE)
        await runtime.aclose()
        assert threads[0].is_alive()
        go_on.set()
        await hanging
        await asyncio.to_thread(threads[0].join, PATIENCE)
        assert not threads[0].is_alive()

    run(main())


def test_task_runtime_shield_delays_the_cancellation() -> None:
    """The store's write is completed before the `CancelledError` reaches its caller."""

    async def main() -> None:
        runtime = AsyncioTaskRuntime()
        written: list[bool] = []

        async def write() -> None:
            await asyncio.sleep(2)
            written.append(True)

        writing = asyncio.create_task(runtime.shielded(write))
        await asyncio.sleep(1)
        writing.cancel()
        with pytest.raises(asyncio.CancelledError):
            await writing
        assert written == [True]
        await runtime.shielded(write)
        assert asyncio.get_running_loop().time() == 4
        await runtime.aclose()

    run(main())


# -- Time limits -----------------------------------------------------------------------------------


async def clean_up(log: list[object], seconds: float | None = 2.0) -> None:
    """Wait for ever, and when cancelled for `seconds`."""
    try:
        await asyncio.Event().wait()
    finally:
        with move_on_after(seconds) as limit:
            await asyncio.Event().wait()
        log += [limit.expired, asyncio.get_running_loop().time()]


def test_time_limit_in_a_cancelled_task_ends_its_block_only() -> None:
    """The timeout of asyncio in Python 3.11.2 ends the task."""
    log: list[object] = []

    async def main() -> None:
        task = asyncio.create_task(clean_up(log))
        await asyncio.sleep(1)
        task.cancel()
        await asyncio.wait({task})
        assert task.cancelled()

    run(main())
    assert log == [True, 3.0]


def test_time_limit_leaves_other_cancellations_alone() -> None:
    log: list[object] = []

    async def main() -> None:
        task = asyncio.create_task(clean_up(log))
        await asyncio.sleep(1)
        task.cancel()
        await asyncio.sleep(1)
        task.cancel()
        await asyncio.wait({task})
        assert task.cancelled()
        assert asyncio.get_running_loop().time() == 2

    run(main())
    assert log == []


@pytest.mark.parametrize("both", ["cancelled first", "expired first"])
def test_time_limit_that_expires_with_a_cancellation_leaves_it_alone(both: str) -> None:
    """Catching the outer cancellation as its own timeout would leave the task running."""

    async def main() -> None:
        async def wait() -> None:
            with TimeLimit(5.0) as limit:
                if both == "expired first":
                    limit._expire()
                asyncio.current_task().cancel()  # type: ignore[union-attr]
                if both == "cancelled first":
                    limit._expire()
                await asyncio.Event().wait()
            raise AssertionError("the cancellation is lost")

        task = asyncio.create_task(wait())
        await asyncio.wait({task})
        assert task.cancelled()

    run(main())


def test_time_limit_can_be_moved_until_it_expires() -> None:
    """Rescheduling after the expiry does nothing, and a block that ends early isn't cancelled."""

    async def main() -> None:
        loop = asyncio.get_running_loop()
        with TimeLimit(None) as limit:
            limit.reschedule(10.0)
            limit.reschedule(3.0)
            await asyncio.Event().wait()
        assert (limit.expired, loop.time()) == (True, 3.0)
        limit.reschedule(4.0)
        with TimeLimit(2.0) as passed:  # begins too late
            await asyncio.Event().wait()
        assert (passed.expired, loop.time()) == (True, 3.0)
        with move_on_after(1) as unused:
            await asyncio.sleep(0)
        await asyncio.sleep(5)
        unused.reschedule(loop.time() + 1)  # as another task may do when the block has ended
        await asyncio.sleep(5)
        assert not unused.expired
        with move_on_after(1), pytest.raises(ZeroDivisionError):
            raise ZeroDivisionError

    run(main())
