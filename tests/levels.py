"""Which cases of a test are in the default run, and which ones are `long`.

    python -m tests.levels MARK ...

prints the test files that may have tests with one of the marks. To collect these takes a third of
the time that all take; `tests/conftest.py` fails a run in which the mark of a test is not found so.
"""

from __future__ import annotations

import functools
import re
import sys
from pathlib import Path
from typing import Any, Final

import pytest
from hypothesis import settings

__all__ = ["STEPS", "TESTS", "fewer_examples", "files_with", "long", "marks_named_in"]

TESTS: Final = Path(__file__).parent
# The steps of `.ci/run` that collect only such files, by their marks.
STEPS: Final = ({"long"}, {"perf"}, {"process", "interop", "node"})
_MARK: Final = re.compile(r"\bmark\.(\w+)|\b(long)\(")
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
    modules = {TESTS.parent / f"{name.replace('.', '/')}.py" for name in _IMPORT.findall(text)}
    texts = [each.read_text("utf-8") for each in modules - {Path(__file__)} if each.exists()]
    return frozenset(
        match[1] or match[2] for each in (text, *texts) for match in _MARK.finditer(each)
    )


def files_with(names: set[str]) -> list[Path]:
    """Return the test files that may have tests with one of the marks."""
    from tests.conftest import marks_of_file

    return [
        file
        for file in sorted(TESTS.rglob("test_*.py"))
        if not names.isdisjoint(marks_named_in(file).union(marks_of_file(file)))
    ]


if __name__ == "__main__":
    for file in files_with(set(sys.argv[1:])):
        print(file.relative_to(TESTS.parent))
