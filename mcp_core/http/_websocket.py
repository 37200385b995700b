"""A conversation over a WebSocket, from either end: a text message is a message of JSON-RPC, and the rest is looked after here.

No revision of MCP has this transport; as a custom one it keeps their messages and their order of events as they are (2026-07-28,
basic/transports, Custom Transports), and it is not more than this: how to open it is `_handshake.py`, and whoever spells frames does
what it is told by `WebSocket`.

Rules of this file:

1. What is wrong has one end, the Close frame with the code of `CODES`. What came before it is still heard, what is queued is still
   sent, what runs is cancelled, and then the other side has a moment to close as well.
2. The length of a frame is judged when its head is there. Nothing that is too long is ever kept.
3. Whoever is silent is asked whether he lives, and whoever does not read or does not close is waited for only so long. All of these
   times are in `next_deadline`, so that a driver has none of its own.
4. Pressure reaches the peer: nothing is read while `paused`, nothing is taken from here before what was taken has been written.

It refuses to know bytes, masks and opcodes. Sources: RFC 6455, 5.5 and 7.
"""

from __future__ import annotations

import math
from collections import deque
from typing import TYPE_CHECKING, Final

from msgspec import Struct

from mcp_core import types as t
from mcp_core._body import parse_body
from mcp_core._errors import ConnectFailed, ConnectionLost, Fault, RemoteProtocolError
from mcp_core._events import NEED_DATA, PAUSED, ConnectionClosed, MessageRejected
from mcp_core._intake import Via
from mcp_core._jsonrpc import encode, encode_error
from mcp_core._keep_alive import Due, KeepAlive
from mcp_core._methods import Role

if TYPE_CHECKING:
    from collections.abc import Callable

    from mcp_core._body import ParsedBody
    from mcp_core._connection import Connection
    from mcp_core._errors import McpTrioError
    from mcp_core._events import Event, Granted, NeedData, Paused

__all__ = ["CODES", "Close", "Ping", "Pong", "SocketAction", "Text", "WebSocket"]

# Why a WebSocket is closed, in RFC 6455's numbers (7.4.1).
CODES: Final = {
    "done": 1000,  # a client has no more to ask
    "going away": 1001,  # a server stops
    "protocol": 1002,  # frames that are none, and a ping that nobody answers
    "binary": 1003,
    "garbage": 1007,  # text that is no UTF-8, and what is no JSON again and again
    "policy": 1008,  # the right to be here has ended, or nobody makes use of it
    "too long": 1009,
    "own fault": 1011,
}
_REASON: Final = 123  # bytes: what a control frame has room for, without the code
_NO_CODE: Final = 1005  # what is heard if the peer's Close says none; never sent
_NO_CLOSE: Final = 1006  # what is said where there was none

# Seconds. A proxy forgets a connection that is silent after a minute; two of these are less.
_PING: Final = 20.0
_PONGS: Final = 16
_CLOSING: Final = 1.0  # for the peer's Close behind ours
_STALL: Final = 30.0  # for a peer who does not read
# In this time so many bytes of a message have to come that has begun, as of a body of HTTP; it is kept meanwhile.
_SLOW: Final = 30.0
_PROGRESS: Final = 30 * 1024
# So many messages that are no JSON, within so long, and nobody at the other end speaks this.
_GARBAGE: Final = 3
_GARBAGE_WITHIN: Final = 10.0

_CLIENT: Final = Role.CLIENT


class Text(Struct, gc=False):
    """A message, whole, in a frame of its own."""

    text: str


class Ping(Struct, gc=False):
    """The question whether the peer lives, without a payload."""


class Pong(Struct, gc=False):
    """The answer to the ping that had this `payload`."""

    payload: bytes


class Close(Struct, gc=False):
    """The last frame. `reason` is at most 123 bytes of UTF-8."""

    code: int
    reason: str = ""


SocketAction = Text | Ping | Pong | Close


class WebSocket:
    """Carries the conversation of `conn` over a WebSocket that is open.

    Tell it what arrives by `frame_begins`, the methods that begin with `receive`, and `lost`. After each call, and each call into `conn`:
    take `next_event` until it gives `NEED_DATA` or `PAUSED` (a `mcp_core.Pump` does); write what `messages_to_send` gives, and say
    `wrote` when a part of it has left; set one timer to `next_deadline`. End when all was written that was taken and it is `over`, and at
    once when it is `gone`.

    Args:
        conn: with a peer that is either role's.
        now: the time, in seconds.
        grant: by what a server has let its client in.
        judge: whether a message may be acted on; gives what is answered if it may not.
        until: when the right to be here ends.
        patience: seconds for a client to send its first message; None for ever.
        heard: called with each message that comes; it must not fail.
    """

    __slots__ = (
        "_alive",
        "_came",
        "_closed",
        "_end",
        "_ended_by",
        "_first_by",
        "_garbage",
        "_heard",
        "_judge",
        "_lost",
        "_partial",
        "_pending",
        "_pongs",
        "_refusals",
        "_refused",
        "_said",
        "_slow_at",
        "_stall",
        "_stalls_at",
        "_tell",
        "_until",
        "_via",
        "conn",
        "deaf",
        "gone",
        "now",
        "paused",
    )

    def __init__(
        self,
        conn: Connection,
        now: float,
        *,
        grant: Granted | None = None,
        judge: Callable[[ParsedBody], str | None] | None = None,
        until: float | None = None,
        patience: float | None = None,
        heard: Callable[[bytes], object] | None = None,
    ) -> None:
        self.conn = conn
        self.paused = False  # nothing is to be read
        self.deaf = False  # what arrives cannot be told apart any more, and is to be thrown away
        self.gone = False  # nobody is there
        self.now = now
        self._via = Via(grant=grant)
        self._judge = judge
        self._tell = heard
        self._until = until
        self._first_by = None if patience is None else now + patience
        self._alive = KeepAlive(_PING)
        self._alive.heard(now)
        self._partial = bytearray()
        self._garbage: list[float] = []
        self._refusals: list[str] = []  # answers to what was not acted on
        self._refused = 0  # their length
        self._pending = False  # a ping is to be sent
        # Who asks faster than he reads gets the last answers (RFC 6455, 5.5.3).
        self._pongs: deque[bytes] = deque(maxlen=_PONGS)
        self._end: Close | None = None  # once it ends
        self._lost: McpTrioError | None = (
            None  # what the connection is closed with when it has acted on all that came before
        )
        self._closed = False  # the connection has said that it is closed
        self._said = False  # our Close was taken
        self._heard = False  # the peer says no more
        self._ended_by: float | None = None
        self._stalls_at: float | None = None
        self._stall = _STALL
        self._slow_at: float | None = None  # when so much of a message has to have come
        self._came = 0  # of it since that was set

    def __repr__(self) -> str:
        state = "gone" if self.gone else "open" if self._end is None else f"closing with {self._end.code}"
        return f"<WebSocket {state}{', paused' if self.paused else ''} of {self.conn!r}>"

    def leave_frames(self) -> None:
        """Whoever spells the frames asks by himself whether the peer lives and reads."""
        self._alive = KeepAlive(None)
        self._pending = False
        self._stall = math.inf

    # -- What arrives ------------------------------------------------------------------------------------------------------

    def frame_begins(self, length: int) -> None:
        """The head of a frame of text or of its continuation is there, with so many bytes behind it."""
        self._require_room(length)

    def receive_text(self, text: str, now: float, *, end: bool = True) -> None:
        """A message, or a piece of it up to its `end`."""
        self._hear(now)
        data = text.encode("utf-8", "surrogatepass")
        if self._end is not None or not self._require_room(len(data)):
            return
        partial = self._partial
        if partial or not end:
            partial += data
            if not end:
                self._came += len(data)
                if self._slow_at is None:
                    self._slow_at = now + _SLOW
                return
            data = bytes(partial)
            self._partial = bytearray()
        self._slow_at, self._came = None, 0
        self._first_by = None
        if self._tell is not None:
            self._tell(data)
        body = parse_body(data, self.conn.config.limits)
        problem = self._judge(body) if self._judge is not None else None
        if problem is None:
            self.conn.receive_parsed(body, now, self._via)
        else:
            self._refuse(body, problem)

    def receive_binary(self, now: float) -> None:
        """A frame that is no text."""
        self._hear(now)
        self._fail("binary", "messages are text")

    def receive_ping(self, payload: bytes, now: float) -> None:
        self._hear(now)
        self._pongs.append(payload)

    def receive_pong(self, now: float) -> None:
        self._hear(now)

    def receive_close(self, code: int, reason: str, now: float) -> None:
        """The peer's Close; `code` is 1005 if it has none."""
        self.now = now
        self._heard = self.deaf = True
        if self._ended_by is None:
            self._ended_by = now + _CLOSING
        said = "".join(char if char.isprintable() else " " for char in reason)
        self._finish(
            Close(1000 if code == _NO_CODE else code), f"closed the WebSocket ({code}{said and f', {said}'})"
        )

    def receive_fault(self, code: int, reason: str, now: float) -> None:
        """What has arrived is no frame, or no UTF-8; `code` says which."""
        self.now = now
        self.deaf = True
        self._fail("garbage" if code == CODES["garbage"] else "protocol", reason)

    def lost(self, now: float) -> None:
        """The stream has ended, or is broken. Harmless when it is over."""
        self.now = now
        if not self._heard:
            self._heard = self.gone = True
            self._finish(Close(_NO_CLOSE), "broke off the connection")

    def fail(self, now: float) -> None:
        """Something of ours went wrong."""
        self.now = now
        self._fail("own fault", "internal error")

    # -- What to do now ----------------------------------------------------------------------------------------------------

    @property
    def over(self) -> bool:
        """Whether nothing comes behind what was taken."""
        return self.gone or (self._said and self._heard)

    @property
    def has_to_say(self) -> bool:
        """Whether `messages_to_send` may give something, or whoever writes has to see that it is `over`."""
        return bool(
            self.conn.queued()
            or self._refusals
            or self._pending
            or self._pongs
            or (self._closed and not self._said)
            or self.over
        )

    def queued(self) -> int:
        """Bytes of the conversation that wait to be taken."""
        return self.conn.queued() + self._refused

    def messages_to_send(self, now: float) -> list[SocketAction]:
        """What is to be written, in this order. To be asked for again when it was written, also if that was nothing."""
        self.now = now
        actions: list[SocketAction] = [*map(Pong, self._pongs)]
        self._pongs.clear()
        actions += [Text(message.data.decode()) for message in self.conn.messages_to_send()]
        actions += map(Text, self._refusals)
        self._refusals, self._refused = [], 0
        if self._pending:
            self._pending = False
            actions.append(Ping())
        if self._said or self.gone:
            actions.clear()  # nothing follows a Close
        if self._closed and not self._said and not self.gone:
            assert self._end is not None
            self._said = True
            actions.append(self._end)
        elif self._said and not self.over and self._ended_by is None:
            self._ended_by = now + _CLOSING  # ours is written
        self._stalls_at = now + self._stall if actions else None
        return actions

    def wrote(self, now: float) -> None:
        """A part of what was taken has left."""
        self._stalls_at = now + self._stall

    def next_event(self) -> Event | NeedData | Paused:
        """As `Connection.next_event`."""
        conn = self.conn
        while True:
            event = conn.next_event()
            if event is NEED_DATA or event is PAUSED:
                if self._lost is not None:
                    error, self._lost = self._lost, None
                    conn.close(error)
                    continue
                if self._refused > conn.config.limits.queued:
                    event = PAUSED
                self.paused = event is PAUSED
                return event
            if isinstance(event, MessageRejected):
                if event.error.fault is Fault.PARSE:
                    self._count_garbage()
            elif isinstance(event, ConnectionClosed):
                self._closed = True
                if self._end is None:
                    self._end = self._farewell(event.error)
            return event

    def next_deadline(self) -> float | None:
        """When to call `handle_timeout`, None for never."""
        times = [self._stalls_at, self._ended_by, self.conn.next_deadline()]
        if self._end is None:
            times += (self._alive.deadline, self._until, self._first_by, self._slow_at)
        return min((time for time in times if time is not None), default=None)

    def handle_timeout(self, now: float) -> None:
        """The time is `now`."""
        self.now = now
        self.conn.handle_timeout(now)
        if _is_due(self._stalls_at, now) or _is_due(self._ended_by, now):
            self._stalls_at = self._ended_by = None
            self.lost(now)
            self.gone = True
            return
        if self._end is not None:
            return
        if _is_due(self._until, now):
            self._fail("policy", "the token has expired")
        elif _is_due(self._first_by, now):
            self._fail("policy", "nothing was asked for too long")
        elif _is_due(self._slow_at, now) and self._came < _PROGRESS and not self.paused:
            self._fail("policy", "a message comes too slowly")
        else:
            if _is_due(self._slow_at, now):
                self._slow_at, self._came = now + _SLOW, 0
            self._look_for_life(now)

    # -- How it ends -------------------------------------------------------------------------------------------------------

    def _look_for_life(self, now: float) -> None:
        if self.paused or self._stalls_at is not None:
            # It is we who do not listen, or who could not ask: what is being written comes first.
            self._alive.heard(now)
        due = self._alive.due(now)
        if due is Due.ASK:
            self._pending = True
        elif due is Due.GIVE_UP:
            self._fail("protocol", f"no answer to a ping within {_PING:g} s")

    def _hear(self, now: float) -> None:
        self.now = now
        self._alive.heard(now)

    def _require_room(self, length: int) -> bool:
        most = self.conn.config.limits.message
        if len(self._partial) + length > most:
            self._fail("too long", f"the message is longer than {most} bytes")
            return False
        return True

    def _count_garbage(self) -> None:
        now = self.now
        self._garbage = [*(time for time in self._garbage if time > now - _GARBAGE_WITHIN), now]
        if len(self._garbage) >= _GARBAGE:
            self._fail("garbage", "what comes is no JSON")
            error, self._lost = self._lost, None
            self.conn.close(error)  # at once: there may be more of it

    def _refuse(self, body: ParsedBody, problem: str) -> None:
        """Answer each request in a message that is not acted on."""
        error = encode(t.ErrorData(code=-32600, message=problem))
        for id in body.request_ids:
            text = encode_error(id, error).decode()
            self._refusals.append(text)
            self._refused += len(text)

    def _fail(self, cause: str, problem: str) -> None:
        """End it, for the peer does something wrong, or we do."""
        if self._end is None:
            self._end = _close(cause, problem)
            self._lost = RemoteProtocolError(f"the WebSocket was closed: {problem}")
            self._partial = bytearray()

    def _finish(self, close: Close, what: str) -> None:
        """The peer has ended it."""
        if self._end is None:
            self._end = close
            self._lost = ConnectionLost(f"the {self.conn.role.other.value} {what}")

    def _farewell(self, error: McpTrioError | None) -> Close:
        """The Close of a conversation that has ended by itself."""
        if error is None or isinstance(error, ConnectFailed):
            return _close("done" if self.conn.role is _CLIENT else "going away", "")
        return _close("policy", str(error))


def _close(cause: str, why: str) -> Close:
    return Close(CODES[cause], why.encode()[:_REASON].decode("utf-8", "ignore"))


def _is_due(deadline: float | None, now: float) -> bool:
    return deadline is not None and now >= deadline
