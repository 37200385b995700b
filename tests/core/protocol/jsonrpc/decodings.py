"""All that is read of each message and of each line, in `decodings.txt`.

    python -m tests.core.protocol.jsonrpc.decodings

writes the file again.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from msgspec import UNSET, Raw

from mcp_core import Limits
from mcp_core.protocol.jsonrpc._body import estimate_memory, parse_body
from mcp_core.protocol.jsonrpc._codec import (
    BadMessage,
    Envelope,
    InvalidPayload,
    check_object,
    decode,
    has_duplicates,
    is_batch,
    split_batch,
    strip_white_space,
)
from mcp_core.protocol.jsonrpc._excerpt import Excerpt, show_bytes
from mcp_core.protocol.jsonrpc._framing import LineBuffer
from mcp_core.protocol.jsonrpc._mending import mend
from mcp_core.protocol.jsonrpc._unencodable import (
    encode_exactly,
    find_unencodable,
    may_lack_numbers,
    whole_text,
)
from tests.kept import read_kept, write_kept

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

__all__ = ["decodings", "decodings_of", "kept_decodings"]

_FILE: Final = Path(__file__).with_name("decodings.txt")
# Texts of msgspec, which another release may change.
_WORDS: Final = re.compile(
    r"(?:Expected `[^`]*`, got `[^`]*`|Object missing required field `[^`]*`"
    r"|Invalid enum value '[^']*'|JSON is malformed: [^(]*)(?: - at `[^`]*`| ?\(byte \d+\))?"
)
_SMALL: Final = Limits(message=120, batch=2, method=14, id=6, decoded=5000)

_BASES: Final[dict[str, bytes]] = {
    "request": b'{"jsonrpc":"2.0","id":1,"method":"ping"}',
    "request with params": b'{"jsonrpc":"2.0","id":"a","method":"tools/call","params":{"x":"y"}}',
    "notification": b'{"jsonrpc":"2.0","method":"m","params":{}}',
    "result": b'{"jsonrpc":"2.0","id":1,"result":{"x":"y"}}',
    "error": b'{"jsonrpc":"2.0","id":1,"error":{"code":-1,"message":"m"}}',
}
# What is done to each of them.
_CHANGES: Final[dict[str, tuple[bytes, bytes]]] = {
    "as it is": (b"", b""),
    "byte order mark": (b"{", b"\xef\xbb\xbf{"),
    "white space": (b"{", b" \t{ \n"),
    "text after it": (b"}", b"} x}"),
    "no version": (b'"jsonrpc":"2.0",', b""),
    "version 1.0": (b"2.0", b"1.0"),
    "version null": (b'"2.0"', b"null"),
    "more members": (b"{", b'{"odd":1,"x":"\\"",'),
    "id null": (b'"id":1', b'"id":null'),
    "no id": (b'"id":1,', b""),
    "id 1.0": (b'"id":1', b'"id":1.0'),
    "id -1.00": (b'"id":1', b'"id":-1.00'),
    "id 1.5": (b'"id":1', b'"id":1.5'),
    "id 1e0": (b'"id":1', b'"id":1e0'),
    "id 01": (b'"id":1', b'"id":01'),
    "id true": (b'"id":1', b'"id":true'),
    "id of 6 characters": (b'"id":1', b'"id":"123456"'),
    "id of 7 characters": (b'"id":1', b'"id":"1234567"'),
    "id of 7 bytes": (b'"id":1', b'"id":"12345\xc3\xa4"'),
    "id with an escape": (b'"id":1', b'"id":"\\u0041"'),
    "id with a half": (b'"id":1', b'"id":"\\ud800"'),
    "id 2**53-1": (b'"id":1', b'"id":9007199254740991'),
    "id 2**53": (b'"id":1', b'"id":9007199254740992'),
    "id -2**53": (b'"id":1', b'"id":-9007199254740992'),
    "id twice": (b'"id":1', b'"id":1,"id":2'),
    "id twice with an escape": (b'"id":1', b'"id":1,"\\u0069d":2'),
    "method null": (b'"ping"', b"null"),
    "method and null": (b'"id":1', b'"method":null,"id":1'),
    "method a number": (b'"ping"', b"5"),
    "method of 14 characters": (b'"ping"', b'"tools/callxxxx"'),
    "method of 15 characters": (b'"ping"', b'"tools/callxxxxx"'),
    "method of 15 bytes": (b'"ping"', b'"tools/callxxx\xc3\xa4"'),
    "method with an escape": (b'"ping"', b'"\\u0070ing"'),
    "method with a half": (b'"ping"', b'"\\udfff"'),
    "params null": (b'"ping"', b'"ping","params":null'),
    "params twice": (b'"params":{', b'"params":{},"params":{'),
    "params a list": (b'{"x":"y"}', b'["x"]'),
    "half of a pair": (b'"y"', b'"a\\ud83d b"'),
    "second half": (b'"y"', b'"a\\uDE00b\\\\ud83d"'),
    "a whole pair": (b'"y"', b'"\\ud83d\\ude00"'),
    "a pair the other way": (b'"y"', b'"\\ude00\\ud83d\\ud83d\\ude00\\ude00"'),
    "half in a name": (b'"x":', b'"\\ud800":'),
    "half in a URI": (b'"x":"y"', b'"uri":"\\ud800"'),
    "half in arguments": (b'"x":"y"', b'"arguments":{"uri":["\\ud800"]}'),
    "half in a list of tasks": (b'"x":"y"', b'"taskIds":["\\ud800"]'),
    "half beside a mark": (b'"y"', b'"\xef\xb7\x90 \\ufdd1 \\ud800"'),
    "member twice inside": (b'"x":"y"', b'"x":"y","x":"z"'),
    "quotation marks inside": (b'"x":"y"', b'"\\"":"\\\\\\"","\\u0022":"z"'),
    "result null": (b'{"x":"y"}', b"null"),
    "result and null": (b'"result"', b'"error":null,"result"'),
    "error and null": (b'"error"', b'"result":null,"error"'),
    "both": (b'"id":1', b'"id":1,"result":{},"error":{}'),
    "request and result": (b'"id":1', b'"id":1,"result":{}'),
    "not UTF-8": (b'"y"', b'"\xff"'),
    "cut": (b'"}', b'"'),
    "newline": (b'"y"', b'"\n"'),
    "longer than 120": (b"}", b" " * 90 + b"}"),
    "many values": (b'"y"', b"[" + b"0," * 30 + b"0]"),
    "nested": (b'"y"', b"[" * 35 + b"]" * 35),
}
_OTHERS: Final[list[bytes]] = [
    *(b"", b" ", b"null", b"5", b'"x"', b"{", b"{}", b"[", b"[]", b" [ ]", b"[1]", b"[{}]", b"[}"),
    *(
        b"\xef\xbb\xbf",
        b"\xef\xbb\xbf[]",
        b"\xff",
        b"[\xff]",
        b'{"id":1}',
        b'{"id":"x","method":1}',
    ),
    *(
        b'{"method":1}',
        b'{"method":"m"}',
        b'{"result":{}}',
        b'{"error":{},"id":[]}',
        b'{"a":1,"a":2}',
    ),
    b'{"params":{"a":1,"a":2}}',
    b'{"params":{"a":1},"b":{"a":1,"a":1}}',
    b'[{"jsonrpc":"2.0","id":1,"method":"ping"}]',
    b'[{"jsonrpc":"2.0","id":1,"method":"ping"},5]',
    b"[1,2,3]",
    b'[{"jsonrpc":"2.0","method":"m"},{"jsonrpc":"2.0","id":"x","result":{}}]',
    b'{"\\"":1,"b\\\\":2,"\\u0022":3}',
    b'{"a\\"b":1,"a\\u0022b":2}',
    b'{"a":"\\\\","b":"\\\\\\""}',
    b'{"a":"\xc3\xa4","b":"\xe2\x82\xac","c":"\xf0\x9f\x98\x80"}',
    b'["\\u00e4"]',
    b'["\\ud83d\\ude00"]',
    b'["\\uD83D"]',
]
# Beginnings and ends of messages, which a limit has cut.
_EXCERPTS: Final[list[tuple[bytes, bytes]]] = [
    (b'{"jsonrpc":"2.0","id":1,"method":"m","params":{', b""),
    (b'{"jsonrpc":"2.0","id":"a","result":{"id":2', b"2}}"),
    (b'{"id":7,"error":{', b""),
    (b'{"params":{"id":5', b'},"id":6,"method":"m","jsonrpc":"2.0"}'),
    (b'{"params":{"id":5', b'},"method":"m","id":"x"}\n'),
    (b'{"result":{', b'},"id":6}'),
    (b'{"result":{', b'{"id":6}}'),
    (b'{"result":{', b'},"id":6} x'),
    (b'{"result":{', b'},"x":1,"id":6,"x":2}'),
    (b'{"params":{', b'},"method":"m","x":1}'),
    (b'{"id":1,"params":{', b'},"id":2}'),
    (b'{"id":1234567,"method":"m"', b""),
    (b'{"id":"1234567","method":"m"', b""),
    (b'{"id":"123456","method":"m"', b""),
    (b'{"id":"a\\u0041","method":"m"', b""),
    (b'{"id":01,"method":"m"', b""),
    (b'{"id":-0,"method":"m"', b""),
    (b'{"id":1.5,"method":"m"', b""),
    (b'{"id":null,"method":"m"', b'"id":2}'),
    (b'{"id":"\xff","method":"m"', b""),
    (b'{ "id" : 1 , "x" : true , "method" : "m" }', b""),
    (b'{"method":"m","id":1}{"id":2,"result":{', b""),
    (b'{"a\\"b":"c\\"d","id":1,"result":', b""),
    (b'[{"id":1,"method":"m"', b""),
    (b' [ {"id":1,"method":"m"', b""),
    (b'x {"id":1,"method":"m"', b""),
    (b'  {"id":1,"method":"m"', b""),
    *((b"{", b""), (b"{}", b""), (b"", b""), (b"hello", b'"id":1}'), (b'{"x', b',"id":1}')),
]
_PIECES: Final[list[list[bytes]]] = [
    [b"a\nb\r\n\nc", b"d\n", b""],
    [b"12345678\n", b"123456789\n", b"12345678\r\n", b"123456789\r\n", b"x\n"],
    [b"1234", b"5678", b"\n", b"1234", b"56789", b"0\nrest\n"],
    [b"12345678\r", b"\n12345678\r", b"x\ny\n"],
    [b"1234567890", b"1234567890", b"abc\r\n", b"next\n"],
    [b"12345678901\nx\n", b"\r\n", b"\r", b"\r\n"],
    [b"a" * 30 + b"\n" + b"b" * 5 + b"\n", b"c" * 20, b"d", b"\n", b"e\n"],
    [b"a", b"b", b"c\n\n", b"d"],
]
_VALUES: Final[list[Any]] = [
    *(None, True, 1, 1.5, "x", [], {}, float("nan"), float("inf"), float("-inf"), [1.5, None]),
    *([float("nan"), float("inf")], {"a": {"b c": [1, float("nan")]}}, (float("inf"),), {None: 1}),
    *(
        "\ud800",
        "\udc7f",
        "a\udc80",
        "\udd00",
        ["ok", "x\udfff"],
        {"\ud800": 1},
        {"a": {"\udcff": float("nan")}},
    ),
    *({"a": "\ud83d\ude00"}, {1: float("nan")}, {"a-b": "\ud800"}, [[[["\ud800"]]]], 2**70),
    *([2**70, float("nan")], [2**70, {"a": [float("inf")]}], {"a": None, "b": 2.5}, Raw(b"null")),
    *([Raw(b'{"a":null}'), float("nan")], {float("nan")}, frozenset({1.5}), {"x": {"y": "é"}}),
]


def _shown(value: Any) -> str:
    if isinstance(value, BadMessage):
        more = [f"id {value.id!r}", value.apparent_kind]
        if value.excerpt is not None:
            more.append(f"excerpt of {value.excerpt.size} {value.excerpt.too_long}")
        return f"{value.fault.name} {value.message} {value.cure} ({', '.join(more)})"
    if isinstance(value, Envelope):
        members = [
            f"{name} {bytes(each)!r}" if isinstance(each, Raw) else f"{name} {each!r}"
            for name in value.__struct_fields__
            if (each := getattr(value, name)) is not UNSET and name != "jsonrpc"
        ]
        return f"{type(value).__name__} {', '.join(members)}"
    if isinstance(value, Excerpt):
        return f"Excerpt {value.beginning!r} {value.end!r} {value.size} {value.is_rest}"
    if isinstance(value, dict):
        return str({name: bytes(each) for name, each in value.items()})
    return value if isinstance(value, str) else repr(value)


def _tried(do: Callable[[], Any]) -> str:
    try:
        return _shown(do())
    except BadMessage as exc:
        return _shown(exc)
    except (InvalidPayload, ValueError, TypeError) as exc:
        return f"{type(exc).__name__}: {exc}"


def _of_message(data: bytes) -> Iterator[str]:
    yield repr(data if len(data) < 150 else data[:150])
    found = _tried(lambda: decode(data, 14, 6))
    yield f"  decode: {found}"
    duplicates = (has_duplicates(data), has_duplicates(data, "params"))
    facts = [
        *(["batch"] * is_batch(data)),
        *(["duplicates"] * duplicates[0]),
        *(["duplicates in params"] * duplicates[1]),
    ]
    yield f"  {estimate_memory(data)} {', '.join(facts)}".rstrip()
    mended = mend(data)
    if mended is not None:
        yield f"  mended: {mended[0]!r} {mended[1]}"
    body = parse_body(data, _SMALL)
    for each in body.messages:
        if found != (shown := _shown(each)):
            yield f"  in a body: {shown}"
    marks = [each for each in ("is_array", "is_batch", "is_message") if getattr(body, each)]
    yield f"  {body.size} {body.request_ids} {body.method!r} {' '.join(marks)}".rstrip()
    if body.is_array:
        yield from (f"  as a message: {_shown(each)}" for each in body.as_message(data).messages)
    elif body.as_message(data) is not body:
        yield "  not the same as a message"


def _of_others() -> Iterator[str]:
    for data in _OTHERS:
        yield from _of_message(data)
        yield f"  split: {_tried(lambda data=data: split_batch(data))}"  # type: ignore[misc]
        yield f"  object: {_tried(lambda data=data: check_object(data))}"  # type: ignore[misc]
        stripped = _tried(lambda data=data: strip_white_space(data))  # type: ignore[misc]
        yield f"  stripped: {stripped}"


def _of_excerpts() -> Iterator[str]:
    for beginning, end in _EXCERPTS:
        excerpt = Excerpt(beginning, end)
        found = excerpt.identify(6)
        yield f"{beginning!r} {end!r}: {found} {'object' * excerpt.is_object}".rstrip()
    for size in (79, 80, 81):
        yield show_bytes(b"\xe4" + b"x" * (size - 1))[-20:]


def _of_lines() -> Iterator[str]:
    for pieces in _PIECES:
        buffer = LineBuffer(8)
        yield repr(buffer)
        for piece in pieces:
            buffer.feed(piece)
            lines = list(iter(buffer.next_line, None))
            yield f"  {piece!r}: {', '.join(map(_shown, lines))}"
            yield f"    {len(buffer)} {buffer.has_partial_line} {bytes(buffer.unfinished)!r}"
            yield f"    {buffer!r}"
        for piece in pieces:  # at once
            buffer.feed(piece)
        yield f"  {len(buffer)}: {len(list(iter(buffer.next_line, None)))}"


def _of_values() -> Iterator[str]:
    for value in _VALUES:
        yield re.sub(" at 0x[0-9a-f]+", "", ascii(value))
        yield f"  {_tried(lambda value=value: encode_exactly(value))}"  # type: ignore[misc]
        found = find_unencodable(value)
        yield f"  {may_lack_numbers(value)} {found!a}"
        if isinstance(value, str):
            yield f"  {whole_text(value)!a}"


def decodings() -> list[str]:
    """Return the names of what is read."""
    named = [
        f"{base}: {change}"
        for base, data in _BASES.items()
        for change, (old, _) in _CHANGES.items()
        if old in data
    ]
    return [*named, "others", "excerpts", "lines", "values"]


def decodings_of(name: str) -> str:
    """Return all that is read of a message, or of a table of other texts."""
    base, _, change = name.partition(": ")
    if change:
        data = _BASES[base]
        old, new = _CHANGES[change]
        if old:
            before, _, after = data.rpartition(old) if old == b"}" else data.partition(old)
            data = before + new + after
        lines = _of_message(data)
    else:
        lines = {
            "others": _of_others,
            "excerpts": _of_excerpts,
            "lines": _of_lines,
            "values": _of_values,
        }[base]()
    text = "\n".join(f"  {line}" for line in lines)
    return _WORDS.sub("...", text).encode("ascii", "backslashreplace").decode()


def kept_decodings() -> dict[str, str]:
    """Return the texts in the file, by their names."""
    return read_kept(_FILE)


if __name__ == "__main__":
    write_kept(_FILE, {name: decodings_of(name) for name in decodings()})
