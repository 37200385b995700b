"""A nursery that does not wrap what its own block raises.

Trio's nursery raises a group even when one thing failed, since it cannot know whether several did. In the places where we
use one, the background tasks do not raise, so a group of one is the user's own exception in a wrapper that nobody asked for.
A cancellation from outside that strikes at the same moment does not change that: the failure replaces it, as it would
without a nursery.
"""

from __future__ import annotations

from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

import trio

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

__all__ = ["open_quiet_nursery"]


@asynccontextmanager
async def open_quiet_nursery(*, wait: bool = False) -> AsyncIterator[trio.Nursery]:
    """Like `trio.open_nursery`, but a single failure comes out as it is. Background tasks are cancelled at the end, unless
    it is to `wait` for them."""
    failure: BaseException
    try:
        async with trio.open_nursery() as nursery:
            yield nursery
            if not wait:
                nursery.cancel_scope.cancel()
        return
    except BaseExceptionGroup as group:
        failures = [exc for exc in group.exceptions if not isinstance(exc, trio.Cancelled)]
        if len(failures) > 1:
            raise
        failure = failures[0] if failures else group.exceptions[0]
    # Outside the handler, so that the group does not become the context of what it held.
    raise failure
