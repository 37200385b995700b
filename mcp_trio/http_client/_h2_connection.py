"""An HTTP/2 client connection: many concurrent requests on one stream, where HTTP/1.1 has one.

A reader task runs as long as the connection, so that pings are answered and a closing server is
noticed. A writer task sends, so that a cancelled request cannot leave half a frame on the stream.

1. Received data is passed on at once and nothing is buffered: the flow-control windows are always
   replenished, and no response waits for another. Only the window of a paused response is left as
   it is, so that the server has to wait.
2. A cancelled request resets its stream only, and an error in a response ends its stream only. An
   error in the frames ends the connection.
3. After GOAWAY the connection takes no new requests. Requests that the server hasn't processed
   can be sent elsewhere; the others complete here.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import trio
from h2.errors import ErrorCodes
from h2.events import (
    DataReceived,
    RemoteSettingsChanged,
    ResponseReceived,
    StreamEnded,
    StreamReset,
)
from h2.exceptions import ProtocolError
from h2.settings import SettingCodes
from hpack import NeverIndexedHeaderTuple

from mcp_core import ConnectFailed, ConnectionLost
from mcp_core.http import (
    MAX_RESPONSE_HEAD,
    Body,
    End,
    FrameWatch,
    Head,
    NotProcessed,
    encode_request_head,
    goaway,
    response_head,
)
from mcp_core.runtime import READ_SIZE
from mcp_trio._h2_protocol import INITIAL_WINDOW, H2Protocol

if TYPE_CHECKING:
    from mcp_core.http import Action, GoAway, Headers, RequestHead
    from mcp_core.runtime import EventLike, OnActions

__all__ = ["H2ClientConnection"]

_WRITE_SIZE: Final = 65_536  # bytes of bodies in one write, before other frames get their turn
_CLOSE_TIMEOUT: Final = 1.0  # seconds
# Seconds without any received data, after which a broken path is as likely as a slow server.
_SILENCE_TIMEOUT: Final = 10.0
_PING: Final = b"anybody?"  # the 8 bytes of the PING that checks whether the connection is alive
# Bytes: our flow-control windows for one stream and for the connection. Data is acknowledged at
# once, so they only cover the delay of the path.
_STREAM_WINDOW: Final = 1024 * 1024
_CONNECTION_WINDOW: Final = 16 * 1024 * 1024
# Concurrent requests, even if the server allows more: few servers are tested with more.
_MAX_CONCURRENT: Final = 256
# Bytes of our HPACK table. A server may allow more, but we don't keep more.
_HEADER_TABLE_SIZE: Final = 4 * 1024
_SETTINGS: Final = {
    SettingCodes.ENABLE_PUSH: 0,
    SettingCodes.INITIAL_WINDOW_SIZE: _STREAM_WINDOW,
    SettingCodes.MAX_HEADER_LIST_SIZE: MAX_RESPONSE_HEAD,
}
_SECRET_HEADERS: Final = frozenset((b"authorization", b"proxy-authorization"))
_WITHOUT_BODY: Final = (204, 304)
_WRONG_LENGTH: Final = "the server's answer does not have its declared length"
# The first bytes of servers of other protocols. h2 would wait for more bytes to complete a frame.
_OTHER_PROTOCOLS: Final = {
    b"HTTP/": "it speaks HTTP/1.1",
    b"\x15\x03": "it speaks TLS; is its address https:// instead?",
}


class _H2ClientStream:
    """One request and its response.

    `done` is true when nothing more comes. `problem` is then the reason if the response is
    incomplete, or None. `changed` is set when it is done or paused. While it is paused, `resumed`
    is the event that ends the pause, and `unacknowledged` counts the bytes that arrive.
    """

    __slots__ = (
        "body_left",
        "changed",
        "done",
        "id",
        "is_head",
        "on_actions",
        "problem",
        "response_started",
        "resumed",
        "sent_at",
        "unacknowledged",
        "unsent",
    )

    def __init__(self, id: int, head: RequestHead, body: bytes, on_actions: OnActions) -> None:
        self.id = id
        self.is_head = head.method == b"HEAD"
        self.sent_at = trio.current_time()
        self.body_left = -1  # bytes of the response's body still to come, or -1 if not declared
        self.unsent = memoryview(body)
        self.on_actions = on_actions
        self.response_started = False
        self.changed = trio.Event()
        self.done = False
        self.problem: Exception | None = None
        self.resumed: EventLike | None = None
        self.unacknowledged = 0


class H2ClientConnection:
    """A client connection on `stream`, which is closed at the end.

    Await `open` first. Then up to `capacity` tasks may await `run` at a time. Call `aclose` in any
    case: the connection's tasks are shielded, so that frames can still be sent after a
    cancellation, and only `aclose` ends them.

    `scheme` is the request URLs' scheme. `response_count` is the number of complete responses.
    `received` is True if any byte has arrived.
    """

    protocol = "HTTP/2"

    def __init__(self, stream: trio.abc.Stream, scheme: str) -> None:
        self.response_count = 0
        self.received = False
        self._stream = stream
        self._scheme = scheme
        self._watch = FrameWatch(is_server=False)
        self._http = H2Protocol(_SETTINGS, is_client=True)
        self._streams: dict[int, _H2ClientStream] = {}
        # Streams with unsent body bytes. The first has waited longest for its turn.
        self._unsent: dict[_H2ClientStream, None] = {}
        self._parts: list[bytes] = []  # bytes to write
        self._max_concurrent = 0  # requests, as the server's settings allow
        self._settings_received = trio.Event()  # also set when the connection has ended
        self._goaway: GoAway | None = None
        self._fault = ""  # the error in the received bytes
        self._last_received = 0.0  # time of the last received data
        self._suspect = False  # it may be dead; any received data proves that it isn't
        self._closing = False  # close when everything is written
        self._over = False
        # Bytes of paused responses by which the connection's window is still to be extended.
        self._paused_bytes = 0
        self._data_queued = trio.lowlevel.ParkingLot()
        self._scope = trio.CancelScope(shield=True)
        self._ended = trio.Event()

    def __repr__(self) -> str:
        state = "over" if self._over else "going" if self._goaway is not None else "open"
        return (
            f"<H2ClientConnection {state}, {len(self._streams)} streams, {self.response_count}"
            " responses>"
        )

    @property
    def capacity(self) -> int:
        """The number of requests that may run at once; 0 if it is closing or may be dead."""
        is_open = not (self._over or self._closing or self._suspect) and self._goaway is None
        return self._max_concurrent if is_open else 0

    async def open(self, nursery: trio.Nursery) -> None:
        """Start the connection's tasks in `nursery`, and wait for the server's settings.

        Raises:
            ConnectFailed: the server doesn't speak HTTP/2. The stream is closed.
        """
        self._http.initiate_connection()
        self._http.increment_flow_control_window(_CONNECTION_WINDOW - INITIAL_WINDOW)
        nursery.start_soon(self._serve)
        await self._settings_received.wait()
        if self._over:
            raise ConnectFailed(self._lost_text(response_started=False))

    async def run(self, head: RequestHead, body: bytes, on_actions: OnActions) -> bool:
        """Send a request, and pass its response to `on_actions` in pieces, until `End`.

        If `on_actions` returns an event, the flow-control window of this response isn't extended
        before it is set.

        Returns:
            True if the connection may be used again.

        Raises:
            NotProcessed: the server hasn't processed the request; it can be sent again.
            ConnectionLost: the response is incomplete. What has arrived was passed to `on_actions`.
            ValueError: the request is invalid in HTTP; nothing was sent.
        """
        stream = self._begin(head, body, on_actions)
        try:
            while not stream.done:
                await stream.changed.wait()
                if stream.resumed is not None:
                    await stream.resumed.wait()
                    self._resume(stream)
        finally:
            if not stream.done:
                self._end_stream(stream)
                self._reset(stream, ErrorCodes.CANCEL)
                self._watch.stream_completed()  # the rest of its response may still arrive
                self._check_alive(stream)
        if stream.problem is not None:
            raise stream.problem
        return self.capacity > 0

    def server_closed(self) -> bool:
        """Return True if no new request may use the connection."""
        return not self.capacity

    async def aclose(self) -> None:
        """Send GOAWAY and close the stream.

        It takes at most a second, and when cancelled the stream is closed at once.
        """
        try:
            if not self._closing:
                self._send(goaway(0, ErrorCodes.NO_ERROR))
                self._close()
            with trio.move_on_after(_CLOSE_TIMEOUT):
                await self._ended.wait()
        finally:
            self._scope.cancel()
            await trio.aclose_forcefully(self._stream)

    # -- Sending ---------------------------------------------------------------------------------

    def _begin(self, head: RequestHead, body: bytes, on_actions: OnActions) -> _H2ClientStream:
        fields = encode_request_head(head, self._scheme)
        if body:
            fields.append((b"content-length", b"%d" % len(body)))
        try:
            if not self.capacity:
                raise NotProcessed("the server takes no more requests on this connection")
            id = self._http.get_next_available_stream_id()
            self._http.send_headers(id, _protect_secrets(fields), end_stream=not body)
        except ProtocolError as exc:
            self._max_concurrent = 0  # the stream ids of this connection are exhausted
            raise NotProcessed(str(exc)) from exc
        stream = self._streams[id] = _H2ClientStream(id, head, body, on_actions)
        if body:
            self._unsent[stream] = None
        self._data_queued.unpark_all()
        return stream

    def _send(self, data: bytes) -> None:
        """Queue a frame that h2 did not make, behind those that it has queued."""
        self._parts += (self._http.data_to_send(), data)
        self._data_queued.unpark_all()

    def _reset(self, stream: _H2ClientStream, code: ErrorCodes) -> None:
        """Send RST_STREAM for a stream that has ended for us."""
        try:
            self._http.reset_stream(stream.id, code)
        except ProtocolError:
            return  # the stream is already closed
        self._data_queued.unpark_all()

    def _check_alive(self, stream: _H2ClientStream) -> None:
        """Send a PING after a cancelled request if nothing has arrived for ten seconds.

        The path may be broken, which the system may notice only after 15 minutes. Until any data
        arrives, the connection takes no new requests.
        """
        silent = trio.current_time() - max(stream.sent_at, self._last_received)
        if silent > _SILENCE_TIMEOUT and not self._suspect:
            self._suspect = True
            self._http.ping(_PING)
            self._data_queued.unpark_all()

    def _send_bodies(self) -> None:
        """Send body bytes as far as the windows allow, one frame per stream in turn.

        A body that the server doesn't read blocks no other.
        """
        http = self._http
        left = _WRITE_SIZE
        frames = 0
        for stream in tuple(self._unsent):
            while left and (size := self._sendable(stream, left)):
                part = stream.unsent[:size]
                stream.unsent = stream.unsent[size:]
                http.send_data(stream.id, part, end_stream=not stream.unsent)
                left -= size
                frames += 1
                del self._unsent[stream]
                if not stream.unsent:
                    break
                self._unsent[stream] = None  # behind the others
        self._watch.data_sent(frames)

    def _sendable(self, stream: _H2ClientStream, limit: int) -> int:
        http = self._http
        window = http.local_flow_control_window(stream.id)
        return max(0, min(window, http.max_outbound_frame_size, len(stream.unsent), limit))

    async def _write(self) -> None:
        """Write what is queued, until everything is written and the connection is closing."""
        stream = self._stream
        parts = self._parts
        try:
            while True:
                if self._unsent:
                    self._send_bodies()
                parts.append(self._http.data_to_send())
                data = b"".join(parts)
                parts.clear()
                if data:
                    await stream.send_all(data)
                elif self._closing:
                    await stream.aclose()
                    return
                else:
                    await self._data_queued.park()
        except (trio.BrokenResourceError, trio.ClosedResourceError):
            return  # the server may have sent its reason before it closed; the reader will see it

    # -- Receiving -------------------------------------------------------------------------------

    async def _serve(self) -> None:
        try:
            with self._scope:
                async with trio.open_nursery() as nursery:
                    nursery.start_soon(self._write)
                    await self._read()
                    self._abandon_streams()
                    nursery.cancel_scope.deadline = trio.current_time() + _CLOSE_TIMEOUT
                    self._close()
        finally:
            self._abandon_streams()
            await trio.aclose_forcefully(self._stream)
            self._ended.set()

    async def _read(self) -> None:
        """Read until the connection has ended."""
        while True:
            try:
                data = bytes(await self._stream.receive_some(READ_SIZE))
            except (trio.BrokenResourceError, trio.ClosedResourceError):
                return
            if not data:
                return
            if not self.received:
                self.received = True
                for prefix, problem in _OTHER_PROTOCOLS.items():
                    if data.startswith(prefix):
                        self._fault = problem
                if self._fault:
                    return
            self._receive(data)
            if self._fault or (self._goaway is not None and not self._streams):
                return

    def _receive(self, data: bytes) -> None:
        watch = self._watch
        now = trio.current_time()
        self._last_received = now
        self._suspect = False
        passed = watch.receive(data, now)
        if watch.error is not None:
            self._fail(watch.error.code, watch.error.reason)
            return
        try:
            events = self._http.receive_data(passed)
        except ProtocolError as exc:
            self._http.clear_outbound_data_buffer()
            self._fail(exc.error_code, str(exc))
            return
        self._handle_events(events)
        if self._http.late_frames:
            self._count_late_frames()
        if watch.goaway is not None:
            self._handle_goaway(watch.goaway)
        # Window updates and the like must be sent; and the server may have opened its windows.
        frames = self._http.data_to_send()
        if frames:
            self._parts.append(frames)
        if frames or self._unsent:
            self._data_queued.unpark_all()

    def _count_late_frames(self) -> None:
        self._watch.late_frames(self._http.late_frames)
        self._http.late_frames = 0
        if (error := self._watch.error) is not None:
            self._fail(error.code, error.reason)

    def _handle_events(self, events: list[Any]) -> None:
        """Pass received data to its requests. Consecutive events of one stream go in one call."""
        current: _H2ClientStream | None = None  # the stream of the collected `actions`
        actions: list[Action] = []
        for event in events:
            kind = type(event)
            if kind is RemoteSettingsChanged:
                self._apply_settings()
                continue
            if not (
                kind is DataReceived
                or kind is ResponseReceived
                or kind is StreamEnded
                or kind is StreamReset
            ):
                continue  # interim responses, trailers and the like, which are ignored
            stream = self._streams.get(event.stream_id)
            if kind is DataReceived:
                self._acknowledge(stream, event)
            if stream is None:
                continue
            if stream is not current:
                self._pass_on(current, actions)
                current = stream
                actions = []
            if kind is StreamReset:
                # The client opened the stream, so this reset doesn't count as a flood of resets.
                self._watch.stream_completed()
                problem: ConnectionLost | None = _reset_by_server(event.error_code)
            else:
                problem = _decode(stream, event, actions)
            if problem is not None:
                # What has arrived before the error counts, and may be the complete response.
                self._pass_on(stream, actions)
                current = None
                actions = []
                self._end_stream(stream, problem)
                if kind is not StreamReset:
                    self._reset(stream, ErrorCodes.PROTOCOL_ERROR)
        self._pass_on(current, actions)

    def _acknowledge(self, stream: _H2ClientStream | None, event: DataReceived) -> None:
        """Extend the windows by the size of a DATA frame."""
        size = event.flow_controlled_length
        if stream is None or stream.resumed is None:
            self._http.acknowledge_received_data(size, event.stream_id)
            return
        stream.unacknowledged += size
        # The connection's window is extended all the same: other responses need it.
        self._paused_bytes += size
        if self._paused_bytes >= _STREAM_WINDOW:
            self._http.increment_flow_control_window(self._paused_bytes)
            self._paused_bytes = 0

    def _resume(self, stream: _H2ClientStream) -> None:
        """End a stream's pause: extend its window by what has arrived in the meantime."""
        stream.resumed = None
        size = stream.unacknowledged
        stream.unacknowledged = 0
        if stream.done:
            return
        stream.changed = trio.Event()
        if size:
            try:
                self._http.increment_flow_control_window(size, stream.id)
            except ProtocolError:
                return  # the server has ended the stream
            self._data_queued.unpark_all()

    def _pass_on(self, stream: _H2ClientStream | None, actions: list[Action]) -> None:
        if stream is None or not actions or stream.done:
            return
        try:
            resumed = stream.on_actions(actions)
        except Exception as exc:  # noqa: BLE001 - `run` raises it in the caller's task
            self._end_stream(stream, exc)
            self._reset(stream, ErrorCodes.CANCEL)
            return
        if type(actions[-1]) is End:
            self.response_count += 1
            self._watch.stream_completed()
            unsent = stream in self._unsent
            self._end_stream(stream)
            if unsent:
                # The server has rejected the request without reading all of its body.
                self._reset(stream, ErrorCodes.NO_ERROR)
        elif resumed is not None and stream.resumed is None:
            stream.resumed = resumed
            stream.changed.set()

    def _apply_settings(self) -> None:
        self._max_concurrent = min(
            self._http.remote_settings.max_concurrent_streams, _MAX_CONCURRENT
        )
        if self._http.encoder.header_table_size > _HEADER_TABLE_SIZE:
            self._http.encoder.header_table_size = _HEADER_TABLE_SIZE
        self._settings_received.set()

    def _handle_goaway(self, goaway: GoAway) -> None:
        self._goaway = goaway
        for stream in tuple(self._streams.values()):
            if stream.id > goaway.last_id:
                self._end_stream(
                    stream,
                    NotProcessed(
                        "the server closed the connection before it began with the request"
                    ),
                )

    # -- Ending ----------------------------------------------------------------------------------

    def _end_stream(self, stream: _H2ClientStream, problem: Exception | None = None) -> None:
        """End a stream, for any reason, and wake its `run`. Only the first call has an effect."""
        if self._streams.pop(stream.id, None) is None:
            return
        self._unsent.pop(stream, None)
        stream.problem = problem
        stream.done = True
        stream.changed.set()

    def _fail(self, code: int, reason: str) -> None:
        """End the connection because the server violates the protocol."""
        self._fault = reason
        self._send(goaway(0, code, reason))

    def _close(self) -> None:
        self._closing = True
        self._data_queued.unpark_all()

    def _abandon_streams(self) -> None:
        """End all streams with `ConnectionLost`: nothing more will be received."""
        self._over = True
        for stream in tuple(self._streams.values()):
            text = self._lost_text(response_started=stream.response_started)
            self._end_stream(stream, ConnectionLost(text))
        self._settings_received.set()

    def _lost_text(self, *, response_started: bool) -> str:
        if self._fault:
            return f"the server's answer is not HTTP/2: {self._fault}"
        code = ""
        if self._goaway is not None and self._goaway.code:
            code = f" ({_code_name(self._goaway.code)})"
        where = "in the middle of its" if response_started else "without an"
        return f"the server closed the connection {where} answer{code}"


def _decode(stream: _H2ClientStream, event: Any, actions: list[Action]) -> ConnectionLost | None:
    """Add the actions for an event of `stream` to `actions`. Return the error in it, or None."""
    if type(event) is ResponseReceived:
        head = response_head(event.headers)
        if not isinstance(head, Head):
            return ConnectionLost(f"the head of the server's answer is invalid: {head.reason}")
        stream.response_started = True
        if head.status not in _WITHOUT_BODY and not stream.is_head:
            stream.body_left = int(dict(head.headers).get(b"content-length", b"-1"))
        actions.append(head)
    elif type(event) is DataReceived:
        size = len(event.data)
        if stream.body_left >= 0:
            if size > stream.body_left:
                return ConnectionLost(_WRONG_LENGTH)
            stream.body_left -= size
        if size:
            actions.append(Body(event.data))
    elif stream.body_left > 0:
        return ConnectionLost(_WRONG_LENGTH)
    else:
        actions.append(End())
    return None


def _protect_secrets(fields: Headers) -> Headers:
    """Mark secret headers as never indexed, so that no HPACK table stores them (RFC 7541 7.1.3)."""
    return [
        NeverIndexedHeaderTuple(*field) if field[0] in _SECRET_HEADERS else field
        for field in fields
    ]


def _reset_by_server(code: int) -> ConnectionLost:
    if code == ErrorCodes.REFUSED_STREAM:
        return NotProcessed("the server refused to begin with the request")
    return ConnectionLost(f"the server broke off its answer ({_code_name(code)})")


def _code_name(code: int) -> str:
    try:
        return ErrorCodes(code).name
    except ValueError:
        return f"error {code}"
