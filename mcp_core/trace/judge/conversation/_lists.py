"""A conversation's lists: their pages, the tools, cursors and changes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from mcp_core.trace._ids import text_key
from mcp_core.trace._members import lookup
from mcp_core.trace.judge._message import holds_until

from ._bounds import MAX_ENTRIES
from ._listings import Listings

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from mcp_core.trace.judge._message import SeenMessage, SeenRequest

    from ._listings import Listing

__all__ = ["CHANGES", "LISTS", "Lists", "SeenList", "repeated_names"]

MAX_TOOL_BYTES: Final = 8 * 1024 * 1024  # bytes of all pages of the last list of tools
MAX_LIST_BYTES: Final = 1024 * 1024  # bytes of all pages of a list whose names are remembered
_REDACTED: Final = "‹redacted "  # where the recorder has replaced a part of a text
# By list: the result's member with the entries, and an entry's member with its name.
LISTS: Final = {
    "tools/list": ("tools", "name"),
    "prompts/list": ("prompts", "name"),
    "resources/list": ("resources", "uri"),
    "resources/templates/list": ("resourceTemplates", "uriTemplate"),
    "roots/list": ("roots", "uri"),
    "tasks/list": ("tasks", "taskId"),
}
# Lists by the notification that reports their change.
CHANGES: Final = {
    "notifications/tools/list_changed": ("tools/list",),
    "notifications/prompts/list_changed": ("prompts/list",),
    "notifications/resources/list_changed": ("resources/list", "resources/templates/list"),
    "notifications/roots/list_changed": ("roots/list",),
}


class Lists:
    """A conversation's lists.

    Attributes:
        tools, tools_line: the last complete list's tools by name, or None before it; and the line
            with the list's last page.
        compiled, annotations: what rules have computed from the tools' schemas, by the schema's
            identity.
        complete: the last complete lists, by method.
        changed: the line of the last notification that a list has changed, by the list's method.
        silent_changes: two lists that differ, without such a notification between them or since, by
            method: their lines, and the second one's time.
        cursors: the cursors that were given out, by method.
        cursor_scopes: the `cacheScope` on the page that gave a cursor, by method and cursor; None
            if several pages gave it with different scopes.
        kept_bytes: about how many bytes of lists are remembered.
    """

    def __init__(self) -> None:
        self.tools: dict[str, Mapping[str, Any]] | None = None
        self.tools_line = 0
        self.compiled: dict[int, tuple[Any, Any]] = {}
        self.annotations: dict[int, tuple[Any, Any]] = {}
        self.complete: dict[str, SeenList] = {}
        self.changed: dict[str, int] = {}
        self.silent_changes: dict[str, tuple[int, int, float]] = {}
        self.cursors: dict[str, set[str]] = {}
        self.cursor_scopes: dict[tuple[str, str], Any] = {}
        self.kept_bytes = 0
        self._tools_until = 0.0  # seconds
        # The last listing's tools so far; None if they are unknown.
        self._listed_tools: dict[str, Mapping[str, Any]] | None = None
        self._listed_bytes = 0
        self._kept_tools = 0
        self._last: tuple[SeenMessage, SeenList | None] | None = None
        self._listings: dict[str, Listings] = {}
        self._view: tuple[str, ...] | None = None
        self._has_one_view = True

    def is_given_cursor(self, method: str, cursor: str) -> bool:
        """Return True if a page of a list had the cursor."""
        return text_key(cursor) in self.cursors.get(method, ())

    def tool(self, name: Any) -> Mapping[str, Any] | None:
        """Return a tool by its name in the last complete list, or None if that is unknown."""
        return self.tools.get(name) if self.tools is not None and isinstance(name, str) else None

    def tool_of(self, request: SeenRequest) -> Mapping[str, Any] | None:
        """Return a call's tool from a list before the call, or None if it is unknown."""
        return self.tool(request.params.get("name")) if self.tools_line < request.line else None

    def find_listing(self, request: SeenRequest) -> Listing | None:
        """Return the listing whose next page `request` is open for, or None if it is unknown."""
        listings = self._listings.get(request.method)
        last = listings.last if listings is not None else None
        return last if last is not None and last.request == request.line else None

    def is_only_view(self, view: tuple[str, ...]) -> bool:
        """Return True if all pages were certainly served to one client. See `HttpState.view`."""
        is_known = not any(_REDACTED in each for each in view)
        return is_known and self._has_one_view and self._view in (None, view)

    def completed_list(self, message: SeenMessage) -> SeenList | None:
        """Return the list that `message` completes, or None if other pages are unknown."""
        if self._last is None or self._last[0] is not message:
            self._last = message, self._completed_list(message)
        return self._last[1]

    def _completed_list(self, message: SeenMessage) -> SeenList | None:
        request, result = message.request, message.result
        if request is None or result is None or request.method not in LISTS:
            return None
        if result.get("nextCursor") is not None:
            return None
        listings, listing = self._listings.get(request.method), self.find_listing(request)
        is_first = listings is not None and listings.is_first(request.line)
        pages = [] if is_first else listing.entries if listing is not None else None
        member, key = LISTS[request.method]
        entries = result.get(member)
        if pages is None or not isinstance(entries, list) or message.size > MAX_LIST_BYTES:
            return None
        first = request.line if is_first or listing is None else listing.first
        return SeenList([*pages, *entries], key, message.line, first)

    def expire(self, time: float) -> None:
        """Forget the tools once another instance of the server may have other tools."""
        if time > self._tools_until:
            self.tools = None

    def receive_change(self, message: SeenMessage) -> None:
        """Record a notification that a list has changed."""
        if message.method == "notifications/tools/list_changed":
            self.tools = self._listed_tools = None
        for changed in CHANGES[message.method]:
            self.changed[changed] = message.line
            self.silent_changes.pop(changed, None)
            listings = self._listings.get(changed)
            if listings is not None and listings.last is not None:
                listings.last.receive_change()

    def receive_request(self, message: SeenMessage) -> None:
        """Record a request for a page."""
        self._listings.setdefault(message.method, Listings()).receive_request(message)

    def receive_failure(self, method: str, line: int) -> None:
        """Record that a request for a page got an error, or only an HTTP status."""
        if method in self._listings:
            self._listings[method].receive_failure(line)

    def receive_page(
        self,
        message: SeenMessage,
        request: SeenRequest,
        result: Mapping[str, Any],
        view: tuple[str, ...],
    ) -> str:
        """Record a page. Return why cursors are forgotten, "" if none are."""
        self._has_one_view = self.is_only_view(view)
        self._view = view
        gap = self._receive_cursor(request, result)
        if request.method == "tools/list":
            self._receive_tools(message, request, result)
        self._receive_list(message, request, result)
        self._last = None
        listings = [each.last for each in self._listings.values()]
        page_bytes = sum(each.size for each in listings if each is not None)
        self.kept_bytes = self._kept_tools + self._listed_bytes + page_bytes
        return gap

    def _receive_cursor(self, request: SeenRequest, result: Mapping[str, Any]) -> str:
        method, following = request.method, result.get("nextCursor")
        if not isinstance(following, str):
            return ""
        following = text_key(following)
        cursors = self.cursors.setdefault(method, set())
        if len(cursors) >= MAX_ENTRIES:
            return "there are too many cursors to remember"
        scope = result.get("cacheScope")
        is_one = following not in cursors or self.cursor_scopes[method, following] == scope
        cursors.add(following)
        self.cursor_scopes[method, following] = scope if is_one else None  # two listings gave it
        return ""

    def _receive_list(
        self, message: SeenMessage, request: SeenRequest, result: Mapping[str, Any]
    ) -> None:
        """Remember a page, and the list if it is the last one."""
        method = request.method
        found, previous = self.completed_list(message), self.complete.get(method)
        listing = self.find_listing(request)
        if found is not None:
            self.complete[method] = found
            # A response that was on its way when the list changed can have the old list.
            is_known = previous is not None and self.changed.get(method, 0) < previous.asked
            if previous is not None and is_known and set(previous.names) != set(found.names):
                self.silent_changes[method] = previous.line, message.line, message.time
        elif listing is not None and listing.entries is not None:
            entries = result.get(LISTS[method][0])
            listing.size += message.size
            if listing.size > MAX_LIST_BYTES or not isinstance(entries, list):
                listing.entries, listing.size = None, 0
            else:
                listing.entries += entries
        following = result.get("nextCursor")
        if listing is not None and following is None:
            listing.entries, listing.size = None, 0
        if method in self._listings:
            self._listings[method].receive_page(message, request.line, following)

    def _receive_tools(
        self, message: SeenMessage, request: SeenRequest, result: Mapping[str, Any]
    ) -> None:
        listing = self.find_listing(request)
        if listing is None:
            return  # of another listing, which is read at the same time
        if request.params.get("cursor") is None:
            self._listed_tools, self._listed_bytes = {}, 0
        if self._listed_tools is None:
            return
        self._listed_bytes += message.size
        if self._listed_bytes > MAX_TOOL_BYTES:
            self._listed_tools = self.tools = None
            return
        tools = result.get("tools")
        for tool in tools if isinstance(tools, list) else ():
            name = lookup(tool, "name")
            if isinstance(name, str) and len(self._listed_tools) < MAX_ENTRIES:
                self._listed_tools[name] = tool
        if result.get("nextCursor") is None:
            self.tools, self.tools_line = dict(self._listed_tools), message.line
            self._tools_until = holds_until(message)
            self._kept_tools = self._listed_bytes


class SeenList:
    """The entries of a list whose pages were all seen, as far as rules need them.

    Attributes:
        names: the entries' names or URIs, in their order.
        repeated: the names that several entries have; True if those entries differ.
        required: the names of the required arguments of each prompt.
        line, asked: the lines of the last page, and of the request for the first one.
    """

    __slots__ = ("asked", "line", "names", "repeated", "required")

    def __init__(self, entries: list[Any], key: str, line: int, asked: int) -> None:
        found = [each for each in entries if isinstance(lookup(each, key), str)]
        self.names: tuple[str, ...] = tuple(each[key] for each in found)
        self.repeated = repeated_names(found, key)
        self.line, self.asked = line, asked
        self.required: dict[str, frozenset[str]] = {
            each[key]: frozenset(_required(each["arguments"]))
            for each in found
            if isinstance(each.get("arguments"), list)
        }


def repeated_names(entries: list[Any], key: str) -> dict[str, bool]:
    """Return the names that several entries have, and whether those entries differ.

    Args:
        entries: the entries.
        key: the member with an entry's name.
    """
    named = [each for each in entries if isinstance(lookup(each, key), str)]
    if len({each[key] for each in named}) == len(named):
        return {}
    first: dict[str, Any] = {}
    found: dict[str, bool] = {}
    for each in named:
        name = each[key]
        if _REDACTED in name:
            continue
        if name in first:
            found[name] = found.get(name, False) or first[name] != each
        else:
            first[name] = each
    return found


def _required(arguments: list[Any]) -> Iterator[str]:
    for each in arguments:
        if lookup(each, "required") is True and isinstance(lookup(each, "name"), str):
            yield each["name"]
