"""Load above the limits: what waits, what continues, the memory it costs, and that nothing is lost.

Memory is what Python allocates during the load.
"""

from __future__ import annotations

import json
import tracemalloc
from collections import Counter
from contextlib import nullcontext
from typing import Any, Final, Self

import pytest

from mcp_core import Connection, Limits, Role
from mcp_core.registry import Context, Server
from mcp_core.types import CreateMessageParams, CreateMessageResult, TextContent
from tests.harness import either
from tests.harness.jsonrpc import (
    D,
    E,
    cancelled,
    result,
    text_of,
)
from tests.harness.wire.lines import ERAS, Wire, served
from tests.levels import long

pytestmark = pytest.mark.usefixtures("each_driver")

KIB: Final = 1024
MIB: Final = 1024 * 1024


class Lines:
    """A reader of all messages of a wire, which keeps none."""

    def __init__(self, wire: Wire) -> None:
        self._stream = wire.stream
        self._rest = b""
        self._lines: list[bytes] = []

    async def next(self) -> Any:
        while not self._lines:
            data = self._rest + await self._stream.receive_some()
            *self._lines, self._rest = data.split(b"\n")
            self._lines.reverse()
        return json.loads(self._lines.pop())


class Memory:
    """The peak of allocated memory since the block was entered."""

    def __enter__(self) -> Self:
        tracemalloc.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()


@pytest.fixture
def conns(monkeypatch: pytest.MonkeyPatch) -> list[Connection]:
    """The connections that the servers have made."""
    made: list[Connection] = []

    def make(role: Role, *args: Any) -> Connection:
        made.append(Connection(role, *args))
        return made[-1]

    for package in "mcp_trio", "mcp_asyncio_shim":
        monkeypatch.setattr(f"{package}._server.Connection", make)
    return made


# -- A client that does not read -----------------------------------------------------------------

MANY: Final = 3_000


class LoudServer:
    """A server with tools that send much (`sent` messages so far), and one that returns at once."""

    def __init__(self, many: int = MANY) -> None:
        self.many = many
        self.sent = self.touched = 0
        self.server = Server("chatter")
        for tool in self.progress, self.log, self.touch:
            self.server.add_tool(tool)

    async def progress(self, context: Context) -> str:
        """Report progress many times."""
        for step in range(self.many):
            await context.progress(step, message="x" * KIB)
            self.sent += 1
        return "done"

    async def log(self, context: Context) -> str:
        """Send many log messages."""
        for step in range(self.many):
            await context.log("error", {"progress": step, "text": "x" * KIB})
            self.sent += 1
        return "done"

    def touch(self) -> str:
        """Return at once."""
        self.touched += 1
        return "touched"


@pytest.mark.requirement("PROG-10", "LOG-12")
@pytest.mark.parametrize(("tool", "version"), [("progress", D), ("log", E)])
@pytest.mark.parametrize("many", [300, pytest.param(MANY, marks=pytest.mark.perf)])
async def test_pressure_many_messages_to_an_unread_client(
    tool: str, version: str, many: int
) -> None:
    """The handler pauses until the client reads, while other requests are read and handled."""
    chatter = LoudServer(many)
    meta: dict[str, Any] = {"progressToken": 1}
    if tool == "log" and version == E:
        meta["io.modelcontextprotocol/logLevel"] = "error"
    async with served(chatter.server, version) as wire:
        lines = Lines(wire)
        memory = Memory() if many == MANY else None
        with memory or nullcontext():
            await wire.send(wire.calling("much", tool, **meta))
            await either.wait_all_tasks_blocked()
            waiting_at = chatter.sent
            for n in range(3):  # other requests are read and answered
                await wire.send(wire.calling(n, "touch"))
                await either.wait_all_tasks_blocked()
            assert chatter.touched == 3
            assert (
                chatter.sent == waiting_at < 250
            )  # 64 KiB in the pipe, as much in the queue, and one write
            steps: list[int] = []
            answers: dict[Any, str] = {}
            while len(answers) < 4:
                message = await lines.next()
                if "method" in message:
                    params = message["params"]
                    steps.append(
                        params["data"]["progress"] if tool == "log" else params["progress"]
                    )
                else:
                    answers[message["id"]] = text_of(message)
        assert memory is None or memory.peak < 2 * MIB  # of 10 MiB that were sent
        assert steps == list(range(many))
        assert answers == {"much": "done", 0: "touched", 1: "touched", 2: "touched"}
        assert await wire.is_alive()


@pytest.mark.parametrize("version", ERAS)
async def test_pressure_handler_waiting_for_an_unread_client_can_be_cancelled(version: str) -> None:
    chatter = LoudServer()
    async with served(chatter.server, version) as wire:
        await wire.send(wire.calling(11, "progress", progressToken=1))
        await either.wait_all_tasks_blocked()
        await wire.send(cancelled(11))
        await either.wait_all_tasks_blocked()
        sent = chatter.sent
        await wire.send(wire.calling(12, "touch"))
        while "method" in (message := await wire.receive()):
            pass
        assert message["id"] == 12
        assert chatter.sent == sent
        assert await wire.is_alive()


@pytest.mark.parametrize("number", [64, pytest.param(256, marks=pytest.mark.perf)])
async def test_pressure_many_handlers_sending_to_an_unread_client(number: int) -> None:
    """Each paused handler holds about one message, so memory grows with handlers, not output."""
    chatter = LoudServer()
    ids = range(10, 10 + number)
    async with served(chatter.server) as wire:
        lines = Lines(wire)
        memory = Memory() if number == 256 else None
        with memory or nullcontext():
            await wire.send(*(wire.calling(n, "progress", progressToken=n) for n in ids))
            await either.wait_all_tasks_blocked()
            sent = chatter.sent
        assert memory is None or memory.peak < 8 * MIB
        assert sent < 200 + 2 * number  # each has sent one message, and some a few more
        for n in ids:
            await wire.send(cancelled(n))
        await wire.send(wire.asking("last", "ping"))
        while (await lines.next()).get("id") != "last":
            pass


@pytest.mark.long
async def test_pressure_slow_reader_is_not_treated_as_silent() -> None:
    """Its messages stay in the pipe, because a server does not read while its responses wait."""
    server, pings, answered = Server("patient", keep_alive=1), 60_000, 0
    start = either.current_time()
    async with served(server) as wire, either.open_nursery() as nursery:

        async def send_all() -> None:
            for first in range(0, pings, 1000):
                await wire.send(*(wire.asking(n, "ping") for n in range(first, first + 1000)))

        nursery.start_soon(send_all)
        lines = Lines(wire)
        while answered < pings:
            answered += "method" not in await lines.next()
            if answered % 500 == 0 and answered < pings // 2:
                await either.sleep(0.1)
        assert either.current_time() - start > 5
        assert await wire.is_alive()


# -- A client that sends too many requests -------------------------------------------------------


class GatedServer:
    """A server with a tool that waits for the test; `inside` has the running calls."""

    def __init__(self, limits: Limits) -> None:
        self.inside: dict[int, either.EventLike] = {}
        self.most = 0
        self.server = Server("gate", limits=limits)
        self.server.add_tool(self.enter)

    async def enter(self, number: int, words: str = "") -> int:
        """Enter."""
        self.inside[number] = gate = either.Event()
        self.most = max(self.most, len(self.inside))
        try:
            await gate.wait()
        finally:
            del self.inside[number]
        return number


@pytest.mark.parametrize("version", ERAS)
@pytest.mark.parametrize(("calls", "size"), [(300, 1_000), long(3_000, 0)])
async def test_pressure_calls_over_the_limit_wait(
    version: str, calls: int, size: int, conns: list[Connection]
) -> None:
    """The server stops parsing, so backpressure reaches the sender, and all calls run in order."""
    all_sent = False
    gate = GatedServer(Limits(in_flight=4, waiting=8))
    async with served(gate.server, version) as wire, either.open_nursery() as nursery:
        await wire.ping()

        async def send_all() -> None:
            nonlocal all_sent
            words = "x" * size
            await wire.send(
                *(wire.calling(n, "enter", {"number": n, "words": words}) for n in range(calls))
            )
            all_sent = True

        nursery.start_soon(send_all)
        await either.wait_all_tasks_blocked()
        [conn] = conns
        stats = conn.stats()
        assert (stats.in_flight, stats.waiting) == (4, 8)
        # The sender has to wait, because most of the requests were not parsed.
        assert not all_sent
        assert stats.received - stats.buffered < 20 * (size + 300)
        assert stats.buffered <= 64 * KIB
        answers: list[int] = []
        while len(answers) < calls:
            assert set(gate.inside) == set(range(len(answers), min(len(answers) + 4, calls)))
            gate.inside[len(answers)].set()  # no time passes, so that nothing times out
            answer = await wire.receive()
            answers.append(answer["id"])
            assert text_of(answer) == str(answer["id"])
            await either.wait_all_tasks_blocked()
        assert answers == list(range(calls))
        assert gate.most == 4
        stats = conn.stats()
        assert stats.in_flight == stats.waiting == stats.buffered == stats.queued == 0
        assert await wire.is_alive()


@pytest.mark.requirement("DEC-12")
@pytest.mark.parametrize("version", ERAS)
async def test_pressure_calls_waiting_too_long_are_rejected(
    version: str, conns: list[Connection]
) -> None:
    """Only the 12 calls that ran or waited succeed; the others get the error for an overload."""
    calls = 1_000
    gate = GatedServer(Limits(in_flight=4, waiting=8, pause=5.0))
    answers: dict[int, Any] = {}
    async with served(gate.server, version) as wire:
        await wire.ping()

        async def receive_all() -> None:
            while len(answers) < calls:
                answer = await wire.receive()
                assert answer["id"] not in answers
                answers[answer["id"]] = answer

        async with either.open_nursery() as nursery:
            nursery.start_soon(receive_all)
            await wire.send(*(wire.calling(n, "enter", {"number": n}) for n in range(calls)))
            await either.sleep(6)
            while len(answers) < calls:
                for event in gate.inside.values():
                    event.set()
                await either.wait_all_tasks_blocked()
        done = [n for n, answer in answers.items() if "result" in answer]
        assert sorted(done) == list(range(12))  # those that ran or waited
        codes = Counter(answer["error"]["code"] for answer in answers.values() if "error" in answer)
        assert codes == {-32000 if version == D else 429: calls - 12}
        assert await wire.is_alive()
        assert conns[0].stats().in_flight == 0


@pytest.mark.parametrize("version", ERAS)
@pytest.mark.parametrize("count", [200, long(2_000)])
async def test_pressure_our_client_may_exceed_the_limits_of_our_server(
    version: str, count: int
) -> None:
    """The calls wait for a free slot without a timeout or a rejection."""
    server = Server("slow", limits=Limits(in_flight=8, waiting=8))

    @server.tool
    async def double(number: int) -> int:
        """Double it."""
        await either.sleep(0.01)
        return 2 * number

    doubled: dict[int, str] = {}

    async def call(number: int) -> None:
        doubled[number] = (await client.call_tool("double", {"number": number})).text

    async with either.connect(server, versions=[version]) as client:
        async with either.open_nursery() as nursery:
            for n in range(count):
                nursery.start_soon(call, n)
        assert doubled == {n: str(2 * n) for n in range(count)}


# -- Handlers that ignore cancellation -----------------------------------------------------------


@pytest.mark.parametrize("version", ERAS)
async def test_pressure_handlers_ignoring_cancellation_keep_their_slots(
    version: str, conns: list[Connection]
) -> None:
    """A cancelled handler still runs, so freeing its slot early would exceed the limit."""
    server = Server("stubborn", limits=Limits(in_flight=4, waiting=4))
    returned = 0

    async def work(context: Context) -> None:
        await either.sleep(1)
        await context.progress(1)

    @server.tool
    async def ignore(context: Context) -> str:
        """Ignore all cancellations."""
        nonlocal returned
        await either.shielded(work(context))
        returned += 1
        return "too late"

    async with served(server, version) as wire:
        await wire.send(*(wire.calling(n, "ignore", progressToken=n) for n in range(11, 15)))
        await either.wait_all_tasks_blocked()
        await wire.send(*(cancelled(n) for n in range(11, 15)))
        await wire.send(*(wire.calling(n, "ignore") for n in range(15, 19)))
        await either.wait_all_tasks_blocked()
        assert (conns[0].stats().in_flight, conns[0].stats().waiting) == (4, 4)
        assert {(await wire.receive())["id"] for _ in range(4)} == {15, 16, 17, 18}
        assert returned == 8
        assert await wire.is_alive()


# -- Server-initiated requests -------------------------------------------------------------------


@pytest.fixture
def asking() -> Server:
    """A server whose handlers send requests to the client. Two may run, and two wait."""
    server = Server("asking", limits=Limits(in_flight=2, waiting=2))

    @server.tool
    async def roots(context: Context) -> int:
        """Count the roots of the client."""
        return len(await context.roots())

    return server


ROOTS: Final = {"roots": [{"uri": "file:///a"}, {"uri": "file:///b"}]}


async def test_pressure_server_request_from_a_full_connection_is_answered(
    asking: Server, conns: list[Connection]
) -> None:
    """All handlers wait for the client, and its answers are behind more of its calls."""
    start = either.current_time()
    async with served(asking) as wire:
        await wire.send(*(wire.calling(n, "roots") for n in range(11, 15)))
        questions = [await wire.receive(), await wire.receive()]
        assert [question["method"] for question in questions] == ["roots/list"] * 2
        assert (conns[0].stats().in_flight, conns[0].stats().waiting) == (2, 2)
        await wire.send(
            *(wire.calling(n, "roots") for n in range(15, 20)),
            *(result(question["id"], ROOTS) for question in questions),
        )
        answers: dict[int, Any] = {}
        while len(answers) < 9:
            message = await wire.receive()
            if "method" in message:
                await wire.send(result(message["id"], ROOTS))
            else:
                assert message["id"] not in answers
                answers[message["id"]] = message
        assert [text_of(answers[id]) for id in range(11, 15)] == ["2"] * 4
        assert [answers[id]["error"]["code"] for id in range(15, 20)] == [-32000] * 5
        assert either.current_time() == start  # nothing has timed out
        stats = conns[0].stats()
        assert stats.in_flight == stats.waiting == stats.calls == 0
        assert await wire.is_alive()


async def test_pressure_server_request_of_a_cancelled_handler_is_withdrawn(
    asking: Server, conns: list[Connection]
) -> None:
    """The client learns that the roots are no longer wanted, and no call is left pending."""
    async with served(asking) as wire:
        await wire.send(*(wire.calling(n, "roots") for n in range(11, 15)))
        first, second = await wire.receive(), await wire.receive()
        await wire.send(cancelled(11), cancelled(12))
        messages = [await wire.receive() for _ in range(4)]
        taken_back = [
            m["params"]["requestId"] for m in messages if m["method"] == "notifications/cancelled"
        ]
        assert sorted(taken_back) == [first["id"], second["id"]]
        for message in messages:
            if message["method"] == "roots/list":
                await wire.send(result(message["id"], ROOTS))
        assert sorted([(await wire.receive())["id"] for _ in range(2)]) == [13, 14]
        assert conns[0].stats().calls == 0
        assert await wire.is_alive()


# -- A client that disconnects within a response -------------------------------------------------


@pytest.mark.parametrize("version", ERAS)
async def test_pressure_disconnect_within_a_response_cancels_handlers(
    version: str, conns: list[Connection], caplog: pytest.LogCaptureFixture
) -> None:
    """The client leaves with 8 MiB half sent; this ends quietly, without a log record."""
    server = Server("large")
    over: list[str] = []

    @server.tool
    async def much() -> str:  # the log would have a warning about a plain `def` on a busy machine
        """Return a long text."""
        return "x" * 8 * MIB

    @server.tool
    async def wait() -> None:
        """Wait."""
        try:
            await either.sleep_forever()
        finally:
            over.append("wait")

    async with served(server, version) as wire:
        await wire.send(wire.calling(11, "wait"), wire.calling(12, "much"))
        await wire.stream.receive_some(1000)
        await wire.stream.aclose()
        await either.wait_all_tasks_blocked()
        assert over == ["wait"]
        assert conns[0].stats().in_flight == 0
    assert caplog.records == []


async def test_client_large_response_to_a_server_request_arrives() -> None:
    """It is longer than all the responses that may wait, and the server does read it."""
    server = Server("asking")

    @server.tool()
    async def ask(context: Context) -> int:
        """Ask the model for a long text."""
        answer = await context.sample("Go on.", max_tokens=10)
        assert isinstance(answer.content, TextContent)
        return len(answer.content.text)

    def on_sample(params: CreateMessageParams) -> CreateMessageResult:
        return CreateMessageResult(
            role="assistant", content=TextContent("x" * 2 * MIB), model="long"
        )

    async with either.connect(server, versions=[D], on_sample=on_sample) as client:
        results: list[str] = []

        async def call() -> None:
            results.append((await client.call_tool("ask")).text)

        async with either.open_nursery() as nursery:
            for _ in range(4):
                nursery.start_soon(call)
    assert results == [str(2 * MIB)] * 4
