"""Report each message of a conversation to a callback, and a stream wrapper that does so per line.

1. Bytes pass unchanged and without delay. Tracing costs a split into lines: no task, and no copy
   that is kept.
2. The callback gets every line on the stream, including lines that aren't JSON-RPC messages and
   messages that the connection will drop.
3. A callback that raises is logged and never called again. The conversation continues.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import TYPE_CHECKING, Final, Literal

import trio

from mcp_core import CLIENT_LIMITS

if TYPE_CHECKING:
    from trio.abc import Stream

__all__ = ["Trace", "TraceCallback", "TracedStream"]

Trace = Callable[[Literal["sent", "received"], bytes], object]

# Bytes. A longer line is over the client's message limit and will be rejected. It is reported in
# pieces, so that tracing needs no more memory than reading.
_MAX_LINE: Final = CLIENT_LIMITS.message

_log = logging.getLogger("mcp_trio")


class TraceCallback:
    """The user's `trace` callback, dropped at its first exception."""

    def __init__(self, trace: Trace) -> None:
        self._trace: Trace | None = trace

    def report(self, direction: Literal["sent", "received"], message: bytes) -> None:
        """Call the trace callback, unless it has failed before."""
        if self._trace is not None:
            try:
                self._trace(direction, message)
            except Exception:  # noqa: BLE001 - rule 3; the callback is the user's code
                _log.exception("the trace %r failed and is not called again", self._trace)
                self._trace = None


class TracedStream(trio.abc.Stream):
    """A wrapper of `stream` that calls `trace` for each line: its direction, and its bytes.

    The bytes have no line break, and empty lines aren't reported. A sent line is reported just
    before it is written, a received one before the reader gets it. Closing this closes `stream`.
    """

    def __init__(self, stream: Stream, trace: Trace) -> None:
        self._stream = stream
        self._watcher = TraceCallback(trace)
        self._unfinished = {"sent": bytearray(), "received": bytearray()}

    async def send_all(self, data: bytes | bytearray | memoryview) -> None:
        self._split_lines("sent", bytes(data))
        await self._stream.send_all(data)

    async def wait_send_all_might_not_block(self) -> None:
        await self._stream.wait_send_all_might_not_block()

    async def receive_some(self, max_bytes: int | None = None) -> bytes | bytearray:
        data = await self._stream.receive_some(max_bytes)
        self._split_lines("received", bytes(data))
        return data

    async def aclose(self) -> None:
        await self._stream.aclose()

    def _split_lines(self, direction: Literal["sent", "received"], data: bytes) -> None:
        unfinished = self._unfinished[direction]
        first, *others = data.split(b"\n")
        unfinished += first
        for line in others:
            self._report_line(direction, bytes(unfinished))
            unfinished[:] = line
        if not data or len(unfinished) > _MAX_LINE:  # no data: the end of the stream
            self._report_line(direction, bytes(unfinished))
            unfinished.clear()

    def _report_line(self, direction: Literal["sent", "received"], line: bytes) -> None:
        line = line.removesuffix(b"\r")
        if line:
            self._watcher.report(direction, line)
