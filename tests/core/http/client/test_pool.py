"""Which connection the pool gives to a call, and which calls are retried."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from mcp_core import ConnectionLost
from mcp_core.http import (
    HttpCall,
    NotProcessed,
    Pool,
    PoolDecision,
    RequestHead,
    keep_alive_seconds,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

HEAD = RequestHead(b"POST", b"/", [])
CALL, STREAM, BRIEF, ACTS = (
    HttpCall(1, HEAD),
    HttpCall(2, HEAD, long_lived=True),
    HttpCall(3, HEAD, brief=True),
    HttpCall(4, HEAD, idempotent=False),
)
LOST = ConnectionLost("it broke")
REFUSED = NotProcessed("it was not begun with")


class Line:
    """A connection that accepts `room` requests in parallel."""

    def __init__(self, name: str, capacity: int = 1) -> None:
        self.name, self.capacity = name, capacity

    def __repr__(self) -> str:
        return self.name


def opened(pool: Pool[Line], call: HttpCall, name: str, room: int = 1) -> Line:
    assert pool.acquire(call, 0.0) is PoolDecision.OPEN
    line = Line(name, room)
    pool.opened(call, line)
    return line


def used(*names: str, lasts: float | None = None) -> Pool[Line]:
    """Return a pool whose connections were given back one second after the other."""
    pool: Pool[Line] = Pool()
    lines = [opened(pool, CALL, name) for name in names]
    for now, line in enumerate(lines):
        assert not pool.release(line, float(now), complete=True, keep_alive_seconds=lasts)
    return pool


def took(pool: Pool[Line], call: HttpCall, now: float) -> Line:
    line = pool.acquire(call, now)
    assert isinstance(line, Line)
    return line


def names(lines: Sequence[Line]) -> list[str]:
    return [line.name for line in lines]


# -- One request at a time -------------------------------------------------------------------------


def test_pool_takes_newest_idle_connection() -> None:
    pool = used("a", "b", "c")
    assert names([took(pool, CALL, 3.0) for _ in range(3)]) == ["c", "b", "a"]
    last = opened(pool, CALL, "d")
    assert repr(pool) == "<Pool: 4 in use, 0 for streams, 0 idle>"
    assert not pool.release(last, 4.0, complete=True)
    assert took(pool, STREAM, 5.0) is last
    assert repr(pool) == "<Pool: 3 in use, 1 for streams, 0 idle>"
    assert not pool.shared


def test_pool_incomplete_response_closes_connection() -> None:
    pool = used("a")
    assert pool.release(took(pool, CALL, 1.0), 1.0, complete=False)
    assert pool.acquire(CALL, 1.0) is PoolDecision.OPEN
    pool.discard(CALL)
    assert repr(pool) == "<Pool: 0 in use, 0 for streams, 0 idle>"


@pytest.mark.parametrize(("lasts", "good"), [(None, 30.0), (5.0, 4.0), (75.0, 30.0), (0.5, 0.0)])
def test_pool_idle_connection_expires_after_keep_alive(lasts: float | None, good: float) -> None:
    pool = used("a", lasts=lasts)
    assert pool.next_deadline() == good
    assert pool.expired(good - 0.1) == []
    if good:
        line = took(pool, CALL, good - 0.1)
        pool.release(line, 0.0, complete=True, keep_alive_seconds=lasts)
    assert pool.acquire(CALL, good) is PoolDecision.OPEN
    assert names(pool.expired(good)) == ["a"]
    assert pool.expired(good) == []
    assert pool.next_deadline() is None


def test_pool_deadline_is_first_expiry() -> None:
    """Taking the last idle connection leaves none, and one that lasts longer puts nothing off."""
    pool = used("a", "b")
    assert pool.next_deadline() == 30.0
    first, second = took(pool, CALL, 2.0), took(pool, CALL, 2.0)
    assert pool.next_deadline() is None
    pool.release(first, 10.0, complete=True)
    pool.release(second, 10.0, complete=True, keep_alive_seconds=6.0)
    assert pool.next_deadline() == 15.0
    assert pool.expired(14.9) == []
    assert pool.expired(15.0) == [second]
    assert pool.next_deadline() == 40.0
    assert took(pool, CALL, 16.0) is first
    last = opened(pool, CALL, "last")
    pool.release(first, 17.0, complete=True)
    pool.release(last, 20.0, complete=True)
    assert pool.next_deadline() == 47.0
    pool.clear()
    assert pool.next_deadline() is None


@pytest.mark.parametrize("call", [CALL, STREAM])
def test_pool_place_is_free_again_after_release_and_discard(call: HttpCall) -> None:
    pool: Pool[Line] = Pool()
    lines = [opened(pool, call, str(number)) for number in range(100)]
    assert pool.acquire(call, 0.0) is PoolDecision.WAIT
    assert pool.release(lines[0], 0.0, complete=False)
    assert pool.acquire(call, 0.0) is PoolDecision.OPEN
    assert pool.acquire(call, 0.0) is PoolDecision.WAIT
    pool.discard(call)
    assert pool.acquire(call, 0.0) is PoolDecision.OPEN
    assert pool.acquire(call, 0.0) is PoolDecision.WAIT
    assert not pool.release(lines[1], 0.0, complete=True)
    assert took(pool, call, 1.0) is lines[1]
    assert pool.acquire(call, 1.0) is PoolDecision.WAIT


def test_pool_skips_expired_connection() -> None:
    pool = used("long")
    long = took(pool, CALL, 1.0)
    short = opened(pool, CALL, "short")
    pool.release(long, 1.0, complete=True)
    pool.release(short, 1.0, complete=True, keep_alive_seconds=2.0)
    assert took(pool, CALL, 3.0) is long
    assert pool.expired(3.0) == [short]


def test_pool_clear_also_closes_later_connections() -> None:
    pool = used("a", "b", "c")
    late = took(pool, CALL, 3.0)
    assert names(pool.clear()) == ["a", "b"]
    assert pool.clear() == []
    assert pool.release(late, 4.0, complete=True)


def test_pool_at_limit_makes_calls_wait() -> None:
    pool: Pool[Line] = Pool()
    assert {pool.acquire(CALL, 0.0) for _ in range(100)} == {PoolDecision.OPEN}
    assert pool.acquire(CALL, 0.0) is PoolDecision.WAIT
    assert pool.acquire(STREAM, 0.0) is PoolDecision.OPEN
    # All other calls may be waiting for a brief one.
    assert pool.acquire(BRIEF, 0.0) is PoolDecision.OPEN
    pool.discard(BRIEF)
    assert pool.acquire(CALL, 0.0) is PoolDecision.WAIT
    pool.discard(CALL)
    assert pool.acquire(CALL, 0.0) is PoolDecision.OPEN
    assert {pool.acquire(STREAM, 0.0) for _ in range(99)} == {PoolDecision.OPEN}
    assert pool.acquire(STREAM, 0.0) is PoolDecision.WAIT


# -- Many requests at a time -----------------------------------------------------------------------


def test_pool_fills_shared_connection_before_opening_another() -> None:
    pool: Pool[Line] = Pool()
    one = opened(pool, CALL, "one", 3)
    assert pool.shared
    assert [took(pool, call, 0.0) for call in (STREAM, ACTS)] == [one, one]
    two = opened(pool, CALL, "two", 3)
    assert took(pool, STREAM, 0.0) is two
    # The oldest is filled first, so that the other one may expire.
    assert not pool.release(one, 1.0, complete=True)
    assert took(pool, CALL, 1.0) is one
    assert repr(pool) == "<Pool: 2 in use, 0 for streams, 0 idle>"


def test_pool_shared_connection_takes_all_kinds_of_calls() -> None:
    pool: Pool[Line] = Pool()
    line = opened(pool, CALL, "one", 256)
    assert {pool.acquire(call, 0.0) for call in [CALL, STREAM, BRIEF] * 85} == {line}
    for _ in range(255):
        assert not pool.release(line, 1.0, complete=False)
    assert pool.next_deadline() is None
    assert not pool.release(line, 1.0, complete=False)
    assert pool.next_deadline() == 31.0
    assert took(pool, CALL, 2.0) is line


def test_pool_shared_without_capacity_waits_for_connection_being_opened() -> None:
    """An HTTP/2 connection that is being opened may have room for several calls at once."""
    pool: Pool[Line] = Pool()
    one = opened(pool, STREAM, "one", 2)
    assert took(pool, CALL, 0.0) is one
    assert pool.acquire(CALL, 0.0) is PoolDecision.OPEN
    assert {pool.acquire(call, 0.0) for call in (CALL, STREAM, BRIEF)} == {PoolDecision.WAIT}
    two = Line("two", 2)
    pool.opened(CALL, two)
    assert took(pool, BRIEF, 0.0) is two
    # After a failed attempt, calls do not wait for the next attempt of another call.
    assert pool.acquire(CALL, 0.0) is PoolDecision.OPEN
    assert pool.acquire(CALL, 0.0) is PoolDecision.WAIT
    pool.discard(CALL)
    assert [pool.acquire(CALL, 0.0) for _ in range(2)] == [PoolDecision.OPEN] * 2
    # Until one has succeeded.
    pool.opened(CALL, Line("three", 1))
    assert not pool.shared
    pool.opened(CALL, four := Line("four", 2))
    assert took(pool, CALL, 1.0) is four
    assert pool.acquire(CALL, 1.0) is PoolDecision.OPEN
    assert pool.acquire(CALL, 1.0) is PoolDecision.WAIT
    assert not pool.release(one, 1.0, complete=True)
    assert took(pool, CALL, 1.0) is one


@pytest.mark.parametrize("idle", [True, False])
def test_pool_connection_without_capacity_is_not_taken(idle: bool) -> None:
    """An HTTP/2 server may lower its limit to 0: running requests end, then it is closed."""
    pool: Pool[Line] = Pool()
    one = opened(pool, CALL, "one", 100)
    if idle:
        assert not pool.release(one, 0.0, complete=True)
        one.capacity = 0
        assert pool.acquire(CALL, 1.0) is PoolDecision.OPEN
        assert pool.expired(30.0) == [one]
    else:
        assert took(pool, CALL, 0.0) is one
        one.capacity = 0
        assert pool.acquire(CALL, 1.0) is PoolDecision.OPEN
        # Its requests end normally; with the last one it is closed.
        assert not pool.release(one, 1.0, complete=True)
        assert pool.release(one, 1.0, complete=True)
        assert pool.expired(100.0) == []


def test_pool_shared_at_limit_makes_calls_wait() -> None:
    pool: Pool[Line] = Pool()
    lines = []
    for number in range(100):
        lines.append(opened(pool, CALL, str(number), 2))
        assert took(pool, STREAM, 0.0) is lines[-1]
    assert pool.acquire(CALL, 0.0) is PoolDecision.WAIT
    # A shared connection counts as long if its first request is.
    assert pool.acquire(STREAM, 0.0) is PoolDecision.OPEN
    pool.discard(STREAM)
    assert pool.acquire(BRIEF, 0.0) is PoolDecision.OPEN
    pool.discard(BRIEF)
    assert not pool.release(lines[7], 1.0, complete=True)
    assert took(pool, CALL, 1.0) is lines[7]


# -- Retries ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("call", "problem", "reused", "answered", "tries", "again"),
    [
        (CALL, LOST, True, False, 1, True),
        (CALL, LOST, True, False, 2, True),
        (CALL, LOST, True, False, 3, False),
        (CALL, LOST, False, False, 1, False),
        (CALL, LOST, True, True, 1, False),
        (ACTS, LOST, True, False, 1, False),
        (STREAM, LOST, True, False, 1, True),
        # A server that has not processed the call says so: any call may be retried.
        (ACTS, REFUSED, True, False, 1, True),
        (ACTS, REFUSED, False, False, 2, True),
        (ACTS, REFUSED, False, False, 3, False),
        (ACTS, REFUSED, True, True, 1, False),
    ],
)
def test_pool_may_retry_only_unprocessed_or_idempotent_calls(
    call: HttpCall, problem: ConnectionLost, reused: bool, answered: bool, tries: int, again: bool
) -> None:
    assert Pool.may_retry(call, problem, reused=reused, answered=answered, tries=tries) is again


@pytest.mark.parametrize(
    ("value", "seconds"),
    [
        (None, None),
        (b"", None),
        (b"timeout=5", 5.0),
        (b"max=3, Timeout=72", 72.0),
        (b'timeout="10", max=1', 10.0),
        (b"timeout=x", None),
        (b"xtimeout=5", None),
    ],
)
def test_idle_time_reads_keep_alive_timeout(value: bytes | None, seconds: float | None) -> None:
    assert keep_alive_seconds(value) == seconds
