"""The verdict on each rule's fault beside entries that the rule skips, in `neighbours.txt`.

    python -m tests.core.trace.judge.rules.neighbours

writes the file again. Each list and each object of named values in the conversation's messages
gets an empty object, before its entries and then behind them: a rule has to look at all entries.
The file has the sentences on the case's row, and its lines.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from msgspec.structs import replace

from mcp_core.trace import Judge, TraceHeader
from tests.core.trace.judge.conversations import as_lines
from tests.core.trace.judge.rules.verdicts import names_of
from tests.kept import read_kept, write_kept

if TYPE_CHECKING:
    from mcp_core.trace import TraceLine
    from tests.core.trace.judge.rules.case import Case

__all__ = ["faults_beside_neighbours", "kept_faults"]

_FILE: Final = Path(__file__).with_name("neighbours.txt")
_HEADER: Final = TraceHeader(format_version=1, observer="between", transport="stdio")
# Members whose value has entries by names of their author's.
_BY_NAME: Final = frozenset({"arguments", "inputRequests", "inputResponses", "properties"})


def _beside(value: Any, name: str = "", *, first: bool) -> Any:
    """Return a message's value with an empty object beside the entries of lists and names."""
    if isinstance(value, list):
        found = [_beside(each, first=first) for each in value]
        return [{}, *found] if first else [*found, {}]
    if not isinstance(value, dict):
        return value
    members = {key: _beside(each, key, first=first) for key, each in value.items()}
    if name not in _BY_NAME:
        return members
    return {"": {}, **members} if first else {**members, "": {}}


def _line_beside(line: TraceLine, *, first: bool) -> TraceLine:
    try:
        message = json.loads(line.raw or "")
    except ValueError:
        return line
    if not isinstance(message, dict):
        return line
    return replace(line, raw=json.dumps(_beside(message, first=first)))


def faults_beside_neighbours(case: Case) -> str:
    """Return the faults against a case's row, with the empty objects first and then last."""
    found = []
    for first in (True, False):
        judge = Judge(_HEADER, from_start=True)
        lines = [_line_beside(each, first=first) for each in as_lines(case.fails, case.revision)]
        findings = [finding for line in lines for finding in judge.receive(line)]
        found += [
            f"  {'first' if first else 'last'} {'!' if each.is_certain else '?'}"
            f" {each.sentence} {' '.join(map(str, each.lines))}"
            for each in [*findings, *judge.close()]
            if each.row == case.row
        ]
    return "\n".join(found) or "  no fault"


def kept_faults() -> dict[str, str]:
    """Return the faults in the file, by the names of their cases."""
    return read_kept(_FILE)


def main() -> None:
    from tests.core.trace.judge.rules.test_rules import CASES

    write_kept(_FILE, dict(zip(names_of(CASES), map(faults_beside_neighbours, CASES), strict=True)))


if __name__ == "__main__":
    main()
