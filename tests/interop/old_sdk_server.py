"""A server of the official Python SDK 1.20 over HTTP: `python old_sdk_server.py FILE PORT`.

Its tool appends a line to FILE, and a POST to `/forget` makes the server lose all sessions, whose
event streams stay open. It imports nothing of this project, because it runs in an environment of
its own (`MCP_TRIO_OLD_SDK_PYTHON`).
"""

from __future__ import annotations

import sys
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from starlette.responses import Response

if TYPE_CHECKING:
    from starlette.requests import Request

FILE: Final = Path(sys.argv[1])
# The SDK of the tests' own environment has another module in its place.
FastMCP: Any = import_module("mcp.server.fastmcp").FastMCP
server = FastMCP("old", host="127.0.0.1", port=int(sys.argv[2]), log_level="WARNING")


def note(text: str) -> str:
    """Write a text down."""
    with FILE.open("a") as file:
        file.write(f"{text}\n")
    return f"noted {text}"


async def forget(request: Request) -> Response:
    """Lose all sessions, as a restart does."""
    server.session_manager._server_instances.clear()
    return Response()


if __name__ == "__main__":
    server.add_tool(note)
    server.custom_route("/forget", methods=["POST"])(forget)
    server.run("streamable-http")
