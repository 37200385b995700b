"""Counts what happens to the calls of a turn.

Only a result has a latency. Whether a response is one is known by its length and a look at its
bytes: the first response of each length to a call is decoded at once, and so is a further one
without the call's id, or with a member that errors have. Of the others one in a hundred is decoded,
once the clock has stopped. All responses of a length that an error has had are decoded.
"""

from __future__ import annotations

import re
import time
from collections import Counter
from heapq import heappush, heapreplace, nlargest
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import trio

from ._histogram import Histogram
from ._turn import SLOWEST, TENTHS, BenchTurn
from ._verdicts import Body, find_cause, find_response

if TYPE_CHECKING:
    from ._process import Meter
    from ._requests import PreparedCall

__all__ = ["CallerCounts", "Lengths", "Tally"]

_SAMPLED: Final = 100  # one response in so many is decoded
_MAX_LENGTHS: Final = 4096  # lengths that are remembered
# Responses that are kept until the clock has stopped, and their bytes. More are decoded at once.
_MAX_KEPT: Final = 2000
_MAX_KEPT_BYTES: Final = 16 * 1024 * 1024
_MAX_NOTED: Final = 200_000  # results that are noted until they are counted, 20 MB
_INSTANT: Final = 1e-6  # seconds; a turn isn't shorter
_ERROR_END: Final = b'rror"'  # both members of errors have it, and one search costs least
_ERROR: Final = re.compile(rb'"error"|"isError"\s*:\s*true')
_MAX_CAUSES: Final = 100  # different causes that are counted; the rest counts as "other"


class CallerCounts:
    """The calls of one caller in a turn.

    Attributes:
        answered: how many had a result.
        last: when the last response came, or the last call failed.
    """

    __slots__ = ("answered", "last")

    def __init__(self) -> None:
        self.answered = 0
        self.last = 0.0


class Lengths:
    """The lengths of responses that were decoded, over all turns of a load."""

    def __init__(self) -> None:
        # True if all were results. The call is in the key by identity and therefore kept alive.
        self.are_results: dict[tuple[int, int], bool] = {}
        self._calls: dict[int, PreparedCall] = {}

    def note(self, call: PreparedCall, length: int, *, is_result: bool) -> None:
        """Remember whether a response of this length was a result. One error is never forgotten."""
        if len(self.are_results) >= _MAX_LENGTHS:
            self.are_results.clear()
            self._calls.clear()
        self._calls[id(call)] = call
        key = id(call), length
        self.are_results[key] = is_result and self.are_results.get(key, True)


class _Kept(NamedTuple):
    """A response that is decoded later, and when it came."""

    caller: CallerCounts
    call: PreparedCall
    digits: bytes
    latency: float
    now: float
    body: bytes
    is_stream: bool


class Tally:
    """The counts of one turn, which begins now.

    Attributes:
        began, deadline: when calls start, first and last, on trio's clock.
        sent: calls.
        late: calls of an open loop that found no free caller.
        lag: seconds that the load itself was late, of all calls together.
        stray_lines: lines that are no messages.
        drain: seconds that callers waited for the end of event streams, of all calls together.
        is_cut: whether Ctrl+C ends the turn before its time.
        unfinished: calls that were open or due as it ended.

    Args:
        seconds: how long the turn is.
        lengths: the load's.
        meter: measures the target's processes.
    """

    def __init__(self, seconds: float, lengths: Lengths, meter: Meter) -> None:
        self._meter = meter
        self._target_cpu = meter.cpu()  # which may take a while
        self._load_cpu = time.process_time()
        self.began = trio.current_time()
        self.deadline = self.began + seconds
        self.sent = 0
        self.late = 0
        self.lag = 0.0
        self.stray_lines = 0
        self.drain = 0.0
        self.is_cut = False
        self.unfinished = 0
        self._seconds = max(seconds, _INSTANT)
        self._lengths = lengths
        self._are_results = lengths.are_results
        self._histogram = Histogram()
        self._tenths = [0] * TENTHS
        self._errors: Counter[str] = Counter()
        self._timeouts = 0
        self._callers: list[CallerCounts] = []
        self._slowest: list[tuple[float, str]] = []
        self._slow = 0.0
        self._until_sample = _SAMPLED
        # Results that are counted once the clock has stopped. Lists of floats cost least.
        self._calls: list[PreparedCall] = []
        self._starts: list[float] = []
        self._ends: list[float] = []
        self._note_call = self._calls.append
        self._note_start = self._starts.append
        self._note_end = self._ends.append
        self._kept: list[_Kept] = []
        self._kept_bytes = 0

    def caller(self) -> CallerCounts:
        """Return the counts of a further caller."""
        caller = CallerCounts()
        self._callers.append(caller)
        return caller

    def answer(
        self,
        caller: CallerCounts,
        call: PreparedCall,
        digits: bytes,
        start: float,
        now: float,
        body: Body,
        is_stream: bool = False,
    ) -> None:
        """Count a response. This runs once for each measured call.

        Args:
            caller: the caller's counts.
            call: the call.
            digits: its id.
            start: when it started, or should have.
            now: when the response was complete.
            body: the response: JSON or an event stream.
            is_stream: whether it is an event stream.
        """
        caller.last = now
        if (
            self._are_results.get((id(call), len(body)))
            and digits in body
            and not (_ERROR_END in body and _ERROR.search(body))
        ):
            self._until_sample -= 1
            if self._until_sample:
                caller.answered += 1
                self._note_call(call)
                self._note_start(start)
                self._note_end(now)
                return
            self._until_sample = _SAMPLED
            if len(self._ends) > _MAX_NOTED:
                self._count_noted()
            kept = _Kept(caller, call, digits, now - start, now, bytes(body), is_stream)
            self._kept_bytes += len(body)
            if len(self._kept) < _MAX_KEPT and self._kept_bytes < _MAX_KEPT_BYTES:
                self._kept.append(kept)
                return
            self._kept_bytes -= len(body)
        else:
            kept = _Kept(caller, call, digits, now - start, now, bytes(body), is_stream)
        self._judge(kept)

    def decoded(
        self,
        caller: CallerCounts,
        call: PreparedCall,
        digits: bytes,
        start: float,
        now: float,
        message: Any,
    ) -> None:
        """Count a response that is already decoded; None if it isn't JSON."""
        caller.last = now
        cause = find_cause(message, digits, may_continue=call.may_continue)
        if cause:
            self.error(cause)
        else:
            caller.answered += 1
            self._count(call, now - start, now)

    def succeed(self, caller: CallerCounts, call: PreparedCall, start: float, now: float) -> None:
        """Count a call that had a result."""
        caller.last = now
        caller.answered += 1
        self._count(call, now - start, now)

    def error(self, cause: str) -> None:
        """Count a call that failed."""
        if cause not in self._errors and len(self._errors) >= _MAX_CAUSES:
            cause = "other"
        self._errors[cause] += 1

    def timeout(self) -> None:
        """Count a call without a response in time."""
        self._timeouts += 1

    def leave_out(self, sent: int, *, due: int = 0) -> None:
        """Take calls back that have no outcome as the turn ends: open ones, and those only due."""
        self.sent -= sent
        self.late -= due
        self.unfinished += sent + due

    def finish(self, now: float) -> BenchTurn:
        """Decode the responses that were kept, and return the turn. Call it once."""
        load_cpu = time.process_time() - self._load_cpu
        target_cpu = self._meter.cpu()
        if target_cpu is not None and self._target_cpu is not None:
            # A process that has ended takes its time with it, unless its parent has waited for it.
            target_cpu = max(target_cpu - self._target_cpu, 0.0)
        else:
            target_cpu = None
        memory = self._meter.memory()
        self._count_noted()
        for kept in self._kept:
            self._judge(kept)
        last = max((caller.last for caller in self._callers), default=0.0)
        end = max(last, min(self.deadline, now))
        end_of_starts = max(min(self.deadline, now) - self.began, _INSTANT)
        return BenchTurn(
            seconds=end - self.began,
            histogram=self._histogram,
            sent=self.sent,
            answered=self._histogram.count,
            rate=sum(
                caller.answered / max(caller.last - self.began, end_of_starts)
                for caller in self._callers
                if caller.answered
            ),
            late=self.late,
            timeouts=self._timeouts,
            errors=self._errors,
            slowest=nlargest(SLOWEST, self._slowest),
            tenths=self._tenths,
            load_cpu=load_cpu,
            target_cpu=target_cpu,
            memory=memory,
            lag=self.lag / self.sent if self.sent else 0.0,
            stray_lines=self.stray_lines,
            drain=self.drain / self.sent if self.sent else 0.0,
            is_cut=self.is_cut,
            unfinished=self.unfinished,
        )

    def _judge(self, kept: _Kept) -> None:
        """Decode a response and count it."""
        caller, call, digits, latency, now, body, is_stream = kept
        cause = find_cause(
            find_response(body, digits, is_stream=is_stream),
            digits,
            may_continue=call.may_continue,
        )
        self._lengths.note(call, len(body), is_result=not cause)
        if cause:
            self.error(cause)
        else:
            caller.answered += 1
            self._count(call, latency, now)

    def _count_noted(self) -> None:
        """Count the results that were noted while the clock ran."""
        for call, start, end in zip(self._calls, self._starts, self._ends, strict=True):
            self._count(call, end - start, end)
        for noted in (self._calls, self._starts, self._ends):
            noted.clear()

    def _count(self, call: PreparedCall, latency: float, now: float) -> None:
        """Count a result."""
        self._histogram.add(latency)
        tenth = int((now - self.began) / self._seconds * TENTHS)
        self._tenths[tenth if tenth < TENTHS else -1] += 1
        if latency > self._slow:
            self._add_slow(latency, call.name)

    def _add_slow(self, latency: float, name: str) -> None:
        if len(self._slowest) < SLOWEST:
            heappush(self._slowest, (latency, name))
        else:
            heapreplace(self._slowest, (latency, name))
        if len(self._slowest) == SLOWEST:
            self._slow = self._slowest[0][0]
