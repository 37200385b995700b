"""The rows that are one requirement, written differently in several revisions.

A fault has the same cause in all of them. So a program that compares two runs compares families.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["FAMILIES", "row_family"]

# The rows of each family, oldest first. No two of them are in force in one revision.
FAMILIES: Final[Mapping[str, tuple[str, ...]]] = {
    "request-id-reuse": ("RPC-4", "RPC-5"),
    "result-or-error": ("RPC-9", "RPC-10"),
    "negotiated-features": ("LIFE-13", "LIFE-15", "LIFE-14"),
    "process-shutdown": ("LIFE-18", "STDIO-10"),
    "capabilities-shape": ("CAP-1", "CAP-2"),
    "own-cancellation": ("CXL-2", "CXL-3"),
    "task-cancellation": ("CXL-5", "TX-18"),
    "unknown-log-level": ("LOG-5", "LOG-10"),
    "input-schema": ("TOOL-7", "TOOL-6"),
    "structured-content": ("TOOL-8", "TOOL-9"),
    "resource-not-found": ("RES-7", "RES-8"),
    "elicitation-params": ("ELIC-4", "ELIC-5"),
    "form-fields": ("ELIC-7", "ELIC-8"),
    "task-shape": ("TSK-12", "TX-9"),
    "poll-interval": ("TSK-13", "TX-24"),
    "unknown-task": ("TSK-22", "TX-19"),
    "response-stream-end": ("SHL-3", "SHM-10"),
    "response-stream-messages": ("SHL-4", "SHM-8"),
    "version-header": ("SHL-28", "SHM-2"),
    "unsupported-version": ("SHL-29", "SHM-4"),
    "resource-metadata": ("AR-3", "AR-4"),
}
_FAMILY_OF: Final = {row: family for family, rows in FAMILIES.items() for row in rows}


def row_family(row: str) -> str:
    """Return the name of a row's family, such as `result-or-error` for `RPC-9`.

    Args:
        row: the row's id. A row without a family is a family of its own, named by its id.
    """
    return _FAMILY_OF.get(row, row)
