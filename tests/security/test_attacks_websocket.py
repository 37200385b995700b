"""Attacks over WebSockets that only the server can bound: each is played over a socket."""

from __future__ import annotations

import gc

import pytest
import trio
import trio.testing

from mcp_core.http.server._websocket_session import WebSocketSession
from mcp_trio import Server, serve_http
from tests.core.http.frames import close, message, upgrade
from tests.harness.jsonrpc import initialize
from tests.harness.wire.websocket_client import FrameWire
from tests.harness.world.waiting import PATIENCE


def sessions() -> int:
    gc.collect()
    return sum(type(each) is WebSocketSession for each in gc.get_objects())


@pytest.mark.parametrize("orderly", [True, False], ids=["closed", "broken off"])
async def test_websockets_that_are_opened_and_closed_leave_nothing_behind(orderly: bool) -> None:
    """After 20 handshakes no session is left, even if the client just drops the connection."""
    before = sessions()
    async with trio.open_nursery() as nursery:
        address = await nursery.start(serve_http, Server("attacked"))
        for _ in range(20):
            wire = FrameWire(await trio.open_tcp_stream("127.0.0.1", address.port))
            assert await wire.open(upgrade()) == 101
            await wire.send(message(initialize()))
            assert await wire.next_frame()
            if orderly:
                await wire.send(close(1000))
                assert await wire.receive_all() == [1000]
            await wire.stream.aclose()
        with trio.fail_after(PATIENCE):
            while (left := sessions() - before) > 0:
                await trio.testing.wait_all_tasks_blocked(0.005)
        assert left == 0
        nursery.cancel_scope.cancel()
