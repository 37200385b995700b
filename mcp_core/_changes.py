"""Changes of what a server offers, as one listens to them: a block, and a loop in it.

`async with client.listen(tools=True) as changes: async for change in changes: ...`. What to ask for, and which message is for
whom, is in `_listening.py`; here it is brought together with a connection and with who waits.

Rules of this file:

1. The waiting is a call like any other (`_calls.Waiter`): of a block that begins, with the time that a call has; of a loop,
   without a limit.
2. A change is taken out by the task that waits for it, and only when that runs again. So one that is cancelled loses none.
3. What a block has asked for it takes back at its end, however that comes about.
4. A listening that was lost while the conversation lives is begun anew, soon at first and then more seldom, and a few times in a row
   at most. All of a session that was begun anew is listened to anew at once.

It refuses to know how anyone waits, and what is done about a change.
"""

from __future__ import annotations

import types
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from ._calls import Turn
from ._errors import ConnectionLost, Fault, LocalProtocolError, RemoteProtocolError
from ._listening import Listenings
from ._state import State

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Coroutine, Generator

    from ._calls import CallOptions, Steps, Waiter
    from ._connection import Connection
    from ._events import Event
    from ._listening import Listening
    from ._standing import Standing
    from ._subscriptions import Change

__all__ = ["Changes", "Ears", "Listen"]

_NO_LIMIT: Final[CallOptions] = {"timeout": None}
# How often in a row a lost listening is begun anew, and seconds to the first time and at most to the next, doubling.
_ATTEMPTS: Final = 5
_FIRST, _LONGEST = 1.0, 30.0


class Ears:
    """All listenings of a client over `conn`, whose conversation is `standing`.

    `call` makes a call (`Caller._call`), `awaited` makes a coroutine of something to await, `pump` is what has to follow a call into
    the connection, and `later` does something after some seconds.
    """

    __slots__ = ("_conn", "_later", "_listenings", "_pump", "_standing", "awaited", "call")

    def __init__(
        self,
        conn: Connection,
        standing: Standing,
        call: Callable[[Steps[None], CallOptions], Coroutine[Any, Any, None]],
        awaited: Callable[[Awaitable[Any]], Coroutine[Any, Any, Any]],
        pump: Callable[[], object],
        later: Callable[[float, Callable[[], object]], object],
    ) -> None:
        self._conn = conn
        self._standing = standing
        self._pump = pump
        self._later = later
        self._listenings = Listenings()
        self.call = call
        self.awaited = awaited

    def __repr__(self) -> str:
        return f"<Ears on {self._conn!r}: {self._listenings!r}>"

    def open(self, wanted: tuple[Change, ...]) -> Listening:
        """Begin to listen. To be closed in any case.

        Raises:
            ConnectionLost: the conversation is over.
        """
        self._standing.require_alive()
        assert self._conn.peer is not None
        listening = self._listenings.open(self._conn.peer, wanted)
        listening.lost = partial(self._lost, listening)
        self._ask()
        return listening

    def close(self, listening: Listening) -> None:
        id = self._listenings.close(listening)
        if id is not None:
            self._conn.send_cancel(id, "nobody listens any more")
        self._ask()
        self._pump()

    def take(self, event: Event) -> None:
        """Act on one event, after the tokens have their answers."""
        self._listenings.take(event)
        self._ask()

    def wants(self, change: Change) -> bool:
        """Whether somebody listens to this very change, and not to something that it may be a part of."""
        return self._listenings.wants(change)

    def _lost(self, listening: Listening, error: BaseException) -> bool:
        """Whether one that is lost will be begun anew."""
        gone = isinstance(error, ConnectionLost)
        busy = isinstance(error, RemoteProtocolError) and error.fault is Fault.BUSY
        if self._conn.state is State.CLOSED or not (gone or busy) or listening.losses >= _ATTEMPTS:
            return False
        delay = min(_FIRST * 2.0**listening.losses, _LONGEST)
        self._later(delay, partial(self._begin_anew, listening))
        return True

    def _begin_anew(self, listening: Listening) -> None:
        if self._conn.state is not State.CLOSED:
            assert self._conn.peer is not None
            self._listenings.take_up(listening, self._conn.peer)
            self._ask()

    def _ask(self) -> None:
        while (request := self._listenings.next_request()) is not None:
            method, params, token = request
            try:
                token.id = self._conn.send_request(method, params, token=token)
            except LocalProtocolError as exc:
                token.end(None, exc)


class Listen:
    """`async with` it, once: it listens as long as the block lasts, which is given the `Changes`."""

    __slots__ = ("_ears", "_listening", "_options", "_wanted")

    def __init__(self, ears: Ears, wanted: tuple[Change, ...], options: CallOptions) -> None:
        self._ears = ears
        self._wanted = wanted
        self._options = options
        self._listening: Listening | None = None

    def __repr__(self) -> str:
        return f"<Listen {self._listening or 'not entered'}>"

    def __aenter__(self) -> Coroutine[Any, Any, Changes]:
        return self._ears.awaited(self._enter())

    def __aexit__(self, *_: object) -> Coroutine[Any, Any, None]:
        return self._ears.awaited(self._leave())

    @types.coroutine
    def _enter(self) -> Generator[Any, Any, Changes]:
        if self._listening is not None:
            raise RuntimeError("a block of its own for each listen()")
        self._listening = self._ears.open(self._wanted)
        changes = Changes(self._ears, self._listening)
        try:
            yield from self._ears.call(changes._opening(), self._options).__await__()
            self._listening.require_open()
        except BaseException:
            self._ears.close(self._listening)
            raise
        return changes

    @types.coroutine
    def _leave(self) -> Generator[Any, Any, None]:
        assert self._listening is not None
        self._ears.close(self._listening)
        yield from ()


class Changes:
    """What changes, for `async for`: each thing once, however often it changed since it was last given.

    `honoured` is what of the wishes the server will tell. The loop ends when the server ends the listening, or the block is
    left.

    Raises:
        ConnectionLost: in the loop, after the last change: the connection ended, and changes may have been missed.
        PeerError: likewise, and the server said why.
    """

    __slots__ = ("_ears", "_listening", "_waiters")

    def __init__(self, ears: Ears, listening: Listening) -> None:
        self._ears = ears
        self._listening = listening
        self._waiters: list[Waiter[Any]] = []
        listening.wake = self._wake

    def __repr__(self) -> str:
        return f"<Changes of {self._listening!r}>"

    @property
    def honoured(self) -> tuple[Change, ...]:
        return self._listening.honoured

    def __aiter__(self) -> Changes:
        return self

    def __anext__(self) -> Coroutine[Any, Any, Change]:
        return self._ears.awaited(self._next())

    @types.coroutine
    def _next(self) -> Generator[Any, Any, Change]:
        while True:
            yield from self._ears.call(self._hearing(), _NO_LIMIT).__await__()
            change = self._listening.next_change()
            if change is not None:
                return change
            if self._listening.over:
                raise StopAsyncIteration

    def _opening(self) -> Steps[None]:
        while not self._listening.settled:
            yield _Word(self._waiters, "listen")

    def _hearing(self) -> Steps[None]:
        if not self._listening.has_news:
            yield _Word(self._waiters)

    def _wake(self) -> None:
        for waiter in list(self._waiters):
            waiter.end(None, None)


class _Word(Turn):
    """Something is told: what, the call looks for itself."""

    def __init__(self, waiters: list[Waiter[Any]], name: str = "") -> None:
        self._waiters = waiters
        self.name = name
        self._waiter: Waiter[Any]

    def begin(self, waiter: Waiter[Any]) -> None:
        self._waiter = waiter
        self._waiters.append(waiter)

    def stop(self) -> None:
        self._waiters.remove(self._waiter)
