"""The limits of one tool's calls: how long a call may take, and how many there may be.

It is loaded with the first tool that has a limit: most servers don't need it.
"""

from __future__ import annotations

from math import isfinite
from typing import TYPE_CHECKING, Any, NamedTuple

from mcp_core._limits import Buckets, Rate
from mcp_core.registry._errors import DeclarationError

if TYPE_CHECKING:
    from mcp_core.registry.functions._function import Function

__all__ = ["CallLimits", "read_call_limits"]


class CallLimits(NamedTuple):
    """The limits of a tool's calls.

    `timeout` is in seconds, None for no limit. `buckets` count the calls of each client, None if
    they aren't counted.
    """

    timeout: float | None
    buckets: Buckets | None


def read_call_limits(timeout: Any, rate: Any, function: Function, thread: bool) -> CallLimits:
    """Return the limits that a tool declares.

    Args:
        timeout: the option of that name.
        rate: the option of that name.
        function: the tool's function.
        thread: True if it runs in a worker thread.

    Raises:
        DeclarationError: an option has another value, or the function cannot be stopped.
    """
    if timeout is not None:
        is_number = isinstance(timeout, int | float) and not isinstance(timeout, bool)
        if not is_number or not (timeout > 0 and isfinite(timeout)):
            raise DeclarationError(
                f"{function.label}: timeout is a number of seconds above 0, not {timeout!r}"
            )
        if not function.is_async and not thread:
            raise DeclarationError(
                f"{function.label} is a plain def, which nothing can stop in the event loop: with"
                " timeout= declare it with thread=True, or as an `async def`"
            )
    if rate is not None and not isinstance(rate, Rate):
        raise DeclarationError(
            f"{function.label}: rate is a Rate, such as Rate(per_second=1, burst=10), not {rate!r}"
        )
    return CallLimits(timeout, None if rate is None else Buckets(rate))
