"""Running a server: one conversation over a stream or over this process's own stdin and stdout, or many over listeners.

Rules of this file:

1. Who asks a server to stop gets an orderly end: no more requests are taken, those that run get `grace` seconds, then they are
   cancelled and answered, and what is queued is written. Who cancels gets a quick one.
2. Whatever a peer or a handler does, no step takes for ever.

What the server offers is declared on `mcp_core.registry.Server`, which knows no runtime; here it is only run.
"""

from __future__ import annotations

from contextlib import AsyncExitStack
from functools import partial
from typing import TYPE_CHECKING, Any, Final, TypeVar

import trio

from mcp_core import Connection, Role

from ._dispatch import Dispatch
from ._link import Link
from ._nursery import open_quiet_nursery
from ._stdio import standard_streams, stop_on_signals

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mcp_core.registry import Server

__all__ = ["run", "serve_listeners", "serve_stdio", "serve_stream"]

_GRACE: Final = 5.0
# After the end of stdin. Less than the 2 s after which a client that ends us would send SIGTERM.
_GRACE_AFTER_STDIN: Final = 1.0
_LAST_WRITE: Final = 5.0
_LAST_WRITE_OF_ALL: Final = 1.0

L = TypeVar("L", bound=trio.abc.Stream)


async def serve_stream(
    server: Server, stream: trio.abc.Stream, *, stop: trio.Event | None = None, grace: float = _GRACE
) -> None:
    """Serve one conversation over a byte stream, one message a line, until the client ends it or `stop` is set.

    After the one or the other, handlers that run get `grace` seconds to answer; then they are cancelled, and their requests
    answered with an error. Meanwhile, after `stop`, what else is asked is refused as busy, and pings are answered. Then the
    client gets five seconds to read the answers, after `stop` one.

    *Resource handling*: the stream is closed at the end. The server's lifespan is entered and left.
    *Error handling*: nothing that a client sends or a handler raises ends this; a stream that breaks is the end of the
    conversation like any other. What the lifespan raises comes out as it is.
    """
    async with stream, server.lifespan() as value:
        await converse(server, stream, value, stop, grace, grace)


async def serve_stdio(server: Server, *, stop: trio.Event | None = None, grace: float = _GRACE) -> None:
    """Serve the client that started this process, over stdin and stdout, until it closes stdin or `stop` is set.

    While it runs, stdout carries messages only: what handlers or their child processes print goes to stderr. After the end of
    stdin handlers get one second at most, for a client that ends a server sends SIGTERM soon after.

    *Resource handling*: stdin and stdout are given back as they were.
    *Error handling*: as `serve_stream`. A client that went away (EPIPE) is the end of the conversation.

    Raises:
        ConnectFailed: stdin or stdout is not open, or this is not a POSIX system.
    """
    with standard_streams() as stream:
        async with stream, server.lifespan() as value:
            await converse(server, stream, value, stop, grace, min(grace, _GRACE_AFTER_STDIN))


async def serve_listeners(
    server: Server,
    listeners: Sequence[trio.abc.Listener[L]],
    *,
    stop: trio.Event | None = None,
    grace: float = _GRACE,
    task_status: trio.TaskStatus[Sequence[trio.abc.Listener[L]]] = trio.TASK_STATUS_IGNORED,
) -> None:
    """Serve whoever connects to one of `listeners`, one message a line: Unix sockets, TCP, TLS, or any other of trio's.

    Who may connect is a matter of the listeners: there is no authorization on a plain stream. Listeners as trio opens them:
    `await trio.open_tcp_listeners(0, host="127.0.0.1")`.

    Args:
        server: what is served. Its lifespan is entered once, around all conversations.
        listeners: open listeners.
        stop: once set, nobody is let in any more, and every conversation ends as `serve_stream` says.
        grace: seconds for handlers that run at that time.
        task_status: `await nursery.start(serve_listeners, server, listeners)` gives the listeners once they are served.

    *Resource handling*: the listeners and every stream are closed at the end.
    *Error handling*: one conversation does no harm to another. What the lifespan raises comes out as it is.
    """

    async def serve_one(stream: trio.abc.Stream) -> None:
        async with stream:
            await converse(server, stream, value, stop, grace, grace)

    async with AsyncExitStack() as opened:
        for listener in listeners:  # to be closed also if the lifespan does not come about
            await opened.enter_async_context(listener)
        value = await opened.enter_async_context(server.lifespan())
        conversations = await opened.enter_async_context(open_quiet_nursery(wait=True))
        accepting = await opened.enter_async_context(open_quiet_nursery(wait=stop is None))
        accept = partial(trio.serve_listeners, serve_one, list(listeners), handler_nursery=conversations)
        accepting.start_soon(accept)
        task_status.started(listeners)
        if stop is not None:
            await stop.wait()


async def converse(
    server: Server,
    stream: trio.abc.Stream,
    lifespan: Any,
    stop: trio.Event | None = None,
    grace: float = _GRACE,
    grace_after_end: float = _GRACE,
) -> None:
    """One conversation over `stream`, from its first byte to its last. The stream is left open.

    Handlers get `grace` seconds after `stop`, and `grace_after_end` after the end of the input.
    """
    reading = trio.CancelScope()
    async with open_quiet_nursery() as nursery:
        dispatch = Dispatch(server, nursery, lifespan)
        link = Link(Connection(Role.SERVER, server.config()), stream, dispatch.take)
        dispatch.serve(link)
        nursery.start_soon(link.write)
        nursery.start_soon(link.tick)
        if stop is not None:
            nursery.start_soon(_stop, stop, link, dispatch, grace, reading)
        with reading:
            await link.read()
        if not reading.cancelled_caught:
            with trio.move_on_after(grace_after_end):
                await dispatch.idle()
        dispatch.stop()
        # Whoever will not be cancelled does not hold up the answers of the others.
        with trio.move_on_after(_LAST_WRITE_OF_ALL):
            await dispatch.idle()
        with trio.move_on_after(_LAST_WRITE_OF_ALL if reading.cancelled_caught else _LAST_WRITE):
            await link.flush()
        link.conn.close()
        link.pump()


async def _stop(
    stop: trio.Event, link: Link, dispatch: Dispatch, grace: float, reading: trio.CancelScope
) -> None:
    """Once `stop` is set, take no more requests, and end the reading when none runs or `grace` has passed."""
    await stop.wait()
    link.conn.wind_down()
    link.pump()
    with trio.move_on_after(grace):
        await dispatch.idle()
    reading.cancel()


def run(server: Server, *, grace: float = _GRACE) -> None:
    """Serve over stdio until the client closes stdin, or SIGINT or SIGTERM arrives: the `main` of a server file.

    The first signal ends it in order: what runs gets `grace` seconds, then it is cancelled, so that `finally` blocks are
    executed. The second one ends the process at once.

    Raises:
        SystemExit: with 130 or 143 after a signal.
        ConnectFailed: stdin or stdout is not open.
    """
    stop = trio.run(_main, server, grace)
    if stop:
        raise SystemExit(stop)


async def _main(server: Server, grace: float) -> int:
    stop = trio.Event()
    with stop_on_signals(stop.set) as caught:
        await serve_stdio(server, stop=stop, grace=grace)
    return caught.exit_code
