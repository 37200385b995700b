"""Fixtures of the tests of hosts."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
import trio

if TYPE_CHECKING:
    from collections.abc import Callable


@pytest.fixture(autouse=True)
def _no_threads_beside_a_mock_clock(
    request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Run functions in the task: the clock would jump while all tasks wait for a thread."""

    async def run(_: object, function: Callable[[], Any]) -> Any:
        await trio.lowlevel.checkpoint()
        return function()

    if "autojump_clock" in request.fixturenames:
        monkeypatch.setattr("mcp_trio.host._host._TrioHostRuntime.in_thread", run)
