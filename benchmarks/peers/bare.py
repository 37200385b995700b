"""The smallest server: `python benchmarks/peers/bare.py stdio`.

It only reads, decodes, encodes and writes. It has no runtime, no tasks, no types and no checks, and
`echo` and `progress` are branches of one function: the lower bound of a server in Python for
`bench_stdio.py`, and fast enough to be the server for measuring clients. It validates nothing: an
invalid message ends it.
"""

from __future__ import annotations

import os
from typing import Any

import msgspec

decode = msgspec.json.Decoder().decode
encode = msgspec.json.Encoder().encode

INFO = {"name": "benchmark", "version": "1.0.0"}
TEXT = {"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]}
MODERN = {"resultType": "complete", "_meta": {"io.modelcontextprotocol/serverInfo": INFO}}
LISTED = {"tools": [{"name": "echo", "description": "Give the text back.", "inputSchema": TEXT}]}


def answer(request: dict[str, Any]) -> bytes:
    """Return the lines to send for one request, without the last newline."""
    params = request.get("params", {})
    lines = []
    result: dict[str, Any]
    match request["method"]:
        case "tools/call" if params["name"] == "echo":
            result = {"content": [{"type": "text", "text": params["arguments"]["text"]}]}
        case "tools/call":
            n = params["arguments"]["n"]
            for step in range(1, n + 1):
                step_params = {
                    "progressToken": params["_meta"]["progressToken"],
                    "progress": step,
                    "total": n,
                }
                lines.append(
                    encode(
                        {
                            "jsonrpc": "2.0",
                            "method": "notifications/progress",
                            "params": step_params,
                        }
                    )
                )
            result = {"content": [{"type": "text", "text": "done"}]}
        case "tools/list":
            result = LISTED
        case "initialize":
            result = {
                "protocolVersion": params["protocolVersion"],
                "capabilities": {"tools": {}},
                "serverInfo": INFO,
            }
        case "server/discover":
            result = {"supportedVersions": ["2026-07-28"], "capabilities": {"tools": {}}}
        case method:
            raise SystemExit(f"unknown method {method}")
    if "io.modelcontextprotocol/protocolVersion" in params.get("_meta", ()):
        result = {**MODERN, **result}
    lines.append(encode({"jsonrpc": "2.0", "id": request["id"], "result": result}))
    return b"\n".join(lines)


def main() -> None:
    # The beginning of a line, in pieces: a long line must not be copied again with each piece.
    kept: list[bytes] = []
    while chunk := os.read(0, 65_536):
        lines, newline, rest = chunk.rpartition(b"\n")
        if not newline:
            kept.append(rest)
            continue
        messages = [decode(line) for line in b"".join([*kept, lines]).split(b"\n")]
        kept = [rest]
        answers = memoryview(
            b"".join(answer(message) + b"\n" for message in messages if "id" in message)
        )
        while answers:
            answers = answers[os.write(1, answers) :]


if __name__ == "__main__":
    main()
