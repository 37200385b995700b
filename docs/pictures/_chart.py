"""The chart of the benchmarks, from the figures of `benchmarks/compare.py`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple

from benchmarks.compared import cell, read
from benchmarks.targets import TARGETS

from ._svg import BLUE, INK, LINE, MUTED, WIDTH, Canvas

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["draw_benchmarks", "groups_of"]


class Bar(NamedTuple):
    """A bar: its name, its color, its figure, and how that is written."""

    name: str
    color: str
    value: float
    text: str


class Group(NamedTuple):
    """Bars of one scale."""

    title: str
    bars: Sequence[Bar]


_FLOOR: Final = "#cbd5e1"
# The rows of the figures that are shown, and their titles.
_ROWS: Final = {
    "stdio": "stdio: 64 calls of 100 B at a time",
    "stdio_10kb": "stdio: 64 calls of 10 KB at a time",
    "stdio_1mb": "stdio: 8 calls of 1 MB at a time",
    "http_sse": "HTTP: 16 clients, sessions, SSE",
    "http_modern": "HTTP: 16 clients, 2026-07-28",
}
_COLORS: Final = {
    "ours": BLUE,
    "ours_async": "#5b8def",
    **dict.fromkeys(("mcp", "mcpserver", "fastmcp", "ts1", "ts2"), LINE),
    "inline": _FLOOR,
    "h11": _FLOOR,
}
_LEFT: Final = 166  # where bars begin
_LONGEST: Final = WIDTH - _LEFT - 84
_BAR_HEIGHT: Final = 14
_ROW_HEIGHT: Final = 19
_ABOVE: Final = 24  # room for the title of a group
_BELOW: Final = 16


def groups_of(data: dict[str, Any]) -> list[Group]:
    """Return what the chart shows of these figures: calls per second."""
    groups = []
    for key, title in _ROWS.items():
        row = data["rows"][key]
        figures = row["measures"]["rate"]["figures"]
        bars = [
            Bar(TARGETS[name].title, color, figures[name], cell(row, "rate", name))
            for name, color in _COLORS.items()
            if name in figures
        ]
        groups.append(Group(title, bars))
    return groups


def draw_benchmarks() -> str:
    """Return the picture of calls per second, one scale for each measure."""
    groups = groups_of(read())
    height = sum(_ABOVE + len(group.bars) * _ROW_HEIGHT + _BELOW for group in groups)
    canvas = Canvas("Calls per second of mcp-trio and the other SDKs", 50 + height)
    canvas.text((18, 30), "Calls per second", size=15, bold=True, anchor="start")
    canvas.text((WIDTH - 18, 30), "longer is better", size=12, color=MUTED, anchor="end")
    y = 48.0
    for group in groups:
        canvas.text((18, y + 16), group.title, size=13, bold=True, anchor="start")
        y += _ABOVE
        unit = _LONGEST / max(bar.value for bar in group.bars)
        for bar in group.bars:
            width = max(bar.value * unit, 1)
            middle = y + _ROW_HEIGHT / 2
            canvas.text((_LEFT - 8, middle + 4), bar.name, size=12, color=MUTED, anchor="end")
            corner = (_LEFT, middle - _BAR_HEIGHT / 2)
            canvas.box(corner, (width, _BAR_HEIGHT), fill=bar.color, radius=2)
            beside = (_LEFT + width + 6, middle + 4)
            canvas.text(beside, bar.text, size=12, color=INK, anchor="start")
            y += _ROW_HEIGHT
        y += _BELOW
    return canvas.svg()
