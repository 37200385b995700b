"""The fuzzer's HTTP exchanges one by one: connections, bytes, and why a response is missing.

The test plays the server: it writes each response's bytes itself.
"""

from __future__ import annotations

import re
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any, Final

import pytest
import trio
import trio.testing

from mcp_core import ConnectFailed
from mcp_core.http import Body, End, Head, RequestHead
from mcp_core.trace import TraceLine
from mcp_trio.oracle.fuzz import _http
from mcp_trio.oracle.fuzz._http import (
    HttpSession,
    UrlTarget,
    _HttpLine,
    encode_chunks,
    encode_head,
    is_event_stream,
    is_loopback,
)
from mcp_trio.oracle.fuzz._session import PART_INTERVAL

from .memory_target import NEW, OLD

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from mcp_trio.oracle.fuzz._sent_request import SentRequest

URL: Final = "http://127.0.0.1:1/mcp"
EMPTY: Final = b"HTTP/1.1 202 Accepted\r\ncontent-length: 0\r\n\r\n"
GET: Final = RequestHead(b"GET", b"/", [])


class ScriptedHttpServer:
    """A server that the test plays.

    Attributes:
        streams: the server's end of each connection.
        refuses: no further connection can be made.
    """

    def __init__(self) -> None:
        self.streams: list[Any] = []
        self.refuses = False

    async def connect_stream(self) -> trio.abc.Stream:
        """Return the client's end of a connection."""
        await trio.lowlevel.checkpoint()
        if self.refuses:
            raise ConnectFailed("refused\x1b")
        ours, theirs = trio.testing.memory_stream_pair()
        self.streams.append(theirs)
        return ours

    async def read(self, number: int = -1) -> bytes:
        """Return the bytes that have come on a connection."""
        return bytes(await self.streams[number].receive_some())


@asynccontextmanager
async def played_target(**options: Any) -> AsyncIterator[tuple[UrlTarget, ScriptedHttpServer]]:
    async with trio.open_nursery() as nursery:
        target, server = UrlTarget(URL, nursery, **options), ScriptedHttpServer()
        target._connector = server  # type: ignore[assignment]
        yield target, server
        nursery.cancel_scope.cancel()


async def play_response(line: _HttpLine, stream: Any, response: bytes = EMPTY) -> None:
    """Play a whole exchange on a connection."""
    await line.send(GET, b"")
    await stream.send_all(response)
    while await line.next_action() != End():
        pass


async def is_closed(stream: Any) -> bool:
    """Return True if the client has closed its end of a connection."""
    with trio.move_on_after(1):
        while await stream.receive_some():
            pass
        return True
    return False


# -- A connection ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("data", "actions"),
    [
        (EMPTY, [Head(202, [(b"content-length", b"0")]), End()]),
        (
            b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\n\r\n" + EMPTY,
            [Head(202, [(b"content-length", b"0")]), End()],
        ),
        (
            b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nab",
            [Head(200, [(b"content-length", b"2")]), Body(b"ab"), End()],
        ),
    ],
)
async def test_next_action_takes_the_parts_of_one_response(data: bytes, actions: Any) -> None:
    """Interim responses are left out: the response follows them."""
    ours, theirs = trio.testing.memory_stream_pair()
    line = _HttpLine(ours)
    await line.send(GET, b"")
    await theirs.send_all(data)
    assert [await line.next_action() for _ in actions] == actions


class TimedBytes:
    """A stream that keeps what is sent on it, with the times."""

    def __init__(self) -> None:
        self.sent: list[tuple[float, bytes]] = []

    async def send_all(self, data: bytes) -> None:
        await trio.lowlevel.checkpoint()
        self.sent.append((trio.current_time(), data))


@pytest.mark.parametrize(
    ("options", "sent", "end"),
    [
        ({}, [(0, b"GET / HTTP/1.1\r\n\r\nab")], 0),
        (
            {"interval": 0.5},
            [(n * 0.5, bytes([each])) for n, each in enumerate(b"GET / HTTP/1.1\r\n\r\nab")],
            10,
        ),
        ({"parts": (b"x", b"y")}, [(0, b"x"), (PART_INTERVAL, b"y")], PART_INTERVAL),
    ],
)
async def test_request_is_sent_at_once_by_byte_or_in_parts(
    autojump_clock: Any, options: Any, sent: Any, end: float
) -> None:
    """The parts are in place of the request. There's no pause after the last one."""
    stream, begun = TimedBytes(), trio.current_time()
    await _HttpLine(stream).send(GET, b"ab", **options)  # type: ignore[arg-type]
    assert [each for _, each in stream.sent] == [each for _, each in sent]
    assert [at - begun for at, _ in stream.sent] == pytest.approx([at for at, _ in sent])
    assert trio.current_time() - begun == pytest.approx(end)


# -- The connections of a target -------------------------------------------------------------------


async def test_connection_is_used_again_for_less_than_a_second(autojump_clock: Any) -> None:
    """A server may close it after a while. Then, or for `fresh`, another one is made."""
    async with played_target() as (target, server):
        line = await target.acquire()
        await play_response(line, server.streams[0])
        await target.release(line, is_complete=True)
        await trio.sleep(0.5)
        assert await target.acquire(fresh=True) is not line
        assert await target.acquire() is line
        await play_response(line, server.streams[0])
        await target.release(line, is_complete=True)
        await trio.sleep(1)
        assert await target.acquire() is not line
        assert [await is_closed(each) for each in server.streams] == [True, False, False]


@pytest.mark.parametrize(
    ("response", "is_complete"),
    [(EMPTY, False), (EMPTY.replace(b"\r\n\r\n", b"\r\nconnection: close\r\n\r\n"), True)],
)
async def test_connection_that_ended_is_closed(
    autojump_clock: Any, response: bytes, is_complete: bool
) -> None:
    async with played_target() as (target, server):
        line = await target.acquire()
        await play_response(line, server.streams[0], response)
        await target.release(line, is_complete=is_complete)
        assert await is_closed(server.streams[0])
        assert await target.acquire() is not line


async def test_eight_connections_are_kept(autojump_clock: Any) -> None:
    async with played_target() as (target, server):
        lines = [await target.acquire() for _ in range(9)]
        for line, stream in zip(lines, server.streams, strict=True):
            await play_response(line, stream)
            await target.release(line, is_complete=True)
        assert [await is_closed(each) for each in server.streams] == [False] * 8 + [True]


async def test_end_of_a_target_closes_its_connections(autojump_clock: Any) -> None:
    """Also one that is given back later."""
    async with played_target() as (target, server):
        lines = [await target.acquire() for _ in range(2)]
        for line, stream in zip(lines, server.streams, strict=True):
            await play_response(line, stream)
        await target.release(lines[0], is_complete=True)
    assert await is_closed(server.streams[0])
    assert not await is_closed(server.streams[1])
    await target.release(lines[1], is_complete=True)
    assert await is_closed(server.streams[1])


async def test_server_that_accepts_no_connection_fails_after_ten_seconds(
    autojump_clock: Any,
) -> None:
    class Silent(ScriptedHttpServer):
        async def connect_stream(self) -> trio.abc.Stream:
            await trio.sleep_forever()
            raise AssertionError

    async with played_target() as (target, _):
        target._connector = Silent()  # type: ignore[assignment]
        begun = trio.current_time()
        with pytest.raises(ConnectFailed, match="no connection within 10 s"):
            await target.acquire()
        assert trio.current_time() - begun == pytest.approx(10)


async def test_rate_has_no_burst_after_a_pause(autojump_clock: Any) -> None:
    async with played_target(rate=2) as (target, _):
        begun = trio.current_time()
        times = []
        for pause in (0, 0, 0, 10, 0):
            await trio.sleep(pause)
            await target.wait_for_turn()
            times.append(trio.current_time() - begun)
    assert times == pytest.approx([0, 0.5, 1, 11, 11.5])


# -- An exchange -----------------------------------------------------------------------------------


def request_of(method: str, id: int = 1) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": id, "method": method}


async def opened(target: UrlTarget, revision: str = OLD) -> HttpSession:
    session = await target.open(keep=True)
    session.revision, session.is_open = revision, True
    session.begin_case()
    return session


def response_of(body: bytes, status: int = 200, type: str = "application/json") -> bytes:
    """Return a response with a body, whose length is 9 at least."""
    size = max(len(body), 9)
    return b"HTTP/1.1 %d \r\ncontent-type: %b\r\ncontent-length: %d\r\n\r\n%b" % (
        status,
        type.encode(),
        size,
        body,
    )


STREAM: Final = "text/event-stream"
EVENT: Final = b"id: 7\ndata: {}\n\n"


async def lost_request(
    target: UrlTarget, server: ScriptedHttpServer, data: bytes, method: str = "tools/list"
) -> tuple[HttpSession, SentRequest]:
    """Send a request, whose response is some bytes, and then the connection's end."""
    session = await opened(target)
    session.session_id = b"s"
    await session.send(request_of(method))
    [request] = session.open.values()
    await server.read()
    await server.streams[-1].send_all(data)
    await server.streams[-1].aclose()
    await trio.testing.wait_all_tasks_blocked()
    return session, request


@pytest.mark.parametrize(
    ("data", "method", "loss"),
    [
        (EMPTY, "tools/list", "missing"),
        (response_of(b'{"a": "b"}', 299), "tools/list", "missing"),
        (response_of(b'{"a": "b"}', 300), "tools/list", "excused"),
        (response_of(EVENT[7:], type=STREAM), "tools/list", "missing"),
        (response_of(EVENT, type=STREAM), "tools/list", "excused"),  # can be resumed
        (EMPTY, "subscriptions/listen", "excused"),
        (b"", "tools/list", "broken"),
        (response_of(b""), "tools/list", "broken"),
        (response_of(b"{}"), "tools/list", "cut"),
        (response_of(b": a", type=STREAM), "tools/list", "broken"),
        (b"no HTTP\r\n\r\n", "tools/list", "broken"),
    ],
)
async def test_request_without_response_is_lost_as_its_exchange_ended(
    autojump_clock: Any, data: bytes, method: str, loss: str
) -> None:
    """See `SentRequest.loss`. The trace has the exchange's end."""
    async with played_target() as (target, server):
        session, request = await lost_request(target, server, data, method)
        assert (request.loss, session.open) == (loss, {})
        assert session.lines is not None
        assert {each.exchange for each in session.lines} == {1}
        end = "complete" if loss in ("missing", "excused") else "reset"
        assert (session.lines[-1].sender, session.lines[-1].end) == ("server", end)


@pytest.mark.parametrize("state", ["cancelled", "not owed", "not open", "ended", "deleted"])
async def test_request_that_needs_no_response_is_excused(autojump_clock: Any, state: str) -> None:
    """Each reason alone is enough."""
    async with played_target() as (target, server):
        session = await opened(target)
        await session.send(request_of("tools/list"))
        [request] = session.open.values()
        match state:
            case "cancelled":
                request.cancelled = True
            case "not owed":
                request.is_owed = False
            case "not open":
                request.was_open = False
            case "ended":
                session.end("over")
            case _:
                session._is_deleted = True
        await server.streams[-1].send_all(EMPTY)
        await trio.testing.wait_all_tasks_blocked()
        assert request.loss == "excused"


@pytest.mark.parametrize(
    ("status", "session_id", "is_spent"),
    [(404, b"s", True), (404, None, False), (400, b"s", False)],
)
async def test_session_that_the_server_does_not_know_is_spent(
    autojump_clock: Any, status: int, session_id: bytes | None, is_spent: bool
) -> None:
    async with played_target() as (target, server):
        session = await opened(target)
        session.session_id = session_id
        await session.send(request_of("ping"))
        await server.streams[-1].send_all(response_of(b'{"a": "b"}', status))
        await trio.testing.wait_all_tasks_blocked()
        assert (session.spent, session.last_status) == (is_spent, status)


async def test_other_path_that_is_not_found_does_not_end_the_session(autojump_clock: Any) -> None:
    """The request doesn't name the session."""
    async with played_target() as (target, server):
        session = await opened(target)
        session.session_id = b"s"
        async with trio.open_nursery() as nursery:
            nursery.start_soon(session.exchange, GET, b"")
            await trio.testing.wait_all_tasks_blocked()
            await server.streams[-1].send_all(response_of(b'{"a": "b"}', 404))
        assert (session.spent, session.last_status) == (False, 404)


async def test_request_that_is_cancelled_by_its_exchange_ends_on_our_side(
    autojump_clock: Any,
) -> None:
    """Only if the revision cancels like that, and while the exchange runs."""
    async with played_target() as (target, server):
        session = await opened(target)
        await session.send(request_of("ping"))
        [request] = session.open.values()
        assert not await session.cancel_exchange(request)
        session.revision = NEW
        assert await session.cancel_exchange(request)
        await trio.testing.wait_all_tasks_blocked()
        assert (request.loss, session.open) == ("excused", {})
        assert session.lines is not None
        assert (session.lines[-1].sender, session.lines[-1].end) == ("client", "closed")
        assert await is_closed(server.streams[0])
        assert not await session.cancel_exchange(request)


@pytest.mark.parametrize(("limit", "end"), [(9, "it sends without end"), (10, "")])
async def test_response_above_the_limit_is_a_flood(
    autojump_clock: Any, monkeypatch: pytest.MonkeyPatch, limit: int, end: str
) -> None:
    monkeypatch.setattr(_http, "MAX_EXCHANGE", limit)
    async with played_target() as (target, server):
        session = await opened(target)
        await session.send(request_of("ping"))
        await server.streams[-1].send_all(response_of(b'{"a": "b"}'))
        await trio.testing.wait_all_tasks_blocked()
        assert session.ended == end
        assert await is_closed(server.streams[-1]) is bool(end)


async def test_only_first_response_to_initialize_names_the_session(autojump_clock: Any) -> None:
    found: list[tuple[bytes | None, bool]] = []
    async with played_target() as (target, server):
        session = await opened(target)
        for method, id in ("ping", b"a"), ("initialize", b"b"), ("initialize", b"c"):
            await session.send(request_of(method, len(found)))
            head = b"\r\nlocation: /x\r\nmcp-session-id: %b\r\n\r\n" % id
            await server.streams[-1].send_all(EMPTY.replace(b"\r\n\r\n", head))
            await trio.testing.wait_all_tasks_blocked()
            found.append((session.session_id, session.is_stateful))
    assert found == [(None, False), (b"b", True), (b"b", True)]
    assert session._location == b"/x"


async def test_request_on_a_connection_that_was_closed_is_sent_again(autojump_clock: Any) -> None:
    """It's recorded once. A new connection that breaks too is the server's fault."""
    async with played_target() as (target, server):
        session = await opened(target)
        await session.send(request_of("ping", 1))
        await server.streams[0].send_all(EMPTY)
        await trio.testing.wait_all_tasks_blocked()
        await server.read(0)
        await server.streams[0].aclose()
        await session.send(request_of("ping", 2))
        await trio.testing.wait_all_tasks_blocked()
        assert b'"id":2' in await server.read(1)
        assert session.lines is not None
        assert sum('"id":2' in str(each.raw) for each in session.lines) == 1
        await server.streams[1].send_all(EMPTY)
        await trio.testing.wait_all_tasks_blocked()
        assert len(server.streams) == 2


async def test_server_that_cannot_be_reached_ends_the_session(autojump_clock: Any) -> None:
    async with played_target() as (target, server):
        server.refuses = True
        session = await opened(target)
        await session.send(request_of("ping"))
        [request] = session.requests
        assert (session.ended, request.loss) == ("refused\x1b", "excused")
        assert session.describe() == " (refused\\u001b)"
        assert not await session.hold(b"a")


async def test_notification_waits_five_seconds_for_its_response(autojump_clock: Any) -> None:
    async with played_target() as (target, server):
        session, begun = await opened(target), trio.current_time()
        await session.send({"jsonrpc": "2.0", "method": "notifications/initialized"})
        assert trio.current_time() - begun == pytest.approx(5)
        assert await is_closed(server.streams[0])


async def test_stream_is_open_once_it_has_a_head_or_after_five_seconds(
    autojump_clock: Any,
) -> None:
    """An exchange that ends isn't waited for either."""
    head = response_of(b"", type=STREAM)
    async with played_target() as (target, server):
        session, times = await opened(target), []
        for data, is_cut in (head, False), (b"", True), (b"", False):
            begun = trio.current_time()
            async with trio.open_nursery() as nursery:
                nursery.start_soon(session.open_stream, GET)
                await trio.testing.wait_all_tasks_blocked()
                await server.streams[-1].send_all(data)
                if is_cut:
                    await server.streams[-1].aclose()
            times.append(trio.current_time() - begun)
        assert times == pytest.approx([0, 0, 5])
        await session.end_case()
        assert await is_closed(server.streams[0])
        assert await is_closed(server.streams[2])


async def test_stream_is_resumed_after_its_first_of_two_events(autojump_clock: Any) -> None:
    """The first events of a hundred streams are kept."""
    async with played_target() as (target, _):
        session = await opened(target)
        session._see_event(1, b"a")
        assert (session.event_id, session.first_event_id) == (b"a", None)
        session._see_event(1, b"b")
        assert (session.event_id, session.first_event_id) == (b"b", b"a")
        for exchange in range(2, 101):
            session._see_event(exchange, b"c")
        session._see_event(1, b"b2")
        assert (session.event_id, session.first_event_id) == (b"b2", b"a")
        session._see_event(101, b"c")
        assert list(session._first_events) == list(range(2, 102))
        session._see_event(2, b"d")
        assert session.first_event_id == b"c"


# -- Bytes -----------------------------------------------------------------------------------------

POST: Final = (
    b"POST /mcp HTTP/1.1\r\nhost: 127.0.0.1:1\r\naccept: application/json, text/event-stream\r\n"
)


@pytest.mark.parametrize(
    ("how", "cut", "first", "second"),
    [
        ("head", 4, b"POST", b' /mcp HTTP/1.1\r\n.*"ping"}'),
        ("body", 4, b'content-length: 40\r\n\r\n{"js', b'onrpc":"2.0","id":1,"method":"ping"}'),
        # Before the second chunk's size, in its line, and after it.
        ("chunks", 3, b'\r\n\r\n3\r\n{"j\r\n25', b'\r\nsonrpc":"2.0",.*"ping"}\r\n0\r\n\r\n'),
        ("chunks", 4, b'\r\n\r\n4\r\n{"js\r\n2', b'4\r\nonrpc":"2.0",.*"ping"}\r\n0\r\n\r\n'),
        ("chunks", 5, b'\r\n\r\n5\r\n{"jso\r\n', b'23\r\nnrpc":"2.0",.*"ping"}\r\n0\r\n\r\n'),
    ],
)
async def test_message_in_parts_is_cut_where_the_step_says(
    autojump_clock: Any, how: str, cut: int, first: bytes, second: bytes
) -> None:
    """All that comes within the pause is the first part."""
    message = request_of("ping")
    body = b'{"jsonrpc":"2.0","id":1,"method":"ping"}'
    async with played_target() as (target, server):
        session = await opened(target)
        session.add_request(message, is_plain=True)
        async with trio.open_nursery() as nursery:
            nursery.start_soon(session.send_parts, body, message, how, cut)
            await trio.testing.wait_all_tasks_blocked()
            found = await server.read()
        await trio.sleep(1)
        rest = await server.read()
    assert found.endswith(first)
    assert re.fullmatch(second, rest, re.DOTALL)
    length = b"transfer-encoding: chunked" if how == "chunks" else b"content-length: 40"
    assert length in found + rest
    assert (found + rest).startswith(POST)


@pytest.mark.parametrize(
    ("headers", "types"),
    [([], [b"application/json"]), ([(b"content-type", b"text/plain")], [b"text/plain"])],
)
async def test_post_has_one_type_and_the_length(
    autojump_clock: Any, headers: Any, types: list[bytes]
) -> None:
    async with played_target() as (target, server):
        session = await opened(target)
        await session.post(b"abc", None, headers)
        lines = (await server.read()).split(b"\r\n")
    assert lines == [
        b"POST /mcp HTTP/1.1",
        *(b"content-type: " + each for each in types),
        b"content-length: 3",
        *(b"", b"abc"),
    ]


@pytest.mark.parametrize(
    ("data", "version"),
    [
        (b'{"method":"ping"}', OLD),
        (b'{"method":"initialize"}', None),
        (b"[1]", OLD),
        (b"{", OLD),
        (b"[" * 100_000, OLD),
    ],
)
async def test_bytes_are_posted_with_the_headers_of_what_they_say(
    autojump_clock: Any, data: bytes, version: str | None
) -> None:
    async with played_target() as (target, server):
        session = await opened(target)
        await session.send_data(data)
        head, _, body = (await server.read()).partition(b"\r\n\r\n")
    assert body == data
    versions = [each for each in head.split(b"\r\n") if b"mcp-protocol-version" in each]
    assert versions == ([] if version is None else [b"mcp-protocol-version: " + version.encode()])


async def test_raw_requests_have_all_headers() -> None:
    async with played_target(headers={"X-Own": "1"}) as (target, _):
        session = await target.open()
        session.session_id = b"s"
        post = session.encode_post({"id": 1}, (b"expect", b"a"))
        get = session.encode_get()
    assert post == POST + (
        b"x-own: 1\r\nmcp-session-id: s\r\ncontent-type: application/json\r\nexpect: a\r\n"
        b'content-length: 8\r\n\r\n{"id":1}'
    )
    assert get == (
        b"GET /mcp HTTP/1.1\r\nhost: 127.0.0.1:1\r\nx-own: 1\r\nmcp-session-id: s\r\n"
        b"accept: text/event-stream\r\n\r\n"
    )


def test_heads_and_chunks_are_encoded_as_they_are() -> None:
    assert encode_chunks(b"ab", b"c" * 17) == b"2\r\nab\r\n11\r\n" + b"c" * 17 + b"\r\n0\r\n\r\n"
    head = RequestHead(b"G T", b"/ x", [(b"a ", b" b"), (b"a ", b"")])
    assert encode_head(head) == b"G T / x HTTP/1.1\r\na :  b\r\na : \r\n\r\n"


@pytest.mark.parametrize(
    ("headers", "is_stream"),
    [
        ([(b"content-type", b"text/event-stream")], True),
        ([(b"a", b"b"), (b"content-type", b"Text/Event-Stream; charset=utf-8")], True),
        ([(b"content-type", b"application/json")], False),
        ([(b"accept", b"text/event-stream")], False),
        ([], False),
    ],
)
def test_stream_of_events_has_their_type(headers: Any, is_stream: bool) -> None:
    assert is_event_stream(Head(200, headers)) is is_stream


def test_loopback_is_this_machine() -> None:
    assert is_loopback("http://localhost:1/mcp")
    assert not is_loopback("https://example.com/mcp")


TOKEN: Final = "give a token with --token-env VARIABLE"
HEADER: Final = "write a header Authorization with a token into its entry"

# -- The session -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("status", "options", "text"),
    [
        (0, {}, ""),
        (200, {}, " (HTTP status 200)"),
        (299, {}, " (HTTP status 299)"),
        (300, {}, " (HTTP status 300: it redirects to /x\\u001b; use that URL)"),
        (399, {}, " (HTTP status 399: it redirects to /x\\u001b; use that URL)"),
        (400, {}, " (HTTP status 400)"),
        *(
            (
                status,
                {},
                f" (HTTP status {status}: it requires a login; {TOKEN})",
            )
            for status in (401, 403)
        ),
        (
            401,
            {"unexpanded": (URL,)},
            f" (HTTP status 401: it requires a login; {HEADER})",
        ),
    ],
)
async def test_server_that_does_not_speak_mcp_is_described_by_its_status(
    status: int, options: Any, text: str
) -> None:
    async with played_target(**options) as (target, _):
        session = await target.open()
        session.last_status, session._location = status, b"/x\x1b"
        assert session.describe() == text


async def test_held_requests_stay_until_release(autojump_clock: Any) -> None:
    """Nothing of them is recorded, and the rate counts them."""
    async with played_target(rate=2) as (target, server):
        session, begun = await opened(target), trio.current_time()
        assert await session.hold(b"one", b"two", max_read=1)
        assert trio.current_time() - begun == pytest.approx(0.5)
        assert await server.read() == b"onetwo"
        await server.streams[0].aclose()
        assert await session.hold()
        await server.streams[1].aclose()
        server.streams.clear()
        assert await session.hold(b"three")
        await session.release()
        assert await is_closed(server.streams[0])
        assert session.lines == []


async def test_held_request_that_the_server_cuts_is_no_fault(autojump_clock: Any) -> None:
    class Closing(ScriptedHttpServer):
        async def connect_stream(self) -> trio.abc.Stream:
            ours = await super().connect_stream()
            await self.streams[-1].aclose()
            return ours

    async with played_target() as (target, _):
        target._connector = Closing()  # type: ignore[assignment]
        session = await opened(target)
        assert not await session.hold(b"one")
        assert session.ended == ""


SESSION: Final = b"\r\nmcp-session-id: other\r\n\r\n"


@pytest.mark.parametrize(
    ("response", "is_begun"), [(EMPTY.replace(b"\r\n\r\n", SESSION), True), (EMPTY, False)]
)
async def test_session_beside_is_deleted_with_the_case(
    autojump_clock: Any, response: bytes, is_begun: bool
) -> None:
    """A session that the server refused, or didn't give, isn't deleted."""
    async with played_target() as (target, server):
        session, found = await opened(target), []

        async def begin() -> None:
            found.append(await session.begin_beside())

        async with trio.open_nursery() as nursery:
            nursery.start_soon(begin)
            await trio.testing.wait_all_tasks_blocked()
            assert b'"method":"initialize"' in await server.read()
            await server.streams[-1].send_all(response)
        assert found == [is_begun]
        await session.release()
        with trio.move_on_after(0.1) as scope:
            sent = await server.read()
            assert sent.startswith(
                b"DELETE /mcp HTTP/1.1\r\nhost: 127.0.0.1:1\r\nmcp-session-id: oth"
            )
        assert scope.cancelled_caught is not is_begun


async def test_end_of_a_session_deletes_it_within_a_second(autojump_clock: Any) -> None:
    """Not if the server has gone, or gave none. Another session's end isn't its own."""
    async with played_target(headers={"X-Own": "1"}) as (target, server):
        session, begun = await opened(target), trio.current_time()
        await session.delete()
        await session.aclose()
        assert server.streams == []
        session.session_id = b"mine"
        with trio.move_on_after(0.5):
            await session.delete(b"another")
        assert await server.read() == (
            b"DELETE /mcp HTTP/1.1\r\nhost: 127.0.0.1:1\r\nmcp-session-id: another\r\n"
            b"x-own: 1\r\n\r\n"
        )
        deleted = [session._is_deleted]
        await session.aclose()
        assert b"mcp-session-id: mine" in await server.read()
        assert [*deleted, session._is_deleted] == [False, True]
        assert trio.current_time() - begun == pytest.approx(1.5)
        session.end("over")
        await session.aclose()
        assert len(server.streams) == 2


async def test_disconnected_session_is_over(autojump_clock: Any) -> None:
    async with played_target() as (target, _):
        session = await opened(target)
        await session.disconnect()
        assert (session.spent, session.ended) == (True, "the client has disconnected")


async def test_other_sessions_share_a_trace_or_have_their_own(autojump_clock: Any) -> None:
    async with played_target() as (target, _):
        session = await opened(target)
        after, beside, fresh = (
            await session.successor(),
            await session.beside(),
            await session.fresh(),
        )
        assert [each.number for each in (session, after, beside, fresh)] == [1, 2, 3, 1]
        assert after.lines is beside.lines is session.lines is not None
        assert fresh.lines is None
        assert session.longest_start is None
        session.receive(TraceLine(t=0.0, conversation=1, exchange=1, sender="server", end="reset"))
        assert fresh.longest_start == 0
