"""Server-sent events: decode an event stream to events, encode events to bytes.

1. The decoder follows WHATWG HTML, section 9.2, to which every MCP revision with HTTP refers.
2. No byte is examined twice, and memory is bounded. A line or an event over the limit is an error
   as soon as the limit is passed, because the rest of the stream cannot be decoded reliably.
3. The encoder writes exactly one event for any `data`: no data can end the event early or be
   read as another field.

Data stays `bytes`, because its reader is a JSON decoder. Event ids and types are text, in which
invalid UTF-8 is replaced, as the WHATWG text requires. When to reconnect is not decided here.
"""

from __future__ import annotations

from typing import Final

from msgspec import Struct

from mcp_core._framing import OVERLONG, LineBuffer

__all__ = ["COMMENT", "EventTooLong", "SseDecoder", "SseEvent", "encode_event"]

# Clients ignore comments. One that is sent now and then tells the client, and proxies that close
# idle connections, that the stream is alive.
COMMENT: Final = b":\n\n"

_BOM: Final = b"\xef\xbb\xbf"
# Bytes that a line may have before its data: `data: `, with some to spare.
_FIELD_NAME: Final = 16
# Digits of `retry` that are read. int() raises an exception for very long texts, and 15 digits of
# milliseconds are 30,000 years.
_MAX_RETRY_DIGITS: Final = 15


class EventTooLong(ValueError):
    """A line or an event is over the limit. Discard the decoder: it cannot continue."""


class SseEvent(Struct, gc=False):
    """One event of a stream.

    `id` is the last event id of the stream so far, or "" if there was none. `retry` is in
    milliseconds, or None if this event has no such field.
    """

    type: str
    data: bytes
    id: str = ""
    retry: int | None = None

    @property
    def is_message(self) -> bool:
        """True if the event carries a JSON-RPC message.

        Events of other types, such as `endpoint`, carry none. An event without data, such as the
        priming event, only sets the last event id (2025-11-25, basic/transports).
        """
        return self.type == "message" and self.data != b""


class SseDecoder:
    """A decoder for one event stream, which may arrive in chunks of any size.

    Pass each chunk to `feed`, then call `next_event` until it returns None.

    Args:
        last_id: the id with which the client resumes an earlier stream.
        limit: the maximum size of an event's data, in bytes.

    `last_id` and `retry` are what the client needs to reconnect: the id for `Last-Event-ID`, and
    the reconnection time in milliseconds (None if the server has not sent one). The server can set
    both without sending an event.
    """

    __slots__ = (
        "_after_cr",
        "_block_retry",
        "_data",
        "_id",
        "_limit",
        "_lines",
        "_started",
        "_type",
        "last_id",
        "retry",
    )

    def __init__(self, last_id: str = "", *, limit: int) -> None:
        self.last_id = last_id
        self.retry: int | None = None
        self._limit = limit
        self._lines = LineBuffer(limit + _FIELD_NAME)
        self._after_cr = False  # the last chunk ended in CR: a LF at the start of the next is part
        self._started = False  # a first line was read, so a BOM is no longer special
        # The block that is being read. A blank line ends it.
        self._id = last_id
        self._type = ""
        self._data: bytes | bytearray | None = None  # None: no `data` line yet
        self._block_retry: int | None = None

    def __repr__(self) -> str:
        return f"<SseDecoder {len(self)} bytes, last id {self.last_id!r}>"

    def __len__(self) -> int:
        """Return the number of buffered bytes that are not yet part of an event."""
        return len(self._lines) + len(self._data or b"")

    def feed(self, data: bytes) -> None:
        """Add received bytes. Then call `next_event` until it returns None."""
        if self._after_cr and data:
            self._after_cr = False
            if data.startswith(b"\n"):
                data = data[1:]  # the second half of a CRLF that was split between two chunks
        if b"\r" in data:
            self._after_cr = data.endswith(b"\r")
            data = data.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
        self._lines.feed(data)

    def next_event(self) -> SseEvent | None:
        """Return the next complete event, or None if more bytes are needed.

        WHATWG requires that an event be dropped if the stream ends before its blank line.

        Raises:
            EventTooLong: the event is over the limit. All events before it have been returned.
        """
        while (line := self._lines.next_line()) is not None:
            if line is OVERLONG:
                raise self._event_too_long()
            if not self._started:
                self._started = True
                line = line.removeprefix(_BOM)
            if line.startswith(b"data: "):  # fast path: nearly every line
                self._append_data(line[6:])
            elif line:
                self._process_field(line)
            else:
                event = self._dispatch_event()
                if event is not None:
                    return event
        # Reject a `data` line as soon as it passes the limit. Its end may never come.
        unfinished = self._lines.unfinished
        if unfinished.startswith(b"data:"):
            self._check_size(len(self._data or b"") + len(unfinished) - len(b"data: "))
        return None

    def _process_field(self, line: bytes) -> None:
        name, _, value = line.partition(b":")
        value = value.removeprefix(b" ")
        match name:  # comments (an empty name) and unknown fields are ignored
            case b"data":
                self._append_data(value)
            case b"event":
                self._type = value.decode("utf-8", "replace")
            case b"id" if b"\0" not in value:
                self._id = value.decode("utf-8", "replace")
            case b"retry" if value.isdigit():
                digits = value.lstrip(b"0")
                self.retry = self._block_retry = int(digits[:_MAX_RETRY_DIGITS] or b"0")

    def _append_data(self, value: bytes) -> None:
        data = self._data
        if data is None:
            self._data = data = value  # one line is the usual case, and needs no copy
        else:
            # One buffer: a list of short lines would take many times the memory of its bytes.
            if type(data) is not bytearray:
                self._data = data = bytearray(data)
            data += b"\n"
            data += value
        self._check_size(len(data))

    def _check_size(self, size: int) -> None:
        if size > self._limit:
            raise self._event_too_long()

    def _event_too_long(self) -> EventTooLong:
        return EventTooLong(f"a line or an event of the stream has more than {self._limit} bytes")

    def _dispatch_event(self) -> SseEvent | None:
        """End the block at a blank line. Return None if it has no `data` line."""
        # The id takes effect only here, even if the block has no data. A client that is cut off
        # inside an event then requests that event again, and one that has received nothing but the
        # priming event can still resume.
        self.last_id = self._id
        event = None
        if self._data is not None:
            data = bytes(self._data)
            event = SseEvent(self._type or "message", data, self._id, self._block_retry)
            self._data = None
        self._type = ""
        self._block_retry = None
        return event


def encode_event(
    data: bytes, *, id: bytes | None = None, event: bytes | None = None, retry: int | None = None
) -> bytes:
    """Encode one event. `retry` is in milliseconds.

    Each CR, LF or CRLF in `data` arrives at the client as LF.

    Raises:
        ValueError: `id` or `event` contains a line break or a NUL, or `retry` is negative.
    """
    if b"\n" in data or b"\r" in data:
        # Clients end a line at CR and at LF, so each needs a field name after it.
        data = data.replace(b"\r\n", b"\n").replace(b"\r", b"\n").replace(b"\n", b"\ndata: ")
    if id is None and event is None and retry is None:
        return b"data: %b\n\n" % data
    fields = []
    if event is not None:
        fields.append(b"event: %b\n" % _one_line(event, "type"))
    if id is not None:
        fields.append(b"id: %b\n" % _one_line(id, "id"))
    if retry is not None:
        if retry < 0:
            raise ValueError(f"retry is a number of milliseconds, not {retry}")
        fields.append(b"retry: %d\n" % retry)
    return b"%bdata: %b\n\n" % (b"".join(fields), data)


def _one_line(value: bytes, field: str) -> bytes:
    """Return `value` unchanged if it fits on one line of the stream."""
    if b"\n" in value or b"\r" in value or b"\0" in value:
        raise ValueError(f"the {field} of an event has no line break and no NUL: {value[:64]!r}")
    return value
