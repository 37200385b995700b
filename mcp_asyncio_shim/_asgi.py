"""A server as an ASGI application on asyncio, for uvicorn and frameworks that run on asyncio."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Mapping
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any, Final, TypeAlias, Unpack

from mcp_core import ConnectionClosed, http
from mcp_core.drivers import shows_keywords, type_on_first_use
from mcp_core.registry import Server
from mcp_core.runtime import (
    AUTH_CHECK_TIMEOUT,
    LAST_GRACE,
    SHUTDOWN_GRACE,
    AsgiApplication,
    AsgiRequest,
    run_auth_check,
)

from ._driver import ConnectionDriver, in_new_context, move_on_after
from ._runtime import (
    SYSTEM_SOURCES,
    AsyncioRuntime,
    Record,
    handle_event,
    logger,
    open_recorder,
)
from ._tasks import open_server

if TYPE_CHECKING:
    from mcp_core import Event
    from mcp_core.runtime import ServedServer, Service
    from mcp_core.sharing import SessionStore
else:
    SessionStore = type_on_first_use("mcp_core.sharing", "SessionStore")

__all__ = ["AsgiApp", "asgi"]

Receive: TypeAlias = Callable[[], Awaitable[Mapping[str, Any]]]
Send: TypeAlias = Callable[[Any], Awaitable[None]]

_CANCELLED_GRACE: Final = 1.0  # seconds for cancelled handlers to end before their streams do


@shows_keywords(http.ServeOptions)
def asgi(
    server: Server,
    *,
    path: str = "/mcp",
    auth: http.ResourceServerLike | None = None,
    record: Record = None,
    store: SessionStore | None = None,
    **options: Unpack[http.ServeOptions],
) -> AsgiApp:
    """Return an ASGI application that serves `server` in every revision, for asyncio.

    By itself it is served at `path`; mounted in another application, at the place where it is
    mounted, and at `path` below that. Give the other application its `lifespan`, or it starts with
    the first request and ends with the loop.

    Args:
        server: the server. Its lifespan is entered when the application's starts.
        path: the endpoint's path.
        auth: authorizes requests: an `OAuthResourceServer` or an `ApiKeys`; None (the default) for
            no authorization. This driver fetches nothing for it: the verifier must be a
            `JwtVerifier` with the keys of the issuer (`jwks=` or `secret=`), or a function, `async`
            or not. The metadata has paths from the root. If the application is mounted elsewhere,
            serve `metadata` at each of `metadata_paths` (attributes of the application).
        record: the file to which all conversations are recorded, or a `Recording` with options. It
            is opened at the start of the lifespan, and replaced if it exists. Credentials and other
            secrets are hidden. Several workers cannot write one file. Default None.
        store: what the workers behind one address share: clients of each hear of changes at all of
            them. See `mcp_core.sharing.SessionStore`. By default None: a worker knows its own
            changes only. It is opened after the server's lifespan was entered.
        options: see `mcp_core.http.ServeOptions`.

    Returns:
        the application, to pass to the ASGI server or to mount.

    *Resource handling*: at the end of the lifespan handlers get 5 s, then they are cancelled, and
    waited for. An ASGI server closes its connections first: give it a timeout for that
    (`timeout_graceful_shutdown` of uvicorn), or streams that clients keep open delay the shutdown.
    *Error handling*: nothing that a client sends or a handler raises ends the application. If the
    lifespan fails, the ASGI server gets `lifespan.startup.failed` or `lifespan.shutdown.failed`;
    also if `auth` gives scopes to a name that doesn't exist, `sse_path` is taken, or the file of
    `record` cannot be opened.

    Raises:
        TypeError: an option is unknown.
        ValueError: one of `hosts` isn't a name, one of `origins` not an origin as browsers write
            it, or one of `trusted_proxies` not an address; `sse_path` begins without a slash,
            or lacks sessions or GET streams; `reply` and `get_stream` leave no stream for questions
            to a session's client; `store` needs the server's `state_keys`; or the verifier of
            `auth` fetches the issuer's keys, or asks it.

    Source: asgi.readthedocs.io; 2026-07-28, basic/transports/streamable-http; 2025-11-25 to
    2024-11-05, basic/transports.
    """
    if auth is not None and auth.fetches:
        raise ValueError(
            "mcp_asyncio_shim.asgi sends no HTTP requests for authorization. Give the verifier the"
            " keys of the issuer, JwtVerifier(..., jwks=KEYS), where KEYS is the JWK Set at the"
            " issuer's jwks_uri; or pass a function that verifies tokens. mcp_trio.asgi fetches"
            " the keys"
        )
    return AsgiApp(server, path, http.HttpOptions.of(**options), auth, record, store)


class AsgiApp(AsgiApplication):
    """The ASGI 3 application that `asgi` returns, for an ASGI server on asyncio.

    The ASGI server calls it with each `scope`: of type `lifespan`, `http` or `websocket`. `receive`
    and `send` are that scope's functions for messages (asgi.readthedocs.io). A call returns when
    its scope has ended. After its end the application may be served again.
    """

    _cancelled = asyncio.CancelledError
    _new_event = asyncio.Event
    _log = logger.log
    _sources = SYSTEM_SOURCES

    async def __call__(self, scope: Mapping[str, Any], receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self._serve_lifespan(receive, send)
        else:
            driver = await self._started()
            await AsgiRequest(driver, scope, receive, send).run()

    def _spawn(self, function: Callable[[], Coroutine[Any, Any, None]]) -> None:
        # Kept: the loop has only a weak reference to a task. `asyncio.run` cancels it at the end.
        self._lifespan_task = asyncio.create_task(function())

    async def _shut_down(self) -> None:
        """Answer what runs and end all streams, before the server closes its connections."""
        if self._driver is not None:
            await self._driver.shutdown()

    @asynccontextmanager
    async def _open(self) -> AsyncIterator[_AsgiDriver]:
        async with (
            open_recorder(self._record, "server", "http") as recorder,
            open_server(self._server, SHUTDOWN_GRACE, self._store, sources=self._sources) as served,
        ):
            router = self._router(recorder)
            driver = _AsgiDriver(served, router)
            try:
                yield driver
            finally:
                await driver.aclose()


class _AsgiDriver(ConnectionDriver):
    """A router's driver: an `AsgiRuntime`, which also runs the handlers."""

    def __init__(self, served: ServedServer, router: http.Router) -> None:
        on_event = in_new_context(self._on_event)
        super().__init__(router, lambda: router.pump(on_event))
        self.router = router
        self._served = served
        # Services of conversations that have ended while handlers run. A timer reports them.
        self._ending: dict[Service, asyncio.TimerHandle] = {}
        self._is_shut_down = False

    def new_event(self) -> asyncio.Event:
        """Create an event."""
        return asyncio.Event()

    async def authorize(self, exchange: http.Exchange) -> None:
        """Run the auth check of `exchange`, if it has one, until it is granted or denied."""
        check = exchange.auth_check
        if check is None:
            return
        with move_on_after(AUTH_CHECK_TIMEOUT):
            await run_auth_check(check, None, self.clock)
        check.time_out(self.clock())
        self.pump()

    def output_sent(self, exchange: http.Exchange) -> None:
        """Close what a retired conversation leaves.

        Handlers that wait for capacity went on at the `pump` after the output was taken.
        """
        conversation = exchange.conversation
        if conversation is not None and conversation.retired and conversation.service is not None:
            conversation.service.close()  # a retired connection has no `ConnectionClosed`

    @asynccontextmanager
    async def interruptible(self) -> AsyncIterator[Callable[[], object]]:
        """Give a function that ends the wait in the context's body, and the body."""
        with move_on_after(None) as limit:
            yield lambda: limit.reschedule(self.clock())

    @asynccontextmanager
    async def run_beside(
        self, function: Callable[[], Coroutine[Any, Any, bool]]
    ) -> AsyncIterator[None]:
        """Run `function` in a second task while entered, and raise its exception at the end.

        If it returns True, the body is cancelled, and the context ends without an exception.
        """
        async with self.interruptible() as interrupt:

            async def run() -> None:
                if await function():
                    interrupt()

            task = asyncio.create_task(run())
            try:
                yield
            finally:
                task.cancel()
                await asyncio.wait({task})
            if not task.cancelled():
                task.result()

    async def shutdown(self) -> None:
        """Reject new requests, give handlers 5 s, then cancel them and end all streams.

        A handler that ignores its cancellation delays this by 1 s only.
        """
        self._is_shut_down = True
        self.router.shutdown()
        self.pump()
        # Each step runs even if the lifespan is cancelled during the one before.
        try:
            await self.wait_until(lambda: not self.tasks, SHUTDOWN_GRACE)
        finally:
            try:
                for cancel in self.tasks.values():
                    cancel()
                await self.wait_until(lambda: not self.tasks, _CANCELLED_GRACE)
            finally:
                self.router.close()
                self.pump()

    async def aclose(self) -> None:
        """Shut down unless that was done, wait for all handlers, and close everything."""
        try:
            if not self._is_shut_down:
                await self.shutdown()
        finally:
            try:
                await self.wait_until(lambda: not self.tasks, LAST_GRACE - _CANCELLED_GRACE)
                for service, timer in self._ending.items():
                    timer.cancel()
                    service.warn_of_running()
                await self.wait_until(lambda: not self.tasks)
            finally:
                self.stop_timer()

    def _on_event(self, conversation: http.Conversation, event: Event) -> None:
        def pump() -> None:
            conversation.mark_dirty()
            self.pump()
            if service in self._ending and service.idle:
                self._ending.pop(service).cancel()

        service: Service | None = conversation.service
        if service is None:
            runtime = AsyncioRuntime(self, pump, conversation.write_blocked, conversation.release)
            runtime.single_peer = False
            runtime.one_request = conversation.one_shot
            service = conversation.service = self._served.service(
                conversation.conn,
                runtime,
                principal=conversation.principal,
                conversation=conversation,
            )
        job = handle_event(event, service)
        if job is not None:
            self.start_job(job, pump)
        elif isinstance(event, ConnectionClosed) and not service.idle:
            timer = self.loop.call_later(LAST_GRACE, service.warn_of_running)
            self._ending[service] = timer
