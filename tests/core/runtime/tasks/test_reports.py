"""A failing store in the log: one line for each cause and minute."""

from __future__ import annotations

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
