"""The server of a trace on a byte stream: lines in any pieces."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcp_core.trace import ReplayServer, ReplayStream
from tests.core.trace.judge.conversations import S, notify
from tests.core.trace.replay.traces import CALL, call, recorded, text
from tests.levels import fewer_examples

CALL_LINE = json.dumps(call(7, x="a")).encode() + b"\n"


def played(*pieces: bytes, limit: int = 1_000) -> bytes:
    stream = ReplayStream(ReplayServer(recorded(CALL)), 0.0, limit)
    sent = b""
    for piece in pieces:
        stream.receive_data(piece, 0.0)
        sent += stream.data_to_send()
    assert stream.data_to_send() == b""
    return sent


@pytest.mark.parametrize(
    "junk", [b"junk\r\n\n", b"x" * 2_000 + b"\n", b"[]\n", b'"\xff"\n'], ids=lambda each: each[:6]
)
@pytest.mark.parametrize("size", [1, 10_000])
def test_junk_gets_an_error_and_the_next_call_its_result(junk: bytes, size: int) -> None:
    data = junk + CALL_LINE
    lines = played(*(data[at : at + size] for at in range(0, len(data), size))).splitlines()
    error, answer = map(json.loads, lines)
    assert error["error"]["code"] in (-32700, -32600)
    assert answer == text(7, "A")


@given(st.lists(st.binary(max_size=9) | st.just(CALL_LINE), max_size=6))
@fewer_examples(3)
def test_pieces_give_what_the_whole_gives(pieces: list[bytes]) -> None:
    assert played(*pieces) == played(b"".join(pieces))


def test_message_before_the_first_of_the_client_is_sent_at_once() -> None:
    said = [S(notify("notifications/message", level="info", data="x")), *CALL]
    stream = ReplayStream(ReplayServer(recorded(said)), 0.0)
    assert json.loads(stream.data_to_send())["method"] == "notifications/message"


def test_pace_delays_what_is_sent() -> None:
    stream = ReplayStream(ReplayServer(recorded(CALL), pace=2.0), 10.0)
    stream.receive_data(CALL_LINE, 10.0)
    assert (stream.data_to_send(), stream.next_deadline) == (b"", 12.0)
    stream.advance(12.0)
    assert json.loads(stream.data_to_send()) == text(7, "A")
