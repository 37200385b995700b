"""Our client answers the input requests of a server of the official Python SDK (`mcp` 2.3), over
stdio.

Starting such a server is slow, so each test uses one for much.
"""

from __future__ import annotations

import json
import sys
from contextlib import asynccontextmanager
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any, Literal

import pytest
import trio
from mcp_types import LOG_LEVEL_META_KEY as LOG_LEVEL
from msgspec import UNSET

from mcp_core import ALL, McpError, RemoteProtocolError
from mcp_core.types import (
    CreateMessageParams,
    CreateMessageResult,
    ElicitationCapability,
    ElicitParams,
    ElicitResult,
    Root,
    SamplingCapability,
    TextContent,
    ToolResultContent,
    ToolUseContent,
)
from mcp_trio import LocalProtocolError, PeerError, connect_stdio

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from mcp_trio import Client

HERE = Path(__file__).parent
E, D, C, B, A = ALL
PAGES = ElicitationCapability(form={}, url={})
TOOLS = SamplingCapability(tools={})
DECLINE, CANCEL = ElicitResult(action="decline"), ElicitResult(action="cancel")


def revisions(*versions: str) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("version", versions)


class Answers:
    """A callback that gives prepared responses and records the requests."""

    def __init__(self, *answers: Any) -> None:
        self.left = list(answers)
        self.received: list[Any] = []

    async def __call__(self, params: Any = None) -> Any:
        self.received.append(params)
        answer = self.left.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer


class Crossed:
    """A trace of the messages: `connect(..., trace=crossed)`."""

    def __init__(self) -> None:
        self.sent: list[Any] = []
        self.received: list[Any] = []

    def __call__(self, direction: Literal["sent", "received"], line: bytes) -> None:
        (self.sent if direction == "sent" else self.received).append(json.loads(line))


@asynccontextmanager
async def opened(
    version: str, server: str = "sdk_input_server.py", **options: Any
) -> AsyncIterator[Client]:
    argv = [sys.executable, str(HERE / server)]
    with trio.fail_after(20):
        async with connect_stdio(argv, versions=[version], stderr="discard", **options) as client:
            yield client


async def call(client: Client, tool: str, **arguments: Any) -> str:
    result = await client.call_tool(tool, arguments)
    assert not result.is_error, result.text
    return result.text


async def error_of(client: Client, tool: str, **arguments: Any) -> tuple[int, Any]:
    with pytest.raises(PeerError) as refused:
        await client.call_tool(tool, arguments)
    return refused.value.code, refused.value.data


# -- Forms -----------------------------------------------------------------------------------------


@pytest.mark.requirement(
    "ELIC-1", "ELIC-5", "ELIC-9", "ELIC-11", "MRTR-6", "MRTR-7", "MRTR-9", "MRTR-10", "MRTR-16"
)
@revisions(E, D, C)
async def test_sdk_server_forms_are_answered(version: str) -> None:
    """The same tool asks by requests or by rounds; only `McpError` ends differently."""
    user, crossed = Answers(), Crossed()
    async with opened(version, on_elicit=user, trace=crossed) as client:
        user.left = [{"count": 2, "where": "window"}, {"dish": "soup"}]
        text = await call(client, "book")
        assert text == "{'loud': False, 'count': 2, 'where': 'window'}, accept: {'dish': 'soup'}"
        assert [question.message for question in user.received] == ["Seats", "To eat"]
        assert user.received[0].requested_schema["required"] == ["count"]
        calls = [message for message in crossed.sent if message.get("method") == "tools/call"]
        assert len(calls) == len({message["id"] for message in calls}) == (3 if version == E else 1)

        # Decline and cancel are responses. A callback's McpError is one only in 2026-07-28, which
        # has no error response.
        user.left = [{"count": 1, "loud": True}, DECLINE]
        assert await call(client, "book") == "{'loud': True, 'count': 1}, decline: None"
        for answer, action in (DECLINE, "decline"), (CANCEL, "cancel"), (None, "cancel"):
            user.left = [answer]
            assert await call(client, "book") == f"seats: {action}, None"
        user.left = [McpError(-1, "not now")]
        if version == E:
            assert await call(client, "book") == "seats: cancel, None"
        else:
            with pytest.raises(PeerError, match="not now"):
                await client.call_tool("book")
        assert user.left == []


@pytest.mark.requirement("MRTR-7", "MRTR-9", "MRTR-10")
@revisions(E, D, C)
async def test_sdk_server_high_level_forms_are_answered(version: str) -> None:
    """The client returns the sealed state unchanged, with the responses of this round only."""
    user, crossed = Answers(), Crossed()
    async with opened(version, "sdk_server.py", on_elicit=user, trace=crossed) as client:
        for answer, action in ({"sure": True}, "accept"), (DECLINE, "decline"), (None, "cancel"):
            user.left = [{"count": 2}, answer]
            assert (
                await call(client, "book", flight="KL 1234")
                == f"2 by the aisle on KL 1234: {action}"
            )
        assert [question.message for question in user.received] == [
            "Seats on KL 1234",
            "Really 2?",
        ] * 3
        if version == E:
            states = [
                message["result"]["requestState"]
                for message in crossed.received
                if message.get("result", {}).get("resultType") == "input_required"
            ]
            retries = [
                message["params"]["requestState"]
                for message in crossed.sent
                if "requestState" in message.get("params", {})
            ]
            assert len(states) == 6
            assert retries == states
        user.left = [DECLINE]
        assert (await client.call_tool("book", {"flight": "KL 1234"})).is_error


@pytest.mark.requirement("MRTR-10", "MRTR-11")
async def test_sdk_server_retries_are_identical_and_limited() -> None:
    """A server that always asks again: ten rounds differ in nothing but id and progress token."""
    crossed = Crossed()

    async def fill(params: ElicitParams) -> dict[str, Any]:
        await call(client, "unlock", id="x")
        return {"dish": "soup"}

    async with opened(E, on_elicit=fill, trace=crossed) as client:
        with pytest.raises(RemoteProtocolError, match="still asks after 10 rounds"):
            await client.call_tool(
                "pester", {"about": "it"}, meta={LOG_LEVEL: "debug"}, progress=lambda *step: None
            )
    sent = [
        message["params"] | {"id": message["id"]} for message in crossed.sent if "id" in message
    ]
    first, *retries = [params for params in sent if params.get("name") == "pester"]
    assert len(retries) == 10
    assert first["_meta"][LOG_LEVEL] == "debug"
    for retry in retries:
        assert retry["arguments"] == first["arguments"] == {"about": "it"}
        assert retry["_meta"].keys() == first["_meta"].keys() >= {"progressToken"}
        assert retry["_meta"] | {"progressToken": 0} == first["_meta"] | {"progressToken": 0}
        assert list(retry["inputResponses"].values()) == [
            {"action": "accept", "content": {"dish": "soup"}}
        ]
    assert len({params["id"] for params in sent}) == len(sent)
    others = [params for params in sent if params.get("name") == "unlock"]
    assert len(others) == 10
    assert not any("inputResponses" in params or "requestState" in params for params in others)


@pytest.mark.requirement("ELIC-10")
@revisions(E, D)
async def test_sdk_server_invalid_form_answer_is_not_sent(version: str) -> None:
    crossed = Crossed()
    async with opened(version, on_elicit=Answers({"count": 9}), trace=crossed) as client:
        if version == E:
            with pytest.raises(LocalProtocolError, match="count is more than 8"):
                await client.call_tool("book")
        else:
            assert await error_of(client, "book") == (-32603, UNSET)
    assert not any("content" in message.get("result", {}) for message in crossed.sent)


@pytest.mark.requirement("CXL-6", "CXL-13", "CXL-18")
@revisions(E, D, C)
async def test_sdk_server_cancelled_call_ends_its_input_request(version: str) -> None:
    """The caller gives up while the user reads: both the dialog and the server's tool end."""
    withdrawn = trio.Event()

    async def ponder(params: ElicitParams) -> None:
        scope.cancel()
        try:
            await trio.sleep_forever()
        finally:
            withdrawn.set()

    async with opened(version, on_elicit=ponder) as client:
        with trio.CancelScope() as scope:
            await client.call_tool("hang")
        assert scope.cancelled_caught
        await withdrawn.wait()
        assert await call(client, "cancelled") == "yes"


# -- URL elicitation -------------------------------------------------------------------------------


@pytest.mark.requirement("ELIC-2", "ELIC-14", "ELIC-15")
@revisions(E, D)
async def test_sdk_server_url_elicitation_is_answered(version: str) -> None:
    """Ids and completions exist in 2025-11-25 only; an unknown id does no harm."""
    user, crossed = Answers({}, DECLINE, None), Crossed()
    async with opened(version, on_elicit=user, elicitation=PAGES, trace=crossed) as client:
        for id, action in ("a", "accept"), ("b", "decline"), ("c", "cancel"):
            assert await call(client, "visit", id=id) == f"{action}, None"
        for id, question in zip("abc", user.received, strict=True):
            assert (question.mode, question.message) == ("url", "Please log in.")
            assert question.url == f"https://example.com/pages?id={id}"
            assert question.elicitation_id == (id if version == D else None)
        if version == D:
            # Completion notifications are ignored here, whether the id is known or not.
            for id in "a", "unknown":
                assert await call(client, "unlock", id=id) == "done"
            complete = "notifications/elicitation/complete"
            notified = [
                message for message in crossed.received if message.get("method") == complete
            ]
            assert [message["params"]["elicitationId"] for message in notified] == ["a", "unknown"]


@pytest.mark.requirement("ELIC-15", "ELIC-16")
async def test_sdk_server_url_elicitation_required_raises() -> None:
    async with opened(D, on_elicit=Answers(), elicitation=PAGES) as client:
        page = {
            "mode": "url",
            "message": "Please log in.",
            "url": "https://example.com/pages?id=p",
            "elicitationId": "p",
        }
        assert await error_of(client, "locked", id="p") == (-32042, {"elicitations": [page]})
        await client.call_tool("unlock", {"id": "p"})
        assert await call(client, "locked", id="p") == "open"


# -- Sampling --------------------------------------------------------------------------------------


def sampled(reason: str, *blocks: Any) -> CreateMessageResult:
    [*content] = blocks
    return CreateMessageResult(
        role="assistant",
        content=content if len(content) > 1 else content[0],
        model="small-1",
        stop_reason=reason,
    )


@pytest.mark.requirement("SAMP-1", "SAMP-2", "SAMP-3", "SAMP-12", "SAMP-13")
@revisions(*ALL)
async def test_sdk_server_sampling_is_answered(version: str) -> None:
    """A refusal reaches the server as an error; 2026-07-28 has none, so the call ends."""
    model = Answers(sampled("endTurn", TextContent("Hello")), None)
    async with opened(version, on_sample=model) as client:
        assert await call(client, "say", text="Say hello.") == "small-1: Hello (endTurn)"
        [question] = model.received
        assert isinstance(question, CreateMessageParams)
        assert [message.content for message in question.messages] == [TextContent("Say hello.")]
        assert (question.max_tokens, question.system_prompt, question.temperature) == (
            9,
            "Be brief.",
            0.5,
        )
        assert question.stop_sequences == ["."]
        preferences = question.model_preferences
        assert preferences is not None
        assert preferences.speed_priority == 1
        assert [hint.name for hint in preferences.hints or ()] == ["small"]

        # The user rejects. 2026-07-28 has no error response for that, so the call ends at once.
        with pytest.raises(McpError if version == E else PeerError, match="rejected") as refused:
            await client.call_tool("say", {"text": "Say it again."})
        assert refused.value.code == -1


@pytest.mark.requirement("SAMP-4", "SAMP-7", "SAMP-8")
@revisions(E, D)
async def test_sdk_server_sampling_with_tools_is_answered(version: str) -> None:
    """The SDK runs the tools; what our callback sees keeps its order and ids."""
    both = (
        ToolUseContent("u1", "add", {"a": 2, "b": 3}),
        ToolUseContent("u2", "add", {"a": 4, "b": 5}),
    )
    model = Answers(
        sampled("toolUse", TextContent("Let me see."), *both),
        sampled("toolUse", ToolUseContent("u3", "add", {"a": 5, "b": 9})),
        sampled("endTurn", TextContent("14")),
    )
    async with opened(version, on_sample=model, sampling=TOOLS) as client:
        assert await call(client, "calculate", task="2 + 3 + 4 + 5") == "small-1: 14 (endTurn)"
    first, _, last = model.received
    assert [tool.name for tool in first.tools] == ["add"]
    assert first.tool_choice.mode == "auto"
    assert [message.role for message in last.messages] == ["user", "assistant"] * 2 + ["user"]
    assert last.messages[1].content == [TextContent("Let me see."), *both]
    results = [block for message in last.messages[2::2] for block in message.content]
    assert results == [
        ToolResultContent(tool_use_id=id, content=[TextContent(total)])
        for id, total in (("u1", "5"), ("u2", "9"), ("u3", "14"))
    ]


# -- Roots -----------------------------------------------------------------------------------------


@pytest.mark.requirement("ROOT-1", "ROOT-2", "ROOT-4")
@revisions(*ALL)
async def test_sdk_server_roots_are_answered(version: str) -> None:
    places: list[Any] = [Root("file:///home/me", "home"), PurePosixPath("/work")]
    async with opened(version, on_roots=lambda: places) as client:
        assert await call(client, "where") == "home=file:///home/me, None=file:///work"
        places[:] = ["file:///elsewhere"]
        client.roots_changed()
        if version != E:
            assert await call(client, "known") == "file:///elsewhere"
        assert await call(client, "where") == "None=file:///elsewhere"


# -- Everything at once, and nothing ---------------------------------------------------------------


@pytest.mark.requirement("MRTR-4", "MRTR-6")
@revisions(E, D, C)
async def test_sdk_server_concurrent_input_requests_are_answered(version: str) -> None:
    """The callbacks run concurrently: none ends before all have started."""
    begun = 0
    all_begun = trio.Event()

    def answers(answer: Any) -> Any:
        async def wait_for_the_others(*params: Any) -> Any:
            nonlocal begun
            begun += 1
            if begun == 3:
                all_begun.set()
            await all_begun.wait()
            return answer

        return wait_for_the_others

    async with opened(
        version,
        on_elicit=answers({"dish": "soup"}),
        on_sample=answers(sampled("endTurn", TextContent("So."))),
        on_roots=answers(["file:///work"]),
    ) as client:
        assert await call(client, "plan") == "{'dish': 'soup'}, small-1, file:///work"


@pytest.mark.requirement("ELIC-2", "ELIC-3", "SAMP-5", "ROOT-5")
@revisions(E, D)
async def test_sdk_server_input_request_without_capability_is_an_error(version: str) -> None:
    """This server requests input in spite of missing capabilities.

    The server gets the error or, in 2026-07-28, the caller of the tool.
    """
    without_callbacks: dict[str, dict[str, Any]] = {
        "book": {},
        "say": {"text": "Hello"},
        "where": {},
        "visit": {"id": "v"},
    }
    some: dict[str, dict[str, Any]] = {"visit": {"id": "v"}, "calculate": {"task": "2 + 3"}}
    callbacks: dict[str, Any] = {"on_elicit": Answers(), "on_sample": Answers()}
    cases: list[tuple[dict[str, Any], dict[str, dict[str, Any]], int]] = [
        ({}, without_callbacks, -32601),
        (callbacks, some, -32602),
    ]
    for options, tools, code in cases:
        async with opened(version, **options) as client:
            for tool, arguments in tools.items():
                if version == E:
                    with pytest.raises(RemoteProtocolError, match="did not declare"):
                        await client.call_tool(tool, arguments)
                else:
                    assert (tool, *await error_of(client, tool, **arguments)) == (tool, code, UNSET)
