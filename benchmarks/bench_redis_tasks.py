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
import socket
import subprocess
import tempfile
from contextlib import contextmanager
from hashlib import sha1
from statistics import median
from time import perf_counter, sleep
from typing import TYPE_CHECKING

import coredis
import trio
from bench_tasks import AT_ONCE, BOUNDLESS, create_all, records

from mcp_core.adapters import RedisStore
from mcp_core.protocol.input_requests._request_state import KeyRing
from mcp_core.tasks._layout import RedisLayout, member_of
from mcp_core.tasks._signed_records import PURPOSE, RecordSigner
from mcp_trio._tasks import TrioTaskRuntime

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from mcp_core._redis_calls import RedisCall

KEYS = KeyRing({"a": b"k" * 32})
NAME = "bench"


@contextmanager
def redis_server(program: str) -> Iterator[str]:
    """Start a server that keeps nothing on disk, and yield its URL."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    with tempfile.TemporaryDirectory() as directory:
        command = [program, "--bind", "127.0.0.1", "--port", str(port), "--save", ""]
        with subprocess.Popen([*command, "--dir", directory], stdout=subprocess.DEVNULL) as server:
            try:
                for _ in range(100):
                    try:
                        socket.create_connection(("127.0.0.1", port)).close()
                        break
                    except ConnectionRefusedError:
                        sleep(0.05)
                yield f"redis://127.0.0.1:{port}"
            finally:
                server.kill()


def calls(count: int) -> list[RedisCall]:
    """Return the calls that the store would make to create that many tasks."""
    layout = RedisLayout(NAME)
    signer = RecordSigner(KEYS.signing_keys(PURPOSE), NAME)
    found = []
    for record in records(count):
        stored = signer.encode(record, layout.record_key(member_of(record.key)))
        found.append(layout.create(record, stored, limits=BOUNDLESS))
    return found


async def call_all(client: coredis.Redis[bytes], made: Iterable[RedisCall], at_once: int) -> float:
    """Return the seconds that `at_once` callers need for all calls."""
    waiting = iter(made)

    async def work() -> None:
        for call in waiting:
            digest = sha1(call.script.encode(), usedforsecurity=False).hexdigest()
            assert await client.evalsha(digest, call.keys, call.arguments) == b"created"

    start = perf_counter()
    async with trio.open_nursery() as nursery:
        for _ in range(at_once):
            nursery.start_soon(work)
    return perf_counter() - start


async def time_both(url: str, creates: int, rounds: int, at_once: int) -> tuple[float, float]:
    """Return the seconds of one create, and the ratio of bare to ours."""
    made, to_create = calls(creates), records(creates)
    turns = []
    store = RedisStore(url, name=NAME).tasks
    async with trio.open_nursery() as nursery, coredis.Redis.from_url(url) as client:
        runtime = TrioTaskRuntime(nursery)
        runtime.keys = KEYS
        await client.flushdb()
        async with store.opened(runtime):
            await create_all(store, to_create[:1], 1)  # the server has the script
            for _ in range(rounds):
                await client.flushdb()
                bare = await call_all(client, made, at_once)
                await client.flushdb()
                turns.append((await create_all(store, to_create, at_once), bare))
        nursery.cancel_scope.cancel()
    return median(ours for ours, _ in turns) / creates, median(bare / ours for ours, bare in turns)


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
