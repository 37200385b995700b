"""The list of faults that the fuzzer doesn't find, in the docs."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Final

from tests.oracle_score.operators import all_places, operators

if TYPE_CHECKING:
    from tests.oracle_score.score import MutantResult, Score

__all__ = ["PAGE", "list_of", "read_list", "write_page"]

PAGE: Final = Path(__file__).parents[2] / "docs" / "explanation" / "what-the-fuzzer-finds.md"
BEGIN: Final = "<!-- made by `python -m tests.oracle_score --write` -->\n"
END: Final = "<!-- end -->\n"


def list_of(score: Score) -> str:
    """Return the part of the page that a score makes."""
    lines = [
        f"| faults | found within {score.cases:,} cases | only advice | only another fault |",
        "|---|---|---|---|",
    ]
    for level, name in (("MUST", "MUST, crash or hang"), ("SHOULD", "SHOULD")):
        others = [each for each in score.noticed(level) if not each.result.advice]
        lines.append(
            f"| {name} | {len(score.found(level))} of {len(score.of(level))} |"
            f" {len(score.advised(level))} | {len(others)} |"
        )
    lines += ["", "Not found:", "", "| fault | where | requirement | reported |"]
    lines.append("|---|---|---|---|")
    lines += [_row(each) for each in score.unfound()]
    return "\n".join(lines) + "\n"


def _row(mutant: MutantResult) -> str:
    operator, _, place = mutant.id.partition("/")
    known = operators().get(operator)
    sentence = known.sentence if known is not None else operator
    row = "" if mutant.row in ("crash", "hang") else f"{mutant.row} ({mutant.level})"
    result = mutant.result
    reported = f"{result.advice}, as advice" if result.advice else result.other
    return f"| {sentence} | {place.replace('|', '/')} | {row or mutant.row} | {reported} |"


def read_list() -> str:
    """Return the part of the committed page that the score makes."""
    return PAGE.read_text().partition(BEGIN)[2].partition(END)[0]


def write_page(score: Score) -> None:
    """Write the score's part of the page."""
    assert set(all_places()) >= {each.id for each in score.mutants}
    text = PAGE.read_text()
    pattern = re.escape(BEGIN) + ".*" + re.escape(END)
    PAGE.write_text(re.sub(pattern, lambda _: BEGIN + list_of(score) + END, text, flags=re.DOTALL))
