"""Attacks with event ids, over sockets: a client sends them back in a header, on both drivers."""

from __future__ import annotations

import json
from typing import Any, Final

import anyio
import pytest

import mcp_asyncio_shim
import mcp_trio
from tests.harness.world.waiting import PATIENCE

CONNECTS: Final[dict[str, Any]] = {
    "trio": mcp_trio.connect,
    "asyncio": mcp_asyncio_shim.connect,
}
# The second id of a stream, after "good"; the value of `Last-Event-ID` that the client sends.
IDS: Final[list[tuple[bytes, bytes]]] = [
    (b"next", b"next"),
    (b"a\0b", b"good"),
    (b"\x1b[2J", b"good"),
    (b"a\x01b", b"good"),
    (b"a\x7fb", b"good"),
    (b"a\x0bb", b"good"),
    (b" spaced  ", b"spaced"),
    (b"a\tb", b"a\tb"),
    ("é".encode(), "é".encode()),
    (b"\xff", b"good"),
    (b"a\xed\xa0\x80", b"good"),
    (b"a\xed\xb0\x80", b"good"),
    (b"a: b, c", b"a: b, c"),
]


class BreakingServer:
    """A server of 2025-11-25 whose stream breaks off after an event with the id `evil`."""

    def __init__(self, evil: bytes) -> None:
        self.evil = evil
        self.call: Any = None  # the id of the request whose stream broke off
        self.resumed: list[bytes] = []

    async def serve(self, stream: Any) -> None:
        async with stream:
            received = b""
            while b"\r\n\r\n" not in received:
                received += await stream.receive()
            head, _, body = received.partition(b"\r\n\r\n")
            lines = head.split(b"\r\n")
            fields = dict(line.split(b": ", 1) for line in lines[1:])
            fields = {name.lower(): value for name, value in fields.items()}
            while len(body) < int(fields.get(b"content-length", b"0")):
                body += await stream.receive()
            await stream.send(self.respond(lines[0].split(b" ")[0], fields, body))

    def respond(self, method: bytes, fields: dict[bytes, bytes], body: bytes) -> bytes:
        if method == b"GET" and self.call is not None:
            self.resumed.append(fields.get(b"last-event-id", b"(none)"))
            done = {"content": [{"type": "text", "text": "done"}]}
            return events(b"data: " + response(self.call, done) + b"\n\n")
        if method != b"POST":
            return b"HTTP/1.1 405 No\r\ncontent-length: 0\r\nconnection: close\r\n\r\n"
        message = json.loads(body)
        if message["method"] == "initialize":
            result = {
                "protocolVersion": "2025-11-25",
                "capabilities": {"tools": {}},
                "serverInfo": {"name": "s", "version": "1"},
            }
            return whole(response(message["id"], result))
        if message["method"] == "tools/call":
            self.call = message["id"]
            return events(b"id: good\ndata:\n\nretry: 0\nid: " + self.evil + b"\ndata:\n\n")
        return b"HTTP/1.1 202 Accepted\r\ncontent-length: 0\r\nconnection: close\r\n\r\n"


def response(id: Any, result: Any) -> bytes:
    return json.dumps({"jsonrpc": "2.0", "id": id, "result": result}).encode()


def whole(body: bytes) -> bytes:
    return (
        b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: %d\r\n"
        b"connection: close\r\n\r\n%b" % (len(body), body)
    )


def events(body: bytes) -> bytes:
    return b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n" + body


@pytest.mark.parametrize(("evil", "sent"), IDS)
@pytest.mark.parametrize("runtime", CONNECTS)
def test_event_id_that_no_header_can_carry_is_not_sent_back(
    runtime: str, evil: bytes, sent: bytes
) -> None:
    """The stream is resumed after the last usable id, instead of failing on the broken one."""
    server = BreakingServer(evil)

    async def main() -> None:
        listener = await anyio.create_tcp_listener(local_host="127.0.0.1")
        port = listener.listeners[0].extra(anyio.abc.SocketAttribute.local_port)
        async with listener, anyio.create_task_group() as group:
            group.start_soon(listener.serve, server.serve)
            with anyio.fail_after(PATIENCE):
                connecting = CONNECTS[runtime](
                    f"http://127.0.0.1:{port}/mcp", versions=["2025-11-25"]
                )
                async with connecting as client:
                    result = await client.call_tool("slow", {})
            assert result.content[0].text == "done"
            group.cancel_scope.cancel()

    anyio.run(main, backend=runtime)
    assert server.resumed == [sent]
