"""How the verdict on each rule's conversation changes with the conversation, in `variations.txt`.

    python -m tests.core.trace.judge.rules.variations

writes the file again. The conversations are those with a fault. Each is judged without one of its
lines, with two lines in the other order, with its last line from the other side, with values
replaced by a recorder, in the oldest and the newest revision, and as other recorders write it. The
file has the rows whose verdict this changes: `!` is a certain fault and `?` another one, a row
without a mark is judged, and one with `-` isn't judged. New faults have their sentences.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

from msgspec.structs import replace

from mcp_core.trace import Judge, TraceHeader
from mcp_core.trace.judge._revisions import REVISIONS
from mcp_core.trace.judge._sides import other_side
from tests.core.trace.judge.conversations import Start, as_lines
from tests.core.trace.judge.rules.http import START
from tests.core.trace.judge.rules.verdicts import OF_EACH_MESSAGE, names_of
from tests.kept import read_kept, write_kept

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from mcp_core.trace import Finding, TraceLine
    from tests.core.trace.judge.rules.case import Case

__all__ = ["kept_variations", "variations_of"]

_FILE: Final = Path(__file__).with_name("variations.txt")
_HEADER: Final = TraceHeader(format_version=1, observer="between", transport="stdio")
# Rows of handshakes and the like, which a change to those breaks in each conversation.
_OF_BEGINNING: Final = ("LIFE", "PROBE", "CAP", "VER")
_RECORDERS: Final = (
    ("recorded later", _HEADER, False),
    ("by the client", replace(_HEADER, observer="client"), True),
    ("by the server, later", replace(_HEADER, observer="server"), False),
    ("over an unknown transport", replace(_HEADER, transport=""), True),
)
_REDACTED: Final = ("/params/name", "/result/content")


class _Judged(NamedTuple):
    """The verdict on each row, and the sentences of the faults."""

    verdicts: Mapping[str, str]
    sentences: Mapping[tuple[str, str], None]


def _judged(lines: Sequence[TraceLine], header: TraceHeader, *, from_start: bool) -> _Judged:
    judge = Judge(header, from_start=from_start)
    findings: list[Finding] = []
    for line in lines:
        findings += judge.receive(line)
    findings += judge.close()
    verdicts = {
        row: row
        for row, n in judge.opportunities.items()
        if n and not row.startswith(OF_EACH_MESSAGE)
    }
    for each in findings:
        if not verdicts.get(each.row, "").startswith("!"):
            verdicts[each.row] = f"{'!' if each.is_certain else '?'}{each.row}"
    return _Judged(verdicts, {(each.row, each.sentence): None for each in findings})


def _variations(
    lines: Sequence[TraceLine], begun: int
) -> Iterator[tuple[str, Sequence[TraceLine]]]:
    """Yield what is changed after the first `begun` lines, and the lines that result."""
    last = len(lines) - 1
    for at in range(begun, len(lines)):
        yield f"without {at + 1}", [*lines[:at], *lines[at + 1 :]]
        if at < last:
            yield f"{at + 2} first", [*lines[:at], lines[at + 1], lines[at], *lines[at + 2 :]]
    yield f"{last + 1} from the other side", [*lines[:last], _from_other_side(lines[last])]
    yield "redacted", [replace(line, redacted=_REDACTED) for line in lines]
    for revision in REVISIONS[0], REVISIONS[-1]:
        yield revision, [_in_revision(line, revision) for line in lines]


def _from_other_side(line: TraceLine) -> TraceLine:
    return line if line.sender is None else replace(line, sender=other_side(line.sender))


def _in_revision(line: TraceLine, revision: str) -> TraceLine:
    """Return a line with `revision` in place of each other one."""
    raw, http = line.raw, line.http
    for each in REVISIONS:
        raw = raw and raw.replace(each, revision)
        if http is not None:
            headers = tuple((name, value.replace(each, revision)) for name, value in http.headers)
            http = replace(http, headers=headers)
    return replace(line, raw=raw, http=http)


def variations_of(case: Case) -> str:
    """Return the changes of the verdict on a case's conversation with a fault."""
    lines = [*as_lines(case.fails, case.revision)]
    base = _judged(lines, _HEADER, from_start=True)
    found: dict[str, list[str]] = {}

    def add(name: str, judged: _Judged) -> None:
        if change := _change(base, judged, case.row):
            found.setdefault(change, []).append(name)

    for name, changed in _variations(lines, _begun(case)):
        add(name, _judged(changed, _HEADER, from_start=True))
    for name, header, from_start in _RECORDERS:
        add(name, _judged(lines, header, from_start=from_start))
    return "\n".join(f"  {', '.join(names)}: {change}" for change, names in found.items())


def _begun(case: Case) -> int:
    """Return the number of lines of the handshake, which most conversations have."""
    said = [*case.fails]
    beginnings = Start(case.revision).messages(), START
    return max(len(each) if said[: len(each)] == each else 0 for each in beginnings)


def _change(base: _Judged, judged: _Judged, row: str) -> str:
    """Return the verdicts that differ from those of the unchanged conversation."""
    left_out = () if row.startswith(_OF_BEGINNING) else _OF_BEGINNING
    rows = sorted(base.verdicts.keys() | judged.verdicts.keys())
    changes = [
        judged.verdicts.get(each, f"-{each}")
        for each in rows
        if base.verdicts.get(each) != judged.verdicts.get(each) and not each.startswith(left_out)
    ]
    new = judged.sentences.keys() - base.sentences.keys()
    texts = sorted(text for each, text in new if not each.startswith((*left_out, "RPC-7")))
    return "; ".join([" ".join(changes), *texts]) if changes or texts else ""


def kept_variations() -> dict[str, str]:
    """Return the changes in the file, by the names of their cases."""
    return read_kept(_FILE)


def main() -> None:
    from tests.core.trace.judge.rules.test_rules import CASES

    changes = map(variations_of, CASES)
    write_kept(_FILE, dict(zip(names_of(CASES), changes, strict=True)))


if __name__ == "__main__":
    main()
