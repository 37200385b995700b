"""The readings of each result with one part broken, in `broken_results.txt`.

    python -m tests.core.protocol.messages.broken_results

writes the file again. A change that can be read exactly is not listed.
"""

from __future__ import annotations

import json
import re
from copy import deepcopy
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import msgspec

from mcp_core import DIALECTS
from mcp_core import types as t
from mcp_core.protocol.jsonrpc._codec import InvalidPayload, decode, encode, reader
from mcp_core.protocol.messages._lenient_results import LenientReader
from mcp_core.protocol.messages._responses import OutgoingRequest, read_leniently, response_event
from mcp_core.protocol.revisions._methods import METHODS
from tests.harness.jsonrpc import VERSIONS, D, E
from tests.kept import read_kept, write_kept

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["broken_results", "kept_broken_results", "readings_of"]

_FILE: Final = Path(__file__).with_name("broken_results.txt")
# Texts of msgspec, which another release may change.
_WORDS: Final = re.compile(
    r"(?:Expected `[^`]*`, got `[^`]*`|Object missing required field|Invalid enum value '[^']*'"
    r"|Invalid value '[^']*'|JSON is malformed: [^(]*)(?: - at `[^`]*`| ?\(byte \d+\))?"
)
_TEXT: Final = {"type": "text", "text": "hi"}
_TOOL: Final = {
    "name": "good",
    "inputSchema": {"type": "object"},
    "annotations": {"readOnlyHint": True},
    "icons": [{"src": "https://a/i.png", "sizes": ["48x48"]}],
}
_RESULTS: Final[dict[str, tuple[type, dict[str, Any]]]] = {
    "tools/list": (t.ListToolsResult, {"tools": [_TOOL], "nextCursor": "n"}),
    "prompts/list": (
        t.ListPromptsResult,
        {"prompts": [{"name": "p", "arguments": [{"name": "a", "required": True}]}]},
    ),
    "resources/list": (
        t.ListResourcesResult,
        {"resources": [{"name": "r", "uri": "x:1?token=secret", "size": 5}]},
    ),
    "resources/read": (
        t.ReadResourceResult,
        {"contents": [{"uri": "x:1", "text": "t"}, {"uri": "x:2", "blob": "YQ=="}]},
    ),
    "prompts/get": (
        t.GetPromptResult,
        {"description": "d", "messages": [{"role": "user", "content": _TEXT}]},
    ),
    "tools/call": (
        t.CallToolResult,
        {"content": [_TEXT, {"type": "odd", "x": 1}], "isError": False, "structuredContent": {}},
    ),
    "completion/complete": (
        t.CompleteResult,
        {"completion": {"values": ["a"], "total": 2, "hasMore": True}},
    ),
    "initialize": (
        t.InitializeResult,
        {
            "protocolVersion": D,
            "capabilities": {"tools": {"listChanged": True}, "logging": {}},
            "serverInfo": {"name": "s", "version": "1"},
            "instructions": "i",
        },
    ),
    "server/discover": (
        t.DiscoverResult,
        {"resultType": "complete", "supportedVersions": [E], "capabilities": {"prompts": {}}},
    ),
    "sampling/createMessage": (
        t.CreateMessageResult,
        {"role": "assistant", "model": "m", "content": [_TEXT], "stopReason": "endTurn"},
    ),
    "elicitation/create": (t.ElicitResult, {"action": "accept", "content": {"a": "b"}}),
    "roots/list": (t.ListRootsResult, {"roots": [{"uri": "file:///a", "name": "n"}]}),
    "tasks/get": (
        t.GetTaskResult,
        {
            "resultType": "complete",
            "taskId": "t",
            "status": "completed",
            "createdAt": "c",
            "lastUpdatedAt": "u",
            "ttl": None,
            "ttlMs": 5,
            "result": {"content": []},
        },
    ),
}
_VALUES: Final[list[Any]] = [None, 5, "x", [], {}, [5], True]
# Results that break in more than one part.
_OTHERS: Final[list[tuple[type, Any]]] = [
    (t.ListToolsResult, {"tools": [_TOOL, {"name": "b"}, {"name": 5}, 5, {"x": 1}, "y"]}),
    (t.ListToolsResult, {"tools": [{"name": "b"}, {"name": "c" * 70}, 5]}),
    (t.ListToolsResult, {"tools": [{**_TOOL, "icons": [5, {"src": 5}]}, {**_TOOL, "title": 5}]}),
    (t.ListToolsResult, []),
    (t.ListToolsResult, "x"),
    (t.CallToolResult, {"content": "text"}),
    (t.CallToolResult, {"content": _TEXT}),
    (t.CallToolResult, {"content": [[_TEXT], "text", [_TEXT, _TEXT], [], 5, {"type": 5}]}),
    (t.CallToolResult, {"isError": True}),
    (t.CallToolResult, {"isError": False}),
    (t.CallToolResult, {"structuredContent": {"a": 1}}),
    *((t.CallToolResult, {"content": [], "isError": each}) for each in ("False", "no", 0, "TRUE")),
    (
        t.CallToolResult,
        {"content": [{"type": "text", "text": 5, "x": "\u202e"}, {"type": "\u202e"}]},
    ),
    (t.CallToolResult, {"content": [{"type": "resource_link", "uri": "x:?key=secret"}]}),
    (t.ListResourcesResult, {"resources": [{"uri": "https://u:p@a/b?c=d"}, {"name": "r"}]}),
    (t.GetPromptResult, {"messages": [{"role": "user", "content": "text"}]}),
    (t.GetPromptResult, {"messages": [{"role": "user", "content": [_TEXT]}]}),
    (t.GetPromptResult, {"messages": [{"role": "x", "content": _TEXT}]}),
    (t.CreateMessageResult, {"role": "assistant", "model": "m", "content": [_TEXT, 5]}),
    (t.CreateMessageResult, {"role": "assistant", "model": "m", "content": {"type": "odd"}}),
    (t.InitializeResult, {"protocolVersion": D, "capabilities": {"tools": False, "logging": 5}}),
    (t.ElicitResult, {"action": "accept", "content": {"a": {}}}),
    (t.ListRootsResult, {"roots": [{"uri": "file:///a"}, {"path": "b"}, {"path": "c"}]}),
]
# Results and errors of a request, by its method and revision, and whether it may become a task.
_ANSWERS: Final[list[Any]] = [
    *({}, {"content": []}, {"resultType": "complete", "content": []}, {"resultType": "odd"}, 5),
    {"resultType": "odd", "content": []},
    *({"resultType": 5, "content": []}, {"resultType": None, "content": []}),
    {"resultType": "input_required", "inputRequests": {"a": {"method": "roots/list"}}},
    {"resultType": "input_required", "requestState": "s"},
    *({"resultType": "input_required"}, {"resultType": "input_required", "inputRequests": {}}),
    {"resultType": "input_required", "inputRequests": {"a": {"method": "odd"}}},
    {
        "resultType": "task",
        "taskId": "t",
        "status": "working",
        "createdAt": "c",
        "lastUpdatedAt": "u",
        "ttl": None,
        "_meta": {"m": 1},
    },
    *({"resultType": "task"}, {"task": {"taskId": "t"}}, {"task": None, "content": []}),
    {
        "task": {
            "taskId": "t",
            "status": "working",
            "createdAt": "c",
            "lastUpdatedAt": "u",
            "ttl": 5,
        },
        "_meta": {"m": 1},
    },
    {"content": [5, _TEXT]},
]


def _paths(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Yield the paths of all members and entries."""
    if isinstance(value, dict | list):
        for key, each in value.items() if isinstance(value, dict) else enumerate(value):
            yield (*path, key)
            yield from _paths(each, (*path, key))


def _changed(document: Any, path: tuple[Any, ...], new: Any) -> Any:
    document = deepcopy(document)
    place = document
    for key in path[:-1]:
        place = place[key]
    if new is ...:
        del place[path[-1]]
    else:
        place[path[-1]] = new
    return document


def _read(kind: type, document: Any, *, keeps_unknown: bool = True) -> str | None:
    """Return what a lenient reader finds in a document, None if it can be read exactly."""
    data = encode(document)
    try:
        reader(kind)(data)
    except InvalidPayload:
        pass
    else:
        return None
    try:
        found: Any
        found, problems = read_leniently(kind, data, keeps_unknown=keeps_unknown)
    except InvalidPayload as exc:
        return f"refused: {exc}"
    lines = [f"{place}: {problem}" for place, problem in problems.items()]
    return f"{msgspec.json.encode(found, enc_hook=repr).decode()} {'; '.join(lines)}"


def _of_result(method: str) -> Iterator[str]:
    kind, document = _RESULTS[method]
    same: dict[str, list[str]] = {}
    for path in _paths(document):
        name = ".".join(map(str, path))
        for value in (..., *_VALUES):
            found = _read(kind, _changed(document, path, value))
            if found is not None:
                shown = "missing" if value is ... else json.dumps(value)
                same.setdefault(found, []).append(f"{name} {shown}")
    for found, changes in same.items():
        yield f"{', '.join(changes)}:"
        yield f"  {found}"


def _of_others() -> Iterator[str]:
    for kind, document in _OTHERS:
        yield f"{kind.__name__} {json.dumps(document)}"
        for keeps_unknown in (True, False):
            yield f"  {_read(kind, document, keeps_unknown=keeps_unknown)}"


def _of_limits() -> Iterator[str]:
    """Read as many faults and commas as are looked at, and one more."""
    for count in (4_998, 4_999):
        tools = [5] * count
        reading = LenientReader(keeps_unknown=True)
        try:
            reading.read(t.ListToolsResult, encode({"tools": [_TOOL, *tools]}))
            yield f"{count} faults: {reading!r} {next(iter(reading.problems().values()))[:70]}"
        except InvalidPayload as exc:
            yield f"{count} faults: {exc}"
    for count in (300_000, 300_001):
        text = json.dumps({"tools": [5], "x": "," * (count - 1)}).encode()
        try:
            LenientReader(keeps_unknown=True).read(t.ListToolsResult, text)
        except InvalidPayload as exc:
            yield f"{count} commas: {exc}"


def _of_answers(version: str) -> Iterator[str]:
    rows = {row.name: row for row in METHODS}
    for method in ("tools/call", "tools/list", "acme/odd"):
        for may_become_task in (False, True):
            if method != "tools/call" and may_become_task:
                continue
            for answer in _ANSWERS:
                call = OutgoingRequest(
                    method, rows.get(method), DIALECTS[version], "token", None, False
                )
                call.may_become_task = may_become_task
                data = encode({"jsonrpc": "2.0", "id": 1, "result": answer})
                event = response_event(1, call, decode(data))
                members = [
                    str(getattr(event, name))
                    for name in event.__struct_fields__
                    if name not in ("id", "token", "redirect_progress")
                ]
                yield f"{method} {may_become_task} {json.dumps(answer)[:70]}:"
                yield f"  {type(event).__name__} {', '.join(members)}"


def broken_results() -> list[str]:
    """Return the names of the tables."""
    return [*_RESULTS, "others", "limits", *(f"answers in {version}" for version in VERSIONS[2:])]


def readings_of(name: str) -> str:
    """Return what is read of each document of a table."""
    if name in _RESULTS:
        lines = _of_result(name)
    elif name.startswith("answers in "):
        lines = _of_answers(name.removeprefix("answers in "))
    else:
        lines = _of_others() if name == "others" else _of_limits()
    text = "\n".join(f"  {line}" for line in lines)
    return _WORDS.sub("...", text).encode("ascii", "backslashreplace").decode()


def kept_broken_results() -> dict[str, str]:
    """Return the texts in the file, by the names of the tables."""
    return read_kept(_FILE)


if __name__ == "__main__":
    write_kept(_FILE, {name: readings_of(name) for name in broken_results()})
