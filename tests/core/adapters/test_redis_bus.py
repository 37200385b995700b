"""Two served servers that share Redis or Valkey, through its outages: nothing is missed."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import pytest
import trio

from mcp_core.adapters import RedisStore, _redis_client
from mcp_core.protocol.subscriptions._server import Change
from mcp_core.registry import Server
from tests.harness import either
from tests.harness.redis_server import PROGRAMS, RedisServer

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Coroutine, Iterable, Iterator
    from pathlib import Path

pytestmark = [
    pytest.mark.process,
    pytest.mark.timeout(60),
    pytest.mark.parametrize(
        "run", [trio.run, lambda main: asyncio.run(main())], ids=["trio", "asyncio"]
    ),
    pytest.mark.parametrize("program", PROGRAMS),
]

TOOLS = Change(list="tools")


class HeardChanges:
    """A listener of a server, as the service of one client is."""

    def __init__(self) -> None:
        self.found: set[Change] = set()
        self.everything = 0

    def changed(self, changes: Iterable[Change], /, *, all_resources: bool = False) -> None:
        self.found |= {*changes}
        self.everything += all_resources

    def elicitation_completed(self, elicitation_id: str, /) -> None:
        raise AssertionError(elicitation_id)


@asynccontextmanager
async def workers(redis: RedisServer) -> AsyncIterator[tuple[Server, HeardChanges, HeardChanges]]:
    """Serve two. Yield the first one, and the changes that each hears of."""
    servers = [Server("s", state_keys={"1": b"k" * 32}) for _ in "ab"]
    heard = [HeardChanges(), HeardChanges()]
    for server, listener in zip(servers, heard, strict=True):
        server.attach(listener)
    stores = [RedisStore(redis.url, name="lab") for _ in "ab"]
    async with (
        either.open_server(servers[0], stores[0]),
        either.open_server(servers[1], stores[1]),
    ):
        yield servers[0], heard[0], heard[1]


async def until(ready: Callable[[], object]) -> None:
    with either.fail_after(20):
        while not ready():
            await either.sleep(0.01)


@pytest.fixture
def redis(program: str, tmp_path: Path) -> Iterator[RedisServer]:
    with RedisServer(tmp_path, program) as server:
        yield server


def test_changes_of_an_outage_are_heard_after_it(run: Any, redis: RedisServer) -> None:
    """Redis is killed, and comes back empty. Local clients never wait for it."""

    async def main() -> None:
        async with workers(redis) as (server, local, remote):
            server.changed(tools=True)
            await until(lambda: TOOLS in remote.found)
            assert remote.everything == 0
            redis.kill()
            for number in range(5):
                server.changed(resource=f"u:{number}")
            assert len(local.found) == 6
            await either.sleep(0.5)
            assert remote.found == {TOOLS}
            redis.start()
            await until(lambda: len(remote.found) == 6 or remote.everything)
            # It had lost what was before: so everything counts as changed, once.
            await until(lambda: remote.everything)
            server.changed(resource="u:after")
            await until(lambda: Change(uri="u:after") in remote.found)

    run(main)


def test_changes_while_redis_hangs_are_heard_after_it(
    run: Any, redis: RedisServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing was lost, so nothing else counts as changed."""

    async def main() -> None:
        async with workers(redis) as (server, local, remote):
            server.changed(tools=True)
            await until(lambda: TOOLS in remote.found)
            monkeypatch.setattr(_redis_client, "_DEADLINE", 0.3)
            redis.stop()
            server.changed(resource="u:1")
            assert Change(uri="u:1") in local.found
            await either.sleep(1)
            monkeypatch.setattr(_redis_client, "_DEADLINE", 5.0)
            redis.go_on()
            await until(lambda: Change(uri="u:1") in remote.found)
            assert remote.everything == 0
            assert local.found == remote.found

    run(main)


def test_emptied_redis_counts_as_everything(run: Any, redis: RedisServer) -> None:
    async def main() -> None:
        async with workers(redis) as (server, _, remote):
            server.changed(tools=True)
            await until(lambda: TOOLS in remote.found)
            redis.run("FLUSHALL")
            server.changed(resource="u:1")
            await until(lambda: remote.everything)

    run(main)


def test_change_at_the_end_of_a_server_is_heard(run: Any, redis: RedisServer) -> None:
    """The last change is published before the server leaves, and its number is given back."""

    async def main() -> None:
        async with workers(redis) as (_, _, remote):
            third = Server("s", state_keys={"1": b"k" * 32})
            async with either.open_server(third, RedisStore(redis.url, name="lab")):
                assert len(redis.run("KEYS", "mcp:{lab}:number:*")) == 3
                third.changed(resource="u:last")
            await until(lambda: Change(uri="u:last") in remote.found)
            assert len(redis.run("KEYS", "mcp:{lab}:number:*")) == 2

    run(main)


def test_server_starts_without_redis_and_joins_later(
    run: Callable[[Callable[[], Coroutine[Any, Any, None]]], None], redis: RedisServer
) -> None:
    redis.kill()

    async def main() -> None:
        async with workers(redis) as (server, local, remote):
            server.changed(tools=True)
            assert local.found == {TOOLS}
            redis.start()
            await until(lambda: TOOLS in remote.found)

    run(main)
