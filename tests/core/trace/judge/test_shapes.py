"""The shapes of params, results and content: all of the table, and the language that it is in."""

from __future__ import annotations

import itertools
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcp_core.trace.judge._shape_table import SHAPES
from mcp_core.trace.judge._shapes import find_shape_error, has_shape
from mcp_core.types._revisions import REVISIONS
from tests.levels import fewer_examples

EVERY = [(revision, name) for revision in REVISIONS for name in SHAPES if has_shape(revision, name)]
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3)
    ),
    max_leaves=10,
)


@pytest.mark.parametrize("revision", REVISIONS)
def test_shape_of_each_name_can_be_compiled(revision: str) -> None:
    names = [name for each, name in EVERY if each == revision]
    assert len(names) > 60
    for name in names:
        find_shape_error(revision, name, {})


def test_shape_table_has_changes_in_the_order_of_revisions() -> None:
    for name, variants in SHAPES.items():
        assert sorted({since for since, _ in variants}) == [since for since, _ in variants], name
        texts = ["", *(text for _, text in variants)]
        assert all(old != new for old, new in itertools.pairwise(texts)), name
    assert {since for variants in SHAPES.values() for since, _ in variants} <= set(REVISIONS)


def test_shape_that_was_removed_or_comes_later_is_not_of_the_revision() -> None:
    assert [has_shape(each, "<initialize") for each in REVISIONS] == [True] * 4 + [False]
    assert [has_shape(each, "ResourceLink") for each in REVISIONS] == [False] * 2 + [True] * 3


@fewer_examples(2)
@given(st.sampled_from(EVERY), JSON)
def test_shape_check_takes_any_json(place: tuple[str, str], value: Any) -> None:
    find_shape_error(*place, value)


TEXT = {"type": "text", "text": "x"}


@pytest.mark.parametrize(
    ("revision", "name", "value", "expected"),
    [
        ("2025-11-25", "<tools/call", {"content": [TEXT]}, None),
        ("2025-11-25", "<tools/call", [], "it is not an object"),
        ("2025-11-25", "<tools/call", {}, 'it lacks "content"'),
        ("2025-11-25", "<tools/call", {"content": 1}, "/content is not an array"),
        (
            "2025-11-25",
            "<tools/call",
            {"content": [TEXT, {"type": "text"}]},
            '/content/1 lacks "text"',
        ),
        (
            "2025-11-25",
            "<tools/call",
            {"content": [], "isError": 1},
            "/isError is not true or false",
        ),
        (
            "2024-11-05",
            "<tools/call",
            {"content": [{"type": "audio"}]},
            '/content/0 is none of the 3 possible shapes of type "audio"',
        ),
        ("2025-11-25", "Annotations", {"priority": 1.5}, "/priority is 1.5, which is out of range"),
        ("2025-11-25", "Annotations", {"priority": 1}, None),
        ("2025-11-25", "Annotations", {"priority": True}, "/priority is not a number"),
        (
            "2025-11-25",
            "Annotations",
            {"audience": ["me"]},
            '/audience/0 is not "assistant" or "user"',
        ),
        (
            "2025-11-25",
            "ImageContent",
            {"type": "image", "mimeType": "a/b", "data": "AA="},
            "/data is not base64",
        ),
        (
            "2025-11-25",
            ">notifications/cancelled",
            {"requestId": 1.5},
            "/requestId is not a string",
        ),
        ("2025-11-25", ">notifications/cancelled", {"requestId": 1.0}, None),
        (
            "2025-11-25",
            ">elicitation/create",
            {"message": "m", "mode": "url"},
            'it lacks "elicitationId"',
        ),
        (
            "2025-11-25",
            ">prompts/get",
            {"name": "p", "arguments": {"a/b": 1}},
            "/arguments/a~1b is not a string",
        ),
        ("2026-07-28", "<tasks/get", {"status": "completed"}, 'it lacks "taskId"'),
    ],
)
def test_shape_error_names_place_and_fault(
    revision: str, name: str, value: Any, expected: str | None
) -> None:
    error = find_shape_error(revision, name, value)
    assert (None if error is None else str(error)) == expected
