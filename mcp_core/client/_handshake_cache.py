"""A cache of servers that need a handshake, so that later clients send it at once, without a probe.

1. Only the need for a handshake is cached: what a server declares is read in each handshake. A
   stateless server isn't cached, because `server/discover` is how a client learns what it offers.
2. An entry is a guess. If the server refuses the handshake, it is probed after all
   (`negotiate_version`). If it calls itself by another name or version, it may have been upgraded
   to a stateless revision as well, so the next client probes it.
3. An entry has no readable text of a user: URLs and command lines may contain passwords.

Source: 2026-07-28, basic/versioning, Backward Compatibility with Initialization-Based Versions.
"""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import sha256
from typing import Final
from urllib.parse import urlsplit

from msgspec import Struct

from mcp_core import types as t
from mcp_core.protocol.jsonrpc._codec import InvalidPayload, encode, reader
from mcp_core.protocol.messages._events import Peer
from mcp_core.protocol.revisions._dialects import ALL, DIALECTS
from mcp_core.urls._url import effective_port

__all__ = ["HandshakeCache", "server_key"]

# Seconds. If a server gains a stateless revision, but keeps its name and version, clients still use
# a stateful one for at most this long.
_LIFETIME: Final = 24 * 3600.0
# More servers than a user tries in a day. They take about 35 KB as JSON.
_MAX_ENTRIES: Final = 256
_NEWEST_STATEFUL: Final = next(DIALECTS[version] for version in ALL if DIALECTS[version].stateful)


class _HandshakeEntry(Struct):
    """When a server was last probed, and a digest of its name and version then."""

    probed_at: float
    info: str


_read_entries = reader(dict[str, _HandshakeEntry])


def server_key(target: str | Sequence[str], cwd: str = "") -> str:
    """Return a server's key: a digest, from which the target cannot be read.

    Args:
        target: the server's URL, of which its origin, path and query count; or the words of its
            command line, the first of them an absolute path.
        cwd: for a command, the absolute path of its working directory.
    """
    if not isinstance(target, str):
        return _digest("command", cwd, *target)
    try:
        parts = urlsplit(target)
        origin = parts.scheme, parts.hostname or "", str(effective_port(parts))
    except ValueError:  # no client will connect to it
        return _digest("text", target)
    return _digest("url", *origin, parts.path or "/", parts.query)


class HandshakeCache:
    """The servers that need a handshake, by `server_key`.

    Before a client connects, pass `known_peer` to it. After it has connected, or failed to, call
    `learn`. Their `now` is in seconds since 1970, because a cache may outlive the process.

    Args:
        data: what `encode` returned earlier. Anything else counts as empty.
    """

    def __init__(self, data: bytes = b"") -> None:
        try:
            self._entries = _read_entries(data)
        except InvalidPayload:
            self._entries = {}

    def __repr__(self) -> str:
        return f"<HandshakeCache of {len(self._entries)} servers>"

    def known_peer(self, key: str, now: float) -> Peer | None:
        """Return the option `known_peer` for the server `key`, None if it should be probed.

        Its revision is the newest with a handshake: in the handshake the server may choose an older
        one. Its capabilities are empty, because nothing is known about them.
        """
        entry = self._entries.get(key)
        if entry is None or not _is_fresh(entry, now):
            return None
        return Peer(_NEWEST_STATEFUL, t.ServerCapabilities())

    def learn(
        self, key: str, peer: Peer | None, now: float, *, needs_handshake: bool = False
    ) -> bool:
        """Learn from a connection, and return True if that changed the cache.

        Args:
            key: the server.
            peer: the client's `peer`, None if it could not connect.
            now: seconds since 1970.
            needs_handshake: the client's `needs_handshake`.
        """
        entry = self._entries.get(key)
        if needs_handshake and peer is not None:
            self._put(key, _HandshakeEntry(now, _digest_of_info(peer)), now)
            return True
        if entry is None:
            return False
        if peer is not None and peer.dialect.stateful and entry.info == _digest_of_info(peer):
            return False  # not renewed either: without a probe nothing new is known
        del self._entries[key]
        return True

    def encode(self) -> bytes:
        """Return the cache as JSON."""
        return encode(self._entries)

    def _put(self, key: str, entry: _HandshakeEntry, now: float) -> None:
        """Add an entry. Drop those that are too old, and the oldest if there are too many."""
        self._entries[key] = entry
        fresh = [each for each in self._entries.items() if _is_fresh(each[1], now)]
        fresh.sort(key=lambda each: each[1].probed_at)
        self._entries = dict(fresh[-_MAX_ENTRIES:])


def _is_fresh(entry: _HandshakeEntry, now: float) -> bool:
    return 0 <= now - entry.probed_at < _LIFETIME  # a future entry: the clock was set back


def _digest_of_info(peer: Peer) -> str:
    info = peer.info
    return "" if info is None else _digest(info.name, info.version)


def _digest(*words: str) -> str:
    # Words of a command line may contain bytes that aren't UTF-8, as surrogates.
    return sha256("\0".join(words).encode(errors="surrogatepass")).hexdigest()
