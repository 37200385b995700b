"""Loads through the client, and whole conversations as calls: the figures of a turn."""

from __future__ import annotations

from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import partial
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import msgspec
import pytest
import trio
import trio.testing

import mcp_trio
from mcp_core import DIALECTS, ConnectFailed, ConnectionLost, PeerError
from mcp_trio.oracle.bench._process import NoMeter
from mcp_trio.oracle.bench._requests import Mix, PreparedCall
from mcp_trio.oracle.bench._turn import Pace, TargetGone
from mcp_trio.oracle.bench.calls._recorded import Recorded
from mcp_trio.oracle.bench.client import _client_load, _progress
from mcp_trio.oracle.bench.client._client_load import open_client_at, open_client_of
from mcp_trio.oracle.bench.client._conversations import CONVERSATIONS, open_conversations
from mcp_trio.oracle.bench.client._progress import ProgressRate, measure_progress
from tests.core.trace.judge.conversations import C, S, ask, result
from tests.core.trace.replay.traces import HANDSHAKE, call, recorded, text
from tests.trio_.oracle.bench.stand_ins import AnswerReader

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from mcp_core import McpTrioError
    from mcp_trio.oracle.bench._turn import TargetLoad

Clock = trio.testing.MockClock
POT = "tea://pot"
ERAS = ["2025-11-25", "2026-07-28"]


@dataclass
class Size:
    """A form's field."""

    size: int


def make_server(page_size: int = 1_000) -> mcp_trio.Server:
    server = mcp_trio.Server("shop", page_size=page_size)

    @server.tool
    async def wait(seconds: float) -> str:
        """Wait."""
        await trio.sleep(seconds)
        return "done"

    @server.tool
    async def order(context: mcp_trio.Context) -> str:
        """Ask for a size."""
        answer = await context.elicit("Which size?", Size)
        return f"size {answer.data.size}" if answer.action == "accept" else "none"

    @server.tool(task="optional")
    async def research() -> str:
        """Take its time."""
        await trio.sleep(0.25)
        return "owls"

    @server.tool
    def fail() -> str:
        """Fail."""
        raise mcp_trio.ToolError("it failed")

    @server.tool
    async def report(steps: int, context: mcp_trio.Context) -> str:
        """Report steps, ten a second."""
        for step in range(steps):
            await trio.sleep(0.1)
            await context.progress(step, steps)
        return "done"

    return server


def make_pot() -> mcp_trio.Server:
    server = mcp_trio.Server("pot")

    @server.resource(POT)
    def pot() -> str:
        """Say what is in the pot."""
        return "tea"

    @server.tool
    def brew(seconds: float | None) -> str:
        """Change the pot after a while, or never."""

        async def change() -> None:
            await trio.sleep(seconds or 0)
            server.changed(resource=POT)

        if seconds is not None:
            trio.lowlevel.spawn_system_task(change)
        return "started"

    return server


def tool(name: str, **arguments: Any) -> PreparedCall:
    return PreparedCall("tools/call", {"name": name, "arguments": arguments}, f"tools/call {name}")


@asynccontextmanager
async def loaded(
    era: str, timeout: float = 10.0, server: mcp_trio.Server | None = None, **options: Any
) -> AsyncIterator[TargetLoad]:
    connect = partial(mcp_trio.connect, server or make_server(), versions=[era], **options)
    async with open_client_at(connect, port=None, timeout=timeout) as load:
        yield load


@pytest.mark.parametrize("era", ERAS)
async def test_closed_loop_counts_latencies_of_each_caller(era: str, autojump_clock: Clock) -> None:
    async with loaded(era) as load:
        assert (load.revision, load.server.split()[0]) == (era, "shop")
        assert "tools" in load.capabilities
        turn = await load.turn(Mix([tool("wait", seconds=0.15)]), Pace(None, 3), 1.0)
    assert (turn.sent, turn.answered, turn.failed) == (21, 21, 0)
    assert turn.seconds == pytest.approx(1.05)
    assert turn.histogram.percentile(50) == pytest.approx(0.15, rel=0.04)
    assert [name for _, name in turn.slowest] == ["tools/call wait"] * 5


@pytest.mark.parametrize("era", ERAS)
async def test_turn_that_is_cut_has_what_was_answered(era: str, autojump_clock: Clock) -> None:
    """Neither the open call nor those that no caller has taken are counted as late or sent."""
    async with loaded(era) as load, trio.open_nursery() as nursery:
        assert not load.cut()
        turns = []

        async def play() -> None:
            work = Mix([tool("wait", seconds=0.15)])
            turns.append(await load.turn(work, Pace(10.0, 1, even=True), 60.0))

        nursery.start_soon(play)
        await trio.sleep(1.02)
        assert load.cut()
        await trio.testing.wait_all_tasks_blocked()
        [turn] = turns
        assert (turn.is_cut, turn.sent, turn.answered, turn.late) == (True, 6, 6, 6)
        assert turn.unfinished == 5
        assert (await load.turn(Mix([tool("wait", seconds=0.1)]), Pace(None, 1), 0.5)).answered


async def test_think_time_ends_with_the_turn(autojump_clock: Clock) -> None:
    call = tool("wait", seconds=0.1)._replace(think=60.0)
    async with loaded("2026-07-28") as load:
        began = trio.current_time()
        turn = await load.turn(Mix([call]), Pace(None, 2), 1.0)
        assert trio.current_time() - began == pytest.approx(1.0)
    assert turn.answered == 2


@pytest.mark.parametrize("era", ERAS)
async def test_open_loop_counts_from_the_intended_start(era: str, autojump_clock: Clock) -> None:
    """Ten calls a second of 0.3 s on two connections fall behind, and the latency shows it."""
    async with loaded(era) as load:
        work = Mix([tool("wait", seconds=0.3)])
        turn = await load.turn(work, Pace(10.0, 2, even=True), 1.0)
    assert (turn.sent, turn.answered) == (10, 10)
    assert turn.late == 8
    assert turn.histogram.percentile(100) == pytest.approx(0.7, rel=0.1)


@pytest.mark.parametrize("era", ERAS)
async def test_question_is_answered_within_the_call(era: str, autojump_clock: Clock) -> None:
    asked = []

    def fill_in(params: Any) -> dict[str, int]:
        asked.append(params.message)
        return {"size": 4}

    async with loaded(era, on_elicit=fill_in) as load:
        turn = await load.turn(Mix([tool("order")]), Pace(5.0, 2, even=True), 1.0)
    assert (turn.answered, turn.failed) == (5, 0)
    assert asked == ["Which size?"] * 5


async def test_task_is_followed_to_its_result(autojump_clock: Clock) -> None:
    async with loaded("2026-07-28", tasks=True) as load:
        turn = await load.turn(Mix([tool("research")]), Pace(None, 1), 1.0)
    assert turn.answered
    assert not turn.failed
    assert turn.histogram.percentile(0) >= 0.24


@pytest.mark.parametrize(
    ("prepared", "cause"),
    [
        (tool("fail"), "isError"),
        (PreparedCall("resources/read", {"uri": "a://b"}, "read"), "not sent"),
        (PreparedCall("x/unknown", None, "unknown"), "-32601"),
    ],
)
@pytest.mark.parametrize("era", ERAS)
async def test_failed_call_is_counted_by_its_cause(
    era: str, prepared: PreparedCall, cause: str, autojump_clock: Clock
) -> None:
    async with loaded(era) as load:
        turn = await load.turn(Mix([prepared]), Pace(4.0, 1, even=True), 1.0)
    assert (turn.sent, turn.answered) == (4, 0)
    assert turn.errors == {cause: 4}


@pytest.mark.parametrize("era", ERAS)
async def test_call_without_response_in_time_is_a_timeout(era: str, autojump_clock: Clock) -> None:
    """It has no latency, and the callers go on."""
    async with loaded(era, timeout=0.5) as load:
        work = Mix([tool("wait", seconds=60.0)])
        turn = await load.turn(work, Pace(None, 2), 1.0)
        assert (turn.sent, turn.answered, turn.timeouts) == (4, 0, 4)
        assert turn.histogram.count == 0
        turn = await load.turn(Mix([tool("wait", seconds=0.25)]), Pace(None, 2), 1.0)
    assert turn.answered == 8


@pytest.mark.parametrize("era", ERAS)
async def test_call_ends_with_the_notification_that_it_waits_for(
    era: str, autojump_clock: Clock
) -> None:
    """The response comes at once, and the change 0.2 s later. Each caller is subscribed once."""
    async with loaded(era, server=make_pot()) as load:
        call = tool("brew", seconds=0.2)._replace(notified=POT)
        turn = await load.turn(Mix([call]), Pace(None, 1), 1.0)
        assert (turn.sent, turn.answered, turn.failed) == (5, 5, 0)
        assert turn.histogram.percentile(50) == pytest.approx(0.2, rel=0.04)
        turn = await load.turn(Mix([call]), Pace(4.0, 2, even=True), 1.0)
        assert (turn.answered, turn.failed) == (4, 0)


@pytest.mark.parametrize("era", ERAS)
async def test_notification_that_does_not_come_is_a_timeout(
    era: str, autojump_clock: Clock
) -> None:
    async with loaded(era, 0.5, make_pot()) as load:
        call = tool("brew", seconds=None)._replace(notified=POT)
        turn = await load.turn(Mix([call]), Pace(None, 1), 1.0)
        assert (turn.answered, turn.timeouts) == (0, 2)
        call = tool("brew", seconds=0.1)._replace(notified=POT)
        assert (await load.turn(Mix([call]), Pace(None, 1), 1.0)).answered == 10


@pytest.mark.parametrize("era", ERAS)
async def test_subscription_that_a_server_does_not_have_is_an_error(
    era: str, autojump_clock: Clock
) -> None:
    async with loaded(era) as load:
        call = tool("wait", seconds=0.1)._replace(notified=POT)
        turn = await load.turn(Mix([call]), Pace(2.0, 1, even=True), 1.0)
    assert turn.errors == {"not sent": 2}


async def test_think_time_passes_between_calls(autojump_clock: Clock) -> None:
    async with loaded("2025-11-25") as load:
        work = Mix([tool("wait", seconds=0.1)._replace(think=0.4)])
        turn = await load.turn(work, Pace(None, 1), 1.0)
    assert turn.answered == 2
    assert turn.histogram.percentile(100) < 0.11


async def test_request_outside_a_turn_has_its_response_or_its_error(autojump_clock: Clock) -> None:
    async with loaded("2025-11-25") as load:
        listed = await load.ask("tools/list")
        assert {each["name"] for each in listed["result"]["tools"]} >= {"wait", "order"}
        assert (await load.ask("x/unknown"))["error"]["code"] == -32601


PAGES = [
    *HANDSHAKE,
    C(ask(1, "tools/list")),
    S(result(1, tools=[], nextCursor="old")),
    C(ask(2, "tools/list", cursor="old")),
    S(result(2, tools=[])),
    C(call(3, "wait", seconds=0.0)),
    S(text(3, "done")),
]


async def test_recorded_cursors_are_the_live_ones(autojump_clock: Clock) -> None:
    """The server's pages have one tool each, so a stale cursor would be an error."""
    server = make_server(page_size=1)
    connect = partial(mcp_trio.connect, server, versions=["2025-11-25"])
    async with open_client_at(connect, port=None, timeout=5.0) as load:
        work = Recorded(recorded(PAGES), answers_itself=True).work("2025-11-25")
        turn = await load.turn(work, Pace(30.0, 2, even=True), 1.0)
    assert (turn.answered, turn.failed) == (30, 0)


class _Target:
    """A target whose connections can be refused."""

    def __init__(self) -> None:
        self.opened = 0
        self.open = 0
        self.is_refusing = False
        self.server = make_server()

    @asynccontextmanager
    async def connect(self) -> AsyncIterator[mcp_trio.Client]:
        await trio.lowlevel.checkpoint()
        if self.is_refusing:
            raise ConnectFailed("no one listens\nmore")
        self.opened += 1
        self.open += 1
        try:
            async with mcp_trio.connect(self.server) as client:
                yield client
        finally:
            self.open -= 1


async def test_callers_keep_their_clients_for_the_next_turn(autojump_clock: Clock) -> None:
    target = _Target()
    work = Mix([tool("wait", seconds=0.15)])
    async with open_client_at(target.connect, port=None, timeout=5.0) as load:
        assert target.opened == 1
        for callers, opened in ((3, 3), (2, 3), (4, 4)):
            turn = await load.turn(work, Pace(None, callers), 0.5)
            assert (turn.answered, target.opened) == (4 * callers, opened)
    assert target.open == 0


async def test_target_that_accepts_no_caller_ends_the_turn(autojump_clock: Clock) -> None:
    target = _Target()
    async with open_client_at(target.connect, port=None, timeout=5.0) as load:
        target.is_refusing = True
        with pytest.raises(ConnectFailed, match="no one listens"):
            await load.turn(Mix([tool("wait", seconds=0.1)]), Pace(None, 9), 0.5)
    with pytest.raises(ConnectFailed, match="no one listens"):
        async with open_client_at(target.connect, port=None, timeout=5.0):
            pass


async def test_target_that_never_answers_the_handshake_is_no_target(autojump_clock: Clock) -> None:
    @asynccontextmanager
    async def connect() -> AsyncIterator[mcp_trio.Client]:
        await trio.Event().wait()
        async with mcp_trio.connect(make_server()) as client:
            yield client

    with pytest.raises(ConnectFailed, match="within 5 s"):
        async with open_client_at(connect, port=None, timeout=5.0):
            pass


# -- Whole conversations ---------------------------------------------------------------------------


async def test_conversation_is_measured_from_its_start_to_its_end(autojump_clock: Clock) -> None:
    target = _Target()
    open_load = partial(open_client_at, target.connect, port=None, timeout=5.0)
    async with open_conversations(open_load, NoMeter(), timeout=5.0) as load:
        turn = await load.turn(CONVERSATIONS, Pace(20.0, 4, even=True), 1.0)
    assert (turn.answered, turn.failed) == (20, 0)
    assert (target.opened, target.open) == (21, 0)


async def test_conversation_that_cannot_begin_is_an_error(autojump_clock: Clock) -> None:
    target = _Target()
    open_load = partial(open_client_at, target.connect, port=None, timeout=5.0)
    async with open_conversations(open_load, NoMeter(), timeout=5.0) as load:
        target.is_refusing = True
        turn = await load.turn(CONVERSATIONS, Pace(5.0, 1, even=True), 1.0)
    assert (turn.sent, turn.errors) == (5, {"no connection": 5})


# -- Progress --------------------------------------------------------------------------------------


@pytest.mark.parametrize("era", ERAS)
async def test_progress_is_counted_from_the_first_to_the_last(
    era: str, autojump_clock: Clock
) -> None:
    async with mcp_trio.connect(make_server(), versions=[era]) as client:
        found = await measure_progress(client, "report", {"steps": 11}, 11, timeout=5.0)
    assert (found.events, found.error) == (11, "")
    assert found.rate == pytest.approx(10.0)
    assert found.seconds == pytest.approx(1.1)


@pytest.mark.parametrize(
    ("name", "arguments", "error"),
    [
        ("report", {"steps": 2}, "2 of 5 progress notifications came: give --args with which "),
        ("fail", {}, "the tool failed"),
        ("wait", {"seconds": 99.0}, "no answer to tools/call within 5 s"),
    ],
)
async def test_progress_that_does_not_come_is_an_error(
    name: str, arguments: dict[str, Any], error: str, autojump_clock: Clock
) -> None:
    async with mcp_trio.connect(make_server()) as client:
        found = await measure_progress(client, name, arguments, 5, timeout=5.0)
    assert error in found.error
    assert found.to_json()["error"] == found.error


# -- A client that does what a test says -----------------------------------------------------------


class StubClient:
    """A client whose methods have the outcomes that a test gives them: values or exceptions.

    Each of `changes` is a subscription: whether it is accepted, how many notifications it has, one
    each tenth of a second, and the exception that ends it.
    """

    protocol = "pigeon"

    def __init__(self, **outcomes: Any) -> None:
        self.outcomes: dict[str, Any] = {"request": {}, "call_tool": Outcome(), **outcomes}
        self.is_closed = False
        self.sent: list[Any] = []
        info = outcomes.get("info", SimpleNamespace(name="stub", version=""))
        self.peer = SimpleNamespace(dialect=DIALECTS[ERAS[1]], info=info, capabilities={"x": {}})

    async def _outcome(self, name: str, *sent: Any) -> Any:
        self.sent.append((name, *sent))
        await trio.lowlevel.checkpoint()
        found = self.outcomes[name]
        if isinstance(found, BaseException):
            raise found
        return found

    async def request(self, method: str, params: Any, *, timeout: float | None) -> Any:
        return await self._outcome("request", method, params, timeout)

    async def call_tool(self, name: str, arguments: Any, **options: Any) -> Any:
        return await self._outcome("call_tool", name, arguments, options)

    @asynccontextmanager
    async def listen(self, *, uris: list[str]) -> AsyncIterator[StubChanges]:
        await trio.lowlevel.checkpoint()
        self.sent.append(("listen", uris))
        yield StubChanges(*self.outcomes["changes"].pop(0))


class StubChanges:
    """A subscription of a `StubClient`."""

    def __init__(self, honoured: bool, count: int, failure: McpTrioError | None) -> None:
        self.honoured = honoured
        self._count = count
        self._failure = failure

    async def __aiter__(self) -> AsyncIterator[None]:
        for _ in range(self._count):
            await trio.sleep(0.1)
            yield
        await trio.sleep(0.1)
        if self._failure is not None:
            raise self._failure


class Outcome(msgspec.Struct):
    """A tool's result."""

    is_error: bool = False


@asynccontextmanager
async def stub_load(*clients: StubClient, port: int | None = None) -> AsyncIterator[TargetLoad]:
    """Yield the load of clients that are connected one after the other, and are then refused."""
    rest = iter(clients)

    @asynccontextmanager
    async def connect() -> AsyncIterator[Any]:
        await trio.lowlevel.checkpoint()
        client = next(rest, None)
        if client is None:
            raise ConnectFailed("no one listens\nmore")
        yield client

    async with open_client_at(connect, port=port, timeout=5.0) as load:
        yield load


@pytest.mark.parametrize(
    ("info", "server"),
    [
        (None, ""),
        (SimpleNamespace(name="a", version=""), "a"),
        (SimpleNamespace(name="a", version="2"), "a 2"),
    ],
)
async def test_load_has_what_its_client_has_found_out(
    info: Any, server: str, autojump_clock: Clock
) -> None:
    async with stub_load(StubClient(info=info)) as load:
        assert (load.server, load.protocol, load.revision) == (server, "pigeon", ERAS[1])
        assert load.capabilities == {"x": {}}


async def test_request_outside_a_turn_that_fails_has_no_response(autojump_clock: Clock) -> None:
    """A fault of the client itself isn't one of the target."""
    client = StubClient(request=ConnectionLost("reset"))
    async with stub_load(client) as load:
        with pytest.raises(ConnectFailed, match="no response to x/y: reset"):
            await load.ask("x/y", {"a": 1})
        client.outcomes["request"] = PeerError(-5, "no")
        assert await load.ask("x/y") == {"error": {"code": -5, "message": "no"}}
        client.outcomes["request"] = RuntimeError("a fault")
        with pytest.raises(RuntimeError, match="a fault"):
            await load.ask("x/y")
    assert client.sent[0] == ("request", "x/y", {"a": 1}, 5.0)


@pytest.mark.parametrize(
    ("params", "sent"),
    [
        ({"name": "a"}, ("call_tool", "a", None)),
        ({"name": "a", "arguments": {"b": 1}, "_meta": {}}, ("call_tool", "a", {"b": 1})),
        ({"name": "a", "other": 1}, ("request", "tools/call", {"name": "a", "other": 1}, None)),
    ],
)
async def test_tool_is_called_as_a_user_of_the_client_does(
    params: dict[str, Any], sent: tuple[Any, ...], autojump_clock: Clock
) -> None:
    """A member that `Client.call_tool` can't send needs a plain request.

    The load itself limits the time, and a result isn't checked, which would take time.
    """
    client = StubClient()
    async with stub_load(client) as load:
        work = Mix([PreparedCall("tools/call", params, "a")])
        turn = await load.turn(work, Pace(1.0, 1, even=True), 1.0)
    assert (turn.sent, turn.answered) == (1, 1)
    options = [{"timeout": None, "check_output": "off"}] if sent[0] == "call_tool" else []
    assert client.sent == [(*sent, *options)]


async def test_tool_that_fails_is_an_error_of_its_call(autojump_clock: Clock) -> None:
    async with stub_load(StubClient(call_tool=Outcome(is_error=True))) as load:
        turn = await load.turn(Mix([tool("a")]), Pace(2.0, 1, even=True), 1.0)
    assert turn.errors == {"isError": 2}


@pytest.mark.parametrize(
    ("changes", "errors", "answered"),
    [
        # Not accepted: each call tries again.
        ([(False, 0, None)] * 4, {"no subscription": 4}, 0),
        # It ends without a notification, so the next call subscribes again.
        ([(True, 0, None)] * 2 + [(True, 9, None)], {"subscription ended": 2}, 2),
        ([(True, 0, ConnectionLost("reset")), (True, 9, None)], {"closed": 1}, 3),
        ([(True, 1, None), (True, 9, None)], {}, 4),
    ],
)
async def test_call_whose_subscription_ends_fails_and_the_next_one_subscribes_again(
    changes: list[Any], errors: dict[str, int], answered: int, autojump_clock: Clock
) -> None:
    """Its notification can't come any more, so waiting for it would be a timeout."""
    client = StubClient(changes=list(changes))
    async with stub_load(client) as load:
        work = Mix([tool("a")._replace(notified=POT)])
        turn = await load.turn(work, Pace(4.0, 1, even=True), 1.0)
    assert (turn.sent, turn.errors, turn.answered, turn.timeouts) == (4, errors, answered, 0)
    assert client.sent.count(("listen", [POT])) == len(changes)


async def test_caller_whose_client_is_closed_connects_again(autojump_clock: Clock) -> None:
    """If it can't, the target is gone."""
    first, second = StubClient(), StubClient()
    async with stub_load(first, second) as load:
        first.is_closed = True
        assert await load.ask("x/y") == {"result": {}}
        assert (len(first.sent), len(second.sent)) == (0, 1)
        second.is_closed = True
        with pytest.raises(TargetGone) as info:
            await load.ask("x/y")
    assert str(info.value) == "no one listens"


@pytest.mark.parametrize("port", [None, 8080])
async def test_memory_is_that_of_the_processes_behind_the_port(
    port: int | None, autojump_clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A server elsewhere has no port on this machine, and so no memory."""
    ports: list[int] = []

    class PortMeter(NoMeter):
        def __init__(self, port: int) -> None:
            ports.append(port)

        def memory(self) -> int | None:
            return 77

    monkeypatch.setattr(_client_load, "ListenerMeter", PortMeter)
    async with stub_load(StubClient(), port=port) as load:
        turn = await load.turn(Mix([tool("a")]), Pace(1.0, 1, even=True), 1.0)
    assert (turn.memory, ports) == ((None, []) if port is None else (77, [8080]))


async def test_sixteen_clients_connect_at_a_time(autojump_clock: Clock) -> None:
    """One that is refused ends it, and says how many are open; those that wait aren't tried."""
    busy = 0
    most = 0
    tried = 0

    @asynccontextmanager
    async def connect() -> AsyncIterator[Any]:
        nonlocal busy, most, tried
        busy, tried = busy + 1, tried + 1
        most = max(most, busy)
        await trio.sleep(1.0)
        busy -= 1
        if tried > 40:
            raise ConnectFailed("too many\nmore")
        yield StubClient()

    async with open_client_at(connect, port=None, timeout=5.0) as load:
        began = trio.current_time()
        await load.turn(Mix([tool("a")]), Pace(1.0, 18, even=True), 1.0)
        assert trio.current_time() - began == pytest.approx(2.0)
        assert most == 16
        with pytest.raises(ConnectFailed) as info:
            await load.turn(Mix([tool("a")]), Pace(1.0, 99, even=True), 1.0)
    assert (str(info.value), tried) == ("too many; 34 of 99 connections are open", 50)


class StubProgram:
    """A program that is started in memory. Its stdout has ended, as if it had failed at once."""

    pid = 1
    returncode = 7

    def __init__(self, *lines: str) -> None:
        self._lines = lines
        self.is_closed = False

    @asynccontextmanager
    async def spawn(self, on_stderr: Any) -> AsyncIterator[Any]:
        self.stream, peer = trio.testing.memory_stream_pair()
        await peer.aclose()
        for line in self._lines:
            on_stderr(line)
        yield self

    async def aclose(self) -> None:
        await trio.lowlevel.checkpoint()
        self.is_closed = True

    def describe_start(self) -> str:
        return "; it has ended" if self.is_closed else ""


async def test_program_that_ends_at_once_is_no_target_and_says_why(autojump_clock: Clock) -> None:
    """Its exit status and its stderr are known only once it is closed."""
    program: Any = StubProgram()
    with pytest.raises(ConnectFailed, match=r"; it has ended$"):
        async with open_client_of(program, {}, timeout=5.0):
            pass


async def test_program_that_ends_later_is_gone_with_the_end_of_its_stderr(
    autojump_clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All callers share its client, and an error while it runs is one of a call."""
    client = StubClient(request=ConnectionLost("reset\nmore"))

    @asynccontextmanager
    async def connect(stream: object) -> AsyncIterator[Any]:
        await trio.lowlevel.checkpoint()
        yield client

    monkeypatch.setattr(_client_load, "connect_stream", connect)
    program: Any = StubProgram(*map(str, range(6)), "\x1b" + "x" * 600)
    async with open_client_of(program, {}, timeout=5.0) as load:
        turn = await load.turn(Mix([PreparedCall("x/y", None, "y")]), Pace(2.0, 2, even=True), 1.0)
        assert turn.errors == {"closed": 2}
        client.is_closed = True
        with pytest.raises(TargetGone) as info:
            await load.turn(Mix([PreparedCall("x/y", None, "y")]), Pace(None, 2), 1.0)
    found = info.value
    assert (str(found), found.status) == ("reset", 7)
    assert found.stderr == ("2", "3", "4", "5", "\\u001b" + "x" * 499)


# -- Figures of progress ---------------------------------------------------------------------------


async def test_progress_that_is_interrupted_has_what_has_come(autojump_clock: Clock) -> None:
    """Ctrl+C ends the call, and its figures are those until then."""
    scopes: list[trio.CancelScope] = []
    async with mcp_trio.connect(make_server()) as client, trio.open_nursery() as nursery:

        async def interrupt() -> None:
            await trio.sleep(0.35)
            scopes[0].cancel()

        nursery.start_soon(interrupt)
        began = trio.current_time()
        found = await measure_progress(
            client, "report", {"steps": 11}, 11, timeout=5.0, on_begin=scopes.append
        )
        assert trio.current_time() - began == pytest.approx(0.35)
    assert (found.events, found.wanted, found.error) == (3, 11, "the call was interrupted")
    assert found.seconds == pytest.approx(0.35)
    assert [found.first, found.last] == pytest.approx([0.1, 0.3])


async def test_call_with_progress_may_take_long_and_is_not_checked(autojump_clock: Clock) -> None:
    """The timeout is for the time without progress. An error's first line is its cause."""
    client: Any = StubClient(call_tool=ConnectionLost("reset\nmore"))
    found = await measure_progress(client, "a", {"b": 1}, 5, timeout=7.0)
    [(_, name, arguments, options)] = client.sent
    options.pop("progress")
    assert (name, arguments) == ("a", {"b": 1})
    assert options == {"timeout": 7.0, "max_timeout": None, "check_output": "off"}
    assert found.error == "reset"


async def test_progress_as_json_has_its_rate(
    autojump_clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The processor time is the one of the call, and not of this process until then."""
    times = iter([5.0, 5.75])
    clock = SimpleNamespace(process_time=lambda: next(times))
    monkeypatch.setattr(_progress, "time", clock)
    client: Any = StubClient()
    found = await measure_progress(client, "a", {}, 0, timeout=7.0)
    assert (found.load_cpu, found.error, found.rate) == (0.75, "", None)
    found = ProgressRate(5, events=5, first=0.5, last=2.5, seconds=3.0, load_cpu=0.25)
    assert found.to_json() == {
        "wanted": 5,
        "events": 5,
        "rate": 2.0,
        "first": 0.5,
        "last": 2.5,
        "seconds": 3.0,
        "load_cpu": 0.25,
        "error": None,
    }


@pytest.mark.parametrize(
    ("times", "rate"), [((None, None), None), ((0.5, 0.5), None), ((0.5, 1.0), 4.0)]
)
def test_rate_of_progress_needs_two_notifications(
    times: tuple[float | None, float | None], rate: float | None
) -> None:
    first, last = times
    assert ProgressRate(3, events=3, first=first, last=last).rate == rate


@pytest.mark.parametrize(
    ("cpu", "seconds", "is_bound"), [(0.86, 1.0, True), (0.85, 1.0, False), (0.1, 0.0, False)]
)
def test_client_that_is_busy_all_the_time_limits_the_progress(
    cpu: float, seconds: float, is_bound: bool
) -> None:
    assert ProgressRate(3, seconds=seconds, load_cpu=cpu).is_client_bound is is_bound


# -- The first conversation ------------------------------------------------------------------------


async def test_load_of_conversations_has_what_the_first_one_has_found_out(
    autojump_clock: Clock,
) -> None:
    """The error of a ping is the error of its call, and of the load that begins with it."""
    client = StubClient()
    open_load = partial(stub_load, client, client, client)
    async with open_conversations(open_load, NoMeter(), timeout=5.0) as load:
        assert (load.server, load.protocol, load.revision) == ("stub", "pigeon", ERAS[1])
        assert load.capabilities == {"x": {}}
        assert await load.ask("x/y", {"a": 1}) == {"result": {}}
    ping = DIALECTS[ERAS[1]].ping
    assert client.sent == [("request", ping, None, 5.0), ("request", "x/y", {"a": 1}, 5.0)]


async def test_conversation_whose_ping_fails_is_an_error_by_its_code(autojump_clock: Clock) -> None:
    client = StubClient(request=PeerError(-5, "no"))
    open_load = partial(stub_load, client)
    async with open_conversations(open_load, NoMeter(), timeout=5.0) as load:
        turn = await load.turn(CONVERSATIONS, Pace(2.0, 1, even=True), 1.0)
    assert turn.errors == {"-5": 2}


class AskedOnce(StubClient):
    """A load of one conversation, whose request has this response."""

    def __init__(self, answer: Any) -> None:
        super().__init__()
        self.revision, self.server = ERAS[1], "a 1"
        self.capabilities: dict[str, Any] = {}
        self._found = answer

    @asynccontextmanager
    async def opened(self) -> AsyncIterator[Any]:
        await trio.lowlevel.checkpoint()
        yield self

    async def ask(self, method: str, params: Any = None) -> Any:
        await trio.sleep(0.3)
        return self._found


@pytest.mark.parametrize(
    ("answer", "errors", "seen"),
    [
        ({"result": {"a": 1}}, {}, {"result": {"a": 1}}),
        ({"error": "x"}, {"no response": 2}, None),
        ({"error": {"code": -7}}, {"-7": 2}, None),
    ],
)
async def test_worker_of_conversations_reads_the_result_of_the_ping(
    answer: Any, errors: dict[str, int], seen: Any, autojump_clock: Clock
) -> None:
    work = AnswerReader()
    async with open_conversations(AskedOnce(answer).opened, NoMeter(), timeout=5.0) as load:
        turn = await load.turn(work, Pace(None, 1), 1.0)
    assert (turn.errors, work.seen) == (errors, [None, seen])


def test_progress_begins_with_nothing() -> None:
    assert ProgressRate(3) == ProgressRate(3, 0, None, None, 0.0, 0.0, "")
