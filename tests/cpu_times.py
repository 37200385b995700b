"""Run pytest, and measure the CPU time of each test: the default run should stay short.

    python -m tests.cpu_times [PYTEST ARGUMENT ...]

Tests above 0.1 s are listed. Those above 0.5 s are run again, alone and three times in the same
process, where modules are imported and caches are filled. One that is above 1 s each time fails the
run: mark it `long`, and give the default run a smaller sibling. One that takes 0.5 s may take 0.7 s
the next time, so a limit nearby would fail sound changes.

The time includes the child processes that a test waited for, and excludes fixtures that several
tests share. When tests are run again, a machine that is slower than usual, for example because it
is busy, has more time.

This module is also the pytest plugin that measures.
"""

from __future__ import annotations

import resource
import sys
from typing import TYPE_CHECKING, Any, Final

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Mapping, Sequence

    Generates = Generator[None, Any, Any]

LISTED: Final = 0.1  # seconds
MOST: Final = 0.5  # seconds, above which a test is run again
FAILING: Final = 1.0  # seconds
REPEATS: Final = 3
_USUAL: Final = 0.06  # CPU seconds for the loop of `slowdown`
_FIELD: Final = "cpu_seconds"  # of a report, which xdist carries to the process with all of them

_spent = pytest.StashKey[float]()


def cpu_time() -> float:
    """Return the CPU seconds of this process and of the children that it has waited for."""
    used = map(resource.getrusage, (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return sum(each.ru_utime + each.ru_stime for each in used)


def slowdown() -> float:
    """Return how many times slower than usual the machine is; 1 if it is not."""
    began = cpu_time()
    sum(number * number for number in range(1_000_000))
    return max(1.0, (cpu_time() - began) / _USUAL)


def pytest_configure(config: pytest.Config) -> None:
    config.pluginmanager.register(Meter())


class Meter:
    """The plugin that measures the phases of a test, and adds them up in its last report."""

    def __init__(self) -> None:
        self._shared = 0.0  # seconds for shared fixtures so far
        self._depth = 0  # of shared fixtures that are being set up

    def _time(self) -> float:
        return cpu_time() - self._shared

    @pytest.hookimpl(wrapper=True)
    def pytest_fixture_setup(self, fixturedef: pytest.FixtureDef[Any]) -> Generates:
        if fixturedef.scope == "function":
            return (yield)
        start = cpu_time()
        self._depth += 1
        try:
            return (yield)
        finally:
            self._depth -= 1
            if not self._depth:
                self._shared += cpu_time() - start

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_setup(self, item: pytest.Item) -> Generates:
        item.stash[_spent] = -self._time()
        try:
            return (yield)
        finally:
            item.stash[_spent] += self._time()

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_call(self, item: pytest.Item) -> Generates:
        item.stash[_spent] -= self._time()
        try:
            return (yield)
        finally:
            item.stash[_spent] += self._time()

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_teardown(self, item: pytest.Item, nextitem: pytest.Item | None) -> Generates:
        start = self._time()
        try:
            return (yield)
        finally:
            # After the last test of a file its shared fixtures end too.
            if nextitem is not None and nextitem.path == item.path:
                item.stash[_spent] += self._time() - start

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(
        self, item: pytest.Item, call: pytest.CallInfo[None]
    ) -> Generator[None, pytest.TestReport, pytest.TestReport]:
        report = yield
        if call.when == "teardown":
            setattr(report, _FIELD, item.stash[_spent])
        return report


class Times:
    """The plugin that gathers the CPU seconds of all tests, by test id."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.when == "teardown":
            self.seconds[report.nodeid] = getattr(report, _FIELD)


def run_pytest(arguments: Sequence[str]) -> tuple[int, dict[str, float]]:
    """Run pytest in this process. Return its exit status, and the CPU seconds by test id."""
    times = Times()
    status = pytest.main(["-p", "tests.cpu_times", *arguments], [times])
    return int(status), times.seconds


def run(
    arguments: Sequence[str],
    run_tests: Callable[[Sequence[str]], tuple[int, Mapping[str, float]]] = run_pytest,
    measure_slowdown: Callable[[], float] = slowdown,
) -> int:
    """Run tests, and print the expensive ones. Return the exit status."""
    status, seconds = run_tests(arguments)
    print(f"CPU time of {len(seconds)} tests: {sum(seconds.values()):.0f} s")
    listed = sorted((id for id in seconds if seconds[id] > LISTED), key=seconds.__getitem__)
    for id in reversed(listed):
        print(f"{seconds[id]:6.2f} s  {id}")
    above = {id for id in listed if seconds[id] > MOST}
    if status or not above:
        return status
    for _ in range(REPEATS):
        _, seconds = run_tests(["-q", "-m", "", *sorted(above)])
        most = FAILING * measure_slowdown()
        above = {id for id in above if seconds.get(id, 0.0) > most}
        if not above:
            return 0
    print(f"above {FAILING} s of CPU each time; mark them `long`, and add smaller siblings:")
    print("\n".join(sorted(above)))
    return 1


if __name__ == "__main__":
    sys.exit(run(sys.argv[1:]))
