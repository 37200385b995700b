"""Which transport the URL of a server uses: one row for each scheme.

`connect`, the host and the command ask here, and compare no scheme themselves.
"""

from __future__ import annotations

from typing import Final, Literal, NamedTuple

__all__ = ["URL_TRANSPORTS", "UrlTransport", "http_url", "url_transport"]


class UrlTransport(NamedTuple):
    """How a client reaches servers whose URL has a certain scheme.

    Args:
        name: the transport, as in a trace.
        http_scheme: the scheme for HTTP requests, or for a WebSocket's upgrade request.
    """

    name: Literal["http", "websocket"]
    http_scheme: Literal["http", "https"]

    @property
    def is_websocket(self) -> bool:
        """True if the transport is a WebSocket (RFC 6455)."""
        return self.name == "websocket"

    @property
    def has_login(self) -> bool:
        """True if a client can log in: a WebSocket is given its token in headers."""
        return self.name == "http"


# By scheme, in lower case. A scheme of one's own is one more row.
URL_TRANSPORTS: Final[dict[str, UrlTransport]] = {
    "http": UrlTransport("http", "http"),
    "https": UrlTransport("http", "https"),
    "ws": UrlTransport("websocket", "http"),
    "wss": UrlTransport("websocket", "https"),
}


def url_transport(target: str) -> UrlTransport | None:
    """Return the transport for a server's URL; None if it isn't a URL, or its scheme is unknown.

    Args:
        target: the URL, or another text.
    """
    scheme, mark, _ = target.partition("://")
    return URL_TRANSPORTS.get(scheme.lower()) if mark else None


def http_url(target: str) -> str:
    """Return a server's URL with `http` or `https` in place of a WebSocket's scheme.

    Other URLs, and what isn't a URL, are returned unchanged.

    Args:
        target: the URL, or another text.
    """
    row = url_transport(target)
    if row is None or not row.is_websocket:
        return target
    return f"{row.http_scheme}://{target.partition('://')[2]}"
