"""The client's side of h11: the limit of a response's head."""

from __future__ import annotations

import h11
import pytest

from mcp_core.adapters import H11ResponseReader
from mcp_core.http import MAX_RESPONSE_HEAD
from tests.harness.wire.http1_server import long_head


def pieces(data: bytes, cuts: tuple[int, ...]) -> list[bytes]:
    return [data[begin:end] for begin, end in zip((0, *cuts), (*cuts, len(data)), strict=True)]


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
    wire = H11ResponseReader()
    wire.send(h11.Request(method=b"GET", target=b"/", headers=[(b"host", b"here")]))
    wire.send(h11.EndOfMessage())
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
