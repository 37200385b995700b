"""The asyncio host: it adds tasks, threads and clocks to the core's `AbstractHost`."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Self, TypeVar, Unpack

from mcp_core.drivers import check_keywords, shows_keywords
from mcp_core.registry import Server
from mcp_core.runtime.host import AbstractHost, HostOptions, HostRuntime, ServerSource

from ._connect import connect
from ._driver import JobTasks, move_on_after
from ._runtime import check_asyncio, logger

if TYPE_CHECKING:
    from collections.abc import Callable

    from mcp_core.adapters import TraceDirectory
    from mcp_core.drivers import ClientConfigOptions
    from mcp_core.host import ServerLaunch
    from mcp_core.runtime import EventLike, Job
    from mcp_core.runtime.host import ClientConnection

    from ._connect import Target
    from ._runtime import Record

__all__ = ["Host"]

T = TypeVar("T")


class _AsyncioHostRuntime(HostRuntime):
    """The runtime of one host. `aclose` cancels its tasks and waits for their end."""

    new_event = staticmethod(asyncio.Event)
    wall_time = staticmethod(time.time)

    def __init__(self) -> None:
        self._tasks = JobTasks()
        self._loop = asyncio.get_running_loop()

    def monotonic(self) -> float:
        return self._loop.time()

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)

    async def wait(self, event: EventLike, seconds: float | None) -> None:
        with move_on_after(seconds):
            await event.wait()

    def start_job(self, job: Job) -> None:
        self._tasks.start_job(job)

    async def in_thread(self, function: Callable[[], T]) -> T:
        return await asyncio.to_thread(function)

    def log_error(self, problem: str, error: BaseException) -> None:
        logger.error("%s", problem, exc_info=error)

    def log_warning(self, text: str) -> None:
        logger.warning("%s", text)

    async def aclose(self) -> None:
        await self._tasks.aclose()


class _TargetSource(ServerSource):
    """A server that the program names: a URL, a command, or a `Server` of this process."""

    def __init__(self, name: str, target: Target, traces: TraceDirectory | None) -> None:
        if isinstance(target, str) and "://" not in target:
            raise TypeError(f"{name}: give a command as a list of words, not as {target!r}")
        self.name = name
        self.needs_pins = not isinstance(target, Server)
        self._target = target
        self._traces = traces

    def connect(
        self,
        options: ClientConfigOptions,
        inputs: Mapping[str, str],
        launch: ServerLaunch | None,
    ) -> ClientConnection:
        record = None if self._traces is None else self._traces.recording(self.name)
        return connect(self._target, record=record, **options)

    def same_as(self, other: Any) -> bool:
        return isinstance(other, _TargetSource) and other._target == self._target


class Host(AbstractHost):
    """Many servers behind one object, for the time of an `async with` block.

    The block begins when each server is ready or has failed, or after `wait` seconds. One that
    fails, or is slow, harms no other. Configuration files and logins belong to `mcp_trio`.

    Args:
        servers: the servers by name, each a URL, a command as a list of words, or a `Server` of
            this process; or `ServerSource`s of your own.
        record: the directory in which the connection to each server is recorded, in a file of its
            own such as `git.mcp.jsonl`; or a `Recording` with options whose `path` it is. It is
            created if need be. The file of the last connection to the same server is kept as
            `git.mcp.jsonl.previous`. A `ServerSource` of yours isn't recorded. Default None.
        options: see `HostOptions`.

    *Resource handling*: at the end of the block all servers are closed side by side, as `connect`
    closes each. No process is left.
    *Error handling*: exceptions of the block propagate unchanged.

    Raises:
        RuntimeError: it is entered a second time, or outside an event loop of asyncio.
        McpTrioError, OSError: when it is entered: the stored approvals cannot be read.
        TypeError: an option is unknown, or a target has another type.
        ValueError: two servers have one name, or there are too many.
    """

    @shows_keywords(HostOptions)
    def __init__(
        self,
        servers: Mapping[str, Target] | Sequence[ServerSource],
        *,
        record: Record = None,
        **options: Unpack[HostOptions],
    ) -> None:
        check_keywords(options, HostOptions, "Host()")
        super().__init__(options)
        self._traces = _trace_directory(record)
        self._given = (
            [_TargetSource(name, target, self._traces) for name, target in servers.items()]
            if isinstance(servers, Mapping)
            else list(servers)
        )
        self._check_sources(self._given)
        self._runtime: _AsyncioHostRuntime | None = None

    async def __aenter__(self) -> Self:
        check_asyncio()
        if self._runtime is not None:
            raise RuntimeError("a host is for one block: make another one")
        self._runtime = _AsyncioHostRuntime()
        try:
            await self._open(self._runtime, self._given)
        except BaseException:
            await self.__aexit__()
            raise
        return self

    async def __aexit__(self, *_: object) -> None:
        assert self._runtime is not None
        self._close()
        await self._runtime.aclose()

    def add(self, server: str, target: Target) -> None:
        """Add a server, and begin to connect to it.

        Args:
            server: its name in this host.
            target: as in the mapping that the host is made of.

        Raises:
            TypeError: the target has another type.
            ValueError: there is a server of that name, or too many.
        """
        self.add_source(_TargetSource(server, target, self._traces))


def _trace_directory(record: Record) -> TraceDirectory | None:
    if record is None:
        return None
    from mcp_core.adapters import TraceDirectory  # on first use, as the recorder

    return TraceDirectory(record)
