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


def test_problem_of_a_member_inside_marks_the_outer_one_as_wrong() -> None:
    reader, problems = reader_of({"a": {"b": [1]}})
    reader.add("is wrong", "a", "b", 0)
    assert reader.wrong == {"a"}
    assert problems[0].place.member == "o.a.b[0]"


def test_only_a_flag_and_a_list_that_restricts_have_problems_that_restrict() -> None:
    reader, problems = reader_of(
        {"a": 1, "b": 1, "c": [1], "d": [1], "e": 1, "f": 1, "g": {"h": []}, "i": 0, "j": {}}
    )
    assert reader.flag("b") is None
    assert reader.texts("d", restricts=True) == reader.texts("f", restricts=True) == ()
    assert [each.restricts for each in problems] == [True] * 3
    problems.clear()
    assert reader.text("a") is None
    assert reader.positive("i") is None
    assert reader.texts("c") == reader.texts("e") == reader.words("j") == ()
    assert reader.text_map("g") == {}
    assert [each.restricts for each in problems] == [False] * 6


@pytest.mark.parametrize(
    ("value", "words", "problem"),
    [
        (None, (), None),
        ("a b", ("a b",), None),
        (["a", 5, 0.5], ("a", "5", "0.5"), None),
        ("", (), "is empty"),
        ([], (), "is empty"),
        (["", "a"], (), "is empty"),
        ([True], (), "must be a string, not true or false: write it in quotes"),
        ([[]], (), "must be a string, not an array"),
        ({}, (), "must be a string, not an object"),
        (5, (), "must be a string, not a number: write it in quotes"),
    ],
)
def test_words_are_a_text_or_a_list_that_begins_with_one(
    value: Any, words: tuple[str, ...], problem: str | None
) -> None:
    reader, problems = reader_of({"a": value})
    assert reader.words("a") == words
    assert [each.problem for each in problems] == ([] if problem is None else [problem])
    assert not reader.others()


def test_number_in_a_list_is_no_text_unless_the_list_has_numbers() -> None:
    reader, problems = reader_of({"a": [1], "b": [1]})
    assert reader.texts("a", has_numbers=True) == ("1",)
    assert problems == []
    assert reader.texts("b") == ()
    assert len(problems) == 1


def test_number_that_fails_to_be_read_raises_its_own_error() -> None:
    class _Broken:
        def __float__(self) -> float:
            raise LookupError

    reader, _ = reader_of({})
    reader.rest["a"] = _Broken()
    with pytest.raises(LookupError):
        reader.positive("a")
