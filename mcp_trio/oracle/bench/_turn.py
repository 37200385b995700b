"""How fast a load calls, and the figures of a measured stretch of time."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from heapq import nlargest
from typing import TYPE_CHECKING, Any, Final, Protocol

from mcp_core import McpTrioError

from ._histogram import Histogram

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ._requests import Work

__all__ = ["SLOWEST", "TENTHS", "BenchTurn", "Pace", "TargetGone", "TargetLoad"]

SLOWEST: Final = 5  # calls whose names are kept
TENTHS: Final = 10
_FORM: Final = 1


@dataclass(frozen=True)
class Pace:
    """How fast a load calls.

    Attributes:
        rate: calls that start each second, even if the target is slow (an open loop). None: each
            caller starts its next call once it has its response (a closed loop).
        concurrency: the callers of a closed loop, and the calls that an open one has open at most.
            Over HTTP each caller has a connection of its own.
        even: whether the starts of an open loop are equally far apart, and not a Poisson process.
        seed: decides the starts and what the callers draw.
    """

    rate: float | None
    concurrency: int
    even: bool = False
    seed: int = 0

    def __post_init__(self) -> None:
        """Check the values."""
        if self.concurrency < 1:
            raise ValueError(f"concurrency must be 1 or more, not {self.concurrency}")
        if self.rate is not None and not 0 < self.rate < 1e6:
            raise ValueError(f"a rate is over 0 and below 1,000,000, not {self.rate}")


@dataclass
class BenchTurn:
    """A measured stretch of time against one target. Turns that follow each other add up.

    Every call is counted once in `sent`, and once in `answered`, `timeouts` or `errors`. Only
    `answered` calls have a latency.

    Attributes:
        seconds: from the first start to the last response, and at least as long as was asked for.
        histogram: latencies. In an open loop they count from the intended start.
        sent: calls, among them those that timed out before a connection was free.
        answered: calls with a response that isn't an error.
        rate: responses a second. In a closed loop the sum of the callers' rates: a caller that
            waits for its last response doesn't lower the rate of the others. In an open loop the
            rate until nine tenths of the responses had come, as the last ones may be stragglers.
        late: calls of an open loop that found no free connection at their intended start. They are
            sent later, and are counted everywhere.
        timeouts: calls without a response in time.
        errors: how many calls failed by each cause: "HTTP 503", "-32602" (a JSON-RPC code),
            "isError", "wrong id", "no JSON", "no response", "closed", "too large".
        slowest: the slowest calls as latency and name, slowest first, `SLOWEST` at most.
        tenths: responses in each tenth of the time that was asked for; later ones are in the last.
        load_cpu: processor time of this process, in seconds.
        target_cpu: processor time of the target's processes; None if the system doesn't say.
        memory: the resident memory of these at the end, in bytes; None likewise.
        lag: the mean seconds that the load itself was late in starting calls of an open loop. Up to
            2 ms of a call's lag, a timer's rounding, isn't part of its latency; the rest is.
        stray_lines: lines of a program's stdout that are no messages, such as a log's. The calls
            that were open stay open.
        drain: the mean seconds that a caller waited after a response, before it could call again,
            for the end of the event stream that had it.
        is_cut: whether Ctrl+C ended it before its time.
        unfinished: calls that were open or due as it ended, without an outcome. They are counted
            nowhere else.
    """

    seconds: float = 0.0
    histogram: Histogram = field(default_factory=Histogram)
    sent: int = 0
    answered: int = 0
    rate: float = 0.0
    late: int = 0
    timeouts: int = 0
    errors: Counter[str] = field(default_factory=Counter)
    slowest: list[tuple[float, str]] = field(default_factory=list)
    tenths: list[int] = field(default_factory=lambda: [0] * TENTHS)
    load_cpu: float = 0.0
    target_cpu: float | None = None
    memory: int | None = None
    lag: float = 0.0
    stray_lines: int = 0
    drain: float = 0.0
    is_cut: bool = False
    unfinished: int = 0

    @property
    def failed(self) -> int:
        """The calls that timed out or failed."""
        return self.timeouts + self.errors.total()

    def __add__(self, later: BenchTurn) -> BenchTurn:
        """Return both turns as one; they measured one target, one after the other."""
        seconds = self.seconds + later.seconds
        both = self._count_both(later)
        both.seconds = seconds
        both.rate = _mean(self.rate, self.seconds, later.rate, later.seconds)
        if None not in (self.target_cpu, later.target_cpu):
            both.target_cpu = (self.target_cpu or 0.0) + (later.target_cpu or 0.0)
        return both

    def beside(self, other: BenchTurn) -> BenchTurn:
        """Return both turns as one; they measured one target at the same time.

        `load_cpu` is then the sum for both processes, which have a core each at most.
        """
        both = self._count_both(other)
        both.seconds = max(self.seconds, other.seconds)
        both.rate = self.rate + other.rate
        # Each has measured all processes of the target.
        both.target_cpu = max(
            (turn.target_cpu for turn in (self, other) if turn.target_cpu is not None),
            default=None,
        )
        return both

    def _count_both(self, other: BenchTurn) -> BenchTurn:
        memory = [turn.memory for turn in (self, other) if turn.memory is not None]
        return BenchTurn(
            histogram=self.histogram + other.histogram,
            sent=self.sent + other.sent,
            answered=self.answered + other.answered,
            late=self.late + other.late,
            timeouts=self.timeouts + other.timeouts,
            errors=self.errors + other.errors,
            slowest=nlargest(SLOWEST, [*self.slowest, *other.slowest]),
            tenths=[a + b for a, b in zip(self.tenths, other.tenths, strict=True)],
            load_cpu=self.load_cpu + other.load_cpu,
            memory=max(memory, default=None),
            lag=_mean(self.lag, self.sent, other.lag, other.sent),
            stray_lines=self.stray_lines + other.stray_lines,
            drain=_mean(self.drain, self.sent, other.drain, other.sent),
            is_cut=self.is_cut or other.is_cut,
            unfinished=self.unfinished + other.unfinished,
        )

    def to_json(self) -> dict[str, Any]:
        """Return it as JSON values, in seconds and bytes; the histogram is in microseconds."""
        return {
            "form": _FORM,
            "seconds": self.seconds,
            "histogram": self.histogram.to_json(),
            "sent": self.sent,
            "answered": self.answered,
            "rate": self.rate,
            "late": self.late,
            "timeouts": self.timeouts,
            "errors": dict(self.errors),
            "slowest": [[latency, name] for latency, name in self.slowest],
            "tenths": self.tenths,
            "load_cpu": self.load_cpu,
            "target_cpu": self.target_cpu,
            "memory": self.memory,
            "lag": self.lag,
            "stray_lines": self.stray_lines,
            "drain": self.drain,
            "is_cut": self.is_cut,
            "unfinished": self.unfinished,
        }

    @classmethod
    def from_json(cls, form: Mapping[str, Any]) -> BenchTurn:
        """Return the turn of a JSON form.

        Raises:
            ValueError: it isn't the form that `to_json` returns.
        """
        members = dict(form)
        try:
            if members.pop("form") != _FORM:
                raise ValueError(f"the form is {form['form']!r}, and {_FORM} is expected")
            members["histogram"] = Histogram.from_json(members["histogram"])
            members["errors"] = Counter(members["errors"])
            members["slowest"] = [(latency, name) for latency, name in members["slowest"]]
            return cls(**members)
        except (KeyError, TypeError) as exc:
            raise ValueError(f"this isn't a turn: {exc!r}") from exc


def _mean(a: float, a_weight: float, b: float, b_weight: float) -> float:
    weight = a_weight + b_weight
    return (a * a_weight + b * b_weight) / weight if weight else 0.0


class TargetGone(McpTrioError):
    """The target ended, or can no longer be reached.

    Attributes:
        status: the exit status as in `subprocess`, None if it isn't known.
        stderr: the last lines of its stderr, escaped for a terminal.
        turn: what the turn had measured until then; None outside a turn.
    """

    def __init__(
        self,
        reason: str,
        *,
        status: int | None = None,
        stderr: tuple[str, ...] = (),
        turn: BenchTurn | None = None,
    ) -> None:
        super().__init__(reason)
        self.status = status
        self.stderr = stderr
        self.turn = turn


class TargetLoad(Protocol):
    """A target that is connected and warm.

    Attributes:
        revision: the revision that it speaks.
        server: its name and version, "" if it doesn't say.
        protocol: the protocol below MCP: "HTTP/1.1", "HTTP/2", "WebSocket", or "" for pipes.
        capabilities: what it declares.
    """

    revision: str
    server: str
    protocol: str
    capabilities: Mapping[str, Any]

    async def turn(self, work: Work, pace: Pace, seconds: float) -> BenchTurn:
        """Call for `seconds`, wait for the last responses, and return what was measured.

        Further connections are opened before the clock starts, and stay open for the next turn.

        Raises:
            TargetGone: the target ended, or its address refuses connections.
            ConnectFailed: a further connection got no session.
        """

    def cut(self) -> bool:
        """End the turn now: `turn` returns what was measured, marked as cut.

        Return False if no call is being measured, as while connections are opened.
        """

    async def ask(self, method: str, params: dict[str, Any] | None = None) -> dict[str, Any]:
        """Send one request outside a turn, and return the decoded response, maybe an error.

        Raises:
            TargetGone: as `turn`.
            ConnectFailed: there is no response that is JSON, or none in time.
        """
