"""HTTP/2 heads: which lists of headers are valid, and how heads are encoded."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcp_core.http import (
    Head,
    HeadError,
    RequestHead,
    encode_request_head,
    encode_response_head,
    find_trailer_error,
    request_head,
    response_head,
)
from mcp_core.http.wire._head_limits import SINGLETONS

POST = [
    (b":method", b"POST"),
    (b":scheme", b"https"),
    (b":authority", b"a.example"),
    (b":path", b"/mcp"),
]


def without(*names: bytes) -> list[tuple[bytes, bytes]]:
    return [header for header in POST if header[0] not in names]


def sized(size: int) -> list[tuple[bytes, bytes]]:
    """Build a head of `size` bytes, counted as in RFC 9113, 6.5.2."""
    headers = [*POST, *[(b"x", b"v" * 300)] * 90]
    left = size - sum([len(name) + len(value) + 32 for name, value in headers])
    return [*headers, (b"y", b"v" * (left - 33))]


HEADS = {
    "a request": (POST, [(b"host", b"a.example")]),
    "with fields": (
        [*POST, (b"x", b"a"), (b"x", b"b")],
        [(b"host", b"a.example"), (b"x", b"a"), (b"x", b"b")],
    ),
    "host for authority": ([*without(b":authority"), (b"host", b"a")], [(b"host", b"a")]),
    "both": (
        [*POST, (b"a", b"1"), (b"host", b"A.example")],
        [(b"host", b"A.example"), (b"a", b"1")],
    ),
    "an empty value": ([*POST, (b"x", b"")], [(b"host", b"a.example"), (b"x", b"")]),
    "opaque bytes": (
        [*POST, (b"x", b"\xe9 \t\xff")],
        [(b"host", b"a.example"), (b"x", b"\xe9 \t\xff")],
    ),
    "trailers": ([*POST, (b"te", b"Trailers")], [(b"host", b"a.example"), (b"te", b"Trailers")]),
    "a cookie": ([*POST, (b"cookie", b"a=b")], [(b"host", b"a.example"), (b"cookie", b"a=b")]),
    "pieces of a cookie": (
        [*POST, (b"cookie", b"a=b"), (b"x", b"y"), (b"cookie", b"c=d")],
        [(b"host", b"a.example"), (b"x", b"y"), (b"cookie", b"a=b; c=d")],
    ),
    "as many as may be": (
        [*POST, *[(b"x", b"")] * 100],
        [(b"host", b"a.example"), *[(b"x", b"")] * 100],
    ),
    "as many bytes as may be": (sized(32 * 1024), None),
    "as long as may be": ([*POST, *[(b"x", bytes(8192).replace(b"\0", b"v"))] * 3], None),
    "an expectation": ([*POST, (b"expect", b"100-Continue")], None),
    "the longest length": ([*POST, (b"content-length", b"1" * 18)], None),
}


@pytest.mark.parametrize(("headers", "expected"), HEADS.values(), ids=HEADS)
def test_request_head_valid_fields_become_head(
    headers: list[tuple[bytes, bytes]], expected: list[tuple[bytes, bytes]] | None
) -> None:
    head = request_head(headers)
    assert isinstance(head, RequestHead), head
    assert (head.method, head.target) == (b"POST", b"/mcp")
    if expected is not None:
        assert head.headers == expected


@pytest.mark.parametrize(
    ("method", "path"),
    [
        (b"OPTIONS", b"*"),
        (b"GET", b"/"),
        (b"GET", b"/a%20b?c=d/e"),
        (b"M-SEARCH", b"/" + b"x" * 8191),
    ],
)
def test_request_head_keeps_method_and_target(method: bytes, path: bytes) -> None:
    head = request_head([(b":method", method), (b":path", path), *without(b":method", b":path")])
    assert head == RequestHead(method, path, [(b"host", b"a.example")])


FAULTS = {
    "no method": (without(b":method"), 400),
    "no path": (without(b":path"), 400),
    "no scheme": (without(b":scheme"), 400),
    "no authority": (without(b":authority"), 400),
    "an empty authority": ([*without(b":authority"), (b":authority", b"")], 400),
    "nothing": ([], 400),
    "two methods": ([*POST, (b":method", b"POST")], 400),
    "a pseudo-header behind": ([*without(b":path"), (b"x", b"y"), (b":path", b"/")], 400),
    "an unknown one": ([*POST, (b":version", b"2")], 400),
    "one in place of the authority": (
        [*without(b":authority"), (b":protocol", b"websocket"), (b"host", b"a")],
        400,
    ),
    "a status": ([*POST, (b":status", b"200")], 400),
    "another host": ([*POST, (b"host", b"b.example")], 400),
    "two hosts": ([*without(b":authority"), (b"host", b"a"), (b"host", b"a")], 400),
    "an empty name": ([*POST, (b"", b"y")], 400),
    "upper case": ([*POST, (b"X", b"y")], 400),
    "a space in a name": ([*POST, (b"x y", b"y")], 400),
    "a colon in a name": ([*POST, (b"x:y", b"y")], 400),
    "a line in a name": ([*POST, (b"x\ny", b"y")], 400),
    "a line in a value": ([*POST, (b"x", b"a\r\nb: c")], 400),
    "a newline in a value": ([*POST, (b"x", b"a\nb")], 400),
    "a NUL in a value": ([*POST, (b"x", b"a\0b")], 400),
    "DEL in a value": ([*POST, (b"x", b"\x7f")], 400),
    "space before a value": ([*POST, (b"x", b" a"), (b"y", b"b")], 400),
    "a tab behind a value": ([*POST, (b"x", b"a\t"), (b"y", b"b")], 400),
    "space behind the last value": ([*POST, (b"x", b"a ")], 400),
    "space before the first value": ([(b":method", b" POST"), *without(b":method")], 400),
    "connection": ([*POST, (b"connection", b"close")], 400),
    "keep-alive": ([*POST, (b"keep-alive", b"timeout=5")], 400),
    "proxy-connection": ([*POST, (b"proxy-connection", b"close")], 400),
    "transfer-encoding": ([*POST, (b"transfer-encoding", b"chunked")], 400),
    "upgrade": ([*POST, (b"upgrade", b"websocket")], 400),
    "te": ([*POST, (b"te", b"gzip")], 400),
    "te twice": ([*POST, (b"te", b"gzip"), (b"te", b"trailers")], 400),
    "a bad method": ([(b":method", b"P OST"), *without(b":method")], 400),
    "a long method": ([(b":method", b"X" * 33), *without(b":method")], 400),
    "a bad scheme": ([(b":scheme", b"ht tp"), *without(b":scheme")], 400),
    "an empty path": ([(b":path", b""), *without(b":path")], 400),
    "a URL for a path": ([(b":path", b"https://a.example/"), *without(b":path")], 400),
    "a star for a path": ([(b":path", b"*"), *without(b":path")], 400),
    "a space in a path": ([(b":path", b"/a b"), *without(b":path")], 400),
    "a fragment": ([(b":path", b"/a#b"), *without(b":path")], 400),
    "a length that is none": ([*POST, (b"content-length", b"+1")], 400),
    "a length with zeros": ([*POST, (b"content-length", b"01")], 400),
    "an empty length": ([*POST, (b"content-length", b"")], 400),
    "a huge length": ([*POST, (b"content-length", b"1" * 19)], 413),
    "a long path": ([(b":path", b"/" + b"x" * 8192), *without(b":path")], 414),
    "an expectation": ([*POST, (b"expect", b"200-ok")], 417),
    "too many headers": ([*POST, *[(b"x", b"")] * 101], 431),
    "a long value": ([*POST, (b"x", b"x" * 8193)], 431),
    "a long head": ([*POST, *[(b"x", b"x" * 8192)] * 4], 431),
    "one byte too many": (sized(32 * 1024 + 1), 431),
    "connect": ([(b":method", b"CONNECT"), (b":authority", b"a.example:443")], 501),
    "extended connect": (
        [*without(b":method"), (b":method", b"CONNECT"), (b":protocol", b"websocket")],
        501,
    ),
}


@pytest.mark.parametrize(("headers", "status"), FAULTS.values(), ids=FAULTS)
def test_request_head_invalid_fields_are_rejected(
    headers: list[tuple[bytes, bytes]], status: int
) -> None:
    fault = request_head(headers)
    assert isinstance(fault, HeadError), fault
    assert fault.status == status
    assert fault.reason.endswith(".")


@pytest.mark.parametrize("name", SINGLETONS)
def test_request_head_repeated_singleton_is_rejected(name: bytes) -> None:
    fault = request_head([*without(b":authority"), (b"host", b"a"), (name, b"1"), (name, b"1")])
    assert isinstance(fault, HeadError)
    assert fault.status == 400


TEXTS = st.binary(max_size=6)


@given(
    st.lists(
        st.tuples(st.one_of(TEXTS, st.sampled_from([name for name, _ in POST])), TEXTS), max_size=8
    )
)
def test_request_head_any_fields_round_trip_or_fail(headers: list[tuple[bytes, bytes]]) -> None:
    head = request_head([*POST, *headers])
    if isinstance(head, RequestHead):
        assert (
            request_head([(name, value) for name, value in encode_request_head(head, "https")])
            == head
        )
        assert not any(c in value for _, value in head.headers for c in b"\r\n\0")
    assert find_trailer_error(headers) is None or isinstance(find_trailer_error(headers), HeadError)


# -- Other heads ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("headers", "is_right"),
    [
        ([(b"x", b"y")], True),
        ([(b":path", b"/")], False),
        ([(b"X", b"y")], False),
        ([(b"connection", b"close")], False),
        ([(b"x", b"a\r\nb")], False),
    ],
)
def test_trailer_fault_checks_fields(headers: list[tuple[bytes, bytes]], is_right: bool) -> None:
    assert (find_trailer_error(headers) is None) is is_right


@pytest.mark.parametrize(
    ("headers", "head"),
    [
        ([(b":status", b"200")], Head(200, [])),
        ([(b":status", b"103"), (b"link", b"a")], Head(103, [(b"link", b"a")])),
        (
            [(b":status", b"200"), (b"set-cookie", b"a"), (b"set-cookie", b"b")],
            Head(200, [(b"set-cookie", b"a"), (b"set-cookie", b"b")]),
        ),
        ([(b"x", b"y")], None),
        ([(b":status", b"20")], None),
        ([(b":status", b"600")], None),
        ([(b":status", b"200"), (b":path", b"/")], None),
        ([(b":status", b"200"), (b":status", b"200")], None),
        ([(b":status", b"200"), (b"connection", b"close")], None),
        ([(b":status", b"200"), (b"content-length", b"1"), (b"content-length", b"1")], None),
    ],
)
def test_response_head_checks_fields(headers: list[tuple[bytes, bytes]], head: Head | None) -> None:
    found = response_head(headers)
    assert found == head if head is not None else isinstance(found, HeadError)


def test_request_fields_drop_connection_headers() -> None:
    headers = [
        (b"host", b"a:1"),
        (b"connection", b"close"),
        (b"x", b"y"),
        (b"transfer-encoding", b"chunked"),
    ]
    assert encode_request_head(RequestHead(b"GET", b"/a", headers), "http") == [
        (b":method", b"GET"),
        (b":scheme", b"http"),
        (b":authority", b"a:1"),
        (b":path", b"/a"),
        (b"x", b"y"),
    ]


def test_response_fields_drop_connection_headers() -> None:
    fields = encode_response_head(
        200, [(b"Content-Type", b" text/plain"), (b"connection", b"close"), (b"x", b"y")]
    )
    assert fields == [(b":status", b"200"), (b"content-type", b"text/plain"), (b"x", b"y")]


@pytest.mark.parametrize(
    "header", [(b"x", b"a\r\nb: c"), (b"x y", b"z"), (b"x", b"\0"), (b"", b"")]
)
def test_response_fields_invalid_header_raises(header: tuple[bytes, bytes]) -> None:
    with pytest.raises(ValueError, match="header"):
        encode_response_head(200, [header])


def test_request_fields_invalid_header_raises() -> None:
    with pytest.raises(ValueError, match="cannot be sent"):
        encode_request_head(RequestHead(b"GET", b"/", [(b"host", b"a"), (b"x", b"a\nb")]), "https")
