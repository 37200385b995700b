"""A server process that responds to a tool call with what no client can read, in many ways."""

from __future__ import annotations

import sys
from typing import Any, Final

from mcp_core import ConnectionLost, Limits, RemoteProtocolError

__all__ = ["LIMITS", "ROWS", "options", "unreadable_server"]

LIMITS: Final = Limits(message=200_000)

_SERVER: Final = r"""
import json, os, sys

plan = sys.argv[1]

def write(text):
    data = text if isinstance(text, bytes) else text.encode()
    while data:
        data = data[os.write(1, data):]

def respond(id, result):
    write(json.dumps({"jsonrpc": "2.0", "id": id, "result": result}) + "\n")

write("Server ready\n")
for line in sys.stdin:
    message = json.loads(line)
    id = message.get("id")
    if message["method"] == "initialize":
        respond(id, {
            "protocolVersion": "2025-11-25", "capabilities": {"tools": {}},
            "serverInfo": {"name": "s", "version": "1"},
        })
    elif message["method"] == "ping":
        respond(id, {})
    elif message["method"] == "tools/call":
        head = '"jsonrpc":"2.0","id":%d' % id
        big = '"result":{"content":[{"type":"text","text":"' + "x" * 300_000
        print("about to respond", file=sys.stderr, flush=True)
        if plan == "long, id first":
            write('{' + head + ',' + big + '"}]}}\n')
        elif plan == "long, id last":
            write('{' + big + '"}]},' + head + '}\n')
        elif plan == "long, no end":
            write('{' + big)
        elif plan == "NaN":
            write('{' + head + ',"result":{"content":[],"structuredContent":{"a":NaN}}}\n')
        elif plan == "no UTF-8":
            text = b',"result":{"content":[{"type":"text","text":"\xff"}]}}\n'
            write(b'{' + head.encode() + text)
        elif plan == "print before":
            write('Loading...{' + head + ',"result":{"content":[]}}\n')
        elif plan == "id as text":
            write('{"jsonrpc":"2.0","id":"%d","result":{"content":[]}}\n' % id)
        elif plan == "exit":
            write("KeyError: 3\n")
            sys.exit(3)
"""


def unreadable_server(plan: str) -> list[str]:
    """Return the command of the server that follows `plan`."""
    return [sys.executable, "-I", "-S", "-c", _SERVER, plan]


INVALID: Final = "the response to tools/call is invalid: "
DOUBT: Final = "the response to tools/call may be one that is invalid: "

# The plan, the exception of the call, parts of its text, and whether the server still responds.
ROWS: Final[list[tuple[str, type[Exception], tuple[str, ...], bool]]] = [
    (
        "long, id first",
        RemoteProtocolError,
        (INVALID, "longer than 200000 bytes", 'b\'{"jsonrpc":"2.0","id":2,"result"', "limits="),
        True,
    ),
    (
        "long, id last",
        RemoteProtocolError,
        (INVALID, "longer than 200000 bytes", 'b\'{"result":{"content"', "limits="),
        True,
    ),
    ("long, no end", RemoteProtocolError, (INVALID, "longer than 200000 bytes"), False),
    ("NaN", RemoteProtocolError, (INVALID, "not JSON", "begins with b'{"), True),
    ("no UTF-8", RemoteProtocolError, (INVALID, "not UTF-8", "begins with b'{"), True),
    ("print before", RemoteProtocolError, (DOUBT, "b'Loading...{"), True),
    ("id as text", RemoteProtocolError, (DOUBT, "the text '2' in place of its id"), True),
    ("exit", ConnectionLost, ("wrote a line that is not an MCP message: b'KeyError: 3'",), False),
]


def options() -> dict[str, Any]:
    """Return the options of a client for these tests."""
    return {"versions": ["2025-11-25"], "limits": LIMITS}
