"""A directory with a trace for each server of a host."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path
from typing import Final, TypeAlias
from urllib.parse import quote

from msgspec.structs import replace

from ._recorder import CannotRecord, Recording

__all__ = ["TraceDirectory"]

RecordDirectory: TypeAlias = str | os.PathLike[str] | Recording

_MAX_NAME: Final = 100  # characters of a file's name that come from the server's name
_SUFFIX: Final = ".mcp.jsonl"


class TraceDirectory:
    """The traces of a host's servers, one file for each.

    The file for the server `git` is `git.mcp.jsonl`. In the name, characters other than letters,
    digits and `-._~` are percent-encoded. When the server is connected again, the trace of its last
    connection is kept as `git.mcp.jsonl.previous`.

    Args:
        record: the directory, which is created with the first trace; or a `Recording` whose `path`
            it is, with options for each file.
    """

    def __init__(self, record: RecordDirectory) -> None:
        self._recording = record if isinstance(record, Recording) else Recording(path=record)

    def recording(self, server: str) -> Recording:
        """Return the recording for the next connection to a server, and make room for it.

        Args:
            server: the server's name in its host. It may be any text.

        Raises:
            CannotRecord: the directory cannot be created or written.
        """
        directory = Path(self._recording.path)
        name = _file_name(server)
        path = directory / f"{name}{_SUFFIX}"
        try:
            directory.mkdir(mode=0o700, exist_ok=True)
            if path.is_file():
                path.replace(directory / f"{name}{_SUFFIX}.previous")
        except OSError as exc:
            reason = (exc.strerror or str(exc)).lower()
            raise CannotRecord(exc.errno, f"cannot record in {directory}: {reason}") from exc
        return replace(self._recording, path=path)


def _file_name(server: str) -> str:
    name = quote(server, safe="", errors="surrogatepass")
    if len(name) <= _MAX_NAME:
        return name
    digest = hashlib.sha256(name.encode()).hexdigest()[:16]
    return f"{name[:_MAX_NAME]}-{digest}"
