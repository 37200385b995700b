"""Thresholds: their grammar, and what they judge."""

from __future__ import annotations

import math
from collections import Counter
from contextlib import suppress
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcp_trio.oracle.bench._histogram import Histogram
from mcp_trio.oracle.bench._turn import BenchTurn
from mcp_trio.oracle.bench.report._thresholds import Threshold, parse_time, percentile_of

if TYPE_CHECKING:
    from collections.abc import Sequence

LIMITS = {
    "p99<50ms": ("p99", "<", 0.05, False),
    "p99.9 <= 200us": ("p99.9", "<=", 0.0002, False),
    "max<1.5s": ("max", "<", 1.5, False),
    "errors<0.1%": ("errors", "<", 0.001, True),
    "timeouts<=0": ("timeouts", "<=", 0, False),
    "late<1%": ("late", "<", 0.01, True),
    "rate>1000": ("rate", ">", 1000, False),
    "rate>=1000/s": ("rate", ">=", 1000, False),
    "cpu<80us": ("cpu", "<", 80e-6, False),
    "memory<100MB": ("memory", "<", 100e6, False),
    "memory<5kB": ("memory", "<", 5e3, False),
    "memory>2GB": ("memory", ">", 2e9, False),
    "p100<80µs": ("p100", "<", 80e-6, False),
    "mean<1s": ("mean", "<", 1, False),
    "errors<100%": ("errors", "<", 1, True),
    "sent>5": ("sent", ">", 5, False),
}
WRONG = {
    "p99": "p99 has no limit. A shell takes < and > for files: put the threshold in quotes",
    "p99=50ms": "p99=50ms is not a threshold such as 'p99<50ms' or 'errors<0.1%'",
    "p99<": "is not a threshold such as",
    "p99<fast": "is not a threshold such as",
    "p99<-1ms": "is not a threshold such as",
    "p99<50": "p99 has no unit here: write 'p99<50ms'",
    "p99<50%": "p99 is not in %: write 'p99<50ms'",
    "p100.1<1ms": "p100.1 is not a percentile: they end at p100",
    "latency<1ms": "there is no latency to compare: the names are p50, p99,",
    "errors<1ms": "errors is not in ms: write 'errors<1%'",
    "errors<101%": "a share is at most 100%",
    "late<1ms": "late is not in ms: write 'late<1%'",
    "answered<1ms": "answered is not in ms: write 'answered<1000'",
    "sent<1%": "sent is not in %: write 'sent<1000'",
    "rate>1000%": "rate is not in %: write 'rate>1000'",
    "memory<5": "memory has no unit here: write 'memory<100MB'",
    "": "is not a threshold such as",
}
# What a run of 1,000 calls showed: 980 take 1 to 10 ms, 10 fail, 10 time out.
MIXED = BenchTurn(
    seconds=10.0,
    histogram=Histogram([0.001] * 490 + [0.010] * 490),
    sent=1000,
    answered=980,
    rate=99.0,
    late=20,
    timeouts=10,
    errors=Counter({"HTTP 503": 10}),
    target_cpu=0.05,
    memory=50_000_000,
)
VERDICTS = {
    "p99<50ms": False,  # 1 % of the calls with an outcome in time or not took longer than any
    "p90<50ms": True,
    "p98<11ms": True,
    "p98.5<50ms": False,  # with the calls that timed out alone it would be met
    "p50<1.1ms": False,
    "max<1s": False,  # the calls that failed
    "errors<2.1%": True,
    "errors<2%": False,
    "errors<=20": True,
    "timeouts<1%": False,
    "late<=2%": True,
    "late<2%": False,
    "mean<5.6ms": True,
    "mean<5.4ms": False,
    "sent<1000": False,
    "sent<1001": True,
    "rate>98": True,
    "rate>99": False,
    "cpu<51us": True,
    "memory<50MB": False,
    "answered>=980": True,
}


@pytest.mark.parametrize(("text", "parts"), LIMITS.items())
def test_threshold_is_parsed(text: str, parts: tuple[str, str, float, bool]) -> None:
    found = Threshold.parse(text)
    assert (found.name, found.operator, found.is_share) == (parts[0], parts[1], parts[3])
    assert found.limit == pytest.approx(parts[2], rel=1e-12)


@pytest.mark.parametrize(("text", "problem"), WRONG.items())
def test_threshold_that_is_wrong_names_the_cure(text: str, problem: str) -> None:
    with pytest.raises(ValueError, match=r"\S") as caught:
        Threshold.parse(text)
    assert problem in str(caught.value)


@given(st.text(st.sampled_from("p9.<>=%msu/1 erolat"), max_size=12))
def test_threshold_of_any_text_is_parsed_or_refused(text: str) -> None:
    with suppress(ValueError):
        Threshold.parse(text).is_met(MIXED)


@pytest.mark.parametrize(("text", "is_met"), VERDICTS.items())
def test_threshold_judges_a_measurement(text: str, is_met: bool) -> None:
    assert Threshold.parse(text).is_met(MIXED) == is_met


@pytest.mark.parametrize("text", LIMITS)
def test_threshold_without_a_measurement_is_met_only_by_counts(text: str) -> None:
    """A target that was never called has no latency below a limit, and no share of errors."""
    is_met = Threshold.parse(text).is_met(BenchTurn())
    assert is_met == (text == "timeouts<=0")


@pytest.mark.parametrize("turn", [BenchTurn(sent=5), BenchTurn(target_cpu=0.1)])
def test_cpu_of_no_call_or_of_an_unknown_program_meets_no_threshold(turn: BenchTurn) -> None:
    assert not Threshold.parse("cpu<80us").is_met(turn)
    assert not Threshold.parse("cpu>0us").is_met(turn)


@given(
    st.lists(st.floats(1e-5, 10), min_size=1, max_size=50),
    st.integers(0, 20),
    st.sampled_from([1.0, 50.0, 90.0, 99.0, 100.0]),
)
def test_percentile_with_missing_calls_agrees_with_sorted_list(
    latencies: Sequence[float], missing: int, percent: float
) -> None:
    turn = BenchTurn(histogram=Histogram(latencies))
    ranked = sorted([*latencies, *[float("inf")] * missing])
    exact = ranked[max(1, -(-len(ranked) * int(percent) // 100)) - 1]
    assert percentile_of(turn, percent, missing=missing) == pytest.approx(exact, rel=0.03)


@pytest.mark.parametrize("percent", [0.0, 50.0, 100.0])
def test_percentile_without_latencies_is_longer_than_all_or_nothing(percent: float) -> None:
    assert percentile_of(BenchTurn(), percent, missing=3) == math.inf
    assert math.isnan(percentile_of(BenchTurn(), percent, missing=0))


@pytest.mark.parametrize(("short", "median"), [(149, 0.009), (150, 0.001)])
def test_percentile_of_many_calls_is_exact(short: int, median: float) -> None:
    turn = BenchTurn(histogram=Histogram([0.001] * short + [0.009] * (200 - short)))
    assert percentile_of(turn, 50, missing=100) == pytest.approx(median, rel=0.03)


def test_percentile_of_all_calls_is_that_of_the_histogram() -> None:
    """The shortest latency and the longest one are exact."""
    turn = BenchTurn(histogram=Histogram([0.00123, 0.002, 0.00456]))
    assert percentile_of(turn, 0, missing=0) == 0.00123
    assert percentile_of(turn, 100, missing=0) == 0.00456


def test_time_with_unit_is_parsed() -> None:
    found = [parse_time(each) for each in ("50ms", "1.5 s", "200us")]
    assert found == pytest.approx([0.05, 1.5, 0.0002])


@pytest.mark.parametrize("text", ["50", "ms", "0ms", "-1ms", "5min", ""])
def test_time_that_is_none_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="is not a time above 0 with a unit"):
        parse_time(text)
