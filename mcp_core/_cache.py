"""What a client keeps of a server's answers, for as long as the server said that they stay fresh.

Rules of this file:

1. An answer is used again only for the very same question: its method and its params, without `_meta`. What answers of the
   user's or the server's state went into (`inputResponses`, `requestState`) is kept for nobody.
2. Fresh means `now < received + ttlMs`. An answer without a `ttlMs`, or with one that is not positive, is not kept; one that
   a notification has made stale is gone at once, and so is one that was still on its way then.
3. What is kept is the answer as JSON, and each hit is read from it anew, so that nobody can change what the next one gets.
   It also makes its size known, and a server that sets long times cannot fill the memory.

One cache belongs to one client, and so to one authorization context; that makes `cacheScope` no concern of it. Nothing is
fetched from here, and no time makes anything happen. Source: server/utilities/caching (2026-07-28).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple

from . import types as t
from ._jsonrpc import encode
from ._methods import METHODS

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["ResultCache"]

# Pages of lists and small resources, a few of each of many; a host that talks to a dozen servers can afford it for each.
_MOST_RESULTS: Final = 1_000
# A list of a thousand tools is about half a megabyte. Larger resources are better kept by whoever knows what they are for.
_MOST_BYTES: Final = 8 * 1024 * 1024
_LONGEST: Final = 2**53  # milliseconds; a float could not hold some of the numbers that JSON can say

# The methods whose results say how long they stay fresh, and how such a result is read.
_READ: Final = {
    row.name: row.read_result
    for row in METHODS
    if row.result is not None and issubclass(row.result, t.CacheableResult)
}
_INPUTS: Final = ("inputResponses", "requestState")

# Notifications, and the methods whose results they make stale.
_STALE: Final[Mapping[str, tuple[str, ...]]] = {
    "notifications/tools/list_changed": ("tools/list",),
    "notifications/prompts/list_changed": ("prompts/list",),
    "notifications/resources/list_changed": ("resources/list", "resources/templates/list"),
    "notifications/resources/updated": ("resources/read",),
}


class _Kept(NamedTuple):
    data: bytes
    stale_at: float


class ResultCache:
    """The results that are still fresh. Times are monotonic, in seconds.

    `turn` changes whenever a notification made something stale: take note of it before asking.
    """

    __slots__ = ("_bytes", "_kept", "turn")

    def __init__(self) -> None:
        self._kept: dict[tuple[str, bytes], _Kept] = {}
        self._bytes = 0
        self.turn = 0

    def __repr__(self) -> str:
        return f"<ResultCache of {len(self._kept)} results, {self._bytes} bytes>"

    def find(self, method: str, params: Mapping[str, Any] | None, now: float) -> Any:
        """The result of that request, if a fresh one is kept; else None. It is the caller's own, to do with as they like."""
        key = _key(method, params)
        kept = self._kept.get(key) if key is not None else None
        if kept is None or key is None:
            return None
        if now >= kept.stale_at:
            self._drop(key)
            return None
        return _READ[method](kept.data)

    def keep(self, method: str, params: Mapping[str, Any] | None, result: Any, now: float, turn: int) -> None:
        """Keep `result` for as long as it says, if it says so.

        `params` are those of the very request that was answered, `now` is when it was, and `turn` what it was before it was
        asked: if something has become stale since, the answer may be from before that.
        """
        key = _key(method, params)
        if key is None or not isinstance(result, t.CacheableResult):
            return
        if key in self._kept:
            self._drop(key)  # also if the later answer is not to be kept
        if turn != self.turn or result.ttl_ms is None or result.ttl_ms <= 0:
            return
        kept = _Kept(encode(result), now + min(result.ttl_ms, _LONGEST) / 1000)
        if _size(key, kept) > _MOST_BYTES:
            return  # rather than to drop all others for it, and then itself
        self._kept[key] = kept
        self._bytes += _size(key, kept)
        while self._bytes > _MOST_BYTES or len(self._kept) > _MOST_RESULTS:
            self._drop(next(iter(self._kept)))  # what was asked longest ago

    def invalidate(self, notification: str, uri: str | None = None) -> None:
        """The server has sent this notification: forget what it makes stale.

        `uri` is for an update of just that resource. Without it, it may be of a part of any, for a part's URI need not look
        like that of the whole.
        """
        methods = _STALE.get(notification)
        if methods is None:
            return
        self.turn += 1
        for method in methods:
            if uri is None:
                self.forget(method)
            else:
                key = _key(method, {"uri": uri})
                if key in self._kept:
                    self._drop(key)

    def forget(self, method: str) -> None:
        """Drop all results of `method`."""
        for key in [key for key in self._kept if key[0] == method]:
            self._drop(key)

    def _drop(self, key: tuple[str, bytes]) -> None:
        self._bytes -= _size(key, self._kept.pop(key))


def _key(method: str, params: Mapping[str, Any] | None) -> tuple[str, bytes] | None:
    """What identifies a request, None for one whose results are not kept, or that cannot be made."""
    if method not in _READ:
        return None
    if params is None:
        return method, b""
    try:
        return None if any(name in params for name in _INPUTS) else (method, encode(params))
    except UnicodeEncodeError:
        return None


def _size(key: tuple[str, bytes], kept: _Kept) -> int:
    return len(key[1]) + len(kept.data)
