"""How a load is opened: on a program or at an address."""

from __future__ import annotations

import inspect
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import pytest
import trio
import trio.testing

from mcp_core import ConnectFailed
from mcp_trio._nursery import open_quiet_nursery
from mcp_trio.oracle.bench.engine import _load
from mcp_trio.oracle.bench.engine._load import Address, Program, open_load
from tests.trio_.oracle.bench.stand_ins import StdioStandIn

if TYPE_CHECKING:
    from collections.abc import AsyncIterator


class EndedChild:
    """A child in memory whose end is described once it is closed. `stream` is its pipe."""

    pid = 1
    returncode = 7
    stderr_tail = b""

    def __init__(self, stream: Any) -> None:
        self.stream = stream
        self.closed = 0

    async def aclose(self) -> None:
        await trio.lowlevel.checkpoint()
        self.closed += 1

    def describe_start(self) -> str:
        return "; its stderr" if self.closed else ""


def test_program_inherits_little_unless_it_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    found: list[Any] = []
    monkeypatch.setattr(_load, "spawn", lambda *args, **options: found.append((args, options)))
    Program(["a", "b"]).spawn("discard")
    Program(["a"], env={"X": "y"}, inherit_env=True, cwd="/").spawn("forward")
    assert found == [
        ((["a", "b"],), {"env": None, "inherit_env": False, "cwd": None, "stderr": "discard"}),
        ((["a"],), {"env": {"X": "y"}, "inherit_env": True, "cwd": "/", "stderr": "forward"}),
    ]


def test_load_waits_thirty_seconds_unless_it_says_so() -> None:
    """The command line's default is the same."""
    assert inspect.signature(open_load).parameters["timeout"].default == 30.0
    assert Address("http://a.test/").headers == {}


async def test_program_that_ends_in_its_handshake_is_described_by_its_end(
    monkeypatch: pytest.MonkeyPatch, autojump_clock: Any
) -> None:
    """Only once it is closed are its exit status and all of its stderr known."""
    children: list[EndedChild] = []

    @asynccontextmanager
    async def spawn(*args: object, **options: object) -> AsyncIterator[EndedChild]:
        ours, theirs = trio.testing.memory_stream_pair()
        await theirs.aclose()
        children.append(EndedChild(ours))
        yield children[-1]

    monkeypatch.setattr(_load, "spawn", spawn)
    with pytest.raises(ConnectFailed) as info:
        async with open_load(Program(["a"])):
            pass
    assert str(info.value) == "the program ended during the handshake; its stderr"
    assert children[0].closed == 1


async def test_program_is_opened_in_the_revision_and_stopped_at_the_end(
    monkeypatch: pytest.MonkeyPatch, autojump_clock: Any
) -> None:
    """An error of the block itself passes without a group."""
    stopped: list[str] = []

    async def never(server: StdioStandIn, message: Any) -> None:
        await trio.lowlevel.checkpoint()

    @asynccontextmanager
    async def spawn(*args: object, **options: object) -> AsyncIterator[EndedChild]:
        ours, theirs = trio.testing.memory_stream_pair()
        async with open_quiet_nursery() as nursery:
            nursery.start_soon(StdioStandIn(nursery, theirs, never).run)
            try:
                yield EndedChild(ours)
            finally:
                stopped.append("stopped")

    monkeypatch.setattr(_load, "spawn", spawn)
    async with open_load(Program(["a"]), era="2025-11-25") as load:
        assert (load.revision, load.server) == ("2025-11-25", "stand-in 1")
    assert stopped == ["stopped"]
    with pytest.raises(ZeroDivisionError):
        async with open_load(Program(["a"])):
            raise ZeroDivisionError
    assert stopped == ["stopped"] * 2
