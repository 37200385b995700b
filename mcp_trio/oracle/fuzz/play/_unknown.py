"""Results for what doesn't exist: methods, tools, prompts, resources and cursors made up here.

A trace can't show that something doesn't exist: it may only not be listed. The fuzzer knows it of
the names that it has made up itself.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final

from msgspec.structs import replace

from mcp_core.trace import ROWS
from mcp_trio.oracle.fuzz._call_guard import INVENTED_METHODS, UNKNOWN_TOOLS, UNKNOWN_URI
from mcp_trio.oracle.fuzz._fault import row_fault
from mcp_trio.oracle.fuzz._interoperable_json import shown_value
from mcp_trio.oracle.fuzz._revisions import META

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from mcp_trio.oracle.fuzz._fault import TargetFault
    from mcp_trio.oracle.fuzz._sent_request import SentRequest

__all__ = ["INVENTED_CURSOR", "served_cursor", "served_unknown", "unasked_updates"]

INVENTED_CURSOR: Final = "bm90IGEgY3Vyc29y"  # "not a cursor" in base64
# An empty name is left out: it can be a wildcard.
_NAMES: Final = tuple(each for each in UNKNOWN_TOOLS if each)


def served_unknown(request: SentRequest, revision: str) -> TargetFault | None:
    """Return the fault of a result for something that doesn't exist, or None."""
    result = request.answer.get("result") if request.answer is not None else None
    params = request.message.get("params")
    if request.method in INVENTED_METHODS and request.answer and "result" in request.answer:
        method = request.method[:_SHOWN]
        return _fault("ERR-1", request, revision, f"the method {method}, which does not exist")
    if not isinstance(result, dict) or not isinstance(params, dict):
        return None
    if request.method == "prompts/get" and params.get("name") in _NAMES:
        what = f"the prompt {shown_value(params['name'])}, which does not exist"
        return _fault("PRM-4", request, revision, what)
    if request.method == "tools/call" and params.get("name") in _NAMES:
        # Servers of several SDKs say by `isError` that there is no such tool.
        is_served = result.get("resultType", "complete") == "complete" and "task" not in params
        if not is_served or result.get("isError") is True:
            return None
        what = f"the tool {shown_value(params['name'])}, which does not exist"
        return _fault("TOOL-17", request, revision, what)
    if request.method == "resources/read" and params.get("uri") == UNKNOWN_URI:
        if result.get("contents") != []:
            return None
        row = next(each for each in ("RES-9", "RES-7") if _holds(each, revision))
        what = f"the resource {UNKNOWN_URI}, which does not exist"
        return _fault(row, request, revision, what, "has empty contents")
    return None


_SHOWN: Final = 80  # characters of a method


def _holds(row: str, revision: str) -> bool:
    return revision in ROWS[row].revisions


def _fault(
    row: str, request: SentRequest, revision: str, what: str, has: str = "has a result"
) -> TargetFault:
    fault = row_fault(row, request.method, f"{what}, {has}", revision)
    return replace(fault, sent=json.dumps(request.message))


def served_cursor(request: SentRequest, given: Iterable[str], revision: str) -> TargetFault | None:
    """Return the fault of a page for an invented cursor, or None.

    Args:
        request: asks for the page.
        given: the cursors that the server has given for the list. If there is none, it may have no
            pages, and so no use for cursors.
        revision: the conversation's revision.
    """
    known = set(given)
    is_served = request.answer is not None and "result" in request.answer
    if not known or INVENTED_CURSOR in known or not is_served:
        return None
    return _fault("PAGE-6", request, revision, "the cursor of a page, which was made up")


def unasked_updates(
    updates: Iterable[Mapping[str, Any]], requests: Iterable[SentRequest], revision: str
) -> TargetFault | None:
    """Return the fault of an update for a subscription to what doesn't exist, or None.

    An update can be about a part of the resource that was subscribed to, which no URI shows. What
    doesn't exist has no parts.

    Args:
        updates: the params of `notifications/resources/updated`.
        requests: the requests of the case.
        revision: the conversation's revision.
    """
    asked = {each.id: each for each in requests if each.method == "subscriptions/listen"}
    for params in updates:
        meta, uri = params.get("_meta"), params.get("uri")
        id = meta.get(META + "subscriptionId") if isinstance(meta, dict) else None
        request = asked.get(id) if isinstance(id, str | int) else None
        given = request.message.get("params") if request is not None else None
        wanted = given.get("notifications") if isinstance(given, dict) else None
        uris = wanted.get("resourceSubscriptions") if isinstance(wanted, dict) else None
        if request is None or uris != [UNKNOWN_URI] or not isinstance(uri, str):
            continue
        if not uri.startswith(UNKNOWN_URI):
            what = f"the subscription to {UNKNOWN_URI}, which does not exist"
            has = f"brings an update of {shown_value(uri)}"
            return _fault("SUB-2", request, revision, what, has)
    return None
