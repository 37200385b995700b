"""Around the conversations of listeners. The rest is in `tests/drivers`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
import trio

from mcp_core import PeerError
from mcp_trio import connect_stream, serve_listeners
from tests.drivers.test_server_lifespan import build

if TYPE_CHECKING:
    from pathlib import Path


async def test_serving_listeners_share_one_lifespan() -> None:
    """Four connections cause one setup and one teardown, and the port is closed at the end."""
    events: list[str] = []
    stop = trio.Event()
    async with trio.open_nursery() as nursery:
        listeners = await trio.open_tcp_listeners(0, host="127.0.0.1")

        async def serve(task_status: Any) -> None:
            await serve_listeners(build(events), listeners, stop=stop, task_status=task_status)

        assert await nursery.start(serve) == listeners
        port = listeners[0].socket.getsockname()[1]
        for _ in range(2):
            one, two = (
                await trio.open_tcp_stream("127.0.0.1", port),
                await trio.open_tcp_stream("127.0.0.1", port),
            )
            async with connect_stream(one) as first, connect_stream(two) as second:
                assert (await first.call_tool("rows")).structured_content == ["one"]
                assert (await second.call_tool("rows")).structured_content == ["one"]
        stop.set()
    assert events == ["enter s", "leave"]
    with pytest.raises(OSError, match=r"all attempts to connect to .* failed"):
        await trio.open_tcp_stream("127.0.0.1", port)


async def test_serving_listeners_stop_ends_every_conversation() -> None:
    """After the grace period, the waiting call fails with an explanation."""
    events: list[str] = []
    stop = trio.Event()
    listeners = await trio.open_tcp_listeners(0, host="127.0.0.1")
    port = listeners[0].socket.getsockname()[1]
    outcomes: list[Any] = []
    first = trio.Event()
    async with trio.open_nursery() as nursery:

        async def serve() -> None:
            await serve_listeners(build(events), listeners, stop=stop, grace=0.1)

        nursery.start_soon(serve)

        async def call(seconds: float) -> None:
            async with connect_stream(await trio.open_tcp_stream("127.0.0.1", port)) as client:
                try:
                    outcomes.append((await client.call_tool("wait", {"seconds": seconds})).text)
                    first.set()
                except PeerError as exc:
                    outcomes.append(exc.message)

        nursery.start_soon(call, 0.05)
        nursery.start_soon(call, 60)
        await first.wait()
        stop.set()
    assert outcomes == ["in time", "the server is being shut down"]
    assert events == ["enter s", "waited", "waited", "leave"]


async def test_serving_listeners_cancelled_are_closed(tmp_path: Path) -> None:
    events: list[str] = []
    listeners = await trio.open_tcp_listeners(0, host="127.0.0.1")
    port = listeners[0].socket.getsockname()[1]
    async with trio.open_nursery() as nursery:
        nursery.start_soon(serve_listeners, build(events), listeners)
        async with connect_stream(await trio.open_tcp_stream("127.0.0.1", port)) as client:
            assert (await client.call_tool("rows")).structured_content == ["one"]
            nursery.cancel_scope.cancel()
    assert events == ["enter s", "leave"]
    assert listeners[0].socket.fileno() == -1
