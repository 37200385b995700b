"""Keywords of a schema: what one says about types, members, counts and bounds.

Each function looks at one schema, which may be anyone's. The comparison is in `_schemas`.
"""

from __future__ import annotations

import itertools
import json
import math
from decimal import Decimal, DecimalException
from typing import TYPE_CHECKING, Any, Final, TypeGuard

from ._documents import (
    NAMES_OF_TYPES,
    SchemaRoot,
    has_type,
    is_number,
    listed_types,
    mapping,
    same,
    without_annotations,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

__all__ = [
    "OF_SOME_DIALECTS",
    "all_members",
    "beyond",
    "bound_of",
    "count_of",
    "counted_items",
    "described_members",
    "first_items",
    "has_any",
    "has_kind",
    "has_references",
    "is_length",
    "is_multiple_of",
    "listed_values",
    "merge_parts",
    "of_type",
    "refers_to_definitions",
    "required_names",
    "show_values",
    "size_of",
    "types_of",
    "unused_name",
    "with_names",
    "with_parts",
]

_MAX_PARTS_DEPTH: Final = 8


def described_members(root: SchemaRoot, schema: Any) -> set[str]:
    """Return the members that a schema describes or requires, or a part or a condition of it."""
    names: set[str] = set()
    seen: dict[int, Any] = {}  # kept, so that no other object gets one's identity
    queue = [schema]
    while queue:
        root.spend()
        node = queue.pop()
        if id(node) in seen:
            continue
        seen[id(node)] = node
        node = root.resolve(node)
        if not isinstance(node, dict):
            continue
        names.update(mapping(node.get("properties")), required_names(node.get("required")))
        for key in "allOf", "anyOf", "oneOf":
            queue += node[key] if isinstance(node.get(key), list) else ()
        queue += [node[key] for key in ("if", "then", "else", "not") if key in node]
        for key in "dependentSchemas", "dependencies":
            queue += mapping(node.get(key)).values()
    return names


def with_names(part: Any, names: Iterable[str], *, is_root: bool) -> Any:
    """Return a part that doesn't take members for unused which the whole describes."""
    if not isinstance(part, dict) or "additionalProperties" in part:
        return part  # its members are data in any case
    if "properties" not in part and not is_root:
        return part
    return {**part, "properties": {**dict.fromkeys(names, True), **mapping(part.get("properties"))}}


def has_kind(value: Any, kind: type | tuple[type, ...]) -> bool:
    """Return True for a value of a Python type. A boolean isn't a number here."""
    return isinstance(value, kind) and not isinstance(value, bool)


def counted_items(schema: Mapping[str, Any]) -> dict[str, Any]:
    """Return `contains` and what belongs to it, with the default: one item at least."""
    keys = "contains", "minContains", "maxContains"
    found = {key: schema[key] for key in keys if key in schema}
    return {"minContains": 1, **found} if "contains" in found else {}


def with_parts(root: SchemaRoot, schema: Any, depth: int = 0) -> list[dict[str, Any]]:
    """Return a schema and its alternatives and parts, without booleans and what is unclear."""
    root.spend()
    schema = root.resolve(schema)
    if not isinstance(schema, dict) or depth > _MAX_PARTS_DEPTH:
        return []
    found = [schema]
    for key in "allOf", "anyOf", "oneOf":
        for part in schema[key] if isinstance(schema.get(key), list) else ():
            found += with_parts(root, part, depth + 1)
    return found


def all_members(schemas: Iterable[dict[str, Any]]) -> dict[str, Any]:
    """Return the members that several schemas describe; the last description counts."""
    return {
        name: each for schema in schemas for name, each in mapping(schema.get("properties")).items()
    }


def first_items(schemas: Iterable[dict[str, Any]]) -> dict[str, Any] | None:
    """Return the first schema of items among several schemas, or None."""
    return next((each["items"] for each in schemas if isinstance(each.get("items"), dict)), None)


def size_of(schema: Any) -> int:
    """Return how many keywords and members a schema has, at all levels."""
    return sum(len(node) for node in _objects(schema))


def has_references(schema: Any) -> bool:
    """Return True if a schema refers to another one, or has a member of such a name."""
    return has_any(schema, _REFERENCES)


def has_any(schema: Any, keys: Iterable[str]) -> bool:
    """Return True if a schema has one of some keywords anywhere, or a member of such a name."""
    return any(key in node for node in _objects(schema) for key in keys)


# Keywords that not every dialect has, or that don't mean the same in every one.
OF_SOME_DIALECTS: Final = (
    *("items", "additionalItems", "prefixItems", "contains", "minContains", "maxContains"),
    *("unevaluatedItems", "unevaluatedProperties", "dependencies", "dependentRequired"),
    *("dependentSchemas", "if", "then", "else"),
)
_REFERENCES: Final = ("$ref", "$dynamicRef", "$recursiveRef")


def refers_to_definitions(schema: Any) -> bool:
    """Return True if all references are to definitions at the root."""
    for node in _objects(schema):
        for key in _REFERENCES:
            found = node.get(key)
            if found is not None and not (
                isinstance(found, str) and found.startswith(("#/$defs/", "#/definitions/"))
            ):
                return False
    return True


def _objects(schema: Any) -> Iterator[dict[str, Any]]:
    queue = [schema]
    while queue:
        node = queue.pop()
        if isinstance(node, dict):
            yield node
            queue += node.values()
        elif isinstance(node, list):
            queue += node


def _accepts_all(schema: Any) -> bool:
    return schema is True or schema == {}


def merge_parts(parts: Sequence[Any]) -> dict[str, Any] | None:
    """Return one schema for several that all hold, or None if that isn't simple."""
    if not all(isinstance(part, dict) for part in parts):
        return None
    if len(parts) == 1:
        return dict(parts[0])
    found: dict[str, Any] = {}
    is_open = any(_accepts_all(part.get("additionalProperties")) for part in parts)
    parts = [
        {
            key: value
            for key, value in part.items()
            if key != "additionalProperties" or not _accepts_all(value)
        }
        for part in parts
    ]
    looking = [part for part in parts if not part.keys().isdisjoint(_LOOKS_BESIDE)]
    seen = [part for part in parts if not part.keys().isdisjoint(_LOOKED_AT)]
    if looking and len(seen) > 1:
        return None
    for part in parts:
        for key, value in without_annotations(part).items():
            if key not in found or same(found[key], value):
                found[key] = value
            elif key == "required" and isinstance(value, list) and isinstance(found[key], list):
                found[key] = [*found[key], *value]
            elif key == "properties":
                mine = dict(mapping(found[key]))
                for name, schema in mapping(value).items():
                    is_new = name not in mine or same(mine[name], schema)
                    mine[name] = schema if is_new else {"allOf": [mine[name], schema]}
                found[key] = mine
            elif key == "allOf" and isinstance(value, list) and isinstance(found[key], list):
                found[key] = [*found[key], *value]
            else:
                return None
    if is_open:  # so its members are data
        found.setdefault("additionalProperties", True)
    return found


# Keywords whose meaning depends on the keywords beside them.
_LOOKS_BESIDE: Final = (
    *("additionalProperties", "patternProperties", "unevaluatedProperties", "unevaluatedItems"),
    *("additionalItems", "prefixItems", "items", "contains", "minContains", "maxContains"),
    *("if", "then", "else", "$dynamicRef", "$recursiveRef"),
)
_LOOKED_AT: Final = (*_LOOKS_BESIDE, "properties")


def types_of(schema: Any) -> tuple[str, ...]:
    """Return the types of a schema's documents, as far as its `type` says."""
    if not isinstance(schema, dict):
        return NAMES_OF_TYPES
    listed = listed_types(schema)
    if listed is None:
        return NAMES_OF_TYPES
    types = {*listed, "integer"} if "number" in listed else set(listed)
    return tuple(name for name in NAMES_OF_TYPES if name in types)


def of_type(schema: dict[str, Any], name: str) -> dict[str, Any]:
    """Return a schema for its documents of one type."""
    return {**schema, "type": name}


def listed_values(schema: dict[str, Any]) -> list[Any] | None:
    """Return the only values that a schema accepts, or None if it doesn't list them."""
    if "const" in schema:
        return [schema["const"]]
    if isinstance(schema.get("enum"), list):
        return list(schema["enum"])
    listed = listed_types(schema)
    if listed and set(listed) <= {"null", "boolean"}:
        constants = (None, True, False)
        return [value for value in constants if any(has_type(value, name) for name in listed)]
    return None


def required_names(required: Any) -> list[str]:
    """Return the names in `required`, none if it isn't a list."""
    return (
        [name for name in required if isinstance(name, str)] if isinstance(required, list) else []
    )


def count_of(schema: dict[str, Any], key: str, default: float) -> float:
    """Return a keyword's number, or the default without one."""
    found = schema.get(key)
    return found if is_number(found) else default


def is_length(value: Any) -> TypeGuard[int]:
    """Return True for a length that an example can have."""
    return is_number(value) and 0 <= value <= 10_000


def beyond(key: str, bound: Any) -> Any:
    """Return the nearest length that a bound refuses, None if the bound isn't a number."""
    if not is_number(bound):
        return None
    return bound - 1 if key.startswith("min") else bound + 1


def bound_of(
    schema: dict[str, Any], keys: tuple[str, str], sign: int, is_whole: bool
) -> tuple[float, bool]:
    """Return the lower bound of numbers, and whether it is exclusive; of their negatives for -1."""
    found = (-math.inf, False)
    for key in keys:
        value = schema.get(key)
        if is_number(value):
            bound = sign * value
            is_exclusive = key != keys[0]
            if is_whole:
                bound = math.floor(bound) + 1 if is_exclusive else math.ceil(bound)
                is_exclusive = False
            found = max(found, (bound, is_exclusive))
    return found


def is_multiple_of(narrow: dict[str, Any], step: Any, is_whole: bool) -> bool:
    """Return True if certainly each number of a schema is a multiple of `step`."""
    mine = narrow.get("multipleOf")
    if not is_number(step) or step <= 0:
        return False
    try:
        if is_number(mine) and not Decimal(str(mine)) % Decimal(str(step)):
            return True
        return is_whole and not Decimal(1) % Decimal(str(step))
    except DecimalException:
        return False


def unused_name(*properties: Mapping[str, Any]) -> str:
    """Return a name that none of the objects has."""
    for number in itertools.count():
        name = f"other{number}" if number else "other"
        if not any(name in each for each in properties):
            return name
    raise AssertionError


def show_values(values: Sequence[Any]) -> str:
    """Return values for a user, the first few, in JSON."""
    texts = [json.dumps(value, ensure_ascii=False) for value in values[:5]]
    shown = ", ".join(text if len(text) <= 60 else f"{text[:60]}..." for text in texts)
    return f"{shown} and {len(values) - 5} more" if len(values) > 5 else shown
