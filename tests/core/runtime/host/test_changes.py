"""The stream of changes of a host: its order, its limit and its end."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
import trio
import trio.testing

from mcp_core.host import ServerStatus
from mcp_core.registry import Server
from mcp_core.runtime.host import HostChange, HostChanges
from tests.core.runtime.host.world import FakeRuntime, FakeSource, opened
from tests.harness.world.waiting import PATIENCE

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

STATUS = ServerStatus(state="ready", since=0.0)


def change(number: int) -> HostChange:
    return HostChange(str(number), "status", STATUS)


@pytest.fixture
async def changes(nursery: trio.Nursery) -> AsyncIterator[HostChanges]:
    closed: list[HostChanges] = []
    stream = HostChanges(FakeRuntime(nursery), closed.append)
    async with stream as entered:
        assert entered is stream
        yield stream
    assert closed == [stream]


async def read(changes: HostChanges, into: list[str]) -> None:
    into.extend([change.server async for change in changes])


async def test_changes_come_in_their_order_until_the_end(changes: HostChanges) -> None:
    for number in range(3):
        changes.add(change(number))
    assert repr(changes) == "<HostChanges, 3 unread>"
    changes.end()
    found: list[str] = []
    await read(changes, found)
    assert found == ["0", "1", "2"]
    assert not changes.is_incomplete


async def test_change_wakes_the_task_that_waits(
    changes: HostChanges, nursery: trio.Nursery
) -> None:
    found: list[str] = []
    nursery.start_soon(read, changes, found)
    for number in range(3):
        await trio.testing.wait_all_tasks_blocked()
        changes.add(change(number))
    await trio.testing.wait_all_tasks_blocked()
    assert found == []  # the list is made at the end
    changes.end()
    await trio.testing.wait_all_tasks_blocked()
    assert found == ["0", "1", "2"]


async def test_changes_for_several_tasks_come_once_each(
    changes: HostChanges, nursery: trio.Nursery
) -> None:
    """Three tasks share one stream as a queue of work; its end ends all of their loops."""
    found: list[str] = []
    ended: list[None] = []

    async def loop() -> None:
        await read(changes, found)
        ended.append(None)

    for _ in range(3):
        nursery.start_soon(loop)
    for number in range(10):
        await trio.testing.wait_all_tasks_blocked()
        changes.add(change(number))
    await trio.testing.wait_all_tasks_blocked()
    changes.end()
    await trio.testing.wait_all_tasks_blocked()
    assert len(ended) == 3
    assert sorted(found) == [str(number) for number in range(10)]


@pytest.mark.parametrize(("count", "is_incomplete"), [(1_000, False), (1_001, True), (5_000, True)])
async def test_changes_above_a_thousand_replace_the_oldest(
    count: int, is_incomplete: bool, changes: HostChanges
) -> None:
    for number in range(count):
        changes.add(change(number))
    changes.end()
    assert changes.is_incomplete is is_incomplete
    found: list[str] = []
    await read(changes, found)
    assert found == [str(number) for number in range(count)][-1_000:]


async def test_loop_of_another_task_ends_with_the_block(nursery: trio.Nursery) -> None:
    found: list[str] = []
    ended = trio.Event()

    async def loop() -> None:
        await read(stream, found)
        ended.set()

    async with HostChanges(FakeRuntime(nursery), lambda _: None) as stream:
        nursery.start_soon(loop)
        await trio.testing.wait_all_tasks_blocked()
        stream.add(change(1))
    with trio.fail_after(PATIENCE):
        await ended.wait()
    assert found == ["1"]


# -- In a host -------------------------------------------------------------------------------------


def greeter() -> Server:
    server = Server("a")

    @server.tool
    def greet() -> str:
        """Greet."""
        return "hello"

    return server


async def test_host_reports_states_and_lists(autojump_clock: trio.testing.MockClock) -> None:
    """The whole life of one server, from its connection to its removal, in this order."""
    async with opened([]) as (host, _), host.changes() as changes:
        host.add_source(FakeSource("a", greeter(), needs_pins=False))
        await host.wait_settled()
        await host.remove("a")
        host._close()
        found = [(each.server, each.kind, each.status.state) async for each in changes]
    assert found == [
        ("a", "status", "connecting"),
        ("a", "status", "ready"),
        ("a", "tools", "ready"),
        ("a", "prompts", "ready"),
        ("a", "resources", "ready"),
        ("a", "resource templates", "ready"),
        ("a", "approval", "ready"),
        ("a", "status", "disabled"),
        ("a", "removed", "disabled"),
    ]


async def test_list_that_changes_is_reported(autojump_clock: trio.testing.MockClock) -> None:
    source = FakeSource("a", greeter(), needs_pins=False)
    async with opened([source]) as (host, _), host.changes() as changes:

        @source.server.tool
        def leave() -> str:
            """Leave."""
            return "bye"

        async for change in changes:
            assert (change.server, change.status.state) == ("a", "ready")
            if change.kind == "tools":
                break
        assert [each.name for each in host.tools()] == ["mcp__a__greet", "mcp__a__leave"]


async def test_stream_that_was_left_gets_no_changes(
    autojump_clock: trio.testing.MockClock,
) -> None:
    async with opened([]) as (host, _):
        async with host.changes() as left, host.changes() as other:
            pass
        async with host.changes() as changes:
            host.add_source(FakeSource("a", greeter()))
            assert [repr(each) for each in (left, other, changes)] == [
                "<HostChanges, 0 unread>",
                "<HostChanges, 0 unread>",
                "<HostChanges, 1 unread>",
            ]
