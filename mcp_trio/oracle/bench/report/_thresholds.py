"""Thresholds such as `p99<50ms`: what a measurement must show for a run to pass.

A call that failed or timed out has no latency, and a percentile that left it out would praise a
server that hangs, or that refuses at once. So for a threshold it counts as longer than all others.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from math import ceil, inf
from operator import ge, gt, le, lt
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Callable

    from mcp_trio.oracle.bench._turn import BenchTurn

__all__ = ["Threshold", "parse_time", "percentile_of"]

_OPERATORS: Final[dict[str, Callable[[float, float], bool]]] = {
    "<": lt,
    "<=": le,
    ">": gt,
    ">=": ge,
}
_TIMES: Final = {"us": 1e-6, "µs": 1e-6, "ms": 1e-3, "s": 1.0}
_SIZES: Final = {"kB": 1e3, "MB": 1e6, "GB": 1e9}
_SHARE: Final = "%"
_PER_SECOND: Final = "/s"
_COUNTS: Final = ("errors", "timeouts", "late", "sent", "answered")
_NAMES: Final = ("p50", "p99", "p99.9", "max", "mean", *_COUNTS, "rate", "cpu", "memory")
_FORM: Final = re.compile(
    r"\s*(?P<name>[A-Za-z][\w.]*)\s*(?P<operator><=|>=|<|>)\s*(?P<number>\d+(?:\.\d+)?)"
    r"\s*(?P<unit>%|/s|[A-Za-zµ]*)\s*",
    re.ASCII,
)
_PERCENTILE: Final = re.compile(r"p(\d+(?:\.\d+)?)", re.ASCII)
_TIME: Final = re.compile(r"\s*(\d+(?:\.\d+)?)\s*([a-zµ]+)\s*", re.ASCII)
_EXAMPLE: Final = "'p99<50ms'"


@dataclass(frozen=True)
class Threshold:
    """A bound for one value of a measurement.

    Attributes:
        text: as the user wrote it.
        name: the value: a percentile such as `p99`, or one of `errors`, `rate` and so on.
        operator: `<`, `<=`, `>` or `>=`.
        limit: in seconds, bytes, calls a second, or calls.
        is_share: the limit is a share of all calls, from 0 to 1.
    """

    text: str
    name: str
    operator: str
    limit: float
    is_share: bool

    @classmethod
    def parse(cls, text: str) -> Threshold:
        """Return the threshold that a text such as `p99<50ms` or `errors<0.1%` writes.

        Raises:
            ValueError: it isn't one. The message says what to write.
        """
        form = _FORM.fullmatch(text)
        if form is None:
            if re.fullmatch(r"[\w.]+", text):
                raise ValueError(
                    f"{text} has no limit. A shell takes < and > for files: put the threshold in"
                    f" quotes, such as {_EXAMPLE}"
                )
            raise ValueError(f"{text} is not a threshold such as {_EXAMPLE} or 'errors<0.1%'")
        name, unit = form["name"], form["unit"]
        number = float(form["number"])
        percentile = _PERCENTILE.fullmatch(name)
        if percentile is None and name not in _NAMES:
            raise ValueError(
                f"there is no {name} to compare: the names are {', '.join(_NAMES)}, and other"
                " percentiles such as p75"
            )
        if percentile is not None and float(percentile[1]) > 100:
            raise ValueError(f"{name} is not a percentile: they end at p100")
        is_share = unit == _SHARE and name in _COUNTS[:3]
        if is_share:
            if number > 100:
                raise ValueError(f"{text}: a share is at most 100%")
            factor = 0.01
        else:
            factor = _unit_factor(name, unit, form["operator"])
        return cls(text.strip(), name, form["operator"], number * factor, is_share)

    def value(self, turn: BenchTurn) -> float:
        """Return the measured value: in seconds, bytes, calls a second, calls, or as a share.

        A value that wasn't measured is NaN, and meets no threshold.
        """
        value = _value_of(self.name, turn)
        if self.is_share:
            return value / turn.sent if turn.sent else float("nan")
        return value

    def is_met(self, turn: BenchTurn) -> bool:
        """Return True if the measurement is within the bound."""
        return _OPERATORS[self.operator](self.value(turn), self.limit)


def parse_time(text: str) -> float:
    """Return the seconds that a text such as `50ms` writes.

    Raises:
        ValueError: it isn't a time above 0 with a unit.
    """
    form = _TIME.fullmatch(text)
    if form is None or form[2] not in _TIMES or not float(form[1]):
        raise ValueError(f"{text} is not a time above 0 with a unit, such as 50ms, 200us or 2s")
    return float(form[1]) * _TIMES[form[2]]


def percentile_of(turn: BenchTurn, percent: float, *, missing: int) -> float:
    """Return a percentile in seconds, where `missing` calls took longer than all others."""
    count = turn.histogram.count
    if not count:
        return inf if missing else float("nan")
    rank = ceil(percent * (count + missing) / 100 - 1e-9)
    if rank > count:
        return inf
    return turn.histogram.percentile(100 * rank / count if missing else percent)


def _unit_factor(name: str, unit: str, operator: str) -> float:
    """Return by what a number with this unit is multiplied.

    Raises:
        ValueError: the value has another unit.
    """
    if name == "rate":
        units, example = {"": 1.0, _PER_SECOND: 1.0}, "1000"
    elif name == "memory":
        units, example = _SIZES, "100MB"
    elif name in _COUNTS:
        units, example = {"": 1.0}, ("1%" if name in _COUNTS[:3] else "1000")
    else:
        units, example = _TIMES, "50ms"
    if unit not in units:
        raise ValueError(
            f"{name} {'has no unit here' if not unit else f'is not in {unit}'}: write"
            f" '{name}{operator}{example}'"
        )
    return units[unit]


def _value_of(name: str, turn: BenchTurn) -> float:
    if (percentile := _PERCENTILE.fullmatch(name)) is not None:
        return percentile_of(turn, float(percentile[1]), missing=turn.failed)
    match name:
        case "max":
            return percentile_of(turn, 100, missing=turn.failed)
        case "mean":
            return turn.histogram.mean if turn.histogram.count else float("nan")
        case "errors":
            return turn.failed
        case "timeouts" | "late" | "sent" | "answered":
            return float(getattr(turn, name))
        case "rate":
            return turn.rate
        case "memory":
            return float("nan") if turn.memory is None else turn.memory
        case _:
            cpu, calls = turn.target_cpu, turn.sent
            return float("nan") if cpu is None or not calls else cpu / calls
