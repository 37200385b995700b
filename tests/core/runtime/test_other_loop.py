"""Exceptions of code that awaits another event loop get a note with the cure; others don't."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any, Literal

import pytest
import trio
import trio.lowlevel

from mcp_core.runtime import note_other_loop


async def await_a_future() -> None:
    # Not of a running loop, as a driver makes it that keeps its own.
    loop = asyncio.new_event_loop()
    try:
        await loop.create_future()
    finally:
        loop.close()


async def open_a_nursery() -> None:
    async with trio.open_nursery():
        pass


ON_TRIO: list[Callable[[], Awaitable[Any]]] = [
    lambda: asyncio.sleep(0),
    lambda: asyncio.to_thread(len, ""),
    lambda: asyncio.open_connection("127.0.0.1", 1),
    await_a_future,
]
ON_ASYNCIO: list[Callable[[], Awaitable[Any]]] = [
    trio.lowlevel.checkpoint,
    partial(trio.sleep, 0.001),
    partial(trio.open_tcp_stream, "127.0.0.1", 1),
    lambda: trio.Event().wait(),
    open_a_nursery,
]


async def failure_of(function: Callable[[], Awaitable[Any]]) -> BaseException:
    with pytest.raises((RuntimeError, TypeError, AttributeError)) as caught:
        await function()
    return caught.value


@pytest.mark.parametrize("number", range(len(ON_TRIO)))
def test_asyncio_awaited_on_trio_is_noted_once(number: int) -> None:
    failure = trio.run(failure_of, ON_TRIO[number])
    note_other_loop(failure, "trio")
    note_other_loop(failure, "trio")
    (note,) = failure.__notes__
    assert note.startswith("This runs on trio, and the code awaits asyncio.")
    assert "--asyncio FILE" in note


@pytest.mark.parametrize("number", range(len(ON_ASYNCIO)))
def test_trio_awaited_on_asyncio_is_noted_once(number: int) -> None:
    failure = asyncio.run(failure_of(ON_ASYNCIO[number]))
    group = BaseExceptionGroup("several", [ValueError("another"), failure])
    note_other_loop(group, "asyncio")
    note_other_loop(group, "asyncio")
    (note,) = failure.__notes__
    assert note.startswith("This runs on asyncio, and the code awaits trio.")
    assert not hasattr(group.exceptions[0], "__notes__")


@pytest.mark.parametrize("loop", ["trio", "asyncio"])
def test_other_exceptions_get_no_note(loop: Literal["trio", "asyncio"]) -> None:
    for failure in (
        RuntimeError("the disk is full"),
        ValueError("no running event loop"),
        TypeError("must be text"),
        KeyboardInterrupt(),
    ):
        note_other_loop(failure, loop)
        assert not hasattr(failure, "__notes__")
