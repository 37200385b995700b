"""Percentiles of a histogram, beside those of a sorted list."""

from __future__ import annotations

import json
import math

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from mcp_trio.oracle.bench._histogram import SPECTRUM, Histogram

LATENCIES = st.lists(st.floats(1e-6, 3600.0), min_size=1, max_size=60)
FEW = settings(max_examples=25)


@FEW
@given(LATENCIES, st.sampled_from(SPECTRUM) | st.floats(0, 100))
@example([1e-6], 50.0)
@example([3600.0, 3600.0], 99.9)
@example([0.001] * 999 + [1.0], 99.9)
def test_histogram_percentile_differs_from_sorted_list_by_3_percent_at_most(
    latencies: list[float], percent: float
) -> None:
    rank = max(math.ceil(percent * len(latencies) / 100 - 1e-9), 1)
    exact = sorted(latencies)[rank - 1]
    assert Histogram(latencies).percentile(percent) == pytest.approx(exact, rel=0.03)


@FEW
@given(LATENCIES, LATENCIES)
def test_histogram_sum_has_latencies_of_both(some: list[float], others: list[float]) -> None:
    both, whole = Histogram(some) + Histogram(others), Histogram(some + others)
    assert both.buckets() == whole.buckets()
    assert both.spectrum() == whole.spectrum()
    assert both.mean == pytest.approx(whole.mean)


@FEW
@given(LATENCIES)
def test_histogram_json_form_gives_the_same_histogram(latencies: list[float]) -> None:
    histogram = Histogram(latencies)
    form = json.loads(json.dumps(histogram.to_json()))
    found = Histogram.from_json(form)
    assert found.buckets() == histogram.buckets()
    assert sum(count for _, count in form["buckets"]) == len(latencies)
    for percent, latency in histogram.spectrum().items():
        assert found.percentile(percent) == pytest.approx(latency, rel=1e-9)


@FEW
@given(LATENCIES, st.integers(1, 40))
def test_histogram_bars_count_all_latencies(latencies: list[float], number: int) -> None:
    bars = Histogram(latencies).bars(number)
    assert len(bars) == number
    assert sum(bars) == len(latencies)
    assert bars[0] > 0


@pytest.mark.parametrize(
    ("latencies", "bars"),
    [
        ([1e-6], [1, 0, 0]),
        ([1e-6, 1e-6, 1e-3], [2, 0, 1]),
        ([1e-4, 1e-3, 1e-2, 1e-2], [1, 1, 2]),
    ],
)
def test_histogram_bars_have_equal_steps_from_the_shortest_to_the_longest(
    latencies: list[float], bars: list[int]
) -> None:
    assert Histogram(latencies).bars(3) == bars


def test_histogram_empty_gives_zeros() -> None:
    histogram = Histogram()
    assert set(histogram.spectrum().values()) == {0.0}
    assert histogram.mean == histogram.shortest == 0.0
    assert histogram.bars(3) == [0, 0, 0]
    assert Histogram.from_json(histogram.to_json()) == histogram


def test_histogram_latency_out_of_range_counts_as_the_limit() -> None:
    histogram = Histogram([0.0, -1.0, 1e9])
    assert (histogram.shortest, histogram.longest, histogram.count) == (1e-6, 3600.0, 3)


@pytest.mark.parametrize("percent", [-1, 100.1, math.nan])
def test_histogram_percentile_out_of_range_raises(percent: float) -> None:
    with pytest.raises(ValueError, match="from 0 to 100"):
        Histogram([1.0]).percentile(percent)


@pytest.mark.parametrize(
    ("member", "value"),
    [
        ("unit", "ms"),
        ("count", 2),
        ("buckets", None),
        ("buckets", [[0.1, 1]]),
        ("buckets", [[1e10, 1]]),
        ("buckets", [[5e9, 1]]),
        ("buckets", [[1.0, -1]]),
        ("buckets", [[1.0, 0.5]]),
        ("buckets", [["1", 1]]),
        ("total", "1"),
    ],
)
def test_histogram_from_wrong_json_raises(member: str, value: object) -> None:
    form = Histogram([0.001]).to_json()
    with pytest.raises(ValueError, match=r"unit|count|bucket|histogram"):
        Histogram.from_json({**form, member: value})
    del form[member]
    with pytest.raises(ValueError, match="histogram"):
        Histogram.from_json(form)
