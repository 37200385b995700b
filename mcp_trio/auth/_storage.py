"""Store tokens between runs: in memory, in the user's files, or in a storage of one's own.

The storage in the system's keychain is in `_keyring.py`.

1. A value is bytes under a key. The file's name is a hash of the key.
2. From its creation on, only its owner can read a file. It is replaced atomically, so that neither
   a reader nor a crash sees half a file.
3. A file isn't used if other users could have read or written it, or could have replaced it.
"""

from __future__ import annotations

import os
import shlex
import stat
import tempfile
from abc import ABC, abstractmethod
from collections.abc import Callable
from contextlib import suppress
from hashlib import sha256
from pathlib import Path
from typing import Final, Protocol

from mcp_trio._files import HAS_LOCKS, lock_file

__all__ = ["FileStorage", "LockableStorage", "MemoryStorage", "TokenStorage"]

_MAX_SIZE: Final = 1_048_576  # bytes; long tokens have a few KiB
_HAS_OWNERS: Final = hasattr(os, "geteuid")  # files have an owner and permission bits
_GROUP_AND_OTHERS: Final = 0o077  # permission bits
_WRITABLE_BY_OTHERS: Final = 0o022


class TokenStorage(Protocol):
    """A storage for tokens: the option `storage` of `LoginConfig`. You may write your own.

    Both methods may block. They are called in worker threads, one call at a time for each client. A
    `key` begins with the value's kind: `tokens:`; `client:` for a client registration; `issuer:`
    for the authorization server of a client that was registered by hand. Keys contain no secrets,
    values do. If `load` raises `AuthorizationFailed`, the request fails with its text. Any other
    exception is logged, and the client goes on without the storage.
    """

    def load(self, key: str) -> bytes | None:
        """Return the value that was saved under `key`, or None."""

    def save(self, key: str, value: bytes | None) -> None:
        """Store `value`, of some KiB, under `key`. None deletes the stored value."""


class LockableStorage(ABC):
    """A `TokenStorage` that the user's processes share, with a lock for each key.

    Its exceptions are logged, so their texts must not contain stored values.
    """

    @abstractmethod
    def load(self, key: str) -> bytes | None:
        """Return the value that was saved under `key`, or None."""

    @abstractmethod
    def save(self, key: str, value: bytes | None) -> None:
        """Store `value` under `key`. None deletes the stored value."""

    @abstractmethod
    def lock(self, key: str) -> Callable[[], None] | None:
        """Lock `key` against other processes, and return the function that releases the lock.

        Return None at once if another process holds the lock. Hold it while you refresh tokens:
        two processes that use the same refresh token may both lose their tokens.
        """


class MemoryStorage:
    """A `TokenStorage` in memory. The tokens are lost with the object."""

    def __init__(self) -> None:
        self._values: dict[str, bytes] = {}

    def __repr__(self) -> str:
        return f"<MemoryStorage of {len(self._values)}>"

    def load(self, key: str) -> bytes | None:
        """Return the value that was saved under `key`, or None."""
        return self._values.get(key)

    def save(self, key: str, value: bytes | None) -> None:
        """Store `value` under `key`. None deletes the stored value."""
        if value is None:
            self._values.pop(key, None)
        else:
            self._values[key] = value


class FileStorage(LockableStorage):
    """A `TokenStorage` with one file per value, which only the user may read and write.

    The files aren't encrypted. The user's processes can share them.

    Args:
        directory: where the files are. It is created with its parents if it is missing. By default
            `mcp-trio/tokens` in the user's data directory (`XDG_DATA_HOME`, or `~/.local/share`).

    *Error handling*: the system's `OSError` propagates unchanged. The methods raise
    `PermissionError` if other users may read or write the file, if they may write to the directory,
    or if it belongs to another user. On Windows nothing of this is checked.
    """

    def __init__(self, directory: str | os.PathLike[str] | None = None) -> None:
        if directory is None:
            data = Path(os.environ.get("XDG_DATA_HOME", ""))
            if not data.is_absolute():  # XDG: a relative path is invalid and must be ignored
                data = Path.home() / ".local" / "share"
            directory = data / "mcp-trio" / "tokens"
        self.directory = Path(directory)

    def __repr__(self) -> str:
        return f"FileStorage({str(self.directory)!r})"

    def load(self, key: str) -> bytes | None:
        """Return the value that was saved under `key`, or None. Read at most 1 MiB.

        Raises:
            PermissionError: other users may read, write or replace the file, or it isn't a regular
                file.
            OSError: it cannot be read.
        """
        path = self._path(key)
        try:
            self._check_directory()
            descriptor = os.open(
                path, os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)
            )
        except FileNotFoundError:
            return None
        with os.fdopen(descriptor, "rb") as file:
            state = os.fstat(descriptor)
            if not stat.S_ISREG(state.st_mode):
                raise PermissionError(f"{path} is no file; remove it and log in again")
            if _HAS_OWNERS and (state.st_mode & _GROUP_AND_OTHERS or state.st_uid != os.geteuid()):
                raise PermissionError(f"{path} is open to other users; remove it and log in again")
            return file.read(_MAX_SIZE)

    def save(self, key: str, value: bytes | None) -> None:
        """Store `value` under `key`, atomically. None deletes the stored value.

        Raises:
            PermissionError: other users may replace files in the directory.
            OSError: the file cannot be written or deleted.
        """
        path = self._path(key)
        if value is None:
            with suppress(FileNotFoundError):
                path.unlink()
            return
        self._create_directory()
        descriptor, name = tempfile.mkstemp(dir=self.directory)  # created with mode 0600
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
        """Lock `key` against other processes, and return the function that releases the lock.

        Return None at once if another process holds the lock. The system releases the lock when
        the process ends. On Windows nothing is locked.

        Raises:
            PermissionError: other users may replace files in the directory.
            OSError: the lock file cannot be opened.
        """
        if HAS_LOCKS:
            self._create_directory()
        return lock_file(self._path(key).with_suffix(".lock"))

    def _create_directory(self) -> None:
        """Create the directory if it is missing.

        Raises:
            PermissionError: other users may write to it, or own it.
        """
        self.directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._check_directory()

    def _check_directory(self) -> None:
        """Check that only this user may create, replace and delete files in the directory.

        Raises:
            FileNotFoundError: it doesn't exist.
            PermissionError: other users may too, or it belongs to another user.
        """
        if not _HAS_OWNERS:
            return
        state = self.directory.stat()
        if state.st_uid != os.geteuid():
            raise PermissionError(
                f"{self.directory} belongs to another user, who could replace the tokens in it;"
                " name a directory of your own"
            )
        if state.st_mode & _WRITABLE_BY_OTHERS:
            raise PermissionError(
                f"other users may write to {self.directory} and replace the tokens in it; run"
                f" `chmod 700 {shlex.quote(str(self.directory))}`"
            )

    def _path(self, key: str) -> Path:
        return self.directory / sha256(key.encode()).hexdigest()
