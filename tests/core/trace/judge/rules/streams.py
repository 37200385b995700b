"""Conversations for the rules on streams, origins and challenges."""

from __future__ import annotations

from typing import Final

from msgspec.structs import replace

from tests.core.trace.judge.conversations import META, Sent, ask, at, notify, result
from tests.core.trace.judge.rules.case import Case, case
from tests.core.trace.judge.rules.http import (
    CALL,
    CALL_E,
    CALLED,
    CALLED_E,
    IN,
    INITIALIZE,
    MIRRORED,
    NO_BUFFER,
    NOTE,
    SENT_E,
    SERVED,
    SERVED_BEFORE,
    SERVED_E,
    SESSION,
    SSE,
    START,
    STREAM_E,
    STREAMED,
    VERSION,
    Headers,
    ended,
    event,
    got,
    sent,
)
from tests.core.trace.judge.rules.messages import META_E, SERVER_META

# Two calls with progress, of which the first is on the stream 3.
TOKEN: Final = {"progressToken": "p"}
WITH_TOKEN: Final = ask(2, "tools/call", name="t", _meta=TOKEN)
WITH_TOKEN_E: Final = ask(1, "tools/call", name="t", _meta={**META_E, **TOKEN})
PROGRESS: Final = notify("notifications/progress", progressToken="p", progress=1)
MORE: Final = notify("notifications/progress", progressToken="p", progress=2)
RUNNING: Final = [*START, sent(3, WITH_TOKEN, IN), got(3, 200, kind=SSE)]
SECOND: Final = [sent(4, ask(3, "tools/call", name="t"), IN), got(4, 200, kind=SSE)]
RUNNING_E: Final = [sent(1, WITH_TOKEN_E, MIRRORED), got(1, 200, None, NO_BUFFER, SSE)]
CALL_2: Final = ask(2, "tools/call", name="t", _meta=META_E)
SECOND_E: Final = [sent(2, CALL_2, MIRRORED), got(2, 200, None, NO_BUFFER, SSE)]
OPEN_GET: Final = [sent(5, None, {"accept": SSE, **IN}, "GET"), got(5, 200, kind=SSE)]
YES: Final = notify("y")
PING: Final = ask(9, "ping")
LISTEN: Final = ask(
    1, "subscriptions/listen", notifications={"toolsListChanged": True}, _meta=META_E
)
LISTEN_HEADERS: Final = {**MIRRORED, "mcp-method": "subscriptions/listen", "mcp-name": None}
LISTENING: Final = [
    sent(1, LISTEN, LISTEN_HEADERS),
    got(1, 200, None, NO_BUFFER, SSE),
    event(
        1,
        notify(
            "notifications/subscriptions/acknowledged",
            notifications={"toolsListChanged": True},
            _meta={META + "subscriptionId": 1},
        ),
    ),
]
CHANGED: Final = notify("notifications/tools/list_changed", _meta={META + "subscriptionId": 1})
LISTEN_RESULT: Final = result(
    1, resultType="complete", _meta={META + "subscriptionId": 1, **SERVER_META}
)
LOG: Final = notify("notifications/message", level="info", data=1)
LOGGED: Final = ask(1, "tools/call", name="t", _meta={**META_E, META + "logLevel": "info"})
# A stream that is broken, and goes on
PRIMED: Final = [*STREAMED, event(3, None, "a", retry=1000), at(1, ended(3))]


def resume(number: int, id: str) -> list[Sent]:
    headers: Headers = {"accept": SSE, **IN, "last-event-id": id}
    return [sent(number, None, headers, "GET"), got(number, 200, kind=SSE)]


def resumed(t: float) -> list[Sent]:
    return [at(t, each) for each in [*resume(4, "a"), event(4, CALLED, "b"), ended(4)]]


LATER: Final = [at(3, each) for each in resume(5, "a")]
LAST: Final = [at(5, each) for each in resume(6, "a")]
# 2025-06-18
IN_C: Final = {**SESSION, "mcp-protocol-version": "2025-06-18"}
INFO_C: Final = {"name": "x", "version": "1"}
OPENED_C: Final = [
    sent(
        1,
        ask(1, "initialize", protocolVersion="2025-06-18", capabilities={}, clientInfo=INFO_C),
        {},
    ),
    got(
        1,
        200,
        result(1, protocolVersion="2025-06-18", capabilities={"tools": {}}, serverInfo=INFO_C),
        SESSION,
    ),
]
STREAMED_C: Final = [
    *OPENED_C,
    sent(2, NOTE, IN_C),
    got(2, 202),
    sent(3, CALL, IN_C),
    got(3, 200, kind=SSE),
]
OLD_INITIALIZED: Final = result(1, protocolVersion="2024-11-05", capabilities={}, serverInfo=INFO_C)
AGAIN: Final = got(2, 401, headers={"www-authenticate": "Bearer resource_metadata=x"})
RESUMED: Final = [*PRIMED, *resumed(3)]
LOST: Final = [*START, sent(3, CALL, IN), got(3, 404)]
TOKENS: Final = {"authorization": "Bearer x"}
ALLOWED: Final = [sent(1, CALL_E, {**MIRRORED, **TOKENS}), got(1, 200, CALLED_E)]
DENIED: Final = [SENT_E, got(1, 401, headers={"www-authenticate": "Bearer resource_metadata=x"})]
ORIGIN: Final = {**MIRRORED, "host": "a:1", "origin": "https://evil.invalid"}
SCOPE: Final = 'Bearer error="insufficient_scope", scope="x", resource_metadata="y"'
# HTTP+SSE
SSE_HEADERS: Final[Headers] = {"accept": SSE}
STREAM: Final = [sent(1, None, SSE_HEADERS, "GET"), got(1, 200, kind=SSE)]
OLD_INITIALIZE: Final = ask(
    1,
    "initialize",
    protocolVersion="2024-11-05",
    capabilities={},
    clientInfo={"name": "x", "version": "1"},
)
ENDPOINT: Final = event(1, "/messages?s=1", kind="endpoint")
OLD: Final = [*STREAM, ENDPOINT]


def post(target: str, number: int = 2) -> Sent:
    said = sent(number, OLD_INITIALIZE, {})
    line = said.message
    return Sent("client", replace(line, http=replace(line.http, target=target)))


def asked(number: int, target: str) -> Sent:
    said = sent(number, CALL_E, MIRRORED)
    line = said.message
    return Sent("client", replace(line, http=replace(line.http, target=target)))


def challenged(challenge: str, status: int = 403) -> list[Sent]:
    head: Headers = {"www-authenticate": challenge}
    return [*SERVED_BEFORE, SENT_E, got(1, status, headers=head)]


def of(revision: str) -> list[Sent]:
    """Return a request of an earlier revision."""
    info = {"name": "x", "version": "1"}
    known = ask(1, "initialize", protocolVersion=revision, capabilities={}, clientInfo=info)
    return [sent(1, known, {})]


CASES: Final[list[Case]] = [
    # Messages
    case(
        "PROG-9",
        "2026-07-28",
        [*SERVED_BEFORE, *RUNNING_E, *SECOND_E, event(2, PROGRESS)],
        [*SERVED_BEFORE, *RUNNING_E, event(1, PROGRESS)],
        SERVED_E,
        start=None,
    ),
    case(
        "SHL-4",
        "2025-11-25",
        [*RUNNING, *SECOND, event(4, PROGRESS)],
        [*RUNNING, event(3, PROGRESS)],
        START,
        start=None,
    ),
    case(
        "SHL-12",
        "2025-11-25",
        [*RUNNING, *OPEN_GET, event(5, PROGRESS)],
        [*RUNNING, event(3, PROGRESS)],
        START,
        start=None,
    ),
    case(
        "SHL-13",
        "2025-11-25",
        [*STREAMED, *OPEN_GET, event(5, CALLED)],
        [*STREAMED, event(3, CALLED)],
        [],
        start=None,
    ),
    case(
        "SHL-15",
        "2025-11-25",
        [*STREAMED, ended(1), *OPEN_GET, event(3, PING), event(5, PING)],
        [*STREAMED, *OPEN_GET, event(3, PING)],
        START,
        start=None,
    ),
    case(
        "SHL-15",
        "2025-11-25",
        [*STREAMED, *OPEN_GET, event(3, PING), ended(3, "client"), event(5, PING)],
        [*STREAMED, *OPEN_GET, event(3, PING)],
        START,
        start=None,
        is_certain=False,
    ),
    case(
        "SHM-8",
        "2026-07-28",
        [*STREAM_E, event(1, CHANGED)],
        [*LISTENING, event(1, CHANGED)],
        SERVED_E,
        start=None,
        allowed=("META-12",),
    ),
    case(
        "LOG-9",
        "2026-07-28",
        [*LISTENING, event(1, LOG)],
        [*SERVED_BEFORE, sent(1, LOGGED, MIRRORED), STREAM_E[1], event(1, LOG)],
        SERVED_E,
        start=None,
    ),
    case(
        "LOG-7",
        "2026-07-28",
        [*SERVED_BEFORE, *STREAM_E, event(1, LOG)],
        [*SERVED_BEFORE, sent(1, LOGGED, MIRRORED), STREAM_E[1], event(1, LOG)],
        SERVED_E,
        start=None,
    ),
    case(
        "RPC-7",
        "2026-07-28",
        [*STREAM_E, event(1, CALLED_E), event(1, CALLED_E)],
        [*STREAM_E, event(1, CALLED_E)],
        STREAM_E,
        start=None,
    ),
    case(
        "PROG-4",
        "2026-07-28",
        [*RUNNING_E, event(1, PROGRESS), event(1, PROGRESS)],
        [*RUNNING_E, event(1, PROGRESS), event(1, MORE)],
        SERVED_E,
        start=None,
    ),
    # Streams
    case(
        "SHL-6",
        "2025-11-25",
        [*STREAMED, event(3, CALLED, "a")],
        [*PRIMED, *resumed(3)],
        START,
        start=None,
    ),
    case(
        "SHL-8",
        "2025-11-25",
        [*PRIMED, *resumed(1.5)],
        [*PRIMED, *resumed(3)],
        START,
        start=None,
        side="client",
    ),
    case(
        "SHL-18",
        "2025-11-25",
        [*PRIMED, *resume(4, "z")],
        [*PRIMED, *resumed(3)],
        START,
        start=None,
        side="client",
        is_certain=True,
    ),
    case(
        "SHL-19",
        "2025-11-25",
        [*PRIMED, *SECOND, event(4, None, "x"), event(4, YES, "y"), *LATER, event(5, YES, "y")],
        [*PRIMED, *LATER, event(5, CALLED, "b"), *LAST, event(6, CALLED, "b")],
        START,
        start=None,
    ),
    case(
        "SHL-25",
        "2025-11-25",
        [*LOST, at(5, sent(4, {**CALL, "id": 3}, IN))],
        [*LOST, at(5, sent(4, {**INITIALIZE, "id": 3}, {}))],
        START,
        start=None,
    ),
    case(
        "SHL-3",
        "2025-11-25",
        [*STREAMED, ended(1), event(3, CALLED), at(9, sent(4, NOTE, IN)), at(9, got(4, 202))],
        [*STREAMED, event(3, CALLED), ended(3)],
        SERVED,
        start=None,
        side="server",
    ),
    case(
        "SHL-3",
        "2025-11-25",
        # A tool need not record where responses end.
        [*STREAMED, event(3, CALLED), at(9, sent(4, NOTE, IN)), at(9, got(4, 202))],
        [*STREAMED, event(3, CALLED), ended(3)],
        SERVED,
        start=None,
        side="server",
        is_certain=False,
    ),
    case(
        "SHM-10",
        "2026-07-28",
        [
            *SERVED_BEFORE,
            ended(9),
            *STREAM_E,
            event(1, CALLED_E),
            at(9, sent(2, CALL_2, MIRRORED)),
        ],
        [*STREAM_E, event(1, CALLED_E), ended(1)],
        SERVED_E,
        start=None,
        side="server",
    ),
    case(
        "SHL-5",
        "2025-06-18",
        [*STREAMED_C, ended(3), sent(4, NOTE, IN_C), got(4, 202)],
        [*STREAMED_C, event(3, CALLED), ended(3)],
        OPENED_C,
        start=None,
        allowed=("RPC-35",),
    ),
    case(
        "SUB-8",
        "2026-07-28",
        [*LISTENING, ended(1)],
        [*LISTENING, event(1, LISTEN_RESULT), ended(1)],
        SERVED_E,
        start=None,
        is_certain=False,
    ),
    # HTTP+SSE
    case(
        "SSE-2",
        "2024-11-05",
        [*STREAM, event(1, notify("x")), ENDPOINT],
        [*OLD],
        STREAM,
        start=None,
    ),
    case(
        "SSE-2",
        "2024-11-05",
        [*STREAM, event(1, None, kind="endpoint")],
        [*OLD],
        STREAM,
        start=None,
    ),
    case(
        "SSE-3",
        "2024-11-05",
        [*OLD, post("/other")],
        [*OLD, post("/messages?s=1")],
        [*OLD],
        start=None,
    ),
    case(
        "SSE-4",
        "2024-11-05",
        [*OLD, post("/messages"), got(2, 200, OLD_INITIALIZED)],
        [*OLD, post("/messages"), got(2, 202)],
        [*OLD],
        start=None,
        is_certain=False,
    ),
    # Origins and sessions
    case(
        "HTTP-1",
        "2026-07-28",
        [sent(1, CALL_E, ORIGIN), got(1, 200, CALLED_E)],
        [sent(1, CALL_E, ORIGIN), got(1, 403)],
        SERVED_E,
        start=None,
    ),
    case(
        "HTTP-1",
        "2026-07-28",
        [sent(1, CALL_E, {**ORIGIN, "origin": "https://b.com"}), got(1, 200, CALLED_E)],
        [sent(1, CALL_E, ORIGIN), got(1, 403)],
        [sent(1, CALL_E, {**ORIGIN, "origin": "http://a:1"}), got(1, 200, CALLED_E)],
        start=None,
        is_certain=False,
    ),
    case(
        "HTTP-2",
        "2026-07-28",
        [*SERVED_BEFORE, sent(1, CALL_E, ORIGIN), got(1, 404)],
        [*SERVED_BEFORE, sent(1, CALL_E, ORIGIN), got(1, 403)],
        SERVED_E,
        start=None,
        is_certain=False,
    ),
    case(
        "SHL-23",
        "2025-11-25",
        [*START, sent(3, CALL, VERSION), got(3, 404)],
        [*START, sent(3, CALL, VERSION), got(3, 400)],
        SERVED,
        start=None,
        is_certain=False,
        allowed=("SHL-22",),
        pass_allowed=("SHL-22",),
    ),
    # Authorization
    case(
        "AT-1",
        "2026-07-28",
        [*ALLOWED, sent(2, CALL_2, MIRRORED)],
        [*ALLOWED, sent(2, CALL_2, {**MIRRORED, **TOKENS})],
        SERVED_E,
        start=None,
    ),
    case(
        "AT-1",
        "2026-07-28",
        [asked(1, "/mcp?access_token=x")],
        ALLOWED,
        [asked(1, "/mcp?x=1")],
        start=None,
        is_certain=False,
    ),
    case(
        "AT-1",
        "2026-07-28",
        [*ALLOWED, at(600, sent(2, CALL_2, MIRRORED))],  # the token can have expired
        ALLOWED,
        SERVED_E,
        start=None,
        is_certain=False,
    ),
    case(
        "AR-3",
        "2025-06-18",
        [*of("2025-06-18"), got(1, 401)],
        [
            *of("2025-06-18"),
            got(1, 401, headers={"www-authenticate": "Bearer resource_metadata=x"}),
        ],
        SERVED,
        start=None,
        is_certain=False,
    ),
    case(
        "AR-4",
        "2025-11-25",
        [*of("2025-11-25"), got(1, 401)],
        [
            *of("2025-11-25"),
            got(1, 401, headers={"www-authenticate": "Bearer resource_metadata=x"}),
        ],
        SERVED,
        start=None,
        is_certain=False,
    ),
    case(
        "AR-6",
        "2026-07-28",
        challenged('Bearer error="insufficient_scope"'),
        challenged(SCOPE),
        SERVED_E,
        start=None,
    ),
    case(
        "AR-9",
        "2026-07-28",
        challenged(SCOPE.replace('"x"', '"x offline_access"')),
        challenged(SCOPE),
        SERVED_E,
        start=None,
    ),
    case(
        "AR-13",
        "2026-07-28",
        [*DENIED, sent(2, CALL_2, MIRRORED), got(2, 200, {**CALLED_E, "id": 2})],
        [*SERVED_BEFORE, *DENIED, sent(2, CALL_2, MIRRORED), AGAIN],
        ALLOWED,
        start=None,
        is_certain=False,
    ),
    case(
        "AR-14",
        "2026-07-28",
        [asked(1, "/mcp?access_token=x"), got(1, 200, CALLED_E)],
        [*SERVED_BEFORE, asked(1, "/mcp?access_token=x"), got(1, 403)],
        SERVED_E,
        start=None,
        is_certain=False,
        allowed=("AT-1",),
        pass_allowed=("AT-1",),
    ),
]
