"""Classic beginnings and ends of conversations."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from mcp_core import ALL, DIALECTS

from ._facts import LIST, WAIT, call, each_after, groups, opened, request
from ._table import kind

if TYPE_CHECKING:
    from collections.abc import Iterator

    from mcp_trio.oracle.fuzz._case import Case, Step

    from ._facts import TargetFacts

LIFECYCLE = "specification/2025-11-25/basic/lifecycle#initialization"
_INFO = {"name": "mcp-trio fuzz", "version": "1"}


@kind(
    "beginnings",
    "The handshake comes twice, late, half or for a revision that doesn't exist.",
    LIFECYCLE,
    "modelcontextprotocol/typescript-sdk#179",
    "agentfront/frontmcp#474",
    "awslabs/mcp#207",
)
def _beginnings(facts: TargetFacts) -> Iterator[Case]:
    revision = facts.of_handshake()
    if not revision:
        revision = facts.of_requests()
        first = next(each for each in ALL if DIALECTS[each].stateful)
        params = {"protocolVersion": first, "capabilities": {}, "clientInfo": _INFO}
        yield opened(revision, LIST, WAIT, request("initialize", params), WAIT, LIST, WAIT)
        return
    for how in ("twice", "late", "half", "unknown"):
        yield opened(revision, LIST, WAIT, LIST, WAIT, how=how)
    early: list[Step] = [request("ping"), WAIT, ("notify", "notifications/initialized"), LIST, WAIT]
    whole = {"protocolVersion": revision, "capabilities": {}, "clientInfo": _INFO}
    yield opened(revision, *early, request("initialize", whole), WAIT, LIST, WAIT, how="none")


@kind(
    "params of initialize",
    "The first request has a revision, capabilities or a client's name of another type, or none.",
    LIFECYCLE,
)
def _params(facts: TargetFacts) -> Iterator[Case]:
    revision = facts.of_handshake()
    if not revision:
        return
    whole: dict[str, Any] = {
        "protocolVersion": revision,
        "capabilities": {},
        "clientInfo": _INFO,
    }
    odd: list[dict[str, Any]] = [
        {**whole, "protocolVersion": each} for each in ("", "1.0", "latest", 7, None)
    ]
    odd += [{key: value for key, value in whole.items() if key != each} for each in whole]
    odd += [
        {**whole, "capabilities": None},
        {**whole, "capabilities": {"mcp-trio-fuzz": {}, "experimental": {"a": {}}}},
        {**whole, "clientInfo": {**_INFO, "title": "a", "icons": [], "mcp-trio-fuzz": 1}},
    ]
    for group in groups(odd, 6):
        steps = [request("initialize", each) for each in group]
        yield opened(revision, *each_after(steps, WAIT), how="none")


@kind(
    "revisions in turn",
    "One client after the other asks for each revision, also for those that the server lacks.",
    "specification/2025-11-25/basic/lifecycle#version-negotiation",
    "specification/2026-07-28/basic/versioning",
    "modelcontextprotocol/rust-sdk#1142",
)
def _revisions(facts: TargetFacts) -> Iterator[Case]:
    stateful = [each for each in ALL if DIALECTS[each].stateful]
    known = [each for each in stateful if each in facts.revisions]
    if not known:
        return
    asked = [*stateful, *known[:1]]
    steps: Case = []
    for revision in asked:
        steps += [("open", revision, "whole", "all"), LIST, WAIT, ("reconnect",)]
    yield steps[:-1]
    for revision in known[1:]:
        calls = [call(tool, None, "progress") for tool in facts.tools]
        yield opened(revision, ("page", "tools/list", "all"), *calls, WAIT)


@kind(
    "ends",
    "The client leaves while requests run, and comes back.",
    "specification/2025-11-25/basic/lifecycle#shutdown",
    "modelcontextprotocol/python-sdk#3300",
)
def _ends(facts: TargetFacts) -> Iterator[Case]:
    for revision in facts.main:
        again: list[Step] = [("reconnect",), ("open", revision, "whole", "all"), LIST, WAIT]
        calls = [call(tool, tool.largest) for tool in facts.tools[:3]]
        yield opened(revision, LIST, WAIT, ("disconnect",))
        yield opened(revision, *calls, *again)
