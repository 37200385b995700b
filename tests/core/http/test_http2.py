"""HTTP/2 before a parser acts on it: what a connection may bring, how much of it, and which heads are requests."""

from __future__ import annotations

import h2.config
import h2.connection
import h2.events
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcp_core.http import (
    FrameWatch,
    GoAway,
    Head,
    HeadFault,
    RequestHead,
    begins_http2,
    goaway,
    request_fields,
    request_head,
    response_fields,
    response_head,
    trailer_fault,
)
from mcp_core.http._http1 import SINGLETONS
from tests.core.http.h2_frames import (
    ACK,
    CONTINUATION,
    DATA,
    END_HEADERS,
    END_STREAM,
    GOAWAY,
    HEADERS,
    HELLO,
    PING,
    PREFACE,
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
POST = [(b":method", b"POST"), (b":scheme", b"https"), (b":authority", b"a.example"), (b":path", b"/mcp")]
UNKNOWN = 0x42
WHOLE = frame(HEADERS, END_HEADERS | END_STREAM, 1, b"block")


def chunks(data: bytes, size: int) -> list[bytes]:
    return [data[start : start + size] for start in range(0, len(data), size)]


def watched(*pieces: bytes, is_server: bool = True) -> tuple[FrameWatch, bytes]:
    watch = FrameWatch(is_server=is_server)
    return watch, b"".join([watch.receive(piece, 0.0) for piece in pieces])


# -- What passes -------------------------------------------------------------------------------------------------------------

PASSES = {
    "nothing": b"",
    "a greeting": HELLO,
    "the settings that there are": PREFACE + frame(SETTINGS, payload=setting(3, 1) * 32),
    "a request": HELLO + WHOLE,
    "a request in pieces": HELLO + frame(HEADERS, 0, 1, b"bl") + frame(CONTINUATION, END_HEADERS, 1, b"ock"),
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
    + frame(PUSH_PROMISE, END_HEADERS, 1, b"of which the parser knows that it is none of a client's"),
}


@pytest.mark.parametrize("said", PASSES.values(), ids=PASSES)
@pytest.mark.parametrize("size", [1, 2, 8, 9, 10, 1_000_000])
def test_what_is_right_passes_however_it_is_split(said: bytes, size: int) -> None:
    watch, passed = watched(*chunks(said, size))
    assert watch.fault is None
    assert passed == said
    assert watch.goaway is None


@given(
    st.lists(
        st.sampled_from(
            [WHOLE, frame(PING, 0, 0, b"12345678"), goaway(7, 0, "bye"), frame(DATA, 1, 1, b"abc")]
        )
    ),
    st.data(),
)
def test_all_but_goaway_passes(frames: list[bytes], data: st.DataObject) -> None:
    said = HELLO + b"".join(frames)
    cuts = sorted(data.draw(st.lists(st.integers(0, len(said)), max_size=8)))
    watch, passed = watched(*[said[a:b] for a, b in zip([0, *cuts], [*cuts, len(said)], strict=True)])
    assert watch.fault is None
    assert passed == HELLO + b"".join([each for each in frames if each[3] != GOAWAY])
    assert (watch.goaway == GoAway(7, 0)) is any(each[3] == GOAWAY for each in frames)
    assert not watch.midway


def test_a_server_says_its_settings_first_and_no_preface() -> None:
    watch, passed = watched(frame(SETTINGS), WHOLE, is_server=False)
    assert watch.fault is None
    assert passed == frame(SETTINGS) + WHOLE


def test_goaway_is_told_and_only_ever_takes_back() -> None:
    watch, passed = watched(HELLO, goaway(None, 0), goaway(5, 2, "because"), goaway(9, 0))
    assert watch.goaway == GoAway(5, 0)
    assert passed == HELLO


@pytest.mark.parametrize(
    ("said", "settled", "midway"),
    [
        (b"", False, False),
        (PREFACE, False, False),
        (PREFACE + b"\0", False, True),
        (PREFACE + frame(SETTINGS, payload=setting(3, 1))[:-1], False, True),
        (HELLO, True, False),
        (HELLO + WHOLE, True, False),
        (HELLO + WHOLE[:-1], False, True),
        (HELLO + frame(HEADERS, 0, 1, b"bl"), True, True),
    ],
)
def test_where_it_stands(said: bytes, settled: bool, midway: bool) -> None:
    watch, _ = watched(said)
    assert (watch.settled, watch.midway) == (settled, midway)


# -- What does not -----------------------------------------------------------------------------------------------------------

REFUSED = {
    "HTTP/1.1": (b"GET / HTTP/1.1\r\nhost: a\r\n\r\n", PROTOCOL, "preface"),
    "a preface that ends otherwise": (PREFACE[:-1] + b"\r", PROTOCOL, "preface"),
    "TLS": (b"\x16\x03\x01\x02\x00\x01", PROTOCOL, "preface"),
    "no settings": (PREFACE + WHOLE, PROTOCOL, "SETTINGS"),
    "an answer to settings": (PREFACE + frame(SETTINGS, ACK), PROTOCOL, "SETTINGS"),
    "too many settings at first": (PREFACE + frame(SETTINGS, payload=setting(3, 1) * 33), CALM, "settings"),
    "too many settings later": (HELLO + frame(SETTINGS, payload=setting(3, 1) * 33), CALM, "settings"),
    "a large frame": (HELLO + frame(DATA, 0, 1, length=16_385), SIZE, "16384"),
    "the largest frame": (HELLO + frame(UNKNOWN, 0, 1, length=2**24 - 1), SIZE, "16384"),
    "goaway for a stream": (HELLO + frame(GOAWAY, 0, 1, bytes(8)), PROTOCOL, "stream"),
    "a short goaway": (HELLO + frame(GOAWAY, 0, 0, bytes(7)), SIZE, "GOAWAY"),
    "an empty goaway": (HELLO + frame(GOAWAY), SIZE, "GOAWAY"),
    "something in a head": (
        HELLO + frame(HEADERS, 0, 1, b"x") + frame(PING, 0, 0, bytes(8)),
        PROTOCOL,
        "within",
    ),
    "goaway in a head": (HELLO + frame(HEADERS, 0, 1, b"x") + goaway(0, 0), PROTOCOL, "within"),
    "something in the head of no stream": (
        HELLO + frame(HEADERS, 0, 0, b"x") + goaway(0, 0),
        PROTOCOL,
        "within",
    ),
    "another head in a head": (
        HELLO + frame(HEADERS, 0, 1, b"x") + frame(CONTINUATION, 0, 3, b"x"),
        PROTOCOL,
        "within",
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


@pytest.mark.parametrize(("said", "code", "reason"), REFUSED.values(), ids=REFUSED)
@pytest.mark.parametrize("size", [1, 10, 1_000_000])
def test_what_is_refused_and_how(said: bytes, code: int, reason: str, size: int) -> None:
    watch, _ = watched(*chunks(said, size))
    assert watch.fault is not None
    assert watch.fault.code == code
    assert reason in watch.fault.reason
    assert watch.receive(WHOLE, 0.0) == b""  # nothing passes any more
    assert repr(watch) == f"<FrameWatch: {watch.fault.reason}>"


def test_a_frame_is_refused_by_its_header() -> None:
    for said in frame(DATA, 0, 1, length=16_385), frame(HEADERS, 0, 1, length=2**20):
        watch, passed = watched(HELLO, said)
        assert watch.fault is not None
        assert passed == HELLO


@pytest.mark.parametrize("pieces", [15, 16])
def test_a_head_in_a_few_pieces(pieces: int) -> None:
    last = frame(CONTINUATION, END_HEADERS, 1, b"x")
    watch, _ = watched(
        HELLO, frame(HEADERS, 0, 1) + frame(CONTINUATION, 0, 1, b"x") * (pieces - 1) + last + WHOLE
    )
    assert watch.fault is None
    assert not watch.midway


# -- What is too much --------------------------------------------------------------------------------------------------------

FLOODS = {
    "resets": (frame(RST_STREAM, 0, 1, number(8)), 100, "reset"),
    "pings": (frame(PING, 0, 0, bytes(8)), 200, "nothing"),
    "answers to pings": (frame(PING, ACK, 0, bytes(8)), 200, "nothing"),
    "settings": (frame(SETTINGS), 200, "nothing"),
    "answers to settings": (frame(SETTINGS, ACK), 200, "nothing"),
    "priorities": (frame(PRIORITY, 0, 3, bytes(5)), 200, "nothing"),
    "empty data": (frame(DATA, 0, 1), 200, "nothing"),
    "goaways": (goaway(0, 0), 200, "nothing"),
    "what nobody knows": (frame(UNKNOWN), 200, "nothing"),
    "windows": (frame(WINDOW_UPDATE, 0, 0, number(1)), 1_000, "windows"),
    "crumbs": (frame(DATA, 0, 1, b"x"), 1_000, "next to nothing"),
    "larger crumbs": (frame(DATA, 0, 1, bytes(63)), 1_000, "next to nothing"),
}


@pytest.mark.parametrize(("said", "most", "reason"), FLOODS.values(), ids=FLOODS)
def test_floods(said: bytes, most: int, reason: str) -> None:
    watch, passed = watched(HELLO, *[said] * most)
    assert said[3] == GOAWAY or passed == HELLO + said * most
    watch.receive(said, 9.9)
    assert watch.fault is not None
    assert watch.fault.code == CALM
    assert reason in watch.fault.reason


@pytest.mark.parametrize(("said", "most", "reason"), FLOODS.values(), ids=FLOODS)
def test_a_flood_in_one_piece(said: bytes, most: int, reason: str) -> None:
    watch, _ = watched(HELLO + said * 20_000)
    assert watch.fault is not None
    assert reason in watch.fault.reason
    assert FrameWatch(is_server=True).receive(HELLO + said * most, 0.0)[: len(HELLO)] == HELLO


@pytest.mark.parametrize(("said", "most", "reason"), FLOODS.values(), ids=FLOODS)
def test_time_forgives(said: bytes, most: int, reason: str) -> None:
    watch, _ = watched(HELLO)
    for period in range(5):
        watch.receive(said * most, period * 10.0)
        assert watch.fault is None


def test_kinds_that_bring_nothing_are_counted_together() -> None:
    watch, _ = watched(HELLO, frame(PING, 0, 0, bytes(8)) * 100, frame(SETTINGS) * 50, frame(DATA, 0, 1) * 50)
    assert repr(watch) == "<FrameWatch: 0 resets, 200 idle frames, 0 updates, 0 crumbs>"
    watch.receive(frame(UNKNOWN), 1.0)
    assert watch.fault is not None


ALLOWED = {
    "ends of bodies": frame(DATA, END_STREAM, 1),
    "pieces of bodies": frame(DATA, 0, 1, bytes(64)),
    "requests": WHOLE,
}


@pytest.mark.parametrize("said", ALLOWED.values(), ids=ALLOWED)
def test_work_is_not_counted(said: bytes) -> None:
    watch, _ = watched(HELLO, said * 20_000)
    assert watch.fault is None


@pytest.mark.parametrize("later", [0.0, 10.0])
def test_who_works_may_ask_for_more(later: float) -> None:
    watch, _ = watched(HELLO)
    for _ in range(500):
        watch.answered()
    watch.sent(500)
    said = frame(RST_STREAM, 0, 1, number(8)) * 600 + frame(PING, 0, 0, bytes(8)) * 700
    watch.receive(said + frame(WINDOW_UPDATE, 0, 0, number(1)) * 2_000, later)
    assert watch.fault is None
    watch.receive(frame(RST_STREAM, 0, 1, number(8)), later)
    assert watch.fault is not None


def test_what_was_allowed_long_ago_is_not_any_more() -> None:
    watch, _ = watched(HELLO)
    for _ in range(500):
        watch.answered()
    watch.receive(b"", 10.0)
    watch.receive(frame(RST_STREAM, 0, 1, number(8)) * 101, 20.0)
    assert watch.fault is not None


def test_what_we_had_to_reset_counts_as_theirs() -> None:
    watch, _ = watched(HELLO)
    for _ in range(100):
        watch.reset(1.0)
    assert watch.receive(WHOLE, 1.0) == WHOLE
    watch.reset(1.0)
    first = watch.fault
    assert first is not None
    assert first.code == CALM
    watch.reset(1.0)
    assert watch.fault is first


# -- Which protocol ----------------------------------------------------------------------------------------------------------


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
def test_first_bytes_tell(data: bytes, verdict: bool | None) -> None:
    assert begins_http2(data) is verdict


def test_goaway_is_read_as_it_was_meant() -> None:
    parser = h2.connection.H2Connection(h2.config.H2Configuration(client_side=True))
    parser.initiate_connection()
    for data, last, code, reason in (
        (goaway(None, 0), 2**31 - 1, 0, None),
        (goaway(5, 11, "stop"), 5, 11, b"stop"),
    ):
        (event,) = parser.receive_data(data)
        assert isinstance(event, h2.events.ConnectionTerminated)
        assert (event.last_stream_id, event.error_code, event.additional_data) == (last, code, reason)


# -- Heads of requests -------------------------------------------------------------------------------------------------------


def without(*names: bytes) -> list[tuple[bytes, bytes]]:
    return [header for header in POST if header[0] not in names]


HEADS = {
    "a request": (POST, [(b"host", b"a.example")]),
    "with fields": (
        [*POST, (b"x", b"a"), (b"x", b"b")],
        [(b"host", b"a.example"), (b"x", b"a"), (b"x", b"b")],
    ),
    "host for authority": ([*without(b":authority"), (b"host", b"a")], [(b"host", b"a")]),
    "both": ([*POST, (b"a", b"1"), (b"host", b"A.example")], [(b"host", b"A.example"), (b"a", b"1")]),
    "an empty value": ([*POST, (b"x", b"")], [(b"host", b"a.example"), (b"x", b"")]),
    "opaque bytes": ([*POST, (b"x", b"\xe9 \t\xff")], [(b"host", b"a.example"), (b"x", b"\xe9 \t\xff")]),
    "trailers": ([*POST, (b"te", b"Trailers")], [(b"host", b"a.example"), (b"te", b"Trailers")]),
    "a cookie": ([*POST, (b"cookie", b"a=b")], [(b"host", b"a.example"), (b"cookie", b"a=b")]),
    "pieces of a cookie": (
        [*POST, (b"cookie", b"a=b"), (b"x", b"y"), (b"cookie", b"c=d")],
        [(b"host", b"a.example"), (b"x", b"y"), (b"cookie", b"a=b; c=d")],
    ),
    "as many as may be": ([*POST, *[(b"x", b"")] * 100], [(b"host", b"a.example"), *[(b"x", b"")] * 100]),
    "as long as may be": ([*POST, *[(b"x", bytes(8192).replace(b"\0", b"v"))] * 3], None),
    "an expectation": ([*POST, (b"expect", b"100-Continue")], None),
}


@pytest.mark.parametrize(("headers", "told"), HEADS.values(), ids=HEADS)
def test_heads(headers: list[tuple[bytes, bytes]], told: list[tuple[bytes, bytes]] | None) -> None:
    head = request_head(headers)
    assert isinstance(head, RequestHead), head
    assert (head.method, head.target) == (b"POST", b"/mcp")
    if told is not None:
        assert head.headers == told


@pytest.mark.parametrize(
    ("method", "path"),
    [(b"OPTIONS", b"*"), (b"GET", b"/"), (b"GET", b"/a%20b?c=d/e"), (b"M-SEARCH", b"/" + b"x" * 8191)],
)
def test_methods_and_targets(method: bytes, path: bytes) -> None:
    head = request_head([(b":method", method), (b":path", path), *without(b":method", b":path")])
    assert head == RequestHead(method, path, [(b"host", b"a.example")])


FAULTS = {
    "no method": (without(b":method"), 400),
    "no path": (without(b":path"), 400),
    "no scheme": (without(b":scheme"), 400),
    "no authority": (without(b":authority"), 400),
    "an empty authority": ([*without(b":authority"), (b":authority", b"")], 400),
    "nothing": ([], 400),
    "two methods": ([*POST, (b":method", b"POST")], 400),
    "a pseudo-header behind": ([*without(b":path"), (b"x", b"y"), (b":path", b"/")], 400),
    "one that nobody knows": ([*POST, (b":version", b"2")], 400),
    "one in place of the authority": (
        [*without(b":authority"), (b":protocol", b"websocket"), (b"host", b"a")],
        400,
    ),
    "a status": ([*POST, (b":status", b"200")], 400),
    "another host": ([*POST, (b"host", b"b.example")], 400),
    "two hosts": ([*without(b":authority"), (b"host", b"a"), (b"host", b"a")], 400),
    "an empty name": ([*POST, (b"", b"y")], 400),
    "upper case": ([*POST, (b"X", b"y")], 400),
    "a space in a name": ([*POST, (b"x y", b"y")], 400),
    "a colon in a name": ([*POST, (b"x:y", b"y")], 400),
    "a line in a name": ([*POST, (b"x\ny", b"y")], 400),
    "a line in a value": ([*POST, (b"x", b"a\r\nb: c")], 400),
    "a newline in a value": ([*POST, (b"x", b"a\nb")], 400),
    "a NUL in a value": ([*POST, (b"x", b"a\0b")], 400),
    "DEL in a value": ([*POST, (b"x", b"\x7f")], 400),
    "space before a value": ([*POST, (b"x", b" a"), (b"y", b"b")], 400),
    "a tab behind a value": ([*POST, (b"x", b"a\t"), (b"y", b"b")], 400),
    "space behind the last value": ([*POST, (b"x", b"a ")], 400),
    "space before the first value": ([(b":method", b" POST"), *without(b":method")], 400),
    "connection": ([*POST, (b"connection", b"close")], 400),
    "keep-alive": ([*POST, (b"keep-alive", b"timeout=5")], 400),
    "proxy-connection": ([*POST, (b"proxy-connection", b"close")], 400),
    "transfer-encoding": ([*POST, (b"transfer-encoding", b"chunked")], 400),
    "upgrade": ([*POST, (b"upgrade", b"websocket")], 400),
    "te": ([*POST, (b"te", b"gzip")], 400),
    "te twice": ([*POST, (b"te", b"gzip"), (b"te", b"trailers")], 400),
    "a bad method": ([(b":method", b"P OST"), *without(b":method")], 400),
    "a long method": ([(b":method", b"X" * 33), *without(b":method")], 400),
    "a bad scheme": ([(b":scheme", b"ht tp"), *without(b":scheme")], 400),
    "an empty path": ([(b":path", b""), *without(b":path")], 400),
    "a URL for a path": ([(b":path", b"https://a.example/"), *without(b":path")], 400),
    "a star for a path": ([(b":path", b"*"), *without(b":path")], 400),
    "a space in a path": ([(b":path", b"/a b"), *without(b":path")], 400),
    "a fragment": ([(b":path", b"/a#b"), *without(b":path")], 400),
    "a length that is none": ([*POST, (b"content-length", b"+1")], 400),
    "a length with zeros": ([*POST, (b"content-length", b"01")], 400),
    "an empty length": ([*POST, (b"content-length", b"")], 400),
    "a huge length": ([*POST, (b"content-length", b"1" * 19)], 413),
    "a long path": ([(b":path", b"/" + b"x" * 8192), *without(b":path")], 414),
    "an expectation": ([*POST, (b"expect", b"200-ok")], 417),
    "too many headers": ([*POST, *[(b"x", b"")] * 101], 431),
    "a long value": ([*POST, (b"x", b"x" * 8193)], 431),
    "a long head": ([*POST, *[(b"x", b"x" * 8192)] * 4], 431),
    "connect": ([(b":method", b"CONNECT"), (b":authority", b"a.example:443")], 501),
    "extended connect": ([*without(b":method"), (b":method", b"CONNECT"), (b":protocol", b"websocket")], 501),
}


@pytest.mark.parametrize(("headers", "status"), FAULTS.values(), ids=FAULTS)
def test_heads_that_are_none(headers: list[tuple[bytes, bytes]], status: int) -> None:
    fault = request_head(headers)
    assert isinstance(fault, HeadFault), fault
    assert fault.status == status
    assert fault.reason.endswith(".")


@pytest.mark.parametrize("name", SINGLETONS)
def test_what_stands_once(name: bytes) -> None:
    fault = request_head([*without(b":authority"), (b"host", b"a"), (name, b"1"), (name, b"1")])
    assert isinstance(fault, HeadFault)
    assert fault.status == 400


TEXTS = st.binary(max_size=6)


@given(st.lists(st.tuples(st.one_of(TEXTS, st.sampled_from([name for name, _ in POST])), TEXTS), max_size=8))
def test_whatever_comes_is_a_head_or_none(headers: list[tuple[bytes, bytes]]) -> None:
    head = request_head([*POST, *headers])
    if isinstance(head, RequestHead):
        assert request_head([(name, value) for name, value in request_fields(head, "https")]) == head
        assert not any(c in value for _, value in head.headers for c in b"\r\n\0")
    assert trailer_fault(headers) is None or isinstance(trailer_fault(headers), HeadFault)


# -- Other heads -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("headers", "is_right"),
    [
        ([(b"x", b"y")], True),
        ([(b":path", b"/")], False),
        ([(b"X", b"y")], False),
        ([(b"connection", b"close")], False),
        ([(b"x", b"a\r\nb")], False),
    ],
)
def test_trailers(headers: list[tuple[bytes, bytes]], is_right: bool) -> None:
    assert (trailer_fault(headers) is None) is is_right


@pytest.mark.parametrize(
    ("headers", "head"),
    [
        ([(b":status", b"200")], Head(200, [])),
        ([(b":status", b"103"), (b"link", b"a")], Head(103, [(b"link", b"a")])),
        (
            [(b":status", b"200"), (b"set-cookie", b"a"), (b"set-cookie", b"b")],
            Head(200, [(b"set-cookie", b"a"), (b"set-cookie", b"b")]),
        ),
        ([(b"x", b"y")], None),
        ([(b":status", b"20")], None),
        ([(b":status", b"600")], None),
        ([(b":status", b"200"), (b":path", b"/")], None),
        ([(b":status", b"200"), (b":status", b"200")], None),
        ([(b":status", b"200"), (b"connection", b"close")], None),
        ([(b":status", b"200"), (b"content-length", b"1"), (b"content-length", b"1")], None),
    ],
)
def test_heads_of_answers(headers: list[tuple[bytes, bytes]], head: Head | None) -> None:
    found = response_head(headers)
    assert found == head if head is not None else isinstance(found, HeadFault)


def test_a_request_is_spelled() -> None:
    headers = [(b"host", b"a:1"), (b"connection", b"close"), (b"x", b"y"), (b"transfer-encoding", b"chunked")]
    assert request_fields(RequestHead(b"GET", b"/a", headers), "http") == [
        (b":method", b"GET"),
        (b":scheme", b"http"),
        (b":authority", b"a:1"),
        (b":path", b"/a"),
        (b"x", b"y"),
    ]


def test_an_answer_is_spelled() -> None:
    told = response_fields(200, [(b"Content-Type", b" text/plain"), (b"connection", b"close"), (b"x", b"y")])
    assert told == [(b":status", b"200"), (b"content-type", b"text/plain"), (b"x", b"y")]


@pytest.mark.parametrize("header", [(b"x", b"a\r\nb: c"), (b"x y", b"z"), (b"x", b"\0"), (b"", b"")])
def test_no_answer_has_what_no_header_may_have(header: tuple[bytes, bytes]) -> None:
    with pytest.raises(ValueError, match="header"):
        response_fields(200, [header])


def test_no_request_has_what_no_header_may_have() -> None:
    with pytest.raises(ValueError, match="cannot be said"):
        request_fields(RequestHead(b"GET", b"/", [(b"host", b"a"), (b"x", b"a\nb")]), "https")
