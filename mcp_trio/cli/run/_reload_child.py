"""The process that `mcp-trio run --reload` starts: the server, and a report of its files.

`python -m mcp_trio.cli.run._reload_child REPORT DIRECTORY WORD...` runs `mcp-trio WORD...`.
Over HTTP the server ends with its stdin. REPORT gets a JSON object: the files of the imported
modules below DIRECTORY, each with the time of its last change (nanoseconds). It is written again
when a module is imported later.
"""

from __future__ import annotations

import atexit
import json
import os
import signal
import sys
import threading
from contextlib import suppress
from pathlib import Path
from typing import Final

__all__ = ["Report"]

_INTERVAL: Final = 0.2  # seconds between two checks of the imported modules


class Report:
    """The files of the modules that this process has imported, written to `path`."""

    def __init__(self, path: Path, directory: Path) -> None:
        self._path = path
        self._directory = directory
        self._times: dict[str, int] = {}
        self._written = 0
        self._lock = threading.Lock()

    def update(self) -> None:
        """Write the report if a module was imported since."""
        with self._lock:
            for module in list(sys.modules.values()):
                file = getattr(module, "__file__", None)
                if isinstance(file, str) and file not in self._times:
                    self._add(file)
            if len(self._times) > self._written:
                self._written = len(self._times)
                temporary = self._path.with_suffix(".new")
                found = {file: time for file, time in self._times.items() if time}
                temporary.write_text(json.dumps(found))
                temporary.replace(self._path)

    def _add(self, file: str) -> None:
        self._times[file] = 0
        with suppress(OSError):
            path = Path(file).resolve()
            if path.is_relative_to(self._directory) and "site-packages" not in path.parts:
                self._times[str(path)] = path.stat().st_mtime_ns

    def watch(self) -> None:
        """Update the report in a thread, and at the end of the process."""
        atexit.register(self.update)
        threading.Thread(target=self._run, daemon=True).start()

    def _run(self) -> None:
        never = threading.Event()
        with suppress(OSError):  # the directory of the report is gone: the parent has ended
            while not never.wait(_INTERVAL):
                self.update()


def _end_with_stdin() -> None:
    """Begin an orderly end when stdin is closed: the parent stops this server, or has ended."""
    with suppress(OSError):
        while os.read(0, 1024):
            pass
    os.kill(os.getpid(), signal.SIGTERM)


if __name__ == "__main__":
    if "--listening-fds" in sys.argv:  # over HTTP, stdin carries nothing
        threading.Thread(target=_end_with_stdin, daemon=True).start()
    Report(Path(sys.argv[1]), Path(sys.argv[2])).watch()
    from mcp_trio.cli import main

    raise SystemExit(main(sys.argv[3:]))
