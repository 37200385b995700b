"""The limits of a tool's calls: `timeout=` and `rate=`, in each revision and on both drivers."""

from __future__ import annotations

import threading
from typing import Any

import pytest

from mcp_asyncio_shim._runtime import LoopRuntime
from mcp_core import PeerError, Rate, ToolError
from mcp_core.registry import AcceptedElicitation, Context, DeclarationError, Server
from mcp_core.runtime import RateLimit
from mcp_core.types import (
    CreateMessageParams,
    CreateMessageResult,
    ElicitParams,
    ElicitRequest,
    InputRequiredResult,
    SamplingCapability,
    TextContent,
    ToolResultContent,
    ToolUseContent,
)
from mcp_trio._runtime import TrioRuntime
from tests.harness import either
from tests.harness.jsonrpc import D, E, text_of
from tests.harness.wire.lines import ERAS, served
from tests.harness.world import thread_clock, virtual_time
from tests.harness.world.waiting import PATIENCE

pytestmark = pytest.mark.usefixtures("each_driver")

FORM = {"type": "object", "properties": {"name": {"type": "string"}}}


def using(name: str, number: int = 1) -> dict[str, Any]:
    """The options of a client whose model uses a tool so many times, and repeats the results."""

    def on_sample(params: CreateMessageParams) -> CreateMessageResult:
        last = params.messages[-1].content
        if not isinstance(last, list):
            uses: list[Any] = [ToolUseContent(str(index), name, {}) for index in range(number)]
            return CreateMessageResult(
                role="assistant", content=uses, model="m", stop_reason="toolUse"
            )
        results = [block for block in last if isinstance(block, ToolResultContent)]
        text = ", ".join(str(getattr(block.content[0], "text", "")) for block in results)
        return CreateMessageResult(role="assistant", content=TextContent(text), model="m")

    return {"on_sample": on_sample, "sampling": SamplingCapability(tools={})}


class SlowTool:
    """A server whose tool takes as long as it is told, and has five seconds."""

    def __init__(self, **options: Any) -> None:
        self.server = Server("slow", **options)
        self.ended: list[str] = []
        self.server.add_tool(self.take, timeout=5)

    async def take(self, seconds: float) -> str:
        """Take so many seconds."""
        try:
            await either.sleep(seconds)
        except either.Cancelled:
            self.ended.append("cancelled")
            raise
        return "in time"


@pytest.mark.parametrize("version", ERAS)
@pytest.mark.parametrize(
    ("seconds", "text", "after"),
    [(4.9, "in time", 4.9), (5.1, "The tool took longer than 5 s, and was stopped.", 5)],
)
async def test_timeout_of_a_tool_stops_its_handler(
    seconds: float, text: str, after: float, version: str
) -> None:
    """At the very second, and the model gets a result that says so. The next call works."""
    slow = SlowTool()
    async with served(slow.server, version) as wire:
        start = either.current_time()
        answer = await wire.call(1, "take", {"seconds": seconds})
        assert round(either.current_time() - start, 3) == after
        assert text_of(answer) == text
        assert answer["result"].get("isError", False) is (seconds > 5)
        assert slow.ended == (["cancelled"] if seconds > 5 else [])
        assert text_of(await wire.call(2, "take", {"seconds": 1})) == "in time"


async def test_timeout_is_a_tool_error_for_middleware() -> None:
    slow = SlowTool()
    seen: list[str] = []

    @slow.server.middleware
    async def watch(context: Context, proceed: Any) -> Any:
        try:
            return await proceed()
        except ToolError as exc:
            seen.append(str(exc))
            raise

    async with served(slow.server) as wire:
        await wire.call(1, "take", {"seconds": 9})
    assert seen == ["The tool took longer than 5 s, and was stopped."]


async def test_timeout_leaves_a_cancellation_by_the_client_alone() -> None:
    """The request has no response, and the timeout comes to nothing."""
    slow = SlowTool()
    async with served(slow.server) as wire:
        await wire.send(wire.calling(1, "take", {"seconds": 9}))
        await either.sleep(1)
        await wire.notify("notifications/cancelled", {"requestId": 1})
        await either.sleep(20)
        assert slow.ended == ["cancelled"]
        assert await wire.is_silent()
        assert await wire.is_alive()


@pytest.mark.parametrize("outcome", ["returns", "raises", "TimeoutError"])
async def test_handler_that_catches_the_timeout_keeps_its_outcome(
    outcome: str, caplog: pytest.LogCaptureFixture
) -> None:
    """And a `TimeoutError` of its own, before the end, isn't the tool's."""
    server = Server("stubborn")

    @server.tool(timeout=5)
    async def stubborn() -> str:
        """Be stubborn."""
        if outcome == "TimeoutError":
            raise TimeoutError("s3cret")
        try:
            await either.sleep(60)
        except either.Cancelled:
            if outcome == "raises":
                raise ToolError("gave up") from None
        return "all the same"

    async with served(server) as wire:
        text = text_of(await wire.call(1, "stubborn"))
    if outcome == "TimeoutError":
        assert text.startswith("The tool failed with an internal error")
    else:
        assert text == {"returns": "all the same", "raises": "gave up"}[outcome]


async def test_timeout_of_a_thread_leaves_it_behind_and_says_so(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """The client has its answer while the thread goes on, and what it returns is dropped."""
    started, release = threading.Event(), threading.Event()
    ended: list[str] = []
    server = Server("threads")

    @server.tool(thread=True, timeout=5)
    def block() -> str:
        """Block."""
        started.set()
        release.wait(PATIENCE)
        ended.append("too late")
        return "too late"

    waiting = thread_clock if either.on_trio() else virtual_time
    async with served(server) as wire:
        await wire.send(wire.calling(1, "block"))
        await either.until(started.is_set)
        with waiting.thread_waiting():
            text = text_of(await wire.receive())
        assert text == "The tool took longer than 5 s. It may still be running."
        assert ended == []
        release.set()
        await either.until(lambda: ended)
        assert await wire.is_silent()
        assert await wire.is_alive()
    [line] = caplog.messages
    assert line.endswith(
        "took longer than 5 s: its thread goes on until it returns, and occupies one of the"
        " threads for handlers meanwhile"
    )


async def answer_late(params: ElicitParams) -> dict[str, Any]:
    """Answer a form as a user does who was away for 50 s."""
    await either.sleep(50)
    return {"name": "Ada"}


@pytest.mark.parametrize("version", ERAS)
@pytest.mark.parametrize("style", ["await", "return"])
async def test_timeout_stands_still_while_the_user_is_asked(style: str, version: str) -> None:
    """Two questions at once, too. What the handler takes itself still counts."""
    server = Server("asking")

    @server.tool(timeout=5)
    async def ask(before: float, context: Context) -> Any:
        """Ask, and work for two seconds before and after."""
        await either.sleep(before)
        if style == "return":
            params = ElicitParams(message="?", mode="form", requested_schema=FORM)
            if context.request_state is None:
                requests: dict[str, Any] = {"a": ElicitRequest(params)}
                return InputRequiredResult(input_requests=requests, request_state="asked")
        else:
            answer = await context.elicit("?", FORM)
            assert isinstance(answer, AcceptedElicitation)
        await either.sleep(2)
        return "done"

    async with either.connect(server, versions=[version], on_elicit=answer_late) as client:
        assert (await client.call_tool("ask", {"before": 2})).text == "done"
        result = await client.call_tool("ask", {"before": 4})
        # Run again with the answer, the handler has the whole time, and needs six seconds of it.
        assert result.text == "The tool took longer than 5 s, and was stopped."


@pytest.mark.parametrize("version", ERAS)
async def test_timeout_of_a_task_counts_no_wait_for_the_user(version: str) -> None:
    """The task ends with the result that says so, after it has asked in vain or not at all."""
    server = Server("tasks")

    @server.tool(task="required", timeout=5)
    async def work(before: float, context: Context) -> str:
        """Ask, and work before and after."""
        await either.sleep(before)
        await context.elicit("?", FORM)
        await either.sleep(2)
        return "done"

    async with either.connect(server, versions=[version], on_elicit=answer_late) as client:
        for before, text in ((2, "done"), (9, "The tool took longer than 5 s, and was stopped.")):
            result = await client.call_tool("work", {"before": before}, timeout=None)
            assert (result.text, result.is_error) == (text, text != "done")


async def test_timeout_of_a_tool_that_the_clients_model_uses() -> None:
    """It ends that use, not the handler around it, whose own time goes on."""
    slow = SlowTool()

    @slow.server.tool(timeout=20)
    async def think(context: Context) -> str:
        """Let the model use the slow tool."""
        answer = await context.sample_with_tools("?", ["take"], max_tokens=9)
        return answer.text

    async def on_sample(params: CreateMessageParams) -> CreateMessageResult:
        await either.sleep(30)
        last = params.messages[-1].content
        if isinstance(last, list):
            [used] = last
            assert isinstance(used, ToolResultContent)
            [content] = used.content
            assert isinstance(content, TextContent)
            return CreateMessageResult(role="assistant", content=content, model="m")
        use = ToolUseContent("1", "take", {"seconds": 60})
        return CreateMessageResult(
            role="assistant", content=[use], model="m", stop_reason="toolUse"
        )

    options: dict[str, Any] = {"versions": [D], "on_sample": on_sample}
    options["sampling"] = SamplingCapability(tools={})
    async with either.connect(slow.server, **options) as client:
        result = await client.call_tool("think", timeout=None, max_timeout=None)
    assert result.text == "The tool took longer than 5 s, and was stopped."
    assert not result.is_error


@pytest.mark.parametrize("by_model", [False, True])
async def test_timeout_is_over_with_its_handler(by_model: bool) -> None:
    """A question that another task of the handler still asks doesn't start its time again.

    It would cancel what the task of the handler does next: its middleware, or the outer handler.
    """
    server = Server("hasty")
    names: list[str] = []

    @server.tool(timeout=5)
    async def ask(context: Context) -> str:
        """Leave the question to another task."""

        async def question() -> None:
            answer = await context.elicit("?", FORM)
            assert isinstance(answer, AcceptedElicitation)
            names.append(answer.data["name"])

        nursery.start_soon(question)
        await either.sleep(2)
        return "later"

    @server.tool
    async def think(context: Context) -> str:
        """Let the model use the tool, and go on for a while."""
        answer = await context.sample_with_tools("?", ["ask"], max_tokens=9)
        await either.sleep(60)
        return answer.text

    @server.middleware
    async def audit(context: Context, proceed: Any) -> Any:
        result = await proceed()
        await either.sleep(60)
        return result

    async def on_elicit(params: ElicitParams) -> dict[str, Any]:
        await either.sleep(10)
        return {"name": "Ada"}

    options: dict[str, Any] = {"versions": [D], "on_elicit": on_elicit, **using("ask")}
    async with either.open_nursery() as nursery, either.connect(server, **options) as client:
        result = await client.call_tool("think" if by_model else "ask", timeout=None)
    assert (result.text, names) == ("later", ["Ada"])


FAULTS: list[tuple[dict[str, Any], str]] = [
    ({"timeout": 0}, "timeout is a number of seconds above 0, not 0"),
    ({"timeout": -1}, "timeout is a number of seconds above 0, not -1"),
    ({"timeout": float("nan")}, "timeout is a number of seconds above 0, not nan"),
    ({"timeout": float("inf")}, "timeout is a number of seconds above 0, not inf"),
    ({"timeout": True}, "timeout is a number of seconds above 0, not True"),
    ({"timeout": "5"}, "timeout is a number of seconds above 0, not '5'"),
    ({"rate": 5}, "rate is a Rate, such as Rate(per_second=1, burst=10), not 5"),
]


async def plain() -> str:
    """Do nothing."""
    return ""


@pytest.mark.parametrize(("options", "text"), FAULTS)
async def test_limits_that_cannot_be_used_are_refused(options: dict[str, Any], text: str) -> None:
    with pytest.raises(DeclarationError, match="function 'plain': ") as caught:
        Server("s").add_tool(plain, **options)
    assert str(caught.value).endswith(text)


async def test_timeout_of_a_plain_def_is_refused_unless_it_runs_in_a_thread() -> None:
    def blocks() -> str:
        """Block."""
        return ""

    with pytest.raises(DeclarationError, match="which nothing can stop in the event loop: with"):
        Server("s").add_tool(blocks, timeout=1)
    Server("s").add_tool(blocks, timeout=1, thread=True)
    Server("s", threads=True).add_tool(blocks, timeout=1)


# -- Rates -----------------------------------------------------------------------------------------

TOO_MANY = "too many calls in a short time; try again in 10 s"


@pytest.fixture(autouse=True)
def clock(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the clock by which calls are counted go with the test's, far ahead of it.

    Otherwise it is a real one, on both drivers, and a slow machine gives calls back.
    """
    for runtime in TrioRuntime, LoopRuntime:
        now = staticmethod(lambda: 1e6 + either.current_time())
        monkeypatch.setattr(runtime, "monotonic", now)


def counted(burst: int = 2, **options: Any) -> Server:
    """A server with two tools, each of which may be called once in ten seconds."""
    server = Server("counted")
    rate = Rate(per_second=0.1, burst=burst)

    @server.tool(rate=rate, **options)
    def one(number: int = 0) -> str:
        """Be the first."""
        return "one"

    @server.tool(rate=rate)
    async def two() -> str:
        """Be the second."""
        return "two"

    return server


@pytest.mark.parametrize("version", ERAS)
@pytest.mark.parametrize("with_middleware", [False, True])
async def test_rate_of_a_tool_limits_its_calls(version: str, with_middleware: bool) -> None:
    """Each tool has its own, and time brings calls back. Invalid calls don't count."""
    server = counted()
    if with_middleware:

        @server.middleware
        async def pass_on(context: Context, proceed: Any) -> Any:
            return await proceed()

    async with served(server, version) as wire:
        for id in range(3):
            await wire.call(f"bad {id}", "one", {"number": "x"})
        assert [text_of(await wire.call(id, "one")) for id in range(2)] == ["one", "one"]
        refused = await wire.call(2, "one")
        assert refused["error"] == {
            "code": 429 if version == E else -32000,
            "message": TOO_MANY,
            "data": {"retryAfter": 10.0},
        }
        assert text_of(await wire.call(3, "two")) == "two"
        await either.sleep(10)
        assert text_of(await wire.call(4, "one")) == "one"
        assert "error" in await wire.call(5, "one")


async def test_rate_counts_all_connections_of_a_nameless_client() -> None:
    """On a pipe there is one user, who may connect again."""
    server = counted()
    for expected in ("one", "one", None):
        async with served(server) as wire:
            answer = await wire.call(1, "one")
        assert ("error" in answer) is (expected is None)


@pytest.mark.parametrize("version", ERAS)
@pytest.mark.parametrize("mounted", [False, True])
async def test_rate_goes_by_the_time_of_the_call_not_of_its_arrival(
    mounted: bool, version: str
) -> None:
    """A middleware lets each call of the first connection wait, and none of the second.

    So the calls of the two are counted in another order than they have arrived in.
    """
    server = counted(burst=1)
    waits = [10, 0, 10, 0]

    @server.middleware
    async def wait(context: Context, proceed: Any) -> Any:
        await either.sleep(waits.pop(0))
        return await proceed()

    name = "one"
    if mounted:
        inner, server, name = server, Server("outer"), "in_one"
        server.mount(inner, "in")
    ran: list[bool] = []
    async with served(server, version) as slow, served(server, version) as quick:
        for pause in 9.8, 0.4:  # a call of `slow` arrives, and is counted 10 s later
            await slow.send(slow.calling(len(ran), name))
            await either.sleep(pause)
            ran.append("result" in await quick.call(len(ran), name))
            ran.append("result" in await slow.receive())
    # At 9.8, 10, 10.2 and 20 s: the second time of `quick` wasn't refilled twice.
    assert ran == [True, False, False, True]


@pytest.mark.parametrize("version", ERAS)
@pytest.mark.parametrize("mounted", [False, True])
@pytest.mark.parametrize("as_task", [False, True])
async def test_rate_counts_what_the_clients_model_uses(
    as_task: bool, mounted: bool, version: str
) -> None:
    """The model gets the error. Uses and calls of one client count together, also in a task."""
    server = Server("thinking")
    name, prefix = "one", ""
    if mounted:
        name, prefix = "in_one", "in_"
        server.mount(counted(), "in")
    else:
        server = counted()

    @server.tool(task="required" if as_task else "forbidden")
    async def think(context: Context) -> str:
        """Let the model use a tool."""
        answer = await context.sample_with_tools("?", [name], max_tokens=9)
        return answer.text

    options: dict[str, Any] = {"versions": [version], **using(name, number=3)}
    async with either.connect(server, **options) as client:
        result = await client.call_tool("think", timeout=None)
        assert result.text == f"one, one, {TOO_MANY}"
        with pytest.raises(PeerError, match="too many calls in a short time"):
            await client.call_tool(name)
        assert (await client.call_tool(f"{prefix}two")).text == "two"


@pytest.mark.parametrize("version", ERAS)
async def test_rates_go_by_one_clock_in_calls_and_tasks(version: str) -> None:
    """The middleware runs again in a task, whose runtime has another clock for its waits."""
    server = Server("tasks")

    @server.tool(task="required")
    async def ask(context: Context) -> Any:
        """Ask by the return value."""
        if context.request_state is None:
            params = ElicitParams(message="?", mode="form", requested_schema=FORM)
            requests: dict[str, Any] = {"a": ElicitRequest(params)}
            return InputRequiredResult(input_requests=requests, request_state="asked")
        return "done"

    def key(context: Context) -> str:
        return "a" if context.method == "tools/call" else ""

    server.middleware(RateLimit(Rate(per_second=0.001, burst=2), key=key))
    options: dict[str, Any] = {"versions": [version], "on_elicit": lambda params: {"name": "Ada"}}
    async with either.connect(server, **options) as client:
        await client.list_tools()  # which says that this one runs as a task
        assert (await client.call_tool("ask")).text == "done"
        with pytest.raises(PeerError, match="too many calls in a short time"):
            await client.call_tool("ask")


async def test_rate_counts_a_handler_that_runs_again_once() -> None:
    """Its middleware may call it twice, and the user may be asked, all for one request."""
    server = Server("asking")

    @server.tool(rate=Rate(per_second=0.001, burst=1))
    async def ask(context: Context) -> Any:
        """Ask by the return value."""
        if context.request_state is None:
            params = ElicitParams(message="?", mode="form", requested_schema=FORM)
            requests: dict[str, Any] = {"a": ElicitRequest(params)}
            return InputRequiredResult(input_requests=requests, request_state="asked")
        return "done"

    @server.middleware
    async def twice(context: Context, proceed: Any) -> Any:
        await proceed()
        return await proceed()

    options: dict[str, Any] = {"on_elicit": lambda params: {"name": "Ada"}}
    async with either.connect(server, versions=[D], **options) as client:
        assert (await client.call_tool("ask")).text == "done"


@pytest.mark.parametrize("with_middleware", [False, True])
async def test_limits_hold_for_tools_of_a_mounted_server(with_middleware: bool) -> None:
    """Also inside of its middleware. The counts are the tool's, in each server that has it."""
    inner = counted()
    inner.add_tool(SlowTool().take, timeout=5)
    if with_middleware:

        @inner.middleware
        async def pass_on(context: Context, proceed: Any) -> Any:
            return await proceed()

    outer = Server("outer")
    outer.mount(inner, "in")
    async with served(outer) as wire:
        answers = [await wire.call(id, "in_one") for id in range(3)]
        assert ["error" in answer for answer in answers] == [False, False, True]
        text = text_of(await wire.call(4, "in_take", {"seconds": 9}))
        assert text == "The tool took longer than 5 s, and was stopped."
    async with served(inner) as wire:
        assert "error" in await wire.call(1, "one")
