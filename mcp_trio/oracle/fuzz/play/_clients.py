"""The clients of a case: one, or two whose steps begin with `on`.

Both have sessions with the same target, in the same trace. The second client lives as long as the
case. While one of them runs a call, the other one may have to wait.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, TypeVar

import trio

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterator

__all__ = ["ONE_CLIENT", "Clients"]

T = TypeVar("T")

ONE_CLIENT: Final = "steps of a second client do nothing: over stdio each client has a process"


class Clients:
    """The clients of a case.

    Args:
        first: the first client's session, which `aclose` doesn't close.

    Attributes:
        session: the session of the client whose turn it is.
        other: the other client's session; None if the case has one client.
        first: the session with which the case began. `reconnect` begins others.
    """

    def __init__(self, first: Any) -> None:
        self.session = self.first = first
        self.other: Any = None

    def __iter__(self) -> Iterator[Any]:
        """Yield each client's session."""
        yield self.session
        if self.other is not None:
            yield self.other

    async def begin_second(self) -> bool:
        """Begin the second client. Return False if the target can have one client only."""
        self.other = await self.session.beside()
        return self.other is not None

    async def as_other(self, act: Callable[..., Awaitable[T]], *args: Any) -> T:
        """Call `act` while it is the other client's turn, and return its result."""
        self.session, self.other = self.other, self.session
        try:
            return await act(*args)
        finally:
            self.session, self.other = self.other, self.session

    async def for_each(self, act: Callable[..., Awaitable[None]], *args: Any) -> None:
        """Call `act` in each client's turn."""
        await act(*args)
        if self.other is not None:
            await self.as_other(act, *args)

    def may_be_busy(self) -> bool:
        """Return True if a cancelled call, or another client's, may still run and be in the way."""
        if any(each.may_be_busy for each in self):
            return True
        other = self.other
        return other is not None and any(
            each.answer is None and not each.is_bounded for each in other.open.values()
        )

    async def succeed(self) -> None:
        """Replace the current client's session with the one that follows it.

        Raises:
            ConnectFailed: the target doesn't start.
        """
        former = self.session
        self.session = await former.successor()
        if former is not self.first:
            await former.aclose()

    async def aclose(self) -> None:
        """Close all sessions but the first one."""
        if self.session is not self.first:
            self.first.spent = True
            with trio.CancelScope(shield=True):
                await self.session.aclose()
        if self.other is not None:
            with trio.CancelScope(shield=True):
                await self.other.aclose()
