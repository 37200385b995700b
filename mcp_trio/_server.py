"""Running a server: one conversation over a stream, or over this process's own stdin and stdout.

What the server offers is declared on `mcp_core.registry.Server`, which knows no runtime; here it is only run.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import trio

from mcp_core import Connection, Role

from ._dispatch import Dispatch
from ._link import Link
from ._nursery import open_quiet_nursery
from ._stdio import standard_streams, stop_on_signals

if TYPE_CHECKING:
    from mcp_core.registry import Server

__all__ = ["run", "serve_stdio", "serve_stream"]

_GRACE: Final = 1.0  # less than the 2 s after which a client that ends us would send SIGTERM
_LAST_WRITE: Final = 5.0


async def serve_stream(server: Server, stream: trio.abc.Stream, *, grace: float = _GRACE) -> None:
    """Serve one conversation over a byte stream, one message a line, until the client ends it.

    After the end of the input, handlers that still run get `grace` seconds to answer to a client that still reads. Then the
    client gets five seconds to read what was answered.

    *Resource handling*: the stream is closed at the end.
    *Error handling*: nothing that a client sends or a handler raises ends this; a stream that breaks is the end of the
    conversation like any other.
    """
    async with stream, open_quiet_nursery() as nursery:
        dispatch = Dispatch(server, nursery)
        link = Link(Connection(Role.SERVER, server.config()), stream, dispatch.take)
        dispatch.serve(link)
        nursery.start_soon(link.write)
        nursery.start_soon(link.tick)
        await link.read()
        with trio.move_on_after(grace):
            await dispatch.idle()
        with trio.move_on_after(_LAST_WRITE):
            await link.flush()
        link.conn.close()
        link.pump()


async def serve_stdio(server: Server, *, grace: float = _GRACE) -> None:
    """Serve the client that started this process, over stdin and stdout, until it closes stdin.

    While it runs, stdout carries messages only: what handlers or their child processes print goes to stderr.

    *Resource handling*: stdin and stdout are given back as they were.
    *Error handling*: as `serve_stream`. A client that went away (EPIPE) is the end of the conversation.

    Raises:
        ConnectFailed: stdin or stdout is not open, or this is not a POSIX system.
    """
    with standard_streams() as stream:
        await serve_stream(server, stream, grace=grace)


def run(server: Server) -> None:
    """Serve over stdio until the client closes stdin, or SIGINT or SIGTERM arrives: the `main` of a server file.

    The first signal cancels what runs, so that `finally` blocks are executed; the second ends the process at once.

    Raises:
        SystemExit: with 130 or 143 after a signal.
        ConnectFailed: stdin or stdout is not open.
    """
    stop = trio.run(_main, server)
    if stop:
        raise SystemExit(stop)


async def _main(server: Server) -> int:
    with trio.CancelScope() as scope, stop_on_signals(scope) as stop:
        await serve_stdio(server)
    return stop.exit_code
