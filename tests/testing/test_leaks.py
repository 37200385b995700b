"""The leak detector: each kind of leak, and what only looks like one.

`test_pytest_plugin.py` has the plugin.
"""

from __future__ import annotations

import asyncio
import gc
import os
import socket
import subprocess
import threading
from contextlib import ExitStack
from functools import partial
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest
import trio
import trio.testing

from mcp_core import Connection, Role
from mcp_core import types as t
from mcp_trio.testing import _leaks
from mcp_trio.testing._leaks import KINDS, LeakDetector
from tests.harness.jsonrpc import (
    client_config,
    line,
    ping,
    server_config,
    stateless_request,
)
from tests.harness.world.waiting import PATIENCE, until
from tests.levels import long

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Iterator
    from pathlib import Path


@pytest.fixture
def undo(monkeypatch: pytest.MonkeyPatch) -> Iterator[ExitStack]:
    """Release what the tests leak on purpose, before the detector around them checks."""
    monkeypatch.setattr(_leaks, "_TIMEOUT", 0.02)
    with ExitStack() as stack:
        yield stack


def kinds(watch: LeakDetector) -> list[str]:
    return [kind for kind, _ in watch.leaks()]


def what(watch: LeakDetector) -> str:
    (only,) = watch.leaks()
    return only.description


@pytest.mark.parametrize(("released_after", "seconds"), [(0.0, 0.01), (0.5, 0.5), (5.0, 1.0)])
def test_leaks_waits_a_second_for_what_is_about_to_be_released(
    released_after: float, seconds: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By a clock of its own, on which only the pauses take time."""
    now = 0.0
    found = {9: "9: sleep 5"}

    def sleep(pause: float) -> None:
        nonlocal now
        now += pause
        if now >= released_after:
            found.clear()

    with LeakDetector() as watch:
        monkeypatch.setattr(_leaks, "children", lambda: found)
        monkeypatch.setattr(_leaks, "time", SimpleNamespace(monotonic=lambda: now, sleep=sleep))
        monkeypatch.setattr(_leaks, "gc", SimpleNamespace(collect=lambda: None))
        assert kinds(watch) == (["child"] if released_after > 1 else [])
        assert now == pytest.approx(seconds, abs=0.015)
        monkeypatch.undo()


# --- descriptors --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("make", "leads_to"),
    [
        (lambda path: os.open(path / "x", os.O_CREAT | os.O_RDWR), "x"),
        (lambda _: os.open(os.devnull, os.O_RDONLY), "/dev/null"),
        (lambda path: os.open(path, os.O_RDONLY), ""),
        (lambda _: socket.socket().detach(), "socket"),
    ],
)
def test_leaks_open_descriptor_is_reported(
    make: Callable[[Path], int], leads_to: str, tmp_path: Path, undo: ExitStack
) -> None:
    with LeakDetector() as watch:
        fd = make(tmp_path)
        undo.callback(os.close, fd)
    assert kinds(watch) == ["descriptor"]
    assert what(watch).startswith(f"{fd}: ")
    assert leads_to in what(watch)
    assert watch.leaks(["descriptor"]) == []


def test_leaks_descriptors_are_described_without_proc(
    undo: ExitStack, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Without /proc the kind of a descriptor comes from `fstat`, and a closed one is no error."""

    def no_link(path: str) -> str:
        raise OSError(path)

    monkeypatch.setattr(os, "readlink", no_link)
    described = {}
    ends = os.pipe()
    os.close(ends[1])
    for name, fd in [
        ("pipe", ends[0]),
        ("socket", socket.socket().detach()),
        ("file", os.open(tmp_path / "x", os.O_CREAT)),
        ("directory", os.open(tmp_path, os.O_RDONLY)),
        ("device", os.open(os.devnull, os.O_RDONLY)),
    ]:
        described[name] = _leaks.describe_descriptor(fd)
        os.close(fd)
    assert described == {name: f"a {name}" for name in described}
    assert _leaks.describe_descriptor(999) == "closed meanwhile"


def test_leaks_missing_proc_directory_is_ignored() -> None:
    assert _leaks._names("/no/such/directory") == []


def test_leaks_descriptor_from_before_is_ignored(undo: ExitStack) -> None:
    ends = os.pipe()
    for fd in ends:
        undo.callback(os.close, fd)
    with LeakDetector() as watch:
        pass
    assert watch.leaks() == []


def test_leaks_reused_descriptor_number_is_reported(tmp_path: Path, undo: ExitStack) -> None:
    fd = os.open(os.devnull, os.O_RDONLY)
    with LeakDetector() as watch:
        os.close(fd)
        assert os.open(tmp_path, os.O_RDONLY) == fd
        undo.callback(os.close, fd)
    assert what(watch) == f"{fd}: {tmp_path}"


def test_leaks_descriptor_held_by_garbage_is_ignored() -> None:
    class Holder:
        def __init__(self) -> None:
            self.me = self
            self.fd = os.open(os.devnull, os.O_RDONLY)

        def __del__(self) -> None:
            os.close(self.fd)

    with LeakDetector() as watch:
        Holder()
    assert watch.leaks() == []


# --- children -----------------------------------------------------------------------------------


@pytest.mark.parametrize("by", ["proc", long("ps"), "what there is", "no waitid"])
def test_leaks_running_and_dead_children_are_reported(
    by: str, undo: ExitStack, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A child is a leak until it is reaped, however the system lists children."""
    if by == "proc" and not os.path.exists("/proc/self/stat"):  # noqa: PTH110
        pytest.skip("there is no /proc")
    if by in ("proc", "ps"):
        other = {"proc": "_children_by_ps", "ps": "_children_by_proc"}[by]
        monkeypatch.setattr(_leaks, other, getattr(_leaks, f"_children_by_{by}"))
    if by == "no waitid":
        monkeypatch.delattr(os, "waitid")
    with LeakDetector() as watch:
        process = undo.enter_context(subprocess.Popen(["sleep", "1000"]))
        undo.callback(process.kill)
    assert what(watch) == f"{process.pid}: sleep 1000"
    process.kill()
    os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT) if by != "no waitid" else None
    if by != "no waitid":
        assert what(watch).startswith(f"{process.pid}: ")
        assert what(watch).endswith("sleep, dead and not reaped") or "<defunct>" in what(watch)
    process.wait()
    assert watch.leaks() == []


def test_leaks_child_from_before_is_ignored(undo: ExitStack) -> None:
    process = undo.enter_context(subprocess.Popen(["sleep", "1000"]))
    undo.callback(process.kill)
    with LeakDetector() as watch:
        pass
    assert watch.leaks() == []


# --- threads ------------------------------------------------------------------------------------


def test_leaks_running_thread_is_reported(undo: ExitStack) -> None:
    with LeakDetector() as watch:
        stop = threading.Event()
        thread = threading.Thread(target=stop.wait, name="of the test")
        thread.start()
        undo.callback(thread.join)
        undo.callback(stop.set)
    assert watch.leaks() == [("thread", "of the test")]


def test_leaks_ending_thread_is_awaited() -> None:
    with LeakDetector() as watch:
        timer = threading.Timer(0.1, lambda: None)
        timer.start()
    assert watch.leaks() == []


def test_leaks_idle_trio_thread_is_ignored_and_an_abandoned_one_reported(
    undo: ExitStack, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Trio keeps idle threads for later. Only one that still runs a job is the test's."""
    begun, stop = threading.Event(), threading.Event()
    undo.callback(stop.set)

    def block() -> None:
        begun.set()
        stop.wait()

    async def give_up() -> None:
        async with trio.open_nursery() as nursery:
            abandon = partial(trio.to_thread.run_sync, block, abandon_on_cancel=True)
            nursery.start_soon(abandon)
            await until(begun.is_set)  # the thread has the name of its job only from then on
            nursery.cancel_scope.cancel()

    with LeakDetector() as watch:
        trio.run(trio.to_thread.run_sync, len, ())
        assert watch.leaks() == []
        trio.run(give_up)
    [(kind, name)] = watch.leaks()
    assert kind == "thread"
    assert "block" in name
    stop.set()
    monkeypatch.setattr(_leaks, "_TIMEOUT", PATIENCE)
    assert watch.leaks() == []


# --- connections --------------------------------------------------------------------------------


def in_trio(main: Callable[[], Coroutine[Any, Any, None]]) -> None:
    trio.run(main)


def in_asyncio(main: Callable[[], Coroutine[Any, Any, None]]) -> None:
    asyncio.run(main())


@pytest.mark.parametrize("run", [in_trio, in_asyncio])
def test_leaks_connection_made_in_a_run_must_be_closed_and_empty(
    run: Callable[[Callable[[], Coroutine[Any, Any, None]]], None], undo: ExitStack
) -> None:
    """A connection is left behind while it is open, or closed with requests or events."""
    made: list[Connection] = []

    async def make() -> None:
        made.append(Connection(Role.SERVER, server_config()))
        await asyncio.sleep(0) if run is in_asyncio else await trio.lowlevel.checkpoint()

    with LeakDetector() as watch:
        run(make)
        (conn,) = made
        assert watch.leaks() == [("connection", f"{conn!r}: it was not closed")]
        conn.receive_data(line(stateless_request(1, "tools/call", {"name": "t"})), 0.0)
        conn.next_event()
        conn.close()
        assert [each.rpartition(": ")[2] for _, each in watch.leaks()] == [
            "1 requests whose handlers have not returned",
            "2 events that were not read",
        ]
        for _ in range(2):
            conn.next_event()
        conn.send_result(1, t.EmptyResult())
        assert watch.leaks() == []
    assert made[0].queued() == 0


@pytest.mark.may_leave("connection")
def test_leaks_unfinished_call_is_reported(undo: ExitStack) -> None:
    with LeakDetector() as watch:

        async def ask() -> None:
            conn = Connection(Role.CLIENT, client_config())
            conn.open(0.0)
            await trio.lowlevel.checkpoint()

        trio.run(ask)
    assert [each.rpartition(": ")[2] for _, each in watch.leaks()] == [
        "it was not closed",
        "1 calls that were not ended",
    ]


def test_leaks_connection_made_outside_a_run_is_ignored() -> None:
    with LeakDetector() as watch:
        conn = Connection(Role.SERVER, server_config())
        conn.receive_data(line(ping()), 0.0)
    assert watch.leaks() == []


def test_leaks_detector_restores_connection_init() -> None:
    before = Connection.__init__
    with LeakDetector(), LeakDetector():
        assert Connection.__init__ is not before
        assert Connection(Role.CLIENT, client_config()).role is Role.CLIENT
    assert Connection.__init__ is before


# --- tasks --------------------------------------------------------------------------------------


async def beat() -> None:
    await trio.sleep_forever()


def test_leaks_system_task_outliving_the_run_is_reported(undo: ExitStack) -> None:
    async def main() -> None:
        trio.lowlevel.spawn_system_task(beat, name="heartbeat")
        await trio.lowlevel.checkpoint()

    async def deeper() -> None:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(watch.watched(main))

    for entry in (main, deeper):
        with LeakDetector() as watch:
            trio.run(watch.watched(main) if entry is main else deeper)
        assert watch.leaks() == [("task", "heartbeat")]


def test_leaks_tasks_that_end_in_time_are_ignored() -> None:
    async def main() -> int:
        trio.lowlevel.spawn_system_task(trio.lowlevel.checkpoint)
        async with trio.open_nursery() as nursery:
            nursery.start_soon(beat)
            await trio.testing.wait_all_tasks_blocked()
            nursery.cancel_scope.cancel()
        return 5

    with LeakDetector() as watch:
        assert trio.run(watch.watched(main)) == 5
        assert trio.run(watch.watched(main)) == 5
    assert watch.leaks() == []


def test_leaks_tasks_under_asyncio_are_ignored() -> None:
    async def main() -> int:
        await asyncio.sleep(0)
        return 5

    with LeakDetector() as watch:
        assert asyncio.run(watch.watched(main)()) == 5
    assert watch.leaks() == []


@pytest.mark.may_leave("connection")
def test_leaks_every_kind_can_be_allowed(undo: ExitStack, monkeypatch: pytest.MonkeyPatch) -> None:
    """One leak of each kind is reported, and `leaks(kinds)` leaves out the kinds it is given."""
    monkeypatch.setattr(gc, "collect", int)  # six times; nothing here is garbage

    async def main() -> None:
        trio.lowlevel.spawn_system_task(beat)
        Connection(Role.SERVER, server_config())
        await trio.lowlevel.checkpoint()

    with LeakDetector() as watch:
        undo.callback(os.close, os.open(os.devnull, os.O_RDONLY))
        process = undo.enter_context(subprocess.Popen(["sleep", "1000"]))
        undo.callback(process.kill)
        timer = threading.Timer(1000, print)
        timer.start()
        undo.callback(timer.join)
        undo.callback(timer.cancel)
        trio.run(watch.watched(main))
    assert [kind for kind, _ in watch.leaks()] == list(KINDS)
    for kind in KINDS:
        assert kind not in [left for left, _ in watch.leaks([kind])]
    assert watch.leaks(KINDS) == []


def test_children_are_listed_by_ps_where_there_is_no_proc(monkeypatch: pytest.MonkeyPatch) -> None:
    """Such as on macOS."""
    monkeypatch.setattr(_leaks, "_has_no_children", lambda: False)
    monkeypatch.setattr(_leaks, "_children_by_ps", lambda: {1: "by ps"})
    monkeypatch.setattr(_leaks, "_children_by_proc", lambda: {1: "by /proc"})
    for exists, by in ((True, "by /proc"), (False, "by ps")):
        stat = SimpleNamespace(exists=lambda exists=exists: exists)
        with monkeypatch.context() as patch:
            patch.setattr(_leaks, "Path", lambda name, stat=stat: stat)
            assert _leaks.children() == {1: by}
