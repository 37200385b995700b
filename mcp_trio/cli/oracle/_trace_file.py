"""A trace file as messages of sessions, for subcommands that need all of it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from mcp_core.trace import InvalidTrace, RecordedTrace, load_trace, read_trace
from mcp_trio.cli._errors import MISUSE, CliError

if TYPE_CHECKING:
    from mcp_trio.cli._screen import Screen

__all__ = ["load_trace_file"]


def load_trace_file(path: str, stderr: Screen) -> RecordedTrace:
    """Return the messages of the trace in the file `path`, and warn of what is missing in it.

    Raises:
        CliError: the file cannot be read, is not a trace, is too large, or has no messages.
    """
    try:
        with Path(path).open("rb") as file:
            trace = load_trace(*read_trace(file))
    except OSError as exc:
        raise CliError(f"{path}: {exc.strerror}", MISUSE) from exc
    except InvalidTrace as exc:
        raise CliError(f"{path}: {exc}", MISUSE) from exc
    if not trace.sessions:
        raise CliError(f"{path} has no messages: nothing was recorded", MISUSE)
    for warning in trace.warnings:
        stderr.write_line((f"mcp-trio: {path}: {warning}", "yellow"))
    return trace
