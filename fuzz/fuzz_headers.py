# Invariant: every text survives a header, and a value has one meaning or none. A server accepts
# what a client sends. What a server accepts has the same values in its headers as in its body, for
# any writer. Every schema is either a map of properties that are really reached, or invalid.
"""Mirrored headers by `mcp_core.http`. Only `ValueError` may be raised, and not by a server.

The oracle reads headers with the base64 and the JSON of the standard library. It is more lenient
than the core needs to be about the notation of numbers.
"""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Iterable, Sequence
from fractions import Fraction
from typing import Any, Final, TypeAlias

from hypothesis import strategies as st
from hypothesis.strategies import DrawFn, SearchStrategy

from fuzz.targets import Target
from mcp_core import DIALECTS, Role
from mcp_core.http.wire._mcp_headers import (
    RequestHeaderValidator,
    decode_value,
    encode_value,
    request_headers,
)
from mcp_core.protocol.schema._param_headers import param_headers
from mcp_trio.oracle.strategies._mutations import damage
from mcp_trio.oracle.strategies._values import encoded, json_objects, json_values, texts, weighted

# the tool's schema; its name; arguments; edits of the headers: operation, index, value
Case: TypeAlias = tuple[Any, str, Any, list[tuple[str, int, bytes]]]

VERSION: Final = "2026-07-28"
ROW: Final = DIALECTS[VERSION].receives[Role.SERVER]["tools/call"]
SAFE: Final = 2**53 - 1
# Each result of the server contains one of these.
_OUTCOMES: Final = (
    "taken",
    "missing",
    "more than once",
    "no value",
    "malformed",
    "the body has",
    "2^53-1",
)
_TOKEN: Final = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_SUBSCHEMA_MAPS: Final = {
    "properties",
    "patternProperties",
    "$defs",
    "definitions",
    "dependentSchemas",
}


def check(case: Case) -> Iterable[str]:
    schema, name, arguments, edits = case
    yield from _check_text(name)
    for _, _, value in edits:
        yield from _check_value(value)
    try:
        mirrored = param_headers(schema)
    except ValueError:
        assert not _is_valid(schema), "a valid schema is rejected"
        yield "an invalid schema"
        mirrored = {("a",): "A", ("b",): "B", ("c", "a"): "C"}
    else:
        assert _is_valid(schema), "an invalid schema is accepted"
        assert mirrored == {path: node["x-mcp-header"] for path, node in _annotated(schema, ())}
        yield f"a schema with {min(len(mirrored), 3)} headers"
    params = {"name": name, "arguments": arguments}
    try:
        headers = request_headers(ROW, params, VERSION, mirrored)
    except ValueError:
        assert any(_is_unsafe_integer(_value_at(arguments, path)) for path in mirrored), (
            "a client cannot encode its arguments"
        )
        yield "an unsafe integer"
        headers = request_headers(ROW, params, VERSION)
    else:
        assert _find_error(headers, params, mirrored) is None, (
            "a server rejects what a client sends"
        )
        assert all(value.isascii() and value.decode().isprintable() for _, value in headers)
        assert _matches_body(headers, name, arguments, mirrored)
    edited = _edited(headers, edits)
    error = _find_error(edited, params, mirrored)
    if error is None:
        assert _matches_body(edited, name, arguments, mirrored), f"{edited} were accepted"
    else:
        assert error.startswith("Header mismatch: ")
        assert len(error) < 1_000
    outcome = next(words for words in _OUTCOMES if words in (error or "taken"))
    yield f"{min(len(headers) - 3, 3)} values, {'edited' if edits else 'unchanged'}: {outcome}"


def _find_error(headers: list[tuple[bytes, bytes]], params: Any, mirrored: Any) -> str | None:
    raw = encoded(params)
    mirror = RequestHeaderValidator(headers, lambda tool: mirrored)
    found = mirror.check_head("tools/call", VERSION, ROW, raw)
    return found if found is not None else mirror.check_params(ROW, ROW.read_params(raw))


def _edited(
    headers: list[tuple[bytes, bytes]], edits: list[tuple[str, int, bytes]]
) -> list[tuple[bytes, bytes]]:
    headers = list(headers)
    for edit, place, value in edits:
        index = place % len(headers) if headers else 0
        match edit:
            case "drop":
                del headers[index : index + 1]
            case "set":
                headers[index : index + 1] = [
                    (header, value) for header, _ in headers[index : index + 1]
                ]
            case "repeat":
                headers += [(header, value) for header, _ in headers[index : index + 1]]
            case "copy":
                headers += headers[index : index + 1]
            case "encode":
                headers[index : index + 1] = [
                    (header, b"=?base64?%b?=" % base64.b64encode(original))
                    for header, original in headers[index : index + 1]
                ]
            case "add":
                headers.append((b"mcp-param-" + (b"a", b"b", b"c", b"region")[place % 4], value))
    return headers


# -- The oracle ------------------------------------------------------------------------------------


def _check_text(text: str) -> Iterable[str]:
    value = encode_value(text)
    assert decode_value(value) == text == _text(value), f"{text!r} travels as {value!r}"
    assert value == value.strip()
    assert all(0x20 <= byte < 0x7F for byte in value)
    yield "plain" if value == text.encode() else "encoded"


def _check_value(value: bytes) -> Iterable[str]:
    try:
        text = decode_value(value)
    except ValueError:
        yield "malformed"
        return
    assert text == _text(value), f"{value!r} says {text!r}"
    yield "a value"


def _text(value: bytes) -> str | None:
    """Return what another reader makes of a header value, or None."""
    value = value.strip(b" \t")
    found = re.fullmatch(rb"=\?base64\?(.*)\?=", value, re.DOTALL)
    try:
        return (
            base64.b64decode(found[1], validate=True).decode()
            if found is not None
            else value.decode("ascii")
        )
    except ValueError:
        return None


def _matches_body(
    headers: list[tuple[bytes, bytes]], name: str, arguments: Any, mirrored: Any
) -> bool:
    """True if every reader of the headers would act on what the body says."""
    values: dict[bytes, list[str | None]] = {}
    for header, value in headers:
        values.setdefault(header, []).append(_text(value))
    head = {b"mcp-protocol-version": VERSION, b"mcp-method": "tools/call", b"mcp-name": name}
    if any(values.get(header) != [expected] for header, expected in head.items()):
        return False
    for path, suffix in mirrored.items():
        found = values.get(b"mcp-param-" + suffix.lower().encode(), [])
        value = _value_at(arguments, path)
        if not found:
            if isinstance(value, str | bool | int) or (
                isinstance(value, float) and value.is_integer()
            ):
                return False
        elif len(found) > 1 or value is None or not _matches_value(found[0], value):
            return False
    return True


def _value_at(arguments: Any, path: tuple[str, ...]) -> Any:
    arguments = json.loads(json.dumps(arguments))
    for key in path:
        arguments = arguments.get(key) if isinstance(arguments, dict) else None
    return arguments


def _matches_value(text: str | None, value: Any) -> bool:
    if isinstance(value, bool):
        return text == json.dumps(value)
    if isinstance(value, str):
        return text == value
    if not isinstance(value, int | float) or _is_unsafe_integer(value):
        return False
    if text is None or not re.fullmatch(r"-?[0-9]+(\.[0-9]+)?", text):
        return False
    return Fraction(text) == value or (
        isinstance(value, float) and not value.is_integer() and float(text) == value
    )


def _is_unsafe_integer(value: Any) -> bool:
    whole = isinstance(value, int) or (isinstance(value, float) and value.is_integer())
    return whole and abs(value) > SAFE


def _is_valid(schema: Any) -> bool:
    names: set[str] = set()
    for path, node in _annotated(schema, ()):
        name, kind = node["x-mcp-header"], node.get("type")
        if not path or not isinstance(name, str) or not _TOKEN.fullmatch(name) or len(name) > 128:
            return False
        if kind not in ("string", "integer", "boolean") or name.lower() in names:
            return False
        names.add(name.lower())
    return True


def _annotated(node: Any, path: Any) -> Iterable[tuple[Any, dict[str, Any]]]:
    if isinstance(node, list):
        for item in node:
            yield from _annotated(item, None)
    if not isinstance(node, dict):
        return
    if "x-mcp-header" in node:
        yield path, node
    for key, value in node.items():
        if key in _SUBSCHEMA_MAPS and isinstance(value, dict):
            for name, child in value.items():
                if isinstance(child, dict):
                    reached = key == "properties" and path is not None
                    yield from _annotated(child, (*path, name) if reached else None)
        elif key not in ("const", "enum", "default", "examples"):
            yield from _annotated(value, None)


# -- Cases -----------------------------------------------------------------------------------------

_BASE64_LIKE: Final = (
    "=?base64?=",
    "=?base64??=",
    "=?base64?QQ==?=",
    "=?base64?a b?=",
    "=?base64?QQ==",
    "=?BASE64?QQ==?=",
)
_KEYS: Final = st.sampled_from(("a", "b", "c", "x-mcp-header", ""))
_NAMES: Final = st.sampled_from(
    (
        "A",
        "B",
        "C",
        "Region",
        "a",
        "b",
        "Method",
        "x!",
        "é",
        "a b",
        "",
        "a\n",
        "N" * 129,
        None,
        5,
        ["A"],
    )
)
_TYPES: Final = st.sampled_from(
    (
        "string",
        "integer",
        "boolean",
        "string",
        "integer",
        "boolean",
        "number",
        "object",
        None,
        ["string"],
    )
)


@st.composite
def _property(draw: DrawFn) -> Any:
    found: dict[str, Any] = {"type": draw(_TYPES)}
    if draw(st.integers(0, 2)):
        found["x-mcp-header"] = draw(_NAMES)
    return found


def _deeper(inner: SearchStrategy[Any]) -> SearchStrategy[Any]:
    properties = st.dictionaries(_KEYS, inner, max_size=3)
    place = st.sampled_from(
        ("properties", "properties", "properties", "$defs", "items", "anyOf", "default", "x")
    )
    return st.one_of(
        properties.map(lambda found: {"type": "object", "properties": found}),
        st.tuples(place, properties | st.lists(inner, max_size=2) | inner).map(
            lambda pair: {pair[0]: pair[1]}
        ),
    )


_VALID_SCHEMAS: Final = st.fixed_dictionaries(
    {},
    optional={
        "a": st.just({"type": "string", "x-mcp-header": "A"}),
        "b": st.just({"type": "integer", "x-mcp-header": "B"}),
        "c": st.just({"properties": {"a": {"type": "boolean", "x-mcp-header": "C"}}}),
        "d": st.just({"type": "number"}),
    },
).map(lambda found: {"type": "object", "properties": found})
_SCHEMAS: Final = weighted(
    (2, _VALID_SCHEMAS), (1, st.recursive(_property(), _deeper, max_leaves=6)), (1, json_objects())
)
# Texts at the border of needing an encoding, or of looking like one.
_TEXTS: Final = texts() | st.sampled_from(
    (
        *("query", " a", "a ", "a\t", "a\tb", " ", "\x7f", "\xa0a", "a b", "é", "a\r\nx: 1"),
        *_BASE64_LIKE,
    )
)
_VALUES: Final = st.one_of(
    st.none(),
    st.booleans(),
    _TEXTS,
    st.sampled_from(
        (
            0,
            42,
            -7,
            SAFE,
            -SAFE,
            SAFE + 1,
            SAFE + 2,
            42.0,
            -0.0,
            1.5,
            0.1,
            1e15,
            1e16,
            [],
            ["x"],
            "=?base64?QQ==?=",
        )
    ),
)
_ARGUMENTS: Final = st.one_of(
    st.fixed_dictionaries(
        {},
        optional={
            "a": _VALUES,
            "b": _VALUES,
            "c": st.fixed_dictionaries({}, optional={"a": _VALUES}) | _VALUES,
        },
    ),
    json_values(3),
)
_HEADER_VALUES: Final = st.sampled_from(
    (
        *(
            b"",
            b" ",
            b"A",
            b"42",
            b"42.0",
            b"042",
            b"+42",
            b"4e1",
            b"-7",
            b"true",
            b"false",
            b"True",
            b"1",
            b"0",
            b"-0",
        ),
        *(
            b"9007199254740991",
            b"9007199254740993",
            b"1.5",
            b"0.1",
            b"null",
            b"\xe9",
            b"\xc3\xa9",
            b"a\nb",
            b"a\tb",
        ),
        *(
            b"=?base64?=",
            b"=?base64??=",
            b"=?base64?QQ==?=",
            b"=?base64?QQ?=",
            b"=?base64?QR==?=",
            b"=?BASE64?QQ==?=",
        ),
        *(
            b"=?base64?/w==?=",
            b"=?base64?PT9iYXNlNjQ/UVE9PT89?=",
            b"=?base64?QQ==",
            b"2026-07-28",
            b"tools/call",
        ),
    )
)


@st.composite
def _value(draw: DrawFn) -> bytes:
    value = draw(_HEADER_VALUES)
    return value if draw(st.booleans()) else damage(draw, value)


_EDITS: Final = st.lists(
    st.tuples(
        st.sampled_from(("drop", "set", "set", "repeat", "copy", "encode", "add")),
        st.integers(0, 5),
        _value(),
    ),
    max_size=2,
)


def cases(seeds: Sequence[Case]) -> SearchStrategy[Case]:
    made = st.tuples(_SCHEMAS, _TEXTS, _ARGUMENTS, _EDITS)
    if not seeds:
        return made

    @st.composite
    def recorded(draw: DrawFn) -> Case:
        schema, name, arguments, edits = draw(st.sampled_from(seeds))
        match draw(st.integers(0, 2)):
            case 0:
                return draw(_SCHEMAS), name, arguments, edits
            case 1:
                return schema, name, draw(_ARGUMENTS), edits
            case _:
                return schema, name, arguments, draw(_EDITS)

    return weighted((3, made), (1, recorded()))


TARGET: Final = Target("headers", cases, check)
