"""The client's end of an HTTP/2 connection, frame by frame, valid or not; it records the responses.

`H2Wire` knows frames and HPACK, but no windows: the test decides what may be sent, and opens the
windows for the server.
"""

from __future__ import annotations

from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import trio
from hpack import Decoder

from mcp_core.http import Body, End, Head
from mcp_trio import memory_pair
from mcp_trio.http_server._driver import open_http_server_driver
from mcp_trio.http_server._h2_connection import H2ServerConnection
from tests.harness.wire.http1_client import FakeRouter
from tests.harness.wire.http2_frames import (
    ACK,
    CONTINUATION,
    DATA,
    END_HEADERS,
    END_STREAM,
    GOAWAY,
    HEADERS,
    HELLO,
    PING,
    RST_STREAM,
    SETTINGS,
    Frame,
    FrameReader,
    frame,
    post,
    reset,
)
from tests.harness.world.waiting import patience

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from mcp_trio.http_server._connection import AccessLogEntry
    from mcp_trio.http_server._driver import HttpServerDriver

CANCEL: Final = 8

__all__ = [
    "CANCEL",
    "H2Answer",
    "H2Serving",
    "H2Wire",
    "answering",
    "asking",
    "given_up",
    "h2_serving",
]


class H2Answer(NamedTuple):
    """The response on one stream.

    `reset` is the code of its RST_STREAM; `whole` if END_STREAM has arrived.
    """

    status: int
    headers: dict[bytes, bytes]
    body: bytes
    reset: int | None
    whole: bool


def asking(
    stream: int, body: bytes = b"", path: bytes = b"/echo", *more: tuple[bytes, bytes]
) -> bytes:
    """Return a complete request."""
    if not body:
        return post(stream, path, *more, flags=END_HEADERS | END_STREAM)
    return post(stream, path, *more) + frame(DATA, END_STREAM, stream, body)


class H2Wire:
    """An HTTP/2 client on `stream`.

    `frames` has all received frames, and `is_callback_for` the responses by stream.
    """

    def __init__(self, stream: trio.abc.Stream) -> None:
        self.stream = stream
        self.frames: list[Frame] = []
        self.answers: dict[int, H2Answer] = {}
        self.informed: list[tuple[int, int]] = []  # streams and interim statuses
        self._reader = FrameReader()
        self._decoder = Decoder()
        self._decoder.max_allowed_table_size = 2**32 - 1  # any size that a test announces

    async def send(self, *data: bytes) -> None:
        await self.stream.send_all(b"".join(data))

    async def more(self) -> bool:
        """Read more. Return False at the end."""
        with trio.fail_after(patience()):
            received = bytes(await self.stream.receive_some(65_536))
        for each in self._reader.feed(received):
            self._take(each)
        return bool(received)

    def _take(self, frame: Frame) -> None:
        self.frames.append(frame)
        before = self.answers.get(frame.stream, H2Answer(0, {}, b"", None, whole=False))
        assert frame.kind != CONTINUATION
        if frame.kind == HEADERS:
            assert frame.flags & END_HEADERS
            pairs = list(self._decoder.decode(frame.payload, raw=True))
            headers = {bytes(name): bytes(value) for name, value in pairs}
            assert len(headers) == len(pairs)
            status = int(headers.pop(b":status"))
            if status < 200:
                self.informed.append((frame.stream, status))
                return
            before = before._replace(status=status, headers=headers)
        elif frame.kind == DATA:
            assert before.status
            before = before._replace(body=before.body + frame.payload)
        elif frame.kind == RST_STREAM:
            before = before._replace(reset=frame.number)
        else:
            return
        if frame.kind in (HEADERS, DATA) and frame.flags & END_STREAM:
            assert not before.whole
            before = before._replace(whole=True)
        self.answers[frame.stream] = before

    async def until(self, kind: int, stream: int = 0, flags: int = 0) -> Frame:
        """Read until such a frame arrives, and remove it.

        Raise `EOFError` if the connection ends before.
        """
        while True:
            for place, found in enumerate(self.frames):
                if (found.kind, found.stream, found.flags) == (kind, stream, flags):
                    return self.frames.pop(place)
            if not await self.more():
                raise EOFError(self.frames)

    async def answer(self, stream: int) -> H2Answer:
        """Return the complete response on `stream`."""
        while True:
            found = self.answers.get(stream)
            if found is not None and (found.whole or found.reset is not None):
                return found
            if not await self.more():
                raise EOFError(self.frames)

    async def ask(self, stream: int, body: bytes = b"", path: bytes = b"/echo") -> H2Answer:
        await self.send(asking(stream, body, path))
        return await self.answer(stream)

    async def meet(self) -> None:
        """Exchange prefaces and settings."""
        await self.send(HELLO)
        await self.until(SETTINGS, flags=ACK)
        await self.send(frame(SETTINGS, ACK))
        self.frames.clear()

    async def settle(self) -> None:
        """Read everything that has been sent by now."""
        for _ in range(2):  # frames behind the first acknowledgement may come in a second piece
            await self.send(frame(PING, 0, 0, b"by now.."))
            await self.until(PING, flags=ACK)

    async def end(self) -> int | None:
        """Read until the connection ends. Return the code of the last GOAWAY, or None."""
        while await self.more():
            pass
        codes = [
            int.from_bytes(each.payload[4:8], "big") for each in self.frames if each.kind == GOAWAY
        ]
        return codes[-1] if codes else None


class H2Serving:
    """A driver for a router, with connections to it. `open` is the number of served ones."""

    def __init__(self, driver: HttpServerDriver, nursery: trio.Nursery) -> None:
        self.driver = driver
        self.nursery = nursery
        self.access_log: list[AccessLogEntry] = []
        self.connections: list[H2ServerConnection] = []
        self.open = 0

    def connect(self, stream: trio.abc.Stream | None = None) -> H2Wire:
        """Return a new connection, or one on `stream`, whose other end the test uses itself."""
        ours, theirs = memory_pair()
        connection = H2ServerConnection(self.driver, stream or ours, self.access_log.append)
        self.connections.append(connection)
        self.open += 1

        async def serve() -> None:
            try:
                await connection.serve()
            finally:
                self.open -= 1

        self.nursery.start_soon(serve)
        return H2Wire(theirs)

    async def meet(self) -> H2Wire:
        wire = self.connect()
        await wire.meet()
        return wire


@asynccontextmanager
async def h2_serving(site: Any) -> AsyncIterator[H2Serving]:
    """Serve `site`. Open connections are cancelled at the end."""
    async with open_http_server_driver(site) as driver, trio.open_nursery() as nursery:
        yield H2Serving(driver, nursery)
        nursery.cancel_scope.cancel()


def answering(size: int) -> FakeRouter:
    """A router that responds with a body of this size at `/large`."""
    site = FakeRouter()
    site.on_complete = lambda exchange: (
        exchange.send(Head(200, []), Body(b"x" * size), End())
        if exchange.head.target == b"/large"
        else None
    )
    return site


def given_up(id: int) -> bytes:
    """Return a call that is reset at once."""
    return asking(id, b"", b"/later") + reset(id, CANCEL)
