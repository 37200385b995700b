"""Damaged bytes, members and scripts: what each edit may do, and how many there are."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from mcp_trio.oracle.strategies import _mutations
from mcp_trio.oracle.strategies._mutations import damaged, malformed, reordered, split

PLAIN = settings(
    max_examples=20, database=None, derandomize=True, suppress_health_check=list(HealthCheck)
)
DATA = bytes(range(100, 160))  # all differ, so a place shows what was there
SIZE = len(DATA)


def is_inserted(new: bytes, at: int) -> bool:
    return new in {DATA[:at] + token + DATA[at:] for token in _mutations._TOKENS}


def is_replaced(new: bytes, at: int) -> bool:
    return len(new) == max(SIZE, at + 1) and (new[:at], new[at + 1 :]) == (
        DATA[:at],
        DATA[at + 1 :],
    )


def is_flipped(new: bytes, at: int) -> bool:
    changed = [a ^ b for a, b in zip(new, DATA, strict=True)]
    return changed[:at] + changed[at + 1 :] == [0] * (SIZE - (at < SIZE)) and (
        at == SIZE or changed[at].bit_count() == 1
    )


def is_deleted(new: bytes, at: int) -> bool:
    return new in {DATA[:at] + DATA[at + count :] for count in range(1, 13)}


def is_truncated(new: bytes, at: int) -> bool:
    return new == DATA[:at]


def is_repeated(new: bytes, at: int) -> bool:
    stops = range(at + 1, at + 41)
    return new in {DATA[:stop] + DATA[at:stop] + DATA[stop:] for stop in stops}


@pytest.mark.parametrize(
    ("edit", "is_right", "results"),
    [
        (_mutations._insert, is_inserted, 8),
        (_mutations._replace, is_replaced, 8),
        (_mutations._flip, is_flipped, 4),
        (_mutations._delete, is_deleted, 4),
        (_mutations._truncate, is_truncated, 1),
        (_mutations._repeat, is_repeated, 4),
    ],
)
def test_edit_of_bytes_does_what_its_name_says(edit: Any, is_right: Any, results: int) -> None:
    """At the beginning, within and at the end, and not the same each time."""
    found: dict[int, set[bytes]] = {0: set(), 17: set(), SIZE: set()}

    @settings(PLAIN, max_examples=15)
    @given(st.data())
    def check(data: st.DataObject) -> None:
        for at, news in found.items():
            new = edit(DATA, at, data.draw)
            assert is_right(new, at)
            news.add(new)

    check()
    assert len(found[17]) >= results


def test_bytes_are_damaged_in_one_to_three_places(monkeypatch: pytest.MonkeyPatch) -> None:
    """More would be rejected by the first check, so that nothing behind it is tested."""
    edits = st.just(lambda data, start, draw: data[:start] + b"!" + data[start:])
    monkeypatch.setattr(_mutations, "_ANY_EDIT", edits)
    counts: set[int] = set()
    places: set[int] = set()

    @PLAIN
    @given(damaged(st.just(DATA)))
    def check(new: bytes) -> None:
        assert new.replace(b"!", b"") == DATA
        counts.add(new.count(b"!"))
        places.add(new.index(b"!"))

    check()
    assert counts == {1, 2, 3}
    assert len(places) > 5


def test_malformed_message_is_json_with_one_or_two_wrong_members() -> None:
    """Tabs and spaces between its members change nothing."""
    message = {"jsonrpc": "2.0", "id": 1, "method": "a", "params": {"a": [1, {"b": "é"}]}}
    texts: set[str] = set()
    counts: set[int] = set()

    @settings(PLAIN, max_examples=60)
    @given(malformed(st.just(message)))
    def check(data: bytes) -> None:
        members: list[Any] = json.loads(data, object_pairs_hook=list)
        texts.add(data.decode())
        counts.add(len(members))

    check()
    assert {2, 3, 4, 5, 6} >= counts > {3, 4, 5}
    assert any(": " in text for text in texts)
    assert any(":\t" in text for text in texts)


@pytest.mark.parametrize(
    ("key", "escaped"),
    [
        ('"id"', r'"\u0069d"'),
        ('"i"', r'"\u0069"'),
        ('"é"', r'"\u00e9"'),
        (r'"\u0069d"', r'"\u0069d"'),  # it has an escape already
        (r'"\\a"', r'"\\a"'),
        ('""', '""'),
    ],
)
def test_escaped_key_is_the_same_key(key: str, escaped: str) -> None:
    members = [(key, b"1"), ('"other"', b"2")]
    found = _mutations._escape(members, lambda strategy: 0)  # type: ignore[arg-type]
    assert found == [(escaped, b"1"), ('"other"', b"2")]
    assert json.loads(escaped) == json.loads(key)


def test_reordered_script_has_the_steps_of_its_scripts() -> None:
    """Steps are removed, repeated or moved, or another script follows; never all at once."""
    script = list(range(20))
    found: list[list[int]] = []

    @settings(PLAIN, max_examples=110)
    @given(reordered(st.sampled_from([script, [-1, -2]])))
    def check(steps: list[int]) -> None:
        assert set(steps) <= {*script, -1, -2}
        found.append(steps)

    check()
    long = [steps for steps in found if len(steps) > 4]
    assert any(len(set(steps)) < len(steps) for steps in long)  # repeated
    assert any(steps[-2:] == [-1, -2] for steps in long)  # another script
    own = [steps for steps in long if -1 not in steps]
    assert any(len(set(steps)) == len(steps) and steps != sorted(steps) for steps in own)  # moved
    assert any(steps == sorted(set(steps)) and 8 <= len(steps) < 20 for steps in long)  # removed
    assert all(len(steps) >= 8 for steps in found if steps[:1] == [0] and -1 not in steps)


def test_chunks_are_the_bytes_and_none_is_empty() -> None:
    counts: set[int] = set()

    @settings(PLAIN, max_examples=60)
    @given(split(st.sampled_from([DATA, b"x", b""])))
    def check(chunks: list[bytes]) -> None:
        assert b"".join(chunks) in (DATA, b"x", b"")
        assert all(chunks)
        counts.add(len(chunks))

    check()
    assert {0, 1, 2, 3} <= counts <= set(range(8))


def test_values_in_place_of_others_all_differ() -> None:
    """True, 1 and 1.0 are different values of JSON."""
    texts = [json.dumps(each) for each in _mutations._VALUES]
    assert len(set(texts)) == len(texts)
    assert {"null", "true", "false", "0", "1", "-1", "1.0", '""', "[]", "{}"} <= set(texts)
