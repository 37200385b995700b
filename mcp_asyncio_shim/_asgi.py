"""A server as an ASGI application: what asyncio adds to a `Site` is a task for each handler and one timer, and the waiting.

Rules: a task hears what a client says as long as its request is under way, another one writes and waits for the server to take it.
What nobody tells of a `lifespan`, since it is mounted in another application, begins with the first request and ends with the loop.

It refuses to know HTTP: what is said, and to whom, is the core's.
"""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping
from contextlib import asynccontextmanager, suppress
from time import time
from typing import Any, Final, Literal

from mcp_core import Event
from mcp_core.http import AsgiExchange, Conversation, Door, Endpoint, Gate, Guard, HttpOptions, Site
from mcp_core.registry import Server, Service

from ._carrier import Carrier, apart
from ._server import AsyncioRuntime, _log

Message = Mapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Any], Awaitable[None]]
_GRACE: Final = 5.0


def asgi(
    server: Server,
    *,
    path: str = "/mcp",
    hosts: Iterable[str] = (),
    origins: Iterable[str] = (),
    reply: Literal["auto", "json", "sse"] = "auto",
    sessions: bool = True,
    auth: Guard | None = None,
) -> AsgiApp:
    """An ASGI application that serves `server` in every revision, for uvicorn and frameworks on asyncio.

    By itself it is reached at `path`; mounted in another one, at the place where it is mounted, and at `path` beneath. `hosts` are
    the names under which it is reached, beside `localhost` and addresses; requests for others are refused. `origins` are web
    pages that may ask from elsewhere. `reply` and `sessions` are as in `HttpOptions`. `auth` says who may ask: an
    `mcp_core.auth.Guard`. Nothing is fetched here: its verifier is a function, `async` or not, or a `JwtVerifier` with its keys.

    *Resource handling*: at the end of its lifespan handlers get 5 s, then they are cancelled, and waited for. A server ends its
    connections first: give it a time for that (`timeout_graceful_shutdown` of uvicorn), or streams that clients keep open hold
    it up. *Error handling*: nothing that a client sends or a handler raises ends this; a lifespan that fails is told to the server.

    Raises:
        ValueError: one of `hosts` or `origins` is not a name, or not an origin as browsers write it.
    """
    options = HttpOptions(gate=Gate(None, hosts, origins), reply=reply, sessions=sessions)
    return AsgiApp(server, path, options, Door(auth, time, _log.log) if auth else None)


class AsgiApp:
    """What `asgi` gives: an ASGI 3 application. It may be served again when it is over."""

    def __init__(self, server: Server, path: str, options: HttpOptions, door: Door | None = None) -> None:
        self._server, self._path, self._options, self._door = server, path, options, door
        self._reception: _Reception | None = None
        self._beginning: asyncio.Task[None] | None = None

    async def __call__(self, scope: Message, receive: Receive, send: Send) -> None:
        match scope["type"]:
            case "http":
                while self._reception is None:
                    if self._beginning is None:
                        self._beginning = asyncio.create_task(self._begin())
                    await asyncio.shield(self._beginning)
                await self._reception.answer(scope, receive, send)
            case "lifespan":
                await self._live(receive, send)
            case "websocket":
                await send({"type": "websocket.close"})
            case other:
                raise ValueError(f"this application knows no {other!r}")

    async def _live(self, receive: Receive, send: Send) -> None:
        stage = "startup"
        await receive()
        try:
            async with self._open():
                await send({"type": "lifespan.startup.complete"})
                stage = "shutdown"
                await receive()
        except Exception as exc:  # noqa: BLE001 - the server is told
            _log.exception("the %s failed", stage)
            await send({"type": f"lifespan.{stage}.failed", "message": f"{type(exc).__name__}: {exc}"})
        else:
            await send({"type": "lifespan.shutdown.complete"})

    async def _begin(self) -> None:
        """Nobody has told of a lifespan: play the part of who would. It ends when the loop cancels what is left."""
        asked, told = asyncio.Queue[Message](), asyncio.Queue[Message]()
        asked.put_nowait({"type": "lifespan.startup"})
        self._living = asyncio.create_task(self._live(asked.get, told.put))
        try:
            message = await told.get()
        finally:
            self._beginning = None
        if "message" in message:
            raise RuntimeError(f"the startup failed: {message['message']}")

    @asynccontextmanager
    async def _open(self) -> AsyncIterator[None]:
        server = self._server
        try:
            async with server.lifespan() as value:
                endpoint = Endpoint(
                    server.config,
                    self._options,
                    entropy=secrets.token_bytes,
                    param_headers=server.param_headers,
                    door=self._door,
                )
                site = Site({"/": endpoint, self._path: endpoint})
                reception = self._reception = _Reception(server, site, value)
                try:
                    yield
                finally:
                    await reception.aclose()
        finally:
            self._reception = None


class _Poked(asyncio.Event):
    poke = asyncio.Event.set


class _Reception(Carrier):
    """Serves `site`. The token of an exchange is the event for which its writer waits."""

    def __init__(self, server: Server, site: Site, lifespan: Any) -> None:
        super().__init__(site, lambda: site.pump(take))
        self._server, self._site, self._lifespan = server, site, lifespan
        take = apart(self._take)

    async def answer(self, scope: Message, receive: Receive, send: Send) -> None:
        """Answer one request, as far as the client wants to hear it."""
        poked = _Poked()
        asked = AsgiExchange(self._site, scope, self.loop.time(), token=poked)
        if (admission := asked.exchange.needs_grant) is not None:
            with suppress(TimeoutError):
                await asyncio.wait_for(admission.done_by(None, self.loop.time), 20)
            admission.give_up(self.loop.time())

        async def hear() -> None:
            while not asked.over:
                asked.receive(await receive(), self.loop.time())
                self.pump()

        hearing = self.loop.create_task(hear())
        hearing.add_done_callback(lambda _: poked.set())
        self.pump()
        try:
            while not (asked.over or hearing.done()):
                await poked.wait()
                poked.clear()
                messages = asked.messages_to_send()
                self.pump()
                for message in messages:
                    await send(message)
        except OSError:
            pass  # nobody is there
        finally:
            asked.disconnected(self.loop.time())
            self.pump()
            hearing.cancel()
            await asyncio.gather(hearing, return_exceptions=True)
        if not hearing.cancelled():
            hearing.result()

    async def aclose(self) -> None:
        """Take nothing new, let handlers come to their end, cancel those that do not; end all conversations."""
        self._site.wind_down()
        self.pump()
        with suppress(TimeoutError):
            async with asyncio.timeout(_GRACE):
                await self.until(lambda: not self.jobs)
        for job in self.jobs:
            job.cancel()
        await self.until(lambda: not self.jobs)
        self._site.close()
        self.pump()
        self._timer.cancel()

    def _take(self, conversation: Conversation, event: Event) -> None:
        def pump() -> None:
            conversation.touch()
            self.pump()

        if conversation.service is None:
            runtime = AsyncioRuntime(self, pump, conversation.full)
            runtime.release = conversation.release  # type: ignore[method-assign]
            conversation.service = Service(
                self._server, conversation.conn, runtime, self._lifespan, principal=conversation.principal
            )
        job = conversation.service.take(event)
        if job is not None:
            self.start(job, pump)
