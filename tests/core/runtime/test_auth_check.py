"""`run_auth_check`: which awaitable each step gets, and what becomes of its result or exception."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from mcp_core.runtime import run_auth_check
from tests.harness.stepping import (
    Cancelled,
    FakeTask,
    Wait,
    result_of,
)

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable


class FakeStep:
    """A step that brings its own awaitable."""

    def __init__(self, function: Callable[[], Awaitable[Any]]) -> None:
        self.awaitable = function()


class FakeCheck:
    """An `AuthCheck` with given steps. `calls` are the calls of `send` and `throw`."""

    def __init__(self, *steps: Any) -> None:
        self.steps = list(steps)
        self.calls: list[tuple[str, Any, float]] = []

    @property
    def step(self) -> Any:
        return self.steps[0] if self.steps else None

    def send(self, reply: Any, now: float) -> None:
        del self.steps[0]
        self.calls.append(("send", reply, now))

    def throw(self, exc: BaseException, now: float) -> None:
        del self.steps[0]
        self.calls.append(("throw", exc, now))


async def fetch(step: Any) -> str:
    return f"fetched {step}"


def check_of(*steps: Any) -> Any:
    return FakeCheck(*steps)


def test_step_with_awaitable_is_awaited() -> None:
    async def verify() -> str:
        return "grant"

    check = check_of(FakeStep(verify))
    result_of(run_auth_check(check, None, lambda: 3.0))
    assert check.calls == [("send", "grant", 3.0)]


def test_other_steps_are_fetched_one_after_the_other() -> None:
    check = check_of("keys", "metadata")
    result_of(run_auth_check(check, fetch, lambda: 3.0))
    assert check.calls == [("send", "fetched keys", 3.0), ("send", "fetched metadata", 3.0)]


def test_step_without_fetch_fails() -> None:
    check = check_of("keys")
    result_of(run_auth_check(check, None, lambda: 3.0))
    ((name, exc, _),) = check.calls
    assert (name, type(exc)) == ("throw", RuntimeError)
    assert "JwtVerifier(..., jwks=KEYS)" in str(exc)


@pytest.mark.parametrize("error", [ValueError(), SystemExit()])
def test_step_raising_is_passed_to_check(error: BaseException) -> None:
    async def verify() -> str:
        raise error

    check = check_of(FakeStep(verify))
    result_of(run_auth_check(check, fetch, lambda: 3.0))
    assert check.calls == [("throw", error, 3.0)]


def test_step_cancelled_leaves_check_undecided() -> None:
    """The driver calls `time_out` then. The check must not take the cancellation for a denial."""

    async def slow(step: Any) -> Any:
        return await Wait("fetch")

    check = check_of("keys")
    task = FakeTask(lambda: run_auth_check(check, slow, lambda: 3.0))
    task.go()
    assert task.waits == "fetch"
    task.go(Cancelled())
    assert isinstance(task.failure, Cancelled)
    assert check.calls == []
