"""The judgement of a few lines after a beginning, in `lines.txt`.

    python -m tests.core.trace.judge.lines

writes the file again. Beside the findings it has what is counted and remembered: messages, texts
that could not be read, gaps, and how often each row was judged.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Final

from msgspec.structs import replace

from mcp_core.trace import DamagedLine, HttpHead, Judge, SseFields, TraceHeader, TraceLine
from tests.core.trace.judge.conversations import META, Sent, Start, as_lines, ask, notify, result
from tests.core.trace.judge.rules.http import IN, MIRRORED, START, event, got, sent
from tests.kept import read_kept, write_kept

__all__ = ["LINES", "judged_lines", "kept_lines"]

_FILE: Final = Path(__file__).with_name("lines.txt")
_NEW: Final = {META + "protocolVersion": "2026-07-28", META + "clientCapabilities": {}}
_CALL: Final = ask(2, "tools/call", name="t")
_NEW_CALL: Final = ask(1, "tools/call", name="t", _meta=_NEW)
_NOTE: Final = notify("notifications/message", level="info", data=1)


def _line(sender: Any, message: Any = None, **members: Any) -> TraceLine:
    """Return a line with a message, or with a text or bytes as they are."""
    if isinstance(message, bytes):
        return TraceLine(t=0.0, sender=sender, data=message, **members)
    text = message if isinstance(message, str | None) else json.dumps(message)
    return TraceLine(t=0.0, sender=sender, raw=text, **members)


# Lines on a byte stream, for any transport.
_TEXTS: Final[dict[str, list[Any]]] = {
    "nothing": [],
    "a message": [_line("client", _CALL), _line("server", result(2, content=[]))],
    "an unknown conversation": [_line("client", _CALL, conversation=2)],
    "an empty text": [_line("client", ""), _line("client", " \t")],
    "no UTF-8": [_line("client", b"\xff"), _line("server", b"\xff")],
    "no JSON": [_line("client", "{"), _line("server", "log: 1"), _line("server", '{"a": NaN}')],
    "a message over several lines": [
        *(_line("server", each) for each in ("{", '"jsonrpc": "2.0"', "}")),
        *(_line("client", each) for each in ("[", "1]", '{"a":', "1}")),
    ],
    "no object": [_line("client", "1"), _line("server", '"a"'), _line("server", "null")],
    "deep JSON": [_line("client", "[" * 300 + "]" * 300)],
    "a batch": [_line("client", [_CALL, ask(3, "ping")])],
    "a batch of one": [_line("client", [_CALL])],
    "a batch that is redacted": [
        replace(_line("client", [ask(2, "tools/call", name=5)]), redacted=("/params",))
    ],
    "a batch of large messages": [
        _line("client", [ask(2, "x", a="b" * 5000), ask(3, "x")]),
        _line("client", [ask(4, "x", a="b" * 5000), *[ask(5, "x")] * 9]),
    ],
    "a result of another shape": [_line("client", _CALL), _line("server", result(2, content=5))],
    "params of another shape": [_line("client", ask(2, "tools/call", name=5))],
    "an error of another shape": [
        _line("client", _CALL),
        _line("server", {"jsonrpc": "2.0", "id": 2, "error": {"code": "a", "message": 5}}),
    ],
    "a batch of nothing": [_line("server", [])],
    "a batch of responses and requests": [
        _line("client", _CALL),
        _line("server", [result(2, content=[]), _NOTE]),
    ],
    "a batch of responses": [_line("server", [result(2), result(3)])],
    "a batch of what is no message": [_line("client", [1, {}, "a"])],
    "a batch of many": [_line("client", [_NOTE] * 11), _line("client", [_NOTE] * 10)],
    "a message that is redacted": [
        replace(_line("client", {**_CALL, "params": {"name": 1}}), redacted=(place,))
        for place in ("/params/name", "/params", "/params/arguments", "/id")
    ],
    "a message that was cut off": [
        _line("client", '{"jsonrpc":', end="cut"),
        _line("server", '{"jsonrpc":', end="complete"),
    ],
    "a message that was cut off after its end": [_line("server", _NOTE, end="cut")],
    "ends": [
        _line("server", end="complete"),
        _line("client", end="complete"),
        TraceLine(t=0.0, kind="exit", status=1),
    ],
    "an exit": [TraceLine(t=0.0, kind="exit"), _line("client", end="complete")],
    "a lost line": [TraceLine(t=0.0, kind="lost"), _line("server", result(9))],
    "a damaged line": [DamagedLine(reason="x", beginning=""), _line("server", result(9))],
    "another process": [TraceLine(t=0.0, kind="spawn"), _line("client", _CALL)],
    "a line without a time": [replace(_line("client", _CALL), t=-1.0)],
    "a line without a sender": [TraceLine(t=0.0, raw="{}")],
    "a large message": [_line("client", ask(2, "x", a="b" * 5000))],
    "an invalid message": [
        _line("client", {"id": 7}),
        _line("server", {"jsonrpc": "2.0", "id": None, "error": {"code": -32600, "message": "m"}}),
        _line("server", {"jsonrpc": "2.0", "error": {"code": -32700, "message": "m"}}),
    ],
}  # fmt: skip


def _stream(*events: Any, number: int = 8, method: str = "POST", **headers: Any) -> list[Any]:
    """Return a request, the head of an event stream and its events."""
    message = _CALL if method == "POST" else None
    opened = sent(number, message, {**IN, "accept": "text/event-stream", **headers}, method)
    return [opened, got(number, 200, kind="text/event-stream"), *events]


def _event(message: Any, number: int = 8, **fields: Any) -> Sent:
    text = message if isinstance(message, str | None) else json.dumps(message)
    line = TraceLine(t=0.0, exchange=number, sender="server", raw=text, sse=SseFields(**fields))
    return Sent("server", line)


def _of_another(said: list[Any]) -> list[Any]:
    """Return lines as those of the second conversation."""
    return [Sent(each.sender, replace(each.message, conversation=2)) for each in said]


_RESUMED: Final = {"last-event-id": "1"}
# Lines of exchanges, after a handshake over HTTP.
_EXCHANGES: Final[dict[str, list[Any]]] = {
    "a call": [sent(8, _CALL, IN), got(8, 200, result(2, content=[]))],
    "a call with a body that is no message": [
        Sent("client", TraceLine(t=0.0, exchange=8, sender="client", raw=body,
                                 http=HttpHead(method="POST", target="/mcp")))
        for body in ("", "a=b", "{", '{"jsonrpc"')
    ],
    "a response with a body that is no message": [
        sent(8, _CALL, IN), got(8, 502, "<html>", kind="text/html"),
    ],
    "a response without a request": [got(9, 200, result(2, content=[]))],
    "an event without a stream": [_event(_NOTE, 9, id="1")],
    "a stream": _stream(_event(_NOTE), _event(result(2, content=[]))),
    "a stream with ids": _stream(
        _event("", id="1"), _event(_NOTE, id="2"), _event(result(2, content=[]), id="3")
    ),
    "a stream whose first event has data": _stream(_event(_NOTE, id="1")),
    "a stream with a reconnection time": _stream(_event(None, retry=5), _event(_NOTE, retry=6)),
    "a stream with one id twice": _stream(_event(_NOTE, id="1"), _event(_NOTE, id="1")),
    "a stream with one id for two": _stream(
        _event(_NOTE, id="1"), _event({**_NOTE, "a": 1}, id="1")
    ),
    "a stream that is resumed": [
        *_stream(_event("", id="1"), _event(_NOTE, id="2")),
        *_stream(_event(_NOTE, 9, id="2"), number=9, method="GET", **_RESUMED),
    ],
    "a stream that is resumed as another": [
        *_stream(_event("", id="1")),
        *_stream(_event(_NOTE, 9, id="2"), number=9, method="GET"),
        *_stream(_event(_NOTE, 10, id="2"), number=10, method="GET", **_RESUMED),
    ],
    **{
        f"a stream that is resumed with {name} of another client": [
            *_of_another(_stream(_event(message, 20, id="x"), number=20)),
            *_stream(_event(message, 9, id="x"), number=9, method="GET", **_RESUMED),
        ]
        for name, message in (
            ("a response", result(5)),
            ("progress", notify("notifications/progress", progressToken=5, progress=1)),
            ("a log message", _NOTE),
            ("nothing", ""),
            ("a batch", [result(5)]),
        )
    },
    "a stream that is resumed with its own response": [
        *_stream(_event(result(5), 8, id="x")),
        *_stream(_event(result(5), 9, id="x"), number=9, method="GET", **_RESUMED),
    ],
    "an endpoint": _stream(_event("/messages?id=1", event="endpoint"), method="GET"),
    "an endpoint that is none": _stream(_event("", event="endpoint"), method="GET"),
    "an endpoint with a space": _stream(_event("/a b", event="endpoint"), method="GET"),
    "an endpoint after an event": _stream(
        _event(_NOTE), _event("/messages", event="endpoint"), method="GET"
    ),
    "an event of another type": _stream(_event(_NOTE, event="x")),
    "a notification that may be another client's": [sent(8, _NOTE, {})],
    "a response that may be another client's": [sent(8, result(5), {})],
    "a batch": [sent(8, [_CALL, ask(3, "ping")], IN)],
    "another session": [sent(8, ask(9, "initialize", protocolVersion="2025-11-25"), {})],
    "lost lines and ids": [
        Sent("client", TraceLine(t=0.0, kind="lost")),
        *_stream(_event(_NOTE, id="1"), _event({**_NOTE, "a": 1}, id="1")),
    ],
}  # fmt: skip
_MODERN_EXCHANGES: Final[dict[str, list[Any]]] = {
    "a call": [sent(8, _NEW_CALL, MIRRORED), got(8, 200, result(1, content=[]))],
    "a call that is answered in this revision": [
        sent(8, _NEW_CALL, MIRRORED),
        got(8, 200, result(1, content=[], resultType="complete")),
    ],
    "a stream": [
        *(sent(8, _NEW_CALL, MIRRORED), got(8, 200, kind="text/event-stream")),
        *(event(8, _NOTE), event(8, result(1, content=[], resultType="complete"))),
    ],
    "a stream with an id": [
        *(sent(7, _NEW_CALL, MIRRORED), got(7, 200, result(1, content=[], resultType="complete"))),
        *(sent(8, {**_NEW_CALL, "id": 2}, MIRRORED), got(8, 200, kind="text/event-stream")),
        *(event(8, _NOTE, "1"), event(8, _NOTE)),
    ],
    "two revisions": [
        sent(8, ask(1, "tools/call", name="t", _meta={META + "protocolVersion": "9"}), MIRRORED),
        got(8, 400, {"jsonrpc": "2.0", "id": 1, "error": {"code": -32022, "message": "m"}}),
    ],
    "a GET": [sent(8, None, {"accept": "text/event-stream"}, "GET"), got(8, 405)],
    "a notification": [sent(8, notify("notifications/initialized"), {})],
    "a response": [sent(8, result(5), {})],
    "a response in a session": [sent(8, result(5), IN)],
    "a notification after a handshake": [
        sent(7, ask(9, "initialize", protocolVersion="2025-11-25"), {}),
        sent(8, notify("notifications/initialized"), {}),
    ],
    "a notification after an endpoint": [
        *_stream(_event("/messages", event="endpoint"), method="GET"),
        sent(9, notify("notifications/initialized"), {}),
    ],
}

_STDIO: Final = ("2025-03-26", "2025-11-25", "2026-07-28")
# By name: the header's transport, the observer, the beginning and the lines.
LINES: Final[dict[str, tuple[str, str, str, list[Any]]]] = {
    **{
        f"{revision} stdio: {name}": ("stdio", "between", revision, lines)
        for revision in _STDIO
        for name, lines in _TEXTS.items()
    },
    **{
        f"no transport: {name}": ("", "between", "2025-03-26", lines)
        for name, lines in _TEXTS.items()
    },
    **{
        f"HTTP seen {observer}: {name}": ("http", observer, "HTTP", lines)
        for observer in ("between", "client")
        for name, lines in _EXCHANGES.items()
    },
    **{
        f"HTTP without sessions, seen {observer}: {name}": ("http", observer, "", lines)
        for observer in ("between", "client")
        for name, lines in _MODERN_EXCHANGES.items()
    },
}


def judged_lines(name: str) -> str:
    """Return all that the judge says and counts of the lines of a name."""
    transport, observer, revision, said = LINES[name]
    header: Any = {"observer": observer, "transport": transport}
    unjudged: Any = "server" if observer == "client" else None
    judge = Judge(TraceHeader(format_version=1, **header), unjudged=unjudged)
    begun: list[Any] = []
    if revision == "HTTP":
        begun = [each.message for each in START]
    elif revision:
        begun = list(as_lines(Start(revision).messages(), revision))
    for line in begun:
        judge.receive(line)
    before, counted_before = _known(judge), judge.opportunities.copy()
    lines = [each.message if isinstance(each, Sent) else each for each in said]
    found = [finding for line in lines for finding in judge.receive(line)]
    known = [f"{key}: {value}" for key, value in _known(judge).items() if value != before.get(key)]
    found += judge.close()
    findings = [
        f"{each.row} {each.level} {each.side} {each.lines} {each.conversation}"
        f" {'' if each.is_certain else 'perhaps '}{each.sentence}"
        f" {each.link.partition('/specification/')[2]}"
        for each in found
    ]
    counts = sorted((judge.opportunities - counted_before).items())
    judged = " ".join(f"{row}:{count}" for row, count in counts)
    return "\n".join([*known, *findings, f"judged {judged}"])


def _known(judge: Judge) -> dict[str, str]:
    """Return what is known of the first conversation, and of each of its exchanges."""
    state = judge._conversations.find(1)
    given = state.rounds.given
    found: dict[str, Any] = {
        "messages": dict(judge.messages_from),
        "unread": (judge.unread("client"), judge.unread("server")),
        "gap": state.gap,
        "ends": (state.ended_by, state.end_times, state.exit),
        "order": (state.is_ordered, state.is_untimed, state.batches, state.pieces),
        "errors": (state.id_less_errors, state.large, given.is_complete),
        "endpoint": (state.http.has_endpoint, state.http.endpoint),
    }
    for number, each in state.http.exchanges.items():
        found[f"exchange {number}"] = (
            *(each.status, each.events, each.retry, each.has_event_ids, each.answered),
            *(each.ended_by, each.end, each.end_line, "/".join(each.revisions)),
        )
    return {key: str(value) for key, value in found.items()}


def kept_lines() -> dict[str, str]:
    """Return what is kept by the names of `LINES`."""
    return read_kept(_FILE)


if __name__ == "__main__":
    write_kept(_FILE, {name: judged_lines(name) for name in LINES})
