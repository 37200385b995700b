"""The headers that let a page of another origin read a response (Fetch, CORS protocol).

Only pages that were listed by name get them (`Gate`), and credentials are never allowed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ._checks import ALLOWED

if TYPE_CHECKING:
    from collections.abc import Mapping

    from mcp_core.http.wire._messages import Headers

__all__ = ["preflight", "shared"]


_EXPOSED: Final = b"mcp-session-id, mcp-protocol-version"
_EXPOSED_IF_GUARDED: Final = _EXPOSED + b", www-authenticate, dpop-nonce"


def shared(origin: bytes, *, guarded: bool) -> Headers:
    """Return the headers of every response to a page of `origin`.

    If the endpoint is `guarded`, a page can also read the challenge that says how to get a token.
    """
    return [
        (b"access-control-allow-origin", origin),
        (b"access-control-expose-headers", _EXPOSED_IF_GUARDED if guarded else _EXPOSED),
        (b"vary", b"origin"),
    ]


def preflight(headers: Mapping[bytes, bytes]) -> Headers:
    """Return the headers of the response to a preflight request. `headers` are the request's."""
    return [
        (b"access-control-allow-methods", ALLOWED),
        (b"access-control-allow-headers", headers.get(b"access-control-request-headers", b"*")),
        (b"access-control-max-age", b"600"),
    ]
