"""Running a server: what asyncio adds to a `Service` is a task for each handler that needs one, a log and names for faults.

Rules: nothing that a handler raises leaves its task, and only a cancellation that somebody asked for travels on. A job is
settled by the callback of its task, for a task that is cancelled before its first step never runs.
"""

from __future__ import annotations

import asyncio
import logging
import secrets
import signal
from contextlib import suppress
from functools import partial
from typing import Any

from mcp_core import Connection, Event, RequestReceived, Role
from mcp_core.registry import Context, Job, Server, Service

from ._link import LAST_WRITE, Link
from ._pipes import standard_streams

_log = logging.getLogger("mcp_asyncio_shim")


class _Context(Context):
    def __init__(self, request: RequestReceived, server: Server, link: Link, in_thread: bool) -> None:
        super().__init__(request, server)
        self._link, self._in_thread = link, in_thread

    async def progress(self, *told: Any, **named: Any) -> None:
        self._link.conn.send_progress(self.request_id, *told, **named)
        await self._link.drain()

    def progress_nowait(self, *told: Any, **named: Any) -> None:
        if self._in_thread:
            asyncio.run_coroutine_threadsafe(self.progress(*told, **named), self._link.loop).result()
        elif not self._link._events.full:  # who cannot wait for a peer that does not read is not heard by it
            self._link.conn.send_progress(self.request_id, *told, **named)
            self._link.pump()


async def serve_streams(
    server: Server, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, *, grace: float = 1.0
) -> None:
    """Serve one conversation, one message a line, until the client ends it.

    After the end of the input, handlers that still run get `grace` seconds to answer, and the client as long to read.

    *Resource handling*: the writer is closed at the end. Handlers are cancelled, once, and waited for.
    *Error handling*: nothing that a client sends or a handler raises ends this; a stream that breaks is an end like any other.
    """
    conn = Connection(Role.SERVER, server.config())
    jobs: set[asyncio.Task[None]] = set()

    def take(event: Event) -> None:
        job = service.take(event)
        if job is not None:
            task = asyncio.create_task(_run(job))
            job.stop = task.cancel
            jobs.add(task)
            task.add_done_callback(partial(settle, job))

    def settle(job: Job, task: asyncio.Task[None]) -> None:
        jobs.discard(task)
        job.dropped()
        link.pump()

    def context(request: RequestReceived, in_thread: bool) -> Context:
        return _Context(request, server, link, in_thread)

    service = Service(server, conn, context=context, reference=lambda: secrets.token_hex(4), report=_report)
    link = Link(conn, (reader, writer), take)
    end = link.loop.time()
    try:
        await asyncio.wait({link.reading})
        end = link.loop.time() + grace
        with suppress(TimeoutError):
            async with asyncio.timeout_at(end):
                await link.until(lambda: not jobs)
    finally:
        await link.aclose(max(end - link.loop.time(), LAST_WRITE))
        await link.until(lambda: not jobs)


def _report(request: RequestReceived, reference: str, exc: BaseException) -> None:
    _log.error("%s failed (reference %s)", request.method.name, reference, exc_info=exc)


async def _run(job: Job) -> None:
    try:
        job.done(await (asyncio.to_thread(_started, job) if job.thread else job.start()))
    except BaseException as exc:
        task = asyncio.current_task()
        if isinstance(exc, asyncio.CancelledError) and task is not None and task.cancelling():
            raise
        job.failed(exc)


def _started(job: Job) -> Any:
    try:
        return job.start()
    except StopIteration as exc:
        raise RuntimeError("the handler raised StopIteration") from exc  # a future would refuse the other


async def serve_stdio(server: Server) -> None:
    """Serve the client that started this process until it closes stdin. What is printed meanwhile goes to stderr.

    *Resource handling*: stdin and stdout are given back as they were. *Error handling*: as `serve_streams`.

    Raises:
        ConnectFailed: stdin or stdout is not open, or is a regular file.
    """
    async with standard_streams() as streams:
        await serve_streams(server, *streams)


def run(server: Server) -> None:
    """Serve over stdio: the `main` of a server file. Like every program on asyncio it ends when its threads have.

    The first SIGINT or SIGTERM cancels what runs, so that `finally` blocks are executed; a second one ends the process at once.

    Raises:
        SystemExit: with 130 or 143 after a signal.
        ConnectFailed: stdin or stdout is not open, or is a regular file.
    """
    caught: list[int] = []

    async def main() -> None:
        loop, serving = asyncio.get_running_loop(), asyncio.create_task(serve_stdio(server))

        def stop(number: int, _: object) -> None:
            for each in former:
                signal.signal(each, signal.SIG_DFL)
            caught.append(number)
            loop.call_soon_threadsafe(serving.cancel)

        former = {each: signal.signal(each, stop) for each in (signal.SIGINT, signal.SIGTERM)}
        try:
            await serving
        finally:
            for each, action in former.items():
                signal.signal(each, action)

    with suppress(asyncio.CancelledError):
        asyncio.run(main())
    if caught:
        raise SystemExit(128 + caught[0])
