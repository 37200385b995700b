"""One HTTP/2 connection to a server: requests go out, as many at once as the server takes, and their responses come in.

It is `_h11_client.py` in another spelling. A task reads as long as the connection lives, so that signs of life are answered and a
server that goes is noticed, and another one writes, so that nobody who is cancelled leaves half a frame behind.

Rules of this file:

1. What comes is handed on as it comes and nothing is kept. So there is always room for more, and no response waits for another one.
2. Of a body is sent what the server has room for, in turns with other bodies. One that nobody reads holds up itself.
3. Who gives up a request resets its stream and harms no other. A fault in a response ends its stream; a fault in the frames ends the
   connection. If nothing has come for long when a request is given up, no other one goes this way until something does.
4. A server that wants to go (GOAWAY) gets no more requests. Those that it has not processed may be made elsewhere; the others come
   to their end here.
5. Both tasks are shielded: there may be last words to carry. `aclose` ends them, so whoever has opened one closes it.

It does not know what the messages mean, nor which of the connections a request takes. What is too much, and what a head is, is said by
the core (`FrameWatch`, `response_head`).
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
    Body,
    End,
    FrameWatch,
    Head,
    NotProcessed,
    goaway,
    request_fields,
    response_head,
)

from ._h2_parser import Parser

if TYPE_CHECKING:
    from collections.abc import Callable

    from mcp_core.http import Action, GoAway, Headers, RequestHead

__all__ = ["H2Client"]

_READ_SIZE: Final = 65_536
_WRITE_SIZE: Final = 65_536  # of bodies, before it is looked at what else there is to say
_HEAD_SIZE: Final = 65_536
_LAST_WRITE: Final = 1.0
# For whoever has waited so long and heard nothing at all, a way that is cut is as likely as a server that takes its time.
_SILENCE: Final = 10.0
_PING: Final = b"anybody?"
# What may be sent to us on one stream, and on all of them, before we have said that it was read: which is at once.
_STREAM_WINDOW: Final = 1024 * 1024
_WINDOW: Final = 16 * 1024 * 1024
_FIRST_WINDOW: Final = 65_535
# Requests at once. Who says that he takes more has hardly tried it out.
_MOST: Final = 256
# Of headers that we have sent the server remembers as much as it says, but we for our part no more than this.
_TABLE: Final = 4 * 1024
_SETTINGS: Final = {
    SettingCodes.ENABLE_PUSH: 0,
    SettingCodes.INITIAL_WINDOW_SIZE: _STREAM_WINDOW,
    SettingCodes.MAX_HEADER_LIST_SIZE: _HEAD_SIZE,
}
_SECRET: Final = frozenset((b"authorization", b"proxy-authorization"))
_WITHOUT_BODY: Final = (204, 304)
_OTHER_LENGTH: Final = "the server's answer is not as long as it was to be"
# What others say first. None of it is a frame, but it may be too short to show that.
_OTHERS: Final = {
    b"HTTP/": "it speaks HTTP/1.1",
    b"\x15\x03": "it speaks TLS; is its address https:// instead?",
}


class _Stream:
    """One request and its response. `over` is set when nothing more comes, `problem` is why if it did not come to its end."""

    __slots__ = ("answered", "asked_at", "id", "is_head", "left", "over", "problem", "take", "unsent")

    def __init__(self, id: int, head: RequestHead, body: bytes, take: Callable[[list[Action]], None]) -> None:
        self.id = id
        self.is_head = head.method == b"HEAD"
        self.asked_at = trio.current_time()
        self.left = -1  # what is still to come of the response's body, if its head says so
        self.unsent = memoryview(body)
        self.take = take
        self.answered = False
        self.over = trio.Event()
        self.problem: Exception | None = None


class H2Client:
    """A connection over `stream`, which is closed at the end. `scheme` is that of its URLs. Await `open` first, and `aclose` in any case;
    any number of `run` at a time, but no more than `room`.

    `used` is how many responses came to their end, `heard` whether anything has come at all.
    """

    protocol = "HTTP/2"

    def __init__(self, stream: trio.abc.Stream, scheme: str) -> None:
        self.used = 0
        self.heard = False
        self._stream = stream
        self._scheme = scheme
        self._watch = FrameWatch(is_server=False)
        self._http = Parser(_SETTINGS, is_client=True)
        self._streams: dict[int, _Stream] = {}
        self._unsent: dict[
            _Stream, None
        ] = {}  # of whose bodies something is to be sent, those first who had no turn for longest
        self._parts: list[bytes] = []  # to be written
        self._most = 0  # requests at once, as the server says
        self._settled = trio.Event()  # it has said so, or never will
        self._goaway: GoAway | None = None
        self._fault = ""  # what was wrong with what came
        self._heard_at = 0.0
        self._doubted = False  # it may be dead; something that comes says that it is not
        self._closing = False  # after what is to be written
        self._over = False
        self._asleep = trio.lowlevel.ParkingLot()  # who writes, while there is nothing to be written
        self._scope = trio.CancelScope(shield=True)
        self._ended = trio.Event()

    def __repr__(self) -> str:
        state = "over" if self._over else "going" if self._goaway is not None else "open"
        return f"<H2Client {state}, {len(self._streams)} streams, {self.used} responses>"

    @property
    def room(self) -> int:
        """How many requests may be under way at once, as things are; 0 if there will be no more, or if it may be dead."""
        is_open = not (self._over or self._closing or self._doubted) and self._goaway is None
        return self._most if is_open else 0

    async def open(self, nursery: trio.Nursery) -> None:
        """Begin to speak, by tasks in `nursery`, and hear what the server takes.

        Raises:
            ConnectFailed: it does not speak HTTP/2. The stream is closed.
        """
        self._http.initiate_connection()
        self._http.increment_flow_control_window(_WINDOW - _FIRST_WINDOW)
        nursery.start_soon(self._serve)
        await self._settled.wait()
        if self._over:
            raise ConnectFailed(self._why(answered=False))

    async def run(self, head: RequestHead, body: bytes, take: Callable[[list[Action]], None]) -> bool:
        """Send a request and give `take` what comes of the response, in pieces, until `End`.

        Returns:
            whether the connection may be used again.

        Raises:
            NotProcessed: the server says that it has not begun with it.
            ConnectionLost: the response did not come to its end. What came of it was taken.
            ValueError: the request cannot be said in HTTP; nothing was sent.
        """
        stream = self._begin(head, body, take)
        try:
            await stream.over.wait()
        finally:
            if not stream.over.is_set():
                self._leave(stream)
                self._reset(stream, ErrorCodes.CANCEL)
                self._doubt(stream)
        if stream.problem is not None:
            raise stream.problem
        return self.room > 0

    def closed_by_server(self) -> bool:
        """Whether it has gone, or is about to, or may have."""
        return not self.room

    async def aclose(self) -> None:
        """Take leave and close the stream. This waits for a second at most, and not at all if cancelled; the stream is closed anyway."""
        try:
            if not self._closing:
                self._say(goaway(0, ErrorCodes.NO_ERROR))
                self._close()
            with trio.move_on_after(_LAST_WRITE):
                await self._ended.wait()
        finally:
            self._scope.cancel()
            await trio.aclose_forcefully(self._stream)

    # -- What is sent --------------------------------------------------------------------------------------------------------

    def _begin(self, head: RequestHead, body: bytes, take: Callable[[list[Action]], None]) -> _Stream:
        fields = request_fields(head, self._scheme)
        if body:
            fields.append((b"content-length", b"%d" % len(body)))
        try:
            if not self.room:
                raise NotProcessed("the server takes no more requests on this connection")
            id = self._http.get_next_available_stream_id()
            self._http.send_headers(id, _guarded(fields), end_stream=not body)
        except ProtocolError as exc:
            self._most = 0  # its numbers have come to an end
            raise NotProcessed(str(exc)) from exc
        stream = self._streams[id] = _Stream(id, head, body, take)
        if body:
            self._unsent[stream] = None
        self._asleep.unpark_all()
        return stream

    def _say(self, data: bytes) -> None:
        """Behind all that was to be said before."""
        self._parts += (self._http.data_to_send(), data)
        self._asleep.unpark_all()

    def _reset(self, stream: _Stream, code: ErrorCodes) -> None:
        """Of a stream that was left nothing more is to come."""
        if not self._over:
            try:
                self._http.reset_stream(stream.id, code)
            except ProtocolError:
                return  # it was over already
            self._asleep.unpark_all()

    def _doubt(self, stream: _Stream) -> None:
        """A request was given up. If nothing has come for long, then until something does, no other one goes the same way: it may be
        cut, which the system would not tell for a quarter of an hour."""
        silent = trio.current_time() - max(stream.asked_at, self._heard_at)
        if silent > _SILENCE and not (self._over or self._doubted):
            self._doubted = True
            self._http.ping(_PING)
            self._asleep.unpark_all()

    def _send_bodies(self) -> None:
        """As much as there is room for, here and there."""
        http, left = self._http, _WRITE_SIZE
        frames = 0
        for stream in tuple(self._unsent):
            while left and (size := self._sendable(stream, left)):
                part, stream.unsent = stream.unsent[:size], stream.unsent[size:]
                http.send_data(stream.id, part, end_stream=not stream.unsent)
                left -= size
                frames += 1
                del self._unsent[stream]
                if not stream.unsent:
                    break
                self._unsent[stream] = None  # behind the others
        self._watch.sent(frames)

    def _sendable(self, stream: _Stream, most: int) -> int:
        http = self._http
        window = http.local_flow_control_window(stream.id)
        return max(0, min(window, http.max_outbound_frame_size, len(stream.unsent), most))

    async def _write(self) -> None:
        """Write what is to be said, as long as there may be something."""
        stream, parts = self._stream, self._parts
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
                    await self._asleep.park()
        except (trio.BrokenResourceError, trio.ClosedResourceError):
            return  # the server may have said why before it hung up: whoever reads will see

    # -- What comes ----------------------------------------------------------------------------------------------------------

    async def _serve(self) -> None:
        try:
            with self._scope:
                async with trio.open_nursery() as nursery:
                    nursery.start_soon(self._write)
                    await self._read()
                    self._lose()
                    nursery.cancel_scope.deadline = trio.current_time() + _LAST_WRITE
                    self._close()
        finally:
            self._lose()
            await trio.aclose_forcefully(self._stream)
            self._ended.set()

    async def _read(self) -> None:
        """Read until the connection is over."""
        while True:
            try:
                data = bytes(await self._stream.receive_some(_READ_SIZE))
            except (trio.BrokenResourceError, trio.ClosedResourceError):
                return
            if not data:
                return
            if not self.heard:
                self.heard = True
                self._fault = next((what for words, what in _OTHERS.items() if data.startswith(words)), "")
                if self._fault:
                    return
            self._receive(data)
            if self._fault or (self._goaway is not None and not self._streams):
                return

    def _receive(self, data: bytes) -> None:
        watch = self._watch
        now = self._heard_at = trio.current_time()
        self._doubted = False
        passed = watch.receive(data, now)
        if watch.fault is not None:
            self._fail(watch.fault.code, watch.fault.reason)
            return
        try:
            events = self._http.receive_data(passed)
        except ProtocolError as exc:
            self._http.clear_outbound_data_buffer()
            self._fail(exc.error_code, str(exc))
            return
        self._take(events)
        if watch.goaway is not None:
            self._go(watch.goaway)
        # What was read makes room, which is to be said; and there may be room for what we have to say.
        answer = self._http.data_to_send()
        if answer:
            self._parts.append(answer)
        if answer or self._unsent:
            self._asleep.unpark_all()

    def _take(self, events: list[Any]) -> None:
        """Hand on what has come: what belongs together at once."""
        of: _Stream | None = None
        actions: list[Action] = []
        for event in events:
            kind = type(event)
            if kind is RemoteSettingsChanged:
                self._settle()
                continue
            if kind is DataReceived:
                self._http.acknowledge_received_data(event.flow_controlled_length, event.stream_id)
            elif kind is not ResponseReceived and kind is not StreamEnded and kind is not StreamReset:
                continue  # interim responses, fields behind a body and the like: they say nothing that matters here
            stream = self._streams.get(event.stream_id)
            if stream is None:
                continue
            if stream is not of:
                self._hand_on(of, actions)
                of, actions = stream, []
            if kind is StreamReset:
                self._watch.answered()  # it was a stream of ours, of which there are not too many
                problem: ConnectionLost | None = _reset_by_server(event.error_code)
            else:
                problem = _spell(stream, event, actions)
            if problem is not None:
                # What came before counts, and may have been all there is to it.
                self._hand_on(stream, actions)
                of, actions = None, []
                self._leave(stream, problem)
                if kind is not StreamReset:
                    self._reset(stream, ErrorCodes.PROTOCOL_ERROR)
        self._hand_on(of, actions)

    def _hand_on(self, stream: _Stream | None, actions: list[Action]) -> None:
        if stream is None or not actions or stream.over.is_set():
            return
        try:
            stream.take(actions)
        except Exception as exc:  # noqa: BLE001 - it is the caller's, who awaits `run`
            self._leave(stream, exc)
            self._reset(stream, ErrorCodes.CANCEL)
            return
        if type(actions[-1]) is End:
            self.used += 1
            self._watch.answered()
            unsent = stream in self._unsent
            self._leave(stream)
            if unsent:
                self._reset(stream, ErrorCodes.NO_ERROR)  # it was refused without being read

    def _settle(self) -> None:
        self._most = min(self._http.remote_settings.max_concurrent_streams, _MOST)
        if self._http.encoder.header_table_size > _TABLE:
            self._http.encoder.header_table_size = _TABLE
        self._settled.set()

    def _go(self, goaway: GoAway) -> None:
        """The server wants to go."""
        self._goaway = goaway
        for stream in tuple(self._streams.values()):
            if stream.id > goaway.last_id:
                self._leave(
                    stream, NotProcessed("the server closed the connection before it began with the request")
                )

    # -- How it ends ---------------------------------------------------------------------------------------------------------

    def _leave(self, stream: _Stream, problem: Exception | None = None) -> None:
        """A stream is over, whichever way. If it was before, nothing is changed by what comes behind its end."""
        if self._streams.pop(stream.id, None) is None:
            return
        self._unsent.pop(stream, None)
        stream.problem = problem
        stream.over.set()

    def _fail(self, code: int, reason: str) -> None:
        """What came is wrong, and with it all that would come."""
        self._fault = reason
        self._say(goaway(0, code, reason))

    def _close(self) -> None:
        self._closing = True
        self._asleep.unpark_all()

    def _lose(self) -> None:
        """Nothing more will come."""
        self._over = True
        for stream in tuple(self._streams.values()):
            self._leave(stream, ConnectionLost(self._why(answered=stream.answered)))
        self._settled.set()

    def _why(self, *, answered: bool) -> str:
        if self._fault:
            return f"the server's answer is no HTTP/2: {self._fault}"
        told = "" if self._goaway is None or not self._goaway.code else f" ({_name(self._goaway.code)})"
        return f"the server closed the connection {'in the middle of its' if answered else 'without an'} answer{told}"


def _spell(stream: _Stream, event: Any, actions: list[Action]) -> ConnectionLost | None:
    """Add what has come on a stream to `actions`; gives what is wrong with it."""
    if type(event) is ResponseReceived:
        head = response_head(event.headers)
        if not isinstance(head, Head):
            return ConnectionLost(f"the head of the server's answer is none: {head.reason}")
        stream.answered = True
        if head.status not in _WITHOUT_BODY and not stream.is_head:
            stream.left = int(dict(head.headers).get(b"content-length", b"-1"))
        actions.append(head)
    elif type(event) is DataReceived:
        size = len(event.data)
        if stream.left >= 0:
            if size > stream.left:
                return ConnectionLost(_OTHER_LENGTH)
            stream.left -= size
        if size:
            actions.append(Body(event.data))
    elif stream.left > 0:
        return ConnectionLost(_OTHER_LENGTH)
    else:
        actions.append(End())
    return None


def _guarded(fields: Headers) -> Headers:
    """The same, with what is secret kept out of what compression remembers (RFC 7541 7.1.3)."""
    return [NeverIndexedHeaderTuple(*field) if field[0] in _SECRET else field for field in fields]


def _reset_by_server(code: int) -> ConnectionLost:
    if code == ErrorCodes.REFUSED_STREAM:
        return NotProcessed("the server refused to begin with the request")
    return ConnectionLost(f"the server broke off its answer ({_name(code)})")


def _name(code: int) -> str:
    try:
        return ErrorCodes(code).name
    except ValueError:
        return f"error {code}"
