"""The errors of a response that h11 refuses do not quote what the server wrote."""

from __future__ import annotations

import pytest

from mcp_core import ConnectionLost
from mcp_core.http import require_http, response_error

NOT_HTTP = "the server's answer is not HTTP/1.1; is something else listening there?"


@pytest.mark.parametrize("beginning", [b"H", b"HTTP", b"HTTP/1.1 200", b"HTTP/2"])
def test_beginning_of_http_is_accepted(beginning: bytes) -> None:
    require_http(beginning)


@pytest.mark.parametrize(
    ("beginning", "scheme", "text"),
    [
        (b"S", "https", NOT_HTTP),
        (b"220 ", "https", NOT_HTTP),
        (b"HTTPS", "https", NOT_HTTP),
        (b"\x15\x03\x01", "https", "the server speaks TLS; is its address https:// instead?"),
        (b"\x15\x03\x01", "wss", "the server speaks TLS; is its address wss:// instead?"),
    ],
)
def test_other_beginning_is_refused(beginning: bytes, scheme: str, text: str) -> None:
    with pytest.raises(ConnectionLost) as caught:
        require_http(beginning, scheme)
    assert str(caught.value) == text


@pytest.mark.parametrize(
    ("received", "ended", "text"),
    [
        (True, False, "the server's answer is not HTTP/1.1: illegal header line"),
        (True, True, "the server closed the connection in the middle of its answer"),
        (False, True, "the server closed the connection without an answer"),
    ],
)
def test_error_of_a_response_quotes_nothing(received: bool, ended: bool, text: str) -> None:
    exc = ValueError("illegal header line: bytearray(b'x a secret')")
    assert str(response_error(exc, received=received, ended=ended)) == text
