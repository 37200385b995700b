"""The rules about helpers and tests in `tests`: names of classes, and docstrings of long tests.

1. A public class with methods has a name that no other such class of `tests` has, or a reader takes
   one for the other. Data has no methods. `PROGRAMS` share no code with the tests.
2. A test function over `LONGEST` lines has a docstring that says what it shows.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

__all__ = ["LONGEST", "PROGRAMS", "TestFile", "repeated_names", "undocumented_tests"]

LONGEST: Final = 15
# Implementations by themselves, whose words are a server's, a client's or a library's.
PROGRAMS: Final = frozenset(
    {
        "tests/fuzz_targets/batches.py",
        "tests/fuzz_targets/broken_client.py",
        "tests/fuzz_targets/broken_http.py",
        "tests/fuzz_targets/broken_server.py",
        "tests/fuzz_targets/engine.py",
        "tests/fuzz_targets/tasks.py",
        "tests/interop/authlib_server.py",
    }
)

_Function = ast.FunctionDef | ast.AsyncFunctionDef


@dataclass(frozen=True)
class TestFile:
    """The classes and long tests of a file below `tests`."""

    __test__ = False

    classes: list[tuple[int, str]]  # those with methods: line and name
    undocumented: list[tuple[int, str]]  # long tests without a docstring: line and name

    @classmethod
    def of(cls, tree: ast.Module) -> TestFile:
        """Return what stands in a parsed file."""
        return cls([*_classes(tree)], [*_undocumented(tree)])


def _classes(tree: ast.Module) -> Iterator[tuple[int, str]]:
    for each in tree.body:
        if isinstance(each, ast.ClassDef) and not each.name.startswith("_"):
            names = [part.name for part in each.body if isinstance(part, _Function)]
            if any(not name.startswith("__") for name in names):
                yield each.lineno, each.name


def _undocumented(tree: ast.Module) -> Iterator[tuple[int, str]]:
    for each in tree.body:
        if (
            isinstance(each, _Function)
            and each.name.startswith("test_")
            and (each.end_lineno or 0) - each.lineno >= LONGEST
            and not ast.get_docstring(each)
        ):
            yield each.lineno, each.name


def repeated_names(files: Mapping[str, TestFile]) -> list[str]:
    """Return a complaint for each class whose name stands in several files, by path."""
    places: dict[str, list[str]] = {}
    for path, file in files.items():
        if path not in PROGRAMS:
            for line, name in file.classes:
                places.setdefault(name, []).append(f"{path}:{line}")
    return [
        f"{name} is the name of several classes: {', '.join(found)}. Give each a name that says"
        " what it is, or use one in all places"
        for name, found in places.items()
        if len(found) > 1
    ]


def undocumented_tests(files: Mapping[str, TestFile]) -> list[str]:
    """Return a complaint for each test over `LONGEST` lines that has no docstring."""
    return [
        f"{path}:{line}: {name} has over {LONGEST} lines: say in a docstring what it shows"
        for path, file in files.items()
        for line, name in file.undocumented
    ]
