"""Arguments of a tool from KEY=VALUE words, converted to the types of its JSON Schema.

1. The schema decides how a text is read: `days=3` is a number if the tool takes a number, and
   `code=007` is text if it takes text. If several types are allowed, the text is read as JSON if
   that fits, otherwise as text.
2. A value of the wrong type is rejected here, with an example of a correct one. Other constraints
   are left to the server.
3. A JSON object isn't checked at all, so the user can send what is rejected here.

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

from ._errors import CliError, join_names, unknown_argument

__all__ = [
    "NO_MATCH",
    "as_list",
    "as_mapping",
    "describe_types",
    "parse_arguments",
    "parse_object",
    "parse_value",
]

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
_MAX_NESTING: Final = 4  # arrays in arrays that a description names
_MAX_EXAMPLES: Final = 10
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
        CliError: a word isn't an argument or doesn't match the schema, or a required argument is
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
    required = as_list(schema.get("required"))
    missing = [key for key in required if isinstance(key, str) and key not in typed]
    if missing:
        needed = join_names([f"{key}=..." for key in missing], " ")
        raise CliError(f"{owner} needs {join_names(missing, ' and ')}: add {needed}")
    return typed


def describe_types(schema: Any, root: _Schema, depth: int = 0) -> str:
    """Return the types or values that a schema allows, as text."""
    choices = _allowed_values(schema, root)
    if choices is not None:
        return join_names([json.dumps(choice, ensure_ascii=False) for choice in choices], " or ")
    allowed = _allowed_types(schema, root)
    if allowed == _ALL_TYPES:
        return "anything"
    names = [
        name
        for name in ("string", *_TYPE_ORDER)
        if name in allowed and not (name == "integer" and "number" in allowed)
    ]
    items = _resolve(schema, root).get("items")
    if names == ["array"] and isinstance(items, Mapping) and depth < _MAX_NESTING:
        return f"array of {describe_types(items, root, depth + 1)}"
    return " or ".join(names)


def parse_object(word: str) -> dict[str, Any]:
    """Decode a word that begins with `{`.

    Raises:
        CliError: it isn't a JSON object, or cannot be sent as UTF-8.
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
    properties = as_mapping(schema.get("properties"))
    # By JSON Schema, a schema that lists properties and doesn't mention others allows any. Here, a
    # name that isn't listed is more likely a mistake.
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
                for choice in choices[:_MAX_EXAMPLES]
            ]
        raise CliError(
            f"{key} must be {describe_types(wanted, schema)}, not {text!r}."
            f" Write for example {join_names(examples, ' or ')}"
        )
    return value


def parse_value(text: str, allowed: frozenset[str]) -> Any:
    """Convert `text` to a value of an allowed JSON type; `NO_MATCH` if it has none of these types.

    Raises:
        CliError: the text isn't UTF-8.
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
        ValueError: the text isn't strict JSON.
        CliError: the text isn't UTF-8.
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


def _allowed_types(schema: Any, root: _Schema) -> frozenset[str]:
    """Return the JSON types that a schema allows."""
    return _TypesOfSchema(root).find(schema)


class _TypesOfSchema:
    """The JSON types that parts of the schema `root` allow. Each part is evaluated once.

    Otherwise references in `anyOf` would take exponential time.
    """

    def __init__(self, root: _Schema) -> None:
        self._root = root
        self._found: dict[int, frozenset[str]] = {}  # by the `id` of a part, which `root` keeps

    def find(self, schema: Any, depth: int = 0) -> frozenset[str]:
        if not isinstance(schema, Mapping) or depth > _MAX_REFERENCES:
            return _ALL_TYPES
        if id(schema) not in self._found:
            self._found[id(schema)] = _ALL_TYPES  # for references to itself
            self._found[id(schema)] = self._evaluate(schema, depth + 1)
        return self._found[id(schema)]

    def _evaluate(self, schema: _Schema, depth: int) -> frozenset[str]:
        allowed = _ALL_TYPES
        names = schema.get("type")
        if names is not None:
            allowed &= _with_integers([names] if isinstance(names, str) else as_list(names))
        for choices in as_list(schema.get("enum")), [schema["const"]] if "const" in schema else []:
            if choices:
                allowed &= _with_integers(_type_of(choice) for choice in choices)
        for keyword in "anyOf", "oneOf":
            members = as_list(schema.get(keyword))
            if members:
                allowed &= frozenset().union(*(self.find(member, depth) for member in members))
        for member in as_list(schema.get("allOf")):
            allowed &= self.find(member, depth)
        if "$ref" in schema:
            allowed &= self.find(_resolve_pointer(schema["$ref"], self._root), depth)
        return allowed or _ALL_TYPES


def _with_integers(names: Iterable[Any]) -> frozenset[str]:
    found = frozenset(name for name in names if isinstance(name, str))
    return found | {"integer"} if "number" in found else found


def _allowed_values(schema: Any, root: _Schema) -> list[Any] | None:
    """Return the values of `const` or `enum`, None if the schema has neither."""
    schema = _resolve(schema, root)
    if "const" in schema:
        return [schema["const"]]
    return as_list(schema.get("enum")) or None


def _resolve(schema: Any, root: _Schema) -> _Schema:
    """Follow `$ref` to a schema without one."""
    for _ in range(_MAX_REFERENCES):
        if not isinstance(schema, Mapping) or "$ref" not in schema:
            break
        schema = _resolve_pointer(schema["$ref"], root)
    return as_mapping(schema)


def _resolve_pointer(reference: Any, root: _Schema) -> Any:
    """Resolve a JSON Pointer (RFC 6901) within the schema. Return None for any other reference."""
    found: Any = root
    if not isinstance(reference, str) or not reference.startswith("#"):
        return None
    for part in unquote(reference[1:]).split("/")[1:]:
        found = as_mapping(found).get(part.replace("~1", "/").replace("~0", "~"))
    return found


def _type_of(value: Any) -> str:
    return _TYPE_NAMES[type(value)]


def as_mapping(value: Any) -> Mapping[str, Any]:
    """Return a part of a schema if it is an object, as it should be, else an empty one."""
    return value if isinstance(value, Mapping) else {}


def as_list(value: Any) -> list[Any]:
    """Return a part of a schema if it is an array, as it should be, else an empty one."""
    return value if isinstance(value, list) else []
