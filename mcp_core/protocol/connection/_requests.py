"""The requests that have no response yet: the peer's and our own.

1. A peer's request stays in the table until its handler has returned, even if it was cancelled. Its
   id cannot be used again until then, and a handler that ignores its cancellation still counts.
2. Our own request is in the table until it is answered or cancelled, or the connection ends.
   Input for other ids is ignored: it is a race that the protocol allows.
3. A request that was sent during a peer's request (`related`) is cancelled when that one ends.

Source: basic/utilities/cancellation.
"""

from __future__ import annotations

import re
from functools import partial
from typing import TYPE_CHECKING, Final

from msgspec import Struct

from mcp_core import types as t
from mcp_core._errors import LocalProtocolError
from mcp_core._patterns import compile_on_first_use
from mcp_core.protocol.jsonrpc._codec import encode_notification, encode_request
from mcp_core.protocol.messages._events import ProgressReceived, ResultReceived, TaskCreated
from mcp_core.protocol.messages._outbox import MessageKind, Outgoing
from mcp_core.protocol.messages._pending import IgnoredRequest
from mcp_core.protocol.messages._responses import response_event

from ._state import RequestAction, RequestPhase, next_phase

if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from mcp_core._limits import Limits
    from mcp_core.protocol.jsonrpc._codec import Envelope
    from mcp_core.protocol.messages._events import Event, Peer, RequestReceived
    from mcp_core.protocol.messages._outbox import Outbox
    from mcp_core.protocol.messages._responses import OutgoingRequest
    from mcp_core.protocol.revisions._config import DialectConfig
    from mcp_core.types import ProgressParams, ProgressToken, RequestId

__all__ = [
    "KEEP_ALIVE_PING",
    "NEGOTIATION",
    "IncomingRequest",
    "IncomingRequests",
    "OutgoingRequests",
    "other_spelling",
]

# A number as an id has at most 16 digits (2^53 - 1), and a sign.
_INTEGER: Final = compile_on_first_use(r"-?(?:0|[1-9][0-9]*)", re.ASCII)
_LONGEST_ID: Final = 17
_REPORT: Final = RequestAction.REPORT
_CANCELLED: Final = RequestPhase.CANCELLED
_UNANSWERED: Final = frozenset(
    phase
    for phase in RequestPhase
    if next_phase(phase, RequestAction.RESPONSE) is RequestPhase.DONE
)


def other_spelling(id: RequestId, table: Mapping[RequestId, Any]) -> RequestId | None:
    """Return the id in `table` that is `id` written as a text or as a number, or None.

    Some peers send back `"3"` for 3. Look for `id` itself first: both may be in the table.
    """
    if type(id) is str:
        # A longer number isn't exact, so it is no id.
        found = int(id) if len(id) <= _LONGEST_ID and _INTEGER.fullmatch(id) else None
        return found if found in table else None
    return str(id) if str(id) in table else None


class IncomingRequest(Struct, gc=False):
    """A peer's request that has no response yet."""

    peer: Peer
    dialect_config: DialectConfig
    phase: RequestPhase = RequestPhase.OPEN
    progress_token: ProgressToken | None = None
    progress: float | None = None  # the last value sent


class IncomingRequests:
    """The peer's requests that have no response yet: those in flight, and a queue.

    Above `limits.in_flight` a request waits in the queue. A full queue stops reading
    (`must_pause`), unless input is needed to empty it: while we wait for responses ourselves, and
    after `limits.pause` seconds. New requests are then rejected as busy.

    Attributes:
        table: all of them, by id.
        waiting: those that wait for a handler, in order of arrival.
        paused_since: when reading stopped because of them, None if it hasn't.
    """

    __slots__ = (
        "_limits",
        "_pause_ended",
        "paused_since",
        "table",
        "waiting",
    )

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self.table: dict[RequestId, IncomingRequest] = {}
        self.waiting: list[RequestReceived] = []
        self.paused_since: float | None = None
        self._pause_ended = False  # by timeout: reading goes on although the queue is full

    @property
    def in_flight(self) -> int:
        """The number of requests that were passed to a handler and have no response yet."""
        return len(self.table) - len(self.waiting)

    def add(self, event: RequestReceived, request: IncomingRequest) -> bool | None:
        """Add a request.

        Return True if it is in flight, False if it waits in the queue, None if the queue is full
        and the request has to be rejected.
        """
        limits = self._limits
        # While requests wait, a free place is theirs.
        if not self.waiting and len(self.table) < limits.in_flight:
            self.table[event.id] = request
            return True
        if len(self.waiting) < limits.waiting:
            self.table[event.id] = request
            self.waiting.append(event)
            return False
        return None

    def next_waiting(self) -> RequestReceived | None:
        """Remove the first request from the queue and return it, None if it has to wait longer."""
        if not self.waiting or self.in_flight >= self._limits.in_flight:
            return None
        self._resume()
        return self.waiting.pop(0)

    def is_unanswered(self, id: RequestId) -> bool:
        """Return True if the request `id` has no response yet and wasn't cancelled."""
        request = self.table.get(id)
        return request is not None and request.phase is not _CANCELLED

    def unanswered(self) -> list[RequestId]:
        """Return the ids of requests that have no response yet and were not cancelled."""
        return [id for id, request in self.table.items() if request.phase in _UNANSWERED]

    def peer_of(self, id: RequestId) -> Peer:
        """Return the sender of the request `id`.

        Raises:
            LocalProtocolError: the request was answered or cancelled.
        """
        request = self.table.get(id)
        if request is None or request.phase is RequestPhase.CANCELLED:
            raise LocalProtocolError(f"request {id!r} is over: nothing can be sent on its behalf")
        return request.peer

    def log_recipient(self, id: RequestId, session_peer: Peer | None) -> Peer | None:
        """Return the peer to which log messages of the request `id` are sent.

        Return None if none may be sent any more. `session_peer` is the connection's current peer.
        """
        request = self.table.get(id)
        if request is None or next_phase(request.phase, _REPORT) is None:
            return None
        # After a handshake, the log level may have changed since the request arrived.
        same_session = session_peer is not None and session_peer.dialect is request.peer.dialect
        return session_peer if same_session else request.peer

    def get_unanswered(self, id: RequestId) -> IncomingRequest | None:
        """Return the request `id` if a response may be sent.

        Return None if it was cancelled, and remove it: its handler has returned.

        Raises:
            LocalProtocolError: there is no such request, or it was answered.
        """
        request = self.table.get(id)
        if request is None:
            raise LocalProtocolError(
                f"there is no request {id!r} to answer, or it was answered before"
            )
        if request.phase in _UNANSWERED:
            return request
        del self.table[id]
        return None

    def cancel(self, id: RequestId) -> bool | None:
        """Mark the request `id` as cancelled.

        Return True if a handler is running, False if it was still in the queue and is removed, None
        if it is unknown, answered or already cancelled.
        """
        request = self.table.get(id)
        if request is None or next_phase(request.phase, RequestAction.CANCEL) is None:
            return None
        request.phase = RequestPhase.CANCELLED
        for event in self.waiting:
            if event.id == id and type(event.id) is type(id):
                self.waiting.remove(event)
                del self.table[id]
                self._resume()
                return False
        return True

    def cancel_all(self) -> list[RequestId]:
        """Cancel all requests. Return the ids of those whose handlers have to be cancelled."""
        for event in self.waiting:
            del self.table[event.id]
        self.waiting.clear()
        self._resume()
        running = [
            id for id, request in self.table.items() if request.phase is not RequestPhase.CANCELLED
        ]
        for id in running:
            self.table[id].phase = RequestPhase.CANCELLED
        return running

    def must_pause(self, now: float, *, awaiting_response: bool) -> bool:
        """Return True if reading has to stop.

        Pass `awaiting_response` True while our own requests have no response. Reading then goes on,
        because the response may be what a handler needs to return.
        """
        if len(self.waiting) < self._limits.waiting or awaiting_response or self._pause_ended:
            return False
        if self.paused_since is None:
            self.paused_since = now
        return True

    def _resume(self) -> None:
        """End the pause, because the queue has room. The next pause lasts `limits.pause` again."""
        self.paused_since = None
        self._pause_ended = False

    @property
    def pause_deadline(self) -> float | None:
        """When the pause ends by timeout; None while reading isn't paused."""
        if self.paused_since is None or self._pause_ended:
            return None
        return self.paused_since + self._limits.pause

    def end_pause_if_due(self, now: float) -> None:
        """End the pause if it has timed out. New requests are then rejected as busy."""
        deadline = self.pause_deadline
        if deadline is not None and now >= deadline:
            self._pause_ended = True


# The peer's tasks for which it may send progress. Who follows a task ends that; the limit is for
# callers that start tasks and never ask for them.
_MAX_TASKS: Final = 1_000


class _InternalToken:
    """The token of a request that the connection sends itself. No caller gets its response."""


NEGOTIATION: Final = _InternalToken()  # requests of the version negotiation
KEEP_ALIVE_PING: Final = _InternalToken()  # the keep-alive ping


class OutgoingRequests:
    """Our requests that have no response yet.

    Ids are counted up and never reused, so a late response cannot match another request.
    Cancellations are queued in the outbox.

    Attributes:
        table: the requests by id.
        tasks: the requests by id that have become tasks, as long as progress may arrive for them.
        next_id: the next request's id.
    """

    __slots__ = (
        "_outbox",
        "next_id",
        "table",
        "tasks",
    )

    def __init__(self, outbox: Outbox) -> None:
        self._outbox = outbox
        self.table: dict[RequestId, OutgoingRequest] = {}
        self.tasks: dict[RequestId, OutgoingRequest] = {}
        self.next_id = 1

    def send(
        self,
        call: OutgoingRequest,
        encoded: bytes | None,
        params: Any = None,
        headers: Mapping[str, str] | None = None,
    ) -> int:
        """Queue a request with the params `encoded`, and add it. Return its id.

        Raises:
            ValueError: the params have a newline and aren't JSON. Nothing was added then.
        """
        id = self.next_id
        method = call.method
        dialect = call.dialect
        data = encode_request(id, method, encoded)
        kind = MessageKind.REQUEST
        self._outbox.put(
            Outgoing(data, kind, id, call.related, method, dialect, params, headers=headers)
        )
        self.next_id = id + 1
        self.table[id] = call
        return id

    def cancel(self, id: RequestId, reason: str | None) -> None:
        """Cancel the request `id`, and notify the peer. No event follows.

        Do nothing if the request is complete. Requests of the version negotiation aren't
        cancelled: a client must not cancel `initialize`.
        """
        call = self.table.get(id)
        if call is None or call.token is NEGOTIATION:
            return
        del self.table[id]
        params = call.dialect.encode(t.CancelledParams(request_id=id, reason=reason))
        data = encode_notification("notifications/cancelled", params)
        method = "notifications/cancelled"
        self._outbox.put(Outgoing(data, MessageKind.CANCEL, id, call.related, method, call.dialect))

    def cancel_related(self, parent: RequestId) -> None:
        """Cancel the requests that were sent during the peer's request `parent`."""
        for id, call in list(self.table.items()):
            if call.related == parent and type(call.related) is type(parent):
                self.cancel(id, "the request it was made for is over")

    def response_event(self, id: RequestId, call: OutgoingRequest, envelope: Envelope) -> Event:
        """Return the event for the response `envelope` to the request `call`.

        Keep receiving progress if it has become a task (2025-11-25, basic/utilities/progress). Of
        more than 1,000 such tasks the oldest one is forgotten.
        """
        event = response_event(id, call, envelope)
        if call.wants_progress and type(event) is TaskCreated and call.dialect.stateful:
            if len(self.tasks) >= _MAX_TASKS:
                del self.tasks[next(iter(self.tasks))]
            self.tasks[id] = call
            event.redirect_progress = partial(self._redirect_progress, id)
        return event

    def _redirect_progress(self, id: RequestId, token: object) -> None:
        if token is None:
            self.tasks.pop(id, None)
        elif id in self.tasks:
            self.tasks[id].token = token

    def progress_event(self, params: ProgressParams) -> ProgressReceived | None:
        """Return the event for a progress notification.

        Return None if progress wasn't requested, or hasn't increased.
        """
        token = params.progress_token
        call = self.table.get(token) or self.tasks.get(token)
        if call is None:
            known = other_spelling(token, self.table)
            if known is None:
                return None
            call = self.table[known]
        if not call.wants_progress:
            return None
        if call.progress is not None and params.progress <= call.progress:
            return None
        call.progress = params.progress
        return ProgressReceived(
            params.progress_token, params.progress, params.total, params.message, call.token
        )

    def end_long_lived(self, id: RequestId) -> ResultReceived | None:
        """Complete the long-lived request `id`, because the peer cancelled it.

        Return its result event, or None if `id` is none of our long-lived requests.
        """
        known = id if id in self.table else other_spelling(id, self.table)
        if known is None:
            return None
        call = self.table[known]
        if call.row is None or not call.row.long_lived:
            return None
        del self.table[known]
        return ResultReceived(known, t.ListenResult(), call.token)

    def fail_all(self, reason: str | None) -> list[Any]:
        """Remove all requests and return the tokens of those that callers wait for.

        If `reason` isn't None, also cancel them at the peer.
        """
        lost = [
            call.token for call in self.table.values() if not isinstance(call.token, _InternalToken)
        ]
        if reason is not None:
            for id, call in list(self.table.items()):
                # One whose response no caller waits for shall still be done, such as the
                # `tasks/cancel` of a call that was given up a moment ago.
                if not isinstance(call.token, IgnoredRequest):
                    self.cancel(id, reason)
        self.table.clear()
        return lost
