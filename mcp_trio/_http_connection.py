"""What a server's connections of HTTP/1.1 and HTTP/2 have in common: who reads, who writes, and when it ends.

A task reads as long as the connection lives, also while a handler runs, so that a client who goes is noticed. It writes itself
what its own reading has brought about, which for most calls is the whole answer. What others bring about later is written by
whoever has the time: the task of the handler, or one for the purpose.

Rules of this file:

1. Everything but reading and writing is done by `_go_on`, which never waits and is run by one task at a time: the one that writes.
2. What is read and cannot be used yet is bounded: beyond that nothing is read. What is said to nobody is not kept.
3. One deadline for each connection, moved as the state of things wants it. Whoever sends or reads too slowly loses the connection, or
   what of it is his own.
4. Every way to the end leads through `serve`: what is under way hears of it, the stream is closed.

How requests and answers are spelled it refuses to know: `_h11_server.py`, `_h2_server.py`.
"""

from __future__ import annotations

import abc
import logging
import math
from contextlib import suppress
from typing import TYPE_CHECKING, Final

import trio
from msgspec import Struct

if TYPE_CHECKING:
    from collections.abc import Callable

    from mcp_core.http import RequestHead

    from ._reception import Reception

__all__ = [
    "BODY_PROGRESS",
    "BODY_SECONDS",
    "HEAD_SECONDS",
    "IDLE_SECONDS",
    "LINGER_SECONDS",
    "PLAIN",
    "UNWANTED",
    "WITHOUT_BODY",
    "WRITE_SECONDS",
    "WRITE_SIZE",
    "Exchanged",
    "HttpConnection",
]

_READ_SIZE: Final = 65_536
# What was sent before there was an answer to what came before: more than anybody sends who does not mean harm.
_UNUSED: Final = 64 * 1024
# What is written at once. Someone who takes it in a time just within the limit is read to, at 8 KiB a second.
WRITE_SIZE: Final = 256 * 1024
# What is read that nobody wants, so that the client gets to read why.
UNWANTED: Final = 64 * 1024

HEAD_SECONDS: Final = 10.0
BODY_SECONDS: Final = 30.0
BODY_PROGRESS: Final = 30 * 1024  # bytes in that time
IDLE_SECONDS: Final = 60.0
WRITE_SECONDS: Final = 30.0
LINGER_SECONDS: Final = 1.0

WITHOUT_BODY: Final = frozenset({204, 304})
PLAIN: Final = (b"content-type", b"text/plain; charset=utf-8")

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


class HttpConnection(abc.ABC):
    """Serves what comes over `stream` at `reception`, beginning with `incoming`, which was read before. Await `serve`; nothing else is
    for others but `wind_down`.

    `on_exchange` is told of every exchange when it is over.
    """

    def __init__(
        self,
        reception: Reception,
        stream: trio.abc.Stream,
        on_exchange: Callable[[Exchanged], object] | None = None,
        incoming: bytes = b"",
    ) -> None:
        self._reception = reception
        self._stream = stream
        self._on_exchange = on_exchange
        self._deadline = reception.deadlines.new(self._overdue)
        self._reading = trio.CancelScope()
        self._ending = trio.CancelScope()
        self._moved = trio.lowlevel.ParkingLot()  # what was read was used, or a write has ended
        self._incoming = incoming
        self._head_until = math.inf
        self._parts: list[bytes] = []  # to be written
        self._fed = False  # the site has to be looked after
        self._going_on = False
        self._writing = False  # somebody writes, or is on his way to it
        self._sending = False  # the client has to take something
        self._closing = False  # after what is to be written
        self._broken = False  # nothing can be written any more
        self._lingers = False  # the client may be in the midst of sending

    @abc.abstractmethod
    def wind_down(self) -> None:
        """The server stops. What is under way may come to its end."""

    @abc.abstractmethod
    def _go_on(self, now: float) -> None:
        """Do all that can be done without waiting. What is to be written is in `_parts` then."""

    @property
    @abc.abstractmethod
    def _is_owing(self) -> bool:
        """Whether something was asked that will not be answered when the connection ends now."""

    @abc.abstractmethod
    def _lose(self) -> None:
        """What is under way will not come to its end here."""

    @abc.abstractmethod
    def _set_deadline(self, now: float) -> None:
        """All is written that there was."""

    @abc.abstractmethod
    def _wait_no_longer(self, now: float) -> None:
        """The deadline has come that was set."""

    async def serve(self) -> None:
        """Serve the connection until either side ends it, then close it."""
        try:
            self._head_until = trio.current_time() + HEAD_SECONDS
            self._deadline.move(self._head_until)
            with suppress(trio.BrokenResourceError, trio.ClosedResourceError):
                with self._reading:
                    await self._read()
                self._closing = True
                await self._close_up()
        except Exception:  # noqa: BLE001 - it ends this connection, and no other one
            _log.exception("our own fault on %r", self)
        finally:
            self._closing = True
            self._deadline.drop()
            try:
                self._lose()
            except Exception:  # noqa: BLE001 - as above
                _log.exception("our own fault on %r", self)
            await trio.aclose_forcefully(self._stream)

    # -- Reading and writing -------------------------------------------------------------------------------------------------

    async def _read(self) -> None:
        stream = self._stream
        if self._incoming or self._parts:
            self._writing = True
            await self._write()
        while not self._closing:
            data = await stream.receive_some(_READ_SIZE)
            if not data:
                return
            self._incoming = self._incoming + data if self._incoming else bytes(data)
            if not self._writing:
                self._writing = True
                await self._write()
            while len(self._incoming) > _UNUSED and not self._closing:
                await self._moved.park()

    def _stir(self) -> None:
        """There is something to do or to write."""
        if not (self._going_on or self._writing):
            self._writing = True
            self._reception.write_soon(self._write)

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
                self._deadline.move(now + WRITE_SECONDS)
                self._sending = True
                if len(data) <= WRITE_SIZE:
                    await stream.send_all(data)
                else:
                    await self._write_large(data)
                self._sending = False
            if not self._closing:
                self._set_deadline(now)
        except (trio.BrokenResourceError, trio.ClosedResourceError):
            self._give_up()
        except Exception:  # noqa: BLE001 - as above
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
        for start in range(0, len(data), WRITE_SIZE):
            self._deadline.move(trio.current_time() + WRITE_SECONDS)
            await self._stream.send_all(view[start : start + WRITE_SIZE])

    async def _close_up(self) -> None:
        """Nothing more is read for use."""
        if not (self._broken or self._is_owing):
            with self._ending:
                await self._end()

    async def _end(self) -> None:
        """Nothing more is to be said: close, but let the client read what was."""
        while self._writing:
            await self._moved.park()
        self._deadline.move(trio.current_time() + LINGER_SECONDS)
        if self._lingers:
            # If it is closed while he sends, his own system throws the answer away.
            if isinstance(self._stream, trio.abc.HalfCloseableStream):
                await self._stream.send_eof()
            unwanted = len(self._incoming)
            while unwanted < UNWANTED and (data := await self._stream.receive_some(_READ_SIZE)):
                unwanted += len(data)
        await self._stream.aclose()

    def _close(self) -> None:
        self._closing = True
        self._reading.cancel()

    def _give_up(self) -> None:
        self._broken = True
        self._close()

    def _overdue(self) -> None:
        try:
            if self._sending:
                self._give_up()
                self._ending.cancel()
            elif self._writing:
                pass  # whoever is on his way sets another one
            elif self._closing:
                self._ending.cancel()
            else:
                self._wait_no_longer(trio.current_time())
        except Exception:  # noqa: BLE001 - as above
            _log.exception("our own fault on %r", self)
            self._give_up()

    # -- The site ------------------------------------------------------------------------------------------------------------

    def _pump(self) -> None:
        if self._fed:
            self._fed = False
            self._reception.pump()

    def _pump_quietly(self) -> None:
        if self._fed:
            self._fed = False
            self._reception.pump_quietly()

    def _tell(self, request: RequestHead, status: int, seconds: float, size: int, rpc_method: str) -> None:
        """An exchange is over."""
        if self._on_exchange is None:
            return
        method, target = request.method.decode("ascii", "replace"), request.target.decode("ascii", "replace")
        try:
            self._on_exchange(Exchanged(method, target, status, seconds, size, rpc_method))
        except Exception:  # noqa: BLE001 - it is the caller's, and no part of what is served
            _log.exception("on_exchange failed")
