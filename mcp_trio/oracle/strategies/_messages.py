"""Valid messages of every revision, as hypothesis strategies.

Rules of this file:

1. Methods are read from the core's `METHODS` through the dialects, members from the types, and
   missing members from `Dialect.encode`. A new method is fuzzed as soon as it is a row.
2. The JSON-RPC members, the JSON text and the ids are made here with the standard library, so that
   a bug in the core's encoder isn't repeated.

A message is a dict. You may change the dict, but not the values in it: messages share them.
"""

from __future__ import annotations

import functools
import json
from collections.abc import Mapping
from typing import Any, Final, TypeAlias

from hypothesis import strategies as st
from hypothesis.strategies import DrawFn, SearchStrategy
from msgspec import Struct

from mcp_core import ALL, DIALECTS, LATEST, LocalProtocolError, Method, Role
from mcp_core import types as t

from ._values import example, ids, structs, texts, weighted

__all__ = [
    "CLIENT_CAPABILITIES",
    "SERVER_CAPABILITIES",
    "VERSIONS",
    "messages",
    "meta_of",
    "methods",
    "notifications",
    "objects",
    "requests",
    "responses",
    "result_of",
]

Message: TypeAlias = dict[str, Any]

# The revisions of MCP, oldest first: hypothesis shrinks towards the front.
VERSIONS: Final = tuple(reversed(ALL))

# All capabilities, so that no method is rejected for a missing one.
_TASKS: Final[Mapping[str, Any]] = {"io.modelcontextprotocol/tasks": {}}
CLIENT_CAPABILITIES: Final = t.ClientCapabilities(
    roots=t.RootsCapability(list_changed=True),
    sampling=t.SamplingCapability(context={}, tools={}),
    elicitation=t.ElicitationCapability(form={}, url={}),
    tasks=t.TasksCapability(list={}, cancel={}),
    extensions=dict(_TASKS),
)
SERVER_CAPABILITIES: Final = t.ServerCapabilities(
    tools=t.ToolsCapability(list_changed=True),
    resources=t.ResourcesCapability(subscribe=True, list_changed=True),
    prompts=t.PromptsCapability(list_changed=True),
    completions={},
    logging={},
    tasks=t.TasksCapability(list={}, cancel={}),
    extensions=dict(_TASKS),
)


@functools.cache
def methods(version: str, to: Role, *, requests: bool) -> tuple[Method, ...]:
    """Return the requests or notifications that `to` receives in a revision."""
    rows = DIALECTS[version].receives[to].values()
    return tuple(row for row in rows if (row.result is not None) is requests)


@functools.cache
def objects(version: str, type: type[Struct]) -> SearchStrategy[Message]:
    """Params or results as a revision encodes them.

    They have no `_meta` and `resultType`, which belong to the message. Two of three draws give one
    of two fixed objects, with the fewest members or with all. These cost almost nothing, and most
    of a conversation doesn't depend on them.
    """

    def members_of(value: Struct) -> Message | None:
        try:
            members = json.loads(DIALECTS[version].encode(value))
        except LocalProtocolError:
            return None  # the revision cannot express it
        return {key: item for key, item in members.items() if key not in ("_meta", "resultType")}

    anything: SearchStrategy[Any] = (
        structs(type).map(members_of).filter(lambda found: found is not None)
    )
    fixed = [members_of(example(type, full=full)) for full in (False, True)]
    plain = [found for found in fixed if found is not None]
    return weighted((2, st.sampled_from(plain)), (1, anything)) if plain else anything


def meta_of(version: str) -> Message:
    """Return the `_meta` that each request to a server must carry in the revision `version`."""
    if DIALECTS[version].stateful:
        return {}
    return {
        "io.modelcontextprotocol/protocolVersion": version,
        "io.modelcontextprotocol/clientCapabilities": {},
    }


def result_of(version: str, result: Message) -> Message:
    """Return `result` with the `resultType` that the revision `version` adds."""
    kind = DIALECTS[version].result_type
    return {"resultType": kind, **result} if kind else result


@functools.cache
def requests(version: str, to: Role = Role.SERVER) -> SearchStrategy[Message]:
    """Requests that `to` receives in a revision. Some revisions have none."""
    rows = st.sampled_from(methods(version, to, requests=True) or (None,))

    @st.composite
    def build(draw: DrawFn) -> Message:
        row = draw(rows)
        assert row is not None
        meta = meta_of(version) if to is Role.SERVER else {}
        if draw(st.booleans()):
            meta["progressToken"] = draw(ids())
        params = draw(objects(version, row.params))
        if meta:
            params = {**params, "_meta": meta}
        message: Message = {"jsonrpc": "2.0", "id": draw(ids()), "method": row.name}
        return {**message, "params": params} if params else message

    return build()


@functools.cache
def notifications(version: str, to: Role = Role.SERVER) -> SearchStrategy[Message]:
    """Notifications that `to` receives in a revision."""
    rows = st.sampled_from(methods(version, to, requests=False))

    @st.composite
    def build(draw: DrawFn) -> Message:
        row = draw(rows)
        params = draw(objects(version, row.params))
        if row.params is t.CancelledParams:
            params = {**params, "requestId": draw(ids())}
        message: Message = {"jsonrpc": "2.0", "method": row.name}
        return {**message, "params": params} if params else message

    return build()


@functools.cache
def responses(version: str, to: Role = Role.CLIENT) -> SearchStrategy[Message]:
    """Responses to requests that `to` may have sent.

    The ids are the first that a connection uses.
    """
    rows = methods(version, to.other, requests=True)
    kinds = st.sampled_from([row.result for row in rows if row.result is not None] or (None,))

    @st.composite
    def build(draw: DrawFn) -> Message:
        head: Message = {"jsonrpc": "2.0", "id": draw(st.integers(1, 5))}
        kind = draw(kinds) if draw(st.integers(0, 3)) else None
        if kind is None:
            error = {"code": draw(st.integers(-32800, -31999)), "message": draw(texts())}
            return {**head, "error": error}
        return {**head, "result": result_of(version, draw(objects(version, kind)))}

    return build()


@functools.cache
def messages(version: str = LATEST, to: Role = Role.SERVER) -> SearchStrategy[Message]:
    """All messages that `to` may receive in a revision."""
    kinds = [notifications(version, to), responses(version, to)]
    if methods(version, to, requests=True):
        kinds = [requests(version, to), *kinds]
    return st.one_of(kinds)
