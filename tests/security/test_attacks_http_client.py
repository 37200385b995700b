"""Attacks of a server on an HTTP client, over sockets: what the server could make grow.

The limits are scaled down, but for tests that are marked `slow`.
"""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import trio

import mcp_asyncio_shim
from mcp_core import CallTimeout, ConnectionLost, RemoteProtocolError
from mcp_core.http.client import _response_queue
from mcp_trio import connect
from mcp_trio.testing import hostile
from tests.harness.jsonrpc import D
from tests.harness.wire.http1_server import PlayedHttpServer
from tests.harness.wire.http2_server import H2Peer, H2Request
from tests.harness.world.waiting import PATIENCE
from tests.security.hostile_http_server import (
    HostileHttpServer,
    Where,
    elicitations,
    pings,
    roots_requests,
)
from tests.testing.hostile.threads import in_thread
from tests.trio_.http_client.test_transport_sockets import serving

if TYPE_CHECKING:
    from mcp_core.types import ElicitParams

MIB = 1024 * 1024
POSTS = 4
OTHERS = 4  # connections for the call, its stream, the standalone stream, and one that is idle
STALLED = "the server sends requests but does not read the responses"
WHERE: list[Where] = ["post", "get", "sse"]


@pytest.fixture(autouse=True)
def _small_limits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_response_queue, "_MAX_POSTS", POSTS)
    monkeypatch.setattr(_response_queue, "_MAX_WAITING", 20)
    monkeypatch.setattr(_response_queue, "_STALL_TIMEOUT", 0.3)


def versions(where: Where) -> list[str]:
    return ["2024-11-05"] if where == "sse" else [D]


def measured(url: str, action: str = "call_tool") -> Any:
    """Return the figures of a client in a process of its own."""
    script = Path(__file__).with_name("measured_client.py")
    ran = subprocess.run(
        [sys.executable, script, url, action],
        stdout=subprocess.PIPE,
        check=True,
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])},
    )
    return json.loads(ran.stdout)


# -- Requests of the server ------------------------------------------------------------------------


@pytest.mark.parametrize("where", WHERE)
async def test_http_client_pings_unread_responses_close_the_connection(where: Where) -> None:
    with HostileHttpServer(pings(2_000), where=where, accepts=False) as server:
        async with connect(server.url, versions=versions(where)) as client:
            with pytest.raises(ConnectionLost, match=STALLED):
                await client.call_tool("t", timeout=5)
    assert server.most <= POSTS + OTHERS
    assert len(server.responses) == POSTS


async def test_http_client_accepted_responses_to_pings_of_a_call_use_few_connections() -> None:
    async with (
        hostile.hostile_server("request-flood") as server,
        connect(server.url, versions=[D]) as client,
    ):
        assert (await client.call_tool("attack")).text == "done"
        with trio.fail_after(PATIENCE):
            while server.requests.count("response") < 5_000:  # noqa: ASYNC110 - it has no event
                await trio.sleep(0.01)
    assert server.most_connections <= POSTS + OTHERS


@pytest.mark.parametrize("where", ["get", "sse"])
async def test_http_client_pings_accepted_responses_use_few_connections(where: Where) -> None:
    with HostileHttpServer(pings(1_000), where=where) as server:
        async with connect(server.url, versions=versions(where)) as client:
            assert (await client.call_tool("t")).text == "done"
            with trio.fail_after(PATIENCE):
                while len(server.responses) < 1_000:  # noqa: ASYNC110 - in another thread
                    await trio.sleep(0.01)
    assert sorted(server.responses) == list(range(1_000))
    assert server.most <= POSTS + OTHERS


async def test_http_client_input_requests_beyond_the_limit_are_rejected_on_few_connections() -> (
    None
):
    """The server sends 2,000 requests and accepts no response; the user is asked 256 times."""
    asked = 0

    async def on_elicit(params: ElicitParams) -> None:
        nonlocal asked
        asked += 1
        await trio.sleep_forever()

    with HostileHttpServer(elicitations(2_000), accepts=False) as server:
        async with connect(server.url, versions=[D], on_elicit=on_elicit) as client:
            with pytest.raises(ConnectionLost, match=STALLED):
                await client.call_tool("t", timeout=5)
    assert server.most <= POSTS + OTHERS
    assert asked == 256


async def test_http_client_dozens_of_concurrent_input_requests_are_answered() -> None:
    """Every answer waits for the last question: none may wait for a connection of a call."""
    count = 40
    asked = 0
    everything = trio.Event()

    async def on_roots() -> list[str]:
        nonlocal asked
        asked += 1
        if asked == count:
            everything.set()
        await everything.wait()
        return ["file:///"]

    with HostileHttpServer(roots_requests(count)) as server:
        async with connect(server.url, versions=[D], on_roots=on_roots) as client:
            assert (await client.call_tool("t")).text == "done"
            with trio.fail_after(PATIENCE):
                while len(server.responses) < count:  # noqa: ASYNC110 - in another thread
                    await trio.sleep(0.01)
    assert sorted(server.responses) == list(range(count))


async def test_websocket_client_pings_unread_responses_close_the_connection() -> None:
    """Here, as on a pipe, a mebibyte of responses may wait behind those that the system has."""
    server = HostileHttpServer(pings(60_000, padding=250), where="ws")
    with server, pytest.raises(ConnectionLost, match=STALLED):
        async with connect(server.url, versions=[D]) as client:
            await client.call_tool("t", timeout=5)


@pytest.mark.parametrize("accepts", [False, True])
async def test_http2_client_pings_use_one_connection(accepts: bool) -> None:
    """100 pings arrive at once; a server that accepts no response stalls the call, no more."""
    responses = most = running = 0
    all_arrived = trio.Event()

    async def flood(request: H2Request) -> None:
        await request.begin_stream()
        for id in range(100):
            await request.event({"jsonrpc": "2.0", "id": id, "method": "ping"})
        done = {"content": [{"type": "text", "text": "done"}]}
        await request.event({"jsonrpc": "2.0", "id": request.message["id"], "result": done})
        await request.end()

    async def take(request: H2Request) -> None:
        nonlocal responses, most, running
        responses += 1
        running += 1
        most = max(most, running)
        if responses == 100:
            all_arrived.set()
        if not accepts:
            await trio.sleep_forever()
        running -= 1  # the client may post the next response as soon as it has this one
        await request.answer(202)

    class Server(PlayedHttpServer):
        async def play(self, request: Any) -> None:
            if "id" in request.message and not request.rpc_method:
                await take(request)
            else:
                await super().play(request)

    server = Server(D)
    server.answers["tools/call"] = flood
    server.speaks = H2Peer
    async with (
        serving(server) as url,
        connect(url, versions=[D], prior_knowledge=True) as client,
    ):
        assert client.protocol == "HTTP/2"
        if accepts:
            assert (await client.call_tool("t")).text == "done"
            await all_arrived.wait()
        else:
            with pytest.raises(ConnectionLost, match=STALLED):
                await client.call_tool("t", timeout=5)
            assert responses == POSTS
    assert server.opened == 1
    # A server that accepts at once may never see two of them at a time.
    assert (1 if accepts else POSTS) <= most <= POSTS


@pytest.mark.parametrize("where", WHERE)
def test_asyncio_client_pings_unread_responses_close_the_connection(where: Where) -> None:
    async def main() -> None:
        async with mcp_asyncio_shim.connect(server.url, versions=versions(where)) as client:
            with pytest.raises(ConnectionLost, match=STALLED):
                await client.call_tool("t", timeout=5)

    server = HostileHttpServer(pings(2_000), where=where, accepts=False)
    with server:
        asyncio.run(main())
    assert server.most <= POSTS + OTHERS
    assert len(server.responses) == POSTS


@pytest.mark.slow
def test_asyncio_websocket_client_pings_unread_responses_close_the_connection() -> None:
    async def main() -> None:
        async with mcp_asyncio_shim.connect(server.url, versions=[D]) as client:
            await client.call_tool("t", timeout=5)

    server = HostileHttpServer(pings(60_000, padding=250), where="ws")
    with server, pytest.raises(ConnectionLost, match=STALLED):
        asyncio.run(main())


def test_asyncio_client_pings_accepted_responses_use_few_connections() -> None:
    async def main() -> None:
        async with mcp_asyncio_shim.connect(server.url, versions=[D]) as client:
            assert (await client.call_tool("attack")).text == "done"
            while server.requests.count("response") < 5_000:  # noqa: ASYNC110 - in a thread
                await asyncio.sleep(0.01)

    with in_thread("request-flood") as server:
        asyncio.run(main())
    assert server.most_connections <= POSTS + OTHERS


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
@pytest.mark.parametrize("accepts", [False, True])
def test_http_client_twenty_thousand_pings_use_64_descriptors_and_64_mebibytes(
    accepts: bool,
) -> None:
    with HostileHttpServer(pings(20_000), accepts=accepts) as server:
        found = measured(server.url)
    assert found["descriptors"] <= 64
    assert found["memory"] <= 64 * MIB
    if accepts:
        assert found["error"] is None
    else:
        assert STALLED in found["error"]
        assert found["seconds"] <= 5


# -- Streams ---------------------------------------------------------------------------------------


async def test_http_client_streams_that_end_at_once_are_not_resumed_at_once() -> None:
    """The standalone stream and the response to the call: each ten times a second at most."""
    async with hostile.hostile_server("retry-zero") as server:
        async with connect(server.url, versions=[D]) as client:
            with pytest.raises(CallTimeout):
                await client.call_tool("attack", max_timeout=0.5)
        streams = [head for head in server.heads if head.startswith(b"GET ")]
    assert 4 <= len(streams) + server.requests.count("tools/call") <= 14


# -- Pages of a listing ----------------------------------------------------------------------------


def tools(count: int, description: str) -> list[Any]:
    schema = {"type": "object", "properties": {"a": {"type": "string", "description": "b"}}}
    return [
        {"name": f"tool_{number}", "description": description, "inputSchema": schema}
        for number in range(count)
    ]


async def test_http_client_listing_without_end_is_ended_by_its_size() -> None:
    async with (
        hostile.hostile_server("endless-pages") as server,  # of 50 KB each
        connect(server.url, versions=[D], max_listing=100_000) as client,
    ):
        with pytest.raises(RemoteProtocolError) as caught:
            await client.list_tools()
    assert server.requests.count("tools/list") == 2
    assert "tools/list is too long: the server has sent 100 items in 2 pages" in str(caught.value)
    assert "the limit is 100000; connect with a higher max_listing" in str(caught.value)


def test_asyncio_client_listing_without_end_is_ended_by_its_size() -> None:
    async def main() -> None:
        async with mcp_asyncio_shim.connect(
            server.url, versions=[D], max_listing=100_000
        ) as client:
            with pytest.raises(RemoteProtocolError, match="max_listing"):
                await client.list_tools()

    with in_thread("endless-pages") as server:  # of 50 KB each
        asyncio.run(main())
    assert server.requests.count("tools/list") == 2


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
@pytest.mark.parametrize(
    "page",
    [
        pytest.param(tools(240, "x" * 4_000), id="long descriptions"),
        pytest.param(tools(2_000, "x" * 400), id="usual"),
        pytest.param([{"name": "", "inputSchema": {}}] * 36_000, id="small tools"),
        pytest.param([{"name": "t", "inputSchema": {"a": [{}] * 3_000}}] * 100, id="empty objects"),
    ],
)
def test_http_client_pages_of_a_mebibyte_are_ended_below_128_mebibytes(page: Any) -> None:
    with HostileHttpServer(page={"tools": page}) as server:
        found = measured(server.url, "list_tools")
    assert "max_listing" in found["error"]
    assert found["memory"] < 128 * MIB
