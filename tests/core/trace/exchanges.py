"""HTTP exchanges as a recorder sees them, and the lines of the trace for each, in `exchanges.txt`.

    python -m tests.core.trace.exchanges

writes the file again.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

from mcp_core.http import Body, End, Head, RequestHead
from mcp_core.trace import ConversationNumbers, HttpChannel, encode_line
from tests.kept import read_kept, write_kept

__all__ = ["EXCHANGES", "kept_exchanges", "lines_of"]

_FILE: Final = Path(__file__).with_name("exchanges.txt")
_POST: Final = RequestHead(b"POST", b"/mcp", [(b"a", b"\xe9")])
_IN_SESSION: Final = RequestHead(b"GET", b"/mcp", [(b"a", b"x"), (b"mcp-session-id", b"s")])
_JSON: Final = Head(200, [(b"content-type", b"application/json")])
_NEW: Final = Head(200, [(b"content-type", b"application/json"), (b"mcp-session-id", b"s")])
_SSE: Final = Head(200, [(b"content-type", b"text/event-stream; charset=utf-8")])
_SWITCHED: Final = Head(101, [])
_WHOLE: Final = ("request", (_POST, b"{}", "1.1"))
_IN_PIECES: Final = ("request", (_POST, None, "2"))
_COMPLETE: Final = ("ended", ("server", "complete"))
_RESET: Final = ("ended", ("server", "reset"))
_CLOSED: Final = ("ended", ("client", "closed"))


def _response(*actions: Any) -> tuple[str, Any]:
    return "response", list(actions)


def _events(*pieces: bytes) -> list[tuple[str, Any]]:
    return [_WHOLE, _response(_SSE), *(_response(Body(piece)) for piece in pieces)]


# What happens in each exchange, one after the other, each 1 s after the one before.
EXCHANGES: Final[dict[str, list[tuple[str, Any]]]] = {
    "request and answer": [_WHOLE, _response(_JSON, Body(b"{}"), End())],
    "request without a body": [("request", (_POST, b"", "1.1")), _response(Head(202, []), End())],
    "request in pieces": [
        _IN_PIECES,
        ("request_data", (b"{", False)),
        ("request_data", (b"}", True)),
        _response(_JSON, Body(b"{"), Body(b""), Body(b"}"), End()),
        _COMPLETE,
    ],
    "data of a request that was whole": [_WHOLE, ("request_data", (b"x", True)), _COMPLETE],
    "request that ends without a body": [_IN_PIECES, ("request_data", (b"", True))],
    "answer before the request's end": [
        _IN_PIECES,
        ("request_data", (b"{", False)),
        _response(Head(413, [])),
        ("request_data", (b"}", True)),
        _response(Body(b"too large"), End()),
    ],
    "request that breaks": [_IN_PIECES, ("request_data", (b"{", False)), _CLOSED, _RESET],
    "request that breaks without a body": [_IN_PIECES, _RESET, _COMPLETE],
    "answer that the server breaks": [_WHOLE, _response(_JSON, Body(b"{")), _RESET, _CLOSED],
    "answer that the client leaves": [_WHOLE, _response(_JSON, Body(b"{")), _CLOSED],
    "answer without a body that the client leaves": [_WHOLE, _response(_JSON), _CLOSED],
    "answer over the limit": [_WHOLE, _response(_JSON, Body(b"x" * 60), End())],
    "request over the limit": [("request", (_POST, b"x" * 60, "1.1")), _RESET],
    "no request": [_response(_JSON, Body(b"{}"), End())],
    "no request, and a session": [_response(_NEW, Body(b"{}"), End())],
    "no request, and events": [_response(_SSE, Body(b"event: endpoint\ndata: /messages?1\n\n"))],
    "no request, and an end": [_COMPLETE],
    "events": _events(
        b"data: {}\n\n",
        b"event: message\nid: 1\ndata: {}\n\nevent: other\ndata: x\n\n",
        b"retry: 5\ndata: {}\n\n",
        b"retry: 5\n\n",
        b"retry: 6\n\n",
        b"retry: 6\nid: 2\n\n",
        b"id: 2\n\n",
        b"data: cut",
    ),
    "event over the limit": _events(b"data: " + b"x" * 60 + b"\n\n", b"data: {}\n\n"),
    "event without data": _events(b"event: x\nid: 7\ndata\n\n"),
    "events with a lost part": [
        *_events(b"data: {}\n\n"),
        ("skip", None),
        _response(Body(b"data: {}\n\n")),
        _COMPLETE,
    ],
    "answer with a lost part": [
        _WHOLE,
        _response(_JSON, Body(b"{")),
        ("skip", None),
        _response(Body(b"}"), End()),
    ],
    "events that the server breaks": [*_events(b"data: {}\n\n"), _RESET],
    "session": [_WHOLE, _response(_NEW, Body(b"{}"), End())],
    "request in a session": [
        ("request", (_IN_SESSION, b"", "1.1")),
        _response(Head(405, []), End()),
    ],
    "endpoint": _events(b"event: endpoint\ndata: /messages?1\n\n"),
    "WebSocket": [
        ("request", (_POST, b"", "1.1")),
        _response(_SWITCHED),
        ("message", ("client", b"{}")),
        ("message", ("server", b"x" * 60)),
        ("close", ("server", 1000, "over")),
        _COMPLETE,
    ],
    "WebSocket without a request": [("message", ("server", b"{}")), ("message", ("client", b"{}"))],
}


def lines_of(name: str, *, single: bool) -> str:
    """Return the lines of an exchange, the second one of a trace, with a limit of 50 bytes.

    `single` is as for `ConversationNumbers`.
    """
    conversations = ConversationNumbers(single=single)
    conversations.add_session(b"s", conversations.new())
    channel = HttpChannel(7, conversations, 50)
    lines = []
    for t, (happening, what) in enumerate(EXCHANGES[name]):
        if happening == "skip":
            channel.skip()
            continue
        found = getattr(channel, happening)(float(t), what)
        lines += [f"  {bytes(encode_line(line)).decode().strip()}" for line in found]
    lines.append(f"  next conversation: {conversations.next_number}")
    for target, session in (b"/messages?1", b""), (b"/mcp", b"s"):
        request = RequestHead(b"POST", target, [(b"mcp-session-id", session)])
        lines.append(
            f"  of {target.decode()} {session.decode()}: {conversations.of_request(request)}"
        )
    return "\n".join(lines)


def kept_exchanges() -> dict[str, str]:
    """Return the lines in the file, by the exchanges' names with the side that records."""
    return read_kept(_FILE)


if __name__ == "__main__":
    write_kept(
        _FILE,
        {
            f"{name}, at a {'client' if single else 'server'}": lines_of(name, single=single)
            for name in EXCHANGES
            for single in (True, False)
        },
    )
