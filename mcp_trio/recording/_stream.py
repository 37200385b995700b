"""A stream that records the bytes of another one."""

from __future__ import annotations

from typing import TYPE_CHECKING

import trio

if TYPE_CHECKING:
    from trio.abc import Stream

    from mcp_core.adapters import StreamRecorder

__all__ = ["RecordedStream"]


class RecordedStream(trio.abc.Stream):
    """A stream that passes the bytes of `stream` unchanged and at once, and records them.

    Sent bytes are recorded before they are sent, and received ones before the reader gets them.
    `aclose` closes `stream` too.
    """

    def __init__(self, stream: Stream, record: StreamRecorder) -> None:
        self._stream = stream
        self._record = record
        self._closed = False

    async def send_all(self, data: bytes | bytearray | memoryview) -> None:
        self._record.sent(bytes(data))
        await self._stream.send_all(data)

    async def wait_send_all_might_not_block(self) -> None:
        await self._stream.wait_send_all_might_not_block()

    async def receive_some(self, max_bytes: int | None = None) -> bytes | bytearray:
        data = await self._stream.receive_some(max_bytes)
        self._record.received(bytes(data))
        return data

    async def aclose(self) -> None:
        if not self._closed:
            self._closed = True
            self._record.sent(b"")
        await self._stream.aclose()
