"""Subscribing to followed tasks, with both drivers (2026-07-28)."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import pytest
import trio

from mcp_core.registry import Context, Server
from mcp_trio import connect
from tests.core.runtime.client_tasks.test_poller import OWLS, answers, both_drivers, listed
from tests.harness.jsonrpc import D, E, Message
from tests.harness.messages.scripted_server import (
    LISTEN,
    Failure,
    created,
    ended,
    state,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.harness.messages.scripted_server import ClientPlay

ID = "io.modelcontextprotocol/subscriptionId"


def accept(server: Any, *, only: list[str] | None = None) -> Callable[[Message], None]:
    """Return an answer to `subscriptions/listen` that accepts what is requested, or `only` that."""

    def acknowledge(request: Message) -> None:
        wanted = request["params"]["notifications"]
        accepted = wanted if only is None else {"taskIds": only}
        server.notify(
            "notifications/subscriptions/acknowledged",
            {"notifications": accepted, "_meta": {ID: request["id"]}},
        )

    return acknowledge


def polls(play: ClientPlay) -> list[float]:
    return [now for now, method, _ in play.server.wire if method == "tasks/get"]


def listens(play: ClientPlay) -> list[tuple[float, list[str]]]:
    return [
        (now, message["params"]["notifications"]["taskIds"])
        for now, message in play.server.log
        if message.get("method") == LISTEN
    ]


@pytest.mark.requirement("TX-20")
@both_drivers
def test_longer_task_is_subscribed_to_and_polled_slowly(play_with: Any) -> None:
    """After 2 seconds the client subscribes, polls every 30 and cancels the stream at the end."""
    script = answers(E, *[state(E)] * 4, ended(E))

    async def main(play: ClientPlay) -> None:
        play.server.answers[LISTEN] = [accept(play.server)]
        client = await listed(play)

        async def notify() -> None:
            await play.sleep(50)
            (request,) = play.server.sent(LISTEN)
            play.server.notify(
                "notifications/tasks", state(E, "completed") | {"_meta": {ID: request["id"]}}
            )

        found, _ = await play.together(lambda: client.call_tool("research"), notify)
        assert found == OWLS
        assert listens(play) == [(2, ["T"])]
        # The wait at 2 s began before the server had accepted.
        assert polls(play) == [1, 2, 3, 33, 50]
        await play.sleep(1)
        (request,) = play.server.sent(LISTEN)
        (cancelled,) = play.server.sent("notifications/cancelled")
        assert cancelled["params"]["requestId"] == request["id"]

    play_with(main, E, answers=script)


@pytest.mark.parametrize(
    ("version", "script"),
    [
        (E, answers(E, state(E), ended(E))),
        (D, answers(D, *[state(D)] * 5, ended(D))),
    ],
    ids=["short", "2025-11-25"],
)
@both_drivers
def test_task_that_is_short_or_of_2025_11_25_is_not_subscribed_to(
    play_with: Any, version: str, script: Any
) -> None:
    async def main(play: ClientPlay) -> None:
        client = await listed(play)
        assert await client.call_tool("research") == OWLS
        assert listens(play) == []

    play_with(main, version, answers=script)


@pytest.mark.parametrize("refusal", ["error", "nothing", "others", "end"])
@both_drivers
def test_subscription_refused_task_is_polled_as_before(play_with: Any, refusal: str) -> None:
    """Four kinds of refusal: each costs one request, and no poll is lost or slower."""

    async def main(play: ClientPlay) -> None:
        play.server.answers[LISTEN] = [
            {
                "error": Failure(-32601),
                "nothing": accept(play.server, only=[]),
                "others": accept(play.server, only=["another"]),
                "end": {},
            }[refusal]
        ]
        client = await listed(play)
        assert await client.call_tool("research") == OWLS
        assert polls(play) == [1, 2, 3, 4, 5, 6]
        assert len(listens(play)) == 1

    play_with(main, E, answers=answers(E, *[state(E)] * 5, ended(E)))


@both_drivers
def test_several_tasks_share_one_subscription(play_with: Any) -> None:
    """A larger subscription replaces the smaller one, which is closed when it is accepted."""
    ids = [f"T{number}" for number in range(5)]

    def poll(request: Message) -> Message:
        id = request["params"]["taskId"]
        return (ended if play_clock[0]() > 95 else state)(E, id=id)

    play_clock: list[Callable[[], float]] = []

    async def main(play: ClientPlay) -> None:
        play_clock.append(play.clock)
        play.server.answers[LISTEN] = [accept(play.server)]
        client = await listed(play)
        tasks = [await client.start_tool("research") for _ in ids]
        assert await play.together(*(task.result for task in tasks)) == [OWLS] * 5
        (first, (one,)), (second, others) = listens(play)
        assert (first, second) == (2, 3)
        assert one in others
        assert sorted(others) == ids
        assert play.server.count("tasks/get") < 50  # in a hundred seconds; each second without it
        await play.sleep(1)
        closed = [
            each["params"]["requestId"] for each in play.server.sent("notifications/cancelled")
        ]
        assert closed == [request["id"] for request in play.server.sent(LISTEN)]

    script = answers(E, poll, **{"tools/call": [created(E, id=id) for id in ids]})
    play_with(main, E, answers=script)


@both_drivers
def test_subscription_is_replaced_once_a_second_at_most(play_with: Any) -> None:
    """Tasks that join one after the other would otherwise open a request each."""
    ids = [f"T{number}" for number in range(5)]
    quick: Message = {"pollIntervalMs": 100}

    def poll(request: Message) -> Message:
        id = request["params"]["taskId"]
        return (ended if play_clock[0]() > 2.5 else state)(E, id=id, **quick)

    play_clock: list[Callable[[], float]] = []

    async def main(play: ClientPlay) -> None:
        play_clock.append(play.clock)
        play.server.answers[LISTEN] = [accept(play.server)]
        client = await listed(play)

        async def follow(number: int) -> None:
            await play.sleep(0.3 * number)
            await play.give_up_after(2.9 - play.clock(), lambda: client.call_tool("research"))

        await play.together(*(partial(follow, number) for number in range(len(ids))))
        assert [len(joined) for _, joined in listens(play)] == [1, 4, 5]
        first, second, third = (now for now, _ in listens(play))
        assert first == pytest.approx(0.2, abs=0.01)
        assert 1 <= second - first < 1.11
        assert 1 <= third - second < 1.11

    script = answers(E, poll, **{"tools/call": [created(E, id=id, **quick) for id in ids]})
    play_with(main, E, answers=script)


@both_drivers
def test_subscription_without_answer_is_waited_for(play_with: Any) -> None:
    """Its outcome says whether to subscribe to further tasks at all."""
    ids = ["T0", "T1"]

    async def main(play: ClientPlay) -> None:
        play.server.answers[LISTEN] = [None]
        client = await listed(play)
        tasks = [await client.start_tool("research") for _ in ids]

        async def follow(number: int) -> None:
            await play.sleep(5.0 * number)
            await play.give_up_after(20 - play.clock(), tasks[number].result)

        await play.together(*(partial(follow, number) for number in range(len(ids))))
        assert len(listens(play)) == 1
        assert len(polls(play)) > 30  # as often as without a subscription

    def poll(request: Message) -> Message:
        return state(E, id=request["params"]["taskId"])

    script = answers(E, poll, **{"tools/call": [created(E, id=id) for id in ids]})
    play_with(main, E, answers=script)


@both_drivers
def test_subscription_is_closed_when_call_is_given_up(play_with: Any) -> None:
    async def main(play: ClientPlay) -> None:
        play.server.answers[LISTEN] = [accept(play.server)]
        client = await listed(play)
        await play.give_up_after(5.5, lambda: client.call_tool("research"))
        await play.sleep(1)
        (request,) = play.server.sent(LISTEN)
        (cancelled,) = play.server.sent("notifications/cancelled")
        assert cancelled["params"]["requestId"] == request["id"]
        assert play.server.count("tasks/cancel") == 1

    play_with(main, E, answers=answers(E, state(E)))


async def test_own_server_wakes_client_when_task_ends(autojump_clock: object) -> None:
    """A task of five minutes ends on time with fewer than 20 polls: its notification wakes."""
    server = Server("lab")

    @server.tool(task="optional")
    async def research(context: Context) -> str:
        """Take five minutes."""
        await trio.sleep(300)
        return "owls"

    sent: list[bytes] = []
    trace = lambda direction, line: sent.append(line) if direction == "sent" else None  # noqa: E731
    async with connect(server, versions=[E], trace=trace) as client:
        began = trio.current_time()
        assert (await client.call_tool("research")).text == "owls"
        assert trio.current_time() - began == pytest.approx(300, abs=0.1)
    assert sum(b"tasks/get" in line for line in sent) < 20
    assert sum(b"subscriptions/listen" in line for line in sent) == 1
