"""Helpers and tests: each helper class has a name of its own, and long tests say what they show.

The second half proves with small files that both rules can fail.
"""

from __future__ import annotations

import ast
import textwrap
from typing import TYPE_CHECKING, Final

import pytest

from tests.layering.stages import LONGEST, PROGRAMS, TestFile, repeated_names, undocumented_tests

if TYPE_CHECKING:
    from tests.layering.sources import Findings


def files_of(sources: list[Findings]) -> dict[str, TestFile]:
    return {each.file.path: each.tests for each in sources if each.tests is not None}


def test_helper_classes_have_a_name_of_their_own(sources: list[Findings]) -> None:
    files = files_of(sources)
    found = repeated_names(files)
    assert not found, "\n" + "\n".join(found)
    assert files.keys() >= PROGRAMS


def test_long_tests_say_what_they_show(sources: list[Findings]) -> None:
    found = undocumented_tests(files_of(sources))
    assert not found, "\n" + "\n".join(found)


# -- The rules can fail ----------------------------------------------------------------------------

WIRE: Final = """
    class Wire:
        def send(self): ...
"""
DATA: Final = """
    class Wire(NamedTuple):
        sent: bytes

        def __repr__(self): ...
"""
PRIVATE: Final = WIRE.replace("Wire", "_Wire")
INNER: Final = """
    def test_it():
        class Wire:
            def send(self): ...
"""


def file_of(text: str) -> TestFile:
    return TestFile.of(ast.parse(textwrap.dedent(text)))


@pytest.mark.parametrize(
    ("path", "text", "places"),
    [
        ("tests/b/wire.py", WIRE, "tests/a.py:2, tests/b/wire.py:2"),
        ("tests/b/test_it.py", WIRE.replace("def", "async def"), "tests/b/test_it.py:2"),
        ("tests/b/wire.py", WIRE.replace("Wire:", "Wire(Peer):"), "tests/b/wire.py:2"),
        ("tests/b/wire.py", DATA, None),
        ("tests/b/wire.py", WIRE.replace("Wire", "HttpPair"), None),
        ("tests/b/wire.py", PRIVATE, None),
        ("tests/b/test_it.py", INNER, None),
        (min(PROGRAMS), WIRE, None),
    ],
)
def test_second_class_of_a_name_is_refused(path: str, text: str, places: str | None) -> None:
    found = repeated_names({"tests/a.py": file_of(WIRE), path: file_of(text)})
    if places is None:
        assert found == []
    else:
        (complaint,) = found
        assert complaint.startswith("Wire is the name of several classes: tests/a.py:2, ")
        assert places in complaint


def long_test(lines: int, docstring: str = "", name: str = "test_it") -> TestFile:
    body = [docstring] if docstring else []
    body += ["x = 1"] * (lines - 1 - len(body))
    return file_of("\n    ".join([f"def {name}():", *body]))


@pytest.mark.parametrize(
    ("file", "is_refused"),
    [
        (long_test(LONGEST), False),
        (long_test(LONGEST + 1), True),
        (long_test(LONGEST + 1, '"""Why."""'), False),
        (long_test(LONGEST + 1, '""""""'), True),
        (long_test(LONGEST + 1, name="helper"), False),
    ],
)
def test_long_test_without_a_docstring_is_refused(file: TestFile, is_refused: bool) -> None:
    found = undocumented_tests({"tests/a/test_it.py": file})
    assert len(found) == is_refused
    assert all("tests/a/test_it.py:1: test_it" in each for each in found)
