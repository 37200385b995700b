"""The keep-alive timer: when to send a ping, and when to close."""

from __future__ import annotations

from mcp_core.connection._keep_alive import KeepAlive, KeepAliveAction


def test_keep_alive_timer_sends_ping_then_closes() -> None:
    alive = KeepAlive(10.0)
    assert (alive.deadline, alive.due(1000.0)) == (
        None,
        KeepAliveAction.NOTHING,
    )  # the timer was not started
    alive.heard(0.0)
    assert [alive.due(at) for at in (0.0, 9.9, 10.0, 10.0, 19.9, 20.0)] == [
        KeepAliveAction.NOTHING,
        KeepAliveAction.NOTHING,
        KeepAliveAction.ASK,
        KeepAliveAction.NOTHING,
        KeepAliveAction.NOTHING,
        KeepAliveAction.GIVE_UP,
    ]
    assert (alive.deadline, alive.due(1000.0)) == (None, KeepAliveAction.NOTHING)


def test_keep_alive_timer_restarts_on_any_input() -> None:
    alive = KeepAlive(10.0)
    alive.heard(0.0)
    assert alive.due(10.0) is KeepAliveAction.ASK
    alive.heard(15.0)
    assert alive.deadline == 25.0
    assert alive.due(25.0) is KeepAliveAction.ASK


def test_keep_alive_timer_without_interval_does_nothing() -> None:
    alive = KeepAlive(None)
    alive.heard(0.0)
    assert (alive.deadline, alive.silence, alive.due(1e9)) == (None, 0.0, KeepAliveAction.NOTHING)
    assert KeepAlive(10.0).silence == 20.0
