"""A command as a target of the fuzzer."""

from __future__ import annotations

import os
import sys
from contextlib import asynccontextmanager
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest
import trio
from trio.testing import memory_stream_pair, wait_all_tasks_blocked

from mcp_core import ConnectFailed
from mcp_core.trace import TraceLine, read_trace
from mcp_trio.oracle.fuzz import _stdio
from mcp_trio.oracle.fuzz._session import MESSAGE_LIMIT, PART_INTERVAL
from mcp_trio.oracle.fuzz._stdio import CommandTarget, StdioSession
from mcp_trio.oracle.fuzz.play._player import Player, play_case
from mcp_trio.recording._open import open_recorder
from mcp_trio.streams._child import Grace
from tests.harness.world.waiting import PATIENCE

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
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


# -- A conversation with a process that the test plays ---------------------------------------------


@asynccontextmanager
async def played_process() -> AsyncIterator[tuple[StdioSession, Any, Any]]:
    """Yield a session, the process that it believes to have, and the process's end of the pipes."""
    ours, theirs = memory_stream_pair()
    child = SimpleNamespace(pid=1, stream=ours, returncode=None, stderr_tail=b"")
    child.describe = lambda: "it has failed with 12345678"
    async with trio.open_nursery() as nursery:
        target = CommandTarget(["server", "a b"], nursery, secrets=["12345678"])
        assert target.name == "server 'a b'"
        session = StdioSession(child, target, keep=True)  # type: ignore[arg-type]
        nursery.start_soon(session.run)
        yield session, child, theirs
        session._released.set()


async def test_process_that_ends_is_recorded_with_its_status(autojump_clock: Any) -> None:
    """Output that comes while reading is paused isn't lost."""
    async with played_process() as (session, child, theirs):
        await theirs.send_all(b"[1]\n")
        await wait_all_tasks_blocked()
        session.pause_reading()
        await theirs.send_all(b"[2]\n")  # taken by the read that is under way
        await wait_all_tasks_blocked()
        await theirs.send_all(b"[3]\n")
        await wait_all_tasks_blocked()
        assert session.lines is not None
        assert [each.raw for each in session.lines if each.raw] == ["[1]", "[2]"]
        session.resume_reading()
        child.returncode = 3
        await theirs.aclose()
        await session._all_read.wait()
        assert [each.raw for each in session.lines if each.raw] == ["[1]", "[2]", "[3]"]
        assert (session.lines[-1].kind, session.lines[-1].status) == ("exit", 3)
        assert (session.ended, session.exit_status) == ("its stdout has ended", 3)


@pytest.mark.parametrize(("limit", "end"), [(3, "it sends without end"), (4, "")])
async def test_output_above_the_limit_is_a_flood(
    autojump_clock: Any, monkeypatch: pytest.MonkeyPatch, limit: int, end: str
) -> None:
    monkeypatch.setattr(_stdio, "MAX_INPUT", limit)
    async with played_process() as (session, child, theirs):
        child.returncode = 0
        await theirs.send_all(b"[1]\n")
        await wait_all_tasks_blocked()
        assert session.ended == end


@pytest.mark.parametrize(("size", "count"), [(MESSAGE_LIMIT + 1, 0), (3, 1)])
async def test_message_that_is_too_large_excuses_the_open_requests(
    autojump_clock: Any, size: int, count: int
) -> None:
    """It may have been the response to one of them."""
    async with played_process() as (session, _, theirs):
        await session.send({"jsonrpc": "2.0", "id": 1, "method": "ping"})
        await theirs.send_all(b"[" + b" " * (size - 2) + b"]\n")
        await wait_all_tasks_blocked()
        assert len(session.open) == count


async def test_line_is_written_whole_in_parts_or_byte_by_byte(autojump_clock: Any) -> None:
    """Each is one line of the trace. There's a pause between two parts, and after each byte."""
    async with played_process() as (session, _, theirs):
        message: dict[str, Any] = {"id": 1}
        await session.send_text("\ud800", message)
        assert await theirs.receive_some() == b"\xed\xa0\x80\n"
        await session.send_data(b"\xff")
        assert await theirs.receive_some() == b"\xff\n"
        begun = trio.current_time()
        await session.send_parts(b"abc", message, "body", 1)
        assert trio.current_time() - begun == pytest.approx(PART_INTERVAL)
        assert await theirs.receive_some() == b"abc\n"
        async with trio.open_nursery() as nursery:
            nursery.start_soon(session.send_parts, b"abc", message, "body", 1)
            await wait_all_tasks_blocked()
            assert await theirs.receive_some() == b"a"
        assert await theirs.receive_some() == b"bc\n"
        begun = trio.current_time()
        await session.send_slowly(b"abc", 2)
        assert trio.current_time() - begun == pytest.approx(8)
        assert session.lines is not None
        sent = [each.raw or each.data for each in session.lines if each.sender == "client"]
        assert sent == ["\ud800", b"\xff", "abc", "abc", "abc"]


async def test_process_that_reads_nothing_for_ten_seconds_ends_the_conversation(
    autojump_clock: Any,
) -> None:
    """Nothing is written any more after that."""
    async with played_process() as (session, child, _):
        await wait_all_tasks_blocked()

        class Full(SimpleNamespace):
            async def send_all(self, data: bytes) -> None:
                await trio.sleep_forever()

        child.stream, begun = Full(), trio.current_time()
        await session.send_data(b"a")
        assert trio.current_time() - begun == pytest.approx(10)
        assert session.ended == "it does not read its stdin"
        await session.send_data(b"b")
        assert trio.current_time() - begun == pytest.approx(10)


async def test_process_that_closes_its_stdin_ends_the_conversation(autojump_clock: Any) -> None:
    """Its exit is waited for, so that the fault has its status."""
    async with played_process() as (session, child, theirs):
        await theirs.receive_stream.aclose()

        async def exit_soon() -> None:
            await trio.sleep(0.1)
            child.returncode = -6

        async with trio.open_nursery() as nursery:
            nursery.start_soon(exit_soon)
            await session.send_data(b"a")
        assert (session.ended, session.exit_status) == ("it has closed its stdin", -6)


@pytest.mark.parametrize(
    ("stderr", "trouble"),
    [
        (b"", ""),
        (b"a\nTraceback (most recent call last):\n", "Traceback (most recent call last)"),
        (b"thread 'main' panicked at", "panicked"),
        (b"(node:1) Unhandled rejection\nb", "Unhandled rejection"),
        (b"it works", ""),
    ],
)
async def test_stderr_shows_an_unhandled_error(
    autojump_clock: Any, stderr: bytes, trouble: str
) -> None:
    """Descriptions have no secrets."""
    async with played_process() as (session, child, _):
        child.stderr_tail = stderr
        assert (session.stderr(), session.trouble()) == (stderr, trouble)
        described = session.describe()
        assert described.startswith("it has failed with ")
        assert "12345678" not in described


@pytest.mark.process
async def test_program_that_is_missing_cannot_be_opened() -> None:
    async with trio.open_nursery() as nursery:
        target = CommandTarget(["/missing/program"], nursery)
        for _ in range(2):
            with pytest.raises(ConnectFailed):
                await target.open()


# -- Times and limits ------------------------------------------------------------------------------


def test_process_may_send_a_quarter_of_a_gibibyte() -> None:
    assert _stdio.MAX_INPUT == 256 * 1024 * 1024
    assert _stdio.MAX_PROCESSES == 50


@pytest.mark.parametrize(("exits_after", "seconds"), [(None, 2), (1.5, 1.5)])
async def test_exit_after_the_end_of_stdout_is_waited_for_two_seconds(
    autojump_clock: Any, exits_after: float | None, seconds: float
) -> None:
    """A process that only closes its stdout has no exit status, and the session is over."""
    async with played_process() as (session, child, theirs):
        begun = trio.current_time()

        async def exit_later() -> None:
            if exits_after is not None:
                await trio.sleep(exits_after)
                child.returncode = 4

        async with trio.open_nursery() as nursery:
            nursery.start_soon(exit_later)
            await theirs.aclose()
            await session._all_read.wait()
        assert trio.current_time() - begun == pytest.approx(seconds, abs=0.01)
        assert session.ended == "its stdout has ended"
        assert session.exit_status == (None if exits_after is None else 4)
        assert session.lines is not None
        exits = [each.status for each in session.lines if each.kind == "exit"]
        assert exits == ([] if exits_after is None else [4])


@pytest.mark.parametrize(
    ("start", "exits_after", "seconds", "outlives"),
    [
        (None, None, 5, True),
        (0.5, None, 5, True),
        (7.0, None, 7, True),
        (None, 4.0, 4, False),
        (7.0, 6.0, 6, False),
    ],
)
async def test_exit_after_the_end_of_stdin_is_waited_for_five_seconds_or_as_long_as_a_start(
    autojump_clock: Any,
    start: float | None,
    exits_after: float | None,
    seconds: float,
    outlives: bool,
) -> None:
    """The next step comes after all that the process sends at its exit."""
    async with played_process() as (session, child, theirs):
        if start is not None:
            session._target.add_start(start)
            session._target.add_start(0.1)
        assert session.longest_start == start
        begun = trio.current_time()

        async def exit_later() -> None:
            if exits_after is not None:
                await trio.sleep(exits_after)
                child.returncode = 0
                await theirs.send_all(b"[5]\n")
                await theirs.aclose()

        async with trio.open_nursery() as nursery:
            nursery.start_soon(exit_later)
            await session.disconnect()
        assert trio.current_time() - begun == pytest.approx(seconds, abs=0.01)
        assert (session.outlives_input, session.spent) == (outlives, True)
        assert session.is_running is outlives
        assert session.lines is not None
        assert ("client", "closed") in [(each.sender, each.end) for each in session.lines]
        assert any(each.raw == "[5]" for each in session.lines) is not outlives


async def test_stdout_that_another_process_holds_is_waited_for_two_seconds(
    autojump_clock: Any,
) -> None:
    async with played_process() as (session, child, _):
        child.returncode = 0
        begun = trio.current_time()
        await session.disconnect()
        assert trio.current_time() - begun == pytest.approx(2, abs=0.01)
        assert not session.outlives_input


async def test_processes_of_a_group_are_searched_for_at_every_tenth_reading(
    autojump_clock: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A search reads a file of each process of the machine."""
    searched: list[int] = []

    def search(group: int) -> list[int]:
        searched.append(group)
        return []

    monkeypatch.setattr(_stdio, "_processes_of", search)
    async with played_process() as (session, _, _):
        counts = []
        for _ in range(21):
            assert session.memory() == {}
            counts.append(len(searched))
    assert counts == [*[1] * 10, *[2] * 10, 3]
    assert set(searched) == {1}


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells")
async def test_memory_is_in_bytes_and_a_process_that_has_ended_has_none(
    autojump_clock: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    group = _stdio._processes_of(os.getpgid(0))
    assert os.getpid() in group
    monkeypatch.setattr(_stdio, "MAX_PROCESSES", 1)
    assert len(_stdio._processes_of(os.getpgid(0))) == 1
    monkeypatch.setattr(_stdio, "_processes_of", lambda group: [2**22 + 1, os.getpid()])
    async with played_process() as (session, _, _):
        sizes = session.memory()
    assert sizes.keys() == {os.getpid()}
    assert 4 << 20 < sizes[os.getpid()] < 16 << 30


async def test_process_is_started_as_the_target_says_and_killed_at_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Its stderr isn't shown, and no end is waited for: how it shuts down isn't tested."""
    started: list[Any] = []

    @asynccontextmanager
    async def spawn(command: Any, **options: Any) -> AsyncIterator[Any]:
        started.append((command, options))
        ours, theirs = memory_stream_pair()
        async with theirs:
            yield SimpleNamespace(stream=ours, returncode=None, stderr_tail=b"")

    monkeypatch.setattr(_stdio, "spawn", spawn)
    async with trio.open_nursery() as nursery:
        for options in {}, {"env": {"A": "b"}, "inherit_env": True, "cwd": "/srv"}:
            target = CommandTarget(["server", "a"], nursery, ahead=0, **options)  # type: ignore[arg-type]
            session = await target.open()
            assert (session.lines, session.recording) == (None, None)
            await session.aclose()
    same = {"stderr": "discard", "grace": Grace(0.0, 0.0)}
    assert started == [
        (("server", "a"), {"env": None, "inherit_env": False, "cwd": None, **same}),
        (("server", "a"), {"env": {"A": "b"}, "inherit_env": True, "cwd": "/srv", **same}),
    ]


async def test_process_that_ended_before_it_was_needed_is_not_used() -> None:
    """It's released, and the next one that was started ahead is taken."""
    async with trio.open_nursery() as nursery:
        target = CountedTarget(nursery)
        first = await target.open()
        await wait_all_tasks_blocked()
        [(waiting, release)] = target._ready
        waiting.returncode = 1
        second = await target.open()
        assert second._child not in (waiting, first._child)
        assert release.is_set()
        await wait_all_tasks_blocked()
        [(waiting, _)] = target._ready
        third = await target.open()
        assert third._child is waiting
        third._child.returncode = -9
        await third.aclose()
        assert third.exit_status == -9
        nursery.cancel_scope.cancel()


async def test_session_follows_another_and_a_fresh_one_stands_alone() -> None:
    async with trio.open_nursery() as nursery:
        target = CountedTarget(nursery)
        session = await target.open(keep=True)
        after, alone = await session.successor(), await session.fresh()
        assert session.ended == "the client has reconnected"
        assert after.lines is session.lines
        assert (after.number, alone.number, alone.lines) == (2, 1, None)
        plain = await (await target.open()).successor()
        assert plain.lines is None
        nursery.cancel_scope.cancel()
