"""An HTTP/1.1 server connection: requests become exchanges of a `Router`, one after the other.

1. Pipelined requests are processed in order: the next one starts when the response before it is
   complete.
2. An internal error ends the connection on which it occurs, and no other. The client gets status
   500 if no response has started.

The base class is in `_connection.py`; heads are read and written by `_h11_heads.py`.
"""

from __future__ import annotations

import logging
import math
from typing import TYPE_CHECKING, Final

import h11
import trio

from mcp_core.http import (
    HEAD_TIMEOUT,
    MAX_EMPTY_LINES,
    Body,
    End,
    Head,
    empty_lines,
    find_partial_head_error,
    head_end,
)

from ._connection import (
    BODY_PROGRESS,
    BODY_SECONDS,
    HEAD_SECONDS,
    IDLE_SECONDS,
    LINGER_SECONDS,
    MAX_UNWANTED,
    TEXT_PLAIN,
    WITHOUT_BODY,
    WRITE_SIZE,
    HttpServerConnection,
)
from ._h11_heads import CHUNKED, BadRequest, HeadReader, chunk_parser, date_line, status_lines

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from mcp_core.http import Action, Exchange

    from ._connection import AccessLogEntry
    from ._driver import HttpServerDriver
    from ._h11_heads import ReceivedHead

__all__ = ["H11ServerConnection"]

_BAD_CHUNKS: Final = "The chunks of the body are malformed."
_CR: Final = 0x0D
_CONTINUE: Final = b"HTTP/1.1 100 Continue\r\n\r\n"
_LENGTH: Final = b"content-length"
_CHUNKED: Final = b"transfer-encoding: chunked\r\n"
_CLOSE: Final = b"connection: close\r\n"

_log = logging.getLogger("mcp_trio")


class H11ServerConnection(HttpServerConnection):
    """An HTTP/1.1 connection, which is also the token of its current exchange.

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
        self._heads = HeadReader()
        self._empty_lines = 0  # skipped before the next request
        self._searched = 0  # bytes of an incomplete head in which its end wasn't found
        self._switched = False  # the connection has become a WebSocket
        # The current exchange. What has no value here is set when it begins, or with its head.
        self._exchange: Exchange | None = None
        self._auth_scope: trio.CancelScope | None = None  # around its authorization check
        self._expects_continue: bool  # the client waits for "100 Continue"
        self._head: ReceivedHead
        self._chunk_parser: h11.Connection | None = None
        self._body_left: int  # bytes of the request body still to come, or `CHUNKED`
        self._body_received: int  # bytes of it since the deadline was set
        self._body_deadline: float
        self._status: int
        self._response_size: int
        self._started_at: float
        self._chunked: bool  # the response is sent in chunks
        self._body_omitted: bool  # the response has no body
        self._close_after: bool  # the connection closes after this response

    def __repr__(self) -> str:
        state = (
            "closing"
            if self._closing
            else "idle"
            if self._exchange is None
            else repr(self._exchange)
        )
        return f"<H11ServerConnection, {state}>"

    # -- Called from outside ---------------------------------------------------------------------

    # As its exchange's token: the exchange has output.
    wake = HttpServerConnection._schedule_write

    def shutdown(self) -> None:
        if self._exchange is None and not self._writing:
            self._close()

    async def _close_gracefully(self) -> None:
        if self._switched:
            await self._switch_to_websocket()
        else:
            await super()._close_gracefully()

    async def _switch_to_websocket(self) -> None:
        while self._writing:
            await self._progressed.park()
        self._deadline.move(math.inf)
        if not self._broken:
            from mcp_trio._websocket import WebSocketServerConnection

            assert self._exchange is not None
            await WebSocketServerConnection(self._driver, self._stream, self._exchange).run(
                self._incoming
            )

    @property
    def _has_open_requests(self) -> bool:
        return self._exchange is not None and not self._exchange.over

    # -- Deadlines -------------------------------------------------------------------------------

    def _set_deadline(self, now: float) -> None:
        if self._exchange is None:
            self._deadline.move(self._head_deadline if self._incoming else now + IDLE_SECONDS)
        else:
            self._deadline.move(self._body_deadline if self._body_left else math.inf)

    def _on_deadline(self, now: float) -> None:
        if self._exchange is None:
            if self._incoming:
                self._reject(HEAD_TIMEOUT.status, HEAD_TIMEOUT.reason)
            else:
                self._close()
        elif self._exchange.over:
            self._close()
        elif self._body_received < BODY_PROGRESS:
            self._reject(408, "The body of the request took too long.")
        else:
            self._body_received = 0
            self._body_deadline = now + BODY_SECONDS
            self._deadline.move(self._body_deadline)
        if self._parts:
            self._schedule_write()

    # -- Receiving -------------------------------------------------------------------------------

    def _resume(self, now: float) -> None:
        try:
            if self._pump_needed:
                self._pump()
            while not self._closing:
                if self._exchange is None and not (self._incoming and self._begin(now)):
                    return
                if not self._run_exchange(now):
                    return
                if self._incoming and sum(map(len, self._parts)) > WRITE_SIZE:
                    return  # write before the next request: the client pipelines without reading
        except BadRequest as exc:
            _log.debug("a request is refused with %d: %s", exc.status, exc)
            self._reject(exc.status, str(exc))
        except Exception:  # noqa: BLE001 - rule 2
            _log.exception("internal error on %r", self)
            self._reject(500, "Internal error.")

    def _begin(self, now: float) -> bool:
        """Start the next exchange if its request head is complete. Return False if it isn't."""
        incoming = self._incoming
        if incoming[0] == _CR:
            lines = empty_lines(incoming, MAX_EMPTY_LINES - self._empty_lines)
            self._empty_lines += lines
            incoming = self._incoming = incoming[2 * lines :]
            if lines:
                self._searched = 0
                self._head_deadline = math.inf
            if not incoming:
                return False
        end = head_end(incoming, self._searched)
        if end is None:
            error = find_partial_head_error(incoming)
            if error is not None:
                raise BadRequest(error.status, error.reason)
            self._searched = len(incoming)
            if self._head_deadline == math.inf:
                self._head_deadline = now + HEAD_SECONDS
            return False
        self._incoming = incoming[end:]
        self._empty_lines = 0
        self._searched = 0
        self._head_deadline = math.inf
        head = self._head = self._heads.read(incoming[:end])
        self._body_left = head.length
        self._status = 0
        self._response_size = 0
        self._body_received = 0
        self._chunked = False
        self._close_after = False
        self._started_at = now
        exchange = self._exchange = self._driver.router.begin(
            head.request,
            now,
            token=self,
            address=self._address,
            may_upgrade=head.is_http_1_1,
            http_version="1.1" if head.is_http_1_1 else "1.0",
        )
        self._pump_needed = True
        if exchange.auth_check is not None:
            self._auth_scope = self._driver.start_auth_check(exchange)
        self._expects_continue = head.expects_continue
        self._body_deadline = now + BODY_SECONDS
        if head.length == CHUNKED:
            self._chunk_parser = chunk_parser(incoming[:end])
            self._chunk_parser.next_event()
        return True

    def _run_exchange(self, now: float) -> bool:
        """Feed the exchange and serialize its output. Return True if the exchange is complete."""
        exchange = self._exchange
        assert exchange is not None
        if exchange.reading:
            if not self._body_left:
                self._driver.router.receive_data(exchange, b"", now)
                self._pump_needed = True
            elif self._incoming:
                self._read_body(exchange, now)
                self._pump_needed = True
            elif self._expects_continue:
                self._parts.append(_CONTINUE)
            self._expects_continue = False
        if self._pump_needed:
            self._pump()
        actions = self._driver.router.actions_to_send(exchange)
        if actions:
            self._driver.output_sent(exchange)
            if exchange.socket is not None:
                self._send_switching_head(actions)
                return False
            self._serialize(exchange, actions)
            if exchange.over and self._body_left:
                # The rest of the request body is read and dropped, up to MAX_UNWANTED bytes.
                self._body_received = 0
                self._body_deadline = now + LINGER_SECONDS
        if not exchange.over:
            return False
        if self._body_left and self._incoming:
            self._read_body(exchange, now)
        if self._body_left:
            if self._close_after or self._body_received >= MAX_UNWANTED:
                self._closing = True
                self._lingers = True
            return False
        self._exchange = None
        self._chunk_parser = None
        if self._on_exchange is not None:
            self._log_exchange(exchange, now)
        if self._close_after or self._driver.stopping:
            self._closing = True
            self._lingers = bool(self._incoming)
        return True

    def _read_body(self, exchange: Exchange, now: float) -> None:
        data = self._incoming
        if self._body_left == CHUNKED:
            self._body_received += len(data)
            self._incoming = b""
            self._read_chunks(exchange, data, now)
            return
        if len(data) > self._body_left:
            self._incoming = data[self._body_left :]
            data = data[: self._body_left]
        else:
            self._incoming = b""
        self._body_received += len(data)
        self._body_left -= len(data)
        if exchange.reading:
            self._driver.router.receive_data(exchange, data, now, end=not self._body_left)

    def _read_chunks(self, exchange: Exchange, data: bytes, now: float) -> None:
        connection = self._chunk_parser
        router = self._driver.router
        assert connection is not None
        try:
            connection.receive_data(data)
            while (event := connection.next_event()) is not h11.NEED_DATA:
                if isinstance(event, h11.Data):
                    if exchange.reading:
                        router.receive_data(exchange, bytes(event.data), now)
                else:
                    self._body_left = 0
                    self._incoming = connection.trailing_data[0]
                    if exchange.reading:
                        router.receive_data(exchange, b"", now)
                    return
        except h11.RemoteProtocolError as exc:
            # Its text repeats the bytes in Python's notation.
            _log.debug("malformed chunks: %s", exc)
            raise BadRequest(exc.error_status_hint, _BAD_CHUNKS) from None

    def _abandon_exchanges(self) -> None:
        exchange = self._exchange
        self._exchange = None
        if self._auth_scope is not None:
            self._auth_scope.cancel()
        if exchange is not None:
            now = trio.current_time()
            if not exchange.over or self._switched:
                self._driver.router.disconnected(exchange, now)
                self._pump_needed = True
                self._driver.output_sent(exchange)
            self._log_exchange(exchange, now)
        self._pump_quietly()

    def _log_exchange(self, exchange: Exchange, now: float) -> None:
        self._write_access_log(
            self._head.request,
            self._status,
            now - self._started_at,
            self._response_size,
            exchange.mcp_method,
        )

    # -- Responding ------------------------------------------------------------------------------

    def _serialize(self, exchange: Exchange, actions: Sequence[Action]) -> None:
        parts = self._parts
        for action in actions:
            kind = type(action)
            if kind is Body:
                data: bytes = action.data  # type: ignore[union-attr]
                self._response_size += len(data)
                if self._body_omitted or not data:
                    continue
                parts.append(b"%x\r\n%b\r\n" % (len(data), data) if self._chunked else data)
            elif kind is Head:
                head = self._serialize_head(exchange, action, actions)  # type: ignore[arg-type]
                parts.append(head)
            elif self._chunked:
                parts.append(b"0\r\n\r\n")

    def _send_switching_head(self, actions: Sequence[Action]) -> None:
        (head,) = actions
        assert isinstance(head, Head)
        lines, _ = status_lines(head.status, tuple(head.headers))
        self._parts += (lines, date_line(), b"\r\n")
        self._status = head.status
        self._switched = True
        self._closing = True

    def _serialize_head(self, exchange: Exchange, head: Head, actions: Sequence[Action]) -> bytes:
        request_head = self._head
        headers = head.headers
        status = head.status
        is_head = request_head.request.method == b"HEAD"
        self._body_omitted = is_head or status in WITHOUT_BODY
        if (
            exchange.close_after
            or self._driver.stopping
            or not request_head.keep_alive
            or (
                self._body_left
                and (request_head.expects_continue or self._body_left > MAX_UNWANTED)
            )
        ):
            self._close_after = True
        if self._body_omitted or type(actions[-1]) is not End:
            lines, has_length = status_lines(status, tuple(headers))
            framing = b""
            if not (self._body_omitted or has_length):
                # With HTTP/1.0 the end of the connection ends the body: `keep_alive` is False.
                self._chunked = request_head.is_http_1_1
                framing = _CHUNKED if self._chunked else b""
        else:
            # The response is complete, so its length is known. Content-Length differs by response
            # and isn't part of the cached lines.
            lines, _ = status_lines(
                status, tuple([header for header in headers if header[0] != _LENGTH])
            )
            length = 0
            for each in actions:
                if type(each) is Body:
                    length += len(each.data)
            framing = b"content-length: %d\r\n" % length
        self._status = status
        return b"%b%b%b%b\r\n" % (lines, framing, date_line(), _CLOSE if self._close_after else b"")

    def _reject(self, status: int, reason: str) -> None:
        """Send an error response, unless a response has started, and close the connection."""
        answered = self._exchange is not None and self._status
        if self._exchange is not None and not answered:
            self._status = status
        self._abandon_exchanges()
        self._closing = True
        self._lingers = True
        if not answered:
            text = reason.encode() + b"\n"
            lines, _ = status_lines(status, (TEXT_PLAIN,))
            self._parts += (
                lines,
                b"content-length: %d\r\n" % len(text),
                date_line(),
                _CLOSE,
                b"\r\n",
                text,
            )
