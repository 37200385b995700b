"""The asyncio host: it adds tasks, threads and clocks to the core's `AbstractHost`."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, Self, TypeVar, Unpack

import msgspec

from mcp_core.drivers import check_keywords, shows_keywords
from mcp_core.registry import Server
from mcp_core.runtime.host import (
    AbstractHost,
    EntrySource,
    HostOptions,
    HostRuntime,
    ServerSource,
    check_target,
    target_secrets,
)

from ._connect import Target, connect
from ._driver import JobTasks, move_on_after
from ._runtime import Record, check_asyncio, logger

if TYPE_CHECKING:
    from collections.abc import Callable

    from mcp_core.adapters import TraceDirectory
    from mcp_core.drivers import ClientConfigOptions
    from mcp_core.host import ServerLaunch
    from mcp_core.runtime import EventLike, Job
    from mcp_core.runtime.host import ClientConnection


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


class _SourceOptions(NamedTuple):
    """The options that the sources of one host share: `env`, `inherit_env` and `record`."""

    env: Mapping[str, str]
    inherit_env: bool
    traces: TraceDirectory | None

    def secrets_of(self, target: Target | None) -> frozenset[str]:
        """Return the secrets of a server that the program names; None for those of any command."""
        return target_secrets(target, self.env, os.environ if self.inherit_env else None)

    def record(self, server: str, secrets: frozenset[str] = frozenset()) -> Record:
        """Return the recording of the next connection to a server, which hides `secrets`."""
        if self.traces is None:
            return None
        recording = self.traces.recording(server)
        return msgspec.structs.replace(recording, secrets=recording.secrets | secrets)


class _TargetSource(ServerSource):
    """A server that the program names: a URL, a command, or a `Server` of this process."""

    def __init__(self, name: str, target: Target, shared: _SourceOptions) -> None:
        check_target(name, target)
        self.name = name
        self.needs_pins = not isinstance(target, Server)
        self._target = target
        self._shared = shared

    def connect(
        self,
        options: ClientConfigOptions,
        inputs: Mapping[str, str],
        launch: ServerLaunch | None,
    ) -> ClientConnection:
        shared = self._shared
        self.secrets = shared.secrets_of(self._target)
        return connect(
            self._target,
            env=shared.env,
            inherit_env=shared.inherit_env,
            record=shared.record(self.name, self.secrets),
            **options,
        )

    def same_as(self, other: Any) -> bool:
        return isinstance(other, _TargetSource) and other._target == self._target


class _EntrySource(EntrySource):
    """A server that the program describes as a configuration file does."""

    def __init__(self, name: str, entry: Mapping[str, Any], shared: _SourceOptions) -> None:
        super().__init__(name, entry)
        self._shared = shared

    def connect(
        self,
        options: ClientConfigOptions,
        inputs: Mapping[str, str],
        launch: ServerLaunch | None,
    ) -> ClientConnection:
        shared = self._shared
        expanded = self.expand(os.environ, windows=os.name == "nt")
        target: Target = expanded.url or ""
        if expanded.command is not None:
            target = (expanded.command, *expanded.args)
            self.secrets |= shared.secrets_of(None)
        return connect(
            target,
            headers=expanded.headers,
            env={**shared.env, **expanded.env},
            inherit_env=shared.inherit_env,
            cwd=expanded.cwd,
            record=shared.record(self.name, self.secrets),
            **options,
        )


def _make_source(
    name: str, target: Target | Mapping[str, Any], shared: _SourceOptions
) -> ServerSource:
    if isinstance(target, Mapping):
        return _EntrySource(name, target, shared)
    return _TargetSource(name, target, shared)


class Host(AbstractHost):
    """Many servers behind one object, for the time of an `async with` block.

    The block begins when each server is ready or has failed, or after `wait` seconds. One that
    fails, or is slow, harms no other. Configuration files and logins belong to `mcp_trio`.

    Args:
        servers: the servers by name, each a URL, a command as a list of words, a `Server` of this
            process, or a mapping with the members of an entry in `.mcp.json`, such as `command`,
            `args`, `env` and `cwd`, or `url` and `headers`; or `ServerSource`s of your own.
        env: variables that each server that is started gets beside those that every child inherits;
            a server's own `env` comes before it. Default none.
        inherit_env: True to let each server that is started inherit the whole environment, with any
            secrets in it. Default False.
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
        ValueError: an entry is wrong, two servers have one name, or there are too many.
    """

    @shows_keywords(HostOptions)
    def __init__(
        self,
        servers: Mapping[str, Target | Mapping[str, Any]] | Sequence[ServerSource],
        *,
        env: Mapping[str, str] | None = None,
        inherit_env: bool = False,
        record: Record = None,
        **options: Unpack[HostOptions],
    ) -> None:
        check_keywords(options, HostOptions, "Host()")
        super().__init__(options)
        self._shared = _SourceOptions(dict(env or {}), inherit_env, _trace_directory(record))
        self._given = (
            [_make_source(name, target, self._shared) for name, target in servers.items()]
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

    def add(self, server: str, target: Target | Mapping[str, Any]) -> None:
        """Add a server, and begin to connect to it.

        Args:
            server: its name in this host.
            target: as in the mapping that the host is made of.

        Raises:
            TypeError: the target has another type.
            ValueError: it is an entry that is wrong, there is a server of that name, or too many.
        """
        self.add_source(_make_source(server, target, self._shared))


def _trace_directory(record: Record) -> TraceDirectory | None:
    if record is None:
        return None
    from mcp_core.adapters import TraceDirectory  # on first use, as the recorder

    return TraceDirectory(record)
