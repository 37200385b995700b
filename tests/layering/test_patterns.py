"""Patterns that every supported Python matches alike.

Python 3.11.2, as in Debian 12, matches possessive groups wrongly if something inside them can be
tried in another way: alternatives, assertions, greedy quantifiers (gh-106052, mended in 3.11.5).
"""

from __future__ import annotations

import importlib
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import pytest

from mcp_core._patterns import LatePattern
from tests.layering.rules import PACKAGES

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

ROOT: Final = Path(__file__).parents[2]
PARSER: Final = importlib.import_module("re._parser")
_ASSIGNED: Final = re.compile(r"(?m)^\w+(?:: Final)? = (?:re\.compile|compile_on_first_use)\(")
_ATOMS: Final = {"LITERAL", "NOT_LITERAL", "ANY", "IN", "CATEGORY", "AT"}


def patterns(files: Iterable[Path]) -> Iterator[tuple[str, str | bytes, int]]:
    """Yield the patterns of modules, as `module.name`, pattern and flags."""
    for path in files:
        name = ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")
        if name.endswith("__main__"):
            continue
        for key, value in vars(importlib.import_module(name)).items():
            found = value.values() if isinstance(value, dict) else [value]
            for each in found:
                if isinstance(each, LatePattern):
                    yield f"{name}.{key}", *each.source
                elif isinstance(each, re.Pattern):
                    yield f"{name}.{key}", each.pattern, each.flags


def is_mistaken(pattern: str | bytes, flags: int = 0) -> bool:
    """True if a possessive group has more inside than characters and their possessive repeats."""
    parsed = PARSER.parse(pattern, flags)
    return any(
        not _is_plain(arguments[2])
        for kind, arguments in _walk(parsed)
        if kind == "POSSESSIVE_REPEAT"
    )


def _walk(parsed: Any) -> Iterator[tuple[str, Any]]:
    for kind, arguments in parsed:
        yield str(kind), arguments
        for inner in _inner(arguments):
            yield from _walk(inner)


def _inner(arguments: Any) -> Iterator[Any]:
    if isinstance(arguments, PARSER.SubPattern):
        yield arguments
    elif isinstance(arguments, list | tuple):
        for each in arguments:
            yield from _inner(each)


def _is_plain(parsed: Any) -> bool:
    return all(
        str(kind) in _ATOMS
        or (str(kind) == "POSSESSIVE_REPEAT" and _is_plain(arguments[2]))
        or (str(kind) == "SUBPATTERN" and _is_plain(arguments[3]))
        for kind, arguments in parsed
    )


# The modules of each folder: a test that imports all of them takes long.
MODULES: Final = {
    path.relative_to(ROOT).as_posix(): sorted(path.glob("*.py"))
    for package in PACKAGES
    for path in [ROOT / package, *sorted((ROOT / package).rglob("*/"))]
    if (path / "__init__.py").exists()
}


@pytest.mark.parametrize("folder", MODULES)
def test_possessive_groups_match_alike_in_every_python(folder: str) -> None:
    """All patterns that a line assigns to a name are found, and none is mistaken."""
    found = list(patterns(MODULES[folder]))
    written = sum(len(_ASSIGNED.findall(path.read_text("utf-8"))) for path in MODULES[folder])
    assert len(found) >= written
    assert [name for name, pattern, flags in found if is_mistaken(pattern, flags)] == []


def test_folders_have_all_modules_and_some_patterns() -> None:
    everything = {path for package in PACKAGES for path in (ROOT / package).rglob("*.py")}
    assert {path for paths in MODULES.values() for path in paths} == everything
    wire = [name for name, _, _ in patterns(MODULES["mcp_core/http/wire"])]
    assert "mcp_core.http.wire._http1._NAME" in wire
    assert "mcp_core.http.wire._host_origin._NAME" in wire


@pytest.mark.parametrize(
    ("pattern", "expected"),
    [
        (r"a*+b++", False),
        (r"(?:\\.[^\"]*+)*+", False),
        (r"(?:a\n)++", False),
        (rb"(?:a|bc)*+", True),
        (r"(?:\"(?!a))*+", True),
        (r"(?:a[b]*)*+", True),
        (r"x(?P<y>(?:a?b)?+)", True),
    ],
)
def test_possessive_group_that_can_match_in_two_ways_is_found(
    pattern: str | bytes, expected: bool
) -> None:
    assert is_mistaken(pattern) is expected
