"""A server as an ASGI application: what asyncio adds to a `Site` is a task for each handler and one timer, and the waiting.

Rules: a task hears what a client says as long as its request is under way, another one writes and waits for the server to take it.
What nobody tells of a `lifespan`, since it is mounted in another application, begins with the first request and ends with the loop.

It refuses to know HTTP: what is said, and to whom, is the core's.
"""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from time import time
from typing import Any, Final, Unpack

from mcp_core import Event, http
from mcp_core.registry import Server
from mcp_core.runtime import AUTH_CHECK_TIMEOUT, AsgiApplication, AsgiRequest, Service, run_auth_check

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
    """An ASGI application that serves `server` in every revision, for uvicorn and frameworks on asyncio.

    By itself it is reached at `path`; mounted in another one, at the place where it is mounted, and at `path` beneath. `options` are
    those of `mcp_core.http.ServedOptions`. `auth` says who may ask: an `mcp_core.auth.Guard`. Nothing is fetched here: its
    verifier is a function, `async` or not, or a `JwtVerifier` with its keys.

    *Resource handling*: at the end of its lifespan handlers get 5 s, then they are cancelled, and waited for. A server ends its
    connections first: give it a time for that (`timeout_graceful_shutdown` of uvicorn), or streams that clients keep open hold
    it up. *Error handling*: nothing that a client sends or a handler raises ends this; a lifespan that fails is told to the server.

    Raises:
        ValueError: one of `hosts` or `origins` is not a name, or not an origin as browsers write it.
    """
    return AsgiApp(server, path, http.HttpOptions.of(**options), auth)


class AsgiApp(AsgiApplication):
    """What `asgi` gives: an ASGI 3 application. It may be served again when it is over."""

    _cancelled, _new_event, _log = asyncio.CancelledError, asyncio.Event, _log.log

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] == "lifespan":
            await self._serve_lifespan(receive, send)
        else:
            await AsgiRequest(await self._started(), scope, receive, send).run()

    def _spawn(self, function: Callable[[], Awaitable[None]]) -> None:
        self._lifespan_task = asyncio.ensure_future(function())

    @asynccontextmanager
    async def _open(self) -> AsyncIterator[_Reception]:
        async with self._server.lifespan() as value:
            reception = _Reception(self._server, self._site(secrets.token_bytes, time), value)
            try:
                yield reception
            finally:
                await reception.aclose()


class _Reception(Carrier):
    """Serves `site`."""

    new_event = asyncio.Event

    def __init__(self, server: Server, site: http.Site, lifespan: Any) -> None:
        super().__init__(site, lambda: site.pump(welcome))
        self._server, self.site, self._lifespan = server, site, lifespan
        welcome = apart(self._welcome)

    async def judged(self, exchange: http.Exchange) -> None:
        if (admission := exchange.needs_grant) is not None:
            with suppress(TimeoutError):
                await asyncio.wait_for(run_auth_check(admission, None, self.clock), AUTH_CHECK_TIMEOUT)
            admission.give_up(self.clock())
            self.pump()

    def taken(self, exchange: http.Exchange) -> None:
        self.pump()

    @asynccontextmanager
    async def run_beside(self, function: Callable[[], Awaitable[bool]]) -> AsyncIterator[None]:
        task = asyncio.ensure_future(function())
        try:
            yield
        finally:
            task.cancel()
            await asyncio.wait({task})
        if not task.cancelled():
            task.result()

    async def aclose(self) -> None:
        """Take nothing new, let handlers come to their end, cancel those that do not; end all conversations."""
        self.site.wind_down()
        self.pump()
        await self.until(lambda: not self.jobs, _GRACE)
        for job in self.jobs:
            job.cancel()
        await self.until(lambda: not self.jobs)
        self.site.close()
        self.pump()
        self._timer.cancel()

    def _welcome(self, conversation: http.Conversation) -> Callable[[Event], None]:
        def pump() -> None:
            conversation.touch()
            self.pump()

        runtime = AsyncioRuntime(self, pump, conversation.full, conversation.release)
        who, conn = conversation.principal, conversation.conn
        service = Service(self._server, conn, runtime, self._lifespan, principal=who)
        return apart(lambda event: self.start_job(service.take(event), pump))
