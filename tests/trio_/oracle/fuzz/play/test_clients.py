"""The clients of a case: whose turn it is, what is in the way, and which sessions are closed."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
import trio

from mcp_trio.oracle.fuzz.play._clients import Clients


class SessionOfClient:
    """A session that counts how often it is closed. Its successors have a higher number."""

    def __init__(self, number: int = 0, *, one_client: bool = False) -> None:
        self.number = number
        self.one_client = one_client
        self.may_be_busy = False
        self.spent = False
        self.open: dict[int, Any] = {}
        self.closed = 0

    async def beside(self) -> SessionOfClient | None:
        return None if self.one_client else SessionOfClient(100)

    async def successor(self) -> SessionOfClient:
        return SessionOfClient(self.number + 1)

    async def aclose(self) -> None:
        await trio.lowlevel.checkpoint()
        self.closed += 1


async def two() -> Clients:
    clients = Clients(SessionOfClient())
    assert await clients.begin_second()
    return clients


async def test_second_client_is_begun_if_the_target_can_have_one() -> None:
    clients = Clients(SessionOfClient(one_client=True))
    assert not await clients.begin_second()
    assert [each.number for each in clients] == [0]
    assert [each.number for each in await two()] == [0, 100]


async def test_turn_of_the_other_client_ends_with_what_it_does() -> None:
    """Also if that fails."""
    clients = await two()

    async def act(found: list[int]) -> int:
        found.append(clients.session.number)
        found.append(clients.other.number)
        return len(found)

    async def fail() -> None:
        raise ZeroDivisionError

    found: list[int] = []
    assert await clients.as_other(act, found) == 2
    assert found == [100, 0]
    with pytest.raises(ZeroDivisionError):
        await clients.as_other(fail)
    assert (clients.session.number, clients.other.number) == (0, 100)


async def test_act_for_each_client_is_done_in_its_turn() -> None:
    found: list[int] = []

    async def act(sign: int) -> None:
        found.append(sign * clients.session.number)

    clients = Clients(SessionOfClient(1))
    await clients.for_each(act, -1)
    clients = await two()
    await clients.for_each(act, -1)
    assert found == [-1, 0, -100]


CALLS = [
    ({}, False),
    ({"answer": None, "is_bounded": False}, True),
    ({"answer": None, "is_bounded": True}, False),
    ({"answer": {}, "is_bounded": False}, False),
]


@pytest.mark.parametrize(("call", "busy"), CALLS)
async def test_call_of_the_other_client_may_be_in_the_way(call: dict[str, Any], busy: bool) -> None:
    """One that has no response, and may take any time. Those of the current client are its own."""
    clients = await two()
    if call:
        done = SimpleNamespace(answer={}, is_bounded=False)
        clients.other.open = {1: done, 2: SimpleNamespace(**call)}
    assert clients.may_be_busy() is busy
    clients.session, clients.other = clients.other, clients.session
    assert not clients.may_be_busy()


@pytest.mark.parametrize("number", [0, 1])
async def test_cancelled_call_of_either_client_may_be_in_the_way(number: int) -> None:
    clients = await two()
    [*clients][number].may_be_busy = True
    assert clients.may_be_busy()
    alone = Clients(SessionOfClient())
    assert not alone.may_be_busy()
    alone.session.may_be_busy = True
    assert alone.may_be_busy()


async def test_successor_closes_the_session_before_it_but_not_the_first_one() -> None:
    """The first one is the caller's to close."""
    clients = Clients(SessionOfClient())
    sessions = [clients.session]
    for _ in range(2):
        await clients.succeed()
        sessions.append(clients.session)
    assert [each.number for each in sessions] == [0, 1, 2]
    assert [each.closed for each in sessions] == [0, 1, 0]
    assert not clients.first.spent
    await clients.aclose()
    assert [each.closed for each in sessions] == [0, 1, 1]
    assert clients.first.spent


async def test_end_closes_the_second_client_and_leaves_the_first_session() -> None:
    clients = await two()
    await clients.aclose()
    assert (clients.session.closed, clients.other.closed) == (0, 1)
    assert not clients.first.spent
    await Clients(SessionOfClient()).aclose()  # has no second one


async def test_end_that_is_cancelled_closes_all_sessions() -> None:
    clients = await two()
    await clients.succeed()
    with trio.CancelScope() as scope:
        scope.cancel()
        await clients.aclose()
    assert (clients.session.closed, clients.other.closed) == (1, 1)
