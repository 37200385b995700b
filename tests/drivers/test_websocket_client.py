"""A client's WebSocket to a server that the test plays in bytes: the upgrade, and how it ends.

The other end, and the protocol, are tested in `tests/trio_` and `tests/core/http`.
"""

from __future__ import annotations

import base64
import hashlib
import re
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any

import pytest
import trio

from mcp_core import ConnectFailed, ConnectionLost, McpTrioError
from mcp_core.http import MAX_ERROR_BODY
from tests.core.http.frames import BINARY, CLOSE, PONG, TEXT, close, frame, message
from tests.harness import either
from tests.harness.jsonrpc import D

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

pytestmark = pytest.mark.usefixtures("each_driver")


@contextmanager
def connecting_to(stream: Any) -> Iterator[None]:
    """Make each client connect to the other end of `stream`."""

    async def reach(*_: object) -> Any:
        await either.checkpoint()
        return stream if either.on_trio() else (stream.reader, stream.writer)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("mcp_trio.http_client._connector.Connector._connect", reach)
        patch.setattr("mcp_asyncio_shim._connect.open_streams", reach)
        yield


class PlayedPeer:
    """The server's end, in bytes: it reads with our frame reader, and sends what the test wants."""

    def __init__(self, stream: Any) -> None:
        self.stream = stream
        self.request = b""

    async def accept(self, answer: bytes | None = None) -> None:
        while b"\r\n\r\n" not in self.request:
            self.request += await self.stream.receive_some()
        if answer is None:
            found = re.search(rb"sec-websocket-key: (.*)\r", self.request)
            assert found is not None
            proof = base64.b64encode(
                hashlib.sha1(found[1] + b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11").digest()
            )
            answer = b"".join(
                [
                    (
                        b"HTTP/1.1 101 Switching Protocols\r\nupgrade: websocket\r\nconnection:"
                        b" upgrade\r\n"
                    ),
                    b"sec-websocket-protocol: mcp\r\nsec-websocket-accept: ",
                    proof,
                    b"\r\n\r\n",
                ]
            )
        await self.stream.send_all(answer)

    async def send(self, value: Any) -> None:
        await self.stream.send_all(message(value, mask=False))

    async def open(self) -> None:
        result = {
            "protocolVersion": D,
            "capabilities": {"tools": {}},
            "serverInfo": {"name": "p", "version": "1"},
        }
        await self.send({"jsonrpc": "2.0", "id": 1, "result": result})


async def played(play: Callable[[PlayedPeer], Any]) -> BaseException:
    """Return what a call raises at a server that does what `play` does after the handshake."""
    ours, theirs = either.memory_pair()

    async def serve() -> None:
        try:
            await play(PlayedPeer(theirs))
        except (trio.BrokenResourceError, trio.ClosedResourceError, ConnectionError):
            pass

    error: BaseException | None = None
    with connecting_to(ours):
        async with either.open_nursery() as nursery:
            nursery.start_soon(serve)
            try:
                async with either.connect("ws://localhost/mcp", versions=[D]) as opened:
                    await opened.call_tool("echo")
            except McpTrioError as exc:
                error = exc
            nursery.cancel_scope.cancel()
    assert error is not None
    return error


async def accept_and_sleep(stream: Any) -> None:
    peer = PlayedPeer(stream)
    await peer.accept()
    await peer.open()
    await either.sleep_forever()


SAID: list[tuple[str, bytes, str]] = [
    # what the server sends after the handshake, and the caller's error
    ("a Close", close(1001, b"restart", mask=False), r"closed the WebSocket \(1001, restart\)"),
    ("an empty Close", close(mask=False), r"closed the WebSocket \(1005\)"),
    ("binary", frame(BINARY, b"{}", mask=False), "messages are text"),
    ("a mask", message({}, mask=True), "masked"),
    ("no UTF-8", frame(TEXT, b"\xff", mask=False), "utf-8"),
    ("2^62 bytes", frame(TEXT, length=1 << 62, mask=False), "longer than 33554432 bytes"),
    ("garbage", frame(TEXT, b"?", mask=False) * 3, "not JSON"),
    ("nothing more", b"", "broke off"),
]


@pytest.mark.parametrize("early", [False, True], ids=["at work", "before it is open"])
@pytest.mark.parametrize(("data", "text"), [row[1:] for row in SAID], ids=[row[0] for row in SAID])
async def test_websocket_close_or_error_of_the_server_is_reported(
    data: bytes, text: str, early: bool
) -> None:
    """The peer breaks off before or after the upgrade, which decides the exception type."""

    async def play(peer: PlayedPeer) -> None:
        await peer.accept()
        if not early:
            await peer.open()
            await either.sleep(1)
        if data:
            await peer.stream.send_all(data)
            await either.sleep(5)
        await peer.stream.aclose()

    error = await played(play)
    assert type(error).__name__ in ("ConnectFailed", "ConnectionLost", "RemoteProtocolError")
    assert isinstance(error, ConnectFailed) is early
    with pytest.raises(type(error), match=text):
        raise error


async def test_websocket_silent_server_is_detected_by_ping() -> None:
    async def play(peer: PlayedPeer) -> None:
        await peer.accept()
        await peer.open()
        await either.sleep_forever()

    began = either.current_time()
    error = await played(play)
    assert "no answer to a ping within 20 s" in str(error)
    assert either.current_time() - began < 45


ANSWERS: list[tuple[bytes, str]] = [
    (b"HTTP/1.1 404 Not Found\r\ncontent-length: 0\r\n\r\n", "404 Not Found"),
    (
        b"HTTP/1.1 400 Bad Request\r\ncontent-type: text/plain\r\ncontent-length: 4\r\n\r\nno!\n",
        r"\(no!\)",
    ),
    (b"HTTP/1.1 400 Bad Request\r\ncontent-type: text/plain\r\n\r\nuntil the end", "until the end"),
    (
        b"HTTP/1.1 400 Bad Request\r\ncontent-type: text/plain\r\ncontent-length: 9\r\n\r\ncut",
        "cut",
    ),
    (b"HTTP/1.1 400 Bad Request\r\ntransfer-encoding: chunked\r\n\r\nxyz", "400"),
    (b"HTTP/1.1 200 OK\r\ncontent-length: 1000000\r\n\r\n" + b"x" * 70_000, "200"),
    (
        (
            b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 503 Busy\r\nretry-after: 7\r\ncontent-length:"
            b" 0\r\n\r\n"
        ),
        "after 7 s",
    ),
    (
        b"HTTP/1.1 101 Switching Protocols\r\nupgrade: websocket\r\nconnection: upgrade\r\n\r\n",
        "does not match the request",
    ),
    (b"SSH-2.0-OpenSSH\r\n\r\n", "not HTTP/1.1"),
    (b"\x15\x03\x01\x00\x02\x02\x46", r"speaks TLS; is its address wss:// instead\?"),
    (b"\x15\x03\x01", r"speaks TLS; is its address wss:// instead\?"),
    (b"HTTP/1.1 secret\r\n\r\n", r"not HTTP/1.1: illegal status line$"),
    (b"", "without an answer"),
]


@pytest.mark.parametrize(("answer", "text"), ANSWERS)
async def test_websocket_rejected_upgrade_raises(answer: bytes, text: str) -> None:
    async def play(peer: PlayedPeer) -> None:
        await peer.accept(answer)
        await peer.stream.aclose()

    error = await played(play)
    assert isinstance(error, ConnectFailed)
    with pytest.raises(ConnectFailed, match=text):
        raise error


@pytest.mark.parametrize(
    ("answer", "text"),
    [
        (
            b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\n: hello\n\n",
            "perhaps there is only http://",
        ),
        (b"HTTP/1.1 399 Odd\r\ncontent-type: text/plain\r\n\r\nhello", "HTTP status 399"),
        # No more of an error's text than its limit is read.
        (
            b"HTTP/1.1 400 Bad\r\ncontent-type: text/plain\r\n\r\n" + b"x" * MAX_ERROR_BODY,
            "HTTP status 400 Bad Request",
        ),
        (b"\x15\x03\x01\x00\x02\x02\x46", "speaks TLS"),
        (b"220 mail.example ready", "not HTTP/1.1"),
    ],
)
async def test_websocket_endless_other_response_raises_at_once(answer: bytes, text: str) -> None:
    """As a server without WebSockets that answers any GET with an event stream."""

    async def play(peer: PlayedPeer) -> None:
        await peer.accept(answer)
        await either.sleep_forever()

    with pytest.raises(ConnectFailed, match=text):
        raise await played(play)
    assert either.current_time() < 1


async def test_websocket_closed_upgrade_raises() -> None:
    async def play(peer: PlayedPeer) -> None:
        await peer.stream.aclose()

    error = await played(play)
    assert isinstance(error, ConnectFailed)
    assert "without an answer" in str(error)


async def test_websocket_that_closes_at_the_probe_is_not_opened_again() -> None:
    """Only a program that was started can be started again without a probe."""
    ours, theirs = either.memory_pair()

    async def serve() -> None:
        await PlayedPeer(theirs).accept()
        await theirs.aclose()

    async def connect() -> None:
        async with either.connect("ws://localhost/mcp"):
            raise AssertionError

    with connecting_to(ours):
        async with either.open_nursery() as nursery:
            nursery.start_soon(serve)
            with pytest.raises(ConnectFailed, match="the server broke off the connection"):
                await connect()


async def test_websocket_unanswered_upgrade_times_out() -> None:
    async def play(peer: PlayedPeer) -> None:
        await either.sleep_forever()

    assert "did not give us a WebSocket within 10 s" in str(await played(play))


async def test_websocket_client_waits_for_a_server_that_does_not_read() -> None:
    """Messages of the callers wait in the client, and each call is answered or fails."""
    ours, theirs = either.memory_pair()
    results: list[BaseException] = []
    with connecting_to(ours):
        async with either.open_nursery() as nursery:
            nursery.start_soon(accept_and_sleep, theirs)
            async with either.connect("ws://localhost/mcp", versions=[D]) as opened:

                async def call() -> None:
                    try:
                        await opened.call_tool("echo", {"text": "x" * 50_000})
                    except ConnectionLost as exc:
                        results.append(exc)

                async with either.open_nursery() as calls:
                    for _ in range(10):
                        calls.start_soon(call)
            nursery.cancel_scope.cancel()
    assert len(results) == 10


async def test_websocket_client_cancelled_after_the_server_is_gone() -> None:
    """The cancellation can't be sent any more, and that failure must not replace it."""
    ours, theirs = either.memory_pair()
    with connecting_to(ours):
        async with either.open_nursery() as nursery:
            nursery.start_soon(accept_and_sleep, theirs)
            with either.move_on_after(5) as scope:
                async with (
                    either.connect("ws://localhost/mcp", versions=[D]) as opened,
                    either.open_nursery() as calls,
                ):
                    calls.start_soon(opened.call_tool, "echo", {"text": "x"})
                    await either.sleep(1)
                    either.stop_reading(theirs)
                    await either.sleep_forever()
            nursery.cancel_scope.cancel()
    assert scope.cancelled_caught


async def test_websocket_client_that_is_cancelled_tells_the_server_first() -> None:
    """It cancels its calls, so that their handlers stop before the end of the connection is seen.

    The messages are masked, and short.
    """
    ours, theirs = either.memory_pair()
    received = b""

    async def serve() -> None:
        nonlocal received
        peer = PlayedPeer(theirs)
        await peer.accept()
        await peer.open()
        with suppress(trio.BrokenResourceError, ConnectionError):
            while data := await theirs.receive_some():
                received += data

    with connecting_to(ours):
        async with either.open_nursery() as nursery:
            nursery.start_soon(serve)
            with either.move_on_after(5) as scope:
                async with either.connect("ws://localhost/mcp", versions=[D]) as opened:
                    await opened.call_tool("echo", {"text": "x"})
            assert scope.cancelled_caught
            await either.wait_all_tasks_blocked()
            nursery.cancel_scope.cancel()
    texts = []
    while received:
        opcode, size, start = received[0] & 0xF, received[1] & 0x7F, 2
        if size == 126:
            size, start = int.from_bytes(received[2:4], "big"), 4
        mask, payload = received[start : start + 4], received[start + 4 : start + 4 + size]
        received = received[start + 4 + size :]
        if opcode == TEXT:
            texts.append(bytes(byte ^ mask[place % 4] for place, byte in enumerate(payload)))
    assert b'"tools/call"' in texts[-2]
    assert b'"notifications/cancelled"' in texts[-1]


async def test_websocket_whose_stream_breaks_is_left_at_once() -> None:
    """There is no peer any more that could close it as well."""
    ours, theirs = either.memory_pair()
    with connecting_to(ours):
        async with either.open_nursery() as nursery:
            nursery.start_soon(accept_and_sleep, theirs)
            async with either.connect("ws://localhost/mcp", versions=[D]) as opened:
                either.stop_reading(theirs)
                with pytest.raises(ConnectionLost, match="the server broke off the connection"):
                    await opened.call_tool("echo")
                began = either.current_time()
            assert either.current_time() == began
            nursery.cancel_scope.cancel()


async def test_websocket_call_takes_longer_than_a_write_may() -> None:
    """A request that was written isn't waited for, although nothing is sent after it.

    The server's pongs show that it lives, so that it isn't pinged (RFC 6455, 5.5.3, allows them).
    """

    async def play(peer: PlayedPeer) -> None:
        await peer.accept()
        await peer.open()
        for _ in range(3):
            await either.sleep(15)
            await peer.stream.send_all(frame(PONG, mask=False))
        await peer.stream.send_all(close(1001, b"restart", mask=False))

    error = await played(play)
    assert str(error) == "the server closed the WebSocket (1001, restart)"
    assert either.current_time() >= 45


@pytest.mark.parametrize(("delay", "seconds"), [(0.0, 0.0), (0.5, 0.5), (60.0, 1.0)])
async def test_websocket_client_waits_a_second_for_the_close_of_the_server(
    delay: float, seconds: float
) -> None:
    """It sends its own Close at once, and no longer than the server's takes is waited."""
    ours, theirs = either.memory_pair()
    closed: list[float] = []

    async def serve() -> None:
        peer = PlayedPeer(theirs)
        await peer.accept()
        await peer.open()
        while True:
            data = await theirs.receive_some()
            if data[:1] == bytes([0x80 | CLOSE]):
                break
        closed.append(either.current_time())
        await either.sleep(delay)
        with suppress(trio.BrokenResourceError, OSError):
            await theirs.send_all(close(1000, mask=False))

    with connecting_to(ours):
        async with either.open_nursery() as nursery:
            nursery.start_soon(serve)
            async with either.connect("ws://localhost/mcp", versions=[D]):
                await either.sleep(1)
                began = either.current_time()
            assert either.current_time() - began == pytest.approx(seconds)
            assert closed == [began]
            nursery.cancel_scope.cancel()
