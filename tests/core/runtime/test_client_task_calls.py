"""The calls of a client that are about tasks: when a call asks for one, and how one is found."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from mcp_core import LocalProtocolError, PeerError
from mcp_core.runtime import InvalidTaskReference
from tests.core.runtime.client_tasks.test_poller import (
    OWLS,
    RESEARCH,
    answers,
    both_drivers,
    both_forms,
    listed,
)
from tests.harness.jsonrpc import D, E, Message
from tests.harness.messages.scripted_server import (
    CONTENT,
    EXTENSION,
    Failure,
    created,
    ended,
    state,
)

if TYPE_CHECKING:
    from tests.harness.messages.scripted_server import ClientPlay

NO_METHOD = Failure(-32601, "research runs as a task only")
# As servers of the TypeScript SDK say it.
NO_METHOD_IN_TEXT: Message = {
    "content": [{"type": "text", "text": "MCP error -32601: Tool research requires task"}],
    "isError": True,
}


def tool(support: str | None) -> Message:
    return RESEARCH | ({} if support is None else {"execution": {"taskSupport": support}})


# -- 2025-11-25: the client asks -------------------------------------------------------------------


@pytest.mark.requirement("TSK-2", "TSK-4", "TSK-5", "TSK-6")
@pytest.mark.parametrize("support", [None, "forbidden", "optional", "required"])
@both_drivers
def test_call_tool_asks_for_task_only_if_tool_requires_it(
    play_with: Any, support: str | None
) -> None:
    """A tool that may run as a task is called as usual."""
    required = support == "required"
    script = answers(
        D,
        **{
            "tools/list": {"tools": [tool(support)]},
            "tools/call": created(D) if required else CONTENT,
        },
    )

    async def main(play: ClientPlay) -> None:
        client = await listed(play)
        assert await client.call_tool("research") == OWLS
        (call,) = play.server.sent("tools/call")
        assert ("task" in call["params"]) == required

    play_with(main, D, answers=script)


@pytest.mark.requirement("TSK-2", "TSK-4", "TSK-6")
@pytest.mark.parametrize("support", [None, "forbidden", "optional", "required"])
@both_drivers
def test_start_tool_asks_for_task_if_tool_may_be_one(play_with: Any, support: str | None) -> None:
    """Whether a tool may be one is in the list of tools."""
    script = answers(D, **{"tools/list": {"tools": [tool(support)]}})

    async def main(play: ClientPlay) -> None:
        client = play.client
        if support in (None, "forbidden"):
            with pytest.raises(LocalProtocolError, match="does not run as a task"):
                await client.start_tool("research", ttl=60)
            assert play.server.count("tools/call") == 0
            return
        task = await client.start_tool("research", ttl=60.5)
        assert await task.result() == OWLS
        assert [method for _, method, _ in play.server.wire[:2]] == ["tools/list", "tools/call"]
        assert play.server.wire[1][2] == {"name": "research", "task": {"ttl": 60_500}}

    play_with(main, D, answers=script)


@pytest.mark.requirement("TSK-2", "TSK-3")
@pytest.mark.parametrize("tasks", [None, {}, {"list": {}, "cancel": {}}, {"requests": {}}])
@both_drivers
def test_server_without_tasks_is_asked_for_none(play_with: Any, tasks: Message | None) -> None:
    """Its tools may say what they like."""
    offers: Message = {"tools": {}} | ({} if tasks is None else {"tasks": tasks})

    async def main(play: ClientPlay) -> None:
        client = await listed(play)
        assert await client.call_tool("research") == OWLS
        with pytest.raises(LocalProtocolError, match="did not declare that it runs tools as tasks"):
            await client.start_tool("research")
        (call,) = play.server.sent("tools/call")
        assert "task" not in call["params"]

    script = answers(D, **{"tools/call": CONTENT})
    play_with(main, D, answers=script, offers=offers)


@pytest.mark.requirement("TSK-5")
@pytest.mark.parametrize("refusal", [NO_METHOD, NO_METHOD_IN_TEXT], ids=["error", "text"])
@both_drivers
def test_call_refused_for_unlisted_tool_is_repeated_as_task(play_with: Any, refusal: Any) -> None:
    script = answers(D, **{"tools/call": [refusal, created(D)]})

    async def main(play: ClientPlay) -> None:
        assert await play.client.call_tool("research") == OWLS
        assert [(method, params) for _, method, params in play.server.wire[:3]] == [
            ("tools/call", {"name": "research"}),
            ("tools/list", {}),
            ("tools/call", {"name": "research", "task": {}}),
        ]

    play_with(main, D, answers=script)


@pytest.mark.parametrize("support", [None, "forbidden", "optional"])
@both_drivers
def test_tool_error_that_looks_like_refusal_is_returned(
    play_with: Any, support: str | None
) -> None:
    more = {"tools/list": {"tools": [tool(support)]}, "tools/call": NO_METHOD_IN_TEXT}

    async def main(play: ClientPlay) -> None:
        for _ in range(2):
            assert (await play.client.call_tool("research")).is_error
        methods = [method for _, method, _ in play.server.wire]
        assert methods == ["tools/call", "tools/list", "tools/call"]

    play_with(main, D, answers=answers(D, **more))


@both_drivers
def test_tool_error_of_unlisted_tool_is_returned_at_once(play_with: Any) -> None:
    async def main(play: ClientPlay) -> None:
        assert (await play.client.call_tool("research")).is_error
        assert [method for _, method, _ in play.server.wire] == ["tools/call"]

    play_with(main, D, answers=answers(D, **{"tools/call": CONTENT | {"isError": True}}))


@both_drivers
def test_other_refusal_of_unlisted_tool_raises_at_once(play_with: Any) -> None:
    async def main(play: ClientPlay) -> None:
        with pytest.raises(PeerError, match="no such tool"):
            await play.client.call_tool("research")
        assert [method for _, method, _ in play.server.wire] == ["tools/call"]

    play_with(main, D, answers=answers(D, **{"tools/call": Failure(-32602, "no such tool")}))


@pytest.mark.parametrize("support", [None, "forbidden", "optional"])
@both_drivers
def test_call_refused_for_tool_that_is_no_task_raises(play_with: Any, support: str | None) -> None:
    more = {"tools/list": {"tools": [tool(support)]}, "tools/call": NO_METHOD}

    async def main(play: ClientPlay) -> None:
        for lists in (1, 1):  # the second time the tool is known
            with pytest.raises(PeerError, match="as a task only"):
                await play.client.call_tool("research")
            assert play.server.count("tools/list") == lists
        assert play.server.count("tools/call") == 2

    play_with(main, D, answers=answers(D, **more))


@both_drivers
def test_start_tool_answered_at_once_is_ended_task(play_with: Any) -> None:
    """A server may ignore the member `task`."""

    async def main(play: ClientPlay) -> None:
        task = await play.client.start_tool("research")
        assert task.ended
        assert await task.result() == OWLS
        assert [each.status async for each in task.states()] == ["completed"]
        await task.cancel()
        await task.refresh()
        with pytest.raises(LocalProtocolError, match="no task was created"):
            task.reference  # noqa: B018 - the property raises
        assert play.server.count("tasks/get") == 0

    play_with(main, D, answers=answers(D, **{"tools/call": CONTENT}))


@pytest.mark.requirement("TSK-27")
@pytest.mark.parametrize(("meant", "text"), [("Reading.", "Reading."), (5, None), (None, None)])
@both_drivers
def test_task_meanwhile_is_text_of_creation(play_with: Any, meant: Any, text: str | None) -> None:
    meta = {"io.modelcontextprotocol/model-immediate-response": meant}
    script = answers(D, **{"tools/call": created(D) | {"_meta": meta}})

    async def main(play: ClientPlay) -> None:
        task = await play.client.start_tool("research")
        assert task.meanwhile == text

    play_with(main, D, answers=script)


# -- 2026-07-28: the server decides ----------------------------------------------------------------


@pytest.mark.requirement("TX-3")
@both_drivers
def test_extension_result_at_once_is_returned(play_with: Any) -> None:
    async def main(play: ClientPlay) -> None:
        client = await listed(play)
        assert (await client.call_tool("research")).text == "owls"
        task = await client.start_tool("research")
        assert (await task.result()).text == "owls"
        for call in play.server.sent("tools/call"):
            assert "task" not in call["params"]
            meta = call["params"]["_meta"]["io.modelcontextprotocol/clientCapabilities"]
            assert meta["extensions"] == {EXTENSION: {}}

    # `execution` is of 2025-11-25, and means nothing here.
    play_with(main, E, answers=answers(E, **{"tools/call": CONTENT}))


@both_drivers
def test_extension_off_start_tool_raises(play_with: Any) -> None:
    async def main(play: ClientPlay) -> None:
        client = await listed(play)
        with pytest.raises(LocalProtocolError, match="tasks=False"):
            await client.start_tool("research")
        assert (await client.call_tool("research")).text == "owls"

    play_with(main, E, answers=answers(E, **{"tools/call": CONTENT}), tasks=False)


@both_drivers
def test_revision_without_tasks_start_tool_raises(play_with: Any) -> None:
    async def main(play: ClientPlay) -> None:
        with pytest.raises(LocalProtocolError, match="2025-06-18 has no tasks"):
            await play.client.start_tool("research")
        with pytest.raises(LocalProtocolError):
            await play.client.list_tasks()

    play_with(main, "2025-06-18", answers={}, offers={"tools": {}})


@pytest.mark.parametrize("ttl", [0, -1, float("nan"), float("inf")])
@both_forms
@both_drivers
def test_start_tool_invalid_ttl_raises(play_with: Any, version: str, ttl: float) -> None:
    async def main(play: ClientPlay) -> None:
        with pytest.raises(ValueError, match="ttl is a number of seconds"):
            await play.client.start_tool("research", ttl=ttl)
        assert play.server.log == []

    play_with(main, version, answers={})


# -- Found again -----------------------------------------------------------------------------------


@pytest.mark.requirement("TX-24")
@both_forms
@both_drivers
def test_reference_finds_task_on_another_connection(play_with: Any, version: str) -> None:
    """A reference that was stored is all that another client needs to get the result."""

    async def start(play: ClientPlay) -> str:
        client = await listed(play)
        task = await client.start_tool("research", {"topic": "owls"})
        return str(task.reference)

    async def find(play: ClientPlay) -> None:
        task = await play.client.task(reference)
        assert (task.id, task.tool, task.status) == ("T", "research", "working")
        assert await task.result() == OWLS
        methods = [method for _, method, _ in play.server.wire]
        assert methods == ["tasks/get", "tasks/get", "tasks/result"][: 3 if version == D else 2]

    reference = play_with(start, version, answers=answers(version))
    assert reference.startswith("mcp-task:1:")
    assert "research" not in reference
    play_with(find, version, answers=answers(version, state(version), ended(version)))


@both_forms
@both_drivers
def test_reference_of_forgotten_task_raises(play_with: Any, version: str) -> None:
    async def start(play: ClientPlay) -> str:
        client = await listed(play)
        return str((await client.start_tool("research")).reference)

    async def find(play: ClientPlay) -> None:
        with pytest.raises(PeerError, match="no such task"):
            await play.client.task(reference)

    reference = play_with(start, version, answers=answers(version))
    play_with(find, version, answers=answers(version, Failure(-32602, "no such task")))


@both_drivers
def test_reference_of_other_revision_raises(play_with: Any) -> None:
    async def start(play: ClientPlay) -> str:
        client = await listed(play)
        return str((await client.start_tool("research")).reference)

    async def find(play: ClientPlay) -> None:
        with pytest.raises(LocalProtocolError, match=r"connect with versions=\['2025-11-25'\]"):
            await play.client.task(reference)
        assert play.server.log == []

    reference = play_with(start, D, answers=answers(D))
    play_with(find, E, answers=answers(E))


@both_forms
@both_drivers
def test_reference_invalid_raises(play_with: Any, version: str) -> None:
    async def main(play: ClientPlay) -> None:
        for text in ("", "T", "mcp-task:1:", "mcp-task:1:????", "mcp-task:1:e30", "mcp-task:2:e30"):
            with pytest.raises(InvalidTaskReference):
                await play.client.task(text)
        assert play.server.log == []

    play_with(main, version, answers={})


@both_forms
@both_drivers
def test_reference_on_same_connection_is_the_task_itself(play_with: Any, version: str) -> None:
    """So that its questions are asked once. It is forgotten when no caller has it."""

    async def main(play: ClientPlay) -> None:
        client = await listed(play)
        task = await client.start_tool("research")
        reference = task.reference
        assert await client.task(reference) is task
        assert "1 tasks" in repr(client._task_poller())
        del task
        assert "0 tasks" in repr(client._task_poller())
        assert (await client.task(reference)).status == "working"

    play_with(main, version, answers=answers(version, state(version)))


@pytest.mark.requirement("TSK-20")
@both_drivers
def test_list_tasks_returns_all_pages(play_with: Any) -> None:
    pages = [
        {"tasks": [state(D, id="1"), state(D, "failed", id="2")], "nextCursor": "x"},
        {"tasks": [state(D, id="3")]},
    ]

    async def main(play: ClientPlay) -> None:
        assert [(each.task_id, each.status) for each in await play.client.list_tasks()] == [
            ("1", "working"),
            ("2", "failed"),
            ("3", "working"),
        ]

    play_with(main, D, answers={"tasks/list": pages})


@both_drivers
def test_list_tasks_in_extension_raises(play_with: Any) -> None:
    async def main(play: ClientPlay) -> None:
        with pytest.raises(LocalProtocolError, match="tasks/list"):
            await play.client.list_tasks()

    play_with(main, E, answers={})


@both_forms
@both_drivers
def test_task_shows_no_id_in_repr(play_with: Any, version: str) -> None:
    """The id may be all that guards the result."""

    async def main(play: ClientPlay) -> None:
        client = await listed(play)
        task = await client.start_tool("research")
        assert repr(task) == "<ClientTask of 'research' working>"
        with pytest.raises(PeerError) as caught:
            await play.client.call_tool("research")
        assert "secret" not in str(caught.value)

    script = answers(version, Failure(-32602), **{"tools/call": created(version, id="secret")})
    play_with(main, version, answers=script)


@both_forms
@both_drivers
def test_client_without_tasks_makes_no_poller(play_with: Any, version: str) -> None:
    async def main(play: ClientPlay) -> None:
        await (await listed(play)).call_tool("research")
        assert play.client._poller is None

    play_with(main, version, answers=answers(version, CONTENT) | {"tools/call": CONTENT})
