"""Classic messages: ids, names, texts, numbers, nesting, many at once, and their order."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from mcp_core import ALL, DIALECTS, Role
from mcp_trio.oracle.fuzz._revisions import META

from ._facts import LIST, WAIT, call, each_after, groups, opened, request
from ._table import kind
from ._values import DEEP, IDS, LONG_TEXTS, METHODS, NUMBERS, TEXTS, TOKENS

if TYPE_CHECKING:
    from collections.abc import Iterator

    from mcp_trio.oracle.fuzz._case import Case, Step

    from ._facts import TargetFacts

JSON_RPC = "JSON-RPC 2.0, section 4"
MAX_CALLS = 16  # of a case


@kind(
    "ids",
    "Requests have ids that programs take for none, round, compare wrongly or cut.",
    JSON_RPC,
    "RFC 8259, section 6",
    "UAX #15",
    "cognizant-ai-lab/neuro-san#526",
)
def _ids(facts: TargetFacts) -> Iterator[Case]:
    for revision, group in facts.in_turn(groups(IDS, 4)):
        methods = (DIALECTS[revision].ping, "tools/list", "acme/none", "prompts/list")
        steps = [request(method, None, [id]) for method, id in zip(methods, group, strict=True)]
        yield opened(revision, *steps, WAIT)


@kind(
    "an id again",
    "A request has the id of one that was answered, which is an error until 2025-11-25.",
    "specification/2025-11-25/basic#requests",
    "janhq/jan#8435",
)
def _id_again(facts: TargetFacts) -> Iterator[Case]:
    for revision in facts.main:
        steps = [request("tools/list", None, [id]) for id in (77, 77, "again", "again")]
        yield opened(revision, *each_after(steps, WAIT), LIST)


@kind(
    "names of methods",
    "Methods that don't exist are requested, those of other revisions, and undeclared ones.",
    "JSON-RPC 2.0, section 5.1",
    "CWE-1321",
)
def _methods(facts: TargetFacts) -> Iterator[Case]:
    everything = {
        name: row
        for revision in ALL
        for role in Role
        for name, row in DIALECTS[revision].receives[role].items()
        if row.result is not None and name != "initialize"
    }
    for revision in facts.main:
        names = [*METHODS, *(each for each in everything if not facts.serves(revision, each))]
        for group in groups(names, 8):
            yield opened(revision, *map(request, group), WAIT)


@kind(
    "notifications",
    "Notifications that nobody knows, or that have the name of a request. None is answered.",
    "JSON-RPC 2.0, section 4.1",
    "damionrashford/RivalSearchMCP#5",
)
def _notifications(facts: TargetFacts) -> Iterator[Case]:
    names = ("notifications/acme", "", "acme", "ping", "tools/list", "server/discover")
    for revision in facts.main:
        steps: list[Step] = [("notify", name) for name in names]
        yield opened(revision, *each_after(steps, LIST), WAIT)
        known = ("notifications/initialized", "notifications/roots/list_changed")
        steps = [("notify", name, params) for name in known for params in ({}, {"a": 1})]
        steps += [("notify", "notifications/progress", {"progressToken": 0, "progress": 1})]
        yield opened(revision, *each_after(steps, LIST), WAIT)
        requests = [request(name) for name in (*known, "notifications/cancelled")]
        yield opened(revision, *requests, WAIT, LIST)


@kind(
    "params of another type",
    "Params are an array, a number, a text or null; a member is null.",
    "JSON-RPC 2.0, section 4.2",
    "modelcontextprotocol/python-sdk#820",
)
def _params(facts: TargetFacts) -> Iterator[Case]:
    for revision in facts.main:
        ping = DIALECTS[revision].ping
        yield opened(revision, *(request("tools/list", each) for each in ([], [1], 7, "x")), WAIT)
        nulls = ({"cursor": None}, {"cursor": 7}, {"_meta": None}, {"_meta": 7})
        steps = [request("tools/list", each, "int", "absent") for each in nulls]
        yield opened(revision, *steps, WAIT, request(ping, {"a": None, "": 1}), WAIT)


@kind(
    "texts",
    "Texts that are empty, long, beyond Latin, or look like something else.",
    "RFC 8259, section 7",
    "UAX #15",
    "MoonshotAI/kimi-code#886",
    "CWE-1321",
    "CWE-22",
)
def _texts(facts: TargetFacts) -> Iterator[Case]:
    for revision, group in facts.in_turn([*groups(TEXTS, 8), LONG_TEXTS]):
        # The first text shows that the tool is quick.
        steps = list(facts.texts_of(("a", *group)))
        if len(steps) > 1:
            yield opened(revision, *each_after(steps, WAIT), LIST)


@kind(
    "texts of every tool",
    "Each text of every tool is long, and beyond Latin.",
    "RFC 8259, section 7",
    "MoonshotAI/kimi-code#886",
)
def _texts_of_tools(facts: TargetFacts) -> Iterator[Case]:
    for revision, tool in facts.in_turn(facts.tools):
        steps = [call(tool, each) for each in tool.with_texts(("a", "\u8336\u9053", LONG_TEXTS[0]))]
        if steps:
            yield opened(revision, *each_after(steps[:MAX_CALLS], WAIT), LIST)


@kind(
    "numbers",
    "Numbers at the edges of what programs store, as arguments whose schema allows them.",
    "RFC 8259, section 6",
    "RFC 7493, section 2.2",
)
def _numbers(facts: TargetFacts) -> Iterator[Case]:
    for revision, group in facts.in_turn(groups(NUMBERS, 4)):
        pairs = [(tool, tool.with_number(each)) for each in group for tool in facts.tools]
        steps = [call(tool, arguments) for tool, arguments in pairs if arguments is not None]
        if steps:
            yield opened(revision, *each_after(steps[:12], WAIT))


@kind(
    "deep values",
    "Arrays in a hundred levels, where any value may stand.",
    "RFC 8259, section 9",
)
def _deep(facts: TargetFacts) -> Iterator[Case]:
    for revision in facts.main:
        deep_objects: Any = 1
        for _ in range(100):
            deep_objects = {"a": deep_objects}
        steps = [request("acme/none", {"a": each}) for each in (DEEP, deep_objects)]
        yield opened(revision, *each_after(steps, WAIT), LIST)


@kind(
    "members of _meta",
    "Keys of `_meta` that nobody knows, trace context, and progress tokens of every type.",
    "specification/2025-11-25/basic#meta",
    "modelcontextprotocol/python-sdk#176",
    "twentyhq/twenty#24559",
)
def _metas(facts: TargetFacts) -> Iterator[Case]:
    trace = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
    for revision, group in facts.in_turn(groups(TOKENS, 3)):
        steps = [
            request(
                "tools/call",
                {"name": tool.name, "arguments": tool.largest, "_meta": {"progressToken": token}},
            )
            for token in group
            for tool in facts.tools[:4]
        ]
        if steps:
            yield opened(revision, *each_after(steps, WAIT))
    for revision in facts.main:
        metas: list[Any] = [
            {"com.example/a": {"b": [None]}, "a": 1, "__proto__": {}},
            {"traceparent": trace, "tracestate": "a=b", "baggage": "a=b"},
            {"traceparent": "", "tracestate": 7},
            {META + "related-task": {"taskId": "mcp-trio-fuzz-none"}},
        ]
        yield opened(revision, *(request("tools/list", {"_meta": each}) for each in metas), WAIT)


@kind(
    "_meta of a request",
    "A request without a handshake lacks a part of its `_meta`, or names another revision.",
    "specification/2026-07-28/basic#meta",
    "specification/2026-07-28/basic/versioning",
)
def _request_metas(facts: TargetFacts) -> Iterator[Case]:
    revision = facts.of_requests()
    if not revision:
        return
    methods = (DIALECTS[revision].ping, "tools/list")
    for method in methods:
        steps = [request(method, None, "int", how) for how in ("absent", "bare", "old", "whole")]
        yield opened(revision, *each_after(steps, WAIT))
    info = {META + "clientInfo": {"name": "mcp-trio fuzz", "version": "1"}}
    whole = {META + "clientCapabilities": {}, **info}
    others = [each for each in ALL if DIALECTS[each].stateful]
    for group in groups(["", "2199-01-01", "latest", "1.0", *others, 7, None], 4):
        metas = [{META + "protocolVersion": version, **whole} for version in group]
        steps = [request("tools/list", {"_meta": meta}, "int", "absent") for meta in metas]
        yield opened(revision, *each_after(steps, WAIT))


@kind(
    "many at once",
    "Many requests are open at once, or one follows the other, and none is lost.",
    "JSON-RPC 2.0, section 5",
    "modelcontextprotocol/inspector#2028",
)
def _bursts(facts: TargetFacts) -> Iterator[Case]:
    for revision in facts.main:
        ping = DIALECTS[revision].ping
        yield opened(revision, ("burst", 60 if facts.http else 250, ping, {}), WAIT, LIST)
    for revision, tool in facts.in_turn(facts.tools):
        params = {"name": tool.name, "arguments": tool.largest}
        yield opened(revision, ("burst", 30, "tools/call", params), WAIT, LIST)
