"""Hypothesis strategies for a JSON Schema: valid values, and values that are almost valid.

1. The schema is read while a value is drawn, with a budget of steps for each value. A stranger's
   schema can be recursive, huge or impossible. When the budget is spent, the rest of the value is
   as small as possible, even if it is invalid then.
2. Some keywords are ignored: `not`, `if`, `contains`, `dependentSchemas`, references to other
   documents. Most values are valid all the same, and a fuzzer needs no more.
3. Texts for a pattern are searched once, for at most a tenth of a second. A pattern is ignored if
   none is found.
"""

from __future__ import annotations

import contextlib
import functools
import json
import math
import re
import time
import warnings
from random import Random
from typing import TYPE_CHECKING, Any, Final, TypeGuard

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.strategies import DrawFn, SearchStrategy

from ._values import json_values, texts

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


__all__ = ["from_schema", "is_hard_pattern", "nearly_valid"]

MAX_STEPS: Final = 150  # schemas that are read for one value
MAX_REFERENCES: Final = 4  # levels of nesting
MAX_DEPTH: Final = 12  # of a value
MAX_ITEMS: Final = 4  # of an array, if the schema allows fewer than it
MAX_TEXT: Final = 2_000  # characters of a text with a minimum length
MAX_BRANCHES: Final = 50  # alternatives of anyOf, enum, properties and the like that are considered
PATTERN_TIME: Final = 0.1  # seconds to find texts for a pattern
PATTERN_LENGTH: Final = 500  # characters
_SAMPLES: Final = 12  # texts for a pattern

_TYPES: Final = ("null", "boolean", "integer", "number", "string", "array", "object")
_FORMATS: Final[Mapping[str, tuple[str, ...]]] = {
    "date-time": ("2026-07-28T12:00:00Z", "1985-04-12T23:20:50.52+01:00"),
    "date": ("2026-07-28", "2024-02-29"),
    "time": ("12:00:00Z", "23:59:60Z"),
    "duration": ("P1D", "PT5M"),
    "email": ("a@example.com", "a+b@example.org"),
    "hostname": ("example.com", "localhost"),
    "ipv4": ("127.0.0.1", "192.0.2.1"),
    "ipv6": ("::1", "2001:db8::1"),
    "uri": ("https://example.com/a?b=c", "urn:a:b"),
    "uri-reference": ("a/b", "#c"),
    "uuid": ("00000000-0000-4000-8000-000000000000",),
    "json-pointer": ("", "/a/0"),
    "regex": ("a+", ".*"),
    "byte": ("aGk=",),
}
# The type that a keyword implies in a schema without `type`.
_KEYWORDS: Final[Mapping[str, str]] = {
    "properties": "object",
    "required": "object",
    "additionalProperties": "object",
    "items": "array",
    "prefixItems": "array",
    "pattern": "string",
    "minLength": "string",
    "maxLength": "string",
    "format": "string",
    "minimum": "number",
    "maximum": "number",
}


def from_schema(schema: Any) -> SearchStrategy[Any]:
    """Return a strategy for the values of a JSON Schema.

    Values are small. Optional members are absent more often than not.

    Args:
        schema: the schema, decoded: an object or a boolean. It may be a stranger's: `$ref` is
            followed inside the schema only, to a depth of 4. Nothing is fetched. The time for one
            value is limited: a part that can't be drawn in time may be invalid.

    Source: json-schema.org, draft 2020-12.
    """
    patterns = _find_patterns(schema)
    for pattern in patterns:
        _texts_of(pattern)  # now, and not while a test counts the time of a draw

    @st.composite
    def build(draw: DrawFn) -> Any:
        return _SchemaDraw(draw, schema).draw(schema)

    return build()


def nearly_valid(schema: Any) -> SearchStrategy[Any]:
    """Return a strategy for values that miss a JSON Schema by one detail.

    A required member is missing, a member has another type or is just outside its range, or one
    was added. A few values have nothing to do with the schema.

    Args:
        schema: as for `from_schema`.
    """
    valid = from_schema(schema)

    @st.composite
    def build(draw: DrawFn) -> Any:
        value = draw(valid)
        edit = draw(st.integers(0, 5))
        if not isinstance(value, dict) or edit == 0:
            return draw(json_values(1))
        value = dict(value)
        names = list(value)
        if edit == 1 or not names:
            return {**value, draw(texts()): draw(json_values(1))}
        name = names[draw(st.integers(0, len(names) - 1))]
        if edit == 2:
            del value[name]
            return value
        if edit == 3:
            value[name] = _step_outside(_SchemaDraw(draw, schema).member(name), value[name])
            return value
        value[name] = draw(json_values(1))
        return value

    return build()


class _SchemaDraw:
    """The drawing of one value: its schema, and the rest of its budget."""

    def __init__(self, draw: DrawFn, root: Any) -> None:
        self._draw = draw
        self._root = root
        self._left = MAX_STEPS

    def member(self, name: str) -> Any:
        """Return the schema of a member of the value, True if it has none."""
        schema = self._resolved(self._root, 0)[0]
        found = schema.get("properties") if isinstance(schema, dict) else None
        return found.get(name, True) if isinstance(found, dict) else True

    def draw(self, schema: Any, depth: int = 0, references: int = 0) -> Any:
        """Return a value of a schema, at nesting level `depth` of the whole value."""
        self._left -= 1
        schema, references = self._resolved(schema, references)
        if self._left < 0 or depth > MAX_DEPTH:
            return _smallest(schema)
        if not isinstance(schema, dict) or not schema:
            return self._any(depth)
        if "const" in schema:
            return schema["const"]
        if isinstance(schema.get("enum"), list) and schema["enum"]:
            return self._one_of(schema["enum"])
        for key in ("allOf", "anyOf", "oneOf"):
            branches = schema.get(key)
            if isinstance(branches, list) and branches:
                rest = {name: value for name, value in schema.items() if name != key}
                chosen = branches[:MAX_BRANCHES]
                if key != "allOf":
                    chosen = [self._one_of(chosen)]
                return self.draw(self._merged([rest, *chosen], references), depth, references + 1)
        if "default" in schema and not self._draw(st.integers(0, 7)):
            return schema["default"]
        match self._type_of(schema):
            case "null":
                return None
            case "boolean":
                return self._draw(st.booleans())
            case "integer":
                return self._integer(schema)
            case "number":
                return self._number(schema)
            case "string":
                return self._text(schema)
            case "array":
                return self._array(schema, depth, references)
            case _:
                return self._object(schema, depth, references)

    def _one_of(self, choices: Sequence[Any]) -> Any:
        return choices[self._draw(st.integers(0, min(len(choices), MAX_BRANCHES) - 1))]

    def _any(self, depth: int) -> Any:
        return self._draw(json_values(1 if depth < 3 else 0))

    def _resolved(self, schema: Any, references: int) -> tuple[Any, int]:
        """Return a schema without `$ref`, and how many references were followed for it."""
        while isinstance(schema, dict) and isinstance(schema.get("$ref"), str):
            references += 1
            found = _lookup(self._root, schema["$ref"])
            if references > MAX_REFERENCES or found is None:
                return {key: value for key, value in schema.items() if key != "$ref"}, references
            rest = {key: value for key, value in schema.items() if key != "$ref"}
            if not rest or not isinstance(found, dict):
                schema = found
            else:
                schema = {**found, **rest}
        return schema, references

    def _merged(self, schemas: Sequence[Any], references: int) -> dict[str, Any]:
        """Merge several schemas that a value must all fulfil, where that is simple."""
        merged: dict[str, Any] = {}
        for each in schemas:
            self._left -= 1
            schema, _ = self._resolved(each, references)
            if not isinstance(schema, dict):
                continue
            for key, value in schema.items():
                old = merged.get(key)
                if key == "properties" and isinstance(old, dict) and isinstance(value, dict):
                    merged[key] = {**old, **value}
                elif key == "required" and isinstance(old, list) and isinstance(value, list):
                    merged[key] = [*old, *value]
                elif key in ("minimum", "minLength", "minItems") and _is_number(old):
                    merged[key] = max(old, value) if _is_number(value) else old
                elif key in ("maximum", "maxLength", "maxItems") and _is_number(old):
                    merged[key] = min(old, value) if _is_number(value) else old
                elif key == "enum" and isinstance(old, list) and isinstance(value, list):
                    merged[key] = [item for item in value if item in old] or value
                else:
                    merged[key] = value
        return merged

    def _type_of(self, schema: Mapping[str, Any]) -> str:
        found = schema.get("type")
        if isinstance(found, list):
            known = [each for each in found if each in _TYPES]
            return self._one_of(known) if known else "object"
        if found in _TYPES:
            return str(found)
        for key, type in _KEYWORDS.items():
            if key in schema:
                return type
        return self._one_of(_TYPES)  # type: ignore[no-any-return]

    def _integer(self, schema: Mapping[str, Any]) -> int:
        low, high = _bounds(schema)
        step = schema.get("multipleOf")
        if isinstance(step, int) and step >= 1:
            least = -100 if low is None else math.ceil(low / step)
            most = least + 200 if high is None else math.floor(high / step)
            return step * int(self._draw(st.integers(least, max(least, most))))
        first: int | None = math.ceil(low) if low is not None else None
        last: int | None = math.floor(high) if high is not None else None
        if first is not None and last is not None and first > last:
            return first
        edges = [
            edge for edge in (first, last, 0, 1) if edge is not None and _fits(edge, low, high)
        ]
        is_edge: bool = self._draw(st.booleans())
        if edges and is_edge:
            edge: int = self._one_of(edges)
            return edge
        if first is None and last is None:
            first, last = -1_000, 1_000
        found: int = self._draw(st.integers(first, last))
        return found

    def _number(self, schema: Mapping[str, Any]) -> float:
        if "multipleOf" in schema or self._draw(st.booleans()):
            return self._integer(schema)
        low, high = _bounds(schema)
        if low is not None and high is not None and low > high:
            return float(low)
        found: float = self._draw(
            st.floats(
                None if low is None else float(low),
                None if high is None else float(high),
                allow_nan=False,
                allow_infinity=False,
            )
        )
        return found

    def _text(self, schema: Mapping[str, Any]) -> str:
        pattern = schema.get("pattern")
        if isinstance(pattern, str):
            found = _texts_of(pattern)
            if found:
                return self._one_of(found)  # type: ignore[no-any-return]
        formats = _FORMATS.get(str(schema.get("format")))
        if formats:
            return self._one_of(formats)  # type: ignore[no-any-return]
        low, high = _size(schema, "minLength", MAX_TEXT), _size(schema, "maxLength", MAX_TEXT)
        text = self._draw(texts())
        if high is not None:
            text = text[:high]
        if low is not None and len(text) < low:
            text += "a" * (low - len(text))
        return text

    def _array(self, schema: Mapping[str, Any], depth: int, references: int) -> list[Any]:
        first = schema.get("prefixItems")
        first = first[:MAX_BRANCHES] if isinstance(first, list) else []
        low = _size(schema, "minItems", MAX_BRANCHES) or 0
        high = _size(schema, "maxItems", MAX_BRANCHES)
        high = max(low, MAX_ITEMS) if high is None else min(high, max(low, MAX_ITEMS))
        count = self._draw(st.integers(min(low, high), max(low, high)))
        items = schema.get("items", True)
        found: list[Any] = []
        for index in range(count):
            if self._left < 0 and index >= min(low, MAX_ITEMS):
                break
            each = first[index] if index < len(first) else items
            if each is False:
                break
            value = self.draw(each, depth + 1, references)
            if schema.get("uniqueItems") is True and value in found:
                continue
            found.append(value)
        return found

    def _object(self, schema: Mapping[str, Any], depth: int, references: int) -> dict[str, Any]:
        properties = schema.get("properties")
        properties = properties if isinstance(properties, dict) else {}
        required = schema.get("required")
        required = required if isinstance(required, list) else []
        value: dict[str, Any] = {}
        for name in required:
            if self._left < 0:
                break
            if isinstance(name, str) and name not in value:
                value[name] = self.draw(properties.get(name, True), depth + 1, references)
        others = [name for name in properties if name not in value][:MAX_BRANCHES]
        if others and self._left > 0:
            # One drawn number selects the members, which is cheaper than one draw for each.
            chosen = self._draw(st.integers(0, 2 ** len(others) - 1))
            for index, name in enumerate(others):
                if chosen >> index & 1 and self._left > 0:
                    value[name] = self.draw(properties[name], depth + 1, references)
        more = schema.get("additionalProperties")
        if isinstance(more, dict) and self._left > 0 and self._draw(st.booleans()):
            value.setdefault(self._draw(texts()), self.draw(more, depth + 1, references))
        return value


def _smallest(schema: Any) -> Any:
    """Return the smallest value of a schema's type, without drawing."""
    found = schema.get("type") if isinstance(schema, dict) else None
    if isinstance(found, list) and found:
        found = found[0]
    values = {"boolean": False, "integer": 0, "number": 0, "string": "", "array": [], "object": {}}
    return values.get(found) if isinstance(found, str) else None


def _step_outside(schema: Any, value: Any) -> Any:
    """Return a value just outside the schema's ranges, or of another type than `value`."""
    schema = schema if isinstance(schema, dict) else {}
    if isinstance(value, str):
        high = _size(schema, "maxLength", MAX_TEXT)
        return "" if schema.get("minLength") else "a" * (high + 1) if high is not None else [value]
    if _is_number(value):
        low, high = _bounds(schema)
        return low - 1 if low is not None else high + 1 if high is not None else str(value)
    return None if value is not None else 0


def _lookup(root: Any, reference: str) -> Any:
    """Return the part of the schema that a fragment's JSON pointer names, or None."""
    if reference == "#":
        return root
    if not reference.startswith("#/"):
        return None
    found = root
    for part in reference[2:].split("/")[:MAX_BRANCHES]:
        key = part.replace("~1", "/").replace("~0", "~")
        if isinstance(found, dict):
            found = found.get(key)
        elif isinstance(found, list) and key.isdecimal() and int(key) < len(found):
            found = found[int(key)]
        else:
            return None
    return found


def _is_number(value: Any) -> TypeGuard[float]:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


def _fits(value: float, low: float | None, high: float | None) -> bool:
    return (low is None or value >= low) and (high is None or value <= high)


def _bounds(schema: Mapping[str, Any]) -> tuple[Any, Any]:
    """Return the smallest and the largest number of a schema, each None if it has none."""
    low, high = schema.get("minimum"), schema.get("maximum")
    low, high = low if _is_number(low) else None, high if _is_number(high) else None
    above, below = schema.get("exclusiveMinimum"), schema.get("exclusiveMaximum")
    if _is_number(above):
        low = above + 1 if low is None else max(low, above + 1)
    if _is_number(below):
        high = below - 1 if high is None else min(high, below - 1)
    return low, high


def _size(schema: Mapping[str, Any], key: str, limit: int) -> int | None:
    found = schema.get(key)
    return min(max(int(found), 0), limit) if _is_number(found) else None


def _find_patterns(schema: Any) -> list[str]:
    """Return a schema's patterns, at most some."""
    found: list[str] = []
    stack, left = [schema], MAX_STEPS
    while stack and left > 0 and len(found) < 10:
        left -= 1
        each = stack.pop()
        if isinstance(each, dict):
            if isinstance(each.get("pattern"), str):
                found.append(each["pattern"])
            stack += list(each.values())[:MAX_BRANCHES]
        elif isinstance(each, list):
            stack += each[:MAX_BRANCHES]
    return found


@functools.lru_cache(maxsize=256)
def _texts_of(pattern: str) -> tuple[str, ...]:
    """Return texts that a pattern matches; none if it is too hard, or invalid in Python."""
    if len(pattern) > PATTERN_LENGTH or is_hard_pattern(pattern):
        return ()
    found: list[str] = []

    def trial(text: str) -> None:
        if len(text) <= MAX_TEXT and text not in found:
            json.dumps(text).encode()
            text.encode()  # raises for half a surrogate pair
            found.append(text)

    profile = settings(database=None, deadline=None, suppress_health_check=list(HealthCheck))
    end = time.perf_counter() + PATTERN_TIME / 2
    random = Random(pattern)  # noqa: S311 - the same texts in each run
    with contextlib.suppress(Exception), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        re.compile(pattern)
        test: Any = profile(given(st.from_regex(pattern))(trial))
        for _ in range(4 * _SAMPLES):
            if len(found) >= _SAMPLES or time.perf_counter() > end:
                break
            with contextlib.suppress(UnicodeError):
                test.hypothesis.fuzz_one_input(random.randbytes(2_000))
    return tuple(found)


_COUNTS: Final = re.compile(r"\{(\d{3,})|,(\d{3,})\}|[+*}]\)[+*{]")


def is_hard_pattern(pattern: str) -> bool:
    """Return True if a pattern has large counts or a repetition inside a repetition."""
    return _COUNTS.search(pattern) is not None
