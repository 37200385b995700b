"""Finds the end of HTTP/1.1 responses in received bytes, without I/O.

1. Most responses come in one piece and have a head that was seen before. Both are one search in the
   bytes and one in a table.
2. Over an event stream a call is answered by the event with its id, while the response may end
   later. The next call waits for that end.
"""

from __future__ import annotations

import re
from enum import Enum
from typing import Final, NamedTuple

from mcp_trio.oracle.bench._verdicts import Body, decode_json, event_data, has_id

__all__ = ["MAX_HEAD", "MAX_RESPONSE", "HttpReader", "ReadState", "ResponseHead", "TooLarge"]

MAX_RESPONSE: Final = 64 * 1024 * 1024  # bytes of one response
MAX_HEAD: Final = 64 * 1024
_MAX_HEADS: Final = 512  # heads that are remembered
_MAX_REQUESTS: Final = 100  # requests of the server in one response
_MAX_CHUNK_LINE: Final = 4096
_STATUS: Final = re.compile(rb"HTTP/1\.([01]) (\d{3})(?: |$|\r)")
_EVENT_END: Final = re.compile(rb"\r\n\r\n|\n\n|\r\r")


class TooLarge(Exception):
    """A response is larger than `MAX_RESPONSE`, or its head than `MAX_HEAD`."""


class ReadState(Enum):
    """How far a response is."""

    OPEN = "open"
    ANSWERED = "answered"  # the call has its response, and the event stream goes on
    COMPLETE = "complete"


class ResponseHead(NamedTuple):
    """The head of a response.

    Attributes:
        status: the status code.
        length: `Content-Length`; None without one.
        is_chunked: whether the body is in chunks. Without length and chunks it ends with the
            connection.
        is_stream: whether the body is an event stream.
        closes: whether the server closes the connection afterwards.
        session: `Mcp-Session-Id`, b"" without one.
        location: `Location`, b"" without one.
    """

    status: int
    length: int | None
    is_chunked: bool
    is_stream: bool
    closes: bool
    session: bytes
    location: bytes

    @classmethod
    def parse(cls, data: bytes) -> ResponseHead:
        """Read a head, given without its empty line.

        Raises:
            ValueError: it isn't HTTP/1.1, or its length can't be read.
        """
        first, *lines = data.split(b"\r\n")
        status = _STATUS.match(first)
        if status is None:
            raise ValueError(f"this isn't HTTP/1.1: {first[:60]!r}")
        headers = {}
        for line in lines:
            name, _, value = line.partition(b":")
            headers[name.lower()] = value.strip()
        code = int(status[2])
        is_chunked = headers.get(b"transfer-encoding", b"").lower().endswith(b"chunked")
        text = headers.get(b"content-length")
        if text is not None and not text.isdigit():
            raise ValueError(f"Content-Length is {text[:60]!r}")
        has_body = code >= 200 and code not in (204, 304)
        length = int(text) if text is not None and not is_chunked else None
        connection = headers.get(b"connection", b"").lower()
        ends_by_close = has_body and length is None and not is_chunked
        return cls(
            status=code,
            length=length if has_body else 0,
            is_chunked=is_chunked and has_body,
            is_stream=headers.get(b"content-type", b"").lower().startswith(b"text/event-stream"),
            closes=ends_by_close
            or b"close" in connection
            or (status[1] == b"0" and b"keep-alive" not in connection),
            session=headers.get(b"mcp-session-id", b""),
            location=headers.get(b"location", b""),
        )


class HttpReader:
    """Reads the responses of one connection, one after the other.

    Attributes:
        head: the response's head; None before it.
        body: the body so far, without chunks' lines.
        requests: decoded requests of the server in the event stream, until the caller takes them.
        can_continue: whether the connection can carry another call after the response's end.
    """

    __slots__ = (
        "_at",
        "_buffer",
        "_chunk_left",
        "_digits",
        "_heads",
        "_is_answered",
        "_scanned",
        "_searched",
        "_size",
        "body",
        "can_continue",
        "head",
        "requests",
    )

    def __init__(self) -> None:
        self._heads: dict[bytes, ResponseHead] = {}
        self.requests: list[dict[str, object]] = []
        self.can_continue = True
        self.begin(b"")
        self._start()

    def begin(self, digits: bytes) -> None:
        """Prepare for the response to the call with this id; b"" if it has none."""
        # This runs once for each measured call. What else there is, `_start` sets.
        self._digits = digits
        self._buffer: bytearray | None = None  # received bytes that aren't read yet
        self._size = 0

    def _start(self) -> None:
        self.head: ResponseHead | None = None
        self.body: Body = b""
        self._chunk_left = 0  # bytes of the chunk that are missing, with its line's end
        self._scanned = 0  # bytes of the body whose events were read
        self._searched = 0  # bytes in which there is no further end of an event
        self._is_answered = False

    @property
    def has_begun(self) -> bool:
        """True once a byte of the response was received."""
        return self._size > 0

    def feed(self, data: bytes | bytearray) -> ReadState:
        """Take received bytes.

        Raises:
            TooLarge: the response is too large.
            ValueError: it isn't HTTP/1.1.
        """
        self._size += len(data)
        if self._buffer is None:
            # The usual response: all of it in one piece.
            end = data.find(b"\r\n\r\n")
            if end >= 0:
                head = self._heads.get(bytes(data[:end]))
                if head is not None and head.length == len(data) - end - 4:
                    self.head = head
                    self.body = data[end + 4 :]
                    return ReadState.COMPLETE
            self._buffer = bytearray(data)
            self._start()
        else:
            self._buffer += data
        if self._size > MAX_RESPONSE:
            raise TooLarge
        return self._advance()

    def end(self) -> ReadState:
        """Take the end of the connection. Return OPEN if the response isn't complete."""
        self.can_continue = False
        if self._buffer is None:
            return ReadState.OPEN
        head = self.head
        if head is not None and head.length is None and not head.is_chunked:
            return ReadState.COMPLETE
        return ReadState.ANSWERED if self._is_answered else ReadState.OPEN

    def _advance(self) -> ReadState:
        buffer = self._buffer
        assert buffer is not None
        while self.head is None:
            end = buffer.find(b"\r\n\r\n")
            if end < 0:
                if len(buffer) > MAX_HEAD:
                    raise TooLarge
                return ReadState.OPEN
            head = self._read_head(bytes(buffer[:end]))
            del buffer[: end + 4]
            if head.status < 200 and head.status != 101:
                continue  # an informational response, such as 103
            self.head = head
            self.body = bytearray()
            self.can_continue = not head.closes
        head = self.head
        is_complete = self._read_body(head, buffer)
        if is_complete:
            if buffer:  # bytes that belong to no response
                self.can_continue = False
            return ReadState.COMPLETE
        if head.is_stream and not self._is_answered:
            self._read_events()
        return ReadState.ANSWERED if self._is_answered else ReadState.OPEN

    def _read_head(self, data: bytes) -> ResponseHead:
        head = self._heads.get(data)
        if head is None:
            head = ResponseHead.parse(data)
            if len(self._heads) >= _MAX_HEADS:  # `Date` changes each second
                self._heads.clear()
            if not head.closes and head.status >= 200:
                self._heads[data] = head
        return head

    def _read_body(self, head: ResponseHead, buffer: bytearray) -> bool:
        """Move what belongs to the body from the buffer to it. Return True at its end."""
        body = self.body
        assert isinstance(body, bytearray)
        if head.is_chunked:
            return self._read_chunks(body, buffer)
        if head.length is None:
            body += buffer
            buffer.clear()
            return False
        if head.length > MAX_RESPONSE:
            raise TooLarge
        missing = head.length - len(body)
        body += buffer[:missing]
        del buffer[:missing]
        return len(body) == head.length

    def _read_chunks(self, body: bytearray, buffer: bytearray) -> bool:
        at = 0
        try:
            while True:
                if self._chunk_left > 2:
                    piece = buffer[at : at + self._chunk_left - 2]
                    body += piece
                    at += len(piece)
                    self._chunk_left -= len(piece)
                    if self._chunk_left > 2:
                        return False
                if self._chunk_left > 0:  # the end of the chunk's line
                    if len(buffer) - at < self._chunk_left:
                        return False
                    if buffer[at : at + 2] != b"\r\n":
                        raise ValueError("a chunk has another length than it says")
                    at += 2
                    self._chunk_left = 0
                end = buffer.find(b"\r\n", at)
                if end < 0:
                    if len(buffer) - at > _MAX_CHUNK_LINE:
                        raise ValueError("a chunk begins with no length")
                    return False
                text = bytes(buffer[at:end]).partition(b";")[0].strip()
                try:
                    length = int(text, 16)
                except ValueError:
                    raise ValueError(f"a chunk's length is {text[:20]!r}") from None
                if length < 0:
                    raise ValueError(f"a chunk's length is {text[:20]!r}")
                if length == 0:
                    # Trailers, and an empty line.
                    last = buffer.find(b"\r\n\r\n", end)
                    if last < 0:
                        if len(buffer) - at > MAX_HEAD:
                            raise TooLarge
                        return False
                    at = last + 4
                    return True
                at = end + 2
                self._chunk_left = length + 2
        finally:
            del buffer[:at]

    def _read_events(self) -> None:
        """Look for the call's response, and for requests of the server, in further events."""
        body = self.body
        while end := _EVENT_END.search(body, max(self._scanned, self._searched - 3)):
            event = body[self._scanned : end.start()]
            self._scanned = end.end()
            is_candidate = bool(self._digits) and self._digits in event
            if not is_candidate and not (b'"method"' in event and b'"id"' in event):
                continue
            message = decode_json(event_data(event))
            if is_candidate and has_id(message, self._digits):
                self._is_answered = True
                return
            if (
                isinstance(message, dict)
                and isinstance(message.get("method"), str)
                and "id" in message
                and len(self.requests) < _MAX_REQUESTS
            ):
                self.requests.append(message)
        self._searched = len(body)
