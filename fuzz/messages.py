"""Valid messages of every revision, as hypothesis strategies.

Rules of this file:

1. What exists is read off the core's own tables: the methods from `METHODS` through the dialects, the members from the
   types, what a revision lacks from `Dialect.encode`. So a new method is fuzzed from the day it is a row.
2. The outline of a message, its text and its ids are made here, by the standard library: a mistake in the core's encoder
   must not be repeated by its tests.

A message is a dict, to be changed by who draws it, but not in what it holds: that may be shared.
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

from .values import example, ids, shapes, texts, weighted

__all__ = [
    "CLIENT_OFFERS",
    "SERVER_OFFERS",
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

# Oldest first, as examples are made small towards the front.
VERSIONS: Final = tuple(reversed(ALL))

# Everything that can be declared, so that no method is refused for want of a capability.
_TASKS: Final[Mapping[str, Any]] = {"io.modelcontextprotocol/tasks": {}}
CLIENT_OFFERS: Final = t.ClientCapabilities(
    roots=t.RootsCapability(list_changed=True),
    sampling=t.SamplingCapability(context={}, tools={}),
    elicitation=t.ElicitationCapability(form={}, url={}),
    tasks=t.TasksCapability(list={}, cancel={}),
    extensions=dict(_TASKS),
)
SERVER_OFFERS: Final = t.ServerCapabilities(
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
    """What `to` receives in a revision."""
    rows = DIALECTS[version].receives[to].values()
    return tuple(row for row in rows if (row.result is not None) is requests)


@functools.cache
def objects(version: str, type: type[Struct]) -> SearchStrategy[Message]:
    """Params or results as a revision says them, without `_meta` and `resultType`, which belong to the message.

    Two of three are one of two, with the fewest members and with all of them: they cost next to nothing to draw, and most
    of what a conversation does, does not depend on them.
    """

    def say(value: Struct) -> Message | None:
        try:
            members = json.loads(DIALECTS[version].encode(value))
        except LocalProtocolError:
            return None  # the revision has no words for it
        return {key: item for key, item in members.items() if key not in ("_meta", "resultType")}

    anything: SearchStrategy[Any] = shapes(type).map(say).filter(lambda said: said is not None)
    fixed = [say(example(type, full=full)) for full in (False, True)]
    plain = [said for said in fixed if said is not None]
    return weighted((2, st.sampled_from(plain)), (1, anything)) if plain else anything


def meta_of(version: str) -> Message:
    """What `_meta` of each request to a server holds in a revision."""
    if DIALECTS[version].stateful:
        return {}
    return {
        "io.modelcontextprotocol/protocolVersion": version,
        "io.modelcontextprotocol/clientCapabilities": {},
    }


def result_of(version: str, result: Message) -> Message:
    """A result with what its revision stamps on it."""
    kind = DIALECTS[version].result_type
    return {"resultType": kind, **result} if kind else result


@functools.cache
def requests(version: str, to: Role = Role.SERVER) -> SearchStrategy[Message]:
    """Requests that `to` receives in a revision; there may be none of them."""
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
    """Answers to what `to` may have asked; the ids are those that a connection gives first."""
    asked = methods(version, to.other, requests=True)
    kinds = st.sampled_from([row.result for row in asked if row.result is not None] or (None,))

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
    """Anything that may be said to `to` in a revision."""
    kinds = [notifications(version, to), responses(version, to)]
    if methods(version, to, requests=True):
        kinds = [requests(version, to), *kinds]
    return st.one_of(kinds)
