"""`mcp-trio fuzz TARGET`: play drawn conversations against a server, and judge it.

1. What will be called is printed first. By default only tools are called whose hints say that they
   change nothing, here and elsewhere.
2. Ctrl+C ends the run in order: what was found until then is written.
3. stdout has the findings and the summary, or one JSON document; stderr has progress and notes.
"""

from __future__ import annotations

import argparse
import importlib.util
import secrets
import sys
from contextlib import AsyncExitStack, nullcontext, redirect_stdout
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple

import trio

from mcp_core import ALL, ConnectFailed, escape_text
from mcp_core.adapters import add_recording_options
from mcp_trio._nursery import open_quiet_nursery
from mcp_trio.cli._errors import (
    INTERRUPTED,
    MISUSE,
    NO_CONNECTION,
    NOTHING_JUDGED,
    CliError,
    one_line,
)
from mcp_trio.cli._options import (
    NO_WORDS,
    add_process_options,
    add_tried_server,
)
from mcp_trio.cli._parser import new_parser
from mcp_trio.cli._screen import Screen
from mcp_trio.cli._session import DEFAULT_TIMEOUT, Target
from mcp_trio.cli._target import parse_server_command
from mcp_trio.oracle._junit import row_name
from mcp_trio.oracle.fuzz._session import dialect_of
from mcp_trio.recording._open import open_recorder
from mcp_trio.streams._stdio import stop_on_signals

from ._junit_file import write_junit

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping, Sequence

    from mcp_trio.cli.configured._launch import ConfiguredLaunch
    from mcp_trio.oracle.fuzz._probe import Offers
    from mcp_trio.oracle.fuzz.campaign._campaign import Campaign, CampaignOptions
    from mcp_trio.oracle.fuzz.campaign._findings import FuzzFinding
    from mcp_trio.oracle.fuzz.causes._baseline import Baseline, IgnoredRow
    from mcp_trio.oracle.fuzz.habits._watch import ShownHabit
    from mcp_trio.oracle.fuzz.invariants._checks import Checks
    from mcp_trio.oracle.fuzz.invariants._load import Invariants
    from mcp_trio.streams._stdio import StopSignal

__all__ = ["FuzzOptions", "fuzz", "parse"]

FOUND: Final = 1
LOST: Final = NO_CONNECTION
DEFAULT_SECONDS: Final = 60.0
DEFAULT_RESPONSE_TIMEOUT: Final = 2.0  # the same as for `find_faults`
DEFAULT_CALL_TIMEOUT: Final = 10.0  # the same
MAX_LANES: Final = 64  # each has a process of its own, and two for examinations
DEFAULT_RATE: Final = 20.0  # requests a second to another machine
# Seconds after Ctrl+C in which another one is ignored: processes are ended, and files written.
STOP_TIME: Final = 10.0
_LINE_INTERVAL: Final = 10.0  # seconds between two lines of progress without a terminal
_MAX_NAMES: Final = 20
_MAX_FILE: Final = 64 * 1024 * 1024  # bytes of a baseline; a finding has some KiB
_NO_TOOLS: Final = "0 of {} tools were allowed: --allow-tool NAME or --allow-all"

_USAGE: Final = """\
mcp-trio fuzz [options] URL
       mcp-trio fuzz [options] FILE[:NAME]
       mcp-trio fuzz [options] -- COMMAND ARG...
       mcp-trio fuzz [options] --server NAME
       mcp-trio fuzz --client [options] -- COMMAND ARG..."""
_DESCRIPTION: Final = """\
Plays conversations with a server, legal and illegal ones, first those that have broken servers
before, and then others that it draws at random. It judges what the server sends by the rules of the
specification. What it finds is played again on a fresh process, made as small as possible, and
written to a folder: a trace for `mcp-trio show` and `check`, and a test for pytest. Tools are
called only if their hints say that they change nothing. It needs hypothesis: pip install
'mcp-trio[fuzz]'. With --client the command is a client, and has options of its own: mcp-trio fuzz
--client --help."""
_EPILOG: Final = """\
example:
  mcp-trio fuzz --seconds 30 server.py

exit status:
  0    nothing was found, or only advice and habits of the server's SDK
  1    the server breaks at least one rule or invariant, crashes or hangs
  2    the command line, or a file that it names, is wrong; or an invariant is broken
  3    no conversation: the server did not start or answer, or does not any more
  4    nothing was judged: no case was played, no fault that was seen could be played again in time,
       or tools were allowed and no call was answered
  70   an internal error of this command
  130  Ctrl+C; what was found is written
"""


@dataclass(frozen=True, kw_only=True)
class FuzzOptions:
    """The options of a run, as `mcp-trio fuzz --help` explains them."""

    output: Path
    seconds: float | None
    cases: int | None
    seed: int
    era: Literal["legacy", "modern", "both"]
    allowed: tuple[str, ...] = ()
    denied: tuple[str, ...] = ()
    allow_all: bool = False
    requires_tools: bool = False
    stress: bool = False
    strict: bool = False
    keep_going: bool = True
    shrinks: bool = True
    response_timeout: float = DEFAULT_RESPONSE_TIMEOUT
    call_timeout: float = DEFAULT_CALL_TIMEOUT
    lanes: int | None = None
    rate: float | None = None
    junit: Path | None = None
    baseline: Path | None = None
    ignored: tuple[str, ...] = ()
    ignore_file: Path | None = None
    invariants: Path | None = None
    allow_remote: bool = False
    as_json: bool = False
    rows: bool = False
    # Further arguments of the function that plays a case, for the tests that are written.
    test_arguments: Mapping[str, Any] = field(default_factory=dict)
    # Why the entry of a configured server doesn't let a tool be used, or None.
    find_denial: Callable[[str], str | None] = lambda _: None

    @property
    def revisions(self) -> tuple[str, ...]:
        """The revisions of the era, the newest first."""
        return tuple(
            each
            for each in ALL
            if self.era == "both" or dialect_of(each).stateful == (self.era == "legacy")
        )


def parse(words: Sequence[str]) -> Callable[[], int]:
    """Return a function that runs the subcommand and returns the exit status.

    Raises:
        CliError: the command line is wrong, or hypothesis isn't installed.
        SystemExit: argparse has printed help or an error.
    """
    # What follows `--` is a command with options of its own.
    if "--client" in words[: words.index("--") if "--" in words else len(words)]:
        from . import _fuzz_client

        return _fuzz_client.parse(words)
    parser = new_parser("fuzz", usage=_USAGE, description=_DESCRIPTION, epilog=_EPILOG)
    # Values that `parse_server_command` reads, and that this command has no options for.
    parser.set_defaults(
        takes=NO_WORDS,
        positions=[],
        revision=None,
        trace=False,
        keychain=False,
    )
    parser.add_argument("words", nargs="*", default=[], help=argparse.SUPPRESS)
    add = parser.add_argument
    add_run_options(parser)
    add(
        "--allow-tool",
        metavar="NAME",
        action="append",
        default=[],
        help="call this tool too (may be repeated)",
    )
    add("--allow-all", action="store_true", help="call all tools, also those that change something")
    add(
        "--deny",
        metavar="NAME",
        action="append",
        default=[],
        help="do not call this tool (may be repeated)",
    )
    add(
        "--require-tools",
        action="store_true",
        help="exit with 4 if no tool may be called",
    )
    add(
        "--call-timeout",
        metavar="SECONDS",
        type=_positive,
        default=DEFAULT_CALL_TIMEOUT,
        help=f"how long a tool's first call may take (default: {DEFAULT_CALL_TIMEOUT:g}); later"
        " ones three times as long as its slowest success, at least 0.3 s, and no longer than this",
    )
    add(
        "--invariants",
        metavar="FILE",
        type=Path,
        help="check results by the functions in FILE, a Python file of yours that is run: see"
        " mcp_trio.testing.invariants",
    )
    add("--stress", action="store_true", help="send what is large, slow or much, too")
    add(
        "--rate",
        metavar="NUMBER",
        type=_positive,
        help=f"requests a second to URL (default: {DEFAULT_RATE:g} to another machine)",
    )
    add(
        "--allow-remote",
        action="store_true",
        help="send to a server that is on another machine than this one",
    )
    add_tried_server(parser)
    add(
        "--timeout",
        metavar="SECONDS",
        type=_positive,
        default=DEFAULT_TIMEOUT,
        help=f"the timeout for the first response (default: {DEFAULT_TIMEOUT:g})",
    )
    found, target = parse_server_command(parser, words)
    if importlib.util.find_spec("hypothesis") is None:
        raise CliError(
            "`mcp-trio fuzz` needs hypothesis; install it with pip install 'mcp-trio[fuzz]'"
        )
    options = run_options(
        found,
        allowed=tuple(found.allow_tool),
        denied=tuple(found.deny),
        allow_all=found.allow_all,
        requires_tools=found.require_tools,
        stress=found.stress,
        call_timeout=found.call_timeout,
        invariants=found.invariants,
        rate=found.rate,
        allow_remote=found.allow_remote,
    )
    return partial(fuzz, target, options)


def add_run_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of a run, which are the same for servers and for clients."""
    add = parser.add_argument
    add(
        "--output",
        metavar="DIRECTORY",
        type=Path,
        default=Path("mcp-fuzz"),
        help="write the findings here (default: mcp-fuzz); those of the last run are played first",
    )
    add(
        "--seconds",
        type=_positive,
        help=f"draw cases for so long (default: {DEFAULT_SECONDS:g}, or no limit with --cases);"
        " what was found then is examined for a while more, at most a minute",
    )
    add("--cases", type=_count, help="play at most so many cases")
    add(
        "--lanes",
        metavar="NUMBER",
        type=_lanes,
        help="play so many conversations side by side (default: 4 with a command, 1 with a URL or"
        " --stress)",
    )
    add("--seed", type=int, help="draw the cases of this seed (default: another one each time)")
    add(
        "--era",
        choices=("legacy", "modern", "both"),
        default="both",
        help="revisions with a handshake, those without, or both (the default)",
    )
    add(
        "--response-timeout",
        metavar="SECONDS",
        type=_positive,
        default=DEFAULT_RESPONSE_TIMEOUT,
        help=f"how long a response may take (default: {DEFAULT_RESPONSE_TIMEOUT:g}); three times"
        " that if this machine is slow",
    )
    add(
        "--keep-going",
        action=argparse.BooleanOptionalAction,
        default=True,
        help="go on after the first finding (the default)",
    )
    add("--no-shrink", action="store_true", help="do not make cases smaller")
    add(
        "--strict",
        action="store_true",
        help="exit with 1 for advice, flaky findings and habits of the SDK too",
    )
    add("--junit", metavar="REPORT", type=Path, help="write a report of JUnit to REPORT")
    add(
        "--baseline",
        metavar="REPORT",
        type=Path,
        help="leave out the findings of REPORT, a report.json of an earlier run",
    )
    add(
        "--ignore-row",
        metavar="ROW[:METHOD]",
        action="append",
        default=[],
        help="leave out a row's findings, all or those of a METHOD or a tool (may be repeated)",
    )
    add(
        "--ignore-file",
        metavar="FILE",
        type=Path,
        help="leave out the rows in FILE: one ROW[:METHOD] a line, and then the reason",
    )
    add("--json", action="store_true", help="print one JSON document")
    add(
        "--rows",
        action="store_true",
        help="print the rules that had no opportunity in this run, and why",
    )
    add_recording_options(parser)
    add_process_options(parser)


def run_options(found: argparse.Namespace, **more: Any) -> FuzzOptions:
    """Return the options of a run. `more` has fields that `add_run_options` has no options for."""
    seconds = found.seconds
    if seconds is None and found.cases is None:
        seconds = DEFAULT_SECONDS
    return FuzzOptions(
        output=found.output,
        seconds=seconds,
        cases=found.cases,
        seed=secrets.randbelow(1_000_000) if found.seed is None else found.seed,
        era=found.era,
        strict=found.strict,
        keep_going=found.keep_going,
        shrinks=not found.no_shrink,
        response_timeout=found.response_timeout,
        lanes=found.lanes,
        junit=found.junit,
        baseline=found.baseline,
        ignored=tuple(found.ignore_row),
        ignore_file=found.ignore_file,
        as_json=found.json,
        rows=found.rows,
        test_arguments=_test_arguments(found),
        **more,
    )


def _test_arguments(found: argparse.Namespace) -> dict[str, Any]:
    """Return the arguments that make written tests start the target like the run. No secrets."""
    from mcp_trio.oracle.fuzz._report import FromEnvironment, hidden_header, hidden_variable

    headers: dict[str, Any] = {
        name.lower(): hidden_header(name.lower(), value)
        for name, value in getattr(found, "headers", ())
    }
    token_variable = getattr(found, "token_env", None)
    if token_variable is not None:
        headers["authorization"] = FromEnvironment(token_variable, "Bearer ")
    return {
        "env": {
            name: FromEnvironment(name) if value is None else hidden_variable(name, value)
            for name, value in found.env
        },
        "inherit_env": found.inherit_env,
        "cwd": str(found.cwd) if found.cwd else "",
        "headers": headers,
    }


def _configured_arguments(launch: ConfiguredLaunch) -> dict[str, Any]:
    """Return the same arguments for a configured server, taken from its entry."""
    from mcp_trio.oracle.fuzz._report import hidden_header, hidden_variable

    return {
        "env": {
            name: hidden_variable(name, value, is_secret=name not in launch.written_env)
            for name, value in launch.env.items()
        },
        "cwd": str(launch.cwd) if launch.cwd else "",
        "headers": {
            name: hidden_header(name, value, is_secret=name not in launch.written_headers)
            for name, value in launch.headers.items()
        },
    }


def _positive(text: str) -> float:
    number = float(text)
    if not 0 < number < 1e9:
        raise argparse.ArgumentTypeError(f"{text} is not a number above 0")
    return number


def _count(text: str) -> int:
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError(f"{text} is not a number above 0")
    return number


def _lanes(text: str) -> int:
    number = int(text)
    if not 0 < number <= MAX_LANES:
        raise argparse.ArgumentTypeError(f"{text} is not a number from 1 to {MAX_LANES}")
    return number


_positive.__name__ = _count.__name__ = _lanes.__name__ = (
    "number"  # argparse shows this name if `float` raises
)


def fuzz(target: Target, options: FuzzOptions) -> int:
    """Run the fuzzer and return the exit status.

    Raises:
        CliError: there is no conversation with the server, or a file cannot be read or written.
    """
    if target.configured is not None:
        from mcp_trio.cli.configured._launch import find_launch

        launch = find_launch(target, "fuzz", ("stdio", "http"))
        target = launch.applied_to(target)
        options = replace(
            options,
            test_arguments=_configured_arguments(launch),
            find_denial=launch.find_tool_denial,
        )
    return trio.run(_fuzz, target, options)


async def _fuzz(target: Target, options: FuzzOptions) -> int:
    scope = trio.CancelScope()
    # Before the imports, which take a second: a signal meanwhile is an orderly stop, too.
    with stop_on_signals(scope.cancel, patience=STOP_TIME) as stop:
        return await _run_campaign(target, options, scope, stop)


async def _run_campaign(
    target: Target, options: FuzzOptions, scope: trio.CancelScope, stop: StopSignal
) -> int:
    # Imported on first use: they need hypothesis.
    from mcp_trio.oracle.fuzz._echo import Echo
    from mcp_trio.oracle.fuzz._probe import probe
    from mcp_trio.oracle.fuzz.campaign._campaign import Campaign
    from mcp_trio.oracle.fuzz.classics import classic_cases
    from mcp_trio.oracle.fuzz.draw._cases import CaseSource
    from mcp_trio.oracle.fuzz.draw._choices import CaseChoices

    if stop.caught:
        return stop.exit_code
    began = trio.current_time()
    stderr, stdout = target.stderr, Screen(sys.stdout)
    begin_junit(options, target.shown_words, target.known_secrets)
    invariants = _load_invariants(options)
    limits = campaign_options(
        options,
        is_command=not isinstance(target.server, str),
        invariants=() if invariants is None else invariants.known,
    )
    campaign: Campaign | None = None
    async with AsyncExitStack() as recorders, open_quiet_nursery() as nursery:
        with scope:
            fuzzed = _fuzz_target(target, options, nursery)
            recorder = open_recorder(
                target.recording,
                "client",
                fuzzed.kind,
                target.shown_words,
                secrets=target.known_secrets,
                fuzzer="client",
            )
            fuzzed.recorder = await recorders.enter_async_context(recorder)
            try:
                offers = await probe(fuzzed, options.revisions, target.timeout)
            except ConnectFailed as exc:
                raise no_conversation(fuzzed, exc, options) from exc
            tools = _choose_tools(offers, options)
            if options.requires_tools and not tools:
                raise _no_tools(fuzzed, len(offers.tools), options)
            _show_target(stderr, offers, tools, options)
            checks = None
            if invariants is not None:
                checks = _begin_checks(invariants, offers, tools, stderr)
            show_accepted(stderr, limits, Campaign.side, offers.name)
            echo = Echo()
            await echo.begin()
            choices = CaseChoices(
                offers,
                tools,
                http=fuzzed.kind == "http",
                stress=options.stress,
                invariants=invariants,
            )
            display = Display(stderr, stdout, as_json=options.as_json)
            campaign = Campaign(
                fuzzed,
                CaseSource(choices, options.seed, classic_cases(choices)),
                choices,
                limits.after(trio.current_time() - began),
                echo=echo,
                on_finding=display.show_finding,
                on_habit=display.show_habit,
                checks=checks,
            )
            # What the author's functions print isn't a part of the report.
            with nullcontext() if checks is None else redirect_stdout(sys.stderr):
                await run_shown(campaign, display, options.output)
    if campaign is None:
        return stop.exit_code or INTERRUPTED
    if stop.caught:
        mark_interrupted(campaign, options)
    write(options, campaign, offers, stdout, stderr)
    if stop.caught:
        return stop.exit_code
    return status_of(campaign, options)


def _load_invariants(options: FuzzOptions) -> Invariants | None:
    """Return what the file of `--invariants` declares, None without one.

    Raises:
        CliError: the file is wrong.
    """
    if options.invariants is None:
        return None
    from mcp_trio.oracle.fuzz.invariants._declared import InvariantError
    from mcp_trio.oracle.fuzz.invariants._load import load_invariants

    try:
        return load_invariants(options.invariants)
    except InvariantError as exc:
        raise CliError(f"--invariants: {exc}", MISUSE) from exc


def _begin_checks(
    invariants: Invariants, offers: Offers, tools: Sequence[str], stderr: Screen
) -> Checks:
    """Return the checks of a run, and say which of them it cannot make.

    Raises:
        CliError: the server lacks a tool that the file names.
    """
    from mcp_trio.oracle.fuzz.invariants._checks import Checks
    from mcp_trio.oracle.fuzz.invariants._declared import InvariantError

    try:
        invariants.check_tools([str(each.get("name")) for each in offers.tools])
    except InvariantError as exc:
        raise CliError(f"--invariants: {exc}", MISUSE) from exc
    for line in invariants.find_unreached(tools):
        stderr.write_line(("note: ", "yellow"), escape_text(line))

    def show(text: str) -> None:
        stderr.write_line(("broken: ", "bold red"), text)

    return Checks(invariants, on_broken=show)


def _fuzz_target(target: Target, options: FuzzOptions, nursery: trio.Nursery):  # type: ignore[no-untyped-def]
    if isinstance(target.server, str):
        from mcp_trio.oracle.fuzz._http import UrlTarget, is_loopback

        local = is_loopback(target.server)
        if not local and not options.allow_remote:
            raise CliError(
                "the URL is of another machine: it gets thousands of requests, invalid ones too."
                " If it is yours, add --allow-remote, which sends them there"
            )
        rate = options.rate if options.rate is not None or local else DEFAULT_RATE
        return UrlTarget(
            target.server,
            nursery,
            headers=dict(target.headers),
            rate=rate,
            unexpanded=target.unexpanded,
            secrets=target.known_secrets,
        )
    from mcp_trio.oracle.fuzz._stdio import CommandTarget

    if options.rate is not None:
        raise CliError("--rate is for a server at a URL")
    return CommandTarget(
        target.server,
        nursery,
        env=dict(target.env),
        inherit_env=target.inherit_env,
        cwd=target.cwd,
        unexpanded=target.unexpanded,
        secrets=target.known_secrets,
    )


def _choose_tools(offers: Offers, options: FuzzOptions) -> list[str]:
    """Return the names of the tools that are called.

    Raises:
        CliError: an option names a tool that the server doesn't have, or its entry denies.
    """
    from mcp_trio.oracle.fuzz._probe import may_call_by_hint

    names = [str(each["name"]) for each in offers.tools if isinstance(each.get("name"), str)]
    for name in (*options.allowed, *options.denied):
        if name not in names:
            from mcp_trio.cli._errors import unknown_name

            raise unknown_name("tool", name, names)
    for name in options.allowed:
        denial = options.find_denial(name)
        if denial is not None:
            raise CliError(f"--allow-tool {one_line(name)}: {denial}", NO_CONNECTION)
    hinted = {str(each.get("name")) for each in offers.tools if may_call_by_hint(each)}
    return [
        name
        for name in names
        if (options.allow_all or name in hinted or name in options.allowed)
        and name not in options.denied
        and options.find_denial(name) is None
    ]


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
        baseline=_read_baseline(options.baseline),
        ignored=_read_ignored(options, invariants),
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


def _no_tools(target: Any, count: int, options: FuzzOptions) -> CliError:
    """Return the error of `--require-tools`. Replace an earlier run's report with it."""
    from mcp_trio.oracle.fuzz._report import failed_junit_report

    text = _NO_TOOLS.format(count) if count else "the server has no tools"
    if options.junit is not None:
        write_junit(options.junit, failed_junit_report(target, text))
    return CliError(f"nothing was judged: {text}", NOTHING_JUDGED)


async def run_shown(campaign: Campaign, display: Display, folder: Path) -> None:
    """Run a campaign and show its progress. The findings in `folder` are played first.

    Raises:
        CliError: nothing can be written to the folder.
    """
    from mcp_trio.oracle.fuzz._report import check_folder, read_cases, read_kept

    try:
        check_folder(folder)
    except OSError as exc:
        raise CliError(f"{exc.filename}: {exc.strerror}", MISUSE) from exc
    known = () if campaign.checks is None else campaign.checks.invariants.known
    campaign.keep(read_kept(folder, known))
    async with open_quiet_nursery() as nursery:
        nursery.start_soon(display.run, campaign)
        try:
            await campaign.run(read_cases(folder, campaign.notes, known))
        except Exception as exc:  # noqa: BLE001 - raised by `status_of`, once the files are written
            campaign.failure = exc


def mark_interrupted(campaign: Campaign, options: FuzzOptions) -> None:
    """Say in a run's reports that a signal has ended it, and when."""
    spent = f"after {campaign.drawing_seconds:.0f}"
    whole = "" if options.seconds is None else f" of {options.seconds:g}"
    examining = " s, while what was seen was examined" if campaign.is_drawn else " s"
    campaign.interrupted = f"it was interrupted {spent}{whole}{examining}"


def _read_baseline(path: Path | None) -> Baseline:
    """Return the findings of an earlier report.

    Raises:
        CliError: it cannot be read.
    """
    from mcp_trio.oracle.fuzz.causes._baseline import NO_BASELINE, read_baseline

    if path is None:
        return NO_BASELINE
    try:
        return read_baseline(_read(path))
    except ValueError as exc:
        raise CliError(f"--baseline {path}: {exc}", MISUSE) from exc


def _read_ignored(options: FuzzOptions, invariants: Collection[str]) -> tuple[IgnoredRow, ...]:
    """Return the rows to ignore: the line's, then the file's.

    Raises:
        CliError: one of them isn't a row, or the file cannot be read.
    """
    from mcp_trio.oracle.fuzz.causes._baseline import parse_ignored_row, read_ignored_rows

    try:
        found = [parse_ignored_row(each, invariants) for each in options.ignored]
    except ValueError as exc:
        raise CliError(f"--ignore-row: {exc}", MISUSE) from exc
    if options.ignore_file is None:
        return tuple(found)
    try:
        text = _read(options.ignore_file).decode()
        return (*found, *read_ignored_rows(text, invariants))
    except ValueError as exc:  # also of other bytes than UTF-8
        raise CliError(f"--ignore-file {options.ignore_file}: {exc}", MISUSE) from exc


def _read(path: Path) -> bytes:
    """Return a file's bytes. It may be a pipe, such as `<(git show main:known.json)`.

    Raises:
        CliError: it cannot be read, or is too large.
    """
    try:
        with path.open("rb") as file:
            data = file.read(_MAX_FILE + 1)
    except OSError as exc:
        raise CliError(f"{path}: {exc.strerror}", MISUSE) from exc
    if len(data) > _MAX_FILE:
        raise CliError(f"{path} is larger than {_MAX_FILE >> 20} MiB", MISUSE)
    return data


def show_accepted(stderr: Screen, limits: CampaignOptions, side: str, name: str) -> None:
    """Say what is odd about a baseline for this target."""
    baseline = limits.baseline
    if baseline.form == 1:
        stderr.write_line(
            ("note: ", "yellow"),
            "the baseline is of version 1, and leaves out each row and method that it names; the"
            " report of this run is of version 2, and keeps them",
        )
    difference = baseline.find_difference(side, name)
    if difference:
        stderr.write_line(("warning: ", "yellow"), f"the baseline: {escape_text(difference)}")


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


def write(
    options: FuzzOptions,
    campaign: Campaign,
    offers: Offers,
    stdout: Screen,
    stderr: Screen,
) -> None:
    """Write the files of a run, and print its report or summary.

    Args:
        options: the run's options.
        campaign: the run.
        offers: what the target offers.
        stdout, stderr: this process's screens.

    Raises:
        CliError: a file cannot be written.
    """
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
            _show_unseen_rows(stdout, campaign, offers)
        _show_summary(stdout, stderr, campaign, options, names)


# -- What the user sees ----------------------------------------------------------------------------


def _show_target(
    stderr: Screen, offers: Offers, tools: Sequence[str], options: FuzzOptions
) -> None:
    others = len(offers.tools) - len(tools)
    stderr.write_line(
        f"{offers.name or 'a server without a name'}, {', '.join(offers.revisions)}; seed"
        f" {options.seed}"
    )
    if offers.tools and not tools:
        stderr.write_line(_NO_TOOLS.format(len(offers.tools)))
    elif tools:
        shown = ", ".join(tools[:_MAX_NAMES]) + (", ..." if len(tools) > _MAX_NAMES else "")
        stderr.write_line(f"tools that are called: {shown}")
    if tools and others:
        stderr.write_line(
            f"{others} of {len(offers.tools)} tools are not called: --allow-tool NAME or"
            " --allow-all"
        )


class Display:
    """The progress of a run: one line that changes on a terminal, a line now and then elsewhere."""

    def __init__(self, stderr: Screen, stdout: Screen, *, as_json: bool) -> None:
        self._stderr = stderr
        self._stdout = stdout
        self._as_json = as_json

    def show_finding(self, finding: FuzzFinding) -> None:
        """Print a finding. It is printed again if another case shows it more often."""
        if self._as_json:
            return
        fault = finding.fault
        style = "bold red" if finding.is_failure else "yellow"
        solid = "solid" if finding.is_solid else "flaky"
        smaller = ""
        if len(finding.case) < finding.steps_before:
            smaller = f", {finding.steps_before} steps -> {len(finding.case)}"
        if finding.cause is not None and finding.cause == finding.cause.anywhere:
            smaller += ", with any method"
        self._stdout.write_line(
            (f"{finding.number:>2}  ", ""),
            (f"{fault.level} {fault.row}", style),
            f"  {escape_text(fault.sentence)}  {solid} {finding.hits}/{finding.plays}{smaller}",
        )
        if fault.link:
            self._stdout.write_line(("    " + fault.link, "dim"))

    def show_habit(self, shown: ShownHabit) -> None:
        """Print a habit of the server's SDK."""
        if not self._as_json:
            self._stdout.write_line(
                (" -  ", ""),
                (f"habit {shown.habit.row}", "dim"),
                f"  {escape_text(shown.sentence)}",
            )

    async def run(self, campaign: Campaign) -> None:
        """Show progress until cancelled."""
        if not self._stderr.terminal:
            while True:
                await trio.sleep(_LINE_INTERVAL)
                self._stderr.write_line(_progress_text(campaign))
        from rich.live import Live
        from rich.text import Text

        with Live(console=self._stderr.console, transient=True, auto_refresh=False) as live:
            while True:
                live.update(Text(_progress_text(campaign)), refresh=True)
                await trio.sleep(0.25)


def _progress_text(campaign: Campaign) -> str:
    seconds, drawing = campaign.seconds, campaign.drawing_seconds
    rate = campaign.cases / drawing if drawing > 0.5 else 0.0
    examined = escape_text(campaign.activity)
    if campaign.is_drawn:
        left = "" if campaign.left is None else f", at most {campaign.left:.0f} s more"
        examined = f"drawing is over{left}: {examined}" if examined else "drawing is over"
    return (
        f"{int(seconds) // 60}:{int(seconds) % 60:02}  {campaign.cases:,} cases  {rate:,.0f}/s"
        f"  {campaign.rows_seen()} rows judged, {len(campaign.findings)} findings"
        + (f"  {examined}" if examined else "")
    )


def _show_summary(
    stdout: Screen,
    stderr: Screen,
    campaign: Campaign,
    options: FuzzOptions,
    names: Sequence[str],
) -> None:
    for note in campaign.notes:
        stderr.write_line(("note: ", "yellow"), escape_text(note))
    for name, count in campaign.unconfirmed.most_common():
        times = f" ({count} times)" if count > 1 else ""
        stderr.write_line(
            f"unconfirmed: {escape_text(name)}{times}: seen in a case, and in no further play of"
            f" it: {campaign.missing[name]}"
        )
    for entry, count in campaign.found.ignored.items():
        if not count:
            text = (
                f"no finding is ignored by {escape_text(str(entry))}: remove it, unless other seeds"
                " need it"
            )
            stderr.write_line(("note: ", "yellow"), text)
    if campaign.repaired:
        stdout.write_line(f"cases of the last run that show no fault any more: {campaign.repaired}")
    judged = campaign.rows_seen()
    count = len(campaign.findings)
    advice = sum(not each.is_failure for each in campaign.findings)
    seen = len(campaign.unconfirmed)
    unconfirmed = f", {seen} unconfirmed" if seen else ""
    unconfirmed += _accepted_text(campaign)
    drawing, whole = round(campaign.drawing_seconds), round(campaign.seconds)
    more = f" (and {whole - drawing} s of examining)" if whole > drawing else ""
    stdout.write_line(
        f"{campaign.cases:,} cases in {drawing} s{more}, {_starts_text(campaign)}"
        f"{campaign.messages:,} messages: {count - advice} findings, {advice} to look"
        f" at{unconfirmed}; {judged} rows judged; seed"
        f" {options.seed}"
    )
    if campaign.habits:
        stdout.write_line(
            f"{len(campaign.habits)} of the SDK, {count} of yours; only --strict fails for the"
            " SDK's"
        )
    if count:
        stdout.write_line(f"in {options.output}: {', '.join(names)}")
    if campaign.unjudged and not campaign.broken:
        stderr.write_message(f"mcp-trio: nothing was judged: {campaign.unjudged}")


def _show_unseen_rows(stdout: Screen, campaign: Campaign, offers: Offers) -> None:
    """Print the rows that had no opportunity, and why."""
    from mcp_trio.oracle.fuzz.campaign._unseen_rows import (
        counted_reasons,
        judged_side_rows,
        rows_of_run,
    )

    rows = rows_of_run(campaign, offers)
    for each in rows:
        stdout.write_line(
            (f"{each.reason:<12} ", "dim"),
            f"{each.row.level:<10} {row_name(each.row.id)}: {each.why}",
        )
    stdout.write_line(
        f"{len(rows)} of {len(judged_side_rows(campaign.side))} rows about a {campaign.side} had no"
        f" opportunity: {counted_reasons(rows)}"
    )


def _starts_text(campaign: Campaign) -> str:
    """Return how many processes were started for 100 cases, if the server is a command."""
    if campaign.side == "client" or campaign.target.kind == "http" or not campaign.cases:
        return ""
    return f"{100 * campaign.starts / campaign.cases:.1f} starts per 100 cases, "


def _accepted_text(campaign: Campaign) -> str:
    """Return how many causes of the baseline were seen, and how many ignored rows."""
    found = campaign.found
    known = sum(map(bool, (*found.known.values(), *found.known_methods.values())))
    ignored = sum(map(bool, found.ignored.values()))
    return "".join(
        f", {count} {word}" for count, word in ((known, "known"), (ignored, "ignored")) if count
    )
