"""The display of a running bench: a live table and a histogram, or lines without a terminal."""

from __future__ import annotations

import os
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

from mcp_trio.oracle.bench.report._report import format_seconds, pace_text, table

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rich.live import Live

    from mcp_trio.cli._screen import Screen
    from mcp_trio.oracle.bench.report._run import BenchRow, BenchRun

__all__ = ["BenchDisplay", "histogram_lines"]

_LINE_INTERVAL: Final = 30.0  # seconds between two lines without a terminal
_STEPS: Final = 10  # of the histogram
_MAX_BAR: Final = 40  # characters
_MAX_ROWS: Final = 20  # the last ones are shown


class BenchDisplay:
    """Shows a run while it goes on. Nothing is left of it at the end."""

    def __init__(self, stderr: Screen) -> None:
        self._stderr = stderr
        self._live: Live | None = None
        self._last_line = time.monotonic()

    @contextmanager
    def shown(self) -> Iterator[None]:
        """Show the table for the block's duration, on a terminal, and a note first if needed."""
        if note := _busy_note():
            self._stderr.write_line(("note: ", "yellow"), note)
        if not self._stderr.terminal:
            yield
            return
        from rich.live import Live

        with Live(console=self._stderr.console, transient=True, auto_refresh=False) as self._live:
            yield
        self._live = None

    def update(self, run: BenchRun, row: BenchRow) -> None:
        """Show a run after a turn of `row`."""
        if self._live is not None:
            from rich.text import Text

            lines = table(run.rows[-_MAX_ROWS:], self._stderr.width(80))
            lines += ["", *histogram_lines(row), "", _state(run, row)]
            self._live.update(Text("\n".join(lines), no_wrap=True), refresh=True)
        elif time.monotonic() - self._last_line >= _LINE_INTERVAL:
            self._last_line = time.monotonic()
            self._stderr.write_line(_state(run, row))


def _busy_note() -> str:
    """Return a sentence if other programs already take this machine's time, as far as it says."""
    try:
        load = os.getloadavg()[0]
    except (AttributeError, OSError):  # Windows has none
        return ""
    processors = os.cpu_count() or 1
    if load <= processors:
        return ""
    return (
        f"this machine is busy (load average {load:.0f}, {processors} processors): figures vary"
        " more than usual, and ratios are better than times"
    )


def _state(run: BenchRun, row: BenchRow) -> str:
    seconds = len(row.turns) * row.length
    histogram = row.total.histogram
    p50, p99 = (
        format_seconds(histogram.percentile(each)) if histogram.count else "-" for each in (50, 99)
    )
    return (
        f"{row.target}, {pace_text(row)}: {seconds:.0f} of {run.seconds:g} s, p50 {p50}, p99 {p99},"
        f" {row.total.failed:,} failed"
    )


def histogram_lines(row: BenchRow) -> list[str]:
    """Return the histogram of a row's latencies: a bar for each step of their logarithm."""
    histogram = row.total.histogram
    bars = histogram.bars(_STEPS)
    most = max(bars)
    if not most:
        return []
    buckets = histogram.buckets()
    low, high = buckets[0].low, buckets[-1].high
    return [
        f"{format_seconds(low * (high / low) ** (place / _STEPS)):>8} "
        f"{'█' * round(count / most * _MAX_BAR):{_MAX_BAR}} {count:,}"
        for place, count in enumerate(bars)
    ]
