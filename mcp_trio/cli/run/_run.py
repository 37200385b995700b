"""`mcp-trio run FILE[:NAME]`: import a file and serve its server over stdio, or over HTTP.

1. With `--http [HOST:]PORT`, stderr shows the server's URL, and one line for each exchange when it
   ends. An event stream is one exchange.
2. These lines have no secrets: they show the path without its query, and no headers.
"""

from __future__ import annotations

import socket
from datetime import datetime
from functools import partial
from typing import TYPE_CHECKING, Final

import trio

from mcp_core.adapters import LastDeadline, ServedSourceError
from mcp_core.runtime import SHUTDOWN_GRACE
from mcp_trio._server import run as serve
from mcp_trio.cli._errors import NO_CONNECTION, CliError, source_error
from mcp_trio.cli._screen import Screen
from mcp_trio.cli._unblocked_stderr import unblocked_stderr
from mcp_trio.http_server._serve import (
    CannotListen,
    address_of,
    open_listeners,
    serve_http_listeners,
    warn_of_missing_hosts,
)
from mcp_trio.streams._stdio import stop_on_signals

if TYPE_CHECKING:
    from collections.abc import Callable

    from mcp_core.adapters import HttpRunOptions, Recording, ServedSource
    from mcp_core.registry import Server
    from mcp_trio.http_server._connection import AccessLogEntry
    from mcp_trio.http_server._serve import HttpAddress

__all__ = [
    "access_log_printer",
    "load",
    "run",
    "run_http",
]

# By the first digit of the status; 0 if the client disconnected before it.
_STATUS_STYLES: Final = ("bold red", "green", "green", "yellow", "red", "bold red")


def run(
    source: ServedSource, recording: Recording | None = None, keys_variable: str | None = None
) -> int:
    """Serve over stdio until the client closes stdin, and return the exit status.

    Args:
        source: the file or module.
        recording: the file in which the conversation is recorded.
        keys_variable: the environment variable that has the server's `state_keys`, if one has.

    Raises:
        CliError: there is no such server, the import fails, or the variable has no keys.
        SystemExit: a signal ended the server.
    """
    server = load(source, keys_variable)
    source.explain_wait(server.info.name)
    serve(server, record=recording)
    return 0


def load(source: ServedSource, keys_variable: str | None = None) -> Server:
    """Import a file or module, configure logging, and return the server that it declares.

    It gets the `state_keys` of the environment variable `keys_variable`, if there is one.

    Raises:
        CliError: there is no such server, the import fails, or the variable has no keys.
    """
    try:
        return source.load("mcp_trio", keys_variable)
    except ServedSourceError as exc:
        raise source_error(exc) from None


def run_http(
    source: ServedSource,
    http: HttpRunOptions,
    recording: Recording | None = None,
    keys_variable: str | None = None,
) -> int:
    """Serve until a signal arrives. Return 130 after Ctrl+C and 143 after SIGTERM.

    `recording` is the file in which all conversations are recorded, `keys_variable` the environment
    variable that has the server's `state_keys`.

    Raises:
        CliError: there is no such server, the import fails, the variable has no keys, or the
            command cannot listen on the address.
    """
    server = load(source, keys_variable)
    try:
        # A stopped terminal doesn't stop the server.
        with unblocked_stderr() as stderr, LastDeadline(server.info.name) as last_deadline:
            return trio.run(_serve, server, http, recording, Screen(stderr), last_deadline)
    except CannotListen as exc:
        raise CliError(exc.strerror, NO_CONNECTION) from exc


async def _serve(
    server: Server,
    http: HttpRunOptions,
    recording: Recording | None,
    screen: Screen,
    last_deadline: LastDeadline,
) -> int:
    stop = trio.Event()
    with stop_on_signals(stop.set, last_deadline=last_deadline, grace=SHUTDOWN_GRACE) as signal:
        if http.fds:
            listeners = [
                trio.SocketListener(trio.socket.from_stdlib_socket(socket.socket(fileno=fd)))
                for fd in http.fds
            ]
        else:
            listeners = await open_listeners(http.host, http.port)
        if not http.hosts:
            warn_of_missing_hosts(listeners, http.host)
        address = address_of(listeners[0], http.host, http.path, "http")
        await serve_http_listeners(
            listeners,
            {http.path: server},
            http.endpoint_options(),
            auth={http.path: http.auth()},
            routes={},
            record=recording,
            on_exchange=access_log_printer(screen),
            stop=stop,
            started=partial(_greet, screen, server.info.name, address, http),
        )
    last_deadline.lifespan_ended()
    return signal.exit_code


def _greet(screen: Screen, name: str, address: HttpAddress, http: HttpRunOptions) -> None:
    screen.write_line(
        "Serving ", (name, "bold"), " at ", (address.url, "bold cyan"), " (Ctrl+C ends it)"
    )
    if http.sse_path is not None:
        sse_url = address.url.removesuffix(http.path) + http.sse_path
        screen.write_line("Clients of HTTP+SSE connect to ", (sse_url, "bold cyan"))


def access_log_printer(screen: Screen) -> Callable[[AccessLogEntry], None]:
    """Return a callback that writes one line to `screen` for each exchange."""

    def write(entry: AccessLogEntry) -> None:
        path, _, _ = entry.target.partition("?")
        status = str(entry.status) if entry.status else "disconnected"
        screen.write_line(
            (f"{datetime.now().astimezone():%H:%M:%S} ", "dim"),
            f"{entry.method} {path} ",
            (f"{entry.rpc_method} " if entry.rpc_method else "", "bold"),
            (status, _STATUS_STYLES[entry.status // 100]),
            (f" {_format_duration(entry.seconds)}", "dim"),
        )

    return write


def _format_duration(seconds: float) -> str:
    if seconds < 0.001:
        return "<1 ms"
    if seconds < 0.9995:
        return f"{seconds * 1000:.3g} ms"
    return f"{seconds:.1f} s" if seconds < 60 else f"{seconds / 60:.0f} min"
