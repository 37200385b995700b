"""The file with the user's approvals: read, and changed under a lock, by any number of hosts.

1. It is trusted only if no other user could have written it: owner and modes of the file and of all
   directories above it are checked at each use. Windows has no such checks.
2. A change is a new file under the old name, so a reader or a crash never sees half a file.
3. A file that cannot be used is an error. It doesn't count as empty: it has the rules that deny
   calls.
"""

from __future__ import annotations

import errno
import os
import shlex
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final

from mcp_core.host import (
    Approvals,
    InvalidApprovals,
    decode_approvals,
    encode_approvals,
)
from mcp_trio._files import (
    lock_file,
    read_regular_file,
    removed_on_error,
    sync_directory,
    user_directory,
    write_beside,
)

from ._owners import HAS_OWNERS, UnsafePath, find_unsafe_path

__all__ = ["ApprovalFile", "UnsafeApprovals"]

# Bytes. Pins hold whole definitions: 100 servers with 100 tools of 2 KiB have 20 MB.
_MAX_SIZE: Final = 64 * 1024 * 1024
# Seconds to wait for another process that changes the file. A change takes milliseconds.
_LOCK_TIMEOUT: Final = 10.0
_LOCK_INTERVAL: Final = 0.01  # seconds between two attempts
_ROOT: Final = 0
_WRITABLE_BY_OTHERS: Final = 0o022  # permission bits


class UnsafeApprovals(InvalidApprovals):
    """Stored approvals that another user may have written. They aren't used.

    `path` is the file, `cause` says what is wrong, and `cure` what to do.
    """

    def __init__(self, path: Path, cause: str, cure: str) -> None:
        super().__init__(f"the approvals in {path} are not used: {cause}; {cure}")
        self.path = path
        self.cause = cause
        self.cure = cure


class ApprovalFile:
    """The approvals of the user in a file. Processes can share it.

    Its methods block, for some milliseconds or while they wait for another process: call them in a
    worker thread. They may be called in several threads at once.

    Args:
        path: the file; created when needed, with its directories, which get mode 0700. By default
            `mcp-trio/approvals.json` in the user's state directory (`XDG_STATE_HOME`, or
            `~/.local/state`).

    Raises:
        RuntimeError: there is no `path`, and the user has no home directory.
    """

    def __init__(self, path: str | os.PathLike[str] | None = None) -> None:
        if path is None:
            path = user_directory("XDG_STATE_HOME", ".local", "state") / "approvals.json"
        self.path = Path(path).absolute()

    def __repr__(self) -> str:
        return f"ApprovalFile({str(self.path)!r})"

    def load(self) -> Approvals:
        """Return the stored approvals; none if nothing was stored yet.

        Raises:
            UnsafeApprovals: another user could have written the file, or it is a symbolic link.
            InvalidApprovals: it cannot be read, or has no approvals of this version. The text says
                what to do.
        """
        try:
            self._check_directory()
            data, state = read_regular_file(self.path, max_size=_MAX_SIZE, follow_links=False)
        except (FileNotFoundError, NotADirectoryError):
            return Approvals()
        except OSError as exc:
            raise self._unreadable(exc) from exc
        self._check_file(state)
        if not data.strip():
            raise InvalidApprovals(f"{self.path} is empty; {self._remove()}")
        try:
            return decode_approvals(data)
        except InvalidApprovals as exc:
            raise InvalidApprovals(f"{self.path}: {exc}; {self._remove()}") from None

    def change(self, function: Callable[[Approvals], Approvals]) -> Approvals:
        """Replace the stored approvals by what `function` makes of them, and return these.

        No other process changes them meanwhile. If `function` raises, or returns equal approvals,
        nothing is written. Rules for a call or a session aren't stored.

        Args:
            function: gets the stored approvals. It is called once, and should not take long:
                others wait.

        Raises:
            UnsafeApprovals, InvalidApprovals: as `load`; also if the new approvals are larger than
                64 MiB.
            TimeoutError: another process has locked the file for 10 seconds.
            OSError: the file cannot be written.
        """
        for directory in reversed([self.path.parent, *self.path.parent.parents]):
            # XDG: created directories have this mode. `parents=True` would use the umask.
            if not directory.exists():
                directory.mkdir(mode=0o700, exist_ok=True)
        self._check_directory()
        release = self._lock()
        try:
            before = self.load()
            data = encode_approvals(function(before))
            after = decode_approvals(data)
            if after != before:
                self._write(data)
            return after
        finally:
            release()

    def _write(self, data: bytes) -> None:
        if len(data) > _MAX_SIZE:
            raise InvalidApprovals(
                f"the approvals are larger than {_MAX_SIZE >> 20} MiB; remove those of servers that"
                " are no longer used"
            )
        temporary = write_beside(self.path, data)
        with removed_on_error(temporary):
            temporary.replace(self.path)
        sync_directory(self.path.parent)

    def _lock(self) -> Callable[[], None]:
        path = self.path.with_name(f"{self.path.name}.lock")
        for _ in self._attempts():
            release = lock_file(path)
            if release is not None:
                return release
        raise TimeoutError(
            errno.ETIMEDOUT,
            f"another process has locked it for {_LOCK_TIMEOUT:g} seconds; end that process",
            str(path),
        )

    def _attempts(self) -> Iterator[None]:
        deadline = time.monotonic() + _LOCK_TIMEOUT
        while time.monotonic() < deadline:
            yield
            time.sleep(_LOCK_INTERVAL)

    def _check_directory(self) -> None:
        """Check that others can neither write to the directory nor replace it.

        Raises:
            UnsafeApprovals: they can.
            OSError: it cannot be looked at, or doesn't exist.
        """
        if HAS_OWNERS:
            unsafe = find_unsafe_path(self.path.parent, owners={_ROOT, os.geteuid()})
            if unsafe is not None:
                raise self._unsafe(unsafe)

    def _check_file(self, state: os.stat_result) -> None:
        if not HAS_OWNERS:
            return
        path = shlex.quote(str(self.path))
        if state.st_uid != os.geteuid():
            raise self._unsafe(UnsafePath("it belongs to another user", self._remove()))
        if state.st_mode & _WRITABLE_BY_OTHERS:
            raise self._unsafe(
                UnsafePath(
                    "other users may write to it",
                    f"{self._remove()}; or read it, and run `chmod 600 {path}`",
                )
            )

    def _unsafe(self, unsafe: UnsafePath) -> UnsafeApprovals:
        return UnsafeApprovals(self.path, *unsafe)

    def _unreadable(self, exc: OSError) -> InvalidApprovals:
        if exc.errno == errno.ELOOP:
            cure = "put the file itself there, or name the file that it leads to"
            return self._unsafe(UnsafePath("it is a symbolic link", cure))
        return InvalidApprovals(
            f"{self.path} cannot be read ({exc.strerror or exc}); let this user read it, or"
            f" {self._remove()}"
        )

    def _remove(self) -> str:
        return f"remove it (`rm {shlex.quote(str(self.path))}`) and approve the servers again"
