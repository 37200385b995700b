"""Responses to a tool call that no client can read, and the errors that they cause."""

from __future__ import annotations

from typing import Any, Final

from mcp_core import ConnectionLost, Limits, RemoteProtocolError

__all__ = ["LIMITS", "ROWS", "options"]

LIMITS: Final = Limits(message=200_000)

INVALID: Final = "the response to tools/call is invalid: "
DOUBT: Final = "the response to tools/call may be one that is invalid: "

# The attack, the exception of the call, parts of its text, and whether the server still responds.
ROWS: Final[list[tuple[str, type[Exception], tuple[str, ...], bool]]] = [
    (
        "long-response",
        RemoteProtocolError,
        (INVALID, "longer than 200000 bytes", 'b\'{"jsonrpc":"2.0","id":2,"result"', "limits="),
        True,
    ),
    (
        "long-response-id-last",
        RemoteProtocolError,
        (INVALID, "longer than 200000 bytes", 'b\'{"result":{"content"', "limits="),
        True,
    ),
    ("unended-response", RemoteProtocolError, (INVALID, "longer than 200000 bytes"), False),
    ("nan-response", RemoteProtocolError, (INVALID, "not JSON", "begins with b'{"), True),
    ("invalid-utf8-response", RemoteProtocolError, (INVALID, "not UTF-8", "begins with b'{"), True),
    ("junk-on-the-line", RemoteProtocolError, (DOUBT, "b'progress 50%{"), True),
    ("exits", ConnectionLost, ("wrote a line that is not an MCP message: b'KeyError: 3'",), False),
]


def options() -> dict[str, Any]:
    """Return the options of a client for these tests."""
    return {"versions": ["2025-11-25"], "limits": LIMITS}
