"""Run all default tests in parts, at any time as many as there are cores.

    python -m tests.in_parts MODULE [ARGUMENT ...]

runs `python -m MODULE ARGUMENT ... FILE ...` for each part, such as `pytest` or `tests.cpu_times`,
and prints what it printed at its end. Files without a default test are left out.

With `-n 2` of pytest-xdist, each of two processes collects all tests, which takes 20 s for 37,000,
and sends five messages about each. Here a process collects only the tests of its part.

Each part has a file for coverage, `COVERAGE_FILE` and its number: `coverage combine` finds them.
"""

from __future__ import annotations

import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Final

import pytest

from tests.levels import TESTS, files_with_default_tests

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from pathlib import Path

_LEAST: Final = 1 / 25  # a part is no smaller share of all
_NO_TESTS: Final = int(pytest.ExitCode.NO_TESTS_COLLECTED)


def split(sizes: Sequence[int], processes: int) -> list[int]:
    """Return how many files each part has.

    Files stay in their order, because neighbours share what they import. A part is a share of what
    is left, so that the last ones are short and the processes end at about the same time.

    Args:
        sizes: the size of each file, as an estimate of its time.
        processes: how many parts run at the same time.
    """
    counts: list[int] = []
    left = sum(sizes)
    least, taken = left * _LEAST, 0
    for size in sizes:
        if not counts or taken >= max(least, left / (2 * processes)):
            left -= taken
            counts.append(0)
            taken = 0
        counts[-1] += 1
        taken += size
    return counts


def run_part(words: Sequence[str], number: int, files: Sequence[Path]) -> tuple[int, str]:
    """Run the tests of a part. Return the exit status and the output."""
    environment = dict(os.environ)
    if "COVERAGE_FILE" in environment:
        environment["COVERAGE_FILE"] += f".{number}"
    names = [str(file.relative_to(TESTS.parent)) for file in files]
    done = subprocess.run(
        [sys.executable, "-m", *words, *names],
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    return done.returncode, done.stdout


def exit_status(statuses: Iterable[int]) -> int:
    """Return the exit status of all parts. A part may have no test, but not all of them."""
    return max({abs(status) for status in statuses} - {_NO_TESTS}, default=_NO_TESTS)


def main(words: Sequence[str]) -> int:
    processes = len(os.sched_getaffinity(0))
    files = files_with_default_tests()
    parts = []
    for count in split([file.stat().st_size for file in files], processes):
        parts.append(files[:count])
        files = files[count:]
    statuses = []
    with ThreadPoolExecutor(processes) as pool:
        for status, output in pool.map(
            lambda numbered: run_part(words, *numbered), enumerate(parts)
        ):
            print(output, flush=True)
            statuses.append(status)
    return exit_status(statuses)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
