"""The options of a run, which servers and clients have in common: how they are read."""

from __future__ import annotations

import argparse
import secrets
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal

from mcp_core import ALL
from mcp_core.adapters import add_recording_options
from mcp_trio.cli._options import add_process_options
from mcp_trio.oracle.fuzz._revisions import dialect_of

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from mcp_trio.cli.configured._launch import ConfiguredLaunch

__all__ = [
    "DEFAULT_CALL_TIMEOUT",
    "DEFAULT_RESPONSE_TIMEOUT",
    "FuzzOptions",
    "add_run_options",
    "configured_arguments",
    "positive",
    "run_options",
]

DEFAULT_SECONDS: Final = 60.0
DEFAULT_RESPONSE_TIMEOUT: Final = 2.0  # the same as for `find_faults`
DEFAULT_CALL_TIMEOUT: Final = 10.0  # the same
MAX_LANES: Final = 64  # each has a process of its own, and two for examinations


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
        type=positive,
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
        type=positive,
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


def configured_arguments(launch: ConfiguredLaunch) -> dict[str, Any]:
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


def positive(text: str) -> float:
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


positive.__name__ = _count.__name__ = _lanes.__name__ = (
    "number"  # argparse shows this name if `float` raises
)
