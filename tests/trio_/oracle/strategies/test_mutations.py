"""Damaged bytes, members and scripts: what each edit may do, and how many there are."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from mcp_trio.oracle.strategies import _mutations
from mcp_trio.oracle.strategies._mutations import damaged, malformed, reordered, split
from tests.trio_.oracle.strategies.played_draw import PlayedDraw

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


# -- The edits, one by one -------------------------------------------------------------------------

ABC = b"abcdef"


@pytest.mark.parametrize(
    ("edit", "start", "choices", "asked", "new"),
    [
        (_mutations._insert, 2, (b"!",), ["token"], b"ab!cdef"),
        (_mutations._replace, 2, (33,), ["0..255"], b"ab!def"),
        (_mutations._replace, 6, (33,), ["0..255"], b"abcdef!"),
        (_mutations._flip, 2, (1,), ["0..7"], b"abadef"),
        (_mutations._flip, 6, (1,), [], ABC),
        (_mutations._delete, 2, (3,), ["1..12"], b"abf"),
        (_mutations._truncate, 2, (0,), [], b"ab"),
        (_mutations._repeat, 2, (3,), ["1..40"], b"abcdecdef"),
        (_mutations._repeat, 4, (40,), ["1..40"], b"abcdefef"),
    ],
)
def test_edit_of_bytes_at_a_place(
    edit: Any, start: int, choices: tuple[Any, ...], asked: list[str], new: bytes
) -> None:
    draw = PlayedDraw(*choices)
    assert edit(ABC, start, draw) == new
    tokens = repr(_mutations._ANY_TOKEN)
    assert [each.replace(tokens, "token") for each in draw.asked] == asked


MEMBERS = [('"a"', b"1"), ('"b"', b"2"), ('"c"', b"3")]
TWO = "0..2"


@pytest.mark.parametrize(
    ("edit", "choices", "asked", "new"),
    [
        (_mutations._drop, (1,), [TWO], [MEMBERS[0], MEMBERS[2]]),
        (
            _mutations._change,
            (1, True, "x"),
            [TWO, "booleans()", "value"],
            [MEMBERS[0], ('"b"', b'"x"'), MEMBERS[2]],
        ),
        (
            _mutations._change,
            (1, False, 7),
            [TWO, "booleans()", "json 1"],
            [MEMBERS[0], ('"b"', b"7"), MEMBERS[2]],
        ),
        (
            _mutations._double,
            (1, b"2"),
            [TWO, r"""sampled_from((b'2', b'1', b'null', b'"x"'))"""],
            [*MEMBERS, MEMBERS[1]],
        ),
        (
            _mutations._add,
            ("é", False, 7),
            ["field", "booleans()", "json 1"],
            [*MEMBERS, (r'"\u00e9"', b"7")],
        ),
        (
            _mutations._rename,
            (1, "x"),
            [TWO, "field"],
            [MEMBERS[0], ('"x"', b"2"), MEMBERS[2]],
        ),
        (
            _mutations._escape,
            (1,),
            [TWO],
            [MEMBERS[0], (r'"\u0062"', b"2"), MEMBERS[2]],
        ),
        (_mutations._reverse, (0,), [], MEMBERS[::-1]),
    ],
)
def test_edit_of_members_at_a_place(
    edit: Any, choices: tuple[Any, ...], asked: list[str], new: Any
) -> None:
    draw = PlayedDraw(*choices)
    assert edit(MEMBERS, draw) == new
    names = {repr(_mutations._ANY_VALUE): "value", repr(_mutations._ANY_FIELD): "field"}
    assert [names.get(each, each) for each in draw.asked] == asked


def test_message_without_members_has_no_place_for_most_edits() -> None:
    for edit in (_mutations._drop, _mutations._change, _mutations._rename, _mutations._escape):
        draw: Any = PlayedDraw(0)
        assert edit([], draw) == []
        assert draw.asked[0] == "0..0"
    never: Any = PlayedDraw()
    assert _mutations._double([], never) == []


@pytest.mark.parametrize(
    ("choices", "asked", "steps"),
    [
        ((1, 2, 2, 0), ["1..3", "0..6", "0..4", "0..3"], "abef"),
        ((1, 2, 2, 1), ["1..3", "0..6", "0..4", "0..3"], "abcdcdef"),
        ((1, 2, 2, 2, 4), ["1..3", "0..6", "0..4", "0..3", "0..4"], "abefcd"),
        ((1, 2, 2, 2, 0), ["1..3", "0..6", "0..4", "0..3", "0..4"], "cdabef"),
        ((1, 2, 2, 3), ["1..3", "0..6", "0..4", "0..3"], "ababcdef"),
        (
            (2, 0, 3, 0, 1, 1, 0),
            ["1..3", *("0..6", "0..4", "0..3"), *("0..3", "0..4", "0..3")],
            "df",
        ),
    ],
)
def test_script_is_edited_from_a_drawn_place_on(
    choices: tuple[int, ...], asked: list[str], steps: str
) -> None:
    draw = PlayedDraw(*choices)
    assert "".join(defined(reordered)(draw, lambda _: "abcdef")) == steps
    assert draw.asked == asked


def defined(composite: Any) -> Any:
    """Return the function that hypothesis has made a composite strategy of."""
    return composite(st.none()).wrapped_strategy.definition


def test_message_is_written_with_spaces_or_tabs() -> None:
    spaces = "sampled_from((('', ''), (' ', ' '), ('\\t', '\\r')))"
    draw = PlayedDraw(2, _mutations._reverse, _mutations._drop, 0, ("\t", "\r"))
    message = {"a": "é", "b": [1], "c": None}
    data = defined(malformed)(draw, lambda _: message)
    assert data == '{"b":\t[1],\r"a":\t"é"}'.encode()
    assert (draw.asked[0], draw.asked[-2:]) == ("1..2", ["0..2", spaces])


@pytest.mark.parametrize(
    ("whole", "cuts", "asked", "chunks"),
    [
        (b"abcd", [3, 1, 3, 4], "1..4", [b"a", b"bc", b"d"]),
        (b"a", [1], "1..1", [b"a"]),
        (b"", [1], "1..1", []),
    ],
)
def test_bytes_are_cut_at_drawn_places(
    whole: bytes, cuts: list[int], asked: str, chunks: list[bytes]
) -> None:
    draw = PlayedDraw(cuts)
    assert defined(split)(draw, lambda _: whole) == chunks
    assert draw.asked == [f"lists({asked}, max_size=6)"]


def test_tokens_are_long_where_that_matters() -> None:
    """A parser's first buffer or its stack of levels is smaller than these."""
    assert {b"9" * 30, b"-" * 3, b"[" * 40, b'{"a":' * 40, b'"a' + b"a" * 300} < {
        *_mutations._TOKENS
    }
    plain = {each for each in _mutations._VALUES if isinstance(each, int | str)}
    assert {2**53, 10**30, "x" * 257} < plain
