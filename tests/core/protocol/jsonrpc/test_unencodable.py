"""A part that JSON cannot hold is found in any value, with its path; all else passes."""

from __future__ import annotations

import dataclasses
import datetime as dt
import math
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcp_core import UnencodableValue
from mcp_core.protocol.jsonrpc._unencodable import encode_exactly, find_unencodable, whole_text
from tests.levels import fewer_examples

NAN = math.nan
INF = math.inf


class Point(msgspec.Struct, rename="camel"):
    far_away: float
    rest: Any = None


@dataclasses.dataclass
class Name:
    name: str


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (NAN, "the value is NaN, which JSON cannot hold: use None, or text"),
        ([1.5, -INF], "[1] is -Infinity, which"),
        ((None, {"a": INF}), "[1].a is Infinity, which"),
        ({"a b": {"c": [0, NAN]}}, "['a b'].c[1] is NaN"),
        ({1: NAN}, "[1] is NaN"),
        ({"a": NAN, "b": INF}, "a is NaN"),
        (Point(NAN), "farAway is NaN"),
        (Point(1.0, [Point(INF)]), "rest[0].farAway is Infinity"),
        ({"whole": 2**70, "x": NAN}, "x is NaN"),
        ({"raw": msgspec.Raw(b'{"a":null}'), "x": NAN}, "x is NaN"),
        ({"at": dt.datetime(2026, 1, 1), "x": NAN}, "x is NaN"),  # noqa: DTZ001
        ("\ud800", "the value has half of a surrogate pair, '\\ud800' at character 0, which is no"),
        (["ab\udfff"], "[0] has half of a surrogate pair, '\\udfff' at character 2"),
        (Name("x\udce9"), "name has half of a surrogate pair, '\\udce9' at character 1, as a file"),
        ({"a": {"\ud800": 1}}, "the name '\\ud800' in a has half of a surrogate pair"),
        ({"\ud800": 1}, "the name '\\ud800' has half of a surrogate pair"),
    ],
)
def test_value_that_json_cannot_hold_is_refused_with_its_path(value: Any, text: str) -> None:
    with pytest.raises(UnencodableValue) as caught:
        encode_exactly(value)
    assert str(caught.value).startswith(text)


@pytest.mark.parametrize(
    "value",
    [
        None,
        [None, 1e308, -0.0, 2**70],
        {"null": "null", "b": None},
        {NAN: None},  # names are text
        Point(1.0),
        {"raw": msgspec.Raw(b"[null]")},
        # Bytes of MessagePack that look like NaN's: a text of 0xcb7f bytes.
        [None, "a" * 0xCB7F],
        [None, "\u02f0\x7f\xf0"],
    ],
)
def test_value_that_json_can_hold_is_encoded_as_before(value: Any) -> None:
    assert encode_exactly(value) == msgspec.json.encode(value)


NUMBERS = st.floats() | st.integers(-(2**80), 2**80)
VALUES = st.recursive(
    st.none() | st.text(max_size=3) | NUMBERS,
    lambda parts: st.lists(parts) | st.dictionaries(st.text(max_size=3), parts),
    max_leaves=8,
)


@fewer_examples(2)
@given(VALUES)
def test_value_is_refused_exactly_if_it_has_such_a_number(value: Any) -> None:
    """The walk in Python is the model, MessagePack the fast way to the same answer."""
    problem = find_unencodable(value)
    if not problem:
        assert encode_exactly(value) == msgspec.json.encode(value)
        return
    with pytest.raises(UnencodableValue) as caught:
        encode_exactly(value)
    assert str(caught.value) == problem


@pytest.mark.parametrize(
    ("text", "whole"),
    [
        ("plain", "plain"),
        ("Zürich 😀", "Zürich 😀"),
        ("a\ud800b\udc00c", "a\ufffdb\ufffdc"),
        ("\ud83d\ude00", "😀"),
        ("end\ud83d", "end\ufffd"),
    ],
)
def test_whole_text_has_a_replacement_for_each_half(text: str, whole: str) -> None:
    assert whole_text(text) == whole
