"""Conversations for the rules on messages, `_meta`, the life cycle and capabilities."""

from __future__ import annotations

from typing import Any, Final

from mcp_core.trace import TraceLine
from tests.core.trace.judge.conversations import (
    EVERYTHING,
    INFO,
    META,
    C,
    S,
    ask,
    at,
    error,
    notify,
    raw_client,
    raw_server,
    result,
)
from tests.core.trace.judge.rules.case import Case, case

TEXT: Final = [{"type": "text", "text": "x"}]
# A server that is known to serve 2026-07-28
SERVED: Final = [C(ask("0", "prompts/list")), S(result("0", prompts=[]))]
PING: Final = [C(ask(1, "ping")), S(result(1))]
LIST: Final = [C(ask(1, "tools/list")), S(result(1, tools=[]))]
CALL: Final = [C(ask(1, "tools/call", name="t")), S(result(1, content=TEXT))]
PROMPTS: Final = [C(ask(1, "prompts/list")), S(result(1, prompts=[]))]
RESOURCES: Final = [C(ask(1, "resources/list")), S(result(1, resources=[]))]
COMPLETE: Final = ask(
    1,
    "completion/complete",
    ref={"type": "ref/prompt", "name": "p"},
    argument={"name": "a", "value": ""},
)
COMPLETED: Final = result(1, completion={"values": []})
LOG: Final = notify("notifications/message", level="info", data=1)
ROOTS: Final = [S(ask(1, "roots/list")), C(result(1, roots=[]))]
SAMPLE: Final = ask(
    1,
    "sampling/createMessage",
    maxTokens=1,
    messages=[{"role": "user", "content": {"type": "text", "text": "x"}}],
)
SAMPLED: Final = result(1, role="assistant", content=TEXT[0], model="m")
FORM: Final = ask(
    1,
    "elicitation/create",
    message="m",
    requestedSchema={"type": "object", "properties": {"a": {"type": "string"}}},
)
NOTHING: Final[tuple[dict[str, Any], dict[str, Any]]] = ({}, {})
META_E: Final = {
    META + "protocolVersion": "2026-07-28",
    META + "clientCapabilities": {},
    META + "clientInfo": INFO,
}
SERVER_META: Final = {META + "serverInfo": INFO}
NO_ID: Final = {"jsonrpc": "2.0", "id": True, "method": "x"}


END_OF_SERVER: Final = S(TraceLine(t=0.0, sender="server", end="closed"))
END_OF_CLIENT: Final = C(TraceLine(t=0.0, sender="client", end="closed"))


def initialize(**params: Any) -> dict[str, Any]:
    known = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": INFO}
    return ask("i", "initialize", **{**known, **params})


def initialized_with(**members: Any) -> dict[str, Any]:
    known = {"protocolVersion": "2025-11-25", "capabilities": {}, "serverInfo": INFO}
    return result("i", **{**known, **members})


def without(message: dict[str, Any], key: str, part: str = "params") -> dict[str, Any]:
    """Return a message without one member of its params or result."""
    return {**message, part: {name: each for name, each in message[part].items() if name != key}}


HANDSHAKE: Final = [
    C(initialize()),
    S(initialized_with()),
    C(notify("notifications/initialized")),
]


# A client of both eras finds a server that speaks revisions with a handshake only.
PROBED: Final = [raw_client(ask("d", "server/discover", _meta=META_E)), S(error("d", -32601))]


def discovered(**capabilities: Any) -> list[Any]:
    """Return an exchange in which a server of 2026-07-28 declares capabilities."""
    return [
        C(ask("d", "server/discover")),
        S(result("d", supportedVersions=["2026-07-28"], capabilities=capabilities)),
    ]


CASES: Final[list[Case]] = [
    # Outline and ids
    case("RPC-1", "2025-11-25", [C({"jsonrpc": "1.0", "method": "x"})], PING, [], start=None),
    case("RPC-1", "2025-11-25", [C("7")], PING, [], start=None),
    case("RPC-1", "2025-11-25", [C({"jsonrpc": "2.0", "id": 1})], PING, [], start=None),
    case("RPC-2", "2025-11-25", [C(ask([1], "ping"))], PING, start=None),
    case(
        "RPC-2",
        "2025-11-25",
        [C(ask(1.5, "ping"))],
        [C(ask("1", "ping")), S(result("1"))],
        start=None,
    ),
    case("RPC-3", "2025-11-25", [C(ask(None, "ping"))], PING, start=None),
    case("RPC-4", "2025-11-25", [*HANDSHAKE, *PING, C(ask(1, "ping"))], HANDSHAKE, [], start=None),
    # After the question whether the server speaks a revision without a handshake
    case(
        "RPC-4",
        "2025-11-25",
        [*PROBED, *HANDSHAKE, *PING, C(ask(1, "ping"))],
        [*PROBED, *HANDSHAKE, C(ask("d", "ping")), S(result("d")), *PING],
        [],
        start=None,
    ),
    case(
        "RPC-5",
        "2026-07-28",
        [C(ask(1, "tools/list")), C(ask(1, "prompts/list"))],
        [*LIST, C(ask(1, "prompts/list"))],
    ),
    case("RPC-7", "2025-11-25", [C(ask(1, "ping")), S(result("1"))], PING, [], start=None),
    case("RPC-7", "2025-11-25", [*PING, S(result(1))], PING, [], start=None),
    case("RPC-7", "2025-11-25", [S(result(1))], PING, [], start=None),
    case(
        "RPC-8",
        "2025-11-25",
        [C(ask(1, "x")), S(error(None, -32600))],
        [C(ask("x" * 300, "x")), S(error(None, -32600))],
    ),
    case("RPC-9", "2025-03-26", [C(ask(1, "x")), S({**result(1), **error(1)})], PING, []),
    case("RPC-10", "2025-11-25", [C(ask(1, "x")), S({**result(1), **error(1)})], PING, []),
    case(
        "RPC-10",
        "2025-11-25",
        [*HANDSHAKE, C(ask(1, "x")), S({"jsonrpc": "2.0", "id": 1, "error": 5})],
        HANDSHAKE,
        [],
        start=None,
    ),
    case("RPC-11", "2025-11-25", [C(ask(1, "x")), S(error(1, "5"))], [C(ask(1, "x")), S(error(1))]),
    case(
        "RPC-11",
        "2025-11-25",
        [C(ask(1, "x")), S(error(1, text=None))],
        [C(ask(1, "x")), S(error(1))],
    ),
    case(
        "RPC-13",
        "2025-11-25",
        [C(ask(1, "notifications/roots/list_changed"))],
        [C(notify("notifications/roots/list_changed"))],
        [],
        start=None,
        allowed=("LIFE-1",),
    ),
    case(
        "RPC-14",
        "2025-11-25",
        [C(notify("x")), S(error(None, -32600))],
        [C(ask(1, "ping")), C(notify("x")), S(result(1))],
    ),
    case("RPC-15", "2025-11-25", [C({**ask(1, "x"), "params": [1]})], [C(notify("x", a=1))], PING),
    case("RPC-15", "2025-11-25", [C({**notify("x"), "params": [1]})], [C(notify("x", a=1))], PING),
    case("RPC-16", "2025-11-25", [C(ask(1, "x")), S({**result(1), "result": [1]})], PING, []),
    case(
        "RPC-22",
        "2025-03-26",
        [C([initialize(protocolVersion="2025-03-26")])],
        [C(initialize(protocolVersion="2025-03-26"))],
        [],
        start=None,
    ),
    case("RPC-23", "2025-03-26", [C([])], [C([ask(1, "ping")]), S([result(1)])]),
    case(
        "RPC-23",
        "2025-03-26",
        [S(ask(1, "ping")), C([ask(1, "ping"), result(1)])],
        [C([ask(1, "ping")]), S([result(1)])],
    ),
    case("RPC-25", "2025-11-25", [C([ask(1, "ping")])], PING, []),
    case("RPC-26", "2025-11-25", [C(b"\xff")], PING, []),
    case("STDIO-2", "2025-11-25", [S("Listening on port 1")], PING, [], start=None),
    case("STDIO-3", "2025-11-25", [C('{"jsonrpc":')], PING, [], start=None),
    case("RPC-28", "2026-07-28", [*discovered(), S(ask(1, "roots/list"))], discovered()),
    # A request before the response that shows the server's revision
    case(
        "RPC-28",
        "2026-07-28",
        [discovered()[0], at(3, S(ask(1, "ping"))), discovered()[1]],
        discovered(),
        [discovered()[0], S(ask(1, "ping")), S(error("d", -32601)), *HANDSHAKE],
    ),
    case(
        "RPC-28",
        "2026-07-28",
        [discovered()[0], S(ask(1, "ping")), discovered()[1]],
        discovered(),
        is_certain=False,
    ),
    case("RPC-29", "2026-07-28", [*LIST, C(result(1))], LIST, allowed=("RPC-7",)),
    case(
        "RPC-30",
        "2026-07-28",
        [*discovered(), C(ask(1, "x")), raw_server(result(1, _meta=SERVER_META))],
        [C(ask(1, "x")), S(result(1, resultType="complete"))],
        # A server of an earlier revision can serve what comes before its handshake.
        [C(ask(1, "tools/list")), raw_server(result(1, tools=[]))],
        allowed=("ERR-1",),
    ),
    case(
        "RPC-33",
        "2026-07-28",
        [raw_client(ask(1, "x", _meta=META_E)), S(result(1, resultType="y"))],
        [raw_client(ask(1, "x", _meta=META_E)), S(result(1, resultType="complete"))],
    ),
    # The server leaves; or the client does, or gives the request up
    case(
        "RPC-35",
        "2025-11-25",
        [*HANDSHAKE, C(ask(1, "x")), END_OF_SERVER],
        [*HANDSHAKE, C(ask(1, "x")), END_OF_CLIENT, END_OF_SERVER],
        [C(ask(1, "ping")), C(notify("notifications/cancelled", requestId=1)), END_OF_SERVER],
        start=None,
        is_certain=False,
    ),
    # `_meta`
    case(
        "META-2",
        "2025-11-25",
        [C(ask(1, "ping", _meta={"1a/b": 1}))],
        [C(ask(1, "ping", _meta={"a.b-1/c_d.e": 1, "x": 1, "a/": 2}))],
    ),
    case(
        "META-6",
        "2026-07-28",
        [*LIST, raw_client(ask(2, "tools/list", _meta={META + "protocolVersion": "2026-07-28"}))],
        LIST,
        allowed=("META-7",),
        is_part=True,
    ),
    case(
        "META-8",
        "2026-07-28",
        [
            *LIST,
            raw_client(ask(2, "tools/list", _meta={META + "protocolVersion": "2026-07-28"})),
            raw_server(result(2, resultType="complete", tools=[], ttlMs=0, cacheScope="public")),
        ],
        LIST,
        allowed=("META-6", "META-7", "META-10"),
    ),
    case(
        "META-12",
        "2026-07-28",
        [*LIST, S(notify("notifications/tools/list_changed"))],
        [
            C(ask(1, "subscriptions/listen", notifications={"toolsListChanged": True})),
            S(
                notify(
                    "notifications/subscriptions/acknowledged",
                    notifications={"toolsListChanged": True},
                    _meta={META + "subscriptionId": 1},
                )
            ),
        ],
    ),
    case(
        "META-12",
        "2026-07-28",
        [
            *LIST,
            S(notify("notifications/tools/list_changed", _meta={META + "subscriptionId": 77})),
        ],
        [
            C(ask(1, "subscriptions/listen", notifications={"toolsListChanged": True})),
            S(
                notify(
                    "notifications/subscriptions/acknowledged",
                    notifications={"toolsListChanged": True},
                    _meta={META + "subscriptionId": 1},
                )
            ),
        ],
    ),
    case(
        "META-13",
        "2026-07-28",
        [C(ask(1, "tools/list", _meta={"traceparent": "1"}))],
        [
            C(
                ask(
                    1,
                    "tools/list",
                    _meta={"traceparent": f"00-{'1' * 32}-{'2' * 16}-01"},
                )
            )
        ],
    ),
    case(
        "META-14",
        "2025-11-25",
        [C(ask(1, "tools/list", _meta={"progressToken": 1.5}))],
        [C(ask(1, "tools/list", _meta={"progressToken": 1}))],
        allowed=("PROG-2",),
        is_part=True,
    ),
    # Life cycle
    case("LIFE-1", "2025-11-25", [C(ask(1, "tools/list"))], HANDSHAKE, PING, start=None),
    case(
        "LIFE-1",
        "2025-11-25",
        [C(without(initialize(), "clientInfo"))],
        HANDSHAKE,
        PING,
        start=None,
    ),
    case(
        "LIFE-3",
        "2025-11-25",
        [C(initialize()), S(without(initialized_with(), "serverInfo", "result"))],
        HANDSHAKE,
        PING,
        start=None,
    ),
    case(
        "LIFE-7",
        "2025-11-25",
        [*HANDSHAKE[:2], C(ask(1, "x")), S(error(1))],
        HANDSHAKE,
        PING,
        start=None,
        side="client",
    ),
    case(
        "LIFE-7",
        "2025-11-25",
        [*PROBED, *HANDSHAKE[:2], C(ask(1, "x")), S(error(1))],
        [*PROBED, *HANDSHAKE],
        PROBED,
        start=None,
        side="client",
    ),
    case(
        "LIFE-8",
        "2025-11-25",
        [*PROBED, C(initialize()), C(ask(1, "x")), *HANDSHAKE[1:]],
        [*PROBED, *HANDSHAKE, C(ask(1, "x"))],
        PROBED,
        start=None,
        side="client",
    ),
    case(
        "LIFE-8",
        "2025-11-25",
        [C(initialize()), C(ask(1, "x")), *HANDSHAKE[1:]],
        [*HANDSHAKE, C(ask(1, "x"))],
        HANDSHAKE,
        start=None,
        side="client",
    ),
    case(
        "LIFE-9",
        "2025-11-25",
        [*HANDSHAKE[:2], S(ask(1, "x")), HANDSHAKE[2]],
        [*HANDSHAKE, S(ask(1, "x"))],
        HANDSHAKE,
        start=None,
        side="server",
    ),
    case("LIFE-13", "2024-11-05", [S(SAMPLE)], LIST, [], start=({}, {"tools": {}})),
    case("LIFE-14", "2025-06-18", [C(ask(1, "tasks/list"))], LIST, []),
    case(
        "LIFE-14",
        "2025-11-25",
        [S(notify("notifications/tools/list_changed"))],
        LIST,
        [],
        start=({}, {"tools": {}}),
    ),
    case("LIFE-15", "2025-03-26", [S(SAMPLE)], LIST, [], start=({}, {"tools": {}})),
    case(
        "CAP-1",
        "2025-11-25",
        [C(initialize(capabilities={"roots": 1}))],
        HANDSHAKE,
        PING,
        start=None,
        is_part=True,
    ),
    case(
        "CAP-2",
        "2026-07-28",
        [C(ask(1, "tools/list", _meta={META + "clientCapabilities": {"roots": 1}}))],
        LIST,
        is_part=True,
    ),
    case(
        "CAP-3",
        "2025-11-25",
        [S(SAMPLE)],
        [S(SAMPLE), C(SAMPLED)],
        start=NOTHING,
        pass_start=EVERYTHING,
    ),
    case(
        "CAP-4",
        "2026-07-28",
        [C(ask(1, "x")), S(error(1, -32021, data={"requiredCapabilities": ["roots"]}))],
        [C(ask(1, "x")), S(error(1, -32021, data={"requiredCapabilities": {"x": {}}}))],
    ),
    case(
        "TOOL-1", "2025-11-25", CALL, CALL, start=NOTHING, pass_start=EVERYTHING, allowed=("CAP-3",)
    ),
    case(
        "RES-1",
        "2025-11-25",
        [C(ask(1, "resources/list")), S(result(1, resources=[{"uri": "file:///a", "name": "a"}]))],
        RESOURCES,
        start=NOTHING,
        pass_start=EVERYTHING,
        allowed=("CAP-3",),
    ),
    case(
        "PRM-1",
        "2025-11-25",
        [C(ask(1, "prompts/list")), S(result(1, prompts=[{"name": "a"}]))],
        PROMPTS,
        start=NOTHING,
        pass_start=EVERYTHING,
        allowed=("CAP-3",),
    ),
    # An empty answer does not show that there is a feature.
    case(
        "PRM-1",
        "2025-11-25",
        PROMPTS,
        PROMPTS,
        start=NOTHING,
        pass_start=EVERYTHING,
        allowed=("CAP-3",),
        is_certain=False,
    ),
    case(
        "COMP-1",
        "2025-11-25",
        [C(COMPLETE), S(result(1, completion={"values": ["x"]}))],
        [C(COMPLETE), S(COMPLETED)],
        start=NOTHING,
        pass_start=EVERYTHING,
        allowed=("CAP-3",),
    ),
    case("LOG-1", "2025-11-25", [S(LOG)], [S(LOG)], start=NOTHING, pass_start=EVERYTHING),
    case(
        "SAMP-1",
        "2025-11-25",
        [S(SAMPLE), C(SAMPLED)],
        [S(SAMPLE), C(SAMPLED)],
        start=NOTHING,
        pass_start=EVERYTHING,
        allowed=("CAP-3",),
    ),
    case(
        "ELIC-1",
        "2025-11-25",
        [S(FORM), C(result(1, action="accept", content={}))],
        [S(FORM), C(result(1, action="decline"))],
        start=NOTHING,
        pass_start=EVERYTHING,
        allowed=("CAP-3",),
    ),
    case(
        "ROOT-1",
        "2025-11-25",
        [S(ask(1, "roots/list")), C(result(1, roots=[{"uri": "file:///a"}]))],
        ROOTS,
        start=NOTHING,
        pass_start=EVERYTHING,
        allowed=("CAP-3",),
    ),
    case(
        "ELIC-1",
        "2025-11-25",
        [S(FORM), C(result(1, action="cancel"))],
        [S(FORM), C(result(1, action="decline"))],
        start=NOTHING,
        pass_start=EVERYTHING,
        allowed=("CAP-3",),
        is_certain=False,
    ),
    case("PING-2", "2025-11-25", [C(ask(1, "ping")), S(error(1, -32601))], PING),
    case("PING-2", "2025-11-25", [C(ask(1, "ping")), S(error(1, -32000))], PING, is_certain=False),
    case(
        "PING-5",
        "2026-07-28",
        [C(ask(1, "ping")), S(result(1))],
        [*SERVED, C(ask(1, "ping")), S(error(1, -32601))],
        LIST,
        allowed=("LIFE-14",),
    ),
    # Versions of the stateless era
    case(
        "VER-1",
        "2026-07-28",
        [C(ask(1, "x")), S(error(1, -32022, data={"supported": "2025-11-25"}))],
        [
            C(ask(1, "x")),
            S(error(1, -32022, data={"supported": ["2025-11-25"], "requested": "2026-07-28"})),
        ],
    ),
    case(
        "VER-3",
        "2026-07-28",
        [*LIST, C(ask(2, "server/discover")), S(error(2, -32601))],
        discovered(),
    ),
    case(
        "VER-5",
        "2026-07-28",
        [C(ask(1, "server/discover")), S(result(1, capabilities={}))],
        discovered(),
    ),
    case(
        "VER-12",
        "2026-07-28",
        [C(ask(1, "tools/list", _meta={META + "clientCapabilities": {"extensions": {"x": {}}}}))],
        LIST,
        [raw_client(ask(1, "tools/list", _meta=META_E))],
    ),
    case(
        "VER-12",
        "2026-07-28",
        discovered(extensions={"x": {}}),
        discovered(extensions={"a/b": {}}),
        [],
    ),
]
