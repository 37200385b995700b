"""Sockets that listen, for servers that get them ready made."""

from __future__ import annotations

import socket
from typing import Final

__all__ = ["listening_sockets"]

_BACKLOG: Final = 128  # connections that wait while no server accepts them


def listening_sockets(host: str, port: int) -> list[socket.socket]:
    """Return sockets that listen on all addresses of `host`; on one if `port` is 0.

    Raises:
        OSError: that isn't possible. Its `strerror` has the cause and the cure.
    """
    found: list[socket.socket] = []
    try:
        addresses = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
        for family, *_, address in dict.fromkeys(addresses if port else addresses[:1]):
            found.append(
                socket.create_server(address[:2], family=family, backlog=_BACKLOG, reuse_port=False)
            )
    except OSError as exc:
        for each in found:
            each.close()
        raise OSError(
            exc.errno,
            f"cannot listen on {host}:{port}: {exc.strerror}; choose another port, or 0 for any"
            " free port",
        ) from exc
    return found
