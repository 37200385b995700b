"""Tools that run as tasks, seen from the wire: both forms of tasks."""

from __future__ import annotations

from contextlib import asynccontextmanager
from functools import partial
from typing import TYPE_CHECKING, Any

import pytest

from mcp_core import DIALECTS, LocalProtocolError, McpError, ToolError
from mcp_core.adapters import SqliteTaskStore
from mcp_core.registry import Context, Server, TaskOptions, Tasks
from mcp_core.runtime.tasks import MemoryTaskStore, _running
from mcp_core.runtime.tasks._requests import TaskQuestion
from mcp_core.tasks import TaskLimits
from tests.harness import either
from tests.harness.wire.lines import Wire

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

pytestmark = pytest.mark.usefixtures("each_driver")

D = "2025-11-25"
E = "2026-07-28"
EXTENSION = "io.modelcontextprotocol/tasks"
CAPABILITIES = "io.modelcontextprotocol/clientCapabilities"
FORM = {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]}
UNKNOWN = "0" * 32
STATUS_METHODS = ("notifications/tasks/status", "notifications/tasks")


class TaskPeer(Wire):
    """A client that puts status notifications aside, in `statuses`."""

    def __init__(self, stream: Any, version: str) -> None:
        super().__init__(stream, version)
        self.statuses: list[Any] = []

    async def _message(self, wanted: str) -> Any:
        while True:
            message = await super()._message(wanted)
            if message.get("method") not in STATUS_METHODS:
                return message
            self.statuses.append(message["params"])


def make_server(**options: Any) -> Server:
    server = Server("lab", **options)

    @server.tool(task="optional")
    async def research(topic: str, context: Context) -> str:
        """Read everything about a topic."""
        await context.progress(1, 2, f"Reading about {topic}")
        await either.sleep(10)
        return f"All about {topic}"

    @server.tool(task="required")
    async def ask(context: Context) -> str:
        """Ask for a name."""
        answer = await context.elicit("Who?", FORM)
        return f"{answer.action} {getattr(answer, 'data', None)}"

    @server.tool(task="required")
    async def ask_twice(context: Context) -> str:
        """Ask for a name, and a second later, before the answer, for another one."""
        names = ["", ""]

        async def ask_for(index: int) -> None:
            answer = await context.elicit(f"Who is number {index}?", FORM)
            assert answer.action == "accept"
            names[index] = answer.data["name"]

        async with either.open_nursery() as nursery:
            nursery.start_soon(ask_for, 0)
            await either.sleep(1)
            nursery.start_soon(ask_for, 1)
        return " and ".join(names)

    @server.tool(task="optional")
    async def fail(how: str) -> str:
        """Fail."""
        if how == "tool":
            raise ToolError("The oven is cold.")
        if how == "bug":
            raise ZeroDivisionError
        raise McpError(-32050, "broken", {"part": "door"})

    @server.tool(task=TaskOptions(detach=1.0))
    async def sometimes(seconds: float, context: Context) -> str:
        """Take some time."""
        await either.sleep(seconds)
        return "task" if context.task is not None else "call"

    @server.tool(task=TaskOptions(detach=None))
    async def by_hand(context: Context) -> str:
        """Ask first, then become a task."""
        answer = await context.elicit("Who?", FORM)
        assert answer.action == "accept"
        detached = await context.detach()
        return f"{answer.data['name']} {detached}"

    @server.tool
    def plain() -> str:
        """Do nothing special."""
        return "plain"

    return server


@asynccontextmanager
async def conversation(
    version: str, server: Server | None = None, peer_type: type[TaskPeer] = TaskPeer
) -> AsyncIterator[TaskPeer]:
    """Open a conversation with a server whose client can have tasks."""
    client_end, server_end = either.memory_pair()
    async with either.open_nursery() as nursery:
        nursery.start_soon(either.serve_stream, server or make_server(), server_end)
        peer = peer_type(client_end, version)
        if DIALECTS[version].stateful:
            await peer.open_as_client(capabilities={"elicitation": {}, "sampling": {}})
        else:
            peer.meta[CAPABILITIES] = {"elicitation": {}, "extensions": {EXTENSION: {}}}
        yield peer
        await peer.aclose()


async def start(peer: Wire, tool: str, /, **arguments: Any) -> str:
    """Call a tool as a task, and return the id of the task."""
    params: dict[str, Any] = {"name": tool, "arguments": arguments}
    if peer.version == D:
        params["task"] = {}
    result = await peer.result_of("tools/call", params)
    task = result["task"] if peer.version == D else result
    assert task["status"] == "working"
    task_id: str = task["taskId"]
    return task_id


async def state_of(peer: Wire, task_id: str) -> Any:
    return await peer.result_of("tasks/get", {"taskId": task_id})


@pytest.mark.requirement("TX-6", "TX-9", "TX-10")
async def test_task_in_extension_result_is_inlined_in_state() -> None:
    """2026-07-28 has no `tasks/result`, and none of the older member names."""
    async with conversation(E) as peer:
        created = await peer.result_of(
            "tools/call", {"name": "research", "arguments": {"topic": "owls"}}
        )
        assert created["resultType"] == "task"
        assert created["ttlMs"] == 3_600_000
        assert created["pollIntervalMs"] == 500
        assert not {"task", "result", "error", "inputRequests", "ttl"} & created.keys()
        working = await state_of(peer, created["taskId"])
        assert working["status"] == "working"
        assert working["statusMessage"] == "Reading about owls"
        assert working["resultType"] == "complete"
        await either.sleep(11)
        done = await state_of(peer, created["taskId"])
        assert done["status"] == "completed"
        assert done["result"]["content"] == [{"type": "text", "text": "All about owls"}]


@pytest.mark.requirement("TSK-7", "TSK-14", "TSK-15", "TSK-20")
async def test_task_in_2025_11_25_result_is_fetched() -> None:
    async with conversation(D) as peer:
        task_id = await start(peer, "research", topic="owls")
        assert (await state_of(peer, task_id))["status"] == "working"
        result = await peer.result_of("tasks/result", {"taskId": task_id})
        assert result["content"] == [{"type": "text", "text": "All about owls"}]
        assert result["_meta"]["io.modelcontextprotocol/related-task"] == {"taskId": task_id}
        done = await state_of(peer, task_id)
        assert done["status"] == "completed"
        assert "result" not in done
        assert [task["taskId"] for task in (await peer.result_of("tasks/list"))["tasks"]] == [
            task_id
        ]


@pytest.mark.requirement("TX-10", "TX-14", "TX-13")
async def test_task_question_in_extension_is_answered_by_update() -> None:
    """Responses to unknown, answered or ended requests are accepted and change nothing."""
    async with conversation(E) as peer:
        task_id = await start(peer, "ask")
        await either.sleep(1)
        state = await state_of(peer, task_id)
        assert state["status"] == "input_required"
        assert "result" not in state
        ((key, request),) = state["inputRequests"].items()
        assert request["method"] == "elicitation/create"
        # An answer to an unknown request changes nothing.
        unknown = {"taskId": task_id, "inputResponses": {"other": {"action": "cancel"}}}
        await peer.result_of("tasks/update", unknown)
        assert (await state_of(peer, task_id)) == state
        responses = {key: {"action": "accept", "content": {"name": "Ada"}}, "other": {}}
        update = {"taskId": task_id, "inputResponses": responses}
        assert await peer.result_of("tasks/update", update) == {"resultType": "complete"} | (
            {"_meta": state["_meta"]} if "_meta" in state else {}
        )
        await either.sleep(1)
        done = await state_of(peer, task_id)
        assert done["result"]["content"][0]["text"] == "accept {'name': 'Ada'}"
        # An answer to a request that has one, and to a task that has ended, changes nothing.
        await peer.result_of("tasks/update", update)


@pytest.mark.requirement("TSK-17")
async def test_task_question_in_2025_11_25_comes_with_result() -> None:
    async with conversation(D) as peer:
        task_id = await start(peer, "ask")
        await either.sleep(1)
        assert (await state_of(peer, task_id))["status"] == "input_required"
        fetch = await peer.request("tasks/result", {"taskId": task_id})
        question = await peer.expect("elicitation/create")
        related = question["params"]["_meta"]["io.modelcontextprotocol/related-task"]
        assert related == {"taskId": task_id}
        await peer.answer(question, {"action": "decline"})
        result = await peer.expect_result(fetch)
        assert result["content"][0]["text"] == "decline None"


async def test_later_question_of_task_is_asked_while_an_earlier_one_is_open() -> None:
    async with conversation(D) as peer:
        task_id = await start(peer, "ask_twice")
        fetch = await peer.request("tasks/result", {"taskId": task_id})
        questions = [await peer.expect("elicitation/create") for _ in range(2)]
        texts = [each["params"]["message"] for each in questions]
        assert texts == ["Who is number 0?", "Who is number 1?"]
        for name, question in zip(("Bo", "Ada"), reversed(questions), strict=True):
            await peer.answer(question, {"action": "accept", "content": {"name": name}})
        result = await peer.expect_result(fetch)
        assert result["content"][0]["text"] == "Ada and Bo"


async def test_task_question_of_cancelled_fetch_is_asked_again() -> None:
    async with conversation(D) as peer:
        task_id = await start(peer, "ask")
        fetch = await peer.request("tasks/result", {"taskId": task_id})
        await peer.expect("elicitation/create")
        await peer.notify("notifications/cancelled", {"requestId": fetch["id"]})
        await peer.expect("notifications/cancelled")
        again = await peer.request("tasks/result", {"taskId": task_id})
        question = await peer.expect("elicitation/create")
        await peer.answer(question, {"action": "accept", "content": {"name": "Bo"}})
        result = await peer.expect_result(again)
        assert result["content"][0]["text"] == "accept {'name': 'Bo'}"


async def test_open_question_of_a_closed_connection_is_no_error(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async with conversation(D) as peer:
        task_id = await start(peer, "ask")
        await peer.request("tasks/result", {"taskId": task_id})
        await peer.expect("elicitation/create")
    assert not caplog.records


async def test_error_instead_of_an_answer_is_raised_in_the_task() -> None:
    error = {"code": -32050, "message": "nobody is here", "data": {"back": "at nine"}}
    async with conversation(D) as peer:
        task_id = await start(peer, "ask")
        fetch = await peer.request("tasks/result", {"taskId": task_id})
        question = await peer.expect("elicitation/create")
        await peer.send({"jsonrpc": "2.0", "id": question["id"], "error": error})
        raised = await peer.expect_error(fetch, -32050)
    text = "the client refused elicitation/create: nobody is here"
    assert raised == error | {"message": text}


async def test_invalid_answer_to_a_task_question_is_no_refusal() -> None:
    """The handler gets the same error as that of an ordinary call."""
    async with conversation(D) as peer:
        errors = []
        fetch = "tasks/result", {"taskId": await start(peer, "ask")}
        for method, params in (fetch, ("tools/call", {"name": "by_hand"})):
            request = await peer.request(method, params)
            question = await peer.expect("elicitation/create")
            await peer.answer(question, {"action": "perhaps"})
            errors.append(await peer.expect_error(request, -32603))
    assert errors[0] == errors[1]
    assert errors[0]["message"].startswith("the result of elicitation/create is invalid: ")


async def test_question_of_a_task_stays_open_while_the_server_stops() -> None:
    """The client isn't asked any more, so the handler must not see an answer."""
    server = Server("lab")
    outcomes: list[object] = []

    @server.tool(task="required")
    async def ask_late(context: Context) -> None:
        """Ask for a name after two seconds."""
        await either.sleep(2)
        try:
            outcomes.append(await context.elicit("Who?", FORM))
        except McpError as exc:
            outcomes.append(exc)

    client_end, server_end = either.memory_pair()
    stop = either.Event()
    async with either.open_nursery() as nursery:
        nursery.start_soon(partial(either.serve_stream, server, server_end, stop=stop, grace=5.0))
        peer = TaskPeer(client_end, D)
        await peer.open_as_client()
        fetch = await peer.request("tasks/result", {"taskId": await start(peer, "ask_late")})
        await either.sleep(1)
        stop.set()
        began = either.current_time()
        await peer.expect_error(fetch, -32000)
        assert either.current_time() - began == pytest.approx(5)
    assert not outcomes


async def test_task_question_is_asked_again_soon_after_its_client_has_stopped_reading(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """No event says so: the other `tasks/result` looks every five seconds. That is no error."""
    async with conversation(D) as peer:
        task_id = await start(peer, "ask")
        await peer.request("tasks/result", {"taskId": task_id})
        await peer.expect("elicitation/create")
        await peer.request("tasks/result", {"taskId": task_id})
        await either.sleep(7)
        monkeypatch.setattr(TaskQuestion, "reachable", False)
        stopped = either.current_time()
        methods = {(await peer.receive())["method"] for _ in range(2)}
        assert methods == {"elicitation/create", "notifications/cancelled"}
        assert either.current_time() - stopped < 5.1
    assert not caplog.records


@pytest.mark.parametrize(
    ("tool", "arguments", "made"),
    [("research", {"topic": "owls"}, 1), ("fail", {"how": "tool"}, 0)],
)
async def test_task_has_a_context_only_if_its_function_wants_one(
    tool: str, arguments: dict[str, Any], made: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    contexts: list[Context] = []

    def make(*words: Any) -> Context:
        contexts.append(Context(*words))
        return contexts[-1]

    monkeypatch.setattr(_running, "Context", make)
    async with conversation(E) as peer:
        await start(peer, tool, **arguments)
        assert len(contexts) == made


@pytest.mark.requirement("TSK-21", "TSK-11", "TX-17")
@pytest.mark.parametrize("version", [D, E])
async def test_task_cancelled_stays_cancelled(version: str) -> None:
    """A second cancellation is an error in 2025-11-25 only."""
    async with conversation(version) as peer:
        task_id = await start(peer, "research", topic="owls")
        answer = await peer.result_of("tasks/cancel", {"taskId": task_id})
        if version == D:
            assert answer["status"] == "cancelled"
        else:
            assert "status" not in answer
        await either.sleep(20)
        assert (await state_of(peer, task_id))["status"] == "cancelled"
        again = await peer.request("tasks/cancel", {"taskId": task_id})
        if version == D:
            await peer.expect_error(again, -32602)
            await peer.expect_error(await peer.request("tasks/result", {"taskId": task_id}), -32603)
        else:
            await peer.expect_result(again)


@pytest.mark.requirement("TSK-23", "TX-11", "TSK-14")
@pytest.mark.parametrize("how", ["tool", "bug"])
async def test_task_with_error_result_fails_in_2025_11_25_only(how: str) -> None:
    async with conversation(E) as peer:
        task_id = await start(peer, "fail", how=how)
        await either.sleep(1)
        state = await state_of(peer, task_id)
        assert state["status"] == "completed"
        assert state["result"]["isError"] is True
    async with conversation(D) as peer:
        task_id = await start(peer, "fail", how=how)
        assert (await peer.result_of("tasks/result", {"taskId": task_id}))["isError"] is True
        state = await state_of(peer, task_id)
        assert state["status"] == "failed"
        assert state["statusMessage"]


@pytest.mark.requirement("TSK-14", "TSK-23", "TX-10")
async def test_task_with_json_rpc_error_fails() -> None:
    async with conversation(E) as peer:
        task_id = await start(peer, "fail", how="rpc")
        await either.sleep(1)
        state = await state_of(peer, task_id)
        assert state["status"] == "failed"
        assert state["error"] == {"code": -32050, "message": "broken", "data": {"part": "door"}}
        assert "result" not in state
    async with conversation(D) as peer:
        task_id = await start(peer, "fail", how="rpc")
        fetch = await peer.request("tasks/result", {"taskId": task_id})
        assert (await peer.expect_error(fetch, -32050))["message"] == "broken"


@pytest.mark.requirement("TSK-22", "TX-19", "TX-22")
@pytest.mark.parametrize("version", [D, E])
@pytest.mark.parametrize("method", ["tasks/get", "tasks/cancel", "tasks/result", "tasks/update"])
async def test_task_unknown_id_is_invalid_params(version: str, method: str) -> None:
    if (version, method) in {(D, "tasks/update"), (E, "tasks/result")}:
        code = -32601
    else:
        code = -32602
    async with conversation(version) as peer:
        params = {"taskId": UNKNOWN, "inputResponses": {}}
        await peer.expect_error(await peer.request(method, params), code)


@pytest.mark.parametrize(
    ("version", "wish", "kept"),
    [
        (D, {}, 20_000),
        (D, {"ttl": 5_000}, 5_000),
        (D, {"ttl": 5_000.6}, 5_001),
        (D, {"ttl": None}, 60_000),
        (D, {"ttl": 10**400}, 60_000),
        (D, {"ttl": 0}, 500),
        (E, {}, 20_000),
        (E, {"ttl": 5_000}, 20_000),
        (E, {"ttl": "soon"}, 20_000),
    ],
)
async def test_task_is_kept_as_long_as_its_client_wishes(
    version: str, wish: Any, kept: int
) -> None:
    """Up to the limit; in the extension the server decides alone."""
    server = Server("lab", tasks=Tasks(limits=TaskLimits(ttl=30.0, max_ttl=60.0)))

    @server.tool(task=TaskOptions(ttl=20.0))
    async def wait() -> str:
        """Wait."""
        await either.sleep(1)
        return ""

    async with conversation(version, server) as peer:
        created = await peer.result_of("tools/call", {"name": "wait", "task": wish})
        task = created["task"] if version == D else created
        assert task["ttl" if version == D else "ttlMs"] == kept


async def test_task_over_its_time_to_live_is_forgotten() -> None:
    # The wall clock does not jump with trio's, so the task is made to expire at once.
    server = make_server(tasks=Tasks(limits=TaskLimits(ttl=0.001, poll_interval=0.001)))
    async with conversation(E, server) as peer:
        created = await peer.result_of(
            "tools/call", {"name": "research", "arguments": {"topic": "owls"}}
        )
        with either.fail_after(100):
            while True:
                request = await peer.request("tasks/get", {"taskId": created["taskId"]})
                answer = await peer.receive()
                assert answer["id"] == request["id"]
                if "error" in answer:
                    break
        assert answer["error"]["code"] == -32602


async def test_record_over_its_time_to_live_is_removed_without_a_request(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Clients go away. The records of their tasks must not fill the memory."""
    now = 1_800_000_000.0
    monkeypatch.setattr("time.time", lambda: now)
    store = MemoryTaskStore()
    async with conversation(E, make_server(tasks=Tasks(store=store))) as peer:
        await start(peer, "research", topic="owls")
        await either.sleep(100)
        assert len(store._records) == 1
        now += 3_600
        await either.sleep(11)
        assert not store._records


@pytest.mark.requirement("TSK-1")
async def test_server_declares_tasks_if_a_tool_runs_as_one() -> None:
    declared: Any = {"list": {}, "cancel": {}, "requests": {"tools": {"call": {}}}}
    for server, expected in ((make_server(), declared), (Server("none"), None)):
        client_end, server_end = either.memory_pair()
        async with either.open_nursery() as nursery:
            nursery.start_soon(either.serve_stream, server, server_end)
            peer = TaskPeer(client_end, D)
            params = {
                "protocolVersion": D,
                "capabilities": {},
                "clientInfo": {"name": "c", "version": "1"},
            }
            opened = await peer.result_of("initialize", params)
            assert opened["capabilities"].get("tasks") == expected
            await peer.aclose()


@pytest.mark.requirement("TSK-7", "TSK-10")
async def test_task_in_2025_11_25_is_created_at_once() -> None:
    """Although the tool would rather answer directly: the client has asked for a task."""
    async with conversation(D) as peer:
        ids = {await start(peer, "sometimes", seconds=0) for _ in range(5)}
        assert len(ids) == 5
        assert {len(task_id) for task_id in ids} == {32}


@pytest.mark.requirement("TSK-27")
@pytest.mark.parametrize("version", [D, E])
async def test_task_has_a_text_for_the_model_meanwhile(version: str) -> None:
    server = Server("lab")

    @server.tool(task=TaskOptions(meanwhile="Tell the user to wait."))
    async def work() -> None:
        """Work."""

    async with conversation(version, server) as peer:
        params: dict[str, Any] = {"name": "work", "task": {}}
        created = await peer.result_of("tools/call", params)
        text = created.get("_meta", {}).get("io.modelcontextprotocol/model-immediate-response")
        assert text == ("Tell the user to wait." if version == D else None)


async def test_call_shorter_than_detach_stays_a_call() -> None:
    async with conversation(E) as peer:
        params = {"name": "sometimes", "arguments": {"seconds": 0.5}}
        result = await peer.result_of("tools/call", params)
        assert result["content"][0]["text"] == "call"


async def test_call_longer_than_detach_becomes_a_task() -> None:
    async with conversation(E) as peer:
        task_id = await start(peer, "sometimes", seconds=5)
        await either.sleep(10)
        assert (await state_of(peer, task_id))["result"]["content"][0]["text"] == "task"


@pytest.mark.requirement("TX-8")
async def test_call_detached_by_hand_asks_in_the_result_first() -> None:
    """Before it is a task, the call can only ask the client that made it."""
    async with conversation(E) as peer:
        first = await peer.result_of("tools/call", {"name": "by_hand"})
        assert first["resultType"] == "input_required"
        assert "taskId" not in first
        responses = {
            key: {"action": "accept", "content": {"name": "Ada"}} for key in first["inputRequests"]
        }
        second = await peer.result_of(
            "tools/call",
            {
                "name": "by_hand",
                "inputResponses": responses,
                "requestState": first["requestState"],
            },
        )
        assert second["resultType"] == "task"
        assert not {"requestState", "inputRequests"} & second.keys()
        await either.sleep(1)
        state = await state_of(peer, second["taskId"])
        assert state["result"]["content"][0]["text"] == "Ada True"


@pytest.mark.requirement("TSK-4", "TSK-5", "TX-5")
async def test_required_task_without_tasks_is_refused() -> None:
    async with conversation(D) as peer:
        await peer.expect_error(await peer.request("tools/call", {"name": "ask"}), -32601)
        wrong = {"name": "plain", "task": {}}
        await peer.expect_error(await peer.request("tools/call", wrong), -32601)
    async with conversation(E) as peer:
        peer.meta[CAPABILITIES] = {}
        error = await peer.expect_error(await peer.request("tools/call", {"name": "ask"}), -32021)
        assert error["data"] == {"requiredCapabilities": {"extensions": {EXTENSION: {}}}}
    async with conversation("2025-06-18") as peer:
        await peer.expect_error(await peer.request("tools/call", {"name": "ask"}), -32601)


@pytest.mark.requirement("TX-2")
async def test_optional_task_without_tasks_is_a_call() -> None:
    async with conversation(E) as peer:
        peer.meta[CAPABILITIES] = {}
        result = await peer.result_of(
            "tools/call", {"name": "research", "arguments": {"topic": "owls"}}
        )
        assert result["content"][0]["text"] == "All about owls"


@pytest.mark.requirement("TSK-25")
async def test_tasks_of_one_owner_above_limit_are_refused() -> None:
    server = make_server(tasks=Tasks(limits=TaskLimits(per_principal=2)))
    async with conversation(E, server) as peer:
        for _ in range(2):
            await start(peer, "research", topic="owls")
        params = {"name": "research", "arguments": {"topic": "owls"}}
        error = await peer.expect_error(await peer.request("tools/call", params))
        assert error["code"] == 429
        assert "limit" in error["message"]


async def test_fetches_that_wait_above_limit_are_refused() -> None:
    """Each keeps a task of the server waiting. A client can poll instead."""
    server = make_server(tasks=Tasks(limits=TaskLimits(waiting=2)))
    async with conversation(D, server) as peer:
        params = {"taskId": await start(peer, "research", topic="owls")}
        fetches = [await peer.request("tasks/result", params) for _ in range(3)]
        answered: dict[int, Any] = {}
        while len(answered) < 3:  # which of them is refused is left to the scheduler
            message = await peer.receive()
            if "method" not in message:
                answered[message["id"]] = message
        assert answered.keys() == {fetch["id"] for fetch in fetches}
        (error,) = (each["error"] for each in answered.values() if "error" in each)
        assert error["message"] == (
            "2 requests for results of tasks wait already: poll with tasks/get"
        )
        await peer.result_of("tasks/result", params)


async def test_task_ends_with_the_server() -> None:
    ended: list[str] = []
    server = Server("lab")

    @server.tool(task="optional")
    async def wait() -> None:
        """Wait."""
        try:
            await either.sleep_forever()
        finally:
            ended.append("cancelled")

    async with conversation(E, server) as peer:
        await start(peer, "wait")
    assert ended == ["cancelled"]


async def test_server_in_this_process_ends_without_waiting_for_its_tasks() -> None:
    """A durable store would give them the server's grace, but here no process ends."""

    class Durable(MemoryTaskStore):
        durable = True

    server = Server("lab", tasks=Tasks(store=Durable()))

    @server.tool(task="optional")
    async def wait() -> None:
        """Wait."""
        await either.sleep_forever()

    async with either.connect(server, versions=[E], tasks=True) as client:
        await client.start_tool("wait")
        ended = either.current_time()
    assert either.current_time() - ended < 0.5


async def test_wait_of_the_runtime_of_tasks_returns_whether_the_event_is_set() -> None:
    async with either.open_task_runtime() as runtime:
        event = runtime.new_event()
        started = either.current_time()
        assert await runtime.wait(event, 5) is False
        assert either.current_time() - started == pytest.approx(5)
        event.set()
        assert await runtime.wait(event, 5) is True
        assert await runtime.wait(event) is True


@pytest.mark.parametrize("warns", [True, False])
async def test_task_that_ignores_its_cancellation_is_named_unless_a_deadline_does_so(
    warns: bool, caplog: pytest.LogCaptureFixture
) -> None:
    """The last deadline of a process has a line of its own on stderr, and one is enough."""
    server = Server("lab")

    @server.tool(task="required")
    async def stubborn() -> None:
        """Take as long as it takes."""
        await either.shielded(either.sleep(18))

    async with either.open_server(server, warns=warns) as served:
        client_end, server_end = either.memory_pair()
        async with either.open_nursery() as nursery:
            nursery.start_soon(either.serve_conversation, served, server_end)
            peer = TaskPeer(client_end, D)
            await peer.open_as_client()
            await start(peer, "stubborn")
            await peer.aclose()
    lines = [text for text in caplog.messages if text.startswith("tool 'stubborn' ignored the")]
    assert len(lines) == warns


@pytest.mark.usefixtures("waits_for_threads")
async def test_task_left_at_shutdown_runs_again_when_the_next_server_starts(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """The SQLite file outlives both servers, and the reference works with the second one."""

    def make_library(seconds: float) -> Server:
        server = Server("restarted", tasks=Tasks(store=SqliteTaskStore(tmp_path / "tasks.db")))

        @server.tool(task=TaskOptions(rerun=True))
        async def copy(name: str) -> str:
            """Copy a book."""
            await either.sleep(seconds)
            return f"A copy of {name}"

        return server

    with either.fail_after(5):  # half of the interval at which leases are looked at
        async with either.connect(make_library(60), versions=[E], tasks=True) as client:
            reference = (await client.start_tool("copy", {"name": "Emma"})).reference
        async with either.connect(make_library(0), versions=[E], tasks=True) as client:
            result = await (await client.task(reference)).result()
    assert result.text == "A copy of Emma"
    assert not caplog.records


@pytest.mark.parametrize("how", ["notify", "request"])
async def test_task_sends_no_message_of_an_extension(how: str) -> None:
    """Its client's connection may be gone, or be another one's by now."""
    method = "notifications/inbox/new" if how == "notify" else "inbox/open"
    server = make_server(extensions={"com.example/inbox": {}})

    @server.tool(task="required")
    async def tell(context: Context) -> str:
        """Send a message of the extension."""
        with pytest.raises(LocalProtocolError) as caught:
            await getattr(context, how)(method, {})
        return str(caught.value)

    async with conversation(E, server) as peer:
        task_id = await start(peer, "tell")
        await either.sleep(1)
        state = await state_of(peer, task_id)
    assert state["result"]["content"] == [
        {"type": "text", "text": f"{method} cannot be sent: a task has no connection"}
    ]
