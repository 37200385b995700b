"""Servers in memory that do what those of the official SDKs do, for tests of habits.

The texts and the orders of members are as measured with the SDKs.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import trio

from mcp_core.trace import TraceLine

from .memory_target import BATCHED, INFO, META, NEW, OLD, MemorySession, MemoryTarget

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    Json = dict[str, Any]

TOOL = {"annotations": {}, "description": "Greet.", "inputSchema": {"type": "object"}}
TOOLS = [{**TOOL, "name": "greet"}]
TYPESCRIPT_TOOLS = [{"name": "greet", **TOOL}]
ISSUES = json.dumps(
    [{"expected": "string", "code": "invalid_type", "path": ["params", "cursor"], "message": "x"}],
    indent=2,
)
LOG = {"level": "error", "logger": "mcp.server.exception_handler", "data": "Internal Server Error"}
INVALID = {"code": -32602, "message": "Invalid request parameters", "data": ""}
METHODS = ("ping", "initialize", "tools/list")


def _is_request(message: Any) -> bool:
    return (
        isinstance(message, dict)
        and message.get("jsonrpc") == "2.0"
        and isinstance(message.get("method"), str)
        and isinstance(message.get("id"), int | str)
    )


def _result(message: Mapping[str, Any], tools: list[Json], more: Json) -> Json:
    match message["method"]:
        case "initialize":
            capabilities = {"tools": {}, **more}
            params = message.get("params")
            asked = params.get("protocolVersion") if isinstance(params, dict) else None
            version = asked if asked == BATCHED else OLD
            return {"protocolVersion": version, "capabilities": capabilities, "serverInfo": INFO}
        case "tools/list":
            return {"tools": tools}
        case _:
            return {}


def typescript(message: Any) -> Iterator[Json]:
    """Yield what a server of the TypeScript SDK sends."""
    if not _is_request(message) or message.keys() - {"jsonrpc", "id", "method", "params"}:
        return
    id, params = message["id"], message.get("params", {})
    if not isinstance(params, dict) or not isinstance(params.get("_meta", {}), dict):
        return
    error: Json = {}
    if message["method"] not in METHODS:
        error = {"code": -32601, "message": "Method not found"}
    elif not isinstance(params.get("cursor", ""), str):
        error = {"code": -32603, "message": ISSUES}
    if error:
        yield {"jsonrpc": "2.0", "id": id, "error": error}
    else:
        yield {"result": _result(message, TYPESCRIPT_TOOLS, {}), "jsonrpc": "2.0", "id": id}


def python_1(message: Any) -> Iterator[Json]:
    """Yield what a server of the Python SDK 1.x sends."""
    params = message.get("params", {}) if isinstance(message, dict) else 0
    if not _is_request(message) or not isinstance(params, dict | None):
        if not isinstance(message, dict) or "method" not in message or "id" in message:
            yield {"method": "notifications/message", "params": LOG, "jsonrpc": "2.0"}
        return
    reply: Json = {"jsonrpc": "2.0", "id": message["id"]}
    if message["method"] not in METHODS or not isinstance((params or {}).get("cursor", ""), str):
        yield {**reply, "error": INVALID}
    else:
        yield {**reply, "result": _result(message, TYPESCRIPT_TOOLS, {"experimental": {}})}


def python_2(message: Any) -> Iterator[Json]:
    """Yield what a server of the Python SDK 2.x sends."""
    params = message.get("params", {}) if isinstance(message, dict) else 0
    if not _is_request(message) or not isinstance(params, dict | None):
        return
    reply: Json = {"jsonrpc": "2.0", "id": message["id"]}
    if message["method"] not in METHODS:
        data = message["method"]
        yield {**reply, "error": {"code": -32601, "message": "Method not found", "data": data}}
    elif not isinstance((params or {}).get("cursor", ""), str):
        yield {**reply, "error": INVALID}
    else:
        yield {**reply, "result": _result(message, TOOLS, {})}


_HINTS = {"resultType": "complete", "ttlMs": 0, "cacheScope": "private"}
_DISCOVERED: Json = {
    "supportedVersions": [NEW],
    "capabilities": {"tools": {}},
    "_meta": {META + "serverInfo": INFO},
}


class TypeScript2:
    """A server of the TypeScript SDK 2.x, which speaks two generations of revisions.

    A message without the `_meta` of 2026-07-28 makes a process speak the older ones, unless a
    request other than `server/discover` came before it.

    Attributes:
        is_mended: it takes each message by itself.
        tools: its tools, in 2026-07-28.
    """

    def __init__(
        self, *, is_mended: bool = False, tools: Sequence[Json] = tuple(TYPESCRIPT_TOOLS)
    ) -> None:
        self.is_mended = is_mended
        self.tools = tools
        self._modern: dict[int, bool] = {}  # which starts have decided

    def __call__(self, message: Any, start: int) -> Iterator[Json]:
        """Yield what the server of a start sends for a message."""
        params = message.get("params") if isinstance(message, dict) else None
        meta = params.get("_meta") if isinstance(params, dict) else None
        is_modern = isinstance(meta, dict) and META + "protocolVersion" in meta
        if not self.is_mended and start in self._modern:
            is_modern = self._modern[start]
        elif not is_modern or (_is_request(message) and message["method"] != "server/discover"):
            self._modern[start] = is_modern
        yield from self._answers(message) if is_modern else typescript(message)

    def _answers(self, message: Json) -> Iterator[Json]:
        found: Json = {"server/discover": _DISCOVERED, "tools/list": {"tools": list(self.tools)}}
        if not _is_request(message):
            return
        method, params = message["method"], message["params"]
        if method in found and isinstance(params.get("cursor", ""), str):
            result = {**found[method], **_HINTS}
            yield {"result": result, "jsonrpc": "2.0", "id": message["id"]}
        else:
            yield from typescript(message)


SDKS = {"typescript": typescript, "python 1": python_1, "python 2": python_2}


class Raw(str):
    """A line that a server sends as it is."""

    __slots__ = ()


class ReadingSession(MemorySession):
    """A conversation with a server that gets all bytes, also those that aren't a request."""

    async def send_text(self, text: str, message: Mapping[str, Any]) -> None:
        """Take a message, or a batch as a list."""
        await super().send_text(text, json.loads(text))

    async def send_data(self, data: bytes) -> None:
        """Take a line."""
        self.record(TraceLine(t=self.time(), sender="client", raw=data.decode()))
        try:
            message = json.loads(data)
        except ValueError:
            message = None
        self._inbox.append(message)
        await trio.lowlevel.checkpoint()
        self._answer()

    def _answer(self) -> None:
        while self._inbox and trio.current_time() >= self._ready_at:
            found: Iterator[Any] = self._target.answers(self._inbox.pop(0), self._place)
            for each in found:
                raw = each if isinstance(each, Raw) else json.dumps(each)
                self.receive(TraceLine(t=self.time(), sender="server", raw=raw))
            if self._inbox:
                self._begin_first()

    def _begin_first(self) -> None:
        if isinstance(self._inbox[0], dict):
            super()._begin_first()


class ReadingTarget(MemoryTarget):
    """A server in memory, of one SDK or another."""

    session_class = ReadingSession

    def __init__(self, answers: Callable[[Any], Iterator[Json]]) -> None:
        super().__init__(lambda message, start: answers(message))
