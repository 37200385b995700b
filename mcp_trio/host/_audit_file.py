"""A log file with a line of JSON for each call of a tool.

1. Each line is one write to a file that is open for appending. So processes can share it, and no
   line is cut by another process.
2. The file isn't rotated here. If `logrotate` renames or removes it, it is opened again, without a
   signal and without `copytruncate`.
3. A call doesn't fail because it cannot be recorded. Such failures are counted, and the first one
   is logged.
"""

from __future__ import annotations

import logging
import os
import stat
import threading
from pathlib import Path
from typing import Any, Final

from msgspec import UNSET
from msgspec.structs import replace

from mcp_core.host import AuditRecord, encode_audit_record

__all__ = ["AuditFile"]

# Bytes of a line. Redacted arguments may have a MiB; readers of logs, such as journald with 48 KiB,
# cut lines much earlier.
_MAX_LINE: Final = 64 * 1024
_MAX_TEXT: Final = 1000  # characters of each text in a line that would be longer
_LEFT_OUT: Final = "(left out)"  # in place of arguments

_log = logging.getLogger("mcp_trio")


class AuditFile:
    """A file to which records of calls are appended.

    It is opened at once. A new file has mode 0600; one that exists keeps its mode.

    Args:
        path: the file, in a directory that exists.

    Raises:
        OSError: it cannot be opened for reading and writing, or isn't a regular file. A symbolic
            link is refused.

    *Resource handling*: `close` closes the file; it is open until then.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path).absolute()
        # Records that could not be written.
        self.failures = 0
        self._lock = threading.Lock()
        self._descriptor: int | None = None
        self._is_line_open = False  # the file ends in the middle of a line
        self._is_closed = False
        self._open()

    def __repr__(self) -> str:
        return f"<AuditFile {str(self.path)!r}, {self.failures} failures>"

    def write(self, record: AuditRecord) -> None:
        """Append `record` as one line. This blocks for one write, and raises nothing.

        Any thread may call it. A line of more than 64 KiB loses its arguments, and long texts are
        cut. A record that cannot be written is dropped and counted in `failures`.
        """
        with self._lock:
            try:
                self._append(_encode(record))
            except Exception as exc:  # noqa: BLE001  the call must not fail
                self.failures += 1
                if self.failures == 1:
                    _log.error(
                        "cannot write to the audit log %s (%s); further failures are only counted",
                        self.path,
                        exc,
                    )

    def close(self) -> None:
        """Close the file. Records that are written later count as failures."""
        with self._lock:
            self._is_closed = True
            self._close_descriptor()

    def _open(self) -> None:
        flags = os.O_RDWR | os.O_APPEND | os.O_CREAT | getattr(os, "O_BINARY", 0)
        flags |= getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)
        descriptor = os.open(self.path, flags, 0o600)
        try:
            state = os.fstat(descriptor)
            if not stat.S_ISREG(state.st_mode):
                raise OSError(None, "is no regular file", str(self.path))
            self._is_line_open = False
            if state.st_size:
                # A program may have been killed in the middle of a line.
                os.lseek(descriptor, -1, os.SEEK_END)
                self._is_line_open = os.read(descriptor, 1) != b"\n"
        except BaseException:
            os.close(descriptor)
            raise
        self._descriptor = descriptor

    def _append(self, line: bytes) -> None:
        if self._is_closed:
            raise ValueError("the file was closed")
        if self._descriptor is None or not self._is_current(self._descriptor):
            self._close_descriptor()
            self._open()
        assert self._descriptor is not None
        if self._is_line_open:
            line = b"\n" + line
        written = os.write(self._descriptor, line)
        if written:
            self._is_line_open = not line[:written].endswith(b"\n")
        if written < len(line):  # the disk is full
            raise OSError(f"only {written} of {len(line)} bytes were written")

    def _is_current(self, descriptor: int) -> bool:
        """Return True if the open file is still the one at the path."""
        try:
            state = self.path.lstat()
        except FileNotFoundError:
            return False
        return os.path.samestat(state, os.fstat(descriptor))

    def _close_descriptor(self) -> None:
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None


def _encode(record: AuditRecord) -> bytes:
    """Return the line of a record, of at most `_MAX_LINE` bytes."""
    try:
        line = encode_audit_record(record)
        if len(line) <= _MAX_LINE:
            return line
    except (TypeError, ValueError):
        pass  # arguments that aren't JSON, or half of a surrogate pair
    changes: dict[str, Any] = {
        name: _short(getattr(record, name))
        for name in ("server", "tool", "approved_by", "definition", "arguments_digest", "error")
    }
    if record.arguments is not UNSET:
        changes["arguments"] = _LEFT_OUT
    return encode_audit_record(replace(record, **changes))


def _short(text: str) -> str:
    return text[:_MAX_TEXT].encode("utf-8", "backslashreplace").decode()
