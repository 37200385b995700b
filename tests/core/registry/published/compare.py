"""Compare our schemas with the peers', once both are written in one way.

    python -m tests.core.registry.published.compare

writes `differences.txt`: each difference with a verdict, "theirs" or "ours", after whose schema is
right. `plain` says what is equivalent: texts, references, the order of members, and defaults of
JSON Schema that are written out.
"""

from __future__ import annotations

import json
import textwrap
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final, NamedTuple

import msgspec

from mcp_core import DIALECTS
from mcp_core.registry.entries._tools import ToolEntry
from mcp_core.types._revisions import R_2025_11_25
from tests.core.registry.published import function_of, read_signatures

__all__ = ["DIFFERENCES", "differences", "kinds_of", "list_differences", "plain"]

DIFFERENCES: Final = Path(__file__).with_name("differences.txt")

# Texts for people, and marks of a peer's own.
_LEFT_OUT = frozenset({"title", "description", "examples", "x-fastmcp-wrap-result"})
_ABSENT = "absent"
# Names of fields that have another name in JSON, in models of the servers.
ALIASED: Final = ("as_json", "from_")


def plain(schema: Any, definitions: Any = None, seen: tuple[str, ...] = ()) -> Any:
    """Return a schema without texts and references, written in one of several equal ways.

    A definition that contains itself stays a reference where it does.
    """
    if isinstance(schema, list):
        return [plain(part, definitions, seen) for part in schema]
    if not isinstance(schema, dict):
        return schema
    definitions = {**(definitions or {}), **schema.get("$defs", {})}
    name = schema.get("$ref", "").removeprefix("#/$defs/")
    if name and name not in seen:
        rest = {key: value for key, value in schema.items() if key not in ("$ref", "$defs")}
        return plain({**definitions[name], **rest}, definitions, (*seen, name))
    made: dict[str, Any] = {}
    for key, value in schema.items():
        if key == "properties":
            made[key] = {each: plain(part, definitions, seen) for each, part in value.items()}
        elif key in ("default", "enum", "const", "required"):
            made[key] = value
        elif key not in _LEFT_OUT and key != "$defs":
            made[key] = plain(value, definitions, seen)
    return _in_one_way(made)


def _in_one_way(made: dict[str, Any]) -> dict[str, Any]:
    if "const" in made:
        made["enum"] = [made.pop("const")]
    if "enum" in made:
        made["enum"] = sorted(made["enum"], key=repr)
    if "anyOf" in made:
        members: list[Any] = []
        for member in made["anyOf"]:
            # A union in a union, which has nothing else, is one union.
            inner = member["anyOf"] if member.keys() == {"anyOf"} else [member]
            members += [each for each in inner if each not in members]
        made["anyOf"] = sorted(members, key=repr)
    if made.get("additionalProperties") in (True, {}):
        del made["additionalProperties"]  # the default (JSON Schema, core, 10.3.2.3)
    if made.get("items") == {}:
        del made["items"]  # as well
    if "required" in made:
        made["required"] = sorted(made["required"])
        if not made["required"]:
            del made["required"]
    if made.get("type") == "object" and made.get("properties") == {}:
        del made["properties"]
    return made


def differences(theirs: Any, ours: Any, place: str = "") -> Iterator[tuple[str, Any, Any]]:
    """Yield the place, their value and our value, where two plain schemas differ."""
    if isinstance(theirs, dict) and isinstance(ours, dict):
        for key in sorted(theirs.keys() | ours.keys()):
            yield from differences(
                theirs.get(key, _ABSENT), ours.get(key, _ABSENT), f"{place}/{key}"
            )
    elif theirs != ours or type(theirs) is not type(ours):
        yield place, theirs, ours


class Kind(NamedTuple):
    """Differences of one cause. `verdict` says whose schema is right: theirs, ours, equivalent."""

    verdict: str
    text: str
    matches: Callable[[str, str, Any, Any], bool]  # of side, place, their value, our value


KINDS: Final = (
    Kind(
        "ours",
        "An unknown argument is refused, and the schema says so. mcp drops it without a word.",
        lambda side, place, theirs, ours: (
            (side, place, ours) == ("input", "/additionalProperties", False)
        ),
    ),
    Kind(
        "ours",
        "A text is content. Peers send it a second time, as structured data of a schema.",
        lambda side, place, theirs, ours: (
            side == "output" and ours is None and _is_wrapped_text(theirs)
        ),
    ),
    Kind(
        "ours",
        "A dictionary is an object, and its schema says so. mcp has none for `Dict[str, Any]`.",
        lambda side, place, theirs, ours: (
            (side, theirs, ours) == ("output", None, {"type": "object"})
        ),
    ),
    Kind(
        "ours",
        "A bare `dict` is an object as well. mcp puts it into another one.",
        lambda side, place, theirs, ours: (
            side == "output"
            and (place, ours) in (("/properties", _ABSENT), ("/required", _ABSENT))
            and theirs in ({"result": {"type": "object"}}, ["result"])
        ),
    ),
    Kind(
        "ours",
        "`x: int = None` may be null. The schema of peers has a default that it forbids.",
        lambda side, place, theirs, ours: (
            side == "input"
            and place.rpartition("/")[2] in ("anyOf", "type", "items")
            and (ours == _ABSENT or (theirs == _ABSENT and {"type": "null"} in ours))
        ),
    ),
    Kind(
        "ours",
        "Bytes are base64 (JSON Schema, validation, 8.3). `binary` is a format of OpenAPI 3.0.",
        lambda side, place, theirs, ours: (
            "'contentEncoding': 'base64'" in str(ours) and "'format': 'binary'" in str(theirs)
        ),
    ),
    Kind(
        "ours",
        "A field has its alias, under which it is sent. FastMCP has its name in Python.",
        lambda side, place, theirs, ours: (
            side == "output"
            and any(f"'{name}'" in str(theirs) and f"'{name}'" not in str(ours) for name in ALIASED)
        ),
    ),
)


def _is_wrapped_text(schema: Any) -> bool:
    return isinstance(schema, dict) and schema.get("properties") in (
        {"result": {"type": "string"}},
        {"result": {"anyOf": [{"type": "null"}, {"type": "string"}]}},
    )


def kinds_of(tool: dict[str, Any]) -> dict[str, list[Kind]]:
    """Return the kinds of differences between a tool's schemas and ours, by peer.

    Raises:
        AssertionError: there is a difference of no kind, or of several.
    """
    entry = ToolEntry(function_of(tool), {}, threads=False)
    made = entry.list_entry(DIALECTS[R_2025_11_25])
    ours = json.loads(msgspec.json.encode([made.input_schema, made.output_schema]))
    found: dict[str, list[Kind]] = {"mcp": [], "fastmcp": []}
    for peer, kinds in found.items():
        for side, theirs, own in zip(("input", "output"), tool[peer], ours, strict=True):
            for place, their_value, our_value in differences(plain(theirs), plain(own)):
                fitting = [k for k in KINDS if k.matches(side, place, their_value, our_value)]
                where = f"{tool['server']} {tool['name']}: {peer} {side}{place}"
                assert len(fitting) == 1, f"{where}: {their_value} and {our_value}"
                kinds += [kind for kind in fitting if kind not in kinds]
    return found


def list_differences() -> str:
    """Return all differences by peer and kind, with the tools that have them."""
    tools = read_signatures()
    by_tool = [kinds_of(tool) for tool in tools]
    lines = []
    for peer in ("mcp", "fastmcp"):
        equal = sum(not found[peer] for found in by_tool)
        lines.append(f"{peer}, equivalent: {equal} tools")
        for kind in KINDS:
            names = [
                tool["name"]
                for tool, found in zip(tools, by_tool, strict=True)
                if kind in found[peer]
            ]
            if names:
                lines.append(f"{peer}, {kind.verdict}, {len(names)} tools: {kind.text}")
                lines += textwrap.wrap(
                    ", ".join(names), 96, initial_indent="    ", subsequent_indent="    "
                )
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    DIFFERENCES.write_text(list_differences(), "utf-8")
