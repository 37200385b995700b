"""Who may enter an endpoint, as far as HTTP has to know: a guard is asked about the head of a request, and about each message in it.

Rules of this file:

1. The guard is asked behind `Host` and `Origin` and before all else. Until it has said who asks nothing of the body is read.
2. It is asked again about every message before anybody acts on one, with its params as they are read by who acts. If one of them is
   turned down, none is carried out.
3. What a guard raises lets nobody in. Every refusal is told to the log, in one line that has nothing of a token.

What a token is, it refuses to know: a guard's flow has steps, which the driver does. `mcp_core.auth.Guard` is such a guard.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, Protocol

from msgspec import UNSET, Struct

from mcp_core._jsonrpc import BadMessage, Unreadable, decode, is_batch, split_batch
from mcp_core._methods import Role

from ._checks import Refused

if TYPE_CHECKING:
    from collections.abc import Callable, Generator

    from mcp_core._config import Config
    from mcp_core._events import Granted

    from ._checks import Asked
    from ._exchange import Exchange
    from ._messages import Headers, RequestHead

__all__ = ["GUARDED", "Admission", "Door", "Guard", "TurnedAway"]

# Other verbs are answered alike whoever asks.
GUARDED: Final = frozenset((b"GET", b"POST", b"DELETE"))
_NO_PARAMS: Final = b"{}"
_INFO, _WARNING, _ERROR = 20, 30, 40  # as in `logging`
_FAULT: Final = Refused(500, "who may enter cannot be told: the server's log says why")
_TOO_SLOW: Final = Refused(
    503, "whether the token is good cannot be told now; try again later", [(b"retry-after", b"5")]
)


class TurnedAway(Protocol):
    """How a guard turns a request down: `message` is for the client, `reason` for the log."""

    @property
    def status(self) -> int: ...
    @property
    def message(self) -> str: ...
    @property
    def headers(self) -> Headers: ...
    @property
    def reason(self) -> str: ...


class Guard(Protocol):
    """What an endpoint asks of a guard. See `mcp_core.auth.Guard`. Of `metadata_paths` the first is its own place, the others are where
    its `metadata` may be if that of nobody else is looked for there."""

    @property
    def metadata_paths(self) -> tuple[str, ...]: ...

    def metadata(self) -> bytes: ...

    def admit(
        self, method: bytes, target: bytes, headers: Headers, now: float
    ) -> Generator[Any, Any, Granted | TurnedAway]: ...

    def check(
        self, grant: Any, method: str | None = None, params: Any = None, now: float | None = None
    ) -> TurnedAway | None: ...


class Door(Struct, frozen=True):
    """The way into an endpoint: its `guard`; `wall_time` in seconds since 1970; and `log`, the method of that name of a
    `logging.Logger`."""

    guard: Guard
    wall_time: Callable[[], float]
    log: Callable[..., object]

    def tell(self, text: str, level: int = _INFO, exc: BaseException | None = None) -> None:
        """Write a line to the log, with the exception if something of ours has failed."""
        self.log(level, "%s", text, exc_info=exc)

    def judge(self, grant: Granted, body: bytes, config: Config) -> Refused | None:
        """Whether all that is in a body is allowed to who has `grant`."""
        try:
            now = self.wall_time()
            for method, params in _asked_in(body, config):
                turned = self.guard.check(grant, method, params, now)
                if turned is not None:
                    return self.turned_away(b"POST", turned, method)
        except (Exception, SystemExit) as exc:  # noqa: BLE001 - rule 3: scopes may be told by a function of the user's
            return self.failed(b"POST", exc)
        return None

    def turned_away(self, verb: bytes, turned: TurnedAway, method: str | None = None) -> Refused:
        what = verb.decode("ascii") if method is None else f"{verb.decode('ascii')} {method}"
        # What is not the fault of who asks is something for who runs the server to know.
        level = _INFO if turned.status < 500 else _WARNING
        self.tell(f"{what} refused with {turned.status}: {turned.reason}", level)
        return Refused(turned.status, turned.message, turned.headers)

    def failed(self, verb: bytes, exc: BaseException) -> Refused:
        self.tell(f"{verb.decode('ascii')} refused with 500: the guard failed", _ERROR, exc)
        return _FAULT

    def too_slow(self, verb: bytes) -> Refused:
        self.tell(f"{verb.decode('ascii')} refused with 503: the guard took too long", _WARNING)
        return _TOO_SLOW


class Admission:
    """A request at the door.

    `step` is what its guard wants done, None when it has judged: then the exchange goes on, or is answered. A driver does the step and
    gives its reply to `send`, or what was raised to `throw`; if it takes too long, it may `give_up`.
    """

    __slots__ = ("_asked", "_door", "_exchange", "_flow", "_head", "step")

    def __init__(self, door: Door, exchange: Exchange, head: RequestHead, asked: Asked) -> None:
        self._door, self._exchange, self._head, self._asked = door, exchange, head, asked
        self._flow: Generator[Any, Any, Granted | TurnedAway] | None = None
        self.step: Any = None

    def __repr__(self) -> str:
        return f"<Admission, {'waiting' if self.step is not None else 'judged'}>"

    def begin(self, now: float) -> None:
        """Ask the guard. Most often it can tell at once."""
        head = self._head

        def ask() -> Any:
            wall_time = self._door.wall_time()
            self._flow = self._door.guard.admit(head.method, head.target, head.headers, wall_time)
            return next(self._flow)

        self._go_on(ask, now)

    def send(self, reply: Any, now: float) -> None:
        """The step was done."""
        assert self._flow is not None
        flow = self._flow
        self._go_on(lambda: flow.send(reply), now)

    def throw(self, exc: BaseException, now: float) -> None:
        """The step failed."""
        assert self._flow is not None
        flow = self._flow
        self._go_on(lambda: flow.throw(exc), now)

    def give_up(self, now: float) -> None:
        """Nobody waits for the step any more. Harmless when its guard has judged."""
        if self.step is not None:
            self.step = None
            self._exchange.refused(self._door.too_slow(self._head.method), now)

    def _go_on(self, run: Callable[[], Any], now: float) -> None:
        verb, exchange = self._head.method, self._exchange
        try:
            outcome = self._judged(run)
            if self.step is not None:
                return
            if hasattr(outcome, "principal"):
                exchange.granted(outcome, self._head, self._asked, now)
            else:
                exchange.refused(self._door.turned_away(verb, outcome), now)
        except (Exception, SystemExit) as exc:  # noqa: BLE001 - rule 3; functions of users exit now and then
            self.step = None
            exchange.refused(self._door.failed(verb, exc), now)

    def _judged(self, run: Callable[[], Any]) -> Any:
        """What came of it, unless there is another step."""
        self.step = None
        try:
            self.step = run()
        except StopIteration as end:
            return end.value


def _asked_in(body: bytes, config: Config) -> list[tuple[str | None, Any]]:
    """The requests in a body, each with its params; and None for all that takes no more than every request does."""
    messages = [body]
    if is_batch(body):
        try:
            messages = split_batch(body)
        except BadMessage:
            messages = []
        if not 0 < len(messages) <= config.limits.batch:
            return [(None, None)]  # it is refused as a whole
    return [_read(message, config) for message in messages]


def _read(message: bytes, config: Config) -> tuple[str | None, Any]:
    # What cannot be read is for the connection to refuse, which reads it again, in the same way.
    try:
        envelope = decode(message, config.limits.method, config.limits.id)
        if envelope.method is UNSET:
            return None, None
        row = config.rows(Role.SERVER).get(envelope.method)
        if row is None:
            return None, None
        return row.name, row.read_params(_NO_PARAMS if envelope.params is UNSET else envelope.params)
    except (BadMessage, Unreadable):
        return None, None
