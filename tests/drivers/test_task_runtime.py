"""A `TaskRuntime`'s limits of time, and its checkpoint, on both drivers."""

from __future__ import annotations

from functools import partial

import pytest

from tests.harness import either

pytestmark = pytest.mark.usefixtures("each_driver")


async def wait(seconds: float) -> str:
    await either.sleep(seconds)
    return "done"


async def test_call_within_its_time_gives_its_value() -> None:
    async with either.open_task_runtime() as runtime:
        assert await runtime.within(2, partial(wait, 1)) == "done"
        assert await runtime.within(2, partial(wait, 0)) == "done"


async def test_call_beyond_its_time_is_cancelled() -> None:
    """It may clean up, and what comes later is not cancelled."""
    ended = []

    async def clean_up() -> None:
        try:
            await wait(60)
        finally:
            ended.append(either.current_time())

    async with either.open_task_runtime() as runtime:
        start = either.current_time()
        with pytest.raises(TimeoutError, match="no response within 2 s"):
            await runtime.within(2, clean_up)
        assert [round(time - start, 3) for time in ended] == [2]
        await either.sleep(5)


@pytest.mark.parametrize("error", [LookupError("x"), TimeoutError("of its own")], ids=repr)
async def test_exception_of_a_call_propagates(error: Exception) -> None:
    async def fail() -> None:
        await either.checkpoint()
        raise error

    async with either.open_task_runtime() as runtime:
        with pytest.raises(type(error)) as caught:
            await runtime.within(2, fail)
    assert caught.value is error


async def test_cancellation_of_the_caller_is_no_timeout() -> None:
    async with either.open_task_runtime() as runtime:
        with either.move_on_after(1) as scope:
            await runtime.within(5, partial(wait, 60))
    assert scope.cancelled_caught


async def test_time_limit_that_is_lifted_in_time_ends_nothing() -> None:
    async with either.open_task_runtime() as runtime:
        with runtime.time_limit(2) as lift:
            await either.sleep(1)
            assert lift() is True
            await either.sleep(60)
        assert either.current_time() >= 61


async def test_time_limit_that_has_passed_cannot_be_lifted() -> None:
    async with either.open_task_runtime() as runtime:
        began = either.current_time()
        with runtime.time_limit(2) as lift:
            try:
                await either.sleep(60)
            finally:
                assert lift() is False
        assert either.current_time() - began == pytest.approx(2)


async def test_checkpoint_lets_other_tasks_run_and_takes_no_time() -> None:
    async with either.open_task_runtime() as runtime:
        began = either.current_time()
        with either.assert_checkpoints():
            await runtime.checkpoint()
        assert either.current_time() == began
