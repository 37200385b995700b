"""Find the recorded request that a live one repeats.

1. An equal request that wasn't used yet comes first, then one with the same method, name and
   arguments, then one that differs only where the trace has pseudonyms.
2. If all of these were used, one is used again: a client may repeat a request more often than the
   recorded client did, for example when it polls.
3. Messages are found by digest, so each search is as fast among 10,000 requests as among ten.
"""

from __future__ import annotations

from difflib import get_close_matches
from typing import TYPE_CHECKING, Any, Final

from ._differences import Difference, find_differences
from ._keys import (
    Pointer,
    call_form,
    digest,
    exact_form,
    hidden_pointers,
    hide,
    matches_any,
    wild_form,
    without,
)
from ._recorded import request_name

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from ._turns import Turn

__all__ = ["TurnIndex"]

_MAX_COMPARED: Final = 100  # recorded requests that are compared to find the most similar one
_PSEUDONYMS: Final = (b"taskId", b"requestState")
_EXACT, _CALL, _WILD = range(3)


class _EqualTurns:
    """Turns whose messages are equal, in their order."""

    __slots__ = ("_next", "_turns")

    def __init__(self) -> None:
        self._turns: list[Turn] = []
        self._next = 0

    def add(self, turn: Turn) -> None:
        self._turns.append(turn)

    def unused(self) -> Turn | None:
        while self._next < len(self._turns):
            turn = self._turns[self._next]
            if not turn.is_used:
                return turn
            self._next += 1
        return None

    @property
    def last(self) -> Turn:
        return self._turns[-1]


# By the pointers to hidden values, then by digest of the params: the turns.
_Groups = dict[frozenset[Pointer], dict[bytes, _EqualTurns]]


class TurnIndex:
    """Turns by their message, for requests or for notifications.

    Args:
        hides_pseudonyms: task ids and `requestState` are pseudonyms in the trace.
        ignore: pointers to values in params that don't count, where `*` stands for any member.
    """

    def __init__(self, *, hides_pseudonyms: bool, ignore: Iterable[Pointer] = ()) -> None:
        self._ignore = list(ignore)
        self._levels = (_EXACT, _CALL, _WILD) if hides_pseudonyms else (_EXACT, _CALL)
        self._groups: dict[tuple[int, str], _Groups] = {}
        self._by_method: dict[str, list[Turn]] = {}

    def add(self, turn: Turn) -> None:
        """Add the turn of a client's message."""
        message = turn.message
        assert message is not None
        members = message.decode()
        params = members.get("params")
        pointers = frozenset(
            each[1:] for each in hidden_pointers(message, members) if each[:1] == ("params",)
        )
        self._by_method.setdefault(message.method, []).append(turn)
        previous: Any = None
        key = b""
        for level in self._levels:
            if level == _WILD and not any(each in message.data for each in _PSEUDONYMS):
                continue  # the form is the same as on the previous level
            form = self._form(level, message.method, params, pointers)
            if level == _EXACT or form != previous:
                key = digest(form)
            previous = form
            by_digest = self._groups.setdefault((level, message.method), {}).setdefault(
                pointers, {}
            )
            if key not in by_digest:
                by_digest[key] = _EqualTurns()
            by_digest[key].add(turn)

    def find(self, method: str, params: Any) -> Turn | None:
        """Return the turn of the recorded message that a live one repeats, or None."""
        used: Turn | None = None
        for level in self._levels:
            for turns in self._equal(level, method, params):
                turn = turns.unused()
                if turn is not None:
                    return turn
                used = used or turns.last
        return used

    def _equal(self, level: int, method: str, params: Any) -> Iterator[_EqualTurns]:
        for pointers, by_digest in self._groups.get((level, method), {}).items():
            found = by_digest.get(digest(self._form(level, method, params, pointers)))
            if found is not None:
                yield found

    def nearest(self, method: str, params: Any) -> tuple[Turn | None, list[Difference]]:
        """Return the most similar turn, or None, and the differences of its params."""
        turns = self._by_method.get(method)
        if turns is None:
            similar = get_close_matches(method, list(self._by_method), 1)
            return (self._by_method[similar[0]][0] if similar else None), []
        name = request_name(method, params)
        form = call_form(method, params)
        best: tuple[int, Turn, list[Difference]] | None = None
        for turn in turns[:_MAX_COMPARED]:
            assert turn.message is not None
            recorded = turn.message.decode().get("params")
            found = list(find_differences(call_form(method, recorded), form, (), self._is_ignored))
            cost = len(found) + (0 if request_name(method, recorded) == name else 1000)
            if best is None or cost < best[0]:
                best = cost, turn, found
        return (None, []) if best is None else (best[1], best[2])

    def _is_ignored(self, pointer: Pointer, old: Any, new: Any) -> bool:
        return matches_any(pointer, self._ignore)

    def _form(self, level: int, method: str, params: Any, pointers: frozenset[Pointer]) -> Any:
        compared = hide(params, pointers) if pointers else params
        if self._ignore:
            compared = without(compared, self._ignore)
        if level == _EXACT:
            return exact_form(method, compared)
        form = call_form(method, compared)
        return wild_form(form) if level == _WILD else form
