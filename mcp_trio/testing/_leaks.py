"""What a test leaves behind: tasks, descriptors, child processes, threads, and connections that still hold something.

Rules of this file:

1. Looking changes nothing: no child is reaped, nothing is closed. Only when something seems left over is garbage collected and
   a second waited, for what is on its way out.
2. What was there before is nobody's fault. What counts is what is new at the end.
3. It costs well under a millisecond for a test that leaves nothing.

What *left behind* means for a task and for a connection takes some thought. A task of trio's ends with its nursery, and the run
with its main task; so the only tasks that can be left are the system tasks, which nobody waits for. And a `Connection` is pure: a
test may make one, ask it something and forget it. Only one that was made in a run of trio or asyncio is carried by somebody, and
has to be closed at the end, with no request of either side in its tables and no event that nobody took.

It does not know pytest.
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

__all__ = ["KINDS", "Left", "Watch"]

KINDS: Final = ("task", "descriptor", "child", "thread", "connection")

_PATIENCE: Final = 1.0
_TICK: Final = 0.01

_HELD: Final[Mapping[str, str]] = {
    "in_flight": "requests whose handlers have not come back",
    "waiting": "requests that still wait",
    "calls": "calls that nobody ended",
    "events": "events that nobody took",
}
_KINDS_OF_FILE: Final = {
    stat.S_IFREG: "a file",
    stat.S_IFDIR: "a directory",
    stat.S_IFIFO: "a pipe",
    stat.S_IFSOCK: "a socket",
    stat.S_IFCHR: "a device",
}
_OF_TRIO: Final = "<TrioToken.run_sync_soon task>"
# They keep for ten seconds what the next `to_thread.run_sync` will use.
_IDLE_THREAD: Final = re.compile(r"Trio thread \d+")


class Left(NamedTuple):
    """One thing that was left behind: one of `KINDS`, and what it is."""

    kind: str
    what: str


class Watch(trio.abc.Instrument):
    """Notes what there is when it is entered; `left` tells what is there afterwards that was not there then.

    It sees the tasks of the runs whose test function went through `joined`, and no others.
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
        self._make_connection = original = Connection.__init__

        @functools.wraps(original)
        def noted(conn: Connection, *args: Any, **named: Any) -> None:
            original(conn, *args, **named)
            if _in_a_run():
                self._connections.append(conn)

        Connection.__init__ = noted  # type: ignore[assignment, method-assign]
        return self

    def __exit__(self, *_: object) -> None:
        Connection.__init__ = self._make_connection  # type: ignore[method-assign]

    def left(self, allowed: Collection[str] = ()) -> list[Left]:
        """What was left behind, but for the kinds that are `allowed`. Not to be asked while a run is under way."""
        if not self._look(allowed):
            return []
        gc.collect()
        deadline = time.monotonic() + _PATIENCE
        while (found := self._look(allowed)) and time.monotonic() < deadline:
            time.sleep(_TICK)
        return found

    def _look(self, allowed: Collection[str]) -> list[Left]:
        looks: dict[str, Callable[[], Iterable[str]]] = {
            "task": lambda: self._tasks,
            "descriptor": self._new_descriptors,
            "child": lambda: [what for pid, what in children().items() if pid not in self._children],
            "thread": self._new_threads,
            "connection": self._held_connections,
        }
        return [Left(kind, what) for kind in KINDS if kind not in allowed for what in looks[kind]()]

    def _new_descriptors(self) -> list[str]:
        new = descriptors().items() - self._descriptors.items()
        return [f"{fd}: {described(fd)}" for fd, _ in sorted(new)]

    def _new_threads(self) -> list[str]:
        new = threads().items() - self._threads.items()
        return sorted(name for _, name in new if not _IDLE_THREAD.fullmatch(name))

    def _held_connections(self) -> list[str]:
        return [complaint for conn in self._connections for complaint in _complaints(conn)]

    # -- Tasks ----------------------------------------------------------------------------------------------------------------

    def joined(
        self, function: Callable[..., Coroutine[Any, Any, Any]]
    ) -> Callable[..., Coroutine[Any, Any, Any]]:
        """`function`, whose run, if it is one of trio's, will be watched."""

        @functools.wraps(function)
        async def watched(*args: Any, **named: Any) -> Any:
            if trio.lowlevel.in_trio_run():
                self._root = trio.lowlevel.current_root_task()
                self._main = _main_task()
                trio.lowlevel.add_instrument(self)
            return await function(*args, **named)

        return watched

    def task_exited(self, task: trio.lowlevel.Task) -> None:
        """Part of `trio.abc.Instrument`."""
        if task is self._main and self._root is not None:
            # All that now run beside it are system tasks, and will be cancelled.
            others = [other for nursery in self._root.child_nurseries for other in nursery.child_tasks]
            self._tasks += [other.name for other in others if other is not task and other.name != _OF_TRIO]
            self._main = self._root = None


def _main_task() -> trio.lowlevel.Task:
    task, root = trio.lowlevel.current_task(), trio.lowlevel.current_root_task()
    while task.parent_nursery is not None and task.parent_nursery.parent_task is not root:
        task = task.parent_nursery.parent_task
    return task


def _in_a_run() -> bool:
    asyncio = sys.modules.get("asyncio")
    return trio.lowlevel.in_trio_run() or (asyncio is not None and asyncio._get_running_loop() is not None)


def _complaints(conn: Connection) -> Iterable[str]:
    if conn.state is not State.CLOSED:
        yield f"{conn!r}: it was not closed"
    stats = conn.stats()
    for name, what in _HELD.items():
        if count := getattr(stats, name):
            yield f"{conn!r}: {count} {what}"


# -- What the system knows ----------------------------------------------------------------------------------------------------


def descriptors() -> dict[int, tuple[int, int]]:
    """Open descriptors, each with device and inode, so that one that was closed and opened anew is another one."""
    found = {}
    for name in _names("/dev/fd"):
        try:
            status = os.fstat(int(name))
        except OSError:
            continue  # the one by which the directory was read
        found[int(name)] = status.st_dev, status.st_ino
    return found


def described(fd: int) -> str:
    """What a descriptor leads to, as well as the system can tell."""
    try:
        return os.readlink(f"/dev/fd/{fd}")  # noqa: PTH115  no path, but a name such as `pipe:[4711]`
    except OSError:
        pass
    try:
        return _KINDS_OF_FILE.get(stat.S_IFMT(os.fstat(fd).st_mode), "of unknown kind")
    except OSError:
        return "closed meanwhile"


def threads() -> dict[threading.Thread, str]:
    """Threads with their names: trio gives a thread that works the name of its work."""
    return {thread: thread.name for thread in threading.enumerate()}


def children() -> dict[int, str]:
    """Processes that we have started, or inherited, and that are not reaped, by number."""
    if _childless():
        return {}
    return _children_by_proc() if Path("/proc/self/stat").exists() else _children_by_ps()


def _childless() -> bool:
    """Whether there is certainly no child. Cheap, and reaps nothing."""
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
            words = Path("/proc", name, "cmdline").read_bytes().replace(b"\0", b" ").strip()
        except OSError:
            continue  # gone meanwhile
        state, parent, *_ = rest.split()
        if int(parent) == os.getpid():
            words = words or program.partition(b"(")[2]  # what is dead has no words any more
            found[int(name)] = _child(name, state.decode(), words.decode(errors="replace"))
    return found


def _children_by_ps() -> dict[int, str]:
    ps = subprocess.Popen(
        ["ps", "-A", "-o", "pid=,ppid=,state=,command="],  # noqa: S607  it is not in the same place everywhere
        stdout=subprocess.PIPE,
        text=True,
        errors="replace",
    )
    found = {}
    for line in ps.communicate()[0].splitlines():
        pid, parent, state, words = line.split(None, 3)
        if int(parent) == os.getpid() and int(pid) != ps.pid:
            found[int(pid)] = _child(pid, state, words)
    return found


def _child(pid: str, state: str, words: str) -> str:
    return f"{pid}: {words}{', dead and not reaped' if state.startswith('Z') else ''}"


def _names(directory: str) -> list[str]:
    try:
        return os.listdir(directory)  # noqa: PTH208  the names are all there is
    except OSError:
        return []  # a system that does not tell
