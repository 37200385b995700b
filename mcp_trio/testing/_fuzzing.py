"""The fuzzer as a function of a test. It needs hypothesis, the extra `mcp-trio[fuzz]`."""

from __future__ import annotations

import os
import shutil
import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mcp_core import ConnectFailed, escape_text
from mcp_trio._nursery import open_quiet_nursery

from ._judging import NothingJudged

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from types import ModuleType

    import trio

    from mcp_core.registry import Server
    from mcp_trio.oracle.fuzz._probe import Offers
    from mcp_trio.oracle.fuzz.campaign._campaign import Campaign, CampaignOptions
    from mcp_trio.oracle.fuzz.campaign._findings import FuzzFinding
    from mcp_trio.oracle.fuzz.causes._baseline import Baseline
    from mcp_trio.oracle.fuzz.invariants._load import Invariants

__all__ = ["FuzzFindings", "fuzz_server"]


class FuzzFindings(AssertionError):
    """The failure of a test in which the fuzzer has found faults of a server.

    Args:
        findings: the findings, each of which every further play has shown.
        directory: has their traces and a report.

    Attributes:
        findings: the findings.
        directory: the same as the argument.
    """

    def __init__(self, findings: Sequence[FuzzFinding], directory: Path) -> None:
        lines = [f"the fuzzer has found {len(findings)} faults of the server, see {directory}:"]
        for each in findings:
            fault = each.fault
            lines.append(f"  {fault.level} {fault.row}: {escape_text(fault.sentence)}")
            lines += [f"    {fault.link}"] if fault.link else []
            lines.append(f"    steps: {escape_text(repr(each.case)[:500])}")
        super().__init__("\n".join(lines))
        self.findings = list(findings)
        self.directory = directory


async def fuzz_server(
    target: str | Server | Sequence[str | os.PathLike[str]],
    directory: Path,
    *,
    seconds: float | None = 10.0,
    cases: int | None = None,
    seed: int = 0,
    allow: Iterable[str] = (),
    response_timeout: float = 2.0,
    call_timeout: float = 10.0,
    baseline: str | os.PathLike[str] | None = None,
    ignore: Iterable[str] = (),
    invariants: str | os.PathLike[str] | ModuleType | None = None,
    **options: Any,
) -> None:
    """Play drawn conversations with a server, as `mcp-trio fuzz` does.

    Args:
        target: a command's words, or a URL on this machine.
        directory: for the files of what is found.
        seconds: of drawing; None for no limit. Then at most 60 s more are spent on confirming what
            was found, and on making it small.
        cases: at most so many are played; None for no limit.
        seed: of the cases. The same seed draws the same cases.
        allow: tools that are called beside those whose hints say that they change nothing.
        response_timeout: seconds for a response.
        call_timeout: seconds for a tool's first call, and at most for later ones, which may take
            three times as long as the tool's slowest call that succeeded.
        baseline: a `report.json` of an earlier run of the command or of this function, whose
            findings are left out.
        ignore: rows whose findings are left out, each as `ROW`, `ROW:METHOD` or `ROW:TOOL`. The
            name of an invariant is a row, too.
        invariants: a Python file with checks of your own, or a module. See
            `mcp_trio.testing.invariants`.
        options: `env`, `inherit_env`, `cwd` for a command, `headers` for a URL, as of
            `mcp_trio.connect`.

    It warns (`UserWarning`) of a baseline of another server, of an ignored row without any finding,
    and of invariants of tools that aren't called.

    Raises:
        ConnectFailed: there is no conversation with the server.
        FuzzFindings: the server breaks rules or invariants.
        InvariantError: the file of invariants is wrong, or one of its functions is broken.
        NothingJudged: no case was played, or there was no time to confirm any fault, such as for
            too small `seconds`.
        OSError: the baseline cannot be read.
        TypeError: `target` is a `Server`.
        ValueError: the server has no tool of a name in `allow`, or is on another machine; the
            baseline isn't a whole report of the fuzzer; or there is no such row to ignore.
    """
    from mcp_trio.oracle.fuzz._echo import Echo
    from mcp_trio.oracle.fuzz._probe import probe
    from mcp_trio.oracle.fuzz._report import report_document, write_findings
    from mcp_trio.oracle.fuzz.campaign._campaign import DEFAULT_LANES, Campaign, CampaignOptions
    from mcp_trio.oracle.fuzz.causes._baseline import parse_ignored_row
    from mcp_trio.oracle.fuzz.classics import classic_cases
    from mcp_trio.oracle.fuzz.draw._cases import CaseSource
    from mcp_trio.oracle.fuzz.draw._choices import CaseChoices
    from mcp_trio.oracle.fuzz.invariants._checks import Checks
    from mcp_trio.oracle.fuzz.invariants._declared import InvariantError
    from mcp_trio.oracle.fuzz.invariants._load import load_invariants

    if isinstance(ignore, str):
        raise TypeError("ignore is a list of rows, not one text")
    declared = None if invariants is None else load_invariants(invariants)
    names = () if declared is None else declared.known
    checks = None if declared is None else Checks(declared)
    limits = CampaignOptions(
        seconds=seconds,
        cases=cases,
        response_timeout=response_timeout,
        call_timeout=call_timeout,
        baseline=_read_baseline(baseline),  # before the directory is removed, which it can be in
        ignored=tuple(parse_ignored_row(each, names) for each in ignore),
        lanes=1 if isinstance(target, str) else DEFAULT_LANES,
    )
    shutil.rmtree(directory, ignore_errors=True)  # of an earlier run
    echo = Echo()
    await echo.begin()
    async with open_quiet_nursery() as nursery:
        fuzzed = _target(target, nursery, options)
        offers = await probe(fuzzed)
        tools = _tools(offers, set(allow))
        if declared is not None:
            _check_tools(declared, offers, tools)
        choices = CaseChoices(offers, tools, http=fuzzed.kind == "http", invariants=declared)
        source = CaseSource(choices, seed, classic_cases(choices))
        campaign = Campaign(fuzzed, source, choices, limits, echo=echo, checks=checks)
        await campaign.run()
    _warn_of_accepted(campaign, limits, offers.name)
    failures = [each for each in campaign.findings if each.is_failure]
    if failures:
        campaign.findings[:] = failures
        write_findings(directory, campaign, report_document(campaign, offers, seed))
        # pytest would collect it in its next run, and two of one name are an error.
        (directory / "test_findings.py").unlink()
        raise FuzzFindings(failures, directory)
    if checks is not None and checks.failure:
        raise InvariantError(f"{checks.invariants.source}: {checks.failure}")
    if campaign.is_lost or campaign.is_away:
        notes = escape_text("; ".join(campaign.notes), "\n")
        raise ConnectFailed(f"the conversation with the server ended: {notes}")
    if campaign.unjudged:
        raise NothingJudged(f"nothing was judged: {campaign.unjudged}")


def _read_baseline(path: str | os.PathLike[str] | None) -> Baseline:
    """Return the findings of an earlier report.

    Raises:
        OSError: it cannot be read.
        ValueError: it isn't a whole report of the fuzzer.
    """
    from mcp_trio.oracle.fuzz.causes._baseline import NO_BASELINE, read_baseline

    if path is None:
        return NO_BASELINE
    try:
        return read_baseline(Path(path).read_bytes())
    except ValueError as exc:
        raise ValueError(f"the baseline {os.fspath(path)}: {exc}") from exc


def _warn_of_accepted(campaign: Campaign, limits: CampaignOptions, name: str) -> None:
    """Warn of what the user has accepted in vain."""
    difference = limits.baseline.find_difference(campaign.side, name)
    if difference:
        warnings.warn(f"the baseline: {escape_text(difference)}", stacklevel=3)
    for entry, count in campaign.found.ignored.items():
        if not count:
            warnings.warn(f"no finding is ignored by {entry}", stacklevel=3)


def _check_tools(declared: Invariants, offers: Offers, tools: Sequence[str]) -> None:
    """Warn of tools whose invariants cannot be checked.

    Raises:
        InvariantError: the server lacks a tool that is named.
    """
    declared.check_tools([str(each.get("name")) for each in offers.tools])
    for line in declared.find_unreached(tools):
        warnings.warn(escape_text(line), stacklevel=3)


def _target(target: Any, nursery: trio.Nursery, options: dict[str, Any]) -> Any:
    if isinstance(target, str):
        from mcp_trio.oracle.fuzz._http import UrlTarget, is_loopback

        if not is_loopback(target):
            raise ValueError(
                "the server is on another machine, which gets thousands of requests: if it is"
                " yours, use `mcp-trio fuzz --allow-remote`"
            )
        return UrlTarget(target, nursery, headers=dict(options.pop("headers", {})), **options)
    if not isinstance(target, (list, tuple)):
        raise TypeError(f"the fuzzer needs a command or a URL, not {type(target).__name__}")
    from mcp_trio.oracle.fuzz._stdio import CommandTarget

    return CommandTarget([os.fspath(word) for word in target], nursery, **options)


def _tools(offers: Offers, allowed: set[str]) -> list[str]:
    """Return the names of the tools that are called.

    Raises:
        ValueError: the server has no tool of a name in `allowed`.
    """
    from mcp_trio.oracle.fuzz._probe import may_call_by_hint

    tools = [each for each in offers.tools if isinstance(each.get("name"), str)]
    unknown = allowed - {each["name"] for each in tools}
    if unknown:
        raise ValueError(f"the server has no tool named {', '.join(sorted(unknown))}")
    return [each["name"] for each in tools if each["name"] in allowed or may_call_by_hint(each)]
