"""An ASGI application for any runtime: what it serves, and the lifespan protocol.

An application mounted in another one may never see a `lifespan` scope. Unless the outer one enters
`lifespan`, the inner one starts with the first request and ends with the event loop. A lifespan
keeps nothing for the next one, so an application may be served again. Clients look for a protected
resource's metadata at the host's root. A mounted application gets no requests there, so the
metadata has its own application.

Source: asgi.readthedocs.io, Lifespan Protocol, version 2.0.
"""

from __future__ import annotations

import abc
from collections.abc import AsyncIterator, Callable, Coroutine, Mapping
from contextlib import asynccontextmanager
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from mcp_core._on_first_use import type_on_first_use
from mcp_core.http.server._asgi import MOUNT_POINT, metadata_messages
from mcp_core.http.server._auth import EndpointAuth, ResourceServerLike, check_scope_names
from mcp_core.http.server._endpoint import Endpoint
from mcp_core.http.server._options import HttpOptions
from mcp_core.http.server._router import Router

from ._runtime import EventLike, Sources

if TYPE_CHECKING:
    from contextlib import AbstractAsyncContextManager

    from mcp_core.http.wire._recorder import HttpRecorderLike
    from mcp_core.sharing import SessionStore

    from ._asgi_request import Receive, Send
else:
    SessionStore = type_on_first_use("mcp_core.sharing", "SessionStore")

__all__ = ["AsgiApplication", "AsgiMetadata"]

_ERROR: Final = 40  # as in `logging`


class AsgiApplication(abc.ABC):
    """An ASGI application that serves a server at one path.

    A driver adds `__call__`. It awaits `_serve_lifespan` for a scope of type `lifespan`, and
    `_started` for any other scope.

    Args:
        server: a `mcp_core.registry.Server`.
        path: its endpoint's path, which is also where the application is mounted.
        options: limits, names and timeouts.
        auth: an `OAuthResourceServer`, an `ApiKeys`, or None to serve every client.
        record: the option `record` of the driver, which opens the file at the start of each run.
        store: what its workers share, None for nothing. It is opened at the start of each run.
        sources: what all runtimes use, None for the driver's own.

    Raises:
        ValueError: `store` needs the server's `state_keys`, and it has none.

    Attributes:
        metadata_paths: the paths at which clients look for the metadata of `auth`, seen from the
            host's root. The resource's own path comes first. Empty if `auth` publishes no
            metadata. If this application is mounted in another one, serve `metadata` there.
        metadata: an ASGI application that serves this metadata (RFC 9728), at any path.
    """

    def __init__(
        self,
        server: Any,
        path: str,
        options: HttpOptions,
        auth: ResourceServerLike | None = None,
        record: Any = None,
        store: SessionStore | None = None,
        *,
        sources: Sources | None = None,
    ) -> None:
        if store is not None:
            from .sharing import check_sharing  # on first use, as the store

            check_sharing([server], store)
        if sources is not None:
            self._sources = sources
        self._server = server
        self._path = path
        self._options = options
        self._auth = auth
        self._record = record
        self._store = store
        self.metadata_paths = () if auth is None else tuple(auth.metadata_paths)
        self.metadata = AsgiMetadata(auth.metadata() if auth is not None else b"")
        self._driver: Any = None  # what `_open` gives, while the application runs
        self._starting: _LifespanStart | None = None

    def __repr__(self) -> str:
        return f"<{type(self).__name__} of {self._server!r}, {self._driver!r}>"

    @asynccontextmanager
    async def lifespan(self, app: object = None) -> AsyncIterator[None]:
        """Run an application that is mounted in another one, while this context is entered.

        Frameworks don't pass the `lifespan` scope on to mounted apps. Give them this method,
        as in `FastAPI(lifespan=app.lifespan)`, or enter it in your own lifespan. Without it, the
        application starts with the first request and ends with the event loop.

        Args:
            app: the outer application, which frameworks pass; it isn't used.

        *Resource handling*: at the end, handlers that still run get 5 s, then they are cancelled.

        Raises:
            RuntimeError: the application runs already.
            BaseException: any exception that the server's lifespan raises.
        """
        if self._driver is not None or self._starting is not None:
            raise RuntimeError(
                "this application runs already: enter its lifespan once, before the first request"
            )
        async with self._running():
            yield

    # -- What a driver adds ----------------------------------------------------------------------

    # The exception that is raised in a cancelled task, and the method `log` of a `logging.Logger`.
    _cancelled: type[BaseException]
    _log: Callable[..., object]
    _sources: Sources

    @abc.abstractmethod
    def _open(self) -> AbstractAsyncContextManager[Any]:
        """Return the context of one run. Entering it gives the driver that serves requests."""

    @abc.abstractmethod
    def _spawn(self, function: Callable[[], Coroutine[Any, Any, None]]) -> None:
        """Run `function` in a task that is cancelled at the end of the run."""

    @abc.abstractmethod
    def _new_event(self) -> EventLike:
        """Create an event of this runtime."""

    # -- What a driver calls ---------------------------------------------------------------------

    def _router(
        self,
        recorder: HttpRecorderLike | None,
        token: Any = None,
    ) -> Router:
        """Build the router for one ASGI lifespan. `token` is passed to its endpoint.

        Raises:
            ValueError: `sse_path` is taken, or the authorization names a tool, a prompt or a method
                that doesn't exist.
        """
        check_scope_names([(self._server, self._auth)])
        auth = None
        if self._auth is not None:
            auth = EndpointAuth(self._auth, self._sources.wall_time, self._log)
        endpoint = Endpoint(
            self._server.config,
            self._options,
            entropy=self._sources.entropy,
            param_headers=self._server.param_headers,
            token=token,
            auth=auth,
        )
        router = Router({MOUNT_POINT: endpoint, self._path: endpoint})
        router.recorder = recorder
        return router

    async def _serve_lifespan(self, receive: Receive, send: Send) -> None:
        """Serve a scope of type `lifespan`."""
        stage = "startup"
        await receive()  # lifespan.startup
        try:
            async with self._running():
                await send({"type": "lifespan.startup.complete"})
                stage = "shutdown"
                await receive()  # lifespan.shutdown
        except Exception as exc:  # noqa: BLE001 - the server decides how to go on without us
            self._log(_ERROR, "the %s failed", stage, exc_info=exc)
            message = f"{type(exc).__name__}: {exc}"
            await send({"type": f"lifespan.{stage}.failed", "message": message})
        else:
            await send({"type": "lifespan.shutdown.complete"})

    async def _started(self) -> Any:
        """Return the driver of this run. Begin a lifespan if the server has begun none.

        Raises:
            BaseException: any exception that this lifespan raised at its start.
        """
        while self._driver is None:
            start = self._starting
            if start is None:
                start = self._starting = _LifespanStart(self._new_event())
                self._spawn(partial(self._run_unasked, start))
            await start.over.wait()
            if start.failure is not None:
                raise start.failure
        return self._driver

    @asynccontextmanager
    async def _running(self) -> AsyncIterator[None]:
        try:
            async with self._open() as self._driver:
                yield
        finally:
            self._driver = None

    async def _run_unasked(self, start: _LifespanStart) -> None:
        """Run a lifespan that the server hasn't asked for, until the task is cancelled."""
        try:
            async with self._running():
                self._starting = None
                start.over.set()
                await self._new_event().wait()  # never set
        except self._cancelled:
            raise
        except BaseException as exc:  # noqa: BLE001 - what this task raises might end the whole run
            self._log(_ERROR, "the lifespan failed", exc_info=exc)
            start.failure = exc
        finally:
            self._starting = None
            start.over.set()


class AsgiMetadata:
    """An ASGI application that serves one metadata document, at any path, to any client."""

    def __init__(self, document: bytes) -> None:
        self._document = document

    def __repr__(self) -> str:
        return f"<AsgiMetadata of {len(self._document)} bytes>"

    async def __call__(self, scope: Mapping[str, Any], receive: Receive, send: Send) -> None:
        for message in metadata_messages(self._document, scope):
            await send(message)


class _LifespanStart:
    """The start of a lifespan that began with a request. `over` is set once it is complete."""

    __slots__ = ("failure", "over")

    def __init__(self, over: EventLike) -> None:
        self.over = over
        self.failure: BaseException | None = None
