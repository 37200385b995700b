"""Tools that run as tasks: the same play over each transport, with both drivers.

A scene over HTTP takes twice the time of one over a pipe. So the default run plays there what could
differ between transports, and all scenes over the others.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
import trio

from tests.asyncio_shim.conftest import _asyncio_has_nothing_to_complain_of  # noqa: F401
from tests.harness.world import loop
from tests.levels import long
from tests.task_play.lab import make_lab
from tests.task_play.scenes import SCENES, SCENES_OF_A_TRANSPORT, play
from tests.task_play.wires import ASYNCIO_WIRES, PROCESS_WIRES, WIRES, D, E

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from tests.task_play.scenes import Scene
    from tests.task_play.wires import Wire

pytestmark = pytest.mark.parametrize("version", [D, E])


COSTLY = {"HTTP/1.1", "HTTP/2", "ASGI"}


def _rows(wires: Mapping[str, Wire]) -> list[Any]:
    usual = [
        pytest.param(wire, SCENES_OF_A_TRANSPORT if name in COSTLY else SCENES, id=name)
        for name, wire in wires.items()
    ]
    return usual + [long(wires[name], SCENES) for name in wires if name in COSTLY]


async def _play(wire: Wire, scenes: Sequence[Scene], version: str) -> None:
    async with wire(version, make_lab()) as client:
        await play(client, scenes)


@pytest.mark.parametrize(("wire", "scenes"), _rows(WIRES))
def test_tasks_over_each_transport_on_trio(
    wire: Wire, scenes: Sequence[Scene], version: str
) -> None:
    trio.run(_play, wire, scenes, version)


@pytest.mark.parametrize(("wire", "scenes"), _rows(ASYNCIO_WIRES))
def test_tasks_over_each_transport_on_asyncio(
    wire: Wire, scenes: Sequence[Scene], version: str
) -> None:
    loop.run(_play(wire, scenes, version))


@pytest.mark.process
@pytest.mark.parametrize("wire", PROCESS_WIRES.values(), ids=PROCESS_WIRES)
def test_tasks_of_a_process_over_stdio(wire: Wire, version: str) -> None:
    trio.run(_play, wire, SCENES, version)
