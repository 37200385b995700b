"""The ends of HTTP responses, however their bytes are cut."""

from __future__ import annotations

import json
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mcp_trio.oracle.bench._verdicts import find_cause, find_response
from mcp_trio.oracle.bench.engine._http_reader import HttpReader, ReadState, TooLarge

ID = b"1000000001"
BODY = json.dumps({"jsonrpc": "2.0", "id": int(ID), "result": {"text": "ü\n" * 9}}).encode()
NOTE = b'{"jsonrpc":"2.0","method":"notifications/message","params":{"data":"1000000001"}}'
PING = b'{"jsonrpc":"2.0","id":7,"method":"ping"}'
OK = b"HTTP/1.1 200 OK\r\n"
STREAM = b"Content-Type: text/event-stream; charset=utf-8\r\n"


def chunked(*pieces: bytes, trailer: bytes = b"") -> bytes:
    parts = [b"%x;x=1\r\n%b\r\n" % (len(piece), piece) for piece in pieces]
    return b"".join([*parts, b"0\r\n", trailer, b"\r\n"])


def event(data: bytes, end: bytes = b"\r\n") -> bytes:
    return b"id: 5%bdata: %b%b%b" % (end, data, end, end)


CHUNKED = OK + b"transfer-encoding: Chunked\r\n"
RESPONSES = [
    OK + b"Content-Length: %d\r\n\r\n" % len(BODY) + BODY,
    OK + b"Date: x\r\nCONTENT-LENGTH:%d\r\nMcp-Session-Id: s\r\n\r\n" % len(BODY) + BODY,
    b"HTTP/1.1 103 Early\r\nLink: x\r\n\r\n"
    + OK
    + b"Content-Length: %d\r\n\r\n" % len(BODY)
    + BODY,
    CHUNKED + b"\r\n" + chunked(BODY),
    CHUNKED + b"\r\n" + chunked(BODY[:9], BODY[9:], trailer=b"X: y\r\n"),
    CHUNKED + STREAM + b"\r\n" + chunked(event(NOTE), event(BODY)),
    CHUNKED + STREAM + b"\r\n" + chunked(event(BODY, b"\n")),
    CHUNKED
    + STREAM
    + b"\r\n"
    + chunked(event(PING, b"\r")[:9], event(PING, b"\r")[9:], event(BODY)),
    OK + STREAM + b"Content-Length: %d\r\n\r\n" % len(event(BODY)) + event(BODY),
]


def cut(data: bytes, places: list[int]) -> list[bytes]:
    ends = sorted({0, len(data), *(place % len(data) for place in places)})
    return [data[begin:end] for begin, end in pairwise(ends)]


@settings(max_examples=40)
@given(
    st.lists(st.tuples(st.sampled_from(RESPONSES), st.lists(st.integers(0, 10_000)))).filter(bool)
)
def test_reader_finds_each_end_however_bytes_are_cut(
    responses: list[tuple[bytes, list[int]]],
) -> None:
    """Responses follow each other on one connection, so each leaves the reader ready."""
    reader = HttpReader()
    for data, places in responses:
        reader.begin(ID)
        *first, last = cut(data, places)
        for piece in first:
            state = reader.feed(piece)
            assert state is not ReadState.COMPLETE
            if state is ReadState.ANSWERED:
                assert find_cause(find_response(reader.body, ID, is_stream=True), ID) == ""
        assert reader.feed(bytearray(last)) is ReadState.COMPLETE
        assert reader.head is not None
        message = find_response(reader.body, ID, is_stream=reader.head.is_stream)
        assert message == json.loads(BODY)
        assert reader.can_continue


def test_reader_is_answered_by_the_event_with_the_id() -> None:
    reader = HttpReader()
    reader.begin(ID)
    assert reader.feed(CHUNKED + STREAM + b"\r\n") is ReadState.OPEN
    assert reader.feed(chunked(event(NOTE))[:-5]) is ReadState.OPEN
    assert reader.feed(chunked(event(PING))[:-5]) is ReadState.OPEN
    assert [request["id"] for request in reader.requests] == [7]
    assert reader.feed(chunked(event(BODY))[:-5]) is ReadState.ANSWERED
    assert reader.feed(chunked(event(NOTE))[:-5]) is ReadState.ANSWERED
    assert reader.feed(b"0\r\n\r\n") is ReadState.COMPLETE


@pytest.mark.parametrize(
    ("data", "state"),
    [
        (OK + b"\r\n" + BODY, ReadState.COMPLETE),
        (b"HTTP/1.0 200 OK\r\n\r\n" + BODY, ReadState.COMPLETE),
        (OK + b"Content-Length: 9999\r\n\r\n" + BODY, ReadState.OPEN),
        (CHUNKED + b"\r\n" + chunked(BODY)[:-2], ReadState.OPEN),
        (OK + STREAM + b"\r\n" + event(BODY), ReadState.COMPLETE),
        (CHUNKED + STREAM + b"\r\n" + chunked(event(BODY))[:-5], ReadState.ANSWERED),
        (OK, ReadState.OPEN),
    ],
)
def test_reader_at_the_end_of_the_connection(data: bytes, state: ReadState) -> None:
    reader = HttpReader()
    reader.begin(ID)
    assert reader.feed(data) in (ReadState.OPEN, ReadState.ANSWERED)
    assert reader.end() is state
    assert not reader.can_continue


@pytest.mark.parametrize(
    ("head", "can_continue"),
    [
        (b"HTTP/1.1 202 Accepted\r\nContent-Length: 0", True),
        (b"HTTP/1.1 204 No Content", True),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: Close", False),
        (b"HTTP/1.0 200 OK\r\nContent-Length: 0", False),
        (b"HTTP/1.0 200 OK\r\nContent-Length: 0\r\nConnection: keep-alive", True),
    ],
)
def test_reader_knows_whether_the_connection_stays(head: bytes, can_continue: bool) -> None:
    reader = HttpReader()
    for _ in range(2):
        reader.begin(b"")
        assert reader.feed(head + b"\r\n\r\n") is ReadState.COMPLETE
        assert reader.can_continue is can_continue


@pytest.mark.parametrize("response", RESPONSES)
@pytest.mark.parametrize("rest", [b"H", b"HTTP/1.1 200 OK"])
def test_reader_bytes_after_the_response_end_the_connection(response: bytes, rest: bytes) -> None:
    reader = HttpReader()
    reader.begin(ID)
    assert reader.feed(response + rest) is ReadState.COMPLETE
    assert not reader.can_continue


@pytest.mark.parametrize(
    "data",
    [
        b"SSH-2.0-OpenSSH\r\n\r\n",
        b"HTTP/2 200\r\n\r\n",
        OK + b"Content-Length: -5\r\n\r\n",
        OK + b"Content-Length: 5, 5\r\n\r\n",
        CHUNKED + b"\r\nhello\r\n",
        CHUNKED + b"\r\n-1\r\n",
        CHUNKED + b"\r\n2\r\nabcdef",
        CHUNKED + b"\r\n" + b"1" * 5000,
    ],
)
def test_reader_of_wrong_http_raises(data: bytes) -> None:
    reader = HttpReader()
    reader.begin(ID)
    with pytest.raises(ValueError, match=r"HTTP/1|Content-Length|chunk"):
        reader.feed(data)


@pytest.mark.parametrize(
    "data",
    [
        b"x" * 70_000,
        OK + b"Content-Length: 99999999999\r\n\r\n",
        CHUNKED + b"\r\n0\r\n" + b"X: y\r\n" * 20_000,
    ],
)
def test_reader_of_too_large_response_raises(data: bytes) -> None:
    reader = HttpReader()
    reader.begin(ID)
    with pytest.raises(TooLarge):
        reader.feed(data)


@given(st.binary(), st.lists(st.integers(0, 1000)))
@settings(max_examples=40)
def test_reader_of_any_bytes_raises_nothing_else(data: bytes, places: list[int]) -> None:
    for begin in (b"", OK, CHUNKED + b"\r\n", CHUNKED + STREAM + b"\r\n"):
        reader = HttpReader()
        reader.begin(ID)
        try:
            for piece in cut(begin + data + b".", places):
                if reader.feed(piece) is ReadState.COMPLETE:
                    break
            reader.end()
        except (ValueError, TooLarge):
            pass


def test_response_with_the_head_of_an_earlier_one_has_its_own_body() -> None:
    reader = HttpReader()
    for number in range(3):
        body = BODY.replace(b"\\n", b"%02d" % number)
        reader.begin(ID)
        state = reader.feed(OK + b"Content-Length: %d\r\n\r\n%b" % (len(body), body))
        assert (state, bytes(reader.body)) == (ReadState.COMPLETE, body)


@pytest.mark.parametrize(
    ("first", "status"), [(100, 200), (103, 200), (199, 200), (101, 101), (200, 200)]
)
def test_informational_responses_precede_the_response(first: int, status: int) -> None:
    """101 is the last response in HTTP: what follows it is another protocol."""
    reader = HttpReader()
    reader.begin(ID)
    reader.feed(b"HTTP/1.1 %d X\r\n\r\n" % first if first != 200 else b"")
    reader.feed(OK + b"Content-Length: 2\r\n\r\n{}")
    assert reader.head is not None
    assert reader.head.status == status
