"""Cases with a second client of the same server."""

from __future__ import annotations

import itertools
import json
import re
from typing import TYPE_CHECKING, Any

import pytest
import trio

from mcp_trio.oracle.fuzz._call_guard import CallGuard
from mcp_trio.oracle.fuzz._case import (
    avoided_name,
    check_clients,
    decode_case,
    encode_case,
    shown_case,
    without_orphans,
)
from mcp_trio.oracle.fuzz._fault import TargetFault
from mcp_trio.oracle.fuzz.campaign._examination import joined
from mcp_trio.oracle.fuzz.campaign._shrink import ShrinkBudget, shrink
from mcp_trio.oracle.fuzz.causes._cause import possible_causes, smallest_cause
from mcp_trio.oracle.fuzz.play._clients import ONE_CLIENT
from mcp_trio.oracle.fuzz.play._player import play_case
from mcp_trio.testing import find_faults
from tests.trio_.oracle.fuzz.memory_http import HttpResponse, played_over_http, response_to
from tests.trio_.oracle.fuzz.memory_target import OLD, MemoryTarget, answers

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from mcp_trio.oracle.fuzz._case import Case, Step

OPEN: Step = ("open", OLD, "whole", "all")
OPEN_SECOND: Step = ("on", 1, *OPEN)
PING: Step = ("request", "ping", {}, "int")
PING_SECOND: Step = ("on", 1, *PING)
TWO: Case = [OPEN, OPEN_SECOND]
NO_CASES: list[tuple[Case, str]] = [
    ([OPEN, PING_SECOND], "step 1 is on client 1, which does not exist: no step before it"),
    ([OPEN, PING_SECOND, OPEN_SECOND], "step 1 is on client 1, which does not exist"),
    ([OPEN, ("on", 2, *OPEN)], "step 1 is on client 2: a case has two clients"),
    ([OPEN, ("on", 0, *OPEN)], "on client 0: a case has two clients"),
    ([OPEN, ("on", True, *OPEN)], "on client true: a case has two clients"),
    ([OPEN, ("on",)], "on client null: a case has two clients"),
    ([OPEN, ("on", 1)], "step 1 has no step after `on 1`"),
    ([OPEN, ("on", 1, 5)], "step 1 has no step after `on 1`"),
    ([OPEN, ("on", 1, "on", 1, "open")], "step 1 has no step after `on 1`"),
]


# -- Literals --------------------------------------------------------------------------------------


def test_case_with_two_clients_is_stored_and_shown() -> None:
    case = [*TWO, PING_SECOND, ("on", 1, "damage", b"\xff")]
    assert decode_case(json.loads(json.dumps(encode_case(case)))) == case
    assert shown_case(TWO) == f"open {OLD} whole all, on 1 open {OLD} whole all"


@pytest.mark.parametrize(("case", "says"), NO_CASES)
def test_second_client_that_does_not_exist_is_an_error(case: Case, says: str) -> None:
    with pytest.raises(ValueError, match=re.escape(says)):
        check_clients(case)
    with pytest.raises(ValueError, match=re.escape(says)):
        decode_case(json.loads(json.dumps(encode_case(case))))


@pytest.mark.parametrize(("case", "says"), NO_CASES)
def test_written_test_of_a_second_client_that_does_not_exist_is_an_error(
    case: Case, says: str
) -> None:
    with pytest.raises(ValueError, match=re.escape(says)):
        find_faults("http://127.0.0.1:1/mcp", case)


@pytest.mark.parametrize(
    ("case", "left"),
    [
        ([OPEN, PING_SECOND], [OPEN]),
        ([OPEN, PING_SECOND, OPEN_SECOND, PING_SECOND], [OPEN, OPEN_SECOND, PING_SECOND]),
        ([*TWO, PING], [*TWO, PING]),
        ([], []),
    ],
)
def test_orphans_are_steps_of_a_client_that_no_step_opens(case: Case, left: Case) -> None:
    assert without_orphans(case) == left


def test_step_of_the_second_client_is_guarded_and_avoided_as_the_first_ones() -> None:
    guard = CallGuard({"look"}, lambda: {"look", "wipe"}, ["file:///listed"])
    read = ("request", "resources/read", {"uri": "file:///secret"})
    for step, allowed in (
        (("call", "look", {}), True),
        (("call", "wipe", {}), False),
        (read, False),
    ):
        assert guard.allows_step(("on", 1, *step)) is guard.allows_step(step) is allowed
    assert avoided_name(("on", 1, "call", "add", {}, ())) == ("call", "add")
    assert avoided_name(OPEN_SECOND) is None


def test_joined_cases_have_a_second_client_each() -> None:
    again = ("on", 1, "reconnect")
    assert joined([[*TWO, PING_SECOND], [OPEN, PING]], TWO) == [
        *(*TWO, PING_SECOND, again),
        *(OPEN, PING),
        *TWO,
    ]


def shrunk(case: Case, is_shown: Callable[[Case], bool]) -> Case:
    async def shows(tried: Case) -> Case | None:
        check_clients(tried)
        return tried if is_shown(tried) else None

    async def main() -> Case:
        return (await shrink(case, shows, ShrinkBudget()))[0][-1]

    return trio.run(main)


def test_shrink_takes_a_second_client_away_that_is_not_needed() -> None:
    case = [*TWO, PING, ("on", 1, "page", "tools/list", "all"), PING_SECOND]
    assert shrunk(case, lambda each: any("ping" in step for step in each)) == [OPEN, PING]


def test_shrink_keeps_a_second_client_that_is_needed() -> None:
    case = [*TWO, PING, ("on", 1, "request", "tools/list", {"a": [1, 2]}, "text"), PING]
    found = shrunk(case, lambda each: any(step[:3] == ("on", 1, "request") for step in each))
    assert found == [*TWO, ("on", 1, "request", "tools/list", {}, "int")]


def test_cause_names_the_second_client() -> None:
    fault = TargetFault(kind="row", row="RPC-7", method="ping")
    (alone,) = possible_causes(fault, [OPEN, PING])
    case = [*TWO, ("on", 1, "request", "ping", {}, "int")]
    (second,) = possible_causes(fault, case)
    assert (alone.shape, second.shape) == ("request", "request of the second client")
    both = smallest_cause(fault, [*case, ("delete", "own")])
    assert both is not None
    assert both.shape == "request of the second client, beside delete own"


# -- Plays -----------------------------------------------------------------------------------------


def sessions(
    respond: Callable[[Mapping[str, Any], int], HttpResponse] | None = None,
) -> Callable[[Mapping[str, Any]], HttpResponse]:
    """Return what a server sends that gives each client a session.

    `respond` gets a message and the number of clients until then.
    """
    clients = itertools.count(1)
    count = 0

    def answer(message: Mapping[str, Any]) -> HttpResponse:
        nonlocal count
        if message.get("method") == "initialize":
            count = next(clients)
        found = response_to(message) if respond is None else respond(message, count)
        return found._replace(session=f"session-{count}")

    return answer


async def test_clients_have_a_session_and_a_conversation_each(autojump_clock: Any) -> None:
    """Their ids are equal, which a server must not mix up."""
    case = [*TWO, PING, PING_SECOND, ("wait",)]
    outcome, received = await played_over_http(sessions(), case)
    assert (outcome.faults, outcome.notes) == ([], [])
    methods = [each.get("method") for each in received]
    assert methods.count("initialize") == 2
    pings = [line for line in outcome.lines if line.raw is not None and '"ping"' in line.raw]
    by_client: dict[int, set[str]] = {}
    for line in pings:
        assert line.http is not None
        headers = dict(line.http.headers)
        by_client.setdefault(line.conversation, set()).add(headers["mcp-session-id"])
    # Each client pings once in the case and once as a probe.
    assert by_client == {1: {"session-1"}, 2: {"session-2"}}
    assert len(pings) == 4
    ids = [each["id"] for each in received if each.get("method") == "ping"]
    assert len(set(ids)) < len(ids)
    assert outcome.answered == 6


async def test_steps_of_a_client_that_does_not_exist_do_nothing(autojump_clock: Any) -> None:
    outcome, received = await played_over_http(sessions(), [OPEN, PING_SECOND])
    assert outcome.faults == []
    assert [each.get("method") for each in received].count("ping") == 1


async def test_one_session_id_for_two_clients_is_a_fault(autojump_clock: Any) -> None:
    outcome, _ = await played_over_http(response_to, [*TWO])
    assert [(each.row, each.is_advice) for each in outcome.faults] == [("SHL-21", False)]
    assert outcome.faults[0].sentence.endswith(", for the second client")


async def test_server_that_hangs_for_the_second_client_is_at_fault(autojump_clock: Any) -> None:
    def respond(message: Mapping[str, Any], client: int) -> HttpResponse:
        if client == 2 and message.get("method") == "initialize":
            return HttpResponse(after=trio.Event())
        return response_to(message)

    outcome, _ = await played_over_http(sessions(respond), [*TWO, PING])
    (fault,) = outcome.faults
    assert (fault.row, fault.method, fault.is_advice) == ("RPC-35", "initialize", False)
    assert fault.sentence.endswith("was not answered within 2 s, for the second client")


async def test_client_waits_while_a_call_of_the_other_one_runs(autojump_clock: Any) -> None:
    """A server that handles one request after the other has a reason."""
    is_done = trio.Event()

    def respond(message: Mapping[str, Any], client: int) -> HttpResponse:
        method = message.get("method")
        found = response_to(message)
        if method == "tools/call" or (method == "ping" and not is_done.is_set()):
            return found._replace(after=is_done)
        return found

    async def finish() -> None:
        await trio.sleep(5)
        is_done.set()

    async with trio.open_nursery() as nursery:
        nursery.start_soon(finish)
        case = [*TWO, ("call", "slow", {}, ()), PING_SECOND, ("on", 1, "wait")]
        outcome, _ = await played_over_http(sessions(respond), case)
    assert outcome.faults == []


async def test_second_client_begins_anew(autojump_clock: Any) -> None:
    case = [*TWO, ("on", 1, "reconnect"), OPEN_SECOND, PING_SECOND]
    outcome, received = await played_over_http(sessions(), case)
    assert outcome.faults == []
    assert [each.get("method") for each in received].count("initialize") == 3
    assert {line.conversation for line in outcome.lines} == {1, 2, 3}


async def test_second_client_of_a_process_does_nothing(autojump_clock: Any) -> None:
    target = MemoryTarget(lambda message, start: answers(message))
    outcome = await play_case(target, [*TWO, PING_SECOND, PING])
    assert outcome.faults == []
    assert outcome.notes == [ONE_CLIENT]
    assert outcome.answered == 3  # with the probe
