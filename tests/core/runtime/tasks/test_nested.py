"""A task of the client that a handler waits for: what is sent, and the pauses between two polls."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from mcp_core import LocalProtocolError
from mcp_core import types as t
from mcp_core.protocol.messages._pending import IgnoredRequest
from mcp_core.runtime.tasks._nested import _interval, _Pause, _TaskRequest, run_nested_task
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


class TaskClient:
    """The runtime of a client that answers with a task, and each poll with the next status.

    `sent` is what it was asked, and the pauses before that. A status that is an exception is raised
    in place of the answer.
    """

    def __init__(self, *statuses: str | BaseException) -> None:
        self.statuses = list(statuses)
        self.sent: list[object] = []
        self.host = SimpleNamespace(conn=self, runtime=self)
        self.pumped = 0
        self.error: Exception | None = None

    def pump(self) -> None:
        self.pumped += 1

    def send_request(self, method: str, params: t.CancelTaskParams, *, token: object) -> None:
        assert isinstance(token, IgnoredRequest)
        self.sent.append((method, params.task_id))
        if self.error is not None:
            raise self.error

    async def send_nested(self, request: Any) -> Any:
        if isinstance(request, _Pause):
            assert request._sender is self.sender
            assert request._make_requests() == {}
            self.sent.append(request.seconds)
            return None
        if isinstance(request, _TaskRequest):
            assert request._sender is self.sender
            ((key, (method, params)),) = request._make_requests().items()
            assert request._make_result({key: "an answer"}) == "an answer"
            self.sent.append((method, params.task_id))  # type: ignore[attr-defined]
            if method == "tasks/result" and not self.statuses:
                return "raw"
        else:
            self.sent.append("asked")
        status = self.statuses.pop(0)
        if isinstance(status, BaseException):
            raise status
        stamps: Any = {
            "created_at": "2026-11-23T00:00:00Z",
            "last_updated_at": "2026-11-23T00:00:00Z",
        }
        fields: Any = {"task_id": "T", "status": status, "ttl": None, "poll_interval": 500}
        kind: Any = t.Task if request is self.request else t.GetTaskResult
        return kind(**fields, **stamps)

    def run(self) -> Any:
        self.sender: Any = SimpleNamespace(host=self.host)
        read = "the value of {}".format
        request: Any = SimpleNamespace(sender=self.sender, read_raw=read)
        self.request: object = request
        runtime: Any = self
        return run_now(run_nested_task(request, runtime))


POLL = [0.5, ("tasks/get", "T")]
RESULT = ("tasks/result", "T")


@pytest.mark.parametrize(
    ("statuses", "sent"),
    [
        (["completed"], [RESULT]),
        (["failed"], [RESULT]),
        (["cancelled"], [RESULT]),
        (["input_required"], [RESULT]),
        (["working", "completed"], [*POLL, RESULT]),
        (["working", "working", "input_required"], [*POLL, *POLL, RESULT]),
    ],
)
def test_client_is_polled_until_its_task_has_a_result_or_a_question(
    statuses: list[str], sent: list[object]
) -> None:
    """A question arrives while the result is awaited, so a task with one isn't polled."""
    client = TaskClient(*statuses)
    assert client.run() == "the value of raw"
    assert client.sent == ["asked", *sent]


@pytest.mark.parametrize("error", [ZeroDivisionError(), KeyboardInterrupt(), SystemExit()])
@pytest.mark.parametrize(
    ("statuses", "sent", "is_cancelled"),
    [
        ([], [], False),  # there is no task yet
        (["working"], POLL, True),
        (["input_required"], [RESULT], True),
        (["working", "completed"], [*POLL, RESULT], False),
        (["failed"], [RESULT], False),
    ],
)
def test_task_of_the_client_is_cancelled_with_its_caller_unless_it_has_ended(
    error: BaseException, statuses: list[str], sent: list[object], is_cancelled: bool
) -> None:
    client = TaskClient(*statuses, error)
    with pytest.raises(type(error)):
        client.run()
    assert client.sent == ["asked", *sent, *[("tasks/cancel", "T")] * is_cancelled]
    assert client.pumped == is_cancelled


@pytest.mark.parametrize(
    ("error", "raised"), [(LocalProtocolError("closed"), KeyError), (OSError(), OSError)]
)
def test_cancellation_that_cannot_be_sent_hides_no_exception(
    error: Exception, raised: type[Exception]
) -> None:
    """The connection may be closed. Any other error is a fault, and is raised."""
    client = TaskClient("working", KeyError("the caller's"))
    client.error = error
    with pytest.raises(raised):
        client.run()
    assert not client.pumped


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
