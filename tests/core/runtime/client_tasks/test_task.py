"""A task by itself: its reference, and the states that it takes over."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from mcp_core import LocalProtocolError
from mcp_core import types as t
from mcp_core.runtime import InvalidTaskReference, TaskReference
from mcp_core.runtime.client_tasks._task import ClientTask

if TYPE_CHECKING:
    from mcp_core.drivers import CallOptions

REFERENCE = TaskReference("secret", "research", "2026-07-28", "2026-11-23T02:53:02.446Z", 60_000)


def test_reference_of_task_is_read_as_it_was_written() -> None:
    text = str(REFERENCE)
    assert text.startswith("mcp-task:1:")
    assert text.isascii()
    assert TaskReference.parse(text) == REFERENCE


@pytest.mark.parametrize("end", range(1, 12))
def test_reference_of_task_that_was_cut_is_refused(end: int) -> None:
    with pytest.raises(InvalidTaskReference, match="cut or altered"):
        TaskReference.parse(str(REFERENCE)[:-end])


@pytest.mark.parametrize("text", ["", "mcp-task:1:", "mcp-task:2:e30", "e30", "mcp-task:1:é"])
def test_text_that_is_no_reference_of_task_is_refused(text: str) -> None:
    with pytest.raises(InvalidTaskReference, match="begins with mcp-task:1:"):
        TaskReference.parse(text)


@pytest.mark.parametrize("content", ["e30", "bnVsbA", "A", "_____w"])
def test_reference_of_task_with_other_content_is_refused(content: str) -> None:
    with pytest.raises(InvalidTaskReference, match="cut or altered"):
        TaskReference.parse(f"mcp-task:1:{content}")


def test_reference_of_task_hides_its_id_in_its_repr() -> None:
    assert repr(REFERENCE) == "<TaskReference of 'research'>"


# -- The task --------------------------------------------------------------------------------------

CREATED = "2026-11-23T02:53:02.446Z"


class NamedSteps:
    """The steps of a task, named, and the options with which each was run."""

    def __init__(self) -> None:
        self.ran: list[tuple[str, CallOptions]] = []
        self.states: list[Any] = []
        self.task: ClientTask

    def follow(self, task: ClientTask) -> Any:
        return "follow"

    def advance(self, task: ClientTask) -> Any:
        return "advance"

    def refresh(self, task: ClientTask) -> Any:
        return "refresh"

    def cancel(self, task: ClientTask) -> Any:
        return "cancel"

    async def run(self, steps: Any, options: CallOptions) -> Any:
        self.ran.append((steps, options))
        if self.states:
            self.task.update(self.states.pop(0))
        return "the result"


def state(status: Any = "working", message: str | None = None, **more: Any) -> t.Task:
    return t.Task(
        task_id="secret",
        status=status,
        status_message=message,
        created_at=CREATED,
        last_updated_at=more.pop("updated", CREATED),
        **more,
    )


def details(status: Any, message: str | None = None, **more: Any) -> t.GetTaskResult:
    return t.GetTaskResult(
        task_id="secret",
        status=status,
        status_message=message,
        created_at=CREATED,
        last_updated_at=CREATED,
        **more,
    )


def new_task(
    created: t.Task | None = None, *, options: Any = None
) -> tuple[ClientTask, NamedSteps]:
    steps = NamedSteps()
    task = ClientTask(
        steps, steps.run, created or state(), "research", "2025-11-25", 100.0, options=options
    )
    steps.task = task
    return task, steps


def run(awaitable: Any) -> Any:
    """Return the value of a coroutine that never waits."""
    with pytest.raises(StopIteration) as end:
        awaitable.send(None)
    return end.value.value


@pytest.mark.parametrize(
    ("given", "seconds"),
    [
        ({}, 1.0),
        ({"poll_interval": 2500}, 2.5),
        ({"poll_interval_ms": 2500}, 2.5),
        ({"poll_interval_ms": 2500, "poll_interval": 9000}, 2.5),
        ({"poll_interval": 50}, 0.05),
        ({"poll_interval": 49}, 0.05),
        ({"poll_interval": 0}, 0.05),
        ({"poll_interval": 3_600_000}, 3600.0),
        ({"poll_interval": 3_600_001}, 3600.0),
        ({"poll_interval": 10**30}, 3600.0),
    ],
)
def test_interval_of_a_task_is_the_server_s_within_bounds(given: Any, seconds: float) -> None:
    """From 50 ms to an hour; a later state without one keeps it."""
    task, _ = new_task(state(**given))
    assert task.interval == seconds
    task.update(state())
    assert task.interval == seconds


@pytest.mark.parametrize(
    ("given", "seconds", "kept"),
    [
        ({}, None, None),
        ({"ttl": None}, None, None),
        ({"ttl": 60_000}, 60.0, 60_000),
        ({"ttl_ms": 60_000, "ttl": 1}, 60.0, 60_000),
        ({"ttl_ms": None, "ttl": 1}, None, None),
        ({"ttl": 1}, 0.001, 1),
        ({"ttl": 0}, None, None),
        ({"ttl": -1}, None, None),
        ({"ttl": 10**12}, 1e9, 10**12),
        ({"ttl": 10**12 + 1}, 1e9, 10**12 + 1),
    ],
)
def test_time_to_live_of_a_task_counts_from_its_creation(
    given: Any, seconds: float | None, kept: int | None
) -> None:
    """Its reference has the server's own number, so that the next client reads the same."""
    task, _ = new_task(state(**given))
    assert task.ttl == seconds
    assert task.seconds_left(107.0) == (None if seconds is None else 100.0 + seconds - 107.0)
    expected = TaskReference("secret", "research", "2025-11-25", CREATED, kept)
    assert TaskReference.parse(task.reference) == expected
    task.update(state())
    assert task.ttl == seconds


def test_task_takes_over_each_state_until_it_has_ended() -> None:
    """The final status stays, and `end_progress` is called once."""
    task, _ = new_task(state("working", "begun"))
    ended: list[str] = []
    task.end_progress = lambda: ended.append("ended")
    assert (task.state, task.ended, task.settled) == (("working", "begun"), False, False)
    assert repr(task) == "<ClientTask of 'research' working>"
    asked = details("input_required", "a question")
    task.update(asked)
    assert (task.state, task.latest) == (("input_required", "a question"), asked)
    task.update(t.CancelTaskResult(task_id="secret"))  # it has no status in the extension
    assert (task.state, task.latest) == (("input_required", "a question"), asked)
    task.update(details("working", "on it"))
    assert (task.state, task.latest, ended) == (("working", "on it"), None, [])
    task.update(state("completed", "done"))
    assert (task.state, task.latest, task.ended, ended) == (
        ("completed", "done"),
        None,
        True,
        ["ended"],
    )
    task.update(details("working", "again"))
    assert (task.state, task.latest) == (("completed", "done"), None)
    final = details("completed", "other")
    task.update(final)
    assert (task.state, task.latest, ended) == (("completed", "done"), final, ["ended"])


def test_task_knows_a_notification_that_repeats_its_state() -> None:
    task, _ = new_task(state("working", "begun"))

    def is_known(**changes: Any) -> bool:
        members = {"status": "working", "status_message": "begun", "last_updated_at": CREATED}
        return task.knows(
            t.TaskStatusParams(task_id="secret", created_at=CREATED, **{**members, **changes})
        )

    assert is_known()
    assert not is_known(status="input_required")
    assert not is_known(status_message="more")
    assert not is_known(last_updated_at="2026-11-23T02:53:03Z")


FAILED = t.CallToolResult(content=[], is_error=True)
DONE = t.CallToolResult(content=[])
ERROR = t.ErrorData(-1, "no")


@pytest.mark.parametrize(
    ("before", "outcome", "status", "final", "error"),
    [
        ("working", DONE, "completed", DONE, None),
        ("working", FAILED, "failed", FAILED, None),
        ("working", ERROR, "failed", None, ERROR),
        ("completed", DONE, "completed", DONE, None),
        ("failed", ERROR, "failed", None, ERROR),
        ("cancelled", ERROR, "cancelled", None, None),
    ],
)
def test_outcome_of_a_task_ends_it(
    before: Any, outcome: Any, status: str, final: Any, error: Any
) -> None:
    """The message of an earlier status is gone; a final status keeps its own."""
    task, _ = new_task(state(before, "a message"))
    ended: list[str] = []
    task.end_progress = lambda: ended.append("ended")
    task.end_with(outcome)
    was_working = before == "working"
    assert (task.status, task.final, task.error) == (status, final, error)
    assert task.message == (None if was_working else "a message")
    assert ended == (["ended"] if was_working else [])
    assert (task.ended, task.settled) == (True, True)


def test_task_that_was_answered_at_once_has_no_reference() -> None:
    created = t.Task(task_id="", status="completed", created_at="", last_updated_at="")
    task, _ = new_task(created)
    with pytest.raises(LocalProtocolError, match="no task was created"):
        _ = task.reference


def test_each_call_about_a_task_has_the_options_that_it_needs() -> None:
    """The time for a result, and for each change of the state, isn't the time of one response."""
    options: CallOptions = {"timeout": 5.0, "max_timeout": 7.0}
    task, steps = new_task(options=options)
    assert run(task.refresh()) == ("working", None)
    assert run(task.result()) == "the result"
    assert run(task.result(timeout=3)) == "the result"
    run(task.cancel())
    assert steps.ran == [
        ("refresh", options),
        ("follow", {"timeout": 5.0, "max_timeout": None}),
        ("follow", {"timeout": 5.0, "max_timeout": 3}),
        ("cancel", options),
    ]
    steps.ran.clear()
    task.update(state("failed", "broken"))
    assert run(task.refresh()) == ("failed", "broken")
    assert steps.ran == []


def test_states_of_a_task_are_its_changes_until_it_has_ended() -> None:
    """A state that is the same as before is not given again; the final one is the last."""
    task, steps = new_task(options={"timeout": 5.0, "max_timeout": 7.0})
    steps.states = [
        state("working"),
        state("working", "half"),
        state("working", "half", updated="later"),
        state("completed", "all"),
        state("failed"),
    ]

    async def collect() -> list[Any]:
        return [each async for each in task.states()]

    assert run(collect()) == [("working", None), ("working", "half"), ("completed", "all")]
    assert steps.ran == [("advance", {"timeout": 5.0, "max_timeout": None})] * 4
    assert run(collect()) == [("completed", "all")]
