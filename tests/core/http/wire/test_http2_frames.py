"""`FrameWatch`: which HTTP/2 frames a peer may send, and how many."""

from __future__ import annotations

from collections.abc import Callable

import h2.config
import h2.connection
import h2.events
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcp_core.http import FrameWatch, GoAway, begins_http2, goaway
from mcp_core.http.wire._http2_frames import PREFACE, rst_stream
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
    WINDOW_UPDATE,
    frame,
    number,
    setting,
)

CALM, PROTOCOL, SIZE = 11, 1, 6
POST = [
    (b":method", b"POST"),
    (b":scheme", b"https"),
    (b":authority", b"a.example"),
    (b":path", b"/mcp"),
]
UNKNOWN = 0x42
PADDED = 8
WHOLE = frame(HEADERS, END_HEADERS | END_STREAM, 1, b"block")


def chunks(data: bytes, size: int) -> list[bytes]:
    return [data[start : start + size] for start in range(0, len(data), size)]


def watched(*pieces: bytes, is_server: bool = True) -> tuple[FrameWatch, bytes]:
    watch = FrameWatch(is_server=is_server)
    return watch, b"".join([watch.receive(piece, 0.0) for piece in pieces])


# -- Valid input ---------------------------------------------------------------------------------

PASSES = {
    "nothing": b"",
    "a greeting": HELLO,
    "the settings that there are": PREFACE + frame(SETTINGS, payload=setting(3, 1) * 32),
    "a request": HELLO + WHOLE,
    "a request in pieces": HELLO
    + frame(HEADERS, 0, 1, b"bl")
    + frame(CONTINUATION, END_HEADERS, 1, b"ock"),
    "a body": HELLO
    + frame(HEADERS, END_HEADERS, 1, b"block")
    + frame(DATA, 0, 1, b"x" * 16_384)
    + frame(DATA, 1, 1),
    "all kinds": HELLO
    + frame(SETTINGS, ACK)
    + frame(PING, 0, 0, b"12345678")
    + frame(PRIORITY, 0, 3, b"12345")
    + frame(WINDOW_UPDATE, 0, 0, number(1))
    + frame(RST_STREAM, 0, 1, number(8))
    + frame(UNKNOWN, 0xFF, 5, b"whatever")
    + frame(
        PUSH_PROMISE, END_HEADERS, 1, b"of which the parser knows that it is none of a client's"
    ),
}


@pytest.mark.parametrize("sent", PASSES.values(), ids=PASSES)
@pytest.mark.parametrize("size", [1, 2, 8, 9, 10, 1_000_000])
def test_frame_watch_valid_input_any_split_passes(sent: bytes, size: int) -> None:
    watch, passed = watched(*chunks(sent, size))
    assert watch.error is None
    assert passed == sent
    assert watch.goaway is None


@given(
    st.lists(
        st.sampled_from(
            [WHOLE, frame(PING, 0, 0, b"12345678"), goaway(7, 0, "bye"), frame(DATA, 1, 1, b"abc")]
        )
    ),
    st.data(),
)
def test_frame_watch_passes_all_frames_but_goaway(frames: list[bytes], data: st.DataObject) -> None:
    sent = HELLO + b"".join(frames)
    cuts = sorted(data.draw(st.lists(st.integers(0, len(sent)), max_size=8)))
    watch, passed = watched(
        *[sent[a:b] for a, b in zip([0, *cuts], [*cuts, len(sent)], strict=True)]
    )
    assert watch.error is None
    assert passed == HELLO + b"".join([each for each in frames if each[3] != GOAWAY])
    assert (watch.goaway == GoAway(7, 0)) is any(each[3] == GOAWAY for each in frames)
    assert not watch.in_frame


def test_frame_watch_server_begins_with_settings() -> None:
    watch, passed = watched(frame(SETTINGS), WHOLE, is_server=False)
    assert watch.error is None
    assert passed == frame(SETTINGS) + WHOLE


def test_frame_watch_last_id_is_not_raised_by_later_goaway() -> None:
    watch, passed = watched(HELLO, goaway(None, 0), goaway(5, 2, "because"), goaway(9, 0))
    assert watch.goaway == GoAway(5, 0)
    assert passed == HELLO


@pytest.mark.parametrize(
    ("sent", "settled", "midway"),
    [
        (b"", False, False),
        (PREFACE, False, False),
        (PREFACE + b"\0", False, True),
        (PREFACE + frame(SETTINGS, payload=setting(3, 1))[:-1], False, True),
        (HELLO, True, False),
        (HELLO + WHOLE, True, False),
        (PREFACE + frame(SETTINGS, payload=setting(3, 1)), True, False),
        (HELLO + WHOLE[:-1], True, True),
        (HELLO + WHOLE[:3], True, True),
        (HELLO + frame(HEADERS, 0, 1, b"bl"), True, True),
    ],
)
def test_frame_watch_reports_preface_and_position(sent: bytes, settled: bool, midway: bool) -> None:
    watch, _ = watched(sent)
    assert (watch.preface_received, watch.in_frame) == (settled, midway)


# -- Invalid input -------------------------------------------------------------------------------

REFUSED = {
    "HTTP/1.1": (b"GET / HTTP/1.1\r\nhost: a\r\n\r\n", PROTOCOL, "preface"),
    "a preface that ends otherwise": (PREFACE[:-1] + b"\r", PROTOCOL, "preface"),
    "TLS": (b"\x16\x03\x01\x02\x00\x01", PROTOCOL, "preface"),
    "no settings": (PREFACE + WHOLE, PROTOCOL, "SETTINGS"),
    "an answer to settings": (PREFACE + frame(SETTINGS, ACK), PROTOCOL, "SETTINGS"),
    "too many settings at first": (
        PREFACE + frame(SETTINGS, payload=setting(3, 1) * 33),
        CALM,
        "settings",
    ),
    "too many settings later": (
        HELLO + frame(SETTINGS, payload=setting(3, 1) * 33),
        CALM,
        "settings",
    ),
    "a large frame": (HELLO + frame(DATA, 0, 1, length=16_385), SIZE, "16384"),
    "the largest frame": (HELLO + frame(UNKNOWN, 0, 1, length=2**24 - 1), SIZE, "16384"),
    "goaway for a stream": (HELLO + frame(GOAWAY, 0, 1, bytes(8)), PROTOCOL, "stream"),
    "a short goaway": (HELLO + frame(GOAWAY, 0, 0, bytes(7)), SIZE, "GOAWAY"),
    "an empty goaway": (HELLO + frame(GOAWAY), SIZE, "GOAWAY"),
    "something in a head": (
        HELLO + frame(HEADERS, 0, 1, b"x") + frame(PING, 0, 0, bytes(8)),
        PROTOCOL,
        "interrupts",
    ),
    "goaway in a head": (HELLO + frame(HEADERS, 0, 1, b"x") + goaway(0, 0), PROTOCOL, "interrupts"),
    "something in the head of no stream": (
        HELLO + frame(HEADERS, 0, 0, b"x") + goaway(0, 0),
        PROTOCOL,
        "interrupts",
    ),
    "another head in a head": (
        HELLO + frame(HEADERS, 0, 1, b"x") + frame(CONTINUATION, 0, 3, b"x"),
        PROTOCOL,
        "interrupts",
    ),
    "a long head": (
        HELLO
        + frame(HEADERS, 0, 1, bytes(16_384))
        + frame(CONTINUATION, 0, 1, bytes(16_384)) * 3
        + frame(CONTINUATION, 0, 1, b"x"),
        CALM,
        "65536",
    ),
    "a head in many pieces": (
        HELLO + frame(HEADERS, 0, 1) + frame(CONTINUATION, 0, 1) * 17,
        CALM,
        "17 frames",
    ),
}


@pytest.mark.parametrize(("sent", "code", "reason"), REFUSED.values(), ids=REFUSED)
@pytest.mark.parametrize("size", [1, 10, 1_000_000])
def test_frame_watch_invalid_frame_sets_fault(
    sent: bytes, code: int, reason: str, size: int
) -> None:
    watch, _ = watched(*chunks(sent, size))
    assert watch.error is not None
    assert watch.error.code == code
    assert reason in watch.error.reason
    assert watch.receive(WHOLE, 0.0) == b""  # nothing passes after a fault
    assert repr(watch) == f"<FrameWatch: {watch.error.reason}>"


def test_frame_watch_rejects_frame_by_header() -> None:
    for sent in frame(DATA, 0, 1, length=16_385), frame(HEADERS, 0, 1, length=2**20):
        watch, passed = watched(HELLO, sent)
        assert watch.error is not None
        assert passed == HELLO


@pytest.mark.parametrize("pieces", [15, 16])
def test_frame_watch_head_in_few_continuations_passes(pieces: int) -> None:
    last = frame(CONTINUATION, END_HEADERS, 1, b"x")
    watch, _ = watched(
        HELLO, frame(HEADERS, 0, 1) + frame(CONTINUATION, 0, 1, b"x") * (pieces - 1) + last + WHOLE
    )
    assert watch.error is None
    assert not watch.in_frame


# -- Floods --------------------------------------------------------------------------------------

FLOODS = {
    "resets": (frame(RST_STREAM, 0, 1, number(8)), 100, "reset"),
    "pings": (frame(PING, 0, 0, bytes(8)), 200, "nothing"),
    "answers to pings": (frame(PING, ACK, 0, bytes(8)), 200, "nothing"),
    "settings": (frame(SETTINGS), 200, "nothing"),
    "answers to settings": (frame(SETTINGS, ACK), 200, "nothing"),
    "priorities": (frame(PRIORITY, 0, 3, bytes(5)), 200, "nothing"),
    "empty data": (frame(DATA, 0, 1), 200, "nothing"),
    "goaways": (goaway(0, 0), 200, "nothing"),
    "unknown frames": (frame(UNKNOWN), 200, "nothing"),
    "windows": (frame(WINDOW_UPDATE, 0, 0, number(1)), 1_000, "WINDOW_UPDATE"),
    "crumbs": (frame(DATA, 0, 1, b"x"), 1_000, "very small"),
    "larger crumbs": (frame(DATA, 0, 1, bytes(63)), 1_000, "very small"),
    "padding": (frame(DATA, PADDED, 1, b"\xff" + bytes(255)), 1_000, "very small"),
    "padded crumbs": (frame(DATA, PADDED, 1, bytes(319)), 1_000, "very small"),
}


@pytest.mark.parametrize(("sent", "limit", "reason"), FLOODS.values(), ids=FLOODS)
def test_frame_watch_flood_over_limit_sets_fault(sent: bytes, limit: int, reason: str) -> None:
    watch, passed = watched(HELLO, *[sent] * limit)
    assert sent[3] == GOAWAY or passed == HELLO + sent * limit
    watch.receive(sent, 9.9)
    assert watch.error is not None
    assert watch.error.code == CALM
    assert reason in watch.error.reason


@pytest.mark.parametrize(("sent", "limit", "reason"), FLOODS.values(), ids=FLOODS)
def test_frame_watch_flood_in_one_chunk_sets_fault(sent: bytes, limit: int, reason: str) -> None:
    watch, _ = watched(HELLO + sent * 20_000)
    assert watch.error is not None
    assert reason in watch.error.reason
    assert FrameWatch(is_server=True).receive(HELLO + sent * limit, 0.0)[: len(HELLO)] == HELLO


@pytest.mark.parametrize(("sent", "limit", "reason"), FLOODS.values(), ids=FLOODS)
def test_frame_watch_limits_restart_each_period(sent: bytes, limit: int, reason: str) -> None:
    watch, _ = watched(HELLO)
    for period in range(5):
        watch.receive(sent * limit, period * 10.0)
        assert watch.error is None


def test_frame_watch_idle_frames_share_one_limit() -> None:
    watch, _ = watched(
        HELLO, frame(PING, 0, 0, bytes(8)) * 100, frame(SETTINGS) * 50, frame(DATA, 0, 1) * 50
    )
    assert repr(watch) == (
        "<FrameWatch: 0 resets, 200 idle frames, 0 updates, 0 small frames, 0 late frames>"
    )
    watch.receive(frame(UNKNOWN), 1.0)
    assert watch.error is not None


ALLOWED = {
    "ends of bodies": frame(DATA, END_STREAM, 1),
    "pieces of bodies": frame(DATA, 0, 1, bytes(64)),
    "padded pieces of bodies": frame(DATA, PADDED, 1, bytes(320)),
    "padded ends of bodies": frame(DATA, PADDED | END_STREAM, 1, bytes(20)),
    "events line by line": frame(DATA, 0, 1, b"event: message\n")
    + frame(DATA, 0, 1, b"id: 17\n")
    + frame(DATA, 0, 1, b"data: " + b"x" * 60)
    + frame(DATA, 0, 1, b"\n")
    + frame(DATA, 0, 1, b"\n"),
    "requests": WHOLE,
}


@pytest.mark.parametrize("sent", ALLOWED.values(), ids=ALLOWED)
def test_frame_watch_useful_frames_have_no_limit(sent: bytes) -> None:
    watch, _ = watched(HELLO, sent * 20_000)
    assert watch.error is None


def complete(watch: FrameWatch) -> None:
    for _ in range(3):
        watch.stream_completed()


def receive_large(watch: FrameWatch) -> None:
    watch.receive(frame(DATA, 0, 1, bytes(64)) * 3, -1.0)


def receive_last(watch: FrameWatch) -> None:
    """The last frames of streams count by their whole length, if they have no padding."""
    watch.receive(frame(DATA, END_STREAM, 1, bytes(64)) * 3, -1.0)


LATE = b"frames for closed streams"  # which h2 reports
RESET, PINGED, UPDATED, CRUMB = (
    FLOODS[name][0] for name in ("resets", "pings", "windows", "crumbs")
)
EARNED: dict[str, tuple[Callable[[FrameWatch], None], bytes, int, int]] = {
    # what earns frames, these frames, how many may come without it, and how many more with it
    "resets by streams": (complete, RESET, 100, 3),
    "idle frames by streams": (complete, PINGED, 200, 3),
    "small frames by streams": (complete, CRUMB, 1_000, 3),
    "small frames by large ones": (receive_large, CRUMB, 1_000, 12),
    "small frames by last ones": (receive_last, CRUMB, 1_000, 12),
    "late frames by streams": (complete, LATE, 1_000, 192),
    "updates by data": (lambda watch: watch.data_sent(3), UPDATED, 1_000, 24),
}


def flood(watch: FrameWatch, sent: bytes, count: int, now: float) -> None:
    watch.receive(b"" if sent is LATE else sent * count, now)
    if sent is LATE:
        watch.late_frames(count)


@pytest.mark.parametrize(("earn", "sent", "limit", "more"), EARNED.values(), ids=EARNED)
def test_frame_watch_useful_exchange_earns_frames_for_two_periods(
    earn: Callable[[FrameWatch], None], sent: bytes, limit: int, more: int
) -> None:
    """Earned frames count in their period and in the next one, and add up."""
    for periods, allowed in ([0], more), ([0, 10], more), ([0, 10, 20], 0):
        watch, _ = watched(HELLO)
        earn(watch)
        for now in periods:
            watch.receive(b"", now)
        flood(watch, sent, limit + allowed, periods[-1])
        assert watch.error is None
        flood(watch, sent, 1, periods[-1])
        assert watch.error is not None
    watch, _ = watched(HELLO)
    earn(watch)
    watch.receive(b"", 10.0)
    earn(watch)
    flood(watch, sent, limit + 2 * more, 10.0)
    assert watch.error is None
    flood(watch, sent, 1, 10.0)
    assert watch.error is not None


def test_frame_watch_late_frames_over_limit_set_fault() -> None:
    watch, _ = watched(HELLO)
    watch.late_frames(1_000)
    assert watch.error is None
    watch.receive(WHOLE, 10.0)  # the next period
    watch.late_frames(1_000)
    assert watch.error is None
    watch, _ = watched(HELLO)
    watch.late_frames(1_001)
    assert watch.error is not None
    assert watch.error.code == CALM
    assert "closed streams" in watch.error.reason


def test_frame_watch_our_resets_count_against_peer() -> None:
    watch, _ = watched(HELLO)
    for _ in range(100):
        watch.stream_reset(1.0)
    assert watch.receive(WHOLE, 1.0) == WHOLE
    watch.stream_reset(1.0)
    first = watch.error
    assert first is not None
    assert first.code == CALM
    watch.stream_reset(1.0)
    assert watch.error is first


def test_frame_watch_our_resets_are_counted_for_each_period() -> None:
    watch, _ = watched(HELLO)
    for now in (1.0, 11.0, 21.0):
        for _ in range(100):
            watch.stream_reset(now)
    assert watch.error is None
    watch.stream_reset(21.0)
    assert watch.error is not None


# -- Protocol detection --------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("data", "verdict"),
    [
        (b"", None),
        (b"P", None),
        (PREFACE[:-1], None),
        (PREFACE, True),
        (HELLO, True),
        (b"PO", False),
        (b"GET / HTTP/1.1\r\n", False),
        (PREFACE[:-1] + b"\r", False),
        (b"pri * http/2.0\r\n\r\nsm\r\n\r\n", False),
        (b"\x16\x03", False),
        (b"GET /a b HTTP/1.1\r\n", False),
        (b"GET / http/1.1\n", False),
        (b"GET /\r\n", False),
        (b"hello\r\n", False),
        (b"INVALID CONNECTION PREFACE", False),
        (b"INVALID CONNECTION PREFACE\r\n\r\n", True),
        (b"OPTIONS rtsp://a.example RTSP/1.0\r\n", True),
    ],
)
def test_begins_http2_decides_by_first_bytes(data: bytes, verdict: bool | None) -> None:
    assert begins_http2(data) is verdict


def test_rst_stream_is_a_frame_of_its_stream() -> None:
    assert rst_stream(7, 8) == frame(RST_STREAM, 0, 7, number(8))
    assert rst_stream(2**31 - 1, 11) == frame(RST_STREAM, 0, 2**31 - 1, number(11))


def test_goaway_is_decoded_by_h2() -> None:
    parser = h2.connection.H2Connection(h2.config.H2Configuration(client_side=True))
    parser.initiate_connection()
    for data, last, code, reason in (
        (goaway(None, 0), 2**31 - 1, 0, None),
        (goaway(5, 11, "stop"), 5, 11, b"stop"),
    ):
        (event,) = parser.receive_data(data)
        assert isinstance(event, h2.events.ConnectionTerminated)
        assert (event.last_stream_id, event.error_code, event.additional_data) == (
            last,
            code,
            reason,
        )


def test_goaway_whose_payload_comes_later_is_not_passed() -> None:
    watch = FrameWatch(is_server=True)
    message = goaway(7, 0, "bye")
    assert watch.receive(HELLO + message[:9], 0.0) == HELLO
    assert watch.receive(message[9:], 0.0) == b""
    assert watch.goaway == GoAway(7, 0)
