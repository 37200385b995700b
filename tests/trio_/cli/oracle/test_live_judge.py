"""The judge of a conversation that is going on: the findings of its trace, and no effect on it."""

from __future__ import annotations

import json
import os
import threading
import time
from typing import TYPE_CHECKING

import pytest

from mcp_core.adapters import _stderr_copy
from mcp_core.trace import Finding, Judge, TraceHeader, TraceLine
from mcp_trio.cli import main
from mcp_trio.cli.oracle import _live_judge
from mcp_trio.cli.oracle._live_judge import LiveJudge
from mcp_trio.recording._open import open_recorder
from tests.core.trace.judge.conversations import C, S, Sent, Start, ask, result
from tests.harness.world.stuck_files import fill
from tests.harness.world.waiting import PATIENCE

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

HEADER = TraceHeader(format_version=1, observer="between", transport="stdio")
CLEAN = [*Start("2025-11-25").messages(), C(ask(1, "ping")), S(result(1))]
WRONG = [*CLEAN, S(result(1))]


def judged(said: list[Sent], *, is_complete: bool = True) -> int:
    judge = LiveJudge()
    judge.start(HEADER)
    judge.receive(TraceLine(t=0.0, kind="spawn", text="server"))
    for each in said:
        judge.receive(TraceLine(t=0.0, sender=each.sender, raw=json.dumps(each.message)))
    return judge.finish(is_complete=is_complete)


@pytest.mark.parametrize(("said", "status"), [(CLEAN, 0), (WRONG, 1), ([], 4), (CLEAN[:1], 4)])
def test_live_judge_status_says_whether_a_rule_is_broken(said: list[Sent], status: int) -> None:
    assert judged(said) == status


def test_live_judge_prints_findings_and_a_summary(capsys: pytest.CaptureFixture[str]) -> None:
    judged(WRONG)
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith("fail         MUST       server line 8  RPC-7  the request with the id 1")
    assert "mcp-trio: 6 messages: 1 failed, 0 inconclusive." in err


def test_live_judge_shows_a_bounded_number_of_findings(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(_live_judge, "_MAX_SHOWN", 2)
    assert judged([*WRONG, *[S(result(1))] * 5]) == 1
    err = capsys.readouterr().err
    assert err.count("RPC-7") == 2
    assert err.count("more findings are only counted") == 1
    assert "6 failed" in err


async def test_live_judge_finds_what_check_finds_in_the_file(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The same conversation, judged live and from its file, gives the same lines."""
    path = tmp_path / "a.mcp.jsonl"
    judge = LiveJudge()
    async with open_recorder(path, "between", "stdio", [], judge.receive) as recorder:
        assert recorder is not None
        judge.start(recorder.header)
        recorder.child(["server"])
        stream = recorder.stream()
        for each in [*WRONG, C({"jsonrpc": "2.0"}), S({"id": 5})]:
            data = json.dumps(each.message).encode() + b"\n"
            (stream.sent if each.sender == "client" else stream.received)(data)
        stream.received(b"junk\n\xff\n")
    assert judge.finish(is_complete=recorder.is_closed) == 1
    live = capsys.readouterr().err.splitlines()
    assert main(["check", str(path)]) == 1
    later = capsys.readouterr().out.splitlines()
    assert [*live[:-1], live[-1].removeprefix("mcp-trio: ")] == later
    assert len(later) > 6


def test_live_judge_of_half_a_trace_says_so(capsys: pytest.CaptureFixture[str]) -> None:
    assert judged(CLEAN, is_complete=False) == 4
    assert "the judge has not seen all of the conversation" in capsys.readouterr().err


def test_live_judge_that_cannot_keep_up_leaves_lines_out(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The queue is bounded, and findings that need the lost lines are inconclusive."""
    monkeypatch.setattr(_live_judge, "_MAX_QUEUED", 3_000)
    may_go_on = threading.Event()
    is_busy = threading.Event()
    original = Judge.receive

    def slow(self: Judge, line: TraceLine, number: int | None = None) -> list[Finding]:
        is_busy.set()
        assert may_go_on.wait(PATIENCE)
        return original(self, line, number)

    monkeypatch.setattr(Judge, "receive", slow)
    judge = LiveJudge()
    judge.start(HEADER)
    lines = [TraceLine(t=0.0, sender="client", raw="{}") for _ in range(11)]
    judge.receive(lines[0])
    assert is_busy.wait(PATIENCE)
    for line in lines[1:]:
        judge.receive(line)  # does not wait
    may_go_on.set()
    while judge.report.findings[-1:] == [] or judge.report.findings[-1].lines[0] < 4:
        time.sleep(0.01)
    judge.receive(TraceLine(t=0.0, sender="client", raw=json.dumps(ask(5, "tools/list"))))
    judge.finish(is_complete=True)
    err = capsys.readouterr().err
    assert "mcp-trio: 8 lines came too fast for the judge" in err
    assert "line 13" in err
    assert {each.is_certain for each in judge.report.findings if each.lines[0] == 13} == {False}


def test_live_judge_queue_takes_lines_up_to_its_limit_and_counts_the_others(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A gap stands where the lines are missing. A line above the limit alone is taken."""
    monkeypatch.setattr(_live_judge, "_MAX_QUEUED", 3_000)
    judge = LiveJudge()  # its thread isn't started
    for size in (500, 500, 0, 0, 0):
        judge.receive(TraceLine(t=0.0, sender="client", raw="x" * size))
    judge._taken_bytes += 1_500  # as if the thread had taken the first line
    judge.receive(TraceLine(t=0.0, sender="client", data=b"x" * 500))
    judge._taken_bytes += 3_000
    judge.receive(TraceLine(t=0.0, sender="client", raw="x" * 3_000))
    judge.receive(TraceLine(t=0.0, sender="client"))
    judge._taken_bytes += 4_000
    judge.receive(TraceLine(t=0.0, sender="client"))
    assert [(line.kind, line.count, number, size) for line, number, size in judge._queue] == [
        (None, None, 2, 1_500),
        (None, None, 3, 1_500),
        ("lost", 3, 6, 0),
        (None, None, 7, 1_500),
        (None, None, 8, 4_000),
        ("lost", 1, 9, 0),
        (None, None, 10, 1_000),
    ]


def test_live_judge_says_why_nothing_was_judged(capsys: pytest.CaptureFixture[str]) -> None:
    judged(CLEAN)
    assert "nothing was judged" not in capsys.readouterr().err
    judged([])
    assert "mcp-trio: nothing was judged: " in capsys.readouterr().err


def test_live_judge_waits_five_seconds_at_the_end(monkeypatch: pytest.MonkeyPatch) -> None:
    judge = LiveJudge()
    waits: list[float | None] = []
    monkeypatch.setattr(judge._thread, "join", waits.append)
    judge.finish(is_complete=True)
    assert waits == [5.0]


def test_live_judge_internal_error_is_logged_once(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def fail(*args: object) -> None:
        raise ZeroDivisionError

    monkeypatch.setattr(Judge, "receive", fail)
    assert judged(CLEAN) == 70
    assert caplog.messages == ["internal error of the judge: the rest is not judged"]


@pytest.mark.parametrize("has_room", [False, True])
@pytest.mark.parametrize("make", [os.pipe, os.openpty], ids=["pipe", "terminal"])
def test_live_judge_does_not_wait_for_a_blocked_stderr(
    monkeypatch: pytest.MonkeyPatch, make: Callable[[], tuple[int, int]], has_room: bool
) -> None:
    """A host that doesn't read a server's log must stop neither the judge nor the end.

    A terminal polls as writable though it takes less than a line.
    """
    monkeypatch.setattr(_stderr_copy, "_STALL_TIMEOUT", 0.01)
    reader, writer = make()
    with os.fdopen(writer, "w") as full, os.fdopen(reader, "rb", 0):
        fill(reader, writer, room=has_room)
        monkeypatch.setattr("sys.stderr", full)
        statuses: list[int] = []
        said = [*WRONG, *[S(result(1))] * 50]
        thread = threading.Thread(target=lambda: statuses.append(judged(said)), daemon=True)
        thread.start()
        thread.join(PATIENCE)
        assert statuses == [1]
