"""Letting someone watch the messages of a conversation; and a stream that lets someone watch those on it.

Rules of this file:

1. Bytes pass unchanged and at once; watching costs a split into lines and nothing else, no task and no copy that is kept.
2. A watcher sees what really crossed: also lines that are no message, and messages that the connection will drop.
3. A watcher that raises is a watcher less. The conversation goes on.

It does not know JSON-RPC; a line is a line.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import TYPE_CHECKING, Final, Literal

import trio

from mcp_core import CLIENT_LIMITS

if TYPE_CHECKING:
    from trio.abc import Stream

__all__ = ["Trace", "TracedStream", "Watcher"]

Trace = Callable[[Literal["sent", "received"], bytes], object]

# A longer line cannot be a message that we read; it is told in pieces, so that watching needs no more memory than reading.
_LONGEST: Final = CLIENT_LIMITS.message

_log = logging.getLogger("mcp_trio")


class Watcher:
    """Whoever watches by `trace`, as long as that does not fail."""

    def __init__(self, trace: Trace) -> None:
        self._trace: Trace | None = trace

    def tell(self, direction: Literal["sent", "received"], message: bytes) -> None:
        if self._trace is not None:
            try:
                self._trace(direction, message)
            except Exception:  # noqa: BLE001 - rule 3; the watcher is a stranger's
                _log.exception("the trace %r failed and is called no more", self._trace)
                self._trace = None


class TracedStream(trio.abc.Stream):
    """`stream`, with `trace` called for each line on it: the direction, and the line without its newline.

    What is sent is told just before it is written, what is received before the reader gets it. Closing this closes `stream`.
    """

    def __init__(self, stream: Stream, trace: Trace) -> None:
        self._stream = stream
        self._watcher = Watcher(trace)
        self._rest = {"sent": bytearray(), "received": bytearray()}

    async def send_all(self, data: bytes | bytearray | memoryview) -> None:
        self._tell("sent", bytes(data))
        await self._stream.send_all(data)

    async def wait_send_all_might_not_block(self) -> None:
        await self._stream.wait_send_all_might_not_block()

    async def receive_some(self, max_bytes: int | None = None) -> bytes | bytearray:
        data = await self._stream.receive_some(max_bytes)
        self._tell("received", bytes(data))
        return data

    async def aclose(self) -> None:
        await self._stream.aclose()

    def _tell(self, direction: Literal["sent", "received"], data: bytes) -> None:
        rest = self._rest[direction]
        first, *others = data.split(b"\n")
        rest += first
        for line in others:
            self._say(direction, bytes(rest))
            rest[:] = line
        if not data or len(rest) > _LONGEST:
            self._say(direction, bytes(rest))
            rest.clear()

    def _say(self, direction: Literal["sent", "received"], line: bytes) -> None:
        line = line.removesuffix(b"\r")
        if line:
            self._watcher.tell(direction, line)
