"""The tools, resources and prompts of the server broken on purpose, by revision."""

from __future__ import annotations

from typing import Any, Final

__all__ = [
    "PROMPTS",
    "RESOURCES",
    "REVISIONS",
    "SERVER_INFO",
    "TEMPLATES",
    "TOOLS",
    "Json",
    "find_argument_error",
    "list_tools",
    "span",
]

Json = dict[str, Any]

REVISIONS: Final = ("2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25", "2026-07-28")


def span(since: str, until: str = "") -> tuple[str, ...]:
    """Return the revisions from `since` on and before `until`; "" for up to the newest."""
    end = REVISIONS.index(until) if until else len(REVISIONS)
    return REVISIONS[REVISIONS.index(since) : end]


SERVER_INFO: Final[Json] = {"name": "broken-server", "version": "1.0"}

_SAFE: Final = {"readOnlyHint": True, "openWorldHint": False}


def _tool(
    name: str,
    description: str,
    properties: Json,
    required: tuple[str, ...] = (),
    **more: Any,
) -> Json:
    schema: Json = {"type": "object", "properties": properties, "additionalProperties": False}
    if required:
        schema["required"] = list(required)
    return {
        "name": name,
        "description": description,
        "inputSchema": schema,
        "annotations": _SAFE,
        **more,
    }


TOOLS: Final = (
    _tool("echo", "Return the text.", {"text": {"type": "string"}}, ("text",)),
    _tool(
        "add",
        "Return the sum of two integers.",
        {"a": {"type": "integer"}, "b": {"type": "integer"}},
        ("a", "b"),
        outputSchema={
            "type": "object",
            "properties": {"sum": {"type": "integer"}},
            "required": ["sum"],
        },
    ),
    _tool("fail", "Return an error of the tool.", {}),
    _tool(
        "count",
        "Count up, with progress and log messages.",
        {
            "steps": {"type": "integer", "minimum": 0, "maximum": 20},
            "milliseconds": {"type": "integer", "minimum": 0, "maximum": 200},
        },
        ("steps",),
    ),
    _tool(
        "ask",
        "Ask the client for input.",
        {"kind": {"type": "string", "enum": ["elicitation", "sampling", "roots"]}},
    ),
    _tool("change", "Announce that lists and a resource changed.", {}),
    _tool(
        "locate",
        "Return the region, which a header repeats.",
        {"region": {"type": "string", "x-mcp-header": "Region"}},
        ("region",),
    ),
    _tool(
        "work",
        "Work for a while. It can run as a task.",
        {
            "milliseconds": {"type": "integer", "minimum": 0, "maximum": 2_000},
            "outcome": {"type": "string", "enum": ["done", "tool-error", "error", "input"]},
        },
        execution={"taskSupport": "optional"},
    ),
)

RESOURCES: Final = (
    {"uri": "note:///one", "name": "one", "mimeType": "text/plain", "size": 4},
    {"uri": "note:///two", "name": "two", "mimeType": "text/plain", "size": 4},
    {"uri": "data:///zero", "name": "zero", "mimeType": "application/octet-stream", "size": 3},
)
TEMPLATES: Final = ({"uriTemplate": "note:///{name}", "name": "note", "mimeType": "text/plain"},)
PROMPTS: Final = (
    {
        "name": "greet",
        "description": "A greeting.",
        "arguments": [{"name": "name", "description": "Who is greeted.", "required": True}],
    },
    {"name": "plain", "description": "A prompt without arguments."},
)


def list_tools(revision: str) -> list[Json]:
    """Return the tools as a revision has them."""
    return [_as_of(revision, tool) for tool in TOOLS]


def _as_of(revision: str, tool: Json) -> Json:
    since = {
        "annotations": span("2025-03-26"),
        "outputSchema": span("2025-06-18"),
        "execution": span("2025-11-25", "2026-07-28"),
    }
    found = {key: value for key, value in tool.items() if revision in since.get(key, REVISIONS)}
    if revision == "2026-07-28":
        return found
    properties = {
        name: {key: value for key, value in each.items() if key != "x-mcp-header"}
        for name, each in tool["inputSchema"]["properties"].items()
    }
    return {**found, "inputSchema": {**tool["inputSchema"], "properties": properties}}


_TYPES: Final[dict[str, type]] = {"string": str, "integer": int}


def find_argument_error(tool: Json, arguments: Any) -> str | None:
    """Return what is wrong with the arguments of a tool, or None."""
    schema = tool["inputSchema"]
    if not isinstance(arguments, dict):
        return "the arguments are not an object"
    for name in schema.get("required", ()):
        if name not in arguments:
            return f"the argument {name} is missing"
    for name, value in arguments.items():
        wanted = schema["properties"].get(name)
        if wanted is None:
            return "an argument is unknown"
        if wanted["type"] == "integer" and isinstance(value, float) and value.is_integer():
            value = arguments[name] = int(value)
        if not isinstance(value, _TYPES[wanted["type"]]) or isinstance(value, bool):
            return f"the argument {name} has another type than {wanted['type']}"
        if "enum" in wanted and value not in wanted["enum"]:
            return f"the argument {name} is not one of {', '.join(wanted['enum'])}"
        if not wanted.get("minimum", value) <= value <= wanted.get("maximum", value):
            return f"the argument {name} is out of range"
    return None
