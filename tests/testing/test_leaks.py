"""What the watch sees: each kind of thing by itself, and what only looks like one. The plugin around it is in `test_pytest_plugin.py`."""

from __future__ import annotations

import asyncio
import os
import socket
import subprocess
import threading
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

import pytest
import trio

from mcp_core import Connection, Role
from mcp_core import types as t
from mcp_trio.testing import _leaks
from mcp_trio.testing._leaks import KINDS, Watch
from tests.core.helpers import client_config, line, modern, ping, server_config

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Iterator
    from pathlib import Path


@pytest.fixture
def undo(monkeypatch: pytest.MonkeyPatch) -> Iterator[ExitStack]:
    """What the tests leave behind for the watch is cleared away for the watch that watches them."""
    monkeypatch.setattr(_leaks, "_TIMEOUT", 0.02)
    with ExitStack() as stack:
        yield stack


def kinds(watch: Watch) -> list[str]:
    return [kind for kind, _ in watch.left()]


def what(watch: Watch) -> str:
    (only,) = watch.left()
    return only.what


# --- descriptors --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("make", "leads_to"),
    [
        (lambda path: os.open(path / "x", os.O_CREAT | os.O_RDWR), "x"),
        (lambda _: os.open(os.devnull, os.O_RDONLY), "/dev/null"),
        (lambda path: os.open(path, os.O_RDONLY), ""),
        (lambda _: socket.socket().detach(), "socket"),
    ],
)
def test_an_open_descriptor(
    make: Callable[[Path], int], leads_to: str, tmp_path: Path, undo: ExitStack
) -> None:
    with Watch() as watch:
        fd = make(tmp_path)
        undo.callback(os.close, fd)
    assert kinds(watch) == ["descriptor"]
    assert what(watch).startswith(f"{fd}: ")
    assert leads_to in what(watch)
    assert watch.left(["descriptor"]) == []


def test_a_system_that_has_no_names_for_descriptors(
    undo: ExitStack, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
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
        described[name] = _leaks.described(fd)
        os.close(fd)
    assert described == {name: f"a {name}" for name in described}
    assert _leaks.described(999) == "closed meanwhile"


def test_a_system_that_has_no_such_directory() -> None:
    assert _leaks._names("/no/such/directory") == []


def test_a_descriptor_that_was_there_before(undo: ExitStack) -> None:
    ends = os.pipe()
    for fd in ends:
        undo.callback(os.close, fd)
    with Watch() as watch:
        pass
    assert watch.left() == []


def test_a_descriptor_that_was_closed_and_opened_anew(tmp_path: Path, undo: ExitStack) -> None:
    fd = os.open(os.devnull, os.O_RDONLY)
    with Watch() as watch:
        os.close(fd)
        assert os.open(tmp_path, os.O_RDONLY) == fd
        undo.callback(os.close, fd)
    assert what(watch) == f"{fd}: {tmp_path}"


def test_what_only_garbage_holds_is_not_left_behind() -> None:
    class Holder:
        def __init__(self) -> None:
            self.me = self
            self.fd = os.open(os.devnull, os.O_RDONLY)

        def __del__(self) -> None:
            os.close(self.fd)

    with Watch() as watch:
        Holder()
    assert watch.left() == []


# --- children -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("by", ["proc", "ps", "what there is", "no waitid"])
def test_a_child_that_runs_and_one_that_is_dead(
    by: str, undo: ExitStack, monkeypatch: pytest.MonkeyPatch
) -> None:
    if by == "proc" and not os.path.exists("/proc/self/stat"):  # noqa: PTH110
        pytest.skip("there is no /proc")
    if by in ("proc", "ps"):
        other = {"proc": "_children_by_ps", "ps": "_children_by_proc"}[by]
        monkeypatch.setattr(_leaks, other, getattr(_leaks, f"_children_by_{by}"))
    if by == "no waitid":
        monkeypatch.delattr(os, "waitid")
    with Watch() as watch:
        process = undo.enter_context(subprocess.Popen(["sleep", "1000"]))
        undo.callback(process.kill)
    assert what(watch) == f"{process.pid}: sleep 1000"
    process.kill()
    os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT) if by != "no waitid" else None
    if by != "no waitid":
        assert what(watch).startswith(f"{process.pid}: ")
        assert what(watch).endswith("sleep, dead and not reaped") or "<defunct>" in what(watch)
    process.wait()
    assert watch.left() == []


def test_a_child_that_was_there_before(undo: ExitStack) -> None:
    process = undo.enter_context(subprocess.Popen(["sleep", "1000"]))
    undo.callback(process.kill)
    with Watch() as watch:
        pass
    assert watch.left() == []


# --- threads ------------------------------------------------------------------------------------------------------------


def test_a_thread_that_runs(undo: ExitStack) -> None:
    with Watch() as watch:
        stop = threading.Event()
        thread = threading.Thread(target=stop.wait, name="of the test")
        thread.start()
        undo.callback(thread.join)
        undo.callback(stop.set)
    assert watch.left() == [("thread", "of the test")]


def test_a_thread_that_is_about_to_end_is_waited_for() -> None:
    with Watch() as watch:
        timer = threading.Timer(0.1, lambda: None)
        timer.start()
    assert watch.left() == []


def test_a_thread_that_trio_keeps_is_not_left_behind_but_one_that_it_gave_up_is(
    undo: ExitStack, monkeypatch: pytest.MonkeyPatch
) -> None:
    stop = threading.Event()
    undo.callback(stop.set)

    def block() -> None:
        stop.wait()

    async def give_up() -> None:
        with trio.move_on_after(0.01):
            await trio.to_thread.run_sync(block, abandon_on_cancel=True)

    with Watch() as watch:
        trio.run(trio.to_thread.run_sync, len, ())
        assert watch.left() == []
        trio.run(give_up)
    [(kind, name)] = watch.left()
    assert kind == "thread"
    assert "block" in name
    stop.set()
    monkeypatch.setattr(_leaks, "_TIMEOUT", 1.0)
    assert watch.left() == []


# --- connections --------------------------------------------------------------------------------------------------------


def in_trio(main: Callable[[], Coroutine[Any, Any, None]]) -> None:
    trio.run(main)


def in_asyncio(main: Callable[[], Coroutine[Any, Any, None]]) -> None:
    asyncio.run(main())


@pytest.mark.parametrize("run", [in_trio, in_asyncio])
def test_a_connection_of_a_run_has_to_be_closed_and_empty(
    run: Callable[[Callable[[], Coroutine[Any, Any, None]]], None], undo: ExitStack
) -> None:
    made: list[Connection] = []

    async def make() -> None:
        made.append(Connection(Role.SERVER, server_config()))
        await asyncio.sleep(0) if run is in_asyncio else await trio.lowlevel.checkpoint()

    with Watch() as watch:
        run(make)
        (conn,) = made
        assert watch.left() == [("connection", f"{conn!r}: it was not closed")]
        conn.receive_data(line(modern(1, "tools/call", {"name": "t"})), 0.0)
        conn.next_event()
        conn.close()
        assert [each.rpartition(": ")[2] for _, each in watch.left()] == [
            "1 requests whose handlers have not come back",
            "2 events that nobody took",
        ]
        for _ in range(2):
            conn.next_event()
        conn.send_result(1, t.EmptyResult())
        assert watch.left() == []
    assert made[0].queued() == 0


@pytest.mark.may_leave("connection")
def test_a_call_that_nobody_ended(undo: ExitStack) -> None:
    with Watch() as watch:

        async def ask() -> None:
            conn = Connection(Role.CLIENT, client_config())
            conn.open(0.0)
            await trio.lowlevel.checkpoint()

        trio.run(ask)
    assert [each.rpartition(": ")[2] for _, each in watch.left()] == [
        "it was not closed",
        "1 calls that nobody ended",
    ]


def test_a_connection_that_nobody_carries_may_be_forgotten() -> None:
    with Watch() as watch:
        conn = Connection(Role.SERVER, server_config())
        conn.receive_data(line(ping()), 0.0)
    assert watch.left() == []


def test_connections_are_made_as_before_when_nobody_watches() -> None:
    before = Connection.__init__
    with Watch(), Watch():
        assert Connection.__init__ is not before
        assert Connection(Role.CLIENT, client_config()).role is Role.CLIENT
    assert Connection.__init__ is before


# --- tasks --------------------------------------------------------------------------------------------------------------


async def beat() -> None:
    await trio.sleep_forever()


def test_a_system_task_that_outlives_the_run(undo: ExitStack) -> None:
    async def main() -> None:
        trio.lowlevel.spawn_system_task(beat, name="heartbeat")
        await trio.lowlevel.checkpoint()

    async def deeper() -> None:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(watch.joined(main))

    for entry in (main, deeper):
        with Watch() as watch:
            trio.run(watch.joined(main) if entry is main else deeper)
        assert watch.left() == [("task", "heartbeat")]


def test_tasks_that_end_in_time() -> None:
    async def main() -> int:
        trio.lowlevel.spawn_system_task(trio.lowlevel.checkpoint)
        async with trio.open_nursery() as nursery:
            nursery.start_soon(beat)
            await trio.sleep(0.01)
            nursery.cancel_scope.cancel()
        return 5

    with Watch() as watch:
        assert trio.run(watch.joined(main)) == 5
        assert trio.run(watch.joined(main)) == 5
    assert watch.left() == []


def test_under_another_runtime_tasks_are_not_watched() -> None:
    async def main() -> int:
        await asyncio.sleep(0)
        return 5

    with Watch() as watch:
        assert asyncio.run(watch.joined(main)()) == 5
    assert watch.left() == []


@pytest.mark.may_leave("connection")
def test_every_kind_can_be_allowed(undo: ExitStack) -> None:
    async def main() -> None:
        trio.lowlevel.spawn_system_task(beat)
        Connection(Role.SERVER, server_config())
        await trio.lowlevel.checkpoint()

    with Watch() as watch:
        undo.callback(os.close, os.open(os.devnull, os.O_RDONLY))
        process = undo.enter_context(subprocess.Popen(["sleep", "1000"]))
        undo.callback(process.kill)
        timer = threading.Timer(1000, print)
        timer.start()
        undo.callback(timer.join)
        undo.callback(timer.cancel)
        trio.run(watch.joined(main))
    assert [kind for kind, _ in watch.left()] == list(KINDS)
    for kind in KINDS:
        assert kind not in [left for left, _ in watch.left([kind])]
    assert watch.left(KINDS) == []
