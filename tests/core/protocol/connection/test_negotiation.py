"""Version negotiation as a list of requests and replies: the compatibility matrix.

A row is a conversation: a request, its reply, and so on until there is a peer or an error. The
end-to-end counterpart is in `test_compatibility.py`.
"""

from __future__ import annotations

import json
from typing import Any

import pytest
from msgspec import UNSET, Raw

from mcp_core import (
    ALL,
    DIALECTS,
    Config,
    ConnectFailed,
    Peer,
    PeerError,
    RemoteProtocolError,
    RevisionRefused,
)
from mcp_core import types as t
from mcp_core.protocol.connection._negotiation import (
    OpeningReply,
    OpeningRequest,
    VersionNegotiation,
    negotiate_version,
    opening_params,
    reply_from,
)
from mcp_core.protocol.jsonrpc._codec import decode
from mcp_core.protocol.revisions._dialects import Dialect
from tests.harness.jsonrpc import (
    CLIENT_CAPABILITIES,
    CLIENT_INFO,
    META_SERVER,
    STATEFUL,
    A,
    B,
    C,
    D,
    E,
    client_config,
)

DUAL = client_config()
MODERN = client_config(E)
LEGACY = client_config(*STATEFUL)
OLD = client_config(E, A)
HURRIED = Config(CLIENT_INFO, CLIENT_CAPABILITIES, probe_timeout=0.5, initialize_timeout=30.0)


def probe(timeout: float = 15.0) -> OpeningRequest:
    return OpeningRequest("server/discover", DIALECTS[E], timeout)


def handshake(version: str = D, timeout: float | None = None) -> OpeningRequest:
    return OpeningRequest("initialize", DIALECTS[version], timeout)


def encoded(value: Any) -> bytes:
    return json.dumps(value).encode()


def discover_result(*versions: str, **more: Any) -> OpeningReply:
    return OpeningReply(
        result=encoded({"supportedVersions": versions, "capabilities": {"tools": {}}} | more)
    )


def initialize_result(version: str, **more: Any) -> OpeningReply:
    answer = {
        "protocolVersion": version,
        "capabilities": {"tools": {}},
        "serverInfo": {"name": "s", "version": "1"},
    }
    return OpeningReply(result=encoded(answer | more))


def error_reply(code: int, *supported: Any, status: int | None = None) -> OpeningReply:
    data = {"supported": list(supported), "requested": E} if supported else None
    return OpeningReply(error=PeerError(code, "no", data), status=status)


def with_late_result(reply: OpeningReply, discovery: OpeningReply) -> OpeningReply:
    return OpeningReply(result=reply.result, error=reply.error, late=discovery.result)


SILENCE = OpeningReply()
ODD = OpeningReply(result=b'{"tools":[]}')

# the client, its requests and their replies, the revision or part of the error
OPENINGS: list[Any] = [
    # 2026-07-28, basic/versioning: a client with stateful and stateless revisions
    pytest.param(DUAL, [(probe(), discover_result(E))], E, id="dual: modern server"),
    pytest.param(DUAL, [(probe(), discover_result(*ALL))], E, id="dual: server of both eras"),
    pytest.param(
        DUAL,
        [(probe(), discover_result(D, C)), (handshake(), initialize_result(D))],
        D,
        id="dual: discovers a legacy server",
    ),
    pytest.param(
        OLD,
        [(probe(), discover_result(D, C))],
        "the server speaks 2025-11-25, 2025-06-18",
        id="nothing mutual",
    ),
    pytest.param(
        DUAL, [(probe(), discover_result())], "the server speaks none", id="dual: nothing offered"
    ),
    pytest.param(
        DUAL,
        [(probe(), discover_result("2099-01-01"))],
        "no common revision",
        id="dual: from the future",
    ),
    pytest.param(
        DUAL,
        [(probe(), ODD), (handshake(), initialize_result(D))],
        D,
        id="dual: a result of another kind",
    ),
    pytest.param(
        DUAL,
        [
            (probe(), OpeningReply(result=b'{"supportedVersions":null,"capabilities":{}}')),
            (handshake(), initialize_result(D)),
        ],
        D,
        id="dual: null for the versions",
    ),
    pytest.param(
        DUAL,
        [(probe(), OpeningReply(result=b"{}")), (handshake(), initialize_result(A))],
        A,
        id="dual: an empty result",
    ),
    pytest.param(
        DUAL, [(probe(), SILENCE), (handshake(), initialize_result(C))], C, id="dual: silence"
    ),
    *(
        pytest.param(
            DUAL,
            [(probe(), error_reply(code)), (handshake(), initialize_result(B))],
            B,
            id=f"dual: error {code}",
        )
        for code in (
            -32601,
            -32602,
            -32600,
            -32603,
            -32700,
            -32000,
            -32001,
            -32004,
            -32002,
            0,
            1,
            404,
        )
    ),
    pytest.param(
        DUAL,
        [(probe(), error_reply(-32022, D, C)), (handshake(), initialize_result(D))],
        D,
        id="dual: -32022, legacy listed",
    ),
    pytest.param(
        DUAL,
        [(probe(), error_reply(-32022, "2099-01-01"))],
        "speaks 2099-01-01",
        id="dual: -32022, no mutual",
    ),
    pytest.param(
        DUAL,
        [(probe(), error_reply(-32022))],
        "the server speaks none",
        id="dual: -32022 without data",
    ),
    pytest.param(
        DUAL, [(probe(), error_reply(-32022, 1, None))], "speaks none", id="dual: -32022, odd data"
    ),
    pytest.param(
        DUAL,
        [(probe(), OpeningReply(error=PeerError(-32022, "no", {"supported": D})))],
        "none",
        id="dual: -32022, no list",
    ),
    pytest.param(
        DUAL,
        [(probe(), error_reply(-32022, E, D)), (probe(), discover_result(E))],
        E,
        id="dual: refused, and taken the second time",
    ),
    pytest.param(
        DUAL,
        [(probe(), error_reply(-32022, E, D))] * 2,
        "lists 2026-07-28 but refuses it",
        id="dual: contradiction",
    ),
    pytest.param(
        DUAL,
        [(probe(), error_reply(-32020, status=400))],
        "refused server/discover",
        id="dual: -32020 is modern over HTTP",
    ),
    # Modern errors that servers with a handshake send as well
    *(
        param
        for name, doubtful in (
            ("404 with -32601", error_reply(-32601, status=404)),
            ("-32020 on a pipe", error_reply(-32020)),
        )
        for param in (
            pytest.param(
                DUAL,
                [(probe(), doubtful), (handshake(), initialize_result(D))],
                D,
                id=f"dual: {name}",
            ),
            *(
                pytest.param(
                    DUAL,
                    [(probe(), doubtful), (handshake(), refusal)],
                    "the server refused server/discover: no (",
                    id=f"dual: {name}, and initialize fails: {refusal.error}, {refusal.status}",
                )
                for refusal in (
                    doubtful,
                    error_reply(-32602),
                    error_reply(-32020),
                    error_reply(-32601, status=404),
                    OpeningReply(status=404),
                    initialize_result("2024-10-07"),
                    ODD,
                    SILENCE,
                )
            ),
            # Such a reply is more recent, and says more.
            *(
                pytest.param(
                    DUAL,
                    [(probe(), doubtful), (handshake(), OpeningReply(status=status))],
                    f"did not answer initialize (HTTP status {status})",
                    id=f"dual: {name}, and initialize gets {status}",
                )
                for status in (0, 401, 503)
            ),
            pytest.param(
                DUAL,
                [
                    (probe(), doubtful),
                    (handshake(), error_reply(-32022, E)),
                    (probe(), discover_result(E)),
                ],
                E,
                id=f"dual: {name}, and initialize is answered with a common revision",
            ),
            pytest.param(
                DUAL,
                [(probe(), doubtful), (handshake(), error_reply(-32022, E)), (probe(), SILENCE)],
                "refused server/discover",
                id=f"dual: {name}, and the list of revisions leads nowhere",
            ),
            pytest.param(
                MODERN,
                [(probe(), doubtful)],
                "does not speak 2026-07-28 (it answered server/discover with no (",
                id=f"modern: {name}",
            ),
        )
    ),
    pytest.param(
        DUAL,
        [(probe(), error_reply(-32021))],
        "refused server/discover",
        id="dual: -32021 is modern",
    ),
    pytest.param(
        HURRIED,
        [(probe(0.5), SILENCE), (handshake(timeout=30.0), initialize_result(D))],
        D,
        id="dual: times as configured",
    ),
    # The handshake that follows
    pytest.param(
        DUAL,
        [(probe(), SILENCE), (handshake(), error_reply(-32602))],
        "refused initialize: no",
        id="refused",
    ),
    pytest.param(
        DUAL,
        [(probe(), SILENCE), (handshake(), SILENCE)],
        "did not answer initialize within None",
        id="mute",
    ),
    pytest.param(
        HURRIED,
        [(probe(0.5), SILENCE), (handshake(timeout=30.0), SILENCE)],
        "initialize within 30.0 s",
        id="mute, timed",
    ),
    pytest.param(
        DUAL,
        [(probe(), SILENCE), (handshake(), initialize_result("2024-10-07"))],
        "answered with revision 2024-10-07",
        id="unknown",
    ),
    pytest.param(
        DUAL,
        [(probe(), SILENCE), (handshake(), initialize_result(E))],
        "with revision 2026-07-28",
        id="no handshake in E",
    ),
    pytest.param(
        OLD,
        [(probe(), SILENCE), (handshake(A), initialize_result(D))],
        "with revision 2025-11-25",
        id="not spoken here",
    ),
    pytest.param(
        DUAL,
        [(probe(), SILENCE), (handshake(), ODD)],
        "answer to initialize cannot be read",
        id="unreadable",
    ),
    pytest.param(
        DUAL,
        [(probe(), SILENCE), (handshake(), error_reply(-32022, E)), (probe(), discover_result(E))],
        E,
        id="modern evidence",
    ),
    pytest.param(
        DUAL,
        [(probe(), SILENCE), (handshake(), error_reply(-32022, E)), (probe(), SILENCE)],
        "refused initialize",
        id="modern evidence, and silence again",
    ),
    *(
        pytest.param(
            DUAL,
            [(probe(), SILENCE), (handshake(), refusal), (probe(), discover_result(E))],
            E,
            id=f"modern evidence: {refusal.error}, {refusal.status}",
        )
        for refusal in (
            error_reply(-32020, status=400),  # `initialize` lacks the headers of 2026-07-28
            error_reply(-32020),
            error_reply(-32021, status=400),
            error_reply(-32601, status=404),
        )
    ),
    pytest.param(
        DUAL,
        [(probe(), SILENCE), (handshake(), error_reply(-32020)), (probe(), error_reply(-32020))],
        "refused server/discover",
        id="modern evidence, and refused again",
    ),
    pytest.param(
        DUAL,
        [
            (probe(), error_reply(-32022, E)),
            (probe(), SILENCE),
            (handshake(), error_reply(-32020)),
        ],
        "refused initialize",
        id="modern evidence, after two probes",
    ),
    pytest.param(
        DUAL,
        [
            (probe(), SILENCE),
            (handshake(), error_reply(-32020)),
            (probe(), error_reply(-32022, E)),
        ],
        "lists 2026-07-28 but refuses it",
        id="modern evidence, and refused by revision",
    ),
    pytest.param(
        LEGACY,
        [(handshake(), error_reply(-32020))],
        "refused initialize: no (-32020)",
        id="legacy: -32020",
    ),
    # A late result of the probe is used only if the handshake fails
    pytest.param(
        DUAL,
        [
            (probe(), SILENCE),
            (handshake(), with_late_result(error_reply(-32601), discover_result(E))),
        ],
        E,
        id="late, refused",
    ),
    pytest.param(
        DUAL,
        [(probe(), SILENCE), (handshake(), with_late_result(SILENCE, discover_result(E)))],
        E,
        id="late, silence",
    ),
    pytest.param(
        DUAL,
        [(probe(), SILENCE), (handshake(), with_late_result(ODD, discover_result(E)))],
        E,
        id="late, unreadable",
    ),
    pytest.param(
        DUAL,
        [
            (probe(), SILENCE),
            (handshake(), with_late_result(initialize_result("1"), discover_result(E))),
        ],
        E,
        id="late, unknown",
    ),
    pytest.param(
        DUAL,
        [
            (probe(), SILENCE),
            (handshake(), with_late_result(initialize_result(D), discover_result(E))),
        ],
        D,
        id="late, but it worked",
    ),
    pytest.param(
        DUAL,
        [
            (probe(), SILENCE),
            (handshake(), with_late_result(error_reply(-32601), discover_result(C))),
        ],
        "refused",
        id="late, legacy",
    ),
    pytest.param(
        DUAL,
        [(probe(), SILENCE), (handshake(), with_late_result(error_reply(-32601), ODD))],
        "refused",
        id="late, no discovery",
    ),
    # A client without stateful revisions probes too, so that its error has a reason
    pytest.param(MODERN, [(probe(), discover_result(E))], E, id="modern: modern server"),
    pytest.param(
        MODERN,
        [(probe(), error_reply(-32601))],
        "does not speak 2026-07-28 (it answered",
        id="modern: error",
    ),
    pytest.param(
        MODERN,
        [(probe(), SILENCE)],
        "did not answer server/discover). Allow an older",
        id="modern: silence",
    ),
    pytest.param(
        MODERN, [(probe(), ODD)], "its result of server/discover is malformed", id="modern: odd"
    ),
    pytest.param(
        MODERN,
        [(probe(), discover_result(D))],
        "the server speaks 2025-11-25, we speak 2026",
        id="modern: legacy",
    ),
    pytest.param(
        MODERN,
        [(probe(), error_reply(-32022, D))],
        "speaks 2025-11-25, we speak 2026",
        id="modern: -32022",
    ),
    # A client without stateless revisions sends initialize at once
    pytest.param(LEGACY, [(handshake(), initialize_result(D))], D, id="legacy: newest"),
    *(
        pytest.param(LEGACY, [(handshake(), initialize_result(v))], v, id=f"legacy: {v}")
        for v in STATEFUL
    ),
    pytest.param(
        LEGACY,
        [(handshake(), error_reply(-32022, E))],
        "refused initialize",
        id="legacy: a modern server",
    ),
    pytest.param(
        LEGACY,
        [(handshake(), error_reply(-32601))],
        "refused initialize: no (-32601)",
        id="legacy: refused",
    ),
    pytest.param(
        client_config(B),
        [(handshake(B), initialize_result(A))],
        "with revision 2024-11-05",
        id="one: another",
    ),
]


def run(
    config: Config, script: list[tuple[OpeningRequest, OpeningReply]], verdict: Peer | None = None
) -> Peer:
    flow = negotiate_version(config, verdict)
    reply: OpeningReply | None = None
    try:
        for ask, answer in script:
            assert (flow.send(reply) if reply is not None else next(flow)) == ask
            reply = answer
        sent = flow.send(reply) if reply is not None else next(flow)
    except StopIteration as stop:
        peer = stop.value
        assert isinstance(peer, Peer)
        return peer
    raise AssertionError(f"one question more: {sent}")


@pytest.mark.parametrize(
    ("more", "name", "problem"),
    [
        ({"serverInfo": {"name": "hister"}}, "hister", "serverInfo.version was read as empty"),
        ({"serverInfo": None}, None, None),
        ({"instructions": ["a"]}, "s", "instructions was left out"),
        ({"capabilities": {"tools": [{}]}}, "s", "capabilities.tools was read as an empty object"),
        ({"capabilities": []}, None, None),
        ({"protocolVersion": 20250618}, None, None),
    ],
)
def test_negotiation_reads_a_handshake_that_deviates_and_names_it(
    more: Any, name: str | None, problem: str | None
) -> None:
    """Name and instructions are for display; what decides about the connection must be there."""
    reply = initialize_result(D, **more)
    if problem is None:
        with pytest.raises(ConnectFailed, match="answer to initialize cannot be read"):
            run(DUAL, [(probe(), SILENCE), (handshake(), reply)])
        return
    peer = run(DUAL, [(probe(), SILENCE), (handshake(), reply)])
    assert peer.info is not None
    assert peer.info.name == name
    assert peer.capabilities == t.ServerCapabilities(tools=t.ToolsCapability())
    assert [line[: len(problem)] for line in reply.problems.values()] == [problem]


@pytest.mark.requirement(
    "PROBE-1", "PROBE-2", "PROBE-3", "PROBE-4", "PROBE-10", "ERR-11", "LIFE-2", "LIFE-5", "LIFE-24"
)
@pytest.mark.requirement("VER-17", "VER-18", "VER-19", "RPC-31")
@pytest.mark.parametrize(("config", "script", "outcome"), OPENINGS)
def test_negotiation_conversation_has_expected_outcome(
    config: Config, script: list[tuple[OpeningRequest, OpeningReply]], outcome: str
) -> None:
    if outcome in DIALECTS:
        assert run(config, script).dialect is DIALECTS[outcome]
    else:
        with pytest.raises(ConnectFailed) as caught:
            run(config, script)
        assert outcome in str(caught.value)


# HTTP statuses, of which some tell nothing about revisions.
HTTP: list[Any] = [
    pytest.param(error_reply(-32601, status=404), None, id="404 with -32601 may be legacy"),
    *(
        pytest.param(error_reply(code, status=404), "refused server/discover", id=f"404, {code}")
        for code in (-32020, -32021)
    ),
    pytest.param(error_reply(-32601, status=200), None, id="200 with -32601 is legacy"),
    pytest.param(error_reply(-32600, status=400), None, id="400"),
    pytest.param(OpeningReply(status=400), None, id="400, empty"),
    pytest.param(OpeningReply(status=404), None, id="404, empty"),
    pytest.param(OpeningReply(status=405), None, id="405, empty"),
    *(
        pytest.param(OpeningReply(status=s), f"(HTTP status {s})", id=f"{s}")
        for s in (0, 401, 403, 429, 500, 503)
    ),
    pytest.param(
        error_reply(-32603, status=500),
        "refused server/discover: no (-32603) (HTTP status 500)",
        id="500, body",
    ),
]


@pytest.mark.parametrize(("reply", "words"), HTTP)
def test_negotiation_http_status_of_probe_decides_next_step(
    reply: OpeningReply, words: str | None
) -> None:
    if words is None:
        assert (
            run(DUAL, [(probe(), reply), (handshake(), initialize_result(D))]).dialect
            is DIALECTS[D]
        )
    else:
        with pytest.raises(ConnectFailed) as caught:
            run(DUAL, [(probe(), reply)])
        assert words in str(caught.value)


def test_negotiation_http_failure_is_in_message() -> None:
    failure = RemoteProtocolError("HTTP status 404")
    with pytest.raises(ConnectFailed, match=r"^HTTP status 404$") as caught:
        run(LEGACY, [(handshake(), OpeningReply(status=404, failure=failure))])
    assert caught.value.__cause__ is failure
    with pytest.raises(
        ConnectFailed, match=r"does not speak 2026-07-28 \(HTTP status 404\)\. Allow"
    ):
        run(MODERN, [(probe(), OpeningReply(status=404, failure=failure))])


def test_negotiation_http_status_of_handshake_decides_next_step() -> None:
    with pytest.raises(ConnectFailed, match=r"did not answer initialize \(HTTP status 503\)"):
        run(LEGACY, [(handshake(), OpeningReply(status=503))])


@pytest.mark.requirement("VER-16")
@pytest.mark.parametrize(
    ("verdict", "script", "outcome"),
    [
        (E, [], E),
        (D, [(handshake(D), initialize_result(D))], D),
        (A, [(handshake(A), initialize_result(A))], A),
    ],
)
def test_negotiation_known_peer_saves_probe(verdict: str, script: Any, outcome: str) -> None:
    peer = Peer(DIALECTS[verdict], t.ServerCapabilities())
    assert run(DUAL, script, peer).dialect.version == outcome


REFUSALS = [
    error_reply(-32022, E),
    error_reply(-32020, status=400),
    error_reply(-32601),
    error_reply(-32602),
    initialize_result(E),
    ODD,
    OpeningReply(status=405, failure=RemoteProtocolError("HTTP status 405")),
]


@pytest.mark.requirement("VER-16")
@pytest.mark.parametrize("refusal", REFUSALS)
def test_negotiation_known_peer_was_upgraded_falls_back_to_probe(refusal: OpeningReply) -> None:
    verdict = Peer(DIALECTS[A], t.ServerCapabilities())
    script = [(handshake(A), refusal), (probe(), discover_result(E))]
    assert run(DUAL, script, verdict).dialect is DIALECTS[E]


@pytest.mark.parametrize(
    ("script", "words"),
    [
        ([(handshake(A), error_reply(-32602)), (probe(), error_reply(-32602))], "d initialize: no"),
        ([(handshake(A), ODD), (probe(), SILENCE)], "initialize cannot be read"),
        (
            [(handshake(A), error_reply(-32602)), (probe(), error_reply(-32601, status=404))],
            "refused server/discover: no",
        ),
        ([(handshake(A), error_reply(-32601)), (probe(), discover_result(D))], "d initialize"),
        # These tell nothing about the revisions of the server, so it is not probed.
        ([(handshake(A), SILENCE)], "did not answer initialize"),
        ([(handshake(A), OpeningReply(status=503))], "HTTP status 503"),
        (
            [(handshake(A), OpeningReply(status=0, failure=RemoteProtocolError("refused")))],
            "refused",
        ),
    ],
)
def test_negotiation_known_peer_that_fails_has_its_error(script: Any, words: str) -> None:
    with pytest.raises(ConnectFailed, match=words):
        run(DUAL, script, Peer(DIALECTS[A], t.ServerCapabilities()))


def test_negotiation_known_peer_refused_without_stateless_revision_fails() -> None:
    verdict = Peer(DIALECTS[A], t.ServerCapabilities())
    with pytest.raises(ConnectFailed, match="refused initialize"):
        run(LEGACY, [(handshake(A), error_reply(-32601))], verdict)


@pytest.mark.parametrize(
    ("known", "script", "needs_handshake"),
    [
        (None, [discover_result(E)], False),
        (None, [error_reply(-32601), initialize_result(D)], True),
        (None, [error_reply(-32601, status=404), initialize_result(D)], True),
        (None, [discover_result(D), initialize_result(D)], True),
        (None, [SILENCE, initialize_result(D)], True),
        (D, [initialize_result(D)], False),  # nothing was sent to find out
        (D, [error_reply(-32601), discover_result(E)], False),
        (E, [], False),
    ],
)
def test_negotiation_knows_whether_server_needs_handshake(
    known: str | None, script: list[OpeningReply], needs_handshake: bool
) -> None:
    peer = None if known is None else Peer(DIALECTS[known], t.ServerCapabilities())
    opener = VersionNegotiation(DUAL, peer)
    assert not opener.needs_handshake
    found = opener.advance(None, 1, 0.0)
    for id, reply in enumerate(script, 2):
        assert isinstance(found, OpeningRequest)
        found = opener.advance(reply, id, 0.0)
    assert isinstance(found, Peer)
    assert opener.needs_handshake is needs_handshake


def test_negotiation_late_response_leaves_need_of_handshake_open() -> None:
    opener = VersionNegotiation(DUAL, None)
    opener.advance(None, 7, 0.0)
    opener.time_out()
    opener.advance(SILENCE, 8, 15.0)
    assert opener.accept_late_response(7, Raw(discover_result(E).result or b""))
    assert isinstance(opener.advance(initialize_result(D), 9, 16.0), Peer)
    assert not opener.needs_handshake


@pytest.mark.requirement("VER-2")
def test_negotiation_other_stateless_revision_tried_once() -> None:
    """There is only one stateless revision yet, so the test defines another."""
    older = Dialect(B, stateful=False, result_type="complete")
    config = client_config()
    config.stateless, config.stateful = (DIALECTS[E], older), (DIALECTS[A],)
    again = OpeningRequest("server/discover", older, 15.0)
    found = run(config, [(probe(), error_reply(-32022, B)), (again, discover_result(B))])
    assert found.dialect is older
    with pytest.raises(ConnectFailed, match="lists 2025-03-26 but refuses it"):
        run(config, [(probe(), error_reply(-32022, B)), *[(again, error_reply(-32022, B))] * 2])


SERVER_CAPABILITIES = t.ServerCapabilities(tools=t.ToolsCapability())


@pytest.mark.requirement("META-4", "META-11")
@pytest.mark.parametrize(
    ("info", "known"),
    [
        ({"name": "s", "version": "1", "title": "S"}, t.Implementation("s", "1", "S")),
        ({"name": "s"}, t.Implementation("s", "")),
        ({"name": 1}, None),
        ({}, None),
        ("s", None),
        (None, None),
    ],
)
def test_negotiation_peer_is_read_from_discovery(info: Any, known: t.Implementation | None) -> None:
    reply = discover_result(E, _meta={META_SERVER: info}, instructions="be kind")
    assert run(DUAL, [(probe(), reply)]) == Peer(
        DIALECTS[E], SERVER_CAPABILITIES, known, None, "be kind"
    )


def test_negotiation_discovery_without_info_is_accepted() -> None:
    assert run(DUAL, [(probe(), discover_result(E))]) == Peer(DIALECTS[E], SERVER_CAPABILITIES)


@pytest.mark.requirement("LIFE-3")
def test_negotiation_peer_is_read_from_handshake() -> None:
    found = run(LEGACY, [(handshake(), initialize_result(C, instructions="be kind"))])
    assert found == Peer(
        DIALECTS[C], SERVER_CAPABILITIES, t.Implementation("s", "1"), None, "be kind"
    )


@pytest.mark.requirement("LIFE-1", "LIFE-2")
def test_negotiation_request_params() -> None:
    assert opening_params(probe(), DUAL) == t.DiscoverParams()
    for version in STATEFUL:
        assert opening_params(handshake(version), DUAL) == t.InitializeParams(
            protocol_version=version, capabilities=CLIENT_CAPABILITIES, client_info=CLIENT_INFO
        )


@pytest.mark.requirement("LIFE-6")
def test_negotiation_error_has_cause() -> None:
    with pytest.raises(ConnectFailed) as caught:
        run(LEGACY, [(handshake(), error_reply(-32602, C, B))])
    cause = caught.value.__cause__
    assert isinstance(cause, PeerError)
    assert cause.data == {"supported": [C, B], "requested": E}


# -- Under way -------------------------------------------------------------------------------------


def test_negotiation_has_deadline_and_id_of_request() -> None:
    opener = VersionNegotiation(DUAL, None)
    assert progress_of(opener) == (None, None, False)
    assert opener.advance(None, 7, 10.0) == probe()
    assert progress_of(opener) == (probe(), 25.0, True)
    assert opener.time_out() == 7
    assert opener.advance(SILENCE, 8, 20.0) == handshake()
    assert progress_of(opener) == (handshake(), None, False)
    found = opener.advance(initialize_result(D), 9, 30.0)
    assert isinstance(found, Peer)
    assert progress_of(opener) == (None, None, False)


def progress_of(opener: VersionNegotiation) -> tuple[OpeningRequest | None, float | None, bool]:
    return opener.request, opener.deadline, opener.probing


@pytest.mark.parametrize("answered", [True, False])
def test_negotiation_late_response_of_timed_out_probe(answered: bool) -> None:
    """Only the probe's own id is accepted late, and it counts once the handshake has failed."""
    opener = VersionNegotiation(DUAL, None)
    opener.advance(None, 7, 0.0)
    assert not opener.accept_late_response(7, Raw(b"{}"))  # it has not timed out
    opener.time_out()
    opener.advance(SILENCE, 8, 5.0)
    assert not opener.accept_late_response(8, Raw(b"{}"))
    assert not opener.accept_late_response("7", Raw(b"{}"))
    assert opener.accept_late_response(
        7, Raw(discover_result(E).result or b"") if answered else UNSET
    )
    opener.time_out()  # of the handshake, whose late result is not used
    assert not opener.accept_late_response(8, Raw(b"{}"))
    if answered:
        found = opener.advance(error_reply(-32601), 9, 10.0)
        assert isinstance(found, Peer)
        assert found.dialect is DIALECTS[E]
    else:
        with pytest.raises(ConnectFailed):
            opener.advance(error_reply(-32601), 9, 10.0)


@pytest.mark.parametrize(
    ("members", "result", "code", "message"),
    [
        ({"result": {"a": 1}}, {"a": 1}, None, ""),
        ({"error": {"code": -32601, "message": "no"}}, None, -32601, "no"),
        ({"error": "no"}, None, 0, "a malformed error object"),
    ],
)
def test_negotiation_response_becomes_reply(
    members: Any, result: Any, code: int | None, message: str
) -> None:
    reply = reply_from(decode(encoded({"jsonrpc": "2.0", "id": 1} | members)))
    assert (json.loads(bytes(reply.result)) if reply.result is not None else None) == result
    assert (reply.error.code if reply.error is not None else None) == code
    assert message in str(reply.error)
    assert (reply.status, reply.late) == (None, None)


@pytest.mark.parametrize(
    "refusals",
    [
        [error_reply(-32021)],
        [error_reply(-32020, status=400)],
        [error_reply(-32020), error_reply(-32020)],
        [error_reply(-32601, status=404), error_reply(-32601, status=404)],
    ],
)
def test_negotiation_rejected_by_server_leaves_nothing_to_remember(
    refusals: list[OpeningReply],
) -> None:
    opener = VersionNegotiation(client_config(), None)
    opener.advance(None, 1, 0.0)
    assert opener.probing
    for id, refusal in enumerate(refusals[:-1], 2):
        assert isinstance(opener.advance(refusal, id, 0.0), OpeningRequest)
    with pytest.raises(ConnectFailed, match="refused server/discover"):
        opener.advance(refusals[-1], 9, 0.0)
    assert (opener.probing, opener.request, opener.needs_handshake) == (False, None, False)


def test_negotiation_known_peer_of_other_revision_ignored() -> None:
    config = client_config(D)
    known = Peer(DIALECTS[E], t.ServerCapabilities())
    assert run(config, [(handshake(), initialize_result(D))], known).dialect is DIALECTS[D]


@pytest.mark.requirement("RPC-32")
def test_negotiation_incomplete_discovery_result_ignored() -> None:
    script = [(probe(), discover_result(E, resultType="odd")), (handshake(), initialize_result(D))]
    assert run(client_config(), script).dialect is DIALECTS[D]


@pytest.mark.parametrize(
    ("reply", "is_refusal"),
    [
        (initialize_result(B), True),
        (error_reply(-32602), True),
        (error_reply(-32601), True),
        (error_reply(-32022, E), True),
        (error_reply(-32603), False),
        (error_reply(-32000), False),
        (error_reply(-32602, status=503), False),
        (OpeningReply(status=404), False),
        (OpeningReply(failure=RemoteProtocolError("HTTP status 500"), status=500), False),
        (OpeningReply(), False),
    ],
)
def test_only_an_answer_about_revisions_is_a_refused_one(
    reply: OpeningReply, is_refusal: bool
) -> None:
    """A server that fails, or that isn't there, may speak it."""
    negotiation = negotiate_version(client_config(D))
    next(negotiation)
    with pytest.raises(ConnectFailed) as caught:
        negotiation.send(reply)
    assert isinstance(caught.value, RevisionRefused) is is_refusal


def test_paused_timeout_begins_again() -> None:
    """It is paused while a user logs in. A request without a timeout has none."""
    for timeout, expected in ((7.0, [17.0, None, 107.0]), (None, [None, None, None])):
        opener = VersionNegotiation(client_config(D, initialize_timeout=timeout), None)
        opener.pause_timeout(1.0)
        deadlines = [opener.deadline]
        opener.advance(None, 1, 10.0)
        deadlines.append(opener.deadline)
        for now in (None, 100.0):
            opener.pause_timeout(now)
            deadlines.append(opener.deadline)
        assert deadlines == [None, *expected]
