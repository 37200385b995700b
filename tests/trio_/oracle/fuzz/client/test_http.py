"""The HTTP side of a scripted server: the streams that a client opens with GET, and sessions."""

from __future__ import annotations

import json
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import h11
import pytest
import trio
import trio.testing

from mcp_trio import memory_pair
from mcp_trio.oracle.fuzz._shared_trace import new_header
from mcp_trio.oracle.fuzz.client import _http
from mcp_trio.oracle.fuzz.client._client_session import ClientSession
from mcp_trio.oracle.fuzz.client._http import HttpServerLink
from mcp_trio.oracle.fuzz.client._wrong_http import TYPES

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
        self, method: str, headers: dict[str, str], body: bytes = b"", target: str = "/mcp"
    ) -> ArrivingResponse:
        ours, theirs = memory_pair()
        serve: Any = self.link._serve
        self._nursery.start_soon(serve, theirs)
        exchange = ArrivingResponse(ours)
        more = {"host": "h", "content-length": str(len(body)), **headers}
        request = h11.Request(method=method, target=target, headers=[*more.items()])
        data = exchange.h11.send(request) or b""
        if body:
            data += exchange.h11.send(h11.Data(data=body)) or b""
        await ours.send_all(data + (exchange.h11.send(h11.EndOfMessage()) or b""))
        head = await exchange.event()
        assert isinstance(head, h11.Response)
        exchange.status = head.status_code
        exchange.headers = {name.decode(): value.decode("latin-1") for name, value in head.headers}
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


async def ended(exchange: ArrivingResponse) -> bytes:
    """Return the body of a response that has ended."""
    body = await exchange.body()
    assert exchange.ended
    return body


async def test_each_session_has_an_id(autojump_clock: MockClock) -> None:
    async with served() as wire:
        first, second = [await wire.post("initialize", **INITIALIZE) for _ in range(2)]
        assert first.headers["mcp-session-id"] == "session-2"
        assert second.headers["mcp-session-id"] == wire.link.session_id == "session-3"
        assert "mcp-session-id" not in (await wire.post("ping")).headers


@pytest.mark.parametrize(("before", "kind"), [(1, "application/json"), (0, "text/event-stream")])
async def test_responses_are_bodies_and_streams_in_turn(
    before: int, kind: str, autojump_clock: MockClock
) -> None:
    async with served() as wire:
        for _ in range(before):
            await ended(await wire.post("ping"))
        exchange = await wire.post("ping")
        assert (exchange.status, exchange.headers["content-type"]) == (200, kind)
        body = (await ended(exchange)).removeprefix(b"data: ")
        assert json.loads(body) == {"jsonrpc": "2.0", "id": 1, "result": {}}
        assert wire.session.waiting == set()
        assert wire.session.acting == 0


async def test_late_body_comes_after_a_moment(autojump_clock: MockClock) -> None:
    async with served(("answer", "late", 2, 0), ("answer", "late", 3, 0)) as wire:
        await ended(await wire.post("ping"))
        for kind in ("application/json", "text/event-stream"):
            began = trio.current_time()
            exchange = await wire.post("ping")
            assert exchange.headers["content-type"] == kind
            assert await ended(exchange)
            assert trio.current_time() - began == pytest.approx(0.1)


@pytest.mark.parametrize("place", [1, 2])
async def test_two_messages_make_a_stream(place: int, autojump_clock: MockClock) -> None:
    async with served(("answer", "twice", place, 0)) as wire:
        for _ in range(place - 1):
            await ended(await wire.post("ping"))
        exchange = await wire.post("ping")
        assert exchange.headers["content-type"] == "text/event-stream"
        assert (await ended(exchange)).count(b"data: ") == 2


async def test_request_without_a_response_stays_open(autojump_clock: MockClock) -> None:
    """Nothing acts meanwhile, so that the case can end."""
    async with served(("answer", "never", 1, 0)) as wire:
        with trio.move_on_after(60) as waiting:
            await wire.post("ping")
        assert waiting.cancelled_caught
        assert wire.session.acting == 0
        assert wire.session.waiting == {1}
        await wire.link.close()


async def test_connection_ends_in_place_of_a_response(autojump_clock: MockClock) -> None:
    async with served(("answer", "close", 1, 0), ("answer", "half", 2, 1)) as wire:
        first = await wire.post("ping")
        assert first.headers["content-type"] == "text/event-stream"
        with pytest.raises(h11.RemoteProtocolError):
            await first.body()
        assert (wire.session.lines or [])[-1].end == "reset"


async def test_subscription_stays_open_after_its_acknowledgement(autojump_clock: MockClock) -> None:
    async with served(revision=NEW) as wire:
        meta = {f"{META}protocolVersion": NEW}
        exchange = await wire.post("subscriptions/listen", _meta=meta, notifications={})
        assert b"acknowledged" in await exchange.body()
        assert not exchange.ended
        assert wire.session.acting == 0


async def test_ping_waits_on_its_stream_for_the_response(autojump_clock: MockClock) -> None:
    async with served(("push", "ping", 1, 0)) as wire:
        exchange = await wire.post("tools/list")
        began = trio.current_time()
        body = await ended(exchange)
        assert trio.current_time() - began == pytest.approx(5.0, abs=0.1)  # the link's timeout
        assert body.count(b"data: ") == 2
        assert "PING-2" in [each.row for each in wire.session.take_faults()]


@pytest.mark.parametrize(
    ("number", "status", "location", "has_body"),
    [
        (0, 400, "/elsewhere", False),
        (1, 401, "/mcp", False),
        (33, 400, "/elsewhere", True),
        (34, 401, "/mcp", True),
        (66, 400, "/elsewhere", False),
        (33 + 19, 204, "/elsewhere", False),
        (33 + 26, 304, "/elsewhere", False),
    ],
)
async def test_wrong_status_has_what_some_clients_follow(
    number: int, status: int, location: str, has_body: bool, autojump_clock: MockClock
) -> None:
    async with served(("http", "status", 1, number)) as wire:
        exchange = await wire.post("ping")
        assert exchange.status == status
        assert exchange.headers["location"] == location
        assert exchange.headers["retry-after"] == "0"
        assert exchange.headers["www-authenticate"].startswith("Bearer")
        body = await ended(exchange)
        assert (b'"result"' in body) is has_body
        assert ("content-length" in exchange.headers) is (status not in (204, 304))


@pytest.mark.parametrize("number", range(len(TYPES)))
async def test_wrong_type_is_of_the_right_body(number: int, autojump_clock: MockClock) -> None:
    async with served(("http", "type", 1, number)) as wire:
        exchange = await wire.post("ping")
        assert exchange.headers.get("content-type") == TYPES[number]
        assert json.loads(await ended(exchange))["result"] == {}


@pytest.mark.parametrize("number", range(6))
async def test_wrong_session_is_another_or_none(number: int, autojump_clock: MockClock) -> None:
    async with served(("http", "session", 1, number)) as wire:
        exchange = await wire.post("ping")
        assert exchange.status == (404 if number == 5 else 200)
        assert (await wire.send("POST", {"mcp-session-id": "session-1"}, b"{}")).status == (
            404 if number == 5 else 202
        )
        if number == 5:
            assert await ended(exchange) == b""
        else:
            assert exchange.headers["mcp-session-id"] != "session-1"


async def test_wrong_bytes_end_the_connection(autojump_clock: MockClock) -> None:
    async with served(("http", "body", 1, 0)) as wire:
        exchange = await wire.post("ping")
        assert exchange.status == 200
        exchange.ended = False
        assert await exchange.body() == b""
        assert (wire.session.lines or [])[-1].end == "reset"


@pytest.mark.parametrize(("target", "status"), [("/mcp?a=b", 202), ("/", 404), ("/mcp/a", 404)])
async def test_path_beside_the_endpoint_is_not_found_and_not_in_the_trace(
    target: str, status: int, autojump_clock: MockClock
) -> None:
    async with served() as wire:
        lines, exchanges = len(wire.session.lines or ()), wire.link.exchanges
        assert (await wire.send("POST", {}, b"{}", target)).status == status
        assert wire.link.exchanges - exchanges == (status == 202)
        assert (len(wire.session.lines or ()) > lines) is (status == 202)


async def test_body_that_is_not_utf_8_is_kept_as_bytes(autojump_clock: MockClock) -> None:
    async with served() as wire:
        assert (await wire.send("POST", {}, b"\xff")).status == 202
        line = [each for each in wire.session.lines or () if each.sender == "client"][-1]
        assert (line.raw, line.data) == (None, b"\xff")
        assert line.http is not None
        assert (line.http.method, line.http.target, line.http.version) == ("POST", "/mcp", "1.1")
        assert ("host", "h") in line.http.headers


@pytest.mark.parametrize(("revision", "status"), [(OLD, 200), (NEW, 405)])
async def test_session_can_be_ended_where_there_are_any(
    revision: str, status: int, autojump_clock: MockClock
) -> None:
    async with served(revision=revision) as wire:
        assert (await wire.send("DELETE", {"mcp-session-id": "session-1"})).status == status


async def test_case_has_a_limited_number_of_exchanges(autojump_clock: MockClock) -> None:
    async with served() as wire:
        wire.link.exchanges = 999
        assert (await wire.send("POST", {}, b"{}")).status == 202
        lines = len(wire.session.lines or ())
        with pytest.raises(h11.RemoteProtocolError):
            await wire.send("POST", {}, b"{}")
        assert len(wire.session.lines or ()) == lines


async def test_client_that_is_closed_gets_no_response(autojump_clock: MockClock) -> None:
    async with served() as wire:
        wire.session.is_closed = True
        with pytest.raises(h11.RemoteProtocolError):
            await wire.send("POST", {}, b"{}")


@pytest.mark.parametrize(
    ("data", "notes"),
    [
        (b"garbage\r\n\r\n", 1),
        (b"POST /mcp HTTP/1.1\r\nhost: h\r\ncontent-length: 99999999\r\n\r\n", 0),
        (b"POST /mcp HTTP/1.1\r\nhost: h\r\ncontent-length: 5\r\n\r\n{", 0),
    ],
)
async def test_request_that_is_not_http_is_noted(
    data: bytes, notes: int, autojump_clock: MockClock
) -> None:
    """One that is only slow or too large isn't."""
    async with served() as wire:
        ours, theirs = memory_pair()
        await ours.send_all(data)
        serve: Any = wire.link._serve
        await serve(theirs)
        assert len(wire.session.notes) == notes


async def test_link_has_ended_once_no_connection_is_open(autojump_clock: MockClock) -> None:
    async with trio.open_nursery() as nursery:
        session = ClientSession(new_header("server", "http", "client"), keep=True)
        session.begin_case([("serve", [OLD], [])])
        wire = ScriptedServerClient(session, nursery)
        ends = [wire.link.has_ended]
        exchange = await wire.send("POST", {}, b"{}")
        ends.append(wire.link.has_ended)
        async with trio.open_nursery() as waiting:
            waiting.start_soon(session.wait_changed, 60.0)
            await trio.testing.wait_all_tasks_blocked()
            began = trio.current_time()
            await exchange.stream.aclose()
        assert trio.current_time() == began
        assert [*ends, wire.link.has_ended] == [True, False, True]


async def test_port_is_given_and_closed(autojump_clock: MockClock) -> None:
    session = ClientSession(new_header("server", "http", "client"), keep=True)
    link = HttpServerLink(session, timeout=5.0)
    async with trio.open_nursery() as nursery:
        port = await nursery.start(link.serve)
        assert 0 < port < 65_536
        await link.close()


def steps_of(session: ClientSession, start: int) -> list[tuple[Any, ...]]:
    """Return what the server has recorded from a line on: status, text, event's id, and end."""
    return [
        (line.http and line.http.status, line.raw, line.sse and line.sse.id, line.end)
        for line in (session.lines or [])[start:]
        if line.sender == "server"
    ]


async def test_half_a_response_is_half_an_event_before_the_connection_ends(
    autojump_clock: MockClock,
) -> None:
    async with served(("answer", "half", 1, 1)) as wire:
        start = len(wire.session.lines or ())
        exchange = await wire.post("ping")
        data = await exchange.event()
        assert bytes(data.data) == b'data: {"jsonrpc":"2.0","'
        with pytest.raises(h11.RemoteProtocolError):
            await exchange.event()
        assert steps_of(wire.session, start) == [(200, *[None] * 3), (*[None] * 3, "reset")]


async def test_response_to_resume_is_recorded_with_its_events_id(autojump_clock: MockClock) -> None:
    async with served(("http", "resume", 1, 0)) as wire:
        start = len(wire.session.lines or ())
        await ended(await wire.post("ping"))
        assert steps_of(wire.session, start) == [
            (200, *[None] * 3),
            (None, None, "place-1", None),
            (*[None] * 3, "complete"),
        ]
        start = len(wire.session.lines or ())
        await ended(await wire.send("GET", {**GET, "last-event-id": "place-1"}))
        pong = '{"jsonrpc":"2.0","id":1,"result":{}}'
        head, event, end = steps_of(wire.session, start)
        assert (head[0], event[1], end[3]) == (200, pong, "complete")


async def test_session_of_a_server_without_any_can_be_lost(autojump_clock: MockClock) -> None:
    """Then only the response is wrong: later requests name no session."""
    meta = {f"{META}protocolVersion": NEW}
    async with served(("http", "session", 1, 5), revision=NEW) as wire:
        assert (await wire.post("tools/list", _meta=meta)).status == 404
        assert wire.link.lost == {""}
        assert (await wire.post("tools/list", _meta=meta)).status == 200


async def test_waiter_goes_on_once_a_request_has_its_response(autojump_clock: MockClock) -> None:
    """The player looks then whether the case is over. The first change is the request."""
    async with served(("answer", "late", 1, 0)) as wire:
        states = []

        async def wait() -> None:
            for _ in range(2):
                await wire.session.wait_changed(60.0)
                states.append((trio.current_time() - began, wire.session.acting))

        async with trio.open_nursery() as nursery:
            began = trio.current_time()
            nursery.start_soon(wait)
            await trio.testing.wait_all_tasks_blocked()
            await wire.post("ping")
        assert states == [(0.0, 1), (pytest.approx(0.1), 0)]


async def test_link_before_its_first_connection_has_nothing(autojump_clock: MockClock) -> None:
    session = ClientSession(new_header("server", "http", "client"), keep=True)
    session.begin_case([("serve", [OLD], [])])
    link = HttpServerLink(session, 5.0)
    assert (link.session, link.timeout, link.session_id) == (session, 5.0, "")
    assert (link.lost, link.resumable, link.active, link.exchanges) == (set(), {}, 0, 0)
    assert [link.new_session_id(), link.new_session_id()] == ["session-1", "session-2"]
    assert session.begin_conversation() == 2  # the link has begun the first one


@pytest.mark.parametrize(("size", "is_kept"), [(4 * 2**20 - 200, True), (5 * 2**20, False)])
async def test_body_that_is_too_long_is_recorded_without_its_text(
    size: int, is_kept: bool, autojump_clock: MockClock
) -> None:
    """The limit is 4 MiB."""
    async with served() as wire:
        stub: Any = _http._ScriptedConnection(wire.link, memory_pair()[0])  # type: ignore[arg-type]
        stub._record_head(200, {}, b"x" * size)
        [line] = (wire.session.lines or [])[-1:]
        assert (line.raw is not None) is is_kept
        stub._record_head(200, {"a": "b"})
        [line] = (wire.session.lines or [])[-1:]
        assert (line.raw, line.end) == (None, None)
        assert line.http is not None
        assert line.http.headers == (("a", "b"),)


async def test_events_have_the_headers_of_a_stream(autojump_clock: MockClock) -> None:
    async with served() as wire:
        exchange = await wire.send("GET", GET)
        more = {"cache-control": "no-cache", "x-accel-buffering": "no"}
        assert more.items() <= exchange.headers.items()
