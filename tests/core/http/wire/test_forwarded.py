"""Requests behind proxies: who is believed about the client, and which fields are passed on."""

from __future__ import annotations

import pytest

from mcp_core.http.wire._forwarded import (
    TrustedProxies,
    client_network,
    end_to_end,
    end_to_end_trailers,
)

# trusted proxies, peer of the connection, values of X-Forwarded-For; the client
FORWARDED: list[tuple[list[str], str, list[bytes], str]] = [
    (["127.0.0.1"], "127.0.0.1", [b"203.0.113.7"], "203.0.113.7"),
    (["127.0.0.1"], "127.0.0.1", [], "127.0.0.1"),
    (["127.0.0.1"], "127.0.0.1", [b""], "127.0.0.1"),
    # A client that connects directly is not believed.
    (["127.0.0.1"], "198.51.100.9", [b"203.0.113.7"], "198.51.100.9"),
    ([], "127.0.0.1", [b"203.0.113.7"], "127.0.0.1"),
    # What the client itself has sent stands in front of what the proxy has appended.
    (["127.0.0.1"], "127.0.0.1", [b"1.2.3.4, 203.0.113.7"], "203.0.113.7"),
    (["127.0.0.1"], "127.0.0.1", [b"127.0.0.1, 203.0.113.7"], "203.0.113.7"),
    # Several proxies, in one header or several.
    (["10.0.0.0/8"], "10.0.0.2", [b"203.0.113.7, 10.0.0.1"], "203.0.113.7"),
    (["10.0.0.0/8"], "10.0.0.2", [b"203.0.113.7", b"10.0.0.1"], "203.0.113.7"),
    (["10.0.0.0/8"], "10.0.0.2", [b"10.0.0.1, 10.0.0.3"], "10.0.0.1"),
    (["10.0.0.5/8", "::1"], "::1", [b"203.0.113.7 ,\t10.9.9.9"], "203.0.113.7"),
    # Other spellings of an address.
    (["10.0.0.1"], "::ffff:10.0.0.1", [b"203.0.113.7"], "203.0.113.7"),
    (["10.0.0.1"], "10.0.0.1", [b"::ffff:203.0.113.7"], "203.0.113.7"),
    (["10.0.0.1"], "testclient", [b"203.0.113.7"], "testclient"),
    (["10.0.0.1"], "10.0.0.1", [b"[::ffff:cb00:7107]:80, ::ffff:10.0.0.1"], "203.0.113.7"),
    (["127.0.0.1"], "127.0.0.1", [b"203.0.113.7:4711"], "203.0.113.7"),
    (["127.0.0.1"], "127.0.0.1", [b"2001:DB8::7"], "2001:db8::7"),
    (["127.0.0.1"], "127.0.0.1", [b"[2001:db8::7]:4711"], "2001:db8::7"),
    (["127.0.0.1"], "127.0.0.1", [b"[2001:db8::7]"], "2001:db8::7"),
    # A malformed entry ends the search at the proxy that has sent it.
    (["127.0.0.1"], "127.0.0.1", [b"203.0.113.7, unknown"], "127.0.0.1"),
    (["127.0.0.1"], "127.0.0.1", [b"203.0.113.7,"], "127.0.0.1"),
    (["127.0.0.1"], "127.0.0.1", [b"\xff\x00"], "127.0.0.1"),
    (["127.0.0.1", "10.0.0.1"], "127.0.0.1", [b"x, 10.0.0.1"], "10.0.0.1"),
    # Connections without an address.
    (["unix"], "", [b"203.0.113.7"], "203.0.113.7"),
    (["127.0.0.1"], "", [b"203.0.113.7"], ""),
    (["unix"], "127.0.0.1", [b"203.0.113.7"], "127.0.0.1"),
]


@pytest.mark.parametrize(("proxies", "peer", "values", "client"), FORWARDED)
def test_forwarded_client_is_the_last_that_no_trusted_proxy_is(
    proxies: list[str], peer: str, values: list[bytes], client: str
) -> None:
    headers = [(b"host", b"a"), *[(b"x-forwarded-for", value) for value in values]]
    assert TrustedProxies(proxies).client_address(peer, headers) == client


@pytest.mark.parametrize(
    ("address", "network"),
    [
        ("203.0.113.7", "203.0.113.7"),
        ("2001:db8:1:2:3:4:5:6", "2001:db8:1:2::/64"),
        ("2001:db8:1:2::ffff", "2001:db8:1:2::/64"),
        ("::ffff:203.0.113.7", "203.0.113.7"),
        ("", ""),
        ("testclient", "testclient"),  # Starlette's test client says that
    ],
)
def test_client_is_counted_by_its_network(address: str, network: str) -> None:
    assert client_network(address) == network


@pytest.mark.parametrize("name", ["proxy.example", "10.0.0.0/33", ""])
def test_trusted_proxy_that_is_no_network_raises(name: str) -> None:
    with pytest.raises(ValueError, match=r"does not appear to be|Only one|/33"):
        TrustedProxies([name])


def test_trusted_proxies_take_a_single_name() -> None:
    assert repr(TrustedProxies("127.0.0.1")) == "<TrustedProxies 127.0.0.1/32>"
    assert repr(TrustedProxies(["unix", "::1"])) == "<TrustedProxies ::1/128 unix>"


KEPT: list[tuple[bytes, bytes]] = [
    (b"Host", b"a"),
    (b"Mcp-Session-Id", b"1"),
    (b"authorization", b"Bearer x"),
    (b"Content-Length", b"2"),
    (b"accept", b"a"),
    (b"Accept", b"b"),
    (b"Trailer", b"x"),
]


@pytest.mark.parametrize(
    "removed",
    [
        [],
        [(b"Connection", b"close")],
        [(b"connection", b"keep-alive, X-Mine"), (b"Keep-Alive", b"5"), (b"x-mine", b"1")],
        [(b"Connection", b"a"), (b"CONNECTION", b" b\t,c"), (b"B", b""), (b"C", b""), (b"a", b"")],
        [(b"TE", b"trailers"), (b"Transfer-Encoding", b"chunked"), (b"Upgrade", b"h2c")],
        [(b"Proxy-Authorization", b"Basic x"), (b"Proxy-Connection", b"keep-alive")],
    ],
)
def test_end_to_end_removes_fields_of_one_connection(removed: list[tuple[bytes, bytes]]) -> None:
    assert end_to_end([*removed, *KEPT]) == KEPT
    assert end_to_end([*KEPT, *removed]) == KEPT


@pytest.mark.parametrize(
    "name", [b"host", b"Origin", b"content-length", b"Authorization", b"Sec-Fetch-Site"]
)
def test_end_to_end_keeps_what_a_server_decides_by(name: bytes) -> None:
    """Otherwise `Connection: origin` would hide the page from which a request comes."""
    assert end_to_end([(b"Connection", name), (name, b"1")]) == [(name, b"1")]


@pytest.mark.parametrize(
    "name",
    [
        *(b"Authorization", b"COOKIE", b"set-cookie", b"Host", b"Content-Length", b"Connection"),
        *(b"Transfer-Encoding", b"Content-Encoding", b"Content-Type", b"Trailer", b"TE", b"Origin"),
        *(b"WWW-Authenticate", b"Proxy-Authenticate", b"Proxy-Anything", b"Mcp-Session-Id"),
        *(b"MCP-Protocol-Version", b"Mcp-Param-A", b"Last-Event-ID", b"Sec-Fetch-Site", b":path"),
        *(
            b"X-Forwarded-Host",
            b"X_Forwarded_Host",
            b"Access-Control-Allow-Origin",
            b"If-None-Match",
        ),
        *(b"x-tenant", b"X-TENANT", b"my_key", b"my-key"),
    ],
)
def test_trailer_that_decides_something_is_dropped(name: bytes) -> None:
    harmless = [(b"X-Sum", b"1"), (b"Server-Timing", b"a"), (b"x-sum", b"2"), (b"ETag", b"b")]
    replaced = ["x-tenant", "my_key", "my-key"]
    for trailers in ([(name, b"1"), *harmless], [*harmless, (name, b"1"), (name, b"2")]):
        assert end_to_end_trailers(trailers, replaced) == harmless
