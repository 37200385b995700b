"""Conversations for the rules on headers that repeat arguments, and on versions in headers."""

from __future__ import annotations

from typing import Any, Final

from tests.core.trace.judge.conversations import C, S, Sent, ask, error, result
from tests.core.trace.judge.rules.case import Case, case
from tests.core.trace.judge.rules.http import (
    CALL,
    CALLED,
    IN,
    MIRRORED,
    SERVED,
    SERVED_E,
    START,
    Headers,
    got,
    sent,
)
from tests.core.trace.judge.rules.messages import LIST, META_E, SERVER_META, TEXT

LIST_HEADERS: Final[Headers] = {
    "mcp-protocol-version": "2026-07-28",
    "mcp-method": "tools/list",
}
REGION: Final = {"region": {"type": "string", "x-mcp-header": "Region"}}


def tool(properties: dict[str, Any], name: str = "t") -> dict[str, Any]:
    return {"name": name, "inputSchema": {"type": "object", "properties": properties}}


def listed(*tools: dict[str, Any]) -> list[Sent]:
    """Return the exchange 1, in which the server lists its tools."""
    found = result(
        1,
        resultType="complete",
        tools=list(tools),
        ttlMs=0,
        cacheScope="private",
        _meta=SERVER_META,
    )
    return [sent(1, ask(1, "tools/list", _meta=META_E), LIST_HEADERS), got(1, 200, found)]


def called(*, name: str = "t", headers: Headers | None = None, **arguments: Any) -> Sent:
    """Return the request of the exchange 2."""
    request = ask(2, "tools/call", name=name, arguments=arguments, _meta=META_E)
    return sent(2, request, {**MIRRORED, **(headers or {})})


TOOLS: Final = listed(tool(REGION))
WEST: Final[Headers] = {"mcp-param-region": "west"}
EAST: Final[Headers] = {"mcp-param-region": "=?base64?ZWFzdA==?="}
RIGHT: Final = [*TOOLS, called(headers=WEST, region="west")]
OK: Final = got(2, 200, result(2, resultType="complete", content=TEXT, _meta=SERVER_META))
MISMATCH: Final = got(2, 400, error(2, -32020))
INVALID: Final = tool({"a": {"type": "number", "x-mcp-header": "A"}})
LATIN: Final[Headers] = {"mcp-name": "=?base64?Y2Fmw6k=?="}
TASK: Final = ask(1, "tasks/get", taskId="t", _meta=META_E)
TASK_HEADERS: Final[Headers] = {**MIRRORED, "mcp-method": "tasks/get", "mcp-name": None}
BAD: Final = "1999-01-01"
BAD_META: Final = {**META_E, "io.modelcontextprotocol/protocolVersion": BAD}
BAD_E: Final = sent(
    1,
    ask(1, "tools/call", name="t", _meta=BAD_META),
    {**MIRRORED, "mcp-protocol-version": BAD},
)
VERSIONS: Final = {"supported": ["2026-07-28"], "requested": BAD}


def annotated(*names: Any, **schema: Any) -> list[Sent]:
    """Return a list with a tool whose properties have headers."""
    properties = {
        f"p{at}": {"type": "string", "x-mcp-header": name} for at, name in enumerate(names)
    }
    known = {**tool(properties)["inputSchema"], **schema}
    return [C(ask(1, "tools/list")), S(result(1, tools=[{"name": "t", "inputSchema": known}]))]


NESTED: Final = {"type": "array", "items": {"type": "object", "properties": REGION}}

CASES: Final[list[Case]] = [
    case("HDR-7", "2026-07-28", [*TOOLS, called(region="west")], RIGHT, TOOLS, start=None),
    case(
        "HDR-8",
        "2026-07-28",
        [*TOOLS, called(headers=EAST, region="west")],
        RIGHT,
        TOOLS,
        start=None,
    ),
    case(
        "HDR-8",
        "2026-07-28",
        [*TOOLS, called(headers=WEST, region="east")],
        [*TOOLS, called(headers=EAST, region="east")],
        [called(headers=EAST, region="west")],
        start=None,
    ),
    case(
        "HDR-9", "2026-07-28", [*TOOLS, called(headers=WEST)], [*TOOLS, called()], TOOLS, start=None
    ),
    case(
        "HDR-13",
        "2026-07-28",
        [*listed(INVALID), called()],
        RIGHT,
        [*listed(tool({})), called()],
        start=None,
        side="client",
        allowed=("HDR-12",),
    ),
    case("HDR-12", "2026-07-28", annotated("a b"), annotated("A", "B"), LIST),
    case("HDR-12", "2026-07-28", annotated("A", "a"), annotated("A"), annotated()),
    case("HDR-12", "2026-07-28", annotated(properties={"a": NESTED}), annotated("A"), annotated()),
    case(
        "HDR-12",
        "2026-07-28",
        annotated(properties=INVALID["inputSchema"]["properties"]),
        annotated("A"),
    ),
    case(
        "HDR-12",
        "2026-07-28",
        annotated(**{"x-mcp-header": "A"}),
        annotated("A", default={"x-mcp-header": "B"}),
        annotated(properties={"x-mcp-header": {"type": "number"}}),
    ),
    case(
        "HDR-10",
        "2026-07-28",
        [*TOOLS, called(region="west"), OK],
        [*TOOLS, called(region="west"), MISMATCH],
        [*RIGHT, OK],
        start=None,
        allowed=("HDR-7",),
        pass_allowed=("HDR-7",),
    ),
    case(
        "HDR-11",
        "2026-07-28",
        [*TOOLS, called(headers=WEST, region="east"), OK],
        [*TOOLS, called(headers=WEST, region="east"), MISMATCH],
        [*RIGHT, OK],
        start=None,
        allowed=("HDR-8",),
        pass_allowed=("HDR-8",),
    ),
    case(
        "HDR-6",
        "2026-07-28",
        [*listed(tool({}, "café")), called(name="café", headers=LATIN), MISMATCH],
        [*listed(tool({}, "café")), called(name="café", headers=LATIN), OK],
        SERVED_E,
        start=None,
        allowed=("TOOL-19",),
        pass_allowed=("TOOL-19",),
    ),
    case(
        "HDR-3",
        "2026-07-28",
        [*TOOLS, called(headers={**WEST, "mcp-name": "u"}, region="west"), OK],
        [*TOOLS, called(headers={**WEST, "mcp-name": "u"}, region="west"), MISMATCH],
        [*RIGHT, OK],
        start=None,
        allowed=("HDR-2",),
        pass_allowed=("HDR-2",),
    ),
    case(
        "TX-21",
        "2026-07-28",
        [sent(1, TASK, TASK_HEADERS)],
        [sent(1, TASK, {**TASK_HEADERS, "mcp-name": "t"})],
        SERVED_E,
        start=None,
    ),
    # Versions
    case(
        "SHL-29",
        "2025-11-25",
        [*START, sent(3, CALL, {**IN, "mcp-protocol-version": BAD}), got(3, 200, CALLED)],
        [*START, sent(3, CALL, {**IN, "mcp-protocol-version": BAD}), got(3, 400)],
        SERVED,
        start=None,
        allowed=("SHL-28",),
        pass_allowed=("SHL-28",),
    ),
    case(
        "SHM-4",
        "2026-07-28",
        [BAD_E, got(1, 200, result(1, content=TEXT))],
        [BAD_E, got(1, 400, error(1, -32022, data=VERSIONS))],
        SERVED_E,
        start=None,
    ),
]
