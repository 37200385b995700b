"""One conversation: bytes of the peer in, facts out; what we want to say in, bytes out.

Rules of this file:

1. It is the glue and nothing else: what is JSON-RPC is in `_jsonrpc.py`, what exists in which revision in `_methods.py` and
   `_dialects.py`, what may happen when in `_state.py`, how a client opens in `_opening.py`.
2. The revision is a property of the *peer on a message*, found in one place, `_peer_of`. Nothing here asks which it is.
3. Every request gets one answer, and no input raises. What the peer does wrong is answered where the protocol allows it
   and reported as `MessageRejected`; only our own caller's mistakes are exceptions (`LocalProtocolError`).
4. What the protocol fully determines is done without an event (`REPLIES`, `_NOTED`), so that no driver can forget it.

It does not know transports, time or tasks, nor which of its two roles is the interesting one.
"""

from __future__ import annotations

from collections import deque
from math import isfinite
from typing import TYPE_CHECKING, Any, Final

from msgspec import UNSET, Raw, UnsetType

from . import types as t
from ._admission import Refusal, admit
from ._answers import Call, answer, error_of
from ._errors import ConnectFailed, ConnectionLost, Fault, LocalProtocolError, PeerError, RemoteProtocolError
from ._events import (
    NEED_DATA,
    PAUSED,
    ConnectionClosed,
    ErrorReceived,
    MessageRejected,
    NotificationReceived,
    Peer,
    PeerReady,
    ProgressReceived,
    RequestCancelled,
    RequestReceived,
)
from ._framing import OVERLONG, LineBuffer
from ._jsonrpc import (
    BadMessage,
    Unreadable,
    decode,
    encode,
    encode_error,
    encode_notification,
    encode_request,
    encode_result,
    is_batch,
    split_batch,
)
from ._methods import Role, Step
from ._opening import Opener, Reply, question, reply_in
from ._outbox import Kind, Outbox, Outgoing
from ._permission import may_notify, may_request
from ._replies import REPLIES
from ._requests import Request, Requests
from ._stamps import body, stamped_params, stamped_result
from ._state import Act, Life, State, after, next_state

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from msgspec import Struct

    from ._config import Config
    from ._dialects import Dialect
    from ._errors import McpTrioError
    from ._events import Event, NeedData, Paused
    from ._jsonrpc import Envelope
    from ._opening import Ask
    from .types import ErrorData, RequestId

__all__ = ["Connection"]


# Looking up a member of an enum costs more than most checks that it is used in.
_CLIENT, _SERVER, _CLOSED, _OPEN, _ANSWER = Role.CLIENT, Role.SERVER, State.CLOSED, Life.OPEN, Kind.ANSWER
_UNANSWERED: Final = frozenset(life for life in Life if after(life, Act.ANSWER) is Life.DONE)
_OVER: Final = (State.CLOSING, _CLOSED)
_OPENING: Final = object()  # the token of the requests that the opening sends
_NO_PARAMS: Final = b"{}"


class Connection:
    """One JSON-RPC conversation: a pipe, a socket, a legacy HTTP session, or a single stateless request.

    Its methods are of four kinds.

    *Facts* may be read at any time: `state`, `peer`, `in_flight`, `queued()`, `probing`.

    *What arrived* goes in by `receive_data` (framed streams; `b""` is the end), `receive_message` (one whole message) and
    `handle_timeout`. They take the monotonic time in seconds.

    *What we want to say* goes in by `open`, `send_request`, `send_notification`, `send_progress`, `send_result`,
    `send_error`, `send_cancel` and `close`. They raise `LocalProtocolError` if the protocol does not allow it, and then
    nothing was sent.

    *What to do now*, after any call of the two kinds above and in this order: write `data_to_send()` (or
    `messages_to_send()`), set one timer to `next_deadline()`, and take `next_event()` until it gives `NEED_DATA` or
    `PAUSED`.

    Args:
        role: which end this is.
        config: what we are; shared by all connections of a server or client.
        peer: who is at the other end, if that is settled by other means than a handshake on this connection.
    """

    __slots__ = (
        "_calls",
        "_eof",
        "_events",
        "_limits",
        "_lines",
        "_most_queued",
        "_next_id",
        "_now",
        "_opener",
        "_out",
        "_requests",
        "_rows",
        "config",
        "peer",
        "role",
        "state",
    )

    def __init__(self, role: Role, config: Config, *, peer: Peer | None = None) -> None:
        self.role = role
        self.config = config
        self.peer = peer
        self.state = State.NEW if peer is None else State.READY
        self._lines = LineBuffer(config.limits.message)
        self._eof = False
        self._now = 0.0
        self._events: deque[Event] = deque()
        self._rows = config.rows(role)
        self._limits = config.limits
        self._most_queued = config.limits.queued
        self._requests = Requests(config.limits)
        self._calls: dict[RequestId, Call] = {}
        self._next_id = 1
        self._out = Outbox()
        self._opener: Opener | None = None

    def __repr__(self) -> str:
        version = self.peer.dialect.version if self.peer is not None else "no revision"
        return (
            f"<Connection {self.role.value} {self.state.name} {version}, {self.in_flight} in flight,"
            f" {len(self._calls)} calls, {self._out.queued} bytes queued>"
        )

    # -- Facts ----------------------------------------------------------------------------------------------------------

    @property
    def in_flight(self) -> int:
        """Requests of the peer that were handed out and not ended, the cancelled ones whose handler still runs included."""
        return self._requests.in_flight

    @property
    def probing(self) -> bool:
        """Whether the opening waits, or waited when the connection ended, for the answer to `server/discover`."""
        return self._opener is not None and self._opener.probing

    def queued(self, related: RequestId | None = None) -> int:
        """Bytes that wait to be sent: all of them, or those that belong to the peer's request `related`."""
        return self._out.queued if related is None else self._out.queued_for(related)

    # -- What arrived -----------------------------------------------------------------------------------------------------

    def receive_data(self, data: bytes, now: float) -> None:
        """Take in bytes of a stream of lines, however they are split; `b""` says that no more will come."""
        self._now = now
        if data:
            self._lines.feed(data)
        else:
            self._eof = True

    def receive_message(self, data: bytes, now: float, *, related: RequestId | None = None) -> None:
        """Take in one whole message from a transport that keeps messages apart.

        `related` is the request of ours on whose stream it came, if the transport has such streams.
        """
        self._now = now
        if self.state is _CLOSED:
            return
        if len(data) > self._limits.message:
            self._reject(self._too_long())
        else:
            self._message(data, related)

    def handle_timeout(self, now: float) -> None:
        """The time is `now`: do what `next_deadline` announced, if it is due."""
        self._now = now
        self._requests.escape_if_due(now)
        opener = self._opener
        if opener is not None and opener.deadline is not None and now >= opener.deadline:
            asked = opener.time_is_up()
            assert asked is not None
            del self._calls[asked]
            self._advance(Reply())

    # -- What we want to say ------------------------------------------------------------------------------------------------

    def open(self, now: float, *, verdict: Peer | None = None) -> None:
        """Client: find a common revision. `PeerReady` or `ConnectionClosed` will say how it ended.

        `verdict` is the peer of an earlier conversation with the same server; it saves the probe.
        """
        if self.role is not _CLIENT or self.state is not State.NEW:
            raise LocalProtocolError("only a client opens a conversation, and only once")
        self._now = now
        self.state = State.OPENING
        self._opener = Opener(self.config, verdict)
        self._advance(None)

    def send_request(
        self,
        method: str,
        params: Struct | Mapping[str, Any] | None = None,
        *,
        token: object = None,
        related: RequestId | None = None,
        meta: Mapping[str, Any] | None = None,
        progress: bool = False,
    ) -> RequestId:
        """Ask the peer; returns the id. `ResultReceived`, `ErrorReceived` or `InputRequested` will carry `token`.

        Args:
            method: a method of MCP or a custom one.
            params: an object of the method's params type, or a mapping for a custom method.
            token: handed back untouched on every event of this request.
            related: the peer's request that is being worked on and needs this one. Cancelling that cancels this.
            meta: more members for `_meta`.
            progress: ask for `ProgressReceived`.

        Raises:
            LocalProtocolError: the conversation is not open, the peer's revision has no such request, or the peer did
                not declare the capability.
        """
        peer = self._peer_for(related)
        if self.state in _OVER:
            raise LocalProtocolError("the connection is closed: no answer would come")
        if self.state is not State.READY and related is None:
            raise LocalProtocolError("the conversation is not open yet")
        row = may_request(method, peer, self.role, self.config, self.state)
        id = self._next_id
        call = Call(method, row, peer.dialect, token, related, progress)
        terms = self.config.terms[self.role][peer.dialect]
        data = encode_request(id, method, stamped_params(terms, params, meta, id if progress else None))
        self._next_id += 1
        self._calls[id] = call
        self._out.put(Outgoing(data, Kind.REQUEST, id, related, method))
        return id

    def send_notification(
        self,
        method: str,
        params: Struct | Mapping[str, Any] | None = None,
        *,
        related: RequestId | None = None,
    ) -> None:
        """Tell the peer something. `related` is the peer's request that it belongs to.

        Raises:
            LocalProtocolError: the conversation is not open, the peer's revision has no such notification, or it needs
                a capability that we did not declare.
        """
        peer = self._peer_for(related)
        may_notify(method, peer, self.role, self.config, self.state)
        data = encode_notification(method, body(peer.dialect, params))
        self._out.put(Outgoing(data, Kind.NOTIFICATION, None, related, method))

    def send_progress(
        self, id: RequestId, progress: float, total: float | None = None, message: str | None = None
    ) -> bool:
        """Tell how far the peer's request `id` has come. False, and nothing is sent, if the peer did not ask for it, the
        request is over, or `progress` has not grown since it was last told (the specification wants it to grow).

        Raises:
            LocalProtocolError: a number is infinite or none, which JSON cannot say.
        """
        if not isfinite(progress) or not isfinite(total or 0.0):
            raise LocalProtocolError("progress and total are finite numbers")
        request = self._requests.table.get(id)
        if request is None or request.progress_token is None or after(request.life, Act.NOTE) is None:
            return False
        if request.progress is not None and progress <= request.progress:
            return False
        request.progress = progress
        params = t.ProgressParams(
            progress_token=request.progress_token, progress=progress, total=total, message=message
        )
        data = encode_notification("notifications/progress", request.terms.dialect.encode(params))
        self._out.put(Outgoing(data, Kind.NOTIFICATION, None, id, "notifications/progress"))
        return True

    def send_result(self, id: RequestId, result: Struct | Mapping[str, Any] | Raw) -> bool:
        """Answer the peer's request `id`. False if it was cancelled: then nothing is sent.

        A `Raw` result is an encoded object without `_meta`, already in the peer's revision.

        Raises:
            LocalProtocolError: there is no such request, or it has been answered.
            TypeError, ValueError: the result cannot be said in JSON. The request is still to be answered.
        """
        request = self._unanswered(id)
        if request is None:
            return False
        members, stamp = stamped_result(request.terms, result)
        self._answer(id, encode_result(id, members, stamp))
        return True

    def send_error(self, id: RequestId, error: ErrorData) -> bool:
        """Answer the peer's request `id` with an error. False if it was cancelled: then nothing is sent.

        Raises:
            LocalProtocolError: there is no such request, or it has been answered.
            TypeError, ValueError: `error.data` cannot be said in JSON. The request is still to be answered.
        """
        if self._unanswered(id) is None:
            return False
        self._answer(id, encode_error(id, encode(error)))
        return True

    def send_cancel(self, id: RequestId, reason: str | None = None) -> None:
        """Give up our request `id`. Nothing happens if it was answered; no event will come for it."""
        call = self._calls.get(id)
        if call is None or call.token is _OPENING:
            return  # answered or given up; and what opens a conversation is not cancelled
        del self._calls[id]
        self._tell_cancelled(id, call, reason)

    def close(self, error: McpTrioError | None = None) -> None:
        """End the conversation: all that runs for the peer is cancelled, all that we wait for is lost. What is queued may
        still be sent. Closing twice does nothing. `error` tells why, if it is not by our own wish."""
        if self.state is State.CLOSING:
            self._cancel_all()
            self.state = _CLOSED
        elif self.state is not _CLOSED:
            if error is None:
                for id, call in self._calls.items():
                    if call.token is not _OPENING:
                        self._tell_cancelled(id, call, "the conversation is being closed")
            self._end(error)

    # -- What to do now ---------------------------------------------------------------------------------------------------

    def data_to_send(self) -> bytes:
        """Everything queued, one message a line, for one write. Empty if there is nothing."""
        return self._out.take_lines()

    def messages_to_send(self) -> list[Outgoing]:
        """Everything queued, for a transport that keeps messages apart or sends them different ways."""
        return self._out.take()

    def next_deadline(self) -> float | None:
        """When to call `handle_timeout`, in the time that the other methods were given; None for never."""
        # Only a client opens, and only a server pauses.
        return self._opener.deadline if self._opener is not None else self._requests.escape

    def next_event(self) -> Event | NeedData | Paused:
        """The next fact; `NEED_DATA` when there is none until more arrives; `PAUSED` when the peer has to wait.

        After `PAUSED` stop reading, and ask again after the next call of any other kind.
        """
        requests = self._requests
        while True:
            if self._events:
                return self._events.popleft()
            if requests.lane:
                waiting = requests.next_waiting()
                if waiting is not None:
                    return waiting
                if self.role is _SERVER and requests.must_pause(self._now, calling=bool(self._calls)):
                    return PAUSED
            if self._out.answers > self._most_queued:
                if self.role is _SERVER:
                    return PAUSED
                # A client reads on, for two sides that both stopped would wait for each other for ever - but not endlessly.
                self._out.take()
                self._end(RemoteProtocolError("the server asks more and more and does not read the answers"))
                continue
            line = self._lines.next_line()
            if line is None:
                if not self._eof or requests.lane or self.state in _OVER:
                    return NEED_DATA
                self._input_ended()
            elif self.state is _CLOSED:
                continue
            elif line is OVERLONG:
                self._reject(self._too_long())
            else:
                self._message(line, None)

    # -- Reading one message ----------------------------------------------------------------------------------------------

    def _message(self, data: bytes, related: RequestId | None, *, batched: bool = False) -> None:
        if not (batched or data.startswith(b"{")):
            if not data or data.isspace():
                return  # a blank line is no message; some peers end a message with two newlines
            if is_batch(data):
                self._batch(data, related)
                return
        try:
            envelope = decode(data, self._limits.method, self._limits.id)
            if batched and envelope.method == "initialize" and envelope.id is not UNSET:
                raise BadMessage(Fault.INVALID_REQUEST, "initialize is never part of a batch", _id(envelope))
        except BadMessage as bad:
            self._reject(bad)
            return
        if envelope.method is UNSET:
            self._response(envelope)
        elif envelope.id is UNSET:
            self._notification(envelope.method, envelope.params, related)
        else:
            assert envelope.id is not None
            self._request(envelope.id, envelope.method, envelope.params, related)

    def _batch(self, data: bytes, related: RequestId | None) -> None:
        if self.peer is None or not self.peer.dialect.batches:
            self._reject(BadMessage(Fault.INVALID_REQUEST, "a message is a JSON object, not an array"))
            return
        try:
            members = split_batch(data)
        except BadMessage as bad:
            self._reject(bad)
            return
        most = self._limits.batch
        if not 0 < len(members) <= most:
            problem = f"a batch has between 1 and {most} messages, this one has {len(members)}"
            self._reject(BadMessage(Fault.INVALID_REQUEST, problem))
            return
        for member in members:
            self._message(member, related, batched=True)

    def _request(
        self, id: RequestId, method: str, params: Raw | UnsetType, related: RequestId | None
    ) -> None:
        raw = _NO_PARAMS if params is UNSET else params
        try:
            if id in self._requests.table:
                raise Refusal(
                    Fault.INVALID_REQUEST, f"request id {id!r} is still in use", dialect=self._dialect
                )
            admission = admit(method, raw, self.role, self.config, self._rows, self.state, self.peer)
        except Refusal as refusal:
            self._refuse(id, refusal)
            return
        row, peer, terms = admission.row, admission.peer, admission.terms
        reply = REPLIES.get(method)
        if reply is not None:
            result, remembered = reply(self.config, admission.params, peer)
            if remembered is not None:
                self.peer = remembered
                self.state = next_state(self.state, row.step)
            self._out.put(Outgoing(encode_result(id, *stamped_result(terms, result)), _ANSWER, id))
            return
        event = RequestReceived(id, row, admission.params, peer, raw, related)
        place = self._requests.add(event, Request(peer, terms, _OPEN, admission.progress_token))
        if place:
            self._events.append(event)
        elif place is None:
            self._refuse(
                id, Refusal(Fault.BUSY, "too many requests at once; ask again later", dialect=peer.dialect)
            )

    def _notification(self, method: str, params: Raw | UnsetType, related: RequestId | None) -> None:
        row = self._rows.get(method)
        if row is None or row.result is not None:
            return  # notifications that we do not know are ignored, in every revision
        try:
            told = row.read_params(_NO_PARAMS if params is UNSET else params)
        except Unreadable as exc:
            self._rejected(f"the params of {method} do not fit: {exc}")
            return
        own = _NOTED.get(method)
        if own is not None:
            own(self, told)
        elif self.peer is None:
            if (
                row.step is Step.PING
            ):  # the one kind that may come before the opening is complete: a server's log
                self._events.append(NotificationReceived(row, told, None, related))
        elif method in self.config.terms[self.role][self.peer.dialect].receives:
            self._events.append(NotificationReceived(row, told, self.peer, related))

    def _response(self, envelope: Envelope) -> None:
        id = _id(envelope)
        if id is None:
            assert envelope.error is not UNSET
            self._rejected(f"the peer could not read a message of ours: {error_of(envelope.error)}")
            return
        if self._opener is not None and self._opener.takes_late(id, envelope.result):
            return
        call = self._calls.pop(id, None)
        if call is None:
            return  # given up, or answered before: both are legal races
        if call.token is _OPENING:
            self._advance(reply_in(envelope))
        else:
            self._events.append(answer(id, call, envelope))

    # -- What the connection does by itself -------------------------------------------------------------------------------

    def _initialized(self, params: t.InitializedParams) -> None:
        if self.state is State.OPENING and self.role is _SERVER and self.peer is not None:
            self.state = next_state(self.state, Step.INITIALIZED)
            self._events.append(PeerReady(self.peer))

    def _cancelled(self, params: t.CancelledParams) -> None:
        if params.request_id is None:
            return
        running = self._requests.cancel(params.request_id)
        if running is None:
            return  # late, unknown or doubled: the race is legal
        self._cancel_nested(params.request_id)
        if running:
            self._events.append(RequestCancelled(params.request_id, params.reason))

    def _progress(self, params: t.ProgressParams) -> None:
        call = self._calls.get(params.progress_token)
        if (
            call is None
            or not call.wants_progress
            or (call.progress is not None and params.progress <= call.progress)
        ):
            return
        call.progress = params.progress
        self._events.append(
            ProgressReceived(params.progress_token, params.progress, params.total, params.message, call.token)
        )

    def _tell_cancelled(self, id: RequestId, call: Call, reason: str | None) -> None:
        params = call.dialect.encode(t.CancelledParams(request_id=id, reason=reason))
        data = encode_notification("notifications/cancelled", params)
        self._out.put(Outgoing(data, Kind.CANCEL, id, call.related, "notifications/cancelled"))

    def _cancel_nested(self, parent: RequestId) -> None:
        for id, call in list(self._calls.items()):
            if call.related == parent and type(call.related) is type(parent):
                self.send_cancel(id, "the request it was made for is over")

    # -- Opening ------------------------------------------------------------------------------------------------------------

    def _advance(self, reply: Reply | None) -> None:
        """Take the opening one step further."""
        assert self._opener is not None
        try:
            found = self._opener.advance(reply, self._next_id, self._now)
        except ConnectFailed as exc:
            self._end(exc)
            return
        if isinstance(found, Peer):
            self._opened(found)
        else:
            self._put_question(found)

    def _put_question(self, ask: Ask) -> None:
        id = self._next_id
        self._next_id += 1
        terms = self.config.terms[self.role][ask.dialect]
        self._calls[id] = Call(ask.method, None, ask.dialect, _OPENING)
        data = encode_request(id, ask.method, stamped_params(terms, question(ask, self.config), None, None))
        self._out.put(Outgoing(data, Kind.REQUEST, id, None, ask.method))

    def _opened(self, peer: Peer) -> None:
        self.peer = peer
        if peer.dialect.stateful:
            self.send_notification("notifications/initialized")
        self.state = State.READY
        self._events.append(PeerReady(peer))

    # -- Endings ------------------------------------------------------------------------------------------------------------

    def _input_ended(self) -> None:
        if self._lines.in_line:
            self._rejected("the input ended in the middle of a message")
        if self.state is State.OPENING and self.role is _CLIENT:
            self._end(ConnectFailed("the server ended the connection before it was open"))
        elif self.role is _SERVER and self._requests.table:
            # Who asked is gone or has said all; what is running may still be answered, to a reader that waits for it.
            self._tell_closed(State.CLOSING, ConnectionLost("the client closed the connection"))
        else:
            self._end(ConnectionLost(f"the {self.role.other.value} closed the connection"))

    def _end(self, error: McpTrioError | None) -> None:
        self._cancel_all()
        self._tell_closed(_CLOSED, error)

    def _cancel_all(self) -> None:
        for id in self._requests.end_all():
            self._events.append(RequestCancelled(id, "the connection ended"))

    def _tell_closed(self, state: State, error: McpTrioError | None) -> None:
        self.state = state
        if self._opener is not None:
            self._opener.deadline = None
        lost = [call.token for call in self._calls.values() if call.token is not _OPENING]
        self._calls.clear()
        self._events.append(ConnectionClosed(lost, error))

    # -- Small things ---------------------------------------------------------------------------------------------------------

    @property
    def _dialect(self) -> Dialect | None:
        return self.peer.dialect if self.peer is not None else None

    def _peer_for(self, related: RequestId | None) -> Peer:
        if related is not None:
            request = self._requests.table.get(related)
            if request is None or request.life is Life.CANCELLED:
                raise LocalProtocolError(f"request {related!r} is over: nothing can be sent on its behalf")
            return request.peer
        if self.state in _OVER:
            raise LocalProtocolError("the connection is closed")
        if self.peer is None:
            raise LocalProtocolError("the conversation is not open yet")
        return self.peer

    def _unanswered(self, id: RequestId) -> Request | None:
        """The request of the peer to answer. None if it wants no answer any more: then it is forgotten."""
        request = self._requests.table.get(id)
        if request is None:
            raise LocalProtocolError(f"there is no request {id!r} to answer, or it was answered before")
        if request.life in _UNANSWERED:
            return request
        del self._requests.table[id]
        return None

    def _answer(self, id: RequestId, data: bytes) -> None:
        """Send the answer to a request of the peer, and forget the request."""
        if self._calls:
            self._cancel_nested(id)
        self._out.put(
            Outgoing(data, _ANSWER, id)
        )  # raises if it is no JSON, and then there is still to be an answer
        del self._requests.table[id]

    def _refuse(self, id: RequestId, refusal: Refusal) -> None:
        dialect = refusal.dialect or self._dialect or self.config.dialects[0]
        self._rejected(refusal.message, refusal.fault, id, refusal.data)
        if refusal.answerable:
            error = t.ErrorData(code=dialect.codes[refusal.fault], message=refusal.message, data=refusal.data)
            self._out.put(Outgoing(encode_error(id, encode(error)), _ANSWER, id))

    def _reject(self, bad: BadMessage) -> None:
        """Report what is no message, answer it if it may be a request, and fail the call that it may have answered."""
        self._rejected(bad.message, bad.fault, bad.id)
        call = (
            self._calls.pop(bad.id, None)
            if bad.looks in ("response", "neither") and bad.id is not None
            else None
        )
        if call is not None:
            assert bad.id is not None
            self._failed(bad.id, call, f"the answer to {call.method} is none: {bad.message}")
            return
        dialect = self._dialect
        # Over a stream a client cannot tell whose fault an unreadable message is; a stateless one never answers.
        mute = self.role is _CLIENT and (bad.id is None or dialect is None or not dialect.stateful)
        if bad.looks in ("request", "neither") and not mute:
            code = (dialect or self.config.dialects[0]).codes[bad.fault]
            error = encode(t.ErrorData(code=code, message=bad.message))
            # Before a revision is known, each of those spoken here may be the peer's.
            null_id = any(known.null_error_id for known in ((dialect,) if dialect else self.config.dialects))
            self._out.put(Outgoing(encode_error(bad.id, error, null_id=null_id), _ANSWER, bad.id))

    def _failed(self, id: RequestId, call: Call, problem: str) -> None:
        if call.token is _OPENING:
            self._advance(Reply(error=PeerError(0, problem)))
        else:
            self._events.append(ErrorReceived(id, RemoteProtocolError(problem), call.token))

    def _rejected(
        self,
        problem: str,
        fault: Fault = Fault.INVALID_REQUEST,
        id: RequestId | None = None,
        data: Any = UNSET,
    ) -> None:
        self._events.append(MessageRejected(RemoteProtocolError(problem, fault, data), id))

    def _too_long(self) -> BadMessage:
        return BadMessage(Fault.PARSE, f"the message is longer than {self._limits.message} bytes")


def _id(envelope: Envelope) -> RequestId | None:
    return None if envelope.id is UNSET else envelope.id


# Notifications that mean the same to every driver, so that none has to deal with them.
_NOTED: Final[Mapping[str, Callable[[Connection, Any], None]]] = {
    "notifications/initialized": Connection._initialized,
    "notifications/cancelled": Connection._cancelled,
    "notifications/progress": Connection._progress,
}
