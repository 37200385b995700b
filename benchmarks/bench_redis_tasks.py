"""How fast tasks are stored in Redis, beside the same script called through bare coredis.

1. Both create the same records in one server, in turns, and remove them before the next turn. Bare
   is `coredis.Redis.evalsha` with keys and arguments that are ready. The store also encodes each
   record, signs it, and has a deadline for the command and a breaker.
2. One by one measures how long a create takes; 64 at once how much work it is.

    python benchmarks/bench_redis_tasks.py [--rounds 9] [--creates 1000] [--program redis-server]

It starts the program on a free port of 127.0.0.1. The last line is one JSON object: microseconds of
a create, and the ratio of bare to ours, the median of the rounds.
"""

from __future__ import annotations

import argparse
import json
from functools import partial
from hashlib import sha1
from statistics import median
from time import perf_counter
from typing import TYPE_CHECKING

import coredis
import trio
from redis_program import redis_server  # type: ignore[import-not-found]  # beside this file

from mcp_core.adapters import RedisStore
from mcp_core.protocol.input_requests._request_state import KeyRing
from mcp_core.tasks import TaskQuota, TaskRecord
from mcp_core.tasks._layout import RedisLayout, member_of
from mcp_core.tasks._signed_records import PURPOSE, RecordSigner
from mcp_trio._tasks import TrioTaskRuntime

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable

    from mcp_core._redis_calls import RedisCall

KEYS = KeyRing({"a": b"k" * 32})
NAME = "bench"
NOW = 1_800_000_000.0
AT_ONCE = 64
PLENTY = 1_000_000_000
BOUNDLESS = TaskQuota(per_key=PLENTY, total=PLENTY, key_bytes=PLENTY, total_bytes=PLENTY)


def records(count: int) -> list[TaskRecord]:
    """Return that many records of new tasks, 100 for each owner."""
    return [
        TaskRecord(
            id=f"{number:032x}",
            owner=f"{number // 100:064x}",
            created=NOW,
            updated=NOW,
            ttl=3600.0,
            tool="research",
            revision="2026-07-28",
            worker="0123456789abcdef",
        )
        for number in range(count)
    ]


def calls(to_create: Iterable[TaskRecord]) -> list[RedisCall]:
    """Return the calls that the store would make to create these tasks."""
    layout = RedisLayout(NAME)
    signer = RecordSigner(KEYS.signing_keys(PURPOSE), NAME)
    found = []
    for record in to_create:
        stored = signer.encode(record, layout.record_key(member_of(record.key)))
        found.append(layout.create(record, stored, limits=BOUNDLESS))
    return found


async def time_all(steps: Iterable[Callable[[], Awaitable[object]]], at_once: int) -> float:
    """Return the seconds that `at_once` tasks need for all steps."""
    waiting = iter(steps)

    async def work() -> None:
        for step in waiting:
            await step()

    start = perf_counter()
    async with trio.open_nursery() as nursery:
        for _ in range(at_once):
            nursery.start_soon(work)
    return perf_counter() - start


async def time_both(url: str, creates: int, rounds: int, at_once: int) -> tuple[float, float]:
    """Return the seconds of one create, and the ratio of bare to ours."""
    to_create = records(creates)
    made = calls(to_create)
    digest = sha1(made[0].script.encode(), usedforsecurity=False).hexdigest()
    turns = []
    store = RedisStore(url, name=NAME).tasks
    async with trio.open_nursery() as nursery, coredis.Redis.from_url(url) as client:
        runtime = TrioTaskRuntime(nursery)
        runtime.keys = KEYS
        bare = [partial(client.evalsha, digest, call.keys, call.arguments) for call in made]
        ours = [partial(store.create, record, limits=BOUNDLESS) for record in to_create]
        await client.flushdb()
        async with store.opened(runtime):
            await ours[0]()  # the server has the script
            for _ in range(rounds):
                await client.flushdb()
                first = await time_all(bare, at_once)
                assert len(await client.keys("*:task:*")) == creates
                await client.flushdb()
                turns.append((await time_all(ours, at_once), first))
                assert len(await client.keys("*:task:*")) == creates
        nursery.cancel_scope.cancel()
    return median(one for one, _ in turns) / creates, median(two / one for one, two in turns)


def main() -> None:
    options = argparse.ArgumentParser(description="The store of tasks in Redis, beside coredis.")
    options.add_argument("--rounds", type=int, default=9, help="turns of each (9)")
    options.add_argument("--creates", type=int, default=1000, help="tasks in a turn (1000)")
    options.add_argument("--program", default="redis-server", help="the server (redis-server)")
    chosen = options.parse_args()
    with redis_server(chosen.program) as url:
        found = {
            at_once: trio.run(time_both, url, chosen.creates, chosen.rounds, at_once)
            for at_once in (1, AT_ONCE)
        }
    for at_once, (seconds, ratio) in found.items():
        print(f"Redis, {at_once} at once: {seconds * 1e6:.0f} us a create; bare/ours {ratio:.2f}")
    print(
        json.dumps(
            {
                f"redis_{name}_{at_once}": round(value, 3)
                for at_once, (seconds, ratio) in found.items()
                for name, value in (("create_us", seconds * 1e6), ("ratio", ratio))
            }
        )
    )


if __name__ == "__main__":
    main()
