"""An HTTP/2 client connection over a memory pair. The test plays the server frame by frame.

Rates of frames are tested with `FrameWatch`, and heads with `response_head`. These tests only show
that the client uses them.
"""

from __future__ import annotations

import random
from typing import TYPE_CHECKING, Any

import pytest
import trio
import trio.testing
from h2.errors import ErrorCodes

from mcp_core import ConnectFailed, ConnectionLost
from mcp_core.http import Action, End, Head, NotProcessed, RequestHead
from mcp_trio import memory_pair
from mcp_trio.http_client._h2_connection import H2ClientConnection
from tests.harness.wire.http2_frames import (
    ACK,
    CONTINUATION,
    DATA,
    END_HEADERS,
    END_STREAM,
    GOAWAY,
    HEADERS,
    PING,
    PRIORITY,
    PUSH_PROMISE,
    RST_STREAM,
    SETTINGS,
    WINDOW_UPDATE,
    data,
    frame,
    go_away,
    number,
    ping,
    reset,
    settings,
    window,
)
from tests.harness.wire.http2_server import (
    FIRST_WINDOW,
    MAX_FRAME,
    MOST,
    OK,
    TABLE,
    H2Exchange,
    H2Play,
    H2Played,
    playing,
)
from tests.harness.world.waiting import PATIENCE, cancel_once_blocked
from tests.levels import long

if TYPE_CHECKING:
    from collections.abc import Callable


MockClock = trio.testing.MockClock
LAST = 2**31 - 1


# --- requests and responses ---------------------------------------------------------------------


async def test_h2_client_consecutive_requests() -> None:
    """Stream ids are odd and rise, and the server sees exactly the expected header fields."""
    async with playing() as play:
        for number in range(3):
            exchange, request = await play.receive_request()
            assert request.stream == 2 * number + 1
            assert request.fields == [
                (b":method", b"POST"),
                (b":scheme", b"https"),
                (b":authority", b"here"),
                (b":path", b"/mcp?a=b"),
                (b"content-length", b"2"),
            ]
            assert request.body == b"{}"
            await play.server.send(play.server.answer(request.stream))
            await exchange.ends()
            assert (exchange.status, exchange.text, exchange.whole, exchange.again) == (
                200,
                b"hello",
                True,
                True,
            )
            assert exchange.actions[0] == Head(200, [(b"content-type", b"application/json")])
            assert play.client.response_count == number + 1
        assert repr(play.client) == "<H2ClientConnection open, 0 streams, 3 responses>"
    assert repr(play.client) == "<H2ClientConnection over, 0 streams, 3 responses>"
    assert play.client.server_closed()


async def test_h2_client_before_it_is_open_takes_no_requests() -> None:
    ours, theirs = memory_pair()
    client = H2ClientConnection(ours, "http")
    assert (client.capacity, client.response_count, client.received) == (0, 0, False)
    assert client.server_closed()
    await ours.aclose()
    await theirs.aclose()


async def test_h2_client_aclose_sends_goaway() -> None:
    async with playing() as play:
        exchange, _ = await play.receive_request()
        async with trio.open_nursery() as closing:
            closing.start_soon(play.client.aclose)
            assert (await play.server.until(GOAWAY)).payload == bytes(8)
            assert await play.server.ended()
        assert str((await exchange.ends()).error) == LOST
        await play.client.aclose()  # it may be called again


async def test_h2_client_aclose_that_is_cancelled_ends_requests_at_once() -> None:
    async with playing() as play:
        exchange, _ = await play.receive_request()
        with trio.CancelScope() as scope:
            scope.cancel()
            await play.client.aclose()
        assert str((await exchange.ends()).error) == LOST


async def test_h2_client_secret_headers_are_never_indexed() -> None:
    async with playing() as play:
        sizes = []
        for _ in range(3):
            exchange = play.ask(
                b"", (b"authorization", b"Bearer abcdefgh"), (b"x-other", b"ijklmnopqrst")
            )
            first = await play.server.until(HEADERS)
            assert first.flags & END_STREAM
            sizes.append(len(first.payload))
            await play.server.send(play.server.answer(first.stream))
            await exchange.ends()
    # Headers of earlier requests take a byte or two, except for the token, which is sent each time.
    assert sizes[0] > sizes[1] == sizes[2] > len(b"Bearer abcdefgh") * 5 // 8


@pytest.mark.parametrize(
    "header",
    [
        (b"x", b"a\r\nb: c"),
        (b"x", b"a\0"),
        (b"x y", b"a"),
        (b"X", b"a"),
        (b"te", b"gzip"),
        (b":path", b"/"),
    ],
)
async def test_h2_client_invalid_request_does_not_affect_others(
    header: tuple[bytes, bytes],
) -> None:
    async with playing() as play:
        exchange = await play.ask(b"{}", header).ends()
        assert isinstance(exchange.error, ValueError)
        assert "cannot be sent over HTTP" in str(exchange.error)
        exchange, request = await play.receive_request()
        assert request.stream == 1
        await play.server.send(play.server.answer(1))
        assert (await exchange.ends()).text == b"hello"


async def test_h2_client_drops_connection_headers() -> None:
    async with playing() as play:
        play.ask(
            b"", (b"connection", b"close"), (b"keep-alive", b"timeout=5"), (b"te", b"trailers")
        )
        request = await play.server.request()
        assert [name for name, _ in request.fields] == [
            b":method",
            b":scheme",
            b":authority",
            b":path",
            b"te",
        ]


# Frames of the server on stream 1, and the result: status, body, whether it is complete.
ANSWERS: dict[str, tuple[Callable[[H2Played], bytes], tuple[int, bytes, bool]]] = {
    "no body": (lambda s: s.head(1, [(b":status", b"202")], end=True), (202, b"", True)),
    "a body": (lambda s: s.answer(1), (200, b"hello", True)),
    "pieces": (
        lambda s: s.head(1) + data(1, b"a") + data(1, b"") + data(1, b"b") + data(1, b"", end=True),
        (200, b"ab", True),
    ),
    "early hints": (
        lambda s: s.head(1, [(b":status", b"103")]) + s.answer(1),
        (200, b"hello", True),
    ),
    "trailers": (
        lambda s: s.head(1) + data(1, b"a") + s.head(1, [(b"x", b"y")], end=True),
        (200, b"a", True),
    ),
    "padding": (
        lambda s: s.head(1) + frame(DATA, END_STREAM | 8, 1, b"\x02a\0\0"),
        (200, b"a", True),
    ),
    "frames nobody knows": (lambda s: frame(0xB, 7, 1, b"x") + s.answer(1), (200, b"hello", True)),
    "a priority": (
        lambda s: frame(PRIORITY, 0, 1, bytes(4) + b"\x10") + s.answer(1),
        (200, b"hello", True),
    ),
    "other signs of life": (
        lambda s: ping() + settings((MOST, 5)) + window(0, 9) + s.answer(1),
        (200, b"hello", True),
    ),
    "reset behind its end": (lambda s: s.answer(1) + reset(1, 0), (200, b"hello", True)),
    "words to nobody": (lambda s: s.answer(1) + window(1, 5) + reset(1, 8), (200, b"hello", True)),
}


@pytest.mark.parametrize("name", ANSWERS)
async def test_h2_client_response_in_any_chunks(name: str) -> None:
    """Frames arrive whole or byte by byte, and the connection is usable afterwards."""
    frames, wanted = ANSWERS[name]
    for size in (100_000, 1):
        async with playing() as play:
            exchange, _ = await play.receive_request()
            words = frames(play.server)
            for start in range(0, len(words), size):
                await play.server.send(words[start : start + size])
                await trio.testing.wait_all_tasks_blocked()
            await exchange.ends()
            assert exchange.error is None
            assert (exchange.status, exchange.text, exchange.whole) == wanted
            assert play.client.capacity
            # The connection can be used again.
            exchange, request = await play.receive_request()
            await play.server.send(play.server.answer(request.stream))
            assert (await exchange.ends()).text == b"hello"


BROKEN = "the server broke off its answer"
NO_HTTP2 = "the server's answer is not HTTP/2: "
NO_HEAD = "the head of the server's answer is invalid"
CUT = "the server closed the connection in the middle of its answer"
REFUSED = "the server refused to begin with the request"
OTHER_LENGTH = "the server's answer does not have its declared length"

# Errors of one response: the frames on stream 1, the error text, and the code of our reset, if any.
STREAM_FAULTS: dict[str, tuple[Callable[[H2Played], bytes], str, int | None]] = {
    "reset": (lambda s: reset(1, 2), f"{BROKEN} (INTERNAL_ERROR)", None),
    "reset midway": (
        lambda s: s.head(1) + data(1, b"he") + reset(1, 8),
        f"{BROKEN} (CANCEL)",
        None,
    ),
    "reset by a code nobody knows": (lambda s: reset(1, 99), f"{BROKEN} (error 99)", None),
    "calm": (lambda s: reset(1, 11), f"{BROKEN} (ENHANCE_YOUR_CALM)", None),
    "refused": (lambda s: reset(1, 7), REFUSED, None),
    "no status": (
        lambda s: s.head(
            1,
            [(b"x", b"y")],
        ),
        NO_HEAD,
        1,
    ),
    "two of them": (lambda s: s.head(1, [(b":status", b"200")] * 2), NO_HEAD, 1),
    "a word for one": (lambda s: s.head(1, [(b":status", b"okay")]), NO_HEAD, 1),
    "an upper case": (lambda s: s.head(1, [*OK, (b"X", b"y")]), NO_HEAD, 1),
    "a line break": (lambda s: s.head(1, [*OK, (b"x", b"a\r\nb")]), NO_HEAD, 1),
    "about one connection": (lambda s: s.head(1, [*OK, (b"connection", b"close")]), NO_HEAD, 1),
    "a long value": (lambda s: s.head(1, [*OK, (b"x", b"y" * 10_000)]), NO_HEAD, 1),
    "a body that is too long": (
        lambda s: s.head(1, [*OK, (b"content-length", b"4")]) + data(1, b"he") + data(1, b"llo"),
        OTHER_LENGTH,
        1,
    ),
    "a body that is too short": (
        lambda s: s.head(1, [*OK, (b"content-length", b"6")]) + data(1, b"hello", end=True),
        OTHER_LENGTH,
        None,
    ),
    "a body that is not there": (
        lambda s: s.head(1, [*OK, (b"content-length", b"1")], end=True),
        OTHER_LENGTH,
        None,
    ),
}


@pytest.mark.parametrize("name", STREAM_FAULTS)
async def test_h2_client_error_in_one_response_does_not_affect_others(name: str) -> None:
    """A stream error resets one stream; only a refused one counts as not processed."""
    frames, text, code = STREAM_FAULTS[name]
    async with playing() as play:
        exchange, _ = await play.receive_request()
        other, beside = await play.receive_request()
        await play.server.send(frames(play.server))
        await exchange.ends()
        assert text in str(exchange.error)
        assert isinstance(exchange.error, NotProcessed) is (text == REFUSED)
        assert not exchange.whole
        if code is not None:
            assert int.from_bytes((await play.server.until(RST_STREAM, 1)).payload, "big") == code
        # Late frames are ignored.
        await play.server.send(window(1, 5), play.server.answer(beside.stream))
        assert (await other.ends()).text == b"hello"
        assert play.client.capacity


# Connection errors: the frames, the error text, and the code of our GOAWAY.
CONNECTION_FAULTS: dict[str, tuple[Callable[[H2Played], bytes], str, int]] = {
    "a push": (
        lambda s: frame(PUSH_PROMISE, END_HEADERS, 1, (2).to_bytes(4, "big") + s.head(1)[9:]),
        NO_HTTP2,
        1,
    ),
    "data on no stream": (lambda s: data(0, b"x"), NO_HTTP2, 1),
    "data on a stream that nobody has opened": (lambda s: data(7, b"x"), NO_HTTP2, 1),
    "a long frame": (lambda s: b"\x00\x40\x01\x00\x00\x00\x00\x00\x01", NO_HTTP2, 6),
    "a very long frame": (lambda s: b"\xff" * 9, NO_HTTP2, 6),
    "a short SETTINGS": (lambda s: frame(SETTINGS, payload=b"abc"), NO_HTTP2, 6),
    "a window of 2^31": (lambda s: window(0, LAST), NO_HTTP2, 3),
    "a first window of 2^31": (lambda s: settings((FIRST_WINDOW, 2**31)), NO_HTTP2, 3),
    "no more than a window": (lambda s: window(0, 0), NO_HTTP2, 1),
    "a head that is cut by another": (
        lambda s: frame(HEADERS, 0, 1, b"\x88") + ping(),
        NO_HTTP2,
        1,
    ),
    "a continuation of nothing": (
        lambda s: frame(CONTINUATION, END_HEADERS, 1, b"\x88"),
        NO_HTTP2,
        1,
    ),
    "many continuations": (
        lambda s: frame(HEADERS, 0, 1, b"\x88") + frame(CONTINUATION, 0, 1, b"") * 20,
        NO_HTTP2,
        11,
    ),
    "a head that nobody can read": (
        lambda s: frame(HEADERS, END_HEADERS, 1, b"\xff" * 20),
        NO_HTTP2,
        1,
    ),
    "a bomb": (
        lambda s: (
            s.head(1, [(b"x", b"y" * 4000)]) + frame(HEADERS, END_HEADERS, 3, b"\xbe" * 16_000)
        ),
        NO_HTTP2,
        11,
    ),
    "a flood of PING": (lambda s: ping() * 300, NO_HTTP2, 11),
    "a flood of SETTINGS": (lambda s: settings() * 300, NO_HTTP2, 11),
    "a flood of nothing": (lambda s: s.head(1) + data(1, b"") * 300, NO_HTTP2, 11),
    "a flood of windows": (lambda s: window(0, 1) * 1_100, NO_HTTP2, 11),
    "a short GOAWAY": (lambda s: frame(GOAWAY, payload=bytes(7)), NO_HTTP2, 6),
    "a GOAWAY of a stream": (lambda s: frame(GOAWAY, 0, 1, bytes(8)), NO_HTTP2, 1),
}


@pytest.mark.parametrize("name", CONNECTION_FAULTS)
async def test_h2_client_connection_error_fails_all_requests(name: str) -> None:
    frames, text, code = CONNECTION_FAULTS[name]
    async with playing() as play:
        one, _ = await play.receive_request()
        other, _ = await play.receive_request()
        await play.server.send(frames(play.server))
        for exchange in one, other:
            await exchange.ends()
            assert str(exchange.error).startswith(text)
            assert not isinstance(exchange.error, NotProcessed)
        assert play.client.capacity == 0
        goaway = await play.server.until(GOAWAY)
        assert ErrorCodes(int.from_bytes(goaway.payload[4:8], "big")) == ErrorCodes(code)
        assert await play.server.ended()


async def test_h2_client_ping_flood_is_not_answered() -> None:
    """Once a flood is detected, nothing of it is answered."""
    async with playing() as play:
        await play.server.send(ping() * 100)
        for _ in range(100):
            assert (await play.server.until(PING, flags=ACK)).payload == b"12345678"
        await play.server.send(ping() * 200)
        assert await play.server.ended()
        assert not [each for each in play.server.frames if each.kind == PING]


@pytest.mark.parametrize("cancelled", [True, False])
async def test_h2_client_flood_on_a_closed_stream_ends_the_connection(cancelled: bool) -> None:
    """Some late frames are normal after a reset; more than 1,064 are an attack."""
    async with playing() as play:
        one, first = await play.receive_request()
        other, _ = await play.receive_request()
        if cancelled:
            one.scope.cancel()
            await play.server.until(RST_STREAM, first.stream)
        else:
            await play.server.send(play.server.answer(first.stream))
        await one.ends()
        # The server may not have seen the reset yet: 1,000 frames, and 64 for the ended stream.
        await play.server.send(data(first.stream, bytes(100)) * 1_064)
        await trio.testing.wait_all_tasks_blocked()
        assert play.client.capacity
        await play.server.send(data(first.stream, bytes(100)))
        assert str((await other.ends()).error).startswith(NO_HTTP2)
        goaway = await play.server.until(GOAWAY)
        assert int.from_bytes(goaway.payload[4:8], "big") == ErrorCodes.ENHANCE_YOUR_CALM
        assert await play.server.ended()


# --- concurrency --------------------------------------------------------------------------------


async def test_h2_client_two_hundred_requests_share_a_connection() -> None:
    """The answers come in reverse order, mixed with the data of 20 open event streams."""
    async with playing() as play:
        server = play.server
        streams = [await play.receive_request() for _ in range(20)]
        for _, request in streams:
            await server.send(
                server.head(request.stream, [*OK[:1], (b"content-type", b"text/event-stream")])
            )
        calls = [play.ask(b'{"number":%d}' % number) for number in range(200)]
        requests = [await server.request() for _ in calls]
        # They are answered in reverse order, with event stream data in between.
        for number, request in enumerate(reversed(requests)):
            event = data(streams[number % 20][1].stream, b"data: %d\n\n" % number)
            await server.send(event, server.answer(request.stream, request.body))
        for number, call in enumerate(calls):
            await call.ends()
            assert call.text == b'{"number":%d}' % number
            assert call.again
        await trio.testing.wait_all_tasks_blocked()
        for place, (stream, _) in enumerate(streams):
            assert stream.text == b"".join(b"data: %d\n\n" % each for each in range(place, 200, 20))
            assert not stream.over.is_set()
        assert repr(play.client) == "<H2ClientConnection open, 20 streams, 200 responses>"


async def test_h2_client_cancelled_request_resets_its_stream_only() -> None:
    """Frames that crossed the reset are no protocol error, and the other request goes on."""
    async with playing() as play:
        one, first = await play.receive_request()
        other, second = await play.receive_request()
        await play.server.send(play.server.head(first.stream), data(first.stream, b"he"))
        await trio.testing.wait_all_tasks_blocked()
        one.scope.cancel()
        await one.ends()
        assert one.error is None
        reset = await play.server.until(RST_STREAM, first.stream)
        assert int.from_bytes(reset.payload, "big") == ErrorCodes.CANCEL
        # Frames that crossed the reset are ignored.
        await play.server.send(
            data(first.stream, b"llo", end=True), play.server.answer(second.stream)
        )
        assert (await other.ends()).text == b"hello"
        assert one.text == b"he"
        assert play.client.capacity
        # Nothing is left of it for which a closing server had to be waited for.
        await play.server.send(go_away(LAST))
        assert await play.server.ended()


async def test_h2_client_exception_of_the_callback_fails_its_request_only() -> None:
    """A bug in one caller resets its stream, and other callers don't notice."""
    async with playing() as play:

        async def ask() -> None:
            def refuse(actions: list[Action]) -> None:
                raise ZeroDivisionError

            with pytest.raises(ZeroDivisionError):
                await play.client.run(RequestHead(b"GET", b"/", [(b"host", b"here")]), b"", refuse)

        play.nursery.start_soon(ask)
        request = await play.server.request()
        other, beside = await play.receive_request()
        await play.server.send(play.server.head(request.stream), play.server.answer(beside.stream))
        await play.server.until(RST_STREAM, request.stream)
        assert (await other.ends()).text == b"hello"


async def test_h2_client_data_of_cancelled_streams_replenishes_the_window() -> None:
    """Data of cancelled streams uses the connection's window, which must not run out."""
    async with playing() as play:
        exchange, request = await play.receive_request()
        await play.server.send(play.server.head(request.stream))
        await trio.testing.wait_all_tasks_blocked()
        exchange.scope.cancel()
        await exchange.ends()
        piece = data(request.stream, b"x" * 16_000)
        for _ in range(600):  # more than half of 16 MiB
            await play.server.send(piece)
        assert (
            int.from_bytes((await play.server.until(WINDOW_UPDATE, 0)).payload, "big")
            == 16 * 1024 * 1024 - 65_535
        )
        assert (
            int.from_bytes((await play.server.until(WINDOW_UPDATE, 0)).payload, "big") > 8_000_000
        )


@pytest.mark.parametrize("words", [b"HTTP/1.1 400 Bad Request", b"\x15\x03\x01"])
async def test_h2_client_body_that_looks_like_another_protocol_is_a_body(words: bytes) -> None:
    """Only the first bytes of the connection say what the server speaks."""
    async with playing() as play:
        exchange, request = await play.receive_request()
        frames = play.server.head(request.stream) + data(request.stream, words, end=True)
        for part in (frames[: -len(words)], words):
            await play.server.send(part)
            await trio.testing.wait_all_tasks_blocked()
        assert (await exchange.ends()).text == words


async def test_h2_client_window_is_replenished_while_reading() -> None:
    async with playing() as play:
        exchange, request = await play.receive_request()
        await play.server.send(play.server.head(request.stream))
        for _ in range(40):
            await play.server.send(data(request.stream, b"x" * 16_000))
        assert (
            int.from_bytes((await play.server.until(WINDOW_UPDATE, request.stream)).payload, "big")
            >= 524_288
        )
        await play.server.send(data(request.stream, b"", end=True))
        assert len((await exchange.ends()).text) == 640_000


# --- paused responses ---------------------------------------------------------------------------


async def send_data(play: H2Play, stream: int, size: int, *, of: int = 16_000) -> None:
    for _ in range(size // of):
        await play.server.send(data(stream, b"x" * of))


async def test_h2_client_paused_response_gets_no_window_until_resumed() -> None:
    """Only the connection's window is refilled, so one slow reader doesn't block the others."""
    async with playing() as play:
        exchange, request = await play.receive_request()
        exchange.pause = trio.Event()
        await play.server.send(play.server.head(request.stream))
        await trio.testing.wait_all_tasks_blocked()
        await send_data(play, request.stream, 992_000)  # nearly all of the 1 MiB of the window
        other, second = await play.receive_request()
        await play.server.send(play.server.answer(second.stream))
        assert (await other.ends()).text == b"hello"
        assert len(exchange.text) == 992_000
        updates = [found for found in play.server.frames if found.kind == WINDOW_UPDATE]
        assert {found.stream for found in updates} == {0}
        pause, exchange.pause = exchange.pause, None
        pause.set()
        extended = await play.server.until(WINDOW_UPDATE, request.stream)
        assert int.from_bytes(extended.payload, "big") == 992_000
        await play.server.send(data(request.stream, b"y", end=True))
        assert len((await exchange.ends()).text) == 992_001


async def test_h2_client_response_may_be_paused_again() -> None:
    """Each time its window is extended by what has arrived in this pause, at the end of it."""
    async with playing() as play:
        exchange, request = await play.receive_request()
        stream = request.stream
        pause = exchange.pause = trio.Event()
        await play.server.send(play.server.head(stream))
        for size in 160_000, 320_000:
            await trio.testing.wait_all_tasks_blocked()
            await send_data(play, stream, size)
            await play.server.send(ping())
            await play.server.until(PING, flags=ACK)
            assert not [
                each for each in play.server.frames if each.kind == WINDOW_UPDATE and each.stream
            ]
            before = pause
            pause = exchange.pause = trio.Event()
            before.set()
            extended = await play.server.until(WINDOW_UPDATE, stream)
            assert int.from_bytes(extended.payload, "big") == size
            await play.server.send(data(stream, b"x"))  # on which it is paused again
        exchange.pause = None
        pause.set()
        await trio.testing.wait_all_tasks_blocked()
        assert not exchange.over.is_set()
        await play.server.send(data(stream, b"", end=True))
        assert len((await exchange.ends()).text) == 480_002


async def test_h2_client_paused_responses_extend_the_window_of_the_connection() -> None:
    """Otherwise 16 of them would stop all others."""
    async with playing() as play:
        paused = []
        for _ in range(20):
            exchange, request = await play.receive_request()
            exchange.pause = trio.Event()
            await play.server.send(play.server.head(request.stream))
            await trio.testing.wait_all_tasks_blocked()
            paused.append(exchange)
            await send_data(play, request.stream, 992_000)
        await trio.testing.wait_all_tasks_blocked()
        extended = [found for found in play.server.frames if found.kind == WINDOW_UPDATE]
        assert {found.stream for found in extended} == {0}
        # The first 16 MiB were given at the start.
        assert sum(int.from_bytes(found.payload, "big") for found in extended) > 33_000_000
        assert {len(exchange.text) for exchange in paused} == {992_000}


async def test_h2_client_paused_response_that_fills_its_window_leaves_the_connection_its_own() -> (
    None
):
    async with playing() as play:
        exchange, request = await play.receive_request()
        exchange.pause = trio.Event()
        await play.server.send(play.server.head(request.stream))
        await trio.testing.wait_all_tasks_blocked()
        first = await play.server.until(WINDOW_UPDATE, 0)
        assert int.from_bytes(first.payload, "big") == 16 * 1024 * 1024 - 65_535
        await send_data(play, request.stream, 1024 * 1024, of=16_384)
        extended = await play.server.until(WINDOW_UPDATE, 0)
        assert int.from_bytes(extended.payload, "big") == 1024 * 1024


async def test_h2_client_paused_response_that_ends_is_complete_when_resumed() -> None:
    async with playing() as play:
        exchange, request = await play.receive_request()
        exchange.pause = trio.Event()
        await play.server.send(play.server.head(request.stream))
        await trio.testing.wait_all_tasks_blocked()
        await play.server.send(data(request.stream, b"hello", end=True))
        await trio.testing.wait_all_tasks_blocked()
        exchange.pause.set()
        assert (await exchange.ends()).text == b"hello"
        assert exchange.again


async def test_h2_client_paused_response_that_is_reset_is_connection_lost() -> None:
    async with playing() as play:
        exchange, request = await play.receive_request()
        exchange.pause = trio.Event()
        await play.server.send(play.server.head(request.stream), data(request.stream, b"x"))
        await trio.testing.wait_all_tasks_blocked()
        await play.server.send(reset(request.stream, ErrorCodes.CANCEL))
        await trio.testing.wait_all_tasks_blocked()
        exchange.pause.set()
        assert isinstance((await exchange.ends()).error, ConnectionLost)


async def test_h2_client_paused_response_can_be_cancelled() -> None:
    async with playing() as play:
        exchange, request = await play.receive_request()
        exchange.pause = trio.Event()
        await play.server.send(play.server.head(request.stream))
        await trio.testing.wait_all_tasks_blocked()
        exchange.scope.cancel()
        assert number(ErrorCodes.CANCEL) == (await play.server.until(RST_STREAM)).payload


# --- settings -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("settings", "room"),
    [
        ((), 256),
        (((MOST, 100),), 100),
        (((MOST, 1),), 1),
        (((MOST, 0),), 0),
        (((MOST, 9_999),), 256),
    ],
)
async def test_h2_client_capacity_follows_the_server_settings(
    settings: tuple[tuple[int, int], ...], room: int
) -> None:
    async with playing(*settings) as play:
        assert play.client.capacity == room


async def test_h2_client_connection_for_one_request_may_be_used_again() -> None:
    async with playing((MOST, 1)) as play:
        for _ in range(2):
            exchange, request = await play.receive_request()
            await play.server.send(play.server.answer(request.stream))
            assert (await exchange.ends()).again is True


async def test_h2_client_capacity_zero_completes_running_requests() -> None:
    async with playing((MOST, 100)) as play:
        exchange, request = await play.receive_request()
        await play.server.send(settings((MOST, 0)))
        await play.server.until(SETTINGS, flags=ACK)
        assert play.client.capacity == 0
        refused = await play.ask().ends()
        assert isinstance(refused.error, NotProcessed)
        await play.server.send(play.server.answer(request.stream))
        assert (await exchange.ends()).text == b"hello"
        assert exchange.again is False
        await play.server.send(settings((MOST, 7)))
        await play.server.until(SETTINGS, flags=ACK)
        assert play.client.capacity == 7


async def test_h2_client_header_table_is_limited() -> None:
    async with playing((TABLE, 1_000_000)) as play:
        assert play.client._http.encoder.header_table_size == 4096
        exchange, request = await play.receive_request()
        await play.server.send(play.server.answer(request.stream))
        assert (await exchange.ends()).whole


async def test_h2_client_exhausted_stream_ids_raise_not_processed() -> None:
    async with playing() as play:
        play.client._http.highest_outbound_stream_id = LAST - 2
        exchange, request = await play.receive_request()
        assert request.stream == LAST
        late = await play.ask().ends()
        assert isinstance(late.error, NotProcessed)
        assert play.client.capacity == 0
        await play.server.send(play.server.answer(LAST))
        assert (await exchange.ends()).whole
        assert exchange.again is False


async def test_h2_client_frame_size_follows_the_server_settings() -> None:
    body = b"x" * 40_000
    for chosen, sizes in (((), [16_384, 16_384, 7_232]), (((MAX_FRAME, 50_000),), [40_000])):
        async with playing(*chosen) as play:
            play.ask(body)
            found: list[int] = []
            while sum(found) < len(body):
                found.append(len((await play.server.until(DATA)).payload))
            assert found == sizes


# --- bodies and windows -------------------------------------------------------------------------

LONG = b"x" * 300_000


async def test_h2_client_long_body_follows_the_windows() -> None:
    async with playing() as play:
        exchange = play.ask(LONG)
        stream = (await play.server.until(HEADERS)).stream
        got = last = 0
        while got < len(LONG):
            piece = await play.server.until(DATA, stream)
            got, last = got + len(piece.payload), piece.flags & END_STREAM
            await play.server.send(
                window(0, len(piece.payload)), window(stream, len(piece.payload))
            )
        assert last
        await play.server.send(play.server.answer(stream))
        assert (await exchange.ends()).again


@pytest.mark.parametrize("first", [0, 10, 65_535])
async def test_h2_client_unread_body_does_not_block_others(first: int) -> None:
    """The server gives one stream no window; it may even shrink it before the body continues."""
    async with playing((FIRST_WINDOW, first)) as play:
        server = play.server
        await server.send(
            window(0, 1_000_000)
        )  # the connection has a window, the streams have none
        stuck = play.ask(LONG)
        one = await server.until(HEADERS)
        got = 0
        while got < first:
            got += len((await server.until(DATA, one.stream)).payload)
        other = play.ask(b"")
        two = await server.until(HEADERS)
        await server.send(server.answer(two.stream))
        assert (await other.ends()).text == b"hello"
        assert not stuck.over.is_set()
        assert not [each for each in server.frames if each.kind == DATA]
        # Windows may even shrink.
        await server.send(settings((FIRST_WINDOW, 0)))
        await server.until(SETTINGS, flags=ACK)
        await server.send(settings((FIRST_WINDOW, 400_000)))
        while got < len(LONG):
            got += len((await server.until(DATA, one.stream)).payload)
        await server.send(server.answer(one.stream))
        assert (await stuck.ends()).whole


async def test_h2_client_long_bodies_take_turns() -> None:
    async with playing((FIRST_WINDOW, 1_000_000)) as play:
        await play.server.send(window(0, 2_000_000))
        await trio.testing.wait_all_tasks_blocked()
        for _ in range(3):
            play.ask(LONG)
        order: list[int] = []
        while len(order) < 3 * 19:
            order.append((await play.server.until(DATA)).stream)
        assert set(order[:12]) == {1, 3, 5}


async def test_h2_client_long_body_rejected_early_returns_the_response() -> None:
    async with playing() as play:
        exchange = play.ask(LONG)
        stream = (await play.server.until(HEADERS)).stream
        await play.server.send(play.server.head(stream, [(b":status", b"413")], end=True))
        await exchange.ends()
        assert (exchange.status, exchange.whole, exchange.again) == (413, True, True)
        reset_frame = await play.server.until(RST_STREAM, stream)
        assert int.from_bytes(reset_frame.payload, "big") == ErrorCodes.NO_ERROR
        await play.server.send(reset(stream, 0), window(0, 100_000))
        exchange, request = await play.receive_request()
        await play.server.send(play.server.answer(request.stream))
        assert (await exchange.ends()).text == b"hello"


@pytest.mark.parametrize("status", [b"401", b"413"])
async def test_h2_client_response_with_reset_no_error_is_complete(status: bytes) -> None:
    """RFC 9113 8.1: with it a server refuses the rest of the request."""
    async with playing() as play:
        exchange = play.ask(LONG)
        stream = (await play.server.until(HEADERS)).stream
        answer = play.server.head(stream, [(b":status", status)]) + data(stream, b"no", end=True)
        await play.server.send(answer, reset(stream, 0))
        await exchange.ends()
        assert (exchange.error, exchange.text, exchange.whole) == (None, b"no", True)
        await play.server.send(window(0, 100_000))
        exchange, request = await play.receive_request()
        await play.server.send(play.server.answer(request.stream))
        assert (await exchange.ends()).text == b"hello"


async def test_h2_client_exception_of_the_callback_wins_over_a_reset() -> None:
    """The head and the reset arrive together, and the caller sees its own bug."""
    async with playing() as play:

        def refuse(actions: list[Action]) -> None:
            raise ZeroDivisionError

        async def ask() -> None:
            with pytest.raises(ZeroDivisionError):
                await play.client.run(RequestHead(b"GET", b"/", [(b"host", b"here")]), b"", refuse)

        play.nursery.start_soon(ask)
        request = await play.server.request()
        await play.server.send(play.server.head(request.stream), reset(request.stream, 0))
        exchange, request = await play.receive_request()
        await play.server.send(play.server.answer(request.stream))
        assert (await exchange.ends()).text == b"hello"


@pytest.mark.parametrize(
    ("method", "status"), [(b"HEAD", b"200"), (b"GET", b"304"), (b"GET", b"204")]
)
async def test_h2_client_content_length_without_body_is_ignored(
    method: bytes, status: bytes
) -> None:
    """These responses have no body by definition, whichever length they announce."""
    async with playing() as play:
        taken: list[Action] = []

        async def ask() -> None:
            await play.client.run(
                RequestHead(method, b"/", [(b"host", b"here")]), b"", taken.extend
            )

        async with trio.open_nursery() as nursery:
            nursery.start_soon(ask)
            request = await play.server.request()
            fields = [(b":status", status), (b"content-length", b"5")]
            await play.server.send(play.server.head(request.stream, fields, end=True))
        assert taken == [Head(int(status), fields[1:]), End()]


@pytest.mark.parametrize(
    ("heard", "seconds", "is_doubted"),
    [(0.0, 1.0, False), (0.0, 10.0, False), (0.0, 10.1, True), (5.0, 10.0, False)],
)
async def test_h2_client_silent_connection_is_pinged_and_takes_no_requests(
    heard: float, seconds: float, is_doubted: bool, autojump_clock: MockClock
) -> None:
    """A request that is cancelled after more than 10 silent seconds may mean a dead connection.

    They begin with the request, or with what has arrived since.
    """
    async with playing() as play:
        await trio.sleep(100)
        long_one, first, second = [(await play.receive_request())[0] for _ in range(3)]
        if heard:
            await trio.sleep(heard)
            await play.server.send(window(0, 1))
        await trio.sleep(seconds)
        for exchange in first, second:
            exchange.scope.cancel()
            await exchange.over.wait()
            assert (play.client.capacity == 0) is is_doubted
        if is_doubted:
            request = await play.server.until(PING)
            await play.server.send(frame(PING, ACK, 0, request.payload))
            await trio.testing.wait_all_tasks_blocked()
        assert not [each for each in play.server.frames if each.kind == PING]
        assert play.client.capacity
        # An earlier request can still be answered.
        await play.server.send(play.server.answer(1))
        assert (await long_one.ends()).whole


async def test_h2_client_server_that_reads_nothing_can_be_abandoned(
    autojump_clock: MockClock,
) -> None:
    """Requests can be cancelled, and closing takes a second."""
    async with playing((FIRST_WINDOW, LAST)) as play:
        await play.server.send(window(0, 1_000_000_000))
        exchange = play.ask(LONG)
        await trio.sleep(10)
        exchange.scope.cancel()
        await exchange.over.wait()
        assert trio.current_time() == 10
        await play.client.aclose()
        assert trio.current_time() == 11


# --- GOAWAY -------------------------------------------------------------------------------------

GONE = "the server closed the connection before it began with the request"
LOST = "the server closed the connection without an answer"
# Streams 1, 3 and 5 are open. The frames of the server, and the error of each stream that it does
# not answer; it answers the others and closes.
GOODBYES: dict[str, tuple[list[bytes], dict[int, str]]] = {
    "all are done first": ([go_away(LAST)], {}),
    "twice": ([go_away(LAST), ping(), go_away(5)], {}),
    "twice, and some came too late": ([go_away(LAST), go_away(3)], {5: GONE}),
    "three times": ([go_away(LAST), go_away(3), go_away(1)], {3: GONE, 5: GONE}),
    "some": ([go_away(1)], {3: GONE, 5: GONE}),
    "none": ([go_away(0)], {1: GONE, 3: GONE, 5: GONE}),
    "one that is no stream of ours": ([go_away(4)], {5: GONE}),
    "with a reason": ([go_away(3, 11, b"too many \x00 calls")], {5: GONE}),
    "the same twice": ([go_away(3), go_away(3)], {5: GONE}),
    "more the second time": ([go_away(1), go_away(5)], {3: GONE, 5: GONE}),
}


@pytest.mark.parametrize("name", GOODBYES)
@pytest.mark.parametrize("at_once", [True, False])
async def test_h2_client_goaway_ends_unprocessed_requests(name: str, at_once: bool) -> None:
    """Streams above the last id may be retried elsewhere; the others still get their answers."""
    words, lost = GOODBYES[name]
    async with playing() as play:
        server = play.server
        exchanges = {
            request.stream: exchange
            for exchange, request in [await play.receive_request() for _ in range(3)]
        }
        answers = [server.answer(stream) for stream in exchanges if stream not in lost]
        if at_once:
            await server.send(*words, *answers)
        else:
            for word in words:
                await server.send(word)
                await trio.testing.wait_all_tasks_blocked()
            assert play.client.capacity == 0
            late = await play.ask().ends()
            assert isinstance(late.error, NotProcessed)
            for stream, exchange in exchanges.items():
                assert exchange.over.is_set() is (stream in lost)
            for answer in answers:
                await server.send(answer)
        for stream, exchange in exchanges.items():
            await exchange.ends()
            if stream in lost:
                assert isinstance(exchange.error, NotProcessed)
                assert str(exchange.error) == lost[stream]
            else:
                assert (exchange.text, exchange.whole, exchange.again) == (b"hello", True, False)
        # Nothing more is sent.
        assert await server.ended()


async def test_h2_client_goaway_while_idle_closes() -> None:
    async with playing() as play:
        await play.server.send(go_away(0))
        assert await play.server.ended()
        assert play.client.server_closed()
        assert play.client.capacity == 0


@pytest.mark.parametrize(
    ("words", "text"),
    [
        ([], LOST),
        ([go_away(1)], LOST),
        ([go_away(1, 2)], f"{LOST} (INTERNAL_ERROR)"),
        ([go_away(1, 11, b"calm")], f"{LOST} (ENHANCE_YOUR_CALM)"),
        ([go_away(1, 4711)], f"{LOST} (error 4711)"),
    ],
)
async def test_h2_client_closed_stream_fails_processed_requests(
    words: list[bytes], text: str
) -> None:
    async with playing() as play:
        exchange, _ = await play.receive_request()
        await play.server.send(*words)
        await play.server.stream.aclose()
        await exchange.ends()
        assert not isinstance(exchange.error, NotProcessed)
        assert str(exchange.error) == text
        assert play.client.capacity == 0


async def test_h2_client_truncated_response_is_connection_lost() -> None:
    async with playing() as play:
        whole = play.server.answer(1)
    for length in range(len(whole)):
        async with playing() as play:
            exchange, _ = await play.receive_request()
            await play.server.send(whole[:length])
            await play.server.stream.aclose()
            await exchange.ends()
            assert str(exchange.error) == (LOST if length < len(whole) - 14 else CUT)
            assert not exchange.whole


# --- other protocols ----------------------------------------------------------------------------


SILENT = "the server closed the connection without an answer"


@pytest.mark.parametrize(
    ("words", "close", "text"),
    [
        *(
            (words, close, f"{NO_HTTP2}{text}")
            for close in (True, False)
            for words, text in (
                (b"HTTP/1.1 400 Bad Request\r\ncontent-length: 0\r\n\r\n", "it speaks HTTP/1.1"),
                (b"HTTP/1.0", "it speaks HTTP/1.1"),
                (
                    b"\x15\x03\x01\x00\x02\x02\x46",
                    r"it speaks TLS; is its address https:// instead\?",
                ),
                (b"SSH-2.0-OpenSSH_9.9\r\n", "A frame has more than 16384 bytes"),
                (ping(), "The first frame is not SETTINGS"),
                (frame(SETTINGS, ACK), "The first frame is not SETTINGS"),
            )
        ),
        # These could still become HTTP/2: the connector has the timeout.
        (b"", True, SILENT),
        (settings((MOST, 5))[:5], True, SILENT),
        (settings((MOST, 5))[:12], True, SILENT),
    ],
)
async def test_h2_client_other_protocol_raises_connect_failed(
    words: bytes, close: bool, text: str
) -> None:
    """The error says what the peer speaks instead, and no socket stays open."""
    ours, theirs = memory_pair()
    client = H2ClientConnection(ours, "http")
    async with trio.open_nursery() as nursery:
        if words:
            await theirs.send_all(words)
        if close:
            await theirs.send_eof()
        with trio.fail_after(PATIENCE), pytest.raises(ConnectFailed, match=text):
            await client.open(nursery)
        await client.aclose()
    with pytest.raises(trio.ClosedResourceError):
        await ours.send_all(b"x")
    await theirs.aclose()


@pytest.mark.parametrize("error", [trio.BrokenResourceError, trio.ClosedResourceError])
@pytest.mark.parametrize("direction", ["reading", "writing"])
async def test_h2_client_stream_that_breaks_is_connection_lost(
    direction: str, error: type[Exception]
) -> None:
    """A broken write is left to the reader, to which the server may have sent its reason."""
    broken = trio.Event()

    received = [settings((MOST, 5))]

    class BreakingStream:
        async def send_all(self, data: bytes) -> None:
            await trio.lowlevel.checkpoint()
            if direction == "writing":
                raise error

        async def receive_some(self, size: int) -> bytes:
            await trio.lowlevel.checkpoint()
            if received:
                return received.pop()
            await broken.wait()
            if direction == "reading":
                raise error
            return b""

        async def aclose(self) -> None:
            await trio.lowlevel.checkpoint()

    stream: Any = BreakingStream()
    client = H2ClientConnection(stream, "http")
    with trio.fail_after(PATIENCE):
        async with trio.open_nursery() as nursery:
            await client.open(nursery)
            exchange = H2Exchange(client, b"{}")
            nursery.start_soon(exchange.run)
            await trio.testing.wait_all_tasks_blocked()
            assert not exchange.over.is_set()
            broken.set()
            await exchange.over.wait()
            await client.aclose()
    assert str(exchange.error) == LOST


async def test_h2_client_closed_while_opening() -> None:
    ours, theirs = memory_pair()
    client = H2ClientConnection(ours, "http")
    async with trio.open_nursery() as nursery:
        await cancel_once_blocked(client.open, nursery)
        with trio.CancelScope() as scope:
            scope.cancel()
            await client.aclose()
    with pytest.raises(trio.ClosedResourceError):
        await ours.send_all(b"x")
    await client.aclose()
    await theirs.aclose()


async def test_h2_client_outlives_cancellation_until_closed() -> None:
    """A last request may have to be sent."""
    ours, theirs = memory_pair()
    client, server = H2ClientConnection(ours, "https"), H2Played(theirs)
    async with trio.open_nursery() as nursery:
        async with trio.open_nursery() as opening:
            opening.start_soon(server.greet)
            await client.open(nursery)
        nursery.cancel_scope.cancel()
        with trio.CancelScope(shield=True):
            taken: list[Action] = []

            async def answer() -> None:
                request = await server.request()
                await server.send(server.answer(request.stream))

            async with trio.open_nursery() as beside:
                beside.start_soon(answer)
                await client.run(
                    RequestHead(b"DELETE", b"/", [(b"host", b"here")]), b"", taken.extend
                )
            assert isinstance(taken[0], Head)
        await client.aclose()
    await theirs.aclose()


@pytest.mark.parametrize("count", [60, long(600)])
async def test_h2_client_mutated_frames_never_hang(count: int) -> None:
    """Mutate complete frames: each request ends, or the connection still works."""
    chance = random.Random(7)
    for _ in range(count):
        async with playing() as play:
            exchange, _ = await play.receive_request()
            server = play.server
            words = bytearray(
                settings((MOST, 9))
                + server.head(1)
                + ping()
                + data(1, b"hello")
                + window(0, 5)
                + data(1, b"!", end=True)
            )
            for _ in range(chance.randint(1, 4)):
                words[chance.randrange(len(words))] = chance.choice(
                    (0, 1, 4, 5, 255, chance.randrange(256))
                )
            await server.send(bytes(words))
            await server.stream.aclose()
            await exchange.ends()
            assert exchange.whole or isinstance(exchange.error, ConnectionLost)
