"""Write all pictures: `python -m docs.pictures`, or those whose file names are given."""

from __future__ import annotations

import sys
from pathlib import Path

from . import PICTURES

if __name__ == "__main__":
    for name in sys.argv[1:] or PICTURES:
        path = Path(__file__).parents[1] / "images" / name
        path.write_text(PICTURES[name](), "utf-8", newline="\n")
