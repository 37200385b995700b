"""The client over HTTP/2 against a played server: what only HTTP/2 has.

That is calls that share a connection, and servers that report unprocessed requests.
"""

from __future__ import annotations

from typing import Any

import pytest
import trio
import trio.testing

from mcp_core import Change, ConnectionLost
from tests.drivers.test_http_client import (
    CALL,
    DONE,
    ERAS,
    echo,
    hang,
    text,
)
from tests.harness.jsonrpc import E
from tests.harness.wire.client import CallTask
from tests.harness.wire.http1_server import PlayedHttpServer, connected
from tests.harness.wire.http2_frames import go_away
from tests.harness.wire.http2_server import H2Peer, H2Request
from tests.harness.world.waiting import PATIENCE
from tests.levels import long

MockClock = trio.testing.MockClock
MonkeyPatch = pytest.MonkeyPatch


@pytest.fixture(autouse=True)
def over_http2(monkeypatch: MonkeyPatch) -> None:
    begin = PlayedHttpServer.__init__

    def begin_h2(server: PlayedHttpServer, *args: Any, **answers: Any) -> None:
        begin(server, *args, **answers)
        server.speaks = H2Peer

    monkeypatch.setattr(PlayedHttpServer, "__init__", begin_h2)


DISCOVERED: Any = {
    "supportedVersions": [E],
    "ttlMs": 0,
    "cacheScope": "private",
    "resultType": "complete",
}


# --- sharing a connection -----------------------------------------------------------------------


async def test_http2_client_many_calls_share_a_connection(monkeypatch: MonkeyPatch) -> None:
    """All 120 wait at the server at the same time, on a single connection."""
    running = most = 0
    enough = trio.Event()

    async def answer(request: Any) -> None:
        nonlocal running, most
        running += 1
        most = max(most, running)
        if running == 120:
            enough.set()
        await enough.wait()
        running -= 1
        await echo(request)

    server = PlayedHttpServer(E)
    server.answers[CALL] = answer
    async with connected(server, monkeypatch) as client:
        results: dict[int, str] = {}

        async def call(number: int) -> None:
            results[number] = (await client.call_tool("t", {"words": str(number)})).text

        async with trio.open_nursery() as nursery:
            for number in range(120):
                nursery.start_soon(call, number)
        assert results == {number: str(number) for number in range(120)}
        assert client.protocol == "HTTP/2"
    assert (server.opened, most) == (1, 120)


async def test_http2_client_calls_over_the_stream_limit_use_another_connection(
    monkeypatch: MonkeyPatch,
) -> None:
    """The server allows 10 streams each, so 25 calls that wait for each other need three."""
    monkeypatch.setattr(H2Peer, "most", 10)
    server = PlayedHttpServer(E)
    running = 0
    enough = trio.Event()

    async def answer(request: Any) -> None:
        nonlocal running
        running += 1
        if running == 25:
            enough.set()
        await enough.wait()
        await echo(request)

    server.answers[CALL] = answer
    async with connected(server, monkeypatch) as client, trio.open_nursery() as nursery:
        for _ in range(25):
            nursery.start_soon(client.call_tool, "t", {"words": "x"})
    assert server.opened == 3


@pytest.mark.parametrize("version", ERAS)
async def test_http2_client_cancelled_call_keeps_the_connection(
    version: str, monkeypatch: MonkeyPatch, nursery: trio.Nursery, autojump_clock: MockClock
) -> None:
    """HTTP/1.1 would have to close it; here the stream's reset is enough."""
    server = PlayedHttpServer(version, tools_call=hang)
    async with connected(server, monkeypatch) as client:
        await trio.testing.wait_all_tasks_blocked()
        one, other = (
            CallTask(nursery, lambda: client.call_tool("t", timeout=None)) for _ in range(2)
        )
        await trio.testing.wait_all_tasks_blocked()
        one.scope.cancel()
        await one.ended.wait()
        await trio.sleep(6)
        assert not other.ended.is_set()
        assert "1 under way" in repr(client._transport)
        server.answers[CALL] = DONE
        await client.call_tool("t")
        other.scope.cancel()
        await other.ended.wait()
        assert (server.opened, server.closed) == (1, 0)


async def test_http2_client_subscription_shares_the_connection(monkeypatch: MonkeyPatch) -> None:
    """An endless response occupies one stream, and calls go on beside it."""

    async def listen(request: Any) -> None:
        meta = {"io.modelcontextprotocol/subscriptionId": request.message["id"]}
        await request.begin_stream()
        acknowledged = {"_meta": meta, "notifications": request.message["params"]["notifications"]}
        await request.event(
            {
                "jsonrpc": "2.0",
                "method": "notifications/subscriptions/acknowledged",
                "params": acknowledged,
            }
        )
        await changed.wait()
        await request.event(
            {
                "jsonrpc": "2.0",
                "method": "notifications/tools/list_changed",
                "params": {"_meta": meta},
            }
        )
        await trio.sleep_forever()

    changed = trio.Event()
    server = PlayedHttpServer(E, tools_call=DONE)
    server.answers["subscriptions/listen"] = listen
    server.answers["server/discover"] = {
        **DISCOVERED,
        "capabilities": {"tools": {"listChanged": True}},
    }
    with trio.fail_after(PATIENCE):
        async with connected(server, monkeypatch) as client, client.listen(tools=True) as changes:
            for _ in range(10):
                await client.call_tool("t")
            changed.set()
            assert await anext(changes) == Change("tools")
            assert (server.opened, server.closed) == (1, 0)


@pytest.mark.parametrize("count", [600, long(5_000)])
async def test_http2_client_unread_subscription_does_not_block_calls(
    count: int, monkeypatch: MonkeyPatch
) -> None:
    """A stream sends many changes that are not read; calls beside it are answered."""

    async def listen(request: Any) -> None:
        meta = {"io.modelcontextprotocol/subscriptionId": request.message["id"]}
        await request.begin_stream()
        for method in ["subscriptions/acknowledged", *["tools/list_changed"] * count]:
            requested = (
                request.message["params"]["notifications"] if method.startswith("sub") else None
            )
            params = (
                {"_meta": meta}
                if requested is None
                else {"_meta": meta, "notifications": requested}
            )
            await request.event(
                {"jsonrpc": "2.0", "method": f"notifications/{method}", "params": params}
            )
        sent.set()
        await trio.sleep_forever()

    sent = trio.Event()
    server = PlayedHttpServer(E, tools_call=DONE)
    server.answers["subscriptions/listen"] = listen
    server.answers["server/discover"] = {
        **DISCOVERED,
        "capabilities": {"tools": {"listChanged": True}},
    }
    with trio.fail_after(PATIENCE):
        async with connected(server, monkeypatch) as client, client.listen(tools=True) as changes:
            for _ in range(20):
                await client.call_tool("t")
            await sent.wait()
            await client.call_tool("t")
            assert await anext(changes) == Change("tools")
            assert (server.opened, server.closed) == (1, 0)


async def test_http2_client_idle_connection_is_closed(
    monkeypatch: MonkeyPatch, autojump_clock: MockClock
) -> None:
    server = PlayedHttpServer(E, tools_call=DONE)
    async with connected(server, monkeypatch) as client:
        await client.call_tool("t")
        await trio.sleep(29)
        await client.call_tool("t")
        assert (server.opened, server.closed) == (1, 0)
        await trio.sleep(31)
        assert (server.opened, server.closed) == (1, 1)
        await client.call_tool("t")
        assert (server.opened, server.closed) == (2, 1)


async def test_http2_client_calls_wait_for_the_connection_being_opened(
    monkeypatch: MonkeyPatch, autojump_clock: MockClock
) -> None:
    server = PlayedHttpServer(E, tools_call=DONE)
    async with connected(server, monkeypatch) as client:
        await client.call_tool("t")
        await trio.sleep(31)  # until the first connection is closed
        async with trio.open_nursery() as nursery:
            for _ in range(50):
                nursery.start_soon(client.call_tool, "t")
        assert server.opened == 2


async def test_http2_client_connect_failure_does_not_delay_other_calls(
    monkeypatch: MonkeyPatch, autojump_clock: MockClock
) -> None:
    """Fifty calls fail while the server is down, and the next one succeeds once it is up."""
    server = PlayedHttpServer(E, tools_call=DONE)
    async with connected(server, monkeypatch) as client:
        await client.call_tool("t")
        await trio.sleep(31)
        server.gone = True

        async def fail() -> None:
            with pytest.raises(ConnectionLost, match="connection refused"):
                await client.call_tool("t")

        async with trio.open_nursery() as nursery:
            for _ in range(50):
                nursery.start_soon(fail)
        server.gone = False
        await client.call_tool("t")


# --- unprocessed requests -----------------------------------------------------------------------


def saying(server: PlayedHttpServer, *plays: Any) -> None:
    """Play consecutive calls with `plays`; the last one is for all others."""
    left = list(plays)

    async def play(request: Any) -> None:
        await (left.pop(0) if len(left) > 1 else left[0])(request)

    server.answers[CALL] = play


async def refuse(request: H2Request) -> None:
    await request.reset(7)


async def break_off(request: H2Request) -> None:
    await request.reset(2)


async def go_before(request: H2Request) -> None:
    await request.connection.flush(go_away(max(0, request.id - 2)))


async def go_twice(request: H2Request) -> None:
    await request.connection.flush(go_away(2**31 - 1))
    await trio.testing.wait_all_tasks_blocked()
    await request.connection.flush(go_away(request.id))
    await finish(request)
    await trio.aclose_forcefully(request.connection.stream)


async def go_and_die(request: H2Request) -> None:
    await request.connection.flush(go_away(request.id))
    await trio.aclose_forcefully(request.connection.stream)


async def finish(request: H2Request) -> None:
    await request.result(text("done"))


async def begin_and_go(request: H2Request) -> None:
    await request.begin_stream()
    await request.connection.flush(go_away(max(0, request.id - 2)))


# What is done with a call that acts; how often it is sent, and its result.
PLAYS: dict[str, tuple[list[Any], int, str]] = {
    "refused": ([refuse, finish], 2, "done"),
    "refused twice": ([refuse, refuse, finish], 3, "done"),
    "refused always": ([refuse], 3, "the server refused to begin with the request"),
    "goes before": ([go_before, finish], 2, "done"),
    "goes always": (
        [go_before],
        3,
        "the server closed the connection before it began with the request",
    ),
    "goes and is asked elsewhere, who refuses": ([go_before, refuse, finish], 3, "done"),
    "goes in order": ([go_twice, finish], 1, "done"),
    "begins and dies": (
        [go_and_die, finish],
        1,
        "the server closed the connection without an answer",
    ),
    "breaks off": ([break_off, finish], 1, r"the server broke off its answer \(INTERNAL_ERROR\)"),
    "has begun, and says it has not": (
        [begin_and_go, finish],
        1,
        "before it began with the request",
    ),
}


@pytest.mark.parametrize("name", PLAYS)
async def test_http2_client_unprocessed_call_is_retried_and_no_other(
    name: str, monkeypatch: MonkeyPatch
) -> None:
    """A tool must never run twice, so a retry needs the server's word that it didn't run."""
    plays, times, outcome = PLAYS[name]
    server = PlayedHttpServer(E)
    async with connected(server, monkeypatch) as client:
        saying(server, *plays)
        with trio.fail_after(PATIENCE):
            if outcome == "done":
                assert (await client.call_tool("t")).text == "done"
            else:
                with pytest.raises(ConnectionLost, match=outcome):
                    await client.call_tool("t")
        assert server.request_names().count(CALL) == times
        saying(server, finish)
        assert (await client.call_tool("t")).text == "done"


async def test_http2_client_goaway_moves_new_calls_to_another_connection(
    monkeypatch: MonkeyPatch, nursery: trio.Nursery
) -> None:
    """The old connection finishes its five calls before it is closed, so no call is lost."""
    release = trio.Event()

    async def wait(request: Any) -> None:
        await release.wait()
        await finish(request)

    server = PlayedHttpServer(E)
    async with connected(server, monkeypatch) as client:
        saying(server, wait)
        callers = [CallTask(nursery, lambda: client.call_tool("t")) for _ in range(5)]
        await trio.testing.wait_all_tasks_blocked()
        peer: Any = server.requests[-1].connection
        await peer.flush(go_away(2**31 - 1))
        await trio.testing.wait_all_tasks_blocked()
        saying(server, finish)
        assert (await client.call_tool("t")).text == "done"
        assert (server.opened, server.closed) == (2, 0)
        await peer.flush(go_away(peer.http.highest_inbound_stream_id))
        release.set()
        for call_task in callers:
            await call_task.ended.wait()
            assert call_task.error is None
        await trio.testing.wait_all_tasks_blocked()
        assert (server.opened, server.closed) == (2, 1)
        assert server.request_names().count(CALL) == 6


async def test_http2_client_broken_connection_fails_its_calls(
    monkeypatch: MonkeyPatch, nursery: trio.Nursery
) -> None:
    server = PlayedHttpServer(E, tools_call=hang)
    async with connected(server, monkeypatch) as client:
        callers = [CallTask(nursery, lambda: client.call_tool("t")) for _ in range(5)]
        await trio.testing.wait_all_tasks_blocked()
        connection: Any = server.requests[-1].connection
        await trio.aclose_forcefully(connection.stream)
        for call_task in callers:
            await call_task.ended.wait()
            assert isinstance(call_task.error, ConnectionLost)
        assert server.request_names().count(CALL) == 5
        server.answers[CALL] = DONE
        await client.call_tool("t")


async def test_http2_client_broken_connection_retries_reads(monkeypatch: MonkeyPatch) -> None:
    async def once(request: Any) -> None:
        if request.connection.requests > 1:
            await trio.aclose_forcefully(request.connection.stream)
        else:
            await request.result(
                {"tools": [], "resultType": "complete", "ttlMs": 0, "cacheScope": "private"}
            )

    server = PlayedHttpServer(E, tools_list=once)
    async with connected(server, monkeypatch) as client:
        assert await client.list_tools() == []
        assert server.request_names() == ["server/discover", "tools/list", "tools/list"]


async def test_http2_client_server_without_capacity_ends_in_an_error(
    monkeypatch: MonkeyPatch,
) -> None:
    """A server may do so for long: a few new connections are tried, and then the call fails."""
    server = PlayedHttpServer(E, tools_call=DONE)
    async with connected(server, monkeypatch) as client:
        peer: Any = server.requests[-1].connection
        peer.http.update_settings({3: 0})
        await peer.flush()
        await trio.testing.wait_all_tasks_blocked()
        await client.call_tool("t")
        assert server.opened == 2
        monkeypatch.setattr(H2Peer, "most", 0)
        peer = server.requests[-1].connection
        peer.http.update_settings({3: 0})
        await peer.flush()
        await trio.testing.wait_all_tasks_blocked()
        with pytest.raises(
            ConnectionLost, match="the server takes no more requests on this connection"
        ):
            await client.call_tool("t")
        assert server.opened == 5
