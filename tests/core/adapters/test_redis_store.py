"""`RedisStore` with servers of Redis and Valkey: its contract, and each way in which they fail."""

from __future__ import annotations

import re
import subprocess
import sys
import textwrap
import time
from contextlib import AsyncExitStack
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from mcp_core.adapters import RedisStore, _redis_client, _redis_store
from mcp_core.registry import Server
from mcp_core.runtime.sharing import check_session_store
from mcp_core.sharing import (
    ChangesPublished,
    MessageCodec,
    Position,
    SessionStoreError,
    WorkerBatch,
)
from tests.core.adapters.redis_runs import KEYS, RUNS, STREAM, TOOLS, pause, soon
from tests.harness.redis_server import PROGRAMS, RedisServer, RespConnection
from tests.harness.world.waiting import PATIENCE

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterator

pytestmark = [pytest.mark.process, pytest.mark.parametrize("run", RUNS)]

PROMPTS = ChangesPublished("s", lists=("prompts",))
PAGE = Path(__file__).parents[3] / "docs" / "howto" / "workers.md"
# The rule of the documentation, for this deployment.
[ACL] = re.findall(r"> ACL SETUSER notes reset on >PASSWORD (.*)$", PAGE.read_text(), re.MULTILINE)
ACL = ACL.replace("{notes}", "{lab}")


@pytest.fixture(scope="module", params=PROGRAMS)
def shared_server(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[RedisServer]:
    with RedisServer(tmp_path_factory.mktemp("redis"), request.param) as server:
        yield server


@pytest.fixture
def server(shared_server: RedisServer) -> RedisServer:
    shared_server.run("FLUSHALL")
    return shared_server


@pytest.fixture(params=PROGRAMS)
def program(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def _short(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_redis_store, "_READ_TIME", 0.3)


def make(server: RedisServer, name: str = "lab") -> RedisStore:
    return RedisStore(server.url, name=name)


def with_store(
    run: Callable[[Any], None],
    store: RedisStore,
    main: Callable[[RedisStore, Any], Awaitable[None]],
) -> None:
    async def opened(runtime: Any) -> None:
        async with store.opened(runtime):
            await main(store, runtime)

    run(opened)


async def read_all(store: RedisStore, position: Position, runtime: Any) -> WorkerBatch:
    """Read until something has come, after failures too."""
    for _ in range(50):
        try:
            batch = await store.read(position)
        except SessionStoreError:
            runtime.clock.ahead += 1.1
            continue
        if batch.messages:
            return batch
        position = batch.position
    raise AssertionError("nothing has come")


# -- The contract ----------------------------------------------------------------------------------


def test_store_keeps_the_contract(run: Any, server: RedisServer) -> None:
    run(partial(check_session_store, partial(make, server)))


def test_store_keeps_the_contract_under_the_documented_acl(run: Any, server: RedisServer) -> None:
    """Nothing that the rule leaves out is missed."""
    server.run("ACL", "SETUSER", "lab", "reset", "on", ">secret", *ACL.split())
    url = server.url.replace("//", "//lab:secret@")
    run(partial(check_session_store, lambda: RedisStore(url, name="lab")))


def test_every_key_has_a_time_to_live(run: Any, server: RedisServer) -> None:
    """And a worker that has left leaves no number."""

    async def main(store: RedisStore, runtime: Any) -> None:
        place = await store.join("s")
        await store.heartbeat(place.number)
        await store.publish(place.number, TOOLS)
        keys = server.run("KEYS", "*")
        assert len(keys) == 4
        assert all(0 < server.run("TTL", key) <= 3600 for key in keys)
        assert all(key.startswith(b"mcp:{lab}:") for key in keys)
        await store.leave(place.number)
        assert sorted(server.run("KEYS", "*")) == [STREAM.encode(), b"mcp:{lab}:servers"]

    with_store(run, make(server), main)


def test_deployments_see_nothing_of_each_other(run: Any, server: RedisServer) -> None:
    """Nor does a message that was copied from one to the other count."""

    async def main(store: RedisStore, runtime: Any) -> None:
        other = make(server, "other")
        async with other.opened(runtime):
            theirs, place = await other.join("s"), await store.join("s")
            await other.publish(theirs.number, TOOLS)
            [[_, fields]] = server.run("XREVRANGE", "mcp:{other}:bus", "+", "-", "COUNT", "1")
            server.run("XADD", STREAM, next_id(server), *fields)
            await store.publish(place.number, PROMPTS)
            batch = await read_all(store, place.position, runtime)
            assert batch.messages == [(place.number, PROMPTS)]

    with_store(run, make(server), main)


# -- Outages ---------------------------------------------------------------------------------------


@pytest.mark.usefixtures("_short")
def test_restarted_server_gives_a_gap_and_keeps_the_numbers(
    run: Any, program: str, tmp_path: Path
) -> None:
    """Everything in it is lost. Workers keep their numbers, since no other one has them."""
    with RedisServer(tmp_path, program) as server:

        async def main(store: RedisStore, runtime: Any) -> None:
            place = await store.join("s")
            position = await store.publish(place.number, TOOLS)
            read = soon(runtime, partial(store.read, position))
            await pause(runtime, 0.1)
            server.kill()
            with pytest.raises(SessionStoreError, match="closed the connection"):
                await read()
            with pytest.raises(SessionStoreError, match="refuses connections"):
                await store.publish(place.number, PROMPTS)
            server.start()
            runtime.clock.ahead += 1.1
            assert (await store.heartbeat(place.number) or position) > position
            await store.publish(place.number, PROMPTS)
            batch = await read_all(store, position, runtime)
            assert batch.messages == [None, (place.number, PROMPTS)]
            assert batch.position.epoch > position.epoch
            assert await store.missed("s", position) is None
            assert await store.alive([place.number]) == {place.number}

        with_store(run, make(server), main)


def test_killed_connections_lose_no_message(run: Any, server: RedisServer) -> None:
    """The next read goes on where the killed one was."""

    async def main(store: RedisStore, runtime: Any) -> None:
        place = await store.join("s")
        position = place.position
        for uri in ("u:1", "u:2", "u:3"):
            read = soon(runtime, partial(store.read, position))
            await pause(runtime, 0.05)
            server.run("CLIENT", "KILL", "TYPE", "normal")
            with pytest.raises(SessionStoreError, match="closed the connection"):
                await read()
            runtime.clock.ahead += 1.1
            message = ChangesPublished("s", uris=(uri,))
            await store.publish(place.number, message)
            batch = await read_all(store, position, runtime)
            assert batch.messages == [(place.number, message)]
            position = batch.position

    with_store(run, make(server), main)


@pytest.mark.usefixtures("_short")
def test_stopped_server_fails_each_command_in_time(
    run: Any, server: RedisServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A message of that time may be heard once it goes on, and no other one is lost."""

    async def main(store: RedisStore, runtime: Any) -> None:
        place = await store.join("s")
        monkeypatch.setattr(_redis_client, "_DEADLINE", 0.3)
        server.stop()
        try:
            for call in (
                partial(store.publish, place.number, TOOLS),
                partial(store.read, place.position),
                partial(store.heartbeat, place.number),
            ):
                began = time.monotonic()
                with pytest.raises(SessionStoreError, match="didn't respond within"):
                    await call()
                assert time.monotonic() - began < 5
            began = time.monotonic()
            with pytest.raises(SessionStoreError, match="didn't respond within"):
                await store.publish(place.number, TOOLS)
            assert time.monotonic() - began < 0.2
        finally:
            server.go_on()
        monkeypatch.setattr(_redis_client, "_DEADLINE", 5.0)
        runtime.clock.ahead += 1.1
        await store.publish(place.number, PROMPTS)
        heard: list[Any] = []
        position = place.position
        while (place.number, PROMPTS) not in heard:
            batch = await read_all(store, position, runtime)
            heard += batch.messages
            position = batch.position
        assert None not in heard
        assert len(runtime.warnings) == 3  # of the settings, and the outage and its end

    with_store(run, make(server), main)


@pytest.mark.usefixtures("_short")
def test_emptied_store_gives_a_gap_and_a_later_epoch(run: Any, server: RedisServer) -> None:
    """The first heartbeat begins the stream again, and keeps the number."""

    async def main(store: RedisStore, runtime: Any) -> None:
        place = await store.join("s")
        await store.publish(place.number, TOOLS)
        server.run("FLUSHALL")
        assert (await store.read(place.position)).messages == []
        assert await store.missed("s", place.position) is None
        assert await store.alive([place.number]) == set()
        last = await store.heartbeat(place.number)
        assert last is not None
        assert last > place.position
        batch = await read_all(store, place.position, runtime)
        assert batch == WorkerBatch(last, [None])
        assert await store.publish(place.number, TOOLS) == Position(last.epoch, 1)

    with_store(run, make(server), main)


@pytest.mark.usefixtures("_short")
def test_clock_that_was_set_back_keeps_no_reader_waiting(run: Any, server: RedisServer) -> None:
    """The stream is begun again with an earlier epoch than that of a reader."""

    async def main(store: RedisStore, runtime: Any) -> None:
        place = await store.join("s")
        ahead = Position(place.position.epoch + 10**6, 5)
        assert await store.read(ahead) == WorkerBatch(ahead, [])
        batch = await read_all(store, ahead, runtime)
        assert batch == WorkerBatch(Position(ahead.epoch + 1, 0), [None])
        await store.publish(place.number, TOOLS)
        batch = await read_all(store, batch.position, runtime)
        assert batch == WorkerBatch(Position(ahead.epoch + 1, 1), [(place.number, TOOLS)])
        # A reader that is where the others are changes nothing.
        assert (await store.read(batch.position)).position == batch.position

    with_store(run, make(server), main)


@pytest.mark.usefixtures("_short")
@pytest.mark.parametrize("others", ["last", "all", "huge"])
def test_removed_and_strange_entries_keep_no_worker_from_publishing(
    others: str, run: Any, server: RedisServer
) -> None:
    """Redis refuses an id that isn't after the last one, though that one was removed."""

    async def main(store: RedisStore, runtime: Any) -> None:
        place = await store.join("s")
        await store.publish(place.number, TOOLS)
        position = await store.publish(place.number, TOOLS)
        if others == "huge":
            server.run("XADD", STREAM, f"{position.epoch}-{2**64 - 1}", "m", "")
        else:
            server.run("XADD", STREAM, f"{position.epoch + 10**6}-5", "m", "")
            server.run("XDEL", STREAM, f"{position.epoch + 10**6}-5", f"{position.epoch}-2")
            if others == "all":
                server.run("XDEL", STREAM, f"{position.epoch}-0", f"{position.epoch}-1")
        assert await store.heartbeat(place.number) is not None
        after = await store.publish(place.number, PROMPTS)
        assert after.epoch > position.epoch
        batch = await read_all(store, position, runtime)
        assert batch.messages == [None, (place.number, PROMPTS)]
        assert await store.missed("s", position) is None
        assert await store.publish(place.number, TOOLS) == Position(after.epoch, after.number + 1)

    with_store(run, make(server), main)


@pytest.mark.usefixtures("_short")
def test_failover_that_uses_numbers_again_is_a_gap(run: Any, server: RedisServer) -> None:
    """The replica lacks the last entry, and has a later one when the reader is back."""

    async def main(store: RedisStore, runtime: Any) -> None:
        place = await store.join("s")
        await store.publish(place.number, TOOLS)
        dump = server.run("DUMP", STREAM)
        position = await store.publish(place.number, TOOLS)
        assert (await store.read(place.position)).position == position
        assert (await store.read(position)).messages == []
        server.run("RESTORE", STREAM, "3600000", dump, "REPLACE")
        server.run("CLIENT", "KILL", "TYPE", "normal")
        await pause(runtime, 0.05)
        await store.publish(place.number, TOOLS)  # the same message again
        await store.publish(place.number, PROMPTS)
        batch = await read_all(store, position, runtime)
        assert batch.messages[-1] is None
        assert batch.position.epoch == position.epoch + 1
        assert await store.missed("s", position) is None

    with_store(run, make(server), main)


def test_reader_far_behind_gets_a_gap(run: Any, server: RedisServer) -> None:
    """The last 10,000 messages or so are kept."""

    async def main(store: RedisStore, runtime: Any) -> None:
        place = await store.join("s")
        codec = MessageCodec(KEYS.signing_keys("workers"), "lab")
        data = codec.encode(TOOLS, place.number, STREAM)
        with RespConnection(server.port) as connection:
            for start in range(1, 10_301, 100):
                ids = [f"{place.position.epoch}-{start + number}" for number in range(100)]
                connection.pipeline(
                    ("XADD", STREAM, "MAXLEN", "~", "10000", id, "m", data) for id in ids
                )
        assert server.run("XLEN", STREAM) < 10_300
        batch = await store.read(place.position)
        assert batch.messages[0] is None
        assert batch.messages[1:] == [(place.number, TOOLS)] * (len(batch.messages) - 1)
        assert await store.missed("s", place.position) is None
        assert await store.missed("s", batch.position) == TOOLS

    with_store(run, make(server), main)


# -- Writes of others ------------------------------------------------------------------------------


def next_id(server: RedisServer) -> str:
    [[last, _]] = server.run("XREVRANGE", STREAM, "+", "-", "COUNT", "1")
    epoch, _, number = last.decode().partition("-")
    return f"{epoch}-{int(number) + 1}"


@pytest.mark.usefixtures("_short")
def test_garbage_is_dropped_with_a_line(run: Any, server: RedisServer) -> None:
    """Garbage, and what was signed elsewhere, by others, later, or is too long. None is a gap."""
    ours = KEYS.signing_keys("workers")
    foreign = Server("x", state_keys={"1": b"x" * 32}).shared_keys
    assert foreign is not None
    good = MessageCodec(ours, "lab").encode(PROMPTS, 9, STREAM)
    later = b'{"form":2,"worker":9,"message":{"kind":"ended"}}'
    place_of = b"3 lab%d %b" % (len(STREAM), STREAM.encode())
    bad = [
        b"garbage",
        b"\xff" * 200,
        good[:-1] + b" ",
        MessageCodec(foreign.signing_keys("workers"), "lab").encode(PROMPTS, 9, STREAM),
        MessageCodec(KEYS.signing_keys("other"), "lab").encode(PROMPTS, 9, STREAM),
        MessageCodec(ours, "lab").encode(PROMPTS, 9, "mcp:{lab}:task-changes"),
        ours.sign(place_of + later) + later,
        ours.sign(place_of + b"[]") + b"[]",
        b"x" * (4 * 1024 * 1024),
    ]

    async def main(store: RedisStore, runtime: Any) -> None:
        place = await store.join("s")
        for data in bad:
            server.run("XADD", STREAM, next_id(server), "m", data)
        server.run("XADD", STREAM, next_id(server), "other", "field")
        await store.publish(place.number, TOOLS)
        batch = await read_all(store, place.position, runtime)
        assert batch.messages == [(place.number, TOOLS)]
        assert await store.missed("s", place.position) == TOOLS
        lines = [line for line in runtime.warnings if "drops it" in line]
        assert len(lines) == 4
        for text in (
            "isn't signed with",
            "form 2 of a later",
            "isn't a message: ",
            "4194304 bytes",
        ):
            assert any(text in line for line in lines)

    with_store(run, make(server), main)


@pytest.mark.usefixtures("_short")
def test_replayed_message_is_heard_again(run: Any, server: RedisServer) -> None:
    """It says that something may have changed, which is no harm."""

    async def main(store: RedisStore, runtime: Any) -> None:
        place = await store.join("s")
        position = await store.publish(place.number, TOOLS)
        [[_, fields]] = server.run("XREVRANGE", STREAM, "+", "-", "COUNT", "1")
        server.run("XADD", STREAM, next_id(server), *fields)
        assert (await store.read(position)).messages == [(place.number, TOOLS)]

    with_store(run, make(server), main)


def test_read_of_nothing_but_garbage_goes_on(run: Any, server: RedisServer) -> None:
    """A read that has dropped all waits for a message, and doesn't return without one."""

    async def main(store: RedisStore, runtime: Any) -> None:
        place = await store.join("s")
        read = soon(runtime, partial(store.read, place.position))
        for _ in range(3):
            server.run("XADD", STREAM, next_id(server), "m", "garbage")
            await pause(runtime, 0.02)
        position = await store.publish(place.number, TOOLS)
        assert await read() == WorkerBatch(position, [(place.number, TOOLS)])

    with_store(run, make(server), main)


def test_key_of_another_type_fails_with_its_cause(run: Any, server: RedisServer) -> None:
    server.run("SET", STREAM, "text")

    async def main(store: RedisStore, runtime: Any) -> None:
        for call in (partial(store.join, "s"), partial(store.read, Position(1, 1))):
            with pytest.raises(SessionStoreError, match="wrong kind of value"):
                await call()

    with_store(run, make(server), main)


# -- Numbers ---------------------------------------------------------------------------------------


def test_lost_number_is_noticed(run: Any, server: RedisServer) -> None:
    """Another worker has it: by its heartbeat the worker learns that, and leaves it alone."""

    async def main(store: RedisStore, runtime: Any) -> None:
        number = (await store.join("s")).number
        server.run("SET", f"mcp:{{lab}}:number:{number}", "other")
        assert await store.heartbeat(number) is None
        assert await store.heartbeat(number) is None
        await store.leave(number)
        assert server.run("GET", f"mcp:{{lab}}:number:{number}") == b"other"
        number = (await store.join("s")).number
        server.run("SET", f"mcp:{{lab}}:number:{number}", "other")
        await store.leave(number)
        assert server.run("GET", f"mcp:{{lab}}:number:{number}") == b"other"

    with_store(run, make(server), main)


def test_taken_number_is_not_given_again(run: Any, server: RedisServer) -> None:
    drawn = iter([b"o" * 16, b"\0\0\0", b"\0\0\5", b"o" * 16, b"\xe0\0\5", b"\0\0\6"])

    async def main(store: RedisStore, runtime: Any) -> None:
        runtime.entropy = lambda size: next(drawn)
        other = make(server)
        async with other.opened(runtime):
            assert [(await each.join("s")).number for each in (store, other)] == [5, 6]

    with_store(run, make(server), main)


def test_worker_of_another_server_is_warned_of_once(run: Any, server: RedisServer) -> None:
    """Servers that this process serves itself are known."""

    async def main(store: RedisStore, runtime: Any) -> None:
        other = make(server)
        async with other.opened(runtime):
            ours = [(await store.join(name)).number for name in ("s", "t")]
            theirs = (await other.join("\a" + "x" * 100)).number
            await other.heartbeat(theirs)
            for _ in range(2):
                for number in ours:
                    await store.heartbeat(number)
            lines = [line for line in runtime.warnings if "another server" in line]
            assert len(lines) == 1
            assert f"{chr(92)}x07{'x' * 59}..." in lines[0]
            await other.heartbeat(theirs)
            lines = [line for line in runtime.warnings if "another server" in line]
            assert len(lines) == 3

    with_store(run, make(server), main)


# -- Refusals --------------------------------------------------------------------------------------


async def _opened(store: RedisStore, runtime: Any) -> None:
    async with store.opened(runtime):
        pass


@pytest.mark.parametrize(
    ("rule", "text"),
    [
        (ACL.replace("+xadd ", ""), "need: XADD"),
        (ACL.replace("+zadd ", "").replace("+set ", ""), "need: SET, ZADD"),
        (ACL.replace("+xread ", ""), "'xread' command"),
        (ACL.replace("+mget ", ""), "'mget' command"),
        (ACL.replace("+eval ", ""), "'eval' command"),
        (ACL.replace("mcp:{lab}", "mcp:{other}"), "access|key"),
    ],
)
def test_forbidden_command_is_named_at_the_start(
    rule: str, text: str, run: Any, server: RedisServer
) -> None:
    server.run("SCRIPT", "FLUSH")
    server.run("ACL", "SETUSER", "lab", "reset", "on", ">secret", *rule.split())
    url = server.url.replace("//", "//lab:secret@")

    async def main(runtime: Any) -> None:
        with pytest.raises(SessionStoreError, match=text) as caught:
            await _opened(RedisStore(url, name="lab"), runtime)
        assert "The rule is in the documentation" in str(caught.value)
        assert "secret" not in str(caught.value)

    run(main)


def test_wrong_password_is_refused_at_the_start(run: Any, program: str, tmp_path: Path) -> None:
    with RedisServer(tmp_path, program, "--requirepass", "right") as server:
        for user, text in (("", "needs a password"), (":hunter2@", "doesn't accept the user")):
            store = RedisStore(server.url.replace("//", f"//{user}"), name="lab")

            async def main(runtime: Any, store: RedisStore = store, text: str = text) -> None:
                with pytest.raises(SessionStoreError, match=text) as caught:
                    await _opened(store, runtime)
                assert "hunter2" not in f"{caught.value!r} {store!r}"

            run(main)


def test_keys_are_needed_and_have_to_be_the_same(run: Any, server: RedisServer) -> None:
    async def main(runtime: Any) -> None:
        store = make(server)
        runtime.keys = None
        with pytest.raises(ValueError, match="needs state_keys="):
            await _opened(store, runtime)
        runtime.keys = KEYS
        async with store.opened(runtime):
            runtime.keys = Server("x", state_keys={"1": b"x" * 32}).shared_keys
            with pytest.raises(ValueError, match="need the same state_keys"):
                await _opened(store, runtime)
            assert (await store.join("s")).number
        await _opened(store, runtime)

    run(main)


def test_rotated_keys_are_the_same(run: Any, server: RedisServer) -> None:
    """Workers with a new key and the old one hear those that don't sign with it yet."""
    old, new = {"1": b"k" * 32}, {"2": b"n" * 32}

    async def main(runtime: Any) -> None:
        stores = []
        async with AsyncExitStack() as stack:
            for keys in ({**old, **new}, {**new, **old}):
                runtime.keys = Server("x", state_keys=keys).shared_keys
                stores.append(await stack.enter_async_context(make(server).opened(runtime)))
            for sender, receiver in (stores, stores[::-1]):
                place = await sender.join("s")
                await sender.publish(place.number, TOOLS)
                assert (await receiver.read(place.position)).messages == [(place.number, TOOLS)]

    run(main)


# -- Memory, scripts, replicas ---------------------------------------------------------------------


def test_full_memory_fails_writing_only(run: Any, server: RedisServer) -> None:
    async def main(store: RedisStore, runtime: Any) -> None:
        place = await store.join("s")
        server.run("CONFIG", "SET", "maxmemory", "1")
        try:
            with pytest.raises(SessionStoreError, match="no memory left: raise its maxmemory"):
                await store.publish(place.number, TOOLS)
            assert await store.alive([place.number]) == {place.number}
        finally:
            server.run("CONFIG", "SET", "maxmemory", "0")
        await store.publish(place.number, TOOLS)
        assert not [line for line in runtime.warnings if "maxmemory" in line]

    with_store(run, make(server), main)


def test_eviction_is_warned_of_and_gives_a_gap(run: Any, program: str, tmp_path: Path) -> None:
    """Redis removes keys of its choice, the stream too."""
    options = ("--maxmemory", "3mb", "--maxmemory-policy", "allkeys-lru")
    with RedisServer(tmp_path, program, *options) as server:

        async def main(store: RedisStore, runtime: Any) -> None:
            assert "maxmemory-policy allkeys-lru" in runtime.warnings[0]
            assert "appendonly no" in runtime.warnings[1]
            assert len(runtime.warnings) == 2
            place = await store.join("s")
            position = await store.publish(place.number, TOOLS)
            for number in range(200):
                server.run("SET", f"fill{number}", b"x" * 100_000)
                if not server.run("EXISTS", STREAM):
                    break
            else:
                server.run("DEL", STREAM)  # it chose others
            await store.publish(place.number, PROMPTS)
            batch = await read_all(store, position, runtime)
            assert batch.messages == [None, (place.number, PROMPTS)]

        with_store(run, make(server), main)


@pytest.mark.usefixtures("_short")
def test_endless_script_of_others_has_cause_and_cure(
    run: Any, program: str, tmp_path: Path
) -> None:
    """Redis answers nothing else meanwhile, and all once the script is killed."""
    with RedisServer(tmp_path, program, "--lua-time-limit", "20") as server:

        async def main(store: RedisStore, runtime: Any) -> None:
            place = await store.join("s")
            with RespConnection(server.port) as other:
                other.send("EVAL", "while true do end", "0")
                await pause(runtime, 0.1)
                with pytest.raises(SessionStoreError, match="`SCRIPT KILL` ends that"):
                    await store.publish(place.number, TOOLS)
                server.run("SCRIPT", "KILL")
                with pytest.raises(RuntimeError, match="killed"):
                    other.receive()
            await store.publish(place.number, TOOLS)
            assert (await store.read(place.position)).messages == [(place.number, TOOLS)]

        with_store(run, make(server), main)


@pytest.mark.usefixtures("_short")
def test_loading_server_is_waited_for(run: Any, program: str, tmp_path: Path) -> None:
    """It has a file of 40 keys, and takes 25 ms for each. The store opens, and works later."""
    with RedisServer(tmp_path, program, "--rdbcompression", "no") as server:
        server.run("MSET", *(word for number in range(40) for word in (f"k{number}", "x" * 2000)))
        server.run("SAVE")
    slow = ("--key-load-delay", "25000", "--loading-process-events-interval-bytes", "1024")
    server = RedisServer(tmp_path, program, *slow)
    server.start(wait=False)
    try:

        async def main(store: RedisStore, runtime: Any) -> None:
            assert "loading its data" in runtime.warnings[0]
            number = 0
            while not number:
                runtime.clock.ahead += 1.1
                try:
                    number = (await store.join("s")).number
                except SessionStoreError as exc:
                    assert "loading its data" in str(exc)  # noqa: PT017 - or none is raised
                    await pause(runtime, 0.05)
            await store.publish(number, TOOLS)

        with_store(run, make(server), main)
    finally:
        server.kill()


@pytest.mark.usefixtures("_short")
def test_replica_has_cause_and_cure(run: Any, program: str, tmp_path: Path) -> None:
    with RedisServer(tmp_path, program) as primary:
        options = ("--replicaof", f"127.0.0.1 {primary.port}", "--dbfilename", "replica.rdb")
        with RedisServer(tmp_path, program, *options) as replica:

            async def main(store: RedisStore, runtime: Any) -> None:
                with pytest.raises(SessionStoreError, match="replica, which refuses writes"):
                    await store.join("s")
                replica.run("REPLICAOF", "NO", "ONE")
                await store.join("s")

            with_store(run, make(replica), main)


def test_node_of_a_cluster_that_has_the_keys_is_used(
    run: Any, program: str, tmp_path: Path
) -> None:
    """All keys have one hash tag. Another node would say which one has them."""
    options = ("--cluster-enabled", "yes", "--cluster-require-full-coverage", "no")
    with RedisServer(tmp_path, program, *options) as server:

        async def main(runtime: Any) -> None:
            server.run("CLUSTER", "ADDSLOTSRANGE", "0", "16383")
            for _ in range(100):
                if b"cluster_state:ok" in server.run("CLUSTER", "INFO"):
                    break
                await pause(runtime, 0.05)
            await check_session_store(partial(make, server), runtime)

        run(main)


# -- Forks -----------------------------------------------------------------------------------------


def test_store_that_was_made_before_a_fork_works_in_each_child(
    run: Any, server: RedisServer
) -> None:
    """As under `gunicorn --preload`. One that was open before the fork is not open after it."""
    program = f"""
        import os, sys
        sys.path[:0] = {sys.path!r}
        from mcp_core.adapters import RedisStore
        from tests.core.adapters.redis_runs import {run.__name__} as run

        store = RedisStore({server.url!r}, name="lab")

        async def worker(runtime):
            async with store.opened(runtime):
                # In one write: the other child may write at the same time.
                print(f"number {{(await store.join('s')).number}}\\n", end="", flush=True)

        async def parent(runtime):
            async with store.opened(runtime):
                place = await store.join("s")
                child = os.fork()
                if not child:
                    try:
                        store.heartbeat(place.number).send(None)
                    except RuntimeError as exc:
                        print("refused", exc, flush=True)
                    os._exit(0)
                os.waitpid(child, 0)
                assert await store.heartbeat(place.number) is not None

        children = []
        for _ in "ab":
            children.append(os.fork())
            if not children[-1]:
                run(worker)
                os._exit(0)
        for child in children:
            os.waitpid(child, 0)
        run(parent)
        print("done")
    """
    found = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", textwrap.dedent(program)],
        capture_output=True,
        text=True,
        check=True,
        timeout=PATIENCE,
    )
    lines = found.stdout.splitlines()
    numbers = {line.split()[1] for line in lines if line.startswith("number")}
    assert len(numbers) == 2, found.stderr
    assert any("refused the store in Redis is not open in this process" in line for line in lines)
    assert lines[-1] == "done"
