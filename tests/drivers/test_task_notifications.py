"""Notifications about tasks: their states, their progress and their log messages."""

from __future__ import annotations

import gc
import time
from typing import TYPE_CHECKING, Any

import pytest
from msgspec.structs import replace

from mcp_asyncio_shim._link import Link as AsyncioLink
from mcp_core import Limits
from mcp_core.registry import Context, Server, Tasks
from mcp_core.runtime import Service
from mcp_core.runtime.tasks import MemoryTaskStore, TaskService
from mcp_core.tasks import Cancel, TaskKey, TaskLimits, transition
from mcp_trio.streams._link import Link
from tests.drivers.test_tasks import FORM, UNKNOWN, D, E, TaskPeer, conversation, start, state_of
from tests.harness import either
from tests.harness.wire.lines import Wire

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

pytestmark = pytest.mark.usefixtures("each_driver")

RELATED = "io.modelcontextprotocol/related-task"
ID = "io.modelcontextprotocol/subscriptionId"


class Steps:
    """A server whose tools wait for the test."""

    def __init__(self, **options: Any) -> None:
        self.server = Server("steps", **options)
        self.go = either.Event()
        self.loud = either.Event()

        @self.server.tool(task="optional")
        async def work(context: Context) -> str:
            """Report, wait, and end."""
            await context.progress(1, 3, "one")
            await context.log("warning", "hot", logger="oven")
            await self.go.wait()
            await context.progress(2, 3, "two")
            await context.progress(2, 3, "again")  # not more than before
            context.progress_nowait(3, 3)
            context.log_nowait("debug", "not wanted")
            context.log_nowait("error", ["burnt"])
            return "done"

        @self.server.tool(task="optional")
        async def ask(context: Context) -> str:
            """Ask, and end."""
            answer = await context.elicit("Who?", FORM)
            return str(answer.action)

        @self.server.tool(task="optional", thread=True)
        def threaded(context: Context) -> str:
            """Report from a worker thread."""
            context.progress_nowait(1, 2, "half")
            context.log_nowait("error", "from a thread")
            return "done"


def summary(message: Any) -> tuple[Any, ...]:
    """Return what matters of a notification."""
    params = message["params"]
    match message["method"]:
        case "notifications/progress":
            assert params["progressToken"] == "token"
            return "progress", params["progress"], params.get("message"), RELATED in params["_meta"]
        case "notifications/message":
            return "log", params["level"], params["data"], RELATED in params["_meta"]
        case method:
            return (
                method.removeprefix("notifications/"),
                params["status"],
                params.get("statusMessage"),
            )


async def notifications(peer: Wire, number: int) -> list[tuple[Any, ...]]:
    return [summary(await peer.receive()) for _ in range(number)]


async def create(peer: Wire, tool: str, **members: Any) -> str:
    """Call a tool as a task, with a progress token. Return the id of the task."""
    params = {"name": tool, "arguments": {}, "_meta": {"progressToken": "token"}, **members}
    result = await peer.result_of("tools/call", params)
    task_id: str = result.get("task", result)["taskId"]
    return task_id


class Plain(TaskPeer):
    """A client that gets every message as it comes."""

    _message = Wire._message


@pytest.mark.requirement("PROG-6", "PROG-5", "TSK-17", "TSK-18", "TSK-19", "META-15")
async def test_session_gets_states_progress_and_logs_of_its_task() -> None:
    """Progress and logs come at once; messages in the state only once per interval."""
    # Only the first message is stored: the others come within the interval.
    steps = Steps(tasks=Tasks(limits=TaskLimits(message_interval=1000)))
    async with conversation(D, steps.server, Plain) as peer:
        await create(peer, "work", task={})
        got = await notifications(peer, 3)
        assert got[0] == ("progress", 1, "one", True)
        assert sorted(got[1:]) == [
            ("log", "warning", "hot", True),
            ("tasks/status", "working", "one"),
        ]
        await peer.expect_silence()
        steps.go.set()
        got = await notifications(peer, 4)
        assert got[:3] == [
            ("progress", 2, "two", True),
            ("progress", 3, None, True),
            ("log", "error", ["burnt"], True),
        ]
        assert got[3][:2] == ("tasks/status", "completed")
        await peer.expect_silence()


async def test_status_notification_is_the_whole_task_without_meta() -> None:
    """A client that gets it need not poll: it equals the response to `tasks/get`."""
    steps = Steps()
    async with conversation(D, steps.server, Plain) as peer:
        task_id = await create(peer, "ask", task={})
        status = (await peer.expect("notifications/tasks/status"))["params"]
        assert status["status"] == "input_required"
        assert set(status) == {
            "taskId", "status", "createdAt", "lastUpdatedAt", "ttl", "pollInterval"
        }  # fmt: skip
        state = await peer.result_of("tasks/get", {"taskId": task_id})
        assert state == status
        fetch = await peer.request("tasks/result", {"taskId": task_id})
        question = await peer.expect("elicitation/create")
        await peer.answer(question, {"action": "decline"})
        # It works again for no time: that state need not be sent.
        got = [await peer.receive(), await peer.receive()]
        if got[0].get("params", {}).get("status") == "working":
            got = [got[1], await peer.receive()]
        assert {each.get("id") for each in got} == {fetch["id"], None}
        (last,) = [each["params"]["status"] for each in got if "method" in each]
        assert last == "completed"


async def test_status_of_a_cancelled_task_is_the_last_message() -> None:
    steps = Steps()
    async with conversation(D, steps.server, Plain) as peer:
        task_id = await create(peer, "work", task={})
        await notifications(peer, 3)
        cancel = await peer.request("tasks/cancel", {"taskId": task_id})
        await peer.expect_result(cancel)
        assert (await notifications(peer, 1))[0][:2] == ("tasks/status", "cancelled")
        steps.go.set()
        await peer.expect_silence()


async def test_task_in_extension_sends_nothing_unasked() -> None:
    steps = Steps()
    async with conversation(E, steps.server, Plain) as peer:
        meta = {"progressToken": "token", "io.modelcontextprotocol/logLevel": "debug"}
        task_id = await create(peer, "work", _meta=meta)
        steps.go.set()
        await peer.expect_silence()
        state = await state_of(peer, task_id)
        assert state["status"] == "completed"


@pytest.mark.usefixtures("waits_for_threads")
@pytest.mark.parametrize("version", [D, E])
async def test_thread_of_a_task_reports_without_waiting(version: str) -> None:
    steps = Steps()
    async with conversation(version, steps.server, Plain) as peer:
        if version == E:
            task_id = await create(peer, "threaded")
            while (state := await state_of(peer, task_id))["status"] == "working":
                pass
            assert state["result"]["content"][0]["text"] == "done"
            return
        await create(peer, "threaded", task={})
        got = await notifications(peer, 3)
        assert ("progress", 1, "half", True) in got
        assert ("log", "error", "from a thread", True) in got


@pytest.mark.parametrize("version", [D, E])
@pytest.mark.parametrize("number", [float("nan"), float("inf")])
async def test_progress_of_a_task_has_to_be_finite(version: str, number: float) -> None:
    server = Server("s")

    @server.tool(task="optional")
    async def work(context: Context) -> None:
        """Report nonsense."""
        await context.progress(number)

    async with conversation(version, server) as peer:
        task_id = await start(peer, "work")
        await either.sleep(1)
        state = await state_of(peer, task_id)
        assert state["status"] == ("failed" if version == D else "completed")
        assert str(number) not in str(state)


async def test_progress_in_a_tight_loop_lets_other_clients_run() -> None:
    """The handler never waits for anything else, and can still be cancelled."""
    server = Server("s")
    steps = 0

    @server.tool(task="optional")
    async def work(context: Context) -> None:
        """Report for ever, without any other wait."""
        nonlocal steps
        while True:
            steps += 1
            await context.progress(steps)

    async with conversation(E, server) as peer:
        task_id = await start(peer, "work")
        await peer.result_of("tasks/cancel", {"taskId": task_id})
        assert steps
        assert (await state_of(peer, task_id))["status"] == "cancelled"


async def test_progress_to_a_client_that_reads_nothing_is_dropped() -> None:
    """Unlike a call, a task outlives its client, so it must not wait for one."""
    server = Server("s")
    ended = either.Event()

    @server.tool(task="optional")
    async def work(context: Context) -> None:
        """Report more than fits."""
        for step in range(2_000):
            await context.progress(step, message="x" * 1_000)
            await context.log("error", "x" * 1_000)
        ended.set()

    client_end, server_end = either.memory_pair()
    async with either.open_nursery() as nursery:
        nursery.start_soon(either.serve_stream, server, server_end)
        peer = TaskPeer(client_end, D)
        await peer.open_as_client()
        await create(peer, "work", task={})
        with either.fail_after(100):
            await ended.wait()  # a task does not wait for its client
        await peer.aclose()


# -- Subscriptions ---------------------------------------------------------------------------------


async def listen(peer: Wire, *task_ids: str, **others: Any) -> tuple[Any, list[str]]:
    """Listen to tasks. Return the request, and the ids that were acknowledged."""
    request = await peer.request(
        "subscriptions/listen", {"notifications": {"taskIds": list(task_ids), **others}}
    )
    acknowledged = await peer.expect("notifications/subscriptions/acknowledged")
    assert acknowledged["params"]["_meta"][ID] == request["id"]
    return request, acknowledged["params"]["notifications"].get("taskIds", [])


@pytest.mark.requirement("TX-20", "PROG-7")
async def test_listening_client_gets_each_state_of_its_tasks() -> None:
    """Unknown and repeated ids are left out; the last state carries the result."""
    steps = Steps(tasks=Tasks(limits=TaskLimits(message_interval=0.001)))
    async with conversation(E, steps.server, Plain) as peer:
        task_id = await create(peer, "work")
        other = await create(peer, "ask")
        request, honoured = await listen(peer, task_id, UNKNOWN, task_id, other)
        assert honoured == [task_id, other]
        states = [(await peer.expect("notifications/tasks"))["params"] for _ in range(2)]
        first, asked = sorted(states, key=lambda state: state["taskId"] != task_id)
        assert (first["status"], first["statusMessage"]) == ("working", "one")
        assert first["_meta"][ID] == request["id"]
        assert asked["status"] == "input_required"
        state = await state_of(peer, other)
        del state["resultType"], state["_meta"], asked["_meta"]
        assert asked == state
        steps.go.set()
        last = (await peer.expect("notifications/tasks"))["params"]
        while last["status"] == "working":
            last = (await peer.expect("notifications/tasks"))["params"]
        assert last["status"] == "completed"
        assert last["result"]["content"] == [{"type": "text", "text": "done"}]
        ((key, _),) = asked["inputRequests"].items()
        update = {"taskId": other, "inputResponses": {key: {"action": "decline"}}}
        await peer.request("tasks/update", update)
        # It works again for no time: that state need not be sent.
        while (await peer.receive()).get("params", {}).get("status") != "completed":
            pass
        await peer.expect_silence()


async def test_listening_to_an_ended_task_gets_its_outcome() -> None:
    """It may have ended between the client's last look and its listen request."""
    steps = Steps()
    steps.go.set()
    async with conversation(E, steps.server, Plain) as peer:
        task_id = await create(peer, "work")
        await either.sleep(1)
        await listen(peer, task_id)
        state = (await peer.expect("notifications/tasks"))["params"]
        assert state["status"] == "completed"
        assert "result" in state


async def test_second_listen_request_leaves_the_tasks_of_the_first() -> None:
    steps = Steps()
    async with conversation(E, steps.server, Plain) as peer:
        ids = [await create(peer, "work") for _ in range(2)]
        for task_id in ids:
            await listen(peer, task_id)
            await peer.expect("notifications/tasks")
        await peer.request("tasks/cancel", {"taskId": ids[0]})
        messages = [await peer.receive() for _ in range(2)]  # in either order
        (state,) = [each["params"] for each in messages if "method" in each]
        assert (state["taskId"], state["status"]) == (ids[0], "cancelled")


async def test_cancelled_listen_request_gets_no_more_states() -> None:
    steps = Steps()
    async with conversation(E, steps.server, Plain) as peer:
        task_id = await create(peer, "work")
        request, _ = await listen(peer, task_id)
        await peer.expect("notifications/tasks")
        await peer.notify("notifications/cancelled", {"requestId": request["id"]})
        steps.go.set()
        await peer.expect_silence()


async def test_listen_requests_that_ended_leave_nothing_behind() -> None:
    """Five subscriptions come and go; observers of tasks must not pile up."""
    steps = Steps()
    client_end, server_end = either.memory_pair()
    async with either.open_server(steps.server) as served, either.open_nursery() as nursery:
        nursery.start_soon(either.serve_conversation, served, server_end)
        peer = Plain(client_end, E)
        declare(peer)
        ids = [await create(peer, "work") for _ in range(5)]
        for task_id in ids:
            request, _ = await listen(peer, task_id)
            await peer.expect("notifications/tasks")
            await peer.notify("notifications/cancelled", {"requestId": request["id"]})
        assert isinstance(served.tasks, TaskService)
        observed = served.tasks.records._observers
        assert len(observed) == 1  # the last one's, until there is another
        await peer.aclose()
        await either.wait_all_tasks_blocked()
        assert not observed


def declare(peer: Wire) -> None:
    peer.meta["io.modelcontextprotocol/clientCapabilities"] = {
        "elicitation": {},
        "extensions": {"io.modelcontextprotocol/tasks": {}},
    }


async def test_listening_beside_other_changes_gets_both() -> None:
    steps = Steps()
    async with conversation(E, steps.server, Plain) as peer:
        task_id = await create(peer, "work")
        _, honoured = await listen(peer, task_id, toolsListChanged=True)
        assert honoured == [task_id]
        await peer.expect("notifications/tasks")
        steps.server.add_tool(lambda: "", name="another", description="Do nothing.")
        await peer.expect("notifications/tools/list_changed")


async def test_listening_to_too_many_tasks_is_refused() -> None:
    steps = Steps(limits=Limits(task_ids=2))
    async with conversation(E, steps.server, Plain) as peer:
        request = await peer.request(
            "subscriptions/listen", {"notifications": {"taskIds": ["a", "b", "c"]}}
        )
        await peer.expect_error(request)


@pytest.mark.perf
async def test_outcome_reaches_a_listening_client_within_5_ms() -> None:
    steps = Steps()
    async with conversation(E, steps.server, Plain) as peer:
        best = 1.0
        for _ in range(5):
            steps.go = either.Event()
            task_id = await create(peer, "work")
            await listen(peer, task_id)
            await peer.expect("notifications/tasks")
            started = time.perf_counter()
            steps.go.set()
            while (await peer.receive())["params"]["status"] == "working":
                pass
            best = min(best, time.perf_counter() - started)
        assert best < 0.005


async def test_listening_client_gets_states_set_by_another_worker() -> None:
    """Here the test is the other worker, and `watch` of a durable store says what it did."""

    class Durable(MemoryTaskStore):
        durable = True
        immediate = False

    store = Durable()
    limits = TaskLimits()
    steps = Steps(tasks=Tasks(store=store, limits=limits))
    async with conversation(E, steps.server, Plain) as peer:
        task_id = await create(peer, "work")
        await listen(peer, task_id)
        assert (await peer.expect("notifications/tasks"))["params"]["status"] == "working"
        key = TaskKey("", task_id)
        record = await store.get(key)
        assert record is not None
        cancelled = transition(record, Cancel("elsewhere"), time.time(), limits)
        assert await store.change(key, record.serial, cancelled)
        state = (await peer.expect("notifications/tasks"))["params"]
        assert (state["status"], state["statusMessage"]) == ("cancelled", "elsewhere")


async def test_state_of_one_task_is_sent_though_another_one_has_no_news() -> None:
    """Another worker has taken over one task and changed the other one, and both come at once."""
    steps = Steps()
    limits = TaskLimits()
    client_end, server_end = either.memory_pair()
    async with either.open_server(steps.server) as served, either.open_nursery() as nursery:
        nursery.start_soon(either.serve_conversation, served, server_end)
        peer = Plain(client_end, E)
        declare(peer)
        ids = [await create(peer, "work") for _ in range(2)]
        await listen(peer, *ids)
        for _ in ids:
            assert (await peer.expect("notifications/tasks"))["params"]["status"] == "working"
        assert isinstance(served.tasks, TaskService)
        records = served.tasks.records
        taken, changed = [await records.get(TaskKey("", task_id)) for task_id in ids]
        assert taken is not None
        assert changed is not None
        taken = replace(taken, serial=taken.serial + 1, worker="elsewhere")
        changed = transition(changed, Cancel("elsewhere"), time.time(), limits)
        for each in taken, changed:
            records.changed(each.key, each)
        state = (await peer.expect("notifications/tasks"))["params"]
        assert (state["taskId"], state["status"]) == (changed.id, "cancelled")
        await peer.expect_silence()
        await peer.aclose()


async def test_task_cancelled_by_another_worker_stops_its_handler() -> None:
    """The change in the shared store reaches this worker long before its lease is renewed."""

    class Durable(MemoryTaskStore):
        durable = True
        immediate = False

    store = Durable()
    server = Server("s", tasks=Tasks(store=store))
    stopped = either.Event()

    @server.tool(task="optional")
    async def work() -> None:
        """Wait."""
        try:
            await either.sleep_forever()
        finally:
            stopped.set()

    async with conversation(E, server) as peer:
        key = TaskKey("", await start(peer, "work"))
        await either.sleep(0.1)
        record = await store.get(key)
        assert record is not None
        await store.change(
            key, record.serial, transition(record, Cancel(), time.time(), TaskLimits())
        )
        with either.fail_after(0.1):  # long before the next renewal of the lease
            await stopped.wait()


# -- What a task keeps -----------------------------------------------------------------------------


@pytest.mark.parametrize(("version", "middleware"), [(D, True), (E, False)])
async def test_running_task_keeps_nothing_of_its_closed_connection(
    version: str, middleware: bool
) -> None:
    """A task may run for days: the garbage collector must get everything but the task."""
    steps = Steps()
    gc.collect()
    others = {id(each) for each in gc.get_objects() if type(each) in (Link, AsyncioLink, Service)}
    if middleware:

        @steps.server.middleware
        async def around(context: Context, proceed: Callable[[], Awaitable[Any]]) -> Any:
            return await proceed()

    async with either.open_server(steps.server) as served:
        client_end, server_end = either.memory_pair()
        async with either.open_nursery() as nursery:
            nursery.start_soon(either.serve_conversation, served, server_end)
            peer = Plain(client_end, version)
            if version == D:
                await peer.open_as_client(capabilities={"elicitation": {}})
            else:
                declare(peer)
            task: Any = {"task": {}} if version == D else {}
            asking = await create(peer, "ask", **task)
            if version == D:
                await peer.expect("notifications/tasks/status")
            work = await create(peer, "work", **task)
            if version == E:
                await listen(peer, work, asking)
            await either.wait_all_tasks_blocked()
            await peer.aclose()
        del peer, nursery, client_end, server_end
        assert isinstance(served.tasks, TaskService)
        assert len(served.tasks._running) == 2
        await either.checkpoint()
        gc.collect()
        # Connections are kept by the fixture that looks for leaks.
        left = [each for each in gc.get_objects() if type(each) in (Link, AsyncioLink, Service)]
        assert [each for each in left if id(each) not in others] == []
        steps.go.set()  # its progress and its end go nowhere
        await either.wait_all_tasks_blocked()
        assert len(served.tasks._running) == 1


async def test_task_stopped_after_its_handler_has_ended_is_not_waited_for() -> None:
    """A worker that reads the records of its tasks may have ended one of them meanwhile."""
    steps = Steps()
    async with either.open_server(steps.server) as served, either.open_nursery() as nursery:
        client_end, server_end = either.memory_pair()
        nursery.start_soon(either.serve_conversation, served, server_end)
        peer = Plain(client_end, E)
        declare(peer)
        await create(peer, "work")
        assert isinstance(served.tasks, TaskService)
        (task,) = served.tasks._running.values()
        steps.go.set()
        await either.wait_all_tasks_blocked()
        assert not served.tasks._running
        task.on_record(None)
        assert not served.tasks._stopping
        await peer.aclose()
