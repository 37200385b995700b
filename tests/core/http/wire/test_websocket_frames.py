"""WebSocket frames as wsproto decodes them: events, splits, and the early check of lengths."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import pytest
import wsproto.frame_protocol
from hypothesis import given
from hypothesis import strategies as st

from mcp_core import Limits
from mcp_core.http import Close, Ping, Pong, Text, WebSocketFrames
from mcp_core.registry import Server
from tests.core.http.frames import ASK, PING, ROWS, TEXT, close, frame, message, short
from tests.core.http.wire.test_websocket import client
from tests.harness.wire.websocket_router import WebSocketClient, WebSocketHarness
from tests.levels import fewer_examples


def played() -> tuple[WebSocketClient, WebSocketFrames]:
    server = Server("house", limits=Limits(message=100_000))
    played = WebSocketHarness(server).connect()
    return played, WebSocketFrames(played.socket, wsproto.frame_protocol, client=False)


def frames_in(data: bytes) -> list[Any]:
    """Return a server's frames in a short form."""
    found = []
    while data:
        size, start = data[1], 2
        if size > 125:
            start = 4 if size == 126 else 10
            size = int.from_bytes(data[2:start], "big")
        found.append(short(data[0] & 0x0F, data[start : start + size]))
        data = data[start + size :]
    return found


def events_of(pieces: list[bytes]) -> list[Any]:
    at, spelling = played()
    sent: list[bytes] = []
    for piece in pieces:
        spelling.read(piece, 0.0)
        at.settle()
        sent.append(spelling.write(at.take()))
    return frames_in(b"".join(sent))


@pytest.mark.parametrize(
    ("data", "answers"), [row[1:] for row in ROWS], ids=[row[0] for row in ROWS]
)
def test_websocket_frames_become_events(data: bytes, answers: list[Any]) -> None:
    assert events_of([data]) == answers
    if len(data) < 10_000:
        assert events_of([data[at : at + 1] for at in range(len(data))]) == answers


@fewer_examples(2)
@given(row=st.sampled_from(ROWS), cuts=st.lists(st.integers(0, 400), max_size=5))
def test_websocket_frames_any_split_is_same(
    row: tuple[str, bytes, list[Any]], cuts: list[int]
) -> None:
    _, data, answers = row
    marks = [0, *sorted({min(cut, len(data)) for cut in cuts}), len(data)]
    assert events_of([data[start:end] for start, end in pairwise(marks)]) == answers


@fewer_examples(2)
@given(st.lists(st.binary(max_size=40), max_size=8))
def test_websocket_frames_any_bytes_close_once(pieces: list[bytes]) -> None:
    """No input raises, and nothing follows a Close."""
    for sent in (events_of(pieces), events_of([frame(TEXT, piece) for piece in pieces])):
        codes = [each for each in sent if isinstance(each, int)]
        assert len(codes) <= 1
        assert codes == [] or sent[-1] == codes[0]


def test_websocket_frames_length_is_checked_before_buffering() -> None:
    at, spelling = played()
    spelling.read(frame(TEXT, length=1 << 62), 0.0)
    at.settle()
    assert at.output() == [1009]
    for _ in range(100):
        spelling.read(bytes(65_536), 0.0)
    assert at.output() == []


def test_websocket_frames_after_close_are_discarded() -> None:
    at, spelling = played()
    spelling.read(close(1000), 0.0)
    for _ in range(100):
        spelling.read(message(ASK), 0.0)
    at.settle()
    assert at.output() == [1000]


def test_websocket_frames_encode_actions() -> None:
    _, spelling = played()
    sent = spelling.write([Text("{}"), Ping(), Pong(b"x"), Close(4000, "so")])
    assert sent == b"\x81\x02{}" + b"\x89\x00" + b"\x8a\x01x" + b"\x88\x04\x0f\xa0so"


def test_websocket_frames_client_masks() -> None:
    socket = client()
    spelling = WebSocketFrames(socket, wsproto.frame_protocol, client=True)
    first, second = spelling.write([Ping()]), spelling.write([Text("{}")])
    assert (first[:2], second[:2], len(first), len(second)) == (b"\x89\x80", b"\x81\x82", 6, 8)
    assert bytes(byte ^ second[2 + at] for at, byte in enumerate(second[6:])) == b"{}"
    spelling.read(frame(PING, b"?", mask=False), 0.0)
    assert Pong(b"?") in socket.messages_to_send(0.0)
    spelling.read(frame(PING, b"?"), 0.0)
    assert socket.input_ignored


def test_websocket_frames_long_output_is_chunked() -> None:
    """Each written chunk restarts the write timeout, so a slow reader stays connected."""
    at, spelling = played()
    sent: list[Text | Ping] = [Text("x" * 600_000), Ping()]
    written = []
    at.socket.messages_to_send(0.0)
    times = iter((5.0, 25.0, 45.0))
    for piece in spelling.write_chunks(sent, times.__next__):
        written.append(bytes(piece))
        at.harness.wait(20.0)
    assert b"".join(written) == spelling.write(sent)
    assert [len(piece) for piece in written] == [1 << 18, 1 << 18, 600_012 - (1 << 19)]
    assert not at.is_gone()
    at.harness.wait(20.0)
    assert at.is_gone()
