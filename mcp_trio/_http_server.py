"""Serving over HTTP: an address that is listened on, servers and plain routes by their paths, and an orderly end.

Rules of this file:

1. Safe without a word of configuration: a server listens on this machine only, and answers under the names of this machine only.
2. Who asks it to stop gets an orderly end, in this order: nobody is let in, nothing new is taken, handlers have `grace` seconds,
   then they are cancelled, everyone gets his answer, streams end. Who cancels gets a quick one.
3. One connection does no harm to another, nor to the server.

What is said on a connection is `_h11_server.py` or `_h2_server.py`; who may ask what is the core's `Site`.
"""

from __future__ import annotations

import logging
import secrets
import ssl
from collections.abc import Mapping
from contextlib import AsyncExitStack, suppress
from functools import partial
from typing import TYPE_CHECKING, Final, Literal, NamedTuple

import trio

from mcp_core.http import Endpoint, HttpOptions, Site, begins_http2
from mcp_core.registry import Server

from ._admitting import door_of
from ._h11_server import H11Connection
from ._nursery import open_quiet_nursery
from ._reception import Served, open_reception
from ._stdio import stop_on_signals

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable, Sequence

    from mcp_core.http import Guard, PlainAnswer, RequestHead

    from ._h2_server import H2Connection
    from ._http_connection import Exchanged
    from ._reception import Reception

    Route = Callable[[RequestHead], PlainAnswer]

__all__ = ["HttpAddress", "run_http", "serve_http"]

_GRACE: Final = 5.0
_HANDSHAKE: Final = 10.0
_SILENCE: Final = 10.0
_LAST_WRITE: Final = 1.0
# More than one process serves well, and each costs a descriptor, of which systems give 1,024 or more.
_CONNECTIONS: Final = 2_000

_log = logging.getLogger("mcp_trio")


class HttpAddress(NamedTuple):
    """Where a server listens. `url` is that of its endpoint, of the first if there are several."""

    host: str
    port: int
    url: str


async def serve_http(
    server: Server | Mapping[str, Server],
    host: str = "127.0.0.1",
    port: int = 0,
    *,
    path: str = "/mcp",
    tls: ssl.SSLContext | None = None,
    hosts: Iterable[str] = (),
    origins: Iterable[str] = (),
    routes: Mapping[str, Route] | None = None,
    reply: Literal["auto", "json", "sse"] = "auto",
    sessions: bool = True,
    auth: Guard | Mapping[str, Guard | None] | None = None,
    connections: int = _CONNECTIONS,
    on_exchange: Callable[[Exchanged], object] | None = None,
    stop: trio.Event | None = None,
    grace: float = _GRACE,
    task_status: trio.TaskStatus[HttpAddress] = trio.TASK_STATUS_IGNORED,
) -> None:
    """Serve whoever connects over HTTP/1.1 or HTTP/2, or over a WebSocket at the same paths, in every revision, until `stop` is set.

    `address = await nursery.start(serve_http, server)` gives an `HttpAddress` once it listens.

    Args:
        server: what is served at `path`, or servers by their paths. Each one's lifespan is entered once, around everything.
        host: the address to listen on; `"0.0.0.0"` or `"::"` for all of this machine's.
        port: 0 for one that is free.
        path: where `server` is served.
        tls: a context with the server's certificate, which is told that HTTP/2 and HTTP/1.1 are spoken; without one it is in the clear,
            and who knows that HTTP/2 is spoken here may begin with it.
        hosts: names under which the server is reached, if it is not on this machine only: `"mcp.example.com"`, with a port if only
            that one is meant. Requests for other names are refused, for they may be a web page's that plays tricks with
            names; addresses pass, if `host` is not this machine's loopback.
        origins: web pages that may ask from elsewhere, as browsers write it: `"https://app.example.com"`.
        routes: other paths, and the functions that answer there: `{"/healthz": lambda head: PlainAnswer(200, b"ok")}`. They must not
            block.
        reply: `"auto"` answers with JSON unless something is to be said before the answer, `"sse"` always with a stream, `"json"`
            never with one.
        sessions: whether the revisions that have a handshake get sessions. Without them nothing lasts longer than a request.
        auth: who may ask: an `mcp_core.auth.Guard`, or one for each of the paths, or None for a path that is open to everybody.
            `routes` are open to everybody. No token is handed on to handlers, nor to anybody else: what they ask of others they
            ask with tokens of their own, for a token is good for the server only for which it was issued (2026-07-28,
            basic/authorization).
        connections: how many may be open; beyond that they are closed at once.
        on_exchange: called with an `Exchanged` when an exchange is over, for an access log. It must not wait.
        stop: once set, nobody is let in any more, and what is asked is refused as busy.
        grace: seconds for handlers that run then.
        task_status: as above.

    *Resource handling*: the listener and all connections are closed at the end, also when cancelled.
    *Error handling*: nothing that a client sends or a handler raises ends this. What a lifespan raises comes out as it is.

    Raises:
        OSError: the address cannot be listened on.
        ValueError: one of `hosts` or `origins` is not written as above; two paths are the same but for a slash at the end; `auth` has
            other paths than `server`; or two guards, with resources that differ in nothing but the host, have their metadata at
            the same place.
    """
    servers = server if isinstance(server, Mapping) else {path: server}
    guards = auth if isinstance(auth, Mapping) else dict.fromkeys(servers, auth)
    for place in guards.keys() - servers.keys():
        raise ValueError(f"auth has a guard for {place!r}, where nothing is served")
    for place in servers.keys() - guards.keys():
        raise ValueError(f"auth has no guard for {place!r}: say None if it is open to everybody")
    if tls is not None:
        tls.set_alpn_protocols(["h2", "http/1.1"])
    scheme: Literal["https"] | None = "https" if tls is not None else None
    options = HttpOptions.of(
        host, scheme=scheme, hosts=hosts, origins=origins, reply=reply, sessions=sessions
    )
    listeners = await trio.open_tcp_listeners(port, host=host)
    for spare in listeners[1:] if port == 0 else ():
        await spare.aclose()  # another address of this name, with another port, which nobody would know
    del listeners[1 if port == 0 else len(listeners) :]
    if not _is_loopback(listeners) and not hosts:
        _log.warning(
            "listening on %s, which others can reach, and only by address: name the hosts that clients ask for (hosts=)",
            host,
        )
    address = _address(listeners[0], host, next(iter(servers)), "http" if tls is None else "https")
    await serve_listening(
        listeners,
        servers,
        options,
        guards=guards,
        tls=tls,
        routes=routes or {},
        connections=connections,
        on_exchange=on_exchange,
        stop=stop,
        grace=grace,
        started=partial(task_status.started, address),
    )


async def serve_listening(
    listeners: Sequence[trio.abc.Listener[trio.SocketStream]],
    servers: Mapping[str, Server],
    options: HttpOptions,
    *,
    guards: Mapping[str, Guard | None] = {},
    tls: ssl.SSLContext | None = None,
    routes: Mapping[str, Route],
    connections: int = _CONNECTIONS,
    on_exchange: Callable[[Exchanged], object] | None = None,
    stop: trio.Event | None = None,
    grace: float = _GRACE,
    started: Callable[[], object] = lambda: None,
) -> None:
    """`serve_http`, on `listeners`, which are closed at the end."""
    async with AsyncExitStack() as opened:
        for listener in listeners:
            await opened.enter_async_context(listener)
        endpoints = {}
        for path, server in servers.items():
            value = await opened.enter_async_context(server.lifespan())
            endpoints[path] = Endpoint(
                server.config,
                options,
                entropy=secrets.token_bytes,
                param_headers=server.param_headers,
                token=Served(server, value),
                door=door_of(guards.get(path)),
            )
        reception = await opened.enter_async_context(open_reception(Site(endpoints, routes)))
        desk = Connections(reception, tls, connections, on_exchange)
        serving = await opened.enter_async_context(open_quiet_nursery())
        accepting = trio.CancelScope()

        async def accept() -> None:
            with accepting:
                await trio.serve_listeners(desk.serve, list(listeners), handler_nursery=serving)

        serving.start_soon(accept)
        started()
        if stop is None:
            await trio.sleep_forever()
        await stop.wait()
        accepting.cancel()
        for listener in listeners:
            await listener.aclose()
        desk.wind_down()
        await reception.wind_down(grace)
        desk.wind_down()
        with trio.move_on_after(_LAST_WRITE):
            await desk.all_gone()


class Connections:
    """All connections of a server: how many there are, and that they end when it does."""

    def __init__(
        self,
        reception: Reception,
        tls: ssl.SSLContext | None,
        most: int,
        on_exchange: Callable[[Exchanged], object] | None,
    ) -> None:
        self._reception = reception
        self._tls = tls
        self._most = most
        self._on_exchange = on_exchange
        self._open: set[H11Connection | H2Connection] = set()
        self._meeting: set[trio.CancelScope] = set()  # until the first bytes come
        self._count = 0
        self._gone = trio.lowlevel.ParkingLot()

    def __repr__(self) -> str:
        return f"<Connections: {self._count} of {self._most}>"

    async def serve(self, stream: trio.abc.Stream) -> None:
        """Serve one, and close it."""
        if self._count >= self._most:
            _log.warning("%d connections are open, as many as may be: another one is refused", self._count)
            await trio.aclose_forcefully(stream)
            return
        self._count += 1
        try:
            if self._tls is not None:
                stream = trio.SSLStream(stream, self._tls, server_side=True)
                try:
                    with trio.fail_after(_HANDSHAKE):
                        await stream.do_handshake()
                except (trio.BrokenResourceError, trio.ClosedResourceError, trio.TooSlowError) as exc:
                    _log.debug("no TLS handshake: %s", exc.__cause__ or exc)
                    await trio.aclose_forcefully(stream)
                    return
            connection = await self._meet(stream)
            if connection is None:
                await trio.aclose_forcefully(stream)
                return
            self._open.add(connection)
            try:
                await connection.serve()
            finally:
                self._open.discard(connection)
        finally:
            self._count -= 1
            if not self._count:
                self._gone.unpark_all()

    async def _meet(self, stream: trio.abc.Stream) -> H11Connection | H2Connection | None:
        """Find out what is spoken: over TLS it has been agreed on, in the clear it shows at the first bytes. None if none come."""
        incoming, speaks_h2 = b"", None
        if isinstance(stream, trio.SSLStream):
            speaks_h2 = stream.selected_alpn_protocol() == "h2"
        else:
            silence = trio.CancelScope(deadline=trio.current_time() + _SILENCE)
            self._meeting.add(silence)
            with silence, suppress(trio.BrokenResourceError, trio.ClosedResourceError):
                while (speaks_h2 := begins_http2(incoming)) is None:
                    data = await stream.receive_some()
                    if not data:
                        break
                    incoming += data
            self._meeting.discard(silence)
            if not incoming:
                return None
        if not speaks_h2:
            return H11Connection(self._reception, stream, self._on_exchange, incoming)
        from ._h2_server import H2Connection  # many servers never meet anybody who speaks it

        return H2Connection(self._reception, stream, self._on_exchange, incoming)

    def wind_down(self) -> None:
        """End those that wait for a request."""
        for silence in self._meeting:
            silence.cancel()
        for connection in list(self._open):
            connection.wind_down()

    async def all_gone(self) -> None:
        while self._count:
            await self._gone.park()


def _address(listener: trio.SocketListener, host: str, path: str, scheme: str) -> HttpAddress:
    name, port = listener.socket.getsockname()[:2]
    # Nobody can connect to "all addresses", but this machine is one of them.
    name = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(name, host)  # noqa: S104 - it is told apart
    shown = f"[{name}]" if ":" in name else name
    return HttpAddress(name, port, f"{scheme}://{shown}:{port}{path}")


def _is_loopback(listeners: Sequence[trio.SocketListener]) -> bool:
    names = [listener.socket.getsockname()[0] for listener in listeners]
    return all(name == "::1" or name.startswith("127.") for name in names)


def run_http(
    server: Server | Mapping[str, Server],
    host: str = "127.0.0.1",
    port: int = 8000,
    *,
    path: str = "/mcp",
    hosts: Iterable[str] = (),
    reply: Literal["auto", "json", "sse"] = "auto",
    auth: Guard | None = None,
    grace: float = _GRACE,
) -> None:
    """Serve over HTTP until SIGINT or SIGTERM arrives: the `main` of a server file. For more say `serve_http`.

    The first signal ends it in order: what runs gets `grace` seconds, then it is cancelled, so that `finally` blocks are
    executed. The second one ends the process at once.

    Raises:
        SystemExit: with 130 or 143 after a signal.
        OSError: the address cannot be listened on.
    """
    code = trio.run(
        _main,
        partial(serve_http, server, host, port, path=path, hosts=hosts, reply=reply, auth=auth, grace=grace),
    )
    if code:
        raise SystemExit(code)


async def _main(serve: Callable[..., Awaitable[None]]) -> int:
    stop = trio.Event()
    with stop_on_signals(stop.set) as caught:
        async with open_quiet_nursery(wait=True) as nursery:
            address: HttpAddress = await nursery.start(partial(serve, stop=stop))
            _log.info("listening on %s", address.url)
    return caught.exit_code
