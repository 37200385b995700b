"""Cancel our client at every step of a scenario, or only one of its calls, and then continue.

`cancelling.py` has the invariants. Every call is cancelled in two ways: alone, on a conversation
that survives and must then work as before; and with the whole conversation, whose server must
receive the cancellation.
"""

from __future__ import annotations

import json
import sys
from contextlib import asynccontextmanager
from functools import partial
from typing import TYPE_CHECKING, Any

import pytest
import trio
import trio.testing

from mcp_core import CallTimeout, ConnectionLost
from mcp_core.registry import CacheHint
from mcp_trio import Grace, connect, connect_stdio, connect_stream, serve_stream
from tests.harness.jsonrpc import (
    VERSIONS,
    C,
    D,
    E,
    error,
)
from tests.harness.wire.client import open_as_server
from tests.harness.wire.lines import Wire
from tests.trio_.cancelling import (
    SEEDS_AND_STRIDES,
    TOOLS,
    CancellationWorld,
    lifespan,
    made,
    play_at_every_step,
    roots,
)

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable
    from pathlib import Path

    from mcp_trio import Client
    from tests.trio_.cancelling import End, Scenario

    Act = Callable[[Client], Awaitable[object]]


@asynccontextmanager
async def served(world: CancellationWorld) -> AsyncIterator[End]:
    """A stream end for a client, with a server at the other end that survives."""
    ours, theirs = world.pair_for_a_client()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(serve_stream, world.server, theirs)
        yield ours
        if not ours.sent:
            await ours.aclose()  # no client has taken it yet
        if not ours.torn:
            await world.come_to_rest()  # the handlers were cancelled, so no grace period passes


# -- Opening and closing -------------------------------------------------------------------------


async def opening(world: CancellationWorld, version: str) -> None:
    async with served(world) as end:
        with world.cut():
            async with connect_stream(end, versions=[version]) as client:
                assert client.peer.dialect.version == version


async def falling_back(world: CancellationWorld, silent: bool) -> None:
    ours, theirs = world.pair_for_a_client()
    wire = Wire(theirs, D)

    async def play_the_server() -> None:
        with world.excused():
            request = await wire.receive()
            assert request["method"] == "server/discover"
            if not silent:
                await wire.send(error(request["id"], -32601))
            await open_as_server(wire)
            assert await wire.receive_all() == []
        await theirs.aclose()

    async with trio.open_nursery() as nursery:
        nursery.start_soon(play_the_server)
        with world.cut():
            async with connect_stream(ours, versions=[E, D]) as client:
                assert client.peer.dialect.version == D


async def closing_during_calls(world: CancellationWorld) -> None:
    async def call(client: Client) -> None:
        with pytest.raises(ConnectionLost, match="the client was closed"):
            await client.call_tool("wait", timeout=None)

    async with served(world) as end:
        with world.cut():
            async with connect_stream(end) as client, trio.open_nursery() as nursery:
                nursery.start_soon(call, client)
                nursery.start_soon(call, client)
                await trio.testing.wait_all_tasks_blocked()
                nursery.start_soon(client.aclose)
                await client.aclose()


async def closing_in_the_wrong_order(world: CancellationWorld) -> None:
    async with served(world) as one, served(world) as two:
        with world.cut():
            async with connect_stream(one) as outer, connect_stream(two, versions=[D]) as inner:
                async with trio.open_nursery() as nursery:
                    nursery.start_soon(inner.call_tool, "steps")
                    await outer.aclose()
                await inner.call_tool("hello")


async def a_server_that_goes_away(world: CancellationWorld) -> None:
    ours, theirs = world.pair_for_a_client()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(serve_stream, world.server, theirs)
        with world.cut():
            async with connect_stream(ours) as client:
                await client.call_tool("hello")
                await theirs.aclose()
                with pytest.raises(ConnectionLost, match=r"closed the connection|connection broke"):
                    await client.ping()


# -- Calls ---------------------------------------------------------------------------------------


async def a_call(client: Client) -> None:
    assert (await client.call_tool("nested")).text == "there"


async def progress_and_a_timeout(client: Client) -> None:
    received: list[float] = []
    await client.call_tool("steps", progress=lambda progress, *_: received.append(progress))
    assert received == list(range(5))
    with pytest.raises(CallTimeout):
        await client.call_tool("wait", timeout=0.05)


async def several_pages(client: Client) -> None:
    assert [tool.name for tool in await client.list_tools()] == [tool.__name__ for tool in TOOLS]


async def what_is_kept(client: Client) -> None:
    for _ in range(3):
        assert len(await client.list_tools()) == len(TOOLS)


async def two_calls_of_which_one_is_given_up(client: Client) -> None:
    async def other() -> None:
        assert (await client.call_tool("nested")).text == "there"

    async with trio.open_nursery() as nursery:
        nursery.start_soon(other)
        with trio.move_on_after(0.0005):
            await client.call_tool("wait")


async def many_calls(client: Client) -> None:
    async with trio.open_nursery() as nursery:
        for tool in "hello", "steps", "nested", "log_messages":
            nursery.start_soon(client.call_tool, tool)
        with trio.move_on_after(0.001):
            async with trio.open_nursery() as given_up:
                for _ in range(3):
                    given_up.start_soon(client.call_tool, "wait")


async def a_large_call(client: Client) -> None:
    assert (
        await client.call_tool("steps", {"size": 0}, meta={"com.example/pad": "x" * 200_000})
    ).text


async def a_question(client: Client) -> None:
    assert (await client.call_tool("ask")).text == "2"


async def listening(client: Client) -> None:
    async with client.listen(tools=True) as changes:
        await client.call_tool("change")
        async for change in changes:
            assert change.list == "tools"
            break


ACTS: dict[str, tuple[Act, str, dict[str, Any]]] = {
    "a call": (a_call, E, {}),
    "a call, stateful": (a_call, C, {}),
    "progress and a timeout": (progress_and_a_timeout, E, {}),
    "several pages": (several_pages, D, {"page_size": 2}),
    "what is kept": (what_is_kept, E, {"page_size": 2, "cache": CacheHint(ttl=60)}),
    "two calls of which one is given up": (two_calls_of_which_one_is_given_up, E, {}),
    "many calls": (many_calls, D, {}),
    "a large call": (a_large_call, E, {}),
    "a question": (a_question, E, {}),
    "a question, stateful": (a_question, D, {}),
    "listening": (listening, E, {}),
    "listening, stateful": (listening, D, {}),
}


async def calling(
    world: CancellationWorld, act: Act, version: str, options: dict[str, Any]
) -> None:
    """Only the call is cancelled."""
    world.server = made(**options)
    async with (
        served(world) as end,
        connect_stream(end, versions=[version], on_roots=roots) as client,
    ):
        await world.come_to_rest()
        with world.cut():
            await act(client)
        await world.come_to_rest()
        await client.ping()
        assert (await client.call_tool("hello")).text == "hello"
        await world.come_to_rest()
        assert not end.torn


async def connected(
    world: CancellationWorld, act: Act, version: str, options: dict[str, Any]
) -> None:
    """The whole conversation is cancelled."""
    world.server = made(**options)
    async with served(world) as end:
        with world.cut():
            async with connect_stream(end, versions=[version], on_roots=roots) as client:
                await act(client)


async def beside_a_call(world: CancellationWorld) -> None:
    """Another call of the same client is not affected."""
    async with served(world) as end, connect_stream(end) as client, trio.open_nursery() as nursery:

        async def other() -> None:
            for _ in range(3):
                assert (await client.call_tool("nested")).text == "there"

        nursery.start_soon(other)
        with world.cut():
            await client.call_tool("steps", progress=lambda *_: None)


# -- Both ends at once ---------------------------------------------------------------------------


async def both_ends(world: CancellationWorld, version: str) -> None:
    with world.cut():
        async with connect(world.server, versions=[version]) as client:
            await many_calls(client)


async def both_ends_and_a_lifespan(world: CancellationWorld) -> None:
    world.server = made(lifespan=lifespan)
    with world.cut():
        async with connect(world.server) as client:
            await client.call_tool("steps")


SCENARIOS: dict[str, Scenario] = {
    **{f"opening in {version}": partial(opening, version=version) for version in VERSIONS},
    "a server that refuses the probe": partial(falling_back, silent=False),
    "a server that does not answer the probe": partial(falling_back, silent=True),
    "closing during calls": closing_during_calls,
    "closing in the wrong order": closing_in_the_wrong_order,
    "a server that goes away": a_server_that_goes_away,
    **{
        f"{name}, {how}": partial(scenario, act=act, version=version, options=options)
        for name, (act, version, options) in ACTS.items()
        for how, scenario in (("by itself", calling), ("with all", connected))
    },
    "beside another call": beside_a_call,
    "both ends, stateful": partial(both_ends, version=D),
    "both ends, stateless": partial(both_ends, version=E),
    "both ends and a lifespan": both_ends_and_a_lifespan,
}


@pytest.mark.parametrize(("seed", "stride"), SEEDS_AND_STRIDES)
@pytest.mark.parametrize(
    "scenario",
    [pytest.param(scenario, id=name) for name, scenario in SCENARIOS.items()],
)
def test_client_cancelled_at_every_step_leaves_no_trace(
    scenario: Scenario, seed: int, stride: int
) -> None:
    play_at_every_step(scenario, seed, stride=stride)


# -- A real child --------------------------------------------------------------------------------

CHILD = """
import json, sys
for line in sys.stdin:
    request = json.loads(line)
    if request["method"] == "server/discover":
        if sys.argv[1] == "dies":
            sys.exit(1)
        result = {
            "supportedVersions": ["2026-07-28"], "capabilities": {"tools": {}},
            "ttlMs": 0, "cacheScope": "private",
        }
    elif request["method"] == "initialize":
        result = {
            "protocolVersion": "2025-11-25", "capabilities": {"tools": {}},
            "serverInfo": {"name": "p", "version": "1"},
        }
    elif "id" in request:
        result = {"content": [{"type": "text", "text": "hello"}]}
    else:
        continue
    result["resultType"] = "complete"
    response = {"jsonrpc": "2.0", "id": request["id"], "result": result}
    print(json.dumps(response), flush=True)
"""


async def a_child(world: CancellationWorld, of_the_probe: str) -> None:
    command = [sys.executable, "-I", "-S", "-c", CHILD, of_the_probe]
    with world.cut():
        async with connect_stdio(command, stderr="discard", grace=Grace(5, 5)) as client:
            assert (await client.call_tool("hello")).text == "hello"


@pytest.mark.process
@pytest.mark.parametrize(("seed", "stride"), SEEDS_AND_STRIDES)
@pytest.mark.parametrize("of_the_probe", ["lives", "dies"])
def test_client_of_a_child_process_cancelled_at_every_step(
    of_the_probe: str, seed: int, stride: int
) -> None:
    scenario = partial(a_child, of_the_probe=of_the_probe)
    play_at_every_step(scenario, seed, stride=stride, alone=False)


@pytest.mark.requirement("STDIO-3")
async def test_client_of_a_child_process_writes_only_messages_to_its_stdin(tmp_path: Path) -> None:
    record = tmp_path / "stdin"
    words = [sys.executable, "-I", "-S", "-c", CHILD, "lives"]
    command = ["sh", "-c", 'tee "$0" | "$@"', str(record), *words]
    async with connect_stdio(command, stderr="discard", grace=Grace(5, 5)) as client:
        print("our own output", flush=True)
        await client.call_tool("hello", {"text": "a\nb\u2028"})
    messages = [json.loads(line) for line in record.read_bytes().decode().split("\n")[:-1]]
    assert [message["method"] for message in messages] == ["server/discover", "tools/call"]
