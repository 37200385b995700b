"""Phrases of damage: messages with wrong members, and bytes that aren't messages."""

from __future__ import annotations

import contextlib
import functools
import json
from typing import TYPE_CHECKING, Any, Final

from hypothesis import strategies as st

from mcp_trio.oracle.strategies._messages import meta_of, notifications, requests
from mcp_trio.oracle.strategies._mutations import damage, malformed
from mcp_trio.oracle.strategies._values import encoded, json_values

from ._requests import WITH_EFFECT, rows_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from hypothesis.strategies import DrawFn, SearchStrategy

    from mcp_trio.oracle.fuzz._case import Step

    from ._choices import CaseChoices
    from ._drawing import Drawing

__all__ = ["damaged", "mutated"]

# Ids of damaged messages only, so that their responses aren't taken for others.
_RARE_IDS: Final = st.integers(2**30, 2**31)


def mutated(draw: Drawing, choices: CaseChoices, revision: str) -> list[Step]:
    """Draw a message with wrong members."""
    data = draw.value(_mutations(revision))
    return [] if _is_doubtful(data) else [("mutate", data.decode("utf-8", "surrogatepass"))]


def damaged(draw: Drawing, choices: CaseChoices, revision: str) -> list[Step]:
    """Draw the damaged bytes of a message."""
    rows = rows_of(revision)
    row = draw.pick(rows)
    message: Mapping[str, Any] = {
        "jsonrpc": "2.0",
        "id": draw.value(_RARE_IDS),
        "method": row.name if draw.below(2) else "ping",
        "params": {"_meta": meta_of(revision), "a": draw.value(json_values(1))},
    }
    data = damage(draw.value, encoded(message))
    return [] if _is_doubtful(data) else [("damage", data)]


@functools.cache
def _mutations(revision: str) -> SearchStrategy[bytes]:
    @st.composite
    def build(draw: DrawFn) -> dict[str, Any]:
        return {**draw(_harmless(revision)), "id": draw(_RARE_IDS)}

    return malformed(st.one_of(build(), build(), notifications(revision)))


@functools.cache
def _harmless(revision: str) -> SearchStrategy[dict[str, Any]]:
    """Draw requests that call no tool and begin nothing."""
    return requests(revision).filter(lambda message: message["method"] not in WITH_EFFECT)


def _is_doubtful(data: bytes) -> bool:
    """Return True if bytes call a tool, or have a member twice.

    Readers differ in which of two members counts, so it isn't clear what a response is for.
    """
    doubled = False

    def collect(pairs: list[tuple[str, Any]]) -> None:
        nonlocal doubled
        doubled |= len({name for name, _ in pairs}) < len(pairs)

    for line in data.split(b"\n"):
        with contextlib.suppress(ValueError, RecursionError):
            json.loads(line, object_pairs_hook=collect)
    return doubled or b"tools/call" in data
