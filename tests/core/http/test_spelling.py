"""Frames as wsproto reads them: what each comes to, in whatever pieces it arrives, and that a length is told when its head is there."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import pytest
import wsproto.frame_protocol
from hypothesis import given
from hypothesis import strategies as st

from mcp_core import Limits
from mcp_core.http import Close, Ping, Pong, Spelling, Text
from mcp_core.registry import Server
from tests.core.http.frames import ASK, PING, ROWS, TEXT, close, frame, message, short
from tests.core.http.sockets import Played, SocketTalk
from tests.core.http.test_websocket import client


def played() -> tuple[Played, Spelling]:
    server = Server("house", limits=Limits(message=100_000))
    played = SocketTalk(server).connect()
    return played, Spelling(played.socket, wsproto.frame_protocol, client=False)


def frames_in(data: bytes) -> list[Any]:
    """A server's frames, in short."""
    found = []
    while data:
        size, start = data[1], 2
        if size > 125:
            start = 4 if size == 126 else 10
            size = int.from_bytes(data[2:start], "big")
        found.append(short(data[0] & 0x0F, data[start : start + size]))
        data = data[start + size :]
    return found


def heard(pieces: list[bytes]) -> list[Any]:
    at, spelling = played()
    said: list[bytes] = []
    for piece in pieces:
        spelling.read(piece, 0.0)
        at.settle()
        said.append(spelling.write(at.take()))
    return frames_in(b"".join(said))


@pytest.mark.parametrize(("data", "answers"), [row[1:] for row in ROWS], ids=[row[0] for row in ROWS])
def test_frames(data: bytes, answers: list[Any]) -> None:
    assert heard([data]) == answers
    if len(data) < 10_000:
        assert heard([data[at : at + 1] for at in range(len(data))]) == answers


@given(row=st.sampled_from(ROWS), cuts=st.lists(st.integers(0, 400), max_size=5))
def test_pieces_make_no_difference(row: tuple[str, bytes, list[Any]], cuts: list[int]) -> None:
    _, data, answers = row
    marks = [0, *sorted({min(cut, len(data)) for cut in cuts}), len(data)]
    assert heard([data[start:end] for start, end in pairwise(marks)]) == answers


@given(st.lists(st.binary(max_size=40), max_size=8))
def test_whatever_comes_it_has_an_end(pieces: list[bytes]) -> None:
    """Nothing is raised, and behind a Close nothing is said."""
    for said in (heard(pieces), heard([frame(TEXT, piece) for piece in pieces])):
        codes = [each for each in said if isinstance(each, int)]
        assert len(codes) <= 1
        assert codes == [] or said[-1] == codes[0]


def test_a_length_is_judged_before_anything_is_kept() -> None:
    at, spelling = played()
    spelling.read(frame(TEXT, length=1 << 62), 0.0)
    at.settle()
    assert at.heard() == [1009]
    for _ in range(100):
        spelling.read(bytes(65_536), 0.0)
    assert at.heard() == []


def test_what_comes_behind_a_close_is_thrown_away() -> None:
    at, spelling = played()
    spelling.read(close(1000), 0.0)
    for _ in range(100):
        spelling.read(message(ASK), 0.0)
    at.settle()
    assert at.heard() == [1000]


def test_what_is_said_is_spelled() -> None:
    _, spelling = played()
    said = spelling.write([Text("{}"), Ping(), Pong(b"x"), Close(4000, "so")])
    assert said == b"\x81\x02{}" + b"\x89\x00" + b"\x8a\x01x" + b"\x88\x04\x0f\xa0so"


def test_a_client_masks() -> None:
    socket = client()
    spelling = Spelling(socket, wsproto.frame_protocol, client=True)
    first, second = spelling.write([Ping()]), spelling.write([Text("{}")])
    assert (first[:2], second[:2], len(first), len(second)) == (b"\x89\x80", b"\x81\x82", 6, 8)
    assert bytes(byte ^ second[2 + at] for at, byte in enumerate(second[6:])) == b"{}"
    spelling.read(frame(PING, b"?", mask=False), 0.0)
    assert Pong(b"?") in socket.messages_to_send(0.0)
    spelling.read(frame(PING, b"?"), 0.0)
    assert socket.deaf


def test_what_is_long_leaves_in_pieces() -> None:
    """Whoever reads slowly is known to read."""
    at, spelling = played()
    said: list[Text | Ping] = [Text("x" * 600_000), Ping()]
    written = []
    at.socket.messages_to_send(0.0)
    times = iter((5.0, 25.0, 45.0))
    for piece in spelling.pieces(said, times.__next__):
        written.append(bytes(piece))
        at.talk.wait(20.0)
    assert b"".join(written) == spelling.write(said)
    assert [len(piece) for piece in written] == [1 << 18, 1 << 18, 600_012 - (1 << 19)]
    assert not at.is_gone()
    at.talk.wait(20.0)
    assert at.is_gone()
