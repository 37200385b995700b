"""Find the line of a program's stderr that names its error, in the formats of several languages."""

from __future__ import annotations

import re
from collections.abc import Sequence

__all__ = ["find_error_line"]

# What Python draws around the tracebacks of an exception group.
_FRAME = " \t|+-"
# Compiled on first use: that takes a millisecond of each import.
_ERROR = (
    r"(?:Uncaught |Unhandled exception\. |fatal error: )?[\w.]*(?:Error|Exception|Interrupt|Exit)\b"
    r"|[\w.]+\.(?:[A-Z]\w*(?:Resource|Closed|Failed|Timeout))\b"
    r"|panic: |thread '.*' panicked|fatal runtime error|Segmentation fault|Aborted\b"
)
# It says only how many errors there are. Each one has a line of its own.
_GROUP = r"[\w.]*ExceptionGroup\b"


def find_error_line(lines: Sequence[str]) -> str:
    """Return the last line that names an error, without the frame around it; "" if none does.

    Args:
        lines: what the program has written, without line breaks.
    """
    for line in reversed(lines):
        text = line.strip(_FRAME)
        if re.match(_ERROR, text) and not re.match(_GROUP, text):
            return text
    return ""
