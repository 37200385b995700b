"""How the requests of an `HttpClient` are made, whatever runtime waits for them: on which connection, how often, and what the machine
is told of it.

Rules of this file:

1. A call that is dropped, or whose connection breaks, harms no other.
2. Whatever becomes of a call, the machine is told once: of its end, with the cause if that was no good one.
3. What takes its time is the driver's: connections, and how one waits. Here it is awaited, in the task that the driver has for a call.
4. Nobody is asked for the right to say last words.

It refuses to know what is said on a connection, and how one comes about. Which of them is worth being used again is the `Pool`'s.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Any, Final, Generic, Protocol, TypeVar

from mcp_core._errors import ConnectFailed, ConnectionLost, McpTrioError
from mcp_core._pump import Pump

from ._messages import Body, End, Head
from ._pool import Place, Pool, idle_time

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Generator

    from mcp_core._events import Event

    from ._bell import Bell
    from ._call import AccessAttempt, HttpCall
    from ._client import HttpClient
    from ._messages import Action, RequestHead

__all__ = ["Carriage", "Errand", "Line", "Rights"]

_DOUBT: Final = "is it a server of HTTP, and with TLS or without as the URL says?"


class Line(Protocol):
    """A connection to the server. `heard`: whether anything has come of the last request. `protocol`: what is spoken, as people write
    it. `room`: how many requests it carries at the same time, as things are; 0 if it takes no more."""

    @property
    def protocol(self) -> str: ...
    @property
    def room(self) -> int: ...
    @property
    def heard(self) -> bool: ...

    def run(self, head: RequestHead, body: bytes, take: Callable[[list[Action]], None]) -> Awaitable[bool]:
        """Send a request and give `take` what comes of the response, in pieces, until `End`. Awaited, it gives whether the connection
        may be used again.

        Raises:
            NotProcessed: the server says that it has not begun with it.
            ConnectionLost: the response did not come to its end. What came of it was taken.
            ValueError: the request cannot be said in HTTP; nothing was sent.
        """

    def closed_by_server(self) -> bool:
        """Whether a connection on which nothing is under way has come to its end, as far as one can tell without waiting."""

    def aclose(self) -> Awaitable[None]:
        """Close it, whatever happens meanwhile."""


L = TypeVar("L", bound=Line)
T = TypeVar("T")


class Rights(Protocol):
    """Who gets us the right to make calls. Both may raise any `McpTrioError`, of which the call ends."""

    def ready(self) -> Awaitable[None]:
        """Before each request."""

    def challenged(self, attempt: AccessAttempt) -> Awaitable[None]:
        """Do what the last response to `attempt` asks for; then the request is made again."""


class Driver(Protocol[L]):
    """What makes connections, and has the time that calls take. Nothing waits but `dial`."""

    def dial(self) -> Awaitable[L]:
        """A new connection to the server.

        Raises:
            ConnectFailed: none came about.
        """

    def discard(self, lines: list[L]) -> object:
        """Close connections that nobody uses."""

    def begin(self, errand: Errand) -> object:
        """Run it in a task of its own."""

    def pump(self) -> object:
        """Call `Carriage.run`, and see to its deadline."""

    def clock(self) -> float:
        """The time now, as the machine is told it."""

    def bell(self) -> Bell:
        """Something to wait for."""


class Carriage(Generic[L]):
    """Makes the calls of `http` on connections of `driver`'s.

    To be driven like a connection: after each call into the machine, and at `next_deadline` after `handle_timeout`, comes `run`, which
    never waits. `protocol`: what is spoken on the last connection that came about. `known`: whether anybody has ever answered.

    Args:
        http: the machine.
        driver: what is waited with.
        take: called for each event, in order; must not wait.
        sent: called with the body of each request.
        address: makes of a request what it has to be on a connection of the driver's.
        rights: gets the right to make calls, if the machine wants that shown.
    """

    def __init__(
        self,
        http: HttpClient,
        driver: Driver[L],
        take: Callable[[Event], object],
        *,
        sent: Callable[[bytes], object] | None = None,
        address: Callable[[RequestHead], RequestHead] = lambda head: head,
        rights: Rights | None = None,
    ) -> None:
        self.http = http
        self.pool: Pool[L] = Pool()
        self.known = False
        self.protocol = ""
        self.driver, self._address = driver, address
        self._sent, self._rights = sent, rights
        self._errands: dict[int, Errand] = {}
        # Who waits for a place: short calls, and those that last.
        self._waiting: tuple[deque[Bell], deque[Bell]] = deque(), deque()
        self._took = False

        def take_one(event: Event) -> None:
            self._took = True
            take(event)

        self._events = Pump(http, take_one)

    def __repr__(self) -> str:
        return f"<Carriage of {self.http!r}: {len(self._errands)} under way>"

    @property
    def idle(self) -> bool:
        """Whether no call is under way."""
        return not self._errands

    def run(self) -> None:
        """Start calls and give them up, and take out every event."""
        http = self.http
        self._took = True
        while self._took:
            for call in http.calls_to_make(self.driver.clock()):
                errand = self._errands[call.key] = Errand(call, self._answered, self._over)
                self.driver.begin(errand)
            for key in http.calls_to_drop():
                if key in self._errands:
                    self._errands[key].stop()
            self._took = False
            self._events.run()

    def next_deadline(self) -> float | None:
        """When to call `handle_timeout`, None for never."""
        of_pool, of_machine = self.pool.next_deadline(), self.http.next_deadline()
        if of_pool is None or of_machine is None:
            return of_machine if of_pool is None else of_pool
        return min(of_pool, of_machine)

    def handle_timeout(self, now: float) -> None:
        """The time is `now`."""
        self.http.handle_timeout(now)  # early calls do nothing
        expired = self.pool.expired(now)
        if expired:
            self.driver.discard(expired)

    def stop(self) -> None:
        """Stop all calls."""
        for errand in list(self._errands.values()):
            errand.stop()

    # -- One call --------------------------------------------------------------------------------------------------------------

    def _over(self, call: HttpCall, problem: str | McpTrioError | None) -> None:
        del self._errands[call.key]
        if isinstance(problem, McpTrioError):
            self.http.denied(call.key, problem, self.driver.clock())
        else:
            self.http.response_ended(call.key, self.driver.clock(), error=problem)

    def _answered(self, errand: Errand) -> Generator[Any, Any, str | McpTrioError | None]:
        """Make a call as often as it takes to have the right to it; gives what `_exchanged` does, or why there is none."""
        call, rights = errand.call, self._rights
        if call.body and self._sent is not None:
            self._sent(call.body)
        if rights is None or call.attempt is None:
            return (yield from self._exchanged(call))
        try:
            while True:
                if not errand.last:
                    yield from rights.ready().__await__()
                try:
                    return (yield from self._exchanged(call))
                except _Refused:
                    pass
                self.http.hold(call.key, None)
                self.driver.pump()
                try:
                    yield from rights.challenged(call.attempt).__await__()
                finally:
                    self.http.hold(call.key, self.driver.clock())
                    self.driver.pump()
        except McpTrioError as exc:
            return exc

    def _exchanged(self, call: HttpCall) -> Generator[Any, Any, str | None]:
        """Make a call; gives why its response did not come to its end, None if it did.

        Raises:
            _Refused: there is no right to it, and something can be done about that.
        """
        tries = 0
        while True:
            tries += 1
            line = yield from self._place(call)
            used = line is not None
            whole, attempt = False, _Attempt(self, call)
            try:
                if line is None:
                    line = yield from self.driver.dial().__await__()
                    was_shared = self.pool.shared
                    self.pool.opened(call, line)
                    self.protocol = line.protocol
                    if was_shared or self.pool.shared:
                        self._call_all()
                head = self._address(self.http.sign(call))
                whole = yield from line.run(head, call.body, attempt.take).__await__()
                if attempt.refused:
                    raise _Refused
                return None
            except (ConnectFailed, ValueError) as exc:
                return str(exc)
            except ConnectionLost as exc:
                if not Pool.may_retry(call, exc, reused=used, answered=attempt.answered, tries=tries):
                    assert line is not None
                    return str(exc) if self.known or line.heard else f"{exc}; {_DOUBT}"
            finally:
                if line is None:
                    self.pool.drop(call)
                    self._call_all()
                else:
                    yield from self._give(call, line, whole=whole, lasts=attempt.lasts)

    def _place(self, call: HttpCall) -> Generator[Any, Any, L | None]:
        """A connection for a call, once it may have one; None for a new one."""
        while True:
            found = self.pool.take(call, self.driver.clock())
            if found is Place.WAIT:
                yield from self._turn(call)
            elif isinstance(found, Place):
                return None
            elif found.closed_by_server():
                yield from self._give(call, found, whole=False)
            else:
                return found

    def _give(
        self, call: HttpCall, line: L, *, whole: bool, lasts: float | None = None
    ) -> Generator[Any, Any, None]:
        close = self.pool.give(line, self.driver.clock(), whole=whole, lasts=lasts)
        self._call_next(call)
        if close:
            yield from line.aclose().__await__()

    def _turn(self, call: HttpCall) -> Generator[Any, Any, None]:
        """Wait until a place may be free."""
        bell, waiting = self.driver.bell(), self._waiting[call.long]
        waiting.append(bell)
        try:
            yield from bell.wait().__await__()
        except BaseException:
            if bell in waiting:
                waiting.remove(bell)
            else:
                self._call_next(call)  # it was our turn, and we do not take it
            raise

    def _call_all(self) -> None:
        for waiting in self._waiting:
            while waiting:
                waiting.popleft().set()

    def _call_next(self, call: HttpCall) -> None:
        for waiting in self._waiting if self.pool.shared else (self._waiting[call.long],):
            if waiting:
                waiting.popleft().set()


class Errand:
    """One call, which needs a task of its own.

    Set `stop` to what cancels that task. In the task await the errand, once; say what came of it with `done` or `failed`; in any case
    `dropped` last, which counts only if nothing else was said; and pump then. `last`: nobody has time for more than that it is said.
    """

    __slots__ = ("_answered", "_over", "call", "last", "stop")

    def __init__(
        self,
        call: HttpCall,
        answered: Callable[[Errand], Generator[Any, Any, str | McpTrioError | None]],
        over: Callable[[HttpCall, str | McpTrioError | None], None],
    ) -> None:
        self.call = call
        self.last = False
        self.stop: Callable[[], object] = _nothing
        self._answered = answered
        self._over: Callable[[HttpCall, str | McpTrioError | None], None] | None = over

    def __repr__(self) -> str:
        return f"<Errand {self.call.key}, {'over' if self._over is None else 'under way'}>"

    def __await__(self) -> Generator[Any, Any, str | McpTrioError | None]:
        return (yield from self._answered(self))

    def done(self, problem: str | McpTrioError | None) -> None:
        """It came to its end, and this is what was wrong with that."""
        over, self._over = self._over, None
        if over is not None:
            over(self.call, problem)

    def failed(self, exc: BaseException) -> None:
        """A fault of ours."""
        self.done("our own fault")
        raise exc

    def dropped(self) -> None:
        """It was cancelled."""
        self.done("it was cancelled")


class _Refused(Exception):
    """There is no right to make a call, and something can be done about that."""


class _Attempt:
    """What comes of a call on one connection, on its way to the machine.

    `answered`: something has come. `lasts`: for how long the server keeps the connection, if it says so. `refused`: it says that we
    have no right to it, which the machine is not told.
    """

    __slots__ = ("_call", "_carriage", "answered", "lasts", "refused")

    def __init__(self, carriage: Carriage[Any], call: HttpCall) -> None:
        self.answered = self.refused = False
        self.lasts: float | None = None
        self._carriage = carriage
        self._call = call

    def take(self, actions: list[Action]) -> None:
        carriage, key = self._carriage, self._call.key
        self.answered = carriage.known = True
        http, now = carriage.http, carriage.driver.clock()
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
            carriage.driver.pump()


def _nothing() -> None:
    """What stops a call that nobody has started."""
