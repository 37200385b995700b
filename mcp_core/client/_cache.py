"""A client's cache of results, for as long as the server declared them fresh.

1. A cached result answers only an identical request: same method and same params, without `_meta`.
   A request with `inputResponses` or `requestState` is never cached: its result depends on the
   user's responses or the server's state.
2. Fresh means `now < received + ttlMs`. A result without `ttlMs`, or with 0 or less, isn't stored.
   A change notification removes stored results at once, and those still in flight aren't stored.
3. Results are stored as JSON and decoded for each hit, so that a caller may modify what it gets.
   Their size is thus known: a server with long times cannot fill the memory.

A cache belongs to one client, and so to one authorization context: `cacheScope` makes no difference
here. Source: server/utilities/caching (2026-07-28).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple

from mcp_core import types as t
from mcp_core.protocol.jsonrpc._codec import encode
from mcp_core.protocol.revisions._methods import METHODS

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

__all__ = ["ResultCache"]

# Pages of lists and small resources, a few of each. A host can afford it for each of a dozen
# servers.
_MAX_RESULTS: Final = 1_000
# A list of a thousand tools is about half a megabyte. Larger resources are better cached by the
# application, which knows their use.
_MAX_BYTES: Final = 8 * 1024 * 1024
_MAX_TTL: Final = 2**53  # milliseconds; JSON can hold integers that a float cannot

# The methods whose results have a `ttlMs`, and the function that decodes such a result.
_DECODERS: Final = {
    row.name: row.read_result
    for row in METHODS
    if row.result is not None and issubclass(row.result, t.CacheableResult)
}
_INPUT_MEMBERS: Final = ("inputResponses", "requestState")

# Notifications, and the methods whose results they invalidate.
_INVALIDATES: Final[Mapping[str, tuple[str, ...]]] = {
    "notifications/tools/list_changed": ("tools/list",),
    "notifications/prompts/list_changed": ("prompts/list",),
    "notifications/resources/list_changed": ("resources/list", "resources/templates/list"),
    "notifications/resources/updated": ("resources/read",),
}


class _CacheEntry(NamedTuple):
    data: bytes
    stale_at: float
    problems: tuple[str, ...]  # what was left out of the result


class ResultCache:
    """The fresh results of one client. Times are monotonic, in seconds.

    `generation` changes with each notification that invalidates something: note it before sending
    a request, and pass it to `put`.
    """

    __slots__ = ("_bytes", "_entries", "generation")

    def __init__(self) -> None:
        self._entries: dict[tuple[str, bytes], _CacheEntry] = {}
        self._bytes = 0
        self.generation = 0

    def __repr__(self) -> str:
        return f"<ResultCache of {len(self._entries)} results, {self._bytes} bytes>"

    def get(
        self,
        method: str,
        params: Mapping[str, Any] | None,
        now: float,
        problems: list[str] | None = None,
    ) -> Any:
        """Return a fresh result of that request, or None. The caller may modify it.

        What was left out of it is appended to `problems`.
        """
        key = _key(method, params)
        entry = self._entries.get(key) if key is not None else None
        if entry is None or key is None:
            return None
        if now >= entry.stale_at:
            self._remove(key)
            return None
        if problems is not None:
            problems += entry.problems
        return _DECODERS[method](entry.data)

    def put(
        self,
        method: str,
        params: Mapping[str, Any] | None,
        result: Any,
        now: float,
        generation: int,
        problems: Iterable[str] = (),
    ) -> None:
        """Store `result` for the time that it declares, if any.

        Args:
            method: the request's method.
            params: the params of exactly the request that was answered.
            result: the result.
            now: when it was received.
            generation: the `generation` before the request was sent. If it has changed since, the
                result may be older than the change, and isn't stored.
            problems: what was left out of the result.
        """
        key = _key(method, params)
        if key is None or not isinstance(result, t.CacheableResult):
            return
        if key in self._entries:
            self._remove(key)  # even if the new result isn't stored
        if generation != self.generation or result.ttl_ms is None or result.ttl_ms <= 0:
            return
        stale_at = now + min(result.ttl_ms, _MAX_TTL) / 1000
        entry = _CacheEntry(encode(result), stale_at, tuple(problems))
        if _size(key, entry) > _MAX_BYTES:
            return  # it would evict all others, and then itself
        self._entries[key] = entry
        self._bytes += _size(key, entry)
        while self._bytes > _MAX_BYTES or len(self._entries) > _MAX_RESULTS:
            self._remove(next(iter(self._entries)))  # the least recently stored

    def invalidate(self, notification: str, uri: str | None = None) -> None:
        """Remove the results that a notification from the server made stale.

        `uri` is the URI of an update that is known to concern exactly that resource. Without it all
        resources are removed: the update may be about a part of any resource, and a part's URI need
        not look like the whole's.
        """
        methods = _INVALIDATES.get(notification)
        if methods is None:
            return
        self.generation += 1
        for method in methods:
            if uri is None:
                self.discard(method)
            else:
                key = _key(method, {"uri": uri})
                if key in self._entries:
                    self._remove(key)

    def discard(self, method: str) -> None:
        """Remove all results of `method`."""
        for key in [key for key in self._entries if key[0] == method]:
            self._remove(key)

    def _remove(self, key: tuple[str, bytes]) -> None:
        self._bytes -= _size(key, self._entries.pop(key))


def _key(method: str, params: Mapping[str, Any] | None) -> tuple[str, bytes] | None:
    """Return the cache key of a request, or None if its result isn't cached.

    A request that cannot be encoded has no key.
    """
    if method not in _DECODERS:
        return None
    if params is None:
        return method, b""
    try:
        return None if any(name in params for name in _INPUT_MEMBERS) else (method, encode(params))
    except UnicodeEncodeError:
        return None


def _size(key: tuple[str, bytes], entry: _CacheEntry) -> int:
    return len(key[1]) + len(entry.data)
