"""A server that ends, in a process of its own: its exit status is in errors of both drivers."""

from __future__ import annotations

import asyncio
import os
import sys
from contextlib import contextmanager, nullcontext
from typing import TYPE_CHECKING, Any

import pytest
import trio

from mcp_asyncio_shim import _stdio as asyncio_child
from mcp_core import ConnectFailed, ConnectionLost
from mcp_trio.streams import _child as trio_child
from tests.harness import either
from tests.harness.world.waiting import PATIENCE

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterator

pytestmark = pytest.mark.process

FAILS = "import sys; sys.stdin.readline(); sys.exit('no disk')"
IS_KILLED = "import os, sys; sys.stdin.readline(); os.kill(os.getpid(), 9)"
# It ends at the first call, after it has closed its stdout.
ENDS_LATER = """
import json, os, sys, time
for line in sys.stdin:
    message = json.loads(line)
    if message["method"] == "tools/call":
        os.close(1)
        time.sleep(0.05)
        sys.exit(7)
    result = {"supportedVersions": ["2026-07-28"], "capabilities": {"tools": {}},
        "ttlMs": 0, "cacheScope": "private", "resultType": "complete"}
    print(json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": result}), flush=True)
"""


@pytest.fixture(params=["trio", "asyncio"])
def run(request: pytest.FixtureRequest) -> Callable[[Callable[[], Awaitable[Any]]], Any]:
    """Runs an async function on a driver, in real time."""
    if request.param == "trio":
        return trio.run
    return lambda main: asyncio.run(main())  # type: ignore[arg-type]


@contextmanager
def stderr_at_terminal() -> Iterator[None]:
    kept = os.dup(2)
    screen, terminal = os.openpty()
    os.dup2(terminal, 2)
    try:
        yield
    finally:
        os.dup2(kept, 2)
        for fd in kept, screen, terminal:
            os.close(fd)


def command(program: str) -> list[str]:
    return [sys.executable, "-I", "-S", "-c", program]


@pytest.mark.parametrize("terminal", [False, True])
@pytest.mark.parametrize(
    ("program", "status", "words"),
    [
        (FAILS, " (exit status 1)", "\n  its stderr: no disk"),
        (IS_KILLED, " (exit status -9, signal 9)", ""),
    ],
)
def test_server_that_ends_before_it_is_open_has_its_status_in_the_error(
    program: str, status: str, words: str, terminal: bool, run: Any
) -> None:
    """The asyncio driver reads a child's stderr only to escape it for a terminal."""

    async def main() -> None:
        with either.fail_after(PATIENCE), pytest.raises(ConnectFailed) as caught:
            async with either.connect(command(program), versions=["2025-11-25"]):
                raise AssertionError
        is_read = either.on_trio() or terminal
        text = "the server ended the connection before it was open"
        assert str(caught.value) == text + status + words * is_read

    with stderr_at_terminal() if terminal else nullcontext():
        run(main)


def test_server_that_ends_has_its_status_in_the_errors_of_calls(
    run: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It isn't known yet when stdout ends."""
    for module in trio_child, asyncio_child:
        monkeypatch.setattr(module, "_END_TIMEOUT", PATIENCE)  # it may be a busy machine

    async def main() -> None:
        with either.fail_after(PATIENCE):
            async with either.connect(command(ENDS_LATER), versions=["2026-07-28"]) as client:
                with pytest.raises(ConnectionLost) as caught:
                    await client.call_tool("t")
        assert str(caught.value) == "the server closed the connection (exit status 7)"

    run(main)
