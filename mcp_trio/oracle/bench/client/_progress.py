"""The progress of one call: how many notifications a second reach the client."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import trio

from mcp_core import McpTrioError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from mcp_trio._client import Client

__all__ = ["ProgressRate", "measure_progress"]

_CLIENT_BOUND: Final = 0.85  # of a core


@dataclass
class ProgressRate:
    """The progress of one call.

    Attributes:
        wanted: how many notifications were asked for.
        events: how many have come.
        first: seconds from the call to the first one, None without any.
        last: seconds from the call to the last one.
        seconds: how long the call took.
        load_cpu: processor time of this process, in seconds.
        error: why the figures don't count, or "".
    """

    wanted: int
    events: int = 0
    first: float | None = None
    last: float | None = None
    seconds: float = 0.0
    load_cpu: float = 0.0
    error: str = ""

    @property
    def rate(self) -> float | None:
        """Notifications a second from the first to the last; None for fewer than two."""
        if self.first is None or self.last is None or self.last <= self.first:
            return None
        return (self.events - 1) / (self.last - self.first)

    def to_json(self) -> dict[str, Any]:
        """Return it as JSON values, in seconds."""
        return {
            "wanted": self.wanted,
            "events": self.events,
            "rate": self.rate,
            "first": self.first,
            "last": self.last,
            "seconds": self.seconds,
            "load_cpu": self.load_cpu,
            "error": self.error or None,
        }

    @property
    def is_client_bound(self) -> bool:
        """True if this process was busy nearly all the time, so the target may be faster."""
        return self.seconds > 0 and self.load_cpu > _CLIENT_BOUND * self.seconds


async def measure_progress(
    client: Client,
    tool: str,
    arguments: Mapping[str, Any],
    wanted: int,
    *,
    timeout: float,
    on_begin: Callable[[trio.CancelScope], object] = lambda _: None,
) -> ProgressRate:
    """Call a tool once with a progress token, and count its progress notifications.

    Args:
        client: a client of the target.
        tool: the tool.
        arguments: its arguments. It should then report `wanted` times or more.
        wanted: how many notifications are expected.
        timeout: seconds without a response or progress.
        on_begin: gets a scope. Its cancellation ends the call, and returns what has come.
    """
    found = ProgressRate(wanted)
    began, cpu = trio.current_time(), time.process_time()

    def count(*_: object) -> None:
        found.last = trio.current_time() - began
        if found.first is None:
            found.first = found.last
        found.events += 1

    with trio.CancelScope() as scope:
        on_begin(scope)
        try:
            result = await client.call_tool(
                tool,
                arguments,
                timeout=timeout,
                max_timeout=None,
                progress=count,
                check_output="off",
            )
            if result.is_error:
                found.error = "the tool failed"
        except McpTrioError as exc:
            found.error = str(exc).partition("\n")[0]
    if scope.cancelled_caught:
        found.error = "the call was interrupted"
    found.seconds = trio.current_time() - began
    found.load_cpu = time.process_time() - cpu
    if not found.error and found.events < wanted:
        found.error = (
            f"{found.events:,} of {wanted:,} progress notifications came: give --args with which"
            " the tool reports more, or ask for fewer"
        )
    return found
