"""JSON Schemas that somebody wrote: our own side's author, or a peer.

Rules of this file:

1. A schema is never changed and never fetched for: only `#...` references are allowed, so nothing points outside. What cannot
   be used is refused before anything is checked with it (basic/index, JSON Schema Usage, 2026-07-28; server/tools).
2. Checking has an end: there are bounds for the size and depth of the schema, the depth of the value, and the number of
   references followed, since references are what can make a small schema an endless amount of work.
3. An author's `pattern`s are run. A peer's are not, nor what else could keep us busy for long: `ForeignSchema` would rather
   find no fault.
4. `jsonschema` and `referencing` are imported when the first schema is used and not before: they cost more time to load than
   everything else of the core together.

A schema without `$schema` is of draft 2020-12. Drafts 3, 4, 6, 7 and 2019-09 are supported when declared.

This file does not know what the value is that it validates, nor what happens when it does not fit.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterator, Mapping
from itertools import islice
from math import inf
from typing import Any, Final, cast

import msgspec

__all__ = [
    "DATA",
    "MAPS",
    "ForeignSchema",
    "GivenSchema",
    "UnboundedSchema",
    "UnusableSchema",
    "depth_exceeds",
    "nodes",
]

# A schema is written by hand or by a generator; larger ones are data, not descriptions.
MAX_SCHEMA_BYTES: Final = 256 * 1024
MAX_SCHEMA_DEPTH: Final = 32
MAX_VALUE_DEPTH: Final = 64
MAX_REFERENCES: Final = 100_000
# Python's own limit is 1000 frames unless somebody changed it.
MAX_FRAMES: Final = 700
# Of a peer's schema. To find out that it is one takes a fifth of a millisecond for each, and some lists are compared with
# themselves; a list of properties with three words on each has room for 250 of them.
MAX_FOREIGN_PARTS: Final = 1_000
# Of checking with it, and parts of the value. Each takes a few microseconds.
MAX_FOREIGN_STEPS: Final = 100_000

# Keywords whose value is data, and those whose value maps arbitrary names to schemas.
DATA: Final = frozenset({"const", "enum", "default", "examples"})
MAPS: Final = frozenset({"properties", "patternProperties", "$defs", "definitions", "dependentSchemas"})
_REFERENCES: Final = ("$ref", "$dynamicRef", "$recursiveRef")
# Regular expressions can take for ever, `uniqueItems` compares all with all, `unevaluated*` follow references of their own.
_NOT_RUN: Final = frozenset(
    {"pattern", "patternProperties", "uniqueItems", "unevaluatedItems", "unevaluatedProperties"}
)
# What a step is reckoned for that takes longer than others: for each reference, and for each branch.
_PRICES: Final = {**dict.fromkeys(_REFERENCES, 20), "anyOf": 5, "oneOf": 5, "allOf": 5}
# Where a part that finds no fault can make the whole find one.
_TURNING: Final = frozenset({"not", "oneOf", "if", "contains", "disallow"})
_LONGEST_MESSAGE: Final = 500
_ENDLESS: Final = "its schema takes too many steps to check it"

Fault = tuple[str, str]


class UnusableSchema(ValueError):
    """It is of a dialect nobody here knows, not valid in its dialect, or refers to something outside itself."""


class UnboundedSchema(UnusableSchema):
    """It is larger or deeper than we are ready to look at."""


class GivenSchema:
    """A JSON Schema of an author of ours, compiled.

    Raises:
        UnusableSchema: it cannot be used.
    """

    __slots__ = ("_references", "_validator", "schema")

    def __init__(self, schema: Mapping[str, Any]) -> None:
        if not isinstance(schema, Mapping):
            raise UnusableSchema(f"a schema is a dict, not {type(schema).__name__}")
        self.schema = dict(schema)
        self._references = 0
        _refuse_unbounded(self.schema)
        self._validator = self._compiled()

    def __repr__(self) -> str:
        described = self._validator.META_SCHEMA
        return f"<{type(self).__name__} {described.get('$id', described.get('id'))}>"

    @property
    def describes_object(self) -> bool:
        """Whether its root says `"type": "object"`."""
        return self.schema.get("type") == "object"

    def fault_of(self, value: Any) -> Fault | None:
        """None if `value` (decoded JSON) is valid, else where not (`days[0]`, "" for the root) and why."""
        if depth_exceeds(value, MAX_VALUE_DEPTH):
            return "", f"nested more than {MAX_VALUE_DEPTH} deep"
        try:
            return self._fault(value)
        except _Unbounded:
            return "", _ENDLESS

    def _fault(self, value: Any) -> Fault | None:
        from jsonschema.exceptions import best_match

        self._references = 0
        try:
            # The first few faults are enough to find a telling one; a large value may have any number.
            worst = best_match(islice(self._validator.iter_errors(value), 20))
        except RecursionError:  # `unevaluated*` follow references without our counting
            raise _Unbounded from None
        if worst is None:
            return None
        message = worst.message
        if len(message) > _LONGEST_MESSAGE:
            message = f"{message[: _LONGEST_MESSAGE // 2]} ... {message[-_LONGEST_MESSAGE // 2 :]}"
        place = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in worst.absolute_path)
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
            raise UnusableSchema(f"the schema's $schema is {declared!r}, a dialect that is not supported")
        _refuse_foreign(self.schema, kind)
        self._look_at_keywords()
        try:
            kind.check_schema(self.schema, format_checker=None)
        except SchemaError as exc:
            raise UnusableSchema(f"not a valid JSON Schema: {exc.json_path}: {exc.message}") from None
        bounded = cast(Any, validators).extend(kind, self._rules(kind.VALIDATORS))
        # A reference to what names its dialect would go on with that dialect's own rules, which nobody counts.
        unnamed = {key: value for key, value in self.schema.items() if key != "$schema"}
        validator = bounded(unnamed, registry=Registry())
        self._validator = validator
        _refuse_dangling(self.schema, kind)
        if self.fault_of({}) == ("", _ENDLESS):
            raise UnusableSchema("the schema refers to itself without end")
        return validator

    def _look_at_keywords(self) -> None:
        for place, node in nodes(self.schema):
            for pattern in (node.get("pattern"), *_keys(node.get("patternProperties"))):
                try:
                    re.compile(pattern if isinstance(pattern, str) else "")
                except (re.error, RecursionError) as exc:
                    raise UnusableSchema(f"the pattern {pattern!r} at {place} is wrong: {exc}") from None

    def _rules(self, rules: Mapping[str, _Rule]) -> dict[str, _Rule]:
        """The keywords that are checked in another way than usual."""
        return {key: self._counted(rule) for key, rule in rules.items() if key in _REFERENCES}

    def _counted(self, rule: _Rule) -> _Rule:
        def counted(validator: Any, reference: Any, instance: Any, schema: Any) -> Iterator[Any]:
            self._references += 1
            if self._references > MAX_REFERENCES or _stack_is_deep():
                raise _Unbounded
            yield from rule(validator, reference, instance, schema) or ()

        return counted


class ForeignSchema(GivenSchema):
    """A JSON Schema that a peer sent. Making and using it take some tenths of a second at most, whatever it says.

    What cannot be checked within that is taken for valid, and so is what would need the keywords that are not run.

    Raises:
        UnusableSchema: it cannot be used.
    """

    __slots__ = ("_checkable", "_steps")

    def __init__(self, schema: Mapping[str, Any]) -> None:
        try:
            super().__init__(schema)
        except UnusableSchema:
            raise
        except Exception as exc:  # there are schemas that what we check them with was not written for
            raise UnusableSchema(f"it cannot be read: {type(exc).__name__}: {exc}") from exc

    def fault_of(self, value: Any) -> Fault | None:
        """None if no fault is found in `value` (decoded JSON), else where it is (`days[0]`, "" for the root) and what."""
        self._steps = 0
        if not self._checkable or _parts(value) > MAX_FOREIGN_STEPS:
            return None
        try:
            return self._fault(value)
        except Exception:  # noqa: BLE001 - it takes too long; or there is a number, say, that cannot be divided
            return None

    def _look_at_keywords(self) -> None:
        if _parts(self.schema) > MAX_FOREIGN_PARTS:
            raise UnboundedSchema(f"the schema has more than {MAX_FOREIGN_PARTS} parts")
        used = {key for _, node in nodes(self.schema) for key in node}
        # What no pattern names is additional, which without the patterns would be everything.
        unclear = "patternProperties" in used and "additionalProperties" in used
        self._checkable = not (unclear or (used & _NOT_RUN and used & _TURNING))

    def _rules(self, rules: Mapping[str, _Rule]) -> dict[str, _Rule]:
        run = {key: rule for key, rule in rules.items() if key not in _NOT_RUN}
        charged = {key: self._charged(rule, _PRICES.get(key, 1)) for key, rule in run.items()}
        return {**charged, **super()._rules(charged), **dict.fromkeys(rules.keys() - run.keys(), _no_fault)}

    def _charged(self, rule: _Rule, price: int) -> _Rule:
        def charged(validator: Any, wanted: Any, instance: Any, schema: Any) -> Iterator[Any]:
            self._steps += price * (1 + _length(wanted)) + _length(instance)
            if self._steps > MAX_FOREIGN_STEPS:
                raise _Unbounded
            yield from rule(validator, wanted, instance, schema) or ()

        return charged


_Rule = Callable[[Any, Any, Any, Any], Iterator[Any] | None]


def _no_fault(validator: Any, wanted: Any, instance: Any, schema: Any) -> Iterator[Any]:
    return iter(())


def _length(value: Any) -> int:
    return len(value) if isinstance(value, list | dict) else 0


def _parts(value: Any) -> float:
    """How many parts decoded JSON has; infinitely many if it is nested too deeply."""
    level, parts = [value], 0
    for _ in range(MAX_VALUE_DEPTH + 1):
        parts += sum(map(_length, level))
        if parts > MAX_FOREIGN_STEPS:
            break
        level = _next_level(level)
        if not level:
            return parts
    return inf


class _Unbounded(Exception):
    """Too many references were followed, one after or one inside the other; never leaves this file."""


def _stack_is_deep() -> bool:
    """Whether so much of Python's stack is used that another reference might not fit.

    It must not run out: below jsonschema is compiled code that turns a RecursionError into a panic. Only
    references can nest without end, and between two of them a schema of permitted depth needs less than what
    is left here.
    """
    frame = inspect.currentframe()
    for _ in range(MAX_FRAMES):
        if frame is None:
            return False
        frame = frame.f_back
    return True


def depth_exceeds(value: Any, limit: int) -> bool:
    """Whether decoded JSON is nested deeper than `limit`; a scalar has depth 0."""
    level = [value]
    for _ in range(limit + 1):
        level = _next_level(level)
        if not level:
            return False
    return True


def _next_level(level: list[Any]) -> list[Any]:
    """What is directly inside of what is in `level`."""
    return [
        child
        for node in level
        if isinstance(node, dict | list)
        for child in (node.values() if isinstance(node, dict) else node)
    ]


def _refuse_unbounded(schema: dict[str, Any]) -> None:
    if depth_exceeds(schema, MAX_SCHEMA_DEPTH):
        raise UnboundedSchema(f"the schema is nested more than {MAX_SCHEMA_DEPTH} deep")
    try:
        size = len(msgspec.json.encode(schema))
    except (TypeError, ValueError, RecursionError) as exc:
        raise UnusableSchema(f"the schema is not JSON: {exc}") from None
    if size > MAX_SCHEMA_BYTES:
        raise UnboundedSchema(f"the schema has {size} bytes, more than {MAX_SCHEMA_BYTES}")


def nodes(schema: Any, path: str = "#") -> Iterator[tuple[str, dict[str, Any]]]:
    """Every schema object inside `schema`, itself included, with the place it stands at. Data is left out."""
    waiting = [(path, schema, False)]
    while waiting:
        place, node, names = waiting.pop()
        if isinstance(node, list):
            waiting += [(f"{place}/{index}", item, False) for index, item in enumerate(node)]
        elif isinstance(node, dict):
            if not names:
                yield place, node
            waiting += [
                (f"{place}/{key}", value, not names and key in MAPS)
                for key, value in node.items()
                if names or key not in DATA
            ]


def _refuse_foreign(schema: dict[str, Any], kind: Any) -> None:
    for place, node in nodes(schema):
        for key in _REFERENCES:
            reference = node.get(key, "#")
            if isinstance(reference, str) and not reference.startswith("#"):
                raise UnusableSchema(f"{key} at {place} is {reference!r}; only references within the schema")
        if place != "#" and kind.ID_OF(node):
            raise UnusableSchema(f"{place} has an identifier of its own; only references within the schema")
        if place != "#" and "$schema" in node:
            raise UnusableSchema(f"{place} has a dialect of its own; there is one for the whole schema")


def _keys(mapping: Any) -> list[str]:
    return list(mapping) if isinstance(mapping, dict) else []


def _refuse_dangling(schema: dict[str, Any], kind: Any) -> None:
    from referencing import Registry, Resource
    from referencing.exceptions import Unresolvable
    from referencing.jsonschema import specification_with

    resource = Resource.from_contents(schema, specification_with(kind.ID_OF(kind.META_SCHEMA)))
    own = resource.id() or ""
    resolver = Registry().with_resource(own, resource).resolver(own)
    for place, node in nodes(schema):
        for key in _REFERENCES:
            reference = node.get(key)
            if isinstance(reference, str):
                try:
                    resolver.lookup(reference)
                except Unresolvable:
                    raise UnusableSchema(f"{key} at {place}: the schema has no {reference!r}") from None
