"""`HandshakeCache`: which servers are remembered, for how long, and what makes them forgotten."""

from __future__ import annotations

import json

import pytest

from mcp_core import DIALECTS, Peer
from mcp_core import types as t
from mcp_core.client._handshake_cache import _MAX_ENTRIES
from mcp_core.drivers import HandshakeCache, server_key
from tests.harness.jsonrpc import A, D, E

NOW = 1_800_000_000.0
DAY = 24 * 3600.0


def peer(version: str = D, name: str = "s", number: str = "1") -> Peer:
    return Peer(DIALECTS[version], t.ServerCapabilities(), t.Implementation(name, number))


ANONYMOUS = Peer(DIALECTS[D], t.ServerCapabilities())


def cache_with(known: Peer, key: str = "k") -> HandshakeCache:
    cache = HandshakeCache()
    assert cache.learn(key, known, NOW, needs_handshake=True)
    return cache


@pytest.mark.requirement("VER-16")
@pytest.mark.parametrize("known", [peer(D), peer(A), ANONYMOUS])
def test_handshake_cache_probed_server_is_known_to_next_client(known: Peer) -> None:
    cache = HandshakeCache(cache_with(known).encode())
    found = cache.known_peer("k", NOW + 1)
    assert found is not None
    # The newest one: the server may choose an older one, and may know a newer one than last time.
    assert found == Peer(DIALECTS[D], t.ServerCapabilities())
    assert cache.known_peer("other", NOW + 1) is None
    assert not cache.learn("k", known, NOW + 1)
    assert repr(cache) == "<HandshakeCache of 1 servers>"


@pytest.mark.parametrize(
    ("now", "is_known"),
    [(NOW, True), (NOW + DAY - 1, True), (NOW + DAY, False), (NOW - 1, False), (NOW + 9e9, False)],
)
def test_handshake_cache_entry_expires_after_a_day(now: float, is_known: bool) -> None:
    assert (cache_with(peer()).known_peer("k", now) is not None) is is_known


def test_handshake_cache_use_does_not_renew_entry() -> None:
    cache = cache_with(peer())
    cache.learn("k", peer(), NOW + DAY - 1)
    assert cache.known_peer("k", NOW + DAY) is None
    assert cache.learn("k", peer(), NOW + DAY, needs_handshake=True)
    assert cache.known_peer("k", NOW + DAY) is not None


@pytest.mark.requirement("VER-16")
@pytest.mark.parametrize(
    "found",
    [
        pytest.param(peer(E), id="it is stateless now"),
        pytest.param(None, id="no connection"),
        pytest.param(peer(number="2"), id="another version"),
        pytest.param(peer(name="t"), id="another name"),
        pytest.param(ANONYMOUS, id="no name"),
    ],
)
def test_handshake_cache_wrong_entry_is_discarded(found: Peer | None) -> None:
    cache = cache_with(peer())
    assert cache.learn("k", found, NOW + 1)
    assert cache.known_peer("k", NOW + 1) is None
    assert not cache.learn("k", found, NOW + 1)


@pytest.mark.parametrize("found", [peer(E), peer(D), None])
def test_handshake_cache_without_probe_learns_nothing_new(found: Peer | None) -> None:
    cache = HandshakeCache()
    assert not cache.learn("k", found, NOW)
    assert cache.encode() == b"{}"


def test_handshake_cache_drops_expired_and_oldest_entries() -> None:
    cache = HandshakeCache()
    cache.learn("expired", peer(), NOW - DAY, needs_handshake=True)
    for number in range(_MAX_ENTRIES + 10):
        cache.learn(f"k{number}", peer(), NOW + number, needs_handshake=True)
    assert sorted(json.loads(cache.encode())) == sorted(f"k{n}" for n in range(10, 266))
    assert len(cache.encode()) < 50_000


@pytest.mark.parametrize(
    "data",
    [b"", b"{", b"[]", b"null", b'{"k": 1}', b'{"k": {"probed_at": "x", "info": ""}}', b"\xff{}"],
)
def test_handshake_cache_damaged_data_counts_as_empty(data: bytes) -> None:
    cache = HandshakeCache(data)
    assert cache.known_peer("k", NOW) is None
    assert cache.encode() == b"{}"


URL = "https://example.org/mcp"
SAME = [
    (URL, "HTTPS://EXAMPLE.org:443/mcp#part"),
    ("http://example.org", "http://example.org:80/"),
    ("ws://[::1]:8000/mcp", "WS://[::1]:8000/mcp"),
]
DIFFERENT = [
    URL,
    "http://example.org/mcp",
    "https://example.org:444/mcp",
    "https://example.org/mcp/",
    "https://example.org/mcp?key=1",
    "https://example.com/mcp",
    "https://example.org:x/",
    "https://[/",
]


@pytest.mark.parametrize(("one", "other"), SAME)
def test_server_key_of_same_origin_and_path_is_equal(one: str, other: str) -> None:
    assert server_key(one) == server_key(other)


def test_server_key_of_other_server_differs() -> None:
    commands = [
        (["/bin/a"], "/"),
        (["/bin/a"], "/tmp"),
        (["/bin/a", ""], "/"),
        (["/bin/a", "b"], "/"),
        (["/bin/a b"], "/"),
        (["/bin/a\udcff"], "/"),
    ]
    keys = [*map(server_key, DIFFERENT), *(server_key(words, cwd) for words, cwd in commands)]
    assert len(set(keys)) == len(keys)


def test_server_key_and_cache_contain_no_secret() -> None:
    secret = "hunter2"
    keys = [
        server_key(f"https://user:{secret}@example.org/mcp?key={secret}"),
        server_key(["/bin/server", f"--token={secret}"], f"/home/{secret}"),
    ]
    cache = HandshakeCache()
    for key in keys:
        cache.learn(key, peer(name=secret), NOW, needs_handshake=True)
    assert secret.encode() not in cache.encode()
    assert {len(key) for key in keys} == {64}


def test_handshake_cache_keeps_no_expired_entry_when_it_learns() -> None:
    cache = cache_with(peer(), "old")
    cache.learn("new", peer(), NOW + DAY, needs_handshake=True)
    assert list(json.loads(cache.encode())) == ["new"]
