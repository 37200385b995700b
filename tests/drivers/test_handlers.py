"""Handlers and their isolation: a failing one does not affect the next request.

Each test sends JSON lines to a served `Server`, in a stateful and in the stateless revision where
they could differ.
"""

from __future__ import annotations

import asyncio
import contextvars
import logging
import re
import threading
from typing import TYPE_CHECKING, Any

import pytest
import trio

from mcp_core import Limits, McpError, ToolError
from mcp_core.registry import Context, Server
from tests.harness import either
from tests.harness.jsonrpc import E, cancelled, text_of
from tests.harness.wire.lines import ERAS, Wire, served
from tests.harness.world.waiting import PATIENCE

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.harness.jsonrpc import Message

pytestmark = pytest.mark.usefixtures("each_driver", "waits_for_threads")

SECRET = "what only the log may know"
KINDS = ("def", "async def", "thread")


def declare(kind: str, act: Callable[[], Any], limits: Limits | None = None) -> Server:
    """A server whose tool, prompt, resource and method all call `act`."""
    server = Server("handlers", limits=limits)

    def plain() -> Any:
        """Act."""
        return act()

    async def asynchronous() -> Any:
        """Act."""
        await either.checkpoint()
        return act()

    function = asynchronous if kind == "async def" else plain
    thread = kind == "thread"
    server.add_tool(function, name="act", thread=thread)
    server.add_prompt(function, name="act", thread=thread)
    server.add_resource("test://act", function, name="act", thread=thread)
    server.method("test/act", thread=thread)(function)
    return server


def recurse() -> int:
    return recurse() + 1


def raising(error: Callable[[], BaseException]) -> Callable[[], Any]:
    def act() -> Any:
        raise error()

    return act


class Mute(Exception):
    """An exception whose `str` fails."""

    def __str__(self) -> str:
        raise ValueError(SECRET)


class MuteTool(ToolError):
    def __str__(self) -> str:
        raise ValueError(SECRET)


def circle() -> list[Any]:
    items: list[Any] = []
    items.append(items)
    return items


FAULTS: dict[str, Callable[[], Any]] = {
    "ValueError": raising(lambda: ValueError(SECRET)),
    "an exception that cannot be shown": raising(Mute),
    "a ToolError that cannot be shown": raising(MuteTool),
    "SystemExit": raising(lambda: SystemExit(SECRET)),
    "KeyboardInterrupt": raising(lambda: KeyboardInterrupt(SECRET)),
    "GeneratorExit": raising(lambda: GeneratorExit(SECRET)),
    "StopIteration": raising(lambda: StopIteration(SECRET)),
    "StopAsyncIteration": raising(lambda: StopAsyncIteration(SECRET)),
    "MemoryError": raising(lambda: MemoryError(SECRET)),
    "RecursionError": raising(lambda: RecursionError(SECRET)),
    "infinite recursion": recurse,
    "a group": raising(lambda: ExceptionGroup(SECRET, [ValueError(SECRET), TypeError(SECRET)])),
    "a base group": raising(
        lambda: BaseExceptionGroup(SECRET, [SystemExit(SECRET), ValueError(SECRET)])
    ),
    "trio.TooSlowError": raising(lambda: trio.TooSlowError(SECRET)),
    "trio.BrokenResourceError": raising(lambda: trio.BrokenResourceError(SECRET)),
    "TimeoutError": raising(lambda: TimeoutError(SECRET)),
    "ConnectionResetError": raising(lambda: ConnectionResetError(SECRET)),
    "asyncio.CancelledError": raising(lambda: asyncio.CancelledError(SECRET)),
    "returns an object": object,
    "returns a circle": circle,
    "returns half a character": lambda: "\ud800",
    "returns strange keys": lambda: {(1, 2): 3},
}


@pytest.mark.requirement("RPC-18", "TOOL-15")
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("fault", FAULTS)
async def test_handler_failure_is_answered_without_details_and_logged(
    fault: str, kind: str, caplog: pytest.LogCaptureFixture
) -> None:
    """The client gets only a reference, by which the operator finds the traceback in the log."""
    requests = {
        "tools/call": {"name": "act"},
        "prompts/get": {"name": "act"},
        "resources/read": {"uri": "test://act"},
        "test/act": {},
    }
    async with served(declare(kind, FAULTS[fault])) as wire:
        for id, (method, params) in enumerate(requests.items()):
            caplog.clear()
            answer = await wire.ask(id, method, params)
            assert answer["id"] == id
            assert SECRET not in str(answer)
            if method == "tools/call" and "result" in answer:
                assert answer["result"]["isError"] is True
                text = text_of(answer)
            else:
                assert answer["error"]["code"] == -32603
                text = answer["error"]["message"]
            [reference] = re.findall(r"reference ([0-9a-f]{8})", text)
            [record] = [record for record in caplog.records if reference in record.getMessage()]
            assert record.name == either.package().__name__
            assert record.levelno == logging.ERROR
            assert record.exc_info is not None
            assert await wire.is_alive()


@pytest.mark.parametrize("version", ERAS)
@pytest.mark.parametrize("kind", KINDS)
async def test_handler_raised_protocol_error_reaches_the_peer_unchanged(
    kind: str, version: str, caplog: pytest.LogCaptureFixture
) -> None:
    """These exceptions are answers, not bugs, even if a nursery wraps them in a group."""
    errors: list[BaseException] = [
        ToolError("no such city"),
        McpError(1234, "in the sense of the protocol", {"more": [1]}),
        ExceptionGroup("of one, from a nursery", [ToolError("no such city")]),
    ]
    raised = iter(errors)
    async with served(declare(kind, raising(lambda: next(raised))), version) as wire:
        for _ in range(2):
            answer = await wire.call(1, "act")
            if "result" in answer:
                assert (text_of(answer), answer["result"]["isError"]) == ("no such city", True)
            else:
                expected = {
                    "code": 1234,
                    "message": "in the sense of the protocol",
                    "data": {"more": [1]},
                }
                assert answer["error"] == expected
        assert text_of(await wire.call(2, "act")) == "no such city"
    # None of these is a failure. On a busy machine a plain `def` causes a warning.
    assert [record for record in caplog.records if record.levelno >= logging.ERROR] == []


@pytest.mark.parametrize("kind", KINDS)
async def test_handler_error_data_not_serializable_is_left_out(kind: str) -> None:
    async with served(declare(kind, raising(lambda: McpError(1234, "mine", object())))) as wire:
        answer = await wire.call(1, "act")
        assert answer["error"] == {"code": 1234, "message": "mine"}
        assert await wire.is_alive()


@pytest.mark.parametrize("kind", KINDS)
async def test_handler_error_code_not_serializable_is_an_internal_error(kind: str) -> None:
    code: Any = object()
    async with served(declare(kind, raising(lambda: McpError(code, "mine")))) as wire:
        answer = await wire.call(1, "act")
        assert answer["error"]["code"] == -32603
        assert await wire.is_alive()


@pytest.mark.parametrize("in_a_group", [False, True])
async def test_handler_stale_cancelled_is_a_failure_of_the_handler(in_a_group: bool) -> None:
    """The cancelled scope was left before, so this `Cancelled` is an ordinary error."""
    server = Server("strays")

    @server.tool
    async def stray() -> str:
        """Keep a cancellation, and raise it later."""
        kept: BaseException | None = None
        with either.CancelScope() as scope:
            scope.cancel()
            try:
                await either.sleep_forever()
            except either.Cancelled as error:
                kept = error
                raise
        assert kept is not None
        raise BaseExceptionGroup("among others", [kept, ValueError(SECRET)]) if in_a_group else kept

    async with served(server) as wire:
        answer = await wire.call(1, "stray")
        assert "reference" in text_of(answer)
        assert await wire.is_alive()


async def test_handler_cancelled_in_a_group_with_an_error_logs_the_error(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """The client wants no response any more, so only the log can show the bug."""
    server = Server("groups")

    @server.tool
    async def clumsy() -> None:
        """Fail while being cancelled."""
        async with either.open_nursery() as nursery:
            nursery.start_soon(either.sleep_forever)
            try:
                await either.sleep_forever()
            finally:
                raise ValueError(SECRET)

    async with served(server) as wire:
        await wire.send(wire.calling(1, "clumsy"))
        await either.wait_all_tasks_blocked()
        await wire.send(cancelled(1))
        assert await wire.is_silent()
        assert await wire.is_alive()
    [record] = caplog.records
    assert "tools/call failed" in record.getMessage()


async def test_handler_cancelled_from_outside_in_a_group_propagates(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """The handler's error is logged, and doesn't swallow the cancellation of the whole server."""
    ours, theirs = either.memory_pair()
    server = Server("groups")

    @server.tool
    async def clumsy() -> None:
        """Fail while being cancelled."""
        async with either.open_nursery() as nursery:
            nursery.start_soon(either.sleep_forever)
            try:
                await either.sleep_forever()
            finally:
                raise ValueError(SECRET)

    wire = Wire(ours, E)
    with either.CancelScope() as scope:
        async with either.open_nursery() as nursery:
            nursery.start_soon(either.serve_stream, server, theirs)
            await wire.send(wire.calling(1, "clumsy"))
            await either.wait_all_tasks_blocked()
            scope.cancel()
    assert scope.cancelled_caught
    [record] = caplog.records
    assert "tools/call failed" in record.getMessage()
    # The response may or may not be sent: cancelling the server does not wait for that.
    assert [answer["id"] for answer in await wire.receive_all()] in ([], [1])


# --- cancellation -------------------------------------------------------------------------------


class RecordingTools:
    """A tool that waits, and a record of what happened to it."""

    def __init__(self, limits: Limits | None = None) -> None:
        self.server = Server("witness", limits=limits)
        self.seen: list[str] = []
        self.go = either.Event()
        self.server.add_tool(self.wait)
        self.server.add_tool(self.shielded)
        self.server.add_tool(self.stubborn)
        self.server.add_tool(self.hello)

    async def wait(self) -> str:
        """Wait for the test."""
        self.seen.append("started")
        try:
            await self.go.wait()
        except either.Cancelled:
            self.seen.append("cancelled")
            raise
        finally:
            self.seen.append("finally")
        return "waited"

    async def shielded(self) -> str:
        """Wait for the test, shielded from cancellation."""
        await either.shielded(self.wait())
        self.seen.append("returns")
        return "too late"

    async def stubborn(self, context: Context) -> str:
        """Catch the cancellation, and send a message after it."""
        try:
            await self.go.wait()
        except either.Cancelled:
            pass  # this is the bug of the handler
        await either.shielded(context.progress(1.0))
        context.progress_nowait(2.0)
        self.seen.append("returns")
        return "too late"

    def hello(self) -> str:
        """Greet."""
        return "hello"


@pytest.mark.requirement("CXL-6", "CXL-7", "CXL-13")
@pytest.mark.parametrize("version", ERAS)
@pytest.mark.parametrize("tool", ["wait", "stubborn"])
async def test_handler_cancelled_by_the_peer_stops_and_sends_nothing(
    tool: str, version: str
) -> None:
    witness = RecordingTools()
    async with served(witness.server, version) as wire:
        await wire.send(wire.calling(1, tool, progressToken="p"))
        await either.wait_all_tasks_blocked()
        await wire.send(cancelled(1, "changed my mind"))
        assert await wire.is_silent()
        assert witness.seen in (["started", "cancelled", "finally"], ["returns"])
        assert await wire.is_alive()


@pytest.mark.requirement("CXL-8", "CXL-10", "CXL-11")
@pytest.mark.parametrize("version", ERAS)
@pytest.mark.parametrize(
    "notice",
    [
        cancelled(1, "it was answered"),
        cancelled("1", "another type"),
        cancelled(99),
        {"jsonrpc": "2.0", "method": "notifications/cancelled"},
        {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": {}}},
        {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"reason": "no id"}},
    ],
)
async def test_handler_cancellation_of_unknown_request_is_ignored(
    notice: Message, version: str
) -> None:
    async with served(RecordingTools().server, version) as wire:
        assert text_of(await wire.call(1, "hello")) == "hello"
        await wire.send(notice)
        assert await wire.is_silent()
        assert await wire.is_alive()


async def test_handler_cancelled_before_its_task_runs() -> None:
    witness = RecordingTools()
    async with served(witness.server) as wire:
        await wire.send(wire.calling(1, "wait"), cancelled(1), wire.calling(2, "hello"))
        assert (await wire.receive())["id"] == 2
        assert await wire.is_silent()
        # asyncio does not begin a task that is cancelled before its first step.
        assert witness.seen == ["started", "cancelled", "finally"] * either.on_trio()
        await wire.send(wire.calling(1, "wait"))  # the id is free again
        await either.wait_all_tasks_blocked()
        witness.go.set()
        assert text_of(await wire.receive()) == "waited"


async def test_handler_that_ignores_cancellation_keeps_its_slot() -> None:
    witness = RecordingTools(Limits(in_flight=1))
    async with served(witness.server) as wire:
        await wire.send(wire.calling(1, "shielded"))
        await either.wait_all_tasks_blocked()
        await wire.send(cancelled(1), wire.calling(2, "hello"), wire.calling(1, "hello"))
        refused = await wire.receive()
        assert (refused["id"], refused["error"]["code"]) == (1, -32600)  # the id is still in use
        assert await wire.is_silent()
        assert await wire.is_alive()
        witness.go.set()
        assert (await wire.receive())["id"] == 2
        assert witness.seen == ["started", "finally", "returns"]
        assert await wire.is_silent()


class BlockingServer:
    """A server whose tool `block` waits in a thread, and then reports progress."""

    def __init__(self) -> None:
        self.server = Server("threads")
        self.entered, self.leave, self.noticed = (threading.Event() for _ in range(3))

        @self.server.tool(thread=True)
        def block(context: Context) -> str:
            """Block."""
            self.entered.set()
            self.leave.wait(PATIENCE)
            context.progress_nowait(1.0)
            self.noticed.set()
            return "too late"


async def test_handler_thread_cancelled_is_abandoned() -> None:
    """Python can't stop a thread: its late progress and result are dropped."""
    blocking = BlockingServer()
    async with served(blocking.server) as wire:
        await wire.send(wire.calling(1, "block", progressToken=1))
        await either.in_thread(blocking.entered.wait)
        await wire.send(cancelled(1))
        assert await wire.is_alive()
        blocking.leave.set()
        assert await either.in_thread(blocking.noticed.wait, PATIENCE)
        assert await wire.is_silent()


async def test_handler_thread_that_outlives_the_server_is_harmless() -> None:
    """The thread reports progress to a server that has ended, and gets no exception."""
    blocking = BlockingServer()
    async with served(blocking.server, grace=0) as wire:
        await wire.send(wire.calling(1, "block", progressToken=1))
        await either.in_thread(blocking.entered.wait)
    blocking.leave.set()
    assert await either.in_thread(blocking.noticed.wait, PATIENCE)


# --- concurrency --------------------------------------------------------------------------------


async def test_handler_32_concurrent_calls_are_answered_as_they_end() -> None:
    """The last call ends first, and no response waits for an earlier request."""
    server = Server("order")
    gates = [either.Event() for _ in range(32)]

    @server.tool
    async def wait(number: int) -> int:
        """Wait for its turn."""
        await gates[number].wait()
        return number

    async with served(server) as wire:
        await wire.send(*(wire.calling(n, "wait", {"number": n}) for n in range(32)))
        await either.wait_all_tasks_blocked()
        for n in reversed(range(32)):
            gates[n].set()
            answer = await wire.receive()
            assert (answer["id"], text_of(answer)) == (n, str(n))


async def test_handler_concurrency_is_limited() -> None:
    """Twenty calls arrive at once; all are answered, and at most three run at a time."""
    server = Server("limited", limits=Limits(in_flight=3, waiting=100))
    running = most = 0

    @server.tool
    async def work() -> str:
        """Work."""
        nonlocal running, most
        running += 1
        most = max(most, running)
        await either.wait_all_tasks_blocked()
        running -= 1
        return ""

    async with served(server) as wire:
        await wire.send(*(wire.calling(n, "work") for n in range(20)))
        assert {(await wire.receive())["id"] for _ in range(20)} == set(range(20))
    assert most == 3


color: contextvars.ContextVar[str] = contextvars.ContextVar("color", default="none")


@pytest.mark.parametrize("kind", KINDS)
async def test_handler_context_variables_are_isolated(kind: str) -> None:
    """Each handler sees the server's, also one that begins when another one has ended."""

    def act() -> str:
        seen = color.get()
        color.set("left behind")
        return seen

    color.set("the server's")
    async with served(declare(kind, act, Limits(in_flight=1))) as wire:
        color.set("the client's")
        await wire.send(*(wire.calling(n, "act") for n in range(3)))
        assert [text_of(await wire.receive()) for _ in range(3)] == ["the server's"] * 3


async def test_handler_lookup_failure_is_answered(caplog: pytest.LogCaptureFixture) -> None:
    class Odd(Server):
        def answer(self, request: Any, host: Any = None) -> Any:
            raise ValueError(SECRET)

    odd = Odd("odd")
    odd.add_tool(RecordingTools().hello)
    async with served(odd) as wire:
        answer = await wire.call(1, "hello")
        assert answer["error"]["code"] == -32603
        assert SECRET not in str(answer)
        assert await wire.is_alive()
    assert len(caplog.records) == 1


async def test_rejected_messages_are_logged_at_debug_level(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.DEBUG, either.package().__name__)
    async with served(RecordingTools().server) as wire:
        await wire.send("no JSON")
        assert (await wire.receive())["error"]["code"] == -32700
    texts = [record.getMessage() for record in caplog.records]
    assert texts[0].startswith("message rejected: the message is not JSON")
    assert texts[-1] == "conversation ended: the client closed the connection"
    assert {record.levelno for record in caplog.records} == {logging.DEBUG}


@pytest.mark.requirement("CXL-12")
async def test_handler_cancellation_reason_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG, either.package().__name__)
    server = Server("handlers")
    server.add_tool(either.sleep_forever, name="wait", description="Wait.")
    async with served(server) as wire:
        await wire.send(wire.calling(7, "wait"), cancelled(7, reason="no longer wanted"))
        assert await wire.is_alive()
    assert "request 7 cancelled: no longer wanted" in caplog.messages
