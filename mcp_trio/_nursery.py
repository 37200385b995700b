"""A nursery that doesn't wrap the exception of its own block in a group.

Trio's nursery raises a group even for a single failure, because several tasks could have failed.
Where this package opens a nursery, the background tasks don't raise: a group of one holds the
user's own exception. A cancellation from outside at the same moment is replaced by the failure, as
it would be without a nursery.
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
    """Open a nursery like `trio.open_nursery`, but raise a single failure without a group.

    At the end of the block, background tasks are cancelled, or awaited if `wait` is true.
    """
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
    # Outside the `except` block: the group must not become the context of its own member.
    raise failure
