"""`mcp-trio fuzz TARGET`: play drawn conversations against a server, and judge it.

1. What will be called is printed first. By default only tools are called whose hints say that they
   change nothing, here and elsewhere.
2. Ctrl+C ends the run in order: what was found until then is written.
3. stdout has the findings and the summary, or one JSON document; stderr has progress and notes.
"""

from __future__ import annotations

import importlib.util
import sys
from contextlib import AsyncExitStack, nullcontext, redirect_stdout
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import trio

from mcp_core import ConnectFailed, escape_text
from mcp_trio._nursery import open_quiet_nursery
from mcp_trio.cli._errors import (
    MISUSE,
    NO_CONNECTION,
    NOTHING_JUDGED,
    CliError,
    one_line,
)
from mcp_trio.cli._options import add_tried_server
from mcp_trio.cli._parser import new_parser
from mcp_trio.cli._screen import Screen
from mcp_trio.cli._session import DEFAULT_TIMEOUT, Target
from mcp_trio.cli._target import parse_server_command
from mcp_trio.cli.oracle._junit_file import write_junit
from mcp_trio.recording._open import open_recorder
from mcp_trio.streams._stdio import stop_on_signals

from ._accepted import show_accepted
from ._display import NO_TOOLS, Display, show_target
from ._options import (
    DEFAULT_CALL_TIMEOUT,
    add_run_options,
    configured_arguments,
    positive,
    run_options,
)
from ._run import STOP_TIME, begin_junit, campaign_options, finish, no_conversation, run_shown

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from mcp_trio.oracle.fuzz._probe import Offers
    from mcp_trio.oracle.fuzz.campaign._campaign import Campaign
    from mcp_trio.oracle.fuzz.invariants._checks import Checks
    from mcp_trio.oracle.fuzz.invariants._load import Invariants
    from mcp_trio.streams._stdio import StopSignal

    from ._options import FuzzOptions

__all__ = ["fuzz", "parse"]

DEFAULT_RATE: Final = 20.0  # requests a second to another machine
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
        type=positive,
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
        type=positive,
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
        type=positive,
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


def fuzz(target: Target, options: FuzzOptions) -> int:
    """Run the fuzzer and return the exit status.

    Raises:
        CliError: the server begins no conversation, or a file cannot be read or written.
    """
    if target.configured is not None:
        from mcp_trio.cli.configured._launch import find_launch

        launch = find_launch(target, "fuzz", ("stdio", "http"))
        target = launch.applied_to(target)
        options = replace(
            options,
            test_arguments=configured_arguments(launch),
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
            show_target(stderr, offers, tools, options)
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
        return stop.exit_code
    return finish(options, campaign, offers, stdout, stderr, stop)


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


def _no_tools(target: Any, count: int, options: FuzzOptions) -> CliError:
    """Return the error of `--require-tools`. Replace an earlier run's report with it."""
    from mcp_trio.oracle.fuzz._report import failed_junit_report

    text = NO_TOOLS.format(count) if count else "the server has no tools"
    if options.junit is not None:
        write_junit(options.junit, failed_junit_report(target, text))
    return CliError(f"nothing was judged: {text}", NOTHING_JUDGED)
