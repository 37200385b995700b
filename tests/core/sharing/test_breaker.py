"""`StoreBreaker`: the pauses after failures."""

from __future__ import annotations

import pytest

from mcp_core.sharing import StoreBreaker


def test_command_waits_longer_after_each_failure() -> None:
    """0.1, 0.2 s for two commands of which each failed once and twice; others don't wait."""
    breaker = StoreBreaker()
    assert breaker.pause("read", 0.0) == 0.0
    assert not breaker.failed("read", 0.0, breaker.failures)
    assert breaker.pause("read", 0.0) == pytest.approx(0.1)
    assert breaker.pause("publish", 0.0) == 0.0
    assert breaker.pause("read", 0.1) == 0.0
    assert not breaker.failed("read", 0.1, breaker.failures)
    assert breaker.pause("read", 0.1) == pytest.approx(0.2)
    assert not breaker.is_out


def test_third_failure_in_a_row_leaves_one_try_a_second() -> None:
    """It counts all commands together, and reports once that the store is out."""
    breaker = StoreBreaker()
    outcomes = [
        breaker.failed(command, 0.0, breaker.failures)
        for command in ("read", "publish", "read", "join")
    ]
    assert outcomes == [False, False, True, False]
    assert breaker.is_out
    tried = []
    for step in range(1, 41):
        now = step / 10
        for command in ("read", "publish", "heartbeat"):
            if not breaker.pause(command, now):
                tried.append(now)
                breaker.failed(command, now, breaker.failures)
    assert tried == [1.0, 2.0, 3.0, 4.0]


def test_first_response_ends_the_outage_for_all_commands() -> None:
    breaker = StoreBreaker()
    for _ in range(20):
        breaker.failed("read", 0.0, breaker.failures)
        breaker.failed("publish", 0.0, breaker.failures)
    was_out = breaker.is_out
    breaker.succeeded("heartbeat")
    assert (was_out, breaker.is_out) == (True, False)
    assert breaker.pause("read", 0.0) == breaker.pause("publish", 0.0) == 0.0


def test_success_between_failures_keeps_the_store_in() -> None:
    """One command that always fails, as an ACL forbids it, has pauses of its own, up to 1 s."""
    breaker = StoreBreaker()
    now = 0.0
    for _ in range(20):
        assert not breaker.failed("publish", now, breaker.failures)
        breaker.succeeded("heartbeat")
        now += breaker.pause("publish", now)
    assert breaker.pause("publish", now) == 0.0
    breaker.failed("publish", now, breaker.failures)
    assert 0.9 < breaker.pause("publish", now) <= 1.0


def test_commands_that_fail_together_count_once() -> None:
    """A lost connection ends a read, a heartbeat and a publish. The store isn't out for it."""
    breaker = StoreBreaker()
    began = breaker.failures
    for command in ("read", "heartbeat", "publish", "read"):
        assert not breaker.failed(command, 0.0, began)
        assert breaker.pause(command, 0.0) > 0
    assert not breaker.failed("read", 0.5, breaker.failures)
    assert breaker.failed("read", 0.5, breaker.failures)
    assert breaker.is_out


def test_days_of_failures_do_not_overflow() -> None:
    breaker = StoreBreaker()
    for now in range(5000):
        breaker.failed("read", float(now), breaker.failures)
    assert breaker.pause("read", 4999.0) == 1.0


def test_commands_are_tried_at_once_at_first() -> None:
    """A clock may begin below zero."""
    breaker = StoreBreaker()
    assert (breaker.failures, breaker.is_out) == (0, False)
    assert repr(breaker) == "<StoreBreaker, 0 failures in a row>"
    assert breaker.pause("read", -5.0) == 0.0
    breaker.failed("read", -5.0, 0)
    assert breaker.failures == 1
    assert repr(breaker) == "<StoreBreaker, 1 failures in a row>"


def test_pause_of_a_command_doubles_to_a_second() -> None:
    breaker = StoreBreaker()
    pauses = []
    for _ in range(6):
        breaker.failed("read", 0.0, breaker.failures)
        breaker.is_out = False
        pauses.append(breaker.pause("read", 0.0))
    assert pauses == pytest.approx([0.1, 0.2, 0.4, 0.8, 1.0, 1.0])


def test_success_of_a_command_begins_its_pauses_anew() -> None:
    """Failures in a row begin anew as well, and those of other commands keep their pauses."""
    breaker = StoreBreaker()
    for command in ("read", "publish"):
        breaker.failed(command, 0.0, breaker.failures)
    breaker.succeeded("read")
    assert repr(breaker) == "<StoreBreaker, 0 failures in a row>"
    assert breaker.pause("read", 0.0) == 0.0
    assert breaker.pause("publish", 0.0) == pytest.approx(0.1)
    assert not breaker.failed("read", 0.0, breaker.failures)
    assert breaker.pause("read", 0.0) == pytest.approx(0.1)
    assert not breaker.failed("read", 0.0, breaker.failures)
    assert breaker.failed("read", 0.0, breaker.failures)
    assert breaker.failures == 5
