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

    Listings that are under way at the same time can share cursors, so it is unknown which pages
    belong together.

    Attributes:
        last: the listing that began last, or None before it.
    """

    def __init__(self) -> None:
        self.last: Listing | None = None
        self._asked: dict[int, str] = {}  # cursors of the open requests, by line
        self._awaited: dict[str, int] = {}  # how many listings will ask for a cursor next
        self._is_full = False

    def is_first(self, line: int) -> bool:
        """Return True if the request on `line` is open and is for a first page."""
        return self._asked.get(line) == _FIRST

    def receive_request(self, message: SeenMessage) -> None:
        """Record a request for a page."""
        cursor, last = message.params.get("cursor"), self.last
        if cursor is None:
            is_alone = not (self._asked or self._awaited or self._is_full)
            self.last = Listing(message.line, is_alone=is_alone)
            key = _FIRST
        elif isinstance(cursor, str) and text_key(cursor) in self._awaited:
            key = text_key(cursor)
            self._awaited[key] -= 1
            if not self._awaited[key]:
                del self._awaited[key]
            if last is not None and last.awaited == key:
                last.awaited, last.request = None, message.line
        else:
            return  # a page that was asked for before, or a cursor from elsewhere
        if len(self._asked) + len(self._awaited) < MAX_ENTRIES:
            self._asked[message.line] = key
        else:
            self._is_full = True

    def receive_page(self, message: SeenMessage, line: int, following: Any) -> None:
        """Record a page: the response to the request on `line`."""
        asked, last = self._asked.pop(line, None), self.last
        if asked is None:
            return
        awaited = text_key(following) if isinstance(following, str) else None
        if awaited is not None:
            self._awaited[awaited] = self._awaited.get(awaited, 0) + 1
        if last is not None and last.request == line:
            last.receive_page(asked, awaited, message.line)

    def receive_failure(self, line: int) -> None:
        """Record that the request on `line` got no page. The client can ask for it again."""
        asked, last = self._asked.pop(line, None), self.last
        if asked:
            self._awaited[asked] = self._awaited.get(asked, 0) + 1
            if last is not None and last.request == line:
                last.awaited, last.request = asked, 0


class Listing:
    """One reading of a list, from its first page on.

    Attributes:
        first: the line of the request for the first page.
        request: the line of the open request for the next page, 0 if there isn't one.
        awaited: the key of the next page's cursor, if that isn't asked for yet.
        is_alone: no other listing was under way when it began.
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

    def receive_change(self) -> None:
        """Record that the list has changed, so its pages can lead back to earlier ones."""
        self._pages.clear()
        self._circle = 0
