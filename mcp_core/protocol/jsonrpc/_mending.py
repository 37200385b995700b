"""Messages with a fault that has one meaning: what they mean, and what was wrong.

A strict reader loses the whole message, which may be the result of a call that cannot be repeated.
Only what every reader would take in the same way is mended. What a peer compares or looks up, such
as an id, is never changed.

1. A byte order mark before the message (RFC 8259, section 8.1: a reader may ignore it).
2. A response's id such as `3.0`, which is the same number as `3`.
3. `null` for `method`, `params`, `result` or `error`, as serializers write members that are absent.
4. Half of a surrogate pair in a text, which becomes U+FFFD as in every lenient decoder. In a name,
   an id, a URI or a token it is refused: two of them could become equal.
"""

from __future__ import annotations

from itertools import zip_longest
from typing import TYPE_CHECKING, Any, Final

from msgspec import Raw

from mcp_core._patterns import compile_on_first_use

from ._codec import InvalidPayload, encode, reader

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["mend"]

_BOM: Final = b"\xef\xbb\xbf"
_INTEGRAL: Final = compile_on_first_use(rb"(-?(?:0|[1-9][0-9]{0,15}))\.0{1,16}")
_NULLABLE: Final = ("method", "params", "result", "error")
# Escapes that are looked at. More of them take a noticeable part of a second, and a peer chooses
# how many there are.
_MOST_ESCAPES: Final = 20_000
# Characters that no text has (Unicode, section 23.7). One that the message doesn't have either
# stands for a half while its place is looked for.
_MARKS: Final = tuple(chr(code) for code in range(0xFDD0, 0xFDF0))
# The first and the second hex digit of the halves of a pair.
_D: Final = frozenset((b"d", b"D"))
_FIRST: Final = frozenset((b"8", b"9", b"a", b"b", b"A", b"B"))
_SECOND: Final = frozenset((b"c", b"d", b"e", b"f", b"C", b"D", b"E", b"F"))
# Members that are compared, looked up or sent back.
_EXACT: Final = frozenset(
    (
        *("jsonrpc", "id", "method", "name", "uri", "uriTemplate", "cursor", "nextCursor"),
        *("requestState", "requestId", "progressToken", "taskId", "lastEventId", "protocolVersion"),
        *("type", "role", "mimeType", "data", "blob", "url", "elicitationId", "action"),
        *("resourceSubscriptions", "taskIds", "required", "enum"),
        "io.modelcontextprotocol/subscriptionId",
    )
)
# Their members are the values of users and authors, in which only names are looked up.
_OF_USERS: Final = frozenset(("arguments", "structuredContent"))

_read_any = reader(object)
_read_members = reader(dict[str, Raw])


def mend(data: bytes) -> tuple[bytes, str] | None:
    """Return a message without the faults above, and what they were.

    Return None if it has none of them, or one that could mean several things. `data` must not have
    a member twice: one of them would be lost.
    """
    found = []
    if data.startswith(_BOM):
        data = data[len(_BOM) :]
        found.append("a byte order mark was left out")
    if rb"\ud" in data or rb"\uD" in data:
        whole = _without_halves(data)
        if whole is None:
            return None
        if whole != data:
            data = whole
            found.append("half of a surrogate pair was read as U+FFFD")
    try:
        members = _read_members(data)
    except InvalidPayload:
        return None
    absent = [name for name in _NULLABLE if name in members and bytes(members[name]) == b"null"]
    # Only of a response, whose id is ours. A peer gets back the id of its own request as it is.
    is_response = "method" not in members or "method" in absent
    id = _INTEGRAL.fullmatch(bytes(members.get("id", b""))) if is_response else None
    if "result" in absent and "error" not in members:
        absent.remove("result")  # the call's result, as the peer sees it
    if id is not None:
        found.append("an id such as 3.0 was read as 3")
        members["id"] = Raw(id[1])
    if absent:
        found.append(f"null was read as an absent member: {', '.join(absent)}")
        for name in absent:
            del members[name]
    if id is not None or absent:
        pairs = (b"%b:%b" % (encode(name), bytes(members[name])) for name in members)
        data = b"{%b}" % b",".join(pairs)
    return (data, "; ".join(found)) if found else None


def _without_halves(data: bytes) -> bytes | None:
    """Return JSON with U+FFFD for each half of a surrogate pair, or None if one is in a name."""
    if data.count(rb"\u") + data.count(rb"\\") > _MOST_ESCAPES:
        return None
    escapes = data.lower()
    free = (
        mark
        for mark in _MARKS
        if mark.encode() not in data and f"\\u{ord(mark):x}".encode() not in escapes
    )
    mark = next(free, None)
    if mark is None:
        return None
    try:
        value = _read_any(_replace_halves(data, mark.encode()))
    except InvalidPayload:
        return None
    if any(mark in text for text in _exact_texts(value)):
        return None
    return _replace_halves(data, b"\\ufffd")


def _replace_halves(data: bytes, replacement: bytes) -> bytes:
    # No piece between two escaped backslashes has one, so each `\u` in it is an escape.
    return rb"\\".join(_replace_in(piece, replacement) for piece in data.split(rb"\\"))


def _replace_in(piece: bytes, replacement: bytes) -> bytes:
    beginning, *parts = piece.split(rb"\u")
    found = [beginning]
    after_first_half = False
    for part, following in zip_longest(parts, parts[1:], fillvalue=b""):
        is_pair = len(part) == 4 and _is_first_half(part) and _is_second_half(following)
        if is_pair or (after_first_half and _is_second_half(part)):
            found.append(rb"\u" + part)
        elif _is_first_half(part) or _is_second_half(part):
            found.append(replacement + part[4:])
        else:
            found.append(rb"\u" + part)
        after_first_half = is_pair
    return b"".join(found)


def _is_first_half(digits: bytes) -> bool:
    return digits[:1] in _D and digits[1:2] in _FIRST


def _is_second_half(digits: bytes) -> bool:
    return digits[:1] in _D and digits[1:2] in _SECOND


def _exact_texts(value: Any) -> Iterator[str]:
    """Yield each text that has to stay as it is: names of members, and values of some of them."""
    waiting: list[tuple[Any, bool, bool]] = [(value, False, False)]
    while waiting:
        found, exact, users = waiting.pop()
        if isinstance(found, str):
            if exact:
                yield found
        elif isinstance(found, dict):
            for name, item in found.items():
                yield name
                waiting.append((item, name in _EXACT and not users, users or name in _OF_USERS))
        elif isinstance(found, list):
            waiting.extend((item, exact, users) for item in found)
