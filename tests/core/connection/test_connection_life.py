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
from tests.core.connection.connection_setup import (
    CLIENT,
    DISCOVER_RESULT,
    EMPTY,
    ERROR,
    INITIALIZE_RESULT,
    SERVER,
    initialize_response,
    opening_client,
)
from tests.core.helpers import (
    INITIALIZED,
    SERVER_CAPABILITIES,
    STATEFUL,
    VERSIONS,
    D,
    E,
    Talk,
    assert_closed,
    assert_error,
    assert_rejected,
    call,
    cancelled,
    client,
    client_config,
    error,
    only_event,
    opened,
    ping,
    request,
    result,
    server,
    server_config,
    single,
    type_names,
)

# -- Opening ---------------------------------------------------------------------------------------


def test_open_twice_or_by_server_raises() -> None:
    with pytest.raises(LocalProtocolError, match="only a client"):
        Connection(SERVER, server_config()).open(0.0)
    talk, _ = opening_client()
    with pytest.raises(LocalProtocolError, match="only once"):
        talk.conn.open(0.0)


@pytest.mark.requirement("LIFE-1", "LIFE-7", "LIFE-8")
@pytest.mark.parametrize("version", STATEFUL)
def test_client_handshake_ends_with_peer_ready(version: str) -> None:
    talk, asked = opening_client(version)
    assert not talk.probing()
    assert talk.conn.next_deadline() is None
    assert asked["method"] == "initialize"
    assert asked["params"]["protocolVersion"] == version
    assert asked["params"]["clientInfo"] == {"name": "client", "version": "1"}
    assert ("elicitation" in asked["params"]["capabilities"]) == (version in VERSIONS[2:])
    peer = only_event(
        talk.receive(result(asked["id"], INITIALIZE_RESULT | {"protocolVersion": version})),
        PeerReady,
    ).peer
    assert (
        peer
        == talk.conn.peer
        == Peer(DIALECTS[version], t.ServerCapabilities(), t.Implementation("s", "1"))
    )
    assert talk.take_sent() == [INITIALIZED]
    assert talk.conn.state is State.READY


def test_client_probe_ends_with_peer_ready() -> None:
    talk, asked = opening_client()
    assert talk.probing()
    assert talk.conn.next_deadline() == 105.0
    assert asked["method"] == "server/discover"
    assert (
        only_event(talk.receive(result(asked["id"], DISCOVER_RESULT)), PeerReady).peer.dialect
        is DIALECTS[E]
    )
    assert not talk.probing()
    assert talk.conn.next_deadline() is None
    assert talk.take_sent() == []


@pytest.mark.requirement("PROBE-2")
def test_client_probe_timeout_falls_back_to_handshake() -> None:
    talk, asked = opening_client()
    assert talk.advance_time(4.9) == []
    assert talk.take_sent() == []
    assert talk.advance_time(0.1) == []
    handshake = single(talk.take_sent())
    assert (handshake["method"], handshake["id"] != asked["id"]) == ("initialize", True)
    assert not talk.probing()
    # The late response to the probe has no effect if the handshake succeeds.
    assert talk.receive(result(asked["id"], DISCOVER_RESULT)) == []
    assert (
        only_event(talk.receive(result(handshake["id"], INITIALIZE_RESULT)), PeerReady).peer.dialect
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
    talk, asked = opening_client(initialize_timeout=30.0)
    talk.advance_time(5.0)
    handshake = single(talk.take_sent())
    if modern_after_all:
        assert talk.receive(result(asked["id"], DISCOVER_RESULT)) == []
    else:
        assert talk.receive(error(asked["id"], -32601)) == []
    answer = fails(handshake["id"])
    events: list[Event] = [
        event
        for event in (talk.receive(answer) if answer else talk.advance_time(30.0))
        if not isinstance(event, MessageRejected)
    ]
    if modern_after_all:
        assert only_event(events, PeerReady).peer.dialect is DIALECTS[E]
        assert talk.conn.state is State.READY
    else:
        assert_closed(events, error=ConnectFailed)
        assert talk.conn.state is State.CLOSED
    assert talk.take_sent() == []


@pytest.mark.requirement("ERR-10")
def test_client_handshake_malformed_error_fails_open() -> None:
    talk, asked = opening_client(D)
    odd = {"jsonrpc": "2.0", "id": asked["id"], "error": "no"}
    assert_closed(talk.receive(odd), error=ConnectFailed, text="a malformed error object")


def test_open_with_known_peer_sends_nothing() -> None:
    talk = Talk(Connection(CLIENT, client_config()))
    verdict = Peer(DIALECTS[E], SERVER_CAPABILITIES)
    talk.conn.open(0.0, known_peer=verdict)
    assert only_event(talk.events(), PeerReady).peer is verdict
    assert talk.take_sent() == []
    assert talk.conn.send_request("tools/list") == 1


def test_client_rejects_requests_while_opening() -> None:
    talk, _ = opening_client()
    assert_error(talk.error_response_to(request(1, "roots/list")), -32600, 1)
    talk, _ = opening_client(E)
    assert_rejected(talk.receive(request(1, "roots/list")))
    assert talk.take_sent() == []  # a stateless client sends no responses


# -- Endings ---------------------------------------------------------------------------------------


@pytest.mark.requirement("LIFE-17", "LIFE-24")
@pytest.mark.parametrize("role", Role)
@pytest.mark.parametrize("new", [True, False])
def test_eof_on_idle_connection_closes_it(role: Role, new: bool) -> None:
    if new:
        talk = Talk(Connection(role, server_config() if role is SERVER else client_config()))
    else:
        talk = opened(role, D)
    assert_closed(
        talk.receive_eof(),
        error=ConnectionLost,
        text=f"the {role.other.value} closed the connection",
    )
    assert talk.conn.state is State.CLOSED
    assert talk.receive_eof() == []
    assert talk.receive(ping()) == []
    assert talk.take_sent() == []


@pytest.mark.requirement("LIFE-17", "ERR-10")
@pytest.mark.parametrize("version", VERSIONS)
def test_eof_at_client_loses_requests(version: str) -> None:
    talk = client(version)
    for token in ("a", "b"):
        talk.conn.send_request("tools/list", token=token)
    talk.conn.send_cancel(2)
    assert_closed(talk.receive_eof(), "b", error=ConnectionLost)


def test_eof_at_client_cancels_requests_of_server() -> None:
    talk = client()
    talk.receive(request(1, "roots/list"))
    told, closed = talk.receive_eof()
    assert told == RequestCancelled(1, "the connection ended")
    assert isinstance(closed, ConnectionClosed)
    assert not talk.conn.send_result(1, t.ListRootsResult(roots=[]))
    assert talk.take_sent() == []


@pytest.mark.requirement("PROBE-2")
@pytest.mark.parametrize(("versions", "probing"), [((), True), ((D,), False)])
def test_eof_while_opening_is_connect_failed(versions: tuple[str, ...], probing: bool) -> None:
    talk, _ = opening_client(*versions)
    assert_closed(talk.receive_eof(), error=ConnectFailed, text="before it was open")
    # Some servers exit at an unknown method. The driver then restarts them without a probe.
    assert talk.conn.probing is probing
    assert talk.conn.next_deadline() is None
    assert talk.advance_time(100.0) == []


@pytest.mark.parametrize("version", VERSIONS)
def test_eof_at_server_allows_running_requests_to_finish(version: str) -> None:
    """A program that pipes requests into a server closes its output and reads the responses."""
    talk = server(version)
    talk.receive(call(1, version, progressToken=1), call(2, version))
    if DIALECTS[version].stateful:
        talk.conn.send_request("roots/list", related=1, token="t")
    lost = ["t"] if DIALECTS[version].stateful else []
    talk.take_sent()
    assert_closed(talk.receive_eof(), *lost, error=ConnectionLost)
    assert talk.conn.state is State.CLOSING
    assert talk.receive_eof() == []
    with pytest.raises(LocalProtocolError, match="there would be no response"):
        talk.conn.send_request("ping", related=1)
    with pytest.raises(LocalProtocolError, match="the connection is closed"):
        talk.conn.send_notification("notifications/tools/list_changed")
    talk.conn.send_notification(
        "notifications/message", t.LoggingMessageParams(level="info", data=1), related=1
    )
    assert talk.conn.send_progress(1, 1)
    assert talk.conn.send_result(1, EMPTY)
    assert talk.conn.send_error(2, ERROR)
    assert [message.get("id") for message in talk.take_sent()] == [None, None, 1, 2]
    assert talk.conn.in_flight == 0


def test_eof_is_processed_after_waiting_requests() -> None:
    talk = server(in_flight=1)
    assert type_names(talk.receive(call(1), call(2))) == ["RequestReceived"]
    assert talk.receive_eof() == []
    talk.conn.send_result(1, EMPTY)
    assert type_names(talk.events()) == ["RequestReceived", "ConnectionClosed"]


@pytest.mark.requirement("RPC-17")
@pytest.mark.parametrize("role", Role)
def test_eof_inside_line_is_reported(role: Role) -> None:
    talk = opened(role, D)
    talk.receive_bytes(b'{"jsonrpc":"2.0","id":1,"method":"ping"}')
    rejected, closed = talk.receive_eof()
    assert isinstance(rejected, MessageRejected)
    assert "in the middle of a message" in str(rejected.error)
    assert isinstance(closed, ConnectionClosed)
    assert talk.take_sent() == []


def test_close_cancels_and_loses_requests() -> None:
    talk = server(in_flight=2)
    talk.receive(call(1), call(2), call(3), cancelled(2), ping())
    talk.conn.send_request("roots/list", token="t")
    talk.conn.close()
    told, closed = talk.events()
    assert told == RequestCancelled(1, "the connection ended")
    assert closed == ConnectionClosed(["t"], None)
    assert talk.conn.state is State.CLOSED
    talk.conn.close()
    assert talk.events() == []
    assert not talk.conn.send_result(1, EMPTY)
    assert not talk.conn.send_result(2, EMPTY)
    ping_answer, asked, given_up = talk.take_sent()  # the queue, and the cancellation
    assert ping_answer["id"] == "ping"
    assert (given_up["method"], given_up["params"]["requestId"]) == (
        "notifications/cancelled",
        asked["id"],
    )
    assert talk.receive(ping()) == []
    assert talk.take_sent() == []


def test_close_after_eof_cancels_running_requests() -> None:
    talk = server()
    talk.receive(call(1))
    assert_closed(talk.receive_eof(), error=ConnectionLost)
    talk.conn.close()
    assert talk.events() == [RequestCancelled(1, "the connection ended")]
    assert talk.conn.state is State.CLOSED
    assert not talk.conn.send_result(1, EMPTY)


def test_close_while_opening_ignores_response() -> None:
    talk, asked = opening_client()
    talk.conn.close()
    assert_closed(talk.events(), error=None)
    assert talk.conn.next_deadline() is None
    assert talk.receive(result(asked["id"], DISCOVER_RESULT)) == []


def test_message_rejected_has_fault_and_id() -> None:
    talk = server()
    event = assert_rejected(talk.receive(request(5, "odd")))
    assert (event.id, event.error.fault, event.error.data) == (5, Fault.METHOD_NOT_FOUND, UNSET)
    assert type(event.error) is RemoteProtocolError
    assert talk.conn.next_event() is NEED_DATA


# -- Another session -------------------------------------------------------------------------------


@pytest.mark.requirement("ERR-10")
@pytest.mark.parametrize("version", STATEFUL)
def test_renew_opens_session_and_keeps_requests(version: str) -> None:
    talk = client(version)
    (asked,) = talk.receive(ping("p"), request("r", "roots/list"))
    assert isinstance(asked, RequestReceived)
    talk.take_sent()
    waits = talk.conn.send_request("ping", token="T")
    talk.take_sent()
    talk.conn.reinitialize(talk.now)
    answer = initialize_response(talk, version)
    # Requests of the server are cancelled. Ours stay until the transport reports a failure.
    assert type_names(talk.events()) == ["RequestCancelled"]
    assert talk.conn.has_outgoing(waits)
    talk.conn.send_request("ping")
    (ready,) = talk.receive(answer)
    assert isinstance(ready, PeerReady)
    assert ready.peer is talk.conn.peer
    assert ready.peer.info is not None
    assert ready.peer.info.version == "2"
    assert [said["method"] for said in talk.take_sent()] == ["ping", "notifications/initialized"]
    assert talk.state() is State.READY
    for _ in range(2):  # the second call does nothing
        talk.conn.receive_failure(waits, ConnectionLost("gone"), talk.now)
    assert not talk.conn.has_outgoing(waits)
    failed = only_event(talk.events(), ErrorReceived)
    assert (failed.token, type(failed.error)) == ("T", ConnectionLost)


def test_renew_failed_closes_connection() -> None:
    talk = client(D)
    talk.conn.send_request("ping", token="T")
    talk.take_sent()
    talk.conn.reinitialize(talk.now)
    (closed,) = talk.receive(error(single(talk.take_sent())["id"], -32000, "not today"))
    assert isinstance(closed, ConnectionClosed)
    assert closed.lost == ["T"]
    assert type(closed.error) is ConnectionLost
    assert str(closed.error) == "no new session: the server refused initialize: not today (-32000)"
