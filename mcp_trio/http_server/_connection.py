"""The common part of HTTP/1.1 and HTTP/2 server connections: reading, writing, timeouts, the end.

A task reads as long as the connection is open, even while a handler runs, so that a disconnecting
client is noticed. The same task writes the output that its own reading caused, which for most calls
is the whole response. Later output is written by the handler's task, or by a new task.

1. Everything except reading and writing happens in `_resume`. It never waits, and one task runs it
   at a time: the one that writes.
2. Received bytes that cannot be used yet are bounded; at the limit nothing more is read.
3. Each connection has one deadline, which moves with its state. A peer that sends or reads too
   slowly loses the connection, or with HTTP/2 the stream.
"""

from __future__ import annotations

import abc
import logging
import math
from contextlib import suppress
from typing import TYPE_CHECKING, Final

import trio
from msgspec import Struct

from mcp_core import escape_text
from mcp_core.runtime import READ_SIZE

if TYPE_CHECKING:
    from collections.abc import Callable

    from mcp_core.http import RequestHead

    from ._driver import HttpServerDriver

__all__ = [
    "BODY_PROGRESS",
    "BODY_SECONDS",
    "HEAD_SECONDS",
    "IDLE_SECONDS",
    "LINGER_SECONDS",
    "MAX_UNWANTED",
    "TEXT_PLAIN",
    "WITHOUT_BODY",
    "WRITE_SECONDS",
    "WRITE_SIZE",
    "AccessLogEntry",
    "HttpServerConnection",
]

# Bytes read ahead while earlier requests are unanswered. Normal clients don't send that much.
_MAX_UNUSED: Final = 64 * 1024
# Bytes of one write, which has WRITE_SECONDS. A client must therefore read at least 8 KiB a second.
WRITE_SIZE: Final = 256 * 1024
# Bytes of an unwanted request body that are read and dropped, so that the client, which is still
# sending, gets to read the error response.
MAX_UNWANTED: Final = 64 * 1024

HEAD_SECONDS: Final = 10.0  # for a request head, and for the first bytes of a connection
BODY_SECONDS: Final = 30.0  # for each BODY_PROGRESS bytes of a request body
BODY_PROGRESS: Final = 30 * 1024
IDLE_SECONDS: Final = 60.0  # keep-alive of an idle connection
WRITE_SECONDS: Final = 30.0
LINGER_SECONDS: Final = 1.0  # for closing, while the client may still be sending

WITHOUT_BODY: Final = frozenset({204, 304})
TEXT_PLAIN: Final = (b"content-type", b"text/plain; charset=utf-8")

_log = logging.getLogger("mcp_trio")


class AccessLogEntry(Struct, frozen=True, gc=False):
    """One line of an access log.

    `method` and `target` are the HTTP request's, such as `"POST"` and `"/mcp"`. `status` is
    0 if the client disconnected before there was a response. `seconds` is the time from the end of
    the request head to the end of the response. `size` is the length of the response body in bytes,
    as it was passed to the connection. `rpc_method` is the MCP method, such as `"tools/call"`;
    empty if unknown or not MCP.

    Hidden characters in the client's texts, such as line feeds, are escaped: an entry can be
    written as one line.
    """

    method: str
    target: str
    status: int
    seconds: float
    size: int
    rpc_method: str = ""


class HttpServerConnection(abc.ABC):
    """A server connection on `stream`, whose requests go to the driver `driver`.

    Await `serve`, and call `shutdown` to shut down. `incoming` has bytes that were already read.
    `on_exchange` is called with the log entry of every exchange when it has ended. `address` is
    the client's, "" if it is unknown.
    """

    def __init__(
        self,
        driver: HttpServerDriver,
        stream: trio.abc.Stream,
        on_exchange: Callable[[AccessLogEntry], object] | None = None,
        incoming: bytes = b"",
        address: str = "",
    ) -> None:
        self._driver = driver
        self._stream = stream
        self._on_exchange = on_exchange
        self._address = address
        self._deadline = driver.deadlines.new(self._handle_timeout)
        self._read_scope = trio.CancelScope()
        self._close_scope = trio.CancelScope()
        self._progressed = trio.lowlevel.ParkingLot()  # `_resume` was run, or a write has ended
        self._incoming = incoming
        self._head_deadline: float  # `serve` sets it
        self._write_deadline: float  # `_write` sets it before `_sending`
        self._early_deadline = math.inf  # when to call `_on_early_deadline`, also during a write
        self._parts: list[bytes] = []  # bytes to write
        self._pump_needed = False  # an exchange was called, so the driver must be pumped
        self._writing = False  # a task runs `_write`, or is about to
        self._sending = False  # `send_all` is running
        self._closing = False  # close when everything is written
        self._broken = False  # writing has failed
        self._lingers = False  # the client may still be sending when we close

    @abc.abstractmethod
    def shutdown(self) -> None:
        """Take no new requests, and close once the running exchanges have ended."""

    @abc.abstractmethod
    def _resume(self, now: float) -> None:
        """Process received bytes and collect output in `_parts`, without waiting."""

    @property
    @abc.abstractmethod
    def _has_open_requests(self) -> bool:
        """True if a request would stay unanswered if the connection ended now."""

    @abc.abstractmethod
    def _abandon_exchanges(self) -> None:
        """Tell the exchanges that aren't complete that the client has disconnected."""

    @abc.abstractmethod
    def _set_deadline(self, now: float) -> None:
        """Set the deadline for what the connection waits for. Everything is written."""

    @abc.abstractmethod
    def _on_deadline(self, now: float) -> None:
        """Handle the deadline that `_set_deadline` set."""

    def _on_early_deadline(self, now: float) -> None:
        """Handle `_early_deadline`, and set it anew."""
        self._early_deadline = math.inf

    async def serve(self) -> None:
        """Serve the connection until either side ends it, then close the stream.

        Exchanges that aren't complete by then see the client as disconnected.
        """
        try:
            self._head_deadline = trio.current_time() + HEAD_SECONDS
            self._deadline.move(self._head_deadline)
            with suppress(trio.BrokenResourceError, trio.ClosedResourceError):
                with self._read_scope:
                    await self._read()
                self._closing = True
                await self._close_gracefully()
        except Exception:  # noqa: BLE001 - it ends this connection and no other
            _log.exception("internal error on %r", self)
        finally:
            self._closing = True
            self._deadline.discard()
            try:
                self._abandon_exchanges()
            except Exception:  # noqa: BLE001 - as above
                _log.exception("internal error on %r", self)
            await trio.aclose_forcefully(self._stream)

    # -- Reading and writing ---------------------------------------------------------------------

    async def _read(self) -> None:
        stream = self._stream
        if self._incoming or self._parts:
            self._writing = True
            await self._write()
        while not self._closing:
            data = await stream.receive_some(READ_SIZE)
            if not data:
                return
            self._incoming = self._incoming + data if self._incoming else bytes(data)
            if not self._writing:
                self._writing = True
                await self._write()
            while len(self._incoming) > _MAX_UNUSED and not self._closing:
                await self._progressed.park()

    def _schedule_write(self) -> None:
        """Have some task run `_write`, unless one does already."""
        if not self._writing:
            self._writing = True
            self._driver.write_soon(self._write)

    async def _write(self) -> None:
        """Alternate `_resume` and writing, until there is no output.

        The caller has set `_writing`.
        """
        stream = self._stream
        parts = self._parts
        try:
            while True:
                now = trio.current_time()
                self._resume(now)
                if self._progressed:
                    self._progressed.unpark_all()
                if not parts:
                    break
                data = parts[0] if len(parts) == 1 else b"".join(parts)
                parts.clear()
                self._write_deadline = now + WRITE_SECONDS
                self._deadline.move(min(self._write_deadline, self._early_deadline))
                self._sending = True
                if len(data) <= WRITE_SIZE:
                    await stream.send_all(data)
                else:
                    await self._write_large(data)
                self._sending = False
            if not self._closing:
                self._set_deadline(now)
        except (trio.BrokenResourceError, trio.ClosedResourceError):
            self._abort()
        except Exception:  # noqa: BLE001 - as above
            _log.exception("internal error on %r", self)
            self._abort()
        finally:
            self._writing = False
            if self._progressed:
                self._progressed.unpark_all()
            if self._closing:
                self._read_scope.cancel()

    async def _write_large(self, data: bytes) -> None:
        view = memoryview(data)
        for start in range(0, len(data), WRITE_SIZE):
            self._write_deadline = trio.current_time() + WRITE_SECONDS
            self._deadline.move(min(self._write_deadline, self._early_deadline))
            await self._stream.send_all(view[start : start + WRITE_SIZE])

    async def _close_gracefully(self) -> None:
        """Close in order after reading has ended, unless a request is still open."""
        if not (self._broken or self._has_open_requests):
            with self._close_scope:
                await self._linger_and_close()

    async def _linger_and_close(self) -> None:
        """Close so that the client can read the last response, although it may still be sending."""
        while self._writing:
            await self._progressed.park()
        self._deadline.move(trio.current_time() + LINGER_SECONDS)
        if self._lingers:
            # A client that sends to a closed socket gets a reset, which deletes the response that
            # it hasn't read yet.
            if isinstance(self._stream, trio.abc.HalfCloseableStream):
                await self._stream.send_eof()
            unwanted = len(self._incoming)
            while unwanted < MAX_UNWANTED and (data := await self._stream.receive_some(READ_SIZE)):
                unwanted += len(data)
        await self._stream.aclose()

    def _close(self) -> None:
        self._closing = True
        self._read_scope.cancel()

    def _abort(self) -> None:
        self._broken = True
        self._close()

    def _handle_timeout(self) -> None:
        try:
            if self._sending:
                if trio.current_time() < self._write_deadline:
                    self._on_early_deadline(trio.current_time())
                    self._deadline.move(min(self._write_deadline, self._early_deadline))
                    return
                self._abort()
                self._close_scope.cancel()
            elif self._writing:
                pass  # the task that is about to run `_write` sets a new deadline
            elif self._closing:
                self._close_scope.cancel()
            else:
                self._on_deadline(trio.current_time())
        except Exception:  # noqa: BLE001 - as above
            _log.exception("internal error on %r", self)
            self._abort()

    # -- The driver ------------------------------------------------------------------------------

    def _pump(self) -> None:
        if self._pump_needed:
            self._pump_needed = False
            self._driver.pump()

    def _pump_quietly(self) -> None:
        if self._pump_needed:
            self._pump_needed = False
            self._driver.pump_logging_errors()

    def _write_access_log(
        self, request: RequestHead, status: int, seconds: float, size: int, rpc_method: str
    ) -> None:
        if self._on_exchange is None:
            return
        method = request.method.decode("ascii", "replace")
        target = request.target.decode("ascii", "replace")
        try:
            self._on_exchange(
                AccessLogEntry(
                    escape_text(method),
                    escape_text(target),
                    status,
                    seconds,
                    size,
                    escape_text(rpc_method),
                )
            )
        except Exception:  # noqa: BLE001 - the callback is the user's code
            _log.exception("on_exchange failed")
