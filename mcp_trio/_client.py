"""The client: what trio adds to an `AbstractClient` is the waiting, and a carrier of the conversation.

Rules of this file:

1. A call costs one wait. Its answer is handed to the waiting task by the reader; leaving the call's scope cancels it.
2. Whatever happens to the conversation, every pending call ends at once with one typed exception.
3. `Client.aclose` may be called from any task, at any time, in any order among clients.
4. Callbacks that answer the server run in tasks of the client's. They are over when the block of `connect` is.

What may be asked in which revision, and what an answer means, is the core's. How the conversation travels, on a stream or over
HTTP, is its carrier's.
"""

from __future__ import annotations

import logging
import math
from typing import TYPE_CHECKING, Final, Protocol, TypeVar

import trio

from mcp_core import MessageRejected
from mcp_core.runtime import AbstractClient, Waiter

from ._jobs import start_job

if TYPE_CHECKING:
    from collections.abc import Callable

    from mcp_core import Config, Connection, Event
    from mcp_core.runtime import CallerOptions, CallOptions, Job, Steps

__all__ = ["Carrier", "Client"]

_LAST_WRITE: Final = 1.0

T = TypeVar("T")

_log = logging.getLogger("mcp_trio")


class Carrier(Protocol):
    """What brings a conversation to the server and back. It never raises: how it goes is told by the connection's events.

    `protocol`: what is spoken below MCP, as people write it; empty for a mere stream of bytes.
    """

    @property
    def protocol(self) -> str: ...

    def start(self, nursery: trio.Nursery) -> None:
        """Carry the conversation in tasks of `nursery`."""

    def pump(self) -> None:
        """To be called after any call into the connection, from any task of this run. This waits for nothing."""

    async def flush(self) -> None:
        """Wait until the server was told all that there is to tell, or cannot be told."""

    async def aclose(self) -> None:
        """Let go of everything that is open. Any number of times."""


class _Call(Waiter[T]):
    """A call that the current task waits for, inside `scope`."""

    scope: trio.CancelScope
    _task: trio.lowlevel.Task | None = None

    def wake(self) -> None:
        if self._task is not None:
            trio.lowlevel.reschedule(self._task)

    def rearm(self) -> None:
        self.scope.deadline = self.until

    @property
    def until(self) -> float:
        return math.inf if self.deadline is None else self.deadline

    async def wait(self) -> None:
        if self.done:
            await trio.lowlevel.checkpoint()
        else:
            self._task = trio.lowlevel.current_task()
            await trio.lowlevel.wait_task_rescheduled(self._give_up)

    def _give_up(self, _: object) -> trio.lowlevel.Abort:
        self._task = None
        return trio.lowlevel.Abort.SUCCEEDED


class Client(AbstractClient):
    """One open conversation with a server. Made by `connect`, `connect_http`, `connect_stdio` or `connect_stream`.

    Its calls, what they can be told and what they raise are those of `AbstractClient`. A call is cancelled by leaving its scope.
    """

    def __init__(
        self,
        config: Config,
        options: CallerOptions,
        carry: Callable[[Connection, Callable[[Event], None]], Carrier],
    ) -> None:
        super().__init__(config, options, trio.current_time, trio.sleep)
        self._carrier = carry(self._conn, self._handle_event)
        self._settled = trio.Event()
        self._closing = False
        self._flushed = trio.Event()
        self._nursery: trio.Nursery

    @property
    def protocol(self) -> str:
        """What is spoken below MCP: `"HTTP/2"`, `"HTTP/1.1"`, `"WebSocket"`; empty where there is nothing but a stream of bytes."""
        return self._carrier.protocol

    async def open(self, nursery: trio.Nursery) -> None:
        """Carry the conversation in `nursery` and wait until it is open. The `connect` functions do this.

        Raises:
            ConnectFailed: it did not come about.
        """
        self._nursery = nursery
        self._open()
        self._carrier.start(nursery)
        self._carrier.pump()
        await self._settled.wait()
        self._status.require_open()

    async def aclose(self) -> None:
        """End the conversation. From any task, any number of times; calls that are pending raise `ConnectionLost`.

        When it returns, whoever called it first, the server was told what it need not work on any more, unless it did not
        read for a second, and every stream is closed.
        """
        with trio.CancelScope(shield=True):
            if self._closing:
                await self._flushed.wait()
            else:
                self._closing = True
                self._conn.close()
                self._carrier.pump()
                try:
                    with trio.move_on_after(_LAST_WRITE):
                        await self._carrier.flush()
                finally:
                    self._flushed.set()
            with trio.move_on_after(_LAST_WRITE):
                await self._carrier.aclose()

    async def _call(self, steps: Steps[T], options: CallOptions) -> T:
        call: _Call[T] = _Call(self._send, self._clock, steps, options)
        try:
            call.begin()
            with trio.CancelScope(deadline=call.until) as call.scope:
                self._carrier.pump()
                await call.wait()
        finally:
            self._end_call(call)
            if self._conn.queued():
                self._carrier.pump()
        return call.result()

    def _start_job(self, job: Job) -> None:
        start_job(job, self._nursery, self._carrier.pump)

    def _pump(self) -> None:
        self._carrier.pump()

    def _report(self, problem: str, error: BaseException) -> None:
        _log.error("%s", problem, exc_info=error)

    def _handle_event(self, event: Event) -> None:
        if isinstance(event, MessageRejected):
            _log.debug("message rejected: %s", event.error)
        super()._handle_event(event)
        if self._status.settled:
            self._settled.set()
