"""Servers and clients on a system without what only POSIX has. Real processes."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path
from typing import Any

import pytest

from tests.harness.jsonrpc import (
    INITIALIZED,
    D,
    Message,
    initialize,
    line,
    ping,
    request,
)
from tests.harness.world.waiting import PATIENCE

ROOT = Path(__file__).parents[1]
OTHER = [sys.executable, "-W", "error", str(ROOT / "tests/other_system.py"), "-c"]
DRIVERS = ["trio", "asyncio"]
PACKAGE = {"trio": "mcp_trio", "asyncio": "mcp_asyncio_shim"}

SERVER = '''
import os, sys
import {driver}
import {package} as driver
from mcp_core.registry import Server

assert not hasattr(os, "killpg")
server = Server("s")

@server.tool
async def slow(seconds: float) -> str:
    """Sleep, and print."""
    print("started", flush=True)
    try:
        await {driver}.sleep(seconds)
    finally:
        print("finished", flush=True)
    return "slept"

@server.tool
def echo(text: str) -> str:
    """Return the text."""
    return text

driver.run(server)
'''


def words(program: str, driver: str) -> list[str]:
    return [*OTHER, program.format(driver=driver, package=PACKAGE[driver])]


def start(driver: str) -> subprocess.Popen[bytes]:
    """Start the server, and open its conversation."""
    pipe = subprocess.PIPE
    process = subprocess.Popen(words(SERVER, driver), stdin=pipe, stdout=pipe, stderr=pipe)
    send(process, initialize(D))
    receive(process)
    send(process, INITIALIZED)
    return process


def send(process: subprocess.Popen[bytes], *messages: Message) -> None:
    assert process.stdin
    process.stdin.write(b"".join(map(line, messages)))
    process.stdin.flush()


def receive(process: subprocess.Popen[bytes]) -> Any:
    assert process.stdout
    return json.loads(process.stdout.readline())


def call(tool: str, **arguments: Any) -> Message:
    return request(tool, "tools/call", {"name": tool, "arguments": arguments})


def test_all_modules_can_be_imported() -> None:
    program = """
        import pkgutil
        for name in ("mcp_core", "mcp_trio", "mcp_asyncio_shim"):
            packages = __import__(name).__path__
            for module in pkgutil.walk_packages(packages, name + ".", onerror=print):
                # `Terminal` is imported on POSIX only, by the command; hypothesis, which reads
                # more of the system than is simulated, by the fuzzer.
                if module.name.endswith(("__main__", "._terminal")):
                    continue
                if ".strategies" not in module.name and ".fuzz.draw" not in module.name:
                    __import__(module.name)
        """
    subprocess.run([*OTHER, textwrap.dedent(program)], check=True, timeout=PATIENCE)


@pytest.mark.parametrize("driver", DRIVERS)
def test_large_messages_and_prints(driver: str) -> None:
    text = "x" * 1_000_000
    with start(driver) as server:
        send(server, call("echo", text=text), call("slow", seconds=0))
        assert receive(server)["result"]["content"][0]["text"] == text
        assert receive(server)["result"]["content"][0]["text"] == "slept"
        stdout, stderr = server.communicate(timeout=PATIENCE)
    assert (stdout, server.returncode) == (b"", 0)
    assert stderr == b"started\nfinished\n"


@pytest.mark.parametrize("driver", DRIVERS)
def test_end_of_stdin_lets_handler_respond(driver: str) -> None:
    with start(driver) as server:
        send(server, call("slow", seconds=0.2))
        stdout, _ = server.communicate(timeout=PATIENCE)
    assert json.loads(stdout)["result"]["content"][0]["text"] == "slept"
    assert server.returncode == 0


@pytest.mark.parametrize("driver", DRIVERS)
def test_signal_ends_server_that_waits_for_input(driver: str) -> None:
    with start(driver) as server:
        assert server.stderr
        assert server.stdout
        send(server, call("slow", seconds=0.1))
        assert server.stderr.readline() == b"started\n"
        server.send_signal(signal.SIGINT)
        assert server.wait(PATIENCE) == 130
        assert server.stderr.read() == b"finished\n"


@pytest.mark.parametrize("driver", DRIVERS)
def test_peer_that_does_not_read_holds_server_back_and_cannot_keep_it(driver: str) -> None:
    with start(driver) as server:
        send(server, *[call("echo", text="x" * 100_000)] * 5)
        time.sleep(0.3)  # the output fills the pipe
        server.send_signal(signal.SIGTERM)
        assert server.wait(PATIENCE) == 143


@pytest.mark.parametrize("driver", DRIVERS)
def test_peer_that_closes_stdout_ends_server(driver: str) -> None:
    with start(driver) as server:
        assert server.stdout
        assert server.stderr
        server.stdout.close()
        send(server, ping())
        assert server.stderr.read() == b""
        assert server.wait(PATIENCE) == 0


TRIO_CLIENT = """
import json, sys, trio, mcp_trio

async def main():
    command, stubborn = json.loads(sys.argv[1])
    async with mcp_trio.connect_stdio(command, inherit_env=True, stderr=sys.stdout.write) as client:
        text = "x" * 1_000_000
        assert (await client.call_tool("echo", {{"text": text}})).content[0].text == text
        with trio.move_on_after(0.1):
            await client.call_tool("slow", {{"seconds": 60}})
        await client.ping()
    grace = mcp_trio.Grace(0.2, 0.2)
    async with mcp_trio.connect_stdio(stubborn, inherit_env=True, grace=grace) as client:
        await client.ping()
    print("done")

trio.run(main)
"""

ASYNCIO_CLIENT = """
import asyncio, json, sys, mcp_asyncio_shim

async def main():
    command, stubborn = json.loads(sys.argv[1])
    async with mcp_asyncio_shim.connect(command, inherit_env=True) as client:
        text = "x" * 1_000_000
        assert (await client.call_tool("echo", {{"text": text}})).content[0].text == text
        try:
            async with asyncio.timeout(0.1):
                await client.call_tool("slow", {{"seconds": 60}})
        except TimeoutError:
            pass
        await client.ping()
    mcp_asyncio_shim._stdio._GRACE = 0.2
    async with mcp_asyncio_shim.connect(stubborn, inherit_env=True) as client:
        await client.ping()
    print("done")

asyncio.run(main())
"""


@pytest.mark.parametrize(("driver", "client"), [("trio", TRIO_CLIENT), ("asyncio", ASYNCIO_CLIENT)])
def test_client_calls_cancels_and_ends_servers(driver: str, client: str) -> None:
    stubborn = words(SERVER + "import time\nwhile True: time.sleep(60)", driver)
    commands = json.dumps([words(SERVER, driver), stubborn])
    done = subprocess.run(
        [*words(client, driver), commands], capture_output=True, timeout=PATIENCE, check=False
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.endswith(b"done\n")
