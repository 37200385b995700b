"""Connect to a server: in this process, in a child process, or at a URL.

What `connect` starts doesn't outlive its block. No proxy is used.
"""

from __future__ import annotations

import asyncio
import os
import secrets
import socket
import ssl
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from contextlib import (
    AbstractAsyncContextManager,
    AbstractContextManager,
    AsyncExitStack,
    ExitStack,
    aclosing,
    asynccontextmanager,
    nullcontext,
    suppress,
)
from functools import partial
from typing import TYPE_CHECKING, Final, TypeAlias, Unpack

from mcp_core import ConnectFailed, ConnectionLost
from mcp_core.drivers import (
    NETWORK_INITIALIZE_TIMEOUT,
    ClientConfigOptions,
    client_config,
    shows_keywords,
    type_on_first_use,
)
from mcp_core.registry import Server
from mcp_core.runtime import READ_SIZE, client_context

from ._client import Client
from ._driver import move_on_after
from ._link import Link
from ._runtime import Record, check_asyncio, open_recorder
from ._server import serve_connection
from ._stdio import open_child, withheld_variables
from ._tasks import open_server
from ._tcp import CONNECT_TIMEOUT, cannot_connect, open_streams

if TYPE_CHECKING:
    import h11

    from mcp_core.adapters import Recorder
    from mcp_core.http import Head, WebSocketUpgrade
    from mcp_core.trace import ReplayedServer, ReplayServer

    from ._client import TransportFactory
    from ._link import Streams
    from ._stdio import StartedProcess
else:
    ReplayedServer = type_on_first_use("mcp_core.trace", "ReplayedServer")

__all__ = ["connect"]

_START_SIZE: Final = len(b"HTTP/")
_SWITCHING_PROTOCOLS: Final = 101
_FIRST_ERROR_STATUS: Final = 400

Target: TypeAlias = str | Server | ReplayedServer | Sequence[str | os.PathLike[str]]


@shows_keywords(ClientConfigOptions)
@client_context(check_asyncio)
async def connect(
    target: Target,
    *,
    headers: Mapping[str, str] = {},
    tls: ssl.SSLContext | None = None,
    allow_cleartext: bool = False,
    subprotocols: Iterable[str] = ("mcp",),
    env: Mapping[str, str] | None = None,
    inherit_env: bool = False,
    cwd: str | os.PathLike[str] | None = None,
    record: Record = None,
    **options: Unpack[ClientConfigOptions],
) -> AsyncIterator[Client]:
    """Connect to a server: `async with connect(target) as client: ...`.

    No proxy is used, HTTP is HTTP/1.1, and there is no login: pass a token in `headers`. Redirects
    with status 307 or 308 are followed within the origin, and for requests with a credential only
    to paths below the URL's. A command writes its stderr to ours; on a terminal, control
    characters in it are escaped.

    Args:
        target: a URL, which is `http://...` or `https://...`, or for a WebSocket `ws://...` or
            `wss://...`; a `Server`, which runs in this process; a command as a list of words,
            which is started; or a recorded conversation, `mcp_trio.testing.replayed`.
        headers: for a URL: sent with each request, as `{"authorization": "Bearer ..."}`.
        tls: for a URL: certificates to trust and to present; by default those that the system
            trusts.
        allow_cleartext: for a URL: whether headers that have a credential by their name, such as
            `authorization`, `cookie`, `x-api-key` and `x-functions-key`, may be sent to another
            machine unencrypted. Everyone on the way can use them, so this is for trusted networks
            only.
        subprotocols: for a WebSocket: names of subprotocols to offer, the preferred one first. The
            server has to select one of them; with an empty list it has to select none.
        env: for a command: variables that it gets beside the few that are inherited, which are
            `HOME`, `LOGNAME`, `PATH`, `SHELL`, `TERM`, `USER`, `LANG`, `LC_ALL`, `LC_CTYPE`,
            `TMPDIR` and `TZ`; on Windows also those that name the directories of the system and the
            user.
        inherit_env: for a command: whether it inherits the whole environment instead, with any
            secrets in it.
        cwd: for a command: its working directory; by default this process's.
        record: the file to which the conversation is recorded, or a `Recording` with options.
            Credentials and other secrets are hidden. A file that exists is replaced. Default None.
            A command's stderr is recorded if ours is a terminal.
        options: see `ClientConfigOptions`. For a URL `initialize_timeout` is 30 seconds unless
            given.

    *Resource handling*: at the end of the block a session is ended, and all connections are closed.
    A process gets the end of its stdin, after 2 s SIGTERM to its group, after 2 s more SIGKILL; on
    Linux, so do all processes that it has started. On Windows it alone is ended, after 2 s. The
    lifespan of a `Server` is entered and left with the block.
    *Error handling*: an exception of the block passes through unchanged, in no group. If the
    process or the connection of a WebSocket ends, pending calls raise `ConnectionLost`. For a
    command its text has the exit status, and if our stderr is a terminal, five lines of the
    command's: the last lines, or the last four after the one that names an error.

    Raises:
        ConnectFailed: the server could not be started or reached, or did not open a connection. For
            a command the message has the exit status, and names usual variables, such as
            `HTTPS_PROXY`, that are set here and that it didn't get.
        RuntimeError: `async with` is used outside an event loop of asyncio.
        TypeError: the target has another type, such as a command in one string, or is an empty
            command; or an option is unknown.
        ValueError: an option is out of its range, the URL is invalid, a header cannot be sent or is
            set by the protocol, a credential would be sent unencrypted (`allow_cleartext`), or
            `subprotocols` aren't names that can be offered.
        OSError: the file of `record` cannot be opened.
        NotRecorded: the target is a recorded conversation, and the client sent a request that it
            doesn't have. An exception of the block is then its cause.

    Source: 2026-07-28, basic/transports/streamable-http and basic/transports/stdio; 2025-11-25 to
    2024-11-05, basic/transports; RFC 6455.
    """
    is_url = isinstance(target, str) and "://" in target
    is_command = isinstance(target, Sequence) and not isinstance(target, (str, bytes)) and target
    checked: AbstractContextManager[None] = nullcontext()
    if not (is_url or is_command or isinstance(target, Server)):
        from mcp_core.trace import ReplayedServer

        if not isinstance(target, ReplayedServer):
            from mcp_core.processes import wrong_target

            raise wrong_target(target)
        checked = target.checked()
    if isinstance(target, str):
        options.setdefault("initialize_timeout", NETWORK_INITIALIZE_TIMEOUT)
    client_config(options)  # an invalid option must not replace a trace
    known: frozenset[str] = frozenset()
    if record is not None:
        from mcp_core.drivers import launch_secrets

        inherited = os.environ if inherit_env else None
        known = launch_secrets(env=env, headers=headers, inherited=inherited)
    async with _recorded(record, target, known) as recorder:
        connecting = _connect(
            target,
            headers,
            tls,
            recorder,
            options,
            allow_cleartext=allow_cleartext,
            subprotocols=subprotocols,
            env=env,
            inherit_env=inherit_env,
            cwd=cwd,
        )
        with checked:
            async with connecting as client:
                yield client


def _recorded(
    record: Record, target: Target, known: frozenset[str]
) -> AbstractAsyncContextManager[Recorder | None]:
    """Return the context of the recorder of a conversation with `target`, which hides `known`."""
    if not isinstance(target, str):
        if isinstance(target, Sequence):
            return open_recorder(record, "client", "stdio", target, known)
        return open_recorder(record, "client", "memory")
    from mcp_core.urls import url_transport

    row = url_transport(target)
    transport = "http" if row is None else row.name
    return open_recorder(record, "client", transport, [target], known)


@asynccontextmanager
async def _connect(
    target: Target,
    headers: Mapping[str, str],
    tls: ssl.SSLContext | None,
    recorder: Recorder | None,
    options: ClientConfigOptions,
    *,
    allow_cleartext: bool,
    subprotocols: Iterable[str],
    env: Mapping[str, str] | None,
    inherit_env: bool,
    cwd: str | os.PathLike[str] | None,
) -> AsyncIterator[Client]:
    """Connect, once or twice. The arguments are `connect`'s."""
    ended_by_probe = False
    while True:
        config = client_config(options)
        child: StartedProcess | None = None
        async with AsyncExitStack() as opened:
            make_transport: TransportFactory
            if isinstance(target, str):
                make_transport = await _transport_factory(
                    target,
                    headers,
                    tls,
                    recorder,
                    allow_cleartext=allow_cleartext,
                    subprotocols=subprotocols,
                )
            else:
                if isinstance(target, Server):
                    streams = await opened.enter_async_context(_memory_streams(target))
                elif isinstance(target, Sequence):
                    record = None if recorder is None else recorder.child(target)
                    starting = open_child(target, env, cwd, inherit_env=inherit_env, record=record)
                    child = await opened.enter_async_context(starting)
                    streams = child.streams
                else:
                    streams = await opened.enter_async_context(_replayed_streams(target.replay))
                recorded = None if recorder is None else recorder.stream()
                make_transport = partial(Link, streams, record=recorded, peer=child)
            client = await opened.enter_async_context(
                aclosing(Client(config, options, make_transport))
            )
            client.needs_handshake = ended_by_probe
            try:
                await client.open()
            except ConnectFailed as exc:
                probe_unread = child is not None and child.unread > 0
                versions = client.versions_without_probe(probe_unread=probe_unread)
                if child is not None and not versions:
                    await opened.aclose()
                    # Only now are the exit status and all of stderr known.
                    from mcp_core.processes import with_exit_text

                    withheld = withheld_variables(env, inherit_env=inherit_env)
                    text = with_exit_text(str(exc), f"{child.describe()}{withheld}")
                    raise type(exc)(text) from exc
                if not versions or isinstance(target, str):
                    raise
                # Some old servers exit at the probe: start this one again, without a probe.
                options["versions"] = versions
                ended_by_probe = True
                continue
            yield client
            return


@asynccontextmanager
async def _connected_streams() -> AsyncIterator[tuple[Streams, Streams]]:
    """Yield the streams of both ends of a socket pair. Abort them at the end."""
    with ExitStack() as opened:
        ends = [opened.enter_context(end) for end in socket.socketpair()]
        pair: list[Streams] = []
        for end in ends:
            streams = await asyncio.open_connection(sock=end)
            # Before its socket is closed: the loop would go on to watch the descriptor.
            opened.callback(streams[1].transport.abort)
            pair.append(streams)
        yield pair[0], pair[1]


@asynccontextmanager
async def _memory_streams(server: Server) -> AsyncIterator[Streams]:
    """Run `server` in this process, and yield the client's end of a socket pair to it."""
    async with (
        _connected_streams() as (client_streams, server_streams),
        open_server(server) as served,  # here, so that the caller gets what it raises
    ):
        serving = asyncio.create_task(serve_connection(served, server_streams))
        try:
            yield client_streams
        finally:
            serving.cancel()
            await asyncio.wait({serving})


@asynccontextmanager
async def _replayed_streams(server: ReplayServer) -> AsyncIterator[Streams]:
    """Serve a recorded conversation, and yield the client's end of a socket pair to it."""
    async with _connected_streams() as (client_streams, server_streams):
        serving = asyncio.create_task(_serve_replayed(server, server_streams))
        try:
            yield client_streams
        finally:
            client_streams[1].close()
            await serving  # the client's last messages count, too


async def _serve_replayed(server: ReplayServer, streams: Streams) -> None:
    """Serve one live client on `streams`, until it disconnects. Close them."""
    from mcp_core.trace import ReplayStream

    reader, writer = streams
    clock = asyncio.get_running_loop().time
    session = ReplayStream(server, clock())
    try:
        with suppress(OSError):  # the client has disconnected
            while True:
                writer.write(session.data_to_send())
                data = await reader.read(READ_SIZE)
                if not data:
                    return
                session.receive_data(data, clock())
    finally:
        writer.close()


async def _transport_factory(
    url: str,
    headers: Mapping[str, str],
    tls: ssl.SSLContext | None,
    recorder: Recorder | None,
    *,
    allow_cleartext: bool,
    subprotocols: Iterable[str],
) -> TransportFactory:
    """Return what makes a client's transport. A WebSocket is opened here."""
    from mcp_core import http  # on first use: a client on a pipe starts sooner without it
    from mcp_core.urls import url_transport

    row = url_transport(url)
    # An unknown scheme gets the error of the transport whose scheme it resembles.
    if url.lower().startswith("ws") if row is None else row.is_websocket:
        from ._websocket import _WebSocketTransport

        upgrade = http.WebSocketUpgrade(
            url,
            headers,
            secrets.token_bytes(16),
            allow_cleartext=allow_cleartext,
            subprotocols=subprotocols,
        )
        streams = await _open_websocket(upgrade, tls)
        record = None if recorder is None else recorder.websocket()
        return partial(_WebSocketTransport, streams, record)

    from ._http_transport import _HttpTransport

    options = http.HttpClientOptions(
        headers=headers, entropy=secrets.token_bytes, allow_cleartext=allow_cleartext
    )
    parsed = http.Url.parse(url)
    http.check_cleartext(parsed, headers, allow=allow_cleartext)
    return partial(_HttpTransport, parsed, tls, options, recorder)


async def _open_websocket(upgrade: WebSocketUpgrade, tls: ssl.SSLContext | None) -> Streams:
    """Open a WebSocket: a TCP connection, and the upgrade on it.

    Raises:
        ConnectFailed: the server cannot be reached within 10 s, or refuses the upgrade.
    """
    try:
        with move_on_after(CONNECT_TIMEOUT):
            while True:
                streams = await open_streams(upgrade.url, tls)
                redirected = await _upgrade(upgrade, *streams)
                if redirected is None:
                    return streams
                streams[1].transport.abort()
                upgrade = redirected
    except ConnectionLost as exc:
        raise ConnectFailed(str(exc)) from None
    except OSError as exc:
        raise cannot_connect(upgrade.url, exc) from exc
    where = upgrade.url.authority.decode()
    raise ConnectFailed(f"{where} did not give us a WebSocket within {CONNECT_TIMEOUT:g} s")


async def _upgrade(
    upgrade: WebSocketUpgrade, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
) -> WebSocketUpgrade | None:
    """Send the opening handshake, and check the response. Abort the connection on any failure.

    Return the upgrade to go on with after a redirect.
    """
    import h11

    from mcp_core.adapters import H11ResponseReader

    head = upgrade.head
    wire = H11ResponseReader()
    request = h11.Request(method=head.method, target=head.target, headers=head.headers)
    try:
        for event in (request, h11.EndOfMessage()):
            writer.write(wire.send(event) or b"")
        received, body = await _read_response(wire, reader)
        redirected = upgrade.follow(received, secrets.token_bytes(16))
        error = None if redirected else upgrade.find_error(received, body)
        if error is not None:
            raise ConnectFailed(str(error)) from error
    except BaseException:
        writer.transport.abort()
        raise
    return redirected


async def _read_response(wire: h11.Connection, reader: asyncio.StreamReader) -> tuple[Head, bytes]:
    """Return the head of an upgrade's response, and the body of one that reports an error.

    The bytes that follow status 101 stay in `reader`.

    Raises:
        ConnectionLost: there was no valid response.
    """
    import h11

    from mcp_core.http import MAX_ERROR_BODY, Head, require_http, response_error

    data = b""
    try:
        # A server of another protocol may send a few bytes and wait for us.
        data = await reader.readexactly(_START_SIZE)
        require_http(data, "wss")
        while True:
            wire.receive_data(data + await reader.readuntil(b"\r\n\r\n"))
            event = wire.next_event()
            assert isinstance(event, h11.InformationalResponse | h11.Response)
            if isinstance(event, h11.Response) or event.status_code == _SWITCHING_PROTOCOLS:
                break
            data = b""  # of the response that follows, for example, 100 Continue
    except asyncio.IncompleteReadError as exc:
        data += exc.partial
        if data:
            require_http(data, "wss")
        raise response_error(exc, received=bool(data), ended=True) from None
    except asyncio.LimitOverrunError:
        raise ConnectionLost("the head of the server's answer is too long") from None
    except h11.RemoteProtocolError as exc:
        raise response_error(exc, received=True, ended=False) from None
    except OSError as exc:
        raise response_error(exc, received=bool(data), ended=True) from exc
    head = Head(event.status_code, list(event.headers))
    body = b""
    if head.status < _FIRST_ERROR_STATUS:
        return head, body  # the body isn't an error message, and it may never end
    with suppress(OSError, h11.RemoteProtocolError):
        while len(body) < MAX_ERROR_BODY:
            part = wire.next_event()
            if part is h11.NEED_DATA:
                wire.receive_data(await reader.read(READ_SIZE))
            elif isinstance(part, h11.Data):
                body += part.data
            else:
                break
    return head, body
