"""Task stores that fail, or that are slow."""

from __future__ import annotations

from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import anyio

from mcp_core.runtime.tasks import MemoryTaskStore
from mcp_core.tasks import TaskStoreError

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

__all__ = ["FaultyStore"]


class FaultyStore(MemoryTaskStore):
    """A store whose methods fail, or wait, as a test wants it.

    Attributes:
        failing: the names of the methods that raise; "after create" and "after change" raise when
            it is stored.
        slow: the names of the methods that wait before they do anything; "after create" waits when
            it is stored.
        entered: set when a slow method has begun to wait.
        go: ends that wait.
        failures: how often a method has raised.
    """

    durable = True
    immediate = False

    def __init__(self) -> None:
        super().__init__()
        self.failing: set[str] = set()
        self.slow: set[str] = set()
        self.entered = anyio.Event()
        self.go = anyio.Event()
        self.failures = 0

    async def _play(self, name: str) -> None:
        if name in self.slow:
            self.entered.set()
            await self.go.wait()
        if name in self.failing:
            self.failures += 1
            raise TaskStoreError(f"{name}: the disk is on fire")

    async def create(self, record: Any, /, *, limits: Any) -> Any:
        await self._play("create")
        limit = await super().create(record, limits=limits)
        await self._play("after create")
        return limit

    async def get(self, key: Any, /) -> Any:
        await self._play("get")
        return await super().get(key)

    async def change(self, key: Any, serial: int, record: Any, /, *, limits: Any = None) -> bool:
        await self._play("change")
        changed = await super().change(key, serial, record, limits=limits)
        await self._play("after change")
        return changed

    async def page(self, owner: str, after: str, size: int, /) -> list[Any]:
        await self._play("page")
        return await super().page(owner, after, size)

    async def remove_expired(self, now: float, size: int, /) -> list[Any]:
        await self._play("remove_expired")
        return await super().remove_expired(now, size)

    async def renew_lease(self, worker: str, seconds: float, /) -> None:
        await self._play("renew_lease")
        await super().renew_lease(worker, seconds)

    async def lost(self, size: int, /) -> list[Any]:
        await self._play("lost")
        return await super().lost(size)

    @asynccontextmanager
    async def watch(self) -> AsyncIterator[AsyncIterator[Any]]:
        await self._play("watch")
        async with super().watch() as keys:
            yield keys
