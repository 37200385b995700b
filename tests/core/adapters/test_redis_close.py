"""The client of Redis at the end of a server that is cancelled, on trio: asyncio cancels no task
in the background.
"""

from __future__ import annotations

import trio
import trio.testing

from mcp_core.adapters._redis_client import RedisClient
from mcp_trio._tasks import TrioTaskRuntime
from tests.fakes.redis_peer import RedisPeer
from tests.harness.world.waiting import until


async def test_cancelled_server_still_sends_its_last_commands() -> None:
    """Its connection outlives the cancellation, and ends with the client."""
    with RedisPeer() as peer:
        client = RedisClient(peer.url, "a")
        async with trio.open_nursery() as nursery, client.opened(TrioTaskRuntime(nursery)):
            assert await client.execute("PING") == b"OK"
            nursery.cancel_scope.cancel()
            with trio.CancelScope(shield=True):
                await trio.testing.wait_all_tasks_blocked()
                assert await client.execute("PING") == b"OK"
                assert len(peer.hellos) == 1
        await until(lambda: peer.connections == 0)
