"""Arguments from words: `days=3` is a number if the tool's schema wants one, and text if it wants text.

Rules of this file:

1. The schema decides how a text is read, never the look of the text: `code=007` is text for a tool that wants text.
2. Where several types are allowed, the text is JSON if that fits, else text.
3. What does not fit is refused here, with what to write instead. Only what someone typed is checked; whether the values
   make sense is the server's to say.
4. A JSON object is not checked at all. It is how to send what this file would not let through.

Only as much of JSON Schema is understood as tells types: `type`, `enum`, `const`, the combining keywords and references
within the schema. What it does not understand allows everything.
"""

from __future__ import annotations

import json
import math
import shlex
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final
from urllib.parse import unquote

from ._names import no_such_argument
from ._problem import Problem

__all__ = ["MISFIT", "arguments_from", "describe", "object_in", "value_of"]

_Schema = Mapping[str, Any]

_ORDER: Final = ("integer", "number", "boolean", "array", "object", "null")
_ALL: Final = frozenset({"string", *_ORDER})
_NAMES: Final = {
    str: "string",
    int: "integer",
    float: "number",
    bool: "boolean",
    type(None): "null",
    list: "array",
    dict: "object",
}
MISFIT: Final = object()
_DEEPEST: Final = 16  # references may go round in circles
_EXAMPLES: Final = {
    "integer": "3",
    "number": "1.5",
    "boolean": "true",
    "null": "null",
    "array": "'[1, 2]'",
    "object": "'{\"a\": 1}'",
}


def arguments_from(words: Sequence[str], schema: _Schema, whose: str) -> dict[str, Any]:
    """The arguments that `schema` asks for. `whose` they are is for complaints: "the tool price".

    Raises:
        Problem: a word is no argument, or does not fit the schema; or one that is needed is missing.
    """
    typed: dict[str, Any] = {}
    given: dict[str, Any] | None = None
    for word in words:
        key, equals, text = word.partition("=")
        if word.startswith("{"):
            given = (given or {}) | object_in(word)
        elif equals and key:
            typed[key] = _value(key, text, schema, whose)
        else:
            raise Problem(f"{word!r} is no argument: write KEY=VALUE, or all arguments as one JSON object")
    if given is not None:
        return typed | given
    missing = [key for key in _list(schema.get("required")) if key not in typed]
    if missing:
        needed = " ".join(f"{key}=..." for key in missing)
        raise Problem(f"{whose} needs {' and '.join(missing)}: add {needed}")
    return typed


def describe(schema: Any, root: _Schema) -> str:
    """The types that a schema allows, in words."""
    choices = _choices(schema, root)
    if choices is not None:
        return " or ".join(json.dumps(choice, ensure_ascii=False) for choice in choices)
    allowed = _types(schema, root)
    if allowed == _ALL:
        return "anything"
    names = [
        name
        for name in ("string", *_ORDER)
        if name in allowed and not (name == "integer" and "number" in allowed)
    ]
    items = _resolved(schema, root).get("items")
    if names == ["array"] and isinstance(items, Mapping):
        return f"array of {describe(items, root)}"
    return " or ".join(names)


def object_in(word: str) -> dict[str, Any]:
    """The JSON object that a word beginning with `{` is.

    Raises:
        Problem: it is none.
    """
    try:
        found = _json(word)
        json.dumps(found, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        raise Problem(f"{word!r} is no text that can be sent: one of its \\u is half a character") from None
    except ValueError as exc:
        raise Problem(
            f'{word!r} is not JSON: {exc}. An object looks like {{"city": "Oslo", "days": 3}}'
        ) from None
    assert isinstance(found, dict)
    return found


def _value(key: str, text: str, schema: _Schema, whose: str) -> Any:
    properties = _mapping(schema.get("properties"))
    # A schema that names some properties and says nothing of others allows them; here it is rather a slip of the hand.
    others = schema.get("additionalProperties", not properties)
    if key not in properties and others is False:
        raise no_such_argument(whose, key, list(properties))
    wanted = properties.get(key, others)
    allowed, choices = _types(wanted, schema), _choices(wanted, schema)
    value = value_of(text, allowed)
    if value is MISFIT or (choices is not None and value not in choices):
        examples = [f"{key}={_EXAMPLES[name]}" for name in _ORDER if name in allowed]
        if choices is not None:
            examples = [
                shlex.join([f"{key}={choice if isinstance(choice, str) else json.dumps(choice)}"])
                for choice in choices
            ]
        raise Problem(
            f"{key} must be {describe(wanted, schema)}, not {text!r}. Write for example {' or '.join(examples)}"
        )
    return value


def value_of(text: str, allowed: frozenset[str]) -> Any:
    """The value that `text` stands for where these types are allowed; `MISFIT` for none of them.

    Raises:
        Problem: it is not UTF-8.
    """
    try:
        value = _json(text)
    except ValueError:
        value = text
    if isinstance(value, float) and value.is_integer() and "number" not in allowed:
        value = int(value)  # 3.0 is an integer in JSON Schema
    if not isinstance(value, str) and _type_of(value) in allowed:
        return value
    return text if "string" in allowed else MISFIT


def _json(text: str) -> Any:
    """Decode, strictly.

    Raises:
        ValueError: it is no JSON, or JSON that cannot be sent.
    """
    try:
        text.encode()
        return json.loads(text, parse_constant=_refuse, parse_float=_finite)
    except UnicodeEncodeError:
        raise Problem(f"{text!r} is not UTF-8") from None
    except RecursionError:
        raise ValueError("nested too deeply") from None


def _refuse(word: str) -> float:
    raise ValueError(f"{word} is no JSON number")


def _finite(digits: str) -> float:
    number = float(digits)
    return number if math.isfinite(number) else _refuse(digits)


# --- What a schema says ------------------------------------------------------------------------------------------------


def _types(schema: Any, root: _Schema, depth: int = 0) -> frozenset[str]:
    """The JSON types that a schema allows."""
    allowed = _ALL
    if not isinstance(schema, Mapping) or depth > _DEEPEST:
        return allowed
    names = schema.get("type")
    if names is not None:
        allowed &= _with_integers([names] if isinstance(names, str) else _list(names))
    for choices in _list(schema.get("enum")), [schema["const"]] if "const" in schema else []:
        if choices:
            allowed &= _with_integers(_type_of(choice) for choice in choices)
    for keyword in "anyOf", "oneOf":
        members = _list(schema.get(keyword))
        if members:
            allowed &= frozenset().union(*(_types(member, root, depth + 1) for member in members))
    for member in _list(schema.get("allOf")):
        allowed &= _types(member, root, depth + 1)
    if "$ref" in schema:
        allowed &= _types(_pointed_to(schema["$ref"], root), root, depth + 1)
    return allowed or _ALL


def _with_integers(names: Iterable[str]) -> frozenset[str]:
    found = frozenset(names)
    return found | {"integer"} if "number" in found else found


def _choices(schema: Any, root: _Schema) -> list[Any] | None:
    """The values of an enumeration, None if it is none."""
    schema = _resolved(schema, root)
    if "const" in schema:
        return [schema["const"]]
    return _list(schema.get("enum")) or None


def _resolved(schema: Any, root: _Schema) -> _Schema:
    """The schema behind a plain reference."""
    for _ in range(_DEEPEST):
        if not isinstance(schema, Mapping) or "$ref" not in schema:
            break
        schema = _pointed_to(schema["$ref"], root)
    return _mapping(schema)


def _pointed_to(reference: Any, root: _Schema) -> Any:
    """What a JSON Pointer (RFC 6901) into the schema itself points to; nothing for any other reference."""
    found: Any = root
    if not isinstance(reference, str) or not reference.startswith("#"):
        return None
    for part in unquote(reference[1:]).split("/")[1:]:
        found = _mapping(found).get(part.replace("~1", "/").replace("~0", "~"))
    return found


def _type_of(value: Any) -> str:
    return _NAMES[type(value)]


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []
