"""The client over HTTP/2 against a server that the test plays: what it asks of one over HTTP/1.1, by the very same tests, and what only
there can happen: calls that share a connection, and servers that say what they have not begun with.
"""

from __future__ import annotations

from typing import Any

import pytest
import trio
import trio.testing

from mcp_core import Change, ConnectionLost
from tests.core.helpers import E
from tests.trio_.h2_peer import H2Peer, H2Request
from tests.trio_.h2_played import go_away
from tests.trio_.http_wire import PlayedServer, talking
from tests.trio_.test_client import Caller
from tests.trio_.test_http_client import (
    CALL,
    DONE,
    ERAS,
    echo,
    hang,
    test_a_call_has_headers_of_its_own,
    test_a_conversation,
    test_a_message_of_a_megabyte_either_way,
    test_a_question_is_answered_while_its_call_is_under_way,
    test_a_server_that_cannot_be_reached_any_more,
    test_a_server_that_does_not_say_good_bye_has_a_second,
    test_a_slow_server,
    test_a_url_is_a_target,
    test_cancelling_all_of_it_still_ends_the_session,
    test_closing_ends_what_is_pending,
    test_progress_keeps_a_call_alive,
    test_the_handshake_has_half_a_minute,
    test_what_a_session_is_told_by_itself_and_a_stream_that_breaks,
    test_what_is_no_server_of_mcp,
    test_what_the_block_raises_comes_out_as_it_is,
    text,
)

MockClock = trio.testing.MockClock
MonkeyPatch = pytest.MonkeyPatch

__all__ = [
    "test_a_call_has_headers_of_its_own",
    "test_a_conversation",
    "test_a_message_of_a_megabyte_either_way",
    "test_a_question_is_answered_while_its_call_is_under_way",
    "test_a_server_that_cannot_be_reached_any_more",
    "test_a_server_that_does_not_say_good_bye_has_a_second",
    "test_a_slow_server",
    "test_a_url_is_a_target",
    "test_cancelling_all_of_it_still_ends_the_session",
    "test_closing_ends_what_is_pending",
    "test_progress_keeps_a_call_alive",
    "test_the_handshake_has_half_a_minute",
    "test_what_a_session_is_told_by_itself_and_a_stream_that_breaks",
    "test_what_is_no_server_of_mcp",
    "test_what_the_block_raises_comes_out_as_it_is",
]


@pytest.fixture(autouse=True)
def over_http2(monkeypatch: MonkeyPatch) -> None:
    begin = PlayedServer.__init__

    def begin_h2(server: PlayedServer, *args: Any, **answers: Any) -> None:
        begin(server, *args, **answers)
        server.speaks = H2Peer

    monkeypatch.setattr(PlayedServer, "__init__", begin_h2)


DISCOVERED: Any = {"supportedVersions": [E], "ttlMs": 0, "cacheScope": "private", "resultType": "complete"}


# --- sharing --------------------------------------------------------------------------------------------------------------------


async def test_two_hundred_calls_share_a_connection(monkeypatch: MonkeyPatch) -> None:
    running = most = 0
    enough = trio.Event()

    async def answer(request: Any) -> None:
        nonlocal running, most
        running += 1
        most = max(most, running)
        if running == 200:
            enough.set()
        await enough.wait()
        running -= 1
        await echo(request)

    server = PlayedServer(E)
    server.answers[CALL] = answer
    async with talking(server, monkeypatch) as client:
        heard: dict[int, str] = {}

        async def call(number: int) -> None:
            heard[number] = (await client.call_tool("t", {"words": str(number)})).text

        async with trio.open_nursery() as nursery:
            for number in range(200):
                nursery.start_soon(call, number)
        assert heard == {number: str(number) for number in range(200)}
        assert client.protocol == "HTTP/2"
    assert (server.opened, most) == (1, 200)


async def test_calls_beyond_what_a_server_takes_are_made_on_another_connection(
    monkeypatch: MonkeyPatch,
) -> None:
    monkeypatch.setattr(H2Peer, "most", 10)
    server = PlayedServer(E)
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
    async with talking(server, monkeypatch) as client, trio.open_nursery() as nursery:
        for _ in range(25):
            nursery.start_soon(client.call_tool, "t", {"words": "x"})
    assert server.opened == 3


@pytest.mark.parametrize("version", ERAS)
async def test_a_call_that_is_left_leaves_the_connection_to_others(
    version: str, monkeypatch: MonkeyPatch, nursery: trio.Nursery, autojump_clock: MockClock
) -> None:
    server = PlayedServer(version, tools_call=hang)
    async with talking(server, monkeypatch) as client:
        await trio.testing.wait_all_tasks_blocked()
        one, other = (Caller(nursery, lambda: client.call_tool("t", timeout=None)) for _ in range(2))
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


async def test_listening_shares_the_connection_too(monkeypatch: MonkeyPatch) -> None:
    async def listen(request: Any) -> None:
        meta = {"io.modelcontextprotocol/subscriptionId": request.message["id"]}
        await request.begin_stream()
        acknowledged = {"_meta": meta, "notifications": request.message["params"]["notifications"]}
        await request.event(
            {"jsonrpc": "2.0", "method": "notifications/subscriptions/acknowledged", "params": acknowledged}
        )
        await changed.wait()
        await request.event(
            {"jsonrpc": "2.0", "method": "notifications/tools/list_changed", "params": {"_meta": meta}}
        )
        await trio.sleep_forever()

    changed = trio.Event()
    server = PlayedServer(E, tools_call=DONE)
    server.answers["subscriptions/listen"] = listen
    server.answers["server/discover"] = {**DISCOVERED, "capabilities": {"tools": {"listChanged": True}}}
    with trio.fail_after(5):
        async with talking(server, monkeypatch) as client, client.listen(tools=True) as changes:
            for _ in range(10):
                await client.call_tool("t")
            changed.set()
            assert await anext(changes) == Change("tools")
            assert (server.opened, server.closed) == (1, 0)


async def test_who_does_not_listen_holds_up_nobody(monkeypatch: MonkeyPatch) -> None:
    """A stream tells of thousands of changes that nobody takes; calls beside it are answered, and nothing piles up."""

    async def listen(request: Any) -> None:
        meta = {"io.modelcontextprotocol/subscriptionId": request.message["id"]}
        await request.begin_stream()
        for method in ["subscriptions/acknowledged", *["tools/list_changed"] * 5_000]:
            asked = request.message["params"]["notifications"] if method.startswith("sub") else None
            params = {"_meta": meta} if asked is None else {"_meta": meta, "notifications": asked}
            await request.event({"jsonrpc": "2.0", "method": f"notifications/{method}", "params": params})
        told.set()
        await trio.sleep_forever()

    told = trio.Event()
    server = PlayedServer(E, tools_call=DONE)
    server.answers["subscriptions/listen"] = listen
    server.answers["server/discover"] = {**DISCOVERED, "capabilities": {"tools": {"listChanged": True}}}
    with trio.fail_after(60):
        async with talking(server, monkeypatch) as client, client.listen(tools=True) as changes:
            for _ in range(50):
                await client.call_tool("t")
            await told.wait()
            await client.call_tool("t")
            assert await anext(changes) == Change("tools")
            assert (server.opened, server.closed) == (1, 0)


async def test_a_connection_that_nobody_needs_is_closed(
    monkeypatch: MonkeyPatch, autojump_clock: MockClock
) -> None:
    server = PlayedServer(E, tools_call=DONE)
    async with talking(server, monkeypatch) as client:
        await client.call_tool("t")
        await trio.sleep(29)
        await client.call_tool("t")
        assert (server.opened, server.closed) == (1, 0)
        await trio.sleep(31)
        assert (server.opened, server.closed) == (1, 1)
        await client.call_tool("t")
        assert (server.opened, server.closed) == (2, 1)


async def test_all_wait_for_the_one_that_is_being_opened(
    monkeypatch: MonkeyPatch, autojump_clock: MockClock
) -> None:
    server = PlayedServer(E, tools_call=DONE)
    async with talking(server, monkeypatch) as client:
        await client.call_tool("t")
        await trio.sleep(31)  # until the first is closed
        async with trio.open_nursery() as nursery:
            for _ in range(50):
                nursery.start_soon(client.call_tool, "t")
        assert server.opened == 2


async def test_nobody_waits_for_anothers_failure(monkeypatch: MonkeyPatch, autojump_clock: MockClock) -> None:
    server = PlayedServer(E, tools_call=DONE)
    async with talking(server, monkeypatch) as client:
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


# --- what a server has not begun with -----------------------------------------------------------------------------------------------


def saying(server: PlayedServer, *plays: Any) -> None:
    """What is done with one call after the other; with all others as with the last."""
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


# What is done with a call that acts; how often it is made, and what comes of it.
PLAYS: dict[str, tuple[list[Any], int, str]] = {
    "refused": ([refuse, finish], 2, "done"),
    "refused twice": ([refuse, refuse, finish], 3, "done"),
    "refused always": ([refuse], 3, "the server refused to begin with the request"),
    "goes before": ([go_before, finish], 2, "done"),
    "goes always": ([go_before], 3, "the server closed the connection before it began with the request"),
    "goes and is asked elsewhere, who refuses": ([go_before, refuse, finish], 3, "done"),
    "goes in order": ([go_twice, finish], 1, "done"),
    "begins and dies": ([go_and_die, finish], 1, "the server closed the connection without an answer"),
    "breaks off": ([break_off, finish], 1, r"the server broke off its answer \(INTERNAL_ERROR\)"),
    "has begun, and says it has not": ([begin_and_go, finish], 1, "before it began with the request"),
}


@pytest.mark.parametrize("name", PLAYS)
async def test_what_was_not_begun_with_is_made_again_and_nothing_else(
    name: str, monkeypatch: MonkeyPatch
) -> None:
    plays, times, outcome = PLAYS[name]
    server = PlayedServer(E)
    async with talking(server, monkeypatch) as client:
        saying(server, *plays)
        with trio.fail_after(5):
            if outcome == "done":
                assert (await client.call_tool("t")).text == "done"
            else:
                with pytest.raises(ConnectionLost, match=outcome):
                    await client.call_tool("t")
        assert server.heard().count(CALL) == times
        saying(server, finish)
        assert (await client.call_tool("t")).text == "done"


async def test_a_server_that_goes_ends_what_it_has_while_others_are_made_elsewhere(
    monkeypatch: MonkeyPatch, nursery: trio.Nursery
) -> None:
    release = trio.Event()

    async def wait(request: Any) -> None:
        await release.wait()
        await finish(request)

    server = PlayedServer(E)
    async with talking(server, monkeypatch) as client:
        saying(server, wait)
        callers = [Caller(nursery, lambda: client.call_tool("t")) for _ in range(5)]
        await trio.testing.wait_all_tasks_blocked()
        peer: Any = server.requests[-1].connection
        await peer.flush(go_away(2**31 - 1))
        await trio.testing.wait_all_tasks_blocked()
        saying(server, finish)
        assert (await client.call_tool("t")).text == "done"
        assert (server.opened, server.closed) == (2, 0)
        await peer.flush(go_away(peer.http.highest_inbound_stream_id))
        release.set()
        for caller in callers:
            await caller.ended.wait()
            assert caller.error is None
        await trio.testing.wait_all_tasks_blocked()
        assert (server.opened, server.closed) == (2, 1)
        assert server.heard().count(CALL) == 6


async def test_all_that_one_connection_carried_ends_with_it(
    monkeypatch: MonkeyPatch, nursery: trio.Nursery
) -> None:
    server = PlayedServer(E, tools_call=hang)
    async with talking(server, monkeypatch) as client:
        callers = [Caller(nursery, lambda: client.call_tool("t")) for _ in range(5)]
        await trio.testing.wait_all_tasks_blocked()
        connection: Any = server.requests[-1].connection
        await trio.aclose_forcefully(connection.stream)
        for caller in callers:
            await caller.ended.wait()
            assert isinstance(caller.error, ConnectionLost)
        assert server.heard().count(CALL) == 5
        server.answers[CALL] = DONE
        await client.call_tool("t")


async def test_what_only_asks_is_asked_again_when_its_connection_dies(monkeypatch: MonkeyPatch) -> None:
    async def once(request: Any) -> None:
        if request.connection.requests > 1:
            await trio.aclose_forcefully(request.connection.stream)
        else:
            await request.result({"tools": [], "resultType": "complete", "ttlMs": 0, "cacheScope": "private"})

    server = PlayedServer(E, tools_list=once)
    async with talking(server, monkeypatch) as client:
        assert await client.list_tools() == []
        assert server.heard() == ["server/discover", "tools/list", "tools/list"]


async def test_a_server_that_takes_nothing_any_more(monkeypatch: MonkeyPatch) -> None:
    """It may say so for a while, or forget to go: others of its kind are asked, and that comes to an end too."""
    server = PlayedServer(E, tools_call=DONE)
    async with talking(server, monkeypatch) as client:
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
        with pytest.raises(ConnectionLost, match="the server takes no more requests on this connection"):
            await client.call_tool("t")
        assert server.opened == 5
