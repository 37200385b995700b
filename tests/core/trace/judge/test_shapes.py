"""The shapes of params, results and content: all of the table, and the language that it is in."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcp_core.trace.judge._shape_table import SHAPES
from mcp_core.trace.judge._shapes import find_shape_error, has_shape
from tests.levels import fewer_examples

EVERY = [
    (letter, name)
    for name, variants in SHAPES.items()
    for letters, _ in variants
    for letter in letters
]
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3)
    ),
    max_leaves=10,
)


@pytest.mark.parametrize("letter", "ABCDE")
def test_shape_of_each_name_can_be_compiled(letter: str) -> None:
    names = [name for each, name in EVERY if each == letter]
    assert len(names) > 60
    for name in names:
        assert has_shape(letter, name)
        find_shape_error(letter, name, {})


def test_shape_table_has_a_name_once_in_each_revision() -> None:
    assert len(EVERY) == len(set(EVERY))


@fewer_examples(2)
@given(st.sampled_from(EVERY), JSON)
def test_shape_check_takes_any_json(place: tuple[str, str], value: Any) -> None:
    find_shape_error(*place, value)


TEXT = {"type": "text", "text": "x"}


@pytest.mark.parametrize(
    ("letter", "name", "value", "expected"),
    [
        ("D", "<tools/call", {"content": [TEXT]}, None),
        ("D", "<tools/call", [], "it is not an object"),
        ("D", "<tools/call", {}, 'it lacks "content"'),
        ("D", "<tools/call", {"content": 1}, "/content is not an array"),
        ("D", "<tools/call", {"content": [TEXT, {"type": "text"}]}, '/content/1 lacks "text"'),
        ("D", "<tools/call", {"content": [], "isError": 1}, "/isError is not true or false"),
        (
            "A",
            "<tools/call",
            {"content": [{"type": "audio"}]},
            "/content/0 is none of the 3 possible shapes of type 'audio'",
        ),
        ("D", "Annotations", {"priority": 1.5}, "/priority is 1.5, which is out of range"),
        ("D", "Annotations", {"priority": 1}, None),
        ("D", "Annotations", {"priority": True}, "/priority is not a number"),
        ("D", "Annotations", {"audience": ["me"]}, '/audience/0 is not "assistant" or "user"'),
        (
            "D",
            "ImageContent",
            {"type": "image", "mimeType": "a/b", "data": "AA="},
            "/data is not base64",
        ),
        ("D", ">notifications/cancelled", {"requestId": 1.5}, "/requestId is not a string"),
        ("D", ">notifications/cancelled", {"requestId": 1.0}, None),
        ("D", ">elicitation/create", {"message": "m", "mode": "url"}, 'it lacks "elicitationId"'),
        (
            "D",
            ">prompts/get",
            {"name": "p", "arguments": {"a/b": 1}},
            "/arguments/a~1b is not a string",
        ),
        ("E", "<tasks/get", {"status": "completed"}, 'it lacks "taskId"'),
    ],
)
def test_shape_error_names_place_and_fault(
    letter: str, name: str, value: Any, expected: str | None
) -> None:
    error = find_shape_error(letter, name, value)
    assert (None if error is None else str(error)) == expected
