"""Listeners that have no descriptor for a connection, and the maximum of connections."""

from __future__ import annotations

import errno
import os
from collections import deque
from typing import TYPE_CHECKING

import pytest
import trio
import trio.testing

from mcp_core.http import HttpOptions
from mcp_core.registry import Server
from mcp_trio import serve_listeners
from mcp_trio._listeners import PatientListener, serve_connections
from mcp_trio.http_server._serve import serve_http_listeners
from tests.harness.wire.lines import Wire

if TYPE_CHECKING:
    from trio.testing import MockClock


class Refusing(trio.abc.Listener[trio.abc.Stream]):
    """A listener that raises so many errors with `number` before each connection."""

    def __init__(self, number: int, count: int) -> None:
        self.number = number
        self.left = count
        self.waiting: deque[trio.abc.Stream] = deque()
        self.closed = False

    async def accept(self) -> trio.abc.Stream:
        await trio.lowlevel.checkpoint()
        if self.left:
            self.left -= 1
            raise OSError(self.number, os.strerror(self.number))
        if self.waiting:
            return self.waiting.popleft()
        await trio.sleep_forever()
        raise AssertionError

    async def aclose(self) -> None:
        self.closed = True
        await trio.lowlevel.checkpoint()


class LaterListener(Refusing):
    """A listener with one connection after the other, each once the one before was served."""

    async def accept(self) -> trio.abc.Stream:
        await trio.sleep(1)
        return await super().accept()


RESOURCES = [errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM]


@pytest.mark.parametrize("number", RESOURCES, ids=errno.errorcode.get)
async def test_listener_without_descriptors_logs_one_line_a_minute(
    number: int, caplog: pytest.LogCaptureFixture, autojump_clock: MockClock
) -> None:
    refusing = Refusing(number, 900)
    _, theirs = trio.testing.memory_stream_pair()
    refusing.waiting.append(theirs)
    assert await PatientListener(refusing).accept() is theirs
    assert trio.current_time() == pytest.approx(90)
    assert len(caplog.records) == 2
    for record in caplog.records:
        assert os.strerror(number) in record.getMessage()
        assert record.exc_info is None


async def test_listener_with_another_error_raises_it(autojump_clock: MockClock) -> None:
    with pytest.raises(OSError, match=os.strerror(errno.EBADF)):
        await PatientListener(Refusing(errno.EBADF, 1)).accept()


async def test_server_without_descriptors_logs_one_line_and_serves_later(
    caplog: pytest.LogCaptureFixture, autojump_clock: MockClock
) -> None:
    refusing = Refusing(errno.EMFILE, 30)
    ours, theirs = trio.testing.memory_stream_pair()
    refusing.waiting.append(theirs)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(serve_listeners, Server("s"), [refusing])
        wire = Wire(ours)
        await wire.shake_hands()
        assert await wire.is_alive()
        nursery.cancel_scope.cancel()
    assert len(caplog.records) == 1
    assert refusing.closed


async def test_http_server_without_descriptors_logs_one_line(
    caplog: pytest.LogCaptureFixture, autojump_clock: MockClock
) -> None:
    refusing = Refusing(errno.EMFILE, 30)
    with trio.move_on_after(10):
        await serve_http_listeners(
            [refusing],  # type: ignore[list-item]
            {"/mcp": Server("s")},
            HttpOptions.of("127.0.0.1"),
            routes={},
        )
    assert refusing.left == 0
    assert len(caplog.records) == 1


async def test_connections_are_served_up_to_the_maximum(
    caplog: pytest.LogCaptureFixture, autojump_clock: MockClock
) -> None:
    """One connection more is closed, and the log says why. All are closed at the end."""

    async def serve(stream: trio.abc.Stream) -> None:
        assert await stream.receive_some() == b""

    waiting = Refusing(0, 0)
    pairs = [trio.testing.memory_stream_pair() for _ in range(3)]
    waiting.waiting += [theirs for _, theirs in pairs[:3]]
    async with trio.open_nursery() as nursery:
        nursery.start_soon(serve_connections, serve, [waiting], 2)
        assert await pairs[2][0].receive_some() == b""
        assert "2 connections are open, the maximum" in caplog.text
        await pairs[0][0].aclose()
        await trio.testing.wait_all_tasks_blocked()
        nursery.cancel_scope.cancel()
    assert waiting.closed
    assert len(caplog.records) == 1
    # All are closed at the end.
    assert await pairs[1][0].receive_some() == b""


async def test_connection_that_has_ended_makes_room(autojump_clock: MockClock) -> None:
    served: list[trio.abc.Stream] = []

    async def serve(stream: trio.abc.Stream) -> None:
        served.append(stream)

    later = LaterListener(0, 0)
    pairs = [trio.testing.memory_stream_pair() for _ in range(3)]
    later.waiting += [theirs for _, theirs in pairs]
    with trio.move_on_after(10):
        await serve_connections(serve, [later], 1)
    assert served == [theirs for _, theirs in pairs]


@pytest.mark.parametrize(
    "failure", [trio.BrokenResourceError, trio.ClosedResourceError, trio.TooSlowError]
)
async def test_lost_connection_ends_no_other(
    failure: type[Exception], autojump_clock: MockClock
) -> None:
    """A connection that its peer has lost is an everyday event."""

    async def serve(stream: trio.abc.Stream) -> None:
        if stream is pairs[0][1]:
            raise failure
        await stream.send_all(b"served")
        await trio.sleep_forever()

    waiting = Refusing(0, 0)
    pairs = [trio.testing.memory_stream_pair() for _ in range(2)]
    waiting.waiting += [theirs for _, theirs in pairs]
    async with trio.open_nursery() as nursery:
        nursery.start_soon(serve_connections, serve, [waiting], 9)
        assert await pairs[0][0].receive_some() == b""
        assert await pairs[1][0].receive_some() == b"served"
        await trio.testing.wait_all_tasks_blocked()  # an error would have been raised by then
        nursery.cancel_scope.cancel()


async def test_listeners_without_descriptors_wait(
    caplog: pytest.LogCaptureFixture, autojump_clock: MockClock
) -> None:
    async def serve(stream: trio.abc.Stream) -> None:
        await stream.send_all(b"served")

    refusing = Refusing(errno.EMFILE, 30)
    ours, theirs = trio.testing.memory_stream_pair()
    refusing.waiting.append(theirs)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(serve_connections, serve, [refusing], 9)
        assert await ours.receive_some() == b"served"
        nursery.cancel_scope.cancel()
    assert len(caplog.records) == 1
    assert "ulimit" in caplog.text


async def test_other_error_of_a_connection_is_raised(autojump_clock: MockClock) -> None:
    async def serve(stream: trio.abc.Stream) -> None:
        raise ZeroDivisionError

    waiting = Refusing(0, 0)
    ours, theirs = trio.testing.memory_stream_pair()
    waiting.waiting.append(theirs)
    with pytest.raises(BaseExceptionGroup) as caught:
        await serve_connections(serve, [waiting], 9)
    assert caught.group_contains(ZeroDivisionError)
    assert await ours.receive_some() == b""
