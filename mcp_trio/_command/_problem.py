"""The command's error, and its exit statuses."""

from __future__ import annotations

from typing import Final

__all__ = ["ANSWERED_ERROR", "INTERRUPTED", "MISUSED", "NO_CONVERSATION", "CliError"]

ANSWERED_ERROR: Final = 1
MISUSED: Final = 2  # the status that argparse uses
NO_CONVERSATION: Final = 3
INTERRUPTED: Final = 130  # 128 + SIGINT, as shells count


class CliError(Exception):
    """An error that is shown to the user: the cause, then the cure."""

    def __init__(self, text: str, status: int = MISUSED) -> None:
        super().__init__(text)
        self.status = status
