"""Make a case smaller while it shows the same fault. Each attempt is a play on a fresh target.

1. The steps are cut first, in halves and then one by one (ddmin), and then the values in them.
   This works on literals, so that a stored case and one joined of several can be shrunk, too.
2. An attempt takes a tenth of a second or more. So only a few shorter forms of a long text are
   tried, and a message that is JSON is made simpler as JSON.
3. The target's newest revision is tried too: it may have no handshake, so the case gets shorter.
"""

from __future__ import annotations

import json
import math
from typing import TYPE_CHECKING, Any, Final

import trio

from mcp_trio.oracle.fuzz._case import client_of, on_client, own_step, without_orphans

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterator

    from mcp_trio.oracle.fuzz._case import Case, Step

__all__ = ["ShrinkBudget", "shrink"]

MAX_PLAYS: Final = 500
MAX_SECONDS: Final = 60.0
_COUNTED: Final = 100  # numbers above aren't counted down one by one


class ShrinkBudget:
    """The seconds that a run may spend on shrinking, all findings together.

    Attributes:
        left: how many are left.
        deadline: the time of trio's clock after which nothing is shrunk any more.
    """

    def __init__(self, seconds: float = MAX_SECONDS, deadline: float = math.inf) -> None:
        self.left = seconds
        self.deadline = deadline

    @property
    def is_spent(self) -> bool:
        """True if nothing may be shrunk any more."""
        return self.left <= 0 or trio.current_time() >= self.deadline


async def shrink(
    case: Case,
    shows_fault: Callable[[Case], Awaitable[Case | None]],
    budget: ShrinkBudget,
    *,
    newest: str = "",
    cuts: bool = True,
    max_plays: int = MAX_PLAYS,
) -> tuple[list[Case], int, bool]:
    """Return ever smaller cases that show the fault, the smallest last, and the number of plays.

    The last value is True if there was time to try the last case without each of its steps.

    Args:
        case: a case that shows the fault.
        shows_fault: plays a case, and returns the part of it that has shown the same fault, or
            None.
        budget: seconds that are left. The seconds that are used are subtracted.
        newest: a revision to try in place of the case's; empty for none.
        cuts: True to cut steps. Otherwise only values are made simpler.
        max_plays: how many plays at most.
    """
    shrinking = _Shrinking(case, shows_fault, budget, newest, max_plays)
    try:
        while True:
            before = shrinking.case
            if cuts:
                await shrinking.cut_steps()
            shrinking.is_cut = True
            await shrinking.simplify_steps()
            if shrinking.case == before:
                break
    except _Spent:
        pass
    return shrinking.smaller, shrinking.plays, shrinking.is_cut


class _Spent(Exception):
    """The budget is spent."""


class _Shrinking:
    def __init__(
        self,
        case: Case,
        shows_fault: Callable[[Case], Awaitable[Case | None]],
        budget: ShrinkBudget,
        newest: str,
        max_plays: int,
    ) -> None:
        self.case = list(case)
        self.smaller: list[Case] = []
        self.plays = 0
        self.is_cut = False
        self._newest = newest
        self._shows_fault = shows_fault
        self._budget = budget
        self._max_plays = max_plays
        self._tried: set[str] = set()

    async def attempt(self, case: Case) -> bool:
        case = without_orphans(case)
        key = repr(case)
        if key in self._tried or not case:
            return False
        self._tried.add(key)
        if self.plays >= self._max_plays or self._budget.is_spent:
            raise _Spent
        began = trio.current_time()
        self.plays += 1
        found = await self._shows_fault(case)
        self._budget.left -= trio.current_time() - began
        if found is None:
            return False
        self.case = list(found)
        self.smaller.append(self.case)
        return True

    async def cut_steps(self) -> None:
        """Remove chunks of steps, each half as long as the one before."""
        size = len(self.case) // 2
        while size:
            start = len(self.case) - size
            while start > 0:  # the first step opens the conversation
                await self.attempt(self.case[:start] + self.case[start + size :])
                start -= size
            if size > 1 and await self.attempt(self.case[:1] + self.case[1 + size :]):
                continue
            size //= 2

    async def simplify_steps(self) -> None:
        """Make the values of each step simpler."""
        for index in range(len(self.case)):
            changed = True
            while changed and index < len(self.case):
                changed = False
                for step in _simpler_steps(self.case[index], self._newest):
                    if await self.attempt([*self.case[:index], step, *self.case[index + 1 :]]):
                        changed = True
                        break


def _simpler_steps(step: Step, newest: str) -> Iterator[Step]:
    client, own = client_of(step), own_step(step)
    if client and own[0] != "open":
        yield own  # the first client's is simpler
    for each in _simpler_own_steps(own, newest):
        yield on_client(client, each)


def _simpler_own_steps(step: Step, newest: str) -> Iterator[Step]:
    # A step's first words say what it is, and stay.
    fixed = {"request": 2, "call": 2, "notify": 2, "page": 3, "head": 3, "hand": 4}
    fixed |= {"large": 2, "deep": 2, "streams": 2}
    fixed |= {"batch": 2, "parts": 3, "reply": 3, "half": 2}
    # Steps of cases for clients.
    fixed |= {"serve": 3, "answer": 2, "always": 2, "push": 2, "http": 2}
    first = fixed.get(
        step[0], 2 if step[0] in ("open", "cancel", "respond", "retry", "task") else 1
    )
    if step[0] == "open":
        yield from _simpler_openings(step, newest)
        return
    if step[0] == "mutate":
        message = _decoded(step[1])
        if isinstance(message, dict):
            yield from _simpler_messages(message)
            return
    # The last parts first: without `progress` a call has fewer messages.
    for index in reversed(range(first, len(step))):
        candidates: Iterator[Any]
        if step[0] == "burst" and index == 2:
            continue  # another method isn't a simpler one
        if step[0] == "call" and index == 3:
            words = step[index]  # each member has a meaning of its own
            candidates = (words[:at] + words[at + 1 :] for at in range(len(words)))
        elif step[0] == "request" and index == 3:
            candidates = iter(("int",) if step[index] != "int" else ())
        elif step[0] == "request" and index == 4:
            candidates = iter(("whole",) if step[index] != "whole" else ())
        else:
            candidates = simpler_values(step[index])
        for value in candidates:
            yield (*step[:index], value, *step[index + 1 :])


def _simpler_openings(step: Step, newest: str) -> Iterator[Step]:
    revision = step[1]
    how: str = step[2] if len(step) > 2 else "whole"
    offers: str = step[3] if len(step) > 3 else "all"
    if newest and revision != newest:
        yield ("open", newest, "whole", offers)
    for simple_how, simple_offers in (("whole", "all"), (how, "all"), ("whole", offers)):
        if (simple_how, simple_offers) != (how, offers):
            yield ("open", revision, simple_how, simple_offers)


def _simpler_messages(message: dict[str, Any]) -> Iterator[Step]:
    """Return simpler steps for a message that was sent as a text."""
    method, params = message.get("method"), message.get("params", {})
    if isinstance(method, str):
        if "id" in message:
            yield ("request", method, params, "int")
        else:
            yield ("notify", method, params)
    for simple in simpler_values(message):
        yield ("mutate", json.dumps(simple, separators=(",", ":"), ensure_ascii=False))


def _decoded(text: Any) -> Any:
    try:
        return json.loads(text)
    except (ValueError, TypeError, RecursionError):
        return None


def simpler_values(value: Any, depth: int = 0) -> Iterator[Any]:
    """Return simpler values of the same type, the simplest first."""
    if depth > 6:
        return
    if isinstance(value, bool):
        yield from (False,) if value else ()
    elif isinstance(value, int):
        yield from (1, 2, value // 2, value * 3 // 4, value * 7 // 8) if value > 2 else ()
        yield from (value - 1,) if 2 < value < _COUNTED else ()
    elif isinstance(value, float):
        yield from (0.0,) if value else ()
    elif isinstance(value, str | bytes):
        yield from _shorter(value)
    elif isinstance(value, dict):
        yield from _simpler_objects(value, depth)
    elif isinstance(value, list | tuple):
        yield from _simpler_lists(value, depth)


def _simpler_objects(value: dict[str, Any], depth: int) -> Iterator[dict[str, Any]]:
    if value:
        yield {}
    for key in value:
        yield {each: item for each, item in value.items() if each != key}
    for key, item in value.items():
        for simple in simpler_values(item, depth + 1):
            yield {**value, key: simple}


def _simpler_lists(value: Any, depth: int) -> Iterator[Any]:
    make = type(value)
    if value:
        yield make()
    for index in range(len(value)):
        yield make([*value[:index], *value[index + 1 :]])
    for index, item in enumerate(value):
        for simple in simpler_values(item, depth + 1):
            yield make([*value[:index], simple, *value[index + 1 :]])


def _shorter(value: Any) -> Iterator[Any]:
    """Return a text or bytes without a half, a quarter, and so on, down to a single element.

    Small pieces of a long value aren't tried one by one. They are once the value is short.
    """
    if not value:
        return
    yield value[:0]
    size = len(value)
    for pieces in (2, 4, 8):
        step = max(1, size // pieces)
        if step == size:
            return
        for start in range(0, size, step):
            yield value[:start] + value[start + step :]
        if step == 1:
            return
