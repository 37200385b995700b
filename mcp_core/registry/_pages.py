"""Lists, page by page: where a page ends, what is encoded once, and how a cursor finds its place again.

Rules of this file:

1. A cursor names the entry that was given out last, not a place. So whatever is added or removed between two pages, an
   entry that stays is given out exactly once. A cursor whose entry is gone is unknown, and its owner begins anew; so it is
   when another has taken the name since, which stands elsewhere in the list.
2. A cursor is never taken apart. It is a digest of the server's name, the list and the entry, and is looked up among those
   of the entries there are. So nothing that a peer makes up can be misread, nobody's position is kept here, and the same
   server knows the cursor after a restart and in another process.
3. A list is encoded once for each revision, all of its pages together, and kept until it changes. Cursors add nothing to
   that, however many a peer makes up: a place in the middle of a page, where only a list that changed under its reader
   leads, is encoded when it is asked for.

It does not know what an entry is, nor error codes. Page: server/utilities/pagination.
"""

from __future__ import annotations

import hashlib
from base64 import urlsafe_b64encode
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Final, Protocol

from msgspec import Raw, Struct

from mcp_core.types import (
    ListPromptsResult,
    ListResourcesResult,
    ListResourceTemplatesResult,
    ListToolsResult,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from mcp_core._dialects import Dialect
    from mcp_core._hints import Cache
    from mcp_core.types import CacheableResult

__all__ = ["PAGE_SIZE", "Entry", "Lists"]

# Servers have dozens of tools, the largest a thousand, and whoever wants the list wants all of it: each further page is a
# further round trip.
PAGE_SIZE: Final = 1_000
# A page ends before it is longer than this, whatever its number of entries: half of the tightest limit on a message that is
# in use, our own servers' included. A single entry that is longer has a page of its own.
_PAGE_BYTES: Final = 2 * 1024 * 1024

# The four lists: their result and its member.
_RESULTS: Final[Mapping[str, tuple[Callable[..., CacheableResult], str]]] = {
    "tools/list": (ListToolsResult, "tools"),
    "prompts/list": (ListPromptsResult, "prompts"),
    "resources/list": (ListResourcesResult, "resources"),
    "resources/templates/list": (ListResourceTemplatesResult, "resource_templates"),
}


class Entry(Protocol):
    """What can be listed. `number` grows with each declaration and is nobody else's."""

    number: int

    def listed(self, dialect: Dialect) -> Struct:
        """What the list says of it."""


class Lists:
    """The lists of one server.

    Args:
        server: its name.
        entries: for each method that lists something, its entries by their key, in order. They are read when a page is
            asked for; `forget` tells of changes.
        size: how many entries a page has at most.
        cache: the hints on each page; those of the revision if None.

    Raises:
        ValueError: `size` is below 1.
    """

    __slots__ = ("_cache", "_entries", "_pages", "_server", "_size")

    def __init__(
        self, server: str, entries: Mapping[str, Mapping[str, Entry]], size: int, cache: Cache | None
    ) -> None:
        if size < 1:
            raise ValueError(f"a page has at least one entry, not {size}")
        self._server = server
        self._entries = entries
        self._size = size
        self._cache = cache
        self._pages: dict[tuple[str, Dialect], _Pages] = {}

    def __repr__(self) -> str:
        return f"<Lists of {self._server!r}, {len(self._pages)} encoded>"

    def forget(self) -> None:
        """Some entries have changed."""
        # A new dict: another thread may be about to put pages of the old entries into the one it found.
        self._pages = {}

    def page(self, method: str, cursor: str | None, dialect: Dialect) -> Raw | None:
        """The result of `method`: the first page, or the one after `cursor`; None if there is no such cursor."""
        kept = self._pages
        pages = kept.get((method, dialect))
        if pages is None:
            pages = kept[method, dialect] = self._cut(method, dialect)
        return pages.by_start[0] if cursor is None else self._after(cursor, pages)

    def _cut(self, method: str, dialect: Dialect) -> _Pages:
        entries = list(self._entries[method].items())
        pages = _Pages(method, dialect, entries, {}, {})
        encoded = pages.encoded(0, len(entries))
        for start, stop in pairwise([*_starts(encoded, self._size), len(entries)]):
            pages.by_start[start] = self._page(pages, start, encoded[start:stop])
        return pages

    def _after(self, cursor: str, pages: _Pages) -> Raw | None:
        entries = pages.entries
        if not pages.places:
            pages.places.update(
                (self._cursor(pages.method, *named), place) for place, named in enumerate(entries, 1)
            )
        start = pages.places.get(cursor)
        if start is None:
            return None
        if start in pages.by_start:
            return pages.by_start[start]
        # Up to where the next page begins, so that the reader is back among those that are kept.
        stop = next((begin for begin in pages.by_start if begin > start), len(entries))
        return self._page(pages, start, pages.encoded(start, stop))

    def _page(self, pages: _Pages, start: int, encoded: list[Raw]) -> Raw:
        make, member = _RESULTS[pages.method]
        members: dict[str, Any] = {member: encoded}
        stop = start + len(encoded)
        if stop < len(pages.entries):
            members["next_cursor"] = self._cursor(pages.method, *pages.entries[stop - 1])
        result = make(**members)
        return Raw(pages.dialect.encode(result if self._cache is None else self._cache.on(result)))

    def _cursor(self, method: str, key: str, entry: Entry) -> str:
        """The cursor for what comes after `entry`."""
        digest = hashlib.sha256(f"{self._server}\0{method}\0{entry.number}\0{key}".encode()).digest()
        return urlsafe_b64encode(digest[:15]).decode()  # 15 bytes need no padding


class _Pages(Struct, frozen=True):
    """One list as it is now, in one revision: its pages by the place of their first entry, all of them but those that begin
    in the middle of another. `places` has what follows each cursor, from when the first cursor is asked for.
    """

    method: str
    dialect: Dialect
    entries: list[tuple[str, Entry]]
    by_start: dict[int, Raw]
    places: dict[str, int]

    def encoded(self, start: int, stop: int) -> list[Raw]:
        dialect = self.dialect
        return [Raw(dialect.encode(entry.listed(dialect))) for _, entry in self.entries[start:stop]]


def _starts(encoded: Sequence[Raw], size: int) -> list[int]:
    """Where pages begin."""
    starts = [0]
    held = 0
    for place, entry in enumerate(encoded):
        length = len(bytes(entry))
        if place and (place - starts[-1] == size or held + length > _PAGE_BYTES):
            starts.append(place)
            held = 0
        held += length
    return starts
