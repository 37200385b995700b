"""The lean engine with real programs: their ends, their processor time and their memory."""

from __future__ import annotations

import os
import socket
import sys

import pytest
import trio

from mcp_core import ConnectFailed
from mcp_trio.oracle.bench._process import GroupMeter, ListenerMeter
from mcp_trio.oracle.bench._requests import Mix, PreparedCall
from mcp_trio.oracle.bench._turn import Pace, TargetGone
from mcp_trio.oracle.bench.engine._load import Address, Program, open_load
from mcp_trio.streams._child import spawn
from tests.harness.world.waiting import PATIENCE, until

linux = pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
PING = PreparedCall("ping", None, "ping")
# Answers each request, and at once all that it can read. `{}` is replaced by more statements.
SERVER = """
import json, sys
for number, line in enumerate(sys.stdin, 1):
    message = json.loads(line)
    {}
    if "id" in message:
        version = message.get("params", {{}}).get("protocolVersion")
        found = {{"jsonrpc": "2.0", "id": message["id"]}}
        if message["method"] == "server/discover":
            found["error"] = {{"code": -32601, "message": "no"}}
        elif message["method"] == "initialize":
            found["result"] = {{
                "protocolVersion": version, "capabilities": {{}},
                "serverInfo": {{"name": "small", "version": "1"}},
            }}
        else:
            found["result"] = {{}}
        print(json.dumps(found), flush=True)
"""


def program(statements: str = "pass") -> Program:
    return Program([sys.executable, "-S", "-c", SERVER.format(statements)])


async def test_program_is_called_and_its_cpu_and_memory_measured() -> None:
    with trio.fail_after(PATIENCE):
        async with open_load(program()) as load:
            turn = await load.turn(Mix([PING]), Pace(None, 4), 0.2)
    assert (load.revision, load.server) == ("2025-11-25", "small 1")
    assert turn.answered == turn.sent > 4
    assert turn.load_cpu > 0
    if sys.platform == "linux":
        assert turn.target_cpu is not None
        assert turn.target_cpu > 0
        assert turn.memory is not None
        assert turn.memory > 1_000_000


async def test_program_that_ends_at_once_fails_with_its_stderr() -> None:
    statements = "sys.exit('no database')"
    with trio.fail_after(PATIENCE), pytest.raises(ConnectFailed) as failed:
        async with open_load(program(statements)):
            pass
    assert "ended during the handshake (exit status 1)" in str(failed.value)
    assert "its stderr: no database" in str(failed.value)


async def test_program_that_ends_in_a_turn_is_gone_with_status_and_stderr() -> None:
    """Its flood on stderr before that is read, and cut."""
    statements = "number > 30 and (sys.stderr.write('noise\\n' * 99_999), sys.exit('out of \\x1b'))"
    with trio.fail_after(PATIENCE):
        async with open_load(program(statements)) as load:
            with pytest.raises(TargetGone, match="ended with exit status 1") as gone:
                await load.turn(Mix([PING]), Pace(None, 2), 60.0)
    assert gone.value.status == 1
    assert gone.value.stderr == ("noise",) * 4 + ("out of \\u001b",)
    assert gone.value.turn is not None
    assert gone.value.turn.answered > 20


async def test_program_that_does_not_exist_fails() -> None:
    with pytest.raises(ConnectFailed, match="cannot start"):
        async with open_load(Program(["/no/such/program"])):
            pass


async def test_program_that_writes_before_it_reads_does_not_block_the_load() -> None:
    """Requests and responses are larger than the pipes."""
    big = PreparedCall("ping", {"text": "x" * 300_000}, "ping")
    note = "{'method': 'notifications/x', 'params': 'y' * 300_000}"
    statements = f"sys.stdout.write(json.dumps({note}) + chr(10))"
    with trio.fail_after(PATIENCE):
        async with open_load(program(statements)) as load:
            turn = await load.turn(Mix([big]), Pace(None, 8), 0.2)
    assert turn.failed == 0
    assert turn.answered >= 8


async def test_address_without_a_server_fails() -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{free.getsockname()[1]}/mcp"
        with pytest.raises(ConnectFailed, match="connection refused; is the server running"):
            async with open_load(Address(url)):
                pass


# -- Processes -----------------------------------------------------------------------------------

BURN = "import time; end = time.process_time() + 0.2\nwhile time.process_time() < end: pass"


@linux
async def test_group_meter_counts_children_that_run_and_that_have_ended() -> None:
    """Two children use 0.2 s each, and only one of them still runs."""
    waits = f"{BURN}\nprint(1, flush=True); input()"
    code = f"""
import subprocess, sys
subprocess.run([sys.executable, "-S", "-c", {BURN!r}])
child = subprocess.Popen([sys.executable, "-S", "-c", {waits!r}], stdin=subprocess.PIPE)
input()
"""
    with trio.fail_after(PATIENCE):
        async with spawn([sys.executable, "-S", "-c", code], stderr="discard") as child:
            meter = GroupMeter(child.pid)
            assert await child.stream.receive_some() == b"1\n"
            cpu, memory = meter.cpu(), meter.memory()
            leader = await trio.Path(f"/proc/{child.pid}/statm").read_text("ascii")
    assert cpu is not None
    assert cpu > 0.39
    assert memory is not None
    assert memory > int(leader.split()[1]) * os.sysconf("SC_PAGE_SIZE")
    assert meter.cpu() is None
    assert meter.memory() is None


@linux
async def test_listener_meter_counts_the_server_behind_a_port() -> None:
    code = f"""
import socket, time
listener = socket.create_server(("127.0.0.1", 0))
print(listener.getsockname()[1], flush=True)
{BURN}
input()
"""
    with trio.fail_after(PATIENCE):
        async with spawn([sys.executable, "-S", "-c", code], stderr="discard") as child:
            meter = ListenerMeter(int(await child.stream.receive_some()))
            await until(lambda: (meter.cpu() or 0) > 0.19)
            assert (meter.memory() or 0) > 1_000_000
    assert meter.cpu() is None
