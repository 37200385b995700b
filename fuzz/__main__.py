"""The command: `python -m fuzz TARGET --seconds N`. What is found goes to standard output, how it goes to standard error.

It ends with 0 if nothing was found, with 1 if something was, and with 2 if it was called wrongly.
"""

from __future__ import annotations

import argparse
import sys
import traceback
from pathlib import Path
from typing import Any, TextIO

from .engines import Finding, Run, by_atheris, by_hypothesis, checked
from .targets import FINDINGS, Target, as_row, invariant_of, load, read_case, target_names, write_case


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser("python -m fuzz", description="Try to break an invariant of the core.")
    parser.add_argument("target", nargs="?", choices=target_names(), metavar="TARGET", help="what to try")
    parser.add_argument("file", nargs="*", type=Path, metavar="FILE", help="try just these recorded cases")
    parser.add_argument("--list", action="store_true", help="name the targets and their invariants")
    parser.add_argument("--seconds", type=float, help="how long to try (60, unless --cases is given)")
    parser.add_argument("--cases", type=int, help="how many cases to try")
    parser.add_argument("--seed", type=int, default=0, help="another seed gives other cases")
    parser.add_argument("--engine", choices=["hypothesis", "atheris"], default="hypothesis")
    given = parser.parse_args(arguments)
    if given.list:
        for name in target_names():
            print(f"{name:14} {invariant_of(name)}")
        return 0
    if given.target is None:
        parser.error("which TARGET? --list names them")
    if given.file:
        return _replay(load(given.target), given.file)
    seconds = 60.0 if given.seconds is None and given.cases is None else given.seconds
    if given.engine == "atheris":
        return _by_atheris(given, seconds)
    target = load(given.target)
    line = _Line(sys.stderr)
    run, finding = by_hypothesis(
        target, seconds=seconds, cases=given.cases, seed=given.seed, progress=line.tell
    )
    line.end(run)
    if finding is not None:
        _report(target, finding)
        return 1
    return 0


def _by_atheris(given: argparse.Namespace, seconds: float | None) -> int:
    try:
        by_atheris(lambda: load(given.target), _report, seconds=seconds, cases=given.cases, seed=given.seed)
    except ModuleNotFoundError as exc:
        if exc.name != "atheris":
            raise
        print("atheris is not installed; `pip install atheris` brings it", file=sys.stderr)
        return 2
    return 0


def _replay(target: Target, files: list[Path]) -> int:
    failed = 0
    for path in files:
        case: Any = read_case(target, path)
        try:
            outcomes = checked(target, case)
        except Exception as exc:  # noqa: BLE001 - whatever it raises is what was asked about
            traceback.print_exception(exc)
            failed = 1
            print(f"{path}: fails")
        else:
            print(f"{path}: {', '.join(outcomes) or 'nothing in particular'}")
    return failed


def _report(target: Target, finding: Finding) -> None:
    path = write_case(target, finding.case, FINDINGS, f"{target.name}-")
    print("".join(traceback.format_exception(finding.error)))
    print(f"The smallest case, saved as {path}, as a row for tests/fuzz/test_targets.py:\n")
    print(as_row(target, finding.case))


class _Line:
    """How the run goes: on a terminal a line that changes, elsewhere a new one every ten seconds."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._terminal = stream.isatty()
        self._next = 0.0

    def tell(self, run: Run) -> None:
        if run.seconds >= self._next:
            self._next = run.seconds + (0.2 if self._terminal else 10)
            self._write(run, "" if self._terminal else "\n")

    def end(self, run: Run) -> None:
        self._write(run, "\n")

    def _write(self, run: Run, end: str) -> None:
        text = (
            f"{run.target.name}: {run.cases:,} cases in {run.seconds:,.0f} s, {run.rate:,.0f} cases/s, "
            f"{len(run.seen)} outcomes"
        )
        self._stream.write(f"\r{text}\x1b[K{end}" if self._terminal else text + end)
        self._stream.flush()


if __name__ == "__main__":
    sys.exit(main())
