"""References of tasks that `call --detach` has started, so that `tasks list` finds them.

A server of 2026-07-28 lists no tasks: its client has to know their ids.

1. Each task has a file of its own, so that commands which run at once lose no task.
2. A file has the server's key, the reference, and times. It is readable by its user only: the
   id in the reference may be enough to read the task's result.
3. A file is removed when the task's time to live is over, when the server doesn't know the task any
   more, or when there are too many files.
"""

from __future__ import annotations

import json
import time
from contextlib import suppress
from hashlib import sha256
from typing import TYPE_CHECKING, Final, NamedTuple
from urllib.parse import urlsplit

from mcp_core.runtime import TaskReference
from mcp_trio._files import user_directory

from ._files import read_file, write_file
from ._server_key import key_of_server

if TYPE_CHECKING:
    from pathlib import Path

    from mcp_trio.cli._session import Target

__all__ = ["NotedTasks"]

_MAX_SIZE: Final = 16_384  # bytes of one file; most have 400
_MAX_TASKS: Final = 256  # of all servers; more than a user starts in a day
# Seconds after which a task is forgotten, even if its server gives no time to live, or a longer
# one.
_LONGEST: Final = 30 * 24 * 3600.0
_USUAL_PATH: Final = "/mcp"  # where a command finds the server if its URL has no path


class _TaskNote(NamedTuple):
    """A file's content. The times are in seconds since 1970."""

    server: str
    reference: str
    noted: float
    expires: float


class NotedTasks:
    """The tasks of one server that this command has started and left.

    Args:
        target: the server.
    """

    def __init__(self, target: Target) -> None:
        server = target.server
        if isinstance(server, str):
            server = _with_path(server)
        self._key = key_of_server(server, dict(target.env), target.cwd)

    def add(self, reference: TaskReference) -> None:
        """Note a task that was created now.

        Raises:
            OSError: the file cannot be written.
            RuntimeError: the user has no home directory.
        """
        now = time.time()
        notes = sorted(_load(now).items(), key=lambda each: each[1].noted)
        for path, _ in notes[: max(len(notes) + 1 - _MAX_TASKS, 0)]:
            _remove(path)
        lifetime = _LONGEST if reference.ttl is None else min(reference.ttl / 1000, _LONGEST)
        note = _TaskNote(self._key, str(reference), now, now + lifetime)
        write_file(self._path(reference), json.dumps(note._asdict()).encode())

    def load(self) -> list[TaskReference]:
        """Return this server's tasks, in the order in which they were noted."""
        try:
            notes = sorted(_load(time.time()).values(), key=lambda each: each.noted)
        except RuntimeError:
            return []
        return [TaskReference.parse(each.reference) for each in notes if each.server == self._key]

    def discard(self, reference: TaskReference) -> None:
        """Forget a task."""
        _remove(self._path(reference))

    def _path(self, reference: TaskReference) -> Path:
        # The id is the server's, and may have any characters.
        words = f"{self._key} {reference.revision} {reference.id}"
        name = sha256(words.encode(errors="surrogatepass")).hexdigest()[:32]
        return _directory() / f"{name}.json"


def _with_path(url: str) -> str:
    """Return the URL at which the command finds the server, if `url` has no path."""
    try:
        parts = urlsplit(url)
    except ValueError:
        return url
    if parts.path not in ("", "/") or parts.query or parts.fragment:
        return url
    return f"{parts.scheme}://{parts.netloc}{_USUAL_PATH}"


def _directory() -> Path:
    return user_directory("XDG_STATE_HOME", ".local", "state") / "tasks"


def _load(now: float) -> dict[Path, _TaskNote]:
    """Return all notes, by their files' paths. Remove those that are over or damaged."""
    found = {}
    try:
        paths = list(_directory().glob("*.json"))
    except OSError:
        return {}
    for path in paths:
        note = _read(path)
        # A note of the future: the clock was set back.
        if note is None or not note.noted - _LONGEST < now < note.expires:
            _remove(path)
        else:
            found[path] = note
    return found


def _read(path: Path) -> _TaskNote | None:
    try:
        members = json.loads(read_file(path, _MAX_SIZE) or b"")
        TaskReference.parse(members["reference"])
        return _TaskNote(
            str(members["server"]),
            members["reference"],
            float(members["noted"]),
            float(members["expires"]),
        )
    # InvalidTaskReference is a ValueError.
    except (KeyError, OverflowError, RecursionError, TypeError, ValueError):
        return None


def _remove(path: Path) -> None:
    with suppress(OSError):
        path.unlink()
