r"""Server-sent events: the bytes of an event stream to events, and events to bytes.

Rules of this file:

1. Reading follows the text of WHATWG HTML, 9.2 (which every revision with HTTP refers to): a BOM at the beginning is dropped,
   CR, LF and CRLF each end a line, comments and unknown fields are ignored, the data of an event are its `data` lines joined
   by LF, and what has no blank line behind it when the stream ends was no event.
2. An id counts from the blank line of its block on, also of a block without data. So who is cut off in the middle of an event
   asks for that event again, and who has only seen the event that opens a stream can come back to it.
3. No byte is looked at twice, and what is kept is bounded: a line or an event over the limit is an error as soon as it is that,
   for a stream that has one cannot be followed any further.
4. What is written is one event, whatever its data are: nothing of them can end it or be taken for another field.

Data stay bytes, since who reads them is a JSON decoder. Ids and types are text, of which broken UTF-8 is replaced as the text
above wants it. This file knows neither JSON-RPC nor HTTP, nor when to come back.
"""

from __future__ import annotations

from typing import Final

from msgspec import Struct

from mcp_core._framing import OVERLONG, LineBuffer

__all__ = ["COMMENT", "EventTooLong", "SseDecoder", "SseEvent", "encode_event"]

# A line that readers ignore: it only shows them, and what is in between, that the stream lives.
COMMENT: Final = b":\n\n"

_BOM: Final = b"\xef\xbb\xbf"
# What may stand before the data in a line, and then some.
_FIELD_NAME: Final = 16
# Of the digits of `retry`. It stands for thirty thousand years.
_MOST_DIGITS: Final = 15


class EventTooLong(ValueError):
    """A line or an event is over the limit. The decoder is of no use after that."""


class SseEvent(Struct, gc=False):
    """An event. `id` is the last one that the stream has given so far, "" for none; `retry` is in milliseconds, None unless
    this event says it.
    """

    type: str
    data: bytes
    id: str = ""
    retry: int | None = None

    @property
    def is_message(self) -> bool:
        """Whether it carries a message: other types are for others, and an event without data only brings its id
        (2025-11-25, basic/transports)."""
        return self.type == "message" and self.data != b""


class SseDecoder:
    """Gives the events of one stream, however its bytes are split.

    `most`: how many bytes the data of an event may have. `last_id`: the id with which an earlier stream is resumed.

    `last_id` and `retry` are what the stream has said last, by an event or without one: the id to come back with, and how many
    milliseconds to wait before (None if it never said).
    """

    __slots__ = (
        "_block_retry",
        "_data",
        "_id",
        "_lines",
        "_most",
        "_return",
        "_started",
        "_type",
        "last_id",
        "retry",
    )

    def __init__(self, last_id: str = "", *, most: int) -> None:
        self.last_id = last_id
        self.retry: int | None = None
        self._most = most
        self._lines = LineBuffer(most + _FIELD_NAME)
        self._return = False  # the last byte was a CR, so that a LF would belong to it
        self._started = False
        # Of the block that is being read.
        self._id = last_id
        self._type = ""
        self._data: bytes | bytearray | None = None
        self._block_retry: int | None = None

    def __repr__(self) -> str:
        return f"<SseDecoder {len(self)} bytes, last id {self.last_id!r}>"

    def __len__(self) -> int:
        """Bytes held that no event has taken yet."""
        return len(self._lines) + len(self._data or b"")

    def feed(self, data: bytes) -> None:
        """Add what arrived. Then call `next_event` until it gives None."""
        if self._return and data:
            self._return = False
            if data.startswith(b"\n"):
                data = data[1:]
        if b"\r" in data:
            self._return = data.endswith(b"\r")
            data = data.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
        self._lines.feed(data)

    def next_event(self) -> SseEvent | None:
        """The next whole event, None when more bytes are needed.

        Raises:
            EventTooLong: it is over the limit. Events before it have been given.
        """
        while (line := self._lines.next_line()) is not None:
            if line is OVERLONG:
                raise self._too_long()
            if not self._started:
                self._started = True
                line = line.removeprefix(_BOM)
            if line.startswith(b"data: "):  # as nearly all lines do
                self._add(line[6:])
            elif line:
                self._take(line)
            else:
                event = self._end()
                if event is not None:
                    return event
        unfinished = self._lines.unfinished
        if unfinished.startswith(b"data:"):
            self._check(len(self._data or b"") + len(unfinished) - len(b"data: "))
        return None

    def _take(self, line: bytes) -> None:
        name, _, value = line.partition(b":")
        value = value.removeprefix(b" ")
        match name:
            case b"data":
                self._add(value)
            case b"event":
                self._type = value.decode("utf-8", "replace")
            case b"id" if b"\0" not in value:
                self._id = value.decode("utf-8", "replace")
            case b"retry" if value.isdigit():
                digits = value.lstrip(b"0")
                self.retry = self._block_retry = int(digits[:_MOST_DIGITS] or b"0")

    def _add(self, value: bytes) -> None:
        data = self._data
        if data is None:
            self._data = data = value
        else:
            # One buffer, since a list of short lines would take many times their bytes.
            if type(data) is not bytearray:
                self._data = data = bytearray(data)
            data += b"\n"
            data += value
        self._check(len(data))

    def _check(self, size: int) -> None:
        if size > self._most:
            raise self._too_long()

    def _too_long(self) -> EventTooLong:
        return EventTooLong(f"a line or an event of the stream has more than {self._most} bytes")

    def _end(self) -> SseEvent | None:
        """The blank line. A block that has no `data` line is no event."""
        self.last_id = self._id
        event = None
        if self._data is not None:
            event = SseEvent(self._type or "message", bytes(self._data), self._id, self._block_retry)
            self._data = None
        self._type = ""
        self._block_retry = None
        return event


def encode_event(
    data: bytes, *, id: bytes | None = None, event: bytes | None = None, retry: int | None = None
) -> bytes:
    """An event as bytes. A CR, LF or CRLF in `data` arrives as a LF; `retry` is in milliseconds.

    Raises:
        ValueError: `id` or `event` has a line break or a NUL, or `retry` is negative.
    """
    if b"\n" in data or b"\r" in data:
        # Readers end a line at either, so there must be a field name behind each.
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


def _one_line(value: bytes, what: str) -> bytes:
    if b"\n" in value or b"\r" in value or b"\0" in value:
        raise ValueError(f"the {what} of an event has no line break and no NUL: {value[:64]!r}")
    return value
