"""The recipes of CONTRIBUTING.md name places that exist, and all places of their example."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Final

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT: Final = Path(__file__).parents[2]
RECIPE: Final = re.compile(r"^### (A [^:]+): `([^`]+)`\n(.*?)(?=^##)", re.MULTILINE | re.DOTALL)
PLACE: Final = re.compile(r"`([\w./-]+\.\w+)`:\s+`([^`]+)`")
# What has the example but is no place to change: in the folders, files that the patterns match.
EXAMPLES: Final = {
    "A method": ("mcp_core mcp_trio mcp_asyncio_shim", r'[">]completion/complete"'),
    "A rule of the judge": ("mcp_core/trace/judge", r'"RPC-7"'),
    "A subcommand": ("mcp_trio", r'"inspect"|def _?inspect\b'),
}


def recipes() -> Iterator[tuple[str, str, list[tuple[str, str]]]]:
    """Yield the title, the example and the places of each recipe."""
    for title, example, text in RECIPE.findall((ROOT / "CONTRIBUTING.md").read_text("utf-8")):
        yield title, example, PLACE.findall(text)


def missing(places: list[tuple[str, str]], root: Path = ROOT) -> list[str]:
    """Return what is not where a recipe says."""
    return [
        f"{file}: {word}"
        for file, word in places
        if not (root / file).is_file() or word not in (root / file).read_text("utf-8")
    ]


def test_recipes_are_those_that_the_house_needs() -> None:
    titles = [title for title, _, _ in recipes()]
    assert titles == [
        *("A method", "A revision", "A limit", "A transport"),
        *("A rule of the judge", "A subcommand"),
    ]


@pytest.mark.parametrize(("title", "places"), [(title, places) for title, _, places in recipes()])
def test_places_of_recipe_exist(title: str, places: list[tuple[str, str]]) -> None:
    assert len(places) >= 4
    assert missing(places) == []


@pytest.mark.parametrize("title", EXAMPLES)
def test_recipe_lists_every_file_with_its_example(title: str) -> None:
    [places] = [places for each, _, places in recipes() if each == title]
    folders, pattern = EXAMPLES[title]
    found = {
        path.relative_to(ROOT).as_posix()
        for folder in folders.split()
        for path in (ROOT / folder).rglob("*.py")
        if re.search(pattern, path.read_text("utf-8"))
    }
    assert found
    assert found - {file for file, _ in places} == set()


def test_place_that_is_gone_is_found(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text("x = 1\n", "utf-8")
    assert missing([("a.py", "x = 1")], tmp_path) == []
    assert missing([("a.py", "y"), ("b.py", "x")], tmp_path) == ["a.py: y", "b.py: x"]
