"""Serve MCP servers and plain routes over HTTP: listeners, connections, and shutdown.

1. The defaults are safe: the server listens on this machine only, and accepts requests for the
   names of this machine only.
2. Setting `stop` shuts down in this order: accept no connections, take no requests, give handlers
   `grace` seconds, cancel them, send the remaining responses, end the streams. Cancelling the
   serving task ends it quickly.
3. A failing connection affects neither the others nor the server.
"""

from __future__ import annotations

import errno
import logging
import os
import socket
import ssl
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import AsyncExitStack, suppress
from functools import partial
from typing import TYPE_CHECKING, Final, Literal, NamedTuple, TypeAlias, Unpack

import trio

from mcp_core.drivers import NoOptions, refuse_keywords, shows_keywords, type_on_first_use
from mcp_core.http import (
    Endpoint,
    HttpLimits,
    HttpOptions,
    PlainResponse,
    RequestHead,
    ResourceServerLike,
    Router,
    begins_http2,
    check_scope_names,
    served_authority,
    warning_without_hosts,
)
from mcp_core.registry import Server
from mcp_core.runtime import SHUTDOWN_GRACE, Sources
from mcp_trio._listeners import PatientListener
from mcp_trio._nursery import open_quiet_nursery
from mcp_trio._runtime import SYSTEM_SOURCES, check_trio
from mcp_trio._tasks import open_server
from mcp_trio.streams._stdio import stop_on_signals

from ._auth import endpoint_auth
from ._connection import AccessLogEntry
from ._driver import open_http_server_driver
from ._h11_connection import H11ServerConnection

if TYPE_CHECKING:
    from mcp_core.adapters import LastDeadline, Recorder, Recording
    from mcp_core.sharing import SessionStore

    from ._driver import HttpServerDriver
    from ._h2_connection import H2ServerConnection
else:
    Recording = type_on_first_use("mcp_core.adapters", "Recording")
    SessionStore = type_on_first_use("mcp_core.sharing", "SessionStore")

__all__ = ["CannotListen", "HttpAddress", "run_http", "serve_http"]

Route: TypeAlias = Callable[[RequestHead], PlainResponse]

_HANDSHAKE_TIMEOUT: Final = 10.0  # seconds for the TLS handshake
_FIRST_BYTES_TIMEOUT: Final = 10.0  # seconds for the bytes that tell HTTP/1.1 from HTTP/2
_CLOSE_TIMEOUT: Final = 1.0  # seconds for connections to close at shutdown
# More than one process serves well. Each costs a descriptor; systems allow 1,024 or more.
_MAX_CONNECTIONS: Final = 2_000

_log = logging.getLogger("mcp_trio")

# What to do about an address on which a server cannot listen.
_CURES: Final = {
    errno.EADDRINUSE: "choose another port, or 0 for any free port",
    errno.EACCES: "ports below 1024 need administrator rights: choose a higher one",
    errno.EADDRNOTAVAIL: "this machine has no such address",
}


class HttpAddress(NamedTuple):
    """The address on which a server listens, as a client on this machine connects to it.

    `host` is the name or IP address given to `serve_http`, or loopback if the server listens on all
    addresses. `port` is the port, also where 0 was given. `url` is the URL of the (first) endpoint.
    """

    host: str
    port: int
    url: str


@shows_keywords(NoOptions)
async def serve_http(
    server: Server | Mapping[str, Server],
    host: str = "127.0.0.1",
    port: int = 0,
    *,
    path: str = "/mcp",
    sse_path: str | None = None,
    tls: ssl.SSLContext | None = None,
    hosts: Iterable[str] = (),
    origins: Iterable[str] = (),
    routes: Mapping[str, Route] | None = None,
    reply: Literal["auto", "json", "sse"] = "auto",
    sessions: bool = True,
    limits: HttpLimits | None = None,
    trusted_proxies: Iterable[str] = (),
    subprotocols: Iterable[str] = ("mcp",),
    listen: bool = True,
    get_stream: bool = True,
    auth: ResourceServerLike | Mapping[str, ResourceServerLike | None] | None = None,
    max_connections: int = _MAX_CONNECTIONS,
    on_exchange: Callable[[AccessLogEntry], object] | None = None,
    record: str | os.PathLike[str] | Recording | None = None,
    store: SessionStore | None = None,
    stop: trio.Event | None = None,
    grace: float = SHUTDOWN_GRACE,
    task_status: trio.TaskStatus[HttpAddress] = trio.TASK_STATUS_IGNORED,
    **_other: Unpack[NoOptions],
) -> None:
    """Serve MCP over HTTP/1.1 and HTTP/2, and WebSockets at the same paths, until `stop` is set.

    Every revision is served. `address = await nursery.start(serve_http, server)` returns an
    `HttpAddress` once the server listens.

    Args:
        server: the server at `path`, or a mapping of paths to servers. Each lifespan is entered
            once, around everything.
        host: the address to listen on; `"0.0.0.0"` or `"::"` for all addresses of this machine. By
            default other machines cannot connect.
        port: the port, or 0, the default, for a free one.
        path: the path of `server`; not used if that is a mapping.
        sse_path: a second path of a single server, such as `"/sse"`, at which GET begins HTTP+SSE
            (2024-11-05), for clients that are set up for that transport. `path` serves them too.
        tls: a context with the server's certificate. HTTP/2 and HTTP/1.1 are offered in the
            handshake (ALPN), which changes the context. Without TLS, the default, a client with
            prior knowledge can use HTTP/2.
        hosts: host names of the server, if others than this machine can reach it, such as
            `"mcp.example.com"`, with a port if only that port is valid. Requests with another
            `Host` are rejected as a protection from DNS rebinding. IP addresses are accepted unless
            `host` is loopback.
        origins: origins of web pages on other hosts that may send requests, as in the `Origin`
            header: `"https://app.example.com"`.
        routes: functions for other paths: `{"/healthz": lambda head: PlainResponse(200, b"ok")}`.
            Each gets the `RequestHead`, and must not block. One that raises is logged, and the
            client gets 500. `Host` and `Origin` are checked as for the server.
        reply: `"auto"` responds with JSON unless other messages precede the response, `"sse"`
            always with an event stream, `"json"` never with one.
        sessions: whether revisions with a handshake get sessions, as by default. Without sessions
            no state outlives a request.
        limits: upper bounds of what clients can use, see `mcp_core.http.HttpLimits`.
        trusted_proxies: addresses or networks of reverse proxies, such as `"127.0.0.1"`. The client
            of a request is then the one that they name in `X-Forwarded-For`. Otherwise all clients
            of a proxy share the limits of one client.
        subprotocols: names of WebSocket subprotocols, of which a client has to offer one. With an
            empty list any client is accepted, and none is selected.
        listen: False to refuse `subscriptions/listen` (2026-07-28), for platforms that count the
            seconds of open streams.
        get_stream: False to offer no GET stream in sessions (until 2025-11-25), for the same
            reason. Changes aren't declared then, and HTTP+SSE isn't served.
        auth: the `mcp_core.auth.OAuthResourceServer`, or the `ApiKeys`, that authorizes requests;
            or one for each path, or None for a path without authorization. `routes` have none.
            Handlers never get the token: a token is valid only for the server for which it was
            issued, so a handler must use tokens of its own for other services (2026-07-28,
            basic/authorization).
        max_connections: the maximum of open connections; more are closed at once.
        on_exchange: called with an `AccessLogEntry` when an exchange has ended. It must not wait.
            What it raises is logged.
        record: the file to which all conversations are recorded, or a `Recording` with options.
            Credentials and other secrets are hidden. A file that exists is replaced. Default None.
        store: what the workers behind one address share, such as a `MemoryStore`: clients of each
            hear of changes at all of them. See `mcp_core.sharing.SessionStore`. By default None: a
            server knows its own changes only. It is opened after the lifespans were entered.
        stop: once set, no more connections are accepted, and new requests are rejected as busy.
            Default None: only cancelling this call ends it, quickly.
        grace: seconds for the handlers that run at that time; then they are cancelled.
        task_status: of `nursery.start`, which passes it.

    *Resource handling*: the listener and all connections are closed at the end.
    *Error handling*: nothing that a client sends or a handler raises ends this. Exceptions of a
    lifespan propagate unchanged.

    Raises:
        OSError: the server cannot listen on the address, and the text names the cure; or the file
            of `record` cannot be opened.
        RuntimeError: the caller isn't a task of trio.
        ValueError: one of `hosts`, `origins`, `trusted_proxies` or `subprotocols` has another form;
            two paths differ only in a slash at the end; `sse_path` begins without a slash, lacks
            sessions or GET streams, is taken, or is for several servers; `reply` and `get_stream`
            leave no stream for questions to a session's client; `auth` has other paths than
            `server`, or gives scopes to a tool's name, a prompt or a method that doesn't exist; the
            metadata of two resource servers would be at the same path, because their resources
            differ only in the host; or `store` needs a server's `state_keys`, or would be shared by
            two servers of one name.
        TypeError: an option is unknown; the text says what other libraries' options are here.

    Source: 2026-07-28, basic/transports/streamable-http; 2025-11-25 to 2024-11-05,
    basic/transports; RFC 9112 (HTTP/1.1), RFC 9113 (HTTP/2), RFC 6455 (WebSocket).
    """
    refuse_keywords(_other, serve_http, "serve_http()")
    check_trio()
    servers = server if isinstance(server, Mapping) else {path: server}
    if store is not None:
        from mcp_core.runtime.sharing import check_sharing  # on first use, as the store

        check_sharing(servers.values(), store)
    auth_by_path = auth if isinstance(auth, Mapping) else dict.fromkeys(servers, auth)
    for unknown in auth_by_path.keys() - servers.keys():
        raise ValueError(f"auth has an entry for {unknown!r}, where nothing is served")
    for missing in servers.keys() - auth_by_path.keys():
        raise ValueError(
            f"auth has no entry for {missing!r}: give None if it needs no authorization"
        )
    if tls is not None:
        tls.set_alpn_protocols(["h2", "http/1.1"])
    scheme: Literal["https"] | None = "https" if tls is not None else None
    options = HttpOptions.of(
        host,
        scheme=scheme,
        hosts=hosts,
        origins=origins,
        reply=reply,
        sessions=sessions,
        limits=limits or HttpLimits(),
        trusted_proxies=trusted_proxies,
        sse_path=sse_path,
        subprotocols=subprotocols,
        listen=listen,
        get_stream=get_stream,
    )
    listeners = await open_listeners(host, port)
    if not hosts:
        warn_of_missing_hosts(listeners, host)
    address = address_of(
        listeners[0], host, next(iter(servers)), "http" if tls is None else "https"
    )
    await serve_http_listeners(
        listeners,
        servers,
        options,
        auth=auth_by_path,
        tls=tls,
        routes=routes or {},
        max_connections=max_connections,
        on_exchange=on_exchange,
        record=record,
        store=store,
        stop=stop,
        grace=grace,
        started=partial(task_status.started, address),
    )


async def open_listeners(host: str, port: int) -> list[trio.SocketListener]:
    """Listen on an address, on several sockets if the host has several addresses.

    Raises:
        CannotListen: that isn't possible.
    """
    try:
        listeners = await trio.open_tcp_listeners(port, host=host)
    except OSError as exc:
        raise CannotListen(exc.errno, _listen_error_text(exc, host, port)) from exc
    if port == 0:
        # Other addresses of this name got other ports, which no client would know.
        for other in listeners[1:]:
            await other.aclose()
        del listeners[1:]
    return listeners


def warn_of_missing_hosts(listeners: Sequence[trio.SocketListener], host: str, *cure: str) -> None:
    """Log a warning if other machines can connect, although no host name is accepted.

    `cure` is what to do about it, if that isn't to name the hosts.
    """
    bound = [listener.socket.getsockname()[0] for listener in listeners]
    warning = warning_without_hosts(bound, host, *cure)
    if warning is not None:
        _log.warning("%s", warning)


async def serve_http_listeners(
    listeners: Sequence[trio.abc.Listener[trio.SocketStream]],
    servers: Mapping[str, Server],
    options: HttpOptions,
    *,
    auth: Mapping[str, ResourceServerLike | None] = {},
    tls: ssl.SSLContext | None = None,
    routes: Mapping[str, Route],
    max_connections: int = _MAX_CONNECTIONS,
    on_exchange: Callable[[AccessLogEntry], object] | None = None,
    record: str | os.PathLike[str] | Recording | None = None,
    store: SessionStore | None = None,
    stop: trio.Event | None = None,
    grace: float = SHUTDOWN_GRACE,
    started: Callable[[], object] = lambda: None,
    sources: Sources = SYSTEM_SOURCES,
) -> None:
    """Serve as `serve_http` does, on `listeners`, which are closed at the end."""
    async with AsyncExitStack() as opened:
        for listener in listeners:
            await opened.enter_async_context(listener)
        recorder: Recorder | None = None
        if record is not None:
            from mcp_trio.recording._open import open_recorder

            recorder = await opened.enter_async_context(open_recorder(record, "server", "http"))
        endpoints = {}
        for path, server in servers.items():
            served = await opened.enter_async_context(
                open_server(server, grace, store, sources=sources)
            )
            endpoints[path] = Endpoint(
                server.config,
                options,
                entropy=sources.entropy,
                param_headers=server.param_headers,
                token=served,
                auth=endpoint_auth(auth.get(path), sources.wall_time),
            )
        check_scope_names((server, auth.get(path)) for path, server in servers.items())
        router = Router(endpoints, routes)
        router.recorder = recorder
        driver = await opened.enter_async_context(open_http_server_driver(router))
        server_connections = ServerConnections(driver, tls, max_connections, on_exchange)
        nursery = await opened.enter_async_context(open_quiet_nursery())
        accept_scope = trio.CancelScope()

        async def accept() -> None:
            with accept_scope:
                await trio.serve_listeners(
                    server_connections.serve,
                    [PatientListener(listener) for listener in listeners],
                    handler_nursery=nursery,
                )

        nursery.start_soon(accept)
        started()
        if stop is None:
            await trio.sleep_forever()
        await stop.wait()
        accept_scope.cancel()
        for listener in listeners:
            await listener.aclose()
        server_connections.shutdown()
        await driver.shutdown(grace)
        # Again, for the connections that have become idle since.
        server_connections.shutdown()
        with trio.move_on_after(_CLOSE_TIMEOUT):
            await server_connections.wait_closed()


class ServerConnections:
    """All connections of a server. It limits their number, and closes them at shutdown.

    Args:
        driver: the driver of the server's router.
        tls: a context with the server's certificate, or None without TLS.
        maximum: the number of connections that may be open at once.
        on_exchange: called with an `AccessLogEntry` when an exchange has ended.
    """

    def __init__(
        self,
        driver: HttpServerDriver,
        tls: ssl.SSLContext | None,
        maximum: int,
        on_exchange: Callable[[AccessLogEntry], object] | None,
    ) -> None:
        self._driver = driver
        self._tls = tls
        self._maximum = maximum
        self._on_exchange = on_exchange
        self._open: set[H11ServerConnection | H2ServerConnection] = set()
        self._silent: set[trio.CancelScope] = set()  # connections that wait for their first bytes
        self._count = 0
        self._all_closed = trio.lowlevel.ParkingLot()

    def __repr__(self) -> str:
        return f"<ServerConnections: {self._count} of {self._maximum}>"

    async def serve(self, stream: trio.abc.Stream) -> None:
        """Serve one connection, and close it."""
        if self._count >= self._maximum:
            _log.warning(
                "%d connections are open, which is the maximum: closing a new one", self._count
            )
            await trio.aclose_forcefully(stream)
            return
        self._count += 1
        try:
            address = _peer_address(stream)
            if self._tls is not None:
                stream = trio.SSLStream(stream, self._tls, server_side=True)
                try:
                    with trio.fail_after(_HANDSHAKE_TIMEOUT):
                        await stream.do_handshake()
                except (
                    trio.BrokenResourceError,
                    trio.ClosedResourceError,
                    trio.TooSlowError,
                ) as exc:
                    _log.debug("no TLS handshake: %s", exc.__cause__ or exc)
                    await trio.aclose_forcefully(stream)
                    return
            connection = await self._detect_protocol(stream, address)
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
                self._all_closed.unpark_all()

    async def _detect_protocol(
        self, stream: trio.abc.Stream, address: str
    ) -> H11ServerConnection | H2ServerConnection | None:
        """Return a connection of the protocol that the client uses, or None if it sends nothing.

        With TLS the protocol is negotiated (ALPN). Without TLS the first bytes decide.
        """
        incoming = b""
        is_http2 = None
        if isinstance(stream, trio.SSLStream):
            is_http2 = stream.selected_alpn_protocol() == "h2"
        else:
            scope = trio.CancelScope(deadline=trio.current_time() + _FIRST_BYTES_TIMEOUT)
            self._silent.add(scope)
            with scope, suppress(trio.BrokenResourceError, trio.ClosedResourceError):
                while (is_http2 := begins_http2(incoming)) is None:
                    data = await stream.receive_some()
                    if not data:
                        break
                    incoming += data
            self._silent.discard(scope)
            if not incoming:
                return None
        if not is_http2:
            return H11ServerConnection(self._driver, stream, self._on_exchange, incoming, address)
        from ._h2_connection import H2ServerConnection

        return H2ServerConnection(self._driver, stream, self._on_exchange, incoming, address)

    def shutdown(self) -> None:
        """Close idle connections, and let the others end after their running exchanges."""
        for scope in self._silent:
            scope.cancel()
        for connection in list(self._open):
            connection.shutdown()

    async def wait_closed(self) -> None:
        """Wait until no connection is open."""
        while self._count:
            await self._all_closed.park()


def _peer_address(stream: trio.abc.Stream) -> str:
    """Return the IP address of the client, "" if it has none."""
    if not isinstance(stream, trio.SocketStream):
        return ""
    try:
        name = stream.socket.getpeername()
    except OSError:  # it has disconnected already
        return ""
    return str(name[0]) if isinstance(name, tuple) else ""


class CannotListen(OSError):
    """The server cannot listen on its address. `strerror` names the reason and the cure."""

    strerror: str


def _listen_error_text(exc: OSError, host: str, port: int) -> str:
    if isinstance(exc, socket.gaierror):
        return (
            f"no host is called {host}: {exc.strerror}; use 127.0.0.1 for clients on this machine, "
            "0.0.0.0 for clients anywhere"
        )
    # trio raises errors without a number, too: it has tried several addresses of the host.
    reason = os.strerror(exc.errno).lower() if exc.errno else str(exc)
    cure = _CURES.get(exc.errno or 0)
    return f"cannot listen on {host}, port {port}: {reason}" + (f"; {cure}" if cure else "")


def address_of(listener: trio.SocketListener, host: str, path: str, scheme: str) -> HttpAddress:
    """Return the address to show for the endpoint at `path`."""
    name, port = listener.socket.getsockname()[:2]
    authority = served_authority((name, port), host)
    return HttpAddress(authority.host.strip("[]"), port, f"{scheme}://{authority}{path}")


@shows_keywords(NoOptions)
def run_http(
    server: Server | Mapping[str, Server],
    host: str = "127.0.0.1",
    port: int = 8000,
    *,
    path: str = "/mcp",
    sse_path: str | None = None,
    hosts: Iterable[str] = (),
    reply: Literal["auto", "json", "sse"] = "auto",
    auth: ResourceServerLike | None = None,
    record: str | os.PathLike[str] | Recording | None = None,
    grace: float = SHUTDOWN_GRACE,
    **_other: Unpack[NoOptions],
) -> None:
    """Serve over HTTP until SIGINT or SIGTERM arrives. `serve_http` has more options.

    It is the `main` of a server file. The first signal shuts down in order: running handlers get
    `grace` seconds, then they are cancelled, so that their `finally` blocks run. The second signal
    kills the process. If a handler ignores its cancellation or blocks, the process ends without it
    five seconds after `grace`, with a line on stderr that names the tool, as with `mcp_trio.run`.
    The URL is logged, at level INFO, once the server listens.

    Args:
        server: the server at `path`, or a mapping of paths to servers.
        host: the address to listen on. By default other machines cannot connect.
        port: the port; 8000 unless given, or 0 for a free one.
        path: the path of `server`; not used if that is a mapping.
        sse_path: a second path of a single server, for HTTP+SSE (2024-11-05).
        hosts: host names of the server, if others than this machine can reach it.
        reply: `"auto"`, `"json"` or `"sse"`: whether responses are event streams.
        auth: the `mcp_core.auth.OAuthResourceServer`, or the `ApiKeys`, that authorizes the
            requests for every server. Default None: no authorization.
        record: the file to which all conversations are recorded, as for `serve_http`.
        grace: seconds for the handlers that run at the first signal.

    *Resource handling* and *Error handling*: as `serve_http`, which also explains the arguments.

    Raises:
        SystemExit: with 130 or 143 after a signal; with the reason if the server cannot listen on
            the address.
        OSError: the file of `record` cannot be opened.
        RuntimeError: this thread is in a run of trio already.
        ValueError: an argument has another form, as for `serve_http`.
        TypeError: an option is unknown; the text says what other libraries' options are here.
    """
    refuse_keywords(_other, run_http, "run_http()")
    serve = partial(
        serve_http,
        server,
        host,
        port,
        path=path,
        sse_path=sse_path,
        hosts=hosts,
        reply=reply,
        auth=auth,
        record=record,
        grace=grace,
    )
    from mcp_core.adapters import LastDeadline  # not needed for any other way to serve

    servers = server.values() if isinstance(server, Mapping) else [server]
    name = next(iter(servers)).info.name
    try:
        with LastDeadline(name) as last_deadline:
            exit_code = trio.run(_main, serve, grace, last_deadline)
    except CannotListen as exc:
        raise SystemExit(exc.strerror) from exc
    if exit_code:
        raise SystemExit(exit_code)


async def _main(
    serve: Callable[..., Awaitable[None]], grace: float, last_deadline: LastDeadline
) -> int:
    stop = trio.Event()
    with stop_on_signals(stop.set, last_deadline=last_deadline, grace=grace) as stop_signal:
        async with open_quiet_nursery(wait=True) as nursery:
            address: HttpAddress = await nursery.start(partial(serve, stop=stop))
            _log.info("listening on %s", address.url)
    last_deadline.lifespan_ended()
    return stop_signal.exit_code
