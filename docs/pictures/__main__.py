"""Write all pictures, or those whose file names are given: `python -m docs.pictures [NAME ...]`.

It writes the tables of figures as well, which are made from the same data as their picture.
"""

from __future__ import annotations

import sys
from pathlib import Path

from benchmarks.compared import PAGES, read, tables, with_tables

from . import PICTURES

_ROOT = Path(__file__).parents[2]

if __name__ == "__main__":
    for name in sys.argv[1:] or PICTURES:
        path = _ROOT / "docs" / "images" / name
        path.write_text(PICTURES[name](), "utf-8", newline="\n")
    made = tables(read())
    for page in PAGES:
        path = _ROOT / page
        path.write_text(with_tables(path.read_text("utf-8"), made), "utf-8", newline="\n")
