"""The tables of an endpoint: its sessions, its other conversations, and how many a client has."""

from __future__ import annotations

from typing import Any

import pytest

from mcp_core import Limits
from mcp_core.http import HttpLimits
from mcp_core.http.server._checks import (
    TOO_BUSY,
    TOO_MANY_SESSIONS,
    client_sessions_too_many,
    client_too_busy,
)
from mcp_core.http.server._session import OneShots, Sessions, cancelled_ids
from mcp_core.protocol.jsonrpc._body import parse_body

LIMITS = HttpLimits(sessions=4, uninitialized=4, client_share=0.5, initialize=10.0, idle=100.0)


class _Held:
    """A conversation or a session, with all that the tables need of it."""

    def __init__(self, id: bytes, client: str = "a") -> None:
        self.id, self.client = id, client
        self.in_use = False
        self.closed = 0

    def close(self) -> None:
        self.closed += 1


def sessions(*held: _Held, now: float = 0.0) -> Any:
    table: Any = Sessions(LIMITS)
    for each in held:
        table.add(each, now)
    return table


def test_one_shots_of_a_client_have_a_quota() -> None:
    """One that is removed twice is counted once, and without a client none is."""
    table: Any = OneShots(LIMITS)
    held = [_Held(b"1"), _Held(b"2"), _Held(b"3", "")]
    assert table.quota == 2
    for each, is_busy in zip(held, (False, True, True), strict=True):
        table.add(each)
        assert (table.find_capacity_error("a") is not None) == is_busy
    assert table.find_capacity_error("a") == client_too_busy(2)
    assert table.find_capacity_error("b") is table.find_capacity_error("") is None
    table.add(_Held(b"4", "b"))
    assert table.find_capacity_error("c") is TOO_BUSY
    for each in (*held, *held):
        table.discard(each)
    assert len(table) == 1
    assert table.find_capacity_error("a") is None
    table.add(held[0])
    assert table.find_capacity_error("a") is None
    table.add(held[1])
    assert table.find_capacity_error("a") is not None


def test_sessions_of_a_client_have_a_quota_until_they_end() -> None:
    first, second = _Held(b"1"), _Held(b"2")
    table = sessions(first, second)
    assert table.find_capacity_error("b") is None
    assert table.find_capacity_error("a") == client_sessions_too_many(2, initialized=True)
    table.add(_Held(b"3", ""), 0.0)
    table.add(_Held(b"4", ""), 0.0)
    assert table.find_capacity_error("b") is TOO_MANY_SESSIONS
    table.end(first)
    table.end(first)
    assert first.closed == 2
    assert table.find_capacity_error("a") is None
    table.add(first, 0.0)
    assert table.find_capacity_error("c") is TOO_MANY_SESSIONS


def test_client_without_a_session_may_begin_one_where_that_is_all_it_may_have() -> None:
    table = Sessions(HttpLimits(sessions=2, uninitialized=2, client_share=0.5))
    assert table.find_capacity_error("a") is None
    shots = OneShots(HttpLimits(sessions=2, client_share=0.5))
    assert (shots.quota, shots.find_capacity_error("a")) == (1, None)


def test_sessions_without_a_handshake_have_a_quota_of_their_own() -> None:
    """A session leaves it by its handshake, which may be reported twice, or by its timeout."""
    limits = HttpLimits(sessions=100, uninitialized=4, client_share=0.5)
    table: Any = Sessions(limits)
    held = [_Held(b"%d" % n) for n in range(4)]
    for each in held[:2]:
        table.add(each, 0.0)
    assert table.find_capacity_error("a") == client_sessions_too_many(2, initialized=False)
    table.initialized(held[0], 1.0)
    table.initialized(held[0], 1.0)
    assert table.find_capacity_error("a") is None
    for each in held[2:]:
        table.add(each, 1.0)
    assert table.find_capacity_error("a") is not None
    table.handle_timeout(1.0 + limits.initialize)
    assert list(table) == [b"0"]
    assert table.find_capacity_error("a") is None


def test_session_without_a_handshake_ends_after_its_time() -> None:
    first, second = _Held(b"1"), _Held(b"2")
    table = sessions(first)
    assert table.next_deadline() == 10.0
    table.mark_activity(first, 5.0)
    table.add(second, 5.0)
    table.handle_timeout(9.9)
    assert (first.closed, table.next_deadline()) == (0, 10.0)
    table.handle_timeout(10.0)
    assert (first.closed, second.closed, list(table)) == (1, 0, [b"2"])
    table.handle_timeout(15.0)
    assert (second.closed, len(table), table.next_deadline()) == (1, 0, None)


def test_session_that_is_idle_ends_unless_it_is_in_use() -> None:
    """A request restarts the timeout, and so does the use of the session at its end."""
    first, second = _Held(b"1"), _Held(b"2", "b")
    table = sessions(first, second)
    assert Sessions(LIMITS).next_deadline() is None
    table.initialized(first, 1.0)
    assert table.next_deadline() == 10.0
    table.initialized(second, 2.0)
    assert table.next_deadline() == 101.0
    table.mark_activity(first, 50.0)
    assert table.next_deadline() == 102.0
    second.in_use = True
    table.handle_timeout(102.0)
    assert (second.closed, table.next_deadline()) == (0, 150.0)
    table.handle_timeout(150.0)
    assert (first.closed, list(table), table.next_deadline()) == (1, [b"2"], 202.0)
    second.in_use = False
    table.handle_timeout(202.0)
    assert (second.closed, len(table)) == (1, 0)


CANCEL = b'{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":%b}}'


@pytest.mark.parametrize(
    ("body", "ids"),
    [
        (b"", []),
        (b"?", []),
        (CANCEL % b"1", [1]),
        (CANCEL % b'"a"', ["a"]),
        (CANCEL % b"null", []),
        (CANCEL % b"{}", []),
        (b"[%b,?]" % (CANCEL % b"1"), []),
        (b"[1,%b,%b,%b]" % (CANCEL % b"{}", CANCEL % b"2", CANCEL % b'"b"'), [2, "b"]),
        (b'{"jsonrpc":"2.0","method":"notifications/cancelled"}', []),
        (b'{"jsonrpc":"2.0","id":1,"method":"notifications/cancelled","params":{}}', []),
        (b'{"jsonrpc":"2.0","method":"other","params":{"requestId":1}}', []),
        (b'{"jsonrpc":"2.0","id":1,"result":{}}', []),
    ],
)
def test_ids_that_a_body_cancels_are_read(body: bytes, ids: list[int | str]) -> None:
    assert cancelled_ids(parse_body(body, Limits())) == ids
