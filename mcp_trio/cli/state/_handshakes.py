"""A file of servers that need a handshake, so that only the day's first command probes them.

Official servers of 2025 print some hundred lines of errors when they are probed.

1. The file is a cache: it may be deleted, and a missing or damaged one counts as empty. A command
   doesn't fail because it cannot be written.
2. It is replaced as a whole, by a rename. If two commands do that at once, an entry may get lost,
   and the next command probes once more.
3. `HandshakeCache` decides what is in it. No server's name can be read there.
"""

from __future__ import annotations

import time
from contextlib import suppress
from typing import TYPE_CHECKING, Final, Self

from mcp_core.drivers import HandshakeCache
from mcp_trio._files import user_directory

from ._files import read_file, write_file
from ._server_key import key_of_server

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from mcp_core import Peer
    from mcp_core.runtime import AbstractClient

__all__ = ["RememberedServer"]

_MAX_SIZE: Final = 1_048_576  # bytes to read; a full cache takes 35 KB


class RememberedServer:
    """A command's server, with what earlier commands found out about it.

    Connect in a `with` block. If the block doesn't call `connected`, the server is forgotten.

    Args:
        server: the URL, or the words of the command that starts the server.
        env: variables that this command gets in addition to the inherited ones.
        cwd: its working directory, None for the current one.
    """

    def __init__(
        self, server: str | tuple[str, ...], env: Mapping[str, str], cwd: Path | None
    ) -> None:
        self._key = key_of_server(server, env, cwd)
        self._connected = False

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if not self._connected:
            self._learn(None)

    @property
    def known_peer(self) -> Peer | None:
        """The option `known_peer` for the client; None if it should probe the server."""
        return _load().known_peer(self._key, time.time())

    def connected(self, client: AbstractClient) -> None:
        """Save what the client negotiated with this server."""
        self._connected = True
        self._learn(client.peer, needs_handshake=client.needs_handshake)

    def _learn(self, peer: Peer | None, *, needs_handshake: bool = False) -> None:
        cache = _load()
        if cache.learn(self._key, peer, time.time(), needs_handshake=needs_handshake):
            # RuntimeError: the user has no home directory.
            with suppress(OSError, RuntimeError):
                write_file(_path(), cache.encode())


def _path() -> Path:
    return user_directory("XDG_CACHE_HOME", ".cache") / "handshakes.json"


def _load() -> HandshakeCache:
    try:
        return HandshakeCache(read_file(_path(), _MAX_SIZE) or b"")
    except RuntimeError:
        return HandshakeCache()
