"""The whole verdicts on the conversations of all rules, in `verdicts.txt`.

    python -m tests.core.trace.judge.rules.verdicts

writes the file again. A change of the judge shows in it which sentences, lines and opportunities
it changes, also of rows that the change isn't about: read that difference before you commit it.

Each finding has `!` if it is certain and `?` if not. The rows that are judged have how often, and
those that most messages have are left out. A fault after a lost line is there if its verdict is
another one.
"""

from __future__ import annotations

from collections import Counter
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Final

from mcp_core.trace import TraceLine
from tests.core.trace.judge.conversations import C, S, Sent, Start, ask, judge, result
from tests.kept import read_kept, write_kept

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from mcp_core.trace import Finding, Judge
    from tests.core.trace.judge.rules.case import Case

__all__ = ["OF_EACH_MESSAGE", "kept_verdicts", "names_of", "verdict_on", "verdicts_by_answer"]

OF_EACH_MESSAGE: Final = ("META", "RPC", "STDIO")
_FILE: Final = Path(__file__).with_name("verdicts.txt")


def names_of(cases: Sequence[Case]) -> list[str]:
    """Return a name for each case: the row and the revision, and a number from the second on."""
    seen: Counter[str] = Counter()
    found = []
    for each in cases:
        name = f"{each.row} {each.revision}"
        seen[name] += 1
        found.append(name if seen[name] == 1 else f"{name} {seen[name]}")
    return found


def verdict_on(case: Case) -> str:
    """Return the findings and opportunities of a case's conversations, in lines."""
    fails, judged = judge(None, [*case.fails], case.revision)
    passes, judged_passes = judge(None, [*case.passes], case.revision)
    *before, last = case.fails
    lost = Sent("server", TraceLine(t=0.0, kind="lost", count=1))
    gap, _ = judge(None, [*before, lost, last], case.revision)
    lines = ["  fails", *_lines(fails), *_opportunities(judged, case.revision)]
    if _verdicts(gap) != _verdicts(fails):
        lines += ["  fails, with a line lost before the last one", *_lines(gap)]
    lines += ["  passes", *_lines(passes), *_opportunities(judged_passes, case.revision)]
    return "\n".join(lines)


def _lines(findings: Sequence[Finding]) -> list[str]:
    return [
        f"    {'!' if each.is_certain else '?'} {each.row} {each.side}"
        f" ({', '.join(map(str, each.lines))}): {each.sentence}"
        for each in findings
    ]


def verdicts_by_answer(
    start: Start | None,
    said: Sequence[Sent],
    answers: Mapping[str, Sequence[Sent]],
    revision: str = "",
) -> str:
    """Return in a line each verdict on an answer to a conversation, with the answers that have it.

    A row is marked if it finds a fault, and there without a mark if it judges the answer. Rows that
    judge each message are left out.

    Args:
        start: as for `judge`.
        said: the conversation before the answer.
        answers: the messages of each answer, by its name.
        revision: as for `judge`.
    """
    before = judge(start, [*said], revision)[1].opportunities
    found: dict[str, list[str]] = {}
    for name, answer in answers.items():
        findings, judged = judge(start, [*said, *answer], revision)
        faults = [f"{'!' if each.is_certain else '?'}{each.row}" for each in findings]
        faulty = {each.row for each in findings}
        others = [
            row
            for row, n in sorted(judged.opportunities.items())
            if n > before[row] and row not in faulty and not row.startswith(OF_EACH_MESSAGE)
        ]
        verdict = " ".join(dict.fromkeys([*faults, *others])) or "not judged"
        found.setdefault(verdict, []).append(name)
    return "\n".join(f"  {', '.join(names)}: {verdict}" for verdict, names in found.items())


def _verdicts(findings: Sequence[Finding]) -> list[tuple[str, bool, str]]:
    return [(each.row, each.is_certain, each.sentence) for each in findings]


def _opportunities(judged: Judge, revision: str) -> Iterator[str]:
    counted = [
        row if n == 1 else f"{row} x{n}"
        for row, n in sorted(judged.opportunities.items())
        if n and row not in _common(revision)
    ]
    if counted:
        yield f"    judged: {', '.join(counted)}"


@cache
def _common(revision: str) -> frozenset[str]:
    """Return the rows that are judged in a conversation with one request and its answer."""
    asked = [*Start(revision).messages(), C(ask(1, "prompts/list")), S(result(1, prompts=[]))]
    return frozenset(+Counter(judge(None, asked, revision)[1].opportunities))


def kept_verdicts() -> dict[str, str]:
    """Return the verdicts in the file, by the names of their cases."""
    return read_kept(_FILE)


def main() -> None:
    from tests.core.trace.judge.rules.test_rules import CASES

    verdicts = [verdict_on(each) for each in CASES]
    write_kept(_FILE, dict(zip(names_of(CASES), verdicts, strict=True)))


if __name__ == "__main__":
    main()
