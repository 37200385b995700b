"""The client of Redis: connections, deadlines, the breaker, and errors with cause and cure."""

from __future__ import annotations

import builtins
import gc
import logging
import os
import ssl
import threading
import time
from functools import partial
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import anyio
import coredis
import pytest
import trustme
from coredis.connection import TCPLocation

from mcp_core._redis_calls import RedisCall, probe
from mcp_core.adapters import _redis_client
from mcp_core.adapters._redis_client import RedisClient
from mcp_core.adapters._redis_errors import RedisFailure, explained
from tests.core.adapters.redis_runs import RUNS, pause, run_trio, soon
from tests.fakes.redis_peer import CLOSE, RedisPeer, bulk, error
from tests.harness.world.waiting import PATIENCE

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from pathlib import Path

pytestmark = pytest.mark.parametrize("run", RUNS)

Run = "Callable[[Callable[[Any], Awaitable[None]]], None]"
CALL = RedisCall("return 1", ("mcp:{a}:k",), ("argument",))
HANGS = {b"XRANGE": None, b"XREAD": None}
IMPORT = builtins.__import__


@pytest.fixture(autouse=True)
def slow_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    """No command fails by its deadline unless the test sets one, which the peer then lets pass."""
    for name in ("_DEADLINE", "_END_TIME"):
        monkeypatch.setattr(_redis_client, name, PATIENCE)


@pytest.fixture
def deadline(monkeypatch: pytest.MonkeyPatch) -> Callable[[float], None]:
    """Return what sets the deadline of a command."""
    return partial(monkeypatch.setattr, _redis_client, "_DEADLINE")


def with_client(
    run: Callable[[Any], None],
    peer: RedisPeer | str,
    main: Callable[[RedisClient, Any], Awaitable[None]],
) -> None:
    """Open a client of `peer`, or of a URL, and run `main` with it and its runtime.

    The breaker's clock moves with `runtime.clock.ahead` only.
    """

    async def opened(runtime: Any) -> None:
        url = peer if isinstance(peer, str) else peer.url
        client = RedisClient(url, "a")
        runtime.clock.stands = True
        async with client.opened(runtime):
            await main(client, runtime)

    run(opened)


# -- Commands --------------------------------------------------------------------------------------


def test_nothing_is_connected_before_the_first_command(run: Any) -> None:
    with RedisPeer() as peer:

        async def main(client: RedisClient, runtime: Any) -> None:
            await pause(runtime)
            assert peer.hellos == []
            assert await client.execute("PING") == b"OK"
            assert len(peer.hellos) == 1

        with_client(run, peer, main)


def test_script_is_sent_by_its_digest_and_in_full_once(run: Any) -> None:
    """A server that has forgotten a script says so, and gets it."""
    known: list[bytes] = []

    def respond(command: list[bytes]) -> bytes:
        if command[0] == b"EVAL":
            known.append(command[1])
        return b":5\r\n" if known else error("NOSCRIPT No matching script. Please use EVAL.")

    with RedisPeer(respond) as peer:

        async def main(client: RedisClient, runtime: Any) -> None:
            assert [await client.run(CALL) for _ in range(2)] == [5, 5]

        with_client(run, peer, main)
    rest = [b"1", b"mcp:{a}:k", b"argument"]
    digest = b"e0e1f9fabfc9d4800c877a703b823ac0578ff8db"
    assert peer.commands == [
        [b"EVALSHA", digest, *rest],
        [b"EVAL", b"return 1", *rest],
        [b"EVALSHA", digest, *rest],
    ]


def test_commands_of_a_pipeline_are_answered_in_order(run: Any) -> None:
    with RedisPeer(lambda command: bulk(*command)) as peer:

        async def main(client: RedisClient, runtime: Any) -> None:
            replies = await client.pipeline([("GET", "a"), ("HGET", "b", b"\xff"), ("TTL", 3)])
            assert replies == [[b"GET", b"a"], [b"HGET", b"b", b"\xff"], [b"TTL", b"3"]]

        with_client(run, peer, main)


def test_read_has_a_connection_of_its_own(run: Any) -> None:
    """Commands go on while two reads wait, and a read that has ended leaves its connection."""
    entries = b"%1\r\n$1\r\ns\r\n*2\r\n" + b"".join(
        b"*2\r\n$3\r\n%b\r\n%b" % (id, bulk(*fields))
        for id, fields in ((b"7-1", (b"x", b"", b"m", b"one")), (b"7-2", (b"x", b"y")))
    )
    waits = {b"XRANGE": b"*0\r\n", b"XREAD": None, b"GET": b"$1\r\nv\r\n"}
    with RedisPeer(lambda command: waits[command[0]]) as peer:

        async def main(client: RedisClient, runtime: Any) -> None:
            reads = [soon(runtime, partial(client.read, "s", "7-0", seconds=0.1)) for _ in "ab"]
            while len(peer.commands) < 4:
                await pause(runtime)
            assert await client.execute("GET", "a") == b"v"
            assert len(peer.hellos) == 3
            peer.drop()
            for read in reads:
                with pytest.raises(RedisFailure, match="closed the connection"):
                    await read()
            waits[b"XREAD"] = b"_\r\n"
            assert not (await client.read("s", "7-0", seconds=0.1, size=5)).entries
            asked = [b"XREAD", b"COUNT", b"5", b"BLOCK", b"100", b"STREAMS", b"s", b"7-0"]
            assert peer.commands[-1] == asked
            waits[b"XREAD"] = entries
            found = await client.read("s", "7-0", seconds=0.1)
            assert peer.commands[-1][2] == b"100"  # entries, unless the caller says how many
            assert found.entries == [(b"7-1", b"one"), (b"7-2", b"")]
            assert found.before is None
            waits[b"XRANGE"] = b"*1\r\n*2\r\n$3\r\n7-2\r\n" + bulk(b"x", b"y")
            assert (await client.read("s", "7-2", seconds=0.1)).before == found.last
            assert len(peer.hellos) == 4

        with_client(run, peer, main)
    wanted = [b"XREAD", b"COUNT", b"5", b"BLOCK", b"100", b"STREAMS", b"s", b"7-0"]
    assert wanted in peer.commands


def test_cancelled_read_gives_up_its_connection(run: Any) -> None:
    """Its response may still come, and must not reach the next read."""
    with RedisPeer(lambda command: HANGS.get(command[0], b"+OK\r\n")) as peer:

        async def main(client: RedisClient, runtime: Any) -> None:
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(partial(client.read, "s", "0-0", seconds=5))
                while len(peer.commands) < 2:
                    await pause(runtime)
                tasks.cancel_scope.cancel()
            while peer.connections:
                await pause(runtime)
            assert await client.execute("PING") == b"OK"

        with_client(run, peer, main)


@pytest.mark.long
def test_hundred_lost_connections_leave_the_client_usable(run: Any) -> None:
    """A pool of coredis 6.9 would wait for ever after 64."""
    with RedisPeer(lambda command: HANGS.get(command[0], CLOSE)) as peer:

        async def main(client: RedisClient, runtime: Any) -> None:
            for _ in range(70):
                runtime.clock.ahead += 1.1
                with pytest.raises(RedisFailure, match="closed the connection"):
                    await client.execute("PING")
            for _ in range(5):
                runtime.clock.ahead += 1.1
                with pytest.raises(TimeoutError):
                    await runtime.within(0.01, partial(client.read, "s", "0-0", seconds=5))
            peer.respond = lambda command: b"+PONG\r\n"
            runtime.clock.ahead += 1.1
            assert await client.execute("PING") == b"PONG"

        with_client(run, peer, main)


# -- Failures --------------------------------------------------------------------------------------


ERRORS = [
    ("READONLY You can't write against a read only replica.", "replica", False),
    ("LOADING Redis is loading the dataset in memory", "loading its data", False),
    ("OOM command not allowed when used memory > 'maxmemory'.", "no memory left", False),
    ("BUSY Redis is busy running a script. You can only call SCRIPT KILL", "SCRIPT KILL", False),
    ("MISCONF Redis is configured to save RDB snapshots", "save to its disk", False),
    ("NOREPLICAS Not enough good replicas to write.", "fewer replicas", False),
    ("MASTERDOWN Link with MASTER is down", "lost its primary", False),
    ("MOVED 866 127.0.0.1:7002", "127.0.0.1:7002. Give that one", True),
    ("ASK 866 127.0.0.1:7002", "127.0.0.1:7002. Give that one", True),
    ("CLUSTERDOWN The cluster is down", "cluster is down", False),
    ("TRYAGAIN Multiple keys request during rehashing of slot", "moving the keys", False),
    ("CROSSSLOT Keys in request don't hash to the same slot", "hash tags", True),
    ("NOPERM User ada has no permissions to run the 'xadd' command", "'xadd' command", True),
    ("ERR user_script:1: ACL failure in script: no permissions to run 'xadd'", "'xadd'", True),
    ("ERR The user executing the script can't run this command", "ACL of its user", True),
    ("NOAUTH Authentication required.", "needs a password", True),
    ("WRONGPASS invalid username-password pair or user is disabled.", "doesn't accept", True),
    ("ERR unknown command 'EVAL', with args beginning with: 'hunter2'", "older than Redis", True),
    ("ERR unknown: 'hunter2'", "it said unknown: '...'", False),
    ("WRONGTYPE Operation against a key", "it said Operation against", False),
    ("NEWERROR \x1b[31m" + "x" * 500, r"it said NEWERROR \?\[31mx{180,190}\.\.\.$", False),
]


@pytest.mark.parametrize(("said", "text", "final"), ERRORS)
def test_error_of_the_server_has_cause_and_cure(
    said: str, text: str, final: bool, run: Any
) -> None:
    """Each as the server sends it, with a password that no text shows."""
    with RedisPeer(lambda command: error(said)) as peer:
        url = peer.url.replace("//", "//:hunter2@")

        async def main(client: RedisClient, runtime: Any) -> None:
            for call in (
                partial(client.execute, "GET", "k"),
                partial(client.run, CALL),
                partial(client.read, "s", "0-0", seconds=0.1),
            ):
                with pytest.raises(RedisFailure, match=text) as caught:
                    await call()
                assert caught.value.is_final == final
                assert str(caught.value).startswith(f"Redis at {peer.url}: ")
                assert "hunter2" not in f"{caught.value}{client!r}{runtime.warnings}"
            assert peer.hellos[0][1:] == [b"AUTH", b"default", b"hunter2"]

        with_client(run, url, main)


@pytest.mark.parametrize(
    ("hello", "text"),
    [
        (error("NOAUTH HELLO must be called with the client already authenticated"), "a password"),
        (error("WRONGPASS invalid username-password pair"), "doesn't accept the user"),
        (error("ERR unknown command `HELLO`, with args beginning with: `3`"), "older than Redis 7"),
        (error("ERR max number of clients reached"), "max number of clients"),
        (error("NOPROTO unsupported protocol version"), "too old"),
        (CLOSE, "closed the connection"),
        (b"HTTP/1.1 400 Bad Request\r\n\r\n", "Redis at redis://"),
        (None, "didn't respond within"),
    ],
)
def test_failed_log_in_has_cause_and_cure(
    hello: bytes | None,
    text: str,
    run: Any,
    deadline: Callable[[float], None],
    caplog: pytest.LogCaptureFixture,
) -> None:
    """coredis itself logs no traceback of it, but for one that asyncio's cancellation may cause."""
    if hello is None:
        deadline(0.1)
    with RedisPeer(hello=hello) as peer:

        async def main(client: RedisClient, runtime: Any) -> None:
            with pytest.raises(RedisFailure, match=text):
                await client.execute("PING")
            while peer.connections:
                await pause(runtime)

        with_client(run, peer, main)
    if hello != b"HTTP/1.1 400 Bad Request\r\n\r\n" and (hello or run is run_trio):
        assert not [each for each in caplog.records if each.levelno >= logging.ERROR]


def test_address_without_a_server_has_cause_and_cure(run: Any, tmp_path: Path) -> None:
    with RedisPeer() as peer:
        url = peer.url
    for address, text in (
        (url, "refuses connections: no server"),
        ("redis://name.invalid", "no address"),
        (f"unix://{tmp_path}/none", "no such file"),
    ):

        async def main(client: RedisClient, runtime: Any, text: str = text) -> None:
            with pytest.raises(RedisFailure, match=text):
                await client.execute("PING")

        with_client(run, address, main)


def test_hanging_server_costs_one_deadline_a_command(
    run: Any, deadline: Callable[[float], None]
) -> None:
    """After it the connection is given up: a late response reaches no other command."""
    with RedisPeer() as peer:

        async def main(client: RedisClient, runtime: Any) -> None:
            assert await client.execute("PING") == b"OK"
            peer.respond = lambda command: None
            deadline(0.1)
            began = time.monotonic()
            with pytest.raises(RedisFailure, match=r"didn't respond within 0\.1 s"):
                await client.execute("GET", "a")
            assert time.monotonic() - began > 0.1
            deadline(PATIENCE)
            peer.respond = lambda command: bulk(*command)
            assert await client.execute("GET", "b") == [b"GET", b"b"]
            assert len(peer.hellos) == 2
            peer.respond = lambda command: None
            deadline(0.1)
            began = time.monotonic()
            with pytest.raises(RedisFailure, match="didn't respond within"):
                await client.read("s", "0-0", seconds=0.1)
            assert time.monotonic() - began > 0.2

        with_client(run, peer, main)


def test_outage_lets_one_command_a_second_through(run: Any) -> None:
    """Three failures open the breaker; the log says so once, and that it is over."""
    with RedisPeer(lambda command: error("LOADING Redis is loading")) as peer:

        async def main(client: RedisClient, runtime: Any) -> None:
            for count in (1, 2, 3, 3, 3):
                with pytest.raises(RedisFailure, match="loading its data"):
                    await client.execute("PING")
                assert len(peer.commands) == count
            with pytest.raises(RedisFailure, match="loading its data"):
                await client.read("s", "0-0", seconds=0.1)
            runtime.clock.ahead += 1.1
            for _ in range(2):
                with pytest.raises(RedisFailure, match="loading"):
                    await client.execute("PING")
            assert len(peer.commands) == 4
            peer.respond = lambda command: b"+PONG\r\n"
            runtime.clock.ahead += 1.1
            assert await client.execute("PING") == b"PONG"
            assert await client.execute("PING") == b"PONG"
            assert len(runtime.warnings) == 2
            assert "loading its data" in runtime.warnings[0]
            assert runtime.warnings[1].endswith("responds again")

        with_client(run, peer, main)


def test_client_that_is_opened_again_waits_for_no_earlier_outage(run: Any) -> None:
    """The breaker, its warnings and the checks of the server are those of one time of use."""
    with RedisPeer() as peer:

        async def main(runtime: Any) -> None:
            client = RedisClient(peer.url, "a")
            runtime.clock.stands = True
            for _ in range(2):
                peer.respond = lambda command: error("LOADING Redis is loading")
                async with client.opened(runtime):
                    for _ in range(4):
                        with pytest.raises(RedisFailure, match="loading its data"):
                            await client.execute("PING")
                peer.respond = lambda command: b"+PONG\r\n"
                async with client.opened(runtime):
                    assert await client.execute("PING") == b"PONG"
            assert ["loading" in text for text in runtime.warnings] == [True, True]

        run(main)


def test_refused_command_is_no_outage(run: Any) -> None:
    """A server without memory, or an ACL, responds: other commands go on."""
    with RedisPeer(lambda command: error("OOM command not allowed")) as peer:

        async def main(client: RedisClient, runtime: Any) -> None:
            for _ in range(5):
                with pytest.raises(RedisFailure, match="no memory"):
                    await client.execute("SET", "a", "b")
            assert len(peer.commands) == 5
            assert runtime.warnings == []

        with_client(run, peer, main)


def test_refused_command_ends_an_outage(run: Any) -> None:
    """The server responds, so the next command isn't held back."""
    with RedisPeer(lambda command: error("LOADING Redis is loading")) as peer:

        async def main(client: RedisClient, runtime: Any) -> None:
            for _ in range(3):
                with pytest.raises(RedisFailure, match="loading its data"):
                    await client.execute("PING")
            peer.respond = lambda command: error("OOM command not allowed")
            runtime.clock.ahead += 1.1
            for _ in range(2):
                with pytest.raises(RedisFailure, match="no memory"):
                    await client.execute("SET", "a", "b")
            assert len(peer.commands) == 5
            assert runtime.warnings[1].endswith("responds again")

        with_client(run, peer, main)


def test_replica_is_left_for_a_new_connection(run: Any) -> None:
    """After a failover the address, or Sentinel, may lead elsewhere."""
    with RedisPeer(lambda command: error("READONLY You can't write")) as peer:

        async def main(client: RedisClient, runtime: Any) -> None:
            for _ in range(2):
                with pytest.raises(RedisFailure, match="replica"):
                    await client.execute("SET", "a", "b")
            assert len(peer.hellos) == 2

        with_client(run, peer, main)


# -- Opening ---------------------------------------------------------------------------------------


def test_closed_client_refuses(run: Any) -> None:
    """Before it is opened, and after it was closed."""
    client = RedisClient("redis://127.0.0.1:1", "a")

    async def main(runtime: Any) -> None:
        for _ in range(2):
            for call in (
                partial(client.execute, "PING"),
                partial(client.run, CALL),
                partial(client.read, "s", "0-0", seconds=1),
            ):
                with pytest.raises(RuntimeError, match="not open"):
                    await call()
            async with client.opened(runtime):
                pass

    run(main)


def test_client_is_open_until_all_have_left(run: Any) -> None:
    """The first to leave takes its connection along, since that was in its tasks."""
    with RedisPeer() as peer:
        client = RedisClient(peer.url, "a")

        async def main(runtime: Any) -> None:
            first = client.opened(runtime)
            async with client.opened(runtime):
                await first.__aenter__()
                assert await client.execute("PING") == b"OK"
                await first.__aexit__(None, None, None)
                assert await client.execute("PING") == b"OK"
            while peer.connections:
                await pause(runtime)

        run(main)


def test_commands_of_others_survive_the_first_to_leave(run: Any) -> None:
    """Its connection carries them to their ends, and then closes. New ones have another."""
    held: list[threading.Event] = [threading.Event()]

    def respond(command: list[bytes]) -> bytes | None:
        if command == [b"SLOW"]:
            held[0].wait(PATIENCE)
        return HANGS.get(command[0], b"+OK\r\n")

    with RedisPeer(respond) as peer:
        client = RedisClient(peer.url, "a")

        async def main(runtime: Any) -> None:
            first = client.opened(runtime)
            await first.__aenter__()
            other = type(runtime)(*_arguments(runtime))
            async with client.opened(other):
                slow = soon(runtime, partial(client.execute, "SLOW"))
                read = soon(runtime, partial(client.read, "s", "0-0", seconds=5))
                while len(peer.commands) < 3:
                    await pause(runtime)
                leave = soon(runtime, partial(first.__aexit__, None, None, None))
                assert not (await read()).entries
                assert await client.execute("PING") == b"OK"
                while peer.connections > 2:  # the first reader's has just been closed
                    await pause(runtime)
                held[0].set()
                assert await slow() == b"OK"
                await leave()
                while peer.connections > 1:
                    await pause(runtime)
                assert client._breaker.failures == 0
                assert runtime.warnings == []
            if hasattr(other, "aclose"):
                await other.aclose()

        run(main)


def _arguments(runtime: Any) -> list[Any]:
    nursery = getattr(runtime, "_nursery", None)
    return [] if nursery is None else [nursery]


def test_lost_connection_is_one_failure(run: Any) -> None:
    """However many commands were under way: the server is there, and the next one succeeds."""
    with RedisPeer(lambda command: None) as peer:

        async def main(client: RedisClient, runtime: Any) -> None:
            waiting = [soon(runtime, partial(client.execute, "GET", name)) for name in "abcde"]
            waiting.append(soon(runtime, partial(client.read, "s", "0-0", seconds=5)))
            while len(peer.commands) < 7:
                await pause(runtime)
            peer.drop()
            for each in waiting:
                with pytest.raises(RedisFailure, match="closed the connection"):
                    await each()
            peer.respond = lambda command: b"+OK\r\n"
            assert await client.execute("PING") == b"OK"
            assert client._breaker.failures == 1
            assert runtime.warnings == []

        with_client(run, peer, main)


def test_large_command_has_more_time(
    run: Any, deadline: Callable[[float], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    """So many seconds for each megabyte, also for what is sent behind it."""
    held = threading.Event()

    def respond(command: list[bytes]) -> bytes:
        if command[0] != b"PING":
            held.wait(PATIENCE)
        return b"+OK\r\n"

    with RedisPeer(respond) as peer:

        async def main(client: RedisClient, runtime: Any) -> None:
            assert await client.execute("PING") == b"OK"
            deadline(0.01)
            monkeypatch.setattr(_redis_client, "_RATE", 1_000_000 / PATIENCE)
            large = RedisCall("return 1", (), (bytes(1_000_000),))
            sent = soon(runtime, partial(client.run, large))
            while len(peer.commands) < 2:
                await pause(runtime)
            behind = soon(runtime, partial(client.execute, "PING"))
            for _ in range(5):
                await pause(runtime)  # for longer than the deadline
            held.set()
            assert await behind() == b"OK"
            assert await sent() == b"OK"
            peer.respond = lambda command: None
            with pytest.raises(RedisFailure, match="respond within"):
                await client.execute("PING")

        with_client(run, peer, main)


def test_closing_ends_what_waits(run: Any) -> None:
    with RedisPeer(lambda command: None) as peer:
        client = RedisClient(peer.url, "a")

        async def main(runtime: Any) -> None:
            async with client.opened(runtime):
                read = soon(runtime, partial(client.read, "s", "0-0", seconds=5))
                while not peer.commands:
                    await pause(runtime)
            with pytest.raises(RedisFailure, match="was closed meanwhile"):
                await read()

        run(main)


def test_client_that_was_open_before_a_fork_is_not_open_after_it(
    run: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The child may open it, and gets connections of its own. Those of the parent stay."""
    with RedisPeer() as peer:

        async def main(client: RedisClient, runtime: Any) -> None:
            await client.execute("PING")
            process, connection = os.getpid(), client._commands
            assert connection is not None
            monkeypatch.setattr(os, "getpid", lambda: process + 1)
            with pytest.raises(RuntimeError, match="not open in this process"):
                await client.execute("PING")
            async with client.opened(runtime):
                assert await client.execute("PING") == b"OK"
                assert peer.connections == 2
            monkeypatch.undo()
            connection.close()  # as the parent would

        with_client(run, peer, main)


def test_missing_library_is_named(run: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(builtins, "__import__", _without_coredis)

    async def main(runtime: Any) -> None:
        with pytest.raises(ImportError, match=r"pip install 'mcp-trio\[redis\]'"):
            async with RedisClient("redis://127.0.0.1:1", "a").opened(runtime):
                pass

    run(main)


def _without_coredis(name: str, *rest: Any) -> Any:
    if name.partition(".")[0] == "coredis":
        raise ModuleNotFoundError(f"No module named {name!r}")
    return IMPORT(name, *rest)


# -- Clients of the caller -------------------------------------------------------------------------


def test_settings_of_a_client_are_used(run: Any) -> None:
    """It need not be entered, and what it decodes, retries or caches has no effect."""
    with RedisPeer(lambda command: b"$2\r\n\xff\xfe\r\n") as peer:
        made = coredis.Redis(
            "127.0.0.1", peer.port, username="ada", password="hunter2", decode_responses=True
        )
        client = RedisClient(made, "a")

        async def main(runtime: Any) -> None:
            async with client.opened(runtime):
                assert await client.execute("GET", "a") == b"\xff\xfe"
            assert peer.hellos == [[b"3", b"AUTH", b"ada", b"hunter2"]]
            assert repr(client) == f"RedisClient('127.0.0.1:{peer.port}', name='a')"

        run(main)


def test_timeouts_of_a_client_end_no_read(run: Any) -> None:
    """The read has waited for longer than a command of that client may."""

    def respond(command: list[bytes]) -> bytes:
        if command[0] == b"XREAD":
            threading.Event().wait(0.15)
        return b"_\r\n"

    with RedisPeer(respond) as peer:
        limits: Any = {"stream_timeout": 0.05, "max_idle_time": 0.1}
        made: Any = coredis.Redis("127.0.0.1", peer.port, **limits)
        client = RedisClient(made, "a")

        async def main(runtime: Any) -> None:
            async with client.opened(runtime):
                assert not (await client.read("s", "0-0", seconds=1)).entries

        run(main)


def test_primary_is_asked_of_sentinel_for_each_connection(run: Any) -> None:
    """The address that a fake of a Sentinel names is used, and has to be a primary."""
    role = bulk(b"master")
    with RedisPeer(lambda command: role if command == [b"ROLE"] else b"+OK\r\n") as peer:
        sentinel = coredis.Sentinel([TCPLocation("127.0.0.1", 1)])
        made = sentinel.primary_for("primary")
        asked: list[str] = []

        async def discover(service_name: str) -> tuple[str, int]:
            asked.append(service_name)
            return "127.0.0.1", peer.port

        sentinel.discover_primary = discover  # type: ignore[method-assign]
        client = RedisClient(made, "a")

        async def main(runtime: Any) -> None:
            nonlocal role
            async with client.opened(runtime):
                assert await client.execute("PING") == b"OK"
                peer.drop()
                while client._commands and not client._commands.is_over:
                    await pause(runtime)
                role = bulk(b"slave")
                with pytest.raises(RedisFailure, match="replica"):
                    await client.execute("PING")
            assert asked == ["primary"] * 2

        run(main)
        assert repr(client) == "RedisClient('primary', name='a')"


def test_connection_counts_the_commands_under_way_and_their_bytes(run: Any) -> None:
    async def main(runtime: Any) -> None:
        connection = _redis_client._RedisConnection(runtime)
        counts = []
        for change, size in (
            (connection.start_use, 5),
            (connection.start_use, 7),
            (connection.end_use, 5),
            (connection.end_use, 7),
        ):
            change(size)
            counts.append((connection.uses, connection.sending))
        assert counts == [(1, 5), (2, 12), (1, 7), (0, 0)]

    run(main)


@pytest.mark.filterwarnings("ignore:Unclosed:ResourceWarning")  # of a cluster's client
def test_client_that_cannot_be_used_is_refused(run: Any) -> None:
    for made, text in (
        (coredis.RedisCluster("127.0.0.1", 7000), "one node has all keys"),
        (coredis.Redis(noreply=True), "hears no response"),
        (object(), "not object"),
        (None, "not NoneType"),
        # Half of a pool of coredis
        (SimpleNamespace(connection_pool=SimpleNamespace(connection_kwargs={})), "not Simple"),
        (SimpleNamespace(connection_pool=SimpleNamespace(connection_class=int)), "not Simple"),
    ):
        with pytest.raises(TypeError, match=text):
            RedisClient(made, "a")  # type: ignore[arg-type]
    del made
    gc.collect()


# -- Unix sockets and TLS --------------------------------------------------------------------------


def test_unix_socket_is_connected_to(run: Any, tmp_path: Path) -> None:
    with RedisPeer(path=tmp_path / "s") as peer:

        async def main(client: RedisClient, runtime: Any) -> None:
            assert await client.execute("PING") == b"OK"

        with_client(run, peer, main)


@pytest.fixture(scope="module")
def authority() -> trustme.CA:
    return trustme.CA()


@pytest.mark.parametrize(
    ("names", "trusted", "text"),
    [
        (["127.0.0.1"], True, None),
        (["127.0.0.1"], False, "certificate isn't trusted"),
        (["other.example"], True, "certificate isn't trusted: .*IP address mismatch"),
    ],
)
def test_certificate_and_name_are_verified(
    names: list[str],
    trusted: bool,
    text: str | None,
    authority: trustme.CA,
    run: Any,
    tmp_path: Path,
) -> None:
    """coredis itself compares no name."""
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    authority.issue_cert(*names).configure_cert(context)
    file = tmp_path / "ca.pem"
    (authority if trusted else trustme.CA()).cert_pem.write_to_path(file)
    with RedisPeer(context=context) as peer:

        async def main(client: RedisClient, runtime: Any) -> None:
            if text is None:
                assert await client.execute("PING") == b"OK"
                return
            with pytest.raises(RedisFailure, match=text) as caught:
                await client.execute("PING")
            assert caught.value.is_final

        with_client(run, f"{peer.url}?ssl_ca_certs={file}", main)


def test_certificates_are_read_once(
    run: Any, authority: trustme.CA, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not for each connection, which would block the event loop each time."""
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    authority.issue_cert("127.0.0.1").configure_cert(context)
    file = tmp_path / "ca.pem"
    authority.cert_pem.write_to_path(file)
    made: list[ssl.SSLContext] = []
    make = ssl.create_default_context

    def make_once(**options: Any) -> ssl.SSLContext:
        made.append(make(**options))
        return made[-1]

    monkeypatch.setattr(ssl, "create_default_context", make_once)
    with RedisPeer(context=context) as peer:

        async def main(client: RedisClient, runtime: Any) -> None:
            await client.execute("PING")
            assert not (await client.read("s", "0-0", seconds=0.1)).entries
            assert (len(peer.hellos), len(made)) == (2, 1)

        peer.respond = lambda command: b"_\r\n"
        with_client(run, f"{peer.url}?ssl_ca_certs={file}", main)


def test_tls_on_one_side_only_has_cause_and_cure(run: Any, authority: trustme.CA) -> None:
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    authority.issue_cert("127.0.0.1").configure_cert(context)
    with RedisPeer(context=context) as secure, RedisPeer() as plain:
        for url, text in (
            (secure.url.replace("rediss", "redis"), "speaks TLS only"),
            (plain.url.replace("redis", "rediss", 1), "Does its port speak TLS"),
            (f"rediss://127.0.0.1:{secure.port}?ssl_ca_certs=/none.pem", "no such file"),
        ):

            async def main(client: RedisClient, runtime: Any, text: str = text) -> None:
                with pytest.raises(RedisFailure, match=text):
                    await client.execute("PING")

            with_client(run, url, main)


# -- The check at the start ------------------------------------------------------------------------

INFO = (
    "# Memory\r\nmaxmemory:{maxmemory}\r\nmaxmemory_policy:{policy}\r\n# Persistence\r\n"
    "aof_enabled:{aof}\r\n"
)


@pytest.mark.parametrize(
    ("maxmemory", "policy", "aof", "warnings"),
    [
        (0, "noeviction", 1, []),
        (100, "noeviction", 1, []),
        (0, "allkeys-lru", 1, []),
        (100, "allkeys-lru", 1, ["maxmemory-policy allkeys-lru"]),
        (100, "volatile-ttl", 0, ["maxmemory-policy volatile-ttl", "appendonly no"]),
    ],
)
def test_settings_that_lose_data_get_one_warning(
    maxmemory: int, policy: str, aof: int, warnings: list[str], run: Any
) -> None:
    text = INFO.format(maxmemory=maxmemory, policy=policy, aof=aof).encode()
    replies = {b"INFO": b"$%d\r\n%b\r\n" % (len(text), text)}
    with RedisPeer(lambda command: replies.get(command[0], b"*0\r\n")) as peer:

        async def main(client: RedisClient, runtime: Any) -> None:
            for _ in range(2):
                await client.check_server(probe("k", [("GET",)]), [("MGET", "k")])
            assert len(runtime.warnings) == len(warnings)
            assert all(text in each for text, each in zip(warnings, runtime.warnings, strict=True))

        with_client(run, peer, main)


def test_forbidden_commands_are_named_at_the_start(run: Any) -> None:
    with RedisPeer(lambda command: bulk(b"XADD", b"SET")) as peer:

        async def main(client: RedisClient, runtime: Any) -> None:
            with pytest.raises(RedisFailure, match=r"forbids what workers need: XADD, SET\.") as c:
                await client.check_server(probe("k", [("GET",)]))
            assert c.value.is_final

        with_client(run, peer, main)


def test_forbidden_info_is_no_failure(run: Any) -> None:
    replies = {b"INFO": error("NOPERM this user has no permissions to run the 'info' command")}
    with RedisPeer(lambda command: replies.get(command[0], b"*0\r\n")) as peer:

        async def main(client: RedisClient, runtime: Any) -> None:
            await client.check_server(probe("k", [("GET",)]))
            assert runtime.warnings == []

        with_client(run, peer, main)


def test_outage_at_the_start_is_logged(run: Any) -> None:
    with RedisPeer(lambda command: error("LOADING Redis is loading")) as peer:

        async def main(client: RedisClient, runtime: Any) -> None:
            await client.check_server(probe("k", [("GET",)]))
            assert "loading its data" in runtime.warnings[0]

        with_client(run, peer, main)


# The names of exceptions of coredis: what is an outage, is final, and what reconnecting may mend.
KINDS = {
    "AuthenticationFailureError": (True, True, False),
    "AuthenticationRequiredError": (True, True, False),
    "AuthorizationError": (False, True, False),
    "BusyLoadingError": (True, False, False),
    "ClusterCrossSlotError": (False, True, False),
    "ClusterDownError": (True, False, False),
    "ConnectionError": (True, False, False),
    "AskError": (False, True, False),
    "MovedError": (False, True, False),
    "PrimaryNotFoundError": (True, False, True),
    "ProtocolError": (False, True, False),
    "ReadOnlyError": (True, False, True),
    "StalePrimaryError": (True, False, True),
    "TryAgainError": (False, False, False),
    "UnknownCommandError": (False, True, False),
}


@pytest.mark.parametrize("name", KINDS)
def test_kind_of_a_failure_says_what_else_fails_and_what_helps(run: Any, name: str) -> None:
    kind: Any = type(name, (Exception,), {})
    found = explained(kind("a text"))
    assert (found.is_outage, found.is_final, found.reconnects) == KINDS[name]


def test_command_whose_connection_another_one_gave_up_hangs_too(
    run: Any, deadline: Callable[[float], None]
) -> None:
    """The error isn't "it has closed the connection": we did."""
    with RedisPeer() as peer:

        async def main(client: RedisClient, runtime: Any) -> None:
            async def ask(name: str) -> None:
                with pytest.raises(RedisFailure) as caught:
                    await client.execute("GET", name)
                texts.append(str(caught.value))
                if len(texts) == 2:
                    ended.set()

            texts: list[str] = []
            ended = runtime.new_event()
            assert await client.execute("PING") == b"OK"
            peer.respond = lambda command: None
            deadline(0.1)
            runtime.start_soon(partial(ask, "a"))
            await pause(runtime)
            deadline(PATIENCE)
            runtime.start_soon(partial(ask, "b"))
            await runtime.wait(ended)
            assert ["it hangs" in text for text in texts] == [True, True]

        with_client(run, peer, main)


def test_unknown_exception_has_its_name(run: Any) -> None:
    assert explained(KeyError()).text == "it said KeyError"
    assert not explained(KeyError()).is_outage
    group = ExceptionGroup("x", [OSError("first"), ConnectionRefusedError()])
    assert "refuses" in explained(group).text
