"""Tasks that a client runs for its server (2025-11-25), seen from the wire and from both ends."""

from __future__ import annotations

from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import pytest

from mcp_core import McpError
from mcp_core import types as t
from mcp_core.drivers import client_config
from mcp_core.registry import Context, Server
from tests.harness import either
from tests.harness.wire.lines import Wire

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

pytestmark = pytest.mark.usefixtures("each_driver")

D = "2025-11-25"
E = "2026-07-28"
RELATED = "io.modelcontextprotocol/related-task"
FORM = {"type": "object", "properties": {"name": {"type": "string"}}}
QUESTION = {"message": "Who?", "requestedSchema": FORM}
UNKNOWN = "0" * 32


async def fill_in(params: t.ElicitParams) -> Any:
    await either.sleep(100)
    if params.message == "refuse":
        raise McpError(-1, "not now")
    return {"name": "Ada"}


async def sample(params: t.CreateMessageParams) -> t.CreateMessageResult:
    return t.CreateMessageResult(role="assistant", content=t.TextContent("hello"), model="m")


@asynccontextmanager
async def served(**options: Any) -> AsyncIterator[tuple[Any, Wire]]:
    """Connect a client that hosts tasks with a server that the test plays."""
    client_end, server_end = either.memory_pair()
    options = {"on_elicit": fill_in, "on_sample": sample, "host_tasks": True, **options}
    peer = Wire(server_end, D)
    opened = either.Event()

    async def open_server() -> None:
        await peer.open_as_server()
        opened.set()

    async with either.open_nursery() as nursery:
        nursery.start_soon(open_server)
        async with either.connect_stream(client_end, versions=[D], **options) as client:
            await opened.wait()
            yield client, peer


async def start(peer: Wire, **more: Any) -> str:
    created = await peer.result_of("elicitation/create", {**QUESTION, "task": {}, **more})
    assert created["task"]["status"] == "working"
    task_id: str = created["task"]["taskId"]
    return task_id


async def state_of(peer: Wire, task_id: str) -> Any:
    return await peer.result_of("tasks/get", {"taskId": task_id})


def test_host_tasks_without_callbacks_raises() -> None:
    with pytest.raises(ValueError, match="host_tasks needs on_elicit or on_sample"):
        client_config({"host_tasks": True})


async def test_hosted_task_is_declared_for_its_callbacks() -> None:
    """Only what a callback can answer may be declared, and nothing without `host_tasks`."""
    declared: list[t.TasksCapability | None] = []
    server = Server("asks")

    @server.tool
    def look(context: Context) -> None:
        """Look at the client."""
        assert isinstance(context.peer.capabilities, t.ClientCapabilities)
        declared.append(context.peer.capabilities.tasks)

    async with either.connect(server, versions=[D], on_sample=sample, host_tasks=True) as client:
        await client.call_tool("look")
    async with either.connect(server, versions=[D], on_sample=sample) as client:
        await client.call_tool("look")
    requests = t.TaskRequests(sampling=t.SamplingTasks(create_message={}))
    assert declared == [t.TasksCapability(list={}, cancel={}, requests=requests), None]


async def test_hosted_task_gives_its_response_when_it_is_fetched() -> None:
    """`tasks/result` may come before the user has answered: it waits, and works again later."""
    async with served() as (_, peer):
        task_id = await start(peer)
        assert (await state_of(peer, task_id))["status"] == "working"
        assert [task["taskId"] for task in (await peer.result_of("tasks/list"))["tasks"]] == [
            task_id
        ]
        fetch = await peer.request("tasks/result", {"taskId": task_id})
        result = await peer.expect_result(fetch)
        assert result["content"] == {"name": "Ada"}
        assert result["_meta"] == {RELATED: {"taskId": task_id}}
        status = await peer.expect("notifications/tasks/status")
        assert status["params"]["status"] == "completed"
        assert (await state_of(peer, task_id))["status"] == "completed"
        # Again, and by a request that has not waited.
        assert (await peer.result_of("tasks/result", {"taskId": task_id}))["action"] == "accept"


async def test_hosted_task_that_is_refused_fails() -> None:
    async with served() as (_, peer):
        task_id = await start(peer, message="refuse")
        fetch = await peer.request("tasks/result", {"taskId": task_id})
        assert (await peer.expect_error(fetch, -1))["message"] == "not now"
        await peer.expect("notifications/tasks/status", None)
        assert (await state_of(peer, task_id))["status"] == "failed"


async def test_hosted_task_cancelled_stays_cancelled() -> None:
    async with served() as (_, peer):
        task_id = await start(peer)
        waiting = await peer.request("tasks/result", {"taskId": task_id})
        cancel = await peer.request("tasks/cancel", {"taskId": task_id})
        await peer.expect_error(waiting, -32603)
        assert (await peer.expect("notifications/tasks/status"))["params"]["status"] == "cancelled"
        assert (await peer.expect_result(cancel))["status"] == "cancelled"
        await either.sleep(200)
        assert (await state_of(peer, task_id))["status"] == "cancelled"
        await peer.expect_error(await peer.request("tasks/cancel", {"taskId": task_id}), -32602)


async def test_hosted_task_fetch_that_is_cancelled_leaves_the_task() -> None:
    async with served() as (_, peer):
        task_id = await start(peer)
        fetch = await peer.request("tasks/result", {"taskId": task_id})
        await peer.notify("notifications/cancelled", {"requestId": fetch["id"]})
        assert (await peer.result_of("tasks/get", {"taskId": task_id}))["status"] == "working"
        again = await peer.request("tasks/result", {"taskId": task_id})
        assert (await peer.expect_result(again))["action"] == "accept"


@pytest.mark.parametrize("method", ["tasks/get", "tasks/result", "tasks/cancel"])
async def test_hosted_task_unknown_id_is_invalid_params(method: str) -> None:
    async with served() as (_, peer):
        await peer.expect_error(await peer.request(method, {"taskId": UNKNOWN}), -32602)


async def test_hosted_task_unknown_cursor_is_invalid_params() -> None:
    async with served() as (_, peer):
        await peer.expect_error(await peer.request("tasks/list", {"cursor": "2"}), -32602)


async def test_hosted_tasks_above_limit_are_refused() -> None:
    async with served() as (_, peer):
        for _ in range(64):
            await start(peer)
        one_more = await peer.request("elicitation/create", {**QUESTION, "task": {}})
        error = await peer.expect_error(one_more)
        assert "limit" in error["message"]


async def test_hosted_task_fetches_that_wait_above_limit_are_refused() -> None:
    async with served() as (_, peer):
        params = {"taskId": await start(peer)}
        fetches = [await peer.request("tasks/result", params) for _ in range(17)]
        error = await peer.expect_error(fetches[16])
        assert error["message"] == "16 requests for this result wait already"
        for fetch in fetches[:16]:
            await peer.expect_result(fetch)


async def test_client_without_hosting_ignores_task() -> None:
    async with served(host_tasks=False) as (_, peer):
        result = await peer.result_of("elicitation/create", {**QUESTION, "task": {}})
        assert result["content"] == {"name": "Ada"}
        await peer.expect_error(await peer.request("tasks/get", {"taskId": UNKNOWN}), -32601)


@pytest.mark.parametrize("version", [D, E])
@pytest.mark.parametrize("host_tasks", [True, False])
async def test_request_with_task_ttl_is_answered_by_every_client(
    version: str, host_tasks: bool
) -> None:
    """The author need not know whether the client runs tasks: the same code works with both."""
    server = Server("asks")
    sent: list[bytes] = []

    @server.tool
    async def ask(context: Context) -> str:
        """Ask the user and the model."""
        answer = await context.elicit("Who?", FORM, task_ttl=3600)
        message = await context.sample("hi", max_tokens=5, task_ttl=3600)
        return f"{getattr(answer, 'data', None)} {message.text}"

    async with either.connect(
        server,
        versions=[version],
        on_elicit=fill_in,
        on_sample=sample,
        host_tasks=host_tasks,
        trace=lambda direction, line: sent.append(line),
    ) as client:
        # The user takes longer than the timeout, which is paused while the server waits for them.
        result = await client.call_tool("ask", timeout=5)
    assert result.content == [t.TextContent("{'name': 'Ada'} hello")]
    polled = any(b'"tasks/get"' in line for line in sent)
    assert polled is (host_tasks and version == D)


async def test_request_with_task_ttl_that_is_refused_raises() -> None:
    server = Server("asks")

    @server.tool
    async def ask(context: Context) -> str:
        """Ask the user."""
        try:
            await context.elicit("refuse", FORM, task_ttl=60)
        except McpError as exc:
            return str(exc)
        return "answered"

    async with either.connect(server, versions=[D], on_elicit=fill_in, host_tasks=True) as client:
        result = await client.call_tool("ask")
    assert "not now" in str(result.content)


@pytest.mark.parametrize(
    ("answer", "text"),
    [
        ({"action": "maybe"}, "the answer to elicitation/create is invalid: "),
        ({"action": "accept", "content": {"name": 5}}, "the answer to elicitation/create does not"),
        ({"action": "decline"}, "decline"),
    ],
)
async def test_response_of_a_clients_task_is_checked_as_any_other(answer: Any, text: str) -> None:
    """A wrong one is an error that the handler can catch."""
    server = Server("asks")

    @server.tool
    async def ask(context: Context) -> str:
        """Ask the user."""
        try:
            return (await context.elicit("Who?", FORM, task_ttl=60)).action
        except McpError as exc:
            return str(exc)

    client_end, server_end = either.memory_pair()
    async with either.open_nursery() as nursery:
        nursery.start_soon(either.serve_stream, server, server_end)
        peer = Wire(client_end, D)
        runs: Any = {"requests": {"elicitation": {"create": {}}}}
        await peer.open_as_client(capabilities={"elicitation": {}, "tasks": runs})
        call = await peer.request("tools/call", {"name": "ask", "arguments": {}})
        now = "2026-11-23T00:00:00Z"
        state = {"taskId": "T", "status": "completed", "ttl": None}
        state |= {"createdAt": now, "lastUpdatedAt": now}
        await peer.answer(await peer.expect("elicitation/create"), {"task": state})
        await peer.answer(await peer.expect("tasks/result"), answer)
        (content,) = (await peer.expect_result(call))["content"]
        assert content["text"].startswith(text)
        await peer.aclose()


async def test_request_with_task_ttl_given_up_cancels_the_task() -> None:
    """The handler stops waiting after three seconds; the client's dialog must not stay open."""
    server = Server("asks")
    sent: list[bytes] = []

    @server.tool
    async def ask(context: Context) -> str:
        """Ask the user, for three seconds."""
        with either.move_on_after(3):
            await context.elicit("Who?", FORM, task_ttl=60)
        return "gave up"

    async with either.connect(
        server,
        versions=[D],
        on_elicit=fill_in,
        host_tasks=True,
        trace=lambda direction, line: sent.append(line),
    ) as client:
        await client.call_tool("ask")
        await either.sleep(1)
    assert sum(b'"tasks/cancel"' in line for line in sent if b'"method"' in line) == 1


@pytest.mark.parametrize("ttl", [0, -1])
async def test_request_with_task_ttl_out_of_range_raises(ttl: float) -> None:
    server = Server("asks")
    raised: list[Exception] = []

    @server.tool
    async def ask(context: Context) -> None:
        """Ask the user."""
        try:
            await context.elicit("Who?", FORM, task_ttl=ttl)
        except ValueError as exc:
            raised.append(exc)

    async with either.connect(server, versions=[D], on_elicit=fill_in) as client:
        await client.call_tool("ask")
    assert "task_ttl" in str(raised)


# -- Expiry ----------------------------------------------------------------------------------------


class Wall:
    """A wall clock that the test sets."""

    now = 1_800_000_000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def wall(monkeypatch: pytest.MonkeyPatch) -> Wall:
    found = Wall()
    monkeypatch.setattr("time.time", found)
    return found


@pytest.mark.parametrize("method", ["tasks/get", "tasks/result", "tasks/cancel"])
async def test_hosted_task_is_forgotten_after_its_time(method: str, wall: Wall) -> None:
    """Its callback is stopped, and a request for the result gets an error. Other tasks go on."""
    async with served() as (_, peer):
        short = await start(peer, task={"ttl": 60_000})
        other = await start(peer)
        fetch = await peer.request("tasks/result", {"taskId": short})
        wall.now += 59
        assert (await state_of(peer, short))["status"] == "working"
        wall.now += 1
        late = await peer.request(method, {"taskId": short})
        assert "any more" in (await peer.expect_error(fetch, -32602))["message"]
        await peer.expect_error(late, -32602)
        await either.sleep(200)
        status = await peer.expect("notifications/tasks/status")
        assert (status["params"]["taskId"], status["params"]["status"]) == (other, "completed")
        assert await peer.is_silent()


async def test_hosted_tasks_that_have_expired_are_not_listed(wall: Wall) -> None:
    async with served() as (_, peer):
        await start(peer)
        wall.now += 599
        assert len((await peer.result_of("tasks/list"))["tasks"]) == 1
        wall.now += 1
        assert (await peer.result_of("tasks/list"))["tasks"] == []


async def test_hosted_tasks_that_have_expired_do_not_count(wall: Wall) -> None:
    async with served() as (_, peer):
        for _ in range(64):
            await start(peer)
        wall.now += 600
        await start(peer)


async def test_hosted_task_that_ends_after_its_time_is_forgotten(wall: Wall) -> None:
    async with served() as (_, peer):
        fetch = await peer.request("tasks/result", {"taskId": await start(peer)})
        wall.now += 600
        await either.sleep(200)
        await peer.expect_error(fetch, -32602)
        assert await peer.is_silent()
