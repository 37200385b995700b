"""Values that JSON cannot hold: NaN, the infinities, and halves of surrogate pairs.

1. msgspec writes `null` for such a number. So only a value whose JSON has `null` can have one: a
   caller that has encoded a value looks for that first, and comes here only then.
2. MessagePack has numbers as they are. Its bytes show whether there is one of these, and they take
   no longer to make than JSON. Python walks a value only to name the place.

Sources: RFC 8259, sections 6 and 8.2.
"""

from __future__ import annotations

from math import isfinite
from typing import TYPE_CHECKING, Any, Final

import msgspec
from msgspec import Raw

from mcp_core._errors import UnencodableValue
from mcp_core._patterns import compile_on_first_use

from ._codec import encode

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    EncodeHook = Callable[[Any], Any]

__all__ = [
    "check_numbers",
    "encode_exactly",
    "find_unencodable",
    "may_lack_numbers",
    "unencodable",
    "whole_text",
]

# The beginning of a float64 of MessagePack whose exponent has all bits set.
_NOT_FINITE = compile_on_first_use(rb"\xcb[\x7f\xff][\xf0-\xff]")
_ARRAYS: Final = frozenset({list, tuple, set, frozenset})
_NAMES: Final = {"nan": "NaN", "inf": "Infinity", "-inf": "-Infinity"}


def encode_exactly(value: Any) -> bytes:
    """Encode a value as JSON.

    Raises:
        UnencodableValue: JSON cannot hold part of the value.
        TypeError: a part of it has a type that has no JSON.
    """
    try:
        data = encode(value)
    except UnicodeEncodeError:
        raise unencodable(value) from None
    if b"null" in data:
        check_numbers(value)
    return data


def check_numbers(value: Any, encode_hook: EncodeHook | None = None) -> None:
    """Check a value whose JSON has `null`, which may stand for a number that JSON lacks.

    `encode_hook` is the encoder's.

    Raises:
        UnencodableValue: the value has NaN or an infinity.
    """
    if may_lack_numbers(value, encode_hook):
        problem = find_unencodable(value, encode_hook)
        if problem:
            raise UnencodableValue(problem)


def may_lack_numbers(value: Any, encode_hook: EncodeHook | None = None) -> bool:
    """Return False if a value certainly has neither NaN nor an infinity. It takes little time.

    `encode_hook` returns an approximation of what an unknown object is encoded as, None for what
    has no number, or raises `TypeError` if it doesn't know. Without one no object has a number.
    """
    hook = encode_hook or _nothing
    try:
        try:
            packed = msgspec.msgpack.encode(value, enc_hook=hook)
        except OverflowError:  # an integer of more than 64 bits, which JSON has
            return not _are_finite(msgspec.to_builtins(value, enc_hook=hook))
    except Exception:  # noqa: BLE001 - of the hook, which may run the author's code
        return True
    return _NOT_FINITE.search(packed) is not None


def _nothing(part: Any) -> None:
    return None


def _are_finite(value: Any) -> bool:
    """Return True if all numbers in a value of builtin types are finite."""
    waiting = [value]
    for part in waiting:  # which grows
        kind = type(part)
        if kind is dict:
            waiting += part.values()
        elif kind in _ARRAYS:
            waiting += part
        elif kind is float and not isfinite(part):
            return False
    return True


def unencodable(value: Any, encode_hook: EncodeHook | None = None) -> UnencodableValue:
    """Return the error for a value whose encoding as UTF-8 has failed."""
    return UnencodableValue(find_unencodable(value, encode_hook) or "the value is not valid text")


def find_unencodable(value: Any, encode_hook: EncodeHook | None = None) -> str:
    """Return which part of a value JSON cannot hold, and what to do; "" if it can hold all."""

    def hook(part: Any) -> Any:
        if type(part) is Raw or encode_hook is None:
            return None  # it is JSON already
        return encode_hook(part)

    for path, part in _leaves(msgspec.to_builtins(value, enc_hook=hook)):
        if isinstance(part, str):
            half = _find_half(part)
            if half is not None:
                return _half_text(path or "the value", part[half], half)
        elif not isfinite(part):
            name = _NAMES[str(float(part))]
            return f"{path or 'the value'} is {name}, which JSON cannot hold: use None, or text"
    return ""


def _leaves(value: Any) -> Iterator[tuple[str, str | float]]:
    """Yield the texts and fractional numbers of a value, names of members too, with the paths."""
    waiting: list[tuple[str, Any]] = [("", value)]
    while waiting:
        path, part = waiting.pop()
        if isinstance(part, str | float):
            yield path, part
        elif isinstance(part, dict):
            for key in part:
                if isinstance(key, str):
                    yield f"the name {key!r}{f' in {path}' if path else ''}", key
            waiting += reversed([(_member(path, key), item) for key, item in part.items()])
        elif isinstance(part, list | tuple | set | frozenset):
            waiting += reversed([(f"{path}[{index}]", item) for index, item in enumerate(part)])


def _member(path: str, key: Any) -> str:
    if not (isinstance(key, str) and key.isidentifier()):
        return f"{path}[{key!r}]"
    return f"{path}.{key}" if path else key


def _find_half(text: str) -> int | None:
    try:
        text.encode()
    except UnicodeEncodeError as exc:
        return exc.start
    return None


def _half_text(path: str, half: str, index: int) -> str:
    text = f"{path} has half of a surrogate pair, {half!r} at character {index}"
    if "\udc80" <= half <= "\udcff":
        cure = "os.fsencode(name).decode('utf-8', 'replace')"
        return f"{text}, as a file name that is not UTF-8: {cure}"
    return f"{text}, which is no character"


def whole_text(text: str) -> str:
    """Return `text` with U+FFFD for each half of a surrogate pair. A whole pair is joined."""
    if text.isascii():
        return text
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
