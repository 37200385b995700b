"""Arguments of a tool from KEY=VALUE words, converted to the types of its JSON Schema.

1. The schema decides how a text is read: `days=3` is a number if the tool takes a number, and
   `code=007` is text if it takes text. If several types are allowed, the text is read as JSON if
   that fits, otherwise as text.
2. A value of the wrong type is rejected here, with an example of a correct one. Other constraints
   are left to the server.
3. A JSON object is not checked at all: with it the user can send what this file would reject.

Of JSON Schema only what determines types is evaluated: `type`, `enum`, `const`, the combining
keywords and references within the schema. Unknown keywords allow everything.
"""

from __future__ import annotations

import json
import math
import shlex
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final
from urllib.parse import unquote

from ._errors import CliError, unknown_argument

__all__ = ["NO_MATCH", "describe_types", "parse_arguments", "parse_object", "parse_value"]

_Schema = Mapping[str, Any]

_TYPE_ORDER: Final = ("integer", "number", "boolean", "array", "object", "null")
_ALL_TYPES: Final = frozenset({"string", *_TYPE_ORDER})
_TYPE_NAMES: Final = {
    str: "string",
    int: "integer",
    float: "number",
    bool: "boolean",
    type(None): "null",
    list: "array",
    dict: "object",
}
NO_MATCH: Final = object()
_MAX_REFERENCES: Final = 16  # references may form a cycle
_EXAMPLES: Final = {
    "integer": "3",
    "number": "1.5",
    "boolean": "true",
    "null": "null",
    "array": "'[1, 2]'",
    "object": "'{\"a\": 1}'",
}


def parse_arguments(words: Sequence[str], schema: _Schema, owner: str) -> dict[str, Any]:
    """Return the arguments in `words`, with the types that `schema` requires.

    Args:
        words: KEY=VALUE, or JSON objects whose members replace those values.
        schema: the JSON Schema of the arguments.
        owner: what takes the arguments, for error messages, such as "the tool price".

    Raises:
        CliError: a word is not an argument or does not match the schema, or a required argument is
            missing.
    """
    typed: dict[str, Any] = {}
    given: dict[str, Any] | None = None
    for word in words:
        key, equals, text = word.partition("=")
        if word.startswith("{"):
            given = (given or {}) | parse_object(word)
        elif equals and key:
            typed[key] = _parse_argument(key, text, schema, owner)
        else:
            raise CliError(
                f"{word!r} is not an argument: write KEY=VALUE, or all arguments as one JSON object"
            )
    if given is not None:
        return typed | given
    missing = [key for key in _as_list(schema.get("required")) if key not in typed]
    if missing:
        needed = " ".join(f"{key}=..." for key in missing)
        raise CliError(f"{owner} needs {' and '.join(missing)}: add {needed}")
    return typed


def describe_types(schema: Any, root: _Schema) -> str:
    """Return the types or values that a schema allows, as text."""
    choices = _allowed_values(schema, root)
    if choices is not None:
        return " or ".join(json.dumps(choice, ensure_ascii=False) for choice in choices)
    allowed = _allowed_types(schema, root)
    if allowed == _ALL_TYPES:
        return "anything"
    names = [
        name
        for name in ("string", *_TYPE_ORDER)
        if name in allowed and not (name == "integer" and "number" in allowed)
    ]
    items = _resolve(schema, root).get("items")
    if names == ["array"] and isinstance(items, Mapping):
        return f"array of {describe_types(items, root)}"
    return " or ".join(names)


def parse_object(word: str) -> dict[str, Any]:
    """Decode a word that begins with `{`.

    Raises:
        CliError: it is not a JSON object, or cannot be sent as UTF-8.
    """
    try:
        found = _decode_json(word)
        json.dumps(found, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        raise CliError(
            f"{word!r} cannot be sent: one of its \\u escapes is half of a surrogate pair"
        ) from None
    except ValueError as exc:
        raise CliError(
            f'{word!r} is not JSON: {exc}. An object looks like {{"city": "Oslo", "days": 3}}'
        ) from None
    assert isinstance(found, dict)
    return found


def _parse_argument(key: str, text: str, schema: _Schema, owner: str) -> Any:
    properties = _as_mapping(schema.get("properties"))
    # A schema that lists properties and does not mention others allows these. Here, another name is
    # more likely a mistake.
    others = schema.get("additionalProperties", not properties)
    if key not in properties and others is False:
        raise unknown_argument(owner, key, list(properties))
    wanted = properties.get(key, others)
    allowed, choices = _allowed_types(wanted, schema), _allowed_values(wanted, schema)
    value = parse_value(text, allowed)
    if value is NO_MATCH or (choices is not None and value not in choices):
        examples = [f"{key}={_EXAMPLES[name]}" for name in _TYPE_ORDER if name in allowed]
        if choices is not None:
            examples = [
                shlex.join([f"{key}={choice if isinstance(choice, str) else json.dumps(choice)}"])
                for choice in choices
            ]
        raise CliError(
            f"{key} must be {describe_types(wanted, schema)}, not {text!r}."
            f" Write for example {' or '.join(examples)}"
        )
    return value


def parse_value(text: str, allowed: frozenset[str]) -> Any:
    """Convert `text` to a value of an allowed JSON type; `NO_MATCH` if it has none of these types.

    Raises:
        CliError: the text is not UTF-8.
    """
    try:
        value = _decode_json(text)
    except ValueError:
        value = text
    if isinstance(value, float) and value.is_integer() and "number" not in allowed:
        value = int(value)  # 3.0 is an integer in JSON Schema
    if not isinstance(value, str) and _type_of(value) in allowed:
        return value
    return text if "string" in allowed else NO_MATCH


def _decode_json(text: str) -> Any:
    """Decode strict JSON: without NaN and Infinity, and without numbers that become infinite.

    Raises:
        ValueError: the text is not strict JSON.
        CliError: the text is not UTF-8.
    """
    try:
        text.encode()
        return json.loads(text, parse_constant=_reject_constant, parse_float=_parse_finite)
    except UnicodeEncodeError:
        raise CliError(f"{text!r} is not UTF-8") from None
    except RecursionError:
        raise ValueError("nested too deeply") from None


def _reject_constant(word: str) -> float:
    raise ValueError(f"{word} is not a JSON number")


def _parse_finite(digits: str) -> float:
    number = float(digits)
    return number if math.isfinite(number) else _reject_constant(digits)


# --- Reading a schema ----------------------------------------------------------------------------


def _allowed_types(schema: Any, root: _Schema, depth: int = 0) -> frozenset[str]:
    """Return the JSON types that a schema allows."""
    allowed = _ALL_TYPES
    if not isinstance(schema, Mapping) or depth > _MAX_REFERENCES:
        return allowed
    names = schema.get("type")
    if names is not None:
        allowed &= _with_integers([names] if isinstance(names, str) else _as_list(names))
    for choices in _as_list(schema.get("enum")), [schema["const"]] if "const" in schema else []:
        if choices:
            allowed &= _with_integers(_type_of(choice) for choice in choices)
    for keyword in "anyOf", "oneOf":
        members = _as_list(schema.get(keyword))
        if members:
            allowed &= frozenset().union(
                *(_allowed_types(member, root, depth + 1) for member in members)
            )
    for member in _as_list(schema.get("allOf")):
        allowed &= _allowed_types(member, root, depth + 1)
    if "$ref" in schema:
        allowed &= _allowed_types(_resolve_pointer(schema["$ref"], root), root, depth + 1)
    return allowed or _ALL_TYPES


def _with_integers(names: Iterable[str]) -> frozenset[str]:
    found = frozenset(names)
    return found | {"integer"} if "number" in found else found


def _allowed_values(schema: Any, root: _Schema) -> list[Any] | None:
    """Return the values of `const` or `enum`, None if the schema has neither."""
    schema = _resolve(schema, root)
    if "const" in schema:
        return [schema["const"]]
    return _as_list(schema.get("enum")) or None


def _resolve(schema: Any, root: _Schema) -> _Schema:
    """Follow `$ref` to a schema without one."""
    for _ in range(_MAX_REFERENCES):
        if not isinstance(schema, Mapping) or "$ref" not in schema:
            break
        schema = _resolve_pointer(schema["$ref"], root)
    return _as_mapping(schema)


def _resolve_pointer(reference: Any, root: _Schema) -> Any:
    """Resolve a JSON Pointer (RFC 6901) within the schema. Return None for any other reference."""
    found: Any = root
    if not isinstance(reference, str) or not reference.startswith("#"):
        return None
    for part in unquote(reference[1:]).split("/")[1:]:
        found = _as_mapping(found).get(part.replace("~1", "/").replace("~0", "~"))
    return found


def _type_of(value: Any) -> str:
    return _TYPE_NAMES[type(value)]


def _as_mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def _as_list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []
