"""The store of tasks in a real Redis and Valkey: the contract, outages, and every bad record."""

from __future__ import annotations

from contextlib import AsyncExitStack, ExitStack
from functools import partial
from random import Random
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given, settings

from mcp_core.adapters._redis_client import RedisClient
from mcp_core.adapters._redis_tasks import RedisTaskStore
from mcp_core.protocol.input_requests._request_state import KeyRing
from mcp_core.runtime.tasks import MemoryTaskStore
from tests.core.tasks.runtimes import RUNS, run_trio
from tests.core.tasks.store_contract import CONTRACT, NOW, run_check
from tests.core.tasks.store_lockstep import Lockstep, Operation, operations, random_operation
from tests.harness.redis_server import PROGRAMS, RedisServer

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable, Iterator

    from mcp_core._redis_calls import RedisCall
    from mcp_core.tasks import TaskRecord
    from tests.core.tasks.runtimes import StoreRuntime
    from tests.core.tasks.store_contract import Stores

pytestmark = pytest.mark.process

KEYS = KeyRing({"a": b"a" * 32})


@pytest.fixture(scope="module", params=PROGRAMS)
def started(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[RedisServer]:
    directory = tmp_path_factory.mktemp("redis")
    with RedisServer(directory, request.param, "--appendonly", "yes") as server:
        yield server


@pytest.fixture
def server(started: RedisServer) -> RedisServer:
    started.run("FLUSHALL")
    return started


class ContractStore(RedisTaskStore):
    """A store in a Redis whose clock shows the time that `remove_expired` gets."""

    _now = NOW

    async def remove_expired(self, now: float, size: int, /) -> Any:
        self._now = now
        return await super().remove_expired(now, size)

    async def _run(self, call: RedisCall) -> Any:
        time = f"{{{int(self._now)}, {round(self._now % 1 * 1_000_000)}}}"
        if "append" not in call.script:
            call = call._replace(script=call.script.replace("redis.call('TIME')", time))
        return await super()._run(call)


def new_store(server: RedisServer, type: type[RedisTaskStore] = RedisTaskStore) -> RedisTaskStore:
    return type(RedisClient(server.url, "lab"), "lab")


@pytest.mark.parametrize("run", RUNS)
@pytest.mark.parametrize("check", CONTRACT)
def test_redis_store_keeps_the_contract(
    run: Callable[..., None], check: Callable[[Stores], Awaitable[object]], server: RedisServer
) -> None:
    async def main(runtime: StoreRuntime) -> None:
        runtime.keys = KEYS
        await run_check(check, lambda: new_store(server, ContractStore), runtime)

    run(main)


# -- Random operations -----------------------------------------------------------------------------


async def check_lockstep(
    servers: Iterable[RedisServer], operations: Iterable[Operation], runtime: StoreRuntime
) -> None:
    """Do the operations on a store in memory and one in each of `servers`. Check their sums."""
    runtime.keys = KEYS
    async with AsyncExitStack() as stack:
        stores: list[Any] = [MemoryTaskStore()]
        for server in servers:
            server.run("FLUSHALL")
            stores.append(new_store(server, ContractStore))
        for store in stores:
            await stack.enter_async_context(store.opened(runtime))
        lockstep = Lockstep(stores, runtime)
        for operation in operations:
            await lockstep.run(operation)
        for server in servers:
            assert usage(server) == expected_usage(lockstep.kept.values())


def usage(server: RedisServer) -> dict[str, int]:
    """Return the sums that the scripts have kept: tasks and bytes, by quota key."""
    reply = server.run("HGETALL", "mcp:{lab}:task-usage")
    return {name.decode(): int(value) for name, value in zip(reply[::2], reply[1::2], strict=True)}


def expected_usage(records: Iterable[TaskRecord]) -> dict[str, int]:
    """Return what the sums have to be."""
    found: dict[str, int] = {}
    for record in records:
        for name in (record.quota_key, "all"):
            found[f"tasks:{name}"] = found.get(f"tasks:{name}", 0) + 1
            found[f"size:{name}"] = found.get(f"size:{name}", 0) + record.size
    return found


@pytest.fixture(scope="module")
def both(tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[RedisServer]]:
    with ExitStack() as stack:
        yield [
            stack.enter_context(RedisServer(tmp_path_factory.mktemp("redis"), program))
            for program in PROGRAMS
        ]


@settings(max_examples=25)
@given(operations=operations)
def test_random_operations_have_equal_outcomes_in_memory_redis_and_valkey(
    both: list[RedisServer], operations: list[Operation]
) -> None:
    run_trio(partial(check_lockstep, both, operations))


@pytest.mark.parametrize(
    "count", [300, pytest.param(10_000, marks=[pytest.mark.slow, pytest.mark.timeout(300)])]
)
def test_sums_of_quotas_equal_the_records_after_many_operations(
    both: list[RedisServer], count: int
) -> None:
    random = Random(count)
    run_trio(partial(check_lockstep, both, (random_operation(random) for _ in range(count))))
