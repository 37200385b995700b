"""The words of trio for tests that run on both drivers: each does the same on trio and on asyncio.

A test that uses the fixture `each_driver` runs twice. What it needs of a
runtime it takes from here, under trio's name: `either.sleep`, `either.open_nursery`. On asyncio:

1. A cancellation arrives once, by `Task.cancel`, as programs on asyncio cancel. It is not repeated
   at each checkpoint, and a shield does not exist.
2. A memory pair holds 64 KiB in each direction, as on trio.
3. All clocks jump when every task waits.
"""

from __future__ import annotations

import asyncio
import math
import time
from contextlib import aclosing, asynccontextmanager, contextmanager
from functools import partial
from typing import TYPE_CHECKING, Any, Protocol, Self, TypeAlias, TypeVar, TypeVarTuple

import pytest
import trio
import trio.testing

import mcp_asyncio_shim
import mcp_trio
from mcp_asyncio_shim import _runtime as asyncio_runtime
from mcp_asyncio_shim import _server as asyncio_server
from mcp_asyncio_shim import _tasks as asyncio_tasks
from mcp_asyncio_shim._link import Link
from mcp_core.drivers import client_config
from mcp_trio import _server as trio_server
from mcp_trio import _tasks as trio_tasks
from mcp_trio.recording import _open as trio_recording
from tests.harness.asyncio_memory import MemoryEnd, asyncio_memory_pair
from tests.harness.world import virtual_time
from tests.harness.world.waiting import PATIENCE

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Iterator, Sequence
    from contextlib import AbstractAsyncContextManager
    from types import TracebackType

    from mcp_core.adapters import Recorder
    from mcp_core.registry import Server
    from mcp_core.runtime import AbstractClient, ServedServer
    from mcp_core.runtime.tasks import TaskRuntime
    from mcp_core.sharing import SessionStore

__all__ = [
    "CancelScope",
    "Cancelled",
    "Event",
    "Nursery",
    "Stream",
    "aclose_forcefully",
    "assert_checkpoints",
    "asyncio_only",
    "checkpoint",
    "connect",
    "connect_stream",
    "current_time",
    "fail_after",
    "in_thread",
    "is_closed",
    "memory_pair",
    "move_on_after",
    "on_trio",
    "open_nursery",
    "open_quiet_nursery",
    "open_recorder",
    "open_server",
    "open_task_runtime",
    "package",
    "serve_conversation",
    "serve_stream",
    "shielded",
    "sleep",
    "sleep_forever",
    "stop_reading",
    "trio_only",
    "until",
    "wait_all_tasks_blocked",
]

T = TypeVar("T")
Ts = TypeVarTuple("Ts")

Cancelled = (trio.Cancelled, asyncio.CancelledError)


# For a test of something that only one driver has.
asyncio_only = pytest.mark.parametrize("each_driver", ["asyncio"], indirect=True)
trio_only = pytest.mark.parametrize("each_driver", ["trio"], indirect=True)


def on_trio() -> bool:
    """True on trio, False on asyncio."""
    return trio.lowlevel.in_trio_run()


def package() -> Any:
    """Return the driver's package."""
    return mcp_trio if on_trio() else mcp_asyncio_shim


# -- Waiting ---------------------------------------------------------------------------------------


class EventLike(Protocol):
    """An event of either."""

    def set(self) -> None: ...
    def is_set(self) -> bool: ...
    async def wait(self) -> object: ...


def Event() -> EventLike:  # noqa: N802  trio's name
    """Create an event."""
    return trio.Event() if on_trio() else asyncio.Event()


async def sleep(seconds: float) -> None:
    if on_trio():
        await trio.sleep(seconds)
    else:
        await asyncio.sleep(seconds)


async def sleep_forever() -> None:
    if on_trio():
        await trio.sleep_forever()
    await asyncio.Event().wait()


async def checkpoint() -> None:
    if on_trio():
        await trio.lowlevel.checkpoint()
    else:
        await asyncio.sleep(0)


def current_time() -> float:
    return trio.current_time() if on_trio() else asyncio.get_running_loop().time()


async def wait_all_tasks_blocked() -> None:
    """Wait until all other tasks wait."""
    if on_trio():
        await trio.testing.wait_all_tasks_blocked()
    else:
        await virtual_time.wait_all_tasks_blocked()


@contextmanager
def assert_checkpoints() -> Iterator[None]:
    """Fail if the block does not let other tasks run."""
    if on_trio():
        with trio.testing.assert_checkpoints():
            yield
        return
    ran: list[bool] = []
    asyncio.get_running_loop().call_soon(ran.append, True)
    yield
    assert ran


async def in_thread(function: Callable[[*Ts], T], *args: *Ts) -> T:
    """Call the function in a thread."""
    if on_trio():
        return await trio.to_thread.run_sync(function, *args)
    return await asyncio.to_thread(function, *args)


async def until(ready: Callable[[], object]) -> None:
    """Wait until `ready` returns True, for what a thread of its own does. The clock stands."""
    end = time.monotonic() + PATIENCE
    while not ready():
        assert time.monotonic() < end
        await in_thread(time.sleep, 0.001)


# -- Cancelling ------------------------------------------------------------------------------------


class _AsyncioScope:
    """A scope whose task is cancelled once, when `cancel` is called or the deadline passes."""

    def __init__(self, seconds: float = math.inf) -> None:
        self.cancelled_caught = False
        self.cancel_called = False
        self._seconds = seconds
        self._task: asyncio.Task[Any] | None = None
        self._timers: list[asyncio.Handle] = []

    def __enter__(self) -> Self:
        self._task = asyncio.current_task()
        assert self._task is not None
        self._delivered = False
        self._before = self._task.cancelling()
        if self.cancel_called:
            self._deliver_soon()
        elif self._seconds < math.inf:
            loop = asyncio.get_running_loop()
            self._timers.append(loop.call_later(self._seconds, self.cancel))
        return self

    def cancel(self) -> None:
        if self.cancel_called:
            return
        self.cancel_called = True
        if self._task is None:
            return
        if self._task is asyncio.current_task():
            self._deliver_soon()  # if it ends the scope before it waits, nothing is cancelled
        else:
            self._deliver()

    def _deliver_soon(self) -> None:
        self._timers.append(asyncio.get_running_loop().call_soon(self._deliver))

    def _deliver(self) -> None:
        assert self._task is not None
        self._delivered = True
        self._task.cancel()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        exc: BaseException | None,
        traceback: TracebackType | None,
    ) -> bool:
        task, self._task = self._task, None
        assert task is not None
        for timer in self._timers:
            timer.cancel()
        if not self._delivered or task.uncancel() > self._before:
            return False
        self.cancelled_caught = isinstance(exc, asyncio.CancelledError)
        return self.cancelled_caught


async def shielded(awaitable: Coroutine[Any, Any, T]) -> T:
    """Return what it returns, also if the caller is cancelled meanwhile."""
    if on_trio():
        with trio.CancelScope(shield=True):
            return await awaitable
    task = asyncio.create_task(awaitable)
    try:
        return await asyncio.shield(task)
    except asyncio.CancelledError:
        await asyncio.wait({task})
        return task.result()


ScopeLike: TypeAlias = trio.CancelScope | _AsyncioScope


def CancelScope() -> ScopeLike:  # noqa: N802  trio's name
    """Create a cancel scope."""
    return trio.CancelScope() if on_trio() else _AsyncioScope()


def move_on_after(seconds: float) -> ScopeLike:
    """Return a cancel scope that is cancelled after so many seconds."""
    return trio.move_on_after(seconds) if on_trio() else _AsyncioScope(seconds)


@contextmanager
def fail_after(seconds: float) -> Iterator[ScopeLike]:
    """Raise TimeoutError if the block takes longer."""
    with move_on_after(seconds) as scope:
        yield scope
    if scope.cancelled_caught:
        raise TimeoutError(f"not over after {seconds:g} s")


class _AsyncioNursery:
    def __init__(self, group: asyncio.TaskGroup, scope: _AsyncioScope) -> None:
        self.cancel_scope = scope
        self._group = group

    def start_soon(self, function: Callable[[*Ts], Awaitable[Any]], *args: *Ts) -> None:
        async def run() -> None:
            await function(*args)

        self._group.create_task(run())


Nursery: TypeAlias = trio.Nursery | _AsyncioNursery


@asynccontextmanager
async def open_nursery() -> AsyncIterator[Nursery]:
    """Open a nursery. On asyncio it is a task group in a scope."""
    if on_trio():
        async with trio.open_nursery() as nursery:
            yield nursery
        return
    with _AsyncioScope() as scope:
        async with asyncio.TaskGroup() as group:
            yield _AsyncioNursery(group, scope)
            if scope.cancel_called:
                await asyncio.sleep(0)  # the cancellation is on its way


@asynccontextmanager
async def open_quiet_nursery() -> AsyncIterator[Nursery]:
    """Open a nursery that is cancelled at the end, and raises what its block raises."""
    failure: BaseException | None = None
    try:
        async with open_nursery() as nursery:
            try:
                yield nursery
            except BaseException as exc:
                failure = exc
                raise
            nursery.cancel_scope.cancel()
    except BaseExceptionGroup:
        if isinstance(failure, Exception):
            raise failure from None
        raise


# -- Both ends of a conversation -------------------------------------------------------------------


class Stream(Protocol):
    """An end of a memory pair."""

    async def send_all(self, data: bytes) -> None: ...
    async def receive_some(self, max_bytes: int | None = None) -> bytes | bytearray: ...
    async def aclose(self) -> None: ...


def memory_pair() -> tuple[Any, Any]:
    """Return two streams, each the other's peer."""
    return mcp_trio.memory_pair() if on_trio() else asyncio_memory_pair()


def connect(target: Any, **options: Any) -> AbstractAsyncContextManager[Any]:
    """Connect to a server, with the options that both drivers have."""
    if "trace" in options and not on_trio():  # an option of mcp_trio, which tests find useful
        return _connect_traced(target, **options)
    found: AbstractAsyncContextManager[AbstractClient] = package().connect(target, **options)
    return found


@asynccontextmanager
async def _connect_traced(
    server: Server, trace: Callable[[str, bytes], object], record: Any = None, **options: Any
) -> AsyncIterator[mcp_asyncio_shim.Client]:
    ours, theirs = asyncio_memory_pair()
    ours.transport.on_line = partial(trace, "sent")
    theirs.transport.on_line = partial(trace, "received")
    async with open_nursery() as nursery:
        nursery.start_soon(serve_stream, server, theirs)
        async with (
            open_recorder(record, "client", "memory") as recorder,
            _connect_on_asyncio(ours, options, recorder) as client,
        ):
            yield client


def connect_stream(stream: Any, **options: Any) -> AbstractAsyncContextManager[Any]:
    """Connect to the server at the other end of a memory pair."""
    if on_trio():
        return mcp_trio.connect_stream(stream, **options)
    return _connect_on_asyncio(stream, options)


@asynccontextmanager
async def _connect_on_asyncio(
    stream: MemoryEnd, options: Any, recorder: Recorder | None = None
) -> AsyncIterator[mcp_asyncio_shim.Client]:
    config = client_config(options)
    record = None if recorder is None else recorder.stream()
    carry = partial(Link, (stream.reader, stream.writer), record=record)
    async with aclosing(mcp_asyncio_shim.Client(config, options, carry)) as client:
        await client.open()
        yield client


def open_server(
    server: Server, store: SessionStore | None = None, *, warns: bool = True
) -> AbstractAsyncContextManager[ServedServer]:
    """Enter the lifespan of a server, and start what runs its tasks."""
    opening = trio_tasks.open_server if on_trio() else asyncio_tasks.open_server
    return opening(server, store=store, warns=warns)


@asynccontextmanager
async def open_task_runtime() -> AsyncIterator[TaskRuntime]:
    """Open the runtime of a server's tasks, without a server."""
    async with open_quiet_nursery() as nursery:
        if isinstance(nursery, trio.Nursery):
            yield trio_tasks.TrioTaskRuntime(nursery)
            return
        runtime = asyncio_tasks.AsyncioTaskRuntime()
        try:
            yield runtime
        finally:
            await runtime.aclose()


async def serve_conversation(served: ServedServer, stream: Any) -> None:
    """Serve one client of an open server."""
    if on_trio():
        await trio_server.serve_conversation(served, stream)
    else:
        await asyncio_server.serve_connection(served, (stream.reader, stream.writer))


def open_recorder(
    record: Any, observer: Any, transport: str, target: Sequence[str] = ()
) -> AbstractAsyncContextManager[Recorder | None]:
    """Open the recorder of a conversation."""
    if on_trio():
        return trio_recording.open_recorder(record, observer, transport, target)
    return asyncio_runtime.open_recorder(record, observer, transport, target)


def stop_reading(stream: Any) -> None:
    """Let the writes of the other end of a memory pair fail."""
    if on_trio():
        stream._incoming.reader_closed = True
    else:
        stream.transport.peer.fails_at_next_write = True


async def aclose_forcefully(stream: Any) -> None:
    """Close a stream, such as an end of a memory pair, without waiting."""
    if on_trio():
        await trio.aclose_forcefully(stream)
    else:
        stream.transport.abort()


def is_closed(stream: Any) -> bool:
    """True if this end of a memory pair was closed."""
    return bool(stream._outgoing.writer_closed if on_trio() else stream.writer.is_closing())


async def serve_stream(server: Server, stream: Any, **options: Any) -> None:
    """Serve one client at the other end of a memory pair."""
    if on_trio():
        await mcp_trio.serve_stream(server, stream, **options)
    else:
        await mcp_asyncio_shim.serve_streams(server, stream.reader, stream.writer, **options)
