"""Long lines on a terminal, folded with a hanging indent.

The terminal itself would continue a long line in the first column, where a server could place a
line that looks like one of the command.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from rich.cells import cell_len, get_character_cell_size

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rich.text import Text

__all__ = ["fold"]

_INDENT: Final = re.compile(r" *(?:\| )?")
_HANGING: Final = "  "
_WORD: Final = re.compile(r"(\s*)(\S+)")
# A URL is left to the terminal, so that it can be copied. It has no spaces and cannot look like a
# sentence.
_URL: Final = re.compile(r"[!-~]*https?://[!-~]+")


def fold(text: Text, width: int) -> Text:
    """Return `text` with line feeds and indents, so that no line is wider than `width` columns.

    Further lines repeat the indent and the quotation mark of the first, and are indented by two
    more columns. Only a URL may be wider.
    """
    plain = text.plain
    if cell_len(plain) <= width:
        return text
    indent = _INDENT.match(plain)
    hanging = (indent[0] if indent else "")[: width // 2] + _HANGING
    first, *others = text.divide(_breaks(plain, width, max(width - len(hanging), 1)))
    folded = first
    for line in others:
        folded.rstrip()
        folded.append("\n" + hanging).append_text(line)
    return folded


def _breaks(plain: str, width: int, next_width: int) -> Iterator[int]:
    """Yield the offsets at which a line of `next_width` columns begins, after one of `width`."""
    free = width
    for match in _WORD.finditer(plain):
        spaces, cells = cell_len(match[1]), cell_len(match[2])
        if spaces + cells <= free:
            free -= spaces + cells
        elif cells <= next_width or _URL.fullmatch(match[2]):
            yield match.start(2)
            free = max(next_width - cells, 0)
        else:
            if spaces >= free:
                yield match.start(2)
                free = next_width
            else:
                free -= spaces
            for offset, size in enumerate(map(get_character_cell_size, match[2]), match.start(2)):
                if size > free:
                    yield offset
                    free = next_width
                free -= size
