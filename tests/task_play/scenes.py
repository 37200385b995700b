"""The play of a client with the lab, one scene after the other, for each wire."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import pytest

from tests.task_play.wires import D, E, RpcError, WireClient

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence

    Scene = Callable[[WireClient], Awaitable[None]]

__all__ = ["SCENES", "SCENES_OF_A_TRANSPORT", "accept", "play"]

RELATED: Final = "io.modelcontextprotocol/related-task"


async def play(client: WireClient, scenes: Sequence[Scene]) -> None:
    """Play scenes one after the other. An exception names the scene."""
    for scene in scenes:
        client.asked.clear()
        client.notifications.clear()
        client.answer = accept
        await client.call("journal")
        try:
            await scene(client)
        except Exception as exc:
            exc.add_note(f"in {scene.__name__}, revision {client.version}")
            raise


def accept(request: Any) -> Any:
    match request["method"]:
        case "elicitation/create":
            return {"action": "accept", "content": {"name": "Ada"}}
        case "roots/list":
            return {"roots": [{"uri": "file:///a"}, {"uri": "file:///b"}]}
        case "sampling/createMessage":
            last = request["params"]["messages"][-1]
            if last["role"] == "user" and isinstance(last["content"], list):
                (used,) = last["content"]
                return _sampled({"type": "text", "text": used["content"][0]["text"]})
            use = {"type": "tool_use", "id": "1", "name": "add", "input": {"a": 1, "b": 2}}
            return _sampled(use, stop="toolUse")
        case method:
            raise AssertionError(f"the server asked for {method}")


def _sampled(content: Any, *, stop: str = "endTurn") -> Any:
    return {"role": "assistant", "content": content, "model": "m", "stopReason": stop}


async def _code(awaitable: Awaitable[Any]) -> int:
    with pytest.raises(RpcError) as caught:
        await awaitable
    code: int = caught.value.code
    return code


async def task_runs_to_its_end(client: WireClient) -> None:
    created = await client.create_task("work", held=True)
    assert created["status"] == "working"
    state = await client.state(created["taskId"])
    assert (state["status"], state["taskId"]) == ("working", created["taskId"])
    await client.go()
    assert await client.text(created["taskId"]) == "called by work"
    state = await client.state(created["taskId"])
    assert (state["status"], "result" in state) == ("completed", client.version == E)
    # The middleware ran once, and saw the end of the work.
    assert await client.call("journal") == "work, after work"


async def task_is_notified_of(client: WireClient) -> None:
    task_id = await client.create("work", held=True)
    if client.version == E:
        client.listen(task_id)
        await client.until_notified(lambda message: message["method"].endswith("acknowledged"))
        await client.go()
        last = await client.until_notified(
            lambda message: message["params"].get("status") == "completed"
        )
        assert last["method"] == "notifications/tasks"
        assert last["params"]["result"]["content"][0]["text"] == "called by work"
        methods = {message["method"] for message in client.notifications}
        assert methods == {"notifications/subscriptions/acknowledged", "notifications/tasks"}
        return
    await client.go()
    last = await client.until_notified(
        lambda message: message["params"].get("status") == "completed"
    )
    assert last["method"] == "notifications/tasks/status"
    progress = await client.until_notified(
        lambda message: message["method"] == "notifications/progress"
    )
    assert progress["params"]["progressToken"] == "work"
    assert progress["params"]["_meta"][RELATED] == {"taskId": task_id}


async def task_asks_its_client(client: WireClient) -> None:
    task_id = await client.create("ask", times=2)
    assert await client.text(task_id) == "Ada and Ada"
    assert [each["method"] for each in client.asked] == ["elicitation/create"] * 2
    if client.version == D:
        assert all(each["params"]["_meta"][RELATED] == {"taskId": task_id} for each in client.asked)


async def task_asks_too_often(client: WireClient) -> None:
    task_id = await client.create("ask", times=5)
    outcome = await client.outcome(task_id)
    assert outcome["isError"] is True
    assert len(client.asked) == 4


async def question_is_withdrawn_by_its_handler(client: WireClient) -> None:
    task_id = await client.create("impatient")
    first = await client.until(task_id, "input_required")
    await client.go()
    again = await client.until(task_id, "working")
    await client.go()
    second = await client.until(task_id, "input_required")
    if client.version == E:
        (old,), (new,) = first["inputRequests"], second["inputRequests"]
        assert old != new
        assert "inputRequests" not in again
        late = {"taskId": task_id, "inputResponses": {old: accept(client_question)}}
        await client.request("tasks/update", late)  # changes nothing
    client.answer = lambda request: {"action": "decline"}
    assert await client.text(task_id) == "decline the second"


client_question: Final = {"method": "elicitation/create"}


async def task_uses_the_clients_model(client: WireClient) -> None:
    assert await client.text(await client.create("model")) == "3"


async def task_asks_for_roots(client: WireClient) -> None:
    assert await client.text(await client.create("places")) == "file:///a, file:///b"


async def task_returns_its_question(client: WireClient) -> None:
    assert await client.text(await client.create("returned")) == "kept: accept"
    assert "returned, after returned, returned, after returned" in await client.call("journal")


async def task_wants_a_page_to_be_visited(client: WireClient) -> None:
    task_id = await client.create("visit")
    if client.version == D:
        with pytest.raises(RpcError) as caught:
            await client.outcome(task_id)
        assert caught.value.code == -32042
        assert caught.value.data is not None
        assert caught.value.data["elicitations"][0]["url"] == "https://example.com/login"
        assert (await client.state(task_id))["status"] == "failed"
        return
    client.answer = lambda request: {"action": "decline"}
    outcome = await client.outcome(task_id)
    assert outcome["isError"] is True
    assert "declined to visit" in outcome["content"][0]["text"]
    assert client.asked[0]["params"]["mode"] == "url"


async def handler_detaches_twice_at_once(client: WireClient) -> None:
    assert await client.text(await client.create("twins")) == "[True, True, True] True"


async def thread_runs_as_task(client: WireClient) -> None:
    task_id = await client.create("threaded")
    assert await client.text(task_id) == "threaded False"
    assert (await client.state(task_id))["status"] == "completed"


async def task_is_cancelled(client: WireClient) -> None:
    task_id = await client.create("wait")
    answer = await client.request("tasks/cancel", {"taskId": task_id})
    assert ("status" in answer) is (client.version == D)
    assert (await client.state(task_id))["status"] == "cancelled"
    if client.version == D:
        assert await _code(client.request("tasks/cancel", {"taskId": task_id})) == -32602
        assert await _code(client.outcome(task_id)) == -32603
    else:
        await client.request("tasks/cancel", {"taskId": task_id})
    await client.until_journal("cancelled")


async def result_is_too_large(client: WireClient) -> None:
    task_id = await client.create("large", size=30_000)
    with pytest.raises(RpcError, match="the limit is 20000"):
        await client.outcome(task_id)
    assert (await client.state(task_id))["status"] == "failed"


async def handler_fails(client: WireClient) -> None:
    for how in ("tool", "bug"):
        task_id = await client.create("fail", how=how)
        assert (await client.outcome(task_id))["isError"] is True
        status = (await client.state(task_id))["status"]
        assert status == ("failed" if client.version == D else "completed")
    task_id = await client.create("fail", how="rpc")
    with pytest.raises(RpcError) as caught:
        await client.outcome(task_id)
    assert (caught.value.code, caught.value.data) == (-32050, {"part": "door"})


async def time_to_live_is_wished(client: WireClient) -> None:
    if client.version == E:
        return
    day = 86_400_000
    for wish, kept in [(0, 500), (7_000, 7_000), (10**30, day), (10.0**15, day), (None, day)]:
        created = await client.create_task("work", task={"ttl": wish})
        assert created["ttl"] == kept
    assert (await client.create_task("work"))["ttl"] == 3_600_000
    wrong: Any
    for wrong in (-5, "long", True, {}):
        assert await _code(client.create("work", task={"ttl": wrong})) == -32602


async def ids_are_unknown(client: WireClient) -> None:
    methods = ["tasks/get", "tasks/cancel"]
    methods.append("tasks/update" if client.version == E else "tasks/result")
    for task_id in ("0" * 32, "", "ä", "x" * 10_000 if client.single_peer else "x" * 1000):
        for method in methods:
            params = {"taskId": task_id, "inputResponses": {}}
            if task_id == "ä" and client.version == E and not client.single_peer:
                continue  # no plain text of a header
            assert await _code(client.request(method, params)) == -32602
    absent = ["tasks/update"] if client.version == D else ["tasks/list", "tasks/result"]
    for method in absent:
        params = {"taskId": "t", "inputResponses": {}}
        assert await _code(client.request(method, params)) == -32601


async def tasks_are_listed(client: WireClient) -> None:
    if client.version == E:
        return
    task_id = await client.create("work")
    await client.outcome(task_id)
    listed = (await client.request("tasks/list"))["tasks"]
    assert task_id in [task["taskId"] for task in listed]
    assert await _code(client.request("tasks/list", {"cursor": "nowhere"})) == -32602


async def tasks_are_too_many(client: WireClient) -> None:
    async def create() -> None:
        for _ in range(200):
            await client.create("wait")

    with pytest.raises(RpcError, match="limit") as caught:
        await create()
    assert caught.value.code == (429 if client.version == E else -32000)


SCENES: Final[list[Scene]] = [
    task_runs_to_its_end,
    task_is_notified_of,
    task_asks_its_client,
    task_asks_too_often,
    question_is_withdrawn_by_its_handler,
    task_uses_the_clients_model,
    task_asks_for_roots,
    task_returns_its_question,
    task_wants_a_page_to_be_visited,
    handler_detaches_twice_at_once,
    thread_runs_as_task,
    task_is_cancelled,
    result_is_too_large,
    handler_fails,
    time_to_live_is_wished,
    ids_are_unknown,
    tasks_are_listed,
    tasks_are_too_many,
]
# Each kind of message crosses in one of them: notifications, questions, and a large result.
SCENES_OF_A_TRANSPORT: Final[list[Scene]] = [
    task_runs_to_its_end,
    task_is_notified_of,
    task_asks_its_client,
    task_asks_for_roots,
    task_wants_a_page_to_be_visited,
    task_is_cancelled,
    result_is_too_large,
]
