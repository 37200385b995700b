"""Arguments for a tool, made from its input schema without chance.

The smallest valid arguments come first. All others differ from them in one member. Whether they are
valid says the schema's validator, so a schema that this file reads wrongly costs cases, and no
false finding.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, Final

from mcp_core.drivers import InvalidSchema, UntrustedSchema

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping

__all__ = ["ToolSample", "sample_of"]

MAX_DEPTH: Final = 6  # of a value, and of references
MAX_MEMBERS: Final = 20  # of an object, and values of an enumeration
_FORMATS: Final[Mapping[str, str]] = {
    "date-time": "2026-07-28T12:00:00Z",
    "date": "2026-07-28",
    "time": "12:00:00Z",
    "duration": "P1D",
    "email": "a@example.com",
    "hostname": "example.com",
    "ipv4": "127.0.0.1",
    "ipv6": "::1",
    "uri": "https://example.com/a",
    "uuid": "00000000-0000-4000-8000-000000000000",
}
_OTHER_TYPES: Final[tuple[Any, ...]] = (7, "x", [], {}, None, True)


class ToolSample:
    """A tool, and arguments for it.

    Args:
        name: the tool's name.
        schema: its input schema.
        validator: the same schema, compiled.
        arguments: the smallest valid arguments.

    Attributes:
        is_task: it may be called as a task.
    """

    def __init__(
        self,
        name: str,
        schema: Mapping[str, Any],
        validator: UntrustedSchema,
        arguments: dict[str, Any],
        *,
        is_task: bool,
    ) -> None:
        self.name = name
        self.arguments = arguments
        self.is_task = is_task
        self._validator = validator
        found = schema.get("properties")
        properties = found if isinstance(found, dict) else {}
        self._members = {
            each: _resolved(properties[each], schema, 0) for each in [*properties][:MAX_MEMBERS]
        }
        required = schema.get("required")
        self._required = [each for each in arguments if each in (required or ())]

    def accepts(self, arguments: Any) -> bool:
        """Return True if the schema allows these arguments."""
        try:
            return self._validator.find_error(arguments) is None
        except InvalidSchema:
            return False

    def with_text(self, text: str) -> dict[str, Any] | None:
        """Return valid arguments with a text in them, or None if the tool takes no such text."""
        return self._with_value(text)

    def with_number(self, number: float) -> dict[str, Any] | None:
        """Return valid arguments with a number in them, or None if the tool takes none."""
        return self._with_value(number)

    def with_texts(self, texts: Collection[str]) -> Iterator[dict[str, Any]]:
        """Yield valid arguments with each of the texts, in one member after the other."""
        for name in self._members:
            for text in texts:
                if (arguments := self._with_member(name, text)) is not None:
                    yield arguments

    def _with_value(self, value: Any) -> dict[str, Any] | None:
        found = (self._with_member(name, value) for name in self._members)
        return next((each for each in found if each is not None), None)

    def _with_member(self, name: str, value: Any) -> dict[str, Any] | None:
        schema = self._members[name]
        if not isinstance(schema, dict) or "enum" in schema or "const" in schema:
            return None
        arguments = {**self.arguments, name: value}
        return arguments if self.accepts(arguments) else None

    @property
    def largest(self) -> dict[str, Any]:
        """Valid arguments with each bounded number at its maximum: such calls may take longest."""
        found = dict(self.arguments)
        for name, schema in self._members.items():
            high = schema.get("maximum") if isinstance(schema, dict) else None
            if isinstance(high, int | float) and self.accepts({**found, name: high}):
                found[name] = high
        return found

    def choices(self) -> Iterator[dict[str, Any]]:
        """Yield valid arguments for each value of each enumeration, else the smallest ones."""
        has_choice = False
        for name, schema in self._members.items():
            values = schema.get("enum") if isinstance(schema, dict) else None
            if isinstance(schema, dict) and schema.get("type") == "boolean":
                values = [False, True]
            for value in values[:MAX_MEMBERS] if isinstance(values, list) else ():
                arguments = {**self.arguments, name: value}
                if self.accepts(arguments):
                    has_choice = True
                    yield arguments
        if not has_choice:
            yield self.arguments

    def wrong(self) -> Iterator[Any]:
        """Yield arguments that the schema refuses, each for another reason."""
        candidates: list[Any] = [
            {name: value for name, value in self.arguments.items() if name != each}
            for each in self._required
        ]
        for name, schema in self._members.items():
            candidates += [{**self.arguments, name: each} for each in _wrong_values(schema)]
        candidates.append({**self.arguments, "mcp-trio-fuzz": 1})
        yield from (each for each in candidates if not self.accepts(each))


def sample_of(tool: Mapping[str, Any]) -> ToolSample | None:
    """Return a listed tool's sample, or None if no valid arguments for it are found."""
    schema = tool.get("inputSchema")
    if not isinstance(schema, dict):
        return None
    try:
        validator = UntrustedSchema(schema)
        arguments = _smallest(schema, schema, 0)
        if not isinstance(arguments, dict) or validator.find_error(arguments) is not None:
            return None
    except (InvalidSchema, RecursionError):
        return None
    execution = tool.get("execution")
    support = execution.get("taskSupport") if isinstance(execution, dict) else None
    return ToolSample(
        str(tool["name"]), schema, validator, arguments, is_task=support in ("optional", "required")
    )


def _resolved(schema: Any, root: Mapping[str, Any], depth: int) -> Any:
    """Return a schema with its reference and the first of its alternatives merged into it."""
    if not isinstance(schema, dict) or depth > MAX_DEPTH:
        return schema
    reference = schema.get("$ref")
    if isinstance(reference, str):
        rest = {key: value for key, value in schema.items() if key != "$ref"}
        found = _lookup(root, reference)
        return _resolved({**found, **rest} if isinstance(found, dict) else rest, root, depth + 1)
    for key in ("allOf", "anyOf", "oneOf"):
        branches = schema.get(key)
        if not isinstance(branches, list) or not branches:
            continue
        merged = {name: value for name, value in schema.items() if name != key}
        for each in branches if key == "allOf" else branches[:1]:
            found = _resolved(each, root, depth + 1)
            merged.update(found if isinstance(found, dict) else {})
        return _resolved(merged, root, depth + 1)
    return schema


def _lookup(root: Mapping[str, Any], reference: str) -> Any:
    found: Any = root
    for part in reference.removeprefix("#").split("/")[1 : MAX_MEMBERS + 1]:
        found = found.get(part.replace("~1", "/").replace("~0", "~")) if found else None
        if not isinstance(found, dict):
            return None
    return found


def _smallest(schema: Any, root: Mapping[str, Any], depth: int) -> Any:
    """Return the smallest value of a schema that this file finds. It may be invalid."""
    schema = _resolved(schema, root, depth)
    if not isinstance(schema, dict) or depth > MAX_DEPTH:
        return {}
    if "const" in schema:
        return schema["const"]
    values = schema.get("enum")
    if isinstance(values, list) and values:
        return values[0]
    kind = schema.get("type", "object" if "properties" in schema or not depth else "string")
    if isinstance(kind, list):
        kind = kind[0] if kind else "string"
    if kind in ("integer", "number"):
        return _smallest_number(schema)
    if kind == "string":
        least = schema.get("minLength")
        text = _FORMATS.get(str(schema.get("format")), "")
        return text or "a" * max(1, least if isinstance(least, int) else 0)
    if kind == "array":
        count = schema.get("minItems", 0)
        count = min(count, MAX_MEMBERS) if isinstance(count, int) else 0
        return [_smallest(schema.get("items", {}), root, depth + 1) for _ in range(count)]
    if kind == "object":
        required, properties = schema.get("required"), schema.get("properties")
        properties = properties if isinstance(properties, dict) else {}
        return {
            name: _smallest(properties.get(name, {"type": "string"}), root, depth + 1)
            for name in (required if isinstance(required, list) else ())[:MAX_MEMBERS]
            if isinstance(name, str)
        }
    return {"boolean": False}.get(str(kind))


def _smallest_number(schema: Mapping[str, Any]) -> float:
    low, above = schema.get("minimum"), schema.get("exclusiveMinimum")
    if isinstance(above, int | float):
        low = math.floor(above) + 1
    low = low if isinstance(low, int | float) else 0
    high = schema.get("maximum")
    found = min(low, high) if isinstance(high, int | float) else low
    return max(1, found) if not isinstance(high, int | float) or high >= 1 else found


def _wrong_values(schema: Any) -> Iterator[Any]:
    """Yield values of another type than a member's, and values just outside its ranges."""
    if not isinstance(schema, dict):
        return
    yield from _OTHER_TYPES
    for key, step in (("minimum", -1), ("maximum", 1)):
        edge = schema.get(key)
        if isinstance(edge, int | float):
            yield edge + step
    most = schema.get("maxLength")
    if isinstance(most, int) and most < 100_000:
        yield "a" * (most + 1)
    if schema.get("minLength"):
        yield ""
    if isinstance(schema.get("enum"), list):
        yield "mcp-trio-fuzz-none"
