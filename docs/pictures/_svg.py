"""Build one SVG file: a light panel with shapes and text, readable on light and dark pages.

1. A picture has its own background, because an `<img>` does not know which theme a page has.
2. It is 440 units wide, so that its text is legible on a phone.
3. Sizes of text are estimated for a wide font: the reader's may be any sans-serif.
"""

from __future__ import annotations

from math import dist
from typing import TYPE_CHECKING, Final, Literal
from xml.sax.saxutils import escape

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = [
    "BLUE",
    "INK",
    "LINE",
    "MUTED",
    "PANEL",
    "TEAL",
    "TINT",
    "VIOLET",
    "WIDTH",
    "Canvas",
    "Point",
    "text_width",
]

Point = tuple[float, float]

WIDTH: Final = 440
# Each colour of text has a contrast of at least 4.5 with the panel and the tint (WCAG 1.4.3).
PANEL: Final = "#f8fafc"
TINT: Final = "#e6eefc"
LINE: Final = "#94a3b8"
INK: Final = "#0f172a"
MUTED: Final = "#475569"
BLUE: Final = "#1d4ed8"
TEAL: Final = "#0f766e"
VIOLET: Final = "#7e22ce"

_FONT: Final = "system-ui, -apple-system, 'Segoe UI', Roboto, Helvetica, Arial, sans-serif"
_CHARACTER: Final = 0.62  # mean width of a character of DejaVu Sans, which is wide, per font size
_CORNER: Final = 8.0
_HEAD: Final = 8.0  # length of an arrow's head


def text_width(text: str, size: float) -> float:
    """Return an upper estimate of the width of a text."""
    return len(text) * size * _CHARACTER


class Canvas:
    """A picture in the making.

    Args:
        title: the name of the picture, for programs that read it out.
        height: in units; the width is `WIDTH`.
    """

    def __init__(self, title: str, height: float) -> None:
        self._title = title
        self._height = height
        self._shapes: list[str] = []

    def text(
        self,
        at: Point,
        text: str,
        *,
        size: float = 13,
        color: str = INK,
        anchor: Literal["start", "middle", "end"] = "middle",
        bold: bool = False,
    ) -> None:
        """Add a line of text. `at` is on its base line."""
        weight = ' font-weight="600"' if bold else ""
        self._shapes.append(
            f'<text x="{_number(at[0])}" y="{_number(at[1])}" font-size="{_number(size)}"'
            f' fill="{color}" text-anchor="{anchor}"{weight}>{escape(text)}</text>'
        )

    def box(
        self, at: Point, size: Point, *, fill: str = TINT, stroke: str = "none", radius: float = 8
    ) -> None:
        """Add a rectangle. `at` is its upper left corner."""
        self._shapes.append(
            f'<rect x="{_number(at[0])}" y="{_number(at[1])}" width="{_number(size[0])}"'
            f' height="{_number(size[1])}" rx="{_number(radius)}" fill="{fill}"'
            f' stroke="{stroke}"/>'
        )

    def line(
        self,
        points: Sequence[Point],
        *,
        color: str = INK,
        dashed: bool = False,
        arrow: bool = True,
    ) -> None:
        """Add a line through points, with round corners, and an arrow's head at its end."""
        (x1, y1), (x2, y2) = points[-2:]
        if arrow:
            points = [*points[:-1], _towards((x2, y2), (x1, y1), _HEAD - 1)]
        path = f"M{_pair(points[0])}"
        for before, corner, after in zip(points, points[1:], points[2:], strict=False):
            path += f"L{_pair(_towards(corner, before, _CORNER))}"
            path += f"Q{_pair(corner)} {_pair(_towards(corner, after, _CORNER))}"
        path += f"L{_pair(points[-1])}"
        dashes = ' stroke-dasharray="5 4"' if dashed else ""
        self._shapes.append(
            f'<path d="{path}" fill="none" stroke="{color}" stroke-width="1.5"{dashes}/>'
        )
        if arrow:
            self._head((x2, y2), (x1, y1), color)

    def _head(self, tip: Point, source: Point, color: str) -> None:
        x, y = _towards(tip, source, _HEAD)
        dx, dy = (tip[1] - y) / 2, (x - tip[0]) / 2  # half of the head's length, across the line
        sides = f"L{_pair((x + dx, y + dy))}L{_pair((x - dx, y - dy))}"
        self._shapes.append(f'<path d="M{_pair(tip)}{sides}Z" fill="{color}"/>')

    def svg(self) -> str:
        """Return the file."""
        size = f'width="{WIDTH}" height="{_number(self._height)}"'
        view = f'viewBox="0 0 {WIDTH} {_number(self._height)}"'
        lines = [
            f'<svg xmlns="http://www.w3.org/2000/svg" {size} {view} role="img"',
            f'  font-family="{_FONT}">',
            f"<title>{escape(self._title)}</title>",
            f'<rect x="0.5" y="0.5" width="{WIDTH - 1}" height="{_number(self._height - 1)}"',
            f'  rx="12" fill="{PANEL}" stroke="{LINE}"/>',
            *self._shapes,
            "</svg>",
        ]
        return "\n".join(lines) + "\n"


def _number(value: float) -> str:
    return f"{value:.1f}".removesuffix(".0")


def _pair(point: Point) -> str:
    return f"{_number(point[0])} {_number(point[1])}"


def _towards(start: Point, end: Point, length: float) -> Point:
    """Return the point between `start` and `end` at this distance, or half-way if they are near."""
    part = min(length / dist(start, end), 0.5)
    return start[0] + (end[0] - start[0]) * part, start[1] + (end[1] - start[1]) * part
