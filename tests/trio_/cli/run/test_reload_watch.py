"""When `mcp-trio run --reload` starts the server again. `test_reload.py` plays the command."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest
import trio

from mcp_core.adapters import ServedSource
from mcp_core.runtime import SHUTDOWN_GRACE
from mcp_trio.cli.run._reload import _HTTP_GRACE, Watch
from mcp_trio.http_server._driver import _CANCELLED_GRACE
from mcp_trio.http_server._serve import _CLOSE_TIMEOUT

if TYPE_CHECKING:
    from pathlib import Path

    from trio.testing import MockClock


@pytest.mark.parametrize(
    ("late", "again"),
    [
        (0.04, False),  # an editor writes several files, or one in several steps
        (0.2, True),
    ],
)
async def test_watch_takes_changes_within_a_moment_for_one(
    late: float, again: bool, tmp_path: Path, autojump_clock: MockClock
) -> None:
    """Editors write in several steps; a later change must still cause another restart."""
    first, second = tmp_path / "a.py", tmp_path / "b.py"
    for path in (first, second):
        path.touch()
        os.utime(path, (1, 1))
    watch = Watch(ServedSource.from_file(str(first)), tmp_path / "report.json")
    watch.begin()
    watch.include_neighbours()
    begin = trio.current_time()

    async def edit() -> None:
        await trio.sleep(0.49)
        os.utime(first, (2, 2))
        await trio.sleep_until(begin + 0.5 + late)
        os.utime(second, (2, 2))

    async with trio.open_nursery() as nursery:
        nursery.start_soon(edit)
        assert await watch.changed() == first
        assert trio.current_time() - begin == pytest.approx(0.55)
        watch.begin()  # the next server reads the files
    assert watch.find_change() == (second if again else None)


def test_http_server_has_the_time_to_end_in_order() -> None:
    """Its handlers have the usual time, and the server's lifespan has a second. The user waits."""
    lifespan = 1.0
    assert _HTTP_GRACE.stdin == SHUTDOWN_GRACE + _CANCELLED_GRACE + _CLOSE_TIMEOUT + lifespan
    assert 0 < _HTTP_GRACE.terminate <= 1
