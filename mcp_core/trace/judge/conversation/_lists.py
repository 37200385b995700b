"""A conversation's lists: their pages, the tools, cursors and changes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from mcp_core.trace._ids import text_key
from mcp_core.trace._members import lookup
from mcp_core.trace.judge._message import holds_until

from ._bounds import MAX_ENTRIES

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from mcp_core.trace.judge._message import SeenMessage, SeenRequest

__all__ = ["CHANGES", "LISTS", "Lists", "SeenList", "repeated_names"]

MAX_TOOL_BYTES: Final = 8 * 1024 * 1024  # bytes of all pages of the last list of tools
MAX_LIST_BYTES: Final = 1024 * 1024  # bytes of all pages of a list whose names are remembered
_REDACTED: Final = "‹redacted "  # in a text of which the recorder replaced a part
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
        circles: by method, the line at which the pages of a list were first seen to begin again.
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
        self.circles: dict[str, int] = {}
        self.cursor_scopes: dict[tuple[str, str], Any] = {}
        self.kept_bytes = 0
        self._tools_until = 0.0  # seconds
        self._listed_tools: dict[str, Mapping[str, Any]] = {}
        self._listed_bytes = 0
        self._kept_tools = 0
        # By method and cursor: the cursor of the next page, and the line that gave it.
        self._following: dict[tuple[str, str], tuple[str, int]] = {}
        self._last: tuple[SeenMessage, SeenList | None] | None = None
        self._pages: dict[str, list[Any]] = {}
        self._page_bytes: dict[str, int] = {}
        self._next_page: dict[str, str] = {}  # the cursor that continues the pages
        self._asked: dict[str, int] = {}  # the lines of the requests for the first pages

    def is_given_cursor(self, method: str, cursor: str) -> bool:
        """Return True if a page of a list had the cursor."""
        return text_key(cursor) in self.cursors.get(method, ())

    def tool(self, name: Any) -> Mapping[str, Any] | None:
        """Return a tool by its name in the last complete list, or None if that is unknown."""
        return self.tools.get(name) if self.tools is not None and isinstance(name, str) else None

    def tool_of(self, request: SeenRequest) -> Mapping[str, Any] | None:
        """Return a call's tool from a list before the call, or None if it is unknown."""
        return self.tool(request.params.get("name")) if self.tools_line < request.line else None

    def find_circle(self, method: str, cursor: str, following: str, line: int) -> int:
        """Return the oldest line of the pages that lead back to the page at `cursor`.

        Return 0 if none do.

        Args:
            method: the list's method.
            cursor: the page's cursor.
            following: the cursor that the page gives.
            line: the page's line.
        """
        start, at, oldest = text_key(cursor), text_key(following), line
        known = self._following.get((method, start))
        if known is not None and known[0] == at and method not in self.circles:
            return 0  # it was looked for when the page was first seen
        for _ in range(MAX_ENTRIES):
            if at == start:
                return oldest
            found = self._following.get((method, at))
            if found is None:
                return 0
            at, oldest = found[0], min(oldest, found[1])
        return 0  # a circle that the page isn't in

    def completed_list(self, message: SeenMessage) -> SeenList | None:
        """Return the list that `message` completes, or None if other pages are unknown."""
        if self._last is None or self._last[0] is not message:
            self._last = message, self._completed_list(message)
        return self._last[1]

    def _completed_list(self, message: SeenMessage) -> SeenList | None:
        request, result = message.request, message.result
        if request is None or result is None or request.method not in LISTS:
            return None
        pages = self._pages.get(request.method)
        if result.get("nextCursor") is not None:
            return None
        if request.params.get("cursor") is None:
            pages = []
        elif pages is None or not self._continues(request):
            return None
        member, key = LISTS[request.method]
        entries = result.get(member)
        if not isinstance(entries, list) or message.size > MAX_LIST_BYTES:
            return None
        asked = self._asked.get(request.method, 0) if pages else request.line
        return SeenList([*pages, *entries], key, message.line, asked)

    def _continues(self, request: SeenRequest) -> bool:
        """Return True if a request is for the page after the last one, not for an earlier one."""
        cursor = request.params.get("cursor")
        return isinstance(cursor, str) and self._next_page.get(request.method) == text_key(cursor)

    def expire(self, time: float) -> None:
        """Forget the tools once another instance of the server may have other tools."""
        if time > self._tools_until:
            self.tools = None

    def receive_change(self, message: SeenMessage) -> None:
        """Record a notification that a list has changed."""
        if message.method == "notifications/tools/list_changed":
            self.tools = None
            self._listed_tools = {}
        for changed in CHANGES[message.method]:
            self.changed[changed] = message.line
            self.silent_changes.pop(changed, None)

    def receive_page(
        self, message: SeenMessage, request: SeenRequest, result: Mapping[str, Any]
    ) -> str:
        """Record a page. Return why cursors are forgotten, "" if none are."""
        gap = self._receive_cursor(message, request, result)
        self._receive_list(message, request, result)
        self._last = None
        if request.method == "tools/list":
            self._receive_tools(message, request, result)
        page_bytes = sum(self._page_bytes.values())
        self.kept_bytes = self._kept_tools + self._listed_bytes + page_bytes
        return gap

    def _receive_cursor(
        self, message: SeenMessage, request: SeenRequest, result: Mapping[str, Any]
    ) -> str:
        method, following = request.method, result.get("nextCursor")
        if not isinstance(following, str):
            return ""
        cursor = request.params.get("cursor")
        if isinstance(cursor, str):
            self._receive_following(method, cursor, following, message.line)
        following = text_key(following)
        cursors = self.cursors.setdefault(method, set())
        if len(cursors) >= MAX_ENTRIES:
            return "there are too many cursors to remember"
        scope = result.get("cacheScope")
        is_one = following not in cursors or self.cursor_scopes[method, following] == scope
        cursors.add(following)
        self.cursor_scopes[method, following] = scope if is_one else None  # two listings gave it
        return ""

    def _receive_following(self, method: str, cursor: str, following: str, line: int) -> None:
        """Remember which page follows a page, and whether the pages begin again."""
        key, next_key = (method, text_key(cursor)), text_key(following)
        known = self._following.get(key)
        if known is not None and known[0] != next_key:
            self.circles.pop(method, None)  # the list has changed
        is_new = known is None or known[0] != next_key
        if is_new and method not in self.circles:
            oldest = self.find_circle(method, cursor, following, line)
            if oldest:
                self.circles[method] = line
        if known is not None or len(self._following) < MAX_ENTRIES:
            self._following[key] = next_key, line

    def _receive_list(
        self, message: SeenMessage, request: SeenRequest, result: Mapping[str, Any]
    ) -> None:
        """Remember a page, and the list if it is the last one."""
        method = request.method
        found, previous = self.completed_list(message), self.complete.get(method)
        if found is not None:
            self._pages.pop(method, None)
            self._page_bytes.pop(method, None)
            self.complete[method] = found
            # A response that was on its way when the list changed can have the old list.
            is_known = previous is not None and self.changed.get(method, 0) < previous.asked
            if previous is not None and is_known and set(previous.names) != set(found.names):
                self.silent_changes[method] = previous.line, message.line, message.time
            return
        entries = result.get(LISTS[method][0])
        if request.params.get("cursor") is None:
            self._pages[method], self._page_bytes[method] = [], 0
            self._asked[method] = request.line
        elif not self._continues(request):
            self._pages.pop(method, None)
        following = result.get("nextCursor")
        self._next_page[method] = text_key(following) if isinstance(following, str) else ""
        self._page_bytes[method] = self._page_bytes.get(method, 0) + message.size
        if self._page_bytes[method] > MAX_LIST_BYTES or not isinstance(entries, list):
            self._pages.pop(method, None)
        elif method in self._pages:
            self._pages[method] += entries

    def _receive_tools(
        self, message: SeenMessage, request: SeenRequest, result: Mapping[str, Any]
    ) -> None:
        is_first = request.params.get("cursor") is None
        if is_first:
            self._listed_tools, self._listed_bytes = {}, 0
        self._listed_bytes += message.size
        if self._listed_bytes > MAX_TOOL_BYTES:
            self._listed_tools, self.tools = {}, None
            return
        tools = result.get("tools")
        for tool in tools if isinstance(tools, list) else ():
            name = lookup(tool, "name")
            if isinstance(name, str) and len(self._listed_tools) < MAX_ENTRIES:
                self._listed_tools[name] = tool
        is_last = result.get("nextCursor") is None
        if is_last and (is_first or self._listed_tools):
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
