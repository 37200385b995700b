# Invariant: with any number of clients of any revisions, and requests in any order, each response
# of a Router has one head, one end and nothing after it. Each client receives the messages for its
# own requests, on the right stream, and nothing else. An event has one number and one content, and
# a client that resumes receives every event after the one it names, once and in order, or an error
# that it is gone. A foreign session looks like an unknown one. Counted sizes are those held. No
# deadline is missed. At the end nothing is left.
"""One `Router` between several clients and the handlers of their requests.

`fuzz.router_script` plays it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from hypothesis import strategies as st
from hypothesis.strategies import DrawFn, SearchStrategy

from fuzz.exchange_checker import CLIENTS
from fuzz.router_script import LIMITS, Case, RouterScript, Step
from fuzz.targets import Target
from mcp_trio.oracle.strategies._messages import VERSIONS, messages
from mcp_trio.oracle.strategies._mutations import damaged, malformed
from mcp_trio.oracle.strategies._values import encoded, scripts, weighted


def check(case: Case) -> Iterable[str]:
    script = RouterScript(case)
    script.run()
    return script.outcomes


_CLIENT_INDEX: Final = st.integers(0, len(CLIENTS) - 1)
_PLACE: Final = st.integers(0, 3)
# Few, so that they repeat, and some that only look alike.
_IDS: Final = st.sampled_from((1, 2, "1", 3))


def _steps() -> SearchStrategy[Step]:
    posted = st.one_of(
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
        (3, st.tuples(st.just("initialize"), _CLIENT_INDEX)),
        (6, st.tuples(st.just("call"), _CLIENT_INDEX, _IDS)),
        (
            1,
            st.tuples(
                st.just("batch"), st.sampled_from((3, 3, 0, 4, 5)), st.lists(_IDS, max_size=4)
            ),
        ),
        (1, st.tuples(st.just("ping"), _CLIENT_INDEX, _IDS)),
        (1, st.tuples(st.just("post"), _CLIENT_INDEX, posted)),
        (2, st.tuples(st.just("begin_post"), _CLIENT_INDEX)),
        (2, st.tuples(st.just("finish_post"), _PLACE)),
        (
            2,
            st.tuples(
                st.just("cancel"), _CLIENT_INDEX, st.sampled_from((1, 2, "1", 3, True, 1.0, None))
            ),
        ),
        (1, st.tuples(st.just("respond"), _CLIENT_INDEX, _PLACE)),
        (2, st.tuples(st.just("get"), _CLIENT_INDEX)),
        (4, st.tuples(st.just("resume"), _CLIENT_INDEX, st.integers(0, 5), st.integers(0, 9))),
        (1, st.tuples(st.just("resume_unknown"), _CLIENT_INDEX, names)),
        (1, st.tuples(st.just("use_foreign_session"), _CLIENT_INDEX, _CLIENT_INDEX)),
        (2, st.tuples(st.just("delete"), _CLIENT_INDEX)),
        (3, st.tuples(st.just("disconnect"), _PLACE)),
        (2, st.tuples(st.just("stop_reading"), _PLACE)),
        (1, st.tuples(st.just("resume_reading"), _PLACE)),
        (8, st.tuples(st.just("progress"), _PLACE, st.sampled_from((1, 1, 2, 5)))),
        (2, st.tuples(st.just("request"), _PLACE)),
        (1, st.tuples(st.just("log"), _PLACE)),
        (1, st.tuples(st.just("release"), _PLACE, st.sampled_from((0, 0, 1, 6)))),
        (
            5,
            st.tuples(
                st.just("finish"), _PLACE, st.sampled_from(("result", "result", "error", "large"))
            ),
        ),
        (1, st.just(("change",))),
        (
            2,
            st.tuples(
                st.just("wait"), st.sampled_from((0.0, 1.0, 15.0, 31.0, 61.0, 400.0, 2000.0))
            ),
        ),
    )


_ENDS: Final[tuple[list[Step], ...]] = ([], [], [("shutdown",)], [("close",)])


def cases(seeds: Sequence[Case]) -> SearchStrategy[Case]:
    step = _steps()
    script = scripts(step)
    replies = st.sampled_from(("auto", "auto", "auto", "sse", "json"))
    limits = st.sampled_from(("roomy", *LIMITS))

    @st.composite
    def made(draw: DrawFn) -> Case:
        steps: list[Step] = [
            ("initialize", client) for client in draw(st.sampled_from(_INITIALIZED))
        ]
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


# The clients with a session at the start. A script with a single client gets further.
_INITIALIZED: Final = ((0,), (0,), (3,), (2,), (4,), (0, 1), (0, 2), (0, 1, 2, 3, 4), ())

TARGET: Final = Target("exchange", cases, check)
