"""Connect a `Client` to a server in this process, in a child process, at a URL, or on a stream.

1. Every function is a context manager: nothing that it starts outlives its block, and exceptions of
   the block propagate unchanged.
2. Options of the conversation are `ClientConfigOptions`, for every transport. The
   parameters here are particular to one kind of transport.
3. The modules of HTTP and of a server are imported on first use: a stdio client doesn't
   load them.
"""

from __future__ import annotations

import os
import secrets
import ssl
from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager, nullcontext
from functools import partial
from typing import TYPE_CHECKING, Unpack, cast

import trio

from mcp_core import ConnectFailed
from mcp_core.drivers import (
    NETWORK_INITIALIZE_TIMEOUT,
    ClientConfigOptions,
    check_keywords,
    check_keywords_of,
    client_config,
    shows_keywords,
    type_on_first_use,
)
from mcp_core.runtime import ClientContext, client_context
from mcp_trio.streams._child import ChildProcess, Grace, Stderr, spawn
from mcp_trio.streams._link import StreamTransport
from mcp_trio.streams._memory import memory_pair
from mcp_trio.streams._trace import Trace, TraceCallback, TracedStream

from ._client import Client
from ._nursery import open_quiet_nursery
from ._runtime import check_trio

if TYPE_CHECKING:
    from mcp_core import Connection, Event
    from mcp_core.adapters import Recorder, Recording
    from mcp_core.auth import ClientProfile
    from mcp_core.registry import Server
    from mcp_core.trace import ReplayedServer
    from mcp_trio.auth._authorization import ClientAuthorization, LoginConfig
    from mcp_trio.streams._link import Link

    from ._client import ClientTransport
else:
    Recording = type_on_first_use("mcp_core.adapters", "Recording")
    ClientProfile = type_on_first_use("mcp_core.auth", "ClientProfile")
    LoginConfig = type_on_first_use("mcp_trio.auth._authorization", "LoginConfig")
    ReplayedServer = type_on_first_use("mcp_core.trace", "ReplayedServer")
    Server = type_on_first_use("mcp_core.registry", "Server")

__all__ = [
    "ClientOptions",
    "connect",
    "connect_http",
    "connect_stdio",
    "connect_stream",
    "connect_websocket",
]


class ClientOptions(ClientConfigOptions, total=False):
    """A client's options: the keys of `ClientConfigOptions`, `trace` and `record`.

    Keys:
        trace: called for each message, with `"sent"` or `"received"` and its bytes; on a byte
            stream for each line, also for one that isn't a message. It must not block. One that
            raises is logged and not called again. Default None.
        record: the file to which the conversation is recorded, or a `Recording` with options.
            Credentials and other secrets are hidden. A file that exists is replaced, and one that
            cannot be opened raises `OSError`. Default None.
    """

    trace: Trace | None
    record: str | os.PathLike[str] | Recording | None


@shows_keywords(ClientOptions)
def connect(
    target: str | Server | ReplayedServer | Sequence[str | os.PathLike[str]],
    *,
    auth: LoginConfig | ClientProfile | bool = False,
    prior_knowledge: bool = False,
    **options: Unpack[ClientOptions],
) -> ClientContext[Client]:
    """Connect to a server: `async with connect(target) as client: ...`.

    Args:
        target: a URL `http://...` or `https://...` (more options: `connect_http`); a URL
            `ws://...` or `wss://...` (`connect_websocket`); a command's words, which is
            started as a child process (`connect_stdio`); a `Server`, which runs in this process;
            or a recorded conversation, `mcp_trio.testing.replayed`.
        auth: for `http://...` and `https://...`, whether and how to get an access token if the
            server requires one (see `connect_http`).
        prior_knowledge: for `http://...`, whether the server is known to speak HTTP/2
            (see `connect_http`).
        options: see `ClientOptions`; also the options of the function for this kind of target.

    Returns:
        an async context manager: entering it connects, and gives the `Client`.

    *Resource handling*: as of the function for this kind of target. A `Server` runs as long as the
    block, and its lifespan is entered and left with it.
    *Error handling*: exceptions of the block propagate unchanged, not in a group, as do those that
    a `Server`'s lifespan raises.

    Raises:
        ConnectFailed: the server could not be started or reached, or the negotiation failed.
        RuntimeError: `async with` is used outside a run of trio.
        TypeError: the target has another type, or an option is unknown, or not for this target.
        ValueError: an option is out of its range, the URL is invalid, or `auth` or
            `prior_knowledge` is given for another kind of target.
        NotRecorded: the target is a recorded conversation, and the client sent a request that it
            doesn't have. An exception of the block is then its cause.
    """
    if auth is not False and not isinstance(target, str):
        raise ValueError("auth is for a server at a URL: others are as trusted as this process")
    row = None
    if isinstance(target, str):
        from mcp_core.urls import url_transport  # on first use: a command has no URL

        row = url_transport(target)
    if prior_knowledge and (row is None or row.is_websocket or row.http_scheme != "http"):
        raise ValueError(
            "prior_knowledge is for a server at http://: others negotiate the protocol"
        )
    if not isinstance(target, str) and not hasattr(target, "__iter__"):
        from mcp_core.registry import Server

        if isinstance(target, Server):
            check_keywords(options, ClientOptions, "connect()")
            return ClientContext(_connect_memory(target, options), "mcp_trio.connect", check_trio)
        from mcp_core.trace import ReplayedServer

        if isinstance(target, ReplayedServer):
            check_keywords(options, ClientOptions, "connect()")
            return ClientContext(_connect_replayed(target, options), "mcp_trio.connect", check_trio)
    if isinstance(target, str) and row is not None and not row.is_websocket:
        check_keywords_of(options, connect_http, "connect()")
        return connect_http(target, auth=auth, prior_knowledge=prior_knowledge, **options)
    if isinstance(target, str) and row is not None:
        if auth is not False:
            raise ValueError(
                "auth is for http:// and https://: give a WebSocket its token in headers"
            )
        check_keywords_of(options, connect_websocket, "connect()")
        return connect_websocket(target, **options)
    # A mapping is a configuration of servers, not an iterable of words.
    if isinstance(target, (str, Mapping)) or not hasattr(target, "__iter__"):
        from mcp_core.processes import wrong_target

        raise wrong_target(target)
    check_keywords_of(options, connect_stdio, "connect()")
    return connect_stdio(cast("Sequence[str | os.PathLike[str]]", target), **options)


@shows_keywords(ClientOptions)
@client_context(check_trio)
async def connect_stream(
    stream: trio.abc.Stream, **options: Unpack[ClientOptions]
) -> AsyncIterator[Client]:
    """Connect to a server on a byte stream that carries one message a line.

    Used as `async with connect_stream(stream) as client: ...`.

    Args:
        stream: an open stream whose other end the server serves, such as a Unix socket.
        options: see `ClientOptions`.

    *Resource handling*: the stream is closed at the end of the block, and when connecting fails. An
    invalid option leaves it open.
    *Error handling*: exceptions of the block propagate unchanged, not in a group. If the stream
    ends or breaks, every pending call raises `ConnectionLost`.

    Raises:
        ConnectFailed: the negotiation failed, or the stream has ended or broken during it.
        RuntimeError: `async with` is used outside a run of trio.
        TypeError: an option is unknown.
        ValueError: an option is out of its range.

    Source: basic/transports (2026-07-28: basic/transports/stdio), for the lines.
    """
    async with _connect_stream(stream, options, "stream") as client:
        yield client


@asynccontextmanager
async def _connect_stream(
    stream: trio.abc.Stream, options: ClientOptions, transport: str
) -> AsyncIterator[Client]:
    config = client_config(options, ClientOptions)
    async with (
        _open_recorder(options, transport) as recorder,
        open_quiet_nursery() as nursery,
    ):
        client = Client(config, options, _stream_transport_factory(stream, options, recorder))
        try:
            await client.open(nursery)
            yield client
        finally:
            await client.aclose()


@shows_keywords(ClientOptions)
@client_context(check_trio)
async def connect_stdio(
    argv: Sequence[str | os.PathLike[str]],
    *,
    env: Mapping[str, str] | None = None,
    inherit_env: bool = False,
    cwd: str | os.PathLike[str] | None = None,
    stderr: Stderr = "forward",
    grace: Grace | None = None,
    **options: Unpack[ClientOptions],
) -> AsyncIterator[Client]:
    """Start a server as a child process and connect to it over its stdin and stdout.

    Used as `async with connect_stdio(["python", "server.py"]) as client: ...`.

    Some old servers exit when they are asked for the revisions that they support. Such a server is
    started a second time, without that request. One that exits before it has read it isn't.

    Args:
        argv: program and arguments; no shell is involved.
        env: variables that it gets beside the few that are inherited: `HOME`, `LOGNAME`, `PATH`,
            `SHELL`, `TERM`, `USER`, `LANG`, `LC_ALL`, `LC_CTYPE`, `TMPDIR` and `TZ`; on Windows
            also those that name the directories of the system and the user.
        inherit_env: whether it inherits the whole environment instead, with any secrets in it.
        cwd: its working directory; by default this process's.
        stderr: `"forward"` copies its stderr to ours, with control characters escaped if ours is a
            terminal; `"discard"` drops it; a callable gets each line as text, and must not block.
            One that raises is logged and not called again.
        grace: the seconds that the child gets to exit, see `Grace`. Default 2 s after the closing
            of its stdin, and 2 s more after SIGTERM.
        options: see `ClientOptions`.

    *Resource handling*: at the end of the block the child's stdin is closed; if it doesn't exit,
    its process group gets SIGTERM and then SIGKILL. On Linux, so do other processes that it has
    started and that still run. On Windows the child alone is ended, by `TerminateProcess`.
    *Error handling*: exceptions of the block propagate unchanged, not in a group. If the child
    exits, every pending call raises `ConnectionLost`. Its text, and `RemoteProtocolError`'s,
    has five lines of the child's stderr, and the exit status: the last lines, or the last four
    after the one that names an error.

    Raises:
        ConnectFailed: the program could not be started, or the negotiation failed. The message has
            the exit status and five lines of its stderr, and names usual variables, such as
            `HTTPS_PROXY`, that are set here and that it didn't get.
        RuntimeError: `async with` is used outside a run of trio.
        TypeError: `argv` is one string, or empty, a value of `env` isn't a string, or an option is
            unknown.
        ValueError: an option is out of its range.

    Source: basic/transports and basic/lifecycle, Shutdown (2026-07-28: basic/transports/stdio).
    """
    client_config(options, ClientOptions)  # an invalid option must not replace a trace
    opened = _open_recorder(options, "stdio", argv, env=env, inherit_env=inherit_env)
    async with opened as recorder:
        start = partial(
            spawn, argv, env=env, inherit_env=inherit_env, cwd=cwd, stderr=stderr, grace=grace
        )
        async with _connect_child(start, argv, recorder, options) as client:
            yield client


@asynccontextmanager
async def _connect_child(
    start: Callable[..., AbstractAsyncContextManager[ChildProcess]],
    argv: Sequence[str | os.PathLike[str]],
    recorder: Recorder | None,
    options: ClientOptions,
) -> AsyncIterator[Client]:
    """Start the server with `start`, once or twice, and connect to it."""
    ended_by_probe = False
    while True:
        config = client_config(options, ClientOptions)
        record = None if recorder is None else recorder.child([os.fspath(word) for word in argv])
        async with start(recorder=record) as child, open_quiet_nursery() as nursery:
            links: list[Link] = []
            make_transport = _stream_transport_factory(
                child.stream, options, recorder, child.describe, links.append
            )
            client = Client(config, options, make_transport)
            client.needs_handshake = ended_by_probe
            try:
                try:
                    await client.open(nursery)
                except ConnectFailed as exc:
                    failed = any(link.write_error is not None for link in links)
                    probe_unread = failed or child.unread > 0
                    versions = client.versions_without_probe(probe_unread=probe_unread)
                    if not versions:
                        await child.aclose()
                        # Only now are the exit status and all of stderr known.
                        from mcp_core.processes import with_exit_text

                        text = with_exit_text(str(exc), child.describe_start())
                        raise type(exc)(text) from exc
                    options["versions"] = versions
                    ended_by_probe = True
                    continue
                yield client
                return
            finally:
                await client.aclose()


@shows_keywords(ClientOptions)
@client_context(check_trio)
async def connect_http(
    url: str,
    *,
    headers: Mapping[str, str] | None = None,
    tls: ssl.SSLContext | None = None,
    proxy: str | None = "environment",
    auth: LoginConfig | ClientProfile | bool = False,
    prior_knowledge: bool = False,
    allow_cleartext: bool = False,
    **options: Unpack[ClientOptions],
) -> AsyncIterator[Client]:
    """Connect to a server at a URL over Streamable HTTP, or over the older HTTP with SSE.

    Used as `async with connect_http("https://example.com/mcp") as client: ...`.

    Each message is one HTTP request: over HTTP/2, on one shared connection, if the server offers it
    in the TLS handshake (ALPN), otherwise over HTTP/1.1 on reused connections. A broken connection
    fails the calls that used it, and not the conversation. A broken event stream is reconnected in
    the revisions that define it.

    Args:
        url: `http://...` or `https://...`, without a user and password.
        headers: sent with every request, such as `{"authorization": "Bearer ..."}`. Calls have an
            option `headers` too.
        tls: certificates to trust and to present; by default those that the system trusts. Your own
            context offers HTTP/2 only after `context.set_alpn_protocols(["h2", "http/1.1"])`.
        proxy: the URL of an HTTP proxy, or None for no proxy. By default the one that the
            environment has for this server (`HTTP_PROXY`, `HTTPS_PROXY`, `ALL_PROXY`, `NO_PROXY`;
            on macOS and Windows also the system's settings), and none for a server on this
            machine.
        auth: whether, and how, to get an access token from the authorization server that the MCP
            server names (2026-07-28, basic/authorization). `False`, the default, gets none; `True`
            opens the user's browser and stores the tokens in the user's files; a `ClientProfile`
            describes this client; a `LoginConfig` has all settings. The profile's `extensions`
            are added to the options'. While a user logs in, timeouts of calls are paused.
            Authorization servers are reached with the same `proxy`, and with the `tls` of the
            `LoginConfig`: a client certificate in `tls` is for the MCP server only. URLs that
            servers name may be in a private network only if the MCP server is in one, or if they
            are at the `issuer` of the profile.
        prior_knowledge: whether a server at `http://...` is known to speak HTTP/2, which cannot be
            negotiated without TLS (RFC 9113 3.3).
        allow_cleartext: whether headers that have a credential by their name, such as
            `authorization`, `cookie`, `x-api-key` and `x-functions-key`, may be sent to another
            machine at `http://...`. Everyone on the way can read and use them, so this is for
            trusted networks only.
        options: see `ClientOptions`. `initialize_timeout` is 30 seconds unless given.

    *Resource handling*: at the end of the block the session is deleted on the server, which gets a
    second for it, and all connections are closed.
    *Error handling*: exceptions of the block propagate unchanged, not in a group. Redirects with
    status 307 or 308 are followed within the origin, and for requests with a credential only to
    paths that it is for.

    Raises:
        ConnectFailed: the server could not be reached, its certificate isn't trusted, the proxy of
            the environment cannot be used, the server requires an access token (the cause is then
            `AuthRequired`, or `AuthorizationFailed` if none could be obtained), or the negotiation
            failed.
        RuntimeError: `async with` is used outside a run of trio.
        TypeError: an option is unknown.
        ValueError: an option is out of its range, the URL or the proxy is invalid, a header cannot
            be sent or is set by the protocol, or a credential would be sent unencrypted
            (`allow_cleartext`).

    Source: 2026-07-28, basic/transports/streamable-http; 2025-11-25 to 2024-11-05,
    basic/transports.
    """
    from mcp_core.http import HttpClient, HttpClientOptions, Url, check_cleartext
    from mcp_trio.http_client._connector import Connector
    from mcp_trio.http_client._transport import HttpTransport

    with_defaults: ClientOptions = {"initialize_timeout": NETWORK_INITIALIZE_TIMEOUT, **options}
    authorization: ClientAuthorization | None = None
    if auth is not False:
        from mcp_trio.auth._authorization import ClientAuthorization, login_config

        login = login_config(auth)
        with_defaults["extensions"] = {
            **login.profile.extensions,
            **(options.get("extensions") or {}),
        }
        authorization = ClientAuthorization(url, login, tls=tls, proxy=proxy)
    trace = options.get("trace")
    on_message = None if trace is None else TraceCallback(trace).report
    on_received = None if on_message is None else partial(on_message, "received")
    on_sent = None if on_message is None else partial(on_message, "sent")
    http_options = HttpClientOptions(
        headers=headers or {},
        entropy=secrets.token_bytes,
        on_message=on_received,
        authorizer=authorization,
        allow_cleartext=allow_cleartext,
    )
    parsed = Url.parse(url)
    check_cleartext(parsed, http_options.headers, allow=allow_cleartext)
    connector = Connector(*parsed.origin, tls=tls, proxy=proxy, prior_knowledge=prior_knowledge)
    config = client_config(with_defaults, ClientOptions)

    def make_transport(conn: Connection, on_event: Callable[[Event], None]) -> ClientTransport:
        http = HttpClient(conn, url, http_options)
        return HttpTransport(http, connector, on_event, on_sent, authorization, recorder)

    async with (
        _open_recorder(options, "http", [url], headers=headers) as recorder,
        open_quiet_nursery() as nursery,
    ):
        client = Client(config, with_defaults, make_transport)
        if authorization is not None:
            authorization.on_login = client.clear_cache
            authorization.on_browse = client.pause_timeouts
            if recorder is not None:
                authorization.on_fetch = recorder.note_fetch
        try:
            await client.open(nursery)
            yield client
        finally:
            await client.aclose()


@shows_keywords(ClientOptions)
@client_context(check_trio)
async def connect_websocket(
    url: str,
    *,
    headers: Mapping[str, str] | None = None,
    tls: ssl.SSLContext | None = None,
    proxy: str | None = "environment",
    allow_cleartext: bool = False,
    subprotocols: Iterable[str] = ("mcp",),
    **options: Unpack[ClientOptions],
) -> AsyncIterator[Client]:
    """Connect to a server over a WebSocket.

    Used as `async with connect_websocket("wss://example.com/mcp") as client: ...`.

    This is a custom transport: no revision of MCP defines it. Each message is one text message of
    the WebSocket.

    Args:
        url: `ws://...` or `wss://...`, without a user and password.
        headers: sent with the upgrade request, such as `{"authorization": "Bearer ..."}`.
        tls: as in `connect_http`.
        proxy: as in `connect_http`.
        allow_cleartext: as in `connect_http`, for `ws://...`.
        subprotocols: names of subprotocols to offer, the preferred one first. The server has to
            select one of them; with an empty list it has to select none.
        options: see `ClientOptions`. `initialize_timeout` is 30 seconds unless given.

    *Resource handling*: at the end of the block the WebSocket is closed; the server has a second to
    close it as well.
    *Error handling*: exceptions of the block propagate unchanged, not in a group. There is one
    connection: if it breaks, every pending call raises `ConnectionLost`.

    Raises:
        ConnectFailed: the server could not be reached, its certificate isn't trusted, the proxy of
            the environment cannot be used, the server has no WebSocket at this URL, it requires an
            access token (the cause is then `AuthRequired`), or the negotiation failed.
        RuntimeError: `async with` is used outside a run of trio.
        TypeError: an option is unknown.
        ValueError: an option is out of its range, the URL or the proxy is invalid, a header cannot
            be sent or is set by the protocol, a credential would be sent unencrypted
            (`allow_cleartext`), or `subprotocols` aren't names that can be offered.

    Source: RFC 6455; basic/transports, Custom Transports.
    """
    from mcp_core.http import WebSocket, WebSocketUpgrade
    from mcp_trio.http_client._connector import Connector

    from ._websocket import WebSocketTransport

    with_defaults: ClientOptions = {"initialize_timeout": NETWORK_INITIALIZE_TIMEOUT, **options}
    upgrade = WebSocketUpgrade(
        url,
        headers or {},
        secrets.token_bytes(16),
        allow_cleartext=allow_cleartext,
        subprotocols=subprotocols,
    )
    connector = Connector(*upgrade.url.origin, tls=tls, proxy=proxy, tunnel=True)
    config = client_config(with_defaults, ClientOptions)
    trace = options.get("trace")
    on_message = None if trace is None else TraceCallback(trace).report
    on_received = None if on_message is None else partial(on_message, "received")
    on_sent = None if on_message is None else partial(on_message, "sent")

    def make_transport(conn: Connection, on_event: Callable[[Event], None]) -> ClientTransport:
        socket = WebSocket(conn, trio.current_time(), on_message=on_received)
        if recorder is not None:
            socket.recorder = recorder.websocket()
        return WebSocketTransport(socket, stream, initial_data, on_event, on_sent)

    async with _open_recorder(options, "websocket", [url], headers=headers) as recorder:
        stream, initial_data = await connector.connect_websocket(upgrade)
        async with stream, open_quiet_nursery() as nursery:
            client = Client(config, with_defaults, make_transport)
            try:
                await client.open(nursery)
                yield client
            finally:
                await client.aclose()


@asynccontextmanager
async def _connect_memory(server: Server, options: ClientOptions) -> AsyncIterator[Client]:
    from ._server import serve_conversation
    from ._tasks import open_server

    client_end, server_end = memory_pair()
    # The lifespan is entered here, so that its exception reaches the caller. In the server task it
    # would only show as a lost connection.
    async with (
        client_end,
        server_end,
        open_server(server) as served,
        open_quiet_nursery() as nursery,
    ):
        nursery.start_soon(serve_conversation, served, server_end)
        async with _connect_stream(client_end, options, "memory") as client:
            yield client


@asynccontextmanager
async def _connect_replayed(
    replayed: ReplayedServer, options: ClientOptions
) -> AsyncIterator[Client]:
    from mcp_trio.streams._replayed import serve_on_stream

    client_end, server_end = memory_pair()
    with replayed.checked():
        async with client_end, server_end, open_quiet_nursery() as nursery:
            nursery.start_soon(serve_on_stream, replayed.replay, server_end)
            async with _connect_stream(client_end, options, "memory") as client:
                yield client


def _open_recorder(
    options: ClientOptions,
    transport: str,
    target: Sequence[str | os.PathLike[str]] = (),
    *,
    env: Mapping[str, str] | None = None,
    headers: Mapping[str, str] | None = None,
    inherit_env: bool = False,
) -> AbstractAsyncContextManager[Recorder | None]:
    """Open the recorder that `options` ask for. A client without one doesn't load its modules.

    What the server gets in `env`, `headers` and, if it inherits it, the environment of this process
    is hidden in the file.
    """
    record = options.get("record")
    if record is None:
        return nullcontext()
    from mcp_core.drivers import launch_secrets
    from mcp_trio.recording._open import open_recorder

    inherited = os.environ if inherit_env else None
    known = launch_secrets(env=env, headers=headers, inherited=inherited)
    return open_recorder(record, "client", transport, target, secrets=known)


def _stream_transport_factory(
    stream: trio.abc.Stream,
    options: ClientOptions,
    recorder: Recorder | None,
    describe_peer: Callable[[], str] | None = None,
    on_link: Callable[[Link], object] = lambda link: None,
) -> Callable[[Connection, Callable[[Event], None]], ClientTransport]:
    """Return the function with which a `Client` makes its transport on `stream`.

    `on_link` gets that transport too.
    """
    trace = options.get("trace")
    traced = stream if trace is None else TracedStream(stream, trace)
    if recorder is not None:
        from mcp_trio.recording._stream import RecordedStream

        traced = RecordedStream(traced, recorder.stream())

    def make_transport(conn: Connection, on_event: Callable[[Event], None]) -> ClientTransport:
        conn.describe_peer = describe_peer
        link = StreamTransport(conn, traced, on_event)
        on_link(link)
        return link

    return make_transport
