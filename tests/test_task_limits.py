"""The jobs, notifications, polls and pages of tasks, counted with both drivers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import anyio
import pytest
import trio
from trio.testing import MockClock

from mcp_core.protocol.connection._connection import Connection
from mcp_core.registry import Context, Server, Tasks
from mcp_core.tasks import TaskLimits
from tests.asyncio_shim.conftest import _asyncio_has_nothing_to_complain_of  # noqa: F401
from tests.drivers.test_tasks import FORM
from tests.harness.world import loop
from tests.task_play import wires
from tests.task_play.lab import make_lab
from tests.task_play.stores import FaultyStore
from tests.task_play.wires import ASYNCIO_WIRES, WIRES, D, E
from tests.test_task_stores import until

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from tests.task_play.wires import Wire, WireClient

    Scene = Callable[[WireClient], Awaitable[None]]
    Play = Callable[[Server, str, Scene], None]


def run_trio(main: Callable[[], Awaitable[None]]) -> None:
    trio.run(main, clock=MockClock(autojump_threshold=0))


KINDS: dict[str, tuple[Callable[..., None], Wire]] = {
    "trio": (run_trio, WIRES["memory"]),
    "asyncio": (lambda main: loop.run(main()), ASYNCIO_WIRES["WebSocket over ASGI"]),
}


@pytest.fixture(params=KINDS)
def play(request: pytest.FixtureRequest) -> Play:
    """Return a function that plays a scene with a client of a server, in a revision."""
    run, wire = KINDS[request.param]

    def play_scene(server: Server, version: str, scene: Scene) -> None:
        async def main() -> None:
            async with wire(version, server) as client:
                await scene(client)

        run(main)

    return play_scene


@pytest.mark.parametrize("version", [D, E])
@pytest.mark.parametrize("waits", [False, True])
def test_progress_reported_a_thousand_times_is_stored_by_one_job(
    play: Play, version: str, waits: bool
) -> None:
    """Only the last message of an interval is stored, at its end."""
    server = Server("loud", tasks=Tasks(limits=TaskLimits(message_interval=2)))
    more: list[int] = []

    @server.tool(task="optional")
    async def work(context: Context) -> str:
        """Report a thousand times."""
        before = len(anyio.get_running_tasks())
        for step in range(1_000):
            if waits:
                await context.progress(step)
            else:
                context.progress_nowait(step)
        more.append(len(anyio.get_running_tasks()) - before)
        await anyio.sleep(3)
        return "done"

    async def scene(client: WireClient) -> None:
        task_id = await client.create("work")
        await until(lambda: more)
        await anyio.sleep(2.1)
        assert (await client.state(task_id))["statusMessage"] == "999"
        await anyio.sleep(1)
        assert (await client.state(task_id))["status"] == "completed"

    play(server, version, scene)
    assert more == [1]


def test_task_is_no_longer_watched_when_its_listen_request_has_ended(
    play: Play, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first state after it is not sent, and further ones are not even looked at."""
    sent: list[bool] = []
    send = Connection.send_task_status

    def spy(conn: Connection, params: Any) -> bool:
        sent.append(send(conn, params))
        return sent[-1]

    monkeypatch.setattr(Connection, "send_task_status", spy)
    server = Server("steps", tasks=Tasks(limits=TaskLimits(message_interval=0.001)))
    passes: list[anyio.Event] = []

    @server.tool(task="optional")
    async def work(context: Context) -> str:
        """Report after each pass."""
        for step in range(5):
            passes.append(anyio.Event())
            await passes[-1].wait()
            await context.progress(step)
        return "done"

    async def scene(client: WireClient) -> None:
        task_id = await client.create("work")
        listen = client.message("subscriptions/listen", {"notifications": {"taskIds": [task_id]}})
        await client.send(listen)
        await until(lambda: sent == [True])
        passes[-1].set()
        await until(lambda: sent == [True, True])
        notice = client.message("notifications/cancelled", {"requestId": listen["id"]})
        del notice["id"]
        await client.send(notice)
        await client.request("tools/list")  # it has arrived
        passes[-1].set()
        await until(lambda: sent == [True, True, False])
        for _ in range(3):
            passes[-1].set()
            await anyio.sleep(1)
        assert (await client.state(task_id))["status"] == "completed"
        assert sent == [True, True, False]

    play(server, E, scene)


@pytest.mark.parametrize(
    ("interval", "seconds"),
    [
        (None, 1.0),  # not named
        (250, 0.25),
        (100, 0.1),
        (0, 0.1),
        (60_000, 60.0),
        (10**12, 60.0),
    ],
)
def test_client_that_runs_a_task_is_polled_within_bounds(
    play: Play, interval: int | None, seconds: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A peer's `pollInterval` of 0 or of years must cause neither a busy loop nor a stuck task."""
    requests: dict[str, Any] = {"elicitation": {"create": {}}}
    monkeypatch.setitem(wires.CAPABILITIES, "tasks", {"cancel": {}, "requests": requests})
    server = Server("asks")
    polls: list[float] = []

    @server.tool
    async def ask(context: Context) -> str:
        """Ask for a name."""
        return (await context.elicit("Who?", FORM, task_ttl=3600)).action

    def answer(request: Any) -> Any:
        polls.append(anyio.current_time())
        if request["method"] == "tasks/result":
            return {"action": "decline"}
        times = {"createdAt": "2026-11-23T00:00:00Z", "lastUpdatedAt": "2026-11-23T00:00:00Z"}
        status = "working" if len(polls) < 4 else "completed"
        state: dict[str, Any] = {"taskId": "T", "status": status, "ttl": None, **times}
        if interval is not None:
            state["pollInterval"] = interval
        return {"task": state} if request["method"] == "elicitation/create" else state

    async def scene(client: WireClient) -> None:
        client.answer = answer
        assert await client.call("ask") == "decline"

    play(server, D, scene)
    asked, *polled, _ = polls
    gaps = [after - before for before, after in zip([asked, *polled], polled, strict=False)]
    assert gaps == pytest.approx([seconds] * 3, abs=0.02)


@pytest.mark.parametrize("ends", ["call", "connection"])
def test_polls_of_a_clients_task_end_with_the_call_or_its_connection(
    play: Play, ends: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The pause between two polls ends then: the task is neither wanted nor known any more."""
    requests: dict[str, Any] = {"elicitation": {"create": {}}}
    monkeypatch.setitem(wires.CAPABILITIES, "tasks", {"cancel": {}, "requests": requests})
    server = Server("asks")
    asked: list[str] = []
    times: list[float] = []

    @server.tool
    async def ask(context: Context) -> str:
        """Ask for a name."""
        try:
            return (await context.elicit("Who?", FORM, task_ttl=3600)).action
        finally:
            times.append(anyio.current_time())

    def answer(request: Any) -> Any:
        asked.append(request["method"])
        stamps = {"createdAt": "2026-11-23T00:00:00Z", "lastUpdatedAt": "2026-11-23T00:00:00Z"}
        state = {"taskId": "T", "status": "working", "ttl": None, "pollInterval": 60_000, **stamps}
        if request["method"] == "tasks/cancel":
            return state | {"status": "cancelled"}
        return {"task": state} if request["method"] == "elicitation/create" else state

    async def scene(client: WireClient) -> None:
        client.answer = answer
        call = client.message("tools/call", {"name": "ask", "arguments": {}})
        await client.send(call)
        await until(lambda: asked)
        await anyio.sleep(90)
        times.append(anyio.current_time())
        if ends == "connection":
            return
        notice = client.message("notifications/cancelled", {"requestId": call["id"]})
        del notice["id"]
        await client.send(notice)
        await until(lambda: asked[2:])
        await anyio.sleep(300)

    play(server, D, scene)
    assert asked == ["elicitation/create", "tasks/get", "tasks/cancel"][: 2 + (ends == "call")]
    ended, handler_ended = times
    assert handler_ended - ended < 15  # the next poll would be 30 s later


@pytest.mark.parametrize("version", [D, E])
def test_outcome_is_stored_half_a_minute_after_the_store_works_again(
    play: Play, version: str
) -> None:
    """However long it has not: the pause between two tries grows up to that."""
    store = FaultyStore()
    server = Server("quick", tasks=Tasks(store=store))

    @server.tool(task="optional")
    async def work() -> str:
        """End a second later."""
        await anyio.sleep(1)
        store.failing.add("change")
        return "done"

    async def scene(client: WireClient) -> None:
        task_id = await client.create("work")
        await anyio.sleep(140)
        assert (await client.state(task_id))["status"] == "working"
        store.failing.clear()
        await anyio.sleep(30)
        assert (await client.state(task_id))["status"] == "completed"

    play(server, version, scene)


def test_listed_tasks_come_in_pages_of_a_hundred(play: Play) -> None:
    """With 101 tasks the second page has one task and no cursor."""
    server = Server("many", tasks=Tasks(limits=TaskLimits(per_principal=101)))

    @server.tool(task="optional")
    async def work() -> None:
        """Do nothing."""

    async def scene(client: WireClient) -> None:
        for _ in range(101):
            await client.create("work")
        page = await client.request("tasks/list")
        assert len(page["tasks"]) == 100
        rest = await client.request("tasks/list", {"cursor": page["nextCursor"]})
        assert len(rest["tasks"]) == 1
        assert "nextCursor" not in rest

    play(server, D, scene)


@pytest.mark.parametrize("version", [D, E])
def test_call_that_detaches_twice_at_once_waits_for_one_task(play: Play, version: str) -> None:
    """The second `detach` begins while the store still creates the task of the first one."""
    store = FaultyStore()
    store.slow.add("create")

    async def scene(client: WireClient) -> None:
        async with anyio.create_task_group() as group:
            found: list[str] = []

            async def create() -> None:
                found.append(await client.create("twins"))

            group.start_soon(create)
            await store.entered.wait()
            await anyio.sleep(1)
            assert not found
            store.go.set()
        assert await client.text(found[0]) == "[True, True, True] True"
        assert len(store._records) == 1

    play(make_lab(Tasks(store=store)), version, scene)
