"""Replace values inside the text of a JSON message, and leave every other character as it is.

1. A trace has messages exactly as they were sent: the order of members, white space and duplicates
   stay. So a scanner reads the text; it isn't decoded and encoded again.
2. The scanner also reads damaged JSON, which can have secrets too. A string before a colon is a
   name, brackets give the depth, and everything else is a value.
3. A replaced value keeps its type: text becomes a text, a number 0, a boolean false.
"""

from __future__ import annotations

import json
import re
from itertools import takewhile
from typing import TYPE_CHECKING, Final, Literal, NamedTuple, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

__all__ = [
    "Replacement",
    "Value",
    "decode_string",
    "encode_string",
    "redacted_text",
    "replace_values",
    "values_of",
]

# `json.dumps` makes an encoder for each text, and msgspec's encoder refuses lone surrogates.
_encode: Final[Callable[[str], str]] = json.JSONEncoder(ensure_ascii=False).encode
_SURROGATE: Final = re.compile("[\ud800-\udfff]")

# A string, perhaps one without an end, and whether a colon follows; a bracket or comma; or another
# value. Each alternative takes linear time.
_TOKEN: Final = re.compile(
    r'(?P<string>"[^"\\]*(?:\\.[^"\\]*+)*+"?)(?P<colon>\s*:)?|(?P<mark>[{}\[\],])|[^\s"{}\[\],:]+',
    re.DOTALL,
)
# Names and indices of a path that are kept: a message of brackets only is an attack.
_MAX_DEPTH: Final = 200
_MAX_POINTERS: Final = 100  # of one message


class Value(NamedTuple):
    """A value in a message. Of an object or array it is the opening bracket.

    Attributes:
        path: the names and indices that lead to it.
        start: where it begins in the text.
        end: where it ends; for an object or array, behind its first bracket.
        is_container: True if it is an object or array.
    """

    path: tuple[str | int, ...]
    start: int
    end: int
    is_container: bool


# What to do with a value: None keeps it, a text replaces it as a string, True redacts it with all
# that is in it.
Replacement: TypeAlias = str | Literal[True] | None


def redacted_text(length: int) -> str:
    """Return the text that replaces a secret with so many characters."""
    return f"‹redacted {length}›"


def values_of(text: str) -> Iterator[Value]:
    """Yield the values of a JSON text in their order, each container before what is in it."""
    path: list[str | int] = []
    too_deep = 0  # open brackets that `path` doesn't have
    for match in _TOKEN.finditer(text):
        mark = match["mark"]
        if match["colon"] is not None:
            if too_deep:
                continue
            name = decode_string(match["string"])
            if path:
                path[-1] = name
            else:
                path.append(name)  # damaged: a member outside an object
        elif mark == ",":
            if path and not too_deep and isinstance(path[-1], int):
                path[-1] += 1
        elif mark in ("}", "]"):
            if too_deep:
                too_deep -= 1
            elif path:
                path.pop()
        else:
            yield Value(tuple(path), match.start(), match.end(), mark is not None)
            if mark is not None and len(path) >= _MAX_DEPTH:
                too_deep += 1
            elif mark is not None:
                path.append(0 if mark == "[" else "")


def replace_values(
    text: str,
    choose: Callable[[Value, str], Replacement],
    is_secret: Callable[[str], bool] = lambda name: False,
) -> tuple[str, tuple[str, ...]]:
    """Return `text` with some values replaced, and the JSON pointers of those that were redacted.

    Args:
        text: a JSON text, perhaps a damaged one.
        choose: called with each value and its text. It returns None to keep the value, a text to
            put in its place as a string, or True to redact it with all that is in it.
        is_secret: says which names no pointer may have. It ends before such a name.
    """
    pieces: list[str] = []
    pointers: dict[str, None] = {}
    done = 0
    hidden: tuple[str | int, ...] | None = None  # the path of the container that is redacted
    for value in values_of(text):
        path = value.path
        if hidden is not None and path[: len(hidden)] != hidden:
            hidden = None
        if hidden is None:
            found = choose(value, text[value.start : value.end])
            if found is None:
                continue
            if found is True:
                if len(pointers) < _MAX_POINTERS:
                    shown = takewhile(lambda each: not is_secret(str(each)), path)
                    pointers[_pointer(tuple(shown))] = None
                hidden = path if value.is_container else None
        elif value.is_container:
            continue
        else:
            found = True
        if value.is_container:
            continue
        old = text[value.start : value.end]
        new = _redacted(old) if found is True else encode_string(found)
        pieces += (text[done : value.start], new)
        done = value.end
    if not pieces:
        return text, tuple(pointers)
    pieces.append(text[done:])
    return "".join(pieces), tuple(pointers)


def decode_string(token: str) -> str:
    """Return the text of a JSON string, or what can be read of one that is damaged."""
    if "\\" in token:
        try:
            decoded: str = json.loads(token)
        except ValueError:
            pass
        else:
            return decoded
    return token.removeprefix('"').removesuffix('"')


def encode_string(text: str) -> str:
    """Return `text` as a JSON string. Halves of surrogate pairs are escaped, as UTF-8 has none."""
    token = _encode(text)
    if token.isascii():
        return token
    return _SURROGATE.sub(lambda match: f"\\u{ord(match[0]):04x}", token)


def _redacted(token: str) -> str:
    if token.startswith('"'):
        return encode_string(redacted_text(len(decode_string(token))))
    if token in ("true", "false"):
        return "false"
    return "null" if token == "null" else "0"  # noqa: S105 - JSON, no password


def _pointer(path: tuple[str | int, ...]) -> str:
    pointer = "".join(f"/{str(each).replace('~', '~0').replace('/', '~1')}" for each in path)
    return pointer.encode(errors="replace").decode()  # a name may have half of a surrogate pair
