"""Examinations with plays that are given: which cases are played, in which order, how often."""

from __future__ import annotations

import json
import math
from typing import TYPE_CHECKING, Any, Final

import pytest
import trio

from mcp_trio.oracle.fuzz._case import AFTER_CANCEL, Outcome, on_client
from mcp_trio.oracle.fuzz._fault import TargetFault
from mcp_trio.oracle.fuzz._probe import Offers
from mcp_trio.oracle.fuzz.campaign._examination import (
    Examiner,
    _cancellable,
    _equal_calls,
    _growing_texts,
    _methods_of,
    _openings,
    _with_probes,
)
from mcp_trio.oracle.fuzz.campaign._findings import FuzzFinding
from mcp_trio.oracle.fuzz.campaign._shrink import ShrinkBudget
from mcp_trio.oracle.fuzz.causes._cause import Cause
from mcp_trio.oracle.fuzz.draw._choices import CaseChoices
from mcp_trio.oracle.fuzz.play._unanswered import HUNG, NEVER, STOPPED

if TYPE_CHECKING:
    from collections.abc import Callable

    from mcp_trio.oracle.fuzz._case import Case, Step

OLD, NEW = "2025-11-25", "2026-07-28"
BEGIN: Step = ("open", OLD, "whole", "all")
SECOND: Step = ("on", 1, "open", OLD, "whole", "all")
ASK: Step = ("request", "ping", {}, "int", "whole")
LISTS: Step = ("request", "tools/list", {}, "int")
PAUSE: Step = ("wait",)
SHOWN: Final = TargetFault(kind="row", row="RPC-7", method="x/y")
SENT: Final = json.dumps({"method": "tools/call", "params": {"name": "t", "arguments": {"a": 1}}})


class GivenPlays:
    """Plays whose outcomes a function decides, by their case and their number."""

    response_timeout = 2.0
    has_processes = True

    def __init__(self, shows: Callable[[Case, int], list[TargetFault]]) -> None:
        self.shows = shows
        self.played: list[Case] = []
        self.options: list[tuple[Any, ...]] = []
        self.steps: int | None = None
        self.call_times: list[Any] = []

    async def play(
        self,
        case: Case,
        timeout: float | None = None,
        *,
        probes: bool = True,
        wanted: tuple[str, str] | None = None,
        call_times: Any = None,
    ) -> Outcome:
        await trio.lowlevel.checkpoint()
        self.played.append(list(case))
        self.options.append((timeout, probes, wanted))
        self.call_times.append(call_times)
        return Outcome(faults=self.shows(case, len(self.played)), steps=self.steps)


def examiner_of(
    shows: Callable[[Case, int], list[TargetFault]],
    *,
    shrinks: bool = False,
    hints: Any = None,
    revisions: tuple[str, ...] = (OLD,),
) -> tuple[Examiner, GivenPlays]:
    tool = {"name": "t", "inputSchema": {}, "annotations": hints}
    choices = CaseChoices(Offers(revisions=list(revisions), tools=[tool]), ("t",))
    plays = GivenPlays(shows)
    budget = ShrinkBudget() if shrinks else None
    examiner = Examiner(plays, choices, budget=budget, tools=("t",))  # type: ignore[arg-type]
    return examiner, plays


def never_shows(case: Case, number: int) -> list[TargetFault]:
    return []


def with_waits_between(case: Case) -> Case:
    return [each for step in case for each in (step, PAUSE)]


# -- Confirmation ----------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["row", "crash", "hang", "invariant"])
async def test_fault_is_confirmed_by_three_plays_of_its_case(kind: Any) -> None:
    """Only for a crash or a hang the server is probed after the case."""
    fault = TargetFault(kind=kind, row="RPC-7", method="x/y", detail="d")
    examiner, plays = examiner_of(lambda case, number: [fault])
    plays.steps = 2
    case: Case = [BEGIN, ASK, LISTS]
    finding = await examiner.confirm(fault, case, [])
    assert finding is not None
    assert (finding.hits, finding.plays, finding.steps_before) == (3, 3, 3)
    assert (finding.case, finding.fault) == (case[:2], fault)
    assert plays.played == [case] * 3
    assert plays.options == [(None, kind in ("crash", "hang"), fault.cause)] * 3


async def test_fault_that_no_play_shows_is_played_with_waits_and_with_earlier_cases() -> None:
    """With the last 8 cases and the last 64, each also with the requests of a probe."""
    before: list[Case] = [[BEGIN, ("notify", str(number), {})] for number in range(70)]
    case: Case = [BEGIN, ASK]
    examiner, plays = examiner_of(never_shows)
    assert await examiner.confirm(SHOWN, case, before) is None
    wanted = [case] * 3 + [with_waits_between(case)] * 3
    for count in (8, 64):
        earlier = before[-count:]
        wanted += [[step for each in (*earlier, case) for step in each]] * 3
        probed = _with_probes(earlier)
        wanted.append([step for each in (*probed, case) for step in each])
    assert plays.played == wanted


@pytest.mark.parametrize(("count", "rounds"), [(0, 1), (8, 1), (9, 2)])
async def test_earlier_cases_are_played_once_if_there_are_no_more(count: int, rounds: int) -> None:
    examiner, plays = examiner_of(never_shows)
    before: list[Case] = [[BEGIN, LISTS]] * count
    assert await examiner.confirm(SHOWN, [BEGIN, ASK], before) is None
    assert len(plays.played) == 6 + 4 * rounds


async def test_fault_that_a_probe_between_the_cases_shows_is_confirmed_with_it() -> None:
    before: list[Case] = [[BEGIN, LISTS]]
    probed: Case = [*before[0], PAUSE, ("request", "ping", {}, "int"), PAUSE, BEGIN, ASK]
    examiner, plays = examiner_of(lambda case, number: [SHOWN] if case == probed else [])
    finding = await examiner.confirm(SHOWN, [BEGIN, ASK], before)
    assert finding is not None
    assert (finding.case, finding.hits, finding.steps_before) == (probed, 3, 7)
    assert plays.played.count(probed) == 4


@pytest.mark.parametrize("detail", [STOPPED, NEVER])
async def test_calls_before_one_that_is_never_answered_have_ended(detail: str) -> None:
    fault = TargetFault(kind="row", row="RPC-35", method="tools/call", detail=detail, sent=SENT)
    examiner, plays = examiner_of(never_shows)
    assert await examiner.confirm(fault, [BEGIN, ASK], [[BEGIN, LISTS]]) is None
    assert plays.played[6:9] == [with_waits_between([BEGIN, LISTS, BEGIN, ASK])] * 3


@pytest.mark.parametrize(
    ("hits", "slower_hits", "is_slower"), [(2, 2, False), (1, 2, True), (2, 3, True), (0, 1, True)]
)
async def test_case_with_waits_is_taken_if_it_shows_the_fault_more_often(
    hits: int, slower_hits: int, is_slower: bool
) -> None:
    case: Case = [BEGIN, ASK]
    shown = [*range(1, hits + 1), *range(4, 4 + slower_hits)]
    examiner, plays = examiner_of(lambda case, number: [SHOWN] if number in shown else [])
    finding = await examiner.confirm(SHOWN, case, [])
    assert finding is not None
    assert finding.hits == (slower_hits if is_slower else hits)
    assert finding.case == (with_waits_between(case) if is_slower else case)
    assert len(plays.played) == 6


async def test_fault_of_the_response_to_a_probe_is_shown_by_a_request_in_the_case() -> None:
    fault = TargetFault(kind="row", row="RPC-7", method="ping")
    asked: Step = ("request", "ping", {}, "int", "whole")
    examiner, plays = examiner_of(lambda case, number: [fault] if asked in case else [])
    finding = await examiner.confirm(fault, [BEGIN, LISTS], [])
    assert finding is not None
    assert finding.case == [BEGIN, LISTS, asked]
    assert plays.played == [[BEGIN, LISTS]] * 3 + [[BEGIN, LISTS, asked]] * 3


@pytest.mark.parametrize(("back", "joined_cases"), [(0, 0), (1, 1), (8, 8), (9, 0)])
async def test_fault_of_an_earlier_case_is_confirmed_with_the_cases_since(
    back: int, joined_cases: int
) -> None:
    fault = TargetFault(kind="row", row="RPC-7", method="x/y", cases_back=back)
    before: list[Case] = [[BEGIN, ("notify", str(number), {})] for number in range(20)]
    examiner, plays = examiner_of(lambda case, number: [fault])
    assert await examiner.confirm(fault, [BEGIN, ASK], before) is not None
    earlier = before[20 - joined_cases :]
    assert plays.played == [[step for each in (*earlier, [BEGIN, ASK]) for step in each]] * 3


# -- Small cases that are tried first --------------------------------------------------------------


CALL_T: Step = ("call", "t", {"a": 1}, ("progress",))


@pytest.mark.parametrize(
    ("row", "method", "case", "expected"),
    [
        ("RPC-7", "ping", [BEGIN, ASK, PAUSE], []),  # it is small
        ("RPC-7", "ping", [BEGIN, LISTS, ASK, PAUSE], [[BEGIN, ASK]]),
        ("RPC-7", "x/y", [BEGIN, LISTS, ASK, PAUSE], []),
        ("RPC-7", "tools/call", [BEGIN, LISTS, CALL_T, PAUSE], [[BEGIN, CALL_T]]),
        (
            "RPC-7",
            "ping",
            [BEGIN, *(("request", "ping", {"n": number}, "int") for number in range(5))],
            [[BEGIN, ("request", "ping", {"n": number}, "int")] for number in (2, 3, 4)],
        ),
        (
            "RPC-7",
            "ping",
            [BEGIN, SECOND, PAUSE, on_client(1, ASK)],
            [[BEGIN, SECOND, on_client(1, ASK)]],
        ),
        (
            "CXL-7",
            "tools/call",
            [BEGIN, CALL_T, ("cancel", 0)],
            [
                [
                    ("open", OLD, "whole", "none"),
                    ("call", "t", {}, ()),
                    ("cancel", 0),
                    AFTER_CANCEL,
                ],
                [("open", OLD, "whole", "none"), CALL_T, ("cancel", 0), AFTER_CANCEL],
                [BEGIN, ("call", "t", {}, ()), ("cancel", 0), AFTER_CANCEL],
                [BEGIN, CALL_T, ("cancel", 0), AFTER_CANCEL],
            ],
        ),
        (
            "CXL-7",
            "ping",
            [("open", OLD, "whole", "none"), ASK, AFTER_CANCEL],
            [[("open", OLD, "whole", "none"), ASK, ("cancel", 0), AFTER_CANCEL]],
        ),
    ],
)
def test_steps_that_may_show_a_fault_alone_are_tried_first(
    row: str, method: str, case: Case, expected: list[Case]
) -> None:
    examiner, _ = examiner_of(never_shows, shrinks=True)
    fault = TargetFault(kind="row", row=row, method=method)
    assert examiner._few_steps(fault, case) == expected
    crash = TargetFault(kind="crash", row="crash", method=method)
    assert examiner._few_steps(crash, case) == []


async def test_small_case_is_taken_if_each_play_shows_the_fault() -> None:
    """One that shows it first, and then not each time, costs four plays."""
    first: Step = ("request", "ping", {"n": 1}, "int")
    last: Step = ("request", "ping", {"n": 2}, "int")
    fault = TargetFault(kind="row", row="RPC-7", method="ping")
    case: Case = [BEGIN, LISTS, first, last]

    def shows(case: Case, number: int) -> list[TargetFault]:
        return [fault] if case == [BEGIN, last] or number < 4 else []

    examiner, plays = examiner_of(shows, shrinks=True)
    finding = await examiner.confirm(fault, case, [])
    assert finding is not None
    assert (finding.case, finding.hits, finding.steps_before) == ([BEGIN, last], 3, 4)
    assert plays.played == [[BEGIN, first]] * 4 + [[BEGIN, last]] * 4
    examiner, plays = examiner_of(lambda case, number: [fault])
    await examiner.confirm(fault, case, [])
    assert plays.played == [case] * 3, "nothing is made smaller without a budget"


@pytest.mark.parametrize(
    ("step", "methods"),
    [
        (("call", "t", {}, ()), ["tools/call"]),
        (("request", "ping", {}, "int"), ["ping"]),
        (("batch", [["ping", {}, "int"], [], 5, ["a"]]), ["ping", "a"]),
        (("batch",), []),
        (("wait",), []),
        (("cancel", 0), [0]),
    ],
)
def test_methods_of_a_step_are_what_it_sends(step: Step, methods: list[Any]) -> None:
    assert _methods_of(step) == methods


def test_steps_are_played_with_the_openings_that_they_need() -> None:
    twice: Case = [BEGIN, SECOND, ASK, ("on", 1, "open", NEW, "whole", "all")]
    assert _openings(twice, ASK) == [BEGIN]
    assert _openings(twice, on_client(1, ASK)) == [BEGIN, SECOND]
    assert _openings([BEGIN], on_client(1, ASK)) == [BEGIN]


def test_requests_that_may_be_cancelled_are_calls_first_and_eight_at_most() -> None:
    calls: Case = [("call", name, {"a": 1}, ("text",)) for name in "ab"]
    assert _cancellable([BEGIN, ASK, AFTER_CANCEL, *calls, ASK, PAUSE]) == [
        ("call", "a", {}, ()),
        ("call", "b", {}, ()),
        *calls,
        ASK,
    ]
    many: Case = [("request", str(number), {}, "int") for number in range(12)]
    assert _cancellable(many) == many[:8]


def test_probe_is_a_request_that_its_revision_has() -> None:
    modern: Step = ("open", NEW, "whole", "all")
    cases: list[Case] = [[BEGIN, ASK], [], [("open",)], [modern]]
    assert _with_probes(cases) == [
        [BEGIN, ASK, PAUSE, ("request", "ping", {}, "int"), PAUSE],
        [modern, PAUSE, ("request", "server/discover", {}, "int"), PAUSE],
    ]


def test_equal_calls_are_of_the_call_and_of_two_others_of_its_tool() -> None:
    fault = TargetFault(kind="row", row="RPC-35", sent=SENT)
    others: Case = [("call", "t", {"b": number}, ("text",)) for number in range(3)]
    found = _equal_calls(fault, [BEGIN, ("call", "other", {}, ()), CALL_T, *others])
    calls: Case = [("call", "t", each, ()) for each in ({"a": 1}, {"b": 0}, {"b": 1})]
    assert found == [[BEGIN, *(call, PAUSE) * 32] for call in calls]
    without = json.dumps({"params": {"name": "t"}})
    [only] = _equal_calls(TargetFault(kind="row", row="RPC-35", sent=without), [BEGIN])
    assert only == [BEGIN, *(("call", "t", {}, ()), PAUSE) * 32]


def test_equal_calls_of_two_clients_come_first_if_the_case_has_two() -> None:
    fault = TargetFault(kind="row", row="RPC-35", sent=SENT)
    found = _equal_calls(fault, [BEGIN, SECOND, on_client(1, CALL_T)])
    turn: Case = [("call", "t", {"a": 1}, ()), PAUSE]
    second = [on_client(1, each) for each in turn]
    assert found == [[BEGIN, SECOND, *turn, *turn, *second], [BEGIN, *turn * 32]]


def test_growing_texts_have_the_length_of_the_text_that_hangs_at_last() -> None:
    """Then come its own letters, as far as they mean nothing."""
    arguments = {"a": "x1é²ß", "b": 5, "c": "", "d": "q"}
    sent = json.dumps({"params": {"name": "t", "arguments": arguments}})
    found = _growing_texts(TargetFault(kind="row", row="RPC-35", sent=sent), [BEGIN, ASK])
    texts = [["x" * size for size in range(1, 6)] + ["é", "éß"], ["x"]]
    assert [case[0] for case in found] == [BEGIN] * 2
    for name, case, expected in zip("ad", found, texts, strict=True):
        assert case[2::2] == [PAUSE] * len(expected)
        wanted = [("call", "t", {**arguments, name: text}, ()) for text in expected]
        assert case[1::2] == wanted
    long = json.dumps({"params": {"name": "t", "arguments": {"a": "y" * 40}}})
    [case] = _growing_texts(TargetFault(kind="row", row="RPC-35", sent=long), [BEGIN])
    sizes = [len(step[2]["a"]) for step in case[1::2]]
    assert sizes == [*range(1, 21), 22, 24, 26, 28, 30, 33, 36, 39, 40]


# -- Smaller cases ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("hits", "shown", "is_shown", "plays_needed"),
    [
        (3, (1, 2), True, 2),
        (3, (1,), False, 2),
        (3, (), False, 1),
        (3, (2,), False, 1),
        (2, (1,), True, 1),
        (2, (2,), True, 2),
        (2, (), False, 2),
    ],
)
async def test_smaller_case_shows_a_solid_fault_twice_and_a_flaky_one_once(
    hits: int, shown: tuple[int, ...], is_shown: bool, plays_needed: int
) -> None:
    examiner, plays = examiner_of(lambda case, number: [SHOWN] if number in shown else [])
    finding = FuzzFinding(fault=SHOWN, case=[BEGIN, ASK], hits=hits, plays=3)
    found = await examiner._shows([BEGIN, ASK], finding)
    assert found == ([BEGIN, ASK] if is_shown else None)
    assert plays.options == [(0.5, False, SHOWN.cause)] * plays_needed


async def test_smaller_case_is_the_longer_part_that_has_shown_the_fault() -> None:
    parts = [2, 3]
    examiner, plays = examiner_of(lambda case, number: [SHOWN])
    plays.response_timeout = 0.2

    async def play(case: Case, *args: Any, **options: Any) -> Outcome:
        await trio.lowlevel.checkpoint()
        plays.options.append(args)
        return Outcome(faults=[SHOWN], steps=parts.pop())

    plays.play = play  # type: ignore[method-assign]
    finding = FuzzFinding(fault=SHOWN, case=[BEGIN], hits=3, plays=3)
    assert await examiner._shows([BEGIN, ASK, LISTS, PAUSE], finding) == [BEGIN, ASK, LISTS]
    assert plays.options == [(0.2,)] * 2, "no longer than a response may take"


@pytest.mark.parametrize(
    ("hits", "count", "size", "may"),
    [(3, 3, 2, True), (2, 3, 2, True), (1, 3, 2, False), (1, 2, 2, False), (3, 3, 1, False)],
)
async def test_finding_is_made_smaller_if_most_plays_have_shown_it(
    hits: int, count: int, size: int, may: bool
) -> None:
    examiner, plays = examiner_of(never_shows, shrinks=True)
    finding = FuzzFinding(fault=SHOWN, case=[BEGIN, ASK][:size], hits=hits, plays=count)
    assert examiner._may_shrink(finding) is may
    await examiner.shrink(finding)
    assert bool(plays.played) is may
    examiner, plays = examiner_of(never_shows)
    await examiner.shrink(finding)
    assert plays.played == [], "there is no budget"


async def test_fault_of_an_opening_is_shown_by_the_opening_alone() -> None:
    examiner, plays = examiner_of(lambda case, number: [SHOWN], shrinks=True)
    finding = FuzzFinding(fault=SHOWN, case=[BEGIN, ASK, LISTS], hits=3, plays=3)
    await examiner.shrink(finding)
    assert finding.case == [BEGIN]
    assert plays.played == [[BEGIN]]


@pytest.mark.parametrize(
    ("shown_at", "place"), [(1, 1), (2, 2), (3, 4), (5, 8), (9, 16), (17, 32), (33, None)]
)
async def test_case_before_the_smallest_ones_is_confirmed_in_growing_steps(
    shown_at: int, place: int | None
) -> None:
    """A fault that depends on time gets lost somewhere on the way."""
    smaller: list[Case] = [[BEGIN, ("notify", str(number), {})] for number in range(40, 0, -1)]
    lost = [str(number) for number in range(1, shown_at)]

    def shows(case: Case, number: int) -> list[TargetFault]:
        return [] if PAUSE in case or case[1][1] in lost else [SHOWN]

    examiner, plays = examiner_of(shows)
    finding = FuzzFinding(fault=SHOWN, case=[BEGIN], hits=3, plays=3)
    found = await examiner._confirm_smaller(smaller, finding)
    places = [1, 2, 4, 8, 16, 32]
    in_vain = len(places) if place is None else places.index(place)
    assert len(plays.played) == 6 * in_vain + 3 * (place is not None), "waits are tried in vain"
    if place is None:
        assert found is None
    else:
        assert found is not None
        assert found[:3] == (place, smaller[-place], 3)
    few = await examiner._confirm_smaller(smaller[-1:], finding)
    assert (few is None) is (shown_at > 1)


async def test_case_is_made_smaller_once_if_the_smallest_one_is_confirmed() -> None:
    examiner, plays = examiner_of(lambda case, number: [SHOWN] if ASK in case else [], shrinks=True)
    finding = FuzzFinding(fault=SHOWN, case=[BEGIN, LISTS, ASK, LISTS], hits=3, plays=3)
    await examiner.shrink(finding)
    assert (finding.case, finding.hits, finding.is_cut) == ([BEGIN, ASK], 3, True)
    short = [options for options in plays.options if options[0] == 0.5]
    assert finding.shrink_plays < len(short)  # each case that shows it is played twice
    assert plays.played[0] == [BEGIN]
    assert plays.played[-3:] == [[BEGIN, ASK]] * 3
    assert len(plays.played) == len(short) + 4


async def test_case_is_made_smaller_three_times_if_each_result_is_lost_again() -> None:
    """A play of the shrinking shows it, and no confirmation does."""
    shown: list[int] = []
    examiner, plays = examiner_of(never_shows, shrinks=True)

    async def play(case: Case, timeout: float | None = None, **options: Any) -> Outcome:
        await trio.lowlevel.checkpoint()
        plays.options.append((timeout,))
        is_shown = timeout is not None and ASK in case
        shown.append(is_shown)
        return Outcome(faults=[SHOWN] if is_shown else [])

    plays.play = play  # type: ignore[method-assign]
    case: Case = [BEGIN, LISTS, ASK]
    finding = FuzzFinding(fault=SHOWN, case=case, hits=3, plays=3)
    await examiner.shrink(finding)
    assert (finding.case, finding.hits, finding.is_cut) == (case, 3, False)
    rounds = "".join("s" if timeout else "c" for (timeout,) in plays.options).split("c")
    assert len([each for each in rounds if each]) == 3


# -- Causes ----------------------------------------------------------------------------------------


async def test_cause_of_a_call_needs_no_further_play() -> None:
    """The tool's code can show it, so neither another method nor another message says more."""
    fault = TargetFault(kind="row", row="RPC-7", method="tools/call")
    examiner, plays = examiner_of(lambda case, number: [fault], shrinks=True)
    case: Case = [BEGIN, ("call", "t", {}, ())]
    finding = FuzzFinding(fault=fault, case=case, hits=3, plays=3)
    assert await examiner.find_cause(finding) == Cause("RPC-7", "request", "t")
    assert plays.played == []


@pytest.mark.parametrize(
    ("hits", "plain_shows", "shape", "step"),
    [
        (3, (2, 3, 4, 5), "request", ("request", "tools/list", {}, "int")),
        (3, (2, 3, 4), "request params:number", ("request", "tools/list", 5, "int")),
        (3, (), "request params:number", ("request", "tools/list", 5, "int")),
        (2, (2, 3, 4, 5), "request params:number", ("request", "tools/list", 5, "int")),
    ],
)
async def test_cause_is_a_valid_message_if_each_play_of_it_shows_the_fault(
    hits: int, plain_shows: tuple[int, ...], shape: str, step: Step
) -> None:
    """The first play is without the message. For a flaky fault nothing is played."""
    fault = TargetFault(kind="row", row="RPC-7", method="tools/list")
    drawn: Case = [BEGIN, ("request", "tools/list", 5, "int")]
    examiner, plays = examiner_of(
        lambda case, number: [fault] if number in plain_shows else [], shrinks=True
    )
    finding = FuzzFinding(fault=fault, case=drawn, hits=hits, plays=3)
    assert await examiner.find_cause(finding) == Cause("RPC-7", shape, "tools/list")
    assert finding.case == [BEGIN, step]
    assert plays.played[:1] == ([[BEGIN]] if hits == 3 else [])


# -- Proofs ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("hints", "is_closed"),
    [
        ({"openWorldHint": False, "readOnlyHint": True}, True),
        ({"openWorldHint": False, "idempotentHint": True}, True),
        ({"openWorldHint": False}, False),
        ({"openWorldHint": False, "readOnlyHint": 1}, False),
        ({"openWorldHint": True, "readOnlyHint": True}, False),
        ({"readOnlyHint": True}, False),
        ([], False),
        (None, False),
    ],
)
def test_tool_is_closed_by_its_hints(hints: Any, is_closed: bool) -> None:
    examiner, _ = examiner_of(never_shows, hints=hints)
    assert examiner._is_closed("t") is is_closed
    assert not examiner._is_closed("other")


CLOSED_HINTS = {"openWorldHint": False, "readOnlyHint": True}


@pytest.mark.parametrize(
    ("detail", "hits", "left", "has_processes", "is_played"),
    [
        (STOPPED, 3, 84.6, True, True),
        (STOPPED, 3, 84.4, True, False),  # 1.3 times the time of its last call: 6.5 times 10 s
        (STOPPED, 2, math.inf, True, False),
        (STOPPED, 3, math.inf, False, True),
        (NEVER, 3, math.inf, True, False),
        (HUNG, 3, math.inf, True, True),
        (HUNG, 3, math.inf, False, False),
    ],
)
async def test_proof_is_tried_if_there_is_time_and_a_process(
    detail: str, hits: int, left: float, has_processes: bool, is_played: bool, autojump_clock: Any
) -> None:
    """A tool that stops must be tried again, and only a process that hangs can be started again."""
    sent = json.dumps({"params": {"name": "t", "arguments": {"a": "xy"}}})
    fault = TargetFault(
        kind="row", row="RPC-35", detail=detail, sent=sent, sentence="s", is_certain=False
    )
    proven = TargetFault(kind="row", row="RPC-35", detail=detail, sentence="proven")
    examiner, plays = examiner_of(lambda case, number: [fault, proven], hints=CLOSED_HINTS)
    plays.has_processes = has_processes
    plays.steps = 5
    case: Case = [BEGIN, ("call", "t", {"a": "xy"}, ())]
    finding = FuzzFinding(fault=fault, case=case, hits=hits, plays=3)
    await examiner.prove(finding, 10.0, left)
    assert len(plays.played) == is_played
    if not is_played:
        assert (finding.proof, finding.fault, finding.case) == ("", fault, case)
        return
    assert plays.options == [(None, True, fault.cause)]
    assert plays.call_times[0].timeout("tools/call t") == 65.0
    assert (finding.proof, finding.fault.sentence, finding.is_failure) == ("proven", "proven", True)
    assert finding.case == (plays.played[0][:5] if detail == STOPPED else case)


async def test_proof_that_no_play_shows_changes_nothing() -> None:
    fault = TargetFault(kind="row", row="RPC-35", detail=STOPPED, sent=SENT, is_certain=False)
    examiner, plays = examiner_of(lambda case, number: [fault], hints=CLOSED_HINTS)
    case: Case = [BEGIN, ("call", "t", {"b": 1}, ()), CALL_T]
    finding = FuzzFinding(fault=fault, case=case, hits=3, plays=3)
    await examiner.prove(finding, 10.0, math.inf)
    assert len(plays.played) == 2, "of the call, and of the other one of its tool"
    assert (finding.proof, finding.fault, finding.case) == ("", fault, case)
