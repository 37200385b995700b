"""The chart of the benchmarks, from the tables in `benchmarks/README.md`."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final, NamedTuple

from ._svg import BLUE, INK, LINE, MUTED, WIDTH, Canvas

__all__ = ["draw_benchmarks", "read_rows"]

_SEPARATOR: Final = re.compile(r"(?<!\\)\|")
_TABLES: Final = Path(__file__).parents[2] / "benchmarks" / "README.md"


class Group(NamedTuple):
    """A row of the tables that the chart shows.

    Attributes:
        table: the first cell of its table's head.
        row: its first cell.
        title: its name in the chart.
    """

    table: str
    row: str
    title: str


_GROUPS: Final = (
    Group(
        "2025-11-25 after a handshake",
        "100 B, 64 on their way, calls/s",
        "stdio: 64 calls of 100 B at a time",
    ),
    Group(
        "2025-11-25 after a handshake",
        "10 KB, 64 on their way, calls/s",
        "stdio: 64 calls of 10 KB at a time",
    ),
    Group(
        "2025-11-25 after a handshake",
        "1 MB, 8 on their way, calls/s",
        "stdio: 8 calls of 1 MB at a time",
    ),
    Group("16 clients, calls/s", "sessions, SSE", "HTTP: 16 clients, sessions, SSE"),
    Group("16 clients, calls/s", "2026-07-28", "HTTP: 16 clients, 2026-07-28"),
)
# The columns of the tables, and their names in the chart.
_BARS: Final = {
    "`def`": ("mcp-trio, def", BLUE),
    "`async def`": ("mcp-trio, async def", "#5b8def"),
    "SDK": ("SDK, low level", LINE),
    "MCPServer": ("SDK, MCPServer", LINE),
}
_LEFT: Final = 160  # where bars begin
_LONGEST: Final = WIDTH - _LEFT - 76
_BAR_HEIGHT: Final = 14
_ROW_HEIGHT: Final = 19


def read_rows(text: str) -> dict[tuple[str, str], dict[str, str]]:
    """Return each row of the tables of a Markdown text: column to cell.

    The key of a row is the first cell of its table's head, and its own first cell.
    """
    rows: dict[tuple[str, str], dict[str, str]] = {}
    head: list[str] = []
    for line in text.splitlines():
        cells = [cell.strip() for cell in _SEPARATOR.split(line.strip()[1:-1])]
        if not line.startswith("|"):
            head = []
        elif not head:
            head = cells
        else:
            rows[head[0], cells[0]] = dict(zip(head[1:], cells[1:], strict=True))
    return rows


def draw_benchmarks() -> str:
    """Return the picture of calls per second, one scale for each measure."""
    rows = read_rows(_TABLES.read_text("utf-8"))
    group_height = 40 + len(_BARS) * _ROW_HEIGHT
    canvas = Canvas(
        "Calls per second of mcp-trio and the official SDK", 50 + len(_GROUPS) * group_height
    )
    canvas.text((18, 30), "Calls per second", size=15, bold=True, anchor="start")
    canvas.text((WIDTH - 18, 30), "longer is better", size=12, color=MUTED, anchor="end")
    y = 48.0
    for group in _GROUPS:
        row = rows[group.table, group.row]
        canvas.text((18, y + 16), group.title, size=13, bold=True, anchor="start")
        y += 24
        values = {column: int(row[column].replace(",", "")) for column in _BARS}
        unit = _LONGEST / max(values.values())
        for column, (name, color) in _BARS.items():
            width = max(values[column] * unit, 1)
            middle = y + _ROW_HEIGHT / 2
            canvas.text((_LEFT - 8, middle + 4), name, size=12, color=MUTED, anchor="end")
            canvas.box(
                (_LEFT, middle - _BAR_HEIGHT / 2), (width, _BAR_HEIGHT), fill=color, radius=2
            )
            at = (_LEFT + width + 6, middle + 4)
            canvas.text(at, row[column], size=12, color=INK, anchor="start")
            y += _ROW_HEIGHT
        y += group_height - 24 - len(_BARS) * _ROW_HEIGHT
    return canvas.svg()
