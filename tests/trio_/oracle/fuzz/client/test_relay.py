"""The relay that a client starts as its server, run in this process up to its connection."""

from __future__ import annotations

import os
import socket
import sys
from typing import TYPE_CHECKING

from mcp_trio.oracle.fuzz.client import _relay

if TYPE_CHECKING:
    import pytest


def test_relay_that_cannot_connect_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its client sees a server that has failed, and not one that has nothing to say."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))  # and doesn't listen
        port = taken.getsockname()[1]
        monkeypatch.setattr(sys, "argv", ["_relay.py", str(port), "token"])
        assert _relay.main() == 1


def test_relay_says_its_token_and_passes_bytes_to_stdout_until_the_end(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """stdout may take only a part of what it is given."""
    written = bytearray()
    exits: list[int] = []

    def write(descriptor: int, data: bytes) -> int:
        written.extend(data[:4])
        return min(len(data), 4)

    monkeypatch.setattr(os, "write", write)
    monkeypatch.setattr(os, "read", lambda descriptor, size: b"")  # stdin has ended
    monkeypatch.setattr(os, "_exit", exits.append)
    ours, theirs = socket.socketpair()
    with ours, theirs:
        monkeypatch.setattr(socket, "create_connection", lambda *_, **__: theirs)
        monkeypatch.setattr(sys, "argv", ["_relay.py", "1", "token"])
        ours.sendall(b'{"a":1}\n{"b":2}\n')
        ours.shutdown(socket.SHUT_WR)
        _relay.main()
        assert exits == [0]
        assert bytes(written) == b'{"a":1}\n{"b":2}\n'
        assert ours.recv(100) == b"token\n"


def test_relay_passes_stdin_to_the_server_until_its_end(monkeypatch: pytest.MonkeyPatch) -> None:
    typed = iter([b'{"a":1}\n', b'{"b":2}\n', b""])
    monkeypatch.setattr(os, "read", lambda descriptor, size: next(typed))
    ours, theirs = socket.socketpair()
    with ours, theirs:
        _relay.pass_input(theirs)
        assert ours.recv(100, socket.MSG_WAITALL) == b'{"a":1}\n{"b":2}\n'
        assert ours.recv(100) == b""  # its end, though the other way is still open
        ours.sendall(b"x")
        assert theirs.recv(100) == b"x"
