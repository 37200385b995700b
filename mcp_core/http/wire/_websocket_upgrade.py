"""The WebSocket handshake over HTTP/1.1 at the server, and what both sides share of it.

1. A server supports one version (13), one subprotocol (`mcp`) and no extension. There is no
   compression, because a few compressed bytes may become gigabytes. Other requests are rejected
   with a hint to what is supported.
2. Authorization, `Host` and `Origin` are checked before, as for any other request.

The client's part is in `client/_websocket_upgrade.py`. Sources: RFC 6455, 4; RFC 9110, 7.8.
"""

from __future__ import annotations

import re
from base64 import b64encode
from hashlib import sha1
from typing import TYPE_CHECKING, Final

from ._messages import ErrorResponse, RequestHead

if TYPE_CHECKING:
    from ._messages import Headers

__all__ = [
    "accept_headers",
    "find_upgrade_error",
    "is_upgrade",
]

_WEBSOCKET: Final = b"websocket"

_UPGRADE: Final = b"upgrade"

_SUBPROTOCOL: Final = b"mcp"

_VERSION: Final = b"13"

_KEY: Final = re.compile(rb"[A-Za-z0-9+/]{21}[AQgw]==")  # 16 bytes

_GUID: Final = b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11"

_HAS_BODY: Final = ErrorResponse(400, "a request for a WebSocket must have no body")

_OTHER_VERSION: Final = ErrorResponse(
    426,
    "only version 13 of WebSocket is supported",
    [(b"upgrade", _WEBSOCKET), (b"connection", _UPGRADE), (b"sec-websocket-version", _VERSION)],
)

_NO_KEY: Final = ErrorResponse(400, "sec-websocket-key must be given once, as 16 bytes in base64")

_NO_SUBPROTOCOL: Final = ErrorResponse(
    400, "the subprotocol mcp must be offered: sec-websocket-protocol: mcp"
)


# -- The server side -----------------------------------------------------------------------------


def is_upgrade(head: RequestHead) -> bool:
    """Return True if a request asks to upgrade to a WebSocket."""
    if head.method != b"GET":
        return False
    protocols = _elements(head.headers, b"upgrade")
    return _WEBSOCKET in protocols and _UPGRADE in _elements(head.headers, b"connection")


def find_upgrade_error(head: RequestHead) -> ErrorResponse | None:
    """Return the error response to a request that `is_upgrade`, or None if it is valid."""
    headers = head.headers
    if _values(headers, b"transfer-encoding") or _values(headers, b"content-length") not in (
        [],
        [b"0"],
    ):
        return _HAS_BODY
    if _values(headers, b"sec-websocket-version") != [_VERSION]:
        return _OTHER_VERSION
    keys = _values(headers, b"sec-websocket-key")
    if len(keys) != 1 or not _KEY.fullmatch(keys[0]):
        return _NO_KEY
    # Names of subprotocols are case-sensitive, unlike those of protocols in `WebSocketUpgrade`.
    offered = [
        name.strip()
        for value in _values(headers, b"sec-websocket-protocol")
        for name in value.split(b",")
    ]
    return None if _SUBPROTOCOL in offered else _NO_SUBPROTOCOL


def accept_headers(head: RequestHead) -> Headers:
    """Return the headers of the 101 response to a valid request."""
    (key,) = _values(head.headers, b"sec-websocket-key")
    return [
        (b"upgrade", _WEBSOCKET),
        (b"connection", _UPGRADE),
        (b"sec-websocket-accept", _accept_key(key)),
        (b"sec-websocket-protocol", _SUBPROTOCOL),
    ]


# -- Both sides ----------------------------------------------------------------------------------


def _accept_key(key: bytes) -> bytes:
    return b64encode(sha1(key + _GUID, usedforsecurity=False).digest())


def _values(headers: Headers, name: bytes) -> list[bytes]:
    return [bytes(value).strip() for key, value in headers if key == name]


def _elements(headers: Headers, name: bytes) -> list[bytes]:
    """Return the elements of a list that may be spread over several fields, in lower case."""
    return [
        element.strip().lower() for value in _values(headers, name) for element in value.split(b",")
    ]
