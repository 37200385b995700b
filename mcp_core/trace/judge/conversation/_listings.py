"""The listings of one list: which pages a client has read in a row, from the first one on."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple

from mcp_core.trace._ids import text_key

from ._bounds import MAX_ENTRIES

if TYPE_CHECKING:
    from mcp_core.trace.judge._message import SeenMessage

__all__ = ["Circle", "Listing", "Listings"]

_FIRST: Final = ""  # in place of the cursor's key


class Circle(NamedTuple):
    """Pages of one listing that lead back to one of them.

    Attributes:
        line: the line of the first page in it.
        is_again: the listing ended a circle before the first page in it, and the page gave the
            same cursor before.
    """

    line: int
    is_again: bool


class Listings:
    """The listings of one list.

    A page belongs to the listing that began last, if that was given the page's cursor and hasn't
    asked for it. When another one begins, the client has given up the one before it, or reads both
    at once. A request for the next page of the earlier one can show that: then it is unknown which
    pages of the last one belong together, and the next one begins anew.

    Attributes:
        last: the listing that began last, or None before it.
    """

    def __init__(self) -> None:
        self.last: Listing | None = None
        self._asked: dict[int, str] = {}  # cursors of the open requests, by line
        self._left: set[str] = set()  # the next cursors of earlier listings
        self._is_full = False

    def is_first(self, line: int) -> bool:
        """Return True if the request on `line` is open and is for a first page."""
        return self._asked.get(line) == _FIRST

    def receive_request(self, message: SeenMessage) -> None:
        """Record a request for a page."""
        cursor, last = message.params.get("cursor"), self.last
        if cursor is None:
            if last is not None and last.awaited is not None:
                self._leave(last.awaited)
            self.last = Listing(message.line, is_alone=not (self._asked or self._is_full))
            key = _FIRST
        elif not isinstance(cursor, str):
            return
        elif last is not None and last.awaited == text_key(cursor):
            key = text_key(cursor)
            last.awaited, last.request = None, message.line
            if key in self._left:  # both were given it
                self._left.discard(key)
                last.receive_other()
        elif text_key(cursor) in self._left:
            key = text_key(cursor)
            self._left.discard(key)
            if last is not None:
                last.receive_other()
        else:
            return  # a page that was asked for before, or a cursor from elsewhere
        if len(self._asked) < MAX_ENTRIES:
            self._asked[message.line] = key
        else:
            self._is_full = True

    def receive_page(self, message: SeenMessage, line: int, following: Any) -> None:
        """Record a page: the response to the request on `line`."""
        asked, last = self._asked.pop(line, None), self.last
        if asked is None:
            return
        awaited = text_key(following) if isinstance(following, str) else None
        if last is not None and last.request == line:
            last.receive_page(asked, awaited, message.line)
        elif awaited is not None:
            self._leave(awaited)

    def receive_failure(self, line: int) -> None:
        """Record that the request on `line` got no page. The client can ask for it again."""
        asked, last = self._asked.pop(line, None), self.last
        if not asked:
            return
        if last is not None and last.request == line:
            last.awaited, last.request = asked, 0
        else:
            self._leave(asked)

    def _leave(self, cursor: str) -> None:
        """Record the next cursor of a listing that isn't the last one any more."""
        if len(self._left) < MAX_ENTRIES:
            self._left.add(cursor)
        else:
            self._is_full = True


class Listing:
    """One reading of a list, from its first page on.

    Attributes:
        first: the line of the request for the first page.
        request: the line of the open request for the next page, 0 if there isn't one.
        awaited: the key of the next page's cursor, if that isn't asked for yet.
        is_alone: no other listing is read at the same time.
        entries: the entries of its pages so far, None if they are too many or unknown.
        size: the size of these pages in bytes.
    """

    __slots__ = ("_circle", "_pages", "awaited", "entries", "first", "is_alone", "request", "size")

    def __init__(self, line: int, *, is_alone: bool) -> None:
        self.first = self.request = line
        self.awaited: str | None = None
        self.is_alone = is_alone
        self.entries: list[Any] | None = [] if is_alone else None
        self.size = 0
        # By a page's cursor: the line of the last such page, and the cursor that it gave.
        self._pages: dict[str, tuple[int, str]] = {}
        self._circle = 0  # the line of the page that ended the first circle

    def find_circle(self, cursor: str, following: str) -> Circle | None:
        """Return the circle that the page at `cursor` ends, or None if it doesn't end one.

        The pages since the last one at `following` were read in a row, so no search is needed.
        """
        known = self._pages.get(text_key(following))
        if known is None or following == cursor:
            return None
        gave = self._pages.get(text_key(cursor))
        is_same = gave is None or gave[1] == text_key(following)
        return Circle(known[0], is_again=is_same and 0 < self._circle < known[0])

    def receive_page(self, cursor: str, following: str | None, line: int) -> None:
        """Record the next page."""
        self.awaited, self.request = following, 0
        if following is None or cursor == _FIRST:
            return
        gave, known = self._pages.get(cursor), self._pages.get(following)
        if gave is not None and gave[1] != following:
            self._circle = 0  # the list has changed
        if known is not None and following != cursor and not self._circle:
            self._circle = line
        if gave is not None or len(self._pages) < MAX_ENTRIES:
            self._pages[cursor] = line, following

    def receive_other(self) -> None:
        """Record that another listing is read at the same time."""
        self.is_alone = False
        self.entries, self.size = None, 0

    def receive_change(self) -> None:
        """Record that the list has changed, so its pages can lead back to earlier ones."""
        self._pages.clear()
        self._circle = 0
