"""The quiet nursery: a single failure is raised unchanged, several as a group."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
import trio
import trio.testing

from mcp_trio._nursery import open_quiet_nursery

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable


class Oops(Exception):
    pass


async def fails() -> None:
    raise Oops("in the background")


async def fails_at_the_end() -> None:
    try:
        await trio.sleep_forever()
    finally:
        raise Oops("in the background")


async def block(
    error: BaseException | None,
    *tasks: Callable[[], Awaitable[object]],
    before: Callable[[], object] = lambda: None,
) -> None:
    """Raise `error` while `tasks` run, or wait forever. `before` is called just before that."""
    async with open_quiet_nursery() as nursery:
        for task in tasks:
            nursery.start_soon(task)
        await trio.testing.wait_all_tasks_blocked()
        before()
        if error is not None:
            raise error
        await trio.sleep_forever()


@pytest.mark.parametrize(
    "error",
    [Oops("plain"), SystemExit(3), KeyboardInterrupt(), GeneratorExit()],
    ids=lambda error: type(error).__name__,
)
async def test_quiet_nursery_block_exception_is_not_wrapped(error: BaseException) -> None:
    with pytest.raises(type(error)) as caught:
        await block(error, trio.sleep_forever)
    assert caught.value is error
    assert caught.value.__context__ is None


async def test_quiet_nursery_group_of_the_block_is_unchanged() -> None:
    error = ExceptionGroup("the user's own", [Oops("one")])
    with pytest.raises(ExceptionGroup, match="the user's own") as caught:
        await block(error, trio.sleep_forever)
    assert [str(each) for each in caught.value.exceptions] == ["one"]


async def test_quiet_nursery_task_exception_is_not_wrapped() -> None:
    with pytest.raises(Oops, match="in the background"):
        await block(None, fails)


async def test_quiet_nursery_two_failures_are_a_group() -> None:
    with pytest.raises(ExceptionGroup) as caught:
        await block(Oops("in the block"), fails_at_the_end)
    assert {str(error) for error in caught.value.exceptions} == {
        "in the block",
        "in the background",
    }


async def test_quiet_nursery_failure_wins_over_cancellation() -> None:
    with trio.CancelScope() as outside, pytest.raises(Oops):
        await block(Oops(), trio.sleep_forever, before=outside.cancel)


async def test_quiet_nursery_cancellation_propagates() -> None:
    with trio.CancelScope() as outside:
        await block(None, trio.sleep_forever, before=outside.cancel)
    assert outside.cancelled_caught


async def test_quiet_nursery_cancels_and_awaits_background_tasks() -> None:
    ended = False

    async def work() -> None:
        nonlocal ended
        try:
            await trio.sleep_forever()
        finally:
            ended = True

    async with open_quiet_nursery() as nursery:
        nursery.start_soon(work)
        await trio.testing.wait_all_tasks_blocked()
    assert ended
