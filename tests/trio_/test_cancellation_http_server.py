"""Cancel our HTTP server at every step of a scenario. `cancelling.py` has the invariants."""

from __future__ import annotations

import json
from functools import partial
from typing import TYPE_CHECKING, Any

import pytest
import trio

from mcp_core.http import HostOriginPolicy, HttpOptions, PlainResponse
from mcp_trio.http_server._serve import serve_http_listeners
from tests.core.helpers import D, E
from tests.trio_.cancelling import World, lifespan, make, play_at_every_step
from tests.trio_.http_site import get
from tests.trio_.http_talk import MemoryListener, Talker, events_in
from tests.trio_.wire import text_of

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from tests.trio_.cancelling import Scenario

    Script = Callable[[Callable[[], Talker], trio.Event], Awaitable[object]]


async def cut_server(world: World, *scripts: Script, version: str = E, **options: Any) -> None:
    """Serve clients that each follow a script and open connections in it, until `stop` is set."""
    listener, stop = MemoryListener(), trio.Event()
    following = trio.CancelScope()
    streams: list[trio.abc.Stream] = []

    def connect() -> Talker:
        stream = listener.connect()
        streams.append(stream)
        return Talker(stream, version)

    async def serve() -> None:
        with world.cut():
            await serve_http_listeners(
                [listener],  # type: ignore[list-item]
                {"/mcp": world.server},
                HttpOptions(host_origin_policy=HostOriginPolicy("127.0.0.1"), **options),
                routes={"/healthz": lambda _: PlainResponse()},
                stop=stop,
                grace=1.0,
            )
        if world.was_cut:
            following.cancel()

    async def follow(script: Script) -> None:
        with world.excused():
            await script(connect, stop)

    async with trio.open_nursery() as nursery:
        nursery.start_soon(serve)
        with following:
            async with trio.open_nursery() as clients:
                for script in scripts:
                    clients.start_soon(follow, script)
        stop.set()
    for stream in streams:
        await stream.aclose()


async def calls(world: World, version: str) -> None:
    async def script(connect: Callable[[], Talker], _: trio.Event) -> None:
        talker = connect()
        await talker.shake_hands()
        assert text_of(await talker.call(1, "hello")) == "hello"
        assert text_of(await talker.call(2, "nested")) == "there"
        answer = await talker.post(talker.calling(3, "steps", progressToken="t"))
        assert len(events_in(answer.body)) >= 6

    await cut_server(world, script, script, version=version)


async def pipelined(world: World) -> None:
    async def script(connect: Callable[[], Talker], _: trio.Event) -> None:
        talker = connect()
        asked = [
            talker.posting(talker.calling(id, name))
            for id, name in enumerate(("hello", "nested", "hello"))
        ]
        await talker.send(b"".join(asked) + get("/healthz"))
        for id in range(3):
            assert json.loads((await talker.answer()).body)["id"] == id
        assert (await talker.answer()).status == 200

    await cut_server(world, script)


async def a_body_in_pieces(world: World) -> None:
    async def script(connect: Callable[[], Talker], _: trio.Event) -> None:
        talker = connect()
        asking = talker.posting(talker.calling(1, "hello"), b"expect: 100-continue")
        head, end, body = asking.partition(b"\r\n\r\n")
        await talker.send(head[:50])
        await talker.send(head[50:] + end)
        assert (await talker.answer()).status == 100
        await talker.send(body[:10])
        await talker.send(body[10:])
        assert (await talker.answer()).status == 200
        assert (await talker.ask(get("/nowhere"))).status == 404

    await cut_server(world, script)


async def a_refusal_with_a_body(world: World) -> None:
    async def script(connect: Callable[[], Talker], _: trio.Event) -> None:
        talker = connect()
        refused = (
            b"POST /none HTTP/1.1\r\nhost: localhost\r\ncontent-length: 1000000\r\n\r\n"
            + b"x" * 1_000
        )
        answer = await talker.ask(refused)
        assert (answer.status, answer.headers[b"connection"]) == (404, b"close")
        assert await talker.rest() == b""

    await cut_server(world, script)


async def a_client_that_goes(world: World, version: str) -> None:
    async def script(connect: Callable[[], Talker], _: trio.Event) -> None:
        talker, other = connect(), connect()
        await talker.shake_hands()
        await talker.send(talker.posting(talker.calling(1, "nested" if version == D else "wait")))
        await trio.sleep(0.0005)
        await talker.stream.aclose()
        assert (await other.ask(get("/healthz"))).status == 200

    await cut_server(world, script, version=version)


async def a_session_with_a_stream(world: World) -> None:
    async def script(connect: Callable[[], Talker], _: trio.Event) -> None:
        talker, stream, busy = connect(), connect(), connect()
        await talker.shake_hands()
        stream.session = busy.session = talker.session
        await stream.send(stream.getting())
        await stream.until(b"\r\n\r\n")
        await busy.send(busy.posting(busy.calling(1, "wait")))
        assert text_of(await talker.call(2, "change")) == "changed"
        await stream.until(b"list_changed")
        assert (await talker.ask(talker.getting(method=b"DELETE"))).status == 204
        await stream.until(b"0\r\n\r\n")
        await busy.answer()

    await cut_server(world, script, version=D)


async def a_client_that_does_not_read(world: World) -> None:
    async def script(connect: Callable[[], Talker], _: trio.Event) -> None:
        talker = connect()
        await talker.send(
            talker.posting(talker.calling(1, "steps", {"size": 50_000}, progressToken="t"))
        )
        await trio.sleep(40)

    await cut_server(world, script)


async def an_orderly_stop_during_calls(world: World, version: str) -> None:
    world.server = make(lifespan=lifespan)

    async def script(connect: Callable[[], Talker], stop: trio.Event) -> None:
        talker, idle, endless = connect(), connect(), connect()
        await talker.shake_hands()
        endless.session = talker.session
        assert (await idle.ask(get("/healthz"))).status == 200
        await endless.send(endless.posting(endless.calling(1, "wait")))
        await talker.send(talker.posting(talker.calling(1 if version == E else 2, "nested")))
        await trio.sleep(0.0005)
        stop.set()
        assert text_of(json.loads((await talker.answer()).body)) == "there"
        assert "shut down" in json.loads((await endless.answer()).body)["error"]["message"]
        for each in talker, idle, endless:
            assert await each.rest() == b""

    await cut_server(world, script, version=version)


SCENARIOS: dict[str, Scenario] = {
    "calls in sessions": partial(calls, version=D),
    "calls without": partial(calls, version=E),
    "pipelined": pipelined,
    "a body in pieces": a_body_in_pieces,
    "a refusal with a body": a_refusal_with_a_body,
    "a client that goes, stateful": partial(a_client_that_goes, version=D),
    "a client that goes, stateless": partial(a_client_that_goes, version=E),
    "a session with a stream": a_session_with_a_stream,
    "a client that does not read": a_client_that_does_not_read,
    "an orderly stop during calls, stateful": partial(an_orderly_stop_during_calls, version=D),
    "an orderly stop during calls, stateless": partial(an_orderly_stop_during_calls, version=E),
}


@pytest.mark.parametrize("seed", [0, pytest.param(1, marks=pytest.mark.slow)])
@pytest.mark.parametrize("scenario", SCENARIOS.values(), ids=SCENARIOS)
def test_http_server_cancelled_at_every_step_leaves_no_trace(scenario: Scenario, seed: int) -> None:
    play_at_every_step(scenario, seed)
