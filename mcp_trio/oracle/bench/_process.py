"""The processor time and the memory of a target's processes, as Linux reports them.

Other systems report nothing: all figures are None there.

Source: proc_pid_stat(5), proc_pid_statm(5), proc_net_tcp(5), clock_getcpuclockid(3).
"""

from __future__ import annotations

import os
import sys
import time
from contextlib import suppress
from typing import TYPE_CHECKING, Final, NamedTuple, Protocol

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = ["ChildrenMeter", "GroupMeter", "ListenerMeter", "Meter", "NoMeter"]

_LISTENS: Final = "0A"  # the state in /proc/net/tcp
_DEAD: Final = (b"Z", b"X")
_MAX_SEARCHED: Final = 10_000  # processes whose descriptors are searched for a socket


class Meter(Protocol):
    """Measures processes."""

    def cpu(self) -> float | None:
        """Return the processor time that they have used so far, in seconds."""

    def memory(self) -> int | None:
        """Return their resident memory, in bytes. Pages that several share count several times."""


class NoMeter:
    """Measures nothing: the target's processes aren't known."""

    def cpu(self) -> float | None:
        """Return None."""
        return None

    def memory(self) -> int | None:
        """Return None."""
        return None


class _Stat(NamedTuple):
    """A running process. `reaped` is the time of the children it has waited for, in ticks."""

    pid: int
    parent: int
    group: int
    session: int
    own: int
    reaped: int


class GroupMeter:
    """Measures a program that leads a session, with all processes of its session and group.

    Args:
        leader: the program's process id.
    """

    def __init__(self, leader: int) -> None:
        self._leader = leader

    def cpu(self) -> float | None:
        """Return the processor time that they have used so far, in seconds."""
        return _cpu(self._processes())

    def memory(self) -> int | None:
        """Return their resident memory, in bytes."""
        return _memory(each.pid for each in self._processes())

    def _processes(self) -> list[_Stat]:
        return [each for each in _all() if self._leader in (each.session, each.group)]


class ListenerMeter:
    """Measures the processes of this machine that listen on a port, and their descendants.

    A server of another user isn't found.

    Args:
        port: the TCP port.
    """

    def __init__(self, port: int) -> None:
        self._port = port
        self._listeners: set[int] = set()

    def cpu(self) -> float | None:
        """Return the processor time that they have used so far, in seconds."""
        return _cpu(self._processes())

    def memory(self) -> int | None:
        """Return their resident memory, in bytes."""
        return _memory(each.pid for each in self._processes())

    def _processes(self) -> list[_Stat]:
        processes = {each.pid: each for each in _all()}
        if not self._listeners or not self._listeners <= processes.keys():
            # A search reads the descriptors of all processes, so it isn't made each time.
            sockets = _listening_sockets(self._port)
            pids = list(processes)[:_MAX_SEARCHED] if sockets else []
            self._listeners = {pid for pid in pids if _has_socket(pid, sockets)} - {os.getpid()}
        found = set(self._listeners)
        while more := {
            pid for pid, each in processes.items() if each.parent in found and pid not in found
        }:
            found |= more
        return [processes[pid] for pid in found]


class ChildrenMeter:
    """Measures all processes that this one has started, and their descendants."""

    def cpu(self) -> float | None:
        """Return the processor time that those that still run have used so far, in seconds."""
        return _cpu(_started())

    def memory(self) -> int | None:
        """Return their resident memory, in bytes."""
        return _memory(each.pid for each in _started())


def _started() -> list[_Stat]:
    """Return the processes that this one has started, and their descendants."""
    found = {os.getpid()}
    processes = {each.pid: each for each in _all()}
    while more := {
        pid for pid, each in processes.items() if each.parent in found and pid not in found
    }:
        found |= more
    return [processes[pid] for pid in found if pid in processes and pid != os.getpid()]


def _all() -> list[_Stat]:
    """Return all running processes."""
    found = []
    if sys.platform == "linux":
        with suppress(OSError):
            for name in os.listdir("/proc"):  # noqa: PTH208  only names are needed
                stat = _stat(name) if name.isdecimal() else None
                if stat is not None:
                    found.append(stat)
    return found


def _stat(name: str) -> _Stat | None:
    fields = _read(f"/proc/{name}/stat").rpartition(b")")[2].split()
    # The program's name is in parentheses, and may have any bytes in it.
    if len(fields) < 15 or fields[0] in _DEAD:
        return None
    numbers = [int(field) for field in fields[1:15]]
    own, reaped = sum(numbers[10:12]), sum(numbers[12:14])
    return _Stat(int(name), numbers[0], numbers[1], numbers[2], own, reaped)


def _cpu(processes: list[_Stat]) -> float | None:
    """Return the time that processes, and the children that they have waited for, have used."""
    if not processes:
        return None
    ticks = os.sysconf("SC_CLK_TCK")
    total = 0.0
    for each in processes:
        try:
            # The clock of a process, as clock_getcpuclockid(3) makes it. Ticks are 10 ms.
            used = time.clock_gettime(~each.pid << 3 | 2)
        except OSError:  # it has ended meanwhile
            used = each.own / ticks
        total += used + each.reaped / ticks
    return total


def _memory(pids: Iterable[int]) -> int | None:
    pages = [fields[1] for pid in pids if len(fields := _read(f"/proc/{pid}/statm").split()) > 1]
    return sum(map(int, pages)) * os.sysconf("SC_PAGE_SIZE") if pages else None


def _listening_sockets(port: int) -> set[str]:
    """Return the links, in a process's descriptors, of the sockets that listen on a port."""
    found = set()
    for path in ("/proc/net/tcp", "/proc/net/tcp6"):
        for line in _read(path).decode("ascii", "replace").splitlines():
            fields = line.split()
            if len(fields) < 10 or fields[3] != _LISTENS:
                continue
            if int(fields[1].rpartition(":")[2], 16) == port:
                found.add(f"socket:[{fields[9]}]")
    return found


def _has_socket(pid: int, sockets: set[str]) -> bool:
    try:
        names = os.listdir(f"/proc/{pid}/fd")  # noqa: PTH208  only names are needed
    except OSError:  # it has ended, or belongs to another user
        return False
    for name in names:
        with suppress(OSError):  # it is closed meanwhile
            if os.readlink(f"/proc/{pid}/fd/{name}") in sockets:  # noqa: PTH115
                return True
    return False


def _read(path: str) -> bytes:
    """Return a file's contents, b"" if it can't be read."""
    try:
        with open(path, "rb", buffering=0) as file:  # noqa: PTH123  a third of the time
            return file.read()
    except OSError:
        return b""
