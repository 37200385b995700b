"""The states of a server: the table, the delays between attempts, and random histories."""

from __future__ import annotations

from typing import get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcp_core.host import (
    SERVER_TRANSITIONS,
    CatalogList,
    ListProblem,
    ServerEvent,
    ServerState,
    ServerStatus,
    ServerSupervisor,
)

DIED, CONNECTED, RETRY_DUE = ServerEvent.DIED, ServerEvent.CONNECTED, ServerEvent.RETRY_DUE


def state_after(*events: ServerEvent, is_enabled: bool = True, is_approved: bool = True) -> str:
    server = ServerSupervisor(0.0, is_enabled=is_enabled, is_approved=is_approved)
    for event in events:
        server.apply(event, 0.0)
    return server.status.state


def delays_of(*ready_for: float | None) -> list[float]:
    """Return the delay after each death, of attempts that were ready for so many seconds."""
    now = 0.0
    server = ServerSupervisor(now)
    found = []
    for seconds in ready_for:
        if seconds is not None:
            server.apply(CONNECTED, now)
            now += seconds
        status = server.apply(DIED, now)
        assert status is not None
        assert status.retry_at is not None
        found.append(round(status.retry_at - now, 6))
        now = status.retry_at
        assert server.apply(RETRY_DUE, now) is not None
    return found


def test_table_has_every_state_and_each_can_be_reached() -> None:
    assert set(SERVER_TRANSITIONS) == set(get_args(ServerState))
    reached = {state for cells in SERVER_TRANSITIONS.values() for state in cells.values()}
    assert reached == set(get_args(ServerState))


@pytest.mark.parametrize(
    ("is_enabled", "is_approved", "state"),
    [
        (True, True, "connecting"),
        (True, False, "unapproved"),
        (False, True, "disabled"),
        (False, False, "disabled"),
    ],
)
def test_first_state_depends_on_file_and_approval(
    is_enabled: bool, is_approved: bool, state: str
) -> None:
    assert state_after(is_enabled=is_enabled, is_approved=is_approved) == state


def test_server_that_starts_at_once_is_ready() -> None:
    server = ServerSupervisor(5.0)
    assert server.status == ServerStatus(state="connecting", since=5.0, attempt=1)
    assert server.apply(CONNECTED, 6.0) == ServerStatus(state="ready", since=6.0, attempt=1)


def test_delay_after_deaths_before_ready_doubles_to_half_a_minute() -> None:
    assert delays_of(*[None] * 9) == [0, 1, 2, 4, 8, 16, 30, 30, 30]
    assert delays_of(*[None] * 2000)[-1] == 30


def test_delay_begins_anew_after_ten_seconds_of_ready() -> None:
    assert delays_of(None, None, None, 10.0, None, None) == [0, 1, 2, 0, 1, 2]
    assert delays_of(None, None, None, 9.9, None) == [0, 1, 2, 4, 8]


def test_server_that_dies_every_minute_is_started_at_once() -> None:
    assert delays_of(*[60.0] * 5) == [0] * 5


def test_server_is_not_started_before_its_time() -> None:
    server = ServerSupervisor(0.0)
    server.apply(DIED, 0.0)
    server.apply(RETRY_DUE, 0.0)
    server.apply(DIED, 0.0, reason="exit status 1")
    assert server.status == ServerStatus(
        state="failed", reason="exit status 1", since=0.0, attempt=2, retry_at=1.0
    )
    assert server.apply(RETRY_DUE, 0.9) is None
    assert server.apply(RETRY_DUE, 1.0) == ServerStatus(state="connecting", since=1.0, attempt=3)


@pytest.mark.parametrize("ready", [False, True])
def test_verdict_is_never_tried_again(ready: bool) -> None:
    server = ServerSupervisor(0.0)
    if ready:
        server.apply(CONNECTED, 0.0)
    status = server.apply(ServerEvent.REJECTED, 0.0, reason="no such file")
    assert status == ServerStatus(state="failed", reason="no such file", since=0.0, attempt=1)
    assert server.apply(RETRY_DUE, 1e9) is None
    assert server.apply(DIED, 1e9) is None
    assert server.apply(ServerEvent.RESTARTED, 1e9) is not None
    assert server.status.state == "connecting"


def test_restart_by_the_user_begins_anew() -> None:
    server = ServerSupervisor(0.0)
    for _ in range(5):
        server.apply(DIED, 0.0)
        server.apply(RETRY_DUE, 100.0)
    server.apply(DIED, 0.0)
    server.apply(ServerEvent.RESTARTED, 0.0)
    status = server.apply(DIED, 0.0)
    assert status is not None
    assert status.retry_at == 0.0


def test_login_leads_to_another_attempt() -> None:
    needed = ServerEvent.LOGIN_REQUIRED
    assert state_after(needed) == "needs login"
    assert state_after(CONNECTED, needed) == "needs login"
    assert state_after(needed, DIED, RETRY_DUE) == "needs login"
    assert state_after(needed, ServerEvent.LOGGED_IN) == "connecting"
    assert state_after(needed, ServerEvent.REJECTED) == "failed"
    assert state_after(ServerEvent.REJECTED, ServerEvent.LOGGED_IN) == "connecting"


def test_server_without_approval_waits_for_it() -> None:
    assert state_after(ServerEvent.APPROVED, is_approved=False) == "connecting"
    assert state_after(ServerEvent.RESTARTED, is_approved=False) == "unapproved"
    assert state_after(CONNECTED, ServerEvent.APPROVAL_LOST) == "unapproved"
    # While it is disabled the approval is noted.
    enabled, approved = ServerEvent.ENABLED, ServerEvent.APPROVED
    assert state_after(approved, enabled, is_enabled=False, is_approved=False) == "connecting"
    assert state_after(enabled, is_enabled=False, is_approved=False) == "unapproved"
    lost = (ServerEvent.DISABLED, ServerEvent.APPROVAL_LOST, enabled)
    assert state_after(*lost) == "unapproved"


def test_event_of_earlier_attempt_changes_nothing() -> None:
    server = ServerSupervisor(0.0)
    server.apply(ServerEvent.RESTARTED, 0.0)
    assert server.status.attempt == 2
    for event in (CONNECTED, DIED, ServerEvent.REJECTED, ServerEvent.LOGIN_REQUIRED):
        assert server.apply(event, 0.0, attempt=1) is None
    assert server.apply(CONNECTED, 0.0, attempt=2) is not None


def test_end_of_process_of_disabled_server_changes_nothing() -> None:
    assert state_after(ServerEvent.DISABLED, DIED) == "disabled"
    assert state_after(ServerEvent.DISABLED, DIED, RETRY_DUE) == "disabled"
    assert state_after(ServerEvent.APPROVAL_LOST, DIED, RETRY_DUE) == "unapproved"


@given(
    st.booleans(),
    st.booleans(),
    st.lists(st.tuples(st.sampled_from(ServerEvent), st.floats(0, 40))),
)
def test_any_history_keeps_the_rules(
    is_enabled: bool, is_approved: bool, history: list[tuple[ServerEvent, float]]
) -> None:
    """Events come in any order: an unapproved server never connects, and every crash is retried."""
    now = 0.0
    server = ServerSupervisor(now, is_enabled=is_enabled, is_approved=is_approved)
    for event, seconds in history:
        now += seconds
        is_approved = {ServerEvent.APPROVED: True, ServerEvent.APPROVAL_LOST: False}.get(
            event, is_approved
        )
        old = server.status
        new = server.apply(event, now)
        status = server.status
        assert (new is None) == (status is old)
        if status.state in ("connecting", "ready"):
            assert is_approved
        assert (status.retry_at is not None) <= (status.state == "failed")
        if new is not None:
            assert new.since == now
            assert new.attempt - old.attempt == (new.state == "connecting")
            if new.state == "connecting":
                assert event is not DIED
                assert old.retry_at is None or event is not RETRY_DUE or now >= old.retry_at
            if event is DIED:
                assert new.retry_at is not None
                assert 0 <= new.retry_at - now <= 30.001


def test_server_without_restarts_fails_for_good_until_it_is_restarted() -> None:
    server = ServerSupervisor(0.0, restarts=False)
    status = server.apply(DIED, 1.0, reason="gone")
    assert status is not None
    assert (status.state, status.reason, status.retry_at) == ("failed", "gone", None)
    assert server.apply(RETRY_DUE, 9.0) is None
    again = server.apply(ServerEvent.RESTARTED, 9.0)
    assert again is not None
    assert again.state == "connecting"


def ready_server() -> ServerSupervisor:
    server = ServerSupervisor(0.0)
    server.apply(CONNECTED, 0.0)
    return server


def test_list_that_cannot_be_read_is_due_again_after_growing_delays() -> None:
    """Each list has delays of its own, which begin anew once it was read."""
    server, found, now = ready_server(), [], 0.0
    for _ in range(12):
        server.list_read("tools", "no", now)
        [problem] = server.status.problems
        found.append(problem.retry_at - now)
        now = problem.retry_at
    assert found == [0.5, 1, 2, 4, 8, 16, 32, 64, 128, 256, 300, 300]
    server.list_read("prompts", "no", now)
    server.list_read("tools", None, now)
    assert server.status.problems == (ListProblem(list="prompts", reason="no", retry_at=now + 0.5),)
    server.list_read("tools", "no", now)
    assert [each.retry_at - now for each in server.status.problems] == [0.5, 0.5]


def test_problem_of_a_list_is_news_once() -> None:
    server = ready_server()
    outcomes: list[tuple[CatalogList, str | None, bool]] = [
        ("tools", None, False),
        ("tools", "no", True),
        ("tools", "no", False),
        ("prompts", "no", True),
        ("tools", "another", True),
        ("tools", None, True),
        ("tools", None, False),
    ]
    for name, problem, is_news in outcomes:
        assert server.list_read(name, problem, 1.0) is is_news
    assert [each.list for each in server.status.problems] == ["prompts"]


@pytest.mark.parametrize("event", [DIED, ServerEvent.DISABLED, ServerEvent.RESTARTED])
def test_problems_of_lists_end_with_the_connection(event: ServerEvent) -> None:
    """A late outcome of the old connection changes nothing, and the next one has first delays."""
    server = ready_server()
    for _ in range(5):
        server.list_read("tools", "no", 0.0)
    server.apply(event, 1.0)
    assert not [*server.status.problems]
    assert not server.list_read("tools", "no", 1.0)
    assert not [*server.status.problems]
    for later in ServerEvent.ENABLED, RETRY_DUE, CONNECTED:
        server.apply(later, 2.0)
    server.list_read("tools", "no", 2.0)
    [problem] = server.status.problems
    assert problem.retry_at == 2.5
