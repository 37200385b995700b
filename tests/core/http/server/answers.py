"""All that an endpoint answers to each of a table of requests, in `answers.txt`.

    python -m tests.core.http.server.answers

writes the file again. A change of the endpoint shows in it which answers it changes, also to
requests that the change isn't about: read that difference before you commit it.

Each text is an endpoint with its options and sessions. Below it is each request, and in this order:
the response at once; what is added while the handler goes on (`+`), during 20 seconds of silence
(`20 s`), and when the endpoint closes (`close`); and in brackets the sessions that are left, and
when the router acts by itself.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from msgspec import json

from mcp_core.http import HostOriginPolicy, HttpLimits
from tests.harness.wire.router import (
    GET,
    HOST,
    POST,
    D,
    E,
    Reply,
    RouterHarness,
    SessionClient,
    example,
    initialize,
    meta,
    request,
)
from tests.kept import read_kept, write_kept

if TYPE_CHECKING:
    from mcp_core.http.wire._messages import Headers

__all__ = ["ENDPOINTS", "answers_of", "kept_endpoint_answers"]

_FILE: Final = Path(__file__).with_name("answers.txt")
_A: Final = "2024-11-05"
_B: Final = "2025-03-26"
_ORIGIN: Final = b"https://app.example.com"
_FIRST: Final = (b"mcp-session-id", b"%032d" % 1)
_TO_FIRST: Final = b"/mcp?session_id=%032d" % 1
_SERVER: Final = example()
_LIMITS: Final = HttpLimits(body_time=50.0, idle=40.0, initialize=25.0)

# A request to a harness, perhaps by a session's client.
_Request = Callable[[RouterHarness, SessionClient | None], Reply]


class _SseClient(SessionClient):
    """A session over HTTP+SSE, whose messages go to a URL of its own."""

    def __init__(self, harness: RouterHarness, stream: Reply) -> None:
        super().__init__(harness, b"", _A, "")
        self.headers = []
        self.target = stream.events[0][1]


def _sent(
    verb: bytes,
    headers: Headers,
    body: bytes | None = None,
    target: bytes = b"/mcp",
) -> _Request:
    """Return a request, with the headers of its session that it doesn't have itself."""
    own = {name for name, _ in headers}

    def send(harness: RouterHarness, client: SessionClient | None) -> Reply:
        more = [each for each in _of_session(client) if each[0] not in own]
        place = client.target if isinstance(client, _SseClient) and target == b"/mcp" else target
        return harness.send(verb, [*headers, *more], body, place)

    return send


def _of_session(client: SessionClient | None) -> Headers:
    return client.headers if client is not None else []


def _posted(message: Any, *more: tuple[bytes, bytes], without: bytes = b"") -> _Request:
    body = message if isinstance(message, bytes) else json.encode(message)
    return _sent(b"POST", [*(each for each in POST if each[0] != without), *more], body)


def _called(name: str, *more: tuple[bytes, bytes], **arguments: Any) -> _Request:
    """Return a call of a tool, in the revision of the session, or in the last one without any."""

    def send(harness: RouterHarness, client: SessionClient | None) -> Reply:
        params: dict[str, Any] = {"name": name, "arguments": arguments}
        if client is None:
            params["_meta"] = meta(progressToken="p")
            return _posted(
                request(1, "tools/call", params), *_stateless_headers("tools/call", name), *more
            )(harness, client)
        params["_meta"] = {"progressToken": "p"}
        return _posted(request(1, "tools/call", params), *more)(harness, client)

    return send


def _stateless_headers(method: str, name: str | None = None) -> Headers:
    found = [(b"mcp-protocol-version", E.encode()), (b"mcp-method", method.encode())]
    return found if name is None else [*found, (b"mcp-name", name.encode())]


def _stateless(method: str, params: dict[str, Any] | None = None) -> _Request:
    return _posted(
        request(1, method, {**(params or {}), "_meta": meta()}), *_stateless_headers(method)
    )


_PING: Final = request(7, "ping")
_CANCELLED: Final = {
    "jsonrpc": "2.0",
    "method": "notifications/cancelled",
    "params": {"requestId": 1},
}
_NOTED: Final = {"jsonrpc": "2.0", "method": "notifications/roots/list_changed"}
_ANSWER: Final = {"jsonrpc": "2.0", "id": 5, "result": {}}
_AS_EVENTS: Final = (
    "content-type: text/event-stream; cache-control: no-cache, no-transform; x-accel-buffering: no"
)
_ACCEPT_JSON: Final = (b"accept", b"application/json")
_ACCEPT_EVENTS: Final = (b"accept", b"text/event-stream")
_PROGRESS: Final = {"_meta": {"progressToken": "q"}}


def _accepting(accept: tuple[bytes, bytes], name: str, **arguments: Any) -> _Request:
    def send(harness: RouterHarness, client: SessionClient | None) -> Reply:
        params: dict[str, Any] = {"name": name, "arguments": arguments}
        more: Headers = []
        if client is None:
            params["_meta"] = meta(progressToken="p")
            more = _stateless_headers("tools/call", name)
        else:
            params["_meta"] = {"progressToken": "p"}
        message = request(1, "tools/call", params)
        return _posted(message, accept, *more, without=b"accept")(harness, client)

    return send


def _broken_off(name: str, **arguments: Any) -> _Request:
    """Return a call whose client disconnects before its end."""

    def send(harness: RouterHarness, client: SessionClient | None) -> Reply:
        reply = _called(name, **arguments)(harness, client)
        harness.step()
        harness.close_after(reply)
        return reply

    return send


def _twice(first: _Request, second: _Request, steps: int = 0) -> _Request:
    """Return the second of two requests, between which handlers go so many steps."""

    def send(harness: RouterHarness, client: SessionClient | None) -> Reply:
        first(harness, client)
        harness.step(steps)
        return second(harness, client)

    return send


def _unfinished(harness: RouterHarness, client: SessionClient | None) -> Reply:
    reply = harness.begin(b"POST", [*POST, *_of_session(client)])
    harness.add(reply, b'{"jsonrpc"')
    return reply


REQUESTS: Final[dict[str, _Request]] = {
    "initialize 2024-11-05": _posted(initialize(_A)),
    "initialize 2025-11-25": _posted(initialize(D)),
    "initialize 2026-07-28": _posted(initialize(E)),
    "initialize of events only": _posted(initialize(D), _ACCEPT_EVENTS, without=b"accept"),
    "initialize of a page": _posted(initialize(D), (b"origin", _ORIGIN)),
    "initialize without params": _posted(request("a", "initialize")),
    "initialize in an array": _posted([initialize(D)]),
    "initialized": _posted({"jsonrpc": "2.0", "method": "notifications/initialized"}),
    "ping": _posted(_PING),
    "ping with a version": _posted(_PING, (b"mcp-protocol-version", D.encode())),
    "ping with another version": _posted(_PING, (b"mcp-protocol-version", _B.encode())),
    "ping with an unknown version": _posted(_PING, (b"mcp-protocol-version", b"1999-01-01")),
    "ping with an unknown session": _posted(_PING, (b"mcp-session-id", b"other")),
    "ping twice": _twice(_posted(_PING), _posted(_PING)),
    "discover": _stateless("server/discover"),
    "discover without its headers": _posted(request(1, "server/discover", {"_meta": meta()})),
    "discover with another header": _posted(
        request(1, "server/discover", {"_meta": meta()}), *_stateless_headers("tools/list")
    ),
    "tools/list": _posted(request(2, "tools/list")),
    "an unknown method": _posted(request(2, "no/such")),
    "an unknown method, stateless": _stateless("no/such"),
    "a notification": _posted(_NOTED),
    "a cancellation": _posted(_CANCELLED),
    "a response": _posted(_ANSWER),
    "two messages": _posted([_PING, request(8, "ping")]),
    "a request and a notification": _posted([_NOTED, _PING]),
    "the same id twice": _posted([_PING, _PING]),
    "an empty array": _posted(b"[]"),
    "no body": _sent(b"POST", POST, b""),
    "no JSON": _posted(b"{"),
    "no message": _posted({}),
    "an unfinished body": _unfinished,
    "another type": _posted(_PING, (b"content-type", b"text/plain"), without=b"content-type"),
    "a long body": _posted(b" " * 100_001),
    "a length above the limit": _posted(_PING, (b"content-length", b"100001")),
    "no Accept": _posted(_PING, without=b"accept"),
    "only text accepted": _posted(_PING, (b"accept", b"text/plain"), without=b"accept"),
    "another host": _posted(_PING, (b"host", b"evil.example"), without=b"host"),
    "another page": _posted(_PING, (b"origin", b"https://evil.example")),
    "echo": _called("echo", text="x"),
    "echo as events": _accepting(_ACCEPT_EVENTS, "echo", text="x"),
    "echo as JSON": _accepting(_ACCEPT_JSON, "echo", text="x"),
    "echo of a page": _called("echo", (b"origin", _ORIGIN), text="x"),
    "slow": _called("slow", steps=2),
    "very slow": _called("slow", steps=9),
    "count": _called("count", to=2),
    "count as JSON": _accepting(_ACCEPT_JSON, "count", to=2),
    "count, broken off": _broken_off("count", to=3),
    "slow, broken off": _broken_off("slow", steps=9),
    "very slow, cancelled": _twice(_called("slow", steps=9), _posted(_CANCELLED)),
    "very slow, its id again": _twice(_called("slow", steps=9), _posted(request(1, "ping"))),
    "ask": _called("ask"),
    "ask as JSON": _accepting(_ACCEPT_JSON, "ask"),
    "leave": _called("leave"),
    "leave for two seconds": _called("leave", retry=2),
    "an unknown tool": _called("none"),
    "listen": _stateless("subscriptions/listen", {"notifications": {"toolsListChanged": True}}),
    "GET": _sent(b"GET", GET),
    "GET without Accept": _sent(b"GET", [HOST]),
    "GET again": _twice(_sent(b"GET", GET), _sent(b"GET", GET)),
    "GET after the first event": _twice(
        _called("count", to=1), _sent(b"GET", [*GET, (b"last-event-id", b"2-0")]), 3
    ),
    "GET after the second event": _twice(
        _broken_off("count", to=3), _sent(b"GET", [*GET, (b"last-event-id", b"2-1")]), 3
    ),
    "GET after the last event": _twice(
        _called("count", to=1), _sent(b"GET", [*GET, (b"last-event-id", b"2-2")]), 3
    ),
    "GET after leave": _twice(
        _called("leave", retry=0), _sent(b"GET", [*GET, (b"last-event-id", b"2-0")]), 3
    ),
    "GET after no event": _sent(b"GET", [*GET, (b"last-event-id", b"9-1")]),
    "GET after a bad id": _sent(b"GET", [*GET, (b"last-event-id", b"x")]),
    "GET with a version": _sent(b"GET", [*GET, (b"mcp-protocol-version", D.encode())]),
    "GET of 2026-07-28": _sent(b"GET", [*GET, (b"mcp-protocol-version", E.encode())]),
    "DELETE": _sent(b"DELETE", [HOST]),
    "DELETE after a call": _twice(_called("slow", steps=9), _sent(b"DELETE", [HOST])),
    "HEAD": _sent(b"HEAD", GET),
    "PUT": _sent(b"PUT", POST, b"{}"),
    "OPTIONS": _sent(b"OPTIONS", [HOST]),
    "OPTIONS of a page": _sent(
        b"OPTIONS",
        [HOST, (b"origin", _ORIGIN), (b"access-control-request-headers", b"mcp-session-id, x")],
    ),
    "a call of the first session": _twice(
        _posted(initialize(D)), _sent(b"POST", [*POST, _FIRST], json.encode(_PING))
    ),
    "GET of the first session": _twice(_posted(initialize(_B)), _sent(b"GET", [*GET, _FIRST])),
    "POST to the first stream": _twice(
        _sent(b"GET", GET), _sent(b"POST", POST, json.encode(initialize(_A)), _TO_FIRST)
    ),
    "GET at the first stream": _twice(_sent(b"GET", GET), _sent(b"GET", GET, None, _TO_FIRST)),
    "another path": _sent(b"GET", GET, None, b"/other"),
    "the path with a slash": _sent(b"POST", POST, json.encode(_PING), b"/mcp/?a=b"),
}


# -- Endpoints -------------------------------------------------------------------------------------


def _harness(**options: Any) -> RouterHarness:
    policy = HostOriginPolicy("127.0.0.1", origins=[_ORIGIN.decode()])
    return RouterHarness(_SERVER, limits=_LIMITS, policy=policy, **options)


def _with_session(version: str) -> tuple[RouterHarness, SessionClient]:
    harness = _harness()
    client = harness.session(version, elicitation={}, roots={"listChanged": True})
    return harness, client


def _uninitialized() -> tuple[RouterHarness, SessionClient]:
    harness = _harness()
    id = harness.post(initialize(D)).headers[b"mcp-session-id"]
    return harness, SessionClient(harness, id, D, "")


def _over_sse() -> tuple[RouterHarness, SessionClient]:
    harness = _harness()
    client = _SseClient(harness, harness.get())
    for message in (initialize(_A), {"jsonrpc": "2.0", "method": "notifications/initialized"}):
        _posted(message)(harness, client)
    return harness, client


def _without_streams() -> tuple[RouterHarness, SessionClient]:
    harness = _harness(get_stream=False, listen=False)
    return harness, harness.session(D)


def _closing() -> tuple[RouterHarness, None]:
    harness = _harness()
    harness.router.shutdown()
    return harness, None


ENDPOINTS: Final[dict[str, Callable[[], tuple[RouterHarness, SessionClient | None]]]] = {
    "no session": lambda: (_harness(), None),
    "reply=sse": lambda: (_harness(reply="sse"), None),
    "reply=json": lambda: (_harness(reply="json"), None),
    "sessions=False": lambda: (_harness(sessions=False), None),
    "shut down": _closing,
    "a session of 2025-03-26": lambda: _with_session(_B),
    "a session of 2025-11-25": lambda: _with_session(D),
    "a session whose handshake isn't complete": _uninitialized,
    "a session over HTTP+SSE": _over_sse,
    "a session without streams": _without_streams,
}


# -- What is seen ----------------------------------------------------------------------------------


def _shortened(data: bytes) -> str:
    text = data.decode().replace("\n", "|")
    return text if len(text) <= 300 else f"{text[:200]}... of {len(text)}"


class _Shown:
    """The parts of a response that weren't shown yet."""

    def __init__(self, reply: Reply) -> None:
        self.reply = reply
        self.seen = 0
        self.has_head = False
        self.has_ended = False

    def next(self) -> str:
        reply = self.reply
        parts = []
        if reply.status and not self.has_head:
            self.has_head = True
            kept = [f"{name.decode()}: {value.decode()}" for name, value in reply.headers.items()]
            shown = "; ".join(kept).replace(_AS_EVENTS, "as events")
            parts.append(f"{reply.status} [{shown}]")
        if len(reply.body) > self.seen:
            parts.append(_shortened(reply.body[self.seen :]))
            self.seen = len(reply.body)
        if reply.ended and not self.has_ended:
            self.has_ended = True
            parts.append("end")
            if reply.exchange.close_after:
                parts.append("close the connection")
        return " ".join(parts)


def _unsent(reply: Reply) -> str:
    stream = reply.exchange.stream
    return "" if stream is None or not stream.unsent else f", {stream.unsent} unsent"


def _answer_and_rest(
    make: Callable[[], tuple[RouterHarness, SessionClient | None]], send: _Request
) -> str:
    harness, client = make()
    before = {reply: len(reply.body) for reply in harness.replies.values()}
    shown = _Shown(send(harness, client))
    lines = [shown.next() or "nothing"]
    for _ in range(4):
        harness.step()
        more = shown.next()
        if more:
            lines.append(f"+ {more}")
    harness.wait(20)
    more = shown.next()
    if more:
        lines.append(f"20 s: {more}")
    endpoint = harness.endpoint
    lines.append(
        f"[{len(endpoint.sessions)} sessions, {harness.router.next_deadline()}"
        f"{', idle' if endpoint.idle else ''}, {endpoint.log.bytes} bytes, "
        f"{len(harness.jobs)} jobs{_unsent(shown.reply)}]"
    )
    for reply in harness.replies.values():
        more = _shortened(reply.body[before.get(reply, 0) :])
        if reply is not shown.reply and more:
            lines.append(f"another response: {more}{' end' if reply.ended else ''}")
    harness.router.close()
    harness.pump()
    more = shown.next()
    if more:
        lines.append(f"close: {more}")
    return "\n".join(f"  {line}" for line in lines)


def answers_of(name: str) -> str:
    """Return the answers of an endpoint to all requests."""
    lines: list[str] = []
    known: dict[str, str] = {}
    for label, send in REQUESTS.items():
        found = _answer_and_rest(ENDPOINTS[name], send)
        same = known.setdefault(found, label)
        lines.append(f"{label}:\n{found}" if same == label else f"{label}: as {same}")
    return "\n".join(lines)


def kept_endpoint_answers() -> dict[str, str]:
    """Return the kept text of each endpoint."""
    return read_kept(_FILE)


if __name__ == "__main__":
    write_kept(_FILE, {name: answers_of(name) for name in ENDPOINTS})
