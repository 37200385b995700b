"""The trio host: it adds tasks, threads and clocks to the core's `AbstractHost`."""

from __future__ import annotations

import logging
import math
import os
import time
from collections.abc import Mapping, Sequence
from contextlib import AsyncExitStack
from typing import TYPE_CHECKING, Final, Self, TypeAlias, TypeVar, Unpack

import trio

from mcp_core.drivers import check_keywords, shows_keywords, type_on_first_use
from mcp_core.runtime.host import AbstractHost, HostOptions, HostRuntime, ServerSource
from mcp_trio._nursery import open_quiet_nursery
from mcp_trio._runtime import check_trio, start_job

from ._approval_file import ApprovalFile
from ._config_files import ConfigFiles, find_config_files, single_config_file
from ._configured import configured_sources, kept_sources
from ._sources import HostStderr, HostTrace, SourceOptions, Target, make_source

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from types import TracebackType

    from mcp_core.adapters import Recording
    from mcp_core.host import ConfigProblem, MergedServers
    from mcp_core.runtime import EventLike, Job
    from mcp_trio.auth._authorization import LoginConfig
else:
    Recording = type_on_first_use("mcp_core.adapters", "Recording")
    LoginConfig = type_on_first_use("mcp_trio.auth._authorization", "LoginConfig")

__all__ = ["Host", "HostConfig"]

T = TypeVar("T")

# The servers by name or as sources, a file, the places of files, or None for the current
# directory's.
HostConfig: TypeAlias = (
    Mapping[str, Target] | list[ServerSource] | str | os.PathLike[str] | ConfigFiles | None
)

_log = logging.getLogger("mcp_trio")
_MAX_LOGGED: Final = 10  # problems of configuration files


class _TrioHostRuntime(HostRuntime):
    """The runtime of one host. `nursery` has its tasks."""

    new_event = staticmethod(trio.Event)
    monotonic = staticmethod(trio.current_time)
    wall_time = staticmethod(time.time)
    sleep = staticmethod(trio.sleep)

    def __init__(self, nursery: trio.Nursery) -> None:
        self._nursery = nursery

    async def wait(self, event: EventLike, seconds: float | None) -> None:
        with trio.move_on_after(math.inf if seconds is None else seconds):
            await event.wait()

    def start_job(self, job: Job) -> None:
        start_job(job, self._nursery, lambda: None)

    async def in_thread(self, function: Callable[[], T]) -> T:
        return await trio.to_thread.run_sync(function)

    def log_error(self, problem: str, error: BaseException) -> None:
        _log.error("%s", problem, exc_info=error)

    def log_warning(self, text: str) -> None:
        _log.warning("%s", text)


class Host(AbstractHost):
    """Many servers behind one object, for the time of an `async with` block::

        async with Host({"git": ["uvx", "mcp-server-git"], "notes": notes_server}) as host:
            for tool in host.tools():
                print(tool.name, tool.description)
            result = await host.call("mcp__git__git_status", {"repo_path": "."})

    The block begins when each server is ready or has failed, or after `wait` seconds. A server that
    fails or is slow doesn't affect the others: `status()` has the reason, and it is started again.

    Args:
        config: the servers by name, each a URL, a command as a list of words, a `Server` of this
            process, or a mapping with the members of an entry in `.mcp.json`, such as `command`,
            `args`, `env` and `cwd`, or `url` and `headers`; or the path of a configuration file,
            which is read as a project's file; or `ConfigFiles`; or a list of `ServerSource`s of
            your own. By default `find_config_files` of the current directory: `.mcp.json` of the
            project, and the files of the user and the administrator.
        auth: how to get access tokens for servers at `http://` and `https://`, as for
            `connect_http`. By default those that were stored by an earlier login, such as `mcp-trio
            login`, are used, and no browser is opened: the server is then "needs login".
        env: variables that each server that is started gets beside those that every child inherits;
            a server's own `env` comes before it. Default none.
        inherit_env: True to let each server that is started inherit the whole environment, with any
            secrets in it. Default False.
        stderr: as for `connect_stdio`, for each server that is started. A function gets the
            server's name and the line.
        trace: as for a client, but the first argument is the server's name.
        record: the directory in which the connection to each server is recorded, in a file of its
            own such as `git.mcp.jsonl`; or a `Recording` with options whose `path` it is. It is
            created if it doesn't exist. The file of the last connection to the same server is kept
            as `git.mcp.jsonl.previous`. A `ServerSource` of your own isn't recorded. Default None.
        options: see `HostOptions`. `approvals` defaults to `ApprovalFile()` for servers of
            configuration files, so that what `mcp-trio servers approve` has stored counts.

    *Resource handling*: the end of the block closes all servers at the same time, each as `connect`
    does. No process is left. *Error handling*: exceptions of the block propagate unchanged, not in
    a group.

    Raises:
        RuntimeError: it is entered a second time, or outside a run of trio.
        McpTrioError, OSError: when it is entered: the stored approvals cannot be read.
        InvalidConfig: when it is entered: a file of the administrator cannot be used. Problems of
            other files are logged and in `configuration`, and their other servers are used.
        TypeError: an option is unknown, or a target has another type.
        ValueError: an entry is wrong, there are too many servers, or a name is empty; for files
            when it is entered.
    """

    @shows_keywords(HostOptions)
    def __init__(
        self,
        config: HostConfig = None,
        *,
        auth: LoginConfig | bool | None = None,
        env: Mapping[str, str] | None = None,
        inherit_env: bool = False,
        stderr: HostStderr = "forward",
        trace: HostTrace | None = None,
        record: str | os.PathLike[str] | Recording | None = None,
        **options: Unpack[HostOptions],
    ) -> None:
        check_keywords(options, HostOptions, "Host()")
        self._shared = SourceOptions(
            auth,
            stderr,
            trace,
            _recording_of(record),
            env=dict(env or {}),
            inherit_env=inherit_env,
        )
        given = self._given(config)
        super().__init__(options)
        if given is None and options.get("approvals") is None:
            self._default_approvals = ApprovalFile()
        self._check_sources(given or ())
        self._config = config
        # The servers of configuration files as they were read, or None if there are no files.
        self.configuration: MergedServers | None = None
        self._resources = AsyncExitStack()
        self._reloading = trio.Lock()  # otherwise an older file's servers could replace newer ones
        self._was_entered = False

    def _given(self, config: HostConfig) -> list[ServerSource] | None:
        """Return the servers that the program names, or None if they are in files."""
        if isinstance(config, Mapping):
            return [make_source(name, target, self._shared) for name, target in config.items()]
        return config if isinstance(config, list) else None

    async def _read(self, config: HostConfig) -> list[ServerSource]:
        given = self._given(config)
        if given is not None:
            self.configuration = None
            return list(given)
        if config is None:
            files = await trio.to_thread.run_sync(find_config_files, ".")
        elif isinstance(config, ConfigFiles):
            files = config
        else:
            assert not isinstance(config, Mapping | list)
            files = single_config_file(config)
        self.configuration = await trio.to_thread.run_sync(files.read)
        _log_problems(self.configuration.problems)
        return configured_sources(files, self.configuration, self._shared)

    async def __aenter__(self) -> Self:
        check_trio()
        if self._was_entered:
            raise RuntimeError("a host is for one block: make another one")
        self._was_entered = True
        async with AsyncExitStack() as opening:
            nursery = await opening.enter_async_context(open_quiet_nursery())
            opening.callback(self._close)
            sources = await self._read(self._config)
            await self._open(_TrioHostRuntime(nursery), sources)
            self._resources = opening.pop_all()
        return self

    async def __aexit__(
        self,
        exc_type: type[BaseException] | None,
        exc: BaseException | None,
        traceback: TracebackType | None,
    ) -> bool | None:
        return await self._resources.__aexit__(exc_type, exc, traceback)

    def add(self, server: str, target: Target) -> None:
        """Add a server, and begin to connect to it.

        Args:
            server: its name in this host.
            target: as in the mapping that `Host` takes.

        Raises:
            TypeError: the target has another type.
            ValueError: it is an entry that is wrong, there is a server of that name, or too many.
        """
        self.add_source(make_source(server, target, self._shared))

    async def reload(self, config: HostConfig = None) -> None:
        """Read configuration and approvals again, and connect to what is new or approved now.

        Servers that are configured as before stay connected, and so do those whose file, or whose
        entry in it, cannot be read now: it may be half written. If the administrator's lists have
        changed, all servers are connected anew, and those that the lists now deny are removed. A
        second call waits for the first one.

        Args:
            config: as for `Host`; by default what was given last, here or when it was created.

        Raises:
            InvalidConfig: a file of the administrator cannot be used.
            InvalidApprovals: the stored approvals cannot be used.
            TypeError: a target has another type.
            ValueError: there are too many servers. Then nothing is changed.
        """
        async with self._reloading:
            if config is None:
                config = self._config
            sources = await self._read(config)
            self._config = config
            if self.configuration is not None:
                found = {source.name for source in sources}
                sources += kept_sources(self._sources.values(), self.configuration, found)
            await self.replace_sources(sources)


def _recording_of(
    record: str | os.PathLike[str] | Recording | None,
) -> Callable[[str], Recording] | None:
    if record is None:
        return None
    from mcp_core.adapters import TraceDirectory  # on first use, as the recorder

    return TraceDirectory(record).recording


def _log_problems(problems: Sequence[ConfigProblem]) -> None:
    """Log the first problems of configuration files, such as that there is no file of that name."""
    for problem in problems[:_MAX_LOGGED]:
        _log.warning("%s", problem)
    if len(problems) > _MAX_LOGGED:
        _log.warning("%d more problems of configuration files", len(problems) - _MAX_LOGGED)
