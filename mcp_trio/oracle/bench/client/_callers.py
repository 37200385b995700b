"""A load whose calls are coroutines: slower than prepared bytes, but they may do anything.

The figures mean the same as the lean engine's: an open loop's latency counts from the intended
start, and a call that failed or was not answered in time has none.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any, Final

import trio

from mcp_core import (
    AuthRequired,
    CallTimeout,
    ConnectFailed,
    ConnectionLost,
    LocalProtocolError,
    McpTrioError,
    PeerError,
    RemoteProtocolError,
)
from mcp_trio._nursery import open_quiet_nursery
from mcp_trio.oracle.bench._nursery_load import NurseryLoad
from mcp_trio.oracle.bench._schedule import OpenLoop
from mcp_trio.oracle.bench._tally import KnownResponses, Tally
from mcp_trio.oracle.bench._turn import TargetGone

if TYPE_CHECKING:
    from collections.abc import Mapping

    from mcp_trio.oracle.bench._process import Meter
    from mcp_trio.oracle.bench._requests import PreparedCall, Work, Worker
    from mcp_trio.oracle.bench._tally import CallerCounts
    from mcp_trio.oracle.bench._turn import BenchTurn, Pace

__all__ = ["CallFailed", "CoroutineLoad"]

_TIMEOUT: Final = "timeout"
_CAUSES: Final = (
    (CallTimeout, _TIMEOUT),
    (ConnectionLost, "closed"),
    (ConnectFailed, "no connection"),
    (RemoteProtocolError, "no response"),
    (LocalProtocolError, "not sent"),
)


class CallFailed(McpTrioError):
    """A call failed. The text is the cause, as `BenchTurn.errors` counts it."""


class CoroutineLoad(NurseryLoad, ABC):
    """Measures calls that are coroutines.

    Args:
        meter: measures the target's processes.
        timeout: seconds for each call, in an open loop from its intended start.
    """

    def __init__(self, meter: Meter, timeout: float) -> None:
        self._meter = meter
        self.timeout = timeout
        self._known = KnownResponses()

    async def turn(self, work: Work, pace: Pace, seconds: float) -> BenchTurn:
        """Call for `seconds`, wait for the last responses, and return what was measured.

        Raises:
            TargetGone: the target ended, or can no longer be reached.
            ConnectFailed: a caller got no connection.
        """
        await self.open_callers(pace.concurrency)
        tally = Tally(seconds, self._known, self._meter)
        gone: TargetGone | None = None
        loop = None if pace.rate is None else OpenLoop(pace, tally, seconds, self.timeout)
        try:
            async with open_quiet_nursery(wait=True) as nursery:
                self._measured = tally, nursery.cancel_scope
                for number in range(pace.concurrency):
                    worker = work.worker(number, pace.seed)
                    reads = work.reads_answers
                    nursery.start_soon(self._call_on, number, worker, tally, loop, reads)
                if loop is not None:
                    nursery.start_soon(loop.run)
        except* TargetGone as group:
            # Each caller may have seen it.
            gone = next(each for each in group.exceptions if isinstance(each, TargetGone))
        finally:
            self._measured = None
        tally.leave_out(0, due=0 if loop is None else loop.due)
        turn = tally.finish(trio.current_time())
        if gone is not None:
            raise TargetGone(str(gone), status=gone.status, stderr=gone.stderr, turn=turn)
        return turn

    @abstractmethod
    async def open_callers(self, count: int) -> None:
        """Prepare for so many callers, before the clock starts."""

    @abstractmethod
    async def call(self, number: int, call: PreparedCall, *, wants_result: bool) -> Any:
        """Make a call of caller `number`, and return the result as JSON values.

        Unless `wants_result` is True it may return anything.

        Raises:
            TargetGone: the target ended, or can no longer be reached.
            CallFailed, McpTrioError: the call failed.
        """

    async def _call_on(
        self,
        number: int,
        worker: Worker,
        tally: Tally,
        loop: OpenLoop | None,
        reads: bool,
    ) -> None:
        counts = tally.caller()
        answer: Mapping[str, Any] | None = None
        while (start := await _next_start(tally, loop)) is not None:
            call = worker.next_call(answer)
            tally.sent += 1
            try:
                answer = await self._measure(number, call, start, tally, counts, reads=reads)
            except trio.Cancelled:
                tally.leave_out(1)
                raise
            if call.think:
                await trio.sleep_until(min(trio.current_time() + call.think, tally.deadline))

    async def _measure(
        self,
        number: int,
        call: PreparedCall,
        start: float,
        tally: Tally,
        counts: CallerCounts,
        *,
        reads: bool,
    ) -> Mapping[str, Any] | None:
        """Make one call and count it. Return the response if there is one, and `reads` is True."""
        answer: Mapping[str, Any] | None = None
        cause = ""
        with trio.move_on_at(start + self.timeout) as waiting:
            try:
                answer = {"result": await self.call(number, call, wants_result=reads)}
            except TargetGone:
                raise
            except PeerError as exc:
                answer = {"error": {"code": exc.code, "message": exc.message}}
                cause = cause_of(exc)
            except McpTrioError as exc:
                cause = cause_of(exc)
        now = trio.current_time()
        counts.last = now
        if waiting.cancelled_caught or cause == _TIMEOUT:
            tally.timeout()
        elif cause:
            tally.error(cause)
        else:
            tally.succeed(counts, call, start, now)
        return answer if reads else None


async def _next_start(tally: Tally, loop: OpenLoop | None) -> float | None:
    """Return when the next call starts, None if the turn is over."""
    if loop is not None:
        return await loop.next_start()
    await trio.lowlevel.checkpoint()
    now = trio.current_time()
    return now if now < tally.deadline else None


def cause_of(error: McpTrioError) -> str:
    """Return the cause as which a failed call is counted."""
    if isinstance(error, CallFailed):
        return str(error)
    if isinstance(error, PeerError):
        return str(error.code)
    if isinstance(error, AuthRequired):
        return "HTTP 401"
    if isinstance(error, RemoteProtocolError) and isinstance(error.data, dict):
        status = error.data.get("status")
        if isinstance(status, int):
            return f"HTTP {status}"
    for kind, cause in _CAUSES:
        if isinstance(error, kind):
            return cause
    return type(error).__name__
