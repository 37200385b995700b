"""The virtual clock of the asyncio tests: it jumps when all tasks wait, and not before."""

from __future__ import annotations

import asyncio
import os
import selectors
import socket
import sys
import threading
import time
from typing import TYPE_CHECKING, Any

import pytest

from mcp_asyncio_shim._threads import open_thread_streams
from tests.harness.world import virtual_time
from tests.harness.world.virtual_time import (
    VirtualTimeLoop,
    advance_clock,
    clock_stopped,
    run,
    thread_waiting,
)
from tests.harness.world.waiting import PATIENCE

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable


def test_sleep_takes_no_time_and_timers_fire_in_order() -> None:
    async def main() -> list[Any]:
        order: list[Any] = []

        async def wait(seconds: float) -> None:
            await asyncio.sleep(seconds)
            order.append((seconds, asyncio.get_running_loop().time()))

        await asyncio.gather(*map(wait, (50_000, 10, 100_000, 0.001)))
        return order

    assert run(main()) == [(each, pytest.approx(each)) for each in (0.001, 10, 50_000, 100_000)]


def test_clock_stands_still_while_task_is_busy() -> None:
    async def main() -> None:
        loop = asyncio.get_running_loop()
        async with asyncio.timeout(1e-6):
            for _ in range(1000):
                await asyncio.sleep(0)
        assert loop.time() == 0

    run(main())


def test_timeout_expires_when_nothing_else_can_happen() -> None:
    async def main() -> None:
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(3600):
                await asyncio.Event().wait()
        assert asyncio.get_running_loop().time() == pytest.approx(3600)

    run(main())


def test_data_in_socket_pair_comes_before_timer() -> None:
    async def main() -> None:
        ours, theirs = socket.socketpair()
        reader, writer = await asyncio.open_connection(sock=ours)
        for _ in range(100):
            theirs.send(b"x")
            async with asyncio.timeout(1e-6):
                assert await reader.readexactly(1) == b"x"
        theirs.close()
        writer.close()
        await writer.wait_closed()

    run(main())


async def in_a_thread(job: Callable[[], object]) -> None:
    await asyncio.to_thread(job)


async def in_an_executor(job: Callable[[], object]) -> None:
    await asyncio.get_running_loop().run_in_executor(None, job)


async def in_a_thread_of_its_own(job: Callable[[], object]) -> None:
    loop, over = asyncio.get_running_loop(), asyncio.Event()

    def work() -> None:
        job()
        loop.call_soon_threadsafe(over.set)

    with clock_stopped():
        thread = threading.Thread(target=work)
        thread.start()
        await over.wait()
        thread.join()


@pytest.mark.parametrize("begin", [in_a_thread, in_an_executor, in_a_thread_of_its_own])
def test_thread_at_work_stops_clock(
    begin: Callable[[Callable[[], object]], Awaitable[None]],
) -> None:
    """The thread goes on when the loop waits in its selector, where the clock would jump."""

    async def main() -> None:
        loop = asyncio.get_running_loop()
        assert isinstance(loop, VirtualTimeLoop)
        waiting, select = threading.Event(), loop._virtual.select

        def watched(timeout: float | None = None) -> object:
            if timeout != 0:
                waiting.set()
            return select(timeout)

        loop._virtual.select = watched  # type: ignore[assignment, method-assign]
        async with asyncio.timeout(1):
            await begin(waiting.wait)
        assert loop.time() == 0
        await asyncio.sleep(1)  # goes on afterwards
        assert loop.time() == pytest.approx(1)

    run(main())


def test_thread_waiting_for_loop_lets_clock_go_on() -> None:
    async def main() -> None:
        loop = asyncio.get_running_loop()

        async def wait() -> None:
            with thread_waiting():
                await asyncio.sleep(1000)

        def job() -> None:
            asyncio.run_coroutine_threadsafe(wait(), loop).result()

        await asyncio.to_thread(job)
        assert loop.time() == pytest.approx(1000)

    run(main())


def test_clock_advanced_makes_timers_due() -> None:
    async def main() -> None:
        order: list[str] = []
        loop = asyncio.get_running_loop()
        loop.call_later(1, order.append, "timer")
        advance_clock(2)
        loop.call_soon(order.append, "soon")
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        assert order == ["soon", "timer"]

    run(main())


def test_cancelled_wait_for_thread_lets_clock_go_on() -> None:
    go = threading.Event()

    async def main() -> None:
        job = asyncio.create_task(asyncio.to_thread(go.wait))
        await asyncio.sleep(0)
        job.cancel()
        await asyncio.sleep(1000)
        assert job.cancelled()
        go.set()

    run(main())


@pytest.mark.parametrize("kind", ["internet socket", "pipe"])
def test_clock_goes_really_while_bytes_may_be_on_their_way(kind: str) -> None:
    """The virtual clock may not jump while a real socket or pipe may still deliver."""

    async def main() -> tuple[float, float]:
        loop = asyncio.get_running_loop()
        read, write = os.pipe()
        listener = socket.create_server(("127.0.0.1", 0))
        watched = listener.fileno() if kind == "internet socket" else read
        loop.add_reader(watched, lambda: None)
        began = time.monotonic(), loop.time()
        await asyncio.sleep(0.02)
        ended = loop.time()  # read inside the real times, so that it can't seem to be ahead
        passed = time.monotonic() - began[0], ended - began[1]
        loop.remove_reader(watched)
        await asyncio.sleep(1000)
        listener.close()
        os.close(read)
        os.close(write)
        return passed

    real, virtual = run(main())
    assert real >= virtual >= 0.02 - 1e-6


def test_child_process_is_refused() -> None:
    async def main() -> None:
        with pytest.raises(NotImplementedError, match=r"use `asyncio\.run`"):
            await asyncio.create_subprocess_exec(sys.executable)

    run(main())


def hold(monkeypatch: pytest.MonkeyPatch, name: str) -> threading.Event:
    """Let the function of `os` wait in another thread than ours until the event is set."""
    ours, go, function = threading.get_ident(), threading.Event(), getattr(os, name)

    def wait(*args: Any) -> Any:
        if threading.get_ident() != ours:
            assert go.wait(PATIENCE)
        return function(*args)

    monkeypatch.setattr(os, name, wait)
    return go


def release_once_loop_waits(go: threading.Event, monkeypatch: pytest.MonkeyPatch) -> None:
    """Set `go` when the running loop waits for events, and for no timer."""
    selector, select = virtual_time._running(), selectors.DefaultSelector.select

    def noted(self: Any, timeout: float | None = None) -> Any:
        if self is selector and timeout is None:
            go.set()
        return select(self, timeout)

    monkeypatch.setattr(selectors.DefaultSelector, "select", noted)


def test_threads_of_streams_with_something_to_do_stop_clock(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A thread goes on when the loop waits without a timeout, where the clock would jump."""

    async def main() -> None:
        (source, sender), (receiver, sink) = os.pipe(), os.pipe()
        go = hold(monkeypatch, "read")
        with open_thread_streams(source, sink) as (reader, writer):
            os.write(sender, b"in")
            release_once_loop_waits(go, monkeypatch)
            async with asyncio.timeout(1):
                assert await reader.read(9) == b"in"
            go = hold(monkeypatch, "write")
            release_once_loop_waits(go, monkeypatch)
            writer.write(b"out")
            async with asyncio.timeout(1):
                await writer.drain()
        assert os.read(receiver, 9) == b"out"
        os.close(sender)
        os.close(receiver)

    run(main())


def test_threads_of_streams_with_nothing_to_do_let_clock_go_on() -> None:
    async def main() -> None:
        (source, sender), (receiver, sink) = os.pipe(), os.pipe()
        with open_thread_streams(source, sink) as (_, writer):
            writer.write(b"out")
            await writer.drain()
            began = time.monotonic(), asyncio.get_running_loop().time()
            await asyncio.sleep(0.02)  # in real time, for input may be on its way
            passed = asyncio.get_running_loop().time() - began[1]
            assert time.monotonic() - began[0] >= passed >= 0.02 - 1e-6
        os.close(sender)
        os.close(receiver)
        await asyncio.sleep(1000)

    run(main())
