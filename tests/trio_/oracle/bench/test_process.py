"""Which processes are a target's, and what the tables of Linux say about them.

The tables are texts here. `engine/test_programs.py` reads those of real processes.
"""

from __future__ import annotations

import os
import sys
import time
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest

from mcp_trio.oracle.bench import _process
from mcp_trio.oracle.bench._process import ChildrenMeter, GroupMeter, ListenerMeter

if TYPE_CHECKING:
    from collections.abc import Callable

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="other systems report nothing")

TICKS = os.sysconf("SC_CLK_TCK")
PAGE = os.sysconf("SC_PAGE_SIZE")
Files = dict[str, str]


@pytest.fixture
def files(monkeypatch: pytest.MonkeyPatch) -> Files:
    """Return the files of a system without processes. No process has a clock."""
    found: Files = {}

    def no_clock(clock: int) -> float:
        raise OSError(clock)

    def names(path: str) -> list[str]:
        folders = {name.removeprefix("/proc/").partition("/")[0] for name in found}
        return sorted({"self", "net", *folders})

    monkeypatch.setattr(_process, "_read", lambda path: found.get(path, "").encode("latin-1"))
    monkeypatch.setattr(_process, "os", SimpleNamespace(**{**vars(os), "listdir": names}))
    monkeypatch.setattr(_process, "time", SimpleNamespace(clock_gettime=no_clock))
    return found


def add(
    files: Files,
    pid: int,
    parent: int = 1,
    group: int = 0,
    session: int = 0,
    *,
    name: str = "python",
    state: str = "S",
    used: tuple[int, int, int, int] = (0, 0, 0, 0),
    pages: int = 0,
) -> None:
    """Add a process. `used` is its own time in user and system mode, and its children's."""
    numbers = [parent, group, session, 0, -1, 4194304, 11, 12, 13, 14, *used, 20, 0, 1]
    files[f"/proc/{pid}/stat"] = f"{pid} ({name}) {state} {' '.join(map(str, numbers))}\n"
    files[f"/proc/{pid}/statm"] = f"{pages * 3} {pages} 7 1 0 9 0\n"


def seconds(*ticks: int) -> Any:
    return pytest.approx(sum(ticks) / TICKS)


@pytest.mark.parametrize("name", ["python", "a b", "x) S 1 1 1 (", ")"])
def test_times_of_a_process_are_read_behind_its_name(files: Files, name: str) -> None:
    """A program chooses its name, which may have any bytes."""
    add(files, 7, group=7, name=name, used=(100, 20, 3000, 400), pages=5)
    meter = GroupMeter(7)
    assert meter.cpu() == seconds(100, 20, 3000, 400)
    assert meter.memory() == 5 * PAGE


def test_process_with_a_clock_is_measured_by_it(
    files: Files, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ticks are 10 ms, which is too coarse. Of the children that have ended there is no clock."""
    add(files, 7, group=7, used=(100, 20, 3000, 400))
    clocks = {~7 << 3 | 2: 1.234}
    monkeypatch.setattr(time, "clock_gettime", clocks.__getitem__)
    monkeypatch.setattr(_process, "time", time)
    assert GroupMeter(7).cpu() == pytest.approx(1.234 + 3400 / TICKS)


@pytest.mark.parametrize(
    "break_it",
    [
        lambda files: files.clear(),
        lambda files: add(files, 7, group=7, state="Z", pages=5),
        lambda files: add(files, 7, group=7, state="X", pages=5),
        lambda files: files.update({"/proc/7/stat": "7 (python) S 1 7"}),
        lambda files: add(files, 8, group=8, pages=5),
    ],
)
def test_group_without_a_running_process_has_no_figures(
    files: Files, break_it: Callable[[Files], object]
) -> None:
    break_it(files)
    assert GroupMeter(7).cpu() is None
    assert GroupMeter(7).memory() is None


def test_group_has_the_processes_of_its_session_too(files: Files) -> None:
    """A shell in it gives each of its commands another group."""
    add(files, 7, group=7, session=7, used=(1, 0, 0, 0), pages=1)
    add(files, 8, parent=7, group=8, session=7, used=(2, 0, 0, 0), pages=2)
    add(files, 9, parent=1, group=7, session=9, used=(4, 0, 0, 0), pages=4)
    add(files, 10, parent=7, group=10, session=10, used=(8, 0, 0, 0), pages=8)
    assert GroupMeter(7).cpu() == seconds(7)
    assert GroupMeter(7).memory() == 7 * PAGE


def test_memory_that_cannot_be_read_counts_nothing(files: Files) -> None:
    add(files, 7, group=7, pages=5)
    add(files, 8, group=7, pages=5)
    files["/proc/8/statm"] = ""
    assert GroupMeter(7).memory() == 5 * PAGE


def test_children_are_all_descendants_and_not_this_process(files: Files) -> None:
    own = os.getpid()
    add(files, own, pages=1)
    add(files, own + 1, parent=own, pages=2)
    add(files, own + 2, parent=own + 1, pages=4)
    add(files, own + 3, parent=1, pages=8)
    assert ChildrenMeter().memory() == 6 * PAGE
    assert ChildrenMeter().cpu() == 0


def sockets(*rows: tuple[int, str, int]) -> str:
    """Return a table of sockets: the local port, the state and the inode of each."""
    head = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid"
    lines = [
        f"   {place}: 0100007F:{port:04X} 00000000:0000 {state} 00000000:00000000 00:00000000"
        f" 00000000  1000        0 {inode} 1 0000000000000000 100 0 0 10 0"
        for place, (port, state, inode) in enumerate(rows)
    ]
    return "\n".join([head, *lines, ""])


def test_listening_sockets_of_a_port_are_found_in_both_families(files: Files) -> None:
    files["/proc/net/tcp"] = sockets(
        (8080, "0A", 11), (8081, "0A", 12), (8080, "01", 13), (8080, "0A", 14)
    )
    whole, row = sockets((8080, "0A", 21)), sockets((8080, "0A", 22)).splitlines()[1].split()
    cut = (" ".join(row[:10]), " ".join(row[:9]), "9: broken 0A")
    files["/proc/net/tcp6"] = whole + "\n".join(cut)
    assert _process._listening_sockets(8080) == {f"socket:[{n}]" for n in (11, 14, 21, 22)}
    assert _process._listening_sockets(9) == set()


def test_listener_is_searched_once_while_it_runs(
    files: Files, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is measured with its descendants. This process may hold the socket too, and isn't."""
    holders = {7, os.getpid()}
    asked: list[int] = []

    def has_socket(pid: int, wanted: set[str]) -> bool:
        assert wanted == {"socket:[11]"}
        asked.append(pid)
        return pid in holders

    monkeypatch.setattr(_process, "_has_socket", has_socket)
    files["/proc/net/tcp"] = sockets((8080, "0A", 11))
    for pid, parent in ((7, 1), (8, 7), (9, 8), (10, 1), (os.getpid(), 1)):
        add(files, pid, parent, used=(pid, 0, 0, 0), pages=pid)
    meter = ListenerMeter(8080)
    assert meter.memory() == (7 + 8 + 9) * PAGE
    assert meter.cpu() == seconds(7, 8, 9)
    assert sorted(asked) == sorted([7, 8, 9, 10, os.getpid()])

    # The server starts again, as another process.
    del files["/proc/7/stat"]
    holders.add(10)
    assert meter.memory() == 10 * PAGE

    del files["/proc/net/tcp"]
    del files["/proc/10/stat"]
    asked.clear()
    assert meter.memory() is None
    assert asked == []


def test_processes_whose_sockets_are_searched_have_a_limit(
    files: Files, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[int] = []
    monkeypatch.setattr(_process, "_has_socket", lambda pid, wanted: asked.append(pid))
    monkeypatch.setattr(_process, "_MAX_SEARCHED", 3)
    files["/proc/net/tcp"] = sockets((8080, "0A", 11))
    for pid in range(100, 110):
        add(files, pid)
    assert ListenerMeter(8080).cpu() is None
    assert len(asked) == 3
