# Invariant: for any responses of a server during version negotiation, however late, a few requests
# lead to a Peer in a revision that both sides named, or to ConnectFailed. Nothing else is raised,
# and no request is sent more than twice.
"""The version negotiation of a client, `VersionNegotiation` of the core: probe, handshake,
fallback.

A case is a script of replies. After the last one the server is silent.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from typing import Any, Final, TypeAlias

from hypothesis import strategies as st
from hypothesis.strategies import DrawFn, SearchStrategy
from msgspec import Raw

from fuzz.targets import Target
from mcp_core import ALL, DIALECTS, Config, ConnectFailed, Peer, PeerError
from mcp_core import types as t
from mcp_core.protocol.connection._negotiation import (
    OpeningReply,
    OpeningRequest,
    negotiate_version,
    opening_params,
)
from mcp_trio.oracle.strategies._messages import CLIENT_CAPABILITIES, objects, result_of
from mcp_trio.oracle.strategies._mutations import damaged
from mcp_trio.oracle.strategies._values import encoded, json_values, weighted

# result as JSON, error as code, message and data, HTTP status, a late result
Script: TypeAlias = tuple[bytes | None, tuple[int, str, Any] | None, int | None, bytes | None]
# the client's revisions; a known peer's, "" for none; the replies
Case: TypeAlias = tuple[tuple[str, ...], str, list[Script]]

# Each stateless revision may be probed before and after the one handshake.
MAX_REQUESTS: Final = 2 * sum(not dialect.stateful for dialect in DIALECTS.values()) + 1


def check(case: Case) -> Iterable[str]:
    versions, known_version, script = case
    config = Config(t.Implementation("fuzz", "0"), CLIENT_CAPABILITIES, versions=versions)
    known_peer = Peer(DIALECTS[known_version], t.ServerCapabilities()) if known_version else None
    requests: list[OpeningRequest] = []
    replies = [_reply(*line) for line in script]
    try:
        peer = _open(config, known_peer, requests, replies)
    except ConnectFailed as exc:
        str(exc).encode()
        yield f"{_methods(requests)}: failed"
        yield "failed: " + "".join(filter(str.isalpha, str(exc)))[:24]
        return
    version = peer.dialect.version
    if not requests:
        assert known_peer is not None
        assert peer is known_peer
    else:
        assert version in versions, f"opened in {version}, which the client does not support"
        received = [
            raw
            for reply in replies[: len(requests)]
            for raw in (reply.result, reply.late)
            if raw is not None
        ]
        assert any(version in _texts_in(raw) for raw in received), (
            f"opened in {version}, which the server did not name"
        )
        assert isinstance(peer.capabilities, t.ServerCapabilities)
    yield f"{_methods(requests)}: {version}"


def _open(
    config: Config,
    known_peer: Peer | None,
    requests: list[OpeningRequest],
    replies: Sequence[OpeningReply],
) -> Peer:
    """Return the negotiated peer. Every request is appended to `requests`.

    Raises:
        ConnectFailed: the negotiation failed.
    """
    machine = negotiate_version(config, known_peer)
    try:
        request = next(machine)
        while True:
            requests.append(request)
            assert len(requests) <= MAX_REQUESTS, f"{len(requests)} requests: {requests}"
            assert requests.count(request) <= 2
            _check_request(request, config, known_peer)
            request = machine.send(
                replies[len(requests) - 1] if len(requests) <= len(replies) else OpeningReply()
            )
    except StopIteration as stop:
        assert isinstance(stop.value, Peer)
        return stop.value


def _check_request(request: OpeningRequest, config: Config, known_peer: Peer | None) -> None:
    assert request.dialect in config.dialects or (
        known_peer is not None and request.dialect is known_peer.dialect
    )
    assert request.method == ("initialize" if request.dialect.stateful else "server/discover")
    assert request.timeout is None or request.timeout > 0
    json.loads(request.dialect.encode(opening_params(request, config)))


def _methods(requests: Iterable[OpeningRequest]) -> str:
    return " ".join(request.method[:4] for request in requests) or "nothing"


def _reply(
    result: bytes | None, error: tuple[int, str, Any] | None, status: int | None, late: bytes | None
) -> OpeningReply:
    return OpeningReply(
        result=result,
        error=PeerError(*error) if error is not None and result is None else None,
        status=status,
        late=late,
    )


def _texts_in(raw: Raw | bytes) -> set[str]:
    """Return every text that is a value in the JSON; none if it is not JSON.

    Bytes that are not UTF-8 may stand in a skipped member, because the whole message is checked
    earlier.
    """
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


_CODES: Final = (
    -32022,
    -32020,
    -32021,
    -32601,
    -32602,
    -32600,
    -32700,
    -32603,
    -32004,
    -32000,
    0,
    401,
    1,
)
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

    versions = st.sets(st.sampled_from(ALL), min_size=1).map(lambda found: tuple(sorted(found)))
    made = st.tuples(
        st.one_of(st.just(ALL), versions),
        weighted((3, st.just("")), (1, st.sampled_from(ALL))),
        st.lists(script(), max_size=4),
    )
    if not seeds:
        return made

    @st.composite
    def recorded(draw: DrawFn) -> Case:
        versions, known_version, lines = draw(st.sampled_from(seeds))
        place = draw(st.integers(0, len(lines)))
        return versions, known_version, [*lines[:place], draw(script()), *lines[place + 1 :]]

    return weighted((3, made), (1, recorded()))


TARGET: Final = Target("opening", cases, check)
