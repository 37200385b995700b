"""`HostedTasks`, step by step: a client that runs a server's requests as tasks (2025-11-25)."""

from __future__ import annotations

from itertools import count
from typing import Any

import pytest

from mcp_core import types as t
from tests.core.runtime.test_client_callbacks import CallbackHarness
from tests.core.server_requests import NAME_FORM
from tests.harness.jsonrpc import D, Message, request, single

NOW = 1_800_000_000.0
ADA = {"action": "accept", "content": {"name": "Ada"}}


class TaskHostHarness(CallbackHarness):
    """A client with the tasks of one connection. `now` is the time since 1970."""

    def __init__(self) -> None:
        elicits = t.TasksCapability(
            list={},
            cancel={},
            requests=t.TaskRequests(elicitation=t.ElicitationTasks(create={})),
        )
        super().__init__(D, {"name": "Ada"}, tasks=elicits)
        self.now = NOW
        self.tasks = self.requests._tasks
        numbers = count(1)
        self.tasks._wall_time = lambda: self.now
        self.tasks._entropy = lambda size: next(numbers).to_bytes(size, "big")
        self.stopped: list[int] = []

    def ask(self, method: str, id: Any = 1, **params: Any) -> Message:
        """Return the response to a request of the server. Status notifications are left out."""
        self.receive_messages(request(id, method, params))
        return single([each for each in self.harness.take_sent() if each.get("id") == id])

    def start(self, id: Any = 1, **task: Any) -> Message:
        """Start a task, and return the answer."""
        found = self.ask(
            "elicitation/create", id, message="Who?", requestedSchema=NAME_FORM, task=task
        )
        if self.work and "result" in found:
            number = len(self.work)
            self.work[-1].stop = lambda: self.stopped.append(number)
        return found


@pytest.fixture
def host() -> TaskHostHarness:
    return TaskHostHarness()


@pytest.mark.parametrize(
    ("wish", "ttl"),
    [
        ({}, 600_000),
        ({"ttl": 60_000}, 60_000),
        ({"ttl": 3_600_000}, 3_600_000),
        ({"ttl": 3_600_001}, 3_600_000),
    ],
)
def test_hosted_task_is_kept_for_ten_minutes_or_as_the_server_wishes(
    wish: Any, ttl: int, host: TaskHostHarness
) -> None:
    """An hour at most. Then it is gone, and what it waits for is cancelled."""
    task = host.start(**wish)["result"]["task"]
    assert (task["status"], task["ttl"]) == ("working", ttl)
    host.now = NOW + ttl / 1000 - 0.5
    assert host.ask("tasks/get", taskId=task["taskId"])["result"]["status"] == "working"
    assert host.stopped == []
    host.now = NOW + ttl / 1000
    gone = host.ask("tasks/get", taskId=task["taskId"])
    assert gone["error"] == {"code": -32602, "message": "there is no such task"}
    assert host.stopped == [1]


def test_hosted_task_pauses_timeouts_until_it_has_its_response(host: TaskHostHarness) -> None:
    task_id = host.start()["result"]["task"]["taskId"]
    assert (host.pauses, host.requests._size > 0) == ([1], True)
    assert repr(host.tasks) == "<HostedTasks, 1 of 1 under way>"
    host.works()
    assert (host.pauses, host.requests._size) == ([1, -1], 0)
    assert repr(host.tasks) == "<HostedTasks, 0 of 1 under way>"
    [status] = host.harness.take_sent()
    assert status["method"] == "notifications/tasks/status"
    assert status["params"]["status"] == "completed"
    result = host.ask("tasks/result", taskId=task_id)["result"]
    assert {name: result[name] for name in ADA} == ADA


def test_hosted_task_above_the_limit_is_not_started(host: TaskHostHarness) -> None:
    """64 tasks; one that is forgotten makes place for another one."""
    for id in range(64):
        assert "result" in host.start(id, ttl=60_000 if id else 1_000_000)
    refused = host.start(64)["error"]
    assert refused["message"] == "the client has 64 tasks already, which is the limit"
    assert (len(host.work), len(host.pauses)) == (64, 64)
    host.now = NOW + 60
    assert "result" in host.start(65)
    assert len(host.ask("tasks/list", 66)["result"]["tasks"]) == 2


def test_hosted_task_that_is_cancelled_stops_its_callback_once(host: TaskHostHarness) -> None:
    """A result of the callback that comes later changes nothing."""
    task_id = host.start()["result"]["task"]["taskId"]
    assert host.ask("tasks/cancel", taskId=task_id)["result"]["status"] == "cancelled"
    again = host.ask("tasks/cancel", 2, taskId=task_id)["error"]
    assert again == {"code": -32602, "message": "the task has ended: it is cancelled"}
    assert host.stopped == [1]
    host.works()
    assert host.harness.take_sent() == []
    assert host.ask("tasks/get", taskId=task_id)["result"]["status"] == "cancelled"


def test_requests_that_wait_for_a_hosted_task_are_limited(host: TaskHostHarness) -> None:
    """16 may wait; one that is cancelled makes place, and each of the others is answered once."""
    task_id = host.start(0)["result"]["task"]["taskId"]
    for id in range(1, 17):
        host.receive_messages(request(id, "tasks/result", {"taskId": task_id}))
    assert host.harness.take_sent() == []
    refused = host.ask("tasks/result", 17, taskId=task_id)["error"]
    assert refused["message"] == "16 requests for this result wait already"
    host.requests.cancel(3)
    host.harness.take_sent()
    host.receive_messages(request(18, "tasks/result", {"taskId": task_id}))
    host.works()
    answered = [each["id"] for each in host.harness.take_sent() if "id" in each]
    assert answered == [1, 2, *range(4, 17), 18]


def test_request_that_waits_for_a_hosted_task_ends_with_it(host: TaskHostHarness) -> None:
    task_id = host.start(0)["result"]["task"]["taskId"]
    host.receive_messages(request(1, "tasks/result", {"taskId": task_id}))
    host.now = NOW + 600
    assert host.ask("tasks/list", 2)["result"] == {"tasks": []}
    host.now = NOW
    second = host.start(3)["result"]["task"]["taskId"]
    assert second != task_id
