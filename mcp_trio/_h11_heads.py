"""The heads of HTTP/1.1, read and written by h11, each no more often than it differs from the one before.

A client that keeps its connection says nearly the same head each time, and a server answers with a handful of its own; to read
and check these again and again would cost more than everything else that is done for a call.

Rules of this file:

1. What is remembered is a function of the bytes. Of requests each connection remembers its own, so that nobody can find out by
   the clock what somebody else has sent.
2. h11 has the last word: no head is acted on or sent that it has not read or written once, or one that differs from it in the
   digits of an ordinary `Content-Length` only. What it lets through and we do not is `head_fault`.
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

from mcp_core.http import RequestHead, head_fault, origin_form

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = [
    "CHUNKED",
    "Fault",
    "HeadReader",
    "ReceivedHead",
    "chunks",
    "date_line",
    "date_value",
    "status_lines",
]

CHUNKED: Final = -1
_DAYS: Final = (b"Mon", b"Tue", b"Wed", b"Thu", b"Fri", b"Sat", b"Sun")
_MONTHS: Final = tuple(b"Jan Feb Mar Apr May Jun Jul Aug Sep Oct Nov Dec".split())
_PHRASES: Final = {int(status): status.phrase.encode() for status in HTTPStatus}
# Heads that one connection remembers: as many as a client has kinds of requests; and how long they may be.
_REMEMBERED: Final = 8
_LONGEST_REMEMBERED: Final = 4 * 1024
# The length of a body, as nearly every client writes it. Whatever stands there, with other digits all would be read the same.
_LENGTH: Final = re.compile(rb"\r\n[Cc]ontent-[Ll]ength: ([1-9][0-9]{0,8})(?=\r\n)")
# h11's own limit, for heads whose length has been looked at before, and for a chunk's first line and the trailer.
_INCOMPLETE: Final = 64 * 1024


class Fault(Exception):
    """What was read is no request: the status to answer with before hanging up, and why."""

    def __init__(self, status: int, why: str) -> None:
        super().__init__(why)
        self.status = status


class ReceivedHead(Struct, frozen=True, gc=False):
    """The head of a request, and what it says about its connection.

    `length` is the length of the body, or `CHUNKED`. `speaks_1_1`: chunks may be sent to this client. `persists`: it
    wants to ask more. `expects`: it waits for a word before it sends the body.
    """

    request: RequestHead
    length: int
    speaks_1_1: bool
    persists: bool
    expects: bool


class HeadReader:
    """Reads the heads of one connection."""

    __slots__ = ("_known",)

    def __init__(self) -> None:
        self._known: dict[
            bytes | tuple[bytes, bytes], ReceivedHead
        ] = {}  # whole, or what is around the length

    def read(self, block: bytes) -> ReceivedHead:
        """Read a whole head, to its empty line.

        Raises:
            Fault: it is none, or not one that everybody would read alike.
        """
        found = _LENGTH.search(block)
        key = block if found is None else (block[: found.start(1)], block[found.end(1) :])
        head = self._known.get(key)
        if head is None:
            head = _read(block)
            if len(block) <= _LONGEST_REMEMBERED:
                if len(self._known) >= _REMEMBERED:
                    self._known.clear()
                self._known[key] = head
        elif found is not None and head.length != int(found[1]):
            head = self._known[key] = _with_length(head, found[1])
        return head


def _with_length(head: ReceivedHead, digits: bytes) -> ReceivedHead:
    """The same head of another body. It is remembered in place of the other, for many requests are as long as the one before."""
    request = head.request
    headers = [
        header if header[0] != b"content-length" else (b"content-length", digits)
        for header in request.headers
    ]
    return replace(head, request=RequestHead(request.method, request.target, headers), length=int(digits))


def _read(block: bytes) -> ReceivedHead:
    fault = head_fault(block)
    if fault is not None:
        raise Fault(fault.status, fault.reason)
    try:
        event = chunks(block).next_event()
    except h11.RemoteProtocolError as exc:
        raise Fault(exc.error_status_hint, str(exc)) from None
    assert isinstance(
        event, h11.Request
    )  # the head is whole, and it is none of those that h11 takes for something else
    length, persists, expects = 0, True, False
    headers = list(event.headers)
    for name, value in headers:
        if name == b"content-length":
            length = int(value)
        elif name == b"transfer-encoding":
            length = CHUNKED
        elif name == b"connection":
            persists = persists and b"close" not in [token.strip() for token in value.lower().split(b",")]
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


def chunks(block: bytes) -> h11.Connection:
    """What reads the request that begins with the head `block`."""
    connection = h11.Connection(h11.SERVER, _INCOMPLETE)
    connection.receive_data(block)
    return connection


@lru_cache(maxsize=256)
def status_lines(status: int, headers: Sequence[tuple[bytes, bytes]]) -> tuple[bytes, bool]:
    """The first lines of the head of an answer, and whether they tell the length of its body.

    Raises:
        h11.LocalProtocolError: a header is none.
    """
    kind = h11.Response if status >= 200 else h11.InformationalResponse
    checked = kind(status_code=status, headers=list(headers)).headers
    lines = [b"HTTP/1.1 %d %s\r\n" % (status, _PHRASES.get(status, b""))]
    lines += [b"%s: %s\r\n" % header for header in checked]
    return b"".join(lines), any(name == b"content-length" for name, _ in checked)


def date_line() -> bytes:
    return b"date: %b\r\n" % _date_value(int(time.time()))


def date_value() -> bytes:
    return _date_value(int(time.time()))


@lru_cache(maxsize=1)
def _date_value(second: int) -> bytes:
    year, month, day, hour, minute, seconds, weekday, *_ = time.gmtime(second)
    named = _DAYS[weekday], day, _MONTHS[month - 1], year
    return b"%b, %02d %b %d %02d:%02d:%02d GMT" % (*named, hour, minute, seconds)
