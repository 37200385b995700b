"""Sequence diagrams, from recorded conversations."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ._recorder import SERVER
from ._svg import BLUE, INK, LINE, MUTED, TEAL, TINT, VIOLET, WIDTH, Canvas, text_width

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from ._recorder import Step

__all__ = ["draw_sequence"]

_NAMES: Final = 40  # where the names of the ends begin, below the title
_TOP: Final = 74
_LANES: Final = {2: (62, 372), 3: (48, 186, 372)}
_HEIGHTS: Final = {"request": 32, "response": 32, "open": 32, "event": 32, "end": 20, "note": 36}
_DETAIL_HEIGHT: Final = 14
_TEXT: Final = 12.5
_SMALL: Final = 11
_STREAM_COLORS: Final = (TEAL, VIOLET)
_BAR: Final = 8


def draw_sequence(title: str, lanes: Sequence[str], steps: Sequence[Step]) -> str:
    """Return the picture of a conversation between `lanes`, from left to right."""
    rows = []
    y = _TOP
    for step in steps:
        y += _HEIGHTS[step.kind]
        rows.append((step, y))
        y += _DETAIL_HEIGHT if step.detail else 0
    bottom = y + 18
    canvas = Canvas(title, bottom + 14)
    places = dict(zip(lanes, _LANES[len(lanes)], strict=True))
    canvas.text((WIDTH / 2, 26), title, size=14, bold=True)
    for name, x in places.items():
        canvas.line([(x, _NAMES + 26), (x, bottom)], color=LINE, arrow=False)
        width = text_width(name, 14) + 28
        canvas.box((x - width / 2, _NAMES), (width, 28), stroke=BLUE)
        canvas.text((x, _NAMES + 19), name, size=14, bold=True)
    _draw_streams(canvas, places[SERVER], rows, bottom)
    for step, y in rows:
        _draw_step(canvas, places, step, y)
    return canvas.svg()


def _color(stream: int) -> str:
    return _STREAM_COLORS[(stream - 1) % len(_STREAM_COLORS)] if stream else INK


def _draw_streams(
    canvas: Canvas, x: float, rows: Sequence[tuple[Step, float]], bottom: float
) -> None:
    """Draw a bar for each stream, for as long as it is open, at the right of the server's line."""
    bars = {step.stream: (top, bottom) for step, top in rows if step.kind == "open"}
    for step, y in rows:
        if step.kind == "end":
            bars[step.stream] = (bars[step.stream][0], y)
    for stream, (top, end) in bars.items():
        beside = sum(other < top < last for other, last in bars.values())
        corner = (x + 4 + beside * (_BAR + 3), top - 6)
        canvas.box(corner, (_BAR, end - top + 6), fill=_color(stream), radius=3)


def _draw_step(canvas: Canvas, places: Mapping[str, float], step: Step, y: float) -> None:
    start, end = places[step.source], places[step.target]
    color = _color(step.stream)
    if step.kind == "note":
        width = text_width(step.text, _TEXT) + 16
        left = min(start - width / 2, WIDTH - 8 - width)
        canvas.box((left, y - 22), (width, 26), fill=TINT, stroke=LINE)
        canvas.text((left + width / 2, y - 5), step.text, size=_TEXT)
        return
    if step.kind == "end":
        middle = (min(places.values()) + start) / 2
        canvas.text((middle, y), step.text, size=_SMALL, color=color)
        return
    middle = (start + end) / 2
    canvas.line([(start, y), (end, y)], color=color, dashed=step.kind in {"response", "open"})
    canvas.text((middle, y - 6), step.text, size=_TEXT, color=color)
    if step.detail:
        canvas.text((middle, y + _DETAIL_HEIGHT), step.detail, size=_SMALL, color=MUTED)
