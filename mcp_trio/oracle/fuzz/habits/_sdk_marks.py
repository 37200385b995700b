"""The marks by which a server shows the SDK that it was built with.

1. A mark is in what the SDK's own code writes, such as the order of members, or the text of an
   error that no handler of the author has seen.
2. A single mark can be imitated or a coincidence. So a server counts as built with an SDK only if
   it shows several marks of it, and none that the SDK doesn't have.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from mcp_core.trace import TraceLine
    from mcp_trio.oracle.fuzz._case import Step

__all__ = [
    "PYTHON_1",
    "PYTHON_2",
    "TYPESCRIPT",
    "ZOD_CURSOR",
    "find_marks",
    "has_framework_mark",
    "list_method",
    "mark_steps",
    "zod_issues",
]

TYPESCRIPT: Final = "the official TypeScript SDK"
PYTHON_1: Final = "the official Python SDK 1.x"
PYTHON_2: Final = "the official Python SDK 2.x"

ZOD_CURSOR: Final = "the error of a wrong cursor is a list of zod's problems"

# What FastMCP, and the SDKs' own class of that kind, name the schema of a function's arguments.
_ARGUMENTS: Final = "Arguments"
_FASTMCP: Final = ("fastmcp", "_fastmcp")
_UNKNOWN: Final = "mcp-trio-fuzz/none"  # a method that no server has
_LISTS: Final = {"tools": "tools/list", "prompts": "prompts/list", "resources": "resources/list"}
_CURSOR: Final = 5  # no cursor: cursors are strings
_MEMBERS: Final = 3  # a shorter list of members is sorted by chance


class _Evidence(NamedTuple):
    """A server's messages for the steps of `mark_steps`.

    Attributes:
        results: its responses with results, their members in order.
        unknown: its error for a method that doesn't exist, or {}.
        cursor: its error for a cursor that isn't a string, or {}.
        entries: the entries of its lists.
    """

    results: Sequence[Mapping[str, Any]]
    unknown: Mapping[str, Any]
    cursor: Mapping[str, Any]
    entries: Sequence[Mapping[str, Any]]


def list_method(capabilities: Mapping[str, Any]) -> str:
    """Return the method of a list that a server with these capabilities has, or ""."""
    return next((_LISTS[each] for each in _LISTS if each in capabilities), "")


def mark_steps(capabilities: Mapping[str, Any]) -> list[Step]:
    """Return the steps that make a server with these capabilities show its marks."""
    method = list_method(capabilities)
    steps: list[Step] = [("request", _UNKNOWN, {}, "int")]
    if method:
        steps += [
            ("request", method, {}, "int"),
            ("request", method, {"cursor": _CURSOR}, "int"),
        ]
    return [*steps, ("wait",)]


def find_marks(lines: Iterable[TraceLine]) -> dict[str, frozenset[str]]:
    """Return the marks that a conversation with `mark_steps` shows, each with its SDKs."""
    evidence = _read_evidence(lines)
    return {name: sdks for name, (sdks, shows) in _MARKS.items() if shows(evidence)}


def has_framework_mark(
    tools: Sequence[Mapping[str, Any]], others: Sequence[Mapping[str, Any]] = ()
) -> bool:
    """Return True if all lists are as those of FastMCP, or of the SDK's class of that kind.

    Such a class finds prompts and resources itself. With the low-level server of the same SDK the
    author's own code does, and writes the texts of its errors.

    Args:
        tools: the server's tools.
        others: its prompts and resources.
    """
    entries = [*tools, *others]
    if entries and all(_has_fastmcp_meta(each) for each in entries):
        return True
    titles = [_title_of(each) for each in tools]
    return all(each.endswith(_ARGUMENTS) for each in titles) and any(
        title == f"{tool.get('name')}{_ARGUMENTS}"
        for title, tool in zip(titles, tools, strict=True)
    )


def _has_fastmcp_meta(entry: Mapping[str, Any]) -> bool:
    meta = entry.get("_meta")
    return isinstance(meta, dict) and any(isinstance(meta.get(each), dict) for each in _FASTMCP)


def _title_of(tool: Mapping[str, Any]) -> str:
    schema = tool.get("inputSchema")
    title = schema.get("title") if isinstance(schema, dict) else None
    return title if isinstance(title, str) else ""


def zod_issues(text: Any) -> list[dict[str, Any]]:
    """Return the problems that zod, the TypeScript SDK's validator, has written as JSON, or []."""
    if not isinstance(text, str):
        return []
    try:
        found = json.loads(text[text.index("[") :])
    except (ValueError, RecursionError):
        return []
    if not isinstance(found, list):
        return []
    shown = all(
        isinstance(each, dict)
        and isinstance(each.get("code"), str)
        and isinstance(each.get("message"), str)
        and isinstance(each.get("path"), list)
        for each in found
    )
    return found if shown else []


def _read_evidence(lines: Iterable[TraceLine]) -> _Evidence:
    asked: dict[Any, tuple[Any, Any]] = {}  # method and cursor by id
    results: list[Mapping[str, Any]] = []
    unknown: Mapping[str, Any] = {}
    cursor: Mapping[str, Any] = {}
    entries: list[Mapping[str, Any]] = []
    for line in lines:
        message = _decoded(line.raw)
        id = message.get("id")
        if not isinstance(id, int | str):
            continue
        if line.sender == "client":
            params = message.get("params")
            asked[id] = message.get("method"), params.get("cursor") if params else None
            continue
        method, asked_cursor = asked.get(id, (None, None))
        result, error = message.get("result"), message.get("error")
        if isinstance(result, dict):
            results.append(message)
            lists = [each for each in result.values() if isinstance(each, list)]
            entries += [each for found in lists for each in found if isinstance(each, dict)]
        elif isinstance(error, dict) and method == _UNKNOWN:
            unknown = error
        elif isinstance(error, dict) and asked_cursor is not None:
            cursor = error
    return _Evidence(results, unknown, cursor, entries)


def _decoded(raw: str | None) -> dict[str, Any]:
    try:
        found = json.loads(raw or "")
    except (ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}


def _has_result_first(evidence: _Evidence) -> bool:
    order = ["result", "jsonrpc", "id"]
    return bool(evidence.results) and all(list(each) == order for each in evidence.results)


def _has_experimental(evidence: _Evidence) -> bool:
    found = [each["result"].get("capabilities") for each in evidence.results]
    return any(isinstance(each, dict) and each.get("experimental") == {} for each in found)


def _has_sorted_entries(evidence: _Evidence) -> bool:
    # `_meta` comes first or last.
    found = [[name for name in each if name != "_meta"] for each in evidence.entries]
    long = [each for each in found if len(each) >= _MEMBERS]
    return bool(long) and all(each == sorted(each) for each in long)


def _is_python_text(error: Mapping[str, Any]) -> bool:
    return error == {"code": -32602, "message": "Invalid request parameters", "data": ""}


_PYTHON: Final = frozenset({PYTHON_1, PYTHON_2})
# What each says of the server, the SDKs that show it, and how it is found.
_MARKS: Final[dict[str, tuple[frozenset[str], Callable[[_Evidence], bool]]]] = {
    "responses are result, jsonrpc, id, in this order": (
        frozenset({TYPESCRIPT}),
        _has_result_first,
    ),
    "the error of an unknown method has no data": (
        frozenset({TYPESCRIPT}),
        lambda it: it.unknown == {"code": -32601, "message": "Method not found"},
    ),
    ZOD_CURSOR: (
        frozenset({TYPESCRIPT}),
        lambda it: any(each["path"] == ["params", "cursor"] for each in _issues_of(it.cursor)),
    ),
    "the error of a wrong cursor is `Invalid request parameters` with empty data": (
        _PYTHON,
        lambda it: _is_python_text(it.cursor),
    ),
    "the error of an unknown method is `Invalid request parameters`": (
        frozenset({PYTHON_1}),
        lambda it: _is_python_text(it.unknown),
    ),
    "an empty capability experimental": (frozenset({PYTHON_1}), _has_experimental),
    "the error of an unknown method has the method as its data": (
        frozenset({PYTHON_2}),
        lambda it: it.unknown == {"code": -32601, "message": "Method not found", "data": _UNKNOWN},
    ),
    "members of lists' entries are sorted": (frozenset({PYTHON_2}), _has_sorted_entries),
}


def _issues_of(error: Mapping[str, Any]) -> list[dict[str, Any]]:
    return zod_issues(error.get("message"))
