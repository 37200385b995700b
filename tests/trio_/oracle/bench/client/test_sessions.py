"""Idle sessions: how many open, the memory of each, and the errors if they don't open."""

from __future__ import annotations

from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

import pytest
import trio
import trio.testing

from mcp_core import ConnectFailed
from mcp_trio.oracle.bench._turn import TargetGone
from mcp_trio.oracle.bench.client._sessions import (
    IdleSessions,
    TooManyFiles,
    measure_sessions,
    require_files,
)

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

Clock = trio.testing.MockClock


class _Session:
    """An open session."""

    revision = "2025-11-25"


class _CountedTarget:
    """A target that needs 10 bytes, and 7 for each session, and takes `most` of them."""

    def __init__(self, most: int = 10**6) -> None:
        self.most = most
        self.open = 0
        self.opening = 0
        self.highest = 0

    def memory(self) -> int | None:
        return 10 + 7 * self.open

    @asynccontextmanager
    async def session(self) -> AsyncIterator[_Session]:
        self.opening += 1
        self.highest = max(self.highest, self.opening)
        await trio.sleep(0.1)
        self.opening -= 1
        if self.open >= self.most:
            raise ConnectFailed("HTTP 503\nand more")
        self.open += 1
        try:
            yield _Session()
        finally:
            self.open -= 1


async def test_memory_of_each_session_is_that_of_all_without_the_first_use(
    autojump_clock: Clock,
) -> None:
    target = _CountedTarget()
    found = await measure_sessions(target.session, target.memory, 100)
    assert (found.opened, found.before, found.after, found.each) == (100, 10, 710, 7.0)
    assert (found.revision, found.error) == ("2025-11-25", "")
    assert found.seconds == pytest.approx(0.7)
    assert (target.open, target.highest) == (0, 16)


async def test_target_that_takes_no_more_sessions_is_measured_so_far(
    autojump_clock: Clock,
) -> None:
    target = _CountedTarget(most=20)
    found = await measure_sessions(target.session, target.memory, 1_000)
    assert (found.opened, found.each, target.open) == (20, 7.0, 0)
    assert found.error.startswith("session 21 of 1,000 could not be opened: HTTP 503; the server")
    assert "ulimit -n" in found.error


async def test_first_session_that_cannot_be_opened_is_no_target(autojump_clock: Clock) -> None:
    target = _CountedTarget(most=0)
    with pytest.raises(ConnectFailed, match="HTTP 503"):
        await measure_sessions(target.session, target.memory, 3)


async def test_session_that_ends_while_others_open_is_the_error(autojump_clock: Clock) -> None:
    target = _CountedTarget()

    @asynccontextmanager
    async def ending() -> AsyncIterator[_Session]:
        async with target.session() as session:
            with trio.move_on_after(0.25) as scope:
                yield session
            if scope.cancelled_caught:
                raise TargetGone("the server has ended\nand more")

    found = await measure_sessions(ending, target.memory, 1_000)
    assert found.error == "a session ended: the server has ended"
    assert (found.opened, target.open) == (0, 0)


async def test_memory_that_is_unknown_stays_unknown(autojump_clock: Clock) -> None:
    target = _CountedTarget()
    found = await measure_sessions(target.session, lambda: None, 3)
    assert (found.before, found.after, found.each) == (None, None, None)
    # Programs have no memory before they run.
    memories = iter([None, 900])
    found = await measure_sessions(target.session, lambda: next(memories), 3)
    assert (found.before, found.each) == (0, 300.0)


@pytest.mark.parametrize(
    ("limit", "sessions", "each", "error"),
    [
        (1_024, 960, 1, None),
        (-1, 10**6, 1, None),
        (
            1_024,
            961,
            1,
            "961 sessions need about 1,025 open files, and this process may have",
        ),
        (256, 1_000, 8, "`ulimit -n 8064` in the shell allows them, or open 24 sessions"),
    ],
)
def test_limit_of_open_files_is_said_with_its_cure(
    limit: int, sessions: int, each: int, error: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    resource = pytest.importorskip("resource")
    monkeypatch.setattr(resource, "getrlimit", lambda _: (limit, limit))
    if error is None:
        require_files(sessions, each=each)
    else:
        with pytest.raises(TooManyFiles) as info:
            require_files(sessions, each=each)
        assert error in str(info.value)


async def test_interrupted_opening_is_measured_so_far(autojump_clock: Clock) -> None:
    """Its time ends with the interruption, and the memory is read as otherwise."""
    target = _CountedTarget()
    scopes: list[trio.CancelScope] = []
    async with trio.open_nursery() as nursery:

        async def interrupt() -> None:
            await trio.sleep(0.35)  # of which 0.1 s is for the session that isn't counted
            scopes[0].cancel()

        nursery.start_soon(interrupt)
        began = trio.current_time()
        found = await measure_sessions(target.session, target.memory, 1_000, scopes.append)
        # Those that are being opened meanwhile are opened, and counted.
        assert trio.current_time() - began == pytest.approx(0.85)
    assert found.error == "interrupted with 32 of 1,000 sessions"
    assert found.seconds == pytest.approx(0.25)
    assert (target.open, target.opening) == (0, 0)


def test_sessions_as_json_have_the_memory_of_each() -> None:
    found = IdleSessions(9, 4, 0.5, 100, 300, "2025-11-25")
    assert found.to_json() == {
        "wanted": 9,
        "opened": 4,
        "seconds": 0.5,
        "before": 100,
        "after": 300,
        "each": 50.0,
        "revision": "2025-11-25",
        "error": None,
    }
    assert IdleSessions(9, 0, 0.5, 100, 300, "2025-11-25").each is None


@pytest.mark.parametrize(
    ("limit", "text"),
    [
        (1_000, "`ulimit -n 8064` in the shell allows them, or open 117 sessions"),
        (64, "this process may have 64: `ulimit -n 8064` in the shell allows them, or open 0 "),
        (3, "this process may have 3: `ulimit -n 8064` in the shell allows them, or open 0 "),
    ],
)
def test_number_of_sessions_that_fit_is_said(
    limit: int, text: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    resource = pytest.importorskip("resource")
    monkeypatch.setattr(resource, "getrlimit", lambda _: (limit, 10**6))
    with pytest.raises(TooManyFiles) as info:
        require_files(1_000, each=8)
    assert text in str(info.value)
