"""`RunningTask` by itself: its messages, questions, cancellation and end.

`tests/drivers/test_tasks.py` and others play whole calls.
"""

from __future__ import annotations

import math
from functools import partial
from types import SimpleNamespace
from typing import Any

import pytest
import trio
from msgspec import Raw
from msgspec.structs import replace

from mcp_core import LocalProtocolError, ToolError
from mcp_core.protocol.revisions._dialects import DIALECTS
from mcp_core.runtime.tasks._running import _final_action
from mcp_core.tasks import Cancel, Complete, Fail, ReceiveResponse, TaskStoreError, transition
from mcp_core.types import (
    CallToolResult,
    ElicitParams,
    ElicitRequest,
    ErrorData,
    ImageContent,
    TextContent,
)
from tests.core.runtime.tasks.served import ServiceStage, play
from tests.core.tasks.store_contract import LIMITS, NOW, new_record

_SCHEMA: dict[str, Any] = {"type": "object", "properties": {}}
QUESTION = ElicitRequest(ElicitParams(message="Which?", requested_schema=_SCHEMA))


class KeptMessages:
    """A channel that keeps what it sends."""

    def __init__(self) -> None:
        self.sent: list[tuple[Any, ...]] = []

    def send_progress(self, *words: Any) -> None:
        self.sent.append(words)

    def send_log(self, *words: Any) -> None:
        self.sent.append(words)


def test_task_has_the_id_tool_and_revision_of_its_record() -> None:
    async def main(stage: ServiceStage) -> None:
        task, _ = await stage.start(new_record("t1", revision="2025-11-25", tool="dig"))
        assert (task.id, task.tool, task.revision) == ("t1", "dig", "2025-11-25")
        assert not task.runs_again
        assert repr(task) == "<RunningTask of <Job>>"
        assert repr(stage.service).endswith(", 1 running>")

    play(main)


# -- Messages --------------------------------------------------------------------------------------


def test_message_is_stored_at_once_and_the_last_of_more_after_the_interval() -> None:
    """A tight loop writes once per interval. A pause of that length ends the wait."""

    async def main(stage: ServiceStage) -> None:
        task, _ = await stage.start()
        await task.message("first")
        assert (await stage.record()).message == "first"
        await task.message("second")
        await task.message("third")
        await stage.passes(1.99)
        found = await stage.record()
        assert (found.message, found.serial) == ("first", 2)
        await stage.passes(0.01)
        found = await stage.record()
        assert (found.message, found.serial) == ("third", 3)
        await stage.passes(2)
        await task.message("fourth")
        assert (await stage.record()).message == "fourth"
        await stage.passes(100)
        assert (await stage.record()).serial == 4

    play(main, message_interval=2.0)


def test_message_that_waits_is_dropped_when_the_handler_has_ended() -> None:
    """The store fails until the message's turn, which must not bring back an earlier state."""

    async def main(stage: ServiceStage) -> None:
        task, _ = await stage.start()
        await task.message("first")
        await task.message("second")
        dialect = DIALECTS["2026-07-28"]
        request: Any = SimpleNamespace(peer=SimpleNamespace(dialect=dialect))
        stage.store.fails = True
        result = CallToolResult(content=[])
        stage.runtime.start_soon(partial(task.finish, result, request))
        await stage.passes(0.6)
        stage.store.fails = False
        await stage.passes(0.6)
        found = await stage.record()
        assert (found.status, found.message, found.serial) == ("working", "first", 2)
        assert not stage.service.records._observers
        await stage.passes(0.6)
        found = await stage.record()
        assert (found.status, found.serial) == ("completed", 3)

    play(main, durable=True)


def test_message_that_cannot_be_stored_is_logged_and_the_next_one_is_stored() -> None:
    async def main(stage: ServiceStage) -> None:
        task, _ = await stage.start()
        stage.store.fails = True
        await task.message("lost")
        assert stage.runtime.warnings == ["the store of tasks failed: no disk"]
        stage.store.fails = False
        await task.message("kept")
        await stage.passes(1)
        assert (await stage.record()).message == "kept"

    play(main)


def test_fault_of_a_store_is_not_taken_for_an_outage() -> None:
    """It is raised, and what failed by it isn't tried again."""

    async def main(stage: ServiceStage) -> None:
        task, job = await stage.start()
        stage.store.fails, stage.store.error = True, ZeroDivisionError()
        with pytest.raises(ZeroDivisionError):
            await task.message("lost")
        with pytest.raises(ZeroDivisionError):
            await task.cancel("lost")
        stage.store.fails = False
        stage.service.job_ended(job)
        await stage.passes(100)
        assert ((await stage.record()).serial, job.stops) == (1, 1)
        assert not stage.runtime.warnings

    play(main)


def test_tight_loop_of_messages_or_logs_lets_other_tasks_run() -> None:
    async def main(stage: ServiceStage) -> None:
        task, _ = await stage.start()
        for number in range(3):
            await task.message(str(number))
            await task.log("info", number, None)
            assert stage.runtime.checkpoints == 2 * number + 2

    play(main)


@pytest.mark.parametrize(
    ("words", "text"),
    [
        ((5, None, None), "5"),
        ((0.25, 1, None), "0.25 of 1"),
        ((5, 0, None), "5 of 0"),
        ((5, 10, "half"), "half"),
        ((5, 10, ""), ""),
    ],
)
@pytest.mark.parametrize("how", ["progress", "progress_nowait", "in a thread"])
def test_progress_is_sent_and_becomes_the_message(
    how: str, words: tuple[Any, ...], text: str
) -> None:
    """The client gets the numbers, and who polls gets a text of them. Only `progress` waits."""

    async def main(stage: ServiceStage) -> None:
        task, _ = await stage.start()
        channel: Any = KeptMessages()
        task.channel = channel
        if how == "progress":
            await task.progress(*words)
            assert (await stage.record()).message == text
        else:
            stage.runtime.in_worker_thread = how == "in a thread"
            task.progress_nowait(*words)
            assert (await stage.record()).message is None  # the caller doesn't wait
        await stage.passes(0)
        assert (await stage.record()).message == text
        assert channel.sent == [words]
        assert stage.runtime.thread_calls == (how == "in a thread")

    play(main)


def test_progress_reported_without_waiting_keeps_the_interval() -> None:
    """However often it is reported, one task waits to store the last text."""

    async def main(stage: ServiceStage) -> None:
        task, _ = await stage.start()
        for number in range(3):
            task.progress_nowait(number, None, None)
        await stage.passes(0)
        for number in range(3, 6):
            task.progress_nowait(number, None, None)
            await task.message(str(number))
        assert len(stage.runtime.nursery.child_tasks) == 1  # one waits to store the last
        await stage.passes(0.99)
        assert (await stage.record()).message == "2"
        await stage.passes(0.01)
        found = await stage.record()
        assert (found.message, found.serial) == ("5", 3)

    play(main)


@pytest.mark.parametrize("number", [math.inf, -math.inf, math.nan])
def test_progress_or_total_that_is_not_finite_is_refused(number: float) -> None:
    async def main(stage: ServiceStage) -> None:
        task, _ = await stage.start()
        channel: Any = KeptMessages()
        task.channel = channel
        for words in ((number, None, None), (1, number, "text")):
            with pytest.raises(LocalProtocolError, match="finite"):
                await task.progress(*words)
            with pytest.raises(LocalProtocolError, match="finite"):
                task.progress_nowait(*words)
        await stage.passes(1)
        assert not channel.sent
        assert (await stage.record()).serial == 1

    play(main)


@pytest.mark.parametrize("in_thread", [False, True])
def test_cancelled_task_sends_neither_progress_nor_logs(in_thread: bool) -> None:
    """Its client knows of the end already."""

    async def main(stage: ServiceStage) -> None:
        task, _ = await stage.start()
        task.log_nowait("info", "no channel", None)
        await task.log("info", "no channel", None)
        channel: Any = KeptMessages()
        task.channel = channel
        stage.runtime.in_worker_thread = in_thread
        words = ("info", {"a": 1}, "logger")
        await task.log(*words)  # type: ignore[arg-type]
        task.log_nowait(*words)  # type: ignore[arg-type]
        await stage.passes(0)
        assert channel.sent == [words, words]
        assert stage.runtime.thread_calls == in_thread
        task.stop()
        await task.log(*words)  # type: ignore[arg-type]
        task.log_nowait(*words)  # type: ignore[arg-type]
        await task.progress(1, None, None)
        await stage.passes(0)
        assert len(channel.sent) == 2
        assert (await stage.record()).message is None

    play(main)


# -- Cancellation ----------------------------------------------------------------------------------


def test_stop_cancels_the_handler_each_time_and_notes_it_once() -> None:
    """A handler that swallowed its cancellation gets another one."""

    async def main(stage: ServiceStage) -> None:
        task, job = await stage.start()
        for count in (1, 2):
            task.stop()
            assert (job.stops, list(stage.service._stopping)) == (count, [job])
        stage.service.job_ended(job)
        task.stop()
        assert not stage.service._stopping

    play(main)


def test_task_whose_handler_has_ended_is_not_waited_for() -> None:
    async def main(stage: ServiceStage) -> None:
        task, job = await stage.start()
        stage.service.discard(task)
        task.stop()
        assert (job.stops, task.cancelled) == (1, True)
        assert not stage.service._stopping

    play(main)


@pytest.mark.parametrize(
    ("change", "stops"),
    [("gone", True), ("ended", True), ("taken over", True), ("answered", False)],
)
def test_state_by_another_worker_stops_the_handler_that_is_not_ours_any_more(
    change: str, stops: bool
) -> None:
    """Only the worker that has the task may run it, and only until its end."""

    async def main(stage: ServiceStage) -> None:
        task, job = await stage.start()
        record = await stage.record()
        states = {
            "gone": None,
            "ended": transition(record, Cancel(), NOW, LIMITS),
            "taken over": replace(record, worker="another"),
            "answered": replace(record, serial=2),
        }
        stage.service.records._publish(task.key, states[change])
        assert job.stops == stops
        task.stop_observing()
        task.stop_observing()
        stage.service.records._publish(task.key, None)
        assert job.stops == stops

    play(main, durable=True)


def test_record_in_memory_is_not_observed() -> None:
    """No other process can change it."""

    async def main(stage: ServiceStage) -> None:
        await stage.start()
        assert not stage.service.records._observers

    play(main)


def test_cancel_that_cannot_be_stored_is_raised_and_stored_later() -> None:
    async def main(stage: ServiceStage) -> None:
        task, job = await stage.start()
        stage.store.fails = True
        with pytest.raises(TaskStoreError):
            await task.cancel("stopped")
        assert job.stops == 1
        await stage.passes(0.4)
        stage.store.fails = False
        await stage.passes(0.1)
        found = await stage.record()
        assert (found.status, found.message) == ("cancelled", "stopped")
        assert await task.cancel("again") == (found, found)

    play(main)


# -- Questions -------------------------------------------------------------------------------------


def test_questions_of_a_task_return_when_all_have_responses() -> None:
    """In the order of the questions, however the responses arrive."""

    async def main(stage: ServiceStage) -> None:
        task, _ = await stage.start()
        responses: list[Any] = []

        async def ask() -> None:
            responses.append(await task.request_input({"b": QUESTION, "a": QUESTION}))

        stage.runtime.start_soon(ask)
        await stage.passes(0)
        found = await stage.record()
        assert (list(found.open_requests), found.status) == (["b", "a"], "input_required")
        apply = stage.service.records.apply
        await apply(task.key, ReceiveResponse("a", Raw(b'{"action":"accept"}')))
        await stage.passes(0)
        assert not responses
        await apply(task.key, ReceiveResponse("b", Raw(b'{"action":"decline"}')))
        await stage.passes(0)
        assert [(key, bytes(raw)) for key, raw in responses[0].items()] == [
            ("b", b'{"action":"decline"}'),
            ("a", b'{"action":"accept"}'),
        ]
        assert not stage.service.records._watchers

    play(main)


def test_question_of_an_ended_task_stops_its_handler() -> None:
    async def main(stage: ServiceStage) -> None:
        task, job = await stage.start()
        with trio.move_on_after(10) as scope:
            stage.runtime.start_soon(
                partial(stage.service.records.apply, task.key, Cancel("by its client"))
            )
            await task.request_input({"a": QUESTION})
        assert scope.cancelled_caught  # it never returns
        assert job.stops == 1

    play(main)


@pytest.mark.parametrize("is_asked", [False, True])
def test_question_of_a_cancelled_task_waits_for_its_end(is_asked: bool) -> None:
    """The store may be closed then, so it isn't used any more."""

    async def main(stage: ServiceStage) -> None:
        async def ask() -> None:
            with trio.move_on_after(100) as scope:
                await task.request_input({"a": QUESTION})
            ended.append(scope.cancelled_caught)

        async def fail(key: object) -> None:
            raise AssertionError

        task, job = await stage.start()
        ended: list[bool] = []
        task.cancelled = not is_asked
        stage.runtime.start_soon(ask)
        await stage.passes(1)
        task.cancelled = True
        stage.store.get = fail  # type: ignore[method-assign]
        stage.service.records.changed(task.key)
        await stage.passes(1)
        assert (ended, job.stops) == ([], 1)
        await stage.passes(100)
        assert ended == [True]

    play(main)


def test_question_that_is_cancelled_is_withdrawn() -> None:
    """A later response must not find it open, nor the client be asked."""

    async def main(stage: ServiceStage) -> None:
        task, job = await stage.start()
        with trio.move_on_after(10):
            await task.request_input({"a": QUESTION})
        await stage.passes(0)
        found = await stage.record()
        assert (found.status, list(found.responses), job.stops) == ("working", ["a"], 0)
        assert b"-32603" in bytes(found.responses["a"])

    play(main)


def test_question_that_cannot_be_stored_is_an_error_of_the_tool() -> None:
    async def main(stage: ServiceStage) -> None:
        task, job = await stage.start()
        stage.store.fails = True
        with pytest.raises(ToolError, match="cannot be stored now"):
            await task.request_input({"a": QUESTION})
        assert stage.runtime.warnings == ["the store of tasks failed: no disk"]
        stage.store.fails = False
        await stage.passes(0.5)  # the withdrawal is tried again
        assert ((await stage.record()).serial, job.stops) == (1, 0)

    play(main)


# -- The end ---------------------------------------------------------------------------------------

TEXTS: list[Any] = [
    ImageContent(data="", mime_type="image/png"),
    TextContent("why"),
    TextContent("more"),
]
ERROR = ErrorData(-32000, "no")


@pytest.mark.parametrize(
    ("outcome", "kind", "message"),
    [
        (ERROR, Fail, None),
        (CallToolResult(content=[TextContent("text")]), Complete, None),
        (CallToolResult(content=TEXTS, is_error=True), Complete, "why"),
        (CallToolResult(content=TEXTS[:1], is_error=True), Complete, None),
        (Raw(b'{"content":[]}'), Complete, None),
        ({"content": []}, Complete, None),
    ],
)
def test_end_of_a_task_is_the_outcome_of_its_handler(
    outcome: Any, kind: type[Any], message: str | None
) -> None:
    dialect = DIALECTS["2026-07-28"]
    request: Any = SimpleNamespace(peer=SimpleNamespace(dialect=dialect))
    runtime: Any = None
    action: Any = _final_action(outcome, request, runtime)
    assert type(action) is kind
    if kind is Fail:
        assert action == Fail(ERROR)
        return
    assert (action.is_error, action.message) == (message is not None or _is_error(outcome), message)
    assert b'"content":[' in bytes(action.result)


def _is_error(outcome: Any) -> bool:
    return isinstance(outcome, CallToolResult) and outcome.is_error is True
