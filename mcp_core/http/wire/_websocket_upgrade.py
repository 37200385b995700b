"""The WebSocket handshake over HTTP/1.1 at the server, and what both sides share of it.

1. A server supports one version (13), the subprotocols of its options (`mcp` by default) and no
   extension. There is no compression, because a few compressed bytes may become gigabytes. Other
   requests are rejected with a hint to what is supported.
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
    from collections.abc import Iterable, Sequence

    from ._messages import Headers

__all__ = [
    "SUBPROTOCOLS",
    "accept_headers",
    "checked_subprotocols",
    "find_upgrade_error",
    "is_upgrade",
]

_WEBSOCKET: Final = b"websocket"

_UPGRADE: Final = b"upgrade"

# The one that the official SDKs use.
SUBPROTOCOLS: Final = ("mcp",)

_TOKEN: Final = re.compile(r"[!#$%&'*+\-.^_`|~0-9A-Za-z]{1,128}")

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


# -- The server side -----------------------------------------------------------------------------


def is_upgrade(head: RequestHead) -> bool:
    """Return True if a request asks to upgrade to a WebSocket."""
    if head.method != b"GET":
        return False
    protocols = _elements(head.headers, b"upgrade")
    return _WEBSOCKET in protocols and _UPGRADE in _elements(head.headers, b"connection")


def find_upgrade_error(head: RequestHead, subprotocols: Sequence[str]) -> ErrorResponse | None:
    """Return the error response to a request that `is_upgrade`, or None if it is valid.

    It has to offer one of `subprotocols`, unless there are none.
    """
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
    if not subprotocols or _select(head, subprotocols) is not None:
        return None
    first, *others = subprotocols
    names = f"{first}, or one of {', '.join(others)}," if others else first
    return ErrorResponse(
        400, f"the subprotocol {names} must be offered: sec-websocket-protocol: {first}"
    )


def accept_headers(head: RequestHead, subprotocols: Sequence[str]) -> Headers:
    """Return the headers for the 101 response to a valid request.

    The client prefers what it offers first, so the first of `subprotocols` that it offers is
    selected; without any of them no subprotocol is.
    """
    (key,) = _values(head.headers, b"sec-websocket-key")
    headers = [
        (b"upgrade", _WEBSOCKET),
        (b"connection", _UPGRADE),
        (b"sec-websocket-accept", _accept_key(key)),
    ]
    selected = _select(head, subprotocols)
    if selected is not None:
        headers.append((b"sec-websocket-protocol", selected.encode()))
    return headers


def _select(head: RequestHead, subprotocols: Sequence[str]) -> str | None:
    # Names of subprotocols are case-sensitive, unlike protocol names in `WebSocketUpgrade`.
    for value in _values(head.headers, b"sec-websocket-protocol"):
        for name in value.decode("latin-1").split(","):
            if name.strip() in subprotocols:
                return name.strip()
    return None


# -- Both sides ----------------------------------------------------------------------------------


def checked_subprotocols(names: Iterable[str]) -> tuple[str, ...]:
    """Return names of subprotocols as they are sent, in order of preference.

    Raises:
        ValueError: they are one text instead of several, or one isn't a token of at most 128
            characters, or stands twice (RFC 6455, 4.1).
    """
    found = tuple(names)
    if isinstance(names, str) or len(set(found)) < len(found):
        raise ValueError(f"subprotocols are a list of names, each once, not {names!r}")
    for name in found:
        if not _TOKEN.fullmatch(name):
            raise ValueError(f"{name!r} is not the name of a subprotocol: it has to be a token")
    return found


def _accept_key(key: bytes) -> bytes:
    return b64encode(sha1(key + _GUID, usedforsecurity=False).digest())


def _values(headers: Headers, name: bytes) -> list[bytes]:
    return [bytes(value).strip() for key, value in headers if key == name]


def _elements(headers: Headers, name: bytes) -> list[bytes]:
    """Return the elements of a list that may be spread over several fields, in lower case."""
    return [
        element.strip().lower() for value in _values(headers, name) for element in value.split(b",")
    ]
