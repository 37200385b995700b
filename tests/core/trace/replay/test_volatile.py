"""Times and ids that differ between two recordings of the same conversation."""

from __future__ import annotations

from typing import Any

import pytest

from mcp_core.trace.replay._volatile import EqualIds, RecordingTime

AT = "2026-07-28T10:30:00+00:00"
SECONDS = 1_785_234_600  # AT since 1970
OLD, NEW = "0f5e2c1a-3b7d-4c1e-9a55-0123456789ab", "77777777-3b7d-4c1e-9a55-0123456789ab"


def ids(*, at: str = AT, seconds: float = 10) -> EqualIds:
    return EqualIds(RecordingTime(at, seconds), RecordingTime(at, seconds))


def test_id_has_one_partner() -> None:
    """Each id of one recording stands for one of the other, in both directions."""
    pairs = ids()
    assert pairs.pair("a", "x")
    assert pairs.pair("a", "x")
    assert not pairs.pair("a", "y")
    assert not pairs.pair("b", "x")
    assert pairs.pair("b", "y")


@pytest.mark.parametrize(
    ("name", "old", "new", "is_equal"),
    [
        ("taskId", "a", "b", True),
        ("taskId", 1, 2, True),
        ("taskId", 1, "b", False),
        ("taskId", {}, {}, False),
        ("createdAt", "a", "b", True),
        ("createdAt", "a", 1, False),
        ("other", "a", "b", False),
        ("other", f"is {OLD}", f"is {NEW}", True),
        ("other", f"is {OLD}", f"was {NEW}", False),
        ("other", f"{OLD} {OLD}", f"{NEW} {OLD}", False),
        ("other", SECONDS, SECONDS + 86_400, True),
        ("other", SECONDS * 1000, SECONDS, True),
        ("other", SECONDS, SECONDS + 86_401, False),
        ("other", 1, 2, False),
        ("other", True, True, False),
    ],
)
def test_values_are_equal_apart_from_ids_and_times(
    name: str, old: Any, new: Any, is_equal: bool
) -> None:
    assert ids().is_equal((name,), old, new) is is_equal


@pytest.mark.parametrize(
    ("text", "masked"),
    [
        ("at 10:30:00", "at ‹time›"),
        ("at 10:29:55", "at ‹time›"),
        ("at 10:29:54", "at 10:29:54"),
        ("at 10:30:15", "at ‹time›"),
        ("at 10:30:16", "at 10:30:16"),
        ("at 3:45:12 PM", "at ‹time›"),  # in another time zone
        ("10:30", "10:30"),
        ("2026-07-28T03:04:05Z", "‹time›"),
        ("2026-07-30T00:00:00Z", "‹time›"),
        ("2026-07-31T00:00:00Z", "2026-07-31T00:00:00Z"),
        ("2026-13-45T00:00:00Z", "2026-13-45T00:00:00Z"),
        (f"id {OLD}", "id ‹id›"),
    ],
)
def test_time_of_the_recording_is_masked(text: str, masked: str) -> None:
    assert RecordingTime(AT, 10).mask(text, lambda id: "‹id›") == masked


@pytest.mark.parametrize("at", ["", "noon"])
def test_recording_without_a_time_has_days_and_no_clock(at: str) -> None:
    time = RecordingTime(at, 10)
    assert not time.has(SECONDS)
    assert time.mask("10:30:00", str) == "10:30:00"
    assert time.mask("1999-01-01T00:00:00Z", str) == "‹time›"


def test_time_without_a_zone_is_utc() -> None:
    assert RecordingTime("2026-07-28T10:30:00", 10).has(SECONDS + 86_400)
    assert not RecordingTime("2026-07-28T10:30:00", 10).has(SECONDS + 86_401)


@pytest.mark.parametrize(
    ("day", "is_near"), [("25", False), ("26", True), ("30", True), ("31", False)]
)
def test_date_within_two_days_is_near_a_recording(day: str, is_near: bool) -> None:
    text = f"2026-07-{day}T01:02:03Z"
    found = RecordingTime("2026-07-28T00:00:00+00:00", 10).mask(text, str)
    assert found == ("‹time›" if is_near else text)
