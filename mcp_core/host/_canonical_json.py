"""Canonical JSON (RFC 8785): one spelling of each value, so that equal values have equal digests.

1. Members are sorted by the UTF-16 code units of their names (section 3.2.3).
2. A number is written as ECMAScript writes a double (section 3.2.2.3, ECMA-262 Number::toString).
   An integer that no double equals is refused: it would be written as another number.
3. NaN, infinities and halves of surrogate pairs have no JSON, and are refused (sections 3.2.2.2 and
   3.2.2.3). The decoder of the text has to refuse duplicate members.
"""

from __future__ import annotations

import hashlib
import math
import re
from typing import Any, Final

import msgspec

from mcp_core._nesting import MAX_NESTING, depth_exceeds

__all__ = ["canonical_json", "digest_json", "is_double"]

# Sorts by code points, and writes strings as RFC 8785 does (section 3.2.2.2).
_encode_sorted: Final = msgspec.json.Encoder(order="sorted").encode
_encode: Final = msgspec.json.Encoder().encode
# In the output of `_encode_sorted`: what may differ from RFC 8785, outside strings or inside. A
# number with a fraction or exponent, or of 16 and more digits; null, which may stand for NaN; a
# character above U+FFFF, which UTF-16 sorts before U+E000. Two patterns that begin with a set of
# bytes are searched for five times as fast as one that doesn't.
_NUMBER_OR_NULL: Final = re.compile(rb"[:\[,](?:-?\d+[.eE]|-?\d{16}|null)")
_BEYOND_BMP: Final = re.compile(rb"[\xf0-\xf4]")

_BEGINNINGS: Final = frozenset((b"{", b"[", b'"', b"t", b"f"))  # not a number's or null's
_TOO_DEEP: Final = "the JSON is nested too deeply"
_MAX_SAFE_INTEGER: Final = 2**53 - 1
# ECMA-262, Number::toString: values from 1e-6 to below 1e21 have no exponent.
_MAX_POINT: Final = 21
_MIN_POINT: Final = -5


def canonical_json(value: Any) -> bytes:
    """Return the canonical form of a JSON value, in UTF-8.

    Args:
        value: a value as `msgspec.json.decode` returns it, or a Struct.

    Raises:
        ValueError: NaN, an infinity, half of a surrogate pair, or an integer that isn't a double;
            or `value` is nested more than 200 deep.
        TypeError: something that isn't JSON, such as a member whose name is a number.
    """
    try:
        encoded = _encode_sorted(value)
    except RecursionError:
        raise ValueError(_TOO_DEEP) from None
    is_suspect = encoded.count(b"[") + encoded.count(b"{") > MAX_NESTING
    if is_suspect and depth_exceeds(msgspec.json.decode(encoded)):
        raise ValueError(_TOO_DEEP)
    has_number = encoded[:1] not in _BEGINNINGS or _NUMBER_OR_NULL.search(encoded)
    if not has_number and (encoded.isascii() or not _BEYOND_BMP.search(encoded)):
        return encoded
    parts: list[bytes] = []
    _write(msgspec.to_builtins(value), parts)
    return b"".join(parts)


def digest_json(value: Any) -> str:
    """Return the SHA-256 of the canonical form of `value`, as "sha256:" and 64 hex digits.

    Raises:
        ValueError, TypeError: as `canonical_json`.
    """
    return f"sha256:{hashlib.sha256(canonical_json(value)).hexdigest()}"


def is_double(number: int) -> bool:
    """Return True if a double equals `number`, or ECMAScript writes a double like it.

    JavaScript writes 2^63 as 9223372036854776000, for example.
    """
    if -_MAX_SAFE_INTEGER <= number <= _MAX_SAFE_INTEGER:
        return True
    try:
        double = float(number)
    except OverflowError:
        return False
    return int(double) == number or _number(double) == str(number)


def _write(value: Any, parts: list[bytes]) -> None:
    if isinstance(value, dict):
        mark = b"{"
        for name in sorted(value, key=_utf16):
            parts += (mark, _encode(name), b":")
            _write(value[name], parts)
            mark = b","
        parts.append(b"}" if value else b"{}")
    elif isinstance(value, list | tuple):
        mark = b"["
        for item in value:
            parts.append(mark)
            _write(item, parts)
            mark = b","
        parts.append(b"]" if value else b"[]")
    elif isinstance(value, float):
        parts.append(_number(value).encode())
    elif isinstance(value, int) and not isinstance(value, bool):
        parts.append(_integer(value).encode())
    else:
        parts.append(_encode(value))


def _utf16(name: str) -> bytes:
    """Return the sort key of a member: big-endian code units compare like numbers."""
    return name.encode("utf-16-be")


def _integer(value: int) -> str:
    if not is_double(value):
        # The text leaves out the number: it may have millions of digits.
        raise ValueError(f"an integer of {value.bit_length()} bits is no double")
    return str(value) if abs(value) <= _MAX_SAFE_INTEGER else _number(float(value))


def _number(value: float) -> str:
    """Write a double as ECMAScript does.

    Python's `repr` has the same digits: the shortest ones that read back as the same double. Only
    its rules for the point and the exponent differ.
    """
    if not math.isfinite(value):
        raise ValueError(f"{value} has no JSON")
    if value == 0:
        return "0"  # -0 too
    sign = "-" if value < 0 else ""
    mantissa, _, exponent = repr(abs(value)).partition("e")
    whole, _, fraction = mantissa.partition(".")
    digits = (whole + fraction).lstrip("0")
    # `point` is the n of ECMA-262: the value is 0.digits * 10^n.
    point = len(whole) + int(exponent or 0)
    if whole == "0":
        point -= len(fraction) - len(fraction.lstrip("0")) + 1
    digits = digits.rstrip("0")
    if len(digits) <= point <= _MAX_POINT:
        text = digits.ljust(point, "0")
    elif 0 < point <= _MAX_POINT:
        text = f"{digits[:point]}.{digits[point:]}"
    elif _MIN_POINT <= point <= 0:
        text = f"0.{'0' * -point}{digits}"
    else:
        first, rest = digits[0], digits[1:]
        text = f"{first}.{rest}" if rest else first
        text += f"e{'+' if point > 0 else '-'}{abs(point - 1)}"
    return sign + text
