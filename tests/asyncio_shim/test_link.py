"""The link of the asyncio driver: a connection on a pair of asyncio's streams."""

from __future__ import annotations

import asyncio
import socket
from typing import Any

import pytest

from mcp_asyncio_shim._link import Link
from mcp_core import Connection, ConnectionClosed, Role
from tests.harness.asyncio_memory import asyncio_memory_pair
from tests.harness.jsonrpc import client_config
from tests.harness.world import virtual_time
from tests.harness.world.loop import run


class SentRecord:
    """Notes what is sent."""

    def __init__(self) -> None:
        self.noted: list[bytes] = []

    def received(self, data: bytes) -> None:
        raise AssertionError

    def sent(self, data: bytes) -> None:
        self.noted.append(data)


def test_link_that_breaks_discards_what_is_queued() -> None:
    """The trace still gets the end of the stream although nothing more is sent."""

    async def main() -> None:
        record: Any = SentRecord()
        ours, theirs = socket.socketpair()
        with theirs:
            streams = await asyncio.open_connection(sock=ours)
            conn = Connection(Role.CLIENT, client_config())
            link = Link(streams, conn, lambda event: None, record)
            conn.open(0)
            link.pump()
            assert conn.queued()
            streams[0].set_exception(ConnectionResetError())
            await asyncio.wait({link.reading})
            assert not conn.queued()
            for _ in range(2):
                await link.aclose()
            assert record.noted == [b""]  # the end, once
            assert theirs.recv(100) == b""

    run(main())


def test_link_to_a_peer_that_does_not_read_is_closed_when_it_returns() -> None:
    """The rest is dropped after the time for it, and no descriptor stays for a later step."""

    async def main() -> None:
        ours, theirs = socket.socketpair()
        with theirs:
            streams = await asyncio.open_connection(sock=ours)
            link = Link(streams, Connection(Role.CLIENT, client_config()), lambda event: None)
            streams[1].write(bytes(1_000_000))
            started = link.loop.time()
            await link.aclose(3)
            assert link.loop.time() - started == pytest.approx(3)
            assert ours.fileno() == -1
            assert link.write_error is None

    virtual_time.run(main())


def test_link_closed_before_its_tasks_have_begun_reports_the_end() -> None:
    """Tasks that are cancelled before their first step run no `finally`."""

    async def main() -> None:
        ours, _ = asyncio_memory_pair()
        conn = Connection(Role.CLIENT, client_config())
        events: list[Any] = []
        link = Link((ours.reader, ours.writer), conn, events.append)
        conn.open(0)
        link.pump()
        await link.aclose()
        assert [type(event) for event in events] == [ConnectionClosed]

    virtual_time.run(main())
