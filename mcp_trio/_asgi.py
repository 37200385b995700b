"""A server as an ASGI application, for whatever serves those on trio: hypercorn, by itself or with a framework around it.

Rules of this file:

1. The application begins with the `lifespan` that it is told of. Where it is told of none, as one that is mounted in another may not
   be, it begins with the first request, and ends with the run.
2. One task hears what a client says as long as a response is under way, another one writes; the second waits for the server, and so
   nothing is queued without bounds.
3. Nothing of a run is left for the next: the same application may be served again.

How ASGI spells HTTP is said by the core's `AsgiExchange`. It refuses to know addresses: who may ask is judged by names alone.
"""

from __future__ import annotations

import logging
import secrets
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any, Final, Literal

import trio

from mcp_core.http import AsgiExchange, Endpoint, Gate, HttpOptions, Site

from ._admitting import door_of
from ._nursery import open_quiet_nursery
from ._reception import Served, open_reception

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping

    from mcp_core.http import Guard
    from mcp_core.registry import Server

    from ._reception import Reception

    Receive = Callable[[], Awaitable[Mapping[str, Any]]]
    Send = Callable[[Any], Awaitable[None]]

__all__ = ["AsgiApp", "asgi"]

_GRACE: Final = 5.0

_log = logging.getLogger("mcp_trio")


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
    """An ASGI application that serves `server` in every revision, for a server or framework that runs on trio.

    By itself it is reached at `path`; mounted in another one, at the place where it is mounted, and at `path` beneath.

    Args:
        server: what is served. Its lifespan is entered when the application's begins.
        path: where it is reached.
        hosts: names under which it is reached, beside `localhost` and addresses: `"mcp.example.com"`, with a port if only that one is
            meant. What the server listens on is not known here; requests for other names are refused (421), for they may be
            a web page's that plays tricks with names.
        origins: web pages that may ask from elsewhere, as browsers write it: `"https://app.example.com"`.
        reply: `"auto"` answers with JSON unless something is to be said before the answer, `"sse"` always with a stream, `"json"`
            never with one.
        sessions: whether the revisions that have a handshake get sessions. Without them nothing lasts longer than a request.
        auth: who may ask: an `mcp_core.auth.Guard`. Its metadata is at paths from the root, so mount the application there.

    *Resource handling*: at the end of its lifespan, handlers that still run get 5 s, then they are cancelled; all streams end. Where
    nobody tells it of a lifespan, it ends with the run. A server ends its connections first: give it a time for that
    (`graceful_timeout` of hypercorn), or streams that clients keep open hold it up.
    *Error handling*: nothing that a client sends or a handler raises ends this. A lifespan that fails is told to the server.

    Raises:
        ValueError: one of `hosts` or `origins` is not written as above.
    """
    options = HttpOptions(gate=Gate(None, hosts, origins), reply=reply, sessions=sessions)
    return AsgiApp(server, path, options, auth)


class AsgiApp:
    """What `asgi` gives: an ASGI 3 application."""

    def __init__(self, server: Server, path: str, options: HttpOptions, auth: Guard | None = None) -> None:
        self._server = server
        self._path = path
        self._options = options
        self._auth = auth
        self._reception: Reception | None = None
        self._beginning: _Beginning | None = None

    def __repr__(self) -> str:
        return f"<AsgiApp of {self._server!r}, {self._reception!r}>"

    async def __call__(self, scope: Mapping[str, Any], receive: Receive, send: Send) -> None:
        kind = scope["type"]
        if kind == "http":
            await _Visit(await self._here(), scope, send).serve(receive)
        elif kind == "lifespan":
            await self._live(receive, send)
        elif kind == "websocket":
            await send({"type": "websocket.close"})
        else:
            raise ValueError(f"this application knows no {kind!r}")

    async def _live(self, receive: Receive, send: Send) -> None:
        """From `lifespan.startup` to `lifespan.shutdown`."""
        stage = "startup"
        await receive()
        try:
            async with self._open() as reception:
                await send({"type": "lifespan.startup.complete"})
                stage = "shutdown"
                await receive()
                await reception.wind_down(_GRACE)
        except Exception as exc:  # noqa: BLE001 - the server is told
            _log.exception("the %s failed", stage)
            await send({"type": f"lifespan.{stage}.failed", "message": f"{type(exc).__name__}: {exc}"})
        else:
            await send({"type": "lifespan.shutdown.complete"})

    async def _here(self) -> Reception:
        """The reception of this run.

        Raises:
            BaseException: what the lifespan of the server raises.
        """
        while self._reception is None:
            beginning = self._beginning
            if beginning is None:
                _require_trio()
                beginning = self._beginning = _Beginning()
                trio.lowlevel.spawn_system_task(self._live_unasked, beginning)
            await beginning.over.wait()
            if beginning.failure is not None:
                raise beginning.failure
        return self._reception

    async def _live_unasked(self, beginning: _Beginning) -> None:
        try:
            async with self._open():
                self._beginning = None
                beginning.over.set()
                await trio.sleep_forever()
        except trio.Cancelled:
            raise
        except BaseException as exc:  # noqa: BLE001 - a system task that raises brings down the run
            if beginning.over.is_set():
                _log.error("the lifespan failed", exc_info=exc)
            beginning.failure = exc
        finally:
            self._beginning = None
            beginning.over.set()

    @asynccontextmanager
    async def _open(self) -> AsyncIterator[Reception]:
        _require_trio()
        server = self._server
        try:
            async with server.lifespan() as value:
                endpoint = Endpoint(
                    server.config,
                    self._options,
                    entropy=secrets.token_bytes,
                    param_headers=server.param_headers,
                    token=Served(server, value),
                    door=door_of(self._auth),
                )
                async with open_reception(Site({"/": endpoint, self._path: endpoint})) as reception:
                    self._reception = reception
                    yield reception
        finally:
            self._reception = None


def _require_trio() -> None:
    if not trio.lowlevel.in_trio_run():
        raise RuntimeError("this application runs on trio; for asyncio there is mcp_asyncio_shim.asgi")


class _Beginning:
    """A lifespan that begins with a request."""

    def __init__(self) -> None:
        self.over = trio.Event()
        self.failure: BaseException | None = None


class _Visit:
    """One request, in the task that the server has started for it."""

    def __init__(self, reception: Reception, scope: Mapping[str, Any], send: Send) -> None:
        self._reception = reception
        self._send = send
        self._poked = False
        self._waiting = trio.lowlevel.ParkingLot()
        self._asked = AsgiExchange(reception.site, scope, trio.current_time(), token=self)

    def poke(self) -> None:
        self._poked = True
        self._waiting.unpark_all()

    async def serve(self, receive: Receive) -> None:
        """Answer it, as far as the client wants to hear it."""
        asked = self._asked
        try:
            self._reception.pump()
            await self._reception.judged(asked.exchange)
            while asked.exchange.reading:
                await self._hear(receive)
            await self._say()
            if not asked.over:
                async with open_quiet_nursery() as nursery:
                    nursery.start_soon(self._hear_out, receive, nursery.cancel_scope)
                    while not asked.over:
                        while not self._poked:
                            await self._waiting.park()
                        await self._say()
        finally:
            self._lose()

    async def _hear(self, receive: Receive) -> None:
        message = await receive()
        self._asked.receive(message, trio.current_time())
        self._reception.pump()

    async def _hear_out(self, receive: Receive, writing: trio.CancelScope) -> None:
        while not self._asked.over:
            await self._hear(receive)
        if self._asked.gone:
            writing.cancel()  # otherwise the last of it may be on its way

    async def _say(self) -> None:
        """Send what there is. Whoever has more to say may have to wait until the server has taken it."""
        self._poked = False
        messages = self._asked.messages_to_send()
        self._reception.pump()
        try:
            for message in messages:
                await self._send(message)
        except OSError:  # nobody is there
            self._lose()
        self._reception.taken(self._asked.exchange)

    def _lose(self) -> None:
        self._asked.disconnected(trio.current_time())
        self._reception.pump()
        self._reception.taken(self._asked.exchange)
