"""What a client's calls are made of, whatever runtime waits for them: requests, one after the other, and the time they have.

Rules of this file:

1. A call is a generator that yields the requests it needs and is sent their results, or thrown the error that one ended with.
   Most need one request, a listing one for each page, and what is still fresh needs none. What else it has to wait for it
   yields as a `Turn`.
2. A `Waiter` runs such a call: each answer takes it on to its next request at once, where the answer was read, so that the
   task which waits is woken once, at the end.
3. A call has two limits. Silence of `timeout` seconds ends it, and any sign of progress starts those anew; `max_timeout`
   seconds in all end it, whatever comes. While our own side is asked something the server's silence means nothing.
4. Whatever a callback of the caller's raises ends the caller's own call and nothing else.

It refuses to know how anyone waits, what is asked and what time it is: a clock is handed in.
"""

from __future__ import annotations

import abc
from collections.abc import Callable, Generator, Mapping
from math import inf
from typing import TYPE_CHECKING, Any, Final, Generic, TypeAlias, TypedDict, TypeVar

from msgspec import Struct

from ._errors import CallTimeout, ConnectionLost, RemoteProtocolError
from ._events import ConnectionClosed, ErrorReceived, InputRequested, ProgressReceived, ResultReceived

if TYPE_CHECKING:
    from ._events import Event
    from .types import RequestId

__all__ = ["CallOptions", "Listing", "Params", "Pending", "Steps", "Turn", "Waiter", "deliver", "loss"]

T = TypeVar("T")

Params: TypeAlias = Struct | Mapping[str, Any] | None
Steps: TypeAlias = Generator["tuple[str, Params] | Turn", Any, T]
Progress: TypeAlias = Callable[[float, float | None, str | None], object]

_TIMEOUT: Final = 60.0  # enough for most tools, and as long as a person believes that something still happens
_MAX_TIMEOUT: Final = (
    300.0  # a tool that tells of progress for longer is a task; and nothing says that it comes to an end
)
_MOST_PAGES: Final = 10_000  # a listing longer than this is an endless one


class CallOptions(TypedDict, total=False):
    """What any call can be told.

    Keys:
        timeout: seconds without an answer or a sign of progress before `CallTimeout`; 60 unless given, None for no limit.
        max_timeout: seconds before `CallTimeout` in all, whatever progress there is, for all pages of a list together; None
            for no limit. Unless given 300, or `timeout` if that is longer, or None if `timeout` is.
        progress: called with progress, total and message for each progress message of this call.
        meta: further members of the request's `_meta`. Such a request is always sent: no cache knows what they mean.
        headers: over HTTP, headers of the request beside those of the client and in place of those of the same name. Such a
            request is always sent, too.
    """

    timeout: float | None
    max_timeout: float | None
    progress: Progress | None
    meta: Mapping[str, Any] | None
    headers: Mapping[str, str] | None


class Pending(abc.ABC):
    """A request of ours that someone waits for."""

    @abc.abstractmethod
    def end(self, result: Any, error: BaseException | None) -> None:
        """The answer is here: the result, or the exception to raise."""

    @abc.abstractmethod
    def progressed(self, event: ProgressReceived) -> None:
        """The server says how far it has come."""

    def asked(self, event: InputRequested) -> None:
        """The server answers with questions. Unless there is something better to do, that is the end."""
        self.end(None, RemoteProtocolError("the server asks for input, and nobody here gives it"))


class Turn(abc.ABC):
    """What a call waits for that is no answer. `Waiter.end` tells what came of it, once.

    `ours`: our own side has something to do before the server can go on, as to ask the user. `name` is what a call that waits
    for it waits for, where that is not its last request.
    """

    ours = False
    name = ""

    @abc.abstractmethod
    def begin(self, waiter: Waiter[Any]) -> None:
        """`waiter` waits from now on. It is not told before this returns."""

    @abc.abstractmethod
    def stop(self) -> None:
        """Nobody waits any more, perhaps because it was told."""


class Waiter(Pending, Generic[T]):
    """One call that somebody waits for. The runtime waits between `begin` and `wake`, and until `deadline`, then takes `result()`.

    Args:
        send: sends a request on behalf of this call, and gives its id.
        clock: the time now, monotonic, in seconds.
        steps: the call.
        options: what the caller wants.

    `id` is that of the last request, None as long as there was none. `done`: the call is over. `deadline` is when it is given
    up if nothing happens before, on the clock; None for never. `held` is for how many things of our own side the server may
    be waiting: as long as there are any, its silence means nothing.

    Raises:
        ValueError: a limit is negative or no number.
    """

    # What is the same at first for nearly every call is not set for each.
    id: RequestId | None = None
    done = False
    deadline: float | None = None
    _timeout: float | None = _TIMEOUT
    _max_timeout: float | None = _MAX_TIMEOUT
    _progress: Progress | None = None
    _latest: float | None = None  # when `max_timeout` is over, infinite for never
    _in_all = False  # whether that is what `deadline` is about
    held = 0
    _turn: Turn | None = None
    _moved = False  # whether there was progress
    _method = ""
    _result: Any = None
    _error: BaseException | None = None

    def __init__(
        self,
        send: Callable[[str, Params, Waiter[Any], CallOptions], RequestId],
        clock: Callable[[], float],
        steps: Steps[T],
        options: CallOptions,
    ) -> None:
        self._send, self._clock, self._steps, self._options = send, clock, steps, options
        if options:
            self._progress = options.get("progress")
            self._timeout = _seconds("timeout", options.get("timeout", _TIMEOUT))
            longest = None if self._timeout is None else max(self._timeout, _MAX_TIMEOUT)
            self._max_timeout = _seconds("max_timeout", options.get("max_timeout", longest))

    @abc.abstractmethod
    def wake(self) -> None:
        """The call is over. Told once, possibly before anyone waits."""

    @abc.abstractmethod
    def rearm(self) -> None:
        """`deadline` is another one than when the call began."""

    def begin(self) -> None:
        """Send the first request; or be done, if none is needed or none may be sent."""
        self._go_on(None, None)

    def end(self, result: Any, error: BaseException | None) -> None:
        if not self.done:
            if self._turn is not None:
                self.leave_turn()
            self._go_on(result, error)
            if not self.done:
                self.rearm()

    def asked(self, event: InputRequested) -> None:
        """The questions are the call's own: it is sent the event in place of a result."""
        self.end(event, None)

    def progressed(self, event: ProgressReceived) -> None:
        if self.done:
            return
        self._moved = True
        self._set_deadline()
        self.rearm()
        if self._progress is not None:
            try:
                self._progress(event.progress, event.total, event.message)
            except BaseException as exc:  # noqa: BLE001 - rule 4
                self._over(None, exc)

    def hold(self, more: int) -> None:
        """`held` is `more` from now on; when it comes down to 0 the time begins anew. `max_timeout` holds all the while."""
        self.held += more
        if not self.done:
            self._set_deadline()
            self.rearm()

    def leave_turn(self) -> None:
        """Wait no longer for what is no answer, if it is that the call waits for."""
        turn = self._turn
        if turn is not None:
            self._turn = None
            self.held -= turn.ours
            turn.stop()

    def result(self) -> T:
        """What came of the call, once woken, or once it is given up.

        Raises:
            CallTimeout: it is not over.
            BaseException: what it ended with.
        """
        if not self.done:
            raise CallTimeout(self._too_late())
        if self._error is not None:
            raise self._error
        found: T = self._result
        return found

    def _go_on(self, result: Any, error: BaseException | None) -> None:
        """Take the call to its next request or turn, or its end."""
        try:
            step = self._steps.send(result) if error is None else self._steps.throw(error)
        except StopIteration as end:
            self._over(end.value, None)
            return
        except BaseException as exc:  # noqa: BLE001 - it is raised where the call was made
            self._over(None, exc)
            return
        self._moved = False
        if not isinstance(step, tuple):
            self._turn = step
            self.held += step.ours
            self._method = step.name or self._method
            self._set_deadline()
            step.begin(self)
            return
        self._method, params = step
        try:
            self.id = self._send(self._method, params, self, self._options)
        except Exception as exc:  # noqa: BLE001 - the same
            self._over(None, exc)
        else:
            self._set_deadline()

    def _over(self, result: Any, error: BaseException | None) -> None:
        self.done = True
        self._result, self._error = result, error
        self.wake()

    def _set_deadline(self) -> None:
        """From now on, `timeout` seconds of silence are too much."""
        now = self._clock()
        latest = self._latest
        if latest is None:
            self._latest = latest = inf if self._max_timeout is None else now + self._max_timeout
        quiet = inf if self._timeout is None or self.held else now + self._timeout
        self._in_all = in_all = latest < quiet
        deadline = latest if in_all else quiet
        self.deadline = None if deadline == inf else deadline

    def _too_late(self) -> str:
        if self._in_all:
            return f"{self._method} was not over after {self._max_timeout:g} s in all (max_timeout)"
        since = " after its last sign of progress" if self._moved else ""
        return f"no answer to {self._method} within {self._timeout:g} s{since} (timeout)"


def _seconds(option: str, seconds: float | None) -> float | None:
    if seconds is not None and not seconds >= 0:
        raise ValueError(f"{option} is a number of seconds from 0 on, or None, not {seconds!r}")
    return seconds


def deliver(event: Event) -> None:
    """Hand an event to the `Pending` that it concerns, if it concerns any."""
    if isinstance(event, ResultReceived):
        event.token.end(event.result, None)
    elif isinstance(event, ErrorReceived):
        event.token.end(None, event.error)
    elif isinstance(event, ProgressReceived):
        event.token.progressed(event)
    elif isinstance(event, InputRequested):
        event.token.asked(event)
    elif isinstance(event, ConnectionClosed):
        for pending in event.lost:
            pending.end(None, loss(event))


def loss(event: ConnectionClosed) -> ConnectionLost:
    """What to raise where somebody still waits; to each his own."""
    return ConnectionLost("the client was closed" if event.error is None else str(event.error))


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
