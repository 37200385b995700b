"""What a browser has to be told before a page from elsewhere may read an answer (Fetch, CORS protocol).

Rule of this file: it is said to pages that were listed by name, and to nobody else; and never that credentials may be sent along.

Which pages those are `_authority.py` decides.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ._checks import ALLOWED

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ._messages import Headers

__all__ = ["preflight", "shared"]


def shared(origin: bytes) -> Headers:
    """What every answer to a page of `origin` says."""
    return [
        (b"access-control-allow-origin", origin),
        (b"access-control-expose-headers", b"mcp-session-id, mcp-protocol-version, www-authenticate"),
        (b"vary", b"origin"),
    ]


def preflight(headers: Mapping[bytes, bytes]) -> Headers:
    """What is said to a browser that asks beforehand. `headers` are those of its question."""
    return [
        (b"access-control-allow-methods", ALLOWED),
        (b"access-control-allow-headers", headers.get(b"access-control-request-headers", b"*")),
        (b"access-control-max-age", b"600"),
    ]
