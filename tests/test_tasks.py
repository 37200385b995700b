"""Tools that run as tasks: the same play over each transport, with both drivers."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
import trio

from tests.asyncio_shim.conftest import _asyncio_has_nothing_to_complain_of  # noqa: F401
from tests.harness.world import loop
from tests.task_play.lab import make_lab
from tests.task_play.scenes import play
from tests.task_play.wires import ASYNCIO_WIRES, PROCESS_WIRES, WIRES, D, E

if TYPE_CHECKING:
    from tests.task_play.wires import Wire

pytestmark = pytest.mark.parametrize("version", [D, E])


async def _play(wire: Wire, version: str) -> None:
    async with wire(version, make_lab()) as client:
        await play(client)


@pytest.mark.parametrize("wire", WIRES.values(), ids=WIRES)
def test_tasks_over_each_transport_on_trio(wire: Wire, version: str) -> None:
    trio.run(_play, wire, version)


@pytest.mark.parametrize("wire", ASYNCIO_WIRES.values(), ids=ASYNCIO_WIRES)
def test_tasks_over_each_transport_on_asyncio(wire: Wire, version: str) -> None:
    loop.run(_play(wire, version))


@pytest.mark.process
@pytest.mark.parametrize("wire", PROCESS_WIRES.values(), ids=PROCESS_WIRES)
def test_tasks_of_a_process_over_stdio(wire: Wire, version: str) -> None:
    trio.run(_play, wire, version)
