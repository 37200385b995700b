"""The stores that workers share, and each worker's connection to them, which may fail.

1. The stores themselves are correct and take no time. What goes wrong is on the way: a command
   may fail before or after it has its effect, or have no response within `DEADLINE`.
2. The connection of a killed process is cut: nothing that the process still does has any effect.
"""

from __future__ import annotations

from collections import deque
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any, Final, TypeVar

import trio

from mcp_core.runtime.sharing import MemoryStore
from mcp_core.runtime.tasks import MemoryTaskStore
from mcp_core.runtime.tasks._watch import TaskWatch
from mcp_core.sharing import SessionStoreError, WorkerBatch
from mcp_core.tasks import TaskStoreError

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable

    from mcp_core.tasks import TaskKey, TaskRecord

    from .worker import SimWorker
    from .world import World

__all__ = ["BusStore", "LinkedBus", "LinkedTaskStore", "StoreLink", "TaskStoreServer"]

T = TypeVar("T")

_HISTORY: Final = 2  # messages of the bus that are kept
_NO_RESPONSE: Final = ("refuse", "hang", "deaf")
DEADLINE: Final = 2.0  # seconds until a command without a response fails


class BusStore(MemoryStore):
    """The bus of all workers. A worker that is far behind has a gap.

    `members` has the numbers that the store knows, each with the worker that has joined last.
    """

    def __init__(self) -> None:
        super().__init__()
        self._messages = deque(maxlen=_HISTORY)
        self.members: dict[int, SimWorker] = {}

    def empty(self) -> None:
        """Lose everything, as a server that was started again without its file."""
        self._epoch += 1
        self._count = 0
        self._messages.clear()
        self._heartbeats.clear()
        self.members.clear()


class TaskStoreServer(MemoryTaskStore):
    """The records of all workers, as a database server keeps them: with leases by its own clock."""

    durable = True
    immediate = False

    def __init__(self, world: World) -> None:
        super().__init__()
        self._world = world
        self.lease_ends: dict[str, float] = {}
        self.links: list[StoreLink] = []

    async def renew_lease(self, worker: str, seconds: float, /) -> None:
        if seconds > 0:
            self.lease_ends[worker] = trio.current_time() + seconds
        else:
            self.lease_ends.pop(worker, None)

    async def lost(self, size: int, /) -> list[TaskRecord]:
        now = trio.current_time()
        found: list[TaskRecord] = []
        for worker, keys in self._held.items():
            if self.lease_ends.get(worker, 0.0) <= now:
                found += [self._records[key] for key in list(keys)[: size - len(found)]]
        return found

    async def remove_expired(self, now: float, size: int, /) -> list[TaskKey]:
        # It has a clock of its own.
        return await super().remove_expired(self._world.wall_time(), size)

    def find_wrong_sums(self) -> list[str]:
        """Return what is wrong with the quotas."""
        sums: dict[str, tuple[int, int]] = {}
        for record in self._records.values():
            tasks, size = sums.get(record.quota_key, (0, 0))
            sums[record.quota_key] = tasks + 1, size + record.size
        counted = {key: (used.tasks, used.size) for key, used in self._used.items()}
        total = sum(size for _, size in sums.values())
        problems = []
        if counted != sums:
            problems.append(f"the quotas count {counted}, and there are {sums}")
        if self._size != total:
            problems.append(f"the quotas count {self._size} bytes in all, and there are {total}")
        return problems


class StoreLink:
    """One worker's connection to the stores."""

    def __init__(self, world: World, worker: SimWorker) -> None:
        self.world = world
        self.worker = worker
        self.is_cut = False
        self.has_ended_lease = False
        self._chance = world.chance(f"link {worker}")
        self._until: dict[str, float] = {}
        self._watches: set[LinkWatch] = set()

    def disturb(self, how: str, until: float) -> None:
        """Let commands fail in one way for some time."""
        self._until[how] = max(self._until.get(how, 0.0), until)

    def ends(self, how: str) -> float:
        """Return when commands stop to fail in that way."""
        return self._until.get(how, 0.0)

    def is_disturbed(self, how: str) -> bool:
        """True while commands fail in that way."""
        return trio.current_time() < self.ends(how)

    def cut(self) -> None:
        """End the connection of a process that was killed."""
        self.is_cut = True
        self.break_watch()

    def break_watch(self) -> None:
        """Let the watches of tasks end. What changes until the next one is entered is lost."""
        for watch in list(self._watches):
            watch.break_()

    async def command(
        self, name: str, run: Callable[[], Awaitable[T]], error: type[Exception]
    ) -> T:
        """Run one command of a store."""
        comes_late = self._chance.random() < 0.5
        if not comes_late:
            await self._travel()
        self._check(error)
        if self.is_disturbed("refuse"):
            raise error(f"{name}: the store refuses connections")
        if self.is_disturbed("hang") and self._chance.random() < 0.5:
            await self._wait_in_vain(name, error)
        result = await run()
        self._check(error)
        if self.is_disturbed("deaf") or self.is_disturbed("hang"):
            await self._wait_in_vain(name, error)
        if comes_late:
            await self._travel()
        return result

    def _check(self, error: type[Exception]) -> None:
        # A shielded task of a killed process has to end too.
        if self.is_cut:
            raise error("the process was killed")

    async def _travel(self) -> None:
        if self.is_disturbed("slow"):
            await trio.sleep(self._chance.uniform(0.1, 0.9))
        else:
            await trio.sleep(self._chance.uniform(0.0002, 0.003))

    async def _wait_in_vain(self, name: str, error: type[Exception]) -> None:
        if error is SessionStoreError and self._chance.random() < 0.3:
            await trio.sleep_forever()  # a store whose own deadline has failed
        await trio.sleep(DEADLINE)
        raise error(f"{name}: no response within {DEADLINE:g} s")


class LinkedBus:
    """The bus, as one worker reaches it: a `SessionStore`."""

    needs_keys = True

    def __init__(self, link: StoreLink) -> None:
        self._link = link
        self._store = link.world.bus
        self._oracle = link.world.oracle

    def __repr__(self) -> str:
        return f"<LinkedBus of {self._link.worker}>"

    @asynccontextmanager
    async def opened(self, runtime: Any, /) -> AsyncIterator[LinkedBus]:
        async with self._store.opened(runtime):
            yield self

    async def join(self, server: str, /) -> Any:
        async def join() -> Any:
            place = await self._store.join(server)
            self._oracle.joined(self._link.worker, place.number)
            return place

        return await self._command("join", join)

    async def heartbeat(self, worker: int, /) -> Any:
        async def heartbeat() -> Any:
            position = await self._store.heartbeat(worker)
            self._oracle.heartbeat(self._link.worker, worker, kept=position is not None)
            return position

        return await self._command("heartbeat", heartbeat)

    async def alive(self, workers: Any, /) -> Any:
        return await self._command("alive", lambda: self._store.alive(workers))

    async def leave(self, worker: int, /) -> None:
        async def leave() -> None:
            await self._store.leave(worker)
            self._store.members.pop(worker, None)

        await self._command("leave", leave)

    async def publish(self, worker: int, message: Any, /) -> Any:
        async def publish() -> Any:
            self._oracle.published(self._link.worker, message)
            return await self._store.publish(worker, message)

        return await self._command("publish", publish)

    async def missed(self, server: str, since: Any, /) -> Any:
        return await self._command("missed", lambda: self._store.missed(server, since))

    async def read(self, position: Any, /) -> Any:
        batch = await self._command("read", lambda: self._store.read(position))
        if self._link.is_disturbed("twice"):
            return WorkerBatch(batch.position, [*batch.messages, *batch.messages])
        return batch

    async def _command(self, name: str, run: Callable[[], Awaitable[T]]) -> T:
        return await self._link.command(name, run, SessionStoreError)


class LinkedTaskStore:
    """The store of tasks, as one worker reaches it: a `TaskStore`."""

    durable = True
    immediate = False

    def __init__(self, link: StoreLink) -> None:
        self._link = link
        self._store = link.world.tasks
        self._runtime: Any = None

    def __repr__(self) -> str:
        return f"<LinkedTaskStore of {self._link.worker}>"

    @asynccontextmanager
    async def opened(self, runtime: Any, /) -> AsyncIterator[LinkedTaskStore]:
        async with self._store.opened(runtime):
            self._runtime = runtime
            yield self

    async def create(self, record: TaskRecord, /, *, limits: Any) -> Any:
        async def create() -> Any:
            refused = await self._store.create(record, limits=limits)
            self._link.world.oracle.record_created(record, refused, limits)
            return refused

        try:
            return await self._command("create", create)
        except TaskStoreError:
            self._link.world.oracle.creation_failed(self._link.worker, record)
            raise

    async def get(self, key: TaskKey, /) -> TaskRecord | None:
        return await self._command("get", lambda: self._store.get(key))

    async def change(
        self, key: TaskKey, serial: int, record: TaskRecord | None, /, *, limits: Any = None
    ) -> bool:
        async def change() -> bool:
            before = self._store._records.get(key)
            changed = await self._store.change(key, serial, record, limits=limits)
            if changed:
                self._link.world.oracle.record_changed(self._link.worker, before, record)
                self._tell(key)
            return changed

        return await self._command("change", change)

    async def page(self, owner: str, after: str, size: int, /) -> Any:
        return await self._command("page", lambda: self._store.page(owner, after, size))

    async def remove_expired(self, now: float, size: int, /) -> Any:
        async def remove() -> Any:
            keys = await self._store.remove_expired(now, size)
            for key in keys:
                self._tell(key)
            return keys

        return await self._command("remove_expired", remove)

    async def renew_lease(self, worker: str, seconds: float, /) -> None:
        self._link.has_ended_lease |= not seconds
        await self._command("renew_lease", lambda: self._store.renew_lease(worker, seconds))
        self._link.world.oracle.lease_renewed(self._link.worker)

    async def lost(self, size: int, /) -> Any:
        return await self._command("lost", lambda: self._store.lost(size))

    @asynccontextmanager
    async def watch(self) -> AsyncIterator[LinkWatch]:
        self._link._check(TaskStoreError)
        watch = LinkWatch(self._runtime, self._link)
        self._link._watches.add(watch)
        try:
            yield watch
        finally:
            self._link._watches.discard(watch)

    def _tell(self, key: TaskKey) -> None:
        for worker in self._link.world.workers:
            for watch in worker.link._watches:
                watch.tell(key)

    async def _command(self, name: str, run: Callable[[], Awaitable[T]]) -> T:
        return await self._link.command(name, run, TaskStoreError)


class LinkWatch:
    """The keys that a worker hears of, each after a delay: two may change places.

    While the connection fails, they are lost, and a gap comes afterwards.
    """

    def __init__(self, runtime: Any, link: StoreLink) -> None:
        self._watch = TaskWatch(runtime)
        self._link = link
        self._runtime = runtime
        self._broken = trio.Event()
        self._has_gap = False

    def break_(self) -> None:
        self._broken.set()
        self._watch.add(None)

    def tell(self, key: TaskKey) -> None:
        """Let a key arrive after a delay."""
        link = self._link
        if self._broken.is_set() or link.is_cut:
            return
        if any(map(link.is_disturbed, _NO_RESPONSE)):
            if not self._has_gap:
                self._has_gap = True
                link.world.nursery.start_soon(self._end_gap)
            return
        delay = link._chance.expovariate(100.0) + (0.5 if link.is_disturbed("slow") else 0.0)
        link.world.nursery.start_soon(self._arrive, key, delay)

    async def _arrive(self, key: TaskKey | None, delay: float) -> None:
        await trio.sleep(delay)
        self._watch.add(key)

    async def _end_gap(self) -> None:
        await trio.sleep_until(max(map(self._link.ends, _NO_RESPONSE)))
        self._has_gap = False
        self._watch.add(None)

    def __aiter__(self) -> LinkWatch:
        return self

    async def __anext__(self) -> TaskKey | None:
        if not self._broken.is_set():
            key = await self._watch.__anext__()
            if not self._broken.is_set():
                return key
        raise TaskStoreError("watch: the connection has ended")
