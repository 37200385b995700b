"""The opportunities of rows: what must be in a trace for a row to be judged."""

from __future__ import annotations

import re
from functools import cache
from typing import TYPE_CHECKING, Final

from msgspec import Struct

from mcp_core.trace.judge._methods import senders_of
from mcp_core.trace.judge._sides import CLIENT, SERVER, Side, other_side
from mcp_core.trace.judge.rows import ROWS

from ._registry import RULES
from ._shapes import META_ROWS, SHAPE_ROWS

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["OF_LINES", "RowOpportunity", "opportunity_of"]

# Rows that the `Judge` itself judges, line by line.
OF_LINES: Final = frozenset(
    {
        "STDIO-1",
        "SSE-2",
        "SHL-6",
        "SHL-19",
        "RPC-23",
        "RPC-25",
        "RPC-26",
        "STDIO-2",
        "STDIO-3",
        "SHL-16",
        "SHM-13",
    }
)


class RowOpportunity(Struct, frozen=True, kw_only=True):
    """The opportunity that a row needs: what must be in a trace for it to be judged.

    Attributes:
        sides: the sides that it is judged for: client, server.
        on: what it is judged on: "request", "notification", "result", "error", "response" and
            "message" for a message; "http_request" and "http_response" for the head of an HTTP
            exchange; "close" for the end of a conversation; "line" for a line of the trace.
        methods: the methods of the messages, or of the requests that they answer. Empty for all.
        only_broken: it is counted only where it is broken. Where it is kept, the row for the whole
            message is.
    """

    sides: frozenset[Side]
    on: frozenset[str]
    methods: frozenset[str]
    only_broken: bool = False


@cache
def opportunity_of(row: str) -> RowOpportunity | None:
    """Return what must be in a trace for a row to be judged, or None if it is never judged."""
    found = list(_opportunities(row))
    if not found:
        return None
    return RowOpportunity(
        sides=frozenset().union(*(each.sides for each in found)),
        on=frozenset().union(*(each.on for each in found)),
        methods=frozenset()
        if any(not each.methods for each in found)
        else frozenset().union(*(each.methods for each in found)),
        only_broken=all(each.only_broken for each in found),
    )


def _opportunities(row: str) -> Iterator[RowOpportunity]:
    """Yield the opportunities that each rule and each shape gives."""
    if row in OF_LINES:
        yield _opportunity(_of_role(row), "line")
    for rule in RULES:
        if row in rule.rows:
            sides = _of_role(row) if rule.sender is None else frozenset({rule.sender})
            yield _opportunity(sides, rule.on, frozenset(rule.methods))
    for name, patterns in SHAPE_ROWS.items():
        for pattern, rows in patterns:
            if row in rows:
                is_part = re.fullmatch(pattern, "") is None
                yield _of_shape(name, only_broken=is_part)
    if any(row in rows for _, rows in META_ROWS):
        yield _opportunity(_of_role(row), "message", only_broken=True)


def _opportunity(
    sides: frozenset[Side],
    on: str,
    methods: frozenset[str] = frozenset(),
    *,
    only_broken: bool = False,
) -> RowOpportunity:
    return RowOpportunity(sides=sides, on=frozenset({on}), methods=methods, only_broken=only_broken)


def _of_shape(name: str, *, only_broken: bool) -> RowOpportunity:
    """Return the opportunity that a shape gives, such as `<tools/list`. See `SHAPE_ROWS`."""
    if name[0] not in "<>":  # of results of several methods
        return _opportunity(frozenset({SERVER}), "result", only_broken=only_broken)
    method = name[1:]
    senders = senders_of(method)
    if name[0] == ">":
        on = "notification" if method.startswith("notifications/") else "request"
        return _opportunity(senders, on, frozenset({method}), only_broken=only_broken)
    receivers = frozenset(map(other_side, senders))
    return _opportunity(receivers, "result", frozenset({method}), only_broken=only_broken)


def _of_role(row: str) -> frozenset[Side]:
    """Return the sides that can have a row's role."""
    role = ROWS[row].role
    if role in ("client", "host"):
        return frozenset({CLIENT})
    if role in ("server", "resource server"):
        return frozenset({SERVER})
    return frozenset({CLIENT, SERVER})
