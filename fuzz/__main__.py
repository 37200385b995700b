"""The command `python -m fuzz TARGET --seconds N`. Findings go to stdout, progress to stderr.

Exit status: 0 if nothing was found, 1 if something was, 2 for misuse.
"""

from __future__ import annotations

import argparse
import sys
import traceback
from pathlib import Path
from typing import Any, TextIO

from fuzz.engines import Finding, Run, check_case, run_atheris, run_hypothesis
from fuzz.targets import (
    FINDINGS,
    Target,
    as_row,
    invariant_of,
    load,
    read_case,
    target_names,
    write_case,
)


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        "python -m fuzz", description="Try to break an invariant of the core."
    )
    parser.add_argument(
        "target", nargs="?", choices=target_names(), metavar="TARGET", help="the target to run"
    )
    parser.add_argument(
        "file", nargs="*", type=Path, metavar="FILE", help="check only these recorded cases"
    )
    parser.add_argument("--list", action="store_true", help="list the targets and their invariants")
    parser.add_argument(
        "--seconds", type=float, help="how long to run (60, unless --cases is given)"
    )
    parser.add_argument("--cases", type=int, help="how many cases to check")
    parser.add_argument(
        "--seed", type=int, default=0, help="a different seed gives different cases"
    )
    parser.add_argument("--engine", choices=["hypothesis", "atheris"], default="hypothesis")
    args = parser.parse_args(arguments)
    if args.list:
        for name in target_names():
            print(f"{name:14} {invariant_of(name)}")
        return 0
    if args.target is None:
        parser.error("TARGET is missing; --list shows the targets")
    if args.file:
        return _replay(load(args.target), args.file)
    seconds = 60.0 if args.seconds is None and args.cases is None else args.seconds
    if args.engine == "atheris":
        return _run_atheris(args, seconds)
    target = load(args.target)
    progress = _ProgressLine(sys.stderr)
    run, finding = run_hypothesis(
        target, seconds=seconds, cases=args.cases, seed=args.seed, progress=progress.update
    )
    progress.end(run)
    if finding is not None:
        _report(target, finding)
        return 1
    return 0


def _run_atheris(args: argparse.Namespace, seconds: float | None) -> int:
    try:
        run_atheris(
            lambda: load(args.target), _report, seconds=seconds, cases=args.cases, seed=args.seed
        )
    except ModuleNotFoundError as exc:
        if exc.name != "atheris":
            raise
        print("atheris is not installed; run `pip install atheris`", file=sys.stderr)
        return 2
    return 0


def _replay(target: Target, files: list[Path]) -> int:
    failed = 0
    for path in files:
        case: Any = read_case(target, path)
        try:
            outcomes = check_case(target, case)
        except Exception as exc:  # noqa: BLE001 - every exception is reported
            traceback.print_exception(exc)
            failed = 1
            print(f"{path}: fails")
        else:
            print(f"{path}: {', '.join(outcomes) or 'no outcomes'}")
    return failed


def _report(target: Target, finding: Finding) -> None:
    path = write_case(target, finding.case, FINDINGS, f"{target.name}-")
    print("".join(traceback.format_exception(finding.error)))
    print(f"The smallest case, saved as {path}, and as a row for tests/fuzz/test_targets.py:\n")
    print(as_row(target, finding.case))


class _ProgressLine:
    """The progress of a run: one changing line on a terminal, elsewhere a new line every 10 s."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._terminal = stream.isatty()
        self._next = 0.0

    def update(self, run: Run) -> None:
        if run.seconds >= self._next:
            self._next = run.seconds + (0.2 if self._terminal else 10)
            self._write(run, "" if self._terminal else "\n")

    def end(self, run: Run) -> None:
        self._write(run, "\n")

    def _write(self, run: Run, end: str) -> None:
        text = (
            f"{run.target.name}: {run.cases:,} cases in {run.seconds:,.0f} s, {run.rate:,.0f}"
            f" cases/s, {len(run.seen)} outcomes"
        )
        self._stream.write(f"\r{text}\x1b[K{end}" if self._terminal else text + end)
        self._stream.flush()


if __name__ == "__main__":
    sys.exit(main())
