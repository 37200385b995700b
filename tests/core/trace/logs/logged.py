"""The entries of each line and value of other programs' files, in `logged.txt`.

    python -m tests.core.trace.logs.logged

writes the file again.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from mcp_core.trace import LogReader, TraceLine
from mcp_core.trace.logs._entries import LoggedMessage, read_line_entry, read_value_entry
from mcp_core.trace.logs._python import read_python_message
from tests.kept import read_kept, write_kept

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

__all__ = ["entries_of", "kept_entries", "logged"]

_FILE: Final = Path(__file__).with_name("logged.txt")
_PING: Final[dict[str, Any]] = {"jsonrpc": "2.0", "id": 1, "method": "ping"}
_PONG: Final[dict[str, Any]] = {"jsonrpc": "2.0", "id": 1, "result": {}}
_OLD: Final = {"method": "x", "params": {}, "id": 1}
_MESSAGES: Final[dict[str, str]] = {
    "ping": json.dumps(_PING),
    "batch": json.dumps([_PING, _PONG]),
    "without a version": json.dumps(_OLD),
    "cut": '{"jsonrpc": "2.0", "id": 1, "method": "pi',
    "no message": '{"a": {"b": 1}}',
    "after another object": '{"a": 1} {"jsonrpc": "2.0", "id": 1, "method": "ping"} and more',
    "of Python": "root=JSONRPCRequest(method='ping', params=None, jsonrpc='2.0', id=1)",
}
# Words before a message.
_WORDS: Final = [
    *("", "hello ", "from client: ", "from_the server ", "client -> server: ", "server=>client "),
    *(
        "editor to remote ",
        "local → server ",
        "client request ",
        "Server notification ",
        "[client] ",
    ),
    *("client: ", " server ", "from client to server ", "from client, from server ", "x" * 210),
    *("from client " + "x" * 188, "from client " + "x" * 189, "[weather] ", "[info] [weather] "),
    *("[2025-11-25] [client -> server] [a b] ", "[] [" + "n" * 80 + "] ", "[" + "n" * 81 + "] "),
    *(
        "2026-11-22T14:26:18.9Z ",
        "2026-11-22 14:26:18,900 INFO ",
        "14:26:18 ",
        "2026-13-22T14:26:18 ",
    ),
    *("\x1b[31mfrom client\x1b[0m ", "Sending client message: ", "Received server message: "),
    *("12:00:00 SSE message: ", "Sending message via SSE: ", "Validated client message: "),
    *("Sending session message to writer: ", "chunk: b", "{{{{{{{", "{{{{{{{{", "[", "[1, "),
]
_BYTES: Final = [
    "Received JSON: b'" + json.dumps(_PING) + "'",
    "2026-11-22T14:26:18Z [s] Received JSON: b'" + json.dumps(_PING) + "'",
    *("Received JSON: b'{}'", "Received JSON: b'{", "Received JSON: b5", "Received JSON: b'\\xff'"),
]
_MEMBERS: Final[list[dict[str, Any]]] = [
    *({}, {"from": "client"}, {"direction": "server -> client"}, {"sender": "x"}, {"side": 5}),
    *({"from": "x", "source": "from the server"}, {"origin": "client" + " " * 200}),
    *({"t": 5}, {"t": -5.5}, {"ts": 1e11}, {"ts": 1.0001e11}, {"time": 1e15}, {"at": 9.9e14}),
    *({"timestamp": "2026-11-22T14:26:18Z"}, {"@timestamp": "2026-11-22"}, {"time": "x"}),
    *({"t": True}, {"t": None, "ts": 7}, {"timestamp": "2026-11-22T14:26:18+01:00"}),
    *({"server": "a"}, {"serverName": 5}, {"session": "s" * 210}, {"sessionId": None, "x": 1}),
    *({"server": "a", "conversation": "b"}, {"response": _PONG}, {"response": 5}),
    *({"t": 1, "response": _PONG}, {"t": 1, "response": _PONG, "duration": 1500}),
    *({"t": 1, "response": _PONG, "duration": "x"}, {"response": _PONG, "duration": 5}),
]
_VALUES: Final[list[Any]] = [
    *(_PING, _OLD, [_PING], [_PING, 5], [], {}, 5, None, "x", {"jsonrpc": "2.0"}, {"jsonrpc": 1}),
    *({"jsonrpc": "2.0", "error": {}}, {"method": "x"}, {"method": 5, "params": {}, "id": 1}),
    *({"raw": json.dumps(_PING)}, {"raw": "no"}, {"raw": 5, "message": _PONG}, {"rpc": [_PING]}),
    *({"payload": _PING, "raw": _PONG}, {"data": {"message": _PING}}, {"body": {}, "msg": _OLD}),
]
_PYTHON: Final = [
    "root=JSONRPCRequest(method='ping', params=None, jsonrpc='2.0', id=1)",
    "root=JSONRPCRequest(method='a', params={'x': [1, 'y', None, True]}, jsonrpc='2.0', id='i')",
    "root=JSONRPCNotification(method='n', params=None, jsonrpc='2.0')",
    "root=JSONRPCResponse(jsonrpc='2.0', id=1, result={'a': -1.5})",
    "root=JSONRPCError(jsonrpc='2.0', id=1, error=ErrorData(code=-1, message='m', data=None))",
    "JSONRPCRequest(method='ping', params=None, jsonrpc='2.0', id=1)",
    "SessionMessage(message=Other(root=Ping(method='ping', jsonrpc='2.0', id=1)), metadata=x)",
    "method='ping' params=None jsonrpc='2.0' id=1",
    "jsonrpc='2.0' id=1 result={'a': 1}",
    "jsonrpc='2.0' id=1 error=ErrorData(code=-1, message='m', data={'x': 1})",
    "root=JSONRPCRequest(method='ping'",
    "root=Other(method='ping')",
    "root=JSONRPCRequest(method=open('x'), jsonrpc='2.0', id=1)",
    "root=JSONRPCRequest(1, jsonrpc='2.0', id=1)",
    *(
        "",
        "x",
        "{}",
        "root=",
        "(" * 300,
        "'x'",
        "root=JSONRPCResponse(jsonrpc='2.0', id=1, result=x)",
    ),
]
# Whole files.
_FILES: Final[dict[str, str]] = {
    "lines": f"from client {json.dumps(_PING)}\nx\n\nfrom server {json.dumps(_PONG)}\n",
    "lines without sides": f"> {json.dumps(_PING)}\n< {json.dumps(_PONG)}\n",
    "two servers": f"[a] {json.dumps(_PING)}\n[b] {json.dumps(_PING)}\n[a] {json.dumps(_PONG)}\n",
    "one message twice": f"from client {json.dumps(_PING)}\nfrom client {json.dumps(_PING)}\n",
    "objects": json.dumps([{"raw": _PING, "from": "client"}, {"raw": _PONG}, {"x": 1}], indent=1),
    "objects with a cut one": '[{"raw":' + json.dumps(_PING) + '},\n{"raw": {"jsonrpc',
    "answers": json.dumps(
        [
            {
                "t": 1,
                "message": {**_PING, "method": "tools/list"},
                "response": _PONG,
                "duration": 5000,
            },
            {"t": 3, "message": {**_PING, "id": 2, "method": "tools/list"}, "duration": 5},
            {"t": 9, "message": {"jsonrpc": "2.0", "method": "notifications/initialized"}},
        ]
    ),
    "a cut line": f"{json.dumps(_PING)[:-5]}\n{json.dumps(_PING)}\n",
    "a line over the limit": f"{'x' * 600}\n{json.dumps(_PING)}\n",
    "byte order mark": f"\ufeff{json.dumps(_PING)}\n",
}


def _shown(entry: LoggedMessage | str | None) -> str:
    if not isinstance(entry, LoggedMessage):
        return str(entry)
    members = [
        f"{name} {value!r}"
        for name, value in entry._asdict().items()
        if name != "message" and value not in (None, "", False)
    ]
    return f"{json.dumps(entry.message)[:90]} {', '.join(members)}"


def _of_message(name: str) -> Iterator[str]:
    same: dict[str, list[str]] = {}
    for words in _WORDS:
        same.setdefault(_shown(read_line_entry(words + _MESSAGES[name])), []).append(repr(words))
    for entry, all_words in same.items():
        yield f"{' '.join(all_words)}:"
        yield f"  {entry}"


def _of_bytes() -> Iterator[str]:
    for line in _BYTES:
        yield f"{line}: {_shown(read_line_entry(line))}"


def _of_values() -> Iterator[str]:
    for value in (*_VALUES, *({"message": _PING, **each} for each in _MEMBERS)):
        yield json.dumps(value)
        yield f"  {_shown(read_value_entry(value, json.dumps(value)))}"


def _of_python() -> Iterator[str]:
    for text in _PYTHON:
        yield f"{text[:100]}: {json.dumps(read_python_message(text))}"


def _of_files() -> Iterator[str]:
    for name, text in _FILES.items():
        yield name
        reader = LogReader(500)
        for data in (text.encode()[:50], text.encode()[50:], b""):
            reader.feed(data)
            while (line := reader.next_line()) is not None:
                shown = (
                    f"{line.sender} {line.conversation} {line.t} {line.raw}"
                    if isinstance(line, TraceLine)
                    else f"{line.reason}: {line.beginning}"
                )
                yield f"  {reader.line_number} {shown}"
        counts = (reader.guessed, reader.unknown, reader.skipped)
        yield f"  {reader.kind} {counts} {reader.header}"


_TABLES: Final[dict[str, Callable[[], Iterator[str]]]] = {
    "bytes": _of_bytes,
    "values": _of_values,
    "Python": _of_python,
    "files": _of_files,
}


def logged() -> list[str]:
    """Return the names of the messages and tables."""
    return [*(f"message: {name}" for name in _MESSAGES), *_TABLES]


def entries_of(name: str) -> str:
    """Return the entries of a message after all words, or of a table."""
    table = _TABLES.get(name)
    lines = _of_message(name.removeprefix("message: ")) if table is None else table()
    return "\n".join(f"  {line}" for line in lines).encode("ascii", "backslashreplace").decode()


def kept_entries() -> dict[str, str]:
    """Return the texts in the file, by their names."""
    return read_kept(_FILE)


if __name__ == "__main__":
    write_kept(_FILE, {name: entries_of(name) for name in logged()})
