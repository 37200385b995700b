"""Detect what a test leaves behind: tasks, descriptors, child processes, threads, connections.

1. Detection changes nothing: no child is reaped, nothing is closed. Only if something seems left
   are garbage collected and up to a second waited, for what is about to end.
2. Only what is new at the end counts, not what was there before the test.
3. A test without leaks costs well under a millisecond.
"""

from __future__ import annotations

import functools
import gc
import os
import re
import stat
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Collection, Coroutine, Iterable, Mapping
from pathlib import Path
from typing import Any, Final, NamedTuple, Self

import trio

from mcp_core import Connection, State

__all__ = ["KINDS", "Leak", "LeakDetector"]

KINDS: Final = ("task", "descriptor", "child", "thread", "connection")

_TIMEOUT: Final = 1.0  # seconds for resources that are about to be released
_POLL_INTERVAL: Final = 0.01  # seconds

# Numbers of `Connection.stats` that must be zero at the end.
_STATS: Final[Mapping[str, str]] = {
    "in_flight": "requests whose handlers have not returned",
    "waiting": "requests that still wait",
    "calls": "calls that were not ended",
    "events": "events that were not read",
}
_KINDS_OF_FILE: Final = {
    stat.S_IFREG: "a file",
    stat.S_IFDIR: "a directory",
    stat.S_IFIFO: "a pipe",
    stat.S_IFSOCK: "a socket",
    stat.S_IFCHR: "a device",
}
_TRIO_SYSTEM_TASK: Final = "<TrioToken.run_sync_soon task>"
# Trio caches idle threads for ten seconds, for the next `to_thread.run_sync`.
_IDLE_THREAD: Final = re.compile(r"Trio thread \d+")


class Leak(NamedTuple):
    """One leaked resource: one of `KINDS`, and its description."""

    kind: str
    description: str


class LeakDetector(trio.abc.Instrument):
    """A context manager that records the resources at its start; then `leaks` returns new ones.

    Tasks are seen only in trio runs whose main function was wrapped by `watched`. A task of trio
    ends with its nursery, and the run with its main task, so only system tasks can be left.

    A `Connection` is pure: a test may make one and drop it. Only one that was made inside a run of
    trio or asyncio must be closed at the end, without requests of either side and without events.
    """

    def __init__(self) -> None:
        self._tasks: list[str] = []
        self._main: trio.lowlevel.Task | None = None
        self._root: trio.lowlevel.Task | None = None
        self._connections: list[Connection] = []

    def __enter__(self) -> Self:
        self._descriptors = descriptors()
        self._children = children()
        self._threads = threads()
        self._original_init = original = Connection.__init__

        @functools.wraps(original)
        def recording_init(conn: Connection, *args: Any, **named: Any) -> None:
            original(conn, *args, **named)
            if _is_event_loop_running():
                self._connections.append(conn)

        Connection.__init__ = recording_init  # type: ignore[assignment, method-assign]
        return self

    def __exit__(self, *_: object) -> None:
        Connection.__init__ = self._original_init  # type: ignore[method-assign]

    def leaks(self, allowed: Collection[str] = ()) -> list[Leak]:
        """Return what was left behind, except the kinds in `allowed`, which are of `KINDS`.

        Call it when the trio run has ended: it may block for a second.
        """
        if not self._find(allowed):
            return []
        gc.collect()
        deadline = time.monotonic() + _TIMEOUT
        while (found := self._find(allowed)) and time.monotonic() < deadline:
            time.sleep(_POLL_INTERVAL)
        return found

    def _find(self, allowed: Collection[str]) -> list[Leak]:
        finders: dict[str, Callable[[], Iterable[str]]] = {
            "task": lambda: self._tasks,
            "descriptor": self._new_descriptors,
            "child": lambda: [
                what for pid, what in children().items() if pid not in self._children
            ],
            "thread": self._new_threads,
            "connection": self._open_connections,
        }
        return [
            Leak(kind, what) for kind in KINDS if kind not in allowed for what in finders[kind]()
        ]

    def _new_descriptors(self) -> list[str]:
        new = descriptors().items() - self._descriptors.items()
        return [f"{fd}: {describe_descriptor(fd)}" for fd, _ in sorted(new)]

    def _new_threads(self) -> list[str]:
        new = threads().items() - self._threads.items()
        return sorted(name for _, name in new if not _IDLE_THREAD.fullmatch(name))

    def _open_connections(self) -> list[str]:
        return [problem for conn in self._connections for problem in _connection_problems(conn)]

    # -- Tasks -----------------------------------------------------------------------------------

    def watched(
        self, function: Callable[..., Coroutine[Any, Any, Any]]
    ) -> Callable[..., Coroutine[Any, Any, Any]]:
        """Return `function` wrapped so that its run, if it is in trio, is checked for tasks."""

        @functools.wraps(function)
        async def watched(*args: Any, **named: Any) -> Any:
            if trio.lowlevel.in_trio_run():
                self._root = trio.lowlevel.current_root_task()
                self._main = _main_task()
                trio.lowlevel.add_instrument(self)
            return await function(*args, **named)

        return watched

    def task_exited(self, task: trio.lowlevel.Task) -> None:
        """Record the tasks that are left when the main task exits (`trio.abc.Instrument`)."""
        if task is self._main and self._root is not None:
            # The other tasks that still run are system tasks, and will be cancelled.
            others = [
                other for nursery in self._root.child_nurseries for other in nursery.child_tasks
            ]
            self._tasks += [
                other.name
                for other in others
                if other is not task and other.name != _TRIO_SYSTEM_TASK
            ]
            self._main = None
            self._root = None


def _main_task() -> trio.lowlevel.Task:
    task = trio.lowlevel.current_task()
    root = trio.lowlevel.current_root_task()
    while task.parent_nursery is not None and task.parent_nursery.parent_task is not root:
        task = task.parent_nursery.parent_task
    return task


def _is_event_loop_running() -> bool:
    asyncio = sys.modules.get("asyncio")
    return trio.lowlevel.in_trio_run() or (
        asyncio is not None and asyncio._get_running_loop() is not None
    )


def _connection_problems(conn: Connection) -> Iterable[str]:
    if conn.state is not State.CLOSED:
        yield f"{conn!r}: it was not closed"
    stats = conn.stats()
    for name, what in _STATS.items():
        if count := getattr(stats, name):
            yield f"{conn!r}: {count} {what}"


# -- Resources of the process -------------------------------------------------------------------


def descriptors() -> dict[int, tuple[int, int]]:
    """Return the open descriptors, each with device and inode.

    A descriptor number that was closed and used again therefore counts as new.
    """
    found = {}
    for name in _names("/dev/fd"):
        try:
            status = os.fstat(int(name))
        except OSError:
            continue  # the descriptor with which the directory was read
        found[int(name)] = status.st_dev, status.st_ino
    return found


def describe_descriptor(fd: int) -> str:
    """Describe the file behind a descriptor, as far as the system knows it."""
    try:
        return os.readlink(f"/dev/fd/{fd}")  # noqa: PTH115  not a path, but e.g. `pipe:[4711]`
    except OSError:
        pass
    try:
        return _KINDS_OF_FILE.get(stat.S_IFMT(os.fstat(fd).st_mode), "of unknown kind")
    except OSError:
        return "closed meanwhile"


def threads() -> dict[threading.Thread, str]:
    """Return the threads with their names. Trio names a busy worker thread after its function."""
    return {thread: thread.name for thread in threading.enumerate()}


def children() -> dict[int, str]:
    """Return our child processes that aren't reaped, by process id, inherited ones included."""
    if _has_no_children():
        return {}
    return _children_by_proc() if Path("/proc/self/stat").exists() else _children_by_ps()


def _has_no_children() -> bool:
    """Return True if there is certainly no child process. This is cheap and reaps nothing."""
    if not hasattr(os, "waitid"):
        return False
    try:
        os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
    except ChildProcessError:
        return True
    return False


def _children_by_proc() -> dict[int, str]:
    found = {}
    for name in _names("/proc"):
        if not name.isdecimal():
            continue
        try:
            program, _, rest = Path("/proc", name, "stat").read_bytes().rpartition(b")")
            command = Path("/proc", name, "cmdline").read_bytes().replace(b"\0", b" ").strip()
        except OSError:
            continue  # the process has ended meanwhile
        state, parent, *_ = rest.split()
        if int(parent) == os.getpid():
            command = command or program.partition(b"(")[2]  # a zombie has no command line
            found[int(name)] = _child_text(name, state.decode(), command.decode(errors="replace"))
    return found


def _children_by_ps() -> dict[int, str]:
    ps = subprocess.Popen(
        ["ps", "-A", "-o", "pid=,ppid=,state=,command="],  # noqa: S607  its path differs by system
        stdout=subprocess.PIPE,
        text=True,
        errors="replace",
    )
    found = {}
    for line in ps.communicate()[0].splitlines():
        pid, parent, state, command = line.split(None, 3)
        if int(parent) == os.getpid() and int(pid) != ps.pid:
            found[int(pid)] = _child_text(pid, state, command)
    return found


def _child_text(pid: str, state: str, command: str) -> str:
    zombie = ", dead and not reaped" if state.startswith("Z") else ""
    return f"{pid}: {command}{zombie}"


def _names(directory: str) -> list[str]:
    try:
        return os.listdir(directory)  # noqa: PTH208  only names are needed
    except OSError:
        return []  # a system without this directory
