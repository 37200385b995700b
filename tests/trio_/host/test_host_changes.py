"""The stream of changes of a host, and the begin and the end of its block.

The servers are played in memory, and the clock is trio's `MockClock`.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import pytest
import trio
import trio.testing

from mcp_core import ConnectFailed
from mcp_core.host import ServerUnavailable
from mcp_trio.host._host import Host
from tests.drivers.played_host import PlayedServer, PlayedSource, tool
from tests.harness.jsonrpc import D

if TYPE_CHECKING:
    from collections.abc import Callable

    from mcp_core.runtime.host import HostChange

REFUSED = ConnectFailed("connection refused")


async def calls(host: Host, error: type[BaseException]) -> None:
    with pytest.raises(error):
        await host.call("mcp__played__look")


# -- Changes -------------------------------------------------------------------------------------


async def test_changes_have_every_transition_in_order(autojump_clock: trio.abc.Clock) -> None:
    """A refused attempt, a crash and the end of the host, each with attempt number and time."""
    source = PlayedSource(failures=[REFUSED, None])
    found: list[HostChange] = []
    async with Host({}) as host, trio.open_nursery() as nursery:
        changes = host.changes()

        async def listen() -> None:
            async with changes:
                found.extend([each async for each in changes if each.kind == "status"])

        nursery.start_soon(listen)
        host.add_source(source)
        await host.wait_settled()
        await trio.sleep(1)
        await host.wait_settled()
        await source.server.die()
        await trio.sleep(5)
        host._close()  # the end of the block, for which this nursery would wait
    assert [(each.status.state, each.status.attempt) for each in found] == [
        *(("connecting", 1), ("failed", 1), ("connecting", 2), ("ready", 2)),
        *(("failed", 2), ("connecting", 3), ("ready", 3), ("disabled", 3)),
    ]
    assert found[1].status.reason == "connection refused"
    assert found[4].status.reason
    assert {each.server for each in found} == {"played"}
    times = [each.status.since for each in found]
    assert times == sorted(times)


async def test_changes_that_are_not_read_lose_the_oldest(autojump_clock: trio.abc.Clock) -> None:
    source = PlayedSource()
    async with Host({}) as host, host.changes() as changes:
        host.add_source(source)
        await host.wait_settled()
        for _ in range(1_100):
            host.restart("played")
        assert changes.is_incomplete
        assert len(changes._unread) == 1_000
        last = host.status()["played"]
        while (await anext(changes)).status != last:
            pass


async def test_changes_are_for_several_tasks_and_end_with_the_host(
    autojump_clock: trio.abc.Clock,
) -> None:
    """A loop over the changes needs no cancellation: it just ends."""
    ended: list[str] = []

    async def listen(host: Host, name: str) -> None:
        async with host.changes() as changes:
            async for _ in changes:
                pass
        ended.append(name)

    async with trio.open_nursery() as nursery, Host({}) as host:
        nursery.start_soon(listen, host, "a")
        nursery.start_soon(listen, host, "b")
        await trio.testing.wait_all_tasks_blocked()
        assert ended == []
    assert sorted(ended) == ["a", "b"]


async def test_changes_read_by_two_tasks_reach_one_of_them(autojump_clock: trio.abc.Clock) -> None:
    found: list[HostChange] = []
    async with Host({}) as host, trio.open_nursery() as nursery:
        async with host.changes() as changes:

            async def take() -> None:
                found.append(await anext(changes))

            nursery.start_soon(take)
            nursery.start_soon(take)
            await trio.testing.wait_all_tasks_blocked()
            host.add_source(PlayedSource())
            await host.wait_settled()
        assert [each.status.state for each in found] == ["connecting", "ready"]


async def test_changes_left_twice_do_no_harm(autojump_clock: trio.abc.Clock) -> None:
    async with Host({}) as host, host.changes() as changes, changes:
        pass


# -- The block -----------------------------------------------------------------------------------


async def test_exception_of_the_block_passes_unchanged(autojump_clock: trio.abc.Clock) -> None:
    """The host's own nursery must not wrap it in another group."""

    async def fail(source: PlayedSource, error: Exception) -> None:
        async with Host({}) as host:
            host.add_source(source)
            await host.wait_settled()
            raise error

    error = ValueError("a")
    with pytest.raises(ValueError, match="a") as caught:
        await fail(PlayedSource(), error)
    assert caught.value is error
    with pytest.raises(ExceptionGroup, match="several") as group:
        await fail(
            PlayedSource(failures=[REFUSED] * 10),
            ExceptionGroup("several", [error, KeyError("b")]),
        )
    assert group.value.exceptions[0] is error


@pytest.mark.parametrize("when", ["connecting", "ready", "waiting for a retry"])
async def test_cancelled_block_closes_every_server(
    when: str, autojump_clock: trio.abc.Clock
) -> None:
    source = PlayedSource(failures=[REFUSED] * 5 if when == "waiting for a retry" else [])
    source.connecting_takes = 100.0 if when == "connecting" else 0.0
    source.closing_takes = 1.0
    host = Host([source], wait=None)
    with trio.move_on_after(3) as scope:
        async with host:
            await trio.sleep_forever()
    assert scope.cancelled_caught
    assert len(source.closed) == len(source.attempts) > 0


async def test_servers_are_closed_side_by_side(autojump_clock: trio.abc.Clock) -> None:
    sources = [PlayedSource(f"s{number}") for number in range(10)]
    async with Host({}) as host:
        for each in sources:
            each.closing_takes = 3.0
            host.add_source(each)
        await host.wait_settled()
        before = trio.current_time()
    assert trio.current_time() - before < 4
    assert [len(each.closed) for each in sources] == [1] * 10


async def test_host_is_for_the_time_of_its_block(autojump_clock: trio.abc.Clock) -> None:
    """Before and after it, each method says why it can't be used; a second block is refused."""
    host = Host({})
    source = PlayedSource()
    uses: list[Callable[[], object]] = [
        host.status,
        host.changes,
        host.tools,
        host.prompts,
        host.resources,
        host.collisions,
        partial(host.add_source, source),
        partial(host.restart, "played"),
        partial(host.client, "played"),
    ]
    for use in uses:
        with pytest.raises(RuntimeError, match="the host is not open"):
            use()
    with pytest.raises(RuntimeError, match="the host is not open"):
        await host.call("x")
    with pytest.raises(RuntimeError, match="the host is not open"):
        await host.pending()
    assert repr(host) == "<Host, not open>"
    async with host:
        host.add_source(source)
        await host.wait_settled()
        assert repr(host) == "<Host, 1 of 1 servers ready>"
    for use in uses:
        with pytest.raises(RuntimeError, match="the host is closed"):
            use()
    for function in host.wait_settled, partial(host.call, "x"), partial(host.remove, "played"):
        with pytest.raises(RuntimeError, match="the host is closed"):
            await function()
    assert repr(host) == "<Host, 0 of 1 servers ready>"
    with pytest.raises(RuntimeError, match="a host is for one block"):
        async with host:
            pass


async def test_call_that_waits_when_the_host_closes_ends(autojump_clock: trio.abc.Clock) -> None:
    source = PlayedSource()
    async with trio.open_nursery() as nursery, Host({}) as host:
        host.add_source(source)
        await host.wait_settled()
        source.connecting_takes = 100.0
        host.restart("played")
        nursery.start_soon(calls, host, ServerUnavailable)
        await trio.sleep(1)


async def test_question_that_is_open_when_the_host_closes_is_cancelled(
    autojump_clock: trio.abc.Clock,
) -> None:
    async def ask(*_: object) -> bool:
        await trio.sleep_forever()
        raise AssertionError

    server = PlayedServer(tool("look"), version=D)
    async with Host({}, on_approve_definitions=ask) as host:
        host.add_source(PlayedSource(server=server))
        await host.wait_settled()
        await server.change(tool("look", "Does something else."))
        await trio.sleep(2)
        assert list(await host.pending()) == ["played"]
