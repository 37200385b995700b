"""Idle sessions, and the memory that a target needs for each.

1. One session is opened and closed first, so that what the target loads on first use isn't counted.
2. Then all are opened, a few at a time, and stay open until the memory was read.
3. A program has one session, so many sessions are many programs, and their memory is added up.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Protocol

import trio

from mcp_core import ConnectFailed, McpTrioError
from mcp_trio._nursery import open_quiet_nursery
from mcp_trio.oracle.bench._turn import TargetGone

if TYPE_CHECKING:
    from collections.abc import Callable
    from contextlib import AbstractAsyncContextManager

    Open = Callable[[], AbstractAsyncContextManager["OpenSession"]]

__all__ = ["IdleSessions", "TooManyFiles", "measure_sessions", "require_files"]

_OPENING: Final = 16  # sessions that are opened at a time
_SETTLE: Final = 0.5  # seconds between the last session and the reading of the memory
_OTHER_FILES: Final = 64  # descriptors that this process needs beside the sessions


class OpenSession(Protocol):
    """An open session: a `TargetLoad`."""

    revision: str


class TooManyFiles(McpTrioError):
    """The sessions need more open files than this process may have. The text has the cure."""


@dataclass(frozen=True)
class IdleSessions:
    """Idle sessions that were measured.

    Attributes:
        wanted: how many sessions were asked for.
        opened: how many were open at a time.
        seconds: how long opening them took.
        before: the target's memory without them, in bytes; None if the system doesn't say.
        after: its memory with them.
        revision: the revision that they speak.
        error: why there aren't more, or "".
    """

    wanted: int
    opened: int
    seconds: float
    before: int | None
    after: int | None
    revision: str
    error: str = ""

    @property
    def each(self) -> float | None:
        """The memory of one session, in bytes; None if it isn't known."""
        if self.before is None or self.after is None or not self.opened:
            return None
        return (self.after - self.before) / self.opened

    def to_json(self) -> dict[str, Any]:
        """Return it as JSON values, in seconds and bytes."""
        return {
            "wanted": self.wanted,
            "opened": self.opened,
            "seconds": self.seconds,
            "before": self.before,
            "after": self.after,
            "each": self.each,
            "revision": self.revision,
            "error": self.error or None,
        }


def require_files(sessions: int, *, each: int) -> None:
    """Check that this process may open the files for so many sessions, `each` for one.

    Raises:
        TooManyFiles: it may not.
    """
    try:
        import resource
    except ImportError:  # Windows, which has no such limit
        return
    limit, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    needed = sessions * each + _OTHER_FILES
    if limit != resource.RLIM_INFINITY and needed > limit:
        fits = max((limit - _OTHER_FILES) // each, 0)
        raise TooManyFiles(
            f"{sessions:,} sessions need about {needed:,} open files, and this process may have"
            f" {limit:,}: `ulimit -n {needed}` in the shell allows them, or open {fits:,} sessions"
        )


async def measure_sessions(
    open_load: Open,
    memory: Callable[[], int | None],
    count: int,
    on_begin: Callable[[trio.CancelScope], object] = lambda _: None,
) -> IdleSessions:
    """Open `count` sessions, read the target's memory, and close them.

    Args:
        open_load: opens a session, and closes it with its block.
        memory: returns the target's resident memory in bytes, or None.
        count: how many.
        on_begin: gets a scope. Its cancellation opens no more: those that are open are measured.

    Raises:
        ConnectFailed: not even one can be opened.
        TargetGone: the target ended when the first one was open.
    """
    async with open_load() as first:
        revision = first.revision
    before = memory()
    began = trio.current_time()
    opening = _Opening(open_load, count)
    async with open_quiet_nursery() as nursery:
        for _ in range(min(_OPENING, count)):
            nursery.start_soon(opening.open_some, nursery)
        with trio.CancelScope() as scope:
            on_begin(scope)
            await opening.ended.wait()
        if scope.cancelled_caught:
            opening.error = f"interrupted with {opening.opened:,} of {count:,} sessions"
        seconds = trio.current_time() - began
        await trio.sleep(_SETTLE)
        after = memory()
        opened = opening.opened
        nursery.cancel_scope.cancel()
    if before is None and after is not None:
        before = 0  # there was no process of the target
    return IdleSessions(count, opened, seconds, before, after, revision, opening.error)


class _Opening:
    """Opens `count` sessions. `ended` is set once all are open, or one can't be opened."""

    def __init__(self, open_load: Open, count: int) -> None:
        self._open_load = open_load
        self._count = count
        self._begun = 0
        self._busy = 0
        self.opened = 0
        self.error = ""
        self.ended = trio.Event()

    async def open_some(self, nursery: trio.Nursery) -> None:
        """Open one session after the other, each in a task of `nursery` that keeps it open."""
        self._busy += 1
        while self._begun < self._count and not self.error:
            self._begun += 1
            await nursery.start(self._keep_one)
        self._busy -= 1
        if not self._busy:
            self.ended.set()

    async def _keep_one(self, task_status: trio.TaskStatus[None]) -> None:
        is_open = False
        try:
            async with self._open_load():
                is_open = True
                self.opened += 1
                task_status.started()
                await trio.sleep_forever()
        except (ConnectFailed, TargetGone) as exc:
            cause = str(exc).partition("\n")[0]
            if is_open:
                self.opened -= 1
                self.error = self.error or f"a session ended: {cause}"
            else:
                place = f"session {self.opened + 1:,} of {self._count:,}"
                self.error = self.error or (
                    f"{place} could not be opened: {cause}; the server may allow no more sessions,"
                    " or no more open files (`ulimit -n` before it is started)"
                )
                task_status.started()
