"""The trio runtime of a conversation, without a transport."""

from __future__ import annotations

import pytest
import trio

from mcp_core import RequestReceived
from mcp_trio._runtime import TrioRuntime


class Bare(TrioRuntime):
    def report(self, request: RequestReceived, reference: str, exc: BaseException) -> None:
        raise AssertionError(reference)


@pytest.mark.parametrize(("breath", "turns"), [(0.0, 100), (1e9, 0)])
async def test_runtime_checkpoint_yields_after_the_interval(breath: float, turns: int) -> None:
    runtime = Bare()
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
    runtime = Bare()
    runtime.checkpoint_interval = 1000.0
    await runtime.checkpoint_if_due()
    with trio.CancelScope() as scope:
        scope.cancel()
        await runtime.checkpoint_if_due()
    assert scope.cancelled_caught
