"""Turns as sums and as JSON, and what callers draw."""

from __future__ import annotations

import json
import pickle
from collections import Counter
from dataclasses import replace

import pytest

from mcp_trio.oracle.bench._histogram import Histogram
from mcp_trio.oracle.bench._requests import Mix, PreparedCall, varied
from mcp_trio.oracle.bench._turn import BenchTurn, Pace, TargetGone


def turn(seconds: float, answered: int, **more: object) -> BenchTurn:
    made = BenchTurn(
        seconds=seconds,
        histogram=Histogram([0.001] * answered),
        sent=answered + 3,
        answered=answered,
        rate=answered / seconds,
        timeouts=1,
        errors=Counter({"isError": 2}),
        slowest=[(0.001, "ping")] * 5,
        tenths=[answered, *[0] * 9],
        load_cpu=0.5,
    )
    for name, value in more.items():
        setattr(made, name, value)
    return made


def test_turns_one_after_the_other_add_up() -> None:
    both = turn(1.0, 10, memory=5, target_cpu=0.25, lag=1.0, drain=2.0) + turn(3.0, 90, memory=4)
    assert (both.seconds, both.answered, both.sent, both.rate) == (4.0, 100, 106, 25.0)
    assert (both.failed, both.errors) == (6, {"isError": 4})
    assert (both.memory, both.target_cpu, both.load_cpu) == (5, None, 1.0)
    assert both.tenths[0] == both.histogram.count == 100
    assert len(both.slowest) == 5
    assert both.lag == pytest.approx(13 / 106)
    assert both.drain == pytest.approx(26 / 106)
    assert (turn(1.0, 1, stray_lines=2) + turn(1.0, 1, stray_lines=3)).stray_lines == 5


def test_turns_beside_each_other_add_their_rates() -> None:
    both = turn(1.0, 10, target_cpu=0.25).beside(turn(2.0, 90, target_cpu=0.5))
    assert (both.seconds, both.answered, both.rate) == (2.0, 100, 55.0)
    assert (both.load_cpu, both.target_cpu) == (1.0, 0.5)


# Two turns with other values in each member, and what both are in sum.
FIRST = BenchTurn(
    seconds=1.0,
    histogram=Histogram([0.001, 0.002]),
    sent=10,
    answered=2,
    rate=2.0,
    late=3,
    timeouts=5,
    errors=Counter({"isError": 2, "closed": 1}),
    slowest=[(0.009, "a"), (0.007, "b"), (0.005, "c"), (0.003, "d")],
    tenths=[1, 0, 0, 0, 1, 0, 0, 0, 0, 0],
    load_cpu=0.5,
    target_cpu=0.25,
    memory=7,
    lag=0.125,
    stray_lines=1,
    drain=0.25,
    unfinished=4,
)
SECOND = BenchTurn(
    seconds=3.0,
    histogram=Histogram([0.004]),
    sent=30,
    answered=1,
    rate=6.0,
    late=4,
    timeouts=6,
    errors=Counter({"isError": 23}),
    slowest=[(0.008, "e"), (0.006, "f")],
    tenths=[0, 0, 0, 0, 1, 0, 0, 0, 0, 0],
    load_cpu=0.125,
    target_cpu=0.75,
    memory=5,
    lag=0.375,
    stray_lines=2,
    drain=0.5,
    is_cut=True,
    unfinished=5,
)
BOTH = BenchTurn(
    histogram=Histogram([0.001, 0.002, 0.004]),
    sent=40,
    answered=3,
    late=7,
    timeouts=11,
    errors=Counter({"isError": 25, "closed": 1}),
    slowest=[(0.009, "a"), (0.008, "e"), (0.007, "b"), (0.006, "f"), (0.005, "c")],
    tenths=[1, 0, 0, 0, 2, 0, 0, 0, 0, 0],
    load_cpu=0.625,
    memory=7,
    lag=0.3125,
    stray_lines=3,
    drain=0.4375,
    is_cut=True,
    unfinished=9,
)


def test_each_member_of_two_turns_adds_up() -> None:
    expected = replace(BOTH, seconds=4.0, rate=5.0, target_cpu=1.0)
    for both in (FIRST + SECOND, SECOND + FIRST):
        assert both == expected
    beside = replace(BOTH, seconds=3.0, rate=8.0, target_cpu=0.75)
    assert FIRST.beside(SECOND) == beside
    assert SECOND.beside(FIRST) == beside


def test_figures_that_were_not_measured_are_not_in_the_sum() -> None:
    """In turns one after the other the processor time of one turn alone would look too low."""
    none = replace(SECOND, target_cpu=None, memory=None)
    for both in (FIRST + none, none + FIRST):
        assert (both.target_cpu, both.memory) == (None, 7)
    for both in (FIRST.beside(none), none.beside(FIRST)):
        assert (both.target_cpu, both.memory) == (0.25, 7)
    assert (none + none).memory is none.beside(none).target_cpu is None


def test_turns_without_calls_have_means_of_0() -> None:
    both = BenchTurn() + BenchTurn()
    assert both == BenchTurn()
    assert (both.rate, both.lag, both.drain, both.tenths) == (0.0, 0.0, 0.0, [0] * 10)


def test_turn_as_json_has_these_members() -> None:
    """Programs read them from the report, so their names don't change."""
    assert SECOND.to_json() == {
        "form": 1,
        "seconds": 3.0,
        "histogram": SECOND.histogram.to_json(),
        "sent": 30,
        "answered": 1,
        "rate": 6.0,
        "late": 4,
        "timeouts": 6,
        "errors": {"isError": 23},
        "slowest": [[0.008, "e"], [0.006, "f"]],
        "tenths": [0, 0, 0, 0, 1, 0, 0, 0, 0, 0],
        "load_cpu": 0.125,
        "target_cpu": 0.75,
        "memory": 5,
        "lag": 0.375,
        "stray_lines": 2,
        "drain": 0.5,
        "is_cut": True,
        "unfinished": 5,
    }


def test_turn_json_form_and_pickle_give_the_same_turn() -> None:
    made = turn(1.0, 10, memory=5, target_cpu=0.25, stray_lines=3, drain=0.5)
    assert pickle.loads(pickle.dumps(made)) == made
    assert BenchTurn.from_json(json.loads(json.dumps(made.to_json()))) == made


@pytest.mark.parametrize(
    "change",
    [{"form": 2}, {"histogram": {}}, {"more": 1}, {"slowest": [1]}, {"errors": 5}],
)
def test_turn_from_wrong_json_raises(change: dict[str, object]) -> None:
    with pytest.raises(ValueError, match=r"form|histogram|turn"):
        BenchTurn.from_json({**turn(1.0, 1).to_json(), **change})


@pytest.mark.parametrize("values", [(None, 0), (0.0, 1), (-1.0, 1), (float("nan"), 1), (1e7, 1)])
def test_pace_out_of_range_raises(values: tuple[float | None, int]) -> None:
    with pytest.raises(ValueError, match=r"rate|concurrency"):
        Pace(*values)


def test_pace_at_its_limits_is_allowed() -> None:
    assert Pace(999_999.0, 1) == Pace(999_999.0, 1, even=False, seed=0)
    with pytest.raises(ValueError, match="below 1,000,000, not 1000000"):
        Pace(1_000_000, 1)


def test_end_of_a_target_says_only_what_is_known() -> None:
    gone = TargetGone("it has ended")
    assert (str(gone), gone.status, gone.stderr, gone.turn) == ("it has ended", None, (), None)


def test_mix_draws_by_weight_and_equally_for_equal_seeds() -> None:
    often = PreparedCall("ping", None, "ping", weight=9.0)
    rarely = PreparedCall("tools/list", None, "tools/list")
    mix = Mix([often, rarely])

    def drawn(number: int, seed: int) -> list[PreparedCall]:
        worker = mix.worker(number, seed)
        return [worker.next_call(None) for _ in range(2000)]

    assert drawn(0, 1) == drawn(0, 1)
    assert drawn(0, 1) != drawn(1, 1)
    assert drawn(0, 1) != drawn(0, 2)
    assert drawn(0, 1).count(rarely) == pytest.approx(200, rel=0.3)


@pytest.mark.parametrize("calls", [[], [PreparedCall("ping", None, "ping", weight=0.0)]])
def test_mix_without_calls_or_weight_raises(calls: list[PreparedCall]) -> None:
    with pytest.raises(ValueError, match=r"needs a call|positive"):
        Mix(calls)


def test_varied_call_has_61_lengths_of_its_longest_text() -> None:
    params = {"name": "echo", "arguments": {"text": "abc", "n": 5, "to": "x"}}
    calls = varied(PreparedCall("tools/call", params, "tools/call echo"))
    texts = [call.params["arguments"]["text"] for call in calls if call.params]
    assert sorted(map(len, texts)) == list(range(3, 64))
    assert texts[4] == "abcabca"
    assert {call.params["arguments"]["to"] for call in calls if call.params} == {"x"}
    assert sum(call.weight for call in calls) == pytest.approx(1)


@pytest.mark.parametrize("params", [None, {"uri": "a:b"}, {"name": "x", "arguments": {"n": 1}}])
def test_varied_call_without_a_text_stays_alone(params: dict[str, object] | None) -> None:
    call = PreparedCall("tools/call", params, "x")
    assert varied(call) == [call]


def test_longest_text_is_varied_of_any_name() -> None:
    params = {"name": "echo", "arguments": {"a_long_name": "ab", "b": "abcd"}}
    calls = varied(PreparedCall("tools/call", params, "tools/call echo"))
    assert {call.params["arguments"]["a_long_name"] for call in calls if call.params} == {"ab"}
