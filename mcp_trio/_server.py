"""Run a server: one conversation on a stream or on this process's stdin and stdout, or many.

1. Setting `stop` shuts down in order: new requests are rejected, running ones get `grace` seconds,
   then they are cancelled and answered, and what is queued is written. Cancelling the serving task
   ends it quickly.
2. Every step has a timeout: no peer and no handler can keep the server from ending.
"""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Sequence
from contextlib import (
    AbstractAsyncContextManager,
    AsyncExitStack,
    asynccontextmanager,
    nullcontext,
)
from functools import partial
from typing import TYPE_CHECKING, Final, TypeVar, Unpack

import trio

from mcp_core import Connection, ConnectionLost, Role
from mcp_core.drivers import NoOptions, refuse_keywords, shows_keywords, type_on_first_use
from mcp_core.registry import Server
from mcp_core.runtime import LAST_GRACE, SHUTDOWN_GRACE
from mcp_trio.streams._dispatch import Dispatch
from mcp_trio.streams._link import Link
from mcp_trio.streams._stdio import has_no_reader, pipe_of, standard_streams, stop_on_signals

from ._nursery import open_quiet_nursery
from ._runtime import check_trio
from ._tasks import open_server

if TYPE_CHECKING:
    from mcp_core.adapters import LastDeadline, Recorder, Recording
    from mcp_core.runtime import ServedServer
else:
    Recording = type_on_first_use("mcp_core.adapters", "Recording")

__all__ = ["run", "serve_listeners", "serve_stdio", "serve_stream"]

# Seconds after the end of stdin. Our own client sends SIGTERM 2 s after it has closed our stdin.
_GRACE_AFTER_STDIN: Final = 1.0
# Seconds for the client to read the last responses.
_FLUSH_TIMEOUT: Final = 5.0
# The same when the process is about to exit, and for cancelled handlers to end.
_SHUTDOWN_TIMEOUT: Final = 1.0
# Seconds after the client has closed our stdout in which it may also close our stdin.
_VANISHED_DELAY: Final = 0.5

L = TypeVar("L", bound=trio.abc.Stream)


async def serve_stream(
    server: Server,
    stream: trio.abc.Stream,
    *,
    stop: trio.Event | None = None,
    grace: float = SHUTDOWN_GRACE,
    record: str | os.PathLike[str] | Recording | None = None,
) -> None:
    """Serve one conversation on a byte stream, until the client closes it or `stop` is set.

    The stream carries one message a line. At the end, running handlers get `grace` seconds to
    answer. Then they are cancelled, and their requests are answered with an error. After `stop`,
    new requests are meanwhile rejected as busy, and pings are still answered. Finally the client
    gets five seconds to read the responses, or one second after `stop`.

    Args:
        server: the server. Its lifespan is entered once, around the conversation.
        stream: an open stream to one client.
        stop: set it, from any task, to begin the shutdown. Default None: only the client ends the
            conversation.
        grace: seconds for running handlers, after `stop` and after the end of the input.
        record: the file to which the conversation is recorded, or a `Recording` with options.
            Credentials and other secrets are hidden. A file that exists is replaced. Default None.

    *Resource handling*: the stream is closed at the end. Cancelling this call cancels the handlers
    and closes the stream without this grace.
    *Error handling*: nothing that a client sends or a handler raises ends this; a broken stream
    ends the conversation like any other end. Exceptions of the lifespan propagate unchanged.

    Raises:
        OSError: the file of `record` cannot be opened. The stream stays open.
        RuntimeError: the caller isn't a task of trio. The stream stays open.

    Source: basic/lifecycle, Shutdown; basic/transports (2026-07-28: basic/transports/stdio), for
    the lines.
    """
    check_trio()
    async with (
        _recorded(record, "stream", stream) as recorded,
        recorded,
        open_server(server, grace) as served,
    ):
        await serve_conversation(served, recorded, stop, grace, grace)


@shows_keywords(NoOptions)
async def serve_stdio(
    server: Server,
    *,
    stop: trio.Event | None = None,
    grace: float = SHUTDOWN_GRACE,
    record: str | os.PathLike[str] | Recording | None = None,
    **_other: Unpack[NoOptions],
) -> None:
    """Serve the client that started this process, on stdin and stdout.

    It ends when the client closes stdin or `stop` is set. While it runs, stdout carries messages
    only: what handlers or their child processes print goes to stderr. After the end of stdin
    handlers get at most one second, because a client that stops a server sends SIGTERM soon after.

    Args:
        server: the server. Its lifespan is entered once, around the conversation.
        stop: set it, from any task, to begin the shutdown. Default None: only the client ends the
            conversation. `run` sets one at a signal.
        grace: seconds for running handlers after `stop`.
        record: the file to which the conversation is recorded, or a `Recording` with options.
            Credentials and other secrets are hidden. A file that exists is replaced. Default None.

    *Resource handling*: stdin and stdout are restored at the end.
    *Error handling*: as `serve_stream`. A client that is gone (EPIPE) ends the conversation.

    Raises:
        ConnectFailed: stdin or stdout isn't open.
        ConnectionLost: stdout cannot be written, although the client may be there: it is a file on
            a full disk, for example.
        OSError: the file of `record` cannot be opened.
        RuntimeError: the caller isn't a task of trio.
        TypeError: an option is unknown; the text says what other libraries' options are here.

    Source: basic/transports (2026-07-28: basic/transports/stdio).
    """
    refuse_keywords(_other, serve_stdio, "serve_stdio()")
    await _serve_stdio(server, stop, grace, record)


async def _serve_stdio(
    server: Server,
    stop: trio.Event | None,
    grace: float,
    record: str | os.PathLike[str] | Recording | None,
    last_deadline: LastDeadline | None = None,
) -> None:
    """Serve as `serve_stdio` does. At the end of the input, `last_deadline` begins."""
    check_trio()
    grace_after_end = min(grace, _GRACE_AFTER_STDIN)
    with standard_streams() as stream:
        async with (
            _recorded(record, "stdio", stream) as recorded,
            recorded,
            open_server(server, grace_after_end, warns=last_deadline is None) as served,
        ):
            error = await serve_conversation(
                served,
                recorded,
                stop,
                grace,
                grace_after_end,
                sink=pipe_of(stream),
                last_deadline=last_deadline,
            )
    if error is not None and not isinstance(error, BrokenPipeError | ConnectionResetError):
        raise ConnectionLost(f"cannot write to standard output: {error.strerror}") from error


async def serve_listeners(
    server: Server,
    listeners: Sequence[trio.abc.Listener[L]],
    *,
    stop: trio.Event | None = None,
    grace: float = SHUTDOWN_GRACE,
    record: str | os.PathLike[str] | Recording | None = None,
    task_status: trio.TaskStatus[Sequence[trio.abc.Listener[L]]] = trio.TASK_STATUS_IGNORED,
) -> None:
    """Serve one conversation per connection that `listeners` accept, one message a line.

    Any trio listener will do: Unix sockets, TCP, TLS. A plain stream has no authorization, so the
    listeners decide which clients may connect. Open them with, for example,
    `await trio.open_tcp_listeners(0, host="127.0.0.1")`.

    Args:
        server: the server. Its lifespan is entered once, around all conversations.
        listeners: open listeners. The number of connections isn't limited.
        stop: once set, no more connections are accepted, and every conversation ends as described
            for `serve_stream`. Default None: only cancelling this call ends it.
        grace: seconds for the handlers that run then, or at the end of their client's input.
        record: the file to which all conversations are recorded, or a `Recording` with options.
            Credentials and other secrets are hidden. A file that exists is replaced. Default None.
        task_status: of `nursery.start`, which passes it. With it,
            `await nursery.start(serve_listeners, server, listeners)` returns the listeners once
            connections are accepted.

    *Resource handling*: the listeners and every stream are closed at the end.
    *Error handling*: a failing conversation doesn't affect the others. Exceptions of the lifespan
    propagate unchanged.

    Raises:
        OSError: the file of `record` cannot be opened. The listeners are closed.
        RuntimeError: the caller isn't a task of trio. The listeners stay open.
    """
    check_trio()

    async def serve_one(stream: trio.abc.Stream) -> None:
        async with stream if recorder is None else _recorded_by(recorder, stream) as recorded:
            await serve_conversation(served, recorded, stop, grace, grace)

    from ._listeners import PatientListener  # on first use: most servers have no listeners

    async with AsyncExitStack() as opened:
        for listener in listeners:  # entered first: closed even if the lifespan raises
            await opened.enter_async_context(listener)
        recorder = await opened.enter_async_context(_open_recorder(record, "stream"))
        served = await opened.enter_async_context(open_server(server, grace))
        conversations = await opened.enter_async_context(open_quiet_nursery(wait=True))
        accepting = await opened.enter_async_context(open_quiet_nursery(wait=stop is None))
        patient = [PatientListener(listener) for listener in listeners]
        accept = partial(trio.serve_listeners, serve_one, patient, handler_nursery=conversations)
        accepting.start_soon(accept)
        task_status.started(listeners)
        if stop is not None:
            await stop.wait()


async def serve_conversation(
    served: ServedServer,
    stream: trio.abc.Stream,
    stop: trio.Event | None = None,
    grace: float = SHUTDOWN_GRACE,
    grace_after_end: float = SHUTDOWN_GRACE,
    *,
    sink: int | None = None,
    last_deadline: LastDeadline | None = None,
) -> OSError | None:
    """Serve one conversation on `stream`, and leave the stream open.

    Handlers get `grace` seconds after `stop`, and `grace_after_end` after the end of the input.
    `sink` is the descriptor of a pipe to which `stream` writes: if the client closes its other end,
    the conversation ends. If the client ends it, `last_deadline` begins; without one, a handler
    that ignores its cancellation gets a line in the log.
    Return the error of the system with which writing failed, None if it did not.
    """
    read_scope = trio.CancelScope()
    async with open_quiet_nursery() as nursery:
        dispatch = Dispatch(served, nursery)
        link = Link(Connection(Role.SERVER, served.server.config()), stream, dispatch.handle_event)
        dispatch.serve(link)
        nursery.start_soon(link.write)
        nursery.start_soon(link.tick)
        if stop is not None:
            nursery.start_soon(_shut_down, stop, link, dispatch, grace, read_scope)
        if sink is not None:
            nursery.start_soon(_watch_reader, sink, link)
        try:
            with read_scope:
                await link.read()
            if not read_scope.cancelled_caught:
                if last_deadline is not None:
                    seconds = grace_after_end + LAST_GRACE
                    last_deadline.begin(seconds, "the client had gone")
                with trio.move_on_after(grace_after_end):
                    await dispatch.idle()
            dispatch.stop()
            # A handler that ignores its cancellation doesn't delay the responses of the others.
            with trio.move_on_after(_SHUTDOWN_TIMEOUT):
                await dispatch.idle()
            with trio.move_on_after(
                _SHUTDOWN_TIMEOUT if read_scope.cancelled_caught else _FLUSH_TIMEOUT
            ):
                await link.flush()
        finally:
            nursery.cancel_scope.cancel()  # the writer's end closes the connection
            if last_deadline is None:
                await dispatch.end()
    return link.write_error


@asynccontextmanager
async def _recorded(
    record: str | os.PathLike[str] | Recording | None, transport: str, stream: trio.abc.Stream
) -> AsyncIterator[trio.abc.Stream]:
    """Give a stream that is recorded, or `stream` itself if `record` is None. Close neither."""
    async with _open_recorder(record, transport) as recorder:
        yield stream if recorder is None else _recorded_by(recorder, stream)


def _open_recorder(
    record: str | os.PathLike[str] | Recording | None, transport: str
) -> AbstractAsyncContextManager[Recorder | None]:
    """Open a server's recorder. A server without one doesn't load its modules."""
    if record is None:
        return nullcontext()
    from mcp_trio.recording._open import open_recorder

    return open_recorder(record, "server", transport)


def _recorded_by(recorder: Recorder, stream: trio.abc.Stream) -> trio.abc.Stream:
    from mcp_trio.recording._stream import RecordedStream

    return RecordedStream(stream, recorder.stream())


async def _shut_down(
    stop: trio.Event, link: Link, dispatch: Dispatch, grace: float, read_scope: trio.CancelScope
) -> None:
    """Wait for `stop` and reject new requests. Stop reading once none runs, or after `grace`."""
    await stop.wait()
    link.conn.shutdown()
    link.pump()
    with trio.move_on_after(grace):
        await dispatch.idle()
    read_scope.cancel()


async def _watch_reader(sink: int, link: Link) -> None:
    """Break the link if the client closes its end of the pipe, although nothing is written."""
    try:
        # Nothing can ever be read here, so this returns at an error only.
        await trio.lowlevel.wait_readable(sink)
    except trio.ClosedResourceError:
        return
    # If the end of stdin comes at the same time, handlers get the grace that it gives them.
    await trio.sleep(_VANISHED_DELAY)
    if has_no_reader(sink):
        link.abort()


@shows_keywords(NoOptions)
def run(
    server: Server,
    *,
    grace: float = SHUTDOWN_GRACE,
    record: str | os.PathLike[str] | Recording | None = None,
    **_other: Unpack[NoOptions],
) -> None:
    """Serve `server` over stdio until the client closes stdin, or SIGINT or SIGTERM arrives.

    It is the `main` of a server file. The first signal shuts down in order: running handlers get
    `grace` seconds, then they are cancelled, so that their `finally` blocks run. The second signal
    kills the process. On Windows, Ctrl+C and Ctrl+Break are these signals. Outside the main thread,
    where Python delivers no signals, only the client ends it. `record` is as for `serve_stdio`.

    If a handler ignores its cancellation or blocks, the process ends without it five seconds after
    the grace, and stderr gets a line that names the tool. The grace is `grace` after a signal, and
    at most one second after the end of stdin. The status is then 128 + n after the signal n,
    otherwise 1, and `finally` blocks aren't executed. The lifespan may take longer to end.

    *Resource handling* and *Error handling*: as `serve_stdio`.

    Raises:
        SystemExit: with 130 or 143 after a signal; with a text, which Python prints, and status 1
            if stdout cannot be written.
        ConnectFailed: stdin or stdout isn't open.
        OSError: the file of `record` cannot be opened.
        RuntimeError: this thread is in a run of trio already.
        TypeError: an option is unknown; the text says what other libraries' options are here.
    """
    refuse_keywords(_other, run, "run()")
    from mcp_core.adapters import LastDeadline  # not needed for any other way to serve

    try:
        with LastDeadline(server.info.name) as last_deadline:
            exit_code = trio.run(_main, server, grace, record, last_deadline)
    except ConnectionLost as exc:
        raise SystemExit(f"{server.info.name}: {exc}") from None
    if exit_code:
        raise SystemExit(exit_code)


async def _main(
    server: Server,
    grace: float,
    record: str | os.PathLike[str] | Recording | None,
    last_deadline: LastDeadline,
) -> int:
    stop = trio.Event()
    with stop_on_signals(stop.set, last_deadline=last_deadline, grace=grace) as stop_signal:
        await _serve_stdio(server, stop, grace, record, last_deadline)
    last_deadline.lifespan_ended()
    return stop_signal.exit_code
