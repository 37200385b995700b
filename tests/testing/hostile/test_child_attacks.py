"""Hostile child processes against our clients."""

from __future__ import annotations

import asyncio
from typing import Final

import pytest
import trio

import mcp_asyncio_shim
from mcp_core import McpTrioError
from mcp_trio import Grace, connect_stdio
from mcp_trio.testing import hostile
from tests.harness.jsonrpc import D
from tests.harness.world.waiting import PATIENCE
from tests.testing.hostile.memory import MIB, BoundedMemory

TIMEOUT: Final = 0.3


def expected(attack: hostile.Attack, outcome: str) -> bool:
    if attack.expects.startswith("Fail"):
        return ":" in outcome
    if attack.name.startswith("long-response"):
        return len(outcome) == 300_000
    return outcome == "done"


@pytest.mark.parametrize("attack", hostile.CHILD_ATTACKS, ids=str)
async def test_client_survives_hostile_child(attack: hostile.Attack, no_leaks: None) -> None:
    grace = Grace(stdin=0.1, terminate=0.1)
    with trio.fail_after(PATIENCE), BoundedMemory(96 * MIB):
        try:
            async with connect_stdio(
                hostile.hostile_command(attack), stderr="discard", versions=[D], grace=grace
            ) as client:
                outcome = (await client.call_tool("attack", max_timeout=TIMEOUT)).text
        except McpTrioError as exc:
            outcome = f"{type(exc).__name__}: {exc}"
    assert expected(attack, outcome), outcome


@pytest.mark.parametrize("attack", hostile.CHILD_ATTACKS, ids=str)
def test_asyncio_client_survives_hostile_child(attack: hostile.Attack) -> None:
    """Each attack ends in time and within 96 MiB, with a result or one of our errors."""

    async def main() -> str:
        try:
            async with mcp_asyncio_shim.connect(
                hostile.hostile_command(attack), versions=[D]
            ) as client:
                return str((await client.call_tool("attack", max_timeout=TIMEOUT)).text)
        except McpTrioError as exc:
            return f"{type(exc).__name__}: {exc}"

    async def bounded() -> str:
        return await asyncio.wait_for(main(), PATIENCE)

    with BoundedMemory(96 * MIB):
        outcome = asyncio.run(bounded())
    assert expected(attack, outcome), outcome
