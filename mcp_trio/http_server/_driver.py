"""The part that all HTTP servers on trio share: it drives a `Router`, and runs the handlers.

1. After every call into the router, or into one of its connections, call `pump`. It processes the
   events, wakes the exchanges that have output, and sets the timer. It never waits.
2. Handlers run in one nursery for the whole server: a session may outlive the TCP connection that
   its request came over.
3. An internal error ends one request and is written to the log.

It reads and writes nothing: an exchange is woken through its token, which has a `wake`.
"""

from __future__ import annotations

import contextvars
import logging
import math
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any, Final, Protocol

import trio

from mcp_core import ConnectionClosed, Fault, NotificationReceived, RequestReceived
from mcp_core.runtime import LAST_GRACE
from mcp_core.types import ErrorData
from mcp_trio._deadlines import DeadlineRunner
from mcp_trio._nursery import open_quiet_nursery
from mcp_trio._runtime import TrioRuntime, handle_event, start_job

from ._auth import AuthStepRunner

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine

    from mcp_core import Event
    from mcp_core.http import Conversation, Exchange, Router
    from mcp_core.runtime import ServedServer, Service
    from mcp_core.types import RequestId
    from mcp_trio._deadlines import Deadline

    Write = Callable[[], Coroutine[Any, Any, None]]

__all__ = ["HttpServerDriver", "open_http_server_driver"]

_CANCELLED_GRACE: Final = 1.0  # seconds for cancelled handlers to end

_log = logging.getLogger("mcp_trio")


class ExchangeWakeup(Protocol):
    """The token of an `Exchange`."""

    def wake(self) -> None:
        """Report that there are actions to take. It must not wait."""


class HttpServerDriver:
    """The driver of `router`: it runs the handlers in `nursery`, and sets the timer.

    A server connection begins exchanges of `router`, feeds them and takes their actions, and calls
    `pump`. If `stopping` is True, no new request is accepted, and a connection closes after its
    current exchange.
    """

    def __init__(self, router: Router, nursery: trio.Nursery) -> None:
        self.router = router
        self.stopping = False
        self.trio_token = trio.lowlevel.current_trio_token()
        self.deadlines = DeadlineRunner()
        self._nursery = nursery
        self._auth_steps = AuthStepRunner(nursery)
        self._timer = self.deadlines.new(self._handle_timeout)
        self._context = contextvars.copy_context()  # of handlers: `pump` runs in any task
        self._services: set[Service] = set()
        self._jobs = 0
        self._jobs_ended = trio.lowlevel.ParkingLot()
        self._writes: list[Write] | None = None

    def __repr__(self) -> str:
        return f"<HttpServerDriver, {len(self._services)} conversations, {self._jobs} jobs>"

    # -- Events ------------------------------------------------------------------------------------

    def pump(self) -> None:
        """Process the router's events. Call it after any call into the router, from any task.

        It raises only an internal error, for the connection whose request causes it.
        """
        router = self.router
        router.pump(self._on_event)
        deadline = router.next_deadline()
        self._timer.move(math.inf if deadline is None else deadline)

    def pump_logging_errors(self) -> None:
        """Call `pump` and log an internal error, where no caller could handle it."""
        try:
            self.pump()
        except Exception:  # noqa: BLE001 - rule 3
            _log.exception("internal error in the events of %r", self)

    def output_sent(self, exchange: Exchange) -> None:
        """Let handlers continue that wait for capacity, and process events.

        Call it when output of `exchange` was sent, or never will be.
        """
        conversation = exchange.conversation
        service: Service | None = conversation.service if conversation is not None else None
        if conversation is not None and service is not None:
            if conversation.retired:
                # No handler waits here, and there is nothing else that this could have changed.
                self._services.discard(service)
                service.close()
                return
            runtime: _ConversationRuntime = service.runtime  # type: ignore[assignment]
            runtime.capacity_changed()
        try:
            self.router.pump(self._on_event)  # no deadline moves nearer when something is sent
        except Exception:  # noqa: BLE001 - rule 3
            _log.exception("internal error in the events of %r after output was sent", self)

    def start_auth_check(self, exchange: Exchange) -> trio.CancelScope:
        """Run the authorization check of `exchange` in a task, then wake it.

        Cancel the scope that this returns when the client disconnects.
        """
        scope = trio.CancelScope()
        self._nursery.start_soon(self._authorize_and_wake, exchange, scope)
        return scope

    async def _authorize_and_wake(self, exchange: Exchange, scope: trio.CancelScope) -> None:
        with scope:
            await self.authorize(exchange)
            token: ExchangeWakeup = exchange.token
            token.wake()

    async def authorize(self, exchange: Exchange) -> None:
        """Run the authorization check of `exchange`, if it has one, until it is decided."""
        if exchange.auth_check is not None:
            await self._auth_steps.run(exchange.auth_check)
            self.pump_logging_errors()

    clock = staticmethod(trio.current_time)
    new_event = trio.Event

    @asynccontextmanager
    async def interruptible(self) -> AsyncIterator[Callable[[], object]]:
        """Give a function that ends the wait in the context's body, and the body."""
        with trio.CancelScope() as scope:
            yield scope.cancel

    @asynccontextmanager
    async def run_beside(self, function: Callable[[], Awaitable[bool]]) -> AsyncIterator[None]:
        """Run `function` in a second task while entered. If it returns True, cancel the body."""
        async with open_quiet_nursery() as nursery:

            async def run() -> None:
                if await function():
                    nursery.cancel_scope.cancel()

            nursery.start_soon(run)
            yield

    def write_soon(self, write: Write) -> None:
        """Run `write` where it may wait: in the task of a job that has just ended, or a new one."""
        if self._writes is not None:
            self._writes.append(write)
        else:
            self._nursery.start_soon(write)

    def _on_event(self, conversation: Conversation, event: Event) -> None:
        if isinstance(event, (RequestReceived, NotificationReceived)):
            # What one handler sets in its context must not be seen by the next.
            self._context.copy().run(self._process, conversation, event)
        else:
            self._process(conversation, event)

    def _process(self, conversation: Conversation, event: Event) -> None:
        try:
            service: Service | None = conversation.service
            if service is None:
                if isinstance(event, ConnectionClosed):
                    return
                service = self._start_service(conversation)
            if isinstance(event, RequestReceived):
                job = service.handle_event(event)
            else:
                job = handle_event(event, service)  # which writes it to the log
            if job is not None:
                self._jobs += 1
                runtime: _ConversationRuntime = conversation.service.runtime
                start_job(job, self._nursery, runtime.after)
            elif isinstance(event, ConnectionClosed):
                self._forget_when_idle(service)
        except Exception:  # noqa: BLE001 - rule 3; what a handler raises doesn't come here
            _log.exception("internal error while handling %r", event)
            if isinstance(event, RequestReceived):
                code = event.peer.dialect.codes[Fault.INTERNAL]
                conversation.conn.send_error(event.id, ErrorData(code, "Internal error"))

    def _start_service(self, conversation: Conversation) -> Service:
        served: ServedServer = conversation.shared.token
        runtime = _ConversationRuntime(self, conversation)
        service = served.service(
            conversation.conn,
            runtime,
            principal=conversation.principal,
            conversation=conversation,
        )
        conversation.service = runtime.service = service
        self._services.add(service)
        return service

    def _forget_when_idle(self, service: Service) -> None:
        """Forget the service of a conversation that has ended, once its handlers have ended too."""
        runtime: _ConversationRuntime = service.runtime  # type: ignore[assignment]
        runtime.closed = True
        runtime.capacity_changed()
        if service.idle:
            self._services.discard(service)
            if runtime.last_deadline is not None:
                runtime.last_deadline.discard()
        elif runtime.last_deadline is None:
            runtime.last_deadline = self.deadlines.new(service.warn_of_running)
            runtime.last_deadline.move(trio.current_time() + LAST_GRACE)

    def job_ended(self, runtime: _ConversationRuntime) -> Write | None:
        """Process the end of a job. Return what its task should still write, if anything."""
        self._jobs -= 1
        runtime.conversation.mark_dirty()
        writes = self._writes = []
        self.pump_logging_errors()
        self._writes = None
        for write in writes[1:]:
            self._nursery.start_soon(write)
        if runtime.closed:
            self._forget_when_idle(runtime.service)
        if not self._jobs:
            self._jobs_ended.unpark_all()
        return writes[0] if writes else None

    def _handle_timeout(self) -> None:
        try:
            self.router.handle_timeout(trio.current_time())
        except Exception:  # noqa: BLE001 - rule 3
            _log.exception("internal error at a deadline of %r", self)
        else:
            self.pump_logging_errors()

    # -- The end -----------------------------------------------------------------------------------

    async def shutdown(self, grace: float) -> None:
        """Reject new requests, give handlers `grace` seconds, then cancel them and end all streams.

        The last output is ready to be written then. A handler that ignores its cancellation does
        not delay this.
        """
        self.stopping = True
        self.router.shutdown()
        self.pump_logging_errors()
        with trio.move_on_after(grace):
            await self._wait_for_jobs()
        for service in list(self._services):
            service.stop()
        with trio.move_on_after(_CANCELLED_GRACE):
            await self._wait_for_jobs()
        self.router.close()
        self.pump_logging_errors()

    async def _wait_for_jobs(self) -> None:
        while self._jobs:
            await self._jobs_ended.park()

    async def end(self) -> None:
        """Close everything, and wait for the handlers, which are cancelled. Report those that run.

        After five seconds this returns; their nursery waits for them.
        """
        services = [service for service in self._services if not service.idle]
        self.close()
        if self._jobs:
            with trio.move_on_after(LAST_GRACE, shield=True):
                await self._wait_for_jobs()
            for service in services:
                service.warn_of_running()

    def close(self) -> None:
        """Close the router and forget all services, in any state."""
        self.stopping = True
        self.router.close()
        self.pump_logging_errors()
        self._timer.discard()
        while self._services:
            self._services.pop().close()


@asynccontextmanager
async def open_http_server_driver(router: Router) -> AsyncIterator[HttpServerDriver]:
    """Open a driver for `router`. On exit everything that still runs is cancelled."""
    async with open_quiet_nursery() as nursery:
        driver = HttpServerDriver(router, nursery)
        nursery.start_soon(driver.deadlines.run)
        try:
            yield driver
        finally:
            nursery.cancel_scope.cancel()
            await driver.end()


class _ConversationRuntime(TrioRuntime):
    """The runtime of one conversation, which may have any number of TCP connections."""

    service: Service
    single_peer = False
    # Set while handlers still run after the end of the conversation. Then the log names them.
    last_deadline: Deadline | None = None

    def __init__(self, driver: HttpServerDriver, conversation: Conversation) -> None:
        self._trio = driver.trio_token
        self.closed = False
        self._driver = driver
        self.conversation = conversation
        self.one_request = conversation.one_shot
        self._capacity_changed: trio.lowlevel.ParkingLot | None = None

    def pump(self) -> None:
        self.conversation.mark_dirty()
        self._driver.pump_logging_errors()

    def write_blocked(self, id: RequestId | None) -> bool:
        return not self.closed and self.conversation.write_blocked(id)

    async def drain(self, id: RequestId) -> None:
        await self.checkpoint_if_due()
        while self.write_blocked(id):
            if self._capacity_changed is None:
                self._capacity_changed = trio.lowlevel.ParkingLot()
            await self._capacity_changed.park()

    def release(self, id: RequestId, retry: float | None) -> bool:
        return self.conversation.release(id, retry)

    def capacity_changed(self) -> None:
        if self._capacity_changed is not None:
            self._capacity_changed.unpark_all()

    def after(self) -> Write | None:
        return self._driver.job_ended(self)
