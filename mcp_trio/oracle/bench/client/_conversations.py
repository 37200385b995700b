"""Whole conversations as calls: connect or start, negotiate, send one ping, and end.

The latency covers all of it, as seen by a client that is started for a single question.
"""

from __future__ import annotations

from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

from mcp_core import DIALECTS
from mcp_trio.oracle.bench._requests import Mix, PreparedCall

from ._callers import CallFailed, CoroutineLoad

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable
    from contextlib import AbstractAsyncContextManager

    from mcp_trio.oracle.bench._process import Meter
    from mcp_trio.oracle.bench._requests import Work
    from mcp_trio.oracle.bench._turn import TargetLoad

    Open = Callable[[], AbstractAsyncContextManager[TargetLoad]]

__all__ = ["CONVERSATIONS", "open_conversations"]

# What such a load calls: each call is one conversation.
CONVERSATIONS: Work = Mix([PreparedCall("", None, "a conversation")])


@asynccontextmanager
async def open_conversations(
    open_load: Open, meter: Meter, *, timeout: float
) -> AsyncIterator[TargetLoad]:
    """Hold one conversation with a target, and yield the load that repeats it.

    Args:
        open_load: begins a conversation, and ends it with its block.
        meter: measures the target's processes.
        timeout: seconds for each conversation.

    Raises:
        ConnectFailed: the target can't be started or reached, or doesn't answer.
    """
    async with open_load() as first:
        await first.ask(DIALECTS[first.revision].ping)
    yield _ConversationLoad(open_load, first, meter, timeout)


class _ConversationLoad(CoroutineLoad):
    """Each call is a conversation."""

    def __init__(self, open_load: Open, first: TargetLoad, meter: Meter, timeout: float) -> None:
        super().__init__(meter, timeout)
        self._open_load = open_load
        self.revision = first.revision
        self.server = first.server
        self.protocol = first.protocol
        self.capabilities = first.capabilities

    async def open_callers(self, count: int) -> None:
        """Open nothing: each call does."""

    async def call(self, number: int, call: PreparedCall, *, wants_result: bool) -> Any:
        """Hold one conversation.

        Raises:
            CallFailed: the ping got an error.
            ConnectFailed: there was no conversation.
            TargetGone: the target ended during it.
        """
        answer = await self.ask(DIALECTS[self.revision].ping)
        error = answer.get("error")
        if error is not None:
            raise CallFailed(str(error.get("code")) if isinstance(error, dict) else "no response")
        return answer.get("result")

    async def ask(self, method: str, params: dict[str, Any] | None = None) -> dict[str, Any]:
        """Send one request in a conversation of its own, and return the response.

        Raises:
            ConnectFailed: there was no conversation.
            TargetGone: the target ended during it.
        """
        async with self._open_load() as load:
            return await load.ask(method, params)
