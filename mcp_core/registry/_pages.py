"""Pagination of lists (server/utilities/pagination).

1. A cursor names the last entry of a page, not an index. If entries are added or removed between
   two pages, every entry that stays is still listed exactly once. The cursor of a removed entry is
   unknown, even if another entry has its name: the client starts again at the first page.
2. A cursor is a digest of the server's name, the list and the entry. It is compared with the
   current entries' cursors, never decoded. No state is kept per client, and the cursor is valid
   after a restart and in another process.
3. A list is encoded once for each revision, and cached until it changes. Only entries with a
   `lastModified` that is computed are encoded for each request.
4. If entries depend on the caller (`visible=`), the encoded entries are cached, and pages are made
   of those that the caller sees. A cursor after an entry that it doesn't see is unknown.
"""

from __future__ import annotations

import hashlib
from base64 import urlsafe_b64encode
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Final, Protocol

from msgspec import Raw, Struct
from msgspec.structs import replace

from mcp_core.types import (
    Annotations,
    ListPromptsResult,
    ListResourcesResult,
    ListResourceTemplatesResult,
    ListToolsResult,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from mcp_core.protocol.revisions._config import CacheHint
    from mcp_core.protocol.revisions._dialects import Dialect
    from mcp_core.registry.entries._last_modified import OnError, PresentTime
    from mcp_core.types import CacheableResult

    from ._visibility import Visibility

__all__ = ["PAGE_SIZE", "Entry", "ListPages"]

# Entries. Servers have dozens of tools, the largest a thousand. A client wants the whole list, and
# each further page costs a round trip.
PAGE_SIZE: Final = 1_000
# Bytes. A page's entries aren't longer together: half of the lowest message size limit in
# use, including our own servers'. A single longer entry has a page of its own.
_MAX_PAGE_BYTES: Final = 2 * 1024 * 1024

# The result type of each list, and the member that holds the entries.
_RESULTS: Final[Mapping[str, tuple[Callable[..., CacheableResult], str]]] = {
    "tools/list": (ListToolsResult, "tools"),
    "prompts/list": (ListPromptsResult, "prompts"),
    "resources/list": (ListResourcesResult, "resources"),
    "resources/templates/list": (ListResourceTemplatesResult, "resource_templates"),
}


class Entry(Protocol):
    """A declaration that can be listed. `number` is unique and grows with each declaration.

    `present_time` adds what is computed for each list, None if there is nothing. `visibility`
    decides who sees it, None for everybody.
    """

    number: int

    @property
    def visibility(self) -> Visibility | None: ...

    @property
    def present_time(self) -> PresentTime | None: ...

    def list_entry(self, dialect: Dialect) -> Struct:
        """Return the list's entry in this revision."""


class ListPages:
    """The lists of one server, as encoded pages.

    Args:
        server: the server's name.
        entries: for each list method, the entries by key, in order. They are read when a page is
            requested. Call `discard_pages` after a change.
        size: the maximum number of entries in a page.
        cache: the cache hints on each page; the revision's if None.

    Raises:
        ValueError: `size` is below 1.
    """

    __slots__ = ("_cache", "_entries", "_pages", "_server", "_size")

    def __init__(
        self,
        server: str,
        entries: Mapping[str, Mapping[str, Entry]],
        size: int,
        cache: CacheHint | None,
    ) -> None:
        if size < 1:
            raise ValueError(f"a page has at least one entry, not {size}")
        self._server = server
        self._entries = entries
        self._size = size
        self._cache = cache
        self._pages: dict[tuple[str, Dialect], _EncodedPages] = {}

    def __repr__(self) -> str:
        return f"<ListPages of {self._server!r}, {len(self._pages)} encoded>"

    def discard_pages(self) -> None:
        """Discard the encoded pages: some entries have changed."""
        # Not `clear()`: another thread may be about to add pages of the old entries to this dict.
        self._pages = {}

    def get_page(
        self,
        method: str,
        cursor: str | None,
        dialect: Dialect,
        on_error: OnError | None = None,
        shows: Callable[[Entry], bool] | None = None,
    ) -> Raw | None:
        """Return the list's first page, or the page after `cursor`; None if it is unknown.

        With `on_error` the page has the times that are computed now. `on_error` gets what the
        functions raise. `shows` returns True if the caller sees an entry; it is asked only if
        entries depend on the caller.
        """
        pages = self._pages_of(method, dialect)
        if pages.encoded is not None:
            assert shows is not None
            return self._page_for_caller(cursor, pages, pages.encoded, shows, on_error)
        return self._page_from(cursor, pages, on_error)

    def present_times(self, method: str, dialect: Dialect) -> list[PresentTime]:
        """Return the functions to call for this list, for all its pages."""
        return self._pages_of(method, dialect).present_times

    def _pages_of(self, method: str, dialect: Dialect) -> _EncodedPages:
        cached = self._pages
        pages = cached.get((method, dialect))
        if pages is None:
            pages = cached[method, dialect] = self._encode_pages(method, dialect)
        return pages

    def _encode_pages(self, method: str, dialect: Dialect) -> _EncodedPages:
        entries = list(self._entries[method].items())
        entries = [
            (key, entry)
            for key, entry in entries
            if entry.visibility is None or entry.visibility.is_enabled
        ]
        times = [
            entry.present_time
            for _, entry in entries
            if entry.present_time is not None and not dialect.lacks(Annotations, "last_modified")
        ]
        pages = _EncodedPages(method, dialect, entries, {}, {}, times)
        encoded = pages.encode_entries(0, len(entries))
        if any(e.visibility is not None and e.visibility.depends_on_caller for _, e in entries):
            return replace(pages, encoded=encoded)
        for start, stop in pairwise([*_page_starts(encoded, self._size), len(entries)]):
            pages.by_start[start] = self._make_page(pages, start, encoded[start:stop])
        return pages

    def _page_from(
        self, cursor: str | None, pages: _EncodedPages, on_error: OnError | None
    ) -> Raw | None:
        entries = pages.entries
        start = self._start_after(cursor, pages)
        if start is None:
            return None
        if on_error is None and start in pages.by_start:
            return pages.by_start[start]
        # Either times are computed for this page, or the list has changed since the client got its
        # cursor, which is now inside a page. The page, or the rest of it, is encoded now and not
        # cached, or a client could fill the memory with pages. The next page is a cached one again.
        stop = next((begin for begin in pages.by_start if begin > start), len(entries))
        return self._make_page(pages, start, pages.encode_entries(start, stop, on_error))

    def _start_after(self, cursor: str | None, pages: _EncodedPages) -> int | None:
        """Return the index of the first entry after `cursor`, None if it is unknown."""
        if cursor is None:
            return 0
        if not pages.start_after:
            pages.start_after.update(
                (self._cursor(pages.method, *named), start)
                for start, named in enumerate(pages.entries, 1)
            )
        return pages.start_after.get(cursor)

    def _page_for_caller(
        self,
        cursor: str | None,
        pages: _EncodedPages,
        encoded: list[Raw],
        shows: Callable[[Entry], bool],
        on_error: OnError | None,
    ) -> Raw | None:
        """Return a page of the entries that a caller sees."""
        after = self._start_after(cursor, pages)
        if after is None:
            return None
        seen = [index for index, (_, entry) in enumerate(pages.entries) if shows(entry)]
        if after and after - 1 not in seen:
            return None
        sizes = [encoded[index] for index in seen]
        start = sum(index < after for index in seen)
        stop = next((s for s in _page_starts(sizes, self._size) if s > start), len(seen))
        page = sizes[start:stop]
        if on_error is not None:
            page = [pages.encode_entries(i, i + 1, on_error)[0] for i in seen[start:stop]]
        last = None if stop >= len(seen) else pages.entries[seen[stop - 1]]
        return self._encode_page(pages, page, last, private=True)

    def _make_page(self, pages: _EncodedPages, start: int, encoded: list[Raw]) -> Raw:
        stop = start + len(encoded)
        last = None if stop >= len(pages.entries) else pages.entries[stop - 1]
        return self._encode_page(pages, encoded, last)

    def _encode_page(
        self,
        pages: _EncodedPages,
        encoded: list[Raw],
        last: tuple[str, Entry] | None,
        *,
        private: bool = False,
    ) -> Raw:
        """Return the page of these entries. `last` is its last one, None if no page follows."""
        make, member = _RESULTS[pages.method]
        members: dict[str, Any] = {member: encoded}
        if last is not None:
            members["next_cursor"] = self._cursor(pages.method, *last)
        if private:
            members["cache_scope"] = "private"
        result = make(**members)
        return Raw(
            pages.dialect.encode(result if self._cache is None else self._cache.apply_to(result))
        )

    def _cursor(self, method: str, key: str, entry: Entry) -> str:
        """Return the cursor for the page that starts after `entry`."""
        digest = hashlib.sha256(
            f"{self._server}\0{method}\0{entry.number}\0{key}".encode()
        ).digest()
        return urlsafe_b64encode(digest[:15]).decode()  # 15 bytes need no padding


class _EncodedPages(Struct, frozen=True):
    """The pages of one list in one revision.

    `by_start` has the encoded pages by the index of their first entry. `start_after` has the index
    of the entry that follows each cursor; it is filled when the first cursor is received.
    `encoded` has the single entries instead of pages, if they depend on the caller.
    """

    method: str
    dialect: Dialect
    entries: list[tuple[str, Entry]]
    by_start: dict[int, Raw]
    start_after: dict[str, int]
    present_times: list[PresentTime]
    encoded: list[Raw] | None = None

    def encode_entries(self, start: int, stop: int, on_error: OnError | None = None) -> list[Raw]:
        dialect = self.dialect
        encoded = []
        for _, entry in self.entries[start:stop]:
            listed: Any = entry.list_entry(dialect)
            if on_error is not None and entry.present_time is not None:
                listed = entry.present_time.apply_to(listed, dialect, on_error)
            encoded.append(Raw(dialect.encode(listed)))
        return encoded


def _page_starts(encoded: Sequence[Raw], size: int) -> list[int]:
    """Return the index of each page's first entry."""
    starts = [0]
    page_bytes = 0
    for index, entry in enumerate(encoded):
        length = len(bytes(entry))
        if index and (index - starts[-1] == size or page_bytes + length > _MAX_PAGE_BYTES):
            starts.append(index)
            page_bytes = 0
        page_bytes += length
    return starts
