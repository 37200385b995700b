"""Servers that aren't libraries: what a server in Python can't be faster than.

    python benchmarks/peers/floor.py pipe|blocking|inline|task stdio
    python benchmarks/peers/floor.py h11 http --port P --mode MODE

- `pipe`: bytes only. It finds the id and the text of a request by searching, and puts them into a
  response: what two pipes and a Python process cost.
- `blocking`: msgspec, without an event loop. It is the server that clients are measured with.
- `inline`: trio and msgspec. It decodes each request, calls `echo` at once, and encodes the result.
- `task`: the same with a task for each call, as handlers need that wait for something.
- `h11`: trio, h11 and msgspec. A task for each connection reads a whole request, decodes it, calls
  `echo` at once, encodes the result, and sends it with its head in one piece: as JSON, or in the
  mode `session-sse` as an event stream.

All but `pipe` have `progress` too. What our server takes beyond them is MCP: sessions, checks,
limits, deadlines, cancellation. An invalid message ends a floor, and invalid HTTP its connection.
"""

from __future__ import annotations

import os
import sys
from functools import partial
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Callable

    import h11
    import trio

_CHUNK: Final = 65_536


# -- Bytes only ------------------------------------------------------------------------------------

_OPENED: Final = (
    b'{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},'
    b'"serverInfo":{"name":"benchmark","version":"1.0.0"}}'
)
_DISCOVERED: Final = (
    b'{"resultType":"complete","supportedVersions":["2026-07-28"],"capabilities":{"tools":{}},'
    b'"ttlMs":0,"cacheScope":"private","_meta":{"io.modelcontextprotocol/serverInfo":'
    b'{"name":"benchmark","version":"1.0.0"}}}'
)


def echo_bytes(line: bytes) -> bytes:
    """Return the response to one request, as a line; nothing for a notification."""
    at = line.find(b'"id":')
    if at < 0:
        return b""
    # An id is a number, or a string that has neither a comma nor a brace.
    start = at + 5
    end = min(place for place in (line.find(b",", start), line.find(b"}", start)) if place >= 0)
    text = line.find(b'"text":"')
    if text >= 0:
        words = line[text + 7 : line.index(b'"', text + 8) + 1]
        result = b'{"content":[{"type":"text","text":%b}]}' % words
        if b'"2026-07-28"' in line:
            result = result[:-1] + b',"resultType":"complete"}'
    else:
        result = _DISCOVERED if b'"server/discover"' in line else _OPENED
    return b'{"jsonrpc":"2.0","id":%b,"result":%b}\n' % (line[start:end], result)


# -- Plain dicts through msgspec -------------------------------------------------------------------

_INFO: Final = {"name": "benchmark", "version": "1.0.0"}
_TEXT: Final = {
    "type": "object",
    "properties": {"text": {"type": "string"}},
    "required": ["text"],
}
_LISTED: Final = {
    "tools": [{"name": "echo", "description": "Give the text back.", "inputSchema": _TEXT}],
}
_MODERN: Final = {
    "resultType": "complete",
    "_meta": {"io.modelcontextprotocol/serverInfo": _INFO},
}
# In 2026-07-28 lists say for how long they are valid.
_CACHED: Final = {"ttlMs": 0, "cacheScope": "private"}
_PROGRESS: Final = {"jsonrpc": "2.0", "method": "notifications/progress"}


def responder() -> Callable[[bytes], list[bytes]]:
    """Return a function from a request to the messages for it. It has none for a notification."""
    import msgspec

    decode = msgspec.json.Decoder().decode
    encode = msgspec.json.Encoder().encode

    def respond(data: bytes) -> list[bytes]:
        request: dict[str, Any] = decode(data)
        if "id" not in request:
            return []
        params = request.get("params", {})
        modern = "io.modelcontextprotocol/protocolVersion" in params.get("_meta", ())
        lines = []
        result: dict[str, Any]
        match request["method"]:
            case "tools/call" if params["name"] == "echo":
                result = {"content": [{"type": "text", "text": params["arguments"]["text"]}]}
            case "tools/call":
                total = params["arguments"]["n"]
                token = params["_meta"]["progressToken"]
                for step in range(1, total + 1):
                    reported = {"progressToken": token, "progress": step, "total": total}
                    lines.append(encode({**_PROGRESS, "params": reported}))
                result = {"content": [{"type": "text", "text": "done"}]}
            case "tools/list":
                result = {**_LISTED, **_CACHED} if modern else _LISTED
            case "initialize":
                result = {
                    "protocolVersion": params["protocolVersion"],
                    "capabilities": {"tools": {}},
                    "serverInfo": _INFO,
                }
            case "server/discover":
                known = {"supportedVersions": ["2026-07-28"], "capabilities": {"tools": {}}}
                result = {**known, **_CACHED}
            case "ping":
                result = {}
            case method:
                raise SystemExit(f"unknown method {method}")
        if modern:
            result = {**_MODERN, **result}
        lines.append(encode({"jsonrpc": "2.0", "id": request["id"], "result": result}))
        return lines

    return respond


# -- Over stdio ------------------------------------------------------------------------------------


class Lines:
    """The whole lines in what is read. A long line isn't copied again with each piece."""

    def __init__(self) -> None:
        self._kept: list[bytes] = []

    def take(self, chunk: bytes) -> list[bytes]:
        """Return the lines that end in this chunk."""
        lines, newline, rest = chunk.rpartition(b"\n")
        if not newline:
            self._kept.append(rest)
            return []
        whole = b"".join([*self._kept, lines]).split(b"\n")
        self._kept = [rest]
        return whole


def as_lines(respond: Callable[[bytes], list[bytes]], line: bytes) -> bytes:
    return b"".join([message + b"\n" for message in respond(line)])


def serve_blocking(respond: Callable[[bytes], bytes]) -> None:
    """Serve with blocking reads and writes. `respond` returns lines for a line."""
    lines = Lines()
    while chunk := os.read(0, _CHUNK):
        answers = memoryview(b"".join(map(respond, lines.take(chunk))))
        while answers:
            answers = answers[os.write(1, answers) :]


async def serve_trio(respond: Callable[[bytes], bytes], tasks: bool) -> None:
    """Serve with trio. `tasks`: each call in a task of its own."""
    import trio

    incoming, outgoing = trio.lowlevel.FdStream(os.dup(0)), trio.lowlevel.FdStream(os.dup(1))
    ready: list[bytes] = []
    writer = trio.lowlevel.ParkingLot()

    async def write() -> None:
        """Send what the calls have left, all of it at once."""
        while True:
            if not ready:
                await writer.park()
            data = b"".join(ready)
            ready.clear()
            await outgoing.send_all(data)

    async def call(line: bytes) -> None:
        ready.append(respond(line))
        writer.unpark()

    lines = Lines()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(write)
        async for chunk in incoming:
            whole = lines.take(bytes(chunk))
            if tasks:
                for line in whole:
                    nursery.start_soon(call, line)
            elif answers := b"".join(map(respond, whole)):
                await outgoing.send_all(answers)
        nursery.cancel_scope.cancel()


# -- Over HTTP -------------------------------------------------------------------------------------

_JSON: Final = (b"Content-Type", b"application/json")
_EVENTS: Final = [
    (b"Content-Type", b"text/event-stream"),
    (b"Cache-Control", b"no-cache"),
    (b"Transfer-Encoding", b"chunked"),
]
_SESSION: Final = (b"Mcp-Session-Id", b"0123456789abcdef0123456789abcdef")
_EMPTY: Final = (b"Content-Length", b"0")


async def serve_http(port: int, mode: str) -> None:
    import h11
    import trio

    respond = responder()
    end = h11.EndOfMessage()

    def reply(request: h11.Request, body: bytes) -> list[h11.Response | h11.Data]:
        """Return the response to one request, without its end."""
        if request.method != b"POST":
            status = 200 if request.method == b"DELETE" else 405
            return [h11.Response(status_code=status, headers=[_EMPTY])]
        messages = respond(body)
        if not messages:
            return [h11.Response(status_code=202, headers=[_EMPTY])]
        opens = mode.startswith("session-") and b'"initialize"' in body
        more = [_SESSION] if opens else []
        if mode == "session-sse" or len(messages) > 1:
            pieces = [h11.Data(data=b"data: %b\n\n" % each) for each in messages]
            return [h11.Response(status_code=200, headers=[*_EVENTS, *more]), *pieces]
        [data] = messages
        headers = [_JSON, (b"Content-Length", b"%d" % len(data)), *more]
        return [h11.Response(status_code=200, headers=headers), h11.Data(data=data)]

    async def serve(stream: trio.SocketStream) -> None:
        """Answer the requests of one connection."""
        connection = h11.Connection(h11.SERVER)
        pieces: list[bytes] = []
        request: h11.Request | None = None
        while True:
            event = connection.next_event()
            if event is h11.NEED_DATA:
                connection.receive_data(await stream.receive_some(_CHUNK))
            elif isinstance(event, h11.Request):
                request, pieces = event, []
            elif isinstance(event, h11.Data):
                pieces.append(bytes(event.data))
            elif isinstance(event, h11.EndOfMessage) and request is not None:
                events = [*reply(request, b"".join(pieces)), end]
                await stream.send_all(b"".join([connection.send(each) or b"" for each in events]))
                connection.start_next_cycle()
            else:
                return

    async def connected(stream: trio.SocketStream) -> None:
        async with stream:
            try:
                await serve(stream)
            except (h11.RemoteProtocolError, trio.BrokenResourceError):
                pass  # the client is gone, or does not speak HTTP

    await trio.serve_tcp(connected, port, host="127.0.0.1")


def main() -> None:
    match sys.argv[1:]:
        case ["pipe", "stdio"]:
            serve_blocking(echo_bytes)
        case ["blocking", "stdio"]:
            serve_blocking(partial(as_lines, responder()))
        case ["inline" | "task" as how, "stdio"]:
            import trio

            trio.run(serve_trio, partial(as_lines, responder()), how == "task")
        case ["h11", "http", "--port", port, "--mode", mode]:
            import trio

            trio.run(serve_http, int(port), mode)
        case _:
            sys.exit(
                "usage: floor.py pipe|blocking|inline|task stdio, or h11 http --port P --mode M"
            )


if __name__ == "__main__":
    main()
