# Invariant: however many clients of whatever revisions do whatever they like to one Site, at any time and in any order, each
# response has one head and one end and nothing behind it; each hears what was said for its own requests, on the stream where it
# belongs, and nothing else; an event has one number and one content, and who comes back hears every event behind the one it
# names, once and in order, or is told that it is gone; a session of somebody else is like none; what is counted is what is
# held; no deadline passes unheeded; and in the end nothing is left.
"""One `Site` between several clients and the handlers of their requests; `fuzz.visits` plays it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from hypothesis import strategies as st
from hypothesis.strategies import DrawFn, SearchStrategy

from .messages import VERSIONS, messages
from .mutations import damaged, malformed
from .targets import Target
from .values import encoded, scripts, weighted
from .visits import CLIENTS, LIMITS, Case, RouterScript, Step


def check(case: Case) -> Iterable[str]:
    visits = RouterScript(case)
    visits.run()
    return visits.outcomes


_WHO: Final = st.integers(0, len(CLIENTS) - 1)
_PLACE: Final = st.integers(0, 3)
# Few, so that they meet again, and some that only look alike.
_IDS: Final = st.sampled_from((1, 2, "1", 3))


def _steps() -> SearchStrategy[Step]:
    said = st.one_of(
        *(
            st.one_of(
                messages(version).map(encoded),
                malformed(messages(version)),
                damaged(messages(version).map(encoded)),
            )
            for version in (VERSIONS[1], VERSIONS[3], VERSIONS[4])
        )
    )
    names = st.sampled_from(
        (
            b"",
            b"0-0",
            b"0-1",
            b"1-0",
            b"1-1",
            b"2-0",
            b"2-1",
            b"3-0",
            b"9-9",
            b"-",
            b"0",
            b"2-x",
            b"0--1",
            b"2-" + b"9" * 20,
        )
    )
    return weighted(
        (3, st.tuples(st.just("begin"), _WHO)),
        (6, st.tuples(st.just("call"), _WHO, _IDS)),
        (1, st.tuples(st.just("batch"), st.sampled_from((3, 3, 0, 4, 5)), st.lists(_IDS, max_size=4))),
        (1, st.tuples(st.just("ping"), _WHO, _IDS)),
        (1, st.tuples(st.just("say"), _WHO, said)),
        (2, st.tuples(st.just("half"), _WHO)),
        (2, st.tuples(st.just("rest"), _PLACE)),
        (2, st.tuples(st.just("cancel"), _WHO, st.sampled_from((1, 2, "1", 3, True, 1.0, None)))),
        (1, st.tuples(st.just("answer_ours"), _WHO, _PLACE)),
        (2, st.tuples(st.just("get"), _WHO)),
        (4, st.tuples(st.just("resume"), _WHO, st.integers(0, 5), st.integers(0, 9))),
        (1, st.tuples(st.just("guess"), _WHO, names)),
        (1, st.tuples(st.just("steal"), _WHO, _WHO)),
        (2, st.tuples(st.just("delete"), _WHO)),
        (3, st.tuples(st.just("drop"), _PLACE)),
        (2, st.tuples(st.just("deaf"), _PLACE)),
        (1, st.tuples(st.just("hear"), _PLACE)),
        (8, st.tuples(st.just("note"), _PLACE, st.sampled_from((1, 1, 2, 5)))),
        (2, st.tuples(st.just("ask"), _PLACE)),
        (1, st.tuples(st.just("log"), _PLACE)),
        (1, st.tuples(st.just("release"), _PLACE, st.sampled_from((0, 0, 1, 6)))),
        (5, st.tuples(st.just("finish"), _PLACE, st.sampled_from(("result", "result", "error", "much")))),
        (1, st.just(("change",))),
        (2, st.tuples(st.just("wait"), st.sampled_from((0.0, 1.0, 15.0, 31.0, 61.0, 400.0, 2000.0)))),
    )


_ENDS: Final[tuple[list[Step], ...]] = ([], [], [("wind_down",)], [("close",)])


def cases(seeds: Sequence[Case]) -> SearchStrategy[Case]:
    step = _steps()
    script = scripts(step)
    replies = st.sampled_from(("auto", "auto", "auto", "sse", "json"))
    limits = st.sampled_from(("roomy", *LIMITS))

    @st.composite
    def made(draw: DrawFn) -> Case:
        steps: list[Step] = [("begin", who) for who in draw(st.sampled_from(_BEGUN))]
        steps += draw(script)
        end = draw(st.sampled_from(_ENDS))
        if end:
            steps += [*end, *draw(st.lists(step, max_size=5))]
        return draw(replies), draw(st.sampled_from((True, True, True, False))), draw(limits), steps

    @st.composite
    def replayed(draw: DrawFn) -> Case:
        reply, sessions, limit, steps = draw(st.sampled_from(seeds))
        place = draw(st.integers(0, len(steps)))
        skipped = draw(st.integers(0, 2))
        extra = draw(st.lists(step, max_size=3))
        return reply, sessions, limit, [*steps[:place], *extra, *steps[place + skipped :]]

    return weighted((3, made()), (1, replayed())) if seeds else made()


# Who is there when a script begins. One client alone gets further.
_BEGUN: Final = ((0,), (0,), (3,), (2,), (4,), (0, 1), (0, 2), (0, 1, 2, 3, 4), ())

TARGET: Final = Target("exchange", cases, check)
