"""A TCP connection that is read and written without trio's socket, over a real one."""

from __future__ import annotations

import os
import sys
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

import pytest
import trio
import trio.testing

from mcp_trio.oracle.bench.engine._direct_stream import DirectStream
from mcp_trio.oracle.bench.engine._http_load import HttpConnection, HttpLoad
from mcp_trio.oracle.bench.engine._load import Address
from tests.harness.world.waiting import PATIENCE, until

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="a socket is no file there")


@asynccontextmanager
async def connected() -> AsyncIterator[tuple[DirectStream, trio.SocketStream]]:
    """Yield both ends of a connection."""
    with trio.fail_after(PATIENCE):
        [listener] = await trio.open_tcp_listeners(0, host="127.0.0.1")
        async with listener:
            port = listener.socket.getsockname()[1]
            ours = DirectStream(await trio.open_tcp_stream("127.0.0.1", port))
            theirs = await listener.accept()
        async with ours, theirs:
            yield ours, theirs


async def test_bytes_go_both_ways_until_the_end() -> None:
    async with connected() as (ours, theirs):
        await ours.send_all(b"abc")
        assert await theirs.receive_some() == b"abc"
        await theirs.send_all(b"defg")
        assert await ours.receive_some(2) == b"de"
        assert await ours.receive_some() == b"fg"
        await theirs.aclose()
        assert await ours.receive_some() == b""


async def test_more_than_the_socket_takes_waits_for_the_peer() -> None:
    data = bytes(range(256)) * 40_000
    received = bytearray()
    async with connected() as (ours, theirs), trio.open_nursery() as nursery:
        nursery.start_soon(ours.send_all, data)
        await trio.testing.wait_all_tasks_blocked()
        while len(received) < len(data):
            received += await theirs.receive_some()
        await ours.wait_send_all_might_not_block()
    assert received == data


async def test_receive_can_be_cancelled_and_goes_on_afterwards() -> None:
    async with connected() as (ours, theirs):
        await theirs.send_all(b"x")
        with trio.CancelScope() as scope:
            scope.cancel()
            await ours.receive_some()
        assert scope.cancelled_caught
        assert await ours.receive_some() == b"x"


async def test_broken_connection_is_a_resource_error() -> None:
    async with connected() as (ours, theirs):
        theirs.setsockopt(trio.socket.SOL_SOCKET, trio.socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
        await theirs.aclose()  # a reset, and not an end
        with pytest.raises(trio.BrokenResourceError):
            await ours.receive_some()
        with pytest.raises(trio.BrokenResourceError):
            await ours.send_all(b"x")


async def test_closed_stream_uses_no_descriptor() -> None:
    """A file that was opened later may have the same number."""
    async with connected() as (ours, theirs):
        async with trio.open_nursery() as nursery:

            async def receive() -> None:
                with pytest.raises(trio.ClosedResourceError):
                    await ours.receive_some()

            nursery.start_soon(receive)
            await trio.testing.wait_all_tasks_blocked()
            await ours.aclose()
        with pytest.raises(trio.BrokenResourceError):
            await ours.send_all(b"x")
        with pytest.raises(trio.ClosedResourceError):
            await ours.receive_some()
        assert await theirs.receive_some() == b""


async def test_load_has_direct_connections_and_sees_that_one_was_closed() -> None:
    async with trio.open_nursery() as nursery:
        [listener] = await trio.open_tcp_listeners(0, host="127.0.0.1")
        async with listener:
            port = listener.socket.getsockname()[1]
            load = HttpLoad(Address(f"http://127.0.0.1:{port}/mcp"), PATIENCE, nursery)
            connection = HttpConnection(load)
            await connection.connect()
            theirs = await listener.accept()
            assert isinstance(connection.stream, DirectStream)
            assert not connection.is_stale()
            await theirs.aclose()
            await until(connection.is_stale)
            await connection.drop()


async def test_socket_that_takes_nothing_now_gets_all_bytes_later(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def write(fd: int, data: bytes) -> int:
        raise BlockingIOError

    async with connected() as (ours, theirs):
        with monkeypatch.context() as patch:
            patch.setattr(os, "write", write)
            await ours.send_all(b"abc")
        assert await theirs.receive_some() == b"abc"
