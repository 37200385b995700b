"""Listings: which pages the judge takes for one reading of a list, and what that costs."""

from __future__ import annotations

import json
import sys
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest

from mcp_core.trace import Judge, TraceHeader, TraceLine
from mcp_core.trace._ids import text_key
from mcp_core.trace.judge.conversation import _listings, _lists
from tests.core.trace.judge.conversations import C, S, Sent, Start, as_lines, ask, judge, result
from tests.core.trace.judge.rules.http import IN, START, got, sent
from tests.core.trace.judge.rules.lists import changed, two_pages

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from types import FrameType

OLD = Start("2025-11-25")
ENTRIES = {"tools/list": ("tools", "name"), "resources/list": ("resources", "uri")}


def page(
    id: int, method: str, cursor: str, following: str, *names: str
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return a request and its result. A cursor "" is left out."""
    member, key = ENTRIES[method]
    entries: list[dict[str, Any]] = [{key: name, "name": name} for name in names]
    if member == "tools":
        entries = [{**each, "inputSchema": {"type": "object"}} for each in entries]
    more = {"nextCursor": following} if following else {}
    asked = ask(id, method, cursor=cursor) if cursor else ask(id, method)
    return asked, result(id, **{member: entries}, **more)


def in_a_row(*pages: tuple[dict[str, Any], dict[str, Any]]) -> list[Sent]:
    return [each for asked, found in pages for each in (C(asked), S(found))]


def keyset(first: int, order: str) -> list[Sent]:
    """Return a listing with one entry on a page, and the entry as the next page's cursor."""
    ends = list(order[:-1])
    return in_a_row(
        *(
            page(first + place, "resources/list", cursor, following, f"x:{name}")
            for place, (cursor, following, name) in enumerate(
                zip(["", *ends], [*ends, ""], order, strict=True)
            )
        )
    )


def certain(items: Iterable[Sent], rows: tuple[str, ...]) -> list[str]:
    found, _ = judge(OLD, list(items))
    return [each.sentence for each in found if each.is_certain and each.row in rows]


@pytest.mark.parametrize("orders", [("abcd", "bacd") * 3, ("abd", "bad") * 2, ("abd", "bda") * 4])
def test_list_whose_order_changes_between_listings_has_no_circle(orders: tuple[str, ...]) -> None:
    said = [each for i, order in enumerate(orders) for each in keyset(10 * i + 1, order)]
    found, _ = judge(OLD, said)
    assert [each for each in found if each.row == "PAGE-1"] == []


def test_list_that_changes_within_a_circle_is_certain_only_after_another_one() -> None:
    steps = [("", "a"), ("a", "b"), ("b", "a"), ("a", "b")]
    said = in_a_row(*(page(i, "tools/list", *each, "t") for i, each in enumerate(steps, 1)))
    last = in_a_row(page(9, "tools/list", "b", "a", "t"))
    assert certain([*said, *last], ("PAGE-1",))
    assert not certain([*said, changed("tools"), *last], ("PAGE-1",))


@pytest.mark.parametrize("given", ["2", "3"], ids=["the same cursor", "another one"])
def test_page_of_an_earlier_listing_counts_once(given: str) -> None:
    """A cursor that was asked for says nothing about the listings after that."""
    listings = _listings.Listings()

    def play(line: int, cursor: str | None, following: str | None) -> None:
        message: Any = SimpleNamespace(
            line=line, params={} if cursor is None else {"cursor": cursor}
        )
        listings.receive_request(message)
        answer: Any = SimpleNamespace(line=line + 1)
        listings.receive_page(answer, line, following)

    def is_alone() -> bool:
        assert listings.last is not None
        return listings.last.is_alone

    play(1, None, "2")
    play(3, None, given)
    assert is_alone()
    play(5, "2", None)
    assert not is_alone()
    play(7, None, "4")
    play(9, "2", None)
    assert is_alone()


Step = tuple[str, int, str | None]  # ask or page or fail, the request's line, a cursor


def listings_after(*steps: Step) -> _listings.Listings:
    """Return the listings after requests for pages, pages and failures."""
    listings = _listings.Listings()
    for kind, line, cursor in steps:
        message: Any = SimpleNamespace(line=line, params={"cursor": cursor} if cursor else {})
        if kind == "ask":
            listings.receive_request(message)
        elif kind == "page":
            listings.receive_page(SimpleNamespace(line=line + 1), line, cursor)  # type: ignore[arg-type]
        else:
            listings.receive_failure(line)
    return listings


# Two listings that overlap. The page of the earlier one gives the cursor "2", the later one ends.
OVERLAP: tuple[Step, ...] = (
    ("ask", 1, None), ("ask", 3, None), ("page", 1, "2"), ("page", 3, None)
)  # fmt: skip
LEFT: tuple[Step, ...] = (("ask", 1, None), ("page", 1, "2"))  # another listing begins after this


@pytest.mark.parametrize(
    ("steps", "is_alone", "awaited", "request_line"),
    [
        ([("ask", 1, None)], True, None, 1),
        (LEFT, True, "2", 0),
        ([*LEFT, ("ask", 3, "2")], True, None, 3),
        ([*LEFT, ("ask", 3, "x")], True, "2", 0),  # a cursor from elsewhere
        ([("ask", 1, None), ("ask", 3, None)], False, None, 3),
        (OVERLAP, False, None, 0),
        ([*OVERLAP, ("ask", 5, None)], True, None, 5),
        ([*OVERLAP, ("ask", 5, None), ("ask", 7, "2")], False, None, 5),  # goes on after all
        ([*OVERLAP, ("ask", 5, "2"), ("ask", 7, None)], False, None, 7),
        ([*OVERLAP, ("ask", 5, "2"), ("page", 5, None), ("ask", 7, None)], True, None, 7),
        ([*LEFT, ("ask", 3, None), ("ask", 5, "2")], False, None, 3),
        ([*LEFT, ("ask", 3, None), ("page", 3, "2"), ("ask", 5, "2")], False, None, 5),
        # A failure lets the client ask again, at the last listing and at one before it.
        ([*LEFT, ("ask", 3, "2"), ("fail", 3, None)], True, "2", 0),
        ([("ask", 1, None), ("fail", 1, None), ("ask", 3, None)], True, None, 3),
        ([*LEFT, ("ask", 3, "2"), ("ask", 5, None), ("fail", 3, None), ("page", 5, None),
          ("ask", 7, None)], True, None, 7),
        ([*LEFT, ("ask", 3, "2"), ("ask", 5, None), ("fail", 3, None), ("page", 5, None),
          ("ask", 7, None), ("ask", 9, "2")], False, None, 7),
        # Neither a page nor a failure counts a second time, or of a request that wasn't seen.
        ([*LEFT, ("page", 1, "3")], True, "2", 0),
        ([*LEFT, ("page", 9, "3"), ("fail", 9, None)], True, "2", 0),
        ([*LEFT, ("ask", 3, None), ("page", 9, "9"), ("ask", 5, "9")], True, None, 3),
    ],
)  # fmt: skip
def test_pages_belong_to_the_last_listing_or_to_an_earlier_one(
    steps: Iterable[Step], awaited: str | None, request_line: int, *, is_alone: bool
) -> None:
    last = listings_after(*steps).last
    assert last is not None
    expected = None if awaited is None else text_key(awaited)
    assert (last.is_alone, last.awaited, last.request) == (is_alone, expected, request_line)
    assert last.entries == ([] if is_alone else None)


@pytest.mark.parametrize(("limit", "is_alone"), [(2, True), (1, False)])
def test_listing_is_not_alone_once_open_requests_were_too_many_to_remember(
    limit: int, monkeypatch: pytest.MonkeyPatch, *, is_alone: bool
) -> None:
    monkeypatch.setattr(_listings, "MAX_ENTRIES", limit)
    last = listings_after(("ask", 1, None), ("ask", 3, None), ("page", 1, None),
                          ("page", 3, None), ("ask", 5, None)).last  # fmt: skip
    assert last is not None
    assert last.is_alone is is_alone


@pytest.mark.parametrize(("limit", "is_alone"), [(2, True), (1, False)])
def test_listing_is_not_alone_once_cursors_were_too_many_to_remember(
    limit: int, monkeypatch: pytest.MonkeyPatch, *, is_alone: bool
) -> None:
    monkeypatch.setattr(_listings, "MAX_ENTRIES", limit)
    last = listings_after(("ask", 1, None), ("page", 1, "2"), ("ask", 3, None), ("page", 3, "3"),
                          ("ask", 5, None), ("page", 5, None), ("ask", 7, None)).last  # fmt: skip
    assert last is not None
    assert last.is_alone is is_alone


@pytest.mark.parametrize(
    ("steps", "line", "is_first"),
    [
        ([("ask", 1, None)], 1, True),
        ([("ask", 1, None)], 2, False),
        (LEFT, 1, False),  # answered
        ([*LEFT, ("ask", 3, "2")], 3, False),
    ],
)
def test_request_without_a_cursor_is_for_a_first_page(
    steps: Iterable[Step], line: int, *, is_first: bool
) -> None:
    assert listings_after(*steps).is_first(line) is is_first


def interleaved(first: int, *, overlap: Callable[[list[Any], list[Any]], list[Sent]]) -> list[Sent]:
    """Return two listings by clients who see other tools, under way at the same time."""
    mine = [
        page(first, "tools/list", "", "2", "a", "b"),
        page(first + 1, "tools/list", "2", "", "c"),
    ]
    other = [page(first + 2, "tools/list", "", "2", "z", "a"),
             page(first + 3, "tools/list", "2", "", "b")]  # fmt: skip
    return overlap(mine, other)


def both_open(mine: list[Any], other: list[Any]) -> list[Sent]:
    return [C(other[0][0]), C(mine[0][0]), S(other[0][1]), S(mine[0][1]),
            *in_a_row(other[1], mine[1])]  # fmt: skip


def one_answered(mine: list[Any], other: list[Any]) -> list[Sent]:
    return in_a_row(other[0], mine[0], other[1], mine[1])


def last_pages_open(mine: list[Any], other: list[Any]) -> list[Sent]:
    return [*in_a_row(other[0]), C(other[1][0]), *in_a_row(mine[0]), C(mine[1][0]),
            S(other[1][1]), S(mine[1][1])]  # fmt: skip


def one_left_open(mine: list[Any], other: list[Any]) -> list[Sent]:
    return [*in_a_row(other[0], mine[0], other[1])]


@pytest.mark.parametrize("overlap", [both_open, one_answered, last_pages_open, one_left_open])
def test_listings_that_overlap_are_not_read_as_one(overlap: Any) -> None:
    said = [each for first in (1, 11, 21) for each in interleaved(first, overlap=overlap)]
    assert certain(said, ("TOOL-19", "PAGE-1")) == []


def test_listings_after_an_overlap_are_judged() -> None:
    again = [
        each
        for first in (11, 21)
        for each in in_a_row(
            page(first, "tools/list", "", "2", "a"), page(first + 1, "tools/list", "2", "", "a")
        )
    ]
    assert certain([*interleaved(1, overlap=both_open), *again], ("TOOL-19",))


def same_twice(first: int, cursor: str) -> list[Sent]:
    """Return a listing whose two pages have the same entry."""
    return in_a_row(
        page(first, "tools/list", "", cursor, "a"), page(first + 1, "tools/list", cursor, "", "a")
    )


@pytest.mark.parametrize(
    ("begun", "after", "is_judged"),
    [
        (("2",), ("3", "3"), True),  # the first one was given up
        (("2", "2", "2"), ("3", "3"), True),
        (("2",), ("2", "2"), False),  # the first of these two may be the one that had begun
        (("2",), ("2", "2", "2"), True),
    ],
)
def test_listings_after_one_that_was_given_up_are_judged(
    begun: tuple[str, ...], after: tuple[str, ...], *, is_judged: bool
) -> None:
    """A listing that shares its next cursor can be mistaken for it, and the next one can't."""
    pages = [page(number, "tools/list", "", each, "a") for number, each in enumerate(begun, 1)]
    again = [each for i, cursor in enumerate(after) for each in same_twice(10 + 2 * i, cursor)]
    assert bool(certain([*in_a_row(*pages), *again], ("TOOL-19",))) is is_judged


def test_listing_is_not_judged_once_an_earlier_one_goes_on() -> None:
    begun = in_a_row(page(1, "tools/list", "", "2", "b"))
    on = in_a_row(page(9, "tools/list", "2", "3", "c"))
    first, second = same_twice(10, "x"), same_twice(20, "x")
    assert certain([*begun, *first, *second], ("TOOL-19",))
    assert not certain([*begun, *first[:2], *on, *first[2:], *second], ("TOOL-19",))


UNKNOWN = {"jsonrpc": "2.0", "id": 90, "method": "tools/call", "params": {"name": "z"}}
NOT_FOUND = {"jsonrpc": "2.0", "id": 90, "error": {"code": -32601, "message": "no"}}


@pytest.mark.parametrize(
    ("said", "is_judged"),
    [
        (in_a_row(page(1, "tools/list", "", "2", "a"), page(2, "tools/list", "2", "", "b")), True),
        (in_a_row(page(1, "tools/list", "", "2", "a"), page(2, "tools/list", "2", "", "z")), False),
        # Pages of two listings: the last one's are the tools.
        (in_a_row(page(1, "tools/list", "", "2", "z"), page(2, "tools/list", "", "3", "a"),
                  page(3, "tools/list", "2", "", "z"), page(4, "tools/list", "3", "", "b")), True),
        (in_a_row(page(1, "tools/list", "", "2", "a"), page(2, "tools/list", "", "3", "z"),
                  page(3, "tools/list", "2", "", "a"), page(4, "tools/list", "3", "", "b")), False),
        (in_a_row(page(1, "tools/list", "", "2", "a"), page(2, "tools/list", "", "3", "a"),
                  page(3, "tools/list", "2", "", "z")), False),  # the last one isn't complete
        # The tools on the first page may be others now.
        ([*in_a_row(page(1, "tools/list", "", "2", "z")), changed("tools"),
          *in_a_row(page(2, "tools/list", "2", "", "b"))], False),
    ],
)  # fmt: skip
def test_tools_are_those_of_one_listing(said: list[Sent], *, is_judged: bool) -> None:
    assert bool(certain([*said, C(UNKNOWN), S(NOT_FOUND)], ("TOOL-17",))) is is_judged


@pytest.mark.parametrize("failure", [{"code": -32603, "message": "no"}, None])
def test_listing_after_one_whose_first_page_failed_is_judged(failure: Any) -> None:
    """The error ends the first listing. A request without any response does not."""
    again = [
        each
        for first in (11, 21)
        for each in in_a_row(
            page(first, "tools/list", "", "2", "a"), page(first + 1, "tools/list", "2", "", "a")
        )
    ]
    begun = [C(ask(1, "tools/list"))]
    ended = [S({"jsonrpc": "2.0", "id": 1, "error": failure})] if failure else []
    assert bool(certain([*begun, *ended, *again], ("TOOL-19",))) is bool(failure)


X, OTHER_X = {"uri": "x:a", "name": "n"}, {"uri": "x:a", "name": "m"}


@pytest.mark.parametrize(
    ("headers", "is_certain"),
    [
        ([{}] * 4, True),
        ([{"authorization": "Bearer a"}] * 4, True),
        ([{"authorization": "Bearer a"}, {"authorization": "Bearer b"}] * 2, False),
        ([{}, {}, {}, {"x-api-key": "b"}], False),
        ([{}, {"mcp-session-id": "t"}] * 2, False),
        ([{"authorization": "Bearer ‹redacted 40›"}] * 4, False),
    ],
)
def test_pages_of_several_clients_over_http_are_not_certain(
    headers: list[dict[str, str]], is_certain: bool
) -> None:
    said = [*two_pages(10, "resources/list", X, OTHER_X),
            *two_pages(12, "resources/list", X, OTHER_X)]  # fmt: skip
    header = TraceHeader(format_version=1, observer="between", transport="http")
    judged = Judge(header, from_start=True)
    lines = list(START)
    for number, more in enumerate(headers):
        asked, found = said[2 * number].message, said[2 * number + 1].message
        lines += [sent(10 + number, asked, {**IN, **more}), got(10 + number, 200, found)]
    findings = [each for line in as_lines(lines, "2025-11-25") for each in judged.receive(line)]
    found_again = [each.is_certain for each in findings if each.row == "RES-15"]
    assert found_again[-1:] == [is_certain]


# -- Cost ------------------------------------------------------------------------------------------


def reversed_chain(count: int) -> list[tuple[str, str]]:
    return [(str(i), str(i - 1)) for i in range(1, count + 1)]


def chain_back_to_first(count: int) -> list[tuple[str, str]]:
    """Return a long listing, and pages with cursors from elsewhere that lead back to its start."""
    ahead = [("", "1"), *((str(i), str(i + 1)) for i in range(1, count - 100))]
    return [*ahead, *((f"x{i}", "1") for i in range(100))]


def chain_round_and_round(count: int) -> list[tuple[str, str]]:
    return [("", "0"), *((str(i % 50), str((i + 1) % 50)) for i in range(count - 1))]


def steps(pages: list[tuple[str, str]]) -> int:
    """Return how many lines of the judge of lists the last hundred pages run."""
    judged = Judge(TraceHeader(format_version=1, observer="between", transport="stdio"),
                   from_start=True)  # fmt: skip
    for line in as_lines(OLD.messages(), "2025-11-25"):
        judged.receive(line)
    files, count = {_listings.__file__, _lists.__file__}, 0

    def trace(frame: FrameType, event: str, _: Any) -> Any:
        nonlocal count
        if frame.f_code.co_filename not in files:
            return None
        count += event == "line"
        return trace

    before = sys.gettrace()
    for number, (cursor, following) in enumerate(pages):
        if number == len(pages) - 100:
            sys.settrace(trace)
        for said in in_a_row(page(number, "tools/list", cursor, following, "t")):
            judged.receive(TraceLine(t=0.0, sender=said.sender, raw=json.dumps(said.message)))
    sys.settrace(before)
    return count


@pytest.mark.long
@pytest.mark.parametrize("limit", [10_000, 150])
@pytest.mark.parametrize("chain", [reversed_chain, chain_back_to_first, chain_round_and_round])
def test_page_costs_the_same_after_many_pages(
    chain: Callable[[int], list[tuple[str, str]]], limit: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_listings, "MAX_ENTRIES", limit)
    monkeypatch.setattr(_lists, "MAX_ENTRIES", limit)
    few, many = steps(chain(120)), steps(chain(1_200))
    assert many < 1.2 * few
