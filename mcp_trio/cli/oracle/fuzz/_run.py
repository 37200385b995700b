"""A run of the fuzzer: its limits, its reports and its exit status, for servers and clients."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from mcp_trio._nursery import open_quiet_nursery
from mcp_trio.cli._errors import MISUSE, NO_CONNECTION, NOTHING_JUDGED, CliError
from mcp_trio.cli.oracle._junit_file import write_junit

from ._accepted import read_accepted_findings, read_ignored
from ._display import show_summary, show_unseen_rows
from ._options import DEFAULT_CALL_TIMEOUT, DEFAULT_RESPONSE_TIMEOUT

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from mcp_core import ConnectFailed
    from mcp_trio.cli._screen import Screen
    from mcp_trio.oracle.fuzz._probe import Offers
    from mcp_trio.oracle.fuzz.campaign._campaign import Campaign, CampaignOptions
    from mcp_trio.streams._stdio import StopSignal

    from ._display import Display
    from ._options import FuzzOptions

__all__ = [
    "STOP_TIME",
    "begin_junit",
    "campaign_options",
    "finish",
    "no_conversation",
    "run_shown",
    "status_of",
]

FOUND: Final = 1
LOST: Final = NO_CONNECTION
# Seconds after Ctrl+C in which another one is ignored: processes are ended, and files written.
STOP_TIME: Final = 10.0


def campaign_options(
    options: FuzzOptions, *, is_command: bool, invariants: Collection[str] = ()
) -> CampaignOptions:
    """Return how long a run goes on, and which findings it leaves out.

    Args:
        options: the options of the line.
        is_command: True if each conversation has a process of its own.
        invariants: the names of the author's functions, whose findings can be ignored, too.

    Raises:
        CliError: the baseline or the ignored rows cannot be read.
    """
    from mcp_trio.oracle.fuzz.campaign._campaign import DEFAULT_LANES, CampaignOptions

    return CampaignOptions(
        seconds=options.seconds,
        cases=options.cases,
        response_timeout=options.response_timeout,
        call_timeout=options.call_timeout,
        shrinks=options.shrinks,
        keep_going=options.keep_going,
        baseline=read_accepted_findings(options.baseline),
        ignored=read_ignored(options, invariants),
        lanes=options.lanes or (DEFAULT_LANES if is_command and not options.stress else 1),
    )


def begin_junit(options: FuzzOptions, words: Sequence[str], secrets: Collection[str]) -> None:
    """Write the report of a run that hasn't ended, in place of an earlier run's.

    It stays if the run doesn't get as far as its own report, even if it is killed. A device or a
    pipe, such as /dev/stdout, gets one report only.

    Raises:
        CliError: the report cannot be written.
    """
    from mcp_trio.oracle.fuzz._report import failed_junit_report

    path = options.junit
    if path is None or (path.exists() and not path.is_file()):
        return
    target = NamedTarget(list(words), secrets)
    write_junit(path, failed_junit_report(target, "the run has not ended: its output says why"))


class NamedTarget(NamedTuple):
    """A target's command, or its URL as the only word, as far as a report needs it."""

    command: Sequence[str]
    secrets: Collection[str]


def no_conversation(target: Any, error: ConnectFailed, options: FuzzOptions) -> CliError:
    """Return the error of a run that cannot begin. Replace an earlier run's report with it."""
    from mcp_trio.oracle.fuzz._report import failed_junit_report

    if options.junit is not None:
        write_junit(options.junit, failed_junit_report(target, str(error)))
    return CliError(str(error), NO_CONNECTION)


async def run_shown(campaign: Campaign, display: Display, folder: Path) -> None:
    """Run a campaign and show its progress. The findings in `folder` are played first.

    Raises:
        CliError: nothing can be written to the folder, or its last report cannot be read.
    """
    from mcp_trio.oracle.fuzz._report import REPORT, check_folder
    from mcp_trio.oracle.fuzz._stored_report import read_stored

    try:
        check_folder(folder)
        known = () if campaign.checks is None else campaign.checks.invariants.known
        stored = read_stored(folder, campaign.side, known=known, lacks=campaign.lacks)
    except OSError as exc:
        raise CliError(f"{exc.filename}: {exc.strerror}", MISUSE) from exc
    except ValueError as exc:
        cure = "repair or remove it, or give another folder with --output"
        raise CliError(f"{folder / REPORT}: {exc}; {cure}", MISUSE) from exc
    campaign.kept = stored.kept
    campaign.notes += stored.notes
    async with open_quiet_nursery() as nursery:
        nursery.start_soon(display.run, campaign)
        try:
            await campaign.run(stored.cases)
        except Exception as exc:  # noqa: BLE001 - raised by `status_of`, once the files are written
            campaign.failure = exc


def finish(
    options: FuzzOptions,
    campaign: Campaign,
    offers: Offers,
    stdout: Screen,
    stderr: Screen,
    stop: StopSignal,
) -> int:
    """Write the files of a run, print its report or summary, and return the exit status.

    Args:
        options: the run's options.
        campaign: the run.
        offers: what the target offers.
        stdout, stderr: this process's screens.
        stop: the signal that has ended the run, if one has.

    Raises:
        CliError: a file cannot be written.
    """
    if stop.caught:
        _mark_interrupted(campaign, options)
    _write(options, campaign, offers, stdout, stderr)
    return stop.exit_code if stop.caught else status_of(campaign, options)


def _mark_interrupted(campaign: Campaign, options: FuzzOptions) -> None:
    """Say in a run's reports that a signal has ended it, and when."""
    spent = f"after {campaign.drawing_seconds:.0f}"
    whole = "" if options.seconds is None else f" of {options.seconds:g}"
    examining = " s, while what was seen was examined" if campaign.is_drawn else " s"
    campaign.interrupted = f"it was interrupted {spent}{whole}{examining}"


def _write(
    options: FuzzOptions, campaign: Campaign, offers: Offers, stdout: Screen, stderr: Screen
) -> None:
    from mcp_trio.oracle.fuzz._report import (
        RunDirectory,
        junit_report,
        report_document,
        write_findings,
    )

    arguments = {**options.test_arguments}
    if campaign.target.kind != "http":
        root = Path.cwd()  # the run's directory, not the tests'
        path = root / arguments.get("cwd", "")
        arguments["cwd"] = RunDirectory(path, options.output, root)
    if options.response_timeout != DEFAULT_RESPONSE_TIMEOUT:
        arguments["response_timeout"] = options.response_timeout
    if options.call_timeout != DEFAULT_CALL_TIMEOUT:
        arguments["call_timeout"] = options.call_timeout
    if options.invariants is not None:
        arguments["invariants"] = RunDirectory(options.invariants, options.output, Path.cwd())
    document = report_document(campaign, offers, options.seed)
    if options.junit is not None:  # first: the folder may not be writable
        write_junit(options.junit, junit_report(campaign, strict=options.strict))
    try:
        names = write_findings(options.output, campaign, document, **arguments)
    except OSError as exc:
        raise CliError(f"{exc.filename}: {exc.strerror}", MISUSE) from exc
    if options.as_json:
        stdout.write_json(document)
    else:
        if options.rows:
            show_unseen_rows(stdout, campaign, offers)
        show_summary(stdout, stderr, campaign, options, names)


def status_of(campaign: Campaign, options: FuzzOptions) -> int:
    """Return the exit status of a run. Raise the error of the fuzzer that has ended it."""
    if campaign.failure is not None:
        raise campaign.failure
    is_found = any(options.strict or each.is_failure for each in campaign.findings)
    is_found = is_found or (options.strict and bool(campaign.habits))
    if campaign.is_lost or (campaign.is_away and not is_found):
        return LOST
    if is_found:
        return FOUND
    if campaign.broken:
        return MISUSE
    return NOTHING_JUDGED if campaign.unjudged else 0
