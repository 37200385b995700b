"""Callbacks for progress and log messages that are `async def`, in both drivers.

Their clocks jump: a callback that takes seconds takes no time.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest
import trio
from trio.testing import MockClock

import mcp_asyncio_shim
import mcp_trio
from mcp_core import ConnectionLost
from mcp_core.registry import Context, Server
from mcp_core.runtime import AbstractClient, CallbackJob
from mcp_core.runtime import _callback_queue as module
from mcp_core.runtime._callback_queue import CallbackQueue, NotificationCallbacks
from tests.harness.world.loop import run as run_asyncio

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Coroutine

    Pause = Callable[[float], Awaitable[object]]
    Scenario = Callable[[AbstractClient, Pause, list[Any]], Coroutine[Any, Any, None]]

server = Server("steps")


@server.tool
async def steps(context: Context) -> str:
    """Report three steps."""
    for step in range(3):
        await context.progress(step, 3)
        await context.log("info", step)
    return "over"


def play(driver: str, scenario: Scenario) -> list[Any]:
    """Run `scenario` with a client in memory. Return what it has noted."""
    noted: list[Any] = []

    async def with_trio() -> None:
        async def on_log(params: Any) -> None:
            await trio.sleep(1)
            noted.append(("log", params.data))

        async with mcp_trio.connect(server, on_log=on_log) as client:
            await scenario(client, trio.sleep, noted)

    async def with_asyncio() -> None:
        async def on_log(params: Any) -> None:
            await asyncio.sleep(1)
            noted.append(("log", params.data))

        async with mcp_asyncio_shim.connect(server, on_log=on_log) as client:
            await scenario(client, asyncio.sleep, noted)

    if driver == "trio":
        trio.run(with_trio, clock=MockClock(autojump_threshold=0))
    else:
        run_asyncio(with_asyncio())
    return noted


both_drivers = pytest.mark.parametrize("driver", ["trio", "asyncio"])


@both_drivers
def test_async_progress_is_awaited_in_order_before_call_returns(driver: str) -> None:
    async def scenario(client: AbstractClient, pause: Pause, noted: list[Any]) -> None:
        async def on_progress(progress: float, total: float | None, message: str | None) -> None:
            noted.append(("begin", progress))
            await pause(2)
            noted.append(("end", progress))

        result = await client.call_tool("steps", progress=on_progress, timeout=5)
        noted.append(result.text)

    noted = [entry for entry in play(driver, scenario) if entry[0] != "log"]
    assert noted == [(word, step) for step in range(3) for word in ("begin", "end")] + ["over"]


@both_drivers
def test_async_log_callback_is_awaited_in_order(driver: str) -> None:
    async def scenario(client: AbstractClient, pause: Pause, noted: list[Any]) -> None:
        await client.call_tool("steps")
        while len(noted) < 3:
            await pause(1)

    assert play(driver, scenario) == [("log", step) for step in range(3)]


@both_drivers
def test_async_progress_raising_ends_call_and_later_callbacks(driver: str) -> None:
    async def scenario(client: AbstractClient, pause: Pause, noted: list[Any]) -> None:
        async def on_progress(progress: float, *_: object) -> None:
            noted.append(progress)
            await pause(2)
            raise LookupError("no display")

        with pytest.raises(LookupError, match="no display"):
            await client.call_tool("steps", progress=on_progress)
        await client.ping()

    assert [entry for entry in play(driver, scenario) if not isinstance(entry, tuple)] == [0]


@both_drivers
def test_async_progress_slow_is_limited_by_max_timeout_only(driver: str) -> None:
    async def scenario(client: AbstractClient, pause: Pause, noted: list[Any]) -> None:
        async def on_progress(progress: float, *_: object) -> None:
            await pause(10 if progress == 0 else 0)

        await client.call_tool("steps", progress=on_progress, timeout=5)
        with pytest.raises(TimeoutError, match=r"not over after 5 s in all"):
            await client.call_tool("steps", progress=on_progress, max_timeout=5)

    play(driver, scenario)


@both_drivers
def test_async_progress_of_cancelled_call_is_cancelled(driver: str) -> None:
    async def scenario(client: AbstractClient, pause: Pause, noted: list[Any]) -> None:
        async def on_progress(progress: float, *_: object) -> None:
            noted.append(progress)
            await pause(30)

        with pytest.raises(TimeoutError):
            await client.call_tool("steps", progress=on_progress, max_timeout=2)

    assert [entry for entry in play(driver, scenario) if not isinstance(entry, tuple)] == [0]


@both_drivers
def test_async_progress_closing_client_ends_call(driver: str) -> None:
    async def scenario(client: Any, pause: Pause, noted: list[Any]) -> None:
        async def on_progress(progress: float, *_: object) -> None:
            if progress == 0:
                await client.aclose()

        try:
            await client.call_tool("steps", progress=on_progress)
        except ConnectionLost:
            pass  # unless the response was here before

    play(driver, scenario)


# -- The queue alone ---------------------------------------------------------------------------


class Bench:
    """A queue whose jobs the test runs."""

    def __init__(self, callback: Callable[..., object]) -> None:
        self.jobs: list[CallbackJob] = []
        self.events: list[Any] = []
        self.queue = CallbackQueue(
            callback,
            self.jobs.append,
            self.events.append,
            lambda: self.events.append("idle"),
            lambda: self.events.append("overflow"),
        )

    def work(self) -> None:
        job = self.jobs.pop()
        with pytest.raises(StopIteration):
            job.run().send(None)
        job.done(None)
        job.dropped()


def test_queue_plain_function_runs_at_once_without_job() -> None:
    heard: list[int] = []
    bench = Bench(heard.append)
    bench.queue.call(1)
    assert heard == [1]
    assert (bench.jobs, bench.events, bench.queue.busy) == ([], [], False)


def test_queue_plain_call_after_async_one_waits_for_it() -> None:
    """One callback may do both: the order of the messages matters more than speed."""
    heard: list[int] = []

    async def later(value: int) -> None:
        heard.append(value)

    def callback(value: int) -> Any:
        return later(value) if value == 1 else heard.append(value)

    bench = Bench(callback)
    bench.queue.call(1)
    bench.queue.call(2)
    assert (heard, bench.queue.busy) == ([], True)
    bench.work()
    assert heard == [1, 2]
    assert (bench.events, bench.queue.busy) == (["idle"], False)


def test_queue_error_of_waiting_callback_is_reported_and_others_run() -> None:
    """The second of three calls fails while it waits its turn; the third still runs."""
    heard: list[int] = []

    async def later(value: int) -> None:
        heard.append(value)

    def callback(value: int) -> Any:
        if value == 2:
            raise LookupError(value)
        return later(value)

    bench = Bench(callback)
    for value in (1, 2, 3):
        bench.queue.call(value)
    bench.work()
    assert heard == [1, 3]
    assert [str(event) for event in bench.events] == ["2", "idle"]


def test_queue_too_many_waiting_drops_oldest_and_says_so_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(module, "_MAX_WAITING", 2)
    heard: list[int] = []

    async def callback(value: int) -> None:
        heard.append(value)

    bench = Bench(callback)
    for value in range(6):
        bench.queue.call(value)
    assert bench.events == ["overflow"]
    bench.work()
    assert heard == [0, 4, 5]


def test_queue_holds_a_thousand_messages() -> None:
    heard: list[int] = []

    async def callback(value: int) -> None:
        heard.append(value)

    bench = Bench(callback)
    for value in range(1001):
        bench.queue.call(value)
    assert bench.events == []
    bench.queue.call(1001)
    assert bench.events == ["overflow"]
    bench.work()
    assert heard == [0, *range(2, 1002)]


def test_queue_abandoned_before_task_began_closes_coroutine() -> None:
    async def callback(value: int) -> None:
        raise AssertionError  # pragma: no cover

    bench = Bench(callback)
    bench.queue.call(1)
    bench.queue.call(2)
    (job,) = bench.jobs
    bench.queue.abandon()  # a coroutine that is never awaited would be a warning
    with pytest.raises(StopIteration):
        job.run().send(None)
    job.dropped()
    assert bench.events == []


def test_queue_task_cancelled_before_it_began_closes_coroutine() -> None:
    async def callback(value: int) -> None:
        raise AssertionError  # pragma: no cover

    bench = Bench(callback)
    bench.queue.call(1)
    bench.jobs[0].dropped()
    assert (bench.events, bench.queue.busy) == (["idle"], False)


def test_queue_abandoned_while_a_callback_runs_drops_what_waits_and_can_be_used_again() -> None:
    seen: list[int] = []

    async def callback(value: int) -> None:
        seen.append(value)

    bench = Bench(callback)
    bench.queue.call(1)
    bench.queue.call(2)
    bench.queue.abandon()
    assert (repr(bench.queue), bench.queue.busy) == ("<CallbackQueue, 0 messages wait>", False)
    bench.queue.abandon()
    bench.queue.call(3)
    bench.work()
    assert (seen, bench.events) == ([3], ["idle"])


def test_queue_that_overflows_after_an_idle_time_says_so_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(module, "_MAX_WAITING", 1)

    async def callback(value: int) -> None:
        pass

    bench = Bench(callback)
    for _ in range(2):
        for value in range(4):
            bench.queue.call(value)
        bench.work()
    assert bench.events == ["overflow", "idle"] * 2


def test_queue_whose_task_is_cancelled_drops_what_waits() -> None:
    seen: list[int] = []

    async def callback(value: int) -> None:
        seen.append(value)

    bench = Bench(callback)
    bench.queue.call(1)
    bench.queue.call(2)
    bench.jobs.pop().dropped()
    bench.queue.call(3)
    bench.work()
    assert (seen, bench.events) == ([3], ["idle", "idle"])


# -- The callbacks of a client ---------------------------------------------------------------------


class Notified:
    """The callbacks of a client, whose jobs and log entries the test sees."""

    def __init__(self, **options: Any) -> None:
        self.jobs: list[CallbackJob] = []
        self.errors: list[tuple[str, str]] = []
        self.callbacks = NotificationCallbacks(
            options,  # type: ignore[arg-type]
            self.jobs.append,
            lambda problem, error: self.errors.append((problem, repr(error))),
        )


LOG = "notifications/message"
OWN = "notifications/acme/own"


def test_notification_calls_the_callback_of_its_method_only() -> None:
    seen: list[Any] = []
    notified = Notified(
        on_log=lambda params: seen.append(("log", params)),
        on_notification={OWN: lambda params: seen.append(("own", params))},
    )
    for params, method in enumerate((LOG, OWN, "notifications/acme/other", LOG)):
        notified.callbacks.call(method, params)
    assert seen == [("log", 0), ("own", 1), ("log", 3)]
    assert repr(notified.callbacks) == "<NotificationCallbacks, 2 in use>"
    Notified().callbacks.call(OWN, None)  # without callbacks


@pytest.mark.parametrize(
    ("method", "option"), [(LOG, "on_log"), (OWN, f"on_notification for {OWN}")]
)
def test_callback_that_raises_is_logged_with_its_option(method: str, option: str) -> None:
    """Both at once and, if it is async, later."""

    def at_once(params: Any) -> Any:
        raise LookupError(params)

    async def later(params: Any) -> None:
        raise LookupError(params)

    for callback in (at_once, later):
        notified = Notified(on_log=callback, on_notification={OWN: callback})
        notified.callbacks.call(method, 7)
        for job in notified.jobs:
            with pytest.raises(StopIteration):
                job.run().send(None)
        assert notified.errors == [(f"{option} failed", "LookupError(7)")]


def test_callback_that_is_too_slow_is_logged_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each notification's callback has a queue of its own: only the full one drops messages."""
    monkeypatch.setattr(module, "_MAX_WAITING", 1)

    async def callback(params: Any) -> None:
        pass

    notified = Notified(on_log=callback, on_notification={OWN: callback})
    notified.callbacks.call(OWN, 0)
    for value in range(5):
        notified.callbacks.call(LOG, value)
    assert notified.errors == [
        (
            "on_log is too slow",
            "BufferError('the oldest of 1,000 messages that waited for it were dropped')",
        )
    ]
    for job in notified.jobs:
        job.dropped()
