"""JSON Schemas: those that types imply, and those that an author hands us ready-made.

Rules of this file:

1. A schema that goes to a peer is self-contained: the root is written out, everything else is in its `$defs`.
2. A given schema is checked and compiled when it is declared, and what cannot be used is refused then, by name.

What a given schema may be, and how values are checked with it, is in `mcp_core._schema`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from mcp_core import _schema
from mcp_core._schema import UnusableSchema, nodes

from ._errors import DeclarationError

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["GivenSchema", "schema_of", "wrapped"]


class GivenSchema(_schema.GivenSchema):
    """A JSON Schema somebody wrote, compiled. `label` says of what, in complaints.

    Raises:
        DeclarationError: it cannot be used.
    """

    __slots__ = ()

    def __init__(self, schema: Mapping[str, Any], label: str) -> None:
        try:
            super().__init__(schema)
        except UnusableSchema as exc:
            raise DeclarationError(f"{label}: {exc}") from None


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
    for _, node in nodes([schema, *components.values()]):
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
        for _, node in nodes(waiting.pop()):
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
