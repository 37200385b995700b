"""Files that others use too: locked, or replaced at once or not at all, and only if unchanged.

How a configuration file of another program is replaced:

1. A symbolic link stays: the file that it leads to is replaced, in its own directory, by a rename.
   Mode and owner stay. What a rename would lose, such as a hard link, is refused.
2. The file is read again directly before the rename. If its program has changed it meanwhile,
   nothing is written. The window left is that between this read and the rename: these programs
   share no lock.
3. A copy of the old file is kept beside it. Such files hold secrets, so it is readable by its owner
   only.
"""

from __future__ import annotations

import errno
import os
import stat
import tempfile
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

try:
    import fcntl
except ImportError:  # Windows has none
    HAS_LOCKS = False
else:
    HAS_LOCKS = True

__all__ = [
    "HAS_LOCKS",
    "FileChanged",
    "FileSnapshot",
    "home_directory",
    "keep_copy",
    "lock_file",
    "read_regular_file",
    "read_snapshot",
    "removed_on_error",
    "replace_file",
    "replace_output",
    "sync_directory",
    "user_directory",
    "write_beside",
    "write_output",
]

# Bytes. Claude Code keeps the history of its projects in such a file; after years it has a few MiB.
_MAX_SIZE: Final = 64 * 1024 * 1024
_COPY_SUFFIX: Final = ".mcp-trio-backup"


class FileChanged(Exception):
    """Another program has changed the file since it was read. Nothing was written."""


@dataclass(frozen=True, slots=True)
class FileSnapshot:
    """A file as it was read.

    `path` is what was asked for, and `target` the file that it leads to. `data` and `state` are
    None if there is no such file.
    """

    path: Path
    target: Path
    data: bytes | None
    state: os.stat_result | None

    @property
    def copy(self) -> Path:
        """The path of the copy that is kept when the file is replaced."""
        return self.target.with_name(self.target.name + _COPY_SUFFIX)


def home_directory(environ: Mapping[str, str] = os.environ) -> Path:
    """Return the home directory of the user.

    Args:
        environ: the environment. Without a path there the system is asked.

    Raises:
        RuntimeError: the user has no home directory.
    """
    home = Path(environ.get("USERPROFILE" if os.name == "nt" else "HOME", ""))
    return home if home.is_absolute() else Path.home()


def user_directory(variable: str, *default: str, environ: Mapping[str, str] = os.environ) -> Path:
    """Return this program's directory below the one that an XDG variable names.

    Args:
        variable: the name of the variable, such as `XDG_CACHE_HOME`.
        default: the directory without that variable, below the home directory.
        environ: the environment.

    Raises:
        RuntimeError: the user has no home directory.
    """
    base = Path(environ.get(variable, ""))
    if not base.is_absolute():  # XDG: a relative path is invalid and must be ignored
        base = home_directory(environ).joinpath(*default)
    return base / "mcp-trio"


def read_snapshot(path: Path) -> FileSnapshot:
    """Read a file, which need not exist.

    Raises:
        OSError: it cannot be read, isn't a regular file, or is too large.
    """
    try:
        target = path.resolve()
    except RuntimeError as exc:  # Python 3.11 and 3.12: a loop of symbolic links
        raise OSError(None, "its symbolic links form a loop", str(path)) from exc
    try:
        data, state = read_regular_file(target, max_size=_MAX_SIZE)
    except FileNotFoundError:
        return FileSnapshot(path, target, None, None)
    return FileSnapshot(path, target, data, state)


def read_regular_file(
    path: Path, *, max_size: int, follow_links: bool = True
) -> tuple[bytes, os.stat_result]:
    """Return a file's content, and its state.

    Args:
        path: the file.
        max_size: the largest size, in bytes.
        follow_links: False to refuse a symbolic link in place of the file.

    Raises:
        OSError: it cannot be read, isn't a regular file, or is too large.
    """
    flags = os.O_RDONLY | getattr(os, "O_BINARY", 0)
    flags |= getattr(os, "O_NONBLOCK", 0)  # a FIFO would block
    if not follow_links:
        flags |= getattr(os, "O_NOFOLLOW", 0)
    descriptor = os.open(path, flags)
    try:
        state = os.fstat(descriptor)
        if not stat.S_ISREG(state.st_mode):
            raise OSError(None, "is no regular file", str(path))
        with os.fdopen(descriptor, "rb", closefd=False) as file:
            data = file.read(max_size + 1)  # it may grow after any look at its size
    finally:
        os.close(descriptor)
    if len(data) > max_size:
        raise OSError(None, f"is larger than {max_size >> 20} MiB", str(path))
    return data, state


def keep_copy(snapshot: FileSnapshot) -> Path | None:
    """Write the copy of a file beside it, in place of an older copy, and return its path.

    Return None if there is no such file.

    Raises:
        OSError: the copy cannot be written.
    """
    if snapshot.data is None or snapshot.state is None:
        return None
    temporary = write_beside(snapshot.copy, snapshot.data)
    with removed_on_error(temporary):
        # The owner's own program may need it; without the right to do so it stays ours.
        with suppress(PermissionError):
            _give_to_owner(temporary, snapshot.state)
        temporary.replace(snapshot.copy)
    return snapshot.copy


def replace_file(snapshot: FileSnapshot, data: bytes, *, private: bool) -> Path | None:
    """Replace the file by `data`, and return the path of the copy of the old one, if there was one.

    Args:
        snapshot: the file as it was when `data` was made from it.
        data: the new content.
        private: whether a file that did not exist gets mode 0600; otherwise the umask decides.

    Raises:
        FileChanged: the file is no longer as in the snapshot.
        OSError: it cannot be written, or not without losing its owner or a hard link.
    """
    target, state = snapshot.target, snapshot.state
    if state is not None:
        _check_replaceable(snapshot.path, target, state)
    else:
        target.parent.mkdir(mode=0o700 if private else 0o777, parents=True, exist_ok=True)
    temporary = write_beside(target, data)
    with removed_on_error(temporary):
        if state is not None:
            _give_to_owner(temporary, state)
            temporary.chmod(stat.S_IMODE(state.st_mode))
        elif not private:
            temporary.chmod(0o666 & ~_umask())
        copy = keep_copy(snapshot)
        now = read_snapshot(snapshot.path)
        if (now.target, now.data) != (target, snapshot.data):
            raise FileChanged(str(snapshot.path))
        if state is not None:
            temporary.replace(target)
        else:
            _move_if_absent(temporary, target)
    sync_directory(target.parent)
    return copy


@contextmanager
def removed_on_error(path: Path) -> Iterator[None]:
    """Remove a temporary file if the block raises."""
    try:
        yield
    except BaseException:
        with suppress(OSError):
            path.unlink()
        raise


def _check_replaceable(path: Path, target: Path, state: os.stat_result) -> None:
    if state.st_nlink > 1:
        raise OSError(None, "has several hard links, of which only one would change", str(path))
    if not os.access(target, os.W_OK):
        raise PermissionError(None, "is write-protected", str(path))


def write_beside(target: Path, data: bytes) -> Path:
    """Write a temporary file with mode 0600 into the directory of `target`, and return its path."""
    descriptor, name = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name}.")
    temporary = Path(name)
    with removed_on_error(temporary), os.fdopen(descriptor, "wb") as file:
        file.write(data)
        file.flush()
        os.fsync(descriptor)
    return temporary


def write_output(path: Path, data: bytes) -> None:
    """Write a file that the user has named, as a whole, and not through a link to a file.

    A file that exists keeps its mode. A device or a pipe gets the bytes, also through a link, such
    as /dev/stdout.

    Raises:
        OSError: it cannot be written, or is a link to a file.
    """
    state = None
    with suppress(FileNotFoundError):
        state = path.lstat()
    if state is not None and stat.S_ISLNK(state.st_mode):
        with suppress(OSError):
            state = path.stat()
        if stat.S_ISREG(state.st_mode) or stat.S_ISLNK(state.st_mode):
            problem = "is a symbolic link: remove it, or name the file that it leads to"
            raise OSError(errno.ELOOP, problem, str(path))
    if state is not None and not stat.S_ISREG(state.st_mode):
        path.write_bytes(data)  # a directory raises
        return
    replace_output(path, data, mode=0o666 & ~_umask() if state is None else state.st_mode)


def replace_output(path: Path, data: bytes, *, mode: int = 0o600) -> None:
    """Write one of our files beside, and rename it: a link in its place goes, its target stays.

    Raises:
        OSError: it cannot be written. It names `path`.
    """
    try:
        temporary = write_beside(path, data)
        with removed_on_error(temporary):
            temporary.chmod(stat.S_IMODE(mode))
            temporary.replace(path)
    except OSError as exc:  # not the name of the temporary file
        raise OSError(exc.errno, exc.strerror or str(exc), str(path)) from exc


def _give_to_owner(path: Path, state: os.stat_result) -> None:
    if os.name == "posix" and (state.st_uid, state.st_gid) != (
        path.stat().st_uid,
        path.stat().st_gid,
    ):
        os.chown(path, state.st_uid, state.st_gid)


def _move_if_absent(temporary: Path, target: Path) -> None:
    """Give the temporary file its name, unless another program has created that file."""
    try:
        target.hardlink_to(temporary)
    except FileExistsError:
        raise FileChanged(str(target)) from None
    except OSError:  # a file system without hard links
        temporary.replace(target)
    else:
        temporary.unlink()


def _umask() -> int:
    mask = os.umask(0o077)
    os.umask(mask)
    return mask


def sync_directory(directory: Path) -> None:
    """Let the rename reach the disk."""
    if os.name != "posix":
        return
    descriptor = os.open(directory, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    except OSError:  # a file system that cannot
        pass
    finally:
        os.close(descriptor)


def lock_file(path: Path) -> Callable[[], None] | None:
    """Lock a file against other processes, and return the function that releases the lock.

    Return None, without waiting, if another process or thread holds the lock. The end of the
    process releases it, too. The file is created, and stays. On Windows nothing is locked.

    Raises:
        OSError: the file cannot be opened, or is a symbolic link.
    """
    if not HAS_LOCKS:
        return lambda: None
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BaseException as exc:
        os.close(descriptor)
        if isinstance(exc, BlockingIOError):
            return None
        raise
    return partial(os.close, descriptor)
