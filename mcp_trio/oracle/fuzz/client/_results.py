"""A correct server's results, by method and revision. A case's script makes them wrong."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from mcp_core import ALL, DIALECTS
from mcp_core import types as t
from mcp_trio.oracle.fuzz._revisions import META, TASKS, dialect_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

__all__ = [
    "TASK_ID",
    "WITH_REQUESTED_TASKS",
    "error_of",
    "open_result",
    "server_result",
    "task_view",
]

# The newest revision in which a request's sender asks for a task.
WITH_REQUESTED_TASKS: Final = next(each for each in ALL if DIALECTS[each].tasks == "requested")
TASK_ID: Final = "f2b0c1d4-7a55-4a41-9c68-0f5d1e6b7a90"
_INFO: Final = {"name": "mcp-trio fuzz", "version": "1"}
_URI: Final = "note:///one"
_TIME: Final = "2026-01-01T00:00:00Z"
_CACHED: Final = (
    "server/discover",
    "tools/list",
    "prompts/list",
    "resources/list",
    "resources/templates/list",
    "resources/read",
)


def capabilities_of(revision: str) -> dict[str, Any]:
    """Return all capabilities that a server can declare in a revision."""
    found: dict[str, Any] = {
        "tools": {"listChanged": True},
        "resources": {"subscribe": True, "listChanged": True},
        "prompts": {"listChanged": True},
        "logging": {},
    }
    dialect = dialect_of(revision)
    if not dialect.lacks(t.ServerCapabilities, "completions"):
        found["completions"] = {}
    if dialect.tasks == "requested":
        found["tasks"] = {"list": {}, "cancel": {}, "requests": {"tools": {"call": {}}}}
    elif dialect.tasks == "extension":
        found["extensions"] = {TASKS: {}}
    return found


def error_of(id: Any, code: int, text: str, data: Any = None) -> dict[str, Any]:
    """Return an error response."""
    error = {"code": code, "message": text} | ({} if data is None else {"data": data})
    return {"jsonrpc": "2.0", "id": id, "error": error}


def open_result(message: Mapping[str, Any], revisions: Sequence[str]) -> dict[str, Any] | None:
    """Return the response to `initialize`, or None if the server has no such revision."""
    stateful = [each for each in revisions if dialect_of(each).stateful]
    if not stateful:
        return None
    params = message.get("params")
    wanted = params.get("protocolVersion") if isinstance(params, dict) else None
    revision = wanted if wanted in stateful else max(stateful)
    return {
        "protocolVersion": revision,
        "capabilities": capabilities_of(revision),
        "serverInfo": _INFO,
    }


def server_result(
    method: str,
    params: Mapping[str, Any],
    revision: str,
    tools: Sequence[str],
    revisions: Sequence[str] = (),
) -> dict[str, Any] | None:
    """Return a request's result, or None if the revision doesn't have the method.

    Args:
        method: the request's method.
        params: the request's params.
        revision: the conversation's revision.
        tools: the names of the server's tools.
        revisions: the revisions that the server speaks.
    """
    found = _result(method, params, revision, tools)
    is_stateful = dialect_of(revision).stateful
    if method == "server/discover" and not is_stateful:
        found = {"supportedVersions": list(revisions), "capabilities": capabilities_of(revision)}
    if found is None or is_stateful:
        return found
    found = {"resultType": "complete", "_meta": {META + "serverInfo": _INFO}, **found}
    if method in _CACHED:
        found |= {"ttlMs": 0, "cacheScope": "private"}
    return found


def _result(
    method: str, params: Mapping[str, Any], revision: str, tools: Sequence[str]
) -> dict[str, Any] | None:
    dialect = dialect_of(revision)
    match method:
        case "tools/list":
            return {"tools": [_tool(name, revision) for name in tools]}
        case "tools/call" if dialect.tasks == "requested" and "task" in params:
            return {"task": task_view(revision, "completed")}
        case "tools/call":
            return _call_result(revision)
        case "resources/list":
            return {"resources": [{"uri": _URI, "name": "one", "mimeType": "text/plain"}]}
        case "resources/templates/list":
            return {"resourceTemplates": [{"uriTemplate": "note:///{name}", "name": "note"}]}
        case "resources/read":
            uri = params.get("uri")
            uri = uri if isinstance(uri, str) else _URI
            return {"contents": [{"uri": uri, "mimeType": "text/plain", "text": "one"}]}
        case "prompts/list":
            return {"prompts": [{"name": "plain", "description": "A prompt."}]}
        case "prompts/get":
            content = {"type": "text", "text": "one"}
            return {"messages": [{"role": "user", "content": content}]}
        case "completion/complete":
            return {"completion": {"values": ["one"], "total": 1, "hasMore": False}}
        case "ping" | "logging/setLevel" | "resources/subscribe" | "resources/unsubscribe":
            return {} if dialect.stateful else None
        case _ if method.startswith("tasks/"):
            return _task_result(method, revision)
        case _:
            return None


def _tool(name: str, revision: str) -> dict[str, Any]:
    found: dict[str, Any] = {
        "name": name,
        "description": "A tool.",
        "inputSchema": {"type": "object", "additionalProperties": True},
    }
    dialect = dialect_of(revision)
    if dialect.structured != "none":
        found["outputSchema"] = _OUTPUT
    if dialect.tasks == "requested":
        found["execution"] = {"taskSupport": "optional"}
    return found


SCHEMA_TOOL: Final = "sum"
_OUTPUT: Final = {
    "type": "object",
    "properties": {"sum": {"type": "integer"}},
    "required": ["sum"],
}


def _call_result(revision: str) -> dict[str, Any]:
    found: dict[str, Any] = {"content": [{"type": "text", "text": '{"sum": 1}'}]}
    if dialect_of(revision).structured != "none":
        found["structuredContent"] = {"sum": 1}
    return found


def task_view(revision: str, status: str) -> dict[str, Any]:
    """Return the members that describe the server's task."""
    is_extension = dialect_of(revision).tasks == "extension"
    return {
        "taskId": TASK_ID,
        "status": status,
        "createdAt": _TIME,
        "lastUpdatedAt": _TIME,
        "ttlMs" if is_extension else "ttl": 60_000,
        "pollIntervalMs" if is_extension else "pollInterval": 10,
    }


def _task_result(method: str, revision: str) -> dict[str, Any] | None:
    outcome = _call_result(revision)
    tasks = dialect_of(revision).tasks
    if tasks == "extension":
        outcome = {"resultType": "complete", **outcome}
        views = {
            "tasks/get": {**task_view(revision, "completed"), "result": outcome},
            "tasks/cancel": {},
            "tasks/update": {},
        }
        return views.get(method)
    if tasks != "requested":
        return None
    related = {"_meta": {META + "related-task": {"taskId": TASK_ID}}}
    views = {
        "tasks/get": task_view(revision, "completed"),
        "tasks/list": {"tasks": [task_view(revision, "completed")]},
        "tasks/cancel": task_view(revision, "cancelled"),
        "tasks/result": {**outcome, **related},
    }
    return views.get(method)
