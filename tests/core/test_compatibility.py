"""Compatibility: all pairs of revisions, kinds of servers, capabilities, and mixed connections."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec import Raw

from mcp_core import (
    ALL,
    DIALECTS,
    Config,
    ConnectFailed,
    Connection,
    ConnectionClosed,
    LocalProtocolError,
    Peer,
    PeerError,
    PeerReady,
    RequestCancelled,
    RequestReceived,
    Role,
    State,
)
from mcp_core import types as t
from tests.harness.jsonrpc import (
    CLIENT_CAPABILITIES,
    CLIENT_INFO,
    INITIALIZED,
    META_CAPABILITIES,
    SERVER_CAPABILITIES,
    SERVER_INFO,
    STATEFUL,
    VERSIONS,
    A,
    B,
    C,
    D,
    E,
    Message,
    assert_closed,
    assert_error,
    call,
    cancelled,
    client_config,
    error,
    initialize,
    only_event,
    ping,
    request,
    result,
    server_config,
    single,
    stateless_request,
    type_names,
)
from tests.harness.messages.pair import ConnectionPair
from tests.harness.wire.connection import ConnectionHarness, opened

SERVER, CLIENT = Role.SERVER, Role.CLIENT
CALL = t.CallToolParams(name="t", arguments=Raw(b'{"a":1}'))


# -- Two eras on one connection --------------------------------------------------------------------


@pytest.mark.requirement(
    "VER-4", "VER-7", "VER-8", "VER-9", "VER-14", "META-9", "CAP-5", "PROBE-12"
)
@pytest.mark.parametrize("version", STATEFUL)
def test_stateless_requests_beside_session_keep_their_revision(version: str) -> None:
    """One server connection carries a session and stateless requests, as for two clients."""
    harness = ConnectionHarness(Connection(SERVER, server_config()))
    assert (
        only_event(
            harness.receive(stateless_request(1, "tools/call", {"name": "t"})), RequestReceived
        ).peer.dialect.version
        == E
    )
    assert (
        harness.response_to(stateless_request("probe", "server/discover"))["result"]["resultType"]
        == "complete"
    )
    assert harness.conn.state is State.NEW
    assert harness.response_to(initialize(version, "i"))["result"]["protocolVersion"] == version
    assert (
        only_event(
            harness.receive(stateless_request(2, "tools/call", {"name": "t"})), RequestReceived
        ).peer.dialect.version
        == E
    )
    only_event(harness.receive(INITIALIZED), PeerReady)
    session = only_event(harness.receive(call(3, version)), RequestReceived)
    stateless = only_event(
        harness.receive(stateless_request(4, "tools/call", {"name": "t"})), RequestReceived
    )
    assert (session.peer.dialect.version, stateless.peer.dialect.version) == (version, E)
    # A method that a revision lacks is missing for requests of that revision only.
    assert_error(harness.error_response_to(stateless_request(5, "ping")), -32601, 5)
    assert harness.response_to(ping(6)) == result(6)
    assert_error(harness.error_response_to(request(7, "server/discover")), -32601, 7)
    assert (
        "supportedVersions"
        in harness.response_to(stateless_request(8, "server/discover"))["result"]
    )
    for id in (4, 3, 2, 1):
        harness.conn.send_result(id, t.CallToolResult(content=[]))
    answers = harness.take_sent()
    assert [message["id"] for message in answers] == [4, 3, 2, 1]
    assert ["resultType" in message["result"] for message in answers] == [True, False, True, True]
    # All requests of a connection share one space of ids.
    only_event(harness.receive(call(9, version)), RequestReceived)
    assert_error(
        harness.error_response_to(stateless_request(9, "tools/call", {"name": "t"})),
        -32600,
        9,
        "still in use",
    )
    assert harness.receive(cancelled(9)) == [RequestCancelled(9)]


# -- Pairs of client and server --------------------------------------------------------------------

LEGACY, BOTH = STATEFUL, ALL
MODERN = (E,)

# revisions of the client and of the server; the negotiated one, or part of the client's error
MATRIX: list[Any] = [
    pytest.param(BOTH, BOTH, E, id="dual, dual"),
    pytest.param(BOTH, MODERN, E, id="dual, modern"),
    pytest.param(BOTH, LEGACY, D, id="dual, legacy"),
    pytest.param(MODERN, BOTH, E, id="modern, dual"),
    pytest.param(MODERN, MODERN, E, id="modern, modern"),
    pytest.param(MODERN, LEGACY, "no common revision", id="modern, legacy"),
    pytest.param(LEGACY, BOTH, D, id="legacy, dual"),
    pytest.param(LEGACY, MODERN, "refused initialize", id="legacy, modern"),
    pytest.param(LEGACY, LEGACY, D, id="legacy, legacy"),
    *(pytest.param((version,), BOTH, version, id=f"{version}, dual") for version in VERSIONS),
    *(pytest.param(BOTH, (version,), version, id=f"dual, {version}") for version in VERSIONS),
    pytest.param((E, A), (D, C, B, A), A, id="the older of two"),
    pytest.param((E, D), (A,), "no common revision", id="nothing mutual, probe"),
    pytest.param((D,), (A,), "answered with revision 2024-11-05", id="nothing mutual, legacy"),
    pytest.param((B, A), (D, C, B), B, id="in the middle"),
]


@pytest.mark.requirement(
    "LIFE-2", "LIFE-4", "LIFE-5", "LIFE-7", "LIFE-24", "VER-1", "VER-14", "VER-15", "VER-17"
)
@pytest.mark.requirement("PROBE-1", "PROBE-2", "PROBE-4", "PROBE-12")
@pytest.mark.parametrize(("client", "server", "outcome"), MATRIX)
def test_client_and_server_revisions_negotiate_newest_common(
    client: tuple[str, ...], server: tuple[str, ...], outcome: str
) -> None:
    pair = ConnectionPair(client=client_config(*client), server=server_config(*server))
    if outcome in DIALECTS:
        pair.open()
        assert pair.versions == (outcome, outcome if DIALECTS[outcome].stateful else None)
        assert pair.client.peer is not None
        assert pair.client.peer.info == SERVER_INFO
        pair.result(pair.request("tools/call", CALL), t.CallToolResult(content=[]))
    else:
        pair.client.open(0.0)
        assert_closed(pair.deliver_all()[CLIENT], error=ConnectFailed, text=outcome)
        assert INITIALIZED not in [message for _, message in pair.transcript]


@pytest.mark.requirement("VER-15")
def test_stateless_server_rejects_initialize_with_its_revisions() -> None:
    pair = ConnectionPair(client=client_config(D), server=server_config(E))
    pair.client.open(0.0)
    found = pair.deliver_all()[CLIENT]
    (closed,) = found
    assert isinstance(closed, ConnectionClosed)
    assert closed.error is not None
    cause = closed.error.__cause__
    assert isinstance(cause, PeerError)
    assert cause.data == {"supported": [E]}


@pytest.mark.requirement("CAP-1", "CAP-2")
@pytest.mark.parametrize("version", VERSIONS)
def test_opened_pair_knows_peer_capabilities_and_info(version: str) -> None:
    """Each side knows what the other declared, as far as the revision can say it."""
    offers = t.ServerCapabilities(
        tools=t.ToolsCapability(list_changed=True),
        completions={},
        tasks=t.TasksCapability(list={}),
        extensions={"com.example/x": {}},
        experimental={"e": {"f": 1}},
    )
    wants = t.ClientCapabilities(
        roots=t.RootsCapability(list_changed=True),
        sampling=t.SamplingCapability(tools={}),
        elicitation=t.ElicitationCapability(url={}),
        tasks=t.TasksCapability(cancel={}),
        extensions={"com.example/x": {}},
        experimental={"e": {"f": 1}},
    )
    pair = ConnectionPair(
        client=client_config(version, capabilities=wants),
        server=server_config(version, capabilities=offers),
    ).open()
    received = pair.request("tools/list")
    assert pair.client.peer is not None
    known, seen = received.peer.capabilities, pair.client.peer.capabilities
    assert (received.peer.info, pair.client.peer.info) == (CLIENT_INFO, SERVER_INFO)
    assert known == DIALECTS[version].fit(wants)
    assert seen == DIALECTS[version].fit(offers)
    place = VERSIONS.index(version)
    assert [seen.completions is not None, seen.tasks is not None, seen.extensions is not None] == [  # type: ignore[union-attr]
        place >= 1,
        version == D,
        version == E,
    ]
    assert known.experimental == seen.experimental == {"e": {"f": 1}}


@pytest.mark.requirement("CAP-3", "CAP-6", "CAP-7", "LIFE-13", "LIFE-14", "LIFE-15")
@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("method", ["tools/call", "prompts/get", "resources/read"])
def test_undeclared_server_capability_is_not_used(version: str, method: str) -> None:
    nothing = t.ServerCapabilities()
    pair = ConnectionPair(
        client=client_config(version), server=server_config(version, capabilities=nothing)
    ).open()
    with pytest.raises(LocalProtocolError, match="did not declare the capability"):
        pair.client.send_request(method, {})
    assert pair.is_idle()
    # A client that sends it all the same gets an error response.
    asking: Message = (
        request(9, method) if DIALECTS[version].stateful else stateless_request(9, method)
    )
    assert type_names(pair.deliver([asking], by=CLIENT)) == ["MessageRejected"]
    assert_error(single(pair.take(SERVER)), -32601, 9, "does not offer")


@pytest.mark.requirement("CAP-3", "CAP-7")
@pytest.mark.parametrize("version", STATEFUL)
def test_undeclared_client_capability_is_not_used(version: str) -> None:
    nothing = t.ClientCapabilities()
    pair = ConnectionPair(
        client=client_config(version, capabilities=nothing), server=server_config(version)
    ).open()
    with pytest.raises(LocalProtocolError, match="the client did not declare the capability roots"):
        pair.server.send_request("roots/list")
    with pytest.raises(LocalProtocolError, match=r"roots\.list_changed, which we did not declare"):
        pair.client.send_notification("notifications/roots/list_changed")
    assert type_names(pair.deliver([request(9, "roots/list")], by=SERVER)) == ["MessageRejected"]
    assert_error(single(pair.take(CLIENT)), -32601, 9, "does not offer")


# -- Other servers: the table of a client's era on a pipe ------------------------------------------


def greeting(version: str) -> Message:
    return {
        "protocolVersion": version,
        "capabilities": {},
        "serverInfo": {"name": "s", "version": "1"},
    }


def discovery(*versions: str) -> Message:
    return {"resultType": "complete", "supportedVersions": list(versions), "capabilities": {}}


def unsupported(*versions: str) -> Any:
    return lambda id: error(id, -32022, "no", data={"supported": list(versions), "requested": E})


SILENCE: Any = None

# the client's revisions, the response to each request, the requests, the outcome
SERVERS: list[Any] = [
    pytest.param(BOTH, [lambda id: result(id, discovery(E))], ["server/discover"], E, id="modern"),
    pytest.param(
        BOTH,
        [lambda id: result(id, discovery(D)), lambda id: result(id, greeting(D))],
        ["server/discover", "initialize"],
        D,
        id="discovers legacy",
    ),
    pytest.param(
        BOTH,
        [lambda id: result(id, discovery("x"))],
        ["server/discover"],
        None,
        id="discovers nothing",
    ),
    pytest.param(
        BOTH,
        [result, lambda id: result(id, greeting(A))],
        ["server/discover", "initialize"],
        A,
        id="empty result",
    ),
    pytest.param(
        BOTH,
        [lambda id: error(id, -32601), lambda id: result(id, greeting(C))],
        ["server/discover", "initialize"],
        C,
        id="unknown method",
    ),
    pytest.param(
        BOTH,
        [lambda id: error(id, -32602), lambda id: result(id, greeting(C))],
        ["server/discover", "initialize"],
        C,
        id="invalid params",
    ),
    pytest.param(
        BOTH,
        [lambda id: error(id, -32020), lambda id: result(id, greeting(C))],
        ["server/discover", "initialize"],
        C,
        id="-32020 without HTTP",
    ),
    pytest.param(
        BOTH,
        [lambda id: error(id, -32020), lambda id: error(id, -32020)],
        ["server/discover", "initialize"],
        None,
        id="-32020 to both",
    ),
    pytest.param(
        BOTH,
        [SILENCE, lambda id: result(id, greeting(B))],
        ["server/discover", "initialize"],
        B,
        id="silence",
    ),
    pytest.param(
        BOTH,
        [unsupported(D), lambda id: result(id, greeting(D))],
        ["server/discover", "initialize"],
        D,
        id="-32022, legacy",
    ),
    pytest.param(BOTH, [unsupported("x")], ["server/discover"], None, id="-32022, nothing"),
    pytest.param(
        BOTH, [unsupported(E)] * 2, ["server/discover"] * 2, None, id="-32022, contradiction"
    ),
    pytest.param(
        BOTH,
        [SILENCE, unsupported(E), lambda id: result(id, discovery(E))],
        ["server/discover", "initialize", "server/discover"],
        E,
        id="modern after all",
    ),
    pytest.param(
        BOTH,
        [SILENCE, lambda id: error(id, -32600)],
        ["server/discover", "initialize"],
        None,
        id="neither",
    ),
    pytest.param(
        MODERN,
        [lambda id: error(id, -32601)],
        ["server/discover"],
        None,
        id="modern client, legacy server",
    ),
    pytest.param(MODERN, [SILENCE], ["server/discover"], None, id="modern client, silence"),
    pytest.param((D,), [lambda id: result(id, greeting(D))], ["initialize"], D, id="legacy client"),
    pytest.param((D,), [SILENCE], ["initialize"], None, id="legacy client, silence"),
    pytest.param(
        (D,),
        [lambda id: result(id, greeting(C))],
        ["initialize"],
        None,
        id="legacy client, another",
    ),
]


@pytest.mark.requirement(
    "PROBE-1", "PROBE-2", "PROBE-3", "PROBE-10", "VER-2", "VER-16", "VER-17", "VER-18"
)
@pytest.mark.parametrize(("versions", "answers", "questions", "outcome"), SERVERS)
def test_client_with_any_server_behaviour_opens_or_fails(
    versions: tuple[str, ...], answers: list[Any], questions: list[str], outcome: str | None
) -> None:
    """The client asks no more than the row says, and a known peer needs no probe."""
    harness = ConnectionHarness(
        Connection(CLIENT, client_config(*versions, initialize_timeout=30.0))
    )
    harness.conn.open(0.0)
    received: list[str] = []
    events: list[Any] = []
    ids = set()
    for answer in answers:
        question = single(harness.take_sent())
        received.append(question["method"])
        ids.add(question["id"])
        if answer is SILENCE:
            deadline = harness.conn.next_deadline()
            assert deadline is not None
            events += harness.advance_time(deadline - harness.now)
        else:
            events += harness.receive(answer(question["id"]))
    assert received == questions
    assert len(ids) == len(questions)
    if outcome is None:
        assert_closed(events, error=ConnectFailed)
        assert harness.take_sent() == []
        return
    peer = only_event(events, PeerReady).peer
    assert peer.dialect.version == outcome
    assert harness.take_sent() == ([INITIALIZED] if peer.dialect.stateful else [])
    # The next connection needs no probe.
    again = ConnectionHarness(Connection(CLIENT, client_config(*versions)))
    again.conn.open(0.0, known_peer=peer)
    assert [message["method"] for message in again.take_sent()] == (
        ["initialize"] if peer.dialect.stateful else []
    )


@pytest.mark.parametrize("config", [client_config(), client_config(E)])
def test_known_peer_saves_the_probe(config: Config) -> None:
    pair = ConnectionPair(client=config)
    pair.open(known_peer=Peer(DIALECTS[E], SERVER_CAPABILITIES, SERVER_INFO))
    assert pair.transcript == []
    pair.result(pair.request("tools/call", CALL), t.CallToolResult(content=[]))


def test_stateless_server_uses_capabilities_of_each_request() -> None:
    """No capabilities are kept from one stateless request to the next."""
    harness = opened(SERVER, E)
    offers: list[Message] = [{"elicitation": {}}, {}]
    seen = []
    for id, offered in enumerate(offers):
        received = stateless_request(
            id, "tools/call", {"name": "t"}, **{META_CAPABILITIES: offered}
        )
        seen.append(only_event(harness.receive(received), RequestReceived).peer.capabilities)
    assert seen == [
        t.ClientCapabilities(elicitation=t.ElicitationCapability()),
        t.ClientCapabilities(),
    ]
    assert CLIENT_CAPABILITIES not in seen
