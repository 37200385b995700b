"""An attack as a table entry, and the bounds that every attack keeps."""

from __future__ import annotations

import ipaddress
import socket
import struct
import zlib
from collections.abc import Mapping
from typing import TYPE_CHECKING, Final
from urllib.parse import SplitResult, urlsplit

from msgspec import Struct

if TYPE_CHECKING:
    import trio

__all__ = [
    "MAX_BYTES",
    "MAX_SECONDS",
    "Attack",
    "find",
    "gzip_bomb",
    "local_url",
    "reset_when_closed",
]

# The number of bytes that one attack sends at most.
MAX_BYTES: Final = 8 * 1024 * 1024
# The seconds after which an attack ends.
MAX_SECONDS: Final = 30.0


class Attack(Struct, frozen=True):
    """One attack. `str()` is its name, for the ids of a parametrized test.

    Attributes:
        name: the name, such as `slow-head`.
        does: a sentence: what the hostile side does.
        expects: a sentence: what a well-behaved peer does about it.
    """

    name: str
    does: str
    expects: str

    def __str__(self) -> str:
        return self.name


def find(attack: Attack | str, known: Mapping[str, Attack]) -> str:
    """Return the name of an attack of a table.

    Raises:
        ValueError: the table doesn't have it.
    """
    name = str(attack)
    if name not in known:
        raise ValueError(f"no such attack: {name!r}; there are {', '.join(known)}")
    return name


def gzip_bomb() -> bytes:
    """Return 64 KiB of gzip that decompress to 64 MiB."""
    compressor = zlib.compressobj(9, wbits=31)
    block = bytes(1024 * 1024)
    return b"".join(compressor.compress(block) for _ in range(64)) + compressor.flush()


def local_url(url: str) -> SplitResult:
    """Return the parts of the URL of a server on this machine.

    Raises:
        ValueError: it isn't an http URL, or its host isn't a loopback address.
    """
    parts = urlsplit(url)
    host = parts.hostname or ""
    try:
        is_local = host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        is_local = False
    if parts.scheme != "http" or not is_local:
        raise ValueError(
            f"{url} is not an http URL of this machine, and only such servers are attacked: start "
            "the server under test on 127.0.0.1"
        )
    return parts


def reset_when_closed(stream: trio.SocketStream) -> None:
    """Let the system reset the connection when the stream is closed."""
    linger = struct.pack("ii", True, 0)  # for no time
    stream.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
