"""Faults that are planted into the code, to see whether the simulation finds them.

Each is a function that returns what replaces one method of the code, given the method.
"""

from __future__ import annotations

from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from mcp_core.runtime.sharing._bus import WorkerBus
from mcp_core.runtime.sharing._memory_store import MemoryStore
from mcp_core.runtime.tasks._memory_store import MemoryTaskStore
from mcp_core.runtime.tasks._records import STORE, TaskRecords
from mcp_core.runtime.tasks._running import RunningTask
from mcp_core.runtime.tasks._service import TaskService
from mcp_core.sharing import SharedChanges, StoreBreaker, WorkerPlace
from mcp_core.tasks import TaskStoreError
from mcp_trio._tasks import TrioTaskRuntime

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

__all__ = ["PLANTED", "planted"]

Method = Any


class Planted(NamedTuple):
    """One fault: `make` returns what replaces the method `name` of `owner`."""

    owner: type
    name: str
    make: Callable[[Method], Method]


def _cursor_off_by_one(method: Method) -> Method:
    def after(self: MemoryStore, number: int) -> Any:
        return method(self, number)[1:]

    return after


def _gap_not_noticed(method: Method) -> Method:
    return lambda self: None


def _reused_number(method: Method) -> Method:
    async def join(self: MemoryStore, server: str) -> WorkerPlace:
        """Number the workers, as a counter in the store does."""
        place = await method(self, server)
        del self._heartbeats[place.number]
        number = len(self._heartbeats) + 1
        self._heartbeats[number] = self._runtimes[-1].monotonic()
        return WorkerPlace(number, place.position)

    return join


def _publish_twice(method: Method) -> Method:
    async def publish_once(self: WorkerBus) -> None:
        message = self._changes._unpublished
        await method(self)
        if message.lists or message.uris:
            await self._store.publish(self._changes.number, message)

    return publish_once


def _wake_lost(method: Method) -> Method:
    async def watch_store(self: TaskRecords) -> None:
        while True:
            try:
                async with self.store.watch() as keys:
                    async for key in keys:
                        if key is None:
                            self._all_changed()
                        else:
                            self.changed(key)
            except TaskStoreError as exc:
                self.reports.failed(STORE, exc)
            await self._runtime.wait(self._runtime.new_event(), 1.0)

    return watch_store


def _own_message_heard(method: Method) -> Method:
    def is_from_others(self: SharedChanges, worker: int, message: Any) -> bool:
        return True

    return is_from_others


def _not_checked(method: Method) -> Method:
    async def check_running(self: TaskService) -> None:
        pass

    return check_running


def _other_worker_not_seen(method: Method) -> Method:
    def on_record(self: RunningTask, record: Any) -> None:
        if record is None or record.ended:
            self.stop()

    return on_record


def _other_worker_overwritten(method: Method) -> Method:
    async def apply(self: RunningTask, *actions: Any) -> Any:
        return None if self.cancelled else await self._records.apply(self.key, *actions)

    return apply


def _lost_number_kept(method: Method) -> Method:
    async def heartbeat(self: MemoryStore, worker: int) -> Any:
        self._heartbeats[worker] = self._runtimes[-1].monotonic()
        return self._last()

    return heartbeat


def _quota_given_back_twice(method: Method) -> Method:
    def remove(self: MemoryTaskStore, record: Any) -> None:
        method(self, record)
        if (used := self._used.get(record.quota_key)) is not None:
            used.tasks -= 1
            used.size -= record.size

    return remove


def _no_deadline(method: Method) -> Method:
    async def within(self: TrioTaskRuntime, seconds: float, function: Any) -> Any:
        return await function()

    return within


def _breaker_stays_open(method: Method) -> Method:
    def succeeded(self: StoreBreaker, command: str) -> None:
        was_out = self.is_out
        method(self, command)
        self.is_out = was_out

    return succeeded


PLANTED: Final[dict[str, tuple[Planted, ...]]] = {
    "cursor off by one": (Planted(MemoryStore, "_after", _cursor_off_by_one),),
    "gap not noticed": (Planted(SharedChanges, "_miss", _gap_not_noticed),),
    "reused number": (Planted(MemoryStore, "join", _reused_number),),
    "publish retried twice": (Planted(WorkerBus, "_publish_once", _publish_twice),),
    "wake lost when the reader restarts": (Planted(TaskRecords, "watch_store", _wake_lost),),
    "own message not skipped": (Planted(SharedChanges, "_is_from_others", _own_message_heard),),
    # A worker that goes on as if it had kept its lease. Three places notice that it has not.
    "lease renewed after its loss": (
        Planted(TaskService, "_check_running", _not_checked),
        Planted(RunningTask, "on_record", _other_worker_not_seen),
        Planted(RunningTask, "_apply", _other_worker_overwritten),
    ),
    "number kept after its loss": (Planted(MemoryStore, "heartbeat", _lost_number_kept),),
    "quota given back twice": (Planted(MemoryTaskStore, "_remove", _quota_given_back_twice),),
    "no deadline": (Planted(TrioTaskRuntime, "within", _no_deadline),),
    "breaker that never closes": (Planted(StoreBreaker, "succeeded", _breaker_stays_open),),
}


@contextmanager
def planted(name: str) -> Iterator[None]:
    """Plant the fault of this name while entered."""
    with ExitStack() as undo:
        for owner, method_name, make in PLANTED[name]:
            method = vars(owner)[method_name]
            undo.callback(setattr, owner, method_name, method)
            setattr(owner, method_name, make(method))
        yield
