"""The end of a server's process that doesn't end by itself: a handler ignores its cancellation.

1. Only for a process that is nothing but a server. Others get a line in the log, see
   `Service.warn_of_running`.
2. A thread waits for the deadline, because a handler may block the event loop. It is started by
   `LastDeadline.begin`; until then the deadline costs nothing.
3. No bookkeeping: what runs is found in the interpreter's frames, once, at the deadline.
"""

from __future__ import annotations

import _thread
import gc
import os
import sys
from contextlib import suppress
from types import CoroutineType
from typing import TYPE_CHECKING, Any, Final, Self

from mcp_core._text import escape_text
from mcp_core.registry.entries._invocation import Invocation
from mcp_core.registry.entries._tools import ToolEntry
from mcp_core.runtime._service import RequestJob, RootsJob, name_of_request

if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import FrameType

__all__ = ["LastDeadline"]

# Seconds for the line, for the end of a trace, and to flush. Each of them may block: nothing reads
# stderr, or the handler holds a lock.
_REPORT_TIMEOUT: Final = 2.5
_MAX_NAMES: Final = 20  # in the line
_INTERVAL: Final = 1.0  # seconds until the next look if no handler ran at the deadline
_STDERR: Final = 2


class LastDeadline:
    """The time at which this process ends although handlers still run. No time until `begin`.

    Until `lifespan_ended` only handlers count: a lifespan may take as long as it needs to save and
    to close things.

    Args:
        name: the server's name, with which the line on stderr begins.

    Use it in a `with` block around the server's run: after the block nothing happens.
    """

    def __init__(self, name: str) -> None:
        self._name = name
        self._status = 1
        self._seconds: float | None = None  # None until `begin`
        self._cause = ""
        self._ran: list[str] = []
        self._lifespan_ended = False
        # Held until the end of the block. `threading` has locks that a signal handler must not
        # wait for, because it may have interrupted the code that holds them.
        self._running = _thread.allocate_lock()

    def __repr__(self) -> str:
        return f"<LastDeadline of {self._name!r}, {self._seconds} s>"

    def __enter__(self) -> Self:
        self._running.acquire()
        return self

    def __exit__(self, *_: object) -> None:
        self._running.release()

    def begin(self, seconds: float, cause: str, status: int | None = None) -> None:
        """End the process in `seconds`, unless the block ends before.

        A signal handler may call this. A later call changes only the status.

        Args:
            seconds: the time from now.
            cause: completes the sentence "... did not end within 6 s after", such as `SIGTERM`.
            status: the exit status, 128 + n after the signal n. By default it stays 1, or what a
                signal has set.
        """
        if status is not None:
            self._status = status
        if self._seconds is None:
            self._seconds = seconds
            self._cause = cause
            self._ran = _running_handlers()  # here: they may end, and leave a task behind
            with suppress(RuntimeError):  # the system has no thread left
                _thread.start_new_thread(self._wait, ())

    def lifespan_ended(self) -> None:
        """Let everything count from now on, such as a task that a handler has left behind."""
        self._lifespan_ended = True

    def _wait(self) -> None:
        seconds = self._seconds
        assert seconds is not None
        while not self._running.acquire(timeout=seconds):
            names = _running_handlers()
            if not names and self._lifespan_ended:
                names = self._ran or ["a task or thread"]
            if names:
                self._end(names)
            seconds = _INTERVAL
        self._running.release()

    def _end(self, names: list[str]) -> None:
        reported = _thread.allocate_lock()
        reported.acquire()
        with suppress(RuntimeError):
            _thread.start_new_thread(self._report, (names, reported))
            reported.acquire(timeout=_REPORT_TIMEOUT)
        os._exit(self._status)

    def _report(self, names: list[str], reported: _thread.LockType) -> None:
        try:
            self._write_line(names)
            for recorder in _open_recorders():
                recorder.close()
            for file in sys.stdout, sys.stderr:
                with suppress(AttributeError, OSError, ValueError):  # no such file, or closed
                    file.flush()
        finally:
            reported.release()

    def _write_line(self, names: list[str]) -> None:
        if len(names) > _MAX_NAMES:
            names[_MAX_NAMES:] = [f"{len(names) - _MAX_NAMES} more"]
        line = (
            f"{self._name}: {', '.join(names)} did not end within {self._seconds:g} s after"
            f" {self._cause}: the process ends without waiting longer"
        )
        data = escape_text(line).encode(errors="replace") + b"\n"
        with suppress(OSError):  # there is no stderr
            os.write(_STDERR, data)


def _running_handlers() -> list[str]:
    return list(dict.fromkeys(_running_names()))


def _running_names() -> Iterator[str]:
    """Yield the names of the tools, and of other handlers, that run in any task or thread."""
    jobs = {RequestJob.run.__code__, RootsJob.run.__code__}
    tools: dict[int, str] = {}  # by the function's id
    for each in gc.get_objects():
        # Not `isinstance`, for which a proxy may run code of its own.
        kind = type(each)
        if kind is CoroutineType and each.cr_code in jobs:
            frame: FrameType | None = each.cr_frame
            if frame is not None:  # it hasn't ended
                job = frame.f_locals["self"]
                is_request = isinstance(job, RequestJob)
                yield name_of_request(job.request) if is_request else "a hook on changed roots"
        elif kind is ToolEntry:
            tools[id(each.function)] = f"tool {each.name!r}"
    # Plain functions, which block the event loop or a worker thread. The job of a worker thread may
    # have been cancelled long ago.
    call = Invocation.call.__code__
    for frame in sys._current_frames().values():
        while frame is not None:
            if frame.f_code is call:
                function = frame.f_locals["self"].function
                yield tools.get(id(function), function.label)
            frame = frame.f_back


def _open_recorders() -> list[Any]:
    module = sys.modules.get("mcp_core.adapters._recorder")
    if module is None:  # this process doesn't record
        return []
    return [each for each in gc.get_objects() if type(each) is module.Recorder]
