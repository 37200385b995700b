"""Whose program is connected: real sockets in the table of Linux, and tables made up."""

from __future__ import annotations

import os
import socket
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
