"""Following tasks over HTTP connections that break: a task outlives the requests about it."""

from __future__ import annotations

import json
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import h11
import pytest

from mcp_core import ConnectionLost
from tests.core.runtime.client_tasks.test_poller import ADA, ASK, TOOLS
from tests.harness import either
from tests.harness.jsonrpc import D, E, Message
from tests.harness.messages.scripted_server import (
    CONTENT,
    ScriptedServer,
    created,
    ended,
    result_of,
    state,
)
from tests.harness.wire import http1_server
from tests.harness.wire.http1_server import PlayedHttpServer, Request

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable

MonkeyPatch = pytest.MonkeyPatch

pytestmark = pytest.mark.usefixtures("each_driver")


class Lost:
    """Instead of a response: the connection is closed, before it or inside an event stream."""

    def __init__(self, *, stream: bool = False) -> None:
        self.stream = stream


class HttpScript(PlayedHttpServer):
    """A `ScriptedServer` over HTTP/1.1. A `Lost` among its answers breaks the connection."""

    def __init__(self, version: str, answers: dict[str, Any]) -> None:
        super().__init__(version)
        self.script = ScriptedServer(version, answers, None)
        self.script.send = self._send
        self._responses: list[Message] = []
        self._lost: list[Lost] = []

    def answer(self, lost: Lost) -> Callable[[Message], None]:
        return lambda request: self._lost.append(lost)

    def _send(self, message: Message) -> None:
        self._responses.append(message)

    async def play(self, request: Request) -> None:
        if request.method != "POST":
            await request.answer(405)
            return
        self.script.receive(request.message, either.current_time())
        if self._lost:
            # The connection is closed, since its response has no end.
            if self._lost.pop().stream:
                await request.begin_stream()
                await request.connection.send(h11.Data(data=b": here\n\n"))
        elif self._responses:
            await request.answer(200, json.dumps(self._responses.pop()).encode())
        else:
            await request.answer(202)


@asynccontextmanager
async def connected(
    script: HttpScript, monkeypatch: MonkeyPatch, **options: Any
) -> AsyncIterator[Any]:
    """Connect to the server. The client knows its tools."""
    async with http1_server.connected(script, monkeypatch, **options) as client:
        await client.list_tools()
        yield client


async def run(script: HttpScript, monkeypatch: MonkeyPatch, **options: Any) -> Any:
    """Call the tool at the server, and return the result."""
    async with connected(script, monkeypatch, **options) as client:
        return await result_of(lambda: client.call_tool("research"))


def answers(version: str, **more: Any) -> dict[str, Any]:
    return {
        "tools/list": TOOLS,
        "tools/call": created(version),
        "tasks/get": ended(version),
        "tasks/result": CONTENT,
        "tasks/update": {},
        "tasks/cancel": state(version, "cancelled") if version == D else {},
        **more,
    }


@pytest.mark.parametrize("version", [D, E])
@pytest.mark.parametrize("stream", [False, True], ids=["response", "stream"])
async def test_poll_lost_with_its_connection_is_repeated(
    version: str, stream: bool, monkeypatch: MonkeyPatch
) -> None:
    script = HttpScript(version, answers(version))
    lost = script.answer(Lost(stream=stream))
    working = state(version)
    script.script.answers["tasks/get"] = [working, lost, lost, working, ended(version)]
    assert (await run(script, monkeypatch)).text == "owls"
    assert script.script.count("tasks/cancel") == 0


@pytest.mark.requirement("TSK-26")
@pytest.mark.parametrize("stream", [False, True], ids=["response", "stream"])
async def test_result_of_2025_11_25_lost_with_its_stream_is_requested_again(
    stream: bool, monkeypatch: MonkeyPatch
) -> None:
    script = HttpScript(D, answers(D))
    asks = state(D, "input_required")
    script.script.answers["tasks/get"] = [asks]
    script.script.answers["tasks/result"] = [script.answer(Lost(stream=stream)), CONTENT]
    assert (await run(script, monkeypatch)).text == "owls"
    assert script.script.count("tasks/result") >= 2
    assert script.script.count("tools/call") == 1


async def test_update_lost_with_its_connection_is_repeated(monkeypatch: MonkeyPatch) -> None:
    asked: list[Any] = []

    def elicit(params: Any) -> Message:
        asked.append(params)
        return {"name": "Ada"}

    script = HttpScript(E, answers(E))
    asks = state(E, "input_required", inputRequests={"k": ASK})
    script.script.answers["tasks/get"] = [asks, ended(E)]
    script.script.answers["tasks/update"] = [script.answer(Lost()), {}]
    assert (await run(script, monkeypatch, on_elicit=elicit)).text == "owls"
    assert len(asked) == 1
    updates = script.script.sent("tasks/update")
    assert [each["params"]["inputResponses"] for each in updates] == [{"k": ADA}] * 2


async def test_polls_that_are_all_lost_end_call_and_cancel_task(monkeypatch: MonkeyPatch) -> None:
    script = HttpScript(E, answers(E))
    script.script.answers["tasks/get"] = [script.answer(Lost())]
    assert type(await run(script, monkeypatch)) is ConnectionLost
    assert script.script.count("tasks/cancel") == 1


@pytest.mark.requirement("CXL-5")
@pytest.mark.parametrize("version", [D, E])
async def test_call_given_up_as_client_ends_cancels_task(
    version: str, monkeypatch: MonkeyPatch
) -> None:
    """The end of the client drops its other requests."""
    script = HttpScript(version, answers(version))
    script.script.answers["tasks/get"] = [state(version)]
    async with connected(script, monkeypatch) as client, either.open_nursery() as nursery:
        nursery.start_soon(client.call_tool, "research")
        await either.sleep(10)
        assert script.script.count("tasks/get")
        nursery.cancel_scope.cancel()
    assert script.script.count("tasks/cancel") == 1
