"""What a runtime adds to a `Service`: a log, a way out for what was queued, and the waiting.

Rule of this file: what is here is all there is. A runtime that fills it in serves everything that can be declared, and one that
fills in `report` alone serves plain functions that say nothing while they run.
"""

from __future__ import annotations

import abc
import itertools
from typing import TYPE_CHECKING, Any, Final, NoReturn, TypeVar

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Coroutine

    from mcp_core._events import RequestReceived
    from mcp_core.types import RequestId

    from ._asking import Round

__all__ = ["Runtime"]

T = TypeVar("T")

_REFERENCE: Final = 4  # bytes


class Runtime(abc.ABC):
    """One conversation, as seen by whoever carries it."""

    @abc.abstractmethod
    def report(self, request: RequestReceived, reference: str, exc: BaseException) -> None:
        """Write a fault of a handler to the log, under the reference that the peer was told."""

    def reference(self) -> str:
        """A name for a fault, which does not repeat if there is entropy; else they are numbered."""
        if type(self).entropy is not Runtime.entropy:
            return self.entropy(_REFERENCE).hex()
        if not hasattr(self, "_faults"):
            self._faults = itertools.count(1)
        return str(next(self._faults))

    def pump(self) -> None:  # noqa: B027 - one that looks after every event anyway has nothing to add
        """Something may be queued, or there may be events: see to it, without waiting."""

    def soon(self, function: Callable[[], object]) -> None:
        """Have `function` called where the conversation is carried, without waiting. May be asked in any thread; once is enough
        for what is asked several times before it happens. Nothing happens when all is over."""
        function()

    def full(self, id: RequestId) -> bool:
        """Whether so much is queued for the peer's request `id` that nothing should be added that the peer did not ask for."""
        return False

    def drain(self, id: RequestId) -> Coroutine[Any, Any, None]:
        """Wait while it is `full`. Others get their turn, at the latest when they have waited for a millisecond."""
        _cannot("wait")

    def release(self, id: RequestId, retry: float | None) -> bool:
        """End the response in which request `id` is answered, if that can be; its client comes back for the rest."""
        return False

    def ask(self, asked: Round[T]) -> Coroutine[Any, Any, T]:
        """Wait until what is asked has come to its end, as `Round` says, and give its result. It is entered first, before
        anything is waited for."""
        _cannot("wait for answers")

    def in_thread(self, function: Callable[[], T]) -> Awaitable[T]:
        """Run `function`, which blocks, in a worker thread."""
        _cannot("start threads")

    def wall_time(self) -> float:
        """Seconds since 1970: for what is handed to a peer to keep."""
        _cannot("tell the time")

    def entropy(self, size: int, /) -> bytes:
        """As many random bytes, which nobody can guess."""
        _cannot("draw random bytes")

    @property
    def in_worker_thread(self) -> bool:
        """Whether this is asked in one of the threads of `in_thread`."""
        return False

    def from_thread(self, function: Callable[[], Coroutine[Any, Any, T]]) -> T:
        """In a worker thread: have `function` awaited where the conversation is carried, and wait for its value."""
        _cannot("start threads")


def _cannot(what: str) -> NoReturn:
    raise TypeError(f"this runtime does not {what}")
