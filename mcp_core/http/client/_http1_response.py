"""The errors of an HTTP/1.1 response, which h11 reads for a client.

No error quotes what the server wrote: it may have echoed what it was sent, such as a token.
"""

from __future__ import annotations

from typing import Final

from mcp_core._errors import ConnectionLost

__all__ = ["require_http", "response_error", "without_quoted_bytes"]

_VERSION: Final = b"HTTP/"
_TLS_ALERT: Final = b"\x15\x03"


def require_http(beginning: bytes, scheme: str = "https") -> None:
    """Check that the first bytes from a server begin an HTTP/1 response.

    A server of another protocol may send a few bytes and wait, and h11 would wait for the rest of
    the line.

    Args:
        beginning: the bytes, at least one.
        scheme: the URL scheme with TLS, for the error message.

    Raises:
        ConnectionLost: the bytes don't begin a response.
    """
    if beginning.startswith(_TLS_ALERT):
        raise ConnectionLost(f"the server speaks TLS; is its address {scheme}:// instead?")
    if not beginning.startswith(_VERSION[: len(beginning)]):
        raise ConnectionLost(
            "the server's answer is not HTTP/1.1; is something else listening there?"
        )


def response_error(exc: Exception, *, received: bool, ended: bool) -> ConnectionLost:
    """Return the error of a response that h11 refuses.

    Args:
        exc: h11's `RemoteProtocolError`.
        received: whether any byte of the response has arrived.
        ended: whether the server has closed the connection.
    """
    if not ended:
        return ConnectionLost(f"the server's answer is not HTTP/1.1: {without_quoted_bytes(exc)}")
    if not received:
        return ConnectionLost("the server closed the connection without an answer")
    return ConnectionLost("the server closed the connection in the middle of its answer")


def without_quoted_bytes(exc: Exception) -> str:
    """Return h11's message without the bytes that it quotes after the colon.

    Args:
        exc: h11's `RemoteProtocolError`.
    """
    return str(exc).partition(":")[0]
