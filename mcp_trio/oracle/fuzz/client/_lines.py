"""Conversations over a stream of lines: the client's pipes, or its relay's."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import trio

from mcp_core.trace import StreamChannel, TraceLine

from ._client_session import LINE_LIMIT

if TYPE_CHECKING:
    from trio.abc import Stream

    from ._client_session import ClientSession
    from ._script import Reaction
    from ._wrong_answers import Action

__all__ = ["LineConversation"]

WRITE_TIMEOUT: Final = 10.0  # seconds for a client that reads slowly


class LineConversation:
    """A conversation over a stream of lines.

    Args:
        session: the client's session.
        stream: the stream to the client. At the end it is closed: only its sending half if it has
            halves.
        timeout: seconds for the response to a ping.
    """

    def __init__(self, session: ClientSession, stream: Stream, timeout: float) -> None:
        self._session = session
        self._stream = stream
        self._timeout = timeout
        self._number = session.begin_conversation()
        self._channel = StreamChannel(self._number, LINE_LIMIT)
        self.has_ended = False
        self._writing = trio.Lock()
        session.links.add(self)

    async def run(self) -> None:
        """Read what the client sends until its end."""
        async with trio.open_nursery() as nursery:
            while True:
                try:
                    data = bytes(await self._stream.receive_some(65_536))
                except (trio.BrokenResourceError, trio.ClosedResourceError):
                    break
                if not data:
                    break
                self._receive(data, nursery)
            self._end("client")

    def _receive(self, data: bytes, nursery: trio.Nursery) -> None:
        session = self._session
        for line in self._channel.client_data(session.time(), data):
            for reaction in session.receive(line):
                session.acting += 1
                nursery.start_soon(self._react, reaction)

    async def _react(self, reaction: Reaction) -> None:
        session = self._session
        try:
            for action in reaction.actions:
                if self.has_ended or session.is_closed:
                    break
                await self._do(action)
        finally:
            session.acting -= 1
            session.notify()

    async def _do(self, action: Action) -> None:
        session = self._session
        match action.kind:
            case "pause":
                await trio.sleep(action.seconds)
            case "await":
                await session.wait_for_response(action, self._timeout, self)
            case "end":
                await self.close()
            case _:
                data = action.data + (b"\n" if action.kind == "send" else b"")
                async with self._writing:
                    for line in self._channel.server_data(session.time(), data):
                        session.record(line)
                    session.note_sent(action.data)
                    await self._write(data)

    async def _write(self, data: bytes) -> None:
        try:
            with trio.move_on_after(WRITE_TIMEOUT):
                await self._stream.send_all(data)
        except (trio.BrokenResourceError, trio.ClosedResourceError):
            self._end("client")

    async def close(self) -> None:
        """End the connection: the client reads the end of its input."""
        self._end("server")
        stream = self._stream
        if isinstance(stream, trio.StapledStream):
            stream = stream.send_stream
        with trio.move_on_after(1):
            await stream.aclose()

    def _end(self, side: str) -> None:
        if self.has_ended:
            return
        self.has_ended = True
        session = self._session
        session.record(
            TraceLine(
                t=session.time(),
                conversation=self._number,
                sender="client" if side == "client" else "server",
                end="closed",
            )
        )
        session.notify()
