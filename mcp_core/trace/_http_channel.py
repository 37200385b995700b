"""An HTTP exchange as lines of a trace.

1. A request is one line. So is a response that isn't an event stream, when it ends.
2. An event stream has a line for its head, one for each event, and one for its end. Comments are
   left out.
3. An exchange belongs to a conversation: the client's, or the session that its headers name.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final

from msgspec import Struct

from mcp_core._limits import CLIENT_LIMITS
from mcp_core.http.wire._mcp_headers import SESSION_ID
from mcp_core.http.wire._media_types import is_event_stream
from mcp_core.http.wire._messages import Action, Body, Head, Headers, RequestHead, header
from mcp_core.http.wire._sse import EventTooLong, SseDecoder

from ._channels import WebSocketChannel
from ._format import HttpHead, SseFields, TraceLine
from ._messages import MessageBuffer, Sender, message_line, truncate

if TYPE_CHECKING:
    from ._format import TruncatedMessage

__all__ = ["ConversationNumbers", "HttpChannel"]

_MAX_SESSIONS: Final = (
    10_000  # sessions that are remembered; requests of forgotten ones get a new number
)


class ConversationNumbers:
    """The numbers of a trace's conversations.

    `single` is True at a client, where all exchanges are one conversation. A server has one for
    each session, and one for each request without a session.
    """

    __slots__ = ("_last", "_sessions", "single")

    def __init__(self, *, single: bool) -> None:
        self.single = single
        self._last = 0
        self._sessions: dict[bytes, int] = {}

    @property
    def next_number(self) -> int:
        """The number that `new` will return."""
        return self._last + 1

    def new(self) -> int:
        """Return the number of a new conversation."""
        self._last += 1
        return self._last

    def of_request(self, head: RequestHead) -> int:
        """Return the conversation's number for a request with `head`."""
        if self.single:
            return self._last or self.new()
        # HTTP+SSE names the session in the target.
        for key in (_value(head.headers, SESSION_ID), head.target):
            if key is not None and key in self._sessions:
                return self._sessions[key]
        return self.new()

    def of_lost_request(self) -> int:
        """Return the conversation's number for a request that wasn't recorded."""
        return (self.single and self._last) or self.new()

    def add_session(self, key: bytes, number: int) -> None:
        """Note that requests with `key` as session id or target belong to conversation `number`."""
        if not self.single:
            self._sessions[key] = number
            if len(self._sessions) > _MAX_SESSIONS:
                del self._sessions[next(iter(self._sessions))]


class HttpChannel(Struct, gc=False, eq=False):
    """One HTTP exchange. The garbage collector doesn't follow it: each exchange makes one.

    Attributes:
        number: its number.
        conversations: the trace's conversations.
        limit: bytes of a message that are kept.
    """

    number: int
    conversations: ConversationNumbers
    limit: int
    _conversation: int = 0
    _request: HttpHead | None = None  # whose body isn't complete
    _response: HttpHead | None = None  # the same
    _body: MessageBuffer | None = None  # of one of them; never empty
    _events: SseDecoder | None = None
    _retry: int | None = None  # the last one that was recorded
    _websocket: WebSocketChannel | None = None
    _is_over: bool = False
    _skips: bool = False

    # -- The request -------------------------------------------------------------------------------

    def request(self, t: float, what: tuple[RequestHead, bytes | None, str]) -> list[TraceLine]:
        """Return the lines, at time `t`, for a request.

        `what` is its head, its body, and the version of HTTP. The body is None if it follows in
        pieces.
        """
        head, body, http_version = what
        self._conversation = self.conversations.of_request(head)
        request = HttpHead(
            version=http_version,
            method=head.method.decode("latin-1"),
            target=head.target.decode("latin-1"),
            headers=_texts(head.headers),
        )
        if body is None:
            self._request = request
            return []
        return [self._line_of(t, "client", request, *truncate(body, self.limit))]

    def request_data(self, t: float, what: tuple[bytes, bool]) -> list[TraceLine]:
        """Return the lines, at time `t`, for a piece of the request's body.

        `what` is the piece, and True if it is the last one.
        """
        data, is_last = what
        if self._request is None:
            return []
        self._add_to_body(data)
        return self._end_request(t) if is_last or not data else []

    def _end_request(self, t: float, *, is_cut: bool = False) -> list[TraceLine]:
        head, self._request = self._request, None
        if head is None:
            return []
        return [self._line_with_body(t, "client", head, is_cut=is_cut)]

    # -- The response ------------------------------------------------------------------------------

    def response(self, t: float, actions: Sequence[Action]) -> list[TraceLine]:
        """Return the lines, at time `t`, for `actions`, a part of the response."""
        # A response may precede the body's end.
        lines = self._end_request(t, is_cut=True)
        for action in actions:
            if type(action) is Head:
                self._begin_response(t, action, lines)
            elif type(action) is Body:
                self._add_to_response(t, bytes(action.data), lines)
            else:
                lines += self.ended(t, ("server", "complete"))
        return lines

    def _begin_response(self, t: float, head: Head, lines: list[TraceLine]) -> None:
        """Add the line of `head` to `lines`, unless the body follows in that line."""
        session = header(head, SESSION_ID)
        if session is not None:
            self.conversations.add_session(session, self._known_conversation())
        self._response = HttpHead(status=head.status, headers=_texts(head.headers))
        if head.status == 101 or is_event_stream(header(head, b"content-type")):
            if head.status != 101:
                # Events over our own limit are truncated, and not an end of the recording.
                self._events = SseDecoder(limit=max(CLIENT_LIMITS.message, self.limit))
            lines.append(self._line_with_body(t, "server", self._response))
            self._response = None

    def _add_to_response(self, t: float, data: bytes, lines: list[TraceLine]) -> None:
        """Add `data` to the response's body, and its events to `lines`."""
        if self._skips:
            return
        if self._events is None:
            self._add_to_body(data)
            return
        self._events.feed(data)
        try:
            while (event := self._events.next_event()) is not None:
                lines.append(self._event_line(t, event.type, event.data, event.id, event.retry))
                self._events.forget_id()
                self._retry = self._retry if event.retry is None else event.retry
            if self._events.last_id or self._events.retry != self._retry:
                # Both can come without an event.
                is_new = self._events.retry != self._retry
                self._retry = self._events.retry
                fields = SseFields(
                    id=self._events.last_id or None, retry=self._retry if is_new else None
                )
                lines.append(self._line(t, sender="server", sse=fields))
                self._events.forget_id()
        except EventTooLong:
            self._skips = True
            lines.append(self._line(t, kind="lost", count=1))

    def _event_line(
        self, t: float, type: str, data: bytes, id: str, retry: int | None
    ) -> TraceLine:
        fields = SseFields(id=id or None, event="" if type == "message" else type, retry=retry)
        if type == "endpoint":
            self.conversations.add_session(data, self._known_conversation())
        if not data:
            return self._line(t, sender="server", sse=fields)
        message, truncated = truncate(data, self.limit)
        return message_line(
            t, "server", message, truncated, self._known_conversation(), self.number, sse=fields
        )

    def ended(self, t: float, what: tuple[Sender, str]) -> list[TraceLine]:
        """Return the lines, at time `t`, for the exchange's end.

        `what` is the side that ended it, and how.
        """
        if self._is_over:
            return []
        self._is_over = True
        sender, reason = what
        lines = self._end_request(t, is_cut=True)
        if self._response is not None:
            head, self._response = self._response, None
            end = reason if sender == "server" else None
            is_cut = reason != "complete"
            lines.append(self._line_with_body(t, "server", head, end, is_cut=is_cut))
            if end is not None:
                return lines
        return [*lines, self._line(t, sender=sender, end=reason)]

    # -- A WebSocket -------------------------------------------------------------------------------

    @property
    def _socket(self) -> WebSocketChannel:
        if self._websocket is None:
            number = self._known_conversation()
            self._websocket = WebSocketChannel(number, self.number, self.limit)
        return self._websocket

    def message(self, t: float, what: tuple[Sender, bytes]) -> list[TraceLine]:
        """Return the line, at time `t`, of a message on the WebSocket that the exchange has opened.

        `what` is its sender and its bytes.
        """
        return self._socket.message(t, what)

    def close(self, t: float, what: tuple[Sender, int, str]) -> list[TraceLine]:
        """Return the line, at time `t`, of a close frame. `what` is sender, code and reason."""
        return self._socket.close(t, what)

    # -- Lines -------------------------------------------------------------------------------------

    def skip(self) -> None:
        """Drop the response's body: a part of it was lost."""
        self._skips = True

    def _add_to_body(self, data: bytes) -> None:
        if data:
            if self._body is None:
                self._body = MessageBuffer(self.limit)
            self._body.add(data)

    def _line_with_body(
        self,
        t: float,
        sender: Sender,
        head: HttpHead,
        end: str | None = None,
        *,
        is_cut: bool = False,
    ) -> TraceLine:
        """Return the line of `head` and the part of its body that has come."""
        body, self._body = self._body, None
        if body is None:
            return self._line_of(t, sender, head, b"", None, end)
        return self._line_of(t, sender, head, *body.take(is_cut=is_cut), end)

    def _line_of(
        self,
        t: float,
        sender: Sender,
        head: HttpHead,
        body: bytes,
        truncated: TruncatedMessage | None,
        end: str | None = None,
    ) -> TraceLine:
        if not body:
            return self._line(t, sender=sender, http=head, end=end)
        number = self._known_conversation()
        return message_line(t, sender, body, truncated, number, self.number, end=end, http=head)

    def _line(self, t: float, **members: Any) -> TraceLine:
        number = self._known_conversation()
        return TraceLine(t=t, conversation=number, exchange=self.number, **members)

    def _known_conversation(self) -> int:
        """Return the conversation's number, also if the request was lost."""
        if not self._conversation:
            self._conversation = self.conversations.of_lost_request()
        return self._conversation


def _texts(headers: Headers) -> tuple[tuple[str, str], ...]:
    try:
        return _text_pairs(tuple(headers))
    except TypeError:  # an ASGI server may pass lists
        return _text_pairs(tuple((name, bytes(value)) for name, value in headers))


@lru_cache(maxsize=128)  # many requests have the same headers
def _text_pairs(headers: tuple[tuple[bytes, bytes], ...]) -> tuple[tuple[str, str], ...]:
    return tuple(map(_text_pair, headers))


@lru_cache(maxsize=128)  # most headers are the same in every request
def _text_pair(pair: tuple[bytes, bytes]) -> tuple[str, str]:
    name, value = pair
    return name.decode("latin-1"), value.decode("latin-1")


def _value(headers: Headers, name: bytes) -> bytes | None:
    return next((bytes(value) for each, value in headers if each == name), None)
