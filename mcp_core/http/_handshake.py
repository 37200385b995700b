"""How a connection of HTTP/1.1 becomes a WebSocket: the request that asks for it and the answer to that, from both ends.

Rules of this file:

1. A server has one version (13), one subprotocol (`mcp`) and no extension: nothing is compressed, for a few bytes of that may be
   gigabytes. Who wants it otherwise is told what there is.
2. Who may ask at all, and under which name, is judged before and elsewhere, as for each other request.
3. A client believes an answer only if it proves that the question was read (RFC 6455, 4.1).

It refuses to know what is said on a WebSocket. Source: RFC 6455, 4; RFC 9110, 7.8.
"""

from __future__ import annotations

import re
from base64 import b64encode
from hashlib import sha1
from typing import TYPE_CHECKING, Final

from mcp_core._caller_options import check_headers
from mcp_core._errors import AuthRequired, ConnectFailed
from mcp_core.urls import Url

from ._call import header
from ._checks import Refused
from ._messages import Head, RequestHead
from ._response import Response, refusal

if TYPE_CHECKING:
    from collections.abc import Mapping

    from mcp_core._errors import McpTrioError

    from ._messages import Headers

__all__ = ["Upgrade", "accepted", "is_upgrade", "upgrade_fault"]

_WEBSOCKET, _UPGRADE, _SUBPROTOCOL = b"websocket", b"upgrade", b"mcp"
_VERSION: Final = b"13"
_KEY: Final = re.compile(rb"[A-Za-z0-9+/]{21}[AQgw]==")  # 16 bytes
_KEY_SIZE: Final = 16
_GUID: Final = b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11"
_SWITCHING: Final = 101
_REFUSALS: Final = 400  # and above: what comes with these may explain them
# How a server answers who can do without WebSockets.
_HTTP_ONLY: Final = frozenset({200, 405, 406})
_SCHEMES: Final = {"ws": "http", "wss": "https"}
_SECOND_LINE: Final = re.compile(r"sec-websocket-|upgrade$")

_UNAUTHORIZED: Final = (
    "no WebSocket: the server wants an access token, in headers={'authorization': 'Bearer ...'}"
)

_HAS_BODY: Final = Refused(400, "a request for a WebSocket has no body")
_OTHER_VERSION: Final = Refused(
    426,
    "version 13 of WebSocket is spoken here",
    [(b"upgrade", _WEBSOCKET), (b"connection", _UPGRADE), (b"sec-websocket-version", _VERSION)],
)
_NO_KEY: Final = Refused(400, "sec-websocket-key has to stand once, and to be 16 bytes in base64")
_NO_SUBPROTOCOL: Final = Refused(400, "the subprotocol mcp has to be offered: sec-websocket-protocol: mcp")


# -- At the server -----------------------------------------------------------------------------------------------------------


def is_upgrade(head: RequestHead) -> bool:
    """Whether a request asks to go on as a WebSocket."""
    if head.method != b"GET":
        return False
    asked = _elements(head.headers, b"upgrade")
    return _WEBSOCKET in asked and _UPGRADE in _elements(head.headers, b"connection")


def upgrade_fault(head: RequestHead) -> Refused | None:
    """The first thing that is wrong with a request that `is_upgrade`, None if there is nothing."""
    headers = head.headers
    if _values(headers, b"transfer-encoding") or _values(headers, b"content-length") not in ([], [b"0"]):
        return _HAS_BODY
    if _values(headers, b"sec-websocket-version") != [_VERSION]:
        return _OTHER_VERSION
    keys = _values(headers, b"sec-websocket-key")
    if len(keys) != 1 or not _KEY.fullmatch(keys[0]):
        return _NO_KEY
    # Names of subprotocols are compared to the letter, other than those of upgrades.
    offered = [
        name.strip() for value in _values(headers, b"sec-websocket-protocol") for name in value.split(b",")
    ]
    return None if _SUBPROTOCOL in offered else _NO_SUBPROTOCOL


def accepted(head: RequestHead) -> Headers:
    """The headers of the 101 to a request in which there is no fault."""
    (key,) = _values(head.headers, b"sec-websocket-key")
    return [
        (b"upgrade", _WEBSOCKET),
        (b"connection", _UPGRADE),
        (b"sec-websocket-accept", _proof(key)),
        (b"sec-websocket-protocol", _SUBPROTOCOL),
    ]


# -- At the client -----------------------------------------------------------------------------------------------------------


class Upgrade:
    """The request of a client who wants a WebSocket at a URL. Send `head`, and see by `refused` what was answered.

    Args:
        url: `ws://...` or `wss://...`.
        headers: beside those of the handshake.
        key: 16 random bytes.

    Raises:
        ValueError: the URL cannot be read, or a header cannot be sent, or is set by the protocol.
    """

    __slots__ = ("_key", "head", "url")

    def __init__(self, url: str, headers: Mapping[str, str], key: bytes) -> None:
        assert len(key) == _KEY_SIZE
        scheme, _, rest = url.partition(":")
        if scheme.lower() not in _SCHEMES:
            raise ValueError(f"a URL of ws or wss is needed, not {url!r}")
        self.url = Url.parse(f"{_SCHEMES[scheme.lower()]}:{rest}")
        check_headers(headers)
        for name in headers:
            if _SECOND_LINE.match(name.lower()):
                raise ValueError(f"the header {name} is set by the protocol")
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
                *((name.lower().encode(), value.encode("latin-1")) for name, value in headers.items()),
            ],
        )

    def __repr__(self) -> str:
        return f"<Upgrade at {self.url}>"

    def refused(self, head: Head, body: bytes = b"") -> McpTrioError | None:
        """Why there is no WebSocket; None if there is one, which begins right behind `head`. `body`: what came with a refusal, as far
        as it was read."""
        status = head.status
        if status != _SWITCHING:
            what = "no WebSocket: "
            if status in _HTTP_ONLY:
                what = f"no WebSocket, perhaps there is only {self.url.scheme}://: "
            if status < _REFUSALS:
                head, body = Head(status, [each for each in head.headers if each[0] == b"location"]), b""
            response = Response(head, len(body))
            list(response.feed(body))
            error = refusal(what, response)
            if isinstance(error, AuthRequired):  # who is to be asked for one, only a client of HTTP finds out
                error = AuthRequired(_UNAUTHORIZED, error.scopes, challenge=error.challenge)
            return error
        headers = head.headers
        if _WEBSOCKET not in _elements(headers, b"upgrade") or _UPGRADE not in _elements(
            headers, b"connection"
        ):
            return ConnectFailed("no WebSocket: the server switches to something else")
        if _values(headers, b"sec-websocket-accept") != [_proof(self._key)]:
            return ConnectFailed(
                "no WebSocket: the server has not read what it answers to; is a cache in between?"
            )
        if header(head, b"sec-websocket-extensions") is not None:
            return ConnectFailed("no WebSocket: the server wants an extension that was not offered")
        if _values(headers, b"sec-websocket-protocol") != [_SUBPROTOCOL]:
            return ConnectFailed(
                "no WebSocket: the server does not speak mcp on it; is this the URL of an MCP server?"
            )
        return None


# -- Both --------------------------------------------------------------------------------------------------------------------


def _proof(key: bytes) -> bytes:
    return b64encode(sha1(key + _GUID, usedforsecurity=False).digest())


def _values(headers: Headers, name: bytes) -> list[bytes]:
    return [bytes(value).strip() for key, value in headers if key == name]


def _elements(headers: Headers, name: bytes) -> list[bytes]:
    """The elements of lists that any number of headers make up."""
    return [element.strip().lower() for value in _values(headers, name) for element in value.split(b",")]
