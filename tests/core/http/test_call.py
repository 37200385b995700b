"""Reading a URL once."""

from __future__ import annotations

import pytest

from mcp_core.http import Head
from mcp_core.http._call import Url, header


@pytest.mark.parametrize(
    ("text", "origin", "authority", "target"),
    [
        ("http://a", ("http", "a", 80), b"a", b"/"),
        ("https://A.Example/x?y=1#z", ("https", "a.example", 443), b"a.example", b"/x?y=1"),
        ("http://a:80/", ("http", "a", 80), b"a", b"/"),
        ("http://a:8080/m", ("http", "a", 8080), b"a:8080", b"/m"),
        ("https://a:80/", ("https", "a", 80), b"a:80", b"/"),
        ("http://[::1]:99/m", ("http", "::1", 99), b"[::1]:99", b"/m"),
        (
            "http://bücher.example/ü?ß",
            ("http", "xn--bcher-kva.example", 80),
            b"xn--bcher-kva.example",
            b"/%C3%BC?%C3%9F",
        ),
        ("http://a/%2F;x=[1]", ("http", "a", 80), b"a", b"/%2F;x=[1]"),
    ],
)
def test_a_url(text: str, origin: tuple[str, str, int], authority: bytes, target: bytes) -> None:
    url = Url.parse(text)
    assert (url.origin, url.authority, url.target) == (origin, authority, target)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "a",
        "ftp://a",
        "http://",
        "http:///x",
        "http://u@a/",
        "http://u:p@a/",
        "http://a:0/",
        "http://a:99999/",
        "http://a:x/",
        "http://[::1/",
        "http://a b/",
        "http://a/\r\nx: y",
        "http://a/\tb",
        "http://" + "ü" * 70 + ".example/",
    ],
)
def test_what_is_no_url(text: str) -> None:
    with pytest.raises(ValueError, match=r"URL|host|IPv6"):
        Url.parse(text)


@pytest.mark.parametrize(
    ("reference", "joined"),
    [
        ("/messages?id=1", "http://a:1/messages?id=1"),
        ("m", "http://a:1/x/m"),
        ("?s=1", "http://a:1/x/sse?s=1"),
        ("http://b/m", "http://b/m"),
        ("//b/m", "http://b/m"),
    ],
)
def test_a_reference(reference: str, joined: str) -> None:
    assert Url.parse("http://a:1/x/sse").join(reference).text == joined


def test_the_first_header_of_a_name() -> None:
    head = Head(200, [(b"a", b"1"), (b"b", b"2"), (b"b", b"3")])
    assert (header(head, b"b"), header(head, b"c")) == (b"2", None)
