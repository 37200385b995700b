"""The time that a handler may take (`ToolOptions.timeout`).

It stands still while the handler waits for its client, whose user may take long to answer. In
2026-07-28 a handler doesn't wait for that: it is run again with the answer, and then has the whole
time.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any

from mcp_core._errors import ToolError
from mcp_core.registry._context import collector_of

if TYPE_CHECKING:
    from mcp_core.registry._context import Context
    from mcp_core.registry._server import Server
    from mcp_core.registry.entries._invocation import Invocation

    from ._runtime import Clock, Reschedule, Runtime

__all__ = ["RemainingTime", "run_in_time"]


class RemainingTime:
    """The time that a handler has left, a `TimeLimitLike`.

    Args:
        seconds: how long it may take.
        clock: returns the time, in seconds.
        reschedule: sets the time at which the handler is cancelled, None for never.
    """

    __slots__ = ("_clock", "_left", "_pauses", "_reschedule", "_since")

    def __init__(self, seconds: float, clock: Clock, reschedule: Reschedule) -> None:
        self._clock = clock
        self._reschedule = reschedule
        self._left = seconds
        self._since = clock()
        self._pauses = 0  # waits for the client, which may be side by side

    def __repr__(self) -> str:
        return f"<RemainingTime, {self._left:g} s left at {self._since:g}>"

    def pause(self) -> None:
        """Stop the clock until `resume`, which is called as often."""
        self._pauses += 1
        if self._pauses == 1:
            self._left -= self._clock() - self._since
            self._reschedule(None)

    def resume(self) -> None:
        """Start the clock again, if nothing else has stopped it."""
        self._pauses -= 1
        if not self._pauses:
            self._since = self._clock()
            self._reschedule(self._since + max(self._left, 0.0))


async def run_in_time(
    run: Callable[[], Awaitable[Any]],
    seconds: float,
    invocation: Invocation,
    context: Context | None,
    server: Server,
    runtime: Runtime,
) -> Any:
    """Return the result of `run`, which makes the call `invocation`.

    Raises:
        ToolError: it took longer than `seconds`.
        Exception: `run` raised it.
    """
    collector = None if context is None else collector_of(context)

    async def limited(clock: Clock, reschedule: Reschedule) -> Any:
        if collector is None:
            return await run()
        limit = RemainingTime(seconds, clock, reschedule)
        collector.time_limits = (*collector.time_limits, limit)
        try:
            return await run()
        finally:
            collector.time_limits = tuple(
                each for each in collector.time_limits if each is not limit
            )

    outcome = await runtime.in_time(seconds, limited)
    if outcome is not None:
        return outcome[0]
    if not invocation.thread:
        raise ToolError(f"The tool took longer than {seconds:g} s, and was stopped.")
    label = invocation.function.label
    if server.is_first_report(f"{label} timeout"):
        runtime.warn(
            f"{label} took longer than {seconds:g} s: its thread goes on until it returns, and"
            " occupies one of the threads for handlers meanwhile"
        )
    raise ToolError(f"The tool took longer than {seconds:g} s. It may still be running.")
