"""Forms as servers write them: the schema of the specification that they mean.

Schemas that a library derives from a type are not the flat ones of client/elicitation. An optional
field is `anyOf` with null or a list of types, and a choice may have no type. A client that refuses
them cannot ask its user anything. Each field becomes the simple one with the same values; a field
that has none stays as it is, and the form is refused.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

__all__ = ["simple_form"]

_FORMATS: Final = ("email", "uri", "date", "date-time")
_NULL: Final = "null"
_NUMBERS: Final = frozenset(("integer", "number"))


def simple_form(schema: Mapping[str, Any]) -> dict[str, Any]:
    """Return the schema of a form with simple fields in place of those that mean the same."""
    fields = schema.get("properties")
    if not isinstance(fields, Mapping):
        return dict(schema)
    return {**schema, "properties": {name: _simple_field(field) for name, field in fields.items()}}


def _simple_field(field: Any) -> Any:
    if not isinstance(field, Mapping):
        return field
    found = _with_types(_without_null(dict(field)))
    types = found.get("type")
    if isinstance(types, list):
        found["type"] = _only_type([each for each in types if each != _NULL])
    if "type" not in found and _are_texts(_values(found)):
        found["type"] = "string"
    if isinstance(found.get("enum"), list):
        found["enum"] = [each for each in found["enum"] if each is not None]
    if found.get("type") == "string" and found.get("format") not in _FORMATS:
        found.pop("format", None)  # such as "uuid": a text, as for any reader that ignores it
    if found.get("type") == "array" and isinstance(found.get("items"), Mapping):
        found["items"] = _simple_field(found["items"])
    return found


def _without_null(field: dict[str, Any]) -> dict[str, Any]:
    """Return a field that is one of two schemas, of which one is null, as the other one."""
    for name in ("anyOf", "oneOf"):
        members = field.get(name)
        if isinstance(members, list):
            others = [each for each in members if each not in ({"type": _NULL}, {"const": None})]
            if len(others) == 1 != len(members) and isinstance(others[0], Mapping):
                del field[name]
                # The title and the default of the field itself count.
                return _without_null({**others[0], **field})
    return field


def _with_types(field: dict[str, Any]) -> dict[str, Any]:
    """Return a field of several schemas that are no more than a type as one with a list of types.

    pydantic writes `int | float` so. Of `oneOf` an integer would have two.
    """
    members = field.get("anyOf")
    if not isinstance(members, list) or "type" in field:
        return field
    if any(not isinstance(each, Mapping) or each.keys() != {"type"} for each in members):
        return field
    del field["anyOf"]
    return {**field, "type": [each["type"] for each in members]}


def _only_type(types: list[Any]) -> Any:
    """Return the type whose values all of `types` have, or a list for none."""
    if len(types) == 1:
        return types[0]
    return "number" if types and _NUMBERS.issuperset(map(str, types)) else types


def _values(field: Mapping[str, Any]) -> list[Any]:
    """Return the choices of a field, with or without titles."""
    options = field.get("oneOf") or field.get("anyOf")
    if isinstance(options, list) and all(isinstance(each, Mapping) for each in options):
        return [each.get("const") for each in options]
    values = field.get("enum")
    return [each for each in values if each is not None] if isinstance(values, list) else []


def _are_texts(values: list[Any]) -> bool:
    return bool(values) and all(isinstance(each, str) for each in values)
