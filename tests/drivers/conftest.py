"""Fixtures of the tests that run on both drivers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from tests.asyncio_shim.conftest import _asyncio_has_nothing_to_complain_of  # noqa: F401
from tests.harness import either
from tests.trio_.conftest import _every_send_is_a_checkpoint  # noqa: F401

if TYPE_CHECKING:
    from collections.abc import Callable


async def run_in_task(_: object, function: Callable[[], Any]) -> Any:
    """Call the function in the task, in place of `HostRuntime.in_thread`."""
    await either.checkpoint()
    return function()


@pytest.fixture
def hosts_without_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let no host use threads.

    While all tasks wait for one, trio's clock would jump, and `wait_all_tasks_blocked` returns.
    """
    for runtime in (
        "mcp_trio.host._host._TrioHostRuntime",
        "mcp_asyncio_shim._host._AsyncioHostRuntime",
    ):
        monkeypatch.setattr(f"{runtime}.in_thread", run_in_task)
