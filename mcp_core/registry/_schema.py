"""JSON Schemas: those that types imply, and those that an author hands us ready-made.

Rules of this file:

1. A schema that goes to a peer is self-contained: the root is written out, everything else is in its `$defs`.
2. A given schema is never changed and never fetched for: only `#...` references are allowed, so nothing
   points outside. It is checked and compiled when it is declared, and what cannot be checked is refused then
   (basic/index, JSON Schema Usage, 2026-07-28; server/tools).
3. Validation is bounded: by the size and depth of the schema, by the depth of the value, and by the number of
   references followed, since references are what can make a small schema an endless amount of work.
4. Its `pattern`s are the author's own and are run. What a peer sends is never made into one.
5. `jsonschema` and `referencing` are imported when the first given schema is declared and not before: they
   cost more time to load than everything else of the core together.

A schema without `$schema` is of draft 2020-12. Drafts 3, 4, 6, 7 and 2019-09 are supported when declared.

This file does not know what the value is that it validates, nor what happens when it does not fit.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterator, Mapping
from itertools import islice
from typing import Any, Final, cast

import msgspec

from ._errors import DeclarationError

__all__ = ["GivenSchema", "depth_exceeds", "schema_of", "wrapped"]

# A schema is written by hand or by a generator; larger ones are data, not descriptions.
MAX_SCHEMA_BYTES: Final = 256 * 1024
MAX_SCHEMA_DEPTH: Final = 32
MAX_VALUE_DEPTH: Final = 64
MAX_REFERENCES: Final = 100_000
# Python's own limit is 1000 frames unless somebody changed it.
MAX_FRAMES: Final = 700

# Keywords whose value is data, and those whose value maps arbitrary names to schemas.
_DATA: Final = frozenset({"const", "enum", "default", "examples"})
_MAPS: Final = frozenset({"properties", "patternProperties", "$defs", "definitions", "dependentSchemas"})
_REFERENCES: Final = ("$ref", "$dynamicRef", "$recursiveRef")
_LONGEST_MESSAGE: Final = 500
_ENDLESS: Final = "its schema takes too many steps to check it"


# --- Schemas of types -----------------------------------------------------------------------------


def schema_of(type: Any) -> dict[str, Any]:
    """The JSON Schema of everything that msgspec decodes as `type`.

    Raises:
        TypeError: there is none, because the type cannot come from JSON.
    """
    (root,), components = msgspec.json.schema_components([type], ref_template="#/$defs/{name}")
    schema = dict(root)
    reference = schema.pop("$ref", None)
    if reference is not None:
        schema = {**components[reference.rpartition("/")[2]], **schema}
    for _, node in _nodes([schema, *components.values()]):
        _name_type(node)
    used = _used(schema, components)
    if used:
        schema["$defs"] = used
    return schema


def _name_type(node: dict[str, Any]) -> None:
    """Say the type of an enumeration, which many readers of schemas expect although its values tell it."""
    values = node.get("enum")
    if values and "type" not in node:
        for kind, name in ((str, "string"), (int, "integer")):
            if all(type(value) is kind for value in values):
                node["type"] = name


def _used(schema: dict[str, Any], components: Mapping[str, Any]) -> dict[str, Any]:
    """The components that `schema` refers to, directly or not."""
    names: dict[str, None] = {}
    waiting = [schema]
    while waiting:
        for _, node in _nodes(waiting.pop()):
            name = str(node.get("$ref", "")).rpartition("/")[2]
            if name in components and name not in names:
                names[name] = None
                waiting.append(components[name])
    return {name: components[name] for name in components if name in names}


def wrapped(schema: dict[str, Any]) -> dict[str, Any]:
    """The schema of `{"result": value}` for the schema of a value, for revisions that know only objects."""
    inner = {key: value for key, value in schema.items() if key != "$defs"}
    outer: dict[str, Any] = {"type": "object", "properties": {"result": inner}, "required": ["result"]}
    return {**outer, "$defs": schema["$defs"]} if "$defs" in schema else outer


# --- Given schemas --------------------------------------------------------------------------------


class GivenSchema:
    """A JSON Schema somebody wrote, compiled.

    Raises `DeclarationError` when it is too large or too deep, of a dialect nobody here knows, not valid in
    its dialect, or when it refers to something outside itself.
    """

    __slots__ = ("_references", "_validator", "schema")

    def __init__(self, schema: Mapping[str, Any], label: str) -> None:
        if not isinstance(schema, Mapping):
            raise DeclarationError(f"{label}: a schema is a dict, not {type(schema).__name__}")
        self.schema = dict(schema)
        self._references = 0
        _refuse_unbounded(self.schema, label)
        self._validator = self._compiled(label)

    def __repr__(self) -> str:
        return (
            f"<GivenSchema {self._validator.META_SCHEMA.get('$id', self._validator.META_SCHEMA.get('id'))}>"
        )

    @property
    def describes_object(self) -> bool:
        """Whether its root says `"type": "object"`."""
        return self.schema.get("type") == "object"

    def fault_of(self, value: Any) -> tuple[str, str] | None:
        """None if `value` (decoded JSON) is valid, else where not (`days[0]`, "" for the root) and why."""
        from jsonschema.exceptions import best_match

        if depth_exceeds(value, MAX_VALUE_DEPTH):
            return "", f"nested more than {MAX_VALUE_DEPTH} deep"
        self._references = 0
        try:
            # The first few faults are enough to find a telling one; a large value may have any number.
            worst = best_match(islice(self._validator.iter_errors(value), 20))
        except _Unbounded:
            return "", _ENDLESS
        if worst is None:
            return None
        message = worst.message
        if len(message) > _LONGEST_MESSAGE:
            message = f"{message[: _LONGEST_MESSAGE // 2]} ... {message[-_LONGEST_MESSAGE // 2 :]}"
        place = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in worst.absolute_path)
        return place.removeprefix("."), message

    def _compiled(self, label: str) -> Any:
        from jsonschema import Draft202012Validator, validators
        from jsonschema.exceptions import SchemaError
        from referencing import Registry

        declared = self.schema.get("$schema", Draft202012Validator.META_SCHEMA["$id"])
        kind: Any = None
        if isinstance(declared, str):
            kind = validators.validator_for({"$schema": declared}, cast(Any, None))
        if kind is None:
            raise DeclarationError(
                f"{label}: the schema's $schema is {declared!r}, a dialect that is not supported"
            )
        _refuse_foreign(self.schema, kind, label)
        try:
            kind.check_schema(self.schema)
        except SchemaError as exc:
            raise DeclarationError(
                f"{label}: not a valid JSON Schema: {exc.json_path}: {exc.message}"
            ) from None
        counted = {key: self._counting(rule) for key, rule in kind.VALIDATORS.items() if key in _REFERENCES}
        validator = cast(Any, validators).extend(kind, counted)(self.schema, registry=Registry())
        self._validator = validator
        _refuse_dangling(self.schema, kind, label)
        if self.fault_of({}) == ("", _ENDLESS):
            raise DeclarationError(f"{label}: the schema refers to itself without end")
        return validator

    def _counting(self, rule: Callable[..., Iterator[Any] | None]) -> Callable[..., Iterator[Any]]:
        def counted(validator: Any, reference: str, instance: Any, schema: Any) -> Iterator[Any]:
            self._references += 1
            if self._references > MAX_REFERENCES or _stack_is_deep():
                raise _Unbounded
            yield from rule(validator, reference, instance, schema) or ()

        return counted


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
        level = [
            child
            for node in level
            if isinstance(node, dict | list)
            for child in (node.values() if isinstance(node, dict) else node)
        ]
        if not level:
            return False
    return True


def _refuse_unbounded(schema: dict[str, Any], label: str) -> None:
    if depth_exceeds(schema, MAX_SCHEMA_DEPTH):
        raise DeclarationError(f"{label}: the schema is nested more than {MAX_SCHEMA_DEPTH} deep")
    try:
        size = len(msgspec.json.encode(schema))
    except (TypeError, ValueError, RecursionError) as exc:
        raise DeclarationError(f"{label}: the schema is not JSON: {exc}") from None
    if size > MAX_SCHEMA_BYTES:
        raise DeclarationError(f"{label}: the schema has {size} bytes, more than {MAX_SCHEMA_BYTES}")


def _nodes(schema: Any, path: str = "#") -> Iterator[tuple[str, dict[str, Any]]]:
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
                (f"{place}/{key}", value, not names and key in _MAPS)
                for key, value in node.items()
                if names or key not in _DATA
            ]


def _refuse_foreign(schema: dict[str, Any], kind: Any, label: str) -> None:
    for place, node in _nodes(schema):
        for key in _REFERENCES:
            reference = node.get(key, "#")
            if isinstance(reference, str) and not reference.startswith("#"):
                raise DeclarationError(
                    f"{label}: {key} at {place} is {reference!r}; only references within the schema"
                )
        if place != "#" and kind.ID_OF(node):
            raise DeclarationError(
                f"{label}: {place} has an identifier of its own; only references within the schema"
            )
        patterns = [node.get("pattern"), *_keys(node.get("patternProperties"))]
        for pattern in patterns:
            try:
                re.compile(pattern if isinstance(pattern, str) else "")
            except re.error as exc:
                raise DeclarationError(
                    f"{label}: the pattern {pattern!r} at {place} is wrong: {exc}"
                ) from None


def _keys(mapping: Any) -> list[str]:
    return list(mapping) if isinstance(mapping, dict) else []


def _refuse_dangling(schema: dict[str, Any], kind: Any, label: str) -> None:
    from referencing import Registry, Resource
    from referencing.exceptions import Unresolvable
    from referencing.jsonschema import specification_with

    resource = Resource.from_contents(schema, specification_with(kind.ID_OF(kind.META_SCHEMA)))
    own = resource.id() or ""
    resolver = Registry().with_resource(own, resource).resolver(own)
    for place, node in _nodes(schema):
        for key in _REFERENCES:
            reference = node.get(key)
            if isinstance(reference, str):
                try:
                    resolver.lookup(reference)
                except Unresolvable:
                    raise DeclarationError(
                        f"{label}: {key} at {place}: the schema has no {reference!r}"
                    ) from None
