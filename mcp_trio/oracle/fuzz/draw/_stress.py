"""Phrases of `--stress`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from mcp_core import DIALECTS
from mcp_trio.oracle.fuzz.play._stress_budget import (
    MAX_CONNECTIONS,
    MAX_DEPTH,
    MAX_HEADERS,
    MAX_REQUESTS,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from mcp_trio.oracle.fuzz._case import Step

    from ._choices import CaseChoices
    from ._drawing import Drawing

__all__ = ["draw_heavy", "draw_stress", "heavy", "stressed"]

_MIB: Final = 1024 * 1024
_SIZES: Final = (64 * 1024, _MIB, 4 * _MIB - 4_096, 4 * _MIB + 1, 8 * _MIB)
_HEADER_SIZES: Final = (8_192, 16_384, 65_536, _MIB)
_FEW: Final = (1, 2, 3, 4)
_MANY: Final = (16, 64, MAX_CONNECTIONS)


def stressed(draw: Drawing, choices: CaseChoices, revision: str) -> list[Step]:
    """Draw a phrase of stress steps."""
    modern = not DIALECTS[revision].stateful
    return draw_stress(draw.below, http=choices.http, modern=modern)


def heavy(draw: Drawing, choices: CaseChoices, revision: str) -> list[Step]:
    """Draw one step with a large or deep message."""
    return draw_heavy(draw.below)


def draw_stress(below: Callable[[int], int], *, http: bool, modern: bool) -> list[tuple[Any, ...]]:
    """Return a phrase of stress steps. `draw_heavy` draws the heavy ones.

    Args:
        below: draws a number from 0 up to its argument.
        http: whether steps for HTTP are drawn.
        modern: whether the revision has no handshake.
    """

    def pick(items: tuple[Any, ...]) -> Any:
        return items[below(len(items))]

    kind = below(6 if http else 4)
    if kind == 0:
        return [("slow",)]
    if kind == 1:
        return [("unread", pick((50, 200, MAX_REQUESTS))), ("release",)]
    if kind == 2:
        method = "server/discover" if modern else "ping"
        return [("burst", MAX_CONNECTIONS if http else MAX_REQUESTS, method, {})]
    if kind == 3:
        what = "listen" if modern else pick(("get", "session"))
        return [("streams", what, pick(_MANY)), ("release",)]
    if kind == 4:
        what = pick(("header", "headers", "target", "announced"))
        sizes = {"headers": (200, 2_000, MAX_HEADERS), "announced": (8 * _MIB, 2**40)}
        return [("large", what, pick(sizes.get(what, _HEADER_SIZES))), *_end(below)]
    if below(2):
        return [("heads", pick(_MANY)), ("release",)]
    halves = (("heads", 1), ("half",))
    return [*(pick(halves) for _ in range(pick(_FEW))), *_end(below)]


def draw_heavy(below: Callable[[int], int]) -> list[tuple[Any, ...]]:
    """Return one step with a message that some servers don't read. See `draw_stress`."""
    if below(2):
        return [("large", "message", _SIZES[below(len(_SIZES))])]
    how = ("array", "object")[below(2)]
    return [("deep", how, (1_000, 20_000, MAX_DEPTH // 2)[below(3)])]


def _end(below: Callable[[int], int]) -> list[tuple[Any, ...]]:
    """Return the end of a phrase: a few connections may stay open until the end of the case."""
    return [("release",)] if below(2) else []
