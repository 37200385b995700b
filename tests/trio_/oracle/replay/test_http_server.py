"""The limits of a server that plays a trace over HTTP: connections, and times for its clients."""

from __future__ import annotations

from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest
import trio
import trio.testing

from mcp_core.http import Body, End, Head
from mcp_trio import memory_pair
from mcp_trio.oracle.replay._http_server import _ReplayDriver

if TYPE_CHECKING:
    from trio.testing import MockClock

GET = b"GET /mcp HTTP/1.1\r\nhost: h\r\n\r\n"
POST = b"POST /mcp HTTP/1.1\r\nhost: h\r\ncontent-length: 10\r\n\r\n12345"


class Exchange:
    """An exchange with a response that is complete."""

    def __init__(self, head: Any) -> None:
        self.wants_body = head.method == b"POST"
        self.is_over = False

    def actions_to_send(self) -> list[Any]:
        actions = [] if self.is_over else [Head(200, []), Body(b"x" * 300_000), End()]
        self.is_over = True
        return actions


def new_driver() -> _ReplayDriver:
    server: Any = SimpleNamespace(
        begin=Exchange, take_ready=list, disconnected=lambda exchange: None
    )
    return _ReplayDriver(server)


@pytest.mark.parametrize(
    ("sent", "seconds", "received"),
    [
        (b"", 75, b""),
        (GET[:-2], 75, b""),
        (POST, 60, b"HTTP/1.1 413"),
        (GET, 60, b"HTTP/1.1 200"),  # the client does not read the response
    ],
)
async def test_replay_server_ends_the_connection_of_a_slow_client(
    sent: bytes, seconds: int, received: bytes, autojump_clock: MockClock
) -> None:
    ours, theirs = memory_pair()
    serve: Any = new_driver().serve
    await ours.send_all(sent)
    began = trio.current_time()
    await serve(theirs)
    assert trio.current_time() - began == seconds
    found = b""
    while received and len(found) < len(received):
        found += await ours.receive_some(len(received) - len(found))
    assert found == received


async def test_replay_server_has_five_hundred_connections(autojump_clock: MockClock) -> None:
    driver = new_driver()
    driver._count = 499  # as if so many were open
    serve: Any = driver.serve
    last, more = memory_pair(), memory_pair()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(serve, last[1])
        await trio.testing.wait_all_tasks_blocked()
        await serve(more[1])
        assert trio.current_time() == 0
        assert len(nursery.child_tasks) == 1
        await last[0].aclose()
        await trio.testing.wait_all_tasks_blocked()
        assert not nursery.child_tasks
        nursery.start_soon(serve, memory_pair()[1])
        await trio.testing.wait_all_tasks_blocked()
        assert len(nursery.child_tasks) == 1
        nursery.cancel_scope.cancel()
