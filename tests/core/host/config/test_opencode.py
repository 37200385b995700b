"""Rules of opencode about the tools of its servers: their order, size and patterns."""

from __future__ import annotations

import json
from typing import Any

import pytest

from mcp_core.host import JsonSyntax
from mcp_core.host.config import _opencode
from mcp_core.host.config._opencode import ToolRestriction, find_restrictions
from mcp_core.host.config._tree import ConfigTree, ValueTree, parse_tree


def text_tree(text: str) -> ConfigTree:
    return parse_tree(text, file="f", syntax=JsonSyntax(), max_size=9_999)


@pytest.mark.parametrize(("limit", "effect"), [(18, None), (17, "partly")])
def test_rules_that_are_too_many_restrict_each_server_by_the_first(
    limit: int, effect: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two patterns of two characters, and one each for their ends, for three servers."""
    monkeypatch.setattr(_opencode, "_MAX_COMPARED", limit)
    tree = ValueTree({"tools": {"ab": False, "cd": False}})
    found = find_restrictions(tree, ["x", "y", "z"])
    first = ToolRestriction("partly", ("tools", "ab"))
    assert found == ({} if effect is None else dict.fromkeys("xyz", first))


@pytest.mark.parametrize(
    ("pattern", "effect"),
    [
        ("srv", "off"),
        ("srv*", "off"),
        ("srv_*", "off"),
        ("*", "off"),
        ("srv_", "partly"),
        ("srv_a", "partly"),
        ("srv_a*", "partly"),
        ("s*a", "partly"),
        ("?rv_a", "partly"),
        ("???????", "partly"),
        ("????", "partly"),
        ("?", None),
        ("sr", None),
        ("other_*", None),
        ("?ther_a", None),
    ],
)
def test_pattern_of_tools_is_compared_with_the_names_of_a_server(
    pattern: str, effect: str | None
) -> None:
    tree = ValueTree({"tools": {pattern: False}})
    found = find_restrictions(tree, ["srv"])
    path = ("tools", pattern)
    assert found == ({} if effect is None else {"srv": ToolRestriction(effect, path)})  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("text", "path"),
    [
        ('{"agent": {}, "agent": {}}', ("agent",)),
        ('{"tools": {}, "tools": {}}', ("tools",)),
        ('{"agent": {"a": {"tools": {}, "tools": {}}}}', ("agent", "a", "tools")),
        ('{"agent": {"a": {}, "a": {}}}', ("agent", "a")),
        ('{"tools": {"z": true, "z": true}}', ("tools", "z")),
        ('{"agent": {"a": {"mode": 1, "mode": 2}}}', None),
        ('{"theme": 1, "theme": 2}', None),
        ('{"agent": {"a": {"agent": {"b": {"tools": {"x_*": false}}}}}}', None),
        ('{"agent": {"a": {"tools": {"x_*": false}}}}', ("agent", "a", "tools", "x_*")),
    ],
)
def test_rule_of_an_agent_or_one_that_is_there_twice_restricts_in_part(
    text: str, path: tuple[str, ...] | None
) -> None:
    expected: dict[str, Any] = {} if path is None else {"x": ToolRestriction("partly", path)}
    assert find_restrictions(text_tree(text), ["x"]) == expected


def test_strongest_and_first_rule_counts() -> None:
    rules = {"a_1": "ask", "a_*": "ask", "a*": "ask", "a_2": "deny", "b_*": "ask", "c_*": "deny"}
    found = find_restrictions(text_tree(json.dumps({"permission": rules})), ["a", "b", "c"])
    assert found == {
        "a": ToolRestriction("partly", ("permission", "a_1")),
        "b": ToolRestriction("asks", ("permission", "b_*")),
        "c": ToolRestriction("off", ("permission", "c_*")),
    }
