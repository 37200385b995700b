"""The map of the folders in `docs/explanation/architecture.md`, made of their docstrings.

`python -m tests.layering.folders` writes it anew.
"""

from __future__ import annotations

import ast
import re
from pathlib import Path
from typing import Final

from tests.layering.rules import LAYER_OF, TRIO_LAYER_OF

ROOT: Final = Path(__file__).parents[2]
PAGE: Final = ROOT / "docs" / "explanation" / "architecture.md"
_SENTENCE: Final = re.compile(r".*?\.(?=\s|$)", re.DOTALL)


def render(text: str) -> str:
    """Return the page with the table of each package between its marks."""
    for package, layers in (("mcp_core", LAYER_OF), ("mcp_trio", TRIO_LAYER_OF)):
        begin, end = f"<!-- folders: {package} -->\n", "<!-- end -->"
        head, _, rest = text.partition(begin)
        assert rest, f"{PAGE.name} has no {begin.strip()}"
        text = (
            head + begin + "\n".join(_rows(package, layers)) + "\n" + end + rest.partition(end)[2]
        )
    return text


def _rows(package: str, layers: dict[str, int]) -> list[str]:
    found = []
    for path in (ROOT / package).rglob("__init__.py"):
        folder = path.parent.relative_to(ROOT)
        unit = ".".join(folder.parts[1:])
        while unit and unit not in layers:
            unit = unit.rpartition(".")[0]
        if folder.parts[1:] != ("protocol",):  # only holds folders, each with its own layer
            found.append((layers.get(unit, 0), folder.as_posix(), first_sentence(path)))
    rows = [f"| {layer} | `{folder}/` | {text} |" for layer, folder, text in sorted(found)]
    return ["", "| layer | folder | content |", "|--:|---|---|", *rows, ""]


def first_sentence(path: Path) -> str:
    """Return the first sentence of a module's docstring, on one line and without its full stop."""
    docstring = ast.get_docstring(ast.parse(path.read_text("utf-8")))
    assert docstring, f"{path} has no docstring"
    match = _SENTENCE.match(docstring)
    assert match, f"{path}: the docstring has no sentence"
    return " ".join(match[0].split()).removesuffix(".")


if __name__ == "__main__":
    PAGE.write_text(render(PAGE.read_text("utf-8")), "utf-8")
