"""A client whose conversation is judged by the specification's rules."""

from __future__ import annotations

import os
import tempfile
from collections.abc import AsyncIterator, Iterable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Final, Literal, TypeAlias

from mcp_core import escape_text
from mcp_core.adapters import Recording
from mcp_core.registry import Server
from mcp_core.trace import (
    CHECKED_LEVELS,
    DamagedLine,
    Finding,
    Judge,
    ReplayedServer,
    TraceLine,
    read_trace,
)
from mcp_trio._client import Client
from mcp_trio._connect import connect

__all__ = ["FindingsLevel", "FoundFaults", "NothingJudged", "connect_judged", "judge_trace"]

FindingsLevel: TypeAlias = Literal["must", "should", "all"]
_SHOWN_FINDINGS: Final = 20  # in the text of a failure
_SHOWN_CHARACTERS: Final = 500  # of each message there
_CHUNK: Final = 64 * 1024  # bytes


class FoundFaults(AssertionError):
    """The failure of a test whose conversation broke a rule of the specification.

    Args:
        findings: the findings.
        trace: the file with the conversation.
        messages: the texts of its lines to show, by their number.

    Attributes:
        findings: the findings, each with its row, sentence, link and lines.
        trace: the file with the conversation; it may be gone when the exception is caught.
    """

    def __init__(self, findings: Sequence[Finding], trace: Path, messages: dict[int, str]) -> None:
        super().__init__("\n".join(_describe(findings, messages)))
        self.findings = list(findings)
        self.trace = trace


class NothingJudged(AssertionError):
    """The failure of a test that had nothing to judge, and would have passed without a server."""


@asynccontextmanager
async def connect_judged(
    target: str | Server | ReplayedServer | Sequence[str | os.PathLike[str]],
    *,
    level: FindingsLevel = "should",
    **options: Any,
) -> AsyncIterator[Client]:
    """Connect to a server, and judge the conversation at the end of the block.

    Used as `async with connect_judged(target) as client: ...`.

    Args:
        target: as of `mcp_trio.connect`: a URL, the words of a command, a `Server`, or a recorded
            conversation.
        level: the rules that have to be kept: `"must"`, also `"should"` (the default), or `"all"`.
        options: as of `mcp_trio.connect`. With `record` the trace is kept in that file.

    *Resource handling*: as of `mcp_trio.connect`. Without `record` the trace is a temporary file,
    which is deleted.
    *Error handling*: as of `mcp_trio.connect`. If the block raises, nothing is judged.

    Raises:
        FoundFaults: a message of either side certainly breaks a rule. What the messages cannot show
            isn't a fault.
        NothingJudged: the block has sent and received no message.
    """
    with tempfile.TemporaryDirectory(prefix="mcp-trio-") as place:
        record = options.pop("record", None)
        if record is None:
            record = Path(place, "trace.mcp.jsonl")
        path = Path(record.path if isinstance(record, Recording) else record)
        async with connect(target, record=record, **options) as client:
            yield client
        judge_trace(path, level=level)


def judge_trace(path: str | os.PathLike[str], *, level: FindingsLevel = "should") -> None:
    """Judge the conversations in a trace file, of which both sides are judged.

    Args:
        path: the file, as `record=` writes it.
        level: the rules that have to be kept: `"must"`, also `"should"` (the default), or `"all"`.

    Raises:
        FoundFaults: a message certainly breaks a rule.
        InvalidTrace: the file isn't a trace.
        NothingJudged: there is no message in it that can be judged, or it is a fuzzer's trace, of
            which one side isn't judged.
        OSError: it cannot be read.
    """
    findings = list(_findings(Path(path), level))
    if findings:
        wanted = {number for each in findings[:_SHOWN_FINDINGS] for number in each.lines}
        raise FoundFaults(findings, Path(path), _messages(Path(path), wanted))


def _findings(path: Path, level: FindingsLevel) -> Iterable[Finding]:
    """Yield the findings of a level.

    Raises:
        NothingJudged: there were none of any level, and no message; or none of this level, and one
            side is a fuzzer.
    """
    damage = ""
    is_found = is_faulty = False
    with path.open("rb") as file:
        header, lines = read_trace(iter(lambda: file.read(_CHUNK), b""))
        judge = Judge(header, from_start=True)
        for number, line in lines:
            if isinstance(line, DamagedLine):
                damage = damage or f": line {number} cannot be read: {line.reason}"
            found = judge.receive(line, number)
            is_found = is_found or bool(found)
            selected = _selected(found, level)
            is_faulty = is_faulty or bool(selected)
            yield from selected
        selected = _selected(judge.close(), level)
        yield from selected
    if judge.unjudged is not None and not is_faulty and not selected:
        raise NothingJudged(
            f"the {judge.unjudged} was not judged: the header of {path} names it as a fuzzer, which"
            " breaks rules on purpose; `mcp-trio check` judges the other side"
        )
    if not judge.messages and not is_found:
        raise NothingJudged(
            f"nothing was judged: no message is in {path}{damage}; let the client send a request"
        )


def _selected(findings: Iterable[Finding], level: FindingsLevel) -> list[Finding]:
    return [
        each
        for each in findings
        if each.is_certain and (level == "all" or each.level in CHECKED_LEVELS[level])
    ]


def _messages(path: Path, wanted: set[int]) -> dict[int, str]:
    """Return the messages in the lines with these numbers, cut to a length that can be shown."""
    with path.open("rb") as file:
        _, lines = read_trace(iter(lambda: file.read(_CHUNK), b""))
        return {
            number: _show(line)
            for number, line in lines
            if number in wanted and not isinstance(line, DamagedLine)
        }


def _show(line: TraceLine) -> str:
    if line.raw is not None:
        text = line.raw
    elif line.http is not None:
        text = f"HTTP {line.http.status or line.http.method}"
    else:
        text = repr(line.data)
    cut = "" if len(text) <= _SHOWN_CHARACTERS else f"... ({len(text)} characters)"
    return f"{line.sender}: {escape_text(text[:_SHOWN_CHARACTERS])}{cut}"


def _describe(findings: Sequence[Finding], messages: dict[int, str]) -> Iterable[str]:
    count = len(findings)
    yield f"the conversation breaks {count} rule{'s' * (count > 1)} of the specification:"
    for each in findings[:_SHOWN_FINDINGS]:
        yield f"  {each.level} {each.side} {each.row}: {escape_text(each.sentence)}"
        if each.link:
            yield f"    {each.link}"
        for number in sorted(each.lines):
            if number in messages:
                yield f"    line {number}, {messages[number]}"
    if count > _SHOWN_FINDINGS:
        yield f"  and {count - _SHOWN_FINDINGS} more"
