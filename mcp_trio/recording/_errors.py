"""The error of recording. It is apart, so that a program that does not record can catch it."""

from __future__ import annotations

__all__ = ["CannotRecord"]


class CannotRecord(OSError):
    """A trace file that cannot be opened. `strerror` names the file and the reason."""

    strerror: str
