"""`lastModified` of resources: given, and computed for each list."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone
from typing import TYPE_CHECKING, Any

import pytest

from mcp_core.registry import DeclarationError, Server
from mcp_core.types import Annotations
from tests.harness.jsonrpc import VERSIONS, C, E
from tests.harness.messages.scripted_client import ScriptedClient

if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import tzinfo

NOON = datetime(2026, 7, 28, 12, tzinfo=UTC)
NOON_TEXT = "2026-07-28T12:00:00Z"


def text() -> str:
    return "x"


def city(name: str) -> str:
    return name


def server_with(last_modified: Any, **options: Any) -> Server:
    server = Server("s")
    server.add_resource("notes://today", text, last_modified=last_modified, **options)
    server.add_resource("city://{name}", city, last_modified=last_modified, **options)
    return server


def listed_annotations(stage: ScriptedClient) -> list[Any]:
    """Return the annotations of the listed resource and of the listed template."""
    stage.asks(1, "resources/list")
    stage.asks(2, "resources/templates/list")
    resources, templates = (message["result"] for message in stage.sent_messages())
    return [
        listed.get("annotations")
        for listed in (*resources["resources"], *templates["resourceTemplates"])
    ]


def test_function_may_say_in_its_own_words_what_it_returns() -> None:
    """Its result is checked for each list; its annotation may be for type checkers only."""

    def modified() -> OnlyForTypeCheckers:  # type: ignore[name-defined] # noqa: F821
        return NOON_TEXT

    server_with(modified)


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (NOON, NOON_TEXT),
        (NOON.astimezone(timezone(timedelta(hours=2))), NOON_TEXT),
        (NOON + timedelta(microseconds=5), "2026-07-28T12:00:00.000005Z"),
        ("2026-07-28", "2026-07-28"),
        ("2026-07-28T14:00:00+02:00", "2026-07-28T14:00:00+02:00"),
        (lambda: NOON, NOON_TEXT),
        (lambda: NOON_TEXT, NOON_TEXT),
        (lambda: None, None),
    ],
)
def test_last_modified_is_listed_where_the_revision_has_it(
    version: str, value: Any, expected: str | None
) -> None:
    stage = ScriptedClient(server_with(value), version)
    shown = {"lastModified": expected} if version >= C and expected else None
    listed = listed_annotations(stage)
    assert [each or None for each in listed] == [shown, shown]
    assert not stage.runtime.warnings


def test_function_is_called_for_each_list_and_no_revision_without_the_field() -> None:
    times = iter(NOON + timedelta(hours=hour) for hour in range(9))
    server = server_with(lambda: next(times), annotations=Annotations(priority=0.5))
    for version in VERSIONS[:2]:
        listed_annotations(ScriptedClient(server, version))
    stage = ScriptedClient(server, E)
    found = [entry["lastModified"] for _ in range(2) for entry in listed_annotations(stage)]
    assert found == [f"2026-07-28T{hour}:00:00Z" for hour in range(12, 16)]
    assert {entry["priority"] for entry in listed_annotations(stage)} == {0.5}


@pytest.mark.parametrize("middleware", [False, True])
def test_function_that_fails_leaves_its_own_time_out_and_is_logged(middleware: bool) -> None:
    """One deleted file must not make the whole list fail."""

    def removed() -> datetime:
        raise FileNotFoundError("notes.txt")

    server = Server("s")
    server.add_resource("notes://a", text, name="a", last_modified=removed)
    server.add_resource("notes://b", text, name="b", last_modified=lambda: "yesterday")
    server.add_resource("notes://c", text, name="c", last_modified=lambda: NOON)
    if middleware:

        @server.middleware
        async def around(context: Any, proceed: Any) -> Any:
            return await proceed()

    stage = ScriptedClient(server, E)
    stage.asks(1, "resources/list")
    (message,) = stage.sent_messages()
    shown = {
        entry["name"]: entry.get("annotations", {}).get("lastModified")
        for entry in message["result"]["resources"]
    }
    assert shown == {"a": None, "b": None, "c": NOON_TEXT}
    first, second = stage.runtime.warnings
    assert "last_modified of function 'text' failed: FileNotFoundError('notes.txt')" in first
    assert "'yesterday' is no ISO 8601 time such as" in second


def test_pages_with_computed_times_have_the_same_entries_and_cursors() -> None:
    """Lists with computed times can't come from the page cache, but must page the same way."""

    def names(last_modified: Any, revision: str) -> list[list[str]]:
        server = Server("s", page_size=2)
        for index in range(5):
            option = last_modified if index % 2 else None
            server.add_resource(f"n://{index}", text, name=f"n{index}", last_modified=option)
        stage = ScriptedClient(server, revision)
        pages: list[list[str]] = []
        cursor: dict[str, str] = {}
        while True:
            stage.asks(len(pages), "resources/list", **cursor)
            (message,) = stage.sent_messages()
            result = message["result"]
            pages.append([entry["name"] for entry in result["resources"]])
            if "nextCursor" not in result:
                return pages
            cursor = {"cursor": result["nextCursor"]}

    for revision in (C, E):
        assert names(lambda: NOON, revision) == [["n0", "n1"], ["n2", "n3"], ["n4"]]
        assert names(None, revision) == [["n0", "n1"], ["n2", "n3"], ["n4"]]


def test_unknown_cursor_of_a_computed_list_is_an_error() -> None:
    stage = ScriptedClient(server_with(lambda: NOON), E)
    stage.asks(1, "resources/list", cursor="x")
    (message,) = stage.sent_messages()
    assert message["error"]["message"] == "Unknown cursor"
    assert not stage.runtime.reports


@pytest.mark.parametrize("option", ["thread", "threads"])
def test_function_that_blocks_runs_in_a_worker_thread(option: str) -> None:
    """The resource's own `thread=True` and the server's `threads=True` both apply to it."""
    server = Server("s", threads=option == "threads")
    options: Any = {"thread": True} if option == "thread" else {}
    server.add_resource("notes://today", text, last_modified=lambda: NOON, **options)
    stage = ScriptedClient(server, E)
    threads: list[int] = []

    async def in_thread(function: Callable[[], Any]) -> Any:
        threads.append(1)
        return function()

    stage.runtime.in_thread = in_thread  # type: ignore[method-assign]
    stage.asks(1, "resources/list")
    (message,) = stage.sent_messages()
    assert message["result"]["resources"][0]["annotations"] == {"lastModified": NOON_TEXT}
    assert threads == [1]


async def later() -> datetime:
    return NOON


@pytest.mark.parametrize(
    ("options", "error"),
    [
        ({"last_modified": datetime(2026, 7, 28)}, "has no time zone: use"),  # noqa: DTZ001
        ({"last_modified": "yesterday"}, "'yesterday' is no ISO 8601 time"),
        ({"last_modified": 7}, "a datetime or a text, not int"),
        ({"last_modified": later}, "a plain function without parameters"),
        ({"last_modified": city}, "a plain function without parameters"),
        (
            {"last_modified": NOON, "annotations": Annotations(last_modified=NOON_TEXT)},
            "lastModified is given twice",
        ),
        ({"annotations": Annotations(last_modified="yesterday")}, "is no ISO 8601 time"),
        ({"annotations": Annotations(last_modified=7)}, "a datetime or a text, not int"),  # type: ignore[arg-type]
    ],
)
def test_invalid_last_modified_is_refused_at_the_declaration(options: Any, error: str) -> None:
    with pytest.raises(DeclarationError, match=error):
        Server("s").add_resource("notes://today", text, **options)


@pytest.mark.parametrize("zone", [UTC, timezone(timedelta(hours=2))])
def test_annotations_may_have_a_datetime(zone: tzinfo) -> None:
    server = Server("s")
    given: Any = {"last_modified": NOON.astimezone(zone), "priority": 1}
    server.add_resource("notes://today", text, annotations=Annotations(**given))
    stage = ScriptedClient(server, E)
    stage.asks(1, "resources/list")
    (message,) = stage.sent_messages()
    (listed,) = message["result"]["resources"]
    assert listed["annotations"] == {"lastModified": NOON_TEXT, "priority": 1}
