"""Tasks in a file, Redis or Valkey whose servers are killed, or which several servers share."""

from __future__ import annotations

import signal
from typing import TYPE_CHECKING, Any

import pytest
import trio

from tests.harness.redis_server import PROGRAMS, RedisServer
from tests.harness.world.waiting import PATIENCE
from tests.task_play.kills import IN_FLIGHT, LIMITS, KillLoop, ServerProcess, served_process
from tests.task_play.wires import D, E, RpcError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

pytestmark = pytest.mark.process


# The store is the same code for both programs, which its contract tries.
@pytest.fixture(params=["file", PROGRAMS[0], pytest.param(PROGRAMS[1], marks=pytest.mark.slow)])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """Yield where the servers keep their tasks."""
    if request.param == "file":
        yield str(tmp_path / "tasks.db")
        return
    with RedisServer(tmp_path, request.param, "--appendonly", "yes") as server:
        yield server.url


# A timeout of the function itself would replace the parameters' timeouts.
FEW = [pytest.mark.timeout(120)]
MANY = [pytest.mark.slow, pytest.mark.timeout(1500)]


# Each store and each driver is killed a few times. The other pairs are `slow`.
@pytest.mark.parametrize(
    ("place", "driver", "kills"),
    [
        pytest.param("file", "asyncio", 10, marks=FEW),
        pytest.param(PROGRAMS[0], "trio", 10, marks=FEW),
        *(
            pytest.param(place, driver, 500, marks=MANY)
            for place in ("file", PROGRAMS[0])
            for driver in ("trio", "asyncio")
        ),
    ],
    indirect=["place"],
)
def test_tasks_survive_servers_that_are_killed(place: str, driver: str, kills: int) -> None:
    loop = KillLoop(place, seed=kills, driver=driver)
    trio.run(loop.run, kills)
    assert len(loop.outcomes) >= IN_FLIGHT  # on a busy machine hardly more


async def test_task_that_runs_again_finds_the_answers_so_far(place: str) -> None:
    async with served_process(place) as first:
        task_id = await first.create("again", name="Bo")
        before = await first.until(task_id, "input_required")
        await answer(first, before, "one")
        before = await first.until(task_id, "input_required")
        await first.kill()
    async with served_process(place) as second:
        assert await second.state(task_id) == before
        await answer(second, before, "two")
        done = await second.until(task_id, "completed")
    text = done["result"]["content"][0]["text"]
    assert text.startswith(f"Bo: one and two by {second.child.pid}-")


async def answer(client: ServerProcess, state: Any, text: str) -> None:
    (key,) = state["inputRequests"]
    answers = {key: {"action": "accept", "content": {"name": text}}}
    await client.request("tasks/update", {"taskId": state["taskId"], "inputResponses": answers})


@pytest.mark.parametrize("version", [D, E])
async def test_task_without_rerun_fails_after_its_server_was_killed(
    place: str, version: str
) -> None:
    async with served_process(place, version=version) as first:
        task_id = await first.create("once", name="Bo")
        await first.until(task_id, "input_required")
        await first.kill()
    async with served_process(place, version=version) as second:
        state = await second.until(task_id, "failed")
        assert "the process that ran this task is gone" in state["statusMessage"]
        with pytest.raises(RpcError) as caught:
            await second.outcome(task_id)
        assert caught.value.code == -32603


@pytest.mark.parametrize("driver", ["trio", "asyncio"])
async def test_server_that_is_stopped_gives_its_tasks_back(place: str, driver: str) -> None:
    """The next server need not wait for the end of the lease, and other tasks have failed."""
    async with served_process(place, driver) as first:
        again = await first.create("again", name="Bo")
        once = await first.create("once", name="Al")
        for task_id in (again, once):
            await first.until(task_id, "input_required")
        first.child.terminate()
        with trio.fail_after(PATIENCE):
            await first.child.wait()
    async with served_process(place) as second:
        state = await second.until(once, "failed")
        assert state["error"] == {"code": -32603, "message": "the server was shut down"}
        second.answer = lambda request: {"action": "decline"}
        assert "decline and decline" in await second.text(again)


@pytest.mark.parametrize("driver", ["trio", "asyncio"])
@pytest.mark.parametrize("again", [True, False])
async def test_server_that_was_stopped_longer_than_its_lease_does_not_double_a_task(
    place: str, driver: str, again: bool
) -> None:
    """Meanwhile another one has taken its tasks over. It finds that out when it goes on."""
    async with served_process(place, driver) as first, served_process(place, driver) as second:
        task_id = await first.create("again" if again else "once", name="Bo")
        mine = await second.create("wait")
        before = await first.until(task_id, "input_required")
        first.child.send_signal(signal.SIGSTOP)
        if again:
            await answer(second, before, "one")
            before = await second.until(task_id, "input_required")
        else:
            before = await second.until(task_id, "failed")
        first.child.send_signal(signal.SIGCONT)
        assert await first.state(task_id) == before
        if again:
            await answer(first, before, "two")
            done = await first.until(task_id, "completed")
            text = done["result"]["content"][0]["text"]
            assert text.startswith(f"Bo: one and two by {second.child.pid}-")
            before = done
        # It works again, and takes nothing from the other one, or from itself.
        new = await first.create("wait")
        await trio.sleep(5 * LIMITS.lease)
        for server in (first, second):
            assert await server.state(task_id) == before
            assert (await server.state(mine))["status"] == "working"
            assert (await server.state(new))["status"] == "working"


@pytest.mark.parametrize("version", [D, E])
async def test_task_is_cancelled_at_another_server(place: str, version: str) -> None:
    async with served_process(place, version=version) as first:
        task_id = await first.create("wait")
        async with served_process(place, version=version) as second:
            assert (await second.state(task_id))["status"] == "working"
            await second.request("tasks/cancel", {"taskId": task_id})
            assert (await first.state(task_id))["status"] == "cancelled"
            assert first.child.stderr is not None
            with trio.fail_after(PATIENCE):
                assert (await first.child.stderr.receive_some()).startswith(b"cancelled")


@pytest.mark.parametrize("version", [D, E])
async def test_task_is_followed_and_answered_at_another_server(place: str, version: str) -> None:
    """The second server only shares the place: the handler stays in the first process."""
    async with (
        served_process(place, version=version) as first,
        served_process(place, version=version) as second,
    ):
        task_id = await first.create("once", name="Bo")
        if version == E:
            second.listen(task_id)
            await second.until_notified(
                lambda message: message["params"].get("status") == "input_required"
            )
        second.answer = lambda request: {
            "action": "accept",
            "content": {"name": "Cy" if version == E else request["params"]["message"]},
        }
        text = await second.text(task_id)
        assert f"by {first.child.pid}-" in text
        assert ("Cy and Cy" if version == E else "Name 1 of Bo? and Name 2 of Bo?") in text
        if version == E:
            await second.until_notified(
                lambda message: message["params"].get("status") == "completed"
            )
        else:
            await first.until_notified(
                lambda message: message["params"].get("status") == "completed"
            )
