"""A server as an ASGI application, for ASGI servers on trio such as hypercorn.

1. The application starts with its `lifespan` scope, or when a framework enters its `lifespan`.
   Without either, as when it is only mounted, it starts with the first request and ends with the
   run.
2. Nothing of a run is left for the next: the same application may be served again.

An application doesn't know the address that it is served at, so `Host` and `Origin` are checked by
names alone. Translation between ASGI messages and HTTP is in `mcp_core.http`.
"""

from __future__ import annotations

import logging
import os
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager, nullcontext
from typing import TYPE_CHECKING, Any, TypeAlias, Unpack

import trio

from mcp_core.drivers import shows_keywords, type_on_first_use
from mcp_core.http import HttpOptions, ResourceServerLike, ServeOptions
from mcp_core.registry import Server
from mcp_core.runtime import SHUTDOWN_GRACE, AsgiApplication, AsgiRequest
from mcp_trio._runtime import SYSTEM_SOURCES
from mcp_trio._tasks import open_server

from ._driver import open_http_server_driver

if TYPE_CHECKING:
    from mcp_core.adapters import Recorder, Recording
    from mcp_core.sharing import SessionStore

    from ._driver import HttpServerDriver
else:
    Recording = type_on_first_use("mcp_core.adapters", "Recording")
    SessionStore = type_on_first_use("mcp_core.sharing", "SessionStore")

__all__ = ["AsgiApp", "asgi"]

Receive: TypeAlias = Callable[[], Awaitable[Mapping[str, Any]]]
Send: TypeAlias = Callable[[Any], Awaitable[None]]


@shows_keywords(ServeOptions)
def asgi(
    server: Server,
    *,
    path: str = "/mcp",
    auth: ResourceServerLike | None = None,
    record: str | os.PathLike[str] | Recording | None = None,
    store: SessionStore | None = None,
    **options: Unpack[ServeOptions],
) -> AsgiApp:
    """Return an ASGI application that serves `server` in every revision, for trio.

    By itself it is served at `path`; mounted in another application, where it is mounted, and at
    `path` below that. Give the other application its `lifespan`, or it starts with the first
    request and ends with the run.

    Args:
        server: the server. Its lifespan is entered when the application's starts.
        path: the endpoint's path.
        auth: what authorizes requests: an `mcp_core.auth.OAuthResourceServer` or an `ApiKeys`; None
            (the default) for no authorization. Its metadata has paths from the root. If the
            application is mounted elsewhere, serve `metadata` at each of `metadata_paths`
            (attributes of the application).
        record: the file to which all conversations are recorded, or a `Recording` with options. It
            is opened at the start of the lifespan, and replaced if it exists. Credentials and other
            secrets are hidden. Several workers cannot write one file. Default None.
        store: what the workers behind one address share: clients of each hear of changes at all of
            them. See `mcp_core.sharing.SessionStore`. By default None: a worker knows its own
            changes only. It is opened after the server's lifespan was entered.
        options: see `mcp_core.http.ServeOptions`.

    Returns:
        the application, to pass to the ASGI server or to mount.

    *Resource handling*: at the end of the lifespan, handlers that still run get 5 s, then they are
    cancelled, and all streams end.
    An ASGI server closes its connections first: give it a timeout for that (`graceful_timeout` of
    hypercorn), or streams that clients keep open delay the shutdown.
    *Error handling*: nothing that a client sends or a handler raises ends the application. If the
    lifespan fails, the ASGI server gets `lifespan.startup.failed` or `lifespan.shutdown.failed`;
    also if `auth` gives scopes to a name that doesn't exist, `sse_path` is taken, or the file of
    `record` cannot be opened.

    Raises:
        TypeError: an option is unknown.
        ValueError: one of `hosts` isn't a name, one of `origins` not an origin as browsers write
            it, or one of `trusted_proxies` not an address; `sse_path` begins without a slash,
            or lacks sessions or GET streams; `reply` and `get_stream` leave no stream for questions
            to a session's client; or `store` needs the server's `state_keys`.

    Source: asgi.readthedocs.io; 2026-07-28, basic/transports/streamable-http; 2025-11-25 to
    2024-11-05, basic/transports.
    """
    return AsgiApp(server, path, HttpOptions.of(**options), auth, record, store)


class AsgiApp(AsgiApplication):
    """The ASGI 3 application that `asgi` returns, for an ASGI server on trio.

    The ASGI server calls it with each `scope`: of type `lifespan`, `http` or `websocket`. `receive`
    and `send` are that scope's functions for messages (asgi.readthedocs.io). A call returns when
    its scope has ended. Outside a run of trio it raises `RuntimeError`. After its end the
    application may be served again.
    """

    _cancelled = trio.Cancelled
    _new_event = trio.Event
    _log = logging.getLogger("mcp_trio").log
    _sources = SYSTEM_SOURCES

    async def __call__(self, scope: Mapping[str, Any], receive: Receive, send: Send) -> None:
        _require_trio()
        if scope["type"] == "lifespan":
            await self._serve_lifespan(receive, send)
        else:
            await AsgiRequest(await self._started(), scope, receive, send).run()

    def _spawn(self, function: Callable[[], Awaitable[None]]) -> None:
        trio.lowlevel.spawn_system_task(function)

    @asynccontextmanager
    async def _open(self) -> AsyncIterator[HttpServerDriver]:
        _require_trio()  # also where a framework enters `lifespan`
        async with (
            self._recorder() as recorder,
            open_server(self._server, SHUTDOWN_GRACE, self._store, sources=self._sources) as served,
        ):
            router = self._router(recorder, served)
            async with open_http_server_driver(router) as driver:
                yield driver
                await driver.shutdown(SHUTDOWN_GRACE)

    def _recorder(self) -> AbstractAsyncContextManager[Recorder | None]:
        if self._record is None:
            return nullcontext()
        from mcp_trio.recording._open import open_recorder

        return open_recorder(self._record, "server", "http")


def _require_trio() -> None:
    if not trio.lowlevel.in_trio_run():
        raise RuntimeError(
            "this application runs on trio; for asyncio there is mcp_asyncio_shim.asgi"
        )
