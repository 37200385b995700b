"""Cache hints: for how long, and for whom, a client may reuse a result (2026-07-28).

They are set on the results of discovery, lists and `resources/read`. Earlier revisions leave them
out (`types._revisions.GATES`). They are advice to clients and control no access.
Page: server/utilities/caching.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Literal, TypeVar

from msgspec import Struct
from msgspec.structs import replace

if TYPE_CHECKING:
    from .types import CacheableResult

__all__ = ["Cache"]

R = TypeVar("R", bound="CacheableResult")

# In milliseconds. The largest integer that every JSON implementation keeps exact (RFC 8259
# section 6).
_MAX_TTL_MS: Final = 2**53 - 1


class Cache(Struct, frozen=True):
    """How long a client may reuse a result before it requests it again, and for whom.

    Args:
        ttl: time to live in seconds. 0 means that the result is stale at once.
        scope: "private" allows reuse for the requesting user only. "public" allows a gateway or
            proxy to serve it to any user, so use it only for results that are equal for all.

    Raises:
        ValueError: `ttl` is negative, infinite or NaN, or `scope` is neither of the two.
    """

    ttl: float = 0.0
    scope: Literal["public", "private"] = "private"

    def __post_init__(self) -> None:
        if not 0 <= self.ttl * 1000 <= _MAX_TTL_MS:
            raise ValueError(f"ttl is a number of seconds from 0 on, not {self.ttl!r}")
        if self.scope not in ("public", "private"):
            raise ValueError(f"scope is 'public' or 'private', not {self.scope!r}")

    def on(self, result: R) -> R:
        """Return a copy of `result` with these hints. Hints that `result` has are kept."""
        return replace(
            result,
            ttl_ms=round(self.ttl * 1000) if result.ttl_ms is None else result.ttl_ms,
            cache_scope=self.scope if result.cache_scope is None else result.cache_scope,
        )
