"""A real server with a scripted client, and a real client with a scripted server."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
import trio
import trio.testing

from mcp_core import ALL, DIALECTS, CallTimeout, ConnectFailed, ConnectionLost, PeerError
from mcp_core.registry import Context, Server
from mcp_trio import connect_stdio, connect_stream, serve_stream
from mcp_trio.testing import ScriptedPeer, memory_pair, play_client, play_server
from tests.harness.jsonrpc import D, E

if TYPE_CHECKING:
    from collections.abc import Callable

MockClock = trio.testing.MockClock
Pair = tuple[trio.abc.Stream, trio.abc.Stream]


def greeter() -> Server:
    server = Server("greeter", versions=ALL)

    @server.tool
    def greet(name: str) -> str:
        """Return a greeting."""
        return f"Hello, {name}!"

    @server.tool
    async def wait(context: Context) -> None:
        """Report progress, and never return."""
        await context.progress(1)
        await trio.sleep_forever()

    return server


GREET = {"name": "greet", "arguments": {"name": "Ada"}}


@pytest.mark.parametrize("version", ALL)
async def test_play_client_opens_each_revision(version: str) -> None:
    async with play_client(greeter(), version) as peer:
        assert (await peer.result_of("tools/call", GREET))["content"] == [
            {"type": "text", "text": "Hello, Ada!"}
        ]
        refused = await peer.request("no/such")
        await peer.expect_error(refused, -32601)
        waiting = await peer.request(
            "tools/call", {"name": "wait", "_meta": {"progressToken": "p"}}
        )
        await peer.expect("notifications/progress", {"progressToken": "p", "progress": 1})
        await peer.notify("notifications/cancelled", {"requestId": waiting["id"]})
        await peer.expect_silence()
        await peer.send(b"no JSON")
        assert (await peer.receive())["error"]["code"] == -32700


@pytest.mark.parametrize("version", ALL)
async def test_play_server_opens_each_revision(version: str, nursery: trio.Nursery) -> None:
    async with play_server(version) as (client, peer):
        assert client.peer.dialect.version == version

        async def script() -> None:
            request = await peer.expect("tools/call", {"name": "t"})
            await peer.answer(request, {"content": [{"type": "text", "text": "done"}]})
            await peer.send_error(await peer.expect("resources/read"), -32602, "there is none")

        nursery.start_soon(script)
        assert (await client.call_tool("t")).text == "done"
        with pytest.raises(PeerError, match="there is none"):
            await client.read_resource("a:b")
        await peer.expect_silence()


async def test_play_server_with_more_revisions_is_probed_first() -> None:
    async with play_server(D, versions=ALL) as (client, peer):
        assert client.peer.dialect.version == D
    assert b"server/discover" in peer.transcript[0][1]


async def test_play_server_mock_clock_skips_a_timeout(autojump_clock: MockClock) -> None:
    async with play_server() as (client, peer):
        start = trio.current_time()
        with pytest.raises(CallTimeout):
            await client.call_tool("t")
        assert trio.current_time() - start == pytest.approx(60)
        await peer.expect("tools/call")
        await peer.expect("notifications/cancelled")


async def test_play_server_expect_waits_longer_than_a_call(
    autojump_clock: MockClock, nursery: trio.Nursery
) -> None:
    async with play_server() as (client, peer):

        async def call() -> None:
            with pytest.raises(CallTimeout):
                await client.call_tool("t", timeout=1000)

        nursery.start_soon(call)
        await peer.expect("tools/call")
        await peer.expect("notifications/cancelled")
        assert trio.current_time() >= 1000


async def test_play_server_closing_fails_calls() -> None:
    async with play_server() as (client, peer):
        await peer.aclose()
        with pytest.raises(ConnectionLost):
            await client.call_tool("t")


@pytest.mark.parametrize("version", [D, E])
async def test_play_block_exception_is_not_wrapped(version: str) -> None:
    """`pytest.raises` sees the exception of the block, although both ends have nurseries."""

    async def as_client() -> None:
        async with play_client(greeter(), version) as peer:
            await peer.request("tools/call", {"name": "wait"})
            raise KeyError("of the block")

    async def as_server() -> None:
        async with play_server(version) as (client, _):
            async with trio.open_nursery() as nursery:
                nursery.start_soon(client.call_tool, "t")
                await trio.testing.wait_all_tasks_blocked()
                nursery.cancel_scope.cancel()
            raise KeyError("of the block")

    for use in as_client, as_server:
        with pytest.raises(KeyError):
            await use()


async def test_play_failed_handshake_raises() -> None:
    with pytest.raises(AssertionError, match=r"^expected the result of the request initialize"):
        await play_client(Server("other", versions=[E]), D).__aenter__()
    with pytest.raises(
        AssertionError, match=r"^expected server/discover, got the request initialize"
    ):
        await play_server(E, versions=[D]).__aenter__()


async def test_play_server_rejected_by_the_client_raises() -> None:
    with pytest.raises(
        AssertionError, match=r"^expected notifications/initialized, but the stream"
    ) as caught:
        await play_server(D, versions=[ALL[-1]]).__aenter__()
    assert isinstance(caught.value.__cause__, ConnectFailed)
    assert f"the server answered with revision {D}" in str(caught.value.__cause__)


async def test_play_block_connect_failure_propagates() -> None:
    with pytest.raises(ConnectFailed, match="cannot start"):
        async with play_server(), connect_stdio(["no-such-program-anywhere"]):
            raise AssertionError("it came about")


@pytest.mark.parametrize("version", [D, E])
@pytest.mark.parametrize(
    "make", [trio.testing.lockstep_stream_pair, trio.testing.memory_stream_pair, memory_pair]
)
async def test_play_works_on_other_streams(
    make: Callable[[], Pair], version: str, nursery: trio.Nursery
) -> None:
    """A peer plays either end on any stream of trio, not only on a memory pair."""
    ours, theirs = make()
    nursery.start_soon(serve_stream, greeter(), theirs)
    peer = ScriptedPeer(ours, version)
    await peer.open_as_client()
    assert (await peer.result_of("tools/call", GREET))["content"][0]["text"] == "Hello, Ada!"
    await peer.aclose()

    ours, theirs = make()
    peer = ScriptedPeer(theirs, version)

    async def script() -> None:
        await peer.open_as_server()
        async for request in peer:
            await peer.answer(request, {"content": []})

    nursery.start_soon(script)
    async with connect_stream(ours, versions=[version]) as client:
        results: list[Any] = [await client.call_tool("t") for _ in range(3)]
    assert [each.content for each in results] == [[], [], []]


def test_play_revisions_have_and_have_no_handshake() -> None:
    assert {DIALECTS[version].stateful for version in ALL} == {True, False}
