"""The opportunities of each row to be judged in a trace, in `opportunities.txt`.

    python -m tests.core.trace.judge.rules.opportunities

writes the file again. A row that is never judged is left out. One that is counted only where it is
broken has `if broken`.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

from mcp_core.trace.judge.rows import ROWS
from mcp_core.trace.judge.rules._opportunity import opportunity_of
from tests.kept import read_kept, write_kept

__all__ = ["kept_opportunities", "opportunities"]

_FILE: Final = Path(__file__).with_name("opportunities.txt")


def opportunities() -> dict[str, str]:
    """Return the opportunity of each row that is judged, by its id."""
    found = {}
    for row in ROWS:
        each = opportunity_of(row)
        if each is not None:
            parts = [each.sides, each.on, each.methods]
            texts = [" ".join(sorted(part)) or "all" for part in parts]
            found[row] = f"  {', '.join(texts)}{', if broken' if each.only_broken else ''}"
    return found


def kept_opportunities() -> dict[str, str]:
    """Return the opportunities in the file."""
    return read_kept(_FILE)


if __name__ == "__main__":
    write_kept(_FILE, opportunities())
