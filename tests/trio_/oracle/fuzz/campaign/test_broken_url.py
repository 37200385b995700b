"""Servers at a URL that have only errors left."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
import trio

from mcp_trio.oracle.fuzz._http import UrlTarget
from mcp_trio.oracle.fuzz._probe import Offers
from mcp_trio.oracle.fuzz.campaign._campaign import Campaign, CampaignOptions
from mcp_trio.oracle.fuzz.draw._choices import CaseChoices
from tests.trio_.oracle.fuzz.memory_http import HttpResponse, MemoryHttpServer, response_to
from tests.trio_.oracle.fuzz.memory_target import NEW, OLD

if TYPE_CHECKING:
    from collections.abc import Mapping

CASE = [("open", NEW, "whole", "all"), ("request", "server/discover", {}, "int")]


async def run_against(status: int, *, failing_from: int, recovers: bool = False) -> Campaign:
    """Return a run against a server whose responses have a status from one message on."""
    received = 0

    def respond(message: Mapping[str, Any]) -> HttpResponse:
        nonlocal received
        received += 1
        is_back = recovers and received > failing_from + 15
        if received > failing_from and not is_back:
            return HttpResponse(status, type="text/plain", body=b"error")
        return response_to(message)

    async with trio.open_nursery() as nursery:
        target = UrlTarget("http://127.0.0.1:1/mcp", nursery)
        target._connector = MemoryHttpServer(nursery, respond)  # type: ignore[assignment]
        choices = CaseChoices(Offers(revisions=[NEW, OLD]), ())
        run = Campaign(target, None, choices, CampaignOptions(seconds=None, shrinks=False))
        await run.run([list(CASE) for _ in range(20)])
        nursery.cancel_scope.cancel()
    return run


@pytest.mark.parametrize(
    ("status", "failing_from", "recovers", "is_found"),
    [
        (500, 6, False, True),
        (502, 6, False, True),
        (503, 6, False, False),
        (429, 6, False, False),
        (500, 6, True, False),
        (500, 0, False, False),
    ],
)
async def test_server_that_served_and_has_only_errors_left_is_a_finding(
    autojump_clock: Any, status: int, failing_from: int, recovers: bool, is_found: bool
) -> None:
    run = await run_against(status, failing_from=failing_from, recovers=recovers)
    found = [each for each in run.findings if each.fault.detail == f"status {status}"]
    assert bool(found) is is_found
    assert run.is_away is is_found
    if found:
        assert found[0].is_failure
        assert len(found[0].case) >= 2 * 5
        assert run.unjudged == ""
