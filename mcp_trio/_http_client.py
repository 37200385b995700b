"""A client's conversation over HTTP: the requests that the core wants made, each in a task, on connections that are used again.

Rules of this file:

1. After every call into the machine comes `pump`: it starts and drops calls, takes the events out and sets the timer. It never
   waits.
2. A call is a task and has a connection for itself meanwhile. One that is dropped, or whose connection breaks, harms no other.
3. Whatever becomes of a call, the machine is told once: by `response_ended`, with the cause if it did not end well.
4. What is begun although we are cancelled are last words, as that a session is over. They have a second.

Which requests are made, what a response means, what is tried again, and which connection is worth being used again is the core's.
"""

from __future__ import annotations

import contextvars
import math
from typing import TYPE_CHECKING, Final

import trio

from mcp_core import ConnectFailed, ConnectionLost, McpTrioError, Pump
from mcp_core.http import Body, End, Head, Place, Pool, idle_time

if TYPE_CHECKING:
    from collections.abc import Callable

    from mcp_core import Event
    from mcp_core.http import Action, HttpCall, HttpClient

    from ._authorization import Authorization
    from ._dial import Way
    from ._h11_client import H11Client

__all__ = ["HttpCarrier"]

_LAST_WORDS: Final = 1.0
_DOUBT: Final = "is it a server of HTTP, and with TLS or without as the URL says?"


class HttpCarrier:
    """Carries the conversation of `http` on connections that are made by `way`. `take` is called for each event, in order, without
    waiting; `sent` with the body of each request. `authorization` gets the right to make requests, if the machine wants that shown.

    *Resource handling*: `aclose` closes every connection. *Error handling*: no connection is the conversation; what happens to one
    is told to the machine.
    """

    def __init__(
        self,
        http: HttpClient,
        way: Way,
        take: Callable[[Event], None],
        sent: Callable[[bytes], object] | None = None,
        authorization: Authorization | None = None,
    ) -> None:
        self._http = http
        self._authorization = authorization
        self._way = way
        self._sent = sent
        self._pool: Pool[H11Client] = Pool()
        self._calls: dict[int, trio.CancelScope] = {}
        self._ended = trio.lowlevel.ParkingLot()
        # Calls that wait for a place: short ones, and those that last.
        self._waiting = trio.lowlevel.ParkingLot(), trio.lowlevel.ParkingLot()
        self._rearmed = trio.lowlevel.ParkingLot()
        # When there is something to do, and until when `_tick` sleeps.
        self._deadline = self._armed = math.inf
        self._nursery: trio.Nursery
        self._took = False
        self.known = False  # whether anybody has ever answered
        # What an event leads to may start in any task, also in a caller's: it gets this context, not that task's.
        context = contextvars.copy_context()

        def take_here(event: Event) -> None:
            self._took = True
            context.run(take, event)

        self._events = Pump(http, take_here)

    def __repr__(self) -> str:
        return f"<HttpCarrier of {self._http!r} by {self._way!r}: {len(self._calls)} under way>"

    def start(self, nursery: trio.Nursery) -> None:
        self._nursery = nursery
        if self._authorization is not None:
            self._authorization.start(nursery)
        nursery.start_soon(self._tick)

    def pump(self) -> None:
        http = self._http
        self._took = True
        while self._took:
            for call in http.calls_to_make(trio.current_time()):
                scope = self._calls[call.key] = trio.CancelScope()
                self._nursery.start_soon(self._make, call, scope)
            for key in http.calls_to_drop():
                if key in self._calls:
                    self._calls[key].cancel()
            self._took = False
            self._events.run()
        self._deadline = min(_never(self._pool.next_deadline()), _never(http.next_deadline()))
        # It nearly always moves away, call by call; then waking for nothing once costs less than each time.
        if self._deadline < self._armed:
            self._rearmed.unpark_all()

    async def flush(self) -> None:
        while self._calls:
            await self._ended.park()

    async def aclose(self) -> None:
        for scope in self._calls.values():
            scope.cancel()
        try:
            await self.flush()
        finally:
            await _close(self._pool.clear())

    async def _tick(self) -> None:
        """Serve the timers until cancelled."""
        while True:
            self._armed = self._deadline
            with trio.move_on_at(self._armed):
                await self._rearmed.park()
            self._http.handle_timeout(trio.current_time())  # early calls do nothing
            await _close(self._pool.expired(trio.current_time()))
            self.pump()

    async def _make(self, call: HttpCall, scope: trio.CancelScope) -> None:
        """Make one call, and tell what becomes of it."""
        if trio.current_effective_deadline() == -math.inf:
            scope.shield = True
            scope.deadline = trio.current_time() + _LAST_WORDS
        problem: str | McpTrioError | None = "it was cancelled"
        try:
            with scope:
                if call.body and self._sent is not None:
                    self._sent(call.body)
                problem = await self._answered(call)
        finally:
            del self._calls[call.key]
            if isinstance(problem, McpTrioError):
                self._http.denied(call.key, problem, trio.current_time())
            else:
                self._http.response_ended(call.key, trio.current_time(), error=problem)
            self.pump()
            self._ended.unpark_all()

    async def _answered(self, call: HttpCall) -> str | McpTrioError | None:
        """Make a call as often as it takes to have the right to it; gives what `_exchanged` does, or why there is none."""
        authorization = self._authorization
        if authorization is None or call.attempt is None:
            return await self._exchanged(call)
        try:
            # Last words have no time for more than to be said.
            last = self._calls[call.key].shield
            while True:
                if not last:
                    await authorization.ready()
                try:
                    return await self._exchanged(call)
                except _Refused:
                    pass
                self._http.hold(call.key, None)
                self.pump()
                try:
                    await authorization.challenged(call.attempt)
                finally:
                    self._http.hold(call.key, trio.current_time())
                    self.pump()
        except McpTrioError as exc:
            return exc

    async def _exchanged(self, call: HttpCall) -> str | None:
        """Make a call; gives why its response did not come to its end, None if it did.

        Raises:
            _Refused: there is no right to it, and something can be done about that.
        """
        tries = 0
        while True:
            tries += 1
            connection = await self._place(call)
            used = connection is not None
            good, attempt = False, _Attempt(self, call)
            try:
                if connection is None:
                    connection = await self._way.dial()
                    if self._authorization is not None:
                        self._authorization.met_at(connection.address() if self._way.direct else None)
                head = self._way.address(self._http.sign(call))
                good = await connection.run(head, call.body, attempt.take)
                if attempt.refused:
                    raise _Refused
                return None
            except (ConnectFailed, ValueError) as exc:
                return str(exc)
            except ConnectionLost as exc:
                if not Pool.may_retry(call, reused=used, answered=attempt.answered, tries=tries):
                    assert connection is not None
                    return str(exc) if self.known or connection.heard else f"{exc}; {_DOUBT}"
            finally:
                if good and connection is not None:
                    self._pool.give(call, connection, trio.current_time(), lasts=attempt.lasts)
                else:
                    self._pool.drop(call)
                self._waiting[call.long].unpark()
                if not good and connection is not None:
                    await connection.aclose()

    async def _place(self, call: HttpCall) -> H11Client | None:
        """A connection for a call, once it may have one; None for a new one."""
        while True:
            found = self._pool.take(call, trio.current_time())
            if found is Place.WAIT:
                await self._waiting[call.long].park()
            elif isinstance(found, Place):
                return None
            elif found.closed_by_server():
                self._pool.drop(call)
                await found.aclose()
            else:
                return found


class _Refused(Exception):
    """There is no right to make a call, and something can be done about that."""


class _Attempt:
    """What comes of a call on one connection, on its way to the machine.

    `answered`: something has come. `lasts`: for how long the server keeps the connection, if it says so. `refused`: it says that we
    have no right to it, which the machine is not told.
    """

    def __init__(self, carrier: HttpCarrier, call: HttpCall) -> None:
        self.answered = self.refused = False
        self.lasts: float | None = None
        self._carrier = carrier
        self._call = call
        self._key = call.key

    def take(self, actions: list[Action]) -> None:
        self.answered = self._carrier.known = True
        http, key, now = self._carrier._http, self._key, trio.current_time()
        for action in actions:
            if type(action) is Body:
                http.response_data(key, action.data, now)
            elif type(action) is Head:
                self.lasts = idle_time(dict(action.headers).get(b"keep-alive"))
                if http.refused(self._call, action):
                    self.refused = True
                    # What it says beside is of no interest; mostly it is here already, and the connection is good for more.
                    if type(actions[-1]) is not End:
                        raise _Refused
                    return
                http.response_started(key, action, now)
        # The end is told when the connection is free for what that leads to.
        if type(actions[-1]) is not End:
            self._carrier.pump()


def _never(deadline: float | None) -> float:
    return math.inf if deadline is None else deadline


async def _close(connections: list[H11Client]) -> None:
    """Close them all, also if cancelled."""
    if connections:
        async with trio.open_nursery() as nursery:
            for connection in connections:
                nursery.start_soon(connection.aclose)
