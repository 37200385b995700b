"""Listeners that have no descriptor for a connection, on a mock clock."""

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
from mcp_trio._listeners import PatientListener
from mcp_trio.http_server._serve import serve_http_listeners
from tests.trio_.wire import Wire

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
