"""Pipes and terminals that take nothing, or a little and no more."""

from __future__ import annotations

import os
import select
from contextlib import suppress

__all__ = ["fill"]


def fill(reader: int, writer: int, *, room: bool = False) -> None:
    """Write until nothing more is taken.

    Args:
        reader: the end to read.
        writer: the end to write, which waits again in the end.
        room: whether it then takes some bytes, and says so.
    """
    os.set_blocking(writer, False)
    for size in (65_536, 1):
        with suppress(BlockingIOError):
            while True:
                os.write(writer, b"x" * size)
    os.set_blocking(writer, True)
    poll = select.poll()
    poll.register(writer, select.POLLOUT)
    while room and not poll.poll(0):
        os.read(reader, 1)
