"""The depth of nested values."""

from __future__ import annotations

from typing import Any

import pytest

from mcp_core._nesting import MAX_NESTING, depth_exceeds


@pytest.mark.parametrize(
    ("value", "depth"),
    [
        (1, 0),
        ("[[", 0),
        ([], 0),
        ({}, 0),
        ([1], 1),
        ({"a": [1]}, 2),
        ([1, [2], {"a": {"b": [3]}}, 4], 4),
        ([[], {}], 1),
    ],
)
def test_depth_of_a_value_counts_its_levels(value: Any, depth: int) -> None:
    assert not depth_exceeds(value, depth)
    assert depth_exceeds(value, depth - 1)


@pytest.mark.parametrize("levels", [MAX_NESTING + 1, 5_000, 100_000])
def test_depth_of_any_value_is_found_without_recursion(levels: int) -> None:
    value: Any = 0
    for _ in range(levels):
        value = {"a": [value]} if levels < 10_000 else [value]
    assert depth_exceeds(value)
    assert depth_exceeds([1, value, 2])


def test_two_hundred_levels_are_no_more_than_is_walked() -> None:
    value: Any = 0
    for _ in range(200):
        value = [value]
    assert not depth_exceeds(value)
    assert depth_exceeds([value])
