"""A run against targets that are formulas, on a clock that jumps: turns, rows, searches."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
import trio

from mcp_core import ConnectFailed
from mcp_trio.oracle.bench._histogram import Histogram
from mcp_trio.oracle.bench._turn import BenchTurn, Pace, TargetGone
from mcp_trio.oracle.bench.calls._calls import BenchCalls
from mcp_trio.oracle.bench.report._run import BenchRow, BenchRun, RateSearch, TargetEnd
from tests.trio_.oracle.bench.fake_load import FakeLoad

if TYPE_CHECKING:
    from collections.abc import Sequence

    from trio.testing import MockClock


def bench_run(seconds: float = 5.0, **loads: FakeLoad) -> BenchRun:
    return with_options(loads, seconds=seconds)


def with_options(loads: dict[str, FakeLoad], **options: Any) -> BenchRun:
    works = {name: BenchCalls().work(load.revision) for name, load in loads.items()}
    return BenchRun(loads=loads, works=works, **{"seconds": 5.0, "seed": 0, **options})


CLOSED = Pace(None, 1)


async def test_targets_take_turns_in_a_drawn_order(autojump_clock: MockClock) -> None:
    """In each round every target has one turn, and none is always the first."""
    loads = {name: FakeLoad(0.05) for name in "abc"}
    run = with_options(loads, seconds=10.0)
    await run.measure([CLOSED])
    began = sorted((time, name) for name, load in loads.items() for time in load.began)
    order = "".join(name for _, name in began)
    groups = [order[place : place + 3] for place in range(0, len(order), 3)]
    assert groups[0] == "abc"  # the warm-up
    assert all(sorted(each) == list("abc") for each in groups)
    assert len(groups) == 11
    assert len(set(groups)) > 2


async def test_order_is_that_of_the_seed(autojump_clock: MockClock) -> None:
    async def order(seed: int) -> list[str]:
        loads = {name: FakeLoad(0.05) for name in "abc"}
        await with_options(loads, seed=seed).measure([CLOSED])
        return [name for _, name in sorted((t, n) for n in loads for t in loads[n].began)]

    assert await order(1) == await order(1)
    assert await order(1) != await order(2)


async def test_each_round_has_calls_of_its_own_which_all_targets_get(
    autojump_clock: MockClock,
) -> None:
    a, b = FakeLoad(), FakeLoad()
    await bench_run(a=a, b=b).measure([Pace(100, 4, seed=7)])
    assert [each.seed for each in a.paces] == [each.seed for each in b.paces]
    # A seed gives the same calls in every version. The first round is the warm-up.
    assert [each.seed for each in a.paces] == [7 * 1_000_003 + number for number in range(-1, 5)]


async def test_warm_up_is_not_counted(autojump_clock: MockClock) -> None:
    load = FakeLoad()
    run = bench_run(5.0, a=load)
    await run.measure([Pace(100, 4)])
    [row] = run.rows
    assert len(load.paces) == 6
    assert (row.total.sent, len(row.turns), row.total.seconds) == (500, 5, 5.0)


@pytest.mark.parametrize(
    ("seconds", "turns", "length"),
    [(0.5, 5, 0.1), (1.0, 5, 0.2), (5.0, 5, 1.0), (10.0, 10, 1.0), (7.4, 7, 1.057)],
)
async def test_run_is_cut_into_turns(
    seconds: float, turns: int, length: float, autojump_clock: MockClock
) -> None:
    """The warm-up takes a second, or as long as the whole run."""
    load = FakeLoad(0.05)
    run = bench_run(seconds, a=load)
    await run.measure([CLOSED])
    [row] = run.rows
    assert row.length == pytest.approx(length, rel=0.01)
    assert [each.seconds for each in row.turns] == pytest.approx([row.length] * turns)
    assert load.began[1] - load.began[0] == pytest.approx(min(seconds, 1.0))


@pytest.mark.parametrize("kind", ["measure", "search"])
async def test_run_that_is_stopped_keeps_what_its_last_turn_has(
    kind: str, autojump_clock: MockClock
) -> None:
    """It is marked, and compared with no other turn. No further one begins."""
    load = FakeLoad()
    run = bench_run(a=load)
    pace = Pace(100, 4)
    async with trio.open_nursery() as nursery:
        if kind == "measure":
            nursery.start_soon(run.measure, [pace, pace])
        else:
            nursery.start_soon(run.search, pace, 0.05)
        await trio.sleep(3.25)  # a second is the warm-up
        run.stop()
        run.stop()
    [row] = run.rows
    assert [(turn.sent, turn.is_cut) for turn in row.turns] == [
        (100, False),
        (100, False),
        (25, True),
    ]
    assert (row.total.is_cut, row.total.sent, row.total.unfinished) == (True, 225, 3)
    assert len(row.whole_turns) == 2
    assert len(load.paces) == 4


@pytest.mark.parametrize(("seconds", "sent"), [(0.5, []), (1.25, [25])])
async def test_run_that_is_stopped_early_keeps_no_warm_up(
    seconds: float, sent: list[int], autojump_clock: MockClock
) -> None:
    """The warm-up counts nowhere, so it isn't even cut: a load that ends late delays nothing."""
    load = FakeLoad() if sent else Deaf()
    run = bench_run(a=load)
    began = trio.current_time()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(run.measure, [Pace(100, 4)])
        await trio.sleep(seconds)
        run.stop()
    assert [turn.sent for turn in run.rows[0].turns] == sent
    assert trio.current_time() - began == pytest.approx(seconds)


class Deaf(FakeLoad):
    """A load that doesn't end its turn. `answers` is what it says about that."""

    answers = True

    def cut(self) -> bool:
        return self.answers


@pytest.mark.parametrize(("answers", "seconds", "ends"), [(True, 3.5, 5.5), (False, 3.5, 3.5)])
async def test_turn_that_cannot_be_cut_is_cancelled(
    answers: bool, seconds: float, ends: float, autojump_clock: MockClock
) -> None:
    """A load that says it ends its turn has two seconds for that, and no more by a second stop."""
    load = Deaf(timeouts=1.0, timeout=60.0)
    load.answers = answers
    run = bench_run(a=load)
    began = trio.current_time()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(run.measure, [Pace(100, 4)])
        await trio.sleep(61.0 + seconds)
        run.stop()
        if answers:
            await trio.sleep(1.0)
            run.stop()  # a second time, which gives it no further time
    assert trio.current_time() - began == pytest.approx(61.0 + ends)
    assert run.rows[0].turns == []


@pytest.mark.parametrize(
    ("latencies", "is_behind"),
    [
        ([0.3 * (n + 1) for n in range(20)], True),  # one call after the other
        ([6.0] * 20, False),  # all at once, and slowly
        ([0.1] * 19 + [6.0], False),  # one outlier
    ],
)
def test_target_with_free_connections_is_behind_if_its_calls_queue(
    latencies: list[float], is_behind: bool
) -> None:
    """A program has one pipe, so a call waits there although the pace allows more of them."""
    row = BenchRow("a", Pace(20.0, 64))
    for _ in range(5):
        histogram = Histogram(latencies)
        row.add(BenchTurn(seconds=7.0, histogram=histogram, sent=20, answered=20, rate=20 / 7))
    assert row.is_behind is is_behind
    assert row.is_hopeless is is_behind


def measured(
    latencies: Sequence[float] = (), *, seconds: float = 1.0, rate: float = 100.0, **more: Any
) -> BenchTurn:
    """Return a turn in which a hundred calls are due."""
    histogram = Histogram(latencies)
    values = {"sent": 100, "answered": 100, **more}
    return BenchTurn(seconds=seconds, histogram=histogram, rate=rate, **values)


OPEN = Pace(100.0, 64)


def row_of(*turns: BenchTurn, pace: Pace = OPEN) -> BenchRow:
    row = BenchRow("a", pace)
    for turn in turns:
        row.add(turn)
    return row


@pytest.mark.parametrize(
    ("latencies", "seconds", "is_behind"),
    [
        ([0.1] * 49 + [6.0] * 51, 7.0, True),
        ([0.1] * 50 + [6.0] * 50, 7.0, False),  # the median is short
        ([0.1] + [6.0] * 199, 7.0, True),  # one is short
        ([0.1] * 49 + [6.0] * 51, 1.5, False),  # the last ones come half a turn later
    ],
)
def test_calls_queue_if_half_of_them_take_longer_than_the_first_one(
    latencies: list[float], seconds: float, is_behind: bool
) -> None:
    assert row_of(measured(latencies, seconds=seconds, rate=50.0)).is_behind is is_behind


@pytest.mark.parametrize(
    ("late", "rate", "is_behind"), [(51, 96.9, True), (50, 96.9, False), (51, 97.0, False)]
)
def test_target_is_behind_if_most_calls_are_late_and_responses_too_few(
    late: int, rate: float, is_behind: bool
) -> None:
    turn = measured(late=late, rate=rate)
    assert row_of(turn).is_behind is is_behind
    assert not row_of(turn, pace=CLOSED).is_behind


@pytest.mark.parametrize(
    ("seconds", "are_over"),
    [([3.0], False), ([3.01], True), ([9.0, 1.0], False), ([1.0, 9.0], True)],
)
def test_turns_are_over_once_the_last_one_took_over_three_times_as_long(
    seconds: list[float], are_over: bool
) -> None:
    late = row_of(*(measured(seconds=each, late=100, rate=10.0) for each in seconds))
    assert late.is_hopeless is are_over
    silent = row_of(*(measured(seconds=each, answered=0, rate=0.0) for each in seconds))
    assert silent.is_silent is are_over


def test_row_without_turns_is_none_of_all_that_turns_show() -> None:
    for pace in CLOSED, OPEN:
        row = row_of(pace=pace)
        assert not any([row.is_behind, row.is_hopeless, row.is_silent, row.is_short])
        assert not any([row.failed_all, row.is_client_bound, row.halves])


@pytest.mark.parametrize(
    ("latencies", "rate", "is_short"),
    [
        ([], 96.9, True),
        ([], 97.0, False),
        ([0.01] * 99 + [1.0], 95.0, True),  # a single outlier excuses nothing
        ([0.01] * 98 + [1.0] * 2, 95.0, False),
    ],
)
def test_responses_are_too_few_but_for_the_latency_of_the_last_one(
    latencies: list[float], rate: float, is_short: bool
) -> None:
    turn = measured(latencies, rate=rate)
    assert row_of(turn).is_short is is_short
    assert not row_of(turn, pace=CLOSED).is_short


@pytest.mark.parametrize(
    ("turn", "limit", "keeps"),
    [
        (measured([0.01] * 99 + [1.0]), 0.05, True),
        (measured([0.01] * 98 + [1.0] * 2), 0.05, False),
        (measured([0.05] * 100), 0.05, False),  # less than the limit
        (measured([0.01] * 100, late=100, rate=90.0), 0.05, False),  # behind
        (measured([0.01] * 100, rate=90.0), 0.05, False),  # fewer responses than calls were due
    ],
)
def test_rate_is_kept_if_nearly_all_calls_are_answered_within_the_limit(
    turn: BenchTurn, limit: float, keeps: bool
) -> None:
    row = row_of(turn)
    assert row.keeps(limit) is keeps
    row.end = TargetEnd("it has ended")
    assert not row.keeps(limit)


def test_rate_is_not_kept_if_the_last_turn_has_no_response() -> None:
    """A few calls of many are lost in it, so the percentile doesn't show it."""
    turns = [measured([0.01] * 100) for _ in range(200)]
    assert row_of(*turns).keeps(0.05)
    last = measured(seconds=4.0, answered=0, timeouts=100, rate=0.0)
    assert not row_of(*turns, last).keeps(0.05)


@pytest.mark.parametrize(
    ("cpu", "rate", "latency", "is_limit"),
    [
        (0.9, 100.0, 1.0, True),  # the load is busy
        (0.85, 100.0, 0.01, False),
        (0.1, 90.0, 0.01, True),  # it starts calls too late
        (0.1, 40.0, 1.0, False),  # the target is slow
    ],
)
def test_load_is_the_limit_if_it_is_busy_or_starts_calls_late(
    cpu: float, rate: float, latency: float, is_limit: bool
) -> None:
    row = row_of(measured([latency] * 100, rate=rate, load_cpu=cpu))
    assert row.is_limited_by_load(0.05) is is_limit


async def test_target_that_ends_ends_its_row_and_the_others_go_on(
    autojump_clock: MockClock,
) -> None:
    run = bench_run(a=FakeLoad(ends_after=3), b=FakeLoad())
    await run.measure([Pace(100, 4), Pace(200, 4)])
    rows = [(row.target, row.pace.rate, len(row.turns)) for row in run.rows]
    assert rows == [("a", 100, 3), ("b", 100, 5), ("b", 200, 5)]
    end = run.rows[0].end
    assert end is not None
    assert (end.status, end.stderr) == (1, ("boom",))
    assert set(run.ends) == {"a"}


async def test_target_that_ends_in_its_warm_up_has_no_turns(autojump_clock: MockClock) -> None:
    """There are no figures, so the reason has the calls until then."""
    run = bench_run(a=FakeLoad(0.05, ends_after=0))
    await run.measure([CLOSED])
    [row] = run.rows
    assert not row.turns
    assert row.end is not None
    assert row.end.reason == (
        "the server has ended; it ended during the warm-up, after 20 calls, and so has no figures"
    )


@pytest.mark.parametrize(
    ("turn", "number", "turns", "reason"),
    [
        (None, 0, 0, "gone; it ended during the warm-up, and so has no figures"),
        (BenchTurn(sent=1), 0, 0, "gone; it ended during the warm-up, after 1 call, and so has"),
        (BenchTurn(), 1, 0, "gone"),
        (None, 1, 0, "gone"),
        (BenchTurn(sent=1), 1, 1, "gone"),
    ],
)
async def test_target_that_ends_keeps_what_its_last_turn_has(
    turn: BenchTurn | None, number: int, turns: int, reason: str, autojump_clock: MockClock
) -> None:
    """A turn without a call, and a warm-up, count nowhere."""

    class Ending(FakeLoad):
        async def turn(self, *arguments: Any) -> Any:
            if len(self.paces) == number:
                raise TargetGone("gone", turn=turn)
            return await super().turn(*arguments)

    run = bench_run(a=Ending())
    await run.measure([Pace(100, 4)])
    [row] = run.rows
    assert len(row.turns) == turns
    assert row.end is not None
    assert row.end.reason.startswith(reason)
    assert (row.end.reason == reason) is bool(number or turn is None)


class Failing(FakeLoad):
    """A load whose second turn, the first after its warm-up, raises an error."""

    error_raised: Exception

    async def turn(self, *arguments: Any) -> Any:
        if len(self.paces) == 1:
            raise self.error_raised
        return await super().turn(*arguments)


async def test_target_without_a_session_ends_and_no_secret_is_shown(
    autojump_clock: MockClock,
) -> None:
    load = Failing()
    load.error_raised = ConnectFailed("no session with 123")
    hide = {"a": lambda text: text.replace("123", "***")}
    run = with_options({"a": load, "b": FakeLoad()}, hide=lambda name, text: hide[name](text))
    await run.measure([Pace(100, 4)])
    assert [len(row.turns) for row in run.rows] == [0, 5]
    assert run.ends["a"] is run.rows[0].end
    assert (run.ends["a"].reason, run.ends["a"].status) == ("no session with ***", None)


async def test_fault_of_a_load_ends_the_run(autojump_clock: MockClock) -> None:
    load = Failing()
    load.error_raised = RuntimeError("a fault")
    with pytest.raises(RuntimeError, match="a fault"):
        await bench_run(a=load).measure([CLOSED])


@pytest.mark.parametrize("pace", [CLOSED, Pace(100, 64)])
async def test_target_that_never_answers_has_one_turn(
    pace: Pace, autojump_clock: MockClock
) -> None:
    run = bench_run(a=FakeLoad(timeouts=1.0, timeout=30.0), b=FakeLoad())
    began = trio.current_time()
    await run.measure([pace])
    assert [(len(row.turns), row.is_silent) for row in run.rows] == [(1, True), (5, False)]
    assert trio.current_time() - began < 70


async def test_target_that_stops_answering_has_no_further_turns(
    autojump_clock: MockClock,
) -> None:
    class Stopping(FakeLoad):
        async def turn(self, *arguments: Any) -> Any:
            self.timeouts, self.timeout = (1.0, 30.0) if len(self.paces) == 3 else (0.0, 0.0)
            return await super().turn(*arguments)

    run = bench_run(a=Stopping())
    await run.measure([Pace(100, 64)])
    assert (len(run.rows[0].turns), run.rows[0].total.answered) == (3, 200)
    assert not run.rows[0].keeps(1000.0)


async def test_sweep_of_a_target_that_never_answers_ends_at_once(
    autojump_clock: MockClock,
) -> None:
    run = bench_run(a=FakeLoad(timeouts=1.0, timeout=30.0))
    began = trio.current_time()
    await run.search(Pace(100, 64), 0.05)
    assert [row.pace.rate for row in run.tried] == [100]
    assert trio.current_time() - began < 70


async def test_rate_that_cannot_be_kept_is_found(autojump_clock: MockClock) -> None:
    run = bench_run(a=FakeLoad(capacity=279))
    await run.measure([Pace(500, 64), Pace(200, 64)])
    fast, slow = run.rows
    assert (fast.is_behind, slow.is_behind) == (True, False)
    assert fast.total.rate == pytest.approx(279, rel=0.01)
    assert len(fast.turns) == 5


async def test_hopeless_rate_is_not_measured_to_the_end(autojump_clock: MockClock) -> None:
    """Each turn takes the time to answer all its calls: a hundred seconds for one second."""
    run = bench_run(a=FakeLoad(capacity=10))
    began = trio.current_time()
    await run.measure([Pace(1000, 64)])
    assert len(run.rows[0].turns) == 1
    assert trio.current_time() - began == pytest.approx(200)


@pytest.mark.parametrize(
    ("pace", "load", "differs"),
    [
        (Pace(100, 4), FakeLoad(slower=0.2), True),
        (Pace(100, 4), FakeLoad(slower=0.005), False),
        (CLOSED, FakeLoad(), False),
    ],
)
async def test_halves_that_differ_are_found(
    pace: Pace, load: FakeLoad, differs: bool, autojump_clock: MockClock
) -> None:
    run = bench_run(10.0, a=load)
    await run.measure([pace])
    halves = run.rows[0].halves
    assert (halves is not None) == differs
    if halves is not None:
        assert halves[1] > 1.2 * halves[0]


@pytest.mark.parametrize(
    ("rates", "halves"),
    [
        ([100.0, 120.0, 900.0, 200.0, 240.0], (110.0, 220.0)),  # the middle one is in neither
        ([240.0, 200.0, 110.0], (240.0, 110.0)),
        ([100.0, 120.0], None),
        ([100.0], None),
    ],
)
def test_halves_of_a_closed_loop_are_its_rates(
    rates: list[float], halves: tuple[float, float] | None
) -> None:
    row = row_of(*(measured(rate=each) for each in rates), pace=CLOSED)
    assert row.halves == (None if halves is None else pytest.approx(halves))
    row.add(measured(rate=10.0, is_cut=True))
    assert row.halves == (None if halves is None else pytest.approx(halves))


@pytest.mark.parametrize("answered", [(100, 0), (0, 100)])
def test_half_without_responses_is_compared_with_none(answered: tuple[int, int]) -> None:
    turns = [measured(answered=each, rate=float(each)) for each in answered]
    assert row_of(*turns, pace=CLOSED).halves is None


@pytest.mark.parametrize(("short", "differ"), [(49, True), (50, False)])
def test_halves_of_an_open_loop_are_its_medians(short: int, differ: bool) -> None:
    first = measured([0.001] * short + [0.009] * (100 - short))
    second = measured([0.001] * 100)
    assert (row_of(first, second).halves is not None) is differ
    late = measured([0.5] * 100, late=100, rate=50.0)
    assert row_of(first, late, late).halves is None  # it is behind, which says more


@pytest.mark.parametrize(
    ("cpu", "processes", "is_bound"), [(0.9, 1, True), (0.8, 1, False), (1.2, 2, False)]
)
async def test_load_that_is_the_slower_part_is_found(
    cpu: float, processes: int, is_bound: bool, autojump_clock: MockClock
) -> None:
    run = with_options({"a": FakeLoad(0.05, cpu=cpu)}, processes=lambda _: processes)
    await run.measure([Pace(None, processes)])
    assert run.rows[0].is_client_bound == is_bound


async def test_processes_without_a_caller_do_not_hide_that_the_load_is_slower(
    autojump_clock: MockClock,
) -> None:
    run = with_options({"a": FakeLoad(0.05, cpu=0.9)}, processes=lambda _: 4)
    await run.measure([CLOSED])
    assert (run.rows[0].processes, run.rows[0].is_client_bound) == (1, True)


async def test_slow_machine_is_noted_at_the_rows_that_it_hit(autojump_clock: MockClock) -> None:
    answers = iter([False, True])

    async def is_slow() -> bool:
        return next(answers)

    run = with_options({"a": FakeLoad()}, is_machine_slow=is_slow)
    await run.measure([Pace(100, 4), Pace(200, 4)])
    assert [row.on_slow_machine for row in run.rows] == [False, True]


@pytest.mark.parametrize("capacity", [3.0, 77.0, 100.0, 2790.0, 31_000.0])
def test_search_finds_the_highest_rate(capacity: float) -> None:
    def answer(rate: float) -> bool:
        return rate <= capacity

    search = RateSearch(100.0)
    tries = 0
    while search.rate is not None:
        search.note(is_kept=answer(search.rate))
        tries += 1
    assert capacity / 1.06 <= search.kept <= capacity
    assert tries < 25


@pytest.mark.parametrize(
    ("start", "capacity", "rates"),
    [
        (100.0, 279.0, [100.0, 200.0, 400.0, 283.0, 238.0, 260.0, 271.0]),
        (100.0, 0.0, [100.0, 25.0, 6.25, 1.5625]),
        (5.0, 0.0, [5.0, 1.25]),
        (2.0, 0.0, [2.0]),
        (60_000.0, 1e9, [60_000.0, 120_000.0, 240_000.0, 480_000.0]),
        (180_000.0, 1e9, [180_000.0, 360_000.0]),
        (250_000.0, 1e9, [250_000.0]),
    ],
)
def test_search_doubles_the_rate_and_then_halves_the_gap(
    start: float, capacity: float, rates: list[float]
) -> None:
    """Rates below 0.5 calls a second and over 500,000 aren't tried."""
    search = RateSearch(start)
    tried: list[float] = []
    while search.rate is not None and len(tried) < 20:
        tried.append(search.rate)
        search.note(is_kept=search.rate <= capacity)
    assert tried == rates
    assert search.kept == max((each for each in rates if each <= capacity), default=0.0)


async def test_sweep_finds_the_rate_of_each_target(autojump_clock: MockClock) -> None:
    run = with_options({"fast": FakeLoad(capacity=279), "slow": FakeLoad(capacity=35)}, seconds=1.0)
    await run.search(Pace(10, 64), 0.05)
    found = {row.target: row.pace.rate or 0 for row in run.rows}
    assert found["fast"] == pytest.approx(279, rel=0.06)
    assert found["slow"] == pytest.approx(35, rel=0.06)
    assert all(row.keeps(0.05) for row in run.rows)
    assert len(run.tried) > len(run.rows)
    assert [row.pace.rate for row in run.tried[:2]] == [10, 10]


async def test_sweep_goes_on_without_the_target_that_ends(autojump_clock: MockClock) -> None:
    """It begins with 100 calls a second if the user names no rate."""
    run = with_options({"a": FakeLoad(ends_after=2), "b": FakeLoad(capacity=110)}, seconds=1.0)
    await run.search(Pace(None, 64), 0.05)
    tried = [(row.target, row.pace.rate) for row in run.tried]
    assert tried[:2] == [("a", 100.0), ("b", 100.0)]
    assert {name for name, _ in tried[2:]} == {"b"}
    assert [row.target for row in run.rows] == ["a", "b"]
    assert run.rows[0].end is run.ends["a"]


@pytest.mark.parametrize(
    "load", [FakeLoad(latency=0.2), FakeLoad(timeouts=0.2), FakeLoad(error="HTTP 503")]
)
async def test_sweep_of_a_target_that_keeps_no_rate_shows_the_lowest(
    load: FakeLoad, autojump_clock: MockClock
) -> None:
    """Calls that fail count as longer than the limit."""
    run = with_options({"a": load}, seconds=1.0)
    await run.search(Pace(100, 64), 0.05)
    [row] = run.rows
    assert not row.keeps(0.05)
    assert [each.pace.rate for each in run.tried] == [100.0, 25.0, 6.25, 1.5625]
    assert row.pace.rate == 1.5625


async def test_sweep_ends_where_the_load_is_the_slower_part(autojump_clock: MockClock) -> None:
    run = with_options({"a": FakeLoad(cpu=0.95)}, seconds=1.0)
    await run.search(Pace(100, 64), 0.05)
    assert [row.pace.rate for row in run.tried] == [100]
    assert run.rows[0].search_end == 100


@pytest.mark.parametrize(("starts", "search_end"), [(300, 322.0), (345, 367.0)])
async def test_sweep_keeps_no_rate_above_that_of_the_responses(
    starts: float, search_end: float, autojump_clock: MockClock
) -> None:
    """The load starts calls late, which no latency shows, and none is late for its caller.

    Whether the last rate that is tried is kept or not, it ends at the one that wasn't.
    """
    run = with_options({"a": FakeLoad(starts=starts)}, seconds=1.0)
    await run.search(Pace(100, 64), 0.05)
    [row] = run.rows
    assert row.pace.rate == pytest.approx(starts, rel=0.08)
    assert row.total.rate > 0.96 * (row.pace.rate or 0)
    assert row.search_end == search_end


async def test_sweep_whose_limit_is_the_target_does_not_blame_the_load(
    autojump_clock: MockClock,
) -> None:
    run = with_options({"a": FakeLoad(capacity=279)}, seconds=1.0)
    await run.search(Pace(100, 64), 0.05)
    assert run.rows[0].search_end is None


async def test_rate_is_kept_although_the_last_calls_end_after_the_turn(
    autojump_clock: MockClock,
) -> None:
    """A turn of 0.2 s with latencies of 40 ms may take 0.24 s."""

    class Trailing(FakeLoad):
        async def turn(self, *arguments: Any) -> Any:
            turn = await super().turn(*arguments)
            turn.seconds += self.latency
            turn.rate = turn.answered / turn.seconds
            return turn

    run = with_options({"a": Trailing(0.04)}, seconds=1.0)
    await run.measure([Pace(100, 64)])
    assert run.rows[0].keeps(0.05)
