"""How long an answer may be kept, and by whom: the hints that revision 2026-07-28 puts on what a server tells of itself,
lists and lets be read.

Rules of this file:

1. A hint that a result has already is left alone, and no result is changed: what lacks a hint is copied.
2. Hints are advice to clients. Nothing asks them who may see an answer.

It does not know revisions: those without hints leave them out (`types._revisions.GATES`). Page: server/utilities/caching.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Literal, TypeVar

from msgspec import Struct
from msgspec.structs import replace

if TYPE_CHECKING:
    from .types import CacheableResult

__all__ = ["Cache"]

R = TypeVar("R", bound="CacheableResult")

# In milliseconds, the largest integer that every JSON implementation keeps exact (RFC 8259 section 6).
_LONGEST: Final = 2**53 - 1


class Cache(Struct, frozen=True):
    """For how long a client may use an answer again before it asks anew, and for whom.

    Args:
        ttl: seconds; 0 says that the answer is out of date at once.
        scope: "private" keeps it for the user who asked; "public" lets a gateway or proxy give it to anybody, so it is for
            what is the same for all.

    Raises:
        ValueError: `ttl` is negative, endless or no number, or `scope` is neither word.
    """

    ttl: float = 0.0
    scope: Literal["public", "private"] = "private"

    def __post_init__(self) -> None:
        if not 0 <= self.ttl * 1000 <= _LONGEST:
            raise ValueError(f"ttl is a number of seconds from 0 on, not {self.ttl!r}")
        if self.scope not in ("public", "private"):
            raise ValueError(f"scope is 'public' or 'private', not {self.scope!r}")

    def on(self, result: R) -> R:
        """`result` with these hints, where it has none of its own."""
        return replace(
            result,
            ttl_ms=round(self.ttl * 1000) if result.ttl_ms is None else result.ttl_ms,
            cache_scope=self.scope if result.cache_scope is None else result.cache_scope,
        )
