"""The state machine of one connection: received bytes in, events out; calls in, bytes to send out.

1. The revision is a property of a message's sender, which `_admission.py` determines. Nothing
   here compares revisions.
2. Every request gets one response, and no input raises an exception. An invalid message causes an
   error response where the protocol allows one, and a `MessageRejected` event. Only mistakes of our
   caller raise (`LocalProtocolError`).
3. What the protocol fully determines causes no event (`BUILTIN_RESULTS`,
   `_BUILTIN_NOTIFICATIONS`), so a driver cannot forget it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Final

from msgspec import UNSET, Raw, Struct, UnsetType

from mcp_core import types as t
from mcp_core._errors import (
    ConnectFailed,
    ConnectionLost,
    Fault,
    LocalProtocolError,
    McpTrioError,
    RemoteProtocolError,
)
from mcp_core._limits import Bucket
from mcp_core.protocol.jsonrpc._body import ParsedBody
from mcp_core.protocol.jsonrpc._codec import (
    NO_PARAMS,
    BadMessage,
    Envelope,
    InvalidPayload,
    MendedEnvelope,
    encode_notification,
    encode_result,
)
from mcp_core.protocol.messages._events import (
    NEED_DATA,
    PAUSED,
    ConnectionClosed,
    ErrorReceived,
    Event,
    InputProblem,
    MessageRejected,
    NeedData,
    NotificationReceived,
    Paused,
    Peer,
    PeerReady,
    RequestCancelled,
    RequestReceived,
    ResultReceived,
)
from mcp_core.protocol.messages._incoming import IncomingMessages, MessageContext
from mcp_core.protocol.messages._outbox import UNREAD_RESPONSES, MessageKind, Outbox, Outgoing
from mcp_core.protocol.messages._rejection import (
    RequestRejected,
    error_response,
    rate_limited,
    response_to_bad_message,
    response_to_rejected,
)
from mcp_core.protocol.messages._responses import OutgoingRequest, decode_error
from mcp_core.protocol.revisions._config import Config
from mcp_core.protocol.revisions._encoding import (
    encode_params,
    encode_request_params,
    encode_result_parts,
)
from mcp_core.protocol.revisions._methods import Role, Step
from mcp_core.protocol.subscriptions._server import (
    SUBSCRIPTION_METHODS,
    Change,
    SubscriptionPublisher,
)
from mcp_core.types import ErrorData, LoggingLevel, RequestId

from ._admission import admit, may_become_task, may_notify, may_request
from ._builtin import (
    BUILTIN_RESULTS,
    ProgressSender,
    log_notification,
    progress_notification,
    task_progress,
)
from ._keep_alive import KeepAlive, KeepAliveAction
from ._negotiation import OpeningReply, VersionNegotiation, opening_params, reply_from
from ._requests import (
    KEEP_ALIVE_PING,
    NEGOTIATION,
    IncomingRequest,
    IncomingRequests,
    OutgoingRequests,
    other_spelling,
)
from ._state import ENDING_STATES, RequestPhase, State, Stats, next_state
from ._unreadable import UnreadableInput

if TYPE_CHECKING:
    from mcp_core.protocol.revisions._dialects import Dialect

    from ._unreadable import Failure

__all__ = ["Connection"]


# Looking up a member of an enum costs more than most comparisons with it.
_CLIENT, _SERVER = Role
_CLOSED = State.CLOSED
_OPEN = RequestPhase.OPEN
_RESPONSE = MessageKind.RESPONSE
# Shared by all connections without keep-alive: without an interval it never changes.
_NO_KEEP_ALIVE: Final = KeepAlive(None)


class Connection:
    """One JSON-RPC conversation: a pipe, a socket, an HTTP session, or a single stateless request.

    Its methods are of four kinds.

    *Facts* may be read at any time: `state`, `peer`, `in_flight`, `queued()`, `stats()`, `probing`.

    *What arrived* goes in by `receive_data` (framed streams; `b""` is the end of file),
    `receive_message` (one complete message), `receive_failure` (there will be no response) and
    `handle_timeout`. Their `now` is a monotonic time in seconds, on one clock for all calls.

    *What we want to send* goes in by `open`, `close`, `shutdown` and all that begins with `send`.
    They raise `LocalProtocolError` if the protocol doesn't allow it, and then nothing was sent.

    *What to do now*, after any call of the two kinds above and in this order: write
    `data_to_send()` (or `messages_to_send()`), set one timer to `next_deadline()`, and call
    `next_event()` until it returns `NEED_DATA` or `PAUSED`.

    Args:
        role: which end this is.
        config: our configuration, shared by all connections of a server or client.
        peer: the other end, if it is known by other means than a handshake on this connection.
        bucket: counts the peer's tool calls, if it has several connections at once.
    """

    __slots__ = (
        "_bucket",
        "_closed_emitted",
        "_eof",
        "_events",
        "_incoming",
        "_input",
        "_keep_alive",
        "_max_queued",
        "_now",
        "_outbox",
        "_outgoing",
        "_publisher",
        "_rejected_count",
        "_unreadable",
        "check_headers",
        "config",
        "describe_peer",
        "has_capacity",
        "negotiation",
        "peer",
        "role",
        "state",
    )

    def __init__(
        self, role: Role, config: Config, *, peer: Peer | None = None, bucket: Bucket | None = None
    ) -> None:
        self.role = role
        self.config = config
        self.peer: Peer | None = None
        self.state = State.NEW
        # Set by transports: to check the headers of a call, and to bound change notifications.
        self.check_headers: Callable[[Mapping[str, str]], None] | None = None
        self.has_capacity: Callable[[RequestId | None], bool] | None = None
        # Set by a transport that knows more about the peer: a text to append to errors about it.
        self.describe_peer: Callable[[], str] | None = None
        self.negotiation: VersionNegotiation | None = None
        self._unreadable: UnreadableInput | None = None
        self._max_queued = config.limits.queued
        self._input = IncomingMessages(config.limits)
        self._outbox = Outbox()
        self._incoming = IncomingRequests(config.limits)
        self._outgoing = OutgoingRequests(self._outbox)
        self._events: list[Event] = []
        self._publisher: SubscriptionPublisher | None = None
        self._eof = False
        self._closed_emitted = False  # `ConnectionClosed` was emitted; handlers may still run
        self._now = 0.0
        self._rejected_count = 0
        rate = config.limits.tool_calls
        self._bucket = bucket or (Bucket(rate) if rate is not None else None)
        seconds = config.keep_alive
        self._keep_alive = _NO_KEEP_ALIVE if seconds is None else KeepAlive(seconds)
        if peer is not None:
            self._set_peer(peer)
            self.state = State.READY

    def __repr__(self) -> str:
        version = self.peer.dialect.version if self.peer is not None else "no revision"
        return (
            f"<Connection {self.role.value} {self.state.name} {version}, {self.in_flight} in flight"
            f", {len(self._outgoing.table)} calls, {self._outbox.queued} bytes queued>"
        )

    # -- Facts -------------------------------------------------------------------------------------

    @property
    def in_flight(self) -> int:
        """The number of peer requests that have an event and no response yet.

        It includes cancelled requests whose handler still runs.
        """
        return self._incoming.in_flight

    @property
    def now(self) -> float:
        """The time of what arrived last, or of the last timeout, by its caller's clock."""
        return self._now

    @property
    def probing(self) -> bool:
        """True if the opening's last request is the probe, `server/discover`."""
        return self.negotiation is not None and self.negotiation.probing

    def queued(self, related: RequestId | None = None) -> int:
        """Return the number of bytes to send.

        With `related`, the id of a peer's request, count only messages that belong to it.
        """
        return self._outbox.queued if related is None else self._outbox.queued_for(related)

    def has_incoming(self, id: RequestId) -> bool:
        """Return True if the peer's request `id` has no response yet and wasn't cancelled."""
        return self._incoming.is_unanswered(id) or (
            self._publisher is not None and id in self._publisher.table
        )

    def has_outgoing(self, id: RequestId) -> bool:
        """Return True if our request `id` has no response yet and wasn't cancelled."""
        return id in self._outgoing.table

    def describe_unreadable(self) -> str:
        """Return a clause about what the server wrote since its last message, or ""."""
        return "" if self._unreadable is None else self._unreadable.describe("the server")

    def stats(self) -> Stats:
        """Return the current sizes and totals of this connection."""
        return Stats(
            in_flight=self._incoming.in_flight,
            waiting=len(self._incoming.waiting),
            calls=len(self._outgoing.table),
            events=len(self._events),
            buffered=len(self._input),
            queued=self._outbox.queued,
            received=self._input.received,
            sent=self._outbox.sent,
            rejected=self._rejected_count,
        )

    # -- What arrived ------------------------------------------------------------------------------

    def receive_data(self, data: bytes, now: float) -> None:
        """Receive `data`, a chunk of a stream of lines of any size. `b""` is the end of file."""
        self._mark_activity(now)
        if not data:
            self._eof = True
        elif self.state is not _CLOSED:
            self._input.feed(data)

    def receive_message(
        self, data: bytes, now: float, context: MessageContext | None = None
    ) -> None:
        """Receive one complete message from a transport with message boundaries.

        `data` is its JSON. `context` is what the transport knows of it beside its bytes.
        """
        self._mark_activity(now)
        if self.state is not _CLOSED:
            self._input.add(data, context)

    def receive_parsed(self, body: ParsedBody, now: float, context: MessageContext) -> None:
        """Receive a message or a batch: `body`, as `parse_body` returns it with our limits.

        `context` is what the transport knows of it beside its bytes.
        """
        self._now = now
        if self._keep_alive.deadline is not None:
            self._keep_alive.mark_activity(now)
        if self.state is not _CLOSED:
            self._input.add_parsed(body, context)

    def receive_failure(
        self, id: RequestId, error: McpTrioError, now: float, *, status: int | None = None
    ) -> None:
        """Fail our request `id` with `error`. Do nothing if it is complete.

        `status` is the HTTP response's, 0 if none arrived, None without HTTP.
        """
        self._now = now
        call = self._outgoing.table.pop(id, None)
        if call is not None:
            self._fail_request(id, call, error, OpeningReply(status=status, failure=error))

    def handle_timeout(self, now: float) -> None:
        """Process the timeouts that are due at `now`. Calls before `next_deadline` do no harm."""
        self._now = now
        self._incoming.end_pause_if_due(now)
        negotiation = self.negotiation
        if negotiation is not None and negotiation.is_due(now):
            del self._outgoing.table[negotiation.time_out()]
            self._advance_negotiation(OpeningReply())
        if self._unreadable is not None:
            self._fail_requests(self._unreadable.time_out(now))
        self._check_keep_alive(now)

    # -- What we want to send ----------------------------------------------------------------------

    def open(self, now: float, *, known_peer: Peer | None = None) -> None:
        """Begin the version negotiation of a client (basic/versioning; basic/lifecycle).

        `PeerReady` or `ConnectionClosed` follows. `known_peer`, from an earlier connection to the
        same server, saves the probe, unless the server refuses its revision's handshake.

        Raises:
            LocalProtocolError: this is a server, or the connection was opened before.
        """
        if self.role is not _CLIENT or self.state is not State.NEW:
            raise LocalProtocolError("only a client opens a conversation, and only once")
        self._now = now
        self.state = State.OPENING
        self.negotiation = VersionNegotiation(self.config, known_peer)
        self._advance_negotiation(None)

    def reinitialize(self, now: float) -> None:
        """Begin a new session of a client, because the server has lost the old one.

        The server's requests are cancelled. `PeerReady` or `ConnectionClosed` follows.
        """
        self._cancel_incoming()
        self._now = now
        self.negotiation = VersionNegotiation(self.config, self.peer)
        self._advance_negotiation(None)

    def send_request(
        self,
        method: str,
        params: Struct | Mapping[str, Any] | None = None,
        *,
        token: object = None,
        related: RequestId | None = None,
        meta: Mapping[str, Any] | None = None,
        progress: bool = False,
        headers: Mapping[str, str] | None = None,
    ) -> RequestId:
        """Send a request and return its id.

        `ResultReceived`, `ErrorReceived`, `InputRequested` or `TaskCreated` completes it.

        Args:
            method: a method of MCP or a custom one.
            params: an object of the method's params type, or a mapping of its members.
            token: passed back on every event of this request.
            related: the id of the peer's request it belongs to. Its end cancels this one.
            meta: further members of `_meta`.
            progress: request `ProgressReceived` events.
            headers: further HTTP headers by name, ignored by other transports.

        Raises:
            LocalProtocolError: the connection isn't open, the peer's revision has no such request,
                or the peer or we did not declare the capability.
            TypeError, ValueError: the params aren't JSON.
        """
        peer = self._peer_for(related)
        if self._closed_emitted:
            raise LocalProtocolError("the connection is closed: there would be no response")
        if self.state is not State.READY and related is None:
            raise LocalProtocolError("the conversation is not open yet")
        dialect = peer.dialect
        row = may_request(method, peer, self.role, self.config, self.state)
        id = self._outgoing.next_id
        config = self.config.dialect_configs[self.role][dialect]
        encoded = encode_request_params(config, params, meta, id if progress else None)
        call = OutgoingRequest(method, row, dialect, token, related, progress)
        if row is not None and row.task_needs:
            call.may_become_task = may_become_task(row, params, peer, self.config)
        return self._outgoing.send(call, encoded, params, headers)

    def send_notification(
        self,
        method: str,
        params: Struct | Mapping[str, Any] | None = None,
        *,
        related: RequestId | None = None,
    ) -> None:
        """Send the notification `method` with `params`, for the peer's request `related`.

        Raises:
            LocalProtocolError: the connection isn't open, the peer's revision has no such
                notification, or we did not declare the capability.
            TypeError, ValueError: the params cannot be encoded as JSON.
        """
        peer = self._peer_for(related)
        may_notify(method, peer, self.role, self.config, self.state)
        data = encode_notification(method, encode_params(peer.dialect, params))
        self._outbox.put(
            Outgoing(data, MessageKind.NOTIFICATION, None, related, method, peer.dialect, params)
        )

    def send_progress(
        self,
        id: RequestId | ProgressSender,
        progress: float,
        total: float | None = None,
        message: str | None = None,
    ) -> bool:
        """Send progress of the peer's request `id`, or of a task. Return whether it was sent.

        Nothing is sent if the peer did not request progress, the request is complete or cancelled,
        or `progress` hasn't increased. `total` is its final value, `message` is for the user.

        Raises:
            LocalProtocolError: a number is infinite or NaN, which JSON cannot express.
        """
        if not isinstance(id, ProgressSender):
            id = ProgressSender(self._incoming.table.get(id), id)
        elif self._closed_emitted:
            return False
        return self._outbox.put_if_any(progress_notification(id, progress, total, message))

    def task_progress(self, id: RequestId, task_id: str) -> ProgressSender | None:
        """Return the sender of progress of the peer's request `id` after it became a task.

        `task_id` names the task. Call it before `send_result`. None if no progress can be sent
        while the task runs.
        """
        return task_progress(self._incoming.table.get(id), task_id)

    def send_log(
        self,
        level: LoggingLevel,
        data: Any,
        *,
        logger: str | None = None,
        related: RequestId | None = None,
        meta: dict[str, Any] | None = None,
    ) -> bool:
        """Send a log message, `data`, in the name of `logger`. Return whether it was sent.

        `related` is the id of the peer's request to which it belongs; 2026-07-28 requires one
        (server/utilities/logging). `meta` is its `_meta`. Nothing is sent if the peer did not
        request that level, or the request is complete.

        Raises:
            LocalProtocolError: `level` isn't a level of MCP, or we did not declare `logging`.
            TypeError, ValueError: `data` cannot be encoded as JSON.
        """
        peer = self.peer if related is None else self._incoming.log_recipient(related, self.peer)
        if peer is not None:
            may_notify("notifications/message", peer, self.role, self.config, self.state)
        return self._outbox.put_if_any(log_notification(peer, level, data, logger, related, meta))

    def send_change(
        self,
        change: Change,
        status: t.TaskStatusParams | None = None,
        hides: Callable[[str, RequestReceived], bool] | None = None,
    ) -> bool:
        """Send the notification of `change` if the peer is subscribed. Return whether it is.

        For servers. Equal changes that aren't sent yet become one notification. A task's
        notification has its `status`. `hides` is called with the URI of a resource and the request
        that has subscribed, without its params. It returns True if that client may not see the
        resource: then nothing is sent of it. By default clients see all of them.
        """
        if self._closed_emitted or (self._publisher is None and self.peer is None):
            return False
        subscribed = self._subscription_publisher().publish(change, status, hides)
        self._send_changes()
        return subscribed

    def send_changes_of_all_resources(
        self, hides: Callable[[str, RequestReceived], bool] | None = None
    ) -> bool:
        """Send a change of each resource that the peer is subscribed to. Return if it is to any.

        For servers, as `send_change`, when it isn't known which ones have changed. `hides` is as
        there.
        """
        if self._closed_emitted or self._publisher is None:
            return False
        subscribed = self._publisher.table.publish_all_resources(hides)
        self._send_changes()
        return subscribed

    def send_acknowledgement(
        self, request: RequestReceived, honoured: t.SubscriptionFilter
    ) -> bool:
        """Accept the peer's `subscriptions/listen` request `request`, which became an event.

        `honoured` is the filter that it requested, without the tasks that the peer may not see.
        Return False if the request was cancelled, or is over a limit and was therefore rejected.

        Raises:
            LocalProtocolError: there is no such request, or it was answered.
        """
        if self._incoming.get_unanswered(request.id) is None:
            return False
        del self._incoming.table[request.id]
        try:
            ending = self.state in ENDING_STATES
            self._subscription_publisher().listen(request, honoured, ending=ending)
        except RequestRejected as rejected:
            self._reject_request(request.id, rejected)
            return False
        return True

    def send_task_status(self, status: t.TaskStatusParams) -> bool:
        """Send a task's state, `status`, if the peer is subscribed to it. Return if it is.

        For servers. A session of 2025-11-25 is subscribed to all tasks. Of several states of a task
        that aren't sent yet, only the last one is.
        """
        return self.send_change(Change(task=status.task_id), status)

    def is_subscribed_to_task(self, task_id: str) -> bool:
        """Return True if a peer's listen request covers the task `task_id`."""
        return self._publisher is not None and self._publisher.table.covers_task(task_id)

    def send_result(self, id: RequestId, result: Struct | Mapping[str, Any] | Raw) -> bool:
        """Send `result`, of the method's type or as a mapping, to the peer's request `id`.

        Return False, and send nothing, if the request was cancelled. A `Raw` result is an encoded
        object without `_meta`, in the peer's revision. A `Raw` inside a result isn't checked.

        Raises:
            LocalProtocolError: there is no such request, or it was answered.
            TypeError, ValueError: the result isn't JSON. The request still needs a response.
        """
        request = self._incoming.get_unanswered(id)
        if request is None:
            return False
        data = encode_result(id, *encode_result_parts(request.dialect_config, result))
        self._send_response(Outgoing(data, _RESPONSE, id), id)
        return True

    def send_error(self, id: RequestId, error: ErrorData) -> bool:
        """Send `error` as the response to the peer's request `id`.

        Return False, and send nothing, if the request was cancelled.

        Raises:
            LocalProtocolError: there is no such request, or it was answered.
            TypeError, ValueError: its `data` isn't JSON. The request still needs a response.
        """
        if self._incoming.get_unanswered(id) is None:
            return False
        self._send_response(error_response(id, error), id)
        return True

    def send_cancel(self, id: RequestId, reason: str | None = None) -> None:
        """Cancel our request `id` unless it is complete. No event follows. `reason` is for logs."""
        self._outgoing.cancel(id, reason)

    def shutdown(self) -> None:
        """Reject new requests as busy, except pings, and end subscriptions.

        For servers; at a client it does nothing. Running handlers may finish. Call `close` next.
        """
        if self.role is _SERVER and self.state not in ENDING_STATES:
            self.state = State.CLOSING
            if self._publisher is not None:
                self._publisher.end_all(notify=True)

    def close(self, error: McpTrioError | None = None, *, answer: ErrorData | None = None) -> None:
        """Close the connection. Idempotent.

        The peer's requests are cancelled, and `ConnectionClosed` has the tokens of our own. Queued
        messages may still be sent. `error` is the reason, None for an orderly close. `answer` is
        sent as the response to every peer request that has none, None for no responses.
        """
        if answer is not None:
            for id in self._incoming.unanswered():
                self._outgoing.cancel_related(id)
                self._outbox.put(error_response(id, answer))
        if self._closed_emitted:
            self._cancel_incoming()
            self.state = _CLOSED
        else:
            self._close_with(error)

    def retire(self) -> bool:
        """Close the connection without an event if nothing is left to do, and return True.

        Nothing is left if there is no request in flight, no event, no subscription and nothing
        queued. Otherwise do nothing and return False; call `close` then.
        """
        if (
            self._incoming.table
            or self._outgoing.table
            or self._events
            or self._outbox.queued
            or self._publisher is not None
            or self._input.has_input
        ):
            return False
        self.state = _CLOSED
        self._closed_emitted = True
        return True

    # -- What to do now ----------------------------------------------------------------------------

    def data_to_send(self) -> bytes:
        """Remove and return all queued messages as bytes, one per line. Empty without a message."""
        if self._publisher is not None:
            self._send_changes()
        return self._outbox.take_lines()

    def messages_to_send(self) -> list[Outgoing]:
        """Remove and return all queued messages, for a transport with message boundaries."""
        if self._publisher is not None:
            self._send_changes()
        return self._outbox.take_messages()

    def next_deadline(self) -> float | None:
        """Return when to call `handle_timeout`, on the clock of `now`. None for never."""
        # Only a client negotiates, and only a server pauses, so there is at most one of the two.
        negotiation = self.negotiation
        deadline = self._incoming.pause_deadline if negotiation is None else negotiation.deadline
        other = self._keep_alive.deadline
        if other is not None and (deadline is None or other < deadline):
            deadline = other
        if self._unreadable is not None:
            other = self._unreadable.deadline
            if other is not None and (deadline is None or other < deadline):
                deadline = other
        return deadline

    def next_event(self) -> Event | NeedData | Paused:
        """Return the next event, `NEED_DATA` if more input is needed for one, or `PAUSED`.

        After `PAUSED` stop reading from the peer. Call again after any other call.
        """
        requests = self._incoming
        while True:
            if self._events:
                return self._events.pop(0)
            if requests.waiting:
                waiting = requests.next_waiting()
                if waiting is not None:
                    return waiting
                if self.role is _SERVER and requests.must_pause(
                    self._now, awaiting_response=bool(self._outgoing.table)
                ):
                    return PAUSED
            if self._outbox.response_bytes > self._max_queued:
                if self.role is _SERVER:
                    return PAUSED
                # Two sides that both stop reading would deadlock, so a client closes instead.
                if self._outbox.are_responses_unread(self.config.limits.message):
                    self._outbox.take_messages()
                    self._close_with(RemoteProtocolError(UNREAD_RESPONSES))
                    continue
            message = self._input.next_message() if self._input.has_input else None
            if message is None:
                if not self._eof or requests.waiting or self._closed_emitted:
                    return NEED_DATA
                self._on_eof()
            elif type(message) is not Envelope:
                self._handle_faulty_message(message)
                continue
            elif message.method is UNSET:
                self._handle_response(message)
            elif message.id is UNSET:
                self._handle_notification(message.method, message.params)
            else:
                assert message.id is not None
                self._handle_request(message.id, message.method, message.params)
            if self._unreadable is not None:
                self._unreadable.message_received()

    # -- Incoming messages -------------------------------------------------------------------------

    def _handle_request(self, id: RequestId, method: str, params: Raw | UnsetType) -> None:
        raw = NO_PARAMS if params is UNSET else params
        context = self._input.context
        try:
            if id in self._incoming.table or (
                self._publisher is not None and id in self._publisher.table
            ):
                in_use = f"request id {id!r} is still in use"
                raise RequestRejected(Fault.INVALID_REQUEST, in_use, dialect=self._dialect)
            validator = context.header_validator
            decoded = self._input.decoded
            admission = admit(
                method, raw, self.role, self.config, self.state, self.peer, validator, decoded
            )
        except RequestRejected as rejected:
            self._reject_request(id, rejected)
            return
        row = admission.row
        peer = admission.peer
        dialect_config = admission.dialect_config
        reply = BUILTIN_RESULTS.get(method)
        if reply is not None:
            result, remembered = reply(self.config, admission.params, peer)
            if remembered is not None:
                self._set_peer(remembered)
                self.state = next_state(self.state, row.step)
            data = encode_result(id, *encode_result_parts(dialect_config, result))
            self._outbox.put(Outgoing(data, _RESPONSE, id))
            return
        if row.metered and self._bucket is not None:
            wait = self._bucket.take(self._now)
            if wait:
                self._reject_request(id, rate_limited(wait, peer.dialect))
                return
        event = RequestReceived(
            id, row, admission.params, peer, raw, context.related, context.grant, context.http
        )
        if method in SUBSCRIPTION_METHODS:
            try:
                if self._subscription_publisher().handle_request(event, dialect_config):
                    return
            except RequestRejected as rejected:
                self._reject_request(id, rejected)
                return
        request = IncomingRequest(peer, dialect_config, _OPEN, admission.progress_token)
        place = self._incoming.add(event, request)
        if place:
            self._events.append(event)
        elif place is None:
            busy = "too many requests at once; ask again later"
            self._reject_request(id, RequestRejected(Fault.BUSY, busy, dialect=peer.dialect))

    def _handle_notification(self, method: str, params: Raw | UnsetType) -> None:
        row = self.config.receivable[self.role].get(method)
        if row is None or row.result is not None:
            return  # unknown notifications are ignored in every revision
        try:
            decoded = self._input.read_params(row, params)
        except InvalidPayload as exc:
            self._emit_rejected(f"the params of {method} do not fit: {exc}")
            return
        builtin = _BUILTIN_NOTIFICATIONS.get(method)
        related = self._input.context.related
        if builtin is not None:
            builtin(self, decoded)
        elif self.peer is None:
            # Only log messages are legal before the handshake is complete.
            if row.step is Step.PING:
                self._events.append(NotificationReceived(row, decoded, None, related))
        elif method in self.config.dialect_configs[self.role][self.peer.dialect].receives:
            self._events.append(NotificationReceived(row, decoded, self.peer, related))

    def _handle_response(self, envelope: Envelope) -> None:
        id = None if envelope.id is UNSET else envelope.id
        if id is None:
            assert envelope.error is not UNSET
            error = decode_error(envelope.error)
            text = f"the {self.role.other.value} sent an error without an id: {error}"
            self._emit_rejected(text)
            self._report(text, "an error without an id")
            self._fail_requests(self._unreadable_input().receive_error(error, text))
            return
        if self.negotiation is not None and self.negotiation.accept_late_response(
            id, envelope.result
        ):
            return
        call = self._outgoing.table.pop(id, None)
        if call is None:
            known = other_spelling(id, self._outgoing.table)
            if known is None:
                return  # it was cancelled or answered before, which is a legal race
            self._report(f"a response has the id {id!r} in place of {known!r}", "an id")
            id = known
            call = self._outgoing.table.pop(id)
        if call.token is NEGOTIATION:
            self._advance_negotiation(reply_from(envelope, self._input.context.status))
        elif call.token is not KEEP_ALIVE_PING:
            event = self._outgoing.response_event(id, call, envelope)
            if type(event) is ResultReceived and event.problems:
                for place, problem in event.problems.items():
                    self._report(f"the result of {call.method}: {problem}", call.method + place)
            self._events.append(event)

    # -- What causes no event ----------------------------------------------------------------------

    def _on_initialized(self, params: t.InitializedParams) -> None:
        if self.state is State.OPENING and self.role is _SERVER and self.peer is not None:
            self.state = next_state(self.state, Step.INITIALIZED)
            self._on_ready(self.peer)

    def _on_cancelled(self, params: t.CancelledParams) -> None:
        id = params.request_id
        if id is None or self._end_subscription(id):
            return
        if id not in self._incoming.table:
            known = other_spelling(id, self._incoming.table)
            if known is None:
                return  # unknown or answered: both are legal races
            id = known
        running = self._incoming.cancel(id)
        if running is None:
            return  # already cancelled, which is a legal race too
        self._outgoing.cancel_related(id)
        if running:
            self._events.append(RequestCancelled(id, params.reason))

    def _on_progress(self, params: t.ProgressParams) -> None:
        event = self._outgoing.progress_event(params)
        if event is not None:
            self._events.append(event)

    def _end_subscription(self, id: RequestId) -> bool:
        """End the subscription `id`, which either side may cancel. Return False if unknown."""
        if self._publisher is not None and self._publisher.table.cancel(id):
            return True
        event = self._outgoing.end_long_lived(id)
        if event is not None:
            self._events.append(event)
        return event is not None

    def _subscription_publisher(self) -> SubscriptionPublisher:
        # Created on first use, because most connections have no subscriptions.
        if self._publisher is None:
            self._publisher = SubscriptionPublisher(self.config, self._outbox, self.has_capacity)
        if self.peer is not None:
            self._publisher.table.start_session(self.peer.dialect)
        return self._publisher

    def _send_changes(self) -> None:
        if self._publisher is not None:
            self._publisher.queue_notifications(ready=self.state is State.READY)

    def _mark_activity(self, now: float) -> None:
        self._now = now
        if self._keep_alive.deadline is not None:
            self._keep_alive.mark_activity(now)

    def _check_keep_alive(self, now: float) -> None:
        if (
            self._incoming.pause_deadline is not None
            or self._outbox.response_bytes > self._max_queued
        ):
            self._mark_activity(now)  # we are paused, so the silence is ours
        due = self._keep_alive.due(now)
        if due is KeepAliveAction.SEND_PING and self.peer is not None and self.state is State.READY:
            self.send_request(self.peer.dialect.ping, token=KEEP_ALIVE_PING)
        elif due is KeepAliveAction.CLOSE:
            text = f"the {self.role.other.value} was silent for {self._keep_alive.idle_seconds:g} s"
            self._close_with(ConnectionLost(text))

    # -- Version negotiation -----------------------------------------------------------------------

    def _advance_negotiation(self, reply: OpeningReply | None) -> None:
        """Process a reply, None to begin, and send the next request or finish."""
        assert self.negotiation is not None
        try:
            outcome = self.negotiation.advance(reply, self._outgoing.next_id, self._now)
        except ConnectFailed as exc:
            self._close_with(
                exc if self.state is State.OPENING else ConnectionLost(f"no new session: {exc}")
            )
            return
        for place, problem in reply.problems.items() if reply is not None else ():
            self._report(f"the result that opens the connection: {problem}", f"opening {place}")
        if isinstance(outcome, Peer):
            self._on_negotiated(outcome)
            return
        config = self.config.dialect_configs[self.role][outcome.dialect]
        params = encode_request_params(config, opening_params(outcome, self.config), None, None)
        call = OutgoingRequest(outcome.method, None, outcome.dialect, NEGOTIATION)
        self._outgoing.send(call, params)

    def _on_negotiated(self, peer: Peer) -> None:
        self._set_peer(peer)
        if peer.dialect.stateful:
            # After `reinitialize` the state is READY, in which `initialized` isn't legal.
            self.state = State.OPENING
            self.send_notification("notifications/initialized")
        self.state = State.READY
        self._on_ready(peer)

    def _set_peer(self, peer: Peer) -> None:
        self.peer = peer
        self._input.batches = peer.dialect.batches

    def _on_ready(self, peer: Peer) -> None:
        self._keep_alive.mark_activity(self._now)
        self._events.append(PeerReady(peer))
        self._send_changes()

    # -- Endings -----------------------------------------------------------------------------------

    def _on_eof(self) -> None:
        if self._input.has_partial_line:
            self._emit_rejected("the input ended in the middle of a message")
            self._unreadable_input().add_line(*self._input.unfinished)
        if self.state is State.OPENING and self.role is _CLIENT:
            self._close_with(ConnectFailed("the server ended the connection before it was open"))
        elif self.role is _SERVER and self._incoming.table:
            # A client that closed one direction only still reads its requests' responses.
            self._emit_closed(State.CLOSING, ConnectionLost("the client closed the connection"))
        else:
            self._close_with(ConnectionLost(f"the {self.role.other.value} closed the connection"))

    def _close_with(self, error: McpTrioError | None) -> None:
        self._cancel_incoming()
        self._emit_closed(_CLOSED, error)

    def _cancel_incoming(self) -> None:
        for id in self._incoming.cancel_all():
            self._events.append(RequestCancelled(id, "the connection ended"))

    def _emit_closed(self, state: State, error: McpTrioError | None) -> None:
        self.state = state
        self._closed_emitted = True
        if self._publisher is not None:
            self._publisher.end_all(notify=error is None)
        if state is _CLOSED:
            self._input.clear()
        if self.negotiation is not None:
            self.negotiation.deadline = None
        self._keep_alive.deadline = None
        reason = "the conversation is being closed" if error is None else None
        error = self._unreadable_input().explain(error)
        self._events.append(ConnectionClosed(self._outgoing.fail_all(reason), error))

    # -- Helpers -----------------------------------------------------------------------------------

    @property
    def _dialect(self) -> Dialect | None:
        return self.peer.dialect if self.peer is not None else None

    def _peer_for(self, related: RequestId | None) -> Peer:
        if related is not None:
            return self._incoming.peer_of(related)
        if self._closed_emitted:
            raise LocalProtocolError("the connection is closed")
        if self.peer is None:
            raise LocalProtocolError("the conversation is not open yet")
        return self.peer

    def _send_response(self, response: Outgoing, id: RequestId) -> None:
        """Queue the response to the peer's request `id`, and remove the request."""
        if self._outgoing.table:
            response.remove_newlines()  # raises if it isn't JSON, before anything was cancelled
            self._outgoing.cancel_related(id)
        self._outbox.put(response)  # raises likewise: the request then stays in the table
        del self._incoming.table[id]

    def _reject_request(self, id: RequestId, rejected: RequestRejected) -> None:
        self._emit_rejected(rejected.message, rejected.fault, id, rejected.data)
        error = response_to_rejected(rejected, self.config, self._dialect)
        if error is not None:
            self._outbox.put(error_response(id, error))

    def _handle_faulty_message(self, message: Envelope | BadMessage) -> None:
        """Handle an invalid message, or report what is wrong with one that can be read."""
        if isinstance(message, BadMessage):
            self._handle_bad_message(message)
            return
        if isinstance(message, MendedEnvelope):
            self._report(f"a message of the {self.role.other.value}: {message.problem}")
        if message.method is UNSET:
            self._handle_response(message)
        elif message.id is UNSET:
            self._handle_notification(message.method, message.params)
        elif message.id is not None:
            self._handle_request(message.id, message.method, message.params)
        self._unreadable_input().message_received()

    def _handle_bad_message(self, bad: BadMessage) -> None:
        """Report an invalid message, and send an error response if it may be a request.

        If it is a response to one of our requests, or may be, fail that request instead.
        """
        if bad.excerpt is None or not bad.excerpt.is_rest:
            self._emit_rejected(bad.message, bad.fault, bad.id)
        failures = self._unreadable_input().receive(bad, self._input.context, self._now)
        self._fail_requests(failures)
        if not failures:
            response = response_to_bad_message(bad, self.role, self.config, self._dialect)
            if response is not None:
                self._outbox.put(error_response(bad.id, *response))

    def _unreadable_input(self) -> UnreadableInput:
        if self._unreadable is None:  # created on first use, because most input can be read
            self._unreadable = UnreadableInput(
                self.role, self.config.limits, self._outgoing, self.describe_peer
            )
        return self._unreadable

    def _fail_requests(self, failures: list[Failure]) -> None:
        for failure in failures:
            self._fail_request(*failure)

    def _fail_request(
        self, id: RequestId, call: OutgoingRequest, error: McpTrioError, reply: OpeningReply
    ) -> None:
        """Fail our request `id`. `reply` is the outcome if it is one of the negotiation."""
        if call.token is NEGOTIATION:
            self._advance_negotiation(reply)
        elif call.token is not KEEP_ALIVE_PING:
            self._events.append(ErrorReceived(id, error, call.token))

    def _report(self, problem: str, kind: str = "") -> None:
        """Report a fault of the peer's messages, unless one of its kind was reported before.

        Without `kind` the text is the kind: then it has no part that a peer chooses.
        """
        reported = self._unreadable_input().reported
        if (kind or problem) not in reported:
            reported.add(kind or problem)
            self._events.append(InputProblem(problem))

    def _emit_rejected(
        self,
        problem: str,
        fault: Fault = Fault.INVALID_REQUEST,
        id: RequestId | None = None,
        data: Any = UNSET,
    ) -> None:
        self._rejected_count += 1
        self._events.append(MessageRejected(RemoteProtocolError(problem, fault, data), id))


# Notifications that the connection processes itself, because they mean the same for every driver.
_BUILTIN_NOTIFICATIONS: Final[Mapping[str, Callable[[Connection, Any], None]]] = {
    "notifications/initialized": Connection._on_initialized,
    "notifications/cancelled": Connection._on_cancelled,
    "notifications/progress": Connection._on_progress,
}
