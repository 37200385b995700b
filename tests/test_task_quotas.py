"""Quotas of tasks: places and bytes of a principal or an address. In each store, both drivers."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any, Final

import anyio
import pytest
import trio
from trio.testing import MockClock

from mcp_core.auth import Grant, OAuthResourceServer
from mcp_core.protocol.jsonrpc._body import estimate_memory
from mcp_core.runtime.tasks import MemoryTaskStore
from mcp_core.tasks import TaskLimits
from mcp_core.tasks._record import quota_key
from tests.asyncio_shim.conftest import _asyncio_has_nothing_to_complain_of  # noqa: F401
from tests.core.tasks.runtimes import run_trio
from tests.core.tasks.store_contract import new_record
from tests.harness.world.waiting import patience
from tests.task_play.served_lab import (
    DRIVERS,
    STORES,
    ServedLab,
    player,
    run_on_virtual_time,
)
from tests.task_play.wires import WIRES, D, E, RpcError

if TYPE_CHECKING:
    from pathlib import Path

    from tests.task_play.served_lab import Play
    from tests.task_play.wires import WireClient

RESOURCE: Final = "https://lab.example.com/mcp"
ISSUERS: Final = ["https://as.example.com"]
HERE: Final = "203.0.113.5"
THERE: Final = "198.51.100.7"


@pytest.fixture(params=[(driver, store) for driver in DRIVERS for store in STORES], ids="-".join)
def play(request: pytest.FixtureRequest, tmp_path: Path) -> Play:
    """Return a function that plays a scene on a stage with limits."""
    driver, store = request.param
    return player(driver, store, tmp_path)


async def fill(client: WireClient, tool: str = "hold", **arguments: Any) -> list[str]:
    """Create tasks until the server refuses one, and return the ids of those that it made."""
    ids: list[str] = []
    for _ in range(200):
        try:
            ids.append(await client.create(tool, **arguments))
        except RpcError as exc:
            if exc.code != (429 if client.version == E else -32000):
                raise
            return ids
    raise AssertionError("no task was refused")


async def refused(client: WireClient, match: str, tool: str = "hold", **arguments: Any) -> None:
    with pytest.raises(RpcError, match=match) as caught:
        await client.create(tool, **arguments)
    assert caught.value.code == (429 if client.version == E else -32000)


versions = pytest.mark.parametrize("version", [D, E])


# -- Places ----------------------------------------------------------------------------------------


@versions
@pytest.mark.requirement("TSK-25")
def test_user_with_many_clients_has_the_places_of_one(play: Play, version: str) -> None:
    """The quota counts by subject: the OAuth client id and the address make no difference."""
    grants = {f"ann{number}": Grant("ann", client_id=str(number)) for number in range(9)}
    grants["bob"] = Grant("bob", client_id="0")
    auth = OAuthResourceServer(RESOURCE, ISSUERS, grants.get)

    async def scene(stage: ServedLab) -> None:
        for number in range(5):
            client = await stage.connect(version, address=HERE, key=f"ann{number}")
            await client.create("hold")
        for number in (0, 8):
            client = await stage.connect(version, address=THERE, key=f"ann{number}")
            await refused(client, "you have 5 tasks already, which is the limit")
        assert stage.runs == ["hold"] * 5  # the handler did not run
        # From the same address as the first ones.
        bob = await stage.connect(version, address=HERE, key="bob")
        assert len(await fill(bob)) == 5

    play(scene, auth=auth, per_principal=5)


@versions
@pytest.mark.parametrize(
    ("first", "same", "other"),
    [(HERE, HERE, THERE), ("2001:db8::1", "2001:db8::2", "2001:db8:0:1::1")],
    ids=["IPv4", "IPv6"],
)
def test_address_has_a_quarter_of_the_places(
    play: Play, version: str, first: str, same: str, other: str
) -> None:
    """Without authorization. All sessions of an address count together."""

    async def scene(stage: ServedLab) -> None:
        ids = await fill(await stage.connect(version, address=first))
        assert len(ids) == 8
        await refused(await stage.connect(version, address=same), "you have 8 tasks already")
        assert len(await fill(await stage.connect(version, address=other))) == 8

    play(scene, total=32, per_principal=3)


@versions
def test_clients_of_a_trusted_proxy_have_a_quota_each(play: Play, version: str) -> None:
    async def scene(stage: ServedLab) -> None:
        for client in (HERE, THERE):
            behind = await stage.connect(version, address="10.0.0.1", forwarded=client)
            assert len(await fill(behind)) == 4
        # What another one says about itself counts for nothing.
        for claimed in ("192.0.2.1", "192.0.2.2"):
            liar = await stage.connect(version, address="10.0.0.9", forwarded=claimed)
            assert len(await fill(liar)) == (4 if claimed == "192.0.2.1" else 0)

    play(scene, total=16, options={"trusted_proxies": ["10.0.0.1"]})


@versions
def test_all_places_are_bounded_by_the_total(play: Play, version: str) -> None:
    """Clients from many addresses, and one whose address is unknown."""

    async def scene(stage: ServedLab) -> None:
        for number in range(4):
            client = await stage.connect(version, address=f"192.0.2.{number}")
            assert len(await fill(client)) == 4
        for address in ("192.0.2.77", ""):
            client = await stage.connect(version, address=address)
            await refused(client, "the server has 16 tasks already, which is the limit")

    play(scene, total=16)


@versions
def test_client_without_an_address_may_use_all(play: Play, version: str) -> None:
    async def scene(stage: ServedLab) -> None:
        assert len(await fill(await stage.connect(version))) == 16

    play(scene, total=16, per_principal=3)


@pytest.mark.parametrize(
    ("count", "addresses"),
    [
        (2_000, 1),
        (2_000, 40),
        pytest.param(1_000_000, 1, marks=[pytest.mark.slow, pytest.mark.timeout(900)]),
        pytest.param(1_000_000, 1_000, marks=[pytest.mark.slow, pytest.mark.timeout(900)]),
    ],
)
def test_creations_in_a_loop_leave_room_for_others(count: int, addresses: int) -> None:
    """At the store and the limits, without HTTP around them: as many as a client sends in hours."""
    limits = TaskLimits()

    async def main(runtime: Any) -> None:
        store = MemoryTaskStore()

        async def create(id: str, address: str) -> str | None:
            key = quota_key("", f"address {address}")
            record = new_record(id, "", quota_key=key, size=500)
            return await store.create(record, limits=limits.quota(key, durable=False))

        async with store.opened(runtime):
            made = 0
            for number in range(count):
                made += await create(str(number), str(number % addresses)) is None
            most = limits.total if addresses >= 4 else limits.total // 4
            assert made == min(count, most)
            friend = await create("friend", "elsewhere")
            assert friend == ("total" if made == limits.total else None)

    run_trio(main)


@pytest.mark.parametrize("driver", DRIVERS)
def test_tasks_of_a_second_and_of_a_day_give_back_their_places_by_themselves(
    driver: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Time to live frees a place by itself: no request asks about the expired task."""
    now, jump = time.time, [0.0]
    monkeypatch.setattr("time.time", lambda: now() + jump[0])

    async def scene(stage: ServedLab) -> None:
        client = await stage.connect(D, address=HERE)
        for number in range(8):
            await client.create("hold", task={"ttl": 1_000 if number % 2 else 86_400_000})
        await refused(client, "you have 8 tasks already")
        jump[0] = 2.0
        await anyio.sleep(6)  # of a virtual clock: the upkeep has run
        assert len(await fill(client)) == 4
        jump[0] = 86_402.0
        await anyio.sleep(6)
        assert len(await fill(client)) == 8

    run = run_on_virtual_time if driver == "trio" else None
    player(driver, "memory", tmp_path, run)(scene, total=32, lease=3.0)


# -- Bytes -----------------------------------------------------------------------------------------

BYTES: Final = {"stored_bytes": 400_000, "file_bytes": 400_000}
LONG: Final = "x" * 20_000  # with its decoded value 40,000 and some


@versions
def test_arguments_that_do_not_fit_are_refused_before_the_handler_runs(
    play: Play, version: str
) -> None:
    """Bytes count per principal and for the server; a task that ended gives its bytes back."""

    async def scene(stage: ServedLab) -> None:
        client = await stage.connect(version, address=HERE)
        ids = await fill(client, text=LONG)
        assert len(ids) == 2
        await anyio.wait_all_tasks_blocked()
        assert stage.runs == ["hold", "hold"]
        await refused(client, "the call takes 4.... bytes, and your tasks may", text=LONG)
        await client.create("hold")  # short ones have room
        others = [await stage.connect(version, address=f"192.0.2.{n}") for n in range(5)]
        made = [len(await fill(other, text=LONG)) for other in others]
        assert sum(made) in (6, 7)
        await refused(others[-1], "the tasks of the server may take 400000", text=LONG)
        # A task that has ended is known until its time to live is over. Its bytes are free.
        await client.request("tasks/cancel", {"taskId": ids[0]})
        again = await client.create("hold", text=LONG)
        assert (await client.state(ids[0]))["status"] == "cancelled"
        assert (await client.state(again))["status"] == "working"

    play(scene, **BYTES)


@versions
def test_result_that_does_not_fit_fails_its_task_and_says_so(play: Play, version: str) -> None:
    """The handler has run by then, so the error says so and must not invite a second try."""

    async def scene(stage: ServedLab) -> None:
        client = await stage.connect(version, address=HERE)
        first = await client.create("give", size=70_000)
        assert await client.text(first) == "x" * 70_000
        task_id = await client.create("give", size=70_000)
        state = await client.until(task_id, "failed")
        assert state["statusMessage"].startswith("the handler has run, and what it changed stays")
        with pytest.raises(RpcError, match="your tasks may have 100000 bytes together") as caught:
            await client.outcome(task_id)
        assert caught.value.code == -32603
        assert stage.runs == ["give", "give"]
        assert await client.text(first) == "x" * 70_000
        other = await stage.connect(version, address=THERE)
        assert await other.text(await other.create("give", size=70_000)) == "x" * 70_000

    play(scene, **BYTES)


@versions
def test_input_that_does_not_fit_fails_its_task(play: Play, version: str) -> None:
    async def scene(stage: ServedLab) -> None:
        client = await stage.connect(version, address=HERE)
        client.answer = lambda request: {"action": "accept", "content": {"name": "x" * 110_000}}
        task_id = await client.create("ask")
        with pytest.raises(RpcError, match="the input is not kept: your tasks may have 100000"):
            await client.outcome(task_id)
        assert (await client.state(task_id))["status"] == "failed"
        client.answer = lambda request: {"action": "accept", "content": {"name": "Ada"}}
        assert await client.text(await client.create("ask")) == "accept"

    play(scene, **BYTES)


def test_handler_that_goes_on_after_its_task_was_cancelled_is_counted(play: Play) -> None:
    """Cancelling is no way around the limit: a handler that ignores it keeps its bytes."""

    async def scene(stage: ServedLab) -> None:
        client = await stage.connect(E, address=HERE)
        for _ in range(2):
            task_id = await client.create("insist", text=LONG)
            with anyio.fail_after(patience()):
                await client.request("tasks/cancel", {"taskId": task_id})
        await refused(client, "the call takes", text=LONG)
        stage.release.set()
        with anyio.fail_after(patience()):
            while True:
                try:
                    await client.create("hold", text=LONG)
                except RpcError:
                    await anyio.sleep(0.001)
                else:
                    return

    play(scene, **BYTES)


@pytest.mark.parametrize("store", STORES)
def test_only_user_has_all_bytes(store: str, tmp_path: Path) -> None:
    """Over a pipe there is no other client."""
    tmp_path.chmod(0o700)

    async def main() -> None:
        stage = ServedLab(STORES[store](tmp_path), TaskLimits(**BYTES))
        async with WIRES["memory"](E, stage.server) as client:
            assert len(await fill(client, text=LONG)) == 9
            await refused(client, "your tasks may take 400000", text=LONG)
            stage.release.set()

    trio.run(main, clock=MockClock(autojump_threshold=0))


@pytest.mark.parametrize(
    ("text", "memory"),
    [
        ("x" * 100_000, 200_000),
        ("ü" * 100_000, 400_000),
        ("鳥" * 100_000, 500_000),
        ("x" * 100_000 + "🦉", 500_000),
        ("x" * 100_000 + "\\ud83e\\udd89", 500_000),  # the same, escaped
        ('","' * 20_000, 20_000 * (3 + 3 + 32 + 32)),
        ('",[],"' * 20_000, 20_000 * (6 + 6 + 80 + 64 + 32)),
    ],
    ids=["narrow", "accents", "signs", "wide", "escaped", "texts", "lists"],
)
def test_memory_of_a_call_is_estimated_from_its_json(text: str, memory: int) -> None:
    size = estimate_memory(f'{{"arguments":{{"text":["{text}"]}}}}'.encode())
    assert memory <= size <= memory + 1_000
