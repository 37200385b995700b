"""`ConnectionStatus`: a client's connection from its opening to its end."""

from __future__ import annotations

import pytest

from mcp_core import (
    ConnectFailed,
    Connection,
    ConnectionClosed,
    ConnectionLost,
    PeerError,
    PeerReady,
    ResultReceived,
    Role,
    State,
)
from mcp_core.drivers import ConnectionStatus
from tests.core.protocol.messages.test_pending import RecordingRequest
from tests.harness.jsonrpc import (
    C,
    D,
    E,
    client_config,
    error,
    result,
    single,
)
from tests.harness.wire.connection import ConnectionHarness, opened


def opening_status(*versions: str) -> tuple[ConnectionStatus, ConnectionHarness]:
    """Return the status of a client that has just begun to open."""
    harness = ConnectionHarness(Connection(Role.CLIENT, client_config(*versions)))
    harness.conn.open(harness.now)
    return ConnectionStatus(harness.conn), harness


def settle(status: ConnectionStatus, events: list[object]) -> None:
    for event in events:
        status.handle_event(event)  # type: ignore[arg-type]


def test_status_opening_connection_becomes_open() -> None:
    status, harness = opening_status(E)
    settled = [status.settled]
    assert repr(status) == f"<ConnectionStatus of {harness.conn!r}: being opened>"
    sent = single(harness.take_sent())
    answer = {"resultType": "complete", "supportedVersions": [E], "capabilities": {}}
    settle(status, [*harness.receive(result(sent["id"], answer))])
    assert [*settled, status.settled] == [False, True]
    status.require_open()
    status.require_alive()
    assert repr(status) == f"<ConnectionStatus of {harness.conn!r}: open>"
    assert status.versions_without_probe() == []


def test_status_failed_opening_raises_connect_failed() -> None:
    status, harness = opening_status(D)
    sent = single(harness.take_sent())
    settle(status, [*harness.receive(error(sent["id"], message="go away"))])
    assert status.settled
    with pytest.raises(ConnectFailed, match="go away") as caught:
        status.require_open()
    assert isinstance(caught.value.__cause__, PeerError)
    assert status.versions_without_probe() == []


def test_status_closed_while_opening_raises_connect_failed() -> None:
    status, harness = opening_status(D)
    harness.conn.close(ConnectionLost("the connection broke"))
    settle(status, [*harness.events()])
    with pytest.raises(ConnectFailed, match="the connection broke") as caught:
        status.require_open()
    assert isinstance(caught.value.__cause__, ConnectionLost)


@pytest.mark.parametrize(
    ("versions", "again"),
    [
        ((E, D, C), [D, C]),
        ((), ["2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05"]),
        ((E,), []),
        ((D, C), []),
    ],
)
def test_status_server_ended_by_probe_offers_second_start(
    versions: tuple[str, ...], again: list[str]
) -> None:
    status, harness = opening_status(*versions)
    settle(status, [*harness.receive_eof()])
    with pytest.raises(ConnectFailed):
        status.require_open()
    assert status.versions_without_probe() == again
    assert status.versions_without_probe(probe_unread=True) == []


@pytest.mark.parametrize(
    ("why", "says"),
    [
        (None, "the client was closed"),
        (ConnectionLost("the connection broke"), "the connection broke"),
    ],
)
def test_status_closed_connection_raises_connection_lost(
    why: ConnectionLost | None, says: str
) -> None:
    harness = opened(Role.CLIENT, D)
    status = ConnectionStatus(harness.conn)
    assert harness.conn.peer is not None
    status.handle_event(PeerReady(harness.conn.peer))
    harness.conn.close(why)
    assert harness.conn.state is State.CLOSED
    settle(status, [*harness.events()])
    with pytest.raises(ConnectionLost, match=says):
        status.require_alive()
    assert repr(status) == f"<ConnectionStatus of {harness.conn!r}: over>"


def test_status_delivers_responses() -> None:
    harness = opened(Role.CLIENT, D)
    status, request, lost = ConnectionStatus(harness.conn), RecordingRequest(), RecordingRequest()
    status.handle_event(ResultReceived(1, "r", request))
    assert request.ends == [("r", None)]
    status.handle_event(ConnectionClosed([lost], None))
    assert isinstance(lost.ends[0][1], ConnectionLost)


def test_status_is_settled_by_opening_or_closing_only() -> None:
    harness = opened(Role.CLIENT, D)
    status = ConnectionStatus(harness.conn)
    status.handle_event(ResultReceived(1, "r", RecordingRequest()))
    assert not status.settled
    assert harness.conn.peer is not None
    status.handle_event(PeerReady(harness.conn.peer))
    assert (status.settled, status.is_closed) == (True, False)
    harness.conn.close(None)
    assert status.is_closed
