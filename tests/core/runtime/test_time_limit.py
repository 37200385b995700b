"""`RemainingTime` and `run_in_time`, with a clock and a cancellation that the test moves."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from mcp_core import ToolError
from mcp_core.registry import Context, Server
from mcp_core.registry._context import collector_of
from mcp_core.runtime._time_limit import RemainingTime
from tests.core.runtime.test_service import Conversation, Quiet, run

if TYPE_CHECKING:
    from collections.abc import Callable


class Timer:
    """A clock, and the times for which a cancellation was set."""

    def __init__(self) -> None:
        self.now = 100.0
        self.set: list[float | None] = []

    def clock(self) -> float:
        return self.now


def limit_of(timer: Timer, seconds: float = 10.0) -> RemainingTime:
    return RemainingTime(seconds, timer.clock, timer.set.append)


def test_remaining_time_after_pauses_is_what_the_handler_has_not_used() -> None:
    """3 s and 2 s are used before two pauses, so that 7 s and then 5 s are left."""
    timer = Timer()
    limit = limit_of(timer)
    assert repr(limit) == "<RemainingTime, 10 s left at 100>"
    timer.now = 103.0
    limit.pause()
    timer.now = 150.0
    limit.resume()
    assert timer.set == [None, 157.0]
    timer.now = 152.0
    limit.pause()
    timer.now = 160.0
    limit.resume()
    assert timer.set == [None, 157.0, None, 165.0]
    assert repr(limit) == "<RemainingTime, 5 s left at 160>"


def test_remaining_time_stands_still_until_the_last_of_several_waits_ends() -> None:
    timer = Timer()
    limit = limit_of(timer)
    timer.now = 104.0
    limit.pause()
    timer.now = 110.0
    limit.pause()
    limit.resume()
    assert timer.set == [None]
    timer.now = 120.0
    limit.resume()
    assert timer.set == [None, 126.0]


def test_remaining_time_that_was_used_up_ends_at_once() -> None:
    """The handler may have asked after its time was over, but before it was cancelled."""
    timer = Timer()
    limit = limit_of(timer)
    timer.now = 112.0
    limit.pause()
    timer.now = 120.0
    limit.resume()
    assert timer.set == [None, 120.0]


class Limiting(Quiet):
    """A runtime whose time limits expire if the test says so, and which keeps its warnings."""

    def __init__(self) -> None:
        super().__init__()
        self.timer = Timer()
        self.limits: list[float] = []
        self.warnings: list[str] = []
        self.expires = False

    async def in_time(self, seconds: float, function: Callable[..., Any]) -> Any:
        self.limits.append(seconds)
        value = await function(self.timer.clock, self.timer.set.append)
        return None if self.expires else (value,)

    def warn(self, text: str) -> None:
        self.warnings.append(text)


class LimitedConversation(Conversation):
    """A conversation with a runtime that limits the time of handlers."""

    def __init__(self, server: Server) -> None:
        super().__init__(server)
        self.service.runtime = self.limiting = Limiting()

    def answer(self, name: str) -> tuple[str, bool]:
        """Return the text of a tool's result, and whether the tool failed."""
        (job,) = self.call(name)
        try:
            job.done(run(job.run()))
        except Exception as exc:  # noqa: BLE001 - as a runtime does
            job.failed(exc)
        return self.text()


def limited() -> Server:
    server = Server("limited")

    @server.tool(timeout=2.5)
    async def pausing(context: Context) -> str:
        """Stop the clock, as a wait for the client does."""
        limit: Any
        (limit,) = collector_of(context).time_limits
        limit.pause()
        limit.resume()
        return "done"

    @server.tool(timeout=3)
    async def plain() -> str:
        """Do nothing."""
        return "done"

    @server.tool(timeout=4, thread=True)
    def blocking() -> str:
        """Do nothing, in a thread."""
        return "done"

    @server.tool(timeout=4, thread=True)
    def other() -> str:
        """Do nothing, in a thread."""
        return "done"

    return server


def test_handler_with_a_limit_is_run_in_its_time() -> None:
    """A handler with a context can pause its limit, which is gone when it has ended."""
    conversation = LimitedConversation(limited())
    assert conversation.answer("plain") == ("done", False)
    (job,) = conversation.call("pausing", 2)
    job.done(run(job.run()))
    assert conversation.text() == ("done", False)
    assert conversation.limiting.limits == [3, 2.5]
    assert conversation.limiting.timer.set == [None, 102.5]
    assert job.input_collector.time_limits == ()


def test_handler_above_its_limit_fails_for_the_model() -> None:
    """Only a thread may go on. Its warning is logged once for each tool."""
    conversation = LimitedConversation(limited())
    conversation.limiting.expires = True
    stopped = "The tool took longer than 3 s, and was stopped."
    assert conversation.answer("plain") == (stopped, True)
    assert conversation.limiting.warnings == []
    for name in ("blocking", "blocking", "other"):
        going_on = "The tool took longer than 4 s. It may still be running."
        assert conversation.answer(name) == (going_on, True)
    rest = (
        "took longer than 4 s: its thread goes on until it returns, and occupies one of the threads"
        " for handlers meanwhile"
    )
    assert conversation.limiting.warnings == [
        f"function 'blocking' {rest}",
        f"function 'other' {rest}",
    ]
    assert conversation.limiting.reports == []


def test_handler_that_raises_within_its_limit_keeps_its_error() -> None:
    server = Server("raising")

    @server.tool(timeout=2)
    async def refuse(context: Context) -> str:
        """Fail for the model."""
        raise ToolError("no")

    conversation = LimitedConversation(server)
    (job,) = conversation.call("refuse")
    with pytest.raises(ToolError, match=r"^no$"):
        run(job.run())
    assert job.input_collector.time_limits == ()
