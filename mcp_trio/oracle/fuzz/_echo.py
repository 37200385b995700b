"""A measure of how slow the machine is now: the time until a started program answers."""

from __future__ import annotations

import subprocess
import sys
import time
from typing import Final

import trio

__all__ = ["Echo"]

_SLOW: Final = 3.0  # times as long as at the beginning
_SLACK: Final = 0.05  # seconds more
_ALWAYS_SLOW: Final = 0.5  # seconds: the machine may be slow from the beginning
_TIMEOUT: Final = 20.0


class Echo:
    """The time that a small program takes. Before `begin` no machine counts as slow.

    Attributes:
        slow_times: how often the machine was found to be slow.
    """

    def __init__(self) -> None:
        self._usual: float | None = None
        self.slow_times = 0

    async def begin(self) -> None:
        """Measure the usual time."""
        self._usual = min([await self._measure() for _ in range(2)])

    async def is_slow(self) -> bool:
        """Return True if an echo takes much longer now than at the beginning."""
        if self._usual is None:
            return False
        found = await self._measure() > min(_SLOW * self._usual + _SLACK, _ALWAYS_SLOW)
        self.slow_times += found
        return found

    async def _measure(self) -> float:
        def measure() -> float:
            began = time.perf_counter()
            command = [sys.executable, "-I", "-S", "-c", "print(input())"]
            try:
                subprocess.run(  # noqa: S603 - our own interpreter
                    command, input=b"x\n", capture_output=True, check=False, timeout=_TIMEOUT
                )
            except (OSError, subprocess.TimeoutExpired):
                return _TIMEOUT
            return time.perf_counter() - began

        return await trio.to_thread.run_sync(measure)
