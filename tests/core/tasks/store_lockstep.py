"""Random operations on several task stores at once, whose outcomes have to be equal.

`Lockstep` does the same operation on each store, one after the other, and compares what they
return. The stores have no records at first.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from hypothesis import strategies as st
from msgspec import Raw
from msgspec.structs import replace

from mcp_core.tasks import (
    Complete,
    SetMessage,
    TaskKey,
    TaskQuota,
    TaskQuotaExceeded,
    TaskRecord,
    TaskStoreError,
    transition,
)
from tests.core.tasks.store_contract import LIMITS, NOW, comparable, new_record

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence
    from random import Random

    from mcp_core.tasks import TaskStore
    from tests.core.tasks.runtimes import StoreRuntime

__all__ = ["Lockstep", "Operation", "operations", "random_operation"]

QUOTA: Final = TaskQuota(per_key=4, total=6, key_bytes=100, total_bytes=150)
# What each field of an operation may be.
CHOICES: Final[dict[str, Sequence[Any]]] = {
    "name": (
        *("create", "create", "create", "change", "change", "change", "change", "remove", "get"),
        *("page", "expire", "renew", "lost"),
    ),
    "id": "abcde",
    "owner": ("", "ada"),
    "size": (0, 5, 25, 50, 101),
    "ttl": (20.0, 200.0),
    "worker": ("", "w1", "w2"),
    "lag": (0, 0, 0, 0, 1),
    "limited": (True, False),
    "action": ("message", "complete", "take"),
    "seconds": (0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 5.0, 20.0),
}


@dataclass(frozen=True)
class Operation:
    """One operation. Each uses those of its fields that it needs.

    `lag` is how many changes ago its worker has read the record. `seconds` pass before it.
    """

    name: str
    id: str
    owner: str
    size: int
    ttl: float
    worker: str
    lag: int
    limited: bool
    action: str
    seconds: float


operations = st.lists(
    st.builds(Operation, **{name: st.sampled_from(found) for name, found in CHOICES.items()}),
    max_size=40,
)


def random_operation(random: Random) -> Operation:
    return Operation(**{name: random.choice(found) for name, found in CHOICES.items()})


class Lockstep:
    """Several stores and the time that they share.

    Attributes:
        now: the wall clock's time.
        kept: the records that exist, by their keys.
    """

    def __init__(self, stores: Sequence[TaskStore], runtime: StoreRuntime) -> None:
        self._stores = stores
        self._runtime = runtime
        self.now = NOW
        self.kept: dict[TaskKey, TaskRecord] = {}

    async def run(self, operation: Operation) -> None:
        """Do `operation` on each store, and compare the outcomes."""
        self.now += operation.seconds
        self._runtime.ahead += operation.seconds
        key = TaskKey(operation.owner, operation.id)
        known = self.kept.get(key)
        match operation.name:
            case "create":
                record = new_record(
                    *reversed(key),
                    created=self.now,
                    ttl=operation.ttl,
                    worker=operation.worker,
                    size=operation.size,
                    quota_key=f"key {operation.owner}",
                )
                await self._renew(operation.worker)
                if await self._same(lambda store: store.create(record, limits=QUOTA)) == "None":
                    self.kept[key] = record
            case "change" if known is not None:
                await self._change(key, known, operation)
            case "remove":
                serial = 1 if known is None else known.serial - operation.lag
                if await self._same(lambda store: store.change(key, serial, None)) == "True":
                    del self.kept[key]
            case "page":
                after = operation.id if operation.limited else ""
                await self._same(lambda store: store.page(operation.owner, after, 3))
            case "expire":
                await self._same(lambda store: store.remove_expired(self.now, 100), sort=True)
                self.kept = {
                    key: kept for key, kept in self.kept.items() if kept.expires > self.now
                }
            case "renew":
                seconds = 0.0 if operation.limited else 30.0
                await self._same(lambda store: store.renew_lease(operation.worker or "w1", seconds))
            case "lost":
                await self._same(lambda store: store.lost(100), sort=True)
            case _:
                await self._same(lambda store: store.get(key))

    async def _change(self, key: TaskKey, known: TaskRecord, operation: Operation) -> None:
        await self._renew(operation.worker)
        after = known
        if known.ended or operation.action == "take":
            after = replace(known, serial=known.serial + 1, worker=operation.worker)
        elif operation.action == "message":
            after = transition(known, SetMessage(str(self.now)), known.created, LIMITS)
        else:
            text = b'{"text":"%b"}' % (b"x" * operation.size)
            after = transition(known, Complete(Raw(text)), known.created, LIMITS)
        after = replace(after, size=operation.size)
        serial = known.serial - operation.lag
        limits = QUOTA if operation.limited else None
        outcome = await self._same(lambda store: store.change(key, serial, after, limits=limits))
        if outcome == "True":
            self.kept[key] = after

    async def _renew(self, worker: str) -> None:
        if worker:  # always before it gets a task
            await self._same(lambda store: store.renew_lease(worker, 30.0))

    async def _same(
        self, do: Callable[[TaskStore], Awaitable[object]], *, sort: bool = False
    ) -> str:
        """Return what `do` returns for every store, as text. `sort` if any order will do."""
        outcomes = [await _outcome(do(store), sort=sort) for store in self._stores]
        assert outcomes.count(outcomes[0]) == len(outcomes), outcomes
        return outcomes[0]


async def _outcome(awaitable: Awaitable[object], *, sort: bool) -> str:
    try:
        value = await awaitable
    except KeyError:
        return "KeyError"
    except (TaskQuotaExceeded, TaskStoreError) as exc:
        return repr(exc)
    if isinstance(value, TaskRecord):
        return repr(comparable(value))
    if isinstance(value, list):
        found = [
            comparable(each) if isinstance(each, TaskRecord) else tuple(each) for each in value
        ]
        return repr(sorted(map(repr, found)) if sort else found)
    return repr(value)
