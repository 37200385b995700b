"""The peak of the memory of this process."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from types import TracebackType

__all__ = ["MIB", "BoundedMemory"]

MIB: Final = 1024 * 1024


class BoundedMemory:
    """Assert that a `with` block needs less than a number of bytes at its peak. Linux only.

    On other systems it asserts nothing.
    """

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._before = 0

    def __enter__(self) -> None:
        if sys.platform == "linux":
            Path("/proc/self/clear_refs").write_text("5")  # the peak begins again
            self._before = _peak()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        exc: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if sys.platform == "linux" and exc is None:
            growth = _peak() - self._before
            assert growth < self._limit, f"{growth / MIB:.1f} MiB"


def _peak() -> int:
    status = Path("/proc/self/status").read_text()
    return int(status.partition("VmHWM:")[2].split(maxsplit=1)[0]) * 1024
