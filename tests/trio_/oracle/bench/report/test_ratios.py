"""Ratios of two targets, and their intervals."""

from __future__ import annotations

from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mcp_trio.oracle.bench._histogram import Histogram
from mcp_trio.oracle.bench._turn import BenchTurn
from mcp_trio.oracle.bench.report._ratios import latency_ratio, rate_ratio


def rounds(median: float, seed: int, *, number: int = 10, noise: float = 0.1) -> list[BenchTurn]:
    """Return turns of 200 calls. Each has a median of its own, and calls around it."""
    random = Random(seed)
    found = []
    for _ in range(number):
        middle = median * random.uniform(1 - noise, 1 + noise)
        latencies = [middle * random.uniform(0.8, 1.2) for _ in range(200)]
        found.append(BenchTurn(seconds=1.0, histogram=Histogram(latencies), rate=1 / middle))
    return found


@pytest.mark.parametrize("seed", range(5))
def test_two_runs_of_a_pair_agree_within_a_tenth(seed: int) -> None:
    """The second run has other calls and other noise, with the same two targets."""
    found = [
        latency_ratio(rounds(0.001, 4 * seed + run), rounds(0.003, 4 * seed + run + 2), 50)
        for run in (0, 1)
    ]
    first, second = [each.value for each in found if each is not None]
    assert first == pytest.approx(second, rel=0.1)
    assert first == pytest.approx(3, rel=0.15)


def test_interval_holds_the_ratio_and_grows_with_the_noise() -> None:
    quiet = latency_ratio(rounds(0.001, 1, noise=0.01), rounds(0.003, 2, noise=0.01))
    noisy = latency_ratio(rounds(0.001, 1, noise=0.5), rounds(0.003, 2, noise=0.5))
    assert quiet is not None
    assert noisy is not None
    for each in quiet, noisy:
        assert each.low <= each.value <= each.high
    assert noisy.high - noisy.low > 5 * (quiet.high - quiet.low)


def test_slow_second_that_both_have_leaves_the_interval_narrow() -> None:
    """The rounds are drawn in pairs: a machine that is ten times slower hits both targets."""
    first, second = rounds(0.001, 1, noise=0.01), rounds(0.003, 2, noise=0.01)
    for turns, median in (first, 0.01), (second, 0.03):
        turns[3:7] = rounds(median, 3, number=4, noise=0.01)
    found = latency_ratio(first, second)
    assert found is not None
    assert found.low > 2.8
    assert found.high < 3.2


def test_ratio_of_rates_is_how_many_times_more_the_first_answers() -> None:
    found = rate_ratio(rounds(0.001, 1, noise=0.05), rounds(0.002, 2, noise=0.05))
    assert found is not None
    assert found.value == pytest.approx(2, rel=0.05)


def test_ratio_with_few_rounds_has_no_interval() -> None:
    found = latency_ratio(rounds(0.001, 1, number=2), rounds(0.002, 2, number=9))
    assert found is not None
    assert found.low == found.value == found.high


@pytest.mark.parametrize("empty", [[], [BenchTurn(seconds=1.0)] * 5])
def test_ratio_without_latencies_is_none(empty: list[BenchTurn]) -> None:
    some = rounds(0.001, 1)
    for first, second in (empty, some), (some, empty):
        assert latency_ratio(first, second) is None
        assert rate_ratio(first, second) is None


@settings(max_examples=10)
@given(st.lists(st.lists(st.floats(1e-5, 1e-1), max_size=30), min_size=1, max_size=5))
def test_ratio_of_a_target_with_itself_is_one(latencies: list[list[float]]) -> None:
    turns = [BenchTurn(seconds=1.0, histogram=Histogram(each), rate=1.0) for each in latencies]
    found = latency_ratio(turns, turns)
    assert found is None or found == pytest.approx((1, 1, 1))


def test_percentile_lies_within_its_bucket_by_its_rank() -> None:
    """The hundredth one of two hundred calls is the last one of its bucket, and so at its end."""
    first = Histogram([0.001] * 100)
    second = Histogram([0.0001] * 100 + [0.5] * 100)
    [bucket] = first.buckets()
    found = latency_ratio([BenchTurn(histogram=first)], [BenchTurn(histogram=second)])
    assert found is not None
    assert found.value == pytest.approx(second.buckets()[0].high / (sum(bucket[:2]) / 2))
    third = Histogram([0.0001] * 300 + [0.5] * 100)
    found = latency_ratio([BenchTurn(histogram=first)], [BenchTurn(histogram=third)])
    low, high, _ = third.buckets()[0]
    assert found is not None
    assert found.value == pytest.approx((low + (high - low) * 2 / 3) / (sum(bucket[:2]) / 2))
