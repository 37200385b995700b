"""Conversations for the rules on errors."""

from __future__ import annotations

from typing import Any, Final

from tests.core.trace.judge.conversations import C, S, Sent, Start, ask, error, result
from tests.core.trace.judge.rules.case import Case, case
from tests.core.trace.judge.rules.lists import changed
from tests.core.trace.judge.rules.messages import LIST, NOTHING, PING, SERVED, TEXT, discovered

BEGIN: Final = Start("2025-11-25").messages()
X: Final = C(ask(1, "x"))
# A tool with one required integer.
SCHEMA: Final = {"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"]}
TOOL: Final = {"name": "t", "inputSchema": SCHEMA}
TOOLS: Final = [C(ask("l", "tools/list")), S(result("l", tools=[TOOL]))]
# A tool with optional arguments: one of two words, a list, and a boolean.
WORD_SCHEMA: Final = {
    "type": "object",
    "properties": {
        "a": {"type": "string", "enum": ["x", "y"]},
        "b": {"type": "array"},
        "c": {"type": "boolean"},
    },
}
WORDS: Final = [
    C(ask("l", "tools/list")),
    S(result("l", tools=[{"name": "t", "inputSchema": WORD_SCHEMA}])),
]
CALL: Final = C(ask(1, "tools/call", name="t", arguments={"a": 1}))
# Servers convert values: 5 to [5], {} to a text, and an unknown word to a known one.
CONVERTED: Final[list[dict[str, Any]]] = [
    *({"a": {}}, {"a": "z"}, {"a": " X"}),
    *({"b": 5}, {"b": "[]"}, {"c": []}),
]
WRONG_CALL: Final = C(ask(1, "tools/call", name="t", arguments={}))
CALLED: Final = S(result(1, content=TEXT))
FAILED: Final = S(result(1, content=TEXT, isError=True))
PROMPT: Final = {"name": "p", "arguments": [{"name": "a", "required": True}]}
PROMPTS: Final = [C(ask("l", "prompts/list")), S(result("l", prompts=[PROMPT]))]
# One resource, and no template.
RESOURCES: Final = [
    C(ask("l", "resources/list")),
    S(result("l", resources=[{"uri": "x:1", "name": "x"}])),
    C(ask("m", "resources/templates/list")),
    S(result("m", resourceTemplates=[])),
]
READ: Final = C(ask(1, "resources/read", uri="x:2"))
ROOTS: Final = S(ask(1, "roots/list"))
ASKING: Final = {"a": {"method": "roots/list"}, "b": {"method": "roots/list"}}
ROUND: Final = [
    C(ask(1, "tools/call", name="t")),
    S(result(1, resultType="input_required", requestState="s", inputRequests=ASKING)),
]
ROOTS_GIVEN: Final[dict[str, Any]] = {"roots": []}


def complete(id: Any, name: str) -> Sent:
    ref = {"type": "ref/prompt", "name": name}
    return C(ask(id, "completion/complete", ref=ref, argument={"name": "a", "value": ""}))


def retry(**responses: Any) -> Sent:
    given = {"requestState": "s", "inputResponses": responses}
    return C(ask(2, "tools/call", name="t", **given))


UNDECLARED: Final = [*discovered(), C(ask(1, "prompts/list"))]
LISTED: Final = [*discovered(tools={}), *LIST]
EMBEDDED: Final = S(
    result(1, content=[{"type": "resource", "resource": {"uri": "x:1", "text": "x"}}])
)
FORM: Final = {
    "method": "elicitation/create",
    "params": {"message": "m", "requestedSchema": {"type": "object", "properties": {}}},
}
FORM_ROUND: Final = [
    C(ask(1, "tools/call", name="t")),
    S(result(1, resultType="input_required", requestState="s", inputRequests={"a": FORM})),
]


def code(number: int, id: int = 1, **data: Any) -> Sent:
    return S(error(id, number, data=data) if data else error(id, number))


MISSING: Final = [*SERVED, X, code(-32021, requiredCapabilities={"y": {}})]
REFUSED: Final = [*SERVED, X, code(-32602)]

CASES: Final[list[Case]] = [
    case(
        "RPC-12", "2025-11-25", [X, S(error(1, text="a\nb\nc"))], [X, S(error(1, text="a"))], PING
    ),
    case(
        "RPC-20",
        "2025-03-26",
        [C([ask(1, "ping")]), S(error(None, -32600))],
        [C([ask(1, "ping")]), S([result(1)])],
        PING,
    ),
    case(
        "RPC-20",
        "2025-03-26",
        [C([ask(1, "x")]), S(error(None, -32700))],
        [C([ask(1, "x")]), code(-1)],
    ),
    case("ERR-1", "2025-11-25", [X, code(-32700)], [X, code(-32601)], [*BEGIN, X, code(5)]),
    # An extension, or what two sides have agreed on, can define a method
    case(
        "ERR-1",
        "2025-11-25",
        [X, S(result(1))],
        [X, code(-32601)],
        [*Start("2025-11-25", {"experimental": {"y": {}}}, {}).messages(), X, S(result(1))],
        start=NOTHING,
        is_certain=False,
    ),
    case("ERR-5", "2026-07-28", [*SERVED, X, code(-32002)], [*SERVED, X, code(5)], LIST),
    case(
        "ERR-7",
        "2026-07-28",
        [*SERVED, X, code(-32050)],
        MISSING,
    ),
    case(
        "ERR-7",
        "2026-07-28",
        [*SERVED, X, code(-32020)],
        MISSING,
    ),
    case(
        "ERR-7",
        "2026-07-28",
        [*SERVED, X, code(-32021, requiredCapabilities={"sampling": {"tools": {}}})],
        [*SERVED, X, code(-32021, requiredCapabilities={"sampling": {"other": {}}})],
    ),
    case(
        "ERR-7",
        "2026-07-28",
        [*SERVED, X, code(-32022, supported=["2026-07-28"], requested="2026-07-28")],
        [*SERVED, X, code(-32022, supported=["2027-07-28"], requested="2026-07-28")],
    ),
    case(
        "ERR-8", "2026-07-28", [*SERVED, X, code(-32010)], [*SERVED, X, code(5)], is_certain=False
    ),
    case("ERR-9", "2026-07-28", [*SERVED, X, code(-32500)], [*SERVED, X, code(5)], REFUSED),
    case(
        "TX-5",
        "2026-07-28",
        [CALL, code(-32021, requiredCapabilities={"extensions": {"a/b": True}})],
        [CALL, code(-32021, requiredCapabilities={"extensions": {"a/b": {}}})],
    ),
    case(
        "ERR-9",
        "2026-07-28",
        [*SERVED, X, code(-32100)],
        [*SERVED, X, code(-31999)],
        REFUSED,
    ),
    case(
        "CAP-6",
        "2026-07-28",
        [*UNDECLARED, code(-32602)],
        [*UNDECLARED, code(-32601)],
        is_certain=False,
        allowed=("CAP-3",),
        pass_allowed=("CAP-3",),
    ),
    case(
        "ROOT-5",
        "2025-11-25",
        [ROOTS, C(error(1, -32600))],
        [ROOTS, C(error(1, -32601))],
        start=NOTHING,
        allowed=("CAP-3",),
        pass_allowed=("CAP-3",),
    ),
    # What is not found
    case(
        "PAGE-6",
        "2025-11-25",
        [*PROMPTS, C(ask(1, "prompts/list", cursor="c")), code(0)],
        [*PROMPTS, C(ask(1, "prompts/list", cursor="c")), code(-32602)],
        [*BEGIN, *PROMPTS],
        allowed=("PAGE-3",),
        pass_allowed=("PAGE-3",),
    ),
    # A request with a further member is invalid to some
    case(
        "PRM-4",
        "2025-11-25",
        [*PROMPTS, C(ask(1, "prompts/get", name="q")), code(-32600)],
        [*PROMPTS, C(ask(1, "prompts/get", name="q")), code(-32602)],
        [*BEGIN, *PROMPTS, C({**ask(1, "prompts/get", name="q"), "extra": 1}), code(-32600)],
    ),
    case(
        "PRM-4",
        "2025-11-25",
        [*PROMPTS, C(ask(1, "prompts/get", name="q")), code(0)],
        [*PROMPTS, C(ask(1, "prompts/get", name="q")), code(-32602)],
        [*BEGIN, *PROMPTS, C(ask(1, "prompts/get", name="p", arguments={"a": "1"})), code(0)],
    ),
    case(
        "PRM-4",
        "2025-11-25",
        [*PROMPTS, C(ask(1, "prompts/get", name="p")), code(5)],
        [*PROMPTS, C(ask(1, "prompts/get", name="p")), code(-32602)],
        is_certain=False,
    ),
    *(
        case(
            "PRM-4",
            "2025-11-25",
            [*PROMPTS, *more, C(ask(1, "prompts/get", name="p")), S(result(1, messages=[]))],
            [*PROMPTS, *more, C(ask(1, "prompts/get", name="p")), code(-32602)],
            [
                *BEGIN,
                *PROMPTS,
                C(ask(1, "prompts/get", name="p", arguments={"a": "1"})),
                S(result(1, messages=[])),
            ],
            is_certain=not more,
        )
        for more in ([], [changed("prompts")])
    ),
    case(
        "LOG-5",
        "2025-11-25",
        [C(ask(1, "logging/setLevel", level="loud")), code(-32600)],
        [C(ask(1, "logging/setLevel", level="loud")), code(-32602)],
        [*BEGIN, C(ask(1, "logging/setLevel", level="info")), code(-32600)],
        allowed=("LOG-3",),
        pass_allowed=("LOG-3",),
    ),
    case(
        "COMP-4",
        "2025-11-25",
        [*PROMPTS, complete(1, "q"), code(0)],
        [*PROMPTS, complete(1, "q"), code(-32602)],
        [*BEGIN, *PROMPTS, complete(1, "p"), code(0)],
    ),
    case("RES-7", "2025-11-25", [*RESOURCES, READ, code(0)], [*RESOURCES, READ, code(-32002)]),
    case(
        "RES-7",
        "2025-11-25",
        [*RESOURCES, READ, code(-32602)],
        [READ, code(-32002)],
        is_certain=False,
    ),
    case(
        "RES-9",
        "2026-07-28",
        [*RESOURCES, READ, S(result(1, contents=[]))],
        [*RESOURCES, READ, code(-32602)],
        [READ, S(result(1, contents=[]))],
        is_certain=False,
    ),
    # Tools
    case(
        "TOOL-3",
        "2026-07-28",
        [*discovered(tools={}), C(ask(1, "tools/list")), code(-32601)],
        LISTED,
    ),
    case(
        "TOOL-16",
        "2025-11-25",
        [*TOOLS, WRONG_CALL, code(-32602)],
        [*TOOLS, WRONG_CALL, FAILED],
        [*BEGIN, *TOOLS, CALL, CALLED],
    ),
    case(
        "TOOL-24",
        "2025-11-25",
        [*TOOLS, WRONG_CALL, CALLED],
        [*TOOLS, WRONG_CALL, FAILED],
        [*BEGIN, *TOOLS],
    ),
    case(
        "TOOL-24",
        "2025-11-25",
        [*TOOLS, C(ask(1, "tools/call", name="t", arguments={"a": "1"})), CALLED],
        [*TOOLS, WRONG_CALL, FAILED],
        [*BEGIN, *TOOLS, CALL, CALLED],
        is_certain=False,
    ),
    *(
        case(
            "TOOL-24",
            "2025-11-25",
            [*WORDS, C(ask(1, "tools/call", name="t", arguments=arguments)), CALLED],
            [*WORDS, C(ask(1, "tools/call", name="t", arguments=arguments)), FAILED],
            [*BEGIN, *WORDS, C(ask(1, "tools/call", name="t", arguments={"a": "x"})), CALLED],
            is_certain=False,
        )
        for arguments in CONVERTED
    ),
    case(
        "TOOL-15", "2025-11-25", [*TOOLS, CALL, code(0)], [*TOOLS, CALL, FAILED], is_certain=False
    ),
    case(
        "TOOL-26",
        "2025-11-25",
        [CALL, EMBEDDED],
        [CALL, EMBEDDED],
        start=({}, {"tools": {}}),
        pass_start=({}, {"tools": {}, "resources": {}}),
    ),
    # Input
    case(
        "ELIC-23",
        "2026-07-28",
        [*FORM_ROUND, retry(a={"action": "decline"}), code(-32603, 2)],
        [*FORM_ROUND, retry(a={"action": "decline"}), S(result(2, content=TEXT))],
        FORM_ROUND,
        is_certain=False,
    ),
    case(
        "MRTR-15",
        "2026-07-28",
        [*ROUND, retry(a=ROOTS_GIVEN), code(-32602, 2)],
        [*ROUND, retry(a=ROOTS_GIVEN), S(result(2, resultType="input_required", requestState="t"))],
        ROUND,
        allowed=("MRTR-6",),
        pass_allowed=("MRTR-6",),
        is_certain=False,
    ),
]
