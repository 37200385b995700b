"""Servers whose handlers do not end, where the process is ours: it ends, and names the tool.

Each program is a server file on trio or on asyncio. Several cases run at the same time, because
each takes over five seconds.
"""

from __future__ import annotations

import json
import os
import re
import signal
import socket
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, suppress
from typing import TYPE_CHECKING, Any, NamedTuple

import pytest

from mcp_asyncio_shim._stdio import unread_bytes
from tests.harness.jsonrpc import (
    INITIALIZED,
    D,
    initialize,
    line,
    request,
)
from tests.harness.wire.router import POST
from tests.harness.world.waiting import PATIENCE, wait_until

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.timeout(300)  # two minutes on a busy machine

TOOLS = '''
def started():
    print("started", file=sys.stderr, flush=True)

@server.tool(name="obstinate")
async def swallow() -> None:
    """Swallow every cancellation."""
    started()
    with SHIELD:
        while True:
            with contextlib.suppress(asyncio.CancelledError):
                await sleep(1)

@server.tool
async def spin() -> None:
    """Let no other task run."""
    started()
    while True:
        time.sleep(0.01)

@server.tool
def block() -> None:
    """Block the event loop."""
    started()
    while True:  # a signal just before a system call does not interrupt it
        time.sleep(0.1)

@server.tool
def fill() -> None:
    """Block the event loop, while nothing reads stderr."""
    started()
    while True:
        os.write(2, b"x" * 10_000_000)

@server.tool(thread=True)
def thread() -> None:
    """Block a worker thread."""
    started()
    time.sleep(1e6)

@server.tool
async def leave() -> None:
    """End at once, and leave a task behind that does not."""
    if "mcp_asyncio_shim" in sys.modules:
        await asyncio.shield(asyncio.create_task(swallow()))
    started()
    await sleep(1e6)
'''

TRIO = (
    """
import asyncio, contextlib, os, sys, time
import mcp_trio, trio
from trio import sleep
SHIELD = trio.CancelScope(shield=True)

@contextlib.asynccontextmanager
async def slow(server):
    yield
    await trio.sleep(float(*sys.argv[2:3]))

server = mcp_trio.Server("served", lifespan=slow)
"""
    + TOOLS
    + """
if __name__ == "__main__":
    if sys.argv[1] == "theirs":
        trio.run(mcp_trio.serve_stdio, server)
    elif sys.argv[1] == "http":
        import logging
        logging.basicConfig(level="INFO")
        mcp_trio.run_http(server, port=0, grace=0.2)
    else:
        mcp_trio.run(server, grace=0.2, record=sys.argv[1] or None)
"""
)

ASYNCIO = (
    """
import asyncio, contextlib, os, sys, time
import mcp_asyncio_shim
from asyncio import sleep
from mcp_core.registry import Server
SHIELD = contextlib.nullcontext()

@contextlib.asynccontextmanager
async def slow(server):
    yield
    await asyncio.sleep(float(*sys.argv[2:3]))

server = Server("served", lifespan=slow)
"""
    + TOOLS
    + """
if __name__ == "__main__":
    mcp_asyncio_shim.run(server, record=sys.argv[1] or None)
"""
)


_AT_ONCE = 6  # they start slowly, then they wait


class Case(NamedTuple):
    """A call of `tool`, None for no call, then what happens to the server, and how it ends."""

    tool: str | None
    how: str
    status: int
    named: str | None = None  # the handler in the line on stderr; None for no line
    record: str = ""  # or "theirs" for a process that is not ours
    lifespan: float = 0.0  # seconds
    silent: bool = False  # nothing reads stderr


OBSTINATE = "tool 'obstinate'"
BOTH = [
    *(Case("obstinate", how, 1, OBSTINATE) for how in ("stdin", "stdout", "both")),
    Case("obstinate", "SIGTERM", 143, OBSTINATE),
    Case("obstinate", "SIGINT", 130, OBSTINATE),
    Case("obstinate", "stdin, SIGTERM", 143, OBSTINATE),
    Case("obstinate", "stdin", 1, OBSTINATE, record="trace.jsonl"),
    Case("spin", "SIGTERM", 143, "tool 'spin'"),
    Case("block", "SIGTERM", 143, "tool 'block'"),
    Case("block", "SIGINT", 130, "tool 'block'"),
    Case("fill", "SIGTERM", 143, silent=True),
    Case(None, "stdin", 0),
    Case(None, "stdout", 0),
    Case(None, "SIGTERM", 143),
    Case(None, "stdin", 0, lifespan=8.0),
]
ONLY_TRIO = [
    Case("thread", "stdin", 0),
    Case("thread", "SIGTERM", 143),
    Case("http", "SIGTERM", 143, OBSTINATE, record="http"),
]
ONLY_ASYNCIO = [
    Case("thread", "stdin", 1, "tool 'thread'"),
    Case("thread", "SIGTERM", 143, "tool 'thread'"),
    Case("leave", "SIGTERM", 143, "tool 'leave'"),
]


class Ended(NamedTuple):
    status: int
    seconds: float
    stderr: str


def play(file: Path, case: Case) -> Ended:
    """Play one case. A process that does not end is killed."""
    record = case.record
    if record.endswith(".jsonl"):
        record = str(file.with_name(record))
    words = [sys.executable, "-P", str(file), record, str(case.lifespan)]
    pipe = subprocess.PIPE
    with (
        ExitStack() as opened,
        subprocess.Popen(words, stdin=pipe, stdout=pipe, stderr=pipe) as process,
    ):
        assert process.stdin
        assert process.stdout
        assert process.stderr
        try:
            if case.tool == "http":
                opened.enter_context(call_over_http(process))
            else:
                process.stdin.write(line(initialize(D)) + line(INITIALIZED))
                process.stdin.flush()
                process.stdout.readline()
                if case.tool is not None:
                    message = request(1, "tools/call", {"name": case.tool})
                    process.stdin.write(line(message))
                    process.stdin.flush()
                    assert process.stderr.readline() == b"started\n"
            if case.silent:  # it is in the system call once there is more to read
                fd = process.stderr.fileno()
                wait_until(lambda: unread_bytes(fd))
            killer = threading.Timer(2 * PATIENCE, process.kill)
            killer.start()
            opened.callback(killer.cancel)
            began = time.monotonic()
            for step in case.how.split(", "):
                if step in ("stdin", "both"):
                    process.stdin.close()
                if step in ("stdout", "both"):
                    process.stdout.close()
                if step.startswith("SIG"):
                    process.send_signal(signal.Signals[step])
            stderr = b"" if case.silent else process.stderr.read()
            status = process.wait()
            return Ended(status, time.monotonic() - began, stderr.decode())
        finally:
            process.kill()
            with suppress(BrokenPipeError):
                process.stdin.close()


def call_over_http(process: subprocess.Popen[bytes]) -> socket.socket:
    """Call `obstinate` of a server that logs its URL, and return the connection."""
    assert process.stderr
    found = None
    while found is None:
        found = re.search(rb"listening on http://127.0.0.1:(\d+)", process.stderr.readline())
    message: Any = request(1, "tools/call", {"name": "obstinate"})
    message["params"]["_meta"] = {
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {},
        "io.modelcontextprotocol/clientInfo": {"name": "c", "version": "1"},
    }
    body = json.dumps(message).encode()
    headers = dict(POST) | {
        b"mcp-protocol-version": b"2026-07-28",
        b"mcp-method": b"tools/call",
        b"mcp-name": b"obstinate",
        b"content-length": b"%d" % len(body),
    }
    client = socket.create_connection(("127.0.0.1", int(found[1])))
    head = b"".join(b"%s: %s\r\n" % each for each in headers.items())
    client.sendall(b"POST /mcp HTTP/1.1\r\n" + head + b"\r\n" + body)
    assert process.stderr.readline() == b"started\n"
    return client


@pytest.mark.parametrize(
    ("source", "cases", "least"),
    [(TRIO, BOTH + ONLY_TRIO, 5.2), (ASYNCIO, BOTH + ONLY_ASYNCIO, 6.0)],
    ids=["trio", "asyncio"],
)
def test_last_deadline_ends_process_and_names_tool(
    source: str, cases: list[Case], least: float, tmp_path: Path
) -> None:
    """Some handlers ignore cancellation: one stderr line names the tool; the trace is whole."""
    file = tmp_path / "served.py"
    file.write_text(source)
    with ThreadPoolExecutor(_AT_ONCE) as threads:
        ends = list(threads.map(lambda case: play(file, case), cases))
    for case, end in zip(cases, ends, strict=True):
        assert end.status == case.status, (case, end)
        lines = end.stderr.splitlines()
        if case.named is None:
            assert lines == [], (case, end)
            continue
        assert end.seconds >= least - 0.1, (case, end)
        assert len(lines) == 1, (case, end)
        assert lines[0].startswith(f"served: {case.named} did not end within "), (case, end)
    trace = (tmp_path / "trace.jsonl").read_text()
    assert trace.endswith("\n")
    assert "tools/call" in trace


@pytest.mark.skipif(not hasattr(os, "killpg"), reason="SIGTERM is of POSIX")
def test_last_deadline_of_the_command_ends_process(tmp_path: Path) -> None:
    file = tmp_path / "served.py"
    file.write_text(TRIO)
    words = [sys.executable, "-P", "-m", "mcp_trio", "run", str(file)]
    messages = initialize(D), INITIALIZED, request(1, "tools/call", {"name": "obstinate"})
    data = b"".join(map(line, messages))
    done = subprocess.run(words, input=data, capture_output=True, timeout=PATIENCE, check=False)
    assert done.returncode == 1
    lines = done.stderr.decode().splitlines()
    assert lines[0] == "started"
    assert lines[1].startswith("served: tool 'obstinate' did not end within 6 s after the client")
    assert len(lines) == 2
