"""Tasks on a store that fails or is slow, and with a clock that jumps: with both drivers."""

from __future__ import annotations

import json
import time
from typing import TYPE_CHECKING, Any

import anyio
import pytest
import trio
from msgspec import Raw
from msgspec.structs import replace
from trio.testing import MockClock

from mcp_core.registry import Server, Tasks
from mcp_core.runtime.tasks import MemoryTaskStore
from mcp_core.tasks import TaskCall, TaskLimits
from mcp_core.types import ClientCapabilities
from tests.asyncio_shim.conftest import _asyncio_has_nothing_to_complain_of  # noqa: F401
from tests.core.tasks.store_contract import quota
from tests.harness.world import loop
from tests.harness.world.waiting import patience
from tests.task_play.lab import make_lab
from tests.task_play.stores import FaultyStore
from tests.task_play.wires import ASYNCIO_WIRES, WIRES, D, E, RpcError

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from tests.task_play.wires import Wire, WireClient

    Scene = Callable[[WireClient, FaultyStore], Awaitable[None]]


def run_trio(main: Callable[[], Awaitable[None]]) -> None:
    trio.run(main, clock=MockClock(autojump_threshold=0))


# A client of the one user of a server, so that each test can look into the store.
KINDS: dict[str, tuple[Callable[..., None], Wire]] = {
    "trio": (run_trio, WIRES["memory"]),
    "asyncio": (lambda main: loop.run(main()), ASYNCIO_WIRES["WebSocket over ASGI"]),
}
LIMITS = TaskLimits(message_interval=0.001, lease=0.3)


@pytest.fixture(params=KINDS)
def play(request: pytest.FixtureRequest) -> Callable[[Scene, str], None]:
    """Return a function that plays a scene with a client of a revision, and a faulty store."""
    run, wire = KINDS[request.param]

    def play_scene(scene: Scene, version: str) -> None:
        async def main() -> None:
            store = FaultyStore()
            lab = make_lab(Tasks(store=store, limits=LIMITS, owner=lambda request, owner: "us"))
            async with wire(version, lab) as client:
                await scene(client, store)

        run(main)

    return play_scene


@pytest.fixture(autouse=True)
def _store_is_tried_again_soon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mcp_core.runtime.tasks._service._FIRST_RETRY", 0.01)


async def code_of(awaitable: Awaitable[Any]) -> int:
    with pytest.raises(RpcError) as caught:
        await awaitable
    code: int = caught.value.code
    return code


async def until(ready: Callable[[], object]) -> None:
    with anyio.fail_after(patience()):
        while True:
            if ready():
                return
            await anyio.sleep(0.001)


versions = pytest.mark.parametrize("version", [D, E])


@versions
@pytest.mark.parametrize("when", ["create", "after create"])
@pytest.mark.requirement("TX-7")
def test_store_that_cannot_create_fails_the_call(
    play: Callable[[Scene, str], None], version: str, when: str
) -> None:
    async def scene(client: WireClient, store: FaultyStore) -> None:
        store.failing.add(when)
        assert await code_of(client.create("work")) == -32603
        store.failing.clear()
        assert await client.call("journal") == "after work"  # the handler did not run
        await until(lambda: not store._records)  # it is not left there
        assert await client.text(await client.create("work")) == "called by work"

    play(scene, version)


@versions
def test_record_of_a_failed_call_is_removed_although_another_worker_took_it(
    play: Callable[[Scene, str], None], version: str
) -> None:
    """Its client knows no such task, and the other worker might ask a question without end."""

    async def scene(client: WireClient, store: FaultyStore) -> None:
        store.failing |= {"after create", "change"}
        assert await code_of(client.create("work")) == -32603
        (record,) = store._records.values()
        taken = replace(record, serial=record.serial + 1, worker="another")
        assert await MemoryTaskStore.change(store, record.key, record.serial, taken)
        store.failing.clear()
        await until(lambda: not store._records)

    play(scene, version)


@versions
def test_cancellation_by_another_worker_arrives_although_the_store_fails_then(
    play: Callable[[Scene, str], None], version: str
) -> None:
    """The store tells once that a record has changed, and cannot be read at that moment."""

    async def scene(client: WireClient, store: FaultyStore) -> None:
        task_id = await client.create("wait")
        store.failing.add("get")
        (record,) = store._records.values()
        ended = replace(record, serial=record.serial + 1, status="cancelled")
        assert await MemoryTaskStore.change(store, record.key, record.serial, ended)
        await until(lambda: store.failures)
        store.failing.clear()
        await client.until(task_id, "cancelled")
        await client.until_journal("cancelled")

    play(scene, version)


@versions
@pytest.mark.requirement("TSK-21", "TX-17")
@pytest.mark.parametrize("when", ["get", "change"])
def test_cancellation_whose_client_goes_away_is_stored(
    play: Callable[[Scene, str], None], version: str, when: str
) -> None:
    """The handler has stopped already, so a record without an end would never have one."""

    async def scene(client: WireClient, store: FaultyStore) -> None:
        task_id = await client.create("wait")
        store.slow.add(when)
        request = client.message("tasks/cancel", {"taskId": task_id})
        await client.send(request)
        await store.entered.wait()
        notice = client.message("notifications/cancelled", {"requestId": request["id"]})
        del notice["id"]
        await client.send(notice)
        await client.until_journal("cancelled")
        store.slow.clear()
        store.go.set()
        await client.until(task_id, "cancelled")
        assert request["id"] not in client._responses

    play(scene, version)


def test_response_that_cannot_be_stored_is_stored_later(
    play: Callable[[Scene, str], None],
) -> None:
    """The client, which has answered, is not asked a second time by the same `tasks/result`."""

    async def scene(client: WireClient, store: FaultyStore) -> None:
        def answer(request: dict[str, Any]) -> dict[str, Any]:
            store.failing.add("change")
            return {"action": "accept", "content": {"name": "Ada"}}

        client.answer = answer
        task_id = await client.create("ask")
        async with anyio.create_task_group() as group:

            async def mend() -> None:
                await until(lambda: store.failures >= 2)
                store.failing.clear()

            group.start_soon(mend)
            assert await client.text(task_id) == "Ada"
        assert len(client.asked) == 1

    play(scene, D)


@versions
def test_withdrawal_that_cannot_be_stored_is_stored_later(
    play: Callable[[Scene, str], None], version: str
) -> None:
    """The handler doesn't wait for the question's response any more."""

    async def scene(client: WireClient, store: FaultyStore) -> None:
        task_id = await client.create("impatient")
        await client.until(task_id, "input_required")
        store.failing.add("change")
        await client.go()
        await until(lambda: store.failures >= 2)
        store.failing.clear()
        await client.until(task_id, "working")
        await client.request("tasks/cancel", {"taskId": task_id})

    play(scene, version)


@versions
def test_store_that_cannot_be_read_fails_the_request_only(
    play: Callable[[Scene, str], None], version: str
) -> None:
    """Requests fail with -32603 while the handler goes on, and later calls work again."""

    async def scene(client: WireClient, store: FaultyStore) -> None:
        task_id = await client.create("work", held=True)
        store.failing |= {"get", "page"}
        for _ in range(2):
            assert await code_of(client.state(task_id)) == -32603
        if client.version == D:
            assert await code_of(client.request("tasks/list")) == -32603
            assert await code_of(client.outcome(task_id)) == -32603
        await client.go()
        await client.until_journal("after work")
        store.failing.clear()
        await client.until(task_id, "completed")

    play(scene, version)


@versions
def test_outcome_is_stored_when_the_store_works_again(
    play: Callable[[Scene, str], None], version: str
) -> None:
    async def scene(client: WireClient, store: FaultyStore) -> None:
        task_id = await client.create("work", held=True)
        store.failing.add("change")
        await client.go()
        await until(lambda: store.failures >= 2)
        assert (await client.state(task_id))["status"] == "working"
        store.failing.clear()
        assert await client.text(task_id) == "called by work"

    play(scene, version)


@pytest.mark.parametrize("is_question", [False, True])
@versions
def test_change_that_cannot_be_stored_fails_handler_that_asks(
    play: Callable[[Scene, str], None], version: str, is_question: bool
) -> None:
    """A message that is lost doesn't fail its handler; a question that is lost does."""

    async def scene(client: WireClient, store: FaultyStore) -> None:
        store.failing.add("change")
        task_id = await client.create("ask" if is_question else "work")
        await until(lambda: store.failures)
        store.failing.clear()
        outcome = await client.outcome(task_id)
        assert outcome.get("isError", False) is is_question
        assert ("called by work" in str(outcome)) is not is_question

    play(scene, version)


@versions
def test_upkeep_and_watch_go_on_after_a_failure(
    play: Callable[[Scene, str], None], version: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The lease is renewed once the store works, so no other server takes the task over."""
    monkeypatch.setattr("mcp_core.runtime.tasks._records._WATCH_AGAIN", 0.01)

    async def scene(client: WireClient, store: FaultyStore) -> None:
        store.failing |= {"lost", "remove_expired", "watch"}
        task_id = await client.create("wait")
        await until(lambda: store.failures >= 3)
        store.failing.clear()
        await anyio.sleep(3.0)
        assert await store.lost(9) == []  # the lease was renewed
        assert (await client.state(task_id))["status"] == "working"
        await client.request("tasks/cancel", {"taskId": task_id})

    play(scene, version)


@versions
@pytest.mark.parametrize("when", ["change", "after change"])
def test_lost_task_that_is_taken_over_by_a_failing_store_runs(
    play: Callable[[Scene, str], None], version: str, when: str
) -> None:
    """A record that was changed has this worker's lease, so that no other worker looks at it."""

    async def scene(client: WireClient, store: FaultyStore) -> None:
        task_id = await client.create("work")
        await client.until(task_id, "completed")
        assert "work" in await client.call("journal")
        store.failing.add(when)
        params = Raw(b'{"name":"work","arguments":{}}')
        capabilities = ClientCapabilities()
        (done,) = store._records.values()
        lost = replace(
            done,
            id="lost",
            serial=1,
            status="working",
            result=None,
            worker="gone",
            call=TaskCall(params=params, capabilities=capabilities),
        )
        assert await store.create(lost, limits=quota(9, 10**6)) is None
        await until(lambda: store.failures)
        store.failing.clear()
        assert await client.text("lost") == "called by work"

    play(scene, version)


def test_running_tasks_are_compared_with_their_records_after_the_lease_was_over(
    play: Callable[[Scene, str], None],
) -> None:
    """The first comparison fails: the store can be written then, and not be read."""

    async def scene(client: WireClient, store: FaultyStore) -> None:
        task_id = await client.create("wait")
        store.failing |= {"renew_lease", "watch"}
        await until(lambda: store.failures)
        await anyio.sleep(2 * LIMITS.lease)
        store.failing = {"get", "watch"}
        (record,) = store._records.values()
        taken = replace(record, serial=record.serial + 1, worker="another")
        store._records[record.key] = taken  # without a word to its watchers
        failures = store.failures
        await until(lambda: store.failures >= failures + 2)
        store.failing.clear()
        await client.until_journal("cancelled")
        assert (await client.state(task_id))["status"] == "working"

    play(scene, E)


@versions
@pytest.mark.parametrize("when", ["create", "after create"])
@pytest.mark.parametrize("tool", ["work", "twins"])
def test_call_cancelled_while_its_task_is_created_leaves_no_task(
    play: Callable[[Scene, str], None], version: str, when: str, tool: str
) -> None:
    """The cancelled call gets no response, and a record written in the meantime is removed."""

    async def scene(client: WireClient, store: FaultyStore) -> None:
        store.slow.add(when)
        params: dict[str, Any] = {"name": tool, "arguments": {}}
        if version == D:
            params["task"] = {}
        request = client.message("tools/call", params)
        await client.send(request)
        await store.entered.wait()
        cancelled = {"requestId": request["id"]}
        notice = client.message("notifications/cancelled", cancelled)
        del notice["id"]
        await client.send(notice)
        await client.request("tools/list")  # it has arrived
        store.slow.clear()
        store.go.set()
        await until(lambda: not store._records)
        assert request["id"] not in client._responses
        await client.until_journal(f"after {tool}")

    play(scene, version)


@versions
def test_client_that_disconnects_while_its_task_is_created_leaves_no_task(version: str) -> None:
    async def main() -> None:
        store = FaultyStore()
        lab = make_lab(Tasks(store=store))
        with pytest.RaisesGroup(ZeroDivisionError, flatten_subgroups=True):
            async with WIRES["memory"](version, lab) as client:
                store.slow.add("after create")
                params = {"name": "work", "task": {}}
                await client.send(client.message("tools/call", params))
                await store.entered.wait()
                raise ZeroDivisionError
        assert not store._records

    run_trio(main)


@versions
def test_slow_store_delays_its_own_task_only(
    play: Callable[[Scene, str], None], version: str
) -> None:
    """Another call on the same connection is answered while `create` still waits."""

    async def scene(client: WireClient, store: FaultyStore) -> None:
        store.slow.add("create")
        async with anyio.create_task_group() as group:
            found: list[str] = []

            async def create() -> None:
                found.append(await client.create("work"))

            group.start_soon(create)
            await store.entered.wait()
            assert await client.call("journal") == ""
            assert not found
            store.go.set()
        assert await client.text(found[0]) == "called by work"

    play(scene, version)


# -- Clocks ----------------------------------------------------------------------------------------


@versions
@pytest.mark.requirement("TSK-22", "TSK-25", "TSK-12")
def test_clock_that_jumps_ahead_expires_tasks_and_stops_their_handlers(
    play: Callable[[Scene, str], None], version: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A client that never fetches leaves nothing behind, either."""
    now, jump = time.time, [0.0]
    monkeypatch.setattr("time.time", lambda: now() + jump[0])

    async def scene(client: WireClient, store: FaultyStore) -> None:
        task_id = await client.create("wait")
        jump[0] = 48 * 3600.0
        assert await code_of(client.state(task_id)) == -32602
        await client.until_journal("cancelled")
        await client.create("work")
        await client.create("wait")
        jump[0] = 96 * 3600.0
        await until(lambda: not store._records)  # the upkeep removes them

    play(scene, version)


@versions
def test_clock_that_is_set_back_changes_no_state(
    play: Callable[[Scene, str], None], version: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`lastUpdatedAt` never goes back, and the poll interval isn't computed from the jump."""
    now, jump = time.time, [0.0]
    monkeypatch.setattr("time.time", lambda: now() + jump[0])

    async def scene(client: WireClient, store: FaultyStore) -> None:
        created = await client.create_task("ask")
        before = await client.until(created["taskId"], "input_required")
        jump[0] = -48 * 3600.0
        assert (await client.state(created["taskId"]))["lastUpdatedAt"] == before["lastUpdatedAt"]
        client.answer = lambda request: {"action": "decline"}
        assert await client.text(created["taskId"]) == "decline"
        after = await client.state(created["taskId"])
        assert after["lastUpdatedAt"] >= before["lastUpdatedAt"]
        interval = after.get("pollInterval", after.get("pollIntervalMs"))
        assert interval == 500

    play(scene, version)


# -- Numbers ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("count", [250, pytest.param(10_000, marks=pytest.mark.slow)])
@pytest.mark.requirement("TSK-20", "TSK-25")
def test_many_tasks_of_one_owner_are_listed_and_bounded(count: int) -> None:
    """Past the limit a call gets -32000, and the pages together list each task exactly once."""

    async def main() -> None:
        limits = TaskLimits(per_principal=count, total=count)
        server = Server("many", tasks=Tasks(limits=limits))

        @server.tool(task="optional")
        async def wait() -> None:
            """Wait."""
            await anyio.sleep_forever()

        async with WIRES["memory"](D, server) as client:
            ids = [await client.create("wait") for _ in range(count)]
            assert await code_of(client.create("wait")) == -32000
            listed: list[str] = []
            page: Any = await client.request("tasks/list")
            listed += [task["taskId"] for task in page["tasks"]]
            while "nextCursor" in page:
                page = await client.request("tasks/list", {"cursor": page["nextCursor"]})
                listed += [task["taskId"] for task in page["tasks"]]
            assert sorted(listed) == sorted(ids)
            assert len(json.dumps(page)) < 100_000

    run_trio(main)
