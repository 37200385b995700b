"""One connection that speaks HTTP/1.1: what arrives becomes exchanges of a `Site`, one after the other, and what they say is written.

Rules of this file, beside those of `_http_connection.py`:

1. Answers leave in the order of the requests, and the next request is begun when the answer before it is complete.
2. A fault of our own ends the connection where it shows, with 500 if there is still time for it, and no other one.

It decides nothing of MCP. How heads are read and written is `_h11_heads.py`.
"""

from __future__ import annotations

import logging
import math
from typing import TYPE_CHECKING, Final

import h11
import trio

from mcp_core.http import Body, End, Head, head_end, unfinished_fault

from ._h11_heads import CHUNKED, Fault, HeadReader, chunks, date_line, status_lines
from ._http_connection import (
    BODY_PROGRESS,
    BODY_SECONDS,
    HEAD_SECONDS,
    IDLE_SECONDS,
    LINGER_SECONDS,
    PLAIN,
    UNWANTED,
    WITHOUT_BODY,
    WRITE_SIZE,
    HttpConnection,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from mcp_core.http import Action, Exchange

    from ._h11_heads import ReceivedHead
    from ._http_connection import Exchanged
    from ._reception import Reception

__all__ = ["H11Connection"]

_CONTINUE: Final = b"HTTP/1.1 100 Continue\r\n\r\n"
_LENGTH: Final = b"content-length"
_CHUNKED: Final = b"transfer-encoding: chunked\r\n"
_CLOSE: Final = b"connection: close\r\n"

_log = logging.getLogger("mcp_trio")


class H11Connection(HttpConnection):
    """One connection of HTTP/1.1, the token of the exchange that it carries. See `HttpConnection`."""

    def __init__(
        self,
        reception: Reception,
        stream: trio.abc.Stream,
        on_exchange: Callable[[Exchanged], object] | None = None,
        incoming: bytes = b"",
    ) -> None:
        super().__init__(reception, stream, on_exchange, incoming)
        self._heads = HeadReader()
        self._seen = 0  # bytes of an incomplete head that were searched for its end
        self._switched = False  # what follows is a WebSocket
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

    # As the token of its exchange: there is something to write.
    poke = HttpConnection._stir

    def wind_down(self) -> None:
        if self._exchange is None and not self._writing:
            self._close()

    async def _close_up(self) -> None:
        if self._switched:
            await self._go_on_as_socket()
        else:
            await super()._close_up()

    async def _go_on_as_socket(self) -> None:
        while self._writing:
            await self._moved.park()
        self._deadline.move(math.inf)
        if not self._broken:
            from ._websocket import ServedSocket

            assert self._exchange is not None
            await ServedSocket(self._reception, self._stream, self._exchange).carry(self._incoming)

    @property
    def _is_owing(self) -> bool:
        return self._exchange is not None and not self._exchange.over

    # -- Deadlines -----------------------------------------------------------------------------------------------------------

    def _set_deadline(self, now: float) -> None:
        if self._exchange is None:
            self._deadline.move(self._head_until if self._incoming else now + IDLE_SECONDS)
        else:
            self._deadline.move(self._body_until if self._left else math.inf)

    def _wait_no_longer(self, now: float) -> None:
        if self._exchange is None:
            if self._incoming:
                self._refuse(408, "The head of the request took too long.")
            else:
                self._close()
        elif self._exchange.over:
            self._close()
        elif self._came < BODY_PROGRESS:
            self._refuse(408, "The body of the request took too long.")
        else:
            self._came = 0
            self._body_until = now + BODY_SECONDS
            self._deadline.move(self._body_until)
        if self._parts:
            self._stir()

    # -- What arrives --------------------------------------------------------------------------------------------------------

    def _go_on(self, now: float) -> None:
        self._going_on = True
        try:
            if self._fed:
                self._pump()
            while not self._closing:
                if self._exchange is None and not (self._incoming and self._begin(now)):
                    return
                if not self._exchange_goes_on(now):
                    return
                if self._incoming and sum(map(len, self._parts)) > WRITE_SIZE:
                    return  # who asks without reading gets his answers one by one
        except Fault as fault:
            _log.debug("a request is refused with %d: %s", fault.status, fault)
            self._refuse(fault.status, str(fault))
        except Exception:  # noqa: BLE001 - rule 2
            _log.exception("our own fault on %r", self)
            self._refuse(500, "Internal error.")
        finally:
            self._going_on = False

    def _begin(self, now: float) -> bool:
        """Begin the next exchange, if the whole head of its request is there."""
        incoming = self._incoming
        end = head_end(incoming, self._seen)
        if end is None:
            fault = unfinished_fault(incoming)
            if fault is not None:
                raise Fault(fault.status, fault.reason)
            self._seen = len(incoming)
            if self._head_until == math.inf:
                self._head_until = now + HEAD_SECONDS
            return False
        self._incoming = incoming[end:]
        self._seen, self._head_until = 0, math.inf
        head = self._head = self._heads.read(incoming[:end])
        self._left = head.length
        self._status = self._size = self._came = 0
        self._framed = self._last = False
        self._began = now
        exchange = self._exchange = self._reception.site.begin(
            head.request, now, token=self, may_switch=head.speaks_1_1
        )
        self._fed = True
        if exchange.needs_grant is not None:
            self._admitting = self._reception.admit(exchange)
        self._expects = head.expects
        if not head.length:
            return True
        self._body_until = now + BODY_SECONDS
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
                self._reception.site.receive_data(exchange, b"", now)
                self._fed = True
            elif self._incoming:
                self._read_body(exchange, now)
                self._fed = True
            elif self._expects:
                self._parts.append(_CONTINUE)
            self._expects = False
        if self._fed:
            self._pump()
        actions = self._reception.site.actions_to_send(exchange)
        if actions:
            self._reception.taken(exchange)
            if exchange.socket is not None:
                self._switch(actions)
                return False
            self._spell(exchange, actions)
            if exchange.over and self._left:
                # The rest of the body is thrown away, to a certain degree.
                self._came = 0
                self._body_until = now + LINGER_SECONDS
        if not exchange.over:
            return False
        if self._left and self._incoming:
            self._read_body(exchange, now)
        if self._left:
            if self._last or self._came >= UNWANTED:
                self._closing = self._lingers = True
            return False
        self._exchange = self._chunks = None
        if self._on_exchange is not None:
            self._tell_of(exchange, now)
        if self._last or self._reception.stopping:
            self._closing = True
            self._lingers = bool(self._incoming)
        return True

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
            self._reception.site.receive_data(exchange, data, now, end=not self._left)

    def _read_chunks(self, exchange: Exchange, data: bytes, now: float) -> None:
        connection, site = self._chunks, self._reception.site
        assert connection is not None
        try:
            connection.receive_data(data)
            while (event := connection.next_event()) is not h11.NEED_DATA:
                if isinstance(event, h11.Data):
                    if exchange.reading:
                        site.receive_data(exchange, bytes(event.data), now)
                else:
                    self._left = 0
                    self._incoming = connection.trailing_data[0]
                    if exchange.reading:
                        site.receive_data(exchange, b"", now)
                    return
        except h11.RemoteProtocolError as exc:
            raise Fault(exc.error_status_hint, str(exc)) from None

    def _lose(self) -> None:
        exchange, self._exchange = self._exchange, None
        if self._admitting is not None:
            self._admitting.cancel()
        if exchange is not None:
            now = trio.current_time()
            if not exchange.over or self._switched:
                self._reception.site.disconnected(exchange, now)
                self._fed = True
                self._reception.taken(exchange)
            self._tell_of(exchange, now)
        self._pump_quietly()

    def _tell_of(self, exchange: Exchange, now: float) -> None:
        self._tell(self._head.request, self._status, now - self._began, self._size, exchange.method)

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

    def _switch(self, actions: Sequence[Action]) -> None:
        (head,) = actions
        assert isinstance(head, Head)
        lines, _ = status_lines(head.status, tuple(head.headers))
        self._parts += (lines, date_line(), b"\r\n")
        self._status = head.status
        self._switched = self._closing = True

    def _spell_head(self, exchange: Exchange, head: Head, actions: Sequence[Action]) -> bytes:
        asked, headers = self._head, head.headers
        status = head.status
        is_head = asked.request.method == b"HEAD"
        self._mute = is_head or status in WITHOUT_BODY
        if (
            exchange.hang_up
            or self._reception.stopping
            or not asked.persists
            or (self._left and (asked.expects or self._left > UNWANTED))
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
            length = 0
            for each in actions:
                if type(each) is Body:
                    length += len(each.data)
            framing = b"content-length: %d\r\n" % length
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
            lines, _ = status_lines(status, (PLAIN,))
            self._parts += (lines, b"content-length: %d\r\n" % len(text), date_line(), _CLOSE, b"\r\n", text)
