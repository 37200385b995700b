"""The timer of a client's HTTP transport, beside a fake `HttpClient`."""

from __future__ import annotations

from typing import Any, cast

import trio
import trio.testing

from mcp_core import NEED_DATA
from mcp_trio.http_client._connector import Connector
from mcp_trio.http_client._transport import HttpTransport

MockClock = trio.testing.MockClock


class HttpOfDeadlines:
    """An `HttpClient` that wants nothing but its deadlines. `times` has when one was handled."""

    events = drops = ()

    def __init__(self) -> None:
        self.deadlines: list[float] = []
        self.times: list[float] = []

    def next_event(self) -> object:
        return NEED_DATA

    def calls_to_make(self, now: float) -> list[Any]:
        return []

    def next_deadline(self) -> float | None:
        return self.deadlines[0] if self.deadlines else None

    def handle_timeout(self, now: float) -> None:
        self.times.append(now)
        while self.deadlines and self.deadlines[0] <= now:
            self.deadlines.pop(0)


async def test_http_client_timer_waits_for_each_deadline(autojump_clock: MockClock) -> None:
    """It sleeps before the first one is known, and is woken if a deadline comes nearer."""
    http = HttpOfDeadlines()
    transport = HttpTransport(cast("Any", http), Connector("http", "here", 80), print)
    async with trio.open_nursery() as nursery:
        transport.start(nursery)
        await trio.sleep(100)
        assert http.times == []
        http.deadlines = [150, 170]
        transport.pump()
        await trio.sleep(10)
        assert http.times == [100]  # the timer begins to wait for the first deadline
        http.deadlines = [120, 200]
        transport.pump()
        await trio.sleep(1)
        assert http.times == [100, 110]
        await trio.sleep(70)
        assert http.times == [100, 110, 120]
        await trio.sleep(100)
        assert http.times == [100, 110, 120, 200]
        nursery.cancel_scope.cancel()
