"""A server on WebSockets that an ASGI server carries: limits, backpressure, deadlines and the end.

`tests/trio_/test_websocket.py` has the server that reads and writes the frames itself, and
`tests/test_asgi.py` what an ASGI server sees.
"""

from __future__ import annotations

from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import anyio
import pytest

from mcp_core.http import WebSocket
from tests.core.http.server.test_auth import GRANTS, guard
from tests.harness import either
from tests.harness.jsonrpc import INITIALIZED, VERSIONS, cancelled, stateless_request
from tests.harness.wire.asgi import ACCEPT, Neutral, frames_of, serve_app, text_frame
from tests.harness.wire.router import D, E, initialize, request

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from tests.harness.wire.asgi import Call, Host

pytestmark = pytest.mark.usefixtures("each_driver")

GONE = {"type": "websocket.disconnect", "code": 1001}
SENDS_REJECTIONS: dict[str, Any] = {"extensions": {"websocket.http.response": {}}}
CLOSE = "websocket.close"


def calling(id: int, tool: str, **arguments: Any) -> dict[str, Any]:
    """Return the message of a tool call with a progress token."""
    params = {"name": tool, "arguments": arguments}
    return text_frame(stateless_request(id, "tools/call", params, progressToken=id))


async def accepted(host: Host, *headers: tuple[bytes, bytes]) -> Call:
    call = host.websocket(*headers)
    await call.until(lambda: call.sent)
    assert call.sent == [ACCEPT]
    return call


@asynccontextmanager
async def connected(neutral: Neutral, **options: Any) -> AsyncIterator[Call]:
    """A WebSocket to a server, which its client leaves at the end."""
    async with serve_app(either.package().asgi(neutral.server, **options)) as host:
        call = await accepted(host)
        yield call
        call.deliver(GONE)
        await call.end()


async def answer_to(call: Call, id: int) -> Any:
    """Wait for the response, and return it. A frame is read once."""
    read = 0
    found: list[Any] = []

    def has_come() -> bool:
        nonlocal read
        found.extend(each for each in frames_of(call, read) if each.get("id") == id)
        read = len(call.sent)
        return bool(found)

    await call.until(has_come)
    [answer] = found
    return answer


async def is_alive(call: Call, id: int = 99) -> bool:
    call.deliver(calling(id, "echo", text="still here"))
    found: str = (await answer_to(call, id))["result"]["content"][0]["text"]
    return found == "still here"


REFUSED: list[tuple[str, dict[str, Any], int]] = [
    ("a foreign Origin", {"headers": [(b"origin", b"http://evil.example")]}, 403),
    ("another name", {"headers": [(b"host", b"evil.example")]}, 421),
    ("no subprotocol", {"subprotocols": []}, 400),
    ("another subprotocol", {"subprotocols": ["graphql"]}, 400),
    ("elsewhere", {"path": "/other"}, 404),
]


@pytest.mark.parametrize(("about", "status"), [row[1:] for row in REFUSED], ids=str)
async def test_websocket_scope_that_is_refused_gets_the_status(
    about: dict[str, Any], status: int
) -> None:
    if "headers" in about and about["headers"][0][0] != b"host":
        about = {"headers": [(b"host", b"127.0.0.1:8000"), *about["headers"]]}
    async with serve_app(either.package().asgi(Neutral().server)) as host:
        refused = await host.websocket(**about, **SENDS_REJECTIONS).end()
        assert refused.sent[0]["status"] == status


async def test_websocket_messages_before_a_slow_authorization_are_kept() -> None:
    """A client that leaves meanwhile leaves nothing behind."""

    async def later(text: str) -> Any:
        await either.sleep(5)
        return GRANTS.get(text)

    neutral = Neutral()
    ann = (b"authorization", b"Bearer ann")
    async with serve_app(either.package().asgi(neutral.server, auth=guard(later))) as host:
        began = either.current_time()
        call, leaving = host.websocket(ann), host.websocket(ann)
        call.deliver(calling(1, "echo", text="early"))
        leaving.deliver(GONE)
        assert (await answer_to(call, 1))["result"]["content"][0]["text"] == "early"
        assert either.current_time() == began + 5
        await leaving.end()
        assert leaving.sent in ([], [ACCEPT])
        call.deliver(GONE)
        await call.end()
        assert list(neutral.server._listeners) == []


@pytest.mark.parametrize("version", VERSIONS)
async def test_websocket_server_reports_progress_in_each_revision(version: str) -> None:
    async with connected(Neutral()) as call:
        message = calling(2, "count", to=3)
        if version != E:
            call.deliver(text_frame(initialize(version)), text_frame(INITIALIZED))
            params = {"name": "count", "arguments": {"to": 3}, "_meta": {"progressToken": 2}}
            message = text_frame(request(2, "tools/call", params))
        call.deliver(message)
        answer = await answer_to(call, 2)
        assert answer["result"]["content"][0]["text"] == "counted"
        progress = [each["params"]["progress"] for each in frames_of(call) if "method" in each]
        assert progress == [1, 2, 3]


async def test_websocket_cancellation_of_a_client_cancels_the_handler() -> None:
    neutral = Neutral()
    async with connected(neutral) as call:
        call.deliver(text_frame(initialize(D)), text_frame(INITIALIZED))
        call.deliver(text_frame(request(2, "tools/call", {"name": "wait", "arguments": {}})))
        await neutral.started.wait()
        call.deliver(text_frame(cancelled(2)))
        await either.wait_all_tasks_blocked()
        assert neutral.log == ["cancelled"]
        call.deliver(text_frame(request(3, "ping")))
        assert (await answer_to(call, 3))["result"] == {}


@pytest.mark.parametrize("starts", [False, True])
async def test_websocket_disconnect_cancels_handlers(starts: bool) -> None:
    """Whether the handler has started or not, nothing of the client is left."""
    neutral = Neutral()
    async with serve_app(either.package().asgi(neutral.server)) as host:
        call = await accepted(host)
        call.deliver(calling(1, "wait"))
        if starts:
            await neutral.started.wait()
        call.deliver(GONE)
        await call.end()
        await either.wait_all_tasks_blocked()
        assert neutral.log == (["cancelled"] if neutral.started.is_set() else [])
        assert list(neutral.server._listeners) == []
        assert call.sent == [ACCEPT]


async def test_websocket_call_has_five_seconds_at_the_shutdown() -> None:
    """Then it fails with an explanation, and the WebSocket is closed with 1001."""
    neutral = Neutral()
    async with serve_app(either.package().asgi(neutral.server)) as host:
        call = await accepted(host)
        call.deliver(calling(1, "wait"))
        await neutral.started.wait()
        began = either.current_time()
    assert either.current_time() - began == pytest.approx(5)
    assert neutral.log == ["cancelled"]
    _, answer, close = frames_of(call)
    assert answer["error"]["message"] == "the server is being shut down"
    assert (close["type"], close["code"]) == (CLOSE, 1001)


async def test_websocket_idle_for_an_hour_stays_open() -> None:
    """The ASGI server sends the pings, so we send none."""
    async with connected(Neutral()) as call:
        assert await is_alive(call)
        sent = len(call.sent)
        await either.sleep(3600)
        assert len(call.sent) == sent
        assert await is_alive(call, 100)


async def test_websocket_client_that_says_nothing_is_closed_after_thirty_seconds() -> None:
    async with connected(Neutral()) as call:
        await either.sleep(29)
        assert call.sent == [ACCEPT]
        await either.sleep(2)
        assert (call.sent[1]["type"], call.sent[1]["code"]) == (CLOSE, 1008)


async def test_websocket_text_that_is_not_json_is_limited() -> None:
    """Three within ten seconds are no client of MCP."""
    garbage = {"type": "websocket.receive", "text": "no JSON"}
    async with connected(Neutral()) as call:
        call.deliver(garbage, garbage)
        await call.until(lambda: len(call.sent) == 3)
        await either.sleep(11)
        call.deliver(garbage)
        await call.until(lambda: len(call.sent) == 4)
        call.deliver(garbage, garbage)
        await call.until(lambda: call.sent[-1]["type"] == CLOSE)
        assert call.sent[-1]["code"] == 1007
        errors = [each["error"]["code"] for each in frames_of(call)[1:-1]]
        assert set(errors) == {-32700}


async def test_websocket_internal_error_ends_one_connection_alone(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The ASGI server gets the exception, the handlers are cancelled, and the others go on."""
    neutral = Neutral()
    async with serve_app(either.package().asgi(neutral.server)) as host:
        call, other = await accepted(host), await accepted(host)
        call.deliver(calling(1, "wait"))
        await neutral.started.wait()

        def fail(self: WebSocket, text: str, now: float) -> None:
            raise ZeroDivisionError

        with monkeypatch.context() as patch:
            patch.setattr(WebSocket, "receive_text", fail)
            call.deliver(calling(2, "echo"))
            with pytest.raises(ZeroDivisionError):
                await call.end()
        await either.wait_all_tasks_blocked()
        assert neutral.log == ["cancelled"]
        assert await is_alive(other)
        other.deliver(GONE)
        await other.end()


async def test_websocket_broken_while_sending_ends_the_handler() -> None:
    """ASGI: `send` raises `OSError` once the client has disconnected."""
    neutral = Neutral()
    async with serve_app(either.package().asgi(neutral.server)) as host:
        call = await accepted(host)
        call.accepting = anyio.Event()
        call.deliver(calling(1, "flood", number=320))
        await either.wait_all_tasks_blocked()
        reported = len(neutral.log)
        call.send_error = OSError("gone")
        call.accepting.set()
        await call.end()
        await either.wait_all_tasks_blocked()
        assert len(neutral.log) < reported + 10
        assert call.sent == [ACCEPT]


async def test_websocket_unread_output_pauses_the_handler() -> None:
    """A slow reader gets all 321 messages. The ASGI server decides when to give one up."""
    neutral = Neutral()
    async with connected(neutral) as call:
        call.accepting = anyio.Event()
        call.deliver(calling(1, "flood", number=320))
        await either.sleep(5)
        reported = len(neutral.log)
        assert 10 < reported < 300
        await either.sleep(3600)
        assert len(neutral.log) == reported
        call.accepting.set()
        await answer_to(call, 1)
        assert len(call.sent) == 1 + 321
        call.accepting = anyio.Event()
        call.deliver(calling(2, "flood", number=320))
        await either.sleep(5)
        assert 330 < len(neutral.log) < 620
        reported = len(neutral.log)
        call.deliver(GONE)
        await call.end()
        await either.sleep(1)
        assert len(neutral.log) < reported + 10
