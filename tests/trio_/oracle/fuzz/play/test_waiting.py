"""How long a play waits: a server that doesn't answer costs a few timeouts, not one a step."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
import trio

from mcp_trio.oracle.fuzz._call_times import DEFAULT_CALL_TIMEOUT
from mcp_trio.oracle.fuzz.play._player import Player, play_case
from tests.trio_.oracle.fuzz.memory_http import EMPTY_STREAM, played_over_http, response_to
from tests.trio_.oracle.fuzz.memory_target import OLD, MemoryTarget, answers, same_each_time

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from mcp_trio.oracle.fuzz._case import Case, Outcome, Step
    from tests.trio_.oracle.fuzz.memory_http import HttpResponse

    Json = Mapping[str, Any]

OPEN: Step = ("open", OLD, "whole", "all")
WAIT: Step = ("wait",)
CALL: Step = ("call", "nap", {}, ())


def request(method: str, **params: Any) -> Step:
    return ("request", method, params, "int")


LIST = request("tools/list")
LISTS: Case = [LIST, WAIT] * 10
PROMPTS: Case = [request("prompts/get", name="plan"), WAIT] * 4


def drops(*methods: str) -> Callable[[Json], Iterator[dict[str, Any]]]:
    """Return the answers of a server that has none to requests of these methods."""
    return lambda message: iter(()) if message.get("method") in methods else answers(message)


def only(*methods: str) -> Callable[[Json], Iterator[dict[str, Any]]]:
    """Return the answers of a server that has some to requests of these methods only."""
    return lambda message: answers(message) if message.get("method") in methods else iter(())


async def played(
    respond: Callable[[Json], Iterator[dict[str, Any]]],
    *steps: Step,
    times: Mapping[str, float] | None = None,
) -> tuple[Outcome, float]:
    """Play a case, and return its outcome and how long it took."""
    began = trio.current_time()
    target = MemoryTarget(same_each_time(respond), times=times)
    outcome = await play_case(target, [OPEN, *steps], Player())
    return outcome, trio.current_time() - began


@pytest.mark.parametrize(
    "steps",
    [LISTS, [("page", "tools/list", "all")] * 10, [("page", "tools/list", "stale")] * 5],
    ids=["requests", "pages", "stale pages"],
)
async def test_server_that_answers_nothing_ends_the_case_early(
    autojump_clock: Any, steps: Case
) -> None:
    outcome, seconds = await played(only("initialize"), *steps)
    assert [each.kind for each in outcome.faults] == ["hang"]
    assert outcome.faults[0].is_certain
    assert seconds < 1.5 * DEFAULT_CALL_TIMEOUT


async def test_server_that_drops_some_requests_gets_all_steps_in_less_time(
    autojump_clock: Any,
) -> None:
    received = []

    def respond(message: Json) -> Iterator[dict[str, Any]]:
        received.append(message.get("method"))
        return drops("tools/list")(message)

    outcome, seconds = await played(respond, *LISTS)
    assert [(each.row, each.method) for each in outcome.faults] == [("RPC-35", "tools/list")]
    assert received.count("tools/list") == 10
    assert seconds < DEFAULT_CALL_TIMEOUT + 2


@pytest.mark.parametrize(("seconds", "count"), [(1.5, 1), (3.0, 2)])
async def test_each_request_has_its_whole_time_also_if_others_were_dropped(
    autojump_clock: Any, seconds: float, count: int
) -> None:
    steps = [LIST, WAIT, LIST, WAIT, request("prompts/list"), WAIT]
    outcome, _ = await played(drops("tools/list"), *steps, times={"prompts/list": seconds})
    assert [each.row for each in outcome.faults] == ["RPC-35"] * count


async def test_call_that_blocks_the_server_costs_no_timeout_for_each_request_behind_it(
    autojump_clock: Any,
) -> None:
    outcome, seconds = await played(answers, CALL, WAIT, *LISTS, times={"tools/call": 1e9})
    assert outcome.faults == []
    assert outcome.is_blocked
    assert seconds < 3 * DEFAULT_CALL_TIMEOUT


async def test_tool_that_was_too_slow_has_little_time_in_the_rest_of_the_case(
    autojump_clock: Any,
) -> None:
    """Only its second call gets as much time as the first one."""
    outcome, seconds = await played(drops("tools/call"), *[CALL, WAIT, ("cancel", 0)] * 3)
    assert outcome.faults == []
    assert seconds < 2.5 * DEFAULT_CALL_TIMEOUT


async def test_requests_that_run_no_tool_are_waited_for_once(autojump_clock: Any) -> None:
    outcome, seconds = await played(drops("prompts/get"), *PROMPTS)
    assert [(each.row, each.is_certain) for each in outcome.faults] == [("RPC-35", True)]
    assert seconds < 1.5 * DEFAULT_CALL_TIMEOUT


async def test_requests_in_turn_have_their_time_if_others_were_dropped(autojump_clock: Any) -> None:
    """The server handles one after the other, each in time."""
    slow: Case = [*[request("prompts/list")] * 3, WAIT]
    times = {"prompts/list": 1.8}
    outcome, _ = await played(drops("tools/list"), LIST, WAIT, LIST, WAIT, *slow, times=times)
    assert [(each.row, each.method) for each in outcome.faults] == [("RPC-35", "tools/list")]


async def test_request_behind_slow_prompts_is_waited_for(autojump_clock: Any) -> None:
    """Three prompts in turn take longer than a call and a probe, but the server isn't silent."""
    prompts: Case = [request("prompts/get", name="plan")] * 3
    outcome, _ = await played(answers, *prompts, LIST, times={"prompts/get": 8.0})
    assert outcome.faults == []


class SlowEcho:
    """A machine that is slow all the time."""

    async def is_slow(self) -> bool:
        """Return True."""
        await trio.lowlevel.checkpoint()
        return True


async def test_process_after_one_that_a_call_has_blocked_has_the_time_of_a_slow_machine(
    autojump_clock: Any,
) -> None:
    blocked: Case = [OPEN, CALL, LIST, ("reconnect",)]
    target = MemoryTarget(same_each_time(answers), times={"tools/call": 1e9, "tools/list": 3.0})
    player = Player(echo=SlowEcho())  # type: ignore[arg-type]
    outcome = await play_case(target, [*blocked, OPEN, LIST], player)
    assert outcome.faults == []


async def test_prompts_in_turn_have_their_time_if_the_first_one_was_slow(
    autojump_clock: Any,
) -> None:
    """The server handles one after the other, and each takes most of a call's time."""
    outcome, _ = await played(answers, *PROMPTS, times={"prompts/get": 8.0})
    assert outcome.faults == []


async def test_two_clients_of_a_server_that_answers_nothing_end_the_case_early(
    autojump_clock: Any,
) -> None:
    began, never = trio.current_time(), trio.Event()

    def respond(message: Json) -> HttpResponse:
        is_dead = message.get("method") not in ("initialize", "notifications/initialized")
        return EMPTY_STREAM._replace(after=never) if is_dead else response_to(message)

    second: list[Step] = [("on", 1, *step) for step in (OPEN, *LISTS)]
    outcome, _ = await played_over_http(respond, [OPEN, LIST, WAIT, *second, *LISTS])
    assert "hang" in [each.kind for each in outcome.faults]
    assert trio.current_time() - began < 1.5 * DEFAULT_CALL_TIMEOUT
