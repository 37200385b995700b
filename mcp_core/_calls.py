"""What a client does with answers, whatever runtime waits for them.

Rules of this file:

1. A runtime gives each request a `Pending` as its token and waits on it in its own way; `deliver` ends it, once, from the
   events of the connection.
2. A listing comes in pages, and a server may never come to the last one. `Listing` asks for the next page and decides when
   it has had enough; the runtime only carries.

It refuses to know how anyone waits.
"""

from __future__ import annotations

import abc
from typing import TYPE_CHECKING, Any, Final, Generic, TypeVar

from ._errors import ConnectionLost, RemoteProtocolError
from ._events import ConnectionClosed, ErrorReceived, InputRequested, ProgressReceived, ResultReceived

if TYPE_CHECKING:
    from ._events import Event

__all__ = ["Listing", "Pending", "deliver"]

_MOST_PAGES: Final = 10_000  # a listing longer than this is an endless one

T = TypeVar("T")


class Pending(abc.ABC):
    """A request of ours that someone waits for."""

    @abc.abstractmethod
    def end(self, result: Any, error: BaseException | None) -> None:
        """The answer is here: wake who waits, with the result, or with the exception to raise."""

    @abc.abstractmethod
    def progressed(self, event: ProgressReceived) -> None:
        """The server says how far it has come."""


def deliver(event: Event) -> None:
    """Hand an event to the `Pending` that it concerns, if it concerns any."""
    if isinstance(event, ResultReceived):
        event.token.end(event.result, None)
    elif isinstance(event, ErrorReceived):
        event.token.end(None, event.error)
    elif isinstance(event, ProgressReceived):
        event.token.progressed(event)
    elif isinstance(event, InputRequested):
        problem = "the server asks for input that this client did not offer to give"
        event.token.end(None, RemoteProtocolError(problem))
    elif isinstance(event, ConnectionClosed):
        why = "the client was closed" if event.error is None else str(event.error)
        for pending in event.lost:
            pending.end(None, ConnectionLost(why))


class Listing(Generic[T]):
    """The pages of `method`, put together: while `wanted`, ask with `params` and `take` the answer; then read `items`.

    `member` is the attribute of a page that holds its items. Source: server/utilities/pagination.
    """

    def __init__(self, method: str, member: str) -> None:
        self.method = method
        self.items: list[T] = []
        self.wanted = True
        self._member = member
        self._cursor: str | None = None
        self._seen: set[str] = set()

    def __repr__(self) -> str:
        return (
            f"<Listing of {self.method}, {len(self.items)} items{', not at the end' if self.wanted else ''}>"
        )

    @property
    def params(self) -> dict[str, Any] | None:
        """The params of the next request. A cursor may be the empty string; only its absence is the end."""
        return None if self._cursor is None else {"cursor": self._cursor}

    def take(self, page: Any) -> None:
        """Add a page.

        Raises:
            RemoteProtocolError: a cursor comes a second time, or there are more than 10,000 of them.
        """
        self.items += getattr(page, self._member)
        self._cursor = page.next_cursor
        if self._cursor is None:
            self.wanted = False
        elif self._cursor in self._seen or len(self._seen) >= _MOST_PAGES:
            raise RemoteProtocolError(f"the pages of {self.method} do not come to an end")
        else:
            self._seen.add(self._cursor)
