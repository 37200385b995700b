"""The stream of what changes at a host's servers."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Final, Literal, Self, TypeAlias

from msgspec import Struct

from mcp_core.host._supervision import ServerStatus

from ._runtime import HostRuntime, Signal

__all__ = ["HostChange", "HostChangeKind", "HostChanges"]

# "approval": what waits for the user's approval has changed.
HostChangeKind: TypeAlias = Literal[
    "status", "tools", "prompts", "resources", "resource templates", "approval", "removed"
]

_MAX_UNREAD: Final = 1_000


class HostChange(Struct, frozen=True):
    """A change at one server of a host.

    Attributes:
        server: the server's name.
        kind: its status, one of its lists, its approval, or that it was removed. "status" is also
            the kind if a list can't be read any more, or can be again: see `ServerStatus.problems`.
        status: the server's status after the change.
    """

    server: str
    kind: HostChangeKind
    status: ServerStatus


class HostChanges:
    """A host's changes, for `async for` inside an `async with` block.

    If more than 1,000 changes are unread, the oldest are dropped and `is_incomplete` becomes True.
    `host.status()` has the present states then. The loop ends when the host is closed.

    Args:
        runtime: the host's runtime.
        close: called at the end of the block, with this object.
    """

    def __init__(self, runtime: HostRuntime, close: Callable[[HostChanges], object]) -> None:
        self.is_incomplete = False
        self._runtime = runtime
        self._close = close
        self._unread: deque[HostChange] = deque(maxlen=_MAX_UNREAD)
        self._signal = Signal(runtime.new_event)
        self._is_over = False

    def __repr__(self) -> str:
        return f"<HostChanges, {len(self._unread)} unread>"

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        self._close(self)
        self.end()  # for another task that is in the loop

    def __aiter__(self) -> HostChanges:
        return self

    async def __anext__(self) -> HostChange:
        while not self._unread:
            if self._is_over:
                raise StopAsyncIteration
            await self._signal.wait(self._runtime.wait, None)
        return self._unread.popleft()

    def add(self, change: HostChange) -> None:
        """Add `change`, and wake the task that waits. The host calls this."""
        self.is_incomplete = self.is_incomplete or len(self._unread) == _MAX_UNREAD
        self._unread.append(change)
        self._signal.notify()

    def end(self) -> None:
        """End the loop after the changes that are unread. The host calls this."""
        self._is_over = True
        self._signal.notify()
