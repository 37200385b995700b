"""Cancel our HTTP server at every step of a scenario. `cancelling.py` has the invariants."""

from __future__ import annotations

import json
from functools import partial
from typing import TYPE_CHECKING, Any

import pytest
import trio

from mcp_core.http import HostOriginPolicy, HttpOptions, PlainResponse
from mcp_trio.http_server._serve import serve_http_listeners
from tests.harness.jsonrpc import D, E, text_of
from tests.harness.wire.http1_client import get
from tests.harness.wire.http_session import HttpSession, MemoryListener, events_in
from tests.trio_.cancelling import (
    SEEDS_AND_STRIDES,
    CancellationWorld,
    lifespan,
    make,
    play_at_every_step,
)

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from tests.trio_.cancelling import Scenario

    Script = Callable[[Callable[[], HttpSession], trio.Event], Awaitable[object]]


async def cut_server(
    world: CancellationWorld, *scripts: Script, version: str = E, **options: Any
) -> None:
    """Serve clients that each follow a script and open connections in it, until `stop` is set."""
    listener, stop = MemoryListener(), trio.Event()
    following = trio.CancelScope()
    streams: list[trio.abc.Stream] = []

    def connect() -> HttpSession:
        stream = listener.connect()
        streams.append(stream)
        return HttpSession(stream, version)

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


async def calls(world: CancellationWorld, version: str) -> None:
    async def script(connect: Callable[[], HttpSession], _: trio.Event) -> None:
        session = connect()
        await session.shake_hands()
        assert text_of(await session.call(1, "hello")) == "hello"
        assert text_of(await session.call(2, "nested")) == "there"
        answer = await session.post(session.calling(3, "steps", progressToken="t"))
        assert len(events_in(answer.body)) >= 6

    await cut_server(world, script, script, version=version)


async def pipelined(world: CancellationWorld) -> None:
    async def script(connect: Callable[[], HttpSession], _: trio.Event) -> None:
        session = connect()
        request = [
            session.posting(session.calling(id, name))
            for id, name in enumerate(("hello", "nested", "hello"))
        ]
        await session.send(b"".join(request) + get("/healthz"))
        for id in range(3):
            assert json.loads((await session.answer()).body)["id"] == id
        assert (await session.answer()).status == 200

    await cut_server(world, script)


async def a_body_in_pieces(world: CancellationWorld) -> None:
    async def script(connect: Callable[[], HttpSession], _: trio.Event) -> None:
        session = connect()
        asking = session.posting(session.calling(1, "hello"), b"expect: 100-continue")
        head, end, body = asking.partition(b"\r\n\r\n")
        await session.send(head[:50])
        await session.send(head[50:] + end)
        assert (await session.answer()).status == 100
        await session.send(body[:10])
        await session.send(body[10:])
        assert (await session.answer()).status == 200
        assert (await session.ask(get("/nowhere"))).status == 404

    await cut_server(world, script)


async def a_refusal_with_a_body(world: CancellationWorld) -> None:
    async def script(connect: Callable[[], HttpSession], _: trio.Event) -> None:
        session = connect()
        refused = (
            b"POST /none HTTP/1.1\r\nhost: localhost\r\ncontent-length: 1000000\r\n\r\n"
            + b"x" * 1_000
        )
        answer = await session.ask(refused)
        assert (answer.status, answer.headers[b"connection"]) == (404, b"close")
        assert await session.rest() == b""

    await cut_server(world, script)


async def a_client_that_goes(world: CancellationWorld, version: str) -> None:
    async def script(connect: Callable[[], HttpSession], _: trio.Event) -> None:
        session, other = connect(), connect()
        await session.shake_hands()
        await session.send(
            session.posting(session.calling(1, "nested" if version == D else "wait"))
        )
        await trio.sleep(0.0005)
        await session.stream.aclose()
        assert (await other.ask(get("/healthz"))).status == 200

    await cut_server(world, script, version=version)


async def a_session_with_a_stream(world: CancellationWorld) -> None:
    async def script(connect: Callable[[], HttpSession], _: trio.Event) -> None:
        session, stream, busy = connect(), connect(), connect()
        await session.shake_hands()
        stream.session = busy.session = session.session
        await stream.send(stream.getting())
        await stream.until(b"\r\n\r\n")
        await busy.send(busy.posting(busy.calling(1, "wait")))
        assert text_of(await session.call(2, "change")) == "changed"
        await stream.until(b"list_changed")
        assert (await session.ask(session.getting(method=b"DELETE"))).status == 204
        await stream.until(b"0\r\n\r\n")
        await busy.answer()

    await cut_server(world, script, version=D)


async def a_client_that_does_not_read(world: CancellationWorld) -> None:
    async def script(connect: Callable[[], HttpSession], _: trio.Event) -> None:
        session = connect()
        await session.send(
            session.posting(session.calling(1, "steps", {"size": 50_000}, progressToken="t"))
        )
        await trio.sleep(40)

    await cut_server(world, script)


async def an_orderly_stop_during_calls(world: CancellationWorld, version: str) -> None:
    world.server = make(lifespan=lifespan)

    async def script(connect: Callable[[], HttpSession], stop: trio.Event) -> None:
        session, idle, endless = connect(), connect(), connect()
        await session.shake_hands()
        endless.session = session.session
        assert (await idle.ask(get("/healthz"))).status == 200
        await endless.send(endless.posting(endless.calling(1, "wait")))
        await session.send(session.posting(session.calling(1 if version == E else 2, "nested")))
        await trio.sleep(0.0005)
        stop.set()
        assert text_of(json.loads((await session.answer()).body)) == "there"
        assert "shut down" in json.loads((await endless.answer()).body)["error"]["message"]
        for each in session, idle, endless:
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


@pytest.mark.parametrize(("seed", "stride"), SEEDS_AND_STRIDES)
@pytest.mark.parametrize("scenario", SCENARIOS.values(), ids=SCENARIOS)
def test_http_server_cancelled_at_every_step_leaves_no_trace(
    scenario: Scenario, seed: int, stride: int
) -> None:
    play_at_every_step(scenario, seed, stride=stride)
