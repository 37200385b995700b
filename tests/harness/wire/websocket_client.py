"""A WebSocket client on a stream, which sends bytes of the test and has its own frame reader."""

from __future__ import annotations

import json
from typing import Any

import trio

from tests.core.http.frames import TEXT, short
from tests.harness.world.waiting import patience

__all__ = ["FrameWire"]


class FrameWire:
    """The client's end of `stream`, which requests a WebSocket."""

    def __init__(self, stream: trio.abc.Stream) -> None:
        self.stream = stream
        self.buffer = b""
        self.status = 0
        self.headers: dict[bytes, bytes] = {}

    async def send(self, data: bytes) -> None:
        with trio.fail_after(patience()):
            await self.stream.send_all(data)

    async def more(self) -> bool:
        """Read more. Return False at the end."""
        with trio.fail_after(patience()):
            try:
                data = bytes(await self.stream.receive_some(65_536))
            except trio.BrokenResourceError:
                data = b""
        self.buffer += data
        return bool(data)

    async def open(self, request: bytes) -> int:
        """Send an upgrade request, and return the status."""
        await self.send(request)
        while b"\r\n\r\n" not in self.buffer:
            assert await self.more(), self.buffer
        head, _, self.buffer = self.buffer.partition(b"\r\n\r\n")
        first, *lines = head.split(b"\r\n")
        self.status = int(first.split()[1])
        self.headers = {
            name.lower(): value.strip()
            for name, _, value in (line.partition(b":") for line in lines)
        }
        return self.status

    async def next_frame(self) -> tuple[int, bytes] | None:
        """Return opcode and payload, or None at the end."""
        while (found := self._frame()) is None:
            if not await self.more():
                assert not self.buffer, self.buffer
                return None
        return found

    def _frame(self) -> tuple[int, bytes] | None:
        data = self.buffer
        if len(data) < 2:
            return None
        assert data[0] & 0x80, "a server's frames are whole"
        assert not data[0] & 0x70
        assert not data[1] & 0x80, "a server does not mask"
        size, start = data[1], 2
        if size > 125:
            start = 4 if size == 126 else 10
            if len(data) < start:
                return None
            size = int.from_bytes(data[2:start], "big")
        if len(data) < start + size:
            return None
        self.buffer = data[start + size :]
        return data[0] & 0x0F, data[start : start + size]

    async def receive_all(self) -> list[Any]:
        """Return all that arrives: decoded messages, `("pong", payload)`, and the Close code."""
        found: list[Any] = []
        while (each := await self.next_frame()) is not None:
            found.append(short(*each))
        return found

    async def message(self) -> Any:
        """Return the next message."""
        each = await self.next_frame()
        assert each is not None
        assert each[0] == TEXT, each
        return json.loads(each[1])
