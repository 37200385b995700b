"""A task of the client that a handler waits for: the pauses between two polls."""

from __future__ import annotations

from typing import Any

import pytest

from mcp_core.runtime.tasks._nested import _interval


class Task:
    """A client's words about its task."""

    def __init__(self, poll_interval: int | None) -> None:
        self.poll_interval = poll_interval


@pytest.mark.parametrize(
    ("milliseconds", "seconds"),
    [(None, 1), (0, 0.1), (99, 0.1), (101, 0.101), (59_999, 59.999), (60_001, 60), (10**12, 60)],
)
def test_pause_is_what_the_client_asks_for_within_bounds(
    milliseconds: int | None, seconds: float
) -> None:
    task: Any = Task(milliseconds)
    assert _interval(task) == pytest.approx(seconds)
