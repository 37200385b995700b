"""The judge's tasks: what is remembered of one, by each message that names it."""

from __future__ import annotations

from typing import Any

import pytest

from mcp_core.trace.judge.conversation import _tasks
from mcp_core.trace.judge.conversation._tasks import MAX_TASK_ID, SeenTask, TaskTable
from tests.core.trace.judge.conversations import ask, error, notify, result
from tests.core.trace.judge.seen import message_of, request_of


def task_of(**view: Any) -> SeenTask:
    """Return a task that a call of line 2 became in line 3."""
    call = request_of(ask(1, "tools/call"), 2)
    return SeenTask({"taskId": "t", **view}, message_of(result(1), 3, request=call), call)


def state_of(task: SeenTask, *names: str) -> list[Any]:
    return [getattr(task, name) for name in names]


@pytest.mark.parametrize(
    ("view", "status", "ttl", "interval"),
    [
        ({}, "", None, None),
        ({"status": 1, "ttl": "1", "pollInterval": True}, "", None, None),
        ({"status": "working", "ttl": 2_000, "pollInterval": 500}, "working", 2.0, 0.5),
        ({"ttlMs": 2_000, "pollIntervalMs": 500, "ttl": 1, "pollInterval": 1}, "", 2.0, 0.5),
        ({"ttlMs": None, "pollIntervalMs": None, "ttl": 1, "pollInterval": 1}, "", None, None),
    ],
)
def test_task_begins_as_its_view_shows(
    view: dict[str, Any], status: str, ttl: float | None, interval: float | None
) -> None:
    """Nothing of its later course is known yet."""
    task = task_of(**view)
    assert state_of(task, "id", "owner", "line", "created") == ["t", "server", 3, 3]
    assert task.created_time == 0.3
    assert task.request.line == 2
    assert task.revisions is task.request.revisions
    assert (task.status, task.ttl, task.interval) == (status, ttl, interval)
    assert state_of(task, "has_view", "polled", "input_polls", "is_error") == [
        False, None, 0, False,
    ]  # fmt: skip
    assert state_of(task, "result_asked", "result_given", "update_line") == [0, 0, 0]
    assert state_of(task, "keys", "answered", "acknowledged", "gone") == [set()] * 4


@pytest.mark.parametrize(
    ("view", "status", "line", "input_polls"),
    [
        ({"status": "completed"}, "completed", 8, 0),
        ({"status": "input_required"}, "input_required", 8, 2),
        ({"status": None}, "input_required", 3, 2),
        ({}, "input_required", 3, 2),
    ],
)
def test_status_of_a_view_is_the_task_s(
    view: dict[str, Any], status: str, line: int, input_polls: int
) -> None:
    task = task_of(status="input_required")
    task.input_polls = 2
    task.see(view, message_of(result(4), 8))
    assert (task.status, task.line, task.input_polls) == (status, line, input_polls)


@pytest.mark.parametrize(
    ("message", "has_view", "polled"),
    [(notify("x"), False, None), (result(4), True, 0.5), (ask(4, "x"), True, 0.5)],
)
def test_notification_of_a_task_allows_an_early_poll(
    message: Any, polled: float | None, *, has_view: bool
) -> None:
    task = task_of(pollInterval=1)
    task.polled = 0.5
    task.see({"pollIntervalMs": 3_000, "pollInterval": 1}, message_of(message, 8))
    assert (task.has_view, task.polled, task.interval) == (has_view, polled, 3.0)
    task.see({"pollInterval": 4_000}, message_of(message, 9))
    assert task.interval == 4.0
    task.see({}, message_of(message, 9))
    assert task.interval is None


def test_answered_input_requests_are_gone_once_a_later_view_lacks_them() -> None:
    task = task_of()
    early, late = request_of(ask(5, "tasks/get"), 10), request_of(ask(6, "tasks/get"), 12)
    task.see({"inputRequests": {"a": 1, "b": 2}}, message_of(result(5), 11, request=early))
    task.see({"inputRequests": [1]}, message_of(result(5), 11, request=early))
    assert (task.keys, task.gone) == ({"a", "b"}, set())
    task.answered, task.update_line = {"a", "b"}, 10
    for request in (None, early):  # it may have been sent before the responses arrived
        task.see({}, message_of(result(5), 13, request=request))
        assert task.gone == set()
    task.see({"inputRequests": {"b": 2}}, message_of(result(6), 13, request=late))
    assert task.gone == {"a"}
    task.see({}, message_of(result(6), 13, request=late))
    assert task.gone == {"a", "b"}


def test_input_requests_are_remembered_up_to_a_number(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_tasks, "_MAX_KEYS", 2)
    task = task_of()
    for key in "abc":
        task.see({"inputRequests": {key: 1}}, message_of(result(5), 11))
        update = ask(5, "tasks/update", inputResponses={key: 1})
        task.receive_request(message_of(update, 12 + ord(key), "client"))
    assert (task.keys, task.answered) == ({"a", "b"}, {"a", "b"})
    assert task.update_line == 12 + ord("b")


@pytest.mark.parametrize(
    ("request_", "expected"),
    [
        (ask(5, "tasks/get"), (0.5, 0, set(), 0)),
        (ask(5, "tasks/result"), (None, 9, set(), 0)),
        (ask(5, "tasks/update", inputResponses={"a": 1}), (None, 0, {"a"}, 9)),
        (ask(5, "tasks/update", inputResponses=["a"]), (None, 0, set(), 0)),
        (ask(5, "tasks/update"), (None, 0, set(), 0)),
        (ask(5, "tasks/cancel", inputResponses={"a": 1}), (None, 0, set(), 0)),
    ],
)
def test_request_that_names_a_task_is_recorded(request_: Any, expected: tuple[Any, ...]) -> None:
    task = task_of()
    task.polled = 0.5
    task.receive_request(message_of(request_, 9, "client"))
    assert (task.polled, task.result_asked, task.answered, task.update_line) == expected


@pytest.mark.parametrize(("status", "polls"), [("input_required", 2), ("working", 0)])
def test_polls_are_counted_while_input_is_required(status: str, polls: int) -> None:
    task = task_of(status=status)
    for line in (5, 6):
        task.receive_request(message_of(ask(line, "tasks/get"), line, "client"))
    assert task.input_polls == polls


@pytest.mark.parametrize(
    ("asked", "answer", "expected"),
    [
        (ask(5, "tasks/get"), result(5), (0.7, set(), 0, False)),
        (ask(5, "tasks/get"), error(5), (0.7, set(), 0, False)),
        (ask(5, "tasks/update", inputResponses={"a": 1}), result(5), (None, {"a"}, 0, False)),
        (ask(5, "tasks/update", inputResponses={"a": 1}), error(5), (None, set(), 0, False)),
        (ask(5, "tasks/update", inputResponses=["a"]), result(5), (None, set(), 0, False)),
        (ask(5, "x", inputResponses={"a": 1}), result(5), (None, set(), 0, False)),
        (ask(5, "tasks/result"), result(5), (None, set(), 9, False)),
        (ask(5, "tasks/result"), result(5, isError=True), (None, set(), 9, True)),
        (ask(5, "tasks/result"), result(5, isError=1), (None, set(), 9, False)),
        (ask(5, "tasks/result"), error(5), (None, set(), 0, False)),
        (ask(5, "tasks/get"), result(5, isError=True), (0.7, set(), 0, False)),
    ],
)
def test_response_about_a_task_is_recorded(
    asked: Any, answer: Any, expected: tuple[Any, ...]
) -> None:
    task = task_of()
    request = request_of(asked, 7)
    task.receive_response(message_of(answer, 9, request=request), request)
    assert (task.polled, task.acknowledged, task.result_given, task.is_error) == expected


# -- All tasks -------------------------------------------------------------------------------------


def test_task_is_found_by_its_side_and_id() -> None:
    """A request names one of the other side."""
    table = TaskTable()
    call = request_of(ask(1, "tools/call"), 2)
    table.add(message_of(result(1), 3, request=call), call, {"taskId": "t"})
    found = table.find("server", "t")
    assert found is not None
    assert (found.id, call.task) == ("t", "t")
    assert (
        table.find("client", "t")
        is table.find("server", "u")
        is table.find("server", ["t"])
        is None
    )
    assert table.named_by(request_of(ask(2, "tasks/get", taskId="t"), 4)) is found
    assert table.named_by(request_of(ask(2, "tasks/get", taskId="t"), 4, "server")) is None
    table.see(message_of(result(2), 5), {"taskId": "t", "status": "failed"})
    table.see(message_of(result(2), 6, "client"), {"taskId": "t", "status": "working"})
    table.see(message_of(result(2), 7), {"status": "working"})
    assert (found.status, found.line) == ("failed", 5)


def test_last_two_ids_of_each_side_are_known() -> None:
    table = TaskTable()
    for id in ("a", "b", "c"):
        call = request_of(ask(1, "tools/call"), 2)
        table.add(message_of(result(1), 3), call, {"taskId": id})
    assert table.last_ids == {"client": [], "server": ["b", "c"]}


@pytest.mark.parametrize(("size", "is_added"), [(MAX_TASK_ID, True), (MAX_TASK_ID + 1, False)])
def test_task_with_a_long_id_is_not_remembered(size: int, *, is_added: bool) -> None:
    table = TaskTable()
    call = request_of(ask(1, "tools/call"), 2)
    table.add(message_of(result(1), 3), call, {"taskId": "t" * size})
    assert (table.find("server", "t" * size) is not None) is is_added
    assert (call.task is not None) is is_added
    assert bool(table.last_ids["server"]) is is_added


def test_earliest_tasks_are_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_tasks, "MAX_ENTRIES", 2)
    table = TaskTable()
    for id in ("a", "b", "c"):
        call = request_of(ask(1, "tools/call"), 2)
        table.add(message_of(result(1), 3), call, {"taskId": id})
    assert [table.find("server", id) is not None for id in "abc"] == [False, True, True]
