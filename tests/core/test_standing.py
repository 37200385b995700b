"""`Standing`: how a client's conversation stands, from its opening to its end."""

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
from mcp_core.runtime import Standing
from tests.core.helpers import C, D, E, Talk, client_config, error, only, opened, result
from tests.core.test_calls import Waiting


def standing(*versions: str) -> tuple[Standing, Talk]:
    """That of a client which has just begun to open."""
    talk = Talk(Connection(Role.CLIENT, client_config(*versions)))
    talk.conn.open(talk.now)
    return Standing(talk.conn), talk


def settle(stands: Standing, events: list[object]) -> None:
    for event in events:
        stands.take(event)  # type: ignore[arg-type]


def test_a_conversation_that_opens() -> None:
    stands, talk = standing(E)
    settled = [stands.settled]
    assert repr(stands) == f"<Standing of {talk.conn!r}: being opened>"
    asked = only(talk.says())
    answer = {"resultType": "complete", "supportedVersions": [E], "capabilities": {}}
    settle(stands, [*talk.hears(result(asked["id"], answer))])
    assert [*settled, stands.settled] == [False, True]
    stands.require_open()
    stands.require_alive()
    assert repr(stands) == f"<Standing of {talk.conn!r}: open>"
    assert stands.versions_without_probe == []


def test_a_conversation_that_does_not_come_about() -> None:
    stands, talk = standing(D)
    asked = only(talk.says())
    settle(stands, [*talk.hears(error(asked["id"], message="go away"))])
    assert stands.settled
    with pytest.raises(ConnectFailed, match="go away") as caught:
        stands.require_open()
    assert isinstance(caught.value.__cause__, PeerError)
    assert stands.versions_without_probe == []


def test_one_that_is_closed_while_it_opens() -> None:
    stands, talk = standing(D)
    talk.conn.close(ConnectionLost("the connection broke"))
    settle(stands, [*talk.events()])
    with pytest.raises(ConnectFailed, match="the connection broke") as caught:
        stands.require_open()
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
def test_a_server_that_dies_of_the_probe(versions: tuple[str, ...], again: list[str]) -> None:
    stands, talk = standing(*versions)
    settle(stands, [*talk.ends()])
    with pytest.raises(ConnectFailed):
        stands.require_open()
    assert stands.versions_without_probe == again


@pytest.mark.parametrize(
    ("why", "says"),
    [(None, "the client was closed"), (ConnectionLost("the connection broke"), "the connection broke")],
)
def test_a_conversation_that_is_over(why: ConnectionLost | None, says: str) -> None:
    talk = opened(Role.CLIENT, D)
    stands = Standing(talk.conn)
    assert talk.conn.peer is not None
    stands.take(PeerReady(talk.conn.peer))
    talk.conn.close(why)
    assert talk.conn.state is State.CLOSED
    settle(stands, [*talk.events()])
    with pytest.raises(ConnectionLost, match=says):
        stands.require_alive()
    assert repr(stands) == f"<Standing of {talk.conn!r}: over>"


def test_answers_are_handed_on() -> None:
    talk = opened(Role.CLIENT, D)
    stands, waiting, lost = Standing(talk.conn), Waiting(), Waiting()
    stands.take(ResultReceived(1, "r", waiting))
    assert waiting.ends == [("r", None)]
    stands.take(ConnectionClosed([lost], None))
    assert isinstance(lost.ends[0][1], ConnectionLost)
