"""Limits of a case's stress steps, which share the machine with the server."""

from __future__ import annotations

from typing import Final

__all__ = [
    "MAX_CONNECTIONS",
    "MAX_DEPTH",
    "MAX_HEADERS",
    "MAX_REQUESTS",
    "PROBE_TIMEOUT_FACTOR",
    "StressBudget",
]

# Connections of one case. Many systems allow a process 256 open files, and the server has as many.
MAX_CONNECTIONS: Final = 200
# Bytes of one case: four messages that are twice as large as the default limit of our own servers.
MAX_BYTES: Final = 32 * 1024 * 1024
MAX_REQUESTS: Final = 500  # requests of one step: judging their responses takes most of the time
MAX_DEPTH: Final = 200_000
MAX_HEADERS: Final = 20_000
# The probe's timeout is multiplied by this: the server has much to do first.
PROBE_TIMEOUT_FACTOR: Final = 3


class StressBudget:
    """The connections and bytes that a case may still use.

    Attributes:
        is_used: a stress step was played.
    """

    def __init__(self) -> None:
        self.is_used = False
        self._connections = MAX_CONNECTIONS
        self._bytes = MAX_BYTES

    def take_connections(self, count: int) -> int:
        """Return how many of `count` connections may be opened, and subtract them."""
        found = max(0, min(count, self._connections))
        self._connections -= found
        return found

    def take_bytes(self, count: int) -> bool:
        """Return True if `count` bytes may be sent, and subtract them."""
        if not 0 <= count <= self._bytes:
            return False
        self._bytes -= count
        return True
