"""Turns: a client's message, and the server's messages that belong to it.

A turn begins with a client message, and has the notifications, requests and the response that the
server sent for it. A trace doesn't always show which messages belong together, so:

1. A response, progress, and all messages on a request's HTTP stream belong to that request.
2. Any other message belongs to the last request that has no response yet. If all requests have one,
   it belongs to the client's last message.
3. If the client answered a server's request, the turn's later messages wait for that answer.
4. After its acknowledgement, a subscription's turn gets no more messages. A change notification
   belongs to the client's message before it, but goes out on the subscription's stream.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import TYPE_CHECKING, Any, Final

from mcp_core.protocol.revisions._methods import METHODS
from mcp_core.trace._ids import id_key
from mcp_core.trace._members import META, lookup

if TYPE_CHECKING:
    from ._recorded import RecordedMessage, RecordedSession

__all__ = [
    "LONG_LIVED",
    "SUBSCRIPTION_ID",
    "ServerMessage",
    "Turn",
    "may_be_early",
    "seconds_to_repeat",
    "turns_of",
]

LONG_LIVED: Final = frozenset(row.name for row in METHODS if row.long_lived)
SUBSCRIPTION_ID: Final = META + "subscriptionId"
_ACKNOWLEDGED: Final = "notifications/subscriptions/acknowledged"
_CANCELLED: Final = "notifications/cancelled"
_PROGRESS: Final = "notifications/progress"
_GET_TASK: Final = "tasks/get"
_WORKING: Final = "working"
_POLL: Final = 0.2  # seconds; the shortest time between two requests about a task
_MAX_POLL: Final = 5.0


class ServerMessage:
    """A server's message in a turn.

    Attributes:
        message: the recorded message.
        stream: the turn on whose stream it goes out: its own turn, or a subscription's. None for
            the stream that belongs to no request.
        waits_for: the server's request whose response must arrive first, or None.
        answer: for a request, the client's recorded response, or None.
    """

    __slots__ = ("answer", "message", "stream", "waits_for")

    def __init__(
        self, message: RecordedMessage, stream: Turn | None, waits_for: ServerMessage | None
    ) -> None:
        self.message = message
        self.stream = stream
        self.waits_for = waits_for
        self.answer: RecordedMessage | None = None


class Turn:
    """A client's message, and the server's messages that belong to it.

    Attributes:
        message: the client's message. None for the server's messages before the client's first one.
        session: the session that it belongs to.
        items: the server's messages, in their order.
        response: the server's response, or None.
        was_cancelled: the client cancelled the request.
        is_used: a live message was answered from it.
    """

    __slots__ = ("gate", "is_used", "items", "message", "response", "session", "was_cancelled")

    def __init__(self, message: RecordedMessage | None, session: RecordedSession) -> None:
        self.message = message
        self.session = session
        self.items: list[ServerMessage] = []
        self.response: RecordedMessage | None = None
        self.was_cancelled = False
        self.is_used = False
        self.gate: ServerMessage | None = None

    def __repr__(self) -> str:
        return f"<Turn of {self.message!r}, {len(self.items)} messages>"

    @property
    def is_long_lived(self) -> bool:
        """True for a subscription."""
        return self.message is not None and self.message.method in LONG_LIVED


def may_be_early(turn: Turn) -> bool:
    """Return True if a turn asks for a task that was over when the recorded client asked."""
    if turn.message is None or turn.message.method != _GET_TASK or turn.response is None:
        return False
    status = lookup(turn.response.decode(), "result", "status")
    return isinstance(status, str) and status != _WORKING


def seconds_to_repeat(turn: Turn, response: Any) -> float | None:
    """Return the seconds after which a turn's request is sent again.

    None if `response`, the live one, ends it. It doesn't if a task still works that was over when
    the recorded client asked.
    """
    result = lookup(response, "result")
    if lookup(result, "status") != _WORKING or not may_be_early(turn):
        return None
    delay = lookup(result, "pollIntervalMs") or lookup(result, "pollInterval")
    is_number = isinstance(delay, int | float) and not isinstance(delay, bool)
    return min(max(delay / 1000, _POLL), _MAX_POLL) if is_number else _POLL


def turns_of(session: RecordedSession) -> list[Turn]:
    """Return a session's turns. The first one has no client message."""
    return _Attribution(session).run()


class _Attribution:
    """The state while the messages of one session are read in their order."""

    def __init__(self, session: RecordedSession) -> None:
        self._session = session
        self._turns = [Turn(None, session)]
        self._last = self._turns[0]
        self._open: OrderedDict[int | str, Turn] = OrderedDict()
        self._subscriptions: dict[int | str, Turn] = {}
        self._tokens: dict[int | str, Turn] = {}
        self._of_exchange: dict[int, Turn] = {}
        self._asked: dict[int | str, tuple[Turn, ServerMessage]] = {}

    def run(self) -> list[Turn]:
        for message in self._session.messages:
            if message.sender == "client":
                self._receive_client(message)
            else:
                self._receive_server(message)
        return self._turns

    def _receive_client(self, message: RecordedMessage) -> None:
        if message.kind == "response":
            found = None if message.id is None else self._asked.pop(message.id, None)
            if found is not None:
                turn, item = found
                item.answer = message
                turn.gate = item
                self._last = turn
            return
        if message.kind == "junk":
            return
        turn = Turn(message, self._session)
        self._turns.append(turn)
        self._last = turn
        if message.kind == "request":
            self._receive_request(turn, message)
        elif message.method == _CANCELLED:
            key = id_key(lookup(message.decode(), "params", "requestId"))
            cancelled = None if key is None else self._open.get(key)
            if cancelled is not None:
                cancelled.was_cancelled = True

    def _receive_request(self, turn: Turn, message: RecordedMessage) -> None:
        if message.id is not None:
            if turn.is_long_lived:
                self._subscriptions[message.id] = turn
            self._open[message.id] = turn
            self._open.move_to_end(message.id)
        if b'"progressToken"' in message.data:
            token = id_key(lookup(message.decode(), "params", "_meta", "progressToken"))
            if token is not None:
                self._tokens[token] = turn
        if message.exchange:
            self._of_exchange[message.exchange] = turn

    def _receive_server(self, message: RecordedMessage) -> None:
        turn, stream = self._place(message)
        item = ServerMessage(message, stream, turn.gate)
        turn.items.append(item)
        if message.kind == "request" and message.id is not None:
            self._asked[message.id] = (turn, item)

    def _place(self, message: RecordedMessage) -> tuple[Turn, Turn | None]:
        """Return a message's turn, and the turn on whose stream it goes out."""
        if message.kind == "response":
            turn = self._answered_turn(message)
            if turn is None:
                return self._last, self._of_exchange.get(message.exchange)
            turn.response = message
            return (self._current() if turn.is_long_lived else turn), turn
        members: dict[str, Any] | None = None
        if b"subscriptionId" in message.data:
            members = message.decode()
            key = id_key(lookup(members, "params", "_meta", SUBSCRIPTION_ID))
            subscription = None if key is None else self._subscriptions.get(key)
            if subscription is not None:
                if message.method == _ACKNOWLEDGED:
                    return subscription, subscription
                return self._current(), subscription
        if message.method == _PROGRESS:
            members = members or message.decode()
            token = id_key(lookup(members, "params", "progressToken"))
            if token is not None and token in self._tokens:
                return self._tokens[token], self._tokens[token]
        carrier = self._of_exchange.get(message.exchange) if message.exchange else None
        if carrier is not None:
            return (self._current() if carrier.is_long_lived else carrier), carrier
        current = self._current()
        is_open = current.response is None and current.message is not None
        has_stream = is_open and current.message is not None and current.message.kind == "request"
        return current, (current if has_stream and not message.exchange else None)

    def _answered_turn(self, message: RecordedMessage) -> Turn | None:
        """Return the turn that a response ends, or None.

        An HTTP server may reject a request before it reads the id.
        """
        if message.id is not None:
            return self._open.pop(message.id, None)
        turn = self._of_exchange.get(message.exchange)
        if turn is None or turn.message is None or turn.message.id is None:
            return None
        is_open = self._open.get(turn.message.id) is turn
        return self._open.pop(turn.message.id) if is_open else None

    def _current(self) -> Turn:
        """Return the turn of the last request without a response, or the last turn."""
        for turn in reversed(self._open.values()):
            if not turn.is_long_lived and not turn.was_cancelled:
                return turn
        return self._last
