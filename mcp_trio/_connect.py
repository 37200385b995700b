"""The ways to a `Client`: a server in this process, in a child process, at a URL, or at the other end of a stream.

Rules of this file:

1. Each is a context manager, so that nothing it starts outlives it, and what its block raises comes out as it is.
2. What can be said about a conversation is said once, in the core's `CallerOptions`, whatever carries it; here is added what
   only one kind of carrier has.
3. What HTTP needs is imported when it is asked for: a client of a pipe does not pay for it.

How a revision is found is the core's; here only is decided to start a server once more that died of the question.
"""

from __future__ import annotations

import secrets
from contextlib import asynccontextmanager
from functools import partial
from typing import TYPE_CHECKING, Unpack

import trio

from mcp_core import ConnectFailed
from mcp_core.registry import Server
from mcp_core.runtime import NETWORK_INITIALIZE_TIMEOUT, CallerOptions, client_config

from ._child import Grace, spawn
from ._client import Client
from ._link import StreamCarrier
from ._memory import memory_pair
from ._nursery import open_quiet_nursery
from ._server import converse
from ._trace import TracedStream, Watcher

if TYPE_CHECKING:
    import os
    import ssl
    from collections.abc import AsyncIterator, Callable, Mapping, Sequence
    from contextlib import AbstractAsyncContextManager

    from mcp_core import Connection, Event
    from mcp_core.auth import ClientProfile

    from ._authorization import Authorization, Login
    from ._child import Child, Stderr
    from ._client import Carrier
    from ._trace import Trace

__all__ = ["ClientOptions", "connect", "connect_http", "connect_stdio", "connect_stream", "connect_websocket"]


class ClientOptions(CallerOptions, total=False):
    """What a client can be told about its conversation: the keys of `mcp_core.CallerOptions`, and one more.

    Keys:
        trace: called for each message as it crosses, with `"sent"` or `"received"` and its bytes. One that raises is logged
            and called no more.
    """

    trace: Trace | None


def connect(
    target: str | Server | Sequence[str | os.PathLike[str]],
    *,
    auth: Login | ClientProfile | bool = False,
    prior_knowledge: bool = False,
    **options: Unpack[ClientOptions],
) -> AbstractAsyncContextManager[Client]:
    """Connect to a server and, at the end of the block, close it: `async with connect(target) as client: ...`.

    Args:
        target: a URL, `http://...` or `https://...` (`connect_http` has more to say about it), or `ws://...` or `wss://...` (so has
            `connect_websocket`); words of a command, which is
            started as a child process (so has `connect_stdio`); or a `Server`, which is run in this process.
        auth: of a URL, whether to get an access token if the server wants one (see `connect_http`).
        prior_knowledge: of a URL without TLS, whether the server is known to speak HTTP/2 (see `connect_http`).
        options: see `ClientOptions`.

    *Resource handling* and *Error handling*: as `connect_http` and `connect_stdio`.

    Raises:
        ConnectFailed: the server could not be started or reached, or no conversation came about.
        TypeError: the target is none of these.
        ValueError: an option is out of its range, or the URL cannot be read.
    """
    if auth is not False and not isinstance(target, str):
        raise ValueError("auth is for a server at a URL: others are as trusted as this process")
    if prior_knowledge and not (isinstance(target, str) and target.lower().startswith("http://")):
        raise ValueError("prior_knowledge is for a server at http://: others say themselves what they speak")
    if isinstance(target, Server):
        return _connect_memory(target, options)
    if isinstance(target, str) and target.lower().startswith(("http://", "https://")):
        return connect_http(target, auth=auth, prior_knowledge=prior_knowledge, **options)
    if isinstance(target, str) and target.lower().startswith(("ws://", "wss://")):
        if auth is not False:
            raise ValueError("auth is for http:// and https://: give a WebSocket its token in headers")
        return connect_websocket(target, **options)
    if isinstance(target, str) or not hasattr(target, "__iter__"):
        raise TypeError(
            f"connect to a URL, to a Server or to a command as a list of words, not to {target!r}"
        )
    return connect_stdio(target, **options)


@asynccontextmanager
async def connect_stream(stream: trio.abc.Stream, **options: Unpack[ClientOptions]) -> AsyncIterator[Client]:
    """Connect to a server at the other end of a byte stream that carries one message a line.

    *Resource handling*: the stream is closed at the end of the block, or when no conversation comes about.
    *Error handling*: what the block raises passes through as it is, in no group.

    Raises:
        ConnectFailed: no conversation came about.
        ValueError: an option is out of its range.
    """
    config = client_config(options)
    async with open_quiet_nursery() as nursery:
        client = Client(config, options, _on(stream, options))
        try:
            await client.open(nursery)
            yield client
        finally:
            await client.aclose()


@asynccontextmanager
async def connect_stdio(
    argv: Sequence[str | os.PathLike[str]],
    *,
    env: Mapping[str, str] | None = None,
    cwd: str | os.PathLike[str] | None = None,
    stderr: Stderr = "forward",
    grace: Grace | None = None,
    **options: Unpack[ClientOptions],
) -> AsyncIterator[Client]:
    """Start a server as a child process and connect to it over its stdin and stdout.

    A server that dies of the question which revisions it knows, as some old ones do, is started once more without it.

    Args:
        argv: program and arguments; no shell is involved.
        env: variables added to the inherited environment.
        cwd: its working directory.
        stderr: `"forward"` to ours, `"discard"`, or a callable that gets each line.
        grace: seconds that the child gets to end.
        options: see `ClientOptions`.

    *Resource handling*: at the end of the block the child's stdin is closed; if it does not exit, its process group gets
    SIGTERM and then SIGKILL.
    *Error handling*: what the block raises passes through as it is, in no group. A child that dies ends every pending call
    with `ConnectionLost`.

    Raises:
        ConnectFailed: the program could not be started, or no conversation came about; with its last words on stderr.
        ValueError: an option is out of its range.
    """
    while True:
        config = client_config(options)
        async with (
            spawn(argv, env=env, cwd=cwd, stderr=stderr, grace=grace) as child,
            open_quiet_nursery() as nursery,
        ):
            client = Client(config, options, _on(child.stream, options))
            try:
                try:
                    await client.open(nursery)
                except ConnectFailed as exc:
                    versions = client.versions_without_probe
                    if not versions:
                        await client.aclose()
                        await child.aclose()
                        raise ConnectFailed(f"{exc}{_last_words(child)}") from exc
                    options["versions"] = versions
                    continue
                yield client
                return
            finally:
                await client.aclose()


@asynccontextmanager
async def connect_http(
    url: str,
    *,
    headers: Mapping[str, str] | None = None,
    tls: ssl.SSLContext | None = None,
    proxy: str | None = "environment",
    auth: Login | ClientProfile | bool = False,
    prior_knowledge: bool = False,
    **options: Unpack[ClientOptions],
) -> AsyncIterator[Client]:
    """Connect to a server at a URL (2026-07-28, basic/transports/streamable-http, and what came before it).

    Each message is a request of HTTP/2, of which one connection carries many, if the server offers that by TLS; else of HTTP/1.1, and
    connections are used again. One that breaks ends the calls that used it, and not the conversation. A server's stream of events that breaks is taken up again where the revision has that.

    Args:
        url: `http://...` or `https://...`, without a user and password.
        headers: sent with each request, as `{"authorization": "Bearer ..."}`. Calls have an option `headers` of their own.
        tls: whom to trust and what to show; by default what the system trusts. A context of your own leads to HTTP/2 if it says so:
            `context.set_alpn_protocols(["h2", "http/1.1"])`.
        proxy: the URL of an HTTP proxy; `None` for none; by default the one that the environment has for this server (`HTTP_PROXY`,
            `HTTPS_PROXY`, `ALL_PROXY`, `NO_PROXY`), and none for a server on this machine.
        auth: whether, and how, to get an access token from the authorization server that an MCP server names when it wants one
            (2026-07-28, basic/authorization). `True` opens the user's browser and keeps the tokens in files of his; a
            `ClientProfile` says who we are; a `Login` has more to say. While a user logs in, the time of calls stands still.
            Authorization servers are reached by the same `tls` and `proxy`. What servers name may be in a private network only if the
            MCP server is in one, or if it is where the profile says that its `issuer` is.
        prior_knowledge: whether a server at `http://...` is known to speak HTTP/2, which it cannot say itself (RFC 9113 3.3).
        options: see `ClientOptions`. `initialize_timeout` is 30 unless given.

    *Resource handling*: at the end of the block a session is ended by telling the server, which has a second for it, and all
    connections are closed.
    *Error handling*: what the block raises passes through as it is, in no group. Redirects are not followed.

    Raises:
        ConnectFailed: the server could not be reached or is not trusted, it wants an access token (then its cause is `AuthRequired`, or
            `AuthorizationFailed` if we could not get one), or no conversation came about.
        ValueError: an option is out of its range, or the URL, the proxy or a header cannot be sent.
    """
    from mcp_core.http import HttpClient, HttpClientOptions, Url

    from ._dial import Way
    from ._http_client import HttpCarrier

    told: ClientOptions = {"initialize_timeout": NETWORK_INITIALIZE_TIMEOUT, **options}
    authorization: Authorization | None = None
    if auth is not False:
        from ._authorization import Authorization, login_of

        login = login_of(auth)
        told["extensions"] = {**login.profile.extensions, **(options.get("extensions") or {})}
        authorization = Authorization(url, login, tls=tls, proxy=proxy)
    trace = options.get("trace")
    tell = None if trace is None else Watcher(trace).tell
    heard = None if tell is None else partial(tell, "received")
    http_options = HttpClientOptions(
        headers=headers or {}, entropy=secrets.token_bytes, heard=heard, access=authorization
    )
    way = Way(*Url.parse(url).origin, tls=tls, proxy=proxy, prior_knowledge=prior_knowledge)
    config = client_config(told)

    def carry(conn: Connection, take: Callable[[Event], None]) -> Carrier:
        sent = None if tell is None else partial(tell, "sent")
        return HttpCarrier(HttpClient(conn, url, http_options), way, take, sent, authorization)

    async with open_quiet_nursery() as nursery:
        client = Client(config, told, carry)
        if authorization is not None:
            authorization.on_login, authorization.on_browse = client.forget, client.hold
        try:
            await client.open(nursery)
            yield client
        finally:
            await client.aclose()


@asynccontextmanager
async def connect_websocket(
    url: str,
    *,
    headers: Mapping[str, str] | None = None,
    tls: ssl.SSLContext | None = None,
    proxy: str | None = "environment",
    **options: Unpack[ClientOptions],
) -> AsyncIterator[Client]:
    """Connect to a server over a WebSocket: a custom transport, which no revision of MCP has, with the subprotocol `mcp`.

    Args:
        url: `ws://...` or `wss://...`, without a user and password.
        headers: sent with the request for the WebSocket, as `{"authorization": "Bearer ..."}`.
        tls: as in `connect_http`.
        proxy: as in `connect_http`.
        options: see `ClientOptions`. `initialize_timeout` is 30 unless given.

    *Resource handling*: at the end of the block the WebSocket is closed; the server has a second to close it as well.
    *Error handling*: what the block raises passes through as it is, in no group. There is one connection: if it breaks, every pending
    call ends with `ConnectionLost`.

    Raises:
        ConnectFailed: the server could not be reached or is not trusted, it has no WebSocket there, it wants an access token (then its
            cause is `AuthRequired`), or no conversation came about.
        ValueError: an option is out of its range, or the URL, the proxy or a header cannot be sent.
    """
    from mcp_core.http import Upgrade, WebSocket

    from ._dial import Way
    from ._websocket import SocketCarrier

    told: ClientOptions = {"initialize_timeout": NETWORK_INITIALIZE_TIMEOUT, **options}
    upgrade = Upgrade(url, headers or {}, secrets.token_bytes(16))
    way = Way(*upgrade.url.origin, tls=tls, proxy=proxy, tunnel=True)
    config = client_config(told)
    trace = options.get("trace")
    tell = None if trace is None else Watcher(trace).tell
    stream, early = await way.switch(upgrade)

    def carry(conn: Connection, take: Callable[[Event], None]) -> Carrier:
        heard, sent = (None, None) if tell is None else (partial(tell, "received"), partial(tell, "sent"))
        return SocketCarrier(WebSocket(conn, trio.current_time(), heard=heard), stream, early, take, sent)

    async with stream, open_quiet_nursery() as nursery:
        client = Client(config, told, carry)
        try:
            await client.open(nursery)
            yield client
        finally:
            await client.aclose()


@asynccontextmanager
async def _connect_memory(server: Server, options: ClientOptions) -> AsyncIterator[Client]:
    ours, theirs = memory_pair()
    # The lifespan is entered here: what it raises is the caller's to hear, not a client's that finds the server gone.
    async with ours, theirs, server.lifespan() as value, open_quiet_nursery() as nursery:
        nursery.start_soon(converse, server, theirs, value)
        async with connect_stream(ours, **options) as client:
            yield client


def _on(
    stream: trio.abc.Stream, options: ClientOptions
) -> Callable[[Connection, Callable[[Event], None]], Carrier]:
    """How a conversation is carried on `stream`."""
    trace = options.get("trace")
    carried = stream if trace is None else TracedStream(stream, trace)
    return lambda conn, take: StreamCarrier(conn, carried, take)


def _last_words(child: Child) -> str:
    words = child.stderr_tail.decode(errors="replace").strip().splitlines()[-5:]
    ended = f" (exit status {child.returncode})" if child.returncode is not None else ""
    return ended + "".join(f"\n  its stderr: {line}" for line in words)
