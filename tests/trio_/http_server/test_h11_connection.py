"""An HTTP/1.1 server connection: reading, writing, timeouts. The router behind it is a fake."""

from __future__ import annotations

import logging
from contextlib import suppress
from typing import Any

import pytest
import trio
import trio.testing

from mcp_core.http import Body, End, Head
from mcp_core.http.wire._http1 import head_end
from mcp_trio import memory_pair
from mcp_trio.http_server import _h11_connection
from mcp_trio.http_server._connection import HEAD_SECONDS, MAX_UNWANTED, AccessLogEntry
from mcp_trio.http_server._h11_connection import H11ServerConnection
from tests.harness.wire.http1_client import (
    FakeExchange,
    FakeRouter,
    HttpWire,
    LastStream,
    get,
    post,
    serving,
    split_answers,
)

MockClock = trio.testing.MockClock
wait = trio.testing.wait_all_tasks_blocked

CHUNKED = b"transfer-encoding: chunked"
EXPECT = b"expect: 100-continue"
CLOSE = b"connection: close"
KIB = 1024


def chunked(*pieces: bytes) -> bytes:
    return b"".join(b"%x\r\n%b\r\n" % (len(piece), piece) for piece in (*pieces, b""))


async def ended(wire: HttpWire) -> bool:
    """Return True if the peer sends nothing more and closes."""
    return await wire.rest() == b""


# -- Consecutive exchanges -----------------------------------------------------------------------


async def test_h11_server_answers_requests_on_one_connection() -> None:
    site = FakeRouter()
    async with serving(site) as served:
        wire = served.connect()
        for body in b"one", b"", b"x" * 100_000, b"four":
            answer = await wire.ask(post(body=body))
            assert (answer.status, answer.body) == (200, body)
            assert answer.headers[b"content-type"] == b"text/plain"
            assert answer.headers[b"content-length"] == b"%d" % len(body)
            assert b"connection" not in answer.headers
            assert answer.headers[b"date"].endswith(b" GMT")
    assert [exchange.body for exchange in site.exchanges] == [b"one", b"", b"x" * 100_000, b"four"]
    assert repr(served.connections[0]) == "<H11ServerConnection, closing>"


async def test_h11_server_passes_the_request_head() -> None:
    site = FakeRouter()
    async with serving(site) as served:
        wire = served.connect()
        await wire.ask(post("http://localhost/echo?a=b", b"1", b"X-Name:  Value "))
        await wire.ask(post("http://localhost/echo?a=b", b"2", b"X-Name:  Value "))
    for exchange in site.exchanges:
        head = exchange.head
        assert (head.method, head.target) == (b"POST", b"/echo?a=b")
        assert head.headers == [
            (b"host", b"localhost"),
            (b"x-name", b"Value"),
            (b"content-length", b"1"),
        ]
    assert [exchange.body for exchange in site.exchanges] == [b"1", b"2"]


@pytest.mark.parametrize(("version", "is_1_1"), [(b"1.1", True), (b"1.0", False)])
async def test_h11_server_passes_the_address_and_the_version(version: bytes, is_1_1: bool) -> None:
    """The first bytes may have been read before. HTTP/1.0 has no upgrade to a WebSocket."""
    site = FakeRouter()
    async with serving(site) as served:
        ours, theirs = memory_pair()
        request = post(body=b"hello", version=version)
        connection = H11ServerConnection(served.driver, ours, None, request[:9], "192.0.2.1")
        served.nursery.start_soon(connection.serve)
        wire = HttpWire(theirs)
        assert (await wire.ask(request[9:])).body == b"hello"
    (exchange,) = site.exchanges
    assert (exchange.address, exchange.may_upgrade) == ("192.0.2.1", is_1_1)
    assert exchange.http_version == version.decode()
    assert exchange.token is connection


@pytest.mark.parametrize("size", [1, 7, 10_000])
async def test_h11_server_pipelined_requests_are_answered_in_order(size: int) -> None:
    data = (
        post(body=b"one")
        + post("/echo", chunked(b"t", b"wo"), CHUNKED)
        + get()
        + post(body=b"four")
    )
    async with serving(FakeRouter()) as served:
        wire = served.connect()
        for start in range(0, len(data), size):
            await wire.send(data[start : start + size])
        assert [(await wire.answer()).body for _ in range(4)] == [b"one", b"two", b"", b"four"]


@pytest.mark.parametrize("size", [1, 2, 3, 10_000])
@pytest.mark.parametrize("lines", [1, 4])
async def test_h11_server_empty_lines_before_request_are_skipped(lines: int, size: int) -> None:
    empty = b"\r\n" * lines
    said = empty + post(body=b"one") + empty + post(body=b"two") + empty
    async with serving(FakeRouter()) as served:
        wire = served.connect()
        for start in range(0, len(said), size):
            await wire.send(said[start : start + size])
            await wait()
        assert [(await wire.answer()).body for _ in range(2)] == [b"one", b"two"]


@pytest.mark.parametrize("size", [1, 10_000])
@pytest.mark.parametrize("empty", [b"\r\n" * 5, b"\n", b"\r\n\n", b"\r\r\n", b" \r\n"])
async def test_h11_server_other_lines_before_request_are_rejected(empty: bytes, size: int) -> None:
    said = empty + post(body=b"one")
    async with serving(FakeRouter()) as served:
        wire = served.connect()
        for start in range(0, len(said), size):
            with suppress(trio.BrokenResourceError, trio.ClosedResourceError):
                await wire.send(said[start : start + size])
        assert (await wire.answer()).status == 400


async def test_h11_server_half_an_empty_line_does_not_shorten_the_next_head(
    autojump_clock: object,
) -> None:
    async with serving(FakeRouter()) as served:
        wire = served.connect()
        await wire.send(b"\r")
        await trio.sleep(HEAD_SECONDS * 0.9)
        await wire.send(b"\n")
        await trio.sleep(HEAD_SECONDS * 0.9)
        head = post(body=b"one")
        await wire.send(head[:5])
        await trio.sleep(HEAD_SECONDS * 0.9)
        await wire.send(head[5:])
        assert (await wire.answer()).body == b"one"


async def test_h11_server_malformed_chunk_error_has_no_python_notation() -> None:
    async with serving(FakeRouter()) as served:
        wire = served.connect()
        await wire.send(post("/echo", b"zz\r\n", CHUNKED))
        answer = await wire.answer()
    assert (answer.status, answer.body) == (400, b"The chunks of the body are malformed.\n")


async def test_h11_server_pipelined_responses_leave_in_one_write() -> None:
    async with serving(FakeRouter()) as served:
        wire = served.connect()
        await wire.send(post(body=b"one") + post(body=b"two") + post(body=b"three"))
        await wire.more()
        assert [answer.body for answer in split_answers(wire.buffer)] == [b"one", b"two", b"three"]


async def test_h11_server_pipelined_request_waits_for_a_slow_one() -> None:
    site = FakeRouter()
    async with serving(site) as served:
        wire = served.connect()
        await wire.send(post("/later", b"one") + post(body=b"two"))
        await wait()
        assert [exchange.body for exchange in site.exchanges] == [b"one"]
        assert not wire.buffer
        site.exchanges[0].send(Head(200, []), Body(b"at last"), End())
        served.driver.pump()
        assert [(await wire.answer()).body for _ in range(2)] == [b"at last", b"two"]


async def test_h11_server_unlimited_pipelining_pauses_reading() -> None:
    """The first of 3,001 requests hangs, so the rest must wait in the socket, not in memory."""
    site = FakeRouter()
    async with serving(site) as served:
        wire = served.connect()
        requests = [post("/later"), *[post(body=b"%d" % number * 100) for number in range(3_000)]]
        sent = trio.Event()

        async def ask() -> None:
            await wire.send(b"".join(requests))
            sent.set()

        served.nursery.start_soon(ask)
        await wait()
        assert not sent.is_set()
        assert len(site.exchanges) == 1
        assert len(served.connections[0]._incoming) <= 128 * KIB
        site.exchanges[0].send(Head(204, []), End())
        served.driver.pump()
        for _ in requests:
            await wire.answer()
        await sent.wait()


async def test_h11_server_large_pipelined_responses_are_not_buffered() -> None:
    site = FakeRouter()

    def answer(exchange: FakeExchange) -> None:
        exchange.send(Head(200, []), Body(b"x" * 1_000_000), End())

    site.on_complete = answer
    async with serving(site) as served:
        wire = served.connect()
        await wire.send(get("/large") * 20)
        await wait()
        assert len(site.exchanges) == 1
        for _ in range(20):
            assert len((await wire.answer()).body) == 1_000_000


# -- Responses -----------------------------------------------------------------------------------


async def test_h11_server_unfinished_response_is_sent_in_chunks() -> None:
    """Events arrive as they occur, and the connection is reusable after the last chunk."""
    site = FakeRouter()
    async with serving(site) as served:
        wire = served.connect()
        await wire.send(post("/stream"))
        assert b"transfer-encoding: chunked" in await wire.until(b"\r\n\r\n")
        exchange = site.exchanges[0]
        exchange.send(Body(b"data: 1\n\n"))
        served.driver.pump()
        assert await wire.until(b"1\n\n\r\n") == b"9\r\ndata: 1\n\n\r\n"
        exchange.send(Body(b""), Body(b"2"), Body(b"3"))
        served.driver.pump()
        await wait()
        exchange.send(End())
        served.driver.pump()
        assert (await wire.until(b"0\r\n\r\n")).endswith(b"1\r\n2\r\n1\r\n3\r\n0\r\n\r\n")
        assert (await wire.ask(post(body=b"next"))).body == b"next"


async def test_h11_server_http_1_0_gets_no_chunks_and_a_close() -> None:
    site = FakeRouter()
    async with serving(site) as served:
        wire = served.connect()
        await wire.send(post("/stream", version=b"1.0"))
        head = await wire.until(b"\r\n\r\n")
        assert CLOSE in head
        assert CHUNKED not in head
        site.exchanges[0].send(Body(b"data"), End())
        served.driver.pump()
        assert await wire.rest() == b"data"


@pytest.mark.parametrize(
    ("request_", "closes"),
    [
        (post(), False),
        (post("/echo", b"", b"connection: keep-alive"), False),
        (post("/echo", b"", CLOSE), True),
        (post("/echo", b"", b"Connection: x, CLOSE"), True),
        (post(version=b"1.0"), True),
        (post("/echo", b"", b"connection: keep-alive", version=b"1.0"), True),
    ],
)
async def test_h11_server_keep_alive_follows_the_request(request_: bytes, closes: bool) -> None:
    async with serving(FakeRouter()) as served:
        wire = served.connect()
        answer = await wire.ask(request_)
        assert answer.status == 200
        assert (answer.headers.get(b"connection") == b"close") is closes
        if closes:
            assert await ended(wire)
        else:
            assert (await wire.ask(post())).status == 200


@pytest.mark.parametrize("target", ["/echo", "/stream", "/nothing"])
async def test_h11_server_response_without_body_has_none(target: str) -> None:
    """Stray body bytes would be taken for the start of the next response."""
    site = FakeRouter()

    def finish(exchange: FakeExchange) -> None:
        if target == "/stream":
            exchange.send(Body(b"data"), End())

    site.on_complete = finish
    async with serving(site) as served:
        wire = served.connect()
        method = b"POST" if target == "/nothing" else b"HEAD"
        for _ in range(2):
            answer = await wire.ask(get(target, method=method))
            assert answer.status == (204 if target == "/nothing" else 200)
            assert CHUNKED.split(b":")[0] not in answer.headers
            assert wire.buffer == b""


@pytest.mark.parametrize(
    ("request_", "actions", "expected"),
    [
        (post("/any"), [Head(200, []), End()], b"200 OK\r\ncontent-length: 0\r\n\r\n"),
        (
            post("/any"),
            [Head(200, [(b"content-length", b"9"), (b"x", b"y")]), Body(b"ab"), Body(b"c"), End()],
            b"200 OK\r\nx: y\r\ncontent-length: 3\r\n\r\nabc",
        ),
        (
            post("/any"),
            [Head(200, [(b"content-length", b"3")]), Body(b"a")],
            b"200 OK\r\ncontent-length: 3\r\n\r\na",
        ),
        (
            post("/any"),
            [Head(200, []), Body(b"a")],
            b"200 OK\r\ntransfer-encoding: chunked\r\n\r\n1\r\na\r\n",
        ),
        (post("/any", version=b"1.0"), [Head(200, []), Body(b"a")], b"200 OK\r\n\r\na"),
        (post("/any"), [Head(204, []), End()], b"204 No Content\r\n\r\n"),
        (post("/any"), [Head(304, []), Body(b"a"), End()], b"304 Not Modified\r\n\r\n"),
        (get("/any", method=b"HEAD"), [Head(200, []), Body(b"a")], b"200 OK\r\n\r\n"),
        (
            get("/any", method=b"HEAD"),
            [Head(200, [(b"content-length", b"3")]), Body(b"abc"), End()],
            b"200 OK\r\ncontent-length: 3\r\n\r\n",
        ),
    ],
)
async def test_h11_server_framing_of_a_response(
    request_: bytes, actions: list[Any], expected: bytes
) -> None:
    """The length of a complete body is known, so its head need not be right. Others have chunks."""
    site = FakeRouter()
    site.on_complete = lambda exchange: exchange.send(*actions)
    async with serving(site) as served:
        wire = served.connect()
        await wire.send(request_)
        await wire.more()
    head, _, body = wire.buffer.partition(b"\r\n\r\n")
    lines = [line for line in head.split(b"\r\n") if not line.startswith((b"date: ", CLOSE))]
    assert b"\r\n".join([*lines, b"", body]) == b"HTTP/1.1 " + expected


async def test_h11_server_passes_any_method() -> None:
    site = FakeRouter()
    async with serving(site) as served:
        wire = served.connect()
        for method in b"OPTIONS", b"DELETE", b"PATCH", b"QUERY":
            assert (await wire.ask(get(method=method))).status == 200
    assert [exchange.head.method for exchange in site.exchanges] == [
        b"OPTIONS",
        b"DELETE",
        b"PATCH",
        b"QUERY",
    ]


async def test_h11_server_complete_response_is_one_write() -> None:
    """One system call and often one packet: head and body are joined."""
    writes: list[bytes] = []
    ours, theirs = memory_pair()
    stream = trio.StapledStream(ours, ours)

    async def send_all(data: Any) -> None:
        writes.append(bytes(data))
        await ours.send_all(data)

    stream.send_all = send_all  # type: ignore[method-assign]
    site = FakeRouter()
    async with serving(site) as served:
        served.connect(stream)
        wire = HttpWire(theirs)
        await wire.ask(post(body=b"hello"))
        assert len(writes) == 1
        await wire.send(post("/later"))
        await wait()
        site.exchanges[1].send(Head(200, []), Body(b"a"), Body(b"b"), End())
        served.driver.pump()
        await wire.answer()
        assert len(writes) == 2
        await theirs.aclose()


# -- Bodies --------------------------------------------------------------------------------------


async def test_h11_server_expect_continue_is_answered() -> None:
    async with serving(FakeRouter()) as served:
        wire = served.connect()
        request = post("/echo", b"hello", EXPECT)
        await wire.send(request[:-5])
        assert (await wire.answer()).status == 100
        await wire.send(b"hello")
        assert (await wire.answer()).body == b"hello"
        # A client that does not wait needs no 100; and HTTP/1.0 does not know it.
        assert (await wire.ask(request)).body == b"hello"
        await wire.send(post("/echo", b"hello", EXPECT, version=b"1.0")[:-5])
        await wait()
        await wire.send(b"hello")
        assert (await wire.answer()).body == b"hello"


async def test_h11_server_expect_continue_rejected_closes() -> None:
    async with serving(FakeRouter()) as served:
        wire = served.connect()
        answer = await wire.ask(post("/refuse", b"hello", EXPECT)[:-5])
        assert (answer.status, answer.headers[b"connection"]) == (403, b"close")
        assert await ended(wire)


@pytest.mark.parametrize("framed", [False, True])
async def test_h11_server_rejected_body_is_drained(framed: bool) -> None:
    site = FakeRouter()
    body = b"x" * 10_000
    request = post("/refuse", chunked(body), CHUNKED) if framed else post("/refuse", body)
    async with serving(site) as served:
        wire = served.connect()
        answer = await wire.ask(request[:-5_000])
        assert (answer.status, answer.body) == (403, b"no")
        assert b"connection" not in answer.headers
        await wire.send(request[-5_000:])
        assert (await wire.ask(post(body=b"next"))).body == b"next"
    assert site.exchanges[0].body == b""


@pytest.mark.parametrize("framed", [False, True])
async def test_h11_server_rejected_body_is_drained_to_a_limit(framed: bool) -> None:
    body = b"x" * 200_000
    async with serving(FakeRouter()) as served:
        wire = served.connect()
        answer = await wire.ask(
            post("/refuse", b"", CHUNKED) if framed else post("/refuse", body)[:-200_000]
        )
        assert (answer.headers.get(b"connection") == b"close") is not framed
        with pytest.raises(trio.BrokenResourceError):
            await wire.send(b"%x\r\n" % 10**9 + body + body)


@pytest.mark.parametrize("framed", [False, True])
async def test_h11_server_body_that_was_wanted_counts_for_no_limit_of_the_rest(
    framed: bool,
) -> None:
    """The exchange reads 100 kB, then it is answered: only the rest of the body is unwanted."""
    site = FakeRouter()
    body = b"x" * 100_000
    request = post("/later", chunked(body), CHUNKED) if framed else post("/later", body)
    async with serving(site) as served:
        wire = served.connect()
        await wire.send(request[:-1_000])
        await wait()
        exchange = site.exchanges[0]
        exchange.reading = False
        exchange.send(Head(403, []), Body(b"no"), End())
        served.driver.pump()
        answer = await wire.answer()
        assert (answer.status, answer.headers.get(b"connection")) == (403, None)
        await wire.send(request[-1_000:])
        assert (await wire.ask(post(body=b"next"))).body == b"next"


@pytest.mark.parametrize(("size", "closes"), [(MAX_UNWANTED, False), (MAX_UNWANTED + 1, True)])
async def test_h11_server_response_says_whether_the_rest_of_its_request_is_read(
    size: int, closes: bool
) -> None:
    async with serving(FakeRouter()) as served:
        wire = served.connect()
        answer = await wire.ask(post("/refuse", b"x" * size)[:-size])
        assert (answer.headers.get(b"connection") == b"close") is closes
        if not closes:
            await wire.send(b"x" * size)
            assert (await wire.ask(post(body=b"next"))).body == b"next"


async def test_h11_server_unwanted_chunks_are_read_up_to_a_limit(autojump_clock: MockClock) -> None:
    async with serving(FakeRouter()) as served:
        wire = served.connect()
        await wire.ask(post("/refuse", b"", CHUNKED))
        first = b"%x\r\n" % 10**9
        await wire.send(first + b"x" * (MAX_UNWANTED - len(first) - 1))
        await wait()
        assert repr(served.connections[0]) != "<H11ServerConnection, closing>"
        await wire.send(b"x")
        assert await ended(wire)
        assert trio.current_time() == 0


async def test_h11_server_rejected_body_is_drained_for_a_second(autojump_clock: MockClock) -> None:
    async with serving(FakeRouter()) as served:
        wire = served.connect()
        await wire.ask(post("/refuse", b"hello")[:-1])
        assert await ended(wire)
        assert trio.current_time() == pytest.approx(1)


async def test_h11_server_close_after_reads_no_further_request(autojump_clock: MockClock) -> None:
    site = FakeRouter()
    async with serving(site) as served:
        wire = served.connect()
        answer = await wire.ask(post("/hang-up", b"x" * 1_000) + post())
        assert (answer.status, answer.headers[b"connection"]) == (413, b"close")
        assert await ended(wire)
        assert len(site.exchanges) == 1
        # The client may still send for a while, so that the response is not lost.
        await wire.send(b"x" * 1_000)
        assert served.open == 1
        await trio.sleep(1.1)
        assert served.open == 0


async def test_h11_server_searches_each_byte_of_a_head_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A head that comes byte by byte would otherwise take the square of its length."""
    searched: list[tuple[int, int]] = []
    find = head_end

    def spy(data: Any, start: int = 0) -> Any:
        searched.append((start, len(data)))
        return find(data, start)

    monkeypatch.setattr(_h11_connection, "head_end", spy)
    request = get("/nothing")
    async with serving(FakeRouter()) as served:
        wire = served.connect()
        for place in range(0, len(request), 10):
            await wire.send(request[place : place + 10])
            await wait()
        assert (await wire.answer()).status == 204
    assert searched[0][0] == 0
    assert [start for start, _ in searched[1:]] == [length for _, length in searched[:-1]]


async def test_h11_server_close_in_a_body_lets_its_client_finish(autojump_clock: MockClock) -> None:
    """A client that is reset while it sends would lose the response."""
    async with serving(FakeRouter()) as served:
        wire = served.connect()
        answer = await wire.ask(post("/hang-up", b"x" * 1_000)[:-600])
        assert (answer.status, answer.headers[b"connection"]) == (413, b"close")
        assert await ended(wire)
        await wire.send(b"x" * 600)
        assert served.open == 1
        await trio.sleep(1.1)
        assert served.open == 0


async def test_h11_server_invalid_chunks_get_400() -> None:
    site = FakeRouter()
    async with serving(site) as served:
        wire = served.connect()
        answer = await wire.ask(post("/echo", b"5\r\nhelloXX", CHUNKED))
        assert (answer.status, answer.headers[b"connection"]) == (400, b"close")
        assert await ended(wire)
    assert site.exchanges[0].gone_at is not None


async def test_h11_server_error_lets_its_client_finish(autojump_clock: MockClock) -> None:
    """A client that is reset while it sends would lose the response."""
    async with serving(FakeRouter()) as served:
        wire = served.connect()
        assert (await wire.ask(post("/echo", b"5\r\nhelloXX", CHUNKED))).status == 400
        assert await ended(wire)
        await wire.send(b"x" * 600)
        assert served.open == 1
        await trio.sleep(1.1)
        assert served.open == 0


async def test_h11_server_invalid_chunks_after_the_response_close() -> None:
    async with serving(FakeRouter()) as served:
        wire = served.connect()
        await wire.send(post("/refuse", b"5\r\nhelloXX", CHUNKED))
        assert [answer.status for answer in split_answers(await wire.rest())] == [403]


# -- Invalid heads -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("data", "status"),
    [
        (b" \r\n\r\n", 400),
        (b"\x16\x03\x01\x02\x00\x01", 400),
        (b"GET / HTTP/1.1\nhost: localhost\n\n", 400),
        (b"GET / HTTP/1.1\r\n\r\n", 400),
        (b"GET / HTTP/2.0\r\nhost: localhost\r\n\r\n", 505),
        (post("/echo", b"", CHUNKED, b"content-length: 5"), 400),
        (post("/echo", b"", b"transfer-encoding: gzip"), 501),
        (get("/" + "x" * 10_000), 414),
        (b"GET /" + b"x" * 10_000, 414),
        (get("/", *[b"x: y"] * 200), 431),
        (
            b"GET / HTTP/1.1\r\n"
            + b"x: yyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyy\r\n" * 600,
            431,
        ),
    ],
)
async def test_h11_server_invalid_request_gets_an_error_and_a_close(
    data: bytes, status: int
) -> None:
    site = FakeRouter()
    async with serving(site) as served:
        wire = served.connect()
        assert (await wire.ask(post(body=b"good"))).body == b"good"
        await wire.send(post(body=b"too") + data + post(body=b"never"))
        good, bad = split_answers(await wire.rest())
    assert good.body == b"too"
    assert (bad.status, bad.headers[b"connection"]) == (status, b"close")
    assert bad.body.endswith(b".\n")
    assert [exchange.body for exchange in site.exchanges] == [b"good", b"too"]


# -- Shutdown ------------------------------------------------------------------------------------


async def test_h11_server_shutdown_closes_an_idle_connection_at_once(
    autojump_clock: MockClock,
) -> None:
    async with serving(FakeRouter()) as served:
        wire = served.connect()
        await wire.ask(post())
        served.connections[0].shutdown()
        assert await ended(wire)
        await wait()
        assert (trio.current_time(), served.open) == (0, 0)


async def test_h11_server_shutdown_completes_the_running_exchange(
    autojump_clock: MockClock,
) -> None:
    """Only its response tells the client that the connection closes."""
    site = FakeRouter()
    async with serving(site) as served:
        wire = served.connect()
        await wire.send(post("/later"))
        await wait()
        served.driver.stopping = True
        served.connections[0].shutdown()
        await trio.sleep(5)
        site.exchanges[0].send(Head(200, []), Body(b"at last"), End())
        served.driver.pump()
        answer = await wire.answer()
        assert (answer.body, answer.headers[b"connection"]) == (b"at last", b"close")
        assert await ended(wire)
        assert trio.current_time() == 5


# -- Disconnects ---------------------------------------------------------------------------------


async def test_h11_server_disconnect_at_every_byte_of_request_leaves_nothing() -> None:
    data = post(body=b"hello") + post("/later", chunked(b"hello"), CHUNKED)
    for size in range(len(data) + 1):
        site = FakeRouter()
        async with serving(site) as served:
            wire = served.connect()
            await wire.send(data[:size])
            await wait()
            await wire.stream.aclose()
            await wait()
            assert served.open == 0
        assert all(exchange.over or exchange.gone_at is not None for exchange in site.exchanges)
        assert len(site.exchanges) <= 2


@pytest.mark.parametrize("half", [False, True])
async def test_h11_server_disconnect_during_a_handler_is_noticed(
    half: bool, autojump_clock: MockClock
) -> None:
    """The server reads on while a handler runs, since only that shows the end of the stream."""
    site = FakeRouter()
    async with serving(site) as served:
        wire = served.connect()
        await wire.send(post("/later"))
        await trio.sleep(100)
        assert not site.exchanges[0].gone_at
        if half:
            assert isinstance(wire.stream, trio.abc.HalfCloseableStream)
            await wire.stream.send_eof()
        else:
            await wire.stream.aclose()
        await wait()
        assert site.exchanges[0].gone_at == trio.current_time()
        assert served.open == 0
        site.exchanges[0].send(Head(200, []), End())
        served.driver.pump()


async def test_h11_server_half_close_ends_a_response_that_is_incomplete(
    autojump_clock: MockClock,
) -> None:
    """Its client reads nothing, and the rest may come in an hour: there is nothing to wait for."""
    site = FakeRouter()
    async with serving(site) as served:
        wire = served.connect()
        await wire.send(post("/stream"))
        await wait()
        site.exchanges[0].send(Body(b"x" * 1_000_000))
        served.driver.pump()
        await wait()  # it is being written, and cannot complete
        assert isinstance(wire.stream, trio.abc.HalfCloseableStream)
        await wire.stream.send_eof()
        await wait()
        assert (site.exchanges[0].gone_at, served.open) == (0, 0)


async def test_h11_server_half_close_gets_the_response_being_written() -> None:
    site = FakeRouter()
    async with serving(site) as served:
        wire = served.connect()
        await wire.send(post("/later"))
        await wait()
        site.exchanges[0].send(Head(200, []), Body(b"x" * 1_000_000), End())
        served.driver.pump()
        await wait()  # it is being written, and cannot complete
        assert isinstance(wire.stream, trio.abc.HalfCloseableStream)
        await wire.stream.send_eof()
        await wait()
        assert len((await wire.answer()).body) == 1_000_000
        assert await ended(wire)
    assert site.exchanges[0].gone_at is None


async def test_h11_server_half_close_without_reading_times_out(autojump_clock: MockClock) -> None:
    """A half-closed client may still read, but one that never does can't hold the connection."""
    site = FakeRouter()
    async with serving(site) as served:
        for goes in False, True:
            wire = served.connect()
            await wire.send(post("/later"))
            await wait()
            site.exchanges[-1].send(Head(200, []), Body(b"x" * 1_000_000), End())
            served.driver.pump()
            await wait()
            begun = trio.current_time()
            assert isinstance(wire.stream, trio.abc.HalfCloseableStream)
            await wire.stream.send_eof()
            await trio.sleep(29)
            assert served.open == 1
            if goes:
                await wire.stream.aclose()
                await wait()
            else:
                await trio.sleep(2)
            assert served.open == 0
            assert trio.current_time() == pytest.approx(begun + (29 if goes else 31))


@pytest.mark.parametrize("read", [0, 1, 20, 150, 60_000, 70_000, 500_000])
async def test_h11_server_disconnect_within_response_ends_exchange(read: int) -> None:
    site = FakeRouter()
    async with serving(site) as served:
        wire = served.connect()
        await wire.send(post("/stream"))
        await wait()
        site.exchanges[0].send(Body(b"x" * 600_000))
        served.driver.pump()
        await wait()
        while read > 0:
            read -= len(await wire.stream.receive_some(min(read, 10_000)))
        await wire.stream.aclose()
        await wait()
        assert served.open == 0
    assert site.exchanges[0].gone_at is not None


async def test_h11_server_broken_stream_ends_the_exchange(caplog: pytest.LogCaptureFixture) -> None:
    """A reset by the peer is everyday life: the exchange ends without a log record."""
    ours, theirs = memory_pair()
    stream = trio.StapledStream(ours, ours)

    async def receive_some(max_bytes: int | None = None) -> bytes:
        data = bytes(await ours.receive_some(max_bytes))
        if not data:
            raise trio.BrokenResourceError("reset by peer")
        return data

    stream.receive_some = receive_some  # type: ignore[method-assign]
    site = FakeRouter()
    async with serving(site) as served:
        served.connect(stream)
        await theirs.send_all(post("/later"))
        await wait()
        await theirs.aclose()
        await wait()
        assert served.open == 0
    assert site.exchanges[0].gone_at is not None
    assert caplog.records == []


# -- Deadlines -----------------------------------------------------------------------------------


async def open_seconds(wire: HttpWire) -> tuple[float, bytes]:
    """Return after how many seconds the connection ends, and the bytes sent on it."""
    received = await wire.rest()
    return round(trio.current_time(), 6), received


async def test_h11_server_silent_connection_is_closed(autojump_clock: MockClock) -> None:
    async with serving(FakeRouter()) as served:
        assert await open_seconds(served.connect()) == (10, b"")


async def test_h11_server_time_of_a_session_without_streams_begins_with_the_disconnect(
    autojump_clock: MockClock,
) -> None:
    """It ends although nothing else happens: the router's next deadline is nearer now."""
    site = LastStream()
    async with serving(site) as served:
        wire = served.connect()
        await wire.send(post("/stream"))
        await trio.sleep(300)
        await wire.stream.aclose()
        await trio.sleep(100)
        assert site.times == [360]


async def test_h11_server_idle_connection_is_closed(autojump_clock: MockClock) -> None:
    async with serving(FakeRouter()) as served:
        wire = served.connect()
        await trio.sleep(9)
        await wire.ask(post())
        await trio.sleep(59)
        await wire.ask(post())
        assert await open_seconds(wire) == (9 + 59 + 60, b"")


@pytest.mark.parametrize("first", [False, True])
async def test_h11_server_slow_head_gets_408(first: bool, autojump_clock: MockClock) -> None:
    """One byte a second is the slowloris attack; each byte must not restart the 10 seconds."""
    async with serving(FakeRouter()) as served:
        wire = served.connect()
        if not first:
            await wire.ask(post())

        async def drip() -> None:
            for byte in b"POST /echo HTTP/1.1\r\nhost: localhost\r\n":
                await wire.send(bytes([byte]))
                await trio.sleep(1)

        served.nursery.start_soon(drip)
        answer = await wire.answer()
        assert (answer.status, answer.headers[b"connection"]) == (408, b"close")
        assert trio.current_time() == pytest.approx(10)
        served.nursery.cancel_scope.cancel()


@pytest.mark.parametrize("framed", [False, True])
async def test_h11_server_missing_body_gets_408(framed: bool, autojump_clock: MockClock) -> None:
    site = FakeRouter()
    async with serving(site) as served:
        wire = served.connect()
        await wire.send(post("/echo", b"5\r\n", CHUNKED) if framed else post(body=b"x" * 100)[:-1])
        answer = await wire.answer()
        assert (answer.status, answer.headers[b"connection"]) == (408, b"close")
        assert trio.current_time() == pytest.approx(30)
        assert await ended(wire)
        assert site.exchanges[0].gone_at == 30


@pytest.mark.parametrize(("a_second", "arrives"), [(1_100, True), (900, False)])
async def test_h11_server_slow_body_needs_minimum_progress(
    a_second: int, arrives: bool, autojump_clock: MockClock
) -> None:
    """A slow line may take long, but below 1 KiB a second the body is refused after 30 s."""
    async with serving(FakeRouter()) as served:
        wire = served.connect()
        body = b"x" * a_second * 100
        request = post(body=body)
        await wire.send(request[: -len(body)])

        async def drip() -> None:
            for start in range(0, len(body), a_second):
                await trio.sleep(1)
                await wire.send(body[start : start + a_second])

        async with trio.open_nursery() as nursery:
            nursery.start_soon(drip)
            answer = await wire.answer()
            nursery.cancel_scope.cancel()
        assert answer.status == (200 if arrives else 408)
        assert trio.current_time() == pytest.approx(100 if arrives else 30)


@pytest.mark.parametrize("framed", [False, True])
@pytest.mark.parametrize(("size", "seconds"), [(30 * KIB - 1, 30), (30 * KIB, 60)])
async def test_h11_server_progress_of_a_body_counts_once(
    size: int, seconds: int, framed: bool, autojump_clock: MockClock
) -> None:
    """Enough bytes in the first 30 seconds give 30 more. Those of the last request give none."""
    async with serving(FakeRouter()) as served:
        wire = served.connect()
        await wire.ask(post(body=b"x" * 40 * KIB))
        request = post("/echo", b"%x\r\n" % 10**9, CHUNKED) if framed else post(body=bytes(10**5))
        start = request.index(b"\r\n\r\n") + 4
        await wire.send(request[:start])
        await trio.sleep(29)
        await wire.send(request[start:].ljust(size, b"x")[:size])
        assert (await wire.answer()).status == 408
        assert trio.current_time() == seconds


async def test_h11_server_handler_has_no_timeout(autojump_clock: MockClock) -> None:
    site = FakeRouter()
    async with serving(site) as served:
        wire = served.connect()
        for _ in range(2):
            await wire.send(post("/later") + b"POST")  # the next head has started
            await trio.sleep(10_000)
            site.exchanges[-1].send(Head(204, []), End())
            served.driver.pump()
            assert (await wire.answer()).status == 204
            await wire.ask(post()[4:])


@pytest.mark.parametrize("takes", [0, 100_000])
async def test_h11_server_unread_response_closes_the_connection(
    takes: int, autojump_clock: MockClock
) -> None:
    """Without progress for 30 seconds it is closed, while another connection is served."""
    site = FakeRouter()

    def answer(exchange: FakeExchange) -> None:
        exchange.send(Head(200, []), Body(b"x" * 1_000_000), End())

    site.on_complete = answer
    async with serving(site) as served:
        wire, other = served.connect(), served.connect()
        await wire.send(post("/large"))
        while takes > 0:
            takes -= len(await wire.stream.receive_some(takes))
        for _ in range(29):
            await trio.sleep(1)
            site.on_complete = None
            assert (await other.ask(post(body=b"hello"))).body == b"hello"
        assert served.open == 2
        await trio.sleep(1.1)
        assert served.open == 1


async def test_h11_server_slow_reader_with_progress_continues(autojump_clock: MockClock) -> None:
    """It reads 10 kB a second: a total timeout would cut it off after a third."""
    site = FakeRouter()

    def answer(exchange: FakeExchange) -> None:
        exchange.send(Head(200, []), Body(b"x" * 1_000_000), End())

    site.on_complete = answer
    async with serving(site) as served:
        wire = served.connect()
        await wire.send(post("/large"))
        size = 0
        while size < 1_000_000:
            await trio.sleep(1)
            size += len(await wire.stream.receive_some(10_000))
        assert trio.current_time() > 99
        assert served.open == 1


async def test_h11_server_unread_event_stream_is_ended(autojump_clock: MockClock) -> None:
    site = FakeRouter()
    async with serving(site) as served:
        wire, other = served.connect(), served.connect()
        await wire.send(post("/stream"))
        await wait()
        stream = site.exchanges[0]
        for _ in range(40):
            stream.send(Body(b"x" * 10_000))
            served.driver.pump()
            assert (await other.ask(post(body=b"hello"))).body == b"hello"
            await trio.sleep(1)
        assert stream.gone_at == pytest.approx(36, abs=10)
        assert served.open == 1


# -- Internal errors -----------------------------------------------------------------------------


@pytest.mark.parametrize("target", ["/fault", "/fault-later", "/bad-header"])
async def test_h11_server_internal_error_is_logged_and_closes_one_connection(
    target: str, caplog: pytest.LogCaptureFixture
) -> None:
    async with serving(FakeRouter()) as served:
        other = served.connect()
        await other.ask(post())
        answer = await served.connect().ask(post(target, b"hello"))
        assert (answer.status, answer.headers[b"connection"]) == (500, b"close")
        assert (await other.ask(post(body=b"hello"))).body == b"hello"
    (record,) = caplog.records
    assert record.levelno == logging.ERROR
    assert record.exc_info is not None


async def test_h11_server_internal_error_within_a_response_truncates_it(
    autojump_clock: MockClock, caplog: pytest.LogCaptureFixture
) -> None:
    """The status is already sent, so only the missing last chunk can tell the client."""
    site = FakeRouter()
    async with serving(site) as served:
        wire = served.connect()
        await wire.send(post("/stream"))
        await wait()

        def fail() -> list[Any]:
            raise ZeroDivisionError

        site.exchanges[0].actions_to_send = fail  # type: ignore[method-assign]
        site.exchanges[0].send(Body(b"x"))
        served.driver.pump()
        received = await wire.rest()
        assert received.startswith(b"HTTP/1.1 200 OK\r\n")
        assert received.endswith(b"\r\n\r\n")
        assert not received.endswith(b"0\r\n\r\n")
        await wire.stream.aclose()
        await wait()
        assert served.open == 0
    assert len(caplog.records) == 1
    assert served.access_log == [AccessLogEntry("POST", "/stream", 200, 0, 0)]


@pytest.mark.parametrize("fails", ["receive_some", "send_all"])
async def test_h11_server_failing_stream_ends_its_connection(
    fails: str, caplog: pytest.LogCaptureFixture
) -> None:
    """A custom stream may raise anything: one log record, and the server goes on."""
    ours, theirs = memory_pair()

    async def fail(*_: Any) -> bytes:
        await trio.lowlevel.checkpoint()
        raise ZeroDivisionError

    stream = trio.StapledStream(ours, ours)
    setattr(stream, fails, fail)
    async with serving(FakeRouter()) as served:
        served.connect(stream)
        await theirs.send_all(post())
        await wait()
        assert served.open == 0
    assert len(caplog.records) == 1
    await theirs.aclose()


@pytest.mark.parametrize("how", ["goes", "is late", "is cancelled"])
async def test_h11_server_failing_disconnect_is_logged(
    how: str, autojump_clock: MockClock, caplog: pytest.LogCaptureFixture
) -> None:
    """The cleanup itself raises, on each path to it, and the connection still closes."""

    def fail(now: float) -> None:
        raise ZeroDivisionError

    site = FakeRouter()
    async with serving(site) as served:
        other, wire = served.connect(), served.connect()
        await other.ask(post())
        await wire.send(post("/later", b"hello")[:-1])
        await wait()
        site.exchanges[1].disconnected = fail  # type: ignore[method-assign]
        if how == "goes":
            await wire.stream.aclose()
        elif how == "is late":
            assert await wire.rest() == b""
        else:
            served.nursery.cancel_scope.cancel()
        with trio.CancelScope(shield=True):
            await wait()
            if how != "is cancelled":
                assert (await other.ask(post())).status == 200
            assert served.open == (0 if how == "is cancelled" else 1)
    assert len(caplog.records) == 1


# -- Access log ----------------------------------------------------------------------------------


async def test_h11_server_access_log_has_every_exchange(autojump_clock: MockClock) -> None:
    """Each line has status, seconds and bytes; a client that left has the status 0."""
    site = FakeRouter()
    async with serving(site) as served:
        wire = served.connect()
        await wire.ask(post("/echo?q", b"hello"))
        await wire.send(post("/stream"))
        await trio.sleep(5)
        site.exchanges[1].mcp_method = "tools/call"
        site.exchanges[1].send(Body(b"one"), Body(b"three"), End())
        served.driver.pump()
        await wire.answer()
        await wire.ask(post("/refuse", b"hello")[:-1])
        await trio.sleep(10)
        gone = served.connect()
        await gone.send(post("/later"))
        await trio.sleep(2)
        await gone.stream.aclose()
        await wait()
        await served.connect().ask(post("/fault-later"))
    assert served.access_log == [
        AccessLogEntry("POST", "/echo?q", 200, 0, 5),
        AccessLogEntry("POST", "/stream", 200, 5, 8, "tools/call"),
        AccessLogEntry("POST", "/refuse", 403, 1, 2),
        AccessLogEntry("POST", "/later", 0, 2, 0),
        AccessLogEntry("POST", "/fault-later", 500, 0, 0),
    ]


async def test_h11_server_access_log_callback_may_fail(caplog: pytest.LogCaptureFixture) -> None:
    def fail(entry: AccessLogEntry) -> None:
        raise ZeroDivisionError

    async with serving(FakeRouter()) as served:
        wire = served.connect()
        served.connections[0]._on_exchange = fail
        assert (await wire.ask(post())).status == 200
        assert (await wire.ask(post())).status == 200
    assert len(caplog.records) == 2
