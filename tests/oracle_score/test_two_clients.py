"""Faults that only a second client meets: each is shown by a case, and by the trace of its play."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import pytest
import trio
from msgspec.structs import replace

from mcp_core.trace import Judge, RecordedFinding
from mcp_trio.oracle.fuzz.draw._second_client import MARKS
from mcp_trio.oracle.fuzz.play._player import Player, play_case
from tests.oracle_score.campaign import run_repeatable
from tests.oracle_score.operators import all_places
from tests.oracle_score.servers import SERVERS

if TYPE_CHECKING:
    from mcp_trio.oracle.fuzz._case import Case, Outcome, Step
    from tests.oracle_score.operators import MutantPlace

OPEN: Final[Step] = ("open", "2025-11-25", "whole", "all")
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
            *(*echo(MARKS[0]), *echo(MARKS[0])),
            *second(*echo(MARKS[1]), *echo(MARKS[1])),
        ],
    ),
    "one id for all": ("SHL-21", TWO),
    "levels of another one": (
        "LOG-3",
        [*TWO, *second(*level("emergency")), *level("debug"), *second(COUNT, WAIT)],
    ),
}


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
