"""A played HTTP/2 server's end of a connection, as `http1_server.py` has for HTTP/1.1."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import trio
from h2.config import H2Configuration
from h2.connection import H2Connection as Parser
from h2.events import DataReceived, RequestReceived, StreamEnded, StreamReset, WindowUpdated
from h2.exceptions import ProtocolError
from h2.settings import SettingCodes, Settings

from tests.harness.wire.http1_server import EVENTS, JSON

if TYPE_CHECKING:
    from collections.abc import Iterable

    from tests.harness.jsonrpc import Message
    from tests.harness.wire.http1_server import PlayedHttpServer

__all__ = ["H2Peer", "H2Request"]


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
