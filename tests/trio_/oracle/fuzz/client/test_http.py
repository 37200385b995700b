"""The HTTP side of a scripted server: the streams that a client opens with GET, and sessions."""

from __future__ import annotations

import json
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import h11
import pytest
import trio

from mcp_trio import memory_pair
from mcp_trio.oracle.fuzz._shared_trace import new_header
from mcp_trio.oracle.fuzz.client._client_session import ClientSession
from mcp_trio.oracle.fuzz.client._http import HttpServerLink

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from trio.testing import MockClock

    from mcp_trio.oracle.fuzz._case import Case

OLD, NEW = "2025-11-25", "2026-07-28"
META = "io.modelcontextprotocol/"
INFO = {"name": "c", "version": "1"}
INITIALIZE = {"protocolVersion": OLD, "capabilities": {}, "clientInfo": INFO}
GET = {"accept": "text/event-stream"}


class ScriptedServerClient:
    """A client of the server, with one connection for each request."""

    def __init__(self, session: ClientSession, nursery: trio.Nursery) -> None:
        self.link = HttpServerLink(session, timeout=5.0)
        self.session = session
        self._nursery = nursery

    async def send(
        self, method: str, headers: dict[str, str], body: bytes = b""
    ) -> ArrivingResponse:
        ours, theirs = memory_pair()
        serve: Any = self.link._serve
        self._nursery.start_soon(serve, theirs)
        exchange = ArrivingResponse(ours)
        more = {"host": "h", "content-length": str(len(body)), **headers}
        request = h11.Request(method=method, target="/mcp", headers=[*more.items()])
        data = exchange.h11.send(request) or b""
        if body:
            data += exchange.h11.send(h11.Data(data=body)) or b""
        await ours.send_all(data + (exchange.h11.send(h11.EndOfMessage()) or b""))
        head = await exchange.event()
        assert isinstance(head, h11.Response)
        exchange.status = head.status_code
        exchange.headers = {name.decode(): value.decode() for name, value in head.headers}
        return exchange

    async def post(self, method: str, **params: Any) -> ArrivingResponse:
        message = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
        headers = {"content-type": "application/json", "accept": "application/json, */*"}
        return await self.send("POST", headers, json.dumps(message).encode())


class ArrivingResponse:
    """A response while it arrives."""

    status: int
    headers: dict[str, str]

    def __init__(self, stream: trio.abc.Stream) -> None:
        self.h11 = h11.Connection(h11.CLIENT)
        self.stream = stream

    async def event(self) -> Any:
        while (event := self.h11.next_event()) is h11.NEED_DATA:
            self.h11.receive_data(bytes(await self.stream.receive_some(65_536)))
        return event

    async def body(self) -> bytes:
        """Return the rest of the body, up to its end or a minute without any of it."""
        found = b""
        while True:
            with trio.move_on_after(60) as waiting:
                event = await self.event()
            if waiting.cancelled_caught or not isinstance(event, h11.Data):
                self.ended = not waiting.cancelled_caught
                return found
            found += bytes(event.data)


@asynccontextmanager
async def served(*steps: Any, revision: str = OLD) -> AsyncIterator[ScriptedServerClient]:
    """Serve a case whose steps follow the opening."""
    case: Case = [("serve", [revision], []), *steps]
    session = ClientSession(new_header("server", "http", "client"), keep=True)
    session.begin_case(case)
    async with trio.open_nursery() as nursery:
        wire = ScriptedServerClient(session, nursery)
        if revision == OLD:
            await wire.post("initialize", **INITIALIZE)
        else:
            await wire.post("server/discover", _meta={f"{META}protocolVersion": NEW})
        yield wire
        nursery.cancel_scope.cancel()


async def test_get_opens_a_stream_of_events_that_stays(autojump_clock: MockClock) -> None:
    async with served() as wire:
        exchange = await wire.send("GET", GET)
        assert (exchange.status, exchange.headers["content-type"]) == (200, "text/event-stream")
        assert await exchange.body() == b""
        assert not exchange.ended
        assert wire.link.active
        heads = [line.http for line in wire.session.lines or () if line.http is not None]
        assert [head.method or head.status for head in heads] == ["POST", 200, "GET", 200]
        await exchange.stream.aclose()


@pytest.mark.parametrize(
    ("revision", "headers"),
    [(OLD, {}), (OLD, {"accept": "application/json"}), (NEW, GET)],
)
async def test_get_without_a_stream_is_refused(
    revision: str, headers: dict[str, str], autojump_clock: MockClock
) -> None:
    async with served(revision=revision) as wire:
        exchange = await wire.send("GET", headers)
        assert exchange.status == 405
        assert await exchange.body() == b""
        assert exchange.ended


async def test_get_with_the_last_event_resumes_the_response_once(autojump_clock: MockClock) -> None:
    async with served(("http", "resume", 1, 0)) as wire:
        first = await wire.post("ping")
        assert first.headers["content-type"] == "text/event-stream"
        assert await first.body() == b"id: place-1\nretry: 10\ndata: \n\n"
        assert first.ended
        resumed = await wire.send("GET", {**GET, "last-event-id": "place-1"})
        body = await resumed.body()
        assert body.startswith(b"data: ")
        assert json.loads(body.removeprefix(b"data: ")) == {"jsonrpc": "2.0", "id": 1, "result": {}}
        assert resumed.ended
        assert not wire.session.waiting
        again = await wire.send("GET", {**GET, "last-event-id": "place-1"})
        assert await again.body() == b""
        assert not again.ended


async def test_session_that_the_client_has_ended_is_not_found(autojump_clock: MockClock) -> None:
    async with served() as wire:
        named = {"mcp-session-id": "session-1"}
        assert (await wire.send("DELETE", named)).status == 200
        assert (await wire.send("POST", named, b"{}")).status == 404
        assert (await wire.send("POST", {}, b"{}")).status == 202
        assert (await wire.send("PUT", named)).status == 405


async def test_client_that_does_not_read_loses_its_connection(autojump_clock: MockClock) -> None:
    ping = b'{"jsonrpc":"2.0","id":1,"method":"ping"}'
    head = b"POST /mcp HTTP/1.1\r\nhost: h\r\ncontent-length: %d\r\n\r\n"
    async with served(("http", "body", 1, 8)) as wire:  # a megabyte
        ours, theirs = memory_pair()
        await ours.send_all(head % len(ping) + ping)
        serve: Any = wire.link._serve
        began = trio.current_time()
        with pytest.raises(trio.TooSlowError):
            await serve(theirs)
        assert trio.current_time() - began == 10
        assert wire.link.active == 1  # of the opening
