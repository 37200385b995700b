"""The token bucket, and limits that follow from others."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import asdict

from mcp_core import CLIENT_LIMITS, Limits, Rate, _limits
from mcp_core._limits import Bucket, Buckets


def test_bucket_allows_burst_then_rate() -> None:
    bucket = Bucket(Rate(per_second=2, burst=3))
    assert [bucket.take(0.0) for _ in range(4)] == [0, 0, 0, 0.5]
    assert bucket.take(0.25) == 0.25
    assert bucket.take(0.5) == 0
    assert bucket.take(0.5) == 0.5
    assert repr(bucket) == "<Bucket of 2/s, 0 of 3 left>"


def test_bucket_refills_to_burst_only() -> None:
    bucket = Bucket(Rate(per_second=2, burst=3))
    bucket.take(100.0)
    assert [bucket.take(1000.0) for _ in range(4)] == [0, 0, 0, 0.5]


def test_bucket_refusal_takes_no_token() -> None:
    bucket = Bucket(Rate(per_second=1, burst=1))
    assert bucket.take(0.0) == 0
    assert [bucket.take(0.5) for _ in range(3)] == [0.5, 0.5, 0.5]
    assert bucket.take(1.0) == 0


def test_bucket_time_before_the_last_one_is_not_refilled_twice() -> None:
    bucket = Bucket(Rate(per_second=1, burst=2))
    assert [bucket.take(now) for now in (1000.0, 0.0, 1000.0, 999.0)] == [0, 0, 1, 1]
    assert [bucket.take(now) for now in (1001.0, 0.0, 1001.5)] == [0, 1, 0.5]


@given(
    st.floats(0.1, 100),
    st.integers(1, 4),
    st.lists(st.floats(0, 0.5), max_size=60),
)
def test_bucket_allows_after_returned_wait(
    per_second: float, burst: int, pauses: list[float]
) -> None:
    bucket = Bucket(Rate(per_second, burst))
    now = passed = 0.0
    for pause in pauses:
        now += pause
        wait = bucket.take(now)
        if wait:
            now += wait * (1 + 1e-9)
            assert bucket.take(now) < 1e-6
        passed += 1
    assert passed <= burst + now * per_second + 1


@pytest.mark.parametrize(("per_second", "burst"), [(0, 1), (-1, 1), (1, 0), (float("nan"), 1)])
def test_rate_that_allows_nothing_rejected(per_second: float, burst: int) -> None:
    with pytest.raises(ValueError, match="a rate has per_second above 0"):
        Rate(per_second, burst)


@pytest.mark.parametrize(
    ("limits", "decoded"),
    [
        (Limits(), 40 * 1024 * 1024),
        (CLIENT_LIMITS, 320 * 1024 * 1024),
        (Limits(message=100), 1024 * 1024),
        (Limits(message=100, decoded=7), 7),
    ],
)
def test_limit_of_values_is_derived_from_that_of_a_message(limits: Limits, decoded: int) -> None:
    assert limits.decoded == decoded


def test_limits_have_the_defaults_that_are_explained_beside_them() -> None:
    mib = 1024 * 1024
    defaults = {
        "message": 4 * mib, "decoded": 40 * mib, "id": 256, "method": 256, "batch": 100,
        "in_flight": 256, "waiting": 256, "queued": mib, "pause": 5.0, "uri": 8192,
        "uris": 1024, "task_ids": 1024, "listens": 64, "listing": 48 * mib,
        "tool_calls": Rate(per_second=1000, burst=10_000),
    }  # fmt: skip
    assert asdict(Limits()) == defaults
    client = {**defaults, "message": 32 * mib, "decoded": 320 * mib, "waiting": 0}
    assert asdict(CLIENT_LIMITS) == client
    assert asdict(Rate(0.5, 1)) == {"per_second": 0.5, "burst": 1}


def test_bucket_that_is_restarted_counts_from_an_earlier_time() -> None:
    bucket = Bucket(Rate(per_second=1, burst=1))
    assert bucket.take(1000.0) == 0
    bucket.restart(5.0)
    assert [bucket.take(now) for now in (5.0, 5.5, 6.0)] == [1, 0.5, 0]
    assert repr(Bucket(Rate(per_second=0.5, burst=2))) == "<Bucket of 0.5/s, 2 of 2 left>"


def test_buckets_forget_the_key_whose_last_call_is_oldest(monkeypatch: pytest.MonkeyPatch) -> None:
    assert _limits._MOST_BUCKETS == 10_000
    monkeypatch.setattr(_limits, "_MOST_BUCKETS", 2)
    buckets = Buckets(Rate(per_second=1, burst=1))
    first, second = buckets.get("a"), buckets.get("b")
    assert buckets.get("a") is first
    assert repr(buckets) == "<Buckets of 2 keys>"
    assert [each.take(0.0) for each in (first, second)] == [0, 0]
    third = buckets.get("c")  # the call of b is the oldest
    assert repr(buckets) == "<Buckets of 2 keys>"
    assert buckets.get("a") is first
    assert buckets.get("c") is third
    assert buckets.get("b") is not second
