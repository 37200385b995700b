"""The streams of an HTTP/2 server connection, and the encoding of their heads.

1. Repeated request heads are decoded once, as in HTTP/1.1. Each connection has its own cache. A
   cached result is valid only while the HPACK table hasn't changed since.
2. Response heads are sent without indexing (RFC 7541 6.2.2). They are short, so a table would save
   little. In return, no client can make us keep a large table, and compressed lengths reveal
   nothing.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final

from h2.settings import SettingCodes
from hpack import Decoder, Encoder

from mcp_core.http import MAX_CONCURRENT_STREAMS, RequestHead, encode_response_head, request_head
from mcp_trio._h2_protocol import INITIAL_WINDOW, H2Protocol

from ._h11_heads import date_value

if TYPE_CHECKING:
    from collections.abc import Sequence

    import trio

    from mcp_core.http import Exchange, HeadError, Headers

__all__ = ["H2ServerProtocol", "H2ServerStream", "response_head_fields"]

_SETTINGS: Final = {
    SettingCodes.ENABLE_PUSH: 0,
    SettingCodes.MAX_CONCURRENT_STREAMS: MAX_CONCURRENT_STREAMS,
    SettingCodes.MAX_HEADER_LIST_SIZE: 32 * 1024,
}
# Heads that one connection caches: about as many as a client has kinds of requests.
_MAX_CACHED: Final = 8
_MAX_CACHED_BLOCK: Final = 1024  # bytes of a compressed head; longer ones aren't cached
_MAX_CACHED_HEAD: Final = 4 * 1024  # bytes of its values after decompression
# Indexes in HPACK's static table (RFC 7541, appendix A), of complete headers and of names.
_STATUS_INDEX: Final = {b"200": 8, b"204": 9, b"400": 12, b"404": 13, b"500": 14}
_NAME_INDEX: Final = {
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
# The dynamic table size update to 0. Sent once, in the first block: a client may have limited the
# table, and must then receive an update (RFC 7541 4.2).
_EMPTY_TABLE: Final = b"\x20"


class _HpackDecoder(Decoder):
    """An HPACK decoder with a cache of whole blocks."""

    def __init__(self, limit: int) -> None:
        super().__init__(limit)
        self._cache: dict[bytes, Any] = {}

    def decode(self, data: bytes, raw: bool = False) -> Any:
        """Decode a header block."""
        cached = self._cache.get(data)
        if cached is not None:
            return cached
        newest = self._newest()
        size = self._size()
        headers = super().decode(data, raw)
        # The table grows at one end and shrinks at the other. If both ends are unchanged, the whole
        # table is, and the cached results remain valid.
        unchanged = self._newest() is newest and self._size() == size
        if not unchanged or len(self._cache) >= _MAX_CACHED:
            self._cache.clear()
        if unchanged and len(data) <= _MAX_CACHED_BLOCK:
            self._cache[data] = headers
        return headers

    def _newest(self) -> object:
        entries = self.header_table.dynamic_entries
        return entries[0] if entries else None

    def _size(self) -> tuple[int, int]:
        return len(self.header_table.dynamic_entries), self.header_table.maxsize


class _HpackEncoder(Encoder):
    """An HPACK encoder without a dynamic table: each block is independent of all others."""

    def __init__(self) -> None:
        super().__init__()
        self._prefix = _EMPTY_TABLE

    def encode(self, headers: Any, huffman: bool = True) -> bytes:
        """Encode a header block."""
        parts = [self._prefix]
        self._prefix = b""
        for name, value in headers:
            if name == b":status" and value in _STATUS_INDEX:
                parts.append(bytes((0x80 | _STATUS_INDEX[value],)))
            else:
                parts += (_encode_name(name), _encode_length(len(value)), value)
        return b"".join(parts)


@lru_cache(maxsize=64)
def _encode_name(name: bytes) -> bytes:
    """Encode the name of a literal header without indexing (RFC 7541 6.2.2)."""
    index = _NAME_INDEX.get(name)
    if index is None:
        return b"\0" + _encode_length(len(name)) + name
    return bytes((index,)) if index < 15 else bytes((15, index - 15))


def _encode_length(size: int) -> bytes:
    """Encode the length of a string as an integer with a 7-bit prefix (RFC 7541 5.1)."""
    if size < 127:
        return bytes((size,))
    encoded = [127]
    size -= 127
    while size >= 128:
        encoded.append(size & 127 | 128)
        size >>= 7
    return bytes((*encoded, size))


class H2ServerProtocol(H2Protocol):
    """h2 for a server. The server's settings are already queued."""

    def __init__(self) -> None:
        super().__init__(_SETTINGS, is_client=False)
        self._heads: dict[tuple[tuple[bytes, bytes], ...], RequestHead] = {}
        self.decoder = _HpackDecoder(self.DEFAULT_MAX_HEADER_LIST_SIZE)
        self.encoder = _HpackEncoder()
        self.initiate_connection()

    def head(self, headers: Sequence[tuple[bytes, bytes]]) -> RequestHead | HeadError:
        """Return the head of a received request, or the error in it."""
        key = tuple(headers)
        head = self._heads.get(key)
        if head is not None:
            return head
        found = request_head(headers)
        if (
            isinstance(found, RequestHead)
            and sum([len(value) for _, value in headers]) <= _MAX_CACHED_HEAD
        ):
            if len(self._heads) >= _MAX_CACHED:
                self._heads.clear()
            self._heads[key] = found
        return found


class H2ServerStream:
    """One request and its response on a connection. It is its exchange's token."""

    __slots__ = (
        "auth_scope",
        "body",
        "body_bytes",
        "body_left",
        "connection",
        "end_after",
        "exchange",
        "expects_continue",
        "head",
        "id",
        "received",
        "request_complete",
        "response_complete",
        "response_size",
        "rpc_method",
        "sent",
        "started_at",
        "status",
        "unsent",
        "unsent_offset",
        "window",
        "window_size",
    )

    def __init__(self, connection: Any, id: int, head: RequestHead | None, now: float) -> None:
        self.connection = connection
        self.id = id
        self.started_at = now
        self.head = head  # for the access log; None if it is invalid or was logged
        self.rpc_method = ""  # of MCP
        self.exchange: Exchange | None = None
        self.auth_scope: trio.CancelScope | None = None  # around the authorization check
        # The request.
        self.expects_continue = False  # the client waits for "100 Continue"
        self.request_complete = False  # all of the request has arrived
        self.body: bytes | bytearray = b""  # received bytes that the exchange hasn't got yet
        self.body_bytes = 0  # the number of bytes that it has got
        self.body_left = -1  # bytes still to come, or -1 if the head doesn't declare a length
        # Bytes of the body received, and of the response sent, since the deadline was set.
        self.received = 0
        self.sent = 0
        # Bytes that the client may still send, and could when the window was last opened.
        self.window = INITIAL_WINDOW
        self.window_size = INITIAL_WINDOW
        # The response.
        self.status = 0
        self.response_size = 0
        self.unsent = b""  # body bytes taken from the exchange; those before the offset are sent
        self.unsent_offset = 0
        self.end_after = False  # the response ends with `unsent`
        self.response_complete = False  # all of the response is sent

    def __repr__(self) -> str:
        return f"<H2ServerStream {self.id}, {self.exchange!r}>"

    def wake(self) -> None:
        """Wake the connection: the exchange has output for this stream."""
        self.connection.wake(self)


def response_head_fields(status: int, headers: Headers) -> Headers:
    """Return the header fields of a response head, with the date.

    Raises:
        ValueError: a header is invalid.
    """
    # Content-Length differs by response, so it isn't part of the cached fields.
    length = [header for header in headers if header[0] == b"content-length"]
    others = tuple(headers)
    if length:
        others = tuple([header for header in headers if header[0] != b"content-length"])
    return [*_checked(status, others), *length, (b"date", date_value())]


@lru_cache(maxsize=256)
def _checked(status: int, headers: Sequence[tuple[bytes, bytes]]) -> Headers:
    return encode_response_head(status, headers)
