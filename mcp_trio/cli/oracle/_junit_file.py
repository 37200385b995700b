"""Write a report of JUnit for `--junit`."""

from __future__ import annotations

from pathlib import Path

from mcp_trio._files import write_output
from mcp_trio.cli._errors import MISUSE, CliError

__all__ = ["write_junit"]


def write_junit(path: str | Path, text: str) -> None:
    """Write a report to the file `path`, in place of an earlier one.

    Raises:
        CliError: it cannot be written.
    """
    try:
        write_output(Path(path), text.encode())
    except OSError as exc:
        raise CliError(f"{path}: {exc.strerror}", MISUSE) from exc
