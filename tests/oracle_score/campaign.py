"""A campaign against one mutant: cases of a seed until a fault is found."""

from __future__ import annotations

import logging
import random
import time
import traceback
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, Any

import trio
from msgspec import Struct
from trio._core import _run as trio_run
from trio.testing import MockClock

from mcp_trio._runtime import TrioRuntime
from mcp_trio.oracle.fuzz._probe import probe
from mcp_trio.oracle.fuzz.campaign._campaign import Campaign, CampaignOptions
from mcp_trio.oracle.fuzz.classics import classic_cases
from mcp_trio.oracle.fuzz.client._client_campaign import ClientCampaign
from mcp_trio.oracle.fuzz.client._source import ScriptChoices, ScriptSource, probe_client
from mcp_trio.oracle.fuzz.draw._cases import CaseSource
from mcp_trio.oracle.fuzz.draw._choices import CaseChoices

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterator

    from mcp_trio.oracle.fuzz.campaign._findings import FuzzFinding
    from tests.oracle_score.operators import MutantPlace
    from tests.oracle_score.servers import RightServer

__all__ = ["CampaignResult", "run_campaign", "run_repeatable"]


class CampaignResult(Struct, kw_only=True, omit_defaults=True):
    """The outcome of a campaign.

    Attributes:
        found: the row of the first solid finding that is the mutant's breach, "" without one. In an
            unbroken server each solid finding counts.
        sentence: what it says.
        other: the row of the first solid finding that isn't the breach, "" without one.
        advice: the row of the first finding of the breach that is only advice, "" without one.
        cases: how many cases were played, until then or in all.
        starts: how many processes were started, apart from the probe's.
        seconds: how long it took.
        failure: the exception that has ended it, "" without one.
        notes: the faults that no further play has confirmed, and why the run has ended early.
    """

    found: str = ""
    sentence: str = ""
    other: str = ""
    advice: str = ""
    cases: int = 0
    starts: int = 0
    seconds: float = 0.0
    failure: str = ""
    notes: list[str] = []


def run_campaign(
    server: RightServer, place: MutantPlace | None, *, cases: int, seed: int
) -> CampaignResult:
    """Play cases against a server that is broken at a place, or right with None."""
    began = time.perf_counter()
    result: CampaignResult
    try:
        run = trio.run if server.needs else partial(run_repeatable, seed=seed)
        result = run(partial(_campaign, server, place, cases, seed))
    except Exception as exc:  # noqa: BLE001  an operator's: the other mutants are played all the same
        last = traceback.format_exception(exc)[-2:]
        result = CampaignResult(failure="".join(last).strip())
    result.seconds = time.perf_counter() - began
    return result


async def _campaign(
    server: RightServer, place: MutantPlace | None, cases: int, seed: int
) -> CampaignResult:
    result = CampaignResult()
    async with trio.open_nursery() as nursery:
        target = server.target(place, nursery)

        def found(finding: FuzzFinding) -> None:
            fault = finding.fault
            row = "hang" if fault.kind == "hang" else fault.row
            is_breach = place is None or place.is_found_by(row)
            if not finding.is_failure:
                result.advice = result.advice or (row if is_breach and finding.is_solid else "")
            elif not is_breach:
                result.other = result.other or row
            elif not result.found:
                result.found, result.sentence = row, fault.sentence
                scope.cancel()

        campaign = await _new_campaign(server, target, cases, seed, found)
        target.starts = 0
        with trio.CancelScope() as scope:
            await campaign.run()
        result.cases, result.starts = campaign.cases, target.starts
        if not result.found:
            result.notes = [f"unconfirmed: {name}" for name in sorted(campaign.unconfirmed)]
            result.notes += campaign.notes
        nursery.cancel_scope.cancel()
    return result


async def _new_campaign(
    server: RightServer,
    target: Any,
    cases: int,
    seed: int,
    found: Callable[[FuzzFinding], object],
) -> Campaign:
    """Probe a target, and return a campaign against it."""
    options = CampaignOptions(seconds=None, cases=cases, shrinks=False)
    if server.is_client:
        scripted = ScriptChoices(await probe_client(target), http=False)
        source = ScriptSource(scripted, seed)
        return ClientCampaign(target, source, scripted, options, on_finding=found)
    choices = CaseChoices(await probe(target), server.tools, http=target.kind == "http")
    drawn = CaseSource(choices, seed, classic_cases(choices))
    return Campaign(target, drawn, choices, options, on_finding=found)


def run_repeatable(main: Callable[[], Awaitable[Any]], seed: int) -> Any:
    """Run `main` on a clock that jumps, in the same order each time."""
    with _repeatable(seed):
        return trio.run(main, clock=MockClock(autojump_threshold=0))


@contextmanager
def _repeatable(seed: int) -> Iterator[None]:
    before: tuple[Any, ...] = (
        trio_run._ALLOW_DETERMINISTIC_SCHEDULING,
        TrioRuntime.checkpoint_interval,
        TrioRuntime.monotonic,
        trio.to_thread.run_sync,
        random.getstate(),
    )
    trio_run._ALLOW_DETERMINISTIC_SCHEDULING = True  # type: ignore[misc]
    trio_run._r.seed(seed)
    logging.disable(logging.CRITICAL)
    random.seed(seed)
    # How long handlers really block isn't a part of a mutant.
    TrioRuntime.checkpoint_interval = 0.0
    TrioRuntime.monotonic = staticmethod(trio.current_time)
    trio.to_thread.run_sync = _run_at_once  # type: ignore[assignment]
    try:
        yield
    finally:
        logging.disable(logging.NOTSET)
        trio_run._ALLOW_DETERMINISTIC_SCHEDULING = before[0]  # type: ignore[misc]
        TrioRuntime.checkpoint_interval = before[1]
        TrioRuntime.monotonic = staticmethod(before[2])
        trio.to_thread.run_sync = before[3]
        random.setstate(before[4])


async def _run_at_once(function: Callable[..., Any], *args: Any, **options: Any) -> Any:
    """Call a function here in place of a thread: the clock would jump while a thread runs."""
    await trio.lowlevel.checkpoint()
    return function(*args)
