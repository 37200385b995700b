"""WebSockets on trio: frames spelled by wsproto, for a server and for a client. All that is decided is the core's `WebSocket`.

It is also what a transport of one's own takes, apart from where the stream comes from.

Rules of this file:

1. One task reads and one writes. A frame is on its way as a whole or not at all: who writes is not a caller who may be cancelled.
2. After all that arrives comes `pump`, which never waits. Nothing is read while the machine is paused, and nothing is taken from it
   before what was taken has left: so pressure reaches the peer, and who sends much.
"""

from __future__ import annotations

import abc
import contextvars
import logging
import math
from contextlib import suppress
from typing import TYPE_CHECKING, Final

import trio
import wsproto.frame_protocol

from mcp_core import Pump
from mcp_core.http import Close, Spelling, Text

from ._deadlines import Deadlines
from ._nursery import open_quiet_nursery

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from mcp_core import Event
    from mcp_core.http import Exchange, SocketAction, WebSocket

    from ._reception import Reception

__all__ = ["ServedSocket", "SocketCarrier"]

_READ_SIZE: Final = 65_536
_LAST_WORDS: Final = 0.2
_GOODBYE: Final = 1.0
_BROKEN: Final = (trio.BrokenResourceError, trio.ClosedResourceError)

_log = logging.getLogger("mcp_trio")


class _Carried(abc.ABC):
    """Carries `socket` over `stream`. Who is to be told of what happens says so in `pump`, and has its timer."""

    def __init__(self, socket: WebSocket, stream: trio.abc.Stream, *, client: bool) -> None:
        self._socket = socket
        self._stream = stream
        self._spelling = Spelling(socket, wsproto.frame_protocol, client=client)
        self._running = trio.CancelScope()
        self._resumed = trio.lowlevel.ParkingLot()
        self._to_write = trio.lowlevel.ParkingLot()

    def __repr__(self) -> str:
        return f"<{type(self).__name__} of {self._socket!r}>"

    @abc.abstractmethod
    def pump(self) -> None:
        """To be called after any call into the machine, from any task of this run."""

    def sending(self, actions: Sequence[SocketAction]) -> None:  # noqa: B027 - not all care
        """This leaves now."""

    def sent(self) -> None:  # noqa: B027 - not all care
        """What was to leave has left."""

    def poke(self) -> None:
        """Something is to be written, or may be read again, or is over."""
        if self._socket.gone:
            self._running.cancel()
        self._resumed.unpark_all()
        self._to_write.unpark_all()

    async def carry(self, early: bytes = b"") -> None:
        """Carry it until it is over, then close the stream. `early`: what was read of it before."""
        try:
            with self._running:
                async with open_quiet_nursery() as nursery:
                    nursery.start_soon(self._read, early)
                    await self._write()
            with trio.move_on_after(_GOODBYE), suppress(*_BROKEN):
                await self._stream.aclose()
        finally:
            await trio.aclose_forcefully(self._stream)
            self._socket.lost(trio.current_time())
            self.pump()

    async def _read(self, data: bytes) -> None:
        socket = self._socket
        try:
            while True:
                self._spelling.read(data, trio.current_time())
                self.pump()
                while socket.paused:
                    await self._resumed.park()
                data = bytes(await self._stream.receive_some(_READ_SIZE))
                if not data:
                    break
        except _BROKEN:
            pass
        except Exception:  # noqa: BLE001 - it ends this connection and no other
            _log.exception("our own fault on %r", self)
            socket.fail(trio.current_time())
            self.pump()
            return
        socket.lost(trio.current_time())
        self.pump()

    async def _write(self) -> None:
        idle = False
        try:
            while True:
                actions = self._socket.messages_to_send(trio.current_time())
                if actions:
                    await self._send(actions)
                    continue
                if self._socket.over:
                    return
                self.pump()  # what it waits for now is another matter
                if not self._socket.has_to_say:
                    idle = True
                    await self._to_write.park()
                    idle = False
        except _BROKEN:
            self._socket.lost(trio.current_time())
        except trio.Cancelled:
            if idle:
                await self._last_words()
            raise

    async def _send(self, actions: Sequence[SocketAction]) -> None:
        self.sending(actions)
        for piece in self._spelling.pieces(actions, trio.current_time):
            self.pump()  # it has other deadlines now
            await self._stream.send_all(piece)
        if isinstance(actions[-1], Close) and self._socket.deaf and not self._socket.over:
            await self._end()
        self.sent()

    async def _end(self) -> None:
        """We have closed, and shall not see that the peer does so as well: let him see that there is no more, and go."""
        if isinstance(self._stream, trio.abc.HalfCloseableStream):
            await self._stream.send_eof()

    async def _last_words(self) -> None:
        """Say what there is to say although we are cancelled: the peer need not work on for us."""
        with trio.move_on_after(_LAST_WORDS, shield=True), suppress(*_BROKEN):
            # Who is cancelled with us, and has its turn after us, may have something to say.
            await trio.lowlevel.checkpoint()
            while actions := self._socket.messages_to_send(trio.current_time()):
                await self._stream.send_all(self._spelling.write(actions))


class ServedSocket(_Carried):
    """A WebSocket of the site of `reception`, which `exchange` has become."""

    def __init__(self, reception: Reception, stream: trio.abc.Stream, exchange: Exchange) -> None:
        assert exchange.socket is not None
        super().__init__(exchange.socket, stream, client=False)
        self._reception = reception
        self._exchange = exchange
        exchange.token = self

    def pump(self) -> None:
        assert self._exchange.conversation is not None
        self._exchange.conversation.touch()
        self._reception.pump_quietly()
        self.poke()

    def sent(self) -> None:
        self._reception.taken(self._exchange)


class SocketCarrier(_Carried):
    """Carries a client's conversation. `take` is called for each event, in order, without waiting; `tell` with each message that goes.

    *Resource handling*: `aclose` closes the stream. *Error handling*: it never raises; what happens is told by events.
    """

    protocol = "WebSocket"

    def __init__(
        self,
        socket: WebSocket,
        stream: trio.abc.Stream,
        early: bytes,
        take: Callable[[Event], None],
        tell: Callable[[bytes], object] | None = None,
    ) -> None:
        self._deadlines = Deadlines()
        self._deadline = self._deadlines.new(self._overdue)
        super().__init__(socket, stream, client=True)
        self._early = early
        self._over = trio.Event()
        self._tell = tell
        context = contextvars.copy_context()
        self._events = Pump(socket, lambda event: context.run(take, event))

    def start(self, nursery: trio.Nursery) -> None:
        nursery.start_soon(self._run)

    async def _run(self) -> None:
        try:
            async with open_quiet_nursery() as nursery:
                nursery.start_soon(self._deadlines.run)
                await self.carry(self._early)
        finally:
            self._over.set()

    def pump(self) -> None:
        self._events.run()
        deadline = self._socket.next_deadline()
        self._deadline.move(math.inf if deadline is None else deadline)
        self.poke()

    def sending(self, actions: Sequence[SocketAction]) -> None:
        if self._tell is not None:
            for action in actions:
                if isinstance(action, Text):
                    self._tell(action.text.encode())

    async def flush(self) -> None:
        await self._over.wait()

    async def aclose(self) -> None:
        await trio.aclose_forcefully(self._stream)

    def _overdue(self) -> None:
        self._socket.handle_timeout(trio.current_time())
        self.pump()
