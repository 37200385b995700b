"""What a browser has to be told before a page from elsewhere may read an answer (Fetch, CORS protocol).

Rule of this file: it is said to pages that were listed by name, and to nobody else; and never that credentials may be sent along.

Which pages those are `_authority.py` decides.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ._checks import ALLOWED

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ._messages import Headers

__all__ = ["preflight", "shared"]


_EXPOSED: Final = b"mcp-session-id, mcp-protocol-version"
_EXPOSED_AT_A_DOOR: Final = _EXPOSED + b", www-authenticate, dpop-nonce"


def shared(origin: bytes, *, guarded: bool) -> Headers:
    """What every answer to a page of `origin` says. `guarded`: a page may have to read how it gets a token."""
    return [
        (b"access-control-allow-origin", origin),
        (b"access-control-expose-headers", _EXPOSED_AT_A_DOOR if guarded else _EXPOSED),
        (b"vary", b"origin"),
    ]


def preflight(headers: Mapping[bytes, bytes]) -> Headers:
    """What is said to a browser that asks beforehand. `headers` are those of its question."""
    return [
        (b"access-control-allow-methods", ALLOWED),
        (b"access-control-allow-headers", headers.get(b"access-control-request-headers", b"*")),
        (b"access-control-max-age", b"600"),
    ]
