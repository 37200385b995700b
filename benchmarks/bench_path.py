"""The path of one call: Python calls inside our packages, and the files that they are in.

Measured is the server side of one `tools/call` of 2026-07-28 whose handler is a plain `def`, on a
connection that has served three calls before: from the bytes of the request to the bytes of the
response, and until the server waits for the next request. `client` is the other side over HTTP/1.1:
from `call_tool` until it has returned, against a server that is not ours. Resuming a waiting
coroutine counts as a call of each of its frames; a comprehension, which is a frame until Python
3.11 only, does not count. The figures say how much a reader has to follow, not how long it takes.

`--update FILE` writes the functions of the paths, in order, between the markers of a Markdown file.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, Final, NamedTuple
from urllib.parse import urlsplit

import trio
import trio.testing

import mcp_core
import mcp_trio

PACKAGES: Final = tuple(
    f"{Path(package.__file__ or '').parent}/" for package in (mcp_core, mcp_trio)
)
ROOT: Final = f"{Path(mcp_core.__file__ or '').parents[1]}/"
# The other end of the stream that stands for stdin and stdout, and what looks for leaks in tests.
NOT_COUNTED: Final = ("/mcp_trio/streams/_memory.py", "/mcp_trio/testing/_leaks.py")
META: Final = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientCapabilities": {},
}
HEADERS: Final = [
    (b"content-type", b"application/json"),
    (b"accept", b"application/json, text/event-stream"),
    (b"mcp-protocol-version", b"2026-07-28"),
    (b"mcp-method", b"tools/call"),
    (b"mcp-name", b"greet"),
]
DISCOVERED: Final = {
    "resultType": "complete",
    "supportedVersions": ["2026-07-28"],
    "capabilities": {"tools": {}},
    "serverInfo": {"name": "other", "version": "1"},
    "ttlMs": 0,
    "cacheScope": "private",
}
GREETED: Final = {"resultType": "complete", "content": [{"type": "text", "text": "Hello, A!"}]}
WARM: Final = 3  # calls before those that are measured
MEASURED: Final = 5

COMPREHENSIONS: Final = ("<listcomp>", "<dictcomp>", "<setcomp>")

Call = Callable[[int], Awaitable[None]]


class CallPath(NamedTuple):
    """The Python calls of one `tools/call`, in order: file and function."""

    calls: list[tuple[str, str]]

    @property
    def files(self) -> int:
        """The number of files that the calls are in."""
        return len({file for file, _ in self.calls})

    def markdown(self) -> str:
        """Return a numbered list: one item per run of calls in one file, each function once."""
        items: list[tuple[str, list[str]]] = []
        seen: set[tuple[str, str]] = set()
        for file, function in self.calls:
            if (file, function) in seen or "<" in function:
                continue
            seen.add((file, function))
            if not items or items[-1][0] != file:
                items.append((file, []))
            items[-1][1].append(f"`{function}`")
        return "".join(f"1. `{file}`: {', '.join(names)}\n" for file, names in items)


def server() -> mcp_trio.Server:
    served = mcp_trio.Server("greeter")

    @served.tool
    def greet(name: str) -> str:
        """Greet."""
        return f"Hello, {name}!"

    return served


def request(id: int) -> bytes:
    params = {"name": "greet", "arguments": {"name": "A"}, "_meta": META}
    return json.dumps(
        {"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params}
    ).encode()


async def measured(call: Call) -> CallPath:
    """Make some calls, and count what each of the last ones takes. Return the shortest path.

    On a busy machine a call may take more, such as for the warning that a handler takes long.
    """
    calls: list[tuple[str, str]] = []
    paths: list[CallPath] = []

    def count(frame: Any, event: str, argument: Any) -> None:
        code = frame.f_code
        name: str = code.co_filename
        if (
            event == "call"
            and name.startswith(PACKAGES)
            and not name.endswith(NOT_COUNTED)
            and code.co_name not in COMPREHENSIONS
        ):
            calls.append((name.removeprefix(ROOT), code.co_qualname))

    for id in range(1, WARM + 1):
        await call(id)
    await trio.testing.wait_all_tasks_blocked()
    for id in range(WARM + 1, WARM + 1 + MEASURED):
        calls.clear()
        sys.setprofile(count)
        try:
            await call(id)
            await trio.testing.wait_all_tasks_blocked()
        finally:
            sys.setprofile(None)
        paths.append(CallPath(calls.copy()))
    return min(paths, key=lambda path: len(path.calls))


async def over_http() -> CallPath:
    """HTTP/1.1, over a socket."""
    async with trio.open_nursery() as nursery:
        address = await nursery.start(mcp_trio.serve_http, server())
        url = urlsplit(address.url)
        stream = await trio.open_tcp_stream(url.hostname, url.port)

        async def call(id: int) -> None:
            body = request(id)
            lines = [b"POST /mcp HTTP/1.1", b"host: " + url.netloc.encode()]
            lines += [b"%b: %b" % header for header in HEADERS]
            lines.append(b"content-length: %d\r\n\r\n" % len(body))
            await stream.send_all(b"\r\n".join(lines) + body)
            await response_to(id, stream)

        async with stream:
            found = await measured(call)
        nursery.cancel_scope.cancel()
    return found


async def over_asgi() -> CallPath:
    """ASGI, called as a server on trio does it."""
    app = mcp_trio.asgi(server())

    async def call(id: int) -> None:
        unread = [{"type": "http.request", "body": request(id), "more_body": False}]

        async def receive() -> Any:
            if not unread:
                await trio.sleep_forever()
            return unread.pop()

        async def send(message: Any) -> None:
            assert message.get("status", 200) == 200, message

        scope = {
            "type": "http",
            "asgi": {"version": "3.0"},
            "http_version": "1.1",
            "method": "POST",
            "path": "/mcp",
            "raw_path": b"/mcp",
            "query_string": b"",
            "headers": [(b"host", b"127.0.0.1:8000"), *HEADERS],
        }
        await app(scope, receive, send)

    return await measured(call)


async def over_stdio() -> CallPath:
    """A stream of lines."""
    ours, theirs = mcp_trio.memory_pair()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(mcp_trio.serve_stream, server(), theirs)

        async def call(id: int) -> None:
            await ours.send_all(request(id) + b"\n")
            await response_to(id, ours)

        found = await measured(call)
        nursery.cancel_scope.cancel()
    return found


async def over_http_client() -> CallPath:
    """The client of an HTTP/1.1 server that answers each request in the same way."""
    listeners = await trio.open_tcp_listeners(0, host="127.0.0.1")
    port = listeners[0].socket.getsockname()[1]
    async with trio.open_nursery() as nursery:
        nursery.start_soon(trio.serve_listeners, answer_requests, listeners)
        async with mcp_trio.connect_http(f"http://127.0.0.1:{port}/mcp") as client:

            async def call(id: int) -> None:
                await client.call_tool("greet", {"name": "A"})

            found = await measured(call)
        nursery.cancel_scope.cancel()
    return found


async def answer_requests(stream: trio.abc.Stream) -> None:
    """Answer the requests of one connection."""
    async with stream:
        await answer_all(stream)


async def answer_all(stream: trio.abc.Stream) -> None:
    received = b""
    while data := await stream.receive_some(65_536):
        received += data
        head, end, body = received.partition(b"\r\n\r\n")
        size = int(head.lower().partition(b"\r\ncontent-length:")[2].split(b"\r\n")[0] or 0)
        if not end or len(body) < size:
            continue
        received = body[size:]
        message = json.loads(body[:size])
        found = DISCOVERED if message["method"] == "server/discover" else GREETED
        answer = {"jsonrpc": "2.0", "id": message["id"], "result": found}
        sent = json.dumps(answer).encode()
        start = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: %d\r\n\r\n"
        await stream.send_all(start % len(sent) + sent)


async def response_to(id: int, stream: trio.abc.ReceiveStream) -> None:
    received = b""
    while b'"id":%d' % id not in received:
        received += await stream.receive_some(65_536)


MEASURES: Final = {
    "http": over_http,
    "asgi": over_asgi,
    "stdio": over_stdio,
    "client": over_http_client,
}


def with_paths(text: str, paths: dict[str, CallPath]) -> str:
    """Return Markdown `text` with the list of each path between its markers."""
    for name, path in paths.items():
        head, marker, rest = text.partition(f"<!-- path: {name} -->\n")
        if marker:
            tail = rest[rest.index("<!-- end -->") :]
            text = head + marker + path.markdown() + tail
    return text


def main() -> None:
    parser = argparse.ArgumentParser(description="The path of one call.")
    parser.add_argument("--update", type=Path, metavar="FILE", help="write the paths into FILE")
    file: Path | None = parser.parse_args().update
    figures: dict[str, int] = {}
    paths = {name: trio.run(measure) for name, measure in MEASURES.items()}
    print(f"{'':8}{'calls':>8}{'files':>8}")
    for name, path in paths.items():
        calls = len(path.calls)
        print(f"{name:8}{calls:8}{path.files:8}")
        figures |= {f"{name}_calls": calls, f"{name}_files": path.files}
    if file is not None:
        file.write_text(with_paths(file.read_text("utf-8"), paths), "utf-8")
    print(json.dumps(figures))


if __name__ == "__main__":
    main()
