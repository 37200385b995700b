"""Tasks that are created at one worker and fetched, answered or cancelled at another."""

from __future__ import annotations

from contextlib import asynccontextmanager
from functools import partial
from typing import TYPE_CHECKING

import anyio
import httpx2
import pytest

from tests.harness.redis_server import PROGRAMS, RedisServer
from tests.harness.worker_programs import PROGRAMS_OF_WORKERS, worker_program
from tests.harness.world.waiting import PATIENCE
from tests.task_play.wires import D, E, SocketHttpClient

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator
    from pathlib import Path

pytestmark = [pytest.mark.process, pytest.mark.timeout(120)]

MODULE = "tests.task_play.workers"


worker = partial(worker_program, MODULE)


@asynccontextmanager
async def client_of(port: int, version: str) -> AsyncIterator[SocketHttpClient]:
    url = f"http://127.0.0.1:{port}/mcp"
    async with (
        httpx2.AsyncClient(timeout=PATIENCE) as connection,
        anyio.create_task_group() as group,
    ):
        client = SocketHttpClient(version, group, connection, url)
        await client.open()
        yield client
        group.cancel_scope.cancel()


async def process_of(client: SocketHttpClient) -> str:
    return str(await client.call("who"))


# The store is the same code for both programs, which its contract tries.
@pytest.fixture(
    scope="module", params=[PROGRAMS[0], pytest.param(PROGRAMS[1], marks=pytest.mark.slow)]
)
def redis(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[RedisServer]:
    directory: Path = tmp_path_factory.mktemp("redis")
    with RedisServer(directory, request.param, "--appendonly", "yes") as server:
        yield server


@pytest.fixture(scope="module", params=PROGRAMS_OF_WORKERS)
def workers(redis: RedisServer, request: pytest.FixtureRequest) -> Iterator[list[int]]:
    """Yield the ports of two workers of one server."""
    with worker(redis, request.param) as one, worker(redis, request.param) as two:
        yield [one, two]


@pytest.mark.parametrize("version", [D, E])
async def test_task_is_answered_and_fetched_at_another_worker(
    workers: list[int], version: str
) -> None:
    one, two = workers
    async with client_of(one, version) as first, client_of(two, version) as second:
        here, there = await process_of(first), await process_of(second)
        assert here != there
        task_id = await first.create("ask")
        await second.until(task_id, "input_required")
        second.answer = lambda request: {"action": "accept", "content": {"name": "Ada"}}
        assert await second.text(task_id) == f"Ada by {here}"
        assert (await first.state(task_id))["status"] == "completed"
        assert await first.text(task_id) == f"Ada by {here}"


@pytest.mark.parametrize("version", [D, E])
async def test_task_is_cancelled_at_another_worker(workers: list[int], version: str) -> None:
    """Its handler stops where it runs."""
    one, two = workers
    async with client_of(one, version) as first, client_of(two, version) as second:
        task_id = await first.create("wait")
        await second.request("tasks/cancel", {"taskId": task_id})
        assert (await second.state(task_id))["status"] == "cancelled"
        await first.request("tools/call", {"name": "until_cancelled"})
        assert (await first.state(task_id))["status"] == "cancelled"


async def test_task_is_listened_to_at_another_worker(workers: list[int]) -> None:
    one, two = workers
    async with client_of(one, E) as first, client_of(two, E) as second:
        task_id = await first.create("ask")
        second.listen(task_id)
        await second.until_notified(
            lambda message: message["params"].get("status") == "input_required"
        )
        first.answer = lambda request: {"action": "decline"}
        assert "decline by" in await first.text(task_id)
        done = await second.until_notified(
            lambda message: message["params"].get("status") == "completed"
        )
        assert done["params"]["taskId"] == task_id


@pytest.mark.parametrize("how", PROGRAMS_OF_WORKERS)
async def test_tasks_of_two_forms_of_servers_are_one_set(redis: RedisServer, how: str) -> None:
    """A server on trio and one on asyncio, with a client of each era."""
    with worker(redis, how) as one, worker(redis, "serve_http") as two:
        async with client_of(one, D) as first, client_of(two, D) as second:
            task_id = await first.create("ask")
            second.answer = lambda request: {"action": "decline"}
            assert "decline by" in await second.text(task_id)
            listed = (await first.request("tasks/list"))["tasks"]
            assert task_id in [task["taskId"] for task in listed]
