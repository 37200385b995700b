"""Strategies of pairs of schemas, and a pool of documents for them."""

from __future__ import annotations

import copy
from typing import Any, Final

from hypothesis import strategies as st

__all__ = ["DOCUMENTS", "is_endless", "pairs_of_schemas", "schemas", "without_undescribed"]

NAMES: Final = ("a", "b", "c")
_VALUES: Final = (None, True, False, 0, 1, 2, -1, 1.0, 0.5, "", "x", "yy", "zzz")
_INNER: Final = (None, 0, 0.5, "yy", [0], {"a": "x"})


def _documents() -> list[Any]:
    found: list[Any] = [*_VALUES, [], {}, [0, 0], ["x", 1], [None, {}], [[]], [{"b": None}]]
    found += [[each] for each in _VALUES]
    found += [{name: each} for name in (*NAMES, "other") for each in _INNER]
    found += [{"a": tag, "b": each} for tag in ("x", "yy") for each in _INNER]
    found += [{"a": each, "c": 1, "other": each} for each in _INNER]
    found += [dict.fromkeys(NAMES, each) for each in _VALUES]
    return found


DOCUMENTS: Final = _documents()

_scalars = st.sampled_from(_VALUES)
_numbers = st.sampled_from((-1, 0, 1, 2, 0.5))
_counts = st.integers(0, 2)
_types = st.sampled_from(("null", "boolean", "object", "array", "string", "integer", "number"))
_references = st.sampled_from(("#/$defs/a", "#/$defs/b"))


def _keywords(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[dict[str, Any]]:
    """Return schemas of any keywords, whether they make sense together or not."""
    parts = st.lists(inner, min_size=1, max_size=3)
    keywords: dict[str, st.SearchStrategy[Any]] = {
        "type": _types | st.lists(_types, min_size=1, max_size=2, unique=True),
        "enum": st.lists(_scalars, min_size=1, max_size=3),
        "const": _scalars,
        "minimum": _numbers,
        "maximum": _numbers,
        # A boolean as in draft-04. Validators of today take it for a number, or fail.
        "exclusiveMinimum": _numbers | st.just(True),
        "exclusiveMaximum": _numbers | st.just(True),
        "multipleOf": st.sampled_from((1, 2, 0.5)),
        "minLength": _counts,
        "maxLength": _counts,
        "pattern": st.sampled_from(("x", "^y*$")),
        "minItems": _counts,
        "maxItems": _counts,
        "uniqueItems": st.booleans(),
        "items": inner,
        "prefixItems": parts,
        "contains": inner,
        "minContains": _counts,
        "required": st.lists(st.sampled_from(NAMES), max_size=2, unique=True),
        "properties": st.dictionaries(st.sampled_from(NAMES), inner, max_size=3),
        "additionalProperties": inner,
        "patternProperties": st.dictionaries(st.sampled_from(("a", "^[bc]$")), inner, max_size=1),
        "propertyNames": st.sampled_from(({"pattern": "a"}, {"minLength": 2}, True)),
        "minProperties": _counts,
        "maxProperties": _counts,
        "allOf": parts,
        "anyOf": parts,
        "oneOf": parts,
        "not": inner,
        "if": inner,
        "then": inner,
        "unevaluatedProperties": inner,
        "$ref": _references,
        "title": st.just("text"),
    }
    pairs = st.sampled_from(list(keywords)).flatmap(
        lambda key: st.tuples(st.just(key), keywords[key])
    )
    return st.lists(pairs, max_size=4).map(dict)


def _sensible(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[dict[str, Any]]:
    """Return schemas as people write them."""
    members = st.dictionaries(st.sampled_from(NAMES), inner, max_size=3)
    closed = st.sampled_from(({}, {"additionalProperties": False}, {"additionalProperties": True}))
    objects = st.builds(
        lambda properties, more: {"type": "object", "properties": properties, **more},
        members,
        closed,
    ).flatmap(
        lambda found: st.lists(st.sampled_from(NAMES), max_size=2, unique=True).map(
            lambda required: {**found, "required": required}
        )
    )
    arrays = st.builds(
        lambda items, more: {"type": "array", "items": items, **more},
        inner,
        st.sampled_from(({}, {"minItems": 1}, {"maxItems": 1}, {"uniqueItems": True})),
    )
    shared = st.lists(objects, min_size=2, max_size=3).map(lambda found: {"allOf": found})
    patterns = st.builds(
        lambda found, pattern, more: {**found, "patternProperties": {pattern: more}},
        objects,
        st.sampled_from(("a", "^[bc]$")),
        inner,
    )
    counted = st.builds(
        lambda items, least: {"type": "array", "contains": items, **least},
        inner,
        st.sampled_from(({}, {"minContains": 0}, {"minContains": 2})),
    )
    nullable = inner.map(lambda schema: {"anyOf": [schema, {"type": "null"}]})
    tagged = st.lists(
        st.tuples(st.sampled_from(("x", "yy", "zzz")), inner), min_size=1, max_size=3
    ).map(
        lambda pairs: {
            "oneOf": [
                {
                    "type": "object",
                    "properties": {"a": {"const": tag}, "b": each},
                    "required": ["a"],
                }
                for tag, each in pairs
            ]
        }
    )
    return objects | arrays | nullable | tagged | shared | patterns | counted


_leaves = (
    st.booleans()
    | _types.map(lambda name: {"type": name})
    | st.lists(_scalars, min_size=1, max_size=3).map(lambda values: {"enum": values})
    | _references.map(lambda reference: {"$ref": reference})
)
_trees = st.recursive(_leaves, lambda inner: _sensible(inner) | _keywords(inner), max_leaves=8)


@st.composite
def schemas(draw: st.DrawFn) -> dict[str, Any]:
    """Return a whole schema, with two definitions."""
    schema = draw(_trees)
    definitions = {"a": draw(_trees), "b": draw(_leaves)}
    return {**(schema if isinstance(schema, dict) else {"allOf": [schema]}), "$defs": definitions}


@st.composite
def pairs_of_schemas(draw: st.DrawFn) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return two schemas, of which the second is mostly the first one with changes."""
    old = draw(schemas())
    if draw(st.integers(0, 4)) == 0:
        return old, draw(schemas())
    new = copy.deepcopy(old)
    for _ in range(draw(st.integers(1, 2))):
        _change(draw, new)
    return (old, new) if draw(st.booleans()) else (new, old)


def _change(draw: st.DrawFn, schema: dict[str, Any]) -> None:
    """ContractChange a place of a schema."""
    nodes = [node for node in _nodes(schema) if node and node is not schema["$defs"]]
    node = draw(st.sampled_from(nodes))
    if isinstance(node, list):
        index = draw(st.integers(0, len(node) - 1))
        if isinstance(node[index], dict | bool):
            node[index] = draw(_trees)
        else:
            node.pop(index)
            if not node:
                node.append("c")
        return
    added = draw(_keywords(_leaves))
    keys = [key for key in node if key != "$defs"]
    is_removal = draw(st.booleans())
    if keys and is_removal:
        del node[draw(st.sampled_from(keys))]
    elif _is_schema(schema, node):
        node.update(added)


def _nodes(schema: Any) -> list[Any]:
    found, queue = [], [schema]
    while queue:
        node = queue.pop()
        found += [node] if isinstance(node, dict | list) else []
        if isinstance(node, dict):
            queue += node.values()
        elif isinstance(node, list):
            queue += node
    return found


def _is_schema(root: Any, node: Any) -> bool:
    """Return True if an object of a schema is a schema, not the map of a keyword."""
    maps = ("properties", "patternProperties", "$defs")
    return not any(
        each.get(key) is node for each in _nodes(root) if isinstance(each, dict) for key in maps
    )


def is_endless(schema: dict[str, Any]) -> bool:
    """Return True if a definition refers to itself for the same document, in any number of ways."""
    return any(_reaches(schema["$defs"], schema["$defs"][name], name, 0) for name in ("a", "b"))


def _reaches(definitions: dict[str, Any], schema: Any, name: str, depth: int) -> bool:
    if not isinstance(schema, dict):
        return False
    found = [schema[key] for key in ("not", "if", "then", "else") if key in schema]
    for key in "allOf", "anyOf", "oneOf":
        found += schema.get(key, ())
    reference = schema.get("$ref", "").removeprefix("#/$defs/")
    if reference == name or depth > 2 * len(definitions):
        return True
    inner = [definitions[reference]] if reference else []
    return any(_reaches(definitions, each, name, depth) for each in found) or any(
        _reaches(definitions, each, name, depth + 1) for each in inner
    )


def without_undescribed(
    schema: Any, *, is_root: bool = True, known: frozenset[str] = frozenset()
) -> Any:
    """Return a schema that refuses members which it permits and doesn't describe.

    Of all names only those of `NAMES`: the others are never described. Where
    `additionalProperties` says what others are, or nothing is described, members are data. Each
    part of an `allOf`, and each alternative, sees what the whole describes: `known` has it.
    """
    if not isinstance(schema, dict):
        return schema
    known |= _described(schema)
    found: dict[str, Any] = {}
    for key, value in schema.items():
        if key in ("properties", "patternProperties", "$defs"):
            inner = {name: without_undescribed(each, is_root=False) for name, each in value.items()}
            found[key] = inner
        elif key in ("enum", "const", "required", "type", "not", "if"):
            found[key] = value  # a narrower schema there makes a wider one here
        elif isinstance(value, list):
            mine = known if key in ("allOf", "anyOf", "oneOf") else frozenset[str]()
            found[key] = [without_undescribed(each, is_root=False, known=mine) for each in value]
        else:
            mine = known if key in ("then", "else") else frozenset[str]()
            found[key] = without_undescribed(value, is_root=False, known=mine)
    if "additionalProperties" not in schema and ("properties" in schema or is_root):
        members = found.get("properties", {})
        others = dict.fromkeys((name for name in NAMES if name not in known), False)
        found["properties"] = {**others, **members}
    return found


def _described(schema: Any) -> frozenset[str]:
    """Return the members that a schema describes or requires, but for those of alternatives."""
    if not isinstance(schema, dict):
        return frozenset()
    conditions = [schema[key] for key in ("if", "then", "else", "not") if key in schema]
    inner = map(_described, [*schema.get("allOf", ()), *conditions])
    return frozenset(schema.get("properties", ())).union(schema.get("required", ()), *inner)
