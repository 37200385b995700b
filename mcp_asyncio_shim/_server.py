"""Run a server on asyncio: over a pair of streams, or over this process's stdin and stdout.

An exception of a handler never ends a conversation.
"""

from __future__ import annotations

import asyncio
import signal
from contextlib import ExitStack, closing, suppress
from typing import TYPE_CHECKING, Final, Unpack

from mcp_core import Connection, ConnectionLost, Role
from mcp_core.drivers import NoOptions, refuse_keywords, shows_keywords
from mcp_core.registry import Server
from mcp_core.runtime import LAST_GRACE, SHUTDOWN_GRACE

from ._link import FLUSH_TIMEOUT, Link
from ._runtime import AsyncioRuntime, Record, check_asyncio, handle_event, open_recorder
from ._stdio import standard_streams
from ._tasks import open_server

if TYPE_CHECKING:
    from types import FrameType

    from mcp_core import Event
    from mcp_core.adapters import LastDeadline, StreamRecorder
    from mcp_core.runtime import ServedServer

    from ._link import Streams

__all__ = ["run", "serve_connection", "serve_stdio", "serve_streams"]

# Windows has a third one, Ctrl+Break. A program can also send it to another one.
_STOP_SIGNALS: Final = [
    signal.Signals[name]
    for name in ("SIGINT", "SIGTERM", "SIGBREAK")
    if name in signal.Signals.__members__
]

# Seconds for handlers after the end of stdin: a client that stops a server sends SIGTERM soon.
_GRACE_AFTER_STDIN: Final = 1.0
# Seconds after the client has closed our stdout in which it may also close our stdin.
_VANISHED_DELAY: Final = 0.5


async def serve_streams(
    server: Server,
    reader: asyncio.StreamReader,
    writer: asyncio.StreamWriter,
    *,
    stop: asyncio.Event | None = None,
    grace: float = SHUTDOWN_GRACE,
    record: Record = None,
) -> None:
    """Serve one client, one message a line, until it closes its output or `stop` is set.

    After `stop`, new requests are rejected as busy, and pings are still answered, while handlers
    get `grace` seconds. Then they are cancelled, and their requests are answered with an error.

    Args:
        server: the server. Its lifespan is entered once, around the conversation.
        reader: what the client sends.
        writer: where the responses go.
        stop: set it, from any task, to begin the shutdown. Default None: only the client ends the
            conversation.
        grace: seconds that handlers get to respond after `stop` or the end of the input. The client
            can read the responses in one more second after `stop`, and after the end of the input
            in what is left of `grace`, at least one second.
        record: the file to which the conversation is recorded, or a `Recording` with options.
            Credentials and other secrets are hidden. A file that exists is replaced. Default None.

    *Resource handling*: the writer is closed at the end, and the lifespan is left. Handlers are
    cancelled, once, and waited for. Cancelling the task cancels the handlers without this grace.
    *Error handling*: nothing that a client sends or a handler raises ends this; a stream that
    breaks is an end like any other. Exceptions of the lifespan propagate unchanged.

    Raises:
        OSError: the file of `record` cannot be opened. The writer stays open.
        RuntimeError: the caller isn't in an event loop of asyncio.

    Source: basic/lifecycle, Shutdown; basic/transports (2026-07-28: basic/transports/stdio), for
    the lines.
    """
    check_asyncio()
    async with open_recorder(record, "server", "stream") as recorder:
        with closing(writer):  # also if the lifespan raises: the client waits for an answer
            async with open_server(server, grace) as served:
                stream = None if recorder is None else recorder.stream()
                await serve_connection(served, (reader, writer), grace, grace, stream, stop=stop)


async def serve_connection(
    served: ServedServer,
    streams: Streams,
    grace: float = SHUTDOWN_GRACE,
    grace_after_end: float = SHUTDOWN_GRACE,
    record: StreamRecorder | None = None,
    last_deadline: LastDeadline | None = None,
    *,
    stop: asyncio.Event | None = None,
) -> OSError | None:
    """Serve one client, as `serve_streams`. `record` records the bytes.

    Handlers get `grace` seconds after `stop`, and `grace_after_end` after the end of the input.
    If the client ends the conversation, `last_deadline` begins; without one, a handler that ignores
    its cancellation gets a line in the log.
    Return the error of the system with which writing failed, None if it did not.
    """
    conn = Connection(Role.SERVER, served.server.config())

    def on_event(event: Event) -> None:
        job = handle_event(event, service)
        if job is not None:
            link.start_job(job)

    link = Link(streams, conn, on_event, record)
    service = served.service(conn, AsyncioRuntime(link, link.pump, link.write_blocked))
    flush_until = link.loop.time()
    ends = {link.reading}
    if stop is not None:
        ends.add(link.loop.create_task(_shut_down(stop, link, conn, grace)))
    try:
        await asyncio.wait(ends, return_when=asyncio.FIRST_COMPLETED)
        if link.reading.done():
            if last_deadline is not None:
                last_deadline.begin(grace_after_end + LAST_GRACE, "the client had gone")
            flush_until = link.loop.time() + grace_after_end
            await link.wait_until(lambda: not link.tasks, grace_after_end)
        service.stop()
        # A handler that ignores its cancellation doesn't delay the responses of the others.
        await link.wait_until(lambda: not link.tasks, FLUSH_TIMEOUT)
    finally:
        for task in ends:
            task.cancel()
        await link.aclose(max(flush_until - link.loop.time(), FLUSH_TIMEOUT))
        await link.wait_until(lambda: not link.tasks, LAST_GRACE)
        if last_deadline is None:
            service.warn_of_running()
        await link.wait_until(lambda: not link.tasks)
    return link.write_error


async def _shut_down(stop: asyncio.Event, link: Link, conn: Connection, grace: float) -> None:
    """Wait for `stop` and reject new requests. Return once none runs, or after `grace`."""
    await stop.wait()
    conn.shutdown()
    link.pump()
    await link.wait_until(lambda: not link.tasks, grace)


@shows_keywords(NoOptions)
async def serve_stdio(
    server: Server,
    *,
    stop: asyncio.Event | None = None,
    grace: float = SHUTDOWN_GRACE,
    record: Record = None,
    **_other: Unpack[NoOptions],
) -> None:
    """Serve the client that started this process with `server`.

    It ends when the client closes stdin or `stop` is set. What is printed meanwhile goes to stderr.
    After the end of stdin handlers get at most one second, because a client that stops a server
    sends SIGTERM soon after.

    Args:
        server: the server. Its lifespan is entered once, around the conversation.
        stop: set it, from any task, to begin the shutdown. Default None: only the client ends the
            conversation. `run` sets one at a signal.
        grace: seconds for running handlers after `stop`.
        record: as for `serve_streams`.

    *Resource handling*: stdin and stdout are given back as they were.
    *Error handling*: as `serve_streams`.

    Raises:
        ConnectFailed: stdin or stdout isn't open, or is a regular file; or both are one socket,
            which is for `serve_streams`.
        OSError: the file of `record` cannot be opened.
        ConnectionLost: stdout cannot be written, although the client hasn't closed it.
        RuntimeError: the caller isn't in an event loop of asyncio.
        TypeError: an option is unknown; the text says what other libraries' options are here.

    Source: basic/transports (2026-07-28: basic/transports/stdio).
    """
    refuse_keywords(_other, serve_stdio, "serve_stdio()")
    await _serve_stdio(server, stop, grace, record)


async def _serve_stdio(
    server: Server,
    stop: asyncio.Event | None,
    grace: float,
    record: Record,
    last_deadline: LastDeadline | None = None,
) -> None:
    """Serve as `serve_stdio` does. At the end of the input, `last_deadline` begins."""
    check_asyncio()
    grace_after_end = min(grace, _GRACE_AFTER_STDIN)
    async with (
        standard_streams() as streams,
        open_recorder(record, "server", "stdio") as recorder,
        open_server(server, grace_after_end, warns=last_deadline is None) as served,
    ):
        stream = None if recorder is None else recorder.stream()
        watching = asyncio.create_task(_end_with_writer(*streams))
        try:
            error = await serve_connection(
                served, streams, grace, grace_after_end, stream, last_deadline, stop=stop
            )
        finally:
            watching.cancel()
    if error is not None and not isinstance(error, BrokenPipeError | ConnectionResetError):
        raise ConnectionLost(f"cannot write to standard output: {error.strerror}") from error


async def _end_with_writer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """End the input if the client closes its end of our stdout, although nothing is written."""
    with suppress(OSError):
        await writer.wait_closed()
    # If the end of stdin comes at the same time, nothing is left to do.
    await asyncio.sleep(_VANISHED_DELAY)
    reader.feed_eof()


@shows_keywords(NoOptions)
def run(
    server: Server,
    *,
    grace: float = SHUTDOWN_GRACE,
    record: Record = None,
    **_other: Unpack[NoOptions],
) -> None:
    """Serve `server` over stdio until the client closes stdin, or SIGINT or SIGTERM arrives.

    It is the `main` of a server file, for the main thread. The first signal shuts down in order:
    running handlers get `grace` seconds, then they are cancelled, so that their `finally` blocks
    run. The second signal kills the process. A signal that was ignored stays ignored. `record` is
    as for `serve_streams`.

    If a handler ignores its cancellation or blocks, in a thread too, the process ends without it
    five seconds after the grace, and stderr gets a line that names the tool. The grace is `grace`
    after a signal, and at most one second after the end of stdin. The status is then 128 + n after
    the signal n, otherwise 1, and `finally` blocks aren't executed. The lifespan may take longer to
    end.

    *Resource handling* and *Error handling*: as `serve_stdio`.

    Raises:
        SystemExit: with 130 or 143 after a signal; with a text, which Python prints, and status 1
            if stdout cannot be written.
        ConnectFailed: stdin or stdout isn't open, or is a regular file.
        OSError: the file of `record` cannot be opened.
        RuntimeError: this thread has a running event loop already.
        ValueError: this isn't the main thread, the only one that can handle signals.
        TypeError: an option is unknown; the text says what other libraries' options are here.
    """
    refuse_keywords(_other, run, "run()")
    caught: list[int] = []

    async def main() -> None:
        loop, stop = asyncio.get_running_loop(), asyncio.Event()
        # None: the handler is of C code, and could not be restored.
        handled = [
            each for each in _STOP_SIGNALS if signal.getsignal(each) not in (signal.SIG_IGN, None)
        ]

        def on_signal(number: int, frame: FrameType | None) -> None:
            for each in handled:
                signal.signal(each, signal.SIG_DFL)  # the second signal ends the process
            caught.append(number)
            cause = signal.Signals(number).name
            last_deadline.begin(grace + LAST_GRACE, cause, 128 + number)
            loop.call_soon_threadsafe(stop.set)

        with ExitStack() as undo:
            for each in handled:
                undo.callback(signal.signal, each, signal.signal(each, on_signal))
            try:
                await _serve_stdio(server, stop, grace, record, last_deadline)
            finally:
                last_deadline.lifespan_ended()

    from mcp_core.adapters import LastDeadline  # not needed for any other way to serve

    try:
        with LastDeadline(server.info.name) as last_deadline:
            asyncio.run(main())
    except ConnectionLost as exc:
        raise SystemExit(f"{server.info.name}: {exc}") from None
    for number in caught:
        raise SystemExit(128 + number)
