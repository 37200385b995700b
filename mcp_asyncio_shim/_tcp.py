"""TCP connections to servers, with TLS where the URL asks for it."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final

from mcp_core import ConnectFailed

from ._driver import move_on_after

if TYPE_CHECKING:
    import ssl

    from mcp_core.http import Url

    from ._link import Streams

__all__ = ["CONNECT_TIMEOUT", "cannot_connect", "open_http_streams", "open_streams"]

CONNECT_TIMEOUT: Final = 10.0


async def open_http_streams(url: Url, tls: ssl.SSLContext | None) -> Streams:
    """Open a TCP connection to the server at `url`, with TLS for `https`.

    Raises:
        ConnectFailed: the server cannot be reached within 10 s.
    """
    try:
        with move_on_after(CONNECT_TIMEOUT):
            return await open_streams(url, tls)
    except OSError as exc:
        raise cannot_connect(url, exc) from exc
    raise cannot_connect(url, TimeoutError())


async def open_streams(url: Url, tls: ssl.SSLContext | None) -> Streams:
    """Open a TCP connection, with TLS for `https`, without a limit of time.

    Raises:
        OSError: the server cannot be reached.
    """
    context = (tls or True) if url.scheme == "https" else None
    return await asyncio.open_connection(url.host, url.port, ssl=context)


def cannot_connect(url: Url, exc: Exception) -> ConnectFailed:
    """Return the error for a server that cannot be reached."""
    return ConnectFailed(f"cannot connect to {url.authority.decode()}: {str(exc) or 'no answer'}")
