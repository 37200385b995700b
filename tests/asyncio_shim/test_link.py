"""The link of the asyncio driver: a connection on a pair of asyncio's streams."""

from __future__ import annotations

import asyncio
import json
import socket
from typing import Any

import pytest

from mcp_asyncio_shim._link import Link
from mcp_core import Connection, ConnectionClosed, MessageRejected, Role
from tests.harness.asyncio_memory import asyncio_memory_pair
from tests.harness.jsonrpc import E, client_config, line, result, server_config
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


def test_link_keeps_an_error_of_its_own_for_the_log() -> None:
    """asyncio logs an exception that is left in a task. A broken stream leaves none."""

    def fail(event: object) -> None:
        if isinstance(event, MessageRejected):
            raise error

    error = KeyError("ours")

    async def main() -> None:
        ours, theirs = asyncio_memory_pair()
        link = Link((ours.reader, ours.writer), Connection(Role.SERVER, server_config()), fail)
        await theirs.send_all(b"no JSON\n")
        await asyncio.wait({link.reading})
        assert link.reading.exception() is error
        await link.aclose()

    virtual_time.run(main())


@pytest.mark.parametrize(
    ("error", "is_reported"), [(None, False), (KeyError("ours"), False), (OSError(5, "x"), True)]
)
def test_link_whose_writer_does_not_close_is_left(
    error: Exception | None, is_reported: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A thread that writes may hang. Only an error of the system is one of writing."""

    async def wait_closed() -> None:
        if error is not None:
            raise error
        await asyncio.sleep(1000)

    async def main() -> None:
        ours, _ = asyncio_memory_pair()
        monkeypatch.setattr(ours.writer, "wait_closed", wait_closed)
        conn = Connection(Role.CLIENT, client_config())
        link = Link((ours.reader, ours.writer), conn, lambda event: None)
        await link.aclose(3)
        assert link.loop.time() == (4 if error is None else 0)
        assert link.write_error is (error if is_reported else None)

    virtual_time.run(main())


DISCOVERED = {
    "resultType": "complete",
    "supportedVersions": [E],
    "capabilities": {},
    "ttlMs": 0,
    "cacheScope": "private",
}


class PlayedProcess:
    """A process at the other end, which takes a second to end."""

    status = ""

    def describe(self) -> str:
        return self.status

    async def wait_for_end(self) -> None:
        await asyncio.sleep(1)
        self.status = " (exit status 3)"


def test_link_waits_for_the_exit_that_explains_the_end() -> None:
    """stdout ends before the exit status is known, which the error should have."""

    async def main() -> None:
        ours, theirs = asyncio_memory_pair()
        conn = Connection(Role.CLIENT, client_config(E))
        events: list[Any] = []
        link = Link((ours.reader, ours.writer), conn, events.append, peer=PlayedProcess())
        conn.open(0)
        link.pump()
        discovery = json.loads(await theirs.receive_some())
        await theirs.send_all(line(result(discovery["id"], DISCOVERED)))
        await theirs.aclose()
        await asyncio.wait({link.reading})
        assert link.loop.time() == 1
        await link.aclose()
        assert str(events[-1].error) == "the server closed the connection (exit status 3)"

    virtual_time.run(main())
