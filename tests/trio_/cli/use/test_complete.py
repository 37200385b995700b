"""`mcp-trio complete`: completions of prompt arguments and template variables."""

from __future__ import annotations

import json

import pytest

from mcp_core import ALL
from tests.harness.world.command import (
    GREETER,
    Hosted,
    ServerFile,
    output_of,
    run,
)

E, D, C, B, A = ALL


@pytest.fixture(scope="module")
def atlas(hosted: Hosted) -> tuple[str, ...]:
    return hosted("""
        app = mcp_trio.Server("atlas")
        CITIES = ["Lima", "Linz", "Lyon", "Oslo"]

        @app.prompt
        def visit(city: str, country: str = "", when: str = "") -> str:
            return city

        @app.resource("atlas://{country}/{city}")
        def place(country: str, city: str) -> str:
            return city

        @app.completion("visit", "city")
        @app.completion("atlas://{country}/{city}", "city")
        def city(value: str, chosen: dict[str, str]) -> list[str]:
            if chosen.get("country") == "many":
                return [f"City {number}" for number in range(150)]
            if chosen:
                return [f"{chosen['country']}ville"]
            return [city for city in CITIES if city.startswith(value)]
    """)


TEMPLATE = "atlas://{country}/{city}"
VALUES = [
    (("visit", "city", "Li"), "Lima\nLinz\n", ""),
    (("visit", "city", ""), "Lima\nLinz\nLyon\nOslo\n", ""),
    ((TEMPLATE, "city", "O"), "Oslo\n", ""),
    (("visit", "city", "L", "country=Y"), "Yville\n", ""),
    (("visit", "city", "L", '{"country": "Z"}'), "Zville\n", ""),
    ((TEMPLATE, "city", "L", "country=007"), "007ville\n", ""),
    (("visit", "city", "X"), "", "mcp-trio: the server suggests no values\n"),
    (("visit", "when", "X"), "", "mcp-trio: the server suggests no values\n"),
]


@pytest.mark.parametrize(("words", "shown", "aside"), VALUES)
def test_complete_prints_one_value_a_line(
    atlas: tuple[str, ...], words: tuple[str, ...], shown: str, aside: str
) -> None:
    result = run("complete", *words, *atlas)
    assert (result.returncode, result.stdout, result.stderr) == (0, shown, aside)


def test_complete_truncated_values_are_reported(atlas: tuple[str, ...]) -> None:
    result = run("complete", "visit", "city", "", "country=many", *atlas)
    assert len(result.stdout.splitlines()) == 100
    assert result.stderr == "mcp-trio: these are 100 of 150 values\n"
    found = json.loads(output_of("complete", "visit", "city", "", "country=many", "--json", *atlas))
    assert len(found["values"]) == 100
    assert (found["total"], found["hasMore"]) == (150, True)


PROBLEMS = [
    (
        ("visits", "city", ""),
        "the server has no prompt visits; its prompts are visit. Did you mean visit?",
    ),
    (("visit", "town", ""), "the prompt visit has no argument town; it takes city, country, when."),
    (
        ("visit", "city", "", "land=X"),
        "the prompt visit has no argument land; it takes city, country, when.",
    ),
    (("visit", "city", "", "X"), "'X' is not an argument: write KEY=VALUE"),
    (
        ("atlas://{city}", "city", ""),
        f"resource templates are {TEMPLATE}. Did you mean {TEMPLATE}?",
    ),
    (
        ("atlas://x/y", "city", ""),
        "the server has no resource template atlas://x/y; its resource templates are",
    ),
    (
        (TEMPLATE, "town", ""),
        f"the template {TEMPLATE} has no argument town; it takes country, city.",
    ),
]


@pytest.mark.parametrize(("words", "complaint"), PROBLEMS)
def test_complete_unknown_name_is_rejected(
    atlas: tuple[str, ...], words: tuple[str, ...], complaint: str
) -> None:
    result = run("complete", *words, *atlas)
    assert (result.returncode, result.stdout) == (2, "")
    assert complaint in result.stderr


def test_complete_unsupported_by_server_is_rejected(server: ServerFile) -> None:
    """The command explains the mistake itself, with the status for wrong usage."""
    for words, kind in (
        (("visit", "city", ""), "prompt"),
        ((TEMPLATE, "city", ""), "resource template"),
    ):
        result = run("complete", *words, *GREETER)
        assert (result.returncode, result.stdout) == (2, "")
        assert result.stderr == f"mcp-trio: the server has no {kind} {words[0]}; it has none.\n"
    target = server("""
        app = mcp_trio.Server("atlas")

        @app.prompt
        def visit(city: str) -> str:
            return city
    """)
    result = run("complete", "visit", "city", "", *target)
    assert (result.returncode, result.stdout) == (2, "")
    assert "did not declare the capability completions" in result.stderr
    assert "`mcp-trio inspect` shows" in result.stderr


@pytest.mark.parametrize("version", ALL)
def test_complete_in_revision_without_context_warns(atlas: tuple[str, ...], version: str) -> None:
    result = run("complete", "visit", "city", "Li", "country=X", "--revision", version, *atlas)
    knows_context = version in (E, D, C)
    assert result.returncode == 0
    assert result.stdout == ("Xville\n" if knows_context else "Lima\nLinz\n")
    aside = (
        ""
        if knows_context
        else f"mcp-trio: revision {version} cannot send other arguments: country\n"
    )
    assert result.stderr == aside
