"""Read and write the heads of HTTP/1.1 with h11, and cache the results.

A client sends nearly the same head on each request of a connection, and a server has a handful of
response heads. Parsing and checking them every time would cost more than the rest of a call.

1. A cached result is a pure function of the bytes. Each connection has its own cache of request
   heads, so that timing reveals nothing about other clients' requests.
2. h11 decides: a head is used only if h11 has parsed or written it, or one that differs from it
   only in the digits of a plain `Content-Length`. `find_head_error` rejects more than h11 does.
"""

from __future__ import annotations

import re
import time
from functools import lru_cache
from http import HTTPStatus
from typing import TYPE_CHECKING, Final

import h11
from msgspec import Struct
from msgspec.structs import replace

from mcp_core.http import RequestHead, find_head_error, origin_form

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = [
    "CHUNKED",
    "BadRequest",
    "HeadReader",
    "ReceivedHead",
    "chunk_parser",
    "date_line",
    "date_value",
    "status_lines",
]

CHUNKED: Final = -1
_DAYS: Final = (b"Mon", b"Tue", b"Wed", b"Thu", b"Fri", b"Sat", b"Sun")
_MONTHS: Final = tuple(b"Jan Feb Mar Apr May Jun Jul Aug Sep Oct Nov Dec".split())
_PHRASES: Final = {int(status): status.phrase.encode() for status in HTTPStatus}
# Heads that one connection caches: about as many as a client has kinds of requests.
_MAX_CACHED: Final = 8
_MAX_CACHED_SIZE: Final = 4 * 1024  # bytes; longer heads aren't cached
# A body's length, as nearly every client writes it. Heads that match, and differ only in these
# digits, parse alike.
_CONTENT_LENGTH: Final = re.compile(rb"\r\n[Cc]ontent-[Ll]ength: ([1-9][0-9]{0,8})(?=\r\n)")
# Bytes: h11's own limit for a chunk's first line and the trailer. The size of a head is checked
# before h11 gets it.
_MAX_INCOMPLETE: Final = 64 * 1024


class BadRequest(Exception):
    """Received bytes that aren't a valid request. Answer with `status`, then close."""

    def __init__(self, status: int, why: str) -> None:
        super().__init__(why)
        self.status = status


class ReceivedHead(Struct, frozen=True, gc=False):
    """A request head, with what it means for the connection.

    `length` is the length of the body in bytes, or `CHUNKED`. `is_http_1_1` is True if the client
    has HTTP/1.1, so that chunks may be sent to it. `keep_alive` is True if the client keeps the
    connection open. `expects_continue` is True if it waits for "100 Continue" before it sends the
    body.
    """

    request: RequestHead
    length: int
    is_http_1_1: bool
    keep_alive: bool
    expects_continue: bool


class HeadReader:
    """The parser, with its cache, for the request heads of one connection."""

    __slots__ = ("_cache",)

    def __init__(self) -> None:
        # The key is the whole head, or its parts before and after the digits of Content-Length.
        self._cache: dict[bytes | tuple[bytes, bytes], ReceivedHead] = {}

    def read(self, block: bytes) -> ReceivedHead:
        """Parse a complete head, up to and including its empty line.

        Raises:
            BadRequest: it is invalid, or other implementations might read it differently.
        """
        found = _CONTENT_LENGTH.search(block)
        key = block if found is None else (block[: found.start(1)], block[found.end(1) :])
        head = self._cache.get(key)
        if head is None:
            head = _parse(block)
            if len(block) <= _MAX_CACHED_SIZE:
                if len(self._cache) >= _MAX_CACHED:
                    self._cache.clear()
                self._cache[key] = head
        elif found is not None and head.length != int(found[1]):
            # Replaces the entry: many requests have the same length as the one before.
            head = _with_length(head, found[1])
            self._cache[key] = head
        return head


def _with_length(head: ReceivedHead, digits: bytes) -> ReceivedHead:
    """Return the same head with another `Content-Length`."""
    request = head.request
    headers = [
        header if header[0] != b"content-length" else (b"content-length", digits)
        for header in request.headers
    ]
    return replace(
        head, request=RequestHead(request.method, request.target, headers), length=int(digits)
    )


def _parse(block: bytes) -> ReceivedHead:
    """Parse a head without the cache."""
    fault = find_head_error(block)
    if fault is not None:
        raise BadRequest(fault.status, fault.reason)
    try:
        event = chunk_parser(block).next_event()
    except h11.RemoteProtocolError as exc:
        raise BadRequest(exc.error_status_hint, str(exc)) from None
    # The head is complete, and `find_head_error` has rejected those that h11 reads as something
    # else.
    assert isinstance(event, h11.Request)
    length = 0
    persists = True
    expects = False
    headers = list(event.headers)
    for name, value in headers:
        if name == b"content-length":
            length = int(value)
        elif name == b"transfer-encoding":
            length = CHUNKED
        elif name == b"connection":
            persists = persists and b"close" not in [
                token.strip() for token in value.lower().split(b",")
            ]
        elif name == b"expect":
            expects = value.lower() == b"100-continue"
    speaks_1_1 = event.http_version == b"1.1"
    return ReceivedHead(
        RequestHead(event.method, origin_form(event.target), headers),
        length,
        speaks_1_1,
        persists and speaks_1_1,
        expects and speaks_1_1,
    )


def chunk_parser(block: bytes) -> h11.Connection:
    """Return an h11 parser that has received the head `block`, and expects its body."""
    connection = h11.Connection(h11.SERVER, _MAX_INCOMPLETE)
    connection.receive_data(block)
    return connection


@lru_cache(maxsize=256)
def status_lines(status: int, headers: Sequence[tuple[bytes, bytes]]) -> tuple[bytes, bool]:
    """Return the status line and header lines of a response, and whether they have Content-Length.

    The blank line that ends the head isn't included.

    Raises:
        h11.LocalProtocolError: a header is invalid.
    """
    kind = h11.Response if status >= 200 else h11.InformationalResponse
    checked = kind(status_code=status, headers=list(headers)).headers
    lines = [b"HTTP/1.1 %d %s\r\n" % (status, _PHRASES.get(status, b""))]
    lines += [b"%s: %s\r\n" % header for header in checked]
    return b"".join(lines), any(name == b"content-length" for name, _ in checked)


def date_line() -> bytes:
    """Return a `Date` header line for the current time."""
    return b"date: %b\r\n" % _date_value(int(time.time()))


def date_value() -> bytes:
    """Return the current time as an IMF-fixdate (RFC 9110 5.6.7), cached for each second."""
    return _date_value(int(time.time()))


@lru_cache(maxsize=1)
def _date_value(second: int) -> bytes:
    year, month, day, hour, minute, seconds, weekday, *_ = time.gmtime(second)
    named = _DAYS[weekday], day, _MONTHS[month - 1], year
    return b"%b, %02d %b %d %02d:%02d:%02d GMT" % (*named, hour, minute, seconds)
