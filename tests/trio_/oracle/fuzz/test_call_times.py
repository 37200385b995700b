"""How long calls may take, and what counts as a leak."""

from __future__ import annotations

import pytest

from mcp_trio.oracle.fuzz._call_times import MAX_SLOW_ELSEWHERE, MAX_STOPPED, CallTimes
from mcp_trio.oracle.fuzz.campaign._memory import MemoryWatch


@pytest.mark.parametrize(
    ("seconds", "timeout"), [((0.01,), 0.3), ((1.0,), 3.0), ((1.0, 0.1), 3.0), ((5.0,), 10.0)]
)
def test_call_after_successes_may_take_three_times_the_slowest(
    seconds: tuple[float, ...], timeout: float
) -> None:
    times = CallTimes()
    assert times.timeout("tools/call a") == 10.0
    for each in seconds:
        times.add("tools/call a", each)
    assert times.timeout("tools/call a") == pytest.approx(timeout)
    assert times.timeout("tools/call b") == 10.0


@pytest.mark.parametrize(("longest", "short"), [(10.0, 0.3), (0.2, 0.2)])
def test_tool_that_never_answers_is_waited_for_four_times(longest: float, short: float) -> None:
    """Its first call can have loaded something, or had odd arguments."""
    times, now, given = CallTimes(longest), 0.0, []
    for _ in range(100):
        given.append(times.timeout("tools/call a"))
        times.add_late("tools/call a", now, now + given[-1])
        now += given[-1]
    expected = [longest if place in (0, 1, 3, 7) else short for place in range(100)]
    assert given == expected
    if longest > short:
        assert now == pytest.approx(68.8)


def test_tool_with_a_slow_first_call_is_known_once_it_answers() -> None:
    times = CallTimes()
    times.add_late("tools/call a", 0.0, 10.0)
    times.add("tools/call a", 0.5)
    times.add_late("tools/call a", 20.0, 21.5)
    assert times.timeout("tools/call a") == 1.5


def test_late_calls_beside_each_other_count_once() -> None:
    """Lanes call a tool at the same time: not all of its long waits are used up by that."""
    times = CallTimes()
    for _ in range(4):
        times.add_late("tools/call a", 0.0, 10.0)
    assert times.timeout("tools/call a") == 10.0
    times.add_late("tools/call a", 11.0, 21.0)
    assert times.timeout("tools/call a") == 0.3


def test_tool_that_is_slow_elsewhere_too_is_soon_believed() -> None:
    times = CallTimes()
    for _ in range(MAX_SLOW_ELSEWHERE):
        assert times.may_have_stopped("tools/call a")
        times.add_slow_elsewhere("tools/call a")
    assert not times.may_have_stopped("tools/call a")
    assert times.may_have_stopped("tools/call b")


def test_tool_that_was_reported_is_examined_again_only_if_it_is_sought() -> None:
    times = CallTimes()
    for _ in range(MAX_STOPPED):
        assert times.may_have_stopped("tools/call a")
        times.add_stopped("tools/call a")
    assert not times.may_have_stopped("tools/call a")
    assert times.may_have_stopped("tools/call a", is_wanted=True)


def test_tool_is_believed_to_be_slow_after_three_calls_of_each_kind() -> None:
    """The fourth one would cost the time of a first call, and show no more."""
    assert (MAX_SLOW_ELSEWHERE, MAX_STOPPED) == (3, 3)
    times = CallTimes()
    for _ in range(3):
        times.add_slow_elsewhere("tools/call a")
    assert not times.may_have_stopped("tools/call a", is_wanted=True)


@pytest.mark.parametrize(
    ("seconds", "is_steady"), [((), False), ((0.5,), True), ((0.51,), False), ((0.1, 0.6), False)]
)
def test_tool_is_steady_if_each_success_took_a_twentieth_of_the_longest_time(
    seconds: tuple[float, ...], is_steady: bool
) -> None:
    times = CallTimes(10.0)
    for each in (*seconds, *seconds[:1]):
        times.add("tools/call a", each)
    assert times.is_steady("tools/call a") is is_steady
    assert not times.is_steady("tools/call b")


def test_times_prove_something_only_if_the_caller_says_so() -> None:
    assert (CallTimes().longest, CallTimes().proves) == (10.0, False)
    assert (CallTimes(2.0, proves=True).longest, CallTimes(2.0, proves=True).proves) == (2.0, True)


def test_times_of_a_thousand_names_are_kept() -> None:
    """Those that are known are kept up to date. Each further one may take long."""
    times, late = CallTimes(), CallTimes()
    for number in range(1_001):
        times.add(f"tools/call {number}", 0.1)
        late.add_late(f"tools/call {number}", 0.0, 10.0)
    for found in (times, late):
        short = [found.timeout(f"tools/call {number}") for number in (0, 999, 1_000)]
        assert short == ([pytest.approx(0.3)] * 2 + [10.0] if found is times else [10.0] * 3)
    times.add("tools/call 5", 1.0)
    assert times.timeout("tools/call 5") == 3.0
    for number in (999, 1_000):
        late.add_late(f"tools/call {number}", 20.0, 30.0)
    assert [late.timeout(f"tools/call {number}") for number in (999, 1_000)] == [0.3, 10.0]


def sizes(watch: MemoryWatch, process: int, cases: int, first: int, a_case: float) -> None:
    for played in range(1, cases + 1):
        if watch.is_due(played):
            watch.add(process, played, {process: int(first + a_case * played)})
    watch.end(process)


def test_memory_that_grows_with_each_case_in_several_processes_is_noted() -> None:
    watch = MemoryWatch()
    for process in range(3):
        sizes(watch, process, 200, 20 << 20, 100_000)
    assert watch.note() == (
        "memory of the server grows by 98 KiB a case, without end (measured in 3 processes)"
    )


@pytest.mark.parametrize(("cases", "a_case"), [(60, 100_000), (1_000, 5_000), (400, 0)])
def test_memory_of_short_or_thrifty_processes_is_not_noted(cases: int, a_case: float) -> None:
    watch = MemoryWatch()
    sizes(watch, 1, cases, 20 << 20, a_case)
    assert watch.note() == ""


def test_memory_of_a_process_that_fills_its_caches_is_not_noted() -> None:
    watch = MemoryWatch()
    for process in range(3):
        for played in range(20, 400, 10):
            size = (20 << 20) + 100_000 * min(played, 240) + 11_000 * played
            watch.add(process, played, {process: size})
        watch.end(process)
    assert watch.note() == ""


def test_memory_that_the_system_does_not_tell_is_not_noted() -> None:
    watch = MemoryWatch()
    for played in range(20, 400, 10):
        watch.add(1, played, {})
    watch.end(1)
    assert watch.note() == ""


def test_memory_of_a_server_that_another_process_has_started_is_noted() -> None:
    """As with `npx`: the process that was started doesn't grow, and the cases count once."""
    watch = MemoryWatch()
    for played in range(20, 400, 10):
        watch.add(1, played, {1: 9 << 20, 2: (20 << 20) + 100_000 * played})
    watch.end(1)
    assert "grows by 98 KiB a case, without end (measured in 1 process)" in watch.note()


def test_processes_that_come_and_go_are_no_leak() -> None:
    watch = MemoryWatch()
    for played in range(20, 400, 10):
        helpers = {played: 50 << 20} if played % 50 == 0 or played > 300 else {}
        watch.add(1, played, {1: 20 << 20, **helpers})
    watch.end(1)
    assert watch.note() == ""
