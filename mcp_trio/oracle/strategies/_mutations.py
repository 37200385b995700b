"""Ways to damage valid input: its bytes, its members, or its order.

Rules of this file:

1. A message is damaged in one or two places. A receiver's first check would reject heavier damage,
   so that nothing behind the check is tested.
2. `malformed` gives JSON that is almost a JSON-RPC message. `damaged` works on any bytes.
"""

# Annotations are evaluated here: hypothesis copies them to functions of another module, in which
# their names mean nothing.
import json
from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any, Final, TypeVar

from hypothesis import strategies as st
from hypothesis.strategies import DrawFn, SearchStrategy

from ._values import encoded, json_values

__all__ = ["damage", "damaged", "malformed", "reordered", "split"]

T = TypeVar("T")

# Bytes that are special to JSON, to UTF-8, to framing or to a careless parser.
_TOKENS: Final = (
    *(
        b"{",
        b"}",
        b"[",
        b"]",
        b'"',
        b",",
        b":",
        b"\\",
        b"0",
        b"-",
        b"1e999",
        b"1.0",
        b"NaN",
        b"null",
    ),
    *(b"\n", b"\r", b"\r\n", b"\t", b" ", b"\0", b"\\ud800", b"\\u0000", b"\\u0069d", b"true"),
    *(b"\xff", b"\xc3", b"\xef\xbb\xbf", b"\xed\xa0\x80", b"\xe2\x80\xa8"),
    *(b"9" * 30, b"-" * 3, b"[" * 40, b'{"a":' * 40, b'"a' + b"a" * 300),
    *(b'"id":1,', b'"id":null,', b'"jsonrpc":"2.0",', b'"method":"ping",'),
    *(b'"params":{},', b'"result":{},', b'"error":{},'),
)

# Replacements for members and for their values.
_FIELDS: Final = (
    "jsonrpc",
    "id",
    "method",
    "params",
    "result",
    "error",
    "ID",
    "extra",
    "\u0131d",
    "",
)
_VALUES: Final[tuple[Any, ...]] = (
    *(
        None,
        True,
        False,
        0,
        1,
        "1",
        1.0,
        -1,
        2**53,
        10**30,
        "",
        "2.0",
        2.0,
        [],
        {},
        [1],
        {"a": 1},
        "x" * 257,
    ),
    *(
        "ping",
        "initialize",
        "tools/call",
        "notifications/cancelled",
        "\u0000",
        [[[[[[[[[[]]]]]]]]]],
    ),
)
_ANY_TOKEN, _ANY_FIELD = st.sampled_from(_TOKENS), st.sampled_from(_FIELDS)
_ANY_VALUE = st.sampled_from(_VALUES)


# -- Bytes -----------------------------------------------------------------------------------------


def damage(draw: DrawFn, data: bytes) -> bytes:
    """Return `data` with one to three random edits. For strategies that already have bytes."""
    for _ in range(draw(st.integers(1, 3))):
        edit = draw(_ANY_EDIT)
        data = edit(data, draw(st.integers(0, len(data))), draw)
    return data


@st.composite
def damaged(draw: DrawFn, data: SearchStrategy[bytes]) -> bytes:
    """Bytes of a strategy with one to three random edits.

    Args:
        data: draws the bytes.
    """
    return damage(draw, draw(data))


def _insert(data: bytes, start: int, draw: DrawFn) -> bytes:
    return data[:start] + draw(_ANY_TOKEN) + data[start:]


def _replace(data: bytes, start: int, draw: DrawFn) -> bytes:
    return data[:start] + bytes([draw(st.integers(0, 255))]) + data[start + 1 :]


def _flip(data: bytes, start: int, draw: DrawFn) -> bytes:
    if start == len(data):
        return data
    return data[:start] + bytes([data[start] ^ 1 << draw(st.integers(0, 7))]) + data[start + 1 :]


def _delete(data: bytes, start: int, draw: DrawFn) -> bytes:
    return data[:start] + data[start + draw(st.integers(1, 12)) :]


def _truncate(data: bytes, start: int, draw: DrawFn) -> bytes:
    return data[:start]


def _repeat(data: bytes, start: int, draw: DrawFn) -> bytes:
    stop = start + draw(st.integers(1, 40))
    return data[:stop] + data[start:stop] + data[stop:]


_ANY_EDIT: Final[SearchStrategy[Callable[[bytes, int, DrawFn], bytes]]] = st.sampled_from(
    (_insert, _replace, _flip, _delete, _truncate, _repeat)
)

# -- Members ---------------------------------------------------------------------------------------


@st.composite
def malformed(draw: DrawFn, messages: SearchStrategy[dict[str, Any]]) -> bytes:
    """A message with one or two wrong members, as JSON.

    A member is missing, changed, doubled, added, renamed, escaped or moved.

    Args:
        messages: draws messages, as `requests` does.
    """
    members = [(json.dumps(key), encoded(value)) for key, value in draw(messages).items()]
    for _ in range(draw(st.integers(1, 2))):
        edit = draw(_ANY_MEMBER_EDIT)
        members = edit(members, draw)
    colon, comma = draw(st.sampled_from((("", ""), (" ", " "), ("\t", "\r"))))
    text = f",{comma}".join(f"{key}:{colon}{value.decode()}" for key, value in members)
    return f"{{{text}}}".encode()


Members = list[tuple[str, bytes]]


def _value(draw: DrawFn) -> bytes:
    if draw(st.booleans()):
        return encoded(draw(_ANY_VALUE))
    return encoded(draw(json_values(1)))


def _place(members: Members, draw: DrawFn) -> int:
    return draw(st.integers(0, max(0, len(members) - 1)))


def _drop(members: Members, draw: DrawFn) -> Members:
    place = _place(members, draw)
    return members[:place] + members[place + 1 :]


def _change(members: Members, draw: DrawFn) -> Members:
    place = _place(members, draw)
    return [(key, _value(draw) if i == place else value) for i, (key, value) in enumerate(members)]


def _double(members: Members, draw: DrawFn) -> Members:
    if not members:
        return members
    key, value = members[_place(members, draw)]
    return [*members, (key, draw(st.sampled_from((value, b"1", b"null", b'"x"'))))]


def _add(members: Members, draw: DrawFn) -> Members:
    return [*members, (json.dumps(draw(_ANY_FIELD)), _value(draw))]


def _rename(members: Members, draw: DrawFn) -> Members:
    place = _place(members, draw)
    name = json.dumps(draw(_ANY_FIELD))
    return [(name if i == place else key, value) for i, (key, value) in enumerate(members)]


def _escape(members: Members, draw: DrawFn) -> Members:
    """Write the first character of a key as a `u` escape, which is the same key to JSON."""
    place = _place(members, draw)
    return [
        (
            f'"\\u{ord(key[1]):04x}{key[2:]}'
            if i == place and len(key) > 2 and key[1] != "\\"
            else key,
            value,
        )
        for i, (key, value) in enumerate(members)
    ]


def _reverse(members: Members, draw: DrawFn) -> Members:
    return members[::-1]


_ANY_MEMBER_EDIT: Final[SearchStrategy[Callable[[Members, DrawFn], Members]]] = st.sampled_from(
    (_change, _drop, _double, _add, _rename, _escape, _reverse)
)

# -- Order -----------------------------------------------------------------------------------------


@st.composite
def reordered(draw: DrawFn, scripts: SearchStrategy[Sequence[T]]) -> list[T]:
    """A script whose steps were removed, repeated or moved, or that goes on with another script.

    Args:
        scripts: draws lists of steps, of any type.
    """
    steps = list(draw(scripts))
    for _ in range(draw(st.integers(1, 3))):
        start = draw(st.integers(0, len(steps)))
        stop = start + draw(st.integers(0, 4))
        match draw(st.integers(0, 3)):
            case 0:
                del steps[start:stop]
            case 1:
                steps[stop:stop] = steps[start:stop]
            case 2:
                moved = steps[start:stop]
                del steps[start:stop]
                place = draw(st.integers(0, len(steps)))
                steps[place:place] = moved
            case _:
                steps[start:] = draw(scripts)
    return steps


@st.composite
def split(draw: DrawFn, data: SearchStrategy[bytes]) -> list[bytes]:
    """Bytes in chunks as a transport may deliver them, none of them empty.

    Args:
        data: draws the bytes.
    """
    whole = draw(data)
    cuts = draw(st.lists(st.integers(1, max(1, len(whole))), max_size=6))
    places = [0, *sorted({cut for cut in cuts if cut < len(whole)}), len(whole)]
    return [whole[start:stop] for start, stop in pairwise(places) if start < stop]
