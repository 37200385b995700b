"""A server as an ASGI application, for whatever serves those on trio: hypercorn, by itself or with a framework around it.

Rules of this file:

1. The application begins with the `lifespan` that it is told of. Where it is told of none, as one that is mounted in another may not
   be, it begins with the first request, and ends with the run.
2. One task hears what a client says as long as a response is under way, another one writes; the second waits for the server, and so
   nothing is queued without bounds.
3. Nothing of a run is left for the next: the same application may be served again.

How ASGI spells HTTP is said by the core's `AsgiExchange`, and WebSockets by its `AsgiSocket`. It refuses to know addresses: who may ask is judged by names alone.
"""

from __future__ import annotations

import logging
import secrets
import time
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any, Final, Unpack

import trio

from mcp_core.http import HttpOptions
from mcp_core.runtime import AsgiApplication, AsgiRequest

from ._reception import Served, open_reception

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable, Mapping

    from mcp_core.http import Guard, ServedOptions
    from mcp_core.registry import Server

    from ._reception import Reception

    Receive = Callable[[], Awaitable[Mapping[str, Any]]]
    Send = Callable[[Any], Awaitable[None]]

__all__ = ["AsgiApp", "asgi"]

_GRACE: Final = 5.0


def asgi(
    server: Server, *, path: str = "/mcp", auth: Guard | None = None, **options: Unpack[ServedOptions]
) -> AsgiApp:
    """An ASGI application that serves `server` in every revision, for a server or framework that runs on trio.

    By itself it is reached at `path`; mounted in another one, at the place where it is mounted, and at `path` beneath.

    Args:
        server: what is served. Its lifespan is entered when the application's begins.
        path: where it is reached.
        auth: who may ask: an `mcp_core.auth.Guard`. Its metadata is at paths from the root, so mount the application there.
        options: see `mcp_core.http.ServedOptions`.

    *Resource handling*: at the end of its lifespan, handlers that still run get 5 s, then they are cancelled; all streams end. Where
    nobody tells it of a lifespan, it ends with the run. A server ends its connections first: give it a time for that
    (`graceful_timeout` of hypercorn), or streams that clients keep open hold it up.
    *Error handling*: nothing that a client sends or a handler raises ends this. A lifespan that fails is told to the server.

    Raises:
        ValueError: one of `hosts` or `origins` is not a name, or not an origin as browsers write it.
    """
    return AsgiApp(server, path, HttpOptions.of(**options), auth)


class AsgiApp(AsgiApplication):
    """What `asgi` gives: an ASGI 3 application."""

    _cancelled = trio.Cancelled
    _new_event = trio.Event
    _log = logging.getLogger("mcp_trio").log

    async def __call__(self, scope: Mapping[str, Any], receive: Receive, send: Send) -> None:
        if not trio.lowlevel.in_trio_run():
            raise RuntimeError("this application runs on trio; for asyncio there is mcp_asyncio_shim.asgi")
        if scope["type"] == "lifespan":
            await self._serve_lifespan(receive, send)
        else:
            await AsgiRequest(await self._started(), scope, receive, send).run()

    def _spawn(self, function: Callable[[], Awaitable[None]]) -> None:
        trio.lowlevel.spawn_system_task(function)

    @asynccontextmanager
    async def _open(self) -> AsyncIterator[Reception]:
        async with self._server.lifespan() as value:
            site = self._site(secrets.token_bytes, time.time, Served(self._server, value))
            async with open_reception(site) as reception:
                yield reception
                await reception.wind_down(_GRACE)
