"""Canonical JSON: the examples of RFC 8785, what it refuses, and properties of any value."""

from __future__ import annotations

import hashlib
import json
import math
import struct
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcp_core._nesting import MAX_NESTING
from mcp_core.host import canonical_json, digest_json
from mcp_core.host._canonical_json import _number, _write, is_double
from mcp_core.types import Tool
from tests.levels import fewer_examples

# RFC 8785, appendix B: the bits of a double and its text.
NUMBERS = {
    "0000000000000000": "0",
    "8000000000000000": "0",
    "0000000000000001": "5e-324",
    "8000000000000001": "-5e-324",
    "7fefffffffffffff": "1.7976931348623157e+308",
    "ffefffffffffffff": "-1.7976931348623157e+308",
    "4340000000000000": "9007199254740992",
    "c340000000000000": "-9007199254740992",
    "4430000000000000": "295147905179352830000",
    "44b52d02c7e14af5": "9.999999999999997e+22",
    "44b52d02c7e14af6": "1e+23",
    "44b52d02c7e14af7": "1.0000000000000001e+23",
    "444b1ae4d6e2ef4e": "999999999999999700000",
    "444b1ae4d6e2ef4f": "999999999999999900000",
    "444b1ae4d6e2ef50": "1e+21",
    "3eb0c6f7a0b5ed8c": "9.999999999999997e-7",
    "3eb0c6f7a0b5ed8d": "0.000001",
    "41b3de4355555553": "333333333.3333332",
    "41b3de4355555554": "333333333.33333325",
    "41b3de4355555555": "333333333.3333333",
    "41b3de4355555556": "333333333.3333334",
    "41b3de4355555557": "333333333.33333343",
    "becbf647612f3696": "-0.0000033333333333333333",
    "43143ff3c1cb0959": "1424953923781206.2",
}

# RFC 8785, section 3.2.2: input and output, the latter as the bytes of section 3.2.4.
EXAMPLE = r"""
{
  "numbers": [333333333.33333329, 1E30, 4.50, 2e-3, 0.000000000000000000000000001],
  "string": "\u20ac$\u000F\u000aA'\u0042\u0022\u005c\\\"\/",
  "literals": [null, true, false]
}
"""
EXAMPLE_BYTES = bytes.fromhex(
    "7b226c69746572616c73223a5b6e756c6c2c747275652c66616c73655d2c226e756d62657273223a5b33333333333333"
    "33332e333333333333332c31652b33302c342e352c302e3030322c31652d32375d2c22737472696e67223a22e282ac24"
    "5c75303030665c6e4127425c225c5c5c5c5c222f227d"
)

json_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**53) + 1, 2**53 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
)


def written(value: Any) -> bytes:
    """Return what the writer in Python makes of a value, without msgspec's shorter way."""
    parts: list[bytes] = []
    _write(value, parts)
    return b"".join(parts)


def _as_double(digits: str) -> float:
    """Read an integer as ECMAScript does."""
    return float(digits)


@pytest.mark.parametrize(("bits", "text"), NUMBERS.items())
def test_number_of_the_rfc_is_written_as_its_appendix_says(bits: str, text: str) -> None:
    [number] = struct.unpack(">d", bytes.fromhex(bits))
    assert canonical_json(number) == text.encode()


def test_number_of_the_rfc_between_two_doubles_rounds_to_even() -> None:
    # The last row of appendix B is a decimal, not a double.
    assert canonical_json(1424953923781206.25) == b"1424953923781206.2"


def test_example_of_the_rfc_has_its_bytes() -> None:
    assert canonical_json(msgspec.json.decode(EXAMPLE)) == EXAMPLE_BYTES


def test_members_are_sorted_by_utf_16_code_units() -> None:
    """Digests must match other implementations, which sort as JavaScript does."""
    # RFC 8785, section 3.2.3: by code points, U+FB33 would precede the emoji.
    names = {
        "\u20ac": "Euro Sign",
        "\r": "Carriage Return",
        "\ufb33": "Hebrew Letter Dalet With Dagesh",
        "1": "One",
        "\U0001f600": "Emoji: Grinning Face",
        "\x80": "Control",
        "\u00f6": "Latin Small Letter O With Diaeresis",
    }
    assert list(json.loads(canonical_json(names)).values()) == [
        "Carriage Return",
        "One",
        "Control",
        "Latin Small Letter O With Diaeresis",
        "Euro Sign",
        "Emoji: Grinning Face",
        "Hebrew Letter Dalet With Dagesh",
    ]


@pytest.mark.parametrize(
    "value",
    [
        math.nan,
        math.inf,
        [1, -math.inf],
        "\ud800",
        {"\udc00": 1},
        2**53 + 1,
        [-(2**53) - 1],
        2**64 - 1,
        10**400,
    ],
    ids=repr,
)
def test_value_without_canonical_form_is_refused(value: Any) -> None:
    with pytest.raises(ValueError, match=r"."):
        canonical_json(value)


@pytest.mark.parametrize("value", [{1: 2}, {1: 2.5}, object(), [3j]])
def test_value_that_is_not_json_is_refused(value: Any) -> None:
    with pytest.raises(TypeError):
        canonical_json(value)


@pytest.mark.parametrize("leaf", [1, 1.5])
@pytest.mark.parametrize("levels", [MAX_NESTING + 1, 900, 5_000, 100_000])
def test_value_nested_too_deeply_is_refused(leaf: float, levels: int) -> None:
    with pytest.raises(ValueError, match="nested too deeply"):
        canonical_json(nested(leaf, levels))
    with pytest.raises(ValueError, match="nested too deeply"):
        canonical_json(Tool(name="t", input_schema={"a": nested(leaf, levels - 2)}))


@pytest.mark.parametrize("leaf", [1, 1.5])
def test_value_nested_as_deeply_as_permitted_has_a_form(leaf: float) -> None:
    text = b"[" * MAX_NESTING + str(leaf).encode() + b"]" * MAX_NESTING
    assert canonical_json(nested(leaf, MAX_NESTING)) == text
    assert canonical_json([[leaf]] * MAX_NESTING).count(b"[") == MAX_NESTING + 1


def nested(leaf: float, levels: int) -> Any:
    value: Any = leaf
    for _ in range(levels):
        value = [value]
    return value


@pytest.mark.parametrize("number", [2**53, 2**63, -(2**70), 2**1023])
def test_integer_that_a_double_holds_is_written_like_the_double(number: int) -> None:
    assert canonical_json(number) == canonical_json(float(number))


def test_integer_as_ecmascript_writes_it_stays_the_same() -> None:
    assert canonical_json(9223372036854776000) == b"9223372036854776000"
    assert canonical_json(2**63) == b"9223372036854776000"


def test_struct_is_written_with_its_json_names() -> None:
    tool = Tool(name="t", input_schema={"type": "object", "minimum": 0.5})
    assert canonical_json(tool) == b'{"inputSchema":{"minimum":0.5,"type":"object"},"name":"t"}'


def test_digest_is_the_sha_256_of_the_canonical_form() -> None:
    digest = hashlib.sha256(b'{"a":1,"b":2}').hexdigest()
    assert digest_json({"b": 2, "a": 1}) == f"sha256:{digest}"


@fewer_examples(5)
@given(json_values)
def test_canonical_json_reads_back_as_the_same_value(value: Any) -> None:
    assert json.loads(canonical_json(value), parse_int=_as_double) == value


@fewer_examples(5)
@given(json_values)
def test_canonical_json_is_the_same_by_both_ways(value: Any) -> None:
    assert canonical_json(value) == written(value)


@fewer_examples(8)
@given(json_values)
def test_canonical_json_of_itself_is_the_same(value: Any) -> None:
    once = canonical_json(value)
    assert canonical_json(msgspec.json.decode(once)) == once


@given(st.dictionaries(st.text(), st.integers(0, 9)))
def test_canonical_json_does_not_depend_on_the_order_of_members(value: dict[str, int]) -> None:
    assert canonical_json(dict(reversed(value.items()))) == canonical_json(value)


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_number_is_short_and_reads_back(number: float) -> None:
    text = _number(number)
    assert float(text) == number
    assert len(text) <= len("-0.00000") + 17
    assert ("e" in text) == (number != 0 and not 1e-6 <= abs(number) < 1e21)


@given(st.integers())
def test_integer_is_a_double_or_refused(number: int) -> None:
    if is_double(number):
        assert float(canonical_json(number)) == number
    else:
        with pytest.raises(ValueError, match="no double"):
            canonical_json(number)
