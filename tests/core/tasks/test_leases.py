"""When a worker is lost: by what was watched, and by no other clock."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcp_core.tasks._leases import LeaseObserver, WorkerLease


def look(observer: LeaseObserver, now: float, *leases: WorkerLease) -> list[str]:
    return observer.lost_workers(leases, now)


def lease(renewal: int | None = 1, seconds: float = 30.0, worker: str = "w") -> WorkerLease:
    return WorkerLease(worker, renewal, seconds)


@pytest.mark.parametrize(
    ("looks", "lost"),
    [
        ((0, 10, 20), False),
        ((0, 10, 20, 30), True),
        ((0, 15, 30), True),
        # A process that was stopped has not watched for all that time, nor could others renew.
        ((0, 1_000), False),
        ((0, 1_000, 1_005), False),
        ((0, 1_000, 1_015), True),
        ((5_000,), False),  # the first look
        (tuple(0.1 * number for number in range(290)), False),
    ],
)
def test_worker_that_was_silent_for_its_lease_is_lost(looks: tuple[float, ...], lost: bool) -> None:
    observer = LeaseObserver()
    found = [look(observer, now, lease()) for now in looks]
    assert found[-1] == (["w"] if lost else [])
    assert not any(found[:-1])


@given(st.lists(st.floats(0.0, 1e6), min_size=1, max_size=30))
def test_worker_that_renews_between_two_looks_is_never_lost(pauses: list[float]) -> None:
    observer = LeaseObserver()
    now = 0.0
    for number, pause in enumerate(pauses):
        now += pause
        assert look(observer, now, lease(number)) == []


def test_worker_that_ended_its_lease_is_lost_at_once() -> None:
    assert look(LeaseObserver(), 7.0, lease(seconds=0.0), lease(worker="v")) == ["w"]


def test_worker_without_a_renewal_is_watched_like_any_other() -> None:
    observer = LeaseObserver()
    found = [look(observer, now, lease(None)) for now in (0.0, 15.0, 30.0)]
    assert found == [[], [], ["w"]]
    assert look(observer, 31.0, lease(1)) == []


def test_worker_without_tasks_is_forgotten() -> None:
    observer = LeaseObserver()
    for now in (0.0, 15.0, 30.0):
        look(observer, now, lease())
    assert look(observer, 31.0) == []
    assert look(observer, 32.0, lease()) == []
    assert len(observer._seen) == 1


def test_workers_are_watched_apart() -> None:
    observer = LeaseObserver()
    found = [
        look(observer, 15.0 * renewal, lease(worker="dead"), lease(renewal, worker="alive"))
        for renewal in range(3)
    ]
    assert found == [[], [], ["dead"]]
