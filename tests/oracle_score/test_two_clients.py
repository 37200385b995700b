"""Faults that only a second client meets: each is shown by a case, and by the trace of its play."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any, Final

import pytest
import trio
from msgspec.structs import replace

from mcp_core.trace import Judge, RecordedFinding
from mcp_trio.oracle.fuzz._case import CLIENT_MARKS
from mcp_trio.oracle.fuzz._probe import Offers, probe
from mcp_trio.oracle.fuzz.classics import CLASSIC_KINDS
from mcp_trio.oracle.fuzz.classics._facts import TargetFacts
from mcp_trio.oracle.fuzz.draw._choices import CaseChoices
from mcp_trio.oracle.fuzz.play._player import Player, play_case
from tests.oracle_score.broken_messages import NEW, OLD
from tests.oracle_score.campaign import run_repeatable
from tests.oracle_score.operators import all_places
from tests.oracle_score.servers import SERVERS

if TYPE_CHECKING:
    from mcp_trio.oracle.fuzz._case import Case, Outcome, Step
    from tests.oracle_score.operators import MutantPlace

OPEN: Final[Step] = ("open", OLD, "whole", "all")
LIST: Final[Step] = ("request", "tools/list", {}, "int")
WAIT: Final[Step] = ("wait",)
END: Final[Step] = ("delete", "own")
COUNT: Final[Step] = ("call", "count", {"to": 2}, ())


def second(*steps: Step) -> Case:
    return [("on", 1, *step) for step in steps]


def head(what: str) -> Step:
    return ("head", what, "tools/list", {})


def echo(text: str) -> Case:
    return [("call", "echo", {"text": text}, ()), WAIT]


def level(name: str) -> Case:
    return [("request", "logging/setLevel", {"level": name}, "int"), WAIT]


TWO: Final = [OPEN, *second(OPEN)]
# The row by which it is found, and the case.
CASES: Final[dict[str, tuple[str, Case]]] = {
    "DELETE ends another one": ("SHL-24", [*TWO, *second(END, LIST, WAIT)]),
    "unknown session": (
        "SHL-24",
        [*TWO, *second(END), head("session"), *second(("reconnect",), OPEN), head("session")],
    ),
    "no session": ("SHL-23", [*TWO, head("no-session"), *second(END), head("no-session")]),
    "results of another one": (
        "RPC-7",
        [
            *(*TWO, *second(("page", "tools/list", "all"))),
            *(*echo(CLIENT_MARKS[0]), *echo(CLIENT_MARKS[0])),
            *second(*echo(CLIENT_MARKS[1]), *echo(CLIENT_MARKS[1])),
        ],
    ),
    "one id for all": ("SHL-21", TWO),
    "levels of another one": (
        "LOG-3",
        [*TWO, *second(*level("emergency")), *level("debug"), *second(COUNT, WAIT)],
    ),
}


# What leaks: the kind of classic cases that makes it happen, the revision, and the tool for it.
KINDS: Final = {
    "leak-session/results of another one": ("texts", OLD, "echo"),
    "leak-session/prompts of another one": ("texts", OLD, "echo"),
    "leak-session/subscriptions of another one": ("subscriptions", OLD, "change"),
    "leak-values/streams of another one": ("streams", OLD, "count"),
    "leak-values/task ids of another one": ("tasks", NEW, "work"),
    "leak-values/cursors of another one": ("lists", OLD, "echo"),
    "leak-values/filters of another one": ("subscriptions", NEW, "change"),
    "leak-values/states of another one": ("texts", NEW, "confirm"),
}


@cache
def offered() -> Offers:
    """Return what the right server offers."""

    async def main() -> Offers:
        async with trio.open_nursery() as nursery:
            offers = await probe(SERVERS["http"].target(None, nursery))
            nursery.cancel_scope.cancel()
        return offers

    offers: Offers = run_repeatable(main, 1)
    return offers


@pytest.fixture(scope="module", autouse=True)
def _is_probed() -> None:
    """Ask the right server once for all tests."""
    offered()


def classics(kind: str, revision: str, *tools: str) -> list[Case]:
    """Return a kind's classic cases for the right server, with calls of some tools only."""
    facts = TargetFacts(CaseChoices(offered(), tools, http=True))
    made = next(each for each in CLASSIC_KINDS if each.name == f"{kind} of two clients").make(facts)
    return [case for case in made if case[0][1] == revision]


def played(case: Case, place: MutantPlace | None) -> Outcome:
    """Return the outcome of a case on the server, broken at a place or right."""

    async def main() -> Outcome:
        async with trio.open_nursery() as nursery:
            target = SERVERS["http"].target(place, nursery)
            outcome = await play_case(target, case, Player())
            nursery.cancel_scope.cancel()
        return outcome

    outcome: Outcome = run_repeatable(main, 1)
    return outcome


@pytest.mark.long
@pytest.mark.parametrize("name", CASES)
def test_fault_is_shown_by_two_clients_and_by_their_trace(name: str) -> None:
    row, case = CASES[name]
    outcome = played(case, all_places()[f"leak-session/{name}"])
    (fault,) = [each for each in outcome.faults if not each.is_advice]
    assert fault.row == row
    assert outcome.header is not None
    finding = RecordedFinding(row=row, side="server", sentence=fault.sentence, verdict="fail")
    judge = Judge(replace(outcome.header, finding=finding))
    found = [each for line in outcome.lines for each in judge.receive(line)]
    assert {each.row for each in found if each.is_certain} == {row}
    assert judge.close() == []  # else the messages wouldn't have proved it


@pytest.mark.parametrize("name", KINDS)
def test_leak_is_found_by_a_classic_case_of_two_clients(name: str) -> None:
    place = all_places()[name]
    outcomes = (played(case, place) for case in classics(*KINDS[name]))
    found = ((each.row, each.is_advice) for outcome in outcomes for each in outcome.faults)
    assert (place.row, False) in found


def test_task_id_of_another_session_is_no_certain_fault() -> None:
    """Each session can have tasks of its own: the specification binds them to users only."""
    (case,) = classics("tasks", OLD, "work")
    outcome = played(case, all_places()["leak-values/task ids of another one"])
    assert outcome.faults == []
    assert outcome.header is not None
    judge = Judge(outcome.header)
    found = [each for line in outcome.lines for each in judge.receive(line)]
    assert ("TSK-10", False) in {(each.row, each.is_certain) for each in found}


@pytest.mark.parametrize(("kind", "revision", "tool"), sorted(set(KINDS.values())))
def test_classic_cases_of_two_clients_find_nothing_in_the_right_server(
    kind: str, revision: str, tool: str
) -> None:
    cases = classics(kind, revision, tool)
    assert [played(case, None).faults for case in cases] == [[]] * len(cases)


@pytest.mark.long
@pytest.mark.parametrize("kind", sorted({kind for kind, _, _ in KINDS.values()}))
def test_calls_of_all_tools_by_two_clients_find_nothing_in_the_right_server(kind: str) -> None:
    cases = [case for each in (OLD, NEW) for case in classics(kind, each, *SERVERS["http"].tools)]
    assert [played(case, None).faults for case in cases] == [[]] * len(cases)


@pytest.mark.long
@pytest.mark.parametrize("name", CASES)
def test_two_clients_of_the_right_server_show_nothing(name: str) -> None:
    assert played(CASES[name][1], None).faults == []


@pytest.mark.slow
@pytest.mark.parametrize("name", ["one id for all", "no session"])
def test_campaign_writes_a_small_case_with_two_clients(name: str) -> None:
    finding = _found(f"leak-session/{name}")
    assert finding.fault.row == CASES[name][0]
    assert finding.is_failure
    assert len(finding.case) <= len(CASES[name][1])
    assert any(step[0] == "on" for step in finding.case)


def _found(mutant: str) -> Any:
    """Return the first finding of a campaign that makes its cases small."""
    from mcp_trio.oracle.fuzz._probe import probe
    from mcp_trio.oracle.fuzz.campaign._campaign import Campaign, CampaignOptions
    from mcp_trio.oracle.fuzz.draw._cases import CaseSource
    from mcp_trio.oracle.fuzz.draw._choices import CaseChoices

    async def main() -> Any:
        async with trio.open_nursery() as nursery:
            server = SERVERS["http"]
            target = server.target(all_places()[mutant], nursery)
            choices = CaseChoices(await probe(target), server.tools, http=True)
            options = CampaignOptions(seconds=None, cases=300, keep_going=False)
            campaign = Campaign(target, CaseSource(choices, 1), choices, options)
            await campaign.run()
            nursery.cancel_scope.cancel()
        return campaign.findings[0]

    return run_repeatable(main, 1)
