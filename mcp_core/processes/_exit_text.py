"""Text for errors about a program that has ended: its exit status, and the end of its stderr."""

from __future__ import annotations

from typing import Final

from mcp_core._text import escape_text

from ._error_line import find_error_line

__all__ = ["exit_text", "with_exit_text"]

_LINES_SHOWN: Final = 5  # lines of stderr in an error
_LINE_SHOWN: Final = 300  # characters of each
# For the line that names the error: an older one may be of another error. After it Node writes its
# stack, its members, and the version of Node. Python ends an exception group with a frame.
_LINES_SEARCHED: Final = 30
_STATUS: Final = " (exit status "


def exit_text(status: int | None, stderr: bytes) -> str:
    """Return the exit status and the last lines of stderr, to append to an error, or "".

    If the line that names the error is a little above them, it takes the place of the first.

    Args:
        status: as of `subprocess`: a signal is negative. None while the program runs.
        stderr: the end of what it has written to its stderr.
    """
    tail = stderr.decode(errors="replace").splitlines()
    lines = [line for line in tail if line.strip()][-_LINES_SEARCHED:]
    above, lines = lines[:-_LINES_SHOWN], lines[-_LINES_SHOWN:]
    if above and not find_error_line(lines):
        lines[0] = find_error_line(above) or lines[0]
    signal = f", signal {-status}" if status is not None and status < 0 else ""
    shown_status = "" if status is None else f"{_STATUS}{status}{signal})"
    # Escaped: the message of an exception is often printed to a terminal.
    shown = (escape_text(line[:_LINE_SHOWN], joiners=True) for line in lines)
    return shown_status + "".join(f"\n  its stderr: {line}" for line in shown)


def with_exit_text(error: str, text: str) -> str:
    """Return an error's text with a later result of `exit_text` in place of an earlier one.

    Args:
        error: the error's text, which may end with what `exit_text` returned before.
        text: what `exit_text` returns now.
    """
    cause, _, _ = error.partition("\n")
    cause, _, _ = cause.partition(_STATUS)
    return f"{cause}{text}"
