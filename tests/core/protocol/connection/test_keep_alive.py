"""The keep-alive timer: when to send a ping, and when to close."""

from __future__ import annotations

from mcp_core.protocol.connection._keep_alive import KeepAlive, KeepAliveAction


def test_keep_alive_timer_sends_ping_then_closes() -> None:
    """One ping per silence: the connection closes if the same time passes again without input."""
    alive = KeepAlive(10.0)
    assert (alive.deadline, alive.due(1000.0)) == (
        None,
        KeepAliveAction.NOTHING,
    )  # the timer was not started
    alive.mark_activity(0.0)
    assert [alive.due(at) for at in (0.0, 9.9, 10.0, 10.0, 19.9, 20.0)] == [
        KeepAliveAction.NOTHING,
        KeepAliveAction.NOTHING,
        KeepAliveAction.SEND_PING,
        KeepAliveAction.NOTHING,
        KeepAliveAction.NOTHING,
        KeepAliveAction.CLOSE,
    ]
    assert (alive.deadline, alive.due(1000.0)) == (None, KeepAliveAction.NOTHING)


def test_keep_alive_timer_restarts_on_any_input() -> None:
    alive = KeepAlive(10.0)
    alive.mark_activity(0.0)
    assert alive.due(10.0) is KeepAliveAction.SEND_PING
    alive.mark_activity(15.0)
    assert alive.deadline == 25.0
    assert alive.due(25.0) is KeepAliveAction.SEND_PING


def test_keep_alive_timer_without_interval_does_nothing() -> None:
    alive = KeepAlive(None)
    alive.mark_activity(0.0)
    assert (alive.deadline, alive.idle_seconds, alive.due(1e9)) == (
        None,
        0.0,
        KeepAliveAction.NOTHING,
    )
    assert KeepAlive(10.0).idle_seconds == 20.0
