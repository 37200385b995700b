"""HTTP/1.1 heads as the server driver reads and writes them, with h11 and a cache."""

from __future__ import annotations

import time
from email.utils import formatdate

import h11
import pytest

from mcp_trio.http_server import _h11_heads
from mcp_trio.http_server._h11_heads import CHUNKED, BadRequest, HeadReader, date_line, status_lines
from tests.core.http.heads import ROWS, SERVED, Row

POST = b"POST /mcp?a HTTP/1.1\r\nHost: localhost\r\n"


def test_h11_head_is_parsed() -> None:
    head = HeadReader().read(POST + b"Content-Length: 5\r\nX-A:  b c \r\n\r\n")
    assert head.request.method == b"POST"
    assert head.request.target == b"/mcp?a"
    assert head.request.headers == [
        (b"host", b"localhost"),
        (b"content-length", b"5"),
        (b"x-a", b"b c"),
    ]
    assert (head.length, head.is_http_1_1, head.keep_alive, head.expects_continue) == (
        5,
        True,
        True,
        False,
    )


@pytest.mark.parametrize(
    ("head", "length", "speaks_1_1", "persists", "expects"),
    [
        (POST, 0, True, True, False),
        (POST + b"Transfer-Encoding: Chunked\r\n", CHUNKED, True, True, False),
        (POST + b"Expect: 100-Continue\r\nContent-Length: 1\r\n", 1, True, True, True),
        (POST + b"Connection: a , Close\r\n", 0, True, False, False),
        (POST + b"Connection: close\r\nConnection: keep-alive\r\n", 0, True, False, False),
        (POST + b"Connection: closed\r\n", 0, True, True, False),
        (b"GET / HTTP/1.0\r\nConnection: keep-alive\r\n", 0, False, False, False),
        (b"GET / HTTP/1.0\r\nExpect: 100-continue\r\n", 0, False, False, False),
    ],
)
def test_h11_head_determines_length_and_persistence(
    head: bytes, length: int, speaks_1_1: bool, persists: bool, expects: bool
) -> None:
    read = HeadReader().read(head + b"\r\n")
    assert (read.length, read.is_http_1_1, read.keep_alive, read.expects_continue) == (
        length,
        speaks_1_1,
        persists,
        expects,
    )


def test_h11_head_absolute_url_becomes_a_path() -> None:
    head = HeadReader().read(b"GET http://localhost/a?b HTTP/1.1\r\nHost: localhost\r\n\r\n")
    assert head.request.target == b"/a?b"


def test_h11_head_is_parsed_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Clients repeat their heads, so parsing is cached, with bounds on entries and sizes."""
    read: list[bytes] = []
    make = _h11_heads.chunk_parser

    def chunks(block: bytes) -> h11.Connection:
        read.append(block)
        return make(block)

    monkeypatch.setattr(_h11_heads, "chunk_parser", chunks)
    reader = HeadReader()
    heads = [POST + b"X: %d\r\n\r\n" % number for number in range(9)]
    assert reader.read(heads[0]) is reader.read(heads[0])
    for head in heads[:8] * 2:
        reader.read(head)
    assert read == heads[:8]
    reader.read(heads[8])  # this clears the cache
    assert reader.read(heads[0]).request.headers[-1] == (b"x", b"0")
    assert read == [*heads, heads[0]]
    long = POST + b"X: %b\r\n\r\n" % (b"a" * 5_000)
    assert reader.read(long) is not reader.read(long)


def test_h11_heads_differing_in_content_length_are_parsed_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A client's calls often differ only in length, and the cache must not return a stale one."""
    read: list[bytes] = []
    make = _h11_heads.chunk_parser

    def chunks(block: bytes) -> h11.Connection:
        read.append(block)
        return make(block)

    monkeypatch.setattr(_h11_heads, "chunk_parser", chunks)
    reader = HeadReader()
    first = reader.read(POST + b"Content-Length: 5\r\nX: a\r\n\r\n")
    for digits in ("17", "999999999", "17", "5"):
        block = POST + b"Content-Length: %b\r\nX: a\r\n\r\n" % digits.encode()
        head = reader.read(block)
        assert head.length == int(digits)
        assert len(read) == 1
        assert head == HeadReader().read(block)
        read.pop()
    assert first.length == 5
    assert first.request.headers[1] == (b"content-length", b"5")


@pytest.mark.parametrize(
    "digits",
    [b"", b"0", b"05", b"+5", b"5,5", b"5 ", b"\0", b"5\r\nContent-Length: 5", b"9" * 10, b"x"],
)
def test_h11_head_unusual_content_length_is_not_cached(digits: bytes) -> None:
    def verdict(reader: HeadReader, block: bytes) -> object:
        try:
            return reader.read(block)
        except BadRequest as fault:
            return fault.status, str(fault)

    reader = HeadReader()
    reader.read(POST + b"Content-Length: 5\r\n\r\n")
    block = POST + b"Content-Length: %b\r\n\r\n" % digits
    assert verdict(reader, block) == verdict(HeadReader(), block)


def test_h11_head_rejected_twice() -> None:
    reader = HeadReader()
    for _ in range(2):
        with pytest.raises(BadRequest, match="Host header is missing") as caught:
            reader.read(b"GET / HTTP/1.1\r\n\r\n")
        assert caught.value.status == 400


def test_h11_head_errors_of_h11_are_rejected_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_h11_heads, "find_head_error", lambda _: None)
    for block, status in (
        (b"GET / HTTP/1.1\r\n\r\n", 400),
        (POST + b"Transfer-Encoding: x\r\n\r\n", 501),
    ):
        with pytest.raises(BadRequest) as caught:
            HeadReader().read(block)
        assert caught.value.status == status


@pytest.mark.parametrize(
    "row", [row for row in ROWS if row.status == SERVED], ids=lambda row: row.name
)
def test_h11_heads_of_the_corpus_parse_alike_from_the_cache(row: Row) -> None:
    block = row.raw[: row.raw.index(b"\r\n\r\n") + 4]
    reader = HeadReader()
    assert reader.read(block) == reader.read(block) == HeadReader().read(block)


def test_h11_status_lines_are_cached() -> None:
    headers = ((b"content-type", b"text/plain"), (b"X-A", b"b"))
    lines, has_length = status_lines(200, headers)
    assert (lines, has_length) == (
        b"HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\nx-a: b\r\n",
        False,
    )
    assert status_lines(200, headers)[0] is lines
    assert status_lines(299, ((b"content-length", b"5"),)) == (
        b"HTTP/1.1 299 \r\ncontent-length: 5\r\n",
        True,
    )


@pytest.mark.parametrize(
    "header", [(b"a", b"b\r\nc: d"), (b"a b", b"c"), (b"a\r\nb", b"c"), (b"a", b"b\0")]
)
def test_h11_status_lines_reject_header_injection(header: tuple[bytes, bytes]) -> None:
    with pytest.raises(h11.LocalProtocolError):
        status_lines(200, (header,))


@pytest.mark.parametrize("second", [0, 784_111_777, 951_782_400, 1_799_999_999])
def test_h11_date_is_an_imf_fixdate(second: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(time, "time", lambda: second + 0.9)
    assert date_line() == b"date: %b\r\n" % formatdate(second, usegmt=True).encode()
