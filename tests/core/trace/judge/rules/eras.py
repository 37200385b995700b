"""Conversations for the rules on revisions, eras and the end of a process."""

from __future__ import annotations

from typing import Any, Final, Literal

from mcp_core.trace import TraceLine
from tests.core.trace.judge.conversations import (
    META,
    C,
    S,
    Sent,
    Start,
    ask,
    at,
    error,
    notify,
    raw_client,
    raw_server,
    result,
)
from tests.core.trace.judge.rules.case import QUIET, Case, case
from tests.core.trace.judge.rules.messages import (
    END_OF_CLIENT,
    HANDSHAKE,
    LIST,
    META_E,
    PING,
    SERVER_META,
    initialize,
    initialized_with,
)

NOTE: Final = C(notify("notifications/initialized"))
NO_INFO: Final = {key: META_E[key] for key in META_E if "Info" not in key}
FUTURE: Final = {**META_E, META + "protocolVersion": "2027-01-01"}
DISCOVER: Final = raw_client(ask("d", "server/discover", _meta=META_E))
INITIALIZE: Final = raw_client(initialize())
MODERN: Final = raw_client(ask(1, "tools/list", _meta=META_E))
VERSIONS: Final = {"supported": ["2026-07-28"], "requested": "2027-01-01"}
OLD: Final = ["2025-11-25"]
OTHER: Final = {"supported": ["2027-01-01"], "requested": "2026-07-28"}
REJECTED: Final = [
    raw_client(ask(1, "tools/list", _meta=FUTURE)),
    S(error(1, -32022, data=VERSIONS)),
]
SERVED: Final = [
    MODERN,
    raw_server(
        result(
            1,
            resultType="complete",
            tools=[],
            ttlMs=0,
            cacheScope="private",
            _meta=SERVER_META,
        )
    ),
]


FUTURE_LIST: Final = raw_client(ask(2, "tools/list", _meta=FUTURE))
OLD_LIST: Final = raw_client(
    ask(2, "tools/list", _meta={**META_E, META + "protocolVersion": "1999-12-31"})
)
LEGACY_LIST: Final = raw_client(
    ask(2, "tools/list", _meta={**META_E, META + "protocolVersion": "2025-11-25"})
)


def discovered(*versions: str) -> Sent:
    hints = {"ttlMs": 0, "cacheScope": "private"}
    return S(result("d", supportedVersions=list(versions), capabilities={}, **hints))


def served(id: Any) -> Sent:
    members = {"ttlMs": 0, "cacheScope": "private", "_meta": SERVER_META}
    return raw_server(result(id, resultType="complete", tools=[], **members))


def refused(id: Any, version: str) -> Sent:
    return S(error(id, -32022, data={"supported": ["2026-07-28"], "requested": version}))


def rejected_at(t: float, id: int) -> list[Sent]:
    """Return another request with the future version, and the error."""
    asked = raw_client(ask(id, "tools/list", _meta=FUTURE))
    return [at(t, asked), at(t, refused(id, "2027-01-01"))]


def exited(t: float, status: int) -> Sent:
    return C(TraceLine(t=t, kind="exit", status=status))


def ended(t: float, sender: Literal["client", "server"]) -> Sent:
    return Sent(sender, TraceLine(t=t, sender=sender, end="closed"))


def initialized(version: Any) -> Sent:
    return S(initialized_with(protocolVersion=version))


def no_version(data: Any) -> Sent:
    return S(error("i", -32601, data=data))


CASES: Final[list[Case]] = [
    # Versions
    case(
        "LIFE-4", "2025-11-25", [INITIALIZE, initialized("2025-01-01")], HANDSHAKE, PING, start=None
    ),
    case(
        "LIFE-4",
        "2026-07-28",
        [DISCOVER, discovered("2026-07-28", "2025-11-25"), INITIALIZE, initialized("2025-06-18")],
        [DISCOVER, discovered("2026-07-28", "2025-06-18"), INITIALIZE, initialized("2025-06-18")],
        LIST,
        start=None,
    ),
    case(
        "LIFE-5",
        "2025-11-25",
        [INITIALIZE, initialized("2025-01-01"), NOTE],
        HANDSHAKE,
        PING,
        start=None,
        allowed=("LIFE-4",),
    ),
    # The answered version has no handshake
    case(
        "LIFE-5",
        "2025-11-25",
        [INITIALIZE, initialized("2026-07-28"), NOTE],
        HANDSHAKE,
        PING,
        start=None,
        allowed=("LIFE-4",),
    ),
    # The client goes on without `initialized`
    case(
        "LIFE-5",
        "2025-11-25",
        [INITIALIZE, initialized("2025-01-01"), C(ask(1, "x"))],
        [INITIALIZE, initialized("2025-11-25"), C(ask(1, "x")), NOTE],
        PING,
        start=None,
        allowed=("LIFE-4", "LIFE-7"),
    ),
    # A request that names a version which no server speaks
    case(
        "VER-1",
        "2026-07-28",
        [*SERVED, OLD_LIST, served(2)],
        [*SERVED, OLD_LIST, refused(2, "1999-12-31")],
        [*SERVED, raw_client(ask(2, "tools/list", _meta=FUTURE)), served(2)],
        start=None,
    ),
    # The server lists its versions, and this one isn't among them
    case(
        "VER-1",
        "2026-07-28",
        [DISCOVER, discovered("2026-07-28"), FUTURE_LIST, served(2)],
        [DISCOVER, discovered("2026-07-28"), FUTURE_LIST, refused(2, "2027-01-01")],
        [DISCOVER, discovered("2026-07-28", "2027-01-01"), FUTURE_LIST, served(2)],
        start=None,
    ),
    case(
        "VER-1",
        "2026-07-28",
        [DISCOVER, discovered("2026-07-28"), LEGACY_LIST, served(2)],
        [DISCOVER, discovered("2026-07-28"), LEGACY_LIST, refused(2, "2025-11-25")],
        [*Start("2025-11-25").messages(), LEGACY_LIST, raw_server(result(2, tools=[]))],
        start=None,
    ),
    # The same request was served under its own version
    case(
        "VER-1",
        "2026-07-28",
        [*SERVED, OLD_LIST, S(error(2, -32602))],
        [*SERVED, OLD_LIST, refused(2, "1999-12-31")],
        start=None,
    ),
    case(
        "VER-1",
        "2026-07-28",
        [DISCOVER, discovered("2026-07-28"), OLD_LIST, S(error(2, -32602))],
        [*SERVED, OLD_LIST, refused(2, "1999-12-31")],
        [OLD_LIST, S(error(2, -32602))],
        start=None,
        is_certain=False,
    ),
    case(
        "VER-1",
        "2026-07-28",
        [OLD_LIST, S(error(2, -32022, data={"supported": ["2026-07-28"]}))],
        [OLD_LIST, refused(2, "1999-12-31")],
        [OLD_LIST, raw_server(result(2, tools=[]))],
        start=None,
    ),
    # What every revision says about such a request
    case(
        "RPC-1",
        "2026-07-28",
        [raw_client({**ask(2, "tools/list", _meta=FUTURE), "jsonrpc": "1.0"})],
        [FUTURE_LIST],
        [],
        start=None,
    ),
    case(
        "RPC-7",
        "2026-07-28",
        [FUTURE_LIST, refused("2", "2027-01-01")],
        [FUTURE_LIST, refused(2, "2027-01-01")],
        [FUTURE_LIST],
        start=None,
    ),
    # It tries again and again, each time at once
    case(
        "VER-2",
        "2026-07-28",
        [*REJECTED, *rejected_at(0.6, 2), *rejected_at(1.2, 3)],
        [*REJECTED, *rejected_at(0.6, 2), at(1.2, raw_client(ask(3, "tools/list", _meta=META_E)))],
        LIST,
        side="client",
    ),
    case(
        "VER-2",
        "2026-07-28",
        [*REJECTED, at(5, raw_client(ask(2, "tools/list", _meta=FUTURE)))],
        [*REJECTED, at(5, raw_client(ask(2, "tools/list", _meta=META_E)))],
        LIST,
    ),
    case(
        "VER-15",
        "2026-07-28",
        [DISCOVER, discovered("2026-07-28"), INITIALIZE, no_version(None)],
        [DISCOVER, discovered("2026-07-28"), INITIALIZE, no_version({"supported": ["2026-07-28"]})],
        [INITIALIZE, no_version(None)],
        start=None,
    ),
    case(
        "VER-15",
        "2026-07-28",
        [*SERVED, INITIALIZE, S(error("i", -32600))],
        [*SERVED, INITIALIZE, S(error("i", -32600, "speak 2026-07-28"))],
        LIST,
        start=None,
        is_certain=False,
        allowed=("PROBE-1",),
        pass_allowed=("PROBE-1",),
    ),
    # Eras
    case(
        "PROBE-1",
        "2026-07-28",
        [MODERN, S(error(1, -32601)), INITIALIZE],
        [DISCOVER, S(error("d", -32601)), INITIALIZE],
        HANDSHAKE,
        start=None,
        side="client",
        is_certain=False,
    ),
    case(
        "PROBE-2",
        "2026-07-28",
        [DISCOVER, S(error("d", 5)), MODERN],
        [DISCOVER, S(error("d", 5)), INITIALIZE],
        HANDSHAKE,
        start=None,
        is_certain=False,
    ),
    case(
        "PROBE-3",
        "2026-07-28",
        [DISCOVER, S(error("d", -32022, data=OTHER)), at(5, INITIALIZE)],
        [DISCOVER, S(error("d", -32022, data=OTHER)), MODERN],
        HANDSHAKE,
        start=None,
    ),
    # The server lists a revision with a handshake, too
    case(
        "PROBE-3",
        "2026-07-28",
        [DISCOVER, S(error("d", -32022, data=OTHER)), at(5, INITIALIZE)],
        [DISCOVER, S(error("d", -32022, data=OTHER)), MODERN],
        [DISCOVER, S(error("d", -32022, data=OTHER | {"supported": OLD})), at(5, INITIALIZE)],
        start=None,
    ),
    # The end of a process
    case(
        "LIFE-18",
        "2025-11-25",
        [*HANDSHAKE, exited(5, -15)],
        [*HANDSHAKE, END_OF_CLIENT, exited(5, 0)],
        [*HANDSHAKE, exited(5, 1)],
        start=None,
        is_certain=False,
        side="client",
    ),
    case(
        "STDIO-10",
        "2026-07-28",
        [*LIST, exited(5, -15)],
        [*LIST, END_OF_CLIENT, exited(5, 0)],
        QUIET,
        is_certain=False,
        side="client",
    ),
    case(
        "STDIO-11",
        "2026-07-28",
        [*LIST, ended(1, "client"), exited(21, -9)],
        [*LIST, ended(1, "client"), exited(2, 0)],
        [*LIST, exited(2, 0)],
        side="server",
    ),
    case(
        "STDIO-1",
        "2025-11-25",
        [C('{"jsonrpc":'), C('"2.0"}')],
        PING,
        [],
        start=None,
        allowed=("STDIO-3",),
    ),
    # `_meta`
    case("META-1", "2025-11-25", [C(ask(1, "ping", _meta=5))], PING, is_part=True),
    case(
        "META-3",
        "2025-11-25",
        [C(ask(1, "ping", _meta={"dev.mcp/x": 1}))],
        [C(ask(1, "ping", _meta={"com.example.mcp/x": 1}))],
        PING,
    ),
    case(
        "META-3",
        "2025-06-18",
        [C(ask(1, "ping", _meta={"mcp.dev/x": 1}))],
        [C(ask(1, "ping", _meta={"dev.mcp/x": 1}))],
    ),
    case(
        "META-7",
        "2026-07-28",
        [
            raw_client(
                ask(
                    1, "tools/list", _meta={key: META_E[key] for key in META_E if "Info" not in key}
                )
            )
        ],
        LIST,
        [],
        is_certain=False,
    ),
    case(
        "META-10",
        "2026-07-28",
        [C(ask(1, "x")), raw_server(result(1, resultType="complete"))],
        [
            C(ask(1, "x")),
            raw_server(result(1, resultType="complete", _meta=SERVER_META)),
        ],
        [C(ask(1, "x"))],
        is_certain=False,
    ),
    case(
        "META-15",
        "2025-11-25",
        [C(ask(1, "ping", _meta={META + "related-task": "t"}))],
        [C(ask(1, "ping", _meta={META + "related-task": {"taskId": "t"}}))],
        PING,
    ),
    case("PING-1", "2025-11-25", [C(ask(1, "ping")), S(result(1, ok=True))], PING),
]
