"""`mcp-trio run FILE[:NAME] --http [HOST:]PORT`: serve the server of a file over HTTP, and tell what is asked of it.

Rules of this file:

1. stderr is for people: where the server is, and a line for each exchange when it is over. A stream of events is one when it
   ends.
2. The log has no secrets: of a target only the path, and no headers.
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

from mcp_trio._http_server import serve_http
from mcp_trio._nursery import open_quiet_nursery
from mcp_trio._stdio import stop_on_signals

from ._problem import NO_CONVERSATION, Problem
from ._run import load
from ._screen import Screen

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterator

    from mcp_trio._http_connection import Exchanged

__all__ = ["logging_to", "run_http"]

_CURES: Final = {
    errno.EADDRINUSE: "choose another port, or 0 for one that is free",
    errno.EACCES: "ports below 1024 are for the administrator: choose a higher one",
    errno.EADDRNOTAVAIL: "that is no address of this machine",
}
_COLOURS: Final = (
    "bold red",
    "green",
    "green",
    "yellow",
    "red",
    "bold red",
)  # by the first digit of the status


def run_http(
    target: str, host: str, port: int, *, reply: Literal["auto", "json"] = "auto", sessions: bool = True
) -> int:
    """Serve until a signal arrives; returns 130 after Ctrl+C and 143 after SIGTERM.

    Raises:
        Problem: there is no such file or server, the file could not be imported, or the address cannot be listened on.
    """
    server = load(target)
    screen = Screen(sys.stderr)
    serve = partial(
        serve_http, server, host, port, reply=reply, sessions=sessions, on_exchange=logging_to(screen)
    )
    with _explained(host, port):
        return trio.run(_serve, server.info.name, serve, screen)


async def _serve(name: str, serve: Callable[..., Awaitable[None]], screen: Screen) -> int:
    stop = trio.Event()
    with stop_on_signals(stop.set) as caught:
        async with open_quiet_nursery(wait=True) as nursery:
            address = await nursery.start(partial(serve, stop=stop))
            screen.say("Serving ", (name, "bold"), " at ", (address.url, "bold cyan"), " (Ctrl+C ends it)")
    return caught.exit_code


@contextmanager
def _explained(host: str, port: int) -> Iterator[None]:
    """Say why an address cannot be listened on. What else is wrong, as in a lifespan, is shown as it is."""
    try:
        yield
    except socket.gaierror as exc:
        cure = "127.0.0.1 is this machine for itself, 0.0.0.0 this machine for all who can reach it"
        raise Problem(f"no machine is called {host}: {exc.strerror}; {cure}", NO_CONVERSATION) from exc
    except OSError as exc:
        number = exc.errno or 0
        if number not in _CURES or exc.filename is not None:
            raise
        what = f"cannot listen on {host}, port {port}: {os.strerror(number).lower()}"
        raise Problem(f"{what}; {_CURES[number]}", NO_CONVERSATION) from exc


def logging_to(screen: Screen) -> Callable[[Exchanged], None]:
    """Writes a line for each exchange on `screen`."""

    def write(done: Exchanged) -> None:
        path, _, _ = done.target.partition("?")
        status = str(done.status) if done.status else "gone"
        screen.say(
            (f"{datetime.now().astimezone():%H:%M:%S} ", "dim"),
            f"{done.method} {path} ",
            (f"{done.rpc_method} " if done.rpc_method else "", "bold"),
            (status, _COLOURS[done.status // 100]),
            (f" {_duration(done.seconds)}", "dim"),
        )

    return write


def _duration(seconds: float) -> str:
    if seconds < 0.001:
        return "<1 ms"
    if seconds < 0.9995:
        return f"{seconds * 1000:.3g} ms"
    return f"{seconds:.1f} s" if seconds < 60 else f"{seconds / 60:.0f} min"
