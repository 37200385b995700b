"""A server as an ASGI application on asyncio: a task for each handler, one timer, and the waiting.

Without a `lifespan` scope, as when it is mounted in another application, it starts with the first request and ends with the loop.
"""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import AsyncIterator, Awaitable
from contextlib import asynccontextmanager, suppress
from time import time
from typing import Any, Final, Unpack

from mcp_core import Event, http
from mcp_core.registry import Server, Service

from ._link import Carrier, apart
from ._server import AsyncioRuntime, _log

_GRACE: Final = 5.0


def asgi(
    server: Server,
    *,
    path: str = "/mcp",
    auth: http.Guard | None = None,
    **options: Unpack[http.ServedOptions],
) -> AsgiApp:
    """Return an ASGI application that serves `server` in every revision, for uvicorn and frameworks on asyncio.

    By itself it is served at `path`; mounted in another application, where it is mounted, and at `path` below that. `options` are
    those of `mcp_core.http.ServedOptions`. `auth` is the authorization of requests: an `mcp_core.auth.Guard`. Nothing is fetched
    here: its verifier is a function, `async` or not, or a `JwtVerifier` with its keys.

    *Resource handling*: at the end of the lifespan handlers get 5 s, then they are cancelled, and waited for. An ASGI server closes
    its connections first: give it a timeout for that (`timeout_graceful_shutdown` of uvicorn), or streams that clients keep open
    delay the shutdown. *Error handling*: nothing that a client sends or a handler raises ends the application; if the lifespan
    fails, the ASGI server gets `lifespan.startup.failed` or `lifespan.shutdown.failed`.

    Raises:
        ValueError: one of `hosts` or `origins` is not a name, or not an origin as browsers write it.
    """
    return AsgiApp(server, path, http.HttpOptions.of(**options), auth)


class AsgiApp(http.Application):
    """The ASGI 3 application that `asgi` returns. It may be served again after its end."""

    _cancelled, _bell, _log = asyncio.CancelledError, asyncio.Event, _log.log

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] == "lifespan":
            await self._live(receive, send)
        else:
            await http.Visit(await self._begun(), scope, receive, send)

    def _spawn(self, living: Awaitable[None]) -> None:
        self._living = asyncio.ensure_future(living)

    @asynccontextmanager
    async def _open(self) -> AsyncIterator[_Reception]:
        async with self._server.lifespan() as value:
            reception = _Reception(self._server, self._site(secrets.token_bytes, time), value)
            try:
                yield reception
            finally:
                await reception.aclose()


class _Reception(Carrier):
    """Drives `site`: call `pump` after every call into it."""

    bell = asyncio.Event

    def __init__(self, server: Server, site: http.Site, lifespan: Any) -> None:
        on_event = apart(self._on_event)
        super().__init__(site, lambda: site.pump(on_event))
        self._server = server
        self.site = site
        self._lifespan = lifespan

    async def judged(self, exchange: http.Exchange) -> None:
        if (admission := exchange.needs_grant) is not None:
            with suppress(TimeoutError):
                await asyncio.wait_for(admission.done_by(None, self.clock), 20)
            admission.give_up(self.clock())
            self.pump()

    def taken(self, exchange: http.Exchange) -> None:
        conversation = exchange.conversation
        if conversation is not None and conversation.retired and conversation.service is not None:
            conversation.service.close()
        self.pump()

    @asynccontextmanager
    async def beside(self, work: Awaitable[bool]) -> AsyncIterator[None]:
        task = asyncio.ensure_future(work)
        try:
            yield
        finally:
            task.cancel()
            await asyncio.wait({task})
        if not task.cancelled():
            task.result()

    async def aclose(self) -> None:
        """Reject new requests, wait for handlers, cancel the rest after 5 s, and end all conversations."""
        self.site.wind_down()
        self.pump()
        await self.until(lambda: not self.jobs, _GRACE)
        for job in self.jobs:
            job.cancel()
        await self.until(lambda: not self.jobs)
        self.site.close()
        self.pump()
        self._timer.cancel()

    def _on_event(self, conversation: http.Conversation, event: Event) -> None:
        def pump() -> None:
            conversation.touch()
            self.pump()

        service: Service | None = conversation.service
        if service is None:
            runtime = AsyncioRuntime(self, pump, conversation.full, conversation.release)
            service = conversation.service = Service(
                self._server,
                conversation.conn,
                runtime,
                self._lifespan,
                principal=conversation.principal,
            )
        self.start(service.take(event), pump)
