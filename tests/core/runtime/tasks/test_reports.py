"""A failing store in the log: one line for each cause and minute."""

from __future__ import annotations

from typing import Any

import pytest

from mcp_core.runtime.tasks._reports import StoreReports
from mcp_core.tasks import TaskStoreError
from tests.core.tasks.runtimes import StoreRuntime, run_trio


def reported(*causes: tuple[float, str]) -> list[str]:
    """Return the lines about failures: each so many seconds after the one before."""

    async def main(runtime: StoreRuntime) -> list[str]:
        reports = StoreReports(runtime)
        for seconds, text in causes:
            runtime.ahead += seconds
            reports.failed("the store", TaskStoreError(text))
        return runtime.warnings

    return run_trio(main)


def test_cause_is_logged_once_a_minute() -> None:
    assert reported((0, "full")) == ["the store failed: full"]
    assert reported((0, "full"), *[(1, "full")] * 58) == ["the store failed: full"]
    assert reported((0, "full"), *[(1, "full")] * 70) == [
        "the store failed: full",
        "the store failed: full (59 times more since the last line)",
    ]
    assert reported((0, "full"), (61, "full")) == ["the store failed: full"] * 2


def test_each_cause_has_its_line() -> None:
    assert reported((0, "full"), (1, "locked"), (1, "full")) == [
        "the store failed: full",
        "the store failed: locked",
    ]


def test_causes_that_differ_each_time_are_bounded() -> None:
    lines = reported(*((0.01, f"cause {number}") for number in range(1_000)))
    assert len(lines) == 17


def test_other_exception_is_logged_with_its_traceback_once() -> None:
    async def main(runtime: StoreRuntime) -> None:
        reports = StoreReports(runtime)
        for _ in range(3):
            reports.failed("the store", ZeroDivisionError("bug"))
        assert runtime.warnings == ["the store failed: ZeroDivisionError('bug')"]

    run_trio(main)


class LogWithClock:
    """A runtime with a log and a clock that a test sets."""

    def __init__(self) -> None:
        self.now = 100.0
        self.lines: list[str] = []
        self.warn = self.lines.append

    def monotonic(self) -> float:
        return self.now

    def report_hook(self, name: str, exc: BaseException) -> None:
        self.lines.append(f"{name}: {exc!r}")


@pytest.mark.parametrize(("seconds", "is_logged"), [(59.5, False), (60.0, True)])
def test_warning_is_logged_again_after_a_minute(seconds: float, is_logged: bool) -> None:
    clock: Any = LogWithClock()
    reports = StoreReports(clock)
    assert reports.warn("full") is True
    assert reports.warn("full") is False
    clock.now += seconds
    assert reports.warn("full") is is_logged
    assert clock.lines == ["full", "full (1 times more since the last line)"][: 1 + is_logged]


def test_cause_of_the_last_minute_keeps_its_line_and_older_ones_make_room() -> None:
    """Sixteen causes have lines of their own, and all others share one."""
    clock: Any = LogWithClock()
    reports = StoreReports(clock)
    assert all(reports.warn(str(number)) for number in range(16))
    assert not reports.warn("0")  # it is known, so that it is not one of the others
    assert reports.warn("first of the others")
    assert not reports.warn("second of the others")
    clock.now += 60
    assert reports.warn("16")
    assert reports.warn("17")
    assert clock.lines[-3:] == ["first of the others", "16", "17"]
    assert len(reports._causes) == 2


def test_exception_that_the_store_says_is_its_own_is_logged_without_a_traceback() -> None:
    clock: Any = LogWithClock()
    reports = StoreReports(clock, KeyError)
    for error in (KeyError("k"), TimeoutError("late"), TypeError("bug")):
        for _ in range(2):
            reports.failed("the store", error)
    assert clock.lines == [
        "the store failed: 'k'",
        "the store failed: late",
        "the store: TypeError('bug')",
    ]
