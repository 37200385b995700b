"""The end of a served conversation: end of input, broken stream, signals, and what handlers see.

A mock clock makes the grace periods exact. Real processes are in `test_processes.py`.
"""

from __future__ import annotations

import io
import sys
from functools import partial
from typing import Any

import pytest
import trio

from mcp_core import Limits
from mcp_core.registry import Context, RootsContext, Server
from tests.harness import either
from tests.harness.jsonrpc import notification, text_of
from tests.harness.wire.lines import ERAS, Wire, served

pytestmark = pytest.mark.usefixtures("each_driver")


class TimedServer:
    """A server with a tool that takes some time, and the times of its events."""

    def __init__(self) -> None:
        self.server = Server("watch")
        self.happened: dict[str, float] = {}
        self.server.add_tool(self.take)
        self.server.add_tool(self.chat)
        self.server.add_tool(self.shielded)

    def note(self, what: str) -> None:
        self.happened[what] = round(either.current_time() - self.start, 2)

    async def take(self, seconds: float) -> str:
        """Take so many seconds."""
        try:
            await either.sleep(seconds)
        except either.Cancelled:
            self.note("cancelled")
            raise
        finally:
            self.note("finally")
        return "in time"

    async def shielded(self, seconds: float, context: Context) -> str:
        """Take so many seconds, shielded from cancellation."""
        with trio.CancelScope(shield=True):
            await either.sleep(seconds)
            for step in range(100):
                await context.progress(step, message="x" * 10_000)
        self.note("finally")
        return "in its own time"

    async def chat(self, context: Context) -> str:
        """Send log messages without end."""
        step = 0
        try:
            while True:
                step += 1
                await context.progress(step, message="x" * 10_000)
        finally:
            self.note("finally")

    async def open(self, nursery: either.Nursery, **options: Any) -> Wire:
        """Serve with a grace of 5 seconds, and return the client's end after the handshake."""
        ours, theirs = either.memory_pair()
        nursery.start_soon(partial(self.serve, theirs, **options))
        wire = Wire(ours)
        await wire.shake_hands()
        return wire

    async def serve(self, stream: either.Stream, **options: Any) -> None:
        self.start = either.current_time()
        await either.serve_stream(self.server, stream, **{"grace": 5.0, **options})
        self.note("end")


@pytest.fixture
def watch() -> TimedServer:
    return TimedServer()


@pytest.mark.requirement("STDIO-11")
async def test_server_end_of_input_ends_an_idle_server_at_once(
    watch: TimedServer, nursery: either.Nursery
) -> None:
    wire = await watch.open(nursery)
    await wire.stream.send_eof()  # type: ignore[attr-defined]
    assert await wire.receive_all() == []
    assert watch.happened == {"end": 0}


async def test_server_end_of_input_lets_running_handlers_answer(
    watch: TimedServer, nursery: either.Nursery
) -> None:
    wire = await watch.open(nursery)
    await wire.send(wire.calling(1, "take", {"seconds": 3}))
    await wire.stream.send_eof()  # type: ignore[attr-defined]
    [answer] = await wire.receive_all()
    assert text_of(answer) == "in time"
    assert watch.happened == {"finally": 3, "end": 3}


async def test_server_end_of_input_lets_waiting_requests_run(nursery: either.Nursery) -> None:
    server = Server("lane", limits=Limits(in_flight=1))
    server.add_tool((watch := TimedServer()).take)
    watch.start = 0.0
    async with served(server) as wire:
        await wire.send(*(wire.calling(n, "take", {"seconds": 1}) for n in range(3)))
        await wire.stream.send_eof()  # type: ignore[attr-defined]
        assert [answer["id"] for answer in await wire.receive_all()] == [0, 1, 2]


async def test_server_end_of_input_cancels_handlers_after_the_grace(
    watch: TimedServer, nursery: either.Nursery
) -> None:
    """One handler needs 2 seconds and is answered; one needs 30 and is cancelled after 5."""
    wire = await watch.open(nursery)
    await wire.send(
        wire.calling(1, "take", {"seconds": 30}), wire.calling(2, "take", {"seconds": 2})
    )
    await wire.stream.send_eof()  # type: ignore[attr-defined]
    in_time, late = await wire.receive_all()
    assert in_time["id"] == 2
    assert late == {
        "jsonrpc": "2.0",
        "id": 1,
        "error": {"code": -32000, "message": "the server is being shut down"},
    }
    assert watch.happened == {"finally": 5, "cancelled": 5, "end": 5}


@either.trio_only
async def test_server_shielded_handler_delays_only_the_end(
    watch: TimedServer, nursery: either.Nursery
) -> None:
    wire = await watch.open(nursery)
    await wire.send(wire.calling(1, "shielded", {"seconds": 30}, progressToken=1))
    await wire.stream.aclose()
    await either.sleep(31)
    assert watch.happened == {"finally": 30, "end": 30}


@either.trio_only
async def test_server_stop_fails_the_request_of_a_shielded_handler(
    watch: TimedServer, nursery: either.Nursery
) -> None:
    """The client doesn't respond, and the handler ignores that it is cancelled."""

    async def ask(context: Context) -> str:
        """Ask for the roots."""
        with trio.CancelScope(shield=True):
            try:
                await context.roots()
            except Exception as exc:  # noqa: BLE001
                watch.note(type(exc).__name__)
        return "none"

    watch.server.add_tool(ask)
    stop = either.Event()
    wire = await watch.open(nursery, stop=stop)
    await wire.send(wire.calling(1, "ask", {}))
    assert (await wire.receive())["method"] == "roots/list"
    stop.set()
    await either.sleep(30)
    assert [*watch.happened] == ["ConnectionLost", "end"]


@pytest.mark.parametrize("grace", [0.0, 0.5])
async def test_server_queued_responses_are_written_without_grace(
    grace: float, watch: TimedServer, nursery: either.Nursery
) -> None:
    ours, theirs = either.memory_pair()
    wire = Wire(ours)
    await wire.send(*(wire.asking(n, "ping") for n in range(1000)))
    await ours.send_eof()
    watch.start = 0.0

    async def serve() -> None:
        await watch.serve(theirs, grace=grace)

    nursery.start_soon(serve)
    assert len(await wire.receive_all()) == 1000


async def test_server_slow_reader_gets_all_responses(
    watch: TimedServer, nursery: either.Nursery
) -> None:
    """The input has ended, but 10,000 responses still wait for a client that takes its time."""
    wire = await watch.open(nursery)
    pings = 10_000
    answered = 0

    async def send_all() -> None:
        await wire.send(*(wire.asking(n, "ping") for n in range(pings)))
        await wire.stream.send_eof()  # type: ignore[attr-defined]

    async with either.open_nursery() as nursery:
        nursery.start_soon(send_all)
        while data := await wire.stream.receive_some(8_000):
            answered += data.count(b"\n")
            await either.sleep(0.1)
        await either.wait_all_tasks_blocked()
    assert answered == pings
    assert 1 < watch.happened["end"] < 5


async def test_server_unread_responses_are_dropped_after_a_timeout(
    watch: TimedServer, nursery: either.Nursery
) -> None:
    wire = await watch.open(nursery)
    await wire.send(*(wire.asking(n, "ping") for n in range(10_000)))
    await wire.stream.send_eof()  # type: ignore[attr-defined]
    await either.sleep(10)
    assert watch.happened == {"end": 5}


async def test_server_broken_stream_ends_it_at_once(
    watch: TimedServer, nursery: either.Nursery
) -> None:
    wire = await watch.open(nursery)
    await wire.send(
        wire.calling(1, "chat", progressToken=1), wire.calling(2, "take", {"seconds": 30})
    )
    await either.wait_all_tasks_blocked()
    await wire.stream.aclose()
    await either.sleep(1)
    assert watch.happened == {"finally": 0, "cancelled": 0, "end": 0}


async def test_server_cancelled_cancels_handlers_and_closes_the_stream(watch: TimedServer) -> None:
    ours, theirs = either.memory_pair()
    wire = Wire(ours)
    with either.CancelScope() as scope:
        async with either.open_nursery() as nursery:
            nursery.start_soon(watch.serve, theirs)
            await wire.shake_hands()
            await wire.send(
                wire.calling(1, "take", {"seconds": 30}), wire.calling(2, "chat", progressToken=1)
            )
            await either.sleep(1)
            scope.cancel()
    assert watch.happened == {"cancelled": 1, "finally": 1}
    assert either.is_closed(theirs)


@either.trio_only
async def test_server_cancelled_does_not_hang_on_a_shielded_handler(watch: TimedServer) -> None:
    ours, theirs = either.memory_pair()
    wire = Wire(ours)
    with either.CancelScope() as scope:
        async with either.open_nursery() as nursery:
            nursery.start_soon(watch.serve, theirs)
            await wire.shake_hands()
            await wire.send(wire.calling(1, "shielded", {"seconds": 3}, progressToken=1))
            await either.sleep(1)
            scope.cancel()
    assert watch.happened == {"finally": 3}


class RootsHook:
    """Adds a hook on changed roots that takes 30 s. 18 s of them are shielded if `stubborn`."""

    def __init__(self, watch: TimedServer, *, stubborn: bool) -> None:
        self.watch = watch
        self.stubborn = stubborn
        watch.server.on_roots_changed(self.rescan)

    async def rescan(self, context: RootsContext) -> None:
        try:
            if self.stubborn:
                await either.shielded(either.sleep(18))
            await either.sleep(30)
        finally:
            self.watch.note("finally")

    async def start(self, nursery: either.Nursery, **options: Any) -> Wire:
        """Serve, and let the hook run."""
        ours, theirs = either.memory_pair()
        nursery.start_soon(partial(self.watch.serve, theirs, **options))
        wire = Wire(ours)
        await wire.open_as_client({"roots": {"listChanged": True}})
        await wire.send(notification("notifications/roots/list_changed"))
        await either.wait_all_tasks_blocked()
        return wire


@pytest.mark.parametrize("stubborn", [False, True])
async def test_server_end_of_input_cancels_a_hook_on_changed_roots(
    stubborn: bool, watch: TimedServer, nursery: either.Nursery, caplog: pytest.LogCaptureFixture
) -> None:
    """At once, since its questions have no answer any more. A line names one that goes on."""
    wire = await RootsHook(watch, stubborn=stubborn).start(nursery)
    await wire.stream.send_eof()  # type: ignore[attr-defined]
    assert await wire.receive_all() == []
    await either.sleep(100)
    end = 0 if not stubborn else 18 if either.on_trio() else 48  # asyncio cancels once
    assert watch.happened == dict.fromkeys(("finally", "end"), end)
    named = "the conversation has ended, and a hook on changed roots ignored the cancellation"
    assert [each.getMessage().startswith(named) for each in caplog.records] == [True] * stubborn


async def test_server_stopped_cancels_a_hook_on_changed_roots_after_the_grace(
    watch: TimedServer, nursery: either.Nursery
) -> None:
    stop = either.Event()
    await RootsHook(watch, stubborn=False).start(nursery, stop=stop)
    stop.set()
    await either.sleep(100)
    assert watch.happened == {"finally": 5, "end": 5}


async def test_server_with_keep_alive_ends_the_conversation_with_a_silent_client(
    nursery: either.Nursery,
) -> None:
    """Its connection is dead, so no end of input will come."""
    watch = TimedServer()
    watch.server = Server("alive", keep_alive=10)
    watch.server.add_tool(watch.take)
    wire = await watch.open(nursery)
    await wire.send(wire.calling(1, "take", {"seconds": 60}))
    assert [message["method"] for message in await wire.receive_all()] == ["ping"]
    assert watch.happened == {"cancelled": 20, "finally": 20, "end": 20}


@pytest.mark.requirement("VER-9", "VER-14", "STDIO-14")
async def test_server_serves_several_streams_and_revisions(watch: TimedServer) -> None:
    async with served(watch.server, ERAS[0]) as one, served(watch.server, ERAS[1]) as two:
        watch.start = either.current_time()
        await one.send(one.calling(1, "take", {"seconds": 2}))
        await two.send(two.calling(1, "take", {"seconds": 1}))
        assert "resultType" in (await two.receive())["result"]
        assert "resultType" not in (await one.receive())["result"]
        await two.stream.aclose()
        assert await one.is_alive()


async def test_print_that_the_code_page_lacks_fails_the_tool_outside_of_stdio(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """stdout is the program's own there, so it is left as it is. The log names the line."""
    stdout = io.TextIOWrapper(io.BytesIO(), encoding="cp1252")
    monkeypatch.setattr(sys, "stdout", stdout)
    server = Server("printing")

    @server.tool
    def mark() -> str:
        """Print a mark."""
        print("\N{CHECK MARK}")
        return "marked"

    async with either.connect(server) as client:
        result = await client.call_tool("mark")
    assert result.is_error
    assert "internal error (reference" in result.text
    assert "UnicodeEncodeError" in caplog.text
    assert 'print("\\N{CHECK MARK}")' in caplog.text
    assert stdout.errors == "strict"
