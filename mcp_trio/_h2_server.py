"""One connection that speaks HTTP/2: what arrives becomes exchanges of a `Site`, many at once, and what they say is written.

It is `_h11_server.py` in another spelling; what they have in common is `_http_connection.py`. Rules of this file:

1. What an exchange says is taken when all that it said before has left for its client's window. So a client who does not read one
   answer holds up the handler of that one, and no more is kept of it than was taken at once.
2. A client may send as much of a body as its window has room for, and gets room as the body is read, and only for a body that is. All
   bodies of a connection that are incomplete hold so much memory and no more, but that the oldest of them may always go on.
3. Who sends or takes a body too slowly loses that stream; who takes nothing at all loses the connection.
4. Every way to the end of a stream leads through `_let_go`: the exchange hears of it.
5. A fault of our own ends the stream where it shows, with 500 if there is still time for it, and no other one.

It decides nothing of MCP. What is too much, and what a head is, is said by the core (`FrameWatch`, `request_head`).
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
    HTTP2_STREAMS,
    Body,
    End,
    FrameWatch,
    Head,
    HeadFault,
    goaway,
    rst_stream,
    trailer_fault,
)

from ._h2_streams import STREAM_WINDOW, ServedStream, ServerParser, fields
from ._http_connection import (
    BODY_PROGRESS,
    BODY_SECONDS,
    HEAD_SECONDS,
    IDLE_SECONDS,
    LINGER_SECONDS,
    PLAIN,
    WITHOUT_BODY,
    WRITE_SECONDS,
    WRITE_SIZE,
    HttpConnection,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from mcp_core.http import Action, Exchange

    from ._http_connection import Exchanged
    from ._reception import Reception

__all__ = ["H2Connection"]

# Of one answer, before another one has its turn.
_FRAME: Final = 16 * 1024
# What may be sent to us before we have said anything, on the whole connection: more than all streams make use of as a rule, for nobody
# is to wait there for somebody else's body. And on a stream whose body turns out to be long.
_WINDOW: Final = 1024 * 1024
_BODY_WINDOW: Final = 256 * 1024
# Bytes of incomplete bodies, beyond which only the oldest gets more room.
_HELD: Final = 8 * 1024 * 1024
# What is parsed at once: heads of requests may be so short that thousands of them are in what is read at once, and nobody shall have
# many of them parsed who is not entitled to the first.
_BREATH: Final = 8 * 1024
# A connection that has carried so many requests has nothing to gain from the next, and its numbers come to an end some day.
_REQUESTS: Final = 1_000_000

_CONTINUE: Final = [(b":status", b"100")]
_PING: Final = b"leaving?"

_log = logging.getLogger("mcp_trio")


class H2Connection(HttpConnection):
    """One connection of HTTP/2; the tokens of its exchanges are its streams. See `HttpConnection`."""

    def __init__(
        self,
        reception: Reception,
        stream: trio.abc.Stream,
        on_exchange: Callable[[Exchanged], object] | None = None,
        incoming: bytes = b"",
    ) -> None:
        super().__init__(reception, stream, on_exchange, incoming)
        self._watch = FrameWatch(is_server=True)
        self._h2 = ServerParser()
        self._h2.increment_flow_control_window(_WINDOW - STREAM_WINDOW)
        self._spell_frames()
        self._warned = False  # the client knows that the end is near
        self._left = False  # the client knows which request was the last
        self._owed = 0  # room on the connection that was used up
        self._room = 0  # for bodies, in what is written next
        self._withdrawn: set[int] = set()
        self._requests = 0
        self._streams: dict[int, ServedStream] = {}
        self._poked: dict[ServedStream, None] = {}  # there is something to do
        self._unsent: dict[
            ServedStream, None
        ] = {}  # there is something to send, those first who had no turn for longest
        self._bodies: dict[ServedStream, None] = {}  # there is a body still to come, the oldest first
        self._held = 0  # bytes of these bodies
        # Those that wait for their client, and until when. All wait equally long, so that the first is due first.
        self._waiting: dict[ServedStream, float] = {}
        self._unwanted: dict[
            ServedStream, float
        ] = {}  # answered while more of the request was to come, and until when that is read
        self._acts: dict[type, Callable[[Any, float], None]] = {
            RequestReceived: self._begin,
            DataReceived: self._receive_body,
            TrailersReceived: self._receive_trailers,
            StreamReset: self._receive_reset,
            PingAckReceived: self._receive_pong,
        }

    def __repr__(self) -> str:
        state = "closing" if self._closing else f"{len(self._streams)} streams"
        return f"<H2Connection, {state}>"

    # -- For others ----------------------------------------------------------------------------------------------------------

    def poke(self, stream: ServedStream) -> None:
        """There is something to write on `stream`."""
        self._poked[stream] = None
        self._stir()

    def wind_down(self) -> None:
        """The server stops. What is under way may come to its end. To be called again when nothing is under way any more: until then
        a request that has crossed this word is answered."""
        if self._closing or self._left:
            return
        if self._streams and not self._warned:
            self._warn()
        else:
            self._take_leave()
        self._stir()

    # -- Deadlines -----------------------------------------------------------------------------------------------------------

    def _set_deadline(self, now: float) -> None:
        if self._streams:
            self._head_until = math.inf
            self._deadline.move(min(_first(self._waiting), _first(self._unwanted)))
        elif self._watch.midway or not self._watch.settled:
            if self._head_until == math.inf:
                self._head_until = now + HEAD_SECONDS
            self._deadline.move(self._head_until)
        else:
            self._head_until = math.inf
            self._deadline.move(now + IDLE_SECONDS)

    def _wait_no_longer(self, now: float) -> None:
        if not self._streams:
            self._take_leave()
        while _first(self._waiting) <= now:
            self._run_out_of_patience(next(iter(self._waiting)), now)
        while _first(self._unwanted) <= now:
            self._cut_off(next(iter(self._unwanted)))
        self._stir()

    def _run_out_of_patience(self, stream: ServedStream, now: float) -> None:
        del self._waiting[stream]
        if stream.unsent:
            goes_on = stream.went >= BODY_PROGRESS
        else:
            goes_on = stream.came >= BODY_PROGRESS or stream.window < stream.given // 2  # we have not let it
        if goes_on:
            stream.came = stream.went = 0
            self._waiting[stream] = now + WRITE_SECONDS
        elif stream.unsent:
            self._reset(stream.id, ErrorCodes.CANCEL)
            self._leave(stream, now)
        else:
            self._refuse(stream, 408, "The body of the request took too long.", now)

    # -- What arrives --------------------------------------------------------------------------------------------------------

    def _go_on(self, now: float) -> None:
        """Do all that can be done without waiting. What is to be written is in `_parts` then."""
        self._going_on = True
        self._room = WRITE_SIZE
        try:
            self._pump()
            if self._incoming and not self._closing:
                self._receive(now)
            while not self._closing:
                for stream in tuple(self._poked):
                    if self._poked.pop(stream, stream) is None:
                        self._stream_goes_on(stream, now)
                self._send_bodies(now)
                if not self._poked or self._room <= 0:
                    break
            if self._bodies:
                self._make_room()
            if self._warned and not (self._streams or self._closing):
                self._take_leave()
        except Exception:  # noqa: BLE001 - rule 5
            _log.exception("our own fault on %r", self)
            self._fail(ErrorCodes.INTERNAL_ERROR, "Internal error.")
        finally:
            self._going_on = False
        self._spell_frames()

    def _receive(self, now: float) -> None:
        incoming, self._incoming = self._incoming, b""
        watch = self._watch
        passed = watch.receive(incoming, now)
        if watch.fault is not None:
            self._fail(watch.fault.code, watch.fault.reason)
            return
        if watch.goaway is not None:
            self._warned = True  # the client has nothing more to ask
        for start in range(0, len(passed), _BREATH):
            self._parse(passed[start : start + _BREATH], now)
            if self._closing:
                return
        if self._owed >= _WINDOW // 2:
            self._h2.increment_flow_control_window(self._owed)
            self._owed = 0

    def _parse(self, data: bytes, now: float) -> None:
        try:
            events = self._h2.receive_data(data)
        except ProtocolError as exc:
            _log.debug("not HTTP/2: %s", exc)
            self._hang_up()  # the parser has said why
            return
        # What is withdrawn in the same breath is not begun.
        self._withdrawn = {event.stream_id for event in events if type(event) is StreamReset}
        acts = self._acts
        for event in events:
            act = acts.get(type(event))
            if act is not None:
                act(event, now)
                if self._closing:
                    return

    def _begin(self, event: RequestReceived, now: float) -> None:
        id = event.stream_id
        if id in self._withdrawn:
            return
        if self._left or len(self._streams) >= HTTP2_STREAMS:
            self._turn_down(id, ErrorCodes.REFUSED_STREAM, now)
            return
        self._requests += 1
        if self._requests == _REQUESTS:
            self._warn()
        head = self._h2.head(event.headers)
        if isinstance(head, HeadFault):
            if head.status == 400:
                self._turn_down(id, ErrorCodes.PROTOCOL_ERROR, now)
                return
            stream = self._streams[id] = ServedStream(self, id, None, now)
            stream.ended = event.stream_ended is not None
            self._refuse(stream, head.status, head.reason, now)
            return
        headers, ended = dict(head.headers), event.stream_ended is not None
        length = int(headers.get(b"content-length", b"-1"))
        if ended and length > 0:
            self._turn_down(id, ErrorCodes.PROTOCOL_ERROR, now)
            return
        stream = self._streams[id] = ServedStream(self, id, head, now)
        stream.ended, stream.length = ended, length
        stream.expects = not ended and b"expect" in headers
        self._poked[stream] = None
        try:
            exchange = stream.exchange = self._reception.site.begin(head, now, token=stream)
            self._fed = True
            if exchange.needs_grant is not None:
                stream.admitting = self._reception.admit(exchange)
        except Exception:  # noqa: BLE001 - rule 5
            _log.exception("our own fault on %r", self)
            self._refuse(stream, 500, "Internal error.", now)

    def _receive_body(self, event: DataReceived, now: float) -> None:
        size = event.flow_controlled_length
        self._owed += size
        stream = self._streams.get(event.stream_id)
        if stream is None:
            return
        stream.window -= size
        data = event.data
        stream.came += len(data)
        if stream.length >= 0:
            stream.length -= len(data)
            if stream.length < 0 or (stream.length and event.stream_ended is not None):
                self._break_off(stream, now)
                return
        if stream.complete:
            if event.stream_ended is not None:
                self._part_with(stream)
            return
        exchange = stream.exchange
        if exchange is not None and (exchange.reading or exchange.needs_grant is not None):
            if not stream.body:
                stream.body = data
            else:
                # One buffer, since a list of short pieces would take many times their bytes.
                if type(stream.body) is not bytearray:
                    stream.body = bytearray(stream.body)
                stream.body += data
        stream.ended = event.stream_ended is not None
        self._poked[stream] = None

    def _receive_trailers(self, event: TrailersReceived, now: float) -> None:
        stream = self._streams.get(event.stream_id)
        if stream is None:
            return  # it was reset
        if stream.complete:
            self._part_with(stream)
        elif trailer_fault(event.headers) is not None or stream.length > 0:
            self._break_off(stream, now)
        else:
            stream.ended = True
            self._poked[stream] = None

    def _receive_reset(self, event: StreamReset, now: float) -> None:
        if not event.remote_reset:
            self._count_reset(now)
        stream = self._streams.get(event.stream_id)
        if stream is not None:
            self._leave(stream, now)

    def _receive_pong(self, event: PingAckReceived, now: float) -> None:
        if event.ping_data == _PING and self._warned and not self._left:
            self._take_leave()

    def _stream_goes_on(self, stream: ServedStream, now: float) -> None:
        """Feed the exchange of a stream, and take what it says if what it has said is sent."""
        exchange = stream.exchange
        if exchange is None:
            return
        try:
            if exchange.reading:
                self._feed(stream, exchange, now)
            self._pump()
            if not stream.unsent and (actions := self._reception.site.actions_to_send(exchange)):
                self._spell(stream, actions, now)
                if not stream.unsent:
                    self._reception.taken(exchange)
        except Exception:  # noqa: BLE001 - rule 5
            _log.exception("our own fault on %r", self)
            if stream.id in self._streams:
                self._refuse(stream, 500, "Internal error.", now)

    def _feed(self, stream: ServedStream, exchange: Exchange, now: float) -> None:
        self._fed = True
        data, stream.body = stream.body, b""
        if data:
            self._reception.site.receive_data(exchange, bytes(data), now)
        if stream.ended:
            self._forget_body(stream)
            self._reception.site.receive_data(exchange, b"", now)
        elif exchange.reading:
            if stream.expects and not stream.came:
                self._h2.send_headers(stream.id, _CONTINUE)
            stream.expects = False
            stream.held += len(data)
            self._held += len(data)
            if stream not in self._bodies:
                self._bodies[stream] = None
                self._waiting[stream] = now + BODY_SECONDS

    def _make_room(self) -> None:
        """Let clients send more of the bodies that are read."""
        first = True
        for stream in tuple(self._bodies):
            exchange = stream.exchange
            if exchange is None or not exchange.reading:
                self._forget_body(stream)
            else:
                if stream.window < stream.given // 2 and (first or self._held < _HELD):
                    self._h2.increment_flow_control_window(_BODY_WINDOW - stream.window, stream.id)
                    stream.window = stream.given = _BODY_WINDOW
                first = False

    def _forget_body(self, stream: ServedStream) -> None:
        """It is complete, or not wanted."""
        if stream in self._bodies:
            del self._bodies[stream]
            self._held -= stream.held
            if not stream.unsent:
                self._waiting.pop(stream, None)

    # -- How it ends ---------------------------------------------------------------------------------------------------------

    def _finish(self, stream: ServedStream, now: float) -> None:
        """All of the answer is sent."""
        stream.complete = True
        self._watch.answered()
        self._let_go(stream, now)
        self._tell_of(stream, now)
        if stream.ended:
            self._part_with(stream)
        else:
            # The rest of the body is thrown away, as far as there was room for it: most clients read an answer when they have said their
            # request, and some lose it if the stream is reset in the midst of that (curl 7.88).
            self._unwanted[stream] = now + LINGER_SECONDS

    def _leave(self, stream: ServedStream, now: float) -> None:
        """A stream is over before its time."""
        self._let_go(stream, now)
        self._tell_of(stream, now)
        self._part_with(stream)

    def _break_off(self, stream: ServedStream, now: float) -> None:
        """A request is not what it said it would be, which is worth a word also when it was answered before that came out."""
        try:
            self._h2.reset_stream(stream.id, ErrorCodes.PROTOCOL_ERROR)
        except StreamClosedError:
            self._spell_frames()
            self._parts.append(rst_stream(stream.id, ErrorCodes.PROTOCOL_ERROR))
        self._leave(stream, now)
        self._count_reset(now)

    def _part_with(self, stream: ServedStream) -> None:
        """The client knows that the stream is over."""
        del self._streams[stream.id]
        self._poked.pop(stream, None)
        self._unwanted.pop(stream, None)

    def _cut_off(self, stream: ServedStream) -> None:
        """The rest of a request is not even thrown away."""
        self._reset(stream.id, ErrorCodes.NO_ERROR)
        self._part_with(stream)

    def _let_go(self, stream: ServedStream, now: float) -> None:
        """Of the exchange nothing more is wanted. To itself that is news if it has not come to its own end."""
        stream.unsent, stream.body = b"", b""
        self._forget_body(stream)
        self._unsent.pop(stream, None)
        self._waiting.pop(stream, None)
        if stream.admitting is not None:
            stream.admitting.cancel()
        exchange, stream.exchange = stream.exchange, None
        if exchange is not None:
            stream.method = exchange.method
            if not exchange.over:
                self._reception.site.disconnected(exchange, now)
                self._fed = True
            self._reception.taken(exchange)

    def _lose(self) -> None:
        now = trio.current_time()
        for stream in tuple(self._streams.values()):
            self._leave(stream, now)
        self._pump_quietly()

    @property
    def _is_owing(self) -> bool:
        return bool(self._streams)

    def _tell_of(self, stream: ServedStream, now: float) -> None:
        request, stream.head = stream.head, None  # once
        if request is not None:
            self._tell(request, stream.status, now - stream.began, stream.size, stream.method)

    def _warn(self) -> None:
        """The connection will end: what the client has asked until it knows that is still answered."""
        self._warned = True
        self._spell_frames()
        self._parts.append(goaway(None, ErrorCodes.NO_ERROR))
        self._h2.ping(_PING)

    def _take_leave(self) -> None:
        """What is under way comes to its end, and nothing else is begun."""
        self._warned = self._left = True
        self._spell_frames()
        self._parts.append(goaway(self._h2.highest_inbound_stream_id, ErrorCodes.NO_ERROR))
        if not self._streams:
            self._hang_up()

    def _fail(self, code: int, why: str) -> None:
        """Tell the client why, and hang up."""
        self._spell_frames()
        self._parts.append(goaway(self._h2.highest_inbound_stream_id, code, why))
        self._hang_up()

    def _hang_up(self) -> None:
        self._warned = self._left = True
        self._closing = self._lingers = True
        self._lose()

    # -- What is answered ----------------------------------------------------------------------------------------------------

    def _spell(self, stream: ServedStream, actions: Sequence[Action], now: float) -> None:
        """Send what is said, as far as it can be, and keep the rest in `unsent`."""
        body = b"".join([action.data for action in actions if type(action) is Body])
        over = type(actions[-1]) is End
        stream.size += len(body)
        head = actions[0]
        if isinstance(head, Head):
            is_mute = head.status in WITHOUT_BODY or (
                stream.head is not None and stream.head.method == b"HEAD"
            )
            stream.complete = is_mute or (over and not body)
            self._h2.send_headers(stream.id, fields(head.status, head.headers), end_stream=stream.complete)
            stream.status = head.status
        if stream.complete:
            body = b""
        if body:
            stream.unsent, stream.at, stream.over = body, 0, over
            self._unsent[stream] = None
        elif over:
            if not stream.complete:
                self._h2.end_stream(stream.id)
            self._finish(stream, now)

    def _send_bodies(self, now: float) -> None:
        """Send what waits, in turns."""
        turns = tuple(self._unsent)
        while turns:
            turns = tuple([stream for stream in turns if self._send_some(stream, now)])

    def _send_some(self, stream: ServedStream, now: float) -> bool:
        """Send a frame of what waits. Whether there is more that might be sent."""
        if self._room <= 0:
            return False
        unsent, at = stream.unsent, stream.at
        left = len(unsent) - at
        size = min(left, self._h2.local_flow_control_window(stream.id), _FRAME)
        if size <= 0:
            if stream not in self._waiting:
                stream.went = 0
                self._waiting[stream] = now + WRITE_SECONDS
            return False
        is_last = size == left
        data = unsent if size == len(unsent) else unsent[at : at + size]
        self._h2.send_data(stream.id, data, end_stream=is_last and stream.over)
        self._watch.sent(1)
        self._room -= size
        stream.went += size
        del self._unsent[stream]
        if not is_last:
            stream.at = at + size
            self._unsent[stream] = None  # behind all others
            return True
        stream.unsent = b""
        if stream not in self._bodies:
            self._waiting.pop(stream, None)
        exchange = stream.exchange
        if stream.over:
            self._finish(stream, now)
        else:
            self._poked[stream] = None
        if exchange is not None:
            self._reception.taken(exchange)
        return False

    def _refuse(self, stream: ServedStream, status: int, why: str, now: float) -> None:
        """Answer with `status`, unless an answer has begun, and have nothing more to do with the exchange."""
        self._let_go(stream, now)
        if stream.status:
            self._reset(stream.id, ErrorCodes.INTERNAL_ERROR)
            self._leave(stream, now)
        else:
            text = why.encode() + b"\n"
            headers = [PLAIN, (b"content-length", b"%d" % len(text))]
            self._spell(stream, [Head(status, headers), Body(text), End()], now)

    def _turn_down(self, id: int, code: ErrorCodes, now: float) -> None:
        """The client asks for what it may not ask for."""
        self._reset(id, code)
        self._count_reset(now)

    def _count_reset(self, now: float) -> None:
        """A stream had to be reset, and it was the client's doing."""
        self._watch.reset(now)
        if (fault := self._watch.fault) is not None:
            self._fail(fault.code, fault.reason)

    def _reset(self, id: int, code: ErrorCodes) -> None:
        with suppress(StreamClosedError):  # the client was faster
            self._h2.reset_stream(id, code)

    def _spell_frames(self) -> None:
        frames = self._h2.data_to_send()
        if frames:
            self._parts.append(frames)


def _first(waiting: dict[ServedStream, float]) -> float:
    return next(iter(waiting.values()), math.inf)
