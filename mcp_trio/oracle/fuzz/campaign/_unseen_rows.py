"""The rows that a run had no opportunity to judge, and why.

The reasons are tried in this order, and the first one that holds is given:

1. *revision*: the target speaks none of the row's revisions.
2. *transport*: the row is about another transport.
3. *check only*: `mcp-trio check` alone judges it, at a conversation's end; *broken only*: the row
   is counted only where it is broken.
4. *author*: what the row is about is in the author's hands, such as the server's authorization.
5. *capability*: the target doesn't declare what the row's methods need.
6. *tools*: no tool may be called, and the row is about calls.
7. *target*: only the target can begin it, such as a notification, and it hasn't; or the row is
   about what only some targets have, such as a second page.
8. *not drawn*: no case of the run has led to it.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple, TypeAlias

from mcp_core import DIALECTS, Role
from mcp_core.trace import ROWS, opportunity_of

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from mcp_core.trace import Requirement, RowOpportunity
    from mcp_trio.oracle.fuzz._probe import Offers

    from ._campaign import Campaign

__all__ = [
    "RowReason",
    "TargetView",
    "UnseenRow",
    "counted_reasons",
    "judged_side_rows",
    "rows_of_run",
    "unseen_rows",
]

RowReason: TypeAlias = Literal[
    "revision",
    "transport",
    "broken only",
    "check only",
    "author",
    "capability",
    "tools",
    "target",
    "not drawn",
]

_OF_HTTP: Final = ("HTTP", "SSE", "SHL", "SHM", "HDR", "AR")
# Families of rows, by how their ids begin, that need what an author decides.
_OF_AUTHORS: Final[Mapping[str, str]] = {
    "AR": "it needs a server with authorization, and a user who logs in",
    "SSE": "it is about the HTTP+SSE transport, which is judged in recorded conversations only",
}
# Families of rows about what a target decides to send.
_OF_TARGETS: Final[Mapping[str, str]] = {
    "CONT": "no result has had such content",
    "ELIC": "no tool has asked the user for this",
    "SAMP": "no tool has asked the client's model",
    "ROOT": "no tool has asked for roots",
}
# Rows about what only some targets have. Every run asks for it, so another seed brings no more.
_ROWS_OF_TARGETS: Final[Mapping[str, str]] = {
    **dict.fromkeys(
        ("META-2", "META-3", "META-13", "META-15"), "no message has had such a `_meta`"
    ),
    **dict.fromkeys(("MRTR-2", "MRTR-3", "MRTR-4", "MRTR-5"), "no result has required input"),
    "PAGE-1": "no list has a second page",
    **dict.fromkeys(("SHL-6", "SHL-16", "SHL-19"), "no event has an id"),
    "SHL-21": "no response has had a session id",
    "TOOL-26": "no result has had an embedded resource",
}
# Families of rows that only a call can bring.
_OF_CALLS: Final = ("TOOL", "CONT", "PROG", "TSK", "TX", "MRTR", "ELIC", "SAMP", "ROOT", "CXL")
_TASKS: Final = ("TSK", "TX")


class UnseenRow(NamedTuple):
    """A row that had no opportunity.

    Attributes:
        row: the row.
        reason: the kind of the reason.
        why: the reason, as a clause.
    """

    row: Requirement
    reason: RowReason
    why: str


class TargetView(NamedTuple):
    """A target, as far as the reasons depend on it.

    Attributes:
        side: the target's side.
        transport: stdio or http.
        revisions: those it speaks.
        capabilities: what a server declares, by revision.
        calls_tools: at least one tool may be called.
        lists_tools: a server has at least one tool.
    """

    side: Literal["client", "server"]
    transport: str
    revisions: Sequence[str]
    capabilities: Mapping[str, Mapping[str, Any]]
    calls_tools: bool
    lists_tools: bool = True


def judged_side_rows(side: Literal["client", "server"]) -> list[str]:
    """Return the ids of all rows that can be judged in what a side sends."""
    found = []
    for row in ROWS:
        opportunity = opportunity_of(row)
        if opportunity is not None and side in opportunity.sides:
            found.append(row)
    return found


def unseen_rows(opportunities: Mapping[str, int], target: TargetView) -> list[UnseenRow]:
    """Return the rows about a target that had no opportunity, each with the reason.

    Args:
        opportunities: how often each row was judged.
        target: the target.
    """
    found = []
    for id in judged_side_rows(target.side):
        opportunity = opportunity_of(id)
        if opportunities.get(id) or opportunity is None:
            continue
        reason, why = _reason(ROWS[id], opportunity, target)
        found.append(UnseenRow(ROWS[id], reason, why))
    return found


def rows_of_run(campaign: Campaign, offers: Offers) -> list[UnseenRow]:
    """Return the rows that a finished run had no opportunity to judge. See `unseen_rows`."""
    target = campaign.target
    view = TargetView(
        side=campaign.side,
        transport=getattr(target, "way", target.kind),
        revisions=offers.revisions,
        capabilities=getattr(offers, "capabilities", {}),
        calls_tools=campaign.calls_tools,
        lists_tools=bool(offers.tools),
    )
    return unseen_rows(campaign.opportunities, view)


def _reason(
    row: Requirement, opportunity: RowOpportunity, target: TargetView
) -> tuple[RowReason, str]:
    family = row.id.partition("-")[0]
    revisions = [each for each in target.revisions if each in row.revisions]
    if not revisions:
        return "revision", f"the {target.side} doesn't speak {_listed(row.revisions)}"
    if target.transport != "http" and (
        family in _OF_HTTP or opportunity.on <= {"http_request", "http_response"}
    ):
        return "transport", "it is about HTTP"
    if target.transport == "http" and family == "STDIO":
        return "transport", "it is about stdio"
    if target.side == "server" and opportunity.on <= {"close"} and row.id != "STDIO-11":
        return "check only", "the end of a conversation is judged by `mcp-trio check` only"
    if opportunity.only_broken:
        return "broken only", "it is counted only where it is broken"
    if family in _OF_AUTHORS:
        return "author", _OF_AUTHORS[family]
    if target.side == "server":
        lacking = _undeclared(row, opportunity.methods, revisions, target)
        if lacking:
            return "capability", f"the server doesn't declare {lacking}"
        if not target.calls_tools and family in _OF_CALLS:
            if not target.lists_tools:
                return "target", "the server lists no tool"
            return "tools", "no tool may be called: --allow-tool NAME or --allow-all"
        why = _ROWS_OF_TARGETS.get(row.id) or _OF_TARGETS.get(family)
        if why:
            return "target", why
    return _not_happened(opportunity, target.side)


def _undeclared(
    row: Requirement, methods: Collection[str], revisions: Sequence[str], target: TargetView
) -> str:
    """Return the capability that a row's requests need and no revision has, or ""."""
    lacking = ""
    for revision in revisions:
        declared = target.capabilities.get(revision, {})
        if row.id.startswith(_TASKS) and not _declares_tasks(declared):
            lacking = lacking or "tasks"
            continue
        received = DIALECTS[revision].receives[Role.SERVER]
        known = [received[each] for each in methods if each in received]
        paths = [each.needs for each in known]
        if not methods or len(known) < len(methods) or any(_has(declared, each) for each in paths):
            return ""
        lacking = lacking or ".".join(paths[0])
    return lacking


def _declares_tasks(declared: Mapping[str, Any]) -> bool:
    extensions = declared.get("extensions")
    has_extension = isinstance(extensions, dict) and any(
        each.endswith("/tasks") for each in extensions
    )
    return "tasks" in declared or has_extension


def _has(declared: Mapping[str, Any], path: Sequence[str]) -> bool:
    found: Any = declared
    for name in path:
        if not isinstance(found, dict) or name not in found:
            return False
        found = found[name]
    return True


def _not_happened(
    opportunity: RowOpportunity, side: Literal["client", "server"]
) -> tuple[RowReason, str]:
    """Return the reason of a row that could have had an opportunity."""
    named = _listed(sorted(opportunity.methods))
    if opportunity.on <= {"request", "notification"}:
        return "target", f"the {side} has sent no {named or 'request or notification of its kind'}"
    if opportunity.on <= {"error"}:
        return "target", f"the {side} has sent no such error{f' to {named}' if named else ''}"
    what = f"response to {named}" if named else "message"
    return "not drawn", f"no case has brought such a {what}"


def _listed(names: Collection[str]) -> str:
    shown = list(names)[:3]
    return ", ".join(shown) + (", ..." if len(names) > len(shown) else "")


def counted_reasons(rows: Sequence[UnseenRow]) -> str:
    """Return how many rows each reason has, as a list of words."""
    counts = Counter(each.reason for each in rows)
    return ", ".join(f"{count} {reason}" for reason, count in counts.most_common())
