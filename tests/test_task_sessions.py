"""Tasks that belong to a session end with it, in each store and with both drivers (2025-11-25)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import anyio
import pytest

from mcp_core.auth import ApiKeys
from mcp_core.http import HttpLimits
from mcp_core.tasks import TaskStoreError
from tests.asyncio_shim.conftest import _asyncio_has_nothing_to_complain_of  # noqa: F401
from tests.harness.world.waiting import patience
from tests.levels import long
from tests.task_play.served_lab import (
    DRIVERS,
    STORES,
    ServedLab,
    player,
    run_on_virtual_time,
)
from tests.task_play.wires import D, RpcError

if TYPE_CHECKING:
    from pathlib import Path

    from tests.task_play.served_lab import Play

KEY = "ann-0123456789abcdef"


@pytest.fixture(params=[(driver, store) for driver in DRIVERS for store in STORES], ids="-".join)
def play(request: pytest.FixtureRequest, tmp_path: Path) -> Play:
    """Return a function that plays a scene on a stage with limits."""
    driver, store = request.param
    return player(driver, store, tmp_path)


async def until_stored(stage: ServedLab, count: int) -> None:
    with anyio.fail_after(patience()):
        while True:
            if stage.count_stored() == count:
                return
            await anyio.sleep(0.001)


@pytest.mark.parametrize("count", [1, 3, long(7)])
@pytest.mark.requirement("TSK-24")
def test_deleted_session_removes_its_tasks_and_no_others(
    play: Play, count: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Those that run and those that have ended, also on several pages."""
    monkeypatch.setattr("mcp_core.runtime.tasks._service._REMOVED_AT_ONCE", 2)

    async def scene(stage: ServedLab) -> None:
        first, second = await stage.connect(D), await stage.connect(D)
        for _ in range(count):
            await first.create("hold")
            await first.outcome(await first.create("give", size=10))
        kept = [await second.create("hold"), await second.create("give", size=10)]
        assert stage.count_stored() == 2 * count + 2
        await first.delete()
        await until_stored(stage, 2)
        for task_id in kept:
            assert (await second.state(task_id))["taskId"] == task_id
        await second.until(kept[1], "completed")
        await until_cancelled(stage, count)
        # Their places are free, and so are their bytes.
        third = await stage.connect(D)
        for _ in range(2 * count):
            await third.create("hold")

    play(scene, total=2 * count + 2)


async def until_cancelled(stage: ServedLab, count: int) -> None:
    with anyio.fail_after(patience()):
        while True:
            if stage.ended.count("hold") >= count:
                return
            await anyio.sleep(0.001)


@pytest.mark.parametrize("driver", DRIVERS)
def test_expired_session_removes_its_tasks(driver: str, tmp_path: Path) -> None:
    async def scene(stage: ServedLab) -> None:
        client = await stage.connect(D)
        await client.create("hold")
        await client.create("give", size=10)
        await anyio.sleep(8)
        assert stage.count_stored() == 2  # its standalone stream keeps it in use
        client.disconnect()
        await until_stored(stage, 0)
        await until_cancelled(stage, 1)

    run = run_on_virtual_time if driver == "trio" else None
    player(driver, "memory", tmp_path, run)(scene, options={"limits": HttpLimits(idle=5.0)})


def test_tasks_of_a_user_stay_when_the_session_ends(play: Play) -> None:
    async def scene(stage: ServedLab) -> None:
        first, second = await stage.connect(D, key=KEY), await stage.connect(D, key=KEY)
        held = await first.create("hold")
        given = await first.create("give", size=10)
        await first.delete()
        with pytest.raises(RpcError, match="no such task"):
            await second.state("0" * 32)
        assert (await second.state(held))["status"] == "working"
        assert await second.text(given) == "x" * 10
        assert stage.ended == ["give"]

    play(scene, auth=ApiKeys({"ann": KEY}))


def test_tasks_of_a_chosen_owner_stay_when_the_session_ends(play: Play) -> None:
    async def scene(stage: ServedLab) -> None:
        first, second = await stage.connect(D), await stage.connect(D)
        held = await first.create("hold")
        await first.delete()
        await anyio.wait_all_tasks_blocked()
        assert (await second.state(held))["status"] == "working"

    play(scene, owner=lambda request, owner: "us")


@pytest.mark.parametrize("driver", DRIVERS)
def test_file_has_no_task_of_a_session_after_the_shutdown(driver: str, tmp_path: Path) -> None:
    """No client could find it: the next server has other sessions."""

    async def scene(stage: ServedLab) -> None:
        client = await stage.connect(D)
        await client.create("hold")
        await client.outcome(await client.create("give", size=10))

    async def look(stage: ServedLab) -> None:
        assert stage.count_stored() == 0

    player(driver, "file", tmp_path)(scene)
    player(driver, "file", tmp_path)(look)


def test_store_that_fails_when_a_session_ends_is_tried_again(
    play: Play, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """The session's task is removed on the third try, after two errors from the store."""
    monkeypatch.setattr("mcp_core.runtime.tasks._service._REMOVE_AGAIN", 0.001)

    async def scene(stage: ServedLab) -> None:
        client = await stage.connect(D)
        await client.create("hold")
        page: Any = stage.store.page
        left = [2]

        async def failing_page(*args: Any) -> Any:
            if left[0]:
                left[0] -= 1
                raise TaskStoreError("the disk is on fire")
            return await page(*args)

        monkeypatch.setattr(stage.store, "page", failing_page)
        await client.delete()
        await until_stored(stage, 0)
        assert not left[0]

    play(scene)
    assert "on fire" in caplog.text


def test_task_that_is_created_while_its_session_ends_is_removed(
    play: Play, monkeypatch: pytest.MonkeyPatch
) -> None:
    """DELETE overtakes a slow store: the task must not outlive its session, nor its handler run."""

    async def scene(stage: ServedLab) -> None:
        client = await stage.connect(D)
        create: Any = stage.store.create
        entered, go = anyio.Event(), anyio.Event()

        async def slow_create(*args: Any, **limits: Any) -> Any:
            entered.set()
            await go.wait()
            return await create(*args, **limits)

        monkeypatch.setattr(stage.store, "create", slow_create)
        monkeypatch.setattr(type(stage.store), "immediate", False)
        message = client.message("tools/call", {"name": "hold", "task": {}})
        client.begin("POST", message)
        with anyio.fail_after(patience()):
            await entered.wait()
        await client.delete()
        go.set()
        await until_stored(stage, 0)
        await anyio.wait_all_tasks_blocked()
        assert stage.count_stored() == 0
        assert stage.runs == []

    play(scene)
