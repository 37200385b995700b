"""`Host` and `Origin`: how they are read, which are allowed, and which may be listed."""

from __future__ import annotations

from ipaddress import IPv6Address

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcp_core.http.wire._host_origin import (
    Authority,
    HostOriginPolicy,
    Origin,
    parse_host,
    parse_origin,
    served_authority,
    warning_without_hosts,
)
from tests.core.http.hosts import ANYWHERE, HOSTS, LISTED, LOOPBACK, ORIGINS

POLICIES = {"L": LOOPBACK, "A": ANYWHERE, "N": LISTED}


def short(value: object) -> str:
    return repr(value)[:60]


def test_host_origin_corpus_is_large_and_unique() -> None:
    assert len(HOSTS) >= 200
    assert len({value for value, _ in HOSTS}) == len(HOSTS)
    assert len({(origin, host) for origin, host, _ in ORIGINS}) == len(ORIGINS) >= 100


@pytest.mark.parametrize("name", POLICIES)
def test_allows_host_corpus(name: str) -> None:
    policy = POLICIES[name]
    for value, allowed in HOSTS:
        # Twice, because the second result comes from the cache.
        found = [policy.allows_host(value), policy.allows_host(value)]
        assert found == [name in allowed] * 2, value


@pytest.mark.parametrize("name", POLICIES)
def test_allows_origin_corpus(name: str) -> None:
    policy = POLICIES[name]
    for origin, host, allowed in ORIGINS:
        assert [policy.allows_origin(origin, host), policy.allows_origin(origin, host)] == [
            name in allowed
        ] * 2, (origin, host)


def test_allows_missing_origin_but_not_missing_host() -> None:
    for policy in POLICIES.values():
        assert not policy.allows_host(None)
        assert policy.allows_origin(None, b"localhost")
        assert policy.allows_origin(None, b"whatever")


def test_rebound_name_is_rejected_by_host() -> None:
    policy = HostOriginPolicy("127.0.0.1")
    assert policy.allows_origin(b"http://evil.com:8000", b"evil.com:8000")
    assert not policy.allows_host(b"evil.com:8000")


def test_cross_origin_is_true_for_listed_origins_only() -> None:
    assert LISTED.is_listed_origin(b"https://app.example.com")
    assert LISTED.is_listed_origin(b"http://localhost:6274")
    assert not LISTED.is_listed_origin(b"http://localhost:8000")
    assert not LISTED.is_listed_origin(b"null")
    assert not LISTED.is_listed_origin(None)
    assert not LOOPBACK.is_listed_origin(b"https://app.example.com")
    assert not LOOPBACK.is_listed_origin(b"null")


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
def test_allows_host_address_only_if_reachable(bind: str | None, anywhere: bool) -> None:
    policy = HostOriginPolicy(bind)
    assert policy.allows_host(b"192.168.1.5:8000") == anywhere
    assert policy.allows_host(b"[2001:db8::1]") == anywhere
    assert policy.allows_host(b"localhost:8000")
    assert not policy.allows_host(b"mcp.example.com")  # must be listed
    assert repr(policy).startswith(
        "<HostOriginPolicy: any address" if anywhere else "<HostOriginPolicy: loopback"
    )


def test_allows_origin_with_known_scheme_rejects_other_scheme() -> None:
    """Behind TLS the server knows its scheme: a page on plain http isn't the same origin."""
    unknown, known = (
        HostOriginPolicy(None, ["a.example.com:443"]),
        HostOriginPolicy(None, ["a.example.com:443"], scheme="https"),
    )
    for policy in (unknown, known):
        assert policy.allows_host(b"a.example.com")
        assert policy.allows_host(b"a.example.com:443")
        assert not policy.allows_host(b"a.example.com:80")
        assert policy.allows_origin(b"https://a.example.com", b"a.example.com")
        assert policy.allows_origin(b"https://a.example.com:8443", b"a.example.com:8443")
    assert unknown.allows_origin(b"http://a.example.com", b"a.example.com")
    assert not known.allows_origin(b"http://a.example.com", b"a.example.com")
    assert not known.allows_origin(b"http://a.example.com:443", b"a.example.com")
    assert not HostOriginPolicy(None, ["a.example.com:80"], scheme="https").allows_host(
        b"a.example.com"
    )
    assert HostOriginPolicy(None, ["a.example.com:80"], scheme="http").allows_host(b"a.example.com")
    listed = HostOriginPolicy(None, origins=["http://b.example.com"], scheme="https")
    assert listed.allows_origin(b"http://b.example.com", b"a.example.com")


def test_unspecified_address_is_allowed_if_listed() -> None:
    policy = HostOriginPolicy("0.0.0.0", ["0.0.0.0"])
    assert policy.allows_host(b"0.0.0.0:8000")
    assert not policy.allows_host(b"[::]:8000")


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
def test_listed_host_malformed_raises(host: str, why: str) -> None:
    with pytest.raises(ValueError, match="is not a host") as caught:
        HostOriginPolicy(None, [host])
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
def test_listed_origin_malformed_raises(origin: str, why: str) -> None:
    with pytest.raises(ValueError, match="origin") as caught:
        HostOriginPolicy(None, origins=[origin])
    assert repr(origin) in str(caught.value)
    assert why in str(caught.value)


def test_listed_hosts_single_string_raises() -> None:
    with pytest.raises(ValueError, match="hosts is a list"):
        HostOriginPolicy(None, "example.com")
    with pytest.raises(ValueError, match="origins is a list"):
        HostOriginPolicy(None, origins="https://example.com")


def test_host_that_was_allowed_is_known() -> None:
    """The check of a request looks there first: all requests of a client have the same host."""
    policy = HostOriginPolicy("127.0.0.1")
    assert policy.allows_host(b"localhost:80")
    assert not policy.allows_host(b"evil.com")
    assert policy.known_hosts == {b"localhost:80"}


def test_host_and_origin_caches_are_bounded() -> None:
    policy = HostOriginPolicy("127.0.0.1")
    for port in range(1, 1000):
        assert policy.allows_host(b"localhost:%d" % port)
        assert policy.allows_origin(b"http://localhost:%d" % port, b"localhost:%d" % port)
        assert not policy.allows_host(b"evil%d.com" % port)
        assert not policy.allows_origin(b"http://evil%d.com" % port, b"localhost")
        assert len(policy.known_hosts) <= 256
        assert len(policy._origin_cache) <= 256
    assert not any(b"evil" in value for value in policy.known_hosts)
    assert not any(b"evil" in origin for origin, _ in policy._origin_cache)


def test_gate_repr_counts_lists() -> None:
    assert repr(LISTED) == "<HostOriginPolicy: loopback, 6 hosts and 3 origins listed>"
    assert (
        repr(HostOriginPolicy(None))
        == "<HostOriginPolicy: any address, 0 hosts and 0 origins listed>"
    )


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
def test_parse_host_reads_each_form(value: bytes, read: Authority, text: str) -> None:
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
def test_parse_origin_reads_each_form(value: bytes, read: Origin, text: str) -> None:
    assert parse_origin(value) == read
    assert str(read) == text


def test_parse_host_over_length_limit_fails() -> None:
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


@given(st.binary() | ALMOST | ALMOST.map(b"http://".__add__))
def test_parsed_host_and_origin_equal_their_text(value: bytes) -> None:
    authority = parse_host(value)
    if authority is not None:
        assert parse_host(str(authority).encode()) == authority
        assert value.lower().startswith(authority.host.encode()) or authority.host.startswith("[")
        assert authority.port is None or value.endswith(b":%d" % authority.port)
    origin = parse_origin(value)
    if origin is not None:
        assert parse_origin(str(origin).encode()) == origin


@given(ALMOST)
def test_allows_host_unlisted_is_loopback_only(value: bytes) -> None:
    if HostOriginPolicy("127.0.0.1").allows_host(value):
        authority = parse_host(value)
        assert authority is not None
        assert authority.host in ("localhost", "[::1]") or authority.host.startswith("127.")


@given(st.ip_addresses(v=6))
def test_parse_host_ipv6_spellings_are_equal(address: IPv6Address) -> None:
    short, long = (
        parse_host(f"[{text}]:80".encode()) for text in (address.compressed, address.exploded)
    )
    assert short == long
    assert (short is None) == (address.ipv4_mapped is not None)


@pytest.mark.parametrize(
    ("bound", "host", "authority"),
    [
        (("127.0.0.1", 80), "localhost", Authority("localhost", 80)),
        (("0.0.0.0", 80), "0.0.0.0", Authority("127.0.0.1", 80)),
        (("0.0.0.0", 80), "a.test", Authority("127.0.0.1", 80)),
        (("::", 80), "::", Authority("[::1]", 80)),
        (("::1", 80), "::1", Authority("[::1]", 80)),
    ],
)
def test_server_on_all_addresses_is_shown_as_loopback(
    bound: tuple[str, int], host: str, authority: Authority
) -> None:
    assert served_authority(bound, host) == authority


@pytest.mark.parametrize(
    ("bound", "warns"),
    [
        (["127.0.0.1"], False),
        (["127.0.0.1", "::1"], False),
        (["127.0.0.1", "10.0.0.1"], True),
        (["0.0.0.0"], True),
        ([], False),
    ],
)
def test_server_that_others_reach_by_address_only_is_warned_of(
    bound: list[str], warns: bool
) -> None:
    text = "listening on a.test, where other machines can connect by IP address only: do this"
    assert warning_without_hosts(bound, "a.test", "do this") == (text if warns else None)
