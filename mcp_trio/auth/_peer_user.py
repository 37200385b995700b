"""Find out which user's program is at the other end of a loopback connection, on Linux.

Linux lists the TCP sockets of a network namespace with their users in `/proc/net/tcp`, including
other users' sockets. A socket that its program has closed has inode 0 and user 0 there.
"""

from __future__ import annotations

import os
import socket
import struct
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from trio.socket import SocketType

__all__ = ["can_find_users", "is_same_user"]

_TABLES: Final = {
    socket.AF_INET: Path("/proc/net/tcp"),
    socket.AF_INET6: Path("/proc/net/tcp6"),
}
_LISTENING: Final = "0A"
# Reading the table isn't atomic: an entry may be missed while others appear and disappear.
_ATTEMPTS: Final = 3
_ROOT: Final = 0  # relays such as WSL's run as root, which can read everything anyway


class _Entry(NamedTuple):
    local: str
    remote: str
    state: str
    user: int
    inode: int


def can_find_users(listener: SocketType) -> bool:
    """Return True if the system lists the users of connections to this listener."""
    own = _address_text(listener.family, listener.getsockname())
    return any(
        entry.local == own and entry.state == _LISTENING for entry in _entries(listener.family)
    )


def is_same_user(connection: SocketType) -> bool:
    """Return True if the peer of an accepted connection runs as this user, or as root.

    Also return True if the peer isn't found: it is in another network namespace, or this system
    isn't Linux.
    """
    if not hasattr(os, "geteuid"):
        return True
    try:
        ours = _address_text(connection.family, connection.getsockname())
        theirs = _address_text(connection.family, connection.getpeername())
    except OSError:
        return False  # already disconnected
    for _ in range(_ATTEMPTS):
        for entry in _entries(connection.family):
            if (entry.local, entry.remote) == (theirs, ours):
                return entry.inode != 0 and entry.user in _our_users()
    return True


def _our_users() -> tuple[int, ...]:
    """Return the users whose programs may see this process's secrets."""
    return (os.geteuid(), _ROOT)


def _entries(family: int) -> list[_Entry]:
    """Return the table of TCP sockets, or an empty list if it cannot be read."""
    entries: list[_Entry] = []
    try:
        with _TABLES[socket.AddressFamily(family)].open(encoding="ascii") as table:
            for line in table:
                # Number, local and remote address, state, queues, timer, retransmits, user,
                # timeout, inode.
                fields = line.split()
                if len(fields) > 9 and fields[7].isdigit() and fields[9].isdigit():
                    local, remote, state = fields[1:4]
                    entries.append(_Entry(local, remote, state, int(fields[7]), int(fields[9])))
    except (OSError, ValueError, KeyError):
        return []
    return entries


def _address_text(family: int, address: tuple[str, int]) -> str:
    """Return an address as the table writes it: 32-bit words in the machine's byte order."""
    packed = socket.inet_pton(family, address[0])
    words = struct.unpack(f"={len(packed) // 4}I", packed)
    return f"{''.join(f'{word:08X}' for word in words)}:{address[1]:04X}"
