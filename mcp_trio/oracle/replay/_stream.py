"""The client of a trace on a byte stream with one message per line: stdio, or a stream in memory.

It reads and writes in two tasks, because a server may answer the first request while the client
still writes the last one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import trio
import trio.lowlevel

from mcp_core.trace import MAX_REPLAY_LINE, MessageSplitter
from mcp_trio._nursery import open_quiet_nursery

if TYPE_CHECKING:
    from collections.abc import Iterator

    from mcp_core.trace import ReplayClient

__all__ = ["play_on_stream"]

_READ_SIZE: Final = 64 * 1024
_CHUNK: Final = 256 * 1024  # bytes of messages that are joined into one write


async def play_on_stream(client: ReplayClient, stream: trio.abc.Stream) -> None:
    """Play `client` against the server on `stream` until the client has finished.

    `stream` stays open.
    """
    player = _StreamPlayer(client, stream)
    await player.run()


class _StreamPlayer:
    """The client of a recorded session on a stream: one task reads, another one writes."""

    def __init__(self, client: ReplayClient, stream: trio.abc.Stream) -> None:
        self._client = client
        self._stream = stream
        self._changed = trio.Event()

    async def run(self) -> None:
        self._client.begin(trio.current_time())
        async with open_quiet_nursery() as nursery:
            nursery.start_soon(self._read)
            nursery.start_soon(self._keep_time)
            await self._write()
            nursery.cancel_scope.cancel()

    def _wake(self) -> None:
        self._changed.set()
        self._changed = trio.Event()

    async def _write(self) -> None:
        try:
            while True:
                changed = self._changed
                messages = self._client.messages_to_send()
                for chunk in _chunks(messages):
                    await self._stream.send_all(chunk)
                if self._client.is_over and not messages:
                    return
                if not messages:
                    await changed.wait()
        except trio.BrokenResourceError:
            await trio.lowlevel.checkpoint()
            # The server reads no more, but its earlier answers still arrive.
            while not self._client.is_over:
                await self._changed.wait()

    async def _read(self) -> None:
        lines = MessageSplitter(MAX_REPLAY_LINE)
        try:
            while data := bytes(await self._stream.receive_some(_READ_SIZE)):
                for message in _messages(lines, data):
                    self._client.receive(message, trio.current_time())
                self._wake()
        except (trio.BrokenResourceError, trio.ClosedResourceError):
            pass
        self._client.disconnected()
        self._wake()

    async def _keep_time(self) -> None:
        while True:
            changed = self._changed
            with trio.move_on_at(self._client.next_deadline) as timer:
                await changed.wait()
            if timer.cancelled_caught:
                self._client.advance(trio.current_time())
                self._wake()


def _chunks(messages: list[bytes]) -> Iterator[bytes]:
    """Yield messages as lines, several in one write."""
    chunk: list[bytes] = []
    size = 0
    for message in messages:
        chunk.append(message + b"\n")
        size += len(message)
        if size > _CHUNK:
            yield b"".join(chunk)
            chunk, size = [], 0
    if chunk:
        yield b"".join(chunk)


def _messages(lines: MessageSplitter, data: bytes) -> list[bytes]:
    """Return the messages that `data` completes. A message that is too long is cut."""
    return [message for message, _ in lines.feed(data) if message.strip()]
