"""Following tasks: the flows on the wire, with both drivers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from mcp_core import CallTimeout, PeerError, TaskCancelled
from mcp_core import types as t
from tests.harness.jsonrpc import D, E, Message
from tests.harness.messages.scripted_server import (
    CONTENT,
    FORM,
    PLAYS,
    Callback,
    Failure,
    created,
    ended,
    state,
)

if TYPE_CHECKING:
    from tests.harness.messages.scripted_server import ClientPlay

both_drivers = pytest.mark.parametrize("play_with", PLAYS)
both_forms = pytest.mark.parametrize("version", [D, E])

RESEARCH = {"name": "research", "inputSchema": {"type": "object"}}
TOOLS = {"tools": [RESEARCH | {"execution": {"taskSupport": "required"}}]}
ASK = {"method": "elicitation/create", "params": FORM}
ADA = {"action": "accept", "content": {"name": "Ada"}}
OWLS = t.CallToolResult(content=[t.TextContent("owls")])


def answers(version: str, *states: Any, **more: Any) -> dict[str, Any]:
    """Return the answers of a server whose tool becomes a task with these states."""
    found: dict[str, Any] = {
        "tools/list": TOOLS,
        "tools/call": created(version),
        "tasks/get": list(states) or [ended(version)],
        "tasks/result": CONTENT,
        "tasks/cancel": state(version, "cancelled") if version == D else {},
    }
    return found | more


async def listed(play: ClientPlay) -> Any:
    """List the tools, as a client does before it calls one, and forget the messages."""
    await play.client.list_tools()
    play.server.log.clear()
    return play.client


def call_of(version: str) -> Message:
    task: Message = {"task": {}} if version == D else {}
    return {"name": "research", "arguments": {"topic": "owls"}} | task


# -- Flows -----------------------------------------------------------------------------------------


@pytest.mark.requirement("TX-3", "TX-13", "TX-15", "TX-24")
@both_drivers
def test_extension_task_asks_and_result_returns_by_polling(play_with: Any) -> None:
    """2026-07-28 puts the request into the task's state, so the same key must be answered once."""
    waiting = state(E, "input_required", inputRequests={"k1": ASK})
    script = answers(
        E,
        state(E, statusMessage="Reading archive 1 of 9"),
        waiting,
        waiting,  # the server is slow to take the response over
        ended(E),
        **{"tasks/update": {}},
    )

    async def main(play: ClientPlay) -> None:
        client = await listed(play)
        assert await client.call_tool("research", {"topic": "owls"}) == OWLS
        assert play.server.wire == [
            (0, "tools/call", call_of(E)),
            (1, "tasks/get", "T"),
            (2, "tasks/get", "T"),
            (2, "tasks/update", {"taskId": "T", "inputResponses": {"k1": ADA}}),
            (3, "tasks/get", "T"),
            (4, "tasks/get", "T"),
        ]

    play_with(main, E, answers=script, on_elicit=lambda params: {"name": "Ada"})


@both_drivers
def test_extension_task_after_round_trip_carries_no_state_of_it(play_with: Any) -> None:
    """The tool asks before it becomes a task; polls don't repeat the sealed request state."""
    asked = {
        "resultType": "input_required",
        "inputRequests": {"q": ASK},
        "requestState": "sealed",
    }
    script = answers(E, **{"tools/call": [asked, created(E)]})

    async def main(play: ClientPlay) -> None:
        client = await listed(play)
        assert await client.call_tool("research", {"topic": "owls"}) == OWLS
        again = call_of(E) | {"inputResponses": {"q": ADA}, "requestState": "sealed"}
        assert play.server.wire == [
            (0, "tools/call", call_of(E)),
            (0, "tools/call", again),
            (1, "tasks/get", "T"),
        ]

    play_with(main, E, answers=script, on_elicit=lambda params: {"name": "Ada"})


@pytest.mark.requirement("TSK-13", "TSK-16", "TSK-17", "TSK-18")
@both_drivers
def test_2025_11_25_task_asks_inside_result(play_with: Any) -> None:
    """The server's request arrives while `tasks/result` waits, and names the task in `_meta`."""
    script = answers(D, state(D), state(D, "input_required"))

    async def main(play: ClientPlay) -> None:
        server = play.server

        def ask(request: Message) -> None:
            server.ask(FORM, lambda response: server.respond(request, CONTENT))

        server.answers["tasks/result"] = [ask]
        client = await listed(play)
        assert await client.call_tool("research", {"topic": "owls"}) == OWLS
        related = {"_meta": {"io.modelcontextprotocol/related-task": {"taskId": "T"}}}
        assert play.server.wire == [
            (0, "tools/call", call_of(D)),
            (1, "tasks/get", "T"),
            (2, "tasks/get", "T"),
            (2, "tasks/result", "T"),
            (2, "", ADA | related),
        ]
        assert not any("_meta" in each["params"] for each in play.server.sent("tasks/get"))

    play_with(main, D, answers=script, on_elicit=lambda params: {"name": "Ada"})


@both_drivers
def test_2025_11_25_task_without_question_result_is_requested_at_its_end(play_with: Any) -> None:
    async def main(play: ClientPlay) -> None:
        client = await listed(play)
        assert await client.call_tool("research", {"topic": "owls"}) == OWLS
        assert play.server.wire == [
            (0, "tools/call", call_of(D)),
            (1, "tasks/get", "T"),
            (1, "tasks/result", "T"),
        ]

    play_with(main, D, answers=answers(D))


# -- The caller ------------------------------------------------------------------------------------


@pytest.mark.requirement("TX-18", "CXL-5")
@both_forms
@both_drivers
def test_call_given_up_while_it_waits_cancels_task_once(play_with: Any, version: str) -> None:
    async def main(play: ClientPlay) -> None:
        client = await listed(play)
        await play.give_up_after(2.5, lambda: client.call_tool("research", {"topic": "owls"}))
        await play.sleep(10)
        assert play.server.wire == [
            (0, "tools/call", call_of(version)),
            (1, "tasks/get", "T"),
            (2, "tasks/get", "T"),
            (2.5, "tasks/cancel", "T"),
        ]

    play_with(main, version, answers=answers(version, state(version)))


@both_forms
@both_drivers
def test_call_given_up_during_poll_cancels_task_and_poll(play_with: Any, version: str) -> None:
    async def main(play: ClientPlay) -> None:
        client = await listed(play)
        await play.give_up_after(2.5, lambda: client.call_tool("research", {"topic": "owls"}))
        await play.sleep(10)
        *_, poll, cancel, notification = [message for _, message in play.server.log]
        assert [each["method"] for each in (poll, cancel, notification)] == [
            "tasks/get",
            "tasks/cancel",
            "notifications/cancelled",
        ]
        assert notification["params"]["requestId"] == poll["id"]  # not the call itself

    play_with(main, version, answers=answers(version, state(version), None))


@both_forms
@both_drivers
def test_call_over_max_timeout_cancels_task(play_with: Any, version: str) -> None:
    async def main(play: ClientPlay) -> None:
        client = await listed(play)
        with pytest.raises(CallTimeout, match=r"not over after 2\.5 s in all"):
            await client.call_tool("research", {"topic": "owls"}, max_timeout=2.5)
        await play.sleep(10)
        assert play.server.wire[-1] == (2.5, "tasks/cancel", "T")
        assert play.server.count("tasks/cancel") == 1
        assert play.server.count("notifications/cancelled") == 0

    play_with(main, version, answers=answers(version, state(version)))


@both_forms
@both_drivers
def test_call_default_max_timeout_ends_when_task_exists(play_with: Any, version: str) -> None:
    script = answers(version, *[state(version)] * 400, ended(version))

    async def main(play: ClientPlay) -> None:
        client = await listed(play)
        assert await client.call_tool("research", {"topic": "owls"}) == OWLS
        assert play.clock() == pytest.approx(401)

    play_with(main, version, answers=script)


@both_forms
@both_drivers
def test_call_timeout_is_silence_of_server_only(play_with: Any, version: str) -> None:
    slow = state(version, **{"pollInterval" if version == D else "pollIntervalMs": 100_000})
    script = answers(version, slow, None)

    async def main(play: ClientPlay) -> None:
        client = await listed(play)
        with pytest.raises(CallTimeout, match=r"no answer to tasks/get within 5 s"):
            await client.call_tool("research", {"topic": "owls"}, timeout=5)
        assert play.clock() == pytest.approx(106)

    play_with(main, version, answers=script)


@both_drivers
def test_result_in_2025_11_25_takes_longer_than_timeout(play_with: Any) -> None:
    async def main(play: ClientPlay) -> None:
        client = await listed(play)

        async def answer() -> None:
            await play.sleep(1000)
            (request,) = play.server.sent("tasks/result")
            play.server.respond(request, CONTENT)

        found, _ = await play.together(lambda: client.call_tool("research"), answer)
        assert found == OWLS
        assert play.clock() == pytest.approx(1000)

    script = answers(D, state(D, "input_required"), **{"tasks/result": None})
    play_with(main, D, answers=script)


@both_drivers
def test_result_begun_while_user_is_asked_polls_without_timeout(play_with: Any) -> None:
    """The server may wait for the user before it answers a poll, as before it answers a call."""
    on_elicit = Callback()

    async def main(play: ClientPlay) -> None:
        async def slow_user(params: Any) -> Any:
            await play.sleep(200)
            play.server.respond(play.server.sent("tasks/get")[0], ended(D))
            return ADA["content"]

        on_elicit.function = slow_user
        client = await listed(play)
        task = await client.start_tool("research", {"topic": "owls"})
        play.server.ask(FORM, lambda response: None)
        await play.sleep(50)
        assert await task.result() == OWLS
        assert play.clock() == pytest.approx(200, abs=0.1)
        play.server.answers["tasks/get"] = [None]  # the user is not asked now
        other = await client.start_tool("research", {"topic": "owls"})
        with pytest.raises(CallTimeout, match="no answer to tasks/get within 60 s"):
            await other.result()

    play_with(main, D, answers=answers(D, None), on_elicit=on_elicit)


@both_forms
@both_drivers
def test_task_result_given_up_sends_nothing(play_with: Any, version: str) -> None:
    script = answers(version, state(version), state(version), state(version), ended(version))

    async def main(play: ClientPlay) -> None:
        client = await listed(play)
        task = await client.start_tool("research", {"topic": "owls"})
        await play.give_up_after(1.5, task.result)
        with pytest.raises(CallTimeout):
            await task.result(timeout=1.2)
        assert {method for _, method, _ in play.server.wire} == {"tools/call", "tasks/get"}
        assert await task.result() == OWLS

    play_with(main, version, answers=script)


@both_forms
@both_drivers
def test_start_tool_returns_task_whose_states_are_followed(play_with: Any, version: str) -> None:
    """Equal states are given once; an ended task answers again without a request."""
    script = answers(
        version,
        state(version, statusMessage="one"),
        state(version, statusMessage="one"),
        state(version, statusMessage="two"),
        ended(version, statusMessage="done"),
    )

    async def main(play: ClientPlay) -> None:
        client = await listed(play)
        task = await client.start_tool("research", {"topic": "owls"})
        assert (task.id, task.status, task.message, task.ended) == ("T", "working", None, False)
        states = [tuple(each) async for each in task.states()]
        assert states == [
            ("working", None),
            ("working", "one"),
            ("working", "two"),
            ("completed", "done"),
        ]
        assert await task.result() == OWLS
        assert [tuple(each) async for each in task.states()] == [("completed", "done")]
        assert await task.result() == OWLS  # again, without a request
        assert play.server.count("tasks/get") == 4
        assert play.server.count("tasks/result") == (version == D)

    play_with(main, version, answers=script)


@both_drivers
def test_states_in_2025_11_25_end_after_question(play_with: Any) -> None:
    """The status was "input_required" when `tasks/result` was sent, and is not requested again."""
    script = answers(D, state(D), state(D, "input_required", statusMessage="Which?"))

    async def main(play: ClientPlay) -> None:
        client = await listed(play)
        task = await client.start_tool("research", {"topic": "owls"})
        states = [tuple(each) async for each in task.states()]
        assert states == [("working", None), ("input_required", "Which?"), ("completed", None)]
        assert await task.result() == OWLS
        assert play.server.count("tasks/result") == 1

    play_with(main, D, answers=script)


@both_forms
@both_drivers
def test_task_and_its_waits_have_reprs(play_with: Any, version: str) -> None:
    async def main(play: ClientPlay) -> None:
        client = await listed(play)
        task = await client.start_tool("research")
        steps = client._task_poller().advance(task)
        assert repr(next(steps)) == "<PollWait of 1 s>"
        steps.close()
        assert repr(client._task_poller()._listener) == "<TaskListener, 0 tasks>"

    play_with(main, version, answers=answers(version))


@both_forms
@both_drivers
def test_several_waiters_share_polls_and_result(play_with: Any, version: str) -> None:
    """Two results and a loop over the states cost as many requests as one of them."""
    script = answers(version, state(version), state(version), ended(version))

    async def main(play: ClientPlay) -> None:
        client = await listed(play)
        task = await client.start_tool("research", {"topic": "owls"})

        async def states() -> list[str]:
            return [each.status async for each in task.states()]

        first, seen, second = await play.together(task.result, states, task.result)
        assert first == second == OWLS
        assert seen == ["working", "completed"]
        assert play.server.count("tasks/get") == 3
        assert play.server.count("tasks/result") == (version == D)

    play_with(main, version, answers=script)


@pytest.mark.requirement("TX-15")
@both_drivers
def test_question_is_asked_once_though_several_wait(play_with: Any) -> None:
    """The user takes half a minute to answer, and must not see three dialogs."""
    script = answers(
        E, state(E, "input_required", inputRequests={"k": ASK}), ended(E), **{"tasks/update": {}}
    )
    asked: list[str] = []

    async def main(play: ClientPlay) -> None:
        async def elicit(params: Any) -> Message:
            asked.append(params.message)
            await play.sleep(30)
            return {"name": "Ada"}

        on_elicit.function = elicit
        client = await listed(play)
        task = await client.start_tool("research", {"topic": "owls"})
        assert await play.together(task.result, task.result, task.result) == [OWLS] * 3
        assert asked == ["Which?"]
        assert play.server.count("tasks/update") == 1

    on_elicit = Callback()
    play_with(main, E, answers=script, on_elicit=on_elicit)


@pytest.mark.parametrize("first_gives_up", [True, False])
@both_drivers
def test_question_of_call_given_up_is_asked_for_other_one(
    play_with: Any, first_gives_up: bool
) -> None:
    """One of the two asks. If that one is given up, the other asks again."""
    script = answers(
        E, state(E, "input_required", inputRequests={"k": ASK}), ended(E), **{"tasks/update": {}}
    )

    async def main(play: ClientPlay) -> None:
        async def elicit(params: Any) -> Message:
            asked.append(play.clock())
            await play.sleep(30)
            return {"name": "Ada"}

        on_elicit.function = elicit
        client = await listed(play)
        task = await client.start_tool("research", {"topic": "owls"})
        waits = [play.give_up_after, wait_for_result]

        async def first() -> Any:
            return await waits[not first_gives_up](10, task.result)

        async def second() -> Any:
            await play.sleep(0.5)
            return await waits[first_gives_up](10, task.result)

        assert OWLS in await play.together(first, second)
        assert play.server.count("tasks/update") == 1

    async def wait_for_result(_: float, function: Any) -> Any:
        return await function()

    asked: list[float] = []
    on_elicit = Callback()
    play_with(main, E, answers=script, on_elicit=on_elicit)
    # The second one was woken when the question arrived, and asks.
    assert asked == pytest.approx([1] if first_gives_up else [1, 10.5])


# -- Progress --------------------------------------------------------------------------------------


def send_progress(play: ClientPlay, *values: float) -> None:
    (call,) = play.server.sent("tools/call")
    token = call["params"]["_meta"]["progressToken"]
    for value in values:
        play.server.notify(
            "notifications/progress", {"progressToken": token, "progress": value, "message": "!"}
        )


@pytest.mark.requirement("PROG-6")
@pytest.mark.parametrize("started", [False, True], ids=["call_tool", "start_tool"])
@both_drivers
def test_progress_in_2025_11_25_goes_on_until_task_has_ended(play_with: Any, started: bool) -> None:
    """The call's response comes at once, but its progress token lives as long as the task."""
    seen: list[tuple[float, float]] = []
    script = answers(D, state(D), state(D), ended(D))

    async def main(play: ClientPlay) -> None:
        async def progress(value: float, total: float | None, message: str | None) -> None:
            await play.sleep(0)
            seen.append((round(play.clock(), 3), value))

        async def report() -> None:
            for value in (1, 2, 3, 4):
                await play.sleep(0.9)
                send_progress(play, value, value)

        async def call() -> Any:
            if started:
                task = await client.start_tool("research", progress=progress)
                return await task.result()
            return await client.call_tool("research", progress=progress)

        client = await listed(play)
        found, _ = await play.together(call, report)
        assert found == OWLS
        assert seen == [(0.9, 1), (1.8, 2), (2.7, 3)]  # the task has ended at 3

    play_with(main, D, answers=script)


@both_drivers
def test_progress_callback_that_raises_ends_call_and_task(play_with: Any) -> None:
    """The caller can no longer get the result, so the server should stop the work."""

    def progress(value: float, total: float | None, message: str | None) -> None:
        raise ZeroDivisionError

    async def main(play: ClientPlay) -> None:
        client = await listed(play)

        async def report() -> None:
            await play.sleep(1.5)
            send_progress(play, 1)

        found, _ = await play.together(
            lambda: client.call_tool("research", progress=progress), report
        )
        assert type(found) is ZeroDivisionError
        await play.sleep(10)
        assert play.server.wire[-1] == (1.5, "tasks/cancel", "T")

    play_with(main, D, answers=answers(D, state(D)))


@pytest.mark.parametrize("waits", [False, True], ids=["plain", "async"])
@both_drivers
def test_progress_callback_of_started_task_that_raises_is_logged(
    play_with: Any, waits: bool, caplog: pytest.LogCaptureFixture
) -> None:
    """A started task isn't waited for yet, so no caller could catch the error."""

    async def main(play: ClientPlay) -> None:
        async def later(*_: object) -> None:
            await play.sleep(0)
            raise ZeroDivisionError

        def at_once(*_: object) -> None:
            raise ZeroDivisionError

        client = await listed(play)
        task = await client.start_tool("research", progress=later if waits else at_once)
        send_progress(play, 1, 2)
        assert await task.result() == OWLS

    play_with(main, D, answers=answers(D))
    assert [record.message for record in caplog.records] == ["progress failed"] * 2


# -- Cancellation ----------------------------------------------------------------------------------


@both_drivers
def test_cancel_in_2025_11_25_status_is_that_of_response(play_with: Any) -> None:
    async def main(play: ClientPlay) -> None:
        client = await listed(play)
        task = await client.start_tool("research", {"topic": "owls"})
        await task.cancel()
        await task.cancel()
        assert task.status == "cancelled"
        with pytest.raises(TaskCancelled, match="by request"):
            await task.result()
        assert [method for _, method, _ in play.server.wire] == ["tools/call", "tasks/cancel"]

    gone = state(D, "cancelled", statusMessage="cancelled by request")
    play_with(main, D, answers=answers(D, **{"tasks/cancel": gone}))


@pytest.mark.requirement("TX-17")
@both_drivers
def test_cancel_in_extension_is_cooperative(play_with: Any) -> None:
    script = answers(E, state(E), state(E, "cancelled"))

    async def main(play: ClientPlay) -> None:
        client = await listed(play)
        task = await client.start_tool("research", {"topic": "owls"})
        await task.cancel()
        assert task.status == "working"
        with pytest.raises(TaskCancelled, match="the task was cancelled"):
            await task.result()
        assert task.status == "cancelled"

    play_with(main, E, answers=script)


@both_drivers
def test_cancel_of_ended_task_is_no_error(play_with: Any) -> None:
    """2025-11-25 answers it with -32602."""
    script = answers(D, **{"tasks/cancel": Failure(-32602, "it is completed")})

    async def main(play: ClientPlay) -> None:
        client = await listed(play)
        task = await client.start_tool("research", {"topic": "owls"})
        await task.cancel()
        assert task.status == "completed"
        assert await task.result() == OWLS

    play_with(main, D, answers=script)


@both_forms
@both_drivers
def test_cancel_refused_raises(play_with: Any, version: str) -> None:
    script = answers(version, state(version), **{"tasks/cancel": Failure(-32603, "cannot")})

    async def main(play: ClientPlay) -> None:
        client = await listed(play)
        task = await client.start_tool("research", {"topic": "owls"})
        with pytest.raises(PeerError, match="cannot"):
            await task.cancel()

    play_with(main, version, answers=script)


@both_forms
@both_drivers
def test_cancel_ends_wait_of_others_at_once(play_with: Any, version: str) -> None:
    """The next poll is a minute away: the other waiter learns of it after 5 seconds."""
    interval = {"pollInterval" if version == D else "pollIntervalMs": 60_000}
    script = answers(
        version, state(version, "cancelled"), **{"tools/call": created(version, **interval)}
    )

    async def main(play: ClientPlay) -> None:
        client = await listed(play)
        task = await client.start_tool("research", {"topic": "owls"})

        async def cancel() -> None:
            await play.sleep(5)
            await task.cancel()

        outcome, _ = await play.together(task.result, cancel)
        assert type(outcome) is TaskCancelled
        assert play.clock() == pytest.approx(5)

    play_with(main, version, answers=script)


# -- Outcomes --------------------------------------------------------------------------------------


@both_drivers
def test_failed_in_extension_raises_inlined_error(play_with: Any) -> None:
    error = {"code": -32050, "message": "broken", "data": {"part": "door"}}

    async def main(play: ClientPlay) -> None:
        client = await listed(play)
        task = await client.start_tool("research", {"topic": "owls"})
        for _ in range(2):
            with pytest.raises(PeerError) as caught:
                await task.result()
            assert (caught.value.code, caught.value.message) == (-32050, "broken")
            assert caught.value.data == {"part": "door"}
            assert type(caught.value) is PeerError
        assert play.server.count("tasks/get") == 1

    play_with(main, E, answers=answers(E, state(E, "failed", error=error)))


@both_drivers
def test_failed_in_2025_11_25_raises_error_of_result(play_with: Any) -> None:
    script = answers(D, state(D, "failed"), **{"tasks/result": Failure(-32603, "broken")})

    async def main(play: ClientPlay) -> None:
        client = await listed(play)
        with pytest.raises(PeerError, match="broken"):
            await client.call_tool("research")
        assert play.server.count("tasks/result") == 1
        assert play.server.count("tasks/cancel") == 0

    play_with(main, D, answers=script)


@pytest.mark.requirement("TX-11")
@both_forms
@both_drivers
def test_tool_error_is_a_result(play_with: Any, version: str) -> None:
    result = CONTENT | {"isError": True}
    last = state(D, "failed") if version == D else ended(E, result)

    async def main(play: ClientPlay) -> None:
        client = await listed(play)
        found = await client.call_tool("research")
        assert (found.is_error, found.text) == (True, "owls")

    play_with(main, version, answers=answers(version, last, **{"tasks/result": result}))


@both_drivers
def test_cancelled_during_result_of_2025_11_25_raises_task_cancelled(play_with: Any) -> None:
    script = answers(
        D,
        state(D, "input_required"),
        state(D, "cancelled"),
        **{"tasks/result": Failure(-32602, "the task was cancelled")},
    )

    async def main(play: ClientPlay) -> None:
        client = await listed(play)
        with pytest.raises(TaskCancelled):
            await client.call_tool("research")
        assert play.server.count("tasks/cancel") == 0

    play_with(main, D, answers=script)


@both_forms
@both_drivers
def test_refresh_that_finds_the_end_ends_wait_of_others_at_once(
    play_with: Any, version: str
) -> None:
    """The next poll is a minute away. A refresh that finds no end doesn't cause one."""
    interval = {"pollInterval" if version == D else "pollIntervalMs": 60_000}
    script = answers(
        version, state(version), ended(version), **{"tools/call": created(version, **interval)}
    )

    async def main(play: ClientPlay) -> None:
        client = await listed(play)
        task = await client.start_tool("research", {"topic": "owls"})

        async def refresh() -> None:
            await play.sleep(5)
            assert (await task.refresh()).status == "working"
            await play.sleep(5)
            assert (await task.refresh()).status == "completed"

        outcome, _ = await play.together(task.result, refresh)
        assert outcome == OWLS
        assert play.clock() == pytest.approx(10)
        assert play.server.count("tasks/get") == 2

    play_with(main, version, answers=script)


@both_drivers
def test_cancelled_task_raises_with_the_message_of_its_status(play_with: Any) -> None:
    for message, text in ("by the admin", "by the admin"), (None, "the task was cancelled"):
        more = {} if message is None else {"statusMessage": message}

        async def main(play: ClientPlay, text: str = text) -> None:
            client = await listed(play)
            with pytest.raises(TaskCancelled) as caught:
                await client.call_tool("research")
            assert (caught.value.code, caught.value.message) == (-32603, text)

        play_with(main, E, answers=answers(E, state(E, "cancelled", **more)))
