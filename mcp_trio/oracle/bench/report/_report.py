"""The report of a run: remarks, a table as text or Markdown, one JSON document, JUnit."""

from __future__ import annotations

import os
import platform
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from math import inf
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from mcp_core import __version__, escape_text
from mcp_trio.oracle._junit import attribute, junit_case, junit_suite
from mcp_trio.oracle.bench._histogram import SPECTRUM
from mcp_trio.oracle.bench._schedule import ROUNDING

from ._ratios import Ratio, latency_ratio, rate_ratio
from ._thresholds import percentile_of

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from mcp_trio.oracle.bench._turn import BenchTurn

    from ._run import BenchRow, TargetEnd
    from ._thresholds import Threshold

__all__ = [
    "COLUMNS",
    "BenchReport",
    "TargetComparison",
    "ThresholdVerdict",
    "document_head",
    "format_seconds",
    "markdown",
    "pace_text",
    "rate_text",
    "sparkline",
    "table",
]

_FORM: Final = 1
_BARS: Final = "▁▂▃▄▅▆▇█"
_SPARKS: Final = 10  # characters of a sparkline
_MAX_NAME: Final = 24
_STDERR_LINES: Final = 5
_MAX_CAUSES: Final = 5
_DRAIN: Final = 0.1  # of the time until a caller may call again
_MARKDOWN: Final = re.compile(r"[\\|\[\]!*_`]")


class TargetComparison(NamedTuple):
    """How the best target at one pace compares with another one.

    `by` is "p50", where the ratio is how many times faster the best is, "rate", or "kept": the
    highest rate that a search has found.
    """

    row: BenchRow
    other: BenchRow
    by: str
    ratio: Ratio


class ThresholdVerdict(NamedTuple):
    """Whether a row meets a threshold."""

    row: BenchRow
    threshold: Threshold
    is_met: bool


def document_head() -> dict[str, Any]:
    """Return the first members of each JSON document of a bench."""
    return {
        "form": _FORM,
        "mcp_trio": __version__,
        "machine": {
            "python": platform.python_version(),
            "system": platform.platform(),
            "processors": os.cpu_count(),
        },
    }


@dataclass(kw_only=True)
class BenchReport:
    """A run as it is reported.

    Attributes:
        rows: what was measured.
        tried: the rows of a search.
        thresholds: what each row must meet.
        settings: how the run was made, as JSON values.
        targets: what is known about each target, as JSON values.
        limit: the limit of a search, in seconds; None without one.
        missing: the targets that had no connection, and why.
        problem: why the run isn't complete; "" if it is.
    """

    rows: Sequence[BenchRow]
    tried: Sequence[BenchRow] = ()
    thresholds: Sequence[Threshold] = ()
    settings: dict[str, Any] = field(default_factory=dict)
    targets: Sequence[dict[str, Any]] = ()
    limit: float | None = None
    missing: Mapping[str, TargetEnd] = field(default_factory=dict)
    problem: str = ""

    @property
    def measured(self) -> list[BenchRow]:
        """The rows with at least one turn."""
        return [row for row in self.rows if row.turns]

    def verdicts(self) -> list[ThresholdVerdict]:
        """Return whether each row that was measured meets each threshold."""
        return [
            ThresholdVerdict(row, each, each.is_met(row.total))
            for row in self.measured
            for each in self.thresholds
        ]

    @cached_property
    def comparisons(self) -> list[TargetComparison]:
        """How the best target at each pace compares with each other one.

        Latencies at a rate that a target can't keep aren't compared: they grow with the run.
        """
        rows = [row for row in self.measured if not row.failed_all]
        if self.limit is not None:
            return _compare(
                [row for row in rows if row.keeps(self.limit)],
                "kept",
                lambda row: -(row.pace.rate or 0),
                lambda best, row: _exact((best.pace.rate or 0) / (row.pace.rate or 1)),
            )
        found = []
        for pace in dict.fromkeys(row.pace for row in rows):
            same = [row for row in rows if row.pace == pace]
            found += _compare(
                [row for row in same if not row.is_behind],
                "p50",
                lambda row: row.total.histogram.percentile(50),
                lambda best, row: latency_ratio(best.whole_turns, row.whole_turns),
            )
            slow = [row for row in same if row.is_behind or pace.rate is None]
            fastest = max(same, key=lambda row: row.total.rate)
            found += _compare(
                [fastest, *(row for row in slow if row is not fastest)],
                "rate",
                lambda row: -row.total.rate,
                lambda best, row: rate_ratio(best.whole_turns, row.whole_turns),
            )
        return found

    def remarks(self, row: BenchRow) -> list[str]:
        """Return what must be known to read a row's figures: a sentence each."""
        total = row.total
        found = []
        if self.limit is not None:
            if row.keeps(self.limit):
                found.append(f"keeps {rate_text(row)} with p99 below {format_seconds(self.limit)}")
            elif row.turns:
                found.append(
                    f"keeps no rate with p99 below {format_seconds(self.limit)}: the lowest one"
                    f" tried was {rate_text(row)}"
                )
        if row.search_end is not None:
            found.append(
                f"the search ended at {number_text(row.search_end)}/s because the load itself was"
                " the limit; the target may keep more"
            )
        if row.is_silent:
            found.append(
                f"nothing was answered in a turn of {format_seconds(row.turns[-1].seconds)}: this"
                " pace was not measured further"
            )
        if row.is_behind:
            found.append(f"cannot keep {rate_text(row)}: sustained {number_text(total.rate)}/s")
        if row.is_client_bound:
            busy = total.load_cpu / (total.seconds * row.processes)
            found.append(
                f"client-bound: the load itself was busy for {busy:.0%} of the time, so the target"
                " may be faster than shown; --processes 2 measures with two, at a URL"
            )
        if row.halves is not None:
            show = (
                (lambda value: f"{number_text(value)}/s")
                if row.pace.rate is None
                else format_seconds
            )
            first, second = map(show, row.halves)
            what = "rate" if row.pace.rate is None else "p50"
            found.append(
                f"the halves of the run differ: {what} {first}, then {second}; measure for longer"
            )
        found += _turn_remarks(row)
        if row.on_slow_machine:
            found.append("this machine was slow meanwhile: other programs took its time")
        if row.failed_all:
            found.append(_failure_text(row))
        elif total.errors:
            found.append(f"errors: {_causes(row)}")
        if row.end is not None:
            found.append(_end_text(row.end))
        return found

    def document(self) -> dict[str, Any]:
        """Return the whole report as JSON values. Times are in seconds where no unit is named."""
        limit = inf if self.limit is None else self.limit
        tried = [_tried_document(row, limit) for row in self.tried]
        return {
            **document_head(),
            **self.settings,
            "problem": self.problem or None,
            "missing": {name: end.reason for name, end in self.missing.items()},
            "targets": list(self.targets),
            "rows": [self._row_document(row) for row in self.rows],
            **({"tried": tried} if tried else {}),
            "ratios": [
                {
                    "pace": _pace_document(each.row),
                    "target": each.row.target,
                    "other": each.other.target,
                    "by": each.by,
                    "times": each.ratio.value,
                    "low": each.ratio.low,
                    "high": each.ratio.high,
                    "at_least": each.row.is_client_bound,
                    "marks": {row.target: _doubts(row) for row in (each.row, each.other)},
                }
                for each in self.comparisons
            ],
        }

    def _row_document(self, row: BenchRow) -> dict[str, Any]:
        total = row.total
        histogram = total.histogram
        return {
            "target": row.target,
            "pace": _pace_document(row),
            "turns": len(row.turns),
            "processes": row.processes,
            "percentiles": {
                f"{each:g}": histogram.percentile(each) if histogram.count else None
                for each in SPECTRUM
            },
            "mean": histogram.mean if histogram.count else None,
            "measured": total.to_json(),
            "behind": row.is_behind,
            "client_bound": row.is_client_bound,
            "halves": row.halves,
            "on_slow_machine": row.on_slow_machine,
            "search_end": row.search_end,
            "end": None
            if row.end is None
            else {
                "reason": row.end.reason,
                "status": row.end.status,
                "stderr": list(row.end.stderr),
            },
            "thresholds": [
                {"threshold": each.text, "value": _json_number(each.value(total)), "met": met}
                for _, each, met in self.verdicts()
                if _ is row
            ],
            "remarks": self.remarks(row),
        }

    def junit(self) -> str:
        """Return a JUnit report: a test for each row, and one for each of its thresholds."""
        cases = []
        failures = 0
        for row in self.rows:
            name = f"{row.target} {pace_text(row)}"
            failure = ""
            if row.end is not None:
                failure = _end_text(row.end)
            elif row.failed_all:
                failure = _failure_text(row)
            elif not row.turns:
                failure = "it was not measured"
            cases.append(_junit_case(f"{name} answers", failure))
            failures += bool(failure)
            for verdict in self.verdicts():
                if verdict.row is not row:
                    continue
                failure = "" if verdict.is_met else missed_text(verdict)
                cases.append(_junit_case(f"{name}: {verdict.threshold.text}", failure))
                failures += bool(failure)
        for name, end in self.missing.items():
            cases.append(_junit_case(f"{name} answers", end.reason))
            failures += 1
        return junit_suite(
            "mcp-trio bench",
            "".join(cases),
            len(cases),
            failures,
            self.problem,
            wanted="the run was complete",
        )


def _compare(
    rows: Sequence[BenchRow],
    by: str,
    order: Callable[[BenchRow], float],
    compare: Callable[[BenchRow, BenchRow], Ratio | None],
) -> list[TargetComparison]:
    """Return how the first of the rows, in this order, compares with each other one."""
    if len(rows) < 2:
        return []
    best = min(rows, key=order)
    pairs = [(row, compare(best, row)) for row in rows if row is not best]
    return [TargetComparison(best, row, by, ratio) for row, ratio in pairs if ratio is not None]


def _exact(value: float) -> Ratio:
    return Ratio(value, value, value)


def _pace_document(row: BenchRow) -> dict[str, Any]:
    return {
        "rate": row.pace.rate,
        "concurrency": row.pace.concurrency,
        "even": row.pace.even,
    }


def _tried_document(row: BenchRow, limit: float) -> dict[str, Any]:
    total = row.total
    return {
        "target": row.target,
        "rate": row.pace.rate,
        "answered_rate": total.rate,
        "p99": _json_number(percentile_of(total, 99, missing=total.failed)),
        "kept": row.keeps(limit),
        "limited_by_load": row.is_limited_by_load(limit),
        "behind": row.is_behind,
        "failed": total.failed,
        "sent": total.sent,
    }


def _json_number(value: float) -> float | None:
    """Return a number, or None for what JSON can't write: it wasn't measured, or is infinite."""
    return value if -1e308 < value < 1e308 else None


def _junit_case(name: str, failure: str) -> str:
    return junit_case(name, f"<failure message={attribute(failure)}/>" if failure else "")


def missed_text(verdict: ThresholdVerdict) -> str:
    """Return a sentence about a threshold that wasn't met."""
    value = verdict.threshold.value(verdict.row.total)
    shown = _value_text(verdict.threshold, value)
    return f"{verdict.threshold.text} is missed: {shown}"


def _value_text(threshold: Threshold, value: float) -> str:
    if value != value:
        return "nothing was measured"
    if threshold.is_share:
        return f"{value:.3%}"
    if threshold.name == "rate":
        return f"{number_text(value)}/s"
    if threshold.name == "memory":
        return memory_text(value)
    if threshold.name in ("errors", "timeouts", "late", "sent", "answered"):
        return f"{value:,.0f}"
    return "more calls than that failed" if value == float("inf") else format_seconds(value)


def _causes(row: BenchRow) -> str:
    causes = [f"{_count(count, 'time')} {name}" for name, count in row.total.errors.most_common()]
    if row.total.timeouts:
        causes.append(f"{row.total.timeouts:,} timed out")
    more = len(causes) - _MAX_CAUSES
    shown = causes[:_MAX_CAUSES] + ([f"and {_count(more, 'other cause')}"] if more > 0 else [])
    return escape_text(", ".join(shown))


def _failure_text(row: BenchRow) -> str:
    if row.total.is_cut and not row.total.sent:
        return "no call was answered before the run was interrupted"
    if not row.total.sent:
        return "no call was made: this machine was too busy, or none was due; measure for longer"
    return f"no call was answered without an error: {_causes(row)}"


def _turn_remarks(row: BenchRow) -> list[str]:
    """Return what the calls of a row show beside their outcome: a sentence each."""
    total = row.total
    found = []
    if total.is_cut:
        found.append(_cut_text(row.turns[-1]))
    if total.stray_lines:
        found.append(
            f"{_count(total.stray_lines, 'line')} of its stdout"
            f" {'was' if total.stray_lines == 1 else 'were'} not MCP: a log belongs on stderr,"
            " and other clients may end the connection"
        )
    if total.drain > _DRAIN * (total.histogram.mean + total.drain):
        found.append(
            "after its response a call's event stream stayed open for"
            f" {format_seconds(total.drain)} on average, in which its caller could not call"
            " again: no latency shows this time, but the rate of a closed loop does"
        )
    if total.lag > ROUNDING:
        found.append(
            f"the load itself started calls {format_seconds(total.lag)} late on average:"
            f" latencies include it, but for {format_seconds(ROUNDING)} of each call; this"
            " machine is too busy for this rate"
        )
    return found


def _cut_text(turn: BenchTurn) -> str:
    count = turn.unfinished
    verb = "is" if count == 1 else "are"
    open_calls = f", and {_count(count, 'call')} without a response {verb} not counted"
    return (
        f"the last turn was cut after {format_seconds(turn.seconds)}{open_calls if count else ''}"
    )


def _count(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'s' if number != 1 else ''}"


def _end_text(end: TargetEnd) -> str:
    status = end.status
    found = end.reason
    is_said = f"status {status}" in found or f"signal {-(status or 0)}" in found
    if status is not None and not is_said:
        found += f" (exit status {status})"
    lines = [line for line in end.stderr if line.strip()][-_STDERR_LINES:]
    return found + "".join(f"\n{line}" for line in lines)


# -- Text ------------------------------------------------------------------------------------------


def format_seconds(seconds: float) -> str:
    """Return a time with three digits and its unit, such as `0.21ms`."""
    if seconds == float("inf"):
        return "never"
    if seconds >= 1:
        return f"{_digits(seconds)}s"
    return f"{_digits(seconds * 1e3)}ms"


def _digits(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 else f"{value:.1f}" if value >= 10 else f"{value:.2f}"


def number_text(value: float) -> str:
    """Return a number with the separators of thousands, and decimals only if it is small."""
    return f"{value:,.0f}" if value >= 10 or value == int(value) else f"{value:.1f}"


def memory_text(value: float) -> str:
    """Return bytes as MB."""
    return f"{value / 1e6:,.0f}MB"


def rate_text(row: BenchRow) -> str:
    """Return a row's rate, such as `1,000/s`."""
    return f"{number_text(row.pace.rate or 0)}/s"


def pace_text(row: BenchRow) -> str:
    """Return a row's pace: `1,000/s`, or the number of callers of a closed loop."""
    if row.pace.rate is not None:
        return rate_text(row)
    callers = row.pace.concurrency
    return f"{callers:,} caller{'s' if callers != 1 else ''}"


def sparkline(counts: Sequence[int], width: int = _SPARKS) -> str:
    """Return a picture of counts, of `width` characters at most. Zero is a space."""
    width = min(width, len(counts))
    if not width or not max(counts):
        return ""
    steps = [
        sum(part) / len(part)
        for place in range(width)
        if (part := counts[place * len(counts) // width : (place + 1) * len(counts) // width])
    ]
    most = max(steps)
    return "".join(
        _BARS[min(int(each / most * len(_BARS)), len(_BARS) - 1)] if each else " " for each in steps
    )


class TableColumn(NamedTuple):
    """A column. The higher its `rank`, the sooner it is left out of a narrow terminal."""

    title: str
    rank: int = 0


COLUMNS: Final = (
    TableColumn("target"),
    TableColumn("pace"),
    TableColumn("sent", 3),
    TableColumn("late", 4),
    TableColumn("errors"),
    TableColumn("timeouts", 1),
    TableColumn("rate", 2),
    TableColumn("p50"),
    TableColumn("p90", 6),
    TableColumn("p99"),
    TableColumn("p99.9", 5),
    TableColumn("max", 2),
    TableColumn("cpu/call", 4),
    TableColumn("memory", 5),
    TableColumn("", 7),  # the sparkline
)


def _cells(row: BenchRow) -> list[str]:
    total = row.total
    histogram = total.histogram
    times = [format_seconds(histogram.percentile(each)) for each in (50, 90, 99, 99.9, 100)]
    if not histogram.count:
        times = ["-"] * len(times)
    cpu = total.target_cpu
    return [
        _short(row.target),
        pace_text(row),
        f"{total.sent:,}",
        f"{total.late:,}" if row.pace.rate is not None else "-",
        f"{total.errors.total():,}",
        f"{total.timeouts:,}",
        f"{number_text(total.rate)}/s",
        *times,
        f"{cpu / total.sent * 1e6:,.0f}us" if cpu is not None and total.sent else "-",
        memory_text(total.memory) if total.memory is not None else "-",
        sparkline(row.tenths),
    ]


def _short(name: str) -> str:
    shown = escape_text(name)
    return shown if len(shown) <= _MAX_NAME else f"{shown[: _MAX_NAME - 3]}..."


def _marks(row: BenchRow) -> str:
    """Return the words that stand in a row whose figures aren't what they seem."""
    marks = (
        ("client-bound", row.is_client_bound),
        ("behind", row.is_behind),
        ("halves differ", row.halves is not None),
        ("ended", row.end is not None),
        ("cut", row.total.is_cut),
    )
    return ", ".join(word for word, holds in marks if holds)


def table(rows: Sequence[BenchRow], width: int = 1000) -> list[str]:
    """Return the lines of a table, the titles first. Columns are left out to fit into `width`."""
    shown = [[column.title for column in COLUMNS], *map(_cells, rows)]
    marks = ["", *map(_marks, rows)]
    chosen = list(range(len(COLUMNS)))
    if len({row.target for row in rows}) == 1:
        chosen.remove(0)
    widths = [max(len(line[place]) for line in shown) for place in range(len(COLUMNS))]
    widest = max(map(len, marks))
    while (
        sum(widths[place] + 2 for place in chosen) + widest > width
        and (worst := max(chosen, key=lambda place: COLUMNS[place].rank))
        and COLUMNS[worst].rank
    ):
        chosen.remove(worst)
    return [
        "  ".join(
            [
                *(
                    line[place].ljust(widths[place])
                    if place in (0, len(COLUMNS) - 1)
                    else line[place].rjust(widths[place])
                    for place in chosen
                ),
                mark,
            ]
        ).rstrip()
        for line, mark in zip(shown, marks, strict=True)
    ]


def comparison_text(each: TargetComparison) -> str:
    """Return a sentence about two targets."""
    ratio = each.ratio
    low, high = (f"{value:.2f}" for value in (ratio.low, ratio.high))
    interval = f" ({low} to {high})" if low != high else ""
    bound = "at least " if each.row.is_client_bound else ""
    times = f"{bound}{ratio.value:.2f} times{interval}"
    first, other = escape_text(each.row.target), escape_text(each.other.target)
    pace = pace_text(each.row)
    doubts = "; ".join(
        f"{name}: {', '.join(words)}"
        for name, words in ((first, _doubts(each.row)), (other, _doubts(each.other)))
        if words
    )
    marks = f" ({doubts})" if doubts else ""
    match each.by:
        case "p50":
            return f"{pace}: {first} is {times} faster than {other} at p50{marks}"
        case "rate":
            return f"{pace}: {first} answers {times} as many calls a second as {other}{marks}"
        case _:
            return f"{first} keeps {times} the rate of {other}{marks}"


def _doubts(row: BenchRow) -> list[str]:
    """Return why a ratio with this row's figures may be wrong."""
    doubts = (
        ("errors", row.total.failed > 0),
        ("client-bound", row.is_client_bound or row.search_end is not None),
        ("halves differ", row.halves is not None),
        ("slow machine", row.on_slow_machine),
    )
    return [word for word, holds in doubts if holds]


def load_text(rows: Sequence[BenchRow]) -> str:
    """Return what a call costs the load itself; empty if it was too little to be measured."""
    calls = sum(row.total.sent for row in rows)
    cpu = sum(row.total.load_cpu for row in rows)
    if not calls or cpu <= 0:
        return ""
    return f"the load alone: {cpu / calls * 1e6:,.0f}us a call, {number_text(calls / cpu)} calls/s"


def markdown(report: BenchReport) -> str:
    """Return the table and the remarks as Markdown."""
    titles = [column.title or "over time" for column in COLUMNS]
    lines = [titles, [":--" if place in (0, 14) else "--:" for place in range(len(titles))]]
    lines += [_cells(row) for row in report.rows]
    text = "".join(f"| {' | '.join(map(_markdown_cell, line))} |\n" for line in lines)
    notes = [f"{_row_name(row)}: {each}" for row in report.rows for each in report.remarks(row)]
    notes += [comparison_text(each) for each in report.comparisons]
    notes += [
        f"{_row_name(each.row)}: {missed_text(each)}"
        for each in report.verdicts()
        if not each.is_met
    ]
    notes += [
        f"{escape_text(name)} was not measured: {_end_text(end)}"
        for name, end in report.missing.items()
    ]
    notes += [report.problem] if report.problem else []
    shown = "".join(map(_markdown_item, notes))
    return text + (f"\n{shown}" if shown else "")


def _markdown_item(text: str) -> str:
    """Return an item for a text. Its further lines, such as a server's stderr, are items in it."""
    first, *more = text.splitlines() or [""]
    lines = [f"- {_markdown_cell(first)}", *(f"  - {_markdown_cell(line)}" for line in more)]
    return "".join(f"{line}\n" for line in lines)


def _markdown_cell(text: str) -> str:
    """Return a text in which nothing is Markdown: no link, image, emphasis, code, tag or column."""
    text = _MARKDOWN.sub(r"\\\g<0>", text.replace("\n", " "))
    return text.replace("&", "&amp;").replace("<", "&lt;")


def _row_name(row: BenchRow) -> str:
    return f"{escape_text(row.target)} {pace_text(row)}"
