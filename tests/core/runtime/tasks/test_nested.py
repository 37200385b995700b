"""A task of the client that a handler waits for: the pauses between two polls."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from mcp_core import LocalProtocolError
from mcp_core.runtime.tasks._nested import _interval, run_nested_task
from mcp_core.runtime.tasks._records import run_now
from mcp_core.runtime.tasks._requests import TaskQuestion
from mcp_core.tasks import TaskKey


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


def test_client_that_answers_without_a_task_is_not_polled() -> None:
    asked: list[object] = []

    class Runtime:
        async def send_nested(self, request: object) -> str:
            asked.append(request)
            return "yes"

    request: Any = object()
    runtime: Any = Runtime()
    assert run_now(run_nested_task(request, runtime)) == "yes"
    assert asked == [request]


@pytest.mark.parametrize("is_asked", [False, True])
def test_withdrawn_question_is_not_asked(is_asked: bool) -> None:
    """Another request asks it now: the client must not see it twice."""
    host = SimpleNamespace(conn=None)
    sender: Any = SimpleNamespace(active_requests=[], host=host)
    question = TaskQuestion(sender, TaskKey("", "t1"), "name", {})  # type: ignore[arg-type]
    woken: list[bool] = []
    question._wake = lambda: woken.append(True)
    if is_asked:
        sender.active_requests.append(question)
    question.withdraw()
    assert woken == [True] * is_asked
    with (
        pytest.raises(LocalProtocolError, match="another tasks/result asks now"),
        question.entered(lambda: None),
    ):
        raise AssertionError
