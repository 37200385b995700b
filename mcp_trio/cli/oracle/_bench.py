"""`mcp-trio bench TARGET`: call a server as fast as asked for, and show how long it takes.

1. A tool is called only because the command line names it. By default the smallest request is sent.
2. Targets take turns of a second. Ctrl+C ends the run in order: what was measured is printed.
3. stdout has the table, the Markdown or the JSON document; stderr has progress and errors.
"""

from __future__ import annotations

import argparse
import sys
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import trio

from mcp_core import ALL, DIALECTS, AuthRequired, ConnectFailed
from mcp_trio._files import write_output
from mcp_trio.cli._arguments import parse_object
from mcp_trio.cli._errors import (
    MISUSE,
    NO_CONNECTION,
    CliError,
    check_uri,
)
from mcp_trio.cli._options import add_process_options, add_timeout, add_tried_server
from mcp_trio.cli._parser import new_parser
from mcp_trio.cli._screen import Screen, encode_document
from mcp_trio.cli._session import needs_login_text
from mcp_trio.oracle.bench._turn import Pace, TargetGone
from mcp_trio.oracle.bench.calls._calls import LISTS, BenchCalls
from mcp_trio.oracle.bench.calls._recorded import NothingToPlay, Recorded, RecordedWork
from mcp_trio.oracle.bench.client._conversations import CONVERSATIONS, open_conversations
from mcp_trio.oracle.bench.engine._load import Address, open_load
from mcp_trio.oracle.bench.report._report import (
    BenchReport,
    comparison_text,
    document_head,
    load_text,
    markdown,
    missed_text,
    pace_text,
    table,
)
from mcp_trio.oracle.bench.report._run import BenchRun, TargetEnd
from mcp_trio.oracle.bench.report._thresholds import Threshold, parse_time
from mcp_trio.streams._stdio import stop_on_signals

from ._bench_calls import (
    add_client_options,
    meter_of,
    open_one,
    read_recorded,
    read_script,
)
from ._bench_table import BenchDisplay
from ._bench_targets import BenchTarget, parse_targets
from ._junit_file import write_junit

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from mcp_trio.oracle.bench._requests import Work
    from mcp_trio.oracle.bench._turn import TargetLoad
    from mcp_trio.oracle.bench.calls._calls import Calls
    from mcp_trio.oracle.bench.report._run import BenchRow
    from mcp_trio.streams._stdio import StopSignal

__all__ = ["BenchOptions", "bench", "parse"]

MISSED: Final = 1
DEFAULT_SECONDS: Final = 10.0
DEFAULT_SWEEP_SECONDS: Final = 3.0
DEFAULT_LIMIT: Final = 0.05  # seconds
DEFAULT_TIMEOUT: Final = 30.0
DEFAULT_CONNECTIONS: Final = 64  # of an open loop
SWEEP_START: Final = 100.0  # calls a second
# Calls a second to another machine that need no consent. A closed loop has no rate.
MAX_REMOTE_RATE: Final = 50.0
MAX_CONCURRENCY: Final = 1024
MAX_RATE: Final = 500_000.0
MAX_SECONDS: Final = 3600.0
MAX_PACES: Final = 20
MAX_PROCESSES: Final = 64
MAX_SESSIONS: Final = 100_000
MAX_PROGRESS: Final = 10_000_000
MAX_REMOTE_SESSIONS: Final = 50
# Options that mean nothing without turns.
_TURN_OPTIONS: Final = (
    *("rate", "concurrency", "even", "sweep", "limit", "seconds", "processes", "vary"),
    *("threshold", "junit", "markdown"),
)
# Seconds after Ctrl+C in which another one is ignored: servers are ended, and files written.
STOP_TIME: Final = 10.0
# Names for the newest revision of each kind.
_ERAS: Final = {
    era: next(each for each in ALL if DIALECTS[each].stateful == stateful)
    for era, stateful in (("modern", False), ("legacy", True))
}

_USAGE: Final = """\
mcp-trio bench [options] URL
       mcp-trio bench [options] FILE[:NAME]
       mcp-trio bench [options] -- COMMAND ARG...
       mcp-trio bench [options] --server NAME
       mcp-trio bench [options] --target NAME=TARGET --target NAME=TARGET ..."""
_DESCRIPTION: Final = """\
Calls a server again and again, and shows how long the responses take. With --rate calls are started
at that rate even if the server is slow, and a latency counts from the intended start, so that a
server that stalls cannot hide it. Without it each caller waits for its response before it calls
again. Several servers take turns of a second, and are compared.

TARGET of --target is a URL, server:NAME of the configuration files, a Python file as for `mcp-trio
run`, or a command line in quotes. A tool is called only if --tool,
a script or a recording names it."""
_EPILOG: Final = """\
example:
  mcp-trio bench --tool greet --args '{"name": "Ada"}' --rate 100,1000 server.py
  mcp-trio bench --target ours=server.py --target theirs='node server.js'

exit status:
  0    measured, and each threshold is met
  1    a threshold is missed, or all calls of a row failed, or none was made; or fewer
       sessions or progress notifications came than asked for
  2    the command line is wrong
  3    no connection: a target did not start or answer, or ended while it was measured
  4    nothing to measure: the recording of --load has no request that can be sent
  70   an internal error of this command
  130  Ctrl+C; what was measured is printed
"""


@dataclass(frozen=True, kw_only=True)
class BenchOptions:
    """The options of a run, as `mcp-trio bench --help` explains them.

    `limit` is in seconds, and None without a search for the highest rate. `arguments` are for
    the only tool. `sessions` and `progress` are 0 if they aren't measured. With `conversations`
    each call is a whole conversation.
    """

    calls: Calls
    paces: tuple[Pace, ...]
    seconds: float
    seed: int = 0
    limit: float | None = None
    processes: int = 1
    era: str | None = None
    timeout: float = DEFAULT_TIMEOUT
    thresholds: tuple[Threshold, ...] = ()
    allow_remote: bool = False
    as_json: bool = False
    as_markdown: bool = False
    junit: Path | None = None
    output: Path | None = None
    arguments: Mapping[str, Any] = field(default_factory=dict)
    conversations: bool = False
    sessions: int = 0
    progress: int = 0
    through_client: bool = False
    answers: tuple[str, ...] = ()


def parse(words: Sequence[str]) -> Callable[[], int]:
    """Return a function that runs the subcommand and returns the exit status.

    Raises:
        CliError: the command line is wrong in a way that argparse doesn't detect.
        SystemExit: argparse has printed help or an error.
    """
    parser = new_parser("bench", usage=_USAGE, description=_DESCRIPTION, epilog=_EPILOG)
    # Values that the target needs, and that this command has no options for.
    parser.set_defaults(record=None, record_secrets=False, record_limit=None, redact=[])
    _add_calls(parser)
    _add_pace(parser)
    add_client_options(parser)
    _add_reports(parser)
    _add_target(parser)
    found, targets = parse_targets(parser, words)
    options = _read_options(parser, found)
    if options.processes > 1 and not any(map(_may_be_url, targets)):
        parser.error(
            "--processes is for a server at a URL, a program has one stdin: serve the file with"
            " `mcp-trio run FILE --http PORT`"
        )
    return partial(bench, targets, options)


def _may_be_url(target: BenchTarget) -> bool:
    return target.is_url


def _add_calls(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("what is called")
    add = group.add_mutually_exclusive_group().add_argument
    add("--ping", action="store_true", help="the smallest request of the revision (the default)")
    add("--tool", metavar="NAME", help="this tool, with the arguments of --args")
    add("--read", metavar="URI", help="read this resource")
    add("--list", choices=list(LISTS), help="the first page of this list")
    add(
        "--script",
        metavar="FILE",
        help="the calls in a TOML file, with weights and think times",
    )
    add(
        "--load",
        metavar="FILE",
        help="the requests of a conversation that --record has recorded, in their order; each"
        " caller has a copy with ids and cursors of its own",
    )
    add(
        "--connect",
        action="store_true",
        help="whole conversations: start or connect, negotiate, one ping, end",
    )
    add(
        "--sessions",
        metavar="NUMBER",
        type=_sessions,
        help="open so many idle sessions, and print the memory that each takes",
    )
    group.add_argument(
        "--progress",
        metavar="NUMBER",
        type=_progress,
        help="call --tool once, and print how many progress notifications come in a second; fewer"
        " than NUMBER are an error",
    )
    group.add_argument(
        "--args", metavar="JSON", help="the arguments of --tool, as a JSON object (default: {})"
    )
    group.add_argument(
        "--vary",
        action="store_true",
        help="lengthen the longest text of --args by a drawn number of characters, so that a server"
        " cannot answer from a cache for one length; the tool must take any text there",
    )


def _add_pace(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument_group("how fast").add_argument
    add(
        "--rate",
        metavar="NUMBER,...",
        type=_rates,
        help="start so many calls a second, even if the server is slow; several are measured one"
        " after the other",
    )
    add(
        "--concurrency",
        metavar="NUMBER,...",
        type=_concurrency,
        help="so many callers, each of which waits for its response (default: one for each of"
        " --processes); with --rate or"
        f" --sweep the most calls that are open at a time (default: {DEFAULT_CONNECTIONS})",
    )
    add("--even", action="store_true", help="start calls at equal distances, and not at random")
    add(
        "--sweep",
        action="store_true",
        help="find the highest rate at which 99 %% of the calls take less than --limit",
    )
    add(
        "--limit",
        metavar="TIME",
        type=_time,
        help="the limit of --sweep, such as 20ms (default: 50ms)",
    )
    add(
        "--seconds",
        metavar="NUMBER",
        type=_seconds,
        help=f"measure each target for so long at each pace (default: {DEFAULT_SECONDS:g}; with"
        f" --sweep {DEFAULT_SWEEP_SECONDS:g} at each rate that is tried)",
    )
    add("--seed", type=int, default=0, help="decides the times and the order (default: 0)")
    add(
        "--processes",
        metavar="NUMBER",
        type=_processes,
        default=1,
        help="call a URL from so many processes, if one is the slower part; they share the"
        " callers of --concurrency (default: 1)",
    )


def _add_reports(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("what is printed")
    add = group.add_mutually_exclusive_group().add_argument
    add("--json", action="store_true", help="one JSON document, with all counts")
    add("--markdown", action="store_true", help="the table as Markdown")
    add = group.add_argument
    add(
        "--threshold",
        metavar="'p99<50ms'",
        type=_threshold,
        action="append",
        default=[],
        help="exit with 1 unless each row meets it: a percentile, max or mean; errors, timeouts or"
        " late as a number or in %%; rate, cpu (a call) or memory (may be repeated)",
    )
    add("--junit", metavar="REPORT", type=Path, help="write a report of JUnit to REPORT")
    add("--output", metavar="FILE", type=Path, help="write the JSON document to FILE, too")


def _add_target(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument_group("targets").add_argument
    add(
        "--target",
        metavar="NAME=TARGET",
        action="append",
        default=[],
        help="a target with a name, to compare several (may be repeated)",
    )
    add(
        "--era",
        metavar="VERSION",
        choices=[*_ERAS, *ALL],
        help="speak this revision only; legacy is the newest with a handshake, modern the newest"
        " without one (default: the newest that each server speaks)",
    )
    add(
        "--allow-remote",
        action="store_true",
        help=f"send more than {MAX_REMOTE_RATE:g} calls a second to another machine than this one",
    )
    add_tried_server(parser)
    add_process_options(parser)
    add_timeout(
        parser,
        f"the timeout for the connection, and for each response (default: {DEFAULT_TIMEOUT:g})",
    )


def _read_options(parser: argparse.ArgumentParser, found: argparse.Namespace) -> BenchOptions:
    """Return the options of a run.

    Raises:
        SystemExit: argparse has printed an error about options that don't fit each other.
        CliError: a value isn't one.
    """
    calls = _read_calls(parser, found)
    _check_once(parser, found)
    if found.given_answers and not found.through:
        parser.error("--answer is for --through client: prepared requests answer nothing")
    if found.sweep and found.rate is not None and len(found.rate) > 1:
        parser.error("--sweep tries its own rates: give the first one only, or leave --rate out")
    if found.limit is not None and not found.sweep:
        parser.error("--limit is for --sweep; to fail above a latency: --threshold 'p99<50ms'")
    is_open = found.sweep or found.rate is not None
    if found.even and not is_open:
        parser.error("--even is for --rate and --sweep: a caller that waits has no schedule")
    if is_open and found.concurrency is not None and len(found.concurrency) > 1:
        parser.error("--concurrency has one number beside --rate: the most calls that are open")
    seconds = found.seconds or (DEFAULT_SWEEP_SECONDS if found.sweep else DEFAULT_SECONDS)
    return BenchOptions(
        calls=calls,
        paces=tuple(_paces(found, is_open=is_open)),
        seconds=seconds,
        seed=found.seed,
        limit=(found.limit or DEFAULT_LIMIT) if found.sweep else None,
        processes=found.processes,
        era=_ERAS.get(found.era, found.era or getattr(calls, "era", None)),
        timeout=found.timeout or DEFAULT_TIMEOUT,
        thresholds=tuple(found.threshold),
        allow_remote=found.allow_remote,
        as_json=found.json,
        as_markdown=found.markdown,
        junit=found.junit,
        output=found.output,
        arguments=getattr(calls, "arguments", {}),
        conversations=found.connect,
        sessions=found.sessions or 0,
        progress=found.progress or 0,
        through_client=found.through is not None,
        answers=tuple(found.given_answers),
    )


def _paces(found: argparse.Namespace, *, is_open: bool) -> list[Pace]:
    if not is_open:
        callers = found.concurrency or [found.processes]
        return [Pace(None, each, seed=found.seed) for each in callers]
    [connections] = found.concurrency or [DEFAULT_CONNECTIONS]
    return [
        Pace(rate, connections, even=found.even, seed=found.seed)
        for rate in found.rate or [SWEEP_START]
    ]


def _check_once(parser: argparse.ArgumentParser, found: argparse.Namespace) -> None:
    """Refuse options that don't fit whole conversations, idle sessions or progress."""
    if found.progress is not None and found.tool is None:
        parser.error("--progress calls a tool that reports progress: add --tool NAME")
    if found.connect and found.processes > 1:
        parser.error("--processes is for requests, and not for --connect")
    if found.through is not None and found.processes > 1:
        parser.error("--processes is for prepared requests, and not for --through client")
    least = min(found.concurrency or [MAX_CONCURRENCY])
    if found.processes > least:
        parser.error(
            f"--concurrency {least} is not enough for --processes {found.processes}, since each"
            f" process has a caller: give --concurrency {found.processes} or more, or leave it out"
        )
    kind = "--sessions" if found.sessions is not None else "--progress"
    if found.sessions is None and found.progress is None:
        return
    for option in _TURN_OPTIONS:
        value = getattr(found, option)
        if value is True or value not in (None, False, 1, []):
            parser.error(f"--{option} is for calls in turns, and {kind} measures once")


def _read_calls(parser: argparse.ArgumentParser, found: argparse.Namespace) -> Calls:
    arguments: dict[str, Any] = {}
    if found.args is not None:
        if found.tool is None:
            parser.error("--args has the arguments of a tool: add --tool NAME")
        if not found.args.lstrip().startswith("{"):
            parser.error(f'--args {found.args} is not a JSON object such as \'{{"city": "Oslo"}}\'')
        arguments = parse_object(found.args)
    if found.vary and not any(isinstance(each, str) and each for each in arguments.values()):
        parser.error("--vary lengthens a text of --args, and there is none")
    if found.tool is not None:
        return BenchCalls(kind="tool", name=found.tool, arguments=arguments, vary=found.vary)
    if found.read is not None:
        check_uri(found.read)
        return BenchCalls(kind="read", name=found.read)
    if found.list is not None:
        return BenchCalls(kind="list", name=found.list)
    if found.script is not None:
        script = read_script(found.script)
        if script.waits_for_notifications and found.through is None:
            parser.error(f"{found.script}: notified is for --through client, which can subscribe")
        return script
    if found.load is not None:
        return read_recorded(
            found.load, Screen(sys.stderr), answers_itself=found.through is not None
        )
    return BenchCalls()


# -- Values ----------------------------------------------------------------------------------------


def _rates(text: str) -> list[float]:
    return [_between(each, 0, MAX_RATE, "a rate") for each in _several(text)]


def _concurrency(text: str) -> list[int]:
    return [_whole(each, MAX_CONCURRENCY, "callers") for each in _several(text)]


def _several(text: str) -> list[str]:
    words = text.split(",")
    if len(words) > MAX_PACES:
        raise argparse.ArgumentTypeError(f"there are {len(words)} numbers, at most {MAX_PACES}")
    return words


def _sessions(text: str) -> int:
    return _whole(text, MAX_SESSIONS, "sessions")


def _progress(text: str) -> int:
    return _whole(text, MAX_PROGRESS, "notifications")


def _seconds(text: str) -> float:
    return _between(text, 0.1, MAX_SECONDS, "a number of seconds")


def _processes(text: str) -> int:
    return _whole(text, MAX_PROCESSES, "processes")


def _between(text: str, least: float, most: float, what: str) -> float:
    try:
        number = float(text)
    except ValueError:
        number = -1.0
    if not least <= number <= most or not number:
        raise argparse.ArgumentTypeError(f"{text} is not {what} from {least:g} to {most:,.0f}")
    return number


def _whole(text: str, most: int, what: str) -> int:
    if not text.isascii() or not text.isdigit() or not 0 < int(text) <= most:
        raise argparse.ArgumentTypeError(f"{text} is not a number of {what} from 1 to {most:,}")
    return int(text)


def _time(text: str) -> float:
    try:
        return parse_time(text)
    except ValueError as exc:
        raise argparse.ArgumentTypeError(str(exc)) from None


def _threshold(text: str) -> Threshold:
    try:
        return Threshold.parse(text)
    except ValueError as exc:
        raise argparse.ArgumentTypeError(str(exc)) from None


# -- The run ---------------------------------------------------------------------------------------


def bench(targets: Sequence[BenchTarget], options: BenchOptions) -> int:
    """Measure the targets, print the report, and return the exit status.

    Raises:
        CliError: no target could be measured, or a file cannot be written.
    """
    approved = [target.approved() for target in targets]
    for target in approved:
        target.require_allowed(options.calls.tools)
        _require_consent(target, options)
    if options.sessions or options.progress:
        from . import _bench_once

        run_once = _bench_once.sessions if options.sessions else _bench_once.progress
        return run_once(approved, options, {**document_head(), **_settings(options)})
    return trio.run(_bench, approved, options)


def _require_consent(target: BenchTarget, options: BenchOptions) -> None:
    """Check that another machine gets many calls only if the user wants it.

    Raises:
        CliError: it would.
    """
    if not target.is_remote or options.allow_remote:
        return
    if options.sessions or options.progress:
        if options.sessions > MAX_REMOTE_SESSIONS:
            raise CliError(
                f"{target.name} is on another machine: open {MAX_REMOTE_SESSIONS} sessions or"
                " fewer, or add --allow-remote if it is yours"
            )
        return
    if isinstance(options.calls, Recorded):
        raise CliError(
            f"{target.name} is on another machine, and --load repeats there all that the recorded"
            " client did: add --allow-remote to send it there"
        )
    is_slow = options.limit is None and all(
        pace.rate is not None and pace.rate <= MAX_REMOTE_RATE for pace in options.paces
    )
    if not is_slow:
        raise CliError(
            f"{target.name} is on another machine: give a --rate of {MAX_REMOTE_RATE:g} or less, or"
            " --allow-remote if it is yours"
        )


async def _bench(targets: Sequence[BenchTarget], options: BenchOptions) -> int:
    connecting = trio.CancelScope()
    run: BenchRun | None = None

    def stop_now() -> None:
        # The connections must outlive the measuring, to be closed in order.
        if run is None:
            connecting.cancel()
        else:
            run.stop()

    stderr = targets[0].target.stderr
    display = BenchDisplay(stderr)
    loads: dict[str, TargetLoad] = {}
    ends: dict[str, TargetEnd] = {}
    _begin_junit(options)
    with stop_on_signals(stop_now, patience=STOP_TIME) as stop:
        with connecting:
            async with AsyncExitStack() as stack:
                for target in targets:
                    try:
                        loads[target.name] = await stack.enter_async_context(_open(target, options))
                    except (ConnectFailed, TargetGone) as exc:
                        ends[target.name] = _end_of(target, exc)
                run = await _new_run(targets, options, loads, ends)
                with display.shown():
                    run.on_turn = partial(display.update, run)
                    await _measure(run, options)
        if run is None:
            return stop.exit_code
        return _finish(targets, options, run, loads, stop)


def _open(target: BenchTarget, options: BenchOptions) -> Any:
    """Return the context manager of a target's load."""
    address = target.address()
    answers = options.answers if options.through_client else None
    open_lean_or_client = partial(
        open_one, target, era=options.era, timeout=options.timeout, answers=answers
    )
    if options.conversations:
        return open_conversations(open_lean_or_client, meter_of(target), timeout=options.timeout)
    if options.through_client:
        return open_lean_or_client()
    if isinstance(address, Address) and options.processes > 1:
        from mcp_trio.oracle.bench.engine._processes import open_loads

        return open_loads(
            address, options.processes, options.calls, era=options.era, timeout=options.timeout
        )
    return open_load(address, era=options.era, timeout=options.timeout)


def _end_of(target: BenchTarget, exc: ConnectFailed | TargetGone | NothingToPlay) -> TargetEnd:
    status = exc.status if isinstance(exc, TargetGone) else None
    lines = exc.stderr if isinstance(exc, TargetGone) else ()
    text = str(exc)
    if isinstance(exc.__cause__, AuthRequired):
        text = needs_login_text(target.target, exc, exc.__cause__)
    return TargetEnd(target.hide(text), status, tuple(map(target.hide, lines)))


async def _new_run(
    targets: Sequence[BenchTarget],
    options: BenchOptions,
    loads: dict[str, TargetLoad],
    ends: dict[str, TargetEnd],
) -> BenchRun:
    from mcp_trio.oracle.fuzz._echo import Echo

    echo = Echo()
    if loads:
        await echo.begin()
    urls = {target.name for target in targets if target.is_url}
    hide = {target.name: target.hide for target in targets}
    return BenchRun(
        loads=loads,
        works=await _works(targets, options, loads, ends),
        seconds=options.seconds,
        seed=options.seed,
        processes=lambda name: options.processes if name in urls else 1,
        hide=lambda name, text: hide[name](text),
        is_machine_slow=echo.is_slow,
        ends=ends,
    )


async def _works(
    targets: Sequence[BenchTarget],
    options: BenchOptions,
    loads: dict[str, TargetLoad],
    ends: dict[str, TargetEnd],
) -> dict[str, Work]:
    """Return the calls for each target. One that none fits gets its end."""
    found: dict[str, Work] = {}
    for target in targets:
        load = loads.get(target.name)
        if load is None:
            continue
        try:
            work = CONVERSATIONS if options.conversations else options.calls.work(load.revision)
            if isinstance(work, RecordedWork):
                for text in [*work.warnings, *await work.missing(load)]:
                    target.target.stderr.write_message(target.hide(text), f"{target.name}: ")
        except (NothingToPlay, ConnectFailed, TargetGone) as exc:
            del loads[target.name]
            ends[target.name] = _end_of(target, exc)
        else:
            found[target.name] = work
    return found


async def _measure(run: BenchRun, options: BenchOptions) -> None:
    if options.limit is not None:
        await run.search(options.paces[0], options.limit)
    else:
        await run.measure(options.paces)


# -- The report ------------------------------------------------------------------------------------


def _begin_junit(options: BenchOptions) -> None:
    """Write the report of a run that hasn't ended, in place of an earlier run's.

    It stays if the run doesn't get as far as its own report. A device or a pipe gets one only.
    """
    path = options.junit
    if path is not None and not (path.exists() and not path.is_file()):
        write_junit(path, BenchReport(rows=(), problem="the run has not ended").junit())


def _finish(
    targets: Sequence[BenchTarget],
    options: BenchOptions,
    run: BenchRun,
    loads: dict[str, TargetLoad],
    stop: StopSignal,
) -> int:
    """Write the files, print the report, and return the exit status."""
    missing = {name: end for name, end in run.ends.items() if name not in loads}
    if not loads:
        problem = "; ".join(f"{name}: {end.reason}" for name, end in missing.items())
        if options.junit is not None:
            write_junit(options.junit, BenchReport(rows=(), problem=problem).junit())
        raise CliError(problem, NO_CONNECTION)
    report = BenchReport(
        rows=run.rows,
        tried=run.tried,
        missing=missing,
        thresholds=options.thresholds,
        settings=_settings(options),
        targets=[_about(target, loads.get(target.name)) for target in targets],
        limit=options.limit,
        problem="the run was interrupted" if stop.caught else "",
    )
    if options.junit is not None:
        write_junit(options.junit, report.junit())
    if options.output is not None:
        _write(options.output, encode_document(report.document()))
    stdout, stderr = Screen(sys.stdout), targets[0].target.stderr
    if options.as_json:
        stdout.write_json(report.document())
    elif options.as_markdown:
        stdout.write_bytes(markdown(report).encode())
    else:
        _show(stdout, report)
    _show_problems(stderr, report)
    return _status(report, run, stop)


def _status(report: BenchReport, run: BenchRun, stop: StopSignal) -> int:
    if stop.caught:
        return stop.exit_code
    if run.ends:
        return NO_CONNECTION
    is_missed = not all(each.is_met for each in report.verdicts())
    return MISSED if is_missed or any(row.failed_all for row in report.rows) else 0


def _settings(options: BenchOptions) -> dict[str, Any]:
    """Return how a run is made. What doesn't hold for this kind of run is null."""
    is_once = bool(options.sessions or options.progress)
    has_no_calls = options.conversations or options.sessions
    return {
        "at": datetime.now(UTC).isoformat(timespec="seconds"),
        "calls": None if has_no_calls else options.calls.text,
        "varied": options.calls.vary,
        "connect": options.conversations,
        "sessions": options.sessions or None,
        "progress": options.progress or None,
        "through": "client" if options.through_client or options.progress else None,
        "era": options.era,
        "processes": options.processes,
        "seconds": None if is_once else options.seconds,
        "seed": options.seed,
        "timeout": options.timeout,
        "limit": options.limit,
    }


def _about(target: BenchTarget, load: TargetLoad | None) -> dict[str, Any]:
    return {
        "name": target.name,
        "words": list(map(target.hide, target.target.shown_words)),
        "revision": None if load is None else load.revision,
        "server": None if load is None else load.server,
        "protocol": None if load is None else load.protocol,
    }


def _write(path: Path, data: bytes) -> None:
    try:
        write_output(path, data)
    except OSError as exc:
        raise CliError(f"{path}: {exc.strerror}", MISUSE) from exc


def _show(stdout: Screen, report: BenchReport) -> None:
    rows = report.rows
    if rows:
        for line in table(rows, stdout.width(1000)):
            stdout.write_line(line)
    for row in rows:
        for remark in report.remarks(row):
            stdout.write_message(remark, (f"{_name(row)}: ", "yellow"))
    for each in report.comparisons:
        stdout.write_line((comparison_text(each), "bold"))
    if text := load_text(rows):
        stdout.write_line((text, "dim"))


def _show_problems(stderr: Screen, report: BenchReport) -> None:
    for name, end in report.missing.items():
        stderr.write_message(f"mcp-trio: {name} was not measured: {end.reason}")
    for verdict in report.verdicts():
        if not verdict.is_met:
            stderr.write_line(f"mcp-trio: {_name(verdict.row)}: {missed_text(verdict)}")
    if not report.measured:
        stderr.write_line("mcp-trio: nothing was measured")


def _name(row: BenchRow) -> str:
    return f"{row.target} {pace_text(row)}"
