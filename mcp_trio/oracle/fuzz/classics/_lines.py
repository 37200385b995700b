"""Classic damage: texts that are no message, and batches."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from mcp_core import DIALECTS
from mcp_trio.oracle.fuzz._interoperable_json import is_json

from ._facts import LIST, WAIT, each_after, groups, opened
from ._table import kind
from ._values import LINES

if TYPE_CHECKING:
    from collections.abc import Iterator

    from mcp_trio.oracle.fuzz._case import Case, Step

    from ._facts import TargetFacts


@kind(
    "batches",
    "Batches of one, of two and of ten messages, of notifications, and of what is no message.",
    "JSON-RPC 2.0, section 6",
    "specification/2025-03-26/basic#batching",
    "modelcontextprotocol/python-sdk#934",
    "accensa/x402-facilitator-stellar#199",
)
def _batches(facts: TargetFacts) -> Iterator[Case]:
    revision = next((each for each in facts.revisions if DIALECTS[each].batches), "")
    if not revision:
        return
    ping: list[Any] = ["ping", {}, "int"]
    listed: list[Any] = ["tools/list", {}, "digits"]
    known: list[Any] = ["notifications/roots/list_changed", {}, None]
    unknown: list[Any] = ["notifications/acme", {}, None]
    calls = [
        ["tools/call", {"name": tool.name, "arguments": tool.arguments}, "int"]
        for tool in facts.tools
    ]
    batches = ([ping], [ping, listed], [ping, known, listed], [known, unknown], [ping] * 10)
    for some in (batches[:3], (*batches[3:], [*calls, ["acme/none", {}, "text"]])):
        steps: list[Step] = [("batch", each) for each in some]
        yield opened(revision, *each_after(steps, WAIT), LIST, WAIT)
    wrong: list[Any] = [[], [1, 2, 3], [[]], [{"foo": "boo"}], [None]]
    yield _damaged(revision, [json.dumps(each).encode() for each in wrong])


@kind(
    "damaged lines",
    "What is no message: other JSON, other encodings, texts that are nearly JSON, wrong members.",
    "RFC 8259, section 8.1",
    "RFC 3629, section 3",
    "JSON-RPC 2.0, section 5.1",
    "modelcontextprotocol/servers#4206",
    "stackql/stackql#668",
    "joshrotenberg/tower-mcp#795",
    "MemPalace/mempalace#503",
)
def _lines(facts: TargetFacts) -> Iterator[Case]:
    # A server may end the conversation because of the others, and then gets no further line.
    of_json = [each for each in LINES if is_json(each)]
    others = [each for each in LINES if not is_json(each)]
    for revision, group in facts.in_turn([*groups(of_json, 6), *groups(others, 6)]):
        yield _damaged(revision, group)


def _damaged(revision: str, lines: list[bytes]) -> Case:
    """Return a case that sends lines, and after each a request that must be answered."""
    steps: list[Step] = [("damage", each) for each in lines]
    return opened(revision, *each_after(steps, LIST), WAIT)
