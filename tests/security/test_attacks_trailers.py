"""Attacks with trailers, over sockets: what comes after a body must not count as a header.

A head is checked before its body arrives. Neither side reads trailers, over HTTP/1.1 or HTTP/2. The
proxy, which passes some on, has a file of its own.
"""

from __future__ import annotations

import json
from functools import partial
from typing import Any, Final

import anyio
import pytest
import trio

import mcp_asyncio_shim
import mcp_trio
from mcp_core.auth import ApiKeys
from mcp_core.registry import Server
from tests.harness.wire.http1_client import HttpWire
from tests.harness.wire.http2_client import H2Wire
from tests.harness.wire.http2_frames import (
    DATA,
    END_HEADERS,
    END_STREAM,
    HEADERS,
    block,
    frame,
    post,
)
from tests.harness.wire.router import POST, initialize
from tests.harness.world.waiting import PATIENCE
from tests.security.test_attacks_event_ids import BreakingServer, response

KEY: Final = "k" * 32
HANDSHAKE: Final = json.dumps(initialize("2025-11-25")).encode()
TRAILERS: Final = [
    (b"authorization", f"Bearer {KEY}".encode()),
    (b"x-api-key", KEY.encode()),
    (b"mcp-protocol-version", b"2026-07-28"),
    (b"mcp-session-id", b"evil"),
    (b"host", b"evil.example"),
    (b"origin", b"https://evil.example"),
    (b"sec-fetch-site", b"cross-site"),
    (b"content-type", b"text/plain"),
]


@pytest.mark.parametrize("is_guarded", [False, True], ids=["open", "guarded"])
@pytest.mark.parametrize("trailer", TRAILERS, ids=[name.decode() for name, _ in TRAILERS])
async def test_trailer_of_a_request_changes_nothing(
    trailer: tuple[bytes, bytes], is_guarded: bool
) -> None:
    """The trailer comes after the head was checked: it neither opens a guard nor spoils a call."""
    auth = ApiKeys({"ann": KEY}) if is_guarded else None
    expected = 401 if is_guarded else 200
    async with trio.open_nursery() as nursery:
        address = await nursery.start(partial(mcp_trio.serve_http, Server("s"), auth=auth))
        with trio.fail_after(PATIENCE):
            wire = HttpWire(await trio.open_tcp_stream("127.0.0.1", address.port))
            async with wire.stream:
                fields = b"".join([b"%b: %b\r\n" % field for field in POST])
                await wire.send(
                    b"POST /mcp HTTP/1.1\r\n%btransfer-encoding: chunked\r\n\r\n" % fields
                    + b"%x\r\n%b\r\n0\r\n%b: %b\r\n\r\n" % (len(HANDSHAKE), HANDSHAKE, *trailer)
                )
                assert (await wire.answer()).status == expected
            h2 = H2Wire(await trio.open_tcp_stream("127.0.0.1", address.port))
            async with h2.stream:
                await h2.meet()
                head = [field for field in POST if field[0] != b"host"]
                await h2.send(
                    post(1, b"/mcp", *head, flags=END_HEADERS),
                    frame(DATA, 0, 1, HANDSHAKE),
                    frame(HEADERS, END_HEADERS | END_STREAM, 1, block([trailer])),
                )
                assert (await h2.answer(1)).status == expected
        nursery.cancel_scope.cancel()


class TrailingServer(BreakingServer):
    """A server whose responses have a session id and a challenge in trailers."""

    def __init__(self) -> None:
        super().__init__(b"")
        self.fields: list[dict[bytes, bytes]] = []

    def respond(self, method: bytes, fields: dict[bytes, bytes], body: bytes) -> bytes:
        self.fields.append(fields)
        message = json.loads(body) if method == b"POST" else {}
        if message.get("method") == "tools/call":
            done = {"content": [{"type": "text", "text": "done"}]}
            content = response(message["id"], done)
        else:
            head, _, content = super().respond(method, fields, body).partition(b"\r\n\r\n")
            if not content:
                return head + b"\r\n\r\n"
        return (
            b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ntransfer-encoding: chunked\r\n"
            b"connection: close\r\n\r\n%x\r\n%b\r\n0\r\nMcp-Session-Id: evil\r\n"
            b'WWW-Authenticate: Bearer resource_metadata="https://evil.example"\r\n'
            b"Content-Type: text/plain\r\nSet-Cookie: a=b\r\n\r\n" % (len(content), content)
        )


@pytest.mark.parametrize("runtime", ["trio", "asyncio"])
def test_trailer_of_a_response_changes_nothing(runtime: str) -> None:
    """None of the fields the server plants shows up in the client's later requests."""
    server = TrailingServer()
    connect: Any = mcp_trio.connect if runtime == "trio" else mcp_asyncio_shim.connect

    async def main() -> None:
        listener = await anyio.create_tcp_listener(local_host="127.0.0.1")
        port = listener.listeners[0].extra(anyio.abc.SocketAttribute.local_port)
        async with listener, anyio.create_task_group() as group:
            group.start_soon(listener.serve, server.serve)
            with anyio.fail_after(PATIENCE):
                connecting = connect(f"http://127.0.0.1:{port}/mcp", versions=["2025-11-25"])
                async with connecting as client:
                    result = await client.call_tool("echo", {})
            assert result.content[0].text == "done"
            group.cancel_scope.cancel()

    anyio.run(main, backend=runtime)
    assert len(server.fields) > 2
    for fields in server.fields:
        assert not {b"mcp-session-id", b"cookie", b"authorization"} & fields.keys()
