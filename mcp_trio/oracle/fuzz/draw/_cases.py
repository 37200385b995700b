"""Whole cases: a beginning, a few phrases, and sometimes an end or a second client."""

from __future__ import annotations

from random import Random
from typing import TYPE_CHECKING, Any, Final

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from mcp_core import DIALECTS
from mcp_trio.oracle.fuzz._case import avoided_name

from ._choices import WITH_HANDSHAKE
from ._drawing import Drawing
from ._phrases import some_phrases
from ._second_client import second_client

if TYPE_CHECKING:
    from collections.abc import Sequence

    from hypothesis.strategies import DrawFn, SearchStrategy

    from mcp_trio.oracle.fuzz._case import Step

    from ._choices import CaseChoices

__all__ = ["CaseSource", "cases"]

OPENINGS: Final = ("half", "late", "twice", "unknown", "none", "late", "versions", "versions")
# Further beginnings and ends, each once: another process ends in order.
FIRST_SPECIAL: Final = (*OPENINGS[:-1], "disconnect")
# Over HTTP, one case in so many has a second client.
SECOND_CLIENTS: Final = 4
# One case in so many begins its conversation in a special way, or ends it. Each takes a process.
SPECIAL_AT_FIRST: Final = 4  # until each way was drawn
SUSPECTS_AT_FIRST: Final = 12
SPECIAL_LATER: Final = 200
ENDS: Final = 800
HTTP_ENDS: Final = 300
# One case in so many has damage, in several messages: it has few other steps.
DAMAGED: Final = 7
STRESS_DAMAGED: Final = 4  # large and deep messages are damage, too
CASE_BYTES: Final = 4_096  # from which a case is drawn


def cases(choices: CaseChoices) -> SearchStrategy[list[Step]]:
    """Return a strategy for cases. Each is a list of steps that begins with `open`."""
    older, main = choices.older_revisions, choices.main_revisions

    @st.composite
    def build(draw_value: DrawFn) -> list[Step]:
        draw = Drawing(draw_value)
        number = draw.below(210)
        seldom = SUSPECTS_AT_FIRST if choices.special else SPECIAL_LATER
        if choices.suspects and draw.below(seldom) == 0:
            first, second = draw.pick(choices.suspects)
            return [
                ("open", first, "whole", "all"),
                ("reconnect",),
                ("open", second, "whole", "all"),
            ]
        revision = older[number % len(older)] if older and number % 5 == 4 else None
        revision = revision or main[number % len(main)]
        how = _opening(draw, choices, revision)
        is_damaged = draw.below(STRESS_DAMAGED if choices.stress else DAMAGED) == 0
        offers = "all" if number % 7 or revision in older or is_damaged else "none"
        if how == "versions":
            first, second = draw.pick(WITH_HANDSHAKE), draw.pick(WITH_HANDSHAKE)
            return [
                ("open", first, "unknown" if number % 3 == 0 else "whole", offers),
                ("reconnect",),
                ("open", second, "whole", offers),
            ]
        ends = how == "disconnect"
        steps: list[Step] = [("open", revision, "whole" if ends else how, offers)]
        if is_damaged:
            steps += some_phrases(draw, choices, revision, 6, is_damaged=True)
        elif choices.http and how == "whole" and draw.below(SECOND_CLIENTS) == 0:
            steps += second_client(draw, choices, revision)
        else:
            steps += some_phrases(draw, choices, revision, 4)
        steps = [step for step in steps if not _is_avoided(step, choices) or draw.below(20) == 0]
        return [*steps, ("disconnect",)] if ends else steps

    return build()


def _opening(draw: Drawing, choices: CaseChoices, revision: str) -> str:
    """Return how a case opens its conversation, or "disconnect" for how it ends it."""
    is_stateful = DIALECTS[revision].stateful
    wanted = [each for each in choices.special if is_stateful or each == "disconnect"]
    if wanted and draw.below(SPECIAL_AT_FIRST) == 0:
        found = draw.pick(wanted)
        choices.special.remove(found)
        return found
    if is_stateful and draw.below(SPECIAL_LATER) == 0:
        return draw.pick(OPENINGS)
    return "whole" if draw.below(HTTP_ENDS if choices.http else ENDS) else "disconnect"


def _is_avoided(step: Step, choices: CaseChoices) -> bool:
    return bool(choices.avoided) and avoided_name(step) in choices.avoided


class CaseSource:
    """A source of cases. The same choices and seed give the same cases on every machine.

    Args:
        choices: what is drawn.
        seed: decides it.
        first: cases that come before the drawn ones, with what needs a process of its own.
    """

    def __init__(self, choices: CaseChoices, seed: int, first: Sequence[list[Step]] = ()) -> None:
        self._random = Random(seed)  # noqa: S311 - cases can be drawn again
        self._first = list(first)
        self._drawn: list[list[Step]] = []
        choices.special = [] if first else list(FIRST_SPECIAL)
        profile = settings(database=None, deadline=None, suppress_health_check=list(HealthCheck))
        test: Any = profile(given(cases(choices))(self._keep))
        # Half the time of `given` itself, and no example of it is kept.
        self._draw_one = test.hypothesis.fuzz_one_input

    @property
    def fixed(self) -> int:
        """How many of the next cases don't depend on what the choices avoid."""
        return len(self._first)

    def _keep(self, case: list[Step]) -> None:
        self._drawn.append(case)

    def draw(self, count: int) -> list[list[Step]]:
        """Return `count` cases. Each takes about a millisecond. It may run in a thread."""
        first, self._first = self._first[:count], self._first[count:]
        return first + self._draw(count - len(first))

    def _draw(self, count: int) -> list[list[Step]]:
        for _ in range(50 * count):  # some draws are discarded
            if len(self._drawn) >= count:
                break
            self._draw_one(self._random.randbytes(CASE_BYTES))
        found, self._drawn = self._drawn, []
        return found
