"""The objects of a document in chunks."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from mcp_core.trace.logs._values import JsonValue, ValueSplitter

if TYPE_CHECKING:
    from collections.abc import Sequence


def values_of(chunks: Sequence[bytes], limit: int = 100) -> list[JsonValue]:
    splitter = ValueSplitter(limit)
    found = [value for chunk in chunks for value in splitter.feed(chunk)]
    return found + list(splitter.end())


CUT, LONG = "it is cut off", "it is too long"


@pytest.mark.parametrize(
    ("document", "expected"),
    [
        (b'{"a": 1}', [(b'{"a": 1}', 1, "")]),
        (b'[{"a": [1, {}]},\n5, "b", {}]\n', [(b'{"a": [1, {}]}', 1, ""), (b"{}", 2, "")]),
        (b'{"a":\n{"b": 1}\n}{}', [(b'{"a":\n{"b": 1}\n}', 1, ""), (b"{}", 3, "")]),
        (b'\n\n{"a\\"}": "{\\\\"}', [(b'{"a\\"}": "{\\\\"}', 3, "")]),
        (b'}]{"a": 1]', [(b'{"a": 1]', 1, "")]),
        # A line break within a string ends a value, and so does the end of the document.
        (b'{"a": "b\n{"c": 1}', [(b'{"a": "b', 1, CUT), (b'{"c": 1}', 2, "")]),
        (b'{}\n{"a":\n', [(b"{}", 1, ""), (b'{"a":\n', 2, CUT)]),
        (b'"{" {}', [(b'{" {}', 1, CUT)]),
        (b"", []),
        (b"no object", []),
    ],
)
def test_objects_are_found_in_a_document_and_in_any_chunks_of_it(
    document: bytes, expected: list[tuple[bytes, int, str]]
) -> None:
    wanted = [JsonValue(*each) for each in expected]
    for size in range(1, len(document) + 1):
        chunks = [document[at : at + size] for at in range(0, len(document), size)]
        assert values_of(chunks) == wanted
        assert values_of([b"", *chunks, b""]) == wanted


@pytest.mark.parametrize(
    ("document", "expected"),
    [
        (b'{"a": 123} {}', [(b'{"a": 123}', 1, ""), (b"{}", 1, "")]),
        (b'{"a": 1234}\n{}', [(b'{"a": 1234', 1, LONG), (b"{}", 2, "")]),
        (b'{"a": 123456', [(b'{"a": 1234', 1, LONG)]),
        (b'{"a": "b123\n{}', [(b'{"a": "b12', 1, LONG), (b"{}", 2, "")]),
    ],
)
def test_object_above_the_limit_has_its_beginning(
    document: bytes, expected: list[tuple[bytes, int, str]]
) -> None:
    wanted = [JsonValue(*each) for each in expected]
    for size in range(1, len(document) + 1):
        chunks = [document[at : at + size] for at in range(0, len(document), size)]
        assert values_of(chunks, limit=10) == wanted


def test_long_object_takes_no_more_memory_than_the_limit() -> None:
    splitter = ValueSplitter(10)
    assert not list(splitter.feed(b'{"a":'))
    for _ in range(3):
        assert not list(splitter.feed(b"1" * 100))
        assert len(splitter._text) == 11
