"""A conversation's HTTP exchanges: sessions, authorization and event ids."""

from __future__ import annotations

import json
from collections import OrderedDict
from typing import TYPE_CHECKING, Final, NamedTuple

from mcp_core.trace._ids import text_key
from mcp_core.trace.judge._revisions import Revisions, are_modern
from mcp_core.trace.judge._sides import SERVER

from ._bounds import put

if TYPE_CHECKING:
    from collections.abc import Mapping

    from mcp_core.trace._format import HttpHead
    from mcp_core.trace.judge._message import SeenMessage

__all__ = ["SESSION", "HttpState", "SeenExchange"]

SESSION: Final = "mcp-session-id"
MAX_EXCHANGES: Final = 1_000  # of one conversation
MAX_EVENTS: Final = 10_000  # event ids of one conversation
# Headers by which a server can tell its clients apart.
_VIEW: Final = (SESSION, "authorization", "cookie", "x-api-key")
_MAX_MESSAGES: Final = 100  # of one request
_MAX_SESSIONS: Final = 1_000


class HttpState:
    """The sessions, authorization and event streams that a conversation's exchanges show.

    Attributes:
        exchanges: the last exchanges by number.
        exchange: the exchange of the line being judged, or None.
        has_endpoint, endpoint: whether an event has named an endpoint, so the transport is
            HTTP+SSE; and the endpoint's URL.
        session: the id of the session that the server has given, or None.
        given_line: the line of the response that gave the client its session, 0 before it.
        former_sessions: the ids of earlier sessions.
        ended_sessions: the ids of sessions that the client has ended, with the line.
        lost_sessions: the ids of sessions that the server didn't find, with the line and the time.
        is_authorized: when a request with `Authorization` was last served, by path.
        denied: the methods of requests without it that got the status 401 and a Bearer challenge.
        events: the last events by id: a hash of the message, and the number of the exchange that
            first carried the stream. `has_all_events` is False if some are missing.
        refused, served: the last requests outside of the session that got the status 400 or 404,
            and that got a result, by their `request_key`: the status, and the response's line.
    """

    def __init__(self) -> None:
        self.exchanges: OrderedDict[int, SeenExchange] = OrderedDict()
        self.exchange: SeenExchange | None = None
        self.has_endpoint = False
        self.endpoint = ""
        self.session: str | None = None
        self.given_line = 0
        self.former_sessions: set[str] = set()
        self.ended_sessions: dict[str, int] = {}
        self.lost_sessions: dict[str, tuple[int, float]] = {}
        self.is_authorized: dict[str, float] = {}
        self.denied: set[str] = set()
        self.events: OrderedDict[str, tuple[int, int]] = OrderedDict()
        self.has_all_events = True
        self.refused: OrderedDict[int, tuple[int, int]] = OrderedDict()
        self.served: OrderedDict[int, tuple[int, int]] = OrderedDict()

    def next_session(self) -> HttpState:
        """Return the state for the client's next session, which replaces this one."""
        following = HttpState()
        following.exchanges, following.exchange = self.exchanges, self.exchange
        following.former_sessions = self.former_sessions
        if self.session is not None and len(self.former_sessions) < _MAX_SESSIONS:
            self.former_sessions.add(self.session)
        return following

    @property
    def view(self) -> tuple[str, ...]:
        """The current exchange's session and credentials: a server can list by them."""
        headers = self.exchange.headers if self.exchange is not None else {}
        return tuple(headers.get(name, "") for name in _VIEW)

    @property
    def is_in_session(self) -> bool:
        """True if the current exchange's request names the client's session, if it has one."""
        return self.exchange is not None and self.exchange.headers.get(SESSION) == self.session

    def add(self, number: int, head: HttpHead, line: int, time: float) -> SeenExchange:
        """Add the exchange that a request's head begins."""
        exchange = self.exchanges[number] = SeenExchange(head, line, time)
        if len(self.exchanges) > MAX_EXCHANGES:
            self.exchanges.popitem(last=False)
        return exchange

    def receive_response(self, exchange: SeenExchange) -> None:
        """Record what the head of an exchange's response shows."""
        request = exchange.request
        given = exchange.response_headers.get(SESSION)
        if given is not None and request is not None and request.method == "initialize":
            self.session, self.given_line = given, exchange.response_line
        is_authorized = "authorization" in exchange.headers
        if is_authorized and 200 <= exchange.status < 300:
            if len(self.is_authorized) < _MAX_SESSIONS or exchange.path in self.is_authorized:
                self.is_authorized[exchange.path] = exchange.response_time
        elif is_authorized and exchange.status in (401, 403):
            self.is_authorized.pop(exchange.path, None)  # the token is no longer valid
        challenge = exchange.response_headers.get("www-authenticate", "").lower()
        is_denied = exchange.status == 401 and not is_authorized and "bearer" in challenge
        if is_denied and request is not None and len(self.denied) < _MAX_SESSIONS:
            self.denied.add(request.method)
        sent = exchange.headers.get(SESSION)
        if exchange.status in (400, 404) and (key := self.request_key(exchange)) is not None:
            put(self.refused, key, (exchange.status, exchange.response_line), _MAX_SESSIONS)
        if sent is None:
            return
        if exchange.status == 404 and len(self.lost_sessions) < _MAX_SESSIONS:
            self.lost_sessions.setdefault(sent, (exchange.response_line, exchange.response_time))
        # 202: the server will end the session later.
        has_ended = exchange.method == "DELETE" and exchange.status < 300 and exchange.status != 202
        if has_ended and len(self.ended_sessions) < _MAX_SESSIONS:
            self.ended_sessions.setdefault(sent, exchange.response_line)
        if sent == self.session and (exchange.method == "DELETE" or exchange.status == 404):
            self.session = None

    def receive_result(self, exchange: SeenExchange, line: int) -> None:
        """Record that an exchange's request got a result, on a line."""
        if exchange.headers.get(SESSION) != self.session:
            key = self.request_key(exchange)
            if key is not None:
                put(self.served, key, (exchange.status, line), _MAX_SESSIONS)

    def request_key(self, exchange: SeenExchange) -> int | None:
        """Return a key that all requests have with the same headers, method and params.

        None is returned for what isn't a request in a session, or ought to be, and if a part of it
        isn't known.
        """
        request = exchange.request
        if request is None or request.method == "initialize" or request.redacted:
            return None
        headers = sorted(each for each in exchange.headers.items() if each[0] != "content-length")
        params = json.dumps(request.params, sort_keys=True)
        return hash((tuple(headers), request.method, params))

    def add_event(
        self, id: str, text: str | bytes | None, exchange: SeenExchange, number: int
    ) -> EarlierEvent:
        """Add an event that has an id, and compare it with the earlier one of that id.

        An event without a text isn't a message. It only gives a client an id to resume from.
        """
        root = number
        if exchange.is_resumption:
            broken = self.events.get(text_key(exchange.headers["last-event-id"]))
            root = broken[1] if broken is not None else 0
        key, content = text_key(id), hash(text) if text else 0
        known, first_root = self.events.setdefault(key, (content, root))
        if not known and text:
            self.events[key] = content, first_root
        if len(self.events) > MAX_EVENTS:
            self.events.popitem(last=False)
            self.has_all_events = False
        is_resumed = exchange.is_resumption and root and first_root
        return EarlierEvent(
            is_on_its_stream=first_root == root if is_resumed else None,
            has_other_content=bool(known and text and known != content),
        )


class EarlierEvent(NamedTuple):
    """How an event compares with an earlier one with the same id.

    Attributes:
        is_on_its_stream: the resumed stream is the one that had the id before. None if the stream
            isn't resumed, or if that is unknown.
        has_other_content: the earlier event had another message.
    """

    is_on_its_stream: bool | None
    has_other_content: bool


class SeenExchange:
    """An HTTP exchange in a trace.

    Attributes:
        line, time, response_line, response_time: the lines and times of its two heads.
        method, target: the request's method and target.
        headers, response_headers: by name in lower case, the values joined by commas.
        messages: the request's messages, at most a few.
        request: the one request in a POST, if every receiver reads it as a request, or None.
        status: the response's status, 0 before it.
        response: the message of a response that isn't an event stream, or None.
        has_body: a response that isn't an event stream has a body.
        has_event_ids: an event in the response had an id, so a client can resume the stream.
        events: how many events the response had.
        retry: the last reconnection time in the response, in milliseconds, or None.
        answered, answered_time: how many of its requests were answered on it, and when last.
        ended_by, end, end_line, end_time: the side that ended the response, how, on which line and
            when; empty and 0 before.
        revisions: the revisions that it can be of; see `set_revisions`.
        is_modern: none of them has a handshake.
    """

    __slots__ = (
        "answered",
        "answered_time",
        "end",
        "end_line",
        "end_time",
        "ended_by",
        "events",
        "has_body",
        "has_event_ids",
        "headers",
        "is_modern",
        "line",
        "messages",
        "method",
        "request",
        "response",
        "response_headers",
        "response_line",
        "response_time",
        "retry",
        "revisions",
        "status",
        "target",
        "time",
    )

    def __init__(self, head: HttpHead, line: int, time: float) -> None:
        self.line = line
        self.time = time
        self.method = head.method
        self.target = head.target
        self.headers = _joined(head)
        self.messages: list[SeenMessage] = []
        self.request: SeenMessage | None = None
        self.revisions: Revisions = ()
        self.is_modern = False
        self.status = 0
        self.response_line = 0
        self.response_time = 0.0
        self.response_headers: Mapping[str, str] = {}
        self.response: SeenMessage | None = None
        self.has_body = False
        self.has_event_ids = False
        self.events = 0
        self.retry: int | None = None
        self.answered = 0
        self.answered_time: float  # set with the first answer
        self.ended_by = ""
        self.end = ""
        self.end_line = 0
        self.end_time = 0.0

    def set_revisions(self, revisions: Revisions) -> None:
        """Set the revisions that it can be of."""
        self.revisions = revisions
        self.is_modern = are_modern(revisions)

    @property
    def path(self) -> str:
        """Its target's path, without the query."""
        return self.target.partition("?")[0]

    @property
    def is_redirect(self) -> bool:
        """True if the response says to make the request elsewhere, so it wasn't handled here."""
        return 300 <= self.status < 400

    @property
    def is_resumption(self) -> bool:
        """True if it is a GET that resumes a broken stream."""
        return self.method == "GET" and "last-event-id" in self.headers

    @property
    def is_event_stream(self) -> bool:
        """True if the response is a stream of server-sent events."""
        found = self.response_headers.get("content-type", "")
        return found.split(";")[0].strip().lower() == "text/event-stream"

    @property
    def size(self) -> int:
        """Its messages' bytes."""
        return sum(each.size for each in self.messages) + (
            self.response.size if self.response else 0
        )

    def shrink(self) -> None:
        """Forget the contents of its large messages."""
        for each in self.messages:
            each.shrink()
        if self.response is not None:
            self.response.shrink()

    def add(self, message: SeenMessage) -> None:
        """Add a message, unless it is an event."""
        if message.sender == SERVER:
            if self.status and self.has_body:
                self.response = message
        elif len(self.messages) < _MAX_MESSAGES:
            self.messages.append(message)
            is_request = message.kind == "request" and message.has_one_kind
            self.request = message if is_request and len(self.messages) == 1 else None

    def respond(self, head: HttpHead, line: int, time: float, *, has_body: bool) -> None:
        """Record the response's head."""
        self.status = head.status
        self.response_line, self.response_time = line, time
        self.response_headers = _joined(head)
        self.has_body = has_body


def _joined(head: HttpHead) -> dict[str, str]:
    found: dict[str, str] = {}
    for name, value in head.headers:
        found[name] = f"{found[name]}, {value}" if name in found else value
    return found
