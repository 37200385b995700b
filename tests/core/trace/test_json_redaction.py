"""Values are replaced inside the text of a message: nothing else changes, also in damaged JSON."""

from __future__ import annotations

import json
import time
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcp_core.trace import _json_redaction
from mcp_core.trace._json_redaction import decode_string, replace_values, values_of
from tests.levels import fewer_examples

json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
)


def leaves(value: Any, path: tuple[str | int, ...] = ()) -> list[tuple[tuple[str | int, ...], Any]]:
    if isinstance(value, dict):
        return [leaf for name, each in value.items() for leaf in leaves(each, (*path, name))]
    if isinstance(value, list):
        return [leaf for index, each in enumerate(value) for leaf in leaves(each, (*path, index))]
    return [(path, value)]


@fewer_examples(8)
@given(json_values, st.sampled_from([None, 1]), st.booleans())
def test_values_of_valid_json_have_the_paths_of_a_decoder(
    value: Any, indent: int | None, ascii_only: bool
) -> None:
    text = json.dumps(value, indent=indent, ensure_ascii=ascii_only)
    found = [
        (each.path, json.loads(text[each.start : each.end]))
        for each in values_of(text)
        if not each.is_container
    ]
    assert found == leaves(value)


@fewer_examples(5)
@given(json_values)
def test_redaction_of_everything_keeps_names_and_types(value: Any) -> None:
    text, pointers = replace_values(json.dumps(value), lambda each, token: True)
    redacted = json.loads(text)
    kinds = {int: (int, float), float: (int, float)}
    for (path, old), (same_path, new) in zip(leaves(value), leaves(redacted), strict=True):
        assert path == same_path
        assert isinstance(new, kinds.get(type(old), type(old)))
        if isinstance(old, str):
            assert new == f"‹redacted {len(old)}›"
    assert pointers in ((), ("",))


def test_text_around_a_replaced_value_stays() -> None:
    text = ' { "a" : "1" ,\n"b":\t[true, "x\\u0041", 3e5 ],"a":"2"} '
    replaced, pointers = replace_values(text, lambda each, token: each.path[:1] == ("b",) or None)
    assert replaced == ' { "a" : "1" ,\n"b":\t[false, "‹redacted 2›", 0 ],"a":"2"} '
    assert pointers == ("/b",)


def test_pointer_escapes_its_special_characters() -> None:
    _, pointers = replace_values(
        '{"a/b":{"~":[1]}}', lambda each, token: len(each.path) == 3 or None
    )
    assert pointers == ("/a~1b/~0/0",)


@pytest.mark.parametrize(
    ("text", "redacted"),
    [
        ('{"s":"secret', '{"s":"‹redacted 6›"'),
        ('"s":"secret"', '"s":"‹redacted 6›"'),
        ('}]{"x":1 "s":"secret"', '}]{"x":1 "s":"‹redacted 6›"'),
        ('{"s":secret,"t":1}', '{"s":0,"t":1}'),
        ('{"s":["secret"', '{"s":["‹redacted 6›"'),
        ('{"s"::"secret"}', '{"s"::"‹redacted 6›"}'),
        ('["s":"secret"]', '["s":"‹redacted 6›"]'),
    ],
)
def test_secret_in_damaged_json_is_found(text: str, redacted: str) -> None:
    def choose(value: Any, token: str) -> Any:
        return True if "s" in value.path else None

    assert replace_values(text, choose)[0] == redacted


@pytest.mark.parametrize(
    ("token", "text"),
    [('"a"', "a"), ('"\\u0041"', "A"), ('"\\x"', "\\x"), ('"a', "a"), ("x", "x"), ('"', "")],
)
def test_string_is_decoded_as_far_as_possible(token: str, text: str) -> None:
    assert decode_string(token) == text


@pytest.mark.perf
@pytest.mark.parametrize("text", ["[" * 200_000, '{"a":' * 50_000, '"' * 200_001, "\\" * 200_000])
def test_hostile_text_takes_linear_time(text: str) -> None:
    start = time.perf_counter()
    replace_values(text, lambda each, token: None)
    assert time.perf_counter() - start < 5


def test_secret_below_any_depth_is_redacted_with_its_container() -> None:
    text = '{"s":' + "[" * 1000 + '"secret"' + "]" * 1000 + ',"t":"open"}'
    replaced, _ = replace_values(text, lambda each, token: each.path[:1] == ("s",) or None)
    assert "secret" not in replaced
    assert '"t":"open"' in replaced


@given(st.text())
def test_any_text_is_scanned_without_an_error(text: str) -> None:
    assert replace_values(text, lambda each, token: None) == (text, ())
    replace_values(text, lambda each, token: True)


def test_values_below_the_deepest_path_have_the_path_above(monkeypatch: pytest.MonkeyPatch) -> None:
    """No message may make a path as long as itself. The members that follow have their own."""
    monkeypatch.setattr(_json_redaction, "_MAX_DEPTH", 2)
    text = '{"a":{"b":{"c":1,"d":[2,{"x":5}]},"e":3},"f":[4,[6,[7,8]],9]}'
    found = [
        (value.path, text[value.start : value.end], value.is_container) for value in values_of(text)
    ]
    below = ("a", "b")
    assert [(path, value) for path, value, is_container in found if not is_container] == [
        *((below, "1"), (below, "2"), (below, "5"), (("a", "e"), "3")),
        *((("f", 0), "4"), (("f", 1), "6"), (("f", 1), "7"), (("f", 1), "8"), (("f", 2), "9")),
    ]
