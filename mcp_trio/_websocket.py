"""Run the core's `WebSocket` on a trio stream, for a server and for a client.

`WebSocket` decides everything about the protocol, and wsproto encodes and decodes the frames. A
custom transport needs no more than this, apart from where its stream comes from.

1. One task reads and one task writes. Callers never write, so a cancelled call cannot leave half a
   frame on the stream.
2. Received data is followed by `pump`, which never waits. Nothing is read while it is
   paused, and no more output is taken from it before the last output was sent: backpressure reaches
   the peer, and the tasks that send.
"""

from __future__ import annotations

import abc
import contextvars
import logging
import math
from contextlib import suppress
from typing import TYPE_CHECKING, Final, Protocol

import trio
import wsproto.frame_protocol

from mcp_core import Pump
from mcp_core.http import Close, Text, WebSocketFrames
from mcp_core.runtime import READ_SIZE
from mcp_trio.streams._link import FLUSH_ON_CANCEL_TIMEOUT

from ._deadlines import DeadlineRunner
from ._nursery import open_quiet_nursery

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from mcp_core import Event
    from mcp_core.http import Exchange, WebSocket, WebSocketAction

__all__ = ["WebSocketServerConnection", "WebSocketTransport"]

_CLOSE_TIMEOUT: Final = 1.0  # seconds for an orderly close of the stream, such as by TLS
_BROKEN: Final = (trio.BrokenResourceError, trio.ClosedResourceError)

_log = logging.getLogger("mcp_trio")


class _WebSocketConnection(abc.ABC):
    """One WebSocket on one stream. A subclass delivers events in `pump`, and runs the timer."""

    def __init__(self, socket: WebSocket, stream: trio.abc.Stream, *, client: bool) -> None:
        self._socket = socket
        self._stream = stream
        self._frames = WebSocketFrames(socket, wsproto.frame_protocol, client=client)
        self._run_scope = trio.CancelScope()
        self._read_resumed = trio.lowlevel.ParkingLot()
        self._data_queued = trio.lowlevel.ParkingLot()

    def __repr__(self) -> str:
        return f"<{type(self).__name__} of {self._socket!r}>"

    @abc.abstractmethod
    def pump(self) -> None:
        """Deliver events and wake the tasks that have work, without waiting.

        Call it after any call into the `WebSocket`, from any task of this run.
        """

    def sending(self, actions: Sequence[WebSocketAction]) -> None:  # noqa: B027 - an optional hook
        """Note that `actions` are about to be written."""

    def sent(self) -> None:  # noqa: B027 - an optional hook
        """Note that the actions passed to `sending` have been written."""

    def wake(self) -> None:
        """Wake the reader and the writer, and stop them if the peer is disconnected."""
        if self._socket.disconnected:
            self._run_scope.cancel()
        self._read_resumed.unpark_all()
        self._data_queued.unpark_all()

    async def run(self, initial_data: bytes = b"") -> None:
        """Run the WebSocket until it is over, then close the stream.

        `initial_data` are the bytes that were already read from the stream, behind the upgrade
        response.
        """
        try:
            with self._run_scope:
                async with open_quiet_nursery() as nursery:
                    nursery.start_soon(self._read, initial_data)
                    await self._write()
            with trio.move_on_after(_CLOSE_TIMEOUT), suppress(*_BROKEN):
                await self._stream.aclose()
        finally:
            await trio.aclose_forcefully(self._stream)
            self._socket.receive_eof(trio.current_time())
            self.pump()

    async def _read(self, data: bytes) -> None:
        socket = self._socket
        try:
            while True:
                self._frames.read(data, trio.current_time())
                self.pump()
                while socket.paused:
                    await self._read_resumed.park()
                data = bytes(await self._stream.receive_some(READ_SIZE))
                if not data:
                    break
        except _BROKEN:
            pass
        except Exception:  # noqa: BLE001 - it ends this connection and no other
            _log.exception("internal error on %r", self)
            socket.fail(trio.current_time())
            self.pump()
            return
        socket.receive_eof(trio.current_time())
        self.pump()

    async def _write(self) -> None:
        parked = False
        try:
            while True:
                actions = self._socket.messages_to_send(trio.current_time())
                if actions:
                    await self._send(actions)
                    continue
                if self._socket.done:
                    return
                self.pump()  # the WebSocket may wait for something else now, with another deadline
                if not self._socket.has_output:
                    parked = True
                    await self._data_queued.park()
                    parked = False
        except _BROKEN:
            self._socket.receive_eof(trio.current_time())
        except trio.Cancelled:
            if parked:  # otherwise half a frame may be out, and anything after it would be garbage
                await self._flush_on_cancel()
            raise

    async def _send(self, actions: Sequence[WebSocketAction]) -> None:
        self.sending(actions)
        for piece in self._frames.write_chunks(actions, trio.current_time):
            self.pump()  # the deadline of the WebSocket has changed
            await self._stream.send_all(piece)
        if isinstance(actions[-1], Close) and self._socket.input_ignored and not self._socket.done:
            await self._send_eof()
        self.sent()

    async def _send_eof(self) -> None:
        """End our direction after our Close. The peer's Close would not be read any more."""
        if isinstance(self._stream, trio.abc.HalfCloseableStream):
            await self._stream.send_eof()

    async def _flush_on_cancel(self) -> None:
        """Send what is queued, although cancelled. It may tell the peer to stop working for us."""
        with trio.move_on_after(FLUSH_ON_CANCEL_TIMEOUT, shield=True), suppress(*_BROKEN):
            # Tasks cancelled together with the writer may run after it and queue more. Let them.
            await trio.lowlevel.checkpoint()
            while actions := self._socket.messages_to_send(trio.current_time()):
                await self._stream.send_all(self._frames.write(actions))


class SocketDriver(Protocol):
    """The HTTP server's driver, as `WebSocketServerConnection` needs it."""

    def pump_logging_errors(self) -> None:
        """Process the events of all conversations; errors are logged."""

    def output_sent(self, exchange: Exchange) -> None:
        """Note that output of `exchange` was sent: a handler may wait for that."""


class WebSocketServerConnection(_WebSocketConnection):
    """A server's WebSocket: the upgraded `exchange` of the driver `driver`."""

    def __init__(self, driver: SocketDriver, stream: trio.abc.Stream, exchange: Exchange) -> None:
        assert exchange.socket is not None
        super().__init__(exchange.socket, stream, client=False)
        self._driver = driver
        self._exchange = exchange
        exchange.token = self

    def pump(self) -> None:
        assert self._exchange.conversation is not None
        self._exchange.conversation.mark_dirty()
        self._driver.pump_logging_errors()
        self.wake()

    def sent(self) -> None:
        self._driver.output_sent(self._exchange)


class WebSocketTransport(_WebSocketConnection):
    """The transport of a client's conversation over a WebSocket.

    `initial_data` are the bytes that were already read from `stream`. `on_event` is called with
    each event, in order, and must not wait. `on_message` is called with each message that is sent.

    *Resource handling*: `aclose` closes the stream. *Error handling*: it never raises; the events
    report what happens.
    """

    protocol = "WebSocket"

    def __init__(
        self,
        socket: WebSocket,
        stream: trio.abc.Stream,
        initial_data: bytes,
        on_event: Callable[[Event], None],
        on_message: Callable[[bytes], object] | None = None,
    ) -> None:
        self._deadlines = DeadlineRunner()
        self._deadline = self._deadlines.new(self._on_deadline)
        super().__init__(socket, stream, client=True)
        self._initial_data = initial_data
        self._ended = trio.Event()
        self._on_message = on_message
        # Callbacks start inside `pump`, which may run in any task. They get the context in which
        # the transport was created.
        context = contextvars.copy_context()
        self._pump = Pump(socket, lambda event: context.run(on_event, event))

    def start(self, nursery: trio.Nursery) -> None:
        """Start the tasks of the WebSocket in `nursery`."""
        nursery.start_soon(self._run)

    async def _run(self) -> None:
        try:
            async with open_quiet_nursery() as nursery:
                nursery.start_soon(self._deadlines.run)
                await self.run(self._initial_data)
        finally:
            self._ended.set()

    def pump(self) -> None:
        self._pump.run()
        deadline = self._socket.next_deadline()
        self._deadline.move(math.inf if deadline is None else deadline)
        self.wake()

    def sending(self, actions: Sequence[WebSocketAction]) -> None:
        if self._on_message is not None:
            for action in actions:
                if isinstance(action, Text):
                    self._on_message(action.text.encode())

    async def flush(self) -> None:
        """Wait until everything is sent and the closing handshake is over, or cannot be."""
        await self._ended.wait()

    async def aclose(self) -> None:
        """Close the stream at once."""
        await trio.aclose_forcefully(self._stream)

    def _on_deadline(self) -> None:
        self._socket.handle_timeout(trio.current_time())
        self.pump()
