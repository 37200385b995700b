"""What every HTTP server on trio shares, whatever spells its requests: the pure `Site`, and the handlers of all conversations.

Rules of this file:

1. After every call into the site, an exchange or a connection comes `pump`. It takes the events out, has them acted on, pokes
   who has something to write, and sets the timer. It never waits.
2. Handlers run in one nursery for the whole server: a conversation may outlive the connection that it came over.
3. What goes wrong with one request ends that one, and is told to the log.

It refuses to know a stream: an exchange's token is the driver's, and `poke` is all that is asked of it.
"""

from __future__ import annotations

import contextvars
import logging
import math
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Protocol

import trio

from mcp_core import NEED_DATA, ConnectionClosed, Fault, RequestReceived
from mcp_core.runtime import Service
from mcp_core.types import ErrorData

from ._admitting import Admitting
from ._deadlines import Deadlines
from ._jobs import start_job
from ._nursery import open_quiet_nursery
from ._runtime import TrioRuntime, act_on

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine

    from mcp_core import Event
    from mcp_core.http import Conversation, Exchange, Site
    from mcp_core.registry import Server
    from mcp_core.types import RequestId

    Write = Callable[[], Coroutine[Any, Any, None]]

__all__ = ["Reception", "Served", "open_reception"]

_LAST_WORDS: Final = 1.0  # seconds for handlers that are told to end

_log = logging.getLogger("mcp_trio")


class Served(NamedTuple):
    """The token of an `Endpoint`."""

    server: Server
    lifespan: Any


class Poked(Protocol):
    """The token of an `Exchange`."""

    def poke(self) -> None:
        """There are actions to take. Does not wait."""


class Reception:
    """Serves `site`, its handlers in `nursery`. A driver begins exchanges, feeds them and takes their actions, and calls `pump`.

    `stopping` tells that nothing new is taken any more: a connection ends with the exchange that it carries.
    """

    def __init__(self, site: Site, nursery: trio.Nursery) -> None:
        self.site = site
        self.stopping = False
        self.deadlines = Deadlines()
        self._nursery = nursery
        self._admitting = Admitting(nursery)
        self._timer = self.deadlines.new(self._handle_timeout)
        self._context = contextvars.copy_context()  # handlers start out of `pump`, which may run in any task
        self._services: set[Service] = set()
        self._jobs = 0
        self._idle = trio.lowlevel.ParkingLot()
        self._pumping = False
        self._writes: list[Write] | None = None

    def __repr__(self) -> str:
        return f"<Reception, {len(self._services)} conversations, {self._jobs} jobs>"

    # -- What happened -------------------------------------------------------------------------------------------------------

    def pump(self) -> None:
        """To be called after any call into the site or what belongs to it, from any task of this run. Raises only a fault of our
        own, for the connection whose request brings it about."""
        if self._settle():
            deadline = self.site.next_deadline()
            self._timer.move(math.inf if deadline is None else deadline)

    def _settle(self) -> bool:
        """Act on the events, and poke. False within itself: the call that is under way goes on with what there is now."""
        if self._pumping:
            return False
        site = self.site
        self._pumping = True
        try:
            while (found := site.next_event()) is not NEED_DATA:
                if isinstance(found[1], RequestReceived):
                    self._context.copy().run(self._take, *found)
                else:
                    self._take(*found)
            for exchange in site.ready():
                token: Poked = exchange.token
                token.poke()
        finally:
            self._pumping = False
        return True

    def pump_quietly(self) -> None:
        """The same where nobody could do anything about such a fault: the log hears of it."""
        try:
            self.pump()
        except Exception:  # noqa: BLE001 - rule 3
            _log.exception("our own fault on %r", self)

    def taken(self, exchange: Exchange) -> None:
        """To be called when actions of `exchange` were taken, or nobody will take them: who waited to say more may go on."""
        conversation = exchange.conversation
        if conversation is not None and conversation.service is not None:
            runtime: _ConversationRuntime = conversation.service.runtime
            runtime.go_on()
        try:
            self._settle()  # no deadline comes any nearer when something is taken
        except Exception:  # noqa: BLE001 - rule 3
            _log.exception("our own fault on %r", self)

    def admit(self, exchange: Exchange) -> trio.CancelScope:
        """Do what the guard of `exchange` wants, and poke it then. To be cancelled when its client goes."""
        scope = trio.CancelScope()
        self._nursery.start_soon(self._admit, exchange, scope)
        return scope

    async def _admit(self, exchange: Exchange, scope: trio.CancelScope) -> None:
        with scope:
            await self.judged(exchange)
            token: Poked = exchange.token
            token.poke()

    async def judged(self, exchange: Exchange) -> None:
        """Do what the guard of `exchange` wants, if it wants anything, until it has judged."""
        if exchange.needs_grant is not None:
            await self._admitting.run(exchange.needs_grant)
            self.pump_quietly()

    clock = staticmethod(trio.current_time)
    new_event = trio.Event

    @asynccontextmanager
    async def run_beside(self, function: Callable[[], Awaitable[bool]]) -> AsyncIterator[None]:
        """Run `function` in a second task while entered. If it returns True, the body is cancelled."""
        async with open_quiet_nursery() as nursery:

            async def run() -> None:
                if await function():
                    nursery.cancel_scope.cancel()

            nursery.start_soon(run)
            yield

    def write_soon(self, write: Write) -> None:
        """Have `write` run where it may wait: by the task of a job that is over anyway, or else by one of its own."""
        if self._writes is not None:
            self._writes.append(write)
        else:
            self._nursery.start_soon(write)

    def _take(self, conversation: Conversation, event: Event) -> None:
        try:
            service: Service | None = conversation.service
            if service is None:
                if isinstance(event, ConnectionClosed):
                    return
                service = self._welcome(conversation)
            job = act_on(event, service)
            if job is not None:
                self._jobs += 1
                runtime: _ConversationRuntime = conversation.service.runtime
                start_job(job, self._nursery, runtime.after)
            elif isinstance(event, ConnectionClosed):
                self._leave(service)
        except Exception:  # noqa: BLE001 - rule 3; what a handler raises does not come here
            _log.exception("our own fault at %r", event)
            if isinstance(event, RequestReceived):
                code = event.peer.dialect.codes[Fault.INTERNAL]
                conversation.conn.send_error(event.id, ErrorData(code, "Internal error"))

    def _welcome(self, conversation: Conversation) -> Service:
        served: Served = conversation.endpoint.token
        runtime = _ConversationRuntime(self, conversation)
        service = Service(
            served.server, conversation.conn, runtime, served.lifespan, principal=conversation.principal
        )
        conversation.service = runtime.service = service
        self._services.add(service)
        return service

    def _leave(self, service: Service) -> None:
        """The conversation is over; its handlers may not be."""
        runtime: _ConversationRuntime = service.runtime  # type: ignore[assignment]
        runtime.closed = True
        runtime.go_on()
        if service.idle:
            self._services.discard(service)

    def after(self, runtime: _ConversationRuntime) -> Write | None:
        """A job is over."""
        self._jobs -= 1
        runtime.conversation.touch()
        writes = self._writes = []
        self.pump_quietly()
        self._writes = None
        for write in writes[1:]:
            self._nursery.start_soon(write)
        if runtime.closed:
            self._leave(runtime.service)
        if not self._jobs:
            self._idle.unpark_all()
        return writes[0] if writes else None

    def _handle_timeout(self) -> None:
        try:
            self.site.handle_timeout(trio.current_time())
        except Exception:  # noqa: BLE001 - rule 3
            _log.exception("our own fault at a deadline of %r", self)
        else:
            self.pump_quietly()

    # -- The end -------------------------------------------------------------------------------------------------------------

    async def wind_down(self, grace: float) -> None:
        """Take nothing new; give handlers `grace` seconds, then cancel them; end all streams. What is to be written then is ready.

        A handler that will not be cancelled does not hold this up.
        """
        self.stopping = True
        self.site.wind_down()
        self.pump_quietly()
        with trio.move_on_after(grace):
            await self._jobs_over()
        for service in list(self._services):
            service.stop()
        with trio.move_on_after(_LAST_WORDS):
            await self._jobs_over()
        self.site.close()
        self.pump_quietly()

    async def _jobs_over(self) -> None:
        while self._jobs:
            await self._idle.park()

    def close(self) -> None:
        """It is all over, in whatever state it is."""
        self.stopping = True
        self.site.close()
        self.pump_quietly()
        self._timer.drop()
        while self._services:
            self._services.pop().close()


@asynccontextmanager
async def open_reception(site: Site) -> AsyncIterator[Reception]:
    """A reception for `site`. What still runs at the end is cancelled."""
    async with open_quiet_nursery() as nursery:
        reception = Reception(site, nursery)
        nursery.start_soon(reception.deadlines.run)
        try:
            yield reception
        finally:
            reception.close()


class _ConversationRuntime(TrioRuntime):
    """One conversation, whose bytes leave by as many connections as it pleases its peer."""

    service: Service

    def __init__(self, reception: Reception, conversation: Conversation) -> None:
        super().__init__()
        self.closed = False
        self._reception = reception
        self.conversation = conversation
        self._waiting: trio.lowlevel.ParkingLot | None = None

    def pump(self) -> None:
        self.conversation.touch()
        self._reception.pump_quietly()

    def full(self, id: RequestId) -> bool:
        return not self.closed and self.conversation.full(id)

    async def drain(self, id: RequestId) -> None:
        await self.breathe()
        while self.full(id):
            if self._waiting is None:
                self._waiting = trio.lowlevel.ParkingLot()
            await self._waiting.park()

    def release(self, id: RequestId, retry: float | None) -> bool:
        return self.conversation.release(id, retry)

    def go_on(self) -> None:
        if self._waiting is not None:
            self._waiting.unpark_all()

    def after(self) -> Write | None:
        return self._reception.after(self)
