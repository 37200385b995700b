"""Check params, results and content against their revision's shapes.

`_shape_table.py` has the shapes as text, in this language:

- `any`, `null`, `boolean`, `string`, `object`, `base64`, and JSON literals for constants;
- `integer` and `number`, with bounds if they have some: `number(0,1)`, `integer(0,)`;
- `[shape]`: an array; `shape|shape`: one of several; `shape&shape`: all of them;
- `{"a":shape,"b"?:shape,*:shape}`: an object with a required and an optional member, and a shape
  for all other members' values. Without `*`, other members can have any value;
- a name: another shape of the table.

A shape is compiled at its first use. This module doesn't use the core's types, because the judge
doesn't trust the code that it judges.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from functools import cache
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeAlias

from msgspec import Struct

from ._revisions import newest_entry
from ._shape_table import SHAPES

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

__all__ = ["ShapeError", "find_shape_error", "has_shape"]


class ShapeError(NamedTuple):
    """An error, such as `is not a string`, and its place as a JSON pointer."""

    pointer: str
    text: str

    def __str__(self) -> str:
        return f"{self.pointer or 'it'} {self.text}"


_Check: TypeAlias = Callable[[Any], ShapeError | None]

_TOKEN: Final = re.compile(
    r'(?P<literal>"(?:[^"\\]|\\.)*")|(?P<name>[A-Za-z_]\w*)|(?P<bounds>\([^)]*\))'
    r"|(?P<mark>[{}\[\]:,?*|&])"
)
_BASE64: Final = re.compile(r"[A-Za-z0-9+/]*={0,2}")
# The members that tell the alternatives of a union apart.
_TAGS: Final = ("type", "method", "mode", "status")
_DEFAULT: Final = ""  # the key of the alternative in which the member is optional


class _Shape(Struct, frozen=True):
    """A parsed shape. `kind` is a word of the language or array, object, const, union, all or name.

    Attributes:
        parts: the shapes of an array, a union or an intersection.
        members: for an object: by key, whether it is required, and its shape.
        rest: for an object: the shape of all other members.
        value: the constant or the name.
        low, high: the bounds of a number.
    """

    kind: str
    parts: tuple[_Shape, ...] = ()
    members: Mapping[str, tuple[bool, _Shape]] = {}
    rest: _Shape | None = None
    value: Any = None
    low: float | None = None
    high: float | None = None


class _Parser:
    """A parser for the language."""

    def __init__(self, text: str) -> None:
        self._tokens = [match.group() for match in _TOKEN.finditer(text)]
        assert "".join(self._tokens) == text, text
        self._next = 0

    def read(self) -> _Shape:
        shape = self._union()
        assert self._next == len(self._tokens)
        return shape

    def _take(self, token: str) -> bool:
        if self._next < len(self._tokens) and self._tokens[self._next] == token:
            self._next += 1
            return True
        return False

    def _word(self) -> str:
        self._next += 1
        return self._tokens[self._next - 1]

    def _union(self) -> _Shape:
        parts = [self._intersection()]
        while self._take("|"):
            parts.append(self._intersection())
        return parts[0] if len(parts) == 1 else _Shape("union", tuple(parts))

    def _intersection(self) -> _Shape:
        parts = [self._single()]
        while self._take("&"):
            parts.append(self._single())
        return parts[0] if len(parts) == 1 else _Shape("all", tuple(parts))

    def _single(self) -> _Shape:
        word = self._word()
        if word == "[":
            shape = _Shape("array", (self._union(),))
            self._take("]")
            return shape
        if word == "{":
            return self._object()
        if word[0] == '"':
            return _Shape("const", value=word[1:-1])
        if word in ("integer", "number"):
            low = high = None
            if self._next < len(self._tokens) and self._tokens[self._next][0] == "(":
                first, last = self._word()[1:-1].split(",")
                low, high = (float(first) if first else None), (float(last) if last else None)
            return _Shape(word, low=low, high=high)
        return _Shape(word) if word in _SCALARS else _Shape("name", value=word)

    def _object(self) -> _Shape:
        members: dict[str, tuple[bool, _Shape]] = {}
        rest = None
        while not self._take("}"):
            key = self._word()
            required = not self._take("?")
            self._take(":")
            shape = self._union()
            if key == "*":
                rest = shape
            else:
                members[key[1:-1]] = (required, shape)
            self._take(",")
        return _Shape("object", members=members, rest=rest)


def _expect(expected: type | tuple[type, ...], text: str) -> _Check:
    """Return a check that the decoded value is of a type. A bool isn't a number."""
    error = ShapeError("", text)

    def check(value: Any) -> ShapeError | None:
        return None if isinstance(value, expected) else error

    return check


def _check_base64(value: Any) -> ShapeError | None:
    if not isinstance(value, str):
        return ShapeError("", "is not a string")
    if len(value) % 4 or _BASE64.fullmatch(value) is None:
        return ShapeError("", "is not base64")
    return None


_SCALARS: Final[Mapping[str, _Check | None]] = {
    "any": None,
    "null": _expect(type(None), "is not null"),
    "boolean": _expect(bool, "is not true or false"),
    "string": _expect(str, "is not a string"),
    "object": _expect(dict, "is not an object"),
    "base64": _check_base64,
}


def _number_check(shape: _Shape) -> _Check:
    is_integer, low, high = shape.kind == "integer", shape.low, shape.high
    wrong_type = ShapeError("", f"is not {'an integer' if is_integer else 'a number'}")

    def check(value: Any) -> ShapeError | None:
        if isinstance(value, bool) or not isinstance(value, int | float):
            return wrong_type
        if is_integer and isinstance(value, float) and not value.is_integer():
            return wrong_type
        if (low is not None and value < low) or (high is not None and value > high):
            return ShapeError("", f"is {json.dumps(value)}, which is out of range")
        return None

    return check


class _Revision:
    """The compiled shapes of one revision."""

    def __init__(self, revision: str) -> None:
        texts = {name: newest_entry(dict(each), revision, "") for name, each in SHAPES.items()}
        self._texts = {name: text for name, text in texts.items() if text}
        self._parsed: dict[str, _Shape] = {}
        self._checks: dict[str, _Check | None] = {}

    def find(self, name: str) -> _Check | None:
        """Return the check of a named shape, or None if it allows any value."""
        if name not in self._checks:
            self._checks[name] = lambda value: self._run(name, value)  # it may name itself
            self._checks[name] = self._compile(self._parse(name))
        return self._checks[name]

    def has(self, name: str) -> bool:
        return name in self._texts

    def _run(self, name: str, value: Any) -> ShapeError | None:
        check = self._checks[name]
        return None if check is None else check(value)

    def _parse(self, name: str) -> _Shape:
        if name not in self._parsed:
            self._parsed[name] = _Parser(self._texts[name]).read()
        return self._parsed[name]

    def _compile(self, shape: _Shape) -> _Check | None:
        match shape.kind:
            case "name":
                return self.find(shape.value)
            case "integer" | "number":
                return _number_check(shape)
            case "const":
                return self._constants([shape.value])
            case "array":
                return self._array(self._compile(shape.parts[0]))
            case "object" if shape.members or shape.rest:
                return self._object(shape)
            case "all":
                return self._all([self._compile(part) for part in shape.parts])
            case "union":
                return self._union(shape.parts)
            case kind:
                return _SCALARS[kind]

    def _constants(self, values: Iterable[str]) -> _Check:
        values = frozenset(values)
        names = " or ".join(sorted(f'"{value}"' for value in values))
        error = ShapeError("", f"is not {names}")

        def check(value: Any) -> ShapeError | None:
            return None if isinstance(value, str) and value in values else error

        return check

    def _array(self, item: _Check | None) -> _Check:
        error = ShapeError("", "is not an array")

        def check(value: Any) -> ShapeError | None:
            if not isinstance(value, list):
                return error
            if item is not None:
                for index, each in enumerate(value):
                    found = item(each)
                    if found is not None:
                        return ShapeError(f"/{index}{found.pointer}", found.text)
            return None

        return check

    def _object(self, shape: _Shape) -> _Check:
        members = {key: self._compile(each) for key, (_, each) in shape.members.items()}
        required = [key for key, (is_required, _) in shape.members.items() if is_required]
        rest = self._compile(shape.rest) if shape.rest is not None else None
        error = ShapeError("", "is not an object")

        def check(value: Any) -> ShapeError | None:
            if not isinstance(value, dict):
                return error
            for key in required:
                if key not in value:
                    return ShapeError("", f'lacks "{key}"')
            for key, item in value.items():
                inner = members.get(key, rest)
                if inner is not None:
                    found = inner(item)
                    if found is not None:
                        return ShapeError(f"/{_escape(key)}{found.pointer}", found.text)
            return None

        return check

    def _all(self, checks: Iterable[_Check | None]) -> _Check:
        needed = [check for check in checks if check is not None]

        def check(value: Any) -> ShapeError | None:
            for each in needed:
                found = each(value)
                if found is not None:
                    return found
            return None

        return check

    def _union(self, parts: tuple[_Shape, ...]) -> _Check | None:
        if all(part.kind == "const" for part in parts):
            return self._constants(part.value for part in parts)
        checks = [self._compile(part) for part in parts]
        if None in checks:
            return None
        needed = [check for check in checks if check is not None]
        by_tag = self._by_tag(parts, needed)

        def check(value: Any) -> ShapeError | None:
            if isinstance(value, dict):
                for tag, alternatives in by_tag:
                    found = value.get(tag, _DEFAULT)
                    if isinstance(found, str) and found in alternatives:
                        return alternatives[found](value)
            found_errors = []
            for each in needed:
                error = each(value)
                if error is None:
                    return None
                found_errors.append(error)
            # Both alternatives fail at the same place: the first error says enough.
            if len({error.pointer for error in found_errors}) == 1 and len(found_errors) == 2:
                return found_errors[0]
            kind = value.get("type") if isinstance(value, dict) else None
            of = f" of type {json.dumps(kind[:60])}" if isinstance(kind, str) else ""
            return ShapeError("", f"is none of the {len(needed)} possible shapes{of}")

        return check

    def _by_tag(
        self, parts: tuple[_Shape, ...], checks: list[_Check]
    ) -> list[tuple[str, dict[str, _Check]]]:
        """Return the alternatives by the constant in the member that tells them apart."""
        found = []
        resolved = [self._resolve(part) for part in parts]
        for tag in _TAGS:
            constants = [
                each.members[tag][1].value
                for each in resolved
                if tag in each.members and each.members[tag][1].kind == "const"
            ]
            # If two alternatives share a constant, such as two kinds of text fields, no member
            # tells them apart.
            if len(constants) == len(parts) == len(set(constants)):
                alternatives = dict(zip(constants, checks, strict=True))
                optional = [each for each in resolved if not each.members[tag][0]]
                if len(optional) == 1:
                    alternatives[_DEFAULT] = alternatives[optional[0].members[tag][1].value]
                found.append((tag, alternatives))
        return found

    def _resolve(self, shape: _Shape) -> _Shape:
        while shape.kind == "name":
            shape = self._parse(shape.value)
        return shape


def _escape(key: str) -> str:
    return key.replace("~", "~0").replace("/", "~1")


@cache
def _revision(revision: str) -> _Revision:
    return _Revision(revision)


def has_shape(revision: str, name: str) -> bool:
    """Return True if a revision has the shape `name`: a type, `>method` or `<method`."""
    return _revision(revision).has(name)


def find_shape_error(revision: str, name: str, value: Any) -> ShapeError | None:
    """Return the first error in a decoded value, or None if it has the shape `name`.

    Args:
        revision: its date, such as "2025-11-25".
        name: a type of the schema, `>` and a method for its params, or `<` and a method for its
            result.
        value: decoded JSON.

    Raises:
        KeyError: the revision has no such shape; see `has_shape`.
    """
    check = _revision(revision).find(name)
    return None if check is None else check(value)
