"""Heads over HTTP/2: caching does not change their meaning, and every client can decode ours."""

from __future__ import annotations

import pytest
from hpack import Decoder, Encoder, InvalidTableIndex, InvalidTableSizeError
from hypothesis import given
from hypothesis import strategies as st

from mcp_core.http import HeadError, RequestHead
from mcp_trio.http_server._h2_streams import (
    _NAME_INDEX,
    _STATUS_INDEX,
    H2ServerProtocol,
    response_head_fields,
)
from tests.levels import fewer_examples

POST = [(b":method", b"POST"), (b":scheme", b"http"), (b":authority", b"a"), (b":path", b"/mcp")]
# Few different ones, so that they repeat; and long ones, so that tables overflow.
NAMES = st.sampled_from([b"a", b"b", b"content-length", b":path", b"x" * 50])
VALUES = st.sampled_from([b"", b"1", b"2", b"/mcp", b"v" * 1_000, b"w" * 3_000, b"w" * 5_000])
HEADS = st.lists(st.tuples(NAMES, VALUES), max_size=4)


Fields = list[tuple[bytes, bytes]]
SIZES = st.sampled_from([None, None, None, 0, 100, 4_096])


@fewer_examples(10)
@given(st.lists(st.tuples(HEADS, SIZES), max_size=4))
def test_hpack_cached_blocks_decode_like_hpack(heads: list[tuple[Fields, int | None]]) -> None:
    check_cached_blocks(heads)


@pytest.mark.long
@given(st.lists(st.tuples(HEADS, SIZES), max_size=30))
def test_hpack_cached_blocks_decode_like_hpack_long(heads: list[tuple[Fields, int | None]]) -> None:
    """Many heads on one connection: the table overflows, and cached blocks get stale."""
    check_cached_blocks(heads)


def check_cached_blocks(heads: list[tuple[Fields, int | None]]) -> None:
    """Assert that our decoder reads heads as the library does, each three times.

    A head may come with a new size of the encoder's table.
    """
    encoder, plain, ours = Encoder(), Decoder(), H2ServerProtocol().decoder
    plain.max_header_list_size = 2**16
    for headers, size in heads:
        if size is not None:
            encoder.header_table_size = size
        for _ in range(3):
            data = encoder.encode(headers)
            assert (
                list(ours.decode(data, raw=True)) == list(plain.decode(data, raw=True)) == headers
            )


def test_hpack_cache_is_cleared_when_the_table_changes() -> None:
    def entry(value: bytes) -> bytes:
        return b"\x40\x01x" + bytes((len(value),)) + value

    def limit(size: int) -> bytes:
        return b"\x3f" + bytes((((size - 31) & 127) | 128, (size - 31) >> 7))

    older, static = b"\xbf", b"\x84"
    ours = H2ServerProtocol().decoder
    ours.decode(entry(b"a" * 100) + entry(b"b" * 100), raw=True)
    for _ in range(2):
        assert list(ours.decode(older, raw=True)) == [(b"x", b"a" * 100)]
    ours.decode(limit(200) + limit(4096) + static, raw=True)
    with pytest.raises(InvalidTableIndex):
        ours.decode(older, raw=True)


def test_hpack_cache_is_limited() -> None:
    encoder, ours = Encoder(), H2ServerProtocol().decoder
    for number in range(100):
        for _ in range(3):
            ours.decode(encoder.encode([(b"x", b"%d" % number)]), raw=True)
        assert len(ours._cache) <= 8  # type: ignore[attr-defined]
    encoder.encode([(b"x", b"y" * 2_000)])
    long = b"".join([b"\0\x01a\x01b"] * 300)
    ours.decode(long, raw=True)
    assert long not in ours._cache  # type: ignore[attr-defined]


def test_h2_request_heads_are_cached() -> None:
    parser = H2ServerProtocol()
    first = parser.head(POST)
    assert isinstance(first, RequestHead)
    assert parser.head(list(POST)) is first
    assert isinstance(parser.head([*POST, (b"X", b"y")]), HeadError)
    for number in range(100):
        parser.head([*POST, (b"x", b"%d" % number)])
        assert len(parser._heads) <= 8
    for size, is_kept in (4096 - 13, True), (4096 - 12, False):  # `POST` itself has thirteen bytes
        longest = [*POST, (b"x", b"v" * size)]
        assert (parser.head(longest) is parser.head(longest)) is is_kept


@fewer_examples(2)
@given(
    st.lists(
        st.tuples(
            st.sampled_from([b"content-type", b"allow", b"date", b"x", b"y" * 300]),
            st.binary(max_size=500),
        ),
        max_size=5,
    ),
    st.sampled_from([b"200", b"202", b"204", b"404", b"503"]),
)
def test_hpack_encoded_heads_decode_without_a_table(
    headers: list[tuple[bytes, bytes]], status: bytes
) -> None:
    encoder, decoder = H2ServerProtocol().encoder, Decoder()
    for _ in range(3):
        encoded = encoder.encode([(b":status", status), *headers])
        assert list(decoder.decode(encoded, raw=True)) == [(b":status", status), *headers]
        assert len(decoder.header_table.dynamic_entries) == 0


@pytest.mark.parametrize("size", [0, 1, 126, 127, 128, 254, 255, 256, 16_510, 16_511, 16_512])
def test_hpack_length_has_as_many_bytes_as_the_library_reads(size: int) -> None:
    """The lengths at which an integer with a 7-bit prefix gets one byte more (RFC 7541 5.1)."""
    encoded = H2ServerProtocol().encoder.encode([(b"x", b"v" * size), (b"n" * size, b"")])
    assert list(Decoder().decode(encoded, raw=True)) == [(b"x", b"v" * size), (b"n" * size, b"")]
    assert len(encoded) == 8 + 2 * size + 2 * (size >= 127) * (
        1 + (size >= 127 + 128) + (size >= 127 + 128**2)
    )


def test_hpack_indexes_are_those_of_the_static_table() -> None:
    """A wrong index is another header, which no client would miss in most responses."""
    encoder, decoder = H2ServerProtocol().encoder, Decoder()
    for status in _STATUS_INDEX:
        head = [(b":status", status), *((name, b"value") for name in [*_NAME_INDEX][1:])]
        assert list(decoder.decode(encoder.encode(head), raw=True)) == head


def test_hpack_client_with_an_empty_table_decodes() -> None:
    decoder = Decoder()
    decoder.max_allowed_table_size = 0
    encoder = H2ServerProtocol().encoder
    encoder.header_table_size = 0
    assert list(decoder.decode(encoder.encode([(b":status", b"200")]), raw=True)) == [
        (b":status", b"200")
    ]
    assert list(decoder.decode(encoder.encode([(b":status", b"201")]), raw=True)) == [
        (b":status", b"201")
    ]
    forgetful = Decoder()
    forgetful.max_allowed_table_size = 0
    with pytest.raises(InvalidTableSizeError):  # without the size update it is an error
        forgetful.decode(encoder.encode([(b":status", b"200")]), raw=True)


def test_h2_response_fields_are_normalized() -> None:
    (status, kind, length, date) = response_head_fields(
        200, [(b"content-length", b"5"), (b"Content-Type", b"a/b"), (b"connection", b"close")]
    )
    assert (status, kind, length) == (
        (b":status", b"200"),
        (b"content-type", b"a/b"),
        (b"content-length", b"5"),
    )
    assert date[0] == b"date"
    with pytest.raises(ValueError, match="header"):
        response_head_fields(200, [(b"x", b"a\nb")])
