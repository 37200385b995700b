"""The common part of HTTP servers on trio: events, wakeups of exchanges, timers, shutdown."""

from __future__ import annotations

import logging
from contextlib import asynccontextmanager
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest
import trio
import trio.testing

from mcp_core.http import (
    Action,
    End,
    Endpoint,
    Exchange,
    HostOriginPolicy,
    HttpOptions,
    RequestHead,
    Router,
)
from mcp_core.registry import Context, Server
from mcp_core.runtime import ServedServer
from mcp_trio.http_server._driver import HttpServerDriver, open_http_server_driver
from tests.harness.jsonrpc import (
    E,
    Message,
    encoded,
    stateless_request,
)
from tests.harness.wire.http1_client import FakeRouter

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

MockClock = trio.testing.MockClock
wait = trio.testing.wait_all_tasks_blocked


class DriverHarness:
    """A driver without a stream: it pulls output from its exchanges when woken, unless `closed`."""

    def __init__(self, driver: HttpServerDriver) -> None:
        self.driver = driver
        self.actions: list[Action] = []
        self.writers: list[str] = []
        self.closed = False
        self.exchange: Any = None

    def ask(self, message: Message) -> Exchange:
        """Begin an exchange and give it its body."""
        body = encoded(message)
        head = RequestHead(
            b"POST",
            b"/mcp",
            [
                (b"host", b"localhost"),
                (b"content-type", b"application/json"),
                (b"accept", b"application/json, text/event-stream"),
                (b"mcp-protocol-version", E.encode()),
                (b"mcp-method", message["method"].encode()),
                (b"mcp-name", message["params"]["name"].encode()),
            ],
        )
        self.exchange = exchange = self.driver.router.begin(head, trio.current_time(), token=self)
        self.driver.router.receive_data(exchange, body, trio.current_time())
        self.driver.router.receive_data(exchange, b"", trio.current_time())
        self.driver.pump()
        return exchange

    def wake(self) -> None:
        self.driver.write_soon(self.write)

    async def write(self) -> None:
        self.writers.append(trio.lowlevel.current_task().name)
        if not self.closed:
            self.take()
        await trio.lowlevel.checkpoint()

    def take(self) -> None:
        self.actions += self.driver.router.actions_to_send(self.exchange)
        self.driver.output_sent(self.exchange)

    @property
    def text(self) -> str:
        return b"".join(getattr(action, "data", b"") for action in self.actions).decode()


def make(log: list[str] | None = None) -> Server:
    log = log if log is not None else []
    server = Server("s")

    @server.tool
    def hello() -> str:
        """Greet."""
        return "hello"

    @server.tool
    async def sleep(seconds: float) -> str:
        """Sleep."""
        try:
            await trio.sleep(seconds)
        finally:
            log.append("slept")
        return "there"

    @server.tool
    async def stubborn() -> str:
        """Shield itself from cancellation."""
        with trio.CancelScope(shield=True):
            await trio.sleep(20)
        log.append("stubborn")
        return "there"

    @server.tool
    def quick(context: Context) -> str:
        """Report progress without waiting."""
        for step in range(3):
            context.progress_nowait(step)
        return "there"

    @server.tool
    async def steps(context: Context) -> str:
        """Report progress."""
        for step in range(100):
            await context.progress(step, message="x" * 10_000)
            log.append(f"{step}")
        return "there"

    return server


@asynccontextmanager
async def running_driver(server: Server | None = None) -> AsyncIterator[HttpServerDriver]:
    server = server or make()
    endpoint = Endpoint(
        server.config,
        HttpOptions(host_origin_policy=HostOriginPolicy("127.0.0.1")),
        entropy=bytes,
        param_headers=server.param_headers,
        token=ServedServer(server, None),
    )
    async with open_http_server_driver(Router({"/mcp": endpoint})) as driver:
        yield driver


def calling(id: Any, name: str, arguments: Any = None, **meta: Any) -> Message:
    return stateless_request(id, "tools/call", {"name": name, "arguments": arguments or {}}, **meta)


async def test_http_driver_immediate_response_is_ready_at_once() -> None:
    server = make()
    async with running_driver(server) as driver:
        harness = DriverHarness(driver)
        exchange = harness.ask(calling(1, "hello"))
        harness.take()
        driver.pump()
        assert '"hello"' in harness.text
        assert exchange.over
        assert repr(driver) == "<HttpServerDriver, 0 conversations, 0 jobs>"
        assert server._listeners == {}


async def test_http_driver_handler_task_writes_its_response(autojump_clock: MockClock) -> None:
    server = make()
    async with running_driver(server) as driver:
        harness = DriverHarness(driver)
        harness.ask(calling(1, "sleep", {"seconds": 1}))
        assert repr(driver) == "<HttpServerDriver, 1 conversations, 1 jobs>"
        await wait()
        harness.writers.clear()
        await trio.sleep(2)
        driver.pump()
        assert '"there"' in harness.text
        assert harness.writers == ["mcp_trio._runtime._run"]
        assert repr(driver) == "<HttpServerDriver, 0 conversations, 0 jobs>"
        assert server._listeners == {}


async def test_http_driver_earlier_output_is_written_by_a_task(autojump_clock: MockClock) -> None:
    async with running_driver() as driver:
        harness = DriverHarness(driver)
        harness.ask(calling(1, "steps", progressToken="t"))
        await wait()
        assert set(harness.writers) == {
            "tests.trio_.http_server.test_driver.DriverHarness.write",
            "mcp_trio._runtime._run",
        }
        assert harness.text.count("data: ") == 101


async def test_http_driver_nowait_output_is_queued() -> None:
    async with running_driver() as driver:
        harness = DriverHarness(driver)
        harness.ask(calling(1, "quick", progressToken="t"))
        harness.take()
        driver.pump()
        assert harness.text.count("data: ") == 4


async def test_http_driver_much_output_waits_for_the_writer(autojump_clock: MockClock) -> None:
    """The handler pauses at about 64 KiB and continues as the writer takes output."""
    log: list[str] = []
    async with running_driver(make(log)) as driver:
        slow, other = DriverHarness(driver), DriverHarness(driver)
        slow.closed = True
        exchange = slow.ask(calling(1, "steps", progressToken="t"))
        await trio.sleep(1)
        assert 64 * 1024 < exchange.queued < 96 * 1024
        assert len(log) < 10
        other.ask(calling(1, "steps", progressToken="t"))
        await trio.sleep(1)
        assert other.text.count("data: ") == 101
        assert len(log) < 10 + 100
        slow.take()
        await wait()
        assert 10 < len(log) - 100 < 20
        slow.closed = False
        slow.take()
        await wait()
        assert slow.text.count("data: ") == 101


async def test_http_driver_disconnect_cancels_a_waiting_handler(autojump_clock: MockClock) -> None:
    async with running_driver() as driver:
        harness = DriverHarness(driver)
        harness.closed = True
        exchange = harness.ask(calling(1, "steps", progressToken="t"))
        await trio.sleep(1)
        driver.router.disconnected(exchange, trio.current_time())
        driver.pump()
        driver.output_sent(exchange)
        await wait()
        assert repr(driver) == "<HttpServerDriver, 0 conversations, 0 jobs>"


async def test_http_driver_keep_alive_comments_are_sent_in_time(autojump_clock: MockClock) -> None:
    async with running_driver() as driver:
        harness = DriverHarness(driver)
        harness.ask(calling(1, "sleep", {"seconds": 40}))
        await trio.sleep(50)
        assert harness.text.count(":\n") + harness.text.count(": \n") == 2
        assert '"there"' in harness.text


async def test_http_driver_router_deadline_is_met_whenever_it_is_set(
    autojump_clock: MockClock,
) -> None:
    site = FakeRouter()
    async with open_http_server_driver(site) as driver:  # type: ignore[arg-type]
        for deadline in 20.0, 10.0, None, 15.0:
            site.deadline = deadline
            driver.pump()
        await trio.sleep(30)
        assert site.times == [15]


async def test_http_driver_end_of_a_job_writes_all_the_output_that_it_causes() -> None:
    """The job's own task writes the first output, and new tasks write the others."""
    written: list[int] = []

    class Token:
        def __init__(self, number: int) -> None:
            self.number = number

        def wake(self) -> None:
            driver.write_soon(self.write)

        async def write(self) -> None:
            await trio.lowlevel.checkpoint()
            written.append(self.number)

    marked: list[bool] = []
    conversation = SimpleNamespace(mark_dirty=lambda: marked.append(True))
    runtime: Any = SimpleNamespace(conversation=conversation, closed=False)
    site = FakeRouter()
    async with open_http_server_driver(site) as driver:  # type: ignore[arg-type]
        for count in 3, 0:
            for number in range(count):
                head = RequestHead(b"POST", b"/later", [])
                site.begin(head, trio.current_time(), token=Token(number)).send(End())
            driver._jobs += 1
            write = driver.job_ended(runtime)
            await wait()
            assert sorted(written) == list(range(1, count))
            assert (write is None) is (count == 0)
            if write is not None:
                await write()
                assert written.pop() == 0
            written.clear()
        assert marked == [True, True]


# -- Internal errors -----------------------------------------------------------------------------


async def test_http_driver_failure_at_a_deadline_is_logged(
    autojump_clock: MockClock, caplog: pytest.LogCaptureFixture
) -> None:
    """One failing timeout must not stop the timer for later ones."""

    class Broken(FakeRouter):
        def handle_timeout(self, now: float) -> None:
            super().handle_timeout(now)
            raise ZeroDivisionError

    site = Broken()
    async with open_http_server_driver(site) as driver:  # type: ignore[arg-type]
        for deadline in 10.0, 20.0:
            site.deadline = deadline
            driver.pump()
            await trio.sleep(11)
    assert site.times == [10, 20]
    assert [record.levelno for record in caplog.records] == [logging.ERROR] * 2
    assert caplog.messages[0].startswith("internal error at a deadline of <HttpServerDriver")


async def test_http_driver_failure_with_a_request_ends_that_request(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """The client gets an internal error, and the next request is handled as usual."""

    def fail(*_: Any) -> None:
        raise ZeroDivisionError

    async with running_driver() as driver:
        with monkeypatch.context() as patch:
            patch.setattr("mcp_core.runtime._service.Service.handle_event", fail)
            harness = DriverHarness(driver)
            harness.ask(calling(1, "hello"))
            harness.take()
            assert "Internal error" in harness.text
        harness = DriverHarness(driver)
        harness.ask(calling(1, "hello"))
        harness.take()
        assert '"hello"' in harness.text
    assert {record.levelno for record in caplog.records} == {logging.ERROR}
    assert caplog.messages[0].startswith("internal error while handling RequestReceived(")


async def test_http_driver_failure_of_the_router_does_not_end_the_server(
    autojump_clock: MockClock, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """The failure strikes while a call runs, and the call still gets its result."""

    def fail(endpoint: Endpoint) -> None:
        raise ZeroDivisionError

    server = make()
    async with running_driver(server) as driver:
        harness = DriverHarness(driver)
        harness.ask(calling(1, "sleep", {"seconds": 1}))
        with monkeypatch.context() as patch:
            patch.setattr(Endpoint, "next_event", fail)
            server.changed(tools=True)
            await trio.sleep(2)
            with pytest.raises(ZeroDivisionError):
                driver.pump()
        driver.pump()
        await wait()
        assert '"there"' in harness.text
    assert {record.levelno for record in caplog.records} == {logging.ERROR}
    assert {text.partition(" <")[0] for text in caplog.messages} == {
        "internal error in the events of"
    }


# -- Shutdown ------------------------------------------------------------------------------------


@pytest.mark.parametrize(("seconds", "ends"), [(3, 3), (30, 5)])
async def test_http_driver_shutdown_is_orderly(
    seconds: float, ends: float, autojump_clock: MockClock
) -> None:
    """A call may finish within the 5 seconds of grace, and new requests are refused at once."""
    log: list[str] = []
    async with running_driver(make(log)) as driver:
        harness = DriverHarness(driver)
        harness.ask(calling(1, "sleep", {"seconds": seconds}))
        late = DriverHarness(driver)
        async with trio.open_nursery() as nursery:
            nursery.start_soon(driver.shutdown, 5.0)
            await wait()
            assert driver.stopping
            head = late.driver.router.begin(
                RequestHead(b"POST", b"/mcp", [(b"host", b"localhost")]),
                trio.current_time(),
                token=late,
            )
            late.exchange = head
            assert driver.router.actions_to_send(head)[0].status in (415, 503)  # type: ignore[union-attr]
        assert trio.current_time() == ends
        assert log == ["slept"]
        assert ("there" if seconds == 3 else "shut down") in harness.text


async def test_http_driver_shutdown_does_not_wait_for_a_shielded_handler(
    autojump_clock: MockClock,
) -> None:
    log: list[str] = []
    async with running_driver(make(log)) as driver:
        harness = DriverHarness(driver)
        harness.ask(calling(1, "stubborn"))
        await driver.shutdown(5.0)
        assert trio.current_time() == 6
        assert log == []
    assert log == ["stubborn"]
    assert trio.current_time() == 20


async def test_http_driver_cancelled_ends_at_once(autojump_clock: MockClock) -> None:
    log: list[str] = []
    server = make(log)
    with trio.move_on_after(1):
        async with running_driver(server) as driver:
            DriverHarness(driver).ask(calling(1, "sleep", {"seconds": 30}))
            await trio.sleep_forever()
    assert trio.current_time() == 1
    assert driver.stopping
    assert log == ["slept"]
    assert server._listeners == {}
