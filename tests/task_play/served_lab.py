"""A server with tasks over HTTP, in each store and with both drivers, and its clients."""

from __future__ import annotations

import asyncio
import sqlite3
from contextlib import closing
from typing import TYPE_CHECKING, Any, Final

import anyio
import trio
from msgspec import Struct
from trio.testing import MockClock

import mcp_asyncio_shim
import mcp_trio
from mcp_core.adapters import SqliteTaskStore
from mcp_core.registry import Context, Server, Tasks
from mcp_core.runtime.tasks import MemoryTaskStore
from mcp_core.tasks import TaskLimits
from tests.harness.wire.asgi import serve_app
from tests.harness.world import loop
from tests.task_play.wires import AsgiClient

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from pathlib import Path

    from mcp_core.tasks import TaskStore

    Scene = Callable[["ServedLab"], Awaitable[None]]
    Play = Callable[..., None]

__all__ = ["DRIVERS", "STORES", "ServedLab", "player", "run_on_virtual_time"]

DRIVERS: Final[dict[str, tuple[Any, Callable[..., None]]]] = {
    "trio": (mcp_trio.asgi, trio.run),
    "asyncio": (mcp_asyncio_shim.asgi, lambda main: loop.run(main())),
}
STORES: Final[dict[str, Callable[[Path], TaskStore]]] = {
    "memory": lambda directory: MemoryTaskStore(),
    "file": lambda directory: SqliteTaskStore(directory / "tasks.db"),
}


class Name(Struct):
    """The form of the question."""

    name: str


class ServedLab:
    """A served lab, and what happened in it.

    Attributes:
        store: what the server keeps its tasks in.
        runs: the names of the tools whose handlers have begun.
        ended: the names of the tools whose handlers have ended, cancelled or not.
        release: ends the handlers that run.
    """

    def __init__(self, store: TaskStore, limits: TaskLimits, owner: Any = None) -> None:
        self.store = store
        self.server = Server("lab", tasks=Tasks(store=store, limits=limits, owner=owner))
        self.runs: list[str] = []
        self.ended: list[str] = []
        self.release = anyio.Event()
        self.connect: Callable[..., Awaitable[AsgiClient]]
        self._add_tools()

    def count_stored(self) -> int:
        """Return how many records the store has, of all owners."""
        if isinstance(self.store, MemoryTaskStore):
            return len(self.store._records)
        assert isinstance(self.store, SqliteTaskStore)
        with closing(sqlite3.connect(self.store.path)) as database:
            count: int = database.execute("SELECT count(*) FROM tasks").fetchone()[0]
            return count

    def _add_tools(self) -> None:
        @self.server.tool(task="optional")
        async def hold(text: str = "") -> None:
            """Run until the end of the play, or until cancelled."""
            self.runs.append("hold")
            try:
                await self.release.wait()
            finally:
                self.ended.append("hold")

        @self.server.tool(task="optional")
        async def insist(text: str = "") -> None:
            """Go on after a cancellation."""
            while not self.release.is_set():
                try:  # on asyncio, a cancellation from outside of anyio goes through a shield
                    with anyio.CancelScope(shield=True):
                        await self.release.wait()
                except asyncio.CancelledError:
                    continue

        @self.server.tool(task="optional")
        async def give(size: int) -> str:
            """Return a long text."""
            self.runs.append("give")
            self.ended.append("give")
            return "x" * size

        @self.server.tool(task="optional")
        async def ask(context: Context) -> str:
            """Ask for a name."""
            answer = await context.elicit("Who?", Name)
            return answer.action


def run_on_virtual_time(main: Callable[[], Awaitable[None]]) -> None:
    """Run `main` on trio, with a clock that jumps when every task waits: not with a file."""
    trio.run(main, clock=MockClock(autojump_threshold=0))


def player(
    driver: str, store: str, directory: Path, run: Callable[..., None] | None = None
) -> Play:
    """Return a function that plays a scene on a stage with limits."""
    make, default_run = DRIVERS[driver]
    run = run or default_run
    directory.chmod(0o700)

    def play_scene(
        scene: Scene, *, auth: Any = None, options: Any = None, owner: Any = None, **limits: Any
    ) -> None:
        async def main() -> None:
            stage = ServedLab(STORES[store](directory), TaskLimits(**limits), owner)
            app = make(stage.server, auth=auth, **(options or {}))
            async with serve_app(app) as host, anyio.create_task_group() as group:

                async def connect(
                    version: str, *, address: str = "", key: str = "", forwarded: str = ""
                ) -> AsgiClient:
                    client = AsgiClient(version, group, host)
                    client.address = address
                    client.answer = lambda request: {"action": "decline"}
                    if key:
                        client.more_headers["authorization"] = f"Bearer {key}"
                    if forwarded:
                        client.more_headers["x-forwarded-for"] = forwarded
                    await client.open()
                    return client

                stage.connect = connect
                try:
                    await scene(stage)
                finally:
                    stage.release.set()
                group.cancel_scope.cancel()

        run(main)

    return play_scene
