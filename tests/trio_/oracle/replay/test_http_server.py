"""The connections of a server that plays a trace over HTTP: their times and their end."""

from __future__ import annotations

import re
from contextlib import suppress
from math import inf
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest
import trio
import trio.testing

from mcp_core.http import Body, End, Head
from mcp_trio import memory_pair
from mcp_trio.oracle.replay._http_server import _ReplayDriver, serve_over_http
from tests.harness.world.waiting import PATIENCE

if TYPE_CHECKING:
    from trio.testing import MockClock

GET = b"GET /mcp HTTP/1.1\r\nhost: h\r\n\r\n"
POST = b"POST /mcp HTTP/1.1\r\nhost: h\r\ncontent-length: 10\r\n\r\n12345"


class CompleteExchange:
    """An exchange with a response that is complete."""

    def __init__(self, head: Any) -> None:
        self.wants_body = head.method == b"POST"
        self._status = 1_000 if head.target == b"/invalid" else 200
        self.is_over = False

    def actions_to_send(self) -> list[Any]:
        actions = [] if self.is_over else [Head(self._status, []), Body(b"x" * 300_000), End()]
        self.is_over = True
        return actions


def new_driver() -> _ReplayDriver:
    server: Any = SimpleNamespace(
        begin=CompleteExchange,
        take_ready=list,
        receive_body=lambda exchange, body, now: None,
        disconnected=lambda exchange: None,
    )
    return _ReplayDriver(server)


@pytest.mark.parametrize(
    ("sent", "seconds", "received"),
    [
        (b"", 75, b""),
        (GET[:-2], 75, b""),
        (POST, 60, b"HTTP/1.1 408"),
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
    with suppress(trio.TooSlowError):
        await serve(theirs)
    assert trio.current_time() - began == seconds
    found = b""
    while received and len(found) < len(received):
        found += await ours.receive_some(len(received) - len(found))
    assert found == received


BAD_CHUNK = POST[:-5].replace(b"content-length: 10", b"transfer-encoding: chunked") + b"zz\r\n"


@pytest.mark.parametrize(
    ("sent", "received"),
    [
        (b"", []),
        (GET.replace(b"host:", b"host :"), []),
        (BAD_CHUNK + GET, [b"400"]),
        (GET + POST[:-5] + b"1234567890" + GET, [b"200"] * 3),
        (GET + GET.replace(b"/mcp", b"/invalid") + GET, [b"200"]),  # which h11 does not send
        (GET.replace(b"\r\n\r\n", b"\r\nconnection: close\r\n\r\n") + GET, [b"200"]),
    ],
)
async def test_replay_server_answers_until_the_connection_is_of_no_use(
    sent: bytes, received: list[bytes]
) -> None:
    ours, theirs = trio.testing.memory_stream_pair()
    await ours.send_all(sent)
    await ours.send_eof()
    await new_driver().serve(theirs)
    await theirs.aclose()
    found = b"".join([bytes(data) async for data in ours])
    assert re.findall(rb"HTTP/1.1 (\d+) ", found) == received


class DueExchange:
    """An exchange whose response is complete after `finish`."""

    wants_body = False

    def __init__(self) -> None:
        self.is_over = False
        self._actions: list[Any] = []

    def finish(self) -> None:
        self.is_over = True
        self._actions = [Head(200, [(b"content-length", b"2")]), Body(b"ok"), End()]

    def actions_to_send(self) -> list[Any]:
        found, self._actions = self._actions, []
        return found


class DueServer:
    """A played server whose response becomes complete once it is told that its time has come."""

    def __init__(self) -> None:
        self.next_deadline = inf
        self.exchange: Any = None
        self.ready: list[Any] = []
        self.gone: list[Any] = []

    def begin(self, head: Any) -> Any:
        self.exchange = DueExchange()
        self.next_deadline = trio.current_time()
        return self.exchange

    def advance(self, now: float) -> None:
        assert now >= self.next_deadline
        self.next_deadline = inf
        self.exchange.finish()
        self.ready.append(self.exchange)

    def take_ready(self) -> list[Any]:
        found, self.ready = self.ready, []
        return found

    def disconnected(self, exchange: Any) -> None:
        self.gone.append(exchange)


async def test_response_that_is_due_later_is_sent_when_its_time_has_come() -> None:
    """The connection stays open for the next request, until the server stops."""
    server: Any = DueServer()
    stop = trio.Event()
    with trio.fail_after(PATIENCE):
        (listener,) = await trio.open_tcp_listeners(0, host="127.0.0.1")
        port = listener.socket.getsockname()[1]
        async with trio.open_nursery() as nursery:
            nursery.start_soon(serve_over_http, server, [listener], stop)
            async with await trio.open_tcp_stream("127.0.0.1", port) as stream:
                for _ in range(2):
                    await stream.send_all(GET)
                    found = b""
                    while not found.endswith(b"ok"):
                        data = await stream.receive_some()
                        assert data, found
                        found += data
                    assert found.startswith(b"HTTP/1.1 200 ")
                stop.set()
                assert await stream.receive_some() == b""
    assert server.gone == []
