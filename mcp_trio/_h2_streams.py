"""What a server's connection of HTTP/2 remembers of each request, and how heads are read and written there.

Rules of this file:

1. Heads of requests that are repeated are read once, as those of HTTP/1.1 are: each connection remembers its own, and what is remembered
   is a function of the bytes, as long as nothing in between could have changed their meaning.
2. Heads of answers are told without a memory (RFC 7541 6.2.2). They are short, what they save by one is little, and so neither can a client
   have us remember much, nor can anybody find out by a length what was said to somebody else.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final

from h2.settings import SettingCodes
from hpack import Decoder, Encoder

from mcp_core.http import HTTP2_STREAMS, RequestHead, request_head, response_fields

from ._h2_parser import Parser
from ._h11_heads import date_value

if TYPE_CHECKING:
    from collections.abc import Sequence

    import trio

    from mcp_core.http import Exchange, Headers, HeadFault

__all__ = ["STREAM_WINDOW", "ServedStream", "ServerParser", "fields"]

STREAM_WINDOW: Final = 65_535  # what RFC 9113 gives to everybody who has not been told otherwise
_SETTINGS: Final = {
    SettingCodes.ENABLE_PUSH: 0,
    SettingCodes.MAX_CONCURRENT_STREAMS: HTTP2_STREAMS,
    SettingCodes.MAX_HEADER_LIST_SIZE: 32 * 1024,
}
# Heads that one connection remembers: as many as a client has kinds of requests; and how long they may be.
_REMEMBERED: Final = 8
_LONGEST_REMEMBERED: Final = 1024  # bytes, as they are sent
_LONGEST_HEAD: Final = 4 * 1024  # as they are read, which may be many times as long
# Where names, and whole headers, stand in the table that everybody has (RFC 7541, appendix A).
_STATUSES: Final = {b"200": 8, b"204": 9, b"400": 12, b"404": 13, b"500": 14}
_NAMES: Final = {
    b":status": 8,
    b"access-control-allow-origin": 20,
    b"allow": 22,
    b"cache-control": 24,
    b"content-length": 28,
    b"content-type": 31,
    b"date": 33,
    b"retry-after": 53,
    b"vary": 59,
    b"www-authenticate": 61,
}
# "What is remembered may take no room": said once, since the client may want to hear that it takes no more than so much.
_NO_TABLE: Final = b"\x20"


class _Reader(Decoder):
    """Reads heads."""

    def __init__(self, limit: int) -> None:
        super().__init__(limit)
        self._known: dict[bytes, Any] = {}

    def decode(self, data: bytes, raw: bool = False) -> Any:
        known = self._known.get(data)
        if known is not None:
            return known
        newest, size = self._newest(), self._size()
        headers = super().decode(data, raw)
        same = self._newest() is newest and self._size() == size
        if not same or len(self._known) >= _REMEMBERED:
            self._known.clear()
        if same and len(data) <= _LONGEST_REMEMBERED:
            self._known[data] = headers
        return headers

    # The table that blocks refer to grows at one end and shrinks at the other: if both ends are where they were, it is the same.

    def _newest(self) -> object:
        entries = self.header_table.dynamic_entries
        return entries[0] if entries else None

    def _size(self) -> tuple[int, int]:
        return len(self.header_table.dynamic_entries), self.header_table.maxsize


class _Writer(Encoder):
    """Writes heads, each as it would be written if it were the only one."""

    def __init__(self) -> None:
        super().__init__()
        self._first = _NO_TABLE

    def encode(self, headers: Any, huffman: bool = True) -> bytes:
        said, self._first = [self._first], b""
        for name, value in headers:
            if name == b":status" and value in _STATUSES:
                said.append(bytes((0x80 | _STATUSES[value],)))
            else:
                said += (_name(name), _length(len(value)), value)
        return b"".join(said)


@lru_cache(maxsize=64)
def _name(name: bytes) -> bytes:
    """The beginning of a header that nobody need remember."""
    index = _NAMES.get(name)
    if index is None:
        return b"\0" + _length(len(name)) + name
    return bytes((index,)) if index < 15 else bytes((15, index - 15))


def _length(size: int) -> bytes:
    """The length of a text: a number of at least seven bits (RFC 7541 5.1)."""
    if size < 127:
        return bytes((size,))
    said, size = [127], size - 127
    while size >= 128:
        said.append(size & 127 | 128)
        size >>= 7
    return bytes((*said, size))


class ServerParser(Parser):
    """h2 for a server, which has said its settings."""

    def __init__(self) -> None:
        super().__init__(_SETTINGS, is_client=False)
        self._heads: dict[tuple[tuple[bytes, bytes], ...], RequestHead] = {}
        self.decoder = _Reader(self.DEFAULT_MAX_HEADER_LIST_SIZE)
        self.encoder = _Writer()
        self.initiate_connection()

    def head(self, headers: Sequence[tuple[bytes, bytes]]) -> RequestHead | HeadFault:
        """The head of a request that has arrived."""
        key = tuple(headers)
        head = self._heads.get(key)
        if head is not None:
            return head
        found = request_head(headers)
        if isinstance(found, RequestHead) and sum([len(value) for _, value in headers]) <= _LONGEST_HEAD:
            if len(self._heads) >= _REMEMBERED:
                self._heads.clear()
            self._heads[key] = found
        return found


class ServedStream:
    """One request and its answer, on the connection of which it is a stream; and the token of its exchange."""

    __slots__ = (
        "admitting",
        "at",
        "began",
        "body",
        "came",
        "complete",
        "connection",
        "ended",
        "exchange",
        "expects",
        "given",
        "head",
        "held",
        "id",
        "length",
        "method",
        "over",
        "size",
        "status",
        "unsent",
        "went",
        "window",
    )

    def __init__(self, connection: Any, id: int, head: RequestHead | None, now: float) -> None:
        self.connection = connection
        self.id = id
        self.began = now
        self.head = head  # None if there is none that could be told to anybody
        self.method = ""  # of MCP
        self.exchange: Exchange | None = None
        self.admitting: trio.CancelScope | None = None  # its guard is still asked
        # The request.
        self.expects = False  # the client waits for a word before it sends the body
        self.ended = False  # all of it is here
        self.body: bytes | bytearray = b""  # what the exchange has not got of it yet
        self.held = 0  # what it has got
        self.length = -1  # what is still to come of it, if the head says so
        self.came = self.went = 0  # what came of it, and was sent of the answer, since the deadline was set
        self.window = self.given = STREAM_WINDOW  # what may still be sent, and could be when that was said
        # The answer.
        self.status = 0
        self.size = 0
        self.unsent = b""  # what was taken of it, of which the first `at` bytes are sent
        self.at = 0
        self.over = False  # nothing comes behind that
        self.complete = False  # all of it is sent

    def __repr__(self) -> str:
        return f"<ServedStream {self.id}, {self.exchange!r}>"

    def poke(self) -> None:
        """There is something to write."""
        self.connection.poke(self)


def fields(status: int, headers: Headers) -> Headers:
    """The list of headers that says the head of an answer.

    Raises:
        ValueError: one of them is no header.
    """
    # What is said of the length is not among what is remembered.
    length = [header for header in headers if header[0] == b"content-length"]
    rest = (
        tuple([header for header in headers if header[0] != b"content-length"]) if length else tuple(headers)
    )
    return [*_checked(status, rest), *length, (b"date", date_value())]


@lru_cache(maxsize=256)
def _checked(status: int, headers: Sequence[tuple[bytes, bytes]]) -> Headers:
    return response_fields(status, headers)
