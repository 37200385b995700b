"""The server's end of an HTTP/2 connection, played frame by frame, for tests of the client.

Frames are made by hand here, also invalid ones. What the client sends is recorded in `frames`.
"""

from __future__ import annotations

from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Final, NamedTuple

import trio
from hpack import Decoder, Encoder

from mcp_core import ConnectionLost
from mcp_core.http import Body, End, Head, RequestHead
from mcp_core.http.wire._http2_frames import PREFACE
from mcp_trio import memory_pair
from mcp_trio.http_client._h2_connection import H2ClientConnection
from tests.core.http.h2_frames import (
    ACK,
    DATA,
    END_HEADERS,
    END_STREAM,
    GOAWAY,
    HEADERS,
    PING,
    RST_STREAM,
    SETTINGS,
    WINDOW_UPDATE,
    frame,
    number,
    setting,
)
from tests.harness.world.waiting import patience

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterable

    from mcp_core.http import Action

__all__ = [
    "OK",
    "Frame",
    "H2Play",
    "H2Played",
    "Request",
    "data",
    "go_away",
    "ping",
    "playing",
    "reset",
    "settings",
    "window",
]

OK: Final = ((b":status", b"200"), (b"content-type", b"application/json"))
TABLE, MOST, FIRST_WINDOW, MAX_FRAME = 1, 3, 4, 5


class Frame(NamedTuple):
    kind: int
    flags: int
    stream: int
    payload: bytes


def settings(*pairs: tuple[int, int]) -> bytes:
    return frame(SETTINGS, payload=b"".join(setting(*pair) for pair in pairs))


def data(stream: int, payload: bytes, *, end: bool = False) -> bytes:
    return frame(DATA, END_STREAM if end else 0, stream, payload)


def reset(stream: int, code: int) -> bytes:
    return frame(RST_STREAM, 0, stream, number(code))


def go_away(last: int, code: int = 0, why: bytes = b"") -> bytes:
    return frame(GOAWAY, payload=number(last) + number(code) + why)


def ping(payload: bytes = b"12345678", *, ack: bool = False) -> bytes:
    return frame(PING, ACK if ack else 0, payload=payload)


def window(stream: int, more: int) -> bytes:
    return frame(WINDOW_UPDATE, 0, stream, number(more))


class H2Played:
    """The server's end that the test plays, on `stream`."""

    def __init__(self, stream: trio.abc.Stream) -> None:
        self.stream = stream
        self.frames: list[Frame] = []
        self.fields: dict[int, list[tuple[bytes, bytes]]] = {}  # of requests
        self._encoder, self._decoder = Encoder(), Decoder()
        self._rest = b""
        self._greeted = False

    def head(
        self, stream: int, fields: Iterable[tuple[bytes, bytes]] = OK, *, end: bool = False
    ) -> bytes:
        block = self._encoder.encode(list(fields))
        return frame(HEADERS, END_HEADERS | (END_STREAM if end else 0), stream, block)

    def answer(self, stream: int, body: bytes = b"hello") -> bytes:
        return self.head(stream) + data(stream, body, end=True)

    async def send(self, *frames: bytes) -> None:
        await self.stream.send_all(b"".join(frames))

    async def greet(self, *pairs: tuple[int, int]) -> None:
        """Send the preface with these settings, and read the client's."""
        self._decoder.max_allowed_table_size = dict(pairs).get(TABLE, 4096)
        await self.send(settings(*pairs))
        await self.until(SETTINGS, flags=ACK)

    async def until(self, kind: int, stream: int | None = None, *, flags: int = 0) -> Frame:
        """Read until there is such a frame that was not returned before, and return it."""
        with trio.fail_after(patience()):
            while True:
                for found in self.frames:
                    if (
                        found.kind == kind
                        and stream in (None, found.stream)
                        and found.flags & flags == flags
                    ):
                        self.frames.remove(found)
                        return found
                if not await self.more():
                    raise EOFError(self.frames)

    async def request(self) -> Request:
        """Return the next request, with its complete body."""
        first = await self.until(HEADERS)
        body, last = b"", first
        while not last.flags & END_STREAM:
            last = await self.until(DATA, first.stream)
            body += last.payload
        return Request(first.stream, self.fields[first.stream], body)

    async def ended(self) -> bool:
        """Read until the end of the connection."""
        with trio.fail_after(patience()):
            while await self.more():
                pass
        return True

    async def more(self) -> bool:
        try:
            received = bytes(await self.stream.receive_some())
        except trio.BrokenResourceError:
            return False
        self._rest += received
        if not self._greeted and len(self._rest) >= len(PREFACE):
            assert self._rest.startswith(PREFACE)
            self._rest, self._greeted = self._rest[len(PREFACE) :], True
        while self._greeted and len(self._rest) >= (
            end := 9 + int.from_bytes(self._rest[:3], "big")
        ):
            head, payload, self._rest = self._rest[:9], self._rest[9:end], self._rest[end:]
            found = Frame(head[3], head[4], int.from_bytes(head[5:], "big"), payload)
            self.frames.append(found)
            if found.kind == HEADERS:
                fields = self._decoder.decode(payload, raw=True)
                self.fields[found.stream] = [(bytes(name), bytes(value)) for name, value in fields]
        return bool(received)


class Request(NamedTuple):
    stream: int
    fields: list[tuple[bytes, bytes]]
    body: bytes


class H2Exchange:
    """One request of the client, with its result. While `pause` is set its response is paused."""

    def __init__(
        self, client: H2ClientConnection, body: bytes = b"{}", *headers: tuple[bytes, bytes]
    ) -> None:
        self.client, self.body = client, body
        self.head = RequestHead(b"POST", b"/mcp?a=b", [(b"host", b"here"), *headers])
        self.actions: list[Action] = []
        self.again: bool | None = None
        self.error: Exception | None = None
        self.pause: trio.Event | None = None  # for which the client has to wait
        self.over = trio.Event()
        self.scope = trio.CancelScope()

    async def run(self) -> None:
        with self.scope:
            try:
                self.again = await self.client.run(self.head, self.body, self.take)
            except (ConnectionLost, ValueError) as exc:
                self.error = exc
        self.over.set()

    def take(self, actions: list[Action]) -> trio.Event | None:
        assert actions
        self.actions += actions
        return self.pause

    async def ends(self) -> H2Exchange:
        with trio.fail_after(patience()):
            await self.over.wait()
        return self

    @property
    def status(self) -> int:
        head = self.actions[0]
        assert isinstance(head, Head)
        return head.status

    @property
    def text(self) -> bytes:
        return b"".join(action.data for action in self.actions if isinstance(action, Body))

    @property
    def whole(self) -> bool:
        return bool(self.actions) and isinstance(self.actions[-1], End)


class H2Play:
    """A client, and the server that the test plays."""

    def __init__(self, client: H2ClientConnection, server: H2Played, nursery: trio.Nursery) -> None:
        self.client, self.server, self.nursery = client, server, nursery

    def ask(self, body: bytes = b"{}", *headers: tuple[bytes, bytes]) -> H2Exchange:
        exchange = H2Exchange(self.client, body, *headers)
        self.nursery.start_soon(exchange.run)
        return exchange

    async def receive_request(self, body: bytes = b"{}") -> tuple[H2Exchange, Request]:
        """Send a request, and read it on the other side."""
        exchange = self.ask(body)
        return exchange, await self.server.request()


@asynccontextmanager
async def playing(*pairs: tuple[int, int]) -> AsyncIterator[H2Play]:
    """Yield a started connection. At the end the client closes it, and no state must be left."""
    ours, theirs = memory_pair()
    client, server = H2ClientConnection(ours, "https"), H2Played(theirs)
    async with theirs, trio.open_nursery() as nursery:
        try:
            async with trio.open_nursery() as opening:
                opening.start_soon(server.greet, *pairs)
                await client.open(nursery)
            async with trio.open_nursery() as asking:
                yield H2Play(client, server, asking)
                asking.cancel_scope.cancel()
            with trio.fail_after(patience()):
                await client.aclose()
        finally:
            client._scope.cancel()  # the scope is shielded, but a failing test must end
