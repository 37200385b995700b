"""The beginning of a conversation: which revision the server selects."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from tests.trio_.oracle.fuzz.memory_http import HttpResponse, played_over_http, response_to
from tests.trio_.oracle.fuzz.memory_target import OLD

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
