"""The beginning of a conversation: which revision the server selects."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from mcp_trio.oracle.fuzz.play._player import Player
from tests.trio_.oracle.fuzz.memory_http import HttpResponse, played_over_http, response_to
from tests.trio_.oracle.fuzz.memory_target import OLD, MemoryTarget, answers, same_each_time

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping


def chooses(version: str) -> Callable[[Mapping[str, Any]], HttpResponse]:
    """Return the behaviour of a server that selects this revision."""

    def respond(message: Mapping[str, Any]) -> HttpResponse:
        response = response_to(message)
        if message.get("method") == "initialize":
            return response._replace(body=response.body.replace(OLD.encode(), version.encode()))
        return response

    return respond


@pytest.mark.parametrize(("version", "rows"), [("2199-01-01", ["LIFE-4"]), (OLD, [])])
async def test_revision_that_does_not_exist_must_not_be_selected(
    autojump_clock: Any, version: str, rows: list[str]
) -> None:
    outcome, _ = await played_over_http(chooses(version), [("open", OLD, "unknown", "all")])
    assert [each.row for each in outcome.faults if each.row == "LIFE-4"] == rows


@pytest.mark.parametrize(
    ("version", "revision", "notes"),
    [
        (OLD, OLD, 1),
        ("2025-06-18", "2025-06-18", 1),  # the client goes on in it
        ("1999-12-31", OLD, 0),  # a client disconnects
    ],
)
async def test_conversation_goes_on_in_the_revision_that_the_server_selects(
    autojump_clock: Any, version: str, revision: str, notes: int
) -> None:
    """Then it serves no other case, which would be for the requested revision."""
    received: list[Any] = []

    def respond(message: Mapping[str, Any]) -> Any:
        received.append(message.get("method"))
        for each in answers(message):
            if message.get("method") == "initialize":
                each["result"]["protocolVersion"] = version
            yield each

    session = await MemoryTarget(same_each_time(respond)).open()
    await Player(probes=False).play([("open", OLD, "whole", "all")], session)
    assert session.revision == revision
    assert received.count("notifications/initialized") == notes
    assert session.is_open is bool(notes)
    assert session.spent is (version != OLD)
    await session.aclose()
