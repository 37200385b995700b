"""A file of the servers that need a handshake, so that only the first command in a day probes them.

Official servers of 2025 print some hundred lines of errors when they are probed.

1. The file is a cache: it may be deleted, and a missing or damaged one counts as empty. That it
   cannot be written is no error of a command.
2. It is replaced as a whole, by a rename. If two commands do that at once, an entry may get lost,
   and the next command probes once more.
3. `HandshakeCache` decides what is in it. No name of a server is readable there.
"""

from __future__ import annotations

import os
import secrets
import shutil
import stat
import time
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Final, Self

from mcp_core.runtime import HandshakeCache, server_key

if TYPE_CHECKING:
    from collections.abc import Mapping

    from mcp_core import Peer
    from mcp_trio._client import Client

__all__ = ["RememberedServer"]

_MAX_SIZE: Final = 1_048_576  # bytes to read; a full cache takes 35 KB


class RememberedServer:
    """The server of a command, as earlier commands have found it.

    Connect in a `with` block. If the block does not call `connected`, the server is forgotten.

    Args:
        server: the URL, or the words of the command that starts the server.
        env: variables that this command gets beside the inherited ones.
        cwd: its working directory, None for the current one.
    """

    def __init__(
        self, server: str | tuple[str, ...], env: Mapping[str, str], cwd: Path | None
    ) -> None:
        if isinstance(server, str):
            self._key = server_key(server)
        else:
            directory = os.path.abspath(cwd or ".")  # noqa: PTH100 - `resolve` follows links
            name, *others = server
            program = shutil.which(name, path=env.get("PATH")) or name
            if os.sep in program:
                program = os.path.join(directory, program)  # noqa: PTH118 - keeps `a/../b`
            self._key = server_key((program, *others), directory)
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

    def connected(self, client: Client) -> None:
        """Remember what the client of this server has found out."""
        self._connected = True
        self._learn(client.peer, needs_handshake=client.needs_handshake)

    def _learn(self, peer: Peer | None, *, needs_handshake: bool = False) -> None:
        cache = _load()
        if cache.learn(self._key, peer, time.time(), needs_handshake=needs_handshake):
            # RuntimeError: the user has no home directory.
            with suppress(OSError, RuntimeError):
                _save(cache.encode())


def _path() -> Path:
    caches = Path(os.environ.get("XDG_CACHE_HOME", ""))
    if not caches.is_absolute():  # XDG: a relative path is invalid and must be ignored
        caches = Path.home() / ".cache"
    return caches / "mcp-trio" / "handshakes.json"


def _load() -> HandshakeCache:
    try:
        # Without blocking: the file may be a named pipe.
        descriptor = os.open(_path(), os.O_RDONLY | getattr(os, "O_NONBLOCK", 0))
    except (OSError, RuntimeError):
        return HandshakeCache()
    try:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            return HandshakeCache()
        return HandshakeCache(os.read(descriptor, _MAX_SIZE))
    except OSError:
        return HandshakeCache()
    finally:
        os.close(descriptor)


def _save(data: bytes) -> None:
    path = _path()
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    temporary = path.with_name(f"{path.name}.{secrets.token_hex(8)}")
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(data)
        temporary.replace(path)
    except BaseException:
        with suppress(OSError):
            temporary.unlink()
        raise
