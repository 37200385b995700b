"""The protocol `SessionStore`: what the workers of one server share.

1. A store knows no rule of the protocol: it carries messages, in order, and says where a reader has
   missed some. What a worker says, and what it makes of what it hears, is decided elsewhere.
2. A store is an async context manager. Drivers enter it once for each server that they serve, and
   join once for each; a store in memory may be entered by several workers of one process.
3. A message that was published is kept for a while, and not forever. Who reads too late, or
   after the store was emptied, gets a gap and not silence.
4. A store that is replicated asynchronously may lose its last messages in a failover, and give
   their numbers to others. A worker notices that at its next heartbeat, if the numbers haven't
   caught up by then. Otherwise it misses what was published before it has read on.
"""

from __future__ import annotations

from collections.abc import Awaitable, Collection, Sequence
from contextlib import AbstractAsyncContextManager
from typing import Any, NamedTuple, Protocol

from msgspec import Struct

from ._messages import ChangesPublished, WorkerMessage

__all__ = ["Position", "SessionStore", "SessionStoreError", "WorkerBatch", "WorkerPlace"]


class Position(NamedTuple):
    """A place in the sequence of all messages of a store."""

    # 0 or more. It differs after the store has lost what it had. A later epoch has a higher number.
    epoch: int
    # Of the message, in its epoch: 1 for the first one, and without holes.
    number: int


class WorkerPlace(NamedTuple):
    """A worker among the others."""

    # 1 to 2**21 - 1, which no other living worker has.
    number: int
    # The last message that was published before it joined.
    position: Position


class WorkerBatch(Struct, frozen=True):
    """One read of a worker.

    Attributes:
        position: where to read next.
        messages: the sender's number and the message of each, in order. None is a gap: some were
            missed between the ones before and after it.
    """

    position: Position
    messages: Sequence[tuple[int, WorkerMessage] | None]


class SessionStore(Protocol):
    """The store that the workers of one server share.

    Every method raises `SessionStoreError` if the store cannot be reached or doesn't respond within
    some seconds, and `RuntimeError` if it isn't open. A method that raised, or whose caller was
    cancelled, may have had its effect.
    """

    @property
    def needs_keys(self) -> bool:
        """True if other processes can reach it: a server then needs `state_keys=`."""

    def opened(self, runtime: Any, /) -> AbstractAsyncContextManager[object]:
        """Return the context in which the store may be used. `runtime` is a `TaskRuntime`.

        It may be entered several times at once in one event loop. The store is open until all of
        them have left it. Until it is entered it has no connection, thread or number.

        Entering raises what only its user can mend, and not that the store can't be reached: a
        server is served without it. Then `join` is tried again. Entering and leaving take some
        seconds at most, also if the store doesn't respond.
        """

    def join(self, server: str, /) -> Awaitable[WorkerPlace]:
        """Claim a number for a new worker of the server with the name `server`.

        A store that other processes can reach warns once if it carries the messages of servers with
        other names than those that have joined here: they may share it by mistake.
        """

    def heartbeat(self, worker: int, /) -> Awaitable[Position | None]:
        """Keep the number `worker`, and return the last message's position. Call it every 3 s.

        None means that another worker has the number: join again. A worker counts as alive for
        10 s after its last heartbeat.
        """

    def alive(self, workers: Collection[int], /) -> Awaitable[set[int]]:
        """Return which of `workers` are alive."""

    def leave(self, worker: int, /) -> Awaitable[None]:
        """Give the number `worker` back: that worker isn't alive any more."""

    def publish(self, worker: int, message: ChangesPublished, /) -> Awaitable[Position]:
        """Send `message` from `worker` to all workers, itself too. Return its position.

        Raises:
            InvalidWorkerMessage: it can't be encoded. Then it is not published again.
        """

    def missed(self, server: str, since: Position, /) -> Awaitable[ChangesPublished | None]:
        """Return, as one message, what was published about `server` after `since`.

        None means that the store doesn't know it any more: everything may have changed.
        """

    def read(self, position: Position, /) -> Awaitable[WorkerBatch]:
        """Return what was published after `position`. Wait for it, for some seconds at most.

        Then the batch has no messages.
        """


class SessionStoreError(Exception):
    """The store of sessions cannot be reached, or doesn't respond. The text names the cause."""
