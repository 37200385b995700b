"""A trace's server over HTTP: it takes whole requests, and returns responses as actions.

1. If anything precedes a request's response, both are sent on an event stream. Otherwise, the
   response is JSON.
2. The response to `initialize` begins a session, unless the trace shows a server without sessions.
   Requests without a session id share one session: their `_meta` has everything that is needed.
3. `Host`, `Origin` and `Sec-Fetch-Site` are checked as by any server here: a web page must not
   read a trace.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from mcp_core.http.wire._fetch_metadata import sent_by_foreign_page
from mcp_core.http.wire._host_origin import HostOriginPolicy
from mcp_core.http.wire._mcp_headers import SESSION_ID
from mcp_core.http.wire._messages import Action, Body, End, Head, Headers, RequestHead
from mcp_core.http.wire._sse import encode_event

from ._recorded import decode_message, encode_message
from ._server import ReplayServer

if TYPE_CHECKING:
    from ._server import ReplayOutput, ReplaySession

__all__ = ["ReplayExchange", "ReplayHttpServer"]

_JSON: Final = (b"content-type", b"application/json")
_EVENTS: Final = (b"content-type", b"text/event-stream")
_NO_CACHE: Final = (b"cache-control", b"no-store")
_MAX_SESSIONS: Final = 1_000
_MAX_WAITING: Final = 1_000  # messages of a session that wait for a stream
# The response to a GET without a session. Clients of other transports send one, and clients that
# look for a stream.
_ONLY_STREAMABLE: Final = (
    b"A GET without a session is not served: a replay speaks Streamable HTTP, and not HTTP+SSE or"
    b" WebSockets. For a client of those, run the replay as a command, over stdio.\n"
)
_MODERN_STATUSES: Final = {-32601: 404, -32022: 400}


class ReplayExchange:
    """One HTTP request and its response.

    Attributes:
        wants_body: the caller must pass the body to `ReplayHttpServer.receive_body`.
        is_over: the last action was taken or is in the queue.
    """

    open_requests: int  # in its body

    def __init__(self) -> None:
        self.wants_body = False
        self.is_over = False
        self.session: ReplaySession | None = None
        self.key: bytes | None = None  # the session's id
        self.has_begun = False
        self.headers: Headers = []
        self._actions: deque[Action] = deque()

    def actions_to_send(self) -> list[Action]:
        """Return the response's next part."""
        found = list(self._actions)
        self._actions.clear()
        return found

    @property
    def has_actions(self) -> bool:
        """True if there is something to send."""
        return bool(self._actions)

    def respond(self, status: int, body: bytes = b"", headers: Headers | None = None) -> None:
        """Send a whole response: its `status`, `body` and further `headers`."""
        length = (b"content-length", b"%d" % len(body))
        self._actions.append(Head(status, [*(headers or []), *self.headers, length]))
        if body:
            self._actions.append(Body(body))
        self._end()

    def begin_events(self) -> None:
        """Begin an event stream."""
        if not self.has_begun:
            self.has_begun = True
            self._actions.append(Head(200, [_EVENTS, _NO_CACHE, *self.headers]))

    def send_event(self, data: bytes) -> None:
        """Send `data`, a message, as an event."""
        self.begin_events()
        self._actions.append(Body(encode_event(data)))

    def end_events(self) -> None:
        """End the event stream."""
        if not self.is_over:
            self._end()

    def _end(self) -> None:
        self._actions.append(End())
        self.is_over = True


class _HttpSession:
    """A session: its player, its standalone stream, and the messages that wait for a stream."""

    def __init__(self, player: ReplaySession) -> None:
        self.player = player
        self.stream: ReplayExchange | None = None
        self.waiting: deque[bytes] = deque(maxlen=_MAX_WAITING)


class ReplayHttpServer:
    """A trace's server over HTTP.

    For each request call `begin`, then `receive_body` if the exchange `wants_body`. After every
    call, send the actions of each exchange that `take_ready` returns. If a client disconnects
    before its exchange `is_over`, call `disconnected`. Call `advance` at `next_deadline`. The `now`
    of its methods is a monotonic time in seconds.

    Args:
        server: the trace's server.
        path: the endpoint's path.
        policy: decides which `Host` and `Origin` a request may have.
        new_id: returns a new session id.
    """

    def __init__(
        self,
        server: ReplayServer,
        *,
        policy: HostOriginPolicy,
        new_id: Callable[[], str],
        path: str = "/mcp",
    ) -> None:
        self._server = server
        self._path = path.encode()
        self._policy = policy
        self._new_id = new_id
        self._shared = _HttpSession(server.open())
        self._sessions: dict[bytes, _HttpSession] = {}
        sessions = server.trace.sessions
        self._gives_ids = server.trace.header.transport != "http" or any(
            each.has_id for each in sessions
        )
        self._ready: dict[ReplayExchange, None] = {}

    def __repr__(self) -> str:
        return f"<ReplayHttpServer of {len(self._sessions)} sessions>"

    def begin(self, head: RequestHead) -> ReplayExchange:
        """Return the exchange of a request with `head`."""
        exchange = ReplayExchange()
        self._ready[exchange] = None
        headers = dict(head.headers)
        host = headers.get(b"host")
        if (
            not self._policy.allows_host(host)
            or not self._policy.allows_origin(headers.get(b"origin"), host or b"")
            or sent_by_foreign_page(head.headers)
        ):
            exchange.respond(403, b"this Host or Origin, or another site's page, is not served\n")
            return exchange
        if head.target.partition(b"?")[0].rstrip(b"/") != self._path.rstrip(b"/"):
            exchange.respond(404)
            return exchange
        exchange.key = headers.get(SESSION_ID)
        session = self._shared if exchange.key is None else self._sessions.get(exchange.key)
        if session is None:
            text = _error(None, -32001, "Session not found")
            exchange.respond(404, text, [_JSON])
        elif head.method == b"POST":
            exchange.session = session.player
            exchange.wants_body = True
        elif head.method == b"GET" and exchange.key is not None:
            self._open_stream(exchange, session)
        elif head.method == b"DELETE" and exchange.key is not None:
            self._end_session(exchange, exchange.key, session)
        else:
            if b"upgrade" in headers:
                self._server.note("a client asked for a WebSocket; use the http:// URL")
            text = _ONLY_STREAMABLE if head.method == b"GET" else b""
            exchange.respond(405, text, [(b"allow", b"POST")])
        return exchange

    def _open_stream(self, exchange: ReplayExchange, session: _HttpSession) -> None:
        if session.stream is not None:
            session.stream.end_events()
            self._ready[session.stream] = None
        session.stream = exchange
        exchange.begin_events()
        while session.waiting:
            exchange.send_event(session.waiting.popleft())

    def _end_session(self, exchange: ReplayExchange, key: bytes, session: _HttpSession) -> None:
        del self._sessions[key]
        if session.stream is not None:
            session.stream.end_events()
            self._ready[session.stream] = None
        exchange.respond(200)

    def receive_body(self, exchange: ReplayExchange, body: bytes, now: float) -> None:
        """Take `body`, the request body of `exchange`."""
        session = self._session_of(exchange)
        if session is None:
            exchange.respond(404)
            return
        self._ready[exchange] = None
        decoded = decode_message(body)
        members = decoded if isinstance(decoded, list) else [decoded]
        requests = [
            each for each in members if isinstance(each, dict) and "method" in each and "id" in each
        ]
        exchange.open_requests = len(requests)
        if exchange.key is None and any(each["method"] == "initialize" for each in requests):
            session = self._begin_session(exchange)
            exchange.session = session.player
        session.player.receive(body, now, exchange)
        self._route(session)
        if not requests and not exchange.is_over:
            exchange.respond(202)

    def _begin_session(self, exchange: ReplayExchange) -> _HttpSession:
        """Return a session for a client that requests a handshake."""
        if not self._gives_ids:
            return self._shared
        session = _HttpSession(self._server.open())
        key = self._new_id().encode()
        self._sessions[key] = session
        if len(self._sessions) > _MAX_SESSIONS:
            del self._sessions[next(iter(self._sessions))]
        exchange.headers = [(SESSION_ID, key)]
        return session

    def disconnected(self, exchange: ReplayExchange) -> None:
        """Forget `exchange`, whose client has disconnected."""
        self._ready.pop(exchange, None)
        for session in (self._shared, *self._sessions.values()):
            if session.stream is exchange:
                session.stream = None
        if exchange.session is not None:
            exchange.session.disconnected(exchange)

    def advance(self, now: float) -> None:
        """Send what is due at `now`."""
        for session in (self._shared, *self._sessions.values()):
            session.player.advance(now)
            self._route(session)

    @property
    def next_deadline(self) -> float:
        """The next output's time, or infinity."""
        return min(each.player.next_deadline for each in (self._shared, *self._sessions.values()))

    def take_ready(self) -> list[ReplayExchange]:
        """Return the exchanges with actions to send."""
        found = [each for each in self._ready if each.has_actions]
        self._ready.clear()
        return found

    # -- Responses ---------------------------------------------------------------------------------

    def _session_of(self, exchange: ReplayExchange) -> _HttpSession | None:
        return self._shared if exchange.key is None else self._sessions.get(exchange.key)

    def _route(self, session: _HttpSession) -> None:
        outputs = session.player.outputs_to_send()
        for output in outputs:
            exchange = output.stream
            if not isinstance(exchange, ReplayExchange):
                if session.stream is not None:
                    session.stream.send_event(output.data)
                    self._ready[session.stream] = None
                elif session is not self._shared:
                    session.waiting.append(output.data)
                continue
            if exchange.is_over:
                continue
            self._ready[exchange] = None
            if output.is_response:
                exchange.open_requests -= 1
            is_last = output.is_response and exchange.open_requests <= 0
            if is_last and not exchange.has_begun:
                status = output.status or self._status_of(output, exchange)
                exchange.respond(status, output.data, [_JSON])
                continue
            exchange.send_event(output.data)
            if is_last:
                exchange.end_events()

    def _status_of(self, output: ReplayOutput, exchange: ReplayExchange) -> int:
        """Return the HTTP status for a response that wasn't recorded over HTTP."""
        members = decode_message(output.data)
        error = members.get("error") if isinstance(members, dict) else None
        if not isinstance(error, dict) or exchange.key is not None:
            return 200
        code = error.get("code")
        if members.get("id") is None or not self._server.has_modern:
            return 400
        return _MODERN_STATUSES.get(code, 200) if isinstance(code, int) else 200


def _error(id: object, code: int, text: str) -> bytes:
    return encode_message({"jsonrpc": "2.0", "id": id, "error": {"code": code, "message": text}})
