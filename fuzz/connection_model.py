"""A model of one `Connection`: requests received and sent, and the responses still due.

Rules of this file:

1. The model keeps ids and counts, read from the bytes by `fuzz.reference_parser`. It knows what
   must hold in every case, not how the connection decides.
2. A bound is exact where the bytes are unambiguous. Where they are not (JSON parsers may differ, or
   the revision is not negotiated yet), a response is allowed but not required.

`fuzz.connection_script` plays the script and reports everything received, done, returned and sent
to the model.
"""

from __future__ import annotations

import re
from collections import Counter
from typing import Any, Final, NamedTuple, TypeAlias

from fuzz.reference_parser import Classification, classify, classify_batch
from mcp_core import (
    Connection,
    ConnectionClosed,
    ErrorReceived,
    Event,
    InputRequested,
    MessageKind,
    MessageRejected,
    ProgressReceived,
    RemoteProtocolError,
    RequestCancelled,
    RequestReceived,
    ResultReceived,
    Role,
    TaskCreated,
)
from mcp_core import types as t

__all__ = ["ACKNOWLEDGED", "CANCELLED", "CLOSED_REASON", "ConnectionModel", "Id", "SentRequest"]

Id: TypeAlias = int | str

CANCELLED: Final = "notifications/cancelled"
ACKNOWLEDGED: Final = "notifications/subscriptions/acknowledged"
CLOSED_REASON: Final = "the connection ended"  # the reason of cancellations caused by the end
# Requests that a connection sends itself: to open, and to check a silent peer.
_INTERNAL_METHODS: Final = frozenset({"initialize", "server/discover", "ping"})
_IDS: Final = re.compile(rb'"id"\s*:\s*(?:(-?[0-9]{1,16})|"([^"\\]*)")')
# Methods that the rate limit on tool calls counts.
_RATE_LIMITED: Final = frozenset({"tools/call", "completion/complete"})


class SentRequest(NamedTuple):
    """A request of our side without a response.

    `related` is the peer's request that it was sent for.
    """

    token: int
    related: Id | None
    wants_progress: bool
    method: str


class ConnectionModel:
    """The expected state of one connection.

    `running` maps the peer's requests that our side handles to True if they are cancelled,
    `requests` to their events. `pending` holds our own requests without a response, `last_progress`
    the progress reported for them. `closed` is set by `ConnectionClosed`.
    """

    def __init__(self, conn: Connection) -> None:
        self._conn = conn
        self.closed = False
        # Requests of the peer: that must or may get a response, their cancellations and responses.
        self._must_answer: Counter[Any] = Counter()
        self._may_answer: Counter[Any] = Counter()
        self._cancellations: Counter[Any] = Counter()
        self._responses: Counter[Any] = Counter()
        self._ambiguous = 0  # messages that may carry or cancel an id that the model cannot read
        self._null_id_allowed = 0  # messages that may get an error response with a null id
        self.running: dict[Id, bool] = {}
        self.requests: dict[Id, RequestReceived] = {}
        self._subscriptions: set[Id] = (
            set()
        )  # acknowledged `subscriptions/listen` requests that have not ended
        self._rate_limited_calls = 0
        self._remaining_requests: int | None = None  # that may still be delivered; None: any number
        self._rejected = 0
        # Requests of our side.
        self.pending: dict[Id, SentRequest] = {}
        self.last_progress: dict[Id, float] = {}
        self._sent_ids: set[Id] = set()
        self._internal_ids: set[Id] = set()
        self._cancellations_due: set[Id] = set()  # `notifications/cancelled` not sent yet
        # Failed because of input that may have been the response: the peer may still work on them.
        self._cancellations_allowed: set[Id] = set()
        self._last_id = 0

    def __repr__(self) -> str:
        return f"<ConnectionModel: {len(self.running)} running, {len(self.pending)} pending>"

    # -- Input of the peer -------------------------------------------------------------------------

    def receive(self, line: bytes) -> None:
        """Record a message of the peer, before the connection gets it."""
        if len(line) > self._conn.config.limits.message:
            self.line_too_long(line)
        elif line.lstrip(b" \t\r\n").startswith(b"["):
            self._null_id_allowed += 1
            self._receive_batch(line)
        else:
            self._receive_one(classify(line), sure=self._must_respond())

    def line_too_long(self, line: bytes) -> None:
        """Record a line over the limit, which may be unfinished: an error response is due now.

        It is for any id that the line seems to have.
        """
        self._null_id_allowed += 1
        for number, text in _IDS.findall(line):
            self._may_answer[int(number) if number else text.decode(errors="replace")] += 1

    def _receive_batch(self, line: bytes) -> None:
        members = classify_batch(line)
        if members is None:
            self._ambiguous += 1
            return
        peer, limit = self._conn.peer, self._conn.config.limits.batch
        sure = peer is not None and peer.dialect.batches and 0 < len(members) <= limit
        for message in members:
            self._receive_one(message, sure=sure and self._must_respond())

    def _receive_one(self, message: Classification, *, sure: bool) -> None:
        self._null_id_allowed += 1
        if message.kind == "request" and sure:
            self._must_answer[message.id] += 1
        elif message.id is not None:
            self._may_answer[message.id] += 1
        elif message.kind == "unsure" or "id" in message.members:
            self._ambiguous += 1
        cancelled = _params(message).get("requestId") if _is_cancellation(message) else None
        if type(cancelled) in (int, str):
            self._cancellations[cancelled] += 1

    def _must_respond(self) -> bool:
        """True if every request of the peer must get a response. A stateless client sends none."""
        if self.closed:
            return False
        if self._conn.role is Role.SERVER:
            return True
        peer = self._conn.peer
        return peer.dialect.stateful if peer is not None else not self._conn.config.stateless

    def running_cancelled_by(self, line: bytes) -> Id | None:
        """Return the running request that a message surely cancels, or None."""
        message = classify(line)
        params = _params(message)
        id: Any = params.get("requestId")
        sound = params.keys() <= {"requestId", "reason"} and isinstance(
            params.get("reason", ""), str
        )
        if not (_is_cancellation(message) and sound and type(id) in (int, str)):
            return None
        return id if self.running.get(id) is False else None

    # -- Calls of our side -------------------------------------------------------------------------

    def request_sent(self, id: Id, request: SentRequest) -> None:
        """Record that our side sent a request."""
        assert not self.closed, "a request was sent on a closed connection"
        assert id not in self._sent_ids, "an id is used twice"
        self._sent_ids.add(id)
        self.pending[id] = request

    def cancel(self, id: Id) -> None:
        """Record that a request of our side is cancelled, by us or because we close."""
        del self.pending[id]
        self._cancellations_due.add(id)

    def close(self) -> list[int]:
        """Record that we close, and return the tokens of the lost requests."""
        lost = [request.token for request in self.pending.values()]
        self._cancellations_due |= self.pending.keys()
        return lost

    def response_sent(self, id: Id, sent: bool) -> None:
        """Record that our side ended a request of the peer.

        With `sent`, its response was accepted.
        """
        del self.running[id]
        if sent:
            self._cancel_related(id)

    def limit_new_requests(self, maximum: int) -> None:
        """Allow at most `maximum` more requests of the peer to be delivered."""
        self._remaining_requests = (
            maximum if self._remaining_requests is None else min(self._remaining_requests, maximum)
        )

    def was_delivered(self, id: Id) -> bool | None:
        """True if our side may respond to a request. None if it may be on its way."""
        if id in self.running:
            return True
        # A waiting request has not been delivered, so our side cannot know its id.
        return (
            None
            if self._ambiguous or self._must_answer[id] + self._may_answer[id] > self._responses[id]
            else False
        )

    def response_count(self, id: Id) -> int:
        """Return how many responses the request has got."""
        return self._responses[id]

    # -- Output of the connection ------------------------------------------------------------------

    def handle_event(self, event: Event, now: float) -> None:
        """Record an event of the connection."""
        if isinstance(event, MessageRejected):
            self._rejected += 1
        elif isinstance(event, RequestReceived):
            self._handle_request(event, now)
        elif isinstance(event, RequestCancelled):
            assert self.running[event.id] is False, f"{event.id!r} was cancelled twice"
            self.running[event.id] = True
            self._cancellations[event.id] += 1
            if event.reason != CLOSED_REASON:
                self._cancel_related(event.id)
        elif isinstance(event, ResultReceived | ErrorReceived | InputRequested | TaskCreated):
            assert self.pending.pop(event.id).token == event.token
            self.last_progress.pop(event.id, None)
            if isinstance(event, ErrorReceived) and isinstance(event.error, RemoteProtocolError):
                self._cancellations_allowed.add(event.id)
        elif isinstance(event, ProgressReceived):
            request, previous = self.pending[event.id], self.last_progress.get(event.id)
            assert request.wants_progress, "progress without a progress token"
            assert event.token == request.token
            assert previous is None or event.progress > previous, "progress decreased"
            self.last_progress[event.id] = event.progress
        elif isinstance(event, ConnectionClosed):
            assert not self.closed, "ConnectionClosed came twice"
            self.closed = True
            assert event.lost == [request.token for request in self.pending.values()], (
                f"lost {event.lost}"
            )
            self.pending.clear()
            if isinstance(event.error, RemoteProtocolError):  # its queue is discarded
                self._cancellations_due.clear()

    def _handle_request(self, event: RequestReceived, now: float) -> None:
        assert not self.closed, "a request after ConnectionClosed"
        assert event.id not in self.running, f"{event.id!r} runs already"
        assert self._must_answer[event.id] or self._may_answer[event.id] or self._ambiguous, (
            f"{event.id!r} was never requested"
        )
        self.running[event.id] = False
        self.requests[event.id] = event
        if self._remaining_requests is not None:
            self._remaining_requests -= 1
            assert self._remaining_requests >= 0, "a request is delivered after shutdown"
        rate = self._conn.config.limits.tool_calls
        if rate is not None and event.method.name in _RATE_LIMITED:
            self._rate_limited_calls += 1
            assert self._rate_limited_calls <= rate.burst + rate.per_second * now, (
                "more calls than the rate allows"
            )

    def _cancel_related(self, parent: Id) -> None:
        """Record that the connection cancels what was sent on behalf of an ended request."""
        for id, request in list(self.pending.items()):
            if request.related == parent and type(request.related) is type(parent):
                self.cancel(id)

    def check_sent(self, line: bytes) -> None:
        """Check and record a message that the connection sends."""
        message = classify(line)
        assert message.kind in ("request", "notification", "response"), (
            f"it sends {line!r}: {message.why}"
        )
        assert b"\n" not in line
        if message.kind == "request":
            self._check_sent_request(message)
        elif message.kind == "response" and message.id is not None:
            self._responses[message.id] += 1
            if "result" in message.members:  # an error may be for a request with an id in use
                self._subscriptions.discard(message.id)
        elif message.kind == "response":
            self._null_id_allowed -= 1
            assert self._null_id_allowed >= 0, "an error response without a bad message"
        elif _is_cancellation(message):
            id = _params(message)["requestId"]
            allowed = self._cancellations_allowed | self._internal_ids
            assert id in self._cancellations_due | allowed, f"it cancels {id!r}, which is not due"
            for ids in self._cancellations_due, self._cancellations_allowed, self._internal_ids:
                ids.discard(id)
        else:
            self._check_sent_notification(message)

    def _check_sent_request(self, message: Classification) -> None:
        id, method = message.id, message.members["method"]
        assert isinstance(id, int)
        assert id > self._last_id, "request ids do not increase"
        self._last_id = id
        if id not in self._sent_ids:
            assert method in _INTERNAL_METHODS, f"it sends {method} unasked"
            self._internal_ids.add(id)

    def _check_sent_notification(self, message: Classification) -> None:
        meta: Any = _params(message).get("_meta", ())
        id: Any = dict(meta).get(t.META_SUBSCRIPTION_ID)
        if message.members["method"] == ACKNOWLEDGED:
            # A response may follow, but the end of the connection ends it too.
            self._must_answer[id] -= 1
            self._may_answer[id] += 1
            self._subscriptions.add(id)
        elif id is not None:
            # Notifications queued before a cancellation are still sent.
            assert id in self._subscriptions or self._cancellations[id], (
                f"a notification for {id!r}, which is not subscribed"
            )

    # -- Checks ------------------------------------------------------------------------------------

    def check(self) -> None:
        """Check the state after a step, when all events are read."""
        conn, limits = self._conn, self._conn.config.limits
        stats = conn.stats()
        assert conn.in_flight == stats.in_flight == len(self.running), (
            f"{conn!r}: {list(self.running)} run"
        )
        assert conn.in_flight <= limits.in_flight
        assert stats.waiting <= limits.waiting
        assert len(self.pending) <= stats.calls
        assert stats.events == 0
        assert stats.rejected == self._rejected
        assert all(conn.queued(id) <= conn.queued() == stats.queued for id in self.running)
        if conn.role is Role.CLIENT and not self.closed:
            outbox = conn._outbox
            size = outbox.response_bytes
            many = [message.kind for message in outbox._messages].count(MessageKind.RESPONSE) > 64
            assert size <= limits.queued or (size <= limits.message and not many), (
                "the client queues responses without bound"
            )
        excess = self._responses - self._must_answer - self._may_answer
        assert sum(excess.values()) <= self._ambiguous, f"too many responses: {excess}"

    def check_closed(self, *, ended_early: bool) -> None:
        """Check the end, when every request was answered, the end was reported and all output
        taken.
        """
        unanswered = self._must_answer - self._cancellations - self._responses
        assert ended_early or sum(unanswered.values()) <= self._ambiguous, (
            f"never answered: {unanswered}"
        )
        assert not self._cancellations_due, f"cancellations not sent: {self._cancellations_due}"
        assert all(self.running.values()), "running requests were not cancelled at the end"


def _is_cancellation(message: Classification) -> bool:
    return message.kind == "notification" and message.members["method"] == CANCELLED


def _params(message: Classification) -> dict[str, Any]:
    """Return the params if they are an object. The reference parser gives objects as pairs."""
    params: Any = message.members.get("params")
    is_object = isinstance(params, list) and all(isinstance(pair, tuple) for pair in params)
    return dict(params) if is_object else {}
