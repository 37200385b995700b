"""The client: what trio adds to a `Caller` is the waiting, and a link to carry the conversation.

Rules of this file:

1. A call costs one wait. Its answer is handed to the waiting task by the reader; leaving the call's scope cancels it.
2. Whatever happens to the conversation, every pending call ends at once with one typed exception.
3. `Client.aclose` may be called from any task, at any time, in any order among clients.

What may be asked in which revision, and what an answer means, is the core's.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any, Final, TypeVar

import trio

from mcp_core import Caller, CallOptions, CallTimeout, Listing, MessageRejected, Waiter

from ._link import Link
from ._trace import TracedStream

if TYPE_CHECKING:
    from collections.abc import Mapping

    from msgspec import Struct

    from mcp_core import Config, Event, Peer

    from ._trace import Trace

__all__ = ["Client"]

_LAST_WRITE: Final = 1.0

T = TypeVar("T")

_log = logging.getLogger("mcp_trio")


class _Call(Waiter):
    """A call that the current task waits for."""

    def __init__(self, options: CallOptions) -> None:
        super().__init__(options)
        self.scope = None if self.seconds is None else trio.move_on_after(self.seconds)
        self._task = trio.lowlevel.current_task()

    def wake(self) -> None:
        trio.lowlevel.reschedule(self._task)

    def prolong(self) -> None:
        if self.scope is not None and self.seconds is not None:
            self.scope.deadline = trio.current_time() + self.seconds

    async def wait(self) -> Any:
        await trio.lowlevel.wait_task_rescheduled(self._give_up)
        return self.result()

    def _give_up(self, _: object) -> trio.lowlevel.Abort:
        self.done = True
        return trio.lowlevel.Abort.SUCCEEDED


class Client(Caller):
    """One open conversation with a server. Made by `connect`, `connect_stdio` or `connect_stream`.

    Its calls, what they can be told and what they raise are those of `Caller`. A call is cancelled by leaving its scope.
    """

    def __init__(self, config: Config, stream: trio.abc.Stream, trace: Trace | None = None) -> None:
        super().__init__(config)
        self._stream = stream if trace is None else TracedStream(stream, trace)
        self._link = Link(self._conn, self._stream, self._take)
        self._settled = trio.Event()
        self._closed = False

    async def open(self, nursery: trio.Nursery, verdict: Peer | None = None) -> None:
        """Carry the conversation in `nursery` and wait until it is open. The `connect` functions do this.

        `verdict` is the peer of an earlier conversation with the same server.

        Raises:
            ConnectFailed: it did not come about.
        """
        self._conn.open(trio.current_time(), verdict=verdict)
        for run in (self._link.write, self._link.tick, self._link.read):
            nursery.start_soon(run)
        self._link.pump()
        await self._settled.wait()
        self._standing.require_open()

    async def aclose(self) -> None:
        """End the conversation. From any task, any number of times; calls that are pending raise `ConnectionLost`."""
        if not self._closed:
            self._closed = True
            self._conn.close()
            self._link.pump()
            with trio.move_on_after(_LAST_WRITE, shield=True):
                await self._link.flush()
            self._link.stop_reading()
        with trio.CancelScope(shield=True):
            await self._stream.aclose()

    async def _call(
        self, method: str, params: Struct | Mapping[str, Any] | None, options: CallOptions
    ) -> Any:
        # Before the request is out: then nothing may fail any more but the wait.
        call = _Call(options)
        id = self._ask(method, params, call, options)
        self._link.pump()
        try:
            if call.scope is None:
                return await call.wait()
            with call.scope:
                return await call.wait()
        finally:
            self._conn.send_cancel(id, "the caller gave up")  # nothing happens to a call that was answered
            if self._conn.queued():
                self._link.pump()
        raise CallTimeout(f"no answer to {method} within {call.seconds} s")

    async def _list(self, listing: Listing[T], options: CallOptions) -> list[T]:
        while listing.wanted:
            listing.take(await self._call(listing.method, listing.params, options))
        return listing.items

    def _take(self, event: Event) -> None:
        if isinstance(event, MessageRejected):
            _log.debug("message rejected: %s", event.error)
        self._standing.take(event)
        if self._standing.settled:
            self._settled.set()
