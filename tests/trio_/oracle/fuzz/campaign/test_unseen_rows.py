"""The rows that had no opportunity in a run, and the reasons."""

from __future__ import annotations

from typing import Any

import pytest

from mcp_core.trace import JUDGED_ROWS, ROWS, opportunity_of
from mcp_trio.oracle.fuzz.campaign._unseen_rows import (
    TargetView,
    counted_reasons,
    judged_side_rows,
    unseen_rows,
)

OLD, NEW = "2025-11-25", "2026-07-28"


def view(**changes: Any) -> TargetView:
    """Return a server over stdio with tools, one of which may be called."""
    found = TargetView("server", "stdio", [NEW, OLD], {OLD: {"tools": {}}, NEW: {}}, True)
    return found._replace(**changes)


def reason(row: str, **changes: Any) -> tuple[str, str]:
    (found,) = (each for each in unseen_rows({}, view(**changes)) if each.row.id == row)
    return found.reason, found.why


@pytest.mark.parametrize(
    ("row", "changes", "kind", "word"),
    [
        ("RPC-20", {}, "revision", "2025-03-26"),
        ("META-10", {"revisions": [OLD]}, "revision", "2026-07-28"),
        ("SHL-11", {}, "transport", "HTTP"),
        ("HTTP-1", {}, "transport", "HTTP"),
        ("STDIO-2", {"transport": "http"}, "transport", "stdio"),
        ("META-19", {}, "broken only", "broken"),
        ("SUB-8", {}, "check only", "mcp-trio check"),
        ("AR-13", {"transport": "http"}, "author", "authorization"),
        ("PRM-4", {}, "capability", "prompts"),
        ("LOG-5", {"revisions": [OLD]}, "capability", "logging"),
        ("TSK-11", {}, "capability", "tasks"),
        ("TOOL-13", {"calls_tools": False}, "tools", "--allow-tool"),
        ("PROG-4", {"calls_tools": False}, "tools", "--allow-tool"),
        ("PROG-4", {}, "target", "notifications/progress"),
        ("ELIC-16", {}, "target", "asked the user"),
        ("ERR-9", {}, "target", "error"),
        ("PAGE-1", {}, "target", "second page"),
        ("SHL-19", {"transport": "http"}, "target", "no event has an id"),
        ("META-13", {}, "target", "_meta"),
        ("TOOL-13", {"calls_tools": False, "lists_tools": False}, "target", "lists no tool"),
        ("TOOL-13", {}, "not drawn", "tools/call"),
        ("PING-1", {}, "not drawn", "ping"),
    ],
)
def test_row_without_opportunity_has_its_reason(
    row: str, changes: Any, kind: str, word: str
) -> None:
    found, why = reason(row, **changes)
    assert (found, word in why) == (kind, True), why


@pytest.mark.parametrize(
    ("row", "changes", "why"),
    [
        ("RPC-20", {}, "the server doesn't speak 2025-03-26"),
        ("RPC-9", {}, "the server doesn't speak 2024-11-05, 2025-03-26, 2025-06-18"),
        (
            "RPC-4",
            {"revisions": [NEW]},
            "the server doesn't speak 2024-11-05, 2025-03-26, 2025-06-18, ...",
        ),
        ("RPC-20", {"side": "client"}, "the client doesn't speak 2025-03-26"),
        ("HTTP-1", {}, "it is about HTTP"),
        ("STDIO-1", {"transport": "http"}, "it is about stdio"),
        ("SUB-8", {}, "the end of a conversation is judged by `mcp-trio check` only"),
        ("PRM-1", {}, "the server doesn't declare prompts"),
        ("TSK-2", {}, "the server doesn't declare tasks"),
        ("RPC-1", {}, "no case has brought such a message"),
        ("TOOL-1", {}, "no case has brought such a response to tools/call, tools/list"),
        ("RPC-2", {}, "the server has sent no request or notification of its kind"),
        ("RPC-8", {}, "the server has sent no such error"),
        ("VER-15", {}, "the server has sent no such error to initialize"),
        ("LOG-1", {"side": "client"}, ""),
        ("TSK-13", {"side": "client"}, "the client has sent no tasks/get"),
    ],
)
def test_reason_names_what_is_missing(row: str, changes: Any, why: str) -> None:
    found = [each.why for each in unseen_rows({}, view(**changes)) if each.row.id == row]
    assert found == [why] * bool(why)


@pytest.mark.parametrize(
    ("declared", "lacks"),
    [
        ({}, True),
        ({"tasks": {}}, False),
        ({"extensions": {"io.modelcontextprotocol/tasks": {}}}, False),
        ({"extensions": {"acme/other": {}, "acme/tasks": {}}}, False),
        ({"extensions": {"acme/tasks/more": {}}}, True),
        ({"extensions": ["acme/tasks"]}, True),
        ({"extensions": {}}, True),
    ],
)
def test_tasks_are_declared_as_a_capability_or_an_extension(declared: Any, lacks: bool) -> None:
    found = reason("TSK-11", revisions=[OLD], capabilities={OLD: {"tools": {}, **declared}})
    assert (found[0] == "capability") is lacks


@pytest.mark.parametrize("capability", [{"subscribe": True}, {}, 5])
def test_capability_of_one_revision_is_enough(capability: Any) -> None:
    declared: dict[str, Any] = {NEW: {}, OLD: {"resources": capability}}
    assert reason("RES-1", capabilities=declared)[0] == "not drawn"
    assert reason("RES-1", capabilities={NEW: {}})[0] == "capability"


def test_rows_that_were_judged_are_not_among_them() -> None:
    found = {each.row.id for each in unseen_rows({"RPC-7": 3, "RPC-1": 0}, view())}
    assert "RPC-7" not in found
    assert "RPC-1" in found


def test_declared_capability_is_no_reason() -> None:
    declared: dict[str, Any] = {NEW: {"prompts": {}}, OLD: {}}
    assert reason("PRM-4", capabilities=declared)[0] != "capability"


def test_every_judged_row_is_of_a_side() -> None:
    assert {*judged_side_rows("server"), *judged_side_rows("client")} == JUDGED_ROWS
    assert opportunity_of(next(row for row in ROWS if row not in JUDGED_ROWS)) is None


def test_rows_of_clients_are_not_about_a_server() -> None:
    assert "RPC-29" not in judged_side_rows("server")
    assert "RPC-28" not in judged_side_rows("client")


def test_reasons_are_counted_the_most_common_first() -> None:
    rows = [
        each for each in unseen_rows({}, view()) if each.row.id in ("SHL-11", "HTTP-1", "PRM-4")
    ]
    assert counted_reasons(rows) == "2 transport, 1 capability"
