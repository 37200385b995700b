"""The WebSocket of a hostile server, which is honest until the message that it attacks."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
import trio
from trio.testing import memory_stream_pair

from mcp_trio.testing.hostile._attack import MAX_BYTES
from mcp_trio.testing.hostile._server import HostileServer, _Connection, text_frame

if TYPE_CHECKING:
    from trio.testing import MockClock

    from mcp_trio.testing.hostile._server import AttackedRequest

UPGRADE = (
    b"GET /mcp HTTP/1.1\r\nHost: x\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
    b"Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"
)
MASK = b"\x11\x80\xff\x02"
PING = {"jsonrpc": "2.0", "id": 1, "method": "ping"}
PONG = b'{"jsonrpc":"2.0","id":1,"result":{}}'


def masked(message: Any) -> bytes:
    """Return a text frame of a client."""
    data = message if isinstance(message, bytes) else json.dumps(message).encode()
    size = len(data)
    if size < 126:
        head = bytes([0x81, 0x80 | size])
    elif size < 1 << 16:
        head = b"\x81\xfe" + size.to_bytes(2, "big")
    else:
        head = b"\x81\xff" + size.to_bytes(8, "big")
    return head + MASK + bytes(byte ^ MASK[place % 4] for place, byte in enumerate(data))


async def answers_to(on: str, *frames: bytes) -> tuple[bytes, HostileServer]:
    """Return what a server that attacks `on` sends after its head, and the server."""

    async def play(request: AttackedRequest) -> None:
        await request.send(b"attack")

    ours, theirs = memory_stream_pair()
    server = HostileServer("ws://x/mcp")
    connection = _Connection(theirs, server, play, on, "")  # type: ignore[arg-type]
    await ours.send_all(UPGRADE + b"".join(frames))
    await ours.send_eof()
    try:
        await connection.run()
    except trio.BrokenResourceError:
        pass  # the client has ended the connection
    await theirs.aclose()
    received = b"".join([bytes(data) async for data in ours])
    head, _, rest = received.partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 101 ")
    accept = b"none" if on == "upgrade" else b"s3pPLMBiTxaQ9kYGzzhZRbK+xOo="
    assert b"Sec-WebSocket-Accept: " + accept in head  # the example of RFC 6455, 1.3
    return rest, server


@pytest.mark.parametrize(
    "message",
    [
        {"jsonrpc": "2.0", "method": "notifications/initialized"},
        {"jsonrpc": "2.0", "id": 7, "result": {}},
        [],
        b"no JSON",
    ],
)
async def test_honest_websocket_answers_requests_alone(message: Any) -> None:
    received, server = await answers_to("tools/call", masked(message), masked(PING))
    assert received == text_frame(PONG)
    assert len(server.requests) == 2
    assert server.requests[1] == "ping"


@pytest.mark.parametrize("size", [10, 125, 126, 65_535, 65_536])
async def test_frame_of_any_size_is_read(size: int) -> None:
    pad = {**PING, "x": ""}
    pad["x"] = "a" * max(size - len(json.dumps(pad)), 0)
    received, _ = await answers_to("tools/call", masked(pad), masked(PING))
    assert received == text_frame(PONG) * 2


async def test_attack_is_of_the_named_message_and_ends_the_connection() -> None:
    call = {**PING, "method": "tools/call"}
    received, server = await answers_to("tools/call", masked(PING), masked(call), masked(PING))
    assert received == text_frame(PONG) + b"attack"
    assert (server.requests, server.attacks) == (["ping", "tools/call"], 1)


async def test_attack_of_the_upgrade_comes_before_any_message() -> None:
    received, server = await answers_to("upgrade", masked(PING))
    assert (received, server.requests, server.attacks) == (b"attack", [], 1)


async def test_frame_that_is_too_large_ends_the_connection(autojump_clock: MockClock) -> None:
    """It isn't read at all, so the server's memory has a bound, too."""
    ours, theirs = memory_stream_pair()
    unused: Any = None
    connection = _Connection(theirs, HostileServer("ws://x"), unused, "ping", "")  # type: ignore[arg-type]
    await ours.send_all(b"\x81\xff" + (MAX_BYTES + 1).to_bytes(8, "big"))
    with trio.fail_after(5), pytest.raises(trio.BrokenResourceError):
        await connection._read_frame()
