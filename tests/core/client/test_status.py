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
from mcp_core.runtime import ConnectionStatus
from tests.core.helpers import C, D, E, Talk, client_config, error, opened, result, single
from tests.core.messages.test_pending import RecordingRequest


def opening_status(*versions: str) -> tuple[ConnectionStatus, Talk]:
    """Return the status of a client that has just begun to open."""
    talk = Talk(Connection(Role.CLIENT, client_config(*versions)))
    talk.conn.open(talk.now)
    return ConnectionStatus(talk.conn), talk


def settle(status: ConnectionStatus, events: list[object]) -> None:
    for event in events:
        status.handle_event(event)  # type: ignore[arg-type]


def test_status_opening_connection_becomes_open() -> None:
    status, talk = opening_status(E)
    settled = [status.settled]
    assert repr(status) == f"<ConnectionStatus of {talk.conn!r}: being opened>"
    asked = single(talk.take_sent())
    answer = {"resultType": "complete", "supportedVersions": [E], "capabilities": {}}
    settle(status, [*talk.receive(result(asked["id"], answer))])
    assert [*settled, status.settled] == [False, True]
    status.require_open()
    status.require_alive()
    assert repr(status) == f"<ConnectionStatus of {talk.conn!r}: open>"
    assert status.versions_without_probe == []


def test_status_failed_opening_raises_connect_failed() -> None:
    status, talk = opening_status(D)
    asked = single(talk.take_sent())
    settle(status, [*talk.receive(error(asked["id"], message="go away"))])
    assert status.settled
    with pytest.raises(ConnectFailed, match="go away") as caught:
        status.require_open()
    assert isinstance(caught.value.__cause__, PeerError)
    assert status.versions_without_probe == []


def test_status_closed_while_opening_raises_connect_failed() -> None:
    status, talk = opening_status(D)
    talk.conn.close(ConnectionLost("the connection broke"))
    settle(status, [*talk.events()])
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
    status, talk = opening_status(*versions)
    settle(status, [*talk.receive_eof()])
    with pytest.raises(ConnectFailed):
        status.require_open()
    assert status.versions_without_probe == again


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
    talk = opened(Role.CLIENT, D)
    status = ConnectionStatus(talk.conn)
    assert talk.conn.peer is not None
    status.handle_event(PeerReady(talk.conn.peer))
    talk.conn.close(why)
    assert talk.conn.state is State.CLOSED
    settle(status, [*talk.events()])
    with pytest.raises(ConnectionLost, match=says):
        status.require_alive()
    assert repr(status) == f"<ConnectionStatus of {talk.conn!r}: over>"


def test_status_delivers_responses() -> None:
    talk = opened(Role.CLIENT, D)
    status, request, lost = ConnectionStatus(talk.conn), RecordingRequest(), RecordingRequest()
    status.handle_event(ResultReceived(1, "r", request))
    assert request.ends == [("r", None)]
    status.handle_event(ConnectionClosed([lost], None))
    assert isinstance(lost.ends[0][1], ConnectionLost)
