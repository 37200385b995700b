"""Accepted findings: known ones from a baseline, and ignored rows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from mcp_core import escape_text
from mcp_trio.cli._errors import MISUSE, CliError

if TYPE_CHECKING:
    from collections.abc import Collection
    from pathlib import Path

    from mcp_trio.cli._screen import Screen
    from mcp_trio.oracle.fuzz.campaign._campaign import CampaignOptions
    from mcp_trio.oracle.fuzz.causes._baseline import Baseline, IgnoredRow

    from ._options import FuzzOptions

__all__ = ["read_accepted_findings", "read_ignored", "show_accepted"]

_MAX_FILE: Final = 64 * 1024 * 1024  # bytes of a baseline; a finding has some KiB


def read_accepted_findings(path: Path | None) -> Baseline:
    """Return the findings of an earlier report.

    Raises:
        CliError: it cannot be read.
    """
    from mcp_trio.oracle.fuzz.causes._baseline import NO_BASELINE, read_baseline

    if path is None:
        return NO_BASELINE
    try:
        return read_baseline(_read_file(path))
    except ValueError as exc:
        raise CliError(f"--baseline {path}: {exc}", MISUSE) from exc


def read_ignored(options: FuzzOptions, invariants: Collection[str]) -> tuple[IgnoredRow, ...]:
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
        text = _read_file(options.ignore_file).decode()
        return (*found, *read_ignored_rows(text, invariants))
    except ValueError as exc:  # also of other bytes than UTF-8
        raise CliError(f"--ignore-file {options.ignore_file}: {exc}", MISUSE) from exc


def _read_file(path: Path) -> bytes:
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
