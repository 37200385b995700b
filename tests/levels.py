"""Which cases of a test are in the default run, and which ones are `long`.

    python -m tests.levels MARK ...

prints the test files that may have tests with one of the marks, the longest first. To collect these
takes a third of the time that all take; `tests/conftest.py` fails a run in which the mark of a test
is not found so.
"""

from __future__ import annotations

import functools
import re
import sys
from pathlib import Path
from typing import Any, Final

import pytest
from hypothesis import settings

__all__ = [
    "LONGEST_FILES",
    "STEPS",
    "TESTS",
    "fewer_examples",
    "files_with",
    "files_with_default_tests",
    "long",
    "marks_named_in",
]

TESTS: Final = Path(__file__).parent
# The steps of `.ci/run` that collect only such files, by their marks.
STEPS: Final = ({"long"}, {"perf"}, {"process", "interop", "node", "conformance"})
# One process runs all tests of a file, and the others would wait for one that begins last. Each of
# these takes about half a minute or more.
LONGEST_FILES: Final = [
    TESTS / f"{name}.py"
    for name in """
        conformance/test_official_suite
        examples/test_howto
        trio_/oracle/fuzz/test_bad_targets
        examples/test_site
        conformance/test_recorded_suite
        trio_/oracle/fuzz/habits/test_habits
        trio_/oracle/fuzz/test_faults
        interop/test_sdk_client
        interop/test_contracts
        benchmarks/test_benchmarks
        testing/test_oracle_plugin
        interop/test_replay
        test_task_processes
        testing/test_find_faults
        interop/test_redis_workers
        fuzz_targets/test_broken_client
        test_last_deadline
        core/adapters/test_redis_store
        interop/test_host
        test_task_workers
        benchmarks/test_peers
        trio_/oracle/fuzz/play/test_stress_steps
        interop/test_fastmcp_tasks
        examples/test_tutorial
    """.split()
]
# They begin with plain letters, which is several times faster than to begin with `\b`.
_MARK: Final = re.compile(r"mark(?<!\wmark)\.(\w+)")
_LONG: Final = re.compile(r"long(?<!\wlong)\(")
_IMPORT: Final = re.compile(r"^from (tests[\w.]*) import", re.MULTILINE)


def long(*values: Any) -> Any:
    """Return a row of parameters that only a run of `long` has."""
    return pytest.param(*values, marks=pytest.mark.long)


def fewer_examples(divisor: int) -> settings:
    """Return settings for an expensive property: a part of the profile's examples.

    With `--hypothesis-profile=thorough` that is a part of more.
    """
    return settings(max_examples=max(1, settings().max_examples // divisor))


@functools.cache
def marks_named_in(file: Path) -> frozenset[str]:
    """Return the marks that the text of a test file names, or a module that it imports from."""
    text = file.read_text("utf-8")
    return _marks_of_text(text).union(*map(_marks_of_module, _IMPORT.findall(text)))


@functools.cache
def _marks_of_module(name: str) -> frozenset[str]:
    file = TESTS.parent / f"{name.replace('.', '/')}.py"
    if file == Path(__file__) or not file.exists():
        return frozenset()
    return _marks_of_text(file.read_text("utf-8"))


def _marks_of_text(text: str) -> frozenset[str]:
    found = frozenset(_MARK.findall(text))
    return found | {"long"} if _LONG.search(text) else found


def files_with(names: set[str]) -> list[Path]:
    """Return the test files that may have tests with one of the marks, the longest first."""
    from tests.conftest import marks_of_file

    return [
        file
        for file in dict.fromkeys([*LONGEST_FILES, *sorted(TESTS.rglob("test_*.py"))])
        if not names.isdisjoint(marks_named_in(file).union(marks_of_file(file)))
    ]


def files_with_default_tests() -> list[Path]:
    """Return the test files in order, except those whose place marks all of their tests."""
    from tests.conftest import marks_of_file

    return [
        file
        for file in sorted(TESTS.rglob("test_*.py"))
        if {"interop", "process"}.isdisjoint(marks_of_file(file))
    ]


if __name__ == "__main__":
    for file in files_with(set(sys.argv[1:])):
        print(file.relative_to(TESTS.parent))
