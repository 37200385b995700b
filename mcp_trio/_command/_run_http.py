"""`mcp-trio run FILE[:NAME] --http [HOST:]PORT`: serve a file over HTTP and log each exchange.

1. stderr has the URL of the server, and one line for each exchange when it ends. An event stream
   is one exchange.
2. The log has no secrets: of a request target only the path, and no headers.
"""

from __future__ import annotations

import errno
import os
import socket
import sys
from contextlib import contextmanager
from datetime import datetime
from functools import partial
from typing import TYPE_CHECKING, Final, Literal

import trio

from mcp_trio._nursery import open_quiet_nursery
from mcp_trio.http_server._serve import serve_http
from mcp_trio.streams._stdio import stop_on_signals

from ._problem import NO_CONVERSATION, CliError
from ._run import load
from ._screen import Screen

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterator

    from mcp_trio.http_server._connection import AccessLogEntry

__all__ = ["logging_to", "run_http"]

_CURES: Final = {
    errno.EADDRINUSE: "choose another port, or 0 for any free port",
    errno.EACCES: "ports below 1024 need administrator rights: choose a higher one",
    errno.EADDRNOTAVAIL: "this machine has no such address",
}
# By the first digit of the status; 0 if the client disconnected before it.
_STATUS_STYLES: Final = ("bold red", "green", "green", "yellow", "red", "bold red")


def run_http(
    target: str,
    host: str,
    port: int,
    *,
    reply: Literal["auto", "json"] = "auto",
    sessions: bool = True,
) -> int:
    """Serve until a signal arrives. Return 130 after Ctrl+C and 143 after SIGTERM.

    Raises:
        CliError: there is no such file or server, the file cannot be imported, or the command
            cannot listen on the address.
    """
    server = load(target)
    screen = Screen(sys.stderr)
    serve = partial(
        serve_http,
        server,
        host,
        port,
        reply=reply,
        sessions=sessions,
        on_exchange=logging_to(screen),
    )
    with _explain_errors(host, port):
        return trio.run(_serve, server.info.name, serve, screen)


async def _serve(name: str, serve: Callable[..., Awaitable[None]], screen: Screen) -> int:
    stop = trio.Event()
    with stop_on_signals(stop.set) as signal:
        async with open_quiet_nursery(wait=True) as nursery:
            address = await nursery.start(partial(serve, stop=stop))
            screen.say(
                "Serving ", (name, "bold"), " at ", (address.url, "bold cyan"), " (Ctrl+C ends it)"
            )
    return signal.exit_code


@contextmanager
def _explain_errors(host: str, port: int) -> Iterator[None]:
    """Turn an error of listening into a CliError. Other errors, such as a lifespan's, pass."""
    try:
        yield
    except socket.gaierror as exc:
        cure = "use 127.0.0.1 for clients on this machine, 0.0.0.0 for clients anywhere"
        raise CliError(
            f"no host is called {host}: {exc.strerror}; {cure}", NO_CONVERSATION
        ) from exc
    except OSError as exc:
        number = exc.errno or 0
        if number not in _CURES or exc.filename is not None:
            raise
        cause = f"cannot listen on {host}, port {port}: {os.strerror(number).lower()}"
        raise CliError(f"{cause}; {_CURES[number]}", NO_CONVERSATION) from exc


def logging_to(screen: Screen) -> Callable[[AccessLogEntry], None]:
    """Return a callback that writes one line to `screen` for each exchange."""

    def write(entry: AccessLogEntry) -> None:
        path, _, _ = entry.target.partition("?")
        status = str(entry.status) if entry.status else "disconnected"
        screen.say(
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
