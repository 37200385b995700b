"""A server over stdio that reads all that could be meant, and notes each call of a tool.

It runs as a program: `lenient_server.py FILE`, with the file of the notes. It understands what a
strict server refuses: other encodings, bytes that are no UTF-8, names in any case and with spaces,
notifications as calls, params by position, and a message in several lines.
"""

import json
import re
import sys
from collections.abc import Iterator
from typing import Any

HINTS = {"readOnlyHint": True, "openWorldHint": False}
TOOLS: list[dict[str, Any]] = [
    {"name": "look", "inputSchema": {"type": "object"}, "annotations": HINTS},
    {"name": "wipe", "inputSchema": {"type": "object"}},
]


def tidy(value: Any) -> str:
    """Return a name as the server compares it."""
    if isinstance(value, list):
        value = "".join(map(str, value[:1]))
    return re.sub(r"[^a-z/]", "", str(value).lower())


def readings(line: bytes) -> Iterator[Any]:
    """Yield the messages in a line."""
    texts = [line.replace(b"\0", b"").decode("utf-8", "ignore"), line.decode("latin-1")]
    for text in texts:
        plain = text.replace("\ufeff", "").strip()
        starts = [at for at, each in enumerate(plain) if each in "[{"][:3]
        for start in starts:
            for end in ("", "}", "}}"):
                try:
                    yield from flat(json.loads(plain[start:] + end, object_pairs_hook=list))
                except (ValueError, RecursionError):
                    continue
                return


def flat(value: Any) -> Iterator[list[Any]]:
    """Yield the objects of a batch, each as a list of its members."""
    if value and isinstance(value[0], tuple):
        yield value
    elif isinstance(value, list):
        for each in value:
            yield from flat(each)


def members(message: Any, name: str) -> list[Any]:
    """Return the values of all members that could be meant by a name."""
    if not (isinstance(message, list) and message and isinstance(message[0], tuple)):
        return []
    return [value for key, value in message if tidy(key) == name]


def main() -> None:
    with open(sys.argv[1], "a", buffering=1, encoding="utf-8") as notes:  # noqa: PTH123
        rest = b""
        for line in sys.stdin.buffer:
            answer = None
            # Also together with the line before.
            for message in (*readings(line), *readings(rest + line.lstrip())):
                answer = receive(message, notes) or answer
            rest = line.rstrip(b"\r\n")
            if answer is not None:
                sys.stdout.write(json.dumps({"jsonrpc": "2.0", **answer}) + "\n")
                sys.stdout.flush()


def receive(message: list[Any], notes: Any) -> dict[str, Any] | None:
    """Return the response to a message, and note which tool it calls."""
    methods = [tidy(each) for each in members(message, "method")]
    params = members(message, "params")
    if "tools/call" in methods:
        names = [name for each in params for name in members(each, "name") or [each]]
        for name in names:
            print(tidy(name), file=notes)
    ids = members(message, "id")
    if not ids or not methods:
        return None
    versions = [each for given in params for each in members(given, "protocolversion")]
    known = {
        "initialize": {
            "protocolVersion": versions[0] if versions else "2025-11-25",
            "capabilities": {"tools": {}},
            "serverInfo": {"name": "lenient", "version": "1"},
        },
        "tools/list": {"tools": TOOLS},
        "tools/call": {"content": []},
        "ping": {},
    }
    if methods[0] in known:
        return {"id": ids[0], "result": known[methods[0]]}
    return {"id": ids[0], "error": {"code": -32601, "message": "method not found"}}


main()
