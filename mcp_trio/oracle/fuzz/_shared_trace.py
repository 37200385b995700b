"""A trace's header, and what the sessions that are recorded in one trace share."""

from __future__ import annotations

from collections import deque
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final, Literal

from mcp_core import __version__
from mcp_core.trace import FORMAT_VERSION, TraceHeader

if TYPE_CHECKING:
    from ._fault import TargetFault

__all__ = ["MAX_KEPT", "SharedTrace", "new_header"]

MAX_KEPT: Final = 200  # cursors, tasks, faults and the like, of each kind


def new_header(observer: Literal["client", "server"], transport: str, target: str) -> TraceHeader:
    """Return the header of a trace that begins now.

    Args:
        observer: the side on which the fuzzer is.
        transport: stdio or http.
        target: the target's name, without secrets.
    """
    return TraceHeader(
        format_version=FORMAT_VERSION,
        at=datetime.now(UTC).isoformat(timespec="microseconds").replace("+00:00", "Z"),
        by=f"mcp-trio {__version__}",
        observer=observer,
        transport=transport,
        target=target,
    )


class SharedTrace:
    """The state that the sessions of one trace share, in addition to the judge and the lines.

    Attributes:
        line: the number of the last line, as the judge counts: the header is line 1.
        case_lines: the last line before each case.
        faults: the server's faults in the case.
    """

    def __init__(self) -> None:
        self.line = 1
        self.case_lines: deque[int] = deque(maxlen=MAX_KEPT)
        self.faults: list[TargetFault] = []
