"""Counts what happens to the calls of a turn.

Only a result has a latency. Whether a response is one is seen without decoding it, if possible:

1. Most servers give equal responses to equal calls. One is decoded; each further one that has the
   same bytes around its own call's id is a result.
2. Of other responses the first one of each length to a call is decoded at once, and so is a further
   one without the call's id, or with a member that errors have. Of the rest one in a hundred is
   decoded, once the clock has stopped. All responses of a length that an error has had are decoded.
"""

from __future__ import annotations

import re
import time
from bisect import bisect_left, bisect_right
from collections import Counter
from heapq import heappush, heapreplace, nlargest
from itertools import pairwise
from math import ceil
from operator import sub
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import trio

from ._histogram import Histogram
from ._turn import SLOWEST, TENTHS, BenchTurn
from ._verdicts import Body, find_cause, find_response

if TYPE_CHECKING:
    from ._process import Meter
    from ._requests import PreparedCall

__all__ = ["CallerCounts", "KnownResponses", "Tally"]

_SAMPLED: Final = 100  # one response in so many is decoded
_MAX_LENGTHS: Final = 4096  # lengths that are remembered
_MAX_KNOWN_BYTES: Final = 16 * 1024 * 1024  # bytes of results that are remembered
# Responses that are kept until the clock has stopped, and their bytes. More are decoded at once.
_MAX_KEPT: Final = 2000
_MAX_KEPT_BYTES: Final = 16 * 1024 * 1024
_MAX_NOTED: Final = 200_000  # results that are noted until they are counted, 20 MB
_INSTANT: Final = 1e-6  # seconds; a turn isn't shorter
_MOST: Final = 0.9  # of an open loop's responses show its rate; the last ones may be stragglers
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


class KnownResponses:
    """The shapes of decoded responses, over all turns of a load.

    Calls are keys by their identity, and are kept alive therefore.

    Attributes:
        are_results: for a call and a length, whether all decoded responses were results.
        around_id: for a call, what stands before and after the id in a decoded result.
    """

    def __init__(self) -> None:
        self.are_results: dict[tuple[int, int], bool] = {}
        self.around_id: dict[int, tuple[bytes, bytes]] = {}
        self._calls: dict[int, PreparedCall] = {}
        self._bytes = 0  # in `around_id`

    def note(self, call: PreparedCall, length: int, *, is_result: bool) -> None:
        """Remember whether a response of this length was a result. One error is never forgotten."""
        if len(self.are_results) >= _MAX_LENGTHS:
            self._forget()
        self._calls[id(call)] = call
        key = id(call), length
        self.are_results[key] = is_result and self.are_results.get(key, True)

    def keep(self, call: PreparedCall, digits: bytes, body: bytes) -> None:
        """Remember the bytes of a result, unless the id's digits stand in it twice."""
        before, _, after = body.partition(digits)
        size = len(before) + len(after)
        if digits in after or size > _MAX_KNOWN_BYTES:
            return
        self._bytes += size - sum(map(len, self.around_id.get(id(call), ())))
        if self._bytes > _MAX_KNOWN_BYTES:
            self._forget()
            self._bytes = size
        self._calls[id(call)] = call
        self.around_id[id(call)] = before, after

    def _forget(self) -> None:
        for known in (self.are_results, self.around_id, self._calls):
            known.clear()
        self._bytes = 0


class _Kept(NamedTuple):
    """A response that is decoded later, and when it came."""

    caller: CallerCounts
    call: PreparedCall
    digits: bytes
    start: float
    now: float
    body: bytes
    is_stream: bool


class Tally:
    """The counts of one turn, which begins now.

    Attributes:
        began, deadline: when calls start, first and last, on trio's clock.
        is_open: whether calls start at a rate, and not when the one before has its response.
        sent: calls.
        late: calls of an open loop that found no free caller.
        lag: seconds that the load itself was late, of all calls together.
        stray_lines: lines that are no messages.
        drain: seconds that callers waited for the end of event streams, of all calls together.
        is_cut: whether Ctrl+C ends the turn before its time.
        unfinished: calls that were open or due as it ended.

    Args:
        seconds: how long the turn is.
        known: what the load knows about responses.
        meter: measures the target's processes.
    """

    def __init__(self, seconds: float, known: KnownResponses, meter: Meter) -> None:
        self._meter = meter
        self._target_cpu = meter.cpu()  # which may take a while
        self._load_cpu = time.process_time()
        self.began = trio.current_time()
        self.deadline = self.began + seconds
        self.is_open = False
        self.sent = 0
        self.late = 0
        self.lag = 0.0
        self.stray_lines = 0
        self.drain = 0.0
        self.is_cut = False
        self.unfinished = 0
        self._seconds = max(seconds, _INSTANT)
        self._known = known
        self._are_results = known.are_results
        self._around_id = known.around_id
        self._histogram = Histogram()
        self._tenths = [0] * TENTHS
        self._errors: Counter[str] = Counter()
        self._timeouts = 0
        self._callers: list[CallerCounts] = []
        self._slowest: list[tuple[float, str]] = []
        self._slow = 0.0
        self._until_sample = _SAMPLED
        self._overtime: list[float] = []  # when responses came after the deadline
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
        around_id = None if is_stream else self._around_id.get(id(call))
        if around_id is not None and body == digits.join(around_id):
            self._note(caller, call, start, now)
            return
        looks_right = (
            self._are_results.get((id(call), len(body)))
            and digits in body
            and not (_ERROR_END in body and _ERROR.search(body))
        )
        if looks_right:
            self._until_sample -= 1
            if self._until_sample:
                self._note(caller, call, start, now)
                return
            self._until_sample = _SAMPLED
        kept = _Kept(caller, call, digits, start, now, bytes(body), is_stream)
        size = self._kept_bytes + len(body)
        if looks_right and len(self._kept) < _MAX_KEPT and size < _MAX_KEPT_BYTES:
            self._kept_bytes = size
            self._kept.append(kept)
        else:
            self._judge(kept)

    def answer_known(self, calls: list[PreparedCall], starts: list[float], now: float) -> None:
        """Count responses that came at the same time, and have the bytes of known results.

        The caller adds them to its callers' counts.
        """
        self._calls += calls
        self._starts += starts
        self._ends += [now] * len(starts)
        if len(self._ends) > _MAX_NOTED:
            self._count_noted()

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
            self._note(caller, call, start, now)

    def succeed(self, caller: CallerCounts, call: PreparedCall, start: float, now: float) -> None:
        """Count a call that had a result."""
        caller.last = now
        self._note(caller, call, start, now)

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
        for kept in self._kept:
            self._judge(kept)
        self._count_noted()
        last = max((caller.last for caller in self._callers), default=0.0)
        end = max(last, min(self.deadline, now))
        end_of_starts = max(min(self.deadline, now) - self.began, _INSTANT)
        find_rate = self._open_rate if self.is_open else self._closed_rate
        return BenchTurn(
            seconds=end - self.began,
            histogram=self._histogram,
            sent=self.sent,
            answered=self._histogram.count,
            rate=find_rate(end_of_starts),
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

    def _closed_rate(self, end_of_starts: float) -> float:
        """Return the sum of the callers' rates.

        Each caller calls until it has its last response.
        """
        return sum(
            caller.answered / max(caller.last - self.began, end_of_starts)
            for caller in self._callers
            if caller.answered
        )

    def _open_rate(self, end_of_starts: float) -> float:
        """Return how many responses a second there were until most had come.

        A caller of an open loop is idle while no call is due, so its own rate says nothing. The
        responses begin and end later than the calls do, by a latency.
        """
        answered = self._histogram.count
        most = ceil(_MOST * answered)
        late = most - (answered - len(self._overtime))
        if late <= 0:
            return answered / end_of_starts
        end = sorted(self._overtime)[late - 1] - self.began
        if most == 1:
            return answered / end
        since_first = max(end - self._histogram.shortest, _INSTANT)
        return min((most - 1) / since_first, answered / end_of_starts)

    def _judge(self, kept: _Kept) -> None:
        """Decode a response and count it."""
        caller, call, digits, start, now, body, is_stream = kept
        cause = find_cause(
            find_response(body, digits, is_stream=is_stream),
            digits,
            may_continue=call.may_continue,
        )
        self._known.note(call, len(body), is_result=not cause)
        if cause:
            self.error(cause)
            return
        if not is_stream:
            self._known.keep(call, digits, body)
        self._note(caller, call, start, now)

    def _note(self, caller: CallerCounts, call: PreparedCall, start: float, now: float) -> None:
        """Note a result, which is counted later."""
        caller.answered += 1
        self._note_call(call)
        self._note_start(start)
        self._note_end(now)
        if len(self._ends) > _MAX_NOTED:
            self._count_noted()

    def _count_noted(self) -> None:
        """Count the results that were noted."""
        ends = self._ends
        latencies = list(map(sub, ends, self._starts))
        self._histogram.add_all(latencies)
        for latency, call in zip(latencies, self._calls, strict=True):
            if latency > self._slow:
                self._add_slow(latency, call.name)
        ends.sort()
        steps = [self.began + self._seconds * n / TENTHS for n in range(1, TENTHS)]
        places = [0, *(bisect_left(ends, step) for step in steps), len(ends)]
        for n, (begin, end) in enumerate(pairwise(places)):
            self._tenths[n] += end - begin
        self._overtime += ends[bisect_right(ends, self.deadline) :]
        for noted in (self._calls, self._starts, ends):
            noted.clear()

    def _add_slow(self, latency: float, name: str) -> None:
        if len(self._slowest) < SLOWEST:
            heappush(self._slowest, (latency, name))
        else:
            heapreplace(self._slowest, (latency, name))
        if len(self._slowest) == SLOWEST:
            self._slow = self._slowest[0][0]
