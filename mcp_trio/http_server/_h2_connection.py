"""An HTTP/2 server connection: many concurrent requests become exchanges of a `Router`.

1. Output is pulled from an exchange only after its previous output fit the stream's flow-control
   window. An unread stream then blocks its own handler only, and little is buffered for it. What is
   unread on all streams together is limited too (`UnreadResponses`).
2. A client that sends or reads a body too slowly loses that stream. One that reads nothing at all
   loses the connection.
3. An internal error ends the stream on which it occurs, and no other. The client gets status 500
   if no response has started.

The base class is in `_connection.py`. The core checks rates and heads (`FrameWatch`,
`request_head`).
"""

from __future__ import annotations

import logging
import math
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final

import trio
from h2.errors import ErrorCodes
from h2.events import (
    DataReceived,
    PingAckReceived,
    RequestReceived,
    StreamReset,
    TrailersReceived,
)
from h2.exceptions import ProtocolError, StreamClosedError

from mcp_core.http import (
    MAX_CONCURRENT_STREAMS,
    Body,
    End,
    FrameWatch,
    Head,
    HeadError,
    find_trailer_error,
    goaway,
    rst_stream,
)
from mcp_trio._h2_protocol import INITIAL_WINDOW

from ._connection import (
    BODY_PROGRESS,
    BODY_SECONDS,
    HEAD_SECONDS,
    IDLE_SECONDS,
    LINGER_SECONDS,
    TEXT_PLAIN,
    WITHOUT_BODY,
    WRITE_SECONDS,
    WRITE_SIZE,
    HttpServerConnection,
)
from ._h2_streams import H2ServerProtocol, H2ServerStream, response_head_fields
from ._h2_unread import LONG, UnreadResponses

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from mcp_core.http import Action, Exchange

    from ._connection import AccessLogEntry
    from ._driver import HttpServerDriver

__all__ = ["H2ServerConnection"]

_FRAME_SIZE: Final = 16 * 1024  # bytes of one response, before another gets its turn
# Bytes: our flow-control window for the connection. Normally more than all streams together use, so
# that no request waits there for the body of another.
_CONNECTION_WINDOW: Final = 1024 * 1024
_BODY_WINDOW: Final = 256 * 1024  # bytes: the window of a stream with a long request body
# Bytes of incomplete request bodies on one connection. Beyond that only the window of the oldest is
# opened, which can therefore always proceed.
_MAX_BODY_BYTES: Final = 8 * 1024 * 1024
# Bytes that are parsed at a time. Request heads can be so short that one read has thousands of
# them: stop parsing after the first violation, not after all of them.
_PARSE_SIZE: Final = 8 * 1024
# Requests after which the connection is closed with GOAWAY: a new one costs little by then, and
# stream ids are limited.
_MAX_REQUESTS: Final = 1_000_000

_CONTINUE: Final = [(b":status", b"100")]
# The 8 bytes of the PING behind the first GOAWAY. Its answer shows that the client has seen it.
_PING: Final = b"leaving?"

_log = logging.getLogger("mcp_trio")


class H2ServerConnection(HttpServerConnection):
    """An HTTP/2 connection. Its streams are its exchanges' tokens.

    See `HttpServerConnection`.
    """

    def __init__(
        self,
        driver: HttpServerDriver,
        stream: trio.abc.Stream,
        on_exchange: Callable[[AccessLogEntry], object] | None = None,
        incoming: bytes = b"",
        address: str = "",
    ) -> None:
        super().__init__(driver, stream, on_exchange, incoming, address)
        self._watch = FrameWatch(is_server=True)
        self._h2 = H2ServerProtocol()
        self._h2.increment_flow_control_window(_CONNECTION_WINDOW - INITIAL_WINDOW)
        self._collect_frames()
        self._goaway_announced = False  # GOAWAY without a last stream was sent, or received
        self._goaway_sent = False  # GOAWAY with the last stream was sent
        self._window_consumed = 0  # bytes of the connection's window that the client has used
        self._write_capacity: int  # bytes of bodies that the next write may still have
        self._reset_in_batch: set[int] = set()  # streams that the parsed bytes also reset
        self._request_count = 0
        self._streams: dict[int, H2ServerStream] = {}
        self._ready: dict[H2ServerStream, None] = {}  # streams to run
        # Streams with unsent output. The first has waited longest for its turn.
        self._unsent: dict[H2ServerStream, None] = {}
        self._unread = UnreadResponses(driver.router, self._unsent)
        # Streams with an incomplete request body, the oldest first, and the bytes that they have.
        self._open_bodies: dict[H2ServerStream, None] = {}
        self._body_bytes = 0
        # Deadlines of streams that wait for the client. All wait equally long, so the first entry
        # expires first.
        self._stream_deadlines: dict[H2ServerStream, float] = {}
        # Streams with a response sent before the request was complete, and until when the rest of
        # the request is read and dropped.
        self._drain_deadlines: dict[H2ServerStream, float] = {}
        self._event_handlers: dict[type, Callable[[Any, float], None]] = {
            RequestReceived: self._begin,
            DataReceived: self._receive_body,
            TrailersReceived: self._receive_trailers,
            StreamReset: self._receive_reset,
            PingAckReceived: self._receive_pong,
        }

    def __repr__(self) -> str:
        state = "closing" if self._closing else f"{len(self._streams)} streams"
        return f"<H2ServerConnection, {state}>"

    # -- Called from outside ---------------------------------------------------------------------

    def wake(self, stream: H2ServerStream) -> None:
        """Wake the connection: the exchange of `stream` has output."""
        self._ready[stream] = None
        if stream.exchange is not None and stream.exchange.queued > LONG:
            # Also during a write, which may wait for long: `_run_stream` would be too late.
            self._unread.add_response(stream, trio.current_time())
            self._early_deadline = self._unread.next_deadline()
            self._deadline.move(min(self._deadline.when, self._early_deadline))
        self._schedule_write()

    def shutdown(self) -> None:
        """Shut down in two steps (RFC 9113 6.8): announce GOAWAY, then send the last stream id.

        Requests that crossed the first GOAWAY are still answered. Call this again when no exchange
        is running any more; that call refuses all later requests.
        """
        if self._goaway_sent:
            return
        if self._streams and not self._goaway_announced:
            self._announce_goaway()
        else:
            self._send_goaway()
        self._schedule_write()

    # -- Deadlines -------------------------------------------------------------------------------

    def _set_deadline(self, now: float) -> None:
        if self._streams:
            self._head_deadline = math.inf
            self._deadline.move(
                min(
                    _earliest(self._stream_deadlines),
                    _earliest(self._drain_deadlines),
                    self._early_deadline,
                )
            )
        elif self._watch.in_frame or not self._watch.preface_received:
            if self._head_deadline == math.inf:
                self._head_deadline = now + HEAD_SECONDS
            self._deadline.move(self._head_deadline)
        else:
            self._head_deadline = math.inf
            self._deadline.move(now + IDLE_SECONDS)

    def _on_deadline(self, now: float) -> None:
        if not self._streams:
            self._send_goaway()
        while _earliest(self._stream_deadlines) <= now:
            self._on_stream_timeout(next(iter(self._stream_deadlines)), now)
        while _earliest(self._drain_deadlines) <= now:
            self._stop_draining(next(iter(self._drain_deadlines)))
        if self._early_deadline <= now:
            self._on_early_deadline(now)
        self._schedule_write()

    def _on_early_deadline(self, now: float) -> None:
        self._ready.update(dict.fromkeys(self._unread.handle_deadline(now)))
        self._early_deadline = self._unread.next_deadline()

    def _on_stream_timeout(self, stream: H2ServerStream, now: float) -> None:
        """Extend the deadline of a stream with enough progress, and end any other."""
        del self._stream_deadlines[stream]
        if stream.unsent:
            progressed = stream.sent >= BODY_PROGRESS
        else:
            # A client with less than half of its window waits for us to open it.
            progressed = stream.received >= BODY_PROGRESS or stream.window < stream.window_size // 2
        if progressed:
            stream.received = 0
            stream.sent = 0
            self._stream_deadlines[stream] = now + WRITE_SECONDS
        elif stream.unsent:
            self._reset(stream.id, ErrorCodes.CANCEL)
            self._abandon_stream(stream, now)
        else:
            self._reject(stream, 408, "The body of the request took too long.", now)

    # -- Receiving -------------------------------------------------------------------------------

    def _resume(self, now: float) -> None:
        self._write_capacity = WRITE_SIZE
        try:
            self._pump()
            if self._incoming and not self._closing:
                self._receive(now)
            while not self._closing:
                for stream in tuple(self._ready):
                    if self._ready.pop(stream, stream) is None:
                        self._run_stream(stream, now)
                self._send_bodies(now)
                unread = self._unread
                if (unread.responses or unread.requests) and (held := unread.next_to_run()):
                    self._ready[held] = None
                if not self._ready or self._write_capacity <= 0:
                    break
            self._early_deadline = self._unread.next_deadline()
            self._open_windows()
            if self._goaway_announced and not (self._streams or self._closing):
                self._send_goaway()
        except Exception:  # noqa: BLE001 - rule 3
            _log.exception("internal error on %r", self)
            self._fail(ErrorCodes.INTERNAL_ERROR, "Internal error.")
        self._collect_frames()

    def _receive(self, now: float) -> None:
        incoming = self._incoming
        self._incoming = b""
        watch = self._watch
        passed = watch.receive(incoming, now)
        if watch.error is not None:
            self._fail(watch.error.code, watch.error.reason)
            return
        if watch.goaway is not None:
            self._goaway_announced = True  # the client will send no more requests
        for start in range(0, len(passed), _PARSE_SIZE):
            self._parse(passed[start : start + _PARSE_SIZE], now)
            if self._closing:
                return
        if self._window_consumed >= _CONNECTION_WINDOW // 2:
            self._h2.increment_flow_control_window(self._window_consumed)
            self._window_consumed = 0

    def _parse(self, data: bytes, now: float) -> None:
        try:
            events = self._h2.receive_data(data)
        except ProtocolError as exc:
            _log.debug("not HTTP/2: %s", exc)
            self._close_now()  # h2 has queued a GOAWAY with the reason
            return
        if self._h2.late_frames:
            self._watch.late_frames(self._h2.late_frames)
            self._h2.late_frames = 0
            if self._fail_if_flooded():
                return
        # A request that is reset in the same bytes isn't started.
        self._reset_in_batch = {event.stream_id for event in events if type(event) is StreamReset}
        handlers = self._event_handlers
        for event in events:
            handle = handlers.get(type(event))
            if handle is not None:
                handle(event, now)
                if self._closing:
                    return

    def _begin(self, event: RequestReceived, now: float) -> None:
        id = event.stream_id
        if id in self._reset_in_batch:
            return
        if self._goaway_sent or len(self._streams) >= MAX_CONCURRENT_STREAMS:
            self._reject_stream(id, ErrorCodes.REFUSED_STREAM, now)
            return
        self._request_count += 1
        if self._request_count == _MAX_REQUESTS:
            self._announce_goaway()
        head = self._h2.head(event.headers)
        if isinstance(head, HeadError):
            if head.status == 400:
                self._reject_stream(id, ErrorCodes.PROTOCOL_ERROR, now)
                return
            stream = self._streams[id] = H2ServerStream(self, id, None, now)
            stream.request_complete = event.stream_ended is not None
            self._reject(stream, head.status, head.reason, now)
            return
        headers = dict(head.headers)
        ended = event.stream_ended is not None
        length = int(headers.get(b"content-length", b"-1"))
        if ended and length > 0:
            self._reject_stream(id, ErrorCodes.PROTOCOL_ERROR, now)
            return
        stream = self._streams[id] = H2ServerStream(self, id, head, now)
        stream.request_complete = ended
        stream.body_left = length
        stream.expects_continue = not ended and b"expect" in headers
        self._ready[stream] = None
        try:
            exchange = stream.exchange = self._driver.router.begin(
                head, now, token=stream, address=self._address, http_version="2"
            )
            self._pump_needed = True
            if exchange.auth_check is not None:
                stream.auth_scope = self._driver.start_auth_check(exchange)
        except Exception:  # noqa: BLE001 - rule 3
            _log.exception("internal error on %r", self)
            self._reject(stream, 500, "Internal error.", now)

    def _receive_body(self, event: DataReceived, now: float) -> None:
        size = event.flow_controlled_length
        self._window_consumed += size
        stream = self._streams.get(event.stream_id)
        if stream is None:
            return
        stream.window -= size
        data = event.data
        stream.received += len(data)
        if stream.body_left >= 0:
            stream.body_left -= len(data)
            if stream.body_left < 0 or (stream.body_left and event.stream_ended is not None):
                self._abort_stream(stream, now)
                return
        if stream.response_complete:
            if event.stream_ended is not None:
                self._forget_stream(stream)
            return
        exchange = stream.exchange
        if exchange is not None and (exchange.reading or exchange.auth_check is not None):
            if not stream.body:
                stream.body = data
            else:
                # One buffer: a list of short pieces would take many times the memory of its bytes.
                if type(stream.body) is not bytearray:
                    stream.body = bytearray(stream.body)
                stream.body += data
        stream.request_complete = event.stream_ended is not None
        self._ready[stream] = None

    def _receive_trailers(self, event: TrailersReceived, now: float) -> None:
        stream = self._streams.get(event.stream_id)
        if stream is None:
            return  # the stream was reset
        if stream.response_complete:
            self._forget_stream(stream)
        elif find_trailer_error(event.headers) is not None or stream.body_left > 0:
            self._abort_stream(stream, now)
        else:
            stream.request_complete = True
            self._ready[stream] = None

    def _receive_reset(self, event: StreamReset, now: float) -> None:
        if not event.remote_reset:
            self._count_reset(now)
        stream = self._streams.get(event.stream_id)
        if stream is not None:
            self._abandon_stream(stream, now)

    def _receive_pong(self, event: PingAckReceived, now: float) -> None:
        if event.ping_data == _PING and self._goaway_announced and not self._goaway_sent:
            self._send_goaway()

    def _run_stream(self, stream: H2ServerStream, now: float) -> None:
        """Feed a stream's exchange, and pull its output if the last one is sent (rule 1)."""
        exchange = stream.exchange
        if exchange is None:
            return
        try:
            if exchange.reading and not self._unread.holds_request(stream, now):
                self._feed_exchange(stream, exchange, now)
            self._pump()
            if exchange.queued > LONG and self._unread.holds_response(stream, now):
                return
            if not stream.unsent and (actions := self._driver.router.actions_to_send(exchange)):
                self._send_actions(stream, actions, now)
                if not stream.unsent:
                    self._driver.output_sent(exchange)
        except Exception:  # noqa: BLE001 - rule 3
            _log.exception("internal error on %r", self)
            if stream.id in self._streams:
                self._reject(stream, 500, "Internal error.", now)

    def _feed_exchange(self, stream: H2ServerStream, exchange: Exchange, now: float) -> None:
        self._pump_needed = True
        data = stream.body
        stream.body = b""
        if stream.request_complete:
            self._end_body(stream)
            self._driver.router.receive_data(exchange, bytes(data), now, end=True)
            return
        if data:
            self._driver.router.receive_data(exchange, bytes(data), now)
        if exchange.reading:
            if stream.expects_continue and not stream.received:
                self._h2.send_headers(stream.id, _CONTINUE)
            stream.expects_continue = False
            stream.body_bytes += len(data)
            self._body_bytes += len(data)
            if stream not in self._open_bodies:
                self._open_bodies[stream] = None
                self._stream_deadlines[stream] = now + BODY_SECONDS

    def _open_windows(self) -> None:
        """Open the flow-control windows of bodies that are being read."""
        first = True
        for stream in tuple(self._open_bodies):
            exchange = stream.exchange
            if exchange is None or not exchange.reading:
                self._end_body(stream)
            else:
                if stream.window < stream.window_size // 2 and (
                    first or self._body_bytes < _MAX_BODY_BYTES
                ):
                    self._h2.increment_flow_control_window(_BODY_WINDOW - stream.window, stream.id)
                    stream.window = stream.window_size = _BODY_WINDOW
                first = False

    def _end_body(self, stream: H2ServerStream) -> None:
        """Stop accounting for a request body that is complete or unwanted."""
        if stream in self._open_bodies:
            del self._open_bodies[stream]
            self._body_bytes -= stream.body_bytes
            if not stream.unsent:
                self._stream_deadlines.pop(stream, None)

    # -- Ending ----------------------------------------------------------------------------------

    def _finish_response(self, stream: H2ServerStream, now: float) -> None:
        """End the exchange of a stream whose response is completely sent."""
        stream.response_complete = True
        self._watch.stream_completed()
        self._detach(stream, now)
        self._log_exchange(stream, now)
        if stream.request_complete:
            self._forget_stream(stream)
        else:
            # Read and drop the rest of the body, within the open window. Most clients read the
            # response after they have sent the request, and some lose it if the stream is reset
            # before that (curl 7.88).
            self._drain_deadlines[stream] = now + LINGER_SECONDS

    def _abandon_stream(self, stream: H2ServerStream, now: float) -> None:
        """End a stream whose response is incomplete."""
        self._detach(stream, now)
        self._log_exchange(stream, now)
        self._forget_stream(stream)

    def _abort_stream(self, stream: H2ServerStream, now: float) -> None:
        """Reset a stream whose body contradicts its head, even if it was already answered."""
        try:
            self._h2.reset_stream(stream.id, ErrorCodes.PROTOCOL_ERROR)
        except StreamClosedError:
            self._collect_frames()
            self._parts.append(rst_stream(stream.id, ErrorCodes.PROTOCOL_ERROR))
        self._abandon_stream(stream, now)
        self._count_reset(now)

    def _forget_stream(self, stream: H2ServerStream) -> None:
        """Remove a stream that is closed on both sides."""
        del self._streams[stream.id]
        self._ready.pop(stream, None)
        self._drain_deadlines.pop(stream, None)

    def _stop_draining(self, stream: H2ServerStream) -> None:
        """Reset a stream instead of reading the rest of its request."""
        self._reset(stream.id, ErrorCodes.NO_ERROR)
        self._forget_stream(stream)

    def _detach(self, stream: H2ServerStream, now: float) -> None:
        """Detach a stream's exchange. Every end of a stream calls this.

        An exchange that isn't complete sees the client as disconnected.
        """
        self._unread.discard(stream)
        stream.unsent = b""
        stream.body = b""
        self._end_body(stream)
        self._unsent.pop(stream, None)
        self._stream_deadlines.pop(stream, None)
        if stream.auth_scope is not None:
            stream.auth_scope.cancel()
        exchange = stream.exchange
        stream.exchange = None
        if exchange is not None:
            stream.rpc_method = exchange.mcp_method
            if not exchange.over:
                self._driver.router.disconnected(exchange, now)
                self._pump_needed = True
            self._driver.output_sent(exchange)

    def _abandon_exchanges(self) -> None:
        now = trio.current_time()
        for stream in tuple(self._streams.values()):
            self._abandon_stream(stream, now)
        self._pump_quietly()

    @property
    def _has_open_requests(self) -> bool:
        return bool(self._streams)

    def _log_exchange(self, stream: H2ServerStream, now: float) -> None:
        request = stream.head
        stream.head = None  # each exchange is logged once
        if request is not None:
            self._write_access_log(
                request,
                stream.status,
                now - stream.started_at,
                stream.response_size,
                stream.rpc_method,
            )

    def _announce_goaway(self) -> None:
        """Send GOAWAY without a last stream id: requests that cross it are still answered.

        The answer to the PING behind it shows that the client has seen it.
        """
        self._goaway_announced = True
        self._collect_frames()
        self._parts.append(goaway(None, ErrorCodes.NO_ERROR))
        self._h2.ping(_PING)

    def _send_goaway(self) -> None:
        """Send GOAWAY with the last stream id. Running exchanges complete; no other is started."""
        self._goaway_announced = True
        self._goaway_sent = True
        self._collect_frames()
        self._parts.append(goaway(self._h2.highest_inbound_stream_id, ErrorCodes.NO_ERROR))
        if not self._streams:
            self._close_now()

    def _fail(self, code: int, reason: str) -> None:
        """Send GOAWAY with an error, and close."""
        self._collect_frames()
        self._parts.append(goaway(self._h2.highest_inbound_stream_id, code, reason))
        self._close_now()

    def _close_now(self) -> None:
        self._goaway_announced = True
        self._goaway_sent = True
        self._closing = True
        self._lingers = True
        self._abandon_exchanges()

    # -- Responding ------------------------------------------------------------------------------

    def _send_actions(self, stream: H2ServerStream, actions: Sequence[Action], now: float) -> None:
        """Send the head in `actions`, and queue their body in `unsent`."""
        body = b"".join([action.data for action in actions if type(action) is Body])
        over = type(actions[-1]) is End
        stream.response_size += len(body)
        head = actions[0]
        if isinstance(head, Head):
            body_omitted = head.status in WITHOUT_BODY or (
                stream.head is not None and stream.head.method == b"HEAD"
            )
            stream.response_complete = body_omitted or (over and not body)
            self._h2.send_headers(
                stream.id,
                response_head_fields(head.status, head.headers),
                end_stream=stream.response_complete,
            )
            stream.status = head.status
        if stream.response_complete:
            body = b""
        if body:
            stream.unsent = body
            stream.unsent_offset = 0
            self._unread.sending += len(body)
            stream.end_after = over
            self._unsent[stream] = None
        elif over:
            if not stream.response_complete:
                self._h2.end_stream(stream.id)
            self._finish_response(stream, now)

    def _send_bodies(self, now: float) -> None:
        """Send unsent bodies, one frame per stream in turn."""
        turns = tuple(self._unsent)
        while turns:
            turns = tuple([stream for stream in turns if self._send_frame(stream, now)])

    def _send_frame(self, stream: H2ServerStream, now: float) -> bool:
        """Send one frame of a body. Return True if another could be sent now."""
        if self._write_capacity <= 0:
            return False
        unsent = stream.unsent
        offset = stream.unsent_offset
        left = len(unsent) - offset
        size = min(left, self._h2.local_flow_control_window(stream.id), _FRAME_SIZE)
        if size <= 0:
            if stream not in self._stream_deadlines:
                stream.sent = 0
                self._stream_deadlines[stream] = now + WRITE_SECONDS
            return False
        is_last = size == left
        data = unsent[offset : offset + size]
        self._h2.send_data(stream.id, data, end_stream=is_last and stream.end_after)
        self._watch.data_sent(1)
        self._write_capacity -= size
        self._unread.sending -= size
        self._unread.sent += size
        stream.sent += size
        del self._unsent[stream]
        if not is_last:
            stream.unsent_offset = offset + size
            self._unsent[stream] = None  # behind the others
            return True
        stream.unsent = b""
        if stream not in self._open_bodies:
            self._stream_deadlines.pop(stream, None)
        exchange = stream.exchange
        if stream.end_after:
            self._finish_response(stream, now)
        else:
            self._ready[stream] = None
        if exchange is not None:
            self._driver.output_sent(exchange)
        return False

    def _reject(self, stream: H2ServerStream, status: int, reason: str, now: float) -> None:
        """Send an error response, or reset the stream if a response has started."""
        self._detach(stream, now)
        if stream.status:
            self._reset(stream.id, ErrorCodes.INTERNAL_ERROR)
            self._abandon_stream(stream, now)
        else:
            text = reason.encode() + b"\n"
            headers = [TEXT_PLAIN, (b"content-length", b"%d" % len(text))]
            self._send_actions(stream, [Head(status, headers), Body(text), End()], now)

    def _reject_stream(self, id: int, code: ErrorCodes, now: float) -> None:
        """Reset the stream of a request that isn't allowed."""
        self._reset(id, code)
        self._count_reset(now)

    def _count_reset(self, now: float) -> None:
        """Count a reset that the client caused. Too many of them end the connection."""
        self._watch.stream_reset(now)
        self._fail_if_flooded()

    def _fail_if_flooded(self) -> bool:
        if (error := self._watch.error) is not None:
            self._fail(error.code, error.reason)
        return error is not None

    def _reset(self, id: int, code: ErrorCodes) -> None:
        with suppress(StreamClosedError):  # the client has already closed the stream
            self._h2.reset_stream(id, code)

    def _collect_frames(self) -> None:
        frames = self._h2.data_to_send()
        if frames:
            self._parts.append(frames)


def _earliest(waiting: dict[H2ServerStream, float]) -> float:
    return next(iter(waiting.values()), math.inf)
