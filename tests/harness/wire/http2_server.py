"""The server's end of an HTTP/2 connection, for tests of the client.

`H2Peer` answers requests as `http1_server.py` does for HTTP/1.1. The library h2 makes its frames,
and checks the client's. `H2Played` sends frames made by hand, also invalid ones, and records the
client's; `playing` gives it a client.
"""

from __future__ import annotations

import json
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import trio
from h2.config import H2Configuration
from h2.connection import H2Connection as Parser
from h2.events import DataReceived, RequestReceived, StreamEnded, StreamReset, WindowUpdated
from h2.exceptions import ProtocolError
from h2.settings import SettingCodes, Settings
from hpack import Decoder, Encoder

from mcp_core import ConnectionLost
from mcp_core.http import Body, End, Head, RequestHead
from mcp_trio import memory_pair
from mcp_trio.http_client._h2_connection import H2ClientConnection
from tests.harness.wire.http1_server import EVENTS, JSON
from tests.harness.wire.http2_frames import (
    ACK,
    DATA,
    END_HEADERS,
    END_STREAM,
    HEADERS,
    PREFACE,
    SETTINGS,
    Frame,
    FrameReader,
    data,
    frame,
    settings,
)
from tests.harness.world.waiting import patience

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterable

    from mcp_core.http import Action
    from tests.harness.jsonrpc import Message
    from tests.harness.wire.http1_server import PlayedHttpServer

__all__ = [
    "FIRST_WINDOW",
    "MAX_FRAME",
    "MOST",
    "OK",
    "TABLE",
    "H2Exchange",
    "H2Peer",
    "H2Play",
    "H2Played",
    "H2Request",
    "ReceivedRequest",
    "playing",
]

OK: Final = ((b":status", b"200"), (b"content-type", b"application/json"))
TABLE, MOST, FIRST_WINDOW, MAX_FRAME = 1, 3, 4, 5


class H2Request:
    """A complete request, with methods to answer it, like `http1_server.Request`."""

    def __init__(
        self, connection: H2Peer, id: int, fields: list[tuple[str, str]], body: bytes
    ) -> None:
        self.connection = connection
        self.id = id
        self.headers = dict(fields)
        self.headers["host"] = self.headers[":authority"]
        self.method, self.target = self.headers[":method"], self.headers[":path"]
        self.message: Message = json.loads(body) if body else {}

    @property
    def rpc_method(self) -> str:
        method = self.message.get("method", "")
        assert isinstance(method, str)
        return method

    async def answer(
        self, status: int = 200, body: bytes = b"", headers: Iterable[tuple[str, str]] = JSON
    ) -> None:
        await self.begin(status, [*headers, ("content-length", str(len(body)))])
        await self.connection.send(self.id, body, end=True)

    async def result(self, result: Any, headers: Iterable[tuple[str, str]] = ()) -> None:
        answer = {"jsonrpc": "2.0", "id": self.message["id"], "result": result}
        await self.answer(200, json.dumps(answer).encode(), [*JSON, *headers])

    async def begin(self, status: int, headers: Iterable[tuple[str, str]]) -> None:
        self.connection.http.send_headers(self.id, [(":status", str(status)), *headers])
        await self.connection.flush()

    async def begin_stream(self) -> None:
        await self.begin(200, EVENTS)

    async def event(self, message: Any, id: str | None = None) -> None:
        id_field = f"id: {id}\n" if id is not None else ""
        await self.connection.send(self.id, f"{id_field}data: {json.dumps(message)}\n\n".encode())

    async def end(self) -> None:
        await self.connection.send(self.id, b"", end=True)

    async def reset(self, code: int) -> None:
        self.connection.http.reset_stream(self.id, code)
        await self.connection.flush()


class H2Peer:
    """The server's end of one connection. `most` is the maximum of concurrent requests."""

    most = 200

    def __init__(self, server: PlayedHttpServer, stream: trio.abc.Stream) -> None:
        self.server = server
        self.stream = stream
        self.requests = 0
        self.http = Parser(H2Configuration(client_side=False, header_encoding="utf-8"))
        most = {SettingCodes.MAX_CONCURRENT_STREAMS: self.most}
        self.http.local_settings = Settings(client=False, initial_values=most)
        self._writing = trio.Lock()
        self._room = trio.lowlevel.ParkingLot()
        self._begun: dict[int, tuple[list[tuple[str, str]], bytearray]] = {}
        self._playing: dict[int, trio.CancelScope] = {}

    async def flush(self, frames: bytes = b"") -> None:
        """Send what is queued, and then `frames`."""
        async with self._writing:
            await self.stream.send_all(self.http.data_to_send() + frames)

    async def send(self, id: int, data: bytes, *, end: bool = False) -> None:
        while data:
            size = min(
                self.http.local_flow_control_window(id),
                self.http.max_outbound_frame_size,
                len(data),
            )
            if size:
                self.http.send_data(id, data[:size])
                data = data[size:]
                await self.flush()
            else:
                await self._room.park()
        if end:
            self.http.end_stream(id)
            await self.flush()

    async def serve(self) -> None:
        """Play requests until either side closes."""
        self.http.initiate_connection()
        try:
            async with trio.open_nursery() as nursery:
                await self.flush()
                while data := await self.stream.receive_some():
                    for event in self.http.receive_data(data):
                        self._take(event, nursery)
                    await self.flush()
                nursery.cancel_scope.cancel()
        except* (trio.BrokenResourceError, trio.ClosedResourceError, ProtocolError):
            pass
        finally:
            await trio.aclose_forcefully(self.stream)
            self.server.closed += 1

    def _take(self, event: Any, nursery: trio.Nursery) -> None:
        if isinstance(event, RequestReceived):
            self._begun[event.stream_id] = event.headers, bytearray()  # type: ignore[assignment]
        elif isinstance(event, DataReceived):
            self._begun[event.stream_id][1].extend(event.data)
            self.http.acknowledge_received_data(event.flow_controlled_length, event.stream_id)
        elif isinstance(event, StreamEnded):
            fields, body = self._begun.pop(event.stream_id)
            request = H2Request(self, event.stream_id, fields, bytes(body))
            self.requests += 1
            self.server.requests.append(request)  # type: ignore[arg-type]
            nursery.start_soon(self._play, request)
        elif isinstance(event, StreamReset) and event.stream_id in self._playing:
            self._playing[event.stream_id].cancel()
        elif isinstance(event, WindowUpdated):
            self._room.unpark_all()

    async def _play(self, request: H2Request) -> None:
        with trio.CancelScope() as self._playing[request.id]:
            await self.server.play(request)  # type: ignore[arg-type]
        del self._playing[request.id]


# -- Frame by frame --------------------------------------------------------------------------------


class H2Played:
    """The server's end that the test plays on `stream`, frame by frame. Frames may be invalid."""

    def __init__(self, stream: trio.abc.Stream) -> None:
        self.stream = stream
        self.frames: list[Frame] = []
        self.fields: dict[int, list[tuple[bytes, bytes]]] = {}  # of requests
        self._encoder, self._decoder = Encoder(), Decoder()
        self._reader = FrameReader(PREFACE)

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

    async def request(self) -> ReceivedRequest:
        """Return the next request, with its complete body."""
        first = await self.until(HEADERS)
        body, last = b"", first
        while not last.flags & END_STREAM:
            last = await self.until(DATA, first.stream)
            body += last.payload
        return ReceivedRequest(first.stream, self.fields[first.stream], body)

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
        for found in self._reader.feed(received):
            self.frames.append(found)
            if found.kind == HEADERS:
                fields = self._decoder.decode(found.payload, raw=True)
                self.fields[found.stream] = [(bytes(name), bytes(value)) for name, value in fields]
        return bool(received)


class ReceivedRequest(NamedTuple):
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

    async def receive_request(self, body: bytes = b"{}") -> tuple[H2Exchange, ReceivedRequest]:
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
