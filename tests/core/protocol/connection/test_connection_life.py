"""One connection: opening and closing."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec import UNSET

from mcp_core import (
    DIALECTS,
    NEED_DATA,
    ConnectFailed,
    Connection,
    ConnectionClosed,
    ConnectionLost,
    ErrorReceived,
    Event,
    Fault,
    LocalProtocolError,
    MessageRejected,
    Peer,
    PeerReady,
    RemoteProtocolError,
    RequestCancelled,
    RequestReceived,
    Role,
    State,
)
from mcp_core import types as t
from tests.core.protocol.connection.connection_setup import (
    CLIENT,
    DISCOVER_RESULT,
    EMPTY,
    ERROR,
    INITIALIZE_RESULT,
    SERVER,
    initialize_response,
    opening_client,
)
from tests.harness.jsonrpc import (
    INITIALIZED,
    SERVER_CAPABILITIES,
    STATEFUL,
    VERSIONS,
    D,
    E,
    assert_closed,
    assert_error,
    assert_rejected,
    call,
    cancelled,
    client_config,
    error,
    only_event,
    ping,
    request,
    result,
    server_config,
    single,
    type_names,
)
from tests.harness.wire.connection import (
    ConnectionHarness,
    client,
    opened,
    server,
)

# -- Opening ---------------------------------------------------------------------------------------


def test_open_twice_or_by_server_raises() -> None:
    with pytest.raises(LocalProtocolError, match="only a client"):
        Connection(SERVER, server_config()).open(0.0)
    harness, _ = opening_client()
    with pytest.raises(LocalProtocolError, match="only once"):
        harness.conn.open(0.0)


@pytest.mark.requirement("LIFE-1", "LIFE-7", "LIFE-8")
@pytest.mark.parametrize("version", STATEFUL)
def test_client_handshake_ends_with_peer_ready(version: str) -> None:
    """`initialized` goes out at once, and elicitation is declared from 2025-06-18 on only."""
    harness, sent = opening_client(version)
    assert not harness.probing()
    assert harness.conn.next_deadline() is None
    assert sent["method"] == "initialize"
    assert sent["params"]["protocolVersion"] == version
    assert sent["params"]["clientInfo"] == {"name": "client", "version": "1"}
    assert ("elicitation" in sent["params"]["capabilities"]) == (version in VERSIONS[2:])
    peer = only_event(
        harness.receive(result(sent["id"], INITIALIZE_RESULT | {"protocolVersion": version})),
        PeerReady,
    ).peer
    assert (
        peer
        == harness.conn.peer
        == Peer(DIALECTS[version], t.ServerCapabilities(), t.Implementation("s", "1"))
    )
    assert harness.take_sent() == [INITIALIZED]
    assert harness.conn.state is State.READY


def test_client_probe_ends_with_peer_ready() -> None:
    harness, sent = opening_client()
    assert harness.probing()
    assert harness.conn.next_deadline() == 115.0
    assert sent["method"] == "server/discover"
    assert (
        only_event(harness.receive(result(sent["id"], DISCOVER_RESULT)), PeerReady).peer.dialect
        is DIALECTS[E]
    )
    assert not harness.probing()
    assert harness.conn.next_deadline() is None
    assert harness.take_sent() == []


@pytest.mark.requirement("PROBE-2")
def test_client_probe_timeout_falls_back_to_handshake() -> None:
    """A probe may be ignored by an old server: 15 s of silence start `initialize` with a new id."""
    harness, sent = opening_client()
    assert harness.advance_time(14.9) == []
    assert harness.take_sent() == []
    assert harness.advance_time(0.1) == []
    handshake = single(harness.take_sent())
    assert (handshake["method"], handshake["id"] != sent["id"]) == ("initialize", True)
    assert not harness.probing()
    # The late response to the probe has no effect if the handshake succeeds.
    assert harness.receive(result(sent["id"], DISCOVER_RESULT)) == []
    assert (
        only_event(
            harness.receive(result(handshake["id"], INITIALIZE_RESULT)), PeerReady
        ).peer.dialect
        is DIALECTS[D]
    )


FAILURES: list[Any] = [
    pytest.param(lambda id: error(id, -32601), id="error"),
    pytest.param(lambda id: result(id, {}), id="unreadable"),
    pytest.param(
        lambda id: result(id, INITIALIZE_RESULT | {"protocolVersion": "1"}), id="unknown revision"
    ),
    pytest.param(lambda id: result(id) | error(id), id="no answer at all"),
    pytest.param(lambda id: None, id="silence"),
]


@pytest.mark.requirement("PROBE-2", "LIFE-5", "LIFE-24")
@pytest.mark.parametrize("fails", FAILURES)
@pytest.mark.parametrize("modern_after_all", [True, False])
def test_client_late_probe_result_used_if_handshake_fails(
    fails: Any, modern_after_all: bool
) -> None:
    """A slow stateless server may answer the probe and reject the handshake: it gets its chance."""
    harness, sent = opening_client(initialize_timeout=30.0)
    harness.advance_time(15.0)
    handshake = single(harness.take_sent())
    if modern_after_all:
        assert harness.receive(result(sent["id"], DISCOVER_RESULT)) == []
    else:
        assert harness.receive(error(sent["id"], -32601)) == []
    answer = fails(handshake["id"])
    events: list[Event] = [
        event
        for event in (harness.receive(answer) if answer else harness.advance_time(30.0))
        if not isinstance(event, MessageRejected)
    ]
    if modern_after_all:
        assert only_event(events, PeerReady).peer.dialect is DIALECTS[E]
        assert harness.conn.state is State.READY
    else:
        assert_closed(events, error=ConnectFailed)
        assert harness.conn.state is State.CLOSED
    assert harness.take_sent() == []


@pytest.mark.requirement("ERR-10")
def test_client_handshake_malformed_error_fails_open() -> None:
    harness, sent = opening_client(D)
    odd = {"jsonrpc": "2.0", "id": sent["id"], "error": "no"}
    assert_closed(harness.receive(odd), error=ConnectFailed, text="a malformed error object")


def test_open_with_known_peer_sends_nothing() -> None:
    harness = ConnectionHarness(Connection(CLIENT, client_config()))
    verdict = Peer(DIALECTS[E], SERVER_CAPABILITIES)
    harness.conn.open(0.0, known_peer=verdict)
    assert only_event(harness.events(), PeerReady).peer is verdict
    assert harness.take_sent() == []
    assert harness.conn.send_request("tools/list") == 1


def test_client_rejects_requests_while_opening() -> None:
    harness, _ = opening_client()
    assert_error(harness.error_response_to(request(1, "roots/list")), -32600, 1)
    harness, _ = opening_client(E)
    assert_rejected(harness.receive(request(1, "roots/list")))
    assert harness.take_sent() == []  # a stateless client sends no responses


# -- Endings ---------------------------------------------------------------------------------------


@pytest.mark.requirement("LIFE-17", "LIFE-24")
@pytest.mark.parametrize("role", Role)
@pytest.mark.parametrize("new", [True, False])
def test_eof_on_idle_connection_closes_it(role: Role, new: bool) -> None:
    """Both roles report the end once, before and after the handshake, and then ignore input."""
    if new:
        harness = ConnectionHarness(
            Connection(role, server_config() if role is SERVER else client_config())
        )
    else:
        harness = opened(role, D)
    assert_closed(
        harness.receive_eof(),
        error=ConnectionLost,
        text=f"the {role.other.value} closed the connection",
    )
    assert harness.conn.state is State.CLOSED
    assert harness.receive_eof() == []
    assert harness.receive(ping()) == []
    assert harness.take_sent() == []


@pytest.mark.requirement("LIFE-17", "ERR-10")
@pytest.mark.parametrize("version", VERSIONS)
def test_eof_at_client_loses_requests(version: str) -> None:
    harness = client(version)
    for token in ("a", "b"):
        harness.conn.send_request("tools/list", token=token)
    harness.conn.send_cancel(2)
    assert_closed(harness.receive_eof(), "b", error=ConnectionLost)


def test_eof_at_client_cancels_requests_of_server() -> None:
    harness = client()
    harness.receive(request(1, "roots/list"))
    cancelled, closed = harness.receive_eof()
    assert cancelled == RequestCancelled(1, "the connection ended")
    assert isinstance(closed, ConnectionClosed)
    assert not harness.conn.send_result(1, t.ListRootsResult(roots=[]))
    assert harness.take_sent() == []


@pytest.mark.requirement("PROBE-2")
@pytest.mark.parametrize(("versions", "probing"), [((), True), ((D,), False)])
def test_eof_while_opening_is_connect_failed(versions: tuple[str, ...], probing: bool) -> None:
    harness, _ = opening_client(*versions)
    assert_closed(harness.receive_eof(), error=ConnectFailed, text="before it was open")
    # Some servers exit at an unknown method. The driver then restarts them without a probe.
    assert harness.conn.probing is probing
    assert harness.conn.next_deadline() is None
    assert harness.advance_time(100.0) == []


@pytest.mark.parametrize("version", VERSIONS)
def test_eof_at_server_allows_running_requests_to_finish(version: str) -> None:
    """A program that pipes requests into a server closes its output and reads the responses."""
    harness = server(version)
    harness.receive(call(1, version, progressToken=1), call(2, version))
    if DIALECTS[version].stateful:
        harness.conn.send_request("roots/list", related=1, token="t")
    lost = ["t"] if DIALECTS[version].stateful else []
    harness.take_sent()
    assert_closed(harness.receive_eof(), *lost, error=ConnectionLost)
    assert harness.conn.state is State.CLOSING
    assert harness.receive_eof() == []
    with pytest.raises(LocalProtocolError, match="there would be no response"):
        harness.conn.send_request("ping", related=1)
    with pytest.raises(LocalProtocolError, match="the connection is closed"):
        harness.conn.send_notification("notifications/tools/list_changed")
    harness.conn.send_notification(
        "notifications/message", t.LoggingMessageParams(level="info", data=1), related=1
    )
    assert harness.conn.send_progress(1, 1)
    assert harness.conn.send_result(1, EMPTY)
    assert harness.conn.send_error(2, ERROR)
    assert [message.get("id") for message in harness.take_sent()] == [None, None, 1, 2]
    assert harness.conn.in_flight == 0


def test_eof_is_processed_after_waiting_requests() -> None:
    harness = server(in_flight=1)
    assert type_names(harness.receive(call(1), call(2))) == ["RequestReceived"]
    assert harness.receive_eof() == []
    harness.conn.send_result(1, EMPTY)
    assert type_names(harness.events()) == ["RequestReceived", "ConnectionClosed"]


@pytest.mark.requirement("RPC-17")
@pytest.mark.parametrize("role", Role)
def test_eof_inside_line_is_reported(role: Role) -> None:
    harness = opened(role, D)
    harness.receive_bytes(b'{"jsonrpc":"2.0","id":1,"method":"ping"}')
    rejected, closed = harness.receive_eof()
    assert isinstance(rejected, MessageRejected)
    assert "in the middle of a message" in str(rejected.error)
    assert isinstance(closed, ConnectionClosed)
    assert harness.take_sent() == []


def test_close_cancels_and_loses_requests() -> None:
    """Queued messages still go out, followed by one cancellation per open request."""
    harness = server(in_flight=2)
    harness.receive(call(1), call(2), call(3), cancelled(2), ping())
    harness.conn.send_request("roots/list", token="t")
    harness.conn.close()
    cancellation, closed = harness.events()
    assert cancellation == RequestCancelled(1, "the connection ended")
    assert closed == ConnectionClosed(["t"], None)
    assert harness.conn.state is State.CLOSED
    harness.conn.close()
    assert harness.events() == []
    assert not harness.conn.send_result(1, EMPTY)
    assert not harness.conn.send_result(2, EMPTY)
    ping_answer, sent, given_up = harness.take_sent()  # the queue, and the cancellation
    assert ping_answer["id"] == "ping"
    assert (given_up["method"], given_up["params"]["requestId"]) == (
        "notifications/cancelled",
        sent["id"],
    )
    assert harness.receive(ping()) == []
    assert harness.take_sent() == []


def test_close_with_an_answer_sends_it_to_every_unanswered_request() -> None:
    harness = server(in_flight=2)
    harness.receive(call(1), call(2), call(3), cancelled(2))
    harness.conn.send_request("roots/list", token="t", related=1)
    harness.conn.close(answer=t.ErrorData(-32603, "over"))
    assert [type(event) for event in harness.events()] == [RequestCancelled, ConnectionClosed]
    asked, given_up, *answers = harness.take_sent()
    assert given_up["params"]["requestId"] == asked["id"]
    error = {"code": -32603, "message": "over"}
    assert [(each["id"], each["error"]) for each in answers] == [(1, error), (3, error)]
    harness.conn.close(answer=t.ErrorData(-32603, "again"))
    assert (harness.events(), harness.take_sent()) == ([], [])
    assert not harness.conn.send_result(1, EMPTY)


def test_close_after_eof_cancels_running_requests() -> None:
    harness = server()
    harness.receive(call(1))
    assert_closed(harness.receive_eof(), error=ConnectionLost)
    harness.conn.close()
    assert harness.events() == [RequestCancelled(1, "the connection ended")]
    assert harness.conn.state is State.CLOSED
    assert not harness.conn.send_result(1, EMPTY)


def test_close_while_opening_ignores_response() -> None:
    harness, sent = opening_client()
    harness.conn.close()
    assert_closed(harness.events(), error=None)
    assert harness.conn.next_deadline() is None
    assert harness.receive(result(sent["id"], DISCOVER_RESULT)) == []


def test_message_rejected_has_fault_and_id() -> None:
    harness = server()
    event = assert_rejected(harness.receive(request(5, "odd")))
    assert (event.id, event.error.fault, event.error.data) == (5, Fault.METHOD_NOT_FOUND, UNSET)
    assert type(event.error) is RemoteProtocolError
    assert harness.conn.next_event() is NEED_DATA


# -- Another session -------------------------------------------------------------------------------


@pytest.mark.requirement("ERR-10")
@pytest.mark.parametrize("version", STATEFUL)
def test_renew_opens_session_and_keeps_requests(version: str) -> None:
    """The server's requests belong to the old session; ours stay open for the transport."""
    harness = client(version)
    (sent,) = harness.receive(ping("p"), request("r", "roots/list"))
    assert isinstance(sent, RequestReceived)
    harness.take_sent()
    waits = harness.conn.send_request("ping", token="T")
    harness.take_sent()
    harness.conn.reinitialize(harness.now)
    answer = initialize_response(harness, version)
    # Requests of the server are cancelled. Ours stay until the transport reports a failure.
    assert type_names(harness.events()) == ["RequestCancelled"]
    assert harness.conn.has_outgoing(waits)
    harness.conn.send_request("ping")
    (ready,) = harness.receive(answer)
    assert isinstance(ready, PeerReady)
    assert ready.peer is harness.conn.peer
    assert ready.peer.info is not None
    assert ready.peer.info.version == "2"
    assert [message["method"] for message in harness.take_sent()] == [
        "ping",
        "notifications/initialized",
    ]
    assert harness.state() is State.READY
    for _ in range(2):  # the second call does nothing
        harness.conn.receive_failure(waits, ConnectionLost("gone"), harness.now)
    assert not harness.conn.has_outgoing(waits)
    failed = only_event(harness.events(), ErrorReceived)
    assert (failed.token, type(failed.error)) == ("T", ConnectionLost)


@pytest.mark.parametrize("version", STATEFUL)
def test_renewed_sessions_that_deviate_are_reported_once_a_place(version: str) -> None:
    """The text has what a peer chooses, and what was reported is kept as long as the connection."""
    harness = client(version)
    for number in range(5):
        harness.conn.reinitialize(harness.now)
        answer = initialize_response(harness, version)
        answer["result"]["capabilities"] = {"tools": [f"t{number}"] * number or 5}
        answer["result"]["instructions"] = [f"i{number}"] if number else 5
        found = type_names(harness.receive(answer))
        assert found == ["InputProblem"] * (0 if number else 2) + ["PeerReady"]
        harness.take_sent()


def test_renew_failed_closes_connection() -> None:
    harness = client(D)
    harness.conn.send_request("ping", token="T")
    harness.take_sent()
    harness.conn.reinitialize(harness.now)
    (closed,) = harness.receive(error(single(harness.take_sent())["id"], -32000, "not today"))
    assert isinstance(closed, ConnectionClosed)
    assert closed.lost == ["T"]
    assert type(closed.error) is ConnectionLost
    assert str(closed.error) == "no new session: the server refused initialize: not today (-32000)"
