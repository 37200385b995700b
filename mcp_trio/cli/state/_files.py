"""Files of the command: readable by their user only, and replaced as a whole, by a rename."""

from __future__ import annotations

import os
import secrets
import stat
from contextlib import suppress
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["read_file", "write_file"]


def read_file(path: Path, size: int) -> bytes | None:
    """Return the first `size` bytes of a file; None if it is missing, or isn't a regular file."""
    try:
        # Without blocking: the file may be a named pipe.
        descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0))
    except OSError:
        return None
    try:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            return None
        return os.read(descriptor, size)
    except OSError:
        return None
    finally:
        os.close(descriptor)


def write_file(path: Path, data: bytes) -> None:
    """Replace a file, or create it with its directories.

    Raises:
        OSError: it cannot be written.
    """
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    temporary = path.with_name(f"{path.name}.{secrets.token_hex(8)}")
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(data)
        temporary.replace(path)
    except BaseException:
        with suppress(OSError):
            temporary.unlink()
        raise
