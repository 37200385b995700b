"""Documents of a JSON Schema: whether one is valid, and small valid ones.

The answer to the first question is True, False or None for "unclear": a keyword isn't evaluated
here, such as a pattern, or the schema is too complex. So a comparison that finds a document which
one schema accepts and the other one refuses is certain of it, also for schemas of a peer.
"""

from __future__ import annotations

import itertools
import math
import re
from decimal import Decimal, DecimalException
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final, TypeAlias, TypeGuard

from mcp_core._nesting import depth_exceeds

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

__all__ = [
    "ANNOTATIONS",
    "MAX_STEPS",
    "NAMES_OF_TYPES",
    "NO_SCHEMA",
    "Answer",
    "SchemaRoot",
    "TooComplex",
    "array_parts",
    "has_type",
    "is_number",
    "listed_types",
    "mapping",
    "same",
    "without_annotations",
]

Answer: TypeAlias = "bool | None"

# Schemas and values looked at for one pair of schemas. A schema of 1,000 properties takes some
# thousands of them.
MAX_STEPS: Final = 50_000
# Levels of references and subschemas. Each takes up to ten frames of Python's stack.
MAX_DEPTH: Final = 32
_MAX_NESTING: Final = 100  # levels of JSON; a level of schemas has two or three
MAX_HOPS: Final = 16  # references to references
MAX_EXAMPLES: Final = 12  # of one schema
_MAX_EXAMPLE_DEPTH: Final = 8
_MAX_EXAMPLE_LENGTH: Final = 10_000  # characters of a text, items of an array

NAMES_OF_TYPES: Final = ("null", "boolean", "object", "array", "string", "integer", "number")
# The schema in a place where there can be no reference to one.
NO_SCHEMA: Final = object()

# Keywords that refuse no document. So are those that no dialect has.
ANNOTATIONS: Final = frozenset(
    """
    $anchor $comment $defs $dynamicAnchor $id $schema $vocabulary contentSchema default definitions
    deprecated description examples id readOnly title writeOnly
    """.split()
)
# Keywords that aren't evaluated, and the type of the documents that they may refuse.
_UNCLEAR: Final = {
    "$dynamicRef": None,
    "$recursiveRef": None,
    "contains": list,
    "contentEncoding": str,
    "contentMediaType": str,
    "dependencies": dict,
    "dependentRequired": dict,
    "dependentSchemas": dict,
    "disallow": None,
    "divisibleBy": None,
    "extends": None,
    "if": None,
    "maxContains": list,
    "minContains": list,
    "patternProperties": dict,
    "propertyNames": dict,
    "unevaluatedItems": list,
    "unevaluatedProperties": dict,
}
# The dialects whose keywords mean what they mean in 2020-12, if they occur.
_KNOWN_DIALECTS: Final = (
    "http://json-schema.org/draft-06/schema",
    "http://json-schema.org/draft-07/schema",
    "https://json-schema.org/draft/2019-09/schema",
    "https://json-schema.org/draft/2020-12/schema",
)
_IGNORES_BESIDE_REFERENCE: Final = _KNOWN_DIALECTS[:2]
_ITEMS_ARE_PREFIX: Final = _KNOWN_DIALECTS[:3]
# A text of each format, which every validator accepts that knows the format.
_FORMATS: Final[dict[str, tuple[str, ...]]] = {
    "date": ("2000-01-01",),
    "date-time": ("2000-01-01T00:00:00Z",),
    "duration": ("P1D",),
    "email": ("a@example.com",),
    "hostname": ("example.com",),
    "idn-email": ("a@example.com",),
    "idn-hostname": ("example.com",),
    "ipv4": ("192.0.2.1",),
    "ipv6": ("2001:db8::1",),
    "iri": ("https://example.com/a",),
    "iri-reference": ("https://example.com/a",),
    "json-pointer": ("/a",),
    "regex": ("a",),
    "relative-json-pointer": ("0",),
    "time": ("00:00:00Z",),
    "uri": ("https://example.com/a",),
    "uri-reference": ("https://example.com/a",),
    "uri-template": ("https://example.com/{a}",),
    "uuid": ("00000000-0000-4000-8000-000000000000",),
}
_MAX_PATTERN: Final = 200  # characters
_CLASS: Final = r"\[(?:[A-Za-z0-9_ ]|\\[dw.\-])(?:[A-Za-z0-9_ .:/@+-]|\\[dw.\-])*\]"
_PART: Final = (
    rf"({_CLASS}|[A-Za-z0-9_ :/@#,-]|\\[dw./])([+*?]|\{{[0-9]{{1,4}}(?:,[0-9]{{0,4}})?\}})?"
)
_ATOM: Final = re.compile(_PART)
_SIMPLE_PATTERN: Final = re.compile(rf"\^?(?:{_PART})+\$?")
_ESCAPED: Final = {r"\d": "0", r"\w": "a"}
_QUANTIFIERS: Final = {
    "": (1, 1),
    "?": (0, 1),
    "*": (0, _MAX_EXAMPLE_LENGTH),
    "+": (1, _MAX_EXAMPLE_LENGTH),
}
_SAMPLES: Final[tuple[Any, ...]] = (None, True, False, 0, 1, -1, 0.5, "", "a", [], {})


class TooComplex(Exception):
    """A schema or a pair of schemas takes too many steps. Never leaves this package."""


def without_annotations(schema: Mapping[str, Any]) -> dict[str, Any]:
    """Return the keywords that may refuse a document."""
    return {key: value for key, value in schema.items() if key not in ANNOTATIONS}


def mapping(value: Any) -> Mapping[str, Any]:
    """Return a keyword's object, empty if it isn't one."""
    return value if isinstance(value, dict) else {}


def is_number(value: Any) -> TypeGuard[float]:
    """Return True for a number, which a boolean isn't."""
    return isinstance(value, int | float) and not isinstance(value, bool)


def listed_types(schema: Mapping[str, Any]) -> tuple[str, ...] | None:
    """Return the types that `type` lists, or None without a `type` that can be read."""
    found = schema.get("type")
    listed = [found] if isinstance(found, str) else found
    if not isinstance(listed, list) or not all(each in NAMES_OF_TYPES for each in listed):
        return None
    return tuple(listed)


def has_type(value: Any, name: str) -> bool:
    """Return True if a value has a type of JSON Schema. 1.0 is an integer, too."""
    if isinstance(value, bool):
        return name == "boolean"
    if isinstance(value, int):
        return name in ("integer", "number")
    if isinstance(value, float):
        return name == "number" or (name == "integer" and value.is_integer())
    if value is None:
        return name == "null"
    kinds: dict[str, type] = {"string": str, "array": list, "object": dict}
    return name in kinds and isinstance(value, kinds[name])


def same(one: Any, other: Any) -> bool:
    """Return True if two JSON values are equal: 1 and 1.0 are, 1 and true aren't."""
    if isinstance(one, bool) or isinstance(other, bool):
        return one is other
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(same, one, other))
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(same(one[key], other[key]) for key in one)
    return bool(one == other)


def array_parts(schema: Mapping[str, Any]) -> tuple[Sequence[Any], Any]:
    """Return the schemas of the first items, and the schema of all others."""
    items = schema.get("items", True)
    if isinstance(items, list):
        return items, schema.get("additionalItems", True)
    prefix = schema.get("prefixItems", ())
    return (prefix if isinstance(prefix, list) else ()), items


class SchemaRoot:
    """A whole schema, in which references are resolved.

    Args:
        schema: decoded JSON, of a peer or anyone.
        steps: how many steps it may take.

    Attributes:
        schema: the same as the argument.
        steps: how many are left.
        dialect: its `$schema` without a trailing #, "" if that isn't a text.
        problem: why no document can be judged by it, or "".
    """

    def __init__(self, schema: Any, steps: int = MAX_STEPS) -> None:
        self.schema = schema
        self.steps = steps
        self.problem = ""
        # Values of `enum` by its identity: the list, its scalars, its other values.
        self._listed: dict[int, tuple[Any, set[Any], list[Any]]] = {}
        dialect = mapping(schema).get("$schema", _KNOWN_DIALECTS[-1])
        self.dialect = dialect.rstrip("#") if isinstance(dialect, str) else ""
        if depth_exceeds(schema, _MAX_NESTING):
            self.problem = f"it is nested more than {_MAX_NESTING} deep"
        elif self.dialect not in _KNOWN_DIALECTS:
            self.problem = "its $schema is not supported"

    def spend(self, steps: int = 1) -> None:
        """Count steps.

        Raises:
            TooComplex: none are left.
        """
        self.steps -= steps
        if self.steps < 0:
            raise TooComplex

    def resolve(self, schema: Any) -> Any:
        """Return a schema without a `$ref`, or None if that is unclear.

        A reference with keywords beside it becomes an `allOf`. A new object is made for it, but for
        a bare reference the object that it refers to is returned.
        """
        for _ in range(MAX_HOPS):
            if not isinstance(schema, dict) or "$ref" not in schema:
                return schema if isinstance(schema, dict | bool) else None
            self.spend()
            target = self._lookup(schema["$ref"])
            if target is NO_SCHEMA:
                return None
            beside = without_annotations(schema)
            del beside["$ref"]
            if beside and self.dialect in _IGNORES_BESIDE_REFERENCE:
                return None  # validators of that time and of today differ
            if beside:
                parts = beside.pop("allOf", [])
                if not isinstance(parts, list):
                    return None
                return {**beside, "allOf": [target, *parts]}
            schema = target
        return None

    def _lookup(self, reference: Any) -> Any:
        """Return what a JSON pointer `#/...` refers to (RFC 6901), or `NO_SCHEMA`."""
        if not isinstance(reference, str) or not (reference == "#" or reference[:2] == "#/"):
            return NO_SCHEMA
        found = self.schema
        for part in reference[1:].split("/")[1:]:
            key = part.replace("~1", "/").replace("~0", "~")
            if "%" in key or (found is not self.schema and "$id" in mapping(found)):
                return NO_SCHEMA
            if isinstance(found, dict) and key in found:
                found = found[key]
            elif isinstance(found, list) and key.isascii() and key.isdigit():
                if len(key) > 6 or int(key) >= len(found):
                    return NO_SCHEMA
                found = found[int(key)]
            else:
                return NO_SCHEMA
        return found

    def is_strange(self, schema: Mapping[str, Any]) -> bool:
        """Return True if a schema's keywords don't mean in its dialect what they mean here."""
        return (
            ("prefixItems" in schema and self.dialect != _KNOWN_DIALECTS[-1])
            or (isinstance(schema.get("items"), list) and self.dialect not in _ITEMS_ARE_PREFIX)
            or (schema is not self.schema and ("$id" in schema or "$schema" in schema))
            or ("type" in schema and listed_types(schema) is None)
        )

    def fits(self, value: Any, schema: Any, depth: int = 0) -> Answer:
        """Return whether a value is valid, or None if that is unclear.

        Raises:
            TooComplex: it takes too many steps.
        """
        self.spend()
        schema = self.resolve(schema)
        if isinstance(schema, bool):
            return schema
        if schema is None or depth > MAX_DEPTH or self.is_strange(schema):
            return None
        answers = (
            self._fits_keyword(value, key, argument, schema, depth)
            for key, argument in schema.items()
        )
        return _all(answers)

    def _fits_keyword(
        self, value: Any, key: str, argument: Any, schema: Mapping[str, Any], depth: int
    ) -> Answer:
        if key in _UNCLEAR:
            concerned = _UNCLEAR[key]
            return None if concerned is None or isinstance(value, concerned) else True
        if key in ("format", "pattern"):
            is_known = not isinstance(value, str) or value in _texts_by(key, argument)
            return True if is_known else None
        if key == "enum":
            return self._is_listed(value, argument)
        if key in _SUBSCHEMAS:
            if any(other in schema for other in _EVALUATED_WITH.get(key, ())):
                return True  # both at once
            return _SUBSCHEMAS[key](self, value, argument, schema, depth + 1)
        check = _CHECKS.get(key)
        if check is None:
            return True
        kind, function = check
        if kind is float:
            concerns = is_number(value)
        else:
            concerns = kind is None or isinstance(value, kind)
        if not concerns:
            return True
        sized = [each for each in (value, argument) if isinstance(each, list | dict | str)]
        self.spend(sum(map(len, sized)) // 16)
        try:
            return function(value, argument)
        except (TypeError, ValueError, OverflowError, DecimalException):
            return None  # the keyword's value isn't one

    def _is_listed(self, value: Any, values: Any) -> Answer:
        """Return whether an `enum` has a value. The list is looked through once for all values."""
        if not isinstance(values, list):
            return None
        if id(values) not in self._listed:
            self.spend(len(values) // 16)
            others = [each for each in values if isinstance(each, list | dict)]
            scalars = {_scalar(each) for each in values if not isinstance(each, list | dict)}
            self._listed[id(values)] = (values, scalars, others)
        _, scalars, others = self._listed[id(values)]
        if not isinstance(value, list | dict):
            return _scalar(value) in scalars
        self.spend(len(others) // 16)
        return any(same(value, each) for each in others)

    def _all_of(self, value: Any, parts: Any, schema: Any, depth: int) -> Answer:
        if not isinstance(parts, list):
            return None
        return _all(self.fits(value, part, depth) for part in parts)

    def _any_of(self, value: Any, parts: Any, schema: Any, depth: int) -> Answer:
        if not isinstance(parts, list):
            return None
        found = [self.fits(value, part, depth) for part in parts]
        return True if True in found else None if None in found else False

    def _one_of(self, value: Any, parts: Any, schema: Any, depth: int) -> Answer:
        if not isinstance(parts, list):
            return None
        found = [self.fits(value, part, depth) for part in parts]
        if found.count(True) > 1:
            return False
        return None if None in found else found.count(True) == 1

    def _not(self, value: Any, part: Any, schema: Any, depth: int) -> Answer:
        found = self.fits(value, part, depth)
        return None if found is None else not found

    def _items(self, value: Any, part: Any, schema: Mapping[str, Any], depth: int) -> Answer:
        if not isinstance(value, list):
            return True
        prefix, others = array_parts(schema)
        pairs = itertools.zip_longest(value, prefix[: len(value)], fillvalue=others)
        return _all(self.fits(item, each, depth) for item, each in pairs)

    def _properties(self, value: Any, part: Any, schema: Mapping[str, Any], depth: int) -> Answer:
        if not isinstance(value, dict):
            return True
        if not isinstance(schema.get("properties", {}), dict):
            return None
        properties = mapping(schema.get("properties"))
        if "patternProperties" in schema and value.keys() - properties.keys():
            return None
        others = schema.get("additionalProperties", True)
        return _all(
            self.fits(each, properties.get(name, others), depth) for name, each in value.items()
        )

    def examples(self, schema: Any, depth: int = 0) -> list[Any]:
        """Return a few small documents that are certainly valid, perhaps none.

        Raises:
            TooComplex: it takes too many steps.
        """
        found: list[Any] = []
        for value in itertools.islice(self._candidates(schema, depth), 4 * MAX_EXAMPLES):
            is_new = not any(same(value, each) for each in found)
            if is_new and self.fits(value, schema):
                found.append(value)
                if len(found) == MAX_EXAMPLES:
                    break
        return found

    def example(self, schema: Any, depth: int = 0) -> Any:
        """Return a small document that is certainly valid, or `NO_SCHEMA`.

        Raises:
            TooComplex: it takes too many steps.
        """
        for value in itertools.islice(self._candidates(schema, depth), 4 * MAX_EXAMPLES):
            if self.fits(value, schema):
                return value
        return NO_SCHEMA

    def _candidates(self, schema: Any, depth: int) -> Iterator[Any]:
        self.spend()
        schema = self.resolve(schema)
        if not isinstance(schema, dict) or depth > _MAX_EXAMPLE_DEPTH:
            yield from _SAMPLES
            return
        if "const" in schema:
            yield schema["const"]
        if isinstance(schema.get("enum"), list):
            yield from schema["enum"]
        for name in listed_types(schema) or NAMES_OF_TYPES:
            yield from _MAKERS[name](self, schema, depth)
        for key in "anyOf", "oneOf", "allOf":
            for part in schema[key] if isinstance(schema.get(key), list) else ():
                for value in itertools.islice(self._candidates(part, depth + 1), MAX_EXAMPLES):
                    yield value
                    if isinstance(value, dict):  # the members that `schema` itself wants
                        yield from ({**each, **value} for each in self._objects(schema, depth))

    def _scalars(self, schema: Mapping[str, Any], depth: int) -> Iterator[Any]:
        yield from (value for value in _SAMPLES[:3])

    def _numbers(self, schema: Mapping[str, Any], depth: int) -> Iterator[Any]:
        bounds = [
            schema[key]
            for key in ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum")
            if is_number(schema.get(key))
        ]
        steps = [schema["multipleOf"]] if is_number(schema.get("multipleOf")) else []
        for step in steps:
            if step:
                yield from (0, step, -step)
                for bound in bounds:
                    with_step = math.ceil(bound / step) * step
                    yield from (with_step, with_step + step, with_step - step)
        yield from (0, 1, -1, 0.5)
        for bound in bounds:
            yield from (bound, bound + 1, bound - 1, bound + 0.5, bound - 0.5, math.ceil(bound))

    def _texts(self, schema: Mapping[str, Any], depth: int) -> Iterator[str]:
        for key in "minLength", "maxLength":
            length = schema.get(key, 0)
            if is_number(length) and 0 <= length <= _MAX_EXAMPLE_LENGTH:
                yield "a" * int(length)
        for key in "format", "pattern":
            yield from _texts_by(key, schema.get(key))
        yield from ("", "a", "b")

    def _arrays(self, schema: Mapping[str, Any], depth: int) -> Iterator[list[Any]]:
        prefix, _ = array_parts(schema)
        lengths = {0, 1, len(prefix)}
        for key in "minItems", "maxItems":
            if is_number(schema.get(key)) and 0 <= schema[key] <= _MAX_EXAMPLE_LENGTH:
                lengths.add(int(schema[key]))
        for length in sorted(lengths):
            value = self.filled(schema, length, depth)
            if value is not None:
                yield value

    def filled(self, schema: Mapping[str, Any], length: int, depth: int = 0) -> list[Any] | None:
        """Return an array of so many valid items, which differ if they can; None if unclear."""
        prefix, others = array_parts(schema)
        found = [self.example(part, depth + 1) for part in prefix[:length]]
        if length > len(found):
            choice = self.examples(others, depth + 1)
            if not choice:
                return None
            is_counted = length > len(choice) and schema.get("uniqueItems") is True
            more = itertools.count() if is_counted else itertools.cycle(choice)
            self.spend(length // 16)
            found += itertools.islice(more, length - len(found))
        return None if any(each is NO_SCHEMA for each in found) else found

    def _objects(self, schema: Mapping[str, Any], depth: int) -> Iterator[dict[str, Any]]:
        properties = mapping(schema.get("properties"))
        required = schema.get("required", ())
        names = [name for name in required if isinstance(name, str)] if required else []
        found = self.members(schema, names, depth)
        if found is None:
            return
        yield found
        least = schema.get("minProperties", 0)
        if is_number(least) and len(found) < least <= _MAX_EXAMPLE_LENGTH:
            spare = [name for name in properties if name not in found]
            spare += [f"other{number}" for number in range(int(least))]
            more = self.members(schema, spare[: int(least) - len(found)], depth)
            if more is not None:
                yield {**found, **more}
        every = self.members(schema, list(properties)[:_MAX_EXAMPLE_LENGTH], depth)
        if every is not None:
            yield {**found, **every}

    def members(
        self, schema: Mapping[str, Any], names: Iterable[str], depth: int = 0
    ) -> dict[str, Any] | None:
        """Return members of these names with valid values; None if unclear."""
        properties = mapping(schema.get("properties"))
        others = schema.get("additionalProperties", True)
        found = {}
        for name in names:
            value = self.example(properties.get(name, others), depth + 1)
            if value is NO_SCHEMA:
                return None
            found[name] = value
        return found


def _all(answers: Iterable[Answer]) -> Answer:
    """Return False if one answer is False, else None if one is None."""
    found: Answer = True
    for each in answers:
        if each is False:
            return False
        if each is None:
            found = None
    return found


def _texts_by(keyword: str, argument: Any) -> Sequence[str]:
    """Return texts of a `format` or for a `pattern` that every validator accepts; () if unknown."""
    if not isinstance(argument, str):
        return ()
    return _FORMATS.get(argument, ()) if keyword == "format" else _texts_of_pattern(argument)


@lru_cache(maxsize=128)
def _texts_of_pattern(pattern: str) -> Sequence[str]:
    """Return texts for a pattern of literals and classes, which mean the same in all dialects.

    They are built, not searched for: no pattern of a peer is ever matched.
    """
    if len(pattern) > _MAX_PATTERN or "--" in pattern or not _SIMPLE_PATTERN.fullmatch(pattern):
        return ()
    try:
        re.compile(pattern)
    except re.error:
        return ()  # such as [z-a] or a{5,2}
    found: list[str] = []
    for more in 0, 1, 7:
        text = ""
        for character, least, most in _atoms_of_pattern(pattern.removeprefix("^")):
            text += character * min(least + more, most)
            if len(text) > _MAX_EXAMPLE_LENGTH:
                return tuple(found)
        found.append(text)
    return tuple(dict.fromkeys(found))


def _atoms_of_pattern(pattern: str) -> Iterator[tuple[str, int, int]]:
    """Yield a character for each part of a simple pattern, and how often it may occur."""
    for atom, quantifier in _ATOM.findall(pattern.removesuffix("$")):
        character = atom[1] if atom[0] == "[" else _ESCAPED.get(atom, atom[-1])
        if atom[:2] == "[\\":
            character = _ESCAPED.get(atom[1:3], atom[2])
        if quantifier[:1] == "{":
            least, comma, most = quantifier[1:-1].partition(",")
            limit = int(most) if most else math.inf if comma else int(least)
            yield character, int(least), int(min(limit, _MAX_EXAMPLE_LENGTH))
        else:
            yield character, *_QUANTIFIERS[quantifier]


def _unique(value: list[Any], wanted: Any) -> Answer:
    if not isinstance(wanted, bool):
        return None
    if not wanted or len(value) < 2:
        return True
    if len(value) > 200:
        return None
    return not any(same(*pair) for pair in itertools.combinations(value, 2))


def _is_multiple(value: Any, step: Any) -> Answer:
    return is_number(step) and step > 0 and not Decimal(str(value)) % Decimal(str(step))


def _scalar(value: Any) -> tuple[bool, Any]:
    """Return a value for a set, in which 1 and 1.0 are equal, and 1 and true aren't."""
    return isinstance(value, bool), value


def _has_members(value: Any, names: Any) -> Answer:
    return all(name in value for name in names) if isinstance(names, list) else None


def _has_type_of(value: Any, wanted: Any) -> Answer:
    return any(has_type(value, name) for name in ([wanted] if isinstance(wanted, str) else wanted))


def _number_check(compare: Callable[[Any, Any], bool]) -> Callable[[Any, Any], Answer]:
    def check(value: Any, bound: Any) -> Answer:
        return compare(value, bound) if is_number(bound) else None

    return check


_Check: TypeAlias = "tuple[type | None, Callable[[Any, Any], Answer]]"
# By keyword: the type of the values that it concerns, float for numbers, and the check.
_CHECKS: Final[dict[str, _Check]] = {
    "const": (None, same),
    "exclusiveMaximum": (float, _number_check(lambda value, bound: value < bound)),
    "exclusiveMinimum": (float, _number_check(lambda value, bound: value > bound)),
    "maxItems": (list, _number_check(lambda value, bound: len(value) <= bound)),
    "maxLength": (str, _number_check(lambda value, bound: len(value) <= bound)),
    "maxProperties": (dict, _number_check(lambda value, bound: len(value) <= bound)),
    "maximum": (float, _number_check(lambda value, bound: value <= bound)),
    "minItems": (list, _number_check(lambda value, bound: len(value) >= bound)),
    "minLength": (str, _number_check(lambda value, bound: len(value) >= bound)),
    "minProperties": (dict, _number_check(lambda value, bound: len(value) >= bound)),
    "minimum": (float, _number_check(lambda value, bound: value >= bound)),
    "multipleOf": (float, _is_multiple),
    "required": (dict, _has_members),
    "type": (None, _has_type_of),
    "uniqueItems": (list, _unique),
}
_Subschemas: TypeAlias = "Callable[[SchemaRoot, Any, Any, Any, int], Answer]"
_EVALUATED_WITH: Final = {
    "additionalItems": ("items", "prefixItems"),
    "additionalProperties": ("properties",),
    "items": ("prefixItems",),
}
_SUBSCHEMAS: Final[dict[str, _Subschemas]] = {
    "additionalItems": SchemaRoot._items,
    "additionalProperties": SchemaRoot._properties,
    "allOf": SchemaRoot._all_of,
    "anyOf": SchemaRoot._any_of,
    "items": SchemaRoot._items,
    "not": SchemaRoot._not,
    "oneOf": SchemaRoot._one_of,
    "prefixItems": SchemaRoot._items,
    "properties": SchemaRoot._properties,
}
_MAKERS: Final[dict[str, Callable[[SchemaRoot, Any, int], Iterator[Any]]]] = {
    "null": SchemaRoot._scalars,
    "boolean": SchemaRoot._scalars,
    "integer": SchemaRoot._numbers,
    "number": SchemaRoot._numbers,
    "string": SchemaRoot._texts,
    "array": SchemaRoot._arrays,
    "object": SchemaRoot._objects,
}
