"""Which connection a call takes, and whether it is made again."""

from __future__ import annotations

import pytest

from mcp_core.http import RequestHead
from mcp_core.http._call import HttpCall
from mcp_core.http._pool import Place, Pool, idle_time

HEAD = RequestHead(b"POST", b"/", [])
CALL, STREAM, BRIEF, ACTS = (
    HttpCall(1, HEAD),
    HttpCall(2, HEAD, long=True),
    HttpCall(3, HEAD, brief=True),
    HttpCall(4, HEAD, idempotent=False),
)


def used(*names: str, lasts: float | None = None) -> Pool[str]:
    """A pool whose connections were given back one second after the other."""
    pool: Pool[str] = Pool()
    for _ in names:
        assert pool.take(CALL, 0.0) is Place.OPEN
    for now, name in enumerate(names):
        pool.give(CALL, name, float(now), lasts=lasts)
    return pool


def test_the_newest_is_taken_first() -> None:
    pool = used("a", "b", "c")
    assert [pool.take(CALL, 3.0) for _ in range(4)] == ["c", "b", "a", Place.OPEN]
    assert repr(pool) == "<Pool: 4 in use, 0 for streams, 0 idle>"
    pool.drop(CALL)
    pool.give(CALL, "d", 4.0)
    assert pool.take(STREAM, 5.0) == "d"
    assert repr(pool) == "<Pool: 2 in use, 1 for streams, 0 idle>"


@pytest.mark.parametrize(("lasts", "good"), [(None, 30.0), (5.0, 4.0), (75.0, 30.0), (0.5, 0.0)])
def test_how_long_one_stays_good(lasts: float | None, good: float) -> None:
    pool = used("a", lasts=lasts)
    assert pool.next_deadline() == good
    assert pool.expired(good - 0.1) == []
    if good:
        assert pool.take(CALL, good - 0.1) == "a"
        pool.give(CALL, "a", 0.0, lasts=lasts)
    assert pool.take(CALL, good) is Place.OPEN
    assert pool.expired(good) == ["a"]
    assert pool.expired(good) == []
    assert pool.next_deadline() is None


def test_one_that_is_too_old_hides_no_good_one() -> None:
    pool = used("long")
    assert pool.take(CALL, 1.0) == "long"
    assert pool.take(CALL, 1.0) is Place.OPEN
    pool.give(CALL, "long", 1.0)
    pool.give(CALL, "short", 1.0, lasts=2.0)
    assert pool.take(CALL, 3.0) == "long"
    assert pool.expired(3.0) == ["short"]


def test_all_are_closed_at_the_end() -> None:
    pool = used("a", "b")
    assert pool.clear() == ["a", "b"]
    assert pool.clear() == []


def test_there_is_an_end_to_their_number() -> None:
    pool: Pool[str] = Pool()
    assert {pool.take(CALL, 0.0) for _ in range(100)} == {Place.OPEN}
    assert pool.take(CALL, 0.0) is Place.WAIT
    assert pool.take(STREAM, 0.0) is Place.OPEN
    # All the others may wait for what is only told.
    assert pool.take(BRIEF, 0.0) is Place.OPEN
    pool.drop(BRIEF)
    assert pool.take(CALL, 0.0) is Place.WAIT
    pool.drop(CALL)
    assert pool.take(CALL, 0.0) is Place.OPEN
    assert {pool.take(STREAM, 0.0) for _ in range(99)} == {Place.OPEN}
    assert pool.take(STREAM, 0.0) is Place.WAIT


@pytest.mark.parametrize(
    ("call", "reused", "answered", "tries", "again"),
    [
        (CALL, True, False, 1, True),
        (CALL, True, False, 2, True),
        (CALL, True, False, 3, False),
        (CALL, False, False, 1, False),
        (CALL, True, True, 1, False),
        (ACTS, True, False, 1, False),
        (STREAM, True, False, 1, True),
    ],
)
def test_what_is_made_again(call: HttpCall, reused: bool, answered: bool, tries: int, again: bool) -> None:
    assert Pool.may_retry(call, reused=reused, answered=answered, tries=tries) is again


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
def test_what_keep_alive_says(value: bytes | None, seconds: float | None) -> None:
    assert idle_time(value) == seconds
