"""A judge for a conversation that is still going on: it prints findings as it makes them.

1. It runs in a thread of its own, after the recorder has written a line: neither the conversation
   nor its trace waits for it.
2. The queue of lines is bounded. Lines above the bound are left out and counted, and findings that
   depend on them are inconclusive.
3. A finding that our stderr doesn't take is only counted.
"""

from __future__ import annotations

import logging
import threading
from collections import deque
from contextlib import ExitStack
from typing import TYPE_CHECKING, Final

from mcp_core.trace import Judge, TraceLine
from mcp_trio.cli._errors import INTERNAL_ERROR, NOTHING_JUDGED
from mcp_trio.cli._screen import Screen
from mcp_trio.cli._unblocked_stderr import unblocked_stderr

from ._check import FOUND, CheckReport, show_finding

if TYPE_CHECKING:
    from mcp_core.trace import Finding, TraceHeader

__all__ = ["LiveJudge"]

_MAX_QUEUED: Final = 16 * 1024 * 1024  # bytes of lines that wait for the judge
_LINE_SIZE: Final = 1_000  # bytes of a line beside its message
_MAX_SHOWN: Final = 1_000  # findings; more are counted, so that a log doesn't overflow
_FINISH_TIMEOUT: Final = 5.0  # seconds for the rest of the lines at the end

_log = logging.getLogger("mcp_trio")


class LiveJudge:
    """A judge that gets each line of a trace in order, by `receive`, and prints its findings.

    Call `start` before the first line, and `finish` after the last one.

    Attributes:
        report: the findings so far.
    """

    def __init__(self) -> None:
        self.report = CheckReport("", frozenset(), "both", "should")
        self._judge = Judge()
        self._stack = ExitStack()
        self._screen = Screen(self._stack.enter_context(unblocked_stderr()))
        self._shown = 0  # findings
        self._has_failed = False
        # Written by one thread each, so that neither needs a lock.
        self._queue: deque[tuple[TraceLine, int, int]] = deque()
        self._queued_bytes = 0
        self._taken_bytes = 0
        self._number = 1  # of the last line in the file; the header is the first
        self._lost = 0  # lines since the last one that was queued
        self._lost_in_all = 0
        self._wake = threading.Event()
        self._ending = threading.Event()
        self._thread = threading.Thread(target=self._run, name="mcp-trio judge", daemon=True)

    def start(self, header: TraceHeader) -> None:
        """Begin a trace with this header."""
        self._judge = Judge(header)
        self._thread.start()

    def receive(self, line: TraceLine) -> None:
        """Queue a line. It never waits. Call it from one thread."""
        self._number += 1
        size = _LINE_SIZE + len(line.raw or "") + len(line.data or b"")
        queued = self._queued_bytes - self._taken_bytes
        if self._has_failed or (queued and queued + size > _MAX_QUEUED):
            self._lost += 1
            self._lost_in_all += 1
            return
        if self._lost:
            gap = TraceLine(t=line.t, kind="lost", count=self._lost)
            self._lost = 0
            self._queue.append((gap, self._number - 1, 0))
        self._queued_bytes += size
        self._queue.append((line, self._number, size))
        self._wake.set()

    def finish(self, *, is_complete: bool) -> int:
        """Judge the end of the conversation, print a summary, and return the exit status.

        It waits at most five seconds for the thread.

        Args:
            is_complete: whether `receive` has had every line.

        Returns:
            1 if at least one rule is broken, 70 if the judge has a fault, 4 if it hasn't seen a
            message of each side or the end, and 0 otherwise.
        """
        self._ending.set()
        self._wake.set()
        self._thread.join(_FINISH_TIMEOUT)
        status = self._end(is_complete)
        if not self._thread.is_alive():
            self._stack.close()
        return status

    def _end(self, is_complete: bool) -> int:
        is_whole = not (self._thread.is_alive() or self._has_failed) and is_complete
        if is_whole:
            self._show(self._judge.close())
            self.report.finish(self._judge)
            self._screen.write_line(f"mcp-trio: {self.report.summary}")
        else:
            self._screen.write_line("mcp-trio: the judge has not seen all of the conversation")
        if self._lost_in_all and not self._has_failed:
            self._screen.write_line(
                f"mcp-trio: {self._lost_in_all} lines came too fast for the judge"
            )
        if self.report.failed:
            return FOUND
        if self._has_failed:
            return INTERNAL_ERROR
        if is_whole and self.report.unjudged:
            self._screen.write_line(f"mcp-trio: nothing was judged: {self.report.unjudged}")
        return 0 if is_whole and not self.report.unjudged else NOTHING_JUDGED

    # -- The thread --------------------------------------------------------------------------------

    def _run(self) -> None:
        try:
            while not self._ending.is_set() or self._queue:
                self._wake.wait()
                self._wake.clear()
                while self._queue:
                    line, number, size = self._queue.popleft()
                    self._taken_bytes += size
                    self._show(self._judge.receive(line, number))
        except Exception:  # noqa: BLE001 - the conversation and its recording go on
            self._has_failed = True
            self._queue.clear()
            _log.exception("internal error of the judge: the rest is not judged")

    # -- stderr ------------------------------------------------------------------------------------

    def _show(self, found: list[Finding]) -> None:
        for each in self.report.add(found):
            self._shown += 1
            if self._shown <= _MAX_SHOWN:
                show_finding(self._screen, each)
            elif self._shown == _MAX_SHOWN + 1:
                self._screen.write_line(
                    "mcp-trio: more findings are only counted; `mcp-trio check` shows them"
                )
