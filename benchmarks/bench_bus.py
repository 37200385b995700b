"""How long a change takes from one worker to another through Redis, beside bare coredis.

1. A message goes from this process to another one. Ours is `RedisStore.publish` and `read`, which
   encode, sign and verify, with numbers without holes. Bare is `coredis.Redis.xadd` and `xread`
   with a message of the same length. They take turns.
2. A change goes from a server in this process to a client that listens at a server in the other
   one, over HTTP: `Server.changed`, both buses, and the client's stream. The client is in this
   process.

    python benchmarks/bench_bus.py [--rounds 5] [--messages 300] [--program redis-server]

It starts the program on a free port of 127.0.0.1. The last line is one JSON object: microseconds at
the median and at p99, and the ratio of bare to ours, the median of the rounds.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from contextlib import contextmanager
from statistics import median, quantiles
from time import perf_counter
from typing import TYPE_CHECKING, Any

import coredis
import trio
from redis_program import redis_server  # type: ignore[import-not-found]  # beside this file

from mcp_core.sharing import ChangesPublished
from mcp_trio import RedisStore, Server, connect, serve_http
from mcp_trio._tasks import TrioTaskRuntime, open_server

if TYPE_CHECKING:
    from collections.abc import Iterator

NAME = "bench"
NEVER_WAITING = ("--appendonly", "yes", "--appendfsync", "no")  # for the disk
PAUSE = 0.003  # seconds between two messages, so that each is read alone
PADDING = "x" * 90  # as long as what is around the URI in ours


def server() -> Server:
    return Server("bench", state_keys={"a": b"k" * 32})


@contextmanager
def other_process(*arguments: str) -> Iterator[subprocess.Popen[str]]:
    """Run this file as the other worker. It prints a line when it is ready."""
    command = [sys.executable, __file__, "--child", *arguments]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            yield process
        finally:
            process.kill()


async def line_of(process: subprocess.Popen[str]) -> str:
    assert process.stdout is not None
    return await trio.to_thread.run_sync(process.stdout.readline)


# -- The other worker ------------------------------------------------------------------------------


async def read_ours(url: str, count: int) -> None:
    async with trio.open_nursery() as nursery:
        runtime = TrioTaskRuntime(nursery)
        runtime.keys = server().shared_keys
        store = RedisStore(url, name=NAME)
        async with store.opened(runtime):
            position = (await store.join("bench")).position
            print("ready", flush=True)
            found: list[float] = []
            while len(found) < count:
                batch = await store.read(position)
                now = perf_counter()
                position = batch.position
                found += [now - float(m[1].uris[0]) for m in batch.messages if m]  # type: ignore[union-attr]
            print(json.dumps(found), flush=True)
        nursery.cancel_scope.cancel()


async def read_bare(url: str, count: int) -> None:
    async with coredis.Redis.from_url(url) as client:
        last: Any = "0-0"
        print("ready", flush=True)
        found: list[float] = []
        while len(found) < count:
            reply = await client.xread({"bare": last}, count=100, block=5000)
            now = perf_counter()
            for entry in (reply or {}).get(b"bare", ()):
                last = entry.identifier
                found.append(now - float(entry.field_values[b"m"].split()[0]))
        print(json.dumps(found), flush=True)


async def serve(url: str, count: int) -> None:
    async with trio.open_nursery() as nursery:

        async def run(task_status: Any) -> None:
            store = RedisStore(url, name=NAME)
            await serve_http(declared(), store=store, task_status=task_status)

        print((await nursery.start(run)).url, flush=True)


def declared() -> Server:
    found = server()

    @found.resource("x:{at}")
    def read(at: str) -> str:
        """Return when it was changed."""
        return at

    return found


# -- This worker -----------------------------------------------------------------------------------


async def time_ours(url: str, count: int) -> list[float]:
    with other_process("ours", url, str(count)) as process:
        await line_of(process)
        async with trio.open_nursery() as nursery:
            runtime = TrioTaskRuntime(nursery)
            runtime.keys = server().shared_keys
            store = RedisStore(url, name=NAME)
            async with store.opened(runtime):
                number = (await store.join("bench")).number
                for _ in range(count):
                    message = ChangesPublished("bench", uris=(repr(perf_counter()),))
                    await store.publish(number, message)
                    await trio.sleep(PAUSE)
            nursery.cancel_scope.cancel()
        found: list[float] = json.loads(await line_of(process))
    return found


async def time_bare(url: str, count: int) -> list[float]:
    async with coredis.Redis.from_url(url) as client:
        await client.delete(["bare"])
        with other_process("bare", url, str(count)) as process:
            await line_of(process)
            for _ in range(count):
                await client.xadd("bare", {"m": f"{perf_counter()!r} {PADDING}"})
                await trio.sleep(PAUSE)
            found: list[float] = json.loads(await line_of(process))
    return found


async def time_change(url: str, count: int) -> list[float]:
    found: list[float] = []
    with other_process("serve", url, "0") as process:
        address = (await line_of(process)).strip()
        ours = declared()
        async with (
            open_server(ours, store=RedisStore(url, name=NAME)),
            connect(address) as client,
        ):
            # A subscription of each URI, before it is changed.
            uris = [f"x:{number}" for number in range(count)]
            async with client.listen(uris=uris) as changes:
                await trio.sleep(0.1)
                for uri in uris:
                    began = perf_counter()
                    ours.changed(resource=uri)
                    async for change in changes:
                        assert change.uri == uri
                        break
                    found.append(perf_counter() - began)
                    await trio.sleep(PAUSE)
    return found


def figures(name: str, times: list[float]) -> dict[str, float]:
    return {
        f"{name}_p50_us": round(median(times) * 1e6),
        f"{name}_p99_us": round(quantiles(times, n=100)[98] * 1e6),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--messages", type=int, default=300)
    parser.add_argument("--program", default="redis-server")
    parser.add_argument("--child", nargs=3, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.child:
        how, url, count = options.child
        trio.run({"ours": read_ours, "bare": read_bare, "serve": serve}[how], url, int(count))
        return
    ours: list[float] = []
    bare: list[float] = []
    changes: list[float] = []
    ratios = []
    with redis_server(options.program, *NEVER_WAITING) as url:
        for _ in range(options.rounds):
            ours_now = trio.run(time_ours, url, options.messages)
            bare_now = trio.run(time_bare, url, options.messages)
            changes += trio.run(time_change, url, min(options.messages, 100))
            ratios.append(median(bare_now) / median(ours_now))
            ours += ours_now
            bare += bare_now
    result = {
        **figures("message", ours),
        **figures("bare", bare),
        "message_ratio": round(median(ratios), 2),
        **figures("change", changes),
    }
    for name, value in result.items():
        print(f"{name:20} {value:10,}")
    print(json.dumps(result))


if __name__ == "__main__":
    main()
