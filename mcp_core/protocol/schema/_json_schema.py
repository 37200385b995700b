"""JSON Schemas that are given at run time: by a server's author, or by a peer.

1. A schema is never changed, and nothing is ever fetched: only `#...` references are allowed. A
   schema that cannot be used is rejected before any value is checked (2026-07-28, basic/index,
   JSON Schema Usage; server/tools).
2. Validation is bounded: by the schema's size and depth, the value's depth, and the number of
   references followed. References are what can make a small schema cost unlimited work.
3. `pattern`s of our own author are run. A peer's aren't, nor are other costly keywords: in doubt,
   `UntrustedSchema` reports no error.

A schema without `$schema` is draft 2020-12. Drafts 3, 4, 6, 7 and 2019-09 are supported if
declared. `jsonschema` and `referencing` are imported when the first schema is used: they take
longer to load than the rest of the core together.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterator, Mapping
from decimal import Decimal, DecimalException
from itertools import islice
from math import inf
from typing import Any, Final, TypeAlias, cast

import msgspec

from mcp_core._nesting import depth_exceeds, inner_values

__all__ = [
    "DATA_KEYWORDS",
    "SCHEMA_MAP_KEYWORDS",
    "InvalidSchema",
    "JsonSchema",
    "SchemaTooComplex",
    "UntrustedSchema",
    "iter_subschemas",
]

# A schema is written by hand or by a generator. Larger ones are data, not descriptions.
MAX_SCHEMA_BYTES: Final = 256 * 1024
MAX_SCHEMA_DEPTH: Final = 32
# jsonschema has some ten frames for each level.
MAX_VALUE_DEPTH: Final = 64
MAX_REFERENCES: Final = 100_000
# Stack frames. Python's default recursion limit is 1,000.
MAX_FRAMES: Final = 700
# Containers and their members in a peer's schema. Checking it against its meta-schema takes a fifth
# of a millisecond for each part, and some lists are compared with themselves. 1,000 parts are an
# object with 250 properties of three keywords each.
MAX_UNTRUSTED_PARTS: Final = 1_000
# Steps of validating with a peer's schema, and parts of the value. Each takes a few microseconds.
MAX_UNTRUSTED_STEPS: Final = 100_000

# Keywords whose value is data, and those whose value maps arbitrary names to schemas.
DATA_KEYWORDS: Final = frozenset({"const", "enum", "default", "examples"})
SCHEMA_MAP_KEYWORDS: Final = frozenset(
    {"properties", "patternProperties", "$defs", "definitions", "dependentSchemas"}
)
_REFERENCES: Final = ("$ref", "$dynamicRef", "$recursiveRef")
# Keywords that aren't run for a peer. A regular expression can take unlimited time, `uniqueItems`
# compares every pair of items, and `unevaluated*` follow references that aren't counted.
_SKIPPED_KEYWORDS: Final = frozenset(
    {"pattern", "patternProperties", "uniqueItems", "unevaluatedItems", "unevaluatedProperties"}
)
# The cost in steps of the keywords that take longer than others, per reference or branch.
_STEP_COSTS: Final = {**dict.fromkeys(_REFERENCES, 20), "anyOf": 5, "oneOf": 5, "allOf": 5}
# Keywords that turn "no error in a part" into an error of the whole.
_INVERTING_KEYWORDS: Final = frozenset({"not", "oneOf", "if", "contains", "disallow"})
_MAX_MESSAGE_LENGTH: Final = 500
_TOO_MANY_STEPS: Final = "its schema takes too many steps to check it"

_MAX_SHOWN: Final = 200  # characters of a path or a reference in an error
# The cost in steps of a reference by name, for each part of the schema, all of which are searched.
_SEARCH_COST: Final = 2
_STEP_CHARACTERS: Final = 100  # characters of a reference that are read in one step

# Where a value violates a schema, such as `days[0]`, and how.
Violation = tuple[str, str]


class InvalidSchema(ValueError):
    """An invalid schema, an unsupported dialect, or a reference to something outside the schema."""


class SchemaTooComplex(InvalidSchema):
    """A schema that is larger or deeper than the bounds of this file."""


class JsonSchema:
    """A compiled JSON Schema that was written by our own author.

    Raises:
        InvalidSchema: the schema cannot be used.
    """

    __slots__ = ("_references", "_validator", "schema")

    def __init__(self, schema: Mapping[str, Any]) -> None:
        if not isinstance(schema, Mapping):
            raise InvalidSchema(f"a schema is a dict, not {type(schema).__name__}")
        self.schema = dict(schema)
        self._references = 0
        self._check_size()
        self._validator = self._compiled()

    def __repr__(self) -> str:
        meta_schema = self._validator.META_SCHEMA
        return f"<{type(self).__name__} {meta_schema.get('$id', meta_schema.get('id'))}>"

    @property
    def describes_object(self) -> bool:
        """True if the root of the schema has `"type": "object"`."""
        return self.schema.get("type") == "object"

    def find_error(self, value: Any) -> Violation | None:
        """Return where `value` (decoded JSON) is invalid and why, or None if it is valid.

        The place reads like `days[0]`; it is "" for the root.
        """
        if depth_exceeds(value, MAX_VALUE_DEPTH):
            return "", f"nested more than {MAX_VALUE_DEPTH} deep"
        try:
            return self._best_error(value)
        except _TooManyReferences:
            return "", _TOO_MANY_STEPS

    def _best_error(self, value: Any) -> Violation | None:
        from jsonschema.exceptions import best_match

        self._references = 0
        try:
            # 20 errors are enough to find a relevant one. A large value may have any number.
            worst = best_match(islice(self._validator.iter_errors(value), 20))
        except RecursionError:  # `unevaluated*` follow references that we don't count
            raise _TooManyReferences from None
        if worst is None:
            return None
        message = _error_text(worst)
        if len(message) > _MAX_MESSAGE_LENGTH:
            message = (
                f"{message[: _MAX_MESSAGE_LENGTH // 2]} ... {message[-_MAX_MESSAGE_LENGTH // 2 :]}"
            )
        place = "".join(
            f"[{part}]" if isinstance(part, int) else f".{part}" for part in worst.absolute_path
        )
        return place.removeprefix("."), message

    def _compiled(self) -> Any:
        from jsonschema import Draft202012Validator, validators
        from jsonschema.exceptions import SchemaError
        from referencing import Registry

        declared = self.schema.get("$schema", Draft202012Validator.META_SCHEMA["$id"])
        kind: Any = None
        if isinstance(declared, str):
            kind = validators.validator_for({"$schema": declared}, cast(Any, None))
        if kind is None:
            raise InvalidSchema(
                f"the schema's $schema is {declared!r}, a dialect that is not supported"
            )
        _reject_external_references(self.schema, kind)
        self._check_keywords()
        try:
            kind.check_schema(self.schema, format_checker=None)
        except SchemaError as exc:
            raise InvalidSchema(
                f"not a valid JSON Schema: {exc.json_path}: {_error_text(exc)}"
            ) from None
        functions = dict(kind.VALIDATORS)
        if "multipleOf" in functions:
            functions["multipleOf"] = _check_multiple
        bounded = cast(Any, validators).extend(kind, self._keyword_functions(functions))
        # Without `$schema`: a reference to an object that names its dialect would continue with
        # that dialect's own keyword functions, which count nothing.
        unnamed = {key: value for key, value in self.schema.items() if key != "$schema"}
        validator = bounded(unnamed, registry=Registry())
        self._validator = validator
        _reject_unresolvable_references(self.schema, kind)
        if self.find_error({}) == ("", _TOO_MANY_STEPS):
            raise InvalidSchema("the schema refers to itself without end")
        return validator

    def _check_size(self) -> None:
        _check_size(self.schema)

    def _check_keywords(self) -> None:
        for place, node in iter_subschemas(self.schema):
            for pattern in (node.get("pattern"), *_keys(node.get("patternProperties"))):
                try:
                    re.compile(pattern if isinstance(pattern, str) else "")
                except (re.error, RecursionError) as exc:
                    raise InvalidSchema(
                        f"the pattern {pattern!r} at {_format_place(place)} is wrong: {exc}"
                    ) from None

    def _keyword_functions(
        self, functions: Mapping[str, _KeywordFunction]
    ) -> dict[str, _KeywordFunction]:
        """Return the keyword functions that replace the dialect's."""
        found = {
            key: self._count_references(function)
            for key, function in functions.items()
            if key in _REFERENCES
        }
        if "multipleOf" in functions:
            found["multipleOf"] = functions["multipleOf"]
        return found

    def _count_references(self, function: _KeywordFunction) -> _KeywordFunction:
        def counting(validator: Any, reference: Any, instance: Any, schema: Any) -> Iterator[Any]:
            self._references += 1
            if self._references > MAX_REFERENCES or _stack_is_deep():
                raise _TooManyReferences
            yield from function(validator, reference, instance, schema) or ()

        return counting


class UntrustedSchema(JsonSchema):
    """A JSON Schema from a peer. Compiling and using it takes some tenths of a second at most.

    A value that cannot be checked within that time counts as valid, and so does a value that
    violates only keywords which aren't run.

    Args:
        schema: the schema, as decoded JSON.

    Raises:
        InvalidSchema: the schema cannot be used.
    """

    __slots__ = ("_checkable", "_parts", "_steps")

    def __init__(self, schema: Mapping[str, Any]) -> None:
        try:
            super().__init__(schema)
        except InvalidSchema:
            raise
        except Exception as exc:  # jsonschema lets others escape for odd schemas
            raise InvalidSchema(f"it cannot be read: {type(exc).__name__}: {exc}") from exc

    def find_error(self, value: Any) -> Violation | None:
        """Return where `value` (decoded JSON) is invalid and why, or None if no error is found.

        The place reads like `days[0]`; it is "" for the root.
        """
        self._steps = 0
        if not self._checkable or _count_parts(value) > MAX_UNTRUSTED_STEPS:
            return None
        try:
            return self._best_error(value)
        except Exception:  # noqa: BLE001 - too many steps; or, say, a number that cannot be divided
            return None

    def _check_size(self) -> None:
        super()._check_size()
        parts = _count_parts(self.schema)
        if parts > MAX_UNTRUSTED_PARTS:
            raise SchemaTooComplex(f"the schema has more than {MAX_UNTRUSTED_PARTS} parts")
        self._parts = int(parts)

    def _check_keywords(self) -> None:
        keywords = {key for _, node in iter_subschemas(self.schema) for key in node}
        # Properties that match no pattern are "additional". Without the patterns, all would be.
        unclear = "patternProperties" in keywords and "additionalProperties" in keywords
        self._checkable = not (
            unclear or (keywords & _SKIPPED_KEYWORDS and keywords & _INVERTING_KEYWORDS)
        )

    def _keyword_functions(
        self, functions: Mapping[str, _KeywordFunction]
    ) -> dict[str, _KeywordFunction]:
        run = {key: function for key, function in functions.items() if key not in _SKIPPED_KEYWORDS}
        counted = {key: self._count_steps(function, key) for key, function in run.items()}
        return {
            **counted,
            **super()._keyword_functions(counted),
            **dict.fromkeys(functions.keys() - run.keys(), _skip_keyword),
        }

    def _count_steps(self, function: _KeywordFunction, keyword: str) -> _KeywordFunction:
        cost = _STEP_COSTS.get(keyword, 1)
        is_reference = keyword in _REFERENCES

        def counting(
            validator: Any, keyword_value: Any, instance: Any, schema: Any
        ) -> Iterator[Any]:
            self._steps += cost * (1 + _length(keyword_value)) + _length(instance)
            if is_reference:
                self._steps += self._lookup_cost(keyword_value)
            if self._steps > MAX_UNTRUSTED_STEPS:
                raise _TooManyReferences
            yield from function(validator, keyword_value, instance, schema) or ()

        return counting

    def _lookup_cost(self, reference: str) -> int:
        """Return the cost in steps of finding what `reference` names."""
        steps = len(reference) // _STEP_CHARACTERS
        if reference != "#" and not reference.startswith("#/"):
            steps += _SEARCH_COST * self._parts
        return steps


_KeywordFunction = Callable[[Any, Any, Any, Any], Iterator[Any] | None]


def _check_multiple(
    validator: Any, keyword_value: Any, instance: Any, schema: Any
) -> Iterator[Any]:
    """Check `multipleOf` in decimal: as binary numbers, 19.99 isn't a multiple of 0.01."""
    from jsonschema.exceptions import ValidationError

    if not validator.is_type(instance, "number"):
        return
    try:
        remainder = Decimal(str(instance)) % Decimal(str(keyword_value))
    except (DecimalException, ValueError):
        return  # more digits than can be divided
    if remainder:
        yield ValidationError("")  # `_error_text` says it


# What an error says about the value and the keyword's value, both as JSON. The messages of
# jsonschema have Python's `repr` of both.
_ERROR_TEXTS: Final = {
    "const": "{value} was expected, not {instance}",
    "exclusiveMaximum": "{instance} is not less than {value}",
    "exclusiveMinimum": "{instance} is not greater than {value}",
    "maximum": "{instance} is greater than the maximum of {value}",
    "maxItems": "{instance} is too long: it has more than {value} items",
    "maxLength": "{instance} is too long: it has more than {value} characters",
    "minimum": "{instance} is less than the minimum of {value}",
    "minItems": "{instance} is too short: it has fewer than {value} items",
    "minLength": "{instance} is too short: it has fewer than {value} characters",
    "multipleOf": "{instance} is not a multiple of {value}",
    "not": "{instance} fits a schema that it must not fit: {value}",
    "pattern": "{instance} does not match {value}",
    "uniqueItems": "{instance} has equal items",
}


def _error_text(error: Any) -> str:
    """Return what a `ValidationError` of jsonschema says, with values as JSON."""
    keyword, value, instance = error.validator, error.validator_value, error.instance
    if keyword == "type" or keyword == "enum":
        allowed = value if isinstance(value, list) else [value]
        what = "of type" if keyword == "type" else "one of"
        return f"{_json(instance)} is not {what} {', '.join(map(_json, allowed))}"
    if keyword == "required" and isinstance(value, list):
        # There is one error for each missing property, and its message begins with the name.
        missing = [name for name in value if name not in instance]
        name = next((each for each in missing if error.message.startswith(repr(each))), "?")
        return f"{_json(name)} is a required property"
    if keyword == "additionalProperties" and value is False:
        schema = error.schema
        patterns = [re.compile(each) for each in schema.get("patternProperties", ())]
        names = [
            name
            for name in instance
            if name not in schema.get("properties", {})
            and not any(each.search(name) for each in patterns)
        ]
        were = "was" if len(names) == 1 else "were"
        return (
            "additional properties are not allowed"
            f" ({', '.join(map(_json, names))} {were} unexpected)"
        )
    if keyword in ("anyOf", "oneOf") and error.context:
        return f"{_json(instance)} fits none of the {len(value)} given schemas"
    if keyword is None:
        return f"{_json(instance)} is not allowed here: the schema is false"
    text = _ERROR_TEXTS.get(keyword, "{instance} does not fit {keyword}: {value}")
    return text.format(instance=_json(instance), value=_json(value), keyword=keyword)


def _json(value: Any) -> str:
    import json  # a program whose values fit doesn't need it

    return json.dumps(value, ensure_ascii=False, default=str)


def _skip_keyword(validator: Any, keyword_value: Any, instance: Any, schema: Any) -> Iterator[Any]:
    return iter(())


def _length(value: Any) -> int:
    return len(value) if isinstance(value, list | dict) else 0


def _count_parts(value: Any) -> float:
    """Return the number of parts of decoded JSON, infinity if it is nested too deeply."""
    level = [value]
    parts = 0
    for _ in range(MAX_VALUE_DEPTH + 1):
        parts += sum(map(_length, level))
        if parts > MAX_UNTRUSTED_STEPS:
            break
        level = inner_values(level)
        if not level:
            return parts
    return inf


class _TooManyReferences(Exception):
    """More references or steps than the bound. Never leaves this file."""


def _stack_is_deep() -> bool:
    """Return True if another reference may not fit on Python's stack.

    The stack must not overflow: below jsonschema there is compiled code that turns a RecursionError
    into a panic. Only references can nest without bound, and between two of them a schema of
    permitted depth needs less stack than remains here.
    """
    frame = inspect.currentframe()
    for _ in range(MAX_FRAMES):
        if frame is None:
            return False
        frame = frame.f_back
    return True


def _check_size(schema: dict[str, Any]) -> None:
    if depth_exceeds(schema, MAX_SCHEMA_DEPTH):
        raise SchemaTooComplex(f"the schema is nested more than {MAX_SCHEMA_DEPTH} deep")
    try:
        size = len(msgspec.json.encode(schema))
    except (TypeError, ValueError, RecursionError) as exc:
        raise InvalidSchema(f"the schema is not JSON: {exc}") from None
    if size > MAX_SCHEMA_BYTES:
        raise SchemaTooComplex(f"the schema has {size} bytes, more than {MAX_SCHEMA_BYTES}")


# A place in a schema: the place of its parent and its key there, or None for the root. A text for
# each place would take the memory of a schema's square, since keys can be long.
_Place: TypeAlias = "tuple[_Place, str | int] | None"


def iter_subschemas(schema: Any) -> Iterator[tuple[_Place, dict[str, Any]]]:
    """Yield every schema object in `schema`, itself included, with its place. Data is left out."""
    queue: list[tuple[_Place, Any, bool]] = [(None, schema, False)]
    while queue:
        place, node, names = queue.pop()
        if isinstance(node, list):
            queue += [((place, index), item, False) for index, item in enumerate(node)]
        elif isinstance(node, dict):
            if not names:
                yield place, node
            queue += [
                ((place, key), value, not names and key in SCHEMA_MAP_KEYWORDS)
                for key, value in node.items()
                if names or key not in DATA_KEYWORDS
            ]


def _format_place(place: _Place) -> str:
    keys = []
    while place is not None:
        place, key = place
        keys.append(f"/{key}")
    return _shorten("#" + "".join(reversed(keys)))


def _shorten(text: str) -> str:
    return text if len(text) <= _MAX_SHOWN else f"{text[:_MAX_SHOWN]}..."


def _reject_external_references(schema: dict[str, Any], kind: Any) -> None:
    for place, node in iter_subschemas(schema):
        for key in _REFERENCES:
            reference = node.get(key, "#")
            if isinstance(reference, str) and not reference.startswith("#"):
                raise InvalidSchema(
                    f"{key} at {_format_place(place)} is {_shorten(reference)!r}; only references "
                    "within the schema"
                )
        if place is not None and kind.ID_OF(node):
            raise InvalidSchema(
                f"{_format_place(place)} has an identifier of its own; only references within the "
                "schema"
            )
        if place is not None and "$schema" in node:
            raise InvalidSchema(
                f"{_format_place(place)} has a dialect of its own; there is one for the whole "
                "schema"
            )


def _keys(mapping: Any) -> list[str]:
    return list(mapping) if isinstance(mapping, dict) else []


def _reject_unresolvable_references(schema: dict[str, Any], kind: Any) -> None:
    from referencing import Registry, Resource
    from referencing.exceptions import Unresolvable
    from referencing.jsonschema import specification_with

    resource = Resource.from_contents(schema, specification_with(kind.ID_OF(kind.META_SCHEMA)))
    base_uri = resource.id() or ""
    # Crawled once. Otherwise each reference by name would search the whole schema.
    resolver = Registry().with_resource(base_uri, resource).crawl().resolver(base_uri)
    for place, node in iter_subschemas(schema):
        for key in _REFERENCES:
            reference = node.get(key)
            if isinstance(reference, str):
                try:
                    resolver.lookup(reference)
                except Unresolvable:
                    raise InvalidSchema(
                        f"{key} at {_format_place(place)}: the schema has no "
                        f"{_shorten(reference)!r}"
                    ) from None
