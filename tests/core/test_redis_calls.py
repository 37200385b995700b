"""Positions in streams: what was missed, and what wasn't."""

from __future__ import annotations

import pytest

from mcp_core._redis_calls import BEGINNING, StreamPosition, key_prefix, unread

AT_3 = StreamPosition(500, 3)


@pytest.mark.parametrize(
    ("position", "ids", "expected"),
    [
        pytest.param(AT_3, "500-4 500-5", "4 5", id="the next ones"),
        pytest.param(AT_3, "500-5 500-6", "gap 5 6", id="one was missed"),
        pytest.param(AT_3, "500-4 500-6", "4 gap 6", id="missing in the middle"),
        pytest.param(AT_3, "501-1 501-2", "gap 1 2", id="the stream was begun again"),
        pytest.param(AT_3, "501-4", "gap 4", id="another epoch goes on with our number"),
        pytest.param(BEGINNING, "500-1 500-2", "1 2", id="nothing was there before"),
        pytest.param(BEGINNING, "500-2", "gap 2", id="the first was missed"),
        pytest.param(AT_3, "", "", id="nothing"),
    ],
)
def test_unread_entries_have_a_gap_where_some_were_missed(
    position: StreamPosition, ids: str, expected: str
) -> None:
    entries = [(id.encode(), id.partition("-")[2].encode()) for id in ids.split()]
    last, messages = unread(position, entries)
    text = " ".join("gap" if each is None else each.decode() for each in messages)
    assert text == expected
    assert last == (StreamPosition.of(entries[-1][0]) if entries else position)


def test_position_is_written_as_it_is_read() -> None:
    assert str(StreamPosition.of(b"1800000000000-17")) == "1800000000000-17"
    assert StreamPosition.of(b"1-9") < StreamPosition.of(b"1-10") < StreamPosition.of(b"2-0")


def test_prefix_has_the_name_as_its_hash_tag() -> None:
    assert key_prefix("lab:1") == "mcp:{lab:1}:"


@pytest.mark.parametrize("name", ["", "a{b", "a}b", "{"])
def test_prefix_of_a_name_that_would_break_the_hash_tag_is_refused(name: str) -> None:
    with pytest.raises(ValueError, match="has one or more characters, and no braces"):
        key_prefix(name)
