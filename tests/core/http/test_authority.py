"""`Host` and `Origin`: what is read, who is let in, and what may be listed."""

from __future__ import annotations

from ipaddress import IPv6Address

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcp_core.http._authority import Authority, Gate, Origin, parse_host, parse_origin
from tests.core.http.hosts import ANYWHERE, HOSTS, LISTED, LOOPBACK, ORIGINS

GATES = {"L": LOOPBACK, "A": ANYWHERE, "N": LISTED}


def short(value: object) -> str:
    return repr(value)[:60]


def test_the_corpus_is_large_and_has_nothing_twice() -> None:
    assert len(HOSTS) >= 200
    assert len({value for value, _ in HOSTS}) == len(HOSTS)
    assert len({(origin, host) for origin, host, _ in ORIGINS}) == len(ORIGINS) >= 100


@pytest.mark.parametrize(("value", "let_in"), HOSTS, ids=short)
def test_who_was_asked(value: bytes, let_in: str) -> None:
    for name, gate in GATES.items():
        # Twice: what is remembered is as good as what was found out.
        assert [gate.allows_host(value), gate.allows_host(value)] == [name in let_in] * 2, gate


@pytest.mark.parametrize(("origin", "host", "let_in"), ORIGINS, ids=short)
def test_who_asks(origin: bytes, host: bytes, let_in: str) -> None:
    for name, gate in GATES.items():
        assert [gate.allows_origin(origin, host), gate.allows_origin(origin, host)] == [name in let_in] * 2, (
            gate
        )


def test_no_host_is_refused_and_no_origin_is_not() -> None:
    for gate in GATES.values():
        assert not gate.allows_host(None)
        assert gate.allows_origin(None, b"localhost")
        assert gate.allows_origin(None, b"whatever")


def test_a_page_of_a_rebound_name_is_its_own_and_refused_by_its_host() -> None:
    gate = Gate("127.0.0.1")
    assert gate.allows_origin(b"http://evil.com:8000", b"evil.com:8000")
    assert not gate.allows_host(b"evil.com:8000")


def test_only_listed_pages_are_from_elsewhere() -> None:
    assert LISTED.cross_origin(b"https://app.example.com")
    assert LISTED.cross_origin(b"http://localhost:6274")
    assert not LISTED.cross_origin(b"http://localhost:8000")
    assert not LISTED.cross_origin(b"null")
    assert not LISTED.cross_origin(None)
    assert not LOOPBACK.cross_origin(b"https://app.example.com")
    assert not LOOPBACK.cross_origin(b"null")


@pytest.mark.parametrize(
    ("bind", "anywhere"),
    [
        ("127.0.0.1", False),
        ("127.0.0.53", False),
        ("::1", False),
        ("[::1]", False),
        ("localhost", False),
        ("LocalHost", False),
        (None, True),
        ("", True),
        ("0.0.0.0", True),
        ("::", True),
        ("192.168.1.5", True),
        ("2001:db8::1", True),
        ("fe80::1%eth0", True),
        ("mcp.example.com", True),
        ("localhost.evil.com", True),
    ],
)
def test_addresses_are_let_in_where_others_can_reach_us(bind: str | None, anywhere: bool) -> None:
    gate = Gate(bind)
    assert gate.allows_host(b"192.168.1.5:8000") == anywhere
    assert gate.allows_host(b"[2001:db8::1]") == anywhere
    assert gate.allows_host(b"localhost:8000")
    assert not gate.allows_host(b"mcp.example.com")  # whoever wants it, lists it
    assert repr(gate).startswith("<Gate: any address" if anywhere else "<Gate: loopback")


def test_where_the_scheme_is_known_a_page_of_the_other_is_another_page() -> None:
    unknown, known = Gate(None, ["a.example.com:443"]), Gate(None, ["a.example.com:443"], scheme="https")
    for gate in (unknown, known):
        assert gate.allows_host(b"a.example.com")
        assert gate.allows_host(b"a.example.com:443")
        assert not gate.allows_host(b"a.example.com:80")
        assert gate.allows_origin(b"https://a.example.com", b"a.example.com")
        assert gate.allows_origin(b"https://a.example.com:8443", b"a.example.com:8443")
    assert unknown.allows_origin(b"http://a.example.com", b"a.example.com")
    assert not known.allows_origin(b"http://a.example.com", b"a.example.com")
    assert not known.allows_origin(b"http://a.example.com:443", b"a.example.com")
    assert not Gate(None, ["a.example.com:80"], scheme="https").allows_host(b"a.example.com")
    assert Gate(None, ["a.example.com:80"], scheme="http").allows_host(b"a.example.com")
    listed = Gate(None, origins=["http://b.example.com"], scheme="https")
    assert listed.allows_origin(b"http://b.example.com", b"a.example.com")


def test_what_nobody_has_may_still_be_listed() -> None:
    gate = Gate("0.0.0.0", ["0.0.0.0"])
    assert gate.allows_host(b"0.0.0.0:8000")
    assert not gate.allows_host(b"[::]:8000")


@pytest.mark.parametrize(
    ("host", "why"),
    [
        ("*", "no wildcards"),
        ("*.example.com", "no wildcards"),
        ("example.com:*", "no wildcards"),
        (".example.com", "no wildcards"),
        ("", "write name or name:port"),
        ("http://example.com", "write name or name:port"),
        ("example.com/", "write name or name:port"),
        ("user@example.com", "write name or name:port"),
        ("example.com, b.example.com", "write name or name:port"),
        ("example.com:0", "write name or name:port"),
        ("::1", "write name or name:port"),
        ("127.1", "write name or name:port"),
        ("bücher.example", "in ASCII"),
    ],
)
def test_hosts_are_listed_one_by_one(host: str, why: str) -> None:
    with pytest.raises(ValueError, match="is not a host") as caught:
        Gate(None, [host])
    assert repr(host) in str(caught.value)
    assert why in str(caught.value)


@pytest.mark.parametrize(
    ("origin", "why"),
    [
        ("*", "no wildcards"),
        ("https://*.example.com", "no wildcards"),
        ("null", "write http(s)://name"),
        ("example.com", "write http(s)://name"),
        ("https://example.com/", "write http(s)://name"),
        ("https://example.com/mcp", "write http(s)://name"),
        ("ftp://example.com", "write http(s)://name"),
        ("https://bücher.example", "in ASCII"),
        ("HTTPS://example.com", "write http(s)://name"),
        ("https://Example.com", "'https://example.com'"),
        ("https://example.com:443", "'https://example.com'"),
        ("http://example.com:80", "'http://example.com'"),
        ("http://[0::1]:8000", "'http://[::1]:8000'"),
    ],
)
def test_origins_are_listed_as_browsers_write_them(origin: str, why: str) -> None:
    with pytest.raises(ValueError, match="origin") as caught:
        Gate(None, origins=[origin])
    assert repr(origin) in str(caught.value)
    assert why in str(caught.value)


def test_a_text_is_no_list() -> None:
    with pytest.raises(ValueError, match="hosts is a list"):
        Gate(None, "example.com")
    with pytest.raises(ValueError, match="origins is a list"):
        Gate(None, origins="https://example.com")


def test_what_is_remembered_has_an_end() -> None:
    gate = Gate("127.0.0.1")
    for port in range(1, 1000):
        assert gate.allows_host(b"localhost:%d" % port)
        assert gate.allows_origin(b"http://localhost:%d" % port, b"localhost:%d" % port)
        assert not gate.allows_host(b"evil%d.com" % port)
        assert not gate.allows_origin(b"http://evil%d.com" % port, b"localhost")
        assert len(gate.known_hosts) <= 256
        assert len(gate._asking) <= 256
    assert not any(b"evil" in value for value in gate.known_hosts)
    assert not any(b"evil" in origin for origin, _ in gate._asking)


def test_reprs() -> None:
    assert repr(LISTED) == "<Gate: loopback, 6 hosts and 3 origins listed>"
    assert repr(Gate(None)) == "<Gate: any address, 0 hosts and 0 origins listed>"


@pytest.mark.parametrize(
    ("value", "read", "text"),
    [
        (b"localhost", Authority("localhost", None), "localhost"),
        (b"LOCALHOST:80", Authority("localhost", 80), "localhost:80"),
        (b"localhost.", Authority("localhost.", None), "localhost."),
        (b"127.0.0.1:65535", Authority("127.0.0.1", 65535), "127.0.0.1:65535"),
        (b"[0:0::1]", Authority("[::1]", None), "[::1]"),
        (b"[2001:DB8::0:1]:80", Authority("[2001:db8::1]", 80), "[2001:db8::1]:80"),
        (b"a_b-c.1a", Authority("a_b-c.1a", None), "a_b-c.1a"),
    ],
)
def test_a_host_is_read(value: bytes, read: Authority, text: str) -> None:
    assert parse_host(value) == read
    assert str(read) == text


@pytest.mark.parametrize(
    ("value", "read", "text"),
    [
        (b"http://localhost", Origin("http", "localhost", 80), "http://localhost"),
        (b"http://localhost:80", Origin("http", "localhost", 80), "http://localhost"),
        (b"https://localhost", Origin("https", "localhost", 443), "https://localhost"),
        (b"https://localhost:80", Origin("https", "localhost", 80), "https://localhost:80"),
        (b"https://[0::1]:8443", Origin("https", "[::1]", 8443), "https://[::1]:8443"),
    ],
)
def test_an_origin_is_read(value: bytes, read: Origin, text: str) -> None:
    assert parse_origin(value) == read
    assert str(read) == text


def test_a_name_has_an_end() -> None:
    longest = b".".join([b"a" * 63] * 3 + [b"b" * 61])
    assert len(longest) == 253
    assert parse_host(longest + b":65535") is not None
    assert parse_host(longest + b"b") is None
    assert parse_host(longest + b"b:80") is None


ALMOST = st.lists(
    st.sampled_from(
        [
            b"localhost",
            b"127.0.0.1",
            b"[::1]",
            b"0x7f",
            b"1",
            b":",
            b"80",
            b".",
            b"%",
            b"@",
            b"/",
            b"[",
            b"]",
            b"http",
            b"://",
            b"\xff",
        ]
    ),
    max_size=6,
).map(b"".join)


@given(st.binary() | ALMOST)
def test_whatever_is_read_reads_the_same_again(value: bytes) -> None:
    authority = parse_host(value)
    if authority is not None:
        assert parse_host(str(authority).encode()) == authority
        assert value.lower().startswith(authority.host.encode()) or authority.host.startswith("[")
        assert authority.port is None or value.endswith(b":%d" % authority.port)
    origin = parse_origin(value)
    if origin is not None:
        assert parse_origin(str(origin).encode()) == origin


@given(ALMOST)
def test_an_address_of_this_machine_is_the_only_thing_that_is_let_in_unlisted(value: bytes) -> None:
    if Gate("127.0.0.1").allows_host(value):
        authority = parse_host(value)
        assert authority is not None
        assert authority.host in ("localhost", "[::1]") or authority.host.startswith("127.")


@given(st.ip_addresses(v=6))
def test_an_ipv6_address_has_one_reading(address: IPv6Address) -> None:
    short, long = (parse_host(f"[{text}]:80".encode()) for text in (address.compressed, address.exploded))
    assert short == long
    assert (short is None) == (address.ipv4_mapped is not None)
