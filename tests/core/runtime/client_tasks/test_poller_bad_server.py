"""Following tasks of servers that are wrong, slow, forgetful or gone, with both drivers."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, Any

import pytest
from msgspec.structs import replace

from mcp_core import (
    CLIENT_LIMITS,
    CallTimeout,
    ConnectionLost,
    InvalidToolResult,
    LocalProtocolError,
    McpError,
    PeerError,
    RemoteProtocolError,
)
from mcp_core.types import TextContent, UnknownContent
from tests.core.runtime.client_tasks.test_poller import (
    ADA,
    ASK,
    OWLS,
    RESEARCH,
    answers,
    both_drivers,
    both_forms,
    listed,
)
from tests.harness.jsonrpc import D, E, Message
from tests.harness.messages.scripted_server import (
    CONTENT,
    FORM,
    Callback,
    Failure,
    created,
    ended,
    result_of,
    state,
)
from tests.levels import long

if TYPE_CHECKING:
    from mcp_core.drivers import CallOptions
    from tests.harness.messages.scripted_server import ClientPlay

ASK_MODEL = {
    "method": "sampling/createMessage",
    "params": {
        "messages": [{"role": "user", "content": {"type": "text", "text": "hi"}}],
        "maxTokens": 9,
    },
}


def outcome_of(play_with: Any, version: str, script: Message, **options: Any) -> Any:
    """Return what `call_tool` returns or raises, and the server."""

    async def main(play: ClientPlay) -> Any:
        client = await listed(play)
        found = await result_of(lambda: client.call_tool("research", max_timeout=1e5))
        await play.sleep(1)
        return found, play.server

    return play_with(main, version, answers=script, **options)


def asking(*requests: Message, **more: Any) -> dict[str, Any]:
    """Return the answers of a server of the extension that asks these requests one after another.

    Each of `requests` is the whole of `inputRequests`.
    """
    states = [state(E, "input_required", inputRequests=each) for each in requests]
    return answers(E, *states, ended(E), **{"tasks/update": {}}, **more)


# -- Creation --------------------------------------------------------------------------------------


@pytest.mark.requirement("TX-4")
@pytest.mark.parametrize(
    ("version", "result"),
    [
        (D, {"resultType": "task", **state(D)}),  # flat
        (D, created(D, status="paused")),
        (D, created(D, createdAt=5)),
        (D, created(D, taskId=7)),
        (D, created(D, pollInterval="soon")),
        (D, created(D, ttl="long")),
        (E, {"resultType": "task", "task": state(E)}),  # nested
        (E, created(E, status="paused")),
        (E, created(E, createdAt=...)),
        (E, created(E, taskId=None)),
        (E, created(E, pollIntervalMs="soon")),
        (E, created(E, ttlMs="long")),
    ],
)
@both_drivers
def test_creation_invalid_raises(play_with: Any, version: str, result: Message) -> None:
    found, server = outcome_of(play_with, version, answers(version, **{"tools/call": result}))
    assert type(found) is RemoteProtocolError
    assert "tools/call" in str(found)
    assert server.count("tasks/get") == 0


@both_forms
@both_drivers
def test_creation_in_final_status_result_is_taken(play_with: Any, version: str) -> None:
    script = answers(version, **{"tools/call": created(version, "completed")})
    found, server = outcome_of(play_with, version, script)
    assert found == OWLS
    assert server.wire[-1] == (0, "tasks/result" if version == D else "tasks/get", "T")


@pytest.mark.parametrize(
    ("asked", "seconds"),
    [(0, 0.05), (-5, 0.05), (49.9, 0.05), (250.25, 0.25), (10**12, 3600), (10**400, 3600)],
    ids=["zero", "negative", "short", "float", "nanoseconds", "huge"],
)
@both_forms
@both_drivers
def test_poll_interval_is_kept_within_bounds(
    play_with: Any, version: str, asked: float, seconds: float
) -> None:
    name = "pollInterval" if version == D else "pollIntervalMs"
    script = answers(version, **{"tools/call": created(version, **{name: asked})})
    found, server = outcome_of(play_with, version, script)
    assert found == OWLS
    assert server.wire[1][0] == pytest.approx(seconds, abs=1e-3)


@both_forms
@both_drivers
def test_poll_interval_missing_is_a_second(play_with: Any, version: str) -> None:
    name = "pollInterval" if version == D else "pollIntervalMs"
    script = answers(version, **{"tools/call": created(version, **{name: ...})})
    found, server = outcome_of(play_with, version, script)
    assert found == OWLS
    assert server.wire[1][0] == 1


@pytest.mark.requirement("TX-9")
@both_forms
@both_drivers
def test_poll_interval_may_change(play_with: Any, version: str) -> None:
    name = "pollInterval" if version == D else "pollIntervalMs"
    script = answers(version, state(version, **{name: 5000}), ended(version))
    found, server = outcome_of(play_with, version, script)
    assert found == OWLS
    assert [now for now, method, _ in server.wire if method == "tasks/get"] == [1, 6]


# -- Time to live ----------------------------------------------------------------------------------


@pytest.mark.requirement("TX-24")
@both_forms
@both_drivers
def test_task_without_end_is_given_up_after_its_time_to_live(play_with: Any, version: str) -> None:
    members = {"ttl" if version == D else "ttlMs": 10_500}
    script = answers(
        version, state(version, **members), **{"tools/call": created(version, **members)}
    )
    found, server = outcome_of(play_with, version, script)
    assert type(found) is CallTimeout
    assert "time to live of 10.5 s" in str(found)
    # The last request is sent at the very end, for the result may just have arrived.
    assert [method for _, method, _ in server.wire[-2:]] == ["tasks/get", "tasks/cancel"]
    assert [now for now, _, _ in server.wire[-2:]] == [10.5, 10.5]


@both_drivers
def test_input_in_2025_11_25_without_end_is_given_up_after_time_to_live(play_with: Any) -> None:
    script = answers(D, state(D, "input_required", ttl=10_500), **{"tasks/result": None})
    found, server = outcome_of(play_with, D, script)
    assert type(found) is CallTimeout
    assert str(found) == "no answer to tasks/result within 9.5 s"
    assert [method for _, method, _ in server.wire[-2:]] == [
        "tasks/cancel",
        "notifications/cancelled",
    ]


@pytest.mark.parametrize("polls", [50, long(2000)])
@pytest.mark.parametrize("ttl", [None, 0, -1, 1e300])
@both_forms
@both_drivers
def test_time_to_live_that_is_no_limit_is_ignored(
    play_with: Any, version: str, ttl: Any, polls: int
) -> None:
    members = {"ttl" if version == D else "ttlMs": ttl}
    working = state(version, **members)
    script = answers(
        version,
        *[working] * polls,
        ended(version, **members),
        **{"tools/call": created(version, **members)},
    )
    found, _ = outcome_of(play_with, version, script)
    assert found == OWLS


# -- States ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "bad",
    [
        {"id": "another"},
        {"status": "paused"},
        {"createdAt": None},
        {"taskId": ...},
        {"lastUpdatedAt": {}},
    ],
)
@both_forms
@both_drivers
def test_state_invalid_raises_and_task_is_cancelled(
    play_with: Any, version: str, bad: Message
) -> None:
    found, server = outcome_of(play_with, version, answers(version, state(version, **bad)))
    assert type(found) is RemoteProtocolError
    assert server.wire[-1] == (1, "tasks/cancel", "T")


@both_forms
@both_drivers
def test_state_with_junk_as_times_is_read(play_with: Any, version: str) -> None:
    """Nothing is computed from the server's times: its clock may be wrong."""
    script = answers(
        version, ended(version, createdAt="yesterday", lastUpdatedAt="-1000-13-45", more=[1])
    )
    found, _ = outcome_of(play_with, version, script)
    assert found == OWLS


@pytest.mark.requirement("TSK-11")
@both_forms
@both_drivers
def test_ended_task_stays_ended(play_with: Any, version: str) -> None:
    """A server that says something else later changes nothing."""
    last = state(version, "failed") if version == D else state(E, "cancelled")
    script = answers(version, last, state(version), ended(version))

    async def main(play: ClientPlay) -> None:
        client = await listed(play)
        task = await client.start_tool("research")
        await play.sleep(1)
        await task.refresh()
        status = task.status
        assert status == last["status"]
        play.server.notify_state("working")
        await play.sleep(1)
        await task.refresh()
        assert task.status == status
        assert play.server.count("tasks/get") == 1

    play_with(main, version, answers=script)


@pytest.mark.requirement("TSK-11")
@both_drivers
def test_extension_task_created_as_completed_that_works_again_raises(play_with: Any) -> None:
    script = answers(E, state(E), **{"tools/call": created(E, "completed")})
    found, server = outcome_of(play_with, E, script)
    assert str(found) == "the task was completed, and is not any more"
    assert server.count("tasks/cancel") == 0


@pytest.mark.parametrize(
    ("last", "text"),
    [
        (state(E, "failed"), "is failed, and has no error"),
        (state(E, "failed", result=CONTENT), "is failed, and has no error"),
        (state(E, "failed", error={"message": "x"}), "tasks/get is invalid"),
        (state(E, "completed"), "is completed, and has no result"),
        (state(E, "completed", error={"code": 1, "message": "x"}), "has no result"),
        (state(E, "completed", result=5), "the result of the task is invalid"),
        (state(E, "completed", result={"content": 5}), "the result of the task is invalid"),
        (state(E, "completed", result={"content": [5]}), "the result of the task is invalid"),
        (state(E, "completed", result=created(E)), "the result of the task is invalid"),
    ],
)
@both_drivers
def test_extension_outcome_invalid_raises(play_with: Any, last: Message, text: str) -> None:
    found, server = outcome_of(play_with, E, answers(E, last))
    assert type(found) is RemoteProtocolError
    assert text in str(found)
    ended_before = "tasks/get" not in text
    assert server.count("tasks/cancel") == (not ended_before)


@pytest.mark.parametrize("result", [{"content": 5}, {"content": [5]}, created(D)])
@both_drivers
def test_2025_11_25_result_invalid_raises(play_with: Any, result: Message) -> None:
    found, _ = outcome_of(play_with, D, answers(D, **{"tasks/result": result}))
    assert type(found) is RemoteProtocolError
    assert "the result of the task is invalid" in str(found)


WRONG_OUTPUT: Message = CONTENT | {"structuredContent": {"n": "x"}}


def wrong_outputs(version: str) -> Message:
    schema = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}
    tool = RESEARCH | {"outputSchema": schema, "execution": {"taskSupport": "required"}}
    lists = {"tools/list": {"tools": [tool]}, "tasks/result": WRONG_OUTPUT}
    return answers(version, ended(version, WRONG_OUTPUT), **lists)


@both_forms
@both_drivers
def test_result_that_does_not_fit_output_schema_raises(play_with: Any, version: str) -> None:
    found, server = outcome_of(play_with, version, wrong_outputs(version))
    assert type(found) is InvalidToolResult
    assert "the result of tool 'research'" in str(found)
    assert found.result.structured_content == {"n": "x"}
    assert server.count("tasks/cancel") == 0  # it has ended


@both_forms
@both_drivers
def test_result_that_does_not_fit_output_schema_is_given_with_warn(
    play_with: Any, version: str
) -> None:
    """The option of the call that became a task holds for the task, and the line comes once."""

    async def main(play: ClientPlay) -> None:
        await play.client.list_tools()
        problems: list[str] = []
        options: CallOptions = {"check_output": "warn", "problems": problems}
        result = await play.client.call_tool("research", **options)
        assert result.structured_content == {"n": "x"}
        assert len(problems) == 1
        task = await play.client.start_tool("research", **options)
        assert await task.result() == result
        assert len(problems) == 2

    play_with(main, version, answers=wrong_outputs(version))


@both_forms
@both_drivers
def test_result_of_task_is_read_by_its_usable_parts(play_with: Any, version: str) -> None:
    """A task's result is read as a call's result, and the caller's list names the omissions."""
    part: Message = {"content": [{"type": "text"}, {"type": "widget"}, *CONTENT["content"]]}

    async def main(play: ClientPlay) -> None:
        problems: list[str] = []
        client = await listed(play)
        result = await client.call_tool("research", problems=problems)
        assert result.content == [UnknownContent("widget", {}), TextContent("owls")]
        text = (
            "content[0] 'text' was left out: Object missing required field `text` (at content[0])"
        )
        assert problems == [f"the result of tool 'research': {text}"]

    play_with(
        main, version, answers=answers(version, ended(version, part), **{"tasks/result": part})
    )


@both_forms
@both_drivers
def test_result_over_limit_of_messages_ends_connection(play_with: Any, version: str) -> None:
    large = {"content": [{"type": "text", "text": "x" * (70 << 10)}]}
    script = answers(version, ended(version, large), **{"tasks/result": large})
    limits = replace(CLIENT_LIMITS, message=64 << 10)
    found, _ = outcome_of(play_with, version, script, limits=limits)
    assert type(found) is RemoteProtocolError, found


# -- Questions of the extension --------------------------------------------------------------------


@pytest.mark.requirement("TX-12", "TX-15")
@both_drivers
def test_key_with_another_question_raises(play_with: Any) -> None:
    other = {"method": "elicitation/create", "params": FORM | {"message": "And now?"}}
    asked: list[str] = []

    def elicit(params: Any) -> Message:
        asked.append(params.message)
        return {"name": "Ada"}

    script = asking({"k": ASK}, {"k": other})
    found, server = outcome_of(play_with, E, script, on_elicit=elicit)
    assert type(found) is RemoteProtocolError
    assert "key of an earlier request" in str(found)
    assert asked == ["Which?"]
    assert server.wire[-1][1:] == ("tasks/cancel", "T")


@pytest.mark.requirement("TX-15")
@both_drivers
def test_question_repeated_in_another_order_is_answered_once(play_with: Any) -> None:
    """A server may keep a form in a hash table, whose order is another one each time."""
    properties = {"a": {"type": "string"}, "b": {"type": "string"}}
    turned = dict(reversed(properties.items()))

    def form(fields: Message) -> Message:
        schema = {"type": "object", "properties": fields}
        params = {"requestedSchema": schema, "message": "Which?"}
        return {"method": "elicitation/create", "params": params}

    asked: list[Any] = []
    script = asking({"k": form(properties)}, {"k": form(turned)}, {"k2": ASK, "k": form(turned)})
    found, server = outcome_of(play_with, E, script, on_elicit=asked.append)
    assert found == OWLS
    assert len(asked) == 2
    assert [each["params"]["inputResponses"] for each in server.sent("tasks/update")] == [
        {"k": {"action": "cancel"}},
        {"k2": {"action": "cancel"}},
    ]


@pytest.mark.requirement("TX-16")
@pytest.mark.parametrize(
    ("requests", "text"),
    [
        ({"k": ASK_MODEL}, "this client did not declare"),
        ({"k": {"method": "roots/list"}}, "this client did not declare"),
        (
            {"k": {"method": "elicitation/create", "params": {"message": "?", "mode": "url"}}},
            "tasks/get is invalid",
        ),
        (
            {"k": ASK, "page": {"method": "elicitation/create", "params": {
                "message": "?", "mode": "url", "url": "https://example.com"}}},
            "this client did not declare",
        ),
        ({"k": {"method": "tools/call", "params": {}}}, "tasks/get is invalid"),
        ({str(number): ASK for number in range(10_000)}, "asks 10000 questions at once"),
    ],
)  # fmt: skip
@both_drivers
def test_question_that_must_not_be_asked_raises(
    play_with: Any, requests: Message, text: str
) -> None:
    asked: list[Any] = []
    found, server = outcome_of(play_with, E, asking(requests), on_elicit=asked.append)
    assert type(found) is RemoteProtocolError
    assert text in str(found)
    assert asked == []
    assert server.wire[-1][1:] == ("tasks/cancel", "T")


@both_drivers
def test_questions_without_end_raise(play_with: Any) -> None:
    number = 0

    def ask(request: Message) -> Message:
        nonlocal number
        number += 100
        requests = {str(each): ASK for each in range(number, number + 100)}
        return state(E, "input_required", inputRequests=requests)

    script = answers(E, ask, **{"tasks/update": {}})
    found, server = outcome_of(play_with, E, script, on_elicit=lambda params: None)
    assert str(found) == "the task asks more than 1000 questions"
    assert server.count("tasks/update") == 10


@both_drivers
def test_creation_that_requires_input_is_asked_for_at_once(play_with: Any) -> None:
    script = asking({"k": ASK}, **{"tools/call": created(E, "input_required")})
    found, server = outcome_of(play_with, E, script, on_elicit=lambda params: {"name": "Ada"})
    assert found == OWLS
    assert [(now, method) for now, method, _ in server.wire[1:]] == [
        (0, "tasks/get"),
        (0, "tasks/update"),
        (1, "tasks/get"),
    ]


@both_drivers
def test_input_required_without_questions_is_polled_on(play_with: Any) -> None:
    script = answers(E, state(E, "input_required"), state(E, "input_required"), ended(E))
    found, server = outcome_of(play_with, E, script)
    assert found == OWLS
    assert server.count("tasks/update") == 0


@both_drivers
def test_callback_that_raises_ends_call_and_task(play_with: Any) -> None:
    def elicit(params: Any) -> Message:
        raise ZeroDivisionError

    found, server = outcome_of(play_with, E, asking({"k": ASK}), on_elicit=elicit)
    assert type(found) is ZeroDivisionError
    assert server.wire[-1][1:] == ("tasks/cancel", "T")


@both_drivers
def test_callback_that_refuses_form_cancels_it(play_with: Any) -> None:
    def elicit(params: Any) -> Message:
        raise McpError(-1, "not now")

    found, server = outcome_of(play_with, E, asking({"k": ASK}), on_elicit=elicit)
    assert found == OWLS
    (update,) = server.sent("tasks/update")
    assert update["params"]["inputResponses"] == {"k": {"action": "cancel"}}


@both_drivers
def test_callback_that_refuses_to_sample_ends_call_and_task(play_with: Any) -> None:
    script = asking({"k": ASK_MODEL})
    found, server = outcome_of(play_with, E, script, on_sample=lambda params: None)
    assert type(found) is McpError
    assert server.count("tasks/update") == 0
    assert server.wire[-1][1:] == ("tasks/cancel", "T")


@both_drivers
def test_callback_failed_question_is_asked_again_by_next_waiter(play_with: Any) -> None:
    """A question is only over once the server has a response to it."""
    tries: list[int] = []

    def elicit(params: Any) -> Message:
        tries.append(1)
        if len(tries) == 1:
            raise ZeroDivisionError
        return {"name": "Ada"}

    async def main(play: ClientPlay) -> None:
        client = await listed(play)
        task = await client.start_tool("research")
        with pytest.raises(ZeroDivisionError):
            await task.result()
        assert await task.result() == OWLS
        (update,) = play.server.sent("tasks/update")
        assert update["params"]["inputResponses"] == {"k": ADA}

    script = asking({"k": ASK}, {"k": ASK})
    play_with(main, E, answers=script, on_elicit=elicit)


# -- Failures that may pass ------------------------------------------------------------------------


@pytest.mark.parametrize("failure", [Failure(-32603, "a moment"), Failure(-32000, "busy")])
@both_forms
@both_drivers
def test_poll_that_fails_is_repeated(play_with: Any, version: str, failure: Failure) -> None:
    if version == E and failure.code == -32000:
        failure = Failure(429, "busy")
    script = answers(version, failure, failure, state(version), failure, ended(version))
    found, server = outcome_of(play_with, version, script)
    assert found == OWLS
    times = [now for now, method, _ in server.wire if method == "tasks/get"]
    assert times == [1, 3, 7, 8, 10]


@both_forms
@both_drivers
def test_poll_that_keeps_failing_raises(play_with: Any, version: str) -> None:
    script = answers(version, Failure(-32603, "broken"))
    found, server = outcome_of(play_with, version, script)
    assert type(found) is PeerError
    assert server.count("tasks/get") == 6
    assert server.wire[-1][1:] == ("tasks/cancel", "T")


@pytest.mark.parametrize(
    ("interval", "delays"), [(1, [1, 3, 7, 15, 30]), (10, [10, 30, 30, 30, 30]), (60, [60] * 5)]
)
@both_forms
@both_drivers
def test_poll_that_keeps_failing_is_delayed_by_half_a_minute_at_most(
    play_with: Any, version: str, interval: int, delays: list[int]
) -> None:
    """But never by less than the interval that the server asks for."""
    name = "pollInterval" if version == D else "pollIntervalMs"
    script = answers(version, Failure(-32603, "broken"))
    script["tools/call"] = created(version, **{name: interval * 1000})
    _, server = outcome_of(play_with, version, script)
    times = [now for now, method, _ in server.wire if method == "tasks/get"]
    gaps = [after - before for before, after in pairwise(times)]
    assert gaps == [delay + interval for delay in delays]


@both_forms
@both_drivers
def test_task_forgotten_by_server_raises_and_is_not_cancelled(play_with: Any, version: str) -> None:
    script = answers(version, state(version), Failure(-32602, "no such task"))
    found, server = outcome_of(play_with, version, script)
    assert type(found) is PeerError
    assert found.code == -32602
    assert server.count("tasks/cancel") == 0


@both_drivers
def test_update_that_fails_is_repeated_without_asking_again(play_with: Any) -> None:
    asked: list[Any] = []

    def elicit(params: Any) -> Message:
        asked.append(params)
        return {"name": "Ada"}

    script = asking({"k": ASK}) | {"tasks/update": [Failure(-32603), Failure(-32603), {}]}
    found, server = outcome_of(play_with, E, script, on_elicit=elicit)
    assert found == OWLS
    assert len(asked) == 1
    assert [each["params"]["inputResponses"] for each in server.sent("tasks/update")] == [
        {"k": ADA}
    ] * 3


@both_drivers
def test_result_in_2025_11_25_that_fails_while_task_runs_is_requested_again(
    play_with: Any,
) -> None:
    """One more `tasks/get` tells a failed request from a failed task."""
    script = answers(
        D,
        state(D, "input_required"),
        state(D, "input_required"),
        **{"tasks/result": [Failure(-32603, "a moment"), CONTENT]},
    )
    found, server = outcome_of(play_with, D, script)
    assert found == OWLS
    assert [(now, method) for now, method, _ in server.wire[1:]] == [
        (1, "tasks/get"),
        (1, "tasks/result"),
        (1, "tasks/get"),
        (2, "tasks/result"),
    ]


# -- Notifications ---------------------------------------------------------------------------------


@pytest.mark.requirement("TSK-19")
@both_forms
@both_drivers
def test_notifications_at_wrong_times_change_nothing(play_with: Any, version: str) -> None:
    """Before the task is known, twice, of unknown ids, and of a status that never comes."""

    def create(request: Message) -> Message:
        server.notify_state()
        server.notify_state("completed")
        return created(version)

    def poll(request: Message) -> Message:
        server.notify_state("completed", id="unknown")
        server.notify_state("working")  # nothing new
        server.notify_state("working")
        return next(states)

    states = iter([state(version), state(version), ended(version)])
    script = answers(version, poll, **{"tools/call": create})
    server: Any = None

    async def main(play: ClientPlay) -> None:
        nonlocal server
        server = play.server
        client = await listed(play)
        assert await client.call_tool("research") == OWLS
        times = [now for now, method, _ in server.wire if method == "tasks/get"]
        assert times == [1, 2, 3]

    play_with(main, version, answers=script)


@pytest.mark.requirement("TSK-19")
@both_forms
@both_drivers
def test_notification_ends_wait_early(play_with: Any, version: str) -> None:
    """The server asks for one poll a minute; its notification at 7 seconds brings the only one."""
    members = {"pollInterval" if version == D else "pollIntervalMs": 60_000}
    script = answers(version, **{"tools/call": created(version, **members)})

    async def main(play: ClientPlay) -> None:
        client = await listed(play)

        async def notify() -> None:
            await play.sleep(7)
            play.server.notify_state("completed")
            play.server.notify_state("completed")

        found, _ = await play.together(lambda: client.call_tool("research"), notify)
        assert found == OWLS
        assert [now for now, method, _ in play.server.wire if method == "tasks/get"] == [7]

    play_with(main, version, answers=script)


# -- The end of the connection ---------------------------------------------------------------------


@both_forms
@both_drivers
def test_server_that_closes_ends_every_wait_at_once(play_with: Any, version: str) -> None:
    """Four waiters sleep until the next poll in a minute; they all fail at 5 seconds."""
    members = {"pollInterval" if version == D else "pollIntervalMs": 60_000}
    script = answers(version, **{"tools/call": created(version, **members)})

    async def main(play: ClientPlay) -> None:
        client = await listed(play)
        task = await client.start_tool("research")

        async def states() -> None:
            async for _ in task.states():
                pass

        async def hang_up() -> None:
            await play.sleep(5)
            play.server.hang_up()

        *outcomes, _ = await play.together(
            task.result, states, task.result, lambda: client.call_tool("research"), hang_up
        )
        assert [type(each) for each in outcomes] == [ConnectionLost] * 4
        assert play.clock() == pytest.approx(5)
        for function in (task.result, task.refresh, task.cancel):
            with pytest.raises(ConnectionLost):
                await function()

    play_with(main, version, answers=script)


@both_forms
@both_drivers
def test_client_closed_ends_every_wait(play_with: Any, version: str) -> None:
    async def main(play: ClientPlay) -> None:
        client = await listed(play)
        task = await client.start_tool("research")

        async def close() -> None:
            await play.sleep(1.5)
            await client.aclose()

        *outcomes, _ = await play.together(task.result, task.result, close)
        assert [type(each) for each in outcomes] == [ConnectionLost] * 2
        with pytest.raises(ConnectionLost):
            await task.result()

    play_with(main, version, answers=answers(version, state(version)))


@both_drivers
def test_input_wait_ends_with_connection(play_with: Any) -> None:
    """The user would take 1,000 seconds; the server is gone after 5."""

    async def main(play: ClientPlay) -> None:
        async def elicit(params: Any) -> None:
            await play.sleep(1000)

        on_elicit.function = elicit
        client = await listed(play)

        async def hang_up() -> None:
            await play.sleep(5)
            play.server.hang_up()

        found, _ = await play.together(lambda: client.call_tool("research"), hang_up)
        assert type(found) is ConnectionLost
        assert play.clock() == pytest.approx(5)

    on_elicit = Callback()
    play_with(main, E, answers=asking({"k": ASK}), on_elicit=on_elicit)


@both_drivers
def test_cancel_answered_for_another_task_raises(play_with: Any) -> None:
    async def main(play: ClientPlay) -> None:
        client = await listed(play)
        task = await client.start_tool("research")
        with pytest.raises(RemoteProtocolError, match="the state of another task"):
            await task.cancel()
        assert task.status == "working"

    another = state(D, "cancelled", id="another")
    play_with(main, D, answers=answers(D, **{"tasks/cancel": another}))


@both_drivers
def test_server_that_cannot_cancel_is_not_asked_to(play_with: Any) -> None:
    """Only 2025-11-25 has a capability for it."""
    offers: Message = {"tools": {}, "tasks": {"requests": {"tools": {"call": {}}}}}

    async def main(play: ClientPlay) -> None:
        client = await listed(play)
        await play.give_up_after(1.5, lambda: client.call_tool("research"))
        assert play.server.count("tasks/cancel") == 0
        task = await client.start_tool("research")
        with pytest.raises(LocalProtocolError, match=r"tasks\.cancel"):
            await task.cancel()

    play_with(main, D, answers=answers(D, state(D)), offers=offers)
