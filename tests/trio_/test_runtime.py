"""The trio runtime of a conversation, without a transport."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
import trio
import trio.testing

from mcp_core import RequestReceived
from mcp_core.runtime import CallbackJob
from mcp_trio._runtime import TrioRuntime, start_job

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable


class RaisingRuntime(TrioRuntime):
    def report(self, request: RequestReceived, reference: str, exc: BaseException) -> None:
        raise AssertionError(reference)


@pytest.mark.parametrize(("breath", "turns"), [(0.0, 100), (1e9, 0)])
async def test_runtime_checkpoint_yields_after_the_interval(breath: float, turns: int) -> None:
    """An interval of 0 yields at every checkpoint, and a long one never does."""
    runtime = RaisingRuntime()
    runtime.checkpoint_interval = breath
    seen = 0

    async def other() -> None:
        nonlocal seen
        while True:
            await trio.lowlevel.checkpoint()
            seen += 1

    async with trio.open_nursery() as nursery:
        nursery.start_soon(other)
        for _ in range(100):
            await runtime.checkpoint_if_due()
        assert turns - 10 <= seen <= turns + 1
        nursery.cancel_scope.cancel()


async def test_runtime_checkpoint_notices_cancellation_at_once() -> None:
    runtime = RaisingRuntime()
    runtime.checkpoint_interval = 1000.0
    await runtime.checkpoint_if_due()
    with trio.CancelScope() as scope:
        scope.cancel()
        await runtime.checkpoint_if_due()
    assert scope.cancelled_caught


# -- Jobs ------------------------------------------------------------------------------------------


class Job(CallbackJob):
    """A job that does `work` and records the calls of its methods.

    `failed` behaves as in every `CallbackJob`.
    """

    __slots__ = ("calls",)

    def __init__(self, work: Callable[[], Awaitable[Any]]) -> None:
        super().__init__(work, lambda *_: None)
        self.calls: list[Any] = []

    def done(self, answer: Any) -> None:
        self.calls.append(answer)

    def failed(self, exc: BaseException) -> None:
        self.calls.append(exc)
        super().failed(exc)

    def dropped(self) -> None:
        self.calls.append("dropped")

    def after(self) -> None:
        self.calls.append("after")


async def works() -> str:
    await trio.lowlevel.checkpoint()
    return "answer"


async def test_job_methods_are_called_in_order() -> None:
    job = Job(works)
    async with trio.open_nursery() as nursery:
        start_job(job, nursery, job.after)
        assert job.calls == []
    assert job.calls == ["answer", "dropped", "after"]


async def test_job_exception_is_passed_to_failed() -> None:
    error = KeyError()

    async def fails() -> None:
        raise error

    job = Job(fails)
    async with trio.open_nursery() as nursery:
        start_job(job, nursery, job.after)
    assert job.calls == [error, "dropped", "after"]


async def test_job_exception_raised_by_failed_propagates() -> None:
    async def interrupted() -> None:
        raise KeyboardInterrupt

    job = Job(interrupted)
    with pytest.RaisesGroup(KeyboardInterrupt):
        async with trio.open_nursery() as nursery:
            start_job(job, nursery, job.after)
    assert job.calls[1:] == ["dropped", "after"]


@pytest.mark.parametrize("begun", [False, True])
async def test_job_stopped_is_dropped(begun: bool) -> None:
    job = Job(trio.sleep_forever)
    async with trio.open_nursery() as nursery:
        start_job(job, nursery, job.after)
        if begun:
            await trio.testing.wait_all_tasks_blocked()
        job.stop()
    assert job.calls == ["dropped", "after"]


async def test_job_failing_while_stopped_is_passed_to_failed() -> None:
    job = Job(clumsy)
    async with trio.open_nursery() as nursery:
        start_job(job, nursery, job.after)
        await trio.testing.wait_all_tasks_blocked()
        job.stop()
    [group, *rest] = job.calls
    assert isinstance(group, ExceptionGroup)
    assert (type(group.exceptions[0]), rest) == (KeyError, ["dropped", "after"])


async def clumsy() -> None:
    """Fail while being cancelled, in a group with the cancellation."""
    async with trio.open_nursery() as nursery:
        nursery.start_soon(trio.sleep_forever)
        try:
            await trio.sleep_forever()
        finally:
            raise KeyError


async def test_job_cancelled_from_outside_propagates() -> None:
    jobs = [Job(trio.sleep_forever), Job(clumsy)]
    with trio.CancelScope() as scope:
        async with trio.open_nursery() as nursery:
            for job in jobs:
                start_job(job, nursery, job.after)
            await trio.testing.wait_all_tasks_blocked()
            scope.cancel()
    assert scope.cancelled_caught
    assert jobs[0].calls == ["dropped", "after"]
    assert isinstance(jobs[1].calls[0], ExceptionGroup)


async def test_job_stale_cancelled_is_a_failure() -> None:
    """A `Cancelled` from a scope that was already left must not look like a cancelled job."""
    kept: list[BaseException] = []

    async def keeps() -> None:
        with trio.CancelScope() as scope:
            scope.cancel()
            try:
                await trio.sleep_forever()
            except trio.Cancelled as exc:
                kept.append(exc)
                raise
        raise kept[0]

    class Keeping(Job):
        __slots__ = ()

        def failed(self, exc: BaseException) -> None:
            self.calls.append(exc)

    job = Keeping(keeps)
    async with trio.open_nursery() as nursery:
        start_job(job, nursery, job.after)
    assert job.calls == [kept[0], "dropped", "after"]


@pytest.mark.parametrize(
    ("shutdown_timeout", "calls"),
    [(None, ["dropped", "after"]), (1.0, ["answer", "dropped", "after"])],
)
async def test_job_started_in_cancelled_nursery_runs_only_with_shutdown_timeout(
    shutdown_timeout: float | None, calls: list[str]
) -> None:
    job = Job(works)
    async with trio.open_nursery() as nursery:
        nursery.cancel_scope.cancel()
        start_job(job, nursery, job.after, shutdown_timeout=shutdown_timeout)
    assert job.calls == calls
    assert job.shutting_down == (shutdown_timeout is not None)


async def test_job_over_shutdown_timeout_is_cancelled(
    autojump_clock: trio.testing.MockClock,
) -> None:
    job = Job(trio.sleep_forever)
    start = trio.current_time()
    async with trio.open_nursery() as nursery:
        nursery.cancel_scope.cancel()
        start_job(job, nursery, job.after, shutdown_timeout=1.0)
    assert trio.current_time() - start == 1.0
    assert job.calls == ["dropped", "after"]
