"""The URL of a server and of a proxy: where it leads, and which texts are refused."""

from __future__ import annotations

from urllib.parse import urlsplit

import pytest

from mcp_core.urls import DEFAULT_PORTS, Url, effective_port, redacted_url


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
def test_url_parse_reads_origin_authority_target(
    text: str, origin: tuple[str, str, int], authority: bytes, target: bytes
) -> None:
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
def test_url_parse_unusable_text_raises(text: str) -> None:
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
def test_url_join_resolves_reference(reference: str, joined: str) -> None:
    assert Url.parse("http://a:1/x/sse").join(reference).text == joined


WITH_PASSWORD = [
    "ftp://u:secret@a",
    "http://u:secret@a",
    "http://u:secret@a:0/",
    "http://u:secret@a:x/",
    "http://u:sec/secret@a/",
    "http://u:sec?secret@a/",
    "http://u:sec#secret@a/",
    "http://u:secret@[::1/",
    "http://u:secret@[x]/",
    "http://u:secret@\uff20/",  # urlsplit itself would quote the user and the password
    "http://u:secret\uff20@a/",
    "u:secret@a",
    "u:sec?secret@a",
    "http://u:secret@",
    "http://u:secret@a b/?secret",
    "ftp://a/?token=secret",
    "http://a:99999/#secret",
]


@pytest.mark.parametrize("text", WITH_PASSWORD)
def test_url_parse_error_hides_credentials_and_query(text: str) -> None:
    with pytest.raises(ValueError, match=r"URL|host") as caught:
        Url.parse(text)
    assert "secret" not in str(caught.value)
    assert "sec" not in redacted_url(text)


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("https://e.com/x?token=1#y", "'https://e.com/x'"),
        ("https://e.com/@ada/x", "'...@ada/x'"),
        ("https://e.com/x?mail=a@b", "'https://e.com/x'"),
        ("https://e.com?mail=a@b", "'https://...'"),
        ("e.com?a@b", "'...'"),
        ("e.com/x?a@b", "'e.com/x'"),
        ("//e.com?a@b", "'//e.com'"),
        ("", "''"),
        ("x\r\n" * 100, repr(("x\r\n" * 100)[:120] + "...")),
    ],
)
def test_redacted_url_is_short_and_printable(text: str, shown: str) -> None:
    assert redacted_url(text) == shown
    assert redacted_url(text).isprintable()


def test_url_str_hides_query() -> None:
    assert str(Url.parse("http://a:1/x?token=secret")) == "http://a:1/x"


@pytest.mark.parametrize(
    ("text", "origin", "credentials"),
    [
        ("a.test", ("http", "a.test", 80), None),
        ("a.test:3128", ("http", "a.test", 3128), None),
        ("http://A.test:3128/", ("http", "a.test", 3128), None),
        ("https://a.test", ("https", "a.test", 443), None),
        ("http://[::1]:3128", ("http", "::1", 3128), None),
        ("http://me:pa%20ss@a.test", ("http", "a.test", 80), "me:pa ss"),
        ("http://me@a.test", ("http", "a.test", 80), "me:"),
        ("me:p@ss@a.test", ("http", "a.test", 80), "me:p@ss"),
    ],
)
def test_url_parse_proxy_keeps_credentials_apart(
    text: str, origin: tuple[str, str, int], credentials: str | None
) -> None:
    url, found = Url.parse_proxy(text)
    assert (url.origin, found) == (origin, credentials)
    assert "pa" not in repr(url)
    assert "@" not in url.text


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        (
            "socks5://me:secret@a.test:1080",
            "the proxy socks5://a.test:1080 cannot be used: only http:// and",
        ),
        ("http://me:secret@a.test:x", "the proxy http://a.test:x has an invalid port"),
        ("http://me:secret@a.test:0", "the proxy http://a.test:0 has an invalid port"),
        ("http://me:secret@:80", "the proxy http://:80 has no host"),
        ("http://me:secret/x@a.test", "the proxy '...@a.test' cannot be read: percent-encode"),
        ("me:secret?x@a.test", "the proxy '...' cannot be read"),
        ("http://me:secret@[x]", "'...@\\[x\\]' is not a URL: its host cannot be read"),
    ],
)
def test_url_parse_proxy_error_hides_credentials(text: str, problem: str) -> None:
    with pytest.raises(ValueError, match=problem) as caught:
        Url.parse_proxy(text)
    assert "secret" not in str(caught.value)


@pytest.mark.parametrize(
    ("text", "port"), [("http://a", 80), ("https://a", 443), ("https://a:80", 80), ("ws://a", 0)]
)
def test_effective_port_defaults_to_port_of_scheme(text: str, port: int) -> None:
    assert effective_port(urlsplit(text)) == port
    assert DEFAULT_PORTS == {"http": 80, "https": 443}
