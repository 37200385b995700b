"""The program that a client starts as its server: it joins stdin and stdout to a socket.

    python _relay.py PORT TOKEN

It connects to the port on 127.0.0.1, sends the token and a line feed, and passes bytes both ways
until one side ends. It imports the standard library only, so that it starts fast.
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
    # Exit at once, though another thread reads stdin: the client may wait for this process.
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
    """Return bytes from the server, b"" once it has ended."""
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
