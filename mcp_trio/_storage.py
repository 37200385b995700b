"""Where tokens are kept between two conversations: nowhere, in a directory of the user's, or where somebody else decides.

Rules of this file:

1. What is kept is bytes under a key; what they mean is the core's. A file tells neither: its name is a hash.
2. A file can be read by its owner only, from the moment that it exists, and is replaced at once or not at all: whoever reads it
   meanwhile, or dies, leaves one that is whole.
3. A file that others could have read or written is not used.
4. Of several processes one at a time replaces what is kept: a refresh token that two of them use may cost both of them theirs.
"""

from __future__ import annotations

import os
import stat
import sys
import tempfile
from contextlib import suppress
from functools import partial
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Final, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable

if sys.platform != "win32":
    import fcntl

__all__ = ["FileStorage", "MemoryStorage", "TokenStorage"]

_LONGEST: Final = 1_048_576  # bytes; a token of some KiB is a long one
_OTHERS: Final = 0o077


class TokenStorage(Protocol):
    """Keeps tokens safe. Both are called in threads, one at a time for each server; that they raise is logged, and no more.

    A key begins with the kind of what is kept: `tokens:`, `client:` for what we are registered as, `issuer:` for where a client belongs
    that was registered by hand.
    """

    def load(self, key: str) -> bytes | None:
        """What was saved, None if nothing was."""

    def save(self, key: str, value: bytes | None) -> None:
        """Keep `value` in place of what there was; None forgets that."""


class MemoryStorage:
    """Keeps tokens as long as it lives itself."""

    def __init__(self) -> None:
        self._kept: dict[str, bytes] = {}

    def __repr__(self) -> str:
        return f"<MemoryStorage of {len(self._kept)}>"

    def load(self, key: str) -> bytes | None:
        return self._kept.get(key)

    def save(self, key: str, value: bytes | None) -> None:
        if value is None:
            self._kept.pop(key, None)
        else:
            self._kept[key] = value


class FileStorage:
    """Keeps tokens in files of `directory`, which is made when it is needed; by default `mcp-trio/tokens` among the user's data
    (`XDG_DATA_HOME`, or `~/.local/share`).

    *Error handling*: what the system refuses is raised as it is (`OSError`), and a file that others may read as `PermissionError`.
    """

    def __init__(self, directory: str | os.PathLike[str] | None = None) -> None:
        if directory is None:
            data = Path(os.environ.get("XDG_DATA_HOME", ""))
            if not data.is_absolute():  # then it does not count, says its specification
                data = Path.home() / ".local" / "share"
            directory = data / "mcp-trio" / "tokens"
        self.directory = Path(directory)

    def __repr__(self) -> str:
        return f"FileStorage({str(self.directory)!r})"

    def load(self, key: str) -> bytes | None:
        path = self._path(key)
        try:
            descriptor = os.open(
                path, os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)
            )
        except FileNotFoundError:
            return None
        with os.fdopen(descriptor, "rb") as file:
            state = os.fstat(descriptor)
            if not stat.S_ISREG(state.st_mode):
                raise PermissionError(f"{path} is no file; remove it and log in again")
            if os.name == "posix" and (state.st_mode & _OTHERS or state.st_uid != os.geteuid()):
                raise PermissionError(f"{path} is open to other users; remove it and log in again")
            return file.read(_LONGEST)

    def save(self, key: str, value: bytes | None) -> None:
        path = self._path(key)
        if value is None:
            with suppress(FileNotFoundError):
                path.unlink()
            return
        self.directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        descriptor, name = tempfile.mkstemp(dir=self.directory)  # 0600 from the beginning
        try:
            with os.fdopen(descriptor, "wb") as file:
                file.write(value)
                file.flush()
                os.fsync(file.fileno())
            Path(name).replace(path)
        except BaseException:
            with suppress(OSError):
                Path(name).unlink()
            raise

    def lock(self, key: str) -> Callable[[], None] | None:
        """Have the only right to replace what is kept, until what this gives is called, or the process ends; None if another process
        has it. On Windows everybody has it."""
        if sys.platform == "win32":  # pragma: no cover
            return lambda: None
        self.directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        descriptor = os.open(
            self._path(key).with_suffix(".lock"), os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o600
        )
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BaseException as exc:
            os.close(descriptor)
            if isinstance(exc, BlockingIOError):
                return None
            raise
        return partial(os.close, descriptor)

    def _path(self, key: str) -> Path:
        return self.directory / sha256(key.encode()).hexdigest()
