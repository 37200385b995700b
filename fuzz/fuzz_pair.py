# Invariant: of two Connections joined by a wire that loses nothing, each gets what the other sent: those requests,
# notifications, progress and answers, with those values, in that order, however the wire splits them. What is cancelled
# ends on both sides, what was answered meanwhile stays answered, and no id survives the end.
"""Two `Connection`s and a wire; `fuzz.pair` plays it, and knows what each side has to see."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final, TypeAlias

from hypothesis import strategies as st
from hypothesis.strategies import DrawFn, SearchStrategy

from mcp_core import ALL, Method, Role
from mcp_core import types as t

from .messages import VERSIONS, methods, objects
from .pair import Case, Pair, common
from .talk import Step
from .targets import Target
from .values import scripts, weighted

# What a connection says and hears by itself.
_OWN: Final = frozenset(
    {"initialize", "ping", "server/discover", "logging/setLevel", "notifications/initialized"}
    | {"resources/subscribe", "resources/unsubscribe", "subscriptions/listen"}
    | {"notifications/cancelled", "notifications/progress"}
)


def check(case: Case) -> Iterable[str]:
    pair = Pair(case)
    pair.play()
    return pair.outcomes


Spoken: TypeAlias = tuple[str, ...]


def _rows(version: str, *, requests: bool) -> list[tuple[str, Method]]:
    """What either side may send, and who does."""
    return [
        (by.value, row)
        for by in Role
        for row in methods(version, by.other, requests=requests)
        if row.name not in _OWN
    ]


def _step(version: str) -> SearchStrategy[Step]:
    asks = st.sampled_from(
        [
            (by, row.name, objects(version, row.params), objects(version, row.result or t.Result))
            for by, row in _rows(version, requests=True)
        ]
    )
    tells = st.sampled_from(
        [(by, row.name, objects(version, row.params)) for by, row in _rows(version, requests=False)]
    )
    for_whom = st.sampled_from((None, 0, 1))

    @st.composite
    def ask(draw: DrawFn) -> Step:
        by, name, params, result = draw(asks)
        return "ask", by, name, draw(params), draw(result), draw(for_whom), draw(st.booleans())

    @st.composite
    def tell(draw: DrawFn) -> Step:
        by, name, params = draw(tells)
        return "tell", by, name, draw(params), draw(for_whom)

    sides = st.sampled_from(("client", "server"))
    place = st.integers(0, 2)
    how = st.sampled_from(("planned", "planned", "least", "error", "input"))
    return weighted(
        (4, ask()),
        (4, st.tuples(st.just("answer"), sides, place, how)),
        (6, st.tuples(st.just("move"), sides, st.sampled_from((0, 0, 0, 1, 20, 150, 400)))),
        (2, st.tuples(st.just("progress"), sides, place, st.integers(0, 4))),
        (2, st.tuples(st.just("cancel"), sides, place)),
        (1, tell()),
    )


def cases(seeds: Sequence[Case]) -> SearchStrategy[Case]:
    steps = {version: _step(version) for version in VERSIONS}
    played = {version: scripts(step) for version, step in steps.items()}
    some = st.sets(st.sampled_from(ALL), min_size=1).map(lambda found: tuple(sorted(found)))
    ends = st.sampled_from(("", "", "client", "server"))

    @st.composite
    def made(draw: DrawFn) -> Case:
        if draw(st.integers(0, 3)):
            client: Spoken = (draw(st.sampled_from(VERSIONS)),)
            server: Spoken = draw(st.sampled_from((client, VERSIONS)))
        else:
            client, server = draw(some), draw(some)
        version = common(client, server)
        return client, server, draw(played[version]) if version else [], draw(ends)

    if not seeds:
        return made()

    @st.composite
    def recorded(draw: DrawFn) -> Case:
        client, server, script, end = draw(st.sampled_from(seeds))
        version = common(client, server)
        place = draw(st.integers(0, len(script)))
        extra = draw(st.lists(steps[version], max_size=3)) if version else []
        return client, server, [*script[:place], *extra, *script[place:]], draw(st.one_of(st.just(end), ends))

    return weighted((3, made()), (1, recorded()))


TARGET: Final = Target("pair", cases, check)
