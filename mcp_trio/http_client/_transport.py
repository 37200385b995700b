"""Run a client's conversation over HTTP: one task per HTTP request, and one timer task.

1. Call `pump` after every call into the `HttpClient`. It starts and cancels requests, delivers
   events and sets the timer, and it never waits.
2. Requests that start although the client is cancelled, such as the session DELETE, get one second.

The core's `HttpRequestRunner` decides how a request is made and on which connection.
"""

from __future__ import annotations

import contextvars
import math
from functools import partial
from typing import TYPE_CHECKING, Final, Protocol

import trio

from mcp_core.runtime import AuthFlowRunner, HttpRequestRunner
from mcp_trio._runtime import start_job

if TYPE_CHECKING:
    from collections.abc import Callable

    from mcp_core import Event
    from mcp_core.http import HttpClient, HttpRecorderLike
    from mcp_core.runtime import HttpRequestJob

    from ._connector import Connector
    from ._h2_connection import H2ClientConnection
    from ._h11_connection import H11ClientConnection

__all__ = ["HttpTransport"]

# Seconds for a request that is started after cancellation. The longest delay that an unresponsive
# server can cause.
_FINAL_REQUEST_TIMEOUT: Final = 1.0


class NurseryAuthorizer(AuthFlowRunner, Protocol):
    """Obtains access tokens in tasks of a nursery. `mcp_trio.auth` has one."""

    def start(self, nursery: trio.Nursery) -> None:
        """Set its tasks' nursery, before the first request."""

    def set_server_address(self, address: str | None) -> None:
        """Set the IP address of the connected server, None if it isn't known."""


class HttpTransport:
    """The transport of a client's conversation over HTTP, on connections that `connector` opens.

    `on_event` is called with each event, in order, and must not wait; `on_sent` with the body of
    each request. `authorization` obtains access tokens, if given. `recorder` records requests and
    responses, if given.

    *Resource handling*: `aclose` closes every connection. *Error handling*: a broken connection
    doesn't end the conversation; the failure is passed to `http`.
    """

    def __init__(
        self,
        http: HttpClient,
        connector: Connector,
        on_event: Callable[[Event], None],
        on_sent: Callable[[bytes], object] | None = None,
        authorization: NurseryAuthorizer | None = None,
        recorder: HttpRecorderLike | None = None,
    ) -> None:
        self._authorization = authorization
        self._connector = connector
        self._request_ended = trio.lowlevel.ParkingLot()
        self._deadline_changed = trio.lowlevel.ParkingLot()
        self._deadline = math.inf  # the deadline of `_requests`
        self._wakeup = math.inf  # the time until which `_tick` sleeps
        self._nursery: trio.Nursery
        self.start_job: Callable[[HttpRequestJob], object]  # runs a job in a task
        # Callbacks start inside `pump`, which may run in any task, such as a caller's. They get the
        # context in which the transport was created.
        context = contextvars.copy_context()
        self._requests: HttpRequestRunner[H11ClientConnection | H2ClientConnection] = (
            HttpRequestRunner(
                http,
                self,
                partial(context.run, on_event),  # type: ignore[call-arg]
                on_sent=on_sent,
                adapt_head=connector.absolute_head,
                auth=authorization,
                recorder=recorder,
            )
        )

    def __repr__(self) -> str:
        return f"<HttpTransport by {self._connector!r}: {self._requests!r}>"

    @property
    def protocol(self) -> str:
        return self._requests.protocol

    def start(self, nursery: trio.Nursery) -> None:
        """Run requests, connections and the timer in `nursery`."""
        self._nursery = nursery
        self._connector.nursery = nursery
        self.start_job = partial(
            start_job,
            nursery=nursery,
            on_ended=self._after_job,
            shutdown_timeout=_FINAL_REQUEST_TIMEOUT,
        )
        if self._authorization is not None:
            self._authorization.start(nursery)
        nursery.start_soon(self._tick)

    def pump(self) -> None:
        """Start and cancel requests, deliver events and set the timer, without waiting."""
        self._requests.run()
        deadline = self._requests.next_deadline()
        self._deadline = math.inf if deadline is None else deadline
        # Nearly every call moves the deadline to a later time. One needless wakeup of the timer at
        # the old time is cheaper than waking it at every call.
        if self._deadline < self._wakeup:
            self._deadline_changed.unpark_all()

    async def flush(self) -> None:
        """Wait until no request is running."""
        while not self._requests.idle:
            await self._request_ended.park()

    async def aclose(self) -> None:
        """Cancel all requests and close all connections."""
        self._requests.stop()
        try:
            await self.flush()
        finally:
            await _close(self._requests.pool.clear())

    async def _tick(self) -> None:
        """Handle each deadline of the requests, until cancelled."""
        while True:
            self._wakeup = self._deadline
            with trio.move_on_at(self._wakeup):
                await self._deadline_changed.park()
            self._requests.handle_timeout(trio.current_time())
            self.pump()

    async def connect(self) -> H11ClientConnection | H2ClientConnection:
        """Open a connection to the server, for the core's connection pool."""
        connection = await self._connector.connect()
        if self._authorization is not None:
            self._authorization.set_server_address(self._connector.server_address)
        return connection

    clock = staticmethod(trio.current_time)
    new_event = trio.Event

    def discard(self, connections: list[H11ClientConnection | H2ClientConnection]) -> None:
        """Close connections that the pool has dropped, without waiting."""
        self._nursery.start_soon(_close, connections)

    def _after_job(self) -> None:
        self.pump()
        self._request_ended.unpark_all()


async def _close(connections: list[H11ClientConnection | H2ClientConnection]) -> None:
    """Close all `connections`, even when cancelled."""
    if connections:
        async with trio.open_nursery() as nursery:
            for connection in connections:
                nursery.start_soon(connection.aclose)
