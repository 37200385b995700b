"""Cancel our server at every step of a scenario. `cancelling.py` has the invariants."""

from __future__ import annotations

import threading
from functools import partial
from typing import TYPE_CHECKING, Any

import pytest
import trio
import trio.testing

from mcp_core.registry import Context
from mcp_trio import serve_listeners, serve_stream
from tests.harness.jsonrpc import (
    D,
    E,
    cancelled,
    result,
    text_of,
)
from tests.harness.wire.lines import Wire
from tests.harness.world.waiting import PATIENCE
from tests.levels import long
from tests.trio_.cancelling import (
    SEEDS_AND_STRIDES,
    TOOLS,
    CancellationWorld,
    End,
    inside,
    lifespan,
    made,
    make,
    play_at_every_step,
)

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from mcp_core.registry import Proceed
    from tests.trio_.cancelling import Scenario


async def cut_server(
    world: CancellationWorld,
    script: Callable[[Wire], Awaitable[object]],
    *,
    version: str = E,
    **options: Any,
) -> None:
    """Serve a client that follows the script, closes, and then receives nothing more."""
    ours, theirs = world.pair()
    wire = Wire(ours, version)
    following = trio.CancelScope()

    async def serve() -> None:
        with world.cut():
            await serve_stream(world.server, theirs, **options)
        if world.was_cut:
            following.cancel()

    async with ours, trio.open_nursery() as nursery:
        nursery.start_soon(serve)
        with following, world.excused():
            await wire.shake_hands()
            await script(wire)
            await ours.send_eof()
            assert await wire.receive_all() == []


async def receive_responses(wire: Wire, answers: int) -> dict[Any, Any]:
    """Return the next responses by id; other messages may come between them."""
    responses: dict[Any, Any] = {}
    while len(responses) < answers:
        message = await wire.receive()
        if "method" not in message:
            assert message["id"] not in responses
            responses[message["id"]] = message
    return responses


async def an_async_handler(world: CancellationWorld) -> None:
    async def script(wire: Wire) -> None:
        await wire.send(wire.calling(11, "nested"), wire.calling(12, "steps"))
        responses = await receive_responses(wire, 2)
        assert [text_of(responses[id]) for id in (11, 12)] == ["there", "there"]

    await cut_server(world, script)


async def a_plain_def(world: CancellationWorld) -> None:
    async def script(wire: Wire) -> None:
        for id in 11, 12, 13:
            assert text_of(await wire.call(id, "hello")) == "hello"

    await cut_server(world, script, version=D)


async def a_thread(world: CancellationWorld) -> None:
    world.server = make()
    may_go_on = threading.Semaphore(0)

    @world.server.tool(thread=True)
    def block(context: Context) -> str:
        """Block."""
        for step in range(2):
            context.progress_nowait(step)
            assert may_go_on.acquire(timeout=PATIENCE)
        return "done"

    async def script(wire: Wire) -> None:
        await wire.send(wire.calling(11, "block", progressToken=1), wire.calling(12, "block"))
        for _ in range(4):
            await trio.testing.wait_all_tasks_blocked()
            may_go_on.release()
        assert text_of((await receive_responses(wire, 2))[12]) == "done"

    await cut_server(world, script)
    may_go_on.release(4)  # those that were abandoned
    while trio.to_thread.current_default_thread_limiter().borrowed_tokens:  # noqa: ASYNC110
        await trio.sleep(0.0001)  # no task waits for an abandoned thread


async def progress_to_a_slow_reader(world: CancellationWorld) -> None:
    async def script(wire: Wire) -> None:
        await wire.send(wire.calling(11, "steps", {"size": 50_000}, progressToken=1))
        steps = 0
        while "method" in (message := await wire.receive()):
            assert message["params"]["progress"] == steps
            steps += 1
            await trio.sleep(1)
        assert (steps, text_of(message)) == (5, "there")

    await cut_server(world, script)


async def log_messages(world: CancellationWorld, version: str) -> None:
    async def script(wire: Wire) -> None:
        level: Any = {"io.modelcontextprotocol/logLevel": "error"} if version == E else {}
        await wire.send(wire.calling(11, "log_messages", **level))
        for step in range(3):
            logged = (await wire.receive())["params"]
            assert (logged["level"], logged["data"]) == ("error", {"step": step})
        assert text_of(await wire.receive()) == "logged"

    await cut_server(world, script, version=version)


async def middleware(world: CancellationWorld) -> None:
    world.server = make()

    @world.server.middleware
    async def around(context: Context, proceed: Proceed) -> Any:
        with inside():
            await trio.lowlevel.checkpoint()
            try:
                return await proceed()
            finally:
                with trio.CancelScope(shield=True):
                    await trio.lowlevel.checkpoint()

    @world.server.middleware
    async def again(context: Context, proceed: Proceed) -> Any:
        with inside():
            await proceed()
            return await proceed()

    async def script(wire: Wire) -> None:
        await wire.send(
            wire.calling(11, "hello"), wire.calling(12, "steps"), wire.asking(13, "tools/list")
        )
        assert text_of((await receive_responses(wire, 3))[12]) == "there"

    await cut_server(world, script)


async def a_lifespan(world: CancellationWorld) -> None:
    world.server = make(lifespan=lifespan)

    @world.server.tool
    async def look(context: Context[str]) -> str:
        """Look at it."""
        await trio.lowlevel.checkpoint()
        return context.lifespan

    async def script(wire: Wire) -> None:
        assert text_of(await wire.call(11, "look")) == "alive"

    await cut_server(world, script)


async def completion(world: CancellationWorld) -> None:
    world.server = make()

    @world.server.prompt
    def review(language: str) -> str:
        """Ask for a review."""
        return language

    @world.server.completion("review", "language")
    async def languages(typed: str) -> list[str]:
        with inside():
            await trio.lowlevel.checkpoint()
        return [typed + "ython"]

    async def script(wire: Wire) -> None:
        request = {
            "ref": {"type": "ref/prompt", "name": "review"},
            "argument": {"name": "language", "value": "p"},
        }
        for id in 11, 12:
            response = await wire.ask(id, "completion/complete", request)
            assert response["result"]["completion"]["values"] == ["python"]

    await cut_server(world, script)


async def paging(world: CancellationWorld) -> None:
    world.server = made(page_size=2)

    async def script(wire: Wire) -> None:
        names: list[str] = []
        params: dict[str, str] | None = {}
        while params is not None:
            page = (await wire.ask(10 + len(names), "tools/list", params))["result"]
            names += [tool["name"] for tool in page["tools"]]
            params = {"cursor": page["nextCursor"]} if "nextCursor" in page else None
        assert names == [tool.__name__ for tool in TOOLS]

    await cut_server(world, script, version=D)


async def a_question(world: CancellationWorld) -> None:
    async def script(wire: Wire) -> None:
        await wire.send(wire.calling(11, "ask"), wire.calling(12, "ask"))
        for _ in range(2):
            request = await wire.receive()
            assert request["method"] == "roots/list"
            await wire.send(result(request["id"], {"roots": [{"uri": "file:///a"}]}))
        responses = await receive_responses(wire, 2)
        assert [text_of(responses[id]) for id in (11, 12)] == ["1", "1"]

    await cut_server(world, script, version=D)


async def a_client_that_listens(world: CancellationWorld) -> None:
    async def script(wire: Wire) -> None:
        wanted = {"notifications": {"toolsListChanged": True}}
        await wire.send(wire.asking(11, "subscriptions/listen", wanted))
        assert (await wire.receive())["method"] == "notifications/subscriptions/acknowledged"
        await wire.send(wire.calling(12, "change"))
        methods = {(await wire.receive()).get("method"), (await wire.receive()).get("method")}
        assert methods == {None, "notifications/tools/list_changed"}
        await wire.send(cancelled(11))

    await cut_server(world, script)


async def an_orderly_stop_during_a_call(world: CancellationWorld) -> None:
    stop = trio.Event()

    async def script(wire: Wire) -> None:
        await wire.send(wire.calling(11, "wait"), wire.calling(12, "nested"))
        await trio.testing.wait_all_tasks_blocked()
        stop.set()
        await trio.testing.wait_all_tasks_blocked()
        await wire.send(wire.calling(13, "hello"), wire.asking(14, "ping"))
        responses = await receive_responses(wire, 4)
        assert text_of(responses[12]) == "there"
        assert "shut down" in responses[11]["error"]["message"]
        assert "shut down" in responses[13]["error"]["message"]
        assert responses[14]["result"] == {}

    await cut_server(world, script, version=D, stop=stop, grace=1)


async def the_end_of_the_input_during_a_call(world: CancellationWorld) -> None:
    async def script(wire: Wire) -> None:
        await wire.send(
            wire.calling(11, "wait"), wire.calling(12, "steps"), wire.calling(13, "nested")
        )
        await wire.stream.send_eof()  # type: ignore[attr-defined]
        responses = {message["id"]: message for message in await wire.receive_all()}
        assert [text_of(responses[id]) for id in (12, 13)] == ["there", "there"]
        assert "shut down" in responses[11]["error"]["message"]

    await cut_server(world, script, grace=1)


async def a_silent_client_is_asked_whether_it_lives(world: CancellationWorld) -> None:
    world.server = made(keep_alive=1)

    async def script(wire: Wire) -> None:
        await wire.send(wire.calling(11, "wait"))
        for _ in range(2):
            request = await wire.receive()
            assert request["method"] == "ping"
            await wire.send(result(request["id"]))
        assert (await wire.receive())["method"] == "ping"
        await wire.receive_all()

    await cut_server(world, script, version=D)


async def a_client_that_gives_up(world: CancellationWorld) -> None:
    async def script(wire: Wire) -> None:
        await wire.send(wire.calling(11, "wait"), wire.calling(12, "steps", progressToken=2))
        await trio.testing.wait_all_tasks_blocked()
        await wire.send(cancelled(11), "no JSON", wire.calling(13, "hello"))
        assert {*await receive_responses(wire, 3)} == {12, None, 13}

    await cut_server(world, script)


async def a_client_that_does_not_read(world: CancellationWorld) -> None:
    async def script(wire: Wire) -> None:
        await wire.send(wire.calling("first", "steps", progressToken=1))
        with world.excused():
            for n in range(4):
                await wire.send(*(wire.asking(100 * n + m, "server/discover") for m in range(100)))
            await trio.sleep(10)
            await wire.stream.aclose()

    ours, theirs = world.pair()
    async with ours, trio.open_nursery() as nursery:
        nursery.start_soon(script, Wire(ours, E))
        with world.cut():
            await serve_stream(world.server, theirs)
        nursery.cancel_scope.cancel()


class WatchedListener(trio.abc.Listener[End]):
    """A listener in memory, so that the number of steps is the same in each run."""

    def __init__(self, world: CancellationWorld) -> None:
        self._world = world
        self._send, self._receive = trio.open_memory_channel[End](10)

    async def connect(self) -> End:
        ours, theirs = self._world.pair()
        try:
            await self._send.send(theirs)
        except BaseException:
            with trio.CancelScope(shield=True):
                await ours.aclose()
                await theirs.aclose()
            raise
        return ours

    async def accept(self) -> End:
        return await self._receive.receive()

    async def aclose(self) -> None:
        with trio.CancelScope(
            shield=True
        ):  # like the operating system, close connections that were not accepted
            while self._receive.statistics().current_buffer_used:
                await self._receive.receive_nowait().aclose()
        self._receive.close()
        await trio.lowlevel.checkpoint()


async def listeners_with_two_conversations(world: CancellationWorld, stopped: bool) -> None:
    world.server = made(lifespan=lifespan)
    listener = WatchedListener(world)
    stop = trio.Event()
    following = trio.CancelScope()

    async def serve() -> None:
        with world.cut():
            await serve_listeners(world.server, [listener], stop=stop if stopped else None, grace=1)
        following.cancel()

    async def session() -> None:
        with world.excused():
            async with await listener.connect() as ours:
                wire = Wire(ours)
                await wire.shake_hands()
                assert text_of(await wire.call(11, "nested")) == "there"
                if stopped:
                    await wire.send(wire.calling(12, "wait"))
                    await trio.testing.wait_all_tasks_blocked()
                    stop.set()
                    assert "shut down" in (await wire.receive())["error"]["message"]
                    assert await wire.receive_all() == []

    async with trio.open_nursery() as nursery:
        nursery.start_soon(serve)
        with following:
            async with trio.open_nursery() as clients:
                clients.start_soon(session)
                clients.start_soon(session)
        if not stopped:
            nursery.cancel_scope.cancel()


SCENARIOS: dict[str, Scenario] = {
    "an async handler": an_async_handler,
    "a plain def": a_plain_def,
    "progress to a slow reader": progress_to_a_slow_reader,
    "log messages, stateful": partial(log_messages, version=D),
    "log messages, stateless": partial(log_messages, version=E),
    "middleware": middleware,
    "a lifespan": a_lifespan,
    "completion": completion,
    "paging": paging,
    "a question": a_question,
    "a client that listens": a_client_that_listens,
    "an orderly stop during a call": an_orderly_stop_during_a_call,
    "the end of the input during a call": the_end_of_the_input_during_a_call,
    "a silent client is asked whether it lives": a_silent_client_is_asked_whether_it_lives,
    "a client that gives up": a_client_that_gives_up,
    "a client that does not read": a_client_that_does_not_read,
    "listeners with two conversations": partial(listeners_with_two_conversations, stopped=False),
    "listeners that are stopped": partial(listeners_with_two_conversations, stopped=True),
}


@pytest.mark.parametrize(("seed", "stride"), SEEDS_AND_STRIDES)
@pytest.mark.parametrize("scenario", SCENARIOS.values(), ids=SCENARIOS)
def test_server_cancelled_at_every_step_leaves_no_trace(
    scenario: Scenario, seed: int, stride: int
) -> None:
    play_at_every_step(scenario, seed, stride=stride)


@pytest.mark.parametrize("stride", [5, long(1)])
def test_server_with_a_thread_cancelled_at_every_step(stride: int) -> None:
    play_at_every_step(a_thread, 0, stride=stride, alone=False)
