"""JSON values: the edges that are among them, weights, and objects of the core's types."""

from __future__ import annotations

import json
from typing import Annotated, Any, Literal

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from msgspec import UNSET

from mcp_core import types as t
from mcp_trio.oracle.strategies import _values
from mcp_trio.oracle.strategies._values import (
    encoded,
    example,
    ids,
    json_objects,
    json_values,
    numbers,
    scripts,
    structs,
    texts,
    values_of,
    weighted,
)
from tests.trio_.oracle.strategies.played_draw import PlayedDraw

PLAIN = settings(
    max_examples=100, database=None, derandomize=True, suppress_health_check=list(HealthCheck)
)
SAFE = 2**53 - 1  # the largest integer that a double and its neighbours can tell apart


def drawn(strategy: st.SearchStrategy[Any], count: int = 100) -> list[Any]:
    """Return values of a strategy, the same ones each time."""
    found: list[Any] = []

    @settings(PLAIN, max_examples=count)
    @given(strategy)
    def collect(value: Any) -> None:
        found.append(value)

    collect()
    return found


def test_integers_have_the_edges_of_other_languages() -> None:
    """The first ones that 32 and 64 bits, signed or not, and a double cannot hold, or the last."""
    first_outside = {2**31, 2**63, 2**64, SAFE + 1}
    last_inside = {-(2**31), SAFE, -SAFE, 255}
    assert first_outside | last_inside | {0, 1, -1, 2} <= set(_values._INTEGERS)
    found = set(drawn(numbers(), 150))
    assert len(found & first_outside) > 2


def test_integers_of_types_are_safe_in_any_language() -> None:
    found = drawn(values_of(int), 100)
    assert max(map(abs, found)) == SAFE
    assert {-1, 0, 1} < set(found)


def test_weights_are_shares() -> None:
    found = drawn(weighted((3, st.just("a")), (1, st.just("b")), (0, st.just("c"))), 200)
    assert set(found) == {"a", "b"}
    assert 2 < found.count("a") / found.count("b") < 4.5


def test_scripts_have_up_to_24_steps() -> None:
    lengths = [len(each) for each in drawn(scripts(st.just(0)), 60)]
    assert 0 in lengths
    assert 12 < max(lengths) <= 24


def test_texts_can_be_sent_and_are_short() -> None:
    found = drawn(texts(3), 120)
    for each in found:
        each.encode()
    assert all(len(each) <= 3 or each in _values._SPECIAL_TEXTS for each in found)
    assert {"a" * 300, "\0", ""} < set(found)


def test_ids_repeat_and_are_alike() -> None:
    """A loose comparison takes the number for the text."""
    found = {(type(each), each) for each in drawn(ids(), 200)}
    assert {(int, 1), (str, "1"), (int, 0), (str, "")} <= found
    assert len(found) < 20


def nested(value: Any) -> int:
    if isinstance(value, dict | list):
        inner = value.values() if isinstance(value, dict) else value
        return 1 + max(map(nested, inner), default=0)
    return 0


@pytest.mark.parametrize("depth", [0, 1, 2])
def test_json_is_nested_to_its_depth(depth: int) -> None:
    found = drawn(json_values(depth), 70)
    assert max(map(nested, found)) == depth
    for each in found:
        assert json.loads(encoded(each)) == each
        assert not isinstance(each, dict | list) or len(each) <= 3
    assert {type(None), bool, int, float, str} <= {type(each) for each in found}


def test_objects_are_objects() -> None:
    found = drawn(json_objects(), 40)
    assert {type(each) for each in found} == {dict}
    assert {len(each) for each in found} == {0, 1, 2, 3}


def test_json_is_compact_and_as_it_is_in_utf8() -> None:
    assert encoded({"a": [1, "é\n"]}) == '{"a":[1,"é\\n"]}'.encode()


def test_optional_members_come_and_go() -> None:
    """Most are absent, each is there alone, and several are there together."""
    found = drawn(structs(t.Implementation), 60)
    optional = [
        {name for name in ("title", "description", "website_url") if getattr(each, name)}
        for each in found
    ]
    assert set() in optional
    assert {"title"} in optional
    assert max(map(len, optional)) > 1
    assert sum(not each for each in optional) > len(optional) / 4


def test_rules_that_fields_do_not_express_hold() -> None:
    for contents in drawn(structs(t.ResourceContents), 15):
        assert (contents.text is None) is (contents.blob is not None)
    for asked in drawn(structs(t.ElicitParams), 15):
        assert (asked.requested_schema is None) is (asked.mode == "url")
    for called in drawn(structs(t.CallToolParams), 15):
        assert called.arguments is UNSET or isinstance(json.loads(bytes(called.arguments)), dict)


@pytest.mark.parametrize("kind", [t.Tool, t.ResourceContents, t.ElicitParams, t.ServerCapabilities])
def test_example_has_the_fewest_members_or_all(kind: Any) -> None:
    few, full = example(kind), example(kind, full=True)
    assert few != full
    assert example(kind) is few
    assert type(few) is type(full) is kind


def test_examples_are_valid() -> None:
    assert (example(t.ResourceContents).text, example(t.ResourceContents).blob) == ("text", None)
    assert example(t.ResourceContents, full=True).blob is None
    assert example(t.ElicitParams).requested_schema is not None
    assert (example(t.Tool).input_schema, example(t.Tool, full=True).name) == ({}, "text")


# -- From what values are drawn --------------------------------------------------------------------

SPECIAL = repr(st.sampled_from(_values._SPECIAL_TEXTS))
EDGES = repr(st.sampled_from(_values._INTEGERS))
FLOATS = "floats(allow_nan=False, allow_infinity=False, width=32)"


def short(strategy: st.SearchStrategy[Any]) -> str:
    """Return a strategy's text, with names for its tables and for the strategies of this file."""
    text = repr(strategy).replace(SPECIAL, "special").replace(EDGES, "edges")
    for name, known in (("scalar", _values.scalars()), ("number", numbers()), ("text", texts())):
        text = text.replace(repr(known).replace(SPECIAL, "special").replace(EDGES, "edges"), name)
    return text


def test_values_are_drawn_from_small_ranges() -> None:
    """Small cases are fast to check, and few members are enough for most bugs."""
    assert short(texts()) == "text"
    assert repr(texts()).endswith(", text(max_size=8))")
    assert repr(texts(3)).endswith(", text(max_size=3))")
    many = f"one_of(integers(min_value=-3, max_value=300), {EDGES}, {FLOATS})"
    assert repr(numbers()) == many
    assert short(json_values(0)) == "scalar"
    flat = "lists(scalar, max_size=3), dictionaries(keys=text, values=scalar, max_size=3)"
    assert short(json_values(1)) == f"one_of(scalar, {flat})"
    assert repr(json_values()) == repr(json_values(2))
    object_of = f"dictionaries(keys=text, values={short(json_values(1))}, max_size=3)"
    assert short(json_objects()) == object_of
    assert short(values_of(list[str])) == "lists(text, max_size=2)"
    assert short(values_of(dict[str, float])) == (
        f"dictionaries(keys=text, values={FLOATS}, max_size=2)"
    )
    safe = repr(st.sampled_from(_values._INTEGERS[:8]))
    assert repr(values_of(int)) == f"one_of(integers(min_value=-2, max_value=100), {safe})"
    part = "lists(none(), max_size=12)"
    assert repr(scripts(st.none())).startswith(f"tuples({part}, {part}).map(")
    assert repr(values_of(bool)) == "booleans()"
    assert repr(values_of(Literal["a", "b"])) == "sampled_from(('a', 'b'))"
    assert repr(values_of(bool | None)) == "one_of(booleans(), none())"
    assert repr(values_of(bool | None, present=True)) == "booleans()"


def test_values_of_an_annotation_without_a_rule_are_an_error() -> None:
    with pytest.raises(TypeError, match="no strategy for <class 'set'>"):
        values_of(set)


@pytest.mark.parametrize(
    ("size", "text"),
    [
        (0, "just(0)"),
        (2, "one_of(just(0), sampled_from([1, 2]), integers(min_value=0, max_value=3))"),
        (3, "one_of(just(0), sampled_from([1, 2, 4]), integers(min_value=0, max_value=7))"),
    ],
)
def test_subsets_are_none_each_alone_or_any(size: int, text: str) -> None:
    assert repr(_values._subsets(size)) == text


def test_chosen_subset_decides_which_optional_members_are_there() -> None:
    build: Any = structs(t.Implementation)
    draw = PlayedDraw("name", "1.0", 0b101, "one", "two")
    found = build.wrapped_strategy.definition(draw)
    names = [each.name for each in msgspec.structs.fields(t.Implementation)]
    optional = [each.name for each in msgspec.structs.fields(t.Implementation) if not each.required]
    assert (found.name, found.version) == ("name", "1.0")
    present = [name for name in names if getattr(found, name) in ("one", "two")]
    assert present == [optional[0], optional[2]]


def test_weights_are_places_in_a_table() -> None:
    draw = PlayedDraw(1, "b")
    choose: Any = weighted((3, st.none()), (2, st.booleans()))
    assert choose.wrapped_strategy.definition(draw) == "b"
    assert draw.asked == ["sampled_from([0, 0, 0, 1, 1])", "booleans()"]


@pytest.mark.parametrize(
    ("annotation", "few", "full"),
    [
        (str, "text", "text"),
        (int, 1, 1),
        (float, 0.5, 0.5),
        (bool, True, True),
        (Any, {"a": 1}, {"a": 1}),
        (Literal["x", "y"], "x", "x"),
        (str | None, "text", "text"),
        (None | int, 1, 1),
        (list[int], [], [1]),
        (dict[str, int], {}, {"key": 1}),
        (Annotated[int, "positive"], 1, 1),
        (Annotated[list[int], "few"], [], [1]),
    ],
)
def test_example_of_an_annotation(annotation: Any, few: Any, full: Any) -> None:
    found = _values._example_of(annotation, False), _values._example_of(annotation, True)
    assert found == (few, full)
    assert type(found[0]) is type(few)
