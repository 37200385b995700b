"""Members of one object: values of the right type, and problems for the others."""

from __future__ import annotations

import json
import math
from typing import TYPE_CHECKING, Any

import pytest

from mcp_core.host import JsonSyntax
from mcp_core.host.config._members import MemberReader
from mcp_core.host.config._tree import ValueTree, parse_tree

if TYPE_CHECKING:
    from mcp_core.host import ConfigProblem


def reader_of(value: dict[str, Any]) -> tuple[MemberReader, list[ConfigProblem]]:
    tree = parse_tree(json.dumps({"o": value}), file="f", syntax=JsonSyntax(), max_size=999)
    problems: list[ConfigProblem] = []
    return MemberReader(tree, ("o",), value, problems, "x"), problems


def test_member_of_right_type_is_returned_and_removed_from_the_rest() -> None:
    reader, problems = reader_of(
        {"a": "1", "b": ["2"], "c": {"d": "3"}, "e": False, "f": 4, "g": [{}], "h": None}
    )
    assert (reader.text("a"), reader.texts("b"), reader.text_map("c")) == ("1", ("2",), {"d": "3"})
    assert (reader.flag("e"), reader.positive("f")) == (False, 4.0)
    assert (reader.text("h"), reader.flag("missing"), reader.positive("missing")) == (None,) * 3
    assert (reader.texts("missing"), reader.text_map("missing")) == ((), {})
    assert reader.others() == {"g": [{}]}
    assert (problems, reader.wrong) == ([], set())


def test_member_of_wrong_type_is_a_problem_of_its_server() -> None:
    reader, problems = reader_of({"a": 1, "b": {}, "c": [], "e": "x", "f": -1, "g": 10**400})
    assert (reader.text("a"), reader.texts("b"), reader.text_map("c")) == (None, (), {})
    assert (reader.flag("e"), reader.positive("f"), reader.positive("g")) == (None,) * 3
    assert [(str(each), each.server) for each in problems] == [
        ("f:1:8: o.a: must be a string, not a number: write it in quotes", "x"),
        ("f:1:16: o.b: must be an array of strings, not an object", "x"),
        ("f:1:25: o.c: must be an object of strings, not an array", "x"),
        ("f:1:34: o.e: must be true or false, not a string", "x"),
        ("f:1:44: o.f: must be a number above 0", "x"),
        ("f:1:53: o.g: must be a number above 0", "x"),
    ]
    assert reader.wrong == set("abcefg")


def test_longest_number_that_stands_for_its_text_has_64_bits() -> None:
    values = {"a": 2**64 - 1, "b": -(2**64 - 1), "c": 0.5, "d": True, "e": 2**64}
    reader, problems = reader_of({"env": values})
    reader.text_map("env")
    assert [each.place.member for each in problems] == ["o.env.d", "o.env.e"]


@pytest.mark.parametrize("value", [math.inf, math.nan, -math.inf, 0, -1, True, "5"])
def test_number_that_is_not_positive_is_a_problem(value: Any) -> None:
    """TOML and YAML have infinity."""
    problems: list[ConfigProblem] = []
    reader = MemberReader(ValueTree({"t": value}), (), {"t": value}, problems)
    assert reader.positive("t") is None
    assert [each.problem for each in problems] == ["must be a number above 0"]
    assert MemberReader(ValueTree({}), (), {"t": 0.001}, problems).positive("t") == 0.001
