"""A target that is a formula: its latencies are drawn, and time is the clock of trio."""

from __future__ import annotations

from collections import Counter
from math import ceil, inf
from random import Random
from typing import TYPE_CHECKING, Any

import trio

from mcp_trio.oracle.bench._histogram import Histogram
from mcp_trio.oracle.bench._turn import BenchTurn, TargetGone

if TYPE_CHECKING:
    from collections.abc import Mapping

    from mcp_trio.oracle.bench._requests import Work
    from mcp_trio.oracle.bench._turn import Pace


class FakeLoad:
    """A load that sends nothing.

    Args:
        latency: the median, in seconds. Others are up to a fifth shorter or longer.
        capacity: the most calls that it answers in a second.
        ends_after: the turn in which it ends, from 0, which is a warm-up; None for never.
        error: the cause by which all calls fail; "" for none.
        timeouts: the share of calls that time out.
        cpu: the share of a core that the load itself needs.
        slower: by how much a latency grows with each turn.
        timeout: how long it waits for a response if none comes in the turn.
        starts: the most calls that the load itself can start in a second. No latency shows it.
    """

    revision = "2026-07-28"
    server = "fake 1"
    protocol = ""
    capabilities: Mapping[str, Any] = {}

    def __init__(
        self,
        latency: float = 0.001,
        *,
        capacity: float = inf,
        ends_after: int | None = None,
        error: str = "",
        timeouts: float = 0.0,
        cpu: float = 0.1,
        slower: float = 0.0,
        timeout: float = 0.0,
        starts: float = inf,
    ) -> None:
        self.latency = latency
        self.capacity = capacity
        self.ends_after = ends_after
        self.error = error
        self.timeouts = timeouts
        self.cpu = cpu
        self.slower = slower
        self.timeout = timeout
        self.starts = starts
        self.paces: list[Pace] = []
        self.began: list[float] = []
        self._scope: trio.CancelScope | None = None

    async def turn(self, work: Work, pace: Pace, seconds: float) -> BenchTurn:
        """Sleep for the turn's time, and make up what it showed."""
        self.began.append(trio.current_time())
        self.paces.append(pace)
        random = Random(pace.seed)
        due = pace.rate or pace.concurrency / self.latency
        rate = min(due, self.capacity)
        sent = round(seconds * (due if pace.rate else rate))
        took = max(seconds, sent / rate, sent / self.starts)
        took += self.timeout if self.timeouts == 1 else 0.0
        with trio.CancelScope() as self._scope:
            await trio.sleep(took)
        if is_cut := self._scope.cancelled_caught:
            share = (trio.current_time() - self.began[-1]) / took
            sent, took = round(sent * share), took * share
        self._scope = None
        behind = pace.rate is not None and due > rate
        lost = ceil(sent * self.timeouts)
        answered = 0 if self.error else sent - lost
        median = self.latency * (1 + self.slower * len(self.paces))
        turn = BenchTurn(
            seconds=took,
            histogram=Histogram(
                median * random.uniform(0.8, 1.2) + behind * random.uniform(0, took - seconds)
                for _ in range(answered)
            ),
            sent=sent,
            answered=answered,
            rate=(sent - lost) / took,
            late=round(0.9 * sent) if behind else 0,
            timeouts=lost,
            errors=Counter({self.error: sent - lost}) if self.error else Counter(),
            tenths=[sent // 10] * 10,
            load_cpu=self.cpu * took,
            target_cpu=0.5 * took,
            memory=50_000_000,
            is_cut=is_cut,
            unfinished=3 if is_cut else 0,
        )
        if self.ends_after is not None and len(self.paces) > self.ends_after:
            raise TargetGone("the server has ended", status=1, stderr=("boom",), turn=turn)
        return turn

    def cut(self) -> bool:
        """End the turn."""
        if self._scope is not None:
            self._scope.cancel()
        return self._scope is not None

    async def ask(self, method: str, params: dict[str, Any] | None = None) -> dict[str, Any]:
        """Answer nothing."""
        return {}
