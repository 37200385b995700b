"""The client's side of h11: the limits of a response's head and trailers."""

from __future__ import annotations

import h11
import pytest

from mcp_core.adapters import H11ResponseReader
from mcp_core.http import MAX_RESPONSE_HEAD
from mcp_core.runtime import READ_SIZE
from tests.harness.wire.http1_server import long_head


def pieces(data: bytes, cuts: tuple[int, ...]) -> list[bytes]:
    return [data[begin:end] for begin, end in zip((0, *cuts), (*cuts, len(data)), strict=True)]


def reader_of_a_response() -> H11ResponseReader:
    wire = H11ResponseReader()
    wire.send(h11.Request(method=b"GET", target=b"/", headers=[(b"host", b"here")]))
    wire.send(h11.EndOfMessage())
    return wire


CUTS: list[tuple[int, ...]] = [
    (),
    (1,),
    (30_000,),
    (60_000,),
    (MAX_RESPONSE_HEAD - 1,),
    (20_000, 40_000, 60_000),
]


@pytest.mark.parametrize("cuts", CUTS)
@pytest.mark.parametrize("interim", [b"", b"HTTP/1.1 103 Early Hints\r\nLink: a\r\n\r\n"])
@pytest.mark.parametrize("more", [0, 1, 10_000])
def test_response_head_is_accepted_or_refused_however_it_is_cut(
    more: int, interim: bytes, cuts: tuple[int, ...]
) -> None:
    """Also after an interim response, whose head counts for itself."""
    wire = reader_of_a_response()
    answers = []
    error = ""
    try:
        for piece in pieces(interim + long_head(MAX_RESPONSE_HEAD + more), cuts):
            wire.receive_data(piece)
            while type(event := wire.next_event()) in (h11.InformationalResponse, h11.Response):
                answers.append(event)
    except h11.RemoteProtocolError as exc:
        error = str(exc)
    assert error == ("the response's head has more than 65536 bytes" if more else "")
    assert [type(each) is h11.Response for each in answers] == [False] * bool(interim) + [True] * (
        not more
    )


CHUNKED = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
LONG_TRAILERS = "the response's trailers or a chunk's extensions have more than 65536 bytes"


def read_in_pieces(wire: H11ResponseReader, received: list[bytes]) -> tuple[bytes, str]:
    """Return a response's body as far as it was read, and the error or how it ended."""
    body = b""
    try:
        for piece in received:
            wire.receive_data(piece)
            while (event := wire.next_event()) is not h11.NEED_DATA:
                if type(event) is h11.EndOfMessage:
                    return body, "complete"
                body += bytes(event.data) if type(event) is h11.Data else b""
    except h11.RemoteProtocolError as exc:
        return body, str(exc)
    return body, "incomplete"


def trailers_of(size: int, lines: int) -> bytes:
    """Return trailers that have `size` bytes together, without the empty line at the end."""
    line = b"a: " + b"x" * (size // lines - 5) + b"\r\n"
    rest = size - lines * len(line)
    return line * (lines - 1) + line[:-2] + b"x" * rest + line[-2:]


@pytest.mark.parametrize("cuts", CUTS)
@pytest.mark.parametrize("lines", [1, 500])
@pytest.mark.parametrize("more", [0, 1, 10_000])
def test_response_trailers_are_accepted_or_refused_however_they_are_cut(
    more: int, lines: int, cuts: tuple[int, ...]
) -> None:
    """Without a limit here, those that come in one piece would have no limit at all."""
    trailers = trailers_of(MAX_RESPONSE_HEAD + more, lines)
    assert len(trailers) == MAX_RESPONSE_HEAD + more
    sent = [CHUNKED + b"2\r\nhi\r\n0\r\n", *pieces(trailers + b"\r\n", cuts)]
    body, end = read_in_pieces(reader_of_a_response(), sent)
    assert (body, end) == (b"hi", LONG_TRAILERS if more else "complete")


@pytest.mark.parametrize("unit", [b"a: b\r\n", b"a", b"a: " + b"x" * 1_000 + b"\r\n"])
def test_response_trailers_without_an_end_are_refused(unit: bytes) -> None:
    piece = unit * (READ_SIZE // len(unit) // 4)
    sent = [CHUNKED + b"0\r\n", *[piece] * 10]
    assert read_in_pieces(reader_of_a_response(), sent) == (b"", LONG_TRAILERS)


def test_chunk_extensions_without_an_end_are_refused() -> None:
    sent = [CHUNKED + b"2\r\nhi\r\n2;", *[b"a" * 20_000] * 10]
    assert read_in_pieces(reader_of_a_response(), sent) == (b"hi", LONG_TRAILERS)


def test_response_of_many_chunks_has_no_limit() -> None:
    chunk = b"4000\r\n" + b"x" * 0x4000 + b"\r\n"
    sent = [CHUNKED, *[chunk] * 20, b"0\r\nDigest: a\r\n\r\n"]
    assert read_in_pieces(reader_of_a_response(), sent) == (b"x" * 0x4000 * 20, "complete")
