"""Load a whole trace file as the messages of its sessions."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Final

from mcp_core.trace import EmptyTrace, InvalidTrace, RecordedTrace, load_trace, read_trace
from mcp_trio.cli._errors import MISUSE, NOTHING_JUDGED, CliError

if TYPE_CHECKING:
    from mcp_trio.cli._screen import Screen

__all__ = ["load_trace_file"]

_NOTHING: Final = "nothing was recorded; record a conversation with --record"


def load_trace_file(path: str, stderr: Screen) -> RecordedTrace:
    """Return the messages of the trace in the file `path`, and warn of what is missing in it.

    Raises:
        CliError: the file cannot be read, isn't a trace, is too large, or has no messages.
    """
    try:
        with Path(path).open("rb") as file:
            trace = load_trace(*read_trace(file))
    except OSError as exc:
        raise CliError(f"{path}: {exc.strerror}", MISUSE) from exc
    except EmptyTrace as exc:
        raise CliError(f"{path} is empty: {_NOTHING}", NOTHING_JUDGED) from exc
    except InvalidTrace as exc:
        raise CliError(f"{path}: {exc}", MISUSE) from exc
    if not trace.sessions:
        damage = f", and cannot be read in line {trace.damaged[0]}" if trace.damaged else ""
        raise CliError(f"{path} has no messages{damage}: {_NOTHING}", NOTHING_JUDGED)
    for warning in trace.warnings:
        stderr.write_line((f"mcp-trio: {path}: {warning}", "yellow"))
    return trace
