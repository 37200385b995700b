"""Unread responses of one HTTP/2 connection: how much is held, and who has to wait."""

from __future__ import annotations

import gc
import json
import math
import os
import resource
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pytest
import trio
import trio.testing

from mcp_core.http import Endpoint, HostOriginPolicy, HttpLimits, HttpOptions, Router
from mcp_core.registry import Server
from mcp_core.runtime import ServedServer
from mcp_trio.http_server._connection import WRITE_SECONDS, WRITE_SIZE
from mcp_trio.http_server._h2_connection import H2ServerConnection
from mcp_trio.http_server._h2_unread import LONG, UnreadResponses
from tests.harness.wire.http2_client import CANCEL, H2Answer, H2Wire, asking, h2_serving
from tests.harness.wire.http2_frames import RST_STREAM, SETTINGS, frame, number, setting, window
from tests.harness.wire.router import (
    POST,
    E,
    meta,
    request,
)

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

MockClock = trio.testing.MockClock
wait = trio.testing.wait_all_tasks_blocked

KIB = 1024
WHOLE = 2**31 - 1 - 65_535  # opens the window of the connection as far as it goes
SIZE = 300 * KIB
LIMITS = HttpLimits(unread=4 * SIZE)
HEADERS = [
    *[pair for pair in POST if pair[0] != b"host"],
    (b"mcp-protocol-version", E.encode()),
    (b"mcp-method", b"tools/call"),
]


class Hoard:
    """A server with long results, one connection to it, and its client.

    `ran` counts the calls that were executed. `go` lets the handlers of `later` return.
    """

    def __init__(self) -> None:
        self.server = Server("hoard")
        self.ran = 0
        self.go = trio.Event()
        self.wire: H2Wire
        self.connection: H2ServerConnection

        @self.server.tool
        def now(size: int = SIZE) -> str:
            """Return a long text."""
            self.ran += 1
            return "x" * size

        @self.server.tool
        async def later(size: int = SIZE) -> str:
            """Return a long text, once the test says so."""
            self.ran += 1
            await self.go.wait()
            return "x" * size

    async def call(self, tool: str, *streams: int, **arguments: Any) -> None:
        params = {"name": tool, "arguments": arguments, "_meta": meta()}
        headers = [*HEADERS, (b"mcp-name", tool.encode())]
        for stream in streams:
            body = json.dumps(request(stream, "tools/call", params)).encode()
            await self.wire.send(asking(stream, body, b"/mcp", *headers))
        await self.wire.settle()

    @property
    def held(self) -> int:
        """Bytes of responses in the connection and its exchanges."""
        streams = self.connection._streams.values()
        queued = sum(stream.exchange.queued for stream in streams if stream.exchange is not None)
        return self.connection._unread.sending + queued

    async def open_windows(self, *streams: int) -> None:
        """Read what was sent, and let the server send on."""
        await self.wire.send(*[window(stream, 10_000_000) for stream in streams])
        await self.wire.settle()

    async def results(self, *streams: int) -> list[H2Answer]:
        return [await self.wire.answer(stream) for stream in streams]


@asynccontextmanager
async def hoarding(limits: HttpLimits = LIMITS) -> AsyncIterator[Hoard]:
    hoard = Hoard()
    endpoint = Endpoint(
        hoard.server.config,
        HttpOptions(host_origin_policy=HostOriginPolicy(None), limits=limits),
        entropy=os.urandom,
        param_headers=hoard.server.param_headers,
        token=ServedServer(hoard.server, None),
    )
    async with h2_serving(Router({"/mcp": endpoint})) as served:
        hoard.wire = await served.meet()
        (hoard.connection,) = served.connections
        await hoard.wire.send(window(0, WHOLE))
        yield hoard


def error_in(answer: H2Answer) -> tuple[int, int, str]:
    error = json.loads(answer.body)["error"]
    return answer.status, error["code"], error["message"]


def is_whole(answer: H2Answer) -> bool:
    return answer.status == 200 and answer.whole and len(answer.body) > SIZE


def ids(first: int, count: int) -> list[int]:
    return list(range(first, first + 2 * count, 2))


async def test_h2_requests_wait_while_much_is_unread_and_go_on_once_it_is_read() -> None:
    async with hoarding() as hoard:
        streams = ids(1, 30)
        await hoard.call("now", *streams)
        # Of each response 64 KiB are sent, in the first window. The rest adds up to the limit.
        assert hoard.ran < 20
        assert hoard.held <= LIMITS.unread + 2 * SIZE
        before = hoard.ran
        await hoard.call("now", 61)
        assert hoard.ran == before
        for stream in (*streams, 61):
            await hoard.open_windows(stream)
            assert hoard.held <= LIMITS.unread + 2 * SIZE
        assert all(map(is_whole, await hoard.results(*streams, 61)))
        assert (hoard.ran, hoard.held) == (31, 0)


async def test_h2_requests_go_on_once_the_unread_responses_are_given_up() -> None:
    """The client's resets cause no output, and a waiting request starts all the same.

    All windows are closed, so that no write is under way when the resets arrive.
    """
    async with hoarding() as hoard:
        await hoard.wire.send(frame(SETTINGS, 0, 0, setting(4, 0)))
        await hoard.call("later", *ids(1, 30))
        hoard.go.set()
        await wait()
        await hoard.call("now", 61)
        assert hoard.ran == 30
        await hoard.wire.send(
            *[frame(RST_STREAM, 0, stream, number(CANCEL)) for stream in ids(1, 30)]
        )
        await wait()
        assert hoard.ran == 31


async def test_h2_response_that_is_read_slowly_holds_up_no_others() -> None:
    async with hoarding() as hoard:
        await hoard.call("now", 1, size=10 * LIMITS.unread)
        await hoard.call("now", 3, 5)
        assert hoard.ran == 3
        await hoard.open_windows(3, 5)
        assert all(map(is_whole, await hoard.results(3, 5)))


async def test_h2_request_that_waits_too_long_gets_503(autojump_clock: MockClock) -> None:
    """Unread responses hold the memory that new requests need; the error says what to do."""
    async with hoarding() as hoard:
        streams = ids(1, 30)
        await hoard.call("now", *streams)
        started = hoard.ran
        await hoard.open_windows(1)  # one of those that hold the others up is read
        assert hoard.ran > started
        await trio.sleep(31)
        answers = await hoard.results(*streams)
        assert is_whole(answers[0])
        stalled = [answer for answer in answers if answer.reset == CANCEL]
        refused = [answer for answer in answers if answer.status == 503]
        assert len(stalled) + len(refused) + 1 == len(answers)
        assert len(refused) > 10
        for answer in refused:
            status, code, text = error_in(answer)
            assert (status, code, answer.headers[b"retry-after"]) == (503, 429, b"5")
            assert "too much of unread responses: read them" in text
        # The connection goes on.
        await hoard.call("now", 101)
        await hoard.open_windows(101)
        assert is_whole((await hoard.results(101))[0])


async def test_h2_request_gets_503_also_if_others_have_been_read_slowly_for_long(
    autojump_clock: MockClock,
) -> None:
    """Those are being sent, and none of them has a deadline by which it is dropped."""
    async with hoarding() as hoard:

        async def read_some() -> None:
            await trio.sleep(10)
            await hoard.wire.send(window(1, 40 * KIB), window(3, 40 * KIB))
            await hoard.wire.settle()

        await hoard.call("now", 1, 3, size=6 * SIZE)
        for _ in range(4):
            await read_some()
        await hoard.call("now", 5)
        assert hoard.ran == 2
        for _ in range(3):
            await read_some()
        await trio.sleep(1)
        assert 5 in hoard.wire.answers
        assert (await hoard.results(5))[0].status == 503


async def test_h2_responses_of_running_handlers_are_all_kept_for_a_client_that_reads() -> None:
    """They are far more than the limit, but nothing is wrong with their client."""
    async with hoarding() as hoard:
        streams = ids(1, 45)
        await hoard.call("later", *streams)
        assert hoard.ran == 45
        hoard.go.set()
        await wait()
        assert hoard.held > 3 * LIMITS.unread
        assert hoard.connection._unread.sending <= LIMITS.unread + 2 * SIZE
        await hoard.open_windows(*streams)
        assert all(map(is_whole, await hoard.results(*streams)))
        assert hoard.held == 0


async def test_h2_responses_of_running_handlers_are_dropped_if_nothing_is_read(
    autojump_clock: MockClock,
) -> None:
    """The handlers ran already, so refusing is too late: an error replaces their results."""
    async with hoarding() as hoard:
        streams = ids(1, 60)
        await hoard.call("later", *streams)
        hoard.go.set()
        await trio.sleep(1)
        assert hoard.held > 4 * LIMITS.unread
        await trio.sleep(1.5)
        assert hoard.held <= 4 * LIMITS.unread + 2 * SIZE
        await hoard.open_windows(*streams)
        answers = await hoard.results(*streams)
        dropped = [answer for answer in answers if not is_whole(answer)]
        assert 30 <= len(dropped) <= 45
        for answer in dropped:
            status, code, text = error_in(answer)
            assert (status, code) == (200, -32603)
            assert "the response was dropped" in text
            assert json.loads(answer.body)["id"] in streams


async def test_h2_slow_reader_of_far_too_much_keeps_what_it_reads(
    autojump_clock: MockClock,
) -> None:
    """It reads more than 256 KiB in every two seconds, which is enough.

    Seven responses are sent at a time. Which ones depends on the order in which the handlers
    return, so it reads 40 KiB a second of each.
    """
    async with hoarding() as hoard:
        streams = ids(1, 45)
        await hoard.call("later", *streams)
        hoard.go.set()
        for second in range(7):
            await trio.sleep(1)
            assert second > 4 or hoard.held > 4 * LIMITS.unread
            await hoard.wire.send(*[window(stream, 40 * KIB) for stream in streams])
            await hoard.wire.settle()
        assert all(map(is_whole, await hoard.results(*streams)))


async def test_h2_streams_that_end_while_they_wait_are_forgotten() -> None:
    async with hoarding() as hoard:
        streams = ids(1, 40)
        await hoard.call("now", *streams[:20])
        await hoard.call("later", *streams[20:])
        ran = hoard.ran
        unread = hoard.connection._unread
        assert len(unread.requests) == 40 - ran
        for stream in streams:
            await hoard.wire.send(b"\0\0\4\3\0" + stream.to_bytes(4, "big") + b"\0\0\0\x08")
        await hoard.wire.settle()
        assert (unread.requests, unread.responses, unread.sending) == ({}, {}, 0)
        assert repr(unread) == "<UnreadResponses: 0 bytes, 0 requests and 0 responses wait>"


async def test_h2_client_that_stops_reading_at_all_is_bounded_too(
    autojump_clock: MockClock,
) -> None:
    """All windows are open, but the socket is full: the write itself blocks."""
    async with hoarding() as hoard:
        streams = ids(1, 60)
        await hoard.wire.send(
            b"\0\0\6\4\0\0\0\0\0\0\4\x7f\xff\xff\xff"  # SETTINGS: windows of 2 GiB
        )
        stream: Any = hoard.connection._stream
        blocked = trio.Event()

        async def never(data: object) -> None:
            await blocked.wait()

        await hoard.call("later", *streams)
        stream.send_all = never
        hoard.go.set()
        await trio.sleep(1)
        assert hoard.held > 4 * LIMITS.unread
        await trio.sleep(1.5)
        assert hoard.held <= 4 * LIMITS.unread + 3 * SIZE
        await trio.sleep(40)
        assert not hoard.connection._streams


@dataclass(eq=False)
class SizedStream:
    """A stream with so many bytes to send, and so many more in its exchange, if it has one."""

    unsent: bytes
    queued: int | None
    unsent_offset: int = 0

    @property
    def exchange(self) -> SizedStream | None:
        return self if self.queued is not None else None


class CountedRouter:
    """Records whose request was refused, and whose response was dropped."""

    unread_limit = 100

    def __init__(self) -> None:
        self.refused: list[SizedStream] = []
        self.dropped: list[SizedStream] = []

    def refuse_unread(self, exchange: SizedStream) -> None:
        self.refused.append(exchange)

    def drop_responses(self, exchange: SizedStream) -> None:
        self.dropped.append(exchange)
        exchange.queued = 0


def sized(*sizes: tuple[int, int | None], router: Any = CountedRouter) -> tuple[Any, Any]:
    """Return a connection with a limit of 100 bytes and such streams, and one without any.

    Each has sent seven bytes more.
    """
    streams: list[Any] = [SizedStream(b"x" * (size + 7), queued, 7) for size, queued in sizes]
    unread = UnreadResponses(router, dict.fromkeys(streams))
    unread.sending = sum(size for size, _ in sizes)
    return unread, SizedStream(b"", 0)


@pytest.mark.parametrize(
    ("sizes", "waits"),
    [
        ([], False),
        ([(999, 0)], False),
        ([(100, 0), (999, 0)], False),
        ([(101, 0), (999, 0)], True),
        ([(50, 0), (50, 0), (999, 0)], False),
        ([(50, 0), (51, 0), (999, 0)], True),
        ([(60, 41), (999, 0)], True),
        ([(60, 40), (999, 0)], False),
        ([(0, 999), (100, 0), (1, 0)], True),
        ([(0, 999), (100, 0)], False),  # nothing is sent to anyone else
        ([(0, 60), (0, 60), (0, 60)], False),  # what waits in exchanges is short
        ([(50, 0), (50, 60), (0, 60)], False),
        ([(101, None), (999, 0)], True),  # an error response: it has no exchange
        ([(100, None), (999, 0)], False),
    ],
)
def test_h2_request_waits_for_more_than_the_limit_beside_the_longest_response(
    sizes: list[tuple[int, int | None]], waits: bool
) -> None:
    unread, new = sized(*sizes)
    assert unread.holds_request(new, 5.0) is waits
    assert unread.requests == ({new: 5.0 + WRITE_SECONDS} if waits else {})
    assert unread.next_to_run() is None
    if waits:
        unread.sending = 0
        unread._streams.clear()
        assert unread.next_to_run() is new
        assert unread.next_to_run() is None


@pytest.mark.parametrize(
    ("sizes", "waits"),
    [
        ([(999, 0)], False),
        ([(100, 0), (999, 0)], False),
        ([(101, 0), (999, 0)], True),
        ([(60, 999), (999, 0)], False),  # what is in exchanges can stay there
    ],
)
def test_h2_long_response_waits_for_more_than_the_limit_that_is_sent(
    sizes: list[tuple[int, int]], waits: bool
) -> None:
    unread, new = sized(*sizes)
    assert unread.holds_response(new, 5.0) is waits
    assert unread.responses == ({new: 5.0 + WRITE_SECONDS} if waits else {})


@pytest.mark.parametrize(
    ("queued", "deadline"), [([999, 400], math.inf), ([999, 401], 7.0), ([999, 200, 201], 7.0)]
)
def test_h2_client_has_two_seconds_once_over_four_times_the_limit_is_unread(
    queued: list[int], deadline: float
) -> None:
    unread, _ = sized()
    for each in queued:
        unread.add_response(SizedStream(b"", each), 5.0)
    assert unread.overflow_deadline == deadline
    assert unread.next_deadline() == min(deadline, 5.0 + WRITE_SECONDS)


@pytest.mark.parametrize(("queued", "waits"), [(LONG, False), (LONG + 1, True)])
def test_h2_request_waits_for_long_responses_in_exchanges_and_not_for_short_ones(
    queued: int, waits: bool
) -> None:
    unread, new = sized()
    for _ in range(2):
        unread.add_response(SizedStream(b"", queued), 5.0)
    assert unread.holds_request(new, 5.0) is waits


def test_h2_long_response_that_is_sent_waits_no_more() -> None:
    unread, one = sized()
    unread.add_response(one, 5.0)
    assert unread.next_deadline() == 5.0 + WRITE_SECONDS
    assert unread.holds_response(one, 6.0) is False
    assert unread.next_deadline() == math.inf


@pytest.mark.parametrize("kind", ["requests", "responses"])
def test_h2_streams_that_wait_too_long_get_an_error_each_at_its_own_time(kind: str) -> None:
    """One of them has no exchange any more, so it has no request to refuse."""
    router = CountedRouter()
    unread, first = sized((101, 0), (999, 0), router=router)
    gone, second = SizedStream(b"", None), SizedStream(b"", 0)
    add = unread.holds_request if kind == "requests" else unread.holds_response
    for stream, now in (first, 5.0), (gone, 5.0), (second, 6.0):
        assert add(stream, now)
    found = router.refused if kind == "requests" else router.dropped
    assert unread.handle_deadline(4.9 + WRITE_SECONDS) == []
    assert unread.handle_deadline(5.0 + WRITE_SECONDS) == [first, gone]
    assert found == [first]
    assert list(getattr(unread, kind)) == [second]
    assert unread.next_deadline() == 6.0 + WRITE_SECONDS
    unread.discard(second)
    assert unread.next_deadline() == math.inf
    assert len(router.refused) + len(router.dropped) == 1


@pytest.mark.parametrize(
    ("sent", "drops"), [(0, 2), (WRITE_SIZE - 1, 2), (WRITE_SIZE, 0), (WRITE_SIZE + 1, 0)]
)
def test_h2_far_too_much_is_dropped_from_the_newest_unless_the_client_reads(
    sent: int, drops: int
) -> None:
    """Every two seconds the client has to read 256 KiB, as long as that much is unread."""
    router = CountedRouter()
    unread, _ = sized(router=router)
    streams = [SizedStream(b"", LONG + 1)] + [SizedStream(b"", 200) for _ in range(4)]
    unread.sent = 9 * WRITE_SIZE
    for stream in streams[:3]:
        unread.add_response(stream, 5.0)
    assert unread.overflow_deadline == math.inf
    for stream in streams[3:]:
        unread.add_response(stream, 6.0)
    assert unread.overflow_deadline == 8.0
    unread.sent += sent
    assert unread.handle_deadline(7.9) == []
    assert unread.handle_deadline(8.0) == (streams[:-3:-1] if drops else [])
    assert router.dropped == (streams[:-3:-1] if drops else [])
    assert unread.overflow_deadline == (math.inf if drops else 10.0)
    if not drops:
        # What was read before doesn't count in the next two seconds.
        assert unread.handle_deadline(10.0) == streams[:-3:-1]


def test_h2_stream_that_ends_frees_what_it_had_to_send() -> None:
    unread, _ = sized((101, 0), (40, 0))
    first, second = unread._streams
    unread.discard(first)
    assert unread.sending == 40
    second.unsent = b""
    unread.discard(second)
    assert unread.sending == 40


@pytest.mark.slow
@pytest.mark.timeout(60)
async def test_h2_unread_responses_take_little_memory() -> None:
    """100 calls of 2 MiB each, of which none is read: with the default limit."""

    def resident() -> int:
        with open("/proc/self/statm") as file:  # noqa: PTH123 - not a file on a disk
            return int(file.read().split()[1]) * resource.getpagesize()

    async with hoarding(HttpLimits()) as hoard:
        gc.collect()
        before = resident()
        await hoard.call("now", *ids(1, 100), size=2 * KIB * KIB)
        assert hoard.ran < 20
        assert resident() - before < 40 * KIB * KIB
