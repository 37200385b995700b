"""Measurements of `mcp-trio bench` without turns: idle sessions, and the progress of one call.

Targets are measured one after the other. stdout has a line for each, or one JSON document.
"""

from __future__ import annotations

import sys
from functools import partial
from typing import TYPE_CHECKING, Any, Final

import trio

from mcp_core import ConnectFailed
from mcp_trio._files import write_output
from mcp_trio.cli._errors import MISUSE, NO_CONNECTION, CliError
from mcp_trio.cli._screen import Screen, encode_document
from mcp_trio.oracle.bench._turn import TargetGone
from mcp_trio.oracle.bench.client._progress import measure_progress
from mcp_trio.oracle.bench.client._sessions import TooManyFiles, measure_sessions, require_files
from mcp_trio.oracle.bench.report._report import format_seconds
from mcp_trio.streams._stdio import stop_on_signals

from ._bench_calls import client_of, meter_of, open_one

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping, Sequence

    from mcp_trio.oracle.bench.client._progress import ProgressRate
    from mcp_trio.oracle.bench.client._sessions import IdleSessions

    from ._bench import BenchOptions
    from ._bench_targets import BenchTarget

    Figures = IdleSessions | ProgressRate
    OnBegin = Callable[[trio.CancelScope], object]
    Measure = Callable[[BenchTarget, BenchOptions, OnBegin], Awaitable[Figures]]

__all__ = ["progress", "sessions"]

FEWER: Final = 1
_FILES_OF_A_PROGRAM: Final = 8  # descriptors that a program's pipes need
_MIB: Final = 2**20
_CUT_TIME: Final = 2.0  # seconds to read what was measured after Ctrl+C


def sessions(targets: Sequence[BenchTarget], options: BenchOptions, head: Mapping[str, Any]) -> int:
    """Open idle sessions at each target, print their memory, and return the exit status.

    `head` has the first members of the JSON document.

    Raises:
        CliError: no target could be measured, or this process may not open so many files.
    """
    return trio.run(_run, targets, options, head, _measure_sessions, _sessions_line)


def progress(targets: Sequence[BenchTarget], options: BenchOptions, head: Mapping[str, Any]) -> int:
    """Call a tool at each target once, print its progress, and return the exit status.

    `head` has the first members of the JSON document.

    Raises:
        CliError: no target could be measured.
    """
    return trio.run(_run, targets, options, head, _measure_progress, _progress_line)


async def _run(
    targets: Sequence[BenchTarget],
    options: BenchOptions,
    head: Mapping[str, Any],
    measure: Measure,
    line_of: Callable[[Any], str],
) -> int:
    stdout, stderr = Screen(sys.stdout), targets[0].target.stderr
    scope = trio.CancelScope()
    measured: list[trio.CancelScope] = []

    def stop_now() -> None:
        for each in measured[-1:]:
            each.cancel()
        scope.deadline = trio.current_time() + (_CUT_TIME if measured else 0)

    found: dict[str, Figures] = {}
    missing: dict[str, str] = {}
    with stop_on_signals(stop_now) as stop, scope:
        for target in targets:
            if stop.caught:
                break
            try:
                found[target.name] = figures = await measure(target, options, measured.append)
            except (ConnectFailed, TargetGone) as exc:
                missing[target.name] = target.hide(str(exc))
                continue
            except TooManyFiles as exc:
                raise CliError(str(exc), MISUSE) from exc
            measured.clear()
            if not options.as_json:
                stdout.write_line((target.name, "bold"), f": {line_of(figures)}")
            if figures.error:
                error = target.hide(figures.error)
                stderr.write_message(f"mcp-trio: {target.name}: {error}")
    document = {
        **head,
        "problem": "the run was interrupted" if stop.caught else None,
        "targets": [{"name": name, **figures.to_json()} for name, figures in found.items()],
        "missing": missing,
    }
    if options.as_json:
        stdout.write_json(document)
    if options.output is not None:
        try:
            write_output(options.output, encode_document(document))
        except OSError as exc:
            raise CliError(f"{options.output}: {exc.strerror}", MISUSE) from exc
    if missing and not found:
        raise CliError("; ".join(f"{name}: {why}" for name, why in missing.items()), NO_CONNECTION)
    for name, why in missing.items():
        stderr.write_message(f"mcp-trio: {name} was not measured: {why}")
    if stop.caught or missing:
        return stop.exit_code or NO_CONNECTION
    return FEWER if any(figures.error for figures in found.values()) else 0


async def _measure_sessions(
    target: BenchTarget, options: BenchOptions, on_begin: OnBegin
) -> IdleSessions:
    count = options.sessions
    require_files(count, each=1 if target.is_url else _FILES_OF_A_PROGRAM)
    answers = options.answers if options.through_client else None
    open_session = partial(
        open_one, target, era=options.era, timeout=options.timeout, answers=answers
    )
    return await measure_sessions(open_session, meter_of(target).memory, count, on_begin)


def _sessions_line(found: IdleSessions) -> str:
    line = f"{found.opened:,} idle sessions ({found.revision}) in {format_seconds(found.seconds)}"
    if found.each is None or found.before is None or found.after is None:
        return f"{line}; the memory of the server's processes is not known"
    each = f"{found.each / 1024:,.1f} KiB"
    return f"{line}: {each} each, {_mib(found.before)} before and {_mib(found.after)} with them"


async def _measure_progress(
    target: BenchTarget, options: BenchOptions, on_begin: OnBegin
) -> ProgressRate:
    tool, arguments = options.calls.tools[0], options.arguments
    async with client_of(target, era=options.era, timeout=options.timeout) as client:
        return await measure_progress(
            client,
            tool,
            arguments,
            options.progress,
            timeout=options.timeout,
            on_begin=on_begin,
        )


def _progress_line(found: ProgressRate) -> str:
    if found.rate is None or found.first is None:
        return f"{found.events} progress notifications in {format_seconds(found.seconds)}"
    bound = "; this command was the slower part" if found.is_client_bound else ""
    return (
        f"{found.events:,} progress notifications, {found.rate:,.0f} a second, the first after"
        f" {format_seconds(found.first)}, the call took {format_seconds(found.seconds)}{bound}"
    )


def _mib(count: int) -> str:
    return f"{count / _MIB:,.1f} MiB"
