"""What one waits for, whatever runtime does the waiting."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Awaitable

__all__ = ["Bell"]


class Bell(Protocol):
    """As `Event` of trio and asyncio is: rung once, and then whoever waits goes on, and nobody waits any more."""

    def set(self) -> object: ...
    def wait(self) -> Awaitable[object]: ...
