"""Small programs for the tests of pipes and children, and waiting for what they do."""

from __future__ import annotations

import subprocess
import sys
import textwrap
from typing import TYPE_CHECKING

import trio

from tests.harness.world.waiting import PATIENCE, until

if TYPE_CHECKING:
    from mcp_trio.streams._stdio import Streams

__all__ = ["alive", "line", "python", "rest", "until"]


def python(source: str, *args: object) -> list[str]:
    """Return a program of the standard library, with the functions `say` and `err`."""
    prelude = "import os, signal, sys, time\ndef say(text): print(text, flush=True)\n"
    return [sys.executable, "-I", "-S", "-c", prelude + textwrap.dedent(source), *map(str, args)]


def alive(pid: int) -> bool:
    """Return True if the process runs. An orphan that its new parent has not reaped is dead."""
    ps = ["ps", "-o", "stat=", "-p", str(pid)]
    state = subprocess.run(ps, capture_output=True, text=True, check=False).stdout
    return bool(state.strip()) and not state.startswith("Z")


async def line(stream: Streams) -> str:
    got = bytearray()
    with trio.fail_after(PATIENCE):
        while not got.endswith(b"\n"):
            chunk = await stream.receive_some(1)
            if not chunk:
                raise EOFError(bytes(got))
            got += chunk
    return got.decode().rstrip("\n")


async def rest(stream: Streams) -> bytes:
    with trio.fail_after(PATIENCE):
        return b"".join([bytes(chunk) async for chunk in stream])
