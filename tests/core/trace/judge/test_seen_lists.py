"""The lists that the judge knows, after each page and each notification."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from mcp_core.trace.judge.conversation import _lists
from mcp_core.trace.judge.conversation._lists import LISTS, Lists, SeenList, repeated_names
from tests.core.trace.judge.conversations import ask, error, notify, result
from tests.core.trace.judge.seen import message_of, request_of, response_of

if TYPE_CHECKING:
    from mcp_core.trace.judge._message import SeenMessage, SeenRequest

VIEW, OTHER = ("a token",), ("another token",)
TOOLS = [{"name": "a"}, {"name": "b"}]


def asked(lists: Lists, line: int, method: str = "tools/list", **params: Any) -> SeenRequest:
    """Return a request for a page that was sent in a line."""
    message = message_of(ask(line, method, **params), line, "client")
    lists.receive_request(message)
    return request_of(ask(line, method, **params), line)


def page(
    lists: Lists,
    request: SeenRequest,
    view: tuple[str, ...] = VIEW,
    *,
    size: int = 10,
    **given: Any,
) -> SeenMessage:
    """Return the page that answers a request in the line after it."""
    message = response_of(result(request.id, **given), request, request.line + 1, size=size)
    assert lists.receive_page(message, request, given, view) == ""
    return message


def test_nothing_is_known_of_lists_at_first() -> None:
    lists = Lists()
    assert (lists.tools, lists.tools_line, lists.kept_bytes) == (None, 0, 0)
    assert (lists.compiled, lists.annotations, lists.complete, lists.changed) == ({}, {}, {}, {})
    assert (lists.silent_changes, lists.cursors, lists.cursor_scopes) == ({}, {}, {})
    assert lists.is_only_view(VIEW)
    assert lists.tool("a") is None
    assert lists.find_listing(request_of(ask(1, "tools/list"))) is None


def test_tools_are_those_of_all_pages_of_the_last_list() -> None:
    """They are known from the last page on."""
    lists = Lists()
    page(lists, asked(lists, 1), tools=[TOOLS[0], 5, {"name": 1}], nextCursor="2")
    assert lists.tool("a") is None
    page(lists, asked(lists, 3, cursor="2"), tools=[TOOLS[1]])
    assert lists.tools == {"a": TOOLS[0], "b": TOOLS[1]}
    assert lists.tools_line == 4
    assert lists.tool("a") is TOOLS[0]
    assert lists.tool(["a"]) is lists.tool("c") is None
    call = ask(9, "tools/call", name="b")
    assert lists.tool_of(request_of(call, 5)) is TOOLS[1]
    assert lists.tool_of(request_of(call, 4)) is None
    page(lists, asked(lists, 5), tools=[TOOLS[1]])
    assert lists.tools == {"b": TOOLS[1]}
    page(lists, asked(lists, 7), tools=5, nextCursor=None)
    assert lists.tools == {}


@pytest.mark.parametrize("method", LISTS)
def test_list_is_complete_with_its_last_page(method: str) -> None:
    """Its request is the one for the first page, and only a list of tools gives tools."""
    member, key = LISTS[method]
    lists = Lists()
    first = asked(lists, 1, method)
    listing = lists.find_listing(first)
    assert listing is not None
    begun: dict[str, Any] = {member: [{key: "a"}, {key: 1}], "nextCursor": "2"}
    message = page(lists, first, **begun)
    assert lists.completed_list(message) is None
    assert lists.find_listing(first) is None
    second = asked(lists, 3, method, cursor="2")
    ended: dict[str, Any] = {member: [{key: "b"}]}
    page(lists, second, **ended)
    found = lists.complete[method]
    assert (found.names, found.line, found.asked) == (("a", "b"), 4, 1)
    assert (lists.tools is not None) is (method == "tools/list")
    assert lists.silent_changes == {}


def test_list_of_one_page_begins_with_its_request() -> None:
    lists = Lists()
    request = asked(lists, 7)
    message = response_of(result(1, tools=TOOLS), request, 8)
    found = lists.completed_list(message)
    assert found is not None
    assert (found.names, found.line, found.asked) == (("a", "b"), 8, 7)
    assert lists.completed_list(message) is found
    assert lists.completed_list(response_of(result(1, tools=[]), request, 8)) is not found


@pytest.mark.parametrize(
    ("method", "answer", "members"),
    [
        ("tools/list", error(1), {}),
        ("tools/list", result(1, tools=TOOLS, nextCursor="2"), {}),
        ("tools/list", result(1, tools={}), {}),
        ("tools/list", result(1), {}),
        ("tools/call", result(1, tools=TOOLS), {}),
        ("tools/list", result(1, tools=TOOLS), {"size": _lists.MAX_LIST_BYTES + 1}),
        ("tools/list", result(1, tools=TOOLS), {"request": None}),
    ],
)
def test_response_without_a_whole_list_completes_none(
    method: str, answer: Any, members: dict[str, Any]
) -> None:
    lists = Lists()
    message = response_of(answer, asked(lists, 1, method), 2)
    for name, value in members.items():
        setattr(message, name, value)
    assert lists.completed_list(message) is None


def test_list_at_the_limit_of_bytes_is_complete() -> None:
    lists = Lists()
    request = asked(lists, 1)
    message = response_of(result(1, tools=TOOLS), request, 2, size=_lists.MAX_LIST_BYTES)
    assert lists.completed_list(message) is not None


def test_page_of_a_listing_whose_beginning_was_not_seen_completes_none() -> None:
    lists = Lists()
    request = asked(lists, 1, cursor="5")
    message = response_of(result(1, tools=TOOLS), request, 2)
    assert lists.completed_list(message) is None
    page(lists, request, tools=TOOLS)
    assert (lists.complete, lists.tools) == ({}, None)


def test_page_of_an_earlier_listing_completes_its_list_and_gives_no_tools() -> None:
    lists = Lists()
    early, late = asked(lists, 1), asked(lists, 3)
    message = page(lists, early, tools=TOOLS)
    assert lists.complete["tools/list"].asked == 1
    assert (lists.tools, lists.kept_bytes) == (None, 0)
    assert lists.completed_list(message) is None  # that request has its response
    page(lists, late, tools=TOOLS[:1])
    assert lists.complete["tools/list"].names == ("a",)
    assert lists.tools == {"a": TOOLS[0]}


def test_request_that_failed_can_be_repeated() -> None:
    lists = Lists()
    lists.receive_failure("tools/list", 1)
    page(lists, asked(lists, 1), tools=TOOLS[:1], nextCursor="2")
    asked(lists, 3, cursor="2")
    lists.receive_failure("tools/list", 3)
    page(lists, asked(lists, 5, cursor="2"), tools=TOOLS[1:])
    assert lists.complete["tools/list"].names == ("a", "b")


# -- Changes ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("change", "changed"),
    [
        ("notifications/tools/list_changed", ["tools/list"]),
        ("notifications/prompts/list_changed", ["prompts/list"]),
        (
            "notifications/resources/list_changed",
            ["resources/list", "resources/templates/list"],
        ),
        ("notifications/roots/list_changed", ["roots/list"]),
    ],
)
def test_notification_forgets_the_tools_and_silent_changes_of_its_lists(
    change: str, changed: list[str]
) -> None:
    lists = Lists()
    page(lists, asked(lists, 1), tools=TOOLS)
    lists.silent_changes = dict.fromkeys(LISTS, (1, 2, 3.0))
    lists.receive_change(message_of(notify(change), 9))
    assert lists.changed == dict.fromkeys(changed, 9)
    assert lists.silent_changes.keys() == LISTS.keys() - changed
    assert (lists.tools is None) is (changed == ["tools/list"])


def test_listing_that_a_change_meets_gives_no_tools() -> None:
    lists = Lists()
    page(lists, asked(lists, 1), tools=TOOLS[:1], nextCursor="2")
    lists.receive_change(message_of(notify("notifications/tools/list_changed"), 3))
    page(lists, asked(lists, 5, cursor="2"), tools=TOOLS[1:])
    assert lists.tools is None
    page(lists, asked(lists, 7), tools=TOOLS)
    assert lists.tools is not None


@pytest.mark.parametrize(
    ("names", "changed", "expected"),
    [
        ("ab", 0, {}),
        ("ba", 0, {}),
        ("abb", 0, {}),
        ("a", 0, {"tools/list": (4, 12, 1.2)}),
        ("abc", 2, {"tools/list": (4, 12, 1.2)}),
        ("abc", 3, {}),  # the earlier list may be the changed one
        ("abc", 9, {}),
    ],
)
def test_lists_with_other_names_show_a_change_that_was_not_notified(
    names: str, changed: int, expected: dict[str, Any]
) -> None:
    lists = Lists()
    page(lists, asked(lists, 3), tools=TOOLS)
    lists.changed = {"tools/list": changed} if changed else {}
    page(lists, asked(lists, 11), tools=[{"name": name} for name in names])
    assert lists.silent_changes == expected


# -- Cursors and views -----------------------------------------------------------------------------


def test_cursor_has_the_scope_of_the_pages_that_gave_it() -> None:
    lists = Lists()
    page(lists, asked(lists, 1), tools=[], nextCursor="x", cacheScope="public")
    assert lists.is_given_cursor("tools/list", "x")
    assert not lists.is_given_cursor("tools/list", "y")
    assert not lists.is_given_cursor("prompts/list", "x")
    (scope,) = lists.cursor_scopes.items()
    assert (scope[0][0], scope[1]) == ("tools/list", "public")
    page(lists, asked(lists, 3), tools=[], nextCursor="x", cacheScope="public")
    assert list(lists.cursor_scopes.values()) == ["public"]
    page(lists, asked(lists, 5), tools=[], nextCursor="x", cacheScope="private")
    assert list(lists.cursor_scopes.values()) == [None]
    page(lists, asked(lists, 7), tools=[], nextCursor=5)
    assert len(lists.cursor_scopes) == 1


def test_cursors_are_remembered_up_to_a_number(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_lists, "MAX_ENTRIES", 2)
    lists = Lists()
    found = []
    for line, cursor in enumerate("abc"):
        request = asked(lists, line)
        message = response_of(result(1), request, line)
        given = {"tools": [], "nextCursor": cursor}
        found.append(lists.receive_page(message, request, given, VIEW))
    assert found == ["", "", "there are too many cursors to remember"]
    assert len(lists.cursors["tools/list"]) == 2


def test_pages_of_two_clients_have_no_only_view() -> None:
    lists = Lists()
    for line, view in ((1, VIEW), (3, VIEW)):
        page(lists, asked(lists, line), view, tools=[])
        assert lists.is_only_view(VIEW)
        assert not lists.is_only_view(OTHER)
    page(lists, asked(lists, 5), OTHER, tools=[])
    page(lists, asked(lists, 7), OTHER, tools=[])
    assert not lists.is_only_view(VIEW)
    assert not lists.is_only_view(OTHER)


def test_view_that_was_redacted_may_be_of_several_clients() -> None:
    hidden = ("‹redacted 5›",)
    assert not Lists().is_only_view(hidden)
    lists = Lists()
    page(lists, asked(lists, 1), hidden, tools=[])
    assert not lists.is_only_view(VIEW)


# -- Limits ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(("limit", "is_known"), [(20, True), (19, False)])
def test_tools_are_known_up_to_a_number_of_bytes(
    limit: int, monkeypatch: pytest.MonkeyPatch, *, is_known: bool
) -> None:
    """Those of the list before are forgotten, too."""
    monkeypatch.setattr(_lists, "MAX_TOOL_BYTES", limit)
    lists = Lists()
    lists.tools = {}
    page(lists, asked(lists, 1), tools=TOOLS[:1], nextCursor="2")
    page(lists, asked(lists, 3, cursor="2"), tools=TOOLS[1:], nextCursor="3")
    page(lists, asked(lists, 5, cursor="3"), size=0, tools=[])
    assert (lists.tools is not None) is is_known


@pytest.mark.parametrize(("limit", "is_known"), [(20, True), (19, False)])
def test_entries_are_known_up_to_a_number_of_bytes(
    limit: int, monkeypatch: pytest.MonkeyPatch, *, is_known: bool
) -> None:
    monkeypatch.setattr(_lists, "MAX_LIST_BYTES", limit)
    lists = Lists()
    page(lists, asked(lists, 1, "prompts/list"), prompts=[{"name": "a"}], nextCursor="2")
    assert lists.kept_bytes == 10
    page(lists, asked(lists, 3, "prompts/list", cursor="2"), prompts=[], nextCursor="3")
    assert lists.kept_bytes == (20 if is_known else 0)
    page(lists, asked(lists, 5, "prompts/list", cursor="3"), size=0, prompts=[])
    assert ("prompts/list" in lists.complete) is is_known
    assert lists.kept_bytes == 0


def test_page_without_entries_makes_a_list_unknown() -> None:
    lists = Lists()
    page(lists, asked(lists, 1, "prompts/list"), prompts={}, nextCursor="2")
    assert lists.kept_bytes == 0
    page(lists, asked(lists, 3, "prompts/list", cursor="2"), prompts=[])
    assert lists.complete == {}


def test_bytes_of_tools_count_while_they_are_listed_and_once_they_are_kept() -> None:
    lists = Lists()
    page(lists, asked(lists, 1), size=3, tools=TOOLS, nextCursor="2")
    assert lists.kept_bytes == 3 + 3
    page(lists, asked(lists, 3, cursor="2"), size=4, tools=[])
    assert lists.kept_bytes == 7 + 7
    page(lists, asked(lists, 5), size=2, tools=TOOLS, nextCursor="2")
    assert lists.kept_bytes == 7 + 2 + 2


def test_tools_are_remembered_up_to_a_number(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_lists, "MAX_ENTRIES", 2)
    lists = Lists()
    page(lists, asked(lists, 1), tools=[*TOOLS, {"name": "c"}])
    assert lists.tools is not None
    assert list(lists.tools) == ["a", "b"]


@pytest.mark.parametrize(("exchange", "time", "is_kept"), [(1, 60.2, True), (1, 60.3, False),
                                                           (0, 1e9, True)])  # fmt: skip
def test_tools_over_http_without_sessions_hold_for_a_minute(
    exchange: int, time: float, *, is_kept: bool
) -> None:
    lists = Lists()
    request = asked(lists, 1)
    message = response_of(result(1), request, 2, revisions=("2026-07-28",), exchange=exchange)
    lists.receive_page(message, request, {"tools": TOOLS}, VIEW)
    lists.expire(time)
    assert (lists.tools is not None) is is_kept


# -- Entries ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("entries", "expected"),
    [
        ([{"n": "a"}, {"n": "b"}], {}),
        ([{"n": "a"}, {"n": "a"}], {"a": False}),
        ([{"n": "a"}, {"n": "a", "x": 1}], {"a": True}),
        ([{"n": "a"}, {"n": "a", "x": 1}, {"n": "a"}], {"a": True}),
        ([{"n": "a"}, {"n": "a"}, {"n": "a", "x": 1}], {"a": True}),
        ([{"n": 1}, {"n": 1}, 5, None], {}),
        ([{"n": "b"}, {"n": "a"}, {"n": "b"}, {"n": "a"}], {"b": False, "a": False}),
        ([{"n": "‹redacted 5›"}, {"n": "‹redacted 5›"}], {}),
        ([{"n": "‹redacted 5›"}, {"n": "a"}, {"n": "‹redacted 5›"}, {"n": "a"}], {"a": False}),
    ],
)
def test_names_of_several_entries_are_repeated(entries: list[Any], expected: Any) -> None:
    assert repeated_names(entries, "n") == expected
    assert SeenList(entries, "n", 2, 1).repeated == expected


def test_required_arguments_are_those_of_each_prompt() -> None:
    arguments = [
        {"name": "x", "required": True},
        {"name": "y", "required": 1},
        {"name": "z"},
        {"required": True},
        {"name": 1, "required": True},
        5,
    ]
    entries = [{"name": "a", "arguments": arguments}, {"name": "b"}, {"name": "c", "arguments": 1}]
    found = SeenList(entries, "name", 2, 1)
    assert found.required == {"a": frozenset("x")}
