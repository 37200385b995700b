"""Following tasks over HTTP connections that break: a task outlives the requests about it."""

from __future__ import annotations

import json
from contextlib import asynccontextmanager
from functools import partial
from typing import TYPE_CHECKING, Any

import pytest
import trio

from mcp_core import ConnectionLost
from mcp_trio import connect
from tests.core.runtime.client_tasks.test_poller import ADA, ASK, TOOLS
from tests.harness.jsonrpc import D, E, Message
from tests.harness.messages.scripted_server import (
    CONTENT,
    ScriptedServer,
    created,
    ended,
    result_of,
    state,
)
from tests.harness.world.waiting import PATIENCE, until

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable

    from mcp_trio import Client

OFTEN = {D: {"pollInterval": 50}, E: {"pollIntervalMs": 50}}


class Lost:
    """Instead of a response: the connection is closed, before it or inside an event stream."""

    def __init__(self, *, stream: bool = False) -> None:
        self.stream = stream


class HttpScript:
    """Serves a `ScriptedServer` over HTTP/1.1. A `Lost` among its answers breaks the connection."""

    def __init__(self, version: str, answers: dict[str, Any]) -> None:
        self.server = ScriptedServer(version, answers, None)
        self.server.send = self._send
        self._responses: list[Message] = []
        self._lost: list[Lost] = []

    def answer(self, lost: Lost) -> Callable[[Message], None]:
        return lambda request: self._lost.append(lost)

    def _send(self, message: Message) -> None:
        self._responses.append(message)

    async def serve(self, stream: trio.SocketStream) -> None:
        buffer = bytearray()
        while True:
            while b"\r\n\r\n" not in buffer:
                data = await stream.receive_some()
                if not data:
                    return
                buffer += data
            head, _, rest = bytes(buffer).partition(b"\r\n\r\n")
            length = 0
            for line in head.lower().split(b"\r\n"):
                if line.startswith(b"content-length:"):
                    length = int(line.split(b":")[1])
            while len(rest) < length:
                rest += await stream.receive_some()
            buffer = bytearray(rest[length:])
            if not head.startswith(b"POST"):
                await stream.send_all(b"HTTP/1.1 405 No\r\ncontent-length: 0\r\n\r\n")
                continue
            self.server.receive(json.loads(rest[:length]), trio.current_time())
            if self._lost:
                lost = self._lost.pop()
                if lost.stream:
                    await stream.send_all(
                        b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\n: here\n\n"
                    )
                return
            if not self._responses:
                await stream.send_all(b"HTTP/1.1 202 Accepted\r\ncontent-length: 0\r\n\r\n")
                continue
            body = json.dumps(self._responses.pop()).encode()
            await stream.send_all(
                b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: %d\r\n\r\n%b"
                % (len(body), body)
            )


@asynccontextmanager
async def connected(script: HttpScript, **options: Any) -> AsyncIterator[Client]:
    """Connect to the server. The client knows its tools."""
    with trio.fail_after(PATIENCE):
        async with trio.open_nursery() as nursery:
            serve = partial(trio.serve_tcp, closing(script.serve), 0, host="127.0.0.1")
            listeners: Any = await nursery.start(serve)
            port = listeners[0].socket.getsockname()[1]
            url = f"http://127.0.0.1:{port}/mcp"
            async with connect(url, versions=[script.server.version], **options) as client:
                await client.list_tools()
                yield client
            nursery.cancel_scope.cancel()


async def run(script: HttpScript, **options: Any) -> Any:
    """Call the tool at the server, and return the result."""
    async with connected(script, **options) as client:
        return await result_of(lambda: client.call_tool("research"))


def closing(serve: Any) -> Any:
    async def handler(stream: trio.SocketStream) -> None:
        async with stream:
            await serve(stream)

    return handler


def answers(version: str, **more: Any) -> dict[str, Any]:
    return {
        "tools/list": TOOLS,
        "tools/call": created(version, **OFTEN[version]),
        "tasks/get": ended(version),
        "tasks/result": CONTENT,
        "tasks/update": {},
        "tasks/cancel": state(version, "cancelled") if version == D else {},
        **more,
    }


@pytest.mark.parametrize("version", [D, E])
@pytest.mark.parametrize("stream", [False, True], ids=["response", "stream"])
async def test_poll_lost_with_its_connection_is_repeated(version: str, stream: bool) -> None:
    script = HttpScript(version, answers(version))
    lost = script.answer(Lost(stream=stream))
    working = state(version, **OFTEN[version])
    script.server.answers["tasks/get"] = [working, lost, lost, working, ended(version)]
    assert (await run(script)).text == "owls"
    assert script.server.count("tasks/cancel") == 0


@pytest.mark.requirement("TSK-26")
@pytest.mark.parametrize("stream", [False, True], ids=["response", "stream"])
async def test_result_of_2025_11_25_lost_with_its_stream_is_requested_again(stream: bool) -> None:
    script = HttpScript(D, answers(D))
    asks = state(D, "input_required", **OFTEN[D])
    script.server.answers["tasks/get"] = [asks]
    script.server.answers["tasks/result"] = [script.answer(Lost(stream=stream)), CONTENT]
    assert (await run(script)).text == "owls"
    assert script.server.count("tasks/result") >= 2
    assert script.server.count("tools/call") == 1


async def test_update_lost_with_its_connection_is_repeated() -> None:
    asked: list[Any] = []

    def elicit(params: Any) -> Message:
        asked.append(params)
        return {"name": "Ada"}

    script = HttpScript(E, answers(E))
    asks = state(E, "input_required", inputRequests={"k": ASK}, **OFTEN[E])
    script.server.answers["tasks/get"] = [asks, ended(E)]
    script.server.answers["tasks/update"] = [script.answer(Lost()), {}]
    assert (await run(script, on_elicit=elicit)).text == "owls"
    assert len(asked) == 1
    updates = script.server.sent("tasks/update")
    assert [each["params"]["inputResponses"] for each in updates] == [{"k": ADA}] * 2


@pytest.mark.process
async def test_polls_that_are_all_lost_end_call_and_cancel_task() -> None:
    script = HttpScript(E, answers(E))
    script.server.answers["tasks/get"] = [script.answer(Lost())]
    assert type(await run(script)) is ConnectionLost
    assert script.server.count("tasks/cancel") == 1


@pytest.mark.requirement("CXL-5")
@pytest.mark.parametrize("version", [D, E])
async def test_call_given_up_as_client_ends_cancels_task(version: str) -> None:
    """The end of the client drops its other requests."""
    script = HttpScript(version, answers(version))
    script.server.answers["tasks/get"] = [state(version)]
    async with connected(script) as client, trio.open_nursery() as nursery:
        nursery.start_soon(client.call_tool, "research")
        await until(lambda: script.server.count("tasks/get"))
        nursery.cancel_scope.cancel()
    assert script.server.count("tasks/cancel") == 1
