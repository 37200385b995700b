"""Conversations over Streamable HTTP."""

from __future__ import annotations

import json
from typing import Any, Final, Literal

from mcp_core.trace import HttpHead, SseFields, TraceLine
from tests.core.trace.judge.conversations import INFO, Sent, ask, error, notify, result
from tests.core.trace.judge.rules.case import Case, case
from tests.core.trace.judge.rules.messages import META_E, SERVER_META, TEXT

Headers = dict[str, str | None]
BOTH: Final[Headers] = {
    "accept": "application/json, text/event-stream",
    "content-type": "application/json",
}


def _head(headers: Headers, **members: Any) -> HttpHead:
    found = tuple((name, value) for name, value in headers.items() if value is not None)
    return HttpHead(version="1.1", headers=found, **members)


def sent(number: int, message: Any, headers: Headers, method: str = "POST") -> Sent:
    """Return a request. A header that is None is left out."""
    line = TraceLine(
        t=0.0,
        exchange=number,
        sender="client",
        http=_head({**BOTH, **headers} if method == "POST" else headers, method=method),
        raw=None if message is None else json.dumps(message),
    )
    return Sent("client", line)


def got(
    number: int,
    status: int,
    message: Any = None,
    headers: Headers | None = None,
    kind: str = "application/json",
) -> Sent:
    """Return a response."""
    known: Headers = {"content-type": kind} if message is not None or status == 200 else {}
    line = TraceLine(
        t=0.0,
        exchange=number,
        sender="server",
        http=_head({**known, **(headers or {})}, status=status),
        raw=None if message is None else json.dumps(message),
    )
    return Sent("server", line)


def event(
    number: int, message: Any, id: str | None = None, kind: str = "", retry: int | None = None
) -> Sent:
    fields = SseFields(id=id, event=kind, retry=retry)
    text: str | None = message if isinstance(message, str) else json.dumps(message)
    text = None if message is None else text
    return Sent("server", TraceLine(t=0.0, exchange=number, sender="server", sse=fields, raw=text))


def ended(number: int, sender: Literal["client", "server"] = "server") -> Sent:
    """Return the end of a response, which is complete if the server ended it."""
    end = "complete" if sender == "server" else "closed"
    return Sent(sender, TraceLine(t=0.0, exchange=number, sender=sender, end=end))


SSE: Final = "text/event-stream"
# 2025-11-25, with a session
INITIALIZE: Final = ask(
    1, "initialize", protocolVersion="2025-11-25", capabilities={}, clientInfo=INFO
)
INITIALIZED: Final = result(
    1, protocolVersion="2025-11-25", capabilities={"tools": {}}, serverInfo=INFO
)
NOTE: Final = notify("notifications/initialized")
SESSION: Final[Headers] = {"mcp-session-id": "s"}
VERSION: Final[Headers] = {"mcp-protocol-version": "2025-11-25"}
IN: Final[Headers] = {**SESSION, **VERSION}
OPENED: Final = [sent(1, INITIALIZE, {}), got(1, 200, INITIALIZED, SESSION)]
START: Final = [*OPENED, sent(2, NOTE, IN), got(2, 202)]
CALL: Final = ask(2, "tools/call", name="t")
CALLED: Final = result(2, content=TEXT)
SERVED: Final = [*START, sent(3, CALL, IN), got(3, 200, CALLED)]
STREAMED: Final = [*START, sent(3, CALL, IN), got(3, 200, kind=SSE)]
GET: Final = [*START, sent(4, None, {"accept": SSE, **IN}, "GET")]
DELETED: Final = [*START, sent(4, None, IN, "DELETE"), got(4, 204), sent(5, CALL, IN)]

# 2026-07-28
CALL_E: Final = ask(1, "tools/call", name="t", _meta=META_E)
CALLED_E: Final = result(1, resultType="complete", content=TEXT, _meta=SERVER_META)
MIRRORED: Final[Headers] = {
    "mcp-protocol-version": "2026-07-28",
    "mcp-method": "tools/call",
    "mcp-name": "t",
}
SENT_E: Final = sent(1, CALL_E, MIRRORED)
SERVED_E: Final = [SENT_E, got(1, 200, CALLED_E)]
NO_VERSION: Final = sent(1, CALL_E, {**MIRRORED, "mcp-protocol-version": None})
NO_METHOD: Final = sent(1, CALL_E, {**MIRRORED, "mcp-method": None})
LATIN: Final = ask(1, "tools/call", name="café", _meta=META_E)
NO_BUFFER: Final[Headers] = {"x-accel-buffering": "no"}
STREAM_E: Final = [SENT_E, got(1, 200, None, NO_BUFFER, SSE)]
SERVED_BEFORE: Final = [sent(9, {**CALL_E, "id": 9}, MIRRORED), got(9, 200, {**CALLED_E, "id": 9})]
OK_E: Final = SERVED_BEFORE[1]
UNMARKED: Final = got(1, 200, kind=SSE)
DATA: Final = {"supported": [], "requested": "2026-07-28"}


def failed(code: int, status: int, id: Any = 1) -> list[Sent]:
    """Return an error of a server that is known to serve 2026-07-28."""
    return [*SERVED_BEFORE, SENT_E, got(1, status, error(id, code, data=DATA))]


CASES: Final[list[Case]] = [
    # A response that is complete, and has none of JSON-RPC
    case(
        "RPC-35",
        "2026-07-28",
        [*SERVED_BEFORE, SENT_E, got(1, 200), ended(1)],
        SERVED_E,
        [],
        start=None,
    ),
    case(
        "RPC-35",
        "2026-07-28",
        [*STREAM_E, sent(9, {**CALL_E, "id": 9}, MIRRORED), ended(1), OK_E],
        [*STREAM_E, event(1, CALLED_E), ended(1)],
        [],
        start=None,
        side="server",
    ),
    case(
        "RPC-35",
        "2026-07-28",
        [*SERVED_BEFORE, SENT_E, got(1, 202), ended(1)],
        SERVED_E,
        [SENT_E, got(1, 503), ended(1)],
        start=None,
        allowed=("HTTP-8",),
    ),
    case(
        "RPC-35",
        "2026-07-28",
        [SENT_E, got(1, 202), ended(1)],  # its response can be on a stream of HTTP+SSE
        SERVED_E,
        [],
        start=None,
        is_certain=False,
    ),
    # The client closed the stream, or can resume it
    case(
        "RPC-35",
        "2026-07-28",
        [*STREAM_E, ended(1)],  # the server can have shut down
        SERVED_E,
        [*STREAM_E, ended(1, "client")],
        start=None,
        is_certain=False,
    ),
    case(
        "RPC-35",
        "2025-11-25",
        [*STREAMED, event(3, notify("x")), ended(3)],
        [*STREAMED, event(3, None, "1"), ended(3)],
        [],
        start=None,
        is_certain=False,
    ),
    case(
        "HTTP-6",
        "2025-11-25",
        [*START, sent(3, CALL, {**IN, "accept": "*/*"})],
        SERVED,
        [],
        start=None,
    ),
    # Our server answers these clients, and they are at fault all the same.
    *(
        case(
            "HTTP-6",
            revision,
            [*before, sent(3, call, {**headers, "accept": accept})],
            [*before, sent(3, call, headers)],
            [],
            start=None,
        )
        for accept in ("application/json", SSE, None)
        for revision, before, call, headers in (
            ("2025-11-25", START, CALL, IN),
            ("2026-07-28", [], CALL_E, MIRRORED),
        )
    ),
    case(
        "HTTP-8",
        "2025-11-25",
        [*START, sent(3, CALL, IN), got(3, 200, kind="text/html")],
        SERVED,
        [],
        start=None,
    ),
    # The client ends the session meanwhile
    case(
        "HTTP-8",
        "2025-11-25",
        [*START, sent(3, CALL, IN), got(3, 202)],
        [*START, sent(3, CALL, IN), sent(4, None, IN, "DELETE"), got(3, 202)],
        [],
        start=None,
    ),
    case(
        "HTTP-9", "2025-11-25", [*START, sent(3, NOTE, IN), got(3, 200)], START, OPENED, start=None
    ),
    case(
        "SHL-11",
        "2025-11-25",
        [*GET, got(4, 200, kind="text/html")],
        [*GET, got(4, 200, kind=SSE)],
        START,
        start=None,
    ),
    case(
        "SHL-16",
        "2025-11-25",
        [*STREAMED, event(3, None, "0"), event(3, notify("x"), "1"), event(3, CALLED, "1")],
        [*STREAMED, event(3, None, "0"), event(3, notify("x"), "1"), event(3, CALLED, "2")],
        START,
        start=None,
    ),
    case(
        "SHL-21",
        "2025-11-25",
        [OPENED[0], got(1, 200, INITIALIZED, {"mcp-session-id": "a b"})],
        OPENED,
        [OPENED[0], got(1, 200, INITIALIZED)],
        start=None,
    ),
    case("SHL-22", "2025-11-25", [*START, sent(3, CALL, VERSION)], SERVED, OPENED, start=None),
    case(
        "SHL-24",
        "2025-11-25",
        [*DELETED, got(5, 200, CALLED)],
        [*DELETED, got(5, 404)],
        START,
        start=None,
    ),
    case("SHL-28", "2025-11-25", [*START, sent(3, CALL, SESSION)], SERVED, OPENED, start=None),
    case(
        "SHM-2",
        "2026-07-28",
        [sent(1, CALL_E, {**MIRRORED, "mcp-protocol-version": "2025-11-25"})],
        SERVED_E,
        OPENED,
        start=None,
    ),
    case(
        "SHM-3",
        "2026-07-28",
        [NO_VERSION, got(1, 200, CALLED_E)],
        [*SERVED_BEFORE, NO_VERSION, got(1, 400, error(1, -32020))],
        SERVED_E,
        start=None,
        allowed=("SHM-2",),
        pass_allowed=("SHM-2",),
    ),
    case("SHM-5", "2026-07-28", failed(-32601, 200), failed(-32601, 404), SERVED_E, start=None),
    case("SHM-6", "2026-07-28", failed(-32022, 200), failed(-32022, 400), SERVED_E, start=None),
    case(
        "SHM-7",
        "2026-07-28",
        failed(-32602, 400, None),
        failed(-32602, 400),
        failed(-32600, 403, None),  # the Origin is checked before the body
        start=None,
    ),
    case(
        "SHM-7",
        "2026-07-28",
        failed(-32602, 400, 7),
        failed(-32602, 404),
        # Parsers differ, in escapes of lone surrogates for example.
        failed(-32700, 400, None),
        start=None,
        allowed=("RPC-7",),
    ),
    case(
        "SHM-13",
        "2026-07-28",
        [*SERVED_BEFORE, *STREAM_E, event(1, CALLED_E, "1")],
        [*SERVED_BEFORE, *STREAM_E, event(1, CALLED_E)],
        # Of a server that may not know the revision
        [*STREAM_E, event(1, result(1, content=TEXT), "1")],
        start=None,
    ),
    case(
        "SHM-14",
        "2026-07-28",
        [SENT_E, got(1, 200, CALLED_E, SESSION)],
        SERVED_E,
        OPENED,
        start=None,
        is_certain=False,
    ),
    case(
        "SHM-14",
        "2026-07-28",
        [*SERVED_BEFORE, SENT_E, got(1, 400, error(1), SESSION)],
        SERVED_E,
        [SENT_E, got(1, 400, error(1), SESSION)],
        start=None,
        is_certain=False,
    ),
    case(
        "SHM-15",
        "2026-07-28",
        [*SERVED_BEFORE, sent(1, CALL_E, {**MIRRORED, "host": "127.0.0.1:80"}), UNMARKED],
        [*SERVED_BEFORE, *STREAM_E],
        [SENT_E, got(1, 200, kind=SSE)],
        start=None,
    ),
    case(
        "SHM-15",
        "2026-07-28",
        [*SERVED_BEFORE, SENT_E, UNMARKED],  # what is in between can have taken it
        [*SERVED_BEFORE, *STREAM_E],
        [SENT_E, UNMARKED],
        start=None,
        is_certain=False,
    ),
    case("HDR-1", "2026-07-28", [NO_METHOD], SERVED_E, OPENED, start=None),
    case(
        "HDR-2",
        "2026-07-28",
        [sent(1, CALL_E, {**MIRRORED, "mcp-name": "T"})],
        SERVED_E,
        OPENED,
        start=None,
    ),
    case(
        "HDR-3",
        "2026-07-28",
        [*SERVED_BEFORE, NO_METHOD, got(1, 200, CALLED_E)],
        [*SERVED_BEFORE, NO_METHOD, got(1, 400, error(1, -32020))],
        [SENT_E, got(1, 200, result(1, content=TEXT))],
        start=None,
        allowed=("HDR-1",),
        pass_allowed=("HDR-1",),
    ),
    case(
        "HDR-5",
        "2026-07-28",
        [sent(1, LATIN, {**MIRRORED, "mcp-name": "café"})],
        [sent(1, LATIN, {**MIRRORED, "mcp-name": "=?base64?Y2Fmw6k=?="})],
        SERVED_E,
        start=None,
    ),
]
