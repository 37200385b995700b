"""A server to record, and what its trace has."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from mcp_core.registry import Context, Server
from mcp_core.trace import DamagedLine, TraceHeader, TraceLine, read_trace

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["content", "make_server", "methods", "read_file", "talk"]


def make_server() -> Server:
    server = Server("recorded")

    @server.tool
    def echo(text: str) -> str:
        """Return the text."""
        return text

    @server.tool
    async def steps(context: Context) -> str:
        """Report some steps."""
        for step in range(3):
            await context.progress(step, 3)
        return "done"

    return server


def read_file(path: Path) -> tuple[TraceHeader, list[TraceLine]]:
    """Return a trace, which must have no damaged line and a time that never goes back."""
    header, lines = read_trace([path.read_bytes()])
    found = [line for _, line in lines if not isinstance(line, DamagedLine)]
    assert len(found) == path.read_bytes().count(b"\n") - 1
    assert [line.t for line in found] == sorted(line.t for line in found)
    return header, found


def methods(lines: list[TraceLine]) -> list[tuple[str | None, str]]:
    """Return the sender of each message, and its method or `result`."""
    found: list[tuple[str | None, str]] = []
    for line in lines:
        if line.raw is not None:
            message = json.loads(line.raw)
            found.append((line.sender, message.get("method", "result")))
    return found


async def talk(client: Any) -> None:
    """Call both tools."""
    await client.call_tool("echo", {"text": "hi"})
    await client.call_tool("steps", {}, progress=lambda *_: None)


def content(path: Path) -> str:
    """Return the text of a file."""
    return path.read_text("utf-8")
