"""WebSockets of the ASGI application on trio. The machine itself is tested in the core."""

from __future__ import annotations

import json
from typing import Any

import trio

from mcp_trio import Server, asgi
from tests.asgi import Call, Host, Neutral, serve_app
from tests.core.helpers import stateless_request
from tests.core.http.site import HOST, D, initialize, request
from tests.core.http.test_guarded import guard

ACCEPT = {"type": "websocket.accept", "subprotocol": "mcp", "headers": []}


def socket(host: Host, *headers: tuple[bytes, bytes], **scope: Any) -> Call:
    told = {"path": "/mcp", "subprotocols": ["mcp"], "headers": [HOST, *headers], **scope}
    call = host.call(type="websocket", **told)
    call.tell({"type": "websocket.connect"})
    return call


def text(message: Any) -> dict[str, Any]:
    return {"type": "websocket.receive", "text": json.dumps(message)}


def heard(call: Call) -> list[Any]:
    return [json.loads(said["text"]) if "text" in said else said for said in call.said]


async def test_trio_asgi_websocket_conversation() -> None:
    async with serve_app(asgi(Neutral().server)) as host:
        call = socket(host)
        call.tell(text(initialize(D)))
        await call.until(lambda: len(call.said) == 2)
        accepted, answer = heard(call)
        assert accepted == ACCEPT
        assert answer["result"]["protocolVersion"] == D
        call.tell({"type": "websocket.receive", "bytes": b"{}"})
        await call.end()
        assert heard(call)[2]["code"] == 1003


async def test_trio_asgi_websocket_bad_origin_is_rejected_and_disconnect_ends() -> None:
    async with serve_app(asgi(Neutral().server)) as host:
        refused = await socket(host, (b"origin", b"http://evil.example")).end()
        assert refused.said == [{"type": "websocket.close"}]
        call = socket(host)
        await call.until(lambda: call.said)
        call.tell({"type": "websocket.disconnect", "code": 1001})
        await call.end()
        assert call.said == [ACCEPT]


async def test_trio_asgi_websocket_authorizes_before_accepting() -> None:
    async with serve_app(asgi(Neutral().server, auth=guard())) as host:
        refused = await socket(host, extensions={"websocket.http.response": {}}).end()
        assert refused.said[0]["status"] == 401
        call = socket(host, (b"authorization", b"Bearer ann"))
        await call.until(lambda: call.said)
        assert call.said == [ACCEPT]
        call.tell({"type": "websocket.disconnect"})
        await call.end()


async def test_trio_asgi_websocket_closes_at_shutdown() -> None:
    async with serve_app(asgi(Neutral().server)) as host:
        call = socket(host)
        await call.until(lambda: call.said)
    assert call.said == [ACCEPT, {"type": "websocket.close", "code": 1001, "reason": ""}]


async def test_trio_asgi_websocket_unread_output_pauses_reading() -> None:
    server = Server("loud")

    @server.tool
    def shout() -> str:
        """Return a long text."""
        return "x" * 100_000

    async with serve_app(asgi(server)) as host:
        call = socket(host)
        await call.until(lambda: call.said)
        call.taking = type(call.taking)()
        for id in range(40):
            call.tell(text(stateless_request(id, "tools/call", {"name": "shout", "arguments": {}})))
        await trio.testing.wait_all_tasks_blocked(0.01)
        assert len(call._told) > 10
        call.taking.set()
        await call.until(lambda: len(call.said) == 41)
        assert {answer["id"] for answer in heard(call)[1:]} == set(range(40))
        call.tell(text(request(99, "ping")))
        call.tell({"type": "websocket.disconnect"})
        await call.end()
