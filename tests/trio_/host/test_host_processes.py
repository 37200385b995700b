"""A host of real processes: how they start, fail, die, and end with the host.

`PROGRAM` is a server of the standard library only, which starts fast and misbehaves as its first
argument says.
"""

from __future__ import annotations

import json
import os
import random
import signal
import sys
import time
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import trio

from mcp_core import ConnectionLost, RemoteProtocolError
from mcp_core.host import ServerUnavailable
from mcp_core.runtime.host import MemoryApprovals
from mcp_trio.host._host import Host
from mcp_trio.streams._child import Grace
from mcp_trio.testing._leaks import children
from tests.drivers.played_host import reached, usable
from tests.harness.world.pipes import alive, python, until
from tests.harness.world.waiting import PATIENCE

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.process

PROGRAM = r"""
import json, subprocess
mode, file = [*sys.argv[1:], "", ""][:2]
predecessor = "none"
if mode == "one at a time":
    if os.path.exists(file):
        try:
            os.kill(int(open(file).read()), 0)
            predecessor = "alive"
        except ProcessLookupError:
            predecessor = "dead"
    open(file, "w").write(str(os.getpid()))
if mode == "dies":
    sys.exit("the database is gone")
if mode == "hangs":
    time.sleep(3600)
if mode == "junk":
    say("Welcome to the server!")
    say("{[(")
    sys.exit(3)
def meet(count):
    open(file, "w").write("alone")
    while len(os.listdir(os.path.dirname(file))) < count:
        time.sleep(0.01)
    open(file, "w").write("met")
if mode == "meet":
    meet(10)
if mode == "stubborn":
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
if mode == "parent":
    child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(3600)"])
    open(file, "w").write(str(child.pid))
INFO = {"name": "program", "version": "1"}
CAPABILITIES = {"tools": {}}
NAMES = ["pid", "predecessor", "exit", "close", "hang", "sleep", "junk"]
for line in sys.stdin:
    message = json.loads(line)
    id, method = message.get("id"), message.get("method")
    if id is None:
        continue
    answer = {"jsonrpc": "2.0", "id": id}
    if method == "initialize":
        version = message["params"]["protocolVersion"]
        result = {"protocolVersion": version, "capabilities": CAPABILITIES, "serverInfo": INFO}
    elif method == "tools/list":
        tool = {"inputSchema": {"type": "object"}, "annotations": {"readOnlyHint": True}}
        result = {"tools": [{"name": name, **tool} for name in NAMES]}
    elif method == "tools/call":
        name = message["params"]["name"]
        if name == "exit":
            sys.stderr.write("the tool has a bug\n")
            sys.stderr.flush()
            os._exit(7)
        if name == "close":
            os.close(1)
            time.sleep(3600)
        if name == "hang":
            time.sleep(3600)
        if name == "sleep":
            time.sleep(message["params"]["arguments"]["seconds"])
        if name == "junk":
            while True:
                say("x" * 10_000)
        text = predecessor if name == "predecessor" else str(os.getpid())
        result = {"content": [{"type": "text", "text": text}]}
    else:
        say(json.dumps({**answer, "error": {"code": -32601, "message": "unknown"}}))
        continue
    say(json.dumps({**answer, "result": result}))
if mode == "stubborn":
    time.sleep(3600)
if mode == "leave together":
    meet(4)
"""


def program(*args: object) -> list[str]:
    return python(PROGRAM, *args)


async def pid_of(host: Host, server: str = "a") -> int:
    return int((await host.call(f"mcp__{server}__pid")).text)


# -- One server ----------------------------------------------------------------------------------


async def test_process_runs_for_the_block() -> None:
    async with Host({"a": program()}) as host:
        pid = await pid_of(host)
        assert alive(pid)
        assert pid in children()
    assert not alive(pid)


async def test_process_is_gone_when_it_was_removed(tmp_path: Path) -> None:
    mark = tmp_path / "pid"
    async with Host({"a": program("parent", mark), "b": program("stubborn")}) as host:
        pids = [await pid_of(host), await pid_of(host, "b"), int(mark.read_text())]
        assert all(alive(pid) for pid in pids)
        await host.reload({})
        assert not any(alive(pid) for pid in pids)


async def test_restarted_process_begins_when_the_old_one_is_gone(tmp_path: Path) -> None:
    async with Host({"a": program("one at a time", tmp_path / "pid")}) as host:
        first = await pid_of(host)
        for _ in range(3):
            host.restart("a")
            assert (await host.call("mcp__a__predecessor")).text == "dead"
        assert await pid_of(host) != first
        assert not alive(first)
        assert len(children()) >= 1


async def test_killed_process_is_started_again(tmp_path: Path) -> None:
    async with Host({"a": program("one at a time", tmp_path / "pid")}) as host:
        pid = await pid_of(host)
        os.kill(pid, signal.SIGKILL)
        await reached(host, "failed", "a")
        assert (await host.call("mcp__a__predecessor")).text == "dead"
        assert host.status()["a"].attempt == 2


async def test_disabled_process_ends(tmp_path: Path) -> None:
    async with Host({"a": program()}) as host:
        pid = await pid_of(host)
        host.disable("a")
        with pytest.raises(ServerUnavailable):
            await host.call("mcp__a__pid")
        await until(lambda: not alive(pid))
        host.enable("a")
        assert await pid_of(host) != pid


@pytest.mark.parametrize("tool", ["exit", "close"])
async def test_process_that_ends_in_a_call_fails_the_call(tool: str) -> None:
    """A server that closes its stdout cannot answer either."""
    async with Host({"a": program()}) as host:
        pid = await pid_of(host)
        with trio.fail_after(PATIENCE), pytest.raises(ConnectionLost) as caught:
            await host.call(f"mcp__a__{tool}")
        if tool == "exit":
            assert "the tool has a bug" in str(caught.value)
        with trio.fail_after(PATIENCE):
            assert await pid_of(host) != pid
        assert not alive(pid)


async def test_process_that_floods_its_stdout_harms_no_other() -> None:
    async with Host({"a": program(), "b": program()}) as host:
        with (
            trio.fail_after(PATIENCE),
            pytest.raises(RemoteProtocolError, match="not MCP messages"),
        ):
            await host.call("mcp__a__junk")
        with trio.fail_after(PATIENCE):
            assert await pid_of(host, "b") > 0
        host.restart("a")
        assert await pid_of(host) > 0


async def test_process_that_exits_has_its_stderr_as_the_reason() -> None:
    async with Host({"a": program()}) as host:
        async with host.changes() as changes:
            with pytest.raises(ConnectionLost):
                await host.call("mcp__a__exit")
            async for change in changes:
                if change.status.state == "failed":
                    break
        assert "exit status 7" in change.status.reason
        assert "the tool has a bug" in change.status.reason


PRINTS = "import os, sys; sys.exit('no: %s %s' % (*map(os.getenv, ('PASSWORD', 'MY_TOKEN')),))"


@pytest.mark.parametrize("is_inherited", [False, True])
@pytest.mark.parametrize("kind", ["command", "entry", "file"])
async def test_variables_of_the_host_are_hidden_in_the_reason(
    kind: str, is_inherited: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A child prints them on stderr before it ends."""
    monkeypatch.setenv("MY_TOKEN", "CANARY-2-0123456789")
    entry = {"command": sys.executable, "args": ["-c", PRINTS]}
    config: Any = {"a": [sys.executable, "-c", PRINTS] if kind == "command" else entry}
    if kind == "file":
        config = tmp_path / ".mcp.json"
        config.write_text(json.dumps({"mcpServers": {"a": entry}}))
    env = {"PASSWORD": "CANARY-hunter2"}
    options: Any = {"inherit_env": is_inherited, "approvals": MemoryApprovals()}
    async with Host(
        config, env=env, stderr="discard", on_approve_server=lambda _: True, **options
    ) as host:
        await host.wait_settled()
        status = host.status()["a"]
    assert status.state == "failed"
    assert "no: " in status.reason
    assert "CANARY" not in status.reason


async def test_stderr_of_processes_comes_with_the_name_of_the_server() -> None:
    lines: list[tuple[str, str]] = []
    config = {"a": program("dies"), "b": program()}
    async with Host(config, stderr=lambda *each: lines.append(each)) as host:
        with pytest.raises(ConnectionLost):
            await host.call("mcp__b__exit")
    assert ("a", "the database is gone") in lines
    assert ("b", "the tool has a bug") in lines


# -- Bad servers ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("command", "reason", "is_verdict"),
    [
        (["/nowhere/server"], "/nowhere/server", True),
        (["no-such-program-of-anyone"], "no-such-program-of-anyone", True),
        ([os.devnull], os.devnull, True),
        ([f"{__file__}/x"], "Not a directory", True),
        (["/" + "x" * 300], "File name too long", True),
        (["echo", "x" * 3_000_000], "echo: Argument list too long", True),
        (program("dies"), "the database is gone", False),
        (program("junk"), "exit status 3", False),
        ([sys.executable, "-c", ""], "", False),
        (["echo", "hello"], "", False),
    ],
    ids=[
        *("no file", "no program", "no executable", "no directory", "long name", "long arguments"),
        *("dies", "junk", "exits", "echo"),
    ],
)
async def test_bad_command_fails_with_its_reason(
    command: list[str], reason: str, is_verdict: bool
) -> None:
    async with Host({"a": command}, connect_timeout=10) as host:
        status = host.status()["a"]
        assert status.state == "failed"
        assert reason in status.reason
        assert (status.retry_at is None) is is_verdict
        assert status.attempt == (1 if is_verdict else 2)


async def test_file_that_is_no_program_is_a_verdict(tmp_path: Path) -> None:
    file = tmp_path / "text"
    file.write_text("just text\n")
    file.chmod(0o755)
    async with Host({"a": [str(file)]}) as host:
        status = host.status()["a"]
        assert "a script needs a first line" in status.reason
        assert (status.state, status.attempt, status.retry_at) == ("failed", 1, None)


async def test_process_that_hangs_fails_after_the_timeout() -> None:
    async with Host({"a": program("hangs")}, connect_timeout=0.3, wait=0.0) as host:
        await until(lambda: bool(children()))
        pids = list(children())
        status = await reached(host, "failed", "a")
        assert "the server did not answer initialize" in status.reason
    assert not any(alive(pid) for pid in pids)


async def test_three_broken_servers_of_ten_harm_no_other() -> None:
    config = {f"s{number}": program() for number in range(7)}
    config |= {"dies": program("dies"), "hangs": program("hangs"), "none": ["/nowhere/server"]}
    async with Host(config, wait=0.0, connect_timeout=60) as host:
        for number in range(7):
            await usable(host, f"s{number}")
            assert await pid_of(host, f"s{number}") > 0
        states = {name: host.status()[name].state for name in ("dies", "hangs", "none")}
        assert states["hangs"] == "connecting"
        assert states["none"] == "failed"
        assert len({each.server for each in host.tools()}) == 7


# -- The end -------------------------------------------------------------------------------------


@pytest.mark.parametrize("when", ["connecting", "ready", "restarting"])
async def test_cancelled_block_leaves_no_process(when: str) -> None:
    """A cancellation at any time, even while a server hangs at its start, kills all children."""
    config = {"a": program("hangs" if when == "connecting" else ""), "b": program()}
    pids: set[int] = set()
    before = children().keys()
    entered = trio.Event()

    async def cancel(scope: trio.CancelScope) -> None:
        await until(lambda: len(children().keys() - before) >= 2)
        pids.update(children().keys() - before)
        if when != "connecting":
            await entered.wait()
        scope.cancel()

    async with trio.open_nursery() as nursery:
        with trio.CancelScope() as scope:
            nursery.start_soon(cancel, scope)
            async with Host(config, wait=None) as host:
                if when == "restarting":
                    host.restart("a")
                entered.set()
                await trio.sleep_forever()
    assert scope.cancelled_caught
    assert len(pids) >= 2
    assert not any(alive(pid) for pid in pids)
    assert children().keys() <= before


async def test_exception_of_the_block_leaves_no_process() -> None:
    error = ValueError("a fault of the block")
    pids: list[int] = []

    async def fail() -> None:
        async with Host({"a": program(), "b": program("stubborn")}) as host:
            pids.extend([await pid_of(host), await pid_of(host, "b")])
            raise error

    with pytest.raises(ValueError, match="a fault of the block") as caught:
        await fail()
    assert caught.value is error
    assert not any(alive(pid) for pid in pids)


async def test_processes_are_ended_side_by_side(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Four servers end when all of them have been told to."""
    monkeypatch.setattr("mcp_trio.streams._child.Grace", lambda: Grace(PATIENCE, PATIENCE))
    files = [tmp_path / str(number) for number in range(4)]
    config = {each.name: program("leave together", each) for each in files}
    async with Host(config) as host:
        pids = [await pid_of(host, name) for name in config]
    assert [each.read_text() for each in files] == ["met"] * 4
    assert not any(alive(pid) for pid in pids)


async def test_processes_start_side_by_side(tmp_path: Path) -> None:
    """Ten servers say their first word when all of them run."""
    config = {f"s{number}": program("meet", tmp_path / str(number)) for number in range(10)}
    async with Host(config, connect_timeout=PATIENCE, wait=PATIENCE) as host:
        assert {each.state for each in host.status().values()} == {"ready"}


# -- Kills ---------------------------------------------------------------------------------------


async def kill_loop(kills: int, seed: int, monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """Kill the process of a host `kills` times while calls are made, and count their outcomes."""
    # A server that dies all the time would be started every 30 s only.
    monkeypatch.setattr("mcp_core.host._supervision._FIRST_DELAY", 0.0)
    moments = random.Random(seed)
    outcomes: Counter[str] = Counter()
    others = children().keys()

    async def call(host: Host) -> None:
        while True:
            with trio.fail_after(PATIENCE):
                try:
                    seconds = moments.choice([0.0, 0.002, 0.02])
                    await host.call("mcp__a__sleep", {"seconds": seconds})
                except (ConnectionLost, ServerUnavailable) as exc:
                    outcomes[type(exc).__name__] += 1
                    await trio.sleep(0.001)
                else:
                    outcomes["result"] += 1

    async def kill() -> None:
        done = 0
        while done < kills:
            await trio.sleep(moments.uniform(0, 0.2))
            for pid in children().keys() - others:
                os.kill(pid, signal.SIGKILL)
                done += 1

    async with Host({"a": program()}, stderr="discard") as host, trio.open_nursery() as nursery:
        for _ in range(3):
            nursery.start_soon(call, host)
        await kill()
        nursery.cancel_scope.cancel()
    assert host._hosted is not None
    assert host._hosted.servers["a"].calls == 0
    assert children().keys() <= others
    return outcomes


async def test_process_killed_20_times_leaves_no_call_without_an_end(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    outcomes = await kill_loop(20, 18, monkeypatch)
    assert outcomes["result"]
    assert outcomes["ConnectionLost"]


@pytest.mark.slow
@pytest.mark.timeout(900)
async def test_process_killed_1000_times_leaves_no_call_without_an_end(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    begin = time.monotonic()
    outcomes: Any = await kill_loop(1_000, 19, monkeypatch)
    print(f"{time.monotonic() - begin:.0f} s: {dict(outcomes)}")
    assert outcomes["result"] > 100
    assert outcomes["ConnectionLost"] > 100
