"""`mcp-trio check FILE`: judge the messages in a file by the specification's rules.

1. Findings with the verdict "fail" decide the exit status. Inconclusive findings are shown, and
   never count as faults. A side that says nothing wasn't judged, so it hasn't passed.
2. The file is read piece by piece, and the number of findings that are kept is bounded.
"""

from __future__ import annotations

import json
import sys
from contextlib import nullcontext
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, Final, Literal, TypeAlias

from msgspec import UNSET

from mcp_core.trace import (
    CHECKED_LEVELS,
    JUDGED_ROWS,
    ROWS,
    DamagedLine,
    EmptyTrace,
    InvalidTrace,
    Judge,
    LogReader,
)
from mcp_trio.cli._errors import MISUSE, NOTHING_JUDGED, CliError
from mcp_trio.cli._screen import Screen
from mcp_trio.oracle._junit import attribute, junit_case, junit_suite, row_name

from ._junit_file import write_junit

if TYPE_CHECKING:
    from collections import Counter
    from collections.abc import Iterator, Mapping
    from collections.abc import Set as AbstractSet
    from contextlib import AbstractContextManager

    from mcp_core.trace import Finding

__all__ = [
    "FOUND",
    "CheckLevel",
    "CheckReport",
    "CheckSide",
    "check",
    "fill_report",
    "show_finding",
    "show_status",
]

CheckLevel: TypeAlias = Literal["must", "should", "all"]
CheckSide: TypeAlias = Literal["client", "server", "both"]

FOUND: Final = 1
STDIN: Final = "-"
RECORD_AGAIN: Final = "record a conversation in which both sides speak"
_CHUNK: Final = 64 * 1024  # bytes
# The verdicts on a row, from the best to the worst. The user's options leave findings out.
_VERDICTS: Final = ("left out", "inconclusive", "fail")
_MAX_FINDINGS: Final = 10_000  # findings that are kept; further ones are only counted


def check(
    path: str,
    *,
    side: CheckSide = "both",
    level: CheckLevel = "should",
    as_json: bool = False,
    junit: str | None = None,
    baseline: str | None = None,
    rows: bool = False,
) -> int:
    """Judge the messages in the file `path`, print the findings, and return the exit status.

    Args:
        path: the file; `-` for standard input.
        side: judge this side only.
        level: findings of lower levels are left out.
        as_json: print one JSON document.
        junit: write a report in the format of JUnit to this file.
        baseline: a document of `as_json`: its findings are known, and are left out.
        rows: print every row with its verdict.

    Returns:
        0 if nothing was found, 1 if something was, 4 if there was nothing to judge.

    Raises:
        CliError: the file cannot be read, or has no messages.
    """
    known = _read_baseline(baseline) if baseline is not None else frozenset()
    report = CheckReport(path, known, side, level)
    try:
        fill_report(path, report)
    except Exception as exc:
        if junit is not None:  # in place of the report of an earlier trace
            is_ours = not isinstance(exc, CliError)
            report.unread = f"an internal error of mcp-trio: {exc!r}" if is_ours else str(exc)
            write_junit(junit, report.junit())
        raise
    if as_json:
        Screen(sys.stdout).write_json(report.document())
    else:
        report.show(Screen(sys.stdout), every_row=rows)
    if junit is not None:
        write_junit(junit, report.junit())
    return show_status(Screen(sys.stderr), report)


def show_status(stderr: Screen, report: CheckReport) -> int:
    """Return the exit status of a report, and print why it is 4 if there was nothing to judge."""
    if report.failed:
        return FOUND
    if report.unjudged:
        stderr.write_message(f"mcp-trio: nothing was judged: {report.unjudged}")
        return NOTHING_JUDGED
    return 0


def _count(number: int, word: str) -> str:
    return f"{number} {word if number == 1 else f'{word}s'}"


def fill_report(path: str, report: CheckReport) -> None:
    """Judge the messages in the file `path`, and add the findings to `report`.

    Raises:
        CliError: the file cannot be read, or has no messages.
    """
    try:
        with _open(path) as file:
            reader = LogReader()
            judge: Judge | None = None
            while True:
                data = file.read(_CHUNK)
                reader.feed(data)
                while (line := reader.next_line()) is not None:
                    judge = judge or Judge(reader.header)
                    if isinstance(line, DamagedLine):
                        report.add_damage(reader.line_number, line)
                    report.add(judge.receive(line, reader.line_number))
                if not data:
                    break
    except OSError as exc:
        raise CliError(f"{path}: {exc.strerror}", MISUSE) from exc
    except EmptyTrace:
        report.unread = f"{path} is empty; {RECORD_AGAIN}"
        return
    except InvalidTrace as exc:
        raise CliError(f"{path}: {exc}", MISUSE) from exc
    judge = judge or Judge(reader.header)
    report.add(judge.close())
    report.finish(judge)
    report.source = reader


def _open(path: str) -> AbstractContextManager[IO[bytes]]:
    """Open a file, or standard input for `-`."""
    return nullcontext(sys.stdin.buffer) if path == STDIN else Path(path).open("rb")


class CheckReport:
    """The findings of one trace that the options select.

    Args:
        path: the trace's file.
        known: row, side and sentence of findings to leave out.
        side: judge this side only.
        level: findings of lower levels are left out.

    Attributes:
        findings: those that were kept.
        failed, inconclusive, known: how many there are of each kind.
        damaged: how many lines cannot be read.
        messages: how many were judged; `messages_from` counts the messages from each side.
        unread: why the trace wasn't read; empty if it was.
        source: the reader of the file; None if messages come from a conversation.
        fuzzer: the side that has broken rules on purpose, and isn't judged. None in other traces.
        after_breach: the rows that the other side broke only after a breach of the fuzzer. They are
            neither failed nor passed.
    """

    def __init__(
        self, path: str, known: frozenset[tuple[str, str, str]], side: CheckSide, level: CheckLevel
    ) -> None:
        self.path = path
        self.findings: list[Finding] = []
        self.failed = 0
        self.inconclusive = 0
        self.known = 0
        self.damaged = 0  # lines
        self.messages = 0
        self.messages_from: Mapping[Literal["client", "server"], int] = {}
        self.unread = ""
        self.fuzzer: Literal["client", "server"] | None = None
        self.after_breach: AbstractSet[str] = frozenset()
        self.source: LogReader | None = None
        self._first_damage = ""
        self.opportunities: Counter[str] | dict[str, int] = {}
        # The worst verdict on each row that has a finding, even one that is left out.
        self._verdicts: dict[str, str] = {}
        self._known = known
        self._side = side
        self._level = level

    def add(self, findings: list[Finding]) -> list[Finding]:
        """Add the findings that are selected and not known, and return those that are kept."""
        before = len(self.findings)
        for each in findings:
            is_selected = self._side in ("both", each.side) and (
                self._level == "all"
                or each.level in CHECKED_LEVELS[self._level]
                # A fuzzer's advice, the finding of its trace. It is never certain.
                or each.level == "reading"
            )
            is_known = (each.row, each.side, each.sentence) in self._known
            verdict = _verdict(each) if is_selected and not is_known else "left out"
            if _VERDICTS.index(verdict) >= _VERDICTS.index(
                self._verdicts.get(each.row, "left out")
            ):
                self._verdicts[each.row] = verdict
            if not is_selected:
                continue
            if is_known:
                self.known += 1
                continue
            self.failed += each.is_certain
            self.inconclusive += not each.is_certain
            if len(self.findings) < _MAX_FINDINGS:
                self.findings.append(each)
        return self.findings[before:]

    def add_damage(self, number: int, line: DamagedLine) -> None:
        """Count a line that cannot be read."""
        self.damaged += 1
        self._first_damage = self._first_damage or f"line {number}: {line.reason}"

    def finish(self, judge: Judge) -> None:
        """Take the judge's totals."""
        self.messages = judge.messages
        self.messages_from = judge.messages_from
        self.opportunities = judge.opportunities
        self.fuzzer = judge.unjudged
        self.after_breach = judge.left_out - self._verdicts.keys()

    @property
    def unjudged(self) -> str:
        """Why a wanted side, or the whole trace, wasn't judged; empty if all were judged."""
        if self.unread:
            return self.unread
        sides: tuple[Literal["client", "server"], ...] = ("client", "server")
        if self._side != "both":
            sides = (self._side,)
        if self.fuzzer == self._side:
            other = "server" if self.fuzzer == "client" else "client"
            return f"{self.fuzzer_text}; judge the other side with --side {other}"
        if self.fuzzer is not None and not self._verdicts and not self.opportunities:
            return f"{self.fuzzer_text}; nothing that can be judged came before it"
        silent = [each for each in sides if not self.messages_from.get(each)]
        if not silent:
            return ""
        what = f"{self.path or 'the conversation'} has no message"
        if self.messages:
            other = "server" if silent[0] == "client" else "client"
            return (
                f"{what} of the {silent[0]}; {RECORD_AGAIN}, or judge the other side alone with"
                f" --side {other}"
            )
        cause = f"; the first line that cannot be read is {self._first_damage}"
        return f"{what}{cause if self.damaged else ''}; {RECORD_AGAIN}"

    @property
    def passed(self) -> list[str]:
        """The rows that had an opportunity and no finding."""
        other = self._verdicts.keys() | self.after_breach
        return [row for row in ROWS if self.opportunities.get(row) and row not in other]

    def document(self) -> dict[str, Any]:
        """Return the report as one JSON document, which is also a baseline."""
        return {
            "trace": self.path,
            "messages": self.messages,
            "failed": self.failed,
            "inconclusive": self.inconclusive,
            "known": self.known,
            "damaged": self.damaged,
            "unjudged": self.unjudged,
            "fuzzer": self.fuzzer,
            "after_breach": sorted(self.after_breach),
            "source": self._source_document(),
            "findings": [
                {
                    "row": each.row,
                    "verdict": _verdict(each),
                    "level": each.level,
                    "side": each.side,
                    "conversation": each.conversation,
                    "lines": list(each.lines),
                    "sentence": each.sentence,
                    "link": each.link,
                }
                for each in self.findings
            ],
            "opportunities": {row: self.opportunities[row] for row in sorted(self.opportunities)},
        }

    def _source_document(self) -> dict[str, Any]:
        source = self.source
        if source is None:
            return {}
        return {
            "kind": source.kind,
            "guessed": source.guessed,
            "unknown": source.unknown,
            "skipped": source.skipped,
        }

    @property
    def source_text(self) -> str:
        """How the file of another program was read, as one line; empty for a trace."""
        source = self.source
        if source is None or source.kind == "trace":
            return ""
        what = "JSON" if source.kind == "json" else "lines"
        parts = [f"read as {what} of another program: its transport and its times may be unknown"]
        if source.guessed:
            parts.append(
                f"who sent a message was guessed by its id or method for {source.guessed} of them"
            )
        if source.unknown:
            parts.append(
                f"{_count(source.unknown, 'message')} left out, which could be of either side or of"
                " another conversation"
            )
        if source.skipped:
            where = "object" if source.kind == "json" else "line"
            parts.append(f"{_count(source.skipped, where)} without a message skipped")
        return "; ".join(parts)

    @property
    def fuzzer_text(self) -> str:
        """The side that is a fuzzer, and how the other one is judged; empty for other traces."""
        header = self.source.header if self.source is not None else None
        has_finding = header is not None and header.finding is not UNSET
        if self.fuzzer is None:
            if header is None or (header.fuzzer is UNSET and not has_finding):
                return ""
            return (
                "the header speaks of a fuzzer that is not the observer, and is not believed: both"
                " sides are judged"
            )
        other = "server" if self.fuzzer == "client" else "client"
        after = (
            f"after its first breach the {other} is judged only by the row of this finding"
            if has_finding
            else f"after its first breach in a conversation the {other} is not judged either"
        )
        return f"the {self.fuzzer} is a fuzzer, and is not judged; {after}"

    def show(self, screen: Screen, *, every_row: bool) -> None:
        """Print the findings and a summary."""
        if self.fuzzer_text:
            screen.write_line(self.fuzzer_text)
        if self.source_text:
            screen.write_line(self.source_text)
        self.show_findings(screen)
        if every_row:
            self._show_rows(screen)
        screen.write_line(self.summary)

    @property
    def summary(self) -> str:
        """The totals, as one line."""
        known = f", {self.known} known" if self.known else ""
        lines = "line is" if self.damaged == 1 else "lines are"
        damaged = f". {self.damaged} {lines} damaged" if self.damaged else ""
        count = len(self.after_breach)
        after = f", {count} broken only after a breach of the fuzzer" if count else ""
        return (
            f"{_count(self.messages, 'message')}: {self.failed} failed, {self.inconclusive}"
            f" inconclusive{known}{damaged}. {_count(len(self.passed), 'row')} passed{after};"
            f" {len(ROWS) - len(JUDGED_ROWS)} of "
            f"{len(ROWS)} rows are not judged from a trace"
        )

    def show_findings(self, screen: Screen) -> None:
        """Print the findings."""
        for each in self.findings:
            show_finding(screen, each)
        if self.failed + self.inconclusive > len(self.findings):
            screen.write_line(
                f"... and {self.failed + self.inconclusive - len(self.findings)} more"
            )

    def _show_rows(self, screen: Screen) -> None:
        for id, row in ROWS.items():
            if id not in JUDGED_ROWS:
                verdict = "not judged"
            elif id in self._verdicts:
                verdict = self._verdicts[id]
            elif id in self.after_breach:
                verdict = "not judged"
            else:
                verdict = "pass" if self.opportunities.get(id) else "no opportunity"
            if row.role != self.fuzzer:
                screen.write_line(
                    f"{verdict:<15} {self.opportunities.get(id, 0):>7}  {row_name(id)}"
                )

    def junit(self) -> str:
        """Return a report in the format of JUnit, with a test case for each judged row."""
        cases = "".join(self._cases())
        failed = len({each.row for each in self.findings if each.is_certain})
        total = len(self.passed) + len({each.row for each in self.findings})
        total += len(self.after_breach) + (self.fuzzer is not None)
        name = f"mcp-trio check {self.path}"
        return junit_suite(name, cases, total, failed, self.unjudged, wanted="something was judged")

    def _cases(self) -> Iterator[str]:
        by_row: dict[str, list[Finding]] = {}
        for each in self.findings:
            by_row.setdefault(each.row, []).append(each)
        for row in [*by_row, *self.passed]:
            found = by_row.get(row, ())
            faults = "".join(
                f"<{'failure' if each.is_certain else 'skipped'} message="
                f"{attribute(f'{each.side}, {_lines(each.lines)}: {each.sentence} {each.link}')}/>"
                for each in found
            )
            yield junit_case(row_name(row), faults)
        for row in sorted(self.after_breach):
            yield junit_case(row_name(row), _skipped("it was broken after a breach of the fuzzer"))
        if self.fuzzer is not None:
            yield junit_case(f"the {self.fuzzer} was judged", _skipped(self.fuzzer_text))


def _skipped(reason: str) -> str:
    return f"<skipped message={attribute(reason)}/>"


def show_finding(screen: Screen, finding: Finding) -> None:
    """Print a finding, and the link to its page."""
    first, *others = finding.lines
    also = f" (see {_lines(others)})" if others else ""
    style = "bold red" if finding.is_certain else "yellow"
    screen.write_line(
        (f"{_verdict(finding):<12} ", style),
        f"{finding.level:<10} {finding.side:<6} line {first}  {finding.row}  "
        f"{finding.sentence}{also}",
    )
    if finding.link:
        screen.write_line(("             " + finding.link, "dim"))


def _verdict(finding: Finding) -> str:
    return "fail" if finding.is_certain else "inconclusive"


def _lines(lines: list[int] | tuple[int, ...]) -> str:
    text = ", ".join(map(str, lines))
    return f"line {text}" if len(lines) == 1 else f"lines {text}"


def _read_baseline(path: str) -> frozenset[tuple[str, str, str]]:
    """Return the row, side and sentence of each finding of an earlier report."""
    try:
        document = json.loads(Path(path).read_text("utf-8"))
        if "seed" in document or not isinstance(document["findings"], list):
            raise ValueError("it is a report of the fuzzer")
        return frozenset(
            (str(each["row"]), str(each["side"]), str(each["sentence"]))
            for each in document["findings"]
        )
    except OSError as exc:
        raise CliError(f"{path}: {exc.strerror}", MISUSE) from exc
    except (ValueError, KeyError, TypeError, RecursionError) as exc:
        raise CliError(
            f"{path} is not a report of `mcp-trio check`: write one with `mcp-trio check --json"
            f" FILE > {path}`",
            MISUSE,
        ) from exc
