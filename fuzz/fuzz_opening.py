# Invariant: whatever a server answers to the opening, and however late, after a few questions there is a Peer in a
# revision that both named, or ConnectFailed; nothing else is raised, and no question is put more than twice.
"""The opening of a client, `mcp_core._opening`: probe, handshake, fallback.

A case is a script of replies. When it runs out, the rest is silence.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from typing import Any, Final, TypeAlias

from hypothesis import strategies as st
from hypothesis.strategies import DrawFn, SearchStrategy
from msgspec import Raw

from mcp_core import ALL, DIALECTS, Config, ConnectFailed, Peer, PeerError
from mcp_core import types as t
from mcp_core._opening import Ask, Reply, opening, question

from .messages import CLIENT_CAPABILITIES, objects, result_of
from .mutations import damaged
from .targets import Target
from .values import encoded, json_values, weighted

# result as JSON, error as code, message and data, HTTP status, a late result
Script: TypeAlias = tuple[bytes | None, tuple[int, str, Any] | None, int | None, bytes | None]
# revisions of the client; that of the peer it remembers, "" for none; the replies
Case: TypeAlias = tuple[tuple[str, ...], str, list[Script]]

# Each stateless revision may be probed before and after the one handshake.
MOST_QUESTIONS: Final = 2 * sum(not dialect.stateful for dialect in DIALECTS.values()) + 1


def check(case: Case) -> Iterable[str]:
    versions, remembered, script = case
    config = Config(t.Implementation("fuzz", "0"), CLIENT_CAPABILITIES, versions=versions)
    verdict = Peer(DIALECTS[remembered], t.ServerCapabilities()) if remembered else None
    asked: list[Ask] = []
    replies = [_reply(*line) for line in script]
    try:
        peer = _opened(config, verdict, asked, replies)
    except ConnectFailed as exc:
        str(exc).encode()
        yield f"{_methods(asked)}: failed"
        yield "failed: " + "".join(filter(str.isalpha, str(exc)))[:24]
        return
    version = peer.dialect.version
    if not asked:
        assert verdict is not None
        assert peer is verdict
    else:
        assert version in versions, f"opened in {version}, which the client does not speak"
        heard = [
            raw for reply in replies[: len(asked)] for raw in (reply.result, reply.late) if raw is not None
        ]
        assert any(version in _texts_in(raw) for raw in heard), f"opened in {version}, which nobody named"
        assert isinstance(peer.capabilities, t.ServerCapabilities)
    yield f"{_methods(asked)}: {version}"


def _opened(config: Config, verdict: Peer | None, asked: list[Ask], replies: Sequence[Reply]) -> Peer:
    """The peer that is found. Every question goes into `asked`.

    Raises:
        ConnectFailed: there is none.
    """
    machine = opening(config, verdict)
    try:
        ask = next(machine)
        while True:
            asked.append(ask)
            assert len(asked) <= MOST_QUESTIONS, f"{len(asked)} questions: {asked}"
            assert asked.count(ask) <= 2
            _check_question(ask, config, verdict)
            ask = machine.send(replies[len(asked) - 1] if len(asked) <= len(replies) else Reply())
    except StopIteration as stop:
        assert isinstance(stop.value, Peer)
        return stop.value


def _check_question(ask: Ask, config: Config, verdict: Peer | None) -> None:
    assert ask.dialect in config.dialects or (verdict is not None and ask.dialect is verdict.dialect)
    assert ask.method == ("initialize" if ask.dialect.stateful else "server/discover")
    assert ask.timeout is None or ask.timeout > 0
    json.loads(ask.dialect.encode(question(ask, config)))


def _methods(asked: Iterable[Ask]) -> str:
    return " ".join(ask.method[:4] for ask in asked) or "nothing"


def _reply(
    result: bytes | None, error: tuple[int, str, Any] | None, status: int | None, late: bytes | None
) -> Reply:
    return Reply(
        result=result,
        error=PeerError(*error) if error is not None and result is None else None,
        status=status,
        late=late,
    )


def _texts_in(raw: Raw | bytes) -> set[str]:
    """Every text that stands as a value in the JSON; what is no JSON has none. Bytes that are no UTF-8 may stand in what is
    skipped: the whole message was looked at before it came here."""
    try:
        waiting = [json.loads(bytes(raw).decode(errors="replace"))]
    except ValueError:
        return set()
    found = set()
    while waiting:
        item = waiting.pop()
        if isinstance(item, str):
            found.add(item)
        elif isinstance(item, dict):
            waiting.extend(item.values())
        elif isinstance(item, list):
            waiting.extend(item)
    return found


_CODES: Final = (-32022, -32020, -32021, -32601, -32602, -32600, -32700, -32603, -32004, -32000, 0, 401, 1)
_STATUSES: Final = (None, None, None, 200, 400, 401, 403, 404, 405, 429, 500, 503, 0)


def _versions() -> SearchStrategy[str]:
    return st.sampled_from((*ALL, "2099-01-01", "1.0", ""))


def _results() -> SearchStrategy[bytes]:
    discovery = st.builds(
        lambda versions, base: result_of(ALL[0], {**base, "supportedVersions": versions}),
        st.lists(_versions(), max_size=4),
        objects(ALL[0], t.DiscoverResult),
    ).map(encoded)
    handshake = st.builds(
        lambda version, base: {**base, "protocolVersion": version},
        _versions(),
        objects(ALL[1], t.InitializeResult),
    ).map(encoded)
    right = st.one_of(discovery, handshake)
    return weighted((4, right), (1, damaged(right)), (1, json_values(1).map(encoded)))


def _data() -> SearchStrategy[Any]:
    supported = st.lists(st.one_of(_versions(), json_values(0)), max_size=4)
    return st.one_of(st.builds(lambda found: {"supported": found}, supported), json_values(1))


def cases(seeds: Sequence[Case]) -> SearchStrategy[Case]:
    results = _results()
    errors = st.tuples(st.sampled_from(_CODES), st.just("no"), _data())

    @st.composite
    def script(draw: DrawFn) -> Script:
        kind = draw(st.integers(0, 4))
        result = draw(results) if kind < 2 else None
        error = draw(errors) if kind in (2, 3) else None
        late = draw(results) if draw(st.integers(0, 3)) == 3 else None
        return result, error, draw(st.sampled_from(_STATUSES)), late

    spoken = st.sets(st.sampled_from(ALL), min_size=1).map(lambda found: tuple(sorted(found)))
    made = st.tuples(
        st.one_of(st.just(ALL), spoken),
        weighted((3, st.just("")), (1, st.sampled_from(ALL))),
        st.lists(script(), max_size=4),
    )
    if not seeds:
        return made

    @st.composite
    def recorded(draw: DrawFn) -> Case:
        versions, remembered, lines = draw(st.sampled_from(seeds))
        place = draw(st.integers(0, len(lines)))
        return versions, remembered, [*lines[:place], draw(script()), *lines[place + 1 :]]

    return weighted((3, made), (1, recorded()))


TARGET: Final = Target("opening", cases, check)
