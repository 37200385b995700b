"""Hostile input to an HTTP/2 server: invalid frames and floods. Other clients are not affected."""

from __future__ import annotations

import logging
from contextlib import suppress

import pytest
import trio
import trio.testing
from hpack import Encoder
from hypothesis import given
from hypothesis import strategies as st

from mcp_core.http import Body, End, Head
from mcp_core.http.wire._http2_frames import PREFACE
from tests.harness.wire.http1_client import FakeRouter
from tests.harness.wire.http2_client import CANCEL, answering, asking, given_up, h2_serving
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
    PRIORITY,
    PUSH_PROMISE,
    RST_STREAM,
    SETTINGS,
    block,
    frame,
    number,
    post,
    setting,
    window,
)
from tests.levels import fewer_examples, long

MockClock = trio.testing.MockClock
wait = trio.testing.wait_all_tasks_blocked

KIB = 1024
WHOLE = END_HEADERS | END_STREAM
NO_ERROR, PROTOCOL, INTERNAL, FLOW_CONTROL, STREAM_CLOSED, FRAME_SIZE = 0, 1, 2, 3, 5, 6
REFUSED, CALM = 7, 11


# -- Invalid frames ------------------------------------------------------------------------------

HEAD = [
    (b":method", b"POST"),
    (b":scheme", b"http"),
    (b":authority", b"localhost"),
    (b":path", b"/echo"),
]


def head(*headers: tuple[bytes, bytes], without: bytes = b"") -> bytes:
    return frame(
        HEADERS, WHOLE, 1, block([each for each in HEAD if each[0] != without] + list(headers))
    )


# The bytes behind the preface, and the error code of the connection.
ENDS = {
    "no settings": (PREFACE + asking(1), PROTOCOL),
    "another protocol": (b"GET / HTTP/1.1\r\nhost: localhost\r\n\r\n", PROTOCOL),
    "half a preface": (PREFACE[:10] + b"x", PROTOCOL),
    "a large frame": (HELLO + frame(DATA, 0, 1, length=16_385), FRAME_SIZE),
    "the largest frame there is": (HELLO + frame(HEADERS, 0, 1, length=2**24 - 1), FRAME_SIZE),
    "an even stream": (HELLO + asking(2), PROTOCOL),
    "stream zero": (HELLO + asking(0), PROTOCOL),
    "a stream twice": (HELLO + asking(3) + asking(1), PROTOCOL),
    "a continuation of nothing": (HELLO + frame(CONTINUATION, END_HEADERS, 1, b"x"), PROTOCOL),
    "something within a head": (
        HELLO + frame(HEADERS, 0, 1, b"x") + frame(PING, 0, 0, bytes(8)),
        PROTOCOL,
    ),
    "data of nobody": (HELLO + frame(DATA, 0, 1, b"x"), PROTOCOL),
    "a push": (HELLO + frame(PUSH_PROMISE, END_HEADERS, 1, number(2) + block(HEAD)), PROTOCOL),
    "an HPACK bomb": (
        HELLO
        + frame(HEADERS, WHOLE, 1, bytes(Encoder().encode([*HEAD, *[(b"x", b"v" * 3900)] * 20]))),
        CALM,
    ),
    "a head without an end": (
        HELLO + frame(HEADERS, 0, 1, b"") + frame(CONTINUATION, 0, 1, bytes(16_384)) * 5,
        CALM,
    ),
    "padding longer than the frame": (HELLO + post(1) + frame(DATA, 0x08, 1, b"\x05ab"), PROTOCOL),
    "a window that grows by nothing": (HELLO + window(0, 0), PROTOCOL),
    "a window that grows too large": (HELLO + window(0, 2**31 - 1), FLOW_CONTROL),
    "first windows that are too large": (
        HELLO + frame(SETTINGS, 0, 0, setting(4, 2**31)),
        FLOW_CONTROL,
    ),
    "frames that are to be too large": (HELLO + frame(SETTINGS, 0, 0, setting(5, 2**24)), PROTOCOL),
    "goaway for a stream": (HELLO + frame(GOAWAY, 0, 1, bytes(8)), PROTOCOL),
    "a ping of seven bytes": (HELLO + frame(PING, 0, 0, bytes(7)), FRAME_SIZE),
    "a ping for a stream": (HELLO + frame(PING, 0, 1, bytes(8)), PROTOCOL),
}


@pytest.mark.parametrize(("frames", "code"), ENDS.values(), ids=ENDS)
async def test_h2_server_connection_error_ends_the_connection(
    frames: bytes, code: int, autojump_clock: MockClock
) -> None:
    site = FakeRouter()
    async with h2_serving(site) as served:
        wire = served.connect()
        await wire.send(frames)
        assert await wire.end() == code
        await wire.stream.aclose()
        await wait()
        assert not served.open
    assert site.exchanges == []  # nothing of what is read in one piece with the error is served


async def test_h2_server_connection_error_disconnects_open_exchanges(
    autojump_clock: MockClock,
) -> None:
    site = FakeRouter()
    async with h2_serving(site) as served:
        wire = served.connect()
        await wire.send(HELLO + post(1, b"/stream") + post(3, b"/stream"))
        await wait()
        assert [exchange.gone_at for exchange in site.exchanges] == [None, None]
        await wire.send(frame(PING, 0, 0, bytes(7)))
        assert await wire.end() == FRAME_SIZE
        await wire.stream.aclose()
        await wait()
        assert not served.open
    assert [exchange.gone_at is not None for exchange in site.exchanges] == [True, True]


# Bytes of one request on stream 1, and the error code of that stream. Other streams continue.
RESETS = {
    "no path": (head(without=b":path"), PROTOCOL),
    "no method": (head(without=b":method"), PROTOCOL),
    "no authority": (head(without=b":authority"), PROTOCOL),
    "two paths": (head((b":path", b"/")), PROTOCOL),
    "a pseudo-header of answers": (head((b":status", b"200")), PROTOCOL),
    "a pseudo-header behind the others": (
        head((b"x", b"y"), (b":path", b"/"), without=b":path"),
        PROTOCOL,
    ),
    "extended connect": (head((b":protocol", b"websocket")), PROTOCOL),
    "upper case": (head((b"X", b"y")), PROTOCOL),
    "a line end in a value": (head((b"x", b"a\r\nb: c")), PROTOCOL),
    "a NUL in a value": (head((b"x", b"a\0")), PROTOCOL),
    "connection": (head((b"connection", b"keep-alive")), PROTOCOL),
    "transfer-encoding": (head((b"transfer-encoding", b"chunked")), PROTOCOL),
    "upgrade": (head((b"upgrade", b"h2c")), PROTOCOL),
    "te": (head((b"te", b"gzip")), PROTOCOL),
    "another host": (head((b"host", b"other.example")), PROTOCOL),
    "trailers with a path": (
        post(1) + frame(DATA, 0, 1, b"x") + frame(HEADERS, WHOLE, 1, block([(b":path", b"/")])),
        PROTOCOL,
    ),
    "a body longer than it was to be": (
        asking(1, b"12345", b"/echo", (b"content-length", b"4")),
        PROTOCOL,
    ),
    "a body shorter than it was to be": (
        asking(1, b"123", b"/echo", (b"content-length", b"4")),
        PROTOCOL,
    ),
    "no body where there was to be one": (head((b"content-length", b"1")), PROTOCOL),
    "a body that was to be none": (asking(1, b"1", b"/echo", (b"content-length", b"0")), PROTOCOL),
    "a short body with trailers": (
        post(1, b"/echo", (b"content-length", b"2"))
        + frame(DATA, 0, 1, b"x")
        + frame(HEADERS, WHOLE, 1, block([(b"x", b"y")])),
        PROTOCOL,
    ),
    "a second head": (
        asking(1, b"", b"/later") + frame(HEADERS, WHOLE, 1, block(HEAD)),
        STREAM_CLOSED,
    ),
    "a window that grows too large": (post(1, b"/later") + window(1, 2**31 - 1), FLOW_CONTROL),
}


@pytest.mark.parametrize(("frames", "code"), RESETS.values(), ids=RESETS)
async def test_h2_server_stream_error_ends_its_stream_only(frames: bytes, code: int) -> None:
    site = FakeRouter()
    async with h2_serving(site) as served:
        wire = await served.meet()
        await wire.send(frames)
        answer = await wire.answer(1)
        assert (answer.status, answer.reset) == (0, code)
        await wire.send(frame(DATA, END_STREAM, 1, b"too late"))
        assert (await wire.ask(3, b"the next")).body == b"the next"
    assert all(exchange.over or exchange.gone_at is not None for exchange in site.exchanges)


async def test_h2_server_wrong_body_length_after_the_response_resets() -> None:
    async with h2_serving(FakeRouter()) as served:
        wire = await served.meet()
        await wire.send(post(1, b"/refuse", (b"content-length", b"4")))
        assert (await wire.answer(1)).status == 403
        await wire.send(frame(DATA, END_STREAM, 1, b"x"))
        assert (await wire.ask(3, b"the next")).body == b"the next"
        assert wire.answers[1].reset == PROTOCOL


REFUSALS = {
    "a long value": (head((b"x", b"v" * 8193)), 431),
    "too many headers": (head(*[(b"x", b"")] * 101), 431),
    "a long path": (head((b":path", b"/" + b"x" * 8192), without=b":path"), 414),
    "an expectation": (head((b"expect", b"a miracle")), 417),
    "a large body": (post(1, b"/echo", (b"content-length", b"1" * 19)), 413),
    "connect": (
        frame(HEADERS, WHOLE, 1, block([(b":method", b"CONNECT"), (b":authority", b"a:1")])),
        501,
    ),
    "what the site refuses": (asking(1, b"body", b"/refuse"), 403),
    "what the site hangs up on": (asking(1, b"body", b"/hang-up"), 413),
}


@pytest.mark.parametrize(("frames", "status"), REFUSALS.values(), ids=REFUSALS)
async def test_h2_server_rejected_head_gets_an_error_response(
    frames: bytes, status: int, autojump_clock: MockClock
) -> None:
    site = FakeRouter()
    async with h2_serving(site) as served:
        wire = await served.meet()
        await wire.send(frames)
        answer = await wire.answer(1)
        assert answer.status == status
        assert answer.body
        assert (await wire.ask(3, b"the next")).body == b"the next"


async def test_h2_server_body_of_declared_length_with_trailers_is_accepted() -> None:
    async with h2_serving(FakeRouter()) as served:
        wire = await served.meet()
        await wire.send(
            post(1, b"/echo", (b"content-length", b"3")),
            frame(DATA, 0, 1, b"ab"),
            frame(DATA, 0, 1, b"c"),
            frame(HEADERS, WHOLE, 1, block([(b"x", b"y")])),
        )
        assert (await wire.answer(1)).body == b"abc"
        await wire.send(asking(3, b"", b"/echo", (b"content-length", b"0")))
        assert (await wire.answer(3)).body == b""


async def test_h2_server_oversized_head_gets_431() -> None:
    async with h2_serving(FakeRouter()) as served:
        wire = await served.meet()
        fields = block([*HEAD, *[(b"x", b"v" * 8000)] * 5])
        pieces = [fields[start : start + 16_384] for start in range(0, len(fields), 16_384)]
        await wire.send(frame(HEADERS, END_STREAM, 1, pieces[0]))
        await wire.send(
            *[frame(CONTINUATION, 0, 1, piece) for piece in pieces[1:]],
            frame(CONTINUATION, END_HEADERS, 1),
        )
        assert (await wire.answer(1)).status == 431
        assert (await wire.ask(3, b"the next")).body == b"the next"


# -- Floods --------------------------------------------------------------------------------------

PINGS = frame(PING, 0, 0, bytes(8))


FLOODS = {
    "pings": [PINGS] * 20_000,
    "settings": [frame(SETTINGS)] * 20_000,
    "settings that change much": [
        frame(SETTINGS, 0, 0, setting(4, size)) for size in range(20_000)
    ],
    "empty data": [post(1)] + [frame(DATA, 0, 1)] * 20_000,
    "crumbs of data": [post(1)] + [frame(DATA, 0, 1, b"x")] * 20_000,
    "data behind the end": [asking(1), *[frame(DATA, 0, 1, b"x")] * 20_000],
    "long data behind the end": [asking(1), *[frame(DATA, 0, 1, bytes(100))] * 20_000],
    "ends behind the end": [asking(1), *[frame(DATA, END_STREAM, 1)] * 20_000],
    "ends of a refused call": [post(1, b"/refuse"), *[frame(DATA, END_STREAM, 1, b"x")] * 20_000],
    "heads behind a reset": [given_up(1), *[frame(HEADERS, WHOLE, 1, block(HEAD))] * 20_000],
    "heads behind our reset": [
        post(1, b"no path", flags=WHOLE),
        *[frame(HEADERS, WHOLE, 1, block([(b"x", b"y")]))] * 20_000,
    ],
    "windows": [window(0, 1)] * 20_000,
    "windows of a stream": [post(1), *[window(1, 1)] * 20_000],
    "priorities": [frame(PRIORITY, 0, 1, number(3) + b"\x10")] * 20_000,
    "what nobody knows": [frame(0x42)] * 20_000,
    "continuations": [frame(HEADERS, 0, 1), *[frame(CONTINUATION, 0, 1)] * 20_000],
    "calls that are given up": [given_up(id) for id in range(1, 40_001, 2)],
    "calls that are none": [post(id, b"no path", flags=WHOLE) for id in range(1, 40_001, 2)],
    "calls with too much of a body": [
        asking(id, b"1", b"/echo", (b"content-length", b"0")) for id in range(1, 40_001, 2)
    ],
    "calls that overflow their window": [
        post(id) + window(id, 2**31 - 1) for id in range(1, 40_001, 2)
    ],
    "calls that are too many": [post(id, b"/later") for id in range(1, 40_001, 2)],
}


@pytest.mark.parametrize("together", [long(1), 1_000])
@pytest.mark.parametrize("frames", FLOODS.values(), ids=FLOODS)
async def test_h2_server_flood_ends_the_connection_early(
    frames: list[bytes], together: int, autojump_clock: MockClock
) -> None:
    """ENHANCE_YOUR_CALM ends each flood before it costs many handlers or much output."""
    site = FakeRouter()
    async with h2_serving(site) as served:
        wire = served.connect()
        codes: list[int | None] = []
        ended = trio.Event()

        async def read() -> None:
            codes.append(await wire.end())
            ended.set()

        served.nursery.start_soon(read)
        await wire.send(HELLO)
        try:
            for start in range(0, len(frames), together):
                await wire.send(*frames[start : start + together])
                if codes:
                    break
                await wait()
        except trio.BrokenResourceError:
            pass
        await ended.wait()
        assert codes == [CALM]
        assert len(site.exchanges) <= 101
        assert len(wire.frames) <= 2_000
        await wire.stream.aclose()
        await wait()
        assert not served.open
    assert all(exchange.over or exchange.gone_at is not None for exchange in site.exchanges)


async def test_h2_server_flood_in_one_write_is_parsed_in_part() -> None:
    async with h2_serving(FakeRouter()) as served:
        wire = await served.meet()
        await wire.send(*[frame(HEADERS, WHOLE, id, b"\x84") for id in range(1, 10_001, 2)])
        assert await wire.end() == CALM
        assert wire.frames[-1].kind == GOAWAY
        assert wire.frames[-1].number < 2_000  # the last stream that was processed


async def test_h2_server_resets_of_a_working_client_are_allowed() -> None:
    async with h2_serving(FakeRouter()) as served:
        wire = await served.meet()
        ids = range(1, 40_001, 2)
        for id in ids[:800:2]:
            await wire.send(given_up(id), asking(id + 2, b"one"))
            assert (await wire.answer(id + 2)).body == b"one"
        await wire.send(*[given_up(id) for id in ids[800:900]])
        assert (await wire.ask(ids[900], b"more")).body == b"more"


async def test_h2_server_concurrent_streams_are_limited() -> None:
    site = FakeRouter()
    async with h2_serving(site) as served:
        wire = await served.meet()
        await wire.send(*[asking(id, b"", b"/later") for id in range(1, 203, 2)])
        assert (await wire.answer(201)).reset == REFUSED
        assert len(site.exchanges) == 100
        site.exchanges[0].send(Head(204, []), End())
        served.driver.pump()
        assert (await wire.answer(1)).status == 204
        assert (await wire.ask(203, b"room")).body == b"room"


# -- Random frames -------------------------------------------------------------------------------

IDS = st.sampled_from([1, 1, 3, 5, 7, 9, 0, 2])
PATHS = st.sampled_from(
    [b"/echo", b"/later", b"/stream", b"/refuse", b"/nothing", b"/large", b"bad"]
)
FRAMES = st.one_of(
    st.builds(
        lambda id, path, flags: post(id, path, flags=flags),
        IDS,
        PATHS,
        st.sampled_from([WHOLE, WHOLE, END_HEADERS]),
    ),
    st.builds(
        lambda id, size, flags: frame(DATA, flags, id, bytes(size)),
        IDS,
        st.integers(0, 16_384),
        st.integers(0, 1),
    ),
    st.builds(window, IDS, st.sampled_from([1, 100, 70_000, 2**31 - 1])),
    st.builds(lambda id: frame(RST_STREAM, 0, id, number(CANCEL)), IDS),
    st.builds(
        lambda key, value: frame(SETTINGS, 0, 0, setting(key, value)),
        st.integers(1, 8),
        st.integers(0, 70_000),
    ),
    st.builds(lambda id: frame(HEADERS, WHOLE, id, block([(b"x", b"y")])), IDS),
    st.builds(frame, st.integers(0, 12), st.integers(0, 255), IDS, st.binary(max_size=20)),
    st.just(frame(SETTINGS, ACK)),
    st.just(frame(GOAWAY, 0, 0, bytes(8))),
    st.binary(max_size=30),
)


@fewer_examples(5)
@given(st.lists(FRAMES, max_size=25), st.integers(1, 40_000), st.booleans())
def test_h2_server_random_frames_leave_nothing_behind(
    frames: list[bytes], size: int, stops: bool
) -> None:
    """Any frames, split anywhere: no internal error, and no stream or buffer is left."""
    sent = HELLO + b"".join(frames)
    faults: list[str] = []

    class LogRecords(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            faults.append(record.getMessage())

    async def main() -> None:
        site = answering(200_000)
        async with h2_serving(site) as served:
            wire = served.connect()

            async def read() -> None:
                with suppress(trio.ClosedResourceError):
                    await wire.end()

            served.nursery.start_soon(read)
            with suppress(trio.BrokenResourceError):
                for start in range(0, len(sent), size):
                    await wire.send(sent[start : start + size])
            await wait()
            for exchange in site.exchanges:
                if (
                    exchange.head.target in (b"/later", b"/stream")
                    and not exchange.over
                    and not exchange.reading
                ):
                    exchange.send(
                        Body(b"x" * 10_000), End()
                    ) if exchange.head.target == b"/stream" else exchange.send(Head(204, []), End())
            served.driver.pump()
            if stops:
                served.connections[0].shutdown()
            await trio.sleep(200)
            await wire.stream.aclose()
            await wait()
            assert not served.open
            connection = served.connections[0]
            kept = (
                connection._streams,
                connection._ready,
                connection._unsent,
                connection._open_bodies,
                connection._stream_deadlines,
            )
            assert not any(kept)
            assert not connection._drain_deadlines
            assert connection._body_bytes == 0
        assert all(exchange.over or exchange.gone_at is not None for exchange in site.exchanges)

    ears = LogRecords(logging.WARNING)
    logging.getLogger("mcp_trio").addHandler(ears)
    try:
        trio.run(main, clock=MockClock(autojump_threshold=0))
    finally:
        logging.getLogger("mcp_trio").removeHandler(ears)
    assert faults == []
