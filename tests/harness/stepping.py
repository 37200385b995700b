"""Await something step by step, without a runtime.

A test sees what is waited for, and decides how each wait ends.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Generator

T = TypeVar("T")


class Cancelled(BaseException):
    """The exception that a test raises in a task to cancel it."""


class Wait:
    """A wait that a test sees as `what`, and ends with a value or an exception."""

    def __init__(self, what: str) -> None:
        self.what = what

    def __await__(self) -> Generator[Any, Any, Any]:
        return (yield self.what)


class FakeEvent:
    """An `EventLike`. A wait for it shows as "event"."""

    def __init__(self) -> None:
        self.is_set = False

    def set(self) -> None:
        self.is_set = True

    def wait(self) -> Wait:
        return Wait("event")


class FakeTask:
    """A task that a test runs. `waits` is what it waits for, None once it is over."""

    def __init__(self, function: Callable[[], Awaitable[Any]]) -> None:
        self.waits: str | None = "its beginning"
        self.result: Any = None
        self.failure: BaseException | None = None
        self._steps = steps_of(function)

    def go(self, error: BaseException | None = None) -> None:
        """Go on until the next wait, or the end."""
        try:
            self.waits = self._steps.send(None) if error is None else self._steps.throw(error)
        except StopIteration as end:
            self.waits = None
            self.result = end.value
        except BaseException as exc:  # noqa: BLE001 - the test looks at it
            self.waits = None
            self.failure = exc

    def run(self) -> FakeTask:
        """Go on until the end."""
        while self.waits is not None:
            self.go()
        return self


def steps_of(function: Callable[[], Awaitable[T]]) -> Generator[Any, Any, T]:
    """Await `function()`, which is called at the first step.

    Without any step there is no coroutine, so none is reported as never awaited.
    """
    return (yield from function().__await__())


def result_of(awaitable: Awaitable[T]) -> T:
    """Return the result of an awaitable that never waits."""
    steps = awaitable.__await__()
    try:
        next(steps)
    except StopIteration as end:
        result: T = end.value
        return result
    raise AssertionError("it waits")
