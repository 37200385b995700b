"""A connection over a WebSocket, for both sides: one text message is one JSON-RPC message.

No revision of MCP has this transport. As a custom transport (2026-07-28, basic/transports, Custom
Transports) it changes neither messages nor the order of events. How it is opened is in
`_websocket_upgrade.py`; bytes, masks and opcodes are in `_websocket_frames.py`.

1. Every error ends in a Close frame with a code of `CODES`. Messages before it are processed, what
   is queued is sent, running requests are cancelled, and then the peer has a moment to close too.
2. A frame's length is checked when its head has arrived. Nothing too long is ever buffered.
3. A silent peer is pinged; a peer that doesn't read or doesn't close is waited for only so long.
   All these times are in `next_deadline`, so a driver has none of its own. Nothing is read while
   `paused`, and nothing more is sent before the last was written: back-pressure.

Sources: RFC 6455, 5.5 and 7.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from msgspec import Struct

from mcp_core import types as t
from mcp_core._errors import ConnectFailed, ConnectionLost, Fault, RemoteProtocolError
from mcp_core.protocol.connection._connection import Connection
from mcp_core.protocol.connection._keep_alive import KeepAlive, KeepAliveAction
from mcp_core.protocol.jsonrpc._body import ParsedBody, parse_body
from mcp_core.protocol.jsonrpc._codec import encode, encode_error
from mcp_core.protocol.messages._events import (
    NEED_DATA,
    PAUSED,
    ConnectionClosed,
    Event,
    GrantLike,
    HttpRequestLike,
    MessageRejected,
    NeedData,
    Paused,
)
from mcp_core.protocol.messages._incoming import MessageContext
from mcp_core.protocol.revisions._methods import Role

if TYPE_CHECKING:
    from mcp_core._errors import McpTrioError

    from ._recorder import WebSocketRecorderLike

__all__ = ["CODES", "NO_CODE", "Close", "Ping", "Pong", "Text", "WebSocket", "WebSocketAction"]

# The causes of a Close, and their codes (RFC 6455, 7.4.1).
CODES: Final = {
    "done": 1000,  # a client has no more to ask
    "going away": 1001,  # a server stops
    "protocol": 1002,  # invalid frames, or a ping without a pong
    "binary": 1003,
    "garbage": 1007,  # text that isn't UTF-8, or repeated messages that aren't JSON
    "policy": 1008,  # the token has expired, or the client is idle or too slow
    "too long": 1009,
    "internal error": 1011,
    "busy": 1013,  # try again later
}
_MAX_REASON: Final = 123  # bytes: a control frame without the code
NO_CODE: Final = 1005  # reported if the peer's Close has no code; never sent
_NO_CLOSE: Final = 1006  # reported if there was no Close; never sent

# Seconds. Proxies drop a connection that is silent for a minute; two of these are less.
_PING_INTERVAL: Final = 20.0
_MAX_PONGS: Final = 16
_CLOSE_TIMEOUT: Final = 1.0  # for the peer's Close after ours
_WRITE_TIMEOUT: Final = 30.0  # for a peer that doesn't read
# A message that has begun must grow by this many bytes in this time, as the body of an HTTP request
# must: it is buffered all the while.
_SLOW_PERIOD: Final = 30.0
_MIN_PROGRESS: Final = 30 * 1024
_PARTIAL_TIMEOUT: Final = 5 * 60.0  # for the whole message, as for the body of an HTTP request
# A peer that sends this many messages that aren't JSON, within this time, doesn't speak MCP.
_MAX_GARBAGE: Final = 3
_GARBAGE_PERIOD: Final = 10.0

_CLIENT: Final = Role.CLIENT


class Text(Struct, gc=False):
    """A whole message, `text`, in a frame of its own."""

    text: str


class Ping(Struct, gc=False):
    """A ping without payload: does the peer still respond?"""


class Pong(Struct, gc=False):
    """The response to a ping with this `payload`."""

    payload: bytes


class Close(Struct, gc=False):
    """The last frame. `code` is from RFC 6455, 7.4.1; `reason` at most 123 bytes of UTF-8."""

    code: int
    reason: str = ""


# What a driver has to send, in order.
WebSocketAction = Text | Ping | Pong | Close


class WebSocket:
    """A `Connection` on a WebSocket that is open.

    Report what arrives with the `receive_*` methods. After each of these calls, and after each call
    into `conn`: call `next_event` until it returns `NEED_DATA` or `PAUSED` (a `mcp_core.Pump`
    does); send what `messages_to_send` returns, and report each part that was written; set one
    timer to `next_deadline`. End when it is `done` and everything was written, and at once when it
    is `disconnected`.

    Args:
        conn: a connection of either role.
        now: the time, as for all methods: monotonic, in seconds, on one clock.
        grant: the grant of an authorized client.
        http: the upgrade request, as far as handlers may see it.
        find_rejection: returns why a message may not be processed, or None if it may.
        token_expiry: the time at which the client's token expires.
        first_message_timeout: seconds for a client to send its first message; None for no limit.
        on_message: called with each message that arrives; it must not raise.

    Attributes:
        recorder: records messages and close frames; None, as at first, for no recording.
        paused: True if the driver must not read now.
        input_ignored: True if an error or a Close has arrived: discard all later input.
        disconnected: True if the stream has ended, or the peer doesn't respond.
    """

    __slots__ = (
        "_close_deadline",
        "_close_sent",
        "_closed",
        "_context",
        "_end",
        "_error",
        "_find_rejection",
        "_first_deadline",
        "_garbage_times",
        "_growth",
        "_keep_alive",
        "_on_message",
        "_partial",
        "_partial_deadline",
        "_peer_closed",
        "_ping_pending",
        "_pongs",
        "_received_at",
        "_responses",
        "_responses_size",
        "_slow_deadline",
        "_token_deadline",
        "_write_deadline",
        "_write_timeout",
        "conn",
        "disconnected",
        "input_ignored",
        "paused",
        "recorder",
    )

    def __init__(
        self,
        conn: Connection,
        now: float,
        *,
        grant: GrantLike | None = None,
        http: HttpRequestLike | None = None,
        find_rejection: Callable[[ParsedBody], str | None] | None = None,
        token_expiry: float | None = None,
        first_message_timeout: float | None = None,
        on_message: Callable[[bytes], object] | None = None,
    ) -> None:
        self.conn = conn
        self.recorder: WebSocketRecorderLike | None = None
        self.paused = False  # don't read
        self.input_ignored = False  # an error or a Close has arrived: discard all later input
        self.disconnected = False  # the stream has ended, or the peer doesn't respond
        self._context = MessageContext(grant=grant, http=http)
        self._find_rejection = find_rejection
        self._on_message = on_message
        self._token_deadline = token_expiry
        self._first_deadline = (
            None if first_message_timeout is None else now + first_message_timeout
        )
        self._keep_alive = KeepAlive(_PING_INTERVAL)
        self._keep_alive.mark_activity(now)
        self._partial = bytearray()
        self._received_at: float  # of the last input
        self._garbage_times: list[float] = []
        self._responses: list[str] = []  # error responses to messages that were not processed
        self._responses_size = 0
        self._ping_pending = False
        # A peer that pings faster than it reads gets the last pongs (RFC 6455, 5.5.3).
        self._pongs: deque[bytes] = deque(maxlen=_MAX_PONGS)
        self._end: Close | None = None  # our Close, once the WebSocket is closing
        # What `conn` is closed with, once all its events were returned.
        self._error: McpTrioError | None = None
        self._closed = False  # `conn` has reported that it is closed
        self._close_sent = False  # our Close was taken to send
        self._peer_closed = False  # a Close or the end of the stream has arrived
        self._close_deadline: float | None = None
        self._write_deadline: float | None = None
        self._write_timeout = _WRITE_TIMEOUT
        self._slow_deadline: float | None = None  # when the message must have grown
        self._growth = 0  # bytes of it since that was set
        self._partial_deadline = math.inf  # when the message must be complete

    def __repr__(self) -> str:
        state = (
            "gone"
            if self.disconnected
            else "open"
            if self._end is None
            else f"closing with {self._end.code}"
        )
        return f"<WebSocket {state}{', paused' if self.paused else ''} of {self.conn!r}>"

    def disable_keep_alive(self) -> None:
        """Leave pings and write timeouts to an ASGI server, which handles the frames itself."""
        self._keep_alive = KeepAlive(None)
        self._ping_pending = False
        self._write_timeout = math.inf

    # -- Input ------------------------------------------------------------------------------------

    def receive_frame_head(self, length: int) -> None:
        """Check the `length` of a text or continuation frame whose head has arrived.

        A message that becomes too long closes the WebSocket.
        """
        self._check_size(length)

    def receive_text(self, text: str, now: float, *, end: bool = True) -> None:
        """Receive `text`, a message or a part of it; `end` marks the last part."""
        self._mark_activity(now)
        data = text.encode("utf-8", "surrogatepass")
        if self._end is not None or not self._check_size(len(data)):
            return
        partial = self._partial
        if partial or not end:
            partial += data
            if not end:
                self._growth += len(data)
                if self._slow_deadline is None:
                    self._slow_deadline = now + _SLOW_PERIOD
                    self._partial_deadline = now + _PARTIAL_TIMEOUT
                return
            data = bytes(partial)
            self._partial = bytearray()
        self._slow_deadline = None
        self._growth = 0
        self._first_deadline = None
        if self._on_message is not None:
            self._on_message(data)
        if self.recorder is not None:
            self.recorder.received(data)
        body = parse_body(data, self.conn.config.limits)
        error = self._find_rejection(body) if self._find_rejection is not None else None
        if error is None:
            self.conn.receive_parsed(body, now, self._context)
        else:
            self._reject(body, error)

    def receive_binary(self) -> None:
        """Close the WebSocket: binary messages aren't supported."""
        self._fail("binary", "messages are text")

    def receive_ping(self, payload: bytes, now: float) -> None:
        """Receive a ping. A pong with its `payload` is queued."""
        self._mark_activity(now)
        self._pongs.append(payload)

    def receive_pong(self, now: float) -> None:
        """Receive a pong: the peer responds."""
        self._mark_activity(now)

    def receive_close(self, code: int, reason: str, now: float) -> None:
        """Receive the peer's Close. `code` is 1005 if it has none, `reason` is for texts."""
        self._peer_closed = True
        self.input_ignored = True
        if self._close_deadline is None:
            self._close_deadline = now + _CLOSE_TIMEOUT
        text = "".join(char if char.isprintable() else " " for char in reason)
        if self.recorder is not None:
            self.recorder.received_close(code, text)
        self._end_by_peer(
            Close(1000 if code == NO_CODE else code),
            f"closed the WebSocket ({code}{text and f', {text}'})",
        )

    def receive_invalid(self, code: int, reason: str, now: float) -> None:
        """Close the WebSocket after an invalid frame or invalid UTF-8; `code` says which.

        `reason` is sent in the Close.
        """
        self.input_ignored = True
        self._fail("garbage" if code == CODES["garbage"] else "protocol", reason)

    def receive_eof(self, now: float) -> None:
        """Report the stream's end or failure. Do nothing if the peer has closed."""
        if not self._peer_closed:
            self._peer_closed = True
            self.disconnected = True
            if self.recorder is not None:
                self.recorder.received_close(_NO_CLOSE, "")
            self._end_by_peer(Close(_NO_CLOSE), "broke off the connection")

    @property
    def buffered(self) -> int:
        """Bytes of a message that has begun and isn't complete."""
        return len(self._partial)

    def refuse(self, problem: str) -> None:
        """Close the WebSocket because it uses more than its client may; `problem` says of what."""
        self._fail("busy", problem)

    def fail(self, now: float) -> None:
        """Close the WebSocket after an internal error."""
        self._fail("internal error", "internal error")

    # -- What to do now ---------------------------------------------------------------------------

    @property
    def done(self) -> bool:
        """True if there will be nothing more to send."""
        return self.disconnected or (self._close_sent and self._peer_closed)

    @property
    def has_output(self) -> bool:
        """True if `messages_to_send` may return something, or it is `done`: wake the writer."""
        return bool(
            self.conn.queued()
            or self._responses
            or self._ping_pending
            or self._pongs
            or (self._closed and not self._close_sent)
            or self.done
        )

    def queued(self) -> int:
        """Return the number of bytes of messages that wait to be sent."""
        return self.conn.queued() + self._responses_size

    def messages_to_send(self, now: float) -> list[WebSocketAction]:
        """Return what to send, in order. Call again when it was written, even if it was empty."""
        actions: list[WebSocketAction] = [*map(Pong, self._pongs)]
        self._pongs.clear()
        actions += [Text(message.data.decode()) for message in self.conn.messages_to_send()]
        actions += map(Text, self._responses)
        self._responses = []
        self._responses_size = 0
        if self._ping_pending:
            self._ping_pending = False
            actions.append(Ping())
        if self._close_sent or self.disconnected:
            actions.clear()  # nothing follows a Close
        if self._closed and not self._close_sent and not self.disconnected:
            assert self._end is not None
            self._close_sent = True
            actions.append(self._end)
        elif self._close_sent and not self.done and self._close_deadline is None:
            self._close_deadline = now + _CLOSE_TIMEOUT  # our Close is written
        self._write_deadline = now + self._write_timeout if actions else None
        if self.recorder is not None:
            self._record(self.recorder, actions)
        return actions

    def _record(self, recorder: WebSocketRecorderLike, actions: list[WebSocketAction]) -> None:
        for action in actions:
            if isinstance(action, Text):
                recorder.sent(action.text.encode())
            elif isinstance(action, Close):
                recorder.sent_close(action.code, action.reason)

    def data_written(self, now: float) -> None:
        """Restart the write timeout: a part of the output was written."""
        self._write_deadline = now + self._write_timeout

    def next_event(self) -> Event | NeedData | Paused:
        """Return the next event, as `Connection.next_event` does."""
        conn = self.conn
        while True:
            event = conn.next_event()
            if event is NEED_DATA or event is PAUSED:
                if self._error is not None:
                    error = self._error
                    self._error = None
                    conn.close(error)
                    continue
                if self._responses_size > conn.config.limits.queued:
                    event = PAUSED
                self.paused = event is PAUSED
                return event
            if isinstance(event, MessageRejected):
                if event.error.fault is Fault.PARSE:
                    self._count_invalid_message()
            elif isinstance(event, ConnectionClosed):
                self._closed = True
                if self._end is None:
                    self._end = self._closing_frame(event.error)
            return event

    def next_deadline(self) -> float | None:
        """Return when to call `handle_timeout`, or None."""
        times = [self._write_deadline, self._close_deadline, self.conn.next_deadline()]
        if self._end is None:
            times += (
                self._keep_alive.deadline,
                self._token_deadline,
                self._first_deadline,
                self._slow_deadline,
            )
        return min((time for time in times if time is not None), default=None)

    def handle_timeout(self, now: float) -> None:
        """Act on the deadlines that have passed at `now`."""
        self.conn.handle_timeout(now)
        if _is_due(self._write_deadline, now) or _is_due(self._close_deadline, now):
            self._write_deadline = None
            self._close_deadline = None
            self.receive_eof(now)
            self.disconnected = True
            return
        if self._end is not None:
            return
        if _is_due(self._token_deadline, now):
            self._fail("policy", "the token has expired")
        elif _is_due(self._first_deadline, now):
            self._fail("policy", "no message arrived in time")
        elif _is_due(self._slow_deadline, now) and (
            now >= self._partial_deadline or (self._growth < _MIN_PROGRESS and not self.paused)
        ):
            self._fail("policy", "a message arrives too slowly")
        else:
            if _is_due(self._slow_deadline, now):
                self._slow_deadline = now + _SLOW_PERIOD
                self._growth = 0
            self._check_keep_alive(now)

    # -- How it ends ------------------------------------------------------------------------------

    def _check_keep_alive(self, now: float) -> None:
        if self.paused or self._write_deadline is not None:
            # We are paused or mid-write, so the silence is ours. Do not count it towards the ping
            # timeout.
            self._keep_alive.mark_activity(now)
        due = self._keep_alive.due(now)
        if due is KeepAliveAction.SEND_PING:
            self._ping_pending = True
        elif due is KeepAliveAction.CLOSE:
            self._fail("protocol", f"no answer to a ping within {_PING_INTERVAL:g} s")

    def _mark_activity(self, now: float) -> None:
        self._received_at = now
        self._keep_alive.mark_activity(now)

    def _check_size(self, length: int) -> bool:
        limit = self.conn.config.limits.message
        if len(self._partial) + length > limit:
            self._fail("too long", f"the message is longer than {limit} bytes")
            return False
        return True

    def _count_invalid_message(self) -> None:
        now = self._received_at
        self._garbage_times = [
            *(time for time in self._garbage_times if time > now - _GARBAGE_PERIOD),
            now,
        ]
        if len(self._garbage_times) >= _MAX_GARBAGE:
            self._fail("garbage", "the messages are not JSON")
            error = self._error
            self._error = None
            self.conn.close(error)  # at once, because more of it may follow

    def _reject(self, body: ParsedBody, problem: str) -> None:
        """Queue an error response to each request in a message that isn't processed."""
        error = encode(t.ErrorData(code=-32600, message=problem))
        for id in body.request_ids:
            text = encode_error(id, error).decode()
            self._responses.append(text)
            self._responses_size += len(text)

    def _fail(self, cause: str, problem: str) -> None:
        """Close the WebSocket because of an error, our own or the peer's."""
        if self._end is None:
            self._end = _close(cause, problem)
            self._error = RemoteProtocolError(f"the WebSocket was closed: {problem}")
            self._partial = bytearray()

    def _end_by_peer(self, close: Close, reason: str) -> None:
        """Close the WebSocket because the peer closed it, or the stream ended."""
        self._partial = bytearray()
        if self._end is None:
            self._end = close
            self._error = ConnectionLost(f"the {self.conn.role.other.value} {reason}")

    def _closing_frame(self, error: McpTrioError | None) -> Close:
        """Return the Close after our own side closed `conn`."""
        if error is None or isinstance(error, ConnectFailed):
            return _close("done" if self.conn.role is _CLIENT else "going away", "")
        return _close("policy", str(error))


def _close(cause: str, reason: str) -> Close:
    return Close(CODES[cause], reason.encode()[:_MAX_REASON].decode("utf-8", "ignore"))


def _is_due(deadline: float | None, now: float) -> bool:
    return deadline is not None and now >= deadline
