"""The length of the path of one call: Python calls inside our packages, and the files that they are
in.

Measured is the server side of one `tools/call` of 2026-07-28 whose handler is a plain `def`, on a
connection that has served three calls before: from the bytes of the request to the bytes of the
response, and until the server waits for the next request. That a waiting coroutine is resumed
counts as a call of each of its frames. This says how much a reader has to follow, not how long it
takes.
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
# The other end of the stream that stands for stdin and stdout.
NOT_COUNTED: Final = "/mcp_trio/streams/_memory.py"
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
WARM: Final = 3  # calls before the one that is measured

Call = Callable[[int], Awaitable[None]]


class Length(NamedTuple):
    """Python calls, and the files that they are in."""

    calls: int
    files: int


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


async def measured(call: Call) -> Length:
    """Make some calls, and count what the last one takes."""
    files: list[str] = []

    def count(frame: Any, event: str, argument: Any) -> None:
        name: str = frame.f_code.co_filename
        if event == "call" and name.startswith(PACKAGES) and not name.endswith(NOT_COUNTED):
            files.append(name)

    for id in range(1, WARM + 1):
        await call(id)
    await trio.testing.wait_all_tasks_blocked()
    sys.setprofile(count)
    try:
        await call(WARM + 1)
        await trio.testing.wait_all_tasks_blocked()
    finally:
        sys.setprofile(None)
    return Length(len(files), len(set(files)))


async def over_http() -> Length:
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

        found = await measured(call)
        nursery.cancel_scope.cancel()
    return found


async def over_asgi() -> Length:
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


async def over_stdio() -> Length:
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


async def response_to(id: int, stream: trio.abc.ReceiveStream) -> None:
    received = b""
    while b'"id":%d' % id not in received:
        received += await stream.receive_some(65_536)


MEASURES: Final = {"http": over_http, "asgi": over_asgi, "stdio": over_stdio}


def main() -> None:
    argparse.ArgumentParser(description="The length of the path of one call.").parse_args()
    figures: dict[str, int] = {}
    print(f"{'':8}{'calls':>8}{'files':>8}")
    for name, measure in MEASURES.items():
        calls, files = trio.run(measure)
        print(f"{name:8}{calls:8}{files:8}")
        figures |= {f"{name}_calls": calls, f"{name}_files": files}
    print(json.dumps(figures))


if __name__ == "__main__":
    main()
