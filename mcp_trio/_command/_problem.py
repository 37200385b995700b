"""What can go wrong for someone at a terminal, and the exit statuses that tell a script."""

from __future__ import annotations

from typing import Final

__all__ = ["ANSWERED_ERROR", "INTERRUPTED", "MISUSED", "NO_CONVERSATION", "Problem"]

ANSWERED_ERROR: Final = 1
MISUSED: Final = 2  # argparse's own
NO_CONVERSATION: Final = 3
INTERRUPTED: Final = 130  # 128 + SIGINT, as shells count


class Problem(Exception):
    """A sentence for the user: the cause and, after it, the cure."""

    def __init__(self, text: str, status: int = MISUSED) -> None:
        super().__init__(text)
        self.status = status
