"""Messages of a trace: split at line feeds, truncated at a limit, and as text if they are UTF-8."""

from __future__ import annotations

import hashlib
import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcp_core.trace import TruncatedMessage, _messages
from mcp_core.trace._messages import MessageBuffer, MessageSplitter, message_line

LONG = b"x" * 5000
TRUNCATED = TruncatedMessage(size=5000, sha256=hashlib.sha256(LONG).hexdigest())


def split(*chunks: bytes, limit: int = 4000) -> list[bytes]:
    splitter = MessageSplitter(limit)
    return [message for chunk in chunks for message, _ in splitter.feed(chunk)]


@pytest.mark.parametrize(
    ("chunks", "messages"),
    [
        ([b"a\nb\n"], [b"a", b"b"]),
        ([b"a", b"b\nc"], [b"ab"]),
        ([b"a\r\n", b"\n"], [b"a", b""]),
        ([b"a\r", b"\n"], [b"a"]),
        ([b""], []),
    ],
)
def test_lines_are_messages(chunks: list[bytes], messages: list[bytes]) -> None:
    assert split(*chunks) == messages


@given(st.lists(st.binary(max_size=5) | st.just(b"\n")), st.data())
def test_messages_do_not_depend_on_chunks(pieces: list[bytes], data: st.DataObject) -> None:
    stream = b"".join(pieces)
    cuts = sorted(data.draw(st.lists(st.integers(0, len(stream)))))
    chunks = [stream[i:j] for i, j in itertools.pairwise([0, *cuts, len(stream)])]
    assert split(*chunks, limit=3) == split(stream, limit=3)


@pytest.mark.parametrize("chunks", [[LONG + b"\n"], [LONG[:3000], LONG[3000:], b"\n"]])
def test_long_message_has_its_beginning_size_and_digest(chunks: list[bytes]) -> None:
    splitter = MessageSplitter(4000)
    found = [each for chunk in [*chunks, b"next\n"] for each in splitter.feed(chunk)]
    assert found == [(LONG[:1024], TRUNCATED), (b"next", None)]


@pytest.mark.parametrize("sizes", [[3, 3, 3], [5, 1, 1], [1, 1, 9], [4, 3], [2, 2, 2, 2, 2]])
def test_beginning_of_a_long_message_has_a_size_of_its_own(
    sizes: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A beginning that is complete, or isn't yet, stays so with each further piece."""
    monkeypatch.setattr(_messages, "_KEPT", 4)
    whole = b"abcdefghijklmnop"[: sum(sizes)]
    buffer = MessageBuffer(5)
    start = 0
    for size in sizes:
        buffer.add(whole[start : start + size])
        start += size
    digest = hashlib.sha256(whole).hexdigest()
    assert buffer.take() == (whole[:4], TruncatedMessage(size=len(whole), sha256=digest))
    assert buffer.take() == (b"", None)


def test_message_that_was_cut_is_taken_once() -> None:
    buffer = MessageBuffer(5)
    buffer.add(b"abc")
    digest = hashlib.sha256(b"abc").hexdigest()
    assert buffer.take(is_cut=True) == (b"abc", TruncatedMessage(size=3, sha256=digest))
    assert (len(buffer), buffer.take()) == (0, (b"", None))
    buffer.add(b"d")
    assert buffer.take() == (b"d", None)


def test_message_of_the_limit_is_whole() -> None:
    buffer = MessageBuffer(5000)
    buffer.add(LONG)
    assert len(buffer) == 5000
    assert buffer.take() == (LONG, None)
    assert len(buffer) == 0


def test_message_over_the_limit_costs_no_more_than_its_beginning() -> None:
    buffer = MessageBuffer(5000)
    for _ in range(100):
        buffer.add(b"x" * 3000)
    assert len(buffer) == 300_000
    assert buffer._data is not None
    assert len(buffer._data) == 1024


def test_unfinished_message_is_returned_at_the_end() -> None:
    splitter = MessageSplitter(9)
    assert splitter.feed(b"a\nbc") == [(b"a", None)]
    assert splitter.end() == (b"bc", None)
    assert splitter.end() is None


def test_message_with_lost_bytes_is_dropped() -> None:
    splitter = MessageSplitter(9)
    splitter.feed(b"be")
    splitter.skip()
    assert splitter.feed(b"ginning") == []
    assert splitter.end() is None
    assert splitter.feed(b" end\nnext\n") == [(b"next", None)]


@pytest.mark.parametrize(
    ("data", "truncated", "raw", "b64"),
    [
        (b"a", None, "a", None),
        ("é".encode(), None, "é", None),
        (b"\xff", None, None, b"\xff"),
        ("é".encode()[:1], None, None, "é".encode()[:1]),
        (b"a" + "é".encode()[:1], TRUNCATED, "a", None),
        (b"\xffabcdef", TRUNCATED, None, b"\xffabcdef"),
    ],
)
def test_message_is_text_if_it_is_utf_8(
    data: bytes, truncated: TruncatedMessage | None, raw: str | None, b64: bytes | None
) -> None:
    line = message_line(1.5, "client", data, truncated, 2, 3)
    assert (line.t, line.sender, line.conversation, line.exchange) == (1.5, "client", 2, 3)
    assert (line.raw, line.data) == (raw, b64)


@pytest.mark.parametrize("sizes", [(60,), (30, 30), (10, 10, 40), (50, 10), (51, 1, 8)])
def test_message_over_the_limit_has_the_digest_of_all_its_pieces(sizes: tuple[int, ...]) -> None:
    """And the buffer then takes another message."""
    whole = bytes(range(60))
    buffer = MessageBuffer(50)
    start = 0
    for size in sizes:
        buffer.add(whole[start : start + size])
        start += size
        assert len(buffer) == start
    cut = TruncatedMessage(size=60, sha256=hashlib.sha256(whole).hexdigest())
    assert buffer.take() == (whole, cut)
    assert len(buffer) == 0
    buffer.add(b"a")
    assert buffer.take() == (b"a", None)
    for piece in b"a", b"b":
        buffer.add(piece)
    assert buffer.take() == (b"ab", None)
    assert buffer.take() == (b"", None)


def test_message_of_the_limit_in_pieces_is_whole() -> None:
    buffer = MessageBuffer(50)
    for _ in range(2):
        buffer.add(b"x" * 25)
    assert buffer.take() == (b"x" * 50, None)


def test_splitter_has_nothing_left_after_a_line_in_pieces() -> None:
    splitter = MessageSplitter(50)
    assert splitter.feed(b"a") == []
    assert splitter.feed(b"b\n") == [(b"ab", None)]
    assert splitter.end() is None


def test_message_of_which_the_rest_never_came_is_truncated() -> None:
    for pieces in [b"abc"], [b"ab", b"c"]:
        buffer = MessageBuffer(50)
        for piece in pieces:
            buffer.add(piece)
        cut = TruncatedMessage(size=3, sha256=hashlib.sha256(b"abc").hexdigest())
        assert buffer.take(is_cut=True) == (b"abc", cut)


@pytest.mark.parametrize(
    ("data", "found"),
    [
        (b"a\n", [b"a"]),
        (b"a\r\n", [b"a"]),
        (b"\n", [b""]),
        (b"a\nb", [b"a"]),
        (b"a\nb\n", [b"a", b"b"]),
        (b"ab", []),
        (b"123456789\n", [b"123456789"]),  # with its line feed of the limit
        (b"1234567890\n", [b"1234567890"]),
        (b"1234567890\r\n", [b"1234567890\r"]),  # over the limit, so the text is its beginning
    ],
)
def test_splitter_returns_the_messages_that_end(data: bytes, found: list[bytes]) -> None:
    assert [message for message, _ in MessageSplitter(10).feed(data)] == found


@pytest.mark.parametrize(
    ("data", "raw"),
    [
        (b"ab\xf0\x9f\x98", "ab"),  # three of the four bytes of a character
        (b"ab\xc3", "ab"),
        (b"a\xffbcd", None),
        (b"a\xffbc", "a"),
    ],
)
def test_character_that_the_limit_cuts_is_left_out(data: bytes, raw: str | None) -> None:
    """Only within the last three bytes: others are no text at all."""
    cut = TruncatedMessage(size=99, sha256="")
    line = message_line(1.0, "client", data, cut)
    assert (line.raw, line.data) == (raw, None if raw is not None else data)
    assert (line.conversation, line.exchange) == (1, 0)
    assert message_line(1.0, "client", data, None).data == data
