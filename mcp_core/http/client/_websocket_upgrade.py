"""The WebSocket handshake over HTTP/1.1 at the client: the request, and the check of the response.

1. A client accepts a response only if it proves that the server read the request (RFC 6455, 4.1).
2. It offers one subprotocol (`mcp`) and no extension, and accepts nothing else.

The server's part, and what both share, is in `wire/_websocket_upgrade.py`.
"""

from __future__ import annotations

import re
from base64 import b64encode
from typing import TYPE_CHECKING, Final

from mcp_core._errors import AuthRequired, ConnectFailed
from mcp_core.http.wire._mcp_headers import check_headers
from mcp_core.http.wire._messages import Head, RequestHead, header
from mcp_core.http.wire._websocket_upgrade import (
    _SUBPROTOCOL,
    _UPGRADE,
    _VERSION,
    _WEBSOCKET,
    _accept_key,
    _elements,
    _values,
)
from mcp_core.urls._transports import URL_TRANSPORTS
from mcp_core.urls._url import Url, redacted_url

from ._options import check_cleartext
from ._response import Response, error_for_status, has_token, is_token_refused

if TYPE_CHECKING:
    from collections.abc import Mapping

    from mcp_core._errors import McpTrioError

__all__ = [
    "WebSocketUpgrade",
]

_KEY_SIZE: Final = 16

_SWITCHING_PROTOCOLS: Final = 101

_FIRST_ERROR: Final = 400  # the body of a response with this status or a higher one may explain it

# The status of servers that ignore the upgrade: they probably offer MCP over plain HTTP here.
_HTTP_ONLY: Final = frozenset({200, 405, 406})


_RESERVED: Final = re.compile(r"sec-websocket-|upgrade$")  # headers of the handshake itself

_UNAUTHORIZED: Final = (
    "no WebSocket: the server requires an access token, in headers={'authorization': 'Bearer ...'}"
)

_NOT_ACCEPTED: Final = (
    "no WebSocket: the server does not accept the access token or API key in headers=. It is "
    "wrong, expired or revoked"
)


# -- The client side -----------------------------------------------------------------------------


class WebSocketUpgrade:
    """The upgrade request of a client. Send `head`, then pass the response to `find_error`.

    Args:
        url: `ws://...` or `wss://...`.
        headers: additional headers of the request.
        key: 16 random bytes.
        allow_cleartext: as of `HttpClientOptions`.

    Raises:
        ValueError: the URL is invalid, or a header is invalid, set by the protocol, or would be
            sent unencrypted (`find_cleartext_error`).
    """

    __slots__ = ("_key", "head", "url")

    def __init__(
        self, url: str, headers: Mapping[str, str], key: bytes, *, allow_cleartext: bool = False
    ) -> None:
        assert len(key) == _KEY_SIZE
        scheme, _, rest = url.partition(":")
        row = URL_TRANSPORTS.get(scheme.lower())
        if row is None or not row.is_websocket:
            raise ValueError(f"a ws:// or wss:// URL is needed, not {redacted_url(url)}")
        self.url = Url.parse(f"{row.http_scheme}:{rest}")
        check_headers(headers)
        for name in headers:
            if _RESERVED.match(name.lower()):
                raise ValueError(f"the header {name} is set by the protocol")
        check_cleartext(self.url, headers, allow=allow_cleartext, websocket=True)
        self._key = b64encode(key)
        self.head = RequestHead(
            b"GET",
            self.url.target,
            [
                (b"host", self.url.authority),
                (b"upgrade", _WEBSOCKET),
                (b"connection", _UPGRADE),
                (b"sec-websocket-key", self._key),
                (b"sec-websocket-version", _VERSION),
                (b"sec-websocket-protocol", _SUBPROTOCOL),
                *(
                    (name.lower().encode(), value.encode("latin-1"))
                    for name, value in headers.items()
                ),
            ],
        )

    def __repr__(self) -> str:
        return f"<WebSocketUpgrade at {self.url}>"

    def find_error(self, head: Head, body: bytes = b"") -> McpTrioError | None:
        """Return why there is no WebSocket, or None if it begins right after `head`.

        `body` is the body of an error response, as far as it was read.
        """
        status = head.status
        if status != _SWITCHING_PROTOCOLS:
            context = "no WebSocket: "
            if status in _HTTP_ONLY:
                context = f"no WebSocket, perhaps there is only {self.url.scheme}://: "
            if status < _FIRST_ERROR:
                # Nothing of a redirect or a success explains the error, but its location.
                head = Head(status, [field for field in head.headers if field[0] == b"location"])
                body = b""
            response = Response(head, len(body))
            list(response.feed(body))
            error = error_for_status(context, response)
            if isinstance(error, AuthRequired):  # only the HTTP client can discover and log in
                refused = is_token_refused(head, sent_token=has_token(self.head.headers))
                text = _NOT_ACCEPTED if refused else _UNAUTHORIZED
                error = AuthRequired(text, error.scopes, challenge=error.challenge)
            return error
        headers = head.headers
        if _WEBSOCKET not in _elements(headers, b"upgrade") or _UPGRADE not in _elements(
            headers, b"connection"
        ):
            return ConnectFailed("no WebSocket: the server switched to another protocol")
        if _values(headers, b"sec-websocket-accept") != [_accept_key(self._key)]:
            return ConnectFailed(
                "no WebSocket: sec-websocket-accept does not match the request; is there a cache "
                "in between?"
            )
        if header(head, b"sec-websocket-extensions") is not None:
            return ConnectFailed("no WebSocket: the server wants an extension that was not offered")
        if _values(headers, b"sec-websocket-protocol") != [_SUBPROTOCOL]:
            return ConnectFailed(
                "no WebSocket: the server does not speak mcp on it; is this the URL of an MCP "
                "server?"
            )
        return None
