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
from contextlib import suppress
from typing import Any, TypeVar

from mcp_core import Connection, Event, RequestReceived, Role
from mcp_core.registry import Round, Runtime, Server, Service
from mcp_core.types import RequestId

from ._carrier import Carrier
from ._link import LAST_WRITE, Link, Streams
from ._pipes import standard_streams

T = TypeVar("T")

_log = logging.getLogger("mcp_asyncio_shim")


class AsyncioRuntime(Runtime):
    """One conversation, which `carrier` carries; the functions are those of a `Runtime`."""

    def __init__(
        self, carrier: Carrier, pump: Callable[[], object], full: Callable[[RequestId], bool]
    ) -> None:
        self._carrier, self._thread = carrier, threading.get_ident()
        self.pump, self.full = pump, full  # type: ignore[assignment, method-assign]

    def report(self, request: RequestReceived, reference: str, exc: BaseException) -> None:
        _log.error("%s failed (reference %s)", request.method.name, reference, exc_info=exc)

    def reference(self) -> str:
        return secrets.token_hex(4)

    def soon(self, function: Callable[[], object]) -> None:
        with suppress(RuntimeError):  # the loop is closed
            self._carrier.loop.call_soon_threadsafe(function)

    def in_thread(self, function: Callable[[], T]) -> Coroutine[Any, Any, T]:
        return asyncio.to_thread(_called, function)

    async def ask(self, asked: Round[T]) -> T:
        awake = asyncio.Event()
        with asked.under_way(awake.set), suppress(TimeoutError):
            async with asyncio.timeout(asked.seconds):
                await awake.wait()
        return asked.result()

    async def drain(self, id: RequestId) -> None:
        await asyncio.sleep(0)
        await self._carrier.until(lambda: not self.full(id))

    def wall_time(self) -> float:
        return time.time()

    def entropy(self, size: int) -> bytes:
        return secrets.token_bytes(size)

    @property
    def in_worker_thread(self) -> bool:
        return threading.get_ident() != self._thread

    def from_thread(self, function: Callable[[], Coroutine[Any, Any, T]]) -> T:
        async def awaited() -> T:
            return await function()

        return asyncio.run_coroutine_threadsafe(awaited(), self._carrier.loop).result()


def _called(function: Callable[[], T]) -> T:
    try:
        return function()
    except StopIteration as exc:
        raise RuntimeError("the handler raised StopIteration") from exc  # a future would refuse the other


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
    def take(event: Event) -> None:
        job = service.take(event)
        if job is not None:
            link.start(job)

    link = Link(Connection(Role.SERVER, server.config()), streams, take)
    service = Service(server, link.conn, AsyncioRuntime(link, link.pump, link.full), lifespan)
    end = link.loop.time()
    try:
        await asyncio.wait({link.reading})
        end = link.loop.time() + grace
        with suppress(TimeoutError):
            async with asyncio.timeout_at(end):
                await link.until(lambda: not link.jobs)
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
