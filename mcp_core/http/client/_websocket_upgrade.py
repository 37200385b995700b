"""The WebSocket handshake over HTTP/1.1 at the client: the request, and the check of the response.

1. A client accepts a response only if it proves that the server read the request (RFC 6455, 4.1).
2. It offers the subprotocols of its options (`mcp` by default) and no extension, and accepts
   nothing else.
3. Redirects are followed as for other requests (`_redirects.py`). The status 101 is the server's,
   so a redirect was sent before any message.

The server's part, and what both share, is in `wire/_websocket_upgrade.py`.
"""

from __future__ import annotations

import re
from base64 import b64encode
from collections.abc import Iterable, Mapping
from typing import Final

from mcp_core._errors import AuthRequired, ConnectFailed, McpTrioError
from mcp_core._secret_patterns import is_secret_name
from mcp_core.http.wire._mcp_headers import check_headers
from mcp_core.http.wire._messages import Head, RequestHead, header
from mcp_core.http.wire._websocket_upgrade import (
    _UPGRADE,
    _VERSION,
    _WEBSOCKET,
    SUBPROTOCOLS,
    _accept_key,
    _elements,
    _values,
    checked_subprotocols,
)
from mcp_core.urls._transports import URL_TRANSPORTS
from mcp_core.urls._url import Url, redacted_url

from ._options import check_cleartext
from ._response import Response, error_for_status, has_token, is_token_refused

__all__ = [
    "WebSocketUpgrade",
]

_KEY_SIZE: Final = 16

_WEBSOCKET_URL: Final = re.compile(rb"wss?://", re.IGNORECASE)

_SWITCHING_PROTOCOLS: Final = 101

_FIRST_ERROR: Final = 400  # the body of a response with this status or a higher one may explain it

# The status of servers that ignore the upgrade: they probably offer MCP over plain HTTP here.
_HTTP_ONLY: Final = frozenset({200, 405, 406})


_HTTP: Final = re.compile(r"\bhttp(s?)://")

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
    """The upgrade request of a client: send `head`, and pass the response's head to `follow`.

    If that returns another upgrade, go on with it on a new connection. Otherwise pass the response
    to `find_error`.

    Args:
        url: `ws://...` or `wss://...`.
        headers: the request's additional headers.
        key: 16 random bytes.
        allow_cleartext: as of `HttpClientOptions`.
        subprotocols: names of subprotocols to offer, the preferred one first; the server has to
            select one of them. With none, it has to select none.

    Raises:
        ValueError: the URL or `subprotocols` are invalid, or a header is invalid, set by the
            protocol, or would be sent unencrypted (`find_cleartext_error`).
    """

    __slots__ = ("_headers", "_key", "_redirected", "_subprotocols", "head", "url")

    def __init__(
        self,
        url: str,
        headers: Mapping[str, str],
        key: bytes,
        *,
        allow_cleartext: bool = False,
        subprotocols: Iterable[str] = SUBPROTOCOLS,
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
        self._headers = headers
        self._subprotocols = names = checked_subprotocols(subprotocols)
        self._redirected: tuple[Url, ...] = ()
        self._key = b64encode(key)
        offer = [(b"sec-websocket-protocol", ", ".join(names).encode())] if names else []
        self.head = RequestHead(
            b"GET",
            self.url.target,
            [
                (b"host", self.url.authority),
                (b"upgrade", _WEBSOCKET),
                (b"connection", _UPGRADE),
                (b"sec-websocket-key", self._key),
                (b"sec-websocket-version", _VERSION),
                *offer,
                *(
                    (name.lower().encode(), value.encode("latin-1"))
                    for name, value in headers.items()
                ),
            ],
        )

    def __repr__(self) -> str:
        return f"<WebSocketUpgrade at {self.url}>"

    def follow(self, head: Head, key: bytes) -> WebSocketUpgrade | None:
        """Return the upgrade to go on with if the response with `head` is a redirect.

        Return None if it isn't, or isn't followed; then `find_error` says why. `key` is 16 random
        bytes.
        """
        target = self._target_of(head)
        if not isinstance(target, Url):
            return None
        following = WebSocketUpgrade(
            _as_websocket(target.text),
            self._headers,
            key,
            allow_cleartext=True,  # it was checked, and the origin is the same
            subprotocols=self._subprotocols,
        )
        following._redirected = (*self._redirected, self.url)
        return following

    def _target_of(self, head: Head) -> Url | str:
        """Return where a redirect leads, why it isn't followed, or "" if it isn't a redirect."""
        if not 300 <= head.status < _FIRST_ERROR:
            return ""
        from ._redirects import redirect_target  # on first use

        location = header(head, b"location")
        if location is not None and _WEBSOCKET_URL.match(location):
            head = Head(head.status, [(b"location", b"http" + location[2:])])
        return redirect_target(
            (*self._redirected, self.url),
            head,
            has_credential=any(map(is_secret_name, self._headers)),
        )

    def find_error(self, head: Head, body: bytes = b"") -> McpTrioError | None:
        """Return why there is no WebSocket, or None if it begins right after `head`.

        `body` is the body of an error response, as far as it was read.
        """
        status = head.status
        if status != _SWITCHING_PROTOCOLS:
            context = "no WebSocket: "
            if status in _HTTP_ONLY:
                context = f"no WebSocket, perhaps there is only {self.url.scheme}://: "
            target = self._target_of(head)
            redirect = _as_websocket(target) if isinstance(target, str) else ""
            if status < _FIRST_ERROR:
                # Nothing in a redirect or a success explains the error.
                head = Head(status, [])
                body = b""
            response = Response(head, len(body))
            list(response.feed(body))
            error = error_for_status(context, response, redirect=redirect)
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
        selected = [name.decode("latin-1") for name in _values(headers, b"sec-websocket-protocol")]
        if not (self._subprotocols or selected):
            return None
        if len(selected) != 1 or selected[0] not in self._subprotocols:
            spoken = " or ".join(self._subprotocols) or "a conversation without a subprotocol"
            cure = "" if selected else ", or does it need subprotocols=()"
            return ConnectFailed(
                f"no WebSocket: the server does not speak {spoken} on it; is this the URL of an MCP"
                f" server{cure}?"
            )
        return None


def _as_websocket(text: str) -> str:
    """Return a text with the schemes of WebSocket URLs."""
    return _HTTP.sub(r"ws\1://", text)
