"""Running a server: what asyncio adds to a `Service` is a task for each handler that needs one, threads, a log, names for faults.

Rule: nothing that a handler raises ends a conversation.
"""

from __future__ import annotations

import asyncio
import logging
import secrets
import signal
import threading
import time
from collections.abc import Callable, Coroutine
from contextlib import ExitStack, suppress
from typing import Any, TypeVar

from mcp_core import Connection, RequestReceived, Role
from mcp_core.registry import Round, Server
from mcp_core.runtime import Runtime, Service
from mcp_core.types import RequestId

from ._link import LAST_WRITE, Carrier, Link, Streams
from ._pipes import standard_streams

T = TypeVar("T")

_log = logging.getLogger("mcp_asyncio_shim")


class AsyncioRuntime(Runtime):
    """One conversation, which `carrier` carries; `functions` are `pump`, `full` and `release` of a `Runtime`."""

    wall_time, entropy = staticmethod(time.time), staticmethod(secrets.token_bytes)

    def __init__(self, carrier: Carrier, *functions: Callable[..., Any]) -> None:
        self._carrier, self._thread = carrier, threading.get_ident()
        self.pump, self.full, self.release = functions  # type: ignore[method-assign]

    def report(self, request: RequestReceived, reference: str, exc: BaseException) -> None:
        _log.error("%s failed (reference %s)", request.method.name, reference, exc_info=exc)

    def soon(self, function: Callable[[], object]) -> None:
        with suppress(RuntimeError):  # the loop is closed
            self._carrier.loop.call_soon_threadsafe(function)

    def in_thread(self, function: Callable[[], T]) -> Coroutine[Any, Any, T]:
        return asyncio.to_thread(function)

    async def ask(self, asked: Round[T]) -> T:
        awake = asyncio.Event()
        with asked.under_way(awake.set), suppress(TimeoutError):
            async with asyncio.timeout(asked.seconds):
                await awake.wait()
        return asked.result()

    async def drain(self, id: RequestId) -> None:
        await asyncio.sleep(0)
        await self._carrier.until(lambda: not self.full(id))

    @property
    def in_worker_thread(self) -> bool:
        return threading.get_ident() != self._thread

    def from_thread(self, function: Callable[[], Coroutine[Any, Any, T]]) -> T:
        async def awaited() -> T:
            return await function()

        return asyncio.run_coroutine_threadsafe(awaited(), self._carrier.loop).result()


async def serve_streams(
    server: Server, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, *, grace: float = 1.0
) -> None:
    """Serve one conversation, one message a line, until the client ends it.

    After the end of the input, handlers that still run get `grace` seconds to answer, and the client as long to read.

    *Resource handling*: the writer is closed at the end, and the lifespan left. Handlers are cancelled, once, and waited for.
    *Error handling*: nothing that a client sends or a handler raises ends this; a stream that breaks is an end like any other.
    """
    async with server.lifespan() as value:
        await converse(server, (reader, writer), value, grace)


async def converse(server: Server, streams: Streams, lifespan: Any, grace: float = 1.0) -> None:
    conn = Connection(Role.SERVER, server.config())
    link = Link(streams, conn, lambda event: link.start_job(service.take(event)))
    service = Service(server, conn, AsyncioRuntime(link, link.pump, link.full, lambda *_: False), lifespan)
    end = link.loop.time()
    try:
        await asyncio.wait({link.reading})
        end = link.loop.time() + grace
        await link.until(lambda: not link.jobs, grace)
    finally:
        service.close()
        await link.aclose(max(end - link.loop.time(), LAST_WRITE))
        await link.until(lambda: not link.jobs)


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
    both = signal.SIGINT, signal.SIGTERM

    async def main() -> None:
        loop, serving = asyncio.get_running_loop(), asyncio.create_task(serve_stdio(server))

        def stop(number: int, _: object) -> None:
            for each in both:
                signal.signal(each, signal.SIG_DFL)
            caught.append(number)
            loop.call_soon_threadsafe(serving.cancel)

        with ExitStack() as undo:
            for each in both:
                undo.callback(signal.signal, each, signal.signal(each, stop))
            await serving

    with suppress(asyncio.CancelledError):
        asyncio.run(main())
    if caught:
        raise SystemExit(128 + caught[0])
