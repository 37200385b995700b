"""Find the processes that a child process has started, from what Linux reports of all processes.

1. A process belongs to the tree if its environment has the child's mark (`_child_environment.py`),
   or if it was started by one that belongs to it. The mark also finds processes that left the
   child's session or whose parent has exited.
2. A process isn't found if its environment was cleared *and* its parent has exited, or if another
   user runs it.
3. The system reuses process ids, so the processes that were found have to be signalled at once.

Source: proc_pid_stat(5), proc_pid_environ(5).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from typing import Final, NamedTuple

__all__ = ["ProcessTree"]

_DEAD: Final = (b"Z", b"X")
# Processes that start during a search are looked for again. On a busy machine there may always be
# some.
_MAX_PASSES: Final = 5


class _Process(NamedTuple):
    """A running process. `started` is in clock ticks since the machine's boot."""

    pid: int
    parent: int
    group: int
    started: int


class ProcessTree:
    """The processes that the process `leader` has started, itself excluded.

    Without `/proc` none is ever found.

    Args:
        leader: the child's id, which leads a process group and hasn't been waited for.
        mark: the mark in its environment.
        list_names: returns the names in `/proc`; an empty list without that directory.
        read: returns a file's contents, given its path in `/proc`, or raises `OSError`.
    """

    def __init__(
        self,
        leader: int,
        mark: str,
        list_names: Callable[[], Iterable[str]],
        read: Callable[[str], bytes],
    ) -> None:
        self._leader = leader
        self._mark = mark.encode()
        self._list_names = list_names
        self._read = read
        self._known: dict[int, int] = {}  # when the processes that were found have started
        started = self._process(str(leader))
        # Its descendants started later, so the environments of older processes aren't read.
        self._since = 0 if started is None else started.started

    def __repr__(self) -> str:
        return f"<ProcessTree of {self._leader}, {len(self._known)} found>"

    def find(self, *, leader_exists: bool, in_group: bool = True) -> list[int]:
        """Return the ids of the tree's running processes.

        What was found once is found again, even if nothing connects it to the tree any more.

        Args:
            leader_exists: False once the leader was waited for. Its id may then belong to another
                process.
            in_group: whether to return processes of the leader's group, too.
        """
        running: dict[int, _Process] = {}
        started_by: defaultdict[int, list[int]] = defaultdict(list)
        unseen = [self._leader] if leader_exists else []
        for process in self._younger_processes():
            pid = process.pid
            running[pid] = process
            started_by[process.parent].append(pid)
            if self._known.get(pid) == process.started or self._has_mark(pid):
                unseen.append(pid)
        self._known = {}
        found = []
        while unseen:
            pid = unseen.pop()
            unseen += started_by.pop(pid, ())
            if pid in running:
                process = running.pop(pid)
                self._known[pid] = process.started
                if in_group or process.group != self._leader:
                    found.append(pid)
        return found

    def _younger_processes(self) -> Iterator[_Process]:
        """Yield the running processes that started later than the leader."""
        seen: set[str] = set()
        for _ in range(_MAX_PASSES):
            names = set(self._list_names()) - seen
            for name in names:
                process = self._process(name)
                if (
                    process is not None
                    and process.started >= self._since
                    and process.pid != self._leader
                ):
                    yield process
            if not names:
                return
            seen |= names

    def _has_mark(self, pid: int) -> bool:
        try:
            return self._mark in self._read(f"{pid}/environ")
        except OSError:
            return False  # it has ended meanwhile, or is another user's

    def _process(self, name: str) -> _Process | None:
        """Return the process of a name in `/proc`; None if it has ended, or is another file."""
        if not name.isdecimal():
            return None
        try:
            stat = self._read(f"{name}/stat")
        except OSError:
            return None  # it has ended meanwhile
        # The program's name is in parentheses, and may have any bytes in it.
        fields = stat.rpartition(b")")[2].split()
        if fields[0] in _DEAD:
            return None
        return _Process(int(name), int(fields[1]), int(fields[2]), int(fields[19]))
