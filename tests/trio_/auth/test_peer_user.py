"""Whose program is connected: real sockets in the table of Linux, and tables made up."""

from __future__ import annotations

import os
import socket
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
import trio

from mcp_trio.auth import _peer_user
from mcp_trio.auth._peer_user import can_find_users, is_same_user

if TYPE_CHECKING:
    from trio.socket import SocketType

pytestmark = pytest.mark.skipif(
    not Path("/proc/net/tcp").exists(), reason="only Linux lists the sockets"
)
HEAD = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  x inode"
HOSTS = ["127.0.0.1", "::1"]


async def connected(host: str) -> tuple[SocketType, SocketType, SocketType]:
    """Return a listener, an accepted connection, and the other end of it."""
    [listener] = await trio.open_tcp_listeners(0, host=host)
    client = await trio.open_tcp_stream(host, listener.socket.getsockname()[1])
    server = await listener.accept()
    return listener.socket, server.socket, client.socket


def close(*sockets: SocketType) -> None:
    for each in sockets:
        each.close()


def table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *lines: str) -> None:
    file = tmp_path / "tcp"
    file.write_text("\n".join([HEAD, *lines, ""]))
    monkeypatch.setattr(_peer_user, "_TABLES", {socket.AF_INET: file, socket.AF_INET6: file})


def line_of(peer: SocketType, user: int, inode: int) -> str:
    """Return the line of the table for the socket of a peer."""
    places = [
        _peer_user._address_text(peer.family, address)
        for address in (peer.getsockname(), peer.getpeername())
    ]
    return f"   1: {' '.join(places)} 01 0:0 00:0 0 {user} 0 {inode} 1"


@pytest.mark.parametrize("host", HOSTS)
async def test_own_connection_is_of_same_user(
    host: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    listener, server, client = await connected(host)
    assert can_find_users(listener)
    assert not can_find_users(client)
    assert is_same_user(server)
    monkeypatch.setattr(_peer_user, "_our_users", lambda: (os.geteuid() + 1,))
    assert not is_same_user(server)
    close(listener, server, client)


@pytest.mark.parametrize(
    ("user", "inode", "same"), [(4711, 1, True), (0, 1, True), (4712, 1, False), (0, 0, False)]
)
async def test_user_in_table_decides(
    user: int, inode: int, same: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A socket that the peer has closed has the user 0 and the inode 0."""
    monkeypatch.setattr(os, "geteuid", lambda: 4711)
    listener, server, client = await connected("127.0.0.1")
    other = line_of(server, 4712, 1)  # the same connection from our end
    table(tmp_path, monkeypatch, "no entry", other, line_of(client, user, inode))
    assert is_same_user(server) is same
    close(listener, server, client)


async def test_peer_missing_in_table_is_looked_for_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Linux may omit a socket from one reading of the table, so it is read again."""
    listener, server, client = await connected("127.0.0.1")
    table(tmp_path, monkeypatch)
    assert is_same_user(server)  # in another network namespace
    assert not can_find_users(listener)
    read = iter([[], [], [line_of(client, 4712, 1)]])
    entries = _peer_user._entries

    def read_later(family: int) -> list[_peer_user._Entry]:
        table(tmp_path, monkeypatch, *next(read))
        return entries(family)

    monkeypatch.setattr(_peer_user, "_entries", read_later)
    assert not is_same_user(server)
    close(listener, server, client)


async def test_peer_is_looked_for_three_times(monkeypatch: pytest.MonkeyPatch) -> None:
    def nothing(family: int) -> list[_peer_user._Entry]:
        tables.append(family)
        return []

    tables: list[int] = []
    listener, server, client = await connected("127.0.0.1")
    monkeypatch.setattr(_peer_user, "_entries", nothing)
    assert is_same_user(server)
    assert tables == [socket.AF_INET] * 3
    close(listener, server, client)


async def test_other_systems_have_no_table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    listener, server, client = await connected("127.0.0.1")
    monkeypatch.setattr(_peer_user, "_TABLES", {socket.AF_INET: tmp_path / "missing"})
    assert not can_find_users(listener)
    close(client)
    with monkeypatch.context() as patch:
        patch.delattr(os, "geteuid")
        assert is_same_user(server)
    close(listener, server)
    assert not is_same_user(server)


@pytest.mark.parametrize(
    ("line", "found"),
    [
        ("1: A:1 B:2 0A 0:0 00:0 0 7 0 8", [("A:1", "B:2", "0A", 7, 8)]),
        ("1: A:1 B:2 0A 0:0 00:0 0 7 0 8 1 2 3", [("A:1", "B:2", "0A", 7, 8)]),
        ("1: A:1 B:2 0A 0:0 00:0 0 7 0", []),
        ("1: A:1 B:2 0A 0:0 00:0 0 x 0 8", []),
        ("1: A:1 B:2 0A 0:0 00:0 0 7 0 x", []),
    ],
)
def test_line_of_table_needs_user_and_inode(
    line: str,
    found: list[tuple[str, str, str, int, int]],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A later Linux may add fields at the end, and a heading isn't an entry."""
    table(tmp_path, monkeypatch, line, "2: C:1 D:2 01 0:0 00:0 0 9 0 10 1")
    assert _peer_user._entries(socket.AF_INET) == [*found, ("C:1", "D:2", "01", 9, 10)]


def test_table_that_is_no_text_or_of_another_family_has_no_entries(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table(tmp_path, monkeypatch)
    (tmp_path / "tcp").write_bytes(b"1: A:1 B:2 0A 0:0 00:0 0 7 0 8\n\xff\n")
    assert _peer_user._entries(socket.AF_INET) == []
    assert _peer_user._entries(socket.AF_UNIX) == []
    assert _peer_user._entries(12345) == []


def test_address_is_written_as_words_of_the_machine() -> None:
    words = (0x0100007F, 0x01000000) if sys.byteorder == "little" else (0x7F000001, 1)
    assert _peer_user._address_text(socket.AF_INET, ("127.0.0.1", 80)) == f"{words[0]:08X}:0050"
    address = _peer_user._address_text(socket.AF_INET6, ("::1", 65_535))
    assert address == f"{'0' * 24}{words[1]:08X}:FFFF"


def test_programs_of_this_user_and_of_root_see_its_secrets() -> None:
    assert _peer_user._our_users() == (os.geteuid(), 0)
