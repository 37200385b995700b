"""Lanes: the same cases for every number of them, and an end in time for every kind of server."""

from __future__ import annotations

from collections import Counter
from random import Random
from typing import TYPE_CHECKING, Any

import pytest
import trio
from trio.testing import MockClock, wait_all_tasks_blocked

from mcp_core import ConnectFailed
from mcp_trio.oracle.fuzz._fault import TargetFault
from mcp_trio.oracle.fuzz._probe import Offers
from mcp_trio.oracle.fuzz.campaign._agenda import MAX_TRIES, MAX_WAITING, Agenda, Sighting
from mcp_trio.oracle.fuzz.campaign._campaign import Campaign, CampaignOptions, Turns
from mcp_trio.oracle.fuzz.campaign._feed import BATCH, FIRST_BATCHES, CaseFeed, GuiltySteps, lag_of
from mcp_trio.oracle.fuzz.campaign._findings import MAX_PER_ROW, Findings, FuzzFinding, HeldFinding
from mcp_trio.oracle.fuzz.causes._cause import Cause
from mcp_trio.oracle.fuzz.draw._cases import CaseSource
from mcp_trio.oracle.fuzz.draw._choices import CaseChoices
from tests.trio_.oracle.fuzz.memory_target import (
    NEW,
    OLD,
    MemorySession,
    MemoryTarget,
    answers,
    same_each_time,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from mcp_trio.oracle.fuzz._case import Case

OPEN: Any = ("open", OLD, "whole", "all")
PING: Case = [OPEN, ("request", "ping", {}, "int", "whole"), ("wait",)]
NOISE: Any = ("request", "tools/list", {"cursor": "x"}, "text", "whole")
LIMIT = 30.0 + 12.0  # seconds of a run that draws for 30


def fault(row: str = "RPC-7", method: str = "ping", **members: Any) -> TargetFault:
    return TargetFault(kind="row", row=row, method=method, **members)


def sighting(row: str = "RPC-7", method: str = "ping", case: Case = PING) -> Sighting:
    return Sighting(fault=fault(row, method), case=case, before=[], earlier=0)


def finding(row: str = "RPC-7", method: str = "ping", hits: int = 3) -> FuzzFinding:
    return FuzzFinding(fault=fault(row, method), case=PING, hits=hits, plays=3)


# -- The same cases --------------------------------------------------------------------------------


class KeptSource(CaseSource):
    """A source that keeps what it draws, and what was avoided then."""

    def __init__(self, choices: CaseChoices, seed: int) -> None:
        super().__init__(choices, seed)
        self.choices = choices
        self.drawn: list[tuple[frozenset[Any], list[Case]]] = []

    def draw(self, count: int) -> list[Case]:
        avoided = frozenset(self.choices.avoided)
        self.drawn.append((avoided, super().draw(count)))
        return self.drawn[-1][1]


def answers_lists_twice(message: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    yield from answers(message)
    if str(message.get("method")).endswith("/list"):
        yield from answers(message)


class UnsteadyTarget(MemoryTarget):
    """A server whose starts take times that differ."""

    def __init__(self, seed: int) -> None:
        super().__init__(same_each_time(answers_lists_twice))
        self._random = Random(seed)

    async def open(self, *, keep: bool = False) -> MemorySession:
        self.start_time = self._random.random() ** 4
        return await super().open(keep=keep)


@pytest.mark.long
def test_seed_draws_the_same_cases_for_every_number_of_lanes() -> None:
    """Lanes end their cases at other times in each run, and what they find is avoided."""
    runs = []
    for lanes, times in [(1, 0), (2, 1), (4, 2)]:
        choices = CaseChoices(Offers(revisions=[NEW, OLD]), ())
        source = KeptSource(choices, 3)
        limits = CampaignOptions(seconds=None, cases=120, lanes=lanes)
        run = Campaign(UnsteadyTarget(times), source, choices, limits)
        trio.run(run.run, clock=MockClock(autojump_threshold=0))
        assert run.cases >= 120
        runs.append(source.drawn)
    shortest = min(map(len, runs))
    assert sum(len(cases) for _, cases in runs[0][:shortest]) >= 120
    assert all(each[:shortest] == runs[0][:shortest] for each in runs[1:])
    assert any(avoided for avoided, _ in runs[0][:shortest])


class CountedSource:
    """A source of cases that are numbers, as texts. Nothing is avoided in the first ones."""

    def __init__(self, most: int = 10_000, first: int = 0) -> None:
        self.drawn = 0
        self.most = most
        self.first = first

    @property
    def fixed(self) -> int:
        return max(0, self.first - self.drawn)

    def draw(self, count: int) -> list[Case]:
        count = min(count, self.most - self.drawn)
        self.drawn += count
        return [[("open", str(self.drawn - count + place))] for place in range(count)]


class Choices:
    avoided: frozenset[Any] = frozenset()


def size_of(batch: int) -> int:
    return FIRST_BATCHES[batch] if batch < len(FIRST_BATCHES) else BATCH


@pytest.mark.parametrize(("slow", "waiting"), [(0, 2), (5, 7), (10, 13), (40, 48)])
async def test_slow_case_holds_up_a_later_batch_only(slow: int, waiting: int) -> None:
    """Else time would decide which steps a batch avoids. Later it may hold up few lanes."""
    source = CountedSource()
    feed = CaseFeed(source, Choices())
    before = sum(map(size_of, range(waiting)))
    held = None
    async with trio.open_nursery() as nursery:
        nursery.start_soon(feed.run)
        for _ in range(before):
            fed = await feed.next()
            assert fed is not None
            if held is None and fed.batch == slow:
                held = fed
            else:
                feed.finish(fed, ())
        await wait_all_tasks_blocked(0.01)
        assert source.drawn == before
        assert held is not None
        feed.finish(held, ())
        found = await feed.next()
        assert found is not None
        assert found.case == [("open", str(before))]
        feed.stop()


async def test_slow_case_holds_up_no_cases_in_which_nothing_is_avoided() -> None:
    source = CountedSource(first=60)
    feed = CaseFeed(source, Choices())
    async with trio.open_nursery() as nursery:
        nursery.start_soon(feed.run)
        for _ in range(sum(FIRST_BATCHES[:5])):  # of which none is finished
            assert await feed.next() is not None
        await wait_all_tasks_blocked(0.01)
        assert source.drawn == sum(FIRST_BATCHES[:5]) == 48
        feed.stop()


async def test_each_batch_is_learned_from_once_before_the_batches_that_depend_on_it() -> None:
    """Also where a batch depends on no further one than the batch before it."""
    learned: list[int] = []
    known: list[int] = []

    class Feed(CaseFeed):
        async def _learn_from(self, number: int) -> None:
            await super()._learn_from(number)
            learned.append(number)

    class Source(CountedSource):
        def draw(self, count: int) -> list[Case]:
            known.append(len(learned))
            return super().draw(count)

    feed = Feed(Source(1_500), Choices())
    async with trio.open_nursery() as nursery:
        nursery.start_soon(feed.run)
        while (fed := await feed.next()) is not None:
            feed.finish(fed, ())
    assert learned == list(range(len(learned)))
    assert len(known) > 40
    assert known == [max(0, number - lag_of(number) + 1) for number in range(len(known))]


@pytest.mark.parametrize(("most", "count", "expected"), [(5, None, 5), (99, 6, 6), (99, 0, 0)])
async def test_feed_ends_with_its_source_or_its_count(
    most: int, count: int | None, expected: int
) -> None:
    feed = CaseFeed(CountedSource(most), Choices(), count)
    fed_cases = 0
    async with trio.open_nursery() as nursery:
        nursery.start_soon(feed.run)
        while (fed := await feed.next()) is not None:
            feed.finish(fed, ())
            fed_cases += 1
    assert fed_cases == expected


async def test_lane_that_waits_is_released_when_the_feed_is_stopped() -> None:
    """The lane that would finish the batch has ended, because the time is over."""
    feed = CaseFeed(CountedSource(), Choices())
    left = []

    async def wait() -> None:
        while (fed := await feed.next()) is not None:
            left.append(fed)

    async with trio.open_nursery() as nursery:
        nursery.start_soon(feed.run)
        nursery.start_soon(wait)
        while len(left) < sum(FIRST_BATCHES[:2]):  # they are drawn in a thread
            await trio.lowlevel.checkpoint()
        await wait_all_tasks_blocked()
        feed.stop()
    assert len(left) == sum(FIRST_BATCHES[:2])


async def test_feed_tells_its_source_what_earlier_batches_have_shown() -> None:
    """A step is avoided after its faults, and tools that change something are known by name."""

    class Learning:
        avoided: frozenset[Any] = frozenset()
        changers = ("z", "b")

    known: list[tuple[set[Any], list[str]]] = []

    class Source(CountedSource):
        def draw(self, count: int) -> list[Case]:
            known.append((set(choices.avoided), list(choices.changers)))
            super().draw(count)
            return [[OPEN, LIST if number % 2 else OTHER] for number in range(count)]

    choices = Learning()
    feed = CaseFeed(Source(), choices, sum(FIRST_BATCHES[:4]))
    async with trio.open_nursery() as nursery:
        nursery.start_soon(feed.run)
        while (fed := await feed.next()) is not None:
            is_list = fed.case[1] == LIST
            feed.finish(fed, [fault()] if is_list else [], ["b", "a"] if is_list else ())
    assert known[:2] == [(set(), ["z", "b"])] * 2, "nothing was learned from yet"
    assert known[2:4] == [({LIST[:2]}, ["a", "b", "z"])] * 2


LIST: Any = ("request", "tools/list", {})
PAGE: Any = ("page", "tools/list", "all")
OTHER: Any = ("request", "prompts/list", {})


@pytest.mark.parametrize(
    ("shown", "clean", "expected"),
    [
        # Three cases with a step have shown the fault, and none without it.
        ([[LIST, OTHER], [LIST], [LIST]], [[OTHER]] * 2, {LIST[:2]}),
        # Two cases are chance.
        ([[LIST], [LIST]], [[OTHER]] * 3, set()),
        # Two steps show it, each by itself.
        ([[LIST], [PAGE]] * 3, [[OTHER]] * 9, {LIST[:2], PAGE[:2]}),
        # The fault shows in every case, with any steps.
        ([[LIST], [OTHER], [PAGE]] * 4, [], set()),
        # Most cases with the step don't show it.
        ([[LIST]] * 3, [[LIST]] * 4, set()),
    ],
)
def test_steps_are_avoided_that_show_a_fault_as_a_rule(
    shown: list[Case], clean: list[Case], expected: set[Any]
) -> None:
    """In any order of the cases, and though each case shows another fault too."""
    played = [(case, [fault(), fault("RPC-1")]) for case in shown]
    played += [(case, [fault("RPC-1")]) for case in clean]
    for order in (played, played[::-1]):
        steps = GuiltySteps()
        for case, faults in order:
            steps.add([OPEN, *case], faults)
        assert steps.names() == expected


# -- What is examined first ------------------------------------------------------------------------


def taken(agenda: Agenda) -> Sighting:
    found = agenda.take()
    assert isinstance(found, Sighting)
    return found


def test_new_rows_come_first_and_then_shrinking_further_faults_and_repeated_ones() -> None:
    """When the time is over, each broken row has a finding, if it can have one."""
    findings = Findings()
    agenda = Agenda(findings)
    agenda.add(sighting())
    first = taken(agenda)
    for each in (sighting(), sighting(method="x/y"), sighting("RPC-1")):
        agenda.add(each)
    flaky = HeldFinding(finding(hits=2))
    agenda.hold(flaky)
    agenda.release(first, is_done=True)
    assert taken(agenda).fault.row == "RPC-1"
    assert agenda.take() is flaky
    assert agenda.take() is None  # until its cause is known
    findings.held.clear()
    assert findings.add(flaky.finding)
    further = taken(agenda)
    assert further.fault.method == "x/y"
    agenda.release(further, is_done=True)
    assert taken(agenda).fault.method == "ping"
    assert agenda.take() is None


def test_advice_is_examined_after_the_faults_that_a_run_fails_for() -> None:
    agenda = Agenda(Findings())
    advice = sighting("RPC-17")
    advice.fault = fault("RPC-17", is_certain=False)
    agenda.add(advice)
    agenda.add(sighting("RPC-1"))
    assert [taken(agenda).fault.row for _ in range(2)] == ["RPC-1", "RPC-17"]


def test_faults_of_one_row_are_examined_one_after_the_other() -> None:
    """The first ones decide whether the others are examined at all."""
    findings = Findings()
    agenda = Agenda(findings)
    methods = ["ping", "tools/list", "prompts/list", "resources/list", "prompts/get"]
    assert len(methods) == MAX_PER_ROW + 2
    for method in methods:
        agenda.add(sighting(method=method, case=[OPEN, ("request", method, {})]))
    for method in methods[:MAX_PER_ROW]:
        first = taken(agenda)
        assert agenda.take() is None
        found = finding(method=method)
        found.case = first.case
        agenda.release(first, is_done=True)
        assert findings.add(found)
    assert agenda.take() is None
    assert findings.items[0].methods == methods[MAX_PER_ROW:]


@pytest.mark.parametrize(
    ("is_unclear", "other_is_unclear", "is_same"),
    [(True, False, True), (False, True, True), (True, True, True), (False, False, False)],
)
def test_finding_of_an_unclear_cause_is_the_one_that_has_a_likely_one_in_common(
    is_unclear: bool, other_is_unclear: bool, is_same: bool
) -> None:
    """Two clear ones have different causes, although each case might show both."""
    causes = [Cause("RPC-7", "request", method) for method in ("ping", "x/y")]
    first, further = finding(), finding()
    first.cause, further.cause = causes
    first.likely = further.likely = causes
    first.is_unclear, further.is_unclear = is_unclear, other_is_unclear
    findings = Findings()
    findings.items.append(first)
    assert findings._find_same(further) is (first if is_same else None)


def test_fault_is_tried_with_so_many_cases_and_no_more() -> None:
    """Each further case would take as long, and the first ones have shown nothing."""
    agenda = Agenda(Findings())
    for _ in range(MAX_TRIES):
        agenda.add(sighting())
        agenda.release(taken(agenda), is_done=True)
    for _ in range(3):
        agenda.add(sighting())
    assert agenda.take() is None
    assert not list(agenda.take_untried())
    (untold,) = agenda.take_uncounted()
    assert untold.times == 3, "they are counted, since they were seen"
    assert not agenda.take_uncounted()


def test_cases_of_a_fault_that_wait_are_limited_and_counted() -> None:
    agenda = Agenda(Findings())
    for _ in range(MAX_WAITING + 5):
        agenda.add(sighting())
    assert len(agenda) == MAX_WAITING
    first = taken(agenda)
    agenda.release(first, is_done=False)
    assert taken(agenda) is first
    agenda.release(first, is_done=False)
    assert [each.times for each in agenda._waiting] == [*[1] * (MAX_WAITING - 1), 6]
    (untried,) = agenda.take_untried()
    assert untried is first
    assert not len(agenda)


def test_nothing_is_confirmed_any_more_once_one_finding_is_enough() -> None:
    """But what was confirmed is made small."""
    agenda = Agenda(Findings())
    agenda.add(sighting())
    agenda.add(sighting("RPC-1"))
    assert agenda.take(is_enough=True) is None
    held = HeldFinding(finding("RPC-2"))
    agenda.hold(held)
    assert agenda.take(is_enough=True) is held
    assert agenda.take(is_enough=True) is None
    assert len(agenda) == 2
    assert taken(agenda).fault.row == "RPC-7"


def test_records_of_a_run_are_compared_by_identity() -> None:
    """Two cases can show the same fault, and one of them is taken or dropped."""
    assert sighting() != sighting()
    found = finding()
    assert found == finding()
    assert HeldFinding(found) != HeldFinding(found)
    records: tuple[Any, ...] = (Sighting, FuzzFinding, CampaignOptions)
    for record in records:
        with pytest.raises(TypeError):
            record(fault(), PING, [], 0)
    with pytest.raises(AttributeError):
        CampaignOptions().lanes = 2  # type: ignore[misc]


def test_further_case_with_another_likely_cause_waits_beside_many_of_one() -> None:
    agenda = Agenda(Findings())
    for _ in range(MAX_WAITING + 5):
        agenda.add(sighting())
    agenda.add(sighting(case=[OPEN, ("request", "ping", 5, "int")]))
    assert len(agenda) == MAX_WAITING + 1


def test_crash_of_a_tool_is_tried_after_many_vain_tries_with_another_tool() -> None:
    agenda = Agenda(Findings(tools=("foo", "bar")))
    crash = TargetFault(kind="crash", row="crash", detail="1", method="tools/call")

    def add(tool: str) -> None:
        case: Case = [OPEN, ("call", tool, {}, ())]
        agenda.add(Sighting(fault=crash, case=case, before=[], earlier=0))

    for _ in range(MAX_TRIES):
        add("foo")
        agenda.release(taken(agenda), is_done=True)
    add("foo")
    add("bar")
    assert taken(agenda).case[1][1] == "bar"
    assert agenda.take() is None


def test_crash_with_another_likely_cause_is_not_dropped_without_a_word() -> None:
    """Many tries of one message were in vain, and there is no time for another one's."""
    agenda = Agenda(Findings())
    crash = TargetFault(kind="crash", row="crash", detail="1", method="tools/list")
    values: list[Any] = [{}, 5]
    cases: list[Case] = [[OPEN, ("request", "tools/list", each, "int")] for each in values]
    for number in range(MAX_TRIES + 1):
        agenda.add(Sighting(fault=crash, case=cases[number == MAX_TRIES], before=[], earlier=0))
        if number < MAX_TRIES:
            agenda.release(taken(agenda), is_done=True)
    agenda.add(Sighting(fault=crash, case=cases[0], before=[], earlier=0))
    assert agenda.take() is None
    assert [each.case for each in agenda.take_untried()] == [cases[1]]
    assert not list(agenda.take_untried())


async def test_examination_is_alone_and_cases_are_not() -> None:
    """An examination waits for all cases that have begun, and lets no other one begin."""
    turns = Turns()
    now: Counter[str] = Counter()
    most: Counter[str] = Counter()

    async def act(kind: str) -> None:
        for _ in range(5):
            async with turns.alone() if kind == "examination" else turns.beside():
                now[kind] += 1
                most[kind] = max(most[kind], now[kind])
                await wait_all_tasks_blocked()
                assert kind == "case" or now["case"] == 0
                now[kind] -= 1

    async with trio.open_nursery() as nursery:
        for kind in ("case", "case", "examination", "case", "examination"):
            nursery.start_soon(act, kind)
    assert most["case"] > 1
    assert most["examination"] == 1


# -- Time ------------------------------------------------------------------------------------------


def many_faults(message: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield what a server sends that does everything twice."""
    yield from answers(message)
    yield from answers(message)


def silence(message: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield what a server sends that hangs after its handshake."""
    if message.get("method") in ("initialize", "server/discover"):
        yield from answers(message)


class Crashing(MemorySession):
    """A session whose process ends with each request after the handshake."""

    async def send_text(self, text: str, message: Mapping[str, Any]) -> None:
        if message.get("method") not in ("initialize", "notifications/initialized"):
            self.exit_status = 1
            self.end("its stdout has ended")
        await super().send_text(text, message)


class CrashingTarget(MemoryTarget):
    session_class = Crashing


TARGETS: dict[str, Callable[[], MemoryTarget]] = {
    "faults": lambda: MemoryTarget(same_each_time(many_faults), 8.0),
    "slow": lambda: MemoryTarget(same_each_time(many_faults), 5.0, {"ping": 1.5, "x/0": 1.0}),
    "hang": lambda: MemoryTarget(same_each_time(silence), 3.0),
    "crash": lambda: CrashingTarget(same_each_time(answers), 4.0),
}


@pytest.mark.parametrize("lanes", [1, 4])
@pytest.mark.parametrize("kind", TARGETS)
def test_run_ends_in_time(kind: str, lanes: int) -> None:
    """The cases would take many minutes, and so would their examinations."""
    cases: list[Case] = [
        [OPEN, *[("request", f"x/{place}", {}, "int", "whole") for place in range(number % 4)]]
        for number in range(50)
    ]
    target = TARGETS[kind]()
    clock = MockClock(autojump_threshold=0)
    began = clock.current_time()
    run = Campaign(
        target,
        None,
        CaseChoices(Offers(revisions=[OLD]), ()),
        CampaignOptions(seconds=30, lanes=lanes),
    )
    trio.run(run.run, cases, clock=clock)
    assert clock.current_time() - began <= LIMIT
    assert run.drawing_seconds > 25 or not run.unplayed
    assert run.findings
    assert all(each.is_solid for each in run.findings)
    assert target.open_sessions == set()


def twice_after(start: float) -> Callable[[Mapping[str, Any], int], Iterator[dict[str, Any]]]:
    """Return the answers of a server that sends each one twice, from a time on."""

    def found(message: Mapping[str, Any], number: int) -> Iterator[dict[str, Any]]:
        return (many_faults if trio.current_time() >= start else answers)(message)

    return found


def run_for(target: MemoryTarget, *cases: Case, cancel_at: float = 1e6, **limits: Any) -> Campaign:
    """Play stored cases in a run with a limit of time, which is cancelled at a time."""
    run = Campaign(
        target, None, CaseChoices(Offers(revisions=[OLD]), ()), CampaignOptions(**limits)
    )

    async def main() -> None:
        with trio.move_on_at(cancel_at):
            await run.run(cases)

    clock = MockClock(autojump_threshold=0)
    clock.jump(-clock.current_time())
    trio.run(main, clock=clock)
    return run


@pytest.mark.parametrize("lanes", [1, 4])
def test_fault_that_no_time_was_left_for_is_named_and_played_first_in_the_next_run(
    lanes: int,
) -> None:
    """It would be a lie to call such a run clean."""

    class SlowLater(MemoryTarget):
        async def open(self, *, keep: bool = False) -> MemorySession:
            self.start_time = 9.0 if self.starts else 0.0
            return await super().open(keep=keep)

    target = SlowLater(same_each_time(many_faults))
    run = run_for(target, PING, seconds=1, lanes=lanes, examination=3)
    assert run.findings == []
    assert dict(run.unconfirmed) == {"RPC-7 initialize": 1, "RPC-7 ping": 1}
    assert set(run.missing.values()) == {"the run has ended before it was played again"}
    assert run.unplayed == [PING]
    assert "2 faults were seen" in run.unjudged
    assert "--seconds" in run.unjudged


@pytest.mark.parametrize("lanes", [1, 4])
def test_finding_that_no_time_was_left_to_shrink_is_reported_as_it_is(lanes: int) -> None:
    case = [OPEN, NOISE, NOISE, *PING[1:], NOISE]
    target = MemoryTarget(twice_after(0.0), 2.0)
    run = run_for(target, case, seconds=3, lanes=lanes, examination=12)
    (finding,) = [each for each in run.findings if each.fault.method == "initialize"]
    assert finding.is_solid
    assert not run.unjudged


@pytest.mark.parametrize("lanes", [1, 2, 4])
@pytest.mark.parametrize("at", [1.0, 3.0, 7.0, 14.0, 22.0, 31.0, 34.0, 40.0])
def test_run_can_be_cancelled_in_each_phase(at: float, lanes: int) -> None:
    """While a case, a confirmation or a shrinking is under way, in or after the drawing."""
    cases: list[Case] = [[*PING, *[NOISE] * number, ("request", "ping", {})] for number in range(9)]
    target = MemoryTarget(same_each_time(many_faults), 2.0)
    run = run_for(target, *cases, cancel_at=at, seconds=30, lanes=lanes)
    assert target.open_sessions == set()
    assert run.seconds <= at
    assert run.activity == ""
    assert [each.number for each in run.findings] == list(range(1, len(run.findings) + 1))
    assert all(each.is_solid and each.lines for each in run.findings)
    assert run.findings or run.unplayed


class HttpTarget(MemoryTarget):
    """A server at a URL. It counts the conversations that are open at the same time."""

    kind = "http"
    most = 0

    async def open(self, *, keep: bool = False) -> MemorySession:
        session = await super().open(keep=keep)
        busy = sum(not each.is_open or bool(each.open) for each in self.open_sessions)
        self.most = max(self.most, busy)
        assert not keep or busy == 1, "an examination isn't alone"
        return session


@pytest.mark.parametrize("lanes", [1, 3])
def test_server_at_a_url_is_examined_alone(lanes: int) -> None:
    """All cases share one server, so a case could disturb what is examined."""
    cases: list[Case] = [[*PING, ("request", f"x/{number}", {})] for number in range(5)]
    target = HttpTarget(same_each_time(many_faults), 0.5)
    run = run_for(target, *cases, seconds=None, lanes=lanes)
    assert run.findings
    assert target.most == lanes


def test_target_that_no_longer_starts_ends_all_lanes() -> None:
    """Two lanes meet the same error. It is named once, and it is no error of the fuzzer."""

    class Dying(MemoryTarget):
        async def open(self, *, keep: bool = False) -> MemorySession:
            if self.starts >= 3:
                await trio.sleep(1)
                raise ConnectFailed("the disk is full")
            return await super().open(keep=keep)

    target = Dying(same_each_time(many_faults))
    run = run_for(target, *[[*PING, NOISE] for _ in range(20)], seconds=None, lanes=4)
    assert run.is_lost
    assert run.notes == ["the disk is full"]
    assert target.open_sessions == set()


@pytest.mark.parametrize(
    ("seconds", "spent", "expected"),
    [
        (1, 0, 10),
        (30, 0, 12),
        (30, 4, 8),
        (30, 99, 6),
        (60, 0, 24),
        (3600, 0, 60),
        (None, 5, float("inf")),
    ],
)
def test_time_for_examinations(seconds: float | None, spent: float, expected: float) -> None:
    options = CampaignOptions(seconds=seconds)
    assert options.after(spent).examination_time == pytest.approx(expected)
