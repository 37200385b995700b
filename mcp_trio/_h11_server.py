"""One connection that speaks HTTP/1.1: what arrives becomes exchanges of a `Site`, one after the other, and what they say is written.

A task reads as long as the connection lives, also while a handler runs, so that a client who goes is noticed. It writes itself
what its own reading has brought about, which for most calls is the whole answer. What others bring about later is written by
whoever has the time: the task of the handler, or one for the purpose.

Rules of this file:

1. Everything but reading and writing is done by `_go_on`, which never waits and is run by one task at a time: the one that writes.
   So answers leave in the order of the requests, and the next request is begun when the answer before it is complete.
2. What is read and cannot be used yet is bounded: beyond that nothing is read. What is said to nobody is not kept.
3. One deadline for each connection, moved as the state of things wants it. Whoever sends or reads too slowly loses the connection.
4. Every way to the end leads through `serve`: the exchange hears of it, the stream is closed.

5. A fault of our own ends the connection where it shows, with 500 if there is still time for it, and no other one.

It decides nothing of MCP. How heads are read and written is `_h11_heads.py`.
"""

from __future__ import annotations

import logging
import math
from contextlib import suppress
from typing import TYPE_CHECKING, Final

import h11
import trio
from msgspec import Struct

from mcp_core.http import Body, End, Head, head_end, unfinished_fault

from ._h11_heads import CHUNKED, Fault, HeadReader, chunks, date_line, status_lines

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from mcp_core.http import Action, Exchange

    from ._h11_heads import ReceivedHead
    from ._reception import Reception

__all__ = ["Exchanged", "H11Connection"]

_READ_SIZE: Final = 65_536
# Requests that were sent before the answer to the first: more than anybody sends who does not mean harm.
_PIPELINED: Final = 64 * 1024
# What is written at once. Someone who takes it in a time just within the limit is read to, at 8 KiB a second.
_WRITE_SIZE: Final = 256 * 1024
# What is read of a body that nobody wants, so that the client gets to read why.
_UNWANTED: Final = 64 * 1024

# Seconds.
_HEAD: Final = 10.0
_BODY: Final = 30.0
_BODY_PROGRESS: Final = 30 * 1024  # bytes in that time
_IDLE: Final = 60.0
_WRITE: Final = 30.0
_LINGER: Final = 1.0

_WITHOUT_BODY: Final = frozenset({204, 304})
_CONTINUE: Final = b"HTTP/1.1 100 Continue\r\n\r\n"
_LENGTH: Final = b"content-length"
_CHUNKED: Final = b"transfer-encoding: chunked\r\n"
_CLOSE: Final = b"connection: close\r\n"
_PLAIN: Final = ((b"content-type", b"text/plain; charset=utf-8"),)

_log = logging.getLogger("mcp_trio")


class Exchanged(Struct, frozen=True, gc=False):
    """One line of an access log. `rpc_method` is what was asked for in words of MCP, `"tools/call"` and so on, and empty if that was
    nothing, or is not known. `status` is 0 if the client went before there was an answer; `seconds` is the time from the end
    of the head of the request to the end of the answer, and `size` the length of the answer's body in bytes, as it was given to
    the connection."""

    method: str
    target: str
    status: int
    seconds: float
    size: int
    rpc_method: str = ""


class H11Connection:
    """Serves what comes over `stream` at `reception`. Await `serve`; nothing else is for others but `poke` and `wind_down`.

    `on_exchange` is told of every exchange when it is over.
    """

    def __init__(
        self,
        reception: Reception,
        stream: trio.abc.Stream,
        on_exchange: Callable[[Exchanged], object] | None = None,
    ) -> None:
        self._reception = reception
        self._stream = stream
        self._on_exchange = on_exchange
        self._deadline = reception.deadlines.new(self._overdue)
        self._reading = trio.CancelScope()
        self._ending = trio.CancelScope()
        self._moved = trio.lowlevel.ParkingLot()  # what was read was used, or a write has ended
        self._heads = HeadReader()
        self._incoming = b""
        self._seen = 0  # bytes of an incomplete head that were searched for its end
        self._head_until = math.inf
        self._parts: list[bytes] = []  # to be written
        self._fed = False  # the site has to be looked after
        self._going_on = False
        self._writing = False  # somebody writes, or is on his way to it
        self._closing = False  # after what is to be written
        self._broken = False  # nothing can be written any more
        self._lingers = False  # the client may be in the midst of sending
        # The exchange that is under way.
        self._exchange: Exchange | None = None
        self._admitting: trio.CancelScope | None = None  # its guard is still asked
        self._expects = False  # the client waits for a word before it sends the body
        self._head: ReceivedHead
        self._chunks: h11.Connection | None = None
        self._left = 0  # of its body, in bytes, or `CHUNKED`
        self._came = 0  # of it since the deadline was set, in bytes
        self._body_until = math.inf
        self._status = 0
        self._size = 0
        self._began = 0.0
        self._framed = False  # the answer goes out in chunks
        self._mute = False  # the answer has no body
        self._last = False  # no other exchange follows

    def __repr__(self) -> str:
        state = "closing" if self._closing else "idle" if self._exchange is None else repr(self._exchange)
        return f"<H11Connection, {state}>"

    # -- For others ----------------------------------------------------------------------------------------------------------

    async def serve(self) -> None:
        """Serve the connection until either side ends it, then close it."""
        try:
            self._head_until = trio.current_time() + _HEAD
            self._deadline.move(self._head_until)
            with suppress(trio.BrokenResourceError, trio.ClosedResourceError):
                with self._reading:
                    await self._read()
                self._closing = True
                if not self._broken and (self._exchange is None or self._exchange.over):
                    with self._ending:
                        await self._end()
        except Exception:  # noqa: BLE001 - rule 5
            _log.exception("our own fault on %r", self)
        finally:
            self._closing = True
            self._deadline.drop()
            try:
                self._lose()
            except Exception:  # noqa: BLE001 - rule 5
                _log.exception("our own fault on %r", self)
            await trio.aclose_forcefully(self._stream)

    def poke(self) -> None:
        """There is something to write."""
        if not (self._going_on or self._writing):
            self._writing = True
            self._reception.write_soon(self._write)

    def wind_down(self) -> None:
        """The server stops. What is under way may come to its end."""
        if self._exchange is None and not self._writing:
            self._close()

    # -- Reading and writing -------------------------------------------------------------------------------------------------

    async def _read(self) -> None:
        stream = self._stream
        while not self._closing:
            data = await stream.receive_some(_READ_SIZE)
            if not data:
                return
            self._incoming = self._incoming + data if self._incoming else bytes(data)
            if not self._writing:
                self._writing = True
                await self._write()
            while len(self._incoming) > _PIPELINED and not self._closing:
                await self._moved.park()

    async def _write(self) -> None:
        """Do what can be done and write what is to be said, until there is nothing of it. `_writing` is claimed before."""
        stream, parts = self._stream, self._parts
        try:
            while True:
                now = trio.current_time()
                self._go_on(now)
                if self._moved:
                    self._moved.unpark_all()
                if not parts:
                    break
                data = parts[0] if len(parts) == 1 else b"".join(parts)
                parts.clear()
                self._deadline.move(now + _WRITE)
                if len(data) <= _WRITE_SIZE:
                    await stream.send_all(data)
                else:
                    await self._write_large(data)
            if not self._closing:
                self._set_deadline(now)
        except (trio.BrokenResourceError, trio.ClosedResourceError):
            self._give_up()
        except Exception:  # noqa: BLE001 - rule 5
            _log.exception("our own fault on %r", self)
            self._give_up()
        finally:
            self._writing = False
            if self._moved:
                self._moved.unpark_all()
            if self._closing:
                self._reading.cancel()

    async def _write_large(self, data: bytes) -> None:
        view = memoryview(data)
        for start in range(0, len(data), _WRITE_SIZE):
            self._deadline.move(trio.current_time() + _WRITE)
            await self._stream.send_all(view[start : start + _WRITE_SIZE])

    async def _end(self) -> None:
        """Nothing more is to be said: close, but let the client read what was."""
        while self._writing:
            await self._moved.park()
        self._deadline.move(trio.current_time() + _LINGER)
        if self._lingers:
            # If it is closed while he sends, his own system throws the answer away.
            if isinstance(self._stream, trio.abc.HalfCloseableStream):
                await self._stream.send_eof()
            unwanted = len(self._incoming)
            while unwanted < _UNWANTED and (data := await self._stream.receive_some(_READ_SIZE)):
                unwanted += len(data)
        await self._stream.aclose()

    def _close(self) -> None:
        self._closing = True
        self._reading.cancel()

    def _give_up(self) -> None:
        self._broken = True
        self._close()

    # -- Deadlines -----------------------------------------------------------------------------------------------------------

    def _set_deadline(self, now: float) -> None:
        if self._exchange is None:
            self._deadline.move(self._head_until if self._incoming else now + _IDLE)
        else:
            self._deadline.move(self._body_until if self._left else math.inf)

    def _overdue(self) -> None:
        try:
            if self._writing:
                self._give_up()
                self._ending.cancel()
            elif self._closing:
                self._ending.cancel()
            elif self._exchange is None:
                if self._incoming:
                    self._refuse(408, "The head of the request took too long.")
                else:
                    self._close()
            elif self._exchange.over:
                self._close()
            elif self._came < _BODY_PROGRESS:
                self._refuse(408, "The body of the request took too long.")
            else:
                self._came = 0
                self._body_until = trio.current_time() + _BODY
                self._deadline.move(self._body_until)
            if self._parts:
                self.poke()
        except Exception:  # noqa: BLE001 - rule 5
            _log.exception("our own fault on %r", self)
            self._give_up()

    # -- What arrives --------------------------------------------------------------------------------------------------------

    def _go_on(self, now: float) -> None:
        """Do all that can be done without waiting. What is to be written is in `_parts` then."""
        self._going_on = True
        try:
            self._pump()
            while not self._closing:
                if self._exchange is None and not self._begin(now):
                    return
                if not self._exchange_goes_on(now):
                    return
                if self._incoming and sum(map(len, self._parts)) > _WRITE_SIZE:
                    return  # who asks without reading gets his answers one by one
        except Fault as fault:
            _log.debug("a request is refused with %d: %s", fault.status, fault)
            self._refuse(fault.status, str(fault))
        except Exception:  # noqa: BLE001 - rule 5
            _log.exception("our own fault on %r", self)
            self._refuse(500, "Internal error.")
        finally:
            self._going_on = False

    def _begin(self, now: float) -> bool:
        """Begin the next exchange, if the whole head of its request is there."""
        incoming = self._incoming
        if not incoming:
            return False
        end = head_end(incoming, self._seen)
        if end is None:
            fault = unfinished_fault(incoming)
            if fault is not None:
                raise Fault(fault.status, fault.reason)
            self._seen = len(incoming)
            if self._head_until == math.inf:
                self._head_until = now + _HEAD
            return False
        self._incoming = incoming[end:]
        self._seen, self._head_until = 0, math.inf
        head = self._head = self._heads.read(incoming[:end])
        self._left = head.length
        self._status = self._size = self._came = 0
        self._framed = self._last = False
        self._began = now
        exchange = self._exchange = self._reception.site.begin(head.request, now, token=self)
        self._fed = True
        if exchange.needs_grant is not None:
            self._admitting = self._reception.admit(exchange)
        self._expects = head.expects
        if not head.length:
            return True
        self._body_until = now + _BODY
        if head.length == CHUNKED:
            self._chunks = chunks(incoming[:end])
            self._chunks.next_event()
        return True

    def _exchange_goes_on(self, now: float) -> bool:
        """Feed the exchange and spell what it says. Gives whether it is complete."""
        exchange = self._exchange
        assert exchange is not None
        if exchange.reading:
            if not self._left:
                exchange.receive_data(b"", now)
                self._fed = True
            elif self._incoming:
                self._read_body(exchange, now)
                self._fed = True
            elif self._expects:
                self._parts.append(_CONTINUE)
            self._expects = False
        self._pump()
        actions = exchange.actions_to_send()
        if actions:
            self._reception.taken(exchange)
            self._spell(exchange, actions)
            if exchange.over and self._left:
                # The rest of the body is thrown away, to a certain degree.
                self._came = 0
                self._body_until = now + _LINGER
        if not exchange.over:
            return False
        if self._left and self._incoming:
            self._read_body(exchange, now)
        if self._left:
            if self._last or self._came >= _UNWANTED:
                self._closing = self._lingers = True
            return False
        self._exchange = self._chunks = None
        self._tell(exchange, now)
        if self._last or self._reception.stopping:
            self._closing = True
            self._lingers = bool(self._incoming)
        return True

    def _pump(self) -> None:
        if self._fed:
            self._fed = False
            self._reception.pump()

    def _read_body(self, exchange: Exchange, now: float) -> None:
        data = self._incoming
        if self._left == CHUNKED:
            self._came += len(data)
            self._incoming = b""
            self._read_chunks(exchange, data, now)
            return
        if len(data) > self._left:
            data, self._incoming = data[: self._left], data[self._left :]
        else:
            self._incoming = b""
        self._came += len(data)
        self._left -= len(data)
        if exchange.reading:
            exchange.receive_data(data, now)
        if not self._left and exchange.reading:
            exchange.receive_data(b"", now)

    def _read_chunks(self, exchange: Exchange, data: bytes, now: float) -> None:
        connection = self._chunks
        assert connection is not None
        try:
            connection.receive_data(data)
            while (event := connection.next_event()) is not h11.NEED_DATA:
                if isinstance(event, h11.Data):
                    if exchange.reading:
                        exchange.receive_data(bytes(event.data), now)
                else:
                    self._left = 0
                    self._incoming = connection.trailing_data[0]
                    if exchange.reading:
                        exchange.receive_data(b"", now)
                    return
        except h11.RemoteProtocolError as exc:
            raise Fault(exc.error_status_hint, str(exc)) from None

    def _lose(self) -> None:
        """The exchange, if there is one, will not come to its end here."""
        exchange, self._exchange = self._exchange, None
        if self._admitting is not None:
            self._admitting.cancel()
        if exchange is not None:
            now = trio.current_time()
            if not exchange.over:
                exchange.disconnected(now)
                self._fed = True
                self._reception.taken(exchange)
            self._tell(exchange, now)
        if self._fed:
            self._fed = False
            self._reception.pump_quietly()

    def _tell(self, exchange: Exchange, now: float) -> None:
        if self._on_exchange is None:
            return
        request = self._head.request
        told = Exchanged(
            request.method.decode("ascii", "replace"),
            request.target.decode("ascii", "replace"),
            self._status,
            now - self._began,
            self._size,
            exchange.method,
        )
        try:
            self._on_exchange(told)
        except Exception:  # noqa: BLE001 - it is the caller's, and no part of what is served
            _log.exception("on_exchange failed")

    # -- What is answered ----------------------------------------------------------------------------------------------------

    def _spell(self, exchange: Exchange, actions: Sequence[Action]) -> None:
        parts = self._parts
        for action in actions:
            kind = type(action)
            if kind is Body:
                data: bytes = action.data  # type: ignore[union-attr]
                self._size += len(data)
                if self._mute or not data:
                    continue
                parts.append(b"%x\r\n%b\r\n" % (len(data), data) if self._framed else data)
            elif kind is Head:
                parts.append(self._spell_head(exchange, action, actions))  # type: ignore[arg-type]
            elif self._framed:
                parts.append(b"0\r\n\r\n")

    def _spell_head(self, exchange: Exchange, head: Head, actions: Sequence[Action]) -> bytes:
        asked, headers = self._head, head.headers
        status = head.status
        is_head = asked.request.method == b"HEAD"
        self._mute = is_head or status in _WITHOUT_BODY
        if (
            exchange.hang_up
            or self._reception.stopping
            or not asked.persists
            or (self._left and (asked.expects or self._left > _UNWANTED))
        ):
            self._last = True
        if self._mute or type(actions[-1]) is not End:
            lines, has_length = status_lines(status, tuple(headers))
            framing = b""
            if not (self._mute or has_length):
                self._framed = asked.speaks_1_1
                self._last = self._last or not asked.speaks_1_1
                framing = _CHUNKED if self._framed else b""
        else:
            # All of it is here. Its length is not among what is remembered of the head.
            lines, _ = status_lines(status, tuple([header for header in headers if header[0] != _LENGTH]))
            framing = b"content-length: %d\r\n" % sum(
                [len(each.data) for each in actions if type(each) is Body]
            )
        self._status = status
        return b"%b%b%b%b\r\n" % (lines, framing, date_line(), _CLOSE if self._last else b"")

    def _refuse(self, status: int, why: str) -> None:
        """Answer with `status`, unless an answer has begun, and hang up."""
        answered = self._exchange is not None and self._status
        if self._exchange is not None and not answered:
            self._status = status
        self._lose()
        self._closing = self._lingers = True
        if not answered:
            text = why.encode() + b"\n"
            lines, _ = status_lines(status, _PLAIN)
            self._parts += (lines, b"content-length: %d\r\n" % len(text), date_line(), _CLOSE, b"\r\n", text)
