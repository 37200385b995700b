"""Run pytest, and repeat the tests that failed: a gate should refuse faults, and not bad luck.

    python -m tests.repeat [--flaky FILE] [PYTEST ARGUMENT ...]

Tests of programs depend on the load of the machine. Up to three that failed are run again, twice
and alone. One that passes both times is flaky: it is added to FILE with its output, and fails
nothing. All other failures fail the run, and so do more than three. Tests of `tests/security` are
never repeated: a hole that is open now and then is open.

`.ci/run` prints FILE at its end. `tests/flaky.txt` has the flaky tests that are known; each leaves
it together with its cause.

This module is also the pytest plugin that notes what failed.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

ROOT: Final = Path(__file__).parents[1]
KNOWN: Final = ROOT / "tests" / "flaky.txt"
MOST_FLAKY: Final = 3  # in all steps of one run of `.ci/run`
REPEATS: Final = 2
_REPORT: Final = "REPEAT_REPORT"  # the file for what failed, a line of JSON each
_NEVER: Final = "tests/security/"
_TESTS_FAILED: Final = int(pytest.ExitCode.TESTS_FAILED)


@dataclass(frozen=True)
class Failure:
    """A test that failed: its id, and the text of its failure."""

    id: str
    text: str

    @property
    def first_line(self) -> str:
        """The line of the text that says what went wrong."""
        lines = [line[1:].strip() for line in self.text.splitlines() if line.startswith("E ")]
        return next(iter(lines or self.text.strip().splitlines()), "")


def pytest_configure(config: pytest.Config) -> None:
    """Note what fails, in the process that has the reports of all workers of xdist."""
    path = os.environ.get(_REPORT)
    if path and not hasattr(config, "workerinput"):
        config.pluginmanager.register(_Notes(Path(path)))


class _Notes:
    """A plugin that writes each failure to a file."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed:
            sections = "".join(f"\n-- {title} --\n{text}" for title, text in report.sections)
            line = json.dumps([report.nodeid, report.longreprtext + sections])
            with self._path.open("a", encoding="utf-8") as file:
                file.write(line + "\n")


def run_pytest(arguments: Sequence[str]) -> tuple[int, list[Failure]]:
    """Run pytest in another process. Return its exit status, and each test that failed once."""
    with tempfile.TemporaryDirectory() as directory:
        report = Path(directory) / "report"
        report.touch()
        words = [sys.executable, "-m", "pytest", "-p", "tests.repeat", *arguments]
        status = subprocess.call(words, env=os.environ | {_REPORT: str(report)})
        rows: list[tuple[str, str]] = list(map(json.loads, report.read_text("utf-8").splitlines()))
    failures = {id: Failure(id, text) for id, text in reversed(rows)}
    return status, list(reversed(failures.values()))


def run(
    arguments: Sequence[str],
    flaky_file: Path,
    run_tests: Callable[[Sequence[str]], tuple[int, list[Failure]]] = run_pytest,
) -> int:
    """Run tests, and repeat those that failed. Return the exit status."""
    status, failures = run_tests(arguments)
    if status != _TESTS_FAILED or not failures:
        return status
    reason = reason_to_fail(failures, flaky_file)
    if reason:
        print(f"no test is repeated: {reason}")
        return status
    for _ in range(REPEATS):
        # Without the options of the first run: alone, with any marks.
        repeated, _ = run_tests(["-m", "", *(each.id for each in failures)])
        if repeated:
            print("a failure was repeated, so it is no accident")
            return status
    with flaky_file.open("a", encoding="utf-8") as file:
        for each in failures:
            file.write(json.dumps([each.id, each.text]) + "\n")
    return 0


def reason_to_fail(failures: Sequence[Failure], flaky_file: Path) -> str:
    """Return why failures count without being repeated, or an empty text."""
    secure = [each.id for each in failures if each.id.startswith(_NEVER)]
    if secure:
        return f"{secure[0]} is a test of security"
    before = len(read_flaky(flaky_file))
    if before + len(failures) > MOST_FLAKY:
        return f"{before + len(failures)} tests failed, more than {MOST_FLAKY}"
    return ""


def read_flaky(flaky_file: Path) -> list[Failure]:
    """Return the flaky tests of a run so far."""
    if not flaky_file.exists():
        return []
    return [Failure(*json.loads(line)) for line in flaky_file.read_text("utf-8").splitlines()]


def describe(failures: Sequence[Failure], known: str) -> str:
    """Return a text about flaky tests, with the lines for those that `known` does not have."""
    texts = [f"{each.id}\n{each.text.rstrip()}\n" for each in failures]
    lines = known.splitlines()
    new = [each for each in failures if not any(line.startswith(f"{each.id}: ") for line in lines)]
    if new:
        texts.append("New. Find the cause of each, or add it to tests/flaky.txt:")
        texts += [f"{each.id}: {each.first_line}" for each in new]
    return "\n".join(texts)


def main(words: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.repeat", allow_abbrev=False)
    parser.add_argument("--flaky", type=Path, default=None, help="add flaky tests to this file")
    parser.add_argument(
        "--show", type=Path, default=None, help="print such a file, and run nothing"
    )
    options, arguments = parser.parse_known_args(words)
    if options.show is not None:
        print(describe(read_flaky(options.show), KNOWN.read_text("utf-8")))
        return 0
    if options.flaky is not None:
        return run(arguments, options.flaky)
    with tempfile.TemporaryDirectory() as directory:
        flaky_file = Path(directory) / "flaky"
        status = run(arguments, flaky_file)
        print(describe(read_flaky(flaky_file), KNOWN.read_text("utf-8")))
    return status


if __name__ == "__main__":
    sys.exit(main())
