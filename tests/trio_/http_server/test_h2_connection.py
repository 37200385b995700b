"""An HTTP/2 server connection: reading, writing, timeouts. The router behind it is a fake."""

from __future__ import annotations

import logging
from contextlib import suppress

import pytest
import trio
import trio.testing

from mcp_core.http import Body, End, Head
from mcp_core.http.wire._http2_frames import PREFACE
from mcp_trio import memory_pair
from mcp_trio.http_server._connection import AccessLogEntry
from mcp_trio.http_server._h2_connection import H2ServerConnection
from tests.harness.wire.http1_client import FakeExchange, FakeRouter, LastStream
from tests.harness.wire.http2_client import CANCEL, H2Wire, answering, asking, given_up, h2_serving
from tests.harness.wire.http2_frames import (
    ACK,
    DATA,
    END_HEADERS,
    END_STREAM,
    GOAWAY,
    HEADERS,
    HELLO,
    PING,
    PRIORITY,
    RST_STREAM,
    SETTINGS,
    WINDOW_UPDATE,
    FrameReader,
    block,
    frame,
    number,
    post,
    setting,
    window,
)

MockClock = trio.testing.MockClock
wait = trio.testing.wait_all_tasks_blocked

KIB = 1024
WHOLE = END_HEADERS | END_STREAM
NO_ERROR, PROTOCOL, INTERNAL, FLOW_CONTROL, STREAM_CLOSED, FRAME_SIZE = 0, 1, 2, 3, 5, 6
REFUSED = 7


# -- Requests and responses ----------------------------------------------------------------------


async def test_h2_server_answers_requests_on_one_connection() -> None:
    site = FakeRouter()
    async with h2_serving(site) as served:
        wire = await served.meet()
        for id, body in (1, b"one"), (3, b""), (5, b"x" * 16_384), (7, b"four"):
            answer = await wire.ask(id, body)
            assert (answer.status, answer.body, answer.reset) == (200, body, None)
            assert answer.headers[b"content-type"] == b"text/plain"
            assert answer.headers[b"content-length"] == b"%d" % len(body)
            assert answer.headers[b"date"].endswith(b" GMT")
        assert repr(served.connections[0]) == "<H2ServerConnection, 0 streams>"
    assert [exchange.body for exchange in site.exchanges] == [b"one", b"", b"x" * 16_384, b"four"]
    assert repr(served.connections[0]) == "<H2ServerConnection, closing>"


async def test_h2_server_passes_the_request_head() -> None:
    """`:authority` becomes host, and split cookie fields are joined as RFC 9113 says."""
    site = FakeRouter()
    async with h2_serving(site) as served:
        wire = await served.meet()
        await wire.send(
            asking(
                1,
                b"",
                b"/echo?a=b",
                (b"x-name", b"Value"),
                (b"cookie", b"a=b"),
                (b"cookie", b"c=d"),
            )
        )
        await wire.answer(1)
    head = site.exchanges[0].head
    assert (head.method, head.target) == (b"POST", b"/echo?a=b")
    assert head.headers == [
        (b"host", b"localhost"),
        (b"x-name", b"Value"),
        (b"cookie", b"a=b; c=d"),
    ]
    assert repr(site.exchanges[0].token).startswith("<H2ServerStream 1, ")


async def test_h2_server_passes_the_address_and_the_version() -> None:
    """The first bytes may have been read before, to find out which protocol the client uses."""
    site = FakeRouter()
    async with h2_serving(site) as served:
        ours, theirs = memory_pair()
        connection = H2ServerConnection(served.driver, ours, None, HELLO[:9], "192.0.2.1")
        served.nursery.start_soon(connection.serve)
        wire = H2Wire(theirs)
        await wire.send(HELLO[9:])
        assert (await wire.ask(1, b"body")).body == b"body"
    (exchange,) = site.exchanges
    assert (exchange.address, exchange.may_upgrade) == ("192.0.2.1", False)
    assert exchange.http_version == "2"


@pytest.mark.parametrize("size", [1, 7, 10_000])
async def test_h2_server_concurrent_requests_in_any_chunks(size: int) -> None:
    sent = HELLO + asking(1, b"one") + asking(3, b"two") + asking(5) + asking(7, b"four")
    async with h2_serving(FakeRouter()) as served:
        wire = served.connect()
        for start in range(0, len(sent), size):
            await wire.send(sent[start : start + size])
        assert [(await wire.answer(id)).body for id in (1, 3, 5, 7)] == [
            b"one",
            b"two",
            b"",
            b"four",
        ]


async def test_h2_server_responses_leave_in_order_of_completion() -> None:
    site = FakeRouter()
    async with h2_serving(site) as served:
        wire = await served.meet()
        await wire.send(asking(1, b"", b"/later"), asking(3, b"", b"/later"))
        assert (await wire.ask(5, b"at once")).body == b"at once"
        for id, exchange in (3, site.exchanges[1]), (1, site.exchanges[0]):
            exchange.send(Head(200, []), Body(b"at last"), End())
            served.driver.pump()
            assert (await wire.answer(id)).body == b"at last"


async def test_h2_server_event_stream_is_sent_piece_by_piece() -> None:
    site = FakeRouter()
    async with h2_serving(site) as served:
        wire = await served.meet()
        await wire.send(asking(1, b"", b"/stream"))
        await wire.until(HEADERS, 1, END_HEADERS)
        for piece in b"one", b"two":
            site.exchanges[0].send(Body(piece))
            served.driver.pump()
            assert (await wire.until(DATA, 1)).payload == piece
        site.exchanges[0].send(End())
        served.driver.pump()
        assert (await wire.until(DATA, 1, END_STREAM)).payload == b""
        assert wire.answers[1].body == b"onetwo"


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [(b"POST", b"/nothing", 204), (b"HEAD", b"/echo", 200), (b"HEAD", b"/large", 200)],
)
async def test_h2_server_response_without_body_has_none(
    method: bytes, path: bytes, status: int
) -> None:
    """Its stream ends with the head. To end it once more would be an error, and reset it."""
    site = FakeRouter()
    site.on_complete = lambda exchange: (
        exchange.send(Head(200, []), Body(b"x" * 100), End())
        if exchange.head.target == b"/large"
        else None
    )
    async with h2_serving(site) as served:
        wire = await served.meet()
        await wire.send(post(1, path, flags=WHOLE, method=method))
        answer = await wire.answer(1)
        assert (answer.status, answer.body) == (status, b"")
        assert (await wire.ask(3, b"and on")).body == b"and on"
        await wire.settle()
        assert wire.answers[1].reset is None


async def test_h2_server_drops_connection_headers() -> None:
    site = FakeRouter()
    headers = [(b"connection", b"close"), (b"keep-alive", b"timeout=5"), (b"X-Kept", b"y")]
    site.on_complete = lambda exchange: exchange.send(Head(200, headers), End())
    async with h2_serving(site) as served:
        answer = await (await served.meet()).ask(1, b"", b"/any")
        assert set(answer.headers) == {b"x-kept", b"date"}


async def test_h2_server_trailers_end_the_body() -> None:
    site = FakeRouter()
    async with h2_serving(site) as served:
        wire = await served.meet()
        await wire.send(
            post(1), frame(DATA, 0, 1, b"body"), frame(HEADERS, WHOLE, 1, block([(b"x", b"y")]))
        )
        assert (await wire.answer(1)).body == b"body"


async def test_h2_server_expect_continue_is_answered() -> None:
    site = FakeRouter()
    async with h2_serving(site) as served:
        wire = await served.meet()
        await wire.send(post(1, b"/echo", (b"expect", b"100-continue")))
        await wire.until(HEADERS, 1, END_HEADERS)
        assert wire.informed == [(1, 100)]
        await wire.send(frame(DATA, 0, 1, b""))  # asks for nothing again
        await wire.send(frame(DATA, END_STREAM, 1, b"body"))
        assert (await wire.answer(1)).body == b"body"
        await wire.send(post(3, b"/refuse", (b"expect", b"100-continue")))
        assert (await wire.answer(3)).status == 403
        await wire.send(asking(5, b"body", b"/echo", (b"expect", b"100-continue")))
        assert (await wire.answer(5)).status == 200
        assert wire.informed == [(1, 100)]


async def test_h2_server_padding_and_priority_are_ignored() -> None:
    """Browsers still send both, and an unknown frame type must be ignored too."""
    async with h2_serving(FakeRouter()) as served:
        wire = await served.meet()
        fields = block(
            [
                (b":method", b"POST"),
                (b":scheme", b"http"),
                (b":authority", b"a"),
                (b":path", b"/echo"),
            ]
        )
        await wire.send(
            frame(PRIORITY, 0, 5, number(0) + b"\x10"),
            frame(
                HEADERS, END_HEADERS | 0x28, 1, b"\x03" + number(5) + b"\x10" + fields + bytes(3)
            ),
            frame(DATA, END_STREAM | 0x08, 1, b"\x04body" + bytes(4)),
            frame(0x42, 0xFF, 1, b"what nobody knows"),
        )
        assert (await wire.answer(1)).body == b"body"


# -- Windows for sending -------------------------------------------------------------------------


async def test_h2_server_response_follows_the_windows() -> None:
    """Both the stream's and the connection's window count, and no frame exceeds 16,384 bytes."""
    site = answering(300_000)
    async with h2_serving(site) as served:
        wire = await served.meet()
        await wire.send(asking(1, b"", b"/large"))
        await wire.settle()
        assert len(wire.answers[1].body) == 65_535
        await wire.send(window(1, 100_000))
        await wire.settle()
        assert len(wire.answers[1].body) == 65_535  # the window of the connection is used up
        await wire.send(window(0, 50_000))
        await wire.settle()
        assert len(wire.answers[1].body) == 115_535
        assert (await wire.ask(3)).status == 200  # a response without body needs no window
        await wire.send(window(0, 2**30), window(1, 2**30))
        assert len((await wire.answer(1)).body) == 300_000
        sizes = [len(each.payload) for each in wire.frames if each.kind == DATA]
        assert max(sizes) == 16_384


async def test_h2_server_response_follows_window_settings() -> None:
    """A changed initial window applies to open streams, and may make theirs negative."""
    async with h2_serving(answering(100_000)) as served:
        wire = served.connect()
        await wire.send(PREFACE, frame(SETTINGS, 0, 0, setting(4, 0)), asking(1, b"", b"/large"))
        await wire.until(HEADERS, 1, END_HEADERS)
        await wire.settle()
        assert wire.answers[1].body == b""
        await wire.send(frame(SETTINGS, 0, 0, setting(4, 1_000)))
        await wire.settle()
        assert len(wire.answers[1].body) == 1_000
        await wire.send(
            frame(SETTINGS, 0, 0, setting(4, 10)), window(1, 500)
        )  # the window is negative now
        await wire.settle()
        assert len(wire.answers[1].body) == 1_000
        await wire.send(window(1, 600))
        await wire.settle()
        assert len(wire.answers[1].body) == 1_110


async def test_h2_server_output_is_pulled_after_the_last_was_sent(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The handler's next output stays in the exchange, where backpressure can see it."""
    site = FakeRouter()
    async with h2_serving(site) as served:
        taken: list[FakeExchange] = []
        monkeypatch.setattr(served.driver, "output_sent", taken.append)
        wire = await served.meet()
        await wire.send(asking(1, b"", b"/stream"))
        await wire.until(HEADERS, 1, END_HEADERS)
        exchange = site.exchanges[0]
        assert taken == [exchange]  # a head needs no window
        exchange.send(Body(b"a" * 100_000))
        served.driver.pump()
        await wire.settle()
        exchange.send(Body(b"b" * 100_000))
        served.driver.pump()
        await wire.settle()
        assert taken == [exchange]
        assert [len(action.data) for action in exchange._actions if isinstance(action, Body)] == [
            100_000
        ]
        await wire.send(window(0, 2**20), window(1, 40_000))
        await wire.settle()
        assert taken == [exchange] * 2
        assert wire.answers[1].body == b"a" * 100_000 + b"b" * 5_535
        assert not exchange._actions


async def test_h2_server_unread_responses_do_not_block_others(autojump_clock: MockClock) -> None:
    """One client opens 99 streams without a window: they time out, and its other calls succeed."""
    site = answering(100_000)
    async with h2_serving(site) as served:
        wire = served.connect()
        # The window of each stream is 0.
        await wire.send(PREFACE, frame(SETTINGS, 0, 0, setting(4, 0)))
        await wire.send(*[asking(id, b"", b"/large") for id in range(1, 199, 2)])
        for id in range(199, 219, 2):
            await trio.sleep(1)
            await wire.send(asking(id, b"quick"), window(id, 5))
            assert (await wire.answer(id)).body == b"quick"
        await trio.sleep(30)
        await wire.settle()
        for id in range(1, 199, 2):
            assert (wire.answers[id].reset, wire.answers[id].body) == (CANCEL, b"")
        await wire.send(asking(221, b"and on"), window(221, 6))
        assert (await wire.answer(221)).body == b"and on"
        assert all(exchange.over for exchange in site.exchanges)


@pytest.mark.parametrize("piece", [1, 30 * KIB - 1, 30 * KIB])
async def test_h2_server_slow_reader_needs_minimum_progress(
    piece: int, autojump_clock: MockClock
) -> None:
    """Tiny window updates are a known attack; 1 KiB a second is enough to go on."""
    site = answering(1_000_000)
    async with h2_serving(site) as served:
        wire = await served.meet()
        await wire.send(asking(1, b"", b"/large"), asking(3, b"", b"/later"))
        await wire.settle()
        for _ in range(40):
            await trio.sleep(29)
            await wire.send(window(0, piece), window(1, piece))
            await wire.settle()
        answer = await wire.answer(1)
        if piece == 30 * KIB:
            assert len(answer.body) == 1_000_000
        else:
            assert answer.reset == CANCEL
            assert len(answer.body) == 65_535 + piece
        assert site.exchanges[1].gone_at is None


async def test_h2_server_unread_stream_is_reset_after_a_timeout(
    autojump_clock: MockClock,
) -> None:
    site = FakeRouter()
    async with h2_serving(site) as served:
        wire = await served.meet()
        await wire.send(asking(1, b"", b"/stream"))
        await wire.until(HEADERS, 1, END_HEADERS)
        start = trio.current_time()
        site.exchanges[0].send(Body(b"x" * 65_536))
        served.driver.pump()
        assert (await wire.answer(1)).reset == CANCEL
        assert site.exchanges[0].gone_at == start + 30
        assert [(entry.status, entry.size) for entry in served.access_log] == [(200, 65_536)]


async def test_h2_server_event_stream_that_is_read_late_has_no_timeout_any_more(
    autojump_clock: MockClock,
) -> None:
    """The deadline of what was unread would reset a stream that only has nothing to send."""
    site = FakeRouter()
    async with h2_serving(site) as served:
        wire = await served.meet()
        await wire.send(asking(1, b"", b"/stream"))
        await wire.until(HEADERS, 1, END_HEADERS)
        site.exchanges[0].send(Body(b"x" * 65_536))
        served.driver.pump()
        await trio.sleep(20)
        await wire.send(window(0, 1_000), window(1, 1_000))
        await wire.settle()
        assert len(wire.answers[1].body) == 65_536
        await trio.sleep(100)
        site.exchanges[0].send(Body(b"y"), End())
        served.driver.pump()
        answer = await wire.answer(1)
        assert (answer.body[65_536:], answer.reset) == (b"y", None)


async def test_h2_server_writes_at_most_256_kib_at_a_time() -> None:
    """The time for each write is limited, so a slow client must not get more at once."""
    writes: list[bytes] = []
    ours, theirs = memory_pair()
    stream = trio.StapledStream(ours, ours)

    async def send_all(data: bytes | bytearray | memoryview) -> None:
        writes.append(bytes(data))
        await ours.send_all(data)

    stream.send_all = send_all  # type: ignore[method-assign]
    async with h2_serving(answering(600_000)) as served:
        served.connect(stream)
        wire = H2Wire(theirs)
        await wire.send(PREFACE, frame(SETTINGS, 0, 0, setting(4, 2**30)), window(0, 2**30))
        await wire.settle()
        writes.clear()
        await wire.send(asking(1, b"", b"/large"))
        await wire.answer(1)
        reader = FrameReader()
        sizes = [
            sum(len(each.payload) for each in reader.feed(data) if each.kind == DATA)
            for data in writes
        ]
        # With the frames' own headers it is a little more, and the last frame leaves by itself.
        assert sizes == [240 * KIB, 16 * KIB, 240 * KIB, 16 * KIB, 600_000 - 512 * KIB]
        await theirs.aclose()


async def test_h2_server_large_responses_take_turns() -> None:
    async with h2_serving(answering(150_000)) as served:
        wire = served.connect()
        await wire.send(PREFACE, frame(SETTINGS, 0, 0, setting(4, 2**20)), window(0, 2**20))
        await wire.send(asking(1, b"", b"/large"), asking(3, b"", b"/large"), asking(5, b"quick"))
        for id in 1, 3, 5:
            await wire.answer(id)
        streams = [each.stream for each in wire.frames if each.kind == DATA]
        assert streams[:5] == [1, 3, 5, 1, 3]


async def test_h2_server_client_that_reads_nothing_is_disconnected(
    autojump_clock: MockClock,
) -> None:
    site = answering(1_000_000)
    async with h2_serving(site) as served:
        wire = served.connect()
        await wire.send(PREFACE, frame(SETTINGS, 0, 0, setting(4, 2**20)), window(0, 2**20))
        await wire.send(asking(1, b"", b"/large"), asking(3, b"", b"/later"))
        await trio.sleep(29)
        assert served.open == 1
        await trio.sleep(2)
        assert served.open == 0
        assert site.exchanges[1].gone_at == 30


# -- Windows for receiving -----------------------------------------------------------------------


def room_given(wire: H2Wire, stream: int) -> int:
    return sum(
        each.number for each in wire.frames if (each.kind, each.stream) == (WINDOW_UPDATE, stream)
    )


async def test_h2_server_opens_the_window_of_the_connection_to_a_mebibyte() -> None:
    async with h2_serving(FakeRouter()) as served:
        wire = served.connect()
        await wire.send(HELLO)
        await wire.settle()
        assert room_given(wire, 0) == 1024 * KIB - 65_535


async def test_h2_server_long_body_gets_window_updates() -> None:
    """The body exceeds both windows many times, and at most 256 KiB are granted ahead."""
    site = FakeRouter()
    async with h2_serving(site) as served:
        wire = await served.meet()
        await wire.send(post(1))
        room, sent = 65_535, 0
        while sent < 1_500_000:
            size = min(16_384, room - sent)
            assert size > 0
            await wire.send(frame(DATA, 0, 1, b"x" * size))
            sent += size
            await wire.settle()
            room = 65_535 + room_given(wire, 1)
            assert room - sent <= 256 * KIB
        await wire.send(frame(DATA, END_STREAM, 1))
        await wait()
        assert len(site.exchanges[0].body) == sent
        assert room_given(wire, 0) >= sent - 1024 * KIB


async def test_h2_server_short_body_gets_no_window_update() -> None:
    async with h2_serving(FakeRouter()) as served:
        wire = await served.meet()
        for id in range(1, 11, 2):
            await wire.send(post(id), *[frame(DATA, 0, id, b"x" * 15_000)] * 2)
            await wire.settle()
            await wire.send(frame(DATA, END_STREAM, id))
            await wire.until(HEADERS, id, END_HEADERS)
        assert not any(each.kind == WINDOW_UPDATE for each in wire.frames)


async def test_h2_server_window_of_the_connection_is_refilled_when_half_is_used() -> None:
    """The windows of streams don't matter for it: each request has a stream of its own."""
    half = 512 * KIB
    async with h2_serving(FakeRouter()) as served:
        wire = await served.meet()
        for number in range(64):
            await wire.settle()
            assert room_given(wire, 0) == number // 32 * half
            id = 2 * number + 1
            await wire.send(asking(id, b"x" * (16 * KIB), b"/nothing"))
            await wire.answer(id)
        await wire.settle()
        assert room_given(wire, 0) == 2 * half


@pytest.mark.parametrize(
    "rest",
    [
        frame(DATA, END_STREAM, 1, b"x"),
        frame(HEADERS, WHOLE, 1, block([(b"x", b"y")])),
    ],
    ids=["data", "trailers"],
)
async def test_h2_server_rejected_body_gets_no_window_update(
    rest: bytes, autojump_clock: MockClock
) -> None:
    async with h2_serving(FakeRouter()) as served:
        wire = await served.meet()
        await wire.send(post(1, b"/refuse"), frame(DATA, 0, 1, b"x" * 10_000))
        answer = await wire.answer(1)
        assert (answer.status, answer.reset) == (403, None)
        await trio.sleep(0.5)
        await wire.send(rest)  # most clients read a response only now
        await wire.settle()
        assert repr(served.connections[0]) == "<H2ServerConnection, 0 streams>"
        assert wire.answers[1].reset is None
        assert room_given(wire, 1) == 0


@pytest.mark.parametrize("much", [True, False])
async def test_h2_server_rejected_body_is_drained_for_a_second(
    much: bool, autojump_clock: MockClock
) -> None:
    async with h2_serving(FakeRouter()) as served:
        wire = await served.meet()
        await wire.send(post(1, b"/refuse"), frame(DATA, 0, 1, b"x" * 10_000))
        await wire.until(DATA, 1, END_STREAM)
        start = trio.current_time()
        if much:
            await wire.send(frame(DATA, 0, 1, b"x" * 16_384), frame(DATA, 0, 1, b"x" * 16_384))
        assert (await wire.until(RST_STREAM, 1)).number == NO_ERROR
        assert trio.current_time() == start + 1
        assert room_given(wire, 1) == 0
        await wire.send(frame(DATA, END_STREAM, 1, b"too late"))
        assert (await wire.ask(3, b"the next")).body == b"the next"


async def test_h2_server_incomplete_bodies_are_limited_but_the_oldest(
    monkeypatch: pytest.MonkeyPatch, autojump_clock: MockClock
) -> None:
    """Once the memory is used up, the third body waits without a timeout until others end."""
    monkeypatch.setattr("mcp_trio.http_server._h2_connection._MAX_BODY_BYTES", 130_000)
    site = FakeRouter()
    async with h2_serving(site) as served:
        wire = await served.meet()
        for id in 1, 3, 5:
            await wire.send(post(id), *[frame(DATA, 0, id, b"x" * 16_000)] * 4)
            await wire.settle()
        assert [room_given(wire, id) > 0 for id in (1, 3, 5)] == [True, True, False]
        for _ in range(5):
            await trio.sleep(20)
            await wire.send(*[frame(DATA, 0, id, b"x" * 16_000) for id in (1, 3, 1, 3)])
            await wire.settle()
        assert not wire.answers  # the third stream has not timed out
        await wire.send(frame(DATA, END_STREAM, 1), frame(DATA, END_STREAM, 3))
        await wire.until(WINDOW_UPDATE, 5)
        await wire.send(post(7), *[frame(DATA, 0, 7, b"x" * 16_000)] * 4)
        await wire.until(WINDOW_UPDATE, 7)  # the memory of the others is free again
        await wire.send(*[frame(DATA, 0, 5, b"x" * 16_000)] * 2, frame(DATA, END_STREAM, 5))
        await wait()
        sizes = [len(exchange.body) for exchange in site.exchanges]
        assert sizes == [224_000, 224_000, 96_000, 64_000]


async def test_h2_server_body_beyond_the_window_is_a_connection_error(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("mcp_trio.http_server._h2_connection._MAX_BODY_BYTES", 0)
    async with h2_serving(FakeRouter()) as served:
        wire = await served.meet()
        await wire.send(post(1), post(3), *[frame(DATA, 0, 3, b"x" * 16_384)] * 3)
        await wire.settle()
        await wire.send(frame(DATA, 0, 3, b"x" * 16_384))
        assert await wire.end() == FLOW_CONTROL


# -- Deadlines -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "sent",
    [
        b"",
        PREFACE[:10],
        PREFACE,
        PREFACE + frame(SETTINGS)[:5],
        HELLO + post(1)[:20],
        HELLO + frame(HEADERS, 0, 1),
    ],
)
async def test_h2_server_missing_preface_or_head_is_closed_after_timeout(
    sent: bytes, autojump_clock: MockClock
) -> None:
    async with h2_serving(FakeRouter()) as served:
        wire = served.connect()
        if sent:
            await wire.send(sent)
        assert await wire.end() == NO_ERROR
        assert trio.current_time() == 10
        await wire.stream.aclose()
        await wait()
        assert not served.open


async def test_h2_server_later_head_times_out(autojump_clock: MockClock) -> None:
    async with h2_serving(FakeRouter()) as served:
        wire = await served.meet()
        await wire.ask(1)
        await trio.sleep(50)
        await wire.send(post(3)[:20])
        assert await wire.end() == NO_ERROR
        assert trio.current_time() == 60


async def test_h2_server_bytes_of_a_head_do_not_restart_its_timeout(
    autojump_clock: MockClock,
) -> None:
    async with h2_serving(FakeRouter()) as served:
        wire = await served.meet()
        await wire.ask(1)
        head = post(3)
        for second in range(10):
            await wire.send(head[second : second + 1])
            await trio.sleep(1)
        assert await wire.end() == NO_ERROR
        assert trio.current_time() == 10


async def test_h2_server_head_timeout_starts_with_the_head(autojump_clock: MockClock) -> None:
    site = FakeRouter()
    async with h2_serving(site) as served:
        wire = served.connect()
        later = asking(3, b"second")
        await wire.send(HELLO, asking(1, b"", b"/later"), later[:20])
        await trio.sleep(15)
        site.exchanges[0].send(Head(204, []), End())
        served.driver.pump()
        assert (await wire.answer(1)).status == 204
        await trio.sleep(9)
        await wire.send(later[20:])
        assert (await wire.answer(3)).body == b"second"


async def test_h2_server_response_at_the_deadline_does_not_end_the_connection(
    autojump_clock: MockClock,
) -> None:
    for _ in range(20):  # the order of tasks that wake at the same time is random in trio
        site = FakeRouter()
        async with h2_serving(site) as served:
            wire = await served.meet()
            await wire.send(asking(1, b"", b"/later"), post(3), frame(DATA, 0, 3, b"x"))
            await wait()
            await trio.sleep_until(served.connections[0]._deadline.when)
            site.exchanges[0].send(Head(204, []), End())
            served.driver.pump()
            assert (await wire.answer(1)).status == 204
            assert (await wire.answer(3)).status == 408


async def test_h2_server_time_of_a_session_without_streams_begins_with_the_disconnect(
    autojump_clock: MockClock,
) -> None:
    """It ends although nothing else happens: the router's next deadline is nearer now."""
    site = LastStream()
    async with h2_serving(site) as served:
        wire = await served.meet()
        await wire.send(asking(1, b"", b"/stream"))
        await trio.sleep(300)
        await wire.stream.aclose()
        await trio.sleep(100)
        assert site.times == [360]


async def test_h2_server_idle_connection_is_closed(autojump_clock: MockClock) -> None:
    async with h2_serving(FakeRouter()) as served:
        wire = await served.meet()
        await trio.sleep(50)
        await wire.ask(1)
        await wire.send(asking(3, b"", b"/later"))
        await trio.sleep(300)
        await wire.send(frame(RST_STREAM, 0, 3, number(CANCEL)))
        await wire.settle()
        start = trio.current_time()
        assert await wire.end() == NO_ERROR
        assert trio.current_time() == start + 60


@pytest.mark.parametrize("piece", [1_100, 900])
async def test_h2_server_slow_body_needs_minimum_progress(
    piece: int, autojump_clock: MockClock
) -> None:
    """Below 1 KiB a second, the stream gets 408 after 30 s; the other stream goes on."""
    site = FakeRouter()
    async with h2_serving(site) as served:
        wire = await served.meet()
        await wire.send(post(1), asking(3, b"", b"/later"))
        for _ in range(100):
            await trio.sleep(1)
            if 1 in wire.answers:
                break
            await wire.send(frame(DATA, 0, 1, b"x" * piece))
            await wire.settle()
        if piece < 1_024:
            assert wire.answers[1].status == 408
            assert site.exchanges[0].gone_at == pytest.approx(30)
        else:
            await wire.send(frame(DATA, END_STREAM, 1))
            assert (await wire.answer(1)).status == 200
        assert site.exchanges[1].gone_at is None


async def test_h2_server_late_body_ends_its_exchange_although_the_error_is_unread(
    autojump_clock: MockClock,
) -> None:
    site = FakeRouter()
    async with h2_serving(site) as served:
        wire = served.connect()
        await wire.send(PREFACE, frame(SETTINGS, 0, 0, setting(4, 0)), post(1))
        await wire.until(HEADERS, 1, END_HEADERS)
        assert (wire.answers[1].status, wire.answers[1].body) == (408, b"")
        assert (trio.current_time(), site.exchanges[0].gone_at) == (30, 30)
        await wire.send(window(1, 1_000))
        assert (await wire.answer(1)).body == b"The body of the request took too long.\n"


async def test_h2_server_body_that_is_wanted_no_more_gets_no_window_and_no_timeout(
    autojump_clock: MockClock,
) -> None:
    """The exchange stops reading in the middle, and its response takes long."""
    site = FakeRouter()
    async with h2_serving(site) as served:
        wire = await served.meet()
        await wire.send(post(1), frame(DATA, 0, 1, bytes(16_000)))
        await wire.settle()
        (exchange,) = site.exchanges
        exchange.reading = False
        await wire.send(*[frame(DATA, 0, 1, bytes(16_000))] * 2)
        await wire.settle()
        assert room_given(wire, 1) == 0
        assert served.connections[0]._body_bytes == 0
        await trio.sleep(100)
        await wire.settle()
        assert 1 not in wire.answers
        exchange.send(Head(403, []), Body(b"no"), End())
        served.driver.pump()
        assert (await wire.answer(1)).body == b"no"
        assert len(exchange.body) == 16_000


async def test_h2_server_progress_counts_once(autojump_clock: MockClock) -> None:
    """Bytes of the first 30 seconds give their stream 30 seconds more, and no others."""
    async with h2_serving(answering(1_000_000)) as served:
        wire = await served.meet()
        await wire.send(asking(1, b"", b"/large"), post(3), asking(5, b"", b"/later"))
        await trio.sleep(10)
        await wire.send(window(0, 40 * KIB), window(1, 40 * KIB))
        await wire.send(*[frame(DATA, 0, 3, b"x" * (16 * KIB))] * 3)
        await wire.settle()
        await trio.sleep(49)
        await wire.settle()
        assert (wire.answers[1].reset, 3 in wire.answers) == (None, False)
        await trio.sleep(2)
        await wire.send(window(0, KIB))
        await wire.settle()
        assert wire.answers[1].reset == CANCEL
        assert wire.answers[3].status == 408


# -- The end -------------------------------------------------------------------------------------


@pytest.mark.parametrize("much", [True, False])
async def test_h2_server_reads_on_for_a_second_after_an_error(
    much: bool, autojump_clock: MockClock
) -> None:
    """A closed socket would reset, and the client would not see why; 64 KiB are enough."""
    async with h2_serving(FakeRouter()) as served:
        wire = await served.meet()
        await wire.send(frame(DATA, 0, 0, b"x"))
        assert await wire.end() == PROTOCOL
        await wire.send(bytes(60_000))
        await wait()
        assert served.open
        if much:
            with suppress(trio.BrokenResourceError):
                await wire.send(bytes(6_000))
            await wait()
        else:
            await trio.sleep(1.1)
        assert not served.open


async def test_h2_server_handler_may_take_longer_than_the_body_before_it(
    autojump_clock: MockClock,
) -> None:
    site = FakeRouter()
    async with h2_serving(site) as served:
        wire = await served.meet()
        await wire.send(post(1, b"/later"), frame(DATA, 0, 1, b"in two "))
        await wire.settle()
        await wire.send(frame(DATA, END_STREAM, 1, b"pieces"))
        await trio.sleep(100)
        site.exchanges[0].send(Head(200, []), Body(b"done"), End())
        served.driver.pump()
        assert (await wire.answer(1)).body == b"done"


async def test_h2_server_unread_stream_that_is_reset_has_no_timeout_any_more(
    autojump_clock: MockClock,
) -> None:
    """The connection, which another stream keeps open, would reject a stream that is gone."""
    site = FakeRouter()
    async with h2_serving(site) as served:
        wire = await served.meet()
        await wire.send(asking(1, b"", b"/stream"), asking(3, b"", b"/later"))
        await wire.until(HEADERS, 1, END_HEADERS)
        site.exchanges[0].send(Body(b"x" * 65_536))
        served.driver.pump()
        await wire.settle()
        await wire.send(frame(RST_STREAM, 0, 1, number(CANCEL)))
        await trio.sleep(40)
        await wire.settle()
        assert wire.answers[1].reset is None
        site.exchanges[1].send(Head(204, []), End())
        served.driver.pump()
        assert (await wire.answer(3)).status == 204


async def test_h2_server_reset_disconnects_the_exchange(autojump_clock: MockClock) -> None:
    site = FakeRouter()
    async with h2_serving(site) as served:
        wire = await served.meet()
        await wire.send(asking(1, b"", b"/stream"), asking(3, b"", b"/later"), post(5))
        await wire.until(HEADERS, 1, END_HEADERS)
        await trio.sleep(7)
        await wire.send(*[frame(RST_STREAM, 0, id, number(CANCEL)) for id in (1, 3, 5)])
        await wire.settle()
        assert [exchange.gone_at for exchange in site.exchanges] == [7, 7, 7]
        for exchange in site.exchanges:
            exchange.send(Body(b"to nobody"))
        served.driver.pump()
        assert (await wire.ask(7, b"and on")).body == b"and on"
        assert [entry.status for entry in served.access_log] == [200, 0, 0, 200]


async def test_h2_server_request_reset_in_the_same_read_is_not_started() -> None:
    site = FakeRouter()
    async with h2_serving(site) as served:
        wire = await served.meet()
        await wire.send(given_up(1), asking(3, b"body"))
        assert (await wire.answer(3)).body == b"body"
    assert len(site.exchanges) == 1


@pytest.mark.parametrize("half", [True, False])
async def test_h2_server_disconnect_ends_all_exchanges(
    half: bool, autojump_clock: MockClock
) -> None:
    """Every handler learns it at once: even a half close ends HTTP/2."""
    site = FakeRouter()
    async with h2_serving(site) as served:
        wire = await served.meet()
        await wire.send(asking(1, b"", b"/stream"), asking(3, b"", b"/later"), post(5))
        await wire.until(HEADERS, 1, END_HEADERS)
        await trio.sleep(7)
        if half:
            await wire.stream.send_eof()  # type: ignore[attr-defined]
        else:
            await wire.stream.aclose()
        await wait()
        assert [exchange.gone_at for exchange in site.exchanges] == [7, 7, 7]
        assert not served.open
        assert served.connections[0]._body_bytes == 0


async def test_h2_server_disconnect_at_every_byte_of_request_leaves_nothing() -> None:
    sent = HELLO + post(1, b"/later") + frame(DATA, END_STREAM, 1, b"body")
    for size in range(0, len(sent) + 1, 3):
        site = FakeRouter()
        async with h2_serving(site) as served:
            wire = served.connect()
            if size:
                await wire.send(sent[:size])
            await wait()
            await wire.stream.aclose()
            await wait()
            assert not served.open
        assert all(exchange.gone_at is not None for exchange in site.exchanges)


async def test_h2_server_shutdown_sends_goaway_twice(autojump_clock: MockClock) -> None:
    """The ping between them covers requests under way, so no client loses one."""
    site = FakeRouter()
    async with h2_serving(site) as served:
        wire = await served.meet()
        await wire.send(asking(1, b"", b"/later"))
        await wait()
        served.connections[0].shutdown()
        first = await wire.until(GOAWAY)
        assert (first.number, first.payload[4:8]) == (2**31 - 1, bytes(4))
        ping = await wire.until(PING)
        # A request that crossed the first GOAWAY is answered.
        await wire.send(asking(3, b"crossed"), frame(PING, ACK, 0, ping.payload))
        assert (await wire.answer(3)).body == b"crossed"
        second = await wire.until(GOAWAY)
        assert (second.number, second.payload[4:8]) == (3, bytes(4))
        # A later one is refused, and can be sent elsewhere.
        await wire.send(asking(5, b"late"))
        assert (await wire.answer(5)).reset == REFUSED
        served.connections[0].shutdown()  # harmless
        site.exchanges[0].send(Head(204, []), End())
        served.driver.pump()
        assert (await wire.answer(1)).status == 204
        await wire.end()
        assert len(site.exchanges) == 2


async def test_h2_server_shutdown_twice_sends_the_last_stream_id() -> None:
    site = FakeRouter()
    async with h2_serving(site) as served:
        wire = await served.meet()
        await wire.send(asking(1, b"", b"/later"))
        await wait()
        served.connections[0].shutdown()
        served.connections[0].shutdown()
        assert [(await wire.until(GOAWAY)).number for _ in range(2)] == [2**31 - 1, 1]
        served.connections[0].shutdown()
        await wire.settle()
        assert not [each for each in wire.frames if each.kind == GOAWAY]


async def test_h2_server_shutdown_of_an_idle_connection_closes(autojump_clock: MockClock) -> None:
    async with h2_serving(FakeRouter()) as served:
        wire = await served.meet()
        await wire.ask(1)
        served.connections[0].shutdown()
        assert await wire.end() == NO_ERROR
        assert [each.number for each in wire.frames if each.kind == GOAWAY] == [1]
        await wire.stream.aclose()
        await wait()
        assert not served.open


@pytest.mark.parametrize("code", [NO_ERROR, INTERNAL])
async def test_h2_server_goaway_of_the_client_completes_its_requests(
    code: int, autojump_clock: MockClock
) -> None:
    site = FakeRouter()
    async with h2_serving(site) as served:
        wire = await served.meet()
        await wire.send(asking(1, b"", b"/later"), frame(GOAWAY, 0, 0, number(0) + number(code)))
        await trio.sleep(5)
        site.exchanges[0].send(Head(200, []), Body(b"at last"), End())
        served.driver.pump()
        assert (await wire.answer(1)).body == b"at last"
        assert await wire.end() == NO_ERROR
        assert trio.current_time() == 5


@pytest.mark.parametrize("announced", [False, True])
@pytest.mark.parametrize("payload", [b"leaving?", b"leaving!"])
async def test_h2_server_goaway_waits_for_the_answer_to_its_own_ping(
    announced: bool, payload: bytes
) -> None:
    """Another answer, or one to no ping at all, says nothing about the first GOAWAY."""
    site = FakeRouter()
    async with h2_serving(site) as served:
        wire = await served.meet()
        await wire.send(asking(1, b"", b"/later"))
        await wire.settle()
        if announced:
            served.connections[0].shutdown()
            await wire.until(GOAWAY)
        await wire.send(frame(PING, ACK, 0, payload))
        await wire.settle()
        ends = announced and payload == b"leaving?"
        assert any(each.kind == GOAWAY for each in wire.frames) is ends
        assert ((await wire.ask(3, b"body")).reset == REFUSED) is ends


async def test_h2_server_closes_after_the_maximum_of_requests(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("mcp_trio.http_server._h2_connection._MAX_REQUESTS", 3)
    async with h2_serving(FakeRouter()) as served:
        wire = await served.meet()
        for id in 1, 3:
            await wire.ask(id)
        await wire.send(asking(5, b"the last"))
        assert (await wire.answer(5)).body == b"the last"
        assert await wire.end() == NO_ERROR


# -- Internal errors -----------------------------------------------------------------------------


@pytest.mark.parametrize("path", [b"/fault", b"/fault-later", b"/bad-header"])
async def test_h2_server_internal_error_is_logged_and_ends_one_stream(
    path: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    site = FakeRouter()
    async with h2_serving(site) as served:
        wire = await served.meet()
        await wire.send(asking(1, b"", b"/later"))
        answer = await wire.ask(3, b"", path)
        assert (answer.status, answer.body) == (500, b"Internal error.\n")
        assert (await wire.ask(5, b"and on")).body == b"and on"
        site.exchanges[0].send(Head(200, []), Body(b"unharmed"), End())
        served.driver.pump()
        assert (await wire.answer(1)).body == b"unharmed"
    assert ["internal error" in record.message for record in caplog.records] == [True]


async def test_h2_server_internal_error_within_a_response_resets(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """HTTP/2 can end one stream with an error, so the connection is kept."""
    site = FakeRouter()
    async with h2_serving(site) as served:
        wire = await served.meet()
        await wire.send(asking(1, b"", b"/stream"))
        await wire.until(HEADERS, 1, END_HEADERS)

        def fail() -> None:
            raise ZeroDivisionError("a mistake of our own")

        site.exchanges[0].actions_to_send = fail  # type: ignore[method-assign,assignment]
        site.exchanges[0].send(Body(b"x"))
        served.driver.pump()
        assert (await wire.answer(1)).reset == INTERNAL
        assert site.exchanges[0].gone_at is not None
        assert (await wire.ask(3, b"and on")).body == b"and on"
    assert len(caplog.records) == 1


@pytest.mark.parametrize(
    "place", ["_receive", "_send_bodies", "_set_deadline", "_on_deadline", "_read"]
)
async def test_h2_server_internal_error_of_the_connection_ends_it(
    place: str,
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
    autojump_clock: MockClock,
) -> None:
    """Whichever part of our own code fails, other connections are served, and the log shows it."""
    site = FakeRouter()
    async with h2_serving(site) as served:
        wire, other = await served.meet(), await served.meet()
        await wire.send(post(1, b"/later"))
        await wait()

        def fail(*given: object) -> None:
            raise ZeroDivisionError("a mistake of our own")

        monkeypatch.setattr(served.connections[0], place, fail)
        if place == "_read":
            wire = served.connect()
            monkeypatch.setattr(served.connections[2], place, fail)
        else:
            await wire.send(asking(3, b"body"))
        code = await wire.end()
        assert code in (INTERNAL, None)
        await wire.stream.aclose()
        await wait()
        assert served.open == (2 if place == "_read" else 1)
        assert (await other.ask(1, b"and on")).body == b"and on"
    assert any("internal error" in record.message for record in caplog.records)


async def test_h2_server_access_log_has_every_exchange(autojump_clock: MockClock) -> None:
    async with h2_serving(FakeRouter()) as served:
        wire = await served.meet()
        await wire.ask(1, b"body")
        await wire.send(asking(3, b"", b"/later"))
        await trio.sleep(3)
        await wire.send(frame(RST_STREAM, 0, 3, number(CANCEL)))
        await wire.ask(5, b"", b"/refuse")
        await wire.send(post(7, b"no path", flags=END_HEADERS | END_STREAM))
        await wire.settle()
        assert served.access_log == [
            AccessLogEntry("POST", "/echo", 200, 0.0, 4),
            AccessLogEntry("POST", "/later", 0, 3.0, 0),
            AccessLogEntry("POST", "/refuse", 403, 0.0, 2),
        ]


async def test_h2_server_access_log_names_the_method_of_mcp() -> None:
    """Both for a complete response and for a request that the client has given up."""
    site = FakeRouter()
    async with h2_serving(site) as served:
        wire = await served.meet()
        for id in 1, 3:
            await wire.send(asking(id, b"", b"/later"))
            await wire.settle()
            site.exchanges[-1].mcp_method = "tools/call"
        site.exchanges[0].send(Head(204, []), End())
        served.driver.pump()
        await wire.answer(1)
        await wire.send(frame(RST_STREAM, 0, 3, number(CANCEL)))
        await wire.settle()
    assert [(entry.status, entry.rpc_method) for entry in served.access_log] == [
        (204, "tools/call"),
        (0, "tools/call"),
    ]


async def test_h2_server_access_log_callback_may_fail(caplog: pytest.LogCaptureFixture) -> None:
    def fail(entry: AccessLogEntry) -> None:
        raise ZeroDivisionError

    async with h2_serving(FakeRouter()) as served:
        wire = served.connect()
        served.connections[0]._on_exchange = fail
        await wire.meet()
        assert (await wire.ask(1, b"one")).body == b"one"
        assert (await wire.ask(3, b"two")).body == b"two"
    assert [(record.levelno, record.message) for record in caplog.records] == [
        (logging.ERROR, "on_exchange failed")
    ] * 2
