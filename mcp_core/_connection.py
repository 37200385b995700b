"""One conversation: bytes of the peer in, facts out; what we want to say in, bytes out.

Rules of this file:

1. It is the glue and nothing else: what is JSON-RPC is in `_jsonrpc.py`, what exists in which revision in `_methods.py` and
   `_dialects.py`, what may happen when in `_state.py`, how a client opens in `_opening.py`.
2. The revision is a property of the *peer on a message*, found in one place, `_peer_of`. Nothing here asks which it is.
3. Every request gets one answer, and no input raises. What the peer does wrong is answered where the protocol allows it
   and reported as `MessageRejected`; only our own caller's mistakes are exceptions (`LocalProtocolError`).
4. What the protocol fully determines is done without an event (`REPLIES`, `_NOTED`), so that no driver can forget it.

It does not know transports, time or tasks.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from msgspec import UNSET, Raw, UnsetType

from . import types as t
from ._admission import Refusal, admit
from ._answers import Call, answer, error_of
from ._asked import OPENING, STILL_THERE, Asked
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
    RequestCancelled,
    RequestReceived,
)
from ._hearing import HEARD, Hearing
from ._intake import Intake, Via
from ._jsonrpc import (
    BadMessage,
    Unreadable,
    encode,
    encode_error,
    encode_notification,
    encode_request,
    encode_result,
)
from ._keep_alive import Due, KeepAlive
from ._methods import Role, Step
from ._notes import log_note, progress_note
from ._opening import Opener, Reply, question, reply_in
from ._outbox import Kind, Outbox, Outgoing
from ._permission import may_notify, may_request
from ._rate import Bucket
from ._refusals import answer_to_bad_message, answer_to_refused, too_often
from ._replies import REPLIES
from ._requests import Request, Requests
from ._stamps import body, stamped_params, stamped_result
from ._state import Life, State, next_state
from ._stats import Stats

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from msgspec import Struct

    from ._body import ParsedBody
    from ._config import Config
    from ._dialects import Dialect
    from ._errors import McpTrioError
    from ._events import Event, NeedData, Paused
    from ._jsonrpc import Envelope
    from ._subscriptions import Change
    from .types import ErrorData, LoggingLevel, RequestId

__all__ = ["Connection"]


# Looking up a member of an enum costs more than most checks that it is used in.
_CLIENT, _SERVER, _CLOSED, _OPEN, _ANSWER = Role.CLIENT, Role.SERVER, State.CLOSED, Life.OPEN, Kind.ANSWER
_ENDING, _NO_PARAMS = (State.CLOSING, State.CLOSED), b"{}"
_NO_KEEP_ALIVE: Final = KeepAlive(None)  # shared: without an interval it never changes


class Connection:
    """One JSON-RPC conversation: a pipe, a socket, a legacy HTTP session, or a single stateless request.

    Its methods are of four kinds.

    *Facts* may be read at any time: `state`, `peer`, `in_flight`, `queued()`, `stats()`, `probing`.

    *What arrived* goes in by `receive_data` (framed streams; `b""` is the end), `receive_message` (one whole message),
    `receive_failure` (there will be none) and `handle_timeout`. They take the monotonic time in seconds.

    *What we want to say* goes in by `open`, `close`, `wind_down` and all that begins with `send`. They raise `LocalProtocolError`
    if the protocol does not allow it, and then nothing was sent.

    *What to do now*, after any call of the two kinds above and in this order: write `data_to_send()` (or
    `messages_to_send()`), set one timer to `next_deadline()`, and take `next_event()` until it gives `NEED_DATA` or
    `PAUSED`.

    Args:
        role: which end this is.
        config: what we are; shared by all connections of a server or client.
        peer: who is at the other end, if that is settled by other means than a handshake here.
        bucket: what the tool calls of this peer are counted by, if it has several connections at once.
    """

    __slots__ = tuple(
        "config has_headers has_room opener peer role state _asked _bucket _deaf _eof _events _hearing _intake _keep_alive"
        " _most_queued _now _out _rejections _requests _rows".split()
    )

    def __init__(
        self, role: Role, config: Config, *, peer: Peer | None = None, bucket: Bucket | None = None
    ) -> None:
        self.role, self.config = role, config
        self.peer: Peer | None = None
        self.state = State.NEW
        self.has_headers = False  # whether what carries it has, as HTTP has, which sets this
        self.has_room: Callable[[RequestId | None], bool] | None = None  # for changes: see `Hearing`
        self._intake = Intake(config.limits)
        self._eof = False
        self._deaf = False  # the end was told: nothing of the peer's will be heard any more
        self._now, self._rejections = 0.0, 0
        self._events: list[Event] = []
        self._rows = config.rows[role]
        self._most_queued = config.limits.queued
        self._requests, self._out = Requests(config.limits), Outbox()
        self._asked = Asked(self._out)
        self.opener: Opener | None = None
        self._hearing: Hearing | None = None
        rate = config.limits.tool_calls
        self._bucket = bucket or (Bucket(rate) if rate is not None else None)
        seconds = config.keep_alive
        self._keep_alive = _NO_KEEP_ALIVE if seconds is None else KeepAlive(seconds)
        if peer is not None:
            self._remember(peer)
            self.state = State.READY

    def __repr__(self) -> str:
        version = self.peer.dialect.version if self.peer is not None else "no revision"
        return (
            f"<Connection {self.role.value} {self.state.name} {version}, {self.in_flight} in flight,"
            f" {len(self._asked.table)} calls, {self._out.queued} bytes queued>"
        )

    # -- Facts ----------------------------------------------------------------------------------------------------------

    @property
    def in_flight(self) -> int:
        """Requests of the peer that were handed out and not ended, cancelled ones whose handler still runs included."""
        return self._requests.in_flight

    @property
    def probing(self) -> bool:
        """Whether the opening waits, or waited at the end, for the answer to `server/discover`."""
        return self.opener is not None and self.opener.probing

    def queued(self, related: RequestId | None = None) -> int:
        """Bytes that wait to be sent: all, or those that belong to the peer's request `related`."""
        return self._out.queued if related is None else self._out.queued_for(related)

    def owes(self, id: RequestId) -> bool:
        """Whether the peer's request `id` is still to be answered."""
        return self._requests.owes(id) or (self._hearing is not None and id in self._hearing.interests)

    def awaits(self, id: RequestId) -> bool:
        """Whether our request `id` is neither answered nor given up."""
        return id in self._asked.table

    def stats(self) -> Stats:
        """What it holds, and what has passed through it."""
        return Stats(
            in_flight=self._requests.in_flight,
            waiting=len(self._requests.lane),
            calls=len(self._asked.table),
            events=len(self._events),
            buffered=len(self._intake),
            queued=self._out.queued,
            received=self._intake.received,
            sent=self._out.sent,
            rejected=self._rejections,
        )

    # -- What arrived -----------------------------------------------------------------------------------------------------

    def receive_data(self, data: bytes, now: float) -> None:
        """Take in bytes of a stream of lines, however they are split; `b""` is the end."""
        self._heard(now)
        if not data:
            self._eof = True
        elif self.state is not _CLOSED:
            self._intake.feed(data)

    def receive_message(self, data: bytes, now: float, via: Via | None = None) -> None:
        """Take in one whole message from a transport that keeps messages apart. `via`: what else that tells of it."""
        self._heard(now)
        if self.state is not _CLOSED:
            self._intake.add(data, via)

    def receive_parsed(self, body: ParsedBody, now: float, via: Via) -> None:
        """Take in a whole message, or a batch, that `parse_body` has decoded with the limits of `config`. `via`: as above."""
        self._now = now
        if self._keep_alive.deadline is not None:
            self._keep_alive.heard(now)
        if self.state is not _CLOSED:
            self._intake.add_parsed(body, via)

    def receive_failure(
        self, id: RequestId, error: McpTrioError, now: float, *, status: int | None = None
    ) -> None:
        """Our request `id` gets no JSON-RPC answer but `error`, with an HTTP `status`, 0 for not even that. Not if it is over."""
        self._now = now
        call = self._asked.table.pop(id, None)
        if call is not None:
            self._failed(id, call, error, Reply(status=status, failure=error))

    def handle_timeout(self, now: float) -> None:
        """The time is `now`: do what `next_deadline` announced, if it is due."""
        self._now = now
        self._requests.escape_if_due(now)
        opener = self.opener
        if opener is not None and opener.deadline is not None and now >= opener.deadline:
            asked = opener.time_is_up()
            assert asked is not None
            del self._asked.table[asked]
            self._advance(Reply())
        self._look_for_life(now)

    # -- What we want to say ------------------------------------------------------------------------------------------------

    def open(self, now: float, *, verdict: Peer | None = None) -> None:
        """Client: find a common revision. `PeerReady` or `ConnectionClosed` will say how it ended. `verdict` is the peer of an
        earlier conversation with the same server; it saves the probe."""
        if self.role is not _CLIENT or self.state is not State.NEW:
            raise LocalProtocolError("only a client opens a conversation, and only once")
        self._now, self.state = now, State.OPENING
        self.opener = Opener(self.config, verdict)
        self._advance(None)

    def renew(self, now: float) -> None:
        """Client: begin anew, by a handshake, what the server has lost. A second `PeerReady` will say that it is done."""
        self._cancel_all()
        self._now, self.opener = now, Opener(self.config, self.peer)
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
        headers: Mapping[str, str] | None = None,
    ) -> RequestId:
        """Ask the peer; returns the id. `ResultReceived`, `ErrorReceived` or `InputRequested` will carry `token`.

        Args:
            method: a method of MCP or a custom one.
            params: an object of the method's params type, or a mapping for a custom method.
            token: handed back untouched on every event of this request.
            related: the peer's request that is being worked on and needs this one. Cancelling that cancels this.
            meta: more members for `_meta`.
            progress: ask for `ProgressReceived`.
            headers: for a transport that has them.

        Raises:
            LocalProtocolError: the conversation is not open, the peer's revision has no such request, or the peer did
                not declare the capability.
        """
        peer = self._peer_for(related)
        if self._deaf:
            raise LocalProtocolError("the connection is closed: no answer would come")
        if self.state is not State.READY and related is None:
            raise LocalProtocolError("the conversation is not open yet")
        dialect = peer.dialect
        row = may_request(method, peer, self.role, self.config, self.state)
        id = self._asked.next_id
        terms = self.config.terms[self.role][dialect]
        data = encode_request(id, method, stamped_params(terms, params, meta, id if progress else None))
        self._asked.add(Call(method, row, dialect, token, related, progress))
        self._out.put(Outgoing(data, Kind.REQUEST, id, related, method, dialect, params, headers=headers))
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
            LocalProtocolError: it is not open, its revision has no such notification, or we did not declare what that needs.
        """
        peer = self._peer_for(related)
        may_notify(method, peer, self.role, self.config, self.state)
        data = encode_notification(method, body(peer.dialect, params))
        self._out.put(Outgoing(data, Kind.NOTIFICATION, None, related, method, peer.dialect, params))

    def send_progress(
        self, id: RequestId, progress: float, total: float | None = None, message: str | None = None
    ) -> bool:
        """Tell how far the peer's request `id` has come. False, and nothing is sent, if the peer did not ask for it, the
        request is over, or `progress` has not grown since it was last told.

        Raises:
            LocalProtocolError: a number is infinite or none, which JSON cannot say.
        """
        return self._out.offer(progress_note(id, self._requests.table.get(id), progress, total, message))

    def send_log(
        self, level: LoggingLevel, data: Any, *, logger: str | None = None, related: RequestId | None = None
    ) -> bool:
        """Send a log message; `related` is the peer's request that it is about. False, and nothing is sent, if the peer does
        not want to hear that level, or the request is over. In 2026-07-28 nothing can be said outside a request
        (server/utilities/logging).

        Raises:
            LocalProtocolError: there is no such level, or we did not declare `logging`.
            TypeError, ValueError: `data` cannot be said in JSON.
        """
        peer = self.peer if related is None else self._requests.listener(related, self.peer)
        if peer is not None:
            may_notify("notifications/message", peer, self.role, self.config, self.state)
        return self._out.offer(log_note(peer, level, data, logger, related))

    def send_change(self, change: Change) -> bool:
        """Server: tell the peer that something has changed, if it wants to hear of that. False if it does not. It is told once,
        however often it is said before the peer reads it."""
        if self._deaf or (self._hearing is None and self.peer is None):
            return False
        wanted = self._heard_by_peer().interests.publish(change)
        self._fill()
        return wanted

    def send_result(self, id: RequestId, result: Struct | Mapping[str, Any] | Raw) -> bool:
        """Answer the peer's request `id`. False if it was cancelled: then nothing is sent. A `Raw` result is an encoded object
        without `_meta`, already in the peer's revision.

        Raises:
            LocalProtocolError: there is no such request, or it has been answered.
            TypeError, ValueError: the result cannot be said in JSON. The request is still to be answered.
        """
        request = self._requests.to_answer(id)
        if request is None:
            return False
        self._answer(Outgoing(encode_result(id, *stamped_result(request.terms, result)), _ANSWER, id), id)
        return True

    def send_error(self, id: RequestId, error: ErrorData) -> bool:
        """Answer the peer's request `id` with an error. False if it was cancelled: then nothing is sent.

        Raises:
            LocalProtocolError: there is no such request, or it has been answered.
            TypeError, ValueError: `error.data` cannot be said in JSON. The request is still to be answered.
        """
        if self._requests.to_answer(id) is None:
            return False
        self._answer(_error(id, error), id)
        return True

    def send_cancel(self, id: RequestId, reason: str | None = None) -> None:
        """Give up our request `id`; no event will come for it. Nothing happens if it was answered."""
        self._asked.give_up(id, reason)

    def wind_down(self) -> None:
        """Server: refuse further requests as busy, pings excepted; what runs goes on until `close`. Does nothing at a client."""
        if self.role is _SERVER and self.state not in _ENDING:
            self.state = State.CLOSING
            if self._hearing is not None:
                self._hearing.end(tell=True)

    def close(self, error: McpTrioError | None = None) -> None:
        """End the conversation: what runs for the peer is cancelled, what we wait for is lost. What is queued may still be
        sent. Closing twice does nothing. `error` tells why, if it is not by our own wish."""
        if self._deaf:
            self._cancel_all()
            self.state = _CLOSED
        else:
            self._end(error)

    def retire(self) -> bool:
        """End the conversation without an event, if nothing is left to do: no request in flight, no event, nothing queued and
        no subscription. False if something is: then nothing happens, and `close` is the way."""
        if (
            self._requests.table
            or self._asked.table
            or self._events
            or self._out.queued
            or self._hearing is not None
            or self._intake.has_input
        ):
            return False
        self.state = _CLOSED
        self._deaf = True
        return True

    # -- What to do now ---------------------------------------------------------------------------------------------------

    def data_to_send(self) -> bytes:
        """Everything queued, one message a line, for one write. Empty if there is nothing."""
        if self._hearing is not None:
            self._fill()
        return self._out.take_lines()

    def messages_to_send(self) -> list[Outgoing]:
        """Everything queued, for a transport that keeps messages apart or sends them different ways."""
        if self._hearing is not None:
            self._fill()
        return self._out.take()

    def next_deadline(self) -> float | None:
        """When to call `handle_timeout`, in the time that the other methods were given; None for never."""
        # Only a client opens, and only a server pauses.
        deadline = self.opener.deadline if self.opener is not None else self._requests.escape
        silence = self._keep_alive.deadline
        return deadline if silence is None else silence if deadline is None else min(deadline, silence)

    def next_event(self) -> Event | NeedData | Paused:
        """The next fact; `NEED_DATA` when there is none until more arrives; `PAUSED` when the peer has to wait: then stop
        reading, and ask again after the next call of any other kind."""
        requests = self._requests
        while True:
            if self._events:
                return self._events.pop(0)
            if requests.lane:
                waiting = requests.next_waiting()
                if waiting is not None:
                    return waiting
                if self.role is _SERVER and requests.must_pause(self._now, calling=bool(self._asked.table)):
                    return PAUSED
            if self._out.answers > self._most_queued:
                if self.role is _SERVER:
                    return PAUSED
                # A client reads on, for two sides that both stopped would wait for each other for ever - but not endlessly.
                self._out.take()
                self._end(RemoteProtocolError("the server asks more and more and does not read the answers"))
                continue
            message = self._intake.next_message() if self._intake.has_input else None
            if message is None:
                if not self._eof or requests.lane or self._deaf:
                    return NEED_DATA
                self._input_ended()
            elif isinstance(message, BadMessage):
                self._reject(message)
            elif message.method is UNSET:
                self._response(message)
            elif message.id is UNSET:
                self._notification(message.method, message.params)
            else:
                assert message.id is not None
                self._request(message.id, message.method, message.params)

    # -- Reading one message ----------------------------------------------------------------------------------------------

    def _request(self, id: RequestId, method: str, params: Raw | UnsetType) -> None:
        raw = _NO_PARAMS if params is UNSET else params
        try:
            if id in self._requests.table or (self._hearing is not None and id in self._hearing.interests):
                in_use = f"request id {id!r} is still in use"
                raise Refusal(Fault.INVALID_REQUEST, in_use, dialect=self._dialect)
            via = self._intake.via
            admission = admit(
                method, raw, self.role, self.config, self._rows, self.state, self.peer, via.mirror
            )
            if method in HEARD:
                self._heard_by_peer().take(id, method, admission.params, admission.terms)
                return
        except Refusal as refusal:
            self._refuse(id, refusal)
            return
        row, peer, terms = admission.row, admission.peer, admission.terms
        reply = REPLIES.get(method)
        if reply is not None:
            result, remembered = reply(self.config, admission.params, peer)
            if remembered is not None:
                self._remember(remembered)
                self.state = next_state(self.state, row.step)
            self._out.put(Outgoing(encode_result(id, *stamped_result(terms, result)), _ANSWER, id))
            return
        if row.metered and self._bucket is not None:
            wait = self._bucket.take(self._now)
            if wait:
                self._refuse(id, too_often(wait, peer.dialect))
                return
        event = RequestReceived(id, row, admission.params, peer, raw, via.related, via.grant)
        place = self._requests.add(event, Request(peer, terms, _OPEN, admission.progress_token))
        if place:
            self._events.append(event)
        elif place is None:
            self._refuse(
                id, Refusal(Fault.BUSY, "too many requests at once; ask again later", dialect=peer.dialect)
            )

    def _notification(self, method: str, params: Raw | UnsetType) -> None:
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
            # Before the opening is complete one kind may come: a server's log.
            if row.step is Step.PING:
                self._events.append(NotificationReceived(row, told, None, self._intake.via.related))
        elif method in self.config.terms[self.role][self.peer.dialect].receives:
            self._events.append(NotificationReceived(row, told, self.peer, self._intake.via.related))

    def _response(self, envelope: Envelope) -> None:
        id = None if envelope.id is UNSET else envelope.id
        if id is None:
            assert envelope.error is not UNSET
            self._rejected(f"the peer could not read a message of ours: {error_of(envelope.error)}")
            return
        if self.opener is not None and self.opener.takes_late(id, envelope.result):
            return
        call = self._asked.table.pop(id, None)
        if call is None:
            return  # given up, or answered before: both are legal races
        if call.token is OPENING:
            self._advance(reply_in(envelope, self._intake.via.status))
        elif call.token is not STILL_THERE:
            self._events.append(answer(id, call, envelope))

    # -- What the connection does by itself -------------------------------------------------------------------------------

    def _initialized(self, params: t.InitializedParams) -> None:
        if self.state is State.OPENING and self.role is _SERVER and self.peer is not None:
            self.state = next_state(self.state, Step.INITIALIZED)
            self._ready(self.peer)

    def _cancelled(self, params: t.CancelledParams) -> None:
        if params.request_id is None or self._stops_listening(params.request_id):
            return
        running = self._requests.cancel(params.request_id)
        if running is None:
            return  # late, unknown or doubled: the race is legal
        self._asked.give_up_for(params.request_id)
        if running:
            self._events.append(RequestCancelled(params.request_id, params.reason))

    def _progress(self, params: t.ProgressParams) -> None:
        event = self._asked.progressed(params)
        if event is not None:
            self._events.append(event)

    def _stops_listening(self, id: RequestId) -> bool:
        """Whether `id` was a request to listen, which either side may end by cancelling it."""
        if self._hearing is not None and self._hearing.interests.cancel(id):
            return True
        event = self._asked.ended(id)
        if event is not None:
            self._events.append(event)
        return event is not None

    def _heard_by_peer(self) -> Hearing:
        if self._hearing is None:
            self._hearing = Hearing(self.config, self._out, self.has_room)
        if self.peer is not None:
            self._hearing.interests.remember(self.peer.dialect)
        return self._hearing

    def _fill(self) -> None:
        if self._hearing is not None:
            self._hearing.fill(ready=self.state is State.READY)

    def _heard(self, now: float) -> None:
        self._now = now
        if self._keep_alive.deadline is not None:
            self._keep_alive.heard(now)

    def _look_for_life(self, now: float) -> None:
        if self._requests.escape is not None or self._out.answers > self._most_queued:
            self._heard(now)  # it is we who do not listen
        due = self._keep_alive.due(now)
        if due is Due.ASK and self.peer is not None and self.state is State.READY:
            self.send_request(self.peer.dialect.ping, token=STILL_THERE)
        elif due is Due.GIVE_UP:
            silent = f"the {self.role.other.value} was silent for {self._keep_alive.silence:g} s"
            self._end(ConnectionLost(silent))

    # -- Opening ------------------------------------------------------------------------------------------------------------

    def _advance(self, reply: Reply | None) -> None:
        """Take the opening one step further."""
        assert self.opener is not None
        try:
            ask = self.opener.advance(reply, self._asked.next_id, self._now)
        except ConnectFailed as exc:
            self._end(exc if self.state is State.OPENING else ConnectionLost(f"no new session: {exc}"))
            return
        if isinstance(ask, Peer):
            self._opened(ask)
            return
        terms = self.config.terms[self.role][ask.dialect]
        id = self._asked.add(Call(ask.method, None, ask.dialect, OPENING))
        data = encode_request(id, ask.method, stamped_params(terms, question(ask, self.config), None, None))
        self._out.put(Outgoing(data, Kind.REQUEST, id, None, ask.method, ask.dialect))

    def _opened(self, peer: Peer) -> None:
        self._remember(peer)
        if peer.dialect.stateful:
            self.state = State.OPENING  # also if it is for the second time
            self.send_notification("notifications/initialized")
        self.state = State.READY
        self._ready(peer)

    def _remember(self, peer: Peer) -> None:
        self.peer = peer
        self._intake.batches = peer.dialect.batches

    def _ready(self, peer: Peer) -> None:
        self._keep_alive.heard(self._now)
        self._events.append(PeerReady(peer))
        self._fill()

    # -- Endings ------------------------------------------------------------------------------------------------------------

    def _input_ended(self) -> None:
        if self._intake.in_line:
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
        self._deaf = True
        if self._hearing is not None:
            self._hearing.end(tell=error is None)
        if state is _CLOSED:
            self._intake.clear()
        if self.opener is not None:
            self.opener.deadline = None
        self._keep_alive.deadline = None
        reason = "the conversation is being closed" if error is None else None
        self._events.append(ConnectionClosed(self._asked.lose_all(reason), error))

    # -- Small things ---------------------------------------------------------------------------------------------------------

    @property
    def _dialect(self) -> Dialect | None:
        return self.peer.dialect if self.peer is not None else None

    def _peer_for(self, related: RequestId | None) -> Peer:
        if related is not None:
            return self._requests.peer_of(related)
        if self._deaf:
            raise LocalProtocolError("the connection is closed")
        if self.peer is None:
            raise LocalProtocolError("the conversation is not open yet")
        return self.peer

    def _answer(self, answer: Outgoing, id: RequestId) -> None:
        """Send the answer to the peer's request `id`, and forget the request."""
        if self._asked.table:
            self._asked.give_up_for(id)
        self._out.put(answer)  # raises if it is no JSON: then an answer is still to come
        del self._requests.table[id]

    def _refuse(self, id: RequestId, refusal: Refusal) -> None:
        self._rejected(refusal.message, refusal.fault, id, refusal.data)
        error = answer_to_refused(refusal, self.config, self._dialect)
        if error is not None:
            self._out.put(_error(id, error))

    def _reject(self, bad: BadMessage) -> None:
        """Report what is no message, answer it if it may be a request, and fail the call that it may have answered."""
        self._rejected(bad.message, bad.fault, bad.id)
        if bad.id is not None and bad.looks in ("response", "neither"):
            call = self._asked.table.pop(bad.id, None)
            if call is not None:
                problem = f"the answer to {call.method} is none: {bad.message}"
                self._failed(bad.id, call, RemoteProtocolError(problem), Reply(error=PeerError(0, problem)))
                return
        answer = answer_to_bad_message(bad, self.role, self.config, self._dialect)
        if answer is not None:
            self._out.put(_error(bad.id, *answer))

    def _failed(self, id: RequestId, call: Call, error: McpTrioError, to_opening: Reply) -> None:
        if call.token is OPENING:
            self._advance(to_opening)
        elif call.token is not STILL_THERE:
            self._events.append(ErrorReceived(id, error, call.token))

    def _rejected(
        self,
        problem: str,
        fault: Fault = Fault.INVALID_REQUEST,
        id: RequestId | None = None,
        data: Any = UNSET,
    ) -> None:
        self._rejections += 1
        self._events.append(MessageRejected(RemoteProtocolError(problem, fault, data), id))


def _error(id: RequestId | None, error: ErrorData, null_id: bool = False) -> Outgoing:
    return Outgoing(encode_error(id, encode(error), null_id=null_id), _ANSWER, id, error=error.code)


# Notifications that mean the same to every driver, so that none has to deal with them.
_NOTED: Final[Mapping[str, Callable[[Connection, Any], None]]] = {
    "notifications/initialized": Connection._initialized,
    "notifications/cancelled": Connection._cancelled,
    "notifications/progress": Connection._progress,
}
