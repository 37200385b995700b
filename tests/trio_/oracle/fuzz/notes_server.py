"""A server in memory with tools for notes, which can be broken, and a file of invariants for it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mcp_trio.oracle.fuzz.invariants._checks import Checks
from mcp_trio.oracle.fuzz.invariants._load import load_invariants

from .memory_target import answers

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

IMPORTS = """\
from mcp_trio.testing.invariants import after_call, before_call, invariant, uses
"""
CREATED = """
@after_call("create_note", provides="note_id")
def created(call, result):
    return result.structured_content["id"]

uses("note_id", tool="read_note", argument="id")
"""
CAN_BE_READ = """
@invariant("read_note", errors=True)
def created_note_can_be_read(call, result):
    if "id" in call.handed:
        assert not result.is_error, result.text
"""
READ_ONLY = {"readOnlyHint": True, "openWorldHint": False}
TOOLS: list[dict[str, Any]] = [
    {
        "name": name,
        "inputSchema": {"type": "object", "properties": {argument: {"type": "string"}}},
        "annotations": READ_ONLY,
    }
    for name, argument in (("create_note", "text"), ("read_note", "id"))
]


class NotesServer:
    """The notes of each start of a server, and what it does wrong.

    Args:
        forgets: the texts of notes that it doesn't keep.
        how: how calls are answered: "now"; "task" for a task of the revision, "input" for a
            request for input before the result.

    Attributes:
        arguments: those of all calls.
    """

    def __init__(self, *, forgets: tuple[str, ...] = (), how: str = "now") -> None:
        self.arguments: list[Any] = []
        self._forgets = forgets
        self._how = how
        self._notes: dict[tuple[int, str], str] = {}
        self._tasks: dict[str, dict[str, Any]] = {}

    def __call__(self, message: Mapping[str, Any], start: int = 0) -> Iterator[dict[str, Any]]:
        """Yield the response to a message."""
        reply = {"jsonrpc": "2.0", "id": message.get("id")}
        params: Any = message.get("params", {})
        is_new = "_meta" in params if isinstance(params, dict) else False
        match message:
            case {"method": "initialize" | "server/discover"}:
                for each in answers(message):
                    each["result"]["capabilities"] = {"tools": {}}
                    yield each
            case {"method": "tools/list"}:
                new = {"ttlMs": 0, "cacheScope": "private"} if is_new else {}
                yield {**reply, "result": _whole({"tools": TOOLS, **new}, is_new)}
            case {"method": "tools/call", "params": {"name": name}}:
                arguments = params.get("arguments", {})
                if self._how == "input" and "inputResponses" not in params:
                    asked = {"a": {"method": "roots/list"}}
                    needs = {"resultType": "input_required", "inputRequests": asked}
                    yield {**reply, "result": needs}
                    return
                self.arguments.append(arguments)
                result = _whole(self._call(name, arguments, start), is_new)
                if self._how == "task":
                    yield {**reply, "result": self._begin_task(result, is_new)}
                else:
                    yield {**reply, "result": result}
            case {"method": "tasks/get", "params": {"taskId": id}} if id in self._tasks:
                state = _task(id, "completed", is_new)
                more = {"result": self._tasks[id]} if is_new else {}
                yield {**reply, "result": _whole({**state, **more}, is_new)}
            case {"method": "tasks/result", "params": {"taskId": id}} if id in self._tasks:
                related = {"io.modelcontextprotocol/related-task": {"taskId": id}}
                yield {**reply, "result": {**self._tasks[id], "_meta": related}}
            case _:
                yield from answers(message)

    def _call(self, name: str, arguments: Any, start: int) -> dict[str, Any]:
        if name == "create_note":
            text = arguments.get("text", "")
            id = f"note-{sum(each == start for each, _ in self._notes)}"
            self._notes[start, id] = text
            return _result({"id": id})
        text = self._notes.get((start, str(arguments.get("id"))))
        if text is None or text in self._forgets:
            return {"content": [{"type": "text", "text": "no such note"}], "isError": True}
        return _result({"text": text})

    def _begin_task(self, result: dict[str, Any], is_new: bool) -> dict[str, Any]:
        id = f"task-{len(self._tasks)}"
        self._tasks[id] = result
        state = _task(id, "working", is_new)
        return {"resultType": "task", **state} if is_new else {"task": state}


def _result(value: dict[str, Any]) -> dict[str, Any]:
    return {"content": [{"type": "text", "text": json.dumps(value)}], "structuredContent": value}


def _whole(result: dict[str, Any], is_new: bool) -> dict[str, Any]:
    return {"resultType": "complete", **result} if is_new else result


def _task(id: str, status: str, is_new: bool) -> dict[str, Any]:
    at = {"createdAt": "2026-01-01T00:00:00Z", "lastUpdatedAt": "2026-01-01T00:00:00Z"}
    ttl = {"ttlMs": None} if is_new else {"ttl": None}
    return {"taskId": id, "status": status, **at, **ttl}


def write_invariants(folder: Path, *parts: str) -> Path:
    """Write a file of invariants, and return its path."""
    path = folder / "checks.py"
    path.write_text(IMPORTS + "".join(parts))
    return path


def checks_of(folder: Path, *parts: str) -> Checks:
    """Return the checks of a file that is written with these parts."""
    return Checks(load_invariants(write_invariants(folder, *parts)))
