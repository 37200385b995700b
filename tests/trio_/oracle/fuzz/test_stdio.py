"""A command as a target of the fuzzer."""

from __future__ import annotations

import sys
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest
import trio
from trio.testing import memory_stream_pair, wait_all_tasks_blocked

from mcp_core.trace import TraceLine, read_trace
from mcp_trio.oracle.fuzz._stdio import CommandTarget, StdioSession
from mcp_trio.oracle.fuzz.play._player import Player, play_case
from mcp_trio.recording._open import open_recorder
from tests.harness.world.waiting import PATIENCE

if TYPE_CHECKING:
    from pathlib import Path


async def test_header_has_pseudonyms_of_this_run() -> None:
    """With a key that is known, a pseudonym could be guessed."""
    command = ("server", "http://127.0.0.1/?code=12345678")
    async with trio.open_nursery() as nursery:
        shown = {CommandTarget(command, nursery).header().target for _ in range(3)}
        target = CommandTarget(command, nursery)
        assert target.header().target == target.header().target
    assert len(shown) == 3
    assert not any("12345678" in each for each in shown)


async def test_session_after_another_continues_its_trace() -> None:
    """A new process of one case is the next conversation of one trace, for one judge."""
    child: Any = SimpleNamespace(pid=1)
    async with trio.open_nursery() as nursery:
        target = CommandTarget(("server",), nursery)
        former = StdioSession(child, target, keep=True)
        former.is_second = True
        found = StdioSession(child, target, former, keep=True)
    assert (former.number, found.number) == (1, 2)
    assert found.judge is former.judge
    assert found.lines is former.lines
    assert [(line.kind, line.conversation) for line in found.lines or ()] == [
        *(("spawn", 1), ("spawn", 2)),
    ]
    assert found.is_second


@pytest.mark.process
async def test_processes_are_recorded_as_conversations(tmp_path: Path) -> None:
    """Each process is a connection of its own, so its lines carry its number."""
    path = tmp_path / "x.mcp.jsonl"
    words = [sys.executable, "-c", "import sys; sys.stdin.readline(); print(1)"]
    async with (
        open_recorder(path, "client", "stdio", words) as recorder,
        trio.open_nursery() as nursery,
    ):
        target = CommandTarget(words, nursery, ahead=0)
        target.recorder = recorder
        for _ in range(2):
            await play_case(target, [("open", "2025-11-25", "whole", "all")], Player())
        nursery.cancel_scope.cancel()
    _, lines = read_trace([path.read_bytes()])
    found = [line for _, line in lines if isinstance(line, TraceLine)]
    assert [line.conversation for line in found if line.kind == "spawn"] == [1, 2]
    assert [line.conversation for line in found if line.raw == "1"] == [1, 2]
    assert [line.conversation for line in found if "initialize" in (line.raw or "")] == [1, 2]


@pytest.mark.process
@pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells")
async def test_memory_is_of_each_process_of_the_command(tmp_path: Path) -> None:
    """A shell waits for the program that it has started, as `npx` does."""
    program = tmp_path / "program.py"
    program.write_text("import os, sys; print(os.getpid(), flush=True); sys.stdin.read()")
    words = ["sh", "-c", f"{sys.executable} -S {program}; true"]
    async with trio.open_nursery() as nursery:
        session = await CommandTarget(words, nursery, ahead=0).open(keep=True)
        while not any(line.raw for line in session.lines or ()):
            await session.wait_changed(trio.current_time() + 1)
        pid = int(next(line.raw for line in session.lines or () if line.raw) or "")
        sizes = session.memory()
        assert len(sizes) == 2
        assert sizes[pid] > 1024 * 1024
        await session.aclose()
        nursery.cancel_scope.cancel()


ANSWERS_AFTER_HALF_A_SECOND = """
import json, sys, time
for line in sys.stdin:
    time.sleep(0.5)
    response = {"jsonrpc": "2.0", "id": json.loads(line).get("id"), "result": {}}
    print(json.dumps(response), flush=True)
"""


@pytest.mark.process
@pytest.mark.parametrize(
    ("step", "counts"), [(("request", "ping", {}, "int"), True), (("call", "a", {}, ()), False)]
)
async def test_time_of_a_tool_does_not_count_as_start(step: tuple[Any, ...], counts: bool) -> None:
    async with trio.open_nursery() as nursery:
        target = CommandTarget([sys.executable, "-c", ANSWERS_AFTER_HALF_A_SECOND], nursery)
        case = [("open", "2026-07-28", "whole", "all"), step, ("wait",)]
        await play_case(target, case, Player(probes=False))
        nursery.cancel_scope.cancel()
    assert (target.longest_start is not None) == counts


ENDS_LATE = """
import sys, time
sys.stdin.read()
time.sleep(0.3)
"""


@pytest.mark.process
async def test_process_may_take_as_long_for_its_exit_as_for_its_start(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """On a busy machine an interpreter needs seconds for both."""
    monkeypatch.setattr("mcp_trio.oracle.fuzz._stdio.PROMPT_TIMEOUT", 0.0)
    async with trio.open_nursery() as nursery:
        for start, outlives in ((0.0, True), (PATIENCE, False)):
            target = CommandTarget([sys.executable, "-c", ENDS_LATE], nursery, ahead=0)
            target.add_start(start)
            session = await target.open()
            await session.disconnect()
            assert session.outlives_input is outlives
            await session.aclose()
        nursery.cancel_scope.cancel()


class CountedTarget(CommandTarget):
    """A command whose processes are counted, and aren't started."""

    def __init__(self, nursery: trio.Nursery) -> None:
        super().__init__(["server"], nursery)
        self.starts = 0

    async def _hold(self, task_status: trio.TaskStatus[object]) -> None:
        self.starts += 1
        ours, _ = memory_stream_pair()
        release = trio.Event()
        child = SimpleNamespace(stream=ours, returncode=None, stderr_tail=b"")
        task_status.started((child, release))
        await release.wait()


@pytest.mark.parametrize(("keep", "ahead"), [(False, 1), (True, 4)])
async def test_processes_are_started_ahead_for_examinations(keep: bool, ahead: int) -> None:
    """A run plays most cases on few processes, so those that wait would be started in vain."""
    async with trio.open_nursery() as nursery:
        target = CountedTarget(nursery)
        for count in (1, 2, 3):
            await target.open(keep=keep)
            await wait_all_tasks_blocked()
            assert target.starts == count + ahead
        nursery.cancel_scope.cancel()
