"""The display of a running bench: a histogram, a line of state, and a note on a busy machine."""

from __future__ import annotations

import io
import os
import time
from collections import Counter
from typing import Any

import pytest
from rich.console import Console

from mcp_trio.cli.oracle import _bench_table
from mcp_trio.cli.oracle._bench_table import BenchDisplay, histogram_lines
from mcp_trio.oracle.bench._turn import BenchTurn, Pace
from mcp_trio.oracle.bench.report._report import format_seconds
from mcp_trio.oracle.bench.report._run import BenchRow, BenchRun


def measured(*latencies: float, name: str = "ours", turns: int = 1) -> BenchRow:
    """Return a row whose turns have these latencies each."""
    row = BenchRow(name, Pace(None, 1), length=2.0)
    for _ in range(turns):
        turn = BenchTurn(errors=Counter({"HTTP 503": 1}))
        turn.histogram.add_all(latencies)
        row.add(turn)
    return row


def run_of(*rows: BenchRow) -> BenchRun:
    return BenchRun(loads={}, works={}, seconds=10.0, seed=1, rows=list(rows))


class ScreenOfBench:
    """stderr, with what was written to it. With a width it is a terminal."""

    def __init__(self, width: int = 0) -> None:
        self.terminal = width > 0
        self.lines: list[str] = []
        self.file = io.StringIO()
        self.console = Console(
            file=self.file, force_terminal=True, width=width, height=60, color_system=None
        )

    def write_line(self, *parts: str | tuple[str, str]) -> None:
        self.lines.append("".join(each if isinstance(each, str) else each[0] for each in parts))

    def width(self, default: int) -> int:
        return self.console.width


@pytest.fixture
def _idle(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "getloadavg", lambda: (0.0, 0.0, 0.0), raising=False)


def test_histogram_has_a_bar_of_forty_characters_for_the_most() -> None:
    lines = histogram_lines(measured(*[0.001] * 4, *[0.1] * 2))
    assert len(lines) == 10
    assert lines[0].split()[-2:] == ["█" * 40, "4"]
    assert lines[-1].split()[-2:] == ["█" * 20, "2"]
    assert {line.index("█") for line in lines if "█" in line} == {9}
    assert [lines[place].split()[0] for place in (0, 5)] == ["0.99ms", "9.98ms"]
    assert [line[9:] for line in lines[1:-1]] == [f"{'':40} 0"] * 8


def test_histogram_of_nothing_has_no_lines() -> None:
    assert histogram_lines(measured()) == []


@pytest.mark.usefixtures("_idle")
def test_state_is_written_every_thirty_seconds_without_a_terminal(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """It has the time that was measured, the median, and what has failed."""
    now = 100.0
    monkeypatch.setattr(time, "monotonic", lambda: now)
    screen: Any = ScreenOfBench()
    display = BenchDisplay(screen)
    row = measured(*(number / 1_000 for number in range(1, 101)), turns=2)
    counts = []
    with display.shown():
        for now in (129.9, 130.0, 159.9, 160.0, 160.0):  # noqa: B007 - `monotonic` reads it
            display.update(run_of(row), row)
            counts.append(len(screen.lines))
    assert counts == [0, 1, 1, 2, 2]
    p50, p99 = (format_seconds(row.total.histogram.percentile(each)) for each in (50, 99))
    assert p50 < p99
    text = f"ours, 1 caller: 4 of 10 s, p50 {p50}, p99 {p99}, 2 failed"
    assert screen.lines == [text, text]


@pytest.mark.usefixtures("_idle")
def test_state_of_a_row_without_responses_has_no_latencies() -> None:
    row = measured()
    assert "p50 -, p99 -, 1 failed" in _bench_table._state(run_of(row), row)


@pytest.mark.usefixtures("_idle")
def test_terminal_shows_the_last_rows_and_is_left_empty() -> None:
    """Twenty rows of a long run, then the row that was called last, until the run ends."""
    screen: Any = ScreenOfBench(100)
    display = BenchDisplay(screen)
    rows = [measured(0.001, name=f"row{number}") for number in range(22)]
    with display.shown():
        display.update(run_of(*rows), rows[-1])
        shown = screen.file.getvalue()
    assert "row1 " not in shown
    assert "row2 " in shown
    assert "row21" in shown
    assert "row21, 1 caller: 2 of 10 s" in shown
    assert "█" * 40 in shown
    ended = screen.file.getvalue()
    assert ended[len(shown) :].count("\x1b[2K") >= shown.count("\n")  # each line is erased
    display.update(run_of(*rows), rows[-1])
    assert (screen.file.getvalue(), screen.lines) == (ended, [])


def test_terminal_that_is_narrow_cuts_lines(monkeypatch: pytest.MonkeyPatch) -> None:
    """A folded line would move the rest of the display at each update."""
    monkeypatch.setattr(os, "getloadavg", lambda: (0.0, 0.0, 0.0), raising=False)
    screen: Any = ScreenOfBench(30)
    display = BenchDisplay(screen)
    row = measured(0.001)
    with display.shown():
        display.update(run_of(row), row)
        shown = screen.file.getvalue()
    assert "2 of 10 s" in shown
    assert "failed" not in shown


@pytest.mark.parametrize(
    ("load", "processors", "notes"),
    [
        (2.0, 2, []),
        (2.6, 2, ["note: this machine is busy (load average 3, 2 processors): figures vary more"]),
        (1.2, None, ["note: this machine is busy (load average 1, 1 processors): figures vary"]),
        (None, 2, []),
    ],
)
def test_machine_that_is_busy_is_noted_first(
    load: float | None, processors: int | None, notes: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def average() -> tuple[float, ...]:
        if load is None:
            raise OSError
        return load, 0.0, 0.0

    monkeypatch.setattr(os, "getloadavg", average, raising=False)
    monkeypatch.setattr(os, "cpu_count", lambda: processors)
    screen: Any = ScreenOfBench()
    with BenchDisplay(screen).shown():
        found = list(screen.lines)
    assert len(found) == len(notes)
    assert all(line.startswith(note) for line, note in zip(found, notes, strict=True))
