"""The trio client: it adds waiting tasks and a transport to the core's `AbstractClient`.

1. A call costs one wait. The reader wakes the calling task with the result, and leaving the call's
   cancel scope cancels the request.
2. When the conversation ends, every pending call raises one typed exception at once.
3. `Client.aclose` may be called from any task, at any time, in any order among clients.

Callbacks that answer the server's requests run in the client's nursery. They have ended when the
block of `connect` has.
"""

from __future__ import annotations

import logging
import math
import secrets
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Final, Protocol, TypeVar

import trio

from mcp_core import Config, Connection, Event, MessageRejected
from mcp_core.drivers import CallOptions, CallSteps, ClientConfigOptions, PendingCall
from mcp_core.runtime import AbstractClient, made_by_connect

from ._runtime import start_job

if TYPE_CHECKING:
    from mcp_core.runtime import Job

__all__ = ["Client", "ClientTransport"]

# Seconds for the last messages to be sent, and again for the transport to close. An unresponsive
# server delays `aclose` by no more than their sum.
_CLOSE_TIMEOUT: Final = 1.0

T = TypeVar("T")

_log = logging.getLogger("mcp_trio")


class ClientTransport(Protocol):
    """The transport of one client conversation.

    It never raises: the events of the connection report what happens. `protocol` is the display
    name of the protocol below MCP, such as `"HTTP/2"`; empty for a plain byte stream.
    """

    @property
    def protocol(self) -> str: ...

    def start(self, nursery: trio.Nursery) -> None:
        """Start the tasks that carry the conversation in `nursery`."""

    def pump(self) -> None:
        """Process events and send what is queued, without waiting.

        Call it after any call into the connection, from any task of this run.
        """

    async def flush(self) -> None:
        """Wait until everything queued is sent, or cannot be sent."""

    async def aclose(self) -> None:
        """Close everything that is open. It may be called any number of times."""


class _Call(PendingCall[T]):
    """A call that the current task waits for, inside `scope`. The deadline is the scope's."""

    scope: trio.CancelScope
    _task: trio.lowlevel.Task | None = None

    def wake(self) -> None:
        if self._task is not None:
            trio.lowlevel.reschedule(self._task)

    def deadline_changed(self) -> None:
        self.scope.deadline = math.inf if self.deadline is None else self.deadline

    async def wait(self) -> None:
        if self.done:
            await trio.lowlevel.checkpoint()
        else:
            self._task = trio.lowlevel.current_task()
            await trio.lowlevel.wait_task_rescheduled(self._abort_wait)

    def _abort_wait(self, _: object) -> trio.lowlevel.Abort:
        self._task = None
        return trio.lowlevel.Abort.SUCCEEDED


@made_by_connect
class Client(AbstractClient):
    """One open conversation with a server, made by `connect` and its variants.

    Its calls, their options and their errors are `AbstractClient`'s. Cancelling the scope
    around a call cancels the request.

    A transport of your own needs `open` and `aclose` too: create the client with its transport,
    await `open`, and await `aclose` at the end in any case.

    Args:
        config: what `client_config` returns for `options`.
        options: this client's options; `client_config` has checked them.
        make_transport: called once, with the connection and a function that handles each of its
            events; returns the transport, which calls that function in `pump`.
    """

    def __init__(
        self,
        config: Config,
        options: ClientConfigOptions,
        make_transport: Callable[[Connection, Callable[[Event], None]], ClientTransport],
    ) -> None:
        super().__init__(
            config, options, trio.current_time, trio.sleep, time.time, secrets.token_bytes
        )
        self._transport = make_transport(self._conn, self._handle_event)
        self._settled = trio.Event()
        self._closing = False
        self._flushed = trio.Event()
        self._nursery: trio.Nursery

    @property
    def protocol(self) -> str:
        """The protocol below MCP: `"HTTP/2"`, `"HTTP/1.1"` or `"WebSocket"`.

        Over HTTP it is the newest connection's. Empty for a plain byte stream.
        """
        return self._transport.protocol

    async def open(self, nursery: trio.Nursery) -> None:
        """Start the transport in `nursery` and wait until the protocol version is negotiated.

        The `connect` functions do this. The nursery must stay open until `aclose` has returned: the
        callbacks for requests of the server run in it, too.

        Raises:
            ConnectFailed: the server could not be reached, or the negotiation failed.
        """
        self._nursery = nursery
        self._open()
        self._transport.start(nursery)
        self._transport.pump()
        await self._settled.wait()
        self._status.require_open()

    async def aclose(self) -> None:
        """Close the conversation. Pending calls raise `ConnectionLost`.

        The `connect` functions do this at the end of their block. Any task may call this, any
        number of times. When any of the calls returns, the server has been sent the cancellations
        of pending requests, unless it did not read for a second, and every stream is closed. It
        takes about two seconds at most, and is shielded from cancellation.
        """
        with trio.CancelScope(shield=True):
            if self._closing:
                await self._flushed.wait()
            else:
                self._closing = True
                self._conn.close()
                self._transport.pump()
                try:
                    with trio.move_on_after(_CLOSE_TIMEOUT):
                        await self._transport.flush()
                finally:
                    self._flushed.set()
            with trio.move_on_after(_CLOSE_TIMEOUT):
                await self._transport.aclose()

    async def _call(self, steps: CallSteps[T], options: CallOptions) -> T:
        call: _Call[T] = _Call(self._send, self._clock, steps, options)
        try:
            call.begin()
            deadline = math.inf if call.deadline is None else call.deadline
            with trio.CancelScope(deadline=deadline) as call.scope:
                self._transport.pump()
                await call.wait()
        finally:
            self._end_call(call)
            if self._conn.queued():
                self._transport.pump()
        return call.result()

    def _start_job(self, job: Job) -> None:
        start_job(job, self._nursery, self._transport.pump)

    def _pump(self) -> None:
        self._transport.pump()

    def _log_error(self, problem: str, error: BaseException) -> None:
        _log.error("%s", problem, exc_info=error)

    def _log_warning(self, problem: str) -> None:
        _log.warning("%s", problem)

    def _handle_event(self, event: Event) -> None:
        if isinstance(event, MessageRejected):
            _log.debug("message rejected: %s", event.error)
        super()._handle_event(event)
        if self._status.settled:
            self._settled.set()
