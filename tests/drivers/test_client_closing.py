"""Closing clients: by any task, at any time, in any order, as `Client.aclose` claims."""

from __future__ import annotations

import re
from contextlib import AsyncExitStack
from itertools import permutations
from typing import TYPE_CHECKING

import pytest

from mcp_core import CallTimeout, ConnectionLost
from mcp_core.registry import Server
from tests.harness import either
from tests.harness.wire.client import CallTask, connected, is_closed
from tests.harness.wire.lines import ERAS

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence

    from mcp_trio import Client


pytestmark = pytest.mark.usefixtures("each_driver")


def server() -> Server:
    found = Server("waits")

    @found.tool
    async def wait() -> None:
        """Wait."""
        await either.sleep_forever()

    @found.tool
    def echo(text: str) -> str:
        """Return it."""
        return text

    return found


async def one_after_the_other(clients: Sequence[Client]) -> None:
    for client in clients:
        await client.aclose()


async def each_in_a_task_of_its_own(clients: Sequence[Client]) -> None:
    for client in clients:
        async with either.open_nursery() as nursery:
            nursery.start_soon(client.aclose)


async def all_at_once_and_twice(clients: Sequence[Client]) -> None:
    async with either.open_nursery() as nursery:
        for client in clients:
            nursery.start_soon(client.aclose)
            nursery.start_soon(client.aclose)


async def in_a_scope_that_is_cancelled(clients: Sequence[Client]) -> None:
    for client in clients:
        with either.CancelScope() as scope:
            scope.cancel()
            await client.aclose()


WAYS = [
    one_after_the_other,
    each_in_a_task_of_its_own,
    all_at_once_and_twice,
    in_a_scope_that_is_cancelled,
]


ORDERS = list(permutations(range(3)))


@pytest.mark.parametrize(
    "order",
    [
        pytest.param(order, marks=[pytest.mark.long] * (at % 4 > 0))
        for at, order in enumerate(ORDERS)
    ],
)
@pytest.mark.parametrize("close", WAYS)
@pytest.mark.parametrize("pending", [0, 3])
@pytest.mark.parametrize("version", ERAS)
async def test_closing_nested_clients_in_any_way_takes_no_time(
    order: Sequence[int],
    close: Callable[[Sequence[Client]], Awaitable[None]],
    pending: int,
    version: str,
    nursery: either.Nursery,
) -> None:
    """Three clients are closed in every order and way; those still open work on."""
    start = either.current_time()
    callers: list[CallTask] = []
    async with AsyncExitStack() as blocks:
        clients = [
            await blocks.enter_async_context(either.connect(server(), versions=[version]))
            for _ in range(3)
        ]
        for client in clients:
            callers += [
                CallTask(nursery, lambda c=client: c.call_tool("wait"))  # type: ignore[misc]
                for _ in range(pending)
            ]
        await either.wait_all_tasks_blocked()
        first, *others = (clients[place] for place in order)
        await close([first])
        for other in others:  # the other clients are not affected
            assert (await other.call_tool("echo", {"text": "x"})).text == "x"
        await close(others)
        for client in clients:
            with pytest.raises(ConnectionLost, match="the client was closed"):
                await client.ping()
    for call_task in callers:
        await call_task.ended.wait()
        assert isinstance(call_task.error, ConnectionLost)
    for client in clients:  # after the block
        await client.aclose()
    assert either.current_time() == start


@pytest.mark.parametrize("close", WAYS)
async def test_closing_the_outer_client_keeps_the_exception_of_the_block(
    close: Callable[[Sequence[Client]], Awaitable[None]],
) -> None:
    async def use() -> None:
        async with either.connect(server()) as outer, either.connect(server()) as inner:
            await close([outer])
            await inner.ping()
            raise KeyError("of the block")

    with pytest.raises(KeyError, match="of the block"):
        await use()


async def test_closing_again_waits_for_the_queued_messages(nursery: either.Nursery) -> None:
    async with connected() as (client, wire):
        CallTask(nursery, lambda: client.call_tool("t" * 100_000))  # more than the pipe holds
        await either.wait_all_tasks_blocked()
        closers = [CallTask(nursery, client.aclose) for _ in range(3)]
        await either.wait_all_tasks_blocked()
        assert not any(closer.ended.is_set() for closer in closers)
        assert [message["method"] for message in await wire.receive_all()] == [
            "tools/call",
            "notifications/cancelled",
        ]
        for closer in closers:
            await closer.ended.wait()
            assert closer.error is None


@either.trio_only
async def test_closing_is_not_cancelled_and_takes_a_second_at_most(nursery: either.Nursery) -> None:
    """The peer reads nothing, so only the grace period ends the write of a long call."""
    start = either.current_time()
    async with connected() as (client, wire):
        CallTask(nursery, lambda: client.call_tool("t" * 100_000))
        await either.wait_all_tasks_blocked()
        closers = [CallTask(nursery, client.aclose) for _ in range(2)]
        await either.wait_all_tasks_blocked()
        for closer in closers:
            closer.scope.cancel()
        await either.sleep(0.9)
        assert not any(closer.ended.is_set() for closer in closers)
        for closer in closers:
            await closer.ended.wait()
        assert either.current_time() - start == pytest.approx(1.0)
        assert is_closed(client)
        assert b"\n" not in (
            await wire.stream.receive_some()
        )  # the peer never read, so it has half a message


@either.asyncio_only
async def test_closing_that_is_cancelled_discards_what_is_queued(
    nursery: either.Nursery,
) -> None:
    """Tasks of asyncio have no shield: a cancelled one must not wait for the peer."""
    start = either.current_time()
    async with connected() as (client, wire):
        CallTask(nursery, lambda: client.call_tool("t" * 200_000))
        await either.wait_all_tasks_blocked()
        closer = CallTask(nursery, client.aclose)
        await either.wait_all_tasks_blocked()
        closer.scope.cancel()
        await closer.ended.wait()
        assert closer.scope.cancelled_caught
        assert is_closed(client)
        assert either.current_time() == start
        assert b"\n" not in await wire.stream.receive_some()
        await client.aclose()
        assert either.current_time() == start


async def test_closing_by_another_task_delays_the_end_of_the_block(nursery: either.Nursery) -> None:
    start = either.current_time()
    async with connected() as (client, wire):
        CallTask(nursery, lambda: client.call_tool("t" * 100_000))
        await either.wait_all_tasks_blocked()
        closer = CallTask(nursery, client.aclose)
        await either.wait_all_tasks_blocked()
    assert either.current_time() - start == pytest.approx(1.0)
    await closer.ended.wait()
    assert closer.error is None
    assert is_closed(client)
    await wire.stream.aclose()


# -- Waiting for the end ---------------------------------------------------------------------------


@pytest.mark.parametrize("version", ERAS)
async def test_wait_closed_returns_why_the_server_is_gone(
    version: str, nursery: either.Nursery
) -> None:
    """Three tasks wait for hours; each gets the same error that a later call would raise."""
    async with connected(version) as (client, wire):
        waiters = [CallTask(nursery, client.wait_closed) for _ in range(3)]
        await either.sleep(10_000)  # there is no timeout
        assert not any(waiter.ended.is_set() for waiter in waiters)
        await wire.stream.aclose()
        for waiter in waiters:
            await waiter.ended.wait()
            assert waiter.error is None
            assert isinstance(waiter.result, ConnectionLost)
        with pytest.raises(ConnectionLost, match=f"^{re.escape(str(waiters[0].result))}$"):
            await client.ping()
        again = await client.wait_closed()  # at once
        assert str(again) == str(waiters[0].result)


async def test_wait_closed_returns_that_the_client_was_closed(nursery: either.Nursery) -> None:
    async with either.connect(server()) as client:
        waiter = CallTask(nursery, client.wait_closed)
        await either.wait_all_tasks_blocked()
    await waiter.ended.wait()
    assert "the client was closed" in str(waiter.result)
    assert "the client was closed" in str(await client.wait_closed())


@pytest.mark.parametrize("version", ERAS)
async def test_wait_closed_that_is_cancelled_sends_nothing(
    version: str, nursery: either.Nursery
) -> None:
    async with connected(version) as (client, wire):
        pending = len(client._pending)
        waiter = CallTask(nursery, client.wait_closed)
        await either.wait_all_tasks_blocked()
        waiter.scope.cancel()
        await waiter.ended.wait()
        assert waiter.result is None
        assert len(client._pending) == pending
        await client.aclose()
        assert await wire.receive_all() == []
        await wire.stream.aclose()


@pytest.mark.parametrize("version", ERAS)
async def test_wait_closed_raises_after_its_timeout(version: str) -> None:
    async with connected(version) as (client, _):
        start = either.current_time()
        with pytest.raises(CallTimeout):
            await client.wait_closed(5)
        assert either.current_time() - start == pytest.approx(5)
        assert not is_closed(client)


async def test_wait_closed_ends_when_the_server_does_not_answer_a_ping(
    nursery: either.Nursery,
) -> None:
    async with connected(keep_alive=5) as (client, _):
        start = either.current_time()
        lost = await client.wait_closed()
        assert isinstance(lost, ConnectionLost)
        assert either.current_time() - start <= 30
