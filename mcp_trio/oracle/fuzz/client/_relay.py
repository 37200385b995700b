"""Join stdin and stdout to a socket: the server that a client starts, as far as the client sees.

    python _relay.py PORT TOKEN

It connects to this machine's port, sends the token and a line feed, and passes bytes both ways
until one side ends. It needs the standard library alone, and no package, so that it starts fast.
"""

from __future__ import annotations

import os
import socket
import sys
import threading

CHUNK = 65_536  # bytes


def main() -> int:
    """Run the relay."""
    port, token = int(sys.argv[1]), sys.argv[2]
    try:
        server = socket.create_connection(("127.0.0.1", port), timeout=10)
    except OSError:
        return 1
    server.settimeout(None)
    server.sendall(token.encode() + b"\n")
    threading.Thread(target=pass_input, args=(server,), daemon=True).start()
    while data := receive(server):
        try:
            write_all(data)
        except OSError:
            break
    # The client may wait for the end of this process, and another thread reads stdin.
    os._exit(0)


def pass_input(server: socket.socket) -> None:
    """Pass stdin on until its end."""
    try:
        while data := os.read(0, CHUNK):
            server.sendall(data)
        server.shutdown(socket.SHUT_WR)
    except OSError:
        pass


def receive(server: socket.socket) -> bytes:
    """Return some bytes of the server, none at its end."""
    try:
        return server.recv(CHUNK)
    except OSError:
        return b""


def write_all(data: bytes) -> None:
    """Write all of `data` to stdout."""
    while data:
        data = data[os.write(1, data) :]


if __name__ == "__main__":
    sys.exit(main())
