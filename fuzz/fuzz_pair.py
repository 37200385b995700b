# Invariant: of two Connections joined by a lossless wire, each receives what the other sent:
# requests, notifications, progress and responses, unchanged and in order, however the wire splits
# them. A cancelled request ends on both sides, a request answered meanwhile stays answered, and no
# id survives the end.
"""Two `Connection`s and a wire.

`fuzz.pair` plays the script and knows what each side must receive.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final, TypeAlias

from hypothesis import strategies as st
from hypothesis.strategies import DrawFn, SearchStrategy

from fuzz.connection_script import Step
from fuzz.pair import Case, PairScript, negotiated_version
from fuzz.targets import Target
from mcp_core import ALL, Method, Role
from mcp_core import types as t
from mcp_trio.oracle.strategies._messages import VERSIONS, methods, objects
from mcp_trio.oracle.strategies._values import scripts, weighted

# Messages that a connection sends and handles itself.
_INTERNAL_METHODS: Final = frozenset(
    {"initialize", "ping", "server/discover", "logging/setLevel", "notifications/initialized"}
    | {"resources/subscribe", "resources/unsubscribe", "subscriptions/listen"}
    | {"notifications/cancelled", "notifications/progress"}
)


def check(case: Case) -> Iterable[str]:
    pair = PairScript(case)
    pair.run()
    return pair.outcomes


Versions: TypeAlias = tuple[str, ...]


def _rows(version: str, *, requests: bool) -> list[tuple[str, Method]]:
    """Return the methods that either side may send, each with its sender."""
    return [
        (by.value, row)
        for by in Role
        for row in methods(version, by.other, requests=requests)
        if row.name not in _INTERNAL_METHODS
    ]


def _step(version: str) -> SearchStrategy[Step]:
    requests = st.sampled_from(
        [
            (by, row.name, objects(version, row.params), objects(version, row.result or t.Result))
            for by, row in _rows(version, requests=True)
        ]
    )
    notifications = st.sampled_from(
        [(by, row.name, objects(version, row.params)) for by, row in _rows(version, requests=False)]
    )
    related = st.sampled_from((None, 0, 1))

    @st.composite
    def request(draw: DrawFn) -> Step:
        by, name, params, result = draw(requests)
        return "request", by, name, draw(params), draw(result), draw(related), draw(st.booleans())

    @st.composite
    def notify(draw: DrawFn) -> Step:
        by, name, params = draw(notifications)
        return "notify", by, name, draw(params), draw(related)

    sides = st.sampled_from(("client", "server"))
    place = st.integers(0, 2)
    how = st.sampled_from(("planned", "planned", "minimal", "error", "input"))
    return weighted(
        (4, request()),
        (4, st.tuples(st.just("respond"), sides, place, how)),
        (6, st.tuples(st.just("transfer"), sides, st.sampled_from((0, 0, 0, 1, 20, 150, 400)))),
        (2, st.tuples(st.just("progress"), sides, place, st.integers(0, 4))),
        (2, st.tuples(st.just("cancel"), sides, place)),
        (1, notify()),
    )


def cases(seeds: Sequence[Case]) -> SearchStrategy[Case]:
    steps = {version: _step(version) for version in VERSIONS}
    played = {version: scripts(step) for version, step in steps.items()}
    some_versions = st.sets(st.sampled_from(ALL), min_size=1).map(
        lambda found: tuple(sorted(found))
    )
    ends = st.sampled_from(("", "", "client", "server"))

    @st.composite
    def made(draw: DrawFn) -> Case:
        if draw(st.integers(0, 3)):
            client: Versions = (draw(st.sampled_from(VERSIONS)),)
            server: Versions = draw(st.sampled_from((client, VERSIONS)))
        else:
            client, server = draw(some_versions), draw(some_versions)
        version = negotiated_version(client, server)
        return client, server, draw(played[version]) if version else [], draw(ends)

    if not seeds:
        return made()

    @st.composite
    def recorded(draw: DrawFn) -> Case:
        client, server, script, end = draw(st.sampled_from(seeds))
        version = negotiated_version(client, server)
        place = draw(st.integers(0, len(script)))
        extra = draw(st.lists(steps[version], max_size=3)) if version else []
        return (
            client,
            server,
            [*script[:place], *extra, *script[place:]],
            draw(st.one_of(st.just(end), ends)),
        )

    return weighted((3, made()), (1, recorded()))


TARGET: Final = Target("pair", cases, check)
