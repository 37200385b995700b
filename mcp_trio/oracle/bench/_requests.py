"""Requests without ids, and the workers that draw them."""

from __future__ import annotations

from random import Random
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Protocol

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

__all__ = ["Mix", "PreparedCall", "Work", "Worker", "varied"]

_VARIED: Final = 61  # a prime, so that every caller sends all lengths


class PreparedCall(NamedTuple):
    """One request, without its id.

    Attributes:
        method: the method's name.
        params: its params as JSON values, without the `_meta` that a revision requires; None for
            none.
        name: how errors and the slowest calls name it, for example "tools/call echo".
        weight: how often it is drawn, relative to others.
        think: seconds that the caller waits after the response, before its next call.
        may_continue: whether a result that isn't the last one is no error: a question, or a task.
        notified: the URI of a resource. The call then ends with the first notification about it
            since the call's start, if that comes after the response. "" for none.
    """

    method: str
    params: dict[str, Any] | None
    name: str
    weight: float = 1.0
    think: float = 0.0
    may_continue: bool = False
    notified: str = ""


class Worker(Protocol):
    """Draws the calls of one caller, one after the other."""

    def next_call(self, answer: Mapping[str, Any] | None) -> PreparedCall:
        """Return the next call. The engine encodes the same object only once.

        Args:
            answer: the decoded response to the caller's previous call, which may be an error. None
                before the first call, after a timeout or a response that isn't JSON, and always if
                `Work.reads_answers` is False.
        """


class Work(Protocol):
    """Makes the workers, which draw the calls.

    Attributes:
        reads_answers: whether each response is decoded for the worker. It costs the load more.
    """

    reads_answers: bool

    def worker(self, number: int, seed: int) -> Worker:
        """Return the worker of caller `number`, from 0. Equal seeds draw equal calls."""


class Mix:
    """Independent calls: each is drawn by its weight, and the last response plays no part.

    Raises:
        ValueError: there is no call, or a weight isn't positive.
    """

    reads_answers = False

    def __init__(self, calls: Sequence[PreparedCall]) -> None:
        if not calls:
            raise ValueError("a load needs a call")
        for call in calls:
            if not call.weight > 0:
                raise ValueError(f"the weight of {call.name} must be positive, not {call.weight}")
        self._calls = list(calls)

    def __repr__(self) -> str:
        return f"<Mix of {len(self._calls)} calls>"

    def worker(self, number: int, seed: int) -> Worker:
        """Return the worker of caller `number`, from 0. Equal seeds draw equal calls."""
        if len(self._calls) == 1:
            return _One(self._calls[0])
        return _Drawn(self._calls, Random(f"{seed}/{number}"))  # noqa: S311 - no secret


class _One:
    """Returns the same call each time."""

    __slots__ = ("_call",)

    def __init__(self, call: PreparedCall) -> None:
        self._call = call

    def next_call(self, answer: Mapping[str, Any] | None) -> PreparedCall:
        """Return the call."""
        return self._call


class _Drawn:
    """Draws from `calls`, a thousand at a time, which costs less."""

    def __init__(self, calls: list[PreparedCall], random: Random) -> None:
        self._calls = calls
        self._weights = [call.weight for call in calls]
        self._random = random
        self._next = iter(self._draw())

    def _draw(self) -> Iterator[PreparedCall]:
        while True:
            yield from self._random.choices(self._calls, self._weights, k=1000)

    def next_call(self, answer: Mapping[str, Any] | None) -> PreparedCall:
        """Return the next call."""
        return next(self._next)


def varied(call: PreparedCall) -> list[PreparedCall]:
    """Return variants of a call whose requests differ in length, or only the call itself.

    A server that caches what it sends for requests of one length looks faster than it is. The
    longest string among a tool's arguments gets up to 60 more characters: its own are repeated. A
    call without a string is returned alone.
    """
    params: dict[str, Any] = call.params or {}
    arguments: dict[str, Any] = params.get("arguments") or {}
    texts = {key: value for key, value in arguments.items() if value and isinstance(value, str)}
    if not texts:
        return [call]
    name, text = max(texts.items(), key=lambda item: len(item[1]))
    more = text * (_VARIED // len(text) + 1)
    weight = call.weight / _VARIED
    return [
        call._replace(
            params={**params, "arguments": {**arguments, name: text + more[:n]}},
            weight=weight,
        )
        for n in range(_VARIED)
    ]
