"""The `Runtime` of asyncio: logging, threads, waiting, the clock and entropy; and recorders."""

from __future__ import annotations

import asyncio
import logging
import os
import secrets
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager, suppress
from contextvars import copy_context
from typing import TYPE_CHECKING, Any, Final, Generic, Literal, TypeAlias, TypeVar
from weakref import WeakKeyDictionary

from mcp_core import ConnectionClosed, InputProblem, MessageRejected, RequestCancelled
from mcp_core.drivers import type_on_first_use
from mcp_core.runtime import LogEscaper, Runtime, Sources

from ._driver import move_on_after

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Iterable, Sequence

    from mcp_core import Event, RequestReceived
    from mcp_core.adapters import Recorder, Recording
    from mcp_core.registry import NestedRequests
    from mcp_core.runtime import Clock, Job, Reschedule, Service
    from mcp_core.types import RequestId

    from ._driver import ConnectionDriver
else:
    Recording = type_on_first_use("mcp_core.adapters", "Recording")

__all__ = [
    "SYSTEM_SOURCES",
    "AsyncioRuntime",
    "Record",
    "check_asyncio",
    "handle_event",
    "logger",
    "open_recorder",
]

T = TypeVar("T")

# The option `record`: a file, a file with options, or None for no recording.
Record: TypeAlias = str | os.PathLike[str] | Recording | None

logger = logging.getLogger("mcp_asyncio_shim")
logger.addFilter(LogEscaper(logging.Formatter().formatException))

SYSTEM_SOURCES: Final = Sources(secrets.token_bytes, lambda: time.time())  # noqa: PLW0108 - tests replace it


def check_asyncio() -> None:
    """Check that the caller is in an asyncio event loop.

    Raises:
        RuntimeError: it isn't.
    """
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        raise RuntimeError(
            "mcp_asyncio_shim needs asyncio.run(); in trio use the package mcp_trio"
        ) from None


def _note(exc: BaseException) -> None:
    from mcp_core.runtime import note_other_loop  # on first use: few need it

    note_other_loop(exc, "asyncio")


def handle_event(event: Event, service: Service) -> Job | None:
    """Handle one event as `Service.handle_event` does, and log it. This never waits."""
    job = service.handle_event(event)
    if job is None:
        if isinstance(event, RequestCancelled):
            logger.debug("request %r cancelled: %s", event.id, event.reason)
        elif isinstance(event, MessageRejected):
            logger.debug("message rejected: %s", event.error)
        elif isinstance(event, InputProblem):
            logger.info("%s", event.problem)  # a flood of clients may have it
        elif isinstance(event, ConnectionClosed):
            logger.debug("conversation ended: %s", event.error)
    return job


def _not_released(id: RequestId, retry: float | None) -> bool:
    """Release nothing: a byte stream has no response that could end early."""
    return False


# Handlers in threads at the same time, of all connections of a loop, as trio's limiter allows. The
# executor has fewer threads on most machines, and keeps a queue without a limit: what is cancelled
# there stays in it while all threads are busy.
_MOST_THREADS: Final = 40
_limiters: WeakKeyDictionary[asyncio.AbstractEventLoop, asyncio.Semaphore] = WeakKeyDictionary()


def _limiter_of(loop: asyncio.AbstractEventLoop) -> asyncio.Semaphore:
    limiter = _limiters.get(loop)
    if limiter is None:
        limiter = _limiters[loop] = asyncio.Semaphore(_MOST_THREADS)
    return limiter


class _ThreadCall(Generic[T]):
    """A call of `function` in a thread. None as `function` cancels it, unless it has begun."""

    def __init__(self, function: Callable[[], T]) -> None:
        self.function: Callable[[], T] | None = function
        self._value: T | None = None
        self._error: BaseException | None = None

    def run(self) -> None:
        """Keep the outcome. An exception after a cancellation must not reach the loop's log."""
        function = self.function
        if function is None:
            return
        try:
            self._value = function()
        except BaseException as exc:  # noqa: BLE001 - `result` raises it
            self._error = exc

    def result(self) -> T:
        """Return what the function has returned, or raise what it raised."""
        if self._error is not None:
            try:
                raise self._error
            finally:
                self._error = None  # its traceback refers to this object
        return self._value  # type: ignore[return-value]


class LoopRuntime(Runtime):
    """The part of a runtime that needs nothing but the event loop."""

    monotonic = staticmethod(time.perf_counter)
    sources: Sources = SYSTEM_SOURCES

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._thread_id = threading.get_ident()

    async def send_nested(self, requests: NestedRequests[T]) -> T:
        awake = asyncio.Event()
        with requests.entered(awake.set), move_on_after(requests.seconds):
            await awake.wait()
        return requests.result()

    def report(self, request: RequestReceived, reference: str, exc: BaseException) -> None:
        _note(exc)
        logger.error("%s failed (reference %s)", request.method.name, reference, exc_info=exc)

    def report_hook(self, name: str, exc: BaseException) -> None:
        _note(exc)
        logger.error("%s failed", name, exc_info=exc)

    def warn(self, text: str) -> None:
        logger.warning("%s", text)

    def call_soon(self, function: Callable[[], object]) -> None:
        with suppress(RuntimeError):  # the loop is closed
            self._loop.call_soon_threadsafe(function)

    async def in_time(
        self, seconds: float, function: Callable[[Clock, Reschedule], Awaitable[T]]
    ) -> tuple[T] | None:
        with move_on_after(seconds) as block:
            return (await function(self._loop.time, block.reschedule),)
        return None

    async def in_thread(self, function: Callable[[], T]) -> T:
        limiter = _limiter_of(self._loop)
        await limiter.acquire()
        call = _ThreadCall(function)
        try:
            running = self._loop.run_in_executor(None, copy_context().run, call.run)
        except BaseException:  # the loop is being shut down
            limiter.release()
            raise
        running.add_done_callback(lambda _: limiter.release())
        # Shielded: a thread cannot be cancelled, and counts until it returns.
        try:
            await asyncio.shield(running)
        except asyncio.CancelledError:
            call.function = None
            raise
        return call.result()

    @property
    def in_worker_thread(self) -> bool:
        return threading.get_ident() != self._thread_id

    def from_thread(self, function: Callable[[], Coroutine[Any, Any, T]]) -> T:
        # The coroutine is made in the loop's thread: `function` may call into the connection.
        async def call() -> T:
            return await function()

        return asyncio.run_coroutine_threadsafe(call(), self._loop).result()

    def wall_time(self) -> float:
        return self.sources.wall_time()

    def entropy(self, size: int) -> bytes:
        return self.sources.entropy(size)


class AsyncioRuntime(LoopRuntime):
    """The runtime of one connection.

    Args:
        driver: where `drain` waits.
        pump: as `Runtime.pump`, for this connection.
        write_blocked: as `Runtime.write_blocked`, for this connection.
        release: as `Runtime.release`, for this connection; by default nothing can be released.
    """

    def __init__(
        self,
        driver: ConnectionDriver,
        pump: Callable[[], None],
        write_blocked: Callable[[RequestId | None], bool],
        release: Callable[[RequestId, float | None], bool] = _not_released,
    ) -> None:
        super().__init__(driver.loop)
        self._driver = driver
        self._pump = pump
        self._write_blocked = write_blocked
        self._release = release

    def pump(self) -> None:
        self._pump()

    def write_blocked(self, id: RequestId | None) -> bool:
        return self._write_blocked(id)

    def release(self, id: RequestId, retry: float | None) -> bool:
        return self._release(id, retry)

    async def drain(self, id: RequestId) -> None:
        await asyncio.sleep(0)  # let other tasks run, as a handler that only reports never waits
        await self._driver.wait_until(lambda: not self.write_blocked(id))


@asynccontextmanager
async def open_recorder(
    record: Record,
    observer: Literal["client", "server"],
    transport: str,
    target: Sequence[str | os.PathLike[str]] = (),
    known: Iterable[str] = (),
) -> AsyncIterator[Recorder | None]:
    """Open a conversation's recorder, or give None if `record` is None.

    The arguments are passed to `Recorder`, `known` as its `secrets`. At the end, the file is closed
    within two seconds, also if the task is cancelled.

    Raises:
        CannotRecord: the file cannot be opened.
    """
    if record is None:
        yield None
        return
    from mcp_core.adapters import Recorder  # on first use: a program rarely records

    recorder = Recorder(
        record,
        observer,
        transport,
        target,
        entropy=secrets.token_bytes,
        log=logger.log,
        secrets=known,
    )
    try:
        yield recorder
    finally:
        # A thread of its own: handlers may occupy all threads of the loop.
        threads = ThreadPoolExecutor(1, "mcp-recorder")
        closing = asyncio.get_running_loop().run_in_executor(threads, recorder.close)
        threads.shutdown(wait=False)
        try:
            await asyncio.shield(closing)
        except asyncio.CancelledError:
            await asyncio.wait({closing})
            raise
