"""JSON Schemas of declarations: derived from a type, or declared by the author.

1. A schema that is sent is self-contained: its references point into its own `$defs`.
2. A declared schema is checked and compiled at its declaration. One that cannot be used raises
   `DeclarationError` there.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

import msgspec

from mcp_core._errors import UnencodableValue
from mcp_core.protocol.jsonrpc._unencodable import encode_exactly, find_unencodable
from mcp_core.protocol.schema import _json_schema
from mcp_core.protocol.schema._json_schema import InvalidSchema, iter_subschemas
from mcp_core.registry._errors import DeclarationError

from ._types import ANYTHING, REFERENCE, collect_definitions, schema_hook

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

__all__ = [
    "DeclaredSchema",
    "inline_root",
    "leave_out_unencodable",
    "schema_of",
    "wrap_schema",
]

_MAY_BE_ABSENT: Final = frozenset(
    {"default", "examples", "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"}
)


_KEY: Final = re.compile(r"(?<=#/\$defs/)\w+ \d+(?=')")  # in the `repr` of a reference


class DeclaredSchema(_json_schema.JsonSchema):
    """A compiled JSON Schema that the author declared. `label` names it in error texts.

    Raises:
        DeclarationError: the schema cannot be used.
    """

    __slots__ = ()

    def __init__(self, schema: Mapping[str, Any], label: str) -> None:
        try:
            encode_exactly(schema)
            super().__init__(schema)
        except (InvalidSchema, UnencodableValue) as exc:
            raise DeclarationError(f"{label}: {exc}") from None


def schema_of(type: Any) -> dict[str, Any]:
    """Return the JSON Schema of a type, as msgspec decodes it with `decode_hook`.

    Raises:
        TypeError: the type cannot be decoded from JSON.
    """
    with collect_definitions() as found:
        (root,), components = msgspec.json.schema_components(
            [type], schema_hook=schema_hook, ref_template=REFERENCE
        )
    schema = dict(root)
    components |= found.schemas
    _move_definitions(schema, components)
    _name_definitions(schema, components, found.schemas)
    reference = schema.pop("$ref", None)
    if reference is not None:
        schema = {**components[reference.rpartition("/")[2]], **schema}
    for _, node in iter_subschemas([schema, *components.values()]):
        _add_enum_type(node)
        node.pop(ANYTHING, None)
    definitions = _referenced(schema, components)
    if definitions:
        schema["$defs"] = definitions
    leave_out_unencodable(schema)
    return schema


def inline_root(schema: dict[str, Any]) -> dict[str, Any]:
    """Return a schema with a root that isn't a reference, even for a type that contains itself."""
    name = _referenced_name(schema)
    definition = schema.get("$defs", {}).get(name)
    if definition is None:
        return schema
    return {**definition, **{key: value for key, value in schema.items() if key != "$ref"}}


def leave_out_unencodable(schema: dict[str, Any]) -> None:
    """Remove what JSON cannot hold from a derived schema, where it may be absent.

    An infinite bound doesn't bound anything, and a default is still the function's.
    """
    for _, node in iter_subschemas(schema):
        for name in _MAY_BE_ABSENT & node.keys():
            if find_unencodable(node[name]):
                del node[name]


def _move_definitions(schema: dict[str, Any], components: dict[str, Any]) -> None:
    """Move the `$defs` inside of subschemas, which `schema_hook` returned, to `components`.

    A definition is renamed if another one has its name.
    """
    waiting = [schema, *components.values()]
    while waiting:
        for _, node in list(iter_subschemas(waiting.pop())):
            definitions = node.pop("$defs", None)
            if definitions is None:
                continue
            names = {name: _free_name(name, definitions[name], components) for name in definitions}
            for part in (node, *definitions.values()):
                for _, inner in iter_subschemas(part):
                    name = _referenced_name(inner)
                    if name in names:
                        inner["$ref"] = REFERENCE.format(name=names[name])
            for name, definition in definitions.items():
                components[names[name]] = definition
                waiting.append(definition)


def _name_definitions(
    schema: dict[str, Any], components: dict[str, Any], keys: Iterable[str]
) -> None:
    """Give names to the components that have these keys: "NAME", or that with a number.

    Equal ones become one. An alias in several fields has several.
    """
    definitions = {key: components.pop(key) for key in keys}
    names = _equal_definitions(definitions)
    for key, definition in definitions.items():
        first = names[key]
        if first == key:
            names[key] = _free_name(key.partition(" ")[0], definition, components)
            components[names[key]] = definition
        else:
            names[key] = names[first]
    for _, node in iter_subschemas([schema, *components.values()]) if names else ():
        key = _referenced_name(node)
        if key in names:
            node["$ref"] = REFERENCE.format(name=names[key])


def _equal_definitions(definitions: Mapping[str, dict[str, Any]]) -> dict[str, str]:
    """Return for each key the first one whose definition says the same.

    Keys of one name count as equal until a difference shows, also in what they refer to.
    """
    contents = {key: repr(definition) for key, definition in definitions.items()}
    groups = {key: key.partition(" ")[0] for key in definitions}
    size = 0
    while size < len(set(groups.values())):
        size = len(set(groups.values()))
        first: dict[tuple[str, str], str] = {}
        found = {}
        for key, text in contents.items():
            content = _KEY.sub(lambda match, known=groups: known[match[0]], text)  # type: ignore[misc]
            found[key] = first.setdefault((groups[key], content), key)
        groups = found
    return groups


def _referenced_name(node: Mapping[str, Any]) -> str:
    """Return the name of the definition that a schema refers to, "" if it refers to none."""
    return str(node.get("$ref", "")).removeprefix(REFERENCE.format(name=""))


def _free_name(name: str, definition: Any, components: Mapping[str, Any]) -> str:
    """Return `name`, with a number if another definition has it."""
    number = 2
    free = name
    while components.get(free, definition) != definition:
        free = f"{name}{number}"
        number += 1
    return free


def _add_enum_type(node: dict[str, Any]) -> None:
    """Add the `type` of an `enum`. It is redundant, but many programs expect it."""
    values = node.get("enum")
    if values and "type" not in node:
        for kind, name in ((str, "string"), (int, "integer")):
            if all(type(value) is kind for value in values):
                node["type"] = name


def _referenced(schema: dict[str, Any], components: Mapping[str, Any]) -> dict[str, Any]:
    """Return the components that `schema` references, directly or through other components."""
    names: dict[str, None] = {}
    waiting = [schema]
    while waiting:
        for _, node in iter_subschemas(waiting.pop()):
            name = str(node.get("$ref", "")).rpartition("/")[2]
            if name in components and name not in names:
                names[name] = None
                waiting.append(components[name])
    return {name: components[name] for name in components if name in names}


def wrap_schema(schema: dict[str, Any]) -> dict[str, Any]:
    """Return the schema of `{"result": value}` for the schema of a value.

    For revisions in which an output schema describes an object.
    """
    inner = {key: value for key, value in schema.items() if key != "$defs"}
    outer: dict[str, Any] = {
        "type": "object",
        "properties": {"result": inner},
        "required": ["result"],
    }
    return {**outer, "$defs": schema["$defs"]} if "$defs" in schema else outer
