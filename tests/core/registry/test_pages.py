"""Pagination: cursors after changes, unknown cursors, and the cache of encoded pages."""

from __future__ import annotations

import inspect
import itertools
import json
import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import Raw
from msgspec.structs import replace

from mcp_core import Dialect
from mcp_core.registry import CacheHint, Server
from mcp_core.registry import _pages as pages
from mcp_core.types import Prompt
from tests.core.registry.lookup_helpers import EVERY_DIALECT, D, E, answered, request
from tests.levels import fewer_examples

LISTS = {
    "tools/list": "tools",
    "resources/list": "resources",
    "resources/templates/list": "resourceTemplates",
    "prompts/list": "prompts",
}


def full(count: int, page_size: int, **options: Any) -> Server:
    """Return a server with `count` declarations of each kind, named n0, n1 and so on."""
    server = Server("s", page_size=page_size, **options)
    for n in range(count):
        server.add_tool(lambda: None, name=f"n{n}", description="d")
        server.add_prompt(lambda: "", name=f"n{n}")
        server.add_resource(f"x://{n}", lambda: "", name=f"n{n}")
        server.add_resource(f"x{n}://{{y}}", lambda y: "", name=f"n{n}")
    return server


def page(
    server: Server, method: str, cursor: str | None, dialect: Dialect = E
) -> tuple[list[str], str | None]:
    """Return the names on a page, and the cursor of the next page."""
    answer = answered(server, method, {} if cursor is None else {"cursor": cursor}, dialect)
    return [entry["name"] for entry in answer[LISTS[method]]], answer.get("nextCursor")


def walk(server: Server, method: str, dialect: Dialect = E) -> list[list[str]]:
    """Return the names on each page."""
    found, cursor = page(server, method, None, dialect)
    walked = [found]
    while cursor is not None:
        found, cursor = page(server, method, cursor, dialect)
        walked.append(found)
    return walked


@pytest.mark.parametrize("method", LISTS)
@pytest.mark.parametrize("dialect", EVERY_DIALECT)
@pytest.mark.parametrize(
    ("count", "size", "lengths"),
    [(0, 2, [0]), (1, 2, [1]), (2, 2, [2]), (3, 2, [2, 1]), (4, 2, [2, 2]), (3, 1, [1, 1, 1])],
)
def test_list_pages_hold_each_entry_once_in_order(
    method: str, dialect: Dialect, count: int, size: int, lengths: list[int]
) -> None:
    walked = walk(full(count, size), method, dialect)
    assert [len(found) for found in walked] == lengths
    assert list(itertools.chain(*walked)) == [f"n{n}" for n in range(count)]


def test_list_page_has_1000_entries_by_default() -> None:
    assert inspect.signature(Server).parameters["page_size"].default == 1_000


@pytest.mark.long
def test_list_page_has_1000_entries_with_long_descriptions() -> None:
    server = Server("s")
    for n in range(1_001):
        server.add_tool(lambda: None, name=f"n{n}", description="d" * 1_500)
    assert [len(found) for found in walk(server, "tools/list")] == [1_000, 1]


def test_list_page_is_limited_in_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pages, "_MAX_PAGE_BYTES", 200)
    server = Server("s")
    for name, length in {"a": 1, "b": 1, "c": 300, "d": 1, "e": 190, "f": 1}.items():
        server.add_prompt(lambda: "", name=name, description="x" * length)
    assert walk(server, "prompts/list") == [["a", "b"], ["c"], ["d"], ["e"], ["f"]]


@pytest.mark.parametrize("size", [0, -1])
def test_list_page_size_below_one_raises(size: int) -> None:
    with pytest.raises(ValueError, match=f"a page has at least one entry, not {size}"):
        Server("s", page_size=size)


@pytest.mark.parametrize("method", LISTS)
def test_list_pages_all_have_the_cache_hints(method: str) -> None:
    server = full(3, 1, cache=CacheHint(60, "public"))
    params: dict[str, str] = {}
    for _ in range(3):
        answer = answered(server, method, params)
        assert (answer["ttlMs"], answer["cacheScope"]) == (60_000, "public")
        assert not {"ttlMs", "cacheScope"} & answered(server, method, params, D).keys()
        params = {"cursor": answer.get("nextCursor", "")}
    assert params == {"cursor": ""}


# --- Cursors --------------------------------------------------------------------------------------


def test_cursor_has_20_url_safe_characters() -> None:
    server = Server("s" * 1_000, page_size=1)
    for name in "ab":
        server.add_prompt(lambda: "", name=name * 1_000)
    cursor = page(server, "prompts/list", None)[1]
    assert cursor is not None
    assert re.fullmatch(r"[A-Za-z0-9_-]{20}", cursor)


def test_cursor_is_valid_after_a_restart() -> None:
    cursor = page(full(3, 2), "tools/list", None)[1]
    assert page(full(3, 2), "tools/list", cursor) == (["n2"], None)
    assert page(full(3, 2), "tools/list", cursor, D) == (["n2"], None)


UNKNOWN = {"code": -32602, "message": "Unknown cursor"}


@pytest.mark.parametrize("method", LISTS)
@pytest.mark.parametrize("dialect", EVERY_DIALECT)
def test_cursor_not_issued_is_unknown(method: str, dialect: Dialect) -> None:
    server = full(3, 2)
    cursor = page(server, method, None, dialect)[1]
    assert cursor is not None
    other_list = next(other for other in LISTS if other != method)
    other_server = Server("other", page_size=1)
    other_server.add_prompt(lambda: "", name="n1")
    other_server.add_prompt(lambda: "", name="n2")
    for wrong in (
        "", " ", cursor + "=", cursor[:-1], cursor.swapcase(), "n1", "1", cursor * 50_000,
        page(server, other_list, None)[1],
        page(other_server, "prompts/list", None)[1],
    ):  # fmt: skip
        assert answered(server, method, {"cursor": wrong}, dialect) == UNKNOWN


@given(cursor=st.text() | st.text("ABCXYZabcxyz019_-=", min_size=18, max_size=22))
def test_cursor_of_any_text_is_unknown(cursor: str) -> None:
    for method in LISTS:
        assert answered(SERVER, method, {"cursor": cursor}) == UNKNOWN


SERVER = full(3, 2)


@pytest.mark.parametrize(
    ("change", "rest"),
    [
        (lambda server: None, [["n2", "n3"], ["n4"]]),
        (lambda server: server.remove_prompt("n0"), [["n2"], ["n3", "n4"]]),
        (lambda server: server.remove_prompt("n2"), [["n3", "n4"]]),
        (lambda server: server.add_prompt(lambda: "", name="new"), [["n2", "n3"], ["n4", "new"]]),
        (lambda server: server.remove_prompt("n1"), None),
        (lambda server: [server.remove_prompt(f"n{n}") for n in (2, 3, 4)], [[]]),
    ],
)
def test_cursor_after_change_of_list_continues_or_is_unknown(
    change: Any, rest: list[list[str]] | None
) -> None:
    server = full(5, 2)
    first, cursor = page(server, "prompts/list", None)
    assert first == ["n0", "n1"]
    change(server)
    if rest is None:
        assert answered(server, "prompts/list", {"cursor": cursor}) == UNKNOWN
        return
    found = []
    while cursor is not None:
        names, cursor = page(server, "prompts/list", cursor)
        found.append(names)
    assert found == rest


def test_cursor_of_a_redeclared_name_is_unknown() -> None:
    """If it followed the name, the entries between the two places would be left out."""
    server = full(4, 2)
    cursor = page(server, "prompts/list", None)[1]
    server.remove_prompt("n1")
    server.add_prompt(lambda: "", name="n1")
    assert answered(server, "prompts/list", {"cursor": cursor}) == UNKNOWN
    assert walk(server, "prompts/list") == [["n0", "n2"], ["n3", "n1"]]


@fewer_examples(5)
@given(data=st.data(), size=st.integers(1, 4), count=st.integers(0, 9))
def test_list_pages_under_changes_hold_lasting_entries_once(
    data: st.DataObject, size: int, count: int
) -> None:
    """Entries come and go between two pages; a cursor is refused only if its entry is gone."""
    server = Server("s", page_size=size)
    names = itertools.count()

    def add() -> str:
        name = f"n{next(names)}"
        server.add_prompt(lambda: "", name=name)
        return name

    present = [add() for _ in range(count)]
    lasting, found = set(present), list[str]()
    cursor = None
    while True:
        answer = answered(server, "prompts/list", {} if cursor is None else {"cursor": cursor})
        if answer == UNKNOWN:
            assert found[-1] not in present
            lasting, found, cursor = set(present), [], None
            continue
        given_out = [entry["name"] for entry in answer["prompts"]]
        assert len(given_out) <= size
        found += given_out
        cursor = answer.get("nextCursor")
        if cursor is None:
            break
        for gone in data.draw(st.lists(st.sampled_from(present), max_size=3, unique=True)):
            server.remove_prompt(gone)
            present.remove(gone)
            lasting.discard(gone)
        present += [add() for _ in range(data.draw(st.integers(0, 1)))]
    assert len(found) == len(set(found))
    assert [name for name in found if name in lasting] == sorted(
        lasting, key=lambda name: int(name[1:])
    )


# --- The cache of encoded pages -------------------------------------------------------------------


@pytest.mark.parametrize("method", LISTS)
def test_list_pages_are_encoded_once_for_each_revision(method: str) -> None:
    server = full(3, 2)
    first = server.answer(request(method))
    assert isinstance(first, Raw)
    cursor = json.loads(bytes(first))["nextCursor"]
    second = server.answer(request(method, {"cursor": cursor}))
    assert server.answer(request(method)) is first
    assert server.answer(request(method, {"cursor": cursor})) is second
    assert server.answer(request(method, {}, D)) is not first
    server.remove_prompt("n0")
    assert server.answer(request(method)) is not first


def test_list_pages_cache_does_not_grow_with_cursors() -> None:
    """A client that makes up cursors must not be able to fill the server's memory."""
    lists = pages.ListPages("s", {"prompts/list": {f"n{n}": Listed(n) for n in range(9)}}, 3, None)
    assert repr(lists) == "<ListPages of 's', 0 encoded>"
    lists.get_page("prompts/list", None, E)
    assert repr(lists) == "<ListPages of 's', 1 encoded>"
    (kept,) = lists._pages.values()
    before = dict(kept.by_start)
    assert list(before) == [0, 3, 6]
    found = [lists.get_page("prompts/list", cursor, E) for cursor in kept_cursors(lists)]
    assert [json.loads(bytes(page or b""))["prompts"][:1] for page in found] == [
        [{"name": f"n{n}"}] for n in range(1, 9)
    ] + [[]]
    assert kept.by_start == before
    assert len(kept.start_after) == 9
    lists.get_page("prompts/list", "made up", E)
    assert len(kept.start_after) == 9
    lists.discard_pages()
    assert repr(lists) == "<ListPages of 's', 0 encoded>"


def kept_cursors(lists: pages.ListPages) -> list[str]:
    """Return the cursor after each entry, which a client can compute too."""
    return [lists._cursor("prompts/list", f"n{n}", Listed(n)) for n in range(9)]


class Listed:
    """An entry of a list."""

    present_time = None
    visibility = None

    def __init__(self, number: int) -> None:
        self.number = number

    def list_entry(self, dialect: Dialect) -> Prompt:
        return Prompt(name=f"n{self.number}")


class Timed(Listed):
    """An entry that not every caller sees, and that has a time of now."""

    class PresentTime:
        def apply_to(self, listed: Prompt, dialect: Dialect, on_error: Any) -> Prompt:
            return replace(listed, title="now")

    class Visibility:
        depends_on_caller = True
        is_enabled = True

    present_time: Any = PresentTime()
    visibility: Any = Visibility()


def test_list_pages_of_outdated_entries_are_not_cached() -> None:
    """A thread may change a list while another thread encodes its pages."""

    class Changing(Listed):
        def list_entry(self, dialect: Dialect) -> Prompt:
            entries["new"] = Listed(1)
            lists.discard_pages()
            return super().list_entry(dialect)

    entries: dict[str, Listed] = {"old": Changing(0)}
    lists = pages.ListPages("s", {"prompts/list": entries}, 3, None)
    first = lists.get_page("prompts/list", None, E)
    entries["old"] = Listed(0)
    assert lists.get_page("prompts/list", None, E) != first


@pytest.mark.parametrize(
    ("lengths", "size", "starts"),
    [
        ([], 2, [0]),
        ([5, 5, 5, 5], 9, [0, 2]),  # two of them are the limit
        ([5, 6, 4, 1], 9, [0, 1, 3]),
        ([20, 20], 9, [0, 1]),
        ([1] * 5, 2, [0, 2, 4]),
    ],
)
def test_page_starts_where_entries_or_bytes_are_too_many(
    lengths: list[int], size: int, starts: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pages, "_MAX_PAGE_BYTES", 10)
    assert pages._page_starts([Raw(b"x" * each) for each in lengths], size) == starts


def test_page_of_a_caller_has_its_own_entries_with_times() -> None:
    """The second page, whose entries are encoded alone."""
    lists = pages.ListPages("s", {"prompts/list": {f"n{n}": Timed(n) for n in range(5)}}, 2, None)
    found: list[Any] = []
    cursor = None
    while found == [] or cursor is not None:
        data = lists.get_page("prompts/list", cursor, E, print, lambda entry: entry.number != 1)
        page = json.loads(bytes(data or b""))
        found.append([(each["name"], each["title"]) for each in page["prompts"]])
        assert page["cacheScope"] == "private"
        cursor = page.get("nextCursor")
    assert found == [[("n0", "now"), ("n2", "now")], [("n3", "now"), ("n4", "now")]]
