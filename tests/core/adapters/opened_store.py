"""A store in an SQLite file, opened under trio for one function."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mcp_core.adapters import SqliteTaskStore
from tests.core.tasks.runtimes import run_trio

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from pathlib import Path

    from tests.core.tasks.runtimes import StoreRuntime

__all__ = ["with_store"]


def with_store(
    path: Path, main: Callable[[SqliteTaskStore, StoreRuntime], Awaitable[None]]
) -> None:
    """Open the store at `path`, and run `main` with it and its runtime."""

    async def run(runtime: StoreRuntime) -> None:
        store = SqliteTaskStore(path)
        async with store.opened(runtime):
            await main(store, runtime)

    run_trio(run)
