"""The client on asyncio: what it adds to an `AbstractClient` is the waiting, and a transport.

When the connection ends, every pending call ends at once with one typed exception.
"""

from __future__ import annotations

import asyncio
import secrets
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, TypeAlias, TypeVar

from mcp_core import Config, Connection, Event
from mcp_core.drivers import (
    CallOptions,
    CallSteps,
    ClientConfigOptions,
    PendingCall,
    type_on_first_use,
)
from mcp_core.runtime import AbstractClient, made_by_connect

from ._driver import TimeLimit
from ._link import Link
from ._runtime import logger

if TYPE_CHECKING:
    from mcp_core.runtime import Job

    from ._http_transport import _HttpTransport
else:
    _HttpTransport = type_on_first_use("mcp_asyncio_shim._http_transport", "_HttpTransport")

__all__ = ["Client"]

Transport: TypeAlias = Link | _HttpTransport
TransportFactory: TypeAlias = Callable[[Connection, Callable[[Event], None]], Transport]

T = TypeVar("T")


class _Call(PendingCall[T]):
    """A call that the current task waits for."""

    _limit: TimeLimit  # set by `wait`: no event is processed before

    def __init__(self, client: Client, steps: CallSteps[T], options: CallOptions) -> None:
        super().__init__(client._send, client._clock, steps, options)
        self._awake = asyncio.Event()

    def wake(self) -> None:
        self._awake.set()

    def deadline_changed(self) -> None:
        self._limit.reschedule(self.deadline)

    async def wait(self, pump: Callable[[], None]) -> None:
        """Call `pump`, then wait until the call is over or its deadline has passed."""
        with TimeLimit(self.deadline) as self._limit:
            pump()
            await (asyncio.sleep(0) if self.done else self._awake.wait())


@made_by_connect
class Client(AbstractClient):
    """A client of one server, made by `connect`.

    Its calls, their options and what they raise are `AbstractClient`'s. A cancelled task
    cancels the request of its call.

    Args:
        make_transport: called once, with the connection and a function that handles each of its
            events; returns the transport, which calls that function in `pump`.
        config: what `client_config` returns for `options`.
        options: this client's options; `client_config` has checked them.
    """

    def __init__(
        self, config: Config, options: ClientConfigOptions, make_transport: TransportFactory
    ) -> None:
        clock = asyncio.get_running_loop().time
        super().__init__(config, options, clock, asyncio.sleep, time.time, secrets.token_bytes)
        self._transport = make_transport(self._conn, self._handle_event)

    async def open(self) -> None:
        """Wait until the protocol version is negotiated. `connect` does this.

        Raises:
            ConnectFailed: the server could not be reached, or the negotiation failed.
        """
        self._open()
        self._pump()
        await self._transport.wait_until(lambda: self._status.settled)
        self._status.require_open()

    async def aclose(self) -> None:
        """Close the connection. Pending calls raise `ConnectionLost`.

        `connect` does this at the end of its block. Any task may call this, any number of times.
        The server gets a second to read what is queued, or over HTTP to end the session. Callbacks
        are cancelled and waited for.
        """
        await self._transport.aclose()
        # A callback may itself be what closes the client.
        own_task = {asyncio.current_task()}
        await self._transport.wait_until(lambda: not self._transport.tasks.keys() - own_task)

    async def _call(self, steps: CallSteps[T], options: CallOptions) -> T:
        call = _Call(self, steps, options)
        try:
            call.begin()
            await call.wait(self._pump)
        finally:
            self._end_call(call)
            self._pump()
        return call.result()

    def _start_job(self, job: Job) -> None:
        self._transport.start_job(job)

    def _pump(self) -> None:
        self._transport.pump()

    def _log_error(self, problem: str, error: BaseException) -> None:
        logger.error("%s", problem, exc_info=error)

    def _log_warning(self, problem: str) -> None:
        logger.warning("%s", problem)
