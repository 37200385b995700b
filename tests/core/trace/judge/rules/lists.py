"""Conversations for the rules on lists that change, on URIs, and on what a client is asked for."""

from __future__ import annotations

from typing import Any, Final

from tests.core.trace.judge.conversations import C, S, Sent, Start, ask, at, error, notify, result
from tests.core.trace.judge.rules.case import Case, case
from tests.core.trace.judge.rules.messages import LIST, PING, SAMPLE, SERVED, TEXT, initialize

BEGIN: Final = Start("2025-11-25").messages()
LATER: Final = [at(5, C(notify("x")))]
SCHEMA: Final = {"type": "object"}


def tools(id: int, *names: str) -> list[Sent]:
    found = [{"name": name, "inputSchema": SCHEMA} for name in names]
    return [C(ask(id, "tools/list")), S(result(id, tools=found))]


def pages(id: int, *names: str) -> list[Sent]:
    """Return a list of two pages."""
    found = [{"name": name, "inputSchema": SCHEMA} for name in names]
    return [
        C(ask(id, "tools/list")),
        S(result(id, tools=found[:1], nextCursor="c")),
        C(ask(id + 1, "tools/list", cursor="c")),
        S(result(id + 1, tools=found[1:])),
    ]


def turns(*rounds: str, first: int = 1) -> list[Sent]:
    """Return pages of one tool each. A word of two letters: a page's cursor, and the next one."""
    found: list[Sent] = []
    for id, each in enumerate(rounds, first):
        cursor, following = each[0], each[1]
        asked = ask(id, "tools/list", cursor=cursor) if cursor != "-" else ask(id, "tools/list")
        more = {"nextCursor": following} if following != "-" else {}
        tool = {"name": f"t{cursor}", "inputSchema": SCHEMA}
        found += [C(asked), S(result(id, tools=[tool], **more))]
    return found


def two_pages(id: int, method: str, first: dict[str, Any], second: dict[str, Any]) -> list[Sent]:
    """Return a list of two pages with an entry each."""
    member = {"resources/templates/list": "resourceTemplates"}.get(
        method, method.split("/", maxsplit=1)[0]
    )
    return [
        C(ask(id, method)),
        S(result(id, **{member: [first], "nextCursor": "c"})),
        C(ask(id + 1, method, cursor="c")),
        S(result(id + 1, **{member: [second]})),
    ]


def one_page(method: str, *entries: dict[str, Any]) -> list[Sent]:
    member = {"resources/templates/list": "resourceTemplates"}.get(
        method, method.split("/", maxsplit=1)[0]
    )
    return [C(ask(1, method)), S(result(1, **{member: list(entries)}))]


def prompts(id: int, *names: str) -> list[Sent]:
    found = [{"name": name} for name in names]
    return [C(ask(id, "prompts/list")), S(result(id, prompts=found))]


def resources(id: int, *uris: str) -> list[Sent]:
    found = [{"uri": uri, "name": "n"} for uri in uris]
    return [C(ask(id, "resources/list")), S(result(id, resources=found))]


def roots(id: int, *uris: str) -> list[Sent]:
    return [S(ask(id, "roots/list")), C(result(id, roots=[{"uri": uri} for uri in uris]))]


def changed(what: str) -> Sent:
    return S(notify(f"notifications/{what}/list_changed"))


def prompt(**resource: Any) -> list[Sent]:
    content = {"type": "resource", "resource": {"text": "x", **resource}}
    messages = [{"role": "user", "content": content}]
    return [C(ask(1, "prompts/get", name="p")), S(result(1, messages=messages))]


def sample(mode: str) -> Sent:
    tool = {"name": "t", "inputSchema": SCHEMA}
    params = {**SAMPLE["params"], "tools": [tool], "toolChoice": {"mode": mode}}
    return S(ask(1, "sampling/createMessage", **params))


def sampled(*, uses_tool: bool, **members: Any) -> Sent:
    use = {"type": "tool_use", "id": "u", "name": "t", "input": {}}
    content: Any = [use] if uses_tool else TEXT[0]
    return C(result(1, **{"role": "assistant", "content": content, "model": "m", **members}))


USE: Final = {"type": "tool_use", "id": "u", "name": "t", "input": {}}
UNBALANCED: Final = S(
    ask(
        1,
        "sampling/createMessage",
        maxTokens=1,
        messages=[{"role": "assistant", "content": [USE]}],
    )
)


def form(name: str) -> Sent:
    schema = {"type": "object", "properties": {name: {"type": "string"}}}
    return S(ask(1, "elicitation/create", message="m", requestedSchema=schema))


def page(url: str) -> Sent:
    params = {"mode": "url", "message": "m", "elicitationId": "e", "url": url}
    return S(ask(1, "elicitation/create", **params))


def asking(method: str, **params: Any) -> list[Sent]:
    """Return a round in which a server of 2026-07-28 asks for something."""
    asked = {"k": {"method": method, "params": params}}
    return [
        C(ask(1, "tools/call", name="t")),
        S(result(1, resultType="input_required", requestState="s", inputRequests=asked)),
    ]


def given(**response: Any) -> Sent:
    params = {"requestState": "s", "inputResponses": {"k": response}}
    return C(ask(2, "tools/call", name="t", **params))


NESTED: Final = asking(
    "sampling/createMessage",
    **SAMPLE["params"],
    tools=[{"name": "t", "inputSchema": SCHEMA}],
    toolChoice={"mode": "none"},
)
MESSAGE: Final = {"role": "assistant", "model": "m"}
URL: Final = {"mode": "url", "message": "m"}
STATE: Final = C(ask(1, "tools/call", name="t", requestState="z"))

X: Final = {"uri": "x:a", "name": "n"}
OTHER_X: Final = {"uri": "x:a", "name": "m"}
TEMPLATE: Final = {"uriTemplate": "x:{a}", "name": "n"}
P: Final = {"name": "p"}
OTHER_P: Final = {"name": "p", "description": "d"}

CASES: Final[list[Case]] = [
    # Circles of pages: certain only once all of it was seen again
    case("PAGE-1", "2025-11-25", turns("-a", "ab", "ba", "ab", "ba"), turns("-a", "ab", "b-")),
    case(
        "PAGE-1",
        "2025-11-25",
        turns("-a", "ab", "bc", "cd", "db", "bc", "cd", "db"),
        # The same list twice, a page twice, and a list that has got shorter.
        turns("-a", "ab", "b-", "-a", "ab", "ab", "b-", "a-"),
        [*BEGIN, *turns("-a")],
    ),
    case("PAGE-1", "2025-11-25", turns("-a", "ab", "ba"), turns("-a", "ab"), is_certain=False),
    case(
        "PAGE-1",
        "2025-11-25",
        turns("-a", "ab", "ba", "ba", "ba"),
        [*turns("-a", "ab"), changed("tools"), *turns("ba", first=3)],
        is_certain=False,
    ),
    # Names on several pages, certain only if they are there each time
    case(
        "TOOL-19",
        "2025-11-25",
        [*pages(1, "a", "a"), *pages(3, "a", "a")],
        [*pages(1, "a", "b"), *pages(3, "a", "b")],
        [*BEGIN, *two_pages(1, "prompts/list", P, {"name": "q"})],
    ),
    case("TOOL-19", "2025-11-25", pages(1, "a", "a"), pages(1, "a", "b"), is_certain=False),
    case(
        "RES-15",
        "2025-11-25",
        one_page("resources/list", X, OTHER_X),
        one_page("resources/list", X, {**X, "uri": "x:b"}),
        [*BEGIN, *resources(1)],
    ),
    case(
        "RES-15",
        "2025-11-25",
        [
            *two_pages(1, "resources/list", X, OTHER_X),
            *two_pages(3, "resources/list", X, OTHER_X),
        ],
        two_pages(1, "resources/list", X, {**X, "uri": "x:b"}),
    ),
    case(
        "RES-15",
        "2025-11-25",
        one_page("resources/list", X, X),
        one_page("resources/templates/list", TEMPLATE),
        is_certain=False,
    ),
    case(
        "RES-15",
        "2025-11-25",
        one_page("resources/templates/list", TEMPLATE, {**TEMPLATE, "name": "m"}),
        one_page("resources/list", X),
        is_certain=False,
    ),
    case(
        "PRM-8",
        "2025-11-25",
        one_page("prompts/list", P, OTHER_P),
        one_page("prompts/list", P),
        [*BEGIN, *prompts(1)],
    ),
    case(
        "PRM-8",
        "2025-11-25",
        [*two_pages(1, "prompts/list", P, OTHER_P), *two_pages(3, "prompts/list", P, OTHER_P)],
        two_pages(1, "prompts/list", P, {"name": "q"}),
    ),
    case(
        "PRM-8",
        "2025-11-25",
        two_pages(1, "prompts/list", P, P),
        two_pages(1, "prompts/list", P, {"name": "q"}),
        is_certain=False,
    ),
    case(
        "TOOL-5",
        "2026-07-28",
        [*tools(1, "a", "b"), *tools(2, "b", "a")],
        tools(1, "a") + tools(2, "a"),
    ),
    case(
        "TOOL-5",
        "2026-07-28",
        [*pages(1, "a", "b"), *tools(3, "b", "a")],
        [*pages(1, "a", "b"), *tools(3, "a", "b")],
        pages(1, "a", "b"),
    ),
    # Changes
    case(
        "TOOL-23",
        "2025-11-25",
        [*tools(1, "a"), *tools(2, "b"), *LATER],
        [*tools(1, "a"), changed("tools"), *tools(2, "b"), *LATER],
        [*BEGIN, *tools(1, "a"), *tools(2, "a"), *LATER],
        side="server",
    ),
    case(
        "TOOL-23",
        "2025-11-25",
        [*pages(1, "a", "b"), *pages(3, "a", "c")],
        [*tools(1, "a"), *tools(2, "b"), changed("tools"), *LATER],
        is_certain=False,
        side="server",
    ),
    case(
        "PRM-5",
        "2025-11-25",
        [*prompts(1, "a"), *prompts(2, "b"), *LATER],
        [*prompts(1, "a"), changed("prompts"), *prompts(2, "b"), *LATER],
        side="server",
    ),
    case(
        "RES-14",
        "2025-11-25",
        [*resources(1, "x:a"), *resources(2, "x:b"), *LATER],
        [*resources(1, "x:a"), changed("resources"), *resources(2, "x:b"), *LATER],
        side="server",
    ),
    case(
        "ROOT-4",
        "2025-11-25",
        [*roots(1, "file:///a"), *roots(2, "file:///b"), *LATER],
        [*roots(1, "file:///a"), C(notify("notifications/roots/list_changed")), *LATER],
        side="client",
    ),
    # URIs
    case(
        "RES-11",
        "2025-11-25",
        resources(1, "x:a b"),
        resources(1, "x:a%20b"),
        [*BEGIN, *resources(1)],
    ),
    case(
        "CONT-8",
        "2025-11-25",
        prompt(uri="x:1"),
        prompt(uri="x:1", mimeType="text/plain"),
        [*BEGIN, *prompts(1, "a")],
    ),
    case(
        "CONT-8", "2025-11-25", prompt(uri="1", mimeType="a/b"), prompt(uri="x:1", mimeType="a/b")
    ),
    # Sampling
    case(
        "SAMP-10",
        "2025-11-25",
        [sample("required"), sampled(uses_tool=False)],
        [sample("required"), sampled(uses_tool=True)],
        [*BEGIN, sample("auto"), sampled(uses_tool=False)],
    ),
    case(
        "SAMP-10",
        "2025-11-25",
        [sample("required"), sampled(uses_tool=False, stopReason="maxTokens")],
        [sample("none"), sampled(uses_tool=False)],
        is_certain=False,
    ),
    case(
        "SAMP-10",
        "2026-07-28",
        [*NESTED, given(**MESSAGE, content=USE)],
        [*NESTED, given(**MESSAGE, content=TEXT[0])],
        LIST,
    ),
    case(
        "SAMP-11",
        "2025-11-25",
        [UNBALANCED, sampled(uses_tool=False)],
        [UNBALANCED, C(error(1))],
        [*BEGIN, sample("none"), sampled(uses_tool=False)],
        allowed=("SAMP-8",),
        pass_allowed=("SAMP-8",),
    ),
    # Elicitation
    case(
        "ELIC-2",
        "2025-11-25",
        [C(initialize(capabilities={"elicitation": {"x": {}}}))],
        [C(initialize(capabilities={"elicitation": {}}))],
        [C(initialize())],
        start=None,
        is_certain=False,
    ),
    case(
        "ELIC-12",
        "2025-11-25",
        [form("password")],
        [form("name")],
        [*BEGIN, *PING],
        is_certain=False,
    ),
    case(
        "ELIC-12",
        "2026-07-28",
        asking("elicitation/create", **form("apiKey").message["params"]),
        asking("elicitation/create", **form("name").message["params"]),
        LIST,
        is_certain=False,
    ),
    case("ELIC-19", "2025-11-25", [page("https://u:p@a/")], [page("https://a/@")], [*BEGIN, *PING]),
    case(
        "ELIC-19",
        "2026-07-28",
        asking("elicitation/create", **URL, url="https://u:p@a/"),
        asking("elicitation/create", **URL, url="https://a/"),
        LIST,
    ),
    case(
        "MRTR-13",
        "2026-07-28",
        [STATE, S(result(1, content=TEXT))],
        [*SERVED, STATE, S(error(1))],
        LIST,
        is_certain=False,
        allowed=("MRTR-8",),
        pass_allowed=("MRTR-8",),
    ),
]
