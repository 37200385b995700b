"""The text of problems: places, names with hidden characters, and many problems at once."""

from __future__ import annotations

import pytest

from mcp_core.host import ConfigPlace, ConfigProblem, InvalidConfig
from mcp_core.host.config._problems import member_text


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ((), ""),
        (("mcpServers", "git-hub", "args", 0), "mcpServers.git-hub.args[0]"),
        (("servers", "a.b"), 'servers."a.b"'),
        (("servers", 'a"\n\u202e'), 'servers."a\\"\\n\\u202e"'),
        (("\ud800",), '"\\ud800"'),
        (("x" * 101,), "x" * 100 + "… (101 characters)"),
    ],
)
def test_member_text_is_readable(path: tuple[str | int, ...], text: str) -> None:
    assert member_text(path) == text


def test_config_problem_text_has_file_line_column_and_member() -> None:
    problem = ConfigProblem(ConfigPlace("a\x1b.json", 2, 5, "mcpServers.x"), "needs command", "x")
    assert str(problem) == "a\\u001b.json:2:5: mcpServers.x: needs command"
    assert str(ConfigProblem(ConfigPlace("a", 1, 1), "the file is not UTF-8")) == (
        "a:1:1: the file is not UTF-8"
    )


def test_invalid_config_with_many_problems_shows_the_first_twenty() -> None:
    problems = [ConfigProblem(ConfigPlace("f", n, 1, "m"), "p") for n in range(1, 31)]
    error = InvalidConfig(problems)
    assert error.problems == tuple(problems)
    assert str(error).split("\n")[0] == "f:1:1: m: p"
    assert str(error).split("\n")[-2:] == ["f:20:1: m: p", "and 10 more problems"]
